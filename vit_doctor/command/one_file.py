"""A user's file, in a process of its own: loads it, makes its model, and has that examined.

The file is code that the user chose to run. Beside it nothing is run.
"""

import dataclasses
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

from .arguments import Task, UnfitError
from .loading import load
from .making import make, told

OUT_OF_MEMORY = re.compile(r"MemoryError|allocate memory|not enough memory|bad_alloc")
LONGEST = 2000  # characters of a message: a model may raise a whole tensor


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
    printed, threads, guessed = io.StringIO(), set(threading.enumerate()), {}
    status = "cannot be loaded"
    try:
        torch.manual_seed(0)
        with redirect_stdout(printed if quiet else sys.stdout):
            target = find(load(path), task.name)
            status = "cannot be made"
            model, size, channels = make(target, task, guessed)
        status = "cannot be examined"
        report = examine(model, size, channels)
    except BaseException as error:  # sys.exit too: whatever it is, the others want to be examined
        answer = {"status": status} | described(error, path)
        if guessed and not isinstance(error, UnfitError):
            answer["message"] += f"; {told(guessed)}"
        return answer
    if task.memory and OUT_OF_MEMORY.search(str(report)):
        return {"status": "out of memory", "message": ""}
    notes = [f"{told(guessed)} (--set NAME=VALUE gives others)"] if guessed else []
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
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f for f in frames if f.filename.startswith(str(path))]
    where = f"{Path(lines[-1].filename).name}:{lines[-1].lineno}" if lines else ""
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
