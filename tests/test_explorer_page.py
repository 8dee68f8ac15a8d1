"""The first screen of the explorer's page in a real Chromium, by mouse and by keys.

Its numbers are PyTorch's in test_explorer_numbers.py; text from outside stays text; it fits any
window, and can be read aloud. Needs Chromium and `pip install -e ".[browser]"`.
"""

import re

import numpy as np
import pytest
import torch
from helpers import close, saved
from live_page import percent, picture, window, written
from PIL import Image
from test_explorer_numbers import covered, lively, shares

from vit_course.explorer import __main__ as command
from vit_course.explorer import pages
from vit_steps import ViTConfig, maps
from vit_steps.images import Preprocess
from vit_steps.training import Weights, load_weights
from vit_steps.training.dataset import ImageDataset
from vit_steps.weights import SCATTERED

pytestmark = pytest.mark.slow

STORED = load_weights(SCATTERED)
MODEL = STORED.model.requires_grad_(False)


@pytest.fixture
def page(chrome, stored):
    with window(chrome, stored) as page:
        page.settled()
        yield page


@pytest.fixture(scope="module")
def examples():
    """The pictures in the page (k, C, H, W), as its bytes say them, and their labels."""
    images, labels = command.held_out("scattered", STORED, 200)[:]
    order = pages.striking_first(MODEL, images, labels, -1.0)
    return ((images[order] + 1) * 127.5).round() / 127.5 - 1, labels[order]


# By mouse and keys -------------------------------------------------------------------------------


def along(page, part, side):
    """Read how far each of these parts of the bars reaches, or how wide it is, as shares."""
    style = "(parts, side) => parts.map(part => part.style[side])"
    lengths = page.locator(f".bars .{part}").evaluate_all(style, side)
    return torch.tensor([float(length.removesuffix("%")) / 100 for length in lengths])


def agree(page, shares, label=None):
    """The answer in words and in bars is that of these shares (classes,); `label` has a mark."""
    page.settled(quick=False)
    best = int(shares.argmax())
    names = page.ask("() => vitState.classes")
    answer = page.locator("#answer").text_content()
    assert answer in [f"It says {names[best]} ({text})." for text in percent(shares[best])]
    lines = page.bars()
    assert len(lines) == len(shares)
    for i, (name, number) in enumerate(lines):
        assert name == (f"{names[i]} ✓" if i == label else names[i])
        assert number in percent(shares[i])
    close(along(page, "bar", "width"), shares.float(), 1e-4)
    assert page.locator(".bars .best").count() == 1


def test_a_digit_is_drawn_with_the_mouse(page, examples):
    images, labels = examples
    assert page.caption() == f"example 1 of 200: {labels[0]}"
    close(page.pixels(), images[:1], 1e-6)
    agree(page, shares(MODEL, images[:1])[0], labels[0])
    page.drag((3, 5), (3, 10), (12, 7))  # on the example
    drawn = page.pixels()
    assert (drawn[0, 0, 3, 5:11] == 1).all()
    assert drawn[0, 0, 12, 7] == 1
    assert (drawn >= images[:1] - 1e-6).all()  # all of the example is still there
    agree(page, shares(MODEL, drawn)[0])
    assert page.caption() == "your drawing"
    picture(page, "drawn")
    page.use("Erase")
    page.drag((3, 5), (3, 10))
    assert (page.pixels()[0, 0, 3, 5:10] == -1).all()
    before = page.pixels()
    page.mouse.click(*page.at(12, 12), button="right")
    assert torch.equal(page.pixels(), before)
    for button, place in (("the next example", 0), ("the example before", 199)):
        page.press(button)
        agree(page, shares(MODEL, images[[place]])[0], labels[place])
        assert page.caption() == f"example {place + 1} of 200: {labels[place]}"


def test_an_empty_picture_says_so(page, examples):
    page.press("an empty sheet to draw on")
    page.settled()
    assert (page.pixels() == -1).all()
    assert page.locator("#answer").text_content() == "There is too little on it to say anything."
    assert {number for _, number in page.bars()} == {""}
    assert page.locator(".bars .best").count() == 0
    assert not page.get_by_role("button", name="Cover the patch").is_visible()
    page.drag((3, 5), (12, 5))
    agree(page, shares(MODEL, page.pixels())[0])


def test_a_digit_is_drawn_by_keys(page):
    page.tab(page.get_by_role("button", name="an empty sheet to draw on"))
    page.keyboard.press("Enter")
    page.tab(page.canvas(), "Shift+Tab")
    page.keyboard.press("Space")
    for _ in range(4):
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Space")
    drawn = page.pixels()
    assert (drawn[0, 0, 4:9, 8] == 1).all()
    assert int((drawn == 1).sum()) == 5
    agree(page, shares(MODEL, drawn)[0])
    page.tab(page.get_by_role("radio", name="Draw", exact=True), "Shift+Tab")
    page.keyboard.press("ArrowRight")
    assert page.state("tool") == "erase"
    page.tab(page.canvas())
    page.keyboard.press("Enter")
    assert page.pixels()[0, 0, 4, 8] == -1
    page.use("Cover")
    page.canvas().focus()
    page.keyboard.press("ArrowDown")  # a patch further: from row 4 to row 8
    page.keyboard.press("Space")
    assert page.ask("() => [...vitState.state.covered]") == [10]
    page.keyboard.press("Space")
    assert page.ask("() => [...vitState.state.covered]") == []


def test_patches_are_covered_hidden_and_asked(page, examples):
    image, label = examples[0][:1], examples[1][0]
    whole = shares(MODEL, image)[0]
    page.use("Cover")
    best, blind = int(whole.argmax()), torch.zeros(1, 4, 4, dtype=torch.bool)
    blind.view(-1)[[0, 1, 5]] = True
    after = shares(MODEL, covered(image, [0, 1, 5], 4, -1.0))[0]
    hidden = maps.blinded(MODEL, image, blind)[0].softmax(dim=0)
    for name, expected in (("covered", after), ("without.hidden", hidden)):
        items = f"() => Array.from(vitState.state.{name}).sort((a, b) => a - b)"
        page.drag((1, 1), (1, 6), (6, 6))
        assert page.ask(items) == [0, 1, 5]
        agree(page, expected, label)
        sentence = f"Whole (see the marks), it says {best}"
        doubt = page.locator("#doubt").text_content()
        assert doubt in [f"{sentence} ({text})." for text in percent(whole[best])]
        close(along(page, "whole", "left"), whole.float(), 1e-4)
        page.drag((6, 6), (6, 9), (1, 6))  # begun on a marked one, it takes marks away
        assert page.ask(items) == [0]
        page.mouse.click(*page.at(1, 1))
        assert page.ask(items) == []
        agree(page, whole, label)
        page.use("Hide")
    page.use("Ask")
    page.mouse.click(*page.at(6, 9))  # patch 6
    page.mouse.move(0, 0)
    page.settled()
    assert page.hint() == "Lit: what patch 6 takes, through all blocks."
    _, attention = MODEL(image, return_attention=True)
    looks = maps.rollout(attention)[0, 7, 1:]
    lit(page, looks - looks.min())
    page.mouse.click(*page.at(6, 9))
    assert page.state("query") == 0


def test_a_finger_that_scrolls_the_page_asks_nothing(page):
    page.use("Ask")
    box = page.canvas().bounding_box()
    place = {"clientX": box["x"] + 150, "clientY": box["y"] + 150, "pointerId": 1}
    page.canvas().evaluate("one => (one.setPointerCapture = () => {})")  # of no real pointer
    for kind in ("pointerdown", "pointermove", "pointercancel"):
        page.canvas().dispatch_event(kind, place)
    assert page.state("query") == 0
    for kind in ("pointerdown", "pointerup"):
        page.canvas().dispatch_event(kind, place)
    assert page.state("query") == 6  # patch 5


# What is lit, and what is marked -----------------------------------------------------------------


def spots(page):
    """Read red, green and blue of 16 patches, where no frame and no line crosses the picture."""
    colours = page.ask("() => asked.cells(document.getElementById('picture'), [4, 4, 0.6])")
    return np.array(colours)[:, :3]


def lit(page, values):
    """Each patch of the picture is lit by its value: the largest in yellow, below 0 in blue."""
    found, image = spots(page), page.pixels()[0, 0]
    for i, value in enumerate(values / values.abs().max()):
        row, column = 4 * (i // 4) + 2, 4 * (i % 4) + 2
        grey, share = (float(image[row, column]) + 1) * 127.5, abs(float(value))
        colour = np.array([255, 214, 0] if value >= 0 else [0, 114, 178])
        over = (0.4 if value >= 0 else 0.6) * share
        expected = grey * (1 - 0.5 * (1 - share)) * (1 - over) + over * colour
        assert np.abs(found[i] - expected).max() < 4, (i, found[i], expected)


def test_what_is_pointed_at_is_lit_and_marked_and_what_matters_most_is_covered(page, examples):
    image, label = examples[0][:1], int(examples[1][0])
    page.mouse.move(0, 0)
    _, attention = MODEL(image, return_attention=True)
    looks = maps.rollout(attention)[0, 0, 1:]
    lit(page, looks - looks.min())
    assert page.hint().endswith("is read from it. Lit: what cls takes, through all blocks.")
    picture(page, "first")
    whole = shares(MODEL, image)[0]
    left = shares(MODEL, torch.cat([covered(image, [i], 4, -1.0) for i in range(16)]))
    # A class lights up what matters to it.
    for i in (int(whole.argmax()), int(whole.argsort()[-2])):
        page.locator(".bars li").nth(i).hover()
        page.settled()
        lit(page, whole[i] - left[:, i])
        assert page.hint() == f"Yellow: without this patch, {i} gets less. Blue: it gets more."
    page.mouse.move(0, 0)
    page.settled()
    lit(page, looks - looks.min())
    page.get_by_role("radio", name="what matters").check()
    page.settled()
    best = int(whole.argmax())
    lit(page, whole[best] - left[:, best])
    page.get_by_role("radio", name="nothing").check()
    page.settled()
    grey = [float(image[0, 0, 4 * (i // 4) + 2, 4 * (i % 4) + 2] + 1) * 127.5 for i in range(16)]
    assert np.abs(spots(page) - np.array(grey)[:, None]).max() < 1
    # A patch marks in the bars what would be left without it, and says it.
    marks = page.locator(".bars .left")
    assert not marks.first.is_visible()
    for patch in (6, 15):
        page.mouse.move(*page.at(4 * (patch // 4) + 2, 4 * (patch % 4) + 2))
        page.ask("() => 0")
        close(along(page, "left", "left"), left[patch].float(), 1e-4)
        number = r"(under 1%|\d+%)"
        falls = rf"Without it \(blue marks\), {best} goes from {number} to {number}\."
        match = re.fullmatch(rf"Patch {patch}: cls takes {number} from it\. {falls}", page.hint())
        expected = (looks[patch], whole[best], left[patch, best])
        assert all(a in percent(b) for a, b in zip(match.groups(), expected, strict=True))
    page.mouse.move(0, 0)
    page.ask("() => 0")
    assert not marks.first.is_visible()
    patch = int(left[:, label].argmin())
    assert whole.argmax() == label != left[patch].argmax()
    page.press("Cover the patch that matters most")
    agree(page, left[patch], label)
    picture(page, "covered")
    page.press("Uncover all")
    agree(page, whole, label)


def test_how_far_an_answer_is_to_be_believed(chrome, tmp_path):
    model = lively(ViTConfig(8, 4, 3, 3, embed_dim=12, depth=2, num_heads=3))
    images = torch.rand(64, 3, 8, 8) * 2 - 1
    top = model(images).softmax(dim=1).amax(dim=1)
    images = images[[int(top.argmin()), int(top.argmax())]]
    bins = [dict(least=0.0, images=80, right=40), dict(least=0.85, images=80, right=76)]
    result = dict(accuracy=0.5, classes=[dict(images=160, right=116)], by_share=bins)
    names = ("a", "b", "c")
    data = ImageDataset(images, torch.tensor([0, 1]), names)
    assert top.min() < 0.5 < 0.85 < top.max()
    worth = "On held-out pictures, when it is this sure, it is right {} times in 100."
    for measured, sentences in (
        ({"result": result}, {f"It is unsure. {worth.format(50)}", worth.format(95)}),
        ({}, {"It is unsure.", ""}),
    ):
        with window(chrome, written(tmp_path, Weights(model, names, None, measured), data)) as page:
            doubts = set()
            for _ in images:
                page.settled()
                doubt = page.locator("#doubt").text_content()
                unsure = "unsure" in (page.locator("#answer").get_attribute("class") or "")
                assert unsure == doubt.startswith("It is unsure.")
                doubts.add(doubt)
                page.press("the next example")
            assert doubts == sentences


# A photo -----------------------------------------------------------------------------------------


A_IS_SLOW = """() => {
  const read = createImageBitmap;
  window.createImageBitmap = async (file) => {
    if (file.name === "a.png") await new Promise((ready) => setTimeout(ready, 300));
    return read(file);
  };
}"""


def test_a_photo_is_read_as_the_model_learned_from_photos(chrome, tmp_path):
    model = lively(ViTConfig((8, 16), 4, 3, 3, embed_dim=12, depth=1, num_heads=2))
    how = Preprocess((8, 16), 8, "bicubic", (0.5,) * 3, (0.5,) * 3)
    rough = np.random.default_rng(0).integers(256, size=(5, 6, 4), dtype=np.uint8)
    rough[..., 3] = 255
    rough[0, 0, 3] = 0  # transparent: white
    photo = Image.fromarray(rough).resize((120, 100), Image.Resampling.NEAREST)
    turned = Image.Exif()
    turned[0x0112] = 6  # a telephone held upright
    jpeg = dict(quality=100, subsampling=0, exif=turned)
    files = {"a.png": saved(photo, "PNG"), "b.jpg": saved(photo.convert("RGB"), "JPEG", **jpeg)}
    with window(chrome, written(tmp_path, model)) as page:
        page.settled()
        assert page.locator("#answer").text_content() == "There is nothing on it to say anything."
        assert page.caption() == "nothing yet"

        def right(name, bytes_, atol):
            name += ", its middle"
            page.wait_for_function("name => vitState.state.caption === name", arg=name)
            (tmp_path / "photo").write_bytes(bytes_)
            close(page.pixels(), how(tmp_path / "photo"), atol)
            agree(page, shares(model, page.pixels())[0])
            assert page.caption() == name

        for (name, bytes_), atol in zip(files.items(), (2 / 255, 0.03), strict=True):
            file = {"name": name, "mimeType": "image/png", "buffer": bytes_}
            page.get_by_label("Choose a photo").set_input_files(file)
            right(name, bytes_, atol)
        for kind in ("drop", "paste"):
            page.ask("() => vitState.show(vitState.state.base.map(() => 0))")
            page.ask("asked.give", [kind, list(files["a.png"])])
            right(f"{kind}.png", files["a.png"], 2 / 255)
        page.ask(A_IS_SLOW)
        for name, bytes_ in files.items():  # the last one counts, whatever takes longer
            file = {"name": name, "mimeType": "image/png", "buffer": bytes_}
            page.get_by_label("Choose a photo").set_input_files(file)
        right("b.jpg", files["b.jpg"], 0.03)
        page.wait_for_timeout(500)
        assert page.caption() == "b.jpg, its middle"


# The Worker --------------------------------------------------------------------------------------


# What it does where no Worker can be had, tests/explorer/worker.test.js shows.


def test_the_line_is_drawn_in_the_next_frame_while_a_long_job_runs(page):
    assert len(page.workers) == 1
    before, after, share, meanwhile = page.ask("asked.stroke")
    assert np.array(before)[:, :3].max() < 50
    aslant = [i % 5 == 0 for i in range(16)]
    assert [max(colours[:3]) > 200 for colours in after] == aslant
    assert 0 < share < 1
    assert meanwhile
    agree(page, shares(MODEL, page.pixels())[0])


def test_what_takes_long_is_asked_for_and_shows_how_far_it_is(chrome, tmp_path):
    model = lively(ViTConfig(32, 4, 3, 3, embed_dim=64, depth=5, num_heads=4)).half().float()
    data = ImageDataset(torch.rand(2, 3, 32, 32) * 2 - 1, torch.arange(2), ("a", "b", "c"))
    path = written(tmp_path, model, data)
    html = re.sub(r'<meta http-equiv="Content-Security[^>]*>', "", path.read_text("utf-8"))
    assert "* patches < 1000" in html  # milliseconds: what is quick is worked out unasked
    path.write_text(html.replace("* patches < 1000", "* patches < 0"), "utf-8")
    with window(chrome, path) as page:
        page.settled(quick=False)
        bar = page.get_by_role("progressbar")
        assert page.state("matters") is None
        assert not bar.is_visible()
        page.get_by_role("radio", name="what matters").check()
        page.wait_for_function("() => document.querySelector('progress').value > 0")
        assert bar.is_visible()
        page.press("the next example")  # it begins again, with this one
        page.wait_for_function("asked.settled", arg=True)
        assert not bar.is_visible()
        image = page.pixels()
        row = page.ask("() => Array.from(vitModel.row(vitState.state.matters, 9))")
        close(torch.tensor(row), shares(model, covered(image, [9], 4))[0].float(), 1e-4)


# Text from outside -------------------------------------------------------------------------------

HOSTILE = ["</script><img src=x onerror=alert(1)>", "<b>bold</b>", "\"quoted\" & 'quoted' &lt;"]
HOSTILE += ["a\u2028b\u2029c", "a digit 🖊️ <!-- <script>", "{given} ${classes} $& \\u003c"]
HOSTILE += ["long " * 40]

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
        page.settled()
        assert page.locator("#about").text_content().startswith(HOSTILE[0])
        for i in range(12):
            shares = page.state("run.whole.probabilities.data")
            ranked = sorted(range(12), key=lambda j: -shares[j])[:10]  # of more classes, ten
            listed = [name.removesuffix(" ✓") for name, _ in page.bars()]
            assert listed == [names[j] for j in ranked]
            answer = page.locator("#answer").text_content()
            assert answer.startswith(f"It says {names[ranked[0]]} (")
            label = page.ask("() => vitState.labels[vitState.state.example]")
            assert page.caption() == f"example {i + 1} of 12: {names[label]}"
            assert fits(page)
            page.press("the next example")
            page.settled()
        chooser = page.get_by_label("Choose a photo")
        for name in (name.replace("/", "∕") for name in HOSTILE):
            for kind, buffer in NO_PICTURES.items():
                chooser.set_input_files({"name": name, "mimeType": kind, "buffer": buffer})
                page.get_by_text(f"{name} is no picture").wait_for()
                page.mouse.move(*page.at(2, 2, (8, 16)))  # which says something else
                page.ask("() => 0")
                page.mouse.move(0, 0)
                page.ask("() => 0")  # drawn, or it would draw over the next message
            chooser.set_input_files({"name": name, "mimeType": "image/png", "buffer": file})
            page.wait_for_function("name => vitState.state.caption === name", arg=name)
            page.settled()
            assert page.caption() == name
            assert fits(page)
        # No element that no part of the page makes, but a name could.
        strange = page.locator("img, iframe, object, body script, b:has-text('bold')")
        assert strange.count() == len(pages.SCRIPTS) + 1


# How it looks ------------------------------------------------------------------------------------


def fits(page):
    """Whether nothing is wider than the window."""
    return page.ask("() => document.documentElement.scrollWidth <= innerWidth")


COLOURS = """() => ['backgroundColor', 'color'].map(
  name => getComputedStyle(document.body)[name])"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("wide", "high"), [(1440, 900), (1024, 900), (390, 844)])
def test_the_first_screen_fits_the_window(wide, high, scheme, chrome, stored):
    with window(chrome, stored, wide, color_scheme=scheme, reduced_motion="reduce") as page:
        page.set_viewport_size({"width": wide, "height": high})
        page.settled()
        assert fits(page)
        picture(page, f"{wide}_{scheme}")
        if wide != 1024:
            for part in (page.canvas(), page.locator("#answer"), page.locator(".bars")):
                box = part.bounding_box()
                assert box["y"] >= 0
                assert box["y"] + box["height"] <= high
                assert box["x"] + box["width"] <= wide
        page.press("Cover the patch that matters most")
        page.get_by_text("Uncover").wait_for()
        assert fits(page)
        colours = page.ask(COLOURS)
        ground, ink = (sum(map(int, re.findall(r"\d+", text)[:3])) for text in colours)
        assert ground > ink + 400 if scheme == "light" else ink > ground + 400
        assert page.ask("asked.moving") == []  # for who asks for that


def test_all_that_takes_the_focus_has_a_name(chrome, stored, tmp_path):
    photos = written(tmp_path, lively(ViTConfig(8, 4, 3, 3, embed_dim=12, depth=1, num_heads=2)))
    for path in (stored, photos):
        with window(chrome, path) as page:
            page.settled()
            assert page.ask("asked.nameless") == []
            page.ask("() => document.body.append(document.createElement('button'))")
            assert page.ask("asked.nameless") == ["BUTTON"]
