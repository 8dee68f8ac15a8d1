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
# Exercises whose trials train, or run a trained model on hundreds of pictures; and answers for
# which all pairs of many mistakes are tried.
HEAVY = {"beat_the_bar", "likeness", "needed", "shared_position", "where_they_part"}
LONG = {
    ("ThirdPatient", "the head reads the last block alone"),
    ("EncoderBlock", "2. the MLP reads x itself"),
    ("ThirdPatient", "hand it on as it is"),
    ("ViT", "in training it gives something else"),
    ("ViT", "one block, many times"),
    ("ViT", "2. it is one block, many times"),
    ("ViT", "2. `head` does not start as init_weights says"),
    ("ViT", "2. every block gets the same tokens"),
    ("train", "it reports 20 times in 5 epochs"),
    ("train", "one a step"),
    ("train", "nothing is learned"),
    ("where_they_part", "2. the mean hides one number"),
    ("where_they_part", "expected 'blocks.0'"),
}


def exercise(name: str):
    """The name of an exercise, for a test on it, which is slow where it takes seconds."""
    return pytest.param(name, marks=[pytest.mark.slow] if name in HEAVY else [])


def row(name: str, said: str, source: str):
    """A row, for a test on it: slow, and nightly where it takes long."""
    mark = pytest.mark.nightly if (name, said) in LONG else pytest.mark.slow
    return pytest.param(name, said, source, marks=mark)
