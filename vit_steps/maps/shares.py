"""What attention and tokens say: who has a share in whom, how far heads look, how tokens vary."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..inputs import as_pair, check_axes, check_sizes, check_tokens


def rollout(attention: Sequence[Tensor]) -> Tensor:
    """Follow attention through all blocks down to the input (Abnar and Zuidema 2020, section 3).

    A block is read as the mean of its heads and, for the residual, as much of the token itself;
    the blocks are multiplied, the last one leftmost. The MLPs, and what the heads' values hold,
    play no part. Of each block's weights (B, h, N, N), the first block's first, it makes (B, N, N):
    row i says in which shares token i at the end was mixed from the tokens at the start.
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

    One block's weights (B, h, N, N), or a `rollout` (B, N, N), become (…, rows, cols). What is
    missing to a sum of 1 the cls token takes from itself.
    """
    rows, cols = as_pair(grid, "grid")
    check_weights(weights, 1 + rows * cols)
    return weights[..., 0, 1:].unflatten(-1, (rows, cols))


def patch_distances(grid: int | tuple[int, int], patch_size: int) -> Tensor:
    """How far the centres of any two patches are apart, in pixels: (rows·cols, rows·cols)."""
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
    the patches counts as its whole weight. L blocks' weights (B, h, N, N) give (L, h), in pixels.
    """
    apart = patch_distances(grid, patch_size)  # (N - 1, N - 1)
    check_layers(attention, 1 + len(apart))
    apart, means = apart.to(attention[0]), []
    for weights in attention:
        looks = weights[:, :, 1:, 1:]  # of patches, at patches
        looks = looks / looks.sum(dim=-1, keepdim=True)
        means.append((looks * apart).sum(dim=-1).mean(dim=(0, 2)))  # (h,)
    return torch.stack(means)


def token_pca(tokens: Tensor, count: int) -> Tensor:
    """Tokens in their first principal components, over the whole batch: (B, N, D) to (B, N, count).

    Tokens such as `model.features(images)[:, 1:]`, in 3 components, can be drawn as colours. A
    direction's sign is arbitrary: its largest number is made positive.
    """
    check_tokens(tokens)
    check_sizes(count=count)
    if not tokens.is_floating_point():
        raise TypeError(f"tokens holds {tokens.dtype}, not floats")
    x = tokens.detach().flatten(0, 1)  # (B·N, D)
    if count > min(x.shape):
        raise ValueError(f"{len(x)} tokens {x.shape[1]} wide have no {count} components; give less")
    x = x - x.mean(dim=0)
    directions = torch.linalg.svd(x, full_matrices=False).Vh[:count]  # (count, D), of length 1
    largest = directions.gather(1, directions.abs().argmax(dim=1, keepdim=True))
    directions = directions * torch.where(largest < 0, -1.0, 1.0)
    return (x @ directions.T).unflatten(0, tokens.shape[:2])


def check_layers(attention: Sequence[Tensor], tokens: int | None = None) -> None:
    """Attention must be a list with the weights (B, h, N, N) of each block."""
    if not isinstance(attention, (list, tuple)):
        wanted = "give the list that model(images, return_attention=True) returns"
        raise TypeError(f"attention is a {type(attention).__name__}; {wanted}")
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
    if tokens not in (None, shape[-1]):
        grid = f"the grid has {tokens - 1} patches and a cls token"
        raise ValueError(f"weights is {shape}: {shape[-1]} tokens where {grid}")
