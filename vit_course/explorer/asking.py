"""A canvas below a cell: what is drawn on it goes to a model in Python, the learner's own class."""

import os
import sys
from collections.abc import Callable, Sequence
from copy import deepcopy
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from vit_steps.files import write_whole
from vit_steps.inputs import as_pair
from vit_steps.training import Weights

from ..plots import drawing_and_answer, figures
from .packing import config_of, in_base64, text, whose

PAPER = -1.0  # of a model that learned from ink of 1


class Canvas:
    """A canvas as a cell's output: a still picture, which a live one covers where there is one."""

    def __init__(self, still: str, live: Any):
        self._still, self._live = still, live

    def __repr__(self) -> str:
        return "a canvas that asks this model: run the cell, and draw on it"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        if self._live is not None and self._live.beside:
            from IPython.display import display

            display(self._live)
        return {"image/png": self._still, "text/plain": repr(self)}


def canvas(
    model: nn.Module | Weights, start: Tensor | None = None, keep: str | Path | None = None
) -> Canvas:
    """Show a canvas below a notebook's cell, on which a model in Python answers while one draws.

    Each stroke's pixels go to the notebook's Python, which asks a copy of the model and sends back
    a share for each class and what cls attends to in the last block. It needs anywidget; without
    it, the still picture alone is shown.

    Args:
        model: a ViT for square pictures of one channel, ink 1 on paper -1, which gives logits, and
            with `return_attention=True` also its attention weights; or what `load_weights` gives.
        start: (1, H, W), the drawing to begin with; without it, the one in `keep`, or none.
        keep: a PNG file for the last drawing, dark on white; without it, none is kept.

    Raises:
        TypeError: no ViT with a config.
        ValueError: a model for pictures of another kind, a drawing of another size.
    """
    classes = model.classes if isinstance(model, Weights) else ()
    network = deepcopy(model.model if isinstance(model, Weights) else model).eval()
    config = config_of(network)
    height, width = as_pair(config.image_size)
    if config.in_channels != 1 or height != width:
        raise ValueError(
            f"the model takes pictures of {config.in_channels} channels and {height}×{width} "
            "pixels; the canvas draws square ones of one channel"
        )
    if start is None:
        start = kept(keep, height) if keep and Path(keep).exists() else None
    drawing = torch.full((1, height, height), PAPER) if start is None else start.detach().cpu()
    if (shape := tuple(drawing.shape)) != (1, height, height):
        raise ValueError(f"start is {shape}; this model takes (1, {height}, {width})")
    answer = asks(network)
    live = _widget()
    still = in_base64(_picture(drawing, answer(drawing)))
    if live is None:
        print("Without anywidget the canvas is a picture: python -m pip install anywidget")  # noqa: T201
        return Canvas(still, None)
    names = list(classes) or [str(i) for i in range(config.num_classes)]
    sizes = dict(side=height, patch_size=config.patch_size, classes=names, whose=whose(network))
    # Colab and VS Code draw outputs in frames of their own, where the still picture is not found.
    beside = "google.colab" in sys.modules or "VSCODE_PID" in os.environ
    widget = live(still=still, beside=beside, start=drawing.flatten().tolist(), sizes=sizes)
    widget.on_msg(_reply(answer, height, Path(keep) if keep else None))
    return Canvas(still, widget)


def asks(model: nn.Module) -> Callable[[Tensor], dict[str, Any]]:
    """Give a function that asks the model about a drawing (1, H, W).

    Returns:
        What gives "shares", one for each class; "attends", of cls to each patch, the last block's
        mean over the heads, or None if the model gives no attention; "unsure".
    """
    device = next(model.parameters()).device

    @torch.no_grad()
    def answer(drawing: Tensor) -> dict[str, Any]:
        result = model(drawing[None].to(device), return_attention=True)
        logits, attention = result if isinstance(result, tuple) else (result, [])
        shares = logits[0].softmax(dim=-1).tolist()
        last = attention[-1] if attention else None
        attends = None if last is None else last[0, :, 0, 1:].mean(dim=0).tolist()
        return {"shares": shares, "attends": attends, "unsure": max(shares) < 0.5}

    return answer


def kept(path: str | Path, side: int) -> Tensor:
    """Open a drawing that a canvas kept: (1, side, side), from -1, paper, to 1, ink."""
    with Image.open(path) as picture:
        small = picture.convert("L").resize((side, side), Image.Resampling.LANCZOS)
    pixels = torch.tensor(list(small.tobytes()), dtype=torch.float32)
    return (1 - pixels / 127.5).view(1, side, side)


def _widget() -> Any:
    """Make the class of the live canvas; None where anywidget is not installed."""
    try:
        import anywidget
        import traitlets
    except ImportError:
        return None

    class Live(anywidget.AnyWidget):
        _esm = "\n".join(map(text, ("model.js", "drawing.js", "canvas.js")))
        _css = text("canvas.css")
        still = traitlets.Unicode().tag(sync=True)
        beside = traitlets.Bool().tag(sync=True)
        start = traitlets.List().tag(sync=True)
        sizes = traitlets.Dict().tag(sync=True)

    return Live


def _reply(answer: Callable[[Tensor], dict[str, Any]], side: int, keep: Path | None) -> Callable:
    """Give what answers a message of the live canvas; a mistake of the model's becomes a line."""

    def reply(widget: Any, message: dict[str, Any], _: Sequence[Any]) -> None:
        pixels = torch.tensor(message["ink"], dtype=torch.float32)
        drawing = (pixels / 127.5 - 1).view(1, side, side)
        if message.get("keep"):
            if keep is not None:
                write_whole(keep, _png(drawing))
                widget.send({"kept": f"kept in {keep.name}"})
            return
        try:
            widget.send({"number": message["number"], **answer(drawing)})
        except Exception as error:  # whatever the learner's class raises
            first = str(error).strip().split("\n")[0][:200]
            widget.send({"number": message["number"], "error": f"{type(error).__name__}: {first}"})

    return reply


def _png(drawing: Tensor) -> bytes:
    """Write a drawing (1, H, W) as a PNG of its own size, dark on white as on paper."""
    pixels = ((1 - drawing[0].clamp(-1, 1)) * 127.5).round().to(torch.uint8)
    file = BytesIO()
    Image.fromarray(pixels.cpu().numpy()).save(file, "PNG")
    return file.getvalue()


def _picture(drawing: Tensor, said: dict[str, Any]) -> bytes:
    """Draw the still picture: the drawing, the answer, where cls attends."""
    attends = said["attends"] and torch.tensor(said["attends"])
    figure = drawing_and_answer(drawing, torch.tensor(said["shares"]), attends)
    return figures.as_png(figure, dpi=100)
