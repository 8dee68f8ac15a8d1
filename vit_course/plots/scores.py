"""Lesson 04's drawings: attention as shapes, its scale, where patches of a photo look."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from vit_steps.inputs import as_pair

from .figures import FAINT, INK, QUERY, VALUE, WEIGHTS, curves, mark_patches, new_axes

FORMS = {"raw": QUERY, "divided by √d": VALUE}  # scores as they come, and scaled


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
    count = len(q)
    scores = q @ k.T
    weights = scores.softmax(dim=-1)
    row = list(names).index(lit)
    ax = new_axes(10, 3.6)
    ax.set(ylim=(count + 3.4, -5.2), aspect="equal")
    ax.axis("off")
    left = 0.0
    for name, number in zip(names, range(count), strict=True):
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
        draw_cells(ax, values, colours, left, top, None if bright else row)
        small = f"{height}×{across}"
        title_at = top - 0.4
        if across == count:  # a column for each key
            title_at -= 3.3
            for number, name in enumerate(names):
                x = left + number + 0.5
                ax.text(x, top - 0.3, name, ha="center", va="bottom", rotation=90, size=7)
        ax.text(left + across / 2, title_at, title, ha="center", va="bottom", weight="bold")
        for line, text in enumerate((shape, small, large)):
            ink = INK if line < 2 else "#777777"
            ax.text(
                left + across / 2,
                count + 0.4 + line,
                text,
                ha="center",
                va="top",
                size=8,
                color=ink,
            )
        gap = 5.6 if "softmax" in sign else 1.7
        ax.text(left + across + gap / 2, count / 2, sign, ha="center", va="center", size=11)
        left += across + gap
    for line, text in enumerate(("", "here", "in ViT-B/16, a head")):
        ax.text(-0.4, count + 0.4 + line, text, ha="right", va="top", size=8, color="#777777")
    ax.set_xlim(-6.4, left - 1.4)


def draw_cells(
    ax: Any, values: Tensor, colours: str | None, left: float, top: float, lit: int | None
) -> None:
    """A matrix as squares of side 1, on axes that it shares with others; all rows but `lit` pale.

    Args:
        colours: a map's name; a signed one has its middle at zero. None: each row is a colour
            itself, red, green and blue from 0 to 1.
    """
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    height, width = values.shape
    shown = values if lit is None else values[lit]  # what is pale may be lighter than it should
    largest = shown.abs().max().item() or 1.0
    for i in range(height):
        pale = lit is not None and i != lit
        for j in range(width):
            part = max(-1.0, min(1.0, values[i, j].item() / largest))
            if colours is None:
                face: Any = values[i].clamp(0, 1).tolist()
            else:
                face = colormaps[colours](part if colours == WEIGHTS else (part + 1) / 2)
            place = (left + j, top + i)
            ax.add_patch(
                Rectangle(place, 1, 1, fc=face, ec="white", lw=0.5, alpha=0.25 if pale else 1)
            )
    ink = FAINT if lit is not None else INK
    ax.add_patch(Rectangle((left, top), width, height, fill=False, ec=ink, lw=0.8))
    if lit is not None:
        ax.add_patch(Rectangle((left, top + lit), width, 1, fill=False, ec=QUERY, lw=2))


def scale_curves(widths: Sequence[int], measure: Callable[[int, float], Tensor]) -> None:
    """Draw the gradient at a typical query, and its mean over all, against the width of a head.

    Args:
        widths: of a head, d.
        measure: takes d and the factor that scores are multiplied by, 1 or 1/√d; gives the size of
            the gradient at each query, (queries,).
    """
    import matplotlib.pyplot as plt

    medians: dict[str, dict[int, float]] = {name: {} for name in FORMS}
    means: dict[str, dict[int, float]] = {name: {} for name in FORMS}
    for name, power in zip(FORMS, (0, -0.5), strict=True):
        for d in widths:
            sizes = measure(d, d**power)
            medians[name][d] = sizes.median().item()
            means[name][d] = sizes.mean().item()
    _, axes = plt.subplots(1, 2, figsize=(9.6, 3.1), layout="constrained", sharey=True)
    parts = (("a typical query (median)", medians), ("mean over all queries", means))
    for ax, (title, series) in zip(axes, parts, strict=True):
        colours = tuple(FORMS.values())
        curves(series, title, "head width d", log="x", colours=colours, ax=ax)
        ax.set_ylim(-0.05, 1.5)
        ax.set_xlim(widths[0] * 0.8, widths[-1] * 6)
    axes[0].set_ylabel("gradient at the query")


def query_maps(
    image: Tensor,
    maps: dict[str, Tensor],
    queries: dict[str, int],
    hidden: Tensor | None = None,
    patch_size: int = 16,
) -> None:
    """Show the photo, and where its patches look: weights over it, all in one scale.

    Args:
        image: (C, H, W).
        maps: by title, the weights (n,) of one query over the n patches; up to three. The query is
            the one of `queries` whose name begins the title.
        queries: a name and the patch's number, counted row by row from 0.
        hidden: (n,), True where the last map's query may not look; drawn hatched.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    height, width = image.shape[1:]
    rows, cols = as_pair((height // patch_size, width // patch_size), "grid")
    top = max(weights.max().item() for weights in maps.values())
    figure, axes = plt.subplots(2, 2, figsize=(8.2, 7.4), layout="constrained")
    asked = {name: n for name, n in queries.items() if any(t.startswith(name) for t in maps)}
    mark_patches(image, asked, patch_size, "who asks", axes[0, 0])
    grey = image.detach().cpu().mean(0).numpy()
    drawn = None
    for number, (ax, (title, weights)) in enumerate(
        zip(axes.flat[1:], maps.items(), strict=False), start=1
    ):
        extent = (-0.5, width - 0.5, height - 0.5, -0.5)
        ax.imshow(grey, cmap="gray", vmin=0, vmax=1)
        heat = weights.detach().cpu().reshape(rows, cols).numpy()
        drawn = ax.imshow(heat, cmap=WEIGHTS, vmin=0, vmax=top, alpha=0.75, extent=extent)
        if hidden is not None and number == len(maps):
            for place in torch.where(hidden)[0].tolist():
                corner = (place % cols * patch_size - 0.5, place // cols * patch_size - 0.5)
                veil = Rectangle(
                    corner, patch_size, patch_size, fc="#DDDDDD", ec="white", hatch="//"
                )
                ax.add_patch(veil)
        query = next(n for name, n in asked.items() if title.startswith(name))
        corner = (query % cols * patch_size - 0.5, query // cols * patch_size - 0.5)
        for colour, line in (("black", 4), (QUERY, 2)):
            frame = Rectangle(corner, patch_size, patch_size, fill=False, ec=colour, lw=line)
            ax.add_patch(frame)
        ax.set_title(title)
        ax.axis("off")
    if drawn is not None:
        bar = figure.colorbar(drawn, ax=axes, shrink=0.6, label="weight")
        if bar.solids is not None:
            bar.solids.set_alpha(1)
