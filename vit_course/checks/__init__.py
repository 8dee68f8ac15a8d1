"""Exercise feedback: `checks.patchify(my_patchify)` says whether it is right, or what is wrong."""

from .choosing import exhibit, quiz
from .compare import difference
from .keeping import mine, pieces
from .lesson_00 import negative, normalize_channels, picture_test
from .lesson_01 import PatchEmbedding, conv_weight, patch_of, patchify, templates
from .lesson_02 import TokenEmbedding, crop_positions, is_order_blind, own_positions
from .lesson_03 import merge_heads, reorder_rows, rows_of, split_heads, split_qkv, trust_split
from .lesson_04 import (
    MultiHeadAttention,
    effective_keys,
    find_fault,
    local_mask,
    scaled_dot_product_attention,
)
from .lesson_05 import MLP, EncoderBlock, contributions, layer_norm, unheard_blocks
from .lesson_06 import ViT, ViTWithoutCls, size_and_work, where_they_part
from .lesson_07 import beat_the_bar, find_slip, smoothed_loss, train_step, warmup_cosine
from .lesson_08 import by_luck, leaked, moved, no_positions
from .lesson_09 import needed, pointing, rollout, trust_rollout
from .lesson_10 import audit_weights, google_qkv, rename, torchvision_name
from .lesson_11 import (
    DropPath,
    drop_kind,
    drop_path_rates,
    fuse_qkv,
    random_masking,
    rotary,
    unmask,
)
from .lesson_12 import first_patient, second_patient, third_patient
from .lesson_13 import (
    accumulated_step,
    crossover,
    int8_rows,
    merge_schedule,
    merge_tokens,
    my_share,
)

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
    "quiz",
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
