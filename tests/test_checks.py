"""The exercise checks: right answers pass, each wrong one gets the message that names it."""

import importlib

import pytest
import torch

from vit_steps import checks
from vit_steps.checks.engine import Check

LESSONS = (
    *("images", "patches", "tokens", "heads", "attention", "encoder", "vit"),
    *("training", "maps", "pretrained"),
)
CHECKS = {name: c for name, c in vars(checks).items() if isinstance(c, Check)}
ANSWERS = [importlib.import_module(f"answers.{lesson}") for lesson in LESSONS]
RIGHT = {name: answers for module in ANSWERS for name, answers in module.RIGHT.items()}
WRONG = {name: answers for module in ANSWERS for name, answers in module.WRONG.items()}

each_check = pytest.mark.parametrize("name", CHECKS)


def names(value) -> str:
    return getattr(value, "__name__", "")


def test_there_are_three_checks_a_lesson_each_with_answers():
    for lesson, answers in zip(LESSONS, ANSWERS, strict=True):
        module = importlib.import_module(f"vit_steps.checks.{lesson}")
        own = {name for name, c in vars(module).items() if isinstance(c, Check)}
        assert len(own) == 3
        assert own == set(answers.RIGHT) == set(answers.WRONG)
        assert own <= set(checks.__all__)


@each_check
def test_reference_and_other_right_forms_are_right(name, capsys):
    for answer in (CHECKS[name].reference, *RIGHT[name]):
        assert CHECKS[name](answer) is True
        assert capsys.readouterr().out == "right\n"
    assert len(RIGHT[name]) >= 1
    assert CHECKS[name].reference not in RIGHT[name]


@each_check
def test_known_mistakes_get_their_own_messages(name):
    check = CHECKS[name]
    messages = [check.judge(mistake.wrong) for mistake in check.mistakes]
    assert messages == [mistake.message for mistake in check.mistakes]
    assert len(set(messages)) >= 3


wrong_answers = [(name, *pair) for name, pairs in WRONG.items() for pair in pairs]


@pytest.mark.parametrize(("name", "answer", "message"), wrong_answers, ids=names)
def test_a_wrong_answer_is_told_what_is_wrong(name, answer, message, capsys):
    assert CHECKS[name](answer) is False
    said = capsys.readouterr().out
    assert message in said
    assert said.count("\n") == 1


def test_three_wrong_answers_a_check_with_three_messages():
    for name, pairs in WRONG.items():
        assert len({CHECKS[name].judge(answer) for answer, _ in pairs}) >= 3


def unfilled(*_, **__):
    return ...


def without_body(*_, **__): ...


def not_implemented(*_, **__):
    raise NotImplementedError


class UnfilledModule(torch.nn.Module):
    def __init__(self, *_, **__):
        super().__init__()

    def forward(self, *_, **__):
        return ...


def raising(*_, **__):
    return torch.zeros(2).mask_fill(0, 1)


def of_wrong_type(*_, **__):
    return {"not": "this"}


def returning_nothing(*arguments, **__):
    list(arguments)


@each_check
def test_a_stub_is_not_attempted_yet(name):
    stubs = [..., unfilled, without_body, not_implemented]
    assert {CHECKS[name].judge(stub) for stub in stubs} == {"not attempted yet"}


@each_check
def test_code_that_raises_or_gives_nothing_gets_a_message(name):
    check = CHECKS[name]
    assert "raises AttributeError in the line `return torch.zeros(2).mask_fill" in check.judge(
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


def test_one_true_or_false_alone_is_not_taken_for_a_known_mistake():
    """One token and two heads: it sees through `view`, so "it trusts everything" would be false."""

    def one_token(split):
        x = torch.arange(6.0).view(1, 1, 6)
        return torch.equal(split(x, 2), x.view(1, 2, 1, 3))

    message = checks.trust_split.judge(one_token)
    assert message.endswith("it gives True, expected False")
    assert message not in [mistake.message for mistake in checks.trust_split.mistakes]


def test_changing_the_input_is_told():
    def in_place(images, patch_size):
        images += 1
        return checks.patchify.reference(images - 1, patch_size)

    assert "changes the tensor that it was given" in checks.patchify.judge(in_place)


def test_a_check_leaves_the_learners_random_numbers_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    for check in CHECKS.values():
        check.judge(check.reference)
    assert torch.equal(before, torch.get_rng_state())


def test_difference_says_how_far_apart_and_refuses_to_broadcast():
    a = torch.zeros(2, 3)
    assert checks.difference(a, a + 1e-6) == "< 1e-5"
    assert checks.difference(a, a + 0.25) == "up to 0.25"
    assert checks.difference(a, a * float("nan")) == "up to nan"
    with pytest.raises(ValueError, match="shapes differ"):
        checks.difference(a, a[:1])
