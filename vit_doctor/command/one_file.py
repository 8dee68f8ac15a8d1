"""A user's file, in a process of its own: loads it, makes its model, and has that examined.

The file is code that the user chose to run. Beside it nothing is run.
"""

import dataclasses
import importlib.util
import io
import json
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from .arguments import Task, UnfitError, make

OUT_OF_MEMORY = re.compile(r"MemoryError|allocate memory|not enough memory|bad_alloc")
LONGEST = 2000  # characters of a message: a model may raise a whole tensor


def load(path: Path) -> ModuleType:
    """Run a file as a module; its folder comes first on `sys.path`."""
    sys.path.insert(0, str(path.parent))
    name = re.sub(r"\W", "_", path.stem)
    if name in sys.modules:  # a file called random.py takes no one's place
        name += "_"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UnfitError(f"{path.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where pickle and dataclasses look
    spec.loader.exec_module(module)
    return module


def find(module: ModuleType, name: str) -> Any:
    """Find what has a name in a module; without one its ViT, else its only nn.Module."""
    if hasattr(module, name or "ViT"):
        return getattr(module, name or "ViT")
    types = {n: x for n, x in vars(module).items() if isinstance(x, type)}
    modules = {n: x for n, x in types.items() if issubclass(x, nn.Module)}
    classes = [n for n, x in modules.items() if x.__module__ == module.__name__]
    if not name and len(classes) == 1:
        return modules[classes[0]]
    there = f"it has {', '.join(classes)}" if classes else "it defines no nn.Module"
    hint = "; say which, as file.py:Name" if classes and not name else ""
    raise UnfitError(f"there is no {name or 'ViT'} in it: {there}{hint}")


def look(examine: Callable, path: Path, task: Task, quiet: bool) -> dict[str, Any]:
    """Load, make and examine; an answer for the file is given in every case but a dead process."""
    printed, threads = io.StringIO(), set(threading.enumerate())
    status = "cannot be loaded"
    try:
        torch.manual_seed(0)
        with redirect_stdout(printed if quiet else sys.stdout):
            target = find(load(path), task.name)
            status = "cannot be made"
            model, size, channels = make(target, task)
        status = "cannot be examined"
        report = examine(model, size, channels)
    except BaseException as error:  # sys.exit too: whatever it is, the others want to be examined
        return {"status": status} | described(error, path)
    if task.memory and OUT_OF_MEMORY.search(str(report)):
        return {"status": "out of memory", "message": ""}
    notes = []
    if text := printed.getvalue().strip():
        notes.append(f"prints when it is loaded and made: {text.splitlines()[0]}")
    count = len({thread for thread in threading.enumerate() if not thread.daemon} - threads)
    if count:
        notes.append(f"leaves a thread running ({count}): a program that uses it does not end")
    message = "; ".join(notes)[:LONGEST]
    return {"status": "examined", "message": message, "report": dataclasses.asdict(report)}


def described(error: BaseException, path: Path) -> dict[str, str]:
    """Put an error into words, with the last line of the file that it went through."""
    if isinstance(error, UnfitError):
        return {"message": str(error)}
    lines = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    where = f"{path.name}:{lines[-1].lineno}" if lines else ""
    end = f" ({where})" if lines else ""
    if isinstance(error, SystemExit):
        return {"status": "ended itself", "message": f"sys.exit({error.code!r}){end}"[:LONGEST]}
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    if OUT_OF_MEMORY.search(text):
        return {"status": "out of memory", "message": where}
    return {"message": text[:LONGEST] + end}


def limit_memory(megabytes: int) -> None:
    """Let this process have so much more address space than now; only Linux can."""
    if sys.platform == "linux":
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + megabytes * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def child(examine: Callable, file: str, out: str, task: dict[str, Any], quiet: bool) -> None:
    """Do all that the process of a file does: say that it is there, look, write the answer, end.

    The answer goes as JSON to `out`, which must not exist; `quiet` keeps from the terminal what the
    file prints; `task` holds the fields of a `Task`.
    """
    os.write(1, b"ready\n")
    os.dup2(2, 1)  # what the file prints is no part of what the doctor says
    if task["memory"]:
        limit_memory(task["memory"])
    answer = look(examine, Path(file), Task(**task), quiet)
    with open(out, "x", encoding="ascii") as stream:
        json.dump(answer, stream, default=str)
    os._exit(0)  # whatever threads the file left
