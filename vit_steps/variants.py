"""Lesson 11: what other people's ViTs change, piece by piece, and three of them put together."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import prod

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from . import inputs
from .attention import MultiHeadAttention, scaled_dot_product_attention
from .dropping import DropPath, drop_path_rates, kept_count, random_masking, unmask
from .encoder import MLP, Encoder
from .heads import merge_heads, split_qkv
from .patches import PatchEmbedding, grid_size
from .vit import ViT, ViTConfig, init_weights


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
    inputs.check_choice("order", order, "qkv h d", "h d qkv", "h qkv d")
    inputs.check_heads(queries.out_features, num_heads)
    three = [linear.state_dict() for linear in (queries, keys, values)]
    shapes = [{name: tuple(tensor.shape) for name, tensor in state.items()} for state in three]
    if shapes != shapes[:1] * 3:
        raise ValueError(f"queries, keys and values hold {shapes}; give three Linears alike")
    rows = f"qkv (h d) ... -> ({order}) ..."
    return {name: rearrange([s[name] for s in three], rows, h=num_heads) for name in three[0]}


class HeadsFirstQKV(nn.Linear):
    """A fused Linear whose rows run (h d qkv), read as such: its output runs (qkv h d), as ours."""

    def __init__(self, embed_dim: int, num_heads: int, bias: bool = True):
        super().__init__(embed_dim, 3 * embed_dim, bias)
        self.num_heads = num_heads

    def forward(self, input: Tensor) -> Tensor:
        """Turn tokens (B, N, D) into (B, N, 3·D)."""
        rows = "b n (h d qkv) -> b n (qkv h d)"
        return rearrange(super().forward(input), rows, h=self.num_heads, qkv=3)


class Float32Attention(MultiHeadAttention):
    """Attention by the equation, in 32 bits even under autocast (which on the CPU uses 16)."""

    def forward(self, x: Tensor, mask: Tensor | None = None, return_attention: bool = False):
        """Mix tokens (B, N, D), as `MultiHeadAttention` does."""
        inputs.check_tokens(x, self.embed_dim)
        qkv, device = self.qkv(x), x.device.type
        wide = torch.promote_types(qkv.dtype, torch.float32)  # float64 stays as it is
        q, k, v = split_qkv(qkv.to(wide), self.num_heads)  # each (B, h, N, d)
        rate = self.dropout.p if self.training else 0.0
        available = torch.amp.is_autocast_available(device)  # not on meta, for one
        with torch.autocast(device, enabled=False) if available else nullcontext():
            mixed, weights = scaled_dot_product_attention(q, k, v, mask, rate)
        mixed = self.dropout(self.proj(merge_heads(mixed).to(qkv.dtype)))  # (B, N, D)
        return (mixed, weights) if return_attention else mixed


def token_norm(kind: str, embed_dim: int, num_tokens: int) -> nn.LayerNorm | nn.BatchNorm1d:
    """Make a norm of tokens (B, N, D): "layer" for each token, "batch" for each place."""
    return nn.LayerNorm(embed_dim) if kind == "layer" else nn.BatchNorm1d(num_tokens)


EINOPS = ViTConfig(num_heads=8, pool="mean", norm_eps=1e-5)
PROJECT = ViTConfig(depth=15, num_heads=3, pool="mean", norm_eps=1e-5, dropout=0.2)


class EinopsViT(ViT):
    """A ViT whose head reads LayerNorm(mean of all tokens, cls too), not the mean of the norms."""

    def read(self, x: Tensor) -> Tensor:
        """Give the head its (B, D) of the last block's tokens (B, N, D)."""
        return self.norm(x.mean(dim=1))


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
        inputs.check_tokens(x, self.embed_dim)
        q, k, v = split_qkv(self.qkv(x), self.num_heads)  # each (B, h, N, d)
        _, weights = scaled_dot_product_attention(q, k, v[..., :0], mask)  # width 0: none mixed
        weights = self.dropout(weights)  # (B, h, N, N)
        mixed = self.proj(merge_heads(weights @ v))  # (B, N, D)
        return (mixed, weights) if return_attention else mixed


def project_vit(config: ViTConfig = PROJECT) -> ViT:
    """Make system B: a course project's ViT, repaired: 15 blocks, 3 heads, separate q, k and v.

    GELU after each norm of the blocks; ReLU in the MLP; dropout on the attention's weights, which
    are returned after it, and between the MLP's Linears; LayerNorm(mean of all tokens), head.
    107,831,272 parameters, 21.9257 G multiply-adds.
    """
    inputs.check_choice("pool", config.pool, "mean")
    c, model = config, EinopsViT(replace(config, dropout=0.0))
    model.config = config
    for block in model.blocks:
        block.norm1, block.norm2 = (NormGELU(c.embed_dim, c.norm_eps) for _ in range(2))
        block.set_submodule("mlp.act", nn.Sequential(nn.ReLU(), nn.Dropout(c.dropout)))
    return separate_qkv(model, ProjectAttention)


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
        n = prod(grid_size(self.image_size, self.patch_size))
        inputs.check_sizes(in_channels=self.in_channels, num_features=self.num_features)
        inputs.check_sizes(depth=self.depth)
        inputs.check_heads(self.embed_dim, self.num_heads)
        inputs.check_fraction(drop_path=self.drop_path)
        inputs.check_choice("norm", self.norm, "layer", "batch")
        inputs.check_choice("checkpointing", self.checkpointing, True, False)
        remaining = kept_count(n, self.mask_ratio)  # at least one
        if self.norm == "batch" and (self.mask_ratio or self.checkpointing):
            problem = f"batch norm has {n} means, one a token: masking leaves {remaining}"
            hint = 'give mask_ratio=0.0 and checkpointing=False, or norm="layer"'
            raise ValueError(f"{problem}, checkpointing counts twice; {hint}")


FACE = FaceConfig()


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
        if self.training and x.shape[0] == 1:
            problem = "a training batch of 1 has no spread for the head's batch norms"
            raise ValueError(f"{problem}; give at least 2 images, or call model.eval() first")
        order, twice = None, self.training and self.config.checkpointing
        if self.training and self.config.mask_ratio > 0:
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
