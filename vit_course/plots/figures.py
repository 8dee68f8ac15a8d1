"""Pictures, matrices, curves, dots: each on the axes that it is given, or on a new figure."""

from collections.abc import Callable, Collection, Mapping, Sequence
from io import BytesIO
from statistics import mean
from typing import Any

from torch import Tensor

from .colours import CLS, FAINT, INK, PAPER, PATCH, POSITION, QUERY, VALUE, WEIGHTS

COLOURS = (PATCH, QUERY, VALUE, POSITION, CLS, INK)  # of curves, with a dash and a marker each
STYLES = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"), ((0, (5, 1, 1, 1, 1, 1)), "v"),
          ((0, (7, 2)), "X"))  # fmt: skip

Curve = Sequence[float] | Mapping[Any, float]  # a value at 0, 1, 2, …, or at each x its value

# Patches of the sample photo (224×224, P = 16) that the lessons call by a name.
NAMED = dict(star=16, cap=34, eye=50, cheek=78, mouth=91, wall=68)
NAMED |= dict(flag=114, coat=150, ribbons=178)


def sharp() -> None:
    """Draw a notebook's figures with twice the pixels a side, for dense screens."""
    from IPython import get_ipython
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    if get_ipython() is not None:
        set_matplotlib_formats("retina")


def panels(rows: int, columns: int, width: float, height: float, **options: Any) -> Any:
    """Make an array (rows, columns) of axes on a new figure of this size, in inches of 100 pixels.

    The options are those of pyplot's `subplots`.
    """
    import matplotlib.pyplot as plt

    options |= dict(figsize=(width, height), layout="constrained", squeeze=False)
    return plt.subplots(rows, columns, **options)[1]


def new_axes(width: float, height: float) -> Any:
    """Make one axes on a new figure of this size, in inches of 100 pixels."""
    return panels(1, 1, width, height)[0, 0]


def sketch(
    width: float, height: float, xlim: Any = None, ylim: Any = None, aspect: str = "auto"
) -> Any:
    """Make one axes without ticks and frame, to draw on freely, on a new figure of this size.

    Args:
        xlim, ylim: the numbers at its edges; None where they are set later.
        aspect: "equal" where a unit is as long upwards as sideways.
    """
    ax = new_axes(width, height)
    ax.set(xlim=xlim, ylim=ylim, aspect=aspect)
    ax.axis("off")
    return ax


def charts(rows: int, columns: int, width: float, height: float, **options: Any) -> Any:
    """Make panels whose axes have no frame above and on the right, as curves and dots need none."""
    axes = panels(rows, columns, width, height, **options)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    return axes


def rectangle(ax: Any, x: float, y: float, width: float, height: float, **look: Any) -> None:
    """Add a rectangle with its smallest x and y here; `look` is matplotlib's."""
    from matplotlib.patches import Rectangle

    ax.add_patch(Rectangle((x, y), width, height, **look))


def rounded(
    ax: Any, x: float, y: float, width: float, height: float, radius: float, **look: Any
) -> None:
    """Add a box with round corners, its smallest x and y here; `look` is matplotlib's."""
    from matplotlib.patches import FancyBboxPatch

    style = f"round,pad=0,rounding_size={radius}"
    ax.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=style, lw=1.2, **look))


def as_png(figure: Any, dpi: int) -> bytes:
    """Write a figure as a PNG, of so many pixels an inch."""
    content = BytesIO()
    figure.savefig(content, format="png", dpi=dpi)
    return content.getvalue()


def pixel_frame(ax: Any, top: float, left: float, height: float, width: float) -> None:
    """Frame these pixels of a picture, seen on dark and on light."""
    for colour, line in (("black", 3), (PAPER, 1.5)):
        rectangle(ax, left - 0.5, top - 0.5, width, height, fill=False, ec=colour, lw=line)


def bordered(ax: Any, colour: str = INK, width: float = 0.8) -> None:
    """Take away the ticks, and draw a thin frame, so that light pictures stand apart."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(color=colour, lw=width)


def picture(image: Tensor, title: str = "", ax: Any = None) -> None:
    """Show an image (C, H, W) with values from 0 to 1, in colour for C = 3, in grey for C = 1."""
    ax = ax or new_axes(3, 3)
    pixels = image.detach().cpu().permute(1, 2, 0).clamp(0, 1).numpy()
    ax.imshow(pixels, cmap="gray", vmin=0, vmax=1)
    ax.set_title(title)
    ax.axis("off")


def mark_patches(
    image: Tensor, places: dict[str, int], patch_size: int = 16, title: str = "", ax: Any = None
) -> None:
    """Show an image (C, H, W) with some patches framed and named.

    Args:
        places: a name and the patch's number, counted row by row from 0; `NAMED` has some.
    """
    ax = ax or new_axes(4, 4)
    picture(image, title, ax)
    columns = image.shape[2] // patch_size
    for name, number in places.items():
        top, left = number // columns * patch_size, number % columns * patch_size
        pixel_frame(ax, top, left, patch_size, patch_size)
        box = dict(facecolor="white", edgecolor="none", alpha=0.85, pad=1)
        middle = left + patch_size / 2 - 0.5
        ax.text(middle, top - 3.5, name, ha="center", va="bottom", size=8, bbox=box)


def write_numbers(
    ax: Any,
    table: Tensor,
    form: Callable[[float], str],
    middle: float,
    size: int = 8,
    light: str = "white",
) -> None:
    """Write the numbers of a table (rows, cols) into its cells; up to `middle` in a light ink."""
    for i, row in enumerate(table.tolist()):
        for j, number in enumerate(row):
            ink = light if number <= middle else "black"
            ax.text(j, i, form(number), ha="center", va="center", color=ink, size=size)


def matrix(
    values: Tensor,
    title: str = "",
    rows: Sequence[str] = (),
    cols: Sequence[str] = (),
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
    values = values.detach().cpu().float()
    height, width = values.shape
    ax = ax or new_axes(0.55 * min(width, 8) + 1.2, 0.5 * min(height, 8) + 0.8)
    finite = values[~values.isnan()]
    low, high = limits or (finite.min().item(), finite.max().item())
    image = ax.imshow(values.numpy(), cmap=WEIGHTS, vmin=low, vmax=high)
    small = max(height, width) <= 12
    if small and form:
        write_numbers(ax, values, form.format, (low + high) / 2, size=9)
    elif not small:
        ax.figure.colorbar(image, ax=ax, shrink=0.8)
        ax.locator_params(integer=True)
    if small:
        ax.set_xticks(range(width), cols or [str(j) for j in range(width)])
        ax.set_yticks(range(height), rows or [str(i) for i in range(height)])
        ax.tick_params(length=0)
    ax.set_title(title)


def matrices(
    tables: Mapping[str, Tensor],
    names: Sequence[str] = (),
    limits: tuple[float, float] | None = None,
    form: str = "{:.2f}",
) -> None:
    """Show small matrices (rows, cols) side by side on one colour scale, each under its name.

    Args:
        names: of the rows and of the columns, the same for all; by default none.
        limits: the values at the two ends of the scale; by default the smallest and largest of all.
        form: as in `matrix`.
    """
    low = min(table.min().item() for table in tables.values())
    high = max(table.max().item() for table in tables.values())
    widths = [table.shape[1] for table in tables.values()]
    rows = max(len(table) for table in tables.values())
    edge = 1.2 if names else 0.8
    size = (0.5 * sum(widths) + edge * len(widths), 0.5 * rows + edge)
    axes = panels(1, len(tables), *size, width_ratios=widths)[0]
    for ax, (title, table) in zip(axes, tables.items(), strict=True):
        matrix(table, title, names, names, form=form, limits=limits or (low, high), ax=ax)
        if not names:
            ax.set(xticks=[], yticks=[])


def curves(
    series: Mapping[str, Curve],
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    log: str = "",
    colours: Sequence[str] = COLOURS,
    ax: Any = None,
) -> None:
    """Draw up to six curves, each with its name at its right end.

    They differ in colour, in dash and, where they have at most 20 points, in marker, so that they
    are told apart without colour. Names that would lie on each other are moved apart.

    Args:
        series: a name and its values, at 0, 1, 2, … or, as `{x: value}`, where it says.
        log: "x", "y" or "xy" for logarithmic axes; on a logarithmic x every point gets its tick.

    Raises:
        ValueError: there are more curves than colours or styles.
    """
    if len(series) > (most := min(len(colours), len(STYLES))):
        raise ValueError(f"{len(series)} curves where {most} are told apart: draw fewer")
    ax = ax or new_axes(7, 3.2)
    ends = []
    for (name, curve), colour, (dash, marker) in zip(series.items(), colours, STYLES, strict=False):
        points = dict(curve) if isinstance(curve, Mapping) else dict(enumerate(curve))
        x, y = list(points), list(points.values())
        mark = marker if len(x) <= 20 else ""
        ax.plot(x, y, linestyle=dash, marker=mark, markersize=4, color=colour, linewidth=1.8)
        ends.append((x[-1], y[-1], name, colour))
        if "x" in log:
            ax.set_xscale("log")
            ax.set_xticks(x, [f"{v:g}" for v in x])
            ax.minorticks_off()
    if "y" in log:
        ax.set_yscale("log")
    if "x" not in log and not any(isinstance(curve, Mapping) for curve in series.values()):
        ax.xaxis.get_major_locator().set_params(integer=True)  # they are counted
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    ax.spines[["top", "right"]].set_visible(False)
    _name_ends(ax, ends)


def _name_ends(ax: Any, ends: Sequence[tuple[float, float, str, str]], gap: float = 15) -> None:
    """Write names (x, y, name, colour) beside points, at least `gap` pixels above each other."""
    ax.figure.canvas.draw()  # only then the axes know where things lie
    scale = 72 / ax.figure.dpi  # from pixels to points
    lowest = float("-inf")
    for x, y, name, colour in sorted(ends, key=lambda end: end[1]):
        height = ax.transData.transform((x, y))[1]
        lowest = max(height, lowest + gap)
        offset = (8, (lowest - height) * scale)
        ax.annotate(name, (x, y), offset, textcoords="offset points", color=colour, va="center")


def dots(
    runs: Mapping[str, Sequence[float]],
    title: str = "",
    xlabel: str = "right answers in %",
    limits: tuple[float, float] | None = None,
    form: str = "{:.1f}",
    colours: Mapping[str, str] | None = None,
    hollow: Collection[str] = (),
    notes: Mapping[str, str] | None = None,
    ax: Any = None,
) -> None:
    """Draw one row for each variant: a dot for each run, a stroke and its number at their mean.

    Dots that would lie on each other stand a little above and below their row.

    Args:
        runs: a name and its results, one number a run.
        limits: of the axis. By default it runs from the lowest dot to the highest, not from 0: what
            is asked is how far apart they lie, not how high.
        form: how the number is written.
        colours: of rows, by name; the others have that of a patch.
        hollow: the rows whose dots are rings.
        notes: what to write behind a row's number, by name.
    """
    ax = ax or new_axes(8, 0.34 * len(runs) + 1.1)
    results = [value for values in runs.values() for value in values]
    low, high = limits or (min(results), max(results))
    place = dict(xycoords=("axes fraction", "data"), textcoords="offset points")
    for row, (name, values) in enumerate(runs.items()):
        ax.axhline(row, color=FAINT, lw=0.6, zorder=0)
        average = mean(values)
        text = form.format(average)
        if len(values) > 1:
            ax.plot([average, average], [row - 0.32, row + 0.32], color=INK, lw=1.6)
            text = f"mean {text}"
        colour = (colours or {}).get(name, PATCH)
        ring = dict(mfc="white", mec=colour, mew=1.5)
        marker = ring if name in hollow else dict(mec="white", mew=0.7)
        heights = [row + step for step in _apart(values, 0.016 * (high - low))]
        ax.plot(values, heights, "o", color=colour, markersize=6, **marker)
        text += f"   {notes.get(name, '')}" if notes else ""
        ax.annotate(text, (1, row), (6, 0), **place, va="center", color=INK, size=9)
    ax.set_yticks(range(len(runs)), list(runs))
    ax.set(title=title, xlabel=xlabel, xlim=limits, ylim=(len(runs) - 0.4, -0.6))
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _apart(values: Sequence[float], near: float) -> list[float]:
    """Give each value a step off its line, so that values nearer than `near` do not cover."""
    steps = [0.0] * len(values)
    last = dict.fromkeys((0.0, -0.17, 0.17, -0.3, 0.3), float("-inf"))  # the last value on each
    for i in sorted(range(len(values)), key=lambda i: values[i]):
        free = [step for step, value in last.items() if values[i] - value >= near]
        steps[i] = free[0] if free else min(last, key=lambda step: last[step])
        last[steps[i]] = values[i]
    return steps
