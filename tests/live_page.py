"""The live page in a window of Chromium: what its tests do there, and ask of it."""

import os
import re
from base64 import b64encode
from contextlib import closing, contextmanager
from hashlib import sha256
from html import unescape
from io import BytesIO
from pathlib import Path

import pytest
import torch
from browser import bounded, listen

from vit_course import explorer

LIMIT = 30_000  # milliseconds


@contextmanager
def window(chrome, path, wide=1440, quiet=True, limit=240, **options):
    """A page of its own. At the end it must have said nothing, and have asked for nothing else.

    Args:
        path: the file.
        wide: the window's width, in pixels.
        quiet: False where the test provokes what the page objects to.
        limit: so many seconds, then Chromium is ended: a page that hangs answers nothing.
    """
    context = chrome.new_context(viewport={"width": wide, "height": 900}, **options)
    context.set_default_timeout(LIMIT)
    page = context.new_page()
    addresses = (path.as_uri(), "about:srcdoc", "blob:")  # the page, its frame, its Worker
    problems = listen(page, *addresses, kinds=("error", "warning"))
    with bounded(chrome, limit), closing(context):
        page.goto(path.as_uri())
        yield page
        if quiet:
            assert problems == []


def ask(page, script, argument=None):
    """Give what a function in JavaScript returns after the next frame, in which the page draws."""
    drawn = "await new Promise(requestAnimationFrame)"
    return page.evaluate(f"async x => {{ {drawn}; return ({script})(x); }}", argument)


def picture(page, name, **options):
    """Take a screenshot, where they are wanted."""
    if out := os.environ.get("BROWSER_OUT"):
        page.screenshot(path=Path(out) / f"explorer_{name}.png", **options)


# Whether the answer is that to the picture that stands there, and drawn; and so, where it is found
# at once, what each patch matters.
SETTLED = """quick => {
  const { run, matters, without, twin } = vitState.state;
  const none = JSON.stringify(without) === JSON.stringify(vitState.nothingOut());
  if (!run || !run.shown.pixels.every((value, i) => value === vitState.pixels()[i])) return false;
  if (run.out ? JSON.stringify(run.shown.without) !== JSON.stringify(without) : !none) return false;
  return Boolean(run.twin) === twin && (matters || !quick);
}"""


def settled(page, quick=True):
    page.wait_for_function(SETTLED, arg=False)
    if quick and state(page, "run.milliseconds * vitState.patches") > 1000:  # a slow computer's
        ask(page, "() => vitState.findMatters()")
    page.wait_for_function(SETTLED, arg=quick)
    ask(page, "() => new Promise(requestAnimationFrame)")


# Of a canvas, in red, green, blue and alpha, a place in each of its rows by columns.
CELLS = """(canvas, [rows, cols, share]) => {
  const { width, height } = canvas;
  const pen = Object.assign(document.createElement('canvas'), { width, height })
    .getContext('2d', { willReadFrequently: true });
  pen.drawImage(canvas, 0, 0);
  const at = (i, long, count) => Math.floor((i + share) * long / count);
  return Array.from({ length: rows * cols }, (_, k) => {
    const [x, y] = [at(k % cols, width, cols), at(Math.floor(k / cols), height, rows)];
    return [...pen.getImageData(x, y, 1, 1).data];
  });
}"""


def state(page, script):
    """Read what stands in the page's state; see state.js."""
    return ask(page, f"() => vitState.state.{script}")


def pixels(page):
    """Read the picture as the model sees it (1, C, H, W)."""
    numbers, c = ask(page, "() => [Array.from(vitState.pixels()), vitState.config]")
    return torch.tensor(numbers).view(1, c["in_channels"], c["height"], c["width"])


def written(folder, *arguments, **options):
    return explorer.write(folder / "page.html", *arguments, **options)


def canvas(page):
    return page.get_by_role("application", name=re.compile("^The picture,"))


def at(page, row, column, size=(16, 16)):
    """Find a pixel's middle in the window."""
    box = canvas(page).bounding_box()
    x = box["x"] + (column + 0.5) / size[1] * box["width"]
    return x, box["y"] + (row + 0.5) / size[0] * box["height"]


def drag(page, *places):
    page.mouse.move(*at(page, *places[0]))
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*at(page, *place))
    page.mouse.up()
    ask(page, "() => 0")  # drawn


def use(page, tool):
    page.get_by_role("group", name="With the pointer").get_by_label(tool, exact=True).check()


def press(page, button):
    page.get_by_role("button", name=button, exact=True).click()


def tab(page, target, key="Tab"):
    """Press Tab, or Shift+Tab, until something has the focus."""
    for _ in range(100):
        if target.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press(key)
    pytest.fail(f"{key} does not reach {target}")


def percent(share):
    """Write a share as the page does; at a half, rounded either way."""
    share = float(share)
    if 0 < share < 0.005:
        return ["under 1%"]
    return [f"{int(100 * share + 0.5 + by)}%" for by in (-1e-4, 1e-4)]


def policy_of(page):
    """Give the rules of a page's policy, by their names."""
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])
    return dict(rule.split(" ", 1) for rule in policy.split("; "))


def hashes(*sources):
    """Name scripts and styles as a policy does."""
    digests = [sha256(source.encode()).digest() for source in sources]
    return [f"'sha256-{b64encode(digest).decode()}'" for digest in digests]


def saved(photo, kind, **options):
    file = BytesIO()
    photo.save(file, kind, **options)
    return file.getvalue()


def caption(page):
    return page.locator("#input .row .small").text_content()


def bars(page):
    """The classes' lines: of each, name and number."""
    return [
        line.locator("span").evaluate_all("all => [all[0], all[2]].map(one => one.textContent)")
        for line in page.locator(".bars li").all()
    ]
