"""A class of forty hand-ins, graded in one go: `python -m tests.forty`, some minutes.

It releases the assignments, writes what forty students hand in, runs the course's command `grade`
once over all of it, and compares each task's mark with what its answer deserves. It ends with 1
where a point is missing or too many, where something was changed, left running or left behind, or
where it took more than 20 minutes. It needs what grading needs: nbgrader, bubblewrap, Linux.

`python -m tests.forty FOLDER` lays the same class there, for somebody else to grade, and prints
what each deserves.
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
from tests.handed_in import hand_in, left_behind, told
from vit_course import lessons
from vit_course.teaching.assignments import ENDING, TEST, read_book
from vit_course.teaching.grading import is_test

LONGEST = 20 * 60  # seconds
TRACES = ("/tmp/vit-loot", "/tmp/x", "/dev/shm/x")  # what the attacks would leave
RUNS = r"<script|<link|<iframe|src=.http|loot\(\)</"  # what no page may hold


def command(*words: object, **environment: str) -> str:
    """What a command of the course says; it must succeed."""
    line = [sys.executable, "-m", "vit_course", *map(str, words)]
    done = subprocess.run(line, capture_output=True, text=True, env=os.environ | environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def points_of(released: Path) -> dict[str, int]:
    """The points of each task of a released notebook."""
    cells = [cell["metadata"]["nbgrader"] for cell in read_book(released)["cells"] if is_test(cell)]
    return {cell["grade_id"].removeprefix(TEST): cell["points"] for cell in cells}


def lay(folder: Path) -> list[tuple[str, str, Student, dict[str, float]]]:
    """Release the assignments, and hand in all: each one's name and kind, and what each deserves.

    Names are drawn, so that none tells the kind.
    """
    command("release", "--to", folder / "assignments")
    here, found = folder / "handed_in", []
    names = re.split(r",\s", NAMES)
    random.Random(0).shuffle(names)
    for kind, students in CLASS.items():
        for student in students:
            name, file = names[len(found)], f"{student.lesson}.ipynb"
            unseen = "unseen" if student.lesson.endswith(ENDING) else ""
            released = folder / "assignments" / unseen / file
            points = points_of(released)
            neighbour = here / found[0][0] / f"{found[0][2].lesson}.ipynb" if found else here
            answers = {
                task: told(source, secret=neighbour, folder=here, project=lessons.ROOT)
                for task, source in student.answers(list(points)).items()
            }
            book = lessons.ROOT / "notebooks" / file if student.copy else released
            hand_in(here / name / file, book, answers, student.change)
            if student.after:
                student.after(here / name / file, neighbour)
            found.append((name, kind, student, student.deserves(points, kind)))
    return found


def marks(graded: Path) -> dict[tuple[str, str], dict[str, float]]:
    """Of each student and assignment the points of each task, as the page tells them."""
    pages = {path: path.read_text("utf-8") for path in graded.glob("feedback/*/*.html")}
    assert not [path for path, page in pages.items() if re.search(RUNS, page)]
    entry = rf'<a href="#{TEST}(\w+)">\w+</a> \(Score: ([\d.]+) /'
    return {
        (path.parent.name, path.stem): {t: float(got) for t, got in re.findall(entry, page)}
        for path, page in pages.items()
    }


def contents(folder: Path) -> dict[Path, bytes]:
    """All files of a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def graded(folder: Path, students: list) -> list[str]:
    """Grade the class, print what each got; gives what is amiss."""
    before, start = contents(folder), time.monotonic()
    traces = [trace for trace in TRACES if Path(trace).exists()]
    with TemporaryDirectory() as other:
        said = command("grade", folder / "handed_in", TMPDIR=other)
        minutes = (time.monotonic() - start) / 60
        amiss = ["something runs on"] * bool(left_behind(other))
        amiss += [f"{path} is left behind" for path in contents(Path(other))]
    after = {path: data for path, data in contents(folder).items() if "-graded" not in str(path)}
    amiss += ["what lay there is not as it was"] * (after != before)
    amiss += [
        f"{trace} is there" for trace in TRACES if Path(trace).exists() and trace not in traces
    ]
    amiss += ["it took too long"] * (minutes * 60 > LONGEST)
    got = marks(folder / "handed_in-graded")
    with (folder / "handed_in-graded" / "grades.csv").open(encoding="utf-8") as file:
        rows = {(row["student_id"], row["assignment"]): row for row in csv.DictReader(file)}
    for name, kind, student, wanted in students:
        key = re.sub(r"[^\w.-]", "_", name), student.lesson
        total = float(rows[key]["score"]) if key in rows else 0.0
        given = got.pop(key, {})
        same = given == wanted if given else not any(wanted.values()) and name in said
        same = same and total == sum(wanted.values())
        amiss += [] if same else [f"{name}: {given} and {total}, but deserves {wanted}"]
        show(name, kind, student, wanted, f"{total:g}")
    amiss += [f"{key} has a page" for key in got]
    amiss += [
        f"{key} has points"
        for key, row in rows.items()
        if float(row["score"])
        and key not in {(re.sub(r"[^\w.-]", "_", n), s.lesson) for n, _, s, _ in students}
    ]
    print(f"{minutes:.1f} minutes; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    return amiss


def show(name: str, kind: str, student: Student, wanted: dict, given: str = "") -> None:
    """Print a line of the table."""
    deserved = f"{sum(wanted.values()):g}"
    print(f"{name:10} {kind:8} {student.lesson:20} {student.does:50} {deserved:>4} {given:>4}")


def main() -> None:
    """Lay the class, and grade it if no folder was named."""
    if sys.argv[1:]:
        for name, kind, student, wanted in lay(Path(sys.argv[1]).absolute()):
            show(name, kind, student, wanted)
        return
    with TemporaryDirectory() as other:
        amiss = graded(Path(other), lay(Path(other)))
    print(*amiss or ["each has what it deserves"], sep="\n")
    sys.exit(bool(amiss))


if __name__ == "__main__":
    main()
