"""The lessons as assignments: nbgrader's source is made of the lessons, without any answer.

A task is a code cell of a lesson that ends with its check, `checks.patchify(patchify)`. Here it
comes with its text, the lines that its answer needs, and a grade cell below it, which gives as many
points as the task has minutes, all or none. An unseen task (`unseen.py`) is an assignment of its
own; so is what a lesson asks in some of its sections, whose name says which:
`04_attention_sections_3_exercises`.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell

from .. import address
from ..folding import answers_of, needed, setup_of, task_of
from ..lessons import ROOT, SOLUTIONS, section_of
from .unseen import SECTIONS, UNSEEN

# Lesson 00 is an introduction, and 08 is about experiments that differ from machine to machine.
ASSIGNMENTS = [p.stem for p in SOLUTIONS if p.stem[:2] not in "00 08"]
ENDING = "_unseen"  # of the name of a lesson's unseen task
ALL = ASSIGNMENTS + [lesson + ENDING for lesson in UNSEEN]
SOME = "_sections_"  # after a lesson's name, before those of its sections
TEST = "test-"  # what the names of grade cells begin with
MINUTES = re.compile(r"\((\d+) minutes?\)")
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


def write_book(path: Path, book: dict[str, Any]) -> None:
    """Write a notebook, and the folder that it stands in if that is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def texts_of(lesson: Any) -> dict[str, tuple[str, str]]:
    """Give the stub of each task of a lesson, and its text, without folded answers."""
    texts_by_task, text = {}, ""
    for cell in lesson.cells:
        if cell.cell_type == "markdown":
            text += "\n\n" + cell.source
        elif exercise := task_of(cell):
            sections = re.split(r"(?m)^(?=##+ )", text)
            section = next(part for part in reversed(sections) if MINUTES.search(part))
            unfolded = re.sub(r"(?s)<details>.*?</details>", "", section)
            texts_by_task[exercise.name] = cell.source, unfolded.strip()
            text = ""
    return texts_by_task


def nbgrader_cell(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Make the metadata by which nbgrader knows a cell."""
    usual = {"grade": False, "solution": False, "locked": False, "task": False}
    return {"nbgrader": usual | {"schema_version": 3, "grade_id": name} | options}


def grade_id(cell: dict[str, Any]) -> str | None:
    """Give the name by which nbgrader knows a cell, if it has one."""
    match cell.get("metadata"):
        case {"nbgrader": {"grade_id": str(name)}}:
            return name
    return None


def is_task(cell: dict[str, Any]) -> bool:
    """Whether a cell is one that students fill."""
    return cell["metadata"].get("nbgrader", {}).get("solution", False)


def of(lessons: list[str], sections: Collection[str] = ()) -> list[str]:
    """Name the assignments of lessons: all of each and its unseen task, or some sections alone.

    Raises:
        ValueError: a lesson asks for nothing, or for nothing in these sections.
    """
    if not sections:
        if found := [name for name in ALL if name.removesuffix(ENDING) in lessons]:
            return found
        raise ValueError(f"{lessons[0]} is no assignment")
    names = []
    for lesson in lessons:
        held = dict.fromkeys(sections_by_task(lesson).values()) if lesson in ASSIGNMENTS else {}
        if not (asked := [section for section in held if section in sections]):
            in_others = f"; there are tasks in {', '.join(held)}" if held else ""
            raise ValueError(f"{lesson} has no task in these sections{in_others}")
        names.append(lesson if asked == [*held] else lesson + SOME + "_".join(asked))
    return names


def is_assignment(name: str) -> bool:
    """Whether an assignment has this name."""
    stem, some, sections = name.partition(SOME)
    if not some:
        return name in ALL
    return stem in ASSIGNMENTS and {*sections.split("_")} <= {*sections_by_task(stem).values()}


@cache
def sections_by_task(stem: str) -> dict[str, str]:
    """Give the section of a lesson in which each of its tasks stands."""
    found, section = {}, ""
    for cell in nbformat.read(ROOT / "notebooks" / f"{stem}.ipynb", as_version=4).cells:
        if cell.cell_type == "markdown":
            for text in re.findall(r"(?m)^## .*", cell.source):
                section = section_of(text) or section
        elif exercise := task_of(cell):
            found[exercise.name] = section
    return found


def source_of(assignment: str) -> dict[str, Any]:
    """Make nbgrader's source of an assignment: its tasks, and the definitions that they use."""
    stem, some, sections = assignment.removesuffix(ENDING).partition(SOME)
    lesson = nbformat.read(ROOT / "notebooks" / f"{stem}.ipynb", as_version=4)
    cells, note = [setup_of(lesson)], NOTE
    if assignment.endswith(ENDING):
        exercise, note = UNSEEN[stem], NOTE_UNSEEN
        text, stub, *_ = SECTIONS[stem]
        cells += task_cells(exercise.name, stub, text, needed(exercise, set()))
    else:
        texts = texts_of(lesson)
        if some:
            held, asked = sections_by_task(stem), sections.split("_")
            tasks = [(cell, task_of(cell)) for cell in lesson.cells]
            lesson.cells = [c for c, task in tasks if not task or held[task.name] in asked]
        for _, exercise, definitions, above in answers_of(lesson):
            name = exercise.name
            cells += [new_code_cell(x, id=f"own-{name}-{n}") for n, x in definitions]
            cells += task_cells(name, *texts[name], above)
    title = lesson.cells[0].source.splitlines()[0].removeprefix("# ")
    intro = note.format(title=title, name=f"{assignment}.ipynb")
    lesson.metadata["assignment"] = assignment  # by which a renamed file is known
    return lesson | {"cells": [new_markdown_cell(intro, id="title"), *cells]}


def task_cells(name: str, stub: str, text: str, above: str) -> list[Any]:
    """Make the cells of a task: the lines that it needs, its text, the stub, and a grade cell.

    It has as many points as minutes stand in the text. Lines that the stub has too are left out.
    """
    points = int(MINUTES.findall(text)[0])
    needs = (line for line in above.splitlines() if not line or line not in stub.splitlines())
    given = "\n".join(needs).strip()
    judged = f"# {points} points: `{name}` is judged in a process of its own."
    task = nbgrader_cell(name, {"solution": True})
    test = nbgrader_cell(f"{TEST}{name}", {"grade": True, "locked": True, "points": points})
    return [
        *([new_code_cell(given, id=f"given-{name}")] if given else []),
        new_markdown_cell(text, id=f"text-{name}"),
        new_code_cell(stub, id=f"cell-{name}", metadata=task),
        new_code_cell(judged, id=f"test-{name}", metadata=test),
    ]


def release(to: Path, assignments: list[str] = ALL) -> list[str]:
    """Make the students' versions of these assignments; the unseen ones in a folder of their own.

    Returns:
        The lines to print.

    Raises:
        RuntimeError: nbgrader is missing, or failed.
    """
    with TemporaryDirectory() as other:
        course = Path(other)
        lay_source(course, assignments)
        for name in assignments:
            target = to / "unseen" if name.endswith(ENDING) else to
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(course / "release" / name / f"{name}.ipynb", target)
    shutil.copy(ROOT / "notebooks" / "HANDING_IN.md", to)
    unseen = sum(name.endswith(ENDING) for name in assignments)
    lessons = f"assignments: {len(assignments) - unseen}"
    apart = f"unseen tasks, in a folder of theirs: {unseen}"
    told = [f"{to.name} holds a notebook each; {lessons}; {apart}."]
    if "/OWNER/" in address.current():
        told.append("Colab cannot open them until `python -m vit_course address URL` and a push.")
    return told


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
    programs = str(Path(sys.executable).parent)  # nbgrader calls one of its own environment
    environment = os.environ | {
        "PATH": os.pathsep.join([programs, os.environ.get("PATH", "")]),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        "JUPYTER_CONFIG_DIR": str(course / ".jupyter"),
        "JUPYTER_DATA_DIR": str(course / ".jupyter"),
        "OMP_NUM_THREADS": "1",
    }
    line = [sys.executable, "-m", "nbgrader", *command]
    done = subprocess.run(line, cwd=course, env=environment, capture_output=True, text=True)
    if "No module named nbgrader" in done.stderr:
        raise RuntimeError("nbgrader is missing: `pip install -e '.[teach]'` brings it")
    if done.returncode:
        raise RuntimeError(f"nbgrader {command[0]} failed:\n{(done.stdout + done.stderr)[-3000:]}")
