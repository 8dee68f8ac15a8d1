"""The explorer's page as a person uses it, by mouse and keys; its guided tour by keys alone.

What needs a browser needs Chromium and `pip install -e ".[browser]"`.
"""

import re

import browser
import numpy as np
import pytest
import torch
from live_page import ask, picture, window
from test_explorer_numbers import steps

from vit_course.explorer import __main__ as command
from vit_steps import ViT, maps
from vit_steps.training import load_model, load_weights
from vit_steps.weights import SCATTERED

pytestmark = pytest.mark.slow

MODEL = load_model(SCATTERED).eval().requires_grad_(False)
C = MODEL.config
L, H = C.depth, C.num_heads
KEYS = {"up": "ArrowUp", "down": "ArrowDown", "left": "ArrowLeft", "right": "ArrowRight"}
STAGES = ("photo", "patches", "cls + positions", "QKV heads", "attention", "MLP", "head")


@pytest.fixture(scope="module")
def chrome():
    with browser.launched() as chrome:
        yield chrome


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("stored") / "explorer.html"
    command.main(["--out", str(path), "--no-browser"])
    return path


@pytest.fixture
def page(chrome, path):
    with window(chrome, path) as page:
        yield page
        assert 0 < ask(page, "() => vitState.state.milliseconds") < float("inf")


@pytest.fixture(scope="module")
def examples():
    """The pictures in the page, as its bytes say them (k, C, H, W), and their labels."""
    found = command.held_out("scattered", load_weights(SCATTERED), 24)
    images, labels = found[list(range(0, len(found), len(found) // 24))[:24]]
    return ((images + 1) * 127.5).round() / 127.5 - 1, labels


def open_stage(page, name):
    stages = page.get_by_role("navigation", name="Stages")
    stages.get_by_role("button", name=re.compile(f"^{re.escape(name)}")).click()


def state(page, script):
    """What stands in the page's state; see state.js."""
    return ask(page, f"() => vitState.state.{script}")


def pixels(page):
    return torch.tensor(ask(page, "() => Array.from(vitState.pixels())")).view(1, 1, 16, 16)


def shares(logits):
    return logits.softmax(dim=-1)


def numbers(text):
    """The numbers in a text, each with how far off it may be for its being rounded."""
    found = re.findall(r"−?\d+(?:\.\d+)?", text)
    return [
        (float(one.replace("−", "-")), 0.5 * 10 ** -len(one.partition(".")[2]) + 1e-3)
        for one in found
    ]


def says(text, *wanted):
    """A text has these numbers, in this order, each rounded as it stands there."""
    found = numbers(text)
    assert len(found) == len(wanted), f"{text!r}: {wanted}"
    for (value, slack), right in zip(found, wanted, strict=True):
        assert abs(value - right) <= slack, f"{text!r}: {value} is not {right}"


def percent(share):
    """What stands for a share from 0 to 1: under half a percent the 1 of "under 1%"."""
    return 1 if 0 < share < 0.005 else 100 * float(share)


# By mouse and keys -------------------------------------------------------------------------------


def canvas(page):
    return page.get_by_role("application", name=re.compile("^The picture,"))


def at(page, row, column):
    """Where a pixel's middle is in the window."""
    box = canvas(page).bounding_box()
    return (
        box["x"] + (column + 0.5) / 16 * box["width"],
        box["y"] + (row + 0.5) / 16 * box["height"],
    )


def drag(page, *places):
    page.mouse.move(*at(page, *places[0]))
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*at(page, *place))
    page.mouse.up()
    ask(page, "() => 0")  # drawn


def use(page, tool):
    page.get_by_role("group", name="The pointer can").get_by_label(tool, exact=True).check()


def answer(page):
    return page.get_by_role("region", name="Answer").get_by_role("paragraph").text_content()


def bars(page):
    """The table of the answer: its columns' names, and its rows of percentages and logits."""
    table = page.get_by_role("region", name="Answer").get_by_role("table")
    names = [name for name in table.get_by_role("columnheader").all_text_contents() if name]
    rows = [
        row.locator(".number").all_text_contents() for row in table.get_by_role("row").all()[1:]
    ]
    return names, rows


def agree(page, *readings):
    """The answer in words and bars is that of these logits (classes,), the whole model's first."""
    ask(page, "() => 0")
    parts = []
    for logits in reversed(readings):
        best = int(logits.argmax())
        parts += [best, 100 * float(shares(logits)[best])]
    says(answer(page), *parts)
    _, rows = bars(page)
    for i, row in enumerate(rows):
        says(
            " ".join(row),
            *(percent(shares(logits)[i]) for logits in readings),
            float(readings[-1][i]),
        )


def read(images, **without):
    """The logits (classes,) of one picture."""
    return steps(MODEL, images, **without)["logits"][0, 0]


def looked(page, token, weights):
    """What is said below the large map is true of the weights (N,) of the token that asks."""
    told = page.get_by_role("region", name="Where it looks").get_by_text("Of the patches, ").first
    text = told.text_content()
    name = "cls" if token == 0 else f"patch {token - 1}"
    start = f"Of the patches, {name} takes most from "
    assert text.startswith(start)
    top = weights[1:].topk(3)
    parts = [part for i in range(3) for part in (int(top.indices[i]), percent(top.values[i]))]
    says(text.removeprefix(start), *parts, percent(weights[0]))


def test_a_patch_is_picked_and_its_looks_are_said(page, examples):
    _, attention = MODEL(examples[0][:1], return_attention=True)
    looked(page, 0, attention[L - 1][0, 0, 0])
    page.mouse.click(*at(page, 6, 9))  # patch 6
    assert state(page, "query") == 7
    looked(page, 7, attention[L - 1][0, 0, 7])
    region = page.get_by_role("region", name="Where it looks")
    region.get_by_role("radio", name="the mean").check()
    ask(page, "() => 0")
    looked(page, 7, attention[L - 1][0, :, 7].mean(dim=0))
    region.get_by_role("radio", name="rollout").check()
    ask(page, "() => 0")
    looked(page, 7, maps.rollout(attention)[0, 7])
    region.get_by_role("button", name="block 1, head 2").click()
    ask(page, "() => 0")
    looked(page, 7, attention[1][0, 2, 7])
    page.mouse.click(*at(page, 6, 9))
    assert state(page, "query") == 0
    looked(page, 0, attention[1][0, 2, 0])
    canvas(page).focus()  # where the mouse was, patch 6; one to the left
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert state(page, "query") == 6


def test_without_positions_before_and_after_stand_beside_each_other(page, examples):
    image = examples[0][:1]
    assert bars(page)[0] == ["class", "probability", "logit"]
    agree(page, read(image))
    box = page.get_by_label("without the positions")
    box.check()
    ask(page, "() => 0")
    assert bars(page)[0] == ["class", "whole", "without", "its logit"]
    agree(page, read(image), read(image, positions=True))
    picture(page, "without_positions")
    page.get_by_role("button", name="Put all back").click()
    ask(page, "() => 0")
    assert not box.is_checked()
    assert bars(page)[0] == ["class", "probability", "logit"]
    agree(page, read(image))


@pytest.mark.parametrize(
    ("label", "without"),
    [
        ("without the division by √d", {"scale": True}),
        ("without the residuals", {"residuals": True}),
        ("without the last norm", {"norms": ["norm"]}),
        ("without block 1, all of it", {"blocks": [1]}),
        ("without block 2, norm2", {"norms": ["blocks.2.norm2"]}),
        ("without block 0, norm1", {"norms": ["blocks.0.norm1"]}),
        ("without block 3, head 1", {"heads": [[3, 1]]}),
    ],
)
def test_each_box_takes_out_what_it_says(label, without, page, examples):
    box = page.get_by_label(label)
    box.focus()
    page.keyboard.press("Space")
    image = examples[0][:1]
    agree(page, read(image), read(image, **without))
    page.keyboard.press("Space")
    agree(page, read(image))


def test_covered_patches_are_covered_in_all_examples(page, examples):
    images, labels = examples
    use(page, "cover a patch")
    drag(page, (5, 5), (5, 10), (10, 10), (10, 5))
    covered = images.clone()
    covered[..., 4:12, 4:12] = -1
    counts = [
        int((steps(MODEL, x)["logits"][:, 0].argmax(1) == labels).sum()) for x in (images, covered)
    ]
    page.get_by_role("button", name="Try it on all examples").click()
    found = page.get_by_text("held-out pictures it reads")
    found.wait_for()
    says(found.text_content(), 24, *counts)
    assert counts[1] < counts[0]


def rolled(run, **without):
    """Rollout (N, N) of the first picture: what is out takes no part in it."""
    whole = torch.eye(17, dtype=torch.float64)
    for b, block in enumerate(run["blocks"]):
        used = [
            head["weights"][0]
            for j, head in enumerate(block["heads"])
            if [b, j] not in without.get("heads", [])
        ]
        own = 0 if without.get("residuals") else 0.5
        if b not in without.get("blocks", []):
            whole = ((1 - own) * torch.stack(used).mean(dim=0) + own * torch.eye(17)) @ whole
    return whole


@pytest.mark.parametrize(
    ("out", "without"),
    [
        (["block 3, all of it"], {"blocks": [3]}),
        ([f"block {b}, all of it" for b in range(L)], {"blocks": list(range(L))}),
        (["block 3, head 1", "block 3, head 3"], {"heads": [[3, 1], [3, 3]]}),
        (["the residuals"], {"residuals": True}),
    ],
)
def test_where_it_looks_leaves_out_what_is_out(out, without, page, examples):
    for label in out:
        page.get_by_label(f"without {label}").check()
    run = steps(MODEL, examples[0][:1], **without)
    region = page.get_by_role("region", name="Where it looks")
    region.get_by_role("radio", name="rollout").check()
    ask(page, "() => 0")
    shares_ = rolled(run, **without)[0]
    if "blocks" in without and len(out) == L:
        text = region.get_by_text("Of the patches, ").text_content()
        assert text.endswith("from cls it takes 100%.")
    else:
        looked(page, 0, shares_)
    assert (shares_ - rolled(steps(MODEL, examples[0][:1]))[0]).abs().max() > 0.01
    region.get_by_role("radio", name="the mean").check()
    ask(page, "() => 0")
    if "heads" in without:
        weights = [run["blocks"][3]["heads"][j]["weights"][0, 0] for j in (0, 2)]
        looked(page, 0, torch.stack(weights).mean(dim=0))
    unused = " It is left out: nothing of this is used."
    text = region.get_by_text("Of the patches, ").text_content()
    assert text.endswith(unused) == ("blocks" in without)
    gone = region.get_by_role("button", name=re.compile("left out"))
    assert gone.count() == len(without.get("blocks", [])) * H + len(without.get("heads", []))


def test_a_patch_of_the_large_map_says_its_share(page, examples):
    weights = steps(MODEL, examples[0][:1])["blocks"][L - 1]["heads"][0]["weights"][0, 0]
    region = page.get_by_role("region", name="Where it looks")
    map_ = region.get_by_role("img")
    map_.scroll_into_view_if_needed()
    box = map_.bounding_box()
    for patch in (6, 0, 15):
        row, column = divmod(patch, 4)
        page.mouse.move(
            box["x"] + (column + 0.5) * box["width"] / 4, box["y"] + (row + 0.5) * box["height"] / 4
        )
        says(
            region.get_by_text(re.compile(r"^Patch \d+:")).text_content(),
            patch,
            percent(weights[1 + patch]),
        )


def test_it_is_tried_on_all_examples(page, examples):
    images, labels = examples
    for label, without in (
        ("the positions", {"positions": True}),
        ("block 2, all of it", {"blocks": [2]}),
    ):
        page.get_by_label(f"without {label}").check()
        page.get_by_role("button", name="Try it on all examples").click()
        found = page.get_by_text("held-out pictures it reads")
        found.wait_for()
        counts = [
            int((steps(MODEL, images, **out)["logits"][:, 0].argmax(1) == labels).sum())
            for out in ({}, without)
        ]
        says(found.text_content(), 24, *counts)
        assert counts[1] < counts[0]
        open_stage(page, "QKV heads")  # who only looks elsewhere keeps it
        ask(page, "() => 0")
        says(found.text_content(), 24, *counts)
        page.get_by_role("button", name="Put all back").click()
        ask(page, "() => 0")
        assert found.count() == 0


def test_what_was_tried_is_told_only_while_it_is_so(page):
    ask(page, "() => { vitState.countRight = () => new Promise(go => (vitState.read = go)); }")
    button = page.get_by_role("button", name="Try it on all examples")
    box = page.get_by_label("without the positions")
    found = page.locator("#found")
    told = (
        "Of 24 held-out pictures it reads 12 rightly when whole, and 12 with this out or covered."
    )
    for meanwhile, said in ((lambda: open_stage(page, "QKV heads"), told), (box.uncheck, "")):
        box.check()
        button.click()
        assert found.text_content() == "It reads …"
        meanwhile()
        for _ in range(2):  # before and after
            ask(page, "() => vitState.read(12)")
        assert found.text_content() == said


def test_the_head_is_read_after_each_block(page, examples):
    run = steps(MODEL, examples[0][:1])
    region = page.get_by_role("region", name="Which block decides")
    lines = region.get_by_role("listitem").all_text_contents()
    streams = [run["start"], *(block["output"] for block in run["blocks"])]
    for i, (line, x) in enumerate(zip(lines, streams, strict=True)):
        logits = MODEL.head(MODEL.norm(x.float()))[0, 0]
        best = int(logits.argmax())
        says(line, max(i - 1, 0), best, 100 * float(shares(logits)[best]))


# Colours of the maps, from dark to light.
SHARES = np.array([[0, 32, 77], [55, 72, 108], [124, 123, 120], [186, 174, 108], [255, 234, 70]])


def shade(share):
    return np.array([np.interp(share * 4, range(5), column) for column in SHARES.T])


# The middles of the 16 patches of each large map, as red, green, blue.
MIDDLES = """() => [...document.querySelectorAll('#looks canvas[role=img]')].map(canvas => {
  const { width, height } = canvas, side = width / 4;
  const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
  return Array.from({ length: 16 }, (_, i) => {
    const x = Math.floor((i % 4 + 0.6) * side), y = Math.floor((Math.floor(i / 4) + 0.6) * side);
    return Array.from(data.slice(4 * (y * width + x), 4 * (y * width + x) + 3));
  });
})"""


def test_the_twin_stands_beside_it_on_one_scale(page, examples):
    image = examples[0][:1]
    region = page.get_by_role("region", name="Where it looks")
    assert region.get_by_role("img").count() == 1
    page.get_by_label("beside it an untrained twin").check()
    ask(page, "() => 0")
    assert region.get_by_role("img").count() == 2
    script = "name => Array.from(vitState.twinWeights()[name].data)"
    for name, x in twin().state_dict().items():
        assert torch.allclose(torch.tensor(ask(page, script, name)).float(), x.flatten()), name
    runs = []
    for model in (MODEL, twin()):
        _, attention = model(image, return_attention=True)
        runs.append(torch.stack(attention)[:, 0, :, 0, 1:])  # (L, h, n): what cls takes
    most = float(max(run.max() for run in runs))
    ends = re.findall(r"\d+\.\d\d", region.get_by_text("One scale").text_content())
    says(" and ".join(ends), 0, most)
    # Each patch's colour is that of its share of the same largest one.
    told = ask(page, MIDDLES)
    veiled = [np.array(middles) for middles in told]
    flat = [np.array([shade(float(w) / most) for w in run[L - 1, 0]]) for run in runs]
    # Under the veil lies the picture, the same in both: what differs is the veil alone.
    found, wanted = veiled[0] - veiled[1], flat[0] - flat[1]
    strength = (found * wanted).sum() / (wanted * wanted).sum()
    assert 0.5 < strength < 0.95
    assert np.abs(found - strength * wanted).max() < 3
    assert np.abs(wanted).max() > 30
    picture(page, "twin")
    # What is out for the model is out for the twin.
    use(page, "hide from cls")
    page.mouse.click(*at(page, 6, 9))
    ask(page, "() => 0")
    weights = steps(twin(), image, hidden=[6])["blocks"][L - 1]["heads"][0]["weights"][0, 0]
    text = region.get_by_text("Of the patches, ").last.text_content()
    says(text.partition("; ")[2], percent(weights[0]))
    region.get_by_role("img").last.hover(position={"x": 150, "y": 90})
    assert region.get_by_text("Patch 6: 0%").count() == 1


# The road ----------------------------------------------------------------------------------------


def test_stages_block_and_head_are_chosen_by_keys(page):
    stages = page.get_by_role("navigation", name="Stages").get_by_role("button")
    stages.first.focus()
    for i, name in enumerate(STAGES):
        page.keyboard.press("Enter" if i % 2 else "Space")
        assert state(page, "stage") == name
        assert page.get_by_role("heading", name=name, exact=True).is_visible()
        pressed = [one.get_attribute("aria-pressed") == "true" for one in stages.all()]
        assert pressed == [one == name for one in STAGES]
        for key, within in (("block", STAGES[3:6]), ("head", STAGES[3:5])):
            chooser = page.get_by_role("combobox", name=key, exact=True)
            assert chooser.is_visible() == (name in within), name
        page.keyboard.press("Tab")
    open_stage(page, "attention")
    for key, count in (("block", L), ("head", H)):
        chooser = page.get_by_role("combobox", name=key, exact=True)
        chooser.focus()
        page.keyboard.press("Home")
        for _ in range(count - 2):
            page.keyboard.press("ArrowDown")
        assert state(page, key) == count - 2


def formulas(run):
    """Of some numbers: stage, table, row and column, and what their sentence must say."""
    block = run["blocks"][L - 1]
    parts = {name: x[0] for name, x in block["heads"][0].items()}
    place, cls = MODEL.tokens.pos_embed[0], MODEL.tokens.cls_token[0, 0]
    embedded, start, logits = run["embedded"][0], run["start"][0], run["logits"][0, 0]
    bias, pixel = MODEL.patch_embed.proj.bias, run["patches"][0, 5, 6]
    whole = logits.exp().sum()
    value = embedded[5, 9]
    yield "photo", "pixels", (5, 6), [5, 6, pixel, (pixel + 1) * 127.5, 127.5, 1]
    yield "patches", "the patches' tokens", (5, 9), [value, 5, 9, value - bias[9], bias[9]]
    for i, j in ((6, 9), (16, 40), (1, 0)):
        wanted = [start[i, j], i - 1, embedded[i - 1, j], place[i, j]]
        yield "cls + positions", "tokens, cls first", (i, j), wanted
    yield "cls + positions", "tokens, cls first", (0, 3), [start[0, 3], cls[3], place[0, 3]]
    qkv = MODEL.blocks[L - 1].attn.qkv.bias
    for which, (letter, label) in enumerate({"q": "query q", "k": "key k", "v": "value v"}.items()):
        number, line = parts[letter][6, 7], which * C.embed_dim + 7
        wanted = [number, 5, line, number - qkv[line], qkv[line]]
        yield "QKV heads", label, (6, 7), wanted
    d = C.embed_dim // H
    for i, j in ((6, 9), (3, 3)):
        product, score = parts["products"][i, j], parts["scores"][i, j]
        yield "attention", "q · k", (i, j), [product, i - 1, j - 1]
        wanted = [score, i - 1, j - 1, d, product, d**0.5]
        yield "attention", "scores = q · k / √d", (i, j), wanted
        weight, total = parts["weights"][i, j], parts["scores"][i].exp().sum()
        wanted = [percent(weight), score, score.exp(), total]
        yield "attention", "weights = softmax", (i, j), wanted
    made, shift = block["attended"][0], MODEL.blocks[L - 1].attn.proj.bias
    wanted = [made[6, 9], H, 5, 9, made[6, 9] - shift[9], shift[9]]
    yield "attention", f"what all {H} heads together add", (6, 9), wanted
    top = parts["weights"][6].topk(2)
    wanted = [parts["mixed"][6, 4]]
    for weight, t in zip(top.values, top.indices, strict=True):
        wanted += [weight, parts["v"][t, 4], *([t - 1] if t else [])]
    yield "attention", "mixture", (6, 4), [*wanted, 15]
    bent, hidden = block["bent"][0, 6, 9], block["hidden"][0, 6, 9]
    yield "MLP", "after GELU", (6, 9), [bent, hidden, 5, 9, 1]
    made, shift = block["made"][0], MODEL.blocks[L - 1].mlp.fc2.bias
    yield "MLP", "what it adds", (6, 9), [made[6, 9], 5, 9, 2, made[6, 9] - shift[9], shift[9]]
    lengths = [block["output"][0, 6].norm(), made[6].norm()]
    yield "MLP", "each token's length", (6, 2 * L), [5, L - 1, *lengths]
    bias = MODEL.head.bias
    for j in (0, 3, int(logits.argmax())):
        yield "head", "logits", (0, j), [j, logits[j], j, logits[j] - bias[j], bias[j]]
        share = percent(shares(logits)[j])
        yield "head", "probabilities", (0, j), [j, share, logits[j], logits[j].exp(), whole]


def test_each_number_says_how_it_came_about(page, examples):
    asked = {}
    for stage, label, (i, j), wanted in formulas(steps(MODEL, examples[0][:1])):
        open_stage(page, stage)
        road = page.get_by_role("region", name="The road")
        name = re.compile("^" + label.replace("/", "."))  # a slash would end Playwright's own
        table = road.get_by_role("application", name=name)
        figure = table.locator("xpath=ancestor::figure")
        table.focus()
        size = re.search(r"(\d+) by (\d+) numbers", table.get_attribute("aria-label"))
        rows, columns = map(int, size.groups())
        # To the first number: of a wide table it is asked first, of another perhaps not.
        up, left = (rows, columns) if columns < 20 else asked.get(label, (0, 0))
        asked[label] = i, j
        for key, count in (("up", up), ("left", left), ("down", i), ("right", j)):
            for _ in range(count):
                page.keyboard.press(KEYS[key])
        told = figure.locator(".formula").text_content()
        says(told.replace("e^", "e "), *map(float, wanted))


LEFT_OUT = [
    ("the positions", "cls + positions", "tokens, cls first", "its place is left out"),
    ("the division by √d", "attention", "scores = q · k", "√d is left out"),
    ("block 3, head 0", "attention", "mixture", "this head is left out"),
    ("block 3, norm1", "QKV heads", "query q", "= cls · row 0 of the qkv weight"),
    ("block 3, norm2", "MLP", "after GELU", "which is cls · row 0 of fc1"),
    ("block 3, all of it", "MLP", "each token's length", "the block is left out"),
    ("the residuals", "MLP", "each token's length", "it took the stream's place"),
]


@pytest.mark.parametrize(("out", "stage", "label", "words"), LEFT_OUT)
def test_a_number_says_what_was_left_out(out, stage, label, words, page):
    open_stage(page, stage)
    road = page.get_by_role("region", name="The road")
    table = road.get_by_role("application", name=re.compile("^" + label))
    told = table.locator("xpath=ancestor::figure").locator(".formula")
    assert words not in told.text_content()
    page.get_by_label(f"without {out}").check()
    ask(page, "() => 0")
    assert words in told.text_content()


def test_a_stage_says_what_is_left_out(page):
    road = page.get_by_role("region", name="The road")
    for out, stage, words in (
        ("the positions", "cls + positions", "the embedding of each token's place is left out"),
        ("block 3, all of it", "QKV heads", "Block 3 is left out"),
        ("block 3, all of it", "attention", "Block 3 is left out"),
        ("block 3, all of it", "MLP", "Block 3 is left out"),
        ("the residuals", "MLP", "that takes the stream's place"),
    ):
        open_stage(page, stage)
        assert words not in road.text_content()
        page.get_by_label(f"without {out}").check()
        ask(page, "() => 0")
        assert words in road.text_content()
        page.get_by_role("button", name="Put all back").click()
        ask(page, "() => 0")


def test_with_every_patch_hidden_cls_sees_itself(page):
    use(page, "hide from cls")
    for row in range(2, 16, 4):
        for column in range(2, 16, 4):
            page.mouse.click(*at(page, row, column))
    assert len(state(page, "without.hidden")) == 16
    looks = page.get_by_role("region", name="Where it looks")
    for kind in ("one head", "the mean"):
        looks.get_by_role("radio", name=kind).check()
        ask(page, "() => 0")
        text = looks.get_by_text("Of the patches, ").text_content()
        assert text == "Of the patches, cls takes nothing; from cls it takes 100%."
    page.get_by_role("button", name="clear the picture").click()
    assert state(page, "without.hidden") == []  # it was so of the picture before


# The tour, by keys alone -------------------------------------------------------------------------


def tab(page, target, key="Tab"):
    """Press Tab, or Shift+Tab, until something has the focus."""
    for _ in range(200):
        if target.count() and target.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press(key)
    pytest.fail(f"{key} does not reach {target}")


def draws(seed=1):
    """Shares from 0 to 1: the page's generator of random numbers (Numerical Recipes)."""
    last = seed
    while True:
        last = (last * 1664525 + 1013904223) % 2**32
        yield (last + 0.5) / 2**32


def twin():
    """The untrained twin: as before training, but drawn by the page's generator."""
    model, share = ViT(C).eval().requires_grad_(False), draws()

    def normal():
        size = (-2 * np.log(next(share))) ** 0.5
        return 0.02 * size * np.cos(2 * np.pi * next(share))

    reach = (1 / (C.in_channels * C.patch_size**2)) ** 0.5
    for name, x in model.state_dict().items():
        if name.startswith("patch_embed"):
            drawn = [reach * (2 * next(share) - 1) for _ in range(x.numel())]
        elif name.endswith("bias"):
            drawn = [0.0] * x.numel()
        elif "norm" in name:
            drawn = [1.0] * x.numel()
        else:
            drawn = [normal() for _ in range(x.numel())]
        x.copy_(torch.tensor(drawn).view(x.shape))
    return model


def measured(images, labels):
    """Of each step: the number of the right answer, and the numbers that it reveals."""
    count = len(images)

    def run(model=MODEL, pictures=images, **without):
        return steps(model, pictures, **without)

    def right(reading):
        return int((reading["logits"][:, 0].argmax(dim=1) == labels).sum())

    def cls(reading):
        """The weights that cls gives (L, h, B, N)."""
        return torch.stack(
            [torch.stack([h["weights"][:, 0] for h in b["heads"]]) for b in reading["blocks"]]
        )

    def left(after):
        return 0 if after > 0.8 * whole else 1 if after >= 0.3 * whole else 2

    plain = run()
    whole = right(plain)
    yield 2, [C.embed_dim]
    after = right(run(positions=True))
    yield left(after), [after, count, whole]

    light = plain["patches"].mean(dim=2)
    mixed = images.clone()
    for one, bright, dark in zip(mixed, light.argmax(dim=1), light.argmin(dim=1), strict=True):
        (r, c), (y, x) = ((4 * (int(patch) // 4), 4 * (int(patch) % 4)) for patch in (bright, dark))
        one[:, y : y + 4, x : x + 4], one[:, r : r + 4, c : c + 4] = (
            one[:, r : r + 4, c : c + 4].clone(),
            one[:, y : y + 4, x : x + 4].clone(),
        )
    moves = []
    for out in (True, False):
        a, b = (run(pictures=x, positions=out)["probabilities"] for x in (images, mixed))
        moves.append(float((a - b).abs().amax(dim=(1, 2)).mean()))
    yield 0 if moves[0] < 1e-4 else 1 if moves[0] < 0.1 else 2, moves

    tops = cls(plain)[L - 1, :, 0, 1:].argmax(dim=1).tolist()
    different = len(set(tops))
    yield 0 if different == 1 else 1 if different < H else 2, [0, H - 1, *tops]

    bare = run(scale=True)
    before, after = (float(cls(x).amax(dim=-1).mean()) for x in (plain, bare))
    change = after / before
    numbers = [percent(before), percent(after), right(bare), count]
    yield 0 if change > 1.02 else 1 if change > 0.98 else 2, numbers

    after = right(run(residuals=True))
    yield left(after), [after, count, whole]

    counts = [right(run(blocks=[b])) for b in range(L)]
    least = counts.index(max(counts))
    pairs = [number for pair in zip(counts, range(L), strict=True) for number in pair]
    yield 0 if least == 0 else 2 if least == L - 1 else 1, [count, *pairs]

    counts = []
    for x in [plain["start"], *(block["output"] for block in plain["blocks"])]:
        logits = MODEL.head(MODEL.norm(x.float()))[:, 0]
        counts.append(int((logits.argmax(dim=1) == labels).sum()))
    first = next(b for b, found in enumerate(counts) if found >= count / 2)
    pairs = [number for b, n in enumerate(counts[1:]) for number in (n, b)]
    yield 0 if first <= L / 2 else 1 if first < L else 2, [0, counts[0], count, *pairs]

    fresh = run(twin())
    largest, own = float(cls(fresh).amax(dim=-1).mean()), float(cls(fresh)[..., 0].mean())
    shown = [percent(x) for x in (largest, 1 / 17, before)]
    yield 2 if own > 0.5 else 0 if largest < 2 / 17 else 1, [*shown, right(fresh), count, 2]

    _, attention = MODEL(images, return_attention=True)
    marked = maps.rollout(attention)[:, 0, 1:].argmax(dim=1)
    share = draws()
    drawn = []
    for one, top in zip(light, marked, strict=True):
        others = [p for p in range(16) if p != top and one[p] > one.min()]
        drawn.append(others[int(next(share) * len(others))])
    drawn = torch.tensor(drawn)
    found = []
    for patches in (marked, drawn):
        blind = torch.zeros(count, 16, dtype=torch.bool)
        blind[range(count), patches] = True
        logits = maps.blinded(MODEL, images, blind.view(-1, 4, 4))
        found.append(int((logits.argmax(dim=1) == labels).sum()))
    yield 0 if found[0] < found[1] else 1 if found[0] > found[1] else 2, [whole, count, *found]


def test_the_tour_by_keys_from_start_to_finish(page, examples):
    from playwright.sync_api import expect

    opener = page.get_by_role("button", name="Take the tour")
    tour = page.get_by_role("region", name="The tour")
    show = tour.get_by_role("button", name="Show", exact=True)
    told = tour.locator("#revealed")
    tab(page, opener)
    page.keyboard.press("Enter")
    for i, (right, numbers_wanted) in enumerate(measured(*examples)):
        heading = tour.get_by_role("heading")
        expect(heading).to_be_focused()
        assert heading.text_content().startswith(f"{i + 1} of 10 · Lesson ")
        answers = tour.get_by_role("radio")
        texts = tour.get_by_role("group", name="Predict").locator("label").all_text_contents()
        tab(page, show)
        page.keyboard.press("Enter")
        expect(told).to_contain_text("Choose first")
        page.keyboard.press("Shift+Tab")  # to one of the answers
        page.keyboard.press("Space")
        (chosen,) = [k for k, one in enumerate(answers.all()) if one.is_checked()]
        for wanted in ((right + 1) % len(texts), right):
            tab(page, answers.nth(chosen), "Shift+Tab")
            for _ in range((wanted - chosen) % len(texts)):
                page.keyboard.press("ArrowDown")
            chosen = wanted
            assert answers.nth(chosen).is_checked()
            tab(page, show)
            page.keyboard.press("Space")
            verdict = "Yes. " if wanted == right else f"No: {texts[right]}. "
            reveal = told.get_by_role("paragraph").first
            expect(reveal).to_contain_text(re.compile("^" + re.escape(verdict)), timeout=60_000)
            says(reveal.text_content().removeprefix(verdict), *numbers_wanted)
            expect(told).to_contain_text("Try it yourself.")
        picture(page, f"tour_{i + 1}")
        tab(page, tour.get_by_role("button", name="Finish" if i == 9 else "Next"))
        page.keyboard.press("Enter")
    assert i == 9
    expect(tour.get_by_role("heading")).to_be_focused()
    assert tour.get_by_role("heading").text_content() == "The end of the tour"
    says(tour.get_by_text("You answered").text_content(), 10, 10, 0)  # the first answers
    assert tour.get_by_role("button", name="Finish").count() == 0
    tab(page, tour.get_by_role("button", name="Leave the tour"))
    page.keyboard.press("Enter")
    expect(tour).to_be_hidden()
    expect(opener).to_be_focused()
    whole(page)
    assert page.get_by_role("radio", name="pick a patch").is_checked()
    page.keyboard.press("Enter")  # once more, from the first question on
    assert tour.get_by_role("heading").text_content().startswith("1 of 10")


def whole(page):
    """Nothing is out, and nothing says so."""
    assert ask(page, "() => vitState.anyOut() || vitState.state.covered.size") in (False, 0)
    region = page.get_by_role("region", name="Take it out")
    assert not any(box.is_checked() for box in region.get_by_role("checkbox").all())
    assert bars(page)[0] == ["class", "probability", "logit"]


def test_the_tour_goes_back_and_is_left_midway(page):
    from playwright.sync_api import expect

    opener = page.get_by_role("button", name="Take the tour")
    tour = page.get_by_role("region", name="The tour")
    tab(page, opener)
    page.keyboard.press("Space")
    assert tour.get_by_role("button", name="Back").is_disabled()
    for name, place in (("Next", 2), ("Back", 1), ("Next", 2)):
        tab(page, tour.get_by_role("button", name=name))
        page.keyboard.press("Enter")
        expect(tour.get_by_role("heading")).to_be_focused()
        assert tour.get_by_role("heading").text_content().startswith(f"{place} of 10")
    tab(page, tour.get_by_role("radio").first)
    page.keyboard.press("Space")
    tab(page, tour.get_by_role("button", name="Show", exact=True))
    page.keyboard.press("Enter")
    tour.get_by_text("Try it yourself.").wait_for()
    assert state(page, "without.positions") is True
    tab(page, tour.get_by_role("button", name="Leave the tour"))
    page.keyboard.press("Enter")
    expect(tour).to_be_hidden()
    expect(opener).to_be_focused()
    whole(page)


def test_the_tour_gives_back_what_the_learner_had(page):
    page.get_by_role("button", name="clear the picture").click()
    drag(page, (3, 3), (3, 10), (12, 5))
    use(page, "cover a patch")
    page.mouse.click(*at(page, 1, 1))
    page.get_by_role("radio", name="the mean").check()
    page.get_by_label("without block 1, head 2").check()
    mine = pixels(page)
    page.get_by_role("button", name="Take the tour").click()
    assert not torch.equal(pixels(page), mine)
    page.get_by_role("button", name="Leave the tour").click()
    assert torch.equal(pixels(page), mine)
    assert page.get_by_label("without block 1, head 2").is_checked()
    assert state(page, "without.heads") == [[1, 2]]
    for name in ("the mean", "cover a patch"):
        assert page.get_by_role("radio", name=name).is_checked()


def test_the_tour_is_left_while_it_measures(page):
    page.get_by_role("button", name="clear the picture").click()
    drag(page, (3, 3), (3, 10), (12, 5))
    mine = pixels(page)
    page.get_by_role("button", name="Take the tour").click()
    tour = page.get_by_role("region", name="The tour")
    tour.get_by_role("button", name="Next").click()
    tour.get_by_role("radio").first.check()
    ask(page, "() => { vitState.readAll = () => new Promise((go) => (vitState.measured = go)); }")
    ask(page, "() => { vitState.countRight = vitState.readAll; }")
    tour.get_by_role("button", name="Show", exact=True).click()
    tour.get_by_text("Measuring").wait_for()
    tour.get_by_role("button", name="Leave the tour").click()
    for _ in range(2):  # before and after
        ask(page, "() => vitState.measured(12)")
    ask(page, "() => 0")
    assert torch.equal(pixels(page), mine)
    whole(page)


def test_another_guess_takes_the_verdict_away_and_going_back_brings_it_again(page):
    page.get_by_role("button", name="Take the tour").click()
    tour = page.get_by_role("region", name="The tour")
    told, show = tour.locator("#revealed"), tour.get_by_role("button", name="Show", exact=True)
    tour.get_by_role("radio").last.check()
    show.click()
    told.get_by_text("Yes.").wait_for()
    tour.get_by_role("radio").first.check()
    assert told.text_content() == ""
    show.click()
    told.get_by_text("No: 64").wait_for()
    tour.get_by_role("button", name="Next").click()
    assert told.text_content() == ""
    tour.get_by_role("button", name="Back").click()
    assert tour.get_by_role("radio").first.is_checked()
    told.get_by_text("No: 64").wait_for()


def test_what_would_give_the_answer_away_opens_with_it(page):
    page.get_by_role("button", name="Take the tour").click()
    tour = page.get_by_role("region", name="The tour")
    show = tour.get_by_role("button", name="Show", exact=True)
    regions = ("The road", "Where it looks", "Take it out", "Which block decides")
    closed = {1: "The road", 4: "Where it looks", 8: "Which block decides"}

    def missing():
        shown = [name for name in regions if page.get_by_role("region", name=name).count()]
        return [name for name in regions if name not in shown]

    for number in range(1, 11):
        heading = tour.get_by_role("heading").text_content()
        assert heading.startswith(f"{number} of 10")
        wanted = [closed[number]] if number in closed else []
        assert missing() == wanted
        assert tour.get_by_text("It opens").all_text_contents() == [
            f" It opens “{name}” too." for name in wanted
        ]
        assert state(page, "twin") is False  # nor does the twin stand there
        if wanted:
            show.click()  # without a guess
            assert missing() == wanted
            tour.get_by_role("radio").first.check()
            show.click()
            tour.get_by_text("Try it yourself.").wait_for()
            assert missing() == []
            ask(page, "() => 0")
            region = page.get_by_role("region", name=wanted[0])
            assert region.locator("canvas").first.bounding_box()["width"] > 50
        if number < 10:
            tour.get_by_role("button", name="Next").click()
    while not tour.get_by_role("heading").text_content().startswith("4 of 10"):
        tour.get_by_role("button", name="Back").click()
    assert missing() == []  # it was answered
    tour.get_by_role("radio").last.check()
    tour.get_by_role("button", name="Back").click()
    tour.get_by_role("button", name="Next").click()
    assert missing() == ["Where it looks"]
    tour.get_by_role("button", name="Leave the tour").click()
    assert missing() == []


def test_what_there_is_to_try_shows_what_was_said(page, examples):
    images, _ = examples
    page.get_by_role("button", name="Take the tour").click()
    tour = page.get_by_role("region", name="The tour")

    def go_to(number):
        while not tour.get_by_role("heading").text_content().startswith(f"{number} of 10"):
            tour.get_by_role("button", name="Next").click()
        tour.get_by_role("radio").first.check()
        tour.get_by_role("button", name="Show", exact=True).click()
        tour.get_by_text("Try it yourself.").wait_for()
        ask(page, "() => 0")

    go_to(3)  # two patches changed: with the positions back, another answer
    place = int(re.search(r"example (\d+): (\d), two", page.inner_text("#input"))[1]) - 1
    mixed = pixels(page)
    assert torch.allclose(mixed.flatten().sort()[0], images[place].flatten().sort()[0], atol=1e-6)
    agree(page, read(mixed), read(mixed, positions=True))
    box = tour.get_by_label("without the positions")
    assert box.is_checked()
    box.uncheck()
    agree(page, read(mixed))
    assert not page.locator("#without-positions").is_checked()
    assert (shares(read(mixed)) - shares(read(images[[place]]))).abs().max() > 0.5
    said = int(re.search(r"the model says (\d)\.", tour.text_content())[1])
    assert said == int(read(images[[place]]).argmax()) != int(read(mixed).argmax())
    page.get_by_role("button", name="the next example").click()
    tour.get_by_role("button", name="Show", exact=True).click()  # once more: all as it is told
    ask(page, "() => 0")
    assert torch.equal(pixels(page), mixed)
    tour.get_by_role("radio").last.check()  # another guess: all as the question began
    ask(page, "() => 0")
    assert state(page, "example") == 0
    assert box.count() == 0

    tour.get_by_role("button", name="Next").click()  # what was leafed to is not what is told of
    page.get_by_role("button", name="the next example").click()
    go_to(4)
    assert state(page, "example") == 0

    go_to(7)  # the picture in which a head of the block that is missed most matters most
    block = int(re.search(r"head of block (\d)", tour.text_content())[1])
    plain = steps(MODEL, images)["probabilities"]
    changes = [
        (steps(MODEL, images, heads=[[block, j]])["probabilities"] - plain).abs().amax(dim=(1, 2))
        for j in range(H)
    ]
    changes = torch.stack(changes).amax(dim=0)
    assert state(page, "example") == int(changes.argmax())
    assert changes.max() > 0.3

    go_to(10)
    looks = page.get_by_role("region", name="Where it looks")
    assert looks.get_by_role("radio", name="rollout").is_checked()
    assert page.get_by_role("radio", name="hide from cls").is_checked()
    tour.get_by_role("button", name="Back").click()
    ask(page, "() => 0")
    assert page.get_by_role("radio", name="pick a patch").is_checked()
    assert looks.get_by_role("radio", name="one head").is_checked()
    tour.get_by_role("button", name="Next").click()
    ask(page, "() => 0")
    assert page.get_by_role("radio", name="hide from cls").is_checked()  # as it was shown before
    tour.get_by_role("button", name="Leave the tour").click()
    assert page.get_by_role("radio", name="pick a patch").is_checked()
