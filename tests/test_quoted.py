"""What lessons tell of trainings that they do not run is what tests/bench_quoted.py stored."""

import nbformat
import pytest
import torch
from bench_quoted import COMPARED, on_digits
from torch.nn import functional as F

from vit_course import checks, lessons
from vit_course.plots import scores
from vit_steps import maps, weights
from vit_steps.training.data import scattered

TOLD = scores.stored("quoted")
READER = weights.load("scattered").model.requires_grad_(False)


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


# Lesson 09 ----------------------------------------------------------------------------------------


def still_read(make_map, count, draws):
    """The share that the reader still reads, blind to the patches at a map's largest numbers."""
    found = []
    for draw in draws:
        order = make_map(draw).flatten(1).argsort(dim=1, descending=True, stable=True)
        hidden = torch.zeros(len(draw), 16, dtype=torch.bool)
        hidden = hidden.scatter(1, order[:, :count], True).unflatten(1, (4, 4))
        said = maps.blinded(READER, draw.images, hidden).argmax(dim=1)
        found.append((said == draw.labels).float().mean().item())
    return found


def by_rollout(data):
    return maps.cls_map(maps.rollout(READER(data.images, return_attention=True)[1]), 4)


def by_ink_near_middle(data):
    apart = 4 * torch.arange(4) + 2.0 - (data.places[:, :, None] + 4)  # (B, 2, 4), width 2
    bell = torch.exp(-(apart**2) / 8)
    return F.avg_pool2d((data.images + 1) / 2, 4)[:, 0] * bell[:, 0, :, None] * bell[:, 1, None, :]


@pytest.mark.slow
def test_rollout_is_not_ahead_with_other_counts_and_wins_one_of_three_more_draws():
    draws = [scattered(1000, seed=seed, held_out=True) for seed in range(2, 5)]
    for count in (1, 3, 4):
        ahead, guess = (sum(still_read(m, count, draws)) for m in (by_rollout, by_ink_near_middle))
        assert guess <= ahead, count
    more = [scattered(1000, seed=seed, held_out=True) for seed in range(5, 8)]
    pairs = zip(*(still_read(m, 2, more) for m in (by_rollout, by_ink_near_middle)), strict=True)
    assert sum(ours < guess for ours, guess in pairs) == 1


@pytest.mark.slow
def test_the_square_of_the_ink_and_two_patches_asked_one_by_one():
    drawn = scattered(1000, seed=1, held_out=True)
    touched = maps.touched(drawn.places, 8, (4, 4), 4)
    square = F.avg_pool2d((drawn.images + 1) / 2, 4)[:, 0] ** 2
    share = ((square * touched).sum((1, 2)) / square.sum((1, 2))).mean().item()
    assert f"{share:.0%}" == "65%"
    asked = checks.EXERCISES["needed"].reference
    draws = [scattered(1000, seed=seed, held_out=True) for seed in range(2, 5)]
    left = still_read(lambda data: asked(READER, data.images), 2, draws)
    assert abs(sum(left) / 3 - 0.52) < 0.005
