"""Lesson 10: two lists of names, pictures prepared in several ways, and the maps of many heads."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from .figures import INK, KEY, QUERY, VALUE, WEIGHTS, new_axes, picture
from .small_maps import framed


def name_lines(names: Mapping[str, tuple[str, ...]], start: str, end: str) -> None:
    """Two columns of names, theirs on the left and ours on the right, joined by lines.

    Args:
        names: for each of ours, one of theirs, or three: query, key and value.
        start: only those of ours that begin so are drawn, such as "blocks.0.".
        end: and end so, such as "weight". What all names of a column begin with is left out.
    """
    drawn = {ours: group for ours, group in names.items() if ours.startswith(start)}
    drawn = {ours: group for ours, group in drawn.items() if ours.endswith(end)}
    theirs = [name for group in drawn.values() for name in group]
    common = theirs[0]
    while not all(name.startswith(common) for name in theirs):  # one word less, from the right
        common = common.rstrip(".").rpartition(".")[0] + "." if "." in common[:-1] else ""
    ax = new_axes(8.6, 0.33 * len(theirs) + 0.6)
    spread = (len(theirs) - 1) / max(len(drawn) - 1, 1)
    line = 0
    text: Any = dict(family="monospace", size=10, va="center")
    for row, (ours, group) in enumerate(drawn.items()):
        place = row * spread
        ax.text(1.32, place, ours.removeprefix(start), **text)
        colours = (QUERY, KEY, VALUE) if len(group) == 3 else (INK,)
        for name, colour in zip(group, colours, strict=True):
            ax.text(1, line, name.removeprefix(common), ha="right", **text)
            ax.plot((1.01, 1.31), (line, place), color=colour, lw=2.5 if len(group) == 3 else 1)
            line += 1
    ax.text(1, -1.2, f"in the file: {common}…", ha="right", va="center", weight="bold")
    ax.text(1.32, -1.2, f"in your class: {start}…", va="center", weight="bold")
    ax.set(xlim=(0.2, 2.0), ylim=(len(theirs) - 0.4, -1.8))
    ax.axis("off")


def prepared(ways: Mapping[str, Tensor], notes: Mapping[str, str], count: int = 2) -> None:
    """What a model gets of the same pictures, prepared in several ways: a column for each.

    All are drawn on one scale, -1 white and 1 black; what lies beyond is white or black too.

    Args:
        ways: by name, (n, 1, H, W).
        notes: by name, what stands below the column.
        count: how many of the pictures are shown, below each other.
    """
    import matplotlib.pyplot as plt

    size = (1.6 * len(ways), 1.35 * count + 0.6)
    _, axes = plt.subplots(count, len(ways), figsize=size, layout="constrained", squeeze=False)
    for column, (name, images) in zip(axes.T, ways.items(), strict=True):
        column[0].set_title(name, size=10)
        for ax, image in zip(column, images, strict=False):
            ax.imshow(image[0].detach().cpu().numpy(), cmap="gray_r", vmin=-1, vmax=1)
            framed(ax)
        column[-1].set_xlabel(notes[name])


def head_maps(image: Tensor, rows: Mapping[str, Tensor]) -> None:
    """A photo, and beside it a row of maps for each model, one for each head, on one scale.

    Args:
        image: (C, H, W), from 0 to 1.
        rows: by the model's name, (h, rows, cols), the same h for all.
    """
    import matplotlib.pyplot as plt

    low = min(maps.min().item() for maps in rows.values())
    high = max(maps.max().item() for maps in rows.values())
    heads = max(map(len, rows.values()))
    size = (1.35 * (heads + 1) + 0.8, 1.5 * len(rows) + 0.2)
    figure, axes = plt.subplots(
        len(rows), heads + 1, figsize=size, layout="constrained", squeeze=False
    )
    drawn: Any = None
    for line, (name, maps) in zip(axes, rows.items(), strict=True):
        picture(image, name, ax=line[0])
        for head, (ax, seen) in enumerate(zip(line[1:], maps, strict=True)):
            drawn = ax.imshow(seen.detach().cpu().numpy(), cmap=WEIGHTS, vmin=low, vmax=high)
            framed(ax)
            ax.set_title(f"head {head}", size=9)
    figure.colorbar(drawn, ax=axes, shrink=0.8)
