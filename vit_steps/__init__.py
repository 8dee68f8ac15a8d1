"""The Vision Transformer, step by step: the finished piece of every lesson."""

from .attention import MultiHeadAttention, scaled_dot_product_attention
from .encoder import MLP, Encoder, EncoderBlock
from .heads import merge_heads, split_heads, split_qkv
from .images import denormalize, load_image, normalize, sample_photo
from .patches import PatchEmbedding, grid_size, patchify, unpatchify
from .tokens import TokenEmbedding
from .vit import ViT, ViTConfig, pool_tokens, resize_positions

__all__ = ["MLP", "Encoder", "EncoderBlock", "MultiHeadAttention", "scaled_dot_product_attention"]
__all__ += ["PatchEmbedding", "TokenEmbedding", "grid_size", "patchify", "unpatchify"]
__all__ += ["ViT", "ViTConfig", "pool_tokens", "resize_positions"]
__all__ += ["denormalize", "load_image", "normalize", "sample_photo"]
__all__ += ["merge_heads", "split_heads", "split_qkv"]
