"""What runs a learner's answer, in a process of its own: `judge.py` forks it for each task.

The process gives back nothing but results, as plain data. Before the learner's code runs, what the
course knows of the answer is taken away, memory is limited, and an audit hook refuses other
programs, the network, writing, and reading the course's files.
"""

import ast
import linecache
import os
import re
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor

import vit_steps
from vit_course.checks.compare import Parts, Raised, Verdict, kind_of
from vit_course.checks.engine import Check
from vit_course.checks.lesson_12 import Diagnosis

COURSE = Path(vit_steps.__file__).parent
FORBIDDEN = (
    *("subprocess.", "socket.", "ctypes.", "shutil.", "gc.", "pty.", "os.system", "os.exec"),
    *("os.fork", "os.posix_spawn", "os.spawn", "os.kill", "os.remove", "os.rename", "os.rmdir"),
    *("os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "signal."),
)
# Their answers are subclasses of the package's classes, which the trials then examine: these must
# be the judge's own, and there is no answer in the package to take away.
PATIENTS = ("first_patient", "second_patient", "third_patient")


# What is left of `checks`: it reads and compares, and knows no answers.
TOOLS = ("compare", "engine", "keeping", "sources")


class RefusedError(PermissionError):
    """The submission asked for what it may not have."""


def refuse(event: str, arguments: tuple) -> None:
    """An audit hook: no other programs, no network, no writing, and no reading of the course."""
    if event.startswith(FORBIDDEN):
        raise RefusedError(f"{event} is not allowed where work is graded")
    if event != "open" or not isinstance(arguments[0], (str, bytes)):
        return
    path, flags = Path(os.path.realpath(os.fsdecode(arguments[0]))), arguments[2]
    writes = flags & (os.O_WRONLY | os.O_RDWR) and path != Path(os.devnull)
    source = path.suffix in (".py", ".pyc") and path.is_relative_to(COURSE)
    if writes or source or path.suffix == ".ipynb":
        raise RefusedError(f"{path.name} may not be opened where work is graded")


def limit(megabytes: int) -> None:
    """So much memory beside what the interpreter has already, no large files, no core."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    if sys.platform == "linux":  # elsewhere the system does not tell, or does not keep to it
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        most = pages * resource.getpagesize() + megabytes * 1_000_000
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def disarm(name: str, own: dict[str, ModuleType]) -> None:
    """Take away what the course knows of the answer, from the copy of the package in `sys`.

    Args:
        name: the task.
        own: the judge's modules of the package, which a patient's answer needs.
    """
    if name in PATIENTS:
        sys.modules.update(own)
    modules = {k: m for k, m in sys.modules.items() if k.split(".")[0] == "vit_steps"}
    for thing in vars(modules["vit_course.checks"]).values():
        if type(thing).__name__ == Check.__name__:
            vars(thing).update(reference=used_course, trials=(), mistakes=[], known={})
    for known, module in modules.items():
        if known.startswith("vit_course.checks."):
            if name not in PATIENTS and known.split(".")[2] not in TOOLS:
                vars(module).clear()
        elif known != "vit_course.checks" and (piece := getattr(module, name, None)):
            if isinstance(piece, type):
                piece.__init__ = used_course
            elif isinstance(piece, FunctionType) and not piece.__code__.co_freevars:
                piece.__code__ = used_course.__code__


def used_course(*_: Any, **__: Any) -> Any:
    raise PermissionError("this uses the course's own answer; write your own")


def attempt(name: str, cells: list[tuple[str | None, str]]) -> Callable:
    """The learner's answer to a task: run what the cells down to the task's define.

    Args:
        name: the task.
        cells: of each cell the task that it is of, or None, and its source.

    Raises:
        ValueError: there is no such answer; it says why.
    """
    module = ModuleType("submission")
    sys.modules["submission"] = module
    for number, (task, source) in enumerate(cells):
        own, file = task == name, f"<cell {number}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        try:
            tree = ast.parse(re.sub(r"(?m)^[ \t]*[%!].*$", "", source))
        except SyntaxError as error:
            if own:
                said = f"the cell is not Python: {error.msg}, line {error.lineno}"
                raise ValueError(said) from None
            continue
        given = [answer_in(node, name) for node in tree.body]
        for node, is_call in zip(tree.body, given, strict=True):
            # Of other cells only what brings names: another task's check may never end.
            if is_call or not (own or isinstance(node, BRINGS)):
                continue
            try:
                exec(compile(ast.Module([node], []), file, "exec"), module.__dict__)
            except (Exception, SystemExit) as error:
                if own:
                    said = f"the cell stops with {type(error).__name__}: {error}"
                    raise ValueError(said) from None
        if own:
            # Without the call of the check, the answer is what has the check's name.
            last = next((g for g in reversed(given) if g), ast.Name(name, ast.Load()))
            return value_of(last, file, module.__dict__)
    raise ValueError("the cell of this task is missing")


BRINGS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)


def answer_in(node: ast.stmt, name: str) -> ast.expr | None:
    """What a statement gives to the check: of `checks.patchify(mine)` it is `mine`."""
    match node:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name("checks"), attribute), [given], [])):
            return given if attribute == name else None
    return None


def value_of(expression: ast.expr, file: str, names: dict[str, Any]) -> Any:
    code = compile(ast.fix_missing_locations(ast.Expression(expression)), file, "eval")
    try:
        answer = eval(code, names)
    except Exception as error:
        raise ValueError(f"there is no answer: {error}") from None
    if isinstance(answer, type) and "forward" not in vars(answer):
        raise ValueError("the class has no forward of its own")
    return answer


def flat(x: Any) -> Any:
    """A result as nothing but tensors, numbers, texts and lists, which can be read without risk."""
    if isinstance(x, Raised):
        return ["raised", x.kind, x.message, x.line, x.own]
    if isinstance(x, Tensor):
        return ["tensor", torch.empty(x.shape, dtype=x.dtype).copy_(x.detach())]
    for kind, word in ((Parts, "parts"), (torch.Size, "size"), (tuple, "tuple"), (list, "list")):
        if isinstance(x, kind):
            return [word, [flat(part) for part in x]]
    if isinstance(x, dict):
        return ["dict", [[flat(key), flat(value)] for key, value in x.items()]]
    if isinstance(x, Diagnosis):
        return ["diagnosis", str(x), x.sick]
    if isinstance(x, Verdict):
        return ["verdict", str(x)]
    for kind in (bool, int, float, str):
        if isinstance(x, kind):
            return ["plain", kind(x)]
    if x is None or x is ...:
        return ["dots" if x is ... else "none"]
    return ["other", kind_of(x)]


def whole(x: list) -> Any:
    """The result that was made flat.

    Raises:
        ValueError: there is no such result.
    """
    match x:
        case ["raised", kind, message, line, own]:
            return Raised(kind, message, line, own)
        case ["tensor" | "plain", value]:
            return value
        case ["parts", parts]:
            return Parts(*map(whole, parts))
        case [("size" | "tuple" | "list") as word, parts]:
            return {"size": torch.Size, "tuple": tuple, "list": list}[word](map(whole, parts))
        case ["dict", pairs]:
            return {whole(key): whole(value) for key, value in pairs}
        case ["verdict", text]:
            return Verdict(text)
        case ["diagnosis", text, sick]:
            diagnosis = str.__new__(Diagnosis, text)
            diagnosis.sick = sick
            return diagnosis
        case ["dots"]:
            return ...
        case ["none"]:
            return None
        case ["other", text]:
            return Verdict(f"it gives {text}")
    raise ValueError(f"{str(x)[:50]} is no result")
