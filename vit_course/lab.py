"""JupyterLab, opened on the learner's copy: the first lesson, its contents on the left."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from .lessons import LESSONS, write

FIRST = LESSONS[0].name if LESSONS else ""
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    # Beside the contents, on a small screen, a long line goes on below; nothing scrolls.
    "@jupyterlab/notebook-extension:tracker": {
        "codeCellConfig": {"lineNumbers": False, "lineWrap": True},
    },
}


def open_lab(folder: Path, options: list[str]) -> int:
    """Run JupyterLab on a folder until it is stopped.

    Its settings stand in the folder: no news, long lines folded, the layout that the learner left.
    The kernel and the terminal's `python` are the one that runs this.

    Args:
        options: JupyterLab's own, such as --no-browser.

    Returns:
        Its exit status.
    """
    settings = folder / ".jupyter"
    (settings / "settings").mkdir(parents=True, exist_ok=True)
    write(settings / "settings" / "overrides.json", json.dumps(SETTINGS))
    lay_workspace(settings / "workspaces")
    environment = os.environ | {
        "JUPYTER_PREFER_ENV_PATH": "1",
        "JUPYTERLAB_WORKSPACES_DIR": str(settings / "workspaces"),
    }
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}"]
    command += [f"--LabApp.app_settings_dir={settings / 'settings'}"]
    command += terminal(settings, environment)
    try:
        return subprocess.run([*command, *options], env=environment, cwd=folder).returncode
    except KeyboardInterrupt:
        return 0


def takes(option: str) -> bool:
    """Whether JupyterLab takes an option: it has it, or `--Class.trait=…`; and any other word."""
    from jupyterlab.labapp import LabApp

    name = option.lstrip("-").partition("=")[0]
    known = {*LabApp.flags, *LabApp.aliases, "help-all", "version"}
    return not option.startswith("-") or name in known or "." in name


def terminal(folder: Path, environment: dict[str, str]) -> list[str]:
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
    write(folder / f".{kind}rc", settings)
    if kind == "zsh":
        environment["ZDOTDIR"] = str(folder)
    else:
        shell += f" --rcfile {shlex.quote(str(folder / '.bashrc'))}"
    return [f"--ServerApp.terminado_settings=shell_command={shell}"]


def lay_workspace(folder: Path) -> None:
    """Write how JupyterLab looks at first; later it keeps what the learner makes of it."""
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
    notebook = {"data": {"path": FIRST, "factory": "Notebook"}}
    data = {"layout-restorer:data": layout, widget: notebook}
    workspace = json.dumps({"data": data, "metadata": {"id": "default"}})
    folder.mkdir(parents=True)
    WorkspacesManager(str(folder)).save("default", workspace)
