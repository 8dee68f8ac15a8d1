"""Lesson 09: maps, and what they show."""

import torch
from torch import Tensor

from vit_steps import maps, weights
from vit_steps.training.data import scattered

from . import near, only

GRID = (4, 4)


def q1_two_blocks():
    first = torch.tensor([[1.0, 0, 0], [0, 0, 1], [0, 0, 1]])[None, None]
    second = torch.tensor([[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1]])[None, None]
    assert (second @ first)[0, 0, 0, 2] == 0.5
    return near(maps.rollout([first, second])[0, 0, 2], a=1 / 2, b=1 / 4, c=1 / 8)


def q2_above_an_even_map():
    even = torch.ones(16) / 16
    a, b = 0.60 / even[:9].sum().item(), 0.45 / even[:4].sum().item()
    return only(a=a > 1.2 * b, b=b > 1.2 * a, c=0.8 < a / b < 1.2)


def q3_two_patches_hidden():
    model = weights.load("scattered").model.requires_grad_(False)
    data = scattered(300, seed=2, held_out=True)
    marked = maps.cls_map(maps.rollout(model(data.images, return_attention=True)[1]), GRID)
    centres = 4 * torch.arange(4) + 2.0
    apart = centres - (data.places[:, :, None] + 4)  # (B, 2, 4)
    middle = -(apart[:, 0, :, None] ** 2 + apart[:, 1, None, :] ** 2)
    chance = torch.rand(300, *GRID, generator=torch.Generator().manual_seed(0))

    def lost(seen: Tensor) -> float:
        best = seen.flatten(1).topk(2).indices
        hidden = torch.zeros(300, 16, dtype=torch.bool).scatter(1, best, True)
        said = maps.blinded(model, data.images, hidden.unflatten(1, GRID)).argmax(dim=1)
        return (said != data.labels).double().mean().item()

    of_map, of_guess, of_chance = map(lost, (marked, middle, chance))
    ahead = of_map > of_guess + 0.03
    return only(a=ahead, b=of_map > of_chance + 0.3, c=ahead)


def q4_a_map_of_another():
    def share(seen: Tensor, touched: Tensor) -> float:
        return ((seen * touched).sum((1, 2)) / seen.sum((1, 2))).mean().item()

    gaps, middles, corners, alike = [], [], [], []
    for seed in (2, 3, 4):
        drawn = scattered(500, seed=seed, held_out=True)
        touched = maps.touched(drawn.places, 8, GRID, 4).float()
        others, even = touched.roll(1, dims=0), torch.ones(500, *GRID)
        gaps.append(share(others, touched) - share(even, touched))
        middles.append(touched.mean(dim=0)[1:3, 1:3].mean().item())
        corners.append(touched.mean(dim=0)[::3, ::3].mean().item())
        alike.append((drawn.labels == drawn.labels.roll(1)).double().mean().item())
    return only(a=min(middles) > 2 * max(corners), b=max(alike) > 0.5, c=min(gaps) < 0)


def q5_mixed_values():
    weights, values = torch.tensor([0.9, 0.1]), torch.tensor([[0.0, 0.0], [5.0, -5.0]])
    first, second = (weights[:, None] * values).any(dim=1).tolist()
    return only(a=first and not second, b=second and not first, c=first and second)


def q6_divided_work():
    rest = torch.eye(3)[1:]
    apart = torch.stack([torch.cat([torch.eye(3)[n : n + 1], rest]) for n in (1, 2)])
    together = torch.cat([torch.tensor([[0.0, 0.5, 0.5]]), rest]).expand(2, 3, 3)
    first, second = (maps.rollout([w[None]])[0, 0, 1:].tolist() for w in (apart, together))
    return only(a=first == second, b=first > second, c=first < second)
