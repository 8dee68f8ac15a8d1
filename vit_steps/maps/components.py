"""What the weights hold: positions, filters and tokens in their principal components."""

import torch
from torch import Tensor
from torch.nn import functional as F

from ..inputs import as_pair, check_axes, check_sizes, check_tokens
from ..vit import ViT


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
