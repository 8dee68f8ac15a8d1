"""Lesson 03's lookups: a query among keys, the blend of values, three roles, heads at work."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .colours import FAINT, INK, KEY, PAPER, PATCH, QUERY, VALUE, WEIGHTS
from .figures import bordered, charts, panels, rectangle, sketch
from .roles import ROLES

NUMBERS = dict(xlabel="curves back", ylabel="is dark")  # what the two numbers of a value mean


def turning_query(query: Tensor, keys: Mapping[str, Sequence[float]], values: Tensor) -> None:
    """Draw a query that turns among keys, and what it gets: a dictionary's steps, the soft slope.

    Args:
        query: (2,), of what bends and what is low; it turns at its length.
        keys: (2,) by the name of each of three tokens.
        values: (3,), the number of each that is looked up.
    """
    plane, curve = charts(1, 2, 9.2, 3.4, width_ratios=(1, 1.7))[0]
    around = torch.linspace(-90, 180, 541).deg2rad()
    turned = torch.stack([around.cos(), around.sin()], dim=1) * query.norm()  # (541, 2)
    plane.plot(*turned.T.numpy(), color=QUERY, lw=1, linestyle=":")
    for name, (x, y) in keys.items():
        plane.annotate("", (x, y), (0, 0), arrowprops=dict(color=KEY, width=1.5, headwidth=8))
        shift, side = (-0.12, "right") if x == 0 else (0.1, "left")
        plane.text(x + shift, y, name.replace(" ", "\n"), va="center", ha=side, size=9)
    plane.annotate("", query.tolist(), (0, 0), arrowprops=dict(color=QUERY, width=3, headwidth=10))
    plane.text(float(query[0]) + 0.15, float(query[1]) + 0.1, "query", color=QUERY, weight="bold")
    wishes = {"high": -90, "a bend": 0, "low": 90, "straight": 180}
    for name, degrees in wishes.items():
        at = torch.tensor(degrees).deg2rad()
        x, y = 1.16 * query.norm() * torch.stack([at.cos(), at.sin()])
        ha = {0: "left", 180: "right"}.get(degrees, "center")
        plane.text(x, y, f"wants\n{name}", ha=ha, va="center", size=8, color=QUERY)
    plane.set(xlim=(-3.5, 3.9), ylim=(3.1, -3.1), aspect="equal", title="the query turns")
    plane.axis("off")

    degrees = torch.linspace(-90, 180, 541)
    scores = turned @ torch.tensor([*keys.values()]).T  # (541, 3)
    best = values[scores.argmax(dim=1)]
    best[1:][best[1:] != best[:-1]] = torch.nan  # no line where it jumps
    curve.plot(degrees, best, color=INK, lw=1.6, label="take the best match alone")
    curve.plot(degrees, scores.softmax(dim=1) @ values, color=VALUE, lw=3, label="blend them all")
    angle = torch.atan2(query[1], query[0]).rad2deg().item()
    here = ((torch.tensor([*keys.values()]) @ query).softmax(dim=0) @ values).item()
    curve.plot([angle], [here], "o", color=QUERY, markersize=9)
    curve.annotate("our query", (angle, here), (8, 6), textcoords="offset points", color=QUERY,
                   weight="bold", size=9)  # fmt: skip
    curve.set_xticks([*wishes.values()], [*wishes])
    curve.set(xlabel="what the query wants", ylabel="curves back", ylim=(0, 10.9))
    curve.legend(loc="upper left", frameon=False, fontsize=9)


def soft_lookup(values: Tensor, weights: Mapping[str, float]) -> None:
    """Draw values in the plane, each as large as its attention weight, and their blend.

    Args:
        values: (n, 2), one row a token: how much it curves back, and how dark it is.
        weights: of each token, by its name; they sum to 1.
    """
    ax = charts(1, 1, 5.8, 3.4)[0, 0]
    ax.fill(*values.T.tolist(), facecolor="none", edgecolor=VALUE, linestyle=":")
    for (name, weight), value in zip(weights.items(), values.tolist(), strict=True):
        ax.scatter(*value, s=1000 * weight, color=VALUE)
        shift = (12, -22 if value[1] == values[:, 1].min() else 12)
        ax.annotate(f"{name}: {weight:.0%}", value, shift, textcoords="offset points", size=9)
    blend = (torch.tensor([*weights.values()]) @ values).tolist()
    ax.scatter(*blend, s=160, marker="*", color=QUERY, zorder=3)
    ax.annotate("blend", blend, (-10, -12), textcoords="offset points", ha="right", color=QUERY,
                weight="bold")  # fmt: skip
    ax.set(xlim=(0, 13), ylim=(0, 9.9), title="area = attention weight", **NUMBERS)


def three_roles(scores: Mapping[str, float], values: Tensor) -> None:
    """Draw one token's lookup from the tokens' vectors to the blend, lines as thick as the weights.

    Args:
        scores: of the flat stroke, which asks, with each other token, by its name; three of them.
        values: (3,), a number of each one's value.
    """
    ax = sketch(9.0, 4.7, xlim=(-0.3, 12.6), ylim=(-0.5, 6.2), aspect="equal")
    weights = torch.tensor(list(scores.values())).softmax(dim=0).tolist()
    arrow = dict(arrowstyle="-|>", color=INK, lw=0.9)

    def box(x: float, y: float, width: float, text: str, face: str, edge: str, **look: Any) -> None:
        rectangle(ax, x - width / 2, y - 0.26, width, 0.52, facecolor=face, edgecolor=edge, lw=1.4)
        ax.text(x, y, text, ha="center", va="center", **{"size": 10, "color": INK} | look)

    box(1.2, 5.8, 2.5, "token: flat stroke", PATCH, PATCH, color="white")
    box(1.2, 4.5, 0.6, "q", QUERY, QUERY)
    ax.annotate("", (1.2, 4.78), (1.2, 5.52), arrowprops=arrow)
    ax.text(1.28, 5.15, "$W_q$", size=9, va="center")
    for place, role in ((1.72, "k"), (2.2, "v")):  # it has these too; the picture leaves them out
        box(place, 4.5, 0.4, role, "white", FAINT, color=FAINT)
        ax.annotate("", (place, 4.78), (place, 5.52), arrowprops=arrow | {"color": FAINT})
    ax.plot([1.2, 1.2, 4.2 + 6.8 - 0.7], [4.22, 3.95, 3.95], color=QUERY, lw=1.6, zorder=0)
    ax.text(-0.2, 3.35, "scores\n$q \\cdot k$", size=10, va="center")
    ax.text(-0.2, 2.05, "softmax", size=10, va="center")
    ax.text(-0.2, 1.1, "weights × values", size=10, va="center")
    rectangle(ax, 2.95, 1.62, 8.3, 0.86, facecolor=PAPER, edgecolor=FAINT, lw=1, zorder=0)
    middle = 7.6
    box(middle, 0.0, 5.2, "", "white", VALUE)
    blend = sum(w * v for w, v in zip(weights, values.tolist(), strict=True))
    ax.text(middle, 0.0, f"blend: curves back, {blend:.1f} of 10", ha="center", va="center")
    rows = zip(scores.items(), weights, values.tolist(), strict=True)
    for number, ((name, score), weight, value) in enumerate(rows):
        x = 4.2 + 3.4 * number
        box(x, 5.8, 2.6, f"token: {name}", PATCH, PATCH, color="white")
        for role, place in (("k", x - 0.55), ("v", x + 0.55)):
            box(place, 4.5, 0.6, role, ROLES[role], ROLES[role])
            ax.annotate("", (place, 4.78), (place, 5.52), arrowprops=arrow)
            ax.text(place + 0.08, 5.15, f"$W_{role}$", size=9, va="center")
        ax.plot([x - 0.7, x - 0.7], [3.95, 3.62], color=QUERY, lw=1.6)
        ax.plot([x - 0.42, x - 0.42], [4.22, 3.62], color=KEY, lw=1.6)
        box(x - 0.55, 3.35, 0.6, f"{score:g}", "white", QUERY)
        ax.annotate("", (x - 0.55, 2.33), (x - 0.55, 3.07), arrowprops=arrow)
        box(x - 0.55, 2.05, 0.9, f"{weight:.0%}", "white", INK)
        ax.plot([x + 0.55, x + 0.55], [4.22, 1.75], color=VALUE, lw=1 + 9 * weight,
                solid_capstyle="butt")  # fmt: skip
        ax.text(x + 0.75, 3.3, f"curves\nback: {value:g}", color=VALUE, size=9, va="center")
        hands = dict(arrowstyle="-", color=VALUE, lw=1 + 9 * weight, shrinkA=0, shrinkB=0)
        ax.annotate("", (middle + 1.6 * (number - 1), 0.28), (x + 0.55, 1.78), arrowprops=hands)
        ax.plot([x - 0.1, x + 0.55], [2.05, 2.05], color=INK, lw=0.8, linestyle=":")


def possible_blends(
    values: Mapping[str, Sequence[float]],
    points: Mapping[str, Tensor],
    two_heads: bool = False,
) -> None:
    """Draw two values in the plane, the line of all that one head can blend, and some points.

    Args:
        values: two numbers by the name of each of two tokens.
        points: (2,), by what each is; at most three.
        two_heads: whether to shade the rectangle that two heads can reach, a number each.
    """
    ax = charts(1, 1, 5.8, 3.4)[0, 0]
    (x1, y1), (x2, y2) = values.values()
    if two_heads:
        left, bottom = min(x1, x2), min(y1, y2)
        rectangle(ax, left, bottom, abs(x2 - x1), abs(y2 - y1), facecolor=VALUE, alpha=0.18,
                  label="all that two heads can reach")  # fmt: skip
    label = "all that one head can reach" if two_heads else "every blend of the two"
    ax.plot([x1, x2], [y1, y2], "o-", color=VALUE, label=label)
    for name, value in values.items():
        shift, side = (-9, "right") if value[0] == min(x1, x2) else (9, "left")
        ax.annotate(name, value, (shift, 7), textcoords="offset points", size=9, ha=side)
    looks = zip(points.items(), ("*", "s", "^"), (QUERY, KEY, PATCH), strict=False)
    for (name, point), marker, colour in looks:
        ax.plot(*point.tolist(), marker, color=colour, markersize=12, label=name, linestyle="")
    ax.set(xlim=(-1.4, max(x1, x2) + 2), ylim=(-0.5, 11.9), **NUMBERS)
    ax.legend(loc="upper left", frameon=False, ncols=2, fontsize=9)


def qkv_product(width: int, num_heads: int) -> None:
    """Draw the fused Linear at work: each number of q, k and v is made of all numbers of the token.

    Its rows run in the order (qkv h d).
    """
    d, rows = width // num_heads, 3 * width
    height = rows + 0.9 + 0.15 * (3 * num_heads - 1)
    ax = sketch(7.6, 4.4, (-0.2, width + 12), (height + 0.2, -1.6), aspect="equal")
    for row in range(rows):
        role, head = "qkv"[row // width], row % width // d
        y = row + 0.5 * (row // width) + 0.15 * (row // d)
        look = dict(facecolor=ROLES[role], edgecolor="none", alpha=1 if head % 2 == 0 else 0.6)
        for column in range(width):
            rectangle(ax, column, y, 0.92, 0.92, **look)
        rectangle(ax, width + 6.2, y, 2.2, 0.92, **look)
        if row % d == 0:
            ax.text(width + 8.7, y + (d - 0.1) / 2, f"{role}, head {head}", va="center", size=9)
    for row in range(width):
        rectangle(ax, width + 2.4, height / 2 - width / 2 + row, 0.92, 0.92, facecolor=PATCH,
                  edgecolor="none")  # fmt: skip
    for x, sign in ((width + 1.5, "×"), (width + 4.9, "=")):
        ax.text(x, height / 2, sign, ha="center", va="center", size=16)
    for x, text in ((width / 2, f"{rows} rows of $W_{{qkv}}$"), (width + 2.9, "a token"),
                    (width + 7.3, f"its {rows} numbers")):  # fmt: skip
        ax.text(x, -0.5, text, ha="center", va="bottom", size=10)


def heads_at_work(
    images: Tensor, weights: Tensor, asks: int | None = None, heads: Sequence[int] = ()
) -> None:
    """Draw whom a token attends to in each head, a row a head, a column a drawing, ink on top.

    Args:
        images: (n, 1, H, W), from -1, paper, to 1, ink.
        weights: (n, h, patches), one token's attention weights on the patches.
        asks: the number of its patch, framed in each drawing; None for cls.
        heads: these, from the top; by default all.
    """
    heads = heads or range(weights.shape[1])
    count, patches = len(weights), weights.shape[2]
    side = round(patches**0.5)
    height, width = images.shape[2:]
    axes = panels(len(heads) + 1, count, 1.25 * count + 1.1, 1.2 * (len(heads) + 1))
    extent = (-0.5, width - 0.5, height - 0.5, -0.5)
    for column, image in enumerate(images[:, 0].numpy()):
        axes[0, column].imshow(image, cmap="gray_r", vmin=-1, vmax=1)
        for head, row in zip(heads, axes[1:], strict=True):
            tiles = weights[column, head].view(side, side).numpy()
            row[column].imshow(tiles, cmap=WEIGHTS, vmin=0, vmax=1, extent=extent)
            row[column].contour(image, levels=[0.0], colors="white", linewidths=1)
        if asks is not None:
            top, left = (asks // side) * height / side - 0.5, (asks % side) * width / side - 0.5
            for ax in axes[:, column]:
                rectangle(ax, left, top, width / side, height / side, fill=False, ec=QUERY, lw=2)
    for row, name in zip(axes, ("drawing", *(f"head {i}" for i in heads)), strict=True):
        row[0].set_ylabel(name, rotation=0, ha="right", va="center")
        for ax in row:
            bordered(ax)
    bar = axes[0, 0].figure.colorbar(axes[1, 0].images[0], ax=axes[1:], shrink=0.7, aspect=25)
    bar.set_label("attention weight")
