"""Answers to the exercises, right and wrong, as people wrote them from the texts alone.

A file holds tables: the task and a message's part ("right" for a right answer), and below it what
somebody wrote, whole or as an edit of the course's answer.
"""

from pathlib import Path

import pytest

from vit_course.checks.exercise import table

ROWS = [  # the task, what is said, the answer
    (*said.split(": ", 1), source)
    for file in sorted(Path(__file__).parent.glob("*.txt"))
    for said, source in table(file.read_text(encoding="utf-8"))
]
# Exercises whose trials train, or run a trained model on hundreds of pictures.
HEAVY = {"beat_the_bar", "likeness", "needed", "shared_position"}


def marked(name: str):
    """The name of an exercise, for a test on it, which is slow where it takes seconds."""
    return pytest.param(name, marks=[pytest.mark.slow] if name in HEAVY else [])
