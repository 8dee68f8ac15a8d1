"""What lessons tell of trainings that they do not run is what tests/bench_quoted.py stored."""

import nbformat
import pytest
from bench_quoted import COMPARED, on_digits

from vit_course import lessons
from vit_course.plots import scores

TOLD = scores.stored("quoted")


def span(name: str, variant: str, digits: int = 0) -> str:
    shares = TOLD[name][variant]
    return f"{min(shares):.{digits}f} to {max(shares):.{digits}f}%"


def listed(name: str, variant: str, digits: int = 0) -> str:
    first, second, third = (f"{share:.{digits}f}%" for share in TOLD[name][variant])
    return f"{first}, {second} and {third}"


SENTENCES = [
    (
        "02_tokens",
        f"reads {span('02 start of positions', '0.02')} of new ones from that start, and "
        f"{span('02 start of positions', '0.2')} from ours, 0.2 (three seeds each)",
    ),
    (
        "03_heads",
        f"with only cls reading came to {span('03 who reads', 'only cls')} of new scattered "
        f"digits, and equal ones in which all read to {span('03 who reads', 'all')}",
    ),
    (
        "03_heads",
        f"it reads {span('03 heads', '1', 1)} of 359 new digits, with four "
        f"{span('03 heads', '4', 1)}",
    ),
    (
        "05_encoder",
        f"models without MLPs came to {listed('05 MLPs never had', 'without', 1)}, whole ones to "
        f"{listed('05 MLPs never had', 'whole', 1)}",
    ),
    ("07_training", f"With three seeds they read {listed('07 seeds', 'hands')}"),
]


@pytest.mark.parametrize(("stem", "sentence"), SENTENCES)
def test_a_lesson_tells_what_was_measured(stem, sentence):
    book = nbformat.read(lessons.ROOT / "notebooks" / f"{stem}.ipynb", as_version=4)
    assert sum(sentence in cell.source for cell in book.cells) == 1, sentence


def test_every_comparison_is_stored_with_its_seeds():
    for name, (seeds, variants) in COMPARED.items():
        assert {variant: len(shares) for variant, shares in TOLD[name].items()} == dict.fromkeys(
            variants, seeds
        )


@pytest.mark.slow
def test_stored_trainings_come_out_again():
    assert abs(on_digits(0, num_heads=1) - TOLD["03 heads"]["1"][0]) < 1
    assert (
        abs(on_digits(1, positions=0.1, epochs=12) - TOLD["02 start of positions"]["0.02"][1]) < 3
    )
