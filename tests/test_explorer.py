"""The explorer's page holds the model's numbers, refuses what does not fit, trusts no name."""

import base64
import html
import json
import re
from dataclasses import replace

import pytest
import torch
from live_page import closed
from torch import nn

from vit_course import explorer
from vit_course.canvases import scattered
from vit_course.explorer import __main__ as command
from vit_course.explorer import packing, pages
from vit_steps import ViT, ViTConfig
from vit_steps.images import Preprocess
from vit_steps.training import Weights, load_data, load_weights, save_model
from vit_steps.training.dataset import ImageDataset
from vit_steps.weights import SCATTERED

SMALL = ViTConfig(8, 4, 1, 3, embed_dim=12, depth=2, num_heads=3)
DIGITS = replace(SMALL, num_classes=10)
THREE = ImageDataset(torch.rand(3, 1, 8, 8), torch.arange(3), ("a", "b", "c"))

# That weights and settings come to the page as they are, test_explorer_numbers.py shows.


def test_pictures_keep_their_bytes():
    images = torch.linspace(-1, 1, 2 * 64).view(2, 1, 8, 8)
    packed = packing.pack(ViT(SMALL), images, [0, 2])
    content = b"".join(map(base64.b64decode, packed["images"]))
    assert list(content) == [round(255 * i / 127) for i in range(128)]
    assert packed["labels"] == [0, 2]
    assert packed["classes"] == ["0", "1", "2"]


NAN, RELU, STRANGER = ViT(SMALL), ViT(SMALL), nn.ModuleDict({"head": nn.Linear(12, 3)})
NAN.head.bias.data[0] = torch.nan
RELU.blocks[0].mlp.act = nn.ReLU()
STRANGER.config = SMALL
NO_VIT = r"not the ViT of its config: blocks.0.attn.proj.bias is missing"
LARGE = ViT(ViTConfig(32, 8, 3, 10, embed_dim=256, depth=6, num_heads=4))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (dict(model=nn.Linear(2, 2)), TypeError, "is a Linear without a ViTConfig"),
        (dict(model=STRANGER), ValueError, NO_VIT),
        (dict(model=NAN), ValueError, "head.bias holds numbers that are not finite"),
        (dict(model=RELU), ValueError, "a part was exchanged"),
        (dict(model=LARGE), ValueError, "the weights take 13 MB of the page, and 8 are the most"),
        (dict(images=torch.zeros(2, 3, 8, 8)), ValueError, r"this model takes \(k, 1, 8, 8\)"),
        (dict(images=torch.zeros(2, 1, 8, 8), labels=[1]), ValueError, "one for each picture"),
        (dict(labels=[1]), ValueError, "one for each picture"),
        (dict(images=torch.zeros(1, 1, 8, 8), labels=[3]), ValueError, "outside of 0 to 2"),
        (dict(classes=["a"]), ValueError, "1 class names; this model has 3 classes"),
    ],
)
def test_what_does_not_fit_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        packing.pack(**{"model": ViT(SMALL)} | options)


# The page ----------------------------------------------------------------------------------------


def data_of(page: str) -> dict:
    """Give what a page works on: its piece of JSON."""
    return json.loads(re.search(r'id="given">(.*?)</script>', page, re.DOTALL)[1])


def test_the_policy_names_what_stands_in_the_page_and_a_hostile_name_is_text():
    classes = ["{given}", "{scripts}", "</script><img src=x onerror=alert(1)>&<!--"]
    page = explorer.page(ViT(SMALL), classes=classes)
    # blob: of the page's own scripts
    scripts = closed(page, worker_src="blob:", img_src="data: blob:")
    assert [name for name, _ in scripts] == [f"script-{name}" for name in pages.SCRIPTS]
    assert not any("innerHTML" in script for _, script in scripts)
    assert page.count("<script") == len(scripts) + 1  # and what the page is given
    assert set(re.findall(r"https?://[^\s\"']+", page)) <= {"http://www.w3.org/2000/svg"}  # a name
    assert data_of(page)["classes"] == classes
    assert not set("<>&") & set(re.search(r'id="given">(.*?)</script>', page, re.DOTALL)[1])


def test_pictures_are_taken_evenly_and_bring_their_names():
    ramp, classes = torch.arange(10), tuple("abcdefghij")
    data = ImageDataset(ramp.byte()[:, None, None, None].expand(10, 1, 8, 8), ramp, classes)
    model = ViT(DIGITS)
    found = data_of(explorer.page(model, data, count=5))
    assert sorted(found["labels"]) == [0, 2, 4, 6, 8]  # the most striking one comes first
    assert found["classes"] == list(classes)
    assert len(data_of(explorer.page(model, data))["labels"]) == 10  # as many as there are
    with pytest.raises(ValueError, match="count is 0"):
        explorer.page(model, data, count=0)


def test_pictures_take_a_megabyte_at_most_and_a_page_that_is_too_large_is_refused(monkeypatch):
    model = ViT(ViTConfig(224, 32, 3, 2, embed_dim=12, depth=1, num_heads=3))
    pixels = torch.zeros(24, 3, 224, 224, dtype=torch.uint8)
    data = ImageDataset(pixels, torch.zeros(24, dtype=torch.long), ("a", "b"))
    page = explorer.page(model, data)
    assert len(data_of(page)["images"]) == 6
    monkeypatch.setattr(pages, "MOST", 1e6)
    assert len(explorer.page(model, data, count=1)) < 1e6
    with pytest.raises(ValueError, match=r"takes 1\.\d MB, and 1 are .* fewer pictures than 6"):
        explorer.page(model, data)


class NothingGrey(nn.Module):
    """Says class 0 where no patch is as bright as half, else class 1."""

    def __init__(self):
        super().__init__()
        self.config = ViTConfig(8, 4, 3, 2, embed_dim=12, depth=1, num_heads=3)
        self.even = nn.Parameter(torch.tensor(2.0), requires_grad=False)

    def forward(self, images):
        assert not self.training
        bright = nn.functional.avg_pool2d(images, 4).mean(dim=1).flatten(1).abs().amin(dim=1)
        return torch.stack([4 * bright, self.even.expand_as(bright)], dim=1)


def test_a_photos_patch_is_covered_with_its_mean_colour_to_find_the_first():
    # Covered by its mean, the second one's answer falls furthest, but stays; the third's changes.
    patches = torch.tensor([[-1.0, -1, -1, -1], [1, 1, 1, -0.9], [0.51, 0.51, 0.51, -0.51]])
    images = patches.view(3, 1, 2, 2).expand(3, 3, 2, 2)
    images = images.repeat_interleave(4, 2).repeat_interleave(4, 3)
    labels = torch.tensor([0, 0, 0])
    assert pages.striking_first(NothingGrey(), images, labels, None) == [2, 0, 1]
    assert pages.striking_first(NothingGrey(), images, labels, -1.0) == [0, 1, 2]
    assert pages.striking_first(NothingGrey(), images, 1 - labels, None) == [0, 1, 2]  # wrong


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_model_of_64_bits_in_training_has_a_page_and_stays_as_it_is(compiled):
    model = ViT(SMALL).double().train()
    other = torch.compile(model, backend="eager") if compiled else ViT(SMALL)
    if not compiled:
        other.load_state_dict(model.state_dict())
    assert explorer.page(other, THREE) == explorer.page(model, THREE)
    assert model.training
    assert model.head.weight.dtype == torch.float64


SHARES = [dict(images=60, right=30, least=0.0), dict(images=40, right=39, least=0.9)]
RESULT = dict(accuracy=0.69, classes=[dict(images=1500, right=1000), dict(images=700, right=518)])
SENTENCE = "Of 2,200 held-out pictures it gets 69.0% right."


def test_the_page_says_what_the_weights_say_was_measured():
    for measured, sentence, worth in (
        ({"test": "2200 images"}, "", []),
        ({"result": RESULT}, SENTENCE, []),
        ({"result": RESULT | {"by_share": SHARES}}, SENTENCE, SHARES),
    ):
        weights = Weights(ViT(SMALL), ("a", "b", "c"), None, measured)
        found = data_of(explorer.page(weights))
        assert (found["measured"], found["worth"]) == (sentence, worth)
        assert found["classes"] == ["a", "b", "c"]
    assert data_of(explorer.page(weights, classes=["x", "y", "z"]))["classes"] == ["x", "y", "z"]
    assert data_of(explorer.page(weights.model))["measured"] == ""  # of which nothing is known


def test_what_is_ink_and_what_was_unseen_is_said_of_these_pictures():
    grey, ink = (Preprocess((8, 8), 8, "bicubic", (0.5,), (0.5,), ink=on) for on in (False, True))
    model, with_ink = ViT(SMALL), replace(THREE, preprocess=ink)
    for options, expected in (
        (dict(model=model), (True, False)),  # one channel
        (dict(model=model, unseen=True), (True, False)),  # of no pictures
        (dict(model=model, pictures=THREE, unseen=True), (True, True)),
        (dict(model=model, pictures=replace(THREE, preprocess=grey)), (False, False)),
        (dict(model=Weights(model, (), grey), pictures=with_ink), (False, False)),
        (dict(model=ViT(replace(SMALL, in_channels=3))), (False, False)),
    ):
        found = data_of(explorer.page(**options))
        assert (found["ink"], found["unseen"]) == expected
    other = Preprocess((8, 8), 8, "bicubic", (0.4,), (0.5,))
    with pytest.raises(ValueError, match=r"mean=\(0\.4,\).*that want -1 to 1"):
        explorer.page(Weights(model, (), other))
    with pytest.raises(ValueError, match=r"run from 0\.\d to \d\d\.\d"):
        explorer.page(model, replace(THREE, pixels=20 * THREE.pixels))


def test_it_is_written_whole_and_a_cell_shows_it_in_a_frame_without_rights(tmp_path):
    model, classes = ViT(SMALL), ["ä", "b", "c"]
    page = explorer.page(model, classes=classes)
    path = explorer.write(tmp_path / "page.html", model, classes=classes)
    assert path.read_text(encoding="utf-8") == page
    with pytest.raises(ValueError, match=r"nowhere.* cannot be written"):
        explorer.write(tmp_path / "nowhere" / "page.html", model)
    shown = explorer.show(model, classes=classes, height=500)
    frame = shown._repr_html_()
    assert html.unescape(re.search(r'srcdoc="([^"]*)"', frame)[1]) == page
    assert 'sandbox="allow-scripts allow-downloads"' in frame
    assert 'height="500"' in frame
    assert "live page" in repr(shown)


# The command -------------------------------------------------------------------------------------


def test_the_command_writes_the_courses_own_model(tmp_path, capsys):
    out = tmp_path / "page.html"
    command.main(["--out", str(out), "--no-browser"])
    assert capsys.readouterr().out == f"{out}, {out.stat().st_size / 1e6:.1f} MB\n"
    assert 0.8e6 < out.stat().st_size < 2e6
    about = "This model reads a digit: one that you draw, or one among pieces of others."
    data, weights = scattered(200, held_out=True), load_weights(SCATTERED)
    page = explorer.page(weights, data, about=about, unseen=True)
    assert len(data_of(page)["labels"]) == 200
    assert data_of(out.read_text(encoding="utf-8")) == data_of(page)


def test_the_command_opens_the_page_of_any_weights(tmp_path, monkeypatch, capsys):
    opened = []
    monkeypatch.setattr(command.webbrowser, "open", lambda address: bool(opened.append(address)))
    monkeypatch.chdir(tmp_path)
    save_model(ViT(DIGITS), "mine.safetensors")
    path = tmp_path / "explorer.html"
    command.main(["mine.safetensors", "--data", "digits", "--count", "7"])
    assert opened == [path.resolve().as_uri()]
    output = capsys.readouterr().out
    assert "open the file yourself" in output
    assert "note: no file says whether the model was trained on these pictures" in output
    found = data_of(path.read_text(encoding="utf-8"))
    assert len(found["images"]) == len(found["labels"]) == 7
    assert not found["unseen"]
    command.main(["mine.safetensors", "--no-browser"])  # without pictures
    assert "note" not in capsys.readouterr().out
    found = data_of(path.read_text(encoding="utf-8"))
    assert (found["images"], found["about"]) == ([], "")


def test_pictures_with_other_classes_or_prepared_otherwise_are_refused(tmp_path):
    file, test = tmp_path / "it.safetensors", load_data("digits", size=8, val_fraction=0).test
    renamed = ["zero", *test.classes[1:]]
    for about in ((renamed, test.preprocess), (test.classes, replace(test.preprocess, ink=False))):
        save_model(ViT(DIGITS), file, *about)
        with pytest.raises(SystemExit, match=r"the weights (name|want) .*but digits"):
            command.main([str(file), "--data", "digits", "--no-browser"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.safetensors"], r"vit_course\.explorer: .*missing\.safetensors"),
        (["--data", "nothing"], "'nothing': give"),
        (["--data", "digits"], r"the weights want .*\(16, 16\).*but digits gives .*\(8, 8\)"),
        (["--count", "0"], "is 0"),
    ],
)
def test_the_command_says_in_one_line_what_is_wrong(words, message, tmp_path):
    with pytest.raises(SystemExit, match=message):
        command.main([*words, "--no-browser", "--out", str(tmp_path / "page.html")])
    assert list(tmp_path.iterdir()) == []
