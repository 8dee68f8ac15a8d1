"""The arguments of a model whose class nobody has seen before: names and their usual values."""

import ast
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, is_dataclass
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
BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class UnfitError(Exception):
    """There is no model to examine, for a reason that stands in the message."""


@dataclass(frozen=True)
class Task:
    """What to examine, and how."""

    name: str = ""  # of the class in the file, "" for the one called ViT, else the only one
    size: tuple[int, int] | None = None  # (height, width) in pixels; None: the class's, else 224
    channels: int | None = None  # None: the class's, else 3
    settings: Mapping[str, str] = field(default_factory=dict)  # argument values, as text
    limit: float | None = None  # seconds, from where PyTorch is loaded; None for no limit
    memory: int | None = None  # MB on top of what PyTorch itself takes; None for no limit


def make(target: Any, task: Task) -> tuple[nn.Module, tuple[int, int], int]:
    """Call a class or function, unless it is a model already.

    Give the model, and the (height, width) and the channels of the images for it.
    """
    used: dict[str, Any] = {}
    unused = set(task.settings)
    is_model = isinstance(target, nn.Module)
    if not callable(target):
        raise UnfitError(f"it is {type(target).__name__}, not a class, a function or a model")
    values = {} if is_model else arguments(target, task, used, unused)
    if unused:
        takes = ", ".join(used) or "none"
        raise UnfitError(f"it has no argument {min(unused)}, which --set names: it takes {takes}")
    model = target if is_model else target(**values)
    if not isinstance(model, nn.Module):
        raise UnfitError(f"calling it gave {type(model).__name__}, not an nn.Module")
    size = pair(next((used[name] for name in SIZE if name in used), None)) or (224, 224)
    channels = next((used[name] for name in CHANNELS if isinstance(used.get(name), int)), 3)
    return model, task.size or size, task.channels or channels


def arguments(
    target: Callable, task: Task, used: dict[str, Any], unused: set[str]
) -> dict[str, Any]:
    """Choose the arguments to call a class or function with.

    What --set says comes first, then the images' size and channels, then its own defaults, then the
    usual values. A `config` is the dataclass that its annotation names, filled likewise, or else
    an object that has all the usual names.

    `used` takes all values that it will see, its own defaults too; from `unused`, the names of
    --set, goes what is taken. An UnfitError says of which argument no value is known.
    """
    try:
        parameters = inspect.signature(target, eval_str=True).parameters
    except (NameError, TypeError, AttributeError, SyntaxError):  # an annotation that is only text
        parameters = inspect.signature(target).parameters
    names = [name for name, parameter in parameters.items() if parameter.kind in BY_NAME]
    values = from_task(names, task, unused)
    for name in names:
        kind, default = parameters[name].annotation, parameters[name].default
        if name in values or default is not inspect.Parameter.empty:
            used[name] = values.get(name, default)
        elif isinstance(kind, type) and is_dataclass(kind):
            values[name] = kind(**arguments(kind, task, used, unused))
        elif name in ("config", "cfg", "args"):
            fields = usual(task)
            for setting, text in task.settings.items():
                fields |= dict.fromkeys(synonyms(setting), literal(text))
            values[name] = SimpleNamespace(**fields)
            used |= fields
            unused.clear()
        elif name in usual(task):
            values[name] = used[name] = usual(task)[name]
        else:
            raise UnfitError(f"no value is known for its argument {name}: give --set {name}=VALUE")
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        values |= {name: literal(task.settings[name]) for name in unused}
        unused.clear()
    return values


def from_task(names: Collection[str], task: Task, unused: set[str]) -> dict[str, Any]:
    """Give the values that the command line has for arguments of these names.

    --set depth=2 means num_layers too, where there is no depth.
    """
    values: dict[str, Any] = {}
    for name in names:
        group = synonyms(name)
        if (group == SIZE and task.size) or (group == CHANNELS and task.channels):
            values[name] = usual(task)[name]
        for setting, text in task.settings.items():
            if setting == name or (setting in group and setting not in names):
                values[name] = literal(text)
                unused.discard(setting)
    return values


def usual(task: Task) -> dict[str, Any]:
    """Give the usual values by their names, with the size and channels of the command line."""
    values = {name: value for group, value in USUAL.items() for name in group}
    if task.size:
        height, width = task.size
        values |= dict.fromkeys(SIZE, height if height == width else (height, width))
    if task.channels:
        values |= dict.fromkeys(CHANNELS, task.channels)
    return values


def synonyms(name: str) -> tuple[str, ...]:
    """Give the names that mean the same as this one, itself too."""
    return next((group for group in USUAL if name in group), (name,))


def pair(size: Any) -> tuple[int, int] | None:
    """Give (height, width) of what a class calls its image size; None if it is something else."""
    sides = (size, size) if isinstance(size, int) else size
    good = isinstance(sides, (tuple, list)) and [type(side) for side in sides] == [int, int]
    return (sides[0], sides[1]) if good else None


def literal(text: str) -> Any:
    """Give the value of a text such as 2, 0.1, True or (32, 16); any other text is itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
