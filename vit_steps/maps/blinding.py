"""The experiment behind an attention map: keep the cls token from looking there, and ask again."""

from collections.abc import Collection

import torch
from torch import Tensor

from ..inputs import check_axes
from ..vit import ViT, pool_tokens


@torch.no_grad()
def blinded(
    model: ViT, images: Tensor, hidden: Tensor, blocks: Collection[int] | None = None
) -> Tensor:
    """The logits where the cls token may not look at some of the patches.

    Nothing of the picture is changed, and the other tokens look where they like: what the hidden
    patches told them before, the cls token can still hear from them.

    Args:
        model: any ViT with the pieces of ours: patch_embed, tokens, blocks, norm, head.
        images: (B, C, H, W).
        hidden: (B, rows, cols), boolean, True for each patch that cls is blind to.
        blocks: the blocks, counted from 0, in which it is blind; None for all.

    Returns:
        (B, classes).

    Raises:
        TypeError: `hidden` does not hold booleans.
        ValueError: `hidden` does not belong to these images, or there is no such block.
    """
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
    return model.head(pool_tokens(model.norm(x)))
