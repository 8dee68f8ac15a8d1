"""The course's map: the road of a picture through the ViT, with one lesson's piece lit."""

from itertools import pairwise

from .colours import CLS, FAINT, INK, KEY, PAPER, PATCH, POSITION, QUERY, VALUE, WEIGHTS
from .figures import rectangle, rounded, sketch

# A stage has its lesson, its name, the span of its box, and the shape that leaves it in ViT-B/16.
STAGES = (
    (0, "photo", 0.0, 1.5, "3×224×224"),
    (1, "patches", 1.9, 1.7, "196×768"),
    (2, "cls + positions", 4.0, 1.7, "197×768"),
    (3, "QKV heads", 6.7, 1.5, "3×12×197×64"),
    (4, "attention", 8.5, 1.5, "12×197×197"),
    (5, "MLP", 10.75, 1.1, "197×768"),
    (6, "head", 12.8, 1.5, "1000"),
)
# Where the encoder block adds: the residual connection leaves the stream, and comes back to it.
BYPASSES = ((6.5, 10.36), (10.57, 12.06))


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
    ax = sketch(9.6, 2.5, xlim=(-0.1, 14.4), ylim=(-1.0, 2.65), aspect="equal")
    whole = lesson not in range(1, 7)
    frame, bold = INK if whole or lesson == 5 else FAINT, "bold" if lesson == 5 else "normal"
    rounded(ax, 6.3, -0.95, 5.98, 3.05, 0.2, facecolor=PAPER, edgecolor=frame)
    title = dict(ha="center", va="bottom", color=frame, weight=bold)
    ax.text(9.3, 2.2, "encoder block, 12 times", **title)
    for (number, name, left, width, shape), boxes in zip(STAGES, _icons(), strict=True):
        lit = whole or lesson == number or (lesson == 5 and number in (3, 4))
        middle = left + width / 2
        for x, y, across, height, colour in boxes:
            face = colour if lit else "#DDDDDD"
            look = dict(facecolor=face, edgecolor="white", lw=0.8)
            rectangle(ax, middle + x, y, across, height, **look)
        ink = INK if lit else FAINT
        bold = "bold" if lesson == number != 5 else "normal"
        ax.text(middle, -0.1, name, ha="center", va="top", color=ink, weight=bold)
        ax.text(middle, -0.55, shape, ha="center", va="top", color=ink, size=8)
    for (_, _, left, width, _), (_, _, following, _, _) in pairwise(STAGES):
        arrow = dict(arrowstyle="-|>", color=INK, lw=1)
        ax.annotate("", (following - 0.02, 0.85), (left + width + 0.02, 0.85), arrowprops=arrow)
    for left, right in BYPASSES:
        corners = (left, left, right, right), (0.85, 1.85, 1.85, 1.0)
        ax.plot(*corners, color=frame, lw=1, solid_joinstyle="round")
        ax.plot(right, 0.85, "o", markersize=9, markerfacecolor="white", markeredgecolor=frame)
        ax.plot(right, 0.85, "+", markersize=6, color=frame)


# What `forward` calls, in its order: the line, what does the work, its lesson.
CALLS = (
    ("patch_embed", "PatchEmbedding", "lesson 01"),
    ("tokens", "TokenEmbedding", "lesson 02"),
    ("blocks", "4 × EncoderBlock", "lessons 03 to 05"),
    ("x[:, 0]", "cls alone", ""),
    ("norm", "LayerNorm", "today"),
    ("head", "Linear", "today"),
)


def forward_path(patches: int = 16, embed_dim: int = 64, classes: int = 10) -> None:
    """Draw what a small ViT's `forward` calls, and how many tokens each call hands on."""
    ax = sketch(9.4, 2.5, xlim=(-0.9, 15.2), ylim=(-2.0, 1.75))
    many = [0, patches, patches + 1, patches + 1, 1, 1, 0]
    shapes = ["(B, 1, 16, 16)", f"(B, {patches}, {embed_dim})"]
    shapes += 2 * [f"(B, {patches + 1}, {embed_dim})"] + 2 * [f"(B, {embed_dim})"]
    shapes += [f"(B, {classes})"]
    for i, (count, shape) in enumerate(zip(many, shapes, strict=True)):
        x = 2.4 * i - 0.37
        ax.text(x, -1.75, shape, ha="center", size=7.5, color=INK)
        for j in range(count):
            first = j == 0 and i > 1
            y = 0.05 if count == 1 else 1.45 - 0.17 * j
            rectangle(ax, x - 0.14, y, 0.28, 0.13, facecolor=CLS if first else PATCH)
    for y, line in enumerate(THREE):  # a drawn digit
        for k, mark in enumerate(line):
            shade = INK if mark == "x" else "#E4E4E4"
            rectangle(ax, -0.95 + 0.17 * k, 0.45 - 0.22 * y, 0.15, 0.2, facecolor=shade)
    for j, width in enumerate((1, 1, 1, 8, 1, 1, 1, 1, 1, 1)):
        rectangle(ax, 13.75, 0.85 - 0.2 * j, 0.1 * width, 0.14, facecolor=CLS)
    for i, (line, name, lesson) in enumerate(CALLS):
        left = 2.4 * i
        rounded(ax, left, -0.85, 1.67, 1.9, 0.12, facecolor=PAPER, edgecolor=INK)
        middle = dict(x=left + 0.83, ha="center", va="center")
        ax.text(y=0.65, s=line, family="monospace", weight="bold", size=8.5, **middle)
        ax.text(y=0.1, s=name.replace(" × ", " ×\n"), size=7.5, **middle)
        ax.text(y=-0.55, s=lesson.replace(" 03", "\n03"), size=7, color="#666666", **middle)


THREE = (".xxx.", "....x", "..xx.", "....x", ".xxx.")  # a 3

# The little landscape that stands for a photo, 6×6 pixels: sky, sun, hill, meadow.
LANDSCAPE = ("ssssss", "sssyys", "sshsys", "shhhss", "hhhhhg", "gggggg")
COLOURS = dict(s="#9CC9E8", y="#F0C419", h="#5B7F95", g="#6A9A4A")
Box = tuple[float, float, float, float, str]  # left and bottom, from the stage's middle; width, …


def _photo(gap: float = 0.0) -> list[Box]:
    """Give the landscape; with a gap, cut into 3×3 patches of 2×2 pixels."""
    return [
        (j * 0.24 + j // 2 * gap - 0.72 - gap, 1.33 + gap - i * 0.24 - i // 2 * gap, 0.24, 0.24,
         COLOURS[pixel])
        for i, row in enumerate(LANDSCAPE) for j, pixel in enumerate(row)
    ]  # fmt: skip


def _icons() -> tuple[list[Box], ...]:
    """Give the icon of each stage, as boxes."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    tokens: list[Box] = []  # a column, cls first, each with its position beside it
    for i in range(6):
        y = 1.45 - i * 0.25
        tokens += [(-0.55, y, 0.8, 0.2, PATCH if i else CLS), (0.35, y, 0.2, 0.2, POSITION)]
    heads = [  # queries, keys and values, each cut into heads
        (-0.62 + j * 0.44, 1.15 - i * 0.5, 0.36, 0.42, colour)
        for j, colour in enumerate((QUERY, KEY, VALUE))
        for i in range(3)
    ]
    weights: list[Box] = []  # a matrix, larger near the diagonal
    for i in range(5):
        for j in range(5):
            weight = max(0.05, 1 - 0.42 * abs(i - j) - 0.1 * ((3 * i + j) % 3))
            colour = to_hex(colormaps[WEIGHTS](weight))
            weights.append((-0.65 + j * 0.26, 1.24 - i * 0.26, 0.26, 0.26, colour))
    bars = enumerate((0.6, 1.4, 0.6))  # narrow, wide, narrow
    mlp = [(-0.45 + i * 0.33, 0.85 - height / 2, 0.24, height, "#777777") for i, height in bars]
    logits = enumerate((0.3, 0.5, 1.3, 0.4, 0.6))  # a bar a class
    head = [(-0.6, 1.35 - i * 0.28, width, 0.2, CLS) for i, width in logits]
    return _photo(), _photo(gap=0.11), tokens, heads, weights, mlp, head
