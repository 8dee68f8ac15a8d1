"""The quiz: ten questions a lesson, an answer's reason, and a proof of each right letter."""

import ast
import inspect
from collections import Counter
from collections.abc import Callable
from importlib import import_module

import pytest
import quiz

from vit_course import checks, lessons
from vit_course.checks.choosing import Choice

LESSONS = [int(p.name[:2]) for p in sorted((lessons.ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))]
NUMBERS = list(range(1, 11))


def questions_of(lesson: int) -> dict[int, Choice]:
    return import_module(f"vit_course.checks.quiz.lesson_{lesson:02}").QUESTIONS


def proofs_of(lesson: int) -> dict[int, Callable[[], str]]:
    return import_module(f"quiz.lesson_{lesson:02}").PROOFS


# Form --------------------------------------------------------------------------------------------


def faults(questions: dict[int, Choice]) -> list[str]:
    """What is wrong with the form of a lesson's questions."""
    found = [] if list(questions) == NUMBERS else [f"the numbers are {list(questions)}"]
    told: list[str] = []  # what may stand once only: a short answer may return elsewhere
    for number, choice in questions.items():
        answers, reasons = zip(*choice.answers.values(), strict=True)
        told += [choice.question, *reasons]
        if list(choice.answers) != ["a", "b", "c"]:
            found.append(f"{number}: the letters are {list(choice.answers)}")
        if not choice.question.endswith("?"):
            found.append(f"{number}: does not end with a question mark")
        if len(set(answers)) < len(answers):
            found.append(f"{number}: two answers are the same")
        texts = [choice.question, *answers, *reasons]
        if any(not text or text != text.strip() for text in texts):
            found.append(f"{number}: a text is empty or has spaces around")
    found += [f"stands twice: {text}" for text, times in Counter(told).items() if times > 1]
    right = Counter(choice.right for choice in questions.values())
    if any(right[letter] < 2 for letter in "abc"):
        found.append(f"the right letters are not spread: {dict(right)}")
    longest = sum(
        all(len(c.answers[c.right][0]) > len(c.answers[x][0]) for x in c.answers if x != c.right)
        for c in questions.values()
    )
    if longest > len(questions) / 2:
        found.append(f"the longest answer is the right one in {longest}: it gives itself away")
    return found


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_has_ten_questions_of_good_form(lesson):
    assert faults(questions_of(lesson)) == []


def test_a_question_stands_in_one_lesson_only():
    told = Counter(
        choice.question for lesson in LESSONS for choice in questions_of(lesson).values()
    )
    assert [question for question, times in told.items() if times > 1] == []


def test_the_search_for_faults_can_find_each():
    def made(number: int, **other) -> Choice:
        texts = {x: (f"answer {number}{x}", f"reason {number}{x}") for x in "abc"}
        right, ask = other.pop("right", "abc"[number % 3]), other.pop("ask", f"{number}?")
        return Choice(ask, right, texts | other)

    good = {n: made(n) for n in NUMBERS}
    assert faults(good) == []
    assert "the numbers are" in faults({n: good[n] for n in NUMBERS[1:]})[0]
    assert "the letters are" in faults(good | {3: made(3, d=("answer", "reason"))})[0]
    assert "question mark" in faults(good | {3: made(3, ask="so")})[0]
    assert "stands twice: reason 4c" in faults(good | {3: made(3, a=("new", "reason 4c"))})[0]
    assert "two answers" in faults(good | {3: made(3, a=("answer 3c", "new"))})[0]
    assert "spaces around" in faults(good | {3: made(3, a=("answer ", "new"))})[0]
    assert "empty" in faults(good | {3: made(3, a=("answer", ""))})[0]
    assert "not spread" in faults({n: made(n, right="a") for n in NUMBERS})[0]
    long = {n: made(n, **{"abc"[n % 3]: (f"a long answer {n}", f"why {n}")}) for n in NUMBERS}
    assert "gives itself away" in faults(long)[0]


# Truth -------------------------------------------------------------------------------------------


def unproven(questions: dict[int, Choice], proofs: dict[int, Callable[[], str]]) -> list[int]:
    """The numbers of the questions whose right letter no proof works out."""
    return [n for n, c in questions.items() if n not in proofs or proofs[n]() != c.right]


@pytest.mark.parametrize("lesson", LESSONS)
def test_each_right_letter_is_proven(lesson):
    assert set(proofs_of(lesson)) == set(questions_of(lesson))
    assert unproven(questions_of(lesson), proofs_of(lesson)) == []


def test_a_changed_letter_and_a_missing_proof_are_found():
    choice = {x: Choice("Which?", x, {"a": ("1", "no"), "b": ("2", "yes")}) for x in "ab"}
    proof = {1: lambda: quiz.only(a=1 + 1 == 1, b=1 + 1 == 2)}
    assert unproven({1: choice["b"]}, proof) == []
    assert unproven({1: choice["a"]}, proof) == [1]
    assert unproven({1: choice["b"]}, {}) == [1]


def test_one_answer_alone_must_hold():
    assert quiz.only(a=False, b=False, c=True) == "c"
    for holds in ({"a": True, "b": True}, {"a": False, "b": False}):
        with pytest.raises(AssertionError, match="these hold"):
            quiz.only(**holds)


def test_the_words_of_a_cell_are_found_where_they_are_printed():
    assert quiz.says(0, "of 256 are the same")
    assert not quiz.says(0, "of 257 are the same")
    assert not quiz.says(0, "Start here")  # prose is no output


def foregone(source: str) -> list[str]:
    """The functions of a module of proofs that give a letter, or call an answer true, as such."""
    return [
        function.name
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef)
        and any(
            isinstance(part.value, ast.Constant)
            for part in ast.walk(function)
            if isinstance(part, (ast.Return, ast.keyword))
            and (isinstance(part, ast.Return) or part.arg in ("a", "b", "c"))
        )
    ]


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_proof_works_its_letter_out(lesson):
    assert foregone(inspect.getsource(import_module(f"quiz.lesson_{lesson:02}"))) == []


def test_the_search_for_proofs_that_are_foregone_can_find_them():
    assert foregone('def p():\n    return "a"') == ["p"]
    assert foregone("def p():\n    return only(a=True, b=1 > 2, c=1 > 3)") == ["p"]
    assert foregone("def p():\n    return only(a=1 < 2, b=1 > 2, c=1 > 3)") == []


# What a learner sees -----------------------------------------------------------------------------


def test_unanswered_it_prints_the_question_and_its_answers(capsys):
    checks.question(4, 7, ...)
    said = capsys.readouterr().out
    choice = questions_of(4)[7]
    answers = [f"{letter} {answer}" for letter, (answer, _) in choice.answers.items()]
    assert said.split() == f"7 · {choice.question} {' '.join(answers)}".split()
    assert max(map(len, said.splitlines())) <= 90  # an output breaks longer lines within a word
    assert said.count("\n  a  ") == said.count("\n  b  ") == said.count("\n  c  ") == 1
    assert said.endswith("\n\n")  # five stand below each other


@pytest.mark.parametrize("letter", ["a", "b", "c"])
def test_each_answer_gets_its_own_reason(letter, capsys):
    choice = questions_of(4)[7]
    checks.question(4, 7, f" {letter.upper()} ")
    verdict = "right" if letter == choice.right else f"not {letter}"
    assert capsys.readouterr().out == f"7 · {verdict}: {choice.answers[letter][1]}\n\n"


@pytest.mark.parametrize("lesson", [-1, 99, True, "4", None, 4.0])
def test_a_lesson_without_questions_is_refused(lesson):
    with pytest.raises(ValueError, match=r"no questions on lesson .*; there are some on: 0, 1, 2"):
        checks.question(lesson, 1, "a")


@pytest.mark.parametrize("number", [0, 11, True, "1", None, 1.0, [1]])
def test_a_question_that_is_not_there_is_refused(number):
    with pytest.raises(ValueError, match=r"no question .*; give a number from 1 to 10"):
        checks.question(0, number, "a")
