"""Lesson 08: what makes it learn."""

from itertools import combinations

import torch
from torch import Tensor

from vit_steps.training import data

from . import near, only


def q1_ten_worthless_ideas():
    torch.manual_seed(0)
    passed = (torch.rand(100_000, 10) < 0.05).any(dim=1).double().mean().item()
    return near(100 * passed, 3, a=5, b=40, c=50)


def q4_each_its_own_shuffle():
    torch.manual_seed(0)
    val, few = data.split(data.digits()[0], 0.14, seed=0)

    def read(known: Tensor, asked: Tensor) -> float:
        apart = torch.cdist(asked, known, compute_mode="donot_use_mm_for_euclid_dist")
        return (few.labels[apart.argmin(dim=1)] == val.labels).double().mean().item()

    images, order = (few.images.flatten(1), val.images.flatten(1)), torch.randperm(64)
    assert read(*images) == read(*(x[:, order] for x in images)) > 0.9
    left = read(*(x.gather(1, torch.rand(x.shape).argsort(dim=1)) for x in images))
    return only(a=left > 0.9, b=0.8 < left < 0.9, c=0.05 < left < 0.15)


def q6_seeds_that_suffice():
    def chance(count: int) -> float:
        """The share of the ways to deal 2 · count numbers that lie as far apart as can be."""
        numbers = range(2 * count)
        gaps = [abs(2 * sum(group) - sum(numbers)) for group in combinations(numbers, count)]
        return gaps.count(max(gaps)) / len(gaps)

    assert chance(3) == 0.1
    fewest = next(count for count in range(3, 7) if chance(count) < 0.05)
    return only(a=fewest == 4, b=fewest == 5, c=fewest == 6)
