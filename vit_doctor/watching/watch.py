"""Watches a run of a model: its products, its softmax, and what becomes of them.

Each tensor of interest carries a label. A label passes through what only moves numbers (reshape,
transpose, slices) and through factors that are known; anything else drops it. So what is claimed
of a labelled tensor holds, and of the rest nothing is claimed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .places import here, inside
from .records import Attention, Label, Meeting, summed, whole
from .words import MASKS, MOVES, NORMS, OVER, PLUS, PRODUCTS, TIMES, tensors_in


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
        result = func(*args, **kwargs)
        tensors = tensors_in(args, kwargs)
        self.used.update(map(id, tensors))
        # What the doctor does not understand it leaves without a label.
        try:
            self.see(name, func, args, kwargs, tensors, result)
        except (RuntimeError, ValueError, IndexError, TypeError, KeyError):
            self.labels.pop(id(result), None)
        return result

    def see(self, name, func, args, kwargs, tensors, result) -> None:
        """Label what came out by what went in, and write down what meets."""
        old = self.of(tensors[0]) if tensors else None
        if isinstance(result, Tensor) and result is not (tensors[0] if tensors else None):
            self.labels.pop(id(result), None)
        if name in MOVES and old:
            before = old.before
            if before is not None:
                with torch.no_grad():
                    before = func(before, *args[1:], **kwargs)
            self.put(result, replace(old, before=before))
        elif name in TIMES or name in OVER:
            self.scaled(name, args, kwargs, result)
        elif name in PLUS:
            self.added(tensors, result)
        elif name in MASKS and old and old.kind == "scores":
            self.put(result, replace(old, plain=False))
        elif name in NORMS and old and old.kind == "linear":
            self.put(result, Label("linear", sure=False))
        elif name in ("dropout", "dropout_") and old and old.kind == "weights":
            self.put(result, replace(old, before=tensors[0] if old.before is None else old.before))
        elif name in ("dropout", "dropout_") and old and old.kind == "linear":
            self.put(result, old)
        elif name == "linear":
            self.linear(tensors[:2], old, result)
        elif name == "embedding" and (table := self.of(tensors[1])):
            self.put(result, table)
        elif name == "cat":
            self.joined(tensors)
        elif name in PRODUCTS:
            self.product(name, args, tensors, result)
        elif name == "log_softmax" and old and old.kind == "scores":
            self.softened.add(id(result))
            self.put(result, old)
        elif name == "softmax" and old and old.kind == "scores":
            self.softened.add(id(tensors[0]))
            label = Label("weights", width=old.width, sure=old.sure, scale=old.factor)
            self.put(result, replace(label, plain=old.plain, where=here(self.known)))
        elif name == "scaled_dot_product_attention":
            self.fused(tensors[:3], args, kwargs)
        elif name == "multi_head_attention_forward":
            own = inside(self.known)
            self.attentions.append(Attention(tensors[1].shape[0], here(self.known), module=own))
        elif tensors and (result is tensors[0] or name == "__setitem__"):
            self.labels.pop(id(tensors[0]), None)  # changed in place by something else

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

    def added(self, tensors: list[Tensor], result: Any) -> None:
        """Scores keep their label under a mask; a parameter that is added to tokens is met."""
        labels = [self.of(x) for x in tensors]
        for x, label in zip(tensors, labels, strict=True):
            if label and label.kind == "scores" and x.shape == result.shape:
                self.put(result, replace(label, plain=False))
                return
        if len(tensors) == 2:
            for (x, label), other in zip(
                zip(tensors, labels, strict=True), tensors[::-1], strict=True
            ):
                many = x.ndim >= 2 and x.shape[-2] >= 4 and other.ndim == 3
                if label and label.kind == "parameter" and many and other.shape == result.shape:
                    self.meet(label.name, "added", x, other)
            if labels[0] and labels[0].kind == "linear" and tensors[1].ndim == 1:
                self.put(result, labels[0])  # a bias
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

        self.meetings.append(Meeting(name, how, size(x), size(content), here(self.known)))

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
        elif {id(a), id(b)} & self.softened and "scores" in kinds:
            self.thrown.append(here(self.known))
        elif "weights" in kinds:
            x, mark, axis, values = a, label, axes[0], b
            if not label or label.kind != "weights":
                x, mark, axis, values = b, other, axes[1], a
            # Over another axis, or with one matrix for all, heads are mixed, and not values.
            if mark and axis % x.ndim >= x.ndim - 2 and values.ndim >= x.ndim:
                self.mixed(x, mark, axis)
        elif result.ndim >= 3:
            plain = bool(label and other and label.kind == other.kind == "linear")
            sure = plain and all(each.sure for each in (label, other) if each)
            factor = (label.factor if label else 1) * (other.factor if other else 1)
            label = Label("scores", factor, width=a.shape[axes[0]], sure=sure)
            self.put(result, replace(label, plain=plain))

    def mixed(self, x: Tensor, label: Label, axis: int) -> None:
        """Write down what weights, as they mix the values, sum to."""
        weights = (x if label.before is None else label.before).detach().float()
        sums = weights.sum(axis)
        axes = [i for i in range(1, x.ndim) if x.shape[i] > 1 and i - x.ndim != axis and i != axis]
        other = any(whole(weights.sum(i), sums, label.factor, x.dtype) for i in axes)
        plain = weights / label.factor if label.factor else weights
        self.attentions.append(
            Attention(
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
                inside(self.known),
            )
        )

    def fused(self, qkv: list[Tensor], args: Any, kwargs: Any) -> None:
        """Write down a fused attention; its weights are computed anew, for one image."""
        q, k, _ = qkv
        width, labels = q.shape[-1], (self.of(q), self.of(k))
        scale = kwargs.get("scale")
        scale = width**-0.5 if scale is None else float(scale)
        ratio = None
        if all(label and label.kind == "linear" and label.sure for label in labels):
            ratio = scale * math.prod(label.factor for label in labels if label) * width**0.5
        seen = Attention(k.shape[-2], here(self.known), ratio, width, module=inside(self.known))
        masked = kwargs.get("attn_mask") is not None or (len(args) > 3 and args[3] is not None)
        masked = masked or bool(kwargs.get("is_causal") or (len(args) > 5 and args[5]))
        plain = not masked and all(label and label.kind == "linear" for label in labels)
        seen = replace(seen, plain=plain)
        if not masked and q.shape[:-2] == k.shape[:-2]:
            with torch.no_grad():
                weights = (q[:1].float() @ k[:1].float().mT * scale).softmax(-1)
            largest, spread = weights.amax(-1).mean(), weights.std() * k.shape[-2]
            seen = replace(seen, largest=float(largest), spread=float(spread))
        self.attentions.append(seen)
