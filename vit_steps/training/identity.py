"""Lesson 07: what a run is known by, so that one is never taken for another."""

import zlib
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .dataset import ImageDataset


def fingerprint(data: Any) -> str:
    """The number of images and a sum over all their bytes, so that other data are noticed.

    Of other data sets and of DataLoaders, only the number and the class's name.
    """
    if not isinstance(data, ImageDataset):
        return f"{len(data)} items of a {type(data).__name__}"
    about = f"{data.classes} {data.preprocess} {data.white}"
    total = crc(data.labels, zlib.crc32(about.encode("utf-8", "surrogatepass")))
    return f"{len(data)} images, sum {crc(data.pixels, total):08x}"


def crc(tensor: Tensor, start: int = 0) -> int:
    """A sum over a tensor's bytes, its type and its shape."""
    total = zlib.crc32(f"{tensor.dtype} {tuple(tensor.shape)}".encode(), start)
    flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return zlib.crc32(flat.numpy().data, total)


def name_of(given: Any) -> str | None:
    """The name of a function, of a `partial` with what it gives; or of an object's class.

    What a function does is not looked into: where you change that, give it another name or the run
    another folder.
    """
    if isinstance(given, partial):
        values = [*map(repr, given.args)]
        values += [f"{name}={value!r}" for name, value in sorted(given.keywords.items())]
        return f"{name_of(given.func)}({', '.join(values)})"
    if given is None:
        return None
    return getattr(given, "__qualname__", type(given).__qualname__)
