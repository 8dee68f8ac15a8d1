"""Lesson 01: a picture cut into patches, its axes split and merged, templates and their answers."""

from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from vit_steps.patches import patchify

from .close_ups import crisp, tile
from .colours import CLS, INK, PATCH, SIGNED
from .figures import panels, picture, pixel_frame, rectangle, sketch

PATCHES = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7")  # of four patches, told apart by all


def cut_in_a_row(image: Tensor, patch_size: int, shown: int = 16) -> None:
    """Show an image with the borders of its patches, the patches in a row, and these as a table.

    Args:
        image: (C, H, W), from 0 to 1.
        patch_size: side of a patch, in pixels.
        shown: so many patches stand in the row, the first ones.
    """
    import matplotlib.pyplot as plt

    cells = rearrange(image, "c (i p) (j q) -> (i j) c p q", p=patch_size, q=patch_size)
    table = patchify(image[None], patch_size)[0]  # (n, P·P·C)
    figure = plt.figure(figsize=(9.4, 3.6), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=(2.6, 1))
    above, below = parts
    left, right = above.subplots(1, 2, width_ratios=(1, 1.6))
    crisp(image, left)
    for line, side in ((left.axvline, image.shape[2]), (left.axhline, image.shape[1])):
        for at in range(patch_size, side, patch_size):
            line(at - 0.5, color=PATCH, linewidth=0.9)
    left.set_title(f"{len(cells)} patches", size=10)
    pixels = table.unflatten(1, (-1, len(image)))  # (n, P·P, C): a colour each
    look = dict(aspect="auto", interpolation="nearest", vmin=0, vmax=1, cmap="gray")
    right.imshow((pixels if len(image) == 3 else pixels[..., 0]).numpy(), **look)
    right.set(xticks=[], ylabel="patch", xlabel=f"its {table.shape[1]} numbers, pixel by pixel")
    right.set_yticks([0, len(table) - 1])
    right.set_title(f"the table, {len(table)}×{table.shape[1]}", size=10)
    row = below.subplots(1, shown, squeeze=False)[0]
    for number, ax in enumerate(row):
        crisp(cells[number], ax)
        ax.set_title(str(number), size=7, pad=2)
    words = "the patches in a row" + (" (the first ones)" if shown < len(cells) else "")
    below.suptitle(words, size=10)


def split_and_merge() -> None:
    """Draw how einops cuts a 4×4 picture: each side split in two, then merged again, in colour."""
    ax = sketch(9.4, 3.3, xlim=(-2.6, 13.6), ylim=(-1.0, 5.7))
    small = dict(ha="center", va="center")
    code = dict(family="monospace", weight="bold", size=10)
    for i in range(4):
        row, p1 = divmod(i, 2)
        ax.text(-0.2, 3.5 - i, f"row {row}, p1 {p1}", ha="right", va="center", size=8)
        ax.text(i + 0.5, 4.45, f"col {row}\np2 {p1}", size=8, **small)
        for j in range(4):
            col, p2 = divmod(j, 2)
            look = dict(facecolor=PATCHES[2 * row + col], edgecolor="white")
            rectangle(ax, j, 3 - i, 1, 1, **look)
            ax.text(j + 0.5, 3.5 - i, str(4 * i + j), **small)
            rectangle(ax, 8.5 + 2 * p1 + p2, 3 - 2 * row - col, 1, 1, **look)
            place = (9 + 2 * p1 + p2, 3.5 - 2 * row - col)
            ax.text(*place, str(4 * i + j), **small)
            if (i, j) == (1, 2):  # the 6, which the text follows
                for left, low in ((j, 3 - i), (8.5 + 2 * p1 + p2, 3 - 2 * row - col)):
                    rectangle(ax, left, low, 1, 1, fill=False, edgecolor=INK, lw=2.5, zorder=3)
    for k in range(4):
        first, second = divmod(k, 2)
        ax.text(8.3, 3.5 - k, f"row {first}, col {second}", ha="right", va="center", size=8)
        ax.text(9 + k, 4.45, f"p1 {first}\np2 {second}", size=8, **small)
    ax.text(2, 5.25, "(row p1) (col p2)", ha="center", **code)
    ax.text(8.2, 5.25, "which patch", ha="right", size=10, weight="bold")
    ax.text(10.5, 5.25, "where in the patch", ha="center", size=10, weight="bold")
    ax.text(2, -0.6, "split: where is a pixel?", ha="center", size=9)
    ax.text(11, -0.6, "merged: one row for each patch", ha="center", size=9)
    ax.annotate("", (6.0, 2), (4.4, 2), arrowprops=dict(arrowstyle="-|>", lw=1.5, color=INK))


def sliding() -> None:
    """Draw a template that slides over 4×4 pixels, by one or by its width; D maps, one token."""
    axes = panels(1, 3, 9.4, 2.9, width_ratios=(1, 1, 1.5))[0]
    for ax, stride in zip(axes, (1, 2), strict=False):
        for i in range(4):
            for j in range(4):
                rectangle(ax, j, 3 - i, 1, 1, facecolor="#EEEEEE", edgecolor="white")
        for number, colour in enumerate((PATCH, CLS)):
            shift = 0.06 * number if stride == 1 else 0
            box = dict(fill=False, ec=colour, lw=3)
            rectangle(ax, stride * number + 0.05, 2.05 - shift, 1.9, 1.9, **box)
        count = (4 - 2) // stride + 1
        words = "windows overlap" if stride == 1 else "each patch once"
        ax.set_title(f"stride {stride}: {words},\n{count}×{count} answers", size=10)
        ax.set(xlim=(-0.2, 4.2), ylim=(-0.2, 4.2), aspect="equal")
        ax.axis("off")
    ax = axes[2]
    for k in range(4):  # D maps of 2×2 answers, one behind the other
        for i in range(2):
            for j in range(2):
                first = i == 0 and j == 0
                face = PATCH if first else "#EEEEEE"
                x, y = j + 0.55 * k, 1 - i + 0.55 * k
                rectangle(ax, x, y, 1, 1, facecolor=face, edgecolor="white", zorder=4 - k)
        rectangle(ax, 6.3, 2.4 - 0.55 * k, 1.1, 0.5, facecolor=PATCH, edgecolor="white")
    ax.annotate("", (6.1, 1.8), (4.4, 1.8), arrowprops=dict(arrowstyle="-|>", color=INK))
    ax.set_title("D templates: D maps, and\none place in all of them is one token", size=10)
    ax.set(xlim=(-0.2, 8), ylim=(-0.2, 4.2), aspect="equal")
    ax.axis("off")


def answer_map(image: Tensor, answers: Tensor, name: str, outlined: int = 5) -> None:
    """Show an image (C, H, W), 0 to 1, and what each of its patches answers (rows, columns).

    The patches with the largest answers are outlined in both.
    """
    left, right = panels(1, 2, 8.2, 3.6)[0]
    picture(image, "the photo", left)
    side = image.shape[1] // len(answers)
    for place in answers.flatten().topk(outlined).indices.tolist():
        row, column = divmod(place, answers.shape[1])
        pixel_frame(left, row * side, column * side, side, side)
        pixel_frame(right, row, column, 1, 1)
    limit = answers.abs().max().item()
    shown = right.imshow(answers.numpy(), cmap=SIGNED, vmin=-limit, vmax=limit)
    right.set(xticks=[], yticks=[])
    right.set_title(f"answers to “{name}”", size=11)
    right.figure.colorbar(shown, ax=right, shrink=0.8)


def memory_row() -> None:
    """Draw a 4×4 picture as it lies in memory, a row, and what `view` and the loop bracket of it.

    Each number has the colour of its patch, 2×2 pixels.
    """
    ax = sketch(9.4, 2.1, xlim=(-2.6, 17.2), ylim=(-2.0, 2.4))
    numbers = torch.arange(16).view(1, 1, 4, 4)
    by_patch = patchify(numbers, 2).flatten()
    patch_of = by_patch.argsort() // 4
    for top, words, row in ((1.3, "in memory", numbers.flatten()), (-1.3, "the loop", by_patch)):
        ax.text(-0.3, top + 0.5, words, ha="right", va="center", size=9)
        for place, number in enumerate(row.tolist()):
            x = place + 0.3 * (place // 4 if top < 0 else 1.5)
            look = dict(facecolor=PATCHES[patch_of[number]], edgecolor="white")
            rectangle(ax, x, top, 1, 1, **look)
            ax.text(x + 0.5, top + 0.5, str(number), ha="center", va="center", size=9)
    ax.text(-0.3, 0.75, "view", ha="right", va="center", size=9, weight="bold")
    for start in range(0, 16, 4):
        for top, shift in ((0.75, 0.45), (-1.85, 0.075 * start)):
            left, right = start + shift + 0.08, start + shift + 3.92
            ax.plot((left, left, right, right), (top + 0.2, top, top, top + 0.2), color=INK, lw=1.5)


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
        tile((tiled(patch) + 1) / 2, "the patch", row[0])
        tile((tiled(template) / largest + 1) / 2, f"times “{name}”", row[1])
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
        crisp(rearrange(sheet, "(i j) c h w -> c (i h) (j w)", j=columns), ax)
        ax.set_title(name, size=10, loc="left")
