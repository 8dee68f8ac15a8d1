"""The course's commands: `python -m vit_course start | run | clean | address | …`.

This only reads what is asked for and calls what does it.
"""

import argparse
import sys
from pathlib import Path

from . import address, lab, run, start
from .lessons import LESSONS, NOTEBOOKS, ROOT, chosen

BUILD = ROOT / "build"


def arguments() -> argparse.ArgumentParser:
    """The commands and their options."""
    parser = argparse.ArgumentParser(
        prog="python -m vit_course",
        description="The commands of the course ViT, step by step. Each has a --help of its own.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, help: str, more: str = "") -> argparse.ArgumentParser:
        text = f"{help[0].upper()}{help[1:]}. {more}"
        return commands.add_parser(name, help=help, description=text, allow_abbrev=False)

    one = command(
        "start",
        "lay or refresh the learner's copy, and open JupyterLab on it",
        "What you changed in the copy is left alone. Other options, such as --no-browser, are "
        "JupyterLab's.",
    )
    one.add_argument("--folder", type=Path, default=start.COPY, help="of the copy; else my_course")
    both = one.add_mutually_exclusive_group()
    both.add_argument(
        "--without-solutions", dest="solutions", action="store_false", default=None,
        help="leave out the solutions and the folded answers, now and at later starts",
    )  # fmt: skip
    both.add_argument(
        "--with-solutions", dest="solutions", action="store_true", default=None,
        help="bring them again",
    )  # fmt: skip
    one.add_argument("--no-lab", action="store_true", help="only lay the copy, as on a hub")

    for name, help, all_ in (
        ("run", "run lessons in place, count their minutes, make their solutions", LESSONS),
        ("clean", "take the noise out of notebooks; outputs stay", NOTEBOOKS),
    ):
        one = command(name, help)
        one.add_argument("paths", nargs="*", type=Path, default=all_, help="by default all")

    one = command("address", "point all links and setup cells at a fork, or at a tag")
    one.add_argument("url", help="https://github.com/OWNER/REPOSITORY")
    one.add_argument("--tag", help="the version that a class keeps; by default the branch main")

    one = command("release", "make the students' assignments, by nbgrader")
    one.add_argument(
        "--to", type=Path, default=ROOT / "assignments", help="the folder; else assignments"
    )

    one = command(
        "grade",
        "grade what was handed in, by nbgrader",
        "It runs the students' code: notebooks/TEACHING.md says what that means.",
    )
    one.add_argument("folder", type=Path, help="holds a folder of notebooks for each student")
    one.add_argument("--to", type=Path, help="for grades and feedback; else FOLDER-graded")
    one.add_argument("--seconds", type=float, default=60, help="that a task may take; else 60")
    one.add_argument("--megabytes", type=int, default=2000, help="that a task may take; else 2000")
    one.add_argument("--unsafe", action="store_true", help="grade without a sandbox")

    one = command("slides", "make a talk of each lesson, shown by reveal.js")
    one.add_argument("lessons", nargs="*", help="such as 03; by default all")
    one.add_argument("--to", type=Path, default=BUILD / "slides", help="else build/slides")
    one.add_argument(
        "--packages",
        type=Path,
        help="a folder node_modules with reveal.js@4, requirejs@2, jquery@3 and mathjax@2, which "
        "are copied beside the slides, so that they need no network; else build/node_modules, if "
        "it is there: `npm install --prefix build reveal.js@4 requirejs@2 jquery@3 mathjax@2`",
    )

    one = command("book", "make a site of the lessons, which needs no network, by Sphinx")
    one.add_argument("--to", type=Path, default=BUILD / "book", help="else build/book")
    one.add_argument(
        "--without-solutions",
        action="store_true",
        help="leave out the solutions, the folded answers and the teachers' guide",
    )
    return parser


def done(options: argparse.Namespace, rest: list[str]) -> list[str]:
    """Do what is asked for.

    Returns:
        What to tell.
    """
    match options.command:
        case "start":
            folder = options.folder.absolute()
            told = [*start.lay(folder, options.solutions), *start.standing(folder)]
            if options.no_lab:
                return told
            print("\n".join(told), flush=True)
            sys.exit(lab.open_lab(folder, rest))
        case "run":
            run.run(options.paths)
            return []
        case "clean":
            run.clean(options.paths)
            return []
        case "address":
            address.change(options.url, options.tag)
            return ["Commit and push what changed" + f", tagged {options.tag}" * bool(options.tag)]
        case "release":
            from .teaching import assignments

            return assignments.release(options.to.absolute())
        case "grade":
            if sys.platform == "win32":
                raise RuntimeError("grading needs Linux, as WSL is one, or a container")
            from .teaching import grading

            folder = options.folder.absolute()
            to = (options.to or folder.with_name(f"{folder.name}-graded")).absolute()
            return grading.grade(folder, to, options.seconds, options.megabytes, options.unsafe)
        case "slides":
            from .teaching import slides

            index = slides.make(options.to, options.packages, chosen(options.lessons))
            if (index.parent / "packages").is_dir():
                return [f"Open {index}"]
            more = "`slides --help` says how to do without"
            return [f"Open {index}", f"It fetches reveal.js from the network; {more}."]
        case _:
            from .teaching import book

            return [
                f"Open {book.make(options.to.absolute(), solutions=not options.without_solutions)}"
            ]


def main(argv: list[str] | None = None) -> None:
    """Read the command line, do what it asks for, and say what to say."""
    parser = arguments()
    options, rest = parser.parse_known_args(argv)
    if rest and options.command != "start":
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        if not NOTEBOOKS:
            raise RuntimeError("an installed package has no notebooks: run this in a clone of it")
        told = done(options, rest)
    except (ValueError, RuntimeError, OSError) as error:
        parser.exit(2, f"{error}\n")
    except KeyboardInterrupt:
        go_on = options.command == "grade"
        kept = "; what was judged is kept, and the same command goes on from there"
        parser.exit(130, f"stopped{kept * go_on}\n")
    for line in told:
        print(line)


if __name__ == "__main__":
    main()
