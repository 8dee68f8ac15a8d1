"""What is drawn on the live page is read: 360 digits of `data.hands`, by the page's own pen."""

from pathlib import Path

import pytest
import torch
from helpers import close
from live_page import ask, drag, press, settled, window
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from test_my_vit import LESSONS, at, code_of, lesson

from vit_course import lessons
from vit_course.explorer import __main__ as command
from vit_steps import weights
from vit_steps.training import data

pytestmark = pytest.mark.slow

HANDS = sorted(Path(data.__file__).with_name("hands").glob("*.txt"))
# Draws each digit's strokes on an empty sheet, and gives the pixels, and the likeliest class.
READ = """drawings => drawings.map(strokes => {
  const { config, weights } = vitState;
  let sheet = new Float32Array(config.height * config.width).fill(-1);
  for (const points of strokes) {
    points.forEach((to, i) => {
      sheet = vitModel.stroke(sheet, points[Math.max(i - 1, 0)], to, config);
    });
  }
  const { data } = vitModel.vit(sheet, weights, config).probabilities;
  return [[...sheet], vitMeasures.best(data)];
})"""


def drawings(path):
    """The digits of a hand, and of each the strokes: lists of [row, column]."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    labels = [int(line.partition(":")[0]) for line in lines]
    strokes = [
        [[[*map(float, reversed(p.split(",")))] for p in s.split()] for s in line[2:].split("/")]
        for line in lines
    ]
    return labels, strokes


def read(page):
    """Of each hand how many are read rightly; the labels of all, and the pixels as drawn."""
    right, labels, pixels = {}, [], []
    for hand in HANDS:
        digits, strokes = drawings(hand)
        found = ask(page, READ, strokes)
        right[hand.stem] = sum(a == b for a, (_, b) in zip(digits, found, strict=True))
        pixels += [sheet for sheet, _ in found]
        labels += digits
    assert len(labels) == 360
    return right, labels, torch.tensor(pixels)


def test_nine_in_ten_of_what_is_drawn_are_read(chrome, stored):
    with window(chrome, stored) as page:
        right, labels, pixels = read(page)
    assert len(HANDS) >= 10
    assert sum(right.values()) >= 0.9 * len(labels), right
    assert min(right.values()) >= 0.8 * len(labels) / len(HANDS), right  # no hand is left out
    same = data.hands()  # stored in 16 steps of ink
    assert same.labels.tolist() == labels
    assert (same.images.flatten(1) - pixels).abs().max() <= 1 / 16 + 1e-5


def test_the_mouse_draws_what_the_pen_draws_and_the_picture_is_saved(chrome, stored):
    _, strokes = drawings(HANDS[0])
    with window(chrome, stored) as page:
        for number in (0, 14, 28):
            press(page, "an empty sheet to draw on")
            for points in strokes[number]:
                drag(page, *([row - 0.5, column - 0.5] for row, column in points))
            settled(page)
            pixels = ask(page, "() => [...vitState.pixels()]")
            close(torch.tensor(pixels), torch.tensor(ask(page, READ, [strokes[number]])[0][0]), 0.1)
        with page.expect_download() as saved:
            press(page, "save the picture as a file")
        one = weights.load("scattered").preprocess(saved.value.path())
        close(one.flatten(), torch.tensor(pixels), 1 / 255 + 1e-5)


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The page of the model that a learner builds in lessons 01 to 06 and trains in lesson 07."""
    folder = tmp_path_factory.mktemp("own")
    sources = [*at(folder), *(cell for name in LESSONS for cell in lesson(name))]
    sources += [*lesson("07_training"), "%reset -f"]
    for source in code_of(lessons.ROOT / "notebooks" / "07_training.ipynb"):
        sources.append(source)
        if "save_model(" in source:
            break
    book = new_notebook(cells=[new_code_cell(source) for source in sources])
    NotebookClient(book, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    said = "".join(o.get("text", "") for cell in book.cells for o in cell.outputs)
    for piece in ("ViT", "train_step", "evaluate", "train"):
        assert f"\nyours, from my_vit.py: {piece}\n" in said, said
    page = folder / "page.html"
    command.main([str(folder / "my_digits.safetensors"), "--out", str(page), "--no-browser"])
    return page


def test_the_learners_own_model_reads_four_in_five_of_what_is_drawn(own, chrome):
    with window(chrome, own) as page:
        assert sum(read(page)[0].values()) >= 0.8 * 360
