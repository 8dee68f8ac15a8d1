"""The lessons' small live pictures: right numbers, a still picture beneath, closed to all else.

What needs a browser needs Chromium and `pip install -e ".[browser]"`.
"""

import base64
import functools
import io
import math
import re
import time
from contextlib import ExitStack
from html import unescape
from urllib.parse import unquote

import hygiene
import matplotlib.pyplot as plt
import pytest
import torch
from helpers import close
from live_page import LIMIT, closed, window
from live_page import picture as take_picture
from PIL import Image

import vit_steps
from vit_course.explorer import small
from vit_steps.weights import load

pytestmark = pytest.mark.slow

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&{scripts}\u2028<!--"


def photo():
    return vit_steps.load_image(vit_steps.sample_photo())


def shares(tokens):
    """A table of weights whose rows are far from even, and from its columns."""
    torch.manual_seed(1)
    return (2 * torch.randn(tokens, tokens)).softmax(dim=-1)


def on_grey(tokens=17, **options):
    """A square of patches on an even picture, where only the weights make differences."""
    side = 4 * math.isqrt(tokens)
    return small.who_asks(torch.full((1, side, side), 0.5), shares(tokens), 4, **options)


MADE = {
    "patches": lambda: small.patch_sizes(photo(), point=(56, 136)),
    "softmax": small.scaled_softmax,
    "asks": lambda: small.who_asks(photo(), shares(197), 16, start=78, names={"cheek": 78}),
}


@pytest.fixture(scope="module", params=MADE)
def made(request):
    return request.param, MADE[request.param]()


# What comes in -----------------------------------------------------------------------------------

IMAGE, TABLE = torch.rand(3, 16, 16), torch.full((17, 17), 1 / 17)
STRIP = torch.zeros(1, 1, 258)


PATCHES = functools.partial(small.patch_sizes, image=IMAGE)
ASKS = functools.partial(small.who_asks, image=IMAGE, weights=TABLE, patch_size=4)


@pytest.mark.parametrize(
    ("make", "options", "error", "message"),
    [
        (PATCHES, dict(image="a.png"), TypeError, "image is a str, not a tensor"),
        (PATCHES, dict(image=(IMAGE * 255).byte()), TypeError, "use image.float"),
        (PATCHES, dict(image=IMAGE[:2]), ValueError, r"give \(1, H, W\) in grey or \(3"),
        (PATCHES, dict(image=IMAGE[:, :0]), ValueError, r"image is \(3, 0, 16\)"),
        (PATCHES, dict(image=torch.zeros(3, 321, 8)), ValueError, "up to 320 pixels"),
        (PATCHES, dict(image=IMAGE * 2 - 1), ValueError, "image goes from -.*denormalize"),
        (PATCHES, dict(image=IMAGE * torch.nan), ValueError, "image goes from nan"),
        (PATCHES, dict(sizes=8), TypeError, "sizes is 8; give a list of whole numbers"),
        (PATCHES, dict(sizes=[]), ValueError, r"sizes is \[\]; give 1 to 6 numbers, each once"),
        (PATCHES, dict(sizes=[4, 4]), ValueError, "give 1 to 6 numbers, each once"),
        (PATCHES, dict(sizes=[4, 2.0]), TypeError, r"sizes\[1\] is 2.0, a float"),
        (PATCHES, dict(sizes=[4, 5]), ValueError, "height is not a multiple of the patch size 5"),
        (PATCHES, dict(sizes=[4], point=3), TypeError, r"point is 3; give a pixel's \(row, column"),
        (PATCHES, dict(sizes=[4], point=(0, 16)), ValueError, "has 16 rows, 16 columns"),
        (ASKS, dict(weights=TABLE[:4]), ValueError, "queries, then keys"),
        (ASKS, dict(weights=TABLE.long()), TypeError, "weights holds torch.int64, not floats"),
        (ASKS, dict(weights=torch.eye(18)), ValueError, "18 tokens; an image of 16 patches has 16"),
        (ASKS, dict(weights=TABLE * 2), ValueError, "sum to 1; give them after the softmax"),
        (ASKS, dict(weights=2 * torch.eye(17) - TABLE), ValueError, "not shares that sum to 1"),
        (ASKS, dict(image=STRIP, weights=torch.eye(258), patch_size=1), ValueError, "up to 257"),
        (ASKS, dict(start=16), ValueError, "'start' is patch 16; the image has patches 0 to 15"),
        (ASKS, dict(start=1.0), TypeError, "'start' is 1.0; give a patch's number"),
        (ASKS, dict(names={"eye": 20}), ValueError, "'eye' is patch 20"),
    ],
)
def test_what_does_not_fit_is_refused(make, options, error, message):
    with pytest.raises(error, match=message):
        make(**options)


def test_other_floats_and_gradients_are_taken():
    image = torch.rand(3, 16, 16, dtype=torch.bfloat16, requires_grad=True)
    table = torch.zeros(16, 16, dtype=torch.float64, requires_grad=True).softmax(dim=-1)
    assert small.who_asks(image, table, 4).html
    assert small.patch_sizes(image, (4, 8)).html


def test_a_notebooks_own_random_numbers_stay_the_same():
    torch.manual_seed(3)
    wanted = torch.rand(4)
    torch.manual_seed(3)
    small.scaled_softmax()
    close(torch.rand(4), wanted)


# What goes out -----------------------------------------------------------------------------------


def tags(html):
    return re.findall(r"<(\w+)", html)


def test_a_cell_shows_a_still_picture_and_a_frame_and_no_figure(made):
    name, shown = made
    assert plt.get_fignums() == []
    assert "\n" not in repr(shown)
    assert repr(shown) == repr(MADE[name]())
    html = shown._repr_html_()
    assert len(html) < 160_000
    assert not hygiene.MACHINE_PATH.search(html)
    assert hygiene.MACHINE_PATH.search("+/folder/name")  # as plain base64 would have them
    assert tags(html) == ["div", "img", "iframe"]
    still, alt = re.search(r'src="([^"]*)" alt="([^"]*)"', html).groups()
    assert len(alt) > 60
    kind, data = still.split(",")
    assert kind == "data:image/png;base64"
    assert not {"/", "+"} & set(data)
    with Image.open(io.BytesIO(base64.b64decode(unquote(data)))) as picture:
        assert picture.width == small.WIDE
        assert len(picture.convert("RGB").getcolors(256)) > 5
    frame = re.search(r'<iframe srcdoc="([^"]*)" sandbox="([^"]*)" title="([^"]*)"', html)
    assert frame.groups()[1:] == ("allow-scripts", f"{shown.title}, live")
    assert unescape(frame[1]) == shown.html


def test_the_frame_may_run_its_scripts_and_nothing_else(made):
    page = made[1].html
    scripts = closed(page, img_src="data:")
    with_model = "vitModel" in scripts[-1][1]  # only where it is used
    assert len(scripts) == 2 + with_model
    outside = page.partition("<body>")[2]
    assert tags(re.sub(r"<script.*?</script>", "", outside, flags=re.DOTALL)) == []


# In a browser ------------------------------------------------------------------------------------


@pytest.fixture
def opened(chrome, tmp_path):
    """Opens a picture as it stands below a cell, in a window of its own."""
    file = tmp_path / "cell.html"

    def open(shown, width=800, change=lambda html: html, **options):
        html = change(shown._repr_html_())
        page = f'<!doctype html><meta charset="utf-8"><body style="margin: 16px">{html}'
        file.write_text(page, "utf-8")
        options |= dict(known=["data:"])
        page = windows.enter_context(window(chrome, file, width, **options)).page
        if 'sandbox="allow-scripts"' in html:
            page.frames[1].wait_for_selector(":root.live")
        return page

    with ExitStack() as windows:
        yield open


def soon(check):
    """The same check, which may become true: what is done in a frame arrives a moment later."""

    @functools.wraps(check)
    def patient(*args, **options):
        end = time.monotonic() + LIMIT / 1000
        while True:
            try:
                return check(*args, **options)
            except AssertionError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    return patient


def press_tab(page, place, key="Tab"):
    """Go on by one; the next key is pressed only when that place has the focus."""
    page.keyboard.press(key)
    page.frames[1].locator(f"{place}:focus").wait_for()


WINDOWS = [(900, "light"), (560, "dark"), (390, "light"), (390, "dark")]


@pytest.mark.parametrize(("width", "scheme"), WINDOWS)
def test_the_live_picture_covers_the_still_one_and_is_seen_whole(width, scheme, made, opened):
    page = opened(made[1], width, color_scheme=scheme)
    still, frame = (page.locator(tag).bounding_box() for tag in ("img", "iframe"))
    assert still == pytest.approx(frame, abs=0.6)
    assert frame["width"] == min(width - 32, small.WIDE)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    inside = page.frames[1]
    root = "document.documentElement"
    assert inside.evaluate(f"{root}.scrollHeight <= innerHeight")
    assert inside.evaluate(f"{root}.scrollWidth <= innerWidth")
    ground = inside.evaluate(f"getComputedStyle({root}).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(22, 24, 27)")
    take_picture(page, f"small_{made[0]}_{scheme}_{width}", full_page=True)
    before = page.screenshot()
    page.evaluate("document.querySelector('img').style.visibility = 'hidden'")
    assert page.screenshot() == before  # nothing of it shone through


def without_frame(html):
    return re.sub(r"<iframe.*?</iframe>", "", html, flags=re.DOTALL)


def without_styles(html):
    return re.sub(r' style="[^"]*"', "", without_frame(html))


def without_scripts(html):
    return html.replace('sandbox="allow-scripts"', 'sandbox=""')


def test_without_scripts_frames_or_styles_the_still_picture_is_seen(made, opened):
    blocked = "Blocked script execution"
    silent = opened(made[1], 600, change=without_scripts, but=blocked).screenshot()
    assert silent != opened(made[1], 600).screenshot()
    for change in (without_frame, without_styles):
        page = opened(made[1], 600, change=change)
        assert page.locator("iframe").count() == 0
        still = page.get_by_role("img", name=made[1].alt, exact=True)
        assert still.is_visible()
        assert still.evaluate("image => image.naturalWidth") == small.WIDE
        assert still.bounding_box()["height"] > 300
        assert change == without_styles or page.screenshot() == silent


def test_each_control_has_a_name_and_nothing_moves(made, opened):
    inside = opened(made[1]).frames[1]
    assert inside.evaluate("asked.nameless") == []
    assert inside.locator("input, button, canvas[tabindex]").count() >= 2
    assert inside.evaluate("document.getAnimations().length") == 0
    assert inside.locator("[aria-live=polite]").count() >= 1


# Patch sizes -------------------------------------------------------------------------------------


@soon
def check_sums(inside, image, size):
    patches = vit_steps.patchify(image[None], size)[0]
    n, numbers = patches.shape
    weights = torch.ones(n + 1, n + 1).numel()
    cells = inside.locator("[data-name]").all()
    sums = {c.get_attribute("data-name"): int(c.inner_text().replace(",", "")) for c in cells}
    assert sums == {"n": n, "numbers": numbers, "all": image.numel(), "weights": weights}


@soon
def check_patch(inside, image, size, row, col):
    number = row // size * (image.shape[2] // size) + col // size
    assert f"This is patch {number}," in inside.locator(".words").inner_text()
    patch = vit_steps.patchify(image[None], size)[0, number].view(-1, 3).mean(dim=0)
    enlarged = torch.tensor(inside.locator(".zoom").evaluate("asked.cells", [size, size, 0.5]))
    close(enlarged[:, :3].float().mean(dim=0) / 255, patch, atol=0.04)  # a JPEG


def test_patch_sizes_by_mouse_and_keys(opened):
    image = photo()
    page = opened(MADE["patches"]())
    inside = page.frames[1]
    check_patch(inside, image, 16, 56, 136)
    press_tab(page, "canvas")
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    check_patch(inside, image, 16, 56 + 16, 136 + 32)
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
    check_patch(inside, image, 16, 72, 0)
    press_tab(page, "[type=radio]")
    for size in (32, 56, 8):
        page.keyboard.press("ArrowRight")
        check_sums(inside, image, size)
        check_patch(inside, image, size, 72, 0)
    canvas = inside.locator("figure canvas")
    scale = canvas.bounding_box()["width"] / 224
    for size in (56, 8, 32, 16):
        inside.get_by_label(str(size), exact=True).click()
        check_sums(inside, image, size)
        for row, col in ((4, 4), (100, 60), (219, 219), (180, 100)):
            canvas.hover(position={"x": col * scale, "y": row * scale})
            check_patch(inside, image, size, row, col)


def test_patch_sizes_of_an_oblong_grey_picture(opened):
    image = torch.linspace(0, 1, 8 * 24).view(1, 8, 24)
    inside = opened(small.patch_sizes(image, (4, 2))).frames[1]
    check_sums(inside, image, 4)
    assert "row 1, column 3" in inside.locator(".words").inner_text()  # the middle


# √d and softmax ----------------------------------------------------------------------------------


@soon
def check_softmax(inside, d, divided, query=0):
    generator = torch.Generator().manual_seed(0)
    queries = torch.randn(24, 256, generator=generator)[:, :d]
    keys = torch.randn(8, 256, generator=generator)[:, :d]
    scores = (queries @ keys.T).double() / (d**0.5 if divided else 1)
    weights = scores.softmax(dim=-1)
    rows = inside.locator("tbody tr").all()
    got = [row.locator(".number").all_inner_texts() for row in rows]
    got = [[float(text.replace("−", "-")) for text in texts] for texts in got]
    close(torch.tensor(got).double()[:, 0], scores[query], atol=0.06)  # 12.3 has one place
    close(torch.tensor(got).double()[:, 1], weights[query], atol=6e-4)
    bars = [float(row.locator("rect").last.get_attribute("width")) / 100 for row in rows]
    close(torch.tensor(bars).double(), weights[query], atol=1e-4)
    top, best = weights[query].max(dim=0)
    words = inside.locator(".words").inner_text()
    assert f"d = {d}, {'divided by' if divided else 'not divided'}" in words
    said, key = re.search(r"largest weight is ([\d.]+), at key (\d)", words).groups()
    assert float(said) == pytest.approx(top.item(), abs=6e-4)
    assert int(key) == best
    mean = re.search(r"24 queries is ([\d.]+);", inside.locator(".mean").inner_text())[1]
    assert float(mean) == pytest.approx(weights.amax(dim=-1).mean().item(), abs=6e-4)
    return round(float(mean), 2), round(float(said), 2)


def test_softmax_saturates_without_the_division_alone(opened):
    page = opened(small.scaled_softmax())
    inside = page.frames[1]
    slider, box = inside.get_by_role("slider"), inside.get_by_label("divide by √d")
    another = inside.get_by_role("button", name="Another query")
    means = {}
    press_tab(page, "[type=range]")
    for divided, key in ((False, "ArrowRight"), (True, "ArrowLeft")):
        widths = small.WIDTHS if not divided else small.WIDTHS[::-1]
        for d in widths:
            if d != widths[0]:
                page.keyboard.press(key)
            means[divided, d] = check_softmax(inside, d, divided)
            assert slider.get_attribute("aria-valuetext") == f"d = {d}"
        if not divided:
            press_tab(page, "[type=checkbox]")
            page.keyboard.press("Space")
            press_tab(page, "[type=range]", "Shift+Tab")
    # As lesson 04 says.
    found = [means[divided, d][0] for divided in (False, True) for d in (4, 256)]
    assert (found, means[False, 4][1]) == ([0.51, 0.96, 0.33, 0.41], 0.59)
    slider.click(position={"x": slider.bounding_box()["width"] - 4, "y": 8})
    box.click()
    check_softmax(inside, 256, False)
    box.click()
    for query in (1, 2):
        another.click()
        check_softmax(inside, 256, True, query)
    for _ in range(22):
        another.click()
    check_softmax(inside, 256, True, 0)


# Which patch asks --------------------------------------------------------------------------------


@soon
def check_asks(inside, weights, token, names=None):
    """Of a square of patches, behind cls where there is a token more; some have names."""
    name_of = {patch: f" ({name})" for name, patch in (names or {}).items()}
    side = math.isqrt(len(weights))
    cls = len(weights) - side**2

    def called(i):
        return f"patch {i - cls}{name_of.get(i - cls, '')}" if i >= cls else "cls"

    maps = {"gives": weights[token], "gets": weights[:, token]}
    top = max(values[cls:].max() for values in maps.values())
    for name, values in maps.items():
        words = inside.locator(f"p.{name}").inner_text()
        said = re.findall(r"(patch \d+(?: \(\w+\))?|cls) ([\d.]+)%", words)
        order = values.argsort(descending=True)[:3].tolist()
        assert [who for who, _ in said] == [called(i) for i in order]
        for (_, percent), value in zip(said, values[order], strict=True):
            places = 0.06 if value < 0.1 else 0.51
            assert float(percent) == pytest.approx(100 * value.item(), abs=places)
        colours = inside.locator(f"canvas.{name}").evaluate("asked.cells", [side, side, 0.5])
        light = torch.tensor(colours).float()[:, :3] @ torch.tensor([0.2, 0.7, 0.1])
        patches = values[cls:]
        far = patches[:, None] - patches > 0.02 * top  # brighter, and to be seen
        assert (light[:, None] > light[None, :])[far].all()
        assert far.any()
    title = inside.locator("figcaption").all_inner_texts()
    assert title == [f"Where {called(token)} looks", f"Who looks at {called(token)}"]
    total = re.search(r"gets (\d+)%", inside.locator(".sum").inner_text())[1]
    off = 1 if len(weights) <= small.MANY else 2  # of many each has 8 bits
    assert int(total) == pytest.approx(100 * weights[:, token].sum().item(), abs=off)


def test_who_asks_by_mouse_and_keys(opened):
    weights = shares(17)
    page = opened(on_grey(start=5))
    inside = page.frames[1]
    check_asks(inside, weights, 6)
    press_tab(page, "button")
    cls = inside.get_by_role("button", name="cls asks")
    page.keyboard.press("Enter")
    assert cls.get_attribute("aria-pressed") == "true"
    check_asks(inside, weights, 0)
    cls.click()
    check_asks(inside, weights, 6)
    cls.click()
    press_tab(page, "canvas.gives")
    steps = (("ArrowDown", 0), ("ArrowDown", 4), ("ArrowRight", 5), ("ArrowUp", 1))
    for key, patch in (*steps, ("ArrowUp", 1), ("ArrowLeft", 0), ("ArrowLeft", 0)):
        page.keyboard.press(key)
        check_asks(inside, weights, 1 + patch)
    for name in ("gives", "gets"):
        canvas = inside.locator(f"canvas.{name}")
        side = canvas.bounding_box()["width"] / 4
        for patch in (0, 7, 10, 15):
            place = {"x": (patch % 4 + 0.5) * side, "y": (patch // 4 + 0.5) * side}
            canvas.hover(position=place)
            check_asks(inside, weights, 1 + patch)


def test_who_asks_without_cls_among_many_with_names(opened):
    weights, names = shares(196), {"cheek": 78, "eye": 50}
    page = opened(on_grey(196, start=78, names=names))
    inside = page.frames[1]
    assert inside.get_by_role("button").count() == 0
    check_asks(inside, weights, 78, names)
    press_tab(page, "canvas.gives")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    check_asks(inside, weights, 50, names)


def test_a_hostile_name_is_shown_as_text(opened):
    page = opened(on_grey(start=5, names={HOSTILE: 5}))
    inside = page.frames[1]
    assert inside.locator("figcaption").first.text_content() == f"Where patch 5 ({HOSTILE}) looks"
    assert inside.locator("body img").count() == 0
    assert page.locator("img").count() == 1  # the still picture


# What the lessons say of them --------------------------------------------------------------------


def test_lesson_04s_sentences_about_the_photo_are_true():
    """In the table that it shows the face looks mostly at the face, and the wall at the wall."""
    photos = load("photos")
    _, tables = photos.model(photos.preprocess(vit_steps.sample_photo()), return_attention=True)
    patches = tables[2][0, 3, 1:, 1:].view(8, 8, 8, 8)
    of_face, of_wall = patches[3, 4], patches[2, 7]
    assert of_face[2:5, 3:5].sum() > 0.5  # six of the 64 patches
    assert of_wall[:5, 6:].sum() > 0.8  # ten of them
    asked = patches[:, :, 3, 4]
    assert asked[2:6, 2:6].sum() > asked.sum() / 2
