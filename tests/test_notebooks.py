"""The lessons keep to their form, and the form's rules catch what breaks it."""

import json
import re
import subprocess
import sys
from copy import deepcopy
from itertools import zip_longest
from pathlib import Path
from statistics import median

import hygiene
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from vit_course import address, lessons
from vit_course.checks.keeping import PIECES
from vit_course.folding import fold_answers, solutions
from vit_course.minutes import STATED

LESSONS = sorted((lessons.ROOT / "notebooks").glob("*.ipynb"))
SOLUTIONS = sorted((lessons.ROOT / "notebooks" / "solutions").glob("*.ipynb"))
ALL = LESSONS + SOLUTIONS


def read(path: Path):
    return nbformat.read(path, as_version=4)


def name_of(path: Path) -> str:
    return path.stem


each_notebook = pytest.mark.parametrize("path", ALL, ids=lambda p: f"{p.parent.name}/{p.stem}")
each_lesson = pytest.mark.parametrize("path", LESSONS, ids=name_of)


def test_every_lesson_has_its_solutions():
    assert [p.stem for p in LESSONS] == [p.stem for p in SOLUTIONS]


@each_notebook
def test_notebook_is_clean(path):
    assert hygiene.problems(path) == []


@each_notebook
def test_setup_cell_is_the_same_everywhere_folded_and_holds_the_address(path):
    first, model = (hygiene.code_cells(read(p))[0] for p in (path, SOLUTIONS[0]))
    map_of_the_lesson = f"\nplots.course_map({int(path.stem[:2])})" if path in LESSONS else ""
    assert first.source == model.source + map_of_the_lesson
    folded = {"cellView": "form", "jupyter": {"source_hidden": True}}
    assert {key: value for key, value in first.metadata.items() if key != "slideshow"} == folded
    assert f"git+{address.current()}" in first.source


@each_lesson
def test_lesson_opens_with_title_badge_setup_and_map(path):
    title, setup, caption, *_ = read(path).cells
    repository = address.current().removeprefix("https://github.com/")
    badge = re.escape(f"https://colab.research.google.com/github/{repository}/blob/")
    assert title.source.startswith(f"# {path.stem[:2]} · ")
    page = rf"[\w.-]+/notebooks/{path.name}"  # of main, or of a tag: tests/test_colab.py
    assert re.search(rf"\[Open in Colab\]\({badge}{page}\)", title.source)
    assert setup.cell_type == "code"
    assert caption.source.startswith("*Figure:")


@each_lesson
def test_a_lesson_has_the_form(path):
    assert hygiene.form(read(path), core=path.stem < "08") == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("minutes to read and run", "minutes in all", "the title does not say: "),
        ("## Recap", f"{'word ' * 3000}\n\n## Recap", " are over (40, 35)"),
        ("## Recap", "## In short", "of its last sections, "),
        ("<details><summary>After you ran it</summary>", "", " is not folded, and tells what "),
        ('checks.mine("EncoderBlock")', "vit_steps.EncoderBlock", "no `EncoderBlock = checks.mine"),
        ("## 2 · Two Linears", f"{'word ' * 3000}\n\n## 2 · Two Linears", "the first task comes"),
    ],
)
def test_a_lesson_in_another_form_is_found(old, new, complaint):
    book = read(LESSONS[5])
    cell = next(cell for cell in book.cells if old in cell.source)
    cell.source = cell.source.replace(old, new)
    assert any(complaint in found for found in hygiene.form(book, core=True))


@each_notebook
def test_no_address_but_the_one(path):
    text = path.read_text(encoding="utf-8")
    others = text.replace(address.current().removeprefix("https://"), "")
    assert "github.com/" not in others.replace("colab.research.google.com/github/", "")


@each_lesson
def test_code_cells_are_short(path):
    """One idea a cell. A class stands whole where it is built."""
    book = read(path)
    cells = hygiene.code_cells(book)[1:]
    lengths = {cell.id: len(cell.source.splitlines()) for cell in cells}
    built = {cell.id for cell in hygiene.tasks(book)}
    assert median(lengths.values()) <= 5
    assert max(n for name, n in lengths.items() if name not in built) <= 20
    assert max(lengths[name] for name in built) <= 30
    assert max(len(line) for cell in cells for line in cell.source.splitlines()) <= 90


@each_lesson
def test_reading_is_at_least_one_and_a_half_times_the_code(path):
    words = {"markdown": 0, "code": 0}
    for cell in read(path).cells[2:]:
        words[cell.cell_type] += len(cell.source.split())
    assert words["markdown"] >= 1.5 * words["code"], words


@each_lesson
def test_exercises_are_two_or_three_with_hints_and_not_attempted(path):
    cells = read(path).cells
    exercises = [c.source for c in cells if re.search(r"(?m)^### Exercise \d", c.source)]
    assert len(exercises) in (2, 3)
    assert all("<details><summary>" in text for text in exercises)
    assert all(STATED.search(text) for text in exercises)
    # Lesson 08 builds no piece of the model, but experiments.
    assert len(hygiene.tasks(read(path))) >= len(exercises) + len(hygiene.builds(read(path)))
    assert any(f"(solutions/{path.name})" in c.source for c in cells)


def test_every_piece_has_its_build_cell_once():
    built = [name for path in LESSONS for name in hygiene.builds(read(path))]
    assert built == list(PIECES)


def stale(lesson, answers, stem: str) -> list[str]:
    """The cells of a lesson and its solutions in which another answer stands than is declared."""
    declared = deepcopy(lesson)
    fold_answers(declared)
    pairs = [*zip(lesson.cells, declared.cells, strict=True)]
    wanted = solutions(lesson, stem).cells
    pairs += zip_longest(answers.cells, wanted, fillvalue=new_markdown_cell("missing", id="none"))
    return [cell.id for cell, wanted in pairs if cell.source != wanted.source]


@each_lesson
def test_the_declared_answers_stand_in_folds_and_solutions(path):
    answers = path.parent / "solutions" / path.name
    assert stale(read(path), read(answers), path.stem) == []


def test_an_answer_that_is_not_the_declared_one_is_found():
    path = LESSONS[0]
    books = read(path), read(path.parent / "solutions" / path.name)
    for book in books:
        folds = (c for c in reversed(book.cells) if "```python" in c.source or "answer" in c.id)
        cell = next(cell for cell in folds if " = " in cell.source)
        whole, cell.source = cell.source, cell.source.replace(" = ", " = 1 + ", 1)
        assert stale(*books, path.stem) == [cell.id]
        cell.source = whole


@pytest.mark.parametrize("path", SOLUTIONS, ids=name_of)
def test_solutions_are_right(path):
    lesson = read(lessons.ROOT / "notebooks" / path.name)
    texts = [o.get("text", "") for c in hygiene.code_cells(read(path)) for o in c.outputs]
    last = [text.splitlines()[-1] for text in texts if text]  # after what it says of other pieces
    right = [line for line in last if line == "right" or line.startswith("right: ")]
    assert len(right) == len(hygiene.tasks(lesson))
    assert not any("not attempted" in text for text in texts)


def test_at_most_4_in_100_cells_are_not_compared():
    cells = [cell for path in ALL for cell in hygiene.code_cells(read(path))]
    assert sum(map(hygiene.is_ignored, cells)) <= 0.04 * len(cells)


# The rules themselves: each bad notebook below breaks one of them.

PICTURE = new_output("display_data", data={"image/png": "iVBORw0KGgo=", "text/plain": "<Figure>"})
CAPTION = "*Figure: a line that rises from the left to the right, from 0 to 1, as x does.*"


def good_book():
    """A small notebook that no rule objects to."""
    code = new_code_cell("1 + 1", execution_count=1)
    code.outputs = [new_output("execute_result", data={"text/plain": "2"}, execution_count=1)]
    drawing = new_code_cell("draw()", execution_count=2, outputs=[PICTURE])
    cells = [new_markdown_cell("# A title"), code, drawing, new_markdown_cell(CAPTION)]
    for cell in cells:
        cell.metadata["slideshow"] = {"slide_type": "slide"}
    return new_notebook(cells=cells)


def written(book, folder: Path) -> Path:
    path = folder / "lesson.ipynb"
    path.write_text(json.dumps(book), encoding="utf-8")  # nbformat would mend some faults
    return path


def prints(**data):
    """What spoils the output of the first cell of code."""
    return lambda cells: cells[1].outputs[0].data.update(data)


BAD = {  # what must be found, and what spoils the cells of the good notebook so
    "execution counts": lambda cells: cells[1].update(execution_count=None),
    "no caption": lambda cells: cells[3].update(source="A line."),
    "a machine's path": prints(**{"text/plain": "'/home/someone/photo.jpg'"}),
    "02_no_such_lesson.ipynb": lambda cells: cells[0].update(source="[x](02_no_such_lesson.ipynb)"),
    "a picture in Markdown": lambda cells: cells[0].update(source="![a](https://a.org/cat.png)"),
    "an error, ValueError": lambda cells: cells[1].update(
        outputs=[new_output("error", ename="ValueError", evalue="no", traceback=[])]
    ),
    "a warning": lambda cells: cells[1].update(
        outputs=[new_output("stream", name="stderr", text="UserWarning: careful")]
    ),
    "image/svg+xml": prints(**{"image/svg+xml": "<svg/>"}),
    "an output over": prints(**{"text/plain": "7" * 300_001}),
    "stands twice": lambda cells: cells[1].update(id=cells[0]["id"]),
    "gives no reason": lambda cells: cells[1].metadata.update(tags=["nbval-ignore-output"]),
    "cell 2 is the slide None": lambda cells: cells[2].metadata.pop("slideshow"),
    "cell 2 is the slide {'slide_type': 'title'}": lambda cells: cells[2].metadata.update(
        slideshow={"slide_type": "title"}
    ),
}
BAD_METADATA = {
    "widgets": dict(widgets={"application/vnd.jupyter.widget-state+json": {}}),
    "version of Python": dict(language_info={"name": "python", "version": "3.11.7"}),
}


def test_a_good_notebook_passes(tmp_path):
    assert hygiene.problems(written(good_book(), tmp_path)) == []
    (folder := tmp_path / "solutions").mkdir()
    assert "cell 0 is the slide" in hygiene.problems(written(good_book(), folder))[0]


PATHS = [
    "'/home/someone/photo.jpg'",
    "saved to /data/run.pt",
    "line 3\n/mnt/x/y",
    "<td>/opt/a/b.png</td>",
    "PYTHONPATH=/usr/lib",
    "[here](/srv/course/x.html)",
    "**/Users/ann**",
    "file:///x",
    "~/photos/cat.jpg",
    r"C:\Users\ann",
    "D:/photos",
    r"\\server\share\x",
]
NO_PATHS = [
    "1/255, 3/4/5 and and/or",
    "H/P · W/P patches, (H/P)/w/d, x[0]/a/b",
    "ViT-B/16, /16 and /32, B/16/224",
    "https://example.org/a/b and (https://example.org/a/b)",
    "[lesson](../images/map/x.png), solutions/01_patches.ipynb, …/a/b",
    r"$\frac{1}{\sqrt{d}}/h/d$, $x: \mathbb{R}$ and $a \\ b \cdot c$",
    "a</b></i> text/plain km/h 03/04/2026",
    "x = a // b // c, f'{a}/{b}/c'",
]


@pytest.mark.parametrize("text", PATHS)
def test_a_machines_path_is_known_by_its_form(text):
    printed = new_code_cell("x", outputs=[new_output("stream", name="stdout", text=text)])
    shown = new_code_cell("x", outputs=[new_output("display_data", data={"text/html": text})])
    for cell in (new_markdown_cell(text), new_code_cell(text), printed, shown):
        assert hygiene.paths(new_notebook(cells=[cell])), cell


@pytest.mark.parametrize("text", NO_PATHS)
def test_what_only_holds_slashes_is_no_path(text):
    assert hygiene.paths(new_notebook(cells=[new_markdown_cell(text)])) == []


def test_a_picture_is_not_read_as_a_path():
    drawing = new_code_cell("x", outputs=[new_output("display_data", data={"image/png": "/a/b"})])
    assert hygiene.paths(new_notebook(cells=[drawing])) == []


@pytest.mark.filterwarnings("ignore")  # nbformat warns of what is meant to be wrong here
@pytest.mark.parametrize("complaint", [*BAD, *BAD_METADATA])
def test_a_bad_notebook_is_caught(complaint, tmp_path):
    book = good_book()
    if complaint in BAD:
        BAD[complaint](book.cells)
    else:
        book.metadata |= BAD_METADATA[complaint]
    found = hygiene.problems(written(book, tmp_path))
    assert any(complaint in problem for problem in found), found


def test_a_changed_output_is_caught_by_nbval(tmp_path):
    cell = new_code_cell("print(0.5)", execution_count=1)
    cell.outputs = [new_output("stream", name="stdout", text="0.4\n")]
    path = written(new_notebook(cells=[cell]), tmp_path)
    command = [sys.executable, "-m", "pytest", "--nbval", "-q", "-p", "no:cacheprovider", path]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 1, result.stdout
    assert "0.4" in result.stdout
