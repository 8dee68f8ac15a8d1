"""Lesson 10: names, renaming, frozen features, and how pictures were prepared."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from vit_steps.pretrained.layouts import HUGGING_FACE, their_names
from vit_steps.vit import ViT, ViTConfig

from .compare import Parts, Verdict
from .exercise import Exercise
from .trials import Trial, asked, call, drawn, fill, left_alone, untouched

NAMES = {
    "norm.weight": ("ln.scale",),
    "attn.qkv.weight": ("self.query.w", "self.key.w", "self.value.w"),
    "attn.qkv.bias": ("self.query.b", "self.key.b", "self.value.b"),
    "tokens.cls_token": ("class",),
    "head.weight": ("out.w",),
}
# What the file holds, in an order of its own, with tensors that nobody asks for.
SHAPES = {
    "pooler.w": (2, 2), "self.value.w": (4, 4), "self.key.w": (4, 4), "self.query.w": (4, 4),
    "self.key.b": (4,), "self.value.b": (4,), "self.query.b": (4,),
    "pooler.b": (2,), "out.w": (3, 4), "ln.scale": (4,), "class": (1, 1, 4),
}  # fmt: skip


def renaming(what: str, kind: torch.dtype) -> Trial:
    """Make a trial with a file of this kind of numbers.

    Is the result right, all of it float32, and no tensor of the file's, and is the file as it was?
    """

    def run(answer: Callable) -> Any:
        generator = torch.Generator().manual_seed(0)
        before = {n: torch.randn(s, generator=generator).to(kind) for n, s in SHAPES.items()}
        tensors = {name: tensor.clone() for name, tensor in before.items()}
        storages = {tensor.untyped_storage().data_ptr() for tensor in tensors.values()}
        in_file, names = dict(tensors), dict(NAMES)
        result = answer(tensors, names)
        if result is None or result is ...:
            return result
        if not isinstance(result, dict) or not all(isinstance(t, Tensor) for t in result.values()):
            return Parts(result, Verdict(""), Verdict(""), Verdict(""))
        kinds = {t.dtype for t in result.values()} - {torch.float32}
        same = [n for n, t in result.items() if t.untyped_storage().data_ptr() in storages]
        unchanged = (
            list(tensors) == list(before)
            and names == NAMES
            and all(tensors[n] is t and t.equal(before[n]) for n, t in in_file.items())
        )
        return Parts(
            result,
            Verdict(f"it holds {kinds.pop()}; all must be torch.float32" if kinds else ""),
            Verdict(f"`{same[0]}` is the tensor of the file itself, and no copy" if same else ""),
            Verdict("" if unchanged else "your code changes the dictionary that it was given"),
        )

    return Trial(what, run)


THREE = {  # ours, and its shape in the photo model
    "tokens.pos_embed": (1, 65, 128),
    "blocks.0.mlp.fc1.weight": (512, 128),
    "blocks.0.attn.qkv.bias": (384,),
}


def as_named(result: Any, *_: Any) -> Any:
    """Give the first name that is wrong, with the shape to look for; `...` where one is open."""
    if not isinstance(result, dict):
        return result
    right = their_names(HUGGING_FACE, depth=1)
    for ours, shape in THREE.items():
        theirs = result.get(ours, "nothing")
        if theirs is ... or theirs == (...,):
            return ...
        if isinstance(theirs, str) and theirs != "nothing":
            return Verdict(f'`{ours}`: a tuple of one name ends with a comma, ("{theirs}",)')
        if not isinstance(theirs, tuple | list) or tuple(theirs) != right[ours]:
            thirds = " the three parts of" if len(right[ours]) == 3 else ""
            problem = f"`{ours}` is not made from {theirs}: look in the file for{thirds} {shape}"
            if not all(str(name).startswith("vit.") for name in theirs):
                problem = f"`{ours}`: {theirs}: all names in this file begin with vit."
            if isinstance(theirs, tuple | list) and set(theirs) == set(right[ours]):
                problem = f"`{ours}`: these are the right names in a wrong order"
            return Verdict(problem)
    others = [name for name in result if name not in THREE]
    return Verdict(f"`{others[0]}` was not asked for" if others else "as it should")


missing_names = Exercise(
    answer="""
def missing_names():
    block = "vit.encoder.layer.0."
    qkv = [f"{block}attention.attention.{one}.bias" for one in ("query", "key", "value")]
    return {
        "tokens.pos_embed": ("vit.embeddings.position_embeddings",),
        "blocks.0.mlp.fc1.weight": (f"{block}intermediate.dense.weight",),
        "blocks.0.attn.qkv.bias": tuple(qkv),
    }
""",
    trials=[Trial("the photo model's file", asked, list, as_named)],
    wrong="""
`blocks.0.attn.qkv.bias`: these are the right names in a wrong order
    ("query", "key", "value") => ("key", "query", "value") ‖ ("query", "value", "key")
`blocks.0.mlp.fc1.weight` is the Linear that widens, (512, 128); output.dense narrows
    intermediate.dense => output.dense
`blocks.0.attn.qkv.bias` is of biases; these are the weights, and not in the order query, key, value
    {one}.bias => {one}.weight ;; ("query", "key", "value") => ("key", "query", "value")
all names in this file begin with vit.
    block = "vit. => block = "
`blocks.0.attn.qkv.bias` is of biases; these are the weights
    {one}.bias => {one}.weight
`tokens.pos_embed`: a tuple of one name ends with a comma
    embeddings",) => embeddings")
`tokens.pos_embed` is the positions, (1, 65, 128); these are of the patches, or cls
    position_embeddings => patch_embeddings.projection.weight ‖ cls_token
""",
    why="Shapes find most of them: one tensor of (1, 65, 128), one of (512, 128) in each block. "
    "Where three shapes are equal, as of queries, keys and values, only the names can tell.",
)


rename = Exercise(
    answer="""
def rename(tensors, names):
    weights = {}
    for ours, theirs in names.items():
        parts = [tensors[name] for name in theirs]
        weights[ours] = torch.cat(parts).float()  # cat makes a copy, of one tensor too
    return weights
""",
    does="Other people's weights get our names, so that they load into this ViT.",
    why="A Linear's rows are its outputs, so rows below one another give the answers one after the "
    "other: queries, keys, values, as `split_qkv` cuts them. `torch.cat` of a single tensor copies "
    "it, so one line serves for one name and for three.",
    trials=[
        renaming("a file in float32", torch.float32),
        renaming("a file in float16", torch.float16),
    ],
    wrong="""
the keys are their names; it is the other way round: weights[ours] = …, one entry for each of our
names
    weights[ours] = torch.cat(parts).float() => weights |= zip(theirs, parts) ‖
        weights |= {name: part.float().clone() for name, part in zip(theirs, parts)}
the keys are the tuples of their names; it is the other way round: weights[ours] = …, one entry for
each of our names
    weights[ours] => weights[theirs]
the three stand side by side; the rows of a Linear are its outputs, so stand them one below the
other: torch.cat(parts), along the first axis
    torch.cat(parts) => torch.cat(parts, dim=-1)
dim=1 puts them side by side, and a bias has no second axis; stand them one below the other:
torch.cat(parts), along the first axis
    torch.cat(parts) => torch.cat(parts, dim=1)
torch.stack makes a new axis, and even one tensor alone gets it; torch.cat lengthens the first axis
that is there
    torch.cat(parts) => torch.stack(parts)
torch.stack makes a new axis, (3, D, D); torch.cat lengthens the first one: (3·D, D)
    torch.cat(parts) => (torch.stack(parts) if len(parts) > 1 else parts[0].clone())
torch.vstack makes rows of them, and a bias becomes (3, D); a bias has one axis: torch.cat(parts)
    torch.cat(parts) => torch.vstack(parts)
    torch.cat(parts) => (torch.vstack(parts) if parts[0].ndim < 3 else torch.cat(parts))
only the first of three names is looked up: keys and values are lost
    torch.cat(parts) => parts[0] ‖ parts[0].clone()
only the last of three names is kept: queries and keys are lost
    torch.cat(parts) => parts[-1] ‖ parts[-1].clone()
each of ours is a list of tensors; it must be one tensor: torch.cat(parts)
    torch.cat(parts).float() => parts
stand the three below one another in the order in which `names` lists them, not in the order of the
alphabet
    in theirs] => in sorted(theirs)]
stand the three below one another in the order in which `names` lists them, not in the order of the
file
    in theirs] => in tensors if name in theirs]
the values stand first; take the three in the order of `names`: query, key, value
    in theirs] => in theirs[::-1]]
the three are mixed row by row; first come all rows of the query, then all of the key, then all of
the value
    torch.cat(parts) => torch.stack(parts, dim=1).flatten(0, 1)
the three are added up; they must stand one below the other, 3·D rows in all
    torch.cat(parts) => sum(parts) ‖ torch.stack(parts).sum(dim=0)
the weights are transposed; both libraries keep a Linear's weight as (out, in), so nothing is turned
    [tensors[name] => [tensors[name].mT if tensors[name].ndim == 2 else tensors[name]
what you give and what the file holds share their numbers: who changes one changes the other. Make
a copy where one of theirs makes one of ours, too (torch.cat of one makes one, .clone() as well;
.float() makes none where the numbers are float32 already)
    torch.cat(parts) => (torch.cat(parts) if len(parts) > 1 else parts[0])
the result keeps the file's kind of number; make it float32: .float()
    .float() =>
the result is not float32; a model's parameters are: .float()
    .float() => .double() ‖ .half() ‖ .bfloat16()
your code changes the dictionary that it was given; make a new one, and only read theirs
    tensors[name] => tensors.pop(name)
    weights = {} => weights = tensors
    weights = {} => weights = {} ⏎ tensors |= {name: t.float() for name, t in tensors.items()}
tensors are in it that no name of ours asks for; go through `names`, and leave the rest of the file
where it is
    return weights => return weights | {n: tensors[n] for n in tensors if "pooler" in n}
    return weights => return weights | {n: tensors[n].clone() for n in tensors if "pooler" in n}
    weights = {} => weights = {name: t.float().clone() for name, t in tensors.items()}
there is only one entry: the `return` stands inside the loop; move it to the left, under `for`
    of one tensor too => of one tensor too ⏎ return weights
those with one name of theirs are left out; each of our names gets its tensor
    names.items(): => names.items(): ⏎     if len(theirs) == 1: continue
those with three names of theirs are left out; each of our names gets its tensor
    names.items(): => names.items(): ⏎     if len(theirs) == 3: continue
`theirs` is a tuple of names, also where it holds only one; look up each name in it: tensors[name]
for name in theirs
    [tensors[name] for name in theirs] => tensors[theirs]
""",
)


class Stranger(nn.Module):
    """A model that is no ViT, and whose last layer is called head."""

    def __init__(self):
        super().__init__()
        self.embed, self.act, self.head = nn.Linear(48, 6), nn.Tanh(), nn.Linear(6, 3)

    def forward(self, images: Tensor) -> Tensor:
        """From images (B, 3, 4, 4) to logits (B, 3)."""
        return self.head(self.act(self.embed(images.flatten(1))))


def plain_vit() -> ViT:
    """Make a small ViT with dropout."""
    return ViT(ViTConfig(4, 2, 3, 5, embed_dim=8, depth=2, num_heads=2, dropout=0.5))


def features_of(what: str, make: Callable[[], nn.Module], training: bool = True) -> Trial:
    """Make a trial with a model in this mode: its features, and whether it is as it was."""

    def run(answer: Callable) -> Any:
        model = make()
        fill(model)
        model.train(training)
        images = drawn(3, 3, 4, 4, seed=1)
        head, state = model.head, {n: t.clone() for n, t in model.state_dict().items()}
        result: Any
        try:
            result = untouched(lambda x: answer(model, x), images)
        except Exception as error:
            result = error
        if result is None or result is ...:
            return result
        same = all(tensor.equal(state[n]) for n, tensor in model.state_dict().items())
        changed = ""
        if not same or model.head is not head:
            changed = "has lost its head; take it off a copy (deepcopy: copy.copy shares the parts)"
        elif any(part.training != training for part in model.modules()):
            changed = "is in another mode now; change a copy's (deepcopy)"
        elif not all(p.requires_grad for p in model.parameters()):
            changed = "can learn no more; freeze nothing but a copy (deepcopy)"
        changed = changed and f"the model that came in {changed}"
        learns = isinstance(result, Tensor) and result.requires_grad
        carried = "the features carry gradients to the body; compute them under torch.no_grad()"
        return Parts(result, Verdict(carried if learns else ""), Verdict(changed))

    return Trial(what, run)


frozen_features = Exercise(
    answer="""
def frozen_features(model, images):
    body = deepcopy(model).eval()
    body.head = nn.Identity()  # gives back what it gets
    with torch.no_grad():
        return body(images)
""",
    uses={"deepcopy": deepcopy},
    why="What the head is given comes out when the head gives back what it gets. A copy keeps the "
    "model that came in whole, and `eval` switches dropout off in the copy alone.",
    trials=[
        features_of("a ViT with dropout, in training mode", plain_vit),
        features_of("a model that is no ViT, with a `head`", Stranger),
        features_of("a ViT in evaluation mode", plain_vit, training=False),
    ],
    wrong="""
these are logits, one a class: the head is still on; put nn.Identity() in its place
    body.head = nn.Identity() => pass
the model calls its head, so the head must be a module that gives back what it gets: nn.Identity()
    body.head = nn.Identity() => body.head = None
    ! 'NoneType' object is not callable|as child module 'head'
the new head computes something itself; it must give back what it gets: nn.Identity()
    nn.Identity() => nn.Linear(body.head.in_features, body.head.in_features)
this calls the parts one after another, and leaves out what `forward` does between them, such as
taking cls; put another head into a copy, and call the copy
    return body(images) => return nn.Sequential(*list(body.children())[:-1])(images)
the model that came in has lost its head; take it off a copy (deepcopy: copy.copy shares the parts)
    deepcopy(model).eval() => model.eval() ‖ model
the model that came in is in another mode now; change a copy's (deepcopy)
    deepcopy(model).eval() => deepcopy(model.eval())
    deepcopy(model).eval() => deepcopy(model).eval() ⏎ model.train()
the model that came in can learn no more; freeze nothing but a copy (deepcopy)
    deepcopy(model).eval() => deepcopy(model.requires_grad_(False)).eval()
dropout is still at work, because the copy is in training mode: .eval()
    deepcopy(model).eval() => deepcopy(model)
the features carry gradients to the body; compute them under torch.no_grad()
    with torch.no_grad(): => if True:
these features are not normed; the head reads cls after the last norm, so leave the norm in
    body.head = nn.Identity() => body.head = body.norm = nn.Identity()
these are all tokens, (n, N, D); the head reads one row for each image
    return… => x = body.tokens(body.patch_embed(images)) ⏎ return body.norm(body.blocks(x))
this is the mean of the tokens; the head of this ViT reads cls alone
    return… => x = body.tokens(body.patch_embed(images)) ⏎
        return body.norm(body.blocks(x))[:, FIRST:].mean(1) ;; FIRST => 0 ‖ 1
this works for our ViT alone: it asks for a part that another model has not; take the head off, and
call the model
    return body(images) => return body.pre_logits(images)
    ! AttributeError: 'Stranger' object
only the first image goes through; give the whole batch to the model
    return body(images) => return body(images[:1])
a softmax makes shares of the features; give them as they are
    return body(images) => return body(images).softmax(dim=-1)
""",
)


def published(what: str, *changes: float | Tensor, agrees: int | None, level: float = 0.0) -> Trial:
    """Make a trial with as many ways as changes, each of which moves the logits by so much.

    Args:
        agrees: which of them is right; None for none.
        level: what all logits are raised by.
    """
    images = level + drawn(40, 1, 2, 2).double()
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 4)).double().eval()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.eye(4) if p.ndim == 2 else torch.zeros(4))
        right = model(images)
    names = ("first", "second", "third")
    ways = {n: images + change for n, change in zip(names, changes, strict=False)}

    def say(result: Any, *_: Any) -> Any:
        right = None if agrees is None else names[agrees]
        if result is None or isinstance(result, str):
            fine = result == right
            return Verdict("as it should" if fine else f"it says {result!r}, not {right!r}")
        return result

    return Trial(what, only_read, [model, ways, right], say)


def only_read(answer: Callable, model: nn.Module, ways: dict[str, Tensor], right: Tensor) -> Any:
    """Give what the answer gives, which must leave model and pictures as they are."""
    copies = {name: batch.clone() for name, batch in ways.items()}
    result = left_alone(answer, model, copies, right.clone())
    unchanged = list(copies) == list(ways) and all(copies[n].equal(ways[n]) for n in ways)
    if result is ... or unchanged:
        return result
    return Verdict("your code changes the pictures that it was given; only read them")


def at(number: int, much: float) -> Tensor:
    """Make a change of one number of one picture alone."""
    change = torch.zeros(40, 1, 2, 2).double()
    change.view(-1)[number] = much
    return change


which_preparation = Exercise(
    answer="""
def which_preparation(model, ways, right):
    with torch.no_grad():
        for name, images in ways.items():
            if (model(images) - right).abs().max() < 1e-5:
                return name
    return None
""",
    why="The largest difference decides, since one logit that is off is one too many. Asking for "
    "1e-5 and not for the closest way lets the answer be `None`: then none of these ways is the "
    "publisher's.",
    trials=[
        published("three ways, right from the second on", 0.5, 0, 2e-6, agrees=1),
        published("two ways whose logits are all too small", -0.5, -1e-3, agrees=None),
        published("two ways, the first right but for rounding", 2e-6, 0.5, agrees=0),
        published("one way, one number of its first picture is off", at(1, 4e-4), agrees=None),
        published("one way, one number of its last picture is far off", at(159, 9), agrees=None),
        published("one way, with errors up and down", at(90, 0.04) + at(95, -0.04), agrees=None),
        published("one way, with large logits, each off by 0.0001", 1e-4, agrees=None, level=1e3),
    ],
    wrong="""
torch.allclose also allows a share of the logit itself, rtol, so large ones may be off by more: say
rtol=0
    (model(images) - right).abs().max() < 1e-5 => torch.allclose(model(images), right, atol=1e-5)
one logit that is close is not enough: all must be, so ask .all() or for the largest difference
    .abs().max() => .abs().min()
it goes on after a way that agrees, and gives the last one: return the first at once
    in ways.items() => in reversed(ways.items())
it gives the closest way, whether it agrees or not; where none agrees to 1e-5, give None
    if (model… => if name == min(ways, key=lambda n: (model(ways[n]) - right).abs().max()):
the mean of the differences hides a logit that is off; take the largest: .abs().max()
    .abs().max() => .abs().mean()
differences below zero are not seen: take .abs() before the largest
    .abs().max() => .max()
differences cancel in a sum; take the largest: .abs().max()
    .abs().max() => .sum().abs() ‖ .mean().abs() ‖ .mean() ‖ .sum()
the answers are compared, not the logits: a small mistake changes no answer
    if (model… => if (model(images).argmax(dim=1) == right.argmax(dim=1)).all():
shares are compared, and softmax does not see what is added to all logits; compare the logits
    (model(images) - right).abs().max() => (model(images).softmax(1) - right.softmax(1)).abs().max()
equal to the last bit is too much to ask: another processor rounds differently; allow 1e-5
    < 1e-5 => == 0
only the first picture is compared
    (model(images) - right) => (model(images[:1]) - right[:1])
it gives a way that does not agree: < 1e-5, not >
    < 1e-5 => > 1e-5
only the first way is looked at: `return None` stands inside the loop; move it below the loop
    in ways.items() => in list(ways.items())[:1]
""",
)


def embedding(what: str, width: int, channels: int, side: int) -> Trial:
    """Make a trial of templates of this number and size, which are to absorb mean and std."""
    mean, std = torch.linspace(0.2, 0.6, channels), torch.linspace(0.2, 0.35, channels)
    weight, bias = drawn(width, channels, side, side, seed=0), drawn(width, seed=1)
    return call(what, weight, bias, mean, std)


absorb = Exercise(
    answer="""
def absorb(weight, bias, mean, std):
    scaled = weight / std[:, None, None]
    shift = (scaled * mean[:, None, None]).sum(dim=(1, 2, 3))
    return scaled, bias - shift
""",
    why="A template's answer to (x − mean) / std is the sum of weight · x / std, less the sum of "
    "weight · mean / std. The first is another template, the second a number that does not depend "
    "on the picture, so it goes into the bias.",
    slips={
        "index 1 is out of bounds": "three channels are built in, and here there is one: take "
        "their number from the weight",
    },
    trials=[
        embedding("4 templates of 3×3 pixels, 3 channels", 4, 3, 3),
        embedding("5 templates of 2×2 pixels, 1 channel", 5, 1, 2),
    ],
    wrong="""
the weight is multiplied by std; the pictures were divided by it, so divide the weight, too
    weight / std[:, None, None] => weight * std[:, None, None]
the weight is as it was; the pictures were divided by std, so divide each channel's weights by it
    return scaled => return weight
the bias is as it was; taking off the mean changed each answer by a number, which goes into the bias
    bias - shift => bias
the bias has the wrong sign: the mean was taken off, so its part of the answer is taken off, too
    bias - shift => bias + shift ‖ shift - bias
the weight is missing in what goes into the bias: each template has its own sum, that of weight ·
mean / std
    shift =… => shift = (mean / std).sum()
what goes into the bias is divided by std twice: weight · mean / std is the new weight · mean
    scaled * mean[:, None, None] => scaled * (mean / std)[:, None, None]
the mean's part is not divided by std: the pictures had the mean taken off first, then were divided
    (scaled * mean => (weight * mean
what goes into the bias is the sum over channels and pixels of weight · mean / std, one number a
template: .sum(dim=(1, 2, 3)), not the mean
    .sum(dim=(1, 2, 3)) => .mean(dim=(1, 2, 3)) ‖ .mean(dim=(2, 3)).sum(dim=1)
in a (D, C, P, P) weight, std of shape (C,) meets the last axis, the columns of a patch; give it the
shape (C, 1, 1): std[:, None, None]
    weight / std[:, None, None] => weight / std
mean of shape (C,) meets the last axis, the columns of a patch; give it the shape (C, 1, 1):
mean[:, None, None]
    scaled * mean[:, None, None] => scaled * mean
the sum runs over the pixels alone, and a template answers to all channels together:
.sum(dim=(1, 2, 3))
    shift =… => shift = (scaled * mean[:, None, None]).sum(dim=(2, 3))[:, 0]
the bias is divided by std as well; only the weight meets the picture
    bias - shift => bias / std.mean() - shift
one mean of all channels is taken; each channel has its own
    scaled * mean[:, None, None] => scaled * mean.mean()
one std of all channels is taken; each channel has its own
    weight / std[:, None, None] => weight / std.mean()
this is the way back: it makes a model for normalised pictures of one that takes 0…1
    scaled =… => scaled = weight ;; return… => return weight * std[:, None, None], bias + shift
it is written for three channels; give mean and std the shape (C, 1, 1) for any C
    std[:, None, None] => std.view(3, 1, 1)
    weight / std[:, None, None] => torch.stack([weight[:, c] / std[c] for c in range(3)], dim=1)
two tensors are asked for, weight and bias
    return scaled, bias - shift => return scaled
""",
)
