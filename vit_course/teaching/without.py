"""Lay the course without the answer to one task, for a student's code to import in the sandbox."""

import ast
import pickle
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cache, lru_cache
from io import BytesIO
from itertools import chain
from pathlib import Path
from types import FunctionType
from typing import Any

import cloudpickle

import vit_course
from vit_course.checks.engine import Check
from vit_course.checks.keeping import PIECES
from vit_course.checks.sources import used_names

from ..lessons import ROOT
from .sandbox import OURS

PACKAGE = ROOT / "vit_steps"
# What stands for `vit_course` there: `checks.mine` gives earlier pieces, all else does nothing.
CHECKS = f"""PIECES = {PIECES!r}


def mine(*names):
    from importlib import import_module
    found = [getattr(import_module(PIECES[name]), name) for name in names]
    return found[0] if len(found) == 1 else found


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda *_, **__: None
"""
PLOTS = CHECKS[CHECKS.index("def __getattr__") :]


def lay(folder: Path, hidden: set[str]) -> set[str]:
    """Lay the package without these definitions and what uses them, and a stand-in for the checks.

    Returns:
        The modules that lack something, by name.
    """
    changed, lacking = stripped(frozenset(hidden))
    shutil.copytree(PACKAGE, folder / "vit_steps", ignore=shutil.ignore_patterns("__pycache__"))
    for path, text in changed.items():
        (folder / "vit_steps" / path.relative_to(PACKAGE)).write_text(text, encoding="utf-8")
    (folder / "vit_course").mkdir()
    texts = {"__init__": "from . import checks, plots", "checks": CHECKS, "plots": PLOTS}
    for name, text in texts.items():
        (folder / "vit_course" / f"{name}.py").write_text(text, encoding="utf-8")
    return lacking


@cache
def stripped(hidden: frozenset[str]) -> tuple[dict[Path, str], set[str]]:
    """Strip the package's modules of these definitions and what is built on them.

    Returns:
        The text of each module that changes; and the names of those that lack something.
    """
    gone: set[ast.stmt] = set()
    names, size = set(hidden), -1
    while size < len(gone):
        size = len(gone)
        for node, defines, uses in chain(*package().values()):
            if node not in gone and defines and (defines | uses) & names:
                gone.add(node)
                names |= defines
    changed, lacking = {}, set()
    for path, nodes in package().items():
        tree = ast.Module([node for node, *_ in nodes if node not in gone], [])
        if len(tree.body) < len(nodes):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            lacking.add(module.removesuffix(".__init__"))
        imports = [node.names for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        if len(tree.body) < len(nodes) or names & {alias.name for alias in chain(*imports)}:
            changed[path] = unnamed(tree, names)
    return changed, lacking


@cache
def package() -> dict[Path, list[tuple[ast.stmt, set[str], set[str]]]]:
    """Give each statement at the top of the package's modules, what it defines, and uses."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
    return {
        path: [(node, defined_by(node), set(used_names(ast.unparse(node)))) for node in tree.body]
        for path, tree in trees.items()
    }


def defined_by(node: ast.stmt) -> set[str]:
    """Give the names that a statement at the top of a module defines; not what it imports."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {t.id for t in targets if isinstance(t, ast.Name)} - {"__all__"}


def unnamed(tree: ast.Module, names: set[str]) -> str:
    """Write a module whose imports and whose `__all__` lack these names."""
    tree = deepcopy(tree)
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom():
                node.names = [alias for alias in node.names if alias.name not in names]
            case ast.Assign([ast.Name("__all__")], ast.List(texts)):
                texts[:] = [x for x in texts if getattr(x, "value", None) not in names]
    return re.sub(r"(?m)^( *)from \S+ import $", r"\1pass", ast.unparse(tree))


@contextmanager
def by_value(lacking: set[str]) -> Iterator[None]:
    """Within, what is pickled of these modules, and of the checks, is taken along whole."""
    modules = [vit_course, *(sys.modules[name] for name in lacking if name in sys.modules)]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


class Pickler(cloudpickle.Pickler):
    """Pickle a program for the sandbox of a task, and refuse to take its answer along.

    `outside` gives how to make what stands for an object that stays outside, or None for another.
    """

    def __init__(self, file: BytesIO, name: str, outside: Callable[[Any], Any]):
        super().__init__(file)
        self.name, self.outside = name, outside

    def reducer_override(self, obj: Any) -> Any:
        """Say how an object is pickled, if not as usual."""
        file = getattr(getattr(obj, "__code__", None), "co_filename", "")
        piece = isinstance(obj, (FunctionType, type)) and obj.__name__ == self.name
        piece = piece and obj.__module__.startswith(("vit_steps", "answers"))
        if piece or isinstance(obj, Check) or file.startswith(f"an answer to {self.name}:"):
            raise pickle.PicklingError(f"an answer would be in the sandbox of {self.name}")
        if hasattr(obj, "cache_info") and obj.__module__.startswith(OURS):
            return lru_cache, (getattr(obj, "__wrapped__"),)  # noqa: B009
        return self.outside(obj) or super().reducer_override(obj)
