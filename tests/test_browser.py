"""The course in JupyterLab, in a real Chromium: the learner's way, and each lesson as it is stored.

It needs Chromium and `pip install -e ".[browser]"`. Screenshots go to the folder BROWSER_OUT.
"""

import os
import re
import shutil
from pathlib import Path

import browser
import hygiene
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from test_explorer_drawn import HANDS, drawings

from vit_course import lab as course_lab
from vit_course.lessons import LESSONS

pytestmark = pytest.mark.slow
TRAINING = """import vit_steps
from vit_steps import training
from vit_steps.training import data

train, val, test = data.load_data("digits", val_fraction=0.25)
sizes = dict(image_size=8, patch_size=2, in_channels=1, num_classes=10)
model = vit_steps.ViT(vit_steps.ViTConfig(**sizes, embed_dim=48, depth=2, num_heads=4))"""
FIT = """options = dict(epochs=30, folder="long_training", device="cpu", progress=False)
options["report"] = lambda history: print("epoch", len(history))
history = training.fit(model, train, val, **options)
print("finished:", len(history))"""

LIVE = """from vit_course import explorer
from vit_course.canvases import scattered
from vit_steps.weights import load

explorer.show(load("scattered"), scattered(24, seed=1, held_out=True))"""

CANVAS = """from vit_course import explorer
from vit_steps.weights import load

explorer.canvas(load("scattered"), keep="my_drawing.png")"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("learner")


@pytest.fixture(scope="module")
def lab(chrome, home):
    browser.needed("jupyterlab")
    out = Path(os.environ.get("BROWSER_OUT") or home / "screenshots")
    out.mkdir(parents=True, exist_ok=True)
    with browser.started(home) as address:
        yield browser.Lab(chrome, address, out)


@pytest.fixture
def opened(chrome, lab, home):
    """Opens a notebook of the learner's copy, or one made of sources; closes it at the end."""
    names = []

    def open(name, *sources):
        if sources:
            book = new_notebook(cells=[new_code_cell(source) for source in sources])
            book.metadata.kernelspec = nbformat.read(LESSONS[0], as_version=4).metadata.kernelspec
            nbformat.write(book, home / "my_course" / name)
        lab.open(name)
        names.append(name)
        return lab

    with browser.bounded(chrome, 1200):
        yield open
        if names:
            lab.close()


def test_the_first_lesson_stands_open_and_nothing_asks(lab):
    lab.until("() => jupyterapp.shell.currentWidget?.context?.isReady")
    assert lab.ask("() => jupyterapp.shell.currentWidget.context.path") == course_lab.FIRST
    assert lab.ask("() => document.querySelectorAll('.jp-Dialog, .Toastify__toast').length") == 0
    assert lab.ask("() => document.querySelector('.jp-TableOfContents').offsetHeight") > 0
    plugin = "/lab/api/settings/@jupyterlab/apputils-extension:notification"
    asked = lab.ask("async path => (await fetch(path)).json()", plugin)
    assert asked["schema"]["properties"]["fetchNews"]["default"] == "false"
    assert lab.heard == []
    lab.picture("start")


@pytest.mark.parametrize(
    "path",
    [  # one in five; each week all of them
        pytest.param(path, marks=[pytest.mark.nightly] if number % 5 else [], id=path.stem)
        for number, path in enumerate(LESSONS)
    ],
)
def test_a_lesson_as_it_is_stored_is_seen_whole(path, opened, home):
    stored = home / "my_course" / "stored"
    stored.mkdir(exist_ok=True)
    shutil.copy(path, stored)
    lab = opened(f"stored/{path.name}")
    lab.whole_picture(path.stem)
    problems = lab.problems()
    lab.resize(browser.NARROW)  # the contents stay open on the left
    lab.picture(f"{path.stem}_narrow")
    problems += lab.problems()
    lab.resize(browser.WIDE)
    assert problems == []
    cells = nbformat.read(path, as_version=4).cells
    counts = [sum(map(hygiene.is_picture, cell.get("outputs", []))) for cell in cells]
    figures = "cell => cell.node.querySelectorAll('.jp-OutputArea-output img').length"
    assert lab.ask(f"() => lab.cells().map({figures})") == counts
    assert sum(counts) > 0


def test_a_lesson_is_run_a_piece_written_wrong_then_right_and_a_question_answered(opened, home):
    lab = opened("01_patches.ipynb")
    assert lab.run_all()
    assert lab.problems() == []
    cell = lab.find("checks.patchify(patchify)")
    assert "patchify waits for you" in lab.output(cell)
    lab.type_over(cell, "pattern", 'pattern = "b c (row p1) (col p2) -> b (row col) (c p1 p2)"')
    lab.run(cell)
    assert "channel" in lab.output(cell)
    assert "patchify is not right yet" in lab.output(cell)
    lab.picture("build_cell_wrong")
    assert not (home / "my_course" / "my_vit.py").exists()
    answer = lab.unfold(cell + 1, "One way to write it")
    lab.paste(cell, f"{answer}\n\n\nchecks.patchify(patchify)")
    lab.run(cell)
    for words in ("✓", "patchify is right", "is kept in my_vit.py", "1 of 11 pieces"):
        assert words in lab.output(cell)
    lab.picture("build_cell_right")
    assert answer in (home / "my_course" / "my_vit.py").read_text("utf-8")

    quiz = lab.find("checks.quiz(1)")
    question = lab.output(quiz).splitlines()[0]
    verdicts = [lab.choose(quiz, option).partition(".")[0] for option in range(3)]
    assert sorted(verdicts) == ["✓ Right", "✗ No", "✗ No"]
    assert lab.output(quiz).splitlines()[0] == question  # still there
    lab.picture("quiz")
    assert lab.problems() == []


def test_who_comes_back_goes_on_in_the_middle(opened):
    """The old outputs stand there, the kernel is new: "Run All Above" brings what a cell needs."""
    lab = opened("01_patches.ipynb")
    cell = lab.find("checks.patchify(patchify)")
    if not lab.output(cell):
        lab.run_all()
        lab.close()
        lab.open("01_patches.ipynb")
    assert lab.output(cell)
    lab.run(cell)
    assert "NameError" in lab.output(cell)
    lab.ask("() => jupyterapp.commands.execute('notebook:run-all-above')")
    lab.run(cell)
    assert "NameError" not in lab.output(cell)
    assert "is right" in lab.output(cell) or "waits for you" in lab.output(cell)


def epochs(lab) -> list[int]:
    """The epochs that the training has told of."""
    return [int(epoch) for epoch in re.findall(r"epoch (\d+)", lab.output(1))]


def test_a_training_goes_on_after_a_stop_and_after_a_restart_of_the_kernel(opened):
    lab = opened("long_training.ipynb", TRAINING, FIT)
    lab.run(0)
    lab.begin(1)
    lab.until_output(1, "epoch 2\n")
    lab.click("notebook:interrupt-kernel")
    lab.until_output(1, "KeyboardInterrupt")
    first = epochs(lab)
    assert first[0] == 1
    lab.picture("training_stopped")

    lab.begin(1)
    lab.until_output(1, f"epoch {first[-1] + 4}\n")
    lab.click("notebook:restart-kernel")
    lab.confirm()
    second = epochs(lab)
    # The stop may have come between the checkpoint of an epoch and its line.
    assert 1 <= second[0] - first[-1] <= 2
    lab.picture("training_restarted")

    assert lab.run_all()
    third = epochs(lab)
    assert 1 <= third[0] - second[-1] <= 2
    assert third == list(range(third[0], 31))
    assert lab.output(1).endswith("finished: 30")
    assert lab.problems() == []


def test_a_live_page_runs_below_its_cell(opened):
    lab = opened("live.ipynb", LIVE)
    lab.run(0)
    frame = lab.page.frame_locator(".jp-OutputArea-output iframe")
    answer = frame.locator("#answer")
    answer.wait_for()
    answer.filter(has_text="It says").wait_for()
    before = frame.locator("#doubt").filter(has_text="Whole")
    assert before.count() == 0
    frame.get_by_label("positions", exact=True).check()
    before.wait_for()
    lab.picture("live_page")
    assert lab.problems() == []


def test_nine_in_ten_drawings_on_the_canvas_are_recognised_by_the_class_in_python(opened, home):
    """Of the 360 that `images/hands` holds, each hand's even or odd digits, once, by the mouse."""
    lab = opened("canvas.ipynb", CANVAS)
    assert lab.run_all()
    page, paper = lab.page, lab.page.locator(".vit-paper")
    paper.scroll_into_view_if_needed()
    box = paper.bounding_box()

    def at(point):
        row, column = point
        return box["x"] + column * box["width"] / 16, box["y"] + row * box["height"] / 16

    right = total = 0
    for number, hand in enumerate(HANDS):
        for digit, strokes in list(zip(*drawings(hand), strict=True))[3 * (number % 2) :: 6]:
            page.get_by_role("button", name="Clear").click()
            for first, *points in strokes:
                page.mouse.move(*at(first))
                page.mouse.down()
                for point in points:
                    page.mouse.move(*at(point))
                page.mouse.up()
            page.locator(".vit-canvas[aria-busy=false]").wait_for()
            right += page.locator(".vit-answer").inner_text().startswith(f"{digit},")
            total += 1
    assert total == 60
    assert right >= 0.9 * total
    lab.picture("canvas")
    assert lab.problems() == []
    assert (home / "my_course" / "my_drawing.png").exists()
    (cell,) = nbformat.read(home / "my_course" / "canvas.ipynb", as_version=4).cells
    assert [set(output.data) for output in cell.outputs] in ([], [{"image/png", "text/plain"}])
