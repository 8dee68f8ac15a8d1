"""The Vision Transformer, step by step: the finished piece of every lesson."""

from .attention import MultiHeadAttention, scaled_dot_product_attention
from .encoder import MLP, Encoder, EncoderBlock
from .heads import merge_heads, split_heads, split_qkv
from .images import denormalize, load_image, normalize, sample_photo
from .patches import PatchEmbedding, grid_size, patchify, unpatchify
from .tokens import TokenEmbedding
from .vit import ViT, ViTConfig, pool_tokens, resize_positions

__all__ = [
    "MLP",
    "Encoder",
    "EncoderBlock",
    "MultiHeadAttention",
    "PatchEmbedding",
    "TokenEmbedding",
    "ViT",
    "ViTConfig",
    "denormalize",
    "grid_size",
    "load_image",
    "merge_heads",
    "normalize",
    "patchify",
    "pool_tokens",
    "resize_positions",
    "sample_photo",
    "scaled_dot_product_attention",
    "split_heads",
    "split_qkv",
    "unpatchify",
]
