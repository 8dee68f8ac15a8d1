"""Lesson 04's drawings: attention as shapes, and what its scale is worth."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from .colours import CLS, FAINT, INK, KEY, PATCH, POSITION, QUERY, SIGNED, VALUE, WEIGHTS
from .figures import bordered, charts, curves, matrix, new_axes, panels, rectangle, sketch

FILE = Path(__file__).with_name("measured.json")
FORMS = {"divided by √d": VALUE, "not divided": QUERY}
FORMS |= {"smaller start": PATCH, "smaller steps": POSITION}


def stored(name: str, file: Path = FILE) -> dict[str, Any]:
    """Read a measurement that was made once and stored, by its name."""
    return json.loads(file.read_text("utf-8"))[name]


def attention_shapes(
    q: Tensor, k: Tensor, v: Tensor, names: Sequence[str], lit: str, meets: str
) -> None:
    """Draw attention of a few tokens as a chain of matrices, the way of one query lit.

    Q · Kᵀ gives the scores, softmax of each row the weights, weights · V the blends. The numbers
    are worked out from what is given, without a scale, and written where they are lit. A value is
    shown as the colour that it is.

    Args:
        q, k: (N, d).
        v: (N, 3), colours from 0 to 1.
        names: of the N tokens.
        lit: the name of the query whose row stays bright.
        meets: the name of a key, framed where the query meets it.
    """
    q, k, v = (t.detach().cpu().float() for t in (q, k, v))
    scores = q @ k.T
    weights = scores.softmax(dim=-1)
    count, row, column, left = len(q), names.index(lit), names.index(meets), 0.0
    ax = sketch(10, 3.6, ylim=(count + 3.2, -3.6), aspect="equal")
    for number, name in enumerate(names):
        bold = "bold" if number == row else "normal"
        ax.text(-0.3, number + 0.5, name, ha="right", va="center", size=9, weight=bold)
    chain = (
        ("Q", q, SIGNED, "N×d", "197×64", " · "),
        ("Kᵀ", k.T, SIGNED, "d×N", "64×197", " = "),
        ("scores", scores, SIGNED, "N×N", "197×197", "softmax\nof each row\n→"),
        ("weights", weights, WEIGHTS, "N×N", "197×197", " · "),
        ("V", v, None, "N×d", "197×64", " = "),
        ("blends", weights @ v, None, "N×d", "197×64", ""),
    )
    for title, values, colours, shape, large, sign in chain:
        height, across = values.shape
        top = (count - height) / 2
        bright = title in ("Kᵀ", "V")
        _draw_cells(ax, values, colours, left, top, None if bright else row)
        if title in ("Kᵀ", "scores"):
            start, tall = (top, height) if title == "Kᵀ" else (top + row, 1)
            frame = dict(fill=False, edgecolor=KEY, lw=2, zorder=3)
            rectangle(ax, left + column, start, 1, tall, **frame)
        title_at = top - 0.4
        if across == count:  # a column for each key
            title_at -= 2.0
            for number, name in enumerate(names):
                x = left + number + 0.5
                ax.text(x, top - 0.2, name, ha="center", va="bottom", rotation=90, size=8)
        look = dict(ha="center", va="bottom", weight="bold", size=10)
        ax.text(left + across / 2, title_at, title, **look)
        for line, text in enumerate((shape, f"{height}×{across}", large)):
            ink = INK if line < 2 else "#777777"
            x, y = left + across / 2, count + 0.3 + 0.75 * line
            ax.text(x, y, text, ha="center", va="top", size=8, color=ink)
        gap = 3.6 if "softmax" in sign else 1.3
        ax.text(left + across + gap / 2, count / 2, sign, ha="center", va="center", size=11)
        left += across + gap
    for line, text in enumerate(("", "here", "in ViT-B/16, a head")):
        y = count + 0.3 + 0.75 * line
        ax.text(-0.3, y, text, ha="right", va="top", size=8, color="#777777")
    ax.set_xlim(-3.6, left - 1.0)


def _draw_cells(
    ax: Any,
    values: Tensor,
    colours: str | None,
    left: float,
    top: float,
    lit: int | None,
    largest: float | None = None,
) -> None:
    """Draw a matrix as squares of side 1, on axes that it shares; all rows but `lit` are pale.

    Args:
        colours: a map's name; a signed one has its middle at zero. None: each row is a colour
            itself, red, green and blue from 0 to 1.
        largest: the number at the map's end; None: the largest of what is lit.
    """
    from matplotlib import colormaps

    def luminance(face: Any) -> float:
        return 0.3 * face[0] + 0.59 * face[1] + 0.11 * face[2]

    height, width = values.shape
    bright = values if lit is None else values[lit]  # a pale one may be lighter than it should
    largest = largest or bright.abs().max().item() or 1.0
    for i in range(height):
        alpha = 1 if lit in (None, i) else 0.5
        for j in range(width):
            part = max(-1.0, min(1.0, values[i, j].nan_to_num().item() / largest))
            face: Any = values[i].clamp(0, 1).tolist()
            if colours is not None:
                face = colormaps[colours](part if colours == WEIGHTS else (part + 1) / 2)
            rectangle(ax, left + j, top + i, 1, 1, fc=face, ec="white", lw=0.5, alpha=alpha)
            if not values[i, j].isfinite():
                continue
            number = values[i, j].item()
            digits = 2 if colours == SIGNED and alpha == 1 else 1  # as many as the texts quote
            text = f"{round(number, digits) + 0.0:.{digits}f}"
            text = f"{number:.0%}" if colours == WEIGHTS else text
            dark = alpha == 1 and luminance(face) < 0.5
            ink = "white" if dark else INK if alpha == 1 else "#666666"
            look = dict(ha="center", va="center", size=7 - digits / 2, color=ink)
            ax.text(left + j + 0.5, top + i + 0.5, text.replace("-", "−"), **look)
    ink = INK if lit is None else FAINT
    rectangle(ax, left, top, width, height, fill=False, ec=ink, lw=0.8)
    if lit is not None and height > 1:
        rectangle(ax, left, top + lit, width, 1, fill=False, ec=QUERY, lw=2)


def scale_runs(*forms: str) -> None:
    """Draw how well a reader learned with √d and without, as `benchmarks/sqrt_d.py` stored it.

    A dot a seed, and lines through the means, against the learning rate.

    Args:
        forms: "divided by √d", "not divided", "smaller start", "smaller steps", or some of them.
    """
    measured = stored("scale")["reader"]
    runs = {form: {float(rate): v for rate, v in measured[form].items()} for form in forms}
    means = {form: {rate: mean(v) for rate, v in rates.items()} for form, rates in runs.items()}
    ax = new_axes(8.2, 3.4)
    rates = list(means[forms[0]])
    ax.set(xlim=(rates[0] * 0.85, rates[-1] * 2.1), ylim=(55, 100))
    colours = [FORMS[form] for form in forms]
    curves(means, "", "learning rate", "right answers in %", "x", colours, ax)
    for number, (form, colour) in enumerate(zip(forms, colours, strict=True)):
        aside = 1.03 ** (number - (len(forms) - 1) / 2)  # so that dots do not cover each other
        for rate, shares in runs[form].items():
            look = dict(color=colour, markersize=3.5, alpha=0.5)
            ax.plot([rate * aside] * len(shares), shares, "o", **look)


def hidden_keys(scores: Tensor, mask: Tensor, names: Sequence[str]) -> None:
    """Draw scores as a table with cells hidden by a mask, and the attention weights beside it.

    Args:
        scores: (N, N), a row for each query.
        mask: (N, N), True where a query may look; a True in each row.
        names: of the N tokens.
    """
    count = len(names)
    ax = sketch(8.4, 3.5, (-2.4, 2 * count + 5.2), (count + 0.4, -2.2), aspect="equal")
    weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
    tables = {"scores": (0.0, scores, SIGNED), "attention weights": (count + 3.4, weights, WEIGHTS)}
    for title, (left, values, colours) in tables.items():
        ax.text(left + count / 2, -1.75, title, ha="center", weight="bold", size=10)
        for number, name in enumerate(names):
            ax.text(left + number + 0.5, -0.15, name, ha="center", va="bottom", rotation=90, size=8)
        for row, name in enumerate(names):
            if not left:
                ax.text(-0.3, row + 0.5, name, ha="right", va="center", size=9)
            shown = values.masked_fill(~mask, torch.nan)
            largest = 1.0 if left else values.abs().max().item() or 1.0
            _draw_cells(ax, shown[row, None], colours, left, row, 0, largest)
        for row, column in (~mask).nonzero().tolist():
            look = dict(facecolor="white", edgecolor=FAINT, hatch="////", lw=0.5)
            rectangle(ax, left + column, row, 1, 1, **look)
            box = dict(facecolor="white", edgecolor="none", pad=0.6)
            x, y, text = left + column + 0.5, row + 0.5, "0%" if left else "−∞"
            ax.text(x, y, text, ha="center", va="center", size=7, bbox=box)
    ax.text(count + 1.7, count / 2, "softmax\nof each row\n→", ha="center", va="center", size=11)


def weight_bars(bars: Mapping[str, Tensor], rows: int = 2) -> None:
    """Draw attention weights as bars, with the largest and the sum in each title.

    Args:
        bars: by its title the weights (n,), largest first, column after column of charts.
        rows: of charts.
    """
    axes = charts(rows, len(bars) // rows, 8.4, 0.4 + 1.9 * rows, sharex=True, sharey=True)
    for number, (title, weights) in enumerate(bars.items()):
        ax = axes[number % rows, number // rows]
        ax.bar(range(1, len(weights) + 1), weights.tolist(), color=KEY)
        ax.axhline(1 / len(weights), color="grey", linewidth=0.8, linestyle=":")
        ax.set_title(f"{title}\nlargest {weights[0]:.0%}, sum {weights.sum():.2g}", size=9)
        ax.set_xticks(range(1, len(weights) + 1))
    axes[0, 0].figure.supylabel("attention weight", size=9)
    axes[0, 0].figure.supxlabel("the keys, highest score first (dotted: equal weights)", size=9)


def heads_of_c(runs: Mapping[str, Sequence[float]]) -> None:
    """Draw what lesson 11's C gets by each way to its head, with its batch norms or one Linear.

    The left table is of C as it trains, with a tenth of the tokens hidden, the right one without.

    Args:
        runs: by setting, right answers in %, one a seed, as stored under "why C".
    """
    ways = {"all tokens": [], "norm, mean": ["mean"], "mean, norm": ["mean first"]}
    hidden = {"a tenth hidden in training": [], "nothing hidden": ["nothing hidden"]}
    linears = {"with batch norms": [], "one Linear": ["one Linear"]}
    axes = panels(1, len(hidden), 9, 2.4)[0]
    for ax, (title, hides) in zip(axes, hidden.items(), strict=True):
        names = [[["C", *way, *hides, *last] for way in ways.values()] for last in linears.values()]
        means = [[mean(runs[", ".join(name)]) for name in row] for row in names]
        matrix(torch.tensor(means), title, [*linears], [*ways], "{:.0f}", (40, 100), ax)


def whole_table(image: Tensor, table: Tensor, lifted: Mapping[str, int]) -> None:
    """Draw a head's table, and some of its rows folded back into maps of the picture's patches.

    Args:
        image: (1, H, W), from 0, paper, to 1, ink.
        table: (N, N), attention weights, cls first.
        lifted: the numbers of the tokens whose rows are framed and folded, by their names.
    """
    import matplotlib.pyplot as plt

    side = round((len(table) - 1) ** 0.5)
    figure = plt.figure(figsize=(9.2, 3.6), layout="constrained")
    grid = figure.add_gridspec(len(lifted), 3, width_ratios=(1, 1.9, 1))
    picture, whole = figure.add_subplot(grid[:, 0]), figure.add_subplot(grid[:, 1])
    height, width = image.shape[1:]
    picture.imshow(image[0].numpy(), cmap="gray_r", vmin=0, vmax=1)
    picture.set_title("picture", size=10)
    shown = whole.imshow(table.numpy(), cmap=WEIGHTS, vmin=0, vmax=1)
    whole.set_title("who asks (rows), who is asked (columns)", size=10)
    whole.set_yticks([*lifted.values()], [*lifted])
    whole.set_xticks([])
    for number, (name, token) in enumerate(lifted.items()):
        colour = (CLS, QUERY)[number % 2]
        rectangle(whole, -0.5, token - 0.5, len(table), 1, fill=False, edgecolor=colour, lw=2)
        folded = figure.add_subplot(grid[number, 2])
        folded.imshow(table[token, 1:].view(side, side).numpy(), cmap=WEIGHTS, vmin=0, vmax=1)
        folded.set_title(f"row of {name}, folded", size=9)
        bordered(folded, colour, 2)
        if token:
            top, left = divmod(token - 1, side)
            at = left * width / side - 0.5, top * height / side - 0.5
            frame = dict(fill=False, edgecolor=colour, lw=2)
            rectangle(picture, *at, width / side, height / side, **frame)
    bordered(picture)
    figure.colorbar(shown, ax=whole, shrink=0.8, label="attention weight")


def attention_layer() -> None:
    """Draw the layer: tokens, qkv, heads with a table each, merged, proj."""
    ax = sketch(9.4, 2.9, xlim=(-0.2, 13.4), ylim=(-1.3, 2.9), aspect="equal")
    arrow = dict(arrowstyle="-|>", color=INK, lw=1)
    stages = (  # where its middle lies, how wide it is, its colour and name, and what leaves it
        (0.6, 1.0, PATCH, "tokens", "B, N, D"),
        (2.8, 1.0, INK, "qkv", "B, N, 3·D"),
        (5.3, 1.8, QUERY, "split_qkv", "3 × (B, h, N, d)"),
        (8.1, 1.8, KEY, "equation", "B, h, N, d"),
        (10.4, 1.0, VALUE, "merge", "B, N, D"),
        (12.4, 1.0, INK, "proj", "B, N, D"),
    )
    for number, (middle, width, colour, name, shape) in enumerate(stages):
        sheets = 3 if width > 1 else 1  # one a head
        for sheet in reversed(range(sheets)):
            x, y = middle - width / 2 + 0.16 * sheet, 0.2 + 0.16 * sheet
            look = dict(facecolor="white", edgecolor=colour, lw=1.6)
            rectangle(ax, x, y, width, 1.3, **look)
        ax.text(middle, 0.85, name, ha="center", va="center", size=10)
        shape = shape if "×" in shape else f"({shape})"
        ax.text(middle, -0.15, shape, ha="center", va="top", size=8, color="#666666")
        if number:
            before, its_width, *_ = stages[number - 1]
            start = before + its_width / 2 + (0.34 if its_width > 1 else 0.04)
            ax.annotate("", (middle - width / 2 - 0.04, 0.85), (start, 0.85), arrowprops=arrow)
    ax.text(6.7, 2.35, "separately in each head", ha="center", size=9, color="#666666")
    for x, text in ((2.8, "a Linear"), (12.4, "a Linear"), (8.1, "softmax(QKᵀ/√d) V")):
        ax.text(x, -0.75, text, ha="center", va="top", size=8, color="#666666")
