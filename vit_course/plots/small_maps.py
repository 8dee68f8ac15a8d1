"""Lesson 09: pictures with maps below them or beside them, on one scale."""

from torch import Tensor

from .figures import CLS, WEIGHTS, bordered, panels, picture, rectangle


def maps_below(images: Tensor, maps: dict[str, Tensor], boxes: Tensor | None = None) -> None:
    """Show a row of small grey pictures, each in a frame, and rows of maps below them.

    Args:
        images: (n, H, W), from 0, paper, to 1, ink.
        maps: by the name that stands left of its row, (n, rows, cols), or (n, H, W, 3) for colours.
            All maps share one scale, from their smallest to their largest.
        boxes: (n, 2), the top left pixels of squares of 8 pixels to frame in the pictures.
    """
    shared = [m for m in maps.values() if m.ndim == 3]
    low = min((m.min().item() for m in shared), default=0.0)
    high = max((m.max().item() for m in shared), default=1.0)
    count, lines = len(images), 1 + len(maps)
    axes = panels(lines, count, 1.05 * count + 0.9, 1.1 * lines)
    for line, (name, tiles) in zip(axes, ({"picture": images} | maps).items(), strict=True):
        line[0].set_ylabel(name, rotation=0, ha="right", va="center")
        for ax, tile in zip(line, tiles.detach().cpu().float().numpy(), strict=True):
            if tiles is images:
                ax.imshow(tile, cmap="gray_r", vmin=0, vmax=1)
            else:
                ax.imshow(tile, cmap=WEIGHTS, vmin=low, vmax=high)
            bordered(ax)
    if boxes is not None:
        for ax, (row, col) in zip(axes[0], boxes.tolist(), strict=True):
            rectangle(ax, col - 0.5, row - 0.5, 8, 8, fill=False, ec=CLS, lw=2)


def maps_beside(image: Tensor, maps: dict[str, Tensor], own_scale: tuple[str, ...] = ()) -> None:
    """Show a picture, and maps of it to its right, each under its name.

    Args:
        image: (C, H, W), from 0 to 1.
        maps: by name, (rows, cols).
        own_scale: names of maps that go from their own smallest to their own largest; the others
            share one scale from 0 to their largest, whose bar stands at the right.
    """
    high = max(tile.max().item() for name, tile in maps.items() if name not in own_scale)
    count, scaled = 1 + len(maps), None
    axes = panels(1, count, 1.9 * count + 0.7, 2.3)[0]
    picture(image, "picture", axes[0])
    for ax, (name, tile) in zip(axes[1:], maps.items(), strict=True):
        shown = ax.imshow(tile.detach().cpu().float().numpy(), cmap=WEIGHTS)
        if name not in own_scale:
            shown.set_clim(0.0, high)
            scaled = shown
        ax.set_title(name)
        bordered(ax)
    axes[0].figure.colorbar(scaled, ax=axes, shrink=0.8, aspect=15)
