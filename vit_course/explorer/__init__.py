"""A canvas that asks a model in Python, a live page of a ViT, and three small live pictures.

A page is one HTML file that computes the model in the browser: weights, pictures and program are in
it, so it needs no server and no network.
"""

from .asking import canvas, kept
from .pages import page, show, write
from .small import patch_sizes, scaled_softmax, who_asks

__all__ = ["canvas", "kept", "page", "patch_sizes", "scaled_softmax", "show", "who_asks", "write"]
