"""All checks, and those whose mistakes are functions: right answers pass, a wrong one is told why.

The answers stand in `tests/answers/`, one module a lesson, written from the exercises' texts alone.
What is an `Exercise` proves itself in test_exercises.py.
"""

import importlib
import re
from functools import cache
from pathlib import Path

import pytest
import torch

from vit_course import checks
from vit_course.checks import keeping
from vit_course.checks.engine import LEFT, Check
from vit_course.checks.exercise import Exercise
from vit_course.teaching.unseen import TASKS

LESSONS = [file.stem for file in sorted(Path(__file__).parent.glob("answers/lesson_*.py"))]
CHECKS = TASKS
ANSWERS = [importlib.import_module(f"answers.{lesson}") for lesson in LESSONS]
RIGHT = {name: answers for answered in ANSWERS for name, answers in answered.RIGHT.items()}
WRONG = {name: answers for answered in ANSWERS for name, answers in answered.WRONG.items()}

OLDER = [name for name, check in CHECKS.items() if not isinstance(check, Exercise)]

# Whose trials train, or examine whole models.
HEAVY = ("beat_the_bar", "needed", "templates", "unheard_blocks")


def marked(name: str, *others):
    """The values of a test on this check, which is slow where the check's trials are."""
    return pytest.param(name, *others, marks=[pytest.mark.slow] if name in HEAVY else [])


each_check = pytest.mark.parametrize("name", [*map(marked, CHECKS)])
each_older = pytest.mark.parametrize("name", [*map(marked, OLDER)])


def names(value) -> str:
    return getattr(value, "__name__", "")


@cache
def said_to(name: str, answer) -> str:
    """What a check says to an answer; some answers train, and several tests ask."""
    torch.manual_seed(0)
    return CHECKS[name].judge(answer)


def test_each_check_has_three_right_and_eight_wrong_answers():
    for lesson, answers in zip(LESSONS, ANSWERS, strict=True):
        own = importlib.import_module(f"vit_course.checks.{lesson}")
        own = {name for name, c in vars(own).items() if isinstance(c, Check) and name in OLDER}
        assert own == set(answers.RIGHT) == set(answers.WRONG)
    assert set(RIGHT) == set(OLDER)
    few = {name: len(RIGHT[name]) for name in OLDER if len(RIGHT[name]) < 3}
    few |= {name: len(WRONG[name]) for name in OLDER if len(WRONG[name]) < 8}
    assert few == {}


def test_every_piece_of_the_learners_model_has_its_check():
    assert {check.keeps for check in CHECKS.values()} - {None} == set(keeping.PIECES)
    for name, check in CHECKS.items():
        assert check.keeps in (None, name)


@each_older
def test_reference_and_other_right_forms_are_right(name):
    said = {answer: said_to(name, answer) for answer in [*RIGHT[name], CHECKS[name].reference]}
    assert set(said.values()) == {"right"}, said
    assert CHECKS[name].reference not in RIGHT[name]


@each_older
def test_known_mistakes_get_their_own_messages(name):
    """Two with the same results are both named."""
    check = CHECKS[name]
    for message, wrong in check.mistakes:
        results = [check.outcome_of(wrong, number) for number in range(len(check.trials))]
        assert message in check.told(results).split("\nor: ")
    assert len(dict(check.mistakes)) >= 3


wrong_answers = [marked(name, *pair) for name, pairs in WRONG.items() for pair in pairs]


@pytest.mark.parametrize(("name", "answer", "message"), wrong_answers, ids=names)
def test_a_wrong_answer_is_told_what_is_wrong(name, answer, message):
    assert message
    said = said_to(name, answer)
    assert message in said
    assert said != "right"
    assert not said.startswith(LEFT)


# What the engine says where nothing knows the mistake: what came, and what was expected.
SYMPTOM = re.compile(
    r"numbers? (are|is) wrong|its shape is|it gives .* expected|your code raises|cannot be used"
    r"|it holds torch|no gradient reaches|it raises"
)


@pytest.mark.slow
@pytest.mark.parametrize("answers", ANSWERS, ids=lambda module: module.__name__.split(".")[1])
def test_nine_in_ten_wrong_answers_are_named_not_only_told_a_symptom(answers):
    unnamed, count = [], 0
    for name, pairs in answers.WRONG.items():
        messages = set(dict(CHECKS[name].mistakes))
        for answer, _ in pairs:
            count += 1
            said = said_to(name, answer)
            if not set(said.split("\nor: ")) <= messages and SYMPTOM.search(said):
                unnamed.append((name, names(answer)))
    assert len(unnamed) <= 0.1 * count, unnamed


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
        assert CHECKS[name].judge(stub) == LEFT


@each_check
def test_code_that_raises_or_gives_nothing_gets_a_message(name):
    check = CHECKS[name]
    assert "raises AttributeError in the line `return torch.zeros(2).no_such_method" in check.judge(
        raising
    )
    for answer in (
        of_wrong_type,
        returning_nothing,
        lambda: 1,
        3,
        None,
        "patchify",
        torch.zeros(1),
    ):
        message = check.judge(answer)
        assert message not in ("right", "not attempted yet")
        assert len(message) > 20


def test_changing_the_input_is_told():
    def in_place(images, patch_size):
        images += 1
        return checks.patchify.reference(images - 1, patch_size)

    assert "changes the tensor that it was given" in checks.patchify.judge(in_place)


def test_a_check_leaves_the_learners_random_numbers_and_threads_alone():
    """Though it seeds its trials by 0, and runs them on one thread."""
    torch.manual_seed(1)
    torch.set_num_threads(2)
    before = torch.get_rng_state()
    for name in ("patchify", "EncoderBlock", "templates"):
        CHECKS[name].judge(CHECKS[name].reference)
        assert torch.equal(before, torch.get_rng_state())
        assert torch.get_num_threads() == 2
