"""Lesson 07: what learns: a model, what moves its weights, and a running mean of them."""

from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import AdamW, Optimizer

from .devices import autocast, make_scaler
from .loop import decay_groups
from .processes import my_share, total, wrap


class Learner:
    """What a checkpoint holds besides the history, of a model on its device and `fit`'s options.

    ValueError where the optimizer moves other weights than the model's.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer | None,
        lr: float,
        weight_decay: float,
        label_smoothing: float = 0.0,
        clip: float | None = None,
        average: float | None = None,
        amp: bool = False,
    ):
        if optimizer is None:
            optimizer = AdamW(decay_groups(model, weight_decay), lr=lr, fused=True)
        self.moved = [p for group in optimizer.param_groups for p in group["params"]]
        if not {*self.moved} <= {*model.parameters()}:
            raise ValueError("the optimizer holds other weights than the model; make it of these")
        self.model, self.wrapped, self.optimizer = model, wrap(model), optimizer
        self.label_smoothing, self.clip, self.amp = label_smoothing, clip, amp
        self.peaks = [group["lr"] for group in optimizer.param_groups]
        self.scaler = make_scaler(self.moved[0].device, amp)
        self.average, self.averaged = average, 0  # how much is kept at most, and how many steps
        self.measured = model if average is None else deepcopy(model)  # and saved
        states = (one.state_dict().values() for one in (self.measured, model))
        self.pairs = [*zip(*states, strict=True)]  # of the mean, and of now

    def step(self, images: Tensor, labels: Tensor) -> Tensor:
        """As `train_step`, for this process's share of a batch; all take the step of the whole.

        Shares differ in size where a batch does not divide evenly. The gradients' average is that
        of the whole batch only if each counts by its share. One process alone has weight 1.
        """
        mine = torch.tensor(float(len(labels)), device=labels.device)
        weight = mine * my_share()[1] / total(mine)
        if not len(labels):  # all must take part: one black image, which counts nothing
            images, labels = (part.new_zeros(1, *part.shape[1:]) for part in (images, labels))
        with autocast(images.device, self.amp):
            logits = self.wrapped(images)
        if self.amp:
            logits = logits.float()
        loss = F.cross_entropy(logits, labels, label_smoothing=self.label_smoothing)
        self.model.zero_grad()
        self.scaler.scale(loss * weight).backward()
        if self.clip is not None:
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.moved, self.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.average is not None:
            # So that it soon forgets the weights in which nothing was learned, as in TensorFlow.
            kept = min(self.average, (1 + self.averaged) / (10 + self.averaged))
            for mean, now in self.pairs:
                mean.lerp_(now, 1 - kept) if mean.is_floating_point() else mean.copy_(now)
            self.averaged += 1
        return loss.detach()

    def close(self) -> None:
        """Leave the mean in the model, and the optimizer as it came."""
        self.model.load_state_dict(self.measured.state_dict())
        for group, peak in zip(self.optimizer.param_groups, self.peaks, strict=True):
            group["lr"] = peak
