"""The glossary has the words that the lessons ask to remember, and links to those lessons."""

import re

import nbformat

from vit_course.lessons import LESSONS, ROOT

GLOSSARY = (ROOT / "notebooks" / "GLOSSARY.md").read_text(encoding="utf-8")
AXES = {"B", "C", "H", "W", "P", "n", "N", "D", "h", "d", "L"}


def prose(path):
    cells = nbformat.read(path, as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def table(title):
    """Give the rows below a heading, each a list of its cells."""
    section = GLOSSARY.split(f"## {title}\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


WORDS = table("The words")
TEXTS = {path.name[:2]: prose(path) for path in LESSONS}
NUMBERS = {row[0].casefold(): re.findall(r"\[(\d\d)\]", row[-1]) for row in WORDS}


def test_every_word_to_remember_stands_there_with_its_lesson():
    for number, text in TEXTS.items():
        line = re.search(r"\*\*Words to remember\.\*\*(.*)", text)[1]
        words = re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", line)
        assert words, number
        for word in map(str.casefold, words):
            # Where a word has two meanings, the glossary says whose it is.
            names = word, f"{word}, of attention", f"{word}, of the model"
            assert any(number in NUMBERS.get(name, ()) for name in names), (word, number)


def test_a_word_stands_in_the_lessons_that_it_links_to():
    for word, numbers in NUMBERS.items():
        assert numbers, word
        for number in numbers:  # "weights, of attention" stands there by its first part
            assert word.split(", ")[0] in TEXTS[number].casefold(), (word, number)


def test_each_entry_has_a_korean_word_and_the_courses_letters_and_they_are_in_order():
    letters = {letter for row in table("One letter per axis") for letter in row[0].split(", ")}
    assert letters == AXES
    assert list(NUMBERS) == sorted(NUMBERS, key=lambda word: word.lstrip("("))
    for word, _, shapes, korean, *_ in WORDS:
        assert re.search("[가-힣]", korean), word
        for shape in re.findall(r"(?<!\w)\([^()]*,[^()]*\)", shapes):
            assert set(re.findall(r"\b[A-Za-z]\b", shape)) <= AXES, word
