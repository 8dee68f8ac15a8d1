"""A live page of a trained ViT, and three small live pictures that stand in lessons.

A page is one HTML file that computes the model in the browser: weights, pictures and program are in
it, so it needs no server and no network.
"""

from .pages import page, show, write
from .small import patch_sizes, scaled_softmax, who_asks

__all__ = ["page", "patch_sizes", "scaled_softmax", "show", "who_asks", "write"]
