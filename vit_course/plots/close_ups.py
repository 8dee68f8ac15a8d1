"""Pixels, patches and templates, enlarged: lessons 00, 01 and 13."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from vit_steps.patches import patchify, unpatchify

from .figures import FAINT, INK, PATCH, bordered, matrix, panels, picture, pixel_frame

SIGNED = "PuOr"  # numbers of either sign: orange below zero, white at zero, purple above


def _crisp(ax: Any) -> None:
    """Let the pixels of a drawn image be squares of one colour: true to it, and half the bytes."""
    for image in ax.images:
        image.set_interpolation("nearest")


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
        picture(image, ax=ax)
        _crisp(ax)
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
    picture(image, "the photo", axes[0])
    _crisp(axes[0])
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
    blue = torch.tensor(to_rgb(PATCH))
    for (name, tokens), ax in zip(named.items(), axes, strict=True):
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


def _tile(image: Tensor, title: str, ax: Any) -> None:
    """Show a small image (C, H, W), 0 to 1, with a thin frame, since it may be white."""
    picture(image, title, ax)
    ax.axis("on")
    bordered(ax, FAINT)


def _in_grey(numbers: Tensor, largest: float) -> Tensor:
    """Turn numbers from -largest to largest into brightness, 0 to 1: zero is middle grey."""
    return (numbers / largest + 1) / 2


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
        _tile(_in_grey(tiled(patch), 1), "the patch", row[0])
        _tile(_in_grey(tiled(template), largest), f"times “{name}”", row[1])
        row[2].imshow(products[name].numpy(), cmap=SIGNED, vmin=-limit, vmax=limit)
        total = f"{products[name].sum():.0f}".replace("-", "−")
        row[2].set_title(f"the products: sum {total}")
        row[2].set(xticks=(), yticks=())
    last = axes[-1, 2]
    last.figure.colorbar(last.images[0], ax=axes[:, 2].tolist(), shrink=0.8)


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
        sheet[:k, :, :side, :side] = _in_grey(templates.detach().cpu(), largest)
        picture(rearrange(sheet, "(i j) c h w -> c (i h) (j w)", j=columns), ax=ax)
        _crisp(ax)
        ax.set_title(name, size=10, loc="left")
