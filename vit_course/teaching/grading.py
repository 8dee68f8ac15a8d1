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
from difflib import get_close_matches
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
    ALL,
    ASSIGNMENTS,
    TEST,
    cleared,
    code,
    grade_id,
    is_task,
    lay_source,
    markdown,
    nbgrader,
    read_book,
    write_book,
)

WRAPPED = "pre {white-space: pre-wrap !important; overflow-wrap: anywhere}"
LARGEST = 50_000_000  # bytes of a notebook
OUTSIDE = 4000  # megabytes that judging may take, beside what PyTorch takes
DEEPEST = 20  # folders in one another whose files are named one by one
UNREAD = "This file could not be read as a notebook, so nothing in it was marked: hand it in again."
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
    """Grade all that lies in a folder: grades.csv, and pages of feedback beside it.

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
        for page in sorted(course.glob("feedback/*/*/*.html")):
            place = to / "feedback" / page.parent.parent.name
            place.mkdir(parents=True, exist_ok=True)
            text = alone(page.read_text(encoding="utf-8"), UNSAFE if unsafe else "")
            (place / page.name).write_text(text, encoding="utf-8")
    (to / "unfinished.json").unlink(missing_ok=True)
    with (to / "grades.csv").open(encoding="utf-8") as file:
        for r in csv.DictReader(file):
            if f"{r['student_id']}/{r['assignment']}" in books:  # the CSV gives 0 to the others
                score = f"{r['score']} of {r['max_score']}"
                told.append(f"{r['student_id']}, {r['assignment']}: {score}")
    told = ["".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in x) for x in told]
    (to / "notes.txt").write_text("\n".join([*told, ""]), encoding="utf-8")
    held = "grades.csv, a page of feedback for each notebook, and these lines as notes.txt"
    return [*told, f"{to.name} holds {held}."]


# How browsers, JupyterLab and people call a second copy. Of several downloads the last counts; what
# is called a copy, only where there is nothing else.
SECOND = re.compile(r"(?: ?\((?P<number>\d+)\)| (?P<other>\d+)|(?P<copy> - Copy| copy|-Copy\d*))+$")


def found_in(folder: Path) -> tuple[dict[tuple[str, str], Path], list[str]]:
    """The notebooks to grade, by student and assignment; and of every other file why it is not."""
    work: dict[tuple[str, str], tuple[int, Path]] = {}
    told = []
    for path in files_of(folder):
        parts = path.relative_to(folder).parts
        stem, rank = named(path.stem)
        why = ""
        if path.is_symlink() or not path.is_file():
            why = "it is a link, or no file"
        elif len(parts) != 2:
            why = "it does not lie in a student's own folder, STUDENT/FILE"
        elif path.suffix != ".ipynb":
            why = "it is no notebook"
        elif stem not in ALL:
            near = get_close_matches(stem.lower(), ALL, 1)
            why = "no assignment has this name" + (f"; is it {near[0]}?" if near else "")
        elif path.stat().st_size > LARGEST:
            why = f"it is larger than {LARGEST // 1_000_000} MB; clear its outputs"
        elif (before := work.get((parts[0], stem))) and before[0] > rank:
            why = f"{before[1].name} is"
        elif before:
            told.append(f"{before[1].relative_to(folder)} is not graded: {path.name} is")
        if why:
            told.append(f"{path.relative_to(folder)} is not graded: {why}")
        else:
            work[parts[0], stem] = rank, path
    return {key: path for key, (_, path) in sorted(work.items())}, told


def named(stem: str) -> tuple[str, int]:
    """The assignment of a file's name, and its rank among several of it."""
    second = SECOND.search(stem)
    plain = SECOND.sub("", stem)
    copy = plain.removeprefix("Copy of ")
    if copy != plain or (second and second["copy"]):
        return copy, -1
    return copy, int(second["number"] or second["other"]) if second else 0


def files_of(folder: Path) -> list[Path]:
    """All files below a folder, without following links; of deeper folders at most the names."""
    found, waiting = [], [folder]
    while waiting:
        for path in waiting.pop().iterdir():
            inner = path.is_dir() and not path.is_symlink()
            deep = len(path.relative_to(folder).parts) > DEEPEST
            (waiting if inner and not deep else found).append(path)
    return sorted(found)


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
    from .answer import limit_addresses

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that began them
    import_module(f"{__package__}.judge")
    limit_addresses(OUTSIDE)


def is_test(cell: Any) -> bool:
    """Whether a cell is one of nbgrader's that give points."""
    return str(grade_id(cell)).startswith(TEST)


def alone(page: str, note: str) -> str:
    """A page of feedback that names the tasks and asks nothing of a network, with a note on top."""
    page = re.sub(rf'(<a href="#{TEST}(\w+)">)Test cell', r"\1\2", page)
    page = re.sub(r"<script\b.*?</script>|<link\b[^>]*>", "", page, flags=re.DOTALL)
    page = page.replace("</head>", f"<style>{WRAPPED}</style></head>", 1)
    top = f"<p><strong>{note}</strong></p>"
    return re.sub(r"(<body[^>]*>)", rf"\1{top}", page, count=1) if note else page


def in_order(released: dict[str, Any], path: Path) -> tuple[dict[str, Any], str]:
    """A submission as nbgrader needs it, whatever became of it: the student's code, in their order,
    each task below its name and above its grade cell; and what is amiss, or "".

    Of several cells for a task the last counts of those with the best claim: its own by metadata,
    which some editors lose, if something was written in it; one with its check; one that defines
    its name.
    """
    tasks: dict[str, list[Any]] = {}  # a heading, the cell, the grade cell
    for cell in released["cells"]:
        name = str(grade_id(cell)).removeprefix(TEST)
        if is_task(cell):
            tasks[name] = [markdown(f"## {name}", f"text-{name}"), cell]
        elif is_test(cell):
            tasks[name].append(cell)
    amiss, theirs = "", []
    try:
        theirs = codes_of(path.read_bytes())
    except Exception as error:  # whatever a file can be
        amiss = f"no notebook that can be read ({type(error).__name__})"
    best: dict[str, tuple[int, int]] = {}  # of each task the claim and the number of its cell
    for number, (given, source) in enumerate(theirs):
        for name, claim in claims(given, source, tasks):
            best[name] = max(best.get(name, (0, 0)), (claim, number))
    names = {number: name for name, (_, number) in best.items()}
    cells = [released["cells"][0]]
    if amiss:
        cells.append(markdown(f"**{UNREAD}**", "unread"))
    for number, (given, source) in enumerate(theirs):
        if number in names:
            heading, cell, test = tasks[names[number]]
            cells += [heading, cell | {"source": source, "id": f"task-{number}"}, test]
        elif not str(given).startswith(TEST):
            cells.append(code(source, {}, f"own-{number}"))
    missing = [name for name in tasks if name not in names.values()]
    for name in missing:
        cells += tasks[name]
    if missing and not amiss:
        amiss = f"no cell for {', '.join(missing)}"
    return released | {"cells": cells}, amiss


def codes_of(data: bytes) -> list[tuple[str | None, str]]:
    """Of each code cell of a notebook nbgrader's name, and the source, as text that can be written.

    Raises:
        Exception: of many kinds, where it is no notebook.
    """
    cells = json.loads(data.decode(json.detect_encoding(data), "replace"))["cells"]
    codes = [c for c in cells if isinstance(c, dict) and c.get("cell_type") == "code"]
    sources = ["".join(cell.get("source") or "") for cell in codes]
    clean = [x.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for x in sources]
    return list(zip(map(grade_id, codes), clean, strict=True))


def claims(given: str | None, source: str, tasks: dict[str, list]) -> list[tuple[str, int]]:
    """The tasks whose answer a cell may be, and how good its claim is."""
    if given in tasks:
        stub = "".join(tasks[given][1]["source"]).strip()
        return [(given, 3 if source.strip() not in ("", stub) else 0)]
    called = [name for name in re.findall(r"\bchecks\.(\w+)\(", source) if name in tasks]
    if called:
        return [(called[-1], 2)]
    defined = re.findall(r"(?m)^(?:def|class) (\w+)", source)
    return [(name, 1) for name in defined if name in tasks][:1]
