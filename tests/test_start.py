"""`python -m vit_course start`: the learner's copy, in which nothing is ever lost."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import hygiene
import nbformat
import pytest
from helpers import contents
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from vit_course import checks, lab, lessons, start
from vit_course.checks.keeping import PIECES
from vit_steps import files

LESSON = "01_patches.ipynb"


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A course of three small notebooks that a test may change, and the copy laid of it."""
    source = tmp_path / "notebooks"
    (source / "solutions").mkdir(parents=True)
    for name in ("00_start_here", "01_patches", "solutions/01_patches"):
        write(source / f"{name}.ipynb", f"print('{name}')", output=name)
    monkeypatch.setattr(start, "NOTEBOOKS", sorted(source.rglob("*.ipynb")))
    start.lay(tmp_path / "my_course")
    return source, tmp_path / "my_course"


def write(path: Path, code: str, output: str = "") -> None:
    link = new_markdown_cell("See [solutions](solutions/01_patches.ipynb).", id="a")
    outputs = [new_output("stream", text=output)] if output else []
    cell = new_code_cell(code, id="b", execution_count=1, outputs=outputs)
    path.write_text(json.dumps(new_notebook(cells=[link, cell])), encoding="utf-8")


def code_of(path: Path) -> str:
    return nbformat.read(path, as_version=4).cells[1].source


def ran(path: Path, output, number: int | None = None) -> None:
    """Leave in a notebook of the copy what running its cell leaves."""
    book = json.loads(path.read_text())
    book["cells"][1] |= {"outputs": [output], "execution_count": number}
    book["metadata"]["language_info"] = {"name": "python"}
    path.write_text(json.dumps(book))


def answers_in(folder: Path) -> set[str]:
    """The exercises whose answer stands in a notebook; each is without outputs, its links hold."""
    paths = list(folder.rglob("*.ipynb"))
    books = [nbformat.read(path, as_version=4) for path in paths]
    for path, book in zip(paths, books, strict=True):
        assert all(not c.outputs and c.execution_count is None for c in hygiene.code_cells(book))
        assert hygiene.links(book, path) == []
    text = "\n".join(cell.source for book in books for cell in book.cells)
    return {name for name, e in checks.EXERCISES.items() if e.answer.strip() in text}


def test_the_copy_has_every_notebook_or_no_answer(tmp_path):
    lines = start.lay(tmp_path)
    assert f"{len(lessons.NOTEBOOKS)} notebooks" in lines[0]
    names = {path.name for path in tmp_path.rglob("*.ipynb")}  # tabs told apart
    assert len(names) == len(lessons.NOTEBOOKS)
    assert answers_in(tmp_path) >= set(PIECES)
    lines = start.lay(tmp_path, solutions=False)
    assert lines == [f"{tmp_path.name} holds {len(lessons.LESSONS)} notebooks: the lessons."]
    assert start.lay(tmp_path) == lines  # as it was
    assert not (tmp_path / "solutions").exists()
    assert {p.name for p in tmp_path.rglob("*.ipynb")} == {p.name for p in lessons.LESSONS}
    assert not answers_in(tmp_path)
    start.lay(tmp_path, solutions=True)
    assert answers_in(tmp_path) >= set(PIECES)


def test_the_copy_and_the_learners_file_are_ignored_by_git():
    for name in ("my_course/01_patches.ipynb", "my_vit.py", "notebooks/solutions/my_vit.py"):
        assert subprocess.run(["git", "check-ignore", "-q", name], cwd=lessons.ROOT).returncode == 0


@pytest.mark.parametrize("below", ["", "course"])
def test_a_file_in_place_of_the_folder_is_refused_in_a_sentence(tmp_path, below):
    file = tmp_path / "notes.txt"
    file.touch()
    with pytest.raises(ValueError, match=r"notes\.txt is a file, and the copy needs a folder"):
        start.lay(file / below)


def test_a_newer_glossary_replaces_the_one_that_was_laid(house, tmp_path, monkeypatch):
    source, copy = house
    assert "# Glossary" in (copy / "GLOSSARY.md").read_text(encoding="utf-8")
    (source / "GLOSSARY.md").write_text("newer", encoding="utf-8")
    monkeypatch.setattr(start, "ROOT", tmp_path)
    assert len(start.lay(copy)) == 1  # no news of a section, which only lessons have
    assert (copy / "GLOSSARY.md").read_text(encoding="utf-8") == "newer"


def test_what_the_learner_changed_is_kept_and_named_and_the_rest_is_refreshed(house):
    source, copy = house
    write(copy / LESSON, "my_answer = 42")
    (copy / "my_vit.py").write_text("mine = 1")
    for name in ("00_start_here", "01_patches"):
        write(source / f"{name}.ipynb", "the_course = 'newer'")
    lines = start.lay(copy)
    assert code_of(copy / LESSON) == "my_answer = 42"
    assert code_of(copy / "00_start_here.ipynb") == "the_course = 'newer'"
    assert (copy / "my_vit.py").read_text() == "mine = 1"
    assert lines[1:2] == ["New in 00_start_here.ipynb: the title"]
    assert LESSON in lines[2]


def test_a_lesson_that_was_only_run_counts_as_untouched(house):
    source, copy = house
    ran(copy / LESSON, new_output("stream", text="what running left"))
    before = contents(copy)
    assert len(start.lay(copy)) == 1
    assert contents(copy) == before  # nothing is new, and the outputs stay
    write(source / LESSON, "the_course = 'newer'")
    assert start.lay(copy)[1:] == [f"New in {LESSON}: the title"]
    assert code_of(copy / LESSON) == "the_course = 'newer'"


def test_what_the_course_changed_is_named_by_its_sections(house):
    source, copy = house
    book = nbformat.read(source / LESSON, as_version=4)
    heading = new_markdown_cell("## See it small\n\nA new text.")
    book.cells += [heading, new_code_cell("1 + 1")]
    nbformat.write(book, source / LESSON)
    assert start.lay(copy)[1:] == [f"New in {LESSON}: See it small"]
    assert len(start.lay(copy)) == 1


def test_where_the_learner_is(house):
    _, copy = house
    written, where, _ = start.standing(copy)
    assert "no my_vit.py" in written
    assert where == "Begin with 00_start_here.ipynb."
    (copy / "my_vit.py").write_text("def patchify(images, patch_size):\n    return 1\n")
    for name in ("00_start_here.ipynb", LESSON):
        output = new_output("execute_result", {"text/plain": "7"}, execution_count=5)
        ran(copy / name, output, 5)
    os.utime(copy / LESSON, (1e9, 1e9))  # the other was run last
    start.lay(copy)
    written, where, _ = start.standing(copy)
    assert written.startswith(f"my_vit.py holds 1 of your ViT's {len(PIECES)} pieces; the next is")
    assert "PatchEmbedding" in written
    cell = nbformat.read(copy / LESSON, as_version=4).cells[1]
    assert (cell.execution_count, cell.outputs[0].execution_count) == (None, None)
    assert cell.outputs[0].data == {"text/plain": "7"}
    (copy / "my_vit.py").write_text("def patchify(")
    assert "holds 0" in start.standing(copy)[0]


def test_a_file_of_the_learners_under_a_lessons_name_is_kept(house):
    source, copy = house
    (copy / "02_tokens.ipynb").write_text("my notes, no notebook")
    write(source / "02_tokens.ipynb", "new lesson")
    start.NOTEBOOKS.append(source / "02_tokens.ipynb")
    assert "02_tokens.ipynb" in start.lay(copy)[1]
    assert (copy / "02_tokens.ipynb").read_text() == "my notes, no notebook"


def test_a_lesson_that_the_course_has_no_more_goes_unless_it_was_changed(house):
    source, copy = house
    write(copy / LESSON, "my_answer = 42")
    ran(copy / "00_start_here.ipynb", new_output("stream", text="7"), 5)
    start.NOTEBOOKS[:] = [p for p in start.NOTEBOOKS if p.parent != source]
    assert LESSON in start.lay(copy)[1]
    assert code_of(copy / LESSON) == "my_answer = 42"
    assert not (copy / "00_start_here.ipynb").exists()


@pytest.mark.parametrize("stop", range(3))  # at the record, or at one of two notebooks
def test_stopped_at_any_write_it_goes_on_and_loses_nothing(house, monkeypatch, stop):
    source, copy = house
    write(copy / LESSON, "my_answer = 42")
    for name in ("00_start_here", "01_patches", "solutions/01_patches"):
        write(source / f"{name}.ipynb", "the_course = 'newer'")
    write_whole, written = files.write_whole, []

    def stopping(path, data):
        if len(written) == stop:
            raise KeyboardInterrupt
        written.append(path)
        write_whole(path, data)

    monkeypatch.setattr(files, "write_whole", stopping)
    with pytest.raises(KeyboardInterrupt):
        start.lay(copy)
    monkeypatch.setattr(files, "write_whole", write_whole)
    lines = start.lay(copy)
    assert code_of(copy / LESSON) == "my_answer = 42"
    assert code_of(copy / "00_start_here.ipynb") == "the_course = 'newer'"
    assert code_of(copy / "solutions/01_patches_solutions.ipynb") == "the_course = 'newer'"
    assert any(line.endswith(": 01_patches.ipynb") for line in lines)


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_the_terminals_python_is_the_courses_whatever_the_shell_sets_up(tmp_path):
    home, other = tmp_path / "home", tmp_path / "other"
    for folder in (home, other):
        folder.mkdir()
    (other / "python").write_text("#!/bin/sh\necho other\n")
    (other / "python").chmod(0o755)
    (home / ".bashrc").write_text(f"export PATH={other}:$PATH MINE=kept\n")
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "SHELL": "/bin/bash"}
    (option,) = lab.terminal(tmp_path, environment)
    command = option.split("shell_command=")[1].replace("/bin/bash", shutil.which("bash")).split()
    ask = [*command, "-i", "-c", "command -v python; echo $MINE"]
    answer = subprocess.run(ask, env=environment, capture_output=True, text=True).stdout.split()
    assert answer == [str(Path(sys.executable).parent / "python"), "kept"]
