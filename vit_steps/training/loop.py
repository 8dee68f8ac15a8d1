"""Lesson 07: the pieces of the training loop, and what makes it work."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil, cos, pi
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Optimizer

from ..inputs import check_labels
from .dataset import ImageDataset
from .devices import autocast
from .loader import Batches, Source
from .processes import my_share, totals

EVALUATED = 256  # images at once where nothing is learned


@dataclass
class History:
    """What `fit` measured, one number an epoch.

    Args:
        train_loss: mean loss of the training steps, under augmentation and label smoothing.
        val_loss: mean cross-entropy of val's images after the epoch, in nats; empty without val.
        val_accuracy: share of val's images named rightly after the epoch, from 0 to 1.
        learning_rate: that of the epoch's last step.
    """

    train_loss: list[float] = field(default_factory=list)
    val_loss: list[float] = field(default_factory=list)
    val_accuracy: list[float] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        """The number of finished epochs."""
        return len(self.train_loss)

    @property
    def best(self) -> int:
        """The epoch of the highest accuracy on val, from 1; of several, that of the lowest loss.

        Without val it is the last.
        """
        if not self.val_accuracy:
            return len(self)
        score = [(a, -loss) for a, loss in zip(self.val_accuracy, self.val_loss, strict=True)]
        return 1 + score.index(max(score))


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

    Args:
        data: images (n, C, H, W) and labels, as of `vit_steps.training.data`.
        lr: the highest learning rate.
        seed: of the order of the images.
        report: called after each epoch, with its number from 1 and all losses so far.

    Returns:
        The loss of each step. The model is in evaluation mode afterwards.
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


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode and no gradients within; each module is in the mode it was in afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode


def answers(
    model: nn.Module, data: Source | Batches, batch_size: int | None = None, amp: bool = False
) -> Iterator[tuple[Tensor, Tensor]]:
    """For each batch of this process the logits (B, classes) and labels (B,); B may be 0."""
    device = next(model.parameters()).device
    if not isinstance(data, Batches):
        data = Batches(data, batch_size, device, my_share(), usual=EVALUATED)
    for images, labels in data():
        if not len(labels):  # a black image, which tells how many logits there are
            images = images.new_zeros(1, *images.shape[1:])
        with autocast(device, amp):
            logits = model(images)[: len(labels)].float()
        if len(labels):
            check_labels(labels, *logits.shape)
        yield logits, labels


def evaluate(
    model: nn.Module, data: Source | Batches, batch_size: int | None = None, amp: bool = False
) -> tuple[float, float]:
    """The mean cross-entropy in nats, and the accuracy from 0 to 1, dropout off.

    Where several processes train together all must call it: each measures its share.

    Args:
        data: as `fit` takes them; moved to the model's device batch by batch.
        batch_size: how many images go through at once; None is 256, or the DataLoader's.
        amp: in mixed precision.
    """
    loss = right = torch.zeros((), device=next(model.parameters()).device)
    seen = 0
    with evaluating(model):
        for logits, labels in answers(model, data, batch_size, amp):
            loss = loss + F.cross_entropy(logits, labels, reduction="sum")
            right = right + (logits.argmax(dim=1) == labels).sum()
            seen += len(labels)
    loss, right, seen = totals(loss.item(), right.item(), seen)
    return loss / seen, right / seen


def decay_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Parameters for AdamW in two groups: weights that decay, and all that should not.

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
    """The learning rate's share of its peak: a straight rise, then half a cosine down to 0.

    The steps of the whole training count from 0 to `steps` - 1, and the rise takes the share
    `warmup` of them. Gives a number above 0, at most 1.
    """
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    return (1 + cos(pi * (step - rise) / (steps - rise))) / 2
