"""What a lesson takes, counted from its cells, and written wherever the course says it.

A lesson's title says its own minutes; the README, lesson 00 and the guide say those of the titles.
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from .folding import checked
from .lessons import LESSONS, ROOT, section_of, write

STATED = re.compile(r"\((\d+) minutes?\)")
AFTER = "<details><summary>After you ran it</summary>"  # a fold that is read; the others are not
TITLE = re.compile(
    r"(?m)^(\d+) minutes to read and run, (\d+) to build and for the quiz; "
    r"exercises \((\d+)\) and Going deeper \((\d+)\) are extra\."
)
CORE = 8  # lessons, 00 to 07
SHORT = ("1", "2", "3", "4")  # sections of lessons 01 to 07 that are the short way


@dataclass(frozen=True)
class Minutes:
    """Of one lesson: what all need, and what is extra."""

    read: int
    build: int  # and the quiz
    exercises: int
    further: int

    def __str__(self) -> str:
        return (
            f"{self.read} minutes to read and run, {self.build} to build and for the quiz; "
            f"exercises ({self.exercises}) and Going deeper ({self.further}) are extra."
        )


def read_part(text: str) -> str:
    """Take out of a text the folds that nobody must read: hints and answers."""
    before, *folds = text.replace(AFTER, "").split("<details>")
    return before + "".join(fold.partition("</details>")[2] for fold in folds)


def count(book: Any) -> Minutes:
    """Count what a lesson takes: 150 words or 7 lines of code a minute, and one a prediction.

    Build cells, exercises and the quiz state their own minutes. The title, the setup and the
    learner's own cells are not counted.
    """
    reading, working = by_section(book)
    exercises, further = working.pop("exercises", 0), working.pop("going deeper", 0)
    reading.pop("exercises", 0)
    further += round(reading.pop("going deeper", 0))
    return Minutes(round(sum(reading.values())), sum(working.values()), exercises, further)


def short(book: Any) -> float:
    """Count the minutes of a lesson's sections 1 to 4, building included: its short way."""
    reading, working = by_section(book)
    return sum(reading[section] + working[section] for section in SHORT)


def by_section(book: Any) -> tuple[dict[str, float], dict[str, int]]:
    """Count the minutes of each section, by its number or else its name: reading, and building."""
    reading, working, section = defaultdict[str, float](float), Counter[str](), ""
    for number, cell in enumerate(book["cells"]):
        if cell["cell_type"] == "markdown" and number:
            for part in re.split(r"(?m)^(?=## )", cell["source"]):
                section, text = section_of(part) or section, read_part(part)
                reading[section] += len(text.split()) / 150 + text.count("**Predict")
                working[section] += sum(map(int, STATED.findall(part)))
        elif cell["cell_type"] == "code" and not is_given(cell):
            lines = [line for line in cell["source"].splitlines() if line.strip()]
            reading[section] += len(lines) / 7
    return reading, working


def is_given(cell: Any) -> bool:
    """Whether a cell is the setup, the quiz, or one that the learner fills."""
    source = cell["source"]
    setup = source.startswith("# @title Setup")
    return setup or source.startswith("checks.quiz(") or checked(source) is not None


def stated(title: str) -> Minutes | None:
    """Read the minutes that a lesson's title states; None where it states none."""
    match = TITLE.search(title)
    return Minutes(*map(int, match.groups())) if match else None


def filled(text: str, minutes: dict[str, Minutes], shorter: float) -> str:
    """Bring the lessons' minutes into a text of the course, wherever it states them.

    A row of a table that links a lesson ends with `| 35 + 30 |`, reading and building; the hours
    stand to the half, as "lessons 00 to 07 take 7½ hours", "short way takes 4½ hours" and "whole
    course takes 19 hours".

    Args:
        text: a page, or a cell of text.
        minutes: of each lesson, by the name of its notebook: "01_patches".
        shorter: minutes of the short way.
    """

    def row(match: re.Match) -> str:
        lesson = minutes.get(match[2])
        return f"{match[1]}{lesson.read} + {lesson.build} |" if lesson else match[0]

    def hours(total: float) -> str:
        halves = round(total / 30)
        return f"{halves // 2}{'½' * (halves % 2)}"

    text = re.sub(r"(?m)^(\|.*\b(\d\d_\w+)\.ipynb\).*\| )\d+ \+ \d+ \|", row, text)
    course = [minutes[name].read + minutes[name].build for name in sorted(minutes)]
    for start, total in (
        ("short way takes ", shorter),
        ("lessons 00 to 07 take ", sum(course[:CORE])),
        ("whole course takes ", sum(course)),
    ):
        text = re.sub(rf"({start})[\d½]+( hours)", rf"\g<1>{hours(total)}\2", text)
    return text


def shortest(books: dict[str, Any]) -> float:
    """Count the minutes of the short way: sections 1 to 4 of lessons 01 to 07, and 07's end."""
    way = list(books.values())[1:CORE]
    return sum(map(short, way)) + by_section(way[-1])[0]["8"]


def fill_in() -> None:
    """Bring the titles' minutes into the README, the guide and lesson 00."""
    import nbformat

    books = {path: nbformat.read(path, as_version=4) for path in LESSONS}
    titles = {path.stem: stated(book.cells[0].source) for path, book in books.items()}
    minutes = {name: of_title for name, of_title in titles.items() if of_title}
    shorter = shortest({path.stem: book for path, book in books.items()})
    for path in (ROOT / "README.md", ROOT / "notebooks" / "TEACHING.md"):
        text = path.read_text(encoding="utf-8")
        if text != (new := filled(text, minutes, shorter)):
            write(path, new)
    first, book = LESSONS[0], books[LESSONS[0]]
    before = [cell.source for cell in book.cells]
    for cell in book.cells:
        if cell.cell_type == "markdown":
            cell.source = filled(cell.source, minutes, shorter)
    if before != [cell.source for cell in book.cells]:
        write(first, nbformat.writes(book) + "\n")
