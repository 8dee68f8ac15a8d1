"""What a training came to: class by class, in numbers, in tables and in pictures."""

import csv
import warnings

import pytest
import torch
from PIL import Image
from tiny_training import Plain, pictures, tiny
from torch import nn
from torch.nn import functional as F

from vit_steps import training
from vit_steps.training import measuring
from vit_steps.training.measuring import Measured, measure

# 8 cats, of which one is taken for a fox; 2 dogs, both taken for cats; no fox.
COUNTS = torch.tensor([[7, 0, 1], [2, 0, 0], [0, 0, 0]])
LABELS = torch.tensor([0] * 8 + [1] * 2)
ANSWERS = torch.tensor([0] * 7 + [2, 0, 0])


def uneven(names=("cat", "dog", "fox")):
    return Measured(0.5, LABELS, F.one_hot(ANSWERS, 3) * 0.8 + 0.1, names)


def says():
    """A model that gives the logits that stand in its images."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(3, 3, bias=False))
    nn.init.eye_(model[1].weight)
    return model


def test_what_is_measured_says_what_always_answering_the_largest_class_would_be():
    assert torch.equal(uneven().counts, COUNTS)
    assert uneven().accuracy == 0.7
    lines = str(uneven()).splitlines()
    assert lines[0] == 'accuracy 70.0%; always answering "cat" would be 80.0%'
    assert [line.split() for line in lines[3:6]] == [
        ["cat", "0.78", "0.88", "0.82", "8"],  # precision, recall, f1, images
        ["dog", "0.00", "0.00", "0.00", "2"],
        ["fox", "0.00", "0.00", "0.00", "0"],
    ]


@pytest.mark.parametrize("batch_size", [1, 4, None])
def test_measuring_counts_each_class_and_agrees_with_evaluate(batch_size):
    images = torch.eye(3)[ANSWERS].view(-1, 1, 1, 3)
    data = Plain([*zip(images, LABELS.tolist(), strict=True)])
    measured = measure(says(), data, batch_size=batch_size)
    assert torch.equal(measured.counts, COUNTS)
    assert measured.classes == ("0", "1", "2")
    expected = training.evaluate(says(), data)
    assert (measured.loss, measured.accuracy) == pytest.approx(expected)
    assert measure(tiny(), pictures()).classes == ("a", "b", "c")


def test_the_largest_share_falls_into_its_bin_and_few_images_say_nothing():
    sizes = torch.tensor([50, 50, 50, 60, 70, 89.9, 90, 95, 99, 99.9, 100]) / 100
    labels = torch.tensor([0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0])
    pairs = torch.stack([sizes, 1 - sizes], dim=1)
    rows = measuring.summary("val", Measured(0.5, labels, pairs, ("a", "b")))["result"]["by_share"]
    counts = [(row["images"], row["right"]) for row in rows]
    assert counts == [(0, 0), (3, 2), (1, 0), (1, 1), (1, 1), (1, 1), (1, 1), (3, 3)]
    many = Measured(0.5, labels.repeat(10), pairs.repeat(10, 1), ("a", "b"))
    summary = measuring.summary("val", many)
    for share, expected in ((0.49, None), (0.5, (30, 20)), (0.75, None), (1.0, (30, 30))):
        assert measuring.right_with_share(share, summary) == expected
    assert measuring.right_with_share(1.0, {"result": {"part": "test"}}) is None  # of an older file


def test_a_conclusion_is_in_the_weights_and_beside_them(tmp_path):
    best, model = tmp_path / "best.safetensors", tiny()
    training.save_model(model, best, measured={"train": "some"})
    names = ("고양이", "$_$", "K\udce4se")  # the font lacks one, one is no mathematics
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measuring.conclude(tmp_path, "test", uneven(names))
    measured = training.load_weights(best).measured
    assert measured["train"] == "some"
    assert measured["test"] == "10 images"
    result = measured["result"]
    assert (result["part"], result["accuracy"], result["loss"]) == ("test", 0.7, 0.5)
    assert result["classes"][0] == dict(images=8, right=7)
    assert [b["least"] for b in result["by_share"]] == [*measuring.EDGES]
    text = (tmp_path / "classes.csv").read_text("utf-8", errors="surrogateescape")
    rows = [*csv.reader(text.splitlines())]
    assert rows[0] == ["class", "images", "right"]
    assert rows[1:3] == [["고양이", "8", "7"], ["$_$", "2", "0"]]
    with Image.open(tmp_path / "confusion.png") as picture:
        assert picture.format == "PNG"


def test_a_history_is_a_table(tmp_path):
    whole = "epoch,train_loss,val_loss,val_accuracy,learning_rate\n1,3,2,0.5,0.1\n2,2,1,0.75,0.2\n"
    train = "epoch,train_loss,learning_rate\n1,3,0.1\n2,2,0.2\n"
    for val, text in (([[2, 1], [0.5, 0.75]], whole), ([[], []], train)):
        measuring.write_history(tmp_path, training.History([3, 2], *val, [0.1, 0.2]))
        assert (tmp_path / "history.csv").read_text() == text
