"""The core lessons, 00 to 07."""

from math import isclose

import torch
from einops import rearrange
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from vit_course import checks
from vit_course.canvases import scattered
from vit_steps import (
    ViT,
    ViTConfig,
    normalize,
    patchify,
    scaled_dot_product_attention,
    split_qkv,
    weights,
)

from . import near, only, same

# 00: pictures as numbers -------------------------------------------------------------------------


def l00_q1_grey_pixel():
    return near(normalize(torch.full((3, 1, 1), 102 / 255))[0, 0, 0], a=-0.2, b=0.4, c=0.2)


def l00_q2_way_back():
    x = torch.arange(24).reshape(2, 4, 3)
    moved = x.permute(2, 0, 1)
    assert moved.permute(2, 0, 1).permute(2, 0, 1).equal(x)
    orders = dict(a=(2, 0, 1), b=(1, 2, 0), c=(0, 2, 1))
    return only(**{letter: moved.permute(order).equal(x) for letter, order in orders.items()})


def l00_q5_forgotten_std():
    grey = torch.full((3, 2, 2), 0.5)
    message = checks.difference(grey - 0.5, normalize(grey))
    return only(a=message == "< 1e-5", b=message == "up to 0.5", c=message == "up to 1")


def l00_q6_upside_down():
    test = scattered(2000, seed=1, held_out=True)
    with torch.no_grad():
        answers = weights.load("scattered").model(test.images.flip(2)).argmax(dim=1)
    shares = {d: (answers[test.labels == d] == d).float().mean().item() for d in (2, 3, 7)}
    assert round(shares[3], 2) == 0.89
    assert (answers[test.labels == 2] == 5).float().mean() > 0.5
    most = max(shares, key=lambda digit: shares[digit])
    return only(a=most == 2, b=most == 3, c=most == 7)


# 01: patches, templates and tokens ---------------------------------------------------------------


def l01_q1_reds_of_a_patch():
    image = torch.zeros(1, 3, 16, 16)
    image[:, 0] = 1 + torch.arange(256.0).reshape(16, 16)
    row, reds = patchify(image, 16)[0, 0], image[0, 0].flatten()
    assert row[: 5 * 48].count_nonzero() == 5 * 16  # five rows, three colours
    return only(a=row[:256].equal(reds), b=row[0::3].equal(reds), c=row[0::256].equal(reds))


def l01_q2_brackets_turned_round():
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    pattern = "b c (p1 row) (p2 col) -> b (row col) (p1 p2 c)"
    first = rearrange(image, pattern, p1=2, p2=2)[0, 0].tolist()
    assert patchify(image, 2)[0, 0].tolist() == [0, 1, 4, 5]
    return only(a=first == [0, 1, 2, 3], b=first == [0, 1, 4, 5], c=first == [0, 2, 8, 10])


def l01_q4_large_patch():
    a, b = torch.full((768,), -0.1), torch.full((768,), -1.0)
    return near((a @ b) / (a @ a), within=1e-3, a=10, b=1, c=0.1)


# 02: the cls token and the positions -------------------------------------------------------------


def l02_q6_what_positions_learn():
    positions = weights.load("scattered").model.tokens.pos_embed[0].detach()
    like = F.cosine_similarity(positions[1:, None], positions[None], dim=-1)  # (16, 17)
    like[:, 1:].fill_diagonal_(-1)
    grid = torch.cartesian_prod(torch.arange(4.0), torch.arange(4.0))
    apart = F.pad(torch.cdist(grid, grid), (1, 0))  # cls first, 0 from all
    of_the_most_alike = apart.gather(1, like.argmax(dim=1, keepdim=True))[:, 0]
    return only(
        a=bool((of_the_most_alike == 0).all()),
        b=bool((of_the_most_alike == apart.amax(dim=1)).all()),
        c=bool((of_the_most_alike == 1).all()),
    )


# 03: queries, keys, values and heads -------------------------------------------------------------


def l03_q4_row_30():
    q, k, v = split_qkv(torch.arange(36.0).reshape(1, 1, 36), 3)
    assert 30 not in q
    return only(a=30 in k[:, 1], b=30 in v[:, 1], c=30 in v[:, 2])


# 04: the equation, its scale, its cost -----------------------------------------------------------


def l04_q1_spread_of_scores():
    torch.manual_seed(0)
    q, k = 2 * torch.randn(20_000, 64), torch.randn(20_000, 64)
    return near((q * k).sum(dim=-1).std(), within=1, a=8, b=16, c=256)


def l04_q3_mean_of_row_sums():
    torch.manual_seed(0)
    weights = torch.randn(197, 197).softmax(dim=-2)
    sums = weights.sum(dim=-1)
    assert sums.std() > 0.05  # the single rows show it
    assert round(weights.mean().item(), 3) == 0.005
    return near(sums.mean(), within=1e-3, a=1, b=197, c=1 / 197)


def l04_q5_without_the_scale_but_started_smaller():
    torch.manual_seed(0)
    x, wish, rows, later = *torch.randn(2, 1, 17, 64), *torch.randn(2, 64, 64) / 8

    def mixed(to_q, smaller):  # times 8 undoes the division
        return scaled_dot_product_attention(x @ to_q.T * smaller, x, x)[0]

    moved = []
    for smaller in (1, 8):
        to_q = (rows / smaller).requires_grad_()
        (mixed(to_q, smaller) * wish).sum().backward()
        torch.optim.Adam([to_q], lr=0.001, eps=1e-16).step()
        moved.append((to_q * smaller - rows).norm().item())
    return only(
        a=not same(mixed(rows, 1), mixed(rows / 8, 8)),
        b=not same(mixed(later, 1), mixed(later / 8, 8)),
        c=7.9 < moved[1] / moved[0] < 8.1,
    )


def l04_q6_gradient_of_a_saturated_row():
    q = torch.tensor([[100.0, 0, 0]], requires_grad=True)
    k = torch.diag(torch.tensor([100.0, 1, 1])).requires_grad_()
    v = torch.randn(3, 3, requires_grad=True)
    weights = (q @ k.T).softmax(dim=-1)
    assert weights.tolist() == [[1, 0, 0]]
    (weights @ v).sum().backward()
    assert not v.grad[1:].any()
    return only(a=bool(v.grad[0].any()), b=bool(q.grad.any()), c=bool(k.grad[0].any()))


# 05: the residual connections, the norm, the MLP and the block -----------------------------------


def l05_q2_a_shifted_token():
    first, second = nn.LayerNorm(2, eps=1e-6)(torch.tensor([[2.0, 4], [102, 104]])).tolist()
    assert [round(x, 3) for x in first] == [-1, 1]
    values = [round(x, 1) for x in second]
    return only(a=values == [0, 0], b=values == [-1, 1], c=values == [99, 101])


def l05_q6_one_large_number():
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


# 06: the head, the whole model, its size and its work --------------------------------------------


def l06_q2_work_of_larger_patches():
    def work(name: str) -> int:
        with torch.device("meta"), FlopCounterMode(display=False) as counter:
            ViT(ViTConfig.preset(name))(torch.empty(1, 3, 224, 224), return_attention=True)
        return counter.get_total_flops()

    return near(work("B/32") / work("B/16"), within=0.02, a=1 / 16, b=1 / 2, c=1 / 4)


def l06_q4_norm_and_mean():
    torch.manual_seed(0)
    x = torch.randn(2, 17, 48)
    before = F.layer_norm(x, (48,)).mean(dim=1).std()
    after = F.layer_norm(x.mean(dim=1), (48,)).std()
    return only(a=bool(before > 1.1 * after), b=bool(after > 1.1 * before), c=before == after)


# 07: training ------------------------------------------------------------------------------------


def l07_q1_surer_of_a_mistake():
    logits, labels = 3 * torch.eye(10), torch.arange(10)
    labels[9] = 0  # one of ten is wrong
    right = [(x.argmax(dim=1) == labels).sum().item() for x in (logits, 10 * logits)]
    assert right == [9, 9]
    ratio = (F.cross_entropy(10 * logits, labels) / F.cross_entropy(logits, labels)).item()
    return only(a=ratio > 1.1, b=ratio < 0.9, c=isclose(ratio, 1, rel_tol=0.1))


def l07_q2_a_loss_times_100():
    def first_step(kind: type[torch.optim.Optimizer], factor: float, **options: float) -> float:
        w = torch.tensor([0.5], requires_grad=True)
        optimizer = kind([w], lr=0.01, **options)
        (factor * (w - 3) ** 2).sum().backward()
        optimizer.step()
        return abs(w.item() - 0.5)

    kinds = {torch.optim.SGD: {}, torch.optim.AdamW: {"weight_decay": 0}}
    sgd, adamw = (
        isclose(first_step(kind, 100, **options), 100 * first_step(kind, 1, **options), rel_tol=0.1)
        for kind, options in kinds.items()
    )
    return only(a=sgd and adamw, b=sgd and not adamw, c=not sgd and not adamw)


def l07_q3_val_or_test():
    torch.manual_seed(0)
    # 20 models that are equally good, 90%, judged on 359 pictures, and that 2,000 times.
    accuracy = torch.distributions.Binomial(359, torch.tensor(0.9)).sample((2, 2000, 20)) / 359
    val, test = accuracy
    best = val.argmax(dim=1, keepdim=True)
    reported = dict(a=val.gather(1, best), b=test.gather(1, best), c=test.amax(dim=1))
    return only(**{x: abs(share.mean().item() - 0.9) < 0.002 for x, share in reported.items()})
