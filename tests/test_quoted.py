"""What lessons tell of trainings that they do not run is what tests/bench_quoted.py stored."""

import nbformat
import pytest
from bench_quoted import COMPARED, of_2021, on_digits, why_adamw

from vit_course import lessons
from vit_course.canvases import scattered
from vit_course.plots import scores
from vit_steps import weights
from vit_steps.training import evaluate

TOLD = scores.stored("quoted")


def span(name: str, variant: str, digits: int = 0) -> str:
    shares = TOLD[name][variant]
    return f"{min(shares):.{digits}f} to {max(shares):.{digits}f}%"


def listed(name: str, variant: str, digits: int = 0) -> str:
    first, second, third = (f"{share:.{digits}f}%" for share in TOLD[name][variant])
    return f"{first}, {second} and {third}"


def in_order(name: str, variant: str) -> str:
    *first, last = (f"{share:.0f}" for share in sorted(TOLD[name][variant]))
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
            f"| {told} | " + " | ".join(span(f"07 why AdamW, {s}", best[s]) for s in best) + " |",
        )
        for told, best in (
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
    for name, (seeds, variants) in COMPARED.items():
        assert {variant: len(shares) for variant, shares in TOLD[name].items()} == dict.fromkeys(
            variants, seeds
        )


def test_what_lesson_07_concludes_of_adamw_and_warm_up():
    gained = {}
    for start in STARTS:
        told = TOLD[f"07 why AdamW, {start}"]
        means = {name: sum(shares) for name, shares in told.items()}
        sgd = [mean for name, mean in means.items() if "SGD" in name]
        assert means[BEST[start]] >= max(sgd) - 0.01  # of a sum of three
        pairs = [zip(told["AdamW"], told[other], strict=True) for other in ("no warm-up", "steady")]
        gained[start] = [[with_ - without for with_, without in pair] for pair in pairs]
    assert [round(f(gained["0.02"][0])) for f in (min, max)] == [7, 19]
    assert [round(f(gained["Xavier"][0])) for f in (min, max)] == [2, 9]
    assert min(map(min, gained["Xavier"])) > 0


def test_what_lesson_12_concludes_of_the_attention_of_2021():
    told = TOLD["12 the attention of 2021"]
    apart = (sum(told["mended"]) - sum(told["published"])) / 4
    assert 1.5 < apart < 2.5
    assert all(4 <= max(shares) - min(shares) < 5.5 for shares in told.values())
    assert max(told["published"]) > min(told["mended"])


@pytest.mark.slow
def test_the_reader_reads_other_draws_as_lesson_12_tells():
    reader = weights.load("scattered").model.requires_grad_(False)
    first = evaluate(reader, scattered(2000, seed=1, held_out=True))[1]
    others = [evaluate(reader, scattered(1000, seed=s, held_out=True))[1] for s in range(8)]
    told = [f"{share:.1%}" for share in (first, min(others), max(others))]
    assert told == ["98.4%", "98.1%", "99.6%"]


@pytest.mark.slow
def test_stored_trainings_come_out_again():
    assert abs(on_digits(0, num_heads=1) - TOLD["03 heads"]["1"][0]) < 1
    start = TOLD["02 start of positions"]["0.02"]
    assert abs(on_digits(1, positions=0.1, epochs=12) - start[1]) < 3
    # A batch in another order of sums ends elsewhere: what is told must hold by far.
    xavier = TOLD["07 why AdamW, Xavier"]
    assert abs(why_adamw(0, "SGD", True, lr=0.03) - xavier["SGD 0.03"][0]) < 5
    assert why_adamw(0, "SGD", False, lr=0.1) < 30
    assert abs(of_2021(0, mended=False) - TOLD["12 the attention of 2021"]["published"][0]) < 2
