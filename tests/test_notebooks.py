"""The lessons keep to their rules (hygiene.py), and the rules catch what breaks them."""

import builtins
import json
import re
import symtable
from copy import deepcopy
from itertools import zip_longest
from pathlib import Path

import hygiene
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from vit_course import address, lessons
from vit_course.checks.keeping import PIECES
from vit_course.folding import fold_answers, solutions
from vit_course.minutes import STATED, count, stated

LESSONS = sorted((lessons.ROOT / "notebooks").glob("*.ipynb"))
SOLUTIONS = sorted((lessons.ROOT / "notebooks" / "solutions").glob("*.ipynb"))
ALL = LESSONS + SOLUTIONS


def read(path: Path):
    return nbformat.read(path, as_version=4)


each_notebook = pytest.mark.parametrize("path", ALL, ids=lambda p: f"{p.parent.name}/{p.stem}")
each_lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda p: p.stem)


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


@each_notebook
def test_no_address_but_the_one(path):
    text = path.read_text(encoding="utf-8")
    others = text.replace(address.current().removeprefix("https://"), "")
    assert "github.com/" not in others.replace("colab.research.google.com/github/", "")


@each_lesson
def test_lesson_opens_with_title_minutes_badge_setup_and_map(path):
    title, setup, caption, *_ = read(path).cells
    repository = address.current().removeprefix("https://github.com/")
    badge = re.escape(f"https://colab.research.google.com/github/{repository}/blob/")
    assert title.source.startswith(f"# {path.stem[:2]} · ")
    page = rf"[\w.-]+/notebooks/{path.name}"  # of main, or of a tag: tests/test_colab.py
    assert re.search(rf"\[Open in Colab\]\({badge}{page}\)", title.source)
    assert stated(title.source) == count(read(path))
    assert setup.cell_type == "code"
    assert caption.source.startswith(hygiene.SHOWS)


@each_lesson
def test_exercises_have_hints_and_minutes_and_are_not_attempted(path):
    cells = read(path).cells
    exercises = [c.source for c in cells if re.search(r"(?m)^### Exercise \d", c.source)]
    assert len(exercises) >= 2
    assert all("<details><summary>" in text for text in exercises)
    assert all(STATED.search(text) for text in exercises)
    # Lesson 08 builds no piece of the model, but experiments.
    assert len(hygiene.tasks(read(path))) >= len(exercises) + len(hygiene.builds(read(path)))
    assert any(f"(solutions/{path.name})" in c.source for c in cells)


def unmade(source: str) -> set[str]:
    """Find the names that code asks its module for, and that it never makes there."""
    module = symtable.symtable(source, "cells", "exec")
    made = {s.get_name() for s in module.get_symbols() if s.is_assigned() or s.is_imported()}
    asked, tables = set(), [module]
    for table in tables:
        asked |= {s.get_name() for s in table.get_symbols() if s.is_global() and s.is_referenced()}
        tables += table.get_children()
    return asked - made - set(dir(builtins))


@pytest.mark.parametrize("path", LESSONS[1:8], ids=lambda p: p.stem)
def test_sections_5_and_6_may_be_skipped(path):
    assert unmade("def f(a):\n    return a + b") == {"b"}
    section, kept = "", []
    for cell in read(path).cells:
        if cell.cell_type == "markdown":
            for part in re.split(r"(?m)^(?=## )", cell.source):
                section = lessons.section_of(part) or section
        elif section not in ("5", "6"):
            kept.append(cell.source)
    assert unmade("\n".join(kept)) == set()


def test_every_piece_has_its_build_cell_once():
    built = [name for path in LESSONS for name in hygiene.builds(read(path))]
    assert built == list(PIECES)


@each_lesson
def test_the_declared_answers_stand_in_folds_and_solutions(path):
    lesson, answers = read(path), read(path.parent / "solutions" / path.name)
    declared = deepcopy(lesson)
    fold_answers(declared)
    pairs = [*zip(lesson.cells, declared.cells, strict=True)]
    expected = solutions(lesson, path.stem).cells
    pairs += zip_longest(answers.cells, expected, fillvalue=new_markdown_cell("missing", id="none"))
    assert [cell.id for cell, declared in pairs if cell.source != declared.source] == []


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda p: p.stem)
def test_solutions_are_right(path):
    lesson = read(lessons.ROOT / "notebooks" / path.name)
    outputs = [output for cell in hygiene.code_cells(read(path)) for output in cell.outputs]
    texts = [o.get("data", {}).get("text/plain", o.get("text", "")) for o in outputs]
    last = [text.splitlines()[-1] for text in texts if text]  # after what it says of other pieces
    right = [line for line in last if line == "right" or line.startswith("right: ")]
    assert len(right) == len(hygiene.tasks(lesson))
    assert not any("not attempted" in text for text in texts)


def test_at_most_4_in_100_cells_are_not_compared():
    cells = [cell for path in ALL for cell in hygiene.code_cells(read(path))]
    assert sum(map(hygiene.is_ignored, cells)) <= 0.04 * len(cells)


# The rules can find something: each bad notebook below breaks one of them ------------------------

PICTURE = new_output("display_data", data={"image/png": "iVBORw0KGgo=", "text/plain": "<Figure>"})
WORDS = "A line that rises from the left to the right, from 0 to 1, as x does."
CAPTION = f"{hygiene.SHOWS}\n\n{WORDS}\n\n</details>"
PATHS = [
    "'/home/someone/photo.jpg'",
    "<td>/opt/a/b.png</td>",
    "PYTHONPATH=/usr/lib",
    "file:///x",
    "~/photos/cat.jpg",
    r"C:\Users\ann",
    "D:/photos",
    r"\\server\share\x",
]
NO_PATHS = [
    "1/255, 3/4/5, and/or, H/P · W/P patches, (H/P)/w/d, x[0]/a/b, ViT-B/16, /16 and /32",
    "https://example.org/a/b and [lesson](../images/map/x.png), solutions/01_patches.ipynb, …/a/b",
    r"$\frac{1}{\sqrt{d}}/h/d$, $x: \mathbb{R}$ and $a \\ b \cdot c$",
    "a</b></i> text/plain km/h 03/04/2026 x = a // b // c, f'{a}/{b}/c'",
]


def good_book():
    """Make a small notebook that no rule objects to."""
    code = new_code_cell("1 + 1", execution_count=1)
    code.outputs = [new_output("execute_result", data={"text/plain": "2"}, execution_count=1)]
    drawing = new_code_cell("draw()", execution_count=2, outputs=[PICTURE])
    cells = [new_markdown_cell("# A title"), code, drawing, new_markdown_cell(CAPTION)]
    for cell in cells:
        cell.metadata["slideshow"] = {"slide_type": "slide"}
    return new_notebook(cells=cells)


def problems(book, folder: Path) -> list[str]:
    path = folder / "lesson.ipynb"
    path.write_text(json.dumps(book), encoding="utf-8")  # nbformat would mend some faults
    return hygiene.problems(path)


BAD_CELLS = {  # what must be found, in which cell of the good notebook, what is put into it
    "execution counts": (1, dict(execution_count=None)),
    "nothing says what": (3, dict(source="A line.")),
    "02_no_such_lesson.ipynb": (0, dict(source="[x](02_no_such_lesson.ipynb)")),
    "a picture in Markdown": (0, dict(source="![a](https://a.org/cat.png)")),
    "cell 2 is not folded": (0, dict(source="**Predict.** How much is it?")),
    "no `MLP = checks.mine": (1, dict(source="checks.MLP(MLP)")),
    "an error, ValueError": (
        1,
        dict(outputs=[new_output("error", ename="ValueError", evalue="no", traceback=[])]),
    ),
    "a warning": (1, dict(outputs=[new_output("stream", name="stderr", text="careful")])),
    "image/svg+xml": (1, dict(outputs=[new_output("display_data", {"image/svg+xml": "<svg/>"})])),
    "an output over": (1, dict(outputs=[new_output("stream", text="7" * 300_001)])),
    "gives no reason": (1, dict(metadata=dict(tags=["nbval-ignore-output"]))),
    "cell 2 is the slide None": (2, dict(metadata={})),
    "cell 2 is the slide {'slide_type': 'title'}": (
        2,
        dict(metadata=dict(slideshow=dict(slide_type="title"))),
    ),
    "stands twice": (1, dict(id="again")),
}
BAD_METADATA = {
    "widgets": dict(widgets={"application/vnd.jupyter.widget-state+json": {}}),
    "version of Python": dict(language_info={"name": "python", "version": "3.11.7"}),
}


@pytest.mark.filterwarnings("ignore")  # nbformat warns of what is meant to be wrong here
def test_a_bad_notebook_is_caught_and_a_good_one_is_not(tmp_path):
    assert problems(good_book(), tmp_path) == []
    for complaint, (number, change) in BAD_CELLS.items():
        book = good_book()
        book.cells[0].id = "again"
        book.cells[number].update(change)
        assert any(complaint in problem for problem in problems(book, tmp_path)), complaint
    for complaint, change in BAD_METADATA.items():
        book = good_book()
        book.metadata |= change
        assert any(complaint in problem for problem in problems(book, tmp_path)), complaint


@pytest.mark.parametrize("text", PATHS + NO_PATHS)
def test_a_machines_path_is_known_by_its_form(text):
    printed = new_code_cell("x", outputs=[new_output("stream", name="stdout", text=text)])
    html = new_code_cell("x", outputs=[new_output("display_data", data={"text/html": text})])
    for cell in (new_markdown_cell(text), new_code_cell(text), printed, html):
        assert bool(hygiene.paths(new_notebook(cells=[cell]))) is (text in PATHS), cell
    picture = new_code_cell("x", outputs=[new_output("display_data", data={"image/png": "/a/b"})])
    assert hygiene.paths(new_notebook(cells=[picture])) == []


def test_an_import_that_a_pasted_answer_would_take_away_is_found():
    source = "import math\n\n\ndef train(model):\n    ...\n\n\nchecks.train(train)"
    fold = "<details><summary>One way to write it</summary>\n\ndef train(model): …\n\n</details>"
    book = new_notebook(cells=[new_code_cell(source), new_markdown_cell(fold)])
    problem = "cell 0: an answer pasted over it lacks `import math`"
    assert hygiene.answers_run_when_pasted(book) == [problem]
    book.cells[0].source = source.removeprefix("import math\n\n\n")
    assert hygiene.answers_run_when_pasted(book) == []
