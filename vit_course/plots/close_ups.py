"""Pixels, patches and templates, enlarged: the drawings of lessons 00 and 01."""

from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from .figures import FAINT, INK, PAPER, PATCH, matrix, picture

SIGNED = "PuOr"  # numbers of either sign: orange below zero, white at zero, purple above


def frame(ax: Any, top: float, left: float, height: float, width: float, line: float = 1.6) -> None:
    """Frame these pixels of a picture, seen on dark and on light."""
    from matplotlib.patches import Rectangle

    for colour, thickness in (("black", 2 * line), (PAPER, line)):
        ax.add_patch(
            Rectangle((left - 0.5, top - 0.5), width, height, fill=False, ec=colour, lw=thickness)
        )


def crisp(ax: Any) -> None:
    """Let the pixels of a drawn image be squares of one colour: true to it, and half the bytes."""
    for image in ax.images:
        image.set_interpolation("nearest")


def pictures(named: dict[str, Tensor], height: float = 2.2) -> None:
    """Show images (C, H, W), 0 to 1, side by side, each below its name.

    Args:
        named: a name and the image; their sizes may differ.
        height: of each, in inches.
    """
    import matplotlib.pyplot as plt

    widths = [image.shape[2] / image.shape[1] for image in named.values()]
    size = (round(sum(widths) * height + 0.15 * len(named), 1), height + 0.4)
    _, axes = plt.subplots(
        1, len(named), figsize=size, layout="constrained", squeeze=False, width_ratios=widths
    )
    for (name, image), ax in zip(named.items(), axes[0], strict=True):
        picture(image, ax=ax)
        crisp(ax)
        ax.set_title(name, size=10)


def colour_channels(image: Tensor) -> None:
    """Show a small image (3, H, W), 0 to 1, and its red, green and blue as numbers."""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, 4, figsize=(9, 1.7), layout="constrained")
    tile(image, "the picture", axes[0])
    for channel, name, ax in zip(image, ("red", "green", "blue"), axes[1:], strict=True):
        matrix(channel, name, form="{:.1f}", limits=(0, 1), ax=ax)


def close_up(image: Tensor, top: int, left: int, side: int) -> None:
    """Show where `side`×`side` pixels of an image (3, H, W) stand, those enlarged, and their red.

    Args:
        top, left: the first row and column, in pixels.
    """
    import matplotlib.pyplot as plt

    part = image[:, top : top + side, left : left + side]
    _, axes = plt.subplots(1, 3, figsize=(9.4, 3.1), layout="constrained")
    picture(image, "the photo", axes[0])
    crisp(axes[0])
    frame(axes[0], top, left, side, side)
    tile(part, f"{side}×{side} pixels of it", axes[1])
    matrix(part[0], "their red", limits=(0, 1), ax=axes[2])


def cuttings(named: dict[str, Tensor], height: int, width: int) -> None:
    """Show which pixels a token holds: pictures of numbered pixels, each token in a tint and frame.

    Args:
        named: a name, and tokens (n, numbers in each) cut from a picture of one channel whose
            pixels hold 0, 1, 2, … row by row.
        height, width: of the picture, in pixels.
    """
    import matplotlib.pyplot as plt
    from matplotlib.colors import to_rgb

    _, axes = plt.subplots(
        1, len(named), figsize=(2.6 * len(named), 2.8), layout="constrained", squeeze=False
    )
    blue = torch.tensor(to_rgb(PATCH))
    for (name, tokens), ax in zip(named.items(), axes[0], strict=True):
        owner = torch.empty(height * width, dtype=torch.long)
        for number, token in enumerate(tokens):
            owner[token.long()] = number
        share = (owner / (len(tokens) - 1) * 0.6 + 0.1)[:, None]
        tints = (1 - share) + share * blue
        picture(tints.view(height, width, 3).permute(2, 0, 1), name, ax)
        owner = owner.view(height, width)
        for i in range(height):
            for j in range(width):
                ax.text(j, i, str(i * width + j), ha="center", va="center", color=INK)
                if j and owner[i, j] != owner[i, j - 1]:
                    ax.plot((j - 0.5, j - 0.5), (i - 0.5, i + 0.5), color=INK, lw=2)
                if i and owner[i, j] != owner[i - 1, j]:
                    ax.plot((j - 0.5, j + 0.5), (i - 0.5, i - 0.5), color=INK, lw=2)


def as_tile(numbers: Tensor, patch_size: int) -> Tensor:
    """A flat patch or template (P·P·C,) as a picture (C, P, P)."""
    return rearrange(numbers, "(p1 p2 c) -> c p1 p2", p1=patch_size, p2=patch_size)


def tile(image: Tensor, title: str, ax: Any) -> None:
    """Show a small image (C, H, W), 0 to 1, with a thin frame, since it may be white."""
    picture(image, title, ax)
    ax.axis("on")
    ax.set(xticks=(), yticks=())
    ax.spines[:].set_color(FAINT)


def in_grey(numbers: Tensor, largest: float) -> Tensor:
    """Numbers from -largest to largest as brightness from 0 to 1, so that zero is middle grey."""
    return (numbers / largest + 1) / 2


def template_products(patch: Tensor, templates: dict[str, Tensor], patch_size: int = 16) -> None:
    """Show how a patch answers templates: patch, template, their products, the sum.

    Args:
        patch: (P·P·C,), normalised, -1 to 1.
        templates: a name and (P·P·C,). In a picture of one, middle grey is zero.
    """
    import matplotlib.pyplot as plt

    patch, templates = patch.detach(), {name: t.detach() for name, t in templates.items()}
    rows = len(templates)
    _, axes = plt.subplots(
        rows, 3, figsize=(7.2, 2.05 * rows + 0.2), layout="constrained", squeeze=False
    )
    largest = max(t.abs().max().item() for t in templates.values())
    products = {name: as_tile(patch * t, patch_size).sum(0) for name, t in templates.items()}
    limit = max(p.abs().max().item() for p in products.values())
    drawn = None
    for (name, template), row in zip(templates.items(), axes, strict=True):
        tile(in_grey(as_tile(patch, patch_size), 1), "the patch", row[0])
        tile(in_grey(as_tile(template, patch_size), largest), f"times “{name}”", row[1])
        drawn = row[2].imshow(products[name].numpy(), cmap=SIGNED, vmin=-limit, vmax=limit)
        total = f"{products[name].sum():.0f}".replace("-", "−")
        row[2].set_title(f"the products: sum {total}")
        row[2].set(xticks=(), yticks=())
    plt.colorbar(drawn, ax=axes[:, 2].tolist(), shrink=0.8)


def template_grid(named: dict[str, Tensor], columns: int = 16) -> None:
    """Show templates as pictures, all on one scale: middle grey is zero.

    Args:
        named: a name and templates (k, C, P, P), as a convolution's weight has them.
        columns: how many stand in a row.
    """
    import matplotlib.pyplot as plt

    rows = [-(-len(templates) // columns) for templates in named.values()]
    largest = max(templates.abs().max().item() for templates in named.values())
    size = (9, 9 / columns * sum(rows) + 0.25 * len(named))
    _, axes = plt.subplots(
        len(named), 1, figsize=size, layout="constrained", squeeze=False, height_ratios=rows
    )
    for (name, templates), count, ax in zip(named.items(), rows, axes[:, 0], strict=True):
        k, channels, side, _ = templates.shape
        sheet = torch.ones(columns * count, channels, side + 1, side + 1)  # a white gap each
        sheet[:k, :, :side, :side] = in_grey(templates.detach().cpu(), largest)
        picture(rearrange(sheet, "(i j) c h w -> c (i h) (j w)", j=columns), ax=ax)
        crisp(ax)
        ax.set_title(name, size=10, loc="left")
