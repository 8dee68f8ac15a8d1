"""The arguments of a model whose class nobody has seen before: names and their usual values."""

import ast
import inspect
from argparse import Namespace
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import MISSING, dataclass, field, is_dataclass
from typing import Any

from .config import CONFIG, Settings, is_config, reach, values_in
from .usual import fitting, synonyms

BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
NONE = inspect.Parameter.empty


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

    @property
    def given(self) -> dict[str, Any]:
        """The values of --set, and the images' size and channels if they are given."""
        given: dict[str, Any] = {}
        if self.size:
            height, width = self.size
            given["image_size"] = height if height == width else (height, width)
        if self.channels:
            given["in_channels"] = self.channels
        return given | {name: literal(text) for name, text in self.settings.items()}


@dataclass
class Choice:
    """The arguments for one call, chosen for a task.

    What --set says comes first, then the images' size and channels, then the defaults of the class,
    then the usual values. A `config` is the dataclass that its annotation names, filled likewise,
    or else an object that has all the usual names; --set reaches into it.
    """

    task: Task
    used: dict[str, Any] = field(default_factory=dict)  # all that the call will see
    guessed: dict[str, Any] = field(default_factory=dict)  # what nobody gave
    missing: list[str] = field(default_factory=list)  # arguments without a known value
    unused: set[str] = field(default_factory=set)  # names of --set that found no argument

    def __post_init__(self):
        self.unused = set(self.task.settings)

    def arguments(self, target: Callable) -> dict[str, Any]:
        """Give the arguments to call a class or function with."""
        parameters = parameters_of(target)
        named = {name: x for name, x in parameters.items() if x.kind in BY_NAME}
        names = tuple(named)
        values = self.from_task(names)
        defaults = {n: default_of(target, x) for n, x in named.items() if x.default is not NONE}
        known = {name: x for name, x in defaults.items() if x is not None}
        known |= {name.rpartition(".")[2]: x for name, x in self.task.given.items()} | values
        usual = fitting({synonyms(name, names)[0]: x for name, x in known.items()})
        for name, parameter in named.items():
            kind = parameter.annotation
            role = synonyms(name, names)[0]
            written = isinstance(kind, type) and is_dataclass(kind)
            if name in values:
                self.used[name] = values[name]
            elif written and (name not in defaults or (not defaults[name] and self.unused)):
                values[name] = kind(**self.arguments(kind))
            elif name in defaults:
                self.reached(name, defaults[name], values)
            elif name in CONFIG or getattr(kind, "__origin__", kind) in (dict, Namespace):
                values[name] = Settings(self.task.given, self.guessed)
                self.used |= values[name]
                self.unused.clear()
            elif role in usual:
                values[name] = self.used[name] = self.guessed[name] = usual[role]
            else:
                self.missing.append(name)
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
            values |= {name: literal(self.task.settings[name]) for name in self.unused}
            self.unused.clear()
        return values

    def reached(self, name: str, default: Any, values: dict[str, Any]) -> None:
        """Use an argument's own default; of a config, with what --set has for its parts."""
        if not is_config(default):
            self.used[name] = default
            return
        values[name] = deepcopy(default)
        for setting, value in self.task.given.items():
            path = f".{setting}".rpartition(f".{name}.")[2].strip(".").split(".")
            if reach(values[name], path, value):
                self.unused.discard(setting)
        self.used |= values_in(values[name])

    def from_task(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Give the values that the command line has for arguments of these names.

        --set depth=2 means num_layers too, where there is no depth.
        """
        values = {}
        for name in names:
            group = synonyms(name, names)
            for setting, value in self.task.given.items():
                plain = setting.rpartition(".")[2]
                if plain == name or (plain in group and plain not in names):
                    values[name] = value
                    self.unused.discard(setting)
        return values


def parameters_of(target: Callable) -> Mapping[str, inspect.Parameter]:
    """Give the parameters of a class or function, with annotations as far as they are there."""
    try:
        return inspect.signature(target, eval_str=True).parameters
    except (NameError, TypeError, AttributeError, SyntaxError):  # an annotation that is only text
        return inspect.signature(target).parameters


def default_of(target: Callable, parameter: inspect.Parameter) -> Any:
    """Give the default of a parameter, made where a dataclass has a factory for it."""
    fields = target.__dataclass_fields__ if is_dataclass(target) else {}
    factory = fields[parameter.name].default_factory if parameter.name in fields else MISSING
    return parameter.default if factory is MISSING else factory()


def literal(text: str) -> Any:
    """Give the value of a text such as 2, 0.1, True or (32, 16); any other text is itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
