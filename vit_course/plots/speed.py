"""Lesson 13: what `python -m tests.bench_lesson` measured once and stored, drawn from its file.

Each drawing says below itself on how many cores, and what was measured.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .figures import FAINT, INK, PATCH, QUERY, VALUE, curves, new_axes

FILE = Path(__file__).with_name("measured.json")
WORDS = {1: "one", 2: "two", 4: "four", 8: "eight"}
LEVEL = 0.03  # a ratio within so much of 1 is neither faster nor slower


def stored(name: str) -> dict[str, Any]:
    """One measurement by its name; "made" says how all were made."""
    return json.loads(FILE.read_text("utf-8"))[name]


def mark(figure: Any, what: str) -> None:
    """Write below a figure where its numbers come from."""
    cores = stored("made")["cores"]
    text = f"measured on {WORDS.get(cores, cores)} CPU core{'s' * (cores != 1)}, {what}"
    figure.supxlabel(text, size=9, color=INK)


def work_and_time() -> None:
    """For each model, each part's share of the multiply-adds beside its share of the time.

    The title says how many times as long the whole takes as its matrix products alone.
    """
    import matplotlib.pyplot as plt

    measured = stored("parts")
    sizes = measured["sizes"]
    figure, axes = plt.subplots(
        1, len(sizes), figsize=(8.4, 3.9), sharey=True, squeeze=False, layout="constrained"
    )
    most = max(
        value for shares in sizes.values() for k in ("work", "time") for value in shares[k].values()
    )
    for ax, (size, shares) in zip(axes[0], sizes.items(), strict=True):
        parts = list(shares["time"])
        for kind, shift, colour, hatch in (("work", -0.2, PATCH, ""), ("time", 0.2, QUERY, "///")):
            shown = {
                row: shares[kind][part] for row, part in enumerate(parts) if part in shares[kind]
            }
            places = [row + shift for row in shown]
            look: Any = dict(color=colour, hatch=hatch, edgecolor="white", lw=0)
            name = "multiply-adds" if kind == "work" else "time"
            ax.barh(places, list(shown.values()), 0.38, label=name, **look)
            for place, value in zip(places, shown.values(), strict=True):
                ax.text(value, place, f" {value:.0%}", va="center", size=9, color=INK)
        ax.set_yticks(range(len(parts)), parts)
        _, over, _ = shares["of_its_products"]
        title = f"{size}: {over:.2f} times its bare products"
        ax.set(title=title, xlim=(0, most * 1.18), ylim=(len(parts) - 0.4, -0.6), xticks=[])
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right", "bottom"]].set_visible(False)
    axes[0, 0].legend(loc="lower right", frameon=False)
    mark(figure, f"one thread: forward pass, batch {measured['batch']}")


def token_costs() -> None:
    """Time and memory against the number of tokens: attention in two forms, a block's rest.

    Grey guides grow as N and as N². Both axes are logarithmic.
    """
    import matplotlib.pyplot as plt

    measured = stored("tokens")
    tokens = measured["tokens"]
    names = {
        "explicit": "attention, explicit",
        "fused": "attention, fused",
        "rest": "rest of the block",
    }
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.9), layout="constrained")
    titles = {"time": "Time of the forward pass", "kept": "Memory kept for backward"}
    for ax, (kind, title) in zip(axes, titles.items(), strict=True):
        lowest = min(min(values) for values in measured[kind].values())
        for power, dash in ((1, (0, (1, 2))), (2, (0, (4, 3)))):
            guide = [0.6 * lowest * (count / tokens[0]) ** power for count in tokens]
            ax.plot(tokens, guide, color=FAINT, ls=dash, lw=1.2, zorder=0)
            word = "N" if power == 1 else "N²"
            end = (tokens[-2], guide[-2])
            ax.annotate(word, end, (4, -4), textcoords="offset points", va="top", color="#777777")
        series = {
            names[form]: dict(zip(tokens, values, strict=True))
            for form, values in measured[kind].items()
        }
        curves(series, title, "tokens", "", log="xy", ax=ax)
    axes[0].set_ylabel(f"1: rest of the block, {tokens[0]} tokens")
    what = f"one thread: a block of width {measured['embed_dim']} with {measured['heads']} heads"
    mark(figure, f"{what}, batch {measured['batch']}")


def time_ratios(*kinds: str) -> None:
    """Time after a change over time before it: a row each, its median and the middle half.

    A dot is faster, a diamond slower, and a ring neither; the axis is logarithmic. Where accuracy
    or peak memory was measured beside it, the row's name says them.

    Args:
        kinds: which groups of changes to draw, by default all that are stored: "forward",
            "merging", "training", "processes", "reading".

    Raises:
        ValueError: no group of that name.
    """
    groups = stored("ratios")
    if unknown := set(kinds) - set(groups):
        raise ValueError(f"no group {unknown.pop()!r}; there are {', '.join(groups)}")
    groups = {kind: groups[kind] for kind in kinds or groups}
    rows: list[tuple[str, Sequence[float] | None]] = []
    for group in groups.values():
        rows.append((group["what"], None))
        for name, ratio in group["rows"].items():
            if "accuracy" in group:
                name += f", {group['accuracy'][name]:.1%} right"
            if "peak" in group:
                name += f", peak memory {group['peak'][name]:.0%}"
            rows.append((name, ratio))
    ax = new_axes(8.4, 0.27 * len(rows) + 1.0)
    for row, (_, ratio) in enumerate(rows):
        if ratio is None:
            continue
        low, middle, high = ratio
        level = abs(middle - 1) <= LEVEL
        colour, marker = (VALUE, "o") if middle < 1 else (QUERY, "D")
        colour, marker = (INK, "o") if level else (colour, marker)
        ax.axhline(row, color=FAINT, lw=0.6, zorder=0)
        ax.plot([low, high], [row, row], color=colour, lw=3, alpha=0.45, solid_capstyle="butt")
        ax.plot(middle, row, marker, color=colour, ms=6, mfc="white" if level else colour)
        place: Any = dict(xycoords=("axes fraction", "data"), textcoords="offset points")
        ax.annotate(f"{middle:.2f}", (1, row), (6, 0), va="center", size=9, **place)
    ax.axvline(1, color=INK, lw=1, zorder=0)
    ax.set_xscale("log")
    ratios = [value for _, ratio in rows if ratio for value in ratio]
    least, most = min(*ratios, 0.5) / 1.15, max(*ratios, 2) * 1.15
    ticks = [tick for tick in (0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16) if least <= tick <= most]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_yticks(range(len(rows)), [name for name, _ in rows])
    for label, (_, ratio) in zip(ax.get_yticklabels(), rows, strict=True):
        label.set_weight("bold" if ratio is None else "normal")
    ax.set(xlim=(least, most), ylim=(len(rows) - 0.4, -0.6))
    ax.set_xlabel("← faster    time after the change over time before it    slower →")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    made = stored("made")
    mark(ax.figure, f"median and middle half of {made['turns']} or more turns")


def batch_speeds() -> None:
    """Images a second against the size of the batch, in one thread and in two."""
    measured = stored("batches")
    sizes = measured["batch"]
    ax = new_axes(7, 3.4)
    series = {
        name: dict(zip(sizes, values, strict=True))
        for name, values in measured["images_a_second"].items()
    }
    curves(
        series, "", "images in a batch", "images a second\n(1: one image, one thread)", "x", ax=ax
    )
    ax.set_ylim(0)
    mark(ax.figure, measured["what"])
