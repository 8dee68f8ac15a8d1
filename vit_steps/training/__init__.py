"""Lesson 07: data, the training loop, and training that outlives a crash.

`python -m vit_steps.training` is the same as a command.
"""

from .augment import augment_digits, augment_photos
from .checkpoints import load_model, save_model
from .fitting import fit
from .loader import batches
from .loop import History, decay_groups, evaluate, train_step, warmup_cosine

__all__ = [
    "History",
    "augment_digits",
    "augment_photos",
    "batches",
    "decay_groups",
    "evaluate",
    "fit",
    "load_model",
    "save_model",
    "train_step",
    "warmup_cosine",
]
