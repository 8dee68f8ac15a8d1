"""Lesson 12: mistakes, and the doctor."""

from math import exp, log

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import vit_doctor
from vit_steps import ViT, ViTConfig, merge_heads

from . import near, only

CONFIG = ViTConfig(32, 8, num_classes=10, embed_dim=48, depth=2, num_heads=4)


def q1_two_numbers():
    torch.manual_seed(0)
    q, k = torch.randn(2, 8, 197, 64)
    scores = q @ k.mT

    def as_measured(weights: Tensor) -> bool:
        rows = weights / weights.sum(dim=-1, keepdim=True)
        found = (weights.sum(dim=-1), rows.amax(dim=-1))
        said = ((1, 5e-4), (0.006, 5e-4))
        return all(
            abs(x.mean().item() - n) <= within for x, (n, within) in zip(found, said, strict=True)
        )

    return only(
        a=as_measured(scores.softmax(dim=-1)),
        b=as_measured(scores.softmax(dim=-1) / 8),
        c=as_measured((scores / 200).softmax(dim=-1)),
    )


def q2_zeros_are_not_none():
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


def q3_not_found():
    torch.manual_seed(0)
    models = dict(a=Unused(CONFIG), b=OtherPictures(CONFIG), c=Dropping(CONFIG))
    reports = {x: vit_doctor.examine(model, image_size=32) for x, model in models.items()}
    assert "random in eval" in reports["c"].names
    return only(**{x: not report.names for x, report in reports.items()})


def q4_cut_without_a_swap():
    def unseen(heads: int, tokens: int, width: int) -> bool:
        mixed = torch.arange(2.0 * heads * tokens * width).reshape(2, heads, tokens, width)
        return torch.equal(mixed.reshape(2, tokens, heads * width), merge_heads(mixed))

    return only(a=unseen(1, 5, 64), b=unseen(4, 4, 16), c=unseen(4, 5, 1))


def q6_a_softmax_too_many():
    logits = torch.zeros(1, 1000)
    logits[0, 0] = 100  # as sure as can be, and right
    loss = F.cross_entropy(logits.softmax(dim=-1), torch.tensor([0])).item()
    assert abs(log(1000) - loss - 1) < 0.01
    assert round(-log(exp(1) / (exp(1) + 9)), 2) == 1.46
    return near(loss, within=0.01, a=0, b=1.46, c=5.91)
