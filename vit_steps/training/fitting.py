"""Lesson 07: the loop with a folder: a training that can be stopped, and that goes on."""

from collections.abc import Callable, Sequence, Sized
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.optim import AdamW, Optimizer
from torch.utils.data import DataLoader
from tqdm import tqdm

from ..inputs import check_fraction, check_labels, check_sizes
from .checking import check_classes, check_optimizer, check_settings, logits_of
from .checkpoints import check_plain, describe, read_checkpoint, weights_of
from .dataset import ImageDataset, Source, batches, checked, classes_of
from .loop import decay_groups, evaluate, evaluating, warmup_cosine
from .resuming import Checkpoint, own_folder, set_weights


@dataclass
class History:
    """What `fit` measured, one number an epoch.

    Args:
        train_loss: mean loss of the training steps, under augmentation and label smoothing.
        val_loss: mean cross-entropy of val's images after the epoch, in nats; empty without val.
        val_accuracy: share of val's images classified correctly after the epoch, from 0 to 1.
        learning_rate: that of the epoch's last step.
    """

    train_loss: list[float] = field(default_factory=list)
    val_loss: list[float] = field(default_factory=list)
    val_accuracy: list[float] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.train_loss)

    @property
    def best(self) -> int:
        """The epoch of the highest accuracy on val, from 1; of several, that of the lowest loss.

        Without val it is the last.
        """
        scores = [(a, -loss) for a, loss in zip(self.val_accuracy, self.val_loss, strict=True)]
        return 1 + scores.index(max(scores)) if scores else len(self)


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
    optimizer: Optimizer | None = None,
    schedule: Callable[[int, int], float] | None = None,
    seed: int = 0,
    device: str | torch.device | None = None,
    folder: str | Path | None = None,
    restart: bool = False,
    best: bool = False,
    progress: bool = True,
    report: Callable[[History], Any] | None = None,
    amp: bool = False,
    class_weights: Sequence[float] | None = None,
) -> History:
    """Train a model in place, by AdamW with warm-up and cosine, and measure it after each epoch.

    With a folder, each epoch ends with a checkpoint, `last.safetensors`, and the best epoch's
    weights are kept as `best.safetensors`; `load_model` reads both. The same call again goes on
    from there, and ends with the weights of a training that was never stopped, bit for bit (on a
    CPU with as many threads). With more epochs it goes on by the schedule of the longer run.

    Ctrl-C ends it early: the folder holds the last finished epoch, the model keeps what it learned,
    and the KeyboardInterrupt goes on to the caller. In several processes (torchrun, then
    `torch.distributed.init_process_group`) each calls this, takes its share of every batch, and
    ends with the weights that one process comes to, up to rounding; the first of them writes.

    Args:
        model: a ViT, or anything that turns images (B, C, H, W) into logits; compiled or not. It
            comes back to the device where it was, in evaluation mode.
        train: an `ImageDataset`, any other Dataset of (image, label), or a DataLoader.
        val: what it is measured on after each epoch, to choose the best; without, that is the last.
        epochs: how often each training image is seen.
        batch_size: images in a step, over all processes; None is 64, or the DataLoader's.
        lr: the highest learning rate.
        weight_decay: how strongly weights are pulled to 0, see `decay_groups`.
        warmup: share of the steps in which the learning rate rises.
        label_smoothing: share of the target that is spread over all classes.
        augment: changes a batch of training images on the device, such as `augment_digits`; it
            must draw its random numbers from the generator that it is given, which is the CPU's.
        clip: the longest that the gradient of all weights together may be (Pascanu et al. 2013).
        optimizer: one of your own; its groups keep the proportion of their learning rates.
        schedule: the share of the learning rate in step i of n, `schedule(i, n)`.
        seed: of the order, the augmentation and dropout; not of the model's first weights.
        device: where to train; None takes CUDA or MPS where there is one, else the CPU.
        folder: where the checkpoints go; it is made if it is not there.
        restart: start anew; what the folder holds is replaced when the first epoch is finished.
        best: whether the model has the best epoch's weights afterwards, not the last one's.
        progress: show a bar.
        report: called with the history after each epoch, once it is saved; True ends the training.
        amp: compute in 16 bits where that is safe (Micikevicius et al. 2018).
        class_weights: how much an image of each class counts in the loss, 1 on average.

    TypeError or ValueError, before the first step, for what cannot be trained, saved or gone on
    with; and for a loss that is no longer a number.
    """
    check_settings(model, learns=True)
    check_sizes(epochs=epochs)
    check_sizes(0, seed=seed)
    check_fraction(warmup=warmup, label_smoothing=label_smoothing)
    if clip is not None and not clip > 0:
        raise ValueError(f"clip is {clip}; give the longest gradient, above 0, or None")
    loader, classes = batches(train, batch_size), classes_of(train)
    logits = check_classes(model, classes, classes_of(val))
    epochs, seed = int(epochs), int(seed)  # NumPy's too
    steps, schedule = len(loader), schedule or partial(warmup_cosine, warmup=warmup)
    if optimizer is None:
        groups = decay_groups(model, weight_decay)
        optimizer = AdamW(groups, lr=lr, weight_decay=weight_decay, fused=True)
    peaks = [group["lr"] for group in optimizer.param_groups]
    learning = check_optimizer(optimizer, model)
    home, device = next(model.parameters()).device, pick_device(device)
    weight = None if class_weights is None else torch.as_tensor(class_weights).float().to(device)
    if weight is not None and logits not in (None, len(weight)):
        raise ValueError(f"class_weights are {len(weight)}, but there are {logits} classes")
    lacks = device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False)
    half = torch.float16 if lacks else torch.bfloat16
    autocast = partial(torch.autocast, device.type, half, enabled=amp)
    scaler = torch.amp.GradScaler(device.type, enabled=amp and half == torch.float16)
    wrapped, rank, processes, checkpoint = model, 0, 1, None
    if folder is not None:
        check_plain(model)
        images = [len(data) if isinstance(data, Sized) else 0 for data in (train, val)]
        preprocess, learned = getattr(train, "preprocess", None), {"train": f"{images[0]:,} images"}
        metadata = describe(model, classes, preprocess, learned)
        run = metadata["config"] | dict(classes=classes, images=images, lr=lr, seed=seed)
        run["batch_size"] = batch_size or loader.batch_size or 64
        run["class_weights"] = None if weight is None else weight.tolist()
        run["frozen"] = sum(not p.requires_grad for p in model.parameters()) or None
        checkpoint = Checkpoint(Path(folder).expanduser(), optimizer, scaler, run, metadata)
    model.to(device)
    if val is not None:
        check_val(model, val)
    if dist.is_available() and dist.is_initialized():
        rank, processes = dist.get_rank(), dist.get_world_size()
        wrapped = DistributedDataParallel(model)  # the first one's weights, gradients averaged
        if isinstance(train, DataLoader):
            raise ValueError("a DataLoader cannot be shared by processes; give its dataset")

    cross_entropy = partial(F.cross_entropy, label_smoothing=label_smoothing)

    def step(images: Tensor, labels: Tensor, rate: float, rng: torch.Generator) -> Tensor:
        """Take one step at this share of the learning rate; give the sum of the losses."""
        for group, peak in zip(optimizer.param_groups, peaks, strict=True):
            group["lr"] = peak * rate
        images, labels = images.to(device), labels.to(device)
        if augment is not None:
            images = augment(images, rng)
        whole = counted = len(labels)
        if processes > 1:  # each takes a share of the batch, the last ones of a small one none
            counted = len(labels[rank::processes])
            share = slice(rank, None, processes) if counted else slice(1)
            images, labels = images[share], labels[share]
        with autocast():
            output = logits_of(wrapped, images, labels)
        output = output.float() if amp else output
        if logits is None and labels.ndim == 1:
            check_labels(labels, *output.shape)
        # With weights summed, since torch's mean would divide by those of the batch.
        kind, divisor = ("mean", 1) if weight is None else ("sum", len(labels))
        loss = cross_entropy(output, labels, weight, reduction=kind) / divisor
        model.zero_grad()
        # The gradients of processes are averaged, so a share counts by its size.
        scaler.scale(loss * (counted * processes / whole)).backward()
        if clip is not None:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(learning, clip)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach() * counted

    history, best_weights = History(), {}
    try:
        with own_folder(checkpoint.folder) if checkpoint and rank == 0 else nullcontext():
            if processes > 1:
                dist.barrier()  # until the first has made the folder, and swept it
            if checkpoint is not None and not restart:
                history = History(**checkpoint.load(model))
            if (start := len(history)) > epochs:
                raise ValueError(f"epochs is {epochs}, but {folder} holds {start} finished ones")
            hidden, total = not progress or rank > 0, epochs * steps
            bar = tqdm(total=total, initial=start * steps, unit="step", disable=hidden)
            for epoch in range(start, epochs):
                bar.set_description(f"epoch {epoch + 1}/{epochs}")
                # A seed for each epoch: order, augmentation and dropout are the same, whether the
                # training was stopped before it or not.
                generator = torch.Generator().manual_seed(1_000_003 * seed + epoch)
                torch.manual_seed(1_000_003 * seed + epoch + 15_485_863 * rank)
                model.train()
                loss_sum, count = torch.zeros((), device=device), 0
                pairs = checked(batches(train, batch_size, generator), logits)
                for i, (images, labels) in enumerate(pairs, epoch * steps):
                    loss_sum += step(images, labels, schedule(i, total), generator)
                    count += len(labels)
                    bar.update()
                if processes > 1:
                    dist.all_reduce(loss_sum)
                history.train_loss.append(loss_sum.item() / count)
                history.learning_rate.append(optimizer.param_groups[0]["lr"])
                if val is not None:
                    with autocast():
                        loss, accuracy = evaluate(model, val)
                    history.val_loss.append(loss)
                    history.val_accuracy.append(accuracy)
                    bar.set_postfix(accuracy=f"{accuracy:.1%}")
                check_numbers(model, history, lr)
                is_best = history.best == len(history)
                if checkpoint is not None and rank == 0:
                    checkpoint.save(model, asdict(history), is_best)
                elif best and is_best:
                    best_weights = deepcopy(weights_of(model))
                if report is not None and report(history) is True:
                    break
            bar.close()
            if processes > 1:
                dist.barrier()  # until the first has written the last files
    finally:
        for group, peak in zip(optimizer.param_groups, peaks, strict=True):
            group["lr"] = peak
        model.to(home).eval()
    if best:
        if checkpoint is not None:
            best_weights, _ = read_checkpoint(checkpoint.folder / "best.safetensors")
        set_weights(model, best_weights)
    return history


def check_val(model: nn.Module, val: Source) -> None:
    """Look at val before anything is learned: its first batch's logits, and all its labels."""
    device, count = next(model.parameters()).device, None
    for images, labels in checked(batches(val, usual=256)):
        if count is None:
            with evaluating(model):
                count = logits_of(model, images.to(device), labels).shape[1]
        whole = val.labels if isinstance(val, ImageDataset) else labels
        check_labels(whole, len(whole), count)
        if isinstance(val, ImageDataset):
            return


def check_numbers(model: nn.Module, history: History, lr: float) -> None:
    """Refuse to go on, and to save, when a loss or a weight is no longer a number."""
    loss = [history.train_loss[-1], *history.val_loss[-1:]][-1]
    if not isfinite(loss) or not all(p.isfinite().all() for p in model.parameters()):
        raise ValueError(
            f"after epoch {len(history)} the loss is {loss}, or a weight is no longer a number: "
            f"the learning rate {lr} is too high, or an image holds something that is no number"
        )


def pick_device(device: str | torch.device | None) -> torch.device:
    """Find the device of this name (ValueError if it is not here); for None the best there is."""
    try:
        device = torch.device(device or torch.accelerator.current_accelerator(True) or "cpu")
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:  # torch has both for what it lacks
        reason = str(error).partition("\n")[0].partition(". ")[0]
        raise ValueError(f"device {device!r} cannot be used here: {reason}") from error
