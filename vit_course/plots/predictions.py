"""The figure of `python -m vit_steps.predict --show`: pictures, where the model looked, shares."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill, shorten
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from vit_steps.files import write_whole
from vit_steps.images import LUMA, Preprocess, normalize
from vit_steps.maps import cls_map, rollout

from .colours import PATCH, WEIGHTS
from .figures import as_png

if TYPE_CHECKING:
    from vit_steps.predict import Prediction
    from vit_steps.training import Weights

BARS = 10  # classes at most, those with the largest shares


def draw_predictions(
    path: str | Path, weights: "Weights", predictions: "Sequence[Prediction]"
) -> None:
    """Draw pictures as the model got them, where it looked, and the classes' shares, as a PNG.

    Where it looked is its attention, followed from what the head reads down to the patches
    (`maps.rollout`): in each picture from blue, the least, to yellow, the most.

    Args:
        path: where to write it.
        weights: whose predictions these are; its model is in evaluation mode.
        predictions: of pictures in files, at least one; a row of the figure each.
    """
    write_whole(path, as_png(predictions_figure(weights, predictions), dpi=120))


def predictions_figure(weights: "Weights", predictions: "Sequence[Prediction]") -> Any:
    """Give the figure that `draw_predictions` writes."""
    from matplotlib.figure import Figure

    preprocess = weights.preprocess or Preprocess()
    numbers = {name: str(i) for i, name in enumerate(weights.classes)}
    figure = Figure(figsize=(10, 2.9 * len(predictions)), layout="constrained")
    rows = figure.subplots(len(predictions), 3, squeeze=False)
    for (left, middle, right), prediction in zip(rows, predictions, strict=True):
        pixels = preprocess.pixels(prediction.picture)  # (C, H, W), from 0 to 1
        picture = pixels.permute(1, 2, 0).expand(-1, -1, 3)
        heat = _looks(weights.model, normalize(pixels, preprocess.mean, preprocess.std))
        grey = (picture @ torch.tensor(LUMA))[..., None]
        left.imshow(picture.numpy())
        left.set_title(shorten(_printable(Path(prediction.picture).name, "a picture"), 40))
        middle.imshow((0.65 * heat + 0.35 * grey).numpy())
        for axes in (left, middle):
            axes.set(xticks=(), yticks=())
        names, shares = zip(*prediction.shares[:BARS], strict=True)
        names = [_printable(name, numbers.get(name, "")) for name in names]
        bars = right.barh(range(len(names)), shares, color=PATCH)
        right.bar_label(bars, [f"{share:.0%}" for share in shares], padding=3)
        right.set(xlim=(0, 1.15), xticks=(), yticks=range(len(names)), yticklabels=names)
        right.invert_yaxis()
        right.spines[:].set_visible(False)
        right.set_title(fill(prediction.doubt, 40), fontsize="medium")
    captions = ("what the model got", "where it looked: blue least, yellow most", "shares")
    for axes, caption in zip(rows[-1], captions, strict=True):
        axes.set_xlabel(caption)
    return figure


def _looks(model: Any, image: Tensor) -> Tensor:
    """Colour each pixel (H, W, 3) of an image (C, H, W) by how much its patch is looked at."""
    from matplotlib import colormaps

    with torch.no_grad():
        images = image[None].to(next(model.parameters()).device)
        flow = rollout(model(images, return_attention=True)[1]).cpu()  # (1, N, N)
    grid, size = model.patch_embed.grid, model.config.patch_size
    if model.config.pool == "mean":
        looks = flow[0, 1:, 1:].mean(dim=0).unflatten(0, grid)
    else:
        looks = cls_map(flow, grid)[0]
    looks = (looks - looks.min()) / (looks.max() - looks.min()).clamp(min=1e-12)
    colours = torch.tensor(colormaps[WEIGHTS](looks.numpy()))[..., :3]  # (rows, cols, 3)
    return colours.repeat_interleave(size, 0).repeat_interleave(size, 1)


def _printable(name: str, instead: str) -> str:
    """Give a name that matplotlib does not take for mathematics; `instead` if its font lacks it."""
    from matplotlib.font_manager import findfont, get_font

    font = get_font(findfont("DejaVu Sans"))  # matplotlib's own
    return name.replace("$", r"\$") if all(map(font.get_char_index, map(ord, name))) else instead
