"""Lesson 02: the cls token joins the patches, and every token learns where it stands."""

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional as F

from .inputs import as_pair, check_fraction, check_sizes, check_tokens


class TokenEmbedding(nn.Module):
    """A cls token in front, a position added to each token (Dosovitskiy et al. 2021, eq. 1).

    Both are learned, and start from a truncated normal of standard deviation 0.02: small beside
    the patches, so that the content is not drowned.

    Args:
        num_patches: tokens that come in.
        embed_dim: D.
        dropout: share of the numbers set to zero in training, after the positions are added.

    Raises:
        ValueError: a size below 1, or a dropout outside [0, 1).
    """

    def __init__(self, num_patches: int, embed_dim: int, dropout: float = 0.0):
        super().__init__()
        check_sizes(num_patches=num_patches, embed_dim=embed_dim)
        check_fraction(dropout=dropout)
        self.cls_token = nn.Parameter(torch.empty(1, 1, embed_dim))
        self.pos_embed = nn.Parameter(torch.empty(1, num_patches + 1, embed_dim))
        self.dropout = nn.Dropout(dropout)
        nn.init.trunc_normal_(self.cls_token, std=0.02)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)

    def forward(self, patches: Tensor) -> Tensor:
        """Turn patch tokens (B, N - 1, D) into all tokens (B, N, D), cls first.

        Raises:
            ValueError: another number or width of patches than this embedding was made for.
        """
        _, tokens, embed_dim = self.pos_embed.shape
        check_tokens(patches, embed_dim, count=tokens - 1)
        cls = self.cls_token.expand(patches.shape[0], -1, -1)  # (B, 1, D)
        x = torch.cat([cls, patches], dim=1)  # (B, N, D)
        return self.dropout(x + self.pos_embed)


def resize_positions(
    pos_embed: Tensor, grid: int | tuple[int, int], new_grid: int | tuple[int, int]
) -> Tensor:
    """Fit learned positions to another grid of patches (Dosovitskiy et al. 2021, section 3.2).

    The positions of the patches are read as a picture of `grid` pixels with D channels and resized
    (bicubic, antialiased); the cls token has no place in that picture, and keeps its own.

    Args:
        pos_embed: (1, 1 + rows·cols, D), cls first.
        grid: (rows, cols) that they were made for, or one number for a square.
        new_grid: (rows, cols) wanted.

    Returns:
        (1, 1 + new rows·new cols, D).

    Raises:
        TypeError: pos_embed does not hold floats.
        ValueError: pos_embed does not belong to `grid`.
    """
    (rows, cols), new = as_pair(grid, "grid"), as_pair(new_grid, "new_grid")
    check_tokens(pos_embed, count=1 + rows * cols)
    if not pos_embed.is_floating_point():
        raise TypeError(f"pos_embed holds {pos_embed.dtype}, not floats")
    cls, patches = pos_embed[:, :1], pos_embed[:, 1:]
    picture = rearrange(patches, "b (row col) d -> b d row col", row=rows)
    # At least 32 bits, contiguous: torch 2.13 gets other layouts wrong for one column. On the CPU
    # for MPS, which learnt it late.
    device = "cpu" if picture.device.type == "mps" else picture.device
    picture = picture.to(device, torch.promote_types(picture.dtype, torch.float32)).contiguous()
    picture = F.interpolate(picture, size=new, mode="bicubic", antialias=True)
    patches = rearrange(picture, "b d row col -> b (row col) d").to(cls)
    return torch.cat([cls, patches], dim=1)
