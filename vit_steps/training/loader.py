"""Lesson 07: pictures in batches, on the device that learns from them."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from .dataset import FileDataset, Pictures, as_floats


def batches(
    data: Pictures,
    batch_size: int,
    generator: torch.Generator | None = None,
    augment: Callable[..., Tensor] | None = None,
    device: torch.device | None = None,
    share: tuple[int, int] = (0, 1),
) -> Iterator[tuple[Tensor, Tensor]]:
    """Each image once, augmented: pairs of images (B, C, H, W) and labels (B,), by a DataLoader.

    Bytes are moved, and become floats on the device. A file that cannot be read is missing from
    its batch.

    Args:
        data: what to draw from.
        batch_size: B; the last batch holds what is left.
        generator: where order and augmentation come from; without one, the order of the data.
        augment: changes the images of a batch, such as `augment_digits`.
        device: where the batch is wanted; None leaves it where the data are.
        share: where several processes train together, the number of this one and how many there
            are. Each draws the same batches, and yields its part of each: one image more or less
            than the others, or none. What it augments with, it draws for itself.

    Raises:
        ValueError: no picture at all can be read.
    """
    mine, processes = share
    order = torch.arange(len(data))
    if generator is not None:
        order = torch.randperm(len(data), generator=generator)
        if mine:
            generator.manual_seed(generator.initial_seed() + mine * 15_485_863)
    device = data.labels.device if device is None else device
    whole = order.to(data.labels.device).split(batch_size)
    numbers: Any = [batch[mine::processes] for batch in whole]
    loader = DataLoader(
        numbers,
        batch_size=None,
        collate_fn=data.take,  # bytes, where indexing gives floats
        num_workers=data.workers if isinstance(data, FileDataset) else 0,
        pin_memory=device.type == "cuda" and data.labels.device.type == "cpu",
        generator=torch.Generator(),  # one of its own, or it draws from torch's global one
    )
    given = 0
    for pixels, labels, broken in loader:
        if isinstance(data, FileDataset):
            data.warn_of(broken)
        if not len(labels) and processes == 1:
            continue
        # Elsewhere than on CUDA the bytes could be read before they have arrived.
        ahead = device.type == "cuda"
        images = as_floats(pixels.to(device, non_blocking=ahead), data.white)
        if augment is not None and len(labels):
            images = augment(images, generator)
        yield images, labels.to(device, non_blocking=ahead)
        given += 1
    if not given and processes == 1:
        raise ValueError(f"none of {len(data)} pictures can be read; see the warnings before this")
