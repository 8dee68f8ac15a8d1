"""Run beside a student's code: find the answer to a task, try it, give back what came out.

`judge.py` sends this module's functions into the sandbox by value, with the inputs of one task. The
judging is done outside: here is no answer of the course's, and nothing that says what is right.
"""

import __future__

import ast
import builtins
import linecache
import os
import re
import resource
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from vit_course.checks.compare import Raised
from vit_course.checks.engine import not_attempted, outcome
from vit_course.checks.sources import names_in, used_names
from vit_course.checks.trials import Trial
from vit_course.teaching.wire import packed, unpacked

# The answer among the cells ----------------------------------------------------------------------


UNREADABLE = (SyntaxError, ValueError, MemoryError, RecursionError)  # what reading code may raise


class Broken(Exception):  # noqa: N818
    """Say that there is no answer: the kind of error, and the line of the task's cell, or 0."""


class Shell:
    """Stand for `get_ipython()` and `google.colab`: where work is graded they do nothing.

    So do `!ls`, `%cd`, `drive.mount(…)` and the like.
    """

    def __getattr__(self, name: str) -> "Shell":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_: Any, **__: Any) -> list:
        """Give the empty output of a shell."""
        return []


def parsed(source: str) -> ast.Module:
    """Read a cell as Python, whatever `?`, `!` and `%` it has."""
    try:
        return ast.parse(source)
    except SyntaxError:
        from IPython.core.inputtransformer2 import TransformerManager

        # What stands below `%%time`, or behind `%time`, is run as it stands.
        plain = re.sub(r"\A\s*%%.*", "", source)
        plain = re.sub(r"(?m)^(\s*)%time ", r"\1", plain)
        return ast.parse(TransformerManager().transform_cell(plain))


def attempt(name: str, cells: Sequence[str], own_cell: int) -> Any:
    """Find the student's answer to a task among the sources of all code cells.

    All of the task's own cell is run, and of the others, above it or below, what brings names that
    it needs: another task's check, or a training, may take long.

    Raises:
        Broken: there is no answer.
    """
    module = ModuleType("__main__")  # as in a notebook
    vars(module).update(get_ipython=Shell, display=print, _="")
    sys.modules["__main__"] = module
    sys.modules |= dict.fromkeys(["google", "google.colab"], Shell())
    trees: dict[int, list[ast.stmt]] = {}
    for number, source in enumerate(cells):
        file = f"<cell {number}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        try:
            trees[number] = parsed(source).body
        except UNREADABLE as error:
            if number == own_cell:
                raise Broken(type(error).__name__, getattr(error, "lineno", 0) or 0) from None
    flags = future(trees)
    answer = answer_in(trees[own_cell], name)
    for number, node in needed({name, *used_by(answer)}, trees, own_cell):
        run(node, number, module, flags)
    errors: list[tuple[str, int]] = []
    for node in trees[own_cell]:
        if error := run(node, own_cell, module, flags):
            errors.append(error)
            if not isinstance(node, (ast.Import, ast.ImportFrom)):  # which may not be needed
                break
    try:
        code = ast.fix_missing_locations(ast.Expression(answer))
        return eval(compile(code, f"<cell {own_cell}>", "eval", flags), module.__dict__)
    except BaseException as error:
        raise Broken(*(errors or [(type(error).__name__, 0)])[0]) from None


def future(trees: dict[int, list[ast.stmt]]) -> int:
    """Give the compiler's flags for what any cell imports from `__future__`: all cells have it."""
    flags = 0
    for node in chain(*trees.values()):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            for alias in node.names:
                flags |= getattr(getattr(__future__, alias.name, None), "compiler_flag", 0)
    return flags


def run(node: ast.stmt, number: int, module: ModuleType, flags: int) -> tuple[str, int] | None:
    """Run a statement; if it raises, give the kind of its error, and the line."""
    try:
        code = compile(ast.Module([node], []), f"<cell {number}>", "exec", flags)
        exec(code, module.__dict__)
    except MemoryError:
        raise
    except BaseException as error:
        return type(error).__name__, node.lineno
    return None


def needed(
    names: set[str], trees: dict[int, list[ast.stmt]], own_cell: int
) -> list[tuple[int, ast.stmt]]:
    """Find what of the other cells brings these names, and those that the task's cell uses.

    Each statement comes with its cell's number, in the order in which it is to run: what stands
    below comes last, and only where nothing above brings the name.
    """
    others = [(n, node) for n in sorted(trees) if n != own_cell for node in trees[n]]
    wanted_names, size = names.union(*map(used_by, trees[own_cell])), -1
    chosen: list[tuple[int, ast.stmt]] = []
    while size < len(wanted_names):
        size = len(wanted_names)
        chosen = [(n, node) for n, node in others if brought_by(node) & (wanted_names | {"*"})]
        wanted_names = wanted_names.union(*(used_by(node) for _, node in chosen))
    above = [(n, node) for n, node in chosen if n < own_cell]
    brought = set[str]().union(*map(brought_by, [*trees[own_cell], *(node for _, node in above)]))
    return above + [(n, node) for n, node in chosen if n > own_cell and brought_by(node) - brought]


def used_by(node: ast.AST) -> set[str]:
    """Give the names from outside that a statement or expression uses."""
    with suppress(*UNREADABLE):
        return set(used_names(ast.unparse(node)))
    return set()


def brought_by(node: ast.AST) -> set[str]:
    """Give the names that a statement defines or changes; "*" for all of a module."""
    names = set()
    with suppress(*UNREADABLE):
        names = names_in(ast.unparse(node))
    for part in ast.walk(node):  # `table["a"] = 1`, `Cut.__call__ = call`
        if isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load):
            names |= {x.id for x in ast.walk(part.value) if isinstance(x, ast.Name)}
    match node:
        case ast.Expr(ast.Call(ast.Name("setattr"), [ast.Name(base), *_])):
            names.add(base)
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(base)))):  # `table.update(…)`
            names |= {base} - {"checks", "plots", "plt"}
        case ast.ImportFrom(_, [ast.alias("*")]):
            names.add("*")
    return names


def answer_in(nodes: Sequence[ast.stmt], name: str) -> ast.expr:
    """Give what a task's check is called with last, `f` of `checks.patchify(f)`; else its name."""
    for part in chain(*map(ast.walk, reversed(nodes))):
        match part:
            case ast.Call(ast.Attribute(ast.Name("checks"), attribute), [answer], []):
                if attribute == name:
                    return answer
    return ast.Name(name, ast.Load())


# The life of the process -------------------------------------------------------------------------


def addresses() -> int:
    """Count the bytes of this process's memory; 0 where the system does not tell."""
    if sys.platform != "linux":
        return 0
    return int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()


def limit_addresses(most: int) -> None:
    """Limit memory to so many bytes in all, where the system keeps to it."""
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


class Ask:
    """Stand for an `Outside` of a trial, inside: hand on what it is called with, and wait."""

    write: Callable[[Any], None]
    read: Callable[[], Any]

    def __init__(self, number: int):
        self.number = number

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Give what the function outside gives, or raise an error of the same kind."""
        self.write(["ask", self.number, list(inputs), options])
        result = self.read()
        if isinstance(result, Raised):
            kind = getattr(builtins, result.kind, RuntimeError)
            known = isinstance(kind, type) and issubclass(kind, Exception)
            raise (kind if known else RuntimeError)(f"{result.kind}, outside")
        return result


def live(
    name: str, cells: list[str], own_cell: int, trials: list[Trial], slips: dict, most: int
) -> None:
    """Find the answer, try it, write what came out to what was standard output, and end.

    `most` is the memory in bytes that the process may have.
    """
    reading, writing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    quiet = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(quiet, number)

    def write(x: Any) -> None:
        writing.write(packed(x))
        writing.flush()

    def read() -> Any:
        return unpacked(reading.read(int.from_bytes(reading.read(8), "big")))

    Ask.write, Ask.read = staticmethod(write), staticmethod(read)  # type: ignore[assignment]
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000_000, 20_000_000))
    limit_addresses(most)
    try:
        answer = attempt(name, cells, own_cell)
        if answer is ... or not callable(answer):
            report = ["no function", None if answer is ... else type(answer).__name__]
        else:
            results = [outcome(trial, answer, slips) for trial in trials]
            unfinished = next(filter(None, (not_attempted(r, answer) for r in results)), "")
            report = ["results", unfinished, *results]
    except MemoryError:
        report = ["memory"]
    except Broken as error:
        report = ["broken", *error.args]
    try:
        write(report)
    finally:
        os._exit(0)
