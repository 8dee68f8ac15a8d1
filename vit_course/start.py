"""The learner's copy: laid without losing anything of the learner's, and opened in JupyterLab."""

import json
import os
import re
import shlex
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from .lessons import LESSONS, NOTEBOOKS, ROOT, write

COPY = ROOT / "my_course"
FIRST = LESSONS[0].name if LESSONS else ""


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
    from vit_steps.files import write_whole

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
