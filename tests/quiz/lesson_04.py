"""Lesson 04: the equation, its scale, its cost."""

import torch

from vit_steps import scaled_dot_product_attention

from . import near, only, same


def q1_spread_of_scores():
    torch.manual_seed(0)
    q, k = 2 * torch.randn(20_000, 64), torch.randn(20_000, 64)
    return near((q * k).sum(dim=-1).std(), within=1, a=8, b=16, c=256)


def q3_mean_of_row_sums():
    torch.manual_seed(0)
    weights = torch.randn(197, 197).softmax(dim=-2)
    sums = weights.sum(dim=-1)
    assert sums.std() > 0.05  # the single rows show it
    assert round(weights.mean().item(), 3) == 0.005
    return near(sums.mean(), within=1e-3, a=1, b=197, c=1 / 197)


def q5_without_the_scale_but_started_smaller():
    torch.manual_seed(0)
    x, wish, rows, later = *torch.randn(2, 1, 17, 64), *torch.randn(2, 64, 64) / 8

    def read(to_q, smaller):  # times 8 undoes the division
        return scaled_dot_product_attention(x @ to_q.T * smaller, x, x)[0]

    moved = []
    for smaller in (1, 8):
        to_q = (rows / smaller).requires_grad_()
        (read(to_q, smaller) * wish).sum().backward()
        torch.optim.Adam([to_q], lr=0.001, eps=1e-16).step()
        moved.append((to_q * smaller - rows).norm().item())
    return only(
        a=not same(read(rows, 1), read(rows / 8, 8)),
        b=not same(read(later, 1), read(later / 8, 8)),
        c=7.9 < moved[1] / moved[0] < 8.1,
    )


def q6_gradient_of_a_saturated_row():
    q = torch.tensor([[100.0, 0, 0]], requires_grad=True)
    k = torch.diag(torch.tensor([100.0, 1, 1])).requires_grad_()
    v = torch.randn(3, 3, requires_grad=True)
    weights = (q @ k.T).softmax(dim=-1)
    assert weights.tolist() == [[1, 0, 0]]
    (weights @ v).sum().backward()
    assert not v.grad[1:].any()
    return only(a=bool(v.grad[0].any()), b=bool(q.grad.any()), c=bool(k.grad[0].any()))
