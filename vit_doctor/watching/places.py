"""Where in the user's code something happened: file, line, and the path of the module."""

import inspect
import os
import re
import sys
from pathlib import Path
from types import FrameType, TracebackType

from torch import nn

OWN = __name__.removesuffix(".watching.places")  # the doctor's room


def theirs(frame: FrameType) -> bool:
    """Whether a frame is the user's: not of torch, not of einops, not the doctor's own."""
    module = frame.f_globals.get("__name__", "")
    library = module.partition(".")[0] in ("torch", "einops", "contextlib")
    return not library and module != OWN and not module.startswith(OWN + ".")


def line_of(file: str, number: int) -> str:
    """A file's name and a line of it; a notebook's cell has a number for a name, in each run
    another, and is called a cell."""
    cell = re.search(r"ipykernel_\d+[/\\]\d+\.py$|^<ipython", file)
    if cell or file == os.environ.get("IPYKERNEL_CELL_NAME"):
        return f"line {number} of a cell"
    return f"{Path(file).name}:{number}"


def paths(model: nn.Module) -> dict[int, str]:
    """The path of each module by its id; "" for the model itself."""
    return {id(module): path for path, module in model.named_modules()}


def here(known: dict[int, str]) -> str:
    """The line of the user's that runs now, and the path of the module to which it belongs."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not theirs(frame):
        frame = frame.f_back
    if frame is None:
        return ""
    line, path = line_of(frame.f_code.co_filename, frame.f_lineno), None
    while frame is not None and path is None:
        path = known.get(id(frame.f_locals.get("self")))
        frame = frame.f_back
    return f"{path} ({line})" if path else line


def inside(known: dict[int, str]) -> str:
    """The path of the innermost module that runs now, torch's own too."""
    frame: FrameType | None = sys._getframe(1)
    path = None
    while frame is not None and path is None:
        path = known.get(id(frame.f_locals.get("self")))
        frame = frame.f_back
    return path or ""


def of_error(error: BaseException, known: dict[int, str]) -> str:
    """The deepest line of the user's that an error went through."""
    found, path = "", ""
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        path = known.get(id(frame.f_locals.get("self")), path)
        if theirs(frame):
            found = line_of(frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    return f"{path} ({found})" if path and found else found or path


def of_module(module: nn.Module, path: str) -> str:
    """The path of a module, and the line at which its forward begins, where that can be read.

    Of torch's own modules their class, as their code is not the user's to change.
    """
    try:
        if type(module).__module__.startswith("torch."):
            raise TypeError
        file = inspect.getsourcefile(type(module).forward)
        _, line = inspect.getsourcelines(type(module).forward)
        line = f"forward at {line_of(file or '', line)}"
    except (OSError, TypeError):
        line = type(module).__name__
    return f"{path} ({line})" if path else line
