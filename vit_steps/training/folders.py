"""Lesson 07: a folder of the learner's own pictures, read."""

import os
import shutil
import warnings
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import compress
from math import prod
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from ..images import Preprocess, as_path
from .dataset import ImageDataset, as_stored, hold_out
from .listing import find_parts, list_files


class Parts(NamedTuple):
    """Pictures to learn from, to choose the best epoch by, and to measure once at the end."""

    train: ImageDataset
    val: Any  # an ImageDataset, or None
    test: Any  # or None


def folder(
    path: str | Path,
    size: int | tuple[int, int] = 224,
    fraction: float = 0.2,
    seed: int = 0,
    val_fraction: float = 0.1,
    preprocess: Preprocess | None = None,
    table: str | Path | None = None,
) -> Parts:
    """Read your own pictures: one sub-folder a class, or the same inside train, val and test.

    Or else their classes stand in a `table`, a CSV with `file,label` in each row. Folders inside a
    class belong to it. What is hidden, or does not end as pictures do, is passed over; a picture
    that cannot be read, or stands in two parts or classes, is named in a warning. All are cropped
    and resized to `size`, in pixels from -1 to 1, or else by `preprocess`, as a model wants its
    pictures, and held as bytes in a temporary file. ValueError for what is no such folder.

    Where there is no folder train, the share `fraction` of each class is to test on; where there is
    no val, `val_fraction` of train's classes becomes val (0: none); the seed draws them. The
    classes are the sub-folders' names, sorted; beside train and val alone, test is None.
    """
    path = as_path(path)
    if not path.is_dir():
        raise ValueError(f"{path} is not a folder; give one that holds a sub-folder for each class")
    preprocess = preprocess or as_stored(size, 3, ink=False)
    parts, classes = {}, ()
    for part, place in find_parts(path).items() if table is None else [("train", path)]:
        files, labels, names = list_files(place, table)
        if difference := {*names} ^ {*(classes or names)}:
            only = ", ".join(sorted(difference))
            raise ValueError(f"{path} holds parts of different classes; not in each are {only}")
        parts[part], classes = (files, labels), names
    shares = {"test": fraction} if len(parts) == 1 else {}
    if "val" not in parts and val_fraction:
        shares["val"] = val_fraction
    for part, share in shares.items():
        files, labels = parts["train"]
        held_out = hold_out(labels, classes, share, seed)
        for name, chosen in (("train", ~held_out), (part, held_out)):
            parts[name] = [*compress(files, chosen.tolist())], labels[chosen]
    read = {}
    for part in filter(parts.__contains__, Parts._fields):
        files, labels = parts[part]
        read[part] = read_all(files, labels, classes, preprocess)
    if twins := find_twins(read):
        first, second = twins[0]
        problem = f"{len(twins)} of the pictures are the same as one of another part or class:"
        advice = "what is measured on them says little; take one of each away"
        warnings.warn(f"{problem} {first} and {second}; {advice}", stacklevel=2)
    data = {part: pictures for part, (pictures, _) in read.items()}
    return Parts(data["train"], data.get("val"), data.get("test"))


def read_all(
    files: list[Path], labels: Tensor, classes: tuple[str, ...], preprocess: Preprocess
) -> tuple[ImageDataset, list[Path]]:
    """Read what can be read, and say of which files; ValueError for a class without any."""
    shape = len(files), len(preprocess.mean), *preprocess.size
    if shutil.disk_usage(gettempdir()).free < prod(shape):
        advice = f"{gettempdir()} has less; make room, or set TMPDIR to another folder"
        raise ValueError(f"the pictures take {prod(shape) / 1e9:.1f} GB on the disk; {advice}")
    with TemporaryFile() as file:  # what is mapped lives on; the system keeps what fits in memory
        pixels = torch.from_numpy(np.memmap(file, np.uint8, "w+", shape=shape))

    def read(i: int) -> str:
        try:
            pixels[i] = preprocess.pixels(files[i]).mul_(255).round_().byte()
        except ValueError as error:
            return f"{error}; skipped"
        return ""

    # Each thread holds a picture in floats. All change what is done with warnings, so that the last
    # one would not leave what the first one found.
    with warnings.catch_warnings(), ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        results = pool.map(read, range(len(files)))
        problems = [*tqdm(results, "reading", len(files), disable=None)]
    for problem in filter(None, problems):
        warnings.warn(problem, stacklevel=3)
    good = [i for i, problem in enumerate(problems) if not problem]
    for to, i in enumerate(good):
        if to < i:
            pixels[to] = pixels[i]
    labels = labels[good]
    for label, name in enumerate(classes):
        if label not in labels:
            raise ValueError(f"none of the pictures of class {name!r} can be read")
    data = ImageDataset(pixels[: len(good)], labels, classes, preprocess=preprocess)
    return data, [files[i] for i in good]


def find_twins(read: dict[str, tuple[ImageDataset, list[Path]]]) -> list[tuple[str, str]]:
    """Name the pictures that look like one of another part or class, as the model sees them."""
    seen, twins = {}, []
    for part, (data, files) in read.items():
        for pixels, label, file in zip(data.pixels, data.labels.tolist(), files, strict=True):
            if torch.equal(pixels, pixels[:, :1, :1].expand_as(pixels)):
                continue  # of a single colour
            place, digest = (part, data.classes[label]), sha256(pixels.numpy().tobytes()).digest()
            first = seen.setdefault(digest, (place, file))
            if first[0] != place:
                named = [f"{path} ({', '.join(of)})" for of, path in (first, (place, file))]
                twins.append((named[0], named[1]))
    return twins
