"""The tables of a grading: points of tasks and notebooks, by hand where a teacher says so."""

import csv
import re
from collections.abc import Callable, Mapping
from io import StringIO
from pathlib import Path

from ..lessons import write

Rows = list[dict[str, str]]
Key = tuple[str, str, str]  # a student, an assignment, a task
KEY = ("student_id", "assignment", "task")


def table(path: Path, *columns: str) -> Rows:
    """Read a table.

    Raises:
        ValueError: it lacks one of these columns, or a line lacks what stands in it.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for number, row in enumerate(rows, start=2):
        for column in columns:
            if not row.get(column):
                wanted = ",".join(columns)
                raise ValueError(f"{path}, line {number}: no {column}; its columns are {wanted}")
    return rows


def save(path: Path, rows: Rows) -> None:
    """Write a table, whole or not at all."""
    text = StringIO()
    lines = csv.DictWriter(text, [*rows[0]], lineterminator="\n")
    lines.writeheader()
    lines.writerows(rows)
    write(path, text.getvalue())


def by_hand(
    file: Path, most: Mapping[Key, float], called: Callable[[str], str]
) -> dict[Key, float]:
    """Read the points that a teacher gives, if the file is there.

    Args:
        file: has the columns student_id, assignment, task and score.
        most: the points of each task that was handed in.
        called: gives how the student of a folder is called in `most`.

    Raises:
        ValueError: a line names no task that was handed in, or points that it cannot have.
    """
    points = {}
    for number, row in enumerate(table(file, *KEY, "score") if file.exists() else [], start=2):
        student, name, task = (row[column] for column in KEY)
        key, score = (called(student), name, task), row["score"]
        if key not in most:
            raise ValueError(f"{file}, line {number}: {student} handed in no {task} of {name}")
        if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", score) or float(score) > most[key]:
            may = f"{task} of {student} may have 0 to {most[key]:g}"
            raise ValueError(f"{file}, line {number}: {may}, not {score!r}")
        points[key] = float(score)
    return points


def roster(file: Path, called: Callable[[str], str]) -> dict[str, str]:
    """Read the names of a class, by student; its columns are student_id and name.

    Raises:
        ValueError: it lacks a column.
    """
    rows = table(file, "student_id", "name")
    return {called(row["student_id"]): row["name"] for row in rows}


def tasks(points: Mapping[Key, float], most: Mapping[Key, float]) -> Rows:
    """Make the table of all tasks that were handed in."""
    return [
        dict(zip(KEY, key, strict=True)) | {"score": f"{points[key]:g}", "max_score": f"{top:g}"}
        for key, top in most.items()
    ]


def totals(points: Mapping[Key, float]) -> dict[tuple[str, str], float]:
    """Add up the points of tasks, by student and assignment."""
    sums: dict[tuple[str, str], float] = {}
    for (student, assignment, _), score in points.items():
        sums[student, assignment] = sums.get((student, assignment), 0) + score
    return sums


def grades(
    points: Mapping[Key, float], most: Mapping[Key, float], names: Mapping[str, str]
) -> Rows:
    """Make the table of a class: a row for each student, a column for each assignment, and the sum.

    A column is headed by the most that it can have. `names` has the class's names by student, or is
    empty.
    """
    scores = totals(points)
    tops = {assignment: top for (_, assignment), top in sorted(totals(most).items())}
    rows = []
    for student in sorted({student for student, *_ in most} | {*names}):
        own = {name: scores.get((student, name), 0) for name in tops}
        row = {"student_id": student} | ({"name": names.get(student, "")} if names else {})
        row |= {f"{name} ({top:g})": f"{own[name]:g}" for name, top in tops.items()}
        rows.append(row | {f"all ({sum(tops.values()):g})": f"{sum(own.values()):g}"})
    return rows
