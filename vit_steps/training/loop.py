"""Lesson 07: a training step, the measurement, and the loop around them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil, cos, pi
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Optimizer

from ..inputs import check_labels
from .checking import check_settings, logits_of
from .dataset import ImageDataset, Source, batches, checked


def train_step(
    model: nn.Module,
    optimizer: Optimizer,
    images: Tensor,
    labels: Tensor,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Show the model one batch, and move its weights a step against the gradient.

    Images are (B, C, H, W), labels (B,); `label_smoothing` is the share of the target that is
    spread over all classes (Szegedy et al. 2016, section 7). Gives the loss before the step, a
    scalar without a gradient.
    """
    loss = F.cross_entropy(model(images), labels, label_smoothing=label_smoothing)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch to evaluation mode without gradients; afterwards each module is in its old mode."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode


def evaluate(model: nn.Module, data: Source, batch_size: int | None = None) -> tuple[float, float]:
    """Measure the mean cross-entropy in nats, and the accuracy from 0 to 1, dropout off.

    The data are as `fit` takes them; `batch_size` images go through at once, None is 256, or the
    DataLoader's.
    """
    check_settings(model)
    loss = correct = torch.zeros((), device=next(model.parameters()).device)
    count = 0
    with evaluating(model):
        for images, labels in checked(batches(data, batch_size, usual=256)):
            logits = logits_of(model, images.to(loss.device), labels)
            check_labels(labels, *logits.shape)
            labels = labels.to(loss.device)
            loss = loss + F.cross_entropy(logits, labels, reduction="sum")
            correct = correct + (logits.argmax(dim=1) == labels).sum()
            count += len(labels)
    return loss.item() / count, correct.item() / count


def train(
    model: nn.Module,
    data: ImageDataset,
    epochs: int,
    lr: float = 2e-3,
    batch_size: int = 64,
    seed: int = 0,
    report: Callable[[int, list[float]], Any] | None = None,
) -> list[float]:
    """Train a model in place: the loop, plain. `fit` comes to the same weights, and does more.

    AdamW with a decay of 0.05 for `decay_groups`, warm-up over a tenth of the steps, then cosine.
    Gives the loss of each step; `report` is called after each epoch with its number from 1 and all
    losses so far. The seed is that of the images' order; for the rest see `fit`.
    """
    optimizer = torch.optim.AdamW(decay_groups(model, 0.05))
    steps, losses = epochs * ceil(len(data) / batch_size), []
    for epoch in range(epochs):
        order = torch.randperm(len(data), generator=torch.manual_seed(1_000_003 * seed + epoch))
        model.train()
        for batch in order.split(batch_size):
            for group in optimizer.param_groups:
                group["lr"] = lr * warmup_cosine(len(losses), steps, 0.1)
            images, labels = data[batch]
            losses.append(train_step(model, optimizer, images, labels).item())
        model.eval()
        if report is not None:
            report(epoch + 1, losses)
    return losses


def decay_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Put the parameters for AdamW into two groups: weights that decay, and all that should not.

    Only the matrices of Linears and convolutions decay. Norms, biases, the cls token and the
    positions do not: they are few, and a norm's scale belongs near 1, not 0. The number of axes
    alone would not tell them apart, since cls token and positions have three. Parameters that are
    frozen stand in neither group.
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
    """Give the learning rate's share of its peak: a straight rise, then half a cosine down to 0.

    The steps of the whole training count from 0 to `steps` - 1, and the rise takes the share
    `warmup` of them. The share is above 0, at most 1.
    """
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    return (1 + cos(pi * (step - rise) / (steps - rise))) / 2
