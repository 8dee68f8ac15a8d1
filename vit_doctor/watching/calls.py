"""Watches every module of a model: what came in, what went out, and whether it counts.

It also runs parts of a model again: one block or one attention on tokens of the doctor's choice.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.overrides import TorchFunctionMode

from .functions import MAPS, tensors_in

# Of one module, the tokens that came in and the same module as a function of such tokens.
Runnable = tuple[Tensor, Callable[[Tensor], Tensor]]


def first_output(output: Any) -> Any:
    """Give the first of several outputs, or the one that there is."""
    return output[0] if isinstance(output, (tuple, list)) and output else output


@dataclass
class Call:
    """The first call of a module: its arguments, and the shape that came out."""

    args: tuple
    kwargs: dict
    shape: tuple[int, ...] | None


class Calls:
    """Hooks on all modules of a model, for one run; `hooks` takes them away again."""

    def __init__(self, model: nn.Module, hooks: ExitStack):
        self.first: dict[str, Call] = {}  # by path, in the order in which they ended
        self.runs: Counter[str] = Counter()  # of each module on tokens (B, N, D)
        self.has_influence: dict[str, bool] = {}  # of each output on the logits
        # Pairs of paths: a module, and the innermost one whose output it was given.
        self.chained: list[tuple[str, str]] = []
        self.outputs: dict[int, tuple[Tensor, str]] = {}
        for path, module in model.named_modules():
            handle = module.register_forward_hook(self.hook(path), with_kwargs=True)
            hooks.enter_context(handle)
        hooks.callback(self.outputs.clear)  # lets go of what hangs on the run

    def hook(self, path: str) -> Callable:
        """Give the function that writes down the calls of one module."""

        def backward(grad: Tensor) -> None:
            self.has_influence[path] = self.has_influence[path] or bool(grad.any())

        def after(module: nn.Module, args: tuple, kwargs: dict, output: Any) -> None:
            output = first_output(output)
            tokens = args[0] if args else None
            self.runs[path] += isinstance(tokens, Tensor) and tokens.ndim == 3
            if path not in self.first:
                shape = tuple(output.shape) if isinstance(output, Tensor) else None
                self.first[path] = Call(detached(args), detached(kwargs), shape)
            if not isinstance(output, Tensor):
                return
            if args and id(args[0]) in self.outputs:
                self.chained.append((path, self.outputs[id(args[0])][1]))
            self.outputs.setdefault(id(output), (output, path))
            if output.requires_grad:
                self.has_influence.setdefault(path, False)
                output.register_hook(backward)

        return after


class LinearMaps(TorchFunctionMode):
    """Enter it and run: what comes into linear maps and convolutions, by their weights."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.names = {id(x): name for name, x in model.named_parameters() if x.ndim > 1}
        # By the names of weights, in the order of their use: the size (root of the mean square) of
        # what each met first, and the number of inputs, where that is its last axis.
        self.input_sizes: dict[str, float] = {}
        self.input_widths: dict[str, int] = {}

    def __torch_function__(self, func: Callable, types: Any, args: Any = (), kwargs: Any = None):
        """Run a function of torch; of a product with a weight, write down what it met."""
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in MAPS:
            tensors = tensors_in(args, kwargs)
            names = [self.names.get(id(x)) or self.names.get(id(x._base)) for x in tensors]
            inputs = [x for x, name in zip(tensors, names, strict=True) if not name]
            for name in names:
                if name and inputs and name not in self.input_sizes:
                    self.input_sizes[name] = rms(inputs[0])
                    self.input_widths[name] = inputs[0].shape[-1]
        return func(*args, **kwargs)


def norms_of(model: nn.Module, calls: Calls, maps: LinearMaps) -> set[str]:
    """Find the paths of all norms, by what they do, and of torch's batch norms.

    A norm holds no linear map, keeps the shape, and gives the same for tokens a hundred times
    larger: to 3%, where they are large enough that its eps does not count.
    """
    norms = set()
    for path, call in calls.first.items():
        module = model.get_submodule(path)
        start = path + "." if path else ""
        if isinstance(module, _BatchNorm):
            norms.add(path)
        elif call.args and not any(name.startswith(start) for name in maps.input_sizes):
            x = call.args[0]
            fits = isinstance(x, Tensor) and x.is_floating_point() and call.shape == x.shape
            if fits and scales_away(module, x[:1] / (rms(x) or 1), call):
                norms.add(path)
    return norms


def scales_away(module: nn.Module, x: Tensor, call: Call) -> bool:
    """Tell whether a module gives the same for 10 x and 1000 x, and does what norms do besides.

    Other tokens come out otherwise; x and -x give opposite numbers around one bias, large, small
    and others, as no softmax does; and some numbers made larger make the others smaller,
    which no function of single numbers does, such as a sign.
    """

    def run(tokens: Tensor) -> Any:
        return first_output(module(tokens, *call.args[1:], **call.kwargs))

    x, other = 10 * x, 10 * x.flip(-1).roll(1, -1)
    louder = torch.rand(x.shape, generator=torch.Generator().manual_seed(9)).to(x) > 0.5
    try:
        with torch.no_grad():
            small, large, others = run(x), run(100 * x), run(other)
            bias, *biases = ((run(y) + run(-y)) / 2 for y in (x, x / 1000, other))
            among_louder = run(torch.where(louder, 10 * x, x))
    except Exception:  # it wants more than one token, or another image
        return False
    near = 0.03 * rms(small)
    depends = rms(small - others) > near / 0.3 and rms((small - among_louder)[~louder]) > near
    one_bias = all(rms(bias - each) < near for each in biases)
    return rms(small - large) < near and one_bias and depends


def detached(value: Any) -> Any:
    """Give arguments without what hangs on the run that they were part of."""
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, dict):
        return {key: detached(inner) for key, inner in value.items()}
    return tuple(map(detached, value)) if type(value) in (tuple, list) else value


def runnable(module: nn.Module, call: Call | None) -> Runnable | None:
    """Give one image's tokens (1, N, D) that came into a module, and it as a function of such.

    None where it was not called, got no other than one tensor, or gave another shape.
    """
    if call is None or not call.args:
        return None
    x, *others = call.args
    alone = not any(isinstance(y, (Tensor, tuple)) for y in (*others, *call.kwargs.values()))
    tokens = isinstance(x, Tensor) and x.ndim == 3 and call.shape == tuple(x.shape)
    if not (alone and tokens and x.dtype in (torch.float32, torch.float64)):
        return None

    def run(tokens: Tensor) -> Tensor:
        return first_output(module(tokens, *others, **call.kwargs))

    return x[:1].clone(), run


@contextmanager
def silenced(model: nn.Module, names: Collection[str]) -> Iterator[None]:
    """Inside, the linear maps with weights of these names give zeros: weights and biases are 0."""
    weights = [model.get_parameter(name) for name in names]
    holders = [model.get_submodule(name.rpartition(".")[0]) for name in names]
    biases = [x for holder in holders for x in holder.parameters(recurse=False) if x.ndim == 1]
    before = {x: x.data for x in (*weights, *biases)}
    for x in before:
        x.data = torch.zeros_like(x)
    try:
        yield
    finally:
        for x, values in before.items():
            x.data = values


def rms(x: Tensor) -> float:
    """Give the root of the mean square."""
    return float(x.detach().float().square().mean().sqrt())
