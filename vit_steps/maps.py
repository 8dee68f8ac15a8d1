"""Lesson 08: where a ViT looks, what its weights hold, and whether that explains its answers.

All functions take what `model(images, return_attention=True)` gives, or the model itself, in eval
mode; none of them keeps anything or draws (`vit_steps.plots` does).
"""

from collections.abc import Sequence

import torch
from einops import reduce
from torch import Tensor
from torch.nn import functional as F

from .inputs import as_pair, check_axes, check_images, check_sizes, check_tensor, check_tokens
from .vit import ViT


def check_layers(attention: Sequence[Tensor], tokens: int | None = None) -> None:
    """Attention must be a list with the weights (B, h, N, N) of each block.

    Raises:
        TypeError: not a list of tensors of floats.
        ValueError: an empty list, other axes, blocks that differ, or another number of tokens.
    """
    if not isinstance(attention, (list, tuple)):
        raise TypeError(
            f"attention is a {type(attention).__name__}; give the list that "
            "model(images, return_attention=True) returns beside the logits"
        )
    if not attention:
        raise ValueError("attention is an empty list; give the weights of at least one block")
    for weights in attention:
        check_axes("weights", weights, "B h N N")
        check_weights(weights, tokens)
        if weights.shape[::2] != attention[0].shape[::2]:
            shapes = f"{tuple(attention[0].shape)} and {tuple(weights.shape)}"
            raise ValueError(f"blocks have weights {shapes}; give those of one model and one batch")


def check_weights(weights: Tensor, tokens: int | None = None) -> None:
    """Weights must be floats whose last two axes are both N, where given of that many tokens.

    Raises:
        TypeError: not a tensor of floats.
        ValueError: not square, or another number of tokens.
    """
    check_tensor(weights=weights)
    shape = tuple(weights.shape)
    if not weights.is_floating_point():
        raise TypeError(f"weights holds {weights.dtype}, not floats")
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"weights is {shape}; give the axes (…, N, N), queries, then keys")
    if tokens is not None and shape[-1] != tokens:
        raise ValueError(
            f"weights is {shape}: {shape[-1]} tokens where the grid has {tokens - 1} patches and "
            "a cls token"
        )


# What attention says -----------------------------------------------------------------------------


def rollout(attention: Sequence[Tensor]) -> Tensor:
    """Follow attention through all blocks down to the input (Abnar and Zuidema 2020, section 3).

    A block is read as the mean of its heads and, for the residual, as much of the token itself;
    the blocks are multiplied, the last one leftmost. The MLPs, and what the heads' values hold,
    play no part.

    Args:
        attention: the weights of each block (B, h, N, N), first block first.

    Returns:
        (B, N, N): row i says in which shares token i at the end was mixed from the tokens at the
        start. Rows sum to 1.

    Raises:
        TypeError, ValueError: not the list that a ViT returns.
    """
    check_layers(attention)
    itself = torch.eye(attention[0].shape[-1]).to(attention[0])
    flow = itself
    for weights in attention:
        step = 0.5 * weights.mean(dim=1) + 0.5 * itself  # (B, N, N)
        flow = step / step.sum(dim=-1, keepdim=True) @ flow
    return flow


def cls_map(weights: Tensor, grid: int | tuple[int, int]) -> Tensor:
    """How much the cls token takes from each patch, laid out as the patches lie.

    Args:
        weights: (…, N, N), cls first: one block's (B, h, N, N), or a `rollout` (B, N, N).
        grid: (rows, cols) of patches, or one number for a square.

    Returns:
        (…, rows, cols). What is missing to a sum of 1 the cls token takes from itself.

    Raises:
        ValueError: the weights do not belong to that grid.
    """
    rows, cols = as_pair(grid, "grid")
    check_weights(weights, 1 + rows * cols)
    return weights[..., 0, 1:].unflatten(-1, (rows, cols))


def patch_distances(grid: int | tuple[int, int], patch_size: int) -> Tensor:
    """How far the centres of any two patches are apart, in pixels.

    Args:
        grid: (rows, cols) of patches, or one number for a square.
        patch_size: P, in pixels.

    Returns:
        (rows·cols, rows·cols).
    """
    rows, cols = as_pair(grid, "grid")
    check_sizes(patch_size=patch_size)
    patch = torch.arange(rows * cols)
    place = torch.stack([patch // cols, patch % cols], dim=1) * float(patch_size)
    return (place[:, None] - place).norm(dim=-1)


def attention_distance(
    attention: Sequence[Tensor], grid: int | tuple[int, int], patch_size: int
) -> Tensor:
    """How far each head looks, on average (Dosovitskiy et al. 2021, figure 7 right, D.7).

    For each patch, the distance to every patch, weighted by how much it looks there; then the mean
    over patches and images. The cls token has no place: it is left out, and what a patch gives to
    the patches counts as its whole weight.

    Args:
        attention: the weights of each block (B, h, N, N), cls first.
        grid: (rows, cols) of patches, or one number for a square.
        patch_size: P, in pixels.

    Returns:
        (L, h), in pixels.

    Raises:
        TypeError, ValueError: not the list that a ViT returns, or of another grid.
    """
    apart = patch_distances(grid, patch_size)  # (N - 1, N - 1)
    check_layers(attention, 1 + len(apart))
    apart, means = apart.to(attention[0]), []
    for weights in attention:
        looks = weights[:, :, 1:, 1:]  # of patches, at patches
        looks = looks / looks.sum(dim=-1, keepdim=True)
        means.append((looks * apart).sum(dim=-1).mean(dim=(0, 2)))  # (h,)
    return torch.stack(means)


# What the weights hold ---------------------------------------------------------------------------


def position_similarity(pos_embed: Tensor, grid: int | tuple[int, int]) -> Tensor:
    """How alike the learned positions are (Dosovitskiy et al. 2021, figure 7 centre).

    Args:
        pos_embed: (1, 1 + rows·cols, D), cls first.
        grid: (rows, cols) of patches, or one number for a square.

    Returns:
        (rows, cols, rows, cols): [r, c] is the map of patch (r, c)'s cosine similarity to all.

    Raises:
        ValueError: pos_embed does not belong to `grid`.
    """
    rows, cols = as_pair(grid, "grid")
    check_tokens(pos_embed, count=1 + rows * cols)
    directions = F.normalize(pos_embed[0, 1:], dim=-1)
    similarity = directions @ directions.T  # (rows·cols, rows·cols)
    return similarity.reshape(rows, cols, rows, cols)


def pca(x: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Principal components: the directions along which the rows of x vary most.

    Args:
        x: (n, D), floats.
        count: how many components, at most the smaller of n and D.

    Returns:
        Coordinates (n, count) of the centred rows, directions (count, D) of length 1, and each
        one's share of the variance (count,), largest first. A direction's sign is arbitrary: its
        largest number is made positive.

    Raises:
        TypeError: not floats.
        ValueError: not two axes, or not so many components.
    """
    check_axes("x", x, "n D")
    check_sizes(count=count)
    if not x.is_floating_point():
        raise TypeError(f"x holds {x.dtype}, not floats")
    if count > min(x.shape):
        raise ValueError(f"x is {tuple(x.shape)}: it has {min(x.shape)} components, not {count}")
    centred = x.detach() - x.detach().mean(dim=0)
    _, sizes, directions = torch.linalg.svd(centred, full_matrices=False)
    largest = directions.gather(1, directions.abs().argmax(dim=1, keepdim=True))
    directions = directions * torch.where(largest < 0, -1.0, 1.0)
    shares = sizes.square() / sizes.square().sum()
    return centred @ directions[:count].T, directions[:count], shares[:count]


def filters(model: ViT, count: int) -> Tensor:
    """What the patch embedding looks for (Dosovitskiy et al. 2021, figure 7 left).

    Args:
        model: the principal components of its patch embedding's D filters are taken.
        count: how many, at most the smaller of D and C·P·P.

    Returns:
        (count, C, P, P), each of length 1, that along which the filters vary most first.
    """
    weight = model.patch_embed.proj.weight  # (D, C, P, P)
    _, directions, _ = pca(weight.flatten(1), count)
    return directions.unflatten(1, weight.shape[1:])


def token_pca(tokens: Tensor, count: int) -> Tensor:
    """Tokens in the few coordinates along which they vary most, over the whole batch.

    Args:
        tokens: (B, N, D), such as `model.features(images)[:, 1:]`.
        count: how many coordinates; 3 can be drawn as a colour.

    Returns:
        (B, N, count).
    """
    check_tokens(tokens)
    coordinates, _, _ = pca(tokens.flatten(0, 1), count)
    return coordinates.unflatten(0, tokens.shape[:2])


# Whether that explains an answer -----------------------------------------------------------------


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
    check_labels(labels, images, model)
    with torch.enable_grad():
        x = images.detach().clone().requires_grad_()
        logits = model(x).gather(1, labels[:, None])
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
    check_labels(labels, images, model)
    rows, cols = model.patch_embed.grid
    size = model.config.patch_size
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


def check_labels(labels: Tensor, images: Tensor, model: ViT) -> None:
    """Labels must be whole numbers, one an image, of classes that the model has.

    Raises:
        TypeError: not a tensor of int64.
        ValueError: another number of them, or a class that is not there.
    """
    check_tensor(labels=labels)
    if labels.dtype != torch.int64:
        raise TypeError(f"labels holds {labels.dtype}; give int64, such as labels.long()")
    if labels.shape != images.shape[:1]:
        wanted = tuple(images.shape[:1])
        raise ValueError(f"labels is {tuple(labels.shape)}; give one for each image, {wanted}")
    classes = model.config.num_classes
    if labels.min() < 0 or labels.max() >= classes:
        raise ValueError(
            f"labels go from {labels.min()} to {labels.max()}; the model's classes are 0 to "
            f"{classes - 1}"
        )
