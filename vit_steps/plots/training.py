"""Lesson 07's drawings: a way downhill, strips of digits, curves of a training, a sweep."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .figures import CLS, FAINT, INK, PATCH, POSITION, QUERY, STYLES, VALUE, new_axes, picture

COLOURS = (PATCH, QUERY, VALUE, POSITION, CLS)
DASHES = (*(dash for dash, _ in STYLES), (0, (5, 1, 1, 1, 1, 1)))  # one a curve

Curve = Sequence[float] | Mapping[int, float]  # a value a step, or some steps with their values


def digit_strip(
    images: Tensor, rows: int = 1, titles: Sequence[str] = (), width: float = 9
) -> None:
    """Show pictures (n, 1, H, W), from -1 (paper) to 1 (ink), dark on light, framed, with gaps.

    Args:
        rows: how many rows they stand in.
        titles: a line above each picture, or none.
        width: of the figure, in inches of 100 pixels.
    """
    import matplotlib.pyplot as plt

    across = -(-len(images) // rows)
    height = rows * (width / across * 0.92 + (0.28 if titles else 0.08))
    _, axes = plt.subplots(
        rows, across, figsize=(width, height), squeeze=False, layout="constrained"
    )
    for ax in axes.flat:
        ax.set_axis_off()
    for number, (ax, image) in enumerate(zip(axes.flat, images, strict=False)):
        picture((1 - image) / 2, "", ax)
        ax.set_axis_on()
        ax.set(xticks=[], yticks=[])
        for spine in ax.spines.values():
            spine.set(color=FAINT, linewidth=1.2)
        if titles:
            ax.set_title(titles[number], size=9)


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


def curves(
    series: Mapping[str, Curve],
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    log: bool = False,
    ax: Any = None,
) -> None:
    """Draw up to five curves without markers, each with its name at its right end.

    They differ in colour and in dash. Names that would lie on each other are moved apart.

    Args:
        series: a name and its values, one a step from 0; or `{step: value}`.
        log: whether the values stand on a logarithmic axis.
    """
    ax = ax or new_axes(7, 3.2)
    ends = []
    for (name, curve), colour, dash in zip(series.items(), COLOURS, DASHES, strict=False):
        points = dict(curve) if isinstance(curve, Mapping) else dict(enumerate(curve))
        (line,) = ax.plot(list(points), list(points.values()), color=colour, linewidth=1.8)
        line.set_linestyle(dash)
        ends.append((max(points), points[max(points)], name, colour))
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    if log:
        ax.set_yscale("log")
    ax.spines[["top", "right"]].set_visible(False)
    name_ends(ax, ends)


def name_ends(ax: Any, ends: Sequence[tuple[float, float, str, str]], gap: float = 15) -> None:
    """Write names (x, y, name, colour) beside points, at least `gap` pixels above each other."""
    ax.figure.canvas.draw()  # only then the axes know where things lie
    scale = 72 / ax.figure.dpi  # from pixels to points
    lowest = float("-inf")
    for x, y, name, colour in sorted(ends, key=lambda end: end[1]):
        height = ax.transData.transform((x, y))[1]
        lowest = max(height, lowest + gap)
        offset = (8, (lowest - height) * scale)
        ax.annotate(name, (x, y), offset, textcoords="offset points", color=colour, va="center")


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
    curves({"": norms}, "Norm of the gradient", xlabel, log=True, ax=right)


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


def seed_dots(
    groups: Mapping[str, Sequence[float]], title: str = "", xlabel: str = "",
    limits: tuple[float, float] | None = None,
) -> None:  # fmt: skip
    """Draw one row a group, a dot a seed, and a stroke at the group's mean.

    Args:
        groups: a name and its values, the first at the top.
        limits: of the axis; by default what there is.
    """
    ax = new_axes(7, 0.9 + 0.4 * len(groups))
    for row, values in enumerate(groups.values()):
        colour = COLOURS[row % len(COLOURS)]
        ax.axhline(row, color=FAINT, linewidth=0.6, zorder=0)
        ax.plot(values, [row] * len(values), "o", color=colour, markersize=7, alpha=0.7)
        ax.plot(sum(values) / len(values), row, "|", color=INK, markersize=18, markeredgewidth=2)
    ax.set_yticks(range(len(groups)), list(groups))
    ax.set(title=title, xlabel=xlabel, ylim=(len(groups) - 0.4, -0.6), xlim=limits)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
