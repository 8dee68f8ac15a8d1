"""Leaves a model as it was, whatever is done to it in between."""

import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


def inner(model: nn.Module) -> Iterator[tuple[str, Any]]:
    """All that a model holds, with its path: modules, lists, dicts and tensors, each once.

    It also looks where `modules()` and `parameters()` do not: into plain attributes, into lists,
    tuples and dicts. Other objects are not opened.
    """
    waiting: list[tuple[str, Any]] = [("", model)]
    seen = {id(model)}
    while waiting:
        path, thing = waiting.pop()
        yield path, thing
        if isinstance(thing, nn.Module):
            parts = list(vars(thing).items())
        elif isinstance(thing, dict):
            parts = list(thing.items())
        elif isinstance(thing, (list, tuple, set)):
            parts = list(enumerate(thing))
        else:
            continue
        for name, part in parts:
            holds = isinstance(part, (nn.Module, dict, list, tuple, set, Tensor))
            if holds and id(part) not in seen:
                seen.add(id(part))
                own = name in ("_parameters", "_buffers", "_modules")
                waiting.append((path if own else f"{path}.{name}".lstrip("."), part))


def strays(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Tensors of floats that a model holds beside its parameters and buffers."""
    own = {id(t) for t in (*model.parameters(), *model.buffers())}
    for path, thing in inner(model):
        if isinstance(thing, Tensor) and id(thing) not in own and thing.is_floating_point():
            yield path, thing


class Snapshot:
    """A model as it is now: weights, buffers, gradients, modes, hooks and plain attributes."""

    def __init__(self, model: nn.Module):
        things = [thing for _, thing in inner(model)]
        self.modules = [(m, dict(vars(m))) for m in things if isinstance(m, nn.Module)]
        self.holders = [(h, h.copy()) for h in things if isinstance(h, (dict, list, set))]
        self.tensors = [
            (t, t.data, t.data.clone(), t.grad, None if t.grad is None else t.grad.clone())
            for t in things
            if isinstance(t, Tensor) and t.is_leaf
        ]
        self.learning = [t.requires_grad for t, *_ in self.tensors]

    def restore(self) -> None:
        """Put everything back, to the same objects; what is unchanged is not written to."""
        for module, state in self.modules:
            vars(module).clear()
            vars(module).update(state)
        for holder, content in self.holders:
            holder.clear()
            holder.extend(content) if isinstance(holder, list) else holder.update(content)
        for (tensor, data, copy, grad, grad_copy), learns in zip(
            self.tensors, self.learning, strict=True
        ):
            if tensor.data_ptr() != data.data_ptr() or tensor.dtype != data.dtype:
                tensor.data = data
            for now, before in ((data, copy), (grad, grad_copy)):
                if now is not None and before is not None and not torch.equal(now, before):
                    now.copy_(before)
            tensor.grad = grad
            tensor.requires_grad_(learns)


@contextmanager
def unchanged(model: nn.Module) -> Iterator[None]:
    """Whatever is done to a model inside, it and the random state are as before afterwards."""
    numpy = sys.modules.get("numpy")
    states = (torch.get_rng_state(), random.getstate(), numpy and numpy.random.get_state())
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    settings = (torch.get_default_dtype(), torch.get_num_threads())
    snapshot = Snapshot(model)
    try:
        with warnings.catch_warnings(), torch.enable_grad():
            warnings.simplefilter("ignore")
            yield
    finally:
        with torch.no_grad():
            snapshot.restore()
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        if numpy:
            numpy.random.set_state(states[2])
        if cuda:
            torch.cuda.set_rng_state_all(cuda)
        torch.set_default_dtype(settings[0])
        if torch.get_num_threads() != settings[1]:
            torch.set_num_threads(settings[1])
