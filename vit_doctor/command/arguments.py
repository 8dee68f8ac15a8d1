"""The arguments of a model whose class nobody has seen before: names and their usual values."""

import ast
import dataclasses
import inspect
from collections.abc import Callable, Collection, Mapping
from types import SimpleNamespace
from typing import Any

from torch import nn

# What arguments are usually called, and their values in ViT-B/16 (Dosovitskiy et al. 2021).
SIZE = ("image_size", "img_size", "input_size")
CHANNELS = ("in_channels", "in_chans", "channels", "num_channels")
USUAL: dict[tuple[str, ...], Any] = {
    SIZE: 224,
    CHANNELS: 3,
    ("patch_size", "patch"): 16,
    ("num_classes", "n_classes", "num_labels", "classes"): 1000,
    ("embed_dim", "dim", "emb_dim", "hidden_dim", "hidden_size", "d_model", "width"): 768,
    ("depth", "num_layers", "n_layers", "layers", "num_blocks", "num_hidden_layers"): 12,
    ("num_heads", "heads", "n_heads", "nhead", "num_attention_heads"): 12,
    ("mlp_ratio",): 4.0,
    ("mlp_dim", "mlp_hidden_dim", "intermediate_size", "dim_feedforward"): 3072,
    ("head_dim", "dim_head"): 64,
    ("qkv_bias",): True,
    ("dropout", "drop", "drop_rate", "dropout_rate", "emb_dropout"): 0.0,
    ("pool",): "cls",
    ("norm_eps", "layer_norm_eps", "eps"): 1e-6,
}
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class UnfitError(Exception):
    """There is no model to examine, for a reason that stands in the message."""


@dataclasses.dataclass(frozen=True)
class Task:
    """What to examine, and how.

    Args:
        name: of the class in the file, "" for the one called ViT, else the only one.
        size: (height, width) of the images in pixels; None for the class's own, else 224.
        channels: of the images; None for the class's own, else 3.
        given: argument values, as text, by their names.
        limit: seconds, None for no limit. They count from where PyTorch is loaded.
        memory: MB on top of what PyTorch itself takes, None for no limit.
    """

    name: str = ""
    size: tuple[int, int] | None = None
    channels: int | None = None
    given: Mapping[str, str] = dataclasses.field(default_factory=dict)
    limit: float | None = None
    memory: int | None = None


def make(thing: Any, task: Task) -> tuple[nn.Module, tuple[int, int], int]:
    """Call a class or function, unless it is a model already.

    Returns:
        The model, and the (height, width) and the channels of the images for it.
    """
    used: dict[str, Any] = {}
    unused = set(task.given)
    if not isinstance(thing, nn.Module) and not callable(thing):
        raise UnfitError(f"it is {type(thing).__name__}, not a class, a function or a model")
    values = {} if isinstance(thing, nn.Module) else arguments(thing, task, used, unused)
    if unused:
        takes = f"it takes {', '.join(used)}" if used else "it takes none"
        raise UnfitError(f"it has no argument {min(unused)}, which --set names: {takes}")
    model = thing if isinstance(thing, nn.Module) else thing(**values)
    if not isinstance(model, nn.Module):
        raise UnfitError(f"calling it gave {type(model).__name__}, not an nn.Module")
    height, width = pair(next((used[n] for n in SIZE if n in used), None)) or (224, 224)
    channels = next((used[n] for n in CHANNELS if isinstance(used.get(n), int)), 3)
    return model, task.size or (height, width), task.channels or channels


def arguments(
    thing: Callable, task: Task, used: dict[str, Any], unused: set[str]
) -> dict[str, Any]:
    """The arguments to call a class or function with.

    What --set says comes first, then the images' size and channels, then its own defaults, then the
    usual values. A `config` is the dataclass that its annotation names, filled likewise, or else
    an object that has all the usual names.

    Args:
        thing: to call.
        task: what the command line says.
        used: takes all values that it will see, its own defaults too.
        unused: the names of --set; those that are taken leave it.

    Raises:
        UnfitError: a value is not known.
    """
    try:
        known = inspect.signature(thing, eval_str=True).parameters
    except (NameError, TypeError, AttributeError, SyntaxError):  # an annotation that is only text
        known = inspect.signature(thing).parameters
    several = [name for name, each in known.items() if each.kind is each.VAR_KEYWORD]
    plain = {name: each for name, each in known.items() if each.kind in NAMED}
    values = told(plain, task, unused)
    for name, argument in plain.items():
        if name in values or argument.default is not argument.empty:
            used[name] = values.get(name, argument.default)
        elif isinstance(kind := argument.annotation, type) and dataclasses.is_dataclass(kind):
            values[name] = kind(**arguments(kind, task, used, unused))
        elif name in ("config", "cfg", "args"):
            values[name] = namespace(task)
            used |= vars(values[name])
            unused.clear()
        elif name in (value := usual(task)):
            values[name] = used[name] = value[name]
        else:
            raise UnfitError(f"no value is known for its argument {name}: give --set {name}=VALUE")
    if several:
        values |= {name: literal(task.given[name]) for name in unused}
        unused.clear()
    return values


def told(names: Collection[str], task: Task, unused: set[str]) -> dict[str, Any]:
    """The values that the command line gives to arguments of these names.

    --set depth=2 means num_layers too, where there is no depth.
    """
    values: dict[str, Any] = {}
    for name in names:
        group = alike(name)
        if (group == SIZE and task.size) or (group == CHANNELS and task.channels):
            values[name] = usual(task)[name]
        for given, text in task.given.items():
            if given == name or (given in group and given not in names):
                values[name] = literal(text)
                unused.discard(given)
    return values


def namespace(task: Task) -> SimpleNamespace:
    """A configuration with all the usual names, and those of --set."""
    values = usual(task)
    for given, text in task.given.items():
        values |= dict.fromkeys(alike(given), literal(text))
    return SimpleNamespace(**values)


def usual(task: Task) -> dict[str, Any]:
    """The usual values by their names, with the size and channels that the command line says."""
    values = {name: value for group, value in USUAL.items() for name in group}
    if task.size:
        height, width = task.size
        values |= dict.fromkeys(SIZE, height if height == width else (height, width))
    if task.channels:
        values |= dict.fromkeys(CHANNELS, task.channels)
    return values


def alike(name: str) -> tuple[str, ...]:
    """The names that mean the same as this one, itself too."""
    return next((group for group in USUAL if name in group), (name,))


def pair(size: Any) -> tuple[int, int] | None:
    """(height, width) of what a class calls its image size, None where that is something else."""
    sides = (size, size) if isinstance(size, int) else size
    good = isinstance(sides, (tuple, list)) and [type(side) for side in sides] == [int, int]
    return (sides[0], sides[1]) if good else None


def literal(text: str) -> Any:
    """The value of a text such as 2, 0.1, True or (32, 16); any other text is itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
