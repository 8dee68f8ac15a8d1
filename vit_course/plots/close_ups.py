"""Pixels, patches and templates, enlarged, and maps beside them: lessons 00, 01, 09 and 13."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from vit_steps.patches import patchify, unpatchify

from .figures import (
    CLS,
    FAINT,
    INK,
    PATCH,
    WEIGHTS,
    bordered,
    matrix,
    panels,
    picture,
    pixel_frame,
    rectangle,
)

SIGNED = "PuOr"  # numbers of either sign: orange below zero, white at zero, purple above


def _crisp(image: Tensor, ax: Any) -> None:
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
        _crisp(image, ax)
        ax.set_title(name, size=10)


def merged_photo(photo: Tensor, merge: Callable, times: Sequence[int] = (60, 60)) -> None:
    """Show a photo (3, S, S), and each patch of 16×16 as its token shows it after some mergings.

    Patches of pixels serve as tokens and as keys. A one-hot row tied to each token tells afterwards
    which patches are in it.

    Args:
        merge: lesson 13's `merge_tokens`.
        times: how many tokens go in each merging.
    """
    patches = patchify(photo[None], 16)  # (1, n, 768)
    count, width = patches.shape[1] + 1, patches.shape[2]
    x = torch.cat([torch.zeros(1, 1, width), patches], dim=1)  # cls, patches
    x, sizes = torch.cat([x, torch.eye(count)[None]], dim=2), torch.ones(1, count)
    stages = {f"{count} tokens": photo}
    for r in times:
        x, sizes = merge(x, x[..., :width] - 0.5, sizes, r)
        members = (x[0, :, width:] > 0).float()  # (tokens, count)
        back = members.T @ x[0, :, :width]  # to each patch its token's pixels
        stages[f"{len(members)} tokens"] = unpatchify(back[None, 1:], 16, photo.shape[1])[0]
    pictures(stages, height=2.8)


def colour_channels(image: Tensor) -> None:
    """Show a small image (3, H, W), 0 to 1, and its red, green and blue as numbers."""
    axes = panels(1, 4, 9, 1.7)[0]
    _tile(image, "the picture", axes[0])
    for channel, name, ax in zip(image, ("red", "green", "blue"), axes[1:], strict=True):
        matrix(channel, name, form="{:.1f}", limits=(0, 1), ax=ax)


def close_up(image: Tensor, top: int, left: int, side: int) -> None:
    """Show where `side`×`side` pixels of an image (3, H, W) stand, those enlarged, and their red.

    Args:
        top, left: the first row and column, in pixels.
    """
    part = image[:, top : top + side, left : left + side]
    axes = panels(1, 3, 9.4, 3.1)[0]
    _crisp(image, axes[0])
    axes[0].set_title("the photo")
    pixel_frame(axes[0], top, left, side, side)
    _tile(part, f"{side}×{side} pixels of it", axes[1])
    matrix(part[0], "their red", limits=(0, 1), ax=axes[2])


def cuttings(named: dict[str, Tensor], height: int, width: int) -> None:
    """Show which pixels a token holds: pictures of numbered pixels, each token in a tint and frame.

    Args:
        named: a name, and tokens (n, numbers in each) cut from a picture of one channel whose
            pixels hold 0, 1, 2, … row by row.
        height, width: of the picture, in pixels.
    """
    from matplotlib.colors import to_rgb

    axes = panels(1, len(named), 2.6 * len(named), 2.8)[0]
    blue = torch.tensor(to_rgb(PATCH))[:, None, None]
    for (name, tokens), ax in zip(named.items(), axes, strict=True):
        token_of = tokens.flatten().argsort().view(height, width) // tokens.shape[1]
        share = token_of / (len(tokens) - 1) * 0.6 + 0.1
        picture((1 - share) + share * blue, name, ax)
        for i in range(height):
            for j in range(width):
                ax.text(j, i, str(i * width + j), ha="center", va="center", color=INK)
                if j and token_of[i, j] != token_of[i, j - 1]:
                    ax.plot((j - 0.5, j - 0.5), (i - 0.5, i + 0.5), color=INK, lw=2)
                if i and token_of[i, j] != token_of[i - 1, j]:
                    ax.plot((j - 0.5, j + 0.5), (i - 0.5, i - 0.5), color=INK, lw=2)


def _tile(image: Tensor, title: str, ax: Any) -> None:
    """Show a small image (C, H, W), 0 to 1, with a thin frame, since it may be white."""
    picture(image, title, ax)
    ax.axis("on")
    bordered(ax, FAINT)


def template_products(patch: Tensor, templates: dict[str, Tensor], patch_size: int = 16) -> None:
    """Show how a patch answers templates: patch, template, their products, the sum.

    Args:
        patch: (P·P·C,), normalised, -1 to 1.
        templates: a name and (P·P·C,). In a picture of one, middle grey is zero.
    """

    def tiled(numbers: Tensor) -> Tensor:  # (P·P·C,) as a picture (C, P, P)
        return rearrange(numbers.detach(), "(p1 p2 c) -> c p1 p2", p1=patch_size, p2=patch_size)

    largest = max(template.abs().max().item() for template in templates.values())
    products = {name: tiled(patch * template).sum(0) for name, template in templates.items()}
    limit = max(product.abs().max().item() for product in products.values())
    axes = panels(len(templates), 3, 7.2, 2.05 * len(templates) + 0.2)
    for (name, template), row in zip(templates.items(), axes, strict=True):
        _tile((tiled(patch) + 1) / 2, "the patch", row[0])
        _tile((tiled(template) / largest + 1) / 2, f"times “{name}”", row[1])
        title = f"the products: sum {products[name].sum():.0f}".replace("-", "−")
        row[2].imshow(products[name].numpy(), cmap=SIGNED, vmin=-limit, vmax=limit)
        row[2].set(title=title, xticks=(), yticks=())
    axes[0, 0].figure.colorbar(axes[0, 2].images[0], ax=axes[:, 2].tolist(), shrink=0.8)


def template_grid(named: dict[str, Tensor], columns: int = 16) -> None:
    """Show templates as pictures, all on one scale: middle grey is zero.

    Args:
        named: a name and templates (k, C, P, P), as a convolution's weight has them.
        columns: how many stand in a row.
    """
    rows = [-(-len(templates) // columns) for templates in named.values()]
    largest = max(templates.abs().max().item() for templates in named.values())
    height = 9 / columns * sum(rows) + 0.25 * len(named)
    axes = panels(len(named), 1, 9, height, height_ratios=rows)[:, 0]
    for (name, templates), count, ax in zip(named.items(), rows, axes, strict=True):
        k, channels, side, _ = templates.shape
        sheet = torch.ones(columns * count, channels, side + 1, side + 1)  # a white gap each
        sheet[:k, :, :side, :side] = (templates.detach().cpu() / largest + 1) / 2
        _crisp(rearrange(sheet, "(i j) c h w -> c (i h) (j w)", j=columns), ax)
        ax.set_title(name, size=10, loc="left")


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
