"""What the page is given: a model's sizes and weights, and pictures, as one piece of JSON."""

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import fields
from html import escape
from importlib.resources import files
from typing import Any

import torch
from torch import Tensor, nn

from vit_steps.training.checkpoints import check_plain, weights_of
from vit_steps.vit import ViTConfig

MOST = 8_000_000  # bytes of a page
ROOMY = 2_000_000  # up to here the weights stay in 32 bits


def pack(
    model: nn.Module,
    images: Tensor | None = None,
    labels: Sequence[int] | None = None,
    classes: Sequence[str] | None = None,
) -> dict[str, Any]:
    """What the page needs of a model, and pictures to begin with.

    Args:
        model: a ViT of this package, or one with its `config` and the names of its weights, such as
            the learner's own.
        images: (k, C, H, W), from -1 to 1, of the model's size.
        labels: the class of each.
        classes: a name for each class; without them, their numbers.

    Returns:
        "config", "weights" (name: shape, kind, numbers in base64), "images", "labels", "classes".

    Raises:
        TypeError: no ViT of that kind.
        ValueError: pictures or names that do not fit the model, weights that are not finite, or
            more of them than a page holds.
    """
    config = config_of(model)
    weights = {name: tensor.detach().cpu().float() for name, tensor in weights_of(model).items()}
    for name, tensor in weights.items():
        if not tensor.isfinite().all():
            raise ValueError(f"{name} holds numbers that are not finite; nothing can be shown")
    check_plain(model, config)
    half = sum(4 * tensor.numel() * 4 / 3 for tensor in weights.values()) > ROOMY  # base64: 4 for 3
    packed = {name: numbers(tensor, half) for name, tensor in weights.items()}
    size = sum(len(entry["data"]) for entry in packed.values())
    if size > MOST:
        raise ValueError(
            f"the weights take {size / 1e6:.0f} MB of the page, and {MOST / 1e6:.0f} are the most "
            "that a browser opens gladly; show a smaller model"
        )
    height, width = (
        config.image_size if isinstance(config.image_size, tuple) else (config.image_size,) * 2
    )
    sizes = {**vars(config), "height": height, "width": width}
    del sizes["image_size"], sizes["dropout"]
    return {
        "config": sizes,
        "weights": packed,
        "images": pictures(images, config.in_channels, height, width),
        "labels": some_labels(images, labels, config.num_classes),
        "classes": names(classes, config.num_classes),
    }


def config_of(model: nn.Module) -> ViTConfig:
    """The model's ViTConfig; a learner's own configuration has fewer fields, and is one as well."""
    config = getattr(model, "config", None)
    given = {f.name: getattr(config, f.name) for f in fields(ViTConfig) if hasattr(config, f.name)}
    if not {"image_size", "patch_size", "embed_dim", "depth", "num_heads"} <= set(given):
        raise TypeError(
            f"the model is a {type(model).__name__} without a ViTConfig; the page shows a ViT of "
            "vit_steps, or your own with `self.config = config`"
        )
    return ViTConfig(**given)


def numbers(tensor: Tensor, half: bool) -> dict[str, Any]:
    """A tensor's shape and its numbers, little-endian, in base64."""
    kind = "float16" if half else "float32"
    values = tensor.numpy().astype("<f2" if half else "<f4")
    data = base64.b64encode(values.tobytes()).decode("ascii")
    return {"shape": list(tensor.shape), "kind": kind, "data": data}


def pictures(images: Tensor | None, channels: int, height: int, width: int) -> list[str]:
    """Each picture's bytes, 0 black to 255 white, in base64."""
    if images is None:
        return []
    if images.ndim != 4 or tuple(images.shape[1:]) != (channels, height, width):
        raise ValueError(
            f"images are {tuple(images.shape)}; this model takes (k, {channels}, {height}, {width})"
        )
    bytes_ = ((images.clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8)
    return [base64.b64encode(image.numpy().tobytes()).decode("ascii") for image in bytes_]


def some_labels(images: Tensor | None, labels: Sequence[int] | None, count: int) -> list[int]:
    """A label for each picture, or none at all; a ValueError otherwise."""
    found = [int(label) for label in labels] if labels is not None else []
    if found and (images is None or len(found) != len(images)):
        raise ValueError(f"{len(found)} labels; give one for each picture")
    if any(not 0 <= label < count for label in found):
        raise ValueError(f"a label is outside of 0 to {count - 1}, the model's classes")
    return found


def names(classes: Sequence[str] | None, count: int) -> list[str]:
    """A name for each class; a ValueError where there are more or fewer."""
    found = (
        [str(number) for number in range(count)] if classes is None else [str(c) for c in classes]
    )
    if len(found) != count:
        raise ValueError(f"{len(found)} class names; this model has {count} classes")
    return found


def as_json(data: dict[str, Any]) -> str:
    """JSON that can stand inside a script: no name, whatever it is, can end it."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def text(name: str) -> str:
    """A file of this room: a script, a style, the page."""
    return files("vit_course.explorer").joinpath(name).read_text(encoding="utf-8")


def allowed(source: str) -> str:
    """How a page's policy names a script or style that stands in it: by its hash."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def quoted(page: str) -> str:
    """A page as a frame's srcdoc; in ASCII, so that no page around it can misread a letter."""
    return escape(page).encode("ascii", "xmlcharrefreplace").decode()
