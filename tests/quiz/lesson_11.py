"""Lesson 11: other ViTs."""

from fractions import Fraction
from statistics import fmean
from unittest.mock import patch

import torch
from torch import nn

from vit_course.plots import stored
from vit_steps import variants
from vit_steps.dropping import random_masking

from . import near, only


def q1_ten_times_as_long():
    torch.manual_seed(0)
    x = torch.randn(2, 17, 48)
    norm = nn.LayerNorm(48)
    orders = dict(a=lambda t: norm(t.mean(dim=1)), b=lambda t: norm(t).mean(dim=1))
    one_long = torch.cat([10 * x[:, :1], x[:, 1:]], dim=1)
    assert not torch.allclose(orders["a"](one_long), orders["a"](x), atol=1e-2)
    other = {a: not torch.allclose(f(10 * x), f(x), atol=1e-2) for a, f in orders.items()}
    return only(**other, c=not any(other.values()))


def q2_branches_missed():
    return near(2 * sum(variants.drop_path_rates(0.3, 12)), a=7.2, b=3.6, c=0.6)


def q3_gained_by_one_not_needed_by_the_other():
    runs = {name: fmean(shares) for name, shares in stored("why C")["runs"].items()}
    assert 74.5 < runs["A"] < 75.5
    assert 96.5 < runs["A, batch norms"] < 97.5
    assert 97.5 < runs["C, no batch norms"] < 98.5
    gained = runs["A, batch norms"] > runs["A"] + 20
    needed = runs["C, no batch norms"] < runs["C"] - 2
    luck = max(stored("why C")["runs"]["A"]) > min(stored("why C")["runs"]["A, batch norms"])
    return only(a=needed, b=gained and not needed, c=luck)


def q4_who_is_kept():
    noise = torch.tensor([[0.4, 0.8, 0.2, 0.7]])
    with patch("torch.rand", lambda *shape, **options: noise):
        _, _, mask = random_masking(torch.zeros(1, 4, 1), 0.5)
    kept = (~mask[0]).nonzero().flatten().tolist()
    return only(a=kept == [0, 2], b=kept == [0, 1], c=kept == [1, 3])


def q5_always_right():
    def right(ratio: float) -> bool:
        stays = 1 - Fraction(str(ratio))
        whole = [n for n in range(1, 1001) if (n * stays).denominator == 1]
        return all(int(n * (1 - ratio)) == n * stays for n in whole)

    return only(a=right(0.9), b=right(0.75), c=right(0.8))
