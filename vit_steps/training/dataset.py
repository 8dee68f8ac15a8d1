"""Lesson 07: labelled pictures, how some of them are held out, and how they come in batches."""

from collections.abc import Sized
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from .. import inputs
from ..images import MEAN, STD, Preprocess, per_channel

Source = Dataset | DataLoader  # what `fit` and `evaluate` take: an ImageDataset, or any other


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
        pixels, labels = self.pixels[index], self.labels[index]
        return self.normalized(pixels), int(labels) if inputs.is_whole(index) else labels

    def normalized(self, pixels: Tensor) -> Tensor:
        """Turn bytes ([B,] C, H, W) into floats, shifted and scaled; leave floats as they are."""
        if pixels.is_floating_point():
            return pixels
        floats, how = pixels.float().div_(self.white), self.preprocess
        mean, std = (MEAN, STD) if how is None else (how.mean, how.std)
        return floats.sub_(per_channel(floats, mean)).div_(per_channel(floats, std))

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
        return self.normalized(self.pixels)


def split(data: ImageDataset, fraction: float, seed: int) -> tuple[ImageDataset, ImageDataset]:
    """Divide the data into a train part and a held-out part, each in the order of the data.

    The same share of each class is held out, at least one picture, and at least one is left. The
    same seed draws the same pictures. ValueError for a fraction outside (0, 1), and for a class of
    fewer than 2 pictures, which it names.
    """
    held_out = hold_out(data.labels.cpu(), data.classes, fraction, seed)
    return data.part(~held_out), data.part(held_out)


def hold_out(labels: Tensor, classes: tuple[str, ...], fraction: float, seed: int) -> Tensor:
    """Draw which pictures `split` holds out, (n,), booleans.

    Not by scikit-learn, which takes none of a small class; and the stored weights were trained on
    what this draw leaves.
    """
    inputs.check_fraction(fraction=fraction)
    if fraction == 0:
        raise ValueError("fraction is 0: nothing would be held out; give a share such as 0.2")
    generator = torch.Generator().manual_seed(seed)
    held_out = torch.zeros(len(labels), dtype=torch.bool)
    for label, name in enumerate(classes):
        members = (labels == label).nonzero()[:, 0]
        if (n := len(members)) < 2:
            need = "one to train on and one to hold out"
            raise ValueError(f"class {name!r} has too few pictures to split: {n} left, {need}")
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

    A `batch_size` of None is the usual one. A DataLoader comes back as it is: its own batches,
    order and workers count. TypeError for other data; ValueError for no images, or a batch size
    beside a DataLoader.
    """
    if not isinstance(data, Dataset | DataLoader) or not isinstance(data, Sized):
        raise TypeError(
            f"the data are a {type(data).__name__}; give what vit_steps.training.data makes, a "
            "Dataset of (image, label) with a length, or a DataLoader of such"
        )
    if not len(data):
        raise ValueError("the data hold nothing; give at least one image")
    if isinstance(data, DataLoader):
        if batch_size is not None:
            raise ValueError(f"batch_size is {batch_size}, but a DataLoader has its own")
        return data
    batch_size = usual if batch_size is None else batch_size
    inputs.check_sizes(batch_size=batch_size)
    order = torch.arange(len(data))
    if generator is not None:
        order = torch.randperm(len(data), generator=generator)
    numbers: Any = [batch.tolist() for batch in order.split(batch_size)]
    own = torch.Generator()  # else the loader would draw from torch's own, and shift what follows
    if isinstance(data, ImageDataset):  # which gives a whole batch at once
        return DataLoader(data, batch_size=None, sampler=numbers, generator=own)
    return DataLoader(data, batch_sampler=numbers, generator=own)


def check_batch(batch: Any, classes: int | None = None) -> tuple[Tensor, Tensor]:
    """Give a batch's images (B, C, H, W) and labels, (B,) below `classes`, or shares (B, classes).

    TypeError or ValueError says what came where it is none.
    """
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
