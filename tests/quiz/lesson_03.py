"""Lesson 03: queries, keys, values and heads."""

import torch
from torch import nn

from vit_steps import merge_heads, split_qkv

from . import only, same


def lookup(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (q @ k.mT).softmax(dim=-1) @ v


def q1_what_a_head_can_read():
    torch.manual_seed(0)
    reads = (10 * torch.randn(10_000, 3)).softmax(dim=-1) @ torch.tensor([2.0, 3, 7])
    said = dict(a=1.5, b=6.5, c=7.5)
    return only(**{x: bool((reads - n).abs().min() < 0.1) for x, n in said.items()})


def q2_whose_outputs_change():
    torch.manual_seed(0)
    linear, x = nn.Linear(12, 36).requires_grad_(False), torch.randn(1, 7, 12)
    changed = x.clone()
    changed[0, 2] += 1
    before, after = (lookup(*split_qkv(linear(tokens), 3)) for tokens in (x, changed))
    others = ((after - before).abs().amax(dim=(0, 1, 3)) > 1e-5).tolist()  # one a token
    eye = others.pop(2)
    return only(a=eye and all(others), b=eye and not any(others), c=not eye and all(others))


def q3_several_heads():
    torch.manual_seed(0)
    A, B, C = values = torch.randn(3, 64)

    def by_one_head(wanted: torch.Tensor) -> bool:
        weights = torch.linalg.lstsq(values.T, wanted[:, None]).solution
        assert weights.min() > -1e-5
        return same((values.T @ weights)[:, 0], wanted)

    halves = torch.cat([A[:32], B[32:]])
    two_heads = torch.stack([torch.eye(3)[0] @ values[:, :32], torch.eye(3)[1] @ values[:, 32:]])
    assert same(two_heads.flatten(), halves)
    return only(
        a=not by_one_head(halves),
        b=not by_one_head((A + B) / 2),
        c=not by_one_head(0.5 * A + 0.3 * B + 0.2 * C),
    )


def q4_row_30():
    q, k, v = split_qkv(torch.arange(36.0).reshape(1, 1, 36), 3)
    assert 30 not in q
    return only(a=30 in k[:, 1], b=30 in v[:, 1], c=30 in v[:, 2])


def q5_heads_in_reverse():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 12, 7, 64)
    before = merge_heads(lookup(q, k, v))
    after = merge_heads(lookup(q.flip(1), k.flip(1), v.flip(1)))
    in_place = same(before, after)
    kept = same(*(x.flatten().sort().values for x in (before, after)))
    assert same(after, before.unflatten(-1, (12, 64)).flip(2).flatten(2))
    return only(a=in_place, b=not kept, c=kept and not in_place)


def q6_what_heads_add():
    qkv = nn.Linear(768, 3 * 768)
    made, count = qkv(torch.randn(1, 5, 768)), {}
    for heads in (1, 12):
        q, k, v = split_qkv(made, heads)
        rows = (q @ k.mT).softmax(dim=-1)[0, :, 0]  # of token 0
        count[heads] = sum(p.numel() for p in qkv.parameters()), v[0, :, 0].numel(), len(rows)
    more = [many > one for one, many in zip(count[1], count[12], strict=True)]
    return only(a=more[0], b=more[1], c=more[2])
