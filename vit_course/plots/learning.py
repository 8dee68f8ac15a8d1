"""Lessons 07 and 08: a way downhill, runs and a live curve, and how far apart luck puts runs."""

from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from typing import Any

import torch

from .figures import COLOURS, FAINT, INK, PATCH, QUERY, STYLES, VALUE, dots, panels


def downhill(paths: Mapping[str, Sequence[float]], goal: float = 3.0) -> None:
    """Draw the valley (w - goal)², and in a panel for each path the points that a weight visits.

    Args:
        paths: a name, and where the weight was, step by step.
    """
    axes = panels(1, len(paths), 9, 2.9, sharey=True)[0]
    valley = torch.linspace(goal - 9.5, goal + 9.5, 200)
    for ax, (name, path), colour in zip(axes, paths.items(), COLOURS, strict=False):
        ax.plot(valley, (valley - goal) ** 2, color=FAINT, zorder=1)
        heights = [(w - goal) ** 2 for w in path]
        ax.plot(path, heights, "-o", color=colour, markersize=5, linewidth=1)
        ax.annotate("start", (path[0], heights[0]), (-6, 6), textcoords="offset points", ha="right")
        ax.set(title=name, xlabel="w", ylim=(-4, 88))
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("loss")


def seed_runs(runs: Mapping[str, Sequence[Sequence[float]]], level: float, word: str) -> None:
    """Draw a panel for each variant, with the loss of each of its runs, on one scale.

    Args:
        runs: a name, and of each seed the losses step by step.
        level: a loss at which a dotted line is drawn, and what it means.
    """
    columns = min(len(runs), 3)
    rows = -(-len(runs) // columns)
    axes = panels(rows, columns, 9, 2.1 * rows, sharex=True, sharey=True)
    for ax in axes.flat[len(runs) :]:
        ax.axis("off")
    for ax, (name, losses) in zip(axes.flat, runs.items(), strict=False):
        ax.axhline(level, color=FAINT, linestyle=":", linewidth=1)
        for run, colour, (dash, _) in zip(losses, COLOURS, STYLES, strict=False):
            ax.plot(run, linestyle=dash, color=colour, linewidth=1.5)
        ax.set(title=name)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylim(0, 1.05 * max(max(run) for losses in runs.values() for run in losses))
    axes[0, 0].annotate(word, (0, level), (2, 3), textcoords="offset points", color=INK, size=8)
    axes[-1, 0].set(xlabel="step", ylabel="loss")


def live_curve(epochs: int) -> Callable[[Sequence[float], float], Any]:
    """Begin a training's curve; what this gives draws it anew, in the same place, at each call.

    Args:
        epochs: how many there will be.

    Returns:
        A function of the losses of all steps so far, and of the latest accuracy on val, from 0 to
        1, to be called once after each epoch; it gives the figure.
    """
    import matplotlib.pyplot as plt
    from IPython import get_ipython
    from IPython.display import display

    left, right = panels(1, 2, 9, 2.8)[0]
    figure = left.figure
    plt.close(figure)  # else a notebook would show it a second time, at the end of the cell
    left.set(title="Loss", xlabel="epoch", xlim=(0, epochs), ylim=(0, 2.5))
    right.set(title="Read of val, in %", xlabel="epoch", xlim=(0, epochs + 0.3), ylim=(0, 100))
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    shares: list[float] = []
    handle = display(figure, display_id=True) if get_ipython() is not None else None

    def draw(losses: Sequence[float], accuracy: float) -> Any:
        shares.append(100 * accuracy)
        epoch = len(losses) // len(shares)  # in steps
        step = max(epoch // 20, 1)  # so many losses make a point
        means = torch.tensor(losses[: len(losses) // step * step]).view(-1, step).mean(dim=1)
        for artist in [*left.lines, *right.lines, *right.texts]:
            artist.remove()
        x = [(i + 0.5) * step / epoch for i in range(len(means))]
        left.plot(x, means.tolist(), color=PATCH, linewidth=1.5)
        right.plot(range(1, len(shares) + 1), shares, "-o", color=PATCH, markersize=5)
        above = dict(xytext=(0, 8), textcoords="offset points", ha="center", color=INK)
        right.annotate(f"{shares[-1]:.0f}", (len(shares), shares[-1]), **above)
        if handle is not None:
            handle.update(figure)
        return figure

    return draw


def compared(runs: Mapping[str, Sequence[float]], luck: Mapping[str, float], limit: float) -> None:
    """Draw the runs of variants, and whether luck alone could put them so far from the first.

    Rings where it could; full dots where it could not, in one colour for less and one for more.

    Args:
        runs: a name, and the results of its runs; the first is what the others are held against.
        luck: for each of the others, the share of the ways with as large a gap.
        limit: from here on it could be luck.
    """
    first = next(iter(runs))
    level = mean(runs[first])
    colours = {name: VALUE if mean(values) > level else QUERY for name, values in runs.items()}
    notes = {name: f"luck {share:.4f}" for name, share in luck.items()}
    rings = [name for name, share in luck.items() if share >= limit]
    dots(runs, colours=colours | {first: INK}, hollow=rings, notes=notes)
