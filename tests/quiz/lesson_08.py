"""Lesson 08: what makes it learn."""

from itertools import combinations

import pytest
import torch
from torch import Tensor, nn

from vit_steps import EncoderBlock, ViT, ViTConfig
from vit_steps.training import data

from . import near, only, same


def q1_ten_worthless_ideas():
    torch.manual_seed(0)
    passed = (torch.rand(100_000, 10) < 0.05).any(dim=1).double().mean().item()
    return near(100 * passed, 3, a=5, b=40, c=50)


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


@torch.no_grad()
def q5_a_bag_of_pixels():
    torch.manual_seed(0)
    model = ViT(ViTConfig(8, 1, 1, 10, embed_dim=24, depth=2, num_heads=4)).eval()
    nn.init.normal_(model.head.weight)
    nn.init.zeros_(model.tokens.pos_embed)
    images = data.digits()[1].images[:40].flatten(1)
    mixed = images.gather(1, torch.rand(images.shape).argsort(dim=1))
    before, after = (model(x.view(-1, 1, 8, 8)) for x in (images, mixed))
    equal = same(before, after)
    lost = before.argmax(dim=1).ne(after.argmax(dim=1)).double().mean().item() > 0.8
    return only(a=lost, b=not equal, c=equal)


def q6_seeds_that_suffice():
    def chance(count: int) -> float:
        """The share of the ways to deal 2 · count numbers that lie as far apart as can be."""
        numbers = range(2 * count)
        gaps = [abs(2 * sum(group) - sum(numbers)) for group in combinations(numbers, count)]
        return gaps.count(max(gaps)) / len(gaps)

    assert chance(3) == 0.1
    fewest = next(count for count in range(3, 7) if chance(count) < 0.05)
    return only(a=fewest == 4, b=fewest == 5, c=fewest == 6)
