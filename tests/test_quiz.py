"""The quiz: its texts' form, proofs of the right letters, and how it looks."""

import ast
import inspect
import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from importlib import import_module

import pytest
import quiz

from vit_course import checks, lessons
from vit_course.checks import choosing
from vit_course.checks.choosing import Question

LESSONS = [int(p.name[:2]) for p in sorted((lessons.ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))]
FILES = sorted((choosing.FOLDER / "quiz").iterdir())
BY_FORM = 0.45  # how often form may point at the right answer; blind chance is a third


def questions_of(lesson: int) -> dict[int, Question]:
    return choosing.read(choosing.FOLDER / "quiz" / f"lesson_{lesson:02}.txt")


def proofs_of(lesson: int) -> dict[int, Callable[[], str]]:
    module = import_module(f"quiz.lesson_{lesson:02}")
    return {int(name[1]): f for name, f in vars(module).items() if name[:1] == "q" and "_" in name}


# Form --------------------------------------------------------------------------------------------


def test_each_lesson_has_its_file_of_six():
    assert [f"lesson_{lesson:02}.txt" for lesson in LESSONS] == [p.name for p in FILES]
    assert {len(questions_of(lesson)) for lesson in LESSONS} == {6}


def faults(questions: list[Question]) -> list[str]:
    """What is wrong with the form of a file's questions."""
    found = []
    for q in questions:
        options, reasons = list(q.options.values()), list(q.reasons.values())
        if not q.text.endswith("?"):
            found.append(f"{q.number} does not end with a question mark")
        if len(set(options)) < 3 or len(set(reasons)) < 3:
            found.append(f"{q.number} says something twice")
        if any(": " in option or option.endswith(".") for option in options):
            found.append(f"{q.number} has a reason in an option")
        if any(reason[-1] not in ".?)" for reason in reasons):
            found.append(f"{q.number} has a reason that does not end")
    right = Counter(q.right for q in questions)
    if min(right[letter] for letter in "abc") < len(questions) // 6:
        found.append(f"the right letters are not spread: {dict(right)}")
    if max(right.values()) > len(questions) / 2:
        found.append(f"one letter is right too often: {dict(right)}")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_form_is_good(path):
    assert faults(list(choosing.read(path).values())) == []


def given_away(questions: list[Question]) -> dict[str, float]:
    """How often the uniquely shortest or longest option, or a letter, is the right one."""
    count = Counter()
    for q in questions:
        right, *others = sorted(map(len, q.options.values())), q.options[q.right]
        length = len(others[0])
        count["shortest"] += length == right[0] < right[1]
        count["longest"] += length == right[2] > right[1]
        count[q.right] += 1
    return {form: times / len(questions) for form, times in count.items()}


def test_form_does_not_give_answers_away():
    quizzes = [q for lesson in LESSONS for q in questions_of(lesson).values()]
    assert max(given_away(quizzes).values()) <= BY_FORM


def made(number: int, right: str = "", ask: str = "Which?", **options: str) -> Question:
    texts = {x: f"option {x}" for x in "abc"} | options
    reasons = {x: f"Reason {number}{x}." for x in "abc"}
    return Question(number, ask, right or "abc"[number % 3], texts, reasons)


def test_bad_form_is_found():
    good = [made(n) for n in range(1, 7)]
    assert faults(good) == []
    for bad, said in (
        (made(3, ask="Which."), "3 does not end with a question mark"),
        (made(3, b="option c"), "3 says something twice"),
        (made(3, b="no: it is not"), "3 has a reason in an option"),
    ):
        assert faults([*good[:2], bad, *good[3:]]) == [said]
    assert "not spread" in faults([made(n, right="ab"[n % 2]) for n in range(6)])[0]
    short = [made(n, **{"abc"[n % 3]: "short"}) for n in range(6)]
    long = [made(n, **{"abc"[n % 3]: "an option that is long"}) for n in range(6)]
    assert (given_away(short)["shortest"], given_away(long)["longest"]) == (1, 1)
    assert max(given_away(good).values()) < BY_FORM


GOOD = "1. One\nand two?\n  a x\n      Why.\n* b y\n      Because\n      of it.\n  c z\n      No.\n"


def test_a_file_is_read(tmp_path):
    path = tmp_path / "some.txt"
    path.write_text(GOOD + "\n" + GOOD.replace("1. One", "2. Two"), encoding="utf-8")
    first, second = choosing.read(path).values()
    assert (first.text, second.text, second.number) == ("One and two?", "Two and two?", 2)
    assert first.options == {"a": "x", "b": "y", "c": "z"}
    assert first.reasons == {"a": "Why.", "b": "Because of it.", "c": "No."}
    assert first.right == "b"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("1. ", "2. ", 'it must begin with "1. "'),
        ("  c z", "  d z", "its letters are"),
        ("* b", "  b", "0 options are marked"),
        ("  a x", "* a x", "2 options are marked"),
        ("      Why.\n", "", "an option has no reason"),
    ],
)
def test_a_file_of_wrong_form_is_refused(old, new, said, tmp_path):
    path = tmp_path / "some.txt"
    path.write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(f"some.txt, question 1: {said}")):
        choosing.read(path)


# Truth -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lesson", LESSONS)
def test_each_right_letter_is_proven(lesson):
    proven = {number: proof() for number, proof in proofs_of(lesson).items()}
    assert proven == {number: q.right for number, q in questions_of(lesson).items()}


def test_one_answer_alone_must_hold():
    assert quiz.only(a=False, b=False, c=True) == "c"
    for holds in ({"a": True, "b": True}, {"a": False, "b": False}):
        with pytest.raises(AssertionError, match="these hold"):
            quiz.only(**holds)


def foregone(source: str) -> list[str]:
    """The functions of a module of proofs that give a letter, or call an answer true, as such."""
    return [
        function.name
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef)
        and any(
            isinstance(part, ast.Return)
            and (
                isinstance(part.value, ast.Constant)
                or (
                    isinstance(part.value, ast.Call)
                    and ast.unparse(part.value.func) == "only"
                    and any(
                        isinstance(answer.value, ast.Constant) for answer in part.value.keywords
                    )
                )
            )
            for part in ast.walk(function)
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


class Page(HTMLParser):
    """The text that a page shows while its buttons are closed, that of its buttons, and ids."""

    def __init__(self, html: str):
        super().__init__()
        self.open: list[str] = []
        self.shown, self.buttons, self.ids = "", [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        self.buttons += [""] if tag == "summary" else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "summary" in self.open:
            self.buttons[-1] += data
        if "style" not in self.open and ("details" not in self.open or "summary" in self.open):
            self.shown += data


def test_a_quiz_shows_its_questions_with_a_button_for_each_option():
    shown = checks.quiz(4)
    page = Page(shown._repr_html_())
    assert page.open == page.ids == []
    assert len(page.buttons) == 18
    plain, text = repr(shown), " ".join(page.shown.replace("\u2002", "").split())
    for q in questions_of(4).values():
        bare = q.text.replace("`", "").replace("*", "")
        assert f"{q.number}. {bare}" in text
        assert f"{q.number}. {q.text}" in " ".join(plain.split())
        assert not any(reason in text or reason in plain for reason in q.reasons.values())
        for letter, option in q.options.items():
            assert f"{letter} {option}" in text
            assert f"\n  {letter}  {option}" in plain
    assert plain.endswith('\n\nTo answer by a letter: checks.quiz(4, 1, "a")')
    assert max(map(len, plain.splitlines())) <= 90  # an output breaks longer lines within a word


def test_every_reason_stands_behind_its_button_with_a_verdict():
    html = made(1, right="b", a="`a < b` and *c*").html()
    assert ">a &ensp;<code>a &lt; b</code> and <em>c</em></summary>" in html
    for letter, verdict in dict(a="No", b="Right", c="No").items():
        assert f"</summary><p><b>{verdict}.</b> Reason 1{letter}.</p></details>" in html


@pytest.mark.parametrize("letter", ["a", "b", "c"])
def test_an_answer_prints_the_question_again_the_verdict_and_the_reason(letter, capsys):
    q = questions_of(4)[2]
    assert checks.quiz(4, 2, f" {letter.upper()} ") is None
    verdict = "right" if letter == q.right else "not right"
    told = f"{q} {letter} is {verdict}. {q.reasons[letter]}"
    assert " ".join(told.split()) in " ".join(capsys.readouterr().out.split())


def test_one_question_alone_is_shown():
    assert repr(checks.quiz(4, 2)).startswith(f"2. {questions_of(4)[2].text[:40]}")
    assert repr(checks.quiz(4, 2)).endswith('checks.quiz(4, 2, "a")')
    assert len(Page(checks.quiz(4, 2)._repr_html_()).buttons) == 3


@pytest.mark.parametrize("letter", ["d", "", "ab", 1, True, ["b"], ...])
def test_what_is_no_letter_is_refused(letter):
    with pytest.raises(ValueError, match=r'the answer is .*; give "a", "b" or "c"'):
        checks.quiz(4, 1, letter)


@pytest.mark.parametrize("lesson", [-1, 99, True, "4", None, 4.0])
def test_a_lesson_that_is_not_there_is_refused(lesson):
    with pytest.raises(ValueError, match=r"the lesson is .*; give one of 0, 1, 2"):
        checks.quiz(lesson)


@pytest.mark.parametrize("number", [0, 7, True, "1", 1.0, [1]])
def test_a_number_that_is_not_there_is_refused(number):
    with pytest.raises(ValueError, match=r"the number is .*; give one from 1 to 6"):
        checks.quiz(0, number, "a")
