"""Pictures, matrices, curves: each on the axes that it is given, or on a new figure."""

from collections.abc import Sequence
from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from ..inputs import as_pair
from ..patches import patchify, unpatchify

PATCH, CLS, POSITION = "#0072B2", "#E69F00", "#CC79A7"
QUERY, KEY, VALUE = "#D55E00", "#56B4E9", "#009E73"
INK, FAINT, PAPER = "#222222", "#B8B8B8", "#F4F4F4"
WEIGHTS = "cividis"


# Patches of the sample photo (224×224, P = 16) that the lessons call by a name.
NAMED = {
    "star": 16,
    "cap": 34,
    "eye": 50,
    "cheek": 78,
    "mouth": 91,
    "wall": 68,
    "flag": 114,
    "coat": 150,
    "ribbons": 178,
}


def sharp() -> None:
    """In a notebook, draw figures with twice the pixels a side, for dense screens."""
    from IPython import get_ipython
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    if get_ipython() is not None:
        set_matplotlib_formats("retina")


def new_axes(width: float, height: float) -> Any:
    """One axes on a new figure of this size, in inches of 100 pixels."""
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    return ax


def picture(image: Tensor, title: str = "", ax: Any = None) -> None:
    """Show an image (C, H, W) with values from 0 to 1, in colour for C = 3, in grey for C = 1."""
    ax = ax or new_axes(3, 3)
    pixels = image.detach().cpu().permute(1, 2, 0).clamp(0, 1).numpy()
    ax.imshow(pixels, cmap="gray", vmin=0, vmax=1)
    ax.set_title(title)
    ax.axis("off")


def patch_grid(
    image: Tensor, patch_size: int, gap: int = 2, title: str = "", ax: Any = None
) -> None:
    """Show an image (C, H, W) cut into patches, `gap` white pixels apart."""
    channels, height, width = image.shape
    patches = patchify(image[None], patch_size)[0]
    tiles = rearrange(patches, "n (p1 p2 c) -> n c p1 p2", p1=patch_size, c=channels)
    tiles = torch.nn.functional.pad(tiles, (0, gap, 0, gap), value=1.0)
    side = patch_size + gap
    rows, cols = height // patch_size, width // patch_size
    flat = rearrange(tiles, "n c p1 p2 -> 1 n (p1 p2 c)")
    picture(unpatchify(flat, side, (rows * side, cols * side))[0], title, ax or new_axes(4, 4))


def mark_patches(
    image: Tensor, places: dict[str, int], patch_size: int = 16, title: str = "", ax: Any = None
) -> None:
    """Show an image (C, H, W) with some patches framed and named.

    Args:
        places: a name and the patch's number, counted row by row from 0; `NAMED` has some.
    """
    from matplotlib.patches import Rectangle

    ax = ax or new_axes(4, 4)
    picture(image, title, ax)
    columns = image.shape[2] // patch_size
    for name, number in places.items():
        x, y = number % columns * patch_size - 0.5, number // columns * patch_size - 0.5
        for colour, width in (("black", 3), (PAPER, 1.5)):  # seen on dark and on light
            frame = Rectangle((x, y), patch_size, patch_size, fill=False, ec=colour, lw=width)
            ax.add_patch(frame)
        box = dict(facecolor="white", edgecolor="none", alpha=0.85, pad=1)
        ax.text(x + patch_size / 2, y - 3, name, ha="center", va="bottom", size=8, bbox=box)


def matrix(
    values: Tensor,
    title: str = "",
    rows: Sequence[str] = (),
    cols: Sequence[str] = (),
    xlabel: str = "",
    ylabel: str = "",
    form: str = "{:.2f}",
    limits: tuple[float, float] | None = None,
    ax: Any = None,
) -> None:
    """Show a matrix (rows, cols) as coloured cells; a small one has its numbers written in.

    Args:
        form: how a number is written, such as "{:.0f}"; "" writes none. Above 12 rows or columns
            none are written, and a colour bar stands beside the matrix instead.
        limits: the values at the two ends of the colour map; by default the smallest and largest.
    """
    import matplotlib.pyplot as plt

    values = values.detach().cpu().float()
    height, width = values.shape
    ax = ax or new_axes(0.55 * min(width, 8) + 1.2, 0.5 * min(height, 8) + 0.8)
    known = values[~values.isnan()]
    low, high = limits or (known.min().item(), known.max().item())
    drawn = ax.imshow(values.numpy(), cmap=WEIGHTS, vmin=low, vmax=high)
    small = max(height, width) <= 12
    if small and form:
        middle = (low + high) / 2
        for i in range(height):
            for j in range(width):
                colour = "white" if values[i, j] <= middle else "black"
                ax.text(
                    j, i, form.format(values[i, j]), color=colour, ha="center", va="center", size=9
                )
    elif not small:
        plt.colorbar(drawn, ax=ax, shrink=0.8)
        ax.locator_params(integer=True)
    if small:
        ax.set_xticks(range(width), cols or [str(j) for j in range(width)])
        ax.set_yticks(range(height), rows or [str(i) for i in range(height)])
        ax.tick_params(length=0)
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)


def over_photo(
    image: Tensor, weights: Tensor, grid: int | tuple[int, int], title: str = "", ax: Any = None
) -> None:
    """Lay one weight per patch (rows·cols,) over an image (C, H, W), bright where it is large."""
    rows, cols = as_pair(grid, "grid")
    if weights.shape != (rows * cols,):
        raise ValueError(
            f"weights is {tuple(weights.shape)}; give ({rows * cols},), one number per patch "
            "(leave out the cls token: weights[1:])"
        )
    ax = ax or new_axes(3, 3)
    height, width = image.shape[1:]
    ax.imshow(image.detach().cpu().mean(0).numpy(), cmap="gray", vmin=0, vmax=1)
    heat = weights.detach().cpu().reshape(rows, cols).numpy()
    ax.imshow(heat, cmap=WEIGHTS, alpha=0.6, extent=(-0.5, width - 0.5, height - 0.5, -0.5))
    ax.set_title(title)
    ax.axis("off")


STYLES = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"))


def lines(
    x: Sequence[float],
    series: dict[str, Sequence[float]],
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    colours: Sequence[str] = (QUERY, VALUE, PATCH, POSITION),
    log: str = "",
    ax: Any = None,
) -> None:
    """Draw a few curves over the same x, each with its name at its right end.

    Curves differ in colour, dash and marker, so that they are told apart without colour.

    Args:
        x: where the points stand.
        series: a name and its values; at most four.
        log: "x", "y" or "xy" for logarithmic axes; on a logarithmic x every point gets its tick.
    """
    ax = ax or new_axes(6, 3.2)
    for (name, y), colour, (dash, marker) in zip(series.items(), colours, STYLES, strict=False):
        ax.plot(x, y, dash, marker=marker, color=colour, markersize=4, label=name)
        ax.annotate(
            name, (x[-1], y[-1]), (8, 0), textcoords="offset points", color=colour, va="center"
        )
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    if "x" in log:
        ax.set_xscale("log")
        ax.set_xticks(x, [f"{v:g}" for v in x])
        ax.minorticks_off()
    if "y" in log:
        ax.set_yscale("log")
    ax.spines[["top", "right"]].set_visible(False)
