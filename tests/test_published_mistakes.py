"""The doctor names the mistakes of published tutorials, or it is known why it cannot."""

import pytest
import torch
from published import PUBLISHED, Published

from vit_course.checks import as_published
from vit_doctor import CHECKS, examine

NAMES = [check.__name__.replace("_", " ") for check in CHECKS]
FOUND = [each for each in PUBLISHED if each.names]
SILENT = [each for each in PUBLISHED if each.reason and each.make]
UNMADE = [each for each in PUBLISHED if each.make and not each.names and not each.reason]


def named(each: Published) -> list[str]:
    torch.manual_seed(0)
    assert each.make is not None
    return examine(each.make(), each.size).names


def title(each: Published) -> str:
    return f"{each.number} {each.what}"


def test_all_31_are_there_and_at_least_18_are_named():
    assert sorted({each.number for each in PUBLISHED}) == list(range(1, 32))
    assert len({each.number for each in FOUND + UNMADE}) >= 20
    assert len({each.number for each in FOUND}) >= 18
    for each in PUBLISHED:
        assert bool(each.reason) != bool(each.names or each in UNMADE), title(each)


@pytest.mark.parametrize("each", FOUND, ids=title)
def test_it_is_named(each):
    assert set(each.names) <= set(NAMES)
    assert set(named(each)) == set(each.names)


@pytest.mark.parametrize("each", UNMADE, ids=title)
def test_it_cannot_even_be_made(each):
    assert each.make is not None
    with pytest.raises((AttributeError, TypeError)):
        each.make()


@pytest.mark.parametrize("each", SILENT, ids=title)
def test_what_is_no_fault_of_the_model_is_no_finding(each):
    assert named(each) == []


def test_a_head_that_a_batch_of_one_cannot_train_is_told_of():
    (each,) = (each for each in PUBLISHED if each.number == 26)
    assert each.make is not None
    skipped = {skip.name: skip.reason for skip in examine(each.make(), 32).skipped}
    assert "one image cannot train it, two can" in skipped["training fails"]


def test_a_as_printed_shows_all_but_the_mask_that_nobody_gives():
    model = as_published.vit(32, 8, num_classes=10, embed_dim=48, depth=2, num_heads=4)
    names = ["images cropped", "positions large", "scale after softmax", "scale missing"]
    assert examine(model, 32).names == names
    with pytest.raises(AttributeError, match="mask_fill"):
        as_published.Attention(48, 4)(torch.zeros(1, 17, 48), torch.ones(17, 17) > 0)
