"""Lesson 07: a training step, a schedule, the loss by hand, the slip in a step, a bar to beat."""

from collections.abc import Callable
from functools import cache
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from vit_steps.training import augment_digits, evaluate, fit
from vit_steps.training.data import load_data
from vit_steps.vit import ViT, ViTConfig

from .compare import Parts, Verdict, kind_of
from .engine import Check
from .exercise import Exercise, edited
from .trials import Trial, call, then, untouched

# One training step --------------------------------------------------------------------------------

SWAPPED = "the logits come first, then the labels: F.cross_entropy(model(images), labels)"
CUT_OFF = (
    "backward finds no way back from the loss: the model must run outside torch.no_grad(), the "
    "loss may be detached only at the end, and an accuracy (argmax) has no gradient at all"
)


class WatchedSGD(torch.optim.SGD):
    """Plain SGD that counts how often it moved its weights."""

    moves = 0

    def step(self, *arguments: Any, **options: Any) -> Any:
        self.moves += 1
        return super().step(*arguments, **options)


def batch(number: int, size: int) -> tuple[Tensor, Tensor]:
    """Images of three numbers each, and labels of four classes, the same at every call."""
    generator = torch.Generator().manual_seed(number)
    images = torch.randn(size, 3, generator=generator)
    return images, torch.randint(4, (size,), generator=generator)


def taught(what: str, *sizes: int, mode: bool, scale: float = 1.0) -> Trial:
    """A trial of a training step: batches of these sizes, their images larger by this factor, one
    after another, on a small model with dropout that is in training mode, or in evaluation mode."""

    def run(step: Callable) -> Any:
        linear = nn.Linear(3, 4)
        with torch.no_grad():
            linear.weight.copy_(batch(7, 4)[0])
        model = nn.Sequential(nn.Dropout(0.4), linear).train(mode)
        optimizer = WatchedSGD(model.parameters(), lr=0.1, momentum=0.5)
        losses, problem = {}, ""
        for number, size in enumerate(sizes):
            before, optimizer.moves = linear.weight.detach().clone(), 0
            images, labels = batch(number, size)
            loss = untouched(step, model, optimizer, scale * images, labels)
            if loss is None or loss is ...:
                return loss
            problem = wrongly_moved(before, linear.weight, optimizer) or problem
            if problem == FOREIGN:  # then what the weights are does not count
                return Verdict(problem)
            losses[f"loss of step {number + 1}"] = loss
        holds = any(isinstance(x, Tensor) and x.requires_grad for x in losses.values())
        now = "training" if model.training else "evaluation"
        return Parts(
            Verdict(problem),
            losses | {"weight": linear.weight.detach(), "bias": linear.bias.detach()},
            Verdict(f"the model is in {now} mode after the step" if model.training != mode else ""),
            Verdict("the loss that it returns still holds on to its graph" if holds else ""),
        )

    return Trial(what, run)


FOREIGN = "the weights have moved, but not by the optimizer"


def wrongly_moved(before: Tensor, weight: Tensor, optimizer: WatchedSGD) -> str:
    """Why the weights have not moved, or not by the optimizer; "" where they have."""
    still = torch.equal(before, weight)
    if still and optimizer.moves:
        found = "none is there" if weight.grad is None or not weight.grad.any() else "it came later"
        return f"the optimizer was asked to step, but had no gradient; {found}"
    if still:
        return "the weights have not moved, and the optimizer was never asked to step"
    return "" if optimizer.moves else FOREIGN


train_step = Exercise(
    answer="""
def train_step(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()
""",
    trials=[
        taught("a step of a model in evaluation mode", 5, mode=False, scale=20.0),
        taught("three steps of a model with dropout, on other pictures each", 5, 6, 2, mode=True),
    ],
    slips={"NotImplementedError: .*Long": SWAPPED},
    wrong=f"""
gradients pile up from step to step: `optimizer.zero_grad()` is missing, or without its parentheses
    optimizer.zero_grad() =>
the optimizer finds no gradient: either `loss.backward()` is missing, or without its parentheses, or
`optimizer.zero_grad()` stands between backward and step and throws the new gradients away
    loss.backward() =>
    loss.backward() => loss.backward() ⏎ optimizer.zero_grad()
the optimizer steps before there is a gradient: `loss.backward()` comes first, then
`optimizer.step()`
    optimizer.step() => ;; loss.backward() => optimizer.step() ⏎ loss.backward()
the weights do not move: `optimizer.step()` is missing, or without its parentheses
    optimizer.step() =>
`optimizer.step()` moves the weights once; yours calls it twice
    optimizer.step() => optimizer.step() ⏎ optimizer.step()
move the weights by the optimizer that it is given, `optimizer.step()`: it holds the learning rate
and what it remembers of earlier steps
    loss = F => optimizer = torch.optim.SGD(model.parameters(), lr=0.01) ⏎ loss = F
a softmax too many: F.cross_entropy takes logits, and does the softmax itself
    model(images) => model(images).softmax(dim=-1)
this loss is the sum over the batch; take the mean, F.cross_entropy's own choice, so that a step is
as long for a small batch
    F.cross_entropy( => nn.CrossEntropyLoss(reduction="sum")(
the loss must be one number: take the mean over the batch, F.cross_entropy's own choice
    F.cross_entropy( => nn.CrossEntropyLoss(reduction="none")(
yours goes uphill: the loss is F.cross_entropy(model(images), labels), and backward starts from it,
with no minus before it
    loss = F => loss = -F
    loss.backward() => (-loss).backward()
the loss is smoothed; leave label_smoothing out, its target is the label alone
    F.cross_entropy( => nn.CrossEntropyLoss(label_smoothing=0.1)(
    F.cross_entropy( => nn.CrossEntropyLoss(label_smoothing=0.2)(
    F.cross_entropy( => nn.CrossEntropyLoss(label_smoothing=0.05)(
the gradients are clipped between backward and step; this step takes them as they are
    optimizer.step() => nn.utils.clip_grad_norm_(model.parameters(), 1.0) ⏎ optimizer.step()
    optimizer.step() => nn.utils.clip_grad_norm_(model.parameters(), 0.5) ⏎ optimizer.step()
    optimizer.step() => nn.utils.clip_grad_norm_(model.parameters(), 5.0) ⏎ optimizer.step()
    optimizer.step() => nn.utils.clip_grad_value_(model.parameters(), 1.0) ⏎ optimizer.step()
    optimizer.step() => nn.utils.clip_grad_value_(model.parameters(), 0.5) ⏎ optimizer.step()
this is a squared error; the loss of this lesson is F.cross_entropy(logits, labels)
    F.cross_entropy(model(images), labels) =>
        F.mse_loss(model(images), F.one_hot(labels, 4).float())
F.nll_loss takes log-probabilities; for logits, as a model gives them, it is F.cross_entropy
    F.cross_entropy => F.nll_loss
your loss does not depend on the labels that it is given; compare the logits with `labels`
    F.cross_entropy(model(images), labels) =>
        F.cross_entropy(logits := model(images), logits.argmax(dim=1))
your step switches the model to evaluation mode; leave out model.eval(), the caller chooses the mode
    loss = F => model.eval() ⏎ loss = F
    loss = F => model.eval() ⏎ loss = F ;; return loss => model.train() ⏎ return loss
your step switches the model to training mode; leave out model.train(), the caller chooses the mode
    loss = F => model.train() ⏎ loss = F
the loss that you return holds on to the graph of its batch: return loss.detach()
    loss.detach() => loss
you return a plain number; on a graphics card .item() waits for it at every step: return
loss.detach()
    loss.detach() => loss.item()
your step does its work but returns nothing; end it with `return loss.detach()`
    return loss.detach() =>
return the loss before the step, not a second one after it
    loss.detach() => F.cross_entropy(model(images), labels).detach()
{SWAPPED}
    F.cross_entropy(model(images), labels) => F.cross_entropy(labels, model(images))
{CUT_OFF}
    model(images) => model(images).detach()
""",
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


warmup_cosine = Exercise(
    answer="""
from math import cos, pi


def warmup_cosine(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    return (1 + cos(pi * (step - rise) / (steps - rise))) / 2
""",
    trials=[
        whole_run("the shares of 25 steps, warm-up 0.3", 25, 0.3),
        whole_run("the shares of 9 steps without a warm-up", 9, 0.0),
    ],
    wrong="""
your first step has share 0 and is wasted: count from 1, (step + 1) / (rise + 1)
    (step + 1) / (rise + 1) => step / rise
your first step has share 0 and is wasted: take step + 1, not step
    (step + 1) => step
your rise is at its peak one step early, and stands still for a step: step `rise` itself has share
1, so divide by rise + 1
    (rise + 1) => rise
the cosine must begin where the rise ends, at 1: count its steps from there, step - rise of steps -
rise
    (step - rise) / (steps - rise) => step / steps
the cosine must begin where the rise ends, at 1: count its steps from there, step - rise of steps -
rise; and multiply nothing
    (rise + 1) => (rise + 1) * (1 + cos(pi * step / steps)) / 2 ;;
        (step - rise) / (steps - rise) => step / steps
the fall takes steps - rise steps, not steps: yours is not down at the end
    / (steps - rise) => / steps
yours is down at 0 one step early, so that the last step is wasted: the fall takes steps - rise
steps
    (steps - rise) => (steps - rise - 1)
brackets are missing: only the cosine is halved, or only the 1; both together are, (1 + cos(…)) / 2
    return (1 + cos => return 1 + (cos
    (1 + cos => 2 * (0.5 + cos
brackets are missing: / comes before + and -, so write (step + 1) / (rise + 1) and (step - rise) /
(steps - rise)
    (step + 1) / (rise + 1) => step + 1 / rise + 1
    / (rise + 1) => / rise + 1
    (step + 1) => step + 1
    (step - rise) / (steps - rise) => step - rise / steps - rise
    / (steps - rise) => / steps - rise
    (step - rise) => step - rise
yours falls to 0 at once and rises to 1: it is 1 + cos(…), not 1 - cos(…)
    1 + cos => 1 - cos
the fall begins a step early: step `rise` itself has share 1, so count from there, step - rise
    (step - rise) / => (step - rise + 1) /
`//` throws the fraction away: divide by /
    (step + 1) / => (step + 1) //
1 + cos(…) runs from 2 to 0: halve it
    / 2 =>
a cosine alone runs from 1 to -1, and yours falls below 0: add 1 and halve it
    1 + cos => cos ;; / 2 =>
    1 + cos => cos
this is a quarter of a cosine's wave; the formula takes half of it, (1 + cos(…)) / 2
    1 + cos => cos ;; / 2 => ;; pi * => pi / 2 *
half a wave of the cosine is pi long: cos(pi * …)
    pi * =>
yours comes down and goes up again; half a wave is pi long, not 2 * pi
    pi * => 2 * pi *
cos takes radians, not degrees: half a wave is pi long, not 180
    pi * => 180 *
this is a straight line down; the cosine leaves the peak gently and lands gently
    (1 + cos(pi * (step - rise) / (steps - rise))) / 2 => 1 - (step - rise) / (steps - rise)
there is no rise: for step < rise the share climbs to the peak in a straight line
    int(warmup * steps) => 0
yours stays at the peak: after the rise it falls along half a cosine
    (1 + cos(pi * (step - rise) / (steps - rise))) / 2 => 1.0
the rise takes int(warmup * steps) steps, a whole number, rounded down
    int(warmup * steps) => round(warmup * steps)
    int(warmup * steps) => warmup * steps
without a warm-up the rise has no step, and the first share is 1
    int(warmup * steps) => max(int(warmup * steps), 1)
warmup is a share of the steps, not their number; the rise takes int(warmup * steps)
    int(warmup * steps) => warmup
you return how far down it is, from 0 to 1; the share is (1 + cos(pi · that)) / 2
    (1 + cos(pi * (step - rise) / (steps - rise))) / 2 => (step - rise) / (steps - rise)
after the rise yours gives nothing: is a `return` missing?
    return (1 + cos => (1 + cos
""",
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


class Calls(TorchFunctionMode):
    """Notes the names of torch's functions that are called meanwhile."""

    def __init__(self):
        super().__init__()
        self.names: set[str] = set()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.add(getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))


def by_hand(loss: Callable) -> Any:
    """The loss of two pictures, unless it is torch's own."""
    with Calls() as calls:
        result = loss(LOGITS.clone(), LABELS.clone(), 0.1)
    return Verdict("it calls F.cross_entropy") if "cross_entropy" in calls.names else result


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
        Trial("what it calls", by_hand),
    ],
    mistakes={
        "this is torch's own loss; write it without F.cross_entropy, from log_softmax and the "
        "targets": lambda logits, labels, s: F.cross_entropy(logits, labels, label_smoothing=s),
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


def slip(edit: str) -> Callable:
    """A training step with one thing wrong."""
    return train_step.made(edited(train_step.answer, edit))


SLIPS: dict[str | None, tuple[str, Callable]] = {
    None: ("a sound training step", train_step.reference),
    "softmax": (
        "a step with a softmax before F.cross_entropy",
        slip("model(images) => model(images).softmax(dim=-1)"),
    ),
    "zero_grad": ("a step without zero_grad", slip("optimizer.zero_grad() =>")),
    "eval": (
        "a step that switches the model to evaluation mode",
        slip("loss = F => model.eval() ⏎ loss = F"),
    ),
    "step": ("a step without optimizer.step()", slip("optimizer.step() =>")),
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


def sure_of(names: tuple[str, ...]) -> Callable:
    """A wrong answer: after these slips it looks for movement, and never sees any."""
    return lambda step: name if (name := found(step)) in names else "step"


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
        "see whether the gradient is the same both times (keep a copy of the first, by .clone(), "
        "for the gradient itself changes along)": blind("zero_grad"),
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
        NO_MOVEMENT: tuple(
            sure_of(names)
            for size in range(3)
            for names in combinations(("softmax", "zero_grad", "eval"), size)
        ),
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
