"""The live page in a window of Chromium: what its tests do there, and ask of it."""

import os
import re
from base64 import b64encode
from contextlib import closing, contextmanager
from hashlib import sha256
from html import unescape
from pathlib import Path

import pytest
import torch
from browser import bounded, listen

from vit_course import explorer

LIMIT = 30_000  # milliseconds
ASKED = Path(__file__).parent / "explorer" / "asked.js"  # what is asked of the page, as functions


@contextmanager
def window(chrome, path, wide=1440, limit=240, known=(), but="\0", **options):
    """A page of its own. At the end it must have said nothing, and have asked for nothing else.

    Args:
        path: the file.
        wide: the window's width, in pixels.
        limit: so many seconds, then Chromium is ended: a page that hangs answers nothing.
        known: how addresses begin that it may ask for besides.
        but: how that begins which it may say all the same.
    """
    context = chrome.new_context(viewport={"width": wide, "height": 900}, **options)
    context.set_default_timeout(LIMIT)
    context.add_init_script(path=ASKED)
    page = context.new_page()
    addresses = (path.as_uri(), "about:srcdoc", "blob:")  # the page, its frame, its Worker
    problems = listen(page, *addresses, *known, kinds=("error", "warning"))
    with bounded(chrome, limit), closing(context):
        page.goto(path.as_uri())
        yield Live(page)
        assert [text for text in problems if not text.startswith(but)] == []


class Live:
    """The page in its window; what is not asked here, Playwright's page is asked."""

    def __init__(self, page):
        self.page = page

    def __getattr__(self, name):
        return getattr(self.page, name)

    def ask(self, script, argument=None):
        """Give what a function in JavaScript returns after the next frame, which the page draws."""
        drawn = "await new Promise(requestAnimationFrame)"
        return self.evaluate(f"async x => {{ {drawn}; return ({script})(x); }}", argument)

    def settled(self, quick=True):
        self.wait_for_function("asked.settled", arg=False)
        if quick and self.state("run.milliseconds * vitState.patches") > 1000:  # a slow computer's
            self.ask("() => vitState.findMatters()")
        self.wait_for_function("asked.settled", arg=quick)
        self.ask("() => new Promise(requestAnimationFrame)")

    def state(self, script):
        """Read what stands in the page's state; see state.js."""
        return self.ask(f"() => vitState.state.{script}")

    def pixels(self):
        """Read the picture as the model sees it (1, C, H, W)."""
        numbers, c = self.ask("() => [Array.from(vitState.pixels()), vitState.config]")
        return torch.tensor(numbers).view(1, c["in_channels"], c["height"], c["width"])

    def canvas(self):
        return self.get_by_role("application", name=re.compile("^The picture,"))

    def at(self, row, column, size=(16, 16)):
        """Find a pixel's middle in the window."""
        box = self.canvas().bounding_box()
        x = box["x"] + (column + 0.5) / size[1] * box["width"]
        return x, box["y"] + (row + 0.5) / size[0] * box["height"]

    def drag(self, *places):
        self.mouse.move(*self.at(*places[0]))
        self.mouse.down()
        for place in places[1:]:
            self.mouse.move(*self.at(*place))
        self.mouse.up()
        self.ask("() => 0")  # drawn

    def use(self, tool):
        self.get_by_role("group", name="With the pointer").get_by_label(tool, exact=True).check()

    def press(self, button):
        self.get_by_role("button", name=button, exact=True).click()

    def tab(self, target, key="Tab"):
        """Press Tab, or Shift+Tab, until something has the focus."""
        for _ in range(100):
            if target.evaluate("one => one === document.activeElement"):
                return
            self.keyboard.press(key)
        pytest.fail(f"{key} does not reach {target}")

    def caption(self):
        return self.locator("#input .row .small").text_content()

    def bars(self):
        """The classes' lines: of each, name and number."""
        return [
            line.locator("span").evaluate_all("all => [all[0], all[2]].map(one => one.textContent)")
            for line in self.locator(".bars li").all()
        ]

    def hint(self):
        return self.locator("#told").text_content()


def picture(page, name, **options):
    """Take a screenshot, where they are wanted."""
    if out := os.environ.get("BROWSER_OUT"):
        page.screenshot(path=Path(out) / f"explorer_{name}.png", **options)


def written(folder, *arguments, **options):
    return explorer.write(folder / "page.html", *arguments, **options)


def percent(share):
    """Write a share as the page does; at a half, rounded either way."""
    share = float(share)
    if 0 < share < 0.005:
        return ["under 1%"]
    return [f"{int(100 * share + 0.5 + by)}%" for by in (-1e-4, 1e-4)]


def closed(page, **more):
    """A page's policy, in its head, allows the scripts and the style that stand in it, and `more`.

    Returns:
        The scripts, each as its id and its text.
    """
    scripts = re.findall(r"""<script(?: id="([\w-]*)")?>(.*?)</script>""", page, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digests = [sha256(text.encode()).digest() for text in (*(text for _, text in scripts), style)]
    *names, of_style = (f"'sha256-{b64encode(digest).decode()}'" for digest in digests)
    before, policy, _ = re.split(r'Content-Security-Policy" content="([^"]*)"', page)
    assert "<style" not in before
    assert dict(rule.split(" ", 1) for rule in unescape(policy).split("; ")) == {
        "script-src": " ".join(names),
        "style-src": of_style,
        **dict.fromkeys(("default-src", "base-uri", "form-action"), "'none'"),
        **{name.replace("_", "-"): rule for name, rule in more.items()},
    }
    return scripts
