"""Leaves a model as it was, whatever is done to it in between."""

import random
import sys
import warnings
from collections.abc import Callable, Iterator
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


def snapshot(model: nn.Module) -> Callable[[], None]:
    """Give what puts a model back as it is now: to the same objects, and only what has changed."""
    values = [value for _, value in contents(model)]
    holders = [vars(m) for m in values if isinstance(m, nn.Module)]
    holders += [h for h in values if isinstance(h, (dict, list, set))]
    copies = [(holder, holder.copy()) for holder in holders]
    leaves = [t for t in values if isinstance(t, Tensor) and t.is_leaf]
    grads = [(t.grad, t.grad if t.grad is None else t.grad.clone()) for t in leaves]
    data = [(t.data, t.data.clone()) for t in leaves]
    learning = [t.requires_grad for t in leaves]

    def restore() -> None:
        for holder, content in copies:
            holder.clear()
            if isinstance(holder, list):
                holder.extend(content)
            else:
                holder.update(content)
        for tensor, values, grad, learns in zip(leaves, data, grads, learning, strict=True):
            if tensor.data_ptr() != values[0].data_ptr() or tensor.dtype != values[0].dtype:
                tensor.data = values[0]
            for now, before in (values, grad):
                if now is not None and before is not None and not torch.equal(now, before):
                    now.copy_(before)
            tensor.grad = grad[0]
            tensor.requires_grad_(learns)

    return restore


@contextmanager
def unchanged(model: nn.Module) -> Iterator[None]:
    """Whatever is done to a model inside, it and the random state are as before afterwards."""
    numpy = sys.modules.get("numpy")
    states = (torch.get_rng_state(), random.getstate(), numpy and numpy.random.get_state())
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    settings = (torch.get_default_dtype(), torch.get_num_threads())
    restore = snapshot(model)
    try:
        with warnings.catch_warnings(), torch.enable_grad():
            warnings.simplefilter("ignore")
            yield
    finally:
        with torch.no_grad():
            restore()
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        if numpy:
            numpy.random.set_state(states[2])
        if cuda:
            torch.cuda.set_rng_state_all(cuda)
        torch.set_default_dtype(settings[0])
        if torch.get_num_threads() != settings[1]:
            torch.set_num_threads(settings[1])
