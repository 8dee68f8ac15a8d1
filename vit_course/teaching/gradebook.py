"""What a teacher adds to a grading's tables: points by hand, and the names of a roster."""

import csv
import re
from io import StringIO
from pathlib import Path

from ..lessons import write

Rows = list[dict[str, str]]
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
    columns = dict.fromkeys(column for row in rows for column in row)
    lines = csv.DictWriter(text, [*columns], lineterminator="\n")
    lines.writeheader()
    lines.writerows(rows)
    write(path, text.getvalue())


def by_hand(to: Path) -> list[str]:
    """Put the points of by_hand.csv into tasks.csv and grades.csv, and give a line for each.

    A teacher writes it beside them, with the columns student_id, assignment, task and score; each
    run reads it again.

    Raises:
        ValueError: a line names no task that was handed in, or a score that it cannot have.
    """
    file = to / "by_hand.csv"
    if not file.exists():
        return []
    tasks, grades = table(to / "tasks.csv"), table(to / "grades.csv")
    notes = []
    for row in table(file, *KEY, "score"):
        *key, score = (row[column] for column in (*KEY, "score"))
        student, assignment, task = key
        same = [line for line in tasks if [line[column] for column in KEY] == key]
        if not same:
            raise ValueError(f"{file}: tasks.csv has no {task} of {student} in {assignment}")
        most = float(same[0]["max_score"])
        if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", score) or float(score) > most:
            raise ValueError(f"{file}: {task} of {student} may have 0 to {most:g}, not {score!r}")
        change = float(score) - float(same[0]["score"])
        same[0]["score"] = score
        for grade in grades:
            if (grade["student_id"], grade["assignment"]) == (student, assignment):
                grade["score"] = str(float(grade["score"]) + change)
        notes.append(f"{student}, {assignment}, {task}: {score} by hand")
    save(to / "tasks.csv", tasks)
    save(to / "grades.csv", grades)
    return notes


def named(to: Path, roster: Path, folders: dict[str, str]) -> list[str]:
    """Give grades.csv the names of a roster, and a line of 0 for who handed in nothing.

    Args:
        to: holds grades.csv.
        roster: a table with the columns student_id, as the folders are called, and name.
        folders: how each folder's student is called in grades.csv.

    Returns:
        A line for each student of grades.csv who is not in the roster.

    Raises:
        ValueError: the roster lacks a column.
    """
    rows = table(roster, "student_id", "name")
    names = {folders.get(row["student_id"], row["student_id"]): row["name"] for row in rows}
    grades = table(to / "grades.csv")
    most = {grade["assignment"]: grade["max_score"] for grade in grades}
    known = {(grade["student_id"], grade["assignment"]) for grade in grades}
    for student in names:
        for assignment, points in most.items():
            if (student, assignment) not in known:
                line = {"assignment": assignment, "student_id": student}
                grades.append({**line, "score": "0.0", "max_score": points})
    for grade in grades:
        grade["name"] = names.get(grade["student_id"], "")
    save(to / "grades.csv", grades)
    strangers = sorted({grade["student_id"] for grade in grades} - {*names})
    return [f"{student} is not in {roster.name}" for student in strangers]
