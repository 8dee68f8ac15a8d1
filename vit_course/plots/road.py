"""The course's map: the road of a picture through the ViT, with one lesson's piece lit."""

from functools import partial
from itertools import pairwise
from typing import Any

from .figures import (
    CLS,
    FAINT,
    INK,
    KEY,
    PAPER,
    PATCH,
    POSITION,
    QUERY,
    VALUE,
    WEIGHTS,
    new_axes,
    rectangle,
    rounded,
)

# A stage has its lesson, its name, the span of its box, and the shape that leaves it in ViT-B/16.
STAGES = (
    (0, "photo", 0.0, 1.5, "3×224×224"),
    (1, "patches", 1.9, 1.7, "196×768"),
    (2, "cls + positions", 4.0, 1.7, "197×768"),
    (3, "QKV heads", 6.55, 1.5, "3×12×197×64"),
    (4, "attention", 8.45, 1.5, "12×197×197"),
    (5, "MLP", 10.35, 1.1, "197×768"),
    (6, "head", 12.3, 1.5, "1000"),
)


def course_map(lesson: int | None = None) -> None:
    """Draw the road of a picture through the ViT, with one lesson's piece lit.

    Args:
        lesson: its number; the piece that it builds is drawn in colour, the others in grey.
            Lesson 0, the lessons from 7 on, which use the whole, and None light everything.

    Raises:
        ValueError: `lesson` is no number of a lesson.
    """
    if lesson is not None and (type(lesson) is not int or lesson < 0):
        raise ValueError(f"lesson is {lesson!r}; give its number, 0 or more, or None for the whole")
    ax = new_axes(9.6, 2.5)
    ax.set(xlim=(-0.1, 13.9), ylim=(-1.0, 2.65), aspect="equal")
    ax.axis("off")
    whole = lesson not in range(1, 7)
    _block_frame(ax, lit=whole or lesson == 5, bold=lesson == 5)
    for (number, name, left, width, shape), icon in zip(STAGES, ICONS, strict=True):
        lit = whole or lesson == number or (lesson == 5 and number in (3, 4))
        icon(ax, left + width / 2, lit)
        ink = INK if lit else FAINT
        bold = "bold" if lesson == number != 5 else "normal"
        ax.text(left + width / 2, -0.1, name, ha="center", va="top", color=ink, weight=bold)
        ax.text(left + width / 2, -0.55, shape, ha="center", va="top", color=ink, size=8)
    for (_, _, left, width, _), (_, _, following, _, _) in pairwise(STAGES):
        arrow = dict(arrowstyle="-|>", color=INK, lw=1)
        ax.annotate("", (following - 0.02, 0.85), (left + width + 0.02, 0.85), arrowprops=arrow)


def _box(ax: Any, x: float, y: float, width: float, height: float, colour: str, lit: bool) -> None:
    """Draw a filled rectangle, in its colour where lit, else in grey."""
    face = colour if lit else "#DDDDDD"
    rectangle(ax, x, y, width, height, facecolor=face, edgecolor="white", lw=0.8)


def _block_frame(ax: Any, lit: bool, bold: bool) -> None:
    """Draw the encoder block round QKV heads, attention and MLP, and how often it is repeated."""
    ink = INK if lit else FAINT
    rounded(ax, 6.3, -0.95, 5.35, 3.05, 0.2, facecolor=PAPER, edgecolor=ink)
    weight = "bold" if bold else "normal"
    title = "encoder block, 12 times"
    ax.text(8.97, 2.2, title, ha="center", va="bottom", color=ink, weight=weight)


# The little landscape that stands for a photo, 6×6 pixels: sky, sun, hill, meadow.
LANDSCAPE = ("ssssss", "sssyys", "sshsys", "shhhss", "hhhhhg", "gggggg")
COLOURS = dict(s="#9CC9E8", y="#F0C419", h="#5B7F95", g="#6A9A4A")


def _photo(ax: Any, middle: float, lit: bool, gap: float = 0.0) -> None:
    """Draw the landscape; with a gap, cut into 3×3 patches of 2×2 pixels."""
    size = 0.24
    left = middle - 3 * size - gap
    for i, row in enumerate(LANDSCAPE):
        for j, pixel in enumerate(row):
            x, y = left + j * size + (j // 2) * gap, 1.57 + gap - i * size - (i // 2) * gap
            _box(ax, x, y - 0.24, size, size, COLOURS[pixel], lit)


def _tokens(ax: Any, middle: float, lit: bool) -> None:
    """Draw a column of tokens, cls first, each with its position beside it."""
    for i in range(6):
        y = 1.45 - i * 0.25
        _box(ax, middle - 0.55, y, 0.8, 0.2, CLS if i == 0 else PATCH, lit)
        _box(ax, middle + 0.35, y, 0.2, 0.2, POSITION, lit)


def _heads(ax: Any, middle: float, lit: bool) -> None:
    """Draw queries, keys and values, each cut into heads."""
    for j, colour in enumerate((QUERY, KEY, VALUE)):
        for i in range(3):
            _box(ax, middle - 0.62 + j * 0.44, 1.15 - i * 0.5, 0.36, 0.42, colour, lit)


def _attention(ax: Any, middle: float, lit: bool) -> None:
    """Draw a matrix of weights, larger near the diagonal."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    shade = colormaps[WEIGHTS]
    for i in range(5):
        for j in range(5):
            weight = max(0.05, 1 - 0.42 * abs(i - j) - 0.1 * ((3 * i + j) % 3))
            x, y = middle - 0.65 + j * 0.26, 1.24 - i * 0.26
            _box(ax, x, y, 0.26, 0.26, to_hex(shade(weight)), lit)


def _mlp(ax: Any, middle: float, lit: bool) -> None:
    """Draw three bars: narrow, wide, narrow."""
    for i, height in enumerate((0.6, 1.4, 0.6)):
        _box(ax, middle - 0.45 + i * 0.33, 0.85 - height / 2, 0.24, height, "#777777", lit)


def _head(ax: Any, middle: float, lit: bool) -> None:
    """Draw logits, one bar a class."""
    for i, width in enumerate((0.3, 0.5, 1.3, 0.4, 0.6)):
        _box(ax, middle - 0.6, 1.35 - i * 0.28, width, 0.2, CLS, lit)


ICONS = (_photo, partial(_photo, gap=0.11), _tokens, _heads, _attention, _mlp, _head)
