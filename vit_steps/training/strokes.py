"""Lesson 07: digits as people draw them with a pen, each by a hand that never was before."""

from collections.abc import Callable
from math import pi

import torch
from torch import Tensor
from torch.nn import functional as F

PEN = 1.15  # a pixel whose middle lies so far from a stroke gets no ink, as on the live page
STEPS = 4  # straight pieces of a curve between two points
WIDTH = 0.65  # of a digit that is 1 high, before it is bent
SIZES = 5.5, 14.0  # height of a digit with its ink, in pixels

# The ways in which people write each digit: column and row of the points through which the pen
# goes, 0 to 9 from the left and from the top; at | it is lifted.
HANDS = {
    0: "40 11 04 06 18 49 79 96 94 71 50, 40 71 94 96 79 49 18 06 04 11 40, "
    "61 30 03 07 29 69 96 93 60 30 12, 50 11 04 07 29 59 | 50 81 94 97 79 59, 00 09 99 90 00, "
    "40 05 49 95 40, 13 06 18 59 96 93 70 30 12, 50 11 04 07 39 79 96 92 60 31 43, "
    "20 05 29 69 95 91 60 30",
    1: "40 49, 80 09, 40 44 38 49, 32 50 59, 13 50 59, 05 50 59, 07 50 59, 13 50 59 | 19 99, "
    "14 50 59 29 89, 20 50 59 | 09 99, 50 59 | 50 14, 30 49 | 30 04",
    2: "02 20 60 82 74 37 09 99, 02 21 50 82 75 28 09 06 27 69 98, 01 80 09 99, 00 90 09 99, "
    "12 30 70 83 57 09 38 99, 02 30 81 74 09 | 09 99, 33 12 30 70 93 66 09 59 98, "
    "03 10 60 93 86 48 09 99, 00 60 82 65 09 99, 02 40 82 65 18 08 37 68 97, "
    "02 40 82 55 09 | 09 59 98",
    3: "01 40 72 64 34 65 87 69 19 08, 00 80 44 75 87 59 08, 00 80 34 74 97 69 08, "
    "00 70 34 76 39, 00 80 24 85 58 09, 01 40 72 44 77 49 08, 02 40 71 54 24 35 75 87 49 08, "
    "01 40 82 54 24 | 44 85 87 49 08, 00 80 84 24 84 89 09, 12 10 60 82 44 85 98 59 09 07",
    4: "20 05 95 | 60 69, 20 06 96 | 63 69, 00 05 85 | 70 79, 00 05 65 | 60 69, 69 60 06 96, "
    "79 70 05 95, 60 05 95 | 61 69, 10 15 75 70 79, 00 04 25 64 70 79, 30 05 84 | 73 59, "
    "40 06 95 | 64 59, 50 06 95 | 70 59",
    5: "10 04 44 76 78 49 08 | 10 80, 80 10 04 53 86 78 39 08, 90 10 14 84 89 09, "
    "80 30 12 44 76 78 49 09, 10 04 53 86 58 09 | 00 80, 80 10 14 64 76 59 09, "
    "90 20 14 43 93 97 59 07, 20 14 54 86 59 08 | 40 90, 90 40 13 54 86 69 18, "
    "80 20 | 20 14 54 87 59 08",
    6: "60 23 06 18 49 78 76 45 06, 81 50 13 06 28 59 87 75 44 06, 30 05 08 39 79 77 55 06, "
    "10 08 49 87 65 06, 20 09 79 75 05, 70 32 05 18 59 87 65 36 47, 90 44 07 29 68 66 35 17, "
    "60 23 07 | 15 55 87 49 07, 70 22 06 29 79 86 54 26, 82 60 22 06 39 88 75 35 07, "
    "60 22 05 08 39 79 86 64 25",
    7: "00 90 39, 00 90 39 | 24 84, 02 00 90 49, 00 90 65 49, 01 20 61 90 54 39, "
    "02 00 90 39 | 14 74, 00 80 89, 02 10 91 54 49, 00 90 | 90 39, 03 10 80 66 59 | 35 85, "
    "00 80 56 39 | 05 85",
    8: "81 40 02 34 76 68 39 07 25 63 81, 40 12 44 72 40 | 44 07 49 87 44, "
    "44 12 40 82 44 07 49 97 44, 80 00 99 09 80, 11 50 92 64 26 38 69 97 75 43 11, "
    "50 12 33 66 88 49 08 26 63 82 50, 50 32 44 62 50 | 44 06 29 69 96 44, "
    "80 30 02 34 76 69 29 07 25 72, 82 60 20 03 34 75 78 59 19 06 34 72",
    9: "80 30 02 25 64 81 79, 50 11 14 45 83 71 50 | 81 79, 81 40 02 24 64 82 86 59 08, "
    "80 00 04 84 80 89, 82 50 12 25 64 81 39, 84 34 12 50 82 86 59 18, 70 20 04 44 80 78 49 08, "
    "70 02 25 72 | 80 69, 81 40 12 15 54 81 89, 79 80 30 02 25 74 82, "
    "81 60 20 02 14 54 83 80 79",
}


def handwriting(count: int, side: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Digits drawn on an empty canvas: ink (count, side, side), from 0 to 1, and labels (count,).

    Each in a way of `HANDS`, bent at random, of a height of `SIZES`, anywhere where it fits.
    """
    ways = [(digit, way) for digit, known in HANDS.items() for way in known.split(", ")]
    share = torch.tensor([1 / len(HANDS[digit].split(", ")) for digit, _ in ways])
    chosen = share.multinomial(count, replacement=True, generator=generator)
    ink = torch.empty(count, side, side)
    for number, (_, way) in enumerate(ways):
        mine = (chosen == number).nonzero()[:, 0]
        start, end, pen = written(way, len(mine), side, generator)
        ink[mine] = paint(start, end, pen, side)
    return ink, torch.tensor([digit for digit, _ in ways])[chosen]


def written(way: str, count: int, side: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    """A way, as so many people write it: pieces from, to (count, P, 2), and pens (count, P)."""
    uniform, normal = draws(count, generator)
    # Between two points the pen goes straight, or in a curve that has no corner at them either
    # (Catmull and Rom 1974), or something between.
    t = torch.arange(STEPS + 1) / STEPS
    t2, t3 = t**2, t**3
    line = torch.stack([0 * t, 1 - t, t, 0 * t])
    curve = torch.stack([2 * t2 - t - t3, 2 - 5 * t2 + 3 * t3, t + 4 * t2 - 3 * t3, t3 - t2]) / 2
    weights = line + uniform(-0.5, 1.5, 1, 1, 1).clamp(0, 1) * (curve - line)
    rough = 0.12 * uniform(0, 1, 1, 1) ** 1.5  # how far points are off
    strokes = []
    for stroke in way.split("|"):
        at = torch.tensor([[int(column) * WIDTH, int(row)] for column, row in stroke.split()]) / 9
        at = at + rough * (normal(len(at), 2) + normal(1, 2) / 2)
        # Its ends come early, or go on too far.
        first = at[:, 0] + uniform(-0.3, 0.3, 1) * (at[:, 0] - at[:, 1])
        last = at[:, -1] + uniform(-0.3, 0.3, 1) * (at[:, -1] - at[:, -2])
        at = torch.stack([first, first, *at[:, 1:-1].unbind(1), last, last], dim=1)
        path = at.unfold(1, 4, 1) @ weights  # (count, points - 1, 2, STEPS + 1)
        ends = torch.stack([path[..., :-1], path[..., 1:]], dim=1)
        strokes.append(ends.transpose(3, 4).flatten(2, 3))
    path = torch.cat(strokes, dim=2).flatten(1, 2)  # (count, 2 P, 2), all from, then all to

    # Waves bend the whole; its top is large or small, it is wide or narrow, it leans and turns.
    for _ in range(2):
        wave = path @ (4 * normal(2, 2)) + uniform(0, 2 * pi, 1, 2)
        path = path + 0.04 * uniform(0, 1, 1, 1) * wave.sin()
    low, size = corner(path)
    within = ((path - low) / size.clamp(min=0.01)).clamp(min=1e-6)
    x, y = (size * within ** (0.25 * normal(1, 2)).exp()).unbind(-1)
    x = x * uniform(-0.6, 0.6, 1).exp() - (0.25 * normal(1)).clamp(-0.6, 0.6) * y
    cos, sin = (angle := 0.12 * normal(1)).cos(), angle.sin()
    path = torch.stack([x * cos - y * sin, x * sin + y * cos], dim=-1)

    # On the canvas, as high as was drawn, or less where it would be too wide.
    low, size = corner(path)
    most = torch.stack([torch.full((count, 1), side - 2.0), uniform(*SIZES, 1) - 1], dim=-1)
    scale = (most / size.clamp(min=0.01)).amin(-1, keepdim=True)
    path = 0.5 + uniform(0, 1, 1, 2) * (side - 1 - scale * size) + scale * (path - low)
    start, end = path.chunk(2, dim=1)
    pieces = start.shape[1]
    pen = (PEN + 0.12 * normal(1)).clamp(0.9, 1.5).repeat(1, pieces)
    for _ in range(2):  # the pen of some skips
        gap = torch.arange(pieces) / pieces - uniform(0, 1, 1)
        skips = uniform(0, 1, 1) < 0.2
        pen = pen.masked_fill(skips & (gap > 0) & (gap < uniform(0, 0.15, 1)), 0)
    return start, end, pen


def draws(count: int, generator: torch.Generator) -> tuple[Callable[..., Tensor], ...]:
    """Random numbers for each of `count` digits: uniform(low, high, *shape) and normal(*shape)."""

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(count, *shape, generator=generator)

    def normal(*shape: int) -> Tensor:
        return torch.randn(count, *shape, generator=generator)

    return uniform, normal


def corner(path: Tensor) -> tuple[Tensor, Tensor]:
    """The top left corner of each path (n, P, 2), and its width and height, both (n, 1, 2)."""
    low = path.amin(1, keepdim=True)
    return low, path.amax(1, keepdim=True) - low


def paint(start: Tensor, end: Tensor, pen: Tensor, side: int) -> Tensor:
    """What a round pen leaves on a canvas: ink (n, side, side), from 0 to 1.

    A pixel whose middle lies at the distance r from a piece gets the ink pen - r, from 0 to 1; of
    several pieces the darkest counts.

    Args:
        start, end: of each straight piece, (n, P, 2), pixels from the left and from the top.
        pen: of each piece, (n, P); 0 leaves nothing.
    """
    middle = torch.arange(side) + 0.5
    ink = torch.zeros(len(start), side, side)
    numbers = torch.cat([start, end - start, pen[..., None]], dim=-1)  # (n, P, 5)
    for x, y, right, down, width in numbers.permute(1, 2, 0)[..., None, None]:
        across, below = middle - x, middle[:, None] - y  # (n, 1, side) and (n, side, 1)
        along = (across * right + below * down) / (right**2 + down**2).clamp(min=1e-9)
        share = along.clamp(0, 1)
        r = torch.hypot(across - share * right, below - share * down)
        ink = ink.maximum((width - r).clamp(0, 1))
    return ink


def enlarged(images: Tensor, side: int, generator: torch.Generator) -> Tensor:
    """Small digits as if drawn with the pen: ink (n, side, side), from 0 to 1.

    Each gets a size of `SIZES`, leans, turns, and lies anywhere where it fits.

    Args:
        images: (n, h, h), ink from 0 to 1; each digit fills its image.
    """
    uniform, normal = draws(len(images), generator)
    height = images.shape[-1]
    tall = uniform(*SIZES, 1, 1) / height  # pixels of the canvas for one of the image
    wide = (tall * uniform(-0.4, 0.4, 1, 1).exp()).clamp(max=side / height)
    middle = torch.arange(side) + 0.5 - side / 2
    x = middle - uniform(-1, 1, 1, 1) * (side - height * wide).clamp(min=0) / 2
    y = middle[:, None] - uniform(-1, 1, 1, 1) * (side - height * tall).clamp(min=0) / 2
    cos, sin = (angle := 0.12 * normal(1, 1)).cos(), angle.sin()
    x, y = x * cos + y * sin, y * cos - x * sin
    x = x + (0.2 * normal(1, 1)).clamp(-0.4, 0.4) * y
    grid = torch.stack([x / wide, y / tall], dim=-1) * 2 / height
    ink = F.grid_sample(images[:, None], grid, align_corners=False)[:, 0]
    # What was blurred becomes lines again, thin or thick.
    return ((ink - uniform(0.15, 0.5, 1, 1)) * tall / uniform(0.3, 0.6, 1, 1)).clamp(0, 1)
