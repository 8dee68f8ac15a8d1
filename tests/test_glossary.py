"""The glossary has the words that the lessons ask to remember, and no others' lessons."""

import re
from itertools import pairwise

import nbformat
import pytest

from vit_course.lessons import ROOT

LESSONS = {path.name[:2]: path for path in sorted(ROOT.glob("notebooks/[0-9]*.ipynb"))}
GLOSSARY = (ROOT / "notebooks" / "GLOSSARY.md").read_text(encoding="utf-8")
AXES = {"B", "C", "H", "W", "P", "n", "N", "D", "h", "d", "L"}


def prose(number):
    """All that a lesson says to its reader."""
    cells = nbformat.read(LESSONS[number], as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def to_remember(text):
    """The words in italics below "Words to remember"."""
    found = re.search(r"\*\*Words to remember\.\*\*(.*)", text)
    return re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", found[1]) if found else []


def table(text, title):
    """The rows below a heading, each a list of its cells."""
    part = text.split(f"## {title}\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def entries(text):
    """Each word and the lessons that its row names."""
    return {row[0]: re.findall(r"\[(\d\d)\]", row[-1]) for row in table(text, "The words")}


def problems(glossary, lessons):
    """What differs between the glossary's text and the lessons' texts, by number."""
    has = {word.casefold(): numbers for word, numbers in entries(glossary).items()}
    found = [
        f"{word} of lesson {number} is missing"
        for number, text in lessons.items()
        for word in to_remember(text)
        if not any(number in has.get(name, ()) for name in names(word))
    ]
    for word, numbers in has.items():
        # "weights, of attention" and "pre-norm, post-norm" stand there by their first part
        plain = word.split(", ")[0]
        found += [f"{word} is not in {n}" for n in numbers if plain not in lessons[n].casefold()]
        found += [] if numbers else [f"{word} has no lesson"]
    return found


def names(word):
    """How the glossary may list a word: where it has two meanings, it says whose it is."""
    word = word.casefold()
    return word, f"{word}, of attention", f"{word}, of the model"


@pytest.fixture(scope="module")
def lessons():
    return {number: prose(number) for number in LESSONS}


def test_every_word_to_remember_stands_there_and_no_other_lesson(lessons):
    assert all(to_remember(text) for text in lessons.values())
    assert problems(GLOSSARY, lessons) == []


def test_a_missing_word_and_a_wrong_lesson_are_found(lessons):
    without = re.sub(r"(?m)^\| Blinding .*\n", "", GLOSSARY)
    assert problems(without, lessons) == ["Blinding of lesson 09 is missing"]
    row = re.search(r"(?m)^\| Blinding .*", GLOSSARY)[0]
    elsewhere = GLOSSARY.replace(row, row.replace("09", "01"))
    wanted = ["Blinding of lesson 09 is missing", "blinding is not in 01"]
    assert problems(elsewhere, lessons) == wanted
    unknown = GLOSSARY.replace("| Blinding |", "| Blindness to all |")
    assert "blindness to all is not in 09" in problems(unknown, lessons)


def faults(glossary):
    """What is wrong with the glossary's own form."""
    words, axes = table(glossary, "The words"), table(glossary, "One letter per axis")
    found = [f"{row[0]}: {len(row)} cells" for row in (*words, *axes) if len(row) != 5]
    letters = {letter for row in axes for letter in row[0].split(", ")}
    found += [f"axis {letter}" for letter in sorted(letters ^ AXES)]
    keys = [row[0].casefold().lstrip("(") for row in words]
    found += [f"{b} stands after {a}" for a, b in pairwise(keys) if a >= b]
    for row in words:
        if not re.search("[가-힣]", row[3]):
            found.append(f"{row[0]}: no Korean")
        # In a shape, a letter alone is one of the course's axes.
        for shape in re.findall(r"(?<!\w)\([^()]*,[^()]*\)", row[2]):
            found += [f"{row[0]}: {a}" for a in re.findall(r"\b[A-Za-z]\b", shape) if a not in AXES]
        if not re.fullmatch(r".*[a-z]{2}.*\.", row[1]):
            found.append(f"{row[0]}: no sentence")
    return found


def test_each_entry_has_a_korean_word_the_course_s_letters_and_a_sentence():
    assert faults(GLOSSARY) == []


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("| 쿼리 |", "| query |", "Query: no Korean"),
        ("asks. | (B, h, N, d)", "asks. | (B, h, T, d)", "Query: T"),
        ("| What a token asks. |", "|  |", "Query: no sentence"),
        ("| Query |", "| Aquery |", "aquery stands after qkv h d)"),
        ("| N | tokens", "| T | tokens", "axis T"),
    ],
)
def test_a_bad_entry_is_found(old, new, wanted):
    assert old in GLOSSARY
    assert wanted in faults(GLOSSARY.replace(old, new))
