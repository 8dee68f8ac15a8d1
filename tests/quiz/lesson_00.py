"""Lesson 00: pictures as numbers."""

import torch
from torch.nn import functional as F

from vit_course import checks
from vit_steps import normalize

from . import near, only


def q1_grey_pixel():
    return near(normalize(torch.full((3, 1, 1), 102 / 255))[0, 0, 0], a=-0.2, b=0.4, c=0.2)


def q2_way_back():
    x = torch.arange(24).reshape(2, 4, 3)
    moved = x.permute(2, 0, 1)
    assert moved.permute(2, 0, 1).permute(2, 0, 1).equal(x)
    orders = dict(a=(2, 0, 1), b=(1, 2, 0), c=(0, 2, 1))
    return only(**{letter: moved.permute(order).equal(x) for letter, order in orders.items()})


def q3_normalised_twice():
    twice = normalize(normalize(torch.linspace(0, 1, 12).reshape(3, 2, 2)))
    ends = (round(twice.min().item(), 4), round(twice.max().item(), 4))
    return only(a=ends == (-1, 1), b=ends == (-3, 1), c=ends == (-2, 2))


def q4_what_grey_shows():
    grey = torch.full((4, 4, 3), 100, dtype=torch.uint8)
    right = grey.permute(2, 0, 1) / 255
    return only(
        a=not torch.equal(grey.flip(-1).permute(2, 0, 1) / 255, right),
        b=not torch.equal(grey.reshape(3, 4, 4) / 255, right),
        c=not torch.equal(grey.permute(2, 0, 1).float(), right),
    )


def q5_forgotten_std():
    grey = torch.full((3, 2, 2), 0.5)
    said = checks.difference(grey - 0.5, normalize(grey))
    return only(a=said == "< 1e-5", b=said == "up to 0.5", c=said == "up to 1")


def q6_cosines_of_bright_numbers():
    torch.manual_seed(0)
    pairs = [*torch.rand(100, 2, 768), torch.eye(2), torch.ones(2, 2)]
    found = torch.stack([F.cosine_similarity(*pair, dim=0) for pair in pairs])
    least, most = round(found.min().item(), 4), round(found.max().item(), 4)
    return only(a=least < 0, b=(least, most) == (0, 1), c=most > 1)
