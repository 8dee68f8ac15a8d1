"""`python -m vit_steps.training`: what it does, what it says, and what it refuses."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from test_folders import plain

from vit_steps import ViT, ViTConfig, training
from vit_steps.training import __main__ as command
from vit_steps.training import checkpoints
from vit_steps.training.data import digits

ROOT = Path(__file__).parent.parent


def few(**options):
    """Arguments for a training of a second."""
    small = dict(epochs=1, embed_dim=8, depth=1, num_heads=2, patch_size=4, device="cpu")
    pairs = ((f"--{k.replace('_', '-')}", str(v)) for k, v in (small | options).items())
    return [word for pair in pairs for word in pair]


def epochs_in(folder):
    """How many epochs the last checkpoint tells of."""
    return len(checkpoints.read_checkpoint(folder / "last.safetensors")[1]["history"]["train_loss"])


def test_the_command_trains_says_where_the_weights_are_and_goes_on(tmp_path, capsys):
    out = tmp_path / "run"
    assert command.main(few(epochs=2, out=out)) == 0
    text, err = capsys.readouterr()
    assert err == ""
    assert text.startswith(
        "digits: 1,295 images to train on, 143 for val, 359 to test on; 10 classes; 8×8 pixels\n"
        "ViT with 1,162 parameters, on cpu\nepoch   1 of 2: training loss 2."
    )
    assert len(re.findall(r", val loss \d\.\d{3}, val accuracy \d+\.\d%\n", text)) == 2
    best = training.load_model(out / "best.safetensors")
    assert best.config == ViTConfig((8, 8), 4, 1, 10, 8, 1, 2)
    epoch = re.search(r"best epoch: (\d), by its val accuracy of \d+\.\d%\n", text)[1]
    test = f"{training.evaluate(best, digits()[1])[1]:.1%}"
    assert text.endswith(
        f"test accuracy of epoch {epoch}, measured once: {test}\n"
        f"weights: {out / 'best.safetensors'} (epoch {epoch})\n"
        f"         {out / 'last.safetensors'} (epoch 2)\n"
    )

    assert command.main(few(epochs=2, out=out)) == 0  # nothing left to do
    text = capsys.readouterr().out
    assert f"going on from {out / 'last.safetensors'}" in text
    assert "val accuracy" not in text.partition("best epoch")[0]
    assert text.count("test accuracy") == 1

    with pytest.raises(SystemExit, match=r"of another run \(epochs was 2, is 1\)"):
        command.main(few(out=out))
    assert command.main([*few(out=out), "--restart"]) == 0
    assert epochs_in(out) == 1

    command.main(few(epochs=2, out=tmp_path / "other", lr=0.03))
    (tmp_path / "other" / "best.safetensors").replace(out / "best.safetensors")
    capsys.readouterr()
    command.main(few(out=out))  # it is the best that is measured, not the last
    other = training.evaluate(training.load_model(out / "best.safetensors"), digits()[1])[1]
    assert f"measured once: {other:.1%}\n" in capsys.readouterr().out
    assert f"{other:.1%}" != test


def test_a_small_model_starts_from_spread_positions_and_trains_in_one_thread(tmp_path):
    torch.set_num_threads(2)
    model = command.make_model(command.arguments().parse_args(few(embed_dim=64)), digits()[0])
    assert model.tokens.pos_embed.std().item() == pytest.approx(0.2, rel=0.2)
    assert command.main(few(out=tmp_path)) == 0
    assert torch.get_num_threads() == 1


def test_without_val_the_last_epoch_is_the_one_that_is_tested(tmp_path, capsys):
    assert command.main(few(epochs=2, out=tmp_path, val_fraction=0)) == 0
    text = capsys.readouterr().out
    assert text.startswith("digits: 1,438 images to train on, 359 to test on; 10 classes;")
    assert "val accuracy" not in text
    assert "test accuracy of epoch 2, measured once:" in text


def test_a_restart_leaves_the_folder_of_a_run_at_work_alone(tmp_path):
    command.main(few(out=tmp_path))
    before = (tmp_path / "last.safetensors").read_bytes()
    with (
        checkpoints.own_folder(tmp_path),
        pytest.raises(SystemExit, match="is in use by another training"),
    ):
        command.main([*few(out=tmp_path), "--restart"])
    assert (tmp_path / "last.safetensors").read_bytes() == before


def test_mixed_precision_and_workers_are_passed_on(tmp_path, monkeypatch):
    given = {}

    def fit(model, train, val, **options):
        given.update(options)
        return training.fit(model, train, val, **options)

    monkeypatch.setattr(command, "fit", fit)
    command.main([*few(out=tmp_path), "--amp", "--workers", "3"])
    assert given["amp"] is True
    assert checkpoints.read_checkpoint(tmp_path / "last.safetensors")[1]["run"]["amp"] is True


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
        (dict(val_fraction=1), "val_fraction is 1"),
        (dict(workers=-1), "workers is -1"),
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
        for i in range(6):
            Image.new("RGB", (50 + 7 * i, 90 - 11 * i), colour).save(
                tmp_path / "mine" / name / f"{i}.jpg"
            )
    (tmp_path / "mine" / "red" / "broken.jpg").write_bytes(b"\xff\xd8\xff not a picture")
    options = few(data=f"folder:{tmp_path / 'mine'}", image_size=16, epochs=3, out=tmp_path / "run")
    assert command.main(options) == 0
    text = capsys.readouterr().out
    assert text.startswith("note: ")
    assert "broken.jpg" in text
    assert "8 images to train on, 2 for val, 2 to test on; 2 classes; 16×16 pixels" in text
    assert training.load_model(tmp_path / "run" / "last.safetensors").config.in_channels == 3


def test_a_folder_with_its_own_val_keeps_it(tmp_path, capsys):
    for part, count in (("train", 3), ("val", 2), ("test", 1)):
        plain(tmp_path / part, a=count, b=count)
    out = tmp_path / "run"
    assert command.main(few(data=f"folder:{tmp_path}", image_size=16, out=out)) == 0
    assert "6 images to train on, 4 for val, 2 to test on" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("encoding", "name"),
    [("ascii", "Käse"), ("utf-8", "K\udce4se")],  # the byte 0xe4, as Latin-1 disks have it
)
def test_names_that_a_terminal_cannot_print_do_not_end_the_training(tmp_path, encoding, name):
    try:
        mine = plain(tmp_path / "my pets", **{name: 5, "Brot": 5})
    except OSError:
        pytest.skip("this system's names are Unicode")
    broken = f"kaputt {name}.jpg"
    (mine / name / broken).write_bytes(b"no picture")
    words = few(data=f"folder:{mine}", image_size=16, out=tmp_path / name)
    result = subprocess.run(
        [sys.executable, "-m", "vit_steps.training", *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
        env=os.environ | {"PYTHONIOENCODING": encoding},
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert broken.encode(encoding, "backslashreplace").decode() in result.stdout
    assert "test accuracy of epoch 1" in result.stdout


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
    assert "test accuracy" not in text  # it is measured once, at the end
    # The signal may come while an epoch is saved: the file then holds it, or the one before.
    assert int(stopped[1]) - epochs_in(tmp_path) in (-1, 0, 1)


def test_the_help_tells_a_newcomer_what_to_type(capsys):
    with pytest.raises(SystemExit):
        command.main(["--help"])
    text = capsys.readouterr().out
    for word in (
        "digits",
        "scattered",
        "folder:PATH",
        "openml:",
        "--amp",
        "--val-fraction",
        "Ctrl-C",
    ):
        assert word in text
    assert max(map(len, text.splitlines())) <= 90
