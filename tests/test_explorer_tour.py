"""The live page below its first screen in a real Chromium, beside PyTorch.

The road, every head, what is taken out, the lens, and the tour by keys alone.
What needs a browser needs Chromium and `pip install -e ".[browser]"`.
"""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from helpers import close
from live_page import percent, picture, window
from test_explorer_numbers import covered, lively, measured, readings, steps, twin
from test_explorer_page import lit

from vit_course import explorer
from vit_course.explorer import __main__ as command
from vit_course.explorer import pages
from vit_steps import ViTConfig, maps
from vit_steps.training import Weights, load_weights
from vit_steps.training.dataset import ImageDataset
from vit_steps.weights import SCATTERED

pytestmark = pytest.mark.slow

PHOTOS = ViTConfig((24, 32), 4, 3, 3, 12, 2, 3, qkv_bias=False, pool="mean")  # 48 patches
FOCUSED = "one => one === document.activeElement"


def subject(folder, weights, data, paper):
    """Write a page; give with its path its model and its pictures, as its bytes say them."""
    model = weights.model.requires_grad_(False)
    path = explorer.write(folder / "page.html", weights, data, unseen=True)
    images, labels = data[pages.striking_first(model, *data[:], paper)]
    images = ((images + 1) * 127.5).round() / 127.5 - 1
    return SimpleNamespace(
        path=path, model=model, c=model.config, paper=paper, classes=weights.classes,
        images=images, labels=labels,
    )  # fmt: skip


@pytest.fixture(scope="module")
def subjects(tmp_path_factory):
    """A page of the stored weights, and one of another model, of photos."""
    torch.manual_seed(3)
    model, names = lively(PHOTOS), ("a", "b", "c")
    images = torch.randint(256, (40, 3, 24, 32)) / 127.5 - 1
    labels = model(images).argmax(dim=1) * (torch.arange(40) % 3 > 0)  # some are named wrongly
    digits, photos = load_weights(SCATTERED), ImageDataset(images, labels, names)
    held_out = command.held_out("scattered", digits, 80)
    return {
        "stored": subject(tmp_path_factory.mktemp("stored"), digits, held_out, -1.0),
        "photos": subject(tmp_path_factory.mktemp("photos"), Weights(model, names), photos, None),
    }


@pytest.fixture(params=["stored", "photos"])
def both(request, chrome, subjects):
    with window(chrome, subjects[request.param].path) as page:
        page.settled()
        yield page, subjects[request.param]


@pytest.fixture
def stored(chrome, subjects):
    with window(chrome, subjects["stored"].path) as page:
        page.settled()
        yield page, subjects["stored"]


def says(text, *expected):
    """A text has these numbers, in this order, each rounded as it stands there."""
    numbers = re.findall(r"-?\d+(?:\.\d+)?(?:e\+\d+)?", text.replace("−", "-"))
    assert len(numbers) == len(expected), (text, expected)
    for number, right in zip(numbers, map(float, expected), strict=True):
        size, _, tens = number.partition("e+")
        slack = 0.501 * 10.0 ** (int(tens or 0) - len(size.partition(".")[2])) + 1e-3
        assert abs(float(number) - right) <= slack, (text, number, right)


def show(page, number):
    page.ask("number => vitState.showExample(number)", number)
    page.settled(quick=False)


def tick(page, box, checked=True):
    page.get_by_label(box, exact=True).set_checked(checked)
    page.settled(quick=False)


# The road ----------------------------------------------------------------------------------------

# The colours of shares, from dark to light, and of numbers of two signs.
SHARES = np.array([[0, 32, 77], [55, 72, 108], [124, 123, 120], [186, 174, 108], [255, 234, 70]])
SIGNS = np.array([[5, 78, 138], [118, 174, 214], [247, 247, 247], [240, 160, 96], [166, 66, 4]])


def coloured(scale, values):
    """Give the colours (..., 3) of numbers from 0 to 1."""
    return np.stack([np.interp(4 * values, range(5), column) for column in scale.T], axis=-1)


def shows(canvas, expected, by=4):
    """A canvas shows these colours (rows, cols, 3)."""
    rows, cols = expected.shape[:2]
    actual = np.array(canvas.evaluate("asked.cells", [rows, cols, 0.6])).reshape(rows, cols, 4)
    assert np.abs(actual[..., :3] - expected).max() < by


def in_colours(it, image):
    """Give the colours of a picture's pixels, and of those at 0.6 of each of its patches."""
    pixels = ((image + 1) * 127.5).expand(3, -1, -1).permute(1, 2, 0).numpy()
    inside = slice(int(0.6 * it.c.patch_size), None, it.c.patch_size)
    return pixels, pixels[inside, inside]


def mapped(it, image, values, most):
    """Give the colours of a map of values (patches,) over the picture."""
    patches = in_colours(it, image)[1]
    return 0.3 * patches + 0.7 * coloured(SHARES, (values / most).numpy()).reshape(patches.shape)


def strip(page, stage):
    """Open a stage of the strip, or one inside the block."""
    page.get_by_role("tab", name=re.compile(f"^{re.escape(stage)}")).click()


def test_the_strip_shows_what_each_stage_holds(both):
    page, it = both
    image, depth = it.images[0], it.c.depth
    stages = page.get_by_role("tablist", name="stages").get_by_role("tab")
    canvases = stages.locator("canvas").all()
    names = ["photo", "patches", "cls + positions", *(f"block {b}" for b in range(depth)), "head"]
    stages.first.click()
    for name in [*names[1:], names[0]]:  # and from the last one to the first
        page.keyboard.press("ArrowRight")
        assert stages.nth(names.index(name)).evaluate(FOCUSED)
        page.ask("() => 0")
        selected = [tab.get_attribute("aria-selected") == "true" for tab in stages.all()]
        assert selected == [other == name for other in names]
        assert page.locator("#stage").get_attribute("aria-label") == name
        inside = page.get_by_role("tablist", name="inside the block")
        assert inside.is_visible() == name.startswith("block")
    found, (pixels, patches) = steps(it.model, image[None]), in_colours(it, image)
    shows(canvases[0], pixels, 2)
    shows(canvases[1], patches, 2)
    corners = canvases[1].evaluate("asked.cells", [*patches.shape[:2], 0])
    assert {alpha for *_, alpha in corners} == {0}  # it is cut there
    for place, x in ((2, found["start"][0]), (-1, found["logits"][0].T)):
        shows(canvases[place], coloured(SIGNS, ((x / x.abs().max() + 1) / 2).numpy()))
    _, attention = it.model(image[None], return_attention=True)
    for query in (0, 6):
        page.ask("query => vitState.change({ query })", query)
        page.settled(quick=False)
        means = torch.stack([weights[0, :, query, 1:].mean(dim=0) for weights in attention])
        for b in range(depth):
            shows(canvases[3 + b], mapped(it, image, means[b], means.max()))
    tick(page, "without block 1, all of it")
    left_out = ["left out" in text for text in stages.all_text_contents()]
    assert left_out == [name == "block 1" for name in names]
    picture(page, f"strip_{it.c.in_channels}", full_page=True)


BLOCK, HEAD, T = 1, 1, 6  # T is the token of patch 5


def formulas(it, image):
    """Yield of some numbers: stage, table, cell, and the numbers of its formula."""
    c, model, found = it.c, it.model, steps(it.model, image[None])
    block, cols = found["blocks"][BLOCK], image.shape[2] // c.patch_size
    parts = {name: x[0] for name, x in block["heads"][HEAD].items()}
    channels = ["red", "green", "blue"] if len(image) == 3 else ["brightness"]
    for name, x in zip(channels, image, strict=True):
        yield "photo", name, (5, 6), 5, 6, x[5, 6]
    x, bias = found["embedded"][0, 5, 9], model.patch_embed.proj.bias[9]
    yield "patches", "the patches' tokens", (5, 9), x, 5, 9, x - bias, bias
    # Two tiles, of the number above.
    x = found["patches"][0, 5].view(c.patch_size, c.patch_size, -1)[1, 2]
    yield "patches", "patch 5", (1, 2), *x
    yield "patches", "template 9", (1, 2), *model.patch_embed.proj.weight[9][:, 1, 2]
    x, place = found["start"][0], model.tokens.pos_embed[0]
    tokens = "cls + positions", "tokens, cls first"
    yield *tokens, (T, 9), x[T, 9], 5, x[T, 9] - place[T, 9], place[T, 9]
    yield *tokens, (0, 3), x[0, 3], x[0, 3] - place[0, 3], place[0, 3]
    x = torch.cosine_similarity(place[T], place[cols + 3], dim=0)
    yield "cls + positions", "how like the position of patch 5", (1, 2), cols + 2, x
    qkv, d = model.blocks[BLOCK].attn.qkv.bias, c.embed_dim // c.num_heads
    for which, letter in enumerate("qkv"):
        line, x = (which * c.num_heads + HEAD) * d + 2, parts[letter][T, 2]
        added = [x - qkv[line], qkv[line]] if c.qkv_bias else []
        yield "QKV heads", f"{letter}: ", (T, 2), x, 5, line, *added
    j = int(parts["weights"][T, 1:].argmax()) + 1
    cell = divmod(j - 1, cols) if len(parts["q"]) > 40 else (T, j)  # of many, a map
    product, score, x = (parts[name][T, j] for name in ("products", "scores", "weights"))
    yield "attention", "q · k", cell, product, 5, j - 1
    yield "attention", "scores = q · k / √d", cell, score, product, d
    total = parts["scores"][T].exp().sum()
    yield "attention", "weights = softmax", cell, 100 * x, score, score.exp(), total
    x, bias = block["made"][0, T, 9], model.blocks[BLOCK].mlp.fc2.bias[9]
    yield "MLP", "what it adds", (T, 9), x, 5, 1, 9, 2, x - bias, bias
    logits, i = found["logits"][0, 0], len(it.classes) - 1
    yield "head", "logits", (i, 0), logits[i], i, logits[i] - model.head.bias[i], model.head.bias[i]
    i = int(logits.argmax())
    x = 100 * logits.softmax(0)[i]
    yield "head", "probabilities", (i, 0), x, logits[i], logits[i].exp(), logits.exp().sum()


def table(page, name):
    """Find a table of numbers, and the formula below it."""
    canvas = page.locator(f'main canvas[aria-label^="{name}"]')
    return canvas, canvas.locator("xpath=ancestor::figure").locator(".formula")


def point(page, name, row, column):
    """Point at a number of a table; give its formula."""
    canvas, formula = table(page, name)
    size = re.search(r"(\d+) by (\d+) numbers", canvas.get_attribute("aria-label"))
    rows, columns = map(int, size.groups())
    box = canvas.bounding_box()
    x, y = (column + 0.5) * box["width"] / columns, (row + 0.5) * box["height"] / rows
    canvas.hover(position={"x": x, "y": y})
    return formula.text_content()


def test_each_number_says_how_it_came_about(both):
    page, it = both
    page.get_by_label("who asks").select_option(f"patch {T - 1}")
    for stage, name, cell, *numbers in formulas(it, it.images[0]):
        if stage in ("QKV heads", "attention", "MLP"):
            strip(page, f"block {BLOCK}")
        strip(page, stage)
        if stage == "QKV heads":
            page.get_by_role("combobox", name="head", exact=True).select_option(str(HEAD))
        text = point(page, name, *cell)
        says(text.partition(": ")[2] if stage == "head" else text, *numbers)


# A box; a stage; words that stand there when it is ticked, and instead of which.
LEFT_OUT = [
    ("positions", "cls + positions", "positions are left out", "positions are added"),
    ("positions", "cls + positions", "= cls token", "= cls token + position"),
    ("the division by √d", "attention", "scores = q · k (", "scores = q · k / √d ("),
    ("without block 3, norm1", "QKV heads", "= cls · row 0 of", "= norm of cls · row 0 of"),
    ("without block 3, norm2", "MLP", "= cls, by fc1", "= norm of cls, by fc1"),
    ("residuals", "MLP", "what takes the stream's place (", "what it adds ("),
    ("the last norm", "head", "Without the last norm", "After the last norm"),
    ("without block 3, all of it", "QKV heads", "Left out; this is what it would do.", None),
    ("without block 3, all of it", "MLP", "Left out; this is what it would do.", None),
    ("without block 3, head 0", "attention", "Left out; this is what it would do.", None),
]


def test_a_stage_says_what_is_left_out(stored):
    page, _ = stored
    for box, stage, then, before in LEFT_OUT:
        strip(page, "block 3")
        strip(page, stage)
        for out in (False, True):
            tick(page, box, out)
            text = page.locator("#stage").text_content()
            assert before is None or (before in text) != out, (box, text)
            assert (then in text.replace(before or "\n", "")) == out, (box, text)
        page.press("Put all back")


def test_a_table_keeps_the_focus_and_what_is_asked(stored):
    page, it = stored
    answers = it.model(it.images).argmax(dim=1)
    another = int((answers == answers[0]).nonzero()[1])
    strip(page, "attention")
    canvas, formula = table(page, "q · k")
    page.tab(canvas)
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
    for number in (0, another):
        show(page, number)
        parts = steps(it.model, it.images[[number]])["blocks"][-1]["heads"][0]
        product, score = (float(parts[name][0, 1, 3]) for name in ("products", "scores"))
        says(formula.text_content(), product, 0, 2)
        # The tables beside it are asked with it.
        says(table(page, "scores = ")[1].text_content(), score, product, 16)
        assert canvas.evaluate(FOCUSED)
    page.keyboard.press("Enter")
    assert page.state("query") == 1  # the row's token asks now
    canvas, formula = table(page, "what the head says")
    page.tab(canvas)
    page.keyboard.press("ArrowUp")
    for number in (another, 0):
        show(page, number)
        assert canvas.evaluate(FOCUSED)
        assert formula.text_content().startswith(f"after block 2, {answers[0]}: ")


# Every head --------------------------------------------------------------------------------------


def test_every_head_is_chosen_by_mouse_and_keys(stored):
    page, it = stored
    region = page.get_by_role("region", name="Every attention head")
    small = region.get_by_role("button")
    _, attention = it.model(it.images[:1], return_attention=True)
    heads = torch.stack(attention)[:, 0].flatten(0, 1)[:, 7, 1:]  # what patch 6 takes
    region.get_by_label("who asks").select_option("patch 6")
    page.settled(quick=False)
    for i, one in enumerate(small.all()):
        says(one.get_attribute("title"), i // 4, i % 4, heads[i].argmax(), 100 * heads[i].max())
    page.ask("() => vitState.change({ light: 'nothing' })")

    def lights(kind, looks, pressed):
        page.mouse.move(0, 0)
        page.settled(quick=False)
        assert page.state("kind") == kind
        assert page.hint().startswith("Lit: what patch 6 takes, through ")
        lit(page, looks - looks.min())
        states = [button.get_attribute("aria-pressed") for button in small.all()]
        assert states == ["true" if i in pressed else "false" for i in range(16)]

    small.nth(6).click()
    lights("head", heads[6], [6])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    assert small.nth(9).evaluate(FOCUSED)
    page.keyboard.press("Enter")
    lights("head", heads[9], [9])
    region.get_by_label("the block's mean").check()
    lights("mean", heads[8:12].mean(dim=0), [8, 9, 10, 11])
    region.get_by_label("all blocks (rollout)").check()
    lights("rollout", maps.rollout(attention)[0, 7, 1:], [])
    tick(page, "without block 1, head 2")
    tick(page, "without block 3, all of it")
    out = ["left out" in one.get_attribute("title") for one in small.all()]
    assert out == [i == 6 or i >= 12 for i in range(16)]


def test_the_twin_stands_beside_it_on_one_scale(stored):
    page, it = stored
    looks = page.get_by_role("region", name="Every attention head")
    canvases, image = looks.locator("button canvas"), it.images[0]
    assert looks.get_by_role("table").count() == 1
    tick(page, "beside it an untrained twin")
    for out in (False, True):
        tick(page, "the division by √d", out)
        runs = [steps(model, image[None], scale=out) for model in (it.model, twin(it.model))]
        blocks = [block for run in runs for block in run["blocks"]]
        taken = torch.stack([one["weights"][0, 0, 1:] for b in blocks for one in b["heads"]])
        text = looks.get_by_text("One scale").text_content()
        assert text.endswith(f": 0.00{taken.max():.2f}")
        for i in (0, 5, 15, 16, 21, 31):
            shows(canvases.nth(i), mapped(it, image, taken[i], taken.max()))
    picture(page, "twin", full_page=True)
    tick(page, "beside it an untrained twin", False)
    assert looks.get_by_role("table").count() == 1


# Take it out -------------------------------------------------------------------------------------


def boxes(c):
    """Give what each box leaves out, by its name."""
    without = {"positions": {"positions": True}, "residuals": {"residuals": True}}
    without |= {"the division by √d": {"scale": True}, "the last norm": {"norms": ["norm"]}}
    for b in range(c.depth):
        without[f"without block {b}, all of it"] = {"blocks": [b]}
        for norm in ("norm1", "norm2"):
            without[f"without block {b}, {norm}"] = {"norms": [f"blocks.{b}.{norm}"]}
        for j in range(c.num_heads):
            without[f"without block {b}, head {j}"] = {"heads": [[b, j]]}
    return without


def agree(page, it, **without):
    """The page's logits of the first picture are PyTorch's."""
    page.settled(quick=False)
    logits = page.ask("() => Array.from(vitState.state.run.shown.logits.data)")
    reference = steps(it.model, it.images[:1], **without)["logits"][0, 0]
    close(torch.tensor(logits), reference.float(), 1e-3)


def test_each_box_takes_out_what_it_says(chrome, subjects):
    it = subjects["photos"]
    with window(chrome, it.path) as page:
        page.settled()
        nothing = page.ask("() => vitState.nothingOut()")
        expected = {name: nothing | without for name, without in boxes(it.c).items()}
        # What comes of each, test_explorer_numbers.py shows.
        assert page.ask("asked.leftOut") == expected
        for end in ("the last norm", "positions", "block 0, norm1", "block 1, head 0", "head 2"):
            page.tab(page.locator("#without").get_by_label(re.compile(f"{end}$")).first)
            page.keyboard.press("Space")
        norms, heads = ["norm", "blocks.0.norm1"], [[0, 2], [1, 0]]
        agree(page, it, positions=True, norms=norms, heads=heads)
        now = page.locator("#answer").text_content().removeprefix("It says ").rstrip(".")
        whole = page.locator("#doubt").text_content().partition(" it says ")[2]
        assert page.locator("#so").text_content() == f"Now it says {now}; whole, {whole}"
        page.press("Put all back")
        agree(page, it)
        assert page.locator("#so").text_content() == ""
        assert page.locator("#without").get_by_role("checkbox", checked=True).count() == 0


def test_what_is_hidden_from_cls_gets_nothing(both):
    page, it = both
    strip(page, "attention")
    page.use("Hide")
    page.mouse.click(*page.at(6, 9, it.images.shape[2:]))  # row 1, column 2
    patch = it.images.shape[3] // it.c.patch_size + 2
    agree(page, it, hidden=[patch])
    cell = (1, 2) if patch > 6 else (0, 1 + patch)  # of many patches, a map
    assert point(page, "scores = ", *cell) == f"−∞: patch {patch} is hidden from cls"
    assert point(page, "weights = ", *cell).startswith("0% = e^−∞ / the sum of all = 0.00 / ")
    page.press("Put all back")
    agree(page, it)


def test_it_is_tried_on_all_examples(both):
    page, it = both
    found = page.locator("#found")

    def right(images, **without):
        answers = steps(it.model, images, **without)["logits"][:, 0].argmax(dim=1)
        return int((answers == it.labels).sum())

    counts = len(it.images), right(it.images)
    page.press("Try it on all examples")
    found.get_by_text("nothing is out").wait_for()
    says(found.text_content(), *counts)
    tick(page, "residuals")
    assert found.text_content() == ""  # something else is out
    page.ask("() => vitState.change({ covered: new Set([5, 10]) })")
    page.press("Try it on all examples")
    found.get_by_text("with this out").wait_for()
    images = covered(it.images, [5, 10], it.c.patch_size, it.paper)
    says(found.text_content(), *counts, right(images, residuals=True))
    show(page, 1)  # without a cover
    assert found.text_content() == ""
    for then in ("Stop", None) if len(it.images) > 40 else ():
        assert page.ask("asked.interrupted", ["Try it on all examples", then])
        assert found.text_content() == ""


def test_which_block_decides(both):
    page, it = both
    starts = set()
    for number in range(0, 40, 5):
        show(page, number)
        logits = readings(it.model, steps(it.model, it.images[[number]]))
        lens = [one[0].softmax(dim=0) for one in logits]
        rows = ["before block 0", *(f"after block {b}" for b in range(it.c.depth))]
        tops = [int(one.argmax()) for one in lens]
        start = next(i for i in range(len(tops)) if set(tops[i:]) == {tops[-1]})
        starts.add(start)
        when = rows[start] + (", and from then on" if start < it.c.depth else ", not before")
        sentence = f"The answer, {it.classes[tops[-1]]}, is the most probable {when}."
        assert page.locator("#stands").text_content() == sentence
        for i, j in ((0, tops[0]), (it.c.depth, tops[-1]), (1, 2)):
            texts = [f"{rows[i]}, {it.classes[j]}: {text}" for text in percent(lens[i][j])]
            assert point(page, "what the head says", i, j) in texts
    assert len(starts) > 1


# The tour ----------------------------------------------------------------------------------------


def answers(it):
    """Yield of each question the right answer, the numbers that stand there, what is left out."""
    found = {name: result for name, _, result in measured(it.model, it.images, it.labels, it.paper)}
    plain, count, h = steps(it.model, it.images), len(it.images), it.c.num_heads
    before, marked, drawn = (found["reasons"][name] for name in ("before", "marked", "drawn"))

    def left(part):
        after = steps(it.model, it.images, **{part: True})["logits"][:, 0].argmax(dim=1)
        after = int((after == it.labels).sum())
        right = 0 if after > 0.8 * before else 1 if after >= 0.3 * before else 2
        return right, [before, count, after], part

    yield left("positions")
    tops = [int(head["weights"][0, 0, 1:].argmax()) for head in plain["blocks"][-1]["heads"]]
    yield int(len(set(tops)) > 1), [0, h - 1, *tops], None
    a, b, named = found["sharpness"].values()
    right = 0 if b > 1.02 * a else 1 if b > 0.98 * a else 2
    yield right, [100 * a, 100 * b, named, count], "scale"
    yield left("residuals")
    none, *after = found["lenses"]
    right = next(i for i, n in enumerate([none, *after]) if n >= after[-1] / 2)
    yield right, [0, none, count, *after], None
    right = 0 if marked < drawn else 1 if marked > drawn else 2
    yield right, [before, count, marked, drawn, 1], None


def closed(page):
    """Whether what may give the answer away is: all below the first screen."""
    count = page.locator("main > section:visible").count()
    assert count in (1, 5)
    return count == 1


def test_the_tour_by_keys_from_start_to_finish(both):
    from playwright.sync_api import expect

    page, it = both
    opener, tour = page.get_by_role("button", name="Take the tour"), page.locator("#tour")
    heading, revealed = tour.get_by_role("heading"), tour.locator("#revealed")
    button, guesses = tour.get_by_role("button", name="Show"), tour.get_by_role("radio")
    page.tab(opener)
    page.keyboard.press("Enter")
    for i, (right, numbers, out) in enumerate(answers(it)):
        expect(heading).to_be_focused()
        assert heading.text_content().startswith(f"{i + 1} of 6 · Lesson ")
        texts = tour.get_by_role("radiogroup", name="Predict").locator("label").all_text_contents()
        page.tab(button)
        page.keyboard.press("Enter")
        expect(revealed).to_contain_text("Choose first.")
        page.keyboard.press("Shift+Tab")  # to the answers
        page.keyboard.press("Space")
        (chosen,) = [k for k, one in enumerate(guesses.all()) if one.is_checked()]
        wrong = (right + 1) % len(texts)
        for guess in (wrong, right) if i % 2 else (right, wrong):
            page.tab(guesses.nth(chosen), "Shift+Tab")
            for _ in range((guess - chosen) % len(texts)):
                page.keyboard.press("ArrowDown")
            chosen = guess
            assert guesses.nth(chosen).is_checked()
            assert closed(page)
            page.tab(button)
            page.keyboard.press("Enter")
            verdict = "Yes. " if guess == right else f"No: {texts[right]}. "
            sentence = revealed.get_by_role("paragraph").first
            expect(sentence).to_contain_text(re.compile("^" + re.escape(verdict)), timeout=60_000)
            says(sentence.text_content().removeprefix(verdict), *numbers)
            expect(revealed).to_contain_text("Try it yourself.")
            assert not closed(page)
        without = page.state("without")
        assert {name for name, value in without.items() if value is True} == {out} - {None}
        assert page.state("tool") == ("hide" if i == 5 else "pick")
        picture(page, f"tour_{i + 1}")
        page.tab(tour.get_by_role("button", name="Next"))
        page.keyboard.press("Enter")
    assert heading.text_content() == "The end"
    says(tour.locator("#question").text_content(), 6, 6, 3)  # each second first guess was right
    assert not closed(page)
    page.tab(tour.get_by_role("button", name="Leave the tour"))
    page.keyboard.press("Enter")
    expect(tour).to_be_hidden()
    expect(opener).to_be_focused()


def test_the_tour_is_left_and_the_learner_has_all_back(stored):
    page, _ = stored
    page.mouse.click(*page.at(8, 8))
    page.use("Cover")
    page.mouse.click(*page.at(1, 1))
    for box in ("without block 1, head 2", "beside it an untrained twin", "the block's mean"):
        tick(page, box)
    strip(page, "MLP")
    page.mouse.move(0, 0)
    chosen, tour = page.ask("asked.chosen"), page.locator("#tour")
    page.press("Take the tour: six questions")
    assert tour.get_by_role("button", name="Back").is_disabled()
    for button, number in (("Next", 2), ("Back", 1)):
        page.press(button)
        assert tour.get_by_role("heading").text_content().startswith(f"{number} of 6")
    page.settled(quick=False)
    assert not page.state("run.out")
    # Stopped while it measures, it says nothing, and what is closed stays closed.
    for then in ("Stop", "Next", "Leave the tour"):
        tour.get_by_role("radio").first.check()
        assert page.ask("asked.interrupted", ["Show", then])
        assert tour.locator("#revealed").text_content() == ""
        assert closed(page) == (then != "Leave the tour")
        if then == "Next":
            page.press("Back")
    assert not tour.is_visible()
    page.settled(quick=False)
    assert page.ask("asked.chosen") == chosen


def test_few_examples_have_no_tour(chrome, subjects, tmp_path):
    it = subjects["photos"]
    for count in (19, 20):
        data = ImageDataset(it.images[:count], it.labels[:count], it.classes)
        with window(chrome, explorer.write(tmp_path / "page.html", it.model, data)) as page:
            page.settled()
            for name in ("Take the tour: six questions", "Try it on all examples"):
                assert page.get_by_role("button", name=name).is_visible() == (count == 20)
