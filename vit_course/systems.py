"""Lesson 11: the ViTs of three other people, repaired: systems A, B and C."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from vit_steps import MLP, Encoder, PatchEmbedding, ViT, ViTConfig, inputs
from vit_steps.attention import scaled_dot_product_attention
from vit_steps.dropping import DropPath, drop_path_rates, kept_count, random_masking, unmask
from vit_steps.heads import merge_heads, split_qkv
from vit_steps.patches import grid_size
from vit_steps.variants import Float32Attention, SeparateAttention
from vit_steps.vit import init_weights

# A and B -----------------------------------------------------------------------------------------

EINOPS = ViTConfig(num_heads=8, pool="mean", norm_eps=1e-5)
PROJECT = ViTConfig(depth=15, num_heads=3, pool="mean", norm_eps=1e-5, dropout=0.2)


class EinopsViT(ViT):
    """A ViT whose head reads LayerNorm(mean of all tokens, cls too), not the mean of the norms."""

    def read(self, x: Tensor) -> Tensor:
        """Give the head its (B, D) of the last block's tokens (B, N, D)."""
        return self.norm(x.mean(dim=1))


class HeadsFirstQKV(nn.Linear):
    """A fused Linear whose rows run (h d qkv), read as such: its output runs (qkv h d), as ours."""

    def __init__(self, embed_dim: int, num_heads: int, bias: bool = True):
        super().__init__(embed_dim, 3 * embed_dim, bias)
        self.num_heads = num_heads

    def forward(self, input: Tensor) -> Tensor:
        """Turn tokens (B, N, D) into (B, N, 3·D)."""
        rows = "b n (h d qkv) -> b n (qkv h d)"
        return rearrange(super().forward(input), rows, h=self.num_heads, qkv=3)


def separate_qkv(model: ViT, attention: type[SeparateAttention] = SeparateAttention) -> ViT:
    """Give each block of a new model separate q, k and v, and draw all its Linears anew."""
    c = model.config
    for block in model.blocks:
        block.attn = attention(c.embed_dim, c.num_heads, c.qkv_bias, c.dropout)
    return model.apply(init_weights)


def einops_vit(config: ViTConfig = EINOPS, fused: bool = True) -> ViT:
    """Make system A: the einops tutorial's ViT-B/16 (Zuppichini 2021), repaired.

    86,567,656 parameters, 17.5638 G multiply-adds. Its fused rows run (h d qkv); `fused=False` is
    the tutorial's first form, with separate q, k, v. `replace(EINOPS, …)`: other sizes.
    """
    inputs.check_choice("pool", config.pool, "mean")
    c, model = config, EinopsViT(config)
    if not fused:
        return separate_qkv(model)
    for block in model.blocks:
        linear = HeadsFirstQKV(c.embed_dim, c.num_heads, c.qkv_bias)
        linear.load_state_dict(block.get_submodule("attn.qkv").state_dict())
        block.set_submodule("attn.qkv", linear)
    return model


class NormGELU(nn.LayerNorm):
    """LayerNorm, then GELU."""

    def forward(self, input: Tensor) -> Tensor:
        """Turn tokens (B, N, D) into tokens (B, N, D)."""
        return F.gelu(super().forward(input))


class ProjectAttention(SeparateAttention):
    """B's attention: dropout on the weights alone, which are returned after it."""

    def forward(self, x: Tensor, mask: Tensor | None = None, return_attention: bool = False):
        """Mix tokens (B, N, D), as `MultiHeadAttention` does."""
        q, k, v = split_qkv(self.qkv(x), self.num_heads)  # each (B, h, N, d)
        _, weights = scaled_dot_product_attention(q, k, v[..., :0], mask)  # width 0: none mixed
        weights = self.dropout(weights)  # (B, h, N, N)
        mixed = self.proj(merge_heads(weights @ v))  # (B, N, D)
        return (mixed, weights) if return_attention else mixed


def project_vit(config: ViTConfig = PROJECT) -> ViT:
    """Make system B: a course project's ViT, repaired: 15 blocks, 3 heads, separate q, k and v.

    GELU after each norm of the blocks; ReLU in the MLP; dropout on the attention's weights and
    between the MLP's Linears; LayerNorm(mean of all tokens), head. 107,831,272 parameters, 21.9257
    G multiply-adds.
    """
    inputs.check_choice("pool", config.pool, "mean")
    c, model = config, EinopsViT(replace(config, dropout=0.0))
    model.config = config
    for block in model.blocks:
        block.norm1, block.norm2 = (NormGELU(c.embed_dim, c.norm_eps) for _ in range(2))
        block.set_submodule("mlp.act", nn.Sequential(nn.ReLU(), nn.Dropout(c.dropout)))
    return separate_qkv(model, ProjectAttention)


# C -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FaceConfig:
    """The sizes of a `FaceViT`, most as in `ViTConfig`; the last three are for training alone."""

    image_size: int | tuple[int, int] = 112
    patch_size: int = 16
    in_channels: int = 3
    num_features: int = 1000  # numbers that describe a face
    embed_dim: int = 768
    depth: int = 12
    num_heads: int = 12
    norm: str = "layer"  # or "batch": over each token's place
    mask_ratio: float = 0.1  # share of the tokens left out
    drop_path: float = 0.0  # share of the last block's branches left out
    checkpointing: bool = False  # keep each block's input alone (Chen et al. 2016)

    def __post_init__(self):
        object.__setattr__(self, "image_size", inputs.as_size(self.image_size))
        inputs.check_sizes(num_features=self.num_features, depth=self.depth)
        inputs.check_fraction(drop_path=self.drop_path)
        inputs.check_choice("norm", self.norm, "layer", "batch")
        inputs.check_choice("checkpointing", self.checkpointing, True, False)
        kept_count(prod(grid_size(self.image_size, self.patch_size)), self.mask_ratio)
        if self.norm == "batch" and (self.mask_ratio or self.checkpointing):
            problem = "batch norm has a mean for each place, where masking leaves gaps"
            hint = 'give mask_ratio=0.0 and checkpointing=False, or norm="layer"'
            raise ValueError(f"{problem} and checkpointing counts twice; {hint}")


FACE = FaceConfig()


def token_norm(kind: str, embed_dim: int, num_tokens: int) -> nn.LayerNorm | nn.BatchNorm1d:
    """Make a norm of tokens (B, N, D): "layer" for each token, "batch" for each place."""
    return nn.LayerNorm(embed_dim) if kind == "layer" else nn.BatchNorm1d(num_tokens)


class FaceBlock(nn.Module):
    """An encoder block with `DropPath`, ReLU6, a choice of norms, and no qkv bias."""

    def __init__(self, embed_dim: int, num_heads: int, num_tokens: int, norm: str, rate: float):
        super().__init__()
        self.norm1 = token_norm(norm, embed_dim, num_tokens)
        self.attn = Float32Attention(embed_dim, num_heads, qkv_bias=False)
        self.norm2 = token_norm(norm, embed_dim, num_tokens)
        self.mlp = MLP(embed_dim, 4 * embed_dim)
        self.mlp.add_module("act", nn.ReLU6())
        self.drop_path = DropPath(rate)

    def forward(self, x: Tensor) -> Tensor:
        """Turn tokens (B, N, D) into tokens (B, N, D)."""
        x = x + self.drop_path(self.attn(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class FaceViT(nn.Module):
    """A ViT without cls whose head reads all tokens side by side; `face_vit` makes one."""

    def __init__(self, config: FaceConfig):
        super().__init__()
        c = self.config = config
        self.patch_embed = PatchEmbedding(c.image_size, c.patch_size, c.in_channels, c.embed_dim)
        n = prod(self.patch_embed.grid)
        self.pos_embed = nn.Parameter(torch.empty(1, n, c.embed_dim))
        # Without masking it learns nothing, but stays: so the same weights load either way.
        self.mask_token = nn.Parameter(torch.empty(1, 1, c.embed_dim), c.mask_ratio > 0)
        rates = drop_path_rates(c.drop_path, c.depth)
        self.blocks = Encoder(FaceBlock(c.embed_dim, c.num_heads, n, c.norm, r) for r in rates)
        self.norm = token_norm(c.norm, c.embed_dim, n)
        self.head = nn.Sequential(
            nn.Linear(n * c.embed_dim, c.embed_dim, bias=False),
            nn.BatchNorm1d(c.embed_dim, eps=2e-5),
            nn.Linear(c.embed_dim, c.num_features, bias=False),
            nn.BatchNorm1d(c.num_features, eps=2e-5),
        )
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        nn.init.trunc_normal_(self.mask_token, std=0.02)
        self.apply(init_weights)

    def forward(self, images: Tensor) -> Tensor:
        """Turn images (B, C, H, W), in training at least 2 of them, into features."""
        x = self.patch_embed(images) + self.pos_embed  # (B, n, D)
        order, twice = None, self.training and self.config.checkpointing
        if self.training and self.config.mask_ratio:
            x, order, _ = random_masking(x, self.config.mask_ratio)  # (B, K, D): less to compute
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if twice else block(x)
        x = self.norm(x)
        if order is not None:
            x = unmask(x, order, self.mask_token)  # (B, n, D): the head tells places apart
        return self.head(x.flatten(1))


def face_vit(config: FaceConfig = FACE) -> FaceViT:
    """Make system C: a ViT for faces (InsightFace's arcface_torch), repaired: 49 patches.

    115,330,256 parameters (batch norm: 115,294,306), 4.2646 G multiply-adds (training: 3.8314).
    """
    return FaceViT(config)


# All, small --------------------------------------------------------------------------------------


def small() -> dict[str, Callable[[], nn.Module]]:
    """Give what makes your ViT and A, B and C, each small, for scikit-learn's digits (B, 1, 8, 8).

    16 patches of 2×2 pixels, 2 blocks, 24 numbers a token, ten classes.
    """
    size: Any = dict(image_size=8, patch_size=2, in_channels=1, embed_dim=24, depth=2)
    return {
        "yours": lambda: ViT(ViTConfig(**size, num_heads=3, num_classes=10)),
        "A": lambda: einops_vit(replace(EINOPS, **size, num_classes=10)),
        "B": lambda: project_vit(replace(PROJECT, **size, num_classes=10)),
        "C": lambda: face_vit(FaceConfig(**size, num_heads=3, num_features=10)),
    }
