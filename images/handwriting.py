"""Draws digits as people do with a pen, each by a hand that never was before.

`python -m images.handwriting` writes vit_course/drawn.npz, in half a minute. The weights
"scattered" learned from more of them: vit_steps/weights/README.md.
"""

from collections.abc import Callable
from itertools import pairwise
from math import pi
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from vit_steps.training.data import DIGITS, INK, as_stored, digits
from vit_steps.training.dataset import ImageDataset

FILE = Path(__file__).parents[1] / "vit_course/drawn.npz"

PEN = 1.15  # a pixel whose middle lies so far from a stroke gets no ink, as on the live page
STEPS = 4  # straight pieces of a curve between two points
WIDTH = 0.65  # of a digit that is 1 high, before it is bent
SIZES = 5.5, 14.0  # height of a digit with its ink, in pixels

TEXT = Path(__file__).with_name("strokes.txt").read_text("utf-8")
# Each way in which people write a digit: the digit, and the points through which the pen goes.
WAYS = [(int(line[0]), line[3:]) for line in TEXT.splitlines() if line[0] != "#"]


def drawn(count: int, seed: int = 0, side: int = 16) -> ImageDataset:
    """Draw digits on empty canvases: of many sizes, in many hands.

    Two of three are drawn stroke by stroke (`handwriting`). The others are those that `digits()`
    gives to train on, made larger or smaller (`enlarged`).

    Args:
        count: how many canvases.
        seed: the same draws the same; another count draws others.
        side: of the canvas, in pixels, at least 16.

    Returns:
        Images (count, 1, side, side), from -1 to 1.
    """
    generator = torch.Generator().manual_seed(seed)
    source = digits()[0]
    chosen = torch.randint(len(source), (count // 3,), generator=generator)
    large = enlarged(source.pixels[chosen, 0] / INK, side, generator)
    ink, labels = handwriting(count - len(chosen), side, generator)
    order = torch.randperm(count, generator=generator)
    pixels = (torch.cat([ink, large]) * INK).round().byte()[order, None]
    labels = torch.cat([labels, source.labels[chosen]])[order]
    return ImageDataset(pixels, labels, DIGITS, white=INK, preprocess=as_stored(side))


def hands() -> ImageDataset:
    """Draw the 360 digits of hands/*.txt, (360, 1, 16, 16); hands/README.md tells of them."""
    files = sorted(Path(__file__).with_name("hands").glob("*.txt"))
    lines = [line for file in files for line in file.read_text("utf-8").splitlines()]
    labels, ink = [], []
    for digit, _, strokes in (line.partition(": ") for line in lines if line[0] != "#"):
        labels.append(int(digit))
        paths = [[[*map(float, p.split(","))] for p in one.split()] for one in strokes.split("/")]
        pieces = [torch.tensor([[a, b] for a, b in pairwise([s[0], *s])]) for s in paths]
        start, end = torch.cat(pieces).unbind(1)  # (P, 2)
        ink.append(paint(start[None], end[None], torch.full((1, len(start)), PEN), 16))
    pixels = (torch.stack(ink) * INK).round().byte()
    return ImageDataset(pixels, torch.tensor(labels), DIGITS, white=INK, preprocess=as_stored(16))


def handwriting(count: int, side: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw digits on an empty canvas: ink (count, side, side), from 0 to 1, and labels (count,).

    Each in one of `WAYS`, bent at random, of a height of `SIZES`, anywhere where it fits.
    """
    digits = torch.tensor([digit for digit, _ in WAYS])
    share = 1 / digits.bincount()[digits]
    chosen = share.multinomial(count, replacement=True, generator=generator)
    ink = torch.empty(count, side, side)
    for number, (_, way) in enumerate(WAYS):
        mine = (chosen == number).nonzero()[:, 0]
        start, end, pen = written(way, len(mine), side, generator)
        ink[mine] = paint(start, end, pen, side)
    return ink, digits[chosen]


def written(way: str, count: int, side: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    """Write a way as so many people do: pieces from, to (count, P, 2), and pens (count, P)."""
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
    """Make uniform(low, high, *shape) and normal(*shape), which draw for each of `count` digits."""

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(count, *shape, generator=generator)

    def normal(*shape: int) -> Tensor:
        return torch.randn(count, *shape, generator=generator)

    return uniform, normal


def corner(path: Tensor) -> tuple[Tensor, Tensor]:
    """Find the top left corner of each path (n, P, 2), its width and height, both (n, 1, 2)."""
    low = path.amin(1, keepdim=True)
    return low, path.amax(1, keepdim=True) - low


def paint(start: Tensor, end: Tensor, pen: Tensor, side: int) -> Tensor:
    """Paint what a round pen leaves on a canvas: ink (n, side, side), from 0 to 1.

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
    """Redraw small digits as if with the pen: ink (n, side, side), from 0 to 1.

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


def main() -> None:
    """Draw what the package stores, and write it."""
    parts = {"train": drawn(20_000), "val": drawn(2000, seed=1), "hands": hands()}
    arrays = {f"{name}_pixels": part.pixels[:, 0].numpy() for name, part in parts.items()}
    labels = {f"{name}_labels": part.labels.byte().numpy() for name, part in parts.items()}
    np.savez_compressed(FILE, allow_pickle=False, **arrays, **labels)


if __name__ == "__main__":
    main()
