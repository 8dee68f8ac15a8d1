"""The einops tutorial's ViT (Zuppichini 2021) as it was published, with its mistakes.

Lesson 12 gives it to the doctor. `vit_steps.variants.einops_vit` is the same, repaired.
"""

import torch
from einops import rearrange, repeat
from einops.layers.torch import Rearrange, Reduce
from torch import Tensor, nn
from torch.nn import functional as F


class PatchEmbedding(nn.Module):
    def __init__(self, in_channels: int, patch_size: int, emb_size: int, img_size: int):
        super().__init__()
        self.projection = nn.Sequential(
            nn.Conv2d(in_channels, emb_size, kernel_size=patch_size, stride=patch_size),
            Rearrange("b e h w -> b (h w) e"),
        )
        self.cls_token = nn.Parameter(torch.randn(1, 1, emb_size))
        self.positions = nn.Parameter(torch.randn((img_size // patch_size) ** 2 + 1, emb_size))

    def forward(self, x: Tensor) -> Tensor:
        x = self.projection(x)
        cls_tokens = repeat(self.cls_token, "() n e -> b n e", b=x.shape[0])
        x = torch.cat([cls_tokens, x], dim=1)
        x += self.positions
        return x


class MultiHeadAttention(nn.Module):
    def __init__(self, emb_size: int, num_heads: int, dropout: float = 0):
        super().__init__()
        self.emb_size = emb_size
        self.num_heads = num_heads
        self.qkv = nn.Linear(emb_size, emb_size * 3)
        self.att_drop = nn.Dropout(dropout)
        self.projection = nn.Linear(emb_size, emb_size)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        order = "b n (h d qkv) -> qkv b h n d"
        queries, keys, values = rearrange(self.qkv(x), order, h=self.num_heads, qkv=3)
        energy = torch.einsum("bhqd, bhkd -> bhqk", queries, keys)
        if mask is not None:
            energy.mask_fill(~mask, torch.finfo(torch.float32).min)
        scaling = self.emb_size ** (1 / 2)
        att = F.softmax(energy, dim=-1) / scaling
        att = self.att_drop(att)
        out = torch.einsum("bhal, bhlv -> bhav", att, values)
        out = rearrange(out, "b h n d -> b n (h d)")
        return self.projection(out)


class ResidualAdd(nn.Module):
    def __init__(self, fn: nn.Module):
        super().__init__()
        self.fn = fn

    def forward(self, x: Tensor, **kwargs) -> Tensor:
        res = x
        x = self.fn(x, **kwargs)
        x += res
        return x


class FeedForwardBlock(nn.Sequential):
    def __init__(self, emb_size: int, expansion: int = 4, drop_p: float = 0.0):
        super().__init__(
            nn.Linear(emb_size, expansion * emb_size),
            nn.GELU(),
            nn.Dropout(drop_p),
            nn.Linear(expansion * emb_size, emb_size),
        )


class TransformerEncoderBlock(nn.Sequential):
    def __init__(self, emb_size: int, num_heads: int, drop_p: float = 0.0):
        attention = MultiHeadAttention(emb_size, num_heads)
        super().__init__(
            ResidualAdd(nn.Sequential(nn.LayerNorm(emb_size), attention, nn.Dropout(drop_p))),
            ResidualAdd(
                nn.Sequential(
                    nn.LayerNorm(emb_size), FeedForwardBlock(emb_size), nn.Dropout(drop_p)
                )
            ),
        )


class ViT(nn.Sequential):
    def __init__(
        self,
        in_channels: int = 3,
        patch_size: int = 16,
        emb_size: int = 768,
        img_size: int = 224,
        depth: int = 12,
        num_heads: int = 8,
        n_classes: int = 1000,
    ):
        super().__init__(
            PatchEmbedding(in_channels, patch_size, emb_size, img_size),
            nn.Sequential(*[TransformerEncoderBlock(emb_size, num_heads) for _ in range(depth)]),
            nn.Sequential(
                Reduce("b n e -> b e", reduction="mean"),
                nn.LayerNorm(emb_size),
                nn.Linear(emb_size, n_classes),
            ),
        )
