"""Watches a run of a model: its products, its softmax, and what becomes of them.

Each tensor of interest carries a label. A label passes through what only moves numbers (reshape,
transpose, slices) and through factors that are known; anything else drops it. So what is claimed
of a labelled tensor holds, and of the rest nothing is claimed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from . import functions
from .functions import tensors_in
from .layout import patches_made, scrambles
from .locations import current_location, current_module
from .meetings import Meetings
from .records import Attention, Label
from .softmax import attention_by_hand, attention_fused, raw_scores, softmax_step, summed_axes


@dataclass
class Watch(TorchFunctionMode):
    """Enter it, run the model, and read what was seen; lines are module path and line of code."""

    model: nn.Module
    module_paths: dict[int, str]
    attentions: list[Attention] = field(default_factory=list)
    used_tensors: set[int] = field(default_factory=set)
    unsoftened: list[str] = field(default_factory=list)  # where raw scores mix values all the same
    linear_pairs: list[str] = field(default_factory=list)  # where a linear map follows another
    activated_sums: list[str] = field(default_factory=list)  # where an activation meets tokens
    scrambled: list[str] = field(default_factory=list)  # where tokens are no patch each
    unused_masks: dict[int, tuple[Tensor, str]] = field(default_factory=dict)  # and their lines

    def __post_init__(self):
        super().__init__()
        self.labels: dict[int, tuple[Tensor, Label]] = {}
        self.softened: set[int] = set()  # scores of which a softmax was taken
        self.beside = Meetings(self.model)
        self.meetings = self.beside.found
        for name, parameter in self.model.named_parameters():
            self.put(parameter, Label("parameter", name=name))

    def put(self, x: Any, label: Label) -> None:
        """Label a tensor, or each of several."""
        for tensor in tensors_in([x], {}):
            self.labels[id(tensor)] = (tensor, label)

    def drop(self, x: Any) -> None:
        """Take the label off a tensor, if it has one."""
        self.labels.pop(id(x), None)

    def label(self, x: Any) -> Label | None:
        """Give the label of a tensor, if it has one."""
        return self.labels[id(x)][1] if isinstance(x, Tensor) and id(x) in self.labels else None

    def line(self) -> str:
        """Give the module path and line that run now."""
        return current_location(self.module_paths)

    def __torch_function__(self, func: Callable, types: Any, args: Any = (), kwargs: Any = None):
        """Run a function of torch, then look at what went in and came out."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        tensors = tensors_in(args, kwargs)
        # What a sum in place writes over is kept.
        before = tensors[0].detach().clone() if name in ("add_", "__iadd__") else None
        result = func(*args, **kwargs)
        self.used_tensors.update(map(id, tensors))
        for x in tensors:
            self.unused_masks.pop(id(x), None)
        # What the doctor does not understand it leaves without a label.
        try:
            self.see(name, func, args, kwargs, tensors, result, before)
        except (RuntimeError, ValueError, IndexError, TypeError, KeyError):
            self.drop(result)
        return result

    def see(self, name, func, args, kwargs, tensors, result, before) -> None:
        """Label what came out by what went in, and write down what meets."""
        first = tensors[0] if tensors else None
        old = self.label(first)
        kind = old.kind if old else ""
        if result is not first:
            self.drop(result)
        patches = patches_made(name, tensors, result) if isinstance(result, Tensor) else None
        grids = [(x, y.patches) for x in tensors if (y := self.label(x)) and y.patches is not None]
        if name in functions.TAKES and any(scrambles(x, grid) for x, grid in grids):
            self.scrambled.append(self.line())
        if patches is not None:
            self.put(result, Label("grid", patches=patches))
        elif name in functions.MOVES and old:
            undropped = old.undropped
            if undropped is not None:
                with torch.no_grad():
                    undropped = func(undropped, *args[1:], **kwargs)
            self.put(result, replace(old, undropped=undropped))
        elif old and self.softmax(name, tensors, old, result):
            return
        elif name in functions.TIMES or name in functions.OVER:
            self.scaled(name, args, kwargs, result)
        elif name in functions.PLUS:
            self.added(tensors, result, before)
        elif name in functions.MASKS and (scores := self.scores_in(tensors)):
            self.mask(*scores[0], result)
        elif name in functions.NORMS and kind == "linear":
            self.put(result, Label("linear", sure=False))
        elif name in functions.DROPOUT and old and kind in ("weights", "linear", "activated"):
            new = kind == "weights" and old.undropped is None
            self.put(result, replace(old, undropped=first if new else old.undropped))
        elif name in functions.ACTIVATIONS and kind == "linear":
            self.put(result, Label("activated"))
        elif name == "linear":
            self.linear(tensors[0], tensors[1], old, result)
        elif name == "embedding" and (table := self.label(tensors[1])):
            self.put(result, table)
        elif name in functions.JOINS:
            self.joined(tensors, result)
        elif name in (*functions.DROPOUT, "pad") and old and kind == "parameter":
            self.put(result, old)
        elif name in functions.PRODUCTS:
            self.product(name, args, tensors, result)
        elif name == "scaled_dot_product_attention":
            labels = [self.label(x) for x in tensors[:2]]
            fused = attention_fused(tensors[:3], labels, args, kwargs, self.module_paths)
            self.attentions.append(fused)
        elif name == "multi_head_attention_forward":
            module = current_module(self.module_paths)
            self.attentions.append(Attention(tensors[1].shape[0], self.line(), module=module))
        elif tensors and (result is first or name == "__setitem__"):
            self.beside.written(tensors, self.label(tensors[-1]), self.line())
            self.drop(first)  # changed in place by something else

    def scores_in(self, tensors: list[Tensor]) -> list[tuple[Tensor, Label]]:
        """Find the scores among some tensors, with their labels."""
        pairs = (self.labels.get(id(x)) for x in tensors)
        return [pair for pair in pairs if pair and pair[1].kind == "scores"]

    def softmax(self, name: str, tensors: list[Tensor], old: Label, result: Any) -> bool:
        """Label a step from scores to weights, at once or by hand; tell whether this was one."""
        x, other = tensors[0], tensors[1] if len(tensors) > 1 else None
        label = self.label(other)
        one_per_row = other is not None and 1 in other.shape[-2:]
        kind = softmax_step(name, old.kind, label.kind if label else "", one_per_row)
        if name == "sigmoid" and not (old.plain and old.sure):
            return False  # a bias makes up for what sigmoid lacks
        if name in ("softmax", "log_softmax") and kind:
            self.softened.add(id(x if kind == "weights" else result))
        if kind == "weights":
            line = self.line()
            how = "twice" if old.kind == kind else "sigmoid" if name == "sigmoid" else old.how
            scale = old.scale if how == "twice" else old.factor
            new = replace(old, kind=kind, factor=1.0, scale=scale, how=how)
            self.put(result, replace(new, where=line, undropped=None))
        elif kind:
            self.put(result, replace(old, kind=kind))
        return bool(kind)

    def mask(self, scores: Tensor, label: Label, result: Tensor) -> None:
        """Leave scores their label under a mask; note masked ones until something takes them."""
        self.put(result, replace(label, plain=False))
        if result is not scores:
            self.unused_masks[id(result)] = (result, self.line())

    def linear(self, x: Tensor, weight: Tensor, old: Label | None, result: Tensor) -> None:
        """Label what a linear map gives; write down one that narrows what another just widened."""
        outputs, inputs = weight.shape
        if old and old.width == inputs > outputs and x.ndim == 3:
            self.linear_pairs.append(self.line())
        self.put(result, Label("linear", width=outputs if outputs > inputs else 0))

    def scaled(self, name: str, args: Any, kwargs: Any, result: Any) -> None:
        """Keep the label of a product or quotient with a number; drop it for one with a tensor."""
        x, by, *_ = *args, *kwargs.values()
        if name in functions.TIMES and not self.label(x):
            x, by = by, x
        old = self.label(x)
        single = isinstance(by, (int, float)) or (isinstance(by, Tensor) and by.numel() == 1)
        if old is None or not single or old.kind in ("parameter", "grid"):
            self.drop(result)
            return
        learnt = isinstance(by, Tensor) and by.requires_grad
        factor = float(by) if name in functions.TIMES else 1 / float(by)
        undropped = None if old.undropped is None else old.undropped.detach() * factor
        sure = old.sure and not (learnt and old.kind != "weights")
        factor *= old.factor
        self.put(result, replace(old, factor=factor, sure=sure, undropped=undropped))

    def added(self, tensors: list[Tensor], result: Any, before: Tensor | None) -> None:
        """Keep the label of scores under a mask; note a parameter that is added to tokens.

        `before` is what the first tensor was, if the sum is written over it.
        """
        labels = [self.label(x) for x in tensors]
        kinds = [label.kind if label else "" for label in labels]
        alike = len({x.shape for x in tensors}) == 1 and tensors[0].ndim == 3
        if "activated" in kinds and "parameter" not in kinds and alike:
            self.activated_sums.append(self.line())
        for scores, label in self.scores_in(tensors):
            if scores.shape == result.shape:
                self.mask(scores, label, result)
                return
        if before is not None:
            tensors = [before, *tensors[1:]]
        self.beside.added(tensors, labels, result, self.line())
        if len(tensors) == 2:
            bias = tensors[1].ndim == 1 or tensors[1].numel() == result.shape[-1]
            if labels[0] and kinds[0] == "linear" and bias:
                self.put(result, labels[0])
                return
        self.drop(result)

    def joined(self, tensors: list[Tensor], result: Tensor) -> None:
        """Note a parameter that is concatenated to tokens; label what is made of parameters."""
        labels = [self.label(x) for x in tensors]
        if labels[0] and all(label and label.kind == "parameter" for label in labels):
            self.put(result, labels[0])
        else:
            self.beside.joined(tensors, labels, self.line())

    def product(self, name: str, args: Any, tensors: list[Tensor], result: Tensor) -> None:
        """Label what linear maps and scores give, and write down weights that mix values."""
        if len(tensors) != 2:
            return
        a, b = tensors
        axes = (-1, -2) if name != "einsum" else summed_axes(args[0])
        label, other = self.label(a), self.label(b)
        kinds = {x.kind for x in (label, other) if x}
        if axes is None or min(a.ndim, b.ndim) < 2:
            return
        if label and kinds == {"parameter"} and other:
            self.put(result, label)  # a weight that is made of two
        elif "parameter" in kinds:
            self.put(result, Label("linear"))
        elif {id(a), id(b)} & self.softened and kinds & {"scores", "logs"}:
            self.unsoftened.append(self.line())
        elif "weights" in kinds:
            weights, axis, values = a, axes[0], b
            if not label or label.kind != "weights":
                weights, label, axis, values = b, other, axes[1], a
            # Over another axis, or with one matrix for all, heads are mixed, and not values.
            if label and axis % weights.ndim >= weights.ndim - 2 and values.ndim >= weights.ndim:
                self.attentions.append(attention_by_hand(weights, label, axis, self.module_paths))
        elif label and other and raw_scores(a, b, label, other, axes):
            module, keys = current_module(self.module_paths), a.shape[-1]
            self.attentions.append(Attention(keys, self.line(), how="none", module=module))
        elif result.ndim >= 3 or kinds == {"linear"}:
            plain = bool(label and other and label.kind == other.kind == "linear")
            sure = plain and all(x.sure for x in (label, other) if x)
            factor = (label.factor if label else 1) * (other.factor if other else 1)
            width = a.shape[axes[0]]
            self.put(result, Label("scores", factor, width=width, sure=sure, plain=plain))
