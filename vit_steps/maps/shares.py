"""What attention says: whose share of what a token becomes, and how far each head looks."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..inputs import as_pair, check_axes, check_sizes


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
    # By differences: the quicker way, by a matrix product, rounds.
    return torch.cdist(place, place, compute_mode="donot_use_mm_for_euclid_dist")


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


def check_layers(attention: Sequence[Tensor], tokens: int | None = None) -> None:
    """Attention must be a list with the weights (B, h, N, N) of each block."""
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
    """Weights must be floats whose last two axes are both N, where given of that many tokens."""
    check_axes("weights", weights, "")
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
