"""Lesson 07: which pictures lie in a folder, and of which part and class each is."""

import csv
import os
import re
import warnings
from itertools import permutations
from pathlib import Path
from unicodedata import normalize

import torch
from PIL import Image
from torch import Tensor

from ..images import FORMATS, as_path, decode, formats

# What people call the folder of each part, alone or among other words: Training, seg_test, dev-set.
PART_OF = dict(train="train", training="train", test="test", testing="test")
PART_OF |= dict.fromkeys(("val", "valid", "validation", "dev", "eval"), "val")
SYSTEM = ("@eaDir", "#recycle", "$RECYCLE.BIN", "lost+found", "System Volume Information")


def find_parts(path: Path) -> dict[str, Path]:
    """Find the folders of train, val and test; or take the whole folder as train, to be split.

    A folder called train may well be a class, of vehicles. But folders that have two sub-folders in
    common, or one where they are called so, are parts, never classes; ValueError where their names
    do not say which.
    """
    inside, classes, words, part_of = {}, {}, {}, {}
    for name in subfolders(path):
        packed = subfolders(path / name) == [name]  # seg_train/seg_train, as in archives
        inside[name] = path / name / name if packed else path / name
        classes[name] = {plain_name(inner).casefold() for inner in subfolders(inside[name])}
        words[name] = re.findall("[a-z]+", name.lower())
        part_of[name] = next((PART_OF[word] for word in words[name] if word in PART_OF), "")
    alike = set()
    for one, other in permutations(inside, 2):
        called_so = part_of[one] and part_of[other]
        if len(classes[one] & classes[other]) >= (1 if called_so else 2):
            alike.add(one)
    parts = {n: p for n, p in part_of.items() if n in alike or (p and len(words[n]) == 1)}
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
    return name.startswith((".", "__")) or name in SYSTEM


def plain_name(name: str) -> str:
    """Give a name as the eye sees it: é in one character, no spaces at its ends."""
    return normalize("NFC", name).strip()


def list_files(
    path: Path, table: str | Path | None = None
) -> tuple[list[Path], Tensor, tuple[str, ...]]:
    """List a folder's pictures, the number of each one's class, and the classes.

    Their classes are the sub-folders, or stand in the table.
    """
    by_class = _in_folders(path) if table is None else _in_table(path, as_path(table))
    if len(by_class) < 2:
        content = f"only the sub-folder {next(iter(by_class))!r}" if by_class else "no sub-folders"
        problem = f"{path} holds {content}" if table is None else f"{table} holds one label alone"
        raise ValueError(f"{problem}; give pictures of 2 classes or more, a sub-folder for each")
    files, labels = [], []
    for label, (name, members) in enumerate(by_class.items()):
        for file in members:
            try:
                _check_header(file)
                files.append(file)
                labels.append(label)
            except ValueError as error:
                warnings.warn(f"{error}; skipped", stacklevel=3)
        if label not in labels:
            advice = "each sub-folder is a class: put pictures in it, or take it away"
            raise ValueError(f"{path / name} holds no picture that can be read; {advice}")
    return files, torch.tensor(labels), tuple(by_class)


def _in_folders(path: Path) -> dict[str, list[Path]]:
    """List the pictures in each sub-folder; ValueError for two whose names look alike."""
    by_class: dict[str, list[Path]] = {}
    for name in sorted(subfolders(path), key=plain_name):
        if plain_name(name) in by_class:
            problem = f"{path} holds two sub-folders that look alike, one of them {name!a}"
            raise ValueError(f"{problem} (spaces, or two forms of a letter); make them one")
        by_class[plain_name(name)] = picture_files(path / name)
    return by_class


def _in_table(path: Path, table: Path) -> dict[str, list[Path]]:
    """List the pictures of each label in a CSV of `file,label`, whose first row may be a title."""
    by_name: dict[str, list[Path]] = {}
    pictures = picture_files(path)
    for file in pictures:
        name = file.relative_to(path)
        for form in {name, name.with_suffix("")}:
            by_name.setdefault(plain_name(form.as_posix()), []).append(file)
    try:
        lines = table.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{table} cannot be read: {error}") from error
    delimiter = ";" if lines and ";" in lines[0] and "," not in lines[0] else ","
    rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
    for row in rows:
        if len(row) != 2:
            raise ValueError(f"{table} has the row {row}; give two columns, file and label")
    if rows and rows[0][1] not in [label for _, label in rows[1:]]:
        rows = rows[1:]  # a title
    label_of: dict[Path, str] = {}
    absent = []
    for row in rows:
        name, label = map(plain_name, row)
        files = by_name.get(name.replace("\\", "/"), [])
        if len(files) > 1:
            several = " and ".join(sorted(file.name for file in files))
            raise ValueError(f"{table} names {name}, which {several} may be; write its ending")
        if not files:
            absent.append(name)
        elif label_of.setdefault(files[0], label) != label:
            both = f"{label_of[files[0]]!r} and {label!r}"
            raise ValueError(f"{table} gives {name} two labels, {both}")
    if not label_of:
        raise ValueError(f"{table} names no picture in {path}; give two columns, file and label")
    unnamed = len(pictures) - len(label_of)
    if absent or unnamed:
        problem = f"{table} names {len(absent)} pictures that are not in {path}"
        problem += f" ({absent[0]} first)" if absent else ""
        warnings.warn(f"{problem}, and not {unnamed} that are; skipped", stacklevel=4)
    by_class = {label: [] for label in sorted({*label_of.values()})}
    for file, label in sorted(label_of.items()):
        by_class[label].append(file)
    return by_class


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
    files, seen = [], {*map(str, Path(os.path.realpath(path)).parents)}
    for place, folders, names in os.walk(path, followlinks=True):
        if (real := os.path.realpath(place)) in seen:
            folders.clear()  # a link that leads back
            continue
        seen.add(real)
        folders[:] = [name for name in folders if not _is_hidden(name)]
        good = [n for n in names if Path(n).suffix.lower() in endings and not _is_hidden(n)]
        files += [Path(place, name) for name in good]
    return sorted(files)
