"""Lesson 09: small pictures with maps below them, and tables of small maps, on one scale."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from .figures import CLS, INK, WEIGHTS


def maps_below(
    images: Tensor,
    maps: dict[str, Tensor] | None = None,
    limits: tuple[float, float] | None = None,
    own_scale: tuple[str, ...] = (),
    boxes: Tensor | None = None,
    side: int = 8,
) -> None:
    """A row of small grey pictures, each in a frame, and rows of maps below them.

    Args:
        images: (n, H, W), from 0, paper, to 1, ink.
        maps: by the name that stands left of its row, (n, rows, cols), or (n, H, W, 3) for colours.
        limits: what is darkest and brightest in all maps; by default their smallest and largest.
        own_scale: names of rows whose maps each go from their own smallest to their own largest.
        boxes: (n, 2), the top left pixels of squares of `side` pixels to frame in the pictures.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    maps = maps or {}
    shared = [m for name, m in maps.items() if name not in own_scale and m.ndim == 3]
    if limits is None and shared:
        limits = min(m.min().item() for m in shared), max(m.max().item() for m in shared)
    low, high = limits or (0.0, 1.0)
    count, lines = len(images), 1 + len(maps)
    size = (1.05 * count + 0.9, 1.1 * lines)
    _, axes = plt.subplots(lines, count, figsize=size, layout="constrained", squeeze=False)
    rows = {"picture": images} | maps if maps else {"": images}
    for line, (name, tiles) in zip(axes, rows.items(), strict=True):
        line[0].set_ylabel(name, rotation=0, ha="right", va="center")
        for ax, tile in zip(line, tiles.detach().cpu().float().numpy(), strict=True):
            if tiles is images:
                ax.imshow(tile, cmap="gray_r", vmin=0, vmax=1)
            elif name in own_scale:
                ax.imshow(tile, cmap=WEIGHTS)
            else:
                ax.imshow(tile, cmap=WEIGHTS, vmin=low, vmax=high)
            framed(ax)
    if boxes is not None:
        for ax, (row, col) in zip(axes[0], boxes.tolist(), strict=True):
            corner = (col - 0.5, row - 0.5)
            ax.add_patch(Rectangle(corner, side, side, fill=False, ec=CLS, lw=2))


def framed(ax: Any) -> None:
    """No ticks, and a thin frame, so that light pictures do not run into each other."""
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_color(INK)


def map_table(
    tiles: Tensor,
    title: str = "",
    ylabel: str = "",
    xlabel: str = "",
    limits: tuple[float, float] | None = None,
    ax: Any = None,
) -> None:
    """A table of small maps (a, b, rows, cols), with gaps, in one colour scale with its bar.

    Args:
        limits: what is darkest and brightest; by default the smallest and largest.
    """
    import matplotlib.pyplot as plt

    tiles = tiles.detach().cpu().float()
    down, across, rows, cols = tiles.shape
    if ax is None:
        _, ax = plt.subplots(figsize=(5.6, 4.4), layout="constrained")
    low, high = limits or (tiles.min().item(), tiles.max().item())
    gaps = F.pad(tiles, (0, 1, 0, 1), value=torch.nan)  # a row and a column of nothing
    sheet = gaps.permute(0, 2, 1, 3).reshape(down * (rows + 1), across * (cols + 1))[:-1, :-1]
    drawn = ax.imshow(sheet.numpy(), cmap=WEIGHTS, vmin=low, vmax=high)
    plt.colorbar(drawn, ax=ax, shrink=0.8)
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    ax.set_xticks([(cols + 1) * i + (cols - 1) / 2 for i in range(across)], range(across))
    ax.set_yticks([(rows + 1) * i + (rows - 1) / 2 for i in range(down)], range(down))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
