"""How the patches of a convolution, or of unfold, become tokens."""

from collections.abc import Sequence

from torch import Tensor


def patches_made(name: str, tensors: Sequence[Tensor], result: Tensor) -> Tensor | None:
    """Give the patches (n, D) of the first image that a function of torch made of an image.

    That is a convolution whose stride is its kernel, or unfold to (B, D, n); None of all else.
    """
    if name == "unfold" and result.ndim == 3 and tensors[0].ndim == 4:
        return result.detach()[0].mT.clone()
    if name != "conv2d" or result.ndim != 4:
        return None
    sides = zip(tensors[0].shape[2:], result.shape[2:], tensors[1].shape[2:], strict=True)
    cuts = all(side == count * kernel and kernel > 1 for side, count, kernel in sides)
    return result.detach()[0].flatten(1).mT.clone() if cuts else None


def scrambles(x: Tensor, patches: Tensor) -> bool:
    """Tell whether tokens (B, n, D), which hold the patches' numbers, are no patch each."""
    count, width = patches.shape
    if x.ndim != 3 or tuple(x.shape[1:]) != (count, width) or min(count, width) < 2:
        return False
    tokens = x.detach()[0]
    picked = [*tokens[[0, count // 3, count - 1]], tokens[:, 0]]  # the last where it is (B, D, n)
    among = [bool((patches == token).all(1).any()) for token in picked if len(token) == width]
    return not all(among[:3]) and not any(among[3:])
