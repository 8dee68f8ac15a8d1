"""The data of a page: a model's sizes and weights, and pictures, as one piece of JSON."""

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from html import escape
from importlib.resources import files
from typing import Any

import torch
from torch import Tensor, nn

from vit_steps.inputs import as_pair
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
    """Gather what the page needs of a model, and pictures to begin with.

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
    packed = {name: _numbers(tensor, half) for name, tensor in weights.items()}
    size = sum(len(entry["data"]) for entry in packed.values())
    if size > MOST:
        raise ValueError(
            f"the weights take {size / 1e6:.0f} MB of the page, and {MOST / 1e6:.0f} are the most "
            "that a browser opens gladly; show a smaller model"
        )
    height, width = as_pair(config.image_size)
    sizes = {**vars(config), "height": height, "width": width}
    del sizes["image_size"], sizes["dropout"]
    count = config.num_classes
    labels = [] if labels is None else [int(label) for label in labels]
    if labels and (images is None or len(labels) != len(images)):
        raise ValueError(f"{len(labels)} labels; give one for each picture")
    if any(not 0 <= label < count for label in labels):
        raise ValueError(f"a label is outside of 0 to {count - 1}, the model's classes")
    names = [str(name) for name in (range(count) if classes is None else classes)]
    if len(names) != count:
        raise ValueError(f"{len(names)} class names; this model has {count} classes")
    return {
        "config": sizes,
        "weights": packed,
        "images": pictures(images, config.in_channels, height, width),
        "labels": labels,
        "classes": names,
    }


def config_of(model: nn.Module) -> ViTConfig:
    """Give the model's ViTConfig; a learner's own with fewer fields is one as well."""
    config = getattr(model, "config", None)
    sizes = {f.name: getattr(config, f.name) for f in fields(ViTConfig) if hasattr(config, f.name)}
    if not {"image_size", "patch_size", "embed_dim", "depth", "num_heads"} <= set(sizes):
        raise TypeError(
            f"the model is a {type(model).__name__} without a ViTConfig; the page shows a ViT of "
            "vit_steps, or your own with `self.config = config`"
        )
    return ViTConfig(**sizes)


def whose(model: nn.Module) -> str:
    """Say which classes of a model are the learner's and which the course's; "" if none is."""
    names: dict[bool, dict[str, None]] = {True: {}, False: {}}
    for part in model.modules():
        home = type(part).__module__.partition(".")[0]
        if home != "torch":
            names[home != "vit_steps"][type(part).__name__] = None
    yours, course = map(", ".join, names.values())
    if not yours:
        return ""
    return f"Written by you: {yours}." + (f" The course's: {course}." if course else "")


def _numbers(tensor: Tensor, half: bool) -> dict[str, Any]:
    """Pack a tensor's shape and its numbers, little-endian, in base64."""
    kind = "float16" if half else "float32"
    values = tensor.numpy().astype("<f2" if half else "<f4")
    return {"shape": list(tensor.shape), "kind": kind, "data": in_base64(values.tobytes())}


def pictures(images: Tensor | None, channels: int, height: int, width: int) -> list[str]:
    """Give each picture's bytes, 0 black to 255 white, in base64."""
    if images is None:
        return []
    shape = tuple(images.shape)
    if len(shape) != 4 or shape[1:] != (channels, height, width):
        raise ValueError(f"images are {shape}; this model takes (k, {channels}, {height}, {width})")
    bytes_ = ((images.clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8)
    return [in_base64(image.numpy().tobytes()) for image in bytes_]


def in_base64(content: bytes) -> str:
    """Write bytes in base64."""
    return base64.b64encode(content).decode("ascii")


def as_json(data: dict[str, Any]) -> str:
    """Write JSON that can stand inside a script: no name, whatever it is, can end it."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def text(name: str) -> str:
    """Read a file of this folder: a script, a style, the page."""
    return files("vit_course.explorer").joinpath(name).read_text(encoding="utf-8")


def policy(style: str, scripts: Iterable[str], *more: str) -> str:
    """Write the policy of a page that runs these scripts, has this style, and may do `more`."""

    def name(source: str) -> str:
        return f"'sha256-{in_base64(hashlib.sha256(source.encode()).digest())}'"

    names = " ".join(map(name, scripts))
    rules = ("default-src 'none'", f"script-src {names}", f"style-src {name(style)}")
    return "; ".join((*rules, *more, "base-uri 'none'", "form-action 'none'"))


def quoted(page: str) -> str:
    """Write a page as a frame's srcdoc; in ASCII: no page around it can misread a letter."""
    return escape(page).encode("ascii", "xmlcharrefreplace").decode()
