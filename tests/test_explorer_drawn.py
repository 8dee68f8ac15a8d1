"""What is drawn on the live page is read: 360 digits of `canvases.hands`, by the page's own pen."""

from pathlib import Path

import pytest
import torch
from helpers import close
from live_page import window
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from test_my_vit import LESSONS, at, code_of, lesson

from vit_course import lessons
from vit_course.canvases import hands
from vit_course.explorer import __main__ as command
from vit_steps import weights

pytestmark = pytest.mark.slow

HANDS = sorted((Path(__file__).parents[1] / "images/hands").glob("*.txt"))


def drawings(path):
    """Read the digits of a hand, and of each the strokes: lists of [row, column]."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    labels = [int(line.partition(":")[0]) for line in lines]
    strokes = [
        [[[*map(float, reversed(p.split(",")))] for p in s.split()] for s in line[2:].split("/")]
        for line in lines
    ]
    return labels, strokes


def read(page):
    """Draw all; give of each hand how many are read rightly, all labels, and the pixels."""
    right, labels, pixels = {}, [], []
    for hand in HANDS:
        digits, strokes = drawings(hand)
        answers = page.ask("asked.read", strokes)
        right[hand.stem] = sum(a == b for a, (_, b) in zip(digits, answers, strict=True))
        pixels += [sheet for sheet, _ in answers]
        labels += digits
    assert len(labels) == 360
    return right, labels, torch.tensor(pixels)


def test_nine_in_ten_of_what_is_drawn_are_read(chrome, stored):
    with window(chrome, stored) as page:
        right, labels, pixels = read(page)
    assert len(HANDS) >= 10
    assert sum(right.values()) >= 0.9 * len(labels), right
    assert min(right.values()) >= 0.8 * len(labels) / len(HANDS), right  # no hand is left out
    images, same = hands()[:]  # stored in 16 steps of ink
    assert same.tolist() == labels
    assert (images.flatten(1) - pixels).abs().max() <= 1 / 16 + 1e-5


def test_the_mouse_draws_what_the_pen_draws_and_the_picture_is_saved(chrome, stored):
    _, strokes = drawings(HANDS[0])
    with window(chrome, stored) as page:
        for number in (0, 14, 28):
            page.press("an empty sheet to draw on")
            for points in strokes[number]:
                page.drag(*([row - 0.5, column - 0.5] for row, column in points))
            page.settled()
            pixels = page.pixels().flatten()
            ((by_pen, _),) = page.ask("asked.read", [strokes[number]])
            close(pixels, torch.tensor(by_pen), 0.1)
        with page.expect_download() as download:
            page.press("save the picture as a file")
        image = weights.load("scattered").preprocess(download.value.path())
        close(image.flatten(), pixels, 1 / 255 + 1e-5)


@pytest.mark.nightly
def test_the_model_that_a_learner_builds_reads_four_in_five_of_what_is_drawn(chrome, tmp_path):
    """In lessons 01 to 06 it is built, in lesson 07 trained."""
    sources = [*at(tmp_path), *(cell for name in LESSONS for cell in lesson(name))]
    sources += [*lesson("07_training"), "%reset -f"]
    training = code_of(lessons.ROOT / "notebooks" / "07_training.ipynb")
    (end,) = [i for i, source in enumerate(training) if "save_model(" in source]
    cells = [new_code_cell(source) for source in sources + training[: end + 1]]
    book, resources = new_notebook(cells=cells), {"metadata": {"path": str(tmp_path)}}
    NotebookClient(book, timeout=600, resources=resources).execute()
    output = "".join(o.get("text", "") for cell in book.cells for o in cell.get("outputs"))
    for piece in ("ViT", "train_step", "evaluate", "train"):
        assert f"\nyours, from my_vit.py: {piece}\n" in output, output
    path = tmp_path / "page.html"
    command.main([str(tmp_path / "my_digits.safetensors"), "--out", str(path), "--no-browser"])
    with window(chrome, path) as page:
        assert sum(read(page)[0].values()) >= 0.8 * 360
