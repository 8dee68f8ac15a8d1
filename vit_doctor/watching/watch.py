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

from .places import here, inside
from .records import Attention, Label, Meeting, summed
from .weighing import by_hand, fused, step
from .words import ACTIVATIONS, MASKS, MOVES, NORMS, OVER, PLUS, PRODUCTS, TIMES, tensors_in


@dataclass
class Watch(TorchFunctionMode):
    """Enter it, run the model, and read `attentions`, `meetings` and `used`."""

    model: nn.Module
    known: dict[int, str]
    attentions: list[Attention] = field(default_factory=list)
    meetings: list[Meeting] = field(default_factory=list)
    used: set[int] = field(default_factory=set)
    thrown: list[str] = field(default_factory=list)  # where raw scores mix values all the same
    bare: list[str] = field(default_factory=list)  # where a linear map follows another directly
    positive: list[str] = field(default_factory=list)  # where an activation is added to tokens
    unused: dict[int, tuple[Tensor, str]] = field(default_factory=dict)  # masked scores, and where

    def __post_init__(self):
        super().__init__()
        self.labels: dict[int, tuple[Tensor, Label]] = {}
        self.softened: set[int] = set()  # scores of which a softmax was taken
        for name, parameter in self.model.named_parameters():
            self.put(parameter, Label("parameter", name=name))

    def forget(self) -> None:
        """Let go of all tensors."""
        self.labels.clear()

    def put(self, x: Any, label: Label) -> None:
        """Label a tensor, or each of several."""
        if isinstance(x, (tuple, list)):
            for part in x:
                self.put(part, label)
        elif isinstance(x, Tensor):
            self.labels[id(x)] = (x, label)

    def of(self, x: Any) -> Label | None:
        """The label of a tensor, if it has one."""
        return self.labels[id(x)][1] if isinstance(x, Tensor) and id(x) in self.labels else None

    def __torch_function__(self, func: Callable, types: Any, args: Any = (), kwargs: Any = None):
        """Run a function of torch, then look at what went in and came out."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        tensors = tensors_in(args, kwargs)
        # What a sum in place writes over is kept.
        before = tensors[0].detach().clone() if name in ("add_", "__iadd__") else None
        result = func(*args, **kwargs)
        self.used.update(map(id, tensors))
        for x in tensors:
            self.unused.pop(id(x), None)
        # What the doctor does not understand it leaves without a label.
        try:
            self.see(name, func, args, kwargs, tensors, result, before)
        except (RuntimeError, ValueError, IndexError, TypeError, KeyError):
            self.labels.pop(id(result), None)
        return result

    def see(self, name, func, args, kwargs, tensors, result, before) -> None:
        """Label what came out by what went in, and write down what meets."""
        old = self.of(tensors[0]) if tensors else None
        if isinstance(result, Tensor) and result is not (tensors[0] if tensors else None):
            self.labels.pop(id(result), None)
        if name in MOVES and old:
            undropped = old.before
            if undropped is not None:
                with torch.no_grad():
                    undropped = func(undropped, *args[1:], **kwargs)
            self.put(result, replace(old, before=undropped))
        elif old and self.softmax(name, tensors, old, result):
            return
        elif name in TIMES or name in OVER:
            self.scaled(name, args, kwargs, result)
        elif name in PLUS:
            self.added(tensors, result, before)
        elif name in MASKS and any(
            label and label.kind == "scores" for label in map(self.of, tensors)
        ):
            scores = next(x for x in tensors if (own := self.of(x)) and own.kind == "scores")
            self.mask(scores, result)
        elif name in NORMS and old and old.kind == "linear":
            self.put(result, Label("linear", sure=False))
        elif name in ("dropout", "dropout_") and old and old.kind == "weights":
            self.put(result, replace(old, before=tensors[0] if old.before is None else old.before))
        elif name in ("dropout", "dropout_") and old and old.kind in ("linear", "activated"):
            self.put(result, old)
        elif name in ACTIVATIONS and old and old.kind == "linear":
            self.put(result, Label("activated"))
        elif name == "linear":
            self.linear(tensors[:2], old, result)
        elif name == "embedding" and (table := self.of(tensors[1])):
            self.put(result, table)
        elif name == "cat":
            self.joined(tensors)
        elif name in PRODUCTS:
            self.product(name, args, tensors, result)
        elif name == "scaled_dot_product_attention":
            qkv = tensors[:3]
            labels = [self.of(x) for x in qkv[:2]]
            self.attentions.append(fused(qkv, labels, args, kwargs, self.known))
        elif name == "multi_head_attention_forward":
            own = inside(self.known)
            self.attentions.append(Attention(tensors[1].shape[0], here(self.known), module=own))
        elif tensors and (result is tensors[0] or name == "__setitem__"):
            self.labels.pop(id(tensors[0]), None)  # changed in place by something else

    def softmax(self, name: str, tensors: list[Tensor], old: Label, result: Any) -> bool:
        """A step from scores to weights, at once or by hand; whether this was one."""
        x, other = tensors[0], tensors[1] if len(tensors) > 1 else None
        label = self.of(other)
        narrow = other is not None and 1 in other.shape[-2:]
        kind = step(name, old.kind, label.kind if label else "", narrow)
        if name in ("softmax", "log_softmax") and kind:
            self.softened.add(id(x if kind == "weights" else result))
        if kind == "weights":
            new = Label(kind, width=old.width, sure=old.sure, scale=old.factor)
            self.put(result, replace(new, plain=old.plain, where=here(self.known)))
        elif kind:
            self.put(result, replace(old, kind=kind))
        return bool(kind)

    def mask(self, scores: Tensor, result: Tensor) -> None:
        """Scores keep their label under a mask; masked ones that nothing takes up are noted."""
        label = self.of(scores)
        assert label is not None
        self.put(result, replace(label, plain=False))
        if result is not scores:
            self.unused[id(result)] = (result, here(self.known))

    def linear(self, pair: list[Tensor], old: Label | None, result: Tensor) -> None:
        """A linear map; one that narrows what another has widened, just before, is written down."""
        x, weight = pair
        if old and old.width == weight.shape[1] > weight.shape[0] and x.ndim == 3:
            self.bare.append(here(self.known))
        wide = weight.shape[0] if weight.shape[0] > weight.shape[1] else 0
        self.put(result, Label("linear", width=wide))

    def scaled(self, name: str, args: Any, kwargs: Any, result: Any) -> None:
        """A product or quotient with a number keeps the label; with a tensor it drops it."""
        pair = list(args) + list(kwargs.values())
        if name in TIMES and not (isinstance(pair[0], Tensor) and self.of(pair[0])):
            pair.reverse()
        x, by = pair[0], pair[1]
        old = self.of(x)
        single = isinstance(by, (int, float)) or (isinstance(by, Tensor) and by.numel() == 1)
        if old is None or not single or old.kind == "parameter":
            self.labels.pop(id(result), None)
            return
        learnt = isinstance(by, Tensor) and by.requires_grad
        factor = float(by) if name in TIMES else 1 / float(by)
        before = None if old.before is None else old.before.detach() * factor
        sure = old.sure and not (learnt and old.kind != "weights")
        self.put(result, replace(old, factor=old.factor * factor, sure=sure, before=before))

    def added(self, tensors: list[Tensor], result: Any, before: Tensor | None) -> None:
        """Scores keep their label under a mask; a parameter that is added to tokens is met.

        Args:
            tensors: of the sum.
            result: the sum.
            before: what the first tensor was, if the sum is written over it.
        """
        labels = [self.of(x) for x in tensors]
        kinds = [label.kind if label else "" for label in labels]
        shapes = {tuple(x.shape) for x in tensors}
        if "activated" in kinds and "parameter" not in kinds and len(shapes) == 1:
            self.positive += [here(self.known)] * (tensors[0].ndim == 3)
        for x, label in zip(tensors, labels, strict=True):
            if label and label.kind == "scores" and x.shape == result.shape:
                self.mask(x, result)
                return
        if before is not None:
            tensors = [before, *tensors[1:]]
        if len(tensors) == 2:
            for (x, label), other in zip(
                zip(tensors, labels, strict=True), tensors[::-1], strict=True
            ):
                many = x.ndim >= 2 and x.shape[-2] >= 4 and other.ndim == 3
                if label and label.kind == "parameter" and many and other.shape == result.shape:
                    self.meet(label.name, "added", x, other)
            bias = tensors[1].ndim == 1 or tensors[1].numel() == result.shape[-1]
            if labels[0] and labels[0].kind == "linear" and bias:
                self.put(result, labels[0])
                return
        self.labels.pop(id(result), None)

    def joined(self, tensors: list[Tensor]) -> None:
        """A parameter that is concatenated to tokens is met."""
        pairs = [(x, self.of(x)) for x in tensors]
        content = [x for x, label in pairs if not label or label.kind != "parameter"]
        for x, label in pairs:
            if label and label.kind == "parameter" and x.ndim == 3 and content:
                self.meet(label.name, "joined", x, max(content, key=Tensor.numel))

    def meet(self, name: str, how: str, x: Tensor, content: Tensor) -> None:
        """Write down a parameter beside the tokens that it meets."""

        def size(t: Tensor) -> float:  # the middle one of the tokens
            return float(t.detach().float().square().mean(-1).sqrt().median())

        rows = x.detach().float().flatten(0, -2)
        alike = len(rows) > 1 and not float(rows.std(0).max())
        place = here(self.known)
        self.meetings.append(Meeting(name, how, size(x), size(content), place, alike))

    def product(self, name: str, args: Any, tensors: list[Tensor], result: Tensor) -> None:
        """Linear maps, scores, and weights that mix values."""
        if len(tensors) != 2:
            return
        a, b = tensors
        axes = (-1, -2) if name != "einsum" else summed(args[0], a, b)
        label, other = self.of(a), self.of(b)
        kinds = {each.kind for each in (label, other) if each}
        if axes is None or min(a.ndim, b.ndim) < 2:
            return
        if "parameter" in kinds:
            self.put(result, Label("linear"))
        elif {id(a), id(b)} & self.softened and kinds & {"scores", "logs"}:
            self.thrown.append(here(self.known))
        elif "weights" in kinds:
            x, mark, axis, values = a, label, axes[0], b
            if not label or label.kind != "weights":
                x, mark, axis, values = b, other, axes[1], a
            # Over another axis, or with one matrix for all, heads are mixed, and not values.
            if mark and axis % x.ndim >= x.ndim - 2 and values.ndim >= x.ndim:
                self.attentions.append(by_hand(x, mark, axis, self.known))
        elif result.ndim >= 3:
            plain = bool(label and other and label.kind == other.kind == "linear")
            sure = plain and all(each.sure for each in (label, other) if each)
            factor = (label.factor if label else 1) * (other.factor if other else 1)
            label = Label("scores", factor, width=a.shape[axes[0]], sure=sure)
            self.put(result, replace(label, plain=plain))
