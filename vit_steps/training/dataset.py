"""Lesson 07: labelled pictures, held in memory or read as they are needed."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from .. import inputs
from ..images import MEAN, STD, open_rgb

Index = slice | Sequence[int] | Tensor  # of a batch


@dataclass(frozen=True, eq=False)
class ImageDataset(Dataset):
    """Pictures with their labels, held in memory. It checks itself.

    `data[i]` is an image (C, H, W), normalised, and its label; `data[a:b]`, or a list or a tensor
    of numbers, a batch: images (B, C, H, W) and labels (B,).

    Args:
        pixels: (n, C, H, W), bytes as a file holds them, a quarter of the memory; or floats, which
            are taken as normalised already.
        labels: (n,), int64, each the number of a class.
        classes: the name of each class.
        places: (n, 2), int64, or None: row and column of each digit's top-left corner, in pixels,
            where that is known.
        white: the byte that stands for 1.0.

    Raises:
        TypeError: a value of the wrong kind.
        ValueError: no images, or pixels, labels and classes that do not fit together.
    """

    pixels: Tensor
    labels: Tensor
    classes: tuple[str, ...]
    places: Tensor | None = None
    white: int = 255

    def __post_init__(self):
        inputs.check_images(self.pixels)
        if self.pixels.dtype != torch.uint8 and not self.pixels.is_floating_point():
            raise TypeError(f"pixels holds {self.pixels.dtype}; give bytes (uint8) or floats")
        if self.pixels.dtype == torch.uint8:
            inputs.check_sizes(white=self.white)
            if self.white < 255 and self.pixels.max() > self.white:
                raise ValueError(f"pixels go up to {self.pixels.max()}, but white is {self.white}")
        check_classes(self.classes)
        inputs.check_labels(self.labels, len(self), len(self.classes))
        if self.places is not None:
            inputs.check_int64("places", self.places, len(self), 2)

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, index: Any) -> tuple[Tensor, Any]:
        pixels, labels, _ = self.take(index)
        return as_floats(pixels, self.white), int(labels) if inputs.is_whole(index) else labels

    def take(self, index: Any) -> tuple[Tensor, Tensor, list[str]]:
        """The pixels as they are held, the labels, and what could not be read: nothing here."""
        return self.pixels[index], self.labels[index], []

    def part(self, index: Index) -> "ImageDataset":
        """The data set of these pictures alone."""
        places = None if self.places is None else self.places[index]
        return replace(self, pixels=self.pixels[index], labels=self.labels[index], places=places)

    @property
    def shape(self) -> tuple[int, ...]:
        """(C, H, W) of each picture."""
        return tuple(self.pixels.shape[1:])

    @property
    def images(self) -> Tensor:
        """All of them, normalised: (n, C, H, W), floats, made anew where bytes are held."""
        return as_floats(self.pixels, self.white)


@dataclass(frozen=True, eq=False)
class FileDataset(Dataset):
    """Pictures with their labels, each read from its file whenever it is asked for.

    The indices and what they give are those of `ImageDataset`. A file that cannot be read is left
    out of its batch, and named in one warning; asked for alone, it raises.

    Args:
        files: of the pictures.
        labels: (n,), int64, each the number of a class.
        classes: the name of each class.
        size: to crop and resize to, in pixels.
        workers: how many processes read ahead in `vit_steps.training.batches`.

    Raises:
        TypeError: a value of the wrong kind.
        ValueError: no files, or files, labels and classes that do not fit together.
    """

    files: tuple[Path, ...]
    labels: Tensor
    classes: tuple[str, ...]
    size: int | tuple[int, int] = 224
    workers: int = 0
    broken: set[str] = field(default_factory=set, repr=False)  # named in a warning already
    white = 255

    def __post_init__(self):
        if not self.files:
            raise ValueError("files is empty; give at least one")
        inputs.as_pair(self.size, "size")
        inputs.check_sizes(0, workers=self.workers)
        check_classes(self.classes)
        inputs.check_labels(self.labels, len(self), len(self.classes))

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: Any) -> tuple[Tensor, Any]:
        if inputs.is_whole(index):
            return as_floats(self.pixels_of(index), self.white), int(self.labels[index])
        pixels, labels, broken = self.take(index)
        self.warn_of(broken)
        return as_floats(pixels, self.white), labels

    def pixels_of(self, index: int) -> Tensor:
        """A file's bytes, (3, H, W), cropped and resized; ValueError where it cannot be read."""
        picture = np.array(open_rgb(self.files[index], self.size))
        return torch.from_numpy(picture).permute(2, 0, 1)

    def take(self, index: Index) -> tuple[Tensor, Tensor, list[str]]:
        """The bytes (B, 3, H, W), the labels, and for each unreadable file what is wrong."""
        chosen = torch.arange(len(self))[index]
        pixels, labels = torch.empty(len(chosen), *self.shape, dtype=torch.uint8), []
        broken = []
        for i in chosen.tolist():
            try:
                pixels[len(labels)] = self.pixels_of(i)
            except ValueError as error:
                broken.append(str(error))
            else:
                labels.append(int(self.labels[i]))
        return pixels[: len(labels)], torch.tensor(labels, dtype=torch.int64), broken

    def warn_of(self, broken: list[str]) -> None:
        """Warn of files that cannot be read, of each once."""
        for message in broken:
            if message not in self.broken:
                self.broken.add(message)
                warnings.warn(f"{message}; skipped", stacklevel=3)

    def part(self, index: Index) -> "FileDataset":
        """The data set of these pictures alone."""
        chosen = torch.arange(len(self))[index]
        files = tuple(self.files[i] for i in chosen.tolist())
        return replace(self, files=files, labels=self.labels[chosen], broken=set())

    @property
    def shape(self) -> tuple[int, ...]:
        """(C, H, W) of each picture."""
        return 3, *inputs.as_pair(self.size, "size")


Pictures = ImageDataset | FileDataset


def as_floats(pixels: Tensor, white: int) -> Tensor:
    """Bytes from 0 to white as floats from -1 to 1 (`vit_steps.images.normalize`); floats as is."""
    if pixels.is_floating_point():
        return pixels
    return pixels.float().div_(white).sub_(MEAN).div_(STD)


def check_classes(classes: Any) -> None:
    """Classes must be a tuple of names; TypeError for anything else."""
    if not isinstance(classes, tuple) or not all(isinstance(name, str) for name in classes):
        raise TypeError(f"classes is {classes!r}; give a tuple of names")


def split(data: Pictures, fraction: float, seed: int) -> tuple[Any, Any]:
    """Hold out the same share of each class, at least one picture, and leave at least one.

    The draw is our own, not scikit-learn's: the stored weights were trained on what it gives.

    Args:
        data: what to split.
        fraction: the share to hold out, above 0 and below 1.
        seed: the same seed draws the same pictures.

    Returns:
        The train part and the held-out part, each in the order of the data, and of its kind.

    Raises:
        TypeError: the fraction is not a number.
        ValueError: a fraction outside (0, 1), or a class of fewer than 2 pictures, named.
    """
    inputs.check_fraction(fraction=fraction)
    if fraction == 0:
        raise ValueError("fraction is 0: nothing would be held out; give a share such as 0.2")
    check_enough(data, 2, "one to train on and one to hold out")
    generator = torch.Generator().manual_seed(seed)
    labels = data.labels.cpu()
    held = torch.zeros(len(labels), dtype=torch.bool)
    for label in range(len(data.classes)):
        members = (labels == label).nonzero()[:, 0]
        n = len(members)
        count = min(max(round(n * fraction), 1), n - 1)
        held[members[torch.randperm(n, generator=generator)[:count]]] = True
    return data.part(~held), data.part(held)


def check_enough(data: Pictures, least: int, why: str) -> None:
    """Each class must have so many pictures; ValueError names one that has fewer."""
    counts = data.labels.bincount(minlength=len(data.classes)).tolist()
    for name, n in zip(data.classes, counts, strict=True):
        if n < least:
            pictures = "picture" if n == 1 else "pictures"
            raise ValueError(f"class {name!r} has {n} {pictures}; give it at least {least}, {why}")
