"""Lesson 07: a folder of the learner's own pictures."""

import os
import shutil
import warnings
from concurrent.futures import ThreadPoolExecutor
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
from .dataset import ImageDataset, check_enough, hold_out

VAL = ("val", "valid", "validation")  # what people call it
HELD = 2_000_000_000  # bytes of pictures that are held in memory; more lie on the disk


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
    limit: float = HELD,
    preprocess: Preprocess | None = None,
) -> Parts:
    """Your own pictures: one sub-folder a class, or the same inside train and val, test or both.

    Folders inside a class belong to it. Hidden files, and files whose ending is not a picture's,
    are passed over; a picture that cannot be read is named in a warning and skipped. Each is read
    once, cropped and resized, and held as bytes, at 224×224 each 0.15 MB: in memory, or, if they
    take more than `limit`, in a temporary file, which goes when they are let go.

    Args:
        path: the folder.
        size: to crop and resize to, in pixels; the pixels then run from -1 to 1.
        fraction: the share of each class to test on, where there is no folder train; drawn by seed.
        val_fraction: the share of each class to take from train for val, where there is no folder
            val (also valid, validation); 0 for none.
        limit: of the pictures' bytes in memory.
        preprocess: how a model that is trained on wants its pictures (`Loaded.preprocess`), in
            place of `size`; with one mean they are made grey.

    Returns:
        (train, val, test); the classes are the sub-folders' names, sorted. Where there is train
        and val, but no test, test is None.

    ValueError for no such folder, fewer than two classes, a class without (or, to be split, with
    too few) readable pictures, parts of other classes, or too little room on the disk.
    """
    path = Path(path).expanduser()
    if not path.is_dir():
        raise ValueError(f"{path} is not a folder; give one that holds a sub-folder for each class")
    check_fraction(val_fraction=val_fraction)
    if preprocess is None:
        height, width = as_pair(size, "size")
        preprocess = Preprocess((height, width), min(height, width), "bicubic")
    found: dict[str, tuple[list[Path], Tensor]] = {}
    classes: tuple[str, ...] = ()
    for part, place in find_parts(path).items():
        files, labels, names = list_files(place)
        classes = classes or names
        if odd := set(classes) ^ set(names):
            only = ", ".join(sorted(odd))
            raise ValueError(f"{path}: train and {part} hold other classes; only one has {only}")
        found[part] = files, labels
    shares = {"test": fraction} if len(found) == 1 else {}
    if "val" not in found and val_fraction:
        shares["val"] = val_fraction
    if len(shares) == 2:
        why = "one each for train, val and test (or set val_fraction to 0)"
        check_enough(found["train"][1], classes, 3, why)
    for part, share in shares.items():
        files, labels = found["train"]
        held = hold_out(labels, classes, share, seed)
        for name, chosen in (("train", ~held), (part, held)):
            found[name] = [files[i] for i in chosen.nonzero()[:, 0].tolist()], labels[chosen]
    one = len(preprocess.mean) * prod(preprocess.size)  # bytes of a picture
    in_memory = sum(len(files) for files, _ in found.values()) * one <= limit
    read: dict[str, Any] = dict(val=None, test=None)
    for part, (files, labels) in found.items():
        read[part] = read_all(files, labels, classes, preprocess, in_memory)
    return Parts(**read)


def find_parts(path: Path) -> dict[str, Path]:
    """The folders of train, val and test; or the whole folder as train, to be split."""
    subs = subfolders(path)
    vals = [name for name in VAL if name in subs]
    named = [name for name in ("train", "test", *vals) if name in subs]
    if len(named) < 2:  # one alone may well be a class, such as "train" among vehicles
        return {"train": path}
    if len(vals) > 1:
        raise ValueError(f"{path} holds {' and '.join(vals)}, which mean the same; keep one")
    if "train" not in named:
        said = f"{path} holds {' and '.join(named)}, but no train"
        raise ValueError(f"{said}; name the pictures to learn from so")
    for name in subs:
        if name not in named:
            said = f"{path / name} stands beside {' and '.join(named)}; skipped"
            warnings.warn(said, stacklevel=3)
    return {"val" if name in VAL else name: path / name for name in named}


def subfolders(path: Path) -> list[str]:
    """The names of the folders in a folder, sorted; not hidden ones, nor such as __MACOSX."""
    folders = [p.name for p in path.iterdir() if p.is_dir()]
    return sorted(name for name in folders if not name.startswith((".", "__")))


def list_files(path: Path) -> tuple[list[Path], Tensor, tuple[str, ...]]:
    """The pictures in a folder's sub-folders, the number of each one's class, and the classes."""
    classes = tuple(subfolders(path))
    if len(classes) < 2:
        found = f"only the sub-folder {classes[0]!r}" if classes else "no sub-folders"
        raise ValueError(f"{path} holds {found}; give it one for each of 2 classes or more")
    files, labels = [], []
    for label, name in enumerate(classes):
        for file in picture_files(path / name):
            try:
                check_header(file)
            except ValueError as error:
                warnings.warn(f"{error}; skipped", stacklevel=3)
            else:
                files.append(file)
                labels.append(label)
        if label not in labels:
            raise ValueError(
                f"{path / name} holds no picture that can be read; each sub-folder is taken for a "
                "class (unless they are train, test and val): put pictures in it, or take it away"
            )
    return files, torch.tensor(labels), classes


def picture_files(path: Path) -> list[Path]:
    """The files in a folder, and in its folders, that end as pictures do; hidden ones left out."""
    endings = {end for end, kind in Image.registered_extensions().items() if kind in FORMATS}
    endings |= {".heic", ".heif"}  # of phones: read where pillow-heif is, else named
    found = []
    for file in sorted(path.rglob("*")):
        inside = file.relative_to(path).parts
        hidden = any(part.startswith((".", "__")) for part in inside)
        if file.suffix.lower() in endings and not hidden and not file.is_dir():
            found.append(file)
    return found


def check_header(file: Path) -> None:
    """By a file's first bytes, ValueError where it is no picture, or larger than is safe."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=formats(file)):
                return
    except Exception:  # `decode` has the words for it, and fails as soon
        decode(file)


def read_all(
    files: list[Path], labels: Tensor, classes: tuple[str, ...], how: Preprocess, in_memory: bool
) -> ImageDataset:
    """Read what can be read, name what cannot; ValueError for a class without any."""
    shape = len(files), len(how.mean), *how.size
    if in_memory:
        pixels = torch.empty(shape, dtype=torch.uint8)
    else:
        if shutil.disk_usage(gettempdir()).free < (needed := prod(shape)):
            where = f"{gettempdir()} has less; make room, or set TMPDIR to another folder"
            raise ValueError(f"the pictures take {needed / 1e9:.1f} GB on the disk; {where}")
        with TemporaryFile() as file:  # what is mapped lives on
            pixels = torch.from_numpy(np.memmap(file, np.uint8, "w+", shape=shape))

    def read(i: int) -> str | None:
        try:
            pixels[i] = how.pixels(files[i]).mul_(255).round_().byte()
        except ValueError as error:
            return str(error)

    # Each thread holds a picture in floats, as large as its file has it. All change what is done
    # with warnings, and what the last one leaves is not what the first one found.
    pool = ThreadPoolExecutor(min(os.cpu_count() or 1, 8))
    with warnings.catch_warnings():
        try:
            reading = tqdm(pool.map(read, range(len(files))), "reading", len(files), disable=None)
            broken = {i: said for i, said in enumerate(reading) if said is not None}
        finally:
            pool.shutdown(cancel_futures=True)
    for said in broken.values():
        warnings.warn(f"{said}; skipped", stacklevel=3)
    good = [i for i in range(len(files)) if i not in broken]
    for to, i in enumerate(good if broken else ()):
        pixels[to] = pixels[i]
    labels = labels[good]
    for label, name in enumerate(classes):
        if label not in labels:
            raise ValueError(f"none of the pictures of class {name!r} can be read")
    return ImageDataset(pixels[: len(good)], labels, classes, preprocess=how)
