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
from .museum import exhibit
from .patches import PatchEmbedding, conv_weight, patch_of, patchify, templates
from .patients import first_patient, second_patient, third_patient
from .pretrained import audit_weights, google_qkv, rename, torchvision_name
from .quiz import question
from .scaling import (
    accumulated_step,
    crossover,
    int8_rows,
    merge_schedule,
    merge_tokens,
    my_share,
)
from .tokens import TokenEmbedding, crop_positions, is_order_blind, own_positions
from .training import beat_the_bar, find_slip, smoothed_loss, train_step, warmup_cosine
from .variants import (
    DropPath,
    drop_kind,
    drop_path_rates,
    fuse_qkv,
    random_masking,
    rotary,
    unmask,
)
from .vit import ViT, ViTWithoutCls, size_and_work, where_they_part

__all__ = [
    "MLP",
    "DropPath",
    "EncoderBlock",
    "MultiHeadAttention",
    "PatchEmbedding",
    "TokenEmbedding",
    "ViT",
    "ViTWithoutCls",
    "accumulated_step",
    "audit_weights",
    "beat_the_bar",
    "by_luck",
    "contributions",
    "conv_weight",
    "crop_positions",
    "crossover",
    "difference",
    "drop_kind",
    "drop_path_rates",
    "effective_keys",
    "exhibit",
    "find_fault",
    "find_slip",
    "first_patient",
    "fuse_qkv",
    "google_qkv",
    "int8_rows",
    "is_order_blind",
    "layer_norm",
    "leaked",
    "local_mask",
    "merge_heads",
    "merge_schedule",
    "merge_tokens",
    "mine",
    "moved",
    "my_share",
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
    "question",
    "random_masking",
    "rename",
    "reorder_rows",
    "rollout",
    "rotary",
    "rows_of",
    "scaled_dot_product_attention",
    "second_patient",
    "size_and_work",
    "smoothed_loss",
    "split_heads",
    "split_qkv",
    "templates",
    "third_patient",
    "torchvision_name",
    "train_step",
    "trust_rollout",
    "trust_split",
    "unheard_blocks",
    "unmask",
    "warmup_cosine",
    "where_they_part",
]
