"""What a trained ViT says of pictures, in Python and as a command."""

import csv
import re

import pytest
import torch
from PIL import Image
from test_folders import plain
from tiny_training import tiny

from vit_steps import predict as command
from vit_steps import training
from vit_steps.predict import predict
from vit_steps.pretrained import load
from vit_steps.training.data import as_stored, digits
from vit_steps.weights import SCATTERED

HOW = as_stored(4)
NAMES = ("고양이", "dog", "dog")  # two of one name


@pytest.fixture
def weights(tmp_path):
    torch.manual_seed(0)
    (tmp_path / "run").mkdir()
    path, model = tmp_path / "run" / "best.safetensors", tiny()
    torch.nn.init.normal_(model.head.weight)
    result = dict(part="test", accuracy=0.875)
    training.save_model(model, path, NAMES, HOW, {"result": result})
    return path


@pytest.fixture
def pets(tmp_path):
    path = plain(tmp_path / "pets", 개=2, cat=2)
    (path / "cat" / "broken.jpg").write_bytes(b"not a picture")
    (path / "notes.txt").write_text("mine")
    return path


def test_a_picture_gets_the_models_own_shares_prepared_as_it_learned(weights, pets):
    file = pets / "cat" / "00.jpg"
    (found,) = predict(weights, file)
    model = training.load_model(weights)
    shares = model(HOW(file)).softmax(dim=1)[0].tolist()
    assert found.picture == str(file)
    assert [share for _, share in found.shares] == pytest.approx(sorted(shares, reverse=True))
    assert sorted(name for name, _ in found.shares) == sorted(NAMES)
    assert found.name == NAMES[shares.index(max(shares))]
    assert re.fullmatch(r".*00\.jpg: \S+ \d+\.\d%, \S+ \d+\.\d%, \S+ \d+\.\d%", str(found))
    assert predict(weights, [file], classes="abc")[0].name == "abc"[shares.index(max(shares))]


@pytest.mark.parametrize("batch_size", [1, 3, 32])
def test_pictures_may_be_files_folders_pillows_or_tensors(weights, pets, batch_size):
    files = sorted(pets.glob("*/0*.jpg"))
    opened = Image.open(files[0])
    tensors = torch.cat([HOW.pixels(file)[None] for file in files])
    tensors = 1 - tensors  # paper is 1 in a picture, ink in a digit
    with pytest.warns(UserWarning, match=r"broken\.jpg is not a picture .*; skipped"):
        of_folder = predict(weights, pets, batch_size=batch_size)
    with pytest.warns(UserWarning, match="skipped"):  # it is the last
        assert predict(weights, pets / "cat", batch_size=batch_size) == of_folder[:2]
    assert [one.picture for one in of_folder] == [str(file) for file in files]
    mixed = predict(weights, [files[0], opened, tensors[0]], batch_size=batch_size)
    assert [one.picture for one in mixed] == [str(files[0]), "1", "2"]
    for one in (*mixed, predict(weights, opened)[0], predict(weights, tensors)[0]):
        assert one.shares[0] == (of_folder[0].name, pytest.approx(of_folder[0].shares[0][1], 1e-4))
    for opened in (load(weights), training.load_weights(weights), weights.parent):
        assert predict(opened, files, batch_size=batch_size) == of_folder
    assert predict(weights, []) == []


def test_the_stored_weights_name_digits():
    data = digits()[1].part(slice(10))
    canvases = torch.nn.functional.pad(data.pixels, (4, 4, 4, 4)) / 16
    named = [int(one.name) for one in predict(SCATTERED, 1 - canvases)]
    assert sum(a == b for a, b in zip(named, data.labels.tolist(), strict=True)) >= 8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(classes=("a", "b")), "there are 2 names for 3 classes"),
        (dict(pictures="nowhere.jpg"), r"nowhere\.jpg is not there"),
        (dict(pictures="pets/cat/broken.jpg"), r"broken\.jpg is not a picture"),
        (dict(pictures="."), "holds no pictures"),
        (dict(batch_size=0), "batch_size is 0"),
        (dict(weights="plain.safetensors"), "do not say how they want their pictures; give prep"),
    ],
)
def test_what_cannot_be_named_is_refused(weights, pets, monkeypatch, options, message):
    (pets.parent / "empty").mkdir()
    training.save_model(tiny(), pets.parent / "plain.safetensors")
    if options.get("pictures") != ".":
        monkeypatch.chdir(pets.parent)
    else:
        monkeypatch.chdir(pets.parent / "empty")
    given = dict(weights=weights, pictures=pets / "cat" / "00.jpg") | options
    with pytest.raises(ValueError, match=message):
        predict(**given)
    if "weights" in options:
        assert len(predict(**given, preprocess=HOW)) == 1


def test_the_command_prints_a_line_a_picture_and_writes_all_shares(weights, pets, capsys):
    table = pets.parent / "shares.csv"
    assert command.main([str(weights), str(pets), "--csv", str(table), "--device", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.match(r"note: .*broken\.jpg .*; skipped", lines[0])
    found = predict(weights, sorted(pets.glob("*/0*.jpg")))
    assert lines[1:] == [*map(str, found), "(accuracy on test: 87.5%)"]
    rows = [*csv.reader(table.read_text("utf-8").splitlines())]
    assert rows[0] == ["picture", "class", "share"]
    wanted = [[one.picture, name, str(share)] for one in found for name, share in one.shares]
    assert rows[1:] == wanted
    for wrong in ([str(weights), "nowhere.jpg"], ["nowhere", str(pets)]):
        with pytest.raises(SystemExit, match=r"^vit_steps\.predict: nowhere.* is not there.*$"):
            command.main(wrong)
