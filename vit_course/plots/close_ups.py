"""Pixels, patches and templates, enlarged, and maps beside them: lessons 00, 01, 09 and 13."""

from collections.abc import Sequence
from typing import Any

import torch
from einops import rearrange
from torch import Tensor
from torch.nn import functional as F

from .colours import CLS, FAINT, INK, QUERY, SIGNED, WEIGHTS
from .figures import bordered, panels, picture, rectangle, sketch, write_numbers
from .learning import answer_bars


def crisp(image: Tensor, ax: Any) -> None:
    """Show an image with pixels that are squares of one colour: true to it, and half the bytes."""
    picture(image, ax=ax)
    ax.images[0].set_interpolation("nearest")


def pictures(named: dict[str, Tensor], height: float = 2.2) -> None:
    """Show images (C, H, W), 0 to 1, side by side, each below its name.

    Args:
        named: a name and the image; their sizes may differ.
        height: of each, in inches.
    """
    widths = [image.shape[2] / image.shape[1] for image in named.values()]
    size = (round(sum(widths) * height + 0.15 * len(named), 1), height + 0.4)
    axes = panels(1, len(named), *size, width_ratios=widths)[0]
    for (name, image), ax in zip(named.items(), axes, strict=True):
        crisp(image, ax)
        ax.set_title(name, size=10)


def pixel_numbers(image: Tensor) -> None:
    """Show a small grey image (1, H, W), from -1 to 1, with each pixel as a number from 0 to 9."""
    ax = panels(1, 1, 4.6, 4.6)[0, 0]
    ax.imshow(image[0].numpy(), cmap="gray", vmin=-1, vmax=1.6, alpha=0.85)
    write_numbers(ax, (4.5 * (image[0] + 1)).round().int(), str, middle=4, light=FAINT)
    ax.set(xticks=[], yticks=[])


TINTS = ("#F3B89A", "#9FD8C4", "#9CC6E6")  # of red, green and blue bytes, told apart by all


def bytes_in_order(pixels: Tensor) -> None:
    """Draw a small picture as a file holds it, a row of bytes, and two ways to make channels of it.

    Lines go from the row to the top of the first channel: `permute` picks every third byte, and
    `reshape` takes the first ones that come.

    Args:
        pixels: (H, W, 3), bytes.
    """
    height, width, _ = pixels.shape
    row, count = pixels.flatten().tolist(), height * width
    ax = sketch(9.4, 4.4, xlim=(-0.3, 24.3), ylim=(-8.2, 3.1))

    def cell(x: float, y: float, number: int, side: float = 1.0) -> None:
        look = dict(facecolor=TINTS[number % 3], edgecolor="white")
        rectangle(ax, x, y, side, 1, **look)
        ax.text(x + side / 2, y + 0.5, str(row[number]), ha="center", va="center", size=8)

    for pixel in range(count):
        colour = tuple(value / 255 for value in pixels.flatten(0, 1)[pixel].tolist())
        rectangle(ax, 3 * pixel + 0.1, 1.35, 2.8, 0.8, facecolor=colour, edgecolor=INK, lw=0.6)
    for number in range(len(row)):
        cell(number, 0, number)
        ax.text(number + 0.5, 1.08, "RGB"[number % 3], ha="center", size=7, color=INK)
    ax.text(0, 2.45, "the file: one row of bytes, three for each pixel", size=10)
    order = torch.arange(len(row)).view(pixels.shape)
    ways = {
        "permute(2, 0, 1)": order.permute(2, 0, 1),
        f"reshape(3, {height}, {width})": order.reshape(3, height, width),
    }
    for name, left, style in zip(ways, (0.0, 12.6), ("-", "--"), strict=True):
        for channel, numbers in enumerate(ways[name].tolist()):
            x = left + 3.95 * channel
            for i, line in enumerate(numbers):
                for j, number in enumerate(line):
                    cell(x + 0.9 * j, -5 - i, number, 0.9)
                    if channel == 0 and i == 0:
                        ends = [number + 0.5, x + 0.9 * j + 0.45], [0, -4 - i]
                        ax.plot(*ends, style, color=INK, linewidth=0.8, alpha=0.8)
            ax.text(x + 0.45 * width, -6.6, f"channel {channel}", ha="center", size=8)
        ax.text(left, -7.7, name, family="monospace", weight="bold", size=10)


def opened(
    image: Tensor, tokens: Tensor, blocks: Sequence[Tensor], shares: Tensor, patch_size: int = 4
) -> None:
    """Show what becomes of a small image inside a ViT, from left to right.

    Args:
        image: (1, S, S), from -1 to 1.
        tokens: (N, D), cls first, as they enter the blocks.
        blocks: the tokens after each block.
        shares: (classes,), the answer.
        patch_size: of the model, in pixels.
    """
    stages = {f"{len(tokens)} tokens": tokens} | {
        f"after block {i}": x for i, x in enumerate(blocks)
    }
    axes = panels(1, len(stages) + 3, 9.6, 2.3, width_ratios=[1.5, 1.3, *[1] * len(stages), 1.2])[0]
    first, second, *middle, last = axes
    picture((image + 1) / 2, "the drawing", ax=first)
    patches = rearrange(
        image[0], "(row p1) (col p2) -> row col p1 p2", p1=patch_size, p2=patch_size
    )
    second.imshow(apart(patches).numpy(), cmap="gray", vmin=-1, vmax=1)
    second.set(xticks=[], yticks=[], frame_on=False)
    second.set_title(f"{patches.shape[:2].numel()} patches", size=9)
    for (name, x), ax in zip(stages.items(), middle, strict=True):
        look = dict(cmap=SIGNED, vmin=-2.5, vmax=2.5, aspect="auto", interpolation="nearest")
        ax.imshow(x.cpu().numpy(), **look)
        for row in range(1, len(x)):  # so that the tokens can be counted
            ax.axhline(row - 0.5, color="white", linewidth=0.6)
        rectangle(ax, -0.5, -0.5, x.shape[1] - 0.4, 1, fill=False, ec=CLS, lw=2)
        ax.set(xticks=[], yticks=[])
        ax.set_title(name, size=9)
    middle[0].set_ylabel("cls first", size=8)
    answer_bars(last, shares, numbers=False)


def apart(tiles: Tensor) -> Tensor:
    """Lay tiles (rows, columns, h, w) on one sheet, with a gap of nan between them."""
    padded = F.pad(tiles, (0, 1, 0, 1), value=torch.nan)
    return rearrange(padded, "i j h w -> (i h) (j w)")[:-1, :-1]


def tile(image: Tensor, title: str, ax: Any) -> None:
    """Show a small image (C, H, W), 0 to 1, with a thin frame, since it may be white."""
    picture(image, title, ax)
    ax.axis("on")
    bordered(ax, FAINT)


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


def outlined(images: Tensor, marks: dict[str, Tensor], boxes: Tensor) -> None:
    """Show rows of the same pictures, in each row other patches outlined.

    Args:
        images: (n, H, W), from 0, paper, to 1, ink.
        marks: by the name that stands left of its row, (n, rows, cols), True where it is outlined.
        boxes: (n, 2), the top left pixels of squares of 8 pixels to frame in all rows.
    """
    count = len(images)
    axes = panels(len(marks), count, 1.05 * count + 1.2, 1.1 * len(marks))
    for line, (name, marked) in zip(axes, marks.items(), strict=True):
        line[0].set_ylabel(name, rotation=0, ha="right", va="center")
        high, wide = (images.shape[i] / marked.shape[i] for i in (1, 2))
        for ax, image, places, box in zip(line, images, marked, boxes.tolist(), strict=True):
            ax.imshow(image, cmap="gray_r", vmin=0, vmax=1)
            bordered(ax)
            rectangle(ax, box[1] - 0.5, box[0] - 0.5, 8, 8, fill=False, ec=CLS, lw=1.5)
            for row, col in places.nonzero().tolist():
                x, y = wide * col - 0.5, high * row - 0.5
                rectangle(ax, x, y, wide, high, fc=QUERY, ec=QUERY, alpha=0.45)


def maps_beside(image: Tensor, maps: dict[str, Tensor], own_scale: bool = False) -> None:
    """Show a picture, and maps of it to its right, each under its name.

    Args:
        image: (C, H, W), from 0 to 1.
        maps: by name, (rows, cols).
        own_scale: each map goes from its own smallest number to its own largest, and both stand
            below it; else all share one scale from 0 to the largest, whose bar stands at the right.
    """
    high = max(tile.max().item() for tile in maps.values())
    count = 1 + len(maps)
    axes = panels(1, count, 1.9 * count + 0.7, 2.3)[0]
    picture(image, "picture", axes[0])
    for ax, (name, tile) in zip(axes[1:], maps.items(), strict=True):
        shown = ax.imshow(tile.detach().cpu().float().numpy(), cmap=WEIGHTS)
        ax.set_title(name)
        bordered(ax)
        if own_scale:
            ax.set_xlabel(f"{tile.min():.4f} to {tile.max():.4f}")
        else:
            shown.set_clim(0.0, high)
    if not own_scale:
        axes[0].figure.colorbar(axes[-1].images[0], ax=axes, shrink=0.8, aspect=15)
