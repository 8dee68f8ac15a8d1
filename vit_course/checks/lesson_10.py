"""The build cell and exercises of lesson 10."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
from einops import rearrange
from torch import Tensor, nn

from .compare import Parts, Verdict
from .engine import Check
from .exercise import Exercise
from .trials import Trial, call, then

# rename -------------------------------------------------------------------------------------------

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
    """A trial with a file of this kind of numbers: is the result right, all of it float32, and no
    tensor of the file's, and is the file as it was?"""

    def run(answer: Callable) -> Any:
        generator = torch.Generator().manual_seed(0)
        before = {n: torch.randn(s, generator=generator).to(kind) for n, s in SHAPES.items()}
        given = {name: tensor.clone() for name, tensor in before.items()}
        theirs = {tensor.untyped_storage().data_ptr() for tensor in given.values()}
        held, asked = dict(given), dict(NAMES)
        result = answer(given, asked)
        if result is None or result is ...:
            return result
        if not isinstance(result, dict) or not all(isinstance(t, Tensor) for t in result.values()):
            return Parts(result, Verdict(""), Verdict(""), Verdict(""))
        kinds = {t.dtype for t in result.values()} - {torch.float32}
        same = [n for n, t in result.items() if t.untyped_storage().data_ptr() in theirs]
        kept = list(given) == list(before) and asked == NAMES
        kept = kept and all(given[n] is t and t.equal(before[n]) for n, t in held.items())
        return Parts(
            result,
            Verdict(f"it holds {kinds.pop()}; all must be torch.float32" if kinds else ""),
            Verdict(f"`{same[0]}` is the tensor of the file itself, and no copy" if same else ""),
            Verdict("" if kept else "your code changes the dictionary that it was given"),
        )

    return Trial(what, run)


rename = Exercise(
    answer="""
def rename(tensors, names):
    weights = {}
    for ours, theirs in names.items():
        parts = [tensors[name] for name in theirs]
        weights[ours] = torch.cat(parts).float()  # cat makes a copy, of one tensor too
    return weights
""",
    trials=[
        renaming("a file in float32", torch.float32),
        renaming("a file in float16", torch.float16),
    ],
    wrong="""
the keys are their names; it is the other way round: weights[ours] = …, one entry for each of our
names
    weights[ours] = torch.cat(parts).float() => weights |= zip(theirs, parts)
    weights[ours] = torch.cat(parts).float() =>
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
only the first of three names is looked up: keys and values are lost
    torch.cat(parts) => parts[0]
    torch.cat(parts) => parts[0].clone()
only the last of three names is kept: queries and keys are lost
    torch.cat(parts) => parts[-1]
    torch.cat(parts) => parts[-1].clone()
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
    torch.cat(parts) => sum(parts)
    torch.cat(parts) => torch.stack(parts).sum(dim=0)
the weights are transposed; both libraries keep a Linear's weight as (out, in), so nothing is turned
    [tensors[name] => [tensors[name].mT if tensors[name].ndim == 2 else tensors[name]
what you give and what the file holds share their numbers: who changes one changes the other. Make
a copy where one of theirs makes one of ours, too (torch.cat of one makes one, .clone() as well;
.float() makes none where the numbers are float32 already)
    torch.cat(parts) => (torch.cat(parts) if len(parts) > 1 else parts[0])
the result keeps the file's kind of number; make it float32: .float()
    .float() =>
the result is not float32; a model's parameters are: .float()
    .float() => .double()
    .float() => .half()
    .float() => .bfloat16()
your code changes the dictionary that it was given; make a new one, and only read theirs
    tensors[name] => tensors.pop(name)
    weights = {} => weights = tensors
    weights = {} => weights = {} ⏎ tensors |= {name: t.float() for name, t in tensors.items()}
    return weights => names.clear() ⏎ return weights
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


# torchvision_name ---------------------------------------------------------------------------------

PIECES = {
    "ln_1": "norm1",
    "self_attention.in_proj_": "attn.qkv.",
    "self_attention.out_proj": "attn.proj",
    "ln_2": "norm2",
    "mlp.0": "mlp.fc1",
    "mlp.3": "mlp.fc2",
}
ENDS = {
    "class_token": "tokens.cls_token",
    "encoder.pos_embedding": "tokens.pos_embed",
    "conv_proj": "patch_embed.proj",
    "encoder.ln": "norm",
    "heads.head": "head",
}
FULL = {"self_attention.in_proj_": "self_attention.qkv.",
        "self_attention.out_proj": "self_attention.proj"}  # fmt: skip


def translated(
    name: str,
    pieces: Mapping[str, str] = PIECES,
    ends: Mapping[str, str] = ENDS,
    digits: str = r"\d+",
    start: str = "blocks.",
) -> str:
    """Torchvision's name as ours; the options make the known mistakes."""
    found = re.match(rf"encoder\.layers\.encoder_layer_({digits})\d*\.(.*)", name)
    table, front, rest = ends, "", name
    if found:
        table, front, rest = pieces, f"{start}{found[1]}.", found[2]
    for theirs, ours in table.items():
        if rest.startswith(theirs):
            return front + ours + rest.removeprefix(theirs)
    return front + rest


def wrongly(**changes: Any) -> Callable:
    """A wrong answer: the tables changed in some places."""
    tables: dict = {"pieces": PIECES, "ends": ENDS}
    options: Any = {
        key: {**tables[key], **change} if key in tables else change
        for key, change in changes.items()
    }
    return lambda name: translated(name, **options)


def without_kind(name: str) -> str:
    return re.sub(r"\.(weight|bias)$", "", translated(name))


def translations(what: str, *given: str) -> Trial:
    """The names one by one; a text each."""

    def run(answer):
        results = [answer(name) for name in given]
        return next((r for r in results if r is None or r is ...), results)

    return Trial(what, run)


BLOCK = "encoder.layers.encoder_layer_"
torchvision_name = Check(
    reference=translated,
    trials=[
        translations("a Linear of block 0", f"{BLOCK}0.self_attention.out_proj.weight"),
        translations(
            "the names inside block 3",
            f"{BLOCK}3.ln_1.weight",
            f"{BLOCK}3.ln_2.bias",
            f"{BLOCK}3.mlp.0.weight",
            f"{BLOCK}3.mlp.3.bias",
            f"{BLOCK}3.self_attention.in_proj_weight",
            f"{BLOCK}3.self_attention.in_proj_bias",
        ),
        translations("block 11", f"{BLOCK}11.ln_1.bias", f"{BLOCK}11.mlp.3.weight"),
        translations(
            "the names outside the blocks",
            "class_token",
            "encoder.pos_embedding",
            "conv_proj.weight",
            "encoder.ln.bias",
            "heads.head.weight",
        ),
    ],
    mistakes={
        "in_proj_weight has an underscore where we have a dot: attn.qkv.weight": wrongly(
            pieces={"self_attention.in_proj_": "attn.qkv_"}
        ),
        "mlp.3 is the second Linear, fc2, and mlp.0 the first, fc1: in torchvision 1 and 2 are the "
        "GELU and a dropout": wrongly(pieces={"mlp.0": "mlp.fc0", "mlp.3": "mlp.fc3"}),
        "mlp.3 is the second Linear, fc2, and mlp.0 the first, fc1; "
        "both stand as they were": wrongly(pieces={"mlp.0": "mlp.0", "mlp.3": "mlp.3"}),
        "fc1 and fc2 are swapped: mlp.0 comes first, so it is fc1": wrongly(
            pieces={"mlp.0": "mlp.fc2", "mlp.3": "mlp.fc1"}
        ),
        "the norms of a block are called norm1 and norm2 here, not norm_1 and norm_2": wrongly(
            pieces={"ln_1": "norm_1", "ln_2": "norm_2"}
        ),
        "a block's number may have two digits: here block 11 became blocks.1": wrongly(
            digits=r"\d"
        ),
        "each block has its own number; here block 0 and block 11 became blocks.3": lambda name: (
            re.sub(r"blocks\.\d+", "blocks.3", translated(name))
        ),
        "cls and positions live in tokens: tokens.cls_token, tokens.pos_embed": wrongly(
            ends={"class_token": "cls_token", "encoder.pos_embedding": "pos_embed"}
        ),
        "self_attention is attn here: attn.qkv and attn.proj": wrongly(pieces=FULL),
        "the projection after the heads is called attn.proj here, not attn.out_proj": wrongly(
            pieces={"self_attention.out_proj": "attn.out_proj"}
        ),
        "encoder.layers.encoder_layer_3. as a whole becomes blocks.3.; a part of it is left": (
            wrongly(start="blocks.encoder_layer_"),
            wrongly(start="encoder.blocks."),
        ),
        "the names outside the blocks come back as they were; they have "
        "lines in the table too": lambda name: translated(name) if "layers" in name else name,
        "the end of the name, weight or bias, is lost; it stays as it is": without_kind,
        "encoder.ln is the last norm: ours is called norm, with nothing before it": (
            wrongly(ends={"encoder.ln": "encoder.norm"}),
            wrongly(ends={"encoder.ln": "encoder.ln"}),
        ),
        "our head is called head, without heads before it": wrongly(
            ends={"heads.head": "heads.head"}
        ),
    },
)


# google_qkv ---------------------------------------------------------------------------------------


def turned(kernel: Tensor) -> Tensor:
    return rearrange(kernel, "i h d -> (h d) i")


def below(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Google's kernels (D, h, d) as our qkv weight (3·D, D)."""
    return torch.cat([turned(kernel) for kernel in (query, key, value)])


def by_pattern(pattern: str):
    """A wrong answer: the kernels stacked and rearranged in another order."""
    return lambda q, k, v: rearrange(torch.stack([q, k, v]), pattern)


def kernels(width: int, heads: int) -> Trial:
    drawn = torch.randn(3, width, heads, width // heads, generator=torch.Generator().manual_seed(0))
    return call(f"kernels of width {width} with {heads} heads", *drawn)


google_qkv = Check(
    reference=below,
    trials=[kernels(6, 2), kernels(12, 3), kernels(20, 4)],
    mistakes={
        "this is (D, 3·D): Google multiplies x @ kernel, inputs first; torch's Linear keeps "
        "outputs first, so transpose": by_pattern("q i h d -> i (q h d)"),
        "the shape is right by a reshape that mixes inputs and outputs: first move the input axis "
        "to the end (permute or rearrange), then flatten the other two": lambda q, k, v: torch.cat(
            [kernel.reshape(len(q), len(q)) for kernel in (q, k, v)]
        ),
        "the rows stand head by head, each with its q, k and v: ours are (qkv h d), all queries "
        "first": by_pattern("q i h d -> (h q d) i"),
        "this is the order (h d qkv): it loads without an error, "
        "and the logits are wrong": by_pattern("q i h d -> (h d q) i"),
        "within q, k and v the rows are (d h); the head counts slowest: (h d)": by_pattern(
            "q i h d -> (q d h) i"
        ),
        "keys stand before queries; the order is query, key, value": lambda q, k, v: below(k, q, v),
        "the values stand first; the order is query, key, value": lambda q, k, v: below(v, k, q),
        "the three have an axis of their own, (3, D, D); torch.cat stands them below one another: "
        "(3·D, D)": by_pattern("q i h d -> q (h d) i"),
        "these are three tensors; torch.cat stands them below one another as one: "
        "(3·D, D)": lambda q, k, v: (turned(q), turned(k), turned(v)),
        "the heads still have an axis of their own; a Linear's weight has two axes, and h and d "
        "make its rows together": by_pattern("q i h d -> (q h) d i"),
        "the three stand side by side; stand them below one another: torch.cat(…), along the first "
        "axis": by_pattern("q i h d -> (h d) (q i)"),
        "the queries are divided by √d; leave the scale to the attention, "
        "and change no number": lambda q, k, v: below(q / q.shape[-1] ** 0.5, k, v),
    },
)


# audit_weights ------------------------------------------------------------------------------------


def audited(weights: dict[str, Tensor], model: nn.Module) -> tuple[list, list, list]:
    """Names that are missing, left over, and of a wrong shape, each list sorted."""
    own = model.state_dict()
    wrong = [n for n in own if n in weights and own[n].shape != weights[n].shape]
    return sorted(own.keys() - weights), sorted(weights.keys() - own), sorted(wrong)


def as_lists(result):
    """Three collections of names as a text each, so that their order does not count."""
    if isinstance(result, (tuple, list)) and len(result) == 3 and ... not in result:
        good = all(isinstance(part, (list, tuple, set, frozenset)) for part in result)
        return [", ".join(sorted(map(str, part))) for part in result] if good else result
    return result


def audit(what: str, **changes: Tensor | None) -> Trial:
    """A checkpoint of a small model with tensors changed, or taken out by None."""

    def run(answer):
        model = nn.ModuleDict(
            {"fc1": nn.Linear(3, 4), "norm": nn.BatchNorm1d(4), "fc2": nn.Linear(4, 2)}
        )
        with torch.no_grad():
            stored = {name: tensor.clone() + 1 for name, tensor in model.state_dict().items()}
        stored |= {n.replace("__", "."): t for n, t in changes.items()}
        weights = {n: t for n, t in stored.items() if t is not None}
        given = dict(weights)
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        model["norm"].eval()
        modes = [part.training for part in model.modules()]
        result = as_lists(answer(weights, model))
        if list(weights) != list(given):
            return Verdict("your code changes the dictionary that it was given; only read it")
        if [part.training for part in model.modules()] != modes:
            return Verdict("your code changes the model's mode, as eval() does; it must only look")
        if any(not tensor.equal(before[name]) for name, tensor in model.state_dict().items()):
            return Verdict("your code loads the weights into the model; it must only look")
        return result

    return Trial(what, run)


def compared_by(differ: Callable) -> Callable:
    """A wrong answer: what is in both is compared in another way than by its shape."""

    def wrong(weights, model):
        own = model.state_dict()
        both = sorted(n for n in own if n in weights and differ(own[n], weights[n]))
        return *audited(weights, model)[:2], both

    return wrong


def listing(change: Callable) -> Callable:
    """A wrong answer: the three right lists, put through `change`."""
    return then(audited, lambda lists: change(*lists))


def learned_alone(weights, model):
    own = dict(model.named_parameters())
    wrong = [n for n in own if n in weights and own[n].shape != weights[n].shape]
    return sorted(own.keys() - weights), sorted(weights.keys() - own), sorted(wrong)


def empties(weights, model):
    result = audited(weights, model)
    weights.clear()
    return result


def loads(weights, model):
    result = audited(weights, model)
    fitting = {name: t for name, t in weights.items() if name not in result[2]}
    model.load_state_dict(fitting, strict=False)
    return result


audit_weights = Check(
    reference=audited,
    trials=[
        audit("a checkpoint that fits"),
        audit("a checkpoint without fc2.bias", fc2__bias=None),
        audit("a checkpoint with a pooler", pooler__weight=torch.zeros(2, 2)),
        audit("a bias of 5 where 4 are expected", fc1__bias=torch.zeros(5)),
        audit("a weight that was not transposed", fc1__weight=torch.zeros(3, 4)),
        audit("a checkpoint without the running mean", norm__running_mean=None),
        audit(
            "several faults at once",
            fc1__bias=None,
            fc1__b=torch.zeros(4),
            fc2__bias=None,
            norm__bias=torch.zeros(1, 4),
        ),
    ],
    mistakes={
        "missing and left over are swapped: missing is what the model asks for and the checkpoint "
        "has not": listing(lambda missing, extra, wrong: (extra, missing, wrong)),
        "the wrong shape comes last: missing, left over, wrong shape": listing(
            lambda missing, extra, wrong: (missing, wrong, extra)
        ),
        "a transposed weight has as many numbers and another shape: "
        "compare the shapes": compared_by(lambda a, b: a.numel() != b.numel()),
        "a bias of 5 has as many axes as one of 4: compare the whole shapes": compared_by(
            lambda a, b: a.ndim != b.ndim
        ),
        "the numbers are compared; they are about to be loaded, so of course they differ: compare "
        "the shapes": compared_by(lambda a, b: not a.equal(b)),
        "shapes are never compared: the third list stays empty": compared_by(lambda a, b: False),
        "a tensor that is missing has no shape at all: it belongs in the first list only": listing(
            lambda missing, extra, wrong: (missing, extra, [*wrong, *missing])
        ),
        "you look at what the model asks for only: what is left over in the checkpoint goes "
        "unseen, as with load_state_dict(strict=False)": listing(
            lambda missing, extra, wrong: (missing, [], wrong)
        ),
        "you go through the parameters only; a model's buffers, such as BatchNorm's running mean, "
        "are in model.state_dict() too": learned_alone,
        "your code changes the dictionary that it was given; only read it": empties,
        "your code loads the weights into the model; it must only look, "
        "and the model stay as it is": loads,
        "these are counts; give the names, not how many there are": then(
            audited, lambda lists: tuple(map(len, lists))
        ),
    },
)
