"""What a run is known by: two augmentations are told apart by what they are, and so are data."""

import functools
import random
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
import torch
from test_folders import plain
from tiny_training import fit, pictures, tiny
from torch import nn

from vit_steps import training
from vit_steps.training.data import ImageDataset, digits, folder
from vit_steps.training.identity import fingerprint, name_augmentation


def shift(images, generator, by=1, also=()):
    return images + by


def made(by):
    def closure(images, generator):
        return images + by

    return closure


def edited(body):
    """The function `change` with this body, as after an edit."""
    space = {}
    exec(f"def change(images, generator):\n    {body}", space)
    return space["change"]


@dataclass
class Adding:
    by: float

    def __call__(self, images, generator):
        return images + self.by


class Drawing:
    """A callable object whose state is not a plain dict."""

    __slots__ = ("numbers",)

    def __init__(self, seed):
        self.numbers = random.Random(seed)

    def __call__(self, images, generator):
        return images


class Other(nn.Module):
    def __init__(self, by):
        super().__init__()
        self.by = nn.Parameter(torch.tensor(float(by)))

    def forward(self, images, generator):
        return images + self.by


APART = {
    "lambdas": (lambda x, g: x, lambda x, g: x + 1),
    "constants": (lambda x, g: x + 1, lambda x, g: x + 2),
    "names": (lambda x, g: x.sin(), lambda x, g: x.cos()),
    "partials": (partial(shift, by=1), partial(shift, by=2)),
    "a partial and its function": (shift, partial(shift, by=1)),
    "partials of lists": (partial(shift, also=[1, 2]), partial(shift, also=[2, 1])),
    "partials of tensors": (partial(shift, by=torch.ones(2)), partial(shift, by=torch.zeros(2))),
    "partials of arrays": (partial(shift, by=np.ones(2)), partial(shift, by=np.zeros(2))),
    "partials of functions": (partial(shift, also=made(1)), partial(shift, also=made(2))),
    "closures": (made(1), made(2)),
    "edits": (edited("return images"), edited("return -images")),
    "edited constants": (edited("return images * 2"), edited("return images * 3")),
    "objects": (Adding(1.0), Adding(2.0)),
    "objects of slots": (Drawing(1), Drawing(2)),
    "modules": (Other(1), Other(2)),
    "methods": (Adding(1.0).__call__, Adding(2.0).__call__),
    "ours": (training.augment_digits, training.augment_photos),
    "ours, bound": (partial(training.augment_digits, by=1), training.augment_digits),
    "none": (None, shift),
}


@pytest.mark.parametrize("pair", APART.values(), ids=APART.keys())
def test_augmentations_that_differ_are_told_apart(pair):
    one, other = pair
    assert name_augmentation(one) != name_augmentation(other)
    assert name_augmentation(one) == name_augmentation(one)


SAME = {
    "partials": lambda: partial(shift, by=2, also={"b", "a"}),
    "partials of dicts": lambda: partial(shift, also={"a": 1, "b": [torch.ones(2)]}),
    "lambdas": lambda: lambda x, g: x + 1,
    "closures": lambda: made(3),
    "edits": lambda: edited("return images"),
    "objects": lambda: Adding(3.0),
    "objects of slots": lambda: Drawing(3),
    "modules": lambda: Other(3),
    "methods": lambda: Adding(3.0).__call__,
}


@pytest.mark.parametrize("make", SAME.values(), ids=SAME.keys())
def test_augmentations_that_are_equal_are_the_same(make):
    assert name_augmentation(make()) == name_augmentation(make())


BY, CALLS = 1, []


def helper(images):
    return images + BY


def helped(images, generator):
    CALLS.append(len(images))
    return helper(images)


def test_what_a_function_looks_up_counts_unless_it_changes_while_it_runs(monkeypatch):
    before = name_augmentation(helped)
    CALLS.append(1)
    assert name_augmentation(helped) == before
    monkeypatch.setitem(globals(), "BY", 2)  # two calls away
    assert name_augmentation(helped) != before


def test_a_wrapper_of_ours_is_not_ours():
    def wrapped(by):
        @functools.wraps(training.augment_digits)
        def wrapper(images, generator):
            return training.augment_digits(images, generator) + by

        return wrapper

    names = {name_augmentation(f) for f in (training.augment_digits, wrapped(1), wrapped(2))}
    assert len(names) == 3


def test_the_order_of_a_partials_names_does_not_matter():
    one, other = partial(shift, by=1, also=2), partial(shift, also=2, by=1)
    assert name_augmentation(one) == name_augmentation(other)


def test_our_own_go_by_their_names_alone():
    assert name_augmentation(None) is None
    assert name_augmentation(training.augment_digits) == "augment_digits"
    assert name_augmentation(shift).startswith("shift ")


def test_what_holds_itself_comes_to_an_end():
    ring = []
    ring.append(ring)
    assert name_augmentation(partial(shift, also=ring)).startswith("shift ")

    def calls_itself(images, generator):
        return calls_itself

    assert name_augmentation(calls_itself) == name_augmentation(calls_itself)


def test_what_cannot_be_pickled_goes_by_its_class():
    class Stubborn:
        def __reduce_ex__(self, protocol):
            raise TypeError("never")

        def __call__(self, images, generator):
            return images

    assert name_augmentation(Stubborn()) == name_augmentation(Stubborn())


IN_A_PROCESS = """
from test_identity import SAME, name_augmentation
print([name_augmentation(make()) for make in SAME.values()])
"""


def test_another_process_finds_the_same_names():
    """Sets of words, and addresses, stand elsewhere in each process."""
    words = [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path}\n{IN_A_PROCESS}"]
    result = subprocess.run(words, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == str([name_augmentation(make()) for make in SAME.values()])


def test_another_augmentation_does_not_go_on_with_a_run(tmp_path):
    fit(tiny(), tmp_path, augment=partial(shift, by=0.1))
    fit(tiny(), tmp_path, augment=partial(shift, by=0.1))
    message = r"of another run \(augment was 'shift \w+', is 'shift \w+'\); give another folder"
    with pytest.raises(ValueError, match=message):
        fit(tiny(), tmp_path, augment=partial(shift, by=0.2))


# Data --------------------------------------------------------------------------------------------


def test_other_data_have_another_fingerprint(tmp_path):
    one = pictures()
    changed = one.pixels.clone()
    changed[3, 0, 1, 1] += 1e-3
    labels = one.labels.clone()
    labels[3] = 1 - labels[3]
    others = [
        pictures(seed=1),
        ImageDataset(changed, one.labels, one.classes),
        ImageDataset(one.pixels, labels, one.classes),
        ImageDataset(one.pixels, one.labels, ("a", "b", "d")),
        one.part(slice(19)),
    ]
    assert fingerprint(one) == fingerprint(pictures())
    assert fingerprint(one).startswith("20 images, sum ")
    assert fingerprint(one) not in map(fingerprint, others)
    assert fingerprint(digits()[0]) == fingerprint(digits()[0])
    darker = replace(digits()[0], white=255)  # the same bytes, normalised otherwise
    assert fingerprint(darker) != fingerprint(digits()[0])


def test_files_that_were_exchanged_are_noticed(tmp_path):
    plain(tmp_path, a=4, b=4)
    one = folder(tmp_path, 8, limit=0).train
    before = fingerprint(one)
    assert fingerprint(folder(tmp_path, 8, limit=0).train) == before
    one.files[0].write_bytes(one.files[0].read_bytes() + b"more")
    assert fingerprint(one) != before
