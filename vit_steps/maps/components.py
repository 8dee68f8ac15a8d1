"""Tokens in the few directions along which they vary most."""

import torch
from torch import Tensor

from ..inputs import check_axes, check_sizes, check_tokens


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
