"""The source of what a learner wrote, from a notebook's cell or from a file."""

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


def codes(thing: Any) -> list:
    """The code objects of a function, or of the methods of a class."""
    methods = vars(thing).values() if isinstance(thing, type) else (thing,)
    methods = (getattr(m, "__func__", getattr(m, "fget", m)) for m in methods)
    return [m.__code__ for m in methods if hasattr(m, "__code__")]


def source_of(thing: Callable) -> str | None:
    """The source of a function or class, decorators included; None where it cannot be found.

    `inspect.getsource` fails on a class from a notebook under Python 3.11. The lines of its cell
    stand in `linecache` all the same, under the file name of a method's code, and `ast` finds the
    definition there. A class without methods, such as a dataclass, is looked for in the newest
    cell that has one of its name, or in its module's file.
    """
    for code in codes(thing):
        if source := definition(code.co_filename, thing, code.co_firstlineno):
            return source
    if not isinstance(thing, type):
        return None
    if thing.__module__ == "__main__":
        return source_in_cells(thing)
    home = getattr(sys.modules.get(thing.__module__), "__file__", None)
    return definition(home, thing) if home else None


def source_in_cells(thing: Callable) -> str | None:
    """The newest definition of that name in the notebook's cells; None without one."""
    cells = [file for file in reversed(linecache.cache) if re.search("ipykernel|ipython-", file)]
    return next((source for file in cells if (source := definition(file, thing))), None)


def definition(file: str, thing: Callable, line: int | None = None) -> str | None:
    """The definition of that name in a file or cell, the one round this line; None without one."""
    text = "".join(linecache.getlines(file))
    wanted = isinstance(thing, type), getattr(thing, "__name__", "")
    for kind, first, last in definitions(text):
        if kind == wanted and (line is None or first <= line <= last):
            return dedent("\n".join(text.splitlines()[first - 1 : last]))
    return None


@lru_cache(maxsize=8)
def definitions(text: str) -> list[tuple[tuple[bool, str], int, int]]:
    """Of each class and function of a source: whether it is a class, its name, its lines."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    return [
        (
            (isinstance(node, ast.ClassDef), node.name),
            min([node.lineno, *(d.lineno for d in node.decorator_list)]),
            node.end_lineno or node.lineno,
        )
        for node in ast.walk(tree)
        if isinstance(node, (ast.ClassDef, ast.FunctionDef))
    ]


def dotted_lines(thing: Callable) -> list[str]:
    """The lines of a source that a stub left open: `x = ...`, `return ...`, `f(...)`."""
    source = source_of(thing)
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


def globals_of(thing: Callable) -> dict[str, Any]:
    """What the names in a function's or class's source mean where it was written."""
    if hasattr(thing, "__globals__"):
        return thing.__globals__
    return vars(sys.modules[thing.__module__]) if thing.__module__ in sys.modules else {}


def used_names(source: str) -> list[str]:
    """The names from outside that a source uses, sorted; not those that it binds itself."""
    tables, found = [symtable.symtable(source, "piece", "exec")], set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        top = table.get_type() == "module"
        for symbol in table.get_symbols():
            outside = not symbol.is_assigned() if top else symbol.is_global()
            if outside and (symbol.is_referenced() or symbol.is_declared_global()):
                found.add(symbol.get_name())
    return sorted(found)


def names_in(source: str) -> set[str]:
    """The names that a source defines or imports at its top."""
    table = symtable.symtable(source, "piece", "exec")
    return {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}


def shown(thing: Callable) -> str:
    """A definition as it stands in its file, without what documents it."""
    lines = dedent(inspect.getsource(thing)).splitlines()
    left_out: set[int] = set()
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            first, last = node.body[0].lineno, node.body[0].end_lineno or node.body[0].lineno
            after = lines[last : last + 1] == [""] and len(node.body) > 1
            left_out.update(range(first, last + 1 + after))
    return "\n".join(line for number, line in enumerate(lines, 1) if number not in left_out)


def source(*things: Callable) -> None:
    """Print the package's form of pieces, docstrings aside."""
    print("\n\n\n".join(map(shown, things)))
