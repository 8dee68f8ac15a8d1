"""The lessons as talks: each one page of HTML, made by nbconvert and shown by reveal.js.

Which cells begin a slide, are notes or are left out, a lesson says itself, in its `slideshow`
metadata, which JupyterLab shows in its Property Inspector; `spoken` shortens what is on a slide.
Where `slideshow` has `says`, that is on the slide in place of the text (a list: of its parts, as
headings and a stub's task part them), or above what a cell of code gives, without the code.
What shows the slides comes with two packages for Sphinx and is written into each page, which so
needs no network and no other file.
"""

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import pairwise
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import Any

import nbformat
from nbconvert import SlidesExporter
from nbformat.v4 import new_code_cell, new_markdown_cell

from ..folding import task_of
from ..lessons import LESSONS, ROOT, section_of, write

WIDTH, HEIGHT = 1280, 720  # of a slide; the browser scales it to the screen
LINE = 27  # of code, or of what it prints
TEXT, FULL = 170, 200  # of a heading and a sentence; letters that leave no room for more
BOLD, BOLD_WIDE = 42, 60  # of a line of what is found, and its letters
# For who learns alone: lines that bring pieces or list the package's form, and what they print.
ALONE = re.compile(r"(?m)^(?:[\w, ]+ = checks\.mine|checks\.(?:source|pieces))\([^)]*\)\n*")
PRINTED = re.compile(r"(?m)^(?:no my_vit\.py|not solved) .*\n|^(?:def|class) (?s:.*)")
LINKS = re.compile(r"(?m)^(?:Before|Back): \[.*$|Solutions: \[.*?\)\.?")  # to other notebooks
PAGES = re.compile(r"\[([^\]]+)\]\(\w+\.md\)")  # such as the glossary, which no talk has beside it
FOLD = re.compile(r"(?s)<details><summary>(.*?)</summary>(.*?)</details>\n*")
SHOWS = re.compile(r"(?s)\s*<details><summary>What the figure shows</summary>\s*(.*?)\s*</details>")
PREDICT = r"\*\*Predict\.\*\*.+(?:\n.+)*(?:\n+<details>.*</details>)*"
WHOLE = re.compile(r"[#|<>]|```|\$\$|    |\*\*Words to remember|\*\*[^*]+\*\*$")  # is not shortened
LONG, FEW = 60, 4  # words of a paragraph, and of a sentence
ITEM = r"(?:[-*]|\d+\.) +"  # what an item of a list begins with
SENTENCE = re.compile(r"(?s)(?:\*\*[^*]+\*\*\s)?.*?(?<! al)(?<!\beq)(?<!\bp)[.?!][*)”]*(?=\s|$)")
AT_HOME = ("exercises", "going deeper")
ANSWERED = "**What do you say of it now? One sentence, and compare with your neighbour.**"
LETTERS = "ABCDEF"  # of a Predict's answers, for the vote
FORMULA = re.compile(r"\$\$")  # it stays, with the sentence above it
KEPT = re.compile(r"^\$\$|(?<!^)\*\*[^*]+\*\*(?! *$)")  # a formula, or a definition
MISTAKES = "what goes wrong"  # in the advice on a lesson, beside its sections
OWN_SLIDE = {"slideshow": {"slide_type": "subslide"}, "transient": {"remove_source": True}}
MAX_ZOOM = 2  # of a figure: it has two pixels for one, for dense screens
PACKAGES = ("sphinx_revealjs", "sphinx-mathjax-offline")  # they show the slides
REVEAL = "_static/revealjs"  # in the first
STYLES = ("reveal.css", "theme/white.css")
SCRIPTS = ("dist/reveal.js", "plugin/notes/notes.js")
MATHJAX = "static/mathjax/tex-svg.js"  # in the second: one file that needs no other
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


def make(to: Path, lessons: list[Path] = LESSONS, sections: Sequence[str] = ()) -> Path:
    """Make the slides of lessons, and a page that lists all that are in the folder.

    Args:
        to: the folder; what is there under the same name is replaced.
        lessons: by default all.
        sections: those that are shown, such as "3" or "exercises"; by default all but the
            exercises and Going deeper.

    Returns:
        The page that lists them.

    Raises:
        ValueError: a lesson has no such section.
        RuntimeError: what shows the slides is not installed.
    """
    guide = (ROOT / "notebooks" / "TEACHING.md").read_text(encoding="utf-8")
    to.mkdir(parents=True, exist_ok=True)
    for path in lessons:
        book = spoken(nbformat.read(path, as_version=4), sections, advice(guide, path.stem[:2]))
        name = "_".join([path.stem, *(["sections", *sections] if sections else [])])
        write(to / f"{name}.slides.html", page_of(book))
    index, links = to / "index.html", []
    for page in sorted(to.glob("*.slides.html")):  # those that were made before, too
        title = re.search(r"<title>(.*?)</title>", page.read_text(encoding="utf-8"))
        some = page.name.removesuffix(".slides.html").partition("_sections_")[2]
        label = (title[1] if title else page.name) + f", {some.replace('_', ', ')}" * bool(some)
        links.append(f'<p><a href="{page.name}">{label}</a></p>')
    write(index, INDEX.format(links="\n".join(links)))
    return index


def advice(guide: str, lesson: str) -> dict[str, list[str]]:
    """Give what the guide advises on a lesson, "03": questions by section, and MISTAKES."""
    part = rf"(?ms)^## {lesson} · .*?\n\*\*Ask\*\*\n(.*?)^(?:\*\*Exercises|## |\Z)"
    about = re.search(part, guide)
    asked, _, mistakes = about[1].partition("**What goes wrong**") if about else ("", "", "")
    found = {MISTAKES: [mistakes.strip()]} if mistakes else {}
    for where, question in re.findall(r"(?m)^- \*(.+?)\.?\* (.+)$", asked):
        found.setdefault(where.removeprefix("Section ").lower(), []).append(question)
    return found


def spoken(
    book: Any, sections: Sequence[str] = (), advised: Mapping[str, list[str]] = MappingProxyType({})
) -> Any:
    """Turn a lesson into a talk, and give it back.

    On a slide stand a heading and the first sentence of each paragraph and each with a bold word,
    formulas, a figure or what a cell prints, below the first sentence of what is said of it, a stub
    below all that is asked of it, or a Predict alone; all else that the lesson says is in the
    notes. Out goes code that only draws, and what is for who learns alone: the link to Colab, the
    minutes, the lines that fetch the learner's own pieces, the listings of the package, what a
    check says to a stub. A talk of some sections ends with the question that it began with.

    Args:
        book: the lesson.
        sections: these alone, in this order, below what stands above the first: "3", "3b" or
            "exercises"; "3a" is what stands above 3b. By default all but AT_HOME.
        advised: what `advice` gives, for the notes.

    Raises:
        ValueError: the lesson has no such section.
    """
    title = book.cells[0].source
    title = re.sub(r"\[Open in Colab\]\(.*?\)\n+", "", title)
    title = re.sub(r"(?m)^\d+ minutes to read .*?(?=After this lesson)", "", title)
    if sections:  # it promises what all sections do
        title = title.partition("After this lesson")[0]
    book.cells[0].source = title
    question = title.partition("\n")[2].strip()
    cells: list[tuple[str, str, Any]] = []  # each with its section, and the part of it
    section, part, alone, full = "", "", False, False
    for cell, below in zip(book.cells, [*book.cells[1:], None], strict=True):
        pieces_of = parts_of if cell.cell_type == "markdown" else code_of
        for piece in pieces_of(cell, below):
            kind = piece.metadata.slideshow.slide_type
            text = piece.cell_type == "markdown"
            if text and (begins := section_of(piece.source)):
                section, part = begins, f"{begins}a"
            elif text and (lettered := re.match(r"### (\d+[a-z]) ·", piece.source)):
                part = lettered[1]
            if kind == "-" or (not text and kind != "skip"):  # below a text, where it has room
                piece.metadata.slideshow.slide_type = "subslide" if alone else "-"
                if finding := None if text else finding_of(piece, below):
                    own = alone or full
                    finding.metadata.slideshow.slide_type = "subslide" if own else "-"
                    cells.append((section, part, finding))
                    piece.metadata.slideshow.slide_type = "-"
                    piece.metadata["below"] = height_of(finding) + (0 if own else TEXT)
            if kind not in ("notes", "skip"):
                alone = not text or "**Predict.**" in piece.source
                full = len(piece.source) > FULL
            cells.append((section, part, piece))
    names = {name for *both, _ in cells for name in both}
    if missing := [section for section in sections if section not in names]:
        name = title.splitlines()[0].removeprefix("# ")
        raise ValueError(f"{name} has no section {missing[0]}")
    for where, texts in advised.items():
        sources = [piece.source if own == where else "" for own, _, piece in cells]
        tasks = [number for number, (*_, piece) in enumerate(cells) if is_task(piece)]
        predicts = [number for number, source in enumerate(sources) if "**Predict.**" in source]
        headings = [number for number, source in enumerate(sources) if section_of(source)]
        if at := (tasks if where == MISTAKES else [*predicts, *headings]):
            label = "**What goes wrong**\n\n" if where == MISTAKES else "**Ask.** "
            notes = [text_on("notes", label + text) for text in texts]
            cells[at[0] + 1 : at[0] + 1] = [(*cells[at[0]][:2], note) for note in notes]
    chosen = [[c for *own, c in cells if name in own] for name in sections] or [
        [c for own, _, c in cells if own and own not in AT_HOME]
    ]
    book.cells = [c for own, _, c in cells if not own] + [c for group in chosen for c in group]
    if sections and question:  # it ends where it began
        book.cells.append(text_on("slide", f"{question}\n\n{ANSWERED}"))
    return book


def finding_of(cell: Any, below: Any) -> Any:
    """Make a slide's first line of what the text below a cell says of its output, or None."""
    if "says" in cell.metadata.slideshow:
        said = cell.metadata.slideshow.says
        return text_on("subslide", f"**{said}**", finding=True) if said else None
    if below is None or not below.source.startswith("<details>") or is_task(cell):
        return None  # where no fold begins it, a text has a slide of its own
    text = SHOWS.sub("", below.source).strip()
    if answer := re.match(r"(?s)<details><summary>After you ran it</summary>(.*?)</details>", text):
        text = answer[1].strip()
    block = text.split("\n\n")[0]
    if not block or WHOLE.match(block) or re.match(ITEM, block) or "**Predict" in block:
        return None
    first, *others = SENTENCE.findall(block) or [block]
    if len(first.split()) < FEW:
        first += "".join(others[:1])
    return text_on("subslide", f"**{first}**", finding=True)


def height_of(finding: Any) -> int:
    """Give the height of what is found, in pixels."""
    return 60 + BOLD * ceil(len(finding.source) / BOLD_WIDE)


def text_on(kind: str, text: str, finding: bool = False) -> Any:
    """Make a cell of text on a "slide" or "subslide", "-" on the one above, or in the "notes"."""
    metadata = {"slideshow": {"slide_type": kind}, "finding": finding}
    return new_markdown_cell(text.strip(), metadata=metadata)


def is_task(cell: Any) -> bool:
    """Whether a cell holds a stub that learners fill."""
    return cell.cell_type == "code" and task_of(cell) is not None


def code_of(cell: Any, below: Any) -> list[Any]:
    """Leave of a cell of code what a hall should see: its figure, or what it prints, or a stub.

    `below` is the next cell, which says what a figure shows.
    """
    if ALONE.search(cell.source):
        cell.source = ALONE.sub("", cell.source).strip()
        for output in cell.outputs:
            output.update({"text": PRINTED.sub("", output.text)} if "text" in output else {})
        cell.outputs = [output for output in cell.outputs if output.get("text", "x").strip()]
    if is_task(cell):
        cell.outputs = []
        return [cell]
    shows = SHOWS.match(below.source) if below else None
    for figure in figures_of(cell):
        figure.metadata["image/png"]["alt"] = shows[1] if shows else ""
    live = any("text/html" in output.get("data", {}) for output in cell.outputs)
    if figures_of(cell) or live or "says" in cell.metadata.slideshow:
        cell.metadata["transient"] = {"remove_source": True}
    return [cell] if cell.outputs else []


def parts_of(cell: Any, below: Any) -> list[Any]:
    """Divide a cell of text into slides and notes: at headings, and around each Predict.

    What it says of the piece that a stub in the next cell, `below`, is for, stays whole.
    """
    if cell.metadata.slideshow.slide_type == "skip":
        return []
    parts = []

    def add(kind: str, text: str) -> None:
        if text.strip():
            parts.append(text_on(kind, text))

    source = PAGES.sub(r"\1", LINKS.sub("", cell.source))
    texts = re.split(rf"(?m)^(?=#{{2,3}} )|({PREDICT})", source)
    texts = [text for text in texts if text and text.strip()]
    task = task_of(below) if below else None
    asked = re.search(rf"(?ms)^[^\n]*`{task.name}\b.*", texts[-1]) if task else None
    if asked:
        texts[-1:] = [texts[-1][: asked.start()], asked[0]]
    says, context = cell.metadata.slideshow.get("says"), ""
    said = None if says is None else iter([says] if isinstance(says, str) else says)
    for text, after in zip(texts, [*texts[1:], ""], strict=True):
        kind = cell.metadata.slideshow.slide_type
        heading = re.match("#+", text)
        if heading:
            kind = "subslide" if heading[0] == "###" else "slide"
        is_asked = asked is not None and text is texts[-1]
        words = None
        if said and not text.startswith("**Predict.**"):
            words = next(said, None if is_asked else "")
        if words is not None:
            title = f"{text.splitlines()[0]}\n\n" if heading else ""
            context = f"> {words}\n\n" if words and not WHOLE.search(words) else ""
            notes = FOLD.sub(r"**\1.** \2", re.sub(r"\A#+ .*", "", SHOWS.sub("", text)))
            above = kind == "notes"  # it speaks of the slide above
            if above:
                add("notes", notes)
            if heading or not (context and after.startswith("**Predict.**")):
                add("subslide" if above else kind, title + words)
            if not above:
                add("notes", notes)
            continue
        if is_asked:
            add(kind if heading else "-", FOLD.sub("", text))
            continue
        if text.startswith("**Predict.**"):
            options = FOLD.findall(text)
            lettered = zip(LETTERS, options, strict=False)
            offered = "\n".join(f"- **{letter}** {option}" for letter, (option, _) in lettered)
            question = FOLD.sub("", text).strip()
            add("subslide", f"{context}{question}\n\n{offered}")
            add("notes", "\n\n".join(f"**{option}.** {means}" for option, means in options))
            continue
        shows = SHOWS.match(text)
        text = SHOWS.sub("", text)
        if not heading and (shows or text != texts[-1]):  # it speaks of what is above
            kind = "notes"
        plain = FOLD.sub("", text).strip()
        slide = brief(plain)
        if kind != "notes":
            add(kind, slide)
        if kind == "notes" or slide != text.strip():
            add("notes", FOLD.sub(r"**\1.** \2", re.sub(r"\A#+ .*", "", text)))
        if kind == "notes":  # what must be seen of it
            blocks = ["", *slide.split("\n\n"), ""]
            seen = [a for a, b in pairwise(blocks) if KEPT.search(a) or FORMULA.match(b)]
            add("subslide", "\n\n".join(seen))
        last = plain.split("\n\n")[-1]
        context = "" if WHOLE.match(last) or not last else f"> {last_words(last)}\n\n"
    return parts


def last_words(text: str) -> str:
    """Give a paragraph on which a question below it may stand; of a long one, its end."""
    sentences = SENTENCE.findall(text) if len(text.split()) > LONG else []
    return " ".join((" ".join(sentences[-2:]) or text).split())


def brief(text: str) -> str:
    """Shorten each paragraph, and each item of a list."""
    blocks = []
    for block in re.findall(r"(?ms)^```.*?^```$|^\$\$.*?\$\$$|^[^\n].*?(?=\n\n|\Z)", text):
        if re.match(ITEM, block):
            items = re.findall(rf"(?s)({ITEM})(.*?)(?=\n{ITEM}|\Z)", block)
            block = "\n".join(mark + short(item) for mark, item in items)
        elif not WHOLE.match(block):
            block = short(block)
        blocks.append(block)
    return "\n\n".join(blocks)


def short(text: str) -> str:
    """Give the first sentence of a paragraph, and each that has a bold word, as a definition has.

    A bold title counts as part of the first.
    """
    first, *others = SENTENCE.findall(text) or [text]
    return first + "".join(sentence for sentence in others if "**" in sentence)


def page_of(book: Any) -> str:
    """Make a lesson's slides, as one page of HTML.

    Raises:
        RuntimeError: what shows the slides is not installed.
    """
    cells = []
    for cell in book.cells:
        cells.append(cell)
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\((\d\d_\w+)\.ipynb\)", r"(\1.slides.html)", cell.source)
            continue
        if figures := figures_of(cell):
            sizes = [figure.metadata["image/png"] for figure in figures]
            high = sum(size["height"] for size in sizes)
            above = TEXT if cell.metadata.slideshow.slide_type == "-" else 0
            above = cell.metadata.get("below", above)
            room = HEIGHT - 70 - above - LINE * lines(cell)
            least = 0.9  # of its size that a figure may have
            finding = cells[-2] if cells[-2:][0].metadata.get("finding") else None
            if finding and room < least * high:  # a slide for both
                finding.metadata.slideshow.slide_type = "subslide"
                room, least = HEIGHT - 70 - height_of(finding) - LINE * lines(cell), 0.6
            # The setup shows only its map. To nbconvert alone it is one whole, and left out.
            if cell.metadata.get("jupyter") or room < least * high:
                room = HEIGHT - 20
                cell.outputs = [output for output in cell.outputs if output not in figures]
                cells.append(new_code_cell(outputs=figures, metadata=OWN_SLIDE))
            for size in sizes:
                zoom = min(MAX_ZOOM, (WIDTH - 40) / size["width"], room / high)
                size.update({side: round(zoom * size[side]) for side in ("width", "height")})
    book.cells = cells
    template = str(Path(__file__).with_suffix(".html.j2"))
    exporter = SlidesExporter(exclude_anchor_links=True, template_file=template)
    title = book.cells[0].source.splitlines()[0].lstrip("# ") if book.cells else ""
    return exporter.from_notebook_node(book, {"shown_by": shown_by(), "title": title})[0]


def shown_by() -> dict[str, str]:
    """Read what shows the slides: reveal.js with its style, and MathJax.

    Raises:
        RuntimeError: one of them is not installed.
    """
    try:
        reveal, mathjax = map(files, PACKAGES)
    except ModuleNotFoundError as error:
        missing = f"{error.name} is missing, which shows slides"
        raise RuntimeError(f"{missing}: `pip install -e '.[teach]'` brings it") from error
    style = "".join((reveal / REVEAL / "dist" / n).read_text("utf-8") for n in STYLES)
    scripts = [reveal / REVEAL / name for name in SCRIPTS] + [mathjax / MATHJAX]
    return {
        "style": re.sub(r"@import url\(.*?\);", "", style),  # a font that would be fetched
        "script": "\n".join(script.read_text("utf-8") for script in scripts),
        "width": str(WIDTH),
        "height": str(HEIGHT),
    }


def figures_of(cell: Any) -> list[Any]:
    """Give the outputs of a cell of code that are pictures of a known size."""
    return [output for output in cell.outputs if "image/png" in output.get("metadata", {})]


def lines(cell) -> int:
    """Count the lines of a cell, with those that it printed."""
    texts = [] if cell.metadata.get("transient") else [cell.source]
    for output in cell.outputs:
        data = output.get("data", {})
        texts.append(data["text/plain"] if len(data) == 1 else output.get("text", ""))
    return sum(1 + len(line) // 100 for text in texts for line in text.splitlines())
