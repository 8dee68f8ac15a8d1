"""Lesson 09: maps, and what they show."""

import torch
from torch import Tensor

import vit_steps
from vit_steps import maps
from vit_steps.training import load_model
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


def q3_covered_from_the_end():
    model = load_model(f"{vit_steps.__path__[0]}/weights/scattered.safetensors").eval()
    images, labels = scattered(160, seed=1, held_out=True)[:]
    with torch.no_grad():
        marked = maps.cls_map(maps.rollout(model(images, return_attention=True)[1]), GRID)
    order = marked.flatten(1).argsort(dim=1)  # least first

    def area(order: Tensor) -> float:
        curve = maps.deletion(model, images, labels, order, steps=8, fill=-1.0)
        return maps.area_under(curve)

    assert abs(area(order.flip(1)) - 0.15) < 0.05
    return near(area(order), within=0.06, a=0.15, b=0.45, c=0.88)


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
