"""What a training came to: class by class, in numbers, in tables and in pictures."""

import csv
import warnings

import pytest
import torch
from PIL import Image
from tiny_training import Plain, pictures, tiny
from torch import nn

from vit_steps import training
from vit_steps.training import measuring
from vit_steps.training.identity import fingerprint
from vit_steps.training.measuring import Measured, measure

# 8 cats, of which one is taken for a fox; 2 dogs, both taken for cats; no fox.
COUNTS = torch.tensor([[7, 0, 1], [2, 0, 0], [0, 0, 0]])
UNEVEN = Measured(0.5, COUNTS, ("cat", "dog", "fox"))


class Says(nn.Module):
    """Gives the logits that stand in its images."""

    def __init__(self):
        super().__init__()
        self.none = nn.Parameter(torch.zeros(()))

    def forward(self, images):
        return images.flatten(1) + self.none


def test_what_is_measured_says_what_always_naming_the_largest_class_would_be():
    assert UNEVEN.accuracy == 0.7
    assert UNEVEN.majority == ("cat", 0.8)
    assert UNEVEN.rows() == [("cat", 8, 7, "fox"), ("dog", 2, 0, "cat"), ("fox", 0, 0, "")]
    assert str(UNEVEN).splitlines() == [
        'accuracy 70.0%; always naming "cat" would be 80.0%',
        "  cat   88%  7 of 8, most often taken for fox",
        "  dog    0%  0 of 2, most often taken for cat",
        "  fox  none  0 of 0",
    ]


def test_of_many_classes_the_worst_are_told():
    counts = torch.eye(40).long() * 10
    counts[7, 7:9] = torch.tensor([4, 6])
    many = Measured(0.5, counts, tuple(map(str, range(40))))
    lines = str(many).splitlines()
    assert len(lines) == 7
    assert lines[2].split() == ["7", "40%", "4", "of", "10,", "most", "often", "taken", "for", "8"]


@pytest.mark.parametrize("batch_size", [1, 4, None])
def test_measuring_counts_each_class_and_agrees_with_evaluate(batch_size):
    images, labels = [], []
    for i, row in enumerate(COUNTS.tolist()):
        for j, count in enumerate(row):
            images += [torch.eye(3)[j].view(1, 1, 3)] * count
            labels += [i] * count
    data = Plain([*zip(images, labels, strict=True)])
    found = measure(Says(), data, batch_size=batch_size)
    assert torch.equal(found.counts, COUNTS)
    assert found.classes == ("0", "1", "2")
    assert (found.loss, found.accuracy) == pytest.approx(training.evaluate(Says(), data))
    assert found.by_share.tolist() == [[0, 0], [10, 7], *[[0, 0]] * 6]  # e / (e + 2) is 58%
    assert measure(tiny(), pictures()).classes == ("a", "b", "c")


def test_the_largest_share_says_its_bin_and_how_many_there_were_right(monkeypatch):
    sizes = torch.tensor([50, 50, 50, 60, 70, 89.9, 90, 95, 99, 99.9, 100]) / 100
    logits = torch.stack([sizes, 1 - sizes], dim=1).log().clamp(min=-100)[..., None, None]
    labels = torch.tensor([0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0])
    data = Plain([*zip(logits, labels, strict=True)])
    wanted = torch.tensor([[0, 0], [3, 2], [1, 0], [1, 1], [1, 1], [1, 1], [1, 1], [3, 3]])
    assert torch.equal(measure(Says(), data).by_share, wanted)
    monkeypatch.setattr(measuring, "total", lambda mine: 2 * mine)  # of another process as much
    assert torch.equal(measure(Says(), data).by_share, 2 * wanted)


def test_of_few_images_in_a_bin_nothing_is_said():
    by_share = torch.tensor([[19, 1], [20, 12], *[[0, 0]] * 5, [40, 40]])
    said = measuring.told("test", pictures(), Measured(0.5, COUNTS, UNEVEN.classes, by_share))
    for share, wanted in ((0.49, None), (0.5, (20, 12)), (0.9, None), (1.0, (40, 40))):
        assert measuring.with_such_a_share(share, said) == wanted
    assert measuring.with_such_a_share(1.0, {"result": {"part": "test"}}) is None  # of before


def test_a_conclusion_is_in_the_weights_and_beside_them(tmp_path):
    best, model = tmp_path / "best.safetensors", tiny()
    training.save_model(model, best, measured={"train": "some"})
    names = ("고양이", "$_$", "K\udce4se")  # the font lacks one, one is no mathematics
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measuring.conclude(tmp_path, "test", pictures(), Measured(0.5, COUNTS, names))
    measured = training.load_weights(best).measured
    assert measured["train"] == "some"
    assert measured["test"] == fingerprint(pictures())
    result = measured["result"]
    assert (result["part"], result["accuracy"], result["loss"]) == ("test", 0.7, 0.5)
    assert result["classes"][0] == dict(images=8, right=7)
    assert [b["least"] for b in result["by_share"]] == [*measuring.EDGES]
    text = (tmp_path / "classes.csv").read_text("utf-8", errors="surrogateescape")
    rows = [*csv.reader(text.splitlines())]
    assert rows[0] == ["class", "images", "right", "taken for"]
    assert rows[1:3] == [["고양이", "8", "7", "K\udce4se"], ["$_$", "2", "0", "고양이"]]
    with Image.open(tmp_path / "confusion.png") as picture:
        assert picture.format == "PNG"


@pytest.mark.parametrize("with_val", [False, True])
def test_a_history_is_a_table_and_a_picture(tmp_path, with_val):
    history = training.History([3, 2], [2, 1], [0.5, 0.75], [0.1, 0.2])
    if not with_val:
        history.val_loss, history.val_accuracy = [], []
    measuring.write_history(tmp_path, history)
    rows = [*csv.DictReader((tmp_path / "history.csv").read_text().splitlines())]
    assert [row["epoch"] for row in rows] == ["1", "2"]
    assert [row["learning_rate"] for row in rows] == ["0.1", "0.2"]
    assert [row.get("val_accuracy") for row in rows] == (
        ["0.5", "0.75"] if with_val else [None] * 2
    )
    measuring.draw_history(tmp_path / "curves.png", history)
    with Image.open(tmp_path / "curves.png") as picture:
        assert picture.size == (960, 360)
