"""Lesson 07: pictures in batches, on the device that learns from them."""

from collections.abc import Callable, Iterator, Sized
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate

from ..inputs import check_labels, check_sizes
from .dataset import ImageDataset, as_floats

Source = Dataset | DataLoader  # what `fit` and `evaluate` take: an ImageDataset, or any other


class Batches:
    """A data set in batches, on a device.

    Calling it goes through all images once: pairs of images (B, C, H, W) and labels (B,). The last
    batch holds what is left. Bytes are moved, and become floats on the device.

    Args:
        data: an `ImageDataset`; any other `Dataset` of (image, label), images as the model wants
            them; or a DataLoader of such, whose own batches, order and workers count.
        batch_size: B; None is 64, or the DataLoader's.
        device: where the batches are wanted; None leaves them where the data are.
        share: where several processes train together, the number of this one and how many there
            are. Each draws the same batches, and yields its part of each: one image more or less
            than the others, or none. What it augments with, it draws for itself.
        classes: how many the model knows; labels that are numbers must be below it.

    Raises:
        TypeError: no such data, or without a length.
        ValueError: no images, a batch size beside a DataLoader, or processes that would share one.
    """

    def __init__(
        self,
        data: Any,
        batch_size: int | None = None,
        device: torch.device | None = None,
        share: tuple[int, int] = (0, 1),
        classes: int | None = None,
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
        self.batch_size, self.drawn = 64 if batch_size is None else batch_size, False
        if isinstance(data, DataLoader):
            self.drawn = True
            if batch_size is not None:
                raise ValueError(f"batch_size is {batch_size}, but a DataLoader has its own")
            if share[1] > 1:
                raise ValueError("a DataLoader cannot be shared by processes; give its dataset")
        check_sizes(batch_size=self.batch_size)

    def __len__(self) -> int:
        """The number of batches."""
        return len(self.data) if self.drawn else -(-len(self.data) // self.batch_size)

    def __call__(
        self,
        generator: torch.Generator | None = None,
        augment: Callable[..., Tensor] | None = None,
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Go through all once.

        Args:
            generator: where order and augmentation come from; without one, the order of the data.
                A DataLoader draws its order itself.
            augment: changes the images of a batch, such as `augment_digits`.
        """
        for images, labels in map(pair_of, self.data) if self.drawn else self.draw(generator):
            if self.classes and labels.ndim == 1 and not isinstance(self.data, ImageDataset):
                check_labels(labels, len(labels), self.classes)
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
        """This process's part of each batch, as it is held; of other data sets' at least one."""
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
            else:
                items = [self.data[i] for i in numbers.tolist() or [0]]
                images, labels = pair_of(default_collate(items))
                yield images[: len(numbers)], labels[: len(numbers)]


def pair_of(batch: Any) -> tuple[Tensor, Tensor]:
    """Images and labels of a batch; TypeError, which says what came instead."""
    if isinstance(batch, list | tuple) and len(batch) == 2:
        images, labels = batch
        if isinstance(images, Tensor) and isinstance(labels, Tensor):
            return images, labels
    kinds = [type(part).__name__ for part in batch] if isinstance(batch, list | tuple) else batch
    raise TypeError(f"a batch is {kinds}; give pairs of an image (a tensor) and a label")


def evaluation_size(data: Any) -> int | None:
    """The batches in which data are measured: of 256, or as the DataLoader draws them."""
    return None if isinstance(data, DataLoader) else 256
