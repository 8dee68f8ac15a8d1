"""Lesson 07: what learns: a model, what moves its weights, and a running mean of them."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from .devices import make_scaler
from .loop import decay_groups
from .processes import shared_step


@dataclass(eq=False)
class Learner:
    """What a checkpoint holds besides the history.

    Args:
        model: on the device.
        optimizer: of its weights.
        peaks: the highest learning rate of each of the optimizer's groups.
        scaler, amp: see `vit_steps.training.devices`.
        mean: a running mean of the weights, or None.
        hook: has each step bring the mean on; or None.
    """

    model: nn.Module
    optimizer: Optimizer
    peaks: list[float]
    scaler: torch.amp.GradScaler
    amp: bool
    mean: AveragedModel | None = None
    hook: Any = None

    @classmethod
    def of(
        cls,
        model: nn.Module,
        optimizer: Optimizer | None,
        lr: float,
        weight_decay: float,
        average: float | None,
        amp: bool,
    ) -> "Learner":
        """The learner of `fit`; ValueError where the optimizer moves other weights."""
        if optimizer is None:
            optimizer = AdamW(decay_groups(model, weight_decay), lr=lr, fused=True)
        moved = {p for group in optimizer.param_groups for p in group["params"]}
        if not moved <= {*model.parameters()}:
            raise ValueError("the optimizer holds other weights than the model; make it of these")
        peaks = [group["lr"] for group in optimizer.param_groups]
        scaler = make_scaler(next(model.parameters()).device, amp)
        learner = cls(model, optimizer, peaks, scaler, amp)
        if average is not None:
            learner.mean = mean = running_mean(model, average)
            learner.hook = optimizer.register_step_post_hook(
                lambda *_: mean.update_parameters(model)
            )
        return learner

    @property
    def measured(self) -> nn.Module:
        """The model that is measured and saved: the running mean's, where there is one."""
        return self.model if self.mean is None else self.mean.module

    def step(self, wrapped: nn.Module, images: Tensor, labels: Tensor, **options: Any) -> Tensor:
        """`shared_step` of this model, as `processes.wrap` gives it."""
        known: Any = dict(scaler=self.scaler, amp=self.amp, **options)
        return shared_step(wrapped, self.optimizer, images, labels, **known)

    def close(self) -> None:
        """Leave the mean in the model, and the optimizer as it came."""
        if self.mean is not None:
            self.hook.remove()
            self.model.load_state_dict(self.mean.module.state_dict())
        for group, peak in zip(self.optimizer.param_groups, self.peaks, strict=True):
            group["lr"] = peak


def running_mean(model: nn.Module, most: float) -> AveragedModel:
    """A mean that keeps (1 + n) / (10 + n) of itself at step n, but never more than `most`.

    So it soon forgets the weights that nothing was learned in, as in TensorFlow's moving average.
    """

    def mix(means: Any, now: Any, count: Any) -> None:
        n = count.item()
        get_ema_multi_avg_fn(min(most, (1 + n) / (10 + n)))(means, now, count)

    return AveragedModel(model, multi_avg_fn=mix)
