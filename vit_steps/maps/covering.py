"""Whether a map explains an answer: what that depends on, by gradients, covering, blinding."""

from collections.abc import Collection
from copy import deepcopy
from math import prod

import torch
from einops import reduce
from torch import Tensor

from ..inputs import as_pair, check_axes, check_images, check_labels, check_sizes
from ..patches import grid_size
from ..vit import ViT


def touched(places: Tensor, side: int, grid: int | tuple[int, int], patch_size: int) -> Tensor:
    """Which patches a square thing touches that stands at a known place: (B, rows, cols), boolean.

    `places` (B, 2) holds the row and column of its top left pixel, `side` is its height and width
    in pixels; the grid is (rows, cols) of patches of P pixels, or one number for a square.
    """
    check_axes("places", places, "B 2")
    check_sizes(side=side, patch_size=patch_size)
    if places.shape[1] != 2:
        raise ValueError(f"places is {tuple(places.shape)}; give (B, 2), each a row and a column")
    hits = []
    for start, count in zip(places.T[..., None], as_pair(grid, "grid"), strict=True):
        edge = torch.arange(count, device=places.device) * patch_size  # a patch's first pixel
        hits.append((edge + patch_size > start) & (edge < start + side))  # (B, count)
    down, across = hits
    return down[:, :, None] & across[:, None, :]


def gradient_map(model: ViT, images: Tensor, labels: Tensor, fill: float = 0.0) -> Tensor:
    """How much each patch speaks for the label: gradient × input, summed over the patch.

    The input is counted from `fill`, the value of a pixel that says nothing. So this is, to first
    order, by how much the label's logit falls when the patch is covered with `fill`. Images
    (B, C, H, W) and their labels (B,) give (B, rows, cols), negative where a patch speaks against.
    """
    check_images(images)
    check_labels(labels, len(images), model.config.num_classes)
    with torch.inference_mode(False), torch.enable_grad():
        if any(weights.is_inference() for weights in model.parameters()):
            model = deepcopy(model)  # made in that mode, it knows no gradients
        x = images.detach().clone().requires_grad_()
        logits = model(x).gather(1, labels.clone()[:, None])
        (gradient,) = torch.autograd.grad(logits.sum(), x)
    speaks = gradient * (images.detach() - fill)  # (B, C, H, W)
    size = model.config.patch_size
    pattern = "b c (row p1) (col p2) -> b row col"
    return reduce(speaks, pattern, "sum", p1=size, p2=size)


def cover(images: Tensor, hidden: Tensor, patch_size: int, fill: float = 0.0) -> Tensor:
    """Paint patches over with `fill`: images (B, C, H, W) become a new tensor (B, C, H, W).

    `hidden` (B, rows, cols), boolean, is True for each patch, of P pixels a side, to paint over.
    """
    check_images(images)
    grid = grid_size((images.shape[2], images.shape[3]), patch_size)
    check_hidden(hidden, len(images), grid)
    pixels = hidden.repeat_interleave(patch_size, 1).repeat_interleave(patch_size, 2)
    return images.masked_fill(pixels[:, None], fill)


def check_hidden(hidden: Tensor, batch: int, grid: tuple[int, int]) -> None:
    """Hidden must be booleans, one for each patch of each image."""
    check_axes("hidden", hidden, "B rows cols")
    if hidden.dtype != torch.bool:
        raise TypeError(f"hidden holds {hidden.dtype}; give booleans, True for a hidden patch")
    if hidden.shape != (batch, *grid):
        places = f"a place for each of the {prod(grid)} patches of {batch} images"
        raise ValueError(f"hidden is {tuple(hidden.shape)}; give {(batch, *grid)}, {places}")


def deletion(
    model: ViT, images: Tensor, labels: Tensor, order: Tensor, steps: int, fill: float = 0.0
) -> Tensor:
    """Accuracy as more and more patches are covered (the deletion curve of Petsiuk et al. 2018).

    `order` (B, rows·cols) holds in each row the patches of an image, the one covered first in
    front: `scores.flatten(1).argsort(dim=1, descending=True)`. Gives (steps + 1,): the accuracy on
    images (B, C, H, W) and labels (B,) with 0, 1/steps, …, all of the patches covered by `fill`.
    """
    check_images(images)
    check_labels(labels, len(images), model.config.num_classes)
    size = model.config.patch_size
    rows, cols = grid_size(model.config.image_size, size)
    patches = torch.arange(rows * cols, device=images.device)
    check_axes("order", order, "B patches")
    wanted = (len(images), len(patches))
    if order.shape != wanted or not order.sort(dim=1).values.eq(patches).all():
        said = f"order is {tuple(order.shape)}; give {wanted}"
        raise ValueError(f"{said}, each row with all the patches' numbers once, as from argsort")
    check_sizes(steps=steps)
    if steps > len(patches):
        raise ValueError(f"steps is {steps}; there are {len(patches)} patches to cover")
    turn = order.argsort(dim=1)  # when each patch is covered
    accuracy = []
    for step in range(steps + 1):
        hidden = turn < step * len(patches) // steps  # (B, rows·cols)
        with torch.no_grad():
            logits = model(cover(images, hidden.unflatten(1, (rows, cols)), size, fill))
        accuracy.append((logits.argmax(dim=1) == labels).float().mean())
    return torch.stack(accuracy)


def area_under(accuracy: Tensor) -> float:
    """The area under `deletion`'s curve (steps + 1,), by trapezoids: its mean height."""
    check_axes("accuracy", accuracy, "steps")
    return torch.trapezoid(accuracy).item() / (len(accuracy) - 1)


@torch.no_grad()
def blinded(
    model: ViT, images: Tensor, hidden: Tensor, blocks: Collection[int] | None = None
) -> Tensor:
    """The logits (B, classes) where the cls token may not look at some of the patches.

    Nothing of the picture is changed, and the other tokens look where they like: what the hidden
    patches told them before, the cls token can still hear from them.

    Args:
        model: a `ViT`, or a subclass that changes no more than what the head reads.
        images: (B, C, H, W).
        hidden: (B, rows, cols), boolean, True for each patch that cls is blind to.
        blocks: the blocks, counted from 0, in which it is blind; None for all.
    """
    if not isinstance(model, ViT) or type(model).forward is not ViT.forward:
        raise TypeError(f"model is a {type(model).__name__}; give a vit_steps.ViT's own forward")
    x = model.tokens(model.patch_embed(images))  # (B, N, D)
    B, N, _ = x.shape
    check_hidden(hidden, B, model.patch_embed.grid)
    count = len(model.blocks)
    chosen = set(range(count)) if blocks is None else set(blocks)
    if unknown := chosen - set(range(count)):
        raise ValueError(f"no block {unknown.pop()}; the model has blocks 0 to {count - 1}")
    may_look = torch.ones(B, 1, N, N, dtype=torch.bool, device=x.device)
    may_look[:, 0, 0, 1:] = ~hidden.flatten(1)  # the row of the query cls
    for number, block in enumerate(model.blocks):
        x = block(x, may_look if number in chosen else None)
    return model.head(model.read(x))
