"""Loads a file of code: a script, a module of a package, or the definitions of a notebook."""

import ast
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

from .arguments import UnfitError
from .notebooks import run_notebook


def load(path: Path) -> ModuleType:
    """Run a file as a module; its folder comes first on `sys.path`, those above it last.

    A file that imports from its own package, by dots or by a name that it bears itself, is loaded
    as a part of it.
    """
    path = path.absolute()
    sys.path.insert(0, str(path.parent))
    sys.path.extend(map(str, list(path.parent.parents)[:3]))  # to the root of a repository
    name = free_name(path.stem)
    if path.suffix == ".ipynb":
        sys.modules[name] = ModuleType(name)
        return run_notebook(path, sys.modules[name])
    package = ""
    for folder in packages_of(path):
        package = f"{package}.{folder.name}" if package else free_name(folder.name)
        import_package(folder, package)
        name = f"{package}.{path.stem}"
    done = sys.modules.get(name) if package else None  # its package may have imported it
    return done or run(path, name)


def packages_of(path: Path) -> list[Path]:
    """List the folders that a file needs as packages, the outermost first; [] if none."""
    try:
        imports = [
            x for x in ast.walk(ast.parse(path.read_bytes())) if isinstance(x, ast.ImportFrom)
        ]
    except (SyntaxError, ValueError):
        return []  # running it says what is wrong
    above = list(path.parents)
    depth = max((each.level for each in imports), default=0)
    roots = {(each.module or "").partition(".")[0] for each in imports if not each.level}
    names = [folder.name for folder in above]
    if path.stem in roots and path.stem in names:  # it hides the package of its own name
        depth = max(depth, names.index(path.stem) + 1)
    while depth and (above[depth] / "__init__.py").exists():
        depth += 1
    return above[:depth][::-1]


def import_package(folder: Path, name: str) -> None:
    """Import a package; where it has no __init__.py, or one that fails, it is one all the same."""
    try:
        run(folder / "__init__.py", name, [str(folder)])
    except Exception:  # what a package imports besides may be lacking here
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(folder)]


def free_name(name: str) -> str:
    """Give a module's name that takes no one's place: a file called random.py is random_."""
    name = re.sub(r"\W", "_", name)
    return f"{name}_" if name in sys.modules or name in sys.stdlib_module_names else name


def run(path: Path, name: str, folders: list[str] | None = None) -> ModuleType:
    """Run a file as a module of a name; `folders` are those of a package."""
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=folders)
    if spec is None or spec.loader is None:
        raise UnfitError(f"{path.name} is not a Python file, nor a notebook")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
