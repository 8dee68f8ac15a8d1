"""The Vision Transformer, step by step: the finished piece of every lesson."""

from .attention import MultiHeadAttention, attention
from .encoder import MLP, Encoder, EncoderBlock
from .heads import QKV, merge_heads, split_heads
from .images import denormalize, load_image, normalize, sample_photo
from .patches import PatchEmbedding, grid_size, patchify, unpatchify
from .tokens import TokenEmbedding, resize_positions
from .vit import Head, ViT, ViTConfig

__all__ = [
    "MLP",
    "QKV",
    "Encoder",
    "EncoderBlock",
    "Head",
    "MultiHeadAttention",
    "PatchEmbedding",
    "TokenEmbedding",
    "ViT",
    "ViTConfig",
    "attention",
    "denormalize",
    "grid_size",
    "load_image",
    "merge_heads",
    "normalize",
    "patchify",
    "resize_positions",
    "sample_photo",
    "split_heads",
    "unpatchify",
]
