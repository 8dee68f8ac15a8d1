"""The quiz: questions from text files, shown with buttons or answered by a letter.

A question is a number, its text, and its options. `*` marks the right one, and below each option
stands its reason, six spaces in. A blank line ends a question.

    1. What is 2 · 3?
      a 5
          That is the sum.
    * b 6
          Three twos are six.
"""

# ruff: noqa: T201

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from textwrap import fill
from typing import Any

from .face import Card

FOLDER = Path(__file__).parent
WIDTH = 85  # columns: an output breaks longer lines within a word
# Colours are the page's own or grey, so that they serve on light and on dark.
STYLE = """<style>
.vit-quiz {max-width: 46em; line-height: 1.5; padding: 5px}
.vit-quiz fieldset {border: 0; margin: 0 0 1.2em; padding: 0; min-width: 0}
.vit-quiz legend {border: 0; color: inherit; font: inherit; font-weight: 600;
  margin: 0; padding: 0}
.vit-quiz summary {border: 1px solid #808080; border-radius: 6px; cursor: pointer;
  list-style: none; margin: .4em 0; padding: .25em .8em}
.vit-quiz summary::-webkit-details-marker {display: none}
.vit-quiz summary:hover {background: #80808033}
.vit-quiz summary:focus-visible {outline: 3px solid currentColor; outline-offset: 1px}
.vit-quiz p {margin: .2em .9em .6em; padding: .25em .8em}
.vit-quiz .right {border-left: 4px solid #009e73; background: rgba(0, 158, 115, .09)}
.vit-quiz .wrong {border-left: 4px solid #d55e00; background: rgba(213, 94, 0, .09)}
</style>"""
# In a focused button a key is not JupyterLab's shortcut: "b" would insert a cell.
KEYS = 'data-lm-suppress-shortcuts="true"'


@dataclass(frozen=True)
class Question:
    """A question, its options and their reasons by letter, and the letter of the right one."""

    number: int
    text: str
    right: str
    options: dict[str, str]
    reasons: dict[str, str]

    def __str__(self) -> str:
        options = (
            fill(f"  {letter}  {option}", WIDTH, subsequent_indent="     ")
            for letter, option in self.options.items()
        )
        return "\n".join([fill(f"{self.number}. {self.text}", WIDTH), *options])

    def html(self) -> str:
        """Write the question with a button for each option, which opens to a verdict."""
        options = (
            f"<details><summary {KEYS}>{letter} &ensp;{marked(option)}</summary>"
            f"{told(letter == self.right, self.reasons[letter])}</details>"
            for letter, option in self.options.items()
        )
        legend = f"<legend>{self.number}. {marked(self.text)}</legend>"
        return "\n".join(["<fieldset>", legend, *options, "</fieldset>"])

    def judge(self, letter: Any) -> str:
        """Give the verdict on a letter and its reason; ValueError if no option has that letter."""
        key = letter.strip().lower() if isinstance(letter, str) else letter
        if not isinstance(key, str) or key not in self.options:
            *others, last = (f'"{option}"' for option in self.options)
            raise ValueError(f"the answer is {letter!r}; give {', '.join(others)} or {last}")
        verdict = f"{key} is right." if key == self.right else f"{key} is not right."
        return fill(f"{verdict} {self.reasons[key]}", WIDTH)


def shown(questions: Collection[Question], example: str) -> Card:
    """Make what a cell shows of questions: with buttons in a browser, as text elsewhere."""
    text = "\n\n".join([*map(str, questions), f"To answer by a letter: {example}"])
    buttons = (question.html() for question in questions)
    return Card(text, "\n".join([STYLE, '<div class="vit-quiz">', *buttons, "</div>"]))


def told(right: bool, reason: str) -> str:
    """Write a verdict and its reason, told apart by word, sign and colour."""
    look, words = ("right", "✓ Right.") if right else ("wrong", "✗ No.")
    return f'<p class="{look}"><b>{words}</b> {marked(reason)}</p>'


def marked(text: str) -> str:
    """Turn text with `code` and *emphasis* into HTML."""
    pieces = text.split("`")
    pieces[1::2] = (f"<code>{escape(code)}</code>" for code in pieces[1::2])
    pieces[::2] = (re.sub(r"\*(.+?)\*", r"<em>\1</em>", escape(prose)) for prose in pieces[::2])
    return "".join(pieces)


@cache
def read(path: Path) -> dict[int, Question]:
    """Read the questions of a file by number; ValueError where its form is wrong."""
    blocks = re.split(r"\n\s*\n", path.read_text(encoding="utf-8").strip())
    return {n: parsed(n, block, path.name) for n, block in enumerate(blocks, 1)}


def parsed(number: int, block: str, file: str) -> Question:
    """Read one question; ValueError where its form is wrong."""
    head, *marks_and_texts = re.split(r"(?m)^([ *] [a-z]) ", block)
    options, reasons, right = {}, {}, ""
    for mark, lines in zip(marks_and_texts[::2], marks_and_texts[1::2], strict=True):
        option, *reason = map(str.strip, lines.strip().splitlines())
        options[mark[-1]], reasons[mark[-1]] = option, " ".join(reason)
        right += mark[-1] if mark[0] == "*" else ""
    start, text = f"{number}. ", " ".join(head.split())
    problems = {
        f'it must begin with "{start}"': not text.startswith(start),
        f"its letters are {list(options)}, not a, b, c": list(options) != list("abc"),
        f"{len(right)} options are marked as right by *": len(right) != 1,
        "an option has no reason below it": not all(reasons.values()),
    }
    for problem, is_there in problems.items():
        if is_there:
            raise ValueError(f"{file}, question {number}: {problem}")
    return Question(number, text.removeprefix(start), right, options, reasons)


def quiz(lesson: int, number: int | None = None, letter: Any = None) -> Card | None:
    """Show the quiz of a lesson, or one question of it, or print what an answer is worth.

    Args:
        lesson: its number, as in the notebook's name.
        number: of a question, from 1. Without it all are shown.
        letter: an answer: the question is printed again, with the verdict and its reason.

    Raises:
        ValueError: there is no such lesson, question or option.
    """
    files = {int(path.stem[-2:]): path for path in sorted((FOLDER / "quiz").glob("*.txt"))}
    if type(lesson) is not int or lesson not in files:
        raise ValueError(f"the lesson is {lesson!r}; give one of {', '.join(map(str, files))}")
    questions = read(files[lesson])
    if number is None:
        return shown(questions.values(), f'checks.quiz({lesson}, 1, "a")')
    if type(number) is not int or number not in questions:
        raise ValueError(f"the number is {number!r}; give one from 1 to {len(questions)}")
    if letter is None:
        return shown([questions[number]], f'checks.quiz({lesson}, {number}, "a")')
    print(f"{questions[number]}\n\n{questions[number].judge(letter)}")
    return None
