"""Lesson 07: a folder of the learner's own pictures."""

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import torch
from PIL import Image

from ..images import FORMATS, heif, is_heic, open_rgb
from ..inputs import as_pair, check_fraction
from .dataset import FileDataset, ImageDataset, check_enough, split

VAL = ("val", "valid", "validation")  # what people call it
HELD = 2_000_000_000  # bytes of pictures that are held in memory; more are read as they are needed


class Parts(NamedTuple):
    """Pictures to learn from, to choose the best epoch by, and to measure once at the end."""

    train: Any  # each an ImageDataset or a FileDataset
    val: Any  # or None
    test: Any


def folder(
    path: str | Path,
    size: int | tuple[int, int] = 224,
    fraction: float = 0.2,
    seed: int = 0,
    val_fraction: float = 0.1,
    limit: float = HELD,
    workers: int = 0,
) -> Parts:
    """Your own pictures: one sub-folder a class, or the same inside train, test and perhaps val.

    Hidden files, and files whose ending is not a picture's, are passed over; a picture that
    cannot be read, or a folder inside a class, is named in a warning and skipped. The pictures are
    held in memory as bytes, at 224×224 each 0.15 MB. If they would take more than `limit`, their
    files stay where they are and each is read whenever it is needed.

    Args:
        path: the folder.
        size: to crop and resize to, in pixels (`vit_steps.images.load_image` does it).
        fraction: the share of each class to test on, where there are no folders train and test.
        seed: the same seed draws the same split.
        val_fraction: the share of each class to take from train for val, where there is no folder
            val (also valid, validation); 0 for none.
        limit: of the pictures' bytes, 2 GB.
        workers: how many processes read ahead, where files are read as they are needed.

    Returns:
        (train, val, test): pictures (3, H, W), from -1 to 1; the classes are the sub-folders'
        names, sorted.

    Raises:
        ValueError: no such folder, fewer than two classes, a class without (or, to be split, with
            too few) readable pictures, other classes in one part than in another, or train and
            val without test.
    """
    path = Path(path)
    if not path.is_dir():
        raise ValueError(f"{path} is not a folder; give one that holds a sub-folder for each class")
    check_fraction(val_fraction=val_fraction)
    height, width = as_pair(size, "size")
    found: dict[str, Any] = {}
    for part, place in find_parts(path).items():
        files, labels, classes = list_files(place)
        found[part] = FileDataset(files, labels, classes, (height, width), workers)
        if odd := set(classes) ^ set(found["train"].classes):
            names = ", ".join(sorted(odd))
            raise ValueError(f"{path}: train and {part} hold other classes; only one has {names}")
    shares = {"test": fraction} if "test" not in found else {}
    if "val" not in found and val_fraction:
        shares["val"] = val_fraction
    if len(shares) == 2:
        why = "one each for train, val and test (or set val_fraction to 0)"
        check_enough(found["train"], 3, why)
    needed = sum(map(len, found.values())) * 3 * height * width  # bytes
    for part, share in shares.items():
        found["train"], found[part] = split(found["train"], share, seed)
    if needed <= limit:
        for part, data in found.items():
            found[part] = read_all(data)
    return Parts(found["train"], found.get("val"), found["test"])


def find_parts(path: Path) -> dict[str, Path]:
    """The folders of train, test and val; or the whole folder as train, to be split."""
    subs = subfolders(path)
    vals = [name for name in VAL if name in subs]
    named = [name for name in ("train", "test", *vals) if name in subs]
    if len(named) < 2:  # one alone may well be a class, such as "train" among vehicles
        return {"train": path}
    if len(vals) > 1:
        raise ValueError(f"{path} holds {' and '.join(vals)}, which mean the same; keep one")
    for part in ("train", "test"):
        if part not in subs:
            raise ValueError(
                f"{path} holds {' and '.join(named)}, but no {part}; name the pictures to learn "
                "from train, and those to be measured once at the end test (val may be left out)"
            )
    for name in subs:
        if name not in named:
            warnings.warn(f"{path / name} stands beside train and test; skipped", stacklevel=3)
    return {"val" if name in VAL else name: path / name for name in named}


def subfolders(path: Path) -> list[str]:
    """The names of the folders in a folder, sorted; not hidden ones, nor such as __MACOSX."""
    return sorted(
        p.name for p in path.iterdir() if p.is_dir() and not p.name.startswith((".", "__"))
    )


def list_files(path: Path) -> tuple[tuple[Path, ...], torch.Tensor, tuple[str, ...]]:
    """The pictures in a folder's sub-folders, by their endings and first bytes: files and labels.

    Returns:
        The files, class by class; the number of each one's class; and the classes' names.
    """
    classes = tuple(subfolders(path))
    if len(classes) < 2:
        found = f"only the sub-folder {classes[0]!r}" if classes else "no sub-folders"
        raise ValueError(f"{path} holds {found}; give it one for each of 2 classes or more")
    endings = {end for end, kind in Image.registered_extensions().items() if kind in FORMATS}
    endings |= {".heic", ".heif"}  # of phones: read where pillow-heif is, else named
    files, labels = [], []
    for label, name in enumerate(classes):
        for inner in subfolders(path / name):
            warnings.warn(
                f"{path / name / inner} is a folder inside a class; skipped", stacklevel=3
            )
        for file in sorted((path / name).iterdir()):
            if file.suffix.lower() not in endings or file.name.startswith(".") or file.is_dir():
                continue
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
    return tuple(files), torch.tensor(labels), classes


def check_header(file: Path) -> None:
    """By a file's first bytes, ValueError where it is no picture, or larger than is safe."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=heif() if is_heic(file) else FORMATS):
                return
    except Exception:  # `open_rgb` has the words for it, and fails as soon
        open_rgb(file)


def read_all(data: FileDataset) -> ImageDataset:
    """Hold in memory what can be read, name what cannot; ValueError for a class without any."""
    pixels, labels, broken = data.take(slice(None))
    for message in broken:
        warnings.warn(f"{message}; skipped", stacklevel=3)
    for label, name in enumerate(data.classes):
        if label not in labels:
            raise ValueError(f"none of the pictures of class {name!r} can be read")
    return ImageDataset(pixels, labels, data.classes)
