"""The course's canvases: digits scattered among fragments, and digits drawn with a pen."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from vit_steps.inputs import check_choice, check_sizes
from vit_steps.training.data import DIGITS, INK, as_stored, digits
from vit_steps.training.dataset import ImageDataset

DIGIT = 8  # side of scikit-learn's digits, in pixels
FRAGMENT = 3  # side of the pieces of other digits that scattered ones lie among


def scattered(
    count: int, seed: int = 0, side: int = 16, fragments: int = 6, held_out: bool = False
) -> ImageDataset:
    """Place digits at random on a larger canvas, among pieces of others: where to look is known.

    Every fifth place on the canvas, a knight's move apart, is kept for the held-out digits: so
    neither the digit nor its place was there to train on. The digits are split as `digits()` does,
    whatever the seed.

    Args:
        count: how many canvases; the same seed draws the same.
        seed: of what is drawn: digits, places, fragments.
        side: of the canvas, in pixels; ValueError if it is too small.
        fragments: how many pieces of 3×3 pixels lie around each digit, never on it. They are
            drawn without regard to its class, so they tell nothing about it.
        held_out: draw the held-out digits, at the held-out places.

    Returns:
        Images (count, 1, side, side), from -1 to 1, with `places`.
    """
    check_sizes(count=count, side=side)
    check_sizes(0, fragments=fragments)
    check_choice("held_out", held_out, True, False)
    least = DIGIT + 2 * FRAGMENT - 1 if fragments else DIGIT + 1
    if side < least:
        raise ValueError(f"side is {side}; with {fragments} fragments give at least {least}")
    source = digits()[held_out]
    generator = torch.Generator().manual_seed(seed)

    def draw(high: int, *shape: int) -> Tensor:
        return torch.randint(high, shape, generator=generator)

    steps = torch.arange(side - DIGIT + 1)
    corners = torch.cartesian_prod(steps, steps)  # every (row, column) where a digit fits
    fifth = (corners[:, 0] + 2 * corners[:, 1]) % 5 == 0
    corners = corners[fifth] if held_out else corners[~fifth]
    chosen, places = draw(len(source), count), corners[draw(len(corners), count)]

    canvas = torch.zeros(count, side, side, dtype=torch.uint8)
    canvas[_window(places, DIGIT)] = source.pixels[chosen, 0]
    for _ in range(fragments):
        corner = draw(side - FRAGMENT + 1, count, 2)
        # Those that would touch the digit are drawn again.
        while (hit := (corner > places - FRAGMENT) & (corner < places + DIGIT)).all(dim=1).any():
            again = hit.all(dim=1)
            corner[again] = draw(side - FRAGMENT + 1, int(again.sum()), 2)
        cut = _window(draw(DIGIT - FRAGMENT + 1, count, 2), FRAGMENT)
        piece = source.pixels[draw(len(source), count), 0][cut]
        target = _window(corner, FRAGMENT)
        canvas[target] = canvas[target].maximum(piece)  # where fragments meet, the darker ink
    labels, preprocess = source.labels[chosen], as_stored(side)
    return ImageDataset(canvas[:, None], labels, DIGITS, places, INK, preprocess)


def _window(corners: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Index a square in each of n pictures (n, H, W), from its top-left corner (n, 2)."""
    steps = torch.arange(size)
    rows = corners[:, 0, None, None] + steps[:, None]  # (n, size, 1)
    columns = corners[:, 1, None, None] + steps  # (n, 1, size)
    return torch.arange(len(corners))[:, None, None], rows, columns


def drawn() -> tuple[ImageDataset, ImageDataset]:
    """Load digits as people draw them with a pen: 20,000 to train on, and 2,000 held out.

    Images (n, 1, 16, 16), from -1 to 1, of many sizes, in many imagined hands, bent further than
    people bend them. `images/handwriting.py` of the repository drew them.
    """
    return _stored("train"), _stored("val")


def hands() -> ImageDataset:
    """Load 360 digits that twelve other hands than those of `drawn` wrote with its pen: a test.

    Images (360, 1, 16, 16), from -1 to 1; the hands in alphabetical order. They are imagined, and
    tidier than real ones; no training and no choice of a recipe has seen one.
    """
    return _stored("hands")


def shares(model: nn.Module, drawing: Tensor) -> Tensor:
    """Give a model's answer to one drawing (1, H, W), as shares (classes,)."""
    with torch.no_grad():
        return model(drawing[None]).softmax(dim=1)[0]


def nearest_alike(x: Tensor, labels: Tensor) -> tuple[float, float]:
    """Tell how often a row's nearest one, by the cosine, has its label; and how often by luck.

    Args:
        x: (n, D), and labels (n,).
    """
    rows, count = torch.nn.functional.normalize(x, dim=1), len(x)
    nearest = (rows @ rows.T - 2 * torch.eye(count)).argmax(dim=1)
    same = labels[:, None] == labels
    luck = (same.sum().item() - count) / (count * (count - 1))
    return (labels[nearest] == labels).float().mean().item(), luck


def _stored(part: str) -> ImageDataset:
    """Read a part of the stored drawings."""
    with np.load(Path(__file__).with_name("drawn.npz")) as arrays:
        pixels = torch.from_numpy(arrays[f"{part}_pixels"])[:, None]
        labels = torch.from_numpy(arrays[f"{part}_labels"]).long()
    return ImageDataset(pixels, labels, DIGITS, white=INK, preprocess=as_stored(16))
