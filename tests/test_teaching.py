"""The teacher's guide is true of the lessons: messages, numbers, links."""

import importlib
import re
from functools import cache
from pathlib import Path

import nbformat
import pytest
from hygiene import printed

from vit_course import __main__ as command
from vit_course.checks.engine import Check

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "notebooks" / "TEACHING.md").read_text(encoding="utf-8")
NOTEBOOKS = {path.name[:2]: path for path in sorted(ROOT.glob("notebooks/[0-9]*.ipynb"))}
LESSONS = list(NOTEBOOKS)

each_lesson = pytest.mark.parametrize("lesson", LESSONS)


def notebook(lesson: str) -> Path:
    return NOTEBOOKS[lesson]


@cache
def book(lesson: str):
    return nbformat.read(NOTEBOOKS[lesson], as_version=4)


def title(book) -> str:
    return book.cells[0].source.splitlines()[0].removeprefix("# ")


@cache
def messages(lesson: str) -> set[str]:
    """Every message that the lesson's checks have for a mistake."""
    module = importlib.import_module(f"vit_course.checks.lesson_{lesson}")
    checks = [thing for thing in vars(module).values() if isinstance(thing, Check)]
    return {message for check in checks for message, _ in check.mistakes}


def words_of(book) -> str:
    """All that a lesson says: its text, its code, and what that prints."""
    texts = [cell.source for cell in book.cells]
    texts += [printed(output) for cell in book.cells for output in cell.get("outputs", [])]
    return "\n".join(texts)


def part(guide: str, lesson: str) -> str:
    """What the guide says about one lesson; empty if nothing."""
    match = re.search(rf"(?ms)^## {lesson} · .*?(?=^## |\Z)", guide)
    return match[0] if match else ""


def untrue(guide: str, lesson: str) -> list[str]:
    """What the guide says about a lesson that the lesson does not bear out."""
    said, own = part(guide, lesson), book(lesson)
    if not said.startswith(f"## {title(own)}\n"):
        return [f"no part is called {title(own)}"]
    found = [f"no {name}" for name in ("Aims", "Ask", "What goes wrong", "Exercises")]
    found = [problem for problem in found if f"**{problem[3:]}" not in said]

    quoted = re.findall(r"(?m)^ *> (.+)$", said)
    found += [f"no check says: {message}" for message in quoted if message not in messages(lesson)]
    found += ["fewer than three messages"] * (len(quoted) < 3)

    in_lesson = re.findall(r"(?m)^### (Exercise \d · .+?)(?: \(\d+ minutes\))?$", words_of(own))
    in_guide = re.findall(r"\*(Exercise \d · .+?)\*", said)
    if in_guide != in_lesson:
        found.append(f"exercises {in_guide}, in the lesson {in_lesson}")

    text = words_of(own).replace("{,}", ",")  # as a formula writes a comma
    asked = re.findall(r"(?m)^- \*(.+?)\.?\*(?= )", said.split("**What goes wrong**")[0])
    for place in asked:
        number = re.fullmatch(r"(Section|Exhibit) (\d+)", place)
        heading = {"Section": "##", "Exhibit": "###"}[number[1]] if number else "##"
        heading += f" {number[2]} · " if number else f" {re.escape(place)}$"
        if not re.search(rf"(?m)^{heading}", text):
            found.append(f"a question on {place}")
    found += ["fewer than four questions"] * (len(asked) < 4)

    # Numbers of which a wrong one would mislead: shares, and those with a point or a comma in them.
    for number in set(re.findall(r"(?<![\w.,])\d+(?:[.,]\d+)*%|\d+[.,]\d+(?![.\d])", said)):
        if not re.search(rf"(?<![\d.,]){re.escape(number).rstrip('%')}", text):
            found.append(f"{number}, which the lesson does not say")
    return found


def anchor(heading: str) -> str:
    """What GitHub makes of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def broken_links(guide: str) -> list[str]:
    anchors = {anchor(heading) for heading in re.findall(r"(?m)^#+ (.+)$", guide)}
    targets = re.findall(r"\]\(([^)\s]+)\)", guide)
    return [
        target
        for target in targets
        if not re.match(r"https://", target)
        and not (target[0] == "#" and target[1:] in anchors)
        and not (target[0] != "#" and (ROOT / "notebooks" / target.split("#")[0]).exists())
    ]


@each_lesson
def test_a_lessons_part_is_true_of_the_lesson(lesson):
    assert untrue(GUIDE, lesson) == []


def test_every_link_leads_somewhere():
    assert broken_links(GUIDE) == []
    assert broken_links("[a](no_lesson.ipynb) [b](#no-heading)") == [
        "no_lesson.ipynb",
        "#no-heading",
    ]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("## 03 · Queries", "## 03 · Keys"),
        ("*Exercise 2 · The test that catches them*", "*Exercise 2 · The test*"),
        ("> each head gets every h-th column", "> every head gets every column"),
        ("guessing, 13%", "guessing, 12.5%"),
        ("- *Section 7.*", "- *Section 12.*"),
        ("**What goes wrong**", "**Mistakes**"),
    ],
)
def test_what_is_not_true_of_a_lesson_is_found(right, wrong):
    assert right in part(GUIDE, "03")
    changed = GUIDE.replace(part(GUIDE, "03"), part(GUIDE, "03").replace(right, wrong, 1))
    assert untrue(changed, "03") != []


def unknown(guide: str) -> list[str]:
    """The commands of the course, with their options, and the files that are not as it says."""
    found = [] if len(re.findall("-m vit_course ", guide)) > 8 else ["hardly a command"]
    for line in re.findall(r"-m vit_course ([^`\n]*)", guide):
        words = [word for word in line.split("&&")[0].split() if word != "handed_in"]
        try:
            command.arguments().parse_args([*words, *["x"] * (words[0] == "grade")])
        except SystemExit:
            found.append(line)
    files = re.findall(r"-r (\S+\.txt)", guide) + re.findall(r"`((?:tests|vit_\w+)/\S+)`", guide)
    return found + [name for name in files if not (ROOT / name).exists()]


def test_the_guides_commands_and_files_are_the_courses(capsys):
    assert unknown(GUIDE) == []
    assert unknown(GUIDE.replace("--no-lab", "--nothing")) == [
        "start --nothing --folder ~/my_course"
    ]
    assert unknown(GUIDE.replace("-r requirements.txt", "-r wanted.txt")) == ["wanted.txt"] * 2
