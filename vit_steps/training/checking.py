"""Lesson 07: what stands in the way of a training, said in a sentence before its first step."""

from inspect import Parameter, signature
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ..inputs import kind_of


def check_settings(model: nn.Module, learns: bool = False) -> None:
    """Refuse, by a ValueError, settings of torch's and of a model that stand in the way."""
    weights, device = [*model.parameters()], torch.get_default_device()
    if device.type != "cpu":
        problem = f"torch's default device is {device}, but batches are drawn by it"
        raise ValueError(f"{problem}; call torch.set_default_device('cpu')")
    if any(weight.is_meta for weight in weights):
        raise ValueError("weights are on meta, where no numbers are; make the model elsewhere")
    if learns and (torch.is_inference_mode_enabled() or any(w.is_inference() for w in weights)):
        raise ValueError("nothing learns in torch.inference_mode; make and train the model outside")
    if learns and not torch.is_grad_enabled():
        advice = "call torch.set_grad_enabled(True), or leave torch.no_grad"
        raise ValueError(f"gradients are switched off, so nothing would learn; {advice}")


def check_optimizer(optimizer: Optimizer, model: nn.Module) -> list[Tensor]:
    """Give the weights that learn; ValueError for none, others, and steps that need a closure."""
    learning = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    if not learning:
        raise ValueError("every weight is frozen; let some learn: p.requires_grad_(True)")
    if not {*learning} <= {*model.parameters()}:
        raise ValueError("the optimizer holds other weights than the model; make it of these")
    closure = signature(type(optimizer).step).parameters.get("closure")
    if closure is not None and closure.default is Parameter.empty:
        name = type(optimizer).__name__
        raise ValueError(f"{name} asks for a closure at each step; give AdamW, SGD or the like")
    return learning


def logits_of(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Give the logits (B, classes) of a batch; a TypeError or ValueError where they are none."""
    default = torch.get_default_dtype()
    if default != torch.float32 and images.dtype not in {p.dtype for p in model.parameters()}:
        problem = f"torch's default dtype is {default}, and the images are {images.dtype}"
        advice = "call torch.set_default_dtype(torch.float32) first"
        raise TypeError(f"{problem}, not what the model is; {advice}")
    logits = model(images)
    if not isinstance(logits, Tensor):
        advice = "wrap it in a module whose forward gives them, such as model(images).logits"
        raise TypeError(f"the model gives {kind_of(logits)}, not logits (B, classes); {advice}")
    if logits.ndim != 2 or len(logits) != len(labels):
        shape = tuple(logits.shape)
        raise ValueError(f"the model gives {shape} for {len(labels)} images; give (B, classes)")
    return logits


def check_classes(model: Any, train: tuple[str, ...], val: tuple[str, ...]) -> int | None:
    """Count the model's logits by its head or its config; None where neither tells.

    ValueError for parts of other classes, and for more or fewer of them than logits.
    """
    if train and val and train != val:
        raise ValueError(f"train has the classes {train}, val {val}")
    model, n = getattr(model, "_orig_mod", model), len(train)
    logits = getattr(getattr(model, "config", None), "num_classes", None)
    logits = getattr(getattr(model, "head", None), "out_features", logits)
    if logits == 0:
        raise ValueError("the model has no head, so no logits; give it one by with_classes(n)")
    if train and logits not in (None, n):
        raise ValueError(
            f"the model gives {logits} logits for {n} classes; make it with num_classes={n}, or "
            f"give a trained one a new head by model.with_classes({n})"
        )
    return logits
