"""Grade a folder of submissions.

Each answer is judged apart (`judge.py`); nbgrader, in whose processes no line of a submission
runs, keeps the marks and writes the pages of feedback. What remains possible stands
in notebooks/TEACHING.md.
"""

import hashlib
import json
import os
import re
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
from .judge import UNNAMED
from .pool import FAILED, SECONDS, judge_all
from .submissions import found_in, in_order, is_test

# Of nbgrader's page what tells a student something is shown, and a verdict by its colour too.
STYLE = f"""
pre {{ white-space: pre-wrap !important; word-break: normal; overflow-wrap: anywhere }}
.prompt, .panel-footer, li:has(> [href^="#comment-"]) {{ display: none }}
.nbgrader_cell:has(> [name^="{TEST}"]) .panel-body {{ display: none }}
.output_subarea pre {{ border-left: 6px solid #0072b2 }}
.output_error pre {{ border-left-color: #d55e00 }}
"""
NOTHING = "nothing was handed in for this task"
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
    released: Path | None = None,
) -> list[str]:
    """Grade all that lies in a folder: grades.csv, tasks.csv, and pages of feedback beside them.

    What was judged is kept in `to`: stopped, it goes on, and another run judges what is new alone.

    Args:
        folder: holds a folder of notebooks for each student.
        to: where the grades and pages go.
        seconds, megabytes: what each task may take.
        unsafe: without a sandbox.
        roster: a table of students and their names, for grades.csv.
        released: the folder of the assignments that the class got. Where it has some sections of a
            lesson alone, the whole lesson is graded as these.

    Returns:
        The lines to print.

    Raises:
        ValueError: there is nothing to grade, or the roster or by_hand.csv cannot be used.
        RuntimeError: nbgrader or the sandbox is missing, or failed.
    """
    work, senders, notes = found_in(folder, released)
    if not work:
        raise ValueError(f"{folder} holds no STUDENT/{ASSIGNMENTS[0]}.ipynb, or the like")
    names, renamed = plain_names({student for student, _ in work})
    notes += renamed

    def called(student: str) -> str:
        return names.get(student, plain(student))

    class_names = gradebook.roster(roster, called) if roster else {}
    absent = {*map(called, senders), *class_names} - {*names.values()}
    notes += [f"{student} handed in nothing to grade" for student in sorted(absent)]
    if not unsafe:
        sandbox.ready([ROOT / "vit_course", folder, to])
    with TemporaryDirectory() as other:
        course = Path(other)
        lay_source(course, sorted({name for _, name in work}))
        books = {}
        for (student, name), path in work.items():
            blank = nbformat.read(course / "release" / name / f"{name}.ipynb", as_version=4)
            book, problem = in_order(blank, path)
            books[f"{names[student]}/{name}"] = book
            write_book(course / "submitted" / names[student] / name / f"{name}.ipynb", book)
            notes += [f"{student}, {name}: {problem}"] if problem else []
        most = {
            (*who.split("/"), task_name(cell)): cell["metadata"]["nbgrader"]["points"]
            for who, book in books.items()
            for cell in filter(is_test, book["cells"])
        }
        given = gradebook.by_hand(to / "by_hand.csv", most, called)
        marks = judged(books, to, (seconds, megabytes, unsafe))
        notes += [
            f"{who.replace('/', ', ')}, {task}: {message}; grade it by hand"
            for who, messages in marks.items()
            for task, message in messages.items()
            if message.startswith((FAILED, UNNAMED))
        ]
        right = {key: most[key] * (marks["/".join(key[:2])][key[2]] == "right") for key in most}
        points = {**right, **given}
        gradebook.save(to / "tasks.csv", gradebook.tasks(points, most))
        gradebook.save(to / "grades.csv", gradebook.grades(points, most, class_names))
        # Only now, when no student's code runs any more, is there a gradebook.
        os.environ["MARKS"] = str(course / "marks.json")
        Path(os.environ["MARKS"]).write_text(json.dumps(marks), encoding="utf-8")
        nbgrader(course, "autograde", "--assignment=*")
        give(course, given)
        heads = {who: [UNSAFE] if unsafe else [] for who in books}
        for (student, name, task), score in given.items():
            heads[f"{student}/{name}"].append(f"{task}: {score:g} points by hand.")
        write_pages(course, to, heads)
    notes += [f"{', '.join(key)}: {score:g} by hand" for key, score in given.items()]
    if class_names:
        strangers = sorted({*names.values()} - {*class_names})
        notes += [f"{student} is not in the roster" for student in strangers]
    for name in sorted({name for _, name in work}):
        alone = [student for student, own in work if own == name]
        if len(alone) == 1 < len(names) - 1:
            notes.append(f"{name} was handed in by {alone[0]} alone; the others have 0 there")
    scores, tops = gradebook.totals(points), gradebook.totals(most)
    notes += [f"{', '.join(who)}: {scores[who]:g} of {top:g}" for who, top in sorted(tops.items())]
    notes = ["".join(c if c.isprintable() else "\ufffd" for c in note) for note in notes]
    (to / "notes.txt").write_text("\n".join([*notes, ""]), encoding="utf-8")
    told = "a page of feedback for each notebook, and notes.txt, these lines"
    return [*notes, f"{to.name} holds grades.csv, tasks.csv, {told}."]


def give(course: Path, points: dict[gradebook.Key, float]) -> None:
    """Write points that were given by hand into nbgrader's gradebook, which the pages show."""
    api: Any = import_module("nbgrader.api")
    with api.Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        for (student, name, task), score in points.items():
            book.find_grade(f"{TEST}{task}", name, name, student).manual_score = score
        book.db.commit()


def plain(student: str) -> str:
    """Name a student as nbgrader can, which takes a name as part of a path and of a pattern."""
    return re.sub(r"^\.+|[^\w.-]", "_", student)


def plain_names(students: set[str]) -> tuple[dict[str, str], list[str]]:
    """Name each student as nbgrader can, and otherwise than all others.

    Returns:
        The name by folder; and a line for each that would have been another's, and is told apart.
    """
    names, notes = {}, []
    for student in sorted(students, key=lambda student: (plain(student) != student, student)):
        names[student] = plain(student)
        while [*names.values()].count(names[student]) > 1:
            names[student] += "_"
        if names[student] != plain(student):
            name, first = names[student], plain(student)
            notes.append(f"{student} is called {name} here, since another folder is {first}")
    return names, notes


def write_pages(course: Path, to: Path, heads: dict[str, list[str]]) -> None:
    """Write the pages of feedback, each headed by its lines of `heads`."""
    nbgrader(course, "generate_feedback", "--assignment=*")
    for page in course.glob("feedback/*/*/*.html"):
        student, name = page.parts[-3:-1]
        (to / "feedback" / student).mkdir(parents=True, exist_ok=True)
        text = alone(page.read_text("utf-8"), student, " ".join(heads[f"{student}/{name}"]))
        (to / "feedback" / student / page.name).write_text(text, encoding="utf-8")


def judged(books: dict[str, Any], to: Path, limits: tuple) -> dict[str, dict[str, str]]:
    """Judge each task of each book, and keep what was judged in `to`.

    Returns:
        Of each book the message for each task.
    """
    to.mkdir(parents=True, exist_ok=True)
    store = to / "judged.json"
    stored: dict[str, str] = json.loads(store.read_text("utf-8")) if store.exists() else {}
    tasks = answers_in(books, limits)
    new = {key: (f"{who}: {inputs[0]}", inputs) for who, key, inputs in tasks if key not in stored}
    bar = tqdm(desc="judged", total=len(tasks), initial=len(tasks) - len(new), unit=" answers")
    most = 2 * (limits[0] + SECONDS)  # an answer may be judged twice, with the course's pieces too
    with bar, closing(judge_all(new, most, bar)) as messages_by_key:
        for key, message in messages_by_key:
            stored[key] = message
            write_whole(store, json.dumps(stored).encode())
    messages = {}
    for who, book in books.items():
        missing = "" if book["metadata"].get("unread") else NOTHING  # of an unread file all is said
        messages[who] = dict.fromkeys(map(task_name, filter(is_test, book["cells"])), missing)
    for who, key, (name, *_) in tasks:
        messages[who][name] = stored[key]
    return messages


def answers_in(books: dict[str, Any], limits: tuple) -> list[tuple[str, str, tuple]]:
    """List whose each answer is, its key in the store, and what `judge_among` takes."""
    files = [*ROOT.glob("vit_*/**/*.py"), *ROOT.glob("vit_course/teaching/*.md")]
    course = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(files))).hexdigest()
    answers = []
    for who, book in books.items():
        codes = [c for c in book["cells"] if c["cell_type"] == "code" and not is_test(c)]
        sources = [cell["source"] for cell in codes]
        names = {n: str(grade_id(cell)) for n, cell in enumerate(codes) if is_task(cell)}
        for own, name in names.items():
            if not sources[own].strip():
                continue
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
