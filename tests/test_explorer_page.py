"""The explorer's page in a real Chromium: right numbers, a closed page, a look at any width.

Skipped where Chromium or `pip install -e ".[browser]"` is missing; with BROWSER=all in the
environment, as in CI, they must be there. Screenshots go to the folder BROWSER_OUT.
"""

import base64
import json
import os
import re
import signal
import threading
from contextlib import contextmanager
from copy import deepcopy
from io import BytesIO
from pathlib import Path

import browser
import numpy as np
import pytest
import torch
from helpers import close
from PIL import Image
from torch import nn
from torch.nn import functional as F

from vit_course import explorer
from vit_course.explorer import __main__ as command
from vit_course.explorer import pages
from vit_steps import ViT, ViTConfig, maps
from vit_steps.training import data, load_model, load_weights
from vit_steps.training.dataset import ImageDataset

pytestmark = pytest.mark.slow

LIMIT = 30_000  # milliseconds
STAGES = ("photo", "patches", "cls + positions", "QKV heads", "attention", "MLP", "head")


# A window ----------------------------------------------------------------------------------------


@contextmanager
def window(chrome, path, wide=1440, quiet=True, limit=240, **options):
    """A page of its own. At the end it must have said nothing, and have asked for nothing else.

    Args:
        path: the file.
        wide: the window's width, in pixels.
        quiet: False where the test provokes what the page objects to.
        limit: so many seconds, then Chromium is ended: a page that hangs answers nothing.
    """
    session = chrome.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    (number,) = [process["id"] for process in processes if process["type"] == "browser"]
    end = threading.Timer(limit, os.kill, (number, signal.SIGKILL))
    end.start()
    context = chrome.new_context(viewport={"width": wide, "height": 900}, **options)
    context.set_default_timeout(LIMIT)
    page, heard, known = context.new_page(), [], (path.as_uri(), "about:srcdoc")
    page.on("console", lambda m: heard.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("request", lambda r: heard.append(r.url) if r.url not in known else None)

    def refuse(dialog):
        heard.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    page.on("dialog", refuse)
    try:
        page.goto(path.as_uri())
        yield page
        if quiet:
            assert heard == []
    finally:
        context.close()
        end.cancel()


def ask(page, script, argument=None):
    """What a function in JavaScript returns after the next frame, in which the page draws."""
    script = f"""async x => {{
      await new Promise(requestAnimationFrame);
      return ({script})(x);
    }}"""
    return page.evaluate(script, argument)


def picture(page, name, **options):
    """Take a screenshot, where they are wanted."""
    if out := os.environ.get("BROWSER_OUT"):
        page.screenshot(path=Path(out) / f"explorer_{name}.png", **options)


def open_stage(page, name):
    stages = page.get_by_role("navigation", name="Stages")
    stages.get_by_role("button", name=re.compile(f"^{re.escape(name)}")).click()


@pytest.fixture(scope="module")
def chrome():
    with browser.launched() as chrome:
        yield chrome


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The page that the command writes without a word."""
    path = tmp_path_factory.mktemp("stored") / "explorer.html"
    command.main(["--out", str(path), "--no-browser"])
    return path


def test_a_page_that_hangs_ends_the_wait(stored):
    with browser.launched() as chrome:
        from playwright.sync_api import Error

        with window(chrome, stored, limit=3) as page, pytest.raises(Error, match="closed"):
            ask(page, "() => { while (true); }")


# What PyTorch makes of it ------------------------------------------------------------------------


def steps(model, images, **without):
    """Every intermediate of a ViT by the names of model.js, in torch's own functions and 64 bits.

    Args:
        model: a ViT, or the learner's.
        images: (B, C, H, W).
        without: as in model.js.

    Returns:
        The names with tensors whose first axis is B; "blocks" a list of such; in a block, "heads" a
        list of such.
    """
    c, x = model.config, images.double()
    given = {name: tensor.double() for name, tensor in model.state_dict().items()}
    P, h, d = c.patch_size, c.num_heads, c.embed_dim // c.num_heads

    def linear(name, x):
        return F.linear(x, given[f"{name}.weight"], given.get(f"{name}.bias"))

    def norm(name, x):
        if name in without.get("norms", ()):
            return x
        return F.layer_norm(
            x, x.shape[-1:], given[f"{name}.weight"], given[f"{name}.bias"], c.norm_eps
        )

    def stream(x, branch):
        return branch if without.get("residuals") else x + branch

    cut = x.unfold(2, P, P).unfold(3, P, P)  # (B, C, rows, cols, P, P)
    found = {"patches": cut.permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2)}
    weight, bias = given["patch_embed.proj.weight"], given["patch_embed.proj.bias"]
    found["embedded"] = F.conv2d(x, weight, bias, stride=P).flatten(2).mT
    cls = given["tokens.cls_token"].expand(len(x), 1, -1)
    x = torch.cat([cls, found["embedded"]], dim=1)
    if not without.get("positions"):
        x = x + given["tokens.pos_embed"]
    found |= {"start": x, "blocks": []}
    for b in range(c.depth):
        block, name = {"input": x}, f"blocks.{b}"
        block["norm1"] = norm(f"{name}.norm1", x)
        qkv = linear(f"{name}.attn.qkv", block["norm1"]).unflatten(-1, (3, h, d))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (B, h, N, d)
        products = q @ k.mT
        scores = products if without.get("scale") else products / d**0.5
        scores = scores.clone()
        scores[:, :, 0, [1 + patch for patch in without.get("hidden", ())]] = -torch.inf
        weights = scores.softmax(dim=-1)
        mixed = weights @ v
        mixed[:, [head for at, head in without.get("heads", ()) if at == b]] = 0
        parts = dict(q=q, k=k, v=v, products=products, scores=scores, weights=weights, mixed=mixed)
        block["heads"] = [{key: part[:, i] for key, part in parts.items()} for i in range(h)]
        block["merged"] = mixed.transpose(1, 2).flatten(2)
        block["attended"] = linear(f"{name}.attn.proj", block["merged"])
        block["middle"] = stream(x, block["attended"])
        block["norm2"] = norm(f"{name}.norm2", block["middle"])
        block["hidden"] = linear(f"{name}.mlp.fc1", block["norm2"])
        block["bent"] = F.gelu(block["hidden"])
        block["made"] = linear(f"{name}.mlp.fc2", block["bent"])
        block["output"] = stream(block["middle"], block["made"])
        if b in without.get("blocks", ()):
            block["output"] = x
        x = block["output"]
        found["blocks"].append(block)
    found["norm"] = norm("norm", x)
    pooled = found["norm"][:, 1:].mean(dim=1) if c.pool == "mean" else found["norm"][:, 0]
    logits = linear("head", pooled)
    return found | {
        "pooled": pooled[:, None],
        "logits": logits[:, None],
        "probabilities": logits.softmax(dim=-1)[:, None],
    }


def compare(page_says, torch_says, place="vit", atol=1e-4):
    """All that the page computed equals the first picture's of PyTorch, name by name."""
    if isinstance(torch_says, torch.Tensor):
        shape = (page_says["rows"], page_says["cols"])
        assert shape == tuple(torch_says[0].shape), place
        values = torch.tensor(page_says["data"], dtype=torch.float64).view(shape)
        far = (values - torch_says[0]).nan_to_num().abs().max()  # −∞ less −∞ is NaN
        assert values.isinf().equal(torch_says[0].isinf()), place
        assert not values.isnan().any(), place
        assert far < atol, f"{place}: {far:.2e}"
    elif isinstance(torch_says, list):
        assert len(page_says) == len(torch_says), place
        for i, (one, other) in enumerate(zip(page_says, torch_says, strict=True)):
            compare(one, other, f"{place}[{i}]", atol)
    else:
        assert set(page_says) - {"gone"} == set(torch_says), place  # a mark of what is out
        for name, other in torch_says.items():
            compare(page_says[name], other, f"{place}.{name}", atol)


# All of it as plain lists, for the way out of the page.
VIT = """([pixels, without]) => {
  const plain = x => x instanceof Float32Array ? Array.from(x)
    : Array.isArray(x) ? x.map(plain)
    : Object(x) === x ? Object.fromEntries(Object.entries(x).map(([k, v]) => [k, plain(v)])) : x;
  const run = vitModel.vit(
    Float32Array.from(pixels), vitState.weights, vitState.config, without);
  const { pixels: _, without: __, ...rest } = run;
  return plain({ ...rest, rollout: vitModel.rollout(run.blocks, !without.residuals) });
}"""


def vit(page, image, **without):
    """What model.js makes of one picture (C, H, W), with the page's own weights."""
    found = ask(page, VIT, [image.flatten().tolist(), without])
    return found, found.pop("rollout")


def lively(config):
    """A model whose numbers are all of a size that shows: no flat attention, no bias of 0."""
    model = ViT(config).eval()
    with torch.no_grad():
        for name, x in model.named_parameters():
            if name.endswith("weight") and x.ndim > 1:
                x.normal_(std=1.5 / x[0].numel() ** 0.5)
            else:
                x.normal_(mean="norm" in name and name.endswith("weight"), std=0.3)
    return model


def written(folder, model, *given, **options):
    return explorer.write(folder / "page.html", model, *given, **options)


@pytest.mark.parametrize(
    "options",
    [
        "8, 4, 1, 3, embed_dim=6, depth=1, num_heads=1",
        "8, 4, 3, 3, embed_dim=12, depth=2, num_heads=3, pool='mean'",
        "(6, 9), 3, 3, 5, embed_dim=12, depth=2, num_heads=2, qkv_bias=False",
        "(15, 5), 5, 2, 4, embed_dim=16, depth=3, num_heads=4, mlp_ratio=1.5, pool='mean'",
        "(4, 16), 2, 2, 12, embed_dim=12, depth=1, num_heads=4, norm_eps=0.01",
        "16, 4, 1, 10, embed_dim=64, depth=4, num_heads=4",
        "16, 4, 1, 10, embed_dim=32, depth=4, num_heads=1, qkv_bias=False, pool='mean'",
        "3, 1, 1, 2, embed_dim=8, depth=2, num_heads=2, mlp_ratio=0.5, norm_eps=0.1",
        "7, 7, 3, 3, embed_dim=9, depth=3, num_heads=3, mlp_ratio=3.0",
        "(21, 14), 7, 3, 11, embed_dim=20, depth=2, num_heads=4, qkv_bias=False, mlp_ratio=2.0",
        "(9, 15), 3, 1, 1, embed_dim=10, depth=1, num_heads=2, pool='mean', qkv_bias=False",
        "5, 1, 2, 6, embed_dim=12, depth=4, num_heads=3, norm_eps=1e-3",
    ],
)
def test_every_number_is_pytorchs(options, chrome, tmp_path):
    model = lively(eval(f"ViTConfig({options})"))
    c = model.config
    with window(chrome, written(tmp_path, model)) as page:
        for _ in range(2):
            size = c.image_size if isinstance(c.image_size, tuple) else (c.image_size,) * 2
            image = torch.rand(1, c.in_channels, *size) * 2 - 1
            wanted = steps(model, image)
            with torch.no_grad():
                logits, attention = model(image, return_attention=True)
            close(wanted["logits"][:, 0].float(), logits, 1e-4)
            for block, weights in zip(wanted["blocks"], attention, strict=True):
                close(torch.stack([h["weights"] for h in block["heads"]], 1).float(), weights, 1e-4)
            assert all(weights.std() > 0.02 for weights in attention)  # not flat
            found, rollout = vit(page, image)
            compare(found, wanted)
            compare(rollout, maps.rollout(attention))


def test_a_page_in_16_bits_computes_with_the_rounded_weights(chrome, tmp_path):
    c = ViTConfig((16, 24), 8, 3, 5, embed_dim=128, depth=2, num_heads=4, pool="mean")
    model = lively(c)
    # The smallest numbers, the largest, those between two, and a 0 with its sign.
    odd = torch.tensor([2**-24, -(2**-14) + 2**-24, 65504.0, 1 + 2**-11, -0.0])
    model.tokens.pos_embed.data[0, 0, :5] = odd * torch.tensor([1, 1, 2**-15, 1, 1])
    rounded = deepcopy(model).half().float()
    image = torch.rand(1, 3, 16, 24) * 2 - 1
    assert (steps(model, image)["logits"] - steps(rounded, image)["logits"]).abs().max() > 1e-4
    with window(chrome, written(tmp_path, model)) as page:
        kinds = "() => Object.values(JSON.parse(given.textContent).weights).map(w => w.kind)"
        assert set(ask(page, kinds)) == {"float16"}
        script = "name => Array.from(vitState.weights[name].data)"
        for name, tensor in rounded.state_dict().items():
            got = torch.tensor(ask(page, script, name), dtype=torch.float32)
            assert torch.equal(got, tensor.flatten()), name
        found, _ = vit(page, image)
        compare(found, steps(rounded, image))


def surgery(model, **without):
    """The same model with a part taken out of its modules or weights."""
    model = deepcopy(model)
    c, D = model.config, model.config.embed_dim
    d = D // c.num_heads
    with torch.no_grad():
        if without.get("positions"):
            model.tokens.pos_embed.zero_()
        if without.get("scale"):
            for block in model.blocks:
                block.attn.qkv.weight[:D] *= d**0.5
                block.attn.qkv.bias[:D] *= d**0.5
        for name in without.get("norms", ()):
            owner, _, last = name.rpartition(".")
            setattr(model.get_submodule(owner), last, nn.Identity())
        for b, head in without.get("heads", ()):
            model.blocks[b].attn.proj.weight[:, head * d : (head + 1) * d] = 0
        for b in without.get("blocks", ()):
            del model.blocks[b]
        if without.get("residuals"):
            for block in model.blocks:

                def forward(x, mask=None, return_attention=False, block=block):
                    return block.mlp(block.norm2(block.attn(block.norm1(x))))

                block.forward = forward
    return model


SWITCHES = [
    {"positions": True},
    {"scale": True},
    {"residuals": True},
    {"norms": ["norm"]},
    {"norms": ["blocks.0.norm1"]},
    {"norms": ["blocks.1.norm1"]},
    {"norms": ["blocks.0.norm2"]},
    {"norms": ["blocks.1.norm2"]},
    {"blocks": [0]},
    {"blocks": [1]},
    *({"heads": [[b, h]]} for b in range(2) for h in range(3)),
]


def test_what_is_taken_out_is_out(chrome, tmp_path):
    model = lively(ViTConfig((8, 12), 4, 1, 4, embed_dim=12, depth=2, num_heads=3))
    image = torch.rand(1, 1, 8, 12) * 2 - 1
    whole = steps(model, image)["logits"]
    with window(chrome, written(tmp_path, model)) as page, torch.no_grad():
        for without in SWITCHES:
            wanted = steps(model, image, **without)
            assert (wanted["logits"] - whole).abs().max() > 0.01, without
            close(wanted["logits"][:, 0].float(), surgery(model, **without)(image), 1e-4)
            compare(vit(page, image, **without)[0], wanted, str(without))
        for hidden in ([0], [5], [1, 3], list(range(6))):
            blind = torch.zeros(1, 2, 3, dtype=torch.bool)
            blind.view(-1)[hidden] = True
            wanted = steps(model, image, hidden=hidden)
            close(wanted["logits"][:, 0].float(), maps.blinded(model, image, blind), 1e-4)
            compare(vit(page, image, hidden=hidden)[0], wanted, f"hidden {hidden}")
        both = {"heads": [[0, 2], [1, 0]], "positions": True, "hidden": [2]}
        compare(vit(page, image, **both)[0], steps(model, image, **both), str(both))


# The pixels of several pictures, 32 bits each, in base64; their logits.
LOGITS = """text => {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const pixels = new Float32Array(bytes.buffer), size = vitState.state.base.length, found = [];
  for (let i = 0; i < pixels.length; i += size) {
    const one = pixels.subarray(i, i + size);
    found.push(Array.from(vitModel.vit(one, vitState.weights, vitState.config).logits.data));
  }
  return found;
}"""


def test_the_stored_weights_read_2000_canvases_as_in_pytorch(chrome, stored):
    model = load_model(command.SCATTERED).eval()
    images, labels = data.scattered(2000, seed=1, held_out=True)[:]
    with torch.no_grad():
        wanted = model(images)
    assert (wanted.argmax(dim=1) == labels).float().mean() > 0.8
    found = []
    with window(chrome, stored) as page:
        for part in images.split(250):
            found += ask(page, LOGITS, base64.b64encode(part.numpy().tobytes()).decode())
    found = torch.tensor(found)
    assert torch.equal(found.argmax(dim=1), wanted.argmax(dim=1))
    close(found, wanted, 1e-3)


# A closed page -----------------------------------------------------------------------------------

ELSEWHERE = "https://elsewhere.example/"
# What somebody might put into the page, and what of it got through.
INTRUDE = """async address => {
  const refused = [];
  addEventListener('securitypolicyviolation', event => refused.push(event.effectiveDirective));
  const put = (tag, properties) => new Promise(done => {
    const element = Object.assign(document.createElement(tag), properties);
    element.addEventListener('load', () => done(true));
    element.addEventListener('error', () => done(false));
    document.body.append(element);
    setTimeout(() => done(false), 5000);
  });
  const through = {
    script: await put('script', { src: address + 'script.js' }),
    image: await put('img', { src: address + 'image.png' }),
    style: await put('link', { rel: 'stylesheet', href: address + 'style.css' }),
    fetched: await fetch(address + 'data.json').then(() => true, () => false),
  };
  document.body.append(
    Object.assign(document.createElement('script'), { textContent: 'window.inline = true' }));
  const button = document.createElement('button');
  button.setAttribute('onclick', 'window.attribute = true');
  button.click();
  const late = await new Promise(done => setTimeout(() => done(refused), 100));
  const { inline = false, attribute = false } = window;
  return [{ ...through, inline, attribute }, late.sort()];
}"""


def intrude(chrome, path):
    """What gets into a page from elsewhere, what it refuses, and what was asked of a network."""
    buffer, answered = BytesIO(), []
    Image.new("RGB", (2, 2)).save(buffer, "PNG")
    bodies = {"script.js": b"0", "image.png": buffer.getvalue(), "style.css": b"", "data.json": b""}

    def answer(route):
        name = route.request.url.removeprefix(ELSEWHERE)
        answered.append(name)
        kind = {"js": "text/javascript", "css": "text/css"}.get(name.rpartition(".")[2])
        headers = {"access-control-allow-origin": "*"}
        route.fulfill(body=bodies[name], content_type=kind, headers=headers)

    with window(chrome, path, quiet=False) as page:
        page.route(f"{ELSEWHERE}**", answer)
        through, refused = ask(page, INTRUDE, ELSEWHERE)
    return through, refused, sorted(answered)


def test_the_page_lets_nothing_in_and_asks_for_nothing(chrome, stored, tmp_path):
    assert stored.stat().st_size < 2_000_000
    through, refused, answered = intrude(chrome, stored)
    assert not any(through.values()), through
    assert answered == []
    assert refused == [
        *("connect-src", "img-src", "script-src-attr"),
        *("script-src-elem", "script-src-elem", "style-src-elem"),
    ]
    # Without its policy all of that gets in.
    bare, count = re.subn(r"<meta http-equiv=[^>]*>", "", stored.read_text("utf-8"))
    assert count == 1
    (tmp_path / "open.html").write_text(bare, "utf-8")
    through, refused, answered = intrude(chrome, tmp_path / "open.html")
    assert all(through.values()), through
    assert refused == []
    assert answered == ["data.json", "image.png", "script.js", "style.css"]


HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "<b>bold</b>",
    "\"quoted\" & 'quoted' &lt;",
    "a\u2028b\u2029c",
    "a digit 🖊️ <!-- <script>",
    "{given} ${classes} $& \\u003c",
    "long " * 40,
]


def elements(page):
    """How many elements of each kind the page has that no part of it makes."""
    kinds = "img, b, iframe, object, body script"
    return ask(page, "kinds => document.querySelectorAll(kinds).length", kinds)


def test_names_stay_text(chrome, tmp_path):
    model = lively(ViTConfig((8, 16), 4, 3, len(HOSTILE), embed_dim=12, depth=1, num_heads=2))
    pixels = torch.randint(256, (len(HOSTILE), 3, 8, 16), dtype=torch.uint8)
    pictures = ImageDataset(pixels, torch.arange(len(HOSTILE)), tuple(HOSTILE))
    path = written(tmp_path, model, pictures, count=len(HOSTILE), about=HOSTILE[0])
    for name in HOSTILE[:3]:
        assert name not in path.read_text("utf-8")
    with window(chrome, path, wide=390) as page:
        count = len(pages.SCRIPTS) + 1
        assert elements(page) == count
        assert page.locator("#about").text_content().startswith(HOSTILE[0])
        shown = page.get_by_role("region", name="Answer").get_by_role("rowheader")
        texts = [text.removesuffix(" ✓") for text in shown.all_text_contents()]
        assert texts == HOSTILE
        open_stage(page, "head")
        for i, name in enumerate(HOSTILE):
            assert name in page.get_by_role("region", name="Picture").text_content()
            table = page.get_by_role("application", name=re.compile("^logits,"))
            if i == 0:
                table.focus()
                for _ in HOSTILE:
                    table.press("ArrowLeft")
            told = page.locator("figure", has=table).locator(".formula").text_content()
            assert f"class {name}: " in told
            table.press("ArrowRight")
            page.get_by_role("button", name="the next example").click()
            assert fits(page)
        assert elements(page) == count


def test_a_picture_from_the_disk_whatever_its_name(chrome, tmp_path):
    from playwright.sync_api import expect

    model = lively(ViTConfig((8, 16), 4, 3, 3, embed_dim=12, depth=1, num_heads=2))
    # Twice as large, and too tall: its middle is taken. Each quarter has one colour.
    photo = np.zeros((24, 32, 3), dtype=np.uint8)
    photo[:12, :16], photo[:12, 16:], photo[12:, :16] = (255, 0, 0), (0, 255, 0), (0, 0, 255)
    file = BytesIO()
    Image.fromarray(photo).save(file, "PNG")
    wanted = torch.from_numpy(photo[4:20:2, ::2].transpose(2, 0, 1).copy()) / 127.5 - 1
    script = "() => [vitState.state.milliseconds, Array.from(vitState.pixels())]"
    with window(chrome, written(tmp_path, model), wide=390) as page:
        chooser = page.get_by_label("A picture of yours")
        told = page.get_by_role("region", name="Picture").get_by_role("paragraph")
        count = elements(page)
        for name in HOSTILE:
            name = name.replace("/", "∕")  # no file's name has one
            before = ask(page, script)[1]
            for kind, buffer, said in (
                ("text/html", b"<img src=x onerror=alert(1)>", f"{name} is no picture"),
                ("image/svg+xml", b"<svg xmlns='_' onload='alert(1)'/>", f"{name} is no picture"),
                ("image/png", file.getvalue()[:60], f"{name} is no picture"),
                ("image/png", file.getvalue(), f"This is {name}."),
            ):
                if name == HOSTILE[0] and "This" not in said:
                    assert ask(page, script)[1] == before == [-1] * 384
                chooser.set_input_files({"name": name, "mimeType": kind, "buffer": buffer})
                expect(told).to_contain_text(said, use_inner_text=False)
                assert fits(page)
            milliseconds, pixels = ask(page, script)
            assert milliseconds > 0
            # Smoothing may mix the rows and columns where two colours meet.
            far = (torch.tensor(pixels).view(3, 8, 16) - wanted).abs()
            inner = torch.ones(8, 16, dtype=torch.bool)
            inner[3:5], inner[:, 7:9] = False, False
            assert far[:, inner].max() < 0.02
        assert elements(page) == count
        close(torch.tensor(ask(page, "() => Array.from(vitState.state.shown.logits.data)")),
              model(torch.tensor(pixels).float().view(1, 3, 8, 16))[0].detach(), 1e-4)  # fmt: skip


# How it looks ------------------------------------------------------------------------------------


def fits(page):
    """Whether nothing is wider than the window."""
    return ask(page, "() => document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("wide", [1440, 1024, 390])
def test_every_stage_fits_the_window(wide, scheme, chrome, stored):
    with window(chrome, stored, wide, color_scheme=scheme) as page:
        page.get_by_label("beside it an untrained twin").check()
        page.get_by_label("without the positions").check()
        for stage in STAGES:
            open_stage(page, stage)
            assert fits(page), stage
            picture(page, f"{wide}_{scheme}_{STAGES.index(stage)}", full_page=True)
        page.get_by_role("button", name="Take the tour").click()
        page.get_by_role("group", name="Predict").get_by_role("radio").last.check()
        page.get_by_role("button", name="Show", exact=True).click()
        page.get_by_text("Try it yourself.").wait_for()
        assert fits(page)
        picture(page, f"{wide}_{scheme}_tour")
        ground, ink = ask(
            page,
            "() => ['backgroundColor', 'color'].map(name => getComputedStyle(document.body)[name])",
        )
        light, dark = (sum(map(int, re.findall(r"\d+", text)[:3])) for text in (ground, ink))
        assert (light > dark + 400) == (scheme == "light")
        assert abs(light - dark) > 400
        ask(page, "() => { document.body.append(Object.assign(document.createElement('canvas'), "
            "{ width: 3000 })); document.body.lastChild.style.maxWidth = 'none'; }")  # fmt: skip
        assert not fits(page)


MOVING = """() => [...document.querySelectorAll('*')].filter(element => {
  const { transitionDuration, animationName } = getComputedStyle(element);
  return /[1-9]/.test(transitionDuration) || animationName !== 'none';
}).map(element => element.className)"""


def test_nothing_moves_for_who_asks_for_that(chrome, stored):
    with window(chrome, stored, reduced_motion="reduce") as page:
        page.get_by_role("button", name="Take the tour").click()
        page.get_by_role("button", name="Next", exact=True).click()  # the first closes the road
        for stage in STAGES:
            open_stage(page, stage)
            assert ask(page, MOVING) == []
        ask(page, "() => { document.body.className = 'slow';"
            "document.body.style.transition = 'width 0.1s'; }")  # fmt: skip
        assert ask(page, MOVING) == ["slow"]


def nameless(page):
    """What can have the focus and has no name to be read aloud, and how many things can."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    found = []
    for node in nodes:
        properties = {p["name"]: p["value"].get("value") for p in node.get("properties", ())}
        role = node.get("role", {}).get("value")
        part = role in ("RootWebArea", "option")  # not to be reached by itself
        if not node["ignored"] and properties.get("focusable") and not part:
            found.append((role, node.get("name", {}).get("value", "").strip()))
    return [role for role, name in found if not name], len(found)


def test_all_that_takes_the_focus_has_a_name(chrome, stored, tmp_path):
    photos = written(tmp_path, lively(ViTConfig(8, 4, 3, 3, embed_dim=12, depth=1, num_heads=2)))
    for path in (stored, photos):
        with window(chrome, path) as page:
            if path == stored:
                page.get_by_role("button", name="Take the tour").click()
                page.get_by_role("button", name="Next", exact=True).click()  # as above
            for stage in STAGES:
                open_stage(page, stage)
                ask(page, "() => 0")
                without, count = nameless(page)
                assert without == [], stage
                assert count == ask(page, FOCUSABLE), stage
            ask(page, "() => document.body.append(document.createElement('button'))")
            assert nameless(page)[0] == ["button"]


# What a browser lets the keyboard reach, or a script focus.
FOCUSABLE = """() => [...document.querySelectorAll('button, input, select, [tabindex]')].filter(
  element => !element.disabled && element.checkVisibility()).length"""


# In a notebook -----------------------------------------------------------------------------------


def test_in_a_notebook_the_page_runs_in_a_frame_that_reaches_nothing_else(chrome, tmp_path):
    head = '<meta charset="utf-8"><link rel="icon" href="data:,">'  # as JupyterLab has them
    weights = load_weights(command.SCATTERED)
    pictures = command.held_out("scattered", weights, 24)
    output = explorer.show(weights.model, pictures, height=700)._repr_html_()
    reach = """() => {
      const found = [];
      for (const [name, take] of Object.entries({
        page: () => parent.secret, document: () => parent.document.body, store: () => localStorage,
        frame: () => frameElement.id,
      })) {
        try { if (take() !== undefined) found.push(name); } catch {}
      }
      return found;
    }"""
    for html, reached in (
        (output, []),
        (output.replace('sandbox="allow-scripts"', ""), ["page", "document", "store", "frame"]),
    ):
        path = tmp_path / "notebook.html"
        path.write_text(f"<!doctype html>{head}<script>secret = 1</script>{html}", "utf-8")
        with window(chrome, path) as page:
            inside = page.frame_locator("iframe")
            inside.get_by_text(re.compile("^It says")).wait_for()
            inside.get_by_role("button", name="Take the tour").click()
            inside.get_by_role("group", name="Predict").get_by_role("radio").last.check()
            inside.get_by_role("button", name="Show", exact=True).click()
            inside.get_by_text("Try it yourself.").wait_for()
            inside.get_by_role("button", name="Next", exact=True).click()
            inside.get_by_role("heading", name="2 of 10").wait_for()
            inside.get_by_label("without the positions").check()
            inside.get_by_text("with nothing out or covered").first.wait_for()
            (_, frame) = page.frames
            assert ask(frame, reach) == reached
            picture(page, "notebook")


def test_the_given_data_stand_in_the_page_once(stored):
    (given,) = re.findall(r'id="given">(.*?)</script>', stored.read_text("utf-8"))
    assert len(json.loads(given)["images"]) == 24
