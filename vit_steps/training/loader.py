"""Lesson 07: pictures in batches, on the device that learns from them."""

from collections.abc import Callable, Iterator, Sized
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate

from ..inputs import check_images, check_labels, check_sizes
from .dataset import ImageDataset, as_floats

Source = Dataset | DataLoader  # what `fit` and `evaluate` take: an ImageDataset, or any other


class Batches:
    """A data set in batches, on a device: images (B, C, H, W) and labels (B,).

    Calling it goes through all once; the last batch holds what is left. Bytes become floats on the
    device.

    Args:
        data: an `ImageDataset`; any other `Dataset` of (image, label), images as the model wants
            them; or a DataLoader of such, whose own batches, order and workers count.
        batch_size: B; None is the usual one, or the DataLoader's.
        device: where the batches are wanted; None leaves them where the data are.
        share: the number of this process, and how many there are. Each draws the same batches, and
            yields its part of each: one image more or less than the others, or none. What it
            augments with, it draws for itself.
        classes: how many the model knows; labels that are numbers must be below it.
        usual: B where nothing else says it.

    TypeError for no such data, or without a length; ValueError for no images, a batch size beside a
    DataLoader, or processes that would share one. Batches are looked at as they come.
    """

    def __init__(
        self,
        data: Any,
        batch_size: int | None = None,
        device: torch.device | None = None,
        share: tuple[int, int] = (0, 1),
        classes: int | None = None,
        usual: int = 64,
    ):
        if not isinstance(data, Dataset | DataLoader) or not isinstance(data, Sized):
            raise TypeError(
                f"the data are a {type(data).__name__}; give what vit_steps.training.data makes, a "
                "Dataset of (image, label) with a length, or a DataLoader of such"
            )
        if not len(data):
            raise ValueError("the data hold nothing; give at least one image")
        self.data: Any = data
        self.device, self.share, self.classes = device, share, classes
        self.batch_size, self.drawn = batch_size or usual, isinstance(data, DataLoader)
        if isinstance(data, DataLoader):
            if batch_size is not None:
                raise ValueError(f"batch_size is {batch_size}, but a DataLoader has its own")
            if share[1] > 1:
                raise ValueError("a DataLoader cannot be shared by processes; give its dataset")
            self.batch_size = data.batch_size or 1
        elif batch_size is not None:
            check_sizes(batch_size=batch_size)

    def __len__(self) -> int:
        """The number of batches."""
        return len(self.data) if self.drawn else -(-len(self.data) // self.batch_size)

    def __call__(
        self, generator: torch.Generator | None = None, augment: Callable[..., Tensor] | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Go through all once, in the order that the generator draws; without one, the data's.

        A DataLoader draws its order itself. `augment` changes a batch, such as `augment_digits`.
        """
        check = partial(check_batch, classes=self.classes)
        for images, labels in map(check, self.data) if self.drawn else self.draw(generator):
            # Elsewhere than on CUDA the bytes could be read before they have arrived.
            device = labels.device if self.device is None else self.device
            images = images.to(device, non_blocking=device.type == "cuda")
            labels = labels.to(device, non_blocking=device.type == "cuda")
            if isinstance(self.data, ImageDataset):
                images = as_floats(images, self.data)
            if augment is not None and len(labels):
                images = augment(images, generator)
            yield images, labels

    def draw(self, generator: torch.Generator | None) -> Iterator[tuple[Tensor, Tensor]]:
        """This process's part of each batch, as it is held."""
        mine, processes = self.share
        order = torch.arange(len(self.data))
        if generator is not None:
            order = torch.randperm(len(self.data), generator=generator)
            if mine:
                generator.manual_seed(generator.initial_seed() + mine * 15_485_863)
        for batch in order.split(self.batch_size):
            numbers = batch[mine::processes]
            if isinstance(self.data, ImageDataset):
                numbers = numbers.to(self.data.labels.device)
                yield self.data.pixels[numbers], self.data.labels[numbers]
            else:  # one at least, which tells the shapes
                items = [self.data[i] for i in numbers.tolist() or [0]]
                images, labels = check_batch(default_collate(items), self.classes)
                yield images[: len(numbers)], labels[: len(numbers)]


def check_batch(batch: Any, classes: int | None) -> tuple[Tensor, Tensor]:
    """Images and labels of a batch that somebody else made; says what came where it is none."""
    parts = batch if isinstance(batch, list | tuple) else [batch]
    if len(parts) != 2 or not all(isinstance(part, Tensor) for part in parts):
        kinds = ", ".join(type(part).__name__ for part in parts)
        raise TypeError(f"a batch holds {kinds}; give pairs of an image (a tensor) and a label")
    images, labels = parts
    check_images(images)
    if labels.ndim == 2 and labels.is_floating_point():  # the share of each class
        if len(labels) != len(images):
            raise ValueError(f"a batch holds {len(images)} images and {len(labels)} labels")
    else:
        check_labels(labels, len(images), classes or int(labels.max()) + 1)
    return images, labels


def classes_of(data: Any) -> tuple[str, ...]:
    """The classes' names, where the data, or what a DataLoader or Subset draws from, have them."""
    while not hasattr(data, "classes") and hasattr(data, "dataset"):
        data = data.dataset
    names = getattr(data, "classes", ())
    known = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    return tuple(names) if known else ()
