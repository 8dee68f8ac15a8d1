"""Lesson 02's drawings: tokens and positions as tables, how alike positions are, clocks."""

from collections.abc import Mapping
from math import cos, sin
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from .close_ups import apart
from .colours import FAINT, INK, PAPER, POSITION, SIGNED
from .figures import charts, matrix, panels


def token_sum(tokens: Tensor, positions: Tensor) -> None:
    """Show tokens (N, D), cls first, their positions (N, D) and the sum, as tables of numbers."""
    names = ["cls", *(f"patch {number}" for number in range(len(tokens) - 1))]
    both = torch.cat([tokens, positions])
    limits = (both.min().item(), (tokens + positions).max().item())
    axes = panels(1, 3, 7.4, 2.6)[0]
    tables = {"tokens": tokens, "+ positions": positions, "= what goes on": tokens + positions}
    for ax, (title, table) in zip(axes, tables.items(), strict=True):
        matrix(table, title, names, form="{:.1f}", limits=limits, ax=ax)


def position_maps(tables: Mapping[str, Tensor]) -> None:
    """Draw how alike positions are: at each place a small map of its likeness to all places.

    Args:
        tables: a name, and the positions of a square grid's patches (n, D), without cls.
    """
    shown: Any = None
    sides = [round(len(table) ** 0.5) for table in tables.values()]
    ratios = [side**0.8 for side in sides]
    axes = panels(1, len(tables), 9.6, 4.4, width_ratios=ratios)[0]
    axes[0].figure.get_layout_engine().set(wspace=0.08)
    for ax, side, (name, table) in zip(axes, sides, tables.items(), strict=True):
        unit = F.normalize(table.detach().cpu(), dim=1)
        alike = (unit @ unit.T).view(side, side, side, side)  # of place (i, j) to place (k, l)
        own = [(side + 2) * i for i in range(side)]  # where in each tile the place itself stands
        for row in own:
            ax.plot(own, [row] * side, "o", color="white", markersize=2)
        shown = ax.imshow(apart(alike).numpy(), cmap=SIGNED, vmin=-0.6, vmax=0.6)
        ax.set(xticks=[], yticks=[], title=name, frame_on=False)
    bar = axes[0].figure.colorbar(shown, ax=axes.tolist(), shrink=0.7, aspect=18)
    bar.set_label("cosine similarity")


def lines_alike(table: Tensor) -> None:
    """Draw how alike the columns of a grid of positions are, and how alike its rows are.

    A cell is the mean of all pairs with one place in either column, both in the same row; and with
    rows likewise.

    Args:
        table: the positions of a square grid's patches (n, D), without cls.
    """
    side = round(len(table) ** 0.5)
    grid = F.normalize(table.detach().cpu(), dim=1).view(side, side, -1)  # (row, column, D)
    axes = panels(1, 2, 7, 3.2)[0]
    for ax, lines, name in ((axes[0], grid, "column"), (axes[1], grid.transpose(0, 1), "row")):
        alike = (lines @ lines.mT).mean(dim=0)
        shown = ax.imshow(alike.numpy(), cmap=SIGNED, vmin=-0.6, vmax=0.6)
        ax.set(title=f"{name}s", xlabel=f"{name} of one place", ylabel=f"{name} of the other")
    axes[0].figure.colorbar(shown, ax=axes.tolist()).set_label("cosine similarity")


def likeness_by_distance(tables: Mapping[str, Tensor]) -> None:
    """Draw how alike positions are against how far apart their places lie: a dot for each pair.

    Pairs in one row or one column are filled dots, the others rings.

    Args:
        tables: a name, and the positions of a square grid's patches (n, D), without cls.
    """
    axes = charts(1, len(tables), 3.1 * len(tables) + 0.4, 3.4, sharey=True)[0]
    for ax, (name, table) in zip(axes, tables.items(), strict=True):
        side = round(len(table) ** 0.5)
        steps = torch.arange(float(side))
        corners = torch.cartesian_prod(steps, steps)  # (row, column) of each patch
        first, second = torch.triu_indices(len(table), len(table), offset=1)  # each pair once
        alike = F.cosine_similarity(table[first], table[second], dim=-1).detach().numpy()
        apart = corners[first] - corners[second]
        in_line, far = (apart == 0).any(dim=1).numpy(), apart.norm(dim=1).numpy()
        ring = dict(s=14, facecolors="none", edgecolors=FAINT, linewidths=0.8)
        ax.scatter(far[~in_line], alike[~in_line], label="elsewhere", **ring)
        ax.scatter(far[in_line], alike[in_line], s=14, color=POSITION, label="one row or column")
        ax.axhline(0, color=INK, lw=0.6)
        ax.set(title=name, xlabel="distance in patches", ylim=(-0.6, 1.05))
        ax.set_xlim(0, far.max() + 0.4)
    axes[0].set_ylabel("cosine similarity")
    legend = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(*legend, loc="outside lower center", ncols=2)


def clock_faces(speeds: Tensor, places: int = 8) -> None:
    """Draw hands that turn: a row for each clock, a column for each place.

    A hand starts upright and turns clockwise, by its speed from place to place. Its tip is (sine,
    cosine) of the angle: the two numbers that a clock writes into a position.

    Args:
        speeds: (clocks,), in radians from one place to the next.
    """
    from matplotlib.patches import Circle

    rows = len(speeds)
    axes = panels(rows, places, 0.85 * places + 1.4, 0.85 * rows + 0.5)
    for clock, speed in enumerate(speeds.tolist()):
        for place in range(places):
            ax = axes[clock, place]
            x, y = sin(place * speed), cos(place * speed)
            ax.add_patch(Circle((0, 0), 1, facecolor=PAPER, edgecolor=INK, lw=0.8))
            ax.plot([0, x], [0, y], color=POSITION, lw=2.5, solid_capstyle="round")
            ax.plot(0, 0, "o", color=INK, markersize=3)
            ax.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal", xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
            if clock == 0:
                ax.set_title(f"place {place}", size=9)
        label = axes[clock, 0].set_ylabel(f"clock {clock}\n{speed:g} rad", rotation=0, size=9)
        label.set(ha="right", va="center")
