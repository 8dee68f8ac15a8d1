"""Lesson 10: two lists of names, what slips cost, and what weights are worth for few pictures.

The last two draw what `python -m tests.bench_published` measured once and stored.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .figures import FAINT, INK, KEY, PATCH, QUERY, VALUE, dots, new_axes

FILE = Path(__file__).with_name("published.json")


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


# By kind, the slips of `published.json`, and the colour of their bars.
SLIPS = {
    "in the model": ("eps 1e-12", "GELU by tanh", "quick GELU", "8 heads", "2 heads",
                     "rows as (h d qkv)"),
    "in the pictures": ("ImageNet's mean, std", "blue, green, red", "left at 0…1",
                        "36 pixels, cut to 32"),
}  # fmt: skip
COLOURS = dict(zip(SLIPS, (PATCH, QUERY), strict=True))


def stored(part: str) -> dict[str, Any]:
    """One part of what was measured and stored: "slips" or "onward"."""
    return json.loads(FILE.read_text("utf-8"))[part]


def slip_costs(*kinds: str) -> None:
    """For each slip of these kinds, how many photos our photo model still names correctly.

    Beside each bar stand its share, how many answers changed, and by how much a logit at most.
    """
    measured = stored("slips")
    count, rows = measured["photos"], measured["rows"]
    colours = {name: COLOURS[kind] for kind in kinds for name in SLIPS[kind]}
    ax = new_axes(9, 0.28 * len(colours) + 1.4)
    shares = [rows[name]["right"] / count for name in ("as published", *colours)]
    lines = range(len(shares))
    ax.barh(lines, shares, 0.62, color=[INK, *colours.values()])
    ax.axvline(shares[0], color=FAINT, lw=1, zorder=0)
    for line, share in zip(lines, shares, strict=True):
        box = dict(facecolor="white", edgecolor="none", pad=1)
        ax.text(share + 0.01, line, f"{share:.1%}", va="center", size=9, bbox=box)
    for x, title, key in ((1.22, "answers changed", "changed"), (1.5, "logits off by", "off")):
        ax.text(x, -0.8, title, ha="right", va="center", size=9, weight="bold")
        for line, name in enumerate(colours, start=1):
            ax.text(x, line, digit(rows[name][key]), ha="right", va="center", size=9)
    ax.set_yticks(lines, ["as published", *colours])
    ax.set(xlim=(0, 1.52), ylim=(len(shares) - 0.4, -1.2))
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25%", "50%", "75%", "100%"])
    ax.set_xlabel(f"of {count:,} photos of CIFAR-10, named correctly", loc="left")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_bounds(0, 1)


def digit(value: float) -> str:
    """A count whole, another number to its first digit: "1,613", "0.00009"."""
    return f"{value:,}" if isinstance(value, int) else f"{float(f'{value:.1g}'):f}".rstrip("0.")


def few_labels() -> None:
    """Few pictures of six things, used in several ways: a dot for each seed, a panel for each
    number of pictures."""
    import matplotlib.pyplot as plt

    measured = stored("onward")
    panels = measured["rows"]
    ways = len(next(iter(panels.values())))
    all_ = [100 * value for rows in panels.values() for values in rows.values() for value in values]
    limits = (min(all_) - 4, max(all_) + 2)
    size = (9.4, 0.34 * ways + 1.1)
    _, axes = plt.subplots(1, len(panels), figsize=size, layout="constrained")
    for ax, (each, rows) in zip(axes, panels.items(), strict=True):
        shares = {name: [100 * value for value in values] for name, values in rows.items()}
        where = f"right in % of {measured['tested']} other drawings"
        dots(shares, f"{each} pictures of each thing", where, limits=limits, form="{:.0f}", ax=ax)
        if ax is not axes[0]:
            ax.set_yticklabels([])
