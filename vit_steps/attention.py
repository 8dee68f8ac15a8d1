"""Lesson 04: each query mixes the values by how well it matches their keys."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .heads import merge_heads, split_qkv
from .inputs import check_axes, check_fraction, check_heads, check_tokens


def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Mix the values by how well each query matches each key (Vaswani et al. 2017, eq. 1).

    Queries, keys and values (B, h, N, d) give the mixed values (B, h, N, d), and the weights
    (B, h, N, N), whose rows sum to 1, as they are before `dropout` sets that share of them to zero.

    The mask is boolean, True where a query may look: one table (N, N) for all, or all four axes, as
    (B, 1, 1, N) for keys that are hidden in a sample; each side is 1 or the full size. ValueError
    for one that could mean two things, and (on the CPU alone) for a query that may look nowhere.
    """
    check_attention(q, k, v, mask, dropout)
    scaled = q / q.shape[-1] ** 0.5  # the same as scaling the scores, but fewer numbers
    scores = scaled @ k.mT  # (B, h, N, N)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    kept = F.dropout(weights, dropout) if dropout else weights
    return kept @ v, weights


def check_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float) -> None:
    """Refuse shapes that would broadcast in silence, and masks that would give NaN."""
    check_fraction(dropout=dropout)
    for name, value in (("q", q), ("k", k), ("v", v)):
        check_axes(name, value, "")
    flat = min(q.ndim, k.ndim, v.ndim) < 2 or q.shape[-1] == 0
    alike = q.shape[:-2] == k.shape[:-2] and q.shape[-1:] == k.shape[-1:]
    if flat or not alike or k.shape[:-1] != v.shape[:-1]:
        shapes = f"q is {tuple(q.shape)}, k is {tuple(k.shape)}, v is {tuple(v.shape)}"
        hint = "the same width to q and k, the same length to k and v"
        raise ValueError(f"{shapes}; give the same batch and heads to all, {hint}")
    if mask is not None:
        check_mask(mask, (*q.shape[:-1], k.shape[-2]))


def check_mask(mask: Tensor, shape: tuple[int, ...]) -> None:
    """Refuse a mask that is not boolean, does not fit weights of this shape, or blinds a query.

    A table (N, N) must not look like one of samples and keys. A blind query, which gives NaN, is
    looked for where no GPU has to be waited for.
    """
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        kind = getattr(mask, "dtype", type(mask).__name__)
        raise TypeError(f"mask holds {kind}; give booleans, True where a query may look")
    traced = torch.compiler.is_compiling()  # where the batch may be of any size
    sides = zip(mask.shape, shape[-mask.ndim :], strict=True)
    fits = mask.ndim in (2, len(shape)) and all(side in (1, full) for side, full in sides)
    if not fits or (mask.ndim < len(shape) and not traced and mask.shape[0] == shape[0] > 1):
        forms = "one table (N, N) for all, (B, 1, 1, N) for tokens hidden in each sample"
        hint = f"give mask[None, None] of {forms}, or (1, h, N, N) for a table a head"
        raise ValueError(f"mask is {tuple(mask.shape)} where the weights are {shape}; {hint}")
    try:
        blind = not traced and mask.device.type == "cpu" and not mask.any(dim=-1).all()
    except RuntimeError:  # a fake tensor, or one under vmap, has no values to look at
        return
    if blind:
        raise ValueError("mask has a row of False: that query may look nowhere; let it see itself")


class MultiHeadAttention(nn.Module):
    """Attention in several heads, and a projection that mixes them (Vaswani et al. 2017, 3.2.2).

    Its sizes are as in `ViTConfig`; dropout falls on the weights, and on the output.
    """

    def __init__(self, embed_dim: int, num_heads: int, qkv_bias: bool = True, dropout: float = 0.0):
        super().__init__()
        check_heads(embed_dim, num_heads)
        check_fraction(dropout=dropout)
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)  # rows (qkv h d)
        self.proj = nn.Linear(embed_dim, embed_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None, return_attention: bool = False):
        """Mix tokens (B, N, D) by fused attention, or, to return the weights, by the equation.

        The mask is as in `scaled_dot_product_attention`. With `return_attention` it gives a tuple:
        the mixed tokens (B, N, D) and the weights (B, h, N, N).
        """
        check_tokens(x, self.embed_dim)
        q, k, v = split_qkv(self.qkv(x), self.num_heads)  # each (B, h, N, d)
        rate = self.dropout.p if self.training else 0.0
        if return_attention:
            mixed, weights = scaled_dot_product_attention(q, k, v, mask, rate)
            return self.dropout(self.proj(merge_heads(mixed))), weights
        if mask is not None:
            check_mask(mask, (*q.shape[:-1], k.shape[-2]))
        mixed = F.scaled_dot_product_attention(q, k, v, mask, rate)
        return self.dropout(self.proj(merge_heads(mixed)))  # (B, N, D)
