"""Lesson 00: pictures as numbers."""

import torch

from vit_course import checks
from vit_steps import normalize, weights
from vit_steps.training.data import scattered

from . import near, only


def q1_grey_pixel():
    return near(normalize(torch.full((3, 1, 1), 102 / 255))[0, 0, 0], a=-0.2, b=0.4, c=0.2)


def q2_way_back():
    x = torch.arange(24).reshape(2, 4, 3)
    moved = x.permute(2, 0, 1)
    assert moved.permute(2, 0, 1).permute(2, 0, 1).equal(x)
    orders = dict(a=(2, 0, 1), b=(1, 2, 0), c=(0, 2, 1))
    return only(**{letter: moved.permute(order).equal(x) for letter, order in orders.items()})


def q5_forgotten_std():
    grey = torch.full((3, 2, 2), 0.5)
    said = checks.difference(grey - 0.5, normalize(grey))
    return only(a=said == "< 1e-5", b=said == "up to 0.5", c=said == "up to 1")


def q6_upside_down():
    test = scattered(2000, seed=1, held_out=True)
    with torch.no_grad():
        said = weights.load("scattered").model(test.images.flip(2)).argmax(dim=1)
    read = {d: (said[test.labels == d] == d).float().mean().item() for d in (2, 3, 7)}
    assert round(read[3], 2) == 0.89
    assert (said[test.labels == 2] == 5).float().mean() > 0.5
    most = max(read, key=lambda digit: read[digit])
    return only(a=most == 2, b=most == 3, c=most == 7)
