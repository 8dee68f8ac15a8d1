"""Grades a folder of submissions: each answer is judged apart (`judge.py`), and nbgrader, in whose
processes no line of a submission runs, keeps the marks and writes the pages of feedback.

What remains possible stands in notebooks/TEACHING.md.
"""

import csv
import hashlib
import json
import os
import re
import shutil
import signal
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from importlib import import_module
from multiprocessing import active_children, get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tqdm import tqdm

from vit_steps.files import write_whole

from ..lessons import ROOT
from . import sandbox
from .assignments import (
    ASSIGNMENTS,
    TEST,
    cleared,
    grade_id,
    is_task,
    lay_source,
    nbgrader,
    read_book,
    write_book,
)
from .submissions import found_in, in_order, is_test

# Of nbgrader's page what tells a student something is shown, and a verdict by its colour too.
STYLE = f"""
pre {{ white-space: pre-wrap !important; word-break: normal; overflow-wrap: anywhere }}
.prompt, .panel-footer, li:has(> [href^="#comment-"]) {{ display: none }}
.nbgrader_cell:has(> [name^="{TEST}"]) .panel-body {{ display: none }}
.output_subarea pre {{ border-left: 6px solid #0072b2 }}
.output_error pre {{ border-left-color: #d55e00 }}
"""
OUTSIDE = 4000  # megabytes that judging may take, beside what PyTorch takes
UNSAFE = "This was graded without a sandbox: its code could reach all that the grader can."


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
        """Puts in what was said of the answers, in the place of running them."""

        def preprocess(self, nb, resources, km=None):
            who = resources["nbgrader"]["student"], resources["nbgrader"]["assignment"]
            said = json.loads(Path(os.environ["MARKS"]).read_text("utf-8"))["/".join(who)]
            for cell in filter(is_test, nb.cells):
                name = cell.metadata.nbgrader.grade_id.removeprefix(TEST)
                cell.outputs = [output_of(said[name])]
            return nb, resources

    def swapped(steps: list, old: type, new: type) -> list:
        return [new if step is old else step for step in steps]

    made = converters.GenerateAssignment.preprocessors.default_args[0]
    graded = converters.Autograde.autograde_preprocessors.default_args[0]
    config.GenerateAssignment.preprocessors = swapped(made, usual.ClearSolutions, ClearToStub)
    config.Autograde.autograde_preprocessors = swapped(graded, usual.Execute, Judge)


def output_of(message: str) -> Any:
    """The output by which nbgrader gives a grade cell all of its points, or none."""
    from nbformat.v4 import new_output

    if message == "right":
        return new_output("stream", name="stdout", text="right\n")
    said = {"ename": "NotRight", "evalue": message, "traceback": message.splitlines()}
    return new_output("error", **said)


def grade(
    folder: Path, to: Path, seconds: float = 60, megabytes: int = 2000, unsafe: bool = False
) -> list[str]:
    """Grade all that lies in a folder: grades.csv, tasks.csv, and pages of feedback beside them.

    What was judged is kept in `to`, until all is; so it can be stopped, and goes on.

    Args:
        folder: holds a folder of notebooks for each student.
        to: where the grades and pages go.
        seconds, megabytes: what each task may take.
        unsafe: without a sandbox.

    Returns:
        What to tell the teacher.

    Raises:
        ValueError: there is nothing to grade, or two students would have the same name.
        RuntimeError: nbgrader or the sandbox is missing, or failed.
    """
    work, told = found_in(folder)
    there = {path.name for path in folder.iterdir() if path.is_dir() and not path.is_symlink()}
    told += [f"{who} handed in nothing to grade" for who in sorted(there - {s for s, _ in work})]
    if not work:
        raise ValueError(f"{folder} holds no STUDENT/{ASSIGNMENTS[0]}.ipynb, or the like")
    # nbgrader takes a student's name as part of a path and of a pattern
    names = {student: re.sub(r"^\.+|[^\w.-]", "_", student) for student, _ in work}
    alike = [s for s in names if list(names.values()).count(names[s]) > 1]
    if alike:
        raise ValueError(f"two folders would both be the student of one name: {', '.join(alike)}")
    if not unsafe:
        sandbox.ready([ROOT / "vit_course", folder, to])
    with TemporaryDirectory() as other:
        course = Path(other)
        lay_source(course, sorted({name for _, name in work}))
        books = {}
        for (student, name), path in work.items():
            released = read_book(course / "release" / name / f"{name}.ipynb")
            book, amiss = in_order(released, path)
            books[f"{names[student]}/{name}"] = book
            write_book(course / "submitted" / names[student] / name / f"{name}.ipynb", book)
            told += [f"{student}, {name}: {amiss}"] if amiss else []
        marks = judged(books, to, (seconds, megabytes, unsafe))
        # Only now, when no student's code runs any more, is there a gradebook.
        os.environ["MARKS"] = str(course / "marks.json")
        Path(os.environ["MARKS"]).write_text(json.dumps(marks), encoding="utf-8")
        for step in ("autograde", "generate_feedback"):
            nbgrader(course, step, "--assignment=*")
        nbgrader(course, "export", "--to=grades.csv")
        shutil.copy(course / "grades.csv", to)
        write_tasks(to / "tasks.csv", books, marks)
        for page in sorted(course.glob("feedback/*/*/*.html")):
            place = to / "feedback" / page.parent.parent.name
            place.mkdir(parents=True, exist_ok=True)
            text = alone(page.read_text("utf-8"), place.name, UNSAFE if unsafe else "")
            (place / page.name).write_text(text, encoding="utf-8")
    (to / "unfinished.json").unlink(missing_ok=True)
    with (to / "grades.csv").open(encoding="utf-8") as file:
        for r in csv.DictReader(file):
            if f"{r['student_id']}/{r['assignment']}" in books:  # the CSV gives 0 to the others
                score = f"{r['score']} of {r['max_score']}"
                told.append(f"{r['student_id']}, {r['assignment']}: {score}")
    told = ["".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in x) for x in told]
    (to / "notes.txt").write_text("\n".join([*told, ""]), encoding="utf-8")
    held = "grades.csv, tasks.csv, a page of feedback for each notebook, and notes.txt, these lines"
    return [*told, f"{to.name} holds {held}."]


def write_tasks(path: Path, books: dict[str, Any], marks: dict[str, dict[str, str]]) -> None:
    """Write what each task of each notebook has, a line each."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["student_id", "assignment", "task", "score", "max_score"])
        for who, book in books.items():
            for cell in filter(is_test, book["cells"]):
                name = str(grade_id(cell)).removeprefix(TEST)
                points = cell["metadata"]["nbgrader"]["points"]
                score = points if marks[who][name] == "right" else 0
                rows.writerow([*who.split("/"), name, score, points])


def judged(books: dict[str, Any], to: Path, limits: tuple) -> dict[str, dict[str, str]]:
    """What is said of each task of each book; as many at a time as there are processors."""
    from .judge import judge_among

    to.mkdir(parents=True, exist_ok=True)
    kept = to / "unfinished.json"
    known: dict[str, str] = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    before = 0
    said: dict[str, dict[str, str]] = {who: {} for who in books}
    files = [*ROOT.glob("vit_*/**/*.py"), *ROOT.glob("vit_course/teaching/*.md")]
    course = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(files))).hexdigest()
    waiting = {}
    spawn = get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=spawn, initializer=begin) as pool:
        for who, book in books.items():
            codes = [c for c in book["cells"] if c["cell_type"] == "code" and not is_test(c)]
            sources = [cell["source"] for cell in codes]
            tasks = {n: str(grade_id(cell)) for n, cell in enumerate(codes) if is_task(cell)}
            for own, name in tasks.items():
                given = (name, sources, own, tasks, *limits)
                key = hashlib.sha256(json.dumps([course, *given]).encode()).hexdigest()
                if key in known:
                    said[who][name] = known[key]
                    before += 1
                else:
                    waiting[pool.submit(judge_among, *given)] = who, name, key
        try:
            bar = tqdm(desc="judged", total=before + len(waiting), initial=before, unit=" answers")
            for done in as_completed(waiting):
                who, name, key = waiting[done]
                said[who][name] = known[key] = result_of(done)
                write_whole(kept, json.dumps(known).encode())
                bar.update()
            bar.close()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in active_children():  # else what has begun would be waited for
                child.kill()
            raise
    return said


def result_of(done: Future) -> str:
    """What was said of an answer; where judging itself fails, for the others' sake, that it did."""
    try:
        return str(done.result())
    except Exception as error:
        return f"it could not be judged ({type(error).__name__})"


def begin() -> None:
    """Of a process that judges: what results, and questions, may take of it has an end."""
    import torch

    from .answer import limit_addresses

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that began them
    import_module(f"{__package__}.judge")
    torch.set_num_threads(1)  # as many of these processes as processors
    limit_addresses(OUTSIDE)


def alone(page: str, student: str, note: str) -> str:
    """A page of feedback that names student and tasks and asks nothing of a network, with a note on
    top."""
    page = re.sub(rf'(<a href="#{TEST}(\w+)">)Test cell', r"\1\2", page)
    page = re.sub(rf"Grade cell: <code>{TEST}(\w+)</code>", r"<code>\1</code>", page)
    page = re.sub(r"<script\b.*?</script>|<link\b[^>]*>", "", page, flags=re.DOTALL)
    page = page.replace("</head>", f"<style>{STYLE}</style></head>", 1)
    page = page.replace("<h4>", f"<h4>{student}: ", 1)
    top = f"<p><strong>{note}</strong></p>"
    return re.sub(r"(<body[^>]*>)", rf"\1{top}", page, count=1) if note else page
