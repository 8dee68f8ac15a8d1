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


def q3_first_of_three():
    torch.manual_seed(0)
    model, images, labels = nn.Linear(4, 3), torch.randn(10, 4), torch.arange(10) % 3
    pieces = zip(images.split([4, 3, 3]), labels.split([4, 3, 3]), strict=True)
    losses = [F.cross_entropy(model(some), theirs) for some, theirs in pieces]
    whole, rest = F.cross_entropy(model(images), labels), 0.3 * (losses[1] + losses[2])
    return near((whole - rest) / losses[0], a=1 / 3, b=1 / 4, c=2 / 5)


def q4_twice_as_deep():
    def kept(depth: int) -> int:
        model = ViT(ViTConfig(64, 8, 3, 10, embed_dim=96, depth=depth, num_heads=4))
        return scale.kept_bytes(scale.checkpoint_blocks(model), torch.randn(8, 3, 64, 64))

    times = kept(24) / kept(12)
    return only(a=times < 1.2, b=1.6 < times < 2, c=times > 3)


def q5_third_of_three():
    torch.manual_seed(0)
    losses = torch.rand(8)
    shares = losses[:3].mean() * 9 / 8, losses[3:6].mean() * 9 / 8, losses[6:].mean()
    weight = (3 * losses.mean() - shares[0] - shares[1]) / shares[2]
    return near(weight, a=0.75, b=1, c=0.25)


def q6_held_by_each():
    parts = scale.training_memory(ViTConfig.preset("B/16"), 1)
    held = parts["weights"] + parts["gradients"] + parts["optimizer"]
    return near(held / (parts["weights"] / 4) * 100e6 / 4 / 1e9, a=0.4, b=0.1, c=1.6)
