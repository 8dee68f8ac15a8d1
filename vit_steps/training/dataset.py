"""Lesson 07: labelled pictures, how some of them are held out, and how they come in batches."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from .. import inputs
from ..images import MEAN, STD, Preprocess, normalize

Source = Dataset | DataLoader  # what `fit` and `evaluate` take: an ImageDataset, or any other


def as_stored(size: int | tuple[int, int], channels: int = 1, ink: bool = True) -> Preprocess:
    """Say how any picture becomes one of a set of this size, from -1 to 1; 1 is ink, or light."""
    half, (height, width) = (0.5,) * channels, inputs.as_pair(size)
    return Preprocess((height, width), min(height, width), "bicubic", half, half, ink=ink)


@dataclass(frozen=True, eq=False)
class ImageDataset(Dataset):
    """Pictures with their labels, checked: TypeError or ValueError where they do not fit together.

    `data[i]` is an image (C, H, W), normalised, and its label; `data[a:b]`, or a list or a tensor
    of numbers, a batch: images (B, C, H, W) and labels (B,).
    """

    pixels: Tensor  # (n, C, H, W): bytes, in memory or a file; or floats, normalised already
    labels: Tensor  # (n,), int64, each the number of a class
    classes: tuple[str, ...]  # their names
    places: Tensor | None = None  # (n, 2), int64: row and column of each digit's corner, if known
    white: int = 255  # the byte that stands for 1.0
    preprocess: Preprocess | None = None  # how a picture becomes an image; None: from -1 to 1

    def __post_init__(self):
        inputs.check_images(self.pixels)
        if self.pixels.dtype != torch.uint8 and not self.pixels.is_floating_point():
            raise TypeError(f"pixels holds {self.pixels.dtype}; give bytes (uint8) or floats")
        inputs.check_sizes(white=self.white)
        if self.white < 255 and self.pixels.max() > self.white:
            raise ValueError(f"pixels go up to {self.pixels.max()}, but white is {self.white}")
        if not isinstance(self.classes, tuple) or classes_of(self) != self.classes:
            raise TypeError(f"classes is {self.classes!r}; give a tuple of names")
        inputs.check_labels(self.labels, len(self), len(self.classes))
        if self.places is not None:
            inputs.check_int64("places", self.places, len(self), 2)

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, index: Any) -> tuple[Tensor, Any]:
        pixels, labels = self.pixels[index], self.labels[index]
        if not pixels.is_floating_point():
            mean, std = getattr(self.preprocess, "mean", MEAN), getattr(self.preprocess, "std", STD)
            pixels = normalize(pixels.float().div_(self.white), mean, std)
        return pixels, int(labels) if inputs.is_whole(index) else labels

    def part(self, index: Any) -> "ImageDataset":
        """Make a data set of these pictures alone."""
        places = None if self.places is None else self.places[index]
        return replace(self, pixels=self.pixels[index], labels=self.labels[index], places=places)

    @property
    def shape(self) -> tuple[int, ...]:
        """(C, H, W) of each picture."""
        return tuple(self.pixels.shape[1:])

    @property
    def images(self) -> Tensor:
        """All of them, normalised: (n, C, H, W), floats, made anew where bytes are held."""
        return self[:][0]


def split(data: ImageDataset, fraction: float, seed: int) -> tuple[ImageDataset, ImageDataset]:
    """Divide the data into a train part and a held-out part, each in the order of the data."""
    held_out = hold_out(data.labels.cpu(), data.classes, fraction, seed)
    return data.part(~held_out), data.part(held_out)


def hold_out(labels: Tensor, classes: tuple[str, ...], fraction: float, seed: int) -> Tensor:
    """Draw which pictures are held out, (n,), booleans: of each class this share, but one or more.

    At least one is left, too. ValueError for a fraction outside (0, 1), or a class of less than 2.
    """
    inputs.check_fraction(fraction=fraction)
    if fraction == 0:
        raise ValueError("fraction is 0: nothing would be held out; give a share such as 0.2")
    generator = torch.Generator().manual_seed(seed)
    held_out = torch.zeros(len(labels), dtype=torch.bool)
    for label, name in enumerate(classes):
        members = (labels == label).nonzero()[:, 0]
        n = len(members)
        if n < 2:
            raise ValueError(f"class {name!r} has too few pictures to split: {n} left; give 2")
        count = min(max(round(n * fraction), 1), n - 1)
        held_out[members[torch.randperm(n, generator=generator)[:count]]] = True
    return held_out


def batches(
    data: Any,
    batch_size: int | None = None,
    generator: torch.Generator | None = None,
    usual: int = 64,
) -> DataLoader:
    """Make torch's DataLoader of the data: in their order, or in one that the generator draws.

    A `batch_size` of None is the usual one. A DataLoader comes back as it is.
    """
    n = -1
    if isinstance(data, Dataset | DataLoader) and not isinstance(data, IterableDataset):
        with suppress(TypeError):  # of what has no length
            n = len(data)  # pyright: ignore[reportArgumentType]
    if n < 0:
        expected = "what load_data makes, a Dataset of (image, label), or a DataLoader"
        raise TypeError(f"the data are a {type(data).__name__}; give {expected}, with a length")
    if not n:
        raise ValueError("the data hold nothing; give at least one image")
    if isinstance(data, DataLoader):
        if batch_size is not None:
            raise ValueError(f"batch_size is {batch_size}, but a DataLoader has its own")
        return data
    batch_size = usual if batch_size is None else batch_size
    inputs.check_sizes(batch_size=batch_size)
    order = torch.randperm(n, generator=generator) if generator else torch.arange(n)
    numbers: Any = [batch.tolist() for batch in order.split(batch_size)]
    own = torch.Generator()  # else the loader would draw from torch's own, and shift what follows
    if isinstance(data, ImageDataset):  # which gives a whole batch at once
        return DataLoader(data, batch_size=None, sampler=numbers, generator=own)
    return DataLoader(data, batch_sampler=numbers, generator=own)


def checked(loader: DataLoader, classes: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
    """Give a loader's batches, images and labels, by `check_batch`, or say why torch makes none."""
    try:
        for batch in loader:
            yield check_batch(batch, classes)
    except (RuntimeError, TypeError) as error:
        if "equal size" in str(error):
            advice = "bring all to one size, such as by vit_steps.images.Preprocess"
            raise ValueError(f"a batch holds images of different sizes; {advice}") from error
        if "default_collate" in str(error):
            kind = str(error).rpartition("found ")[2]
            problem = f"an item of the data holds {kind}; give an image (a tensor) and a label"
            raise TypeError(f"{problem}: vit_steps.images.Preprocess makes tensors") from error
        raise


def check_batch(batch: Any, classes: int | None = None) -> tuple[Tensor, Tensor]:
    """Give a batch's images (B, C, H, W) and labels, (B,) or shares of them (B, classes)."""
    pair = batch if isinstance(batch, list | tuple) else [batch]
    if len(pair) != 2 or not all(isinstance(tensor, Tensor) for tensor in pair):
        kinds = ", ".join(type(tensor).__name__ for tensor in pair)
        raise TypeError(f"a batch holds {kinds}; give pairs of an image (a tensor) and a label")
    images, labels = pair
    inputs.check_images(images)
    if labels.ndim != 2 or not labels.is_floating_point():
        inputs.check_labels(labels, len(images), classes or int(labels.max()) + 1)
    elif len(labels) != len(images):
        raise ValueError(f"a batch holds {len(images)} images and {len(labels)} labels")
    return images, labels


def classes_of(data: Any) -> tuple[str, ...]:
    """Give the classes' names of the data, or of what a DataLoader or Subset draws from; or ()."""
    while not hasattr(data, "classes") and hasattr(data, "dataset"):
        data = data.dataset
    names = getattr(data, "classes", ())
    valid = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    return tuple(names) if valid else ()
