"""The lessons as talks: one page of slides each, made by nbconvert and shown by reveal.js.

What is on a slide, and what the speaker only reads, each cell of a lesson says itself, in its
`slideshow` metadata: JupyterLab shows and changes it in its Property Inspector.
"""

import html
import re
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import nbformat
from nbconvert import SlidesExporter
from nbformat.v4 import new_code_cell

from ..lessons import LESSONS, ROOT, write

WIDTH, HEIGHT = 1280, 720  # of a slide; the browser scales it to the screen
LINE = 27  # of code, or of what it prints
OWN_SLIDE = {"slideshow": {"slide_type": "subslide"}, "transient": {"remove_source": True}}
# Cells for who learns alone: of pieces that were written before, and of the package's forms.
ALONE = re.compile(r"(?m)^(?:[\w, ]+ = checks\.mine\(|checks\.source\()")
SHOWS = r"(?s)<details><summary>What the figure shows</summary>\n\n(.*?)\n\n</details>"
MAX_ZOOM = 2  # of a figure: it has two pixels for one, for dense screens
# What shows the slides, from npm, and what of it is never asked for.
PACKAGES = ("reveal.js", "requirejs", "jquery", "mathjax")
INSTALL = "npm install --prefix build reveal.js@4 requirejs@2 jquery@3 mathjax@2"
FETCHED = ROOT / "build" / "node_modules"
UNUSED = shutil.ignore_patterns("unpacked", "png", "localization", "docs", "test", "*.map")
LOCAL = {
    "reveal_url_prefix": "packages/reveal.js",
    "require_js_url": "packages/requirejs/require.js",
    "jquery_url": "packages/jquery/dist/jquery.min.js",
    "mathjax_url": "packages/mathjax/MathJax.js?config=TeX-AMS_CHTML-full,Safe",
}
INDEX = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>ViT, step by step</title>
<style>body {{ font: 24px/1.6 sans-serif; margin: 2em auto; max-width: 30em; }}</style>
<h1>ViT, step by step</h1>
{links}
</html>
"""


def make(
    to: Path,
    packages: Path | None = None,
    lessons: list[Path] = LESSONS,
    sections: Collection[int] = (),
) -> Path:
    """Make the slides of lessons, and a page that lists them.

    Args:
        to: the folder; what is there under the same name is replaced.
        packages: a folder `node_modules` with what shows the slides, which is copied beside them;
            by default build/node_modules. Without it slides fetch that from the network.
        lessons: by default all.
        sections: the numbers of the sections that are shown; by default all, the exercises too.

    Returns:
        The page that lists them.

    Raises:
        ValueError: a package is missing, or a lesson has no section of a number.
    """
    if not packages and FETCHED.is_dir():
        packages = FETCHED
    if packages and (missing := [name for name in PACKAGES if not (packages / name).is_dir()]):
        raise ValueError(f"{packages} has no {missing[0]}; `{INSTALL}` makes build/node_modules")
    to.mkdir(parents=True, exist_ok=True)
    if packages:
        for name in PACKAGES:
            copy = to / "packages" / name
            shutil.copytree(packages / name, copy, ignore=UNUSED, dirs_exist_ok=True)
    links = []
    for path in lessons:
        book = spoken(nbformat.read(path, as_version=4), sections)
        page = to / f"{path.stem}.slides.html"
        write(page, page_of(book, LOCAL if packages else {}))
        title = book.cells[0].source.splitlines()[0].removeprefix("# ")
        links.append(f'<p><a href="{page.name}">{html.escape(title)}</a></p>')
    index = to / "index.html"
    write(index, INDEX.format(links="\n".join(links)))
    return index


def spoken(book: Any, sections: Collection[int] = ()) -> Any:
    """Leave in a lesson what a talk has, and give it back.

    Out goes what is for who learns alone: the link to Colab, the minutes, the lines that fetch the
    learner's own pieces, the listings of the package. With `sections` only these stay, and what
    stands above the first.

    Raises:
        ValueError: the lesson has no section of one of these numbers.
    """
    title = book.cells[0].source
    title = re.sub(r"\[Open in Colab\]\(.*?\)\n+", "", title)
    book.cells[0].source = re.sub(r"(?m)^\d+ minutes to read .*?(?=After this lesson)", "", title)
    cells: list[Any] = []
    number, found = 0, set()
    for cell in book.cells:
        if cell.cell_type == "code" and ALONE.search(cell.source):
            continue
        parts: list[Any] = [cell]
        if cell.cell_type == "markdown" and sections:  # a heading may stand in the middle
            texts = re.split(r"(?m)^(?=## )", cell.source)
            parts = [nbformat.from_dict({**cell, "source": t}) for t in texts if t.strip()]
        for part in parts:
            if part.cell_type == "markdown" and part.source.startswith("## "):
                heading = re.match(r"## (\d+) · ", part.source)
                number = int(heading[1]) if heading else -1
                found.add(number)
            if not sections or number in {0, *sections}:
                cells.append(part)
    if missing := sorted({*sections} - found):
        name = title.splitlines()[0].removeprefix("# ")
        raise ValueError(f"{name} has no section {missing[0]}")
    book.cells = cells
    return book


def page_of(book, urls: dict[str, str]) -> str:
    """Make a lesson's slides, as one page of HTML.

    `urls` says where packages are, by nbconvert's options; what it lacks comes from the network.
    """
    cells = []
    for cell, below in zip(book.cells, [*book.cells[1:], None], strict=True):
        cells.append(cell)
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\((\d\d_\w+)\.ipynb\)", r"(\1.slides.html)", cell.source)
            continue
        figure = next((o for o in cell.outputs if "image/png" in o.get("metadata", {})), None)
        if figure and below:
            shows = re.search(SHOWS, below.source)
            size = figure.metadata["image/png"]
            room = HEIGHT - 70 - LINE * lines(cell)
            # The setup shows only its map. To nbconvert alone it is one whole, and left out.
            if cell.metadata.get("jupyter") or room < 0.9 * size["height"]:
                room = HEIGHT - 20
                cell.outputs.remove(figure)
                cells.append(new_code_cell(outputs=[figure], metadata=OWN_SLIDE))
            zoom = min(MAX_ZOOM, (WIDTH - 40) / size["width"], room / size["height"])
            size.update({side: round(zoom * size[side]) for side in ("width", "height")})
            size["alt"] = shows[1] if shows else ""
    book.cells = cells
    exporter = SlidesExporter(
        template_file=str(Path(__file__).with_suffix(".html.j2")),
        reveal_theme="white",
        reveal_number="c/t",
        reveal_transition="none",
        reveal_width=str(WIDTH),
        reveal_height=str(HEIGHT),
        **urls,
    )
    return exporter.from_notebook_node(book)[0]


def lines(cell) -> int:
    """Count the lines of a cell, with those that it printed."""
    texts = [cell.source]
    for output in cell.outputs:
        data = output.get("data", {})
        texts.append(data["text/plain"] if len(data) == 1 else output.get("text", ""))
    return sum(1 + len(line) // 100 for text in texts for line in text.splitlines())
