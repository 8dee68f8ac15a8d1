"""Exercise feedback: `checks.patchify(my_patchify)` says whether it is right, or what is wrong."""

from .attention import find_fault, local_mask, scaled_weights
from .compare import difference
from .encoder import contributions, layer_norm, unheard_blocks
from .heads import reorder_rows, rows_of, trust_split
from .images import channels_first, negative, normalize_channels, picture_test
from .keeping import mine, pieces
from .maps import cls_rollout, pointing, trust_rollout
from .patches import conv_weight, grid, patchify
from .pretrained import audit_weights, google_qkv, torchvision_name
from .tokens import TokenEmbedding, crop_positions, is_order_blind, own_positions
from .training import find_slip, floor_schedule, smoothed_loss
from .vit import count_parameters, multiply_adds, where_they_part

__all__ = [
    "audit_weights",
    "channels_first",
    "cls_rollout",
    "contributions",
    "conv_weight",
    "count_parameters",
    "crop_positions",
    "difference",
    "find_fault",
    "find_slip",
    "floor_schedule",
    "google_qkv",
    "grid",
    "is_order_blind",
    "layer_norm",
    "local_mask",
    "mine",
    "multiply_adds",
    "negative",
    "normalize_channels",
    "patchify",
    "picture_test",
    "pieces",
    "pointing",
    "reorder_rows",
    "rows_of",
    "scaled_weights",
    "smoothed_loss",
    "torchvision_name",
    "trust_rollout",
    "trust_split",
    "unheard_blocks",
    "where_they_part",
]
