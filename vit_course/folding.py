"""The declared answers of exercises, brought into the folds of a lesson; its solutions."""

import re
from copy import deepcopy
from typing import Any

from . import checks
from .checks.exercise import Exercise
from .checks.keeping import PIECES, import_line
from .checks.sources import used_names

FOLD = r"(?s)<summary>One way to write it</summary>.*?```python\n(.*?)```"


def checked(source: str) -> str | None:
    """The name of the check that a cell ends with: `checks.patchify(patchify)` gives "patchify"."""
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
    """The exercise that a cell's last line checks."""
    name = checked(cell.source) if cell.cell_type == "code" else None
    exercise = getattr(checks, name or "", None)
    return exercise if isinstance(exercise, Exercise) else None


def solutions(book: Any, stem: str) -> Any:
    """The notebook of a lesson's solutions: each task's answer, above the check that it passes."""
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    title = book.cells[0].source.splitlines()[0]
    intro = f"{title}: solutions\n\n[The lesson](../{stem}.ipynb)\n\n"
    intro += "One right form each. Others are right too: the check decides."
    setup = deepcopy(next(cell for cell in book.cells if cell.cell_type == "code"))
    setup.source = re.sub(r"\nplots\.course_map\(\d+\)", "", setup.source)
    cells, here, heading = [new_markdown_cell(intro, id="title"), setup], set(), ""
    for cell in book.cells:
        if cell.cell_type == "markdown":
            found = re.findall(r"(?m)^##+ (.+)$", cell.source)
            heading = re.sub(r" \(\d+ minutes?\)", "", found[-1]) if found else heading
        elif exercise := task_of(cell):
            name = exercise.name
            text = f"## {heading}\n\n{exercise.why}".strip()
            cells.append(new_markdown_cell(text, id=f"text-{name}"))
            given = own_definitions(book, exercise)
            cells += [new_code_cell(source, id=f"given-{name}-{i}") for i, source in given]
            here |= {other for _, source in given for other in defined(source)}
            source = f"{needed(exercise, here)}{exercise.answer}\n\nchecks.{name}({name})"
            cells.append(new_code_cell(source, id=f"answer-{name}"))
            here.add(name)
    for cell in cells:
        cell.metadata.pop("slideshow", None)
    return new_notebook(cells=cells, metadata=deepcopy(book.metadata))


def own_definitions(book: Any, exercise: Exercise) -> list[tuple[int, str]]:
    """The lesson's own cells that define what an answer uses, each with its place among them."""
    wanted = set(exercise.uses) & set(used_names(exercise.answer))
    plain = (c.source for c in book.cells if c.cell_type == "code" and task_of(c) is None)
    return [(i, source) for i, source in enumerate(plain) if wanted & defined(source)]


def defined(source: str) -> set[str]:
    """The classes and functions that a cell defines, and the pieces that it takes up."""
    taken = ", ".join(re.findall(r"(?m)^([\w, ]+) = checks\.mine\(", source)).split(", ")
    return {*taken, *re.findall(r"(?m)^(?:class|def) (\w+)", source)}


def needed(exercise: Exercise, here: set[str]) -> str:
    """The lines that an answer needs above it: imports, and earlier pieces of the model."""
    names = [name for name in used_names(exercise.answer) if name not in here]
    pieces = [n for n in names if n in PIECES and n not in {*exercise.uses, exercise.name}]
    lines = [import_line(n, exercise.uses[n], "") for n in names if n in exercise.uses]
    lines = joined([*filter(None, lines)])
    if pieces:
        quoted = ", ".join(f'"{name}"' for name in pieces)
        lines += [""] * bool(lines) + [f"{', '.join(pieces)} = checks.mine({quoted})"]
    return "\n".join([*lines, "", ""]) + "\n" if lines else ""


def joined(imports: list[str]) -> list[str]:
    """Lines of import as ruff sorts them: one a module, those of whole modules first."""
    plain = sorted(line for line in imports if line.startswith("import "))
    names: dict[str, list[str]] = {}
    for line in sorted(set(imports) - set(plain)):
        module, _, name = line.partition(" import ")
        names.setdefault(module, []).append(name)
    whole = [f"{module} import {', '.join(those)}" for module, those in names.items()]
    return [*plain, *[""] * bool(plain and whole), *whole]
