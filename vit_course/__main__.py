"""The course's commands: `python -m vit_course start | run | clean | address | …`.

This only reads what is asked for and calls what does it.
"""

import argparse
import re
import sys
from pathlib import Path

from . import address, lab, run, start
from .lessons import LESSONS, NOTEBOOKS, ROOT, chosen

BUILD = ROOT / "build"


def sections(text: str) -> list[str]:
    """Read "1-3,4b,exercises" as 1, 2, 3, 4b and exercises.

    Raises:
        ArgumentTypeError: it is written in another way.
    """
    found = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?|(\d+[a-z]|exercises)", part.strip())
        if not match:
            raise argparse.ArgumentTypeError(f"{text!r} is not such as 1-4,6 or 3,exercises")
        first, last, word = match.groups()
        numbers = range(int(first), int(last or first) + 1) if first else ()
        found += [word] if word else map(str, numbers)
    return found


def arguments() -> argparse.ArgumentParser:
    """Describe the commands and their options."""
    parser = argparse.ArgumentParser(
        prog="python -m vit_course",
        description="The commands of the course ViT, step by step. Each has a --help of its own.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, help: str, more: str = "") -> argparse.ArgumentParser:
        description = f"{help[0].upper()}{help[1:]}. {more}"
        return commands.add_parser(name, help=help, description=description, allow_abbrev=False)

    parsed = command(
        "start",
        "lay or refresh the learner's copy, and open JupyterLab on it",
        "What you changed in the copy is left alone. Without --no-lab, JupyterLab's own options, "
        "such as --no-browser, may follow.",
    )
    add = parsed.add_argument
    add("--folder", type=Path, default=start.COPY, help="of the copy; else my_course")
    either = parsed.add_mutually_exclusive_group()
    for option, value, help in (
        ("--without-solutions", False, "leave out solutions and folded answers, now and later"),
        ("--with-solutions", True, "bring them again"),
    ):
        either.add_argument(option, dest="solutions", action="store_const", const=value, help=help)
    add("--no-lab", action="store_true", help="only lay the copy, as on a hub")

    for name, help, every_path in (
        ("run", "run lessons in place, count their minutes, make their solutions", LESSONS),
        ("clean", "take the noise out of notebooks; outputs stay", NOTEBOOKS),
    ):
        add = command(name, help).add_argument
        add("paths", nargs="*", type=Path, default=every_path, help="by default all")

    add = command("address", "point all links and setup cells at a fork, or at a tag").add_argument
    add("url", help="https://github.com/OWNER/REPOSITORY")
    add("--tag", help="the version that a class keeps; by default the branch main")

    add = command("release", "make the students' assignments, by nbgrader").add_argument
    add("lessons", nargs="*", help="such as 03; by default all")
    some = "such as 1-4,6 or 3,exercises; by default all"
    add("--sections", type=sections, default=(), help=some)
    add("--to", type=Path, default=ROOT / "assignments", help="the folder; else assignments")

    warning = "It runs the students' code: notebooks/TEACHING.md says what that means."
    add = command("grade", "grade what was handed in, by nbgrader", warning).add_argument
    add("folder", type=Path, help="holds a folder of notebooks for each student")
    add("--to", type=Path, help="for grades and feedback; else FOLDER-graded")
    add("--seconds", type=float, default=60, help="that a task may take; else 60")
    add("--megabytes", type=int, default=2000, help="that a task may take; else 2000")
    add("--unsafe", action="store_true", help="grade without a sandbox")
    add("--roster", type=Path, help="a CSV of student_id,name, for the names in grades.csv")
    got = "what `release` wrote for this class; else assignments"
    add("--released", type=Path, default=ROOT / "assignments", help=got)

    add = command("slides", "make a talk of each lesson, shown by reveal.js").add_argument
    add("lessons", nargs="*", help="such as 03; by default all")
    add("--sections", type=sections, default=(), help=some)
    add("--to", type=Path, default=BUILD / "slides", help="else build/slides")

    add = command("book", "make a site of the lessons, to read offline, by Sphinx").add_argument
    add("--to", type=Path, default=BUILD / "book", help="else build/book")
    missing = "leave out the solutions, the folded answers and the teachers' guide"
    add("--without-solutions", action="store_true", help=missing)
    return parser


def carry_out(options: argparse.Namespace, lab_options: list[str]) -> list[str]:
    """Do what is asked for.

    Args:
        options: the command, and its options.
        lab_options: those that `start` hands on to JupyterLab.

    Returns:
        The lines to print.
    """
    match options.command:
        case "start":
            folder = options.folder.absolute()
            lines = [*start.lay(folder, options.solutions), *start.standing(folder)]
            if options.no_lab:
                return lines
            print("\n".join(lines), flush=True)
            sys.exit(lab.open_lab(folder, lab_options))
        case "run":
            run.run(options.paths)
        case "clean":
            run.clean(options.paths)
        case "address":
            address.change(options.url, options.tag)
            tagged = f", tagged {options.tag}" if options.tag else ""
            pages = f"{options.url.removesuffix('.git').rstrip('/')}/settings/pages"
            return [
                f"Commit and push what changed{tagged}",
                f"For a site of the lessons, choose GitHub Actions as the source in {pages}",
            ]
        case "release":
            from .teaching import assignments

            stems = [path.stem for path in chosen(options.lessons)]
            made = assignments.of(stems, options.sections)
            return assignments.release(options.to.absolute(), made)
        case "grade":
            if sys.platform == "win32":
                raise RuntimeError("grading needs Linux, as WSL is one, or a container")
            from .teaching import grading

            folder = options.folder.absolute()
            to = (options.to or folder.with_name(f"{folder.name}-graded")).absolute()
            limits = options.seconds, options.megabytes
            given = options.unsafe, options.roster, options.released
            return grading.grade(folder, to, *limits, *given)
        case "slides":
            from .teaching import slides

            index = slides.make(options.to, chosen(options.lessons), options.sections)
            return [f"Open {index}"]
        case "book":
            from .teaching import book

            site = book.make(options.to.absolute(), solutions=not options.without_solutions)
            return [f"Open {site}"]
    return []


def unknown_option(options: argparse.Namespace, others: list[str]) -> str:
    """Give the first option that nothing takes, or "": `start` hands JupyterLab's own on to it."""
    if options.command != "start" or options.no_lab:
        return others[0] if others else ""
    return next((option for option in others if not lab.takes(option)), "")


def main(argv: list[str] | None = None) -> None:
    """Read the command line, do what it asks for, and print what to tell."""
    parser = arguments()
    options, others = parser.parse_known_args(argv)
    if unknown := unknown_option(options, others):
        command = "start --no-lab" if getattr(options, "no_lab", False) else options.command
        hint = f"`python -m vit_course {options.command} --help` lists them"
        parser.exit(2, f"{command} has no option {unknown}: {hint}\n")
    try:
        if not NOTEBOOKS:
            raise RuntimeError("an installed package has no notebooks: run this in a clone of it")
        lines = carry_out(options, others)
    except (ValueError, RuntimeError, OSError) as error:
        parser.exit(2, f"{error}\n")
    except KeyboardInterrupt:
        resume = "; what was judged is kept, and the same command goes on from there"
        parser.exit(130, f"stopped{resume if options.command == 'grade' else ''}\n")
    for line in lines:
        print(line)


if __name__ == "__main__":
    main()
