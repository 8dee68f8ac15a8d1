"""Lesson 07: a folder of the learner's own pictures."""

import os
import re
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
from .dataset import ImageDataset, hold_out

# What people call the folder of each part, alone or among other words: Training, seg_test, dev-set.
PARTS = {"train": "train training", "val": "val valid validation dev eval", "test": "test testing"}
PART_OF = {word: part for part, words in PARTS.items() for word in words.split()}


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

    Folders inside a class belong to it. Hidden files, and files whose ending is not a picture's,
    are passed over; a picture that cannot be read is named in a warning and skipped. Each is read
    once, cropped and resized, and held as bytes, at 224×224 each 0.15 MB, in a temporary file that
    goes when they are let go: the system keeps in memory what fits.

    Args:
        path: the folder.
        size: to crop and resize to, in pixels; the pixels then run from -1 to 1.
        fraction: the share of each class to test on, where there is no folder train; drawn by seed.
        seed: of what is held out.
        val_fraction: the share of each class to take from train for val, where there is no folder
            val; 0 for none.
        preprocess: how a model that is trained on wants its pictures (`Loaded.preprocess`), in
            place of `size`; with one mean they are made grey.

    Returns:
        (train, val, test); the classes are the sub-folders' names, sorted. Where there is train
        and val, but no test, test is None.

    ValueError for no such folder, fewer than two classes, a class without (or, to be split, with
    too few) readable pictures, folders that may be parts but are not named so, parts of other
    classes, or too little room on the disk.
    """
    path = Path(path).expanduser()
    if not path.is_dir():
        raise ValueError(f"{path} is not a folder; give one that holds a sub-folder for each class")
    check_fraction(val_fraction=val_fraction)
    if preprocess is None:
        height, width = as_pair(size, "size")
        preprocess = Preprocess((height, width), min(height, width), "bicubic")
    parts: dict[str, tuple[list[Path], Tensor]] = {}
    classes: tuple[str, ...] = ()
    for part, place in find_parts(path).items():
        files, labels, names = list_files(place)
        classes = classes or names
        if difference := set(classes) ^ set(names):
            only = ", ".join(sorted(difference))
            raise ValueError(f"{path}: train and {part} hold other classes; only one has {only}")
        parts[part] = files, labels
    shares = {"test": fraction} if len(parts) == 1 else {}
    if "val" not in parts and val_fraction:
        shares["val"] = val_fraction
    for part, share in shares.items():
        files, labels = parts["train"]
        held_out = hold_out(labels, classes, share, seed)
        for name, chosen in (("train", ~held_out), (part, held_out)):
            parts[name] = [files[i] for i in chosen.nonzero()[:, 0].tolist()], labels[chosen]
    data: dict[str, Any] = dict(val=None, test=None)
    for part, (files, labels) in parts.items():
        data[part] = read_all(files, labels, classes, preprocess)
    return Parts(**data)


def find_parts(path: Path) -> dict[str, Path]:
    """Find the folders of train, val and test; or take the whole folder as train, to be split.

    A folder called train may well be a class, of vehicles. But folders that have two sub-folders in
    common are parts, never classes; ValueError where their names do not say which.
    """
    inside = {name: _inner(path / name) for name in subfolders(path)}
    classes = {name: {*subfolders(place)} for name, place in inside.items()}
    alike = [a for a in classes if any(len(classes[a] & classes[b]) > 1 for b in classes if a != b)]
    names: dict[str, str] = {}
    for name in inside:
        words = re.findall("[a-z]+", name.lower())
        part = next((PART_OF[word] for word in words if word in PART_OF), None)
        if part is not None and (name in alike or len(words) == 1):
            if part in names:
                both = f"{names[part]} and {name}"
                raise ValueError(f"{path} holds {both}, which mean the same; keep one")
            names[part] = name
    if unknown := [name for name in alike if name not in names.values()]:
        raise ValueError(
            f"{path}: {' and '.join(alike)} hold the same folders, so they are no classes; name "
            f"them train, val and test, and take away what is none of these ({', '.join(unknown)})"
        )
    if len(names) < 2:
        return {"train": path}
    names = {part: names[part] for part in PARTS if part in names}
    listed = " and ".join(names.values())
    if "train" not in names:
        raise ValueError(f"{path} holds {listed}, but no train; name the pictures to learn from so")
    for name in inside.keys() - {*names.values()}:
        warnings.warn(f"{path / name} stands beside {listed}; skipped", stacklevel=3)
    return {part: inside[name] for part, name in names.items()}


def _inner(path: Path) -> Path:
    """Go on into a folder's only folder, as archives are packed: seg_train/seg_train."""
    names = subfolders(path)
    return path / names[0] if names == [path.name] else path


def subfolders(path: Path) -> list[str]:
    """List the folders in a folder by name, sorted; not hidden ones, nor such as __MACOSX."""
    folders = [p.name for p in path.iterdir() if p.is_dir()]
    return sorted(name for name in folders if not name.startswith((".", "__")))


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


def check_header(file: Path) -> None:
    """Refuse by its first bytes, with a ValueError, what is no picture, or larger than is safe."""
    try:
        with warnings.catch_warnings(action="ignore"):
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=formats(file)):
                return
    except Exception:  # `decode` has the words for it, and fails as soon
        decode(file)


def picture_files(path: Path) -> list[Path]:
    """List the files in a folder, and in its folders, that end as pictures do, but hidden ones."""
    endings = {end for end, kind in Image.registered_extensions().items() if kind in FORMATS}
    endings |= {".heic", ".heif"}  # of phones: read where pillow-heif is, else named
    files = []
    for file in sorted(path.rglob("*")):
        names = file.relative_to(path).parts
        hidden = any(name.startswith((".", "__")) for name in names)
        if file.suffix.lower() in endings and not hidden and not file.is_dir():
            files.append(file)
    return files


def read_all(
    files: list[Path], labels: Tensor, classes: tuple[str, ...], preprocess: Preprocess
) -> ImageDataset:
    """Read what can be read, name what cannot; ValueError for a class without any."""
    shape = len(files), len(preprocess.mean), *preprocess.size
    if shutil.disk_usage(gettempdir()).free < prod(shape):
        advice = f"{gettempdir()} has less; make room, or set TMPDIR to another folder"
        raise ValueError(f"the pictures take {prod(shape) / 1e9:.1f} GB on the disk; {advice}")
    with TemporaryFile() as file:  # what is mapped lives on
        pixels = torch.from_numpy(np.memmap(file, np.uint8, "w+", shape=shape))

    def read(i: int) -> str:
        try:
            pixels[i] = preprocess.pixels(files[i]).mul_(255).round_().byte()
        except ValueError as error:
            return str(error)
        return ""

    # Each thread holds a picture in floats, as large as its file has it. All change what is done
    # with warnings, and what the last one leaves is not what the first one found.
    with warnings.catch_warnings(), ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        try:
            problems = [
                *tqdm(pool.map(read, range(len(files))), "reading", len(files), disable=None)
            ]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    for problem in filter(None, problems):
        warnings.warn(f"{problem}; skipped", stacklevel=3)
    good = [i for i, problem in enumerate(problems) if not problem]
    for to, i in enumerate(good):
        if to != i:
            pixels[to] = pixels[i]
    labels = labels[good]
    for label, name in enumerate(classes):
        if label not in labels:
            raise ValueError(f"none of the pictures of class {name!r} can be read")
    return ImageDataset(pixels[: len(good)], labels, classes, preprocess=preprocess)
