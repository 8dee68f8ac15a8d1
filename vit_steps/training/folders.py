"""Lesson 07: a folder of the learner's own pictures."""

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import torch
from PIL import Image
from torch import Tensor

from ..images import FORMATS, heif, is_heic, open_rgb
from ..inputs import as_pair, check_fraction
from .dataset import FileDataset, ImageDataset, Pictures, check_enough, hold_out, read_picture

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
    where, files = find_parts(path), {}
    for part, place in where.items():
        files[part] = list_files(place)
    check_same_classes(path, where)
    needed = sum(len(listed) for listed in files.values()) * 3 * height * width  # bytes
    found = {}
    for part, listed in files.items():
        read = read_all if needed <= limit else read_later
        found[part] = read(where[part], listed, (height, width))

    train = found["train"]
    shares = {}
    if "test" not in found:
        shares["test"] = fraction
    if "val" not in found and val_fraction:
        shares["val"] = val_fraction
    if len(shares) == 2:
        check_enough(
            train.labels,
            train.classes,
            3,
            "one each for train, val and test (or set val_fraction to 0)",
        )
    for part, share in shares.items():
        train, found[part] = divide(train, share, seed)
    return Parts(train, found.get("val"), found["test"])


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


def check_same_classes(path: Path, where: dict[str, Path]) -> None:
    """The parts must hold the same sub-folders."""
    classes = set(subfolders(where["train"]))
    for part, place in where.items():
        odd = sorted(classes ^ set(subfolders(place)))
        if odd:
            raise ValueError(
                f"{path}: train and {part} hold other classes; only one has {', '.join(odd)}"
            )


def subfolders(path: Path) -> list[str]:
    """The names of the folders in a folder, sorted; not hidden ones, nor such as __MACOSX."""
    return sorted(
        p.name for p in path.iterdir() if p.is_dir() and not p.name.startswith((".", "__"))
    )


def list_files(path: Path) -> list[tuple[Path, str]]:
    """The files that look like pictures, by their endings, each with the name of its class."""
    classes = subfolders(path)
    if len(classes) < 2:
        found = f"only the sub-folder {classes[0]!r}" if classes else "no sub-folders"
        raise ValueError(
            f"{path} holds {found}; give it a sub-folder for each of 2 classes or more"
        )
    endings = {end for end, kind in Image.registered_extensions().items() if kind in FORMATS}
    endings |= {".heic", ".heif"}  # of phones: read where pillow-heif is, else named
    for name in classes:
        for inner in subfolders(path / name):
            warnings.warn(
                f"{path / name / inner} is a folder inside a class; skipped", stacklevel=3
            )
    return [
        (file, name)
        for name in classes
        for file in sorted((path / name).iterdir())
        if file.suffix.lower() in endings and not file.name.startswith(".") and file.is_file()
    ]


def read_all(path: Path, files: list[tuple[Path, str]], size: tuple[int, int]) -> ImageDataset:
    """Hold every picture in memory; what cannot be read is named and left out."""
    pixels, names = torch.empty(len(files), 3, *size, dtype=torch.uint8), []
    for file, name in files:
        try:
            pixels[len(names)] = read_picture(file, size)
        except ValueError as error:
            warnings.warn(f"{error}; skipped", stacklevel=3)
        else:
            names.append(name)
    labels, classes = number(path, names)
    return ImageDataset(pixels[: len(labels)], labels, classes)


def read_later(path: Path, files: list[tuple[Path, str]], size: tuple[int, int]) -> FileDataset:
    """Keep the files alone; one whose first bytes are not a picture's is named and left out."""
    good = []
    for file, name in files:
        try:
            check_header(file)
        except ValueError as error:
            warnings.warn(f"{error}; skipped", stacklevel=3)
        else:
            good.append((file, name))
    labels, classes = number(path, [name for _, name in good])
    return FileDataset(tuple(file for file, _ in good), labels, classes, size)


def check_header(file: Path) -> None:
    """See by its first bytes that a file is a picture, without decoding it.

    Raises:
        ValueError: it is none, or larger than is safe.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=heif() if is_heic(file) else FORMATS):
                return
    except Exception:  # `open_rgb` has the words for it, and fails as soon
        open_rgb(file)


def number(path: Path, names: list[str]) -> tuple[Tensor, tuple[str, ...]]:
    """The labels of pictures by the names of their classes, and all classes in order."""
    classes = tuple(subfolders(path))
    numbers = {name: label for label, name in enumerate(classes)}
    for name in sorted(set(classes) - set(names)):
        raise ValueError(
            f"{path / name} holds no picture that can be read; each sub-folder is taken for a "
            "class (unless they are train, test and val): put pictures in it, or take it away"
        )
    return torch.tensor([numbers[name] for name in names]), classes


def divide(data: Pictures, fraction: float, seed: int) -> tuple[Pictures, Pictures]:
    """As `split`, but within the memory that `data` holds, which is rearranged."""
    held = hold_out(data.labels, data.classes, fraction, seed)
    if isinstance(data, FileDataset):
        return data.part(~held), data.part(held)
    order = torch.cat([(~held).nonzero(), held.nonzero()])[:, 0]
    rearrange(data.pixels, order.tolist())
    both = ImageDataset(data.pixels, data.labels[order], data.classes)
    border = len(data) - int(held.sum())
    return both.part(slice(border)), both.part(slice(border, None))


def rearrange(rows: Tensor, order: list[int]) -> None:
    """`rows[order]`, written into `rows` itself, one cycle of the permutation after another."""
    done = [False] * len(order)
    for start in range(len(order)):
        if done[start]:
            continue
        first, here = rows[start].clone(), start
        while order[here] != start:
            rows[here] = rows[order[here]]
            done[here] = True
            here = order[here]
        rows[here] = first
        done[here] = True
