"""Lesson 11: other ViTs."""

from fractions import Fraction

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from vit_steps import variants

from . import near, only, same


def q1_ten_times_as_long():
    torch.manual_seed(0)
    x = torch.randn(2, 17, 48)

    def norm(t: Tensor) -> Tensor:
        return F.layer_norm(t, (48,))

    def mean_first(t: Tensor) -> Tensor:
        return norm(t.mean(dim=1))

    def norm_first(t: Tensor) -> Tensor:
        return norm(t).mean(dim=1)

    one_long = torch.cat([10 * x[:, :1], x[:, 1:]], dim=1)
    assert not torch.allclose(mean_first(one_long), mean_first(x), atol=1e-2)
    a, b = (not torch.allclose(f(10 * x), f(x), atol=1e-2) for f in (mean_first, norm_first))
    return only(a=a, b=b, c=not a and not b)


def q2_branches_missed():
    return near(2 * sum(variants.drop_path_rates(0.3, 12)), a=7.2, b=3.6, c=0.6)


def q3_work_of_checkpointing():
    blocks = [nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 32)) for _ in range(4)]

    def work(again: bool) -> int:
        x = torch.randn(8, 32, requires_grad=True)
        with FlopCounterMode(display=False) as counter:
            for block in blocks:
                # It keeps a block's input, and computes the rest again for the gradient.
                x = checkpoint(block, x, use_reentrant=True) if again else block(x)
            x.sum().backward()
        return counter.get_total_flops()

    return near(work(again=True) / work(again=False), a=4 / 3, b=3 / 2, c=2)


def q4_positions_for_all():
    torch.manual_seed(0)
    tokens, positions, mask_token = (torch.randn(1, n, 8) for n in (10, 10, 1))
    kept, order, mask = variants.random_masking(tokens, 0.5)
    right = variants.unmask(kept, order, mask_token, positions)
    other = variants.unmask(kept, order, mask_token, torch.zeros(1, 10, 8)) + positions

    def twice(where: Tensor) -> bool:
        return same(other[where], (right + positions)[where])

    return only(a=twice(~mask), b=twice(mask), c=same(other, right))


def q5_always_right():
    def right(ratio: float) -> bool:
        stays = 1 - Fraction(str(ratio))
        whole = [n for n in range(1, 1001) if (n * stays).denominator == 1]
        return all(int(n * (1 - ratio)) == n * stays for n in whole)

    return only(a=right(0.9), b=right(0.75), c=right(0.8))


@torch.no_grad()
def q6_sharp_under_qk_norm():
    torch.manual_seed(0)
    tokens, linears, norm = torch.randn(2, 197, 64), torch.randn(2, 64, 64), nn.LayerNorm(64)

    def sharp(longer: float = 1, scale: float = 1) -> bool:
        norm.weight.fill_(scale)
        q, k = norm(longer * tokens @ linears)
        largest = (q @ k.mT / 8).softmax(dim=-1).amax(dim=-1).mean().item()
        assert largest > 0.85 or largest < 0.06
        return largest > 0.85

    assert not sharp()
    b, c = sharp(longer=8), sharp(scale=4)
    return only(a=not b and not c, b=b, c=c)
