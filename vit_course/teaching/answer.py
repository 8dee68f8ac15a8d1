"""What runs a learner's answer, in a process of its own: `judge.py` forks it for each task.

The process gives back nothing but results, as plain data. Before the learner's code runs, memory is
limited, and an audit hook refuses other programs, the network, and writing. That keeps accidents
from doing harm. It stops nobody who means to cheat or to do harm: the course's own answers stand
in the same process, and Python cannot be shut off from itself.
"""

import ast
import linecache
import os
import re
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from vit_course.checks.compare import Parts, Raised, Verdict, kind_of

FORBIDDEN = (
    *("subprocess.", "socket.", "ctypes.", "shutil.", "pty.", "os.system", "os.exec", "os.fork"),
    *("os.posix_spawn", "os.spawn", "os.kill", "os.remove", "os.rename", "os.rmdir", "os.mkdir"),
    *("os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown"),
)


class RefusedError(PermissionError):
    """The submission asked for what it may not have."""


def refuse(event: str, arguments: tuple) -> None:
    """An audit hook: no other programs, no network, no writing."""
    if event.startswith(FORBIDDEN):
        raise RefusedError(f"{event} is not allowed where work is graded")
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        path = Path(os.fsdecode(arguments[0]))
        if arguments[2] & (os.O_WRONLY | os.O_RDWR) and path != Path(os.devnull):
            raise RefusedError(f"{path.name} may not be written where work is graded")


def limit(megabytes: int) -> None:
    """So much memory beside what the interpreter has already, no large files, no core."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    if sys.platform == "linux":  # elsewhere the system does not tell, or does not keep to it
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        most = pages * resource.getpagesize() + megabytes * 1_000_000
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


class Shell:
    """What `get_ipython()` gives: `!ls`, `%time` and the like do nothing where work is graded."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


def attempt(name: str, cells: list[tuple[str | None, str]]) -> Callable:
    """The learner's answer to a task: run what the cells down to the task's define.

    Args:
        name: the task.
        cells: of each cell the task that it is of, or None, and its source.

    Raises:
        ValueError: there is no such answer; it says why.
    """
    from IPython.core.inputtransformer2 import TransformerManager

    module = ModuleType("submission")
    module.__dict__["get_ipython"] = Shell
    sys.modules["submission"] = module
    for number, (task, source) in enumerate(cells):
        own, file = task == name, f"<cell {number}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        try:
            # A cell below `%%time` is run as it stands.
            plain = re.sub(r"\A\s*%%.*", "", source)
            tree = ast.parse(TransformerManager().transform_cell(plain))
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
    """The answer that an expression gives; raises ValueError if it gives none of the learner's."""
    code = compile(ast.fix_missing_locations(ast.Expression(expression)), file, "eval")
    try:
        answer = eval(code, names)
    except Exception as error:
        raise ValueError(f"there is no answer: {error}") from None
    if (getattr(answer, "__module__", None) or "").startswith(("vit_steps", "vit_course")):
        raise ValueError("this is the course's own answer; write your own")
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
    if isinstance(x, Verdict):
        return ["verdict", str(x)]
    for kind in (bool, int, float, str):
        if isinstance(x, kind):
            return ["plain", kind(x)]
    if x is None or x is ...:
        return ["dots" if x is ... else "none"]
    return ["other", kind_of(x)]


def restored(x: list) -> Any:
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
            return Parts(*map(restored, parts))
        case [("size" | "tuple" | "list") as word, parts]:
            return {"size": torch.Size, "tuple": tuple, "list": list}[word](map(restored, parts))
        case ["dict", pairs]:
            return {restored(key): restored(value) for key, value in pairs}
        case ["verdict", text]:
            return Verdict(text)
        case ["dots"]:
            return ...
        case ["none"]:
            return None
        case ["other", text]:
            return Verdict(f"it gives {text}")
    raise ValueError(f"{str(x)[:50]} is no result")
