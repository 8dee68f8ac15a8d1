"""The teacher's guide is true of the lessons: sections, minutes, messages, numbers, links."""

import importlib
import re
from functools import cache
from pathlib import Path

import nbformat
import pytest
from hygiene import MINUTES, building_minutes, printed, reading_minutes

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


def sections(book) -> dict[str, list]:
    """The cells of each section, by its heading; a cell with several headings is cut at them."""
    found = {"The start": []}
    for cell in book.cells:
        parts = [cell.source]
        if cell.cell_type == "markdown":
            parts = re.split(r"(?m)^(?=## )", cell.source)
        for part in filter(None, parts):
            if cell.cell_type == "markdown" and part.startswith("## "):
                found[MINUTES.sub("", part.splitlines()[0][3:]).strip()] = []
            found[list(found)[-1]].append(cell | {"source": part})
    return found


def minutes(book) -> dict[str, tuple[float, int]]:
    """What each section takes, as the lesson's title counts: reading and running; building."""
    counted = {}
    for name, cells in sections(book).items():
        # In a lesson the first cell is the title, which states minutes and takes none to build.
        own = nbformat.from_dict({"cells": [{"cell_type": "markdown", "source": ""}, *cells]})
        counted[name] = reading_minutes(own), building_minutes(own)
    return counted


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
    found += timing(said, own)

    quoted = re.findall(r"(?m)^ *> (.+)$", said)
    found += [f"no check says: {message}" for message in quoted if message not in messages(lesson)]
    found += ["fewer than three messages"] * (len(quoted) < 3)

    in_lesson = re.findall(r"(?m)^### (Exercise \d · .+?)(?: \(\d+ minutes\))?$", words_of(own))
    in_guide = re.findall(r"\*(Exercise \d · .+?)\*", said)
    if in_guide != in_lesson:
        found.append(f"exercises {in_guide}, in the lesson {in_lesson}")

    text = words_of(own).replace("{,}", ",")  # as a formula writes a comma
    asked = re.findall(r"(?m)^- \*(?:Section (\d+)|(Exhibit) (\d+)|(The doctor))\.\*", said)
    for number, exhibit, which, doctor in asked:
        heading = rf"## {number} · " if number else rf"### {which} · " if exhibit else doctor
        if not re.search(rf"(?m)^{heading}|## {heading}$", text):
            found.append(f"a question on section {number or exhibit + which or doctor}")
    found += ["fewer than four questions"] * (len(asked) < 4)

    # Numbers of which a wrong one would mislead: shares, and those with a point or a comma in them.
    for number in set(re.findall(r"(?<![\w.,])\d+(?:[.,]\d+)*%|\d+[.,]\d+(?![.\d])", said)):
        if not re.search(rf"(?<![\d.,]){re.escape(number).rstrip('%')}", text):
            found.append(f"{number}, which the lesson does not say")
    return found


def timing(said: str, own) -> list[str]:
    """Where the table of sections is not the lesson's: a name, or a number off by over a minute."""
    rows = re.findall(r"(?m)^\| (.+?) \| (\d+) \| (\d*) ?\|$", said)
    counted = minutes(own)
    if [row[0] for row in rows] != list(counted):
        return [f"sections {[row[0] for row in rows]}, in the lesson {list(counted)}"]
    found = []
    for name, reading, building in rows:
        if abs(int(reading) - counted[name][0]) > 1 or int(building or 0) != counted[name][1]:
            found.append(f"{name}: {reading} and {building}, counted {counted[name]}")
    stated = re.search(r"(\d+) minutes, and (\d+) for building", own.cells[0].source)
    told = re.search(r": (\d+) minutes of reading and running, (\d+) of building", said)
    if not told or told.groups() != stated.groups():
        found.append(f"the title says {stated[0]}")
    return found


def plan(guide: str, name: str) -> str:
    return re.search(rf"(?ms)^### {name}\n.*?(?=^##)", guide)[0]


def wrong_sums(guide: str) -> list[str]:
    """Where the minutes of a plan are not those of the sections and lessons that it names."""
    found = []
    day = plan(guide, "One day")
    rows = re.findall(r"\| \[(\d\d) · .*?\) \| ([\d, ]+) \| (\d+) \|", day)
    for lesson, named, told in rows:
        taken = named.split(", ")
        counted = minutes(book(lesson)).items()
        total = sum(sum(both) for name, both in counted if name.split(" · ")[0] in taken)
        if abs(total - int(told)) > 3:
            found.append(f"day, {lesson}: {told}, counted {total:.0f}")
    together = re.search(r"\| together \| +\| (\d+) \|", day)
    if sum(int(row[2]) for row in rows) != int(together[1]):
        found.append("the day's sum")
    for named, told in re.findall(r"day \| ([\d, ]+) \| (\d+) \|", plan(guide, "One week")):
        total = sum(sum(stated(lesson)) for lesson in named.split(", "))
        if total != int(told):
            found.append(f"week, {named}: {told}, stated {total}")
    reading, building = (sum(both) for both in zip(*map(stated, LESSONS), strict=True))
    if f"are {reading} minutes of reading and running, and {building} of building" not in guide:
        found.append(f"all lessons together are {reading} and {building}")
    return found


def stated(lesson: str) -> tuple[int, int]:
    """The minutes that a lesson's title states."""
    match = re.search(r"(\d+) minutes, and (\d+) for building", book(lesson).cells[0].source)
    return int(match[1]), int(match[2])


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


@each_lesson
def test_the_sections_together_take_what_the_whole_lesson_takes(lesson):
    reading, building = (sum(both) for both in zip(*minutes(book(lesson)).values(), strict=True))
    assert reading == pytest.approx(reading_minutes(book(lesson)), abs=0.1)
    assert building == building_minutes(book(lesson))


def test_plans_add_up():
    assert wrong_sums(GUIDE) == []
    assert wrong_sums(GUIDE.replace("| Monday | 00, 01, 02 |", "| Monday | 00, 01 |"))
    assert wrong_sums(re.sub(r"\| together \| +\| \d+", "| together | | 100", GUIDE))
    assert wrong_sums(re.sub(r"(\| \[03 .*?\| )[\d, ]+( \| \d+)", r"\g<1>1\g<2>", GUIDE, count=1))


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
        ("| 5 · The tempting shortcut |", "| 5 · The shortcut |"),
        ("| 5 · The tempting shortcut | 6 |", "| 5 · The tempting shortcut | 9 |"),
        ("into heads | 3 | 15 |", "into heads | 3 | 10 |"),
        ("59 minutes of reading and running, 61", "59 minutes of reading and running, 45"),
        ("*Exercise 2 · Repair the checkpoint*", "*Exercise 2 · The checkpoint*"),
        ("> each head gets every h-th column", "> every head gets every column"),
        ("13%, guessing", "12.5%, guessing"),
        ("- *Section 9.*", "- *Section 12.*"),
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
