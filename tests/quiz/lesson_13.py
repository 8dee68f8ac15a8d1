"""Lesson 13: fast and large."""

import torch
from torch import nn
from torch.nn import functional as F

from vit_steps import ViT, ViTConfig, scale

from . import near, only


def q1_twice_as_wide():
    def mixing(width: int) -> int:
        parts = scale.multiply_adds(ViTConfig.preset("B/16", embed_dim=width))
        return parts["scores"] + parts["mixture"]

    return near(mixing(1536) / mixing(768), a=1, b=2, c=4)


def q2_tokens_at_the_end():
    config = ViTConfig((16, 24), 4, 1, 10, embed_dim=64, depth=4, num_heads=4)
    model, seen = scale.merging(ViT(config), 2), []
    model.model.norm.register_forward_hook(lambda _, given, __: seen.append(given[0].shape[1]))
    model(torch.randn(1, 1, 16, 24))
    return only(a=seen == [25], b=seen == [19], c=seen == [17])


def q3_three_patches_and_one():
    x, sizes = torch.tensor([[[0.0], [10], [30]]]), torch.tensor([[1.0, 3, 1]])
    new, size = scale.merge_tokens(x, torch.ones(1, 3, 2), sizes, 1)
    found = new[0, 1].item(), size[0, 1].item()
    return only(a=found == (15, 4), b=found == (20, 2), c=found == (20, 4))


def q5_first_of_three():
    torch.manual_seed(0)
    model, images, labels = nn.Linear(4, 3), torch.randn(10, 4), torch.arange(10) % 3
    pieces = zip(images.split([4, 3, 3]), labels.split([4, 3, 3]), strict=True)
    losses = [F.cross_entropy(model(some), theirs) for some, theirs in pieces]
    whole, rest = F.cross_entropy(model(images), labels), 0.3 * (losses[1] + losses[2])
    return near((whole - rest) / losses[0], a=1 / 3, b=1 / 4, c=2 / 5)
