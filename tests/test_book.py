"""The book that Sphinx makes of the lessons: whole, without a broken link, and read offline.

It needs `pip install -e ".[book]"`, and Chromium.
"""

import json
import re
import shutil
from html.parser import HTMLParser
from urllib.parse import unquote

import nbformat
import pytest
from browser import listen
from helpers import needs

from vit_course import lessons
from vit_course.lessons import LESSONS, NOTEBOOKS, ROOT
from vit_course.teaching import book

pytestmark = pytest.mark.slow
PAGES = [path.relative_to(ROOT).with_suffix(".html").as_posix() for path in NOTEBOOKS]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    needs(*book.TOOLS)
    return book.make(tmp_path_factory.mktemp("book") / "site").parent


class Page(HTMLParser):
    """What a page links to, loads and can be linked at."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.places, self.tags = [], [], {""}, []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        self.tags.append((tag, given))
        self.places.add(given.get("id", ""))
        if tag == "a":
            self.links.append(given.get("href", ""))
        elif tag == "link" and given.get("rel") in ("stylesheet", "preload", "icon"):
            self.loads.append(given["href"])
        elif tag in ("script", "img") and "src" in given:
            self.loads.append(given["src"])


def problems(site):
    """Links and files that are not there, and what a page would fetch from elsewhere."""
    pages = {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}
    found = []
    for path, page in pages.items():
        away = [one for one in page.loads if re.match(r"(?!data:)\w+:|//", one)]
        found += [f"{path.name} fetches {one}" for one in away]
        for link in {*page.links, *page.loads}:
            if re.match(r"\w+:|//", link):
                continue
            file, _, place = unquote(link.partition("?")[0]).partition("#")
            target = (path.parent / file).resolve() if file else path
            if not target.is_file():
                found.append(f"{path.name}: no file {link}")
            elif target in pages and place not in pages[target].places:
                found.append(f"{path.name}: no place {link}")
    return found


def test_each_link_leads_somewhere_and_nothing_is_fetched(site):
    assert problems(site) == []


def test_a_broken_link_place_picture_and_a_fetched_script_are_found(site, tmp_path):
    copy = shutil.copytree(site, tmp_path / "site", ignore=shutil.ignore_patterns(".doctrees"))
    added = (
        '<a href="nowhere.html"></a><a href="#nowhere"></a><img src="none.png">'
        '<a href="../search.html#nowhere"></a><script src="https://example.org/x.js"></script>'
    )
    with (copy / PAGES[1]).open("a", encoding="utf-8") as file:
        file.write(added)
    assert sorted(problems(copy)) == [
        "01_patches.html fetches https://example.org/x.js",
        "01_patches.html: no file none.png",
        "01_patches.html: no file nowhere.html",
        "01_patches.html: no place #nowhere",
        "01_patches.html: no place ../search.html#nowhere",
    ]


def test_a_broken_link_in_a_lesson_stops_the_book(tmp_path):
    needs(*book.TOOLS)
    lesson = tmp_path / NOTEBOOKS[0].relative_to(ROOT)
    lesson.parent.mkdir()
    shutil.copy(NOTEBOOKS[0], lesson)
    (tmp_path / "README.md").write_text("# Few\n\n[gone](notebooks/01_patches.ipynb)\n")
    with pytest.raises(RuntimeError, match=r"notebooks/01_patches\.ipynb"):
        book.make(tmp_path / "site", tmp_path)


def test_the_book_can_be_made_without_solutions(tmp_path):
    needs(*book.TOOLS)
    text = "# One\n\nSolutions: [solutions/01_one.ipynb](solutions/01_one.ipynb).\n\n"
    text += "<details><summary>One way to write it</summary>\n\nloot\n\n</details>"
    printed = nbformat.v4.new_output("stream", text="loot")
    package = nbformat.v4.new_code_cell("checks.source(patchify)", outputs=[printed])
    cells = [nbformat.v4.new_markdown_cell(text), package]
    python = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}
    lesson = nbformat.v4.new_notebook(cells=cells, metadata=python)
    (tmp_path / "source" / "notebooks" / "solutions").mkdir(parents=True)
    for name in ("notebooks/01_one", "notebooks/solutions/01_one"):
        nbformat.write(lesson, tmp_path / "source" / f"{name}.ipynb")
    for name in ("README", "notebooks/TEACHING", "notebooks/GLOSSARY"):
        (tmp_path / "source" / f"{name}.md").write_text("# A page\n")
    front = book.make(tmp_path / "site", tmp_path / "source", solutions=False)
    pages = {p.stem: p.read_text("utf-8") for p in front.parent.glob("notebooks/**/*.html")}
    assert set(pages) == {"01_one", "GLOSSARY"}
    assert "<h1>One" in pages["01_one"]
    assert "loot" not in pages["01_one"]
    assert "solutions/" not in pages["01_one"]
    assert not (front.parent / ".doctrees").exists()
    readme = lessons.without_answers((ROOT / "README.md").read_text("utf-8"))
    assert "notebooks/solutions" not in readme
    assert ". The [glossary]" in readme


def shown(notebook, page):
    """What a notebook holds, and what its page shows: pictures, folded parts, the folded setup."""
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    text = "\n".join(texts + [o.get("data", {}).get("text/html", "") for o in outputs])
    folded = sum("jupyter" in cell.metadata for cell in notebook.cells)
    holds = sum("image/png" in o.get("data", {}) for o in outputs), text.count("<details>"), folded
    details = [given.get("class", "") for tag, given in page.tags if tag == "details"]
    setup = sum("hide" in name for name in details)
    figures = [given for tag, given in page.tags if tag == "img" and "described" in given["alt"]]
    return holds, (len(figures), details.count(""), setup)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_page_shows_all_of_its_notebook(site, path):
    page = Page(site / path.relative_to(ROOT).with_suffix(".html"))
    notebook = nbformat.read(path, as_version=4)
    holds, shows = shown(notebook, page)
    assert holds == shows
    assert holds[2] == 1  # the setup
    notebook.cells[1].metadata.pop("jupyter")
    notebook.cells[0].source += "<details>"
    assert shown(notebook, page)[0] != shows


def test_the_front_page_leads_to_every_page(site):
    front = site / "index.html"
    links = set(Page(front).links)
    wanted = {*PAGES, *(f"notebooks/{path.stem}.html" for path in ROOT.glob("notebooks/*.md"))}
    assert wanted - links == set()
    assert "notebooks/GLOSSARY.html" in wanted
    assert "explorer.html" in links  # the live page; that it is there, is looked at with all links
    # A folder is no page: its link goes to the repository.
    assert any(link.endswith("/tree/main/notebooks/solutions") for link in links)


def test_a_search_finds_a_lesson_by_its_words(site):
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(re.fullmatch(r"Search\.setIndex\((.*)\)\s*", text, re.DOTALL)[1])
    assert "satur" in index["terms"]  # saturated, by its stem


def seen(chrome, pages, width, scheme):
    """What is wrong with pages as a browser shows them, and how many formulas it set."""
    context = chrome.new_context(viewport={"width": width, "height": 850}, color_scheme=scheme)
    tab, formulas = context.new_page(), 0
    found = listen(tab, "file:")
    for page in pages:
        tab.goto(page.as_uri())
        tab.evaluate("() => window.MathJax?.startup?.promise")
        wide, theme, broken, set_, unset, wrong = tab.evaluate("""() => [
            document.documentElement.scrollWidth, document.documentElement.dataset.theme,
            [...document.images].filter(image => !image.naturalWidth).length,
            document.querySelectorAll("mjx-container").length,
            [...document.querySelectorAll(".math")].filter(
                math => !math.querySelector("mjx-container")).length,
            document.querySelectorAll("[data-mml-node=merror]").length]""")
        formulas += set_
        if wide > width:
            found.append(f"{page.name} is {wide} pixels wide")
        if theme != scheme:
            found.append(f"{page.name} is {theme}")
        if broken + unset + wrong:
            found.append(f"{page.name}: {broken} pictures, {unset} and {wrong} formulas fail")
    context.close()
    return found, formulas


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_a_browser_shows_every_lesson_on_a_desk_and_a_phone(site, chrome, width, scheme):
    names = ["index", "notebooks/GLOSSARY", *(f"notebooks/{path.stem}" for path in LESSONS)]
    found, formulas = seen(chrome, [site / f"{name}.html" for name in names], width, scheme)
    assert found == []
    assert formulas > 100
