"""Lesson 12: mistakes, and the doctor."""

from collections.abc import Callable
from math import isclose, log

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

import vit_doctor as doctor
from vit_steps import EncoderBlock, ViT, ViTConfig, merge_heads, patchify

from . import only

SIZES = dict(image_size=32, patch_size=8, num_classes=10, embed_dim=48, num_heads=4)
CONFIG = ViTConfig(**SIZES, depth=2)


def cropped() -> str:
    image = torch.zeros(1, 1, 250, 250, requires_grad=True)
    F.conv2d(image, torch.ones(1, 1, 16, 16), stride=16).sum().backward()
    assert image.grad is not None
    lost = int((image.grad == 0).sum())
    return only(a=lost == 5000, b=lost == 4900, c=lost == 100)


def which_test_sees_it() -> str:
    torch.manual_seed(0)
    picture = torch.rand(1, 3, 32, 64)
    right = patchify(picture, 8)
    other = rearrange(picture, "b c (h p) (w q) -> b (w h) (p q c)", p=8, q=8)
    return only(
        a=not torch.equal(other, right),
        b=other.shape != right.shape,
        c=not torch.allclose(other.mean(dim=1), right.mean(dim=1), atol=1e-5),
    )


def three_numbers() -> str:
    torch.manual_seed(0)
    q, k = torch.randn(2, 8, 197, 64)
    scores = q @ k.mT

    def as_measured(weights: Tensor) -> bool:
        rows = weights / weights.sum(dim=-1, keepdim=True)
        entropy = -(rows * rows.clamp(min=1e-30).log()).sum(dim=-1).mean().item()
        return (
            isclose(weights.sum(dim=-1).mean().item(), 1, abs_tol=1e-3)
            and isclose(entropy, 5.28, abs_tol=0.005)
            and rows.amax(dim=-1).mean().item() < 0.0065
        )

    return only(
        a=as_measured(scores.softmax(dim=-1)),
        b=as_measured((scores / 100).softmax(dim=-1) / 8) or as_measured(scores.softmax(-1) / 8),
        c=as_measured((scores / 200).softmax(dim=-1)),
    )


def nothing_to_look_at() -> str:
    torch.manual_seed(0)
    x, mask = torch.randn(4, 8), torch.ones(4, 4, dtype=torch.bool)
    mask[0] = False  # the first query may look nowhere
    weights = (x @ x.T).masked_fill(~mask, -torch.inf).softmax(dim=-1)
    mixed = weights @ x
    again = (mixed @ mixed.T).softmax(dim=-1)
    assert torch.equal(weights.isnan(), ~mask)
    assert again.isnan().all()
    row, even = weights[0], torch.full((4,), 1 / 4)
    assert torch.equal(torch.full((4,), -1e9).softmax(dim=-1), even)
    return only(
        a=bool(row.isnan().all()),
        b=torch.equal(row, torch.zeros(4)),
        c=torch.equal(row, even),
    )


def zeros_are_no_none() -> str:
    torch.manual_seed(0)
    branch = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8))
    x = torch.randn(3, 8, requires_grad=True)
    (x + 0 * branch(x)).square().sum().backward()
    names = [name for name, p in branch.named_parameters() if p.grad is None]
    assert all(not p.grad.any() for p in branch.parameters() if p.grad is not None)
    return only(a=len(names) == 4, b=names == ["0.weight", "0.bias"], c=not names)


class Unused(ViT):
    def forward(self, images, return_attention=False):
        x = self.tokens(self.patch_embed(images))
        for block in self.blocks:
            block(x)
        return self.head(self.norm(x)[:, 1:].mean(dim=1))


class Random(ViT):
    def forward(self, images, return_attention=False):
        return self.head(F.dropout(self.features(images)[:, 0], 0.1))


class Prepared(ViT):
    def forward(self, images, return_attention=False):
        return super().forward((images * 0.5 + 0.5 - 0.449) / 0.226)


def silent_for() -> str:
    torch.manual_seed(0)
    models = {"a": Unused(CONFIG), "b": Prepared(CONFIG), "c": Random(CONFIG)}
    nothing = {x: not doctor.examine(m, image_size=32).names for x, m in models.items()}
    return only(**nothing)


def unseen_cut() -> str:
    def unseen(heads: int, tokens: int, width: int) -> bool:
        mixed = torch.arange(2.0 * heads * tokens * width).reshape(2, heads, tokens, width)
        return torch.equal(mixed.reshape(2, tokens, heads * width), merge_heads(mixed))

    return only(a=unseen(1, 5, 6), b=unseen(4, 4, 6), c=unseen(4, 5, 1))


class InPlace(EncoderBlock):
    def forward(self, x, mask=None, return_attention=False):
        x += self.attn(self.norm1(x), mask)
        x += self.mlp(self.norm2(x))
        return x


@torch.no_grad()
def twice_the_same() -> str:
    torch.manual_seed(0)
    model, images = ViT(CONFIG).eval(), torch.randn(2, 3, 32, 32)
    right = model(images)
    for number, block in enumerate(model.blocks):
        other = InPlace(48, 4)
        other.load_state_dict(block.state_dict())
        model.blocks[number] = other.eval()
    try:
        (first, second), refused = (model(images) for _ in range(2)), False
    except RuntimeError:
        first = second = right
        refused = True
    tokens = torch.randn(2, 17, 48)
    copy = tokens.clone()
    model.blocks[0](tokens)
    seen_at_the_block = not torch.equal(tokens, copy)
    same = torch.equal(first, second) and torch.allclose(first, right, atol=1e-5)
    return only(
        a=not refused and not same,
        b=refused,
        c=not refused and same and seen_at_the_block,
    )


def a_softmax_too_many() -> str:
    logits = torch.zeros(1, 1000)
    logits[0, 0] = 100  # as sure as can be, and right
    loss = F.cross_entropy(logits.softmax(dim=-1), torch.tensor([0])).item()
    ten = F.cross_entropy(F.one_hot(torch.tensor([0]), 10).float(), torch.tensor([0])).item()
    assert isclose(log(1000) - loss, 1, abs_tol=0.01)
    return only(
        a=isclose(loss, ten, abs_tol=0.01),
        b=isclose(loss, 5.91, abs_tol=0.01),
        c=isclose(loss, 0, abs_tol=0.01),
    )


def mixing_share(tokens: int) -> float:
    """How much of a block's work mixes tokens."""
    with torch.device("meta"):
        block, x = EncoderBlock(768, 12), torch.empty(1, tokens, 768)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        block(x, return_attention=True)
    linears = sum(p.numel() for p in block.parameters() if p.ndim == 2)
    return 1 - 2 * tokens * linears / counter.get_total_flops()


def as_much_as_the_linears() -> str:
    assert isclose(mixing_share(197), 0.04, abs_tol=0.01)
    assert isclose(mixing_share(768), 1 / 7, abs_tol=0.001)
    even = {x: isclose(mixing_share(n), 1 / 2) for x, n in {"a": 197, "b": 768, "c": 4608}.items()}
    return only(**even)


PROOFS: dict[int, Callable[[], str]] = {
    1: cropped,
    2: which_test_sees_it,
    3: three_numbers,
    4: nothing_to_look_at,
    5: zeros_are_no_none,
    6: silent_for,
    7: unseen_cut,
    8: twice_the_same,
    9: a_softmax_too_many,
    10: as_much_as_the_linears,
}
