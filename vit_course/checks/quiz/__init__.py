"""Ten questions on each lesson: `checks.question(4, 7, "b")` answers the seventh of lesson 04."""

import pkgutil
from importlib import import_module
from typing import Any


def question(lesson: int, number: int, choice: Any = ...) -> None:
    """Print a question of a lesson's quiz, or what its answer is worth.

    Args:
        lesson: its number, as it stands in the notebook's name.
        number: of the question, from 1.
        choice: a letter; `...` for none yet.

    Raises:
        ValueError: that lesson has no questions, or no question has that number.
    """
    there = sorted(
        int(file.name.removeprefix("lesson_")) for file in pkgutil.iter_modules(__path__)
    )
    if type(lesson) is not int or lesson not in there:
        listed = ", ".join(map(str, there))
        raise ValueError(f"no questions on lesson {lesson!r}; there are some on: {listed}")
    questions = import_module(f"{__name__}.lesson_{lesson:02}").QUESTIONS
    if type(number) is not int or number not in questions:
        raise ValueError(
            f"lesson {lesson} has no question {number!r}; give a number from 1 to {len(questions)}"
        )
    asked = questions[number]
    print(f"{number} · {asked if choice is ... else asked.judge(choice)}\n")
