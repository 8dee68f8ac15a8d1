"""The source of what a learner wrote, from a notebook's cell or from a file."""

# ruff: noqa: T201

import ast
import inspect
import linecache
import re
import symtable
import sys
from collections.abc import Callable
from functools import lru_cache
from textwrap import dedent
from typing import Any


def codes(piece: Any) -> list:
    """Give the code objects of a function, or of the methods of a class."""
    methods = vars(piece).values() if isinstance(piece, type) else (inspect.unwrap(piece),)
    methods = (getattr(m, "__func__", getattr(m, "fget", m)) for m in methods)
    return [m.__code__ for m in methods if hasattr(m, "__code__")]


def source_of(piece: Callable) -> str | None:
    """Give the source of a function or class, decorators included; None where it is not found.

    `inspect.getsource` fails on a class from a notebook under Python 3.11. The lines of its cell
    stand in `linecache` all the same, under the file name of a method's code, and `ast` finds the
    definition there. A class without methods, such as a dataclass, is looked for in the newest
    cell that has one of its name, or in its module's file.
    """
    for code in codes(piece):
        if source := definition(code.co_filename, piece, code.co_firstlineno):
            return source
    if not isinstance(piece, type):
        return None
    if piece.__module__ == "__main__":
        return source_in_cells(piece)
    home = getattr(sys.modules.get(piece.__module__), "__file__", None)
    return definition(home, piece) if home else None


def source_in_cells(piece: Callable) -> str | None:
    """Give the newest definition of that name in the notebook's cells; None without one."""
    cells = [file for file in reversed(linecache.cache) if re.search("ipykernel|ipython-", file)]
    return next((source for file in cells if (source := definition(file, piece))), None)


def definition(file: str, piece: Callable, line: int | None = None) -> str | None:
    """Give the definition of that name in a file or cell, the one round this line, or None."""
    text = "".join(linecache.getlines(file))
    kind = ast.ClassDef if isinstance(piece, type) else ast.FunctionDef
    for node in definitions(text):
        first, last = first_line(node), node.end_lineno or node.lineno
        is_it = isinstance(node, kind) and node.name == getattr(piece, "__name__", "")
        if is_it and (line is None or first <= line <= last):
            return dedent("\n".join(text.splitlines()[first - 1 : last]))
    return None


def first_line(node: Any) -> int:
    """Give the line on which a statement begins, with its decorators."""
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])


@lru_cache(maxsize=8)
def definitions(text: str) -> list[ast.ClassDef | ast.FunctionDef]:
    """Give each class and function of a source; none where it is not Python."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    return [node for node in ast.walk(tree) if isinstance(node, (ast.ClassDef, ast.FunctionDef))]


def dotted_lines(piece: Callable) -> list[str]:
    """Give the lines of a source that a stub left open: `x = ...`, `return ...`, `f(...)`."""
    source = source_of(piece)
    if source is None:
        return []
    tree = ast.parse(source)
    slices = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)  # x[..., 0] is meant
        for part in ast.walk(node.slice)
    }
    dots = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value is ... and id(node) not in slices
    ]
    rows = source.splitlines()
    return [rows[number - 1].strip() for number in sorted({node.lineno for node in dots})]


def globals_of(piece: Callable) -> dict[str, Any]:
    """Give what the names in a function's or class's source mean where it was written."""
    piece = inspect.unwrap(piece)  # as @torch.no_grad() leaves it, its names are torch's own
    if hasattr(piece, "__globals__"):
        return piece.__globals__
    return vars(sys.modules[piece.__module__]) if piece.__module__ in sys.modules else {}


def used_names(source: str) -> list[str]:
    """Give the names from outside that a source uses, sorted; not those that it binds itself."""
    tables, names = [symtable.symtable(source, "piece", "exec")], set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        top = table.get_type() == "module"
        for symbol in table.get_symbols():
            outside = not symbol.is_assigned() if top else symbol.is_global()
            if outside and (symbol.is_referenced() or symbol.is_declared_global()):
                names.add(symbol.get_name())
    return sorted(names)


def names_in(source: str) -> set[str]:
    """Give the names that a source defines or imports at its top."""
    table = symtable.symtable(source, "piece", "exec")
    return {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}


def undocumented(piece: Callable) -> str:
    """Give a definition as it stands in its file, without what documents it."""
    lines = dedent(inspect.getsource(piece)).splitlines()
    documenting: set[int] = set()
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            first, last = node.body[0].lineno, node.body[0].end_lineno or node.body[0].lineno
            after = lines[last : last + 1] == [""] and len(node.body) > 1
            documenting.update(range(first, last + 1 + after))
    return "\n".join(line for number, line in enumerate(lines, 1) if number not in documenting)


def source(*pieces: Callable) -> None:
    """Print the package's form of pieces, docstrings aside."""
    print("\n\n\n".join(map(undocumented, pieces)))
