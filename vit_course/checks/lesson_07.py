"""Lesson 07: a training step, a schedule, the loss by hand, the slip in a step, a bar to beat."""

from collections.abc import Callable
from functools import cache
from math import cos, pi
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vit_steps.training import augment_digits, evaluate, fit
from vit_steps.training import loop as package
from vit_steps.training.data import load_data
from vit_steps.vit import ViT, ViTConfig

from .compare import Verdict, kind_of
from .engine import Check
from .trials import Trial, call, then, untouched

# One training step --------------------------------------------------------------------------------

# What an error of torch says, and what it means here.
SWAPPED = "the logits come first in F.cross_entropy, then the labels"
CUT_OFF = (
    "backward finds no way back from the loss: the model must run outside torch.no_grad(), the "
    "loss may be detached only at the end, and an accuracy (argmax) has no gradient at all"
)
ERRORS = {
    "does not require grad": CUT_OFF,
    "(Runtime|NotImplemented|Value|Index)Error: .*(floating point type|scalar type|Long)": SWAPPED,
    "only for scalar outputs": "the loss must be one number: the mean over the batch",
}


class WatchedSGD(torch.optim.SGD):
    """Plain SGD that counts how often it moved its weights."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self.moves = 0

    def step(self, *arguments: Any, **options: Any) -> Any:
        self.moves += 1
        return super().step(*arguments, **options)


def batch(number: int, size: int) -> tuple[Tensor, Tensor]:
    """Images of three numbers each, and labels of four classes, the same at every call."""
    generator = torch.Generator().manual_seed(number)
    images = torch.randn(size, 3, generator=generator)
    return images, torch.randint(4, (size,), generator=generator)


def taught(
    what: str, sizes: tuple[int, ...], dropout: bool = False, lr: float = 0.5, mode: bool = True
) -> Trial:
    """A trial of a training step: batches of these sizes, one after another, on a small model that
    is in training mode, or in evaluation mode."""

    def run(step: Callable) -> Any:
        linear = nn.Linear(3, 4)
        with torch.no_grad():
            linear.weight.copy_(batch(7, 4)[0])
        model = nn.Sequential(nn.Dropout(0.4), linear) if dropout else nn.Sequential(linear)
        model.train(mode)
        optimizer = WatchedSGD(model.parameters(), lr=lr, momentum=0.5)
        results = {}
        for number, size in enumerate(sizes):
            before = linear.weight.detach().clone()
            optimizer.moves = 0
            loss = untouched(step, model, optimizer, *batch(number, size))
            if loss is None or loss is ...:
                return loss
            if not isinstance(loss, Tensor):
                return Verdict(f"it returns {kind_of(loss)}; return the loss itself, loss.detach()")
            if moved := wrongly_moved(before, linear.weight, optimizer):
                return Verdict(moved)
            if model.training != mode:
                now = "training" if model.training else "evaluation"
                return Verdict(f"the model is in {now} mode after the step")
            if loss.requires_grad:
                return Verdict("the loss that it returns still holds on to its graph")
            results["loss" if len(sizes) == 1 else f"loss of step {number + 1}"] = loss
        return results | {"weight": linear.weight.detach(), "bias": linear.bias.detach()}

    return Trial(what, run)


def wrongly_moved(before: Tensor, weight: Tensor, optimizer: WatchedSGD) -> str:
    """Why the weights have not moved, or not by the optimizer; "" where they have."""
    still = torch.equal(before, weight)
    if still and optimizer.moves:
        found = "none is there" if weight.grad is None or not weight.grad.any() else "it came later"
        return f"the optimizer was asked to step, but had no gradient; {found}"
    if still:
        return "the weights have not moved, and the optimizer was never asked to step"
    return "" if optimizer.moves else "the weights have moved, but not by the optimizer"


def squared(logits: Tensor, labels: Tensor) -> Tensor:
    return F.mse_loss(logits, F.one_hot(labels, logits.shape[1]).float())


def make_step(
    loss_of: Callable = F.cross_entropy,
    order: tuple[str, ...] = ("clear", "backward", "step"),
    mode: bool | None = None,
    gives: Callable[[Tensor], Any] = Tensor.detach,
) -> Callable:
    """A training step of the learner's kind; the options make the slips.

    Args:
        mode: the mode to which it switches the model, training (True) or evaluation.
    """

    def step(model: nn.Module, optimizer: Any, images: Tensor, labels: Tensor) -> Any:
        if mode is not None:
            model.train(mode)
        loss = loss_of(model(images), labels)
        for part in order:
            if part == "clear":
                optimizer.zero_grad()
            elif part == "backward":
                loss.backward()
            else:
                optimizer.step()
        return gives(loss)

    return step


def of_softmax(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits.softmax(dim=-1), labels)


def loss_afterwards(model: nn.Module, optimizer: Any, images: Tensor, labels: Tensor) -> Tensor:
    """A wrong answer: the loss that is left after the step."""
    make_step()(model, optimizer, images, labels)
    return F.cross_entropy(model(images), labels).detach()


def own_optimizer(model: nn.Module, optimizer: Any, images: Tensor, labels: Tensor) -> Tensor:
    """A wrong answer: the optimizer that it is given is left alone."""
    return make_step()(model, torch.optim.SGD(model.parameters(), lr=0.01), images, labels)


train_step = Check(
    reference=package.train_step,
    slips=ERRORS,
    keeps="train_step",
    trials=[
        taught("one step on five pictures", (5,)),
        taught("three steps, each on other pictures", (5, 6, 2)),
        taught("two steps of a model with dropout", (7, 3), dropout=True, lr=0.1),
        taught("one step of a model in evaluation mode", (4,), dropout=True, mode=False),
    ],
    mistakes={
        "gradients pile up from step to step: `optimizer.zero_grad()` is missing, or without its "
        "parentheses": make_step(order=("backward", "step")),
        "the optimizer finds no gradient: either `loss.backward()` is missing, or without its "
        "parentheses, or `optimizer.zero_grad()` stands between backward and step and throws the "
        "new gradients away": make_step(order=("backward", "clear", "step")),
        "the optimizer steps before there is a gradient: `loss.backward()` comes first, then "
        "`optimizer.step()`": make_step(order=("clear", "step", "backward")),
        "the weights do not move: `optimizer.step()` is missing, "
        "or without its parentheses": make_step(order=("clear", "backward")),
        "`optimizer.step()` moves the weights once; yours calls it twice": make_step(
            order=("clear", "backward", "step", "step")
        ),
        "move the weights by the optimizer that it is given, `optimizer.step()`: it holds the "
        "learning rate and what it remembers of earlier steps": own_optimizer,
        "a softmax too many: F.cross_entropy takes logits, and does the softmax itself": make_step(
            of_softmax
        ),
        "this loss is the sum over the batch; take the mean, F.cross_entropy's own choice, so that "
        "a step is as long for a small "
        "batch": make_step(lambda logits, labels: F.cross_entropy(logits, labels, reduction="sum")),
        "yours goes uphill: the loss is F.cross_entropy(model(images), labels), with no minus "
        "before it": make_step(lambda logits, labels: -F.cross_entropy(logits, labels)),
        "this is a squared error; the loss of this lesson "
        "is F.cross_entropy(logits, labels)": make_step(squared),
        "F.nll_loss takes log-probabilities; for logits, as a model gives them, it is "
        "F.cross_entropy": make_step(F.nll_loss),
        "your loss does not depend on the labels that it is given; compare the logits "
        "with `labels`": make_step(lambda logits, _: F.cross_entropy(logits, logits.argmax(dim=1))),
        "your step switches the model to evaluation mode; leave out model.eval(), the caller "
        "chooses the mode": make_step(mode=False),
        "your step switches the model to training mode; leave out model.train(), the caller "
        "chooses the mode": make_step(mode=True),
        "the loss that you return holds on to the graph of its batch: "
        "return loss.detach()": make_step(gives=lambda loss: loss),
        "you return a plain number; on a graphics card .item() waits for it at every step: return "
        "loss.detach()": make_step(gives=Tensor.item),
        "your step does its work but returns nothing; "
        "end it with `return loss.detach()`": make_step(gives=lambda loss: None),
        "return the loss before the step, not a second one after it": loss_afterwards,
        f"{SWAPPED}: F.cross_entropy(model(images), labels)": make_step(
            lambda logits, labels: F.cross_entropy(labels, logits)
        ),
        CUT_OFF: make_step(lambda logits, labels: F.cross_entropy(logits.data, labels)),
    },
)


# The schedule -------------------------------------------------------------------------------------


def whole_run(what: str, steps: int, *given: Any) -> Trial:
    """All that a schedule gives in a run, step by step."""

    def run(answer: Callable) -> Any:
        shares = [answer(step, steps, *given) for step in range(steps)]
        if any(share is ... for share in shares):
            return ...
        return None if all(share is None for share in shares) else shares

    return Trial(what, run)


def straight_up(step: int, rise: float) -> float:
    return (step + 1) / (rise + 1)


def cosine_down(step: int, rise: float, steps: int) -> float:
    return (1 + cos(pi * (step - rise) / (steps - rise))) / 2


def schedule(
    up: Callable = straight_up, down: Callable = cosine_down, rise_of: Callable = int
) -> Callable:
    """A wrong answer: the right one, with another way up or down, or another end of the rise."""

    def wrong(step: int, steps: int, warmup: float) -> Any:
        rise = rise_of(warmup * steps)
        return up(step, rise) if step < rise else down(step, rise, steps)

    return wrong


def falling(fall: Callable[[float], Any]) -> Callable:
    """A wrong answer: the right rise, and another fall, from the share of it that is done."""
    return schedule(down=lambda step, rise, steps: fall((step - rise) / (steps - rise)))


def falling_from_start(step: int, steps: int, warmup: float) -> float:
    """A wrong answer: rise and fall at once, multiplied."""
    rise = int(warmup * steps)
    return min(1.0, straight_up(step, rise)) * cosine_down(step, 0, steps)


def warmup_in_steps(step: int, steps: int, warmup: float) -> float:
    """A wrong answer: the share is taken for a number of steps."""
    return straight_up(step, warmup) if step < warmup else cosine_down(step, warmup, steps)


LATE_COSINE = "the cosine must begin where the rise ends, at 1: count its steps from there, step - "
WHOLE_RISE = "the rise takes int(warmup * steps) steps, a whole number, rounded down"

warmup_cosine = Check(
    reference=package.warmup_cosine,
    keeps="warmup_cosine",
    trials=[
        whole_run("the shares of 10 steps, warm-up 0.4", 10, 0.4),
        whole_run("the shares of 25 steps, warm-up 0.3", 25, 0.3),
        whole_run("the shares of 18 steps, warm-up 0.15", 18, 0.15),
        whole_run("the shares of 9 steps without a warm-up", 9, 0.0),
    ],
    mistakes={
        "your first step has share 0 and is wasted: count from 1, "
        "(step + 1) / (rise + 1)": schedule(up=lambda step, rise: step / rise),
        "your first step has share 0 and is wasted: take step + 1, not step": schedule(
            up=lambda step, rise: step / (rise + 1)
        ),
        "your rise is at its peak one step early, and stands still for a step: step `rise` itself "
        "has share 1, so divide by rise + 1": schedule(up=lambda step, rise: (step + 1) / rise),
        f"{LATE_COSINE}rise of steps - rise": schedule(
            down=lambda step, rise, steps: cosine_down(step, 0, steps)
        ),
        f"{LATE_COSINE}rise of steps - rise; and multiply nothing": falling_from_start,
        "the fall takes steps - rise steps, not steps: yours is not down at the end": schedule(
            down=lambda step, rise, steps: cosine_down(step - rise, 0, steps)
        ),
        "yours is down at 0 one step early, so that the last step is wasted: the fall takes steps "
        "- rise steps": schedule(down=lambda step, rise, steps: cosine_down(step, rise, steps - 1)),
        "brackets are missing: only the cosine is halved, or only the 1; both together are, "
        "(1 + cos(…)) / 2": (
            falling(lambda done: 1 + cos(pi * done) / 2),
            falling(lambda done: 0.5 + cos(pi * done)),
        ),
        "brackets are missing: / comes before + and -, so write (step + 1) / (rise + 1) and "
        "(step - rise) / (steps - rise)": (
            schedule(up=lambda step, rise: step + 1 / rise + 1),
            schedule(up=lambda step, rise: (step + 1) / rise + 1),
            schedule(up=lambda step, rise: step + 1 / (rise + 1)),
            schedule(down=lambda step, rise, steps: (1 + cos(pi * step - rise / steps - rise)) / 2),
            schedule(
                down=lambda step, rise, steps: (1 + cos(pi * (step - rise) / steps - rise)) / 2
            ),
        ),
        "1 + cos(…) runs from 2 to 0: halve it": falling(lambda done: 1 + cos(pi * done)),
        "a cosine alone runs from 1 to -1, and yours falls below 0: add 1 and halve it": falling(
            lambda done: cos(pi * done)
        ),
        "this is a quarter of a cosine's wave; the formula takes half of it, "
        "(1 + cos(…)) / 2": falling(lambda done: cos(pi * done / 2)),
        "half a wave of the cosine is pi long: cos(pi * …)": falling(
            lambda done: (1 + cos(done)) / 2
        ),
        "yours comes down and goes up again; half a wave is pi long, not 2 * pi": falling(
            lambda done: (1 + cos(2 * pi * done)) / 2
        ),
        "cos takes radians, not degrees: half a wave is pi long, not 180": falling(
            lambda done: (1 + cos(180 * done)) / 2
        ),
        "this is a straight line down; the cosine leaves the peak gently and lands gently": falling(
            lambda done: 1 - done
        ),
        "there is no rise: for step < rise the share climbs to the "
        "peak in a straight line": lambda step, steps, warmup: cosine_down(step, 0, steps),
        "yours stays at the peak: after the rise it falls along half a cosine": falling(
            lambda done: 1.0
        ),
        WHOLE_RISE: (schedule(rise_of=round), schedule(rise_of=float)),
        "warmup is a share of the steps, not their number; "
        "the rise takes int(warmup * steps)": warmup_in_steps,
        "you return how far down it is, from 0 to 1; the share is "
        "(1 + cos(pi · that)) / 2": falling(lambda done: done),
        "after the rise yours gives nothing: is a `return` missing?": falling(lambda done: None),
    },
)


# Exercise 1 ---------------------------------------------------------------------------------------

LOGITS = torch.tensor([[2.0, -1.0, 0.5], [0.0, 3.0, -2.0]])
LABELS = torch.tensor([0, 2])
SEVEN = torch.linspace(-3, 4, 35).sin().reshape(5, 7) * 4
SEVEN_LABELS = torch.tensor([4, 0, 3, 3, 1])
TEN = torch.linspace(2, 9, 40).cos().reshape(4, 10) * 3
TEN_LABELS = torch.tensor([9, 0, 7, 2])


def smoothed_by(
    logs: Callable = lambda logits: logits.log_softmax(dim=-1),
    targets: Callable = lambda sure, classes, s: (1 - s) * sure + s / classes,
    count: Callable = lambda logits, labels: logits.shape[1],
    reduce: Callable = Tensor.mean,
) -> Callable:
    """A smoothed loss; the options make the known mistakes.

    Args:
        targets: what the model should say, (B, C), of the one-hot labels, C and the smoothing.
        count: C.
        reduce: makes one loss of those of the pictures, (B,).
    """

    def loss(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
        classes = count(logits, labels)
        wanted = targets(F.one_hot(labels, classes), classes, smoothing)
        return reduce(-(wanted * logs(logits)).sum(dim=-1))

    return loss


smoothed = smoothed_by()


def aiming_at(targets: Callable) -> Callable:
    return smoothed_by(targets=targets)


def exp_by_hand(logits: Tensor) -> Tensor:
    powers = logits.exp()
    return (powers / powers.sum(dim=-1, keepdim=True)).log()


NO_SUM = (
    "your targets do not sum to 1: the label gets (1 - smoothing) plus smoothing / classes, every "
    "other class smoothing / classes"
)
CLASSES = (
    "say how many classes there are, F.one_hot(labels, logits.shape[1]): a batch need not hold "
    "every class, and there need not be ten"
)

smoothed_loss = Check(
    reference=smoothed,
    trials=[
        call("two pictures, three classes, no smoothing", LOGITS, LABELS, 0.0),
        call("two pictures, three classes, smoothing 0.1", LOGITS, LABELS, 0.1),
        call("five pictures of seven classes, not all of them there", SEVEN, SEVEN_LABELS, 0.2),
        call("four pictures, ten classes, smoothing 0.3", TEN, TEN_LABELS, 0.3),
        call("logits of ±1000, which exp() cannot take", 1000 * LOGITS.sign(), LABELS, 0.1),
    ],
    mistakes={
        "a softmax too many: log_softmax takes logits, "
        "not probabilities": lambda logits, labels, s: smoothed(logits.softmax(dim=-1), labels, s),
        "smoothing makes no difference in yours: the target is (1 - smoothing) on the label, plus "
        "smoothing / classes on every class": aiming_at(lambda sure, classes, s: sure),
        "the two shares are exchanged: 1 - smoothing is the label's, and smoothing is what all "
        "classes share": aiming_at(lambda sure, classes, s: s * sure + (1 - s) / classes),
        "you share the smoothing among the other classes only; it goes to all of them, the label "
        "included: smoothing / classes "
        "each": aiming_at(lambda sure, classes, s: (1 - s) * sure + s * (1 - sure) / (classes - 1)),
        NO_SUM: (
            aiming_at(lambda sure, classes, s: sure + s / classes),
            aiming_at(lambda sure, classes, s: sure * (1 - s) + (1 - sure) * s / classes),
            aiming_at(lambda sure, classes, s: sure * (1 - s) + s),
        ),
        "the sign is wrong: a loss is minus the log-probability": then(smoothed, torch.neg),
        "this is the sum over the batch; take the mean, "
        "so that the batch size does not matter": smoothed_by(reduce=torch.sum),
        "you take the mean over classes too; sum over the classes, mean over "
        "the pictures": lambda logits, labels, s: smoothed(logits, labels, s) / logits.shape[1],
        "this is one loss for each picture; give the mean over the pictures, "
        "one number": smoothed_by(reduce=lambda losses: losses),
        "the softmax goes over the classes, dim=1, not over the pictures of the batch": smoothed_by(
            lambda logits: logits.log_softmax(dim=0)
        ),
        "the logarithm is missing: the loss is minus target times log-probability": smoothed_by(
            lambda x: x.softmax(dim=-1)
        ),
        "right for small logits, but log(softmax(…)) of large ones is log(0); log_softmax takes "
        "both steps at once and stays finite": smoothed_by(lambda x: x.softmax(dim=-1).log()),
        "right for small logits, but exp() of a large one is too large to be written down; "
        "log_softmax stays finite": smoothed_by(exp_by_hand),
        CLASSES: (
            smoothed_by(count=lambda logits, labels: int(labels.max()) + 1),
            smoothed_by(count=lambda logits, labels: 10),
        ),
        "a small number inside the logarithm keeps it finite, but bends the loss of a sure model; "
        "log_softmax needs none": tuple(
            smoothed_by(lambda logits, small=10.0**-power: (logits.softmax(-1) + small).log())
            for power in range(6, 13)
        ),
    },
)


# Exercise 2 ---------------------------------------------------------------------------------------

SLIPS: dict[str | None, tuple[str, Callable]] = {
    None: ("a sound training step", make_step()),
    "softmax": ("a step with a softmax before F.cross_entropy", make_step(of_softmax)),
    "zero_grad": ("a step without zero_grad", make_step(order=("backward", "step"))),
    "eval": ("a step that switches the model to evaluation mode", make_step(mode=False)),
    "step": ("a step without optimizer.step()", make_step(order=("clear", "backward"))),
}


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


def found(step: Callable, unlooked: tuple[str, ...] = (), mode: bool = True) -> str | None:
    """What is wrong with a training step; `unlooked` are the slips that go unnoticed."""
    model, images, labels = Noticing().train(mode), torch.eye(10), torch.arange(10)
    expected = F.cross_entropy(model.fc(images), labels).item()
    still = torch.optim.SGD(model.parameters(), lr=0.0)
    loss = float(step(model, still, images, labels))
    if "eval" not in unlooked and not model.was_training:
        return "eval"
    if "softmax" not in unlooked and abs(loss - expected) > 1e-3:
        return "softmax"
    before, weight = model.fc.weight.detach().clone(), model.fc.weight
    first = gradient(weight).clone()
    step(model, still, images, labels)
    if "zero_grad" not in unlooked and not torch.allclose(gradient(weight), first):
        return "zero_grad"
    step(model, torch.optim.SGD(model.parameters(), lr=1.0), images, labels)
    return "step" if "step" not in unlooked and torch.equal(weight, before) else None


def gradient(weight: Tensor) -> Tensor:
    """The gradient that a step left, or zeros where it left none."""
    return torch.zeros_like(weight) if weight.grad is None else weight.grad


def judged(slip: str | None) -> Trial:
    """A trial of a learner's `find_slip` on one step."""
    what, step = SLIPS[slip]

    def run(answer: Callable) -> Any:
        said = answer(step)
        if said is ...:
            return ...
        if said == slip and type(said) is type(slip):
            return Verdict("as it should")
        if said in SLIPS:
            return Verdict(f"yours says {said!r}; right is {slip!r}")
        names = ", ".join(repr(name) for name in SLIPS if name)
        return Verdict(f"yours says {said!r}, which is none of the five answers: {names} or None")

    return Trial(what, run)


def blind(*unlooked: str) -> Callable:
    """A wrong answer: these slips go unnoticed."""
    return lambda step: found(step, unlooked)


def accusing(name: str) -> Callable:
    """A wrong answer: the sound step is accused."""
    return lambda step: found(step) or name


def sure_of_all_but_softmax(step: Callable) -> str | None:
    """A wrong answer: it looks for movement where there is nothing to move."""
    name = found(step)
    return name if name == "softmax" else "step"


NO_MOVEMENT = (
    "yours says 'step' of steps that move the weights: either they could not move, with a learning "
    "rate of 0 or on a model that is surely right, or `before = model.weight` is the weight itself "
    "and moves along; keep a copy, model.weight.detach().clone()"
)

find_slip = Check(
    reference=found,
    trials=[judged(slip) for slip in SLIPS],
    mistakes={
        "the softmax goes unnoticed: give the step a model that is surely right (logits of 50 on "
        "the label) and see whether its loss is near 0": blind("softmax"),
        "the missing zero_grad goes unnoticed: call the step twice with a learning rate of 0 and "
        "see whether the gradient is the same both times": blind("zero_grad"),
        "the eval mode goes unnoticed: see whether model.training is "
        "still True after the step": blind("eval"),
        "the missing optimizer.step() goes unnoticed: compare the weights before and after a step "
        "with a learning rate above 0": blind("step"),
        "no slip is noticed: each has its own name": blind("softmax", "zero_grad", "eval", "step"),
        "the sound step is accused of eval mode: hand it a model in training mode, as a loop does "
        "(model.train()); the step itself need not switch": lambda step: found(step, mode=False),
        "the sound step is accused of a softmax: an untrained model has a loss near ln(classes) "
        "with and without it; probe with a model that is surely right": accusing("softmax"),
        "the sound step is accused of piling up gradients: after a sound step a gradient is there "
        "too, and it changes with the weights; hold them still (learning rate 0) and compare the "
        "gradients of two calls": accusing("zero_grad"),
        "the sound step is accused of not moving the weights: with a learning rate of 0, or where "
        "the gradient is 0, no step can; and without .clone() the weights that you keep from "
        "before move along": accusing("step"),
        NO_MOVEMENT: (sure_of_all_but_softmax, lambda step: "step"),
        "give None itself, not the text 'None'": lambda step: str(found(step)),
        "give the name of the slip, or None where the step is sound; "
        "not True or False": lambda step: found(step) is None,
    },
)


# Exercise 3 ---------------------------------------------------------------------------------------

BAR, EPOCHS = 0.85, 4
CLEARS = Verdict("it clears the bar")
OPTIONS = ("lr", "batch_size", "warmup", "weight_decay", "label_smoothing", "augment")
TINY = ViTConfig(
    image_size=8, patch_size=2, in_channels=1, num_classes=10, embed_dim=48, depth=2, num_heads=4
)


@cache
def val_loss(settings: tuple[tuple[str, Any], ...]) -> float:
    """The validation loss of the lesson's model after `EPOCHS` epochs with these settings."""
    train, val, _ = load_data("digits", val_fraction=0.25)
    torch.manual_seed(0)
    model = ViT(TINY)
    with torch.no_grad():
        model.tokens.pos_embed.mul_(10)
    fit(model, train, epochs=EPOCHS, device="cpu", progress=False, **dict(settings))
    return evaluate(model, val)[0]


def refusal(settings: Any) -> str:
    """Why a recipe cannot be tried; "" where it can."""
    if not isinstance(settings, dict):
        return f"recipe() gives {kind_of(settings)}; give a dict such as dict(lr=3e-3)"
    for name, value in settings.items():
        if name == "epochs":
            return "four epochs are the budget, for everybody: leave `epochs` out"
        if name == "seed":
            return "a lucky seed is no recipe, and does not hold for the next one: leave `seed` out"
        if name not in OPTIONS:
            return f"{name!r} is not among the options here: {', '.join(OPTIONS)}"
        if name == "augment" and value not in (None, augment_digits):
            return "augment is a function: training.augment_digits, without quotes, or None"
        if name != "augment" and (isinstance(value, bool) or not isinstance(value, (int, float))):
            return f"{name} is {value!r}; give a number"
    return ""


def tried(recipe: Callable) -> Any:
    """What becomes of a recipe, in words; `...` and nothing as they are."""
    settings = recipe()
    if settings is ... or settings is None or isinstance(settings, Verdict):
        return settings
    if reason := refusal(settings):
        return Verdict(reason)
    if any(value is ... for value in settings.values()):
        return ...
    try:
        loss = val_loss(tuple(sorted(settings.items())))
    except (ValueError, TypeError) as error:
        if "learning rate" not in str(error):
            return Verdict(str(error))
        loss = float("nan")
    if loss < BAR:
        return CLEARS
    rate = settings.get("lr", 2e-3)
    advice = "section 7 swept the rate alone; what decides how many steps four epochs hold?"
    if rate > 0.02:
        advice = "the learning rate is too high: the weights are thrown about"
    elif rate < 3e-4:
        advice = "the learning rate is too low: the weights hardly move"
    elif "label_smoothing" in settings or settings.get("augment"):
        advice = "smoothing and augmentation slow a training that is as short as this one"
    return Verdict(f"its validation loss is {loss:.2f}, and the bar is {BAR}; {advice}")


def clears_the_bar() -> Verdict:
    """Stands for every recipe that does: a training of its own would cost seconds at each check."""
    return CLEARS


beat_the_bar = Check(
    reference=clears_the_bar,
    trials=[Trial("your recipe", tried)],
    mistakes={
        "these are the package's defaults; four epochs of them end far above the bar "
        f"of {BAR}": dict,
        "four epochs are the budget, for everybody: leave `epochs` out": lambda: {"epochs": 8},
        "a lucky seed is no recipe, and does not hold for the next one: leave `seed` out": lambda: {
            "seed": 1
        },
        "augment is a function: training.augment_digits, without quotes, or None": lambda: {
            "augment": "digits"
        },
    },
)
