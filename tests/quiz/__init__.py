"""Proofs of the quiz's right answers: a module a lesson, whose `PROOFS` holds one a question.

A proof is a function without arguments that works out the right letter from facts: it computes
what each answer says, and gives the letter of the one that holds.
"""

import nbformat

from vit_course import lessons


def only(**holds: bool) -> str:
    """The letter of the one answer that holds: `only(a=1 + 1 == 3, b=1 + 1 == 2)` is "b"."""
    true = [letter for letter, it_does in holds.items() if it_does]
    if len(true) != 1:
        raise AssertionError(f"of the answers {', '.join(holds)} these hold: {true}")
    return true[0]


def says(lesson: int, words: str) -> bool:
    """Whether a cell of a lesson has these words in its stored output."""
    (path,) = (lessons.ROOT / "notebooks").glob(f"{lesson:02}_*.ipynb")
    cells = nbformat.read(path, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return any(words in output.get("text", "") for output in outputs)
