"""The doctor names the mistakes of published tutorials, or it is known why it cannot."""

import pytest
import torch
from published import PUBLISHED, B, C, Published, SystemB, SystemC

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


# The three models as printed ---------------------------------------------------------------------


def found(make, mended) -> set[str]:
    return set(named(Published(0, "as printed", lambda: make(mended))))


def test_a_as_printed_shows_all_but_the_mask_that_nobody_gives():
    model = as_published.vit(32, 8, num_classes=10, embed_dim=48, depth=2, num_heads=4)
    names = ["images cropped", "positions large", "scale after softmax", "scale missing"]
    assert examine(model, 32).names == names
    with pytest.raises(AttributeError, match="mask_fill"):
        as_published.Attention(48, 4)(torch.zeros(1, 17, 48), torch.ones(17, 17) > 0)


def test_b_as_printed_is_mended_in_two_rounds_by_what_is_named():
    assert found(SystemB, ()) == {"forward fails", "prints"}
    wrong = {"no gradient", "idle block", "positions large", "norm missing", "returned attention"}
    assert found(SystemB, {17, 21}) == wrong
    assert found(SystemB, B - {18, 19}) == set()  # at this size the last two do no harm


def test_c_as_printed_cannot_be_made_and_is_then_mended_in_one_round():
    with pytest.raises(AttributeError, match="Drop"):
        SystemC()
    assert found(SystemC, {22}) == {"training fails", "device fixed", "another dtype"}
    assert found(SystemC, {22, 25, 27, 0}) == set()  # nothing says what else was asked


def test_all_mended_they_are_sound_but_for_a_float_that_no_other_dtype_passes():
    assert found(SystemB, B) == found(SystemC, C) == set()
    assert found(SystemB, B - {18}) == found(SystemB, B - {19}) == set()
    assert found(SystemC, C - {0}) == {"another dtype"}
