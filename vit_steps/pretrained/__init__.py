"""Lesson 10: weights that others trained, renamed into our ViT; nothing of theirs is run."""

from ..images import Preprocess
from .loading import Loaded, load, save_hugging_face

__all__ = ["Loaded", "Preprocess", "load", "save_hugging_face"]
