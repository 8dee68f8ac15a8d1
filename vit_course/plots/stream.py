"""Lesson 05's drawings: the residual stream and its branches, and what is measured on it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .figures import (
    CLS,
    FAINT,
    INK,
    PAPER,
    PATCH,
    WEIGHTS,
    bordered,
    new_axes,
    panels,
    picture,
    rounded,
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
            _plate(ax, start + 4.75, 0, "norm", dark=True, width=0.95)
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
        _plate(ax, start + 0.85, -BRANCH, "norm", dark=True, width=0.95)
    middle = start + (2.4 if normed else 1.95)
    _plate(ax, middle, -BRANCH, name, dark=False, width=1.75)
    ax.text(middle, -BRANCH + 0.42, note, ha="center", va="bottom", size=8, color=GREY)
    circle = dict(boxstyle="circle,pad=0.22", facecolor="white", edgecolor=INK)
    ax.text(end, 0, "+", ha="center", va="center", size=11, bbox=circle, zorder=5)


def _plate(ax: Any, x: float, y: float, text: str, dark: bool, width: float) -> None:
    """Draw a box with a text in it, round (x, y)."""
    face, ink = (INK, "white") if dark else (PAPER, INK)
    rounded(ax, x - width / 2, y - 0.3, width, 0.6, 0.12, facecolor=face, edgecolor=INK, zorder=5)
    ax.text(x, y, text, ha="center", va="center", color=ink, size=9, zorder=6)


def norm_places() -> None:
    """Draw a block with its norms on the road (2017) above one with its norms in the branches."""
    top, bottom = panels(2, 1, 8.6, 4.4)[:, 0]
    residual_road("road", "post-norm: Vaswani et al. 2017", top)
    residual_road("branch", "pre-norm: Dosovitskiy et al. 2021", bottom)


def bends(
    functions: dict[str, Callable[[Tensor], Tensor]], low: float = -4, high: float = 4
) -> None:
    """Draw functions of one number, at most two: their values on the left, slopes on the right."""
    x = torch.linspace(low, high, 401, requires_grad=True)
    axes = panels(1, 2, 8, 2.8)[0]
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
        ax.spines[["top", "right"]].set_visible(False)


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
    for i in range(stages):
        for j in range(classes):
            ink = "white" if values[i, j] <= 0.5 else "black"
            text = f"{values[i, j]:.2f}".removeprefix("0")
            right.text(j, i, text, ha="center", va="center", color=ink, size=8)
    names = ["at the start", "after 1 block", *(f"after {i} blocks" for i in range(2, stages))]
    right.set_yticks(range(stages), names[:stages])
    right.set_xticks(range(classes))
    right.tick_params(length=0)
    right.set(xlabel="digit")


def silenced(names: Sequence[str], shares: Mapping[str, Sequence[float]]) -> None:
    """Draw a row for each branch, with a mark for each way to be without it.

    Args:
        shares: at most three ways, each with the share of right answers, 0 to 1, for each branch.
    """
    ax = new_axes(8, 0.3 * len(names) + 1.2)
    looks = (("o", "white", INK), ("o", PATCH, PATCH), ("D", CLS, INK))
    for (label, values), (marker, face, edge) in zip(shares.items(), looks, strict=False):
        percent = [100 * value for value in values]
        rows = range(len(names))
        ax.plot(percent, rows, marker, mfc=face, mec=edge, markersize=7, label=label, zorder=3)
    for row, values in enumerate(zip(*shares.values(), strict=True)):
        ends = [100 * min(values), 100 * max(values)]
        ax.plot(ends, [row, row], color=FAINT, lw=1.2, zorder=1)
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(axis="y", length=0)
    ax.set(xlabel="right answers in %", ylim=(len(names) - 0.5, -0.5))
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.legend(frameon=False, ncols=len(shares), loc="lower left", bbox_to_anchor=(0, 1))
