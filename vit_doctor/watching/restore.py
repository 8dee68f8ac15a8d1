"""Leaves a model as it was, whatever is done to it in between."""

import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


def contents(model: nn.Module) -> Iterator[tuple[str, Any]]:
    """Give all that a model holds, with its path: modules, lists, dicts and tensors, each once.

    It also looks where `modules()` and `parameters()` do not: into plain attributes, into lists,
    tuples and dicts. Other objects are not opened.
    """
    waiting: list[tuple[str, Any]] = [("", model)]
    seen = {id(model)}
    while waiting:
        path, value = waiting.pop()
        yield path, value
        if isinstance(value, nn.Module):
            parts = list(vars(value).items())
        elif isinstance(value, dict):
            parts = list(value.items())
        elif isinstance(value, (list, tuple, set)):
            parts = list(enumerate(value))
        else:
            continue
        for name, part in parts:
            holds = isinstance(part, (nn.Module, dict, list, tuple, set, Tensor))
            if holds and id(part) not in seen:
                seen.add(id(part))
                of_module = name in ("_parameters", "_buffers", "_modules")
                waiting.append((path if of_module else f"{path}.{name}".lstrip("."), part))


def stray_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Give the tensors of floats that a model holds beside its parameters and buffers."""
    owned = {id(t) for t in (*model.parameters(), *model.buffers())}
    for path, value in contents(model):
        if isinstance(value, Tensor) and id(value) not in owned and value.is_floating_point():
            yield path, value


class Snapshot:
    """A model as it is now: weights, buffers, gradients, modes, hooks and plain attributes."""

    def __init__(self, model: nn.Module):
        values = [value for _, value in contents(model)]
        self.modules = [(m, dict(vars(m))) for m in values if isinstance(m, nn.Module)]
        self.holders = [(h, h.copy()) for h in values if isinstance(h, (dict, list, set))]
        self.tensors = [
            (t, t.data, t.data.clone(), t.grad, None if t.grad is None else t.grad.clone())
            for t in values
            if isinstance(t, Tensor) and t.is_leaf
        ]
        self.learning = [t.requires_grad for t, *_ in self.tensors]

    def restore(self) -> None:
        """Put everyvalue back, to the same objects; what is unchanged is not written to."""
        for module, state in self.modules:
            vars(module).clear()
            vars(module).update(state)
        for holder, content in self.holders:
            holder.clear()
            if isinstance(holder, list):
                holder.extend(content)
            else:
                holder.update(content)
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
