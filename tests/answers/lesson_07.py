"""Answers to lesson 07's exercises, as learners would write them."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from vit_steps.training import augment_digits

# Exercise 1: the loss -----------------------------------------------------------------------------


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


def by_two_losses(logits, labels, smoothing):
    logs = F.log_softmax(logits, dim=-1)
    sure = F.nll_loss(logs, labels)
    unsure = torch.einsum("bk->", -logs) / logs.numel()
    return (1 - smoothing) * sure + smoothing * unsure


def scattered(logits, labels, smoothing):
    sure = torch.zeros_like(logits).scatter(1, labels[:, None], 1.0)
    target = torch.lerp(sure, torch.full_like(sure, 1 / sure.size(1)), smoothing)
    return (target * (logits.logsumexp(1, keepdim=True) - logits)).sum() / logits.size(0)


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


def too_little_target(logits, labels, smoothing):
    target = torch.full(logits.shape, smoothing / logits.shape[1])
    target[range(len(labels)), labels] = 1.0 - smoothing
    return -(target * logits.log_softmax(1)).sum(1).mean()


def all_to_each(logits, labels, smoothing):
    target = F.one_hot(labels, logits.shape[1]) * (1 - smoothing) + smoothing
    return -(target * logits.log_softmax(1)).sum(1).mean()


def shares_exchanged(logits, labels, smoothing):
    n = logits.shape[1]
    target = F.one_hot(labels, n) * smoothing + (1 - smoothing) / n
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


def log_of_exp(logits, labels, smoothing):
    n = logits.shape[1]
    target = F.one_hot(labels, n) * (1 - smoothing) + smoothing / n
    p = logits.exp() / logits.exp().sum(dim=1, keepdim=True)
    return -(target * p.log()).sum(1).mean()


def propped_up(logits, labels, smoothing):
    n = logits.shape[1]
    target = F.one_hot(labels, n) * (1 - smoothing) + smoothing / n
    return -(target * torch.log(torch.softmax(logits, 1) + 1e-8)).sum(1).mean()


def classes_forgotten(logits, labels, smoothing):
    target = F.one_hot(labels) * (1 - smoothing) + smoothing / logits.shape[1]
    return -(target * logits.log_softmax(1)).sum(1).mean()


def classes_from_labels(logits, labels, smoothing):
    n = int(labels.max()) + 1
    target = F.one_hot(labels, n) * (1 - smoothing) + smoothing / n
    return -(target * logits.log_softmax(1)).sum(1).mean()


def ten_classes(logits, labels, smoothing):
    target = F.one_hot(labels, 10) * (1 - smoothing) + smoothing / 10
    return -(target * logits.log_softmax(1)).sum(1).mean()


def over_the_batch(logits, labels, smoothing):
    n = logits.shape[1]
    target = F.one_hot(labels, n) * (1 - smoothing) + smoothing / n
    return -(target * logits.log_softmax(0)).sum(1).mean()


def one_loss_each(logits, labels, smoothing):
    n = logits.shape[1]
    target = F.one_hot(labels, n) * (1 - smoothing) + smoothing / n
    return -(target * logits.log_softmax(1)).sum(1)


def torchs_own(logits, labels, smoothing):
    return nn.CrossEntropyLoss(label_smoothing=smoothing)(logits, labels)


def without_a_log(logits, labels, smoothing):
    n = logits.shape[1]
    target = F.one_hot(labels, n) * (1 - smoothing) + smoothing / n
    return -(target * logits.softmax(1)).sum(1).mean()


# Exercise 2: the slip -----------------------------------------------------------------------------


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


class Spy(nn.Module):
    """A model that notes the mode in which it was called."""

    def __init__(self):
        super().__init__()
        self.logits = nn.Parameter(torch.tensor([[9.0, 0, 0, 0]]))
        self.modes = []

    def forward(self, images):
        self.modes.append(self.training)
        return self.logits.expand(len(images), -1)


def by_a_spy(step):
    spy, images, labels = Spy(), torch.zeros(2, 1), torch.tensor([1, 1])
    optimizer = torch.optim.AdamW(spy.parameters(), lr=0.1, weight_decay=0.0)
    loss = step(spy, optimizer, images, labels)
    if not all(spy.modes):
        return "eval"
    if loss < 5:  # nine, where it is sound
        return "softmax"
    if (spy.logits == torch.tensor([[9.0, 0, 0, 0]])).all():
        return "step"
    optimizer = torch.optim.SGD(spy.parameters(), lr=0.0)
    step(spy, optimizer, images, labels)
    first = spy.logits.grad.clone()
    step(spy, optimizer, images, labels)
    return None if torch.allclose(spy.logits.grad, first) else "zero_grad"


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


def not_cloned(step):
    model = nn.Linear(3, 3)
    before = model.weight
    probe(step, model, lr=0.5)
    return four_probes(step) or ("step" if torch.equal(before, model.weight) else None)


def not_cloned_and_first(step):
    model = nn.Linear(3, 3)
    before = model.weight
    probe(step, model, lr=0.5)
    return "step" if torch.equal(before, model.weight) else four_probes(step)


def not_cloned_after_softmax(step):
    return "softmax" if is_softmax(step) else not_cloned_and_first(step)


def moving_weights_compared(step):
    model, _ = probe(step, lr=0.5)
    first = model.weight.grad.clone()
    probe(step, model, lr=0.5)
    changed = not torch.allclose(model.weight.grad, first)
    name = four_probes(step)
    return "zero_grad" if name is None and changed else name


def not_cloned_between(step):
    return "eval" if is_eval(step) else not_cloned_after_softmax(step)


def gradient_not_cloned(step):
    model, _ = probe(step)
    first = model.weight.grad
    changed = not torch.equal(probe(step, model)[0].weight.grad, first)
    name = four_probes(step)
    return name if changed or name != "zero_grad" else None


def put_in_eval_first(step):
    model = nn.Linear(3, 3).eval()
    probe(step, model)
    return "eval" if not model.training else four_probes(step)


def always_sound(step):
    known = {}
    return known.get(step)


def in_other_words(step):
    name = four_probes(step)
    return "no zero_grad" if name == "zero_grad" else name


def says_none(step):
    return four_probes(step) or "None"


def says_true(step):
    return four_probes(step) is None


def sure_and_moving(step):
    model = sure()
    before = model.weight.data.clone()
    probe(step, model, 50 * torch.eye(3), lr=0.5)
    stood = torch.equal(before, model.weight.data)
    name = four_probes(step)
    return "step" if stood and name != "softmax" else name


# Exercise 3: the bar ------------------------------------------------------------------------------


def small_batches():
    return dict(lr=2e-3, batch_size=8)


def eights():
    return {"batch_size": 8, "lr": 0.002}


def short_rise():
    settings = dict(batch_size=8)
    settings.update(lr=0.003, warmup=0.05)
    return settings


def the_defaults():
    return {}


def only_faster():
    return dict(lr=1e-2)


def far_too_fast():
    return dict(lr=0.3)


def far_too_slow():
    return dict(lr=1e-5)


def more_epochs():
    return dict(epochs=20)


def no_dictionary():
    return 16, 2e-3


def not_an_option():
    return dict(learning_rate=2e-3, batch_size=16)


def another_seed():
    return dict(batch_size=16, lr=2e-3, seed=7)


def rate_as_text():
    return dict(batch_size=16, lr="2e-3")


def half_a_batch():
    return dict(batch_size=0.5, lr=2e-3)


def with_validation_pictures():
    return dict(batch_size=16, val="val")


def augmented_by_name():
    return dict(batch_size=16, lr=2e-3, augment="digits")


def smoothed_and_augmented():
    return dict(lr=2e-3, label_smoothing=0.1, augment=augment_digits)


RIGHT = {
    "smoothed_loss": [gathered, one_by_one, by_two_losses, scattered],
    "find_slip": [four_probes, loss_against_mine, by_a_spy],
    "beat_the_bar": [small_batches, eights, short_rise],
}
WRONG = {
    "smoothed_loss": [
        (softmax_twice, "softmax too many"),
        (unsmoothed, "makes no difference"),
        (to_the_others, "the other classes only"),
        (too_much_target, "do not sum to 1"),
        (too_little_target, "do not sum to 1"),
        (all_to_each, "do not sum to 1"),
        (shares_exchanged, "exchanged"),
        (without_minus, "the sign is wrong"),
        (summed, "the sum over the batch"),
        (mean_of_all, "mean over classes too"),
        (log_of_softmax, "log(0)"),
        (log_of_exp, "exp"),
        (propped_up, "log_softmax"),
        (classes_forgotten, "how many classes"),
        (classes_from_labels, "how many classes"),
        (ten_classes, "how many classes"),
        (over_the_batch, "over the classes"),
        (one_loss_each, "the mean over the pictures"),
        (without_a_log, "logarithm"),
        (torchs_own, "torch's own loss"),
    ],
    "find_slip": [
        (without_softmax, "the softmax goes unnoticed"),
        (without_clearing, "missing zero_grad goes unnoticed"),
        (without_mode, "the eval mode goes unnoticed"),
        (without_moving, "optimizer.step() goes unnoticed"),
        (judged_at_the_start, "accused of a softmax"),
        (any_gradient, "accused of piling up"),
        (moving_weights_compared, "accused of piling up"),
        (with_learning_rate_zero, "accused of not moving"),
        (sure_and_moving, "surely right"),
        (not_cloned, ".clone()"),
        (not_cloned_and_first, ".clone()"),
        (not_cloned_after_softmax, ".clone()"),
        (not_cloned_between, ".clone()"),
        (gradient_not_cloned, ".clone()"),
        (put_in_eval_first, "accused of eval mode"),
        (always_sound, "no slip is noticed"),
        (in_other_words, "'no zero_grad'"),
        (says_none, "None itself"),
        (says_true, "not True or False"),
    ],
    "beat_the_bar": [
        (the_defaults, "the package's defaults"),
        (only_faster, "the bar"),
        (far_too_fast, "too high"),
        (far_too_slow, "too low"),
        (smoothed_and_augmented, "the bar"),
        (more_epochs, "epochs"),
        (no_dictionary, "a dict"),
        (not_an_option, "learning_rate"),
        (another_seed, "seed"),
        (rate_as_text, "a number"),
        (half_a_batch, "batch_size"),
        (with_validation_pictures, "val"),
        (augmented_by_name, "augment"),
    ],
}
