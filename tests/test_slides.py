"""The talks: one idea a slide, each fits the screen, and nothing is fetched.

They need `pip install -e ".[teach]"`; that they fit is seen in Chromium.
"""

import re

import nbformat
import pytest
from browser import listen
from helpers import needs
from live_page import window
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from vit_course import __main__ as command
from vit_course import lessons
from vit_course.lessons import LESSONS
from vit_course.teaching import slides

NAMES = [path.stem for path in LESSONS]
SHOWS = "<details><summary>What the figure shows</summary>"


def kind(name):
    return {"slideshow": {"slide_type": name}}


def talk_of(*sources):
    """The kind and the text of what a talk makes of these texts, each a cell of kind subslide."""
    cells = [new_markdown_cell(source, metadata=kind("subslide")) for source in sources]
    made = slides.spoken(new_notebook(cells=[new_markdown_cell("# T", metadata=kind("-")), *cells]))
    return [(cell.metadata.slideshow.slide_type, cell.source) for cell in made.cells[1:]]


def test_a_slide_has_the_first_sentence_of_each_paragraph_and_the_notes_have_all():
    text = (
        "## 2 · By hand\n\nAs *Li* et al. (2017) say, it is so. Then more. A **key** is so.\n\n"
        "**A name.** It is said. And more.\n\n$$\nx\n$$\n\n"
        "1. One. Two.\n2. Three. Four.\n\n```python\nx = 1. \n\ny = 2. \n```\n\n"
        "| a. b. |\n\n<details><summary>A nudge</summary>\n\nTry. Then try.\n\n</details>"
    )
    (on, slide), (off, notes) = talk_of(text)
    assert (on, off) == ("slide", "notes")
    assert slide == (
        "## 2 · By hand\n\nAs *Li* et al. (2017) say, it is so. A **key** is so.\n\n"
        "**A name.** It is said.\n\n"
        "$$\nx\n$$\n\n1. One.\n2. Three.\n\n```python\nx = 1. \n\ny = 2. \n```\n\n| a. b. |"
    )
    assert notes.startswith(text.partition("<details>")[0].partition("\n\n")[2])
    assert notes.endswith("**A nudge.** \n\nTry. Then try.")


def test_a_slide_has_what_its_cell_says_and_the_notes_have_the_text():
    text = "Above. So.\n\n## 2 · By hand\n\nLong. Longer.\n\n**Predict.** How many?"
    said = {"slide_type": "subslide", "says": ["", "Short."]}
    shown = {"slide_type": "-", "says": "It rises."}
    asking = {"slide_type": "subslide", "says": "Because."}
    out = [new_output("stream", text="3\n")]
    book = new_notebook(
        cells=[
            new_markdown_cell("# T", metadata=kind("-")),
            new_markdown_cell(text, metadata={"slideshow": said}),
            new_code_cell("f()", outputs=out, metadata={"slideshow": shown}),
            new_markdown_cell("Why. So.\n\nWrite `patchify`.", metadata={"slideshow": asking}),
            new_code_cell("checks.patchify(patchify)", metadata=kind("-")),
        ]
    )
    cells = slides.spoken(book).cells[1:]
    assert cells[5].metadata.transient.remove_source
    parts = [(cell.metadata.slideshow.slide_type, cell.source) for cell in cells]
    assert parts == [
        ("notes", "Above. So."),
        ("slide", "## 2 · By hand\n\nShort."),
        ("notes", "Long. Longer."),
        ("subslide", "> Short.\n\n**Predict.** How many?"),
        ("subslide", "**It rises.**"),
        ("-", "f()"),
        ("subslide", "Because."),
        ("notes", "Why. So."),
        ("-", "Write `patchify`."),
        ("-", "checks.patchify(patchify)"),
    ]


def test_what_is_said_of_a_figure_is_in_the_notes_of_its_own_slide():
    said = {"slide_type": "notes", "says": "What comes next."}
    cell = new_markdown_cell("Of the figure above.", metadata={"slideshow": said})
    parts = [
        (part.metadata.slideshow.slide_type, part.source) for part in slides.parts_of(cell, None)
    ]
    assert parts == [("notes", "Of the figure above."), ("subslide", "What comes next.")]


def test_an_answer_is_in_the_notes_of_its_stubs_slide():
    fold = "<details><summary>One way to write it</summary>\n\nreturn 1\n\n</details>"
    assert talk_of("Write it.", fold)[-1] == ("notes", "**One way to write it.** \n\nreturn 1")
    for path in LESSONS:
        folds = [c for c in nbformat.read(path, 4).cells if "One way to write it" in c.source]
        assert {fold.metadata.slideshow.slide_type for fold in folds} == {"notes"}, path


def test_a_predict_stands_alone_below_what_it_asks_about():
    options = "".join(
        f"<details><summary>{n}%</summary>Then {n}.</details>\n" for n in (10, 40)
    ).strip()
    seen = f"{SHOWS}\n\nA line.\n\n</details>\n\nIt rises.\n\nIt is so. Then:\n\n$$\nx\n$$\n\n"
    seen += "One. Two.\nThree.\n\n"
    parts = talk_of(f"{seen}**Predict.** How many? Say.\n\n{options}", "Below. It is long.")
    assert parts == [
        ("notes", "It rises.\n\nIt is so. Then:\n\n$$\nx\n$$\n\nOne. Two.\nThree."),
        ("subslide", "It is so.\n\n$$\nx\n$$"),
        (
            "subslide",
            "> One. Two. Three.\n\n**Predict.** How many? Say.\n\n- **A** 10%\n- **B** 40%",
        ),
        ("notes", "**10%.** Then 10.\n\n**40%.** Then 40."),
        ("subslide", "Below."),
        ("notes", "Below. It is long."),
    ]


def test_of_code_a_stub_and_what_prints_are_shown_below_what_is_said_of_it():
    figure = new_output("display_data", {"image/png": "", "text/plain": "<Figure>"})
    figure["metadata"] = {"image/png": {"width": 600, "height": 400}}
    said = new_output("stream", text="right\n")
    stub = "def patchify(images, patch_size):\n    return ...\n\n\nchecks.patchify(patchify)"
    caption = new_markdown_cell(f"{SHOWS}\n\nA line.\n\n</details>", metadata=kind("notes"))
    answer = "<details><summary>After you ran it</summary>\n\nNo. It falls. And more.\n\n</details>"
    asked = "Write `patchify(images, patch_size)`. It gets images. It gives patches."
    answered = new_markdown_cell(f"{answer}\n\n{asked}", metadata=kind("notes"))
    cells = [new_markdown_cell("# T", metadata=kind("slide"))]
    cells += [new_code_cell("x = 1", metadata=kind("-"))]
    cells += [new_code_cell("plot(x)", outputs=[said, figure], metadata=kind("-")), caption]
    cells += [new_code_cell("print(x)", outputs=[said], metadata=kind("-")), answered]
    cells += [new_code_cell(stub, outputs=[said], metadata=kind("-"))]
    talk = slides.spoken(new_notebook(cells=cells)).cells
    assert [(c.metadata.slideshow.slide_type, c.source.splitlines()[-1]) for c in talk[1:]] == [
        ("-", "plot(x)"),
        ("subslide", "**No. It falls.**"),
        ("-", "print(x)"),
        ("notes", "No. It falls. And more."),
        ("subslide", asked),
        ("-", "checks.patchify(patchify)"),
    ]
    drawn, printed, task = (cell for cell in talk if cell.cell_type == "code")
    assert (drawn.metadata.transient.remove_source, len(drawn.outputs)) == (True, 2)
    assert drawn.outputs[1].metadata["image/png"].alt == "A line."
    assert (len(printed.outputs), len(task.outputs)) == (1, 0)


def test_below_a_long_text_a_figure_has_a_slide_of_its_own_with_its_headline():
    said = new_output("stream", text="right\n")
    answer = "<details><summary>After you ran it</summary>\n\nNo. It falls.\n\n</details>"
    for words, begins in ((10, "-"), (60, "subslide")):
        cells = [new_markdown_cell("# T", metadata=kind("slide"))]
        cells += [new_markdown_cell("## S\n\n" + "word " * words, metadata=kind("slide"))]
        cells += [new_code_cell("print(x)", outputs=[said], metadata=kind("-"))]
        cells += [new_markdown_cell(answer, metadata=kind("notes"))]
        talk = slides.spoken(new_notebook(cells=cells)).cells
        (headline,) = (cell for cell in talk if cell.metadata.get("finding"))
        assert headline.metadata.slideshow.slide_type == begins


def test_the_guides_questions_and_mistakes_are_in_the_notes_where_they_are_needed():
    guide = (lessons.ROOT / "notebooks" / "TEACHING.md").read_text(encoding="utf-8")
    for path in LESSONS:
        advised = slides.advice(guide, path.stem[:2])
        assert len(advised[slides.MISTAKES]) == 1
        assert sum(map(len, advised.values())) == 3
        talk = slides.spoken(nbformat.read(path, as_version=4), (), advised).cells
        texts = [cell.source for cell in talk]
        for where, ways in advised.items():
            label = "**What goes wrong**\n\n" if where == slides.MISTAKES else "**Ask.** "
            at = texts.index(label + ways[0])
            assert texts[at : at + len(ways)] == [label + way for way in ways]
            if where == slides.MISTAKES:
                assert at - 1 == next(i for i, cell in enumerate(talk) if slides.is_task(cell))
                continue
            begins = next(i for i, text in enumerate(texts) if lessons.section_of(text) == where)
            between = texts[begins:at]
            assert not any(map(lessons.section_of, between[1:]))
            assert sum("**Predict.**" in text for text in between) <= 1
            assert "**Predict.**" in between[-1] or len(between) == 1


@pytest.mark.slow
@pytest.mark.parametrize("path", LESSONS, ids=NAMES)
def test_a_lesson_is_a_talk_of_some_forty_slides(path):
    notebook = slides.spoken(nbformat.read(path, as_version=4))
    types = [cell.metadata.slideshow.slide_type for cell in notebook.cells]
    talk = slides.page_of(notebook)
    shown = talk.count("<section") - types.count("slide")
    assert 20 <= shown <= 80
    assert types[0] == "slide"
    assert talk.count('<aside class="notes">') == types.count("notes") > 5
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    predicts = [source for source in sources if "**Predict.**" in source]
    before = [cell.source for cell in nbformat.read(path, as_version=4).cells]
    at_home = [*map(lessons.section_of, before)].index("exercises")
    assert len(predicts) == "".join(before[:at_home]).count("**Predict.**") > 0
    assert all(re.match(r"(?:> .+\n\n)?\*\*Predict", source) for source in predicts)
    body = talk.partition('<div class="slides')[2].partition("<script>")[0]
    for words in ("# @title", "Open in Colab", "minutes to read", "checks.quiz", ".ipynb"):
        assert words not in body
    assert "<img" in body
    assert len(re.findall(r"<img alt=[\"'].{50,}", body)) == body.count("<img")


@pytest.mark.slow
def test_a_figure_has_the_room_that_its_text_leaves_or_a_slide_of_its_own():
    needs("sphinx_revealjs")
    for printed, height, number in ((1, 623, 1), (9, 407, 1), (12, 700, 2)):
        figure = new_output("display_data", {"image/png": "", "text/plain": "<Figure>"})
        figure["metadata"] = {"image/png": {"width": 600, "height": 400, "alt": "A <line>."}}
        outputs = [new_output("stream", text="x\n" * printed), figure]
        metadata = {**kind("slide"), "transient": {"remove_source": True}}
        cell = new_code_cell("plot()", outputs=outputs, metadata=metadata)
        talk = slides.page_of(new_notebook(cells=[cell]))
        assert f'height="{height}"' in talk
        assert talk.count("<section") == 1 + number
        assert 'alt="A &lt;line&gt;."' in talk


def test_what_is_for_who_learns_alone_is_not_in_the_talk():
    lesson = nbformat.read(LESSONS[6], as_version=4)
    title = lesson.cells[0].source
    talk = slides.spoken(lesson)
    assert "Colab" in title
    assert "Colab" not in talk.cells[0].source
    assert "After this lesson you can:" in talk.cells[0].source
    code = "\n".join(cell.source for cell in talk.cells if cell.cell_type == "code")
    printed = "\n".join(o.get("text", "") for c in talk.cells for o in c.get("outputs", []))
    for words in ("checks.mine", "checks.pieces", "checks.source"):
        assert words not in code
    assert "against torch.nn: " in printed  # what stood in one cell with checks.source
    assert "my_vit.py in this folder" not in printed
    assert "def forward" not in printed


@pytest.mark.slow
def test_of_a_lesson_the_sections_that_are_asked_for_are_shown_in_that_order(tmp_path, capsys):
    needs("sphinx_revealjs")
    out = tmp_path / "out"
    for words, shown in (
        ("1-2,6", "1 2 6"),
        ("2,6,1", "2 6 1"),
        ("3b,4", "3b 4"),
        ("3a", "3"),
        ("8", "8"),
    ):
        command.main(["slides", "04", "--sections", words, "--to", str(out)])
        (page,) = out.glob(f"{NAMES[4]}_sections_*.html")
        talk = page.read_text(encoding="utf-8")
        page.unlink()
        assert re.findall(r"<h[23][^>]*>(\d+b?) ·", talk) == shown.split()
        assert "<h1" in talk
        question = "What happens when all of them ask at once?"  # at both ends
        assert talk.count(question) == 2
        assert talk.rindex(question) < talk.index("What do you say of it now?")
        assert "glossary" in talk or words != "8"
        assert "GLOSSARY.md" not in talk
    for words, message in (
        (["04", "--sections", "1 to 4"], "'1 to 4' is not such as 1-4,6 or 3,exercises"),
        (["04", "--sections", "9"], "04 · Scaled attention has no section 9"),
        (["00", "--sections", "1"], "00 · Start here has no section 1"),
    ):
        with pytest.raises(SystemExit, match="2"):
            command.main(["slides", *words, "--to", str(out)])
        assert message in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_makes_talks_that_link_to_one_another_and_names_what_is_missing(
    tmp_path, capsys, monkeypatch
):
    needs("sphinx_revealjs")
    out = tmp_path / "out"
    words = ["slides", "02", "03", "--to", str(out)]
    command.main(["slides", "02", "--sections", "1", "--to", str(out)])
    command.main(["slides", "03", "--to", str(out)])
    assert capsys.readouterr().out == f"Open {out / 'index.html'}\n" * 2
    pages = [f"{NAMES[2]}_sections_1.slides.html", f"{NAMES[3]}.slides.html"]
    assert {path.name for path in out.iterdir()} == {"index.html", *pages}
    index = (out / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'href="([^"]+)"', index) == pages
    assert "02 · cls token and positions, 1</a>" in index
    assert "03 · Queries, keys, values, heads</a>" in index
    for changed, message in (
        (["slides", "heads"], "there is no lesson 'heads'; there are 00_start_here"),
        (words, "no_such_package is missing, which shows slides: `pip install -e '.[teach]'`"),
    ):
        with pytest.raises(SystemExit, match="2"):
            command.main(changed)
        assert message in capsys.readouterr().err
        monkeypatch.setattr(slides, "PACKAGES", ("no_such_package",))


# In a browser.

READY = "() => window.Reveal?.isReady?.()"
# Every formula of the slide has its place.
DRAWN = """() => [...Reveal.getCurrentSlide().querySelectorAll('mjx-container')]
  .filter(math => !math.closest('aside'))
  .every(math => math.getBoundingClientRect().width > 0)"""
# What the hall would not see.
PROBLEMS = """() => {
  const slide = Reveal.getCurrentSlide(), found = new Set();
  const area = document.querySelector('.slides').getBoundingClientRect();
  for (const node of slide.querySelectorAll('*')) {
    const box = node.getBoundingClientRect();
    if (!box.width || !box.height || node.closest('aside')) continue;
    if (box.bottom > area.bottom + 1 || box.top < area.top - 1) found.add('too high');
    if (box.right > area.right + 1 || box.left < area.left - 1) found.add('too wide');
    if (node.clientWidth && node.scrollWidth > node.clientWidth + 1) found.add('too wide');
    if (node.matches('img') && !node.naturalWidth) found.add('a picture is missing');
    if (node.matches('[data-mml-node=merror]')) found.add('a wrong formula');
  }
  if (!slide.innerText.trim() && !slide.querySelector('img, mjx-container')) found.add('empty');
  return [...found];
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the talks are."""
    needs("sphinx_revealjs")
    return slides.make(tmp_path_factory.mktemp("talks") / "slides").parent


def problems_of(chrome, talk, width=1280, height=720):
    """What is wrong with each slide, by its number from 1, and how many there are."""
    tab = chrome.new_page(viewport={"width": width, "height": height})
    problems = listen(tab, "file:", "data:")
    tab.goto(talk.as_uri())
    tab.wait_for_function(READY)
    count = tab.evaluate("() => Reveal.getTotalSlides()")
    for number in range(1, count + 1):
        try:
            tab.wait_for_function(DRAWN, timeout=5000)
        except Exception:
            problems.append(f"{number}: a formula is not drawn")
        problems += [f"{number}: {problem}" for problem in tab.evaluate(PROBLEMS)]
        tab.evaluate("() => Reveal.next()")
    tab.close()
    return problems, count


def page(folder, cells, extra=""):
    """A page of these cells as slides."""
    text = slides.page_of(new_notebook(cells=cells))
    lessons.write(folder / "page.html", text.replace("</main>", f"{extra}</main>"))
    return folder / "page.html"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_slide_fits_the_screen(chrome, folder, name):
    problems, count = problems_of(chrome, folder / f"{name}.slides.html")
    assert problems == []
    assert count >= 20


@pytest.mark.slow
def test_the_slides_fit_a_large_and_an_old_screen(chrome, folder):
    for size in ((1920, 1080), (1024, 768)):
        assert problems_of(chrome, folder / f"{NAMES[4]}.slides.html", *size)[0] == []


@pytest.mark.slow
def test_what_has_no_room_goes_on_to_the_next_slide(chrome, folder):
    after = new_markdown_cell("## last\n\nword", metadata=kind("-"))
    for line, new_cell, least in (
        (" ".join(["word"] * 30) + "\n\n", new_markdown_cell, 3),
        ("- word\n", new_markdown_cell, 3),
        ("word\n", new_code_cell, 2),  # one piece, so shown smaller
    ):
        talk = page(folder, [new_cell(line * 60, metadata=kind("slide")), after])
        problems, count = problems_of(chrome, talk)
        assert problems == []
        assert least <= count < 30


@pytest.mark.slow
def test_a_list_that_goes_on_is_counted_on(chrome, folder):
    talk = page(folder, [new_markdown_cell("1. word\n" * 60, metadata=kind("slide"))])
    with window(chrome, talk, known=["file:", "data:"]) as tab:
        tab.wait_for_function(READY)
        numbered = "all => all.map(one => [one.start, one.children.length])"
        lists = tab.locator(".slides ol").evaluate_all(numbered)
    assert len(lists) > 2
    assert [start for start, _ in lists] == [
        1 + sum(length for _, length in lists[:number]) for number in range(len(lists))
    ]


@pytest.mark.slow
def test_what_is_wrong_on_a_slide_is_found(chrome, folder):
    below = 'x <span style="position: absolute; top: 900px">y</span>'
    sources = ["# A title", below, "$$\\frac$$", '<img src="none.png">', "<p></p>"]
    cells = [new_markdown_cell(source, metadata=kind("slide")) for source in sources]
    cells.append(new_code_cell("x" * 200, metadata=kind("slide")))
    talk = page(folder, cells, '<img src="https://a.b/c.png">')
    problems, count = problems_of(chrome, talk)
    assert count == 6
    assert "https://a.b/c.png" in problems
    expected = ["2: too high", "3: a wrong formula", "4: a picture is missing", "5: empty"]
    assert [*expected, "6: too wide"] == [problem for problem in problems if problem[1] == ":"]
