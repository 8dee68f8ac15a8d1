"""Text from outside stays text in the live page; it fits any window, and can be read aloud.

Skipped where Chromium or `pip install -e ".[browser]"` is missing; with SKIP=nothing in the
environment, as in CI, they must be there. Screenshots go to the folder BROWSER_OUT.
"""

import re

import numpy as np
import pytest
import torch
from live_page import (
    ask,
    at,
    bars,
    canvas,
    caption,
    picture,
    press,
    saved,
    settled,
    state,
    window,
    written,
)
from PIL import Image
from test_explorer_numbers import lively

from vit_course.explorer import pages
from vit_steps import ViTConfig
from vit_steps.training.dataset import ImageDataset

pytestmark = pytest.mark.slow


# Text from outside -------------------------------------------------------------------------------

HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "<b>bold</b>",
    "\"quoted\" & 'quoted' &lt;",
    "a\u2028b\u2029c",
    "a digit 🖊️ <!-- <script>",
    "{given} ${classes} $& \\u003c",
    "long " * 40,
]


# What is given as a photo, and is none.
NO_PICTURES = {"text/html": b"<img src=x onerror=alert(1)>", "image/png": b"\x89PNG"}
NO_PICTURES["image/svg+xml"] = b"<svg xmlns='_' onload='alert(1)'/>"


def test_names_stay_text(chrome, tmp_path):
    model = lively(ViTConfig((8, 16), 4, 3, 12, embed_dim=12, depth=1, num_heads=2))
    names = (*HOSTILE, *"fghij")
    data = ImageDataset(torch.rand(12, 3, 8, 16) * 2 - 1, torch.arange(12), names)
    file = saved(Image.fromarray(np.arange(96, dtype=np.uint8).reshape(4, 8, 3)), "PNG")
    path = written(tmp_path, model, data, about=HOSTILE[0])
    for name in HOSTILE[:3]:
        assert name not in path.read_text("utf-8")
    with window(chrome, path, wide=390) as page:
        settled(page)
        assert page.locator("#about").text_content().startswith(HOSTILE[0])
        for i in range(12):
            shares = state(page, "run.whole.probabilities.data")
            ranked = sorted(range(12), key=lambda j: -shares[j])[:10]  # of more classes, ten
            assert [name.removesuffix(" ✓") for name, _ in bars(page)] == [names[j] for j in ranked]
            answer = page.locator("#answer").text_content()
            assert answer.startswith(f"It says {names[ranked[0]]} (")
            label = ask(page, "() => vitState.labels[vitState.state.example]")
            assert caption(page) == f"example {i + 1} of 12: {names[label]}"
            assert fits(page)
            press(page, "the next example")
            settled(page)
        chooser = page.get_by_label("Choose a photo")
        for name in (name.replace("/", "∕") for name in HOSTILE):
            for kind, buffer in NO_PICTURES.items():
                chooser.set_input_files({"name": name, "mimeType": kind, "buffer": buffer})
                page.get_by_text(f"{name} is no picture").wait_for()
                page.mouse.move(*at(page, 2, 2, (8, 16)))  # which says something else
                ask(page, "() => 0")
                page.mouse.move(0, 0)
            chooser.set_input_files({"name": name, "mimeType": "image/png", "buffer": file})
            page.wait_for_function("name => vitState.state.caption === name", arg=name)
            settled(page)
            assert caption(page) == name
            assert fits(page)
        # No element that no part of the page makes, but a name could.
        strange = page.locator("img, iframe, object, body script, b:has-text('bold')")
        assert strange.count() == len(pages.SCRIPTS) + 1


# How it looks ------------------------------------------------------------------------------------


def fits(page):
    """Whether nothing is wider than the window."""
    return ask(page, "() => document.documentElement.scrollWidth <= innerWidth")


COLOURS = """() => ['backgroundColor', 'color'].map(
  name => getComputedStyle(document.body)[name])"""
MOVING = """() => [...document.querySelectorAll('*')].filter(element => {
  const { transitionDuration, animationName } = getComputedStyle(element);
  return /[1-9]/.test(transitionDuration) || animationName !== 'none';
}).map(element => element.className)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("wide", "high"), [(1440, 900), (1024, 900), (390, 844)])
def test_the_first_screen_fits_the_window(wide, high, scheme, chrome, stored):
    with window(chrome, stored, wide, color_scheme=scheme, reduced_motion="reduce") as page:
        page.set_viewport_size({"width": wide, "height": high})
        settled(page)
        assert fits(page)
        picture(page, f"{wide}_{scheme}")
        if wide != 1024:
            for part in (canvas(page), page.locator("#answer"), page.locator(".bars")):
                box = part.bounding_box()
                assert box["y"] >= 0
                assert box["y"] + box["height"] <= high
                assert box["x"] + box["width"] <= wide
        press(page, "Cover the patch that matters most")
        page.get_by_text("Uncover").wait_for()
        assert fits(page)
        colours = ask(page, COLOURS)
        ground, ink = (sum(map(int, re.findall(r"\d+", text)[:3])) for text in colours)
        assert ground > ink + 400 if scheme == "light" else ink > ground + 400
        assert ask(page, MOVING) == []  # for who asks for that


def nameless(page):
    """List the roles that take the focus and have no name to be read aloud; count all that do."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    names = []
    for node in nodes:
        properties = {p["name"]: p["value"].get("value") for p in node.get("properties", ())}
        role = node.get("role", {}).get("value")
        part = role in ("RootWebArea", "option")  # not to be reached by itself
        if not node["ignored"] and properties.get("focusable") and not part:
            names.append((role, node.get("name", {}).get("value", "").strip()))
    return [role for role, name in names if not name], len(names)


def test_all_that_takes_the_focus_has_a_name(chrome, stored, tmp_path):
    photos = written(tmp_path, lively(ViTConfig(8, 4, 3, 3, embed_dim=12, depth=1, num_heads=2)))
    for path in (stored, photos):
        with window(chrome, path) as page:
            settled(page)
            without, count = nameless(page)
            assert without == []
            assert count == ask(page, FOCUSABLE)
            ask(page, "() => document.body.append(document.createElement('button'))")
            assert nameless(page)[0] == ["button"]


# What a browser lets the keyboard reach, or a script focus.
FOCUSABLE = """() => [...document.querySelectorAll('button, input, select, [tabindex]')].filter(
  element => !element.disabled && element.checkVisibility()).length"""
