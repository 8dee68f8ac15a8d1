"""Lesson 03's drawings: a patch alone, heads, the order of fused rows; 09's paths of attention."""

from collections.abc import Sequence
from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from .colours import CLS, FAINT, INK, KEY, PATCH, QUERY, VALUE
from .figures import bordered, panels, rectangle, sketch

ROLES = {"q": QUERY, "k": KEY, "v": VALUE}


def same_patch(images: Tensor, place: int, patch_size: int, labels: Tensor) -> None:
    """Show a patch of the first picture alone, and where it stands in each of several pictures.

    Args:
        images: (n, 1, H, W), from -1, paper, to 1, ink.
        place: the patch's number, counted row by row from 0.
        labels: (n,), what stands above each.
    """
    row, column = divmod(place, images.shape[3] // patch_size)
    y, x = row * patch_size, column * patch_size
    patch = images[0, 0, y : y + patch_size, x : x + patch_size]
    alone, *axes = panels(1, len(images) + 1, 1.5 * (len(images) + 1), 1.75)[0]
    for ax, image in zip((alone, *axes), (patch, *images[:, 0]), strict=True):
        ax.imshow(image.numpy(), cmap="gray_r", vmin=-1, vmax=1)
        bordered(ax)
    bordered(alone, PATCH, 2.5)
    alone.set_title("the first one's patch", size=9)
    for ax, label in zip(axes, labels.tolist(), strict=True):
        ax.set_title(label, size=9)
        rectangle(ax, x - 0.5, y - 0.5, patch_size, patch_size, fill=False, ec=PATCH, lw=2.5)


def qkv_rows(width: int, num_heads: int, *orders: str) -> None:
    """Draw what each row of a fused weight (3·width, width) makes, one line of boxes an order.

    Args:
        orders: of the axes qkv, h and d, such as "(qkv h d)", the last one the fastest.
    """
    count = len(orders)
    ax = sketch(9, 0.9 * count + 0.1, xlim=(-0.02, 3 * width), ylim=(1.5 * count - 0.45, -0.6))
    rows = torch.arange(3 * width)
    for line, order in enumerate(orders):
        ordered = rearrange(rows, f"(qkv h d) -> {order}", qkv=3, h=num_heads).tolist()
        ax.text(0, 1.5 * line - 0.12, f"rows in the order {order}", va="bottom", size=10)
        for x, row in enumerate(ordered):
            role, head = "qkv"[row // width], row % width // (width // num_heads)
            rectangle(ax, x, 1.5 * line, 0.96, 1, facecolor=ROLES[role], edgecolor="none")
            text = f"{role}\nhead {head}"
            ax.text(x + 0.48, 1.5 * line + 0.5, text, ha="center", va="center", size=9)


def heads_cut(tokens: Tensor, num_heads: int) -> None:
    """Draw how `split_heads` cuts the tokens of two images: as blocks, in three steps.

    Args:
        tokens: (N, D), of the first image, whole numbers; the second lies behind it.
        num_heads: divides D.
    """
    count, width = tokens.shape
    d, left = width // num_heads, 0.0
    ax = sketch(9.6, 3.0)
    thick = {"fill": False, "edgecolor": INK, "lw": 2.2}  # a frame about what stands together
    stages = {  # of each step: its title, how far its heads stand apart
        "(B, N, D)": ("queries of N tokens", 0.0),
        "(B, N, h, d)": ("1. cut the width", 0.7),
        "(B, h, N, d)": ("2. heads come before tokens", 1.2),
    }
    for step, (shape, (title, apart)) in enumerate(stages.items()):
        across = width + (num_heads - 1) * apart
        ax.text(left + across / 2, -1.35, title, ha="center", size=11)
        ax.text(left + across / 2, count + 0.55, shape, ha="center", size=11, weight="bold")
        for head, part in enumerate(tokens.split(d, dim=1)):
            x = left + head * (d + apart)
            if step != 1:  # where it would look like a column in the gap
                _sheet(ax, x + 0.35, -0.35, part, head, numbers=False)
            _sheet(ax, x, 0, part, head)
            if step:
                ax.text(x + d / 2, -0.5, f"head {head}", ha="center", size=9, color=INK)
            if step == 2:
                rectangle(ax, x, 0, d, count, **thick)
        if step == 1:
            for row in range(count):
                rectangle(ax, left, row, across, 1, **thick)
        if step:
            arrow = dict(arrowstyle="-|>", color=INK, lw=1.4)
            ax.annotate("", (left - 0.5, count / 2), (left - 1.7, count / 2), arrowprops=arrow)
        left += across + 2.6
    ax.text(-0.25, count / 2, "N tokens", rotation=90, ha="right", va="center", size=9)
    ax.set(xlim=(-1.0, left - 1.8), ylim=(count + 1.0, -1.7), aspect="equal")


def _sheet(ax: Any, left: float, top: float, part: Tensor, head: int, numbers: bool = True) -> None:
    """Draw cells, one row a token, in their head's colour; without numbers they lie behind."""
    shades = ("#CFE3F1", "#F6D7C3", "#CDEBE0", "#E9D3E1")
    face = shades[head % len(shades)] if numbers else "#EEEEEE"
    edge = INK if numbers else FAINT
    for row, line in enumerate(part.tolist()):
        for column, number in enumerate(line):
            x, y = left + column, top + row
            rectangle(ax, x, y, 1, 1, facecolor=face, edgecolor=edge, lw=0.8)
            if numbers:
                ax.text(x + 0.5, y + 0.5, f"{number:02}", ha="center", va="center")


def paths(block_1: Tensor, block_2: Tensor, names: Sequence[str]) -> None:
    """Draw what each token takes from each in two blocks; coloured what leads from the last to cls.

    Args:
        block_1: attention weights (N, N), a row for each query, as those of block_2; small N.
        names: of the tokens, cls first.
    """
    last = len(names) - 1
    ax = sketch(7.4, 3.4, xlim=(-0.5, 2.5), ylim=(last + 0.4, -0.8))
    for step, weights in enumerate((block_1, block_2)):
        for query, row in enumerate(weights.tolist()):
            for key, weight in enumerate(row):
                leads = key == last if step == 0 else query == 0
                look = dict(color=QUERY if leads else FAINT, lw=0.4 + 7 * weight, zorder=1 + leads)
                if not weight and leads:
                    look |= dict(lw=1.2, linestyle=":")
                if weight or leads:
                    ax.plot((step, step + 1), (key, query), solid_capstyle="butt", **look)
                if leads:
                    part = 0.62 if step == 0 else 0.38  # where the lines do not cross
                    x, y = step + part, key + (query - key) * part
                    style = dict(ha="center", va="center", size=9, zorder=4)
                    box = dict(boxstyle="round,pad=0.15", fc="white", ec="none")
                    ax.text(x, y, f"{weight:g}", bbox=box, **style)
    for column in range(3):
        for place, name in enumerate(names):
            colour = CLS if place == 0 else PATCH
            ax.plot(column, place, "o", color=colour, markersize=15, zorder=3)
            if column != 1:
                shift, side = (-14, "right") if column == 0 else (14, "left")
                ax.annotate(name, (column, place), (shift, 0), textcoords="offset points",
                            ha=side, va="center")  # fmt: skip
        word = ("at the start", "after block 1", "after block 2")[column]
        ax.text(column, -0.55, word, ha="center", weight="bold")
