"""Grades a folder of submissions by nbgrader; each answer is judged by `judge.py`, outside of it.

Grading needs Linux or macOS. What it cannot prevent stands in notebooks/TEACHING.md.
"""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..folding import checked
from .assignments import (
    ASSIGNMENTS,
    ROOT,
    TEST,
    cleared,
    code,
    grade_id,
    is_task,
    lay_source,
    nbgrader,
    read_book,
    write_book,
)


def configure(config: Any) -> None:
    """nbgrader's settings, and the two steps of it that are the course's."""
    usual: Any = import_module("nbgrader.preprocessors")
    converters: Any = import_module("nbgrader.converters")

    class ClearToStub(usual.ClearSolutions):
        """Leaves the stub of each solution, where nbgrader's own leaves the same everywhere."""

        def preprocess_cell(self, cell, resources, cell_index):
            if cell.cell_type == "code":
                cell.source = cleared(cell.source)
            return cell, resources

    class Judge(usual.Execute):
        """Has the answers judged outside; nothing of a submission runs in nbgrader's process."""

        def preprocess(self, nb, resources, km=None):
            tests = {c.metadata.nbgrader.grade_id: c for c in nb.cells if is_test(c)}
            said = judged([c for c in nb.cells if c.cell_type == "code" and not is_test(c)])
            for name, cell in tests.items():
                cell.outputs = [output_of(said[name.removeprefix(TEST)])]
            return nb, resources

    def is_test(cell: Any) -> bool:
        return cell.metadata.get("nbgrader", {}).get("grade", False)

    def swapped(steps: list, old: type, new: type) -> list:
        return [new if step is old else step for step in steps]

    made = converters.GenerateAssignment.preprocessors.default_args[0]
    graded = converters.Autograde.autograde_preprocessors.default_args[0]
    config.GenerateAssignment.preprocessors = swapped(made, usual.ClearSolutions, ClearToStub)
    config.Autograde.autograde_preprocessors = swapped(graded, usual.Execute, Judge)


def judged(cells: list[Any]) -> dict[str, str]:
    """What is said of each task of one notebook."""
    given = {
        "cells": [(c.metadata.get("nbgrader", {}).get("grade_id"), c.source) for c in cells],
        "tasks": [c.metadata.nbgrader.grade_id for c in cells if "nbgrader" in c.metadata],
        "seconds": float(os.environ["SECONDS_A_TASK"]),
        "megabytes": int(os.environ["MEGABYTES_A_TASK"]),
    }
    run = [sys.executable, "-m", "vit_course.teaching.judge"]
    said = subprocess.run(run, input=json.dumps(given), capture_output=True, text=True, cwd=ROOT)
    if said.returncode:
        raise RuntimeError(f"{run[-1]} failed: {said.stderr[-2000:]}")
    return json.loads(said.stdout)


def output_of(message: str) -> Any:
    """The output by which nbgrader gives a grade cell all of its points, or none."""
    from nbformat.v4 import new_output

    if message == "right":
        return new_output("stream", name="stdout", text="right\n")
    said = {"ename": "NotRight", "evalue": message, "traceback": message.splitlines()}
    return new_output("error", **said)


def grade(folder: Path, to: Path, seconds: float = 60, megabytes: int = 2000) -> list[str]:
    """Grade all that lies in a folder: grades.csv, and pages of feedback beside it.

    Args:
        folder: holds a folder of notebooks for each student.
        to: where the grades and pages go.
        seconds, megabytes: what each task may take.

    Returns:
        What to tell the teacher.

    Raises:
        ValueError: there is nothing to grade, or two students would have the same name.
        RuntimeError: nbgrader is missing, or failed.
    """
    found = sorted(folder.glob("*/*.ipynb"))
    work = [(path.parent.name, path.stem, path) for path in found if path.stem in ASSIGNMENTS]
    if not work:
        raise ValueError(f"{folder} holds no STUDENT/{ASSIGNMENTS[0]}.ipynb, or the like")
    # nbgrader takes a student's name as part of a path and of a pattern
    names = {student: re.sub(r"[^\w.-]", "_", student) for student, _, _ in work}
    if len(set(names.values())) < len(names):
        raise ValueError(f"two folders would both be the student of one name: {sorted(names)}")
    os.environ |= {"SECONDS_A_TASK": str(seconds), "MEGABYTES_A_TASK": str(megabytes)}
    handed = {(names[student], name) for student, name, _ in work}
    told = [
        f"{path.parent.name}: {path.name} is not graded, for no assignment has this name"
        for path in found
        if path.stem not in ASSIGNMENTS
    ]
    with TemporaryDirectory() as other:
        course = Path(other)
        lay_source(course, sorted({name for _, name, _ in work}))
        for student, name, path in work:
            released = read_book(course / "release" / name / f"{name}.ipynb")
            book, amiss = in_order(released, path)
            write_book(course / "submitted" / names[student] / name / f"{name}.ipynb", book)
            told += [f"{student}, {name}: {amiss}"] if amiss else []
        try:
            nbgrader(course, "autograde", "--assignment=*")
        except RuntimeError as error:  # of one submission; nbgrader goes on with the others
            told.append(f"not all could be graded: {error}")
        nbgrader(course, "generate_feedback", "--assignment=*")
        nbgrader(course, "export", "--to=grades.csv")
        to.mkdir(parents=True, exist_ok=True)
        shutil.copy(course / "grades.csv", to)
        for page in sorted(course.glob("feedback/*/*/*.html")):
            place = to / page.parent.parent.name
            place.mkdir(exist_ok=True)
            shutil.copy(page, place)
    with (to / "grades.csv").open(encoding="utf-8") as file:
        for r in csv.DictReader(file):
            if (r["student_id"], r["assignment"]) in handed:  # the CSV gives 0 to the others
                score = f"{r['score']} of {r['max_score']}"
                told.append(f"{r['student_id']}, {r['assignment']}: {score}")
    return [*told, f"{to.name} holds grades.csv and a page of feedback for each notebook."]


def in_order(released: dict[str, Any], path: Path) -> tuple[dict[str, Any], str]:
    """A submission as nbgrader needs it, whatever became of it: the released notebook with the
    learner's code in it; and what is amiss, or "".

    A task's cell is known by its metadata, which some editors lose, or by the check that ends it.
    """
    names = {str(grade_id(cell)) for cell in released["cells"] if is_task(cell)}
    try:
        theirs = [
            (grade_id(cell), "".join(cell["source"]))
            for cell in json.loads(path.read_bytes())["cells"]
            if cell["cell_type"] == "code"
        ]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return released, f"no notebook that can be read ({type(error).__name__}: {error})"
    answers: dict[str, int] = {}
    for number, (given, source) in enumerate(theirs):
        name = given if given in names else checked(source)
        if name in names:
            answers[name] = number  # the last of several
    others = [
        (number, source)
        for number, (given, source) in enumerate(theirs)
        if number not in answers.values() and not str(given).startswith(TEST) and number
    ]
    cells = []
    for number, cell in enumerate(released["cells"]):
        if is_task(cell) and (name := grade_id(cell)) in answers:
            at = answers[name]
            cells += [code(s, {}, f"own-{n}") for n, s in others if n < at]
            others = [(n, s) for n, s in others if n >= at]
            cell = cell | {"source": theirs[at][1], "id": f"task-{number}"}
        cells.append(cell)
    missing = sorted(names - set(answers))
    return released | {"cells": cells}, f"no cell for {', '.join(missing)}" if missing else ""
