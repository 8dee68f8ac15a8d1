"""Lesson 07: what learns: a model, what moves its weights, and a running mean of them."""

from copy import deepcopy
from typing import Any

from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from .devices import make_scaler
from .loop import decay_groups
from .processes import shared_step


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
        average: float | None,
        amp: bool,
    ):
        if optimizer is None:
            optimizer = AdamW(decay_groups(model, weight_decay), lr=lr, fused=True)
        moved = {p for group in optimizer.param_groups for p in group["params"]}
        if not moved <= {*model.parameters()}:
            raise ValueError("the optimizer holds other weights than the model; make it of these")
        self.model, self.optimizer, self.amp = model, optimizer, amp
        self.peaks = [group["lr"] for group in optimizer.param_groups]
        self.scaler = make_scaler(next(model.parameters()).device, amp)
        self.average, self.averaged = average, 0  # how much is kept at most, and how many steps
        self.measured = model if average is None else deepcopy(model)  # and saved
        states = (one.state_dict().values() for one in (self.measured, model))
        self.pairs = [*zip(*states, strict=True)]  # of the mean, and of now

    def step(
        self,
        wrapped: nn.Module,
        label_smoothing: float,
        clip: float | None,
        images: Tensor,
        labels: Tensor,
    ) -> Tensor:
        """`shared_step` of this model, as `processes.wrap` gives it."""
        known: Any = dict(scaler=self.scaler, amp=self.amp, clip=clip)
        loss = shared_step(wrapped, self.optimizer, images, labels, label_smoothing, **known)
        if self.average is not None:
            # So that it soon forgets the weights in which nothing was learned, as in TensorFlow.
            kept = min(self.average, (1 + self.averaged) / (10 + self.averaged))
            for mean, now in self.pairs:
                mean.lerp_(now, 1 - kept) if mean.is_floating_point() else mean.copy_(now)
            self.averaged += 1
        return loss

    def close(self) -> None:
        """Leave the mean in the model, and the optimizer as it came."""
        self.model.load_state_dict(self.measured.state_dict())
        for group, peak in zip(self.optimizer.param_groups, self.peaks, strict=True):
            group["lr"] = peak
