"""The quiz: its texts' form, its right letters, and how it looks."""

import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from quiz import KEY, core

from vit_course import checks, lessons
from vit_course.checks import choosing
from vit_course.checks.choosing import Question

LESSONS = [int(p.name[:2]) for p in sorted((lessons.ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))]
FILES = sorted((choosing.FOLDER / "quiz").iterdir())
BY_FORM = 0.45  # how often form may point at the right answer; blind chance is a third


def questions_of(lesson: int) -> dict[int, Question]:
    return choosing.read(choosing.FOLDER / "quiz" / f"lesson_{lesson:02}.txt")


# Form --------------------------------------------------------------------------------------------


def test_each_lesson_has_its_file_of_six():
    assert [f"lesson_{lesson:02}.txt" for lesson in LESSONS] == [p.name for p in FILES]
    assert {len(questions_of(lesson)) for lesson in LESSONS} == {6}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_options_differ_and_the_right_letters_are_spread(path):
    questions = list(choosing.read(path).values())
    for q in questions:
        options, reasons = list(q.options.values()), list(q.reasons.values())
        assert q.text.endswith("?"), q.number
        assert len(set(options)) == len(set(reasons)) == 3, q.number
        assert not any(": " in option or option.endswith(".") for option in options), q.number
    right = Counter(q.right for q in questions)
    assert set(right) == set("abc")
    assert max(right.values()) <= len(questions) / 2


def test_form_does_not_give_answers_away():
    """Neither the letter, nor being the shortest or the longest option, says which is right."""
    count, questions = Counter(), [q for lesson in LESSONS for q in questions_of(lesson).values()]
    for q in questions:
        shortest, middle, longest = sorted(map(len, q.options.values()))
        length = len(q.options[q.right])
        count["shortest"] += length == shortest < middle
        count["longest"] += length == longest > middle
        count[q.right] += 1
    assert max(count.values()) <= BY_FORM * len(questions)


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
    ("old", "new", "message"),
    [
        ("1. ", "2. ", 'it must begin with "1. "'),
        ("  c z", "  d z", "its letters are"),
        ("* b", "  b", "0 options are marked"),
        ("  a x", "* a x", "2 options are marked"),
        ("      Why.\n", "", "an option has no reason"),
    ],
)
def test_a_file_of_wrong_form_is_refused(old, new, message, tmp_path):
    path = tmp_path / "some.txt"
    path.write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(f"some.txt, question 1: {message}")):
        choosing.read(path)


# Truth -------------------------------------------------------------------------------------------


def test_the_right_letters_are_those_of_the_key():
    assert ["".join(q.right for q in questions_of(n).values()) for n in LESSONS] == KEY


@pytest.mark.parametrize("name", [name for name in vars(core) if re.match(r"l\d\d_q\d_", name)])
def test_of_the_measured_answers_the_right_one_alone_holds(name):
    holds = dict(zip("abc", vars(core)[name](), strict=True))
    right = KEY[int(name[1:3])][int(name[5]) - 1]
    assert [letter for letter, it_does in holds.items() if it_does] == [right]


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
    output = checks.quiz(4)
    page = Page(output._repr_html_())
    assert page.open == page.ids == []
    assert len(page.buttons) == 18
    plain, text = repr(output), " ".join(page.shown.replace("\u2002", "").split())
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
    options = dict(a="`a < b` and *c*", b="two", c="three")
    html = Question(1, "Which?", "b", options, {x: f"Reason {x}." for x in "abc"}).html()
    assert ">a &ensp;<code>a &lt; b</code> and <em>c</em></summary>" in html
    no, yes = '<p class="wrong"><b>✗ No.</b>', '<p class="right"><b>✓ Right.</b>'
    for letter, verdict in dict(a=no, b=yes, c=no).items():
        assert f"</summary>{verdict} Reason {letter}.</p></details>" in html


@pytest.mark.parametrize("letter", ["a", "b", "c"])
def test_an_answer_prints_the_question_again_the_verdict_and_the_reason(letter, capsys):
    q = questions_of(4)[2]
    assert checks.quiz(4, 2, f" {letter.upper()} ") is None
    verdict = "right" if letter == q.right else "not right"
    expected = f"{q} {letter} is {verdict}. {q.reasons[letter]}"
    assert " ".join(expected.split()) in " ".join(capsys.readouterr().out.split())


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
