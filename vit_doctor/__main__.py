"""The command line of `python -m vit_doctor`; no module imports it."""

import argparse
import dataclasses
import re
import signal
import sys
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path

from .command.arguments import Task
from .command.each_file import Result, files_in, run
from .command.page import write

LIMIT, MEMORY = 60.0, 4000  # for each file of a folder; a B/16 takes 10 s and 2700 MB


def parser() -> argparse.ArgumentParser:
    """The options of `python -m vit_doctor`."""
    made = argparse.ArgumentParser(
        prog="python -m vit_doctor",
        usage="%(prog)s FILE.py[:NAME] [options]\n       %(prog)s FOLDER[:NAME] --out RESULTS "
        "[options]",
        description="Examine a ViT written in PyTorch, or a folder of them, for known mistakes. "
        "It runs the files that you name: they are code, and can do all that you may do.",
        epilog="""\
examples:
  %(prog)s my_vit.py:ViT --set depth=2
      your own model; what its arguments are called and hold is guessed, as in a ViT-B/16
  %(prog)s homework:ViT --image-size 32 --out results
      a class: each *.py of the folder, and of its sub-folders, in a process of its own;
      results/report.csv and results/report.html tell what was found
  %(prog)s runs/digits/best.safetensors
      weights that `python -m vit_steps.training` wrote, or published ones

Files of a folder are kept apart by processes and limits, which is no prison: code that
means harm, or a better report than it deserves, can have it. What you do not trust
belongs in a container, or on a machine, of its own.

NAME is a class, a function that makes a model, or a model; without it the class
called ViT, else the only nn.Module of the file.

The exit code is 0 without findings, 1 with findings, 2 if a file could not be examined.
""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    def add(name: str, kind: Callable, metavar: str, help: str) -> None:
        made.add_argument(name, type=kind, metavar=metavar, help=help)

    each = "(default for each file of a folder: "
    made.add_argument("target", help=argparse.SUPPRESS)
    add("--image-size", size, "N", "of the images, in pixels: 224, or height by width, 224x112 "
        "(default: the class's own, else 224)")  # fmt: skip
    add("--in-channels", above_zero, "N", "of the images (default: the class's own, else 3)")
    made.add_argument("--set", action="append", default=[], type=pair, metavar="NAME=VALUE",
        help="an argument of the class, or of its config; as often as you like")  # fmt: skip
    add("--limit", seconds, "SECONDS", f"end a file that takes longer {each}{LIMIT:g})")
    add("--memory", above_zero, "MB", "end a file that wants more on top of PyTorch's own; on "
        f"Linux alone {each}{MEMORY})")  # fmt: skip
    add("--out", Path, "RESULTS", "folder for the results of a folder")
    return made


def size(text: str) -> tuple[int, int]:
    """(height, width) of 224 or 224x112."""
    found = re.fullmatch(r"([1-9]\d*)(?:[x×]([1-9]\d*))?", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; give 224, or 224x112")
    return int(found[1]), int(found[2] or found[1])


def above_zero(text: str) -> int:
    """A whole number, 1 or more."""
    if not re.fullmatch(r"[1-9]\d*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def seconds(text: str) -> float:
    """A number above 0."""
    if not re.fullmatch(r"\d+(\.\d+)?", text) or not float(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return float(text)


def pair(text: str) -> tuple[str, str]:
    """Name and value of name=value."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as depth=2")
    return name, value


def place(target: str) -> tuple[Path, str]:
    """Path and name of PATH:NAME; a colon may stand in the path too, as in C:\\homework."""
    path, colon, name = target.rpartition(":")
    if not colon or Path(target).exists() or not name.isidentifier():
        return Path(target), ""
    return Path(path), name


def main(argv: list[str] | None = None) -> int:
    """Examine what the command line names, say what was found, and give the exit code."""
    made = parser()
    options = made.parse_args(argv)
    for stream in (sys.stdout, sys.stderr):  # a name that the terminal cannot print
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    path, name = place(options.target)
    task = Task(name, options.image_size, options.in_channels, dict(options.set),
                options.limit, options.memory)  # fmt: skip
    if not path.exists():
        made.error(f"there is no {path}")
    if path.is_dir() != (options.out is not None):
        made.error("a folder needs --out RESULTS" if path.is_dir() else "--out is for a folder")
    try:
        return folder(path, task, options.out) if path.is_dir() else single(path, task)
    except (OSError, RuntimeError, ValueError) as error:
        print(f"vit_doctor: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        kept = f"; what is done stands in {options.out}" if options.out else ""
        print(f"vit_doctor: stopped{kept}", file=sys.stderr)
        return 130


def single(path: Path, task: Task) -> int:
    """Examine one file, and print its report."""
    if path.suffix == ".safetensors":
        return weights(path)
    result = run(path, task, path.name)
    if result.report is None:
        said = f"{path.name}: {result.status}"
        print(f"{said}: {result.message}" if result.message else said, file=sys.stderr)
    else:
        print(result.report)
        if result.message:
            print(f"besides: {result.message}")
    return code([result])


def weights(path: Path) -> int:
    """Examine the ViT of a file of weights, and print its report."""
    from vit_steps.pretrained import load  # alone here: the doctor needs nothing of the course

    from . import examine

    config = (model := load(path).model).config
    report = examine(model, config.image_size, config.in_channels)
    print(report)
    return int(bool(report.names))


def folder(path: Path, task: Task, out: Path) -> int:
    """Examine each file of a folder, and write the results after each."""
    from tqdm import tqdm

    files = files_in(path)
    if not files:
        raise ValueError(f"{path} holds no *.py, nor do its sub-folders")
    task = dataclasses.replace(task, limit=task.limit or LIMIT, memory=task.memory or MEMORY)
    title = f"The doctor on {path.resolve().name}"
    results: list[Result] = []
    write(out, results, title, len(files))
    for file in tqdm(files, unit="file", disable=None):
        results.append(run(file, task, file.relative_to(path).as_posix(), quiet=True))
        write(out, results, title, len(files))
    for each in results:
        print(f"{each.file}: {line(each)}")
    print(f"results: {out / 'report.csv'}, {out / 'report.html'}")
    return code(results)


def line(result: Result) -> str:
    """What a result says, in one line."""
    if result.report is None:
        return f"{result.status}: {result.message}" if result.message else result.status
    names = result.report.names
    return f"{result.report.summary()}{': ' * bool(names)}{', '.join(names)}"


def code(results: list[Result]) -> int:
    """The exit code: 2 if a file could not be examined, 1 if one has findings, else 0."""
    if any(each.report is None for each in results):
        return 2
    return int(any(each.report.names for each in results if each.report))


if __name__ == "__main__":
    # Also when the terminal is closed: the process of a file must not outlive this one.
    for stop in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, stop):
            signal.signal(getattr(signal, stop), signal.default_int_handler)
    sys.exit(main())
