"""What lessons tell of trainings that they do not run is what benchmarks/quoted.py stored."""

import nbformat
import pytest

from benchmarks.quoted import COMPARED, of_2021, on_digits, why_adamw
from vit_course import lessons
from vit_course.canvases import scattered
from vit_course.plots import scores
from vit_steps import weights
from vit_steps.training import evaluate

MEASURED = scores.stored("quoted")


def span(name: str, variant: str, digits: int = 0) -> str:
    shares = MEASURED[name][variant]
    return f"{min(shares):.{digits}f} to {max(shares):.{digits}f}%"


def listed(name: str, variant: str, digits: int = 0) -> str:
    first, second, third = (f"{share:.{digits}f}%" for share in MEASURED[name][variant])
    return f"{first}, {second} and {third}"


def in_order(name: str, variant: str) -> str:
    *first, last = (f"{share:.0f}" for share in sorted(MEASURED[name][variant]))
    return f"{', '.join(first)} and {last}%"


STARTS = ("0.02", "Xavier")
BEST = {"0.02": "SGD 0.1", "Xavier": "SGD 0.03"}  # of four rates
SENTENCES = [
    (
        "02_tokens",
        f"reads {span('02 start of positions', '0.02')} of new ones from that start, and "
        f"{span('02 start of positions', '0.2')} from ours, 0.2 (three seeds each;",
    ),
    (
        "03_heads",
        f"only cls reads from the start: they read {span('03 who reads', 'only cls')} of new "
        "scattered digits. The same readers with all tokens reading reached "
        f"{span('03 who reads', 'all')}",
    ),
    (
        "03_heads",
        f"it reads {span('03 heads', '1', 1)} of 359 new digits, with four "
        f"{span('03 heads', '4', 1)}",
    ),
    (
        "05_encoder",
        f"Without MLPs they reached {listed('05 MLPs never had', 'without', 1)}, with MLPs "
        f"{listed('05 MLPs never had', 'whole', 1)}",
    ),
    ("07_training", f"Three seeds read {listed('07 seeds', 'hands')}"),
    *(
        (
            "07_training",
            f"| {row} | " + " | ".join(span(f"07 why AdamW, {s}", best[s]) for s in best) + " |",
        )
        for row, best in (
            ("AdamW, this lesson's schedule", dict.fromkeys(STARTS, "AdamW")),
            ("AdamW, no warm-up, the cosine alone", dict.fromkeys(STARTS, "no warm-up")),
            ("AdamW, always the full rate", dict.fromkeys(STARTS, "steady")),
            ("SGD, this lesson's schedule", BEST),
        )
    ),
    (
        "12_spot_the_mistake",
        f"Four seeds gave {in_order('12 the attention of 2021', 'published')} as it was "
        f"published, and {in_order('12 the attention of 2021', 'mended')} with the line mended",
    ),
]


@pytest.mark.parametrize(("stem", "sentence"), SENTENCES)
def test_a_lesson_tells_what_was_measured(stem, sentence):
    book = nbformat.read(lessons.ROOT / "notebooks" / f"{stem}.ipynb", as_version=4)
    assert sum(sentence in cell.source for cell in book.cells) == 1, sentence


def test_every_comparison_is_stored_with_its_seeds():
    for name, (seeds, _, variants) in COMPARED.items():
        counts = {variant: len(shares) for variant, shares in MEASURED[name].items()}
        assert counts == dict.fromkeys(variants, seeds)


def test_what_lesson_07_concludes_of_adamw_and_warm_up():
    gains = {}
    for start in STARTS:
        shares = MEASURED[f"07 why AdamW, {start}"]
        sums = {name: sum(values) for name, values in shares.items()}
        assert sums[BEST[start]] >= max(v for name, v in sums.items() if "SGD" in name) - 0.01
        for other in ("no warm-up", "steady"):
            pairs = zip(shares["AdamW"], shares[other], strict=True)
            gains[start, other] = [adamw - without for adamw, without in pairs]
    assert [round(f(gains["0.02", "no warm-up"])) for f in (min, max)] == [7, 19]
    assert [round(f(gains["Xavier", "no warm-up"])) for f in (min, max)] == [2, 9]
    assert min(gains["Xavier", "no warm-up"] + gains["Xavier", "steady"]) > 0


def test_what_lesson_12_concludes_of_the_attention_of_2021():
    shares = MEASURED["12 the attention of 2021"]
    apart = (sum(shares["mended"]) - sum(shares["published"])) / 4
    assert 1.5 < apart < 2.5
    assert all(4 <= max(values) - min(values) < 5.5 for values in shares.values())
    assert max(shares["published"]) > min(shares["mended"])


@pytest.mark.slow
def test_the_reader_reads_other_draws_as_lesson_12_tells():
    reader = weights.load("scattered").model.requires_grad_(False)
    first = evaluate(reader, scattered(2000, seed=1, held_out=True))[1]
    others = [evaluate(reader, scattered(1000, seed=s, held_out=True))[1] for s in range(8)]
    assert [f"{x:.1%}" for x in (first, min(others), max(others))] == ["98.4%", "98.1%", "99.6%"]


@pytest.mark.nightly
def test_stored_trainings_come_out_again():
    assert abs(on_digits(0, num_heads=1) - MEASURED["03 heads"]["1"][0]) < 1
    start = MEASURED["02 start of positions"]["0.02"]
    assert abs(on_digits(1, positions=0.1, epochs=12) - start[1]) < 3
    # A batch in another order of sums ends elsewhere: what is told must hold by far.
    xavier = MEASURED["07 why AdamW, Xavier"]
    assert abs(why_adamw(0, sgd=True, xavier=True, lr=0.03) - xavier["SGD 0.03"][0]) < 5
    assert why_adamw(0, sgd=True, lr=0.1) < 30
    assert abs(of_2021(0, mended=False) - MEASURED["12 the attention of 2021"]["published"][0]) < 2
