"""The command line of `python -m vit_doctor`; no module imports it."""

import argparse
import dataclasses
import re
import signal
import sys
from io import TextIOWrapper
from pathlib import Path

from . import examine
from .command.arguments import Task
from .command.each_file import Result, files_in, run
from .command.page import write

LIMIT, MEMORY = 60.0, 4000  # for each file of a folder; a B/16 takes 10 s and 2700 MB


def parser() -> argparse.ArgumentParser:
    """Give the options of `python -m vit_doctor`."""
    options = argparse.ArgumentParser(
        prog="python -m vit_doctor",
        usage="%(prog)s FILE[:NAME] [options]\n       %(prog)s FOLDER[:NAME] --out RESULTS "
        "[options]",
        description="Examine a ViT written in PyTorch, or a folder of them, for known mistakes. "
        "It runs the files that you name: they are code, and can do all that you may do.",
        epilog="""\
examples:
  %(prog)s my_vit.py:ViT --set depth=2
      your own model, or that of a notebook, vit.ipynb:ViT; arguments without a default
      are guessed as in a ViT-B/16; --set model.dim=64 reaches into a config
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
    add = options.add_argument
    each = "(default for each file of a folder: "
    # fmt: off
    add("target", help=argparse.SUPPRESS)
    add("--image-size", type=size, metavar="N", help="of the images, in pixels: 224, or height by "
        "width, 224x112 (default: the class's own, else 224)")
    add("--in-channels", type=whole, metavar="N", help="of the images (default: the class's "
        "own, else 3)")
    add("--set", action="append", default=[], type=pair, metavar="NAME=VALUE",
        help="an argument of the class, or a part of its config, model.dim=64; as often as you "
        "like")
    add("--limit", type=number, metavar="SECONDS", help="end a file that takes longer "
        f"{each}{LIMIT:g})")
    add("--memory", type=whole, metavar="MB", help="end a file that wants more on top of "
        f"PyTorch's own; on Linux alone {each}{MEMORY})")
    add("--out", type=Path, metavar="RESULTS", help="folder for the results of a folder")
    # fmt: on
    return options


def size(text: str) -> tuple[int, int]:
    """Give (height, width) of 224 or 224x112."""
    sides = re.fullmatch(r"([1-9]\d*)(?:[x×]([1-9]\d*))?", text)
    if not sides:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; give 224, or 224x112")
    return int(sides[1]), int(sides[2] or sides[1])


def number(text: str, form: str = r"\d+(\.\d+)?", kind: str = "number") -> float:
    """Give a number above 0."""
    if not re.fullmatch(form, text) or not float(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a {kind} above 0")
    return float(text)


def whole(text: str) -> int:
    """Give a whole number above 0."""
    return int(number(text, r"\d+", "whole number"))


def pair(text: str) -> tuple[str, str]:
    """Give name and value of name=value."""
    name, equals, value = text.partition("=")
    if not equals or not all(part.isidentifier() for part in name.split(".")):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as depth=2")
    return name, value


def path_and_name(target: str) -> tuple[Path, str]:
    r"""Take PATH:NAME apart; a colon may stand in the path too, as in C:\homework."""
    path, colon, name = target.rpartition(":")
    if not colon or Path(target).exists() or not name.isidentifier():
        return Path(target), ""
    return Path(path), name


def main(argv: list[str] | None = None) -> int:
    """Examine what the command line names, say what was found, and give the exit code."""
    options = parser().parse_args(argv)
    for stream in (sys.stdout, sys.stderr):  # a name that the terminal cannot print
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    path, name = path_and_name(options.target)
    task = Task(name, options.image_size, options.in_channels, dict(options.set),
                options.limit, options.memory)  # fmt: skip
    if not path.exists():
        parser().error(f"there is no {path}")
    if path.is_dir() != (options.out is not None):
        parser().error("a folder needs --out RESULTS" if path.is_dir() else "--out is for a folder")
    try:
        if path.is_dir():
            return examine_folder(path, task, options.out)
        return examine_weights(path) if path.suffix == ".safetensors" else examine_file(path, task)
    except (OSError, RuntimeError, ValueError) as error:
        print(f"vit_doctor: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        where = f"; what is done stands in {options.out}" if options.out else ""
        print(f"vit_doctor: stopped{where}", file=sys.stderr)
        return 130


def examine_file(path: Path, task: Task) -> int:
    """Examine one file, and print its report."""
    result = run(path, task, path.name)
    if result.report is None:
        print(f"{path.name}: {line(result)}", file=sys.stderr)
    else:
        print(result.report)
        if result.message:
            print(f"besides: {result.message}")
    return exit_code([result])


def examine_weights(path: Path) -> int:
    """Examine the ViT of a file of weights, and print its report."""
    from vit_steps.pretrained import load  # alone here: the doctor needs nothing of the course

    model = load(path).model
    report = examine(model, model.config.image_size, model.config.in_channels)
    print(report)
    return 1 if report.names else 0


def examine_folder(path: Path, task: Task, out: Path) -> int:
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
    for result in results:
        print(f"{result.file}: {line(result)}")
    print(f"results: {out / 'report.csv'}, {out / 'report.html'}")
    return exit_code(results)


def line(result: Result) -> str:
    """Say in one line what a result says."""
    if result.report is None:
        return f"{result.status}: {result.message}" if result.message else result.status
    summary, names = result.report.summary(), ", ".join(result.report.names)
    return f"{summary}: {names}" if names else summary


def exit_code(results: list[Result]) -> int:
    """Give 2 if a file could not be examined, 1 if one has findings, else 0."""
    reports = [result.report for result in results]
    return 2 if None in reports else int(any(report.names for report in reports if report))


if __name__ == "__main__":
    # Also when the terminal is closed: the process of a file must not outlive this one.
    for stop in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, stop):
            signal.signal(getattr(signal, stop), signal.default_int_handler)
    sys.exit(main())
