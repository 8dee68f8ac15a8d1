"""A module of a learner's whose parameters have other names than the course's."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import nn

from .compare import Parts

Shapes = Mapping[str, torch.Size]


def renamed(answer: Callable, names: Mapping[str, str]) -> Callable:
    """Make a class, as it is called, whose modules give their parameters by these names."""

    def make(*sizes: Any) -> nn.Module:
        layer = answer(*sizes)
        give = layer.named_parameters
        vars(layer)["named_parameters"] = lambda *_, **__: [
            (names.get(name, name), parameter) for name, parameter in give()
        ]
        return layer

    return make


def shapes_in(result: Any) -> Shapes:
    """Give the shapes of a module's parameters by name, where a result holds them, else none."""
    shapes = result[0] if isinstance(result, Parts) else result
    named = isinstance(shapes, dict) and all(isinstance(x, torch.Size) for x in shapes.values())
    return shapes if named else {}


def new_names(theirs: Shapes, ours: Shapes) -> dict[str, str]:
    """Find for each name that is not ours the one of ours that it stands for: of its shape.

    Where there are several, it is the one whose end is alike, or else the first.
    """
    names: dict[str, str] = {}
    for alike in (4, 3, 2, 1, 0):  # so many parts of a name, from its end
        for name, shape in theirs.items():
            left = [n for n in ours if ours[n] == shape and n not in {*theirs, *names.values()}]
            ends = [n for n in left if n.split(".")[::-1][:alike] == name.split(".")[::-1][:alike]]
            if ends and name not in {*ours, *names}:
                names[name] = ends[0]
    return names


def in_words(every: Iterable[Mapping[str, str]]) -> str:
    """Say what is to be called otherwise, each module once."""
    told: dict[str, None] = {}
    for theirs, ours in (pair for names in every for pair in names.items()):
        a, b = theirs.split("."), ours.split(".")
        while min(len(a), len(b)) > 1 and a[-1] == b[-1]:
            a, b = a[:-1], b[:-1]
        told[f"`{'.'.join(b)}`, not `{'.'.join(a)}`"] = None
    return f"call it {'; '.join([*told][:5])}: weights find their place by this name"
