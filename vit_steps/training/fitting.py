"""Lesson 07: the whole training in one call, which outlives a crash."""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from copy import deepcopy
from functools import partial
from math import inf, isfinite
from pathlib import Path
from typing import Any
from zlib import crc32

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from tqdm import tqdm

from ..inputs import check_choice, check_fraction, check_sizes
from ..vit import ViTConfig
from .checkpoints import bare, check_plain, config_of, describe, read_checkpoint, weights_of
from .dataset import ImageDataset
from .devices import bring, pick_device
from .identity import fingerprint, name_of
from .learner import Learner
from .loader import Batches, Source, classes_of
from .loop import EVALUATED, History, evaluate, warmup_cosine
from .processes import is_first, my_share, totals, wait
from .resuming import own_folder, resume, save_epoch


def fit(
    model: nn.Module,
    train: Source,
    val: Source | None = None,
    *,
    epochs: int = 30,
    batch_size: int | None = None,
    lr: float = 2e-3,
    weight_decay: float = 0.05,
    warmup: float = 0.1,
    label_smoothing: float = 0.1,
    augment: Callable[[Tensor, torch.Generator], Tensor] | None = None,
    clip: float | None = None,
    average: float | None = None,
    optimizer: Optimizer | None = None,
    schedule: Callable[[int, int], float] | None = None,
    seed: int = 0,
    device: str | torch.device | None = None,
    folder: str | Path | None = None,
    best: bool = False,
    progress: bool = True,
    report: Callable[[History], Any] | None = None,
    amp: bool = False,
) -> History:
    """Train a model in place, by AdamW with warm-up and cosine, and measure it after each epoch.

    With a folder, each epoch ends with a checkpoint, `last.safetensors`, and the best epoch's
    weights are kept as `best.safetensors`; `load_model` reads both. The same call again goes on
    from there, and ends with the weights of a training that was never stopped, bit for bit (on a
    CPU with as many threads; a GPU may differ in the last bits). With more epochs it goes on by the
    schedule of the longer run. A second training in the folder is refused while one is at work.

    Where torchrun started several processes, each calls this within `processes.joined`: they share
    each batch, and end with the weights that one process comes to, up to rounding. The first of
    them writes, and shows the bar. A checkpoint goes on in any number of processes.

    Ctrl-C, a notebook's stop button, ends it early: the folder holds the last finished epoch, the
    model keeps what it learned up to that moment, and the KeyboardInterrupt goes on to the caller.

    Args:
        model: a ViT, or anything that turns images (B, C, H, W) into logits; compiled or not. It
            comes back to the device where it was, in evaluation mode, ready to be used.
        train: what it learns from: pictures of `vit_steps.training.data`, any other Dataset of
            (image, label), or a DataLoader, see `Batches`.
        val: what it is measured on after each epoch, to choose the best; without, that is the last.
            What you report in the end is measured once, on a test part.
        epochs: how often it sees each training image.
        batch_size: images in a step, over all processes; None is 64, or the DataLoader's.
        lr: the highest learning rate.
        weight_decay: for the weights that decay, see `decay_groups`.
        warmup: share of all steps in which the learning rate rises, see `warmup_cosine`.
        label_smoothing: see `train_step`.
        augment: changes a batch of training images on the device, such as `augment_digits`; it
            must draw its random numbers from the generator that it is given, which is the CPU's.
        clip: the longest that the gradient of all weights together may be; a longer one is made
            shorter (Pascanu et al. 2013).
        average: how much of itself a running mean of the weights keeps at a step, such as 0.999
            (Polyak and Juditsky 1992); less in the first steps. The mean is measured, saved, and in
            the model afterwards.
        optimizer: one of your own over the model's parameters, in place of AdamW with `lr` and
            `weight_decay`; its groups keep the proportion of their learning rates.
        schedule: the share of the learning rate in step i of n, `schedule(i, n)`, in place of
            warm-up and cosine.
        seed: of the order, the augmentation and dropout; not of the model's first weights, which
            are there already. Torch's global generator is seeded anew at each epoch.
        device: where to train; None takes CUDA or MPS where there is one, else the CPU.
        folder: where the checkpoints go; it is made if it is not there.
        best: whether the model has the best epoch's weights afterwards, not the last one's.
        progress: show a bar.
        report: called with the history after each epoch, once it is saved; where it gives True, the
            training ends.
        amp: mixed precision, see `vit_steps.training.devices`; the weights stay in 32 bits.

    Raises:
        TypeError: a value of the wrong kind; a folder, but a model without a `ViTConfig`.
        ValueError: a value out of its range, data that do not fit together or to the model, a model
            that cannot be saved, a folder of another run, in use or not writable, or a loss that is
            no longer a number.
        KeyboardInterrupt: it was stopped.
    """
    check_options(locals())
    classes, logits, share = check_data(model, train, val), count_logits(model), my_share()
    home, device = next(model.parameters()).device, pick_device(device)
    drawn, held = Batches(bring(train, device), batch_size, device, share, logits), None
    if val is not None:
        held = Batches(bring(val, device), None, device, share, logits, usual=EVALUATED)
    if drawn.batch_size < share[1]:
        raise ValueError(f"batch_size is {drawn.batch_size}, too few for {share[1]} processes")
    steps = len(drawn)  # an epoch
    schedule = schedule or partial(warmup_cosine, warmup=warmup)
    rates = [schedule(i, epochs * steps) for i in range(epochs * steps)]
    check_rates(**{f"schedule({i}, {len(rates)})": rate for i, rate in enumerate(rates)})

    place, history, kept = None if folder is None else Path(folder).expanduser(), History(), {}
    run, about = {}, {}  # what may not change when it is resumed, and what the files say
    if place is not None:
        check_plain(model)
        known = dict(train=fingerprint(train), val=None if val is None else fingerprint(val))
        how = train.preprocess if isinstance(train, ImageDataset) else None
        about = describe(config_of(model), classes, how, known)
        run = config_of(model) | known | dict(classes=classes, batch_size=drawn.batch_size, lr=lr)
        run |= dict(weight_decay=weight_decay, label_smoothing=label_smoothing, clip=clip)
        run |= dict(average=average, augment=name_of(augment), seed=seed, amp=amp)
        frozen = [bare(name) for name, p in model.named_parameters() if not p.requires_grad]
        run["frozen"] = f"{len(frozen)} tensors, sum {crc32(' '.join(frozen).encode()):08x}"
        run["schedule"] = name_of(schedule)
        run["optimizer"] = None if optimizer is None else " ".join(repr(optimizer).split())
    learning: Any = dict(label_smoothing=label_smoothing, clip=clip, average=average, amp=amp)
    learner = Learner(model.to(device), optimizer, lr, weight_decay, **learning)
    try:
        with own_folder(place) if place and is_first() else nullcontext():
            wait()  # until the first has made and swept it
            if place is not None:
                history = resume(place, learner, run)
            done, hidden = len(history), not (progress and is_first())
            if done > epochs:
                raise ValueError(f"epochs is {epochs}, but {place} holds {done} finished ones")
            with tqdm(total=len(rates), initial=done * steps, unit="step", disable=hidden) as bar:
                for epoch in range(done, epochs):
                    bar.set_description(f"epoch {epoch + 1}/{epochs}")
                    # A seed for each epoch: order, augmentation and dropout are the same, whether
                    # the training was stopped before it or not.
                    generator = torch.manual_seed(1_000_003 * seed + epoch)
                    now = rates[epoch * steps : (epoch + 1) * steps]
                    model.train()
                    images = drawn(generator, augment)
                    history.train_loss.append(train_epoch(learner, images, now, bar))
                    history.learning_rate.append(now[-1] * learner.peaks[0])
                    if held is not None:
                        loss, accuracy = evaluate(learner.measured, held, amp=amp)
                        history.val_loss.append(loss)
                        history.val_accuracy.append(accuracy)
                        bar.set_postfix(accuracy=f"{accuracy:.1%}")
                    check_epoch(model, history, lr)
                    if place is not None and is_first():
                        save_epoch(place, learner, run, about, history)
                    if best and not place and history.best == len(history):
                        kept = deepcopy(weights_of(learner.measured))
                    ends = report is not None and is_first() and report(history) is True
                    if totals(ends) != [0]:
                        break
            wait()  # for the last files
    finally:
        learner.close()
        model.to(home).eval()
    if best:
        kept = read_checkpoint(place / "best.safetensors")[0] if place else kept
        model.load_state_dict({name: kept[bare(name)] for name in model.state_dict()})
    return history


def train_epoch(
    learner: Learner, drawn: Iterable[tuple[Tensor, Tensor]], rates: list[float], bar: tqdm
) -> float:
    """A step on each of the batches that are drawn, with its learning rate; the mean loss."""
    summed, seen = torch.zeros(()), 0
    for (images, labels), rate in zip(drawn, rates, strict=False):
        for group, peak in zip(learner.optimizer.param_groups, learner.peaks, strict=True):
            group["lr"] = rate * peak
        summed = summed.to(images.device) + learner.step(images, labels) * len(labels)
        seen += len(labels)
        bar.update()
    loss, count = totals(summed.item(), seen)
    return loss / count


def check_epoch(model: nn.Module, history: History, lr: float) -> None:
    """Refuse to go on, and to save, when a loss or a weight is no longer a number."""
    cause = f"the learning rate {lr} is too high, or an image holds something that is not a number"
    for loss in (history.train_loss[-1], *history.val_loss[-1:]):
        if not isfinite(loss):
            raise ValueError(f"the loss of epoch {len(history)} is {loss}: {cause}")
    if not all(weights.isfinite().all() for weights in model.parameters()):
        raise ValueError(f"after epoch {len(history)} a weight is no longer a number: {cause}")


def check_data(model: nn.Module, train: Source, val: Source | None) -> tuple[str, ...]:
    """Refuse data that do not belong together or to the model; give the classes' names."""
    names = [classes_of(data) for data in (train, val) if data is not None]
    if all(names) and len({*names}) > 1:
        raise ValueError(f"train has the classes {names[0]}, val {names[1]}")
    logits, count = count_logits(model), len(names[0])
    if logits is not None and count and logits != count:
        said = f"the model gives {logits} logits for {count} classes"
        raise ValueError(
            f"{said}; make it with num_classes={count}, or give a trained one a new head by "
            f"model.with_classes({count}) or load_model(path, num_classes={count})"
        )
    return names[0]


def count_logits(model: nn.Module) -> int | None:
    """How many logits the model gives: as its head says, else its config; None if neither does."""
    model = getattr(model, "_orig_mod", model)
    if isinstance(head := getattr(model, "head", None), nn.Linear):
        return head.out_features
    config = getattr(model, "config", None)
    return config.num_classes if isinstance(config, ViTConfig) else None


def check_rates(**rates: float) -> None:
    """Each named rate must be a number of at least 0."""
    for name, value in rates.items():
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise TypeError(f"{name} is {value!r}; give a number")
        if not 0 <= value < inf:
            raise ValueError(f"{name} is {value}; give a number of at least 0")


def check_options(options: dict[str, Any]) -> None:
    """Refuse options of `fit` that are out of their range, by their names; None is fine."""

    def given(*names: str) -> dict[str, Any]:
        return {name: options[name] for name in names if options.get(name) is not None}

    check_sizes(**given("epochs", "batch_size"))
    check_sizes(0, **given("seed"))
    check_fraction(**given("warmup", "label_smoothing", "average"))
    check_rates(**given("lr", "weight_decay", "clip"))
    if options.get("clip") == 0:
        raise ValueError("clip is 0: nothing would be learned; give a number above 0, or None")
    for name, value in given("amp", "best").items():
        check_choice(name, value, True, False)
