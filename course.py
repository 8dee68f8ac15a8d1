"""The course's own commands: for learners, and for contributors and teachers.

python course.py start                            lay the learner's copy in my_course, and open it

python course.py run notebooks/01_patches.ipynb   execute a lesson in place, and clean it
python course.py run                              the same for all lessons and solutions
python course.py clean                            only clean them: outputs stay, noise goes
python course.py address https://github.com/ME/MY-FORK --tag v1
                                                  point every link and setup cell at a fork, and,
                                                  if a class shall keep its version, at its tag
python course.py release                          make the students' versions of the assignments
python course.py grade FOLDER                     grade FOLDER/STUDENT/03_heads.ipynb and the like
python course.py slides --to build/slides         make a talk of each lesson, for reveal.js
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from base64 import b64decode, b64encode
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent
NOTEBOOKS = sorted(ROOT.glob("notebooks/[0-9]*.ipynb"))
NOTEBOOKS += sorted(ROOT.glob("notebooks/solutions/[0-9]*.ipynb"))
COPY = ROOT / "my_course"
FIRST = "00_start_here.ipynb"
# What differs from run to run or machine to machine, and is never shown.
LANGUAGE = (
    "codemirror_mode",
    "file_extension",
    "mimetype",
    "nbconvert_exporter",
    "pygments_lexer",
    "version",
)
NOISE = (
    "cell.metadata.execution",
    "metadata.widgets",
    *(f"metadata.language_info.{key}" for key in LANGUAGE),
)


def address() -> str:
    """The repository's public address, which stands in pyproject.toml alone."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["project"]["urls"]["Repository"]


def start(folder: Path, lab_options: list[str]) -> None:
    """Lay or refresh the learner's copy, and open JupyterLab on it."""
    for line in lay(folder):
        print(line)
    raise SystemExit(open_lab(folder, lab_options))


def lay(folder: Path) -> list[str]:
    """Bring the lessons, without outputs, and their solutions into the learner's folder.

    A file that the learner changed is left alone; one that is as it was laid is refreshed, or
    taken away if the course has it no more. `laid.json` knows the hash of all that was ever laid:
    it is written before the files, so that a copy that was stopped in the middle goes on rightly.

    Returns:
        What to tell the learner.

    Raises:
        ValueError: it cannot be written.
    """
    from vit_steps.training.files import write_whole

    record = folder / ".jupyter" / "laid.json"
    record.parent.mkdir(parents=True, exist_ok=True)
    laid = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    wanted = {copy_name(path): without_outputs(path) for path in NOTEBOOKS}
    for name, content in wanted.items():
        laid[name] = sorted({*laid.get(name, []), hash_of(content)})
    write_whole(record, json.dumps(laid, indent=1).encode())
    kept = []
    for name in sorted(laid):
        path, content = folder / name, wanted.get(name)
        here = path.read_bytes() if path.exists() else None
        if here is not None and hash_of(here) not in laid[name]:
            kept.append(name)
        elif content is None:
            path.unlink(missing_ok=True)
        elif here is None or hash_of(here) != hash_of(content):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)
    told = [f"{folder.name} holds {len(wanted)} notebooks: the lessons, and solutions in a folder."]
    if kept:
        told.append("As you changed them, these were left alone: " + ", ".join(kept))
        told.append("To see the course's version again, rename yours and start once more.")
    return told


def copy_name(path: Path) -> str:
    """Where a notebook stands in the learner's copy; a solution's tab tells it from its lesson."""
    if path.parent.name == "solutions":
        return f"solutions/{path.stem}_solutions.ipynb"
    return path.name


def without_outputs(path: Path) -> bytes:
    """A notebook as a learner gets it: nothing run yet, links to solutions by their names there."""
    book = json.loads(path.read_text(encoding="utf-8"))
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    text = json.dumps(book, indent=1, ensure_ascii=False) + "\n"
    text = re.sub(r"\(solutions/(\d\d_\w+)\.ipynb\)", r"(solutions/\1_solutions.ipynb)", text)
    return text.encode()


def hash_of(content: bytes) -> str:
    """What tells whether a learner changed a notebook: its cells, not what running leaves behind.

    JupyterLab also writes to a notebook that is only opened.
    """
    try:
        cells = [(c["cell_type"], "".join(c["source"])) for c in json.loads(content)["cells"]]
        content = json.dumps(cells).encode()
    except (ValueError, LookupError, TypeError):
        pass  # no longer a notebook, so the learner's
    return sha256(content).hexdigest()


def open_lab(folder: Path, options: list[str]) -> int:
    """Run JupyterLab on a folder until it is stopped: the first lesson, its contents on the left.

    Its settings stand in the folder: no news, long lines folded, the layout that the learner left.
    The kernel and the terminal's `python` are the one that runs this.
    """
    own = folder / ".jupyter"
    settings = {
        "@jupyterlab/apputils-extension:notification": {
            "fetchNews": "false",
            "checkForUpdates": False,
        },
        # Beside the contents, on a small screen, a long line goes on below; nothing scrolls.
        "@jupyterlab/notebook-extension:tracker": {
            "codeCellConfig": {"lineNumbers": False, "lineWrap": True},
        },
    }
    (own / "settings").mkdir(exist_ok=True)
    write(own / "settings" / "overrides.json", json.dumps(settings))
    lay_workspace(own / "workspaces")
    environment = os.environ | {
        "JUPYTER_PREFER_ENV_PATH": "1",
        "JUPYTERLAB_WORKSPACES_DIR": str(own / "workspaces"),
    }
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}"]
    command += [f"--LabApp.app_settings_dir={own / 'settings'}"]
    command += terminal(own, environment)
    try:
        return subprocess.run([*command, *options], env=environment, cwd=folder).returncode
    except KeyboardInterrupt:
        return 0


def terminal(own: Path, environment: dict[str, str]) -> list[str]:
    """Make `python` in JupyterLab's terminal the one that runs this, whatever the shell sets up.

    Returns:
        The options that JupyterLab needs for it.
    """
    programs = str(Path(sys.executable).parent)
    environment["PATH"] = programs + os.pathsep + environment.get("PATH", "")
    shell = environment.get("SHELL", "sh")
    kind = Path(shell).name
    if os.name == "nt" or kind not in ("bash", "zsh"):
        return []
    # The learner's own settings first; they may put another Python in front.
    settings = f'[ -f ~/.{kind}rc ] && . ~/.{kind}rc\nexport PATH={shlex.quote(programs)}:"$PATH"\n'
    write(own / f".{kind}rc", settings)
    if kind == "zsh":
        environment["ZDOTDIR"] = str(own)
    else:
        shell += f" --rcfile {shlex.quote(str(own / '.bashrc'))}"
    return [f"--ServerApp.terminado_settings=shell_command={shell}"]


def lay_workspace(folder: Path) -> None:
    """How JupyterLab looks at the first start; later it keeps what the learner makes of it."""
    from jupyterlab_server.workspaces_handler import WorkspacesManager

    if folder.exists():
        return
    widget = f"notebook:{FIRST}"
    contents = "@jupyterlab/toc:plugin"
    layout = {
        "main": {
            "dock": {"type": "tab-area", "currentIndex": 0, "widgets": [widget]},
            "current": widget,
        },
        "left": {
            "collapsed": False,
            "visible": True,
            "current": contents,
            "widgets": ["filebrowser", "running-sessions", contents, "extensionmanager.main-view"],
        },
        "relativeSizes": [0.2, 0.8, 0],
    }
    data = {
        "layout-restorer:data": layout,
        widget: {"data": {"path": FIRST, "factory": "Notebook"}},
    }
    folder.mkdir(parents=True)
    WorkspacesManager(str(folder)).save(
        "default", json.dumps({"data": data, "metadata": {"id": "default"}})
    )


def run(paths: list[Path]) -> None:
    """Execute notebooks in place, each in a fresh kernel, and clean them."""
    import nbformat
    from nbclient import NotebookClient

    for path in paths:
        print(path)
        book = nbformat.read(path, as_version=4)
        folder = {"metadata": {"path": str(path.parent)}}
        with TemporaryDirectory() as other:  # no my_vit.py before it, and none left behind
            os.environ["MY_VIT"] = str(Path(other) / "my_vit.py")
            # What a cell prints is stored as one text, however it was buffered; and no times.
            NotebookClient(
                book, timeout=120, resources=folder, coalesce_streams=True, record_timing=False
            ).execute()
        for cell in book.cells:
            for output in cell.get("outputs", []):
                data = output.get("data", {})
                if picture := data.get("image/png"):
                    data["image/png"] = smaller(picture)
                if "text/html" in data:
                    data["text/html"] = still(data["text/html"])
                    if not data["text/html"]:
                        del data["text/html"]
        write(path, nbformat.writes(book) + "\n")
    clean(paths)


def still(html: str) -> str:
    """An HTML output without what is live in it, which comes back when the cell is run."""
    return re.sub(r"<iframe\b.*?</iframe>", "", html, flags=re.DOTALL)


def smaller(picture: str) -> str:
    """A PNG in base64, brought to 256 colours: a third of the bytes, and looks the same."""
    from PIL import Image

    image = Image.open(BytesIO(b64decode(picture))).convert("RGB")
    file = BytesIO()
    palette = image.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    palette.save(file, "PNG", optimize=True)
    return b64encode(file.getvalue()).decode()


def write(path: Path, text: str) -> None:
    """Write a text with the line ends of git, also on Windows."""
    path.write_text(text, encoding="utf-8", newline="\n")


def clean(paths: list[Path]) -> None:
    """Take the noise out of notebooks; outputs and counts stay."""
    strip = [sys.executable, "-m", "nbstripout", "--keep-output", "--keep-count", "--keep-id"]
    subprocess.run([*strip, "--extra-keys", " ".join(NOISE), *paths], check=True)


def change_address(new: str, tag: str | None = None) -> None:
    """Point the README, every link to Colab and every setup cell at a repository, and at one tag.

    All or nothing: the new texts are made and laid beside the old ones first; where one cannot
    take its place, those before it get their old text back.

    Args:
        new: its address, https://github.com/OWNER/REPOSITORY.
        tag: the tag (or branch) that Colab opens, and whose package the setup cell installs; a
            class keeps its version by it. None, the default, is the newest: the branch main.

    Raises:
        ValueError: the address or tag is none that Colab could open, or a notebook has another
            address than pyproject.toml.
        OSError: a file cannot be written.
    """
    pattern = r"https://github\.com/([\w.-]+/[\w.-]+?)(\.git)?/?"
    if not (match := re.fullmatch(pattern, new)):
        raise ValueError(f"{new!r} is not https://github.com/OWNER/REPOSITORY")
    if tag is not None and not re.fullmatch(r"\w+([.-]\w+)*", tag):
        raise ValueError(f"{tag!r} is no plain name of a tag, such as v1 or class-2027")
    old_name, new_name = address().removeprefix("https://github.com/"), match[1]
    old = re.compile(rf"(github(?:\.com)?/){re.escape(old_name)}(?![\w-]|\.\w)")
    install = f"git+https://github.com/{new_name}"
    pin = f"@{tag}" if tag else ""
    link = f"colab.research.google.com/github/{new_name}/blob/"
    texts = {}
    # pyproject.toml last: until all others are done, the old address is still known.
    pages = sorted(ROOT.glob("notebooks/*.md"))
    for path in (*NOTEBOOKS, *pages, ROOT / "README.md", ROOT / "pyproject.toml"):
        before = path.read_text(encoding="utf-8")
        text = old.sub(rf"\g<1>{new_name}", before)
        text = re.sub(rf"{re.escape(install)}(@[\w.-]+)?", install + pin, text)
        text = re.sub(rf"({re.escape(link)})[\w.-]+/", rf"\g<1>{tag or 'main'}/", text)
        if path in NOTEBOOKS and f'{install}{pin}\\"' not in text:
            raise ValueError(f"{path.name} installs neither from {old_name} nor from {new_name}")
        texts[path] = before, text
    with TemporaryDirectory(dir=ROOT) as other:
        for number, (_, text) in enumerate(texts.values()):
            write(Path(other) / str(number), text)
        replaced = []
        try:
            for number, path in enumerate(texts):
                os.replace(Path(other) / str(number), path)
                replaced.append(path)
        except BaseException:  # Ctrl-C too
            for path in replaced:
                write(path, texts[path][0])
            raise


def teach(options: argparse.Namespace) -> None:
    """What teachers have made: assignments, grades, slides."""
    if options.command == "slides":
        from teaching import slides

        slides.make(options.to, options.packages)
        told = [f"Open {options.to / 'index.html'}"]
    elif options.command == "release":
        from teaching.assignments import release

        told = release(options.to.absolute())
    elif os.name == "nt":
        raise RuntimeError("grading needs Linux or macOS; on Windows, WSL is one")
    else:
        from teaching.grading import grade

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
    starter.add_argument("--folder", type=Path, default=COPY, help="by default my_course")
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
    maker = commands.add_parser("release", help="make the students' versions of the assignments")
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
        start(options.folder.absolute(), rest)  # the rest is JupyterLab's, such as --no-browser
    elif rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    elif options.command == "run":
        run(options.paths)
    elif options.command == "clean":
        clean(options.paths)
    elif options.command in ("release", "grade", "slides"):
        try:
            teach(options)
        except (ValueError, RuntimeError, OSError) as error:
            parser.exit(2, f"{error}\n")
    else:
        try:
            change_address(options.url, options.tag)
        except (ValueError, OSError) as error:
            parser.error(f"{error}; nothing was changed")
        print("Commit and push what changed" + f", tagged {options.tag}." * bool(options.tag))


if __name__ == "__main__":
    main()
