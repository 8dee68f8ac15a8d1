"""Answers to lesson 07's exercises, as learners would write them."""

import math

import torch
from torch import nn
from torch.nn import functional as F


def gathered(logits, labels, smoothing):
    log_p = logits - logits.logsumexp(dim=1, keepdim=True)
    hit = log_p[torch.arange(len(labels)), labels]
    return -((1 - smoothing) * hit + smoothing * log_p.mean(dim=1)).mean()


def one_by_one(logits, labels, smoothing):
    losses = []
    for row, label in zip(logits, labels, strict=True):
        target = torch.full_like(row, smoothing / len(row))
        target[label] += 1 - smoothing
        losses.append(-torch.dot(target, F.log_softmax(row, dim=0)))
    return sum(losses) / len(losses)


def softmax_twice(logits, labels, smoothing):
    probabilities = F.softmax(logits, dim=1)
    return gathered(probabilities, labels, smoothing)


def unsmoothed(logits, labels, smoothing):
    return F.nll_loss(F.log_softmax(logits, dim=1), labels)


def to_the_others(logits, labels, smoothing):
    n = logits.shape[1]
    target = torch.full(logits.shape, smoothing / (n - 1))
    target[range(len(labels)), labels] = 1 - smoothing
    return -(target * logits.log_softmax(1)).sum(1).mean()


def too_much_target(logits, labels, smoothing):
    target = torch.full(logits.shape, smoothing / logits.shape[1])
    target[range(len(labels)), labels] += 1.0
    return -(target * logits.log_softmax(1)).sum(1).mean()


def without_minus(logits, labels, smoothing):
    return -gathered(logits, labels, smoothing)


def summed(logits, labels, smoothing):
    return gathered(logits, labels, smoothing) * logits.shape[0]


def mean_of_all(logits, labels, smoothing):
    n = logits.shape[1]
    target = F.one_hot(labels, n) * (1 - smoothing) + smoothing / n
    return -(target * logits.log_softmax(1)).mean()


def log_of_softmax(logits, labels, smoothing):
    n = logits.shape[1]
    target = F.one_hot(labels, n) * (1 - smoothing) + smoothing / n
    return -(target * torch.log(torch.softmax(logits, 1))).sum(1).mean()


def in_one_go(step, steps, rise, peak, floor):
    if step < rise:
        return peak / (rise + 1) * (step + 1)
    done = (step - rise) / (steps - rise)
    return (peak + floor) / 2 + (peak - floor) / 2 * math.cos(math.pi * done)


def by_torch(step, steps, rise, peak, floor):
    angle = torch.tensor(max(step - rise, 0) / (steps - rise) * math.pi, dtype=torch.float64)
    down = floor + (peak - floor) * torch.cos(angle / 2) ** 2
    return min(peak * (step + 1) / (rise + 1), down) if step < rise else down


def from_zero(step, steps, rise, peak, floor):
    if step < rise:
        return peak * step / rise
    return in_one_go(step, steps, rise, peak, floor)


def forgot_plus_one(step, steps, rise, peak, floor):
    if step < rise:
        return peak * step / (rise + 1)
    return in_one_go(step, steps, rise, peak, floor)


def early_peak(step, steps, rise, peak, floor):
    if step < rise:
        return peak * (step + 1) / rise
    return in_one_go(step, steps, rise, peak, floor)


def cosine_from_the_start(step, steps, rise, peak, floor):
    if step < rise:
        return peak * (step + 1) / (rise + 1)
    return floor + (peak - floor) * (1 + math.cos(math.pi * step / steps)) / 2


def no_rise(step, steps, rise, peak, floor):
    return floor + (peak - floor) * (1 + math.cos(math.pi * step / steps)) / 2


def down_to_zero(step, steps, rise, peak, floor):
    if step < rise:
        return peak * (step + 1) / (rise + 1)
    return peak * (1 + math.cos(math.pi * (step - rise) / (steps - rise))) / 2


def floor_on_top(step, steps, rise, peak, floor):
    if step < rise:
        return peak * (step + 1) / (rise + 1)
    return floor + peak * (1 + math.cos(math.pi * (step - rise) / (steps - rise))) / 2


def not_halved(step, steps, rise, peak, floor):
    if step < rise:
        return peak * (step + 1) / (rise + 1)
    return floor + (peak - floor) * (1 + math.cos(math.pi * (step - rise) / (steps - rise)))


def straight_down(step, steps, rise, peak, floor):
    if step < rise:
        return peak * (step + 1) / (rise + 1)
    return peak + (floor - peak) * (step - rise) / (steps - rise)


def probe(step, model=None, images=None, lr=0.0):
    """Run a step once on a tiny model; give the model and the loss."""
    model = nn.Linear(3, 3) if model is None else model
    images = torch.tensor([[1.0, 2, 3], [3, 1, 2], [2, 3, 1]]) if images is None else images
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    return model, step(model, optimizer, images, torch.tensor([0, 1, 2]))


def sure():
    model = nn.Linear(3, 3, bias=False)
    model.weight.data = 100 * torch.eye(3)
    return model


def is_eval(step):
    return not probe(step)[0].training


def is_softmax(step):
    return float(probe(step, sure(), torch.eye(3))[1]) > 0.1


def is_piling_up(step):
    model, _ = probe(step)
    first = model.weight.grad.clone()
    return not torch.allclose(probe(step, model)[0].weight.grad, first)


def is_still(step):
    model = nn.Linear(3, 3)
    before = model.weight.data.clone()
    return torch.equal(before, probe(step, model, lr=0.5)[0].weight.data)


def four_probes(step):
    for name, has in (
        ("step", is_still),
        ("softmax", is_softmax),
        ("eval", is_eval),
        ("zero_grad", is_piling_up),
    ):
        if has(step):
            return name
    return None


def loss_against_mine(step):
    model, loss = probe(step)
    images = torch.tensor([[1.0, 2, 3], [3, 1, 2], [2, 3, 1]])
    mine = F.cross_entropy(model(images), torch.tensor([0, 1, 2]))
    if abs(mine.item() - loss.item()) > 1e-3:
        return "softmax"
    model.zero_grad()
    if is_piling_up(step):
        return "zero_grad"
    return "eval" if is_eval(step) else "step" if is_still(step) else None


def without_softmax(step):
    return "eval" if is_eval(step) else "zero_grad" if is_piling_up(step) else still(step)


def still(step):
    return "step" if is_still(step) else None


def without_clearing(step):
    return "eval" if is_eval(step) else "softmax" if is_softmax(step) else still(step)


def without_mode(step):
    return "softmax" if is_softmax(step) else "zero_grad" if is_piling_up(step) else still(step)


def without_moving(step):
    name = four_probes(step)
    return None if name == "step" else name


def judged_at_the_start(step):
    model = nn.Linear(3, 3)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    loss = float(probe(step, model)[1])
    return four_probes(step) or ("softmax" if abs(loss - math.log(3)) < 1e-3 else None)


def any_gradient(step):
    model, _ = probe(step)
    return four_probes(step) or ("zero_grad" if model.weight.grad.abs().sum() > 0 else None)


def with_learning_rate_zero(step):
    model = nn.Linear(3, 3)
    before = model.weight.data.clone()
    probe(step, model)
    return four_probes(step) or ("step" if torch.equal(before, model.weight.data) else None)


def put_in_eval_first(step):
    model = nn.Linear(3, 3).eval()
    probe(step, model)
    return "eval" if not model.training else four_probes(step)


def always_sound(step):
    known = {}
    return known.get(step)


RIGHT = {
    "smoothed_loss": [gathered, one_by_one],
    "floor_schedule": [in_one_go, by_torch],
    "find_slip": [four_probes, loss_against_mine],
}
WRONG = {
    "smoothed_loss": [
        (softmax_twice, "softmax too many"),
        (unsmoothed, "makes no difference"),
        (to_the_others, "the other classes only"),
        (too_much_target, "do not sum to 1"),
        (without_minus, "the sign is wrong"),
        (summed, "the sum over the batch"),
        (mean_of_all, "mean over classes too"),
        (log_of_softmax, "log(0)"),
    ],
    "floor_schedule": [
        (from_zero, "count from 1"),
        (forgot_plus_one, "use step + 1"),
        (early_peak, "one step early"),
        (cosine_from_the_start, "where the rise ends"),
        (no_rise, "there is no rise"),
        (down_to_zero, "ends at 0"),
        (floor_on_top, "peak + floor"),
        (not_halved, "twice the height"),
        (straight_down, "straight line down"),
    ],
    "find_slip": [
        (without_softmax, "the softmax goes unnoticed"),
        (without_clearing, "missing zero_grad goes unnoticed"),
        (without_mode, "the eval mode goes unnoticed"),
        (without_moving, "optimizer.step() goes unnoticed"),
        (judged_at_the_start, "accused of a softmax"),
        (any_gradient, "accused of piling up"),
        (with_learning_rate_zero, "accused of not moving"),
        (put_in_eval_first, "accused of eval mode"),
        (always_sound, "no slip is noticed"),
    ],
}
