"""Exercises of lesson 07."""

from collections.abc import Callable
from math import cos, pi
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .engine import Check, Mistake, Trial, call

LOGITS = torch.tensor([[2.0, -1.0, 0.5], [0.0, 3.0, -2.0]])
LABELS = torch.tensor([0, 2])
MORE = torch.linspace(-3, 4, 35).sin().reshape(5, 7) * 4
MORE_LABELS = torch.tensor([6, 0, 3, 3, 1])


def soft_targets(labels: Tensor, classes: int, smoothing: float, others: bool = False) -> Tensor:
    """What the model should say, (B, classes): the share `smoothing` goes to all, or to others."""
    sure = F.one_hot(labels, classes)
    spread = (1 - sure) / (classes - 1) if others else torch.full(sure.shape, 1 / classes)
    return (1 - smoothing) * sure + smoothing * spread


def loss_of(targets: Tensor, logits: Tensor) -> Tensor:
    return -(targets * logits.log_softmax(dim=-1)).sum(dim=-1).mean()


def smoothed(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    return loss_of(soft_targets(labels, logits.shape[1], smoothing), logits)


smoothed_loss = Check(
    reference=smoothed,
    trials=[
        call("two pictures, three classes, no smoothing", LOGITS, LABELS, 0.0),
        call("two pictures, three classes, smoothing 0.1", LOGITS, LABELS, 0.1),
        call("five pictures, seven classes, smoothing 0.2", MORE, MORE_LABELS, 0.2),
        call("logits of ±1000, which exp() cannot take", 1000 * LOGITS.sign(), LABELS, 0.1),
    ],
    mistakes=[
        Mistake(
            "a softmax too many: F.cross_entropy and log_softmax take logits, not probabilities",
            lambda logits, labels, s: smoothed(logits.softmax(dim=-1), labels, s),
        ),
        Mistake(
            "smoothing makes no difference in yours: the target is (1 - smoothing) on the label, "
            "plus smoothing / classes on every class",
            lambda logits, labels, s: smoothed(logits, labels, 0.0),
        ),
        Mistake(
            "you share the smoothing among the other classes only; it goes to all of them, the "
            "label included: smoothing / classes each",
            lambda logits, labels, s: loss_of(
                soft_targets(labels, logits.shape[1], s, others=True), logits
            ),
        ),
        Mistake(
            "your targets do not sum to 1: the label must give away what the classes receive, "
            "(1 - smoothing) · one-hot",
            lambda logits, labels, s: loss_of(
                F.one_hot(labels, logits.shape[1]) + s / logits.shape[1], logits
            ),
        ),
        Mistake(
            "the sign is wrong: a loss is minus the log-probability",
            lambda logits, labels, s: -smoothed(logits, labels, s),
        ),
        Mistake(
            "this is the sum over the batch; take the mean, so that the batch size does not matter",
            lambda logits, labels, s: smoothed(logits, labels, s) * len(labels),
        ),
        Mistake(
            "you take the mean over classes too; sum over the classes, mean over the pictures",
            lambda logits, labels, s: smoothed(logits, labels, s) / logits.shape[1],
        ),
        Mistake(
            "right for small logits, but log(softmax(…)) of large ones is log(0); log_softmax "
            "takes both steps at once and stays finite",
            lambda logits, labels, s: (
                -(soft_targets(labels, logits.shape[1], s) * logits.softmax(dim=-1).log())
                .sum(dim=-1)
                .mean()
            ),
        ),
    ],
)


def floored(
    step: int,
    steps: int,
    rise: int,
    peak: float,
    floor: float,
    begin: int | None = None,
    low: float | None = None,
    half: float = 0.5,
) -> float:
    """A rise to `peak`, then a cosine down to `floor`; the options make the known mistakes."""
    if step < rise:
        return peak * (step + 1) / (rise + 1)
    begin = rise if begin is None else begin
    low = floor if low is None else low
    return low + (peak - low) * half * (1 + cos(pi * (step - begin) / (steps - begin)))


def rise_by(share: Callable[[int, int], float]) -> Callable:
    """A wrong answer: the right one, with another rise."""

    def wrong(step: int, steps: int, rise: int, peak: float, floor: float) -> float:
        return peak * share(step, rise) if step < rise else floored(step, steps, rise, peak, floor)

    return wrong


def whole_run(what: str, *given: Any) -> Trial:
    """All learning rates of a run, step by step; `given` is steps, warmup, peak, floor."""

    def run(answer: Callable):
        steps, *others = given
        rates = [answer(step, steps, *others) for step in range(steps + 1)]
        return ... if any(rate is ... for rate in rates) else rates

    return Trial(what, run)


floor_schedule = Check(
    reference=floored,
    trials=[
        whole_run("10 steps, a rise of 4, peak 1, floor 0", 10, 4, 1.0, 0.0),
        whole_run("20 steps, a rise of 5, peak 0.002, floor 0.0005", 20, 5, 0.002, 0.0005),
        whole_run("7 steps without a rise, peak 0.5, floor 0.1", 7, 0, 0.5, 0.1),
    ],
    mistakes=[
        Mistake(
            "your first step has learning rate 0 and is wasted: count from 1, with step + 1",
            rise_by(lambda step, rise: step / rise),
        ),
        Mistake(
            "your first step has learning rate 0 and is wasted: use step + 1, not step",
            rise_by(lambda step, rise: step / (rise + 1)),
        ),
        Mistake(
            "your rise is at the peak one step early, and then stands still for a step: the peak "
            "is step `rise` itself, so divide by rise + 1",
            rise_by(lambda step, rise: (step + 1) / rise),
        ),
        Mistake(
            "the cosine must begin where the rise ends, not at step 0; yours jumps down there",
            lambda *given: floored(*given, begin=0),
        ),
        Mistake(
            "there is no rise: for step < rise the rate climbs to the peak in a straight line",
            lambda step, steps, rise, peak, floor: floored(step, steps, 0, peak, floor),
        ),
        Mistake(
            "yours ends at 0, not at the floor: let the cosine run from peak down to floor",
            lambda *given: floored(*given, low=0.0),
        ),
        Mistake(
            "the floor is added on top, so that yours peaks at peak + floor; the cosine's height "
            "is peak - floor",
            lambda step, steps, rise, peak, floor: (
                floored(step, steps, rise, peak, 0.0) + floor * (step >= rise)
            ),
        ),
        Mistake(
            "1 + cos(…) runs from 2 to 0: yours starts at twice the height; halve it",
            lambda *given: floored(*given, half=1.0),
        ),
        Mistake(
            "this is a straight line down; the cosine leaves the peak gently and lands gently",
            lambda step, steps, rise, peak, floor: (
                floored(step, steps, rise, peak, floor)
                if step < rise
                else peak - (peak - floor) * (step - rise) / (steps - rise)
            ),
        ),
    ],
)


def make_step(
    softmax: bool = False, clear: bool = True, dropout: bool = True, update: bool = True
) -> Callable:
    """A training step of the learner's kind; the options make the slips."""

    def step(model: nn.Module, optimizer: Any, images: Tensor, labels: Tensor) -> Tensor:
        if not dropout:
            model.eval()
        logits = model(images)
        loss = F.cross_entropy(logits.softmax(dim=-1) if softmax else logits, labels)
        if clear:
            optimizer.zero_grad()
        loss.backward()
        if update:
            optimizer.step()
        return loss.detach()

    return step


class Noticing(nn.Module):
    """A model that notes whether it was in training when it was run."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(10, 10)
        nn.init.eye_(self.fc.weight)
        self.was_training = False

    def forward(self, images: Tensor) -> Tensor:
        self.was_training = self.training
        return self.fc(images)


def found(
    step: Callable,
    softmax: bool = True,
    clear: bool = True,
    dropout: bool = True,
    update: bool = True,
    mode: bool = True,
) -> str | None:
    """What is wrong with a training step; an option that is False leaves a slip unlooked for."""
    model, images, labels = Noticing().train(mode), torch.eye(10), torch.arange(10)
    expected = F.cross_entropy(model.fc(images), labels).item()
    still = torch.optim.SGD(model.parameters(), lr=0.0)
    loss = float(step(model, still, images, labels))
    if dropout and not model.was_training:
        return "eval"
    if softmax and abs(loss - expected) > 1e-3:
        return "softmax"
    before, weight = model.fc.weight.detach().clone(), model.fc.weight
    first = gradient(weight).clone()
    step(model, still, images, labels)
    if clear and not torch.allclose(gradient(weight), first):
        return "zero_grad"
    step(model, torch.optim.SGD(model.parameters(), lr=1.0), images, labels)
    if update and torch.equal(weight, before):
        return "step"
    return None


def gradient(weight: Tensor) -> Tensor:
    """The gradient that a step left, or zeros where it left none."""
    return torch.zeros_like(weight) if weight.grad is None else weight.grad


def judged(what: str, **slip: bool) -> Trial:
    return Trial(what, lambda answer: answer(make_step(**slip)))


def blind(**unlooked: bool) -> Callable:
    """A wrong answer: some slips go unnoticed."""
    return lambda step: found(step, **unlooked)


def accusing(name: str) -> Callable:
    """A wrong answer: the sound step is accused."""
    return lambda step: found(step) or name


find_slip = Check(
    reference=found,
    trials=[
        judged("a sound training step"),
        judged("a step with a softmax before F.cross_entropy", softmax=True),
        judged("a step without optimizer.zero_grad()", clear=False),
        judged("a step that switches the model to eval mode", dropout=False),
        judged("a step without optimizer.step()", update=False),
    ],
    mistakes=[
        Mistake(
            "the softmax goes unnoticed: give the step a model that is surely right (logits of "
            "50 on the label) and see whether its loss is near 0",
            blind(softmax=False),
        ),
        Mistake(
            "the missing zero_grad goes unnoticed: call the step twice with a learning rate of 0 "
            "and see whether the gradient is the same both times",
            blind(clear=False),
        ),
        Mistake(
            "the eval mode goes unnoticed: see whether model.training is still True after the step",
            blind(dropout=False),
        ),
        Mistake(
            "the missing optimizer.step() goes unnoticed: compare the weights before and after a "
            "step with a learning rate above 0",
            blind(update=False),
        ),
        Mistake(
            "no slip is noticed: each has its own name",
            blind(softmax=False, clear=False, dropout=False, update=False),
        ),
        Mistake(
            "the sound step is accused of eval mode: hand it a model in training mode, as a loop "
            "does (model.train()); the step itself need not switch",
            blind(mode=False),
        ),
        Mistake(
            "the sound step is accused of a softmax: an untrained model has a loss near ln(10) "
            "with and without it; probe with a model that is surely right",
            accusing("softmax"),
        ),
        Mistake(
            "the sound step is accused of piling up gradients: after a sound step a gradient is "
            "there too, and it changes with the weights; hold them still (learning rate 0) and "
            "compare the gradients of two calls",
            accusing("zero_grad"),
        ),
        Mistake(
            "the sound step is accused of not moving the weights: with a learning rate of 0, or "
            "where the gradient is 0, no step can",
            accusing("step"),
        ),
    ],
)
