"""Lesson 03's drawings: a soft lookup, three roles, the width cut into heads, rows of a weight."""

from collections.abc import Sequence
from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from .figures import INK, KEY, PATCH, QUERY, VALUE, mark_patches, new_axes, picture

ROLES = {"q": QUERY, "k": KEY, "v": VALUE}


def patches_alone(image: Tensor, places: dict[str, int], patch_size: int = 16) -> None:
    """Show an image (C, H, W) with some patches framed, and beside it each of them enlarged, alone.

    Args:
        places: a name and the patch's number, counted row by row from 0; `NAMED` has some.
    """
    import matplotlib.pyplot as plt

    columns = image.shape[2] // patch_size
    across = 3
    down = -(-len(places) // across)
    figure = plt.figure(figsize=(8.6, 4.3), layout="constrained")
    halves: Any = figure.subfigures(1, 2)
    left, right = halves
    mark_patches(image, places, patch_size, ax=left.subplots())
    axes = right.subplots(down, across, squeeze=False)
    for ax in axes.flat:
        ax.axis("off")
    for ax, (name, number) in zip(axes.flat, places.items(), strict=False):
        y, x = number // columns * patch_size, number % columns * patch_size
        picture(image[:, y : y + patch_size, x : x + patch_size], name, ax)


def soft_lookup(
    query: Tensor, keys: Tensor, values: Tensor, weights: Tensor, names: str = "ABC"
) -> None:
    """Draw a lookup in the plane: left the query among the keys, right what is read.

    Args:
        query: (2,).
        keys, values: (N, 2), one row a token.
        weights: (N,), of sum 1; a value's dot is as large as its weight.
        names: one letter a token.
    """
    import matplotlib.pyplot as plt

    _, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.8), layout="constrained")
    for name, key in zip(names, keys.tolist(), strict=True):
        left.annotate("", key, (0, 0), arrowprops=dict(color=KEY, width=1.5, headwidth=8))
        left.text(key[0] + 0.06, key[1] + 0.04, f"key {name}", color=INK)
    left.annotate("", query.tolist(), (0, 0), arrowprops=dict(color=QUERY, width=3, headwidth=10))
    left.text(query[0] + 0.08, query[1] - 0.1, "query", color=QUERY, weight="bold")
    ends = torch.cat([torch.zeros(1, 2), keys, query[None]])
    (low, bottom), (high, top) = ends.min(0).values.tolist(), ends.max(0).values.tolist()
    room = 0.22 * max(high - low, top - bottom)
    left.set(xlim=(low - room / 3, high + room), ylim=(bottom - room / 3, top + room / 2))
    left.set(title="asked", aspect="equal")
    right.fill(*values.T.tolist(), facecolor="none", edgecolor=VALUE, linestyle=":")
    for name, value, weight in zip(names, values.tolist(), weights.tolist(), strict=True):
        right.scatter(*value, s=1000 * weight, color=VALUE)
        text = f"value {name}: {weight:.0%}"
        right.annotate(text, value, (12, 12), textcoords="offset points", va="center")
    read = (weights @ values).tolist()
    right.scatter(*read, s=160, marker="*", color=QUERY, zorder=3)
    right.annotate(
        "read", read, (-10, -4), textcoords="offset points", ha="right", color=QUERY, weight="bold"
    )
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
    label(ax, middle, 0.0, 2.8, f"what the {names[0]} reads", "white", VALUE)
    for number, name in enumerate(names):
        left = 3.9 * number
        label(ax, left + 1.2, 4.3, 2.5, f"token: {name}", PATCH, PATCH, "white")
        for part, (role, colour) in enumerate(ROLES.items()):
            x = left + 0.3 + 0.9 * part
            used = number == 0 or role != "q"  # the other tokens ask too, but not in this picture
            label(ax, x, 2.9, 0.66, role, colour if used else "white", colour)
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


def label(
    ax: Any, x: float, y: float, width: float, text: str, face: str, edge: str, ink: str = INK
) -> None:
    """A box of this width with a text in it, about its middle."""
    from matplotlib.patches import Rectangle

    box = Rectangle((x - width / 2, y - 0.27), width, 0.54, facecolor=face, edgecolor=edge, lw=1.4)
    ax.add_patch(box)
    ax.text(x, y, text, ha="center", va="center", color=ink, size=10)


def possible_reads(values: Tensor, points: dict[str, Tensor], names: str = "AB") -> None:
    """Draw two values in the plane, the line of all their mixtures, and what was read.

    Args:
        values: (2, 2), one row a token.
        points: what was read, (2,), by the name of the reader; at most three.
    """
    ax = new_axes(5.6, 3.4)
    ax.plot(*values.T.tolist(), "o-", color=VALUE, label="all mixtures of A and B")
    for name, value in zip(names, values.tolist(), strict=True):
        ax.annotate(f"value {name}", value, (0, -18), textcoords="offset points", ha="center")
    for (name, point), marker, colour in zip(
        points.items(), ("s", "*", "^"), (KEY, QUERY, PATCH), strict=False
    ):
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
    from matplotlib.patches import Rectangle

    ax = new_axes(9, 0.9 * len(orders) + 0.1)
    ax.set(xlim=(-0.02, 3 * width), ylim=(1.5 * len(orders) - 0.45, -0.6), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    rows = torch.arange(3 * width)
    for line, order in enumerate(orders):
        made = rearrange(rows, f"(qkv h d) -> {order}", qkv=3, h=num_heads).tolist()
        ax.text(0, 1.5 * line - 0.12, f"rows in the order {order}", va="bottom", size=10)
        for at, row in enumerate(made):
            role, head = "qkv"[row // width], row % width // (width // num_heads)
            box = Rectangle((at, 1.5 * line), 0.96, 1, facecolor=ROLES[role], edgecolor="none")
            ax.add_patch(box)
            text = f"{role}\nhead {head}"
            ax.text(at + 0.48, 1.5 * line + 0.5, text, ha="center", va="center", size=9)


def signed_tables(parts: dict[str, Tensor], names: Sequence[str]) -> None:
    """Show square matrices of scores beside each other, in one scale whose middle is zero.

    Args:
        parts: a title and its matrix (N, N); row: the query's token, column: the key's.
        names: of the N tokens.
    """
    import matplotlib.pyplot as plt

    top = max(part.abs().max().item() for part in parts.values())
    size = (4.3 * len(parts) + 0.8, 4.2)
    figure, axes = plt.subplots(1, len(parts), figsize=size, layout="constrained")
    for ax, (title, part) in zip(axes, parts.items(), strict=True):
        ax.imshow(part.detach().numpy(), cmap="PuOr", vmin=-top, vmax=top)
        for i, row in enumerate(part.tolist()):
            for j, score in enumerate(row):
                ink = "white" if abs(score) > 0.6 * top else "black"
                text = f"{score:.1f}".replace("-0.0", "0.0")
                ax.text(j, i, text, ha="center", va="center", size=8, color=ink)
        ax.set_xticks(range(len(names)), names, rotation=45, ha="right")
        ax.set_yticks(range(len(names)), names)
        ax.tick_params(length=0)
        ax.set(title=title, xlabel="key of", ylabel="query of")
    figure.colorbar(axes[0].images[0], ax=axes, shrink=0.8, label="score")
