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

from ..report import Finding, Note, Report, Skipped
from .arguments import Task

CHILD = """
import json, sys
arguments = json.load(sys.stdin)
sys.path[:] = arguments.pop("path")
from vit_doctor import examine
from vit_doctor.command.one_file import child
child(examine, **arguments)
"""


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of one file."""

    file: str  # its name, as it is shown
    status: str  # "examined", or in two or three words why it was not
    message: str = ""  # more about that
    report: Report | None = None  # None if it was not examined
    seconds: float = 0.0  # from where PyTorch was loaded to the end


def files_in(folder: Path) -> list[Path]:
    """List the files of a class: each *.py of a folder, and of its sub-folders."""
    folders = [inner for inner in folder.iterdir() if inner.is_dir()]
    folders = [folder, *(f for f in folders if not f.name.startswith((".", "__")))]
    files = [file for f in folders for file in f.glob("*.py")]
    files = [file for file in files if file.name != "__init__.py" and file.is_file()]
    return sorted(files, key=lambda file: file.relative_to(folder).as_posix().lower())


def run(file: Path, task: Task, name: str, quiet: bool = False) -> Result:
    """Examine one file in a process of its own; in the result it has a `name`.

    `quiet` is for a file that nobody sits before: what it prints is dropped, and it is kept from a
    GPU and from opening windows. A RuntimeError says that Python cannot load the doctor there.
    """
    with TemporaryDirectory() as folder:
        out = Path(folder).absolute() / "answer.json"  # no one else knows the name
        path = [os.path.abspath(folder) for folder in sys.path]
        arguments = {"path": path, "file": str(file.absolute()), "out": str(out), "quiet": quiet}
        arguments["task"] = dataclasses.asdict(task)
        environment = dict(os.environ)
        if quiet:
            environment |= {"MPLBACKEND": "Agg", "CUDA_VISIBLE_DEVICES": ""}
        if task.memory:  # else each thread sets address space aside, and uses none
            environment["MALLOC_ARENA_MAX"] = "2"
        with subprocess.Popen(
            # Nothing is left beside the user's file (-B); it may read and print any language.
            [sys.executable, "-B", "-X", "utf8", "-c", CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            env=environment,
            start_new_session=True,  # so that what the file starts can be ended with it
        ) as process:
            try:
                return wait(process, arguments, out, task, name)
            finally:
                end(process)


def wait(process: Any, arguments: dict[str, Any], out: Path, task: Task, name: str) -> Result:
    """Start a process on its file, and wait for its end."""
    with suppress(BrokenPipeError), process.stdin:
        process.stdin.write(json.dumps(arguments).encode())
    if process.stdout.readline() != b"ready\n":
        raise RuntimeError("Python cannot load the doctor in a process of its own")
    start = time.monotonic()
    try:
        code = process.wait(task.limit)
    except subprocess.TimeoutExpired:
        seconds = time.monotonic() - start
        return Result(name, "took too long", f"more than {task.limit:g} s", seconds=seconds)
    seconds = time.monotonic() - start
    answer = answer_in(out) if code == 0 else None
    if answer is None:
        reason = signal.strsignal(-code) if code < 0 else f"exit code {code}"
        return Result(name, "ended itself", f"its process ended: {reason}", seconds=seconds)
    status, message, report = answer
    if status == "out of memory" and task.memory:
        limit = f"more than {task.memory} MB on top of PyTorch's own"
        message = f"{limit}; {message}" if message else limit
    return Result(name, status, message, report, seconds)


def answer_in(out: Path) -> tuple[str, str, Report | None] | None:
    """Give the status, message and report that a process wrote; None if that is no answer."""

    def texts(fields: dict[str, Any]) -> dict[str, str]:  # whatever came
        return {name: str(value) for name, value in fields.items()}

    try:
        answer = json.loads(out.read_text(encoding="ascii"))
        status, message, fields = answer["status"], answer["message"], answer.get("report")
        report = None
        if fields:
            findings = tuple(Finding(**texts(each)) for each in fields["findings"])
            skipped = tuple(Skipped(**texts(each)) for each in fields["skipped"])
            notes = tuple(Note(**texts(each)) for each in fields["notes"])
            sound, images = tuple(map(str, fields["sound"])), tuple(map(int, fields["images"]))
            report = Report(findings, skipped, sound, notes, images)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    complete = (status == "examined") == (report is not None)
    return (str(status), str(message), report) if complete else None


def end(process: Any) -> None:
    """End a process and what it started, where the system knows which that is."""
    with suppress(OSError):  # there may be no one left
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()  # after Ctrl-C `with` does not
