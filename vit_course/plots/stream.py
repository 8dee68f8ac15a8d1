"""Lessons 05 and 06: the residual stream and its branches, the parameters, what a model reads."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from .colours import CLS, FAINT, INK, PAPER, PATCH, QUERY, SIGNED, WEIGHTS
from .figures import (
    bordered,
    charts,
    new_axes,
    panels,
    picture,
    rectangle,
    rounded,
    write_numbers,
)

GREY = "#777777"
LANES = ((0.18, CLS), (0.06, PATCH), (-0.06, PATCH), (-0.18, PATCH))  # cls first, as in lesson 02
BRANCH = 1.55  # how far a branch lies below the road


def residual_road(norm: str = "branch", title: str = "", ax: Any = None) -> None:
    """Draw one encoder block as a straight road past two branches, attention and the MLP.

    Each lane of the road is a token, the cls token's orange. A branch reads all of them, computes,
    and adds its result to the road.

    Args:
        norm: "branch" puts each norm at the start of a branch (pre-norm, Dosovitskiy et al. 2021,
            figure 1); "road" puts it on the road behind the sum (post-norm, Vaswani et al. 2017,
            figure 1).

    Raises:
        ValueError: norm is something else.
    """
    if norm not in ("branch", "road"):
        raise ValueError(f'norm is {norm!r}; give "branch" or "road"')
    ax = ax or new_axes(8.6, 2.3)
    ax.set(xlim=(-1.5, 12.9), ylim=(-2.1, 0.75), aspect="equal")
    ax.axis("off")
    for y, colour in LANES:
        ax.plot([0, 11.6], [y, y], color=colour, lw=2.2, solid_capstyle="butt", zorder=1)
    ax.annotate("", (12.2, 0), (11.6, 0), arrowprops=dict(arrowstyle="-|>", color=INK, lw=1.5))
    ax.text(-0.15, 0, "tokens in", ha="right", va="center", size=9)
    ax.text(12.25, 0, "out", ha="left", va="center", size=9)
    for start, name, note in ((0.6, "attention", "look around"), (6.1, "MLP", "think alone")):
        _branch(ax, start, name, note, norm == "branch")
        if norm == "road":
            _plate(ax, start + 4.75, 0, "norm", 0.95)
    ax.set_title(title, loc="left", size=10)


def _branch(ax: Any, start: float, name: str, note: str, normed: bool) -> None:
    """Draw a branch that leaves the road at `start` and comes back to it 3.9 further on."""
    end = start + 3.9
    line = dict(color=INK, lw=1.3, solid_joinstyle="round", zorder=2)
    ax.plot([start, start, end], [0, -BRANCH, -BRANCH], **line)
    tip = dict(arrowstyle="-|>", color=INK, lw=1.3, shrinkA=0, shrinkB=0)
    ax.annotate("", (end, -0.22), (end, -BRANCH - 0.02), arrowprops=tip)
    ax.plot(start, 0, "o", color=INK, markersize=5, zorder=4)
    if normed:
        _plate(ax, start + 0.85, -BRANCH, "norm", 0.95)
    middle = start + (2.4 if normed else 1.95)
    _plate(ax, middle, -BRANCH, name, 1.75)
    ax.text(middle, -BRANCH + 0.42, note, ha="center", va="bottom", size=8, color=GREY)
    circle = dict(boxstyle="circle,pad=0.22", facecolor="white", edgecolor=INK)
    ax.text(end, 0, "+", ha="center", va="center", size=11, bbox=circle, zorder=5)


def _plate(ax: Any, x: float, y: float, text: str, width: float) -> None:
    """Draw a box with a text in it, round (x, y); a norm's is dark."""
    face, ink = (INK, "white") if text == "norm" else (PAPER, INK)
    rounded(ax, x - width / 2, y - 0.3, width, 0.6, 0.12, facecolor=face, edgecolor=INK, zorder=5)
    ax.text(x, y, text, ha="center", va="center", color=ink, size=9, zorder=6)


def norm_places() -> None:
    """Draw a block with its norms on the road (2017) above one with its norms in the branches."""
    top, bottom = panels(2, 1, 8.6, 4.4)[:, 0]
    residual_road("road", "post-norm: Vaswani et al. 2017", top)
    residual_road("branch", "pre-norm: Dosovitskiy et al. 2021", bottom)


def edge_points(hidden_too: bool = True) -> None:
    """Draw the four tokens of the edge, which no line separates, and how ReLU lets one do it.

    Args:
        hidden_too: whether the two hidden numbers are drawn as well, before and after ReLU.
    """
    tokens = torch.tensor([[0.0, 0], [1, 0], [0, 1], [1, 1]])  # ink left, ink right
    hidden = torch.stack([tokens[:, 0] - tokens[:, 1], tokens[:, 1] - tokens[:, 0]], dim=1)
    edge = torch.tensor([False, True, True, False])
    count = 3 if hidden_too else 1
    axes = charts(1, count, 3.1 * count, 3)[0]
    views = (
        ("the tokens", tokens, ("ink on the left, a", "ink on the right, b")),
        ("two hidden numbers", hidden, ("a − b", "b − a")),
        ("after ReLU", hidden.clamp(min=0), ("ReLU(a − b)", "ReLU(b − a)")),
    )
    for ax, (title, points, labels) in zip(axes, views[:count], strict=True):
        for yes, colour, marker in ((False, GREY, "o"), (True, CLS, "s")):
            x, y = points[edge == yes].T.numpy()
            ax.plot(x, y, marker, color=colour, markersize=11, zorder=3)
        ax.set(title=title, xlabel=labels[0], ylabel=labels[1], aspect="equal")
        ax.set(xlim=(-1.35, 1.5), ylim=(-1.35, 1.5), xticks=(-1, 0, 1), yticks=(-1, 0, 1))
    if hidden_too:
        axes[1].plot([-1.2, 1.2], [1.2, -1.2], color=FAINT, zorder=1)
        for ax in axes[1:]:
            ax.text(-0.1, -0.4, "both circles", ha="right", color=INK, size=8)
        axes[2].plot([-0.7, 1.2], [1.2, -0.7], "--", color=QUERY, lw=1.8)
        axes[2].text(-0.6, 1.25, "separates them", color=QUERY, size=9)
    else:  # each token's patch beside it
        axes[0].set(xlim=(-0.4, 1.7), ylim=(-0.4, 1.7), xticks=(0, 1), yticks=(0, 1))
        for a, b in tokens.tolist():
            for half, ink in ((0.14, a), (0.32, b)):
                look = dict(facecolor=INK if ink else "white", edgecolor=INK)
                rectangle(axes[0], a + half, b + 0.1, 0.18, 0.36, **look)


def norm_bars(tokens: Mapping[str, Tensor]) -> None:
    """Draw tokens as bars, a number each: as they are above, after LayerNorm below.

    Args:
        tokens: a name and (D,).
    """
    axes = panels(2, len(tokens), 9.2, 3.6, sharex=True)
    for (name, token), (above, below) in zip(tokens.items(), axes.T, strict=True):
        normed = torch.nn.functional.layer_norm(token, token.shape, eps=1e-6)
        for ax, numbers, colour in ((above, token, PATCH), (below, normed, CLS)):
            bars = ax.bar(range(len(numbers)), numbers.tolist(), color=colour)
            ax.bar_label(bars, [f"{x:.1f}".replace("-", "−") for x in numbers.tolist()], size=8)
            ax.axhline(0, color=INK, lw=0.6)
            ax.margins(y=0.25)
            ax.set(xticks=[], yticks=[], frame_on=False)
        above.set_title(name, size=10)
    axes[0, 0].set_ylabel("before")
    axes[1, 0].set_ylabel("after LayerNorm")


def bends(
    functions: dict[str, Callable[[Tensor], Tensor]], low: float = -4, high: float = 4
) -> None:
    """Draw functions of one number, at most two: their values on the left, slopes on the right."""
    x = torch.linspace(low, high, 401, requires_grad=True)
    axes = charts(1, 2, 8, 2.8)[0]
    styles = ((GREY, "--"), (INK, "-"))
    for (name, function), (colour, dash) in zip(functions.items(), styles, strict=False):
        values = function(x)
        (slopes,) = torch.autograd.grad(values.sum(), x)
        for ax, y in zip(axes, (values, slopes), strict=True):
            ax.plot(x.detach(), y.detach(), dash, color=colour, label=name)
    for ax, title in zip(axes, ("value", "slope"), strict=True):
        ax.axhline(0, color="#DDDDDD", lw=0.8, zorder=0)
        ax.set(title=title, xlabel="x")
        ax.legend(frameon=False)


def reading(image: Tensor, guesses: Tensor) -> None:
    """Show an image beside what a model believes of it after each of its blocks.

    Args:
        image: (C, H, W), from 0 to 1.
        guesses: (stages, classes), each row shares out 1; row 0 is before the first block.
    """
    stages, classes = guesses.shape
    left, right = panels(1, 2, 8, 2.7, width_ratios=(1, 2.6))[0]
    picture(1 - image, ax=left)
    left.axis("on")
    bordered(left, "black")
    left.set_xlabel("the picture")
    values = guesses.detach().cpu()
    right.imshow(values.numpy(), cmap=WEIGHTS, vmin=0, vmax=1, aspect="auto")
    write_numbers(right, values, lambda share: f"{share:.2f}".removeprefix("0"), middle=0.5)
    names = ["at the start", "after 1 block", *(f"after {i} blocks" for i in range(2, stages))]
    right.set_yticks(range(stages), names[:stages])
    right.set_xticks(range(classes))
    right.tick_params(length=0)
    right.set(xlabel="digit")


# The colours of the course's pieces, as on its map; what has none of its own is grey.
COLOURS = {"patch": PATCH, "cls": CLS, "head": CLS}


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
        ax.imshow(image[0].cpu().numpy(), cmap="gray", vmin=-1, vmax=1)
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


def number_field(tensors: Mapping[str, Tensor], columns: int = 780) -> None:
    """Show many numbers as a field of dots, a dot each: purple above 0, orange below, in 5 steps.

    At the left stands which rows belong to which block.

    Args:
        tensors: by their names, such as "blocks.0.mlp.fc1.bias"; the last row is filled with white.
        columns: dots in a row.
    """
    import matplotlib.pyplot as plt

    rows: dict[str, list[float]] = {}  # where each part begins and ends
    end = 0
    for name, tensor in tensors.items():
        first, end = end, end + tensor.numel()
        part = ".".join(name.split(".")[:2])
        rows.setdefault(part, [first / columns, 0.0])[1] = end / columns
    steps = (torch.cat([t.detach().cpu().flatten() for t in tensors.values()]) / 0.15).round()
    height = -(-end // columns)
    field = torch.zeros(height * columns)
    field[:end] = steps.clamp(-2, 2)
    margin = 70
    figure = plt.figure(figsize=((columns + margin) / 100, height / 100))
    ax = figure.add_axes((margin / (columns + margin), 0, columns / (columns + margin), 1))
    ax.imshow(field.view(height, columns).numpy(), cmap=SIGNED, interpolation="nearest")
    ax.axis("off")
    for part, (top, bottom) in rows.items():
        if part.startswith("blocks."):
            ax.plot([-6, -6], [top + 2, bottom - 2], color=INK, linewidth=1.5, clip_on=False)
            ax.text(-12, (top + bottom) / 2, part, ha="right", va="center", size=9, clip_on=False)
    ax.set_xlim(0, columns)
