"""Record the README's moving picture of the live page, and its checks: `python images/record.py`.

Needs `pip install -e ".[browser]"` and Chromium. It writes the page, uses it as a person would
(covers a patch, draws a digit, points at a class), and keeps what is seen as explorer.gif; and the
cards of a wrong and a right answer as checks.png.
"""

import sys
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page
from torch import Tensor

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

import browser  # noqa: E402

from vit_course import checks  # noqa: E402
from vit_course.checks import face  # noqa: E402
from vit_course.explorer import __main__ as command  # noqa: E402

SIZE, WIDE, COLOURS = {"width": 1160, "height": 780}, 780, 160
# A 3, in pixels of the model's picture: as a hand draws it, in one stroke.
THREE = [(4.5, 3.5), (6.5, 2.4), (9.2, 2.5), (10.6, 4.0), (10.2, 6.0), (8.2, 7.3), (7.0, 7.6)]
THREE += [(9.4, 8.0), (11.0, 9.6), (10.9, 11.8), (9.2, 13.3), (6.8, 13.5), (4.6, 12.4)]


def frames(page: Page) -> list[tuple[Image.Image, int]]:
    """Take pictures of the page, each with how long it stands, in milliseconds."""
    pictures = []

    def take(milliseconds: int) -> None:
        page.wait_for_timeout(350)  # until the answer is there, and its bars stand still
        picture = Image.open(BytesIO(page.screenshot()))
        height = round(WIDE * picture.height / picture.width)
        pictures.append((picture.convert("RGB").resize((WIDE, height)), milliseconds))

    page.wait_for_timeout(1000)  # what each patch matters is worked out
    take(2200)
    page.click("#strike")
    take(2600)
    page.click("#strike")
    take(700)
    page.get_by_role("button", name="an empty sheet").click()
    take(900)
    box = page.locator("#picture").bounding_box()
    assert box is not None
    side = box["width"] / 16
    page.mouse.move(box["x"] + THREE[0][0] * side, box["y"] + THREE[0][1] * side)
    page.mouse.down()
    for x, y in THREE[1:]:
        page.mouse.move(box["x"] + x * side, box["y"] + y * side, steps=4)
        take(220)
    page.mouse.up()
    page.mouse.move(5, 5)
    take(2400)
    page.locator(".bars li").nth(3).hover()
    take(2600)
    return pictures


def unscaled(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Attend without a scale, by a mask that is the wrong way round: what the README shows."""
    scores = q @ k.mT
    if mask is not None:
        scores = scores.masked_fill(mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


def cards() -> str:
    """Write the page with the cards of a wrong and a right answer to one build cell."""
    name = "scaled_dot_product_attention"
    check = checks.EXERCISES[name]
    mine = face.MODEL[: face.MODEL.index(name) + 1]
    shown = face.wrong(name, check.judge(unscaled)) + "<p></p>"
    shown += face.right(name, check.does, f"`{name}` is kept in my_vit.py", mine)
    return f"<body style='margin:12px;font:16px/1.5 system-ui,sans-serif;color:#222'>{shown}"


def main() -> None:
    """Write explorer.gif and checks.png beside this file."""
    with tempfile.TemporaryDirectory() as folder, browser.launched() as chrome:
        page = chrome.new_page(viewport={"width": 800, "height": 390}, device_scale_factor=2)
        page.set_content(cards())
        page.screenshot(path=HERE / "checks.png")
        path = Path(folder, "explorer.html")
        command.main(["--out", str(path), "--no-browser"])
        page = chrome.new_page(viewport=SIZE)
        page.goto(path.as_uri())
        pictures, times = zip(*frames(page), strict=True)
    first, *others = (picture.quantize(COLOURS, dither=Image.Dither.NONE) for picture in pictures)
    gif = HERE / "explorer.gif"
    first.save(gif, save_all=True, append_images=others, duration=times, loop=0, optimize=True)
    print(f"{gif.name}: {len(pictures)} pictures, {gif.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
