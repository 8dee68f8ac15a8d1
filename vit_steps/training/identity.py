"""Lesson 07: what a run is known by, so that one is never taken for another."""

import zlib
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from .dataset import FileDataset, Pictures


def fingerprint(data: Pictures) -> str:
    """The number of images and a sum over all their bytes, so that other data are noticed.

    Of pictures that are read as they are needed, over names, sizes and labels of the files.
    """
    total = crc(data.labels, zlib.crc32(repr(data.classes).encode("utf-8", "surrogatepass")))
    if isinstance(data, FileDataset):
        for file in data.files:
            about = f"{file.parent.name}/{file.name} {file.stat().st_size}"
            total = zlib.crc32(about.encode("utf-8", "surrogatepass"), total)
    else:
        total = crc(data.pixels, zlib.crc32(str(data.white).encode(), total))
    return f"{len(data)} images, sum {total:08x}"


def fingerprint_model(model: nn.Module) -> str:
    """The number of its tensors, how many are trained, and a sum over all their names and shapes.

    What `torch.compile` puts into the names does not count.
    """
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    trained = [name for name, p in model.named_parameters() if p.requires_grad]
    text = f"{shapes} {trained}".replace("_orig_mod.", "")
    about = f"{len(shapes)} tensors, {len(trained)} of them trained"
    return f"{about}, sum {zlib.crc32(text.encode()):08x}"


def crc(tensor: Tensor, start: int = 0) -> int:
    """A sum over a tensor's bytes, its type and its shape."""
    total = zlib.crc32(f"{tensor.dtype} {tuple(tensor.shape)}".encode(), start)
    flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return zlib.crc32(flat.numpy().data, total)


def name_augmentation(augment: Any) -> str | None:
    """The qualified name of a function, or of an object's class; None for none.

    Of a `partial` what it gives to the function counts too. What a function does is not looked
    into: where you change that, give it another name or the run another folder.
    """
    if isinstance(augment, partial):
        given = [*map(repr, augment.args)]
        given += [f"{name}={value!r}" for name, value in sorted(augment.keywords.items())]
        return f"{name_augmentation(augment.func)}({', '.join(given)})"
    if augment is None:
        return None
    return getattr(augment, "__qualname__", type(augment).__qualname__)
