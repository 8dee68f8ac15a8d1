"""Lesson 03: each token asks, answers and offers (query, key, value), in several heads at once."""

from einops import rearrange
from torch import Tensor, nn

from .inputs import check_axes, check_flag, check_heads, check_tokens


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Give each head its share of the width: (B, N, D) becomes (B, h, N, d), d = D / h.

    Raises:
        ValueError: not three axes, or h does not divide D.
    """
    check_tokens(x)
    check_heads(x.shape[-1], num_heads)
    return rearrange(x, "b n (h d) -> b h n d", h=num_heads)


def merge_heads(x: Tensor) -> Tensor:
    """Put the heads side by side again: (B, h, N, d) becomes (B, N, D), D = h·d.

    Raises:
        ValueError: not four axes.
    """
    check_axes("heads", x, "B h N d")
    return rearrange(x, "b h n d -> b n (h d)")


class QKV(nn.Linear):
    """One Linear that makes the queries, keys and values of all heads (Vaswani et al. 2017, 3.2.2).

    Its weight is (3·D, D), rows in the order (qkv h d): all queries head by head, then all keys,
    then all values.

    Args:
        embed_dim: D.
        num_heads: h; divides D.
        bias: whether the Linear adds one (the paper's ViT does).

    Raises:
        ValueError: a size below 1, or h does not divide D.
    """

    def __init__(self, embed_dim: int, num_heads: int, bias: bool = True):
        check_heads(embed_dim, num_heads)
        check_flag(qkv_bias=bias)
        super().__init__(embed_dim, 3 * embed_dim, bias=bias)
        self.num_heads = num_heads

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Turn tokens (B, N, D) into q, k, v, each (B, h, N, d).

        Raises:
            ValueError: not three axes, or another width than D.
        """
        check_tokens(x, self.in_features)
        qkv = super().forward(x)  # (B, N, 3·D)
        q, k, v = rearrange(qkv, "b n (qkv h d) -> qkv b h n d", qkv=3, h=self.num_heads)
        return q, k, v
