"""Lesson 03's drawings: a patch alone, a soft lookup, three roles, the width cut into heads."""

from collections.abc import Sequence
from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from .figures import FAINT, INK, KEY, PATCH, QUERY, VALUE, bordered, new_axes, panels, rectangle

ROLES = {"q": QUERY, "k": KEY, "v": VALUE}


def same_patch(images: Tensor, place: int, patch_size: int) -> None:
    """Show a patch of the first picture alone, and where it stands in each of several pictures.

    Args:
        images: (n, 1, H, W), from -1, paper, to 1, ink.
        place: the patch's number, counted row by row from 0.
    """
    row, column = divmod(place, images.shape[3] // patch_size)
    y, x = row * patch_size, column * patch_size
    patch = images[0, 0, y : y + patch_size, x : x + patch_size]
    alone, *axes = panels(1, len(images) + 1, 1.5 * (len(images) + 1), 1.75)[0]
    for ax, image in zip((alone, *axes), (patch, *images[:, 0]), strict=True):
        ax.imshow(image.numpy(), cmap="gray_r", vmin=-1, vmax=1)
        bordered(ax)
    bordered(alone, PATCH, 2.5)
    alone.set_title("one patch", size=10)
    for ax in axes:
        rectangle(ax, x - 0.5, y - 0.5, patch_size, patch_size, fill=False, ec=PATCH, lw=2.5)


def soft_lookup(query: Tensor, keys: Tensor, values: Tensor, weights: Tensor) -> None:
    """Draw a lookup in the plane: left the query among the keys, right what is read.

    Args:
        query: (2,).
        keys, values: (3, 2), one row a token: A, B and C.
        weights: (3,), of sum 1; a value's dot is as large as its weight.
    """
    left, right = panels(1, 2, 8.4, 3.8)[0]
    thin, thick = dict(color=KEY, width=1.5, headwidth=8), dict(color=QUERY, width=3, headwidth=10)
    for name, key in zip("ABC", keys.tolist(), strict=True):
        left.annotate("", key, (0, 0), arrowprops=thin)
        left.text(key[0] + 0.06, key[1] + 0.04, f"key {name}", color=INK)
    left.annotate("", query.tolist(), (0, 0), arrowprops=thick)
    left.text(query[0] + 0.08, query[1] - 0.1, "query", color=QUERY, weight="bold")
    ends = torch.cat([torch.zeros(1, 2), keys, query[None]])
    (low, bottom), (high, top) = ends.min(0).values.tolist(), ends.max(0).values.tolist()
    room = 0.22 * max(high - low, top - bottom)
    left.set(xlim=(low - room / 3, high + room), ylim=(bottom - room / 3, top + room / 2))
    left.set(title="asked", aspect="equal")
    right.fill(*values.T.tolist(), facecolor="none", edgecolor=VALUE, linestyle=":")
    for name, value, weight in zip("ABC", values.tolist(), weights.tolist(), strict=True):
        right.scatter(*value, s=1000 * weight, color=VALUE)
        text = f"value {name}: {weight:.0%}"
        right.annotate(text, value, (12, 12), textcoords="offset points", va="center")
    mixture = (weights @ values).tolist()
    right.scatter(*mixture, s=160, marker="*", color=QUERY, zorder=3)
    bold = dict(color=QUERY, weight="bold")
    right.annotate("read", mixture, (-10, -4), textcoords="offset points", ha="right", **bold)
    right.set(title="read")
    right.margins(0.15, 0.15)
    right.set_xlim(right=right.get_xlim()[1] + 0.3 * float(values[:, 0].max() - values[:, 0].min()))
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)


def three_roles(names: Sequence[str] = ("eye", "cheek", "wall")) -> None:
    """Draw tokens with their queries, keys and values, and what the first one reads from all."""
    ax = new_axes(8.6, 4.0)
    ax.set(xlim=(-0.1, 10.5), ylim=(-0.35, 4.65), aspect="equal")
    ax.axis("off")
    middle = 3.9 * (len(names) - 1) / 2 + 1.2
    _label(ax, middle, 0.0, 2.8, f"what the {names[0]} reads", "white", VALUE)
    for number, name in enumerate(names):
        left = 3.9 * number
        _label(ax, left + 1.2, 4.3, 2.5, f"token: {name}", PATCH, PATCH, "white")
        for part, (role, colour) in enumerate(ROLES.items()):
            x = left + 0.3 + 0.9 * part
            used = number == 0 or role != "q"  # the other tokens ask too, but not in this picture
            _label(ax, x, 2.9, 0.66, role, colour if used else "white", colour)
            arrow = dict(arrowstyle="-|>", color=INK, lw=0.8)
            ax.annotate("", (x, 3.18), (x, 4.02), arrowprops=arrow)
            if number == 0:
                ax.text(x + 0.08, 3.62, f"$W_{role}$", size=9, va="center")
        bend = f"arc3,rad={0.6 if number == 0 else 0.2}"
        asks = dict(arrowstyle="-", color=QUERY, lw=1.8, connectionstyle=bend)
        ax.annotate("", (left + 1.2, 2.62), (0.3, 2.62), arrowprops=asks)
        hands = dict(arrowstyle="-|>", color=VALUE, lw=1.8)
        ax.annotate("", (middle + 0.9 * (number - 1), 0.29), (left + 2.1, 2.62), arrowprops=hands)
    ax.text(0.2, 1.75, f"the {names[0]}'s query\nasks every key", color=QUERY, size=10, va="center")
    ax.text(middle + 2.3, 0.75, "values, by their weights", color=VALUE, size=10)


def _label(
    ax: Any, x: float, y: float, width: float, text: str, face: str, edge: str, ink: str = INK
) -> None:
    """Draw a box of this width with a text in it, about its middle."""
    rectangle(ax, x - width / 2, y - 0.27, width, 0.54, facecolor=face, edgecolor=edge, lw=1.4)
    ax.text(x, y, text, ha="center", va="center", color=ink, size=10)


def possible_reads(values: Tensor, points: dict[str, Tensor]) -> None:
    """Draw two values in the plane, the line of all their mixtures, and what was read.

    Args:
        values: (2, 2), one row a token.
        points: what was read, (2,), by the name of the reader; at most three.
    """
    ax = new_axes(5.6, 3.4)
    ax.plot(*values.T.tolist(), "o-", color=VALUE, label="all mixtures of A and B")
    for name, value in zip("AB", values.tolist(), strict=True):
        ax.annotate(f"value {name}", value, (0, -18), textcoords="offset points", ha="center")
    looks = (("s", KEY), ("*", QUERY), ("^", PATCH))
    for (name, point), (marker, colour) in zip(points.items(), looks, strict=False):
        ax.plot(*point.tolist(), marker, color=colour, markersize=13, label=name, linestyle="")
    ax.margins(0.2, 0.3)
    ax.set(xlabel="first number", ylabel="second number")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="upper left", frameon=False, ncols=2, fontsize=9)


def qkv_rows(width: int, num_heads: int, *orders: str) -> None:
    """Draw what each row of a fused weight (3·width, width) makes, one line of boxes an order.

    Args:
        orders: of the axes qkv, h and d, such as "(qkv h d)", the last one the fastest.
    """
    ax = new_axes(9, 0.9 * len(orders) + 0.1)
    ax.set(xlim=(-0.02, 3 * width), ylim=(1.5 * len(orders) - 0.45, -0.6), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
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
    ax = new_axes(9.6, 3.0)
    thick = {"fill": False, "edgecolor": INK, "lw": 2.2}  # a frame about what stands together
    stages = {  # of each step: its title, how far its heads stand apart
        "(B, N, D)": ("tokens", 0.0),
        "(B, N, h, d)": ("1. cut the width", 0.7),
        "(B, h, N, d)": ("2. heads come before tokens", 1.2),
    }
    for step, (shape, (title, apart)) in enumerate(stages.items()):
        across = width + (num_heads - 1) * apart
        ax.text(left + across / 2, -1.35, title, ha="center", size=11)
        ax.text(left + across / 2, count + 0.55, shape, ha="center", size=11, weight="bold")
        for head, part in enumerate(tokens.split(d, dim=1)):
            x = left + head * (d + apart)
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
    ax.axis("off")


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
