"""What lies in a folder of submissions: which notebooks are graded, and which of their cells."""

import json
import re
from collections import Counter
from difflib import get_close_matches
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from nbformat.v4 import new_code_cell, new_markdown_cell

from .assignments import ALL, SOME, TEST, grade_id, is_assignment, is_task, source_of

LARGEST = 50_000_000  # bytes of a notebook
# Characters that are read, each cell taken for some more: a page's colours take time that grows
# with a cell's square. The lessons have at most 13,000 in 43 cells, none over 1,300.
LONGEST_CELL, LONGEST_BOOK, EACH = 10_000, 100_000, 100
LEFT_OUT = "# Left out, since too long to be read"
LIMITS = f"a cell may have {LONGEST_CELL:,} characters, a notebook {LONGEST_BOOK:,}"
# The ranks of files: its own name first, then one that is called a copy, then another name, which
# counts where there is nothing else. Of one rank the higher number counts.
OWN, COPY, RENAMED = 0, -1, -2
# How learning platforms name what they give back, all in one folder: who, and the file.
FLAT = (
    re.compile(r"(?P<who>.+)_\d+_assignsubmission_file_(?P<file>.+)"),  # Moodle
    re.compile(r".+_(?P<who>[^_]+)_attempt_[\d-]+_(?P<file>.+)"),  # Blackboard
    re.compile(r"(?P<who>[^_]+)(?:_LATE)?_\d+_\d+_(?P<file>.+)"),  # Canvas
)
DEEPEST = 20  # folders in one another whose files are named one by one
UNREAD = "This file could not be read as a notebook, so nothing in it was marked: hand it in again."
# How browsers, JupyterLab and people call a second copy. Of several downloads the last counts; what
# is called a copy, only where there is nothing else.
SECOND = re.compile(r"(?: ?\((?P<number>\d+)\)| (?P<other>\d+)|(?P<copy> - Copy| copy|-Copy\d*))+$")


def found_in(
    folder: Path, released: Path | None = None
) -> tuple[dict[tuple[str, str], Path], set[str], list[str]]:
    """Find the notebooks to grade, by student and assignment; and say why all else is not.

    Returns:
        The notebooks; the students of all files and folders; and a line for whatever is odd.
    """
    work: dict[tuple[str, str], tuple[tuple[int, int], Path]] = {}
    parts, notes = parts_in(released), []
    folders = [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
    senders = {student_of(path.name) for path in folders}
    for path in files_of(folder):
        student, file = sender(path.relative_to(folder))
        senders |= {student} - {""}
        stem, rank = assignment_of(Path(file).stem)
        reason = ""
        if path.is_symlink() or not path.is_file():
            reason = "it is a link, or no file"
        elif not student:
            reason = "it does not lie in a student's own folder, STUDENT/FILE"
        elif path.suffix != ".ipynb":
            reason = "it is no notebook"
        elif path.stat().st_size > LARGEST:
            reason = f"it is larger than {LARGEST // 1_000_000} MB; clear its outputs"
        elif not is_assignment(stem):
            stem, rank = assignment_within(path) or stem, (RENAMED, rank[1])
        stem = parts.get(stem, stem)
        before = work.get((student, stem))
        if not reason and not is_assignment(stem):
            near = get_close_matches(stem.lower(), ALL, 1)
            reason = "no assignment has this name" + (f"; is it {near[0]}?" if near else "")
        elif not reason and before and before[0] > rank:
            reason = f"{before[1].name} is"
        elif not reason:
            work[student, stem] = rank, path
            if before:
                path, reason = before[1], f"{path.name} is"
        if reason:
            notes.append(f"{path.relative_to(folder)} is not graded: {reason}")
    for (_, stem), (rank, path) in sorted(work.items()):
        name = path.relative_to(folder)
        if rank[0] == RENAMED:
            notes.append(f"{name} is graded as {stem}, whose tasks it holds")
        elif stem not in path.name:
            notes.append(f"{name} is graded as {stem}, which the class got")
        tasks = tasks_in(path).items()
        if others := sorted({other for task, other in tasks if not stem.startswith(other)}):
            notes.append(f"{name} also holds tasks of {', '.join(others)}, which are not graded")
    return {key: path for key, (_, path) in sorted(work.items())}, senders, notes


def parts_in(released: Path | None) -> dict[str, str]:
    """Give for a lesson of which a class got some sections alone the name of that assignment."""
    names = {path.stem for path in released.rglob("*.ipynb")} if released else set()
    parts: dict[str, list[str]] = {}
    for name in sorted(names):
        parts.setdefault(name.partition(SOME)[0], []).append(name)
    return {lesson: own[0] for lesson, own in parts.items() if len(own) == 1 and own != [lesson]}


def sender(path: Path) -> tuple[str, str]:
    """Give the student and the file's own name: of STUDENT/FILE, or as a platform calls it.

    The student is "" where nothing says who it is.
    """
    if len(path.parts) == 2:
        return student_of(path.parts[0]), path.name
    found = next(filter(None, (form.fullmatch(path.name) for form in FLAT)), None)
    return (found["who"], found["file"]) if found and len(path.parts) == 1 else ("", path.name)


def student_of(folder: str) -> str:
    """Give the student of a folder's name, to which Moodle adds a number and words of its own."""
    return re.sub(r"_\d+_assignsubmission_file_?$", "", folder)


def assignment_of(stem: str) -> tuple[str, tuple[int, int]]:
    """Give the assignment of a file's name, and the file's rank and number among several of it."""
    second = SECOND.search(stem)
    plain = SECOND.sub("", stem)
    copy = plain.removeprefix("Copy of ")
    if copy != plain or (second and second["copy"]):
        return copy, (COPY, 0)
    return copy, (OWN, int(second["number"] or second["other"]) if second else 0)


def assignment_within(path: Path) -> str | None:
    """Give the assignment that a notebook of another name is, or whose tasks it holds, or None."""
    try:
        said = parsed(path.read_bytes())["metadata"]["assignment"]
        if is_assignment(said):
            return said
    except Exception:  # whatever a file can be
        pass
    counts = Counter(tasks_in(path).values())
    return counts.most_common(1)[0][0] if counts else None


def tasks_in(path: Path) -> dict[str, str]:
    """Give the tasks that a notebook's cells are by name, or check, each with its assignment."""
    try:
        codes = codes_of(path.read_bytes())
    except Exception:  # whatever a file can be
        return {}
    named = {name for cell_name, source in codes for name in (cell_name, *checked_in(source))}
    known = assignments_by_task()
    return {name: known[name] for name in named if name in known}


@cache
def assignments_by_task() -> dict[str, str]:
    """Give for each task the assignment that has it."""
    cells = ((name, cell) for name in ALL for cell in source_of(name)["cells"])
    return {str(grade_id(cell)): name for name, cell in cells if is_task(cell)}


def files_of(folder: Path) -> list[Path]:
    """List all files below a folder, without following links; of deeper folders only the names."""
    paths, waiting = [], [folder]
    while waiting:
        for path in waiting.pop().iterdir():
            inner = path.is_dir() and not path.is_symlink()
            deep = len(path.relative_to(folder).parts) > DEEPEST
            (waiting if inner and not deep else paths).append(path)
    return sorted(paths)


def is_test(cell: Any) -> bool:
    """Whether a cell is one of nbgrader's that give points."""
    return str(grade_id(cell)).startswith(TEST)


def in_order(released: dict[str, Any], path: Path) -> tuple[dict[str, Any], str]:
    """Bring a submission into the form that nbgrader needs, whatever became of it.

    It has the student's code, in their order, each task below its name and above its grade cell. Of
    several cells for a task the last counts of those with the best claim: its own by metadata,
    which some editors lose, if something was written in it; one with its check; one that defines
    its name.

    Returns:
        The notebook; and what is amiss with the submission, or "".
    """
    tasks: dict[str, list[Any]] = {}  # a heading, the cell, the grade cell
    for cell in released["cells"]:
        name = str(grade_id(cell)).removeprefix(TEST)
        if is_task(cell):
            tasks[name] = [new_markdown_cell(f"## {name}", id=f"text-{name}"), cell]
        elif is_test(cell):
            tasks[name].append(cell)
    problem, submitted, cells = "", [], [released["cells"][0]]
    try:
        codes = codes_of(path.read_bytes())
        submitted = [part for cell in codes for part in parted(*cell, tasks)]
    except Exception as error:  # whatever a file can be
        problem = f"no notebook that can be read ({type(error).__name__})"
        cells.append(new_markdown_cell(f"**{UNREAD}**", id="unread"))
    best: dict[str, tuple[int, int]] = {}  # of each task the claim and the number of its cell
    for number, (cell_name, source) in enumerate(submitted):
        for name, claim in claims(cell_name, source, tasks):
            best[name] = max(best.get(name, (0, 0)), (claim, number))
    names = {number: name for name, (_, number) in best.items()}
    left = {text_of(cell) for _, *both in tasks.values() for cell in both}  # as it was given
    for number, (cell_name, source) in enumerate(submitted):
        if number in names:
            heading, cell, test = tasks[names[number]]
            cells += [heading, cell | {"source": source, "id": f"task-{number}"}, test]
        elif not str(cell_name).startswith(TEST) and source.strip() not in left:
            cells.append(new_code_cell(source, id=f"own-{number}"))
    if problem:  # said once: no task has a word of its own
        cells += [cell | {"source": ""} for _, *both in tasks.values() for cell in both]
        unread = {"metadata": released["metadata"] | {"unread": True}}
        return released | unread | {"cells": cells}, problem
    missing = [name for name in tasks if name not in names.values()]
    for name in missing:
        heading, cell, test = tasks[name]
        cells += [heading, cell | {"source": ""}, test]
    if missing:
        problem = f"no cell for {', '.join(missing)}"
    if any(source.startswith(LEFT_OUT) for _, source in submitted):
        problem = "; ".join(filter(None, [problem, f"something is left out: {LIMITS}"]))
    return released | {"cells": cells}, problem


def parsed(data: bytes) -> dict[str, Any]:
    """Read JSON, whatever its encoding.

    Raises:
        ValueError: it is none.
    """
    return json.loads(data.decode(json.detect_encoding(data), "replace"))


def codes_of(data: bytes) -> list[tuple[str | None, str]]:
    """Read of each code cell of a notebook nbgrader's name, and the source, made writable.

    Raises:
        Exception: of many kinds, where it is no notebook.
    """
    cells = [cell for cell in parsed(data)["cells"] if isinstance(cell, dict)]
    codes = [cell for cell in cells if cell.get("cell_type") == "code"]
    sources = ["".join(cell.get("source") or "").lstrip("\ufeff") for cell in codes]
    clean = [x.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for x in sources]
    return shortened(list(zip(map(grade_id, codes), clean, strict=True)))


def shortened(cells: list[tuple[str | None, str]]) -> list[tuple[str | None, str]]:
    """Leave out each cell that is too long, and all from where the notebook is; say so there."""
    kept, left = [], LONGEST_BOOK
    for number, (name, source) in enumerate(cells):
        if len(source) > LONGEST_CELL:
            source = f"{LEFT_OUT}: {len(source):,} characters; {LIMITS}."
        left -= len(source) + EACH
        if left < 0:
            return [*kept, (None, f"{LEFT_OUT}: {len(cells) - number} cells; {LIMITS}.")]
        kept.append((name, source))
    return kept


def parted(name: str | None, source: str, tasks: dict[str, list]) -> list[tuple[str | None, str]]:
    """Cut a cell that holds several tasks, as JupyterLab merges cells, into a cell for each.

    It is cut above their definitions, and below their checks; its name stays with its own task.
    """
    names = f"({'|'.join(tasks)})\\b"
    defined = [*re.finditer(rf"(?m)^(?:@.*\n)*(?:def|class) {names}", source)]
    checked = [*re.finditer(rf"(?m)^checks\.{names}\(.*\)[^\S\n]*(?:#.*)?$", source)]
    if len({found[1] for found in defined + checked}) < 2:
        return [(name, source)]
    cuts = {found.start() for found in defined} | {found.end() for found in checked}
    parts = [source[a:b].strip("\n") for a, b in pairwise(sorted({0, *cuts, len(source)}))]
    parts = [part for part in parts if part]
    held = [re.findall(rf"(?m)^(?:def |class |checks\.){names}", part) for part in parts]
    own = max((number for number, found in enumerate(held) if name in found), default=0)
    return [(name if number == own else None, part) for number, part in enumerate(parts)]


def text_of(cell: Any) -> str:
    """Give a cell's source, without what is empty around it."""
    return "".join(cell["source"]).strip()


def checked_in(source: str) -> list[str]:
    """List the names of the checks that a cell calls."""
    return re.findall(r"\bchecks\.(\w+)\(", source)


def claims(cell_name: str | None, source: str, tasks: dict[str, list]) -> list[tuple[str, int]]:
    """Name the tasks whose answer a cell may be, each with how good its claim is."""
    if cell_name in tasks:
        return [(cell_name, 3 if source.strip() not in ("", text_of(tasks[cell_name][1])) else 0)]
    checked = [name for name in checked_in(source) if name in tasks]
    if checked:
        return [(checked[-1], 2)]
    defined = re.findall(r"(?m)^(?:def|class) (\w+)", source)
    return [(name, 1) for name in defined if name in tasks][:1]
