"""Lesson 09: pictures with maps below them or beside them, on one scale."""

from typing import Any

from torch import Tensor

from .figures import CLS, INK, WEIGHTS, picture


def maps_below(
    images: Tensor,
    maps: dict[str, Tensor] | None = None,
    boxes: Tensor | None = None,
) -> None:
    """A row of small grey pictures, each in a frame, and rows of maps below them.

    Args:
        images: (n, H, W), from 0, paper, to 1, ink.
        maps: by the name that stands left of its row, (n, rows, cols), or (n, H, W, 3) for colours.
            All maps share one scale, from their smallest to their largest.
        boxes: (n, 2), the top left pixels of squares of 8 pixels to frame in the pictures.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    maps = maps or {}
    shared = [m for m in maps.values() if m.ndim == 3]
    low = min((m.min().item() for m in shared), default=0.0)
    high = max((m.max().item() for m in shared), default=1.0)
    count, lines = len(images), 1 + len(maps)
    size = (1.05 * count + 0.9, 1.1 * lines)
    _, axes = plt.subplots(lines, count, figsize=size, layout="constrained", squeeze=False)
    rows = {"picture": images} | maps if maps else {"": images}
    for line, (name, tiles) in zip(axes, rows.items(), strict=True):
        line[0].set_ylabel(name, rotation=0, ha="right", va="center")
        for ax, tile in zip(line, tiles.detach().cpu().float().numpy(), strict=True):
            if tiles is images:
                ax.imshow(tile, cmap="gray_r", vmin=0, vmax=1)
            else:
                ax.imshow(tile, cmap=WEIGHTS, vmin=low, vmax=high)
            framed(ax)
    if boxes is not None:
        for ax, (row, col) in zip(axes[0], boxes.tolist(), strict=True):
            corner = (col - 0.5, row - 0.5)
            ax.add_patch(Rectangle(corner, 8, 8, fill=False, ec=CLS, lw=2))


def framed(ax: Any) -> None:
    """No ticks, and a thin frame, so that light pictures do not run into each other."""
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_color(INK)


def maps_beside(image: Tensor, maps: dict[str, Tensor], own_scale: tuple[str, ...] = ()) -> None:
    """A picture, and maps of it to its right, each under its name.

    Args:
        image: (C, H, W), from 0 to 1.
        maps: by name, (rows, cols).
        own_scale: names of maps that go from their own smallest to their own largest; the others
            share one scale from 0 to their largest, whose bar stands at the right.
    """
    import matplotlib.pyplot as plt

    shared = {name: tile for name, tile in maps.items() if name not in own_scale}
    high = max(tile.max().item() for tile in shared.values())
    count, drawn = 1 + len(maps), None
    _, axes = plt.subplots(1, count, figsize=(1.9 * count + 0.7, 2.3), layout="constrained")
    picture(image, "picture", axes[0])
    for ax, (name, tile) in zip(axes[1:], maps.items(), strict=True):
        scale = {} if name in own_scale else {"vmin": 0.0, "vmax": high}
        shown = ax.imshow(tile.detach().cpu().float().numpy(), cmap=WEIGHTS, **scale)
        drawn = shown if name in shared else drawn
        ax.set_title(name)
        framed(ax)
    plt.colorbar(drawn, ax=axes, shrink=0.8, aspect=15)
