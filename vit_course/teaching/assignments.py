"""The lessons as assignments: nbgrader's source is made of the lessons and their solutions.

A task is a code cell of a lesson that ends with its check, `checks.patchify(patchify)`. The lesson
has its text, its minutes and its stub, the solutions have its answer; here the two become one cell
with nbgrader's marks, and a grade cell below it. So neither is written twice, and who reads the
solutions meets no marks. A task has as many points as minutes, all or none. An unseen task
(`unseen.py`) is an assignment of its own.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from difflib import SequenceMatcher
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..folding import checked, needed
from ..lessons import ROOT, SOLUTIONS
from .unseen import SECTIONS, UNSEEN

# Lesson 00 is an introduction, and 08 is about experiments that differ from machine to machine.
ASSIGNMENTS = [p.stem for p in SOLUTIONS if p.stem[:2] not in "00 08"]
ENDING = "_unseen"  # of the name of a lesson's unseen task
ALL = ASSIGNMENTS + [lesson + ENDING for lesson in UNSEEN]
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
LEFT_OPEN = "#: "  # before a line of the stub, above the solution that takes its place
TEST = "test-"  # what the names of grade cells begin with
NOTE = """# {title}: assignment

Write your answer where `...` stands, run the cell, and see what its check says. What you hand in is
judged again, in a fresh process and on other numbers too: only what the cells define counts, not
what they print. Each cell is judged by itself, with what it needs of the other cells. Keep the
names, and hand in this file under its own name, `{name}`.

The texts are the lesson's: a section, a cell or a figure that they name stands there."""
NOTE_UNSEEN = """# {title}: a task that you have not seen

Write your answer where `...` stands. It needs nothing but this lesson and those before it, whose
pieces you may use: `checks.mine("patchify")` brings one. No check answers you here: the task is
judged when you have handed it in, on other numbers too. So try it on small tensors of which you
know what must come out. Keep the names, and hand in this file under its own name, `{name}`."""


def read_book(path: Path) -> dict[str, Any]:
    """A notebook, each cell's source as one text."""
    book = json.loads(path.read_text(encoding="utf-8"))
    for cell in book["cells"]:
        cell["source"] = "".join(cell["source"])
    return book


def write_book(path: Path, book: dict[str, Any]) -> None:
    """Write a notebook, and the folder that it stands in if that is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def task_of(cell: dict[str, Any]) -> str | None:
    """The task of a cell, by the name of the check that ends it."""
    return checked(cell["source"]) if cell["cell_type"] == "code" else None


def marked(stub: str, solution: str) -> str:
    """A solution in which nbgrader's marks enclose what the stub leaves open."""
    left, answer = stub.splitlines(), solution.splitlines()
    lines = []
    for kind, a, b, c, d in SequenceMatcher(None, left, answer, autojunk=False).get_opcodes():
        if kind == "equal":
            lines += answer[c:d]
        else:
            lines += [BEGIN, *(LEFT_OPEN + line for line in left[a:b]), *answer[c:d], END]
    return "\n".join(lines)


def cleared(source: str) -> str:
    """A marked cell as learners get it: the stub in the place of each solution."""
    lines, inside = [], False
    for line in source.splitlines():
        if line in (BEGIN, END):
            inside = line == BEGIN
        elif not inside or line.startswith(LEFT_OPEN):
            lines.append(line.removeprefix(LEFT_OPEN) if inside else line)
    return "\n".join(lines)


def tasks_of(lesson: dict[str, Any]) -> dict[str, tuple[str, str, int]]:
    """Of each task of a lesson its stub, its text without folded answers, and its minutes."""
    found, texts = {}, ""
    for cell in lesson["cells"]:
        if cell["cell_type"] == "markdown":
            texts += "\n\n" + cell["source"]
        elif name := task_of(cell):
            parts = re.split(r"(?m)^(?=##+ )", texts)
            text = next((p for p in reversed(parts) if re.search(r"\(\d+ minutes?\)", p)), "")
            if not text:  # a second cell of the same task, or no task
                continue
            minutes = int(re.findall(r"\((\d+) minutes?\)", text)[0])
            # A figure is the output of a cell that is not here.
            folded = r"<details>.*?</details>|^\*Figure:.*?\n\n"
            text = re.sub(folded, "", text, flags=re.DOTALL | re.MULTILINE)
            found.setdefault(name, (cell["source"], text.strip(), minutes))
            texts = ""
    return found


def nbgrader_cell(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """The metadata by which nbgrader knows a cell."""
    usual = {"grade": False, "solution": False, "locked": False, "task": False}
    return {"nbgrader": usual | {"schema_version": 3, "grade_id": name} | options}


def grade_id(cell: dict[str, Any]) -> str | None:
    """The name by which nbgrader knows a cell, if it has one."""
    own = (cell.get("metadata") or {}).get("nbgrader", {})
    given = own.get("grade_id") if isinstance(own, dict) else None
    return given if isinstance(given, str) else None


def is_task(cell: dict[str, Any]) -> bool:
    """Whether a cell is one that students fill."""
    return cell["metadata"].get("nbgrader", {}).get("solution", False)


def code(source: str, metadata: dict[str, Any], id: str) -> dict[str, Any]:
    """A code cell that was not run."""
    empty = {"execution_count": None, "outputs": []}
    return {"cell_type": "code", "id": id, "metadata": metadata, "source": source} | empty


def markdown(source: str, id: str) -> dict[str, Any]:
    """A cell of text."""
    return {"cell_type": "markdown", "id": id, "metadata": {}, "source": source}


def source_of(assignment: str) -> dict[str, Any]:
    """nbgrader's source of an assignment: its tasks, and the definitions that they stand on."""
    stem = assignment.removesuffix(ENDING)
    lesson = read_book(ROOT / "notebooks" / f"{stem}.ipynb")
    book = read_book(ROOT / "notebooks" / "solutions" / f"{stem}.ipynb")
    codes = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    unseen = stem != assignment
    cells = [codes[0], *unseen_cells(stem)] if unseen else lesson_cells(tasks_of(lesson), codes)
    title = lesson["cells"][0]["source"].splitlines()[0].removeprefix("# ")
    note = (NOTE_UNSEEN if unseen else NOTE).format(title=title, name=f"{assignment}.ipynb")
    return book | {"cells": [markdown(note, "title"), *cells]}


def unseen_cells(lesson: str) -> list[dict[str, Any]]:
    """The cells of a lesson's unseen task; above it the pieces that its answer is made of."""
    text, stub, answer, _ = SECTIONS[lesson]
    points = int(re.findall(r"\((\d+) minutes\)", text)[0])
    above = needed(UNSEEN[lesson], set()).split("\n")
    return task_cells(UNSEEN[lesson].name, (stub, text, points), answer, above, 1)


def lesson_cells(
    tasks: dict[str, tuple[str, str, int]], codes: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The cells of a lesson's tasks, and of all in its solutions that these stand on."""
    from vit_course.checks.sources import names_in, used_names

    wanted: set[str] = set()
    cells: list[dict[str, Any]] = []  # from the last to the first
    for number, cell in reversed(list(enumerate(codes))):
        source, name = cell["source"], task_of(cell)
        if name in tasks:
            wanted |= set(used_names(source))
            above = given_above(source, tasks[name][0])
            source = "\n".join(x for x in source.splitlines() if x not in above).strip()
            cells += reversed(task_cells(name, tasks[name], source, above, number))
        elif number == 0 or names_in(source) & wanted:
            wanted |= set(used_names(source))
            cells.append(code(source, cell["metadata"] if number == 0 else {}, f"cell-{number}"))
    return cells[::-1]


def task_cells(
    name: str, task: tuple[str, str, int], solution: str, above: list[str], number: int
) -> list[dict[str, Any]]:
    """The cells of a task: what is given above it, its text, the cell to fill, its points.

    Args:
        name: the task.
        task: its stub, its text and its points.
        solution: the source of the solution, without what is given.
        above: the lines that are given.
        number: of its cell.
    """
    stub, text, points = task
    graded = {"grade": True, "locked": True, "points": points}
    said = f"# {points} points: `{name}` is judged in a process of its own."
    return [
        *([code("\n".join(above).strip(), {}, f"given-{number}")] if any(above) else []),
        markdown(text, f"text-{number}"),
        code(marked(stub, solution), nbgrader_cell(name, {"solution": True}), f"cell-{number}"),
        code(said, nbgrader_cell(f"{TEST}{name}", graded), f"test-{number}"),
    ]


def given_above(source: str, stub: str) -> list[str]:
    """What a solution begins with that its stub lacks: imports, and pieces of earlier lessons."""
    head = re.split(r"(?m)^(?=def |class |@)", source)[0]
    return [line for line in head.splitlines() if line and line not in stub.splitlines()]


def release(to: Path, assignments: list[str] = ALL) -> list[str]:
    """Make the students' versions of these assignments; the unseen ones in a folder of their own.

    Returns:
        What to tell the teacher.

    Raises:
        RuntimeError: nbgrader is missing, or failed.
    """
    with TemporaryDirectory() as other:
        course = Path(other)
        lay_source(course, assignments)
        for name in assignments:
            place = to / "unseen" if name.endswith(ENDING) else to
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(course / "release" / name / f"{name}.ipynb", place)
    shutil.copy(ROOT / "notebooks" / "HANDING_IN.md", to)
    unseen = sum(name.endswith(ENDING) for name in assignments)
    held = f"{to.name} holds {len(assignments) - unseen} assignments, one notebook each"
    return [f"{held}, and {unseen} unseen tasks in a folder of their own."]


def lay_source(course: Path, assignments: list[str]) -> None:
    """Make a course folder of nbgrader's with these assignments, and their students' versions."""
    settings = "from vit_course.teaching.grading import configure\n\nconfigure(get_config())\n"
    course.mkdir(parents=True, exist_ok=True)
    (course / "nbgrader_config.py").write_text(settings, encoding="utf-8")
    for name in assignments:
        write_book(course / "source" / name / f"{name}.ipynb", source_of(name))
    nbgrader(course, "generate_assignment", "--create", "--assignment=*")


def nbgrader(course: Path, *command: str) -> None:
    """Run a command of nbgrader's in its course folder.

    Raises:
        RuntimeError: it is missing, or it did not do all that it was asked; with what it said.
    """
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    own = {f"JUPYTER_{kind}_DIR": str(course / ".jupyter") for kind in ("CONFIG", "DATA")}
    # nbgrader calls a program of its own environment
    own["PATH"] = str(Path(sys.executable).parent) + os.pathsep + os.environ.get("PATH", "")
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *command],
        cwd=course,
        env=os.environ | own | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    if "No module named nbgrader" in done.stderr:
        raise RuntimeError("nbgrader is missing: `pip install -e '.[teach]'` brings it")
    if done.returncode:
        raise RuntimeError(f"nbgrader {command[0]} failed:\n{(done.stdout + done.stderr)[-3000:]}")
