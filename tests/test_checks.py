"""All checks: they stand under their names, and answer to a stub, and to what is no answer."""

import pytest
import torch

from tests.answers import marked
from vit_course import checks
from vit_course.checks import keeping
from vit_course.checks.engine import LEFT
from vit_course.teaching.unseen import TASKS

each_check = pytest.mark.parametrize("name", [*map(marked, TASKS)])


def test_each_exercise_stands_in_checks_under_its_name_for_an_editor_to_complete():
    """Real imports, and a list, which an editor reads without running anything."""
    functions = {"difference", "exhibit", "mine", "my_file", "patient", "pieces", "quiz", "source"}
    assert set(checks.__all__) == {"EXERCISES"} | functions | set(checks.EXERCISES)
    assert all(getattr(checks, name) is check for name, check in checks.EXERCISES.items())
    assert all(check.name == name for name, check in TASKS.items())


def test_every_piece_of_the_learners_model_has_its_check():
    assert {check.keeps for check in TASKS.values()} - {None} == set(keeping.PIECES)
    assert all(check.keeps in (None, name) for name, check in TASKS.items())


def unfilled(*_, **__):
    return ...


def without_body(*_, **__): ...


def not_implemented(*_, **__):
    raise NotImplementedError


def raising(*_, **__):
    return torch.zeros(2).no_such_method()


def of_wrong_type(*_, **__):
    return {"not": "this"}


def returning_nothing(*arguments, **__):
    list(arguments)


@each_check
def test_a_stub_is_not_attempted_yet(name):
    for stub in (..., unfilled, without_body, not_implemented):
        assert TASKS[name].judge(stub) == LEFT


@each_check
def test_code_that_raises_or_gives_nothing_gets_a_message(name):
    judge = TASKS[name].judge
    line = "return torch.zeros(2).no_such_method"
    assert f"raises AttributeError in the line `{line}" in judge(raising)
    for answer in (of_wrong_type, returning_nothing, lambda: 1, 3, None, torch.zeros(1)):
        message = judge(answer)
        assert message not in ("right", LEFT)
        assert len(message) > 20


def test_a_check_leaves_the_learners_random_numbers_and_threads_alone():
    """Though it seeds its trials by 0, and runs them on one thread."""
    torch.manual_seed(1)
    torch.set_num_threads(2)
    before = torch.get_rng_state()
    for name in ("patchify", "EncoderBlock", "train"):
        TASKS[name].judge(TASKS[name].reference)
        assert torch.equal(before, torch.get_rng_state())
        assert torch.get_num_threads() == 2
