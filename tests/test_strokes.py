"""images/handwriting.py: the page's pen, and hands that differ but still write that digit."""

import re

import pytest
import torch
from helpers import close

from images.handwriting import WAYS, drawn, hands, handwriting, paint, written
from vit_course import canvases
from vit_steps.training.data import DIGITS, as_stored


def ink_of(points, pen=1.15, side=16):
    """A polyline of (x, y), as `paint` leaves it."""
    path = torch.tensor(points)[None]
    return paint(path[:, :-1], path[:, 1:], torch.full((1, len(points) - 1), pen), side)[0]


def test_a_pixel_gets_as_much_ink_as_the_page_gives_it():
    # Along the middles of row 4 from column 2 to 6; half a pixel beside; and a dot.
    ink = ink_of([(2.5, 4.5), (6.5, 4.5)])
    assert torch.equal(ink[4, 2:7], torch.ones(5))
    close(ink[4, [1, 7]], torch.tensor([0.15, 0.15]))  # past its ends
    close(ink[[3, 5], 4], torch.tensor([0.15, 0.15]))
    assert ink.sum() == pytest.approx(5 + 12 * 0.15)
    close(ink_of([(2.5, 5.0), (6.5, 5.0)])[3:7, 4], torch.tensor([0, 0.65, 0.65, 0]))
    close(ink_of([(4.5, 4.5)] * 2)[4, 3:6], torch.tensor([0.15, 1, 0.15]))
    # A slanted one, of the distance from a line: 3 right and 4 down, from (2.5, 2.5).
    slanted = ink_of([(2.5, 2.5), (8.5, 10.5)])
    assert slanted[6, 6] == pytest.approx(1.15 - abs(4 * 4 - 3 * 4) / 5)
    assert torch.equal(ink_of([(2.5, 4.5), (6.5, 4.5)], pen=0), torch.zeros(16, 16))


@pytest.mark.parametrize("digit", range(10))
def test_a_digit_is_written_in_many_ways(digit):
    ways = [way for known, way in WAYS if known == digit]
    assert len(ways) == len(set(ways)) >= 8
    for stroke in " | ".join(ways).split(" | "):
        assert re.fullmatch(r"\d\d( \d\d)+", stroke), stroke


def test_handwriting_is_of_all_sizes_and_lies_anywhere_on_the_canvas():
    ink, labels = handwriting(5000, 16, torch.Generator().manual_seed(1))
    assert ink.shape == (5000, 16, 16)
    assert (ink.min(), ink.max()) == (0, 1)
    assert labels.bincount(minlength=10).min() > 400
    assert labels.max() == 9
    rows, columns = (ink > 0.3).any(dim=2), (ink > 0.3).any(dim=1)
    # From the first row or column with ink to the last.
    high, wide = (16 - x.argmax(1) - x.flip(1).argmax(1) for x in (rows.long(), columns.long()))
    assert min((high == size).sum() for size in range(6, 15)) > 100
    shape = (wide / high)[labels != 1]
    assert shape.quantile(0.05) <= 0.5
    assert shape.quantile(0.95) > 1.1
    assert ink.mean(0)[2:-2, 2:-2].min() > 0.05
    for way in ("40 49", "00 99", "03 93 | 06 96"):  # the widest too: the pen stays on the canvas
        start, end, _ = written(way, 500, 16, torch.Generator().manual_seed(1))
        for place in (start, end):
            assert place.min() >= 0.5 - 1e-4
            assert place.max() <= 15.5 + 1e-4


def test_drawn_digits_are_drawn_from_a_generator_of_their_own():
    before = torch.get_rng_state()
    one, again, other = drawn(300), drawn(300), drawn(300, seed=1)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(one.pixels, again.pixels)
    assert torch.equal(one.labels, again.labels)
    assert not torch.equal(one.pixels, other.pixels)
    assert one.images.shape == (300, 1, 16, 16)
    assert (one.images.min(), one.images.max()) == (-1, 1)
    assert (one.classes, one.preprocess) == (DIGITS, as_stored(16))
    assert drawn(3, side=28).shape == (1, 28, 28)


def test_what_is_stored_is_what_the_script_draws():
    val = canvases.drawn()[1]
    again = drawn(2000, seed=1)
    assert torch.equal(val.labels, again.labels)
    # Another processor may round one ink to the next step of 16. So each change of what is drawn
    # shows: of the pen, of the strokes and where they are lifted, of skips, of what is enlarged.
    for stored, drawing in ((val, again), (canvases.hands(), hands())):
        difference = (stored.pixels.int() - drawing.pixels.int()).abs()
        assert difference.max() <= 1
        assert difference.float().mean() < 1e-3
