"""The course's own commands: for learners, and for contributors and teachers.

python -m vit_course start                            lay the learner's copy, and open it

python -m vit_course run notebooks/01_patches.ipynb   execute a lesson in place, and clean it
python -m vit_course run                              the same for all lessons and solutions
python -m vit_course clean                            only clean them: outputs stay, noise goes
python -m vit_course address https://github.com/ME/MY-FORK --tag v1
                                                  point every link and setup cell at a fork, and,
                                                  if a class shall keep its version, at its tag
python -m vit_course release                          make the students' assignments
python -m vit_course grade FOLDER                     grade FOLDER/STUDENT/03_heads.ipynb …
python -m vit_course slides --to build/slides         make a talk of each lesson, for reveal.js
"""

import argparse
import os
from pathlib import Path

from . import fork, run, start
from .lessons import NOTEBOOKS, ROOT


def teach(options: argparse.Namespace) -> None:
    """What teachers have made: assignments, grades, slides."""
    if options.command == "slides":
        from .teaching import slides

        slides.make(options.to, options.packages)
        told = [f"Open {options.to / 'index.html'}"]
    elif options.command == "release":
        from .teaching.assignments import release

        told = release(options.to.absolute())
    elif os.name == "nt":
        raise RuntimeError("grading needs Linux or macOS; on Windows, WSL is one")
    else:
        from .teaching.grading import grade

        folder = options.folder.absolute()
        to = (options.to or folder.with_name(f"{folder.name}-graded")).absolute()
        told = grade(folder, to, options.seconds, options.megabytes)
    print("\n".join(told))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    starter = commands.add_parser("start", help="lay the learner's copy, and open JupyterLab on it")
    starter.add_argument("--folder", type=Path, default=start.COPY, help="by default my_course")
    for name, help in (
        ("run", "execute lessons in place, and clean them"),
        ("clean", "only clean"),
    ):
        command = commands.add_parser(name, help=help)
        command.add_argument(
            "paths", nargs="*", type=Path, default=NOTEBOOKS, help="by default all"
        )
    pointer = commands.add_parser("address", help="point badges and setup cells at a fork")
    pointer.add_argument("url", help="https://github.com/OWNER/REPOSITORY")
    pointer.add_argument("--tag", help="the tag that a class keeps; by default the branch main")
    maker = commands.add_parser("release", help="make the students' assignments")
    maker.add_argument("--to", type=Path, default=ROOT / "assignments", help="a folder")
    grader = commands.add_parser("grade", help="grade what was handed in")
    grader.add_argument("folder", type=Path, help="holds a folder of notebooks for each student")
    grader.add_argument("--to", type=Path, help="for grades and feedback; else FOLDER-graded")
    grader.add_argument("--seconds", type=float, default=60, help="that a task may take")
    grader.add_argument("--megabytes", type=int, default=2000, help="that a task may take")
    talks = commands.add_parser("slides", help="make a talk of each lesson, for reveal.js")
    talks.add_argument("--to", type=Path, default=ROOT / "build" / "slides", help="the folder")
    talks.add_argument(
        "--packages",
        type=Path,
        help="a folder node_modules with reveal.js@4, requirejs@2, jquery@3 and mathjax@2, to be "
        "copied beside the slides, which then need no network; by default build/node_modules, made "
        "by `npm install --prefix build reveal.js@4 requirejs@2 jquery@3 mathjax@2`",
    )
    options, rest = parser.parse_known_args()
    if options.command == "start":
        start.start(
            options.folder.absolute(), rest
        )  # the rest is JupyterLab's, such as --no-browser
    elif rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    elif options.command == "run":
        run.run(options.paths)
    elif options.command == "clean":
        run.clean(options.paths)
    elif options.command in ("release", "grade", "slides"):
        try:
            teach(options)
        except (ValueError, RuntimeError, OSError) as error:
            parser.exit(2, f"{error}\n")
    else:
        try:
            fork.change_address(options.url, options.tag)
        except (ValueError, OSError) as error:
            parser.error(f"{error}; nothing was changed")
        print("Commit and push what changed" + f", tagged {options.tag}." * bool(options.tag))


if __name__ == "__main__":
    main()
