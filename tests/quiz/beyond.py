"""Lessons 08 to 13."""

from copy import deepcopy
from fractions import Fraction
from itertools import combinations
from math import exp, log
from statistics import fmean
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import vit_doctor
from vit_course.canvases import scattered
from vit_course.plots import stored
from vit_steps import ViT, ViTConfig, dropping, maps, merge_heads, scale, weights
from vit_steps.dropping import random_masking
from vit_steps.training.data import load_data

from . import near, only

# 08: what makes it learn -------------------------------------------------------------------------


def l08_q1_ten_worthless_ideas():
    torch.manual_seed(0)
    passed = (torch.rand(100_000, 10) < 0.05).any(dim=1).double().mean().item()
    return near(100 * passed, 3, a=5, b=40, c=50)


def l08_q4_each_its_own_shuffle():
    torch.manual_seed(0)
    val, few, _ = load_data("digits", val_fraction=0.14)

    def read(examples: Tensor, queries: Tensor) -> float:
        apart = torch.cdist(queries, examples, compute_mode="donot_use_mm_for_euclid_dist")
        return (few.labels[apart.argmin(dim=1)] == val.labels).double().mean().item()

    images, order = (few.images.flatten(1), val.images.flatten(1)), torch.randperm(64)
    assert read(*images) == read(*(x[:, order] for x in images)) > 0.9
    share = read(*(x.gather(1, torch.rand(x.shape).argsort(dim=1)) for x in images))
    return only(a=share > 0.9, b=0.8 < share < 0.9, c=0.05 < share < 0.15)


def l08_q6_seeds_that_suffice():
    def chance(count: int) -> float:
        """The share of the ways to deal 2 · count numbers that lie as far apart as can be."""
        numbers = range(2 * count)
        gaps = [abs(2 * sum(group) - sum(numbers)) for group in combinations(numbers, count)]
        return gaps.count(max(gaps)) / len(gaps)

    assert chance(3) == 0.1
    fewest = next(count for count in range(3, 7) if chance(count) < 0.05)
    return only(a=fewest == 4, b=fewest == 5, c=fewest == 6)


# 09: maps, and what they show --------------------------------------------------------------------


GRID = (4, 4)


def l09_q1_two_blocks():
    first = torch.tensor([[1.0, 0, 0], [0, 0, 1], [0, 0, 1]])[None, None]
    second = torch.tensor([[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1]])[None, None]
    assert (second @ first)[0, 0, 0, 2] == 0.5
    return near(maps.rollout([first, second])[0, 0, 2], a=1 / 2, b=1 / 4, c=1 / 8)


def l09_q2_above_an_even_map():
    even = torch.ones(16) / 16
    a, b = 0.60 / even[:9].sum().item(), 0.45 / even[:4].sum().item()
    return only(a=a > 1.2 * b, b=b > 1.2 * a, c=0.8 < a / b < 1.2)


def l09_q3_two_patches_hidden():
    model = weights.load("scattered").model.requires_grad_(False)
    data = scattered(300, seed=2, held_out=True)
    marked = maps.cls_map(maps.rollout(model(data.images, return_attention=True)[1]), GRID)
    centres = 4 * torch.arange(4) + 2.0
    apart = centres - (data.places[:, :, None] + 4)  # (B, 2, 4)
    middle = -(apart[:, 0, :, None] ** 2 + apart[:, 1, None, :] ** 2)
    chance = torch.rand(300, *GRID, generator=torch.Generator().manual_seed(0))

    def lost(scores: Tensor) -> float:
        best = scores.flatten(1).topk(2).indices
        hidden = torch.zeros(300, 16, dtype=torch.bool).scatter(1, best, True)
        answers = maps.blinded(model, data.images, hidden.unflatten(1, GRID)).argmax(dim=1)
        return (answers != data.labels).double().mean().item()

    of_map, of_guess, of_chance = map(lost, (marked, middle, chance))
    ahead = of_map > of_guess + 0.03
    return only(a=ahead, b=of_map > of_chance + 0.3, c=ahead)


def l09_q4_a_map_of_another():
    def share(scores: Tensor, touched: Tensor) -> float:
        return ((scores * touched).sum((1, 2)) / scores.sum((1, 2))).mean().item()

    gaps, middles, corners, alike = [], [], [], []
    for seed in (2, 3, 4):
        canvases = scattered(500, seed=seed, held_out=True)
        touched = maps.touched(canvases.places, 8, GRID, 4).float()
        others, even = touched.roll(1, dims=0), torch.ones(500, *GRID)
        gaps.append(share(others, touched) - share(even, touched))
        middles.append(touched.mean(dim=0)[1:3, 1:3].mean().item())
        corners.append(touched.mean(dim=0)[::3, ::3].mean().item())
        alike.append((canvases.labels == canvases.labels.roll(1)).double().mean().item())
    return only(a=min(middles) > 2 * max(corners), b=max(alike) > 0.5, c=min(gaps) < 0)


def l09_q5_mixed_values():
    weights, values = torch.tensor([0.9, 0.1]), torch.tensor([[0.0, 0.0], [5.0, -5.0]])
    first, second = (weights[:, None] * values).any(dim=1).tolist()
    return only(a=first and not second, b=second and not first, c=first and second)


def l09_q6_divided_work():
    others = torch.eye(3)[1:]
    apart = torch.stack([torch.cat([torch.eye(3)[n : n + 1], others]) for n in (1, 2)])
    together = torch.cat([torch.tensor([[0.0, 0.5, 0.5]]), others]).expand(2, 3, 3)
    first, second = (maps.rollout([w[None]])[0, 0, 1:].tolist() for w in (apart, together))
    return only(a=first == second, b=first > second, c=first < second)


# 10: published weights ---------------------------------------------------------------------------


@torch.no_grad()
def l10_q3_another_normalisation():
    model = weights.load("scattered").model
    x = scattered(40, seed=1, held_out=True).images  # mean 0.5, std 0.5
    y = (x * 0.5 + 0.5 - 0.449) / 0.226
    changed = deepcopy(model)
    proj = changed.patch_embed.proj
    proj.bias += proj.weight.sum(dim=(1, 2, 3)) * (0.449 - 0.5) / 0.5
    proj.weight *= 0.226 / 0.5
    nothing, embedding = (
        torch.allclose(m(y), model(x), rtol=0, atol=1e-3) for m in (model, changed)
    )
    return only(a=nothing, b=embedding, c=not nothing and not embedding)


def l10_q4_another_head():
    head, file = nn.Linear(8, 3), nn.Linear(8, 1000).state_dict()
    before = head.weight.clone()
    try:
        head.load_state_dict(file, strict=False)
        refused = False
    except RuntimeError:
        refused = True
    return only(
        a=not refused and torch.equal(head.weight, before),
        b=torch.equal(head.weight, file["weight"][:3]),
        c=refused,
    )


# 11: other ViTs ----------------------------------------------------------------------------------


def l11_q1_ten_times_as_long():
    torch.manual_seed(0)
    x = torch.randn(2, 17, 48)
    norm = nn.LayerNorm(48)
    orders = dict(a=lambda t: norm(t.mean(dim=1)), b=lambda t: norm(t).mean(dim=1))
    one_long = torch.cat([10 * x[:, :1], x[:, 1:]], dim=1)
    assert not torch.allclose(orders["a"](one_long), orders["a"](x), atol=1e-2)
    other = {a: not torch.allclose(f(10 * x), f(x), atol=1e-2) for a, f in orders.items()}
    return only(**other, c=not any(other.values()))


def l11_q2_branches_missed():
    return near(2 * sum(dropping.drop_path_rates(0.3, 12)), a=7.2, b=3.6, c=0.6)


def l11_q3_gained_by_one_not_needed_by_the_other():
    runs = {name: fmean(shares) for name, shares in stored("why C")["runs"].items()}
    assert 74.5 < runs["A"] < 75.5
    assert 96.5 < runs["A, batch norms"] < 97.5
    assert 97.5 < runs["C, no batch norms"] < 98.5
    gained = runs["A, batch norms"] > runs["A"] + 20
    needed = runs["C, no batch norms"] < runs["C"] - 2
    luck = max(stored("why C")["runs"]["A"]) > min(stored("why C")["runs"]["A, batch norms"])
    return only(a=needed, b=gained and not needed, c=luck)


def l11_q4_who_is_kept():
    noise = torch.tensor([[0.4, 0.8, 0.2, 0.7]])
    with patch("torch.rand", lambda *shape, **options: noise):
        _, _, mask = random_masking(torch.zeros(1, 4, 1), 0.5)
    numbers = (~mask[0]).nonzero().flatten().tolist()
    return only(a=numbers == [0, 2], b=numbers == [0, 1], c=numbers == [1, 3])


def l11_q5_always_right():
    def right(ratio: float) -> bool:
        stays = 1 - Fraction(str(ratio))
        counts = [n for n in range(1, 1001) if (n * stays).denominator == 1]
        return all(int(n * (1 - ratio)) == n * stays for n in counts)

    return only(a=right(0.9), b=right(0.75), c=right(0.8))


# 12: mistakes, and the doctor --------------------------------------------------------------------


CONFIG = ViTConfig(32, 8, num_classes=10, embed_dim=48, depth=2, num_heads=4)


def l12_q1_two_numbers():
    torch.manual_seed(0)
    q, k = torch.randn(2, 8, 197, 64)
    scores = q @ k.mT

    def as_measured(weights: Tensor) -> bool:
        rows = weights / weights.sum(dim=-1, keepdim=True)
        measured = (weights.sum(dim=-1), rows.amax(dim=-1))
        expected = ((1, 5e-4), (0.006, 5e-4))
        return all(
            abs(x.mean().item() - n) <= within
            for x, (n, within) in zip(measured, expected, strict=True)
        )

    return only(
        a=as_measured(scores.softmax(dim=-1)),
        b=as_measured(scores.softmax(dim=-1) / 8),
        c=as_measured((scores / 200).softmax(dim=-1)),
    )


def l12_q2_zeros_are_not_none():
    torch.manual_seed(0)
    branch = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8))
    x = torch.randn(3, 8, requires_grad=True)
    (x + 0 * branch(x)).square().sum().backward()
    names = [name for name, p in branch.named_parameters() if p.grad is None]
    return only(a=len(names) == 4, b=names == ["0.weight", "0.bias"], c=not names)


class Unused(ViT):
    def forward(self, images, return_attention=False):
        x = self.tokens(self.patch_embed(images))
        for block in self.blocks:
            block(x)
        return self.head(self.norm(x)[:, 1:].mean(dim=1))


class OtherPictures(ViT):
    def forward(self, images, return_attention=False):
        return super().forward((images * 0.5 + 0.5 - 0.449) / 0.226)


class Dropping(ViT):
    def forward(self, images, return_attention=False):
        return self.head(F.dropout(self.features(images)[:, 0], 0.1))


def l12_q3_not_found():
    torch.manual_seed(0)
    models = dict(a=Unused(CONFIG), b=OtherPictures(CONFIG), c=Dropping(CONFIG))
    reports = {x: vit_doctor.examine(model, image_size=32) for x, model in models.items()}
    assert "random in eval" in reports["c"].names
    return only(**{x: not report.names for x, report in reports.items()})


def l12_q4_cut_without_a_swap():
    def unseen(heads: int, tokens: int, width: int) -> bool:
        mixed = torch.arange(2.0 * heads * tokens * width).reshape(2, heads, tokens, width)
        return torch.equal(mixed.reshape(2, tokens, heads * width), merge_heads(mixed))

    return only(a=unseen(1, 5, 64), b=unseen(4, 4, 16), c=unseen(4, 5, 1))


def l12_q6_a_softmax_too_many():
    logits = torch.zeros(1, 1000)
    logits[0, 0] = 100  # as sure as can be, and right
    loss = F.cross_entropy(logits.softmax(dim=-1), torch.tensor([0])).item()
    assert abs(log(1000) - loss - 1) < 0.01
    assert round(-log(exp(1) / (exp(1) + 9)), 2) == 1.46
    return near(loss, within=0.01, a=0, b=1.46, c=5.91)


# 13: fast and large ------------------------------------------------------------------------------


def l13_q1_twice_as_wide():
    def mixing(width: int) -> int:
        work = scale.multiply_adds(ViTConfig.preset("B/16", embed_dim=width))
        return work["scores"] + work["mixture"]

    return near(mixing(1536) / mixing(768), a=1, b=2, c=4)


def l13_q2_tokens_at_the_end():
    config = ViTConfig((16, 24), 4, 1, 10, embed_dim=64, depth=4, num_heads=4)
    model, counts = scale.merging(ViT(config), 2), []
    model.model.norm.register_forward_hook(lambda _, inputs, __: counts.append(inputs[0].shape[1]))
    model(torch.randn(1, 1, 16, 24))
    return only(a=counts == [25], b=counts == [19], c=counts == [17])


def l13_q3_three_patches_and_one():
    x, sizes = torch.tensor([[[0.0], [10], [30]]]), torch.tensor([[1.0, 3, 1]])
    new, size = scale.merge_tokens(x, torch.ones(1, 3, 2), sizes, 1)
    result = new[0, 1].item(), size[0, 1].item()
    return only(a=result == (15, 4), b=result == (20, 2), c=result == (20, 4))


def l13_q5_first_of_three():
    torch.manual_seed(0)
    model, images, labels = nn.Linear(4, 3), torch.randn(10, 4), torch.arange(10) % 3
    pieces = zip(images.split([4, 3, 3]), labels.split([4, 3, 3]), strict=True)
    losses = [F.cross_entropy(model(piece), own_labels) for piece, own_labels in pieces]
    loss, others = F.cross_entropy(model(images), labels), 0.3 * (losses[1] + losses[2])
    return near((loss - others) / losses[0], a=1 / 3, b=1 / 4, c=2 / 5)
