"""Exercises of lesson 01."""

import torch
from einops import rearrange
from torch import Tensor, nn

from ..patches import grid_size
from ..patches import patchify as cut
from .engine import Check, Mistake, Trial, call, refuse


def numbered(*shape: int) -> Tensor:
    """A tensor that holds 0, 1, 2, …, so that each number tells where it came from."""
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)


grid = Check(
    reference=grid_size,
    trials=[
        call("a 224×224 image, patch size 16", (224, 224), 16),
        call("a 32×48 image, patch size 16", (32, 48), 16),
        refuse("a 232×224 image, patch size 16", (232, 224), 16),
        refuse("a 224×230 image, patch size 16", (224, 230), 16),
    ],
    mistakes=[
        Mistake(
            "columns and rows are swapped: height comes first, so rows come first",
            lambda size, p: grid_size(size, p)[::-1],
        ),
        Mistake(
            "the number is right, but it must raise a ValueError where the patch does not divide "
            "a side; // drops the rest in silence",
            lambda size, p: (size[0] // p, size[1] // p),
        ),
        Mistake(
            "it raises for the height only; the width must divide too",
            lambda size, p: (grid_size((size[0], p), p)[0], size[1] // p),
        ),
        Mistake(
            "this is the number of patches in all; give (rows, columns)",
            lambda size, p: grid_size(size, p)[0] * grid_size(size, p)[1],
        ),
    ],
)


def pattern(pattern: str):
    """A wrong patchify that rearranges by this einops pattern."""
    return lambda images, p: rearrange(images, pattern, p1=p, p2=p)


patchify = Check(
    reference=cut,
    trials=[
        call("the numbered 4×4 image, patch size 2", numbered(1, 1, 4, 4), 2),
        call("two 3-channel images of 4×6 pixels, patch size 2", numbered(2, 3, 4, 6), 2),
    ],
    mistakes=[
        Mistake(
            "the pixels are scrambled: view and reshape read the memory straight on, across the "
            "patch borders; split H and W first, then permute",
            lambda images, p: images.reshape(len(images), -1, p * p * images.shape[1]),
        ),
        Mistake(
            "rows and columns of patches are swapped: token 1 is the patch below token 0",
            pattern("b c (row p1) (col p2) -> b (col row) (p1 p2 c)"),
        ),
        Mistake(
            "inside a patch, rows and columns are swapped: it is transposed",
            pattern("b c (row p1) (col p2) -> b (row col) (p2 p1 c)"),
        ),
        Mistake(
            "inside a patch, the channels come first; each pixel's channels must stand together: "
            "(p1 p2 c)",
            pattern("b c (row p1) (col p2) -> b (row col) (c p1 p2)"),
        ),
        Mistake(
            "each token takes every second pixel, from all over the image: the patch axes and the "
            "grid axes are mixed up; (row p1), not (p1 row)",
            pattern("b c (p1 row) (p2 col) -> b (row col) (p1 p2 c)"),
        ),
    ],
)


def convert(change):
    """Turn a Linear's weight into a Conv2d's by `change(weight, C, P)`; give what the conv does."""

    def run(answer):
        linear = nn.Linear(2 * 2 * 3, 5)
        images = torch.randn(2, 3, 4, 6)
        weight = answer(linear.weight.detach().clone(), 3, 2)
        if not isinstance(weight, Tensor) or weight.shape != (5, 3, 2, 2):
            return weight
        out = nn.functional.conv2d(images, weight, linear.bias, stride=2)
        return rearrange(out, "b d row col -> b (row col) d")

    return Trial(change, run)


conv_weight = Check(
    reference=lambda w, c, p: rearrange(w, "d (p1 p2 c) -> d c p1 p2", p1=p, p2=p, c=c),
    trials=[convert("a Linear for 3 channels and patch size 2, made a convolution")],
    mistakes=[
        Mistake(
            "the shape is right, but reshape alone reads (p1 p2 c) as if it were (c p1 p2): the "
            "colours are scrambled; first give each axis its own place, then permute",
            lambda w, c, p: w.reshape(-1, c, p, p),
        ),
        Mistake(
            "rows and columns inside the patch are swapped: every patch is seen transposed",
            lambda w, c, p: rearrange(w, "d (p2 p1 c) -> d c p1 p2", p1=p, p2=p),
        ),
        Mistake(
            "the channels are last: a convolution's weight is (D, C, P, P)",
            lambda w, c, p: w.reshape(-1, p, p, c),
        ),
    ],
)
