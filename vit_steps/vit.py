"""Lesson 06: the head, and the whole Vision Transformer."""

from copy import deepcopy
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional as F

from . import inputs
from .encoder import Encoder, EncoderBlock
from .inputs import as_pair
from .patches import PatchEmbedding, grid_size
from .tokens import TokenEmbedding

# Dosovitskiy et al. 2021, table 1 (B, L, H); Touvron et al. 2021, table 1 (Ti, S).
PRESETS: dict[str, dict[str, Any]] = {
    "Ti/16": dict(patch_size=16, embed_dim=192, depth=12, num_heads=3),
    "S/16": dict(patch_size=16, embed_dim=384, depth=12, num_heads=6),
    "B/16": dict(patch_size=16, embed_dim=768, depth=12, num_heads=12),
    "B/32": dict(patch_size=32, embed_dim=768, depth=12, num_heads=12),
    "L/16": dict(patch_size=16, embed_dim=1024, depth=24, num_heads=16),
    "L/32": dict(patch_size=32, embed_dim=1024, depth=24, num_heads=16),
    "H/14": dict(patch_size=14, embed_dim=1280, depth=32, num_heads=16),
}


@dataclass(frozen=True)
class ViTConfig:
    """What makes one ViT differ from another. It checks itself; the default is B/16 for ImageNet.

    Args:
        image_size: in pixels, one number for a square or (height, width).
        patch_size: P, in pixels; divides both sides.
        in_channels: C, 3 for RGB.
        num_classes: how many logits the head gives; 0 leaves the head out.
        embed_dim: D, the width of a token.
        depth: L, the number of encoder blocks.
        num_heads: h; divides D.
        mlp_ratio: width of the MLP's hidden layer over D; their product is a whole number.
        qkv_bias: whether the query, key and value projections add a bias.
        dropout: share of the numbers set to zero in training.
        pool: what the head reads: "cls", the cls token, or "mean", the mean of the patch tokens.
        norm_eps: what LayerNorm adds to the variance.
    """

    image_size: int | tuple[int, int] = 224
    patch_size: int = 16
    in_channels: int = 3
    num_classes: int = 1000
    embed_dim: int = 768
    depth: int = 12
    num_heads: int = 12
    mlp_ratio: float = 4.0
    qkv_bias: bool = True
    dropout: float = 0.0
    pool: str = "cls"
    norm_eps: float = 1e-6

    def __post_init__(self):
        for name, value in vars(self).items():  # NumPy's whole numbers become Python's
            if inputs.is_whole(value):
                object.__setattr__(self, name, int(value))
        object.__setattr__(self, "image_size", inputs.as_size(self.image_size))
        grid_size(self.image_size, self.patch_size)
        inputs.check_sizes(in_channels=self.in_channels, depth=self.depth)
        inputs.check_sizes(0, num_classes=self.num_classes)
        inputs.check_heads(self.embed_dim, self.num_heads)
        inputs.check_fraction(dropout=self.dropout, norm_eps=self.norm_eps)
        inputs.mlp_width(self.embed_dim, self.mlp_ratio)
        inputs.check_choice("qkv_bias", self.qkv_bias, True, False)
        inputs.check_choice("pool", self.pool, "cls", "mean")

    @classmethod
    def preset(cls, name: str, **changes) -> "ViTConfig":
        """Make a published size by its name, such as "B/16", with any option changed."""
        if name not in PRESETS:
            raise ValueError(f"no preset {name!r}; there are {', '.join(PRESETS)}")
        return replace(cls(**PRESETS[name]), **changes)


def init_weights(module: nn.Module) -> None:
    """Start every Linear from a truncated normal of standard deviation 0.02 and a zero bias."""
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def pool_tokens(tokens: Tensor, pool: str = "cls") -> Tensor:
    """Give what the head reads of the tokens (Dosovitskiy et al. 2021, eq. 4 and appendix D.3).

    Of (B, N, D), cls first, "cls" gives the cls token, "mean" the mean of the patch tokens: (B, D).
    """
    inputs.check_tokens(tokens)
    inputs.check_choice("pool", pool, "cls", "mean")
    return tokens[:, 0] if pool == "cls" else tokens[:, 1:].mean(dim=1)


class ViT(nn.Module):
    """The Vision Transformer (Dosovitskiy et al. 2021, figure 1 and eq. 1 to 4), of these sizes."""

    def __init__(self, config: ViTConfig):
        super().__init__()
        if not isinstance(config, ViTConfig):
            raise TypeError(f'config is {config!r}; give one, such as ViTConfig.preset("B/16")')
        c = self.config = config
        self.patch_embed = PatchEmbedding(c.image_size, c.patch_size, c.in_channels, c.embed_dim)
        self.tokens = TokenEmbedding(prod(self.patch_embed.grid), c.embed_dim, c.dropout)
        self.blocks = Encoder(
            EncoderBlock(c.embed_dim, c.num_heads, c.mlp_ratio, c.qkv_bias, c.dropout, c.norm_eps)
            for _ in range(c.depth)
        )
        self.norm = nn.LayerNorm(c.embed_dim, eps=c.norm_eps)
        self.head = nn.Linear(c.embed_dim, c.num_classes) if c.num_classes else nn.Identity()
        self.apply(init_weights)

    def read(self, x: Tensor) -> Tensor:
        """Turn the last block's tokens (B, N, D), not yet normed, into what the head reads, (B, D).

        A subclass whose head reads something else overrides this method alone.
        """
        return pool_tokens(self.norm(x), self.config.pool)

    def pre_logits(self, images: Tensor) -> Tensor:
        """Turn images (B, C, H, W) into what the head reads, (B, D)."""
        return self.read(self.blocks(self.tokens(self.patch_embed(images))))

    def features(self, images: Tensor, return_attention: bool = False) -> Any:
        """Turn images (B, C, H, W) into normed tokens (B, N, D), cls first; else as `forward`."""
        x = self.blocks(self.tokens(self.patch_embed(images)), return_attention=return_attention)
        return (self.norm(x[0]), x[1]) if return_attention else self.norm(x)

    def forward(self, images: Tensor, return_attention: bool = False):
        """Turn images (B, C, H, W) into logits (B, classes); without a head into (B, D).

        With `return_attention` it gives a tuple: these, and a list of each block's (B, h, N, N).
        """
        x = self.tokens(self.patch_embed(images))  # (B, N, D)
        x = self.blocks(x, return_attention=return_attention)
        x, attention = x if return_attention else (x, [])
        logits = self.head(self.read(x))
        return (logits, attention) if return_attention else logits

    def with_classes(self, num_classes: int) -> "ViT":
        """Copy this model, with a new, untrained head for so many classes; 0 takes it off."""
        model = deepcopy(self)
        c = model.config = replace(self.config, num_classes=num_classes)
        head = nn.Linear(c.embed_dim, c.num_classes) if c.num_classes else nn.Identity()
        model.head = head.apply(init_weights).to(self.norm.weight).train(self.training)
        return model

    def at_size(self, image_size: int | tuple[int, int]) -> "ViT":
        """Copy it for images of another size, positions resized; ValueError if P does not fit."""
        model = deepcopy(self)
        model.config = replace(self.config, image_size=image_size)
        patches, old = model.patch_embed, self.tokens.pos_embed
        patches.image_size = as_pair(image_size)
        patches.grid = grid_size(image_size, self.config.patch_size)
        positions = resize_positions(old.detach(), self.patch_embed.grid, patches.grid)
        model.tokens.pos_embed = nn.Parameter(positions, old.requires_grad)
        return model


def resize_positions(
    pos_embed: Tensor, grid: int | tuple[int, int], new_grid: int | tuple[int, int]
) -> Tensor:
    """Fit learned positions to another grid of patches (Dosovitskiy et al. 2021, section 3.2).

    From (1, 1 + rows·cols, D) to (1, 1 + new rows·new cols, D): those of the patches are resized as
    a picture of D channels (bicubic, antialiased), that of cls stays. One number means a square.
    """
    (rows, cols), new = as_pair(grid, "grid"), as_pair(new_grid, "new_grid")
    inputs.check_tokens(pos_embed, count=1 + rows * cols)
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
