"""The teacher's guide is true of the lessons: messages, numbers, links, commands."""

import importlib
import re
from pathlib import Path

import nbformat
import pytest
from hygiene import links, printed

from vit_course import __main__ as command
from vit_course.checks.engine import Check
from vit_course.lessons import LESSONS, ROOT

PATH = ROOT / "notebooks" / "TEACHING.md"
GUIDE = PATH.read_text(encoding="utf-8")


def messages(lesson: str) -> set[str]:
    """Every message that the lesson's checks have for a mistake."""
    module = importlib.import_module(f"vit_course.checks.lesson_{lesson}")
    checks = [value for value in vars(module).values() if isinstance(value, Check)]
    return {message for check in checks for message, _ in check.mistakes}


def text_of(book) -> str:
    """All that a lesson says: its text, its code, and what that prints."""
    texts = [cell.source for cell in book.cells]
    texts += [printed(output) for cell in book.cells for output in cell.get("outputs", [])]
    return "\n".join(texts).replace("{,}", ",")  # as a formula writes a comma


def section(guide: str, lesson: str) -> str:
    """What the guide says about one lesson; empty if nothing."""
    match = re.search(rf"(?ms)^## {lesson} · .*?(?=^## |\Z)", guide)
    return match[0] if match else ""


def untrue(guide: str, path: Path) -> list[str]:
    """What the guide says about a lesson that the lesson does not bear out."""
    lesson, book = path.name[:2], nbformat.read(path, as_version=4)
    about, text = section(guide, lesson), text_of(book)
    title = book.cells[0].source.splitlines()[0].removeprefix("# ")
    problems = [] if about.startswith(f"## {title}\n") else [f"no part is called {title}"]

    quoted = set(re.findall(r"(?m)^ *> (.+)$", about))
    problems += [f"no check says: {message}" for message in quoted - messages(lesson)]

    exercises = re.findall(r"(?m)^### (Exercise \d · .+?)(?: \(\d+ minutes\))?$", text)
    if re.findall(r"\*(Exercise \d · .+?)\*", about) != exercises:
        problems.append(f"the exercises are {exercises}")

    for name in re.findall(r"(?m)^- \*(.+?)\.?\*(?= )", about.split("**What goes wrong**")[0]):
        number = re.fullmatch(r"(Section|Exhibit) (\d+)", name)
        level = "###" if name.startswith("Exhibit") else "##"
        heading = f"{level} {number[2]} · " if number else f"## {re.escape(name)}$"
        if not re.search(rf"(?m)^{heading}", text):
            problems.append(f"a question on {name}")

    # Numbers of which a wrong one would mislead: shares, and those with a point or a comma in them.
    for number in set(re.findall(r"(?<![\w.,])\d+(?:[.,]\d+)*%|\d+[.,]\d+(?![.\d])", about)):
        if not re.search(rf"(?<![\d.,]){re.escape(number).rstrip('%')}", text):
            problems.append(f"{number}, which the lesson does not say")
    return problems


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lessons_part_is_true_of_the_lesson(path):
    assert untrue(GUIDE, path) == []


def test_what_is_not_true_of_a_lesson_is_found():
    for right, wrong in (
        ("## 03 · Queries", "## 03 · Keys"),
        ("*Exercise 2 · The test that catches them*", "*Exercise 2 · The test*"),
        ("> each head gets every h-th column", "> every head gets every column"),
        ("guessing, 12%", "guessing, 12.5%"),
        ("- *Section 2.*", "- *Section 12.*"),
    ):
        part = section(GUIDE, "03")
        assert right in part
        assert len(untrue(GUIDE.replace(part, part.replace(right, wrong, 1)), LESSONS[3])) == 1


def test_every_link_leads_somewhere():
    cell = nbformat.v4.new_markdown_cell(GUIDE)
    assert links(nbformat.v4.new_notebook(cells=[cell]), PATH) == []
    headings = re.findall(r"(?m)^#+ (.+)$", GUIDE)
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)\s]+)\)", GUIDE)) <= anchors


def test_the_guides_commands_and_files_are_the_courses():
    lines = re.findall(r"-m vit_course ([^`\n]*)", GUIDE)
    assert len(lines) > 8
    for line in lines:
        words = [word for word in line.split("&&")[0].split() if word != "handed_in"]
        folder = ["handed_in"] if words[0] == "grade" else []
        command.arguments().parse_args([*words, *folder])  # else it ends
    files = re.findall(r"-r (\S+\.txt)", GUIDE) + re.findall(r"`((?:tests|vit_\w+)/\S+)`", GUIDE)
    assert [name for name in files if not (ROOT / name).exists()] == []
