"""The declared answers of exercises, brought into the folds of a lesson and into its solutions."""

import re
from typing import Any

from . import checks
from .checks.exercise import Exercise


def checked(source: str) -> str | None:
    """The name of the check that a cell ends with: `checks.patchify(patchify)` gives "patchify"."""
    match = re.search(r"checks\.(\w+)\(\w+\)\s*$", source)
    return match[1] if match else None


def fold_answers(book: Any, solutions: bool) -> None:
    """Put each exercise's answer where it belongs in a notebook, in place.

    Args:
        book: of nbformat. An exercise is a cell that ends with its check.
        solutions: whether it holds solutions, where the answer stands above its check; else a
            lesson, where it stands in the first fold below.

    Raises:
        ValueError: below a lesson's exercise there is no fold with code.
    """
    for number, cell in enumerate(book.cells):
        name = checked(cell.source) if cell.cell_type == "code" else None
        exercise = getattr(checks, name or "", None)
        if not isinstance(exercise, Exercise):
            continue
        if solutions:
            cell.source = f"{exercise.answer}\n\nchecks.{name}({name})"
            continue
        for below in book.cells[number + 1 :]:
            fold = re.search(r"(?s)<details>.*?```python\n(.*?)```", below.source)
            if below.cell_type == "markdown" and fold:
                start, end = fold.span(1)
                below.source = below.source[:start] + exercise.answer + below.source[end:]
                break
        else:
            raise ValueError(f"below the cell of {name} there is no fold with code")
