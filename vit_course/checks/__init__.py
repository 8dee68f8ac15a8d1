"""Exercise feedback: `checks.patchify(my_patchify)` says whether it is right, or what is wrong.

An exercise is declared in the file of its lesson, and stands here under its name.
"""

from importlib import import_module
from pathlib import Path

from .choosing import quiz
from .compare import difference
from .engine import Check
from .keeping import mine, my_file, pieces
from .lesson_00 import four, negative, normalize_channels, picture_test
from .lesson_01 import PatchEmbedding, conv_weight, patchify, templates
from .lesson_02 import TokenEmbedding, is_order_blind, shared_position, without_place
from .lesson_03 import merge_heads, rows_of, split_heads, split_qkv, trust_split
from .lesson_04 import MultiHeadAttention, effective_keys, find_fault, scaled_dot_product_attention
from .lesson_05 import MLP, EncoderBlock, layer_norm, unheard_blocks
from .lesson_06 import ViT, size_and_work, where_they_part
from .lesson_07 import beat_the_bar, evaluate, find_slip, train, train_step
from .lesson_08 import by_luck, leaked, moved, no_positions, variant
from .lesson_09 import cls_may_look, needed, rollout, trust_rollout
from .lesson_10 import absorb, frozen_features, missing_names, rename, which_preparation
from .lesson_11 import DropPath, drop_kind, fuse_qkv, pooled, random_masking, unmask
from .lesson_12 import SecondPatient, ThirdPatient, mask_works, one_whole
from .lesson_13 import accumulated_step, crossover, likeness, merge_tokens
from .museum import exhibit, patient
from .sources import source

EXERCISES: dict[str, Check] = {  # in the order of the lessons, and within one as it declares them
    name: value
    for file in sorted(Path(__file__).parent.glob("lesson_*.py"))
    for name, value in vars(import_module(f"{__name__}.{file.stem}")).items()
    if isinstance(value, Check)
}

__all__ = [
    "EXERCISES", "MLP", "DropPath", "EncoderBlock", "MultiHeadAttention", "PatchEmbedding",
    "SecondPatient", "ThirdPatient", "TokenEmbedding", "ViT", "absorb", "accumulated_step",
    "beat_the_bar", "by_luck", "cls_may_look", "conv_weight", "crossover", "difference",
    "drop_kind", "effective_keys", "evaluate", "exhibit", "find_fault", "find_slip", "four",
    "frozen_features", "fuse_qkv", "is_order_blind", "layer_norm", "leaked", "likeness",
    "mask_works", "merge_heads", "merge_tokens", "mine", "missing_names", "moved", "my_file",
    "needed", "negative", "no_positions", "normalize_channels", "one_whole", "patchify", "patient",
    "picture_test", "pieces", "pooled", "quiz", "random_masking", "rename", "rollout", "rows_of",
    "scaled_dot_product_attention", "shared_position", "size_and_work", "source", "split_heads",
    "split_qkv", "templates", "train", "train_step", "trust_rollout", "trust_split",
    "unheard_blocks", "unmask", "variant", "where_they_part", "which_preparation", "without_place",
]  # fmt: skip
