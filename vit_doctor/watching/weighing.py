"""How scores become weights, and what is written down where these mix the values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .places import here, inside
from .records import Attention, Label, whole
from .words import MINUS, OVER

STEPS = {
    ("scores", "softmax"): "weights",
    ("scores", "log_softmax"): "logs",
    ("scores", "logsumexp"): "total",
    ("scores", "exp"): "powers",
    ("scores", "exp_"): "powers",
    ("powers", "sum"): "total",
    ("powers", "normalize"): "weights",
    ("logs", "exp"): "weights",
    ("logs", "exp_"): "weights",
}


def step(name: str, kind: str, other: str, narrow: bool) -> str:
    """What a function makes of scores on their way to weights; "" where it is no step of a softmax.

    Args:
        name: of the function.
        kind: of the label of its first tensor.
        other: of the label of its second, "" for none.
        narrow: whether the second has one number a row, such as the largest of a row.
    """
    if kind == "scores" and name in MINUS and narrow:  # shifts a row, and changes no weight
        return "logs" if other == "total" else "scores"
    if kind == "powers" and name in OVER and other == "total":
        return "weights"
    return STEPS.get((kind, name), "")


def by_hand(x: Tensor, label: Label, axis: int, known: dict[int, str]) -> Attention:
    """Attention of weights that a product has just mixed the values with, summed over `axis`."""
    weights = (x if label.before is None else label.before).detach().float()
    sums = weights.sum(axis)
    axes = [i for i in range(1, x.ndim) if x.shape[i] > 1 and i - x.ndim != axis and i != axis]
    other = any(whole(weights.sum(i), sums, label.factor, x.dtype) for i in axes)
    plain = weights / label.factor if label.factor else weights
    return Attention(
        x.shape[axis],
        label.where,
        label.scale * math.sqrt(label.width) if label.sure else None,
        label.width,
        (float(sums.min()), float(sums.max())),
        label.factor,
        other,
        float(plain.amax(axis).mean()),
        float(plain.std()) * x.shape[axis],
        label.plain,
        inside(known),
    )


def fused(
    qkv: Sequence[Tensor],
    labels: Sequence[Label | None],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    known: dict[int, str],
) -> Attention:
    """Attention of torch's fused function; its weights are computed anew, for one image."""
    q, k, _ = qkv
    width = q.shape[-1]
    scale = kwargs.get("scale")
    scale = width**-0.5 if scale is None else float(scale)
    ratio = None
    if all(label and label.kind == "linear" and label.sure for label in labels):
        ratio = scale * math.prod(label.factor for label in labels if label) * width**0.5
    seen = Attention(k.shape[-2], here(known), ratio, width, module=inside(known))
    masked = kwargs.get("attn_mask") is not None or (len(args) > 3 and args[3] is not None)
    masked = masked or bool(kwargs.get("is_causal") or (len(args) > 5 and args[5]))
    plain = not masked and all(label and label.kind == "linear" for label in labels)
    seen = replace(seen, plain=plain)
    if masked or q.shape[:-2] != k.shape[:-2]:
        return seen
    with torch.no_grad():
        weights = (q[:1].float() @ k[:1].float().mT * scale).softmax(-1)
    largest, spread = weights.amax(-1).mean(), weights.std() * k.shape[-2]
    return replace(seen, largest=float(largest), spread=float(spread))
