"""Exercises of lesson 04."""

from collections.abc import Callable

import torch
from torch import Tensor

from ..attention import scaled_dot_product_attention
from .engine import Check, Mistake, Trial, call


def weigh(scale: Callable = lambda q, k: q.shape[-1] ** 0.5, dim: int = -1, after: bool = False):
    """A function of (q, k) that gives weights, scaled by `scale(q, k)`, before softmax or after."""

    def weights(q: Tensor, k: Tensor) -> Tensor:
        raw = q @ k.transpose(-2, -1)
        if after:
            return raw.softmax(dim=dim) / scale(q, k)
        return (raw / scale(q, k)).softmax(dim=dim)

    return weights


def nothing(q: Tensor, k: Tensor) -> float:
    return 1.0


def head_width(q: Tensor, k: Tensor) -> float:
    return q.shape[-1]


def model_root(q: Tensor, k: Tensor) -> float:
    """√D, D = h·d."""
    return (q.shape[1] * q.shape[-1]) ** 0.5


def tokens_root(q: Tensor, k: Tensor) -> float:
    return k.shape[-2] ** 0.5


def drawn(*shape: int) -> Tensor:
    """Numbers of variance 1, the same each time."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


scaled_weights = Check(
    reference=weigh(),
    trials=[
        call("one head, 3 queries and 3 keys of width 4", drawn(1, 1, 3, 4), drawn(1, 1, 3, 4) + 1),
        call(
            "2 images, 3 heads, 5 queries and 7 keys of width 8",
            drawn(2, 3, 5, 8),
            drawn(2, 3, 7, 8),
        ),
    ],
    mistakes=[
        Mistake(
            "the scale is missing: divide the scores by √d before the softmax",
            weigh(nothing),
        ),
        Mistake(
            "the scale comes after the softmax, so rows do not sum to 1; divide the scores, then "
            "take the softmax",
            weigh(after=True),
        ),
        Mistake(
            "the scale is √D, the width of the whole token; what was multiplied is one head: √d, "
            "d = q.shape[-1]",
            weigh(model_root),
        ),
        Mistake(
            "the scale comes after the softmax, and it is √D; divide the scores by √d, then take "
            "the softmax",
            weigh(model_root, after=True),
        ),
        Mistake(
            "the scores are divided by d; take the root: their typical size is √d",
            weigh(head_width),
        ),
        Mistake(
            "the scale counts the keys, √N; it is the width of a head that makes scores large: √d",
            weigh(tokens_root),
        ),
        Mistake(
            "softmax runs over the queries (dim=-2), so the columns sum to 1; each query shares "
            "out its own weight: dim=-1",
            weigh(dim=-2),
        ),
        Mistake(
            "these are the scores; the softmax that makes them weights is missing",
            lambda q, k: q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5,
        ),
    ],
)


def patch_distances(rows: int, cols: int) -> tuple[Tensor, Tensor]:
    """How many rows, and how many columns, any two patches are apart, each (rows·cols, same)."""
    patch = torch.arange(rows * cols)
    row, col = patch // cols, patch % cols
    return (row[:, None] - row).abs(), (col[:, None] - col).abs()


def with_cls(near: Tensor, seen: bool = True, sees: bool = True) -> Tensor:
    """A mask of patches with the cls token put in front."""
    mask = torch.ones(len(near) + 1, len(near) + 1, dtype=torch.bool)
    mask[1:, 0], mask[0, 1:] = seen, sees
    mask[1:, 1:] = near
    return mask


def square(rows: int, cols: int, radius: int) -> Tensor:
    """The patches at most `radius` rows and at most `radius` columns away."""
    down, across = patch_distances(rows, cols)
    return (down <= radius) & (across <= radius)


def diamond(rows: int, cols: int, radius: int) -> Tensor:
    down, across = patch_distances(rows, cols)
    return down + across <= radius


def along_the_row(rows: int, cols: int, radius: int) -> Tensor:
    patch = torch.arange(rows * cols)
    return (patch[:, None] - patch).abs() <= radius


def open_square(rows: int, cols: int, radius: int) -> Tensor:
    down, across = patch_distances(rows, cols)
    return (down < radius) & (across < radius)


def cross(rows: int, cols: int, radius: int) -> Tensor:
    down, across = patch_distances(rows, cols)
    return (down <= radius) | (across <= radius)


def grid_trial(rows: int, cols: int, radius: int) -> Trial:
    """A grid whose mask must come as booleans: 1 and 0 would compare as equal to them."""

    def run(answer: Callable):
        mask = answer(rows, cols, radius)
        return "not boolean" if isinstance(mask, Tensor) and mask.dtype != torch.bool else mask

    return Trial(f"a grid of {rows}×{cols} patches, radius {radius}", run)


local_mask = Check(
    reference=lambda *sizes: with_cls(square(*sizes)),
    trials=[grid_trial(3, 3, 1), grid_trial(4, 6, 1), grid_trial(5, 4, 2), grid_trial(3, 3, 0)],
    mistakes=[
        Mistake(
            "the mask holds numbers; give booleans, True where a query may look (.bool())",
            lambda *sizes: with_cls(square(*sizes)).float(),
        ),
        Mistake(
            "it is the wrong way round: True where a query may look, not where it may not",
            lambda *sizes: ~with_cls(square(*sizes)),
        ),
        Mistake(
            "the cls token is missing: the mask is (N, N) with N = 1 + rows * cols, cls first",
            square,
        ),
        Mistake(
            "the patches cannot look at the cls token: column 0 must be True",
            lambda *sizes: with_cls(square(*sizes), seen=False),
        ),
        Mistake(
            "the cls token cannot look at the patches: row 0 must be True",
            lambda *sizes: with_cls(square(*sizes), sees=False),
        ),
        Mistake(
            "the cls token and the patches do not see each other: row 0 and column 0 must be True",
            lambda *sizes: with_cls(square(*sizes), seen=False, sees=False),
        ),
        Mistake(
            "it adds the distance in rows to that in columns, which gives a diamond; each of them "
            "may be up to radius on its own, which gives a square",
            lambda *sizes: with_cls(diamond(*sizes)),
        ),
        Mistake(
            "it measures along the list of patches: the end of a row and the start of the next are "
            "neighbours there, and the patch below is not; use rows and columns",
            lambda *sizes: with_cls(along_the_row(*sizes)),
        ),
        Mistake(
            "a patch exactly radius away must be in sight: <= radius, not < radius",
            lambda *sizes: with_cls(open_square(*sizes)),
        ),
        Mistake(
            "near in rows or in columns is a cross over the whole grid; both must be near: use &",
            lambda *sizes: with_cls(cross(*sizes)),
        ),
        Mistake(
            "rows and columns are mixed up: patch i stands in row i // cols, column i % cols",
            lambda rows, cols, radius: with_cls(square(cols, rows, radius)),
        ),
    ],
)


def attend_by(weights: Callable) -> Callable:
    """An `attend(q, k, v)` that mixes by `weights(q, k)`."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        shares = weights(q, k)
        return shares @ v, shares

    return attend


def divided_first(q: Tensor, k: Tensor) -> Tensor:
    """Right weights, rounded otherwise: queries and keys each take half of the scale."""
    root = q.shape[-1] ** 0.25
    powers = ((q / root) @ (k / root).transpose(-2, -1)).exp()
    return powers / powers.sum(dim=-1, keepdim=True)


def compare_weights(attend: Callable) -> str:
    """A right find_fault."""
    q, k, v = drawn(3, 2, 4, 5, 8)
    _, weights = attend(q, k, v)
    if not torch.allclose(weights.sum(dim=-1), torch.ones(2, 4, 5)):
        return AFTER
    return RIGHT if torch.allclose(weights, weigh()(q, k), atol=1e-5) else SCALE


def suspect(what: str, attend: Callable) -> Trial:
    return Trial(what, lambda answer: answer(attend))


def verdict(*answers: str) -> Callable:
    """A wrong find_fault: for each of the suspects, in their order, what it says."""
    known = {id(attend): answer for (_, attend), answer in zip(SUSPECTS, answers, strict=True)}
    return lambda attend: known[id(attend)]


RIGHT, AFTER, SCALE = "right", "scaled after softmax", "wrong scale"
SUSPECTS = (
    ("a right function", scaled_dot_product_attention),
    ("another right function, which rounds otherwise", attend_by(divided_first)),
    ("softmax(qk) / √D", attend_by(weigh(model_root, after=True))),
    ("softmax(qk) / √d", attend_by(weigh(after=True))),
    ("softmax(qk / √D)", attend_by(weigh(model_root))),
    ("softmax(qk), no scale", attend_by(weigh(nothing))),
    ("softmax(qk / d)", attend_by(weigh(head_width))),
)
TOO_STRICT = (
    "it accuses a right function: floats are rounded, so a sum may be 0.9999999; compare with "
    "torch.allclose(a, b, atol=1e-5), not =="
)

find_fault = Check(
    reference=compare_weights,
    trials=[suspect(what, attend) for what, attend in SUSPECTS],
    mistakes=[
        Mistake(
            "it calls a wrong scale right: row sums are 1 at any scale; compare the weights with "
            "softmax(qk / √d), on random q and k (zeros or ones give the same at any scale)",
            verdict(RIGHT, RIGHT, AFTER, AFTER, RIGHT, RIGHT, RIGHT),
        ),
        Mistake(
            "it does not see √D: with one head, D = d; try q, k, v with several heads",
            verdict(RIGHT, RIGHT, AFTER, AFTER, RIGHT, SCALE, SCALE),
        ),
        Mistake(
            "it knows √D only: no scale at all is a wrong scale too; compare with √d instead of "
            "looking for √D",
            verdict(RIGHT, RIGHT, AFTER, AFTER, SCALE, RIGHT, RIGHT),
        ),
        Mistake(
            "it calls a scale after the softmax a wrong scale: look at the row sums first",
            verdict(RIGHT, RIGHT, SCALE, SCALE, SCALE, SCALE, SCALE),
        ),
        Mistake(
            "the two faults are mixed up: rows that do not sum to 1 tell of a scale after softmax",
            verdict(RIGHT, RIGHT, SCALE, SCALE, AFTER, AFTER, AFTER),
        ),
        Mistake(
            "it misses a scale after the softmax: its rows sum to 1/√D or 1/√d, not to 1",
            verdict(RIGHT, RIGHT, RIGHT, RIGHT, SCALE, SCALE, SCALE),
        ),
        Mistake(
            "it finds every function right, whatever it does",
            verdict(*[RIGHT] * 7),
        ),
        Mistake(TOO_STRICT, verdict(RIGHT, SCALE, AFTER, AFTER, SCALE, SCALE, SCALE)),
        Mistake(TOO_STRICT, verdict(*[AFTER] * 7)),
    ],
)
