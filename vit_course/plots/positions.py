"""Lesson 02's drawings: tokens and positions as tables, shares, clocks, maps of positions."""

from math import cos, sin
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from vit_steps.inputs import as_pair

from .figures import INK, PAPER, POSITION, mark_patches, matrix


def token_sum(tokens: Tensor, positions: Tensor) -> None:
    """Show tokens (N, D), cls first, their positions (N, D) and the sum, as tables of numbers."""
    import matplotlib.pyplot as plt

    names = ["cls", *(f"patch {number}" for number in range(len(tokens) - 1))]
    both = torch.cat([tokens, positions])
    limits = (both.min().item(), (tokens + positions).max().item())
    _, axes = plt.subplots(1, 3, figsize=(7.4, 2.6), layout="constrained")
    tables = {"tokens": tokens, "+ positions": positions, "= what goes on": tokens + positions}
    for ax, (title, table) in zip(axes, tables.items(), strict=True):
        matrix(table, title, names, form="{:.1f}", limits=limits, ax=ax)


def share_maps(image: Tensor, patch: int, shares: dict[str, Tensor]) -> None:
    """Show a photo (3, H, W) with one patch framed, and who moves a token: maps of shares.

    Args:
        patch: the number of the patch to frame, counted row by row from 0.
        shares: a name, and a square map's share of each patch (n,), in per cent. The colours run
            from 0 to 10 per cent in all of them; what lies above has the colour of 10.
    """
    import matplotlib.pyplot as plt

    side = round(len(next(iter(shares.values()))) ** 0.5)
    count = 1 + len(shares)
    _, axes = plt.subplots(1, count, figsize=(3.1 * count, 3.2), layout="constrained")
    mark_patches(image, {f"patch {patch}": patch}, image.shape[1] // side, "the photo", axes[0])
    for ax, (name, share) in zip(axes[1:], shares.items(), strict=True):
        matrix(share.reshape(side, side), name, form="{:.0f}", limits=(0, 10), ax=ax)


def clock_faces(speeds: Tensor, places: int = 8) -> None:
    """Draw hands that turn: a row for each clock, a column for each place.

    A hand starts upright and turns clockwise, by its speed from place to place. Its tip is (sine,
    cosine) of the angle: the two numbers that a clock writes into a position.

    Args:
        speeds: (clocks,), in radians from one place to the next.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Circle

    rows = len(speeds)
    size = (0.85 * places + 1.4, 0.85 * rows + 0.5)
    _, axes = plt.subplots(rows, places, figsize=size, layout="constrained", squeeze=False)
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


def position_maps(
    tables: dict[str, Tensor],
    grid: int | tuple[int, int] = 14,
    every: int = 1,
    limits: tuple[float, float] = (0, 1),
) -> None:
    """Show how alike positions are (Dosovitskiy et al. 2021, figure 7, centre), one scale for all.

    Each small map belongs to one place of the grid, and shows the cosine similarity of its position
    to those of the whole grid.

    Args:
        tables: a name, and the positions of the patches (rows·cols, D), without cls.
        grid: (rows, cols), or one number for a square.
        every: draw the maps of every second place (2) in a row and column, or of every one (1).
        limits: the similarities at the two ends of the colour map.
    """
    import matplotlib.pyplot as plt

    rows, cols = as_pair(grid, "grid")
    figure, axes = plt.subplots(
        1, len(tables), figsize=(3.7 * len(tables) + 0.9, 3.9), layout="constrained", squeeze=False
    )
    drawn: Any = None
    for ax, (name, table) in zip(axes[0], tables.items(), strict=True):
        unit = F.normalize(table.detach().float(), dim=-1)
        maps = (unit @ unit.mT).reshape(rows, cols, rows, cols)[::every, ::every]
        larger = max(1, 14 // cols)  # so that the gaps are narrow beside small maps too
        maps = maps.repeat_interleave(larger, dim=2).repeat_interleave(larger, dim=3)
        framed = F.pad(maps, (1, 1, 1, 1), value=float("nan"))  # a gap round each
        tiles = torch.cat([torch.cat(list(row), dim=1) for row in framed])
        drawn = ax.imshow(tiles.numpy(), cmap="cividis", vmin=limits[0], vmax=limits[1])
        ax.set_title(name)
        ax.axis("off")
    figure.colorbar(drawn, ax=axes[0], label="cosine similarity", shrink=0.8)
