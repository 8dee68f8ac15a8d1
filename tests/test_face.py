"""A verdict's card says what the text says, in whole words, and the map counts the pieces."""

import re
from html import unescape

from vit_course.checks import EXERCISES, face
from vit_course.checks.keeping import PIECES


def plain(html):
    """The text of a card, without its tags."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", html)).split())


def test_a_right_piece_says_what_it_does_and_fills_the_map():
    card = face.right("patchify", "It cuts.", "`patchify` is kept", {"patchify"})
    assert plain(card).startswith("✓ patchify is right It cuts. patchify is kept patches → cls")
    assert plain(card).endswith("1 of 11 pieces of your ViT are written")
    assert "rgba(0,158,115,.5) 50%" in card  # half of the first stage
    assert "✓ patches" in face.progress({"patchify", "PatchEmbedding"})
    assert "pieces" not in plain(face.right("rows_of", "Each role.", ""))


def test_the_map_has_the_pieces_of_the_model_and_each_says_what_it_does():
    assert list(face.MODEL) == list(PIECES)[:11]
    assert all(EXERCISES[name].does.endswith(".") for name in PIECES)


def test_a_wrong_answer_is_told_each_mistake_and_python_folds():
    two = face.wrong("f", "two things at once:\n1. cut `(h d)` first\n2. use x < y")
    assert plain(two) == "✗ f : two things at once 1. cut (h d) first 2. use x < y"
    card = face.wrong("f", "2: your code raises E in the line `a: b`: long\ntext") + face.wrong(
        "f", "it: what it gives cannot be used here (E: no <b>)"
    )
    first, second = re.findall(r"<summary>What Python said</summary><pre[^>]*>(.*?)</pre>", card)
    assert (first, second) == ("long", "no &lt;b&gt;")
    assert "your code raises E in the line a: b" in plain(card)
    assert "nowrap" in face.marked("`no break`")
    assert face.marked("(B, h, N, d)") == "(B,\u00a0h,\u00a0N,\u00a0d)"


def test_an_open_stub_waits(capsys):
    assert plain(face.waiting("f", "not attempted yet")) == "… f waits for you"
    assert plain(face.waiting("f", "not attempted yet: 2 lines")) == "… f waits for you 2 lines"
    face.show("as text", "<b>card</b>")
    assert capsys.readouterr().out == "as text\n"
