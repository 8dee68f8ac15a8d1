"""Lesson 07: a folder of the learner's own pictures."""

import os
import re
import shutil
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import compress
from math import prod
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from tqdm import tqdm

from ..images import FORMATS, Preprocess, decode, formats
from ..inputs import as_pair, check_fraction
from .dataset import ImageDataset, hold_out

# What people call the folder of each part, alone or among other words: Training, seg_test, dev-set.
PART_OF = dict(train="train", training="train", test="test", testing="test")
PART_OF |= dict.fromkeys(("val", "valid", "validation", "dev", "eval"), "val")


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
) -> Parts:
    """Read your own pictures: one sub-folder a class, or the same inside train, val and test.

    Folders inside a class belong to it. What is hidden, or does not end as pictures do, is passed
    over; a picture that cannot be read is named in a warning and skipped. All are cropped and
    resized to `size`, in pixels from -1 to 1, or else by `preprocess`, as a model wants its
    pictures, and held as bytes in a temporary file. ValueError for what is no such folder.

    Where there is no folder train, the share `fraction` of each class is to test on; where there is
    no val, `val_fraction` of train's classes becomes val (0: none); the seed draws them. The
    classes are the sub-folders' names, sorted; beside train and val alone, test is None.
    """
    path = Path(path).expanduser()
    if not path.is_dir():
        raise ValueError(f"{path} is not a folder; give one that holds a sub-folder for each class")
    check_fraction(val_fraction=val_fraction)
    if preprocess is None:
        height, width = as_pair(size, "size")
        preprocess = Preprocess((height, width), min(height, width), "bicubic")
    parts, classes = {}, ()
    for part, place in find_parts(path).items():
        files, labels, names = list_files(place)
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
    data: dict[str, Any] = dict(val=None, test=None)
    for part, (files, labels) in parts.items():
        data[part] = read_all(files, labels, classes, preprocess)
    return Parts(**data)


def find_parts(path: Path) -> dict[str, Path]:
    """Find the folders of train, val and test; or take the whole folder as train, to be split.

    A folder called train may well be a class, of vehicles. But folders that have two sub-folders in
    common are parts, never classes; ValueError where their names do not say which.
    """
    inside = {}
    for name in subfolders(path):
        packed = subfolders(path / name) == [name]  # seg_train/seg_train, as in archives
        inside[name] = path / name / name if packed else path / name
    classes = {name: {*subfolders(place)} for name, place in inside.items()}
    alike = {a for a in classes for b in classes if a != b and len(classes[a] & classes[b]) > 1}
    parts = {}
    for name in inside:
        words = re.findall("[a-z]+", name.lower())
        part = next((PART_OF[word] for word in words if word in PART_OF), "")
        if name in alike or (part and len(words) == 1):
            parts[name] = part
    if len(parts) < 2:
        return {"train": path}
    listed, distinct = " and ".join(parts), {*parts.values()}
    if len(distinct) < len(parts) or "" in distinct or "train" not in distinct:
        raise ValueError(
            f"{path} holds {listed}, which by their names or the folders in them are no classes: "
            "call one train, at most one val and one test, and take the others away"
        )
    for name in inside.keys() - parts:
        warnings.warn(f"{path / name} stands beside {listed}; skipped", stacklevel=3)
    return {part: inside[name] for name, part in parts.items()}


def subfolders(path: Path) -> list[str]:
    """List the names of the folders in a folder, sorted."""
    return sorted(p.name for p in path.iterdir() if p.is_dir() and not _is_hidden(p.name))


def _is_hidden(name: str) -> bool:
    """Tell what the system put there, such as .DS_Store, from what the learner did."""
    return name.startswith((".", "__"))


def list_files(path: Path) -> tuple[list[Path], Tensor, tuple[str, ...]]:
    """List the pictures in a folder's sub-folders, the number of each one's class, the classes."""
    classes = tuple(subfolders(path))
    if len(classes) < 2:
        content = f"only the sub-folder {classes[0]!r}" if classes else "no sub-folders"
        raise ValueError(f"{path} holds {content}; give it one for each of 2 classes or more")
    files, labels = [], []
    for label, name in enumerate(classes):
        for file in picture_files(path / name):
            try:
                _check_header(file)
                files.append(file)
                labels.append(label)
            except ValueError as error:
                warnings.warn(f"{error}; skipped", stacklevel=3)
        if label not in labels:
            advice = "each sub-folder is a class: put pictures in it, or take it away"
            raise ValueError(f"{path / name} holds no picture that can be read; {advice}")
    return files, torch.tensor(labels), classes


def _check_header(file: Path) -> None:
    """Refuse by its first bytes, with a ValueError, what is no picture, or larger than is safe."""
    try:
        with warnings.catch_warnings(action="ignore"):
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            Image.open(file, formats=formats(file)).close()
    except Exception:  # `decode` has the words for it, and fails as soon
        decode(file)


def picture_files(path: Path) -> list[Path]:
    """List the files in a folder, and in its folders, that end as pictures do, but hidden ones."""
    endings = {end for end, kind in Image.registered_extensions().items() if kind in FORMATS}
    endings |= {".heic", ".heif"}  # of phones: read where pillow-heif is, else named
    files = [p for p in sorted(path.rglob("*")) if p.suffix.lower() in endings and not p.is_dir()]
    return [file for file in files if not any(map(_is_hidden, file.relative_to(path).parts))]


def read_all(
    files: list[Path], labels: Tensor, classes: tuple[str, ...], preprocess: Preprocess
) -> ImageDataset:
    """Read what can be read, name what cannot; ValueError for a class without any."""
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
    return ImageDataset(pixels[: len(good)], labels, classes, preprocess=preprocess)
