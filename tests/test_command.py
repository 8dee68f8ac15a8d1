"""`python -m vit_steps.training`: what it does, what it says, and what it refuses."""

import os
import re
import signal
import subprocess
import sys
from functools import wraps
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
import torch
from helpers import contents
from safetensors.torch import load_file
from test_folders import plain
from tiny_training import history_in, same

from vit_steps import ViT, ViTConfig, training
from vit_steps.images import Preprocess
from vit_steps.pretrained import save_hugging_face
from vit_steps.training import __main__ as command
from vit_steps.training.data import digits, load_data, recipe

ROOT = Path(__file__).parent.parent


def few(**options):
    """Arguments for a training of a second."""
    return words(dict(epochs=1, embed_dim=8, depth=1, num_heads=2, patch_size=4) | options)


def words(options):
    options = dict(device="cpu") | options
    pairs = ((f"--{k.replace('_', '-')}", v) for k, v in options.items())
    return [str(word) for pair in pairs for word in pair if word is not True]


def test_the_command_trains_says_where_the_weights_are_and_goes_on(tmp_path, capsys):
    out = tmp_path / "run"
    torch.set_num_threads(2)
    assert command.main(few(epochs=2, out=out)) == 0
    assert torch.get_num_threads() == 1  # so small a model is faster in one
    text, err = capsys.readouterr()
    assert err == ""
    assert text.startswith(
        "digits: 1,295 images to train on, 143 images for val, 359 images to test on; 10 classes; "
        "8×8 pixels\n"
        "ViT with 1,162 parameters, on cpu\nepoch   1 of 2: training loss 2."
    )
    assert len(re.findall(r", val loss \d\.\d{3}, val accuracy \d+\.\d%\n", text)) == 2
    best = training.load_model(out / "best.safetensors")
    assert best.config == ViTConfig(8, 4, 1, 10, 8, 1, 2)
    epoch = re.search(r"best epoch: (\d), by its val accuracy of \d+\.\d%\n", text)[1]
    test = f"{training.evaluate(best, digits()[1])[1]:.1%}"
    assert f"test of epoch {epoch}, measured once: accuracy {test}; always answering" in text
    assert text.endswith(
        f"weights: {out / 'best.safetensors'} (epoch {epoch})\n"
        f"         {out / 'last.safetensors'} (epoch 2)\n"
    )

    assert command.main(few(epochs=2, out=out)) == 0  # nothing left to do
    text = capsys.readouterr().out
    assert f"going on from {out / 'last.safetensors'}" in text
    assert "val accuracy" not in text.partition("best epoch")[0]
    assert text.count("measured once") == 1

    with pytest.raises(SystemExit, match=r"epochs is 1, but .* holds 2 finished ones"):
        command.main(few(out=out))
    (out / "confusion.png").write_text("of the run before")
    assert command.main(few(out=out, restart=True)) == 0
    assert (out / "confusion.png").read_bytes()[:4] == b"\x89PNG"
    assert len(history_in(out)) == 1

    command.main(few(epochs=2, out=tmp_path / "other", lr=0.03))
    (tmp_path / "other" / "best.safetensors").replace(out / "best.safetensors")
    capsys.readouterr()
    command.main(few(out=out))  # it is the best that is measured, not the last
    other = training.evaluate(training.load_model(out / "best.safetensors"), digits()[1])[1]
    assert f"measured once: accuracy {other:.1%};" in capsys.readouterr().out
    assert f"{other:.1%}" != test


@pytest.mark.parametrize("source", ["digits", "folder"])
def test_the_recipe_in_python_comes_to_the_weights_of_the_command(tmp_path, source):
    if source == "folder":
        source += f":{plain(tmp_path / 'pets', cat=6, dog=6)}"
    options = dict(epochs=2, depth=1, embed_dim=8, seed=4, amp=True, clip=0.5)
    options |= dict(lr=0.01, weight_decay=0.2, batch_size=99, warmup=0.3, label_smoothing=0.2)
    command.main(words(dict(data=source, out=tmp_path / "out", **options)))
    train, val, test = load_data(source)
    model, known = recipe(source, train, **options)
    torch.manual_seed(4)
    assert same(model, ViT(model.config))
    training.fit(model, train, val, **known, best=True, progress=False, device="cpu")
    weights = training.load_weights(tmp_path / "out" / "best.safetensors")
    assert same(weights.model, model)
    assert (weights.classes, weights.preprocess) == (train.classes, train.preprocess)
    assert weights.measured["result"]["accuracy"] == training.evaluate(model, test)[1]
    sizes = {"train": f"{len(train):,} images", "test": f"{len(test):,} images"}
    assert sizes.items() <= weights.measured.items()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(data="cats"), "'cats': give digits or folder:PATH"),
        (dict(data="folder:/nowhere"), "/nowhere is not a folder"),
        (dict(patch_size=3), "not a multiple of the patch size 3"),
        (dict(embed_dim=9), "embed_dim 9 does not divide into 2 heads"),
        (dict(image_size=64), "--image-size is for folders"),
        (dict(val_fraction=1), "val_fraction is 1"),
        ({"data": "folder:x", "from": "x"}, "--from brings its own; leave out --patch-size"),
    ],
)
def test_a_bad_option_gives_one_line_before_pictures(tmp_path, monkeypatch, options, message):
    if "val_fraction" not in options and "/nowhere" not in message:
        monkeypatch.setattr(command, "load_data", None)
    with pytest.raises(SystemExit) as error:
        command.main(few(**(dict(out=tmp_path / "run") | options)))
    assert str(error.value).startswith("vit_steps.training: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert [*(tmp_path / "run").glob("*")] in ([], [tmp_path / "run" / ".lock"])


def test_the_command_trains_on_a_folder_and_goes_on_from_any_weights(tmp_path, capsys):
    pets = plain(tmp_path / "pets", **{"고양이": 6, "강아지": 6, "$x$": 6})
    (pets / "고양이" / "broken.jpg").write_bytes(b"\xff\xd8\xff not a picture")
    data, out = f"folder:{pets}", tmp_path / "run"
    assert command.main(few(data=data, image_size=16, grey=True, out=out)) == 0
    text, err = capsys.readouterr()
    assert err == ""  # of a font without these letters too
    assert re.match(r"note: .*broken\.jpg", text)
    counts = "12 images to train on, 3 images for val, 3 images to test on"
    assert f"{counts}; 3 classes; 16×16 pixels" in text
    assert (out / "classes.csv").read_text("utf-8").startswith("class,images,right\n$x$")
    first = training.load_weights(out / "best.safetensors")
    assert (first.classes, first.model.config.in_channels) == (("$x$", "강아지", "고양이"), 1)

    theirs = Preprocess((16, 16), 20, "bicubic", (0.4, 0.5, 0.6), (0.2, 0.3, 0.4))
    save_hugging_face(ViT(ViTConfig(16, 4, 3, 9, 8, 1, 2)), tmp_path / "hf", preprocess=theirs)
    for start, how in ((out / "best.safetensors", first.preprocess), (tmp_path / "hf", theirs)):
        onward = words({"data": data, "from": start, "epochs": 1, "out": tmp_path / "on"})
        assert command.main([*onward, "--restart"]) == 0
        found = training.load_weights(tmp_path / "on" / "best.safetensors")
        assert (found.classes, found.preprocess) == (first.classes, how)
        assert found.model.config.embed_dim == 8
    body = training.load_model(tmp_path / "on" / "last.safetensors").state_dict()
    was = load_file(tmp_path / "hf" / "model.safetensors")["vit.layernorm.weight"]
    assert 0 < (body["norm.weight"] - was).abs().max() < 1e-3  # it went on, by small steps
    with pytest.raises(SystemExit, match=r"hf wants .*; digits is .*ink=True"):
        command.main(words({"from": tmp_path / "hf"}))


def test_a_folder_of_train_and_val_is_measured_on_val_and_says_so(tmp_path, capsys, monkeypatch):
    for part, count in (("train", 3), ("val", 2)):
        plain(tmp_path / "pets" / part, a=count, b=count)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert command.main(few(data="folder:~/pets", image_size=16)) == 0
    text = capsys.readouterr().out
    assert "6 images to train on, 4 images for val; 2 classes" in text
    assert "val of epoch 1, by which it was chosen: too good: accuracy" in text
    found = training.load_weights("~/runs/pets/best.safetensors").measured
    assert found["result"]["part"] == "val"


def test_labels_in_a_table_frozen_blocks_rare_classes_and_no_val(tmp_path, capsys, monkeypatch):
    pets = tmp_path / "pets"
    plain(pets, pictures=12)
    rows = [f"pictures/{i:02}.jpg,{'rare' if i % 4 == 0 else 'usual'}" for i in range(12)]
    (tmp_path / "labels.csv").write_text("\n".join(["file,label", *rows]))
    calls, fitted = [], command.fit
    spy = wraps(fitted)(lambda *a, **k: calls.append(k) or fitted(*a, **k))
    monkeypatch.setattr(command, "fit", spy)
    table, out = tmp_path / "labels.csv", ["--out", str(tmp_path / "run")]
    options = few(data=f"folder:{pets}", labels=table, image_size="8x16", depth=2, epochs=2)
    assert command.main([*options, *out, "--freeze", "1", "--balance", "--val-fraction", "0"]) == 0
    text, found = capsys.readouterr().out, training.load_model(tmp_path / "run/best.safetensors")
    assert "9 images to train on, 3 images to test on; 2 classes; 8×16 pixels" in text
    assert "val accuracy" not in text
    assert "test of epoch 2, measured once:" in text  # the last one, where there is no val
    assert calls[0]["class_weights"] == pytest.approx([9 / (2 * 2), 9 / (2 * 7)])
    torch.manual_seed(0)
    start, learned = ViT(found.config).state_dict(), found.state_dict()
    still = {name for name in start if torch.equal(start[name], learned[name])}
    kept = {n for n in start if n.startswith(("patch_embed.", "tokens.", "blocks.0."))}
    assert still - {"blocks.1.attn.qkv.bias"} == kept
    frozen = sum(start[name].numel() for name in kept)
    size = sum(tensor.numel() for tensor in start.values())
    assert f"ViT with {size:,} parameters, {size - frozen:,} of which learn, on cpu" in text
    for wrong, message in (
        (["--freeze", "3"], "--freeze is 3; the model has 2 blocks"),
        (["--data", "digits", "--labels", "x.csv"], "--image-size is for folders"),
    ):
        with pytest.raises(SystemExit, match=message):
            command.main([*options, *out, *wrong])
    with pytest.raises(SystemExit, match=r"labels in x\.csv are for a folder, not for digits"):
        command.main(few(labels="x.csv"))


def test_weights_that_do_not_say_their_heads_or_size_take_them_and_notes_are_printed(
    tmp_path, capsys
):
    model, pets = ViT(ViTConfig((16, 32), 8, 3, 5, 24, 1, 2)), plain(tmp_path / "pets", a=5, b=5)
    tensors = {f"module.{n.removeprefix('tokens.')}": t for n, t in model.state_dict().items()}
    torch.save({"state_dict": tensors}, tmp_path / "deit.pth.tar")
    asked = {"data": f"folder:{pets}", "from": tmp_path / "deit.pth.tar", "epochs": 1}
    asked |= {"out": tmp_path / "run"}
    for more, message in ({}, "give num_heads"), ({"num_heads": 2}, "give image_size"):
        with pytest.raises(SystemExit, match=message):
            command.main(words(asked | more))
    assert command.main(words(asked | dict(num_heads=2, image_size="16x32"))) == 0
    text = capsys.readouterr().out
    assert "note: the weights are those of 'state_dict' in the file\nnote: module. is taken" in text
    assert "note: nothing says how it wants its pictures: assumed, Preprocess(size=(16, 32)" in text
    assert training.load_model(tmp_path / "run" / "best.safetensors").config.num_heads == 2


def test_a_restart_by_mistake_keeps_the_old_weights_until_an_epoch_is_done(tmp_path):
    out, pets = tmp_path / "run", tmp_path / "pets"
    assert command.main(few(out=out)) == 0
    before = contents(out)
    plain(pets / "one", a=1, b=3)
    plain(pets / "parts" / "train", a=3, b=3)
    plain(pets / "parts" / "test", a=3, c=3)
    (pets / "empty").mkdir(parents=True)
    wrong = [dict(lr=-1), dict(patch_size=3)]
    for name in ("one", "parts", "empty", "nowhere"):
        wrong.append(dict(data=f"folder:{pets / name}", image_size=8))
    for options in wrong:
        with pytest.raises(SystemExit, match=r"^vit_steps\.training: "):
            command.main(few(out=out, restart=True, **options))
        assert contents(out) == before


@pytest.mark.parametrize(
    ("encoding", "name"),
    [("ascii", "Käse"), ("utf-8", "K\udce4se")],  # the byte 0xe4, as Latin-1 disks have it
)
def test_names_that_cannot_be_printed_do_no_harm(tmp_path, monkeypatch, encoding, name):
    try:
        mine = plain(tmp_path / "my pets", **{name: 5, "Brot": 5})
    except OSError:
        pytest.skip("this system's names are Unicode")
    (mine / name / f"kaputt {name}.jpg").write_bytes(b"no picture")
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(BytesIO(), encoding))
    assert command.main(few(data=f"folder:{mine}", image_size=16, out=tmp_path / name)) == 0
    text = sys.stdout.buffer.getvalue()
    assert f"kaputt {name}.jpg".encode(encoding, "backslashreplace") in text
    assert b"test of epoch 1" in text


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has another Ctrl-C")
def test_ctrl_c_at_the_command_saves_and_says_how_to_go_on(tmp_path):
    options = few(epochs=3000, out=tmp_path)
    line, pipe = [sys.executable, "-m", "vit_steps.training", *options], subprocess.PIPE
    process = subprocess.Popen(line, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)
    assert process.stdout
    while not process.stdout.readline().startswith("epoch   2"):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    text, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")
    assert "Stopped; the same command goes on from the last finished epoch." in text
    assert "measured once" not in text  # it is measured once, at the end
    assert len(history_in(tmp_path)) >= 2


def test_the_help_tells_a_newcomer_what_to_type(capsys):
    with pytest.raises(SystemExit):
        command.main(["--help"])
    text = capsys.readouterr().out
    for word in ("folder:PATH", "--val-fraction", "Ctrl-C", "torchrun", "highest learning"):
        assert word in text
    assert max(map(len, text.splitlines())) <= 90
