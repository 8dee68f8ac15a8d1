"""A class of forty hand-ins, graded in one go: `pytest -m nightly tests/test_forty.py`.

It releases the assignments, writes what forty students hand in, runs the course's command `grade`
once over all of it, and compares each task's mark with what its answer deserves. It needs what
grading needs: nbgrader, bubblewrap, Linux.

`python -m tests.forty` grades the class too, and prints what each gets; `python -m tests.forty
FOLDER` lays it there, for somebody else to grade, and prints what each deserves.
"""

import csv
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.forty_students import CLASS, NAMES, Student
from tests.handed_in import aimed, hand_in, left_behind
from vit_course import lessons
from vit_course.teaching.assignments import ENDING, source_of
from vit_course.teaching.grading import is_test, task_name

LONGEST = 20 * 60  # seconds
TRACES = ("/tmp/vit-loot", "/tmp/x", "/dev/shm/x")  # what the attacks would leave
RUNS = r"<script|<link|<iframe|src=.http|loot\(\)</"  # what no page may hold
Marks = dict[str, float]  # the points of each task


def command(*words: object, **environment: str) -> str:
    """What a command of the course says; it must succeed."""
    line = [sys.executable, "-m", "vit_course", *map(str, words)]
    done = subprocess.run(line, capture_output=True, text=True, env=os.environ | environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def points_of(assignment: str) -> dict[str, int]:
    """The points of each task of an assignment."""
    cells = filter(is_test, source_of(assignment)["cells"])
    return {task_name(cell): cell["metadata"]["nbgrader"]["points"] for cell in cells}


def lay(folder: Path) -> list[tuple[str, str, Student, Marks]]:
    """Release the assignments, and hand in all: each one's name and kind, and what each deserves.

    Names are drawn, so that none tells the kind.
    """
    command("release", "--to", folder / "assignments")
    names = re.split(r",\s", NAMES)
    random.Random(0).shuffle(names)
    paths, students = [], []
    for kind, student in ((k, student) for k, members in CLASS.items() for student in members):
        name, file = names[len(students)], f"{student.lesson}.ipynb"
        path = folder / "handed_in" / name / file
        paths.append(path)
        unseen = "unseen" if student.lesson.endswith(ENDING) else ""
        released = folder / "assignments" / unseen / file
        points = points_of(student.lesson)
        targets = dict(secret=paths[0], folder=folder / "handed_in", project=lessons.ROOT)
        answers = student.answers(list(points))
        answers = {task: aimed(source, **targets) for task, source in answers.items()}
        book = lessons.ROOT / "notebooks" / file if student.copy else released
        hand_in(path, book, answers, student.change)
        if student.after:
            student.after(path, paths[0])
        students.append((name, kind, student, student.deserves(points, kind)))
    return students


def contents(folder: Path) -> dict[Path, bytes]:
    """All files of a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def scores(path: Path) -> dict[tuple[str, str], Marks]:
    """The points in a table of grades, by student and assignment; a total has no task."""
    points: dict[tuple[str, str], Marks] = {}
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = row["student_id"], row["assignment"]
            points.setdefault(key, {})[row.get("task", "")] = float(row["score"])
    return points


def graded(folder: Path, students: list) -> list[str]:
    """Grade the class, print what each got; gives what is amiss."""
    before, start = contents(folder / "handed_in"), time.monotonic()
    traces = [trace for trace in TRACES if Path(trace).exists()]
    with TemporaryDirectory() as other:
        output = command("grade", folder / "handed_in", TMPDIR=other)
        seconds = time.monotonic() - start
        problems = ["something runs on"] if left_behind(other) else []
        problems += [f"{path} is left behind" for path in contents(Path(other))]
    if contents(folder / "handed_in") != before:
        problems.append("what lay there is not as it was")
    problems += [f"{x} is there" for x in TRACES if Path(x).exists() and x not in traces]
    problems += [f"it took {seconds:.0f} seconds"] if seconds > LONGEST else []
    to = folder / "handed_in-graded"
    pages = {(p.parent.name, p.stem): p.read_text("utf-8") for p in to.glob("feedback/*/*.html")}
    problems += [f"{key}'s page can run" for key, page in pages.items() if re.search(RUNS, page)]
    totals, tasks = scores(to / "grades.csv"), scores(to / "tasks.csv")
    entry = r'<a href="#test-(\w+)">\w+</a> \(Score: ([\d.]+) /'
    for name, kind, student, deserved in students:
        key = re.sub(r"[^\w.-]", "_", name), student.lesson
        page = {task: float(points) for task, points in re.findall(entry, pages.pop(key, ""))}
        total, marks = totals.pop(key, {"": 0.0})[""], tasks.pop(key, {})
        # What is not graded at all deserves nothing, and is told.
        nothing = not page and not marks and not any(deserved.values()) and name in output
        if (not nothing and not page == marks == deserved) or total != sum(deserved.values()):
            problems.append(f"{name}: {page}, {marks} and {total}, but deserves {deserved}")
        show(name, kind, student, deserved, f"{total:g}")
    problems += [f"{key} has a page" for key in pages]
    problems += [f"{key} has points" for key, points in totals.items() if points[""]]
    print(f"{seconds / 60:.1f} minutes on {os.cpu_count()} processors")
    return problems


def show(name: str, kind: str, student: Student, deserved: Marks, total: str = "") -> None:
    """Print a line of the table."""
    most = f"{sum(deserved.values()):g}"
    print(f"{name:10} {kind:8} {student.lesson:20} {student.does:50} {most:>4} {total:>4}")


if __name__ == "__main__":
    if sys.argv[1:]:
        for row in lay(Path(sys.argv[1]).absolute()):
            show(*row)
    else:
        with TemporaryDirectory() as course:
            amiss = graded(Path(course), lay(Path(course)))
        print(*amiss or ["each has what it deserves"], sep="\n")
        sys.exit(bool(amiss))
