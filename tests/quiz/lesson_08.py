"""Lesson 08: what makes it learn."""

from itertools import combinations
from statistics import mean

import pytest
import torch
from torch import Tensor, nn

from vit_steps import EncoderBlock, ViT, ViTConfig
from vit_steps.training import data

from . import only, same


def q1_two_rules():
    old, new, luck = (85, 86, 87), (86.5, 89.5, 91), 2.7
    beyond_luck, overlap = mean(new) - mean(old) > luck, min(new) < max(old)
    equal = not beyond_luck and mean(new) == mean(old)
    return only(a=beyond_luck and not overlap, b=equal, c=beyond_luck and overlap)


class Same(nn.Module):
    def forward(self, x, *others):
        return x


class Nothing(nn.Module):
    def forward(self, x, *others):
        return torch.zeros_like(x)


@torch.no_grad()
def q2_its_input_for_attention():
    torch.manual_seed(0)
    block, x = EncoderBlock(48, 4), torch.randn(2, 5, 48)

    def with_mlp(x: Tensor) -> Tensor:
        return x + block.mlp(block.norm2(x))

    block.attn = nn.Identity()
    with pytest.raises(TypeError):
        block(x)
    block.attn = Same()
    said = dict(a=with_mlp(x + block.norm1(x)), b=with_mlp(x), c=x)
    return only(**{letter: same(block(x), result) for letter, result in said.items()})


@torch.no_grad()
def q3_cls_without_attention():
    torch.manual_seed(0)
    sizes = dict(image_size=8, patch_size=2, in_channels=1, num_classes=10)
    model = ViT(ViTConfig(**sizes, embed_dim=48, depth=2, num_heads=4)).eval()
    images, labels = data.digits()[1][:]
    for block in model.blocks:
        block.attn = Nothing()
    nn.init.normal_(model.head.weight)
    said = model(images).argmax(dim=1)
    right, classes = (said == labels).double().mean().item(), len(said.unique())
    assert 0.05 < right < 0.15
    return only(a=classes == 10, b=classes == 1, c=1 < classes < 10)


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


def q5_two_points_of_luck():
    torch.manual_seed(0)
    pooled = torch.tensor((0.86 * 199 + 0.88 * 1040) / 1239)
    few, many = (
        torch.distributions.Binomial(count, pooled).sample((100_000,)) / count
        for count in (199, 1040)
    )
    often = ((few - many).abs() >= 0.02).double().mean().item()
    return only(a=0.05 < often < 0.15, b=0.35 < often < 0.45, c=often < 0.05)


def q6_seeds_that_suffice():
    def chance(count: int) -> float:
        """The share of the divisions of 2 · count numbers that lie as far apart as can be."""
        numbers = range(2 * count)
        gaps = [abs(2 * sum(group) - sum(numbers)) for group in combinations(numbers, count)]
        return gaps.count(max(gaps)) / len(gaps)

    assert chance(3) == 0.1
    fewest = next(count for count in range(3, 7) if chance(count) < 0.05)
    return only(a=fewest == 4, b=fewest == 5, c=fewest == 6)
