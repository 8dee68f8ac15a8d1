"""Lesson 05: the residual connections, the norm, the MLP and the block."""

import torch
from torch import nn
from torch.nn import functional as F

from vit_steps import MLP, EncoderBlock, ViT, ViTConfig

from . import only, same


def q1_doubled_before_the_final_norm():
    torch.manual_seed(0)
    model = ViT(ViTConfig(image_size=8, patch_size=4, in_channels=1, embed_dim=48, depth=1))
    x = torch.randn(2, 5, 48)  # tokens behind the last block

    def logits(x: torch.Tensor) -> torch.Tensor:
        return model.head(model.norm(x)[:, 0])

    bare = model.head.weight @ x[0, 0]
    assert same(model.head.weight @ (2 * x[0, 0]), 2 * bare)  # what it would be without the norm
    return only(
        a=same(logits(2 * x), logits(x)),
        b=same(logits(2 * x), 2 * logits(x)),
        c=bool((logits(2 * x).argsort() != logits(x).argsort()).any()),
    )


def q2_a_shifted_token():
    first, second = nn.LayerNorm(2, eps=1e-6)(torch.tensor([[2.0, 4], [102, 104]])).tolist()
    assert [round(x, 3) for x in first] == [-1, 1]
    found = [round(x, 1) for x in second]
    return only(a=found == [0, 0], b=found == [-1, 1], c=found == [99, 101])


def q3_each_looks_at_itself():
    torch.manual_seed(0)
    block, x = EncoderBlock(48, 4).requires_grad_(False), torch.randn(1, 7, 48)
    changed = x.clone()
    changed[0, 3, :5] += 1

    def moved(*mask: torch.Tensor) -> list[int]:
        gap = (block(changed, *mask) - block(x, *mask)).abs().amax(dim=-1)[0]
        return (gap > 1e-5).nonzero().flatten().tolist()

    assert moved() == list(range(7))  # without the mask
    tokens = moved(torch.eye(7, dtype=torch.bool))
    return only(a=tokens == list(range(7)), b=tokens == [2, 3, 4], c=tokens == [3])


def q4_without_an_activation():
    torch.manual_seed(0)
    mlp, one, x = MLP(8, 32), nn.Linear(8, 8), torch.randn(5, 7, 8)

    def bent(f: nn.Module) -> bool:
        return not same(f(x) + f(-x), f(torch.zeros_like(x)) * 2)

    assert bent(mlp)
    plain = nn.Sequential(mlp.fc1, mlp.fc2)
    one.weight.data = mlp.fc2.weight @ mlp.fc1.weight
    one.bias.data = mlp.fc2(mlp.fc1.bias)
    return only(a=same(plain(x), one(x)), b=plain(x).shape[-1] == 32, c=bent(plain))


class WithoutTheSum(EncoderBlock):
    def forward(self, x, mask=None, return_attention=False):
        x = x + self.attn(self.norm1(x))
        return self.mlp(self.norm2(x))


def q5_check_that_finds_a_missing_sum():
    torch.manual_seed(0)
    right, wrong, x = EncoderBlock(48, 4), WithoutTheSum(48, 4), torch.randn(2, 7, 48)
    wrong(x).sum().backward()
    for block in (right, wrong):
        for parameter in (*block.attn.proj.parameters(), *block.mlp.fc2.parameters()):
            nn.init.zeros_(parameter)
    assert same(right(x), x)
    return only(
        a=right(x).shape != wrong(x).shape,
        b=any(p.grad is None for p in wrong.parameters()),
        c=not same(wrong(x), x),
    )


def q6_one_large_number():
    torch.manual_seed(0)
    token = torch.randn(768)
    without = F.layer_norm(token, (768,))[1:]
    token[0] = 1000
    assert 34 < token.std() / token[1:].std() < 38
    others = F.layer_norm(token, (768,))[1:]
    return only(
        a=bool((others.std() - 1).abs() < 0.1),
        b=bool(others.std() < 0.05),
        c=torch.allclose(others, without, atol=0.1),
    )
