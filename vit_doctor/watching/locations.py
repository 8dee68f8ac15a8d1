"""Where in the user's code something happened: file, line, and the path of the module."""

import inspect
import os
import re
import sys
from pathlib import Path
from types import FrameType

from torch import nn

NOT_USERS = ("torch", "einops", "contextlib", __name__.partition(".")[0])


def is_users(frame: FrameType) -> bool:
    """Tell whether a frame is the user's: not of torch, not of einops, not the doctor's own."""
    return frame.f_globals.get("__name__", "").partition(".")[0] not in NOT_USERS


def users_frame() -> FrameType | None:
    """Give the innermost frame of the user's that runs now."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame):
        frame = frame.f_back
    return frame


def file_line(file: str, number: int) -> str:
    """Give a file's name and a line of it.

    A notebook's cell has a number for a name, in each run another, and is called a cell.
    """
    cell = re.search(r"ipykernel_\d+[/\\]\d+\.py$|^<ipython", file)
    if cell or file == os.environ.get("IPYKERNEL_CELL_NAME"):
        return f"line {number} of a cell"
    return f"{Path(file).name}:{number}"


def current_location(module_paths: dict[int, str]) -> str:
    """Give the user's line that runs now, and the path of the module to which it belongs."""
    frame = users_frame()
    if frame is None:
        return ""
    line = file_line(frame.f_code.co_filename, frame.f_lineno)
    path = current_module(module_paths, frame)
    return f"{path} ({line})" if path else line


def current_module(module_paths: dict[int, str], frame: FrameType | None = None) -> str:
    """Give the path of the innermost module that runs in a frame, by default now; torch's too."""
    frame, path = frame or sys._getframe(1), None
    while frame is not None and path is None:
        path = module_paths.get(id(frame.f_locals.get("self")))
        frame = frame.f_back
    return path or ""


def error_location(error: BaseException, module_paths: dict[int, str]) -> str:
    """Give the deepest line of the user's that an error went through."""
    line = path = ""
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        path = module_paths.get(id(frame.f_locals.get("self")), path)
        if is_users(frame):
            line = file_line(frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    return f"{path} ({line})" if path and line else line or path


def module_location(module: nn.Module, path: str) -> str:
    """Give the path of a module, and the line at which its forward begins, if that can be read.

    Of torch's own modules their class, as their code is not the user's to change.
    """
    line = type(module).__name__
    if not type(module).__module__.startswith("torch."):
        try:
            file = inspect.getsourcefile(type(module).forward)
            _, number = inspect.getsourcelines(type(module).forward)
            line = f"forward at {file_line(file or '', number)}"
        except (OSError, TypeError):
            pass  # made where no file holds it
    return f"{path} ({line})" if path else line
