"""Record the README's moving picture and its cards: `python images/record.py`.

Needs `pip install -e ".[browser,test]"` and Chromium. A kernel writes the pieces of lessons 01 to
05, as a learner would; in JupyterLab the last one, the ViT, turns green, takes trained weights and
recognises a drawing: your_vit.gif. The cards of a wrong and a right answer are checks.png.
"""

import sys
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from PIL import Image
from torch import Tensor

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

import browser  # noqa: E402

from vit_course import checks  # noqa: E402
from vit_course.checks import face  # noqa: E402
from vit_course.lessons import LESSONS  # noqa: E402

WIDE, COLOURS = 780, 128
CLIP = {"x": 310, "y": 90, "width": 880, "height": 520}  # of the window, the notebook
# A 3, in pixels of the model's picture: as a hand draws it, in one stroke.
THREE = [(4.5, 3.5), (6.5, 2.4), (9.2, 2.5), (10.6, 4.0), (10.2, 6.0), (8.2, 7.3), (7.0, 7.6)]
THREE += [(9.4, 8.0), (11.0, 9.6), (10.9, 11.8), (9.2, 13.3), (6.8, 13.5), (4.6, 12.4)]


BEFORE = """from dataclasses import dataclass

from torch import nn

from vit_course import checks, explorer
from vit_steps import weights
from vit_steps.vit import ViTConfig, init_weights

PatchEmbedding, TokenEmbedding, EncoderBlock = checks.mine(
    "PatchEmbedding", "TokenEmbedding", "EncoderBlock"
)"""
AFTER = """trained = weights.load("scattered").model
reader = ViT(trained.config)
reader.load_state_dict(trained.state_dict())
explorer.canvas(reader)"""


def pieces_before(file: Path) -> None:
    """Write a learner's pieces of lessons 01 to 05 into a file, by running their solutions."""
    sources = [f"import os\nos.environ['MY_VIT'] = {str(file)!r}"]
    for path in sorted((HERE.parent / "notebooks" / "solutions").glob("0[1-5]*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        sources += ["%reset -f", *(cell.source for cell in cells if cell.cell_type == "code")]
    NotebookClient(book(*sources), timeout=300).execute()


def book(*sources: str) -> Any:
    """Make a notebook of these code cells."""
    made = new_notebook(cells=[new_code_cell(source) for source in sources])
    first = nbformat.read(LESSONS[0], as_version=4)
    made.metadata.kernelspec = first.metadata.kernelspec
    return made


def frames(lab: browser.Lab) -> list[tuple[Image.Image, int]]:
    """Take pictures of the notebook, each with how long it stands, in milliseconds."""
    pictures, page = [], lab.page

    def take(milliseconds: int) -> None:
        page.wait_for_timeout(250)  # until the answer is there, and its bars stand still
        picture = Image.open(BytesIO(page.screenshot(clip=CLIP))).convert("RGB")
        height = round(WIDE * picture.height / picture.width)
        pictures.append((picture.resize((WIDE, height)), milliseconds))

    lab.run(0)
    lab.node(1).scroll_into_view_if_needed()
    take(1800)
    lab.run(1)
    lab.node(1).locator(".jp-OutputArea-output").first.scroll_into_view_if_needed()
    take(2800)
    lab.run(2)
    paper = page.locator(".vit-paper")
    paper.wait_for()
    page.wait_for_timeout(1000)  # JupyterLab scrolls, too
    page.locator(".vit-canvas").evaluate("e => e.scrollIntoView({block: 'center'})")
    page.wait_for_timeout(500)
    take(1200)
    box = paper.bounding_box()
    assert box is not None
    side = box["width"] / 16
    page.mouse.move(box["x"] + THREE[0][0] * side, box["y"] + THREE[0][1] * side)
    page.mouse.down()
    for x, y in THREE[1:]:
        page.mouse.move(box["x"] + x * side, box["y"] + y * side, steps=4)
        take(220)
    page.mouse.up()
    take(3200)
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
    """Write your_vit.gif and checks.png beside this file."""
    with tempfile.TemporaryDirectory() as folder, browser.launched() as chrome:
        page = chrome.new_page(viewport={"width": 800, "height": 390}, device_scale_factor=2)
        page.set_content(cards())
        page.screenshot(path=HERE / "checks.png")
        home = Path(folder)
        with browser.started(home) as address:
            course = home / "my_course"
            pieces_before(course / "my_vit.py")
            last = checks.EXERCISES["ViT"].answer.strip() + "\n\n\nchecks.ViT(ViT)"
            nbformat.write(book(BEFORE, last, AFTER), course / "your_vit.ipynb")
            lab = browser.Lab(chrome, address, home)
            lab.resize(1240, 640)
            lab.open("your_vit.ipynb")
            pictures, times = zip(*frames(lab), strict=True)
            lab.close()
    first, *others = (picture.quantize(COLOURS, dither=Image.Dither.NONE) for picture in pictures)
    gif = HERE / "your_vit.gif"
    first.save(gif, save_all=True, append_images=others, duration=times, loop=0, optimize=True)
    print(f"{gif.name}: {len(pictures)} pictures, {gif.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
