"""Data sets: each is what it says, split without a leak, or is refused."""

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_folders import plain, rows

from vit_course.canvases import drawn, hands, scattered
from vit_steps.images import normalize
from vit_steps.training.data import digits, load_data
from vit_steps.training.dataset import ImageDataset, batches, split
from vit_steps.training.folders import folder


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
        (dict(pixels=np.zeros((3, 1, 4, 4))), TypeError, "images is an ndarray"),
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


def test_batches_are_drawn_without_torchs_own_generator():
    before = torch.get_rng_state()
    assert len([*batches(numbered(5, 5), 4, torch.Generator())]) == 3
    assert torch.equal(before, torch.get_rng_state())


# Digits ------------------------------------------------------------------------------------------


def test_digits_are_scikit_learns_from_minus_one_to_one_a_fifth_held_out():
    from sklearn.datasets import load_digits

    train, test = digits()
    assert (len(train), len(test)) == (1438, 359)
    assert train.classes == test.classes == tuple("0123456789")
    source = load_digits()
    pixels = (source.images / 8 - 1).astype(np.float32)
    pairs = {*zip(map(bytes, pixels), source.target.tolist(), strict=True)}
    parts = [(image, label) for part in (train, test) for image, label in part]
    assert {(bytes(image.numpy()), label) for image, label in parts} == pairs
    held_out = hashlib.sha256(test.pixels.numpy().tobytes()).hexdigest()
    assert held_out.startswith("afbf02a7a9105783")  # the stored weights learned from the others


# Scattered digits --------------------------------------------------------------------------------


def at(data, side=8):
    """Each canvas cut out at its place."""
    places = zip(data.images, data.places.tolist(), strict=True)
    return torch.stack([image[:, r : r + side, c : c + side] for image, (r, c) in places])


@pytest.mark.parametrize(
    ("held_out", "side", "fragments"),
    [(False, 16, 6), (True, 16, 6), (False, 13, 12), (True, 9, 0)],
)
def test_a_scattered_digit_stands_whole_at_its_place_and_is_of_its_part(held_out, side, fragments):
    canvases = scattered(300, 0, side, fragments, held_out)
    own = digits()[held_out]
    names = dict(zip(map(bytes, own.images.numpy()), own.labels.tolist(), strict=True))
    found = [names.get(bytes(cut)) for cut in at(canvases).numpy()]
    assert found == canvases.labels.tolist()  # None where a digit is of the other part or covered
    assert canvases.images.shape == (300, 1, side, side)
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


def test_scattered_digits_draw_from_a_generator_of_their_own():
    before = torch.get_rng_state()
    one, other = scattered(20), scattered(20, seed=1)
    assert torch.equal(before, torch.get_rng_state())
    assert not same(one, other)
    torch.manual_seed(5)
    assert same(one, scattered(20))


# Stored drawings and a name on the command line --------------------------------------------------


def test_stored_drawings_are_whole_and_no_part_holds_a_picture_of_another():
    train, val = drawn()
    test = hands()
    assert [len(part) for part in (train, val, test)] == [20_000, 2000, 360]
    assert test.labels.bincount().tolist() == [36] * 10
    assert train.labels.bincount().min() > 1800
    for part in (train, val, test):
        assert (part.shape, part.images.min(), part.images.max()) == ((1, 16, 16), -1, 1)
    pictures = [set(map(bytes, part.pixels.numpy())) for part in (train, val, test)]
    assert len(pictures[0] & pictures[1]) <= 2
    assert not pictures[2] & (pictures[0] | pictures[1])


def test_load_finds_each_source_and_passes_its_options_on(tmp_path):
    train, val, test = load_data("digits", fraction=0.3, seed=2, val_fraction=0)
    assert val is None
    assert same(train, digits(0.3, 2)[0])
    assert same(test, digits(0.3, 2)[1])
    train, val, test = load_data("digits")
    assert same(test, digits()[1])
    assert rows(train) | rows(val) == rows(digits()[0])
    shares = val.labels.bincount() / digits()[0].labels.bincount()
    assert (shares - 0.1).abs().max() < 0.02
    path = plain(tmp_path / "a:b", cat=6, dog=6)  # a colon in the path
    parts = load_data(f"folder:{path}", size=12, fraction=0.5, seed=3, val_fraction=0.4)
    expected = folder(path, 12, 0.5, 3, 0.4)
    assert all(same(a, b) for a, b in zip(parts, expected, strict=True))


KNOWN = "give digits or folder:PATH"
SIDE = "side is 12; with 6 fragments give at least 13"
REFUSED = [
    (lambda: split(numbered(5, 1, 5), 0.2, 0), ValueError, "'b' has too few pictures to split: 1"),
    (lambda: split(numbered(2, 2, 0), 0.2, 0), ValueError, "'c' has too few pictures to split: 0"),
    (lambda: digits(0), ValueError, "nothing would be held out"),
    (lambda: digits(1), ValueError, "below 1"),
    (lambda: digits("half"), TypeError, "give a number"),
    (lambda: scattered(0), ValueError, "count is 0"),
    (lambda: scattered(5, side=12), ValueError, SIDE),
    (lambda: scattered(5, side=8, fragments=0), ValueError, "at least 9"),
    (lambda: scattered(5, fragments=-1), ValueError, "fragments is -1"),
    (lambda: scattered(5, held_out="yes"), ValueError, "held_out is 'yes'"),
    (lambda: load_data("digits", val_fraction=1), ValueError, "val_fraction is"),
    (lambda: load_data("digit"), ValueError, KNOWN),
    (lambda: load_data("folder:"), ValueError, KNOWN),
]


@pytest.mark.parametrize(("wrong", "error", "message"), REFUSED)
def test_what_cannot_be_loaded_is_refused(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()
