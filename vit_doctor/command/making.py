"""Makes a model of a class that nobody has seen before, and finds out what images it takes."""

import inspect
import io
import sys
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from typing import Any

import torch
from torch import nn

from ..watching.restore import unchanged
from .arguments import Choice, Task, UnfitError
from .config import Settings
from .usual import sides_of, synonyms, whole


def make(target: Any, task: Task, guessed: dict[str, Any] | None = None) -> tuple:
    """Call a class or function, unless it is a model already.

    Give the model, and the (height, width) and the channels of the images for it; `guessed` takes
    what nobody gave. An UnfitError says what is missing, of all arguments at once.
    """
    choice = Choice(task, guessed={} if guessed is None else guessed)
    if not callable(target):
        raise UnfitError(f"it is {type(target).__name__}, not a class, a function or a model")
    is_model = isinstance(target, nn.Module)
    values = {} if is_model else choice.arguments(target)
    if choice.missing:
        raise UnfitError(lacking(choice.missing, choice.guessed))
    if choice.unused:
        name, takes = min(choice.unused), ", ".join(choice.used) or "none"
        raise UnfitError(f"it has no argument {name}, which --set names: it takes {takes}")
    model = target if is_model else called(target, values, choice.guessed)
    if not isinstance(model, nn.Module):
        raise UnfitError(f"calling it gave {type(model).__name__}, not an nn.Module")
    return model, *images_for(model, choice)


def lacking(missing: list[str], guessed: dict[str, Any]) -> str:
    """Say which arguments have no known value, and what was guessed for the others."""
    plural = "s" if len(missing) > 1 else ""
    options = " ".join(f"--set {name}=VALUE" for name in missing)
    also = f"; {told(guessed)}" if guessed else ""
    return f"no value is known for its argument{plural} {', '.join(missing)}: give {options}{also}"


def told(guessed: dict[str, Any]) -> str:
    """Say what was guessed."""
    return f"guessed: {', '.join(f'{name}={value}' for name, value in guessed.items())}"


def called(target: Callable, values: dict[str, Any], guessed: dict[str, Any]) -> Any:
    """Call a class; where that fails, once more with the guessed sizes of image and patch in pairs.

    An UnfitError lists what it asks of a config that has no known value.
    """
    sizes = {*synonyms("image_size"), *synonyms("patch_size")} & values.keys() & guessed.keys()
    pairs = {name: (values[name],) * 2 for name in sizes if whole(values[name])}
    try:
        return target(**values)
    except Exception as error:
        if missing := unknown_names(target, values):
            raise UnfitError(lacking(missing, guessed)) from error
        with suppress(Exception):
            if pairs:
                model = target(**values | pairs)
                guessed |= pairs
                return model
        raise


def unknown_names(target: Callable, values: dict[str, Any]) -> list[str]:
    """List what the code asks of a config that nobody wrote, and that has no known value."""
    configs = {name: x for name, x in values.items() if isinstance(x, Settings)}
    source = ""
    with suppress(OSError, TypeError):
        source = inspect.getsource(sys.modules.get(target.__module__) or target)
    return [path for name, config in configs.items() for path in config.unknown(source, name)]


def images_for(model: nn.Module, choice: Choice) -> tuple[tuple[int, int], int]:
    """Give the (height, width) and the channels of the images that a model takes.

    What the command line says holds, then what the model's arguments are called. Else it is the
    usual, or, where the model fails on it, the first of its own whole numbers that it runs on.
    """
    used, task = choice.used, choice.task
    pairs = {name: sides for name, x in used.items() if (sides := sides_of(x))}
    own_size = (pairs[name] for name in synonyms("image_size") if name in pairs)
    own_channels = (used[n] for n in synonyms("in_channels") if whole(used.get(n)))
    size = sides_of(task.size) or next(own_size, None)
    channels = task.channels or next(own_channels, None)
    if size and channels:
        return size, channels
    own = [sides for sides in pairs.values() if 4 <= max(sides) <= 1024]
    sizes = [size] if size else [(224, 224), *own, (32, 32), (28, 28)]
    numbers = [channels] if channels else [3, *(x for x in used.values() if whole(x) and x < 5), 1]
    tried = list(dict.fromkeys((sides, number) for number in numbers for sides in sizes))
    found = next((images for images in tried if runs(model, *images)), None)
    fails = "" if found else " (it fails on that and others: is --image-size another?)"
    found = found or tried[0]
    if size is None:
        choice.guessed["image"] = "×".join(map(str, found[0])) + fails
    if channels is None and found[1] != 3:
        choice.guessed["image channels"] = found[1]
    return found


def runs(model: nn.Module, size: tuple[int, int], channels: int) -> bool:
    """Tell whether a model takes such images; it is afterwards as it was."""
    like = next((x for x in model.parameters() if x.is_floating_point()), torch.empty(0))
    images = torch.zeros(2, channels, *size, dtype=like.dtype, device=like.device)
    try:
        with unchanged(model), torch.no_grad(), redirect_stdout(io.StringIO()):
            model.eval()(images)
    except Exception:
        return False
    return True
