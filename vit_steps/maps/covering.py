"""Whether a map explains an answer: what that depends on, by gradients, covering, blinding."""

from collections.abc import Collection
from copy import deepcopy

import torch
from einops import reduce
from torch import Tensor

from ..inputs import as_pair, check_axes, check_images, check_labels, check_sizes
from ..patches import grid_size
from ..vit import ViT


def touched(places: Tensor, side: int, grid: int | tuple[int, int], patch_size: int) -> Tensor:
    """Which patches a square thing touches, where it is known to stand.

    Args:
        places: (B, 2), row and column of its top left pixel.
        side: its height and width in pixels.
        grid: (rows, cols) of patches, or one number for a square.
        patch_size: P, in pixels.

    Returns:
        (B, rows, cols), boolean.

    Raises:
        ValueError: places are not pairs.
    """
    check_axes("places", places, "B 2")
    check_sizes(side=side, patch_size=patch_size)
    if places.shape[1] != 2:
        raise ValueError(f"places is {tuple(places.shape)}; give (B, 2), each a row and a column")
    hits = []
    for start, count in zip(places.T, as_pair(grid, "grid"), strict=True):
        edge = torch.arange(count, device=places.device) * patch_size  # a patch's first pixel
        start = start[:, None]
        hits.append((edge + patch_size > start) & (edge < start + side))  # (B, count)
    down, across = hits
    return down[:, :, None] & across[:, None, :]


def gradient_map(model: ViT, images: Tensor, labels: Tensor, fill: float = 0.0) -> Tensor:
    """How much each patch speaks for the label: gradient × input, summed over the patch.

    The input is counted from `fill`, so that this is, to first order, by how much the label's
    logit falls when the patch is covered with `fill`.

    Args:
        images: (B, C, H, W).
        labels: (B,), whole numbers: the class whose logit is asked about.
        fill: the value of a pixel that says nothing.

    Returns:
        (B, rows, cols); negative where a patch speaks against the label.

    Raises:
        TypeError, ValueError: images or labels that the model does not take.
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
    """Paint patches over.

    Args:
        images: (B, C, H, W).
        hidden: (B, rows, cols), boolean, True where a patch is painted over.
        patch_size: P, in pixels.
        fill: with what.

    Returns:
        (B, C, H, W), a new tensor.

    Raises:
        TypeError: hidden is not boolean.
        ValueError: hidden has not one place for each patch.
    """
    check_images(images)
    check_axes("hidden", hidden, "B rows cols")
    if hidden.dtype != torch.bool:
        raise TypeError(f"hidden holds {hidden.dtype}; give booleans, True where to paint")
    batch, _, height, width = images.shape
    rows, cols = hidden.shape[1:]
    if hidden.shape[0] != batch or (rows * patch_size, cols * patch_size) != (height, width):
        raise ValueError(
            f"hidden is {tuple(hidden.shape)} where images are {tuple(images.shape)} with patches "
            f"of {patch_size}: give ({batch}, {height // patch_size}, {width // patch_size})"
        )
    pixels = hidden.repeat_interleave(patch_size, 1).repeat_interleave(patch_size, 2)
    return images.masked_fill(pixels[:, None], fill)


def deletion(
    model: ViT, images: Tensor, labels: Tensor, order: Tensor, steps: int, fill: float = 0.0
) -> Tensor:
    """Accuracy as more and more patches are covered (the deletion curve of Petsiuk et al. 2018).

    Args:
        images: (B, C, H, W).
        labels: (B,), whole numbers: the right classes.
        order: (B, rows·cols), each row the patches of an image, the one covered first in front:
            `scores.flatten(1).argsort(dim=1, descending=True)`.
        steps: in how many steps, at most one a patch.
        fill: with what they are covered.

    Returns:
        (steps + 1,): accuracy with 0, 1/steps, …, all of the patches covered.

    Raises:
        TypeError, ValueError: images or labels that the model does not take, an order that is
            none, or more steps than patches.
    """
    check_images(images)
    check_labels(labels, len(images), model.config.num_classes)
    size = model.config.patch_size
    rows, cols = grid_size(model.config.image_size, size)
    patches = torch.arange(rows * cols, device=images.device)
    check_axes("order", order, "B patches")
    wanted = (len(images), len(patches))
    if order.shape != wanted or not order.sort(dim=1).values.eq(patches).all():
        raise ValueError(
            f"order is {tuple(order.shape)}; give {wanted}, each row with all the patches' numbers "
            "once, as argsort gives them"
        )
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
    """The area under a curve of equal steps from 0 to 1, by trapezoids: its mean height.

    Args:
        accuracy: (steps + 1,), as `deletion` gives it.
    """
    check_axes("accuracy", accuracy, "steps")
    return torch.trapezoid(accuracy).item() / (len(accuracy) - 1)


@torch.no_grad()
def blinded(
    model: ViT, images: Tensor, hidden: Tensor, blocks: Collection[int] | None = None
) -> Tensor:
    """The logits where the cls token may not look at some of the patches.

    Nothing of the picture is changed, and the other tokens look where they like: what the hidden
    patches told them before, the cls token can still hear from them.

    Args:
        model: a `ViT`, or a subclass that changes no more than what the head reads.
        images: (B, C, H, W).
        hidden: (B, rows, cols), boolean, True for each patch that cls is blind to.
        blocks: the blocks, counted from 0, in which it is blind; None for all.

    Returns:
        (B, classes).

    Raises:
        TypeError: another model, or `hidden` does not hold booleans.
        ValueError: `hidden` does not belong to these images, or there is no such block.
    """
    if not isinstance(model, ViT) or type(model).forward is not ViT.forward:
        raise TypeError(f"model is a {type(model).__name__}; give a vit_steps.ViT's own forward")
    check_axes("hidden", hidden, "B rows cols")
    if hidden.dtype != torch.bool:
        raise TypeError(f"hidden holds {hidden.dtype}; give booleans, True where cls is blind")
    x = model.tokens(model.patch_embed(images))  # (B, N, D)
    B, N, _ = x.shape
    if len(hidden) != B or hidden[0].numel() != N - 1:
        raise ValueError(
            f"hidden is {tuple(hidden.shape)}; give one place for each of the {N - 1} patches of "
            f"{B} images"
        )
    count = len(model.blocks)
    chosen = set(range(count)) if blocks is None else set(blocks)
    if unknown := chosen - set(range(count)):
        raise ValueError(f"no block {unknown.pop()}; the model has blocks 0 to {count - 1}")
    may_look = torch.ones(B, 1, N, N, dtype=torch.bool, device=x.device)
    may_look[:, 0, 0, 1:] = ~hidden.flatten(1)  # the row of the query cls
    for number, block in enumerate(model.blocks):
        x = block(x, may_look if number in chosen else None)
    return model.head(model.read(x))
