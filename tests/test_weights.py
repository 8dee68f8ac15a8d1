"""The stored weights are what their README says: small, whole, and right on held-out digits."""

import re
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

import vit_steps
from vit_steps import ViT
from vit_steps.training import evaluate, load_model
from vit_steps.training.__main__ import arguments
from vit_steps.training.data import scattered

FOLDER = Path(vit_steps.__file__).parent / "weights"
FILE = FOLDER / "scattered.safetensors"
README = (FOLDER / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def model():
    return load_model(FILE)


@pytest.fixture(scope="module")
def held_out():
    return scattered(2000, seed=1, held_out=True)


def test_the_file_is_small_and_holds_the_weights_alone():
    assert FILE.stat().st_size <= 1_000_000
    with safe_open(FILE, framework="pt") as file:
        names = set(file.keys())
    assert names == set(load_model(FILE).state_dict())


def test_the_model_is_the_one_that_lesson_08_looks_into(model):
    assert isinstance(model, ViT)
    assert not model.training
    config = model.config
    assert (config.image_size, config.patch_size, config.in_channels) == (16, 4, 1)
    assert (config.num_classes, config.pool) == (10, "cls")


def test_it_knows_held_out_digits_at_held_out_places(model, held_out):
    _, accuracy = evaluate(model, held_out)
    assert accuracy >= 0.95
    claimed = float(re.search(r"\*\*(\d+\.\d)%\*\*", README)[1]) / 100
    assert abs(accuracy - claimed) < 0.003  # of the same canvases; processors round differently


def test_the_bar_is_one_that_a_model_can_miss(model, held_out):
    torch.manual_seed(0)
    untrained = ViT(model.config).eval()
    assert evaluate(untrained, held_out)[1] < 0.3


def test_the_readme_gives_the_command_that_trains_it_again():
    command = re.search(r"python -m vit_steps\.training .*", README)[0]
    options = arguments().parse_args(command.split()[3:])
    assert options.data == "scattered"
    assert (options.val_fraction, options.seed) == (0, 0)  # all canvases are trained on
