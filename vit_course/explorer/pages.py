"""The page itself: written to a file, or shown below a cell."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from torch import nn

from vit_steps.files import write_whole
from vit_steps.inputs import check_sizes
from vit_steps.training.dataset import ImageDataset

from .packing import MOST, allowed, as_json, pack, quoted, text

# In the order in which they need each other.
SCRIPTS = ("model", "drawing", "state", "picture", "road", "looks", "parts", "tour", "page")


def page(
    model: nn.Module,
    pictures: ImageDataset | None = None,
    classes: Sequence[str] | None = None,
    count: int = 24,
    about: str = "",
    unseen: bool = False,
) -> str:
    """The page as HTML: a hundred kilobytes, and the weights.

    Its own policy lets it run these scripts and nothing else, and fetch nothing.

    Args:
        model: a ViT of this package, or the learner's own with `self.config = config`.
        pictures: a data set of `vit_steps.training.data`, of pixels from -1 to 1; without it the
            page begins with an empty picture, and has no tour.
        classes: a name for each class; without them the data set's, or their numbers.
        count: so many of the pictures go into the page, taken evenly from all.
        about: a sentence on what the model does, for the page's head; without it the page names the
            classes.
        unseen: whether it is known that the model was not trained on these pictures; it is said.

    Raises:
        TypeError: no ViT of that kind.
        ValueError: a model that computes something else than a ViT with its weights (the page would
            show another), pictures that are not from -1 to 1, pictures or names that do not fit
            the model, weights that are not finite, or more of them than the 8 MB of a page hold.
    """
    check_sizes(count=count)
    images = labels = None
    if pictures is not None:
        chosen = range(0, len(pictures), max(1, len(pictures) // count))
        images, labels = pictures[list(chosen)[:count]]
        classes = classes or pictures.classes
        if images.abs().max() > 1 + 1e-5:
            said = f"the pictures run from {images.min():.1f} to {images.max():.1f}"
            raise ValueError(f"{said}; the page shows those of models that want -1 to 1")
    said = {"about": about, "unseen": unseen and pictures is not None}
    given = as_json(pack(model, images, labels, classes) | said)
    style = text("page.css")
    scripts = [text(f"{name}.js") for name in SCRIPTS]
    policy = "; ".join((
        "default-src 'none'",
        f"script-src {' '.join(map(allowed, scripts))}",
        f"style-src {allowed(style)}",
        "img-src data: blob:",
        "base-uri 'none'; form-action 'none'",
    ))  # fmt: skip
    html = text("page.html")
    parts = {
        "policy": escape(policy, quote=True).replace("&#x27;", "'"),
        "style": style,
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
        "given": given,
    }
    for name, part in parts.items():
        html = html.replace(f"{{{name}}}", part, 1)
    if len(html) > MOST:
        raise ValueError(
            f"the page takes {len(html) / 1e6:.1f} MB, and {MOST / 1e6:.0f} are the most that a "
            f"browser opens gladly; give fewer pictures than {count}, or a smaller model"
        )
    return html


def write(
    path: str | Path,
    model: nn.Module,
    pictures: ImageDataset | None = None,
    classes: Sequence[str] | None = None,
    count: int = 24,
    about: str = "",
    unseen: bool = False,
) -> Path:
    """Write the page to a file, whole or not at all; all but the path is as for `page`."""
    path = Path(path)
    write_whole(path, page(model, pictures, classes, count, about, unseen).encode())
    return path


class Shown:
    """A page as a cell's output, in a frame of its own."""

    def __init__(self, html: str, height: int):
        self.html, self.height = html, height

    def __repr__(self) -> str:
        return "a live page of this model: run the cell, and it stands here"

    def _repr_html_(self) -> str:
        frame = f'sandbox="allow-scripts" width="100%" height="{self.height}" title="A ViT, live" '
        frame += 'style="display: block; border: 0"'
        return f'<iframe srcdoc="{quoted(self.html)}" {frame}></iframe>'


def show(
    model: nn.Module,
    pictures: ImageDataset | None = None,
    classes: Sequence[str] | None = None,
    count: int = 24,
    about: str = "",
    height: int = 900,
) -> Shown:
    """Show the page below a notebook's cell; all but the height, in pixels, is as for `page`.

    The frame has no access to the notebook.
    """
    return Shown(page(model, pictures, classes, count, about), height)
