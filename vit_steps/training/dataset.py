"""Lesson 07: labelled pictures, and how some of them are held out."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from .. import inputs
from ..images import MEAN, STD, Preprocess, per_channel


@dataclass(frozen=True, eq=False)
class ImageDataset(Dataset):
    """Pictures with their labels. It checks itself.

    `data[i]` is an image (C, H, W), normalised, and its label; `data[a:b]`, or a list or a tensor
    of numbers, a batch: images (B, C, H, W) and labels (B,).

    Args:
        pixels: (n, C, H, W), bytes, in memory or mapped from a file; or floats, which are taken as
            normalised already.
        labels: (n,), int64, each the number of a class.
        classes: the name of each class.
        places: (n, 2), int64: row and column of each digit's top-left corner in pixels, if known.
        white: the byte that stands for 1.0.
        preprocess: how such an image is made from any picture, and what normalises the bytes;
            without it they become floats from -1 to 1.

    TypeError for a value of the wrong kind, ValueError for no images, or for pixels, labels and
    classes that do not fit together.
    """

    pixels: Tensor
    labels: Tensor
    classes: tuple[str, ...]
    places: Tensor | None = None
    white: int = 255
    preprocess: Preprocess | None = None

    def __post_init__(self):
        inputs.check_images(self.pixels)
        if self.pixels.dtype != torch.uint8 and not self.pixels.is_floating_point():
            raise TypeError(f"pixels holds {self.pixels.dtype}; give bytes (uint8) or floats")
        if self.pixels.dtype == torch.uint8:
            inputs.check_sizes(white=self.white)
            if self.white < 255 and self.pixels.max() > self.white:
                raise ValueError(f"pixels go up to {self.pixels.max()}, but white is {self.white}")
        names = self.classes
        if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
            raise TypeError(f"classes is {names!r}; give a tuple of names")
        inputs.check_labels(self.labels, len(self), len(self.classes))
        if self.places is not None:
            inputs.check_int64("places", self.places, len(self), 2)

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, index: Any) -> tuple[Tensor, Any]:
        labels = self.labels[index]
        images = as_floats(self.pixels[index], self)
        return images, int(labels) if inputs.is_whole(index) else labels

    def part(self, index: Any) -> "ImageDataset":
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
        return as_floats(self.pixels, self)


def as_floats(pixels: Tensor, data: ImageDataset) -> Tensor:
    """Bytes ([B,] C, H, W) as floats, normalised as `data` says; floats as they are."""
    if pixels.is_floating_point():
        return pixels
    how, floats = data.preprocess, pixels.float().div_(data.white)
    mean, std = (MEAN, STD) if how is None else (how.mean, how.std)
    return floats.sub_(per_channel(floats, mean)).div_(per_channel(floats, std))


def split(data: ImageDataset, fraction: float, seed: int) -> tuple[ImageDataset, ImageDataset]:
    """The train part and the held-out part, each in the order of the data.

    The same share of each class is held out, at least one picture, and at least one is left. The
    same seed draws the same pictures. ValueError for a fraction outside (0, 1), and for a class of
    fewer than 2 pictures, which it names.
    """
    held = hold_out(data.labels.cpu(), data.classes, fraction, seed)
    return data.part(~held), data.part(held)


def hold_out(labels: Tensor, classes: tuple[str, ...], fraction: float, seed: int) -> Tensor:
    """Which pictures `split` holds out, (n,); scikit-learn would hold out none of a small class."""
    inputs.check_fraction(fraction=fraction)
    if fraction == 0:
        raise ValueError("fraction is 0: nothing would be held out; give a share such as 0.2")
    check_enough(labels, classes, 2, "one to train on and one to hold out")
    generator = torch.Generator().manual_seed(seed)
    held = torch.zeros(len(labels), dtype=torch.bool)
    for label in range(len(classes)):
        members = (labels == label).nonzero()[:, 0]
        n = len(members)
        count = min(max(round(n * fraction), 1), n - 1)
        held[members[torch.randperm(n, generator=generator)[:count]]] = True
    return held


def check_enough(labels: Tensor, classes: tuple[str, ...], least: int, why: str) -> None:
    """Each class must have so many pictures; ValueError names one that has fewer."""
    for name, n in zip(classes, labels.bincount(minlength=len(classes)).tolist(), strict=True):
        if n < least:
            pictures = "picture" if n == 1 else "pictures"
            raise ValueError(f"class {name!r} has {n} {pictures}; give it at least {least}, {why}")
