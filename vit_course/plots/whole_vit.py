"""Lesson 06: where the parameters stand, and what a model reads on a canvas, or a drawing."""

from collections.abc import Mapping

from torch import Tensor

from .figures import CLS, INK, PATCH, QUERY, WEIGHTS, bordered, new_axes, panels

# The colours of the course's pieces, as on its map; what has none of its own is grey.
COLOURS = {"patch": PATCH, "cls": CLS, "head": CLS}
GREY = "#777777"


def parameter_bars(counts: Mapping[str, int]) -> None:
    """Draw one level bar for each piece, as long as its parameters are many.

    Args:
        counts: a piece's name and its number of parameters, from top to bottom.
    """
    ax = new_axes(8, 0.36 * len(counts) + 0.5)
    total = sum(counts.values())
    for row, (name, count) in enumerate(counts.items()):
        colour = next((colour for piece, colour in COLOURS.items() if piece in name), GREY)
        ax.barh(row, count, color=colour, height=0.7)
        share = f"{count / total:.1%}" if count >= 0.001 * total else "< 0.1%"
        text = f"{count:,}  ({share})"
        ax.annotate(text, (count, row), (5, 0), textcoords="offset points", va="center", size=9)
    ax.set_yticks(range(len(counts)), list(counts))
    ax.set(xlim=(0, 1.3 * max(counts.values())), xticks=[])
    ax.invert_yaxis()
    ax.tick_params(length=0)
    ax.spines[["top", "right", "bottom"]].set_visible(False)


def canvases(
    images: Tensor,
    labels: Tensor | None = None,
    answers: Mapping[str, Tensor] | None = None,
    columns: int = 6,
    side: float = 1.25,
) -> None:
    """Show small grey pictures, framed and apart, with what stands there and what models say.

    Args:
        images: (n, 1, H, W), from -1, paper, to 1, ink.
        labels: (n,), the digit on each, written above it; None writes nothing.
        answers: the name of a model and its answers (n,), written below each canvas; wrong ones
            in another colour, with a cross.
        columns: how many stand in a row.
        side: of one, in inches of 100 pixels.
    """
    import matplotlib.pyplot as plt

    answers = answers or {}
    rows = -(-len(images) // columns)
    gap = 0.24 * side
    above, below = 0.08 + 0.22 * (labels is not None), 0.1 + 0.17 * len(answers)
    width, height = columns * side + (columns + 1) * gap, rows * (above + side + below)
    figure, axes = plt.subplots(rows, columns, figsize=(width, height), squeeze=False)
    figure.subplots_adjust(
        left=gap / width, right=1 - gap / width, wspace=gap / side,
        bottom=below / height, top=1 - above / height, hspace=(above + below) / side,
    )  # fmt: skip
    for ax in axes.flat[len(images) :]:
        ax.axis("off")
    for i, (image, ax) in enumerate(zip(images, axes.flat, strict=False)):
        ax.imshow(image[0].cpu().numpy(), cmap="gray_r", vmin=-1, vmax=1)
        bordered(ax)
        if labels is not None:
            ax.set_title(f"a {labels[i]}", size=10, pad=4)
        for line, (name, classes) in enumerate(answers.items()):
            right = labels is None or bool(classes[i] == labels[i])
            text = f"{name}: {classes[i]} {'✓' if right else '✗'}"
            ax.annotate(
                text, (0.5, 0), (0, -4 - 12 * line), xycoords="axes fraction",
                textcoords="offset points", ha="center", va="top", size=9,
                color=INK if right else QUERY,
            )  # fmt: skip


def drawing_read(image: Tensor, looks: Tensor, shares: Tensor) -> None:
    """Show a small drawing, where a model looks on it, and its answer as bars.

    Args:
        image: (1, H, W), from -1, paper, to 1, ink.
        looks: (n,), the share of each patch of a square grid.
        shares: (classes,), which share out 1.
    """
    side = round(len(looks) ** 0.5)
    patch = image.shape[-1] / side
    left, middle, right = panels(1, 3, 8, 2.5, width_ratios=(1, 1, 1.6))[0]
    left.imshow(image[0].cpu().numpy(), cmap="gray_r", vmin=-1, vmax=1)
    for number in range(1, side):
        for line in (left.axhline, left.axvline):
            line(number * patch - 0.5, color=PATCH, linewidth=0.6)
    middle.imshow(looks.cpu().view(side, side).numpy(), cmap=WEIGHTS, vmin=0)
    for number, look in enumerate(looks.tolist()):
        ink = "white" if look <= 0.5 * looks.max() else "black"
        row, column = divmod(number, side)
        middle.text(column, row, f"{look:.0%}", ha="center", va="center", color=ink, size=8)
    for ax, title in ((left, "the drawing"), (middle, "where cls looks")):
        ax.set(xticks=[], yticks=[])
        ax.set_title(title, size=10)
    values = shares.tolist()
    best = values.index(max(values))
    colours = [CLS if i == best else GREY for i in range(len(values))]
    right.bar(range(len(values)), values, color=colours)
    right.annotate(
        f"{values[best]:.0%}", (best, values[best]), (0, 3), textcoords="offset points",
        ha="center", size=9,
    )  # fmt: skip
    right.set_xticks(range(len(values)))
    right.set(ylim=(0, 1.12), yticks=[0, 0.5, 1], xlabel="digit")
    right.set_title("the answer", size=10)
    right.spines[["top", "right"]].set_visible(False)
