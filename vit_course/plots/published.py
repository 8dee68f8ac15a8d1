"""Lessons 10 and 12: two lists of names, what slips cost, few labels, what a test covers or saw.

The second and third draw what `benchmarks/published_weights.py` measured once and stored.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from .colours import FAINT, INK, KEY, PAPER, PATCH, QUERY, VALUE
from .figures import dots, new_axes, panels, rectangle, rounded, sketch
from .scores import stored

FILE = Path(__file__).with_name("published.json")


def name_lines(names: Mapping[str, tuple[str, ...]], start: str, end: str) -> None:
    """Draw two columns of names, theirs on the left and ours on the right, joined by lines.

    Args:
        names: for each of ours, one of theirs, or three: query, key and value.
        start: only those of ours that begin so are drawn, such as "blocks.0.".
        end: and end so, such as "weight". What all names of a column begin with is left out.
    """
    groups = {name: names[name] for name in names if name.startswith(start) and name.endswith(end)}
    left = [source for sources in groups.values() for source in sources]
    parts = zip(*(source.split(".") for source in left), strict=False)
    common = "".join(f"{part[0]}." for part in takewhile(lambda part: len({*part}) == 1, parts))
    ax = sketch(8.6, 0.33 * len(left) + 0.6, xlim=(0.2, 2.0), ylim=(len(left) - 0.4, -1.8))
    spread = (len(left) - 1) / max(len(groups) - 1, 1)
    line = 0
    style = {"family": "monospace", "size": 10, "va": "center"}
    for row, (name, sources) in enumerate(groups.items()):
        ax.text(1.32, row * spread, name.removeprefix(start), **style)
        colours, width = ((QUERY, KEY, VALUE), 2.5) if len(sources) == 3 else ((INK,), 1)
        for source, colour in zip(sources, colours, strict=True):
            ax.text(1, line, source.removeprefix(common), ha="right", **style)
            ax.plot((1.01, 1.31), (line, row * spread), color=colour, lw=width)
            line += 1
    ax.text(1, -1.2, f"in the file: {common}…", ha="right", va="center", weight="bold")
    ax.text(1.32, -1.2, f"in your class: {start}…", va="center", weight="bold")


# By kind, the slips of `published.json`, and the colour of their bars.
SLIPS = {
    "in the model": ("eps 1e-12", "GELU by tanh", "quick GELU", "8 heads", "2 heads",
                     "rows as (h d qkv)"),
    "in the pictures": ("ImageNet's mean, std", "blue, green, red", "left at 0…1",
                        "36 pixels, cut to 32"),
}  # fmt: skip
COLOURS = dict(zip(SLIPS, (PATCH, QUERY), strict=True))


def slip_costs(*kinds: str) -> None:
    """Draw for each slip of these kinds how many photos our photo model still names correctly.

    Beside each bar stand its share, how many answers changed, and by how much a logit at most.
    """
    measured = stored("slips", FILE)
    count, rows = measured["photos"], measured["rows"]
    colours = {name: COLOURS[kind] for kind in kinds for name in SLIPS[kind]}
    ax = new_axes(9, 0.28 * len(colours) + 1.4)
    shares = [rows[name]["right"] / count for name in ("as published", *colours)]
    lines = range(len(shares))
    ax.barh(lines, shares, 0.62, color=[INK, *colours.values()])
    ax.axvline(shares[0], color=FAINT, lw=1, zorder=0)
    for line, share in zip(lines, shares, strict=True):
        box = dict(facecolor="white", edgecolor="none", pad=1)
        ax.text(share + 0.01, line, f"{share:.1%}", va="center", size=9, bbox=box)
    for x, title, key in ((1.22, "answers changed", "changed"), (1.5, "logits off by", "off")):
        ax.text(x, -0.8, title, ha="right", va="center", size=9, weight="bold")
        for line, name in enumerate(colours, start=1):
            ax.text(x, line, _first_digit(rows[name][key]), ha="right", va="center", size=9)
    ax.set_yticks(lines, ["as published", *colours])
    ax.set(xlim=(0, 1.52), ylim=(len(shares) - 0.4, -1.2))
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25%", "50%", "75%", "100%"])
    ax.set_xlabel(f"of {count:,} photos of CIFAR-10, named correctly", loc="left")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_bounds(0, 1)


def _first_digit(value: float) -> str:
    """Write a count whole, another number to its first digit: "1,613", "0.00009"."""
    return f"{value:,}" if isinstance(value, int) else f"{float(f'{value:.1g}'):f}".rstrip("0.")


def few_labels() -> None:
    """Draw what few pictures of six things are worth, used in several ways.

    Each number of pictures has a panel, each seed a dot.
    """
    measured = stored("onward", FILE)
    tables = {
        count: {name: [100 * value for value in values] for name, values in rows.items()}
        for count, rows in measured["rows"].items()
    }
    shares = [share for rows in tables.values() for values in rows.values() for share in values]
    limits = (min(shares) - 4, max(shares) + 2)
    lines = len(next(iter(tables.values())))
    axes = panels(1, len(tables), 9.4, 0.34 * lines + 1.1)[0]
    xlabel = f"right in % of {measured['tested']} other drawings"
    for ax, (count, rows) in zip(axes, tables.items(), strict=True):
        title = f"{count} pictures of each thing"
        dots(rows, title, xlabel, limits=limits, form="{:.0f}", ax=ax)
        if ax is not axes[0]:
            ax.set_yticklabels([])


def alarms(
    found: Mapping[str, Sequence[int]], tests: Sequence[str], sound: Collection[str]
) -> None:
    """Draw which test raised an alarm at which model: ✓ a fault that is caught, ! a sound one.

    Args:
        found: for each model, in the order of `tests`, 1 for an alarm and 0 for none.
        tests: their names, a column each.
        sound: the models that have no fault. They stand below the others.
    """
    models = sorted(found, key=lambda name: name in sound)  # stable: else in their own order
    ax = new_axes(1.0 * len(tests) + 3.0, 0.27 * len(models) + 0.6)
    for row, name in enumerate(models):
        colour, sign = (QUERY, "!") if name in sound else (VALUE, "✓")
        for column, alarm in enumerate(found[name]):
            face = colour if alarm else "none"
            rectangle(ax, column, row, 1, 1, facecolor=face, edgecolor=FAINT, lw=0.6)
            if alarm:
                style = dict(color="white", weight="bold", ha="center", va="center")
                ax.text(column + 0.5, row + 0.5, sign, **style)
    border = len(models) - len(sound)
    ax.axhline(border, color=INK, lw=1.6)
    ax.set_xticks([column + 0.5 for column in range(len(tests))], tests)
    ax.set_yticks([row + 0.5 for row in range(len(models))], models, size=9)
    ax.tick_params(length=0, labeltop=True, labelbottom=False)
    ax.set(xlim=(0, len(tests)), ylim=(len(models), 0), frame_on=False)
    for word, middle in (("at fault", border / 2), ("sound", (border + len(models)) / 2)):
        ax.text(len(tests) + 0.1, middle, word, rotation=270, va="center", color=INK)


WAY = ("picture's file", "preparation", "batch", "model", "logits", "answer")
PROOFS = (("names and shapes fit", 3, 3), ("the same batch", 2, 4), ("from the picture", 0, 4),
          ("right answers counted", 0, 5))  # fmt: skip


def proofs() -> None:
    """Draw a picture's way from its file to an answer, and how much of it each proof covers."""
    ax = sketch(8.6, 2.6, xlim=(-0.6, 7.4), ylim=(2.5, -0.5))
    for place, name in enumerate(WAY):
        colour = PATCH if name == "model" else INK
        rounded(ax, place - 0.4, -0.3, 0.8, 0.6, 0.08, facecolor=PAPER, edgecolor=colour)
        ax.text(place, 0, name, ha="center", va="center", size=9)
        if place:
            ax.annotate("", (place - 0.4, 0), (place - 0.6, 0), arrowprops=dict(arrowstyle="-|>"))
    for row, (name, first, last) in enumerate(PROOFS):
        y = 0.75 + 0.5 * row
        ends = [first - 0.4, first - 0.4, last + 0.4, last + 0.4]
        coarse = (0, (4, 2)) if name in (PROOFS[0][0], PROOFS[-1][0]) else "-"
        ax.plot(ends, [y - 0.15, y, y, y - 0.15], color=QUERY, lw=1.6, linestyle=coarse)
        ax.text(5.6, y - 0.03, name, va="center", size=9)
