"""Three small live pictures for lessons: patch sizes, √d before the softmax, which patch asks.

Each is a still picture with a frame laid over it. Where frames are taken away, as on GitHub or in a
notebook that is not trusted, the still picture is what is seen.
"""

import base64
import io
import zlib
from collections.abc import Mapping, Sequence
from html import escape
from math import prod
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from vit_steps.inputs import check_axes, check_sizes, is_whole
from vit_steps.maps import check_weights
from vit_steps.patches import grid_size

from ..plots import colours, figures
from .packing import as_json, in_base64, policy, quoted, text

WIDTHS = (4, 8, 16, 32, 64, 128, 256)
QUERIES, KEYS = 24, 8
MOST_PIXELS, MOST_TOKENS = 320, 257  # of a side, of a table
MANY = 100  # tokens; up to here a weight has 16 bits, above 8
WIDE, PHONE = 840, 358  # pixels that a picture has, at most and on a phone
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style></head>
<body><script type="application/json" id="given">{given}</script>
{scripts}</body></html>
"""


class Small:
    """A still picture and the live one that covers it, as a cell's output.

    `script` names the file that makes it live by what is in `data`; `alt` says what the figure of
    matplotlib shows; the live picture is as large as that, and on a phone `tall` pixels high.
    """

    def __init__(
        self, title: str, script: str, data: dict[str, Any], figure: Any, alt: str, tall: int
    ):
        self.title, self.alt, self.tall = title, alt, tall
        self.ratio = figure.get_figheight() / figure.get_figwidth()
        self.still = _png(figure)
        own, style = text(f"{script}.js"), text("small.css")
        model = [text("model.js")] if "vitModel" in own else []
        scripts = [*model, text("drawing.js"), own]
        self.html = PAGE.format(
            policy=policy(style, scripts, "img-src data:"),
            title=title,
            style=style,
            given=as_json(data),
            scripts="\n".join(f"<script>{source}</script>" for source in scripts),
        )

    def __repr__(self) -> str:
        return f"{self.title}: a live picture in JupyterLab and Colab, a still one elsewhere"

    def _repr_html_(self) -> str:
        # Below 700 pixels the picture gets room beneath, as much as the frame needs to be higher.
        room = (self.tall - self.ratio * PHONE) / (700 - PHONE)
        return (
            f'<div style="position:relative;max-width:{WIDE}px">'
            f'<img src="{_data_address(self.still, "png")}" alt="{escape(self.alt)}" '
            'style="display:block;width:100%;height:auto;margin:0;border:0;box-sizing:content-box;'
            f'padding:0 0 max(0px, calc({700 * room:.0f}px - {100 * room:.0f}%))">'
            f'<iframe srcdoc="{quoted(self.html)}" sandbox="allow-scripts" '
            f'title="{escape(self.title)}, live" style="position:absolute;left:0;top:0;width:100%;'
            'height:100%;border:0;margin:0"></iframe></div>'
        )


def patch_sizes(
    image: Tensor, sizes: Sequence[int] = (8, 16, 32, 56), point: tuple[int, int] | None = None
) -> Small:
    """Show a picture cut into patches of a side that the reader chooses, and what each side costs.

    Args:
        image: (C, H, W), from 0 to 1, grey or in colour, of at most 320 pixels a side.
        sizes: up to six sides P of a patch, in pixels; each divides H and W.
        point: row and column of a pixel; the patch that holds it is shown large at first. By
            default the one in the middle.

    Raises:
        TypeError: no tensor of floats, or a size that is not a whole number.
        ValueError: another form, values outside of 0 to 1, a size that does not divide a side or
            comes twice, or a point outside.
    """
    image = _checked_picture(image)
    _, height, width = image.shape
    sizes = _patch_sides(sizes)
    grids = [grid_size((height, width), P) for P in sizes]
    point = (height // 2, width // 2) if point is None else point
    if not isinstance(point, Sequence) or len(point) != 2 or not all(map(is_whole, point)):
        raise TypeError(f"point is {point!r}; give a pixel's (row, column)")
    row, col = map(int, point)
    if not (0 <= row < height and 0 <= col < width):
        raise ValueError(f"point is {(row, col)}; the image has {height} rows, {width} columns")

    figure = _new_figure(4.4)
    axes = figure.subplots(2, len(sizes), squeeze=False, height_ratios=(1.4, 1))
    for P, (rows, cols), above, below in zip(sizes, grids, *axes, strict=True):
        figures.mark_patches(image, {"": row // P * cols + col // P}, P, ax=above)
        above.vlines([x - 0.5 for x in range(P, width, P)], -0.5, height - 0.5, "white", lw=0.6)
        above.hlines([y - 0.5 for y in range(P, height, P)], -0.5, width - 0.5, "white", lw=0.6)
        above.set_title(f"P = {P}: {rows * cols:,} patches", size=10)
        top, left = row // P * P, col // P * P
        figures.picture(image[:, top : top + P, left : left + P], ax=below)
        below.set_title(f"{P * P * len(image):,} numbers in a patch", size=9)
        note = f"weights:\n({rows * cols:,} + 1)² = {(rows * cols + 1) ** 2:,}"
        below.text(0.5, -0.06, note, transform=below.transAxes, ha="center", va="top", size=9)
    alt = f"A picture cut into patches of {', '.join(map(str, sizes))} pixels a side; below each, "
    alt += "one patch enlarged, the numbers in it, and the weights of one table of attention."
    data = {"photo": _photo(image), "height": height, "width": width, "channels": len(image)}
    data |= {"sizes": sizes, "point": [row, col]}
    return Small("Patch sizes", "small_patches", data, figure, alt, 610)


def scaled_softmax() -> Small:
    """Show what the softmax makes of scores, as vectors grow wider, divided by √d and not.

    24 queries and 8 keys of random numbers of mean 0 and variance 1; at width d the first d numbers
    of each count. The generator is its own: what a notebook draws afterwards stays the same.
    """
    generator = torch.Generator().manual_seed(0)
    queries = torch.randn(QUERIES, WIDTHS[-1], generator=generator)
    keys = torch.randn(KEYS, WIDTHS[-1], generator=generator)

    figure = _new_figure(4.2)
    axes = figure.subplots(2, 3, squeeze=False, sharey=True)
    for line, divided in zip(axes, (False, True), strict=True):
        for ax, d in zip(line, WIDTHS[::3], strict=True):
            scores = queries[:, :d] @ keys[:, :d].T / (d**0.5 if divided else 1)  # (24, 8)
            weights = scores.softmax(dim=-1)
            ax.bar(range(KEYS), weights[0].tolist(), color=colours.KEY, edgecolor=colours.INK)
            mean = weights.amax(dim=-1).mean()
            form = "divided by √d" if divided else "not divided"
            ax.set_title(f"d = {d}, {form}: largest {weights[0].max():.2f}", size=10)
            ax.set_xlabel(f"mean of the largest, {QUERIES} queries: {mean:.2f}", size=9)
            ax.set(ylim=(0, 1), xticks=range(KEYS))
            ax.spines[["top", "right"]].set_visible(False)
        line[0].set_ylabel("weight of each key")
    alt = "The softmax weights of one query over 8 random keys, for three widths d. Not divided, "
    alt += "one key takes nearly all as d grows. Divided by √d, the weights stay spread."
    data = {"queries": _in_letters(_floats(queries)), "keys": _in_letters(_floats(keys))}
    data |= {"widths": WIDTHS, "count": KEYS}
    return Small("√d and softmax", "small_softmax", data, figure, alt, 460)


def who_asks(
    image: Tensor,
    weights: Tensor,
    patch_size: int,
    start: int = 0,
    names: Mapping[str, int] | None = None,
) -> Small:
    """Where a patch looks, and who looks at it: a row of the table of weights, and a column.

    Args:
        image: (C, H, W), from 0 to 1, grey or in colour, of at most 320 pixels a side.
        weights: (N, N), queries, then keys, after the softmax, of one head or a mean of heads. N is
            the number of patches, or one more: then cls comes first.
        patch_size: P, in pixels.
        start: the patch that asks at first, counted row by row from 0.
        names: what some patches are called, and their numbers.

    Raises:
        TypeError: no tensors of floats, or numbers that are not whole.
        ValueError: another form, values outside of 0 to 1, rows that do not sum to 1, a table that
            does not belong to the patches, a patch that is not there.
    """
    grey = _checked_picture(image).mean(0, keepdim=True)
    _, height, width = grey.shape
    rows, cols = grid_size((height, width), patch_size)
    count = rows * cols
    table = _checked_table(weights, count)
    names = dict(names or {})
    for name, number in [("start", start), *names.items()]:
        if not is_whole(number):
            raise TypeError(f"{name!r} is {number!r}; give a patch's number, from 0")
        if not 0 <= number < count:
            raise ValueError(f"{name!r} is patch {number}; the image has patches 0 to {count - 1}")
    cls = len(table) - count  # 1 where cls comes first

    figure = _new_figure(5.2)
    axes = figure.subplots(1, 2)
    both = table[cls + start, cls:], table[cls:, cls + start]
    titles = f"where patch {start} looks", f"who looks at patch {start}"
    top, extent = max(map(torch.max, both)), (-0.5, width - 0.5, height - 0.5, -0.5)
    for ax, title, shares in zip(axes, titles, both, strict=True):
        figures.mark_patches(grey, {"": start}, patch_size, title, ax)
        tiles = shares.reshape(rows, cols).numpy()
        ax.imshow(tiles, cmap=colours.WEIGHTS, alpha=0.8, vmin=0, vmax=top, extent=extent)
    heat = axes[0].images[-1]
    bar = figure.colorbar(heat, ax=axes, label="weight", orientation="horizontal", shrink=0.5)
    bar.solids.set_alpha(1)
    alt = f"A picture with patch {start} framed; over it, the weights that this patch gives to the "
    alt += "others; and beside it, the weights that the others give to this patch."
    data = {"photo": _photo(grey), "height": height, "width": width}
    data |= {"patchSize": int(patch_size), "start": int(start), "cls": cls, **_packed(table)}
    data["names"] = {int(number): str(name) for name, number in names.items()}
    return Small("Which patch asks", "small_asks", data, figure, alt, 490)


def _checked_picture(image: Tensor) -> Tensor:
    """Give the picture as 32-bit floats on the CPU; a TypeError or ValueError where it is none."""
    check_axes("image", image, "C H W")
    shape = tuple(image.shape)
    if not image.is_floating_point():
        raise TypeError(f"image holds {image.dtype}, not floats; use image.float() / 255 for bytes")
    if shape[0] not in (1, 3) or 0 in shape:
        raise ValueError(f"image is {shape}; give (1, H, W) in grey or (3, H, W) in colour")
    if max(shape[1:]) > MOST_PIXELS:
        shorter = f"give up to {MOST_PIXELS} pixels a side (vit_steps.load_image does)"
        raise ValueError(f"image is {shape[1]}×{shape[2]}; {shorter}")
    low, high = image.min().item(), image.max().item()
    if not (low >= 0 and high <= 1):  # not a number is neither
        scale = "give it from 0 to 1 (vit_steps.denormalize takes back a normalisation)"
        raise ValueError(f"image goes from {low:.2f} to {high:.2f}; {scale}")
    return image.detach().cpu().float()


def _patch_sides(sizes: Sequence[int]) -> list[int]:
    """Give a few different sizes as a list of Python's numbers; an error where they are none."""
    if isinstance(sizes, str) or not isinstance(sizes, Sequence):
        raise TypeError(f"sizes is {sizes!r}; give a list of whole numbers")
    if not 1 <= len(sizes) <= 6 or len(set(sizes)) < len(sizes):
        raise ValueError(f"sizes is {list(sizes)}; give 1 to 6 numbers, each once")
    for number, size in enumerate(sizes):
        check_sizes(**{f"sizes[{number}]": size})
    return [int(size) for size in sizes]


def _checked_table(weights: Tensor, count: int) -> Tensor:
    """Give the table as 32-bit floats on the CPU; a TypeError or ValueError where it is none."""
    check_axes("weights", weights, "N N")
    check_weights(weights)
    if len(weights) not in (count, count + 1):
        fits = f"an image of {count} patches has {count}, or {count + 1} with cls"
        raise ValueError(f"weights has {len(weights)} tokens; {fits}")
    if len(weights) > MOST_TOKENS:
        raise ValueError(f"{len(weights)} tokens; a lesson's picture shows up to {MOST_TOKENS}")
    table = weights.detach().cpu().float()
    if not ((table >= 0).all() and (table.sum(dim=-1) - 1).abs().max() < 0.01):
        after = "give them after the softmax, a row for each query"
        raise ValueError(f"the rows of weights are not shares that sum to 1; {after}")
    return table


def _new_figure(height: float) -> Any:
    """Make a figure that, unlike pyplot's, no notebook shows by itself."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDE / 100, height), facecolor="white")
    figure.set_layout_engine("constrained", rect=(0.01, 0.01, 0.98, 0.96))
    return figure


def _png(figure: Any) -> bytes:
    """Write a figure in 128 colours, which takes a quarter of the bytes."""
    full, small = io.BytesIO(figures.as_png(figure, dpi=100)), io.BytesIO()
    Image.open(full).convert("RGB").quantize(128, Image.Quantize.FASTOCTREE).save(small, "png")
    return small.getvalue()


def _photo(image: Tensor) -> str:
    """Write a picture's address, its bytes in it: exact where it is small, else a fine JPEG."""
    pixels = (image * 255).round().to(torch.uint8).permute(1, 2, 0).numpy()
    picture = Image.fromarray(pixels if len(image) == 3 else pixels[:, :, 0])
    out = io.BytesIO()
    kind = "png" if prod(picture.size) <= 64 * 64 else "jpeg"
    picture.save(out, kind, quality=80)  # of the JPEG
    return _data_address(out.getvalue(), kind)


def _data_address(content: bytes, kind: str) -> str:
    """Write a picture as an address. Slashes of base64 would read like a machine's paths."""
    data = in_base64(content).replace("+", "%2B").replace("/", "%2F")
    return f"data:image/{kind};base64,{data}"


def _in_letters(content: bytes) -> str:
    """Write bytes in base64 without slashes."""
    return base64.urlsafe_b64encode(content).decode("ascii")


def _floats(values: Tensor) -> bytes:
    """Give numbers, row by row, as little-endian 32-bit floats."""
    return values.numpy().astype("<f4").tobytes()


def _packed(table: Tensor) -> dict[str, Any]:
    """Pack a table of weights by zlib: whole numbers, each a share of its row's largest."""
    bits = 16 if len(table) <= MANY else 8
    most = table.amax(dim=-1)  # (N,)
    shares = (table / most[:, None] * (2**bits - 1)).round()
    steps = shares.numpy().astype(f"<u{bits // 8}").tobytes()
    weights, tops = (_in_letters(zlib.compress(part, 9)) for part in (steps, _floats(most)))
    return {"bits": bits, "weights": weights, "most": tops}
