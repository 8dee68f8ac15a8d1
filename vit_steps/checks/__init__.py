"""Exercise feedback: `checks.patchify(my_patchify)` says whether it is right, or what is wrong."""

from .attention import (
    MultiHeadAttention,
    effective_keys,
    find_fault,
    local_mask,
    scaled_dot_product_attention,
)
from .compare import difference
from .encoder import MLP, EncoderBlock, contributions, layer_norm, unheard_blocks
from .heads import merge_heads, reorder_rows, rows_of, split_heads, split_qkv, trust_split
from .images import negative, normalize_channels, picture_test
from .keeping import mine, pieces
from .learning import by_luck, leaked, moved, no_positions
from .maps import needed, pointing, rollout, trust_rollout
from .patches import PatchEmbedding, conv_weight, patch_of, patchify, templates
from .pretrained import audit_weights, google_qkv, rename, torchvision_name
from .tokens import TokenEmbedding, crop_positions, is_order_blind, own_positions
from .training import beat_the_bar, find_slip, smoothed_loss, train_step, warmup_cosine
from .vit import ViT, ViTWithoutCls, size_and_work, where_they_part

__all__ = [
    "MLP",
    "EncoderBlock",
    "MultiHeadAttention",
    "PatchEmbedding",
    "TokenEmbedding",
    "ViT",
    "ViTWithoutCls",
    "audit_weights",
    "beat_the_bar",
    "by_luck",
    "contributions",
    "conv_weight",
    "crop_positions",
    "difference",
    "effective_keys",
    "find_fault",
    "find_slip",
    "google_qkv",
    "is_order_blind",
    "layer_norm",
    "leaked",
    "local_mask",
    "merge_heads",
    "mine",
    "moved",
    "needed",
    "negative",
    "no_positions",
    "normalize_channels",
    "own_positions",
    "patch_of",
    "patchify",
    "picture_test",
    "pieces",
    "pointing",
    "rename",
    "reorder_rows",
    "rollout",
    "rows_of",
    "scaled_dot_product_attention",
    "size_and_work",
    "smoothed_loss",
    "split_heads",
    "split_qkv",
    "templates",
    "torchvision_name",
    "train_step",
    "trust_rollout",
    "trust_split",
    "unheard_blocks",
    "warmup_cosine",
    "where_they_part",
]
