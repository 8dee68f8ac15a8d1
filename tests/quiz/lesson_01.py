"""Lesson 01: patches, templates and tokens."""

import torch
from einops import rearrange

from vit_steps import patchify

from . import near, only


def q1_reds_of_a_patch():
    image = torch.zeros(1, 3, 16, 16)
    image[:, 0] = 1 + torch.arange(256.0).reshape(16, 16)
    row, reds = patchify(image, 16)[0, 0], image[0, 0].flatten()
    assert row[: 5 * 48].count_nonzero() == 5 * 16  # five rows, three colours
    return only(a=row[:256].equal(reds), b=row[0::3].equal(reds), c=row[0::256].equal(reds))


def q2_brackets_turned_round():
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    pattern = "b c (p1 row) (p2 col) -> b (row col) (p1 p2 c)"
    first = rearrange(image, pattern, p1=2, p2=2)[0, 0].tolist()
    assert patchify(image, 2)[0, 0].tolist() == [0, 1, 4, 5]
    return only(a=first == [0, 1, 2, 3], b=first == [0, 1, 4, 5], c=first == [0, 2, 8, 10])


def q4_large_patch():
    a, b = torch.full((768,), -0.1), torch.full((768,), -1.0)
    return near((a @ b) / (a @ a), within=1e-3, a=10, b=1, c=0.1)
