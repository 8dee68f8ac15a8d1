"""Lesson 07: the loop with a folder: a training that can be stopped, and that goes on."""

from collections.abc import Callable, Sized
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
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader
from tqdm import tqdm

from ..inputs import check_fraction, check_sizes
from .checkpoints import check_plain, describe, read_checkpoint, weights_of
from .dataset import Source, batches, check_batch, classes_of
from .loop import decay_groups, evaluate, warmup_cosine
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
    average: float | None = None,
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
) -> History:
    """Train a model in place, by AdamW with warm-up and cosine, and measure it after each epoch.

    With a folder, each epoch ends with a checkpoint, `last.safetensors`, and the best epoch's
    weights are kept as `best.safetensors`; `load_model` reads both. The same call again goes on
    from there, and ends with the weights of a training that was never stopped, bit for bit (on a
    CPU with as many threads; a GPU may differ in the last bits). With more epochs it goes on by the
    schedule of the longer run. A second training in the folder is refused while one is at work.

    Ctrl-C, a notebook's stop button, ends it early: the folder holds the last finished epoch, the
    model keeps what it learned up to that moment, and the KeyboardInterrupt goes on to the caller.

    In several processes (torchrun, then `torch.distributed.init_process_group`) each calls this,
    takes its share of every batch, and ends with the weights that one process comes to, up to
    rounding. The first of them writes, and shows the bar; each calls `report`.

    Args:
        model: a ViT, or anything that turns images (B, C, H, W) into logits; compiled or not. It
            comes back to the device where it was, in evaluation mode, ready to be used.
        train: what it learns from: an `ImageDataset`, any other Dataset of (image, label), or a
            DataLoader.
        val: what it is measured on after each epoch, to choose the best; without, that is the last.
            What you report in the end is measured once, on a test part.
        epochs: how often each training image is seen.
        batch_size: images in a step, over all processes; None is 64, or the DataLoader's.
        lr: the highest learning rate.
        weight_decay: how strongly weights are pulled to 0, see `decay_groups`.
        warmup: share of the steps in which the learning rate rises.
        label_smoothing: share of the target that is spread over all classes.
        augment: changes a batch of training images on the device, such as `augment_digits`; it
            must draw its random numbers from the generator that it is given, which is the CPU's.
        clip: the longest that the gradient of all weights together may be (Pascanu et al. 2013).
        average: how much of itself a running mean of the weights keeps at a step, such as 0.999
            (Polyak and Juditsky 1992); less in the first steps. The mean is measured, saved, and in
            the model afterwards.
        optimizer: one of your own, in place of AdamW; its groups keep the proportion of their
            learning rates.
        schedule: the share of the learning rate in step i of n, `schedule(i, n)`, in place of
            `warmup_cosine`.
        seed: of the order and the augmentation and dropout; not of the model's first weights.
            Torch's global generator is seeded anew at each epoch.
        device: where to train; None takes CUDA or MPS where there is one, else the CPU.
        folder: where the checkpoints go; it is made if it is not there.
        restart: start anew; what the folder holds is replaced when the first epoch is finished.
        best: whether the model has the best epoch's weights afterwards, not the last one's.
        progress: show a bar.
        report: called with the history after each epoch, once it is saved; where it gives True, the
            training ends.
        amp: compute in 16 bits where that is safe (Micikevicius et al. 2018).

    TypeError or ValueError for options out of range, for data that do not fit together or to the
    model, a model that cannot be saved, a folder of another run, in use or not writable, and a loss
    that is no longer a number.
    """
    check_sizes(epochs=epochs)
    check_sizes(0, seed=seed)
    check_fraction(warmup=warmup, label_smoothing=label_smoothing, average=average or 0.0)
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
    learning = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    if not learning:
        raise ValueError("every weight is frozen; let some learn: p.requires_grad_(True)")
    if not {*learning} <= {*model.parameters()}:
        raise ValueError("the optimizer holds other weights than the model; make it of these")
    home, device = next(model.parameters()).device, pick_device(device)
    cuda = device.type == "cuda"
    lacks = cuda and not torch.cuda.is_bf16_supported(including_emulation=False)
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
        checkpoint = Checkpoint(Path(folder).expanduser(), optimizer, scaler, run, metadata)
    model.to(device)
    mean = AveragedModel(model, avg_fn=partial(_running_mean, average)) if average else None
    measured = mean.module if mean else model
    if dist.is_available() and dist.is_initialized():
        rank, processes = dist.get_rank(), dist.get_world_size()
        wrapped = DistributedDataParallel(model)  # the first one's weights, gradients averaged
        if isinstance(train, DataLoader):
            raise ValueError("a DataLoader cannot be shared by processes; give its dataset")

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
            output = wrapped(images)
        output = output.float() if amp else output
        loss = F.cross_entropy(output, labels, label_smoothing=label_smoothing)
        model.zero_grad()
        # The gradients of processes are averaged, so a share counts by its size.
        scaler.scale(loss * (counted * processes / whole)).backward()
        if clip is not None:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(learning, clip)
        scaler.step(optimizer)
        scaler.update()
        if mean is not None:
            mean.update_parameters(model)
        return loss.detach() * counted

    history, best_weights = History(), {}
    try:
        with own_folder(checkpoint.folder) if checkpoint and rank == 0 else nullcontext():
            if processes > 1:
                dist.barrier()  # until the first has made the folder, and swept it
            if checkpoint is not None and not restart:
                history = History(**checkpoint.load(model, mean))
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
                for i, batch in enumerate(batches(train, batch_size, generator), epoch * steps):
                    images, labels = check_batch(batch, logits)
                    loss_sum += step(images, labels, schedule(i, total), generator)
                    count += len(labels)
                    bar.update()
                if processes > 1:
                    dist.all_reduce(loss_sum)
                history.train_loss.append(loss_sum.item() / count)
                history.learning_rate.append(optimizer.param_groups[0]["lr"])
                if val is not None:
                    with autocast():
                        loss, accuracy = evaluate(measured, val)
                    history.val_loss.append(loss)
                    history.val_accuracy.append(accuracy)
                    bar.set_postfix(accuracy=f"{accuracy:.1%}")
                check_numbers(model, history, lr)
                is_best = history.best == len(history)
                if checkpoint is not None and rank == 0:
                    checkpoint.save(model, mean, asdict(history), is_best)
                elif best and is_best:
                    best_weights = deepcopy(weights_of(measured))
                if report is not None and report(history) is True:
                    break
            bar.close()
            if processes > 1:
                dist.barrier()  # until the first has written the last files
    finally:
        if mean is not None:
            model.load_state_dict(mean.module.state_dict())
        for group, peak in zip(optimizer.param_groups, peaks, strict=True):
            group["lr"] = peak
        model.to(home).eval()
    if best:
        if checkpoint is not None:
            best_weights, _ = read_checkpoint(checkpoint.folder / "best.safetensors")
        set_weights(model, best_weights)
    return history


def _running_mean(average: float, mean: Tensor, now: Tensor, steps: Any) -> Tensor:
    """Follow a weight; less of the mean is kept at first, so that it soon forgets the start."""
    kept = ((1 + steps) / (10 + steps)).clamp(max=average)
    return mean.lerp(now, (1 - kept).to(mean.dtype))


def check_numbers(model: nn.Module, history: History, lr: float) -> None:
    """Refuse to go on, and to save, when a loss or a weight is no longer a number."""
    loss = [history.train_loss[-1], *history.val_loss[-1:]][-1]
    if not isfinite(loss) or not all(p.isfinite().all() for p in model.parameters()):
        raise ValueError(
            f"after epoch {len(history)} the loss is {loss}, or a weight is no longer a number: "
            f"the learning rate {lr} is too high, or an image holds something that is no number"
        )


def check_classes(model: Any, train: tuple[str, ...], val: tuple[str, ...]) -> int | None:
    """Count the model's logits by its head or its config; None where neither tells.

    ValueError for parts of other classes, and for more or fewer of them than logits.
    """
    if train and val and train != val:
        raise ValueError(f"train has the classes {train}, val {val}")
    model, n = getattr(model, "_orig_mod", model), len(train)
    logits = getattr(getattr(model, "config", None), "num_classes", None)
    logits = getattr(getattr(model, "head", None), "out_features", logits)
    if train and logits not in (None, n):
        raise ValueError(
            f"the model gives {logits} logits for {n} classes; make it with num_classes={n}, or "
            f"give a trained one a new head by model.with_classes({n})"
        )
    return logits


def pick_device(device: str | torch.device | None) -> torch.device:
    """Find the device of this name (ValueError if it is not here); for None the best there is."""
    try:
        device = torch.device(device or torch.accelerator.current_accelerator(True) or "cpu")
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:  # torch has both for what it lacks
        reason = str(error).partition("\n")[0].partition(". ")[0]
        raise ValueError(f"device {device!r} cannot be used here: {reason}") from error
