"""Each file in a process of its own: what the doctor says of it, whatever the file does.

This keeps a broken, endless or greedy file from the others. It is no prison: a file can do all that
the user may do, and code that wants to cheat can.
"""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..report import Finding, Report, Skipped
from .arguments import Task

CHILD = """
import json, sys
told = json.load(sys.stdin)
sys.path[:] = told.pop("path")
from vit_doctor import examine
from vit_doctor.command.one_file import child
child(examine, **told)
"""


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of one file.

    Args:
        file: its name, as it is shown.
        status: "examined", or in two or three words why it was not.
        message: more about that.
        report: the examination; None if there is none.
        seconds: from where PyTorch was loaded to the end.
    """

    file: str
    status: str
    message: str = ""
    report: Report | None = None
    seconds: float = 0.0


def files_in(folder: Path) -> list[Path]:
    """The files of a class: each *.py of a folder, and of its sub-folders that hold one."""
    files = list(folder.glob("*.py"))
    for inner in folder.iterdir():
        if inner.is_dir() and not inner.name.startswith((".", "__")):
            files += [file for file in inner.glob("*.py") if file.name != "__init__.py"]
    plain = [file for file in files if file.name != "__init__.py" and file.is_file()]
    return sorted(plain, key=lambda file: file.relative_to(folder).as_posix().lower())


def run(file: Path, task: Task, shown: str, quiet: bool = False) -> Result:
    """Examine one file in a process of its own.

    Args:
        file: to load.
        task: what to examine in it, and within which limits.
        shown: the file's name in the result.
        quiet: whether to drop what the file prints, and to keep it from a GPU and from opening
            windows, as for a file that nobody sits before.

    Raises:
        RuntimeError: Python cannot load the doctor in a process of its own.
    """
    with TemporaryDirectory() as place:
        out = Path(place).absolute() / "answer.json"  # no one else knows the name
        told = {
            "path": [os.path.abspath(each) for each in sys.path],
            "file": str(file.absolute()),
            "out": str(out),
            "task": dataclasses.asdict(task),
            "quiet": quiet,
        }
        # Nothing is left beside the user's file (-B); it may read and print any language.
        command = [sys.executable, "-B", "-X", "utf8", "-c", CHILD]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            env=surroundings(task, quiet),
            start_new_session=True,  # so that what the file starts can be ended with it
        ) as process:
            try:
                return wait(process, json.dumps(told).encode(), out, task, shown)
            finally:
                end(process)


def surroundings(task: Task, quiet: bool) -> dict[str, str]:
    """The environment of a file's process."""
    more = {}
    if quiet:
        more = {"MPLBACKEND": "Agg", "CUDA_VISIBLE_DEVICES": ""}
    if task.memory:
        more["MALLOC_ARENA_MAX"] = "2"  # else each thread sets address space aside, and uses none
    return os.environ | more


def wait(process: Any, told: bytes, out: Path, task: Task, shown: str) -> Result:
    """Start a process on its file, and wait for its end."""
    with suppress(BrokenPipeError), process.stdin:
        process.stdin.write(told)
    if process.stdout.readline() != b"ready\n":
        raise RuntimeError("Python cannot load the doctor in a process of its own")
    start = time.monotonic()
    try:
        code = process.wait(task.limit)
    except subprocess.TimeoutExpired:
        spent = time.monotonic() - start
        return Result(shown, "took too long", f"more than {task.limit:g} s", seconds=spent)
    spent = time.monotonic() - start
    answer = answer_in(out) if code == 0 else None
    if answer is None:
        how = signal.strsignal(-code) if code < 0 else f"exit code {code}"
        return Result(shown, "ended itself", f"its process ended: {how}", seconds=spent)
    status, message, report = answer
    if status == "out of memory":
        limit = f"more than {task.memory} MB on top of PyTorch's own" if task.memory else ""
        message = "; ".join(part for part in (limit, message) if part)
    return Result(shown, status, message, report, spent)


def answer_in(out: Path) -> tuple[str, str, Report | None] | None:
    """What a process wrote; None if that is no answer."""
    try:
        answer = json.loads(out.read_text(encoding="ascii"))
        status, message, found = answer["status"], answer["message"], answer.get("report")
        report = None
        if found:
            findings = tuple(Finding(**texts(each)) for each in found["findings"])
            skipped = tuple(Skipped(**texts(each)) for each in found["skipped"])
            report = Report(findings, skipped, tuple(map(str, found["sound"])))
        return (
            (str(status), str(message), report) if (status == "examined") == bool(found) else None
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def texts(fields: dict[str, Any]) -> dict[str, str]:
    """Fields that are texts, whatever came."""
    return {name: str(value) for name, value in fields.items()}


def end(process: Any) -> None:
    """End a process and what it started, where the system knows which that is."""
    with suppress(OSError):  # there may be no one left
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()  # after Ctrl-C `with` does not
