"""Lessons 07 and 08: a way downhill, a training, a sweep, and how far apart luck puts runs."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .figures import (
    COLOURS,
    FAINT,
    INK,
    PATCH,
    QUERY,
    Curve,
    curves,
    new_axes,
)


def downhill(paths: Mapping[str, Sequence[float]], goal: float = 3.0) -> None:
    """Draw the valley (w - goal)², and in a panel for each path the points that a weight visits.

    Args:
        paths: a name, and where the weight was, step by step.
    """
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(
        1, len(paths), figsize=(9, 2.9), sharey=True, squeeze=False, layout="constrained"
    )
    valley = torch.linspace(goal - 9.5, goal + 9.5, 200)
    for ax, (name, path), colour in zip(axes[0], paths.items(), COLOURS, strict=False):
        ax.plot(valley, (valley - goal) ** 2, color=FAINT, zorder=1)
        heights = [(w - goal) ** 2 for w in path]
        ax.plot(path, heights, "-o", color=colour, markersize=5, linewidth=1)
        ax.annotate("start", (path[0], heights[0]), (-6, 6), textcoords="offset points", ha="right")
        ax.set(title=name, xlabel="w", ylim=(-4, 88))
        ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("loss")


def by_heart(train: Curve, val: Curve, norms: Curve, xlabel: str = "step") -> None:
    """Draw a training that learns by heart: both losses, the best step marked; gradient norms."""
    import matplotlib.pyplot as plt

    _, (left, right) = plt.subplots(
        1, 2, figsize=(9.6, 3.2), width_ratios=(3, 2), layout="constrained"
    )
    curves({"training": train, "validation": val}, "Loss", xlabel, ax=left)
    points = dict(val) if isinstance(val, Mapping) else dict(enumerate(val))
    best = min(points, key=points.__getitem__)
    left.plot(best, points[best], "o", color=QUERY)
    left.annotate(
        "lowest", (best, points[best]), (0, -9), textcoords="offset points", ha="center", va="top"
    )
    curves({"": norms}, "Norm of the gradient", xlabel, log="y", ax=right)


def rate_sweep(
    losses: Mapping[float, Sequence[float]], title: str = "", ylabel: str = "validation loss"
) -> None:
    """Draw what came of each learning rate: a dot a seed, a line through the means.

    Args:
        losses: for each learning rate, one loss a seed.
    """
    ax = new_axes(6.6, 3.3)
    rates = sorted(losses)
    means = [sum(losses[rate]) / len(losses[rate]) for rate in rates]
    for rate in rates:
        ax.plot([rate] * len(losses[rate]), losses[rate], "o", color=PATCH, markersize=4, alpha=0.6)
    ax.plot(rates, means, "-", color=PATCH, linewidth=1.8)
    lowest = min(means)
    best = rates[means.index(lowest)]
    ax.plot(best, lowest, "D", color=QUERY)
    ax.annotate(
        f"{best:g}", (best, lowest), (9, 0), textcoords="offset points", va="center", color=QUERY,
        weight="bold",
    )  # fmt: skip
    ax.set_xscale("log")
    ax.set_xticks(rates, [f"{rate:g}" for rate in rates])
    ax.minorticks_off()
    ax.set(title=title, xlabel="learning rate", ylabel=ylabel, ylim=(0, max(means) * 1.12))
    ax.spines[["top", "right"]].set_visible(False)


def gaps(values: Sequence[float], limit: float, xlabel: str = "", ax: Any = None) -> None:
    """Draw how often each gap came, and where the largest twentieth of them begins."""
    ax = ax or new_axes(6, 2.6)
    ax.hist(list(values), bins=12, color=PATCH, edgecolor="white")
    ax.axvline(limit, color=INK, ls="--")
    top = ax.get_ylim()[1]
    ax.text(limit, top, f" 1 in 20 is above {limit:.1f}", va="top", color=INK)
    ax.set(xlabel=xlabel, ylabel="how often")
    ax.spines[["top", "right"]].set_visible(False)
