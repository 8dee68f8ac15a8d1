"""Lesson 07: data, the training loop, and training that outlives a crash.

`python -m vit_steps.training` is the same as a command.
"""

from .augment import augment_digits, augment_photos
from .checkpoints import Weights, load_model, load_weights, save_model
from .data import load_data, recipe
from .fitting import History, fit
from .loop import decay_groups, evaluate, train, train_step, warmup_cosine
from .measuring import measure

__all__ = ["augment_digits", "augment_photos", "load_data", "recipe"]
__all__ += ["decay_groups", "evaluate", "train", "train_step", "warmup_cosine"]
__all__ += ["History", "Weights", "fit", "load_model", "load_weights", "measure", "save_model"]
