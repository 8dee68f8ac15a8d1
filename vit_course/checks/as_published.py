"""The einops tutorial's ViT (Zuppichini 2021) with the mistakes of its publication, in our words.

Lesson 12 gives it to the doctor. `vit_course.systems.einops_vit` is the same, repaired.
"""

# pyright: reportAttributeAccessIssue=false
# ruff: noqa: D102 (above: no tensor has a `mask_fill`, which is one of the mistakes)

import torch
from einops import rearrange
from einops.layers.torch import Reduce
from torch import Tensor, nn


class Embedding(nn.Module):
    """Patches, cls and positions; all positions start as large as a standard normal number."""

    def __init__(self, image_size: int, patch_size: int, embed_dim: int):
        super().__init__()
        self.proj = nn.Conv2d(3, embed_dim, patch_size, stride=patch_size)
        self.cls_token = nn.Parameter(torch.randn(1, 1, embed_dim))
        self.pos_embed = nn.Parameter(torch.randn((image_size // patch_size) ** 2 + 1, embed_dim))

    def forward(self, images: Tensor) -> Tensor:
        patches = rearrange(self.proj(images), "b d h w -> b (h w) d")
        x = torch.cat([self.cls_token.expand(len(patches), -1, -1), patches], dim=1)
        x += self.pos_embed
        return x


class Attention(nn.Module):
    """The scale comes after the softmax, is that of D, and a mask would stop with an error."""

    def __init__(self, embed_dim: int, num_heads: int):
        super().__init__()
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        rows = self.qkv(x)
        q, k, v = rearrange(rows, "b n (h d qkv) -> qkv b h n d", h=self.num_heads, qkv=3)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k)
        if mask is not None:
            scores.mask_fill(~mask, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1) / self.embed_dim**0.5
        mixed = torch.einsum("bhqk,bhkd->bhqd", weights, v)
        return self.proj(rearrange(mixed, "b h n d -> b n (h d)"))


class Add(nn.Module):
    """A residual connection around a branch, in place."""

    def __init__(self, *branch: nn.Module):
        super().__init__()
        self.branch = nn.Sequential(*branch)

    def forward(self, x: Tensor) -> Tensor:
        change = self.branch(x)
        change += x
        return change


def block(embed_dim: int, num_heads: int) -> nn.Sequential:
    """Make a pre-norm block of these two branches."""
    mlp = nn.Linear(embed_dim, 4 * embed_dim), nn.GELU(), nn.Linear(4 * embed_dim, embed_dim)
    return nn.Sequential(
        Add(nn.LayerNorm(embed_dim), Attention(embed_dim, num_heads)),
        Add(nn.LayerNorm(embed_dim), *mlp),
    )


def vit(
    image_size: int = 224,
    patch_size: int = 16,
    num_classes: int = 1000,
    embed_dim: int = 768,
    depth: int = 12,
    num_heads: int = 8,
) -> nn.Sequential:
    """Make the whole model, which turns images (B, 3, H, W) into logits (B, num_classes)."""
    return nn.Sequential(
        Embedding(image_size, patch_size, embed_dim),
        nn.Sequential(*(block(embed_dim, num_heads) for _ in range(depth))),
        Reduce("b n d -> b d", "mean"),
        nn.LayerNorm(embed_dim),
        nn.Linear(embed_dim, num_classes),
    )
