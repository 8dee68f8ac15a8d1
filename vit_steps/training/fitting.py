"""Lesson 07: the whole training in one call, which outlives a crash."""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from math import ceil, inf, isfinite
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer
from tqdm import tqdm

from ..inputs import check_choice, check_fraction, check_sizes
from ..vit import ViTConfig
from .checkpoints import config_of, own_folder, resume, save_epoch
from .dataset import Pictures
from .devices import bring, make_scaler, pick_device
from .identity import fingerprint, fingerprint_model, name_augmentation
from .loader import batches
from .loop import History, decay_groups, evaluate, warmup_cosine
from .processes import is_first, my_share, shared_step, totals, wait, wrap


def fit(
    model: nn.Module,
    train: Pictures,
    val: Pictures | None = None,
    *,
    epochs: int = 30,
    batch_size: int = 64,
    lr: float = 2e-3,
    weight_decay: float = 0.05,
    warmup: float = 0.1,
    label_smoothing: float = 0.0,
    augment: Callable[[Tensor, torch.Generator], Tensor] | None = None,
    seed: int = 0,
    device: str | torch.device | None = None,
    folder: str | Path | None = None,
    progress: bool = True,
    report: Callable[[History], None] | None = None,
    amp: bool = False,
) -> History:
    """Train a model in place, by AdamW with warm-up and cosine, and measure it after each epoch.

    With a folder, each epoch ends with a checkpoint, `last.safetensors`, and the best epoch's
    weights are kept as `best.safetensors`; `load_model` reads both. The same call again goes on
    from there, and ends with the weights of a training that was never stopped, bit for bit (on a
    CPU with as many threads; a GPU may differ in the last bits). A second training in the same
    folder is refused while the first is at work.

    Where torchrun started several processes, each calls this (`processes.joined`): they share each
    batch, and end with the weights that one process comes to, up to rounding. The first of them
    writes, and shows the bar. A checkpoint goes on in any number of processes.

    Ctrl-C, a notebook's stop button, ends it early: the folder holds the last finished epoch, the
    model keeps what it learned up to that moment, and the KeyboardInterrupt goes on to the caller.

    Args:
        model: a ViT, or anything that turns images (B, C, H, W) into logits; compiled or not. It
            comes back to the device where it was, in evaluation mode, ready to be used.
        train: what it learns from.
        val: what it is measured on after each epoch, to choose the best; without, that is the last.
            Not what you report in the end: for that keep a test part, and measure it once.
        epochs: how often it sees each training image.
        batch_size: images in a step, over all processes; an epoch's last step has what is left.
        lr: the highest learning rate.
        weight_decay: for the weights that decay, see `decay_groups`.
        warmup: share of all steps in which the learning rate rises, see `warmup_cosine`.
        label_smoothing: see `train_step`.
        augment: changes a batch of training images on the device, such as `augment_digits`; it
            must draw its random numbers from the generator that it is given, which is the CPU's.
            A run goes on only with one of the same name (see `identity.name_augmentation`).
        seed: of the order, the augmentation and dropout; not of the model's first weights, which
            are there already. Torch's global generator is seeded anew at each epoch.
        device: where to train; None takes CUDA or MPS where there is one, else the CPU.
        folder: where the checkpoints go; it is made if it is not there.
        progress: show a bar.
        report: called with the history after each epoch, once it is saved.
        amp: mixed precision, see `vit_steps.training.devices`; the weights stay in 32 bits.

    Raises:
        TypeError: a value of the wrong kind; a folder, but a model without a `ViTConfig`.
        ValueError: a value out of its range, data that do not fit together or to the model, a
            folder that holds another model's or another run's checkpoint, that another training
            uses or that cannot be written, or a loss that is no longer a number.
        KeyboardInterrupt: it was stopped.
    """
    check_sizes(epochs=epochs, batch_size=batch_size)
    check_sizes(0, seed=seed)
    check_fraction(warmup=warmup, label_smoothing=label_smoothing)
    check_choice("amp", amp, True, False)
    check_data(model, train, val)
    check_rates(lr=lr, weight_decay=weight_decay)
    share = my_share()
    if batch_size < share[1]:
        raise ValueError(f"batch_size is {batch_size}, too few for {share[1]} processes")
    home, device = next(model.parameters()).device, pick_device(device)
    place, history = None if folder is None else Path(folder), History()
    run = {}  # what may not change when it is resumed
    if place is not None:
        run = config_of(model) | dict(
            epochs=epochs,
            batch_size=batch_size,
            lr=lr,
            weight_decay=weight_decay,
            warmup=warmup,
            label_smoothing=label_smoothing,
            augment=name_augmentation(augment),
            seed=seed,
            amp=amp,
            model=fingerprint_model(model),
            train=fingerprint(train),
            val=None if val is None else fingerprint(val),
        )
    steps = ceil(len(train) / batch_size)  # an epoch
    rates = [lr * warmup_cosine(step, epochs * steps, warmup) for step in range(epochs * steps)]
    try:
        optimizer = AdamW(decay_groups(model.to(device), weight_decay), lr=lr, fused=True)
        scaler = make_scaler(device, amp)
        options = dict(label_smoothing=label_smoothing, scaler=scaler, amp=amp)
        step = partial(shared_step, wrap(model), optimizer, **options)
        train, val = bring(train, device), bring(val, device)
        with own_folder(place) if place and is_first() else nullcontext():
            wait()  # until the first has made and swept it
            if place is not None:
                history = resume(place, model, optimizer, scaler, run)
            done, hidden = len(history), not (progress and is_first())
            with tqdm(total=len(rates), initial=done * steps, unit="step", disable=hidden) as bar:
                for epoch in range(done, epochs):
                    bar.set_description(f"epoch {epoch + 1}/{epochs}")
                    # A seed for each epoch: order, augmentation and dropout are the same, whether
                    # the training was stopped before it or not.
                    generator = torch.manual_seed(1_000_003 * seed + epoch)
                    drawn = batches(train, batch_size, generator, augment, device, share)
                    now = rates[epoch * steps : (epoch + 1) * steps]
                    model.train()
                    history.train_loss.append(train_epoch(step, optimizer, drawn, now, bar))
                    history.learning_rate.append(now[-1])
                    if val is not None:
                        loss, accuracy = evaluate(model, val, amp=amp)
                        history.val_loss.append(loss)
                        history.val_accuracy.append(accuracy)
                        bar.set_postfix(accuracy=f"{accuracy:.1%}")
                    check_epoch(model, history, lr)
                    if place is not None and is_first():
                        save_epoch(place, model, optimizer, scaler, run, history)
                    if report is not None and is_first():
                        report(history)
            wait()  # for the last files
    finally:
        model.to(home).eval()
    return history


def train_epoch(
    step: Callable[[Tensor, Tensor], Tensor],
    optimizer: Optimizer,
    drawn: Iterable[tuple[Tensor, Tensor]],
    rates: list[float],
    bar: tqdm,
) -> float:
    """A step on each of the batches that are drawn, with its learning rate; the mean loss."""
    summed, seen = torch.zeros(()), 0
    for (images, labels), rate in zip(drawn, rates, strict=False):  # files may be unreadable
        for group in optimizer.param_groups:
            group["lr"] = rate
        summed = summed.to(images.device) + step(images, labels) * len(labels)
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
    sound = torch.stack([weights.isfinite().all() for weights in model.parameters()])
    if not sound.all():
        raise ValueError(f"after epoch {len(history)} a weight is no longer a number: {cause}")


def check_data(model: nn.Module, train: Pictures, val: Pictures | None) -> None:
    """Refuse data that do not belong together or to the model."""
    for name, data in (("train", train), ("val", train if val is None else val)):
        if not isinstance(data, Pictures):
            raise TypeError(f"{name} is a {type(data).__name__}; give a data.ImageDataset")
    if val is not None and train.classes != val.classes:
        raise ValueError(f"train has the classes {train.classes}, val {val.classes}")
    config = getattr(model, "config", None)
    if isinstance(config, ViTConfig) and config.num_classes != len(train.classes):
        count = len(train.classes)
        said = f"the model gives {config.num_classes} logits for {count} classes"
        raise ValueError(f"{said}; make it with num_classes={count}")


def check_rates(**rates: float) -> None:
    """Each named rate must be a number of at least 0."""
    for name, value in rates.items():
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise TypeError(f"{name} is {value!r}; give a number")
        if not 0 <= value < inf:
            raise ValueError(f"{name} is {value}; give a number of at least 0")
