"""Grade a folder of submissions.

Each answer is judged apart (`judge.py`); nbgrader, in whose processes no line of a submission
runs, keeps the marks and writes the pages of feedback. What remains possible stands
in notebooks/TEACHING.md.
"""

import csv
import hashlib
import json
import os
import re
import shutil
from contextlib import closing
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbformat.v4 import new_output
from tqdm import tqdm

from vit_steps.files import write_whole

from ..lessons import ROOT
from . import gradebook, sandbox
from .assignments import ASSIGNMENTS, TEST, grade_id, is_task, lay_source, nbgrader, write_book
from .pool import FAILED, SECONDS, judge_all
from .submissions import found_in, in_order, is_test, student_of

# Of nbgrader's page what tells a student something is shown, and a verdict by its colour too.
STYLE = f"""
pre {{ white-space: pre-wrap !important; word-break: normal; overflow-wrap: anywhere }}
.prompt, .panel-footer, li:has(> [href^="#comment-"]) {{ display: none }}
.nbgrader_cell:has(> [name^="{TEST}"]) .panel-body {{ display: none }}
.output_subarea pre {{ border-left: 6px solid #0072b2 }}
.output_error pre {{ border-left-color: #d55e00 }}
"""
UNSAFE = "This was graded without a sandbox: its code could reach all that the grader can."


def configure(config: Any) -> None:
    """Set up nbgrader: stubs stay as they are, and answers are judged apart."""
    steps: Any = import_module("nbgrader.preprocessors")
    converters: Any = import_module("nbgrader.converters")

    class Judge(steps.Execute):
        """Put in the verdicts on the answers, in the place of running them."""

        def preprocess(self, nb, resources, km=None):
            who = resources["nbgrader"]["student"], resources["nbgrader"]["assignment"]
            messages = json.loads(Path(os.environ["MARKS"]).read_text("utf-8"))["/".join(who)]
            for cell in filter(is_test, nb.cells):
                cell.outputs = [output_of(messages[task_name(cell)])]
            return nb, resources

    (made,) = converters.GenerateAssignment.preprocessors.default_args
    (graded,) = converters.Autograde.autograde_preprocessors.default_args
    made_steps = [step for step in made if step is not steps.ClearSolutions]  # there are none
    graded_steps = [Judge if step is steps.Execute else step for step in graded]
    config.GenerateAssignment.preprocessors = made_steps
    config.Autograde.autograde_preprocessors = graded_steps


def output_of(message: str) -> Any:
    """Make the output by which nbgrader gives a grade cell all of its points, or none."""
    if message == "right":
        return new_output("stream", name="stdout", text="right\n")
    traceback = message.splitlines()
    return new_output("error", ename="NotRight", evalue=message, traceback=traceback)


def task_name(cell: Any) -> str:
    """Name the task that a cell, or its grade cell, belongs to."""
    return str(grade_id(cell)).removeprefix(TEST)


def grade(
    folder: Path,
    to: Path,
    seconds: float = 60,
    megabytes: int = 2000,
    unsafe: bool = False,
    roster: Path | None = None,
) -> list[str]:
    """Grade all that lies in a folder: grades.csv, tasks.csv, and pages of feedback beside them.

    What was judged is kept in `to`, until all is; so it can be stopped, and goes on.

    Args:
        folder: holds a folder of notebooks for each student.
        to: where the grades and pages go.
        seconds, megabytes: what each task may take.
        unsafe: without a sandbox.
        roster: a table of students and their names, for grades.csv.

    Returns:
        The lines to print.

    Raises:
        ValueError: there is nothing to grade, or the roster or by_hand.csv cannot be used.
        RuntimeError: nbgrader or the sandbox is missing, or failed.
    """
    work, notes = found_in(folder)
    if not work:
        raise ValueError(f"{folder} holds no STUDENT/{ASSIGNMENTS[0]}.ipynb, or the like")
    folders = [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
    idle = sorted({student_of(path.name) for path in folders} - {student for student, _ in work})
    notes += [f"{student} handed in nothing to grade" for student in idle]
    names, renamed = plain_names({student for student, _ in work})
    notes += renamed
    if not unsafe:
        sandbox.ready([ROOT / "vit_course", folder, to])
    with TemporaryDirectory() as other:
        course = Path(other)
        lay_source(course, sorted({name for _, name in work}))
        books = {}
        for (student, name), path in work.items():
            released = nbformat.read(course / "release" / name / f"{name}.ipynb", as_version=4)
            book, problem = in_order(released, path)
            books[f"{names[student]}/{name}"] = book
            write_book(course / "submitted" / names[student] / name / f"{name}.ipynb", book)
            notes += [f"{student}, {name}: {problem}"] if problem else []
        marks = judged(books, to, (seconds, megabytes, unsafe))
        notes += [
            f"{who.replace('/', ', ')}, {task}: {message}; grade it by hand"
            for who, messages in marks.items()
            for task, message in messages.items()
            if message.startswith(FAILED)
        ]
        write_tasks(to / "tasks.csv", books, marks)
        # Only now, when no student's code runs any more, is there a gradebook.
        os.environ["MARKS"] = str(course / "marks.json")
        Path(os.environ["MARKS"]).write_text(json.dumps(marks), encoding="utf-8")
        nbgrader(course, "autograde", "--assignment=*")
        nbgrader(course, "export", "--to=grades.csv")
        shutil.copy(course / "grades.csv", to)
        notes += gradebook.by_hand(to)
        notes += gradebook.named(to, roster, names) if roster else []
        write_pages(course, to, UNSAFE if unsafe else "")
    (to / "unfinished.json").unlink(missing_ok=True)
    with (to / "grades.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            student, name = row["student_id"], row["assignment"]
            if f"{student}/{name}" in books:  # the table gives 0 to the others
                notes.append(f"{student}, {name}: {row['score']} of {row['max_score']}")
    notes = ["".join(c if c.isprintable() else "\ufffd" for c in note) for note in notes]
    (to / "notes.txt").write_text("\n".join([*notes, ""]), encoding="utf-8")
    told = "a page of feedback for each notebook, and notes.txt, these lines"
    return [*notes, f"{to.name} holds grades.csv, tasks.csv, {told}."]


def plain_names(students: set[str]) -> tuple[dict[str, str], list[str]]:
    """Name each student as nbgrader can, which takes a name as part of a path and of a pattern.

    Returns:
        The name by folder; and a line for each that would have been another's, and is told apart.
    """
    names, notes = {}, []
    plain = {student: re.sub(r"^\.+|[^\w.-]", "_", student) for student in students}
    for student in sorted(students, key=lambda student: (plain[student] != student, student)):
        names[student] = plain[student]
        while [*names.values()].count(names[student]) > 1:
            names[student] += "_"
        if names[student] != plain[student]:
            name, first = names[student], plain[student]
            notes.append(f"{student} is called {name} here, since another folder is {first}")
    return names, notes


def write_pages(course: Path, to: Path, note: str) -> None:
    """Write the pages of feedback, each headed by the note."""
    nbgrader(course, "generate_feedback", "--assignment=*")
    for page in course.glob("feedback/*/*/*.html"):
        student = page.parent.parent.name
        (to / "feedback" / student).mkdir(parents=True, exist_ok=True)
        text = alone(page.read_text("utf-8"), student, note)
        (to / "feedback" / student / page.name).write_text(text, encoding="utf-8")


def write_tasks(path: Path, books: dict[str, Any], marks: dict[str, dict[str, str]]) -> None:
    """Write the points of each task of each notebook, a line each."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["student_id", "assignment", "task", "score", "max_score"])
        for who, book in books.items():
            for cell in filter(is_test, book["cells"]):
                name, points = task_name(cell), cell["metadata"]["nbgrader"]["points"]
                score = points if marks[who][name] == "right" else 0
                rows.writerow([*who.split("/"), name, score, points])


def judged(books: dict[str, Any], to: Path, limits: tuple) -> dict[str, dict[str, str]]:
    """Judge each task of each book, and keep what was judged in `to`.

    Returns:
        Of each book the message for each task.
    """
    to.mkdir(parents=True, exist_ok=True)
    store = to / "unfinished.json"
    stored: dict[str, str] = json.loads(store.read_text("utf-8")) if store.exists() else {}
    tasks = answers_in(books, limits)
    new = {key: (f"{who}: {inputs[0]}", inputs) for who, key, inputs in tasks if key not in stored}
    bar = tqdm(desc="judged", total=len(tasks), initial=len(tasks) - len(new), unit=" answers")
    most = 2 * (limits[0] + SECONDS)  # an answer may be judged twice, with the course's pieces too
    with bar, closing(judge_all(new, most, bar)) as messages_by_key:
        for key, message in messages_by_key:
            stored[key] = message
            write_whole(store, json.dumps(stored).encode())
    messages = {
        who: {task_name(cell): "" for cell in filter(is_test, book["cells"])}
        for who, book in books.items()
    }
    for who, key, (name, *_) in tasks:
        messages[who][name] = stored[key]
    return messages


def answers_in(books: dict[str, Any], limits: tuple) -> list[tuple[str, str, tuple]]:
    """List whose each answer is, its key in the store, and what `judge_among` takes."""
    files = [*ROOT.glob("vit_*/**/*.py"), *ROOT.glob("vit_course/teaching/*.md")]
    course = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(files))).hexdigest()
    answers = []
    for who, book in books.items():
        if book["metadata"].get("unread"):
            continue
        codes = [c for c in book["cells"] if c["cell_type"] == "code" and not is_test(c)]
        sources = [cell["source"] for cell in codes]
        names = {n: str(grade_id(cell)) for n, cell in enumerate(codes) if is_task(cell)}
        for own, name in names.items():
            inputs = (name, sources, own, names, *limits)
            key = hashlib.sha256(json.dumps([course, *inputs]).encode()).hexdigest()
            answers.append((who, key, inputs))
    return answers


def alone(page: str, student: str, note: str) -> str:
    """Make a page of feedback begin by the note, name student and tasks, and fetch nothing."""
    page = re.sub(rf'(<a href="#{TEST}(\w+)">)Test cell', r"\1\2", page)
    page = re.sub(rf"Grade cell: <code>{TEST}(\w+)</code>", r"<code>\1</code>", page)
    page = re.sub(r"<script\b.*?</script>|<link\b[^>]*>", "", page, flags=re.DOTALL)
    page = page.replace("</head>", f"<style>{STYLE}</style></head>", 1)
    page = page.replace("<h4>", f"<h4>{student}: ", 1)
    top = f"<p><strong>{note}</strong></p>"
    return re.sub(r"(<body[^>]*>)", rf"\1{top}", page, count=1) if note else page
