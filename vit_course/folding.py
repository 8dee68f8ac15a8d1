"""The declared answers of exercises, brought into the folds of a lesson; its solutions."""

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from . import checks
from .checks.exercise import Exercise
from .checks.keeping import PIECES, import_line
from .checks.sources import used_names

FOLD = r"(?s)<summary>One way to write it</summary>.*?```python\n(.*?)```"


def checked(source: str) -> str | None:
    """Name the check that a cell ends with: `checks.patchify(patchify)` gives "patchify"."""
    match = re.search(r"checks\.(\w+)\(\w+\)\s*$", source)
    return match[1] if match else None


def fold_answers(book: Any) -> None:
    """Put each task's answer into the fold "One way to write it" right below it, in place.

    Args:
        book: a lesson, of nbformat. A task is a cell that ends with its check.

    Raises:
        ValueError: a piece of the model has no such fold. Exercises need none.
    """
    for cell, below in zip(book.cells, [*book.cells[1:], None], strict=True):
        exercise = task_of(cell)
        if exercise is None:
            continue
        fold = re.search(FOLD, below.source) if below and below.cell_type == "markdown" else None
        if below and fold:
            start, end = fold.span(1)
            below.source = below.source[:start] + exercise.answer + below.source[end:]
        elif exercise.name in PIECES:
            raise ValueError(f"{exercise.name}'s cell has no fold 'One way to write it' below")


def task_of(cell: Any) -> Exercise | None:
    """Give the exercise that a cell's last line checks."""
    name = checked(cell.source) if cell.cell_type == "code" else None
    exercise = getattr(checks, name or "", None)
    return exercise if isinstance(exercise, Exercise) else None


def solutions(book: Any, stem: str) -> Any:
    """Make the notebook of a lesson's solutions: each task's answer above the check it passes."""
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    title = book.cells[0].source.splitlines()[0]
    intro = f"{title}: solutions\n\n[The lesson](../{stem}.ipynb)\n\n"
    intro += "One right form each. Others are right too: the check decides."
    cells = [new_markdown_cell(intro, id="title"), setup_of(book)]
    for heading, exercise, definitions, above in answers_of(book):
        name = exercise.name
        text = f"## {heading}\n\n{exercise.why}".strip()
        cells.append(new_markdown_cell(text, id=f"text-{name}"))
        for number, source in definitions:
            cells.append(new_code_cell(source, id=f"given-{name}-{number}"))
        source = f"{above}{exercise.answer}\n\nchecks.{name}({name})"
        cells.append(new_code_cell(source, id=f"answer-{name}"))
    return new_notebook(cells=cells, metadata=deepcopy(book.metadata))


def setup_of(book: Any) -> Any:
    """Copy a lesson's setup cell, without the map that it draws."""
    setup = deepcopy(next(cell for cell in book.cells if cell.cell_type == "code"))
    setup.source = re.sub(r"\nplots\.course_map\(\d+\)", "", setup.source)
    setup.metadata.pop("slideshow", None)
    return setup


def answers_of(book: Any) -> Iterator[tuple[str, Exercise, list[tuple[int, str]], str]]:
    """Yield each task of a lesson, with what its answer stands on.

    Yields:
        The heading above it; the exercise; the lesson's own cells that define what the answer uses,
        each with its number; and the lines that it needs beside them.
    """
    names, heading = set(), ""
    plain = [c.source for c in book.cells if c.cell_type == "code" and task_of(c) is None]
    for cell in book.cells:
        if cell.cell_type == "markdown":
            headings = [heading, *re.findall(r"(?m)^##+ (.+)$", cell.source)]
            heading = re.sub(r" \(\d+ minutes?\)", "", headings[-1])
        elif exercise := task_of(cell):
            used = set(exercise.uses) & set(used_names(exercise.answer))
            definitions = [(n, source) for n, source in enumerate(plain) if used & defined(source)]
            names = names.union(*(defined(source) for _, source in definitions))
            yield heading, exercise, definitions, needed(exercise, names)
            names.add(exercise.name)


def defined(source: str) -> set[str]:
    """Give the classes and functions that a cell defines, and the pieces that it takes up."""
    taken = ", ".join(re.findall(r"(?m)^([\w, ]+) = checks\.mine\(", source)).split(", ")
    return {*taken, *re.findall(r"(?m)^(?:class|def) (\w+)", source)}


def needed(exercise: Exercise, above: set[str]) -> str:
    """Write the lines that an answer needs: imports, and earlier pieces of the model.

    Args:
        exercise: whose answer.
        above: the names that the cells above it define.
    """
    names = [name for name in used_names(exercise.answer) if name not in above]
    pieces = [n for n in names if n in PIECES and n not in {*exercise.uses, exercise.name}]
    lines = [import_line(n, exercise.uses[n], "") for n in names if n in exercise.uses]
    lines = joined([*filter(None, lines)])
    if pieces:
        quoted = ", ".join(f'"{name}"' for name in pieces)
        lines += [""] if lines else []
        lines.append(f"{', '.join(pieces)} = checks.mine({quoted})")
    return "\n".join([*lines, "", ""]) + "\n" if lines else ""


def joined(imports: list[str]) -> list[str]:
    """Sort lines of import as ruff does: one a module, those of whole modules first."""
    plain = sorted(line for line in imports if line.startswith("import "))
    names: dict[str, list[str]] = {}
    for line in sorted(set(imports) - set(plain)):
        module, _, name = line.partition(" import ")
        names.setdefault(module, []).append(name)
    parts = [f"{module} import {', '.join(imported)}" for module, imported in names.items()]
    return [*plain, "", *parts] if plain and parts else plain + parts
