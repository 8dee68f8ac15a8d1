"""JupyterLab in a real browser: the course as a learner starts it, and what stands on the screen.

What is done with a page has a limit outside it, because a page that hangs answers nothing.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

from helpers import needs

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
FLAGS += ["--enable-blink-features=ComputedAccessibilityInfo"]  # for an element's `computedName`
WIDE, NARROW = 1440, 1024  # widths of the window, in pixels


def chromium() -> str | None:
    """The path of an installed Chromium, or Chrome."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


def needed(*modules: str) -> None:
    """Skip a test where Chromium, Playwright or these modules are missing."""
    needs("playwright", *modules, program="" if chromium() and os.name != "nt" else "Chromium")


@contextmanager
def launched(limit: int = 30_000):
    """A Chromium without a window, for pages from the disk; `expect` waits so many milliseconds."""
    needed()
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=limit)
    options = {"executable_path": chromium(), "args": FLAGS}
    with sync_playwright() as playwright, playwright.chromium.launch(**options) as chrome:
        yield chrome


@contextmanager
def bounded(chrome, limit: float):
    """End Chromium after so many seconds."""
    session = chrome.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    (number,) = [process["id"] for process in processes if process["type"] == "browser"]
    end = threading.Timer(limit, os.kill, (number, signal.SIGKILL))
    end.start()
    try:
        yield
    finally:
        end.cancel()


def listen(page, *known: str, kinds=("error",)) -> list[str]:
    """Collect what a page complains of, its dialogs, and addresses that do not begin so."""
    problems = []

    def on_console(message):
        if message.type in kinds:
            problems.append(message.text)

    def on_request(request):
        if not request.url.startswith(known):
            problems.append(request.url)

    def on_dialog(dialog):
        problems.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    page.on("console", on_console)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", on_dialog)
    page.on("request", on_request)
    return problems


def answers(address: str) -> bool:
    """Whether a server is there."""
    with suppress(OSError), urlopen(address, timeout=5):
        return True
    return False


@contextmanager
def started(home: Path):
    """Start the course by the README's command, with settings of its own, and stop it at the end.

    Args:
        home: an empty folder; the learner's copy is laid in its my_course.

    Yields:
        The address of JupyterLab.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folders = {f"JUPYTER_{name}_DIR": str(home / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    environment = os.environ | folders | {"JUPYTERLAB_SETTINGS_DIR": str(home / "lab")}
    environment.pop("MY_VIT", None)  # a learner has none
    # Lab would otherwise draw only the cells in sight.
    settings = home / "lab" / "@jupyterlab" / "notebook-extension" / "tracker.jupyterlab-settings"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"windowingMode": "none"}))
    command = [sys.executable, "-m", "vit_course", "start", "--folder", home / "my_course"]
    command += ["--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", "--IdentityProvider.token=t"]
    command += ["--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly"]
    options = dict(env=environment, stderr=subprocess.STDOUT, start_new_session=True)
    with (home / "lab.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, **options)
    address = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + 120
        while not answers(f"{address}/api/status?token=t"):
            if server.poll() is not None or time.monotonic() > end:
                raise RuntimeError((home / "lab.log").read_text())
            time.sleep(0.2)
        yield f"{address}/lab?token=t"
    finally:
        with suppress(ProcessLookupError):  # it may have ended by itself
            os.killpg(server.pid, 15)
        server.wait(30)


class Lab:
    """A window of JupyterLab, which runs at an address; `pictures` is the folder for screenshots.

    `heard` holds what the browser complains of, and its dialogs, since a notebook was last opened.
    """

    def __init__(self, chrome, address: str, pictures: Path):
        self.pictures = pictures
        self.page = chrome.new_page(viewport={"width": WIDE, "height": 900})
        self.heard = listen(self.page, "")
        self.ask = self.page.evaluate  # what a function in JavaScript returns
        self.page.add_init_script(path=Path(__file__).parent / "lab.js")
        self.page.goto(address, wait_until="commit")
        self.until("window.jupyterapp", limit=120)
        self.ask("() => jupyterapp.restored.then(() => null)")

    def until(self, condition: str, argument=None, limit: float = 60):
        """Wait until a function in JavaScript returns something true."""
        self.page.wait_for_function(condition, arg=argument, timeout=limit * 1000)

    def open(self, path: str):
        """Open a notebook, and wait for its kernel."""
        self.heard.clear()
        self.ask("lab.open", path)

    def close(self):
        """Save the notebook, stop its kernel, close its tab."""
        self.ask("lab.close")

    def run_all(self) -> bool:
        """Run all cells, as from the menu. False where one fails."""
        return self.ask("() => jupyterapp.commands.execute('notebook:run-all-cells')")

    def resize(self, width: int, height: int = 900):
        self.page.set_viewport_size({"width": width, "height": height})
        self.until("lab.isSized", [width, height])

    def problems(self) -> list[str]:
        """What a reader would object to for more than a moment of drawing, and what was heard."""
        end = time.monotonic() + 5
        while (found := self.ask("lab.problems")) and time.monotonic() < end:
            self.page.wait_for_timeout(200)
        return found + self.heard

    def output(self, cell: int) -> str:
        """What stands below a code cell, as text."""
        return self.ask("lab.output", cell).strip()

    def node(self, cell: int):
        """A cell's element on the page."""
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell").nth(cell)

    def into(self, cell: int):
        """Click into a code cell's text."""
        self.node(cell).locator(".cm-content").click()

    def type_over(self, cell: int, old: str, new: str):
        """Type another line, key by key, over the one that begins with `old`; its indent stays."""
        lines = self.ask("lab.source", cell).splitlines()
        (row,) = [i for i, line in enumerate(lines) if line.strip().startswith(old)]
        self.into(cell)
        for key in ("ControlOrMeta+Home", *["ArrowDown"] * row, "End", "Shift+Home"):
            self.page.keyboard.press(key)
        self.page.keyboard.type(new)

    def paste(self, cell: int, source: str):
        """Put a text in the place of all that stands in a cell."""
        self.into(cell)
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.insert_text(source)

    def begin(self, cell: int) -> int | None:
        """Press Ctrl+Enter in a cell, wait until it has begun; the number beside it before."""
        self.until("lab.isIdle", cell)  # an interrupted run has ended
        before = self.ask("lab.count", cell)
        self.into(cell)
        self.page.keyboard.press("Control+Enter")
        self.until("lab.hasBegun", [cell, before])
        return before

    def run(self, cell: int):
        """Run a cell by Ctrl+Enter, and wait until it is done."""
        self.until("lab.hasRun", [cell, self.begin(cell)], limit=120)

    def until_output(self, cell: int, text: str):
        """Wait until a text stands below a code cell."""
        self.until("([i, text]) => lab.output(i).includes(text)", [cell, text], limit=120)

    def click(self, command: str):
        """Click a button of the notebook's toolbar."""
        button = f".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Toolbar [data-command='{command}']"
        self.page.locator(button).first.click()

    def confirm(self):
        """Say yes to JupyterLab's question, and wait until the kernel is there again."""
        self.page.locator(".jp-Dialog .jp-mod-accept").click()
        self.until("lab.isAnswered", limit=120)

    def find(self, text: str) -> int:
        """The one code cell that holds a text."""
        (cell,) = self.ask("lab.holding", text)
        return cell

    def unfold(self, cell: int, summary: str) -> str:
        """Click on what is folded in a text cell, and read the code in it."""
        folded = self.node(cell).locator("details", has_text=summary)
        folded.locator("summary").click()
        code = folded.locator("pre")
        code.wait_for()
        return code.inner_text().strip()

    def choose(self, cell: int, option: int) -> str:
        """Click on an option, counted from 0, of what a cell asks; what it then says."""
        folded = self.node(cell).locator("details").nth(option)
        folded.locator("summary").click()
        return folded.locator("p").inner_text()

    def picture(self, name: str):
        """Take a screenshot of the window."""
        self.page.screenshot(path=self.pictures / f"{name}.png")

    def whole_picture(self, name: str):
        """Take a screenshot of the whole notebook, from its first cell to its last."""
        script = "() => jupyterapp.shell.currentWidget.content.outerNode.scrollHeight"
        self.resize(WIDE, min(self.ask(script) + 200, 16_000))  # more is no picture
        self.ask("() => { jupyterapp.shell.currentWidget.content.outerNode.scrollTop = 0; }")
        self.picture(name)
        self.resize(WIDE)
