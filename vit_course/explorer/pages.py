"""The page itself: written to a file, or shown below a cell."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vit_steps.files import write_whole
from vit_steps.images import Preprocess
from vit_steps.inputs import check_sizes
from vit_steps.patches import grid_size
from vit_steps.training import Weights
from vit_steps.training.dataset import ImageDataset
from vit_steps.training.loop import evaluating

from .packing import MOST, as_json, config_of, pack, policy, quoted, text, whose

# In the order in which they need each other. The first two also run in the page's Worker.
SCRIPTS = [
    *("model", "measures", "drawing", "state", "picture", "answer"),
    *("road", "looks", "parts", "tour", "page"),
]
EXAMPLES = 1_000_000  # bytes of pictures; of large ones there are fewer


def page(
    model: nn.Module | Weights,
    pictures: ImageDataset | None = None,
    classes: Sequence[str] | None = None,
    count: int = 200,
    about: str = "",
    unseen: bool = False,
) -> str:
    """Make the page as HTML: a hundred kilobytes, the weights, and pictures.

    Its own policy lets it run these scripts and nothing else, and fetch nothing. With classes in it
    that are the learner's own it is headed "Your ViT", and says which.

    Args:
        model: a ViT of this package, or the learner's own with `self.config = config`; or what
            `load_weights` gives, which knows its classes and what was measured of it, too.
        pictures: a data set of `vit_steps.training.data`, of pixels from -1 to 1; without it the
            page begins with an empty picture, and has no tour.
        classes: a name for each class; without them the weights' or the data set's, or numbers.
        count: at most so many of the pictures go into the page, taken evenly from all, and not more
            than 1 MB of them. One whose answer hangs on a single patch comes first.
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
    if isinstance(model, Weights):
        network, preprocess, measured = model.model, model.preprocess, model.measured
        classes = classes or model.classes
    else:
        network, preprocess, measured = model, None, {}
    images = labels = None
    if pictures is not None:
        preprocess, classes = preprocess or pictures.preprocess, classes or pictures.classes
        count = min(count, max(1, EXAMPLES // pictures.pixels[0].numel()))
        numbers = range(0, len(pictures), max(1, len(pictures) // count))
        images, labels = pictures[list(numbers)[:count]]
        if images.abs().max() > 1 + 1e-5:
            raise ValueError(
                f"the pictures run from {images.min():.1f} to {images.max():.1f}; the page shows "
                "those of models that want -1 to 1"
            )
    if preprocess is not None and (set(preprocess.mean) | set(preprocess.std)) != {0.5}:
        raise ValueError(f"the model wants {preprocess}; the page shows models that want -1 to 1")
    data = pack(network, images, labels, classes or None)
    data |= _claims(measured) | _inputs(preprocess, data["config"])
    yours = whose(network)
    data |= {"title": "Your ViT" if yours else "A ViT, live"}
    data |= {"about": f"{about} {yours}".strip(), "unseen": unseen and pictures is not None}
    if images is not None and labels is not None:
        order = striking_first(network, images, labels, -1.0 if data["ink"] else None)
        for key in ("images", "labels"):
            data[key] = [data[key][i] for i in order]
    html = _html(data)
    if len(html) > MOST:
        raise ValueError(
            f"the page takes {len(html) / 1e6:.1f} MB, and {MOST / 1e6:.0f} are the most that a "
            f"browser opens gladly; give fewer pictures than {count}, or a smaller model"
        )
    return html


def _html(data: dict[str, Any]) -> str:
    """Put the style, the scripts, the data and a policy that allows nothing else into the page."""
    html, style = text("page.html"), text("page.css")
    scripts = {name: text(f"{name}.js") for name in SCRIPTS}
    tags = (f'<script id="script-{name}">{script}</script>' for name, script in scripts.items())
    parts = {
        "policy": policy(style, scripts.values(), "worker-src blob:", "img-src data: blob:"),
        "style": style,
        "scripts": "\n".join(tags),
        "given": as_json(data),
    }
    for name, part in parts.items():
        html = html.replace(f"{{{name}}}", part, 1)
    return html


def _claims(measured: dict[str, Any]) -> dict[str, Any]:
    """Say what was measured of the weights: a sentence, and how often shares were right."""
    result = measured.get("result")
    if not result:
        return {"measured": "", "worth": []}
    images = sum(row["images"] for row in result["classes"])
    sentence = f"Of {images:,} held-out pictures it gets {result['accuracy']:.1%} right."
    return {"measured": sentence, "worth": result.get("by_share", [])}


def _inputs(preprocess: Preprocess | None, config: dict[str, Any]) -> dict[str, bool]:
    """Say what the page takes: ink drawn on paper; photos, if it can prepare them as is wanted."""
    if preprocess is None:
        return {"ink": config["in_channels"] == 1, "photos": config["in_channels"] == 3}
    side, colour = preprocess.shorter_side, len(preprocess.mean) == 3
    cut = side is not None and side <= min(preprocess.size)
    photos = cut and colour and preprocess.interpolation == "bicubic"
    return {"ink": preprocess.ink, "photos": photos}


def striking_first(
    model: nn.Module, images: Tensor, labels: Tensor, paper: float | None
) -> list[int]:
    """Order the pictures' numbers: first the one whose right answer hangs most on a single patch.

    Covering that patch, with `paper` or the picture's mean colour, makes the answer another. Looked
    for in the first 24, so that it is quick.
    """
    size, best, first = config_of(model).patch_size, 0.0, 0
    images = images.to(next(model.parameters()))
    rows, columns = grid_size((images.shape[2], images.shape[3]), size)
    hidden = torch.eye(rows * columns, dtype=torch.bool, device=images.device)
    hidden = hidden.view(-1, 1, rows, columns)  # each patch alone
    pixels = hidden.repeat_interleave(size, 2).repeat_interleave(size, 3)
    with torch.no_grad(), evaluating(model):
        for number, (image, label) in enumerate(zip(images[:24], labels[:24], strict=True)):
            fill = image.mean(dim=(1, 2), keepdim=True) if paper is None else torch.tensor(paper)
            covered = torch.where(pixels, fill, image)
            shares = model(torch.cat([image[None], covered])).softmax(dim=-1)
            falls = (shares[0, label] - shares[1:, label]) * (shares[1:].argmax(dim=1) != label)
            if shares[0].argmax() == label and falls.max() > best:
                best, first = float(falls.max()), number
    return [first, *(i for i in range(len(images)) if i != first)]


def write(
    path: str | Path,
    model: nn.Module | Weights,
    pictures: ImageDataset | None = None,
    classes: Sequence[str] | None = None,
    count: int = 200,
    about: str = "",
    unseen: bool = False,
) -> Path:
    """Write the page to a file, whole or not at all; all but the path is as for `page`."""
    write_whole(Path(path), page(model, pictures, classes, count, about, unseen).encode())
    return Path(path)


class Shown:
    """A page as a cell's output, in a frame of its own."""

    def __init__(self, html: str, height: int):
        self.html, self.height = html, height

    def __repr__(self) -> str:
        return "a live page of this model: run the cell, and it stands here"

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{quoted(self.html)}" sandbox="allow-scripts allow-downloads" '
            f'width="100%" height="{self.height}" title="A ViT, live" '
            'style="display: block; border: 0"></iframe>'
        )


def show(
    model: nn.Module | Weights,
    pictures: ImageDataset | None = None,
    classes: Sequence[str] | None = None,
    count: int = 200,
    about: str = "",
    unseen: bool = False,
    height: int = 900,
) -> Shown:
    """Show the page below a notebook's cell; all but the height, in pixels, is as for `page`.

    The frame has no access to the notebook.
    """
    return Shown(page(model, pictures, classes, count, about, unseen), height)
