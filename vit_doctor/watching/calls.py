"""Watches every module of a model: what came in, what went out, how often, and whether it counts.

It also runs parts of a model again: one block or one attention on tokens of the doctor's choice.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

# Of one module, the tokens that came in and the same module as a function of such tokens.
Part = tuple[Tensor, Callable[[Tensor], Tensor]]


def first(output: Any) -> Any:
    """The first of several outputs, or the one that there is."""
    return output[0] if isinstance(output, (tuple, list)) and output else output


def is_norm(module: nn.Module) -> bool:
    """Whether a module is a norm, by the name of its class."""
    return "Norm" in type(module).__name__ and not any(True for _ in module.children())


def is_linear(module: nn.Module) -> bool:
    """Whether a module is a linear map, or torch's attention, which holds two."""
    return isinstance(module, (nn.Linear, nn.MultiheadAttention))


@dataclass
class Call:
    """The first call of a module: its arguments, the shape that came out, and how many followed."""

    args: tuple
    kwargs: dict
    shape: tuple[int, ...] | None
    count: int = 1


class Calls:
    """Hooks on all modules of a model, for one run.

    Args:
        model: what runs.

    Attributes:
        of: the first call of each module by its path, in the order in which they ended.
        heard: of norms and of what holds them, whether their output has an influence.
        twice: paths of a norm, and of the one whose output it was given.
    """

    def __init__(self, model: nn.Module):
        self.of: dict[str, Call] = {}
        self.heard: dict[str, bool] = {}
        self.twice: list[tuple[str, str]] = []
        self.normed: dict[int, tuple[Tensor, str]] = {}
        paths = [path for path, module in model.named_modules() if is_norm(module)]
        followed = {"", *paths, *(p.rpartition(".")[0] for p in paths)}
        self.handles = [
            module.register_forward_hook(self.hook(path, path in followed), with_kwargs=True)
            for path, module in model.named_modules()
        ]

    def hook(self, path: str, followed: bool) -> Callable:
        """What is written down of one module."""

        def hear(grad: Tensor) -> None:
            self.heard[path] = self.heard[path] or bool(grad.any())

        def after(module: nn.Module, args: tuple, kwargs: dict, output: Any) -> None:
            out = first(output)
            if path in self.of:
                self.of[path].count += 1
            else:
                shape = tuple(out.shape) if isinstance(out, Tensor) else None
                self.of[path] = Call(detached(args), detached(kwargs), shape)
            if not isinstance(out, Tensor):
                return
            if is_norm(module):
                came = self.normed.get(id(args[0])) if args else None
                if came is not None and came[0] is args[0]:
                    self.twice.append((path, came[1]))
                self.normed[id(out)] = (out, path)
            if followed and out.requires_grad:
                self.heard.setdefault(path, False)
                out.register_hook(hear)

        return after

    def remove(self) -> None:
        """Take the hooks away again, and let go of what hangs on the run."""
        for handle in self.handles:
            handle.remove()
        self.normed.clear()


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
def silenced(modules: list[nn.Module]) -> Iterator[None]:
    """Inside, these modules give zeros."""

    def hush(_: nn.Module, __: Any, output: Any) -> Any:
        zeros = torch.zeros_like(first(output))
        return (zeros, *output[1:]) if isinstance(output, (tuple, list)) else zeros

    handles = [module.register_forward_hook(hush) for module in modules]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def sizes(modules: dict[str, nn.Module]) -> Iterator[dict[str, float]]:
    """Inside, writes down the size (root of the mean square) of what comes into these modules."""
    found: dict[str, float] = {}

    def listen(path: str) -> Callable:
        def before(_: nn.Module, args: tuple, kwargs: dict) -> None:
            came = args[0] if args else next(iter(kwargs.values()), None)
            if isinstance(came, Tensor) and path not in found:
                found[path] = size(came)

        return before

    handles = [
        module.register_forward_pre_hook(listen(path), with_kwargs=True)
        for path, module in modules.items()
    ]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def size(x: Tensor) -> float:
    """The root of the mean square."""
    return float(x.detach().float().square().mean().sqrt())


def element(model: nn.Module, path: str) -> str:
    """The path of the innermost block that holds this one, as an element of a list of its like."""
    while path:
        holder = path.rpartition(".")[0]
        inside = model.get_submodule(holder)
        if isinstance(inside, (nn.ModuleList, nn.Sequential)):
            kinds = [type(each) for each in inside]
            if kinds.count(type(model.get_submodule(path))) > 1:
                return path
        path = holder
    return ""
