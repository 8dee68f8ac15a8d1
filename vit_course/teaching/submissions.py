"""What lies in a folder of submissions: which notebooks are graded, and which of their cells."""

import json
import re
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from .assignments import ALL, TEST, code, grade_id, is_task, markdown

LARGEST = 50_000_000  # bytes of a notebook
DEEPEST = 20  # folders in one another whose files are named one by one
UNREAD = "This file could not be read as a notebook, so nothing in it was marked: hand it in again."
# How browsers, JupyterLab and people call a second copy. Of several downloads the last counts; what
# is called a copy, only where there is nothing else.
SECOND = re.compile(r"(?: ?\((?P<number>\d+)\)| (?P<other>\d+)|(?P<copy> - Copy| copy|-Copy\d*))+$")


def found_in(folder: Path) -> tuple[dict[tuple[str, str], Path], list[str]]:
    """The notebooks to grade, by student and assignment; and of every other file why it is not."""
    work: dict[tuple[str, str], tuple[int, Path]] = {}
    told = []
    for path in files_of(folder):
        parts = path.relative_to(folder).parts
        stem, rank = named(path.stem)
        why = ""
        if path.is_symlink() or not path.is_file():
            why = "it is a link, or no file"
        elif len(parts) != 2:
            why = "it does not lie in a student's own folder, STUDENT/FILE"
        elif path.suffix != ".ipynb":
            why = "it is no notebook"
        elif stem not in ALL:
            near = get_close_matches(stem.lower(), ALL, 1)
            why = "no assignment has this name" + (f"; is it {near[0]}?" if near else "")
        elif path.stat().st_size > LARGEST:
            why = f"it is larger than {LARGEST // 1_000_000} MB; clear its outputs"
        elif (before := work.get((parts[0], stem))) and before[0] > rank:
            why = f"{before[1].name} is"
        elif before:
            told.append(f"{before[1].relative_to(folder)} is not graded: {path.name} is")
        if why:
            told.append(f"{path.relative_to(folder)} is not graded: {why}")
        else:
            work[parts[0], stem] = rank, path
    return {key: path for key, (_, path) in sorted(work.items())}, told


def named(stem: str) -> tuple[str, int]:
    """The assignment of a file's name, and its rank among several of it."""
    second = SECOND.search(stem)
    plain = SECOND.sub("", stem)
    copy = plain.removeprefix("Copy of ")
    if copy != plain or (second and second["copy"]):
        return copy, -1
    return copy, int(second["number"] or second["other"]) if second else 0


def files_of(folder: Path) -> list[Path]:
    """All files below a folder, without following links; of deeper folders at most the names."""
    found, waiting = [], [folder]
    while waiting:
        for path in waiting.pop().iterdir():
            inner = path.is_dir() and not path.is_symlink()
            deep = len(path.relative_to(folder).parts) > DEEPEST
            (waiting if inner and not deep else found).append(path)
    return sorted(found)


def is_test(cell: Any) -> bool:
    """Whether a cell is one of nbgrader's that give points."""
    return str(grade_id(cell)).startswith(TEST)


def in_order(released: dict[str, Any], path: Path) -> tuple[dict[str, Any], str]:
    """A submission as nbgrader needs it, whatever became of it: the student's code, in their order,
    each task below its name and above its grade cell; and what is amiss, or "".

    Of several cells for a task the last counts of those with the best claim: its own by metadata,
    which some editors lose, if something was written in it; one with its check; one that defines
    its name.
    """
    tasks: dict[str, list[Any]] = {}  # a heading, the cell, the grade cell
    for cell in released["cells"]:
        name = str(grade_id(cell)).removeprefix(TEST)
        if is_task(cell):
            tasks[name] = [markdown(f"## {name}", f"text-{name}"), cell]
        elif is_test(cell):
            tasks[name].append(cell)
    amiss, theirs = "", []
    try:
        theirs = codes_of(path.read_bytes())
    except Exception as error:  # whatever a file can be
        amiss = f"no notebook that can be read ({type(error).__name__})"
    best: dict[str, tuple[int, int]] = {}  # of each task the claim and the number of its cell
    for number, (given, source) in enumerate(theirs):
        for name, claim in claims(given, source, tasks):
            best[name] = max(best.get(name, (0, 0)), (claim, number))
    names = {number: name for name, (_, number) in best.items()}
    cells = [released["cells"][0]]
    if amiss:
        cells.append(markdown(f"**{UNREAD}**", "unread"))
    for number, (given, source) in enumerate(theirs):
        if number in names:
            heading, cell, test = tasks[names[number]]
            cells += [heading, cell | {"source": source, "id": f"task-{number}"}, test]
        elif not str(given).startswith(TEST):
            cells.append(code(source, {}, f"own-{number}"))
    missing = [name for name in tasks if name not in names.values()]
    for name in missing:
        cells += tasks[name]
    if missing and not amiss:
        amiss = f"no cell for {', '.join(missing)}"
    return released | {"cells": cells}, amiss


def codes_of(data: bytes) -> list[tuple[str | None, str]]:
    """Of each code cell of a notebook nbgrader's name, and the source, as text that can be written.

    Raises:
        Exception: of many kinds, where it is no notebook.
    """
    cells = json.loads(data.decode(json.detect_encoding(data), "replace"))["cells"]
    codes = [c for c in cells if isinstance(c, dict) and c.get("cell_type") == "code"]
    sources = ["".join(cell.get("source") or "").lstrip("\ufeff") for cell in codes]
    clean = [x.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for x in sources]
    return list(zip(map(grade_id, codes), clean, strict=True))


def claims(given: str | None, source: str, tasks: dict[str, list]) -> list[tuple[str, int]]:
    """The tasks whose answer a cell may be, and how good its claim is."""
    if given in tasks:
        stub = "".join(tasks[given][1]["source"]).strip()
        return [(given, 3 if source.strip() not in ("", stub) else 0)]
    called = [name for name in re.findall(r"\bchecks\.(\w+)\(", source) if name in tasks]
    if called:
        return [(called[-1], 2)]
    defined = re.findall(r"(?m)^(?:def|class) (\w+)", source)
    return [(name, 1) for name in defined if name in tasks][:1]
