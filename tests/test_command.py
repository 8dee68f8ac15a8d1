"""`python -m vit_steps.training`: what it does, what it says, and what it refuses."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from vit_steps import ViT, ViTConfig, checkpoints, command, training

ROOT = Path(__file__).parent.parent


def few(**options):
    """Arguments for a training of a second."""
    small = dict(epochs=1, embed_dim=8, depth=1, num_heads=2, patch_size=4, device="cpu")
    pairs = ((f"--{k.replace('_', '-')}", str(v)) for k, v in (small | options).items())
    return [word for pair in pairs for word in pair]


def epochs_in(folder):
    """How many epochs the last checkpoint tells of."""
    return len(checkpoints.read_file(folder / "last.safetensors")[1]["history"]["test_loss"])


def test_the_command_trains_says_where_the_weights_are_and_goes_on(tmp_path, capsys):
    out = tmp_path / "run"
    assert command.main(few(epochs=2, out=out)) == 0
    text, err = capsys.readouterr()
    assert err == ""
    assert text.startswith(
        "digits: 1,438 images to train on, 359 held out; 10 classes; 8×8 pixels\n"
        "ViT with 1,162 parameters, on cpu\nepoch   1 of 2: training loss 2."
    )
    assert text.count("held-out accuracy") == 2
    assert f"weights: {out / 'last.safetensors'}" in text
    assert "of the held-out images right after epoch 2" in text
    model = training.load_model(out / "best.safetensors")
    assert model.config == ViTConfig((8, 8), 4, 1, 10, 8, 1, 2)

    assert command.main(few(epochs=2, out=out)) == 0  # nothing left to do
    text = capsys.readouterr().out
    assert f"going on from {out / 'last.safetensors'}" in text
    assert "held-out accuracy" not in text

    with pytest.raises(SystemExit, match=r"of another run \(epochs was 2, is 1\)"):
        command.main(few(out=out))
    assert command.main([*few(out=out), "--restart"]) == 0
    assert epochs_in(out) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(data="cats"), "'cats': give \"digits\""),
        (dict(data="folder:/nowhere"), "/nowhere is not a folder"),
        (dict(data="openml:Cats"), "no data set 'Cats'"),
        (dict(epochs=0), "epochs is 0"),
        (dict(patch_size=3), "not a multiple of the patch size 3"),
        (dict(embed_dim=9), "embed_dim 9 does not divide into 2 heads"),
        (dict(num_heads=0), "num_heads is 0"),
        (dict(lr=-1), "lr is -1"),
        (dict(image_size=64), "--image-size is for folders"),
        (dict(dropout=1), "dropout is 1"),
        (dict(seed=-5), "seed is -5"),
    ],
)
def test_a_bad_option_gives_one_line(tmp_path, options, message):
    with pytest.raises(SystemExit) as error:
        command.main(few(**(dict(out=tmp_path / "run") | options)))
    assert str(error.value).startswith("vit_steps.training: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists() or not any((tmp_path / "run").iterdir())


@pytest.mark.parametrize("words", [["--epochs", "many"], ["--augment", "cats"], ["--colour"]])
def test_an_unknown_option_is_named(words, capsys):
    with pytest.raises(SystemExit) as error:
        command.main(words)
    assert error.value.code == 2
    assert words[0] in capsys.readouterr().err


def test_the_command_trains_on_a_folder_of_any_pictures(tmp_path, capsys):
    from PIL import Image

    for name, colour in (("red", (200, 30, 30)), ("blue", (30, 30, 200))):
        (tmp_path / "mine" / name).mkdir(parents=True)
        for i in range(5):
            Image.new("RGB", (50 + 7 * i, 90 - 11 * i), colour).save(
                tmp_path / "mine" / name / f"{i}.jpg"
            )
    (tmp_path / "mine" / "red" / "broken.jpg").write_bytes(b"\xff\xd8\xff not a picture")
    options = few(data=f"folder:{tmp_path / 'mine'}", image_size=16, epochs=3, out=tmp_path / "run")
    assert command.main(options) == 0
    text = capsys.readouterr().out
    assert text.startswith("note: ")
    assert "broken.jpg" in text
    assert "8 images to train on, 2 held out; 2 classes; 16×16 pixels" in text
    assert training.load_model(tmp_path / "run" / "last.safetensors").config.in_channels == 3


def test_each_recipe_makes_a_model():
    sides = {"digits": (1, 8), "scattered": (1, 16), "folder": (3, 64), "openml": (3, 32)}
    for name, recipe in command.RECIPES.items():
        channels, side = sides[name.partition(":")[0]]
        sizes = {key: recipe[key] for key in ("patch_size", "embed_dim", "depth")}
        ViT(ViTConfig(image_size=side, in_channels=channels, num_heads=4, **sizes))
        assert recipe["augment"] in command.AUGMENT


@pytest.mark.skipif(os.name == "nt", reason="Windows has another Ctrl-C")
def test_ctrl_c_at_the_command_saves_and_says_how_to_go_on(tmp_path):
    options = few(epochs=3000, out=tmp_path)
    words = [sys.executable, "-m", "vit_steps.training", *options]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout
    while not process.stdout.readline().startswith("epoch   2"):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    text, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")
    stopped = re.search(r"Stopped after epoch (\d+); the same command goes on from there", text)
    assert stopped
    # The signal may come while an epoch is saved: the file then holds it, or the one before.
    assert int(stopped[1]) - epochs_in(tmp_path) in (-1, 0, 1)


def test_the_help_tells_a_newcomer_what_to_type(capsys):
    with pytest.raises(SystemExit):
        command.main(["--help"])
    text = capsys.readouterr().out
    for word in ("digits", "scattered", "folder:PATH", "openml:", "--epochs", "Ctrl-C", "examples"):
        assert word in text
    assert max(map(len, text.splitlines())) <= 90
