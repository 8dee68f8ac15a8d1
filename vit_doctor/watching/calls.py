"""Watches every module of a model: what came in, what went out, and whether it counts.

It also runs parts of a model again: one block or one attention on tokens of the doctor's choice.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.overrides import TorchFunctionMode

from .words import MAPS, tensors_in

# Of one module, the tokens that came in and the same module as a function of such tokens.
Part = tuple[Tensor, Callable[[Tensor], Tensor]]


def first(output: Any) -> Any:
    """The first of several outputs, or the one that there is."""
    return output[0] if isinstance(output, (tuple, list)) and output else output


@dataclass
class Call:
    """The first call of a module: its arguments, and the shape that came out."""

    args: tuple
    kwargs: dict
    shape: tuple[int, ...] | None


class Calls:
    """Hooks on all modules of a model, for one run.

    Args:
        model: what runs.

    Attributes:
        of: the first call of each module by its path, in the order in which they ended.
        heard: of each module whether its output has an influence.
        fed: pairs of paths: a module, and the innermost one whose output it was given.
    """

    def __init__(self, model: nn.Module):
        self.of: dict[str, Call] = {}
        self.heard: dict[str, bool] = {}
        self.fed: list[tuple[str, str]] = []
        self.gave: dict[int, tuple[Tensor, str]] = {}
        self.handles = [
            module.register_forward_hook(self.hook(path), with_kwargs=True)
            for path, module in model.named_modules()
        ]

    def hook(self, path: str) -> Callable:
        """What is written down of one module."""

        def hear(grad: Tensor) -> None:
            self.heard[path] = self.heard[path] or bool(grad.any())

        def after(module: nn.Module, args: tuple, kwargs: dict, output: Any) -> None:
            out = first(output)
            if path not in self.of:
                shape = tuple(out.shape) if isinstance(out, Tensor) else None
                self.of[path] = Call(detached(args), detached(kwargs), shape)
            if not isinstance(out, Tensor):
                return
            came = self.gave.get(id(args[0])) if args else None
            if came is not None:
                self.fed.append((path, came[1]))
            self.gave.setdefault(id(out), (out, path))
            if out.requires_grad:
                self.heard.setdefault(path, False)
                out.register_hook(hear)

        return after

    def remove(self) -> None:
        """Take the hooks away again, and let go of what hangs on the run."""
        for handle in self.handles:
            handle.remove()
        self.gave.clear()


class Maps(TorchFunctionMode):
    """Enter it and run: what comes into linear maps and convolutions, whoever holds their weights.

    Attributes:
        came: for each weight, by its name, the size (root of the mean square) of what it first met,
            in the order in which they were used.
        width: likewise the number of inputs, where that is the last axis of what it met.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.names = {id(x): name for name, x in model.named_parameters() if x.ndim > 1}
        self.came: dict[str, float] = {}
        self.width: dict[str, int] = {}

    def __torch_function__(self, func: Callable, types: Any, args: Any = (), kwargs: Any = None):
        """Run a function of torch; of a product with a weight, write down what it met."""
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in MAPS:
            tensors = tensors_in(args, kwargs)
            names = [self.names.get(id(x)) or self.names.get(id(x._base)) for x in tensors]
            met = [x for x, name in zip(tensors, names, strict=True) if not name]
            for name in names:
                if name and met and name not in self.came:
                    self.came[name] = size(met[0])
                    self.width[name] = met[0].shape[-1]
        return func(*args, **kwargs)


def norms_of(model: nn.Module, calls: Calls, maps: Maps) -> set[str]:
    """The paths of all norms, by what they do, and of torch's batch norms.

    A norm holds no linear map, keeps the shape, and gives the same for tokens a hundred times
    larger: to 3%, where they are large enough that its eps does not count. What saturates, such as
    tanh and softmax, differs by more.
    """
    found = set()
    for path, call in calls.of.items():
        module = model.get_submodule(path)
        inside = path + "." if path else ""
        if isinstance(module, _BatchNorm):
            found.add(path)
        elif not any(name.startswith(inside) for name in maps.came) and call.args:
            x = call.args[0]
            if isinstance(x, Tensor) and x.is_floating_point() and call.shape == tuple(x.shape):
                found |= {path} if scales_away(module, x[:1] / (size(x) or 1), call) else set()
    return found


def scales_away(module: nn.Module, x: Tensor, call: Call) -> bool:
    """Whether a module gives the same for 10 x and 1000 x, and something else for other tokens."""

    def run(tokens: Tensor) -> Any:
        return first(module(tokens, *call.args[1:], **call.kwargs))

    try:
        with torch.no_grad():
            one, large, other = run(10 * x), run(1000 * x), run(10 * x.flip(-1).roll(1, -1))
    except Exception:  # it wants more than one token, or another image
        return False
    near = 0.03 * size(one)
    return size(one - large) < near < 0.3 * size(one - other)


def detached(thing: Any) -> Any:
    """Arguments without what hangs on the run that they were part of."""
    if isinstance(thing, Tensor):
        return thing.detach()
    if isinstance(thing, dict):
        return {key: detached(value) for key, value in thing.items()}
    return tuple(map(detached, thing)) if type(thing) in (tuple, list) else thing


def part(module: nn.Module, call: Call | None) -> Part | None:
    """One image's tokens (1, N, D) that came into a module, and the module as a function of such.

    None where it was not called, got no other than one tensor, or gave another shape.
    """
    if call is None or call.shape is None or not call.args:
        return None
    x, *others = call.args
    tensors = [y for y in (*others, *call.kwargs.values()) if isinstance(y, (Tensor, tuple))]
    if not isinstance(x, Tensor) or tensors or x.ndim != 3 or call.shape != tuple(x.shape):
        return None
    if x.dtype not in (torch.float32, torch.float64):
        return None

    def run(tokens: Tensor) -> Tensor:
        return first(module(tokens, *others, **call.kwargs))

    return x[:1].clone(), run


@contextmanager
def silenced(model: nn.Module, names: Collection[str]) -> Iterator[None]:
    """Inside, the linear maps with weights of these names give zeros: weights and biases are 0."""
    weights = [model.get_parameter(name) for name in names]
    holders = [model.get_submodule(name.rpartition(".")[0]) for name in names]
    biases = [x for holder in holders for x in holder.parameters(recurse=False) if x.ndim == 1]
    kept = {id(x): (x, x.data) for x in (*weights, *biases)}
    for x, _ in kept.values():
        x.data = torch.zeros_like(x)
    try:
        yield
    finally:
        for x, values in kept.values():
            x.data = values


def size(x: Tensor) -> float:
    """The root of the mean square."""
    return float(x.detach().float().square().mean().sqrt())
