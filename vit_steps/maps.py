"""Lesson 09: where a ViT looks, and whether that explains its answers."""

from collections.abc import Sequence

import torch
from torch import Tensor

from .inputs import as_pair, check_axes, check_sizes, kind_of
from .vit import ViT

__all__ = ["blinded", "cls_map", "rollout", "touched"]


def rollout(attention: Sequence[Tensor]) -> Tensor:
    """Follow attention through all blocks down to the input (Abnar and Zuidema 2020, section 3).

    A block is read as the mean of its heads and, for the residual, as much of the token itself; the
    MLPs, and what the heads' values hold, play no part. Of each block's weights (B, h, N, N), the
    first block's first, it makes (B, N, N): row i says in which shares token i at the end was mixed
    from the tokens at the start.
    """
    check_layers(attention)
    itself = torch.eye(attention[0].shape[-1]).to(attention[0])
    flow = itself
    for weights in attention:
        step = 0.5 * weights.mean(dim=1) + 0.5 * itself  # (B, N, N)
        flow = step / step.sum(dim=-1, keepdim=True) @ flow
    return flow


def cls_map(weights: Tensor, grid: int | tuple[int, int]) -> Tensor:
    """Lay out how much the cls token takes from each patch, as the patches lie.

    One block's weights (B, h, N, N), or a `rollout` (B, N, N), become (…, rows, cols). What is
    missing to a sum of 1 the cls token takes from itself.
    """
    rows, cols = as_pair(grid, "grid")
    check_weights(weights)
    if weights.shape[-1] != 1 + rows * cols:
        hint = f"where the grid has {rows * cols} patches and a cls token"
        raise ValueError(f"weights has {weights.shape[-1]} tokens {hint}")
    return weights[..., 0, 1:].unflatten(-1, (rows, cols))


def touched(places: Tensor, side: int, grid: int | tuple[int, int], patch_size: int) -> Tensor:
    """Tell which patches a square of `side` pixels touches: (B, rows, cols), boolean.

    `places` (B, 2) holds its top left pixel; the grid is (rows, cols), or a number for a square.
    """
    check_axes("places", places, "B axis", axis=2)
    check_sizes(side=side, patch_size=patch_size)
    rows, cols = as_pair(grid, "grid")
    edges = torch.arange(max(rows, cols), device=places.device) * patch_size  # first pixels
    start = places[..., None]  # (B, 2, 1)
    hits = (edges + patch_size > start) & (edges < start + side)  # (B, 2, max)
    return hits[:, 0, :rows, None] & hits[:, 1, None, :cols]


@torch.no_grad()
def blinded(model: ViT, images: Tensor, hidden: Tensor) -> Tensor:
    """Give the logits (B, classes) where the cls token may not look at the hidden patches.

    `hidden` (B, rows, cols) is boolean, True for each of these. The picture stays as it is, and the
    other tokens look where they like: what the hidden patches told them, cls can still hear from
    them. The model is a `ViT`, or a subclass that changes no more than what the head reads.
    """
    if not isinstance(model, ViT) or type(model).forward is not ViT.forward:
        raise TypeError(f"model is a {type(model).__name__}; give a vit_steps.ViT's own forward")
    x = model.tokens(model.patch_embed(images))  # (B, N, D)
    B, N, _ = x.shape
    rows, cols = model.patch_embed.grid
    check_axes("hidden", hidden, "B rows cols", B=B, rows=rows, cols=cols)
    if hidden.dtype != torch.bool:
        raise TypeError(f"hidden holds {hidden.dtype}; give booleans, True for a hidden patch")
    may_look = torch.ones(B, 1, N, N, dtype=torch.bool, device=x.device)
    may_look[:, 0, 0, 1:] = ~hidden.flatten(1)  # the row of the query cls
    for block in model.blocks:
        x = block(x, may_look)
    return model.head(model.read(x))


def check_layers(attention: Sequence[Tensor]) -> None:
    """Refuse what is no list with the weights (B, h, N, N) of each block."""
    if not isinstance(attention, (list, tuple)) or not attention:
        kind = "empty" if isinstance(attention, (list, tuple)) else kind_of(attention)
        hint = "give the list that model(images, return_attention=True) returns"
        raise TypeError(f"attention is {kind}; {hint}")
    for weights in attention:
        check_axes("weights", weights, "B h N N")
        check_weights(weights)
        check_axes("weights", weights, "B h N N", B=len(attention[0]), N=attention[0].shape[-1])


def check_weights(weights: Tensor) -> None:
    """Refuse what is no tensor of floats (…, N, N)."""
    check_axes("weights", weights, "")
    if not weights.is_floating_point():
        raise TypeError(f"weights holds {weights.dtype}, not floats")
    if weights.ndim < 2 or weights.shape[-1] != weights.shape[-2]:
        axes = "(…, N, N), queries, then keys"
        raise ValueError(f"weights is {tuple(weights.shape)}; give the axes {axes}")
