"""vit_steps.training.data: each set is what it says, split without a leak, or is refused."""

import errno
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
from urllib.error import URLError

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_folders import plain, rows

from vit_steps.images import normalize
from vit_steps.training import data
from vit_steps.training.data import (
    ImageDataset,
    digits,
    drawn,
    folder,
    hands,
    load_data,
    openml,
    photo_crops,
    scattered,
    split,
)

FEW = settings(deadline=None, max_examples=30, derandomize=True, database=None)


def same(a, b):
    places = (a.places is None and b.places is None) or torch.equal(a.places, b.places)
    alike = torch.equal(a.images, b.images) and torch.equal(a.labels, b.labels)
    return alike and places and a.classes == b.classes


# ImageDataset -------------------------------------------------------------------------------------

GOOD = dict(
    pixels=torch.zeros(3, 1, 4, 4),
    labels=torch.tensor([0, 1, 1]),
    classes=("cat", "dog"),
    places=torch.zeros(3, 2, dtype=torch.int64),
)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (dict(pixels=np.zeros((3, 1, 4, 4))), TypeError, "images is a ndarray"),
        (dict(pixels=torch.zeros(3, 1, 4, 4).int()), TypeError, r"give bytes \(uint8\) or floats"),
        (dict(pixels=torch.zeros(3, 4, 4)), ValueError, "batch axis is missing"),
        (dict(pixels=torch.zeros(2, 1, 4, 4)), ValueError, "2 images need"),
        (dict(labels=[0, 1, 1]), TypeError, "labels is a list"),
        (dict(labels=torch.tensor([0, 1, 1], dtype=torch.int32)), TypeError, "labels.long"),
        (dict(labels=torch.tensor([[0], [1], [1]])), ValueError, r"labels is \(3, 1\)"),
        (dict(labels=torch.tensor([0, 1, 2])), ValueError, "from 0 to 2; 2 classes"),
        (dict(classes=(0, 1)), TypeError, "tuple of names"),
        (dict(places=torch.zeros(2, 3).long()), ValueError, r"places is \(2, 3\)"),
        (dict(pixels=torch.full((3, 1, 4, 4), 17).byte(), white=16), ValueError, "go up to 17"),
        (dict(pixels=torch.zeros(3, 1, 4, 4).byte(), white=0), ValueError, "white is 0"),
    ],
)
def test_a_dataset_refuses_what_does_not_fit_together(change, error, message):
    with pytest.raises(error, match=message):
        ImageDataset(**(GOOD | change))


@pytest.mark.parametrize("white", [255, 16])
def test_bytes_become_the_same_floats_however_they_are_asked_for(white):
    pixels = torch.arange(white + 1).byte().view(-1, 1, 1, 1)
    labels = torch.arange(white + 1)
    whole = ImageDataset(pixels, labels, tuple(map(str, labels.tolist())), white=white)
    wanted = normalize(pixels.float() / white)
    assert torch.equal(whole.images, wanted)
    assert (whole.images.min(), whole.images.max()) == (-1, 1)
    image, label = whole[3]
    assert torch.equal(image, wanted[3])
    assert (label, type(label)) == (3, int)
    for index in (slice(2, 7), [5, 0, 5], torch.tensor([4, 1]), labels % 3 == 0):
        images, found = whole[index]
        assert torch.equal(images, wanted[index])
        assert torch.equal(found, labels[index])
    with pytest.raises(IndexError):
        whole[white + 1]
    assert len(list(whole)) == white + 1  # a plain loop ends


def test_floats_are_taken_as_they_are():
    floats = torch.randn(4, 1, 2, 2)
    whole = ImageDataset(floats, torch.tensor([0, 1, 0, 1]), ("a", "b"))
    assert whole.images is floats
    assert torch.equal(whole[1:3][0], floats[1:3])


def test_a_part_keeps_everything():
    whole = scattered(10)
    some = whole.part(torch.tensor([2, 5]))
    assert torch.equal(some.images, whole.images[[2, 5]])
    assert torch.equal(some.places, whole.places[[2, 5]])
    assert some.classes == whole.classes


# The split ---------------------------------------------------------------------------------------


def numbered(*counts):
    """So many images of each class, all different."""
    labels = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    images = torch.arange(sum(counts)).float().view(-1, 1, 1, 1)
    return ImageDataset(images, labels, tuple("abcdefgh"[: len(counts)]))


@FEW
@given(st.lists(st.integers(2, 30), min_size=1, max_size=6), st.floats(0.01, 0.99), st.integers(0))
def test_a_split_loses_nothing_repeats_nothing_and_holds_out_the_share_of_each_class(
    counts, fraction, seed
):
    seed %= 2**63
    whole = numbered(*counts)
    train, test = split(whole, fraction, seed)
    both = torch.cat([train.images, test.images]).flatten()
    assert torch.equal(both.sort().values, whole.images.flatten())
    for part in (train, test):  # each image still has its own label
        assert torch.equal(part.labels, whole.labels[part.images.flatten().long()])
    for label, n in enumerate(counts):
        held = (test.labels == label).sum().item()
        assert 1 <= held <= n - 1
        assert abs(held - n * fraction) <= 1


def test_a_split_is_drawn_at_random_and_the_same_seed_draws_the_same():
    whole = numbered(50, 50)
    one, again, other = (split(whole, 0.2, seed)[1] for seed in (0, 0, 1))
    assert same(one, again)
    assert not same(one, other)
    assert one.images.max() > 50 > one.images[9] > 10  # not the first or the last ten of a class


# Digits ------------------------------------------------------------------------------------------


def test_digits_are_scikit_learns_from_minus_one_to_one_a_fifth_held_out():
    from sklearn.datasets import load_digits

    train, test = digits()
    assert (len(train), len(test)) == (1438, 359)
    assert train.images.shape[1:] == (1, 8, 8)
    assert train.classes == test.classes == tuple("0123456789")
    source = load_digits()
    pixels = (source.images / 8 - 1).astype(np.float32)
    labels = {image.tobytes(): n for image, n in zip(pixels, source.target, strict=True)}
    assert rows(train) | rows(test) == set(labels)
    for part in (train, test):
        for image, label in zip(part.images, part.labels, strict=True):
            assert labels[image.numpy().tobytes()] == label


def test_the_split_is_the_one_that_the_stored_weights_were_trained_on():
    from sklearn.datasets import load_digits

    labels = torch.from_numpy(load_digits().target)
    numbers = torch.arange(float(len(labels))).view(-1, 1, 1, 1)
    held = split(ImageDataset(numbers, labels, data.DIGITS), 0.2, 0)[1].images.long().flatten()
    assert hashlib.sha256(str(held.tolist()).encode()).hexdigest()[:16] == "816c645765dbf2ef"


# Scattered digits --------------------------------------------------------------------------------


def at(data, side=8):
    """Each canvas cut out at its place."""
    places = zip(data.images, data.places.tolist(), strict=True)
    return torch.stack([image[:, r : r + side, c : c + side] for image, (r, c) in places])


@pytest.mark.parametrize("held_out", [False, True])
def test_a_scattered_digit_stands_whole_at_its_place_and_is_of_its_part(held_out):
    canvases = scattered(300, held_out=held_out)
    own = digits()[held_out]
    names = dict(zip(map(bytes, own.images.numpy()), own.labels.tolist(), strict=True))
    found = [names.get(bytes(cut)) for cut in at(canvases).numpy()]
    assert found == canvases.labels.tolist()  # None where a digit is of the other part or covered
    assert canvases.images.shape == (300, 1, 16, 16)
    assert canvases.images.min() == -1
    assert canvases.images.max() == 1
    assert set(found) == set(range(10))


def spots(data):
    return set(map(tuple, data.places.tolist()))


def test_a_fifth_of_the_places_is_kept_for_the_held_out_digits():
    train, test = spots(scattered(5000)), spots(scattered(1000, held_out=True))
    every = {(r, c) for r in range(9) for c in range(9)}
    assert train | test == every
    assert not train & test
    assert len(test) == 16
    for axis in (0, 1):  # spread over the whole canvas: each row and column has some
        assert {spot[axis] for spot in test} == set(range(9))


def test_fragments_lie_around_the_digit_as_many_as_asked_for():
    def ink_outside(fragments):
        canvases = scattered(200, side=24, fragments=fragments)
        return (canvases.images > -1).sum((1, 2, 3)) - (at(canvases) > -1).sum((1, 2, 3))

    assert ink_outside(0).max() == 0
    assert 0 < ink_outside(1).max() <= 9
    assert ink_outside(1).float().mean() * 3 < ink_outside(6).float().mean() <= 6 * 9


def test_fragments_are_pieces_of_digits_of_the_same_part():
    for held_out in (False, True):
        own = digits()[held_out].images
        pieces = own.unfold(2, 3, 1).unfold(3, 3, 1).reshape(-1, 3, 3)
        known = set(map(bytes, pieces.contiguous().numpy()))
        canvases = scattered(40, seed=3, fragments=1, held_out=held_out)
        for image, (r, c) in zip(canvases.images[:, 0], canvases.places.tolist(), strict=True):
            image[r : r + 8, c : c + 8] = -1
            windows = image.unfold(0, 3, 1).unfold(1, 3, 1).reshape(-1, 3, 3)
            ink = (windows > -1).sum((1, 2))
            whole = windows[ink == (image > -1).sum()]  # the windows that hold all of it
            assert any(bytes(w) in known for w in whole.contiguous().numpy())


@settings(FEW, max_examples=12)
@given(st.integers(13, 30), st.integers(0, 12), st.integers(0, 2**32), st.booleans())
def test_any_canvas_that_is_large_enough_is_filled(side, fragments, seed, held_out):
    canvases = scattered(20, seed, side, fragments, held_out)
    assert canvases.images.shape == (20, 1, side, side)
    assert canvases.places.min() >= 0
    assert canvases.places.max() <= side - 8
    assert same(canvases, scattered(20, seed, side, fragments, held_out))


def test_scattered_digits_draw_from_a_generator_of_their_own():
    before = torch.get_rng_state()
    one, other = scattered(20), scattered(20, seed=1)
    assert torch.equal(before, torch.get_rng_state())
    assert not same(one, other)
    torch.manual_seed(5)
    assert same(one, scattered(20))


# OpenML ------------------------------------------------------------------------------------------


def keep(home, number, table, labels, target="class"):
    """A data set in the form in which scikit-learn keeps what it downloads from OpenML."""
    columns = [f"pixel{i + 1}" for i in range(table.shape[1])]
    lines = [f"@RELATION set{number}", *(f"@ATTRIBUTE {c} REAL" for c in columns)]
    lines += [f"@ATTRIBUTE {target} {{0,1,2,3,4,5,6,7,8,9}}", "@DATA"]
    lines += [",".join(map(str, [*row, label])) for row, label in zip(table, labels, strict=True)]
    text = "\n".join(lines).encode()
    column = dict(is_target="false", is_ignore="false", is_row_identifier="false")
    column |= dict(number_of_missing_values="0", data_type="numeric")
    features = [column | dict(index=str(i), name=c) for i, c in enumerate(columns)]
    last = dict(index=str(len(columns)), name=target, data_type="nominal", is_target="true")
    features.append(column | last)
    address = f"data/v1/download/{number}"  # where old and new scikit-learn look
    about = dict(id=str(number), name=f"set{number}", version="1", format="ARFF", status="active")
    about |= dict(description="", file_id=str(number), url=f"https://www.openml.org/{address}")
    about |= dict(md5_checksum=hashlib.md5(text).hexdigest())
    quality = [dict(name="NumberOfInstances", value=str(float(len(table))))]
    api = "api/v1/json/data"
    for path, content in {
        address: text,
        f"{api}/{number}": json.dumps({"data_set_description": about}).encode(),
        f"{api}/features/{number}": json.dumps({"data_features": {"feature": features}}).encode(),
        f"{api}/qualities/{number}": json.dumps({"data_qualities": {"quality": quality}}).encode(),
    }.items():
        file = home / "openml" / "openml.org" / f"{path}.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(content, 1))


@pytest.fixture
def offline(monkeypatch):
    """No network, and no waiting for one; the last 4 rows are the test set."""

    def unreachable(*args, **kwargs):
        raise URLError("no network")

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", unreachable)
    monkeypatch.setattr("sklearn.datasets._openml.time.sleep", lambda seconds: None)
    monkeypatch.setattr(data, "HELD_OUT", 4)


LABELS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]


@pytest.mark.parametrize(
    ("name", "number", "shape", "third"),
    [
        ("Fashion-MNIST", 40996, (1, 28, 28), "coat"),
        ("MNIST", 554, (1, 28, 28), "4"),
        ("CIFAR-10", 40927, (3, 32, 32), "deer"),
    ],
)
def test_a_set_of_openml_is_read_from_its_own_format(tmp_path, offline, name, number, shape, third):
    table = np.random.default_rng(0).integers(0, 256, (10, np.prod(shape)))
    keep(tmp_path, number, table, LABELS)
    train, test = openml(name, tmp_path)
    assert (len(train), len(test)) == (6, 4)
    assert train.images.shape[1:] == shape
    assert train.labels.tolist() + test.labels.tolist() == LABELS
    assert train.classes[train.labels[2]] == third
    assert len(train.classes) == 10
    both = torch.cat([train.images, test.images])
    wanted = torch.from_numpy(table / 127.5 - 1).float().view(10, *shape)
    torch.testing.assert_close(both, wanted, atol=1e-6, rtol=0)


def test_a_set_is_downloaded_and_parsed_once(tmp_path, offline):
    keep(tmp_path, 554, np.arange(7840).reshape(10, 784) % 256, LABELS)
    first = openml("MNIST", tmp_path)
    shutil.rmtree(tmp_path / "openml")
    assert same(first[0], openml("MNIST", tmp_path)[0])
    assert [p.name for p in (tmp_path / "vit_steps").iterdir()] == ["MNIST.npz"]


def test_a_set_that_was_cut_off_while_being_kept_is_read_anew(tmp_path, offline, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    keep(tmp_path, 554, np.zeros((10, 784), dtype=int), LABELS)
    with monkeypatch.context() as m:
        m.setattr(os, "fsync", full)
        with pytest.raises(ValueError, match=r"MNIST\.npz cannot be written: No space"):
            openml("MNIST", tmp_path)
    assert list((tmp_path / "vit_steps").iterdir()) == []
    assert openml("MNIST", tmp_path)[0].labels.tolist() == LABELS[:6]


def test_without_a_network_and_nothing_kept_one_message_says_so(tmp_path, offline):
    with pytest.raises(ConnectionError, match=r"MNIST is not in .*cannot be reached.*digits\(\)"):
        openml("MNIST", tmp_path)


def test_hands_are_360_digits_of_twelve():
    ours = hands()
    assert ours.images.shape == (360, 1, 16, 16)
    assert ours.labels.bincount().tolist() == [36] * 10
    assert same(ours, hands())
    assert not set(map(bytes, ours.pixels.numpy())) & set(map(bytes, drawn(2000).pixels.numpy()))


def test_crops_of_three_photos_are_parts_of_them_made_smaller():
    ours = photo_crops(3)
    assert list(ours) == ["temple", "flower", "Grace Hopper"]
    assert all(crops.shape == (3, 3, 32, 32) for crops in ours.values())
    assert all(-1 <= crops.min() < 0 < crops.max() <= 1 for crops in ours.values())
    assert all(
        torch.equal(a, b) for a, b in zip(ours.values(), photo_crops(3).values(), strict=True)
    )
    assert not torch.equal(ours["flower"], photo_crops(3, seed=1)["flower"])


# By a name on the command line -------------------------------------------------------------------


def test_load_finds_each_source_and_passes_its_options_on(tmp_path, offline, monkeypatch):
    train, val, test = load_data("digits", fraction=0.3, seed=2, val_fraction=0)
    assert val is None
    assert same(train, digits(0.3, 2)[0])
    assert same(test, digits(0.3, 2)[1])
    train, _, test = load_data("scattered", seed=7, count=200, val_fraction=0)
    assert same(train, scattered(200, 7))
    assert same(test, scattered(4, 7, held_out=True))
    train, _, test = load_data("drawn", seed=7, count=200, val_fraction=0)
    both = scattered(200, 7), drawn(200, 7)
    for name in ("images", "labels"):
        assert torch.equal(getattr(train, name), torch.cat([getattr(one, name) for one in both]))
    assert (train.classes, train.preprocess) == (test.classes, test.preprocess)
    assert same(test, scattered(4, 7, held_out=True))
    path = plain(tmp_path / "a:b", cat=6, dog=6)  # a colon in the path
    wanted = folder(path, 12, 0.5, 3, 0.4)
    found = load_data(f"folder:{path}", size=12, fraction=0.5, seed=3, val_fraction=0.4)
    assert all(same(a, b) for a, b in zip(found, wanted, strict=True))
    keep(tmp_path, 554, np.zeros((40, 784), dtype=int), LABELS * 4)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    assert load_data("openml:MNIST", val_fraction=0).test.labels.tolist() == LABELS[-4:]


@pytest.mark.parametrize("source", ["digits", "scattered", "drawn"])
def test_val_is_taken_from_train_and_test_stays_what_it_was(source):
    whole = load_data(source, count=500, val_fraction=0)
    train, val, test = load_data(source, count=500, val_fraction=0.1)
    assert same(test, whole.test)
    both = [image.numpy().tobytes() for part in (train, val) for image in part.pixels]
    assert sorted(both) == sorted(image.numpy().tobytes() for image in whole.train.pixels)
    shares = val.labels.bincount() / whole.train.labels.bincount()
    assert (shares - 0.1).abs().max() < 0.02
    assert (train.places is None) == (whole.train.places is None)


VAL = "val_fraction is"
KNOWN = 'give "digits", "scattered", "drawn", "folder:PATH"'
SIDE = "side is 12; with 6 fragments give at least 13"
OPENML = "no data set 'ImageNet'; there are Fashion-MNIST, MNIST"
REFUSED = [
    (lambda: drawn(0), ValueError, "count is 0"),
    (lambda: drawn(2.5), TypeError, "count is 2.5"),
    (lambda: drawn(5, side=15), ValueError, "side is 15; give a whole number of at least 16"),
    (lambda: split(numbered(5, 1, 5), 0.2, 0), ValueError, "'b' has 1 picture;.*at least 2"),
    (lambda: split(numbered(2, 2, 0), 0.2, 0), ValueError, "class 'c' has 0 pictures"),
    (lambda: digits(0), ValueError, "nothing would be held out"),
    (lambda: digits(1), ValueError, "below 1"),
    (lambda: digits(float("nan")), ValueError, "fraction is nan"),
    (lambda: digits("half"), TypeError, "give a number"),
    (lambda: scattered(0), ValueError, "count is 0"),
    (lambda: scattered(5, side=12), ValueError, SIDE),
    (lambda: scattered(5, side=8, fragments=0), ValueError, "at least 9"),
    (lambda: scattered(5, fragments=-1), ValueError, "fragments is -1"),
    (lambda: scattered(5, held_out="yes"), ValueError, "held_out is 'yes'"),
    (lambda: openml("ImageNet"), ValueError, OPENML),
    (lambda: load_data("digits", val_fraction=1), ValueError, VAL),
    (lambda: load_data("digits", val_fraction=-0.1), ValueError, VAL),
    (lambda: load_data("digits", val_fraction="some"), TypeError, VAL),
    (lambda: load_data(""), ValueError, KNOWN),
    (lambda: load_data("digit"), ValueError, KNOWN),
    (lambda: load_data("digits:"), ValueError, KNOWN),
    (lambda: load_data("folder"), ValueError, KNOWN),
    (lambda: load_data("folder:"), ValueError, KNOWN),
    (lambda: load_data("openml:"), ValueError, KNOWN),
    (lambda: load_data("x:y"), ValueError, KNOWN),
]


@pytest.mark.parametrize(("wrong", "error", "message"), REFUSED)
def test_what_cannot_be_loaded_is_refused(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()


def test_scikit_learn_is_loaded_only_when_it_is_needed():
    code = "import sys, vit_steps.training.data; print('sklearn' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
