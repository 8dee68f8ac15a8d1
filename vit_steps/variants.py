"""Lesson 11: attention that computes ours, and keeps its weights or its precision otherwise."""

from contextlib import nullcontext

import torch
from einops import rearrange
from torch import Tensor, nn

from .attention import MultiHeadAttention, scaled_dot_product_attention
from .heads import merge_heads, split_qkv
from .inputs import check_choice, check_heads, check_tokens


class SeparateQKV(nn.Module):
    """Three Linears in place of a fused one: (B, N, D) becomes (B, N, 3·D), order (qkv h d)."""

    def __init__(self, embed_dim: int, bias: bool = True):
        super().__init__()
        self.queries = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.keys = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.values = nn.Linear(embed_dim, embed_dim, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Put queries, keys and values side by side."""
        return torch.cat([self.queries(x), self.keys(x), self.values(x)], dim=-1)


class SeparateAttention(MultiHeadAttention):
    """`MultiHeadAttention` with a Linear each for q, k and v: the same call, the same numbers."""

    def __init__(self, embed_dim: int, num_heads: int, qkv_bias: bool = True, dropout: float = 0.0):
        super().__init__(embed_dim, num_heads, qkv_bias, dropout)
        self.add_module("qkv", SeparateQKV(embed_dim, qkv_bias))


def fuse_qkv(
    queries: nn.Linear, keys: nn.Linear, values: nn.Linear, num_heads: int, order: str = "qkv h d"
) -> dict[str, Tensor]:
    """Put the weights of three Linears, each from D to h·d, together for a fused one to load.

    Its rows run in the order "qkv h d" as `split_qkv` reads them, "h d qkv" as the einops tutorial
    does, or "h qkv d". All have the shape (3·h·d, D): in a wrong order they load in silence.
    """
    check_choice("order", order, "qkv h d", "h d qkv", "h qkv d")
    check_heads(queries.out_features, num_heads)
    three = [linear.state_dict() for linear in (queries, keys, values)]
    shapes = [{name: tuple(tensor.shape) for name, tensor in state.items()} for state in three]
    if shapes != shapes[:1] * 3:
        raise ValueError(f"queries, keys and values hold {shapes}; give three Linears alike")
    rows = f"qkv (h d) ... -> ({order}) ..."
    return {name: rearrange([s[name] for s in three], rows, h=num_heads) for name in three[0]}


class Float32Attention(MultiHeadAttention):
    """Attention by the equation, in 32 bits even under autocast (which on the CPU uses 16)."""

    def forward(self, x: Tensor, mask: Tensor | None = None, return_attention: bool = False):
        """Mix tokens (B, N, D), as `MultiHeadAttention` does."""
        check_tokens(x, self.embed_dim)
        qkv, device = self.qkv(x), x.device.type
        wide = torch.promote_types(qkv.dtype, torch.float32)  # float64 stays as it is
        q, k, v = split_qkv(qkv.to(wide), self.num_heads)  # each (B, h, N, d)
        rate = self.dropout.p if self.training else 0.0
        available = torch.amp.is_autocast_available(device)  # not on meta, for one
        with torch.autocast(device, enabled=False) if available else nullcontext():
            mixed, weights = scaled_dot_product_attention(q, k, v, mask, rate)
        mixed = self.dropout(self.proj(merge_heads(mixed).to(qkv.dtype)))  # (B, N, D)
        return (mixed, weights) if return_attention else mixed
