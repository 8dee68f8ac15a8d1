"""The book that Sphinx makes of the lessons: whole, without a broken link, and read offline.

It needs `pip install -e ".[book]"`, and Chromium.
"""

import json
import re
import shutil
from urllib.parse import unquote

import nbformat
import pytest
from browser import listen
from bs4 import BeautifulSoup
from helpers import needs

import vit_steps
from vit_course import address, lessons
from vit_course.lessons import LESSONS, NOTEBOOKS, ROOT
from vit_course.teaching import book

pytestmark = pytest.mark.slow
PAGES = [path.relative_to(ROOT).with_suffix(".html").as_posix() for path in NOTEBOOKS]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    needs(*book.TOOLS)
    return book.make(tmp_path_factory.mktemp("book") / "site").parent


LOADED = "link[rel~=stylesheet], link[rel~=preload], link[rel~=icon], script[src], img[src]"


def read(path):
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def links_of(page):
    return {tag.get("href", "") for tag in page.find_all("a")}


def problems(site):
    """Links and files that are not there, and what a page would fetch from elsewhere."""
    pages = {path: read(path) for path in site.rglob("*.html") if "_static" not in path.parts}
    places = {path: {tag["id"] for tag in page.find_all(id=True)} for path, page in pages.items()}
    problems = []
    for path, page in pages.items():
        loads = {tag.get("src") or tag["href"] for tag in page.select(LOADED)}
        away = [url for url in loads if re.match(r"(?!data:)\w+:|//", url)]
        problems += [f"{path.name} fetches {url}" for url in away]
        for link in links_of(page) | loads:
            if re.match(r"\w+:|//", link):
                continue
            file, _, anchor = unquote(link.partition("?")[0]).partition("#")
            target = (path.parent / file).resolve() if file else path
            if not target.is_file():
                problems.append(f"{path.name}: no file {link}")
            elif target in pages and anchor and anchor not in places[target]:
                problems.append(f"{path.name}: no place {link}")
    return problems


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
    (tmp_path / "source" / "vit_steps").mkdir()
    for name in ("README", "notebooks/TEACHING", "notebooks/GLOSSARY", "vit_steps/README"):
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


def contents(notebook):
    """How many pictures, folded parts and folded setups a notebook holds."""
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    text = "\n".join(texts + [o.get("data", {}).get("text/html", "") for o in outputs])
    pictures = sum("image/png" in o.get("data", {}) for o in outputs)
    return pictures, text.count("<details>"), sum("jupyter" in c.metadata for c in notebook.cells)


def test_a_page_shows_all_of_its_notebook(site):
    for path in NOTEBOOKS:
        page = read(site / path.relative_to(ROOT).with_suffix(".html"))
        figures = sum("described" in image["alt"] for image in page.find_all("img"))
        folds = len(page.select("details:not([class])"))
        setups = len(page.select("details[class*=hide]"))
        assert (figures, folds, setups) == contents(nbformat.read(path, 4))
        assert setups == 1


def test_the_front_page_begins_with_the_live_page_and_leads_to_every_page(site):
    front = read(site / "index.html")
    assert front.find(["iframe", "img"])["src"] == "explorer.html"
    links = links_of(front)
    pages = {*PAGES, *(f"notebooks/{path.stem}.html" for path in ROOT.glob("notebooks/*.md"))}
    assert pages - links == set()
    assert "notebooks/GLOSSARY.html" in pages
    assert "explorer.html" in links  # that it is there, is looked at with all links
    assert address.site() not in links  # it would lead to where one is
    # A folder is no page: its link goes to the repository.
    assert any(link.endswith("/tree/main/notebooks/solutions") for link in links)


def test_every_public_name_of_the_package_has_its_place(site):
    text = (site / "vit_steps" / "README.html").read_text(encoding="utf-8")
    for name in vit_steps.__all__:
        home = getattr(vit_steps, name).__module__
        assert f'id="{home}.{name}"' in text
    parts = [*(ROOT / "vit_steps").glob("*.py"), *(ROOT / "vit_steps").glob("*/__init__.py")]
    modules = {path.parent.name if path.stem == "__init__" else path.stem for path in parts}
    shown = set(re.findall(r'id="module-vit_steps\.(\w+)"', text))
    assert modules - shown == {"vit_steps", "files", "inputs"}  # for the others' use


def test_a_search_finds_a_lesson_by_its_words(site):
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(re.fullmatch(r"Search\.setIndex\((.*)\)\s*", text, re.DOTALL)[1])
    assert "satur" in index["terms"]  # saturated, by its stem


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_a_browser_shows_every_lesson_on_a_desk_and_a_phone(site, chrome, width, scheme):
    context = chrome.new_context(viewport={"width": width, "height": 850}, color_scheme=scheme)
    tab, formulas = context.new_page(), 0
    problems = listen(tab, "file:", "blob:")
    for name in ["index", "notebooks/GLOSSARY", *(f"notebooks/{path.stem}" for path in LESSONS)]:
        tab.goto((site / f"{name}.html").as_uri())
        tab.evaluate("() => window.MathJax?.startup?.promise")
        *failing, theme, wide, drawn = tab.evaluate("""() => [
            [...document.images].filter(image => !image.naturalWidth).length,
            [...document.querySelectorAll(".math")].filter(
                math => !math.querySelector("mjx-container")).length,
            document.querySelectorAll("[data-mml-node=merror]").length,
            document.documentElement.dataset.theme, document.documentElement.scrollWidth,
            document.querySelectorAll("mjx-container").length]""")
        assert (name, failing, theme) == (name, [0, 0, 0], scheme)  # pictures, formulas
        assert wide <= width, name
        formulas += drawn
    context.close()
    assert problems == []
    assert formulas > 100
