"""Lesson 09: where a ViT looks, what its weights hold, and whether that explains its answers.

All functions take what `model(images, return_attention=True)` gives, or the model itself, in eval
mode; none of them keeps anything or draws. They work under torch.no_grad and torch.inference_mode.
"""

from .components import pca, token_pca
from .covering import area_under, blinded, cover, deletion, gradient_map, touched
from .shares import attention_distance, cls_map, patch_distances, rollout

__all__ = [
    "area_under",
    "attention_distance",
    "blinded",
    "cls_map",
    "cover",
    "deletion",
    "gradient_map",
    "patch_distances",
    "pca",
    "rollout",
    "token_pca",
    "touched",
]
