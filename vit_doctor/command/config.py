"""Configs: the usual values by attribute, key or section, and --set that reaches into them."""

import re
from argparse import Namespace
from collections.abc import Collection, Mapping
from dataclasses import is_dataclass
from types import SimpleNamespace
from typing import Any

from .usual import USUAL, fitting, synonyms

CONFIG = (
    *("config", "cfg", "conf", "args", "opt", "opts", "hparams", "hps", "params", "settings"),
    *("options", "configs", "model_config", "model_cfg", "model_args", "vit_config"),
)
SECTIONS = (
    *("model", "vit", "net", "network", "arch", "encoder", "transformer", "data", "dataset"),
    *("image", "input", "train", "training", "embedding", "attention", "mlp", "backbone", "block"),
)


class Settings(dict):
    """A config that nobody wrote: it has all usual names, by attribute and by key.

    A section, such as config.model, is the config itself once more. What has no known value raises.
    `given` are the values of --set: "model.dim" is dim of a section, and what one name is given
    holds for all that mean the same. `guessed` takes what was asked for and nobody gave.
    """

    def __init__(self, given: Mapping[str, Any], guessed: dict[str, Any]):
        plain = {name.rpartition(".")[2].lower(): value for name, value in given.items()}
        values = fitting({synonyms(name)[0]: value for name, value in plain.items()})
        super().__init__({name: values[group[0]] for group in USUAL for name in group} | plain)
        own = {other for name in plain for other in synonyms(name)}
        sections = {part.lower() for name in given for part in name.split(".")[:-1]}
        self.__dict__.update(_own=own, _sections={*SECTIONS, *sections}, _guessed=guessed)

    def __getitem__(self, name: Any) -> Any:
        plain = name.lower() if isinstance(name, str) else name
        if plain not in self and plain in self._sections:
            return self
        if plain not in self:
            raise KeyError(f"no value is known for {name} of the config")
        if plain not in self._own:
            self._guessed[plain] = super().__getitem__(plain)
        return super().__getitem__(plain)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def get(self, name: Any, default: Any = None) -> Any:
        """Give what --set says, else the default, else the usual value."""
        known = default is None and (name in self or name in self._sections)
        return self[name] if name in self._own or known else default

    def unknown(self, source: str, name: str) -> list[str]:
        """List what code asks a config of this name for, such as "model.dim", and has no value."""
        source = re.sub(r"\[['\"](\w+)['\"]\]", r".\1", source)
        paths = re.findall(rf"\b{name}\.((?:\w+\.)*\w+)\b(?!\()", source)
        names = {*self, *self._sections}
        return [path for path in dict.fromkeys(paths) if not names >= {*path.lower().split(".")}]


def is_config(value: Any) -> bool:
    """Tell whether a value has parts by names: a dict, a namespace, an object of a dataclass."""
    written = is_dataclass(value) and not isinstance(value, type)
    return isinstance(value, (dict, Namespace, SimpleNamespace)) or written


def parts_of(config: Any) -> dict[str, Any]:
    """Give the parts of a config by their names; what is written there is written to it."""
    return config if isinstance(config, dict) else vars(config)


def reach(config: Any, path: Collection[str], value: Any) -> bool:
    """Set the value at a path of names in a config; tell whether there is such a name.

    A path of one name finds it, or what means the same, at whatever depth.
    """
    parts = parts_of(config)
    first, *rest = path
    if rest:
        return is_config(parts.get(first)) and reach(parts[first], rest, value)
    for name in (first, *synonyms(first)):
        if name in parts:
            parts[name] = value
            return True
    return any(reach(part, path, value) for part in parts.values() if is_config(part))


def values_in(config: Any) -> dict[str, Any]:
    """Give all values of a config that stand under names, those of its sections too."""
    values: dict[str, Any] = {}
    for name, part in parts_of(config).items():
        values |= values_in(part) if is_config(part) else {str(name).lower(): part}
    return values
