"""What a trained ViT says of pictures, in Python and as a command."""

import csv
import re
from pathlib import Path

import pytest
import torch
from PIL import Image
from test_folders import plain
from tiny_training import same, tiny

import vit_steps.weights
from vit_course.plots import predictions
from vit_steps import predict as command
from vit_steps import training
from vit_steps.images import Preprocess
from vit_steps.predict import predict
from vit_steps.pretrained import load
from vit_steps.pretrained.loading import OWN
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


def test_the_courses_own_weights_go_by_their_names(weights, pets, monkeypatch):
    data = digits()[1].part(slice(10))
    canvases = torch.nn.functional.pad(data.pixels, (4, 4, 4, 4)) / 16
    named = [int(one.name) for one in predict("scattered", 1 - canvases)]
    assert sum(a == b for a, b in zip(named, data.labels.tolist(), strict=True)) >= 8
    assert same(vit_steps.weights.load("scattered").model, training.load_model(SCATTERED))
    with pytest.raises(ValueError, match=r"'photo': the course's own .* 'photos' and 'scattered'"):
        vit_steps.weights.load("photo")

    monkeypatch.chdir(pets.parent)
    monkeypatch.setitem(OWN, "photos", weights.parent / "photos.safetensors")
    for call in (vit_steps.weights.load, load):
        with pytest.raises(ValueError, match=r"photos\.safetensors is not there"):
            call("photos")
    weights.rename(OWN["photos"])
    pets.rename("photos")  # a folder of pictures is not meant
    assert predict("photos", "photos/cat/00.jpg")[0].name in NAMES
    with pytest.raises(ValueError, match="photos holds no"):
        load(Path("photos"))
    with pytest.raises(ValueError, match="revision is 'main', but photos is here"):
        load("photos", revision="main")
    training.save_model(tiny(num_classes=4), "photos/best.safetensors")
    assert load("photos").config.num_classes == 4  # what is there comes first


def test_how_often_so_large_a_share_was_right_is_told(weights, pets):
    file, found = pets / "cat" / "00.jpg", training.load_weights(weights)
    share = predict(found, file)[0].shares[0][1]
    for right, told in ((12, "1%"), (900, "75%"), (1000, None)):
        bins = [(0, 5, 5), (share - 0.01, 1200, right), (share + 0.01, 30, 30)]
        table = [dict(least=least, images=n, right=r) for least, n, r in bins]
        found.measured["result"]["by_share"] = table
        (one,) = predict(found, file)
        assert (one.before, one.right_before) == ((1200, right), right / 1200)
        doubt = f" · unsure: of 1,200 held-out pictures with such a share, {told} were right"
        assert str(one).endswith(f"%{doubt if told else ''}")
    (other,) = predict(found, file, preprocess=Preprocess((4, 4), mean=(0.5,), std=(0.5,)))
    assert other.right_before is None  # prepared otherwise, nothing was counted
    training.save_model(found.model, weights, NAMES, HOW, found.measured)
    assert load(weights).measured["result"]["by_share"] == table
    assert "result" not in load(weights, num_classes=3).measured  # of the head that it had


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(classes=("a", "b")), "there are 2 names for 3 classes"),
        (dict(pictures="nowhere.jpg"), r"nowhere\.jpg is not there"),
        (dict(pictures="pets/cat/broken.jpg"), r"broken\.jpg is not a picture"),
        (dict(pictures="empty"), "holds no pictures"),
        (dict(batch_size=0), "batch_size is 0"),
        (dict(weights="plain.safetensors"), "do not say how they want their pictures; give prep"),
    ],
)
def test_what_cannot_be_named_is_refused(weights, pets, monkeypatch, options, message):
    (pets.parent / "empty").mkdir()
    training.save_model(tiny(), pets.parent / "plain.safetensors")
    monkeypatch.chdir(pets.parent)
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
    assert lines[1:-1] == [*map(str, found), "(accuracy on test: 87.5%)"]
    assert lines[-1].startswith("(it knows 3 classes: 고양이, dog, dog; a picture of something")
    rows = [*csv.reader(table.read_text("utf-8").splitlines())]
    assert rows[0] == ["picture", "class", "share"]
    wanted = [[one.picture, name, str(share)] for one in found for name, share in one.shares]
    assert rows[1:] == wanted
    for wrong in ([str(weights), "nowhere.jpg"], ["nowhere", str(pets)]):
        with pytest.raises(SystemExit, match=r"^vit_steps\.predict: nowhere.* is not there.*$"):
            command.main(wrong)


def test_the_command_shows_what_it_predicts(weights, pets, monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(predictions, "draw_predictions", lambda *call: calls.append(call))
    file, figure = str(pets / "cat" / "00.jpg"), tmp_path / "where.png"
    assert command.main([str(weights), file, "--show", str(figure), "--device", "cpu"]) == 0
    ((path, loaded, found),) = calls
    assert (path, found) == (figure, predict(weights, file))
    assert same(loaded.model, training.load_model(weights))


def test_where_no_picture_can_be_read_it_says_so_and_fails(weights, pets, capsys, monkeypatch):
    monkeypatch.chdir(pets.parent)
    for file in pets.glob("*/0*.jpg"):
        file.unlink()
    with pytest.raises(SystemExit, match="none of the pictures can be read"):
        command.main([str(weights), str(pets), "--show", "where.png", "--csv", "table.csv"])
    assert "broken.jpg" in capsys.readouterr().out


def test_addresses_keep_both_slashes_and_heads_can_be_said(weights, pets, tmp_path, capsys):
    file, address = str(pets / "cat" / "00.jpg"), "https://a.org/b.jpg"
    for call in ([str(weights), address], [address, file]):
        with pytest.raises(SystemExit, match=f"^vit_steps.predict: {address} is an address; save"):
            command.main(call)
    with pytest.raises(ValueError, match=f"^{address} is an address; save"):
        predict(weights, [file, address])
    theirs = {n.removeprefix("tokens."): t for n, t in tiny(in_channels=3).state_dict().items()}
    torch.save({"net": theirs}, tmp_path / "vit.ckpt")
    with pytest.raises(SystemExit, match="give num_heads"):
        command.main([str(tmp_path / "vit.ckpt"), file])
    assert command.main([str(tmp_path / "vit.ckpt"), file, "--num-heads", "2"]) == 0
    assert re.match(
        "note: the weights are those of 'net'.*\nnote: .*assumed", capsys.readouterr().out
    )
    with pytest.raises(SystemExit, match=r"num_heads is 1, but .* says 2"):
        command.main([str(weights), file, "--num-heads", "1"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["a.jpg"] * 9 + ["--show", "x.png"], "at most 8 pictures, not 9; name fewer"),
        (["a.jpg", "--show", "x.jpg"], r"ends in \.png"),
        (["https://a.org/a.jpg", "--show", "x.png"], r"https://a\.org/a\.jpg is an address; save"),
    ],
)
def test_what_cannot_be_shown_is_refused_before_all_else(options, message):
    with pytest.raises(SystemExit, match=message):
        command.main(["nowhere", *options])
