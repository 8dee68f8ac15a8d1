"""The exercises made of their right answer: each proves itself, and stands up to others' answers.

`tests/answers/*.txt` holds answers written from the exercises' texts alone.
"""

import random
import re
from functools import cache, partial
from importlib import import_module
from itertools import combinations

import pytest
import torch
from torch import Tensor, nn

from tests.answers import LONG, ROWS, exercise, row
from vit_course.checks.compare import Verdict, YesOrNo, compare
from vit_course.checks.engine import LEFT
from vit_course.checks.exercise import NOT_ALL, Exercise, edited, plainly, table
from vit_course.checks.exercise import PATIENCE as WAIT
from vit_course.checks.keeping import PIECES
from vit_course.checks.relations import relation
from vit_course.checks.trials import Trial, asked, call, module
from vit_course.teaching.unseen import TASKS

each_exercise = pytest.mark.parametrize("name", [*map(exercise, TASKS)])


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Beside other work all pairs may take longer than a learner waits."""
    monkeypatch.setattr("vit_course.checks.exercise.PATIENCE", 60.0)


def results_of(check: Exercise, answer) -> list:
    """What an answer gives in each trial, worked out once."""
    return [check.outcome_of(answer, number) for number in range(len(check.trials))]


@cache
def passed(name: str) -> list[list[bool]]:
    """Of each known mistake, which trials it passes."""
    check = TASKS[name]
    right = results_of(check, check.reference)
    return [
        [compare(a, b) is None for a, b in zip(results_of(check, wrong), right, strict=True)]
        for _, wrong in check.mistakes
    ]


@pytest.mark.parametrize("name", PIECES)
def test_the_packages_own_piece_is_right(name):
    assert TASKS[name].judge(getattr(import_module(PIECES[name]), name)) == "right"


@each_exercise
def test_each_edit_is_refused_and_told_its_message(name):
    check = TASKS[name]
    assert len(check.edits) >= 3
    for (expected, edit), (_, wrong) in zip(check.edits, check.mistakes, strict=True):
        assert expected in check.told(results_of(check, wrong)).split("\nor: "), edit


def test_an_answer_that_is_right_in_another_way_is_right():
    """Mistakes are looked for in these answers, too, so they must hold none."""
    alike = [(check, edit) for check in TASKS.values() for edit in getattr(check, "alike", ())]
    assert alike
    assert {check.judge(check.with_edit(edit)) for check, edit in alike} == {"right"}


def told_apart(check: Exercise, number: int) -> bool:
    """Whether a trial alone tells two mistakes with other messages apart."""
    others = [i for i in range(len(check.trials)) if i != number]
    for (one, a), (two, b) in combinations(check.mistakes, 2):
        if one != two and compare(check.outcome_of(a, number), check.outcome_of(b, number)):
            same = (compare(check.outcome_of(a, i), check.outcome_of(b, i)) is None for i in others)
            if all(same):
                return True
    return False


@each_exercise
def test_each_trial_is_needed_by_some_mistake(name):
    """It alone refuses one, or tells two apart."""
    check = TASKS[name]
    for number, trial in enumerate(check.trials):
        alone = any(not row[number] and sum(row) == len(row) - 1 for row in passed(name))
        assert alone or told_apart(check, number), trial.what


@each_exercise
def test_each_exercise_has_answers_of_other_people(name):
    messages = [message for task, message, _ in ROWS if task == name]
    assert messages.count("right") >= 2
    assert len(messages) - messages.count("right") >= 3


@cache
def message_for(name: str, source: str) -> str:
    """What the check of a task says to an answer."""
    torch.manual_seed(0)
    check = TASKS[name]
    return check.judge(check.made(edited(check.answer, source)))


@pytest.mark.parametrize(("name", "expected", "source"), [row(*entry) for entry in ROWS])
def test_an_answer_of_other_people_is_told_what_is_wrong_with_it(name, expected, source):
    message = message_for(name, source)
    assert (message == "right") is (expected == "right"), message
    assert expected in message
    assert not message.startswith(LEFT)
    assert "Verdict" not in message  # the engine's own word


# What the engine says where nothing knows the mistake: what came, and what was expected.
SYMPTOM = re.compile(
    r"numbers? (are|is) wrong|its shape is|it gives .* expected|your code raises|cannot be used"
    r"|it holds torch|no gradient reaches|it raises|it lacks|the shape is another|each number is"
)


@pytest.mark.slow
def test_nine_in_ten_wrong_answers_are_named_not_only_told_a_symptom():
    wrong = [entry for entry in ROWS if entry[1] != "right" and entry[:2] not in LONG]
    unnamed = []
    for name, _, source in wrong:
        message, edits = message_for(name, source), dict(TASKS[name].edits)
        if not set(message.split("\nor: ")) <= set(edits) and SYMPTOM.search(message):
            unnamed.append((name, message))
    assert len(wrong) > 800
    assert len(unnamed) <= 0.1 * len(wrong), unnamed


@pytest.mark.nightly
@each_exercise
def test_two_mistakes_at_once_are_both_named(name):
    """A few pairs, drawn; where several mistakes do the same, another pair may be named too."""
    check = TASKS[name]
    told = [message for message, _ in check.edits]
    assert all(told[one] != told[two] for one, two, _ in check.pairs)
    right = results_of(check, check.reference)
    sample = random.Random(0).sample(check.pairs, min(6, len(check.pairs)))
    for one, two, source in sample:
        try:
            expected, results = (told[one], told[two]), results_of(check, check.with_both(source))
        except SyntaxError:
            continue  # the two do not go together
        if check.tells(results) == "yes or no":
            continue  # it has many causes
        message, pairs = check.told(results), zip(results, right, strict=True)
        first_wrong = next((number for number, pair in enumerate(pairs) if compare(*pair)), 0)
        said = [plainly(one) in message for one in expected]
        enough = all(said) or "other pairs" in message
        enough |= any(said) and NOT_ALL in message
        assert enough or check.wholly(results, first_wrong)  # or else one hides the other


def otherwise(answer, change, spoil=lambda x: x):
    """An answer that changes what it gives, and spoils what it gets."""

    def call(*inputs, **options):
        result = change(answer(*inputs, **options))
        for x in [*inputs, *options.values()]:
            spoil(x)
        return result

    if not isinstance(answer, type):
        return call
    forward = lambda self, *inputs, **options: (  # noqa: E731
        otherwise(partial(answer.forward, self), change, spoil)(*inputs, **options)
    )
    return type(answer.__name__, (answer,), {"forward": forward})


def reordered(result, order=(2, 0, 1)):
    if type(result) is not tuple or len(result) not in (2, 3):
        return result
    return tuple(result[place] for place in order) if len(result) == 3 else result[::-1]


@each_exercise
def test_results_in_another_order_and_a_turned_yes_or_no_are_named(name):
    check = TASKS[name]
    results = results_of(check, check.reference)
    changes = {reordered: re.compile("order|first|places|wrong way round|tuple")}
    if any(isinstance(result, YesOrNo) for result in results):
        changes[lambda x: not x if isinstance(x, bool) else x] = re.compile("wrong way round: True")
    for change, words in changes.items():
        message = check.judge(otherwise(check.reference, change))
        assert message == "right" or words.search(message), message
        assert message == "right" or not SYMPTOM.search(message), message


def spoilt(x):
    """Change what it was given in each way that is there."""
    if isinstance(x, Tensor):
        x.data.zero_()
    elif isinstance(x, nn.Module):
        x.double().train(not x.training)
        x.register_forward_hook(lambda *_: 1 / 0)
    elif isinstance(x, (list, dict)):
        x.clear()


@pytest.mark.slow
@each_exercise
def test_what_one_attempt_spoils_no_other_meets(name):
    check = TASKS[name]
    check.judge(otherwise(check.reference, lambda result: result, spoilt))
    assert check.judge(check.reference) == "right"


CHANGES = {
    "the dtype of its numbers": lambda model: model.half(),
    "its numbers": lambda model: next(model.parameters()).data.add_(1),
    "its mode": lambda model: model.train(),
    "its parts": lambda model: setattr(model, "head", nn.Linear(1, 1, bias=False)),
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize(
    "name", [*map(exercise, ["where_they_part", "which_preparation", "needed", "shared_position"])]
)
def test_a_model_that_is_to_stay_as_it_is_is_watched(name, what):
    def spoil(x):
        if isinstance(x, nn.Module):
            CHANGES[what](x)

    message = TASKS[name].judge(otherwise(TASKS[name].reference, lambda x: x, spoil))
    assert "the model that came in has changed" in message
    assert what in message or message in dict(TASKS[name].edits)


# What is no answer ------------------------------------------------------------------------------


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


@each_exercise
def test_a_stub_is_not_attempted_yet(name):
    for stub in (..., unfilled, without_body, not_implemented):
        assert TASKS[name].judge(stub) == LEFT


@each_exercise
def test_code_that_raises_or_gives_nothing_gets_a_message(name, monkeypatch):
    monkeypatch.setattr("vit_course.checks.exercise.PATIENCE", -1.0)  # no pair of mistakes does it
    judge = TASKS[name].judge
    line = "return torch.zeros(2).no_such_method"
    assert f"raises AttributeError in the line `{line}" in judge(raising)
    for answer in (of_wrong_type, returning_nothing, lambda: 1, 3, None, torch.zeros(1)):
        message = judge(answer)
        assert message not in ("right", LEFT)
        assert len(message) > 20


# The form itself ---------------------------------------------------------------------------------


def test_a_table_has_messages_at_the_margin_and_answers_below_them():
    assert table("""
say this
and that
    a => b
    c =>
        d
say more
    def f(x):
        return x
    g = 3
""") == [
        ("say this and that", "a => b"),
        ("say this and that", "c => d"),
        ("say more", "def f(x):\n    return x\ng = 3"),
    ]


def test_an_edit_changes_what_stands_once_and_refuses_the_rest():
    source = "def f(x):\n    y = x + 1\n    return y\n"
    assert edited(source, "x + 1 => x - 1 ;; return y => return -y") == (
        "def f(x):\n    y = x - 1\n    return -y\n"
    )
    assert edited(source, "y = x + 1 => y = x ⏎ y = y + 2") == (
        "def f(x):\n    y = x\n    y = y + 2\n    return y\n"
    )
    assert edited(source, "def f(x): ...") == "def f(x): ...\n"
    for edit in ("y => z", "w => z", "=> z"):
        with pytest.raises(ValueError, match="times"):
            edited(source, edit)


def doubling(wrong: str) -> Exercise:
    numbers = [torch.arange(1.0, 7).reshape(2, 3), torch.arange(4.0).reshape(2, 2) ** 2]
    answer = "def f(x):\n    y = 2 * x + 1\n    return y.mT"
    return Exercise(answer, [call(f"x{i}", x) for i, x in enumerate(numbers)], wrong)


SMALL = """
this is three times
    2 * x => 3 * x
this is one less
    x + 1 => x - 1
this is not turned
    y.mT => y
"""


def test_one_mistake_then_two_then_a_relation_then_a_number():
    check = doubling(SMALL)
    assert check.judge(lambda x: (2 * x + 1).T) == "right"
    assert check.judge(lambda x: (3 * x + 1).T) == "this is three times"
    assert check.judge(lambda x: 3 * x + 1) == (
        "two things at once:\n1. this is three times\n2. this is not turned"
    )
    assert "each number is 2 times the right one" in check.judge(lambda x: (4 * x + 2).T)
    assert check.judge(lambda x: (x**3).T).startswith("x0: all 6 numbers are wrong; the first")


def test_the_last_definition_of_an_answer_is_the_answer():
    check = Exercise("def g(x):\n    return 2 * x\n\n\ndef f(x):\n    return g(x)", [], "")
    assert (check.name, check.reference(3)) == ("f", 6)


def test_of_two_mistakes_in_one_place_either_may_come_first():
    wrong = "this is three times\n    2 * x => 3 * x\nit is squared\n    2 * x => (2 * x) ** 2\n"
    assert doubling(wrong).judge(lambda x: (9 * x**2 + 1).T).startswith("two things at once")


def test_the_pair_of_which_one_is_seen_alone_is_tried_early():
    check = TASKS["ViT"]
    norm, start = "the final norm is never used", "every block gets the same tokens"
    numbers = [
        next(n for n, (told, _) in enumerate(check.edits) if told.startswith(text))
        for text in (norm, start)
    ]
    source = next(source for *pair, source in check.pairs if pair == numbers)
    pairs = check.likely_pairs(results_of(check, check.with_both(source)), 0)
    assert [*numbers, source] in [list(pair) for pair in pairs[:150]]


def test_two_mistakes_are_known_by_two_sentences_never_by_a_yes_or_no():
    def names(expected, kind):
        return lambda name, *_: kind("fine" if name == expected else f"it says {name}")

    answer = "def f(x):\n    if x < 0:\n        return 0\n    return 1 if x > 2 else 2"
    wrong = "zero is wrong\n    return 0 => return 5\ntwo is wrong\n    else 2 => else 7\n"
    for kind, both in ((Verdict, True), (YesOrNo, False)):
        trials = [Trial("x", asked, [x], names(right, kind)) for x, right in ((-1, 0), (1, 2))]
        message = Exercise(answer, trials, wrong).judge(lambda x: 5 if x < 0 else 7)
        assert message.startswith("two things at once") is both


def test_where_several_pairs_fit_it_says_so():
    check = doubling(SMALL + "this is twice and a bit\n    2 * x => x + x + x\n")
    message = check.judge(lambda x: 3 * x + 1)
    assert message.startswith(
        "two things at once, though more than one pair does this:\n1. this is"
    )
    assert "or these two:\n1. this is not turned\n2. this is twice and a bit" in message


def test_a_pair_is_not_guessed_from_errors_alone():
    check = doubling("it raises\n    2 * x => x.no\nit raises too\n    y.mT => y.nothing\n")
    assert "your code raises ZeroDivisionError" in check.judge(lambda x: 1 / 0)


def test_nor_from_an_error_inside_a_module():
    class Broken(nn.Linear):
        def forward(self, x):
            return x + 1 / 0

    answer = """
class f(nn.Linear):
    def forward(self, x):
        return super().forward(x) + 1 / (4 - 1 - 1)
"""
    wrong = "this is three\n    4 - => 3 -\nthis is two\n    - 1) => - 2)\n"
    check = Exercise(answer, [module("a Linear", (3, 2), torch.ones(2, 3))], wrong)
    assert "your code raises ZeroDivisionError" in check.judge(Broken)


def test_a_learner_waits_for_pairs_a_few_seconds_at_most(monkeypatch):
    assert WAIT <= 5
    monkeypatch.setattr("vit_course.checks.exercise.PATIENCE", -1.0)
    assert "two things" not in doubling(SMALL).judge(lambda x: 3 * x + 1)


NUMBERS = torch.arange(24.0).reshape(2, 3, 4) ** 2 + 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda x: x.transpose(1, 2), "axes 1 and 2 are swapped"),
        (lambda x: x.permute(1, 2, 0), "as by permute(1, 2, 0)"),
        (lambda x: x.reshape(4, 6), "in the right order: only the shape is another"),
        (lambda x: x.flip(1), "axis 1 runs backwards"),
        (lambda x: x.roll(1, dims=1), "along axis 1 the right parts stand in another order: 2, 0"),
        (lambda x: x * -2.5, "each number is -2.5 times the right one"),
        (lambda x: x + 0.5, "each number is the right one + 0.5"),
        (lambda x: x - 3, "each number is the right one - 3"),
        (lambda x: 0 * x, "all numbers are 0"),
        (lambda x: torch.cat([x[:1], x[1:] ** 2]), "only the first of 2 along axis 0 is right"),
        (
            lambda x: x.index_fill(1, torch.tensor(2), 7),
            "of 3 along axis 1 only number 2, counted from 0, is wrong",
        ),
        (lambda x: x.flatten()[torch.randperm(24)].view_as(x), "all the right numbers are there"),
    ],
)
def test_a_wrong_tensor_is_told_by_its_relation_to_the_right_one(change, expected):
    assert expected in relation(change(NUMBERS), NUMBERS)


def test_where_there_is_no_relation_none_is_told():
    assert relation(NUMBERS**2, NUMBERS) is None
    assert relation(torch.zeros(2), NUMBERS) is None
    assert relation(NUMBERS * 0 + 2, NUMBERS * 0 + 1) is None  # alike, so all would fit
