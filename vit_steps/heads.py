"""Lesson 03: each token asks, answers and offers (query, key, value), in several heads at once."""

from einops import rearrange
from torch import Tensor

from .inputs import check_axes, check_heads, check_sizes, check_tokens


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Give each head its share of the width: (B, N, D) becomes (B, h, N, d), d = D / h."""
    check_tokens(x)
    check_heads(x.shape[-1], num_heads)
    return rearrange(x, "b n (h d) -> b h n d", h=num_heads)


def merge_heads(x: Tensor) -> Tensor:
    """Put the heads side by side again: (B, h, N, d) becomes (B, N, D), D = h·d."""
    check_axes("heads", x, "B h N d")
    return rearrange(x, "b h n d -> b n (h d)")


def split_qkv(qkv: Tensor, num_heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Cut what one Linear made into q, k and v of all heads (Vaswani et al. 2017, 3.2.2).

    (B, N, 3·D) becomes three tensors (B, h, N, d); h must divide D. The width stands in the order
    (qkv h d): all queries head by head, then all keys, then all values, as timm, DeiT and
    torchvision publish them.
    """
    check_axes("qkv", qkv, "B N 3·D")
    check_sizes(num_heads=num_heads)
    if qkv.shape[-1] % (3 * num_heads):
        raise ValueError(
            f"qkv is {tuple(qkv.shape)}: its width does not divide into q, k and v of "
            f"{num_heads} heads each; give 3·D numbers a token, D a multiple of {num_heads}"
        )
    thirds = qkv.chunk(3, dim=-1)
    q, k, v = (rearrange(third, "b n (h d) -> b h n d", h=num_heads) for third in thirds)
    return q, k, v
