"""Build cells and exercises of lesson 02."""

from collections.abc import Callable
from copy import deepcopy
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from vit_course.canvases import scattered
from vit_steps import weights
from vit_steps.patches import patchify, unpatchify
from vit_steps.vit import ViT, ViTConfig

from .compare import Parts, Verdict, kind_of
from .exercise import Exercise
from .trials import Outside, Trial, decided, left_alone, module, numbered, untouched


def begun(answer: Callable) -> Any:
    """Give the parameters of a new module, by their names."""
    torch.manual_seed(1)
    layer = answer(5, 64)
    if not isinstance(layer, nn.Module):
        return layer
    return {name: p.detach() for name, p in layer.named_parameters()}


def starting_numbers(parameters: Any) -> Any:
    """Say whether the parameters start as those of the stub do, from the same seed."""
    if not isinstance(parameters, dict):
        return parameters
    right = begun(TokenEmbedding.reference)
    comparable = [p for name, p in parameters.items() if name in right]
    if all(torch.equal(p, q) for p, q in zip(comparable, right.values(), strict=False)):
        return Verdict("as it should")
    if any(p.std() > 0.5 for p in comparable):
        return Verdict("they start too large")
    zeros = any((p == 0).all() for p in comparable)
    return Verdict("they are zeros" if zeros else "they are others")


TokenEmbedding = Exercise(
    answer="""
class TokenEmbedding(nn.Module):
    def __init__(self, num_patches, embed_dim):
        super().__init__()
        self.cls_token = nn.Parameter(torch.empty(1, 1, embed_dim))
        self.pos_embed = nn.Parameter(torch.empty(1, num_patches + 1, embed_dim))
        nn.init.trunc_normal_(self.cls_token, std=0.02)
        nn.init.trunc_normal_(self.pos_embed, std=0.2)

    def forward(self, patches):  # (B, n, D)
        cls = self.cls_token.expand(patches.shape[0], -1, -1)  # (B, 1, D)
        x = torch.cat([cls, patches], dim=1)  # (B, N, D)
        return x + self.pos_embed
""",
    slips={
        "number of sizes provided": "`expand` wants a size for each axis, and −1 leaves one as it "
        "is: expand(…, -1, -1)",
    },
    does="A cls token now leads the row, and every token knows its place.",
    why="`expand` gives every image the one cls without copying it. cls joins before the positions "
    "are added, so row 0 of `pos_embed` is its own.",
    trials=[
        module("one image of one patch, width 3", (1, 3), numbered(1, 1, 3).sin()),
        module("2 images of 3 patches, width 5", (3, 5), numbered(2, 3, 5).sin()),
        Trial("the numbers that the two parameters start from", begun, say=starting_numbers),
    ],
    wrong="""
you add cls_token to every token; add pos_embed, which has a row for each
    x + self.pos_embed => x + self.cls_token
the cls token stands last; put it first, so that token 0 is cls whatever the number of patches
    cls, patches => patches, cls
the positions are missing from the result: return the joined tokens + self.pos_embed
    return x + self.pos_embed => return x
cls got no position: it has one too, row 0 of pos_embed; join cls and patches first, then add
pos_embed to all of them
    cls, patches => cls, patches + self.pos_embed[:, 1:] ;; x + self.pos_embed => x
each patch got the position of the token before it, and cls none: row 0 of pos_embed is for cls;
join cls and patches first, then add pos_embed to all of them
    cls, patches => cls, patches + self.pos_embed[:, :-1] ;; x + self.pos_embed => x
each patch got the position of the token before it, and cls the last one: row 0 of pos_embed is for
cls
    x + self.pos_embed => x + self.pos_embed.roll(1, dims=1)
the patches got their positions twice; add pos_embed once, after cls and patches are joined
    cls, patches => cls, patches + self.pos_embed[:, 1:]
the tokens are multiplied by √D, as in the first Transformer; here they are taken as they come
    return x + => return x * math.sqrt(x.shape[-1]) +
    cls, patches => cls, patches * math.sqrt(patches.shape[-1])
positions are added, not multiplied
    x + self.pos_embed => x * self.pos_embed
cls was added to every patch; it must stand in front of them as a token of its own (torch.cat)
    torch.cat([cls, patches], dim=1) => cls + patches ;; + self.pos_embed => + self.pos_embed[:, 1:]
patch 0 is gone: cls is an extra token, so there is one token more than patches
    cls, patches => cls, patches[:, 1:] ;; + self.pos_embed => + self.pos_embed[:, :-1]
there is no cls token in the result: put it in front of the patches (torch.cat)
    torch.cat([cls, patches], dim=1) => patches ;; + self.pos_embed => + self.pos_embed[:, 1:]
cls is not there once for each image: torch.cat does not broadcast, so expand cls_token to
(B, 1, D), where B is patches.shape[0]
    .expand(patches.shape[0], -1, -1) =>
    patches.shape[0] => 64
torch.cat joined along the batch, its default; the axis of the tokens is dim=1
    dim=1 => dim=0
torch.cat joined along the width; the axis of the tokens is dim=1
    dim=1 => dim=2 ‖ dim=2 ;; expand… => expand_as(patches)
cls became one token for each patch; expand the batch axis alone, to (B, 1, D)
    expand(patches.shape[0], -1, -1) => expand_as(patches)
the token in front is zero: use self.cls_token, make no new one
    cls, patches => torch.zeros_like(cls), patches
the token in front is drawn anew in each call: use self.cls_token, make no new one
    cls, patches => torch.randn_like(cls), patches ‖ torch.randn_like(cls) * 0.02, patches
the numbers are right, but no gradient reaches cls_token, so it would never learn; use it as it is,
without .detach() or .data
    self.cls_token.expand => self.cls_token.detach().expand
the numbers are right, but no gradient reaches pos_embed, so it would never learn; use it as it is,
without .detach() or .data
    x + self.pos_embed => x + self.pos_embed.detach()
the numbers are right, but no gradient reaches cls_token and pos_embed, so they would never learn;
use them as they are, without .detach(), .data or no_grad
    return x + self.pos_embed => return (x + self.pos_embed).detach()
    self.cls_token.expand => self.cls_token.detach().expand ;;
        x + self.pos_embed => x + self.pos_embed.detach()
only the cls token is returned: give all tokens, (B, N, D)
    return x + self.pos_embed => return (x + self.pos_embed)[:, 0]
`patches` is changed: += writes into the tensor that came in; make a new one (patches + …)
    cls, patches => cls, patches.add_(1)
pos_embed has a row for each patch and no row for cls: there are num_patches + 1 positions, as
`__init__` was given
    num_patches + 1 => num_patches ‖ num_patches ;; + self.pos_embed => ;;
        cls, patches => cls, patches + self.pos_embed
the parameters start too large (std 1?): they would drown the patches (section 7); leave `__init__`
as it is given
    (self.pos_embed, std=0.2) => (self.pos_embed)
the parameters start from zeros; leave `__init__` as it is given, so that your model starts as the
course's does
    nn.init.trunc_normal_(self.pos_embed, std=0.2) => nn.init.zeros_(self.pos_embed)
the parameters start from other numbers; leave `__init__` as it is given (first cls_token, then
pos_embed), so that your model starts as the course's does
    (self.pos_embed, std=0.2) => (self.pos_embed, std=0.02)
every token got position 0, that of cls; add all of pos_embed
    x + self.pos_embed => x + self.pos_embed[:, :1]
the positions went to cls alone, which made a row of it for each of them: join cls and patches
first, then add pos_embed to all tokens
    self.cls_token.expand(patches.shape[0], -1, -1) =>
        (self.cls_token + self.pos_embed).expand(patches.shape[0], -1, -1) ;;
        x + self.pos_embed => x
the positions are joined on, and not added: every token stays D wide, and none is new but cls
    x + self.pos_embed => torch.cat([x, self.pos_embed.expand_as(x)], dim=-1) ‖
        torch.cat([x, self.pos_embed.expand_as(x)], dim=1)
""",
)


POSITIONS = "tokens.pos_embed"


def place_removed(answer: Callable) -> Any:
    """Give the positions of what the answer makes of a small model, and what else it changed."""
    model = ViT(ViTConfig((8, 12), 4, 1, 2, embed_dim=8, depth=1, num_heads=2))
    model.requires_grad_(False).tokens.pos_embed.copy_(numbered(1, 7, 8).sin() + 0.1)
    before = {name: p.clone() for name, p in model.named_parameters()}
    changed = answer(model)
    if changed is ... or changed is None:
        return changed
    if not isinstance(changed, nn.Module):
        return Verdict(f"it gives {kind_of(changed)}; give the changed model itself")
    now = dict(changed.named_parameters())
    unchanged = all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    same = [n for n, p in before.items() if n in now and torch.equal(now[n], p)]
    others = [n for n in before if n not in (POSITIONS, *same)]
    return Parts(
        now[POSITIONS],
        Verdict("" if unchanged else "the model that came in has changed too"),
        Verdict(f"`{others[0]}` is another too; change the positions alone" if others else ""),
    )


without_place = Exercise(
    uses={"deepcopy": deepcopy},
    answer="""
def without_place(model):
    changed = deepcopy(model)
    positions = changed.tokens.pos_embed  # (1, N, D), cls first
    positions[:, 1:] = positions[:, 1:].mean(dim=1, keepdim=True)
    return changed
""",
    why="`keepdim=True` leaves (1, 1, D), one vector, which is written into all rows but row 0. "
    "`deepcopy` copies the numbers too; `copy.copy` would share them with the model that came in.",
    trials=[Trial("a ViT with 2×3 patches", place_removed)],
    slips={
        "cannot assign .* as parameter": "a plain tensor cannot take the place of a parameter; "
        "write into the one that is there: positions[:, 1:] = …",
    },
    wrong="""
the model that came in has changed too: `deepcopy(model)` makes a copy with numbers of its own
    deepcopy(model) => model
cls's position went into the mean: take it over the patches' rows alone, positions[:, 1:]
    positions[:, 1:].mean => positions.mean
cls lost its own position: write into the patches' rows alone, positions[:, 1:] = …
    positions[:, 1:] = positions[:, 1:].mean => positions[:] = positions[:, 1:].mean
cls is treated as a patch: it went into the mean, and it got the mean; leave row 0 out of both
    positions[:, 1:] = positions[:, 1:].mean => positions[:] = positions.mean
the patches' positions are zero, so what they had in common is gone too; give each the mean
    positions[:, 1:].mean(dim=1, keepdim=True) => 0
all positions are zero, and cls lost its own; give each patch the mean, and leave row 0 alone
    positions[:, 1:] = positions[:, 1:].mean(dim=1, keepdim=True) => positions.zero_()
the mean runs over the width, so each patch keeps a number of its own, which says where it is; it
runs over the patches, dim=1
    dim=1 => dim=2
this is the mean of all numbers, one number; the mean position is a vector: mean over the patches
alone, dim=1
    dim=1, keepdim=True =>
the positions are added up, and not divided by their number: .mean, not .sum
    .mean( => .sum(
every patch got the position of place 0; it is blind to place too, but it is not the mean
    .mean(dim=1, keepdim=True) => [:, :1]
the positions of the patches were only moved, so each patch still says a place; give all the mean
    .mean(dim=1, keepdim=True) => .flip(1) ‖ .roll(1, 1)
nothing has changed in what you return: either the model itself is returned; or `positions = …` gave
a name to a new tensor, where positions[:, 1:] = … writes into the copy; or the mean ran over dim=0,
which has one entry
    return changed => return model
cls's row is gone: the positions stay (1, N, D), and row 0 stays as it was
    return… => changed.tokens.pos_embed = nn.Parameter(positions[:, 1:], False) ⏎ return changed
""",
)


BAR = 0.5


@cache
def canvases() -> tuple[ViT, Any, Any]:
    """Give the trained reader, canvases to choose by, and others, which it has not seen."""
    reader = weights.load("scattered").model.requires_grad_(False)
    return reader, scattered(200, seed=7), scattered(1000, seed=3, held_out=True)


def to_choose_by() -> tuple[ViT, Tensor, Tensor]:
    """Give copies of the reader, and of images and labels to choose by."""
    reader, data, _ = canvases()
    return deepcopy(reader), data.images.clone(), data.labels.clone()


def read_with_one(vector: Any, *_: Any) -> Any:
    """Say whether the reader passes the bar where all patches have this position."""
    reader, _, unseen = canvases()
    if vector is ... or vector is None:
        return vector
    if not isinstance(vector, Tensor):
        return Verdict(f"it gives {kind_of(vector)}; give one vector, a tensor (D,)")
    model = deepcopy(reader)
    width = model.tokens.pos_embed.shape[-1]
    if vector.numel() != width or not vector.isfinite().all():
        return Verdict(f"it gives {kind_of(vector)}; give one vector of {width} numbers, (D,)")
    model.tokens.pos_embed[:, 1:] = vector.detach().flatten()
    share = (model(unseen.images).argmax(dim=-1) == unseen.labels).float().mean().item()
    if share >= BAR:
        return Verdict("above")
    rows = (vector.flatten() == reader.tokens.pos_embed[0]).all(dim=1).nonzero().flatten().tolist()
    which = f"this is row {rows[0]} of the positions: " if rows else ""
    return Verdict(f"{which}{share:.0%} are read; the bar is {BAR:.0%}")


shared_position = Exercise(
    uses={"deepcopy": deepcopy},
    answer="""
def shared_position(model, images, labels):
    best, most = None, -1
    for position in model.tokens.pos_embed[0, 1:]:  # (D,), of each place in turn
        changed = deepcopy(model)
        changed.tokens.pos_embed[:, 1:] = position
        right = (changed(images).argmax(dim=-1) == labels).sum()
        if right > most:
            best, most = position, right
    return best
""",
    why="The 16 learned positions are candidates at hand. The best belongs to a place in the "
    "middle of the canvas; the mean of the middle four passes too. The place is chosen on other "
    "canvases than it is measured on, so that the choice does not flatter it.",
    trials=[
        Trial(
            "1,000 canvases that the reader has not seen", left_alone, to_choose_by, read_with_one
        )
    ],
    wrong="""
this is a mean of all places, as in `without_place`, and 42% are read; which vectors else are at
hand?
    return… => return model.tokens.pos_embed[0].mean(dim=0)
a vector of zeros: fewer are read than with the mean
    return… => return torch.zeros(64)
this is cls's own position, which no patch ever had; the patches' are in the rows below it
    return… => return model.tokens.pos_embed[0, 0]
this is the position of place 0, a corner, with which fewest are read; try every place, and keep the
best
    if right > most: => if most < 0:
this is the place with the largest loss, or with which fewest are read: keep the best
    right = (changed(images).argmax(dim=-1) == labels).sum() =>
        right = F.cross_entropy(changed(images), labels)
this is the row before the best one: row 0 is cls, so the position of place i is row i + 1
    for position in => for before, position in zip(model.tokens.pos_embed[0], ;;
        model.tokens.pos_embed[0, 1:]: => model.tokens.pos_embed[0, 1:]): ;;
        best, most = position, right => best, most = before, right
this is the position of the last place, whatever was read with it: keep the best
    if right > most: => if True:
the model that came in has changed: try vectors on a copy, deepcopy(model)
    deepcopy(model) => model
these are vectors for all places, so a patch still knows its own; give one vector, (D,)
    return best => return model.tokens.pos_embed[0, 1:]
this says how many were read, or which place it was; give the vector itself, (D,)
    return best => return most
""",
)


PATCH_SIZE, SIZE = 4, (16, 24)  # 4×6 patches, so that a square cannot hide swapped sides

Read = Callable[[Tensor], Tensor]


def changing_by(change: float, how_many: int, image: Tensor) -> Read:
    """Make a model of 24 numbers, of which so many change by so much when patches move."""
    patches, numbers = patchify(image, PATCH_SIZE), torch.arange(24.0).double()

    def read(images: Tensor) -> Tensor:
        moved = (patchify(images, PATCH_SIZE) != patches).any()
        return (0.001 * numbers + change * moved * (numbers < how_many))[None]

    return read


def small_vit(set_positions: Callable[[Tensor], Tensor], _: Tensor) -> Read:
    """Make a ViT with these positions, which gives its cls token."""
    config = ViTConfig(SIZE, PATCH_SIZE, num_classes=2, embed_dim=16, depth=2, num_heads=2)
    model = ViT(config).double().eval()
    for p in model.blocks.parameters():
        p.data += 0.6 * torch.randn_like(p)  # so that tokens listen to each other
    model.tokens.pos_embed.data = set_positions(torch.randn(1, 25, 16).double())

    @torch.no_grad()
    def read(images: Tensor) -> Tensor:
        tokens: Any = model.features(images)
        return tokens[:, 0]

    return read


def judged(what: str, make: Callable[[Tensor], Read], expected: bool) -> Trial:
    """Make a trial of the learner's test on one model."""
    notices = "your test says True (blind), though this model notices the shuffle"
    does_not = "your test says False, though this model does not notice the shuffle"

    def inputs() -> list:
        image = torch.randint(0, 256, (1, 3, *SIZE)).double() / 256
        return [Outside(make(image)), image, PATCH_SIZE]

    def say(verdict: Any, *_: Any) -> Any:
        return decided(verdict, expected, does_not if expected else notices)

    return Trial(what, untouched, inputs, say)


THREE_ALIKE = partial(small_vit, lambda positions: positions[:, [0, 1, 1, *range(3, 24), 1]])
ONE = "a model of whose 24 numbers one"

is_order_blind = Exercise(
    uses={"unpatchify": unpatchify},
    answer="""
def is_order_blind(read, image, patch_size):
    patches = patchify(image, patch_size)  # (1, n, P·P·C)
    order = torch.randperm(patches.shape[1])
    mosaic = unpatchify(patches[:, order], patch_size, tuple(image.shape[2:]))
    return torch.allclose(read(image), read(mosaic), rtol=0, atol=1e-5)
""",
    why="With a dozen patches or more, a random order moves nearly all of them. `torch.allclose` "
    "allows rtol · |b| + atol; with rtol=0 the bound is 1e-5 for every number.",
    slips={
        r"ValueError: patches is": "the patches do not fill the picture: are all of them in your "
        "order (the picture need not be square: there are patches.shape[1]), and is the size "
        "(image.shape[2], image.shape[3])?",
    },
    trials=[
        judged(
            "a model that gives the mean of all pixels", lambda _: lambda x: x.mean((2, 3)), True
        ),
        judged("a ViT whose positions are all zero", partial(small_vit, torch.zeros_like), True),
        judged("a model whose numbers change by 0.000008", partial(changing_by, 8e-6, 24), True),
        judged("a ViT with positions, three of them equal", THREE_ALIKE, False),
        judged(f"{ONE} grows by 0.000013", partial(changing_by, 1.3e-5, 1), False),
        judged(f"{ONE} shrinks by 0.000013", partial(changing_by, -1.3e-5, 1), False),
    ],
    wrong="""
it is the wrong way round: True means that the model does not notice the shuffle
    torch.allclose… => bool((read(image) - read(mosaic)).abs().max() > 1e-5) ‖
        bool(((read(image) - read(mosaic)).abs() > 1e-5).all())
it says False whatever the model: compare what `read` gives for the two images, not the images
    torch.allclose(read(image), read(mosaic), rtol=0, atol=1e-5) => torch.allclose(image, mosaic)
it says True whatever the model: does the shuffled image reach `read`, and is each number compared
(not the shapes, not the mean, not only which is largest)?
    torch.allclose… => read(image).shape == read(mosaic).shape
the pixels inside the patches move too; move whole patches (patchify, another order, unpatchify)
    unpatchify… => image.flatten(2)[:, :, torch.randperm(image[0, 0].numel())].view_as(image)
single numbers move, from colour to colour too; move whole patches (patchify, another order,
unpatchify)
    unpatchify… => image.flatten()[torch.randperm(image.numel())].view_as(image)
it asks for equal numbers to the last bit; another order of adding rounds differently, so allow 1e-5
(torch.allclose)
    torch.allclose… => torch.equal(read(image), read(mosaic))
it allows too little: each number may be up to 1e-5 apart, and by itself torch.allclose allows 1e-8
where numbers are near 0; say rtol=0, atol=1e-5
    , rtol=0, atol=1e-5 =>
it allows too much: 1e-5 is what rounding needs, and no number may differ by more; a mean, or which
number is the largest, hides one that changes among many
    atol=1e-5 => atol=0.1
    torch.allclose… => bool((read(image).argmax(-1) == read(mosaic).argmax(-1)).all())
    torch.allclose… => bool((read(image) - read(mosaic)).abs().mean() < 1e-5)
it looks at differences with their sign, so a number that changes the other way passes: take .abs()
    torch.allclose… => bool((read(image) - read(mosaic)).max() < 1e-5) ‖
        bool((read(mosaic) - read(image)).max() < 1e-5)
it gives a True or False for each number; give one for all of them (.all())
    torch.allclose… => torch.isclose(read(image), read(mosaic), rtol=0, atol=1e-5)
it moves too few patches (two alone?), and misses a model that tells others apart; shuffle
all of them
    torch.randperm… => [1, 0, *range(2, patches.shape[1])] ‖
        [*range(patches.shape[1])][-1:] + [*range(1, patches.shape[1] - 1), 0]
height and width are swapped: unpatchify wants (height, width), which are image.shape[2] and
image.shape[3]
    tuple(image.shape[2:]) => (image.shape[3], image.shape[2])
""",
)
