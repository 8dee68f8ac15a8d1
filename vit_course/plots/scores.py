"""Lesson 04's drawings: attention as shapes, and what its scale is worth."""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from torch import Tensor

from .figures import (
    FAINT,
    INK,
    PATCH,
    POSITION,
    QUERY,
    VALUE,
    WEIGHTS,
    curves,
    new_axes,
    rectangle,
)

FILE = Path(__file__).with_name("measured.json")
FORMS = {"divided by √d": VALUE, "not divided": QUERY}
FORMS |= {"smaller start": PATCH, "smaller steps": POSITION}


def stored(name: str, file: Path = FILE) -> dict[str, Any]:
    """Read a measurement that was made once and stored, by its name."""
    return json.loads(file.read_text("utf-8"))[name]


def attention_shapes(q: Tensor, k: Tensor, v: Tensor, names: Sequence[str], lit: str) -> None:
    """Draw attention of a few tokens as a chain of matrices, the way of one query lit.

    Q · Kᵀ gives the scores, softmax of each row the weights, weights · V what is read. The numbers
    are worked out from what is given, without a scale. A value is shown as the colour that it is.

    Args:
        q, k: (N, d).
        v: (N, 3), colours from 0 to 1.
        names: of the N tokens.
        lit: the name of the query whose row stays bright.
    """
    q, k, v = (t.detach().cpu().float() for t in (q, k, v))
    scores = q @ k.T
    weights = scores.softmax(dim=-1)
    count, row, left = len(q), list(names).index(lit), 0.0
    ax = new_axes(10, 3.6)
    ax.set(ylim=(count + 3.4, -5.2), aspect="equal")
    ax.axis("off")
    for number, name in enumerate(names):
        bold = "bold" if number == row else "normal"
        ax.text(-0.4, number + 0.5, name, ha="right", va="center", size=8, weight=bold)
    chain = (
        ("Q", q, "PuOr", "N×d", "197×64", " · "),
        ("Kᵀ", k.T, "PuOr", "d×N", "64×197", " = "),
        ("scores", scores, "PuOr", "N×N", "197×197", "softmax\nof each row\n→"),
        ("weights", weights, WEIGHTS, "N×N", "197×197", " · "),
        ("V", v, None, "N×d", "197×64", " = "),
        ("read", weights @ v, None, "N×d", "197×64", ""),
    )
    for title, values, colours, shape, large, sign in chain:
        height, across = values.shape
        top = (count - height) / 2
        bright = title in ("Kᵀ", "V")
        _draw_cells(ax, values, colours, left, top, None if bright else row)
        title_at = top - 0.4
        if across == count:  # a column for each key
            title_at -= 3.3
            for number, name in enumerate(names):
                x = left + number + 0.5
                ax.text(x, top - 0.3, name, ha="center", va="bottom", rotation=90, size=7)
        ax.text(left + across / 2, title_at, title, ha="center", va="bottom", weight="bold")
        for line, text in enumerate((shape, f"{height}×{across}", large)):
            ink = INK if line < 2 else "#777777"
            x, y = left + across / 2, count + 0.4 + line
            ax.text(x, y, text, ha="center", va="top", size=8, color=ink)
        gap = 5.6 if "softmax" in sign else 1.7
        ax.text(left + across + gap / 2, count / 2, sign, ha="center", va="center", size=11)
        left += across + gap
    for line, text in enumerate(("", "here", "in ViT-B/16, a head")):
        ax.text(-0.4, count + 0.4 + line, text, ha="right", va="top", size=8, color="#777777")
    ax.set_xlim(-6.4, left - 1.4)


def _draw_cells(
    ax: Any, values: Tensor, colours: str | None, left: float, top: float, lit: int | None
) -> None:
    """Draw a matrix as squares of side 1, on axes that it shares; all rows but `lit` are pale.

    Args:
        colours: a map's name; a signed one has its middle at zero. None: each row is a colour
            itself, red, green and blue from 0 to 1.
    """
    from matplotlib import colormaps

    height, width = values.shape
    bright = values if lit is None else values[lit]  # a pale one may be lighter than it should
    largest = bright.abs().max().item() or 1.0
    for i in range(height):
        alpha = 1 if lit in (None, i) else 0.25
        for j in range(width):
            part = max(-1.0, min(1.0, values[i, j].item() / largest))
            face: Any = values[i].clamp(0, 1).tolist()
            if colours is not None:
                face = colormaps[colours](part if colours == WEIGHTS else (part + 1) / 2)
            rectangle(ax, left + j, top + i, 1, 1, fc=face, ec="white", lw=0.5, alpha=alpha)
    ink = INK if lit is None else FAINT
    rectangle(ax, left, top, width, height, fill=False, ec=ink, lw=0.8)
    if lit is not None:
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
