"""Lesson 07: the training loop, what makes it work, and training that outlives a crash.

`python -m vit_steps.training` is the same as a command; its options stand in command.py.
"""

import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from math import ceil, cos, inf, isfinite, pi
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import AdamW, Optimizer
from tqdm import tqdm

from .checkpoints import config_of, load_model, make_folder, resume, save_epoch, save_model
from .data import Images
from .inputs import check_fraction, check_images, check_sizes
from .vit import ViTConfig

__all__ = [
    "History",
    "augment_digits",
    "augment_photos",
    "batches",
    "decay_groups",
    "evaluate",
    "fit",
    "load_model",
    "save_model",
    "train_step",
    "warmup_cosine",
]


@dataclass
class History:
    """What `fit` measured, one number an epoch.

    Args:
        train_loss: mean loss of the training steps, under augmentation and label smoothing.
        test_loss: mean cross-entropy of the test images after the epoch, in nats.
        test_accuracy: share of the test images named rightly after the epoch, from 0 to 1.
        learning_rate: that of the epoch's last step.
    """

    train_loss: list[float] = field(default_factory=list)
    test_loss: list[float] = field(default_factory=list)
    test_accuracy: list[float] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        """The number of finished epochs."""
        return len(self.test_accuracy)

    def add(self, train_loss: float, test_loss: float, test_accuracy: float, rate: float) -> None:
        """Add an epoch."""
        self.train_loss.append(train_loss)
        self.test_loss.append(test_loss)
        self.test_accuracy.append(test_accuracy)
        self.learning_rate.append(rate)

    @property
    def best(self) -> int:
        """The epoch of the highest test accuracy, from 1; of several, that of the lowest loss."""
        score = [(a, -loss) for a, loss in zip(self.test_accuracy, self.test_loss, strict=True)]
        return 1 + score.index(max(score))


def train_step(
    model: nn.Module,
    optimizer: Optimizer,
    images: Tensor,
    labels: Tensor,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Show the model one batch, and move its weights a step against the gradient.

    Args:
        images: (B, C, H, W).
        labels: (B,), whole numbers.
        label_smoothing: share of the target that is spread over all classes (Szegedy et al. 2016,
            section 7).

    Returns:
        The loss before the step, a scalar without a gradient.
    """
    loss = F.cross_entropy(model(images), labels, label_smoothing=label_smoothing)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


@torch.no_grad()
def evaluate(model: nn.Module, data: Images, batch_size: int = 256) -> tuple[float, float]:
    """How well the model does on data that it does not learn from, dropout off.

    Args:
        data: `Images`; moved to the model's device batch by batch.
        batch_size: how many images go through at once.

    Returns:
        The mean cross-entropy in nats, and the accuracy from 0 to 1.
    """
    check_sizes(batch_size=batch_size)
    device, was_training = next(model.parameters()).device, model.training
    model.eval()
    loss = right = torch.zeros((), device=device)
    for images, labels in zip(
        data.images.split(batch_size), data.labels.split(batch_size), strict=True
    ):
        labels = labels.to(device)
        logits = model(images.to(device))  # (B, classes)
        loss = loss + F.cross_entropy(logits, labels, reduction="sum")
        right = right + (logits.argmax(dim=1) == labels).sum()
    model.train(was_training)
    return loss.item() / len(data), right.item() / len(data)


def decay_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Parameters for AdamW in two groups: weights that decay, and all that should not.

    Only the matrices of Linears and convolutions decay. Norms, biases, the cls token and the
    positions do not: they are few, and a norm's scale belongs near 1, not 0. The number of axes
    alone would not tell them apart, since cls token and positions have three.

    Returns:
        Two dicts with "params" and "weight_decay"; parameters that are frozen stand in neither.
    """
    decayed, others = [], []
    for name, p in model.named_parameters():
        if p.requires_grad:
            (decayed if name.endswith("weight") and p.ndim > 1 else others).append(p)
    return [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]


def warmup_cosine(step: int, steps: int, warmup: float) -> float:
    """The learning rate's share of its peak: a straight rise, then half a cosine down to 0.

    Args:
        step: from 0 to steps - 1.
        steps: of the whole training.
        warmup: share of the steps that the rise takes.

    Returns:
        Above 0, at most 1.
    """
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    return (1 + cos(pi * (step - rise) / (steps - rise))) / 2


def augment_digits(images: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Turn each image by up to 10°, scale it by up to 5%, shift it by up to 3% of its sides.

    Args:
        images: (B, C, H, W), normalised so that -1 is the background.
        generator: where the random numbers come from; None means torch's own.

    Returns:
        (B, C, H, W), resampled (bilinear); what comes in from outside is background.
    """
    check_images(images)
    random = torch.rand(4, len(images), generator=generator) * 2 - 1
    angle, scale, right, down = random  # each (B,), from -1 to 1
    angle, scale, right, down = angle * 10 * pi / 180, 1 + scale * 0.05, right * 0.06, down * 0.06
    cos_, sin_ = scale * angle.cos(), scale * angle.sin()
    rows = [cos_, -sin_, right, sin_, cos_, down]  # a side is 2 long
    return resample(images + 1, rows) - 1  # background is 0 while it is resampled


def augment_photos(images: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Mirror half of the images, left to right, and zoom into each by up to 30%, anywhere.

    Args:
        images: (B, C, H, W).
        generator: where the random numbers come from; None means torch's own.

    Returns:
        (B, C, H, W), resampled (bilinear); nothing comes in from outside.
    """
    check_images(images)
    mirror, zoom, right, down = torch.rand(4, len(images), generator=generator)  # each (B,)
    side = 1 - 0.3 * zoom  # of the part that is kept
    right, down = (1 - side) * (2 * right - 1), (1 - side) * (2 * down - 1)
    none = torch.zeros(len(images))
    return resample(images, [side * (mirror - 0.5).sign(), none, right, none, side, down])


def resample(images: Tensor, rows: list[Tensor]) -> Tensor:
    """Where each pixel of the result looks in its image, as a 2×3 matrix, row by row, each (B,).

    The image's sides run from -1 to 1; outside it is 0.
    """
    theta = torch.stack(rows, dim=1).view(-1, 2, 3).to(images)
    grid = F.affine_grid(theta, list(images.shape), align_corners=False)  # (B, H, W, 2)
    return F.grid_sample(images, grid, align_corners=False)


def batches(
    data: Images,
    batch_size: int,
    generator: torch.Generator,
    augment: Callable[[Tensor, torch.Generator], Tensor] | None = None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Each image once, in a new order, augmented: pairs of images (B, C, H, W) and labels (B,).

    Args:
        data: what to draw from.
        batch_size: B; the last batch holds what is left.
        generator: where order and augmentation come from.
        augment: changes the images of a batch, such as `augment_digits`.
    """
    order = torch.randperm(len(data), generator=generator)
    for part in order.split(batch_size):
        images = data.images[part]
        yield augment(images, generator) if augment else images, data.labels[part]


# The whole training ------------------------------------------------------------------------------


def fit(
    model: nn.Module,
    train: Images,
    test: Images,
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
) -> History:
    """Train a model in place, by AdamW with warm-up and cosine, and measure it after each epoch.

    With a folder, each epoch ends with a checkpoint, `last.safetensors`, and the best epoch's
    weights are kept as `best.safetensors`; `load_model` reads both. The same call again goes on
    from there, and ends with the weights of a training that was never stopped, bit for bit (on a
    CPU with as many threads; a GPU may differ in the last bits).

    Ctrl-C, a notebook's stop button, ends it early: the history so far is returned, the model
    keeps what it learned up to that moment, and the folder holds the last finished epoch.

    Args:
        model: a ViT, or anything that turns images (B, C, H, W) into logits. It comes back to the
            device where it was, in evaluation mode, ready to be used.
        train, test: what it learns from, and what it is measured on.
        epochs: how often it sees each training image.
        batch_size: images in a step; an epoch's last step has what is left.
        lr: the highest learning rate.
        weight_decay: for the weights that decay, see `decay_groups`.
        warmup: share of all steps in which the learning rate rises, see `warmup_cosine`.
        label_smoothing: see `train_step`.
        augment: changes a batch of training images, such as `augment_digits`; it must draw its
            random numbers from the generator that it is given.
        seed: of the order, the augmentation and dropout; not of the model's first weights, which
            are there already. Torch's global generator is seeded anew at each epoch.
        device: where to train; None takes CUDA or MPS where there is one, else the CPU.
        folder: where the checkpoints go; it is made if it is not there.
        progress: show a bar.
        report: called with the history after each epoch, once it is saved.

    Raises:
        TypeError: a value of the wrong kind; a folder, but a model without a `ViTConfig`.
        ValueError: a value out of its range, data that do not fit together or to the model, a
            folder that holds another model's or another run's checkpoint, or that cannot be
            written, or a loss that is no longer a number.
    """
    check_sizes(epochs=epochs, batch_size=batch_size)
    check_fraction(warmup=warmup, label_smoothing=label_smoothing)
    check_training(model, train, test, lr, weight_decay, seed)
    home, device = next(model.parameters()).device, pick_device(device)
    steps_an_epoch = ceil(len(train) / batch_size)
    steps = epochs * steps_an_epoch
    history, run = History(), {}
    try:
        optimizer = AdamW(decay_groups(model.to(device), weight_decay), lr=lr, fused=True)
        if folder is not None:
            folder = make_folder(folder)
            run = config_of(model) | dict(
                epochs=epochs,
                batch_size=batch_size,
                lr=lr,
                weight_decay=weight_decay,
                warmup=warmup,
                label_smoothing=label_smoothing,
                augment=augment and getattr(augment, "__name__", type(augment).__name__),
                seed=seed,
                train=fingerprint(train),
                test=fingerprint(test),
            )
            history = History(**resume(folder, model, optimizer, run))
        step = len(history) * steps_an_epoch
        with tqdm(total=steps, initial=step, unit="step", disable=not progress) as bar:
            for epoch in range(len(history), epochs):
                bar.set_description(f"epoch {epoch + 1}/{epochs}")
                # A seed for each epoch: order, augmentation and dropout are the same, whether the
                # training was stopped before it or not.
                generator = torch.manual_seed(1_000_003 * seed + epoch)
                total, rate = torch.zeros((), device=device), lr
                model.train()
                for images, labels in batches(train, batch_size, generator, augment):
                    rate = lr * warmup_cosine(step, steps, warmup)
                    for group in optimizer.param_groups:
                        group["lr"] = rate
                    images, labels = images.to(device), labels.to(device)
                    loss = train_step(model, optimizer, images, labels, label_smoothing)
                    total += loss * len(labels)
                    step += 1
                    bar.update()
                history.add(total.item() / len(train), *evaluate(model, test), rate)
                check_loss(history, lr)
                if folder is not None:
                    best = history.best == len(history)
                    save_epoch(
                        folder, model, optimizer, {"run": run, "history": asdict(history)}, best
                    )
                bar.set_postfix(accuracy=f"{history.test_accuracy[-1]:.1%}")
                if report is not None:
                    report(history)
    except KeyboardInterrupt:
        pass  # as documented: what was done so far counts
    finally:
        model.to(home).eval()
    return history


def check_loss(history: History, lr: float) -> None:
    """Refuse to go on when the loss is no longer a number."""
    if not isfinite(history.train_loss[-1]):
        raise ValueError(
            f"the loss of epoch {len(history)} is {history.train_loss[-1]}: the learning rate {lr} "
            "is too high, or an image holds something that is not a number"
        )


def check_training(
    model: nn.Module, train: Images, test: Images, lr: float, weight_decay: float, seed: int
) -> None:
    """Refuse data that do not belong together or to the model, and rates that cannot work."""
    if train.classes != test.classes:
        raise ValueError(f"train has the classes {train.classes}, test {test.classes}")
    config = getattr(model, "config", None)
    if isinstance(config, ViTConfig) and config.num_classes != len(train.classes):
        raise ValueError(
            f"the model gives {config.num_classes} logits for {len(train.classes)} classes; make "
            f"it with num_classes={len(train.classes)}"
        )
    for name, value in (("lr", lr), ("weight_decay", weight_decay)):
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise TypeError(f"{name} is {value!r}; give a number")
        if not 0 <= value < inf:
            raise ValueError(f"{name} is {value}; give a number of at least 0")
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise TypeError(f"seed is {seed!r}; give a whole number")
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed is {seed}; give one from 0 to {2**32 - 1}")


def fingerprint(data: Images) -> str:
    """The number of images and a sum over all their bytes, so that other data are noticed."""
    total = 0
    for tensor in (data.images, data.labels):
        total = zlib.crc32(tensor.cpu().contiguous().view(torch.uint8).numpy().data, total)
    return f"{len(data)} images, sum {total:08x}"


def pick_device(device: str | torch.device | None) -> torch.device:
    """The device by its name; for None CUDA or MPS where there is one, else the CPU.

    Raises:
        ValueError: there is no such device here.
    """
    if device is None:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:  # torch has both for what it lacks
        reason = str(error).partition("\n")[0]
        raise ValueError(f"device {device!r} cannot be used here: {reason}") from error


if __name__ == "__main__":
    from .command import main

    sys.exit(main())
