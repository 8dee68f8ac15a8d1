"""Runs what a notebook defines: imports, classes, functions and constants; no training, no magics.

What a cell does besides, such as loading data, is left out.
"""

import ast
import json
import linecache
import re
from pathlib import Path
from types import ModuleType

from .arguments import UnfitError

DEFINES = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
HARMLESS = {
    *("dict", "list", "tuple", "set", "int", "float", "str", "len", "range", "max", "min", "round"),
    *("SimpleNamespace", "Namespace", "device", "is_available", "partial", "sqrt", "field"),
}


def run_notebook(path: Path, module: ModuleType) -> ModuleType:
    """Run the definitions of a notebook in a module; each cell has a file name of its own.

    A statement that fails is passed over: what needs it fails, and says so, when it is used. An
    UnfitError says that there are no cells of code, or what failed where no class is there.
    """
    classes: set[str] = set()
    failed = ""
    for number, text in cells_of(path):
        file = f"{path} cell {number}"
        text = re.sub(r"^([ \t]*)(?:[%!?].*|.*\?)$", r"\1pass", text, flags=re.MULTILINE)
        try:
            statements = ast.parse(text, file).body
        except SyntaxError:
            continue  # a cell of another language
        linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
        for statement in statements:
            if not defines(statement, classes):
                continue
            if isinstance(statement, ast.ClassDef):
                classes.add(statement.name)
            try:
                exec(compile(ast.Module([statement], []), file, "exec"), vars(module))
            except Exception as error:
                place = f"{path.name} cell {number}:{statement.lineno}"
                failed = failed or f"{type(error).__name__}: {error} ({place})"
    if failed and classes.isdisjoint(vars(module)):
        raise UnfitError(f"no class that it defines could be run: {failed}")
    return module


def cells_of(path: Path) -> list[tuple[int, str]]:
    """List the cells of code with their numbers, the first cell of all being 1."""
    try:
        cells = enumerate(json.loads(path.read_text("utf-8"))["cells"], 1)
        return [(n, "".join(cell["source"])) for n, cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError):
        raise UnfitError(f"{path.name} is no notebook of Jupyter's format 4") from None


def defines(statement: ast.AST, classes: set[str]) -> bool:
    """Tell whether a statement defines something, and calls nothing but what makes a value.

    Those are, in an assignment, the notebook's own classes and a few functions that are known.
    """
    if isinstance(statement, (ast.If, ast.Try)):  # try: import …
        return all(defines(inner, classes) for inner in statement.body)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return isinstance(statement, DEFINES)
    calls = [part.func for part in ast.walk(statement) if isinstance(part, ast.Call)]
    names = {f.id if isinstance(f, ast.Name) else getattr(f, "attr", "") for f in calls}
    return names <= HARMLESS | classes
