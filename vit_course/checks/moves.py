"""What lesson 08's `moved` is tried on: pictures a pixel aside, and what else may come of them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from .compare import Verdict, kind_of
from .trials import untouched

PAPER = -1.0


def cut(wide: Tensor, margin: int, down: int, right: int) -> Tensor:
    """The window of padded pictures (…, H, W) that shows them moved down and right."""
    height, width = wide.shape[-2] - 2 * margin, wide.shape[-1] - 2 * margin
    top, left = margin - down, margin - right
    return wide[..., top : top + height, left : left + width]


def padded(images: Tensor, margin: int, fill: str | float) -> Tensor:
    """Images (B, C, H, W) with a margin of a number, or of what a mode of F.pad brings in."""
    around = (margin,) * 4
    if isinstance(fill, str):
        return F.pad(images, around, mode=fill)
    return F.pad(images, around, value=fill)


def move(
    images: Tensor,
    generator: torch.Generator | None,
    fill: str | float = PAPER,
    far: int = 1,
    draw: Callable[[Tensor], Tensor] = lambda steps: steps,
) -> Tensor:
    """The right answer; the options make the known mistakes.

    Args:
        fill: what comes in from outside, a number or a mode of F.pad.
        far: the longest move, in pixels.
        draw: changes the moves (B, 2), each from -far to far.
    """
    steps = draw(torch.randint(-far, far + 1, (len(images), 2), generator=generator)).tolist()
    wide = padded(images, far, fill)
    return torch.stack([cut(one, far, *step) for one, step in zip(wide, steps, strict=True)])


OTHERWISE: dict[str | float, str] = {
    "circular": "what leaves on one side comes in on the other",
    0.0: "zeros come in from outside, and 0 is grey",
    "replicate": "the edge is repeated where paper should come in",
}


def fits(images: Tensor, result: Tensor, far: int, fill: str | float = PAPER) -> Tensor:
    """(B, moves): which moves of up to `far` pixels each way make the result of the images."""
    wide, steps = padded(images, far, fill), range(-far, far + 1)
    windows = [cut(wide, far, down, right) for down in steps for right in steps]
    return torch.stack([(result == window).flatten(1).all(dim=1) for window in windows], dim=1)


def checked(answer: Callable, images: Tensor, seed: int) -> Any:
    """What the answer gives for these images, or a verdict where that are no such images."""
    result = untouched(answer, images, torch.Generator().manual_seed(seed))
    if not isinstance(result, Tensor) or result is ...:
        return result if result is None or result is ... else Verdict(f"it gives {kind_of(result)}")
    if result.shape != images.shape:
        return Verdict(f"its shape is {tuple(result.shape)}, expected {tuple(images.shape)}")
    return result


def each_moved(answer: Callable) -> Any:
    """Whether each of some pictures, ink up to their edges, is moved by whole pixels."""
    images = torch.rand(40, 2, 7, 5, generator=torch.Generator().manual_seed(1))
    result = checked(answer, images, 11)
    if not isinstance(result, Tensor):
        return result
    if torch.equal(result, images):
        return Verdict("no picture is moved")
    if fits(images, result, 1).any(dim=1).all():
        return Verdict("as it should")
    for fill, words in OTHERWISE.items():
        if fits(images, result, 1, fill).any(dim=1).all():
            return Verdict(words)
    if fits(images, result, 4).any(dim=1).all():
        return Verdict("a picture is moved by more than one pixel")
    return Verdict("a picture holds numbers that moving it by whole pixels does not give")


def all_moves(answer: Callable) -> Any:
    """Whether the nine moves come about equally often, each picture's own."""
    images = torch.rand(1, 6, 6, generator=torch.Generator().manual_seed(2)).repeat(450, 1, 1, 1)
    result = checked(answer, images, 12)
    if not isinstance(result, Tensor):
        return result
    counts = fits(images, result, 1).sum(dim=0).tolist()
    missing = [(i // 3 - 1, i % 3 - 1) for i, count in enumerate(counts) if not count]
    if len(missing) == 8:
        return Verdict("all pictures of a batch get the same move")
    if missing:
        return Verdict(f"of the nine moves (down, right) these never come: {missing}")
    if min(counts) < 25 or max(counts) > 80:
        return Verdict("some of the nine moves come much more often than others")
    return Verdict("as it should")


def by_generator(answer: Callable) -> Any:
    """Whether the moves come from the generator that it is given, and from nothing else."""
    images = torch.rand(60, 1, 5, 5, generator=torch.Generator().manual_seed(3))
    results = []
    for seed, world in ((1, 5), (1, 6), (2, 7)):
        torch.manual_seed(world)
        result = checked(answer, images, seed)
        if not isinstance(result, Tensor):
            return result
        results.append(result)
    if not torch.equal(results[0], results[1]):
        return Verdict("the same generator gives other moves each time")
    if torch.equal(results[0], results[2]):
        return Verdict("another generator gives the same moves")
    return Verdict("as it should")
