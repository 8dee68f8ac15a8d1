"""Lesson 08's drawings: measurements as dots, one a run, and how far apart luck puts them."""

from collections.abc import Sequence
from typing import Any

from .figures import CLS, FAINT, INK, PATCH, new_axes


def dots(
    runs: dict[str, Sequence[float]],
    title: str = "",
    luck: float | None = None,
    xlabel: str = "right answers in %",
    ax: Any = None,
) -> None:
    """Draw one row for each variant: a dot for each run, a stroke and its number at their mean.

    The axis runs from the lowest dot to the highest, not from 0: what is asked is how far apart
    they lie, not how high.

    Args:
        runs: a name and its results, one number a run; the first is what others are held against.
        luck: the gap between two means that luck alone makes; a band of so much is drawn on both
            sides of the first row's mean.
    """
    ax = ax or new_axes(8, 0.34 * len(runs) + 1.1)
    means = [sum(values) / len(values) for values in runs.values()]
    if luck is not None:
        ax.axvspan(means[0] - luck, means[0] + luck, color=CLS, alpha=0.22, lw=0)
    for row, (values, mean) in enumerate(zip(runs.values(), means, strict=True)):
        ax.axhline(row, color=FAINT, lw=0.6, zorder=0)
        ax.plot([mean, mean], [row - 0.32, row + 0.32], color=INK, lw=1.6)
        ax.plot(values, [row] * len(values), "o", color=PATCH, markersize=6, mec="white", mew=0.7)
        text = f"mean {mean:.1f}"
        place = dict(xycoords=("axes fraction", "data"), textcoords="offset points")
        ax.annotate(text, (1, row), (6, 0), va="center", color=INK, size=9, **place)
    ax.set_yticks(range(len(runs)), list(runs))
    ax.set(title=title, xlabel=xlabel, ylim=(len(runs) - 0.4, -0.6))
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)


def gaps(values: Sequence[float], limit: float, xlabel: str = "", ax: Any = None) -> None:
    """Draw how often each gap came, and where the largest twentieth of them begins."""
    ax = ax or new_axes(6, 2.6)
    ax.hist(list(values), bins=12, color=PATCH, edgecolor="white")
    ax.axvline(limit, color=INK, ls="--")
    top = ax.get_ylim()[1]
    ax.text(limit, top, f" 1 in 20 is above {limit:.1f}", va="top", color=INK)
    ax.set(xlabel=xlabel, ylabel="how often")
    ax.spines[["top", "right"]].set_visible(False)
