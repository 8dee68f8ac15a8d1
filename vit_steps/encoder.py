"""Lesson 05: attention moves information between tokens, the MLP works on each; repeat."""

from torch import Tensor, nn

from .attention import MultiHeadAttention
from .inputs import check_fraction, check_sizes, check_tokens, mlp_width


class MLP(nn.Module):
    """Two Linears with a GELU between, the same for every token (Dosovitskiy et al. 2021, eq. 3).

    `hidden_dim` is the width between the two; dropout comes after each Linear.
    """

    def __init__(self, embed_dim: int, hidden_dim: int, dropout: float = 0.0):
        super().__init__()
        check_sizes(embed_dim=embed_dim, hidden_dim=hidden_dim)
        check_fraction(dropout=dropout)
        self.embed_dim = embed_dim
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden_dim, embed_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Turn tokens (B, N, D) into tokens (B, N, D)."""
        check_tokens(x, self.embed_dim)
        x = self.dropout(self.act(self.fc1(x)))  # (B, N, hidden)
        return self.dropout(self.fc2(x))  # (B, N, D)


class EncoderBlock(nn.Module):
    """Pre-norm attention and pre-norm MLP, each added to what came in (eq. 2 and 3, figure 1).

    Its sizes are as in `ViTConfig`.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        mlp_ratio: float = 4.0,
        qkv_bias: bool = True,
        dropout: float = 0.0,
        norm_eps: float = 1e-6,
    ):
        super().__init__()
        hidden_dim = mlp_width(embed_dim, mlp_ratio)
        check_fraction(norm_eps=norm_eps)
        self.embed_dim = embed_dim
        self.norm1 = nn.LayerNorm(embed_dim, eps=norm_eps)
        self.attn = MultiHeadAttention(embed_dim, num_heads, qkv_bias, dropout)
        self.norm2 = nn.LayerNorm(embed_dim, eps=norm_eps)
        self.mlp = MLP(embed_dim, hidden_dim, dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None, return_attention: bool = False):
        """Turn tokens (B, N, D) into tokens (B, N, D), called as `MultiHeadAttention` is."""
        check_tokens(x, self.embed_dim)
        mixed = self.attn(self.norm1(x), mask, return_attention)
        mixed, weights = mixed if return_attention else (mixed, None)
        x = x + mixed
        x = x + self.mlp(self.norm2(x))
        return (x, weights) if return_attention else x


class Encoder(nn.ModuleList):
    """A list of L encoder blocks that runs its tokens through all of them.

    It is made from its blocks, `Encoder(EncoderBlock(768, 12) for _ in range(12))`; `encoder[:6]`
    is a shorter encoder.
    """

    def forward(self, x: Tensor, mask: Tensor | None = None, return_attention: bool = False):
        """Turn tokens (B, N, D) into tokens (B, N, D); the mask is the same for all blocks.

        With `return_attention` it gives a tuple: these, and a list of each block's (B, h, N, N).
        """
        attention = []
        for block in self:
            x = block(x, mask, return_attention)
            if return_attention:
                x, weights = x
                attention.append(weights)
        return (x, attention) if return_attention else x
