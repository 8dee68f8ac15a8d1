"""How scores become weights, and what is written down where these mix the values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .functions import MINUS, OVER
from .locations import current_location, current_module
from .records import Attention, Label

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
    # By mistake: twice, or each score for itself.
    ("weights", "softmax"): "weights",
    ("scores", "sigmoid"): "weights",
}


def softmax_step(name: str, kind: str, other: str, one_per_row: bool) -> str:
    """Say what a function makes of scores on their way to weights; "" if it is no such step.

    `kind` is that of the label of its first tensor, `other` of its second, of which `one_per_row`
    says whether it has one number a row, such as the largest of a row.
    """
    if kind == "scores" and name in MINUS and one_per_row:  # shifts a row, and changes no weight
        return "logs" if other == "total" else "scores"
    if kind == "powers" and name in OVER and other == "total":
        return "weights"
    return STEPS.get((kind, name), "")


def attention_by_hand(
    x: Tensor, label: Label, axis: int, module_paths: dict[int, str]
) -> Attention:
    """Describe attention whose weights a product has just mixed the values with, over `axis`."""
    weights = (x if label.undropped is None else label.undropped).detach().float()
    sums = weights.sum(axis)
    axis %= x.ndim
    first = min(1, x.ndim - 2)  # where there is one image, no axis is the batch's
    others = [i for i in range(first, x.ndim) if x.shape[i] > 1 and i != axis]
    several = [(i, axis) for i in others] + [(*others, axis)] if others else []

    summed = [(i, weights.sum(i)) for i in (*others, *several)]
    other = [i for i, total in summed if only_first_is(label.factor, total, sums, x.dtype)]
    unscaled = weights / label.factor if label.factor else weights
    return Attention(
        keys=x.shape[axis],
        where=label.where,
        ratio=label.scale * math.sqrt(label.width) if label.sure else None,
        width=label.width,
        sums=(float(sums.min()), float(sums.max())),
        factor=label.factor,
        other_axis="" if not other else "another" if other[0] in others else "several",
        how=label.how,
        largest=float(unscaled.amax(axis).mean()),
        spread=float(unscaled.std()) * x.shape[axis],
        plain=label.plain,
        module=current_module(module_paths),
    )


def only_first_is(number: float, sums: Tensor, others: Tensor, dtype: torch.dtype) -> bool:
    """Tell whether these sums are this number and the others are not, as a softmax leaves them.

    It is exact to rounding: 1e-5 against 1e-4 off; 1% against 5% in half precision.
    """
    fine = dtype in (torch.float32, torch.float64)
    near, far = (1e-5, 1e-4) if fine else (0.01, 0.05)
    off, others_off = (float((x - number).abs().max()) for x in (sums, others))
    return off <= near * abs(number) and others_off > far * abs(number)


def attention_fused(
    qkv: Sequence[Tensor],
    labels: Sequence[Label | None],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    module_paths: dict[int, str],
) -> Attention:
    """Describe attention of torch's fused function; compute its weights anew, for one image."""
    q, k, _ = qkv
    keys, width = k.shape[-2:]
    scale = kwargs.get("scale")
    scale = width**-0.5 if scale is None else float(scale)
    linear = [label for label in labels if label and label.kind == "linear"]
    plain = len(linear) == len(labels)
    sure = plain and all(label.sure for label in linear)
    ratio = scale * math.prod(label.factor for label in linear) * width**0.5 if sure else None
    masked = kwargs.get("attn_mask") is not None or (len(args) > 3 and args[3] is not None)
    masked = masked or bool(kwargs.get("is_causal") or (len(args) > 5 and args[5]))
    where, module = current_location(module_paths), current_module(module_paths)
    attention = Attention(keys, where, ratio, width, plain=plain and not masked, module=module)
    if masked or q.shape[:-2] != k.shape[:-2]:
        return attention
    with torch.no_grad():
        weights = (q[:1].float() @ k[:1].float().mT * scale).softmax(-1)
    largest, spread = weights.amax(-1).mean(), weights.std() * keys
    return replace(attention, largest=float(largest), spread=float(spread))


def raw_scores(
    scores: Tensor, values: Tensor, label: Label, other: Label, axes: tuple[int, int]
) -> bool:
    """Tell whether scores that were scaled by 1/√width mix values as they are."""
    kinds = label.kind == "scores" and other.kind == "linear"
    sides = scores.shape[-2:] == (values.shape[-2],) * 2 and values.shape[-2] != label.width
    over_keys = axes[0] % scores.ndim == scores.ndim - 1
    scaled = 0.8 < abs(label.factor) * math.sqrt(label.width) < 1.25
    return kinds and sides and over_keys and label.sure and label.plain and scaled


def summed_axes(equation: Any) -> tuple[int, int] | None:
    """Give the axes of two operands that an einsum sums over, if there is one such pair."""
    if not isinstance(equation, str):
        return None
    inputs, _, result = equation.replace(" ", "").partition("->")
    first, second = inputs.split(",")
    if "->" not in equation:  # then what stands once is kept
        result = "".join(c for c in first + second if inputs.count(c) == 1)
    letters = [c for c in first if c.isalpha() and c in second and c not in result]
    if len(letters) != 1:
        return None

    def axis(term: str) -> int:
        head = term.partition("...")[0]
        at = term.index(letters[0])
        return at - len(term) if "..." not in term or at >= len(head) else at

    return axis(first), axis(second)
