"""Build cell and exercises of lesson 02."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional as F

from vit_steps.patches import patchify, unpatchify
from vit_steps.vit import ViT, ViTConfig

from .compare import Verdict, kind_of
from .engine import Check, outcome
from .exercise import Exercise
from .trials import Trial, call, decided, module, numbered, then, untouched

FINE = Verdict("as it should")


# The build cell: TokenEmbedding ------------------------------------------------------------------


def starting_numbers(answer: Callable) -> Any:
    """Whether the parameters start as those of the stub do, from the same seed."""
    torch.manual_seed(1)
    made = answer(5, 64)
    if not isinstance(made, nn.Module):
        return made
    torch.manual_seed(1)
    given = dict(TokenEmbedding.reference(5, 64).named_parameters())
    own = [p.detach() for name, p in made.named_parameters() if name in given]
    if all(torch.equal(p, q) for p, q in zip(own, given.values(), strict=False)):
        return FINE
    if any(p.std() > 0.5 for p in own):
        return Verdict("they start too large")
    return Verdict("they are zeros" if any((p == 0).all() for p in own) else "they are others")


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
    trials=[
        module("one image of one patch, width 3", (1, 3), numbered(1, 1, 3).sin()),
        module("2 images of 3 patches, width 5", (3, 5), numbered(2, 3, 5).sin()),
        Trial("the numbers that the two parameters start from", starting_numbers),
    ],
    wrong="""
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
    dim=1 => dim=2
    dim=1 => dim=2 ;; expand(patches.shape[0], -1, -1) => expand_as(patches)
    dim=1 => dim=2 ;; expand(patches.shape[0], -1, -1) => expand(-1, patches.shape[1], -1)
cls became one token for each patch; expand the batch axis alone, to (B, 1, D)
    expand(patches.shape[0], -1, -1) => expand_as(patches)
the token in front is zero: use self.cls_token, make no new one
    cls, patches => torch.zeros_like(cls), patches
the token in front is drawn anew in each call: use self.cls_token, make no new one
    cls, patches => torch.randn_like(cls), patches
    cls, patches => torch.randn_like(cls) * 0.02, patches
the numbers are right, but no gradient reaches cls_token, so it would never learn; use it as it is,
without .detach() or .data
    self.cls_token.expand => self.cls_token.detach().expand
the numbers are right, but no gradient reaches pos_embed, so it would never learn; use it as it is,
without .detach() or .data
    x + self.pos_embed => x + self.pos_embed.detach()
the numbers are right, but no gradient reaches cls_token and pos_embed, so they would never learn;
use them as they are, without .detach(), .data or no_grad
    return x + self.pos_embed => return (x + self.pos_embed).detach()
only the cls token is returned: give all tokens, (B, N, D)
    return x + self.pos_embed => return (x + self.pos_embed)[:, 0]
`patches` is changed: += writes into the tensor that came in; make a new one (patches + …)
    cls, patches => cls, patches.add_(1)
pos_embed has a row for each patch and no row for cls: there are num_patches + 1 positions, as
`__init__` was given
    num_patches + 1 => num_patches
    num_patches + 1 => num_patches ;; cls, patches => cls, patches + self.pos_embed ;;
        return x + self.pos_embed => return x
the parameters start too large (std 1?): they would drown the patches
(section 7); leave `__init__` as it is given
    (self.pos_embed, std=0.2) => (self.pos_embed)
the parameters start from zeros; leave `__init__` as it is given, so that your model starts as the
course's does
    nn.init.trunc_normal_(self.pos_embed, std=0.2) => nn.init.zeros_(self.pos_embed)
the parameters start from other numbers; leave `__init__` as it is given (first cls_token, then
pos_embed), so that your model starts as the course's does
    (self.pos_embed, std=0.2) => (self.pos_embed, std=0.02)
every token got position 0, that of cls; add all of pos_embed
    x + self.pos_embed => x + self.pos_embed[:, :1]
""",
)


# Exercise 1: positions for a crop ----------------------------------------------------------------


def join(*parts: Tensor) -> Tensor:
    return torch.cat(parts, dim=1)


Grid = tuple[int, int]


def window(pos_embed: Tensor, grid: Grid, top: int, left: int, new_grid: Grid) -> Tensor:
    (rows, cols), (new_rows, new_cols) = grid, new_grid
    picture = pos_embed[:, 1:].unflatten(1, (rows, cols))
    cut = picture[:, top : top + new_rows, left : left + new_cols]
    return torch.cat([pos_embed[:, :1], cut.flatten(1, 2)], dim=1)


def straight_on(pos_embed: Tensor, grid: Grid, top: int, left: int, new_grid: Grid) -> Tensor:
    """The wanted number of positions, read on from the first without minding the rows' ends."""
    first = 1 + top * grid[1] + left
    patches = pos_embed[:, first : first + new_grid[0] * new_grid[1]]
    return torch.cat([pos_embed[:, :1], patches], dim=1)


def in_rows_of_their_number(
    pos_embed: Tensor, grid: Grid, top: int, left: int, new_grid: Grid
) -> Tensor:
    """Counts as if a row of the grid had as many patches as there are rows."""
    rows, cols = torch.arange(top, top + new_grid[0]), torch.arange(left, left + new_grid[1])
    patches = pos_embed[:, (1 + rows[:, None] * grid[0] + cols).flatten()]
    return torch.cat([pos_embed[:, :1], patches], dim=1)


def first_for_cls(positions: Tensor) -> Tensor:
    return join(positions[:, 1:2], positions[:, 1:])


def squeezed(pos_embed: Tensor, grid: Grid, top: int, left: int, new_grid: Grid) -> Tensor:
    """The whole grid, resized to the window's."""
    picture = pos_embed[:, 1:].mT.unflatten(2, grid)
    picture = F.interpolate(picture, size=new_grid, mode="bicubic", antialias=True)
    return torch.cat([pos_embed[:, :1], picture.flatten(2).mT], dim=1)


def by_columns(*given: Any) -> Tensor:
    cls, patches = window(*given).split([1, given[4][0] * given[4][1]], dim=1)
    return torch.cat([cls, rearrange(patches, "b (r c) d -> b (c r) d", r=given[4][0])], dim=1)


crop_positions = Check(
    reference=window,
    trials=[
        call("a 4×6 grid, rows 1–2 and columns 2–4", numbered(1, 25, 2), (4, 6), 1, 2, (2, 3)),
        call("a 9×7 grid, rows 2–5 and columns 1–3", numbered(1, 64, 5), (9, 7), 2, 1, (4, 3)),
    ],
    mistakes={
        "the cls position is missing: keep pos_embed[:, :1] and put it in front again": then(
            window, lambda positions: positions[:, 1:]
        ),
        "every position comes one early: token 0 is cls, so the patch in row r, column c is token "
        "1 + r·cols + c": lambda x, *rest: window(join(x[:, :1], x[:, :-1]), *rest),
        "these positions were read straight on, past the ends of the rows: a crop is a window of "
        "the grid, so give the patches back their rows and columns first": straight_on,
        "rows and columns of the old grid are swapped: "
        "grid is (rows, cols)": lambda x, grid, *rest: window(x, grid[::-1], *rest),
        "a row of the grid has grid[1] patches, not grid[0]: the patch in row r, column c is token "
        "1 + r · grid[1] + c": in_rows_of_their_number,
        "`top` and `left` are swapped: top is a row, left "
        "a column": lambda x, grid, top, left, new: window(x, grid, left, top, new),
        "the window starts one row and one column too early: `top` and `left` "
        "count from 0": lambda x, grid, top, left, new: window(x, grid, top - 1, left - 1, new),
        "the window is right, but its positions run column by column; flatten (row col), as "
        "patchify does": by_columns,
        "this squeezes the whole grid into the new one; a crop leaves things where they are, so "
        "take its positions as they are": squeezed,
        "the slices end too early: the window ends at row top + new rows and column left + new "
        "columns": lambda x, grid, top, left, new: window(
            x, grid, top, left, (max(new[0] - top, 0), max(new[1] - left, 0))
        ),
        "this is the window in the upper left corner of the grid; start at row `top` and column "
        "`left`": lambda x, grid, top, left, new: window(x, grid, 0, 0, new),
        "the window is one row and one column too large: a slice leaves its end "
        "out": lambda x, grid, top, left, new: window(x, grid, top, left, (new[0] + 1, new[1] + 1)),
        "the window is right, but it is still a grid, and cls is missing: flatten its rows and "
        "columns to one axis, and put pos_embed[:, :1] "
        "in front": lambda *given: window(*given)[:, 1:].unflatten(1, given[4]),
        "the position in front is that of the window's first patch; cls keeps its own, "
        "pos_embed[:, :1]": then(window, first_for_cls),
        "the cls position stands last; it comes first, as in pos_embed": then(
            window, lambda x: x.roll(-1, dims=1)
        ),
    },
)


# Exercise 2: faster hands ------------------------------------------------------------------------

NEAR, REST, QUIET, LOUD = 0.9, 0.4, 0.1, 0.3


def sines(rows: int, cols: int, width: int, base: float = 5.0, std: float | None = 0.2) -> Tensor:
    """Sine-cosine positions (rows·cols, width): half for the row, half for the column."""
    halves = []
    for count in (rows, cols):
        speeds = base ** -(torch.arange(width // 4) / (width // 4))
        angles = torch.arange(count)[:, None] * speeds
        halves.append(torch.cat([angles.sin(), angles.cos()], dim=1))
    by_row, by_col = halves[0].repeat_interleave(cols, dim=0), halves[1].repeat(rows, 1)
    table = torch.cat([by_row, by_col], dim=1)
    return table if std is None else table * std / table.std()


@dataclass(frozen=True)
class Likeness:
    """How alike positions are, on average over all pairs of places, and how large they are."""

    across: float  # of left and right neighbours
    down: float  # of neighbours above and below
    rest: float  # of all places that are no direct neighbours
    largest: float  # of any two places
    std: float

    def __str__(self) -> str:
        return (
            f"neighbours in a row {self.across:.3f} alike, in a column {self.down:.3f}; "
            f"all others {self.rest:.3f}; standard deviation {self.std:.3f}"
        )


def fits(table: Any, rows: int, cols: int, width: int) -> bool:
    """Whether that is a table of finite numbers with one position for each patch."""
    sized = isinstance(table, Tensor) and table.shape == (rows * cols, width)
    return sized and bool(table.isfinite().all())


def likeness(table: Tensor, rows: int, cols: int) -> Likeness:
    unit = F.normalize(table.detach().double(), dim=-1)
    grid = unit.reshape(rows, cols, -1)
    across = (grid[:, 1:] * grid[:, :-1]).sum(dim=-1).mean()
    down = (grid[1:] * grid[:-1]).sum(dim=-1).mean()
    places = torch.cartesian_prod(torch.arange(rows), torch.arange(cols))
    steps = (places[:, None] - places).abs().sum(dim=-1)  # from each place to each
    alike = unit @ unit.mT
    numbers = across, down, alike[steps > 1].mean(), alike[steps > 0].max(), table.double().std()
    return Likeness(*(number.item() for number in numbers))


def finding(table: Any, rows: int, cols: int, width: int) -> Verdict:
    """What is wrong with positions made for this grid, in words without numbers."""
    if not fits(table, rows, cols, width):
        if isinstance(table, Tensor) and table.shape == (rows * cols, width):
            return Verdict("it holds numbers that are not finite")
        return Verdict(f"it gives {kind_of(table)}, expected the shape ({rows * cols}, {width})")
    found = likeness(table, rows, cols)
    if found.largest > 0.999:
        return Verdict("two places have the same position")
    if min(found.across, found.down) < NEAR:
        one = abs(found.across - found.down) > 0.15
        which = "along one side of the grid, neighbours" if one else "neighbours"
        slower = "let the hands turn more slowly, and subtract no mean from them"
        return Verdict(f"{which} are less than {NEAR} alike on average: {slower}")
    if found.rest > REST:
        return Verdict(f"places that are no neighbours are more than {REST} alike")
    if found.std > LOUD or found.std < QUIET:
        return Verdict(f"the positions are too {'loud' if found.std > LOUD else 'quiet'}")
    return FINE


GRIDS = ((14, 14, 192), (10, 14, 64))


def on_grid(rows: int, cols: int, width: int) -> Trial:
    def run(answer: Callable) -> Any:
        table = answer(rows, cols, width)
        return table if table is ... or table is None else finding(table, rows, cols, width)

    return Trial(f"a grid of {rows}×{cols}, width {width}", run)


class Measured(Check):
    """A check that also prints what it measured, as long as the bar is not reached."""

    def __call__(self, attempt: Callable) -> None:
        super().__call__(attempt)
        if not callable(attempt) or self.judge(attempt) == "right":
            return
        for sizes in GRIDS:
            table = outcome(Trial("", partial(call_with, sizes)), attempt, self.slips)
            if fits(table, *sizes):
                print(f"{sizes[0]}×{sizes[1]}: {likeness(table, *sizes[:2])}")


def call_with(sizes: tuple[int, int, int], answer: Callable) -> Any:
    return answer(*sizes)


own_positions = Measured(
    reference=sines,
    trials=[on_grid(*sizes) for sizes in GRIDS],
    mistakes={
        f"places that are no neighbours are still too alike, more than {REST} on average: too "
        "many hands hardly turn; let the slow ones turn faster": lambda *sizes: sines(
            *sizes, base=10_000
        ),
        f"neighbours are not alike enough, less than {NEAR} on average: hands that turn far "
        "from place to place, or random numbers, make neighbours strangers": lambda *sizes: sines(
            *sizes, base=1.2
        ),
        "left and right neighbours are far more alike than those above and below (or the other way "
        "round): a running number knows nothing of rows; give half of the width to the row and "
        "half to the column": lambda rows, cols, width: sines(1, rows * cols, width),
        "some places have the same position: each must tell its row and its "
        "column": lambda rows, cols, width: sines(rows, cols, width)[:1].expand(rows * cols, -1),
        "rows and columns are swapped: it is right on a square grid alone; the patches are "
        "numbered row by row, so patch r·cols + c stands in row r, "
        "column c": lambda rows, cols, width: sines(cols, rows, width),
        f"alike and unlike as they should be, but too loud: bring the standard deviation to "
        f"0.2 ({QUIET} to {LOUD}), as section 7 asks": lambda *sizes: sines(*sizes, std=None),
        f"alike and unlike as they should be, but too quiet: bring the standard deviation to "
        f"0.2 ({QUIET} to {LOUD})": lambda *sizes: sines(*sizes, std=0.001),
        "give the patches' positions alone, (rows·cols, width): "
        "cls has no place on the grid": lambda rows, cols, width: sines(1, 1 + rows * cols, width),
        "there is an axis too many in front: give (rows·cols, width), "
        "without a batch": lambda *sizes: sines(*sizes)[None],
        "this is still a grid: flatten rows and columns to one axis, (rows·cols, "
        "width)": lambda rows, cols, width: sines(rows, cols, width).unflatten(0, (rows, cols)),
        "the sizes are fixed in your code: use `rows`, "
        "`cols` and `width`": lambda rows, cols, width: sines(14, 14, 768),
    },
)


# Exercise 3: does it know where its patches stand? -----------------------------------------------

PATCH_SIZE = 4
SIZE = (16, 24)  # 4×6 patches, so that a square cannot hide swapped sides

Read = Callable[[Tensor], Tensor]


def mean_of_pixels() -> Read:
    return lambda images: images.mean(dim=(2, 3))


def sum_of_patches() -> Read:
    """Minds where a pixel stands in its patch, and not where the patch stands."""
    weight = torch.arange(3.0 * PATCH_SIZE**2).double()
    return lambda images: (patchify(images, PATCH_SIZE) @ weight).sum(dim=1, keepdim=True)


def nearly_blind(change: float) -> Read:
    """Gives 24 numbers near 0 that change by about so much when the patches move."""
    weights = change / 14 * torch.randn(3 * SIZE[0] * SIZE[1], 24).double()
    return lambda images: images.mean(dim=(2, 3)).repeat(1, 8) - 0.5 + images.flatten(1) @ weights


def small_vit(set_positions: Callable[[Tensor], Tensor]) -> Read:
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


def two_alike(positions: Tensor) -> Tensor:
    """Positions that differ, but for those of the first two patches."""
    positions[:, 2] = positions[:, 1]
    return positions


def judged(what: str, make: Callable[[], Read], expected: bool) -> Trial:
    """A trial of the learner's test on one model."""

    def run(answer: Callable) -> Any:
        read = make()
        pixels = torch.randint(0, 256, (1, 3, *SIZE)).double() / 256
        notices = "your test says True (blind), though this model notices the shuffle"
        does_not = "your test says False, though this model does not notice the shuffle"
        verdict = untouched(answer, read, pixels, PATCH_SIZE)
        return decided(verdict, expected, does_not if expected else notices)

    return Trial(what, run)


def alike(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, rtol=0, atol=1e-5)


def blind_by(
    same: Callable = alike, order: Callable = torch.randperm, turned: bool = False
) -> Callable:
    """A test of order-blindness; the options make the known mistakes.

    Args:
        same: compares what the model gives for the two images.
        order: makes the patches' new places of their number.
        turned: whether height and width are swapped.
    """

    def test(read: Read, images: Tensor, patch_size: int) -> bool:
        patches = patchify(images, patch_size)
        height, width = images.shape[2:]
        sides = (width, height) if turned else (height, width)
        moved = unpatchify(patches[:, order(patches.shape[1])], patch_size, sides)
        return same(read(images), read(moved))

    return test


blind = blind_by()


is_order_blind = Check(
    reference=blind,
    trials=[
        judged("a model that gives the mean of all pixels", mean_of_pixels, True),
        judged("a model that adds up what it finds in each patch", sum_of_patches, True),
        judged("a ViT whose positions are all zero", partial(small_vit, torch.zeros_like), True),
        judged("a model that rounds at 0.000001", partial(nearly_blind, 1e-6), True),
        judged("a ViT with positions", partial(small_vit, torch.clone), False),
        judged("a model whose numbers change by 0.00005", partial(nearly_blind, 2e-5), False),
        judged("a ViT with positions, two of them equal", partial(small_vit, two_alike), False),
    ],
    mistakes={
        "upside down: True means that the model does not notice the shuffle": then(
            blind, lambda yes: not yes
        ),
        "it says False whatever the model: compare what `read` gives for the two images, not the "
        "images; and move whole patches, not single pixels or numbers": lambda *given: False,
        "it says True whatever the model: does the shuffled image reach `read`, and is each number "
        "compared (not the shapes, not the mean)?": lambda *given: True,
        "the pixels inside the patches move too; move whole patches (patchify, another order, "
        "unpatchify)": lambda read, images, patch_size: blind(read, images, 1),
        "it asks for equal numbers to the last bit; another order of adding rounds differently, so "
        "allow 1e-5 (torch.allclose)": blind_by(torch.equal),
        "it allows too little: numbers up to 1e-5 apart count as the same, and by itself "
        "torch.allclose allows 1e-8 where they are near 0; "
        "say rtol=0, atol=1e-5": blind_by(torch.allclose),
        "it allows too much: a model may notice the shuffle only a little; 1e-5 is what rounding "
        "needs": blind_by(partial(torch.allclose, rtol=0, atol=0.1)),
        "it gives a True or False for each number; give one for all of them (.all())": blind_by(
            partial(torch.isclose, rtol=0, atol=1e-5)
        ),
        "it moves too few patches (the first two alone?), and misses a model that tells others "
        "apart; shuffle all of them": blind_by(order=lambda count: [1, 0, *range(2, count)]),
        "height and width are swapped: unpatchify wants (height, width), which are image.shape[2] "
        "and image.shape[3]": blind_by(turned=True),
    },
)
