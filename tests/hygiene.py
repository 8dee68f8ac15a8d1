"""The rules of a notebook, beyond that it runs; each gives the problems that it finds."""

import ast
import json
import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import nbformat

from vit_course.checks.keeping import PIECES
from vit_course.folding import checked
from vit_course.minutes import AFTER

SHOWS = "<details><summary>What the figure shows</summary>"
MAX_OUTPUT, MAX_NOTEBOOK = 300_000, 1_000_000
# By their form. A slash after a word, a number or a bracket divides: 1/255, and/or, (H/P)/w/d.
MACHINE_PATH = re.compile(
    r"(?<![\w.~/)\]}<…])/[A-Za-z_.][\w.-]*/[\w.-]+"  # /folder/name
    r"|(?<![\w/])~/\w+"  # ~/name
    r"|\bfile://"
    r"|\b[A-Z]:[\\/]+\w+"  # C:\name, C:/name
    r"|(?<![\w\\])\\\\[\w.-]{2,}\\[\w$.-]{2,}"  # \\server\share
)
NOT_COMPARED = {"nbval-ignore-output", "nbval-skip", "skip"}
NOT_COMPARED_WORDS = ("NBVAL_IGNORE_OUTPUT", "NBVAL_SKIP")


def problems(path: Path) -> list[str]:
    """List all that is wrong with one notebook, whether lesson or solutions."""
    book = nbformat.read(path, as_version=4)
    if path.stat().st_size > MAX_NOTEBOOK:
        return [f"the notebook is over {MAX_NOTEBOOK} bytes"]
    rules = (counts, captions, outputs, metadata, paths, ignored, pictures, answers_are_folded)
    rules += (pieces_are_taken, answers_run_when_pasted) if path.parent.name != "solutions" else ()
    found = [problem for rule in rules for problem in rule(book)] + schema(path) + links(book, path)
    return found + slides(book, talk=path.parent.name != "solutions")


def code_cells(book) -> list:
    return [cell for cell in book.cells if cell.cell_type == "code"]


def schema(path: Path) -> list[str]:
    """Look at the file as it stands, since reading it by nbformat mends some faults."""
    book = json.loads(path.read_text(encoding="utf-8"))
    repeated = [i for i, n in Counter(cell.get("id") for cell in book["cells"]).items() if n > 1]
    found = [f"cell id {i!r} stands twice" for i in repeated]
    try:
        nbformat.validate(book)
    except nbformat.ValidationError as error:
        found.append(f"not a valid notebook: {error.message}")
    return found


def counts(book) -> list[str]:
    """nbval does not compare a cell without a count: 1 to n, in order, says that all were run."""
    actual = [cell.execution_count for cell in code_cells(book)]
    if actual == list(range(1, len(actual) + 1)):
        return []
    return [f"execution counts are {actual}, not 1 to {len(actual)}"]


def is_picture(output) -> bool:
    data = output.get("data", {})
    return any(kind.startswith("image/") for kind in data) or "<img" in data.get("text/html", "")


def captions(book) -> list[str]:
    """Below a picture stands, folded, what it shows: no viewer takes alt text for all of them."""
    found = []
    for cell, below in zip(book.cells, [*book.cells[1:], None], strict=True):
        if cell.cell_type == "code" and any(map(is_picture, cell.outputs)):
            text = below.source if below is not None and below.cell_type == "markdown" else ""
            fold = re.search(rf"(?s){re.escape(SHOWS)}\n\n(.*?)\n\n</details>", text)
            if not fold or len(fold[1]) <= 50:
                found.append(f"nothing says what the picture of cell {cell.execution_count} shows")
    return found


def outputs(book) -> list[str]:
    found = []
    for cell in code_cells(book):
        where = f"cell {cell.execution_count}"
        may_raise = "raises-exception" in cell.metadata.get("tags", [])
        for output in cell.outputs:
            if len(str(output)) > MAX_OUTPUT:
                found.append(f"{where}: an output over {MAX_OUTPUT} bytes")
            if output.output_type == "error" and not may_raise:
                found.append(f"{where}: an error, {output.ename}")
            if output.get("name") == "stderr":
                found.append(f"{where}: a warning: {output.text[:60]}")
            kinds = set(output.get("data", {})) - {"text/plain", "text/html", "image/png"}
            found += [f"{where}: an output of kind {kind}" for kind in sorted(kinds)]
    return found


def metadata(book) -> list[str]:
    found = [f"metadata {key!r}" for key in set(book.metadata) - {"kernelspec", "language_info"}]
    if set(book.metadata.get("language_info", {})) - {"name"}:
        found.append("metadata tells the version of Python")
    folded = {"cellView": "form", "jupyter": {"source_hidden": True}}  # in Colab, in JupyterLab
    for number, cell in enumerate(book.cells):
        other = {key: value for key, value in cell.metadata.items() if folded.get(key) != value}
        found += [f"cell metadata {key!r}" for key in set(other) - {"tags", "reason", "slideshow"}]
        if cell.metadata.get("jupyter") and "Setup" not in cell.source.splitlines()[0]:
            found.append(f"cell {number} is folded, and is not the setup")
    return found


SLIDES = ("slide", "subslide", "-", "notes", "skip")  # nbconvert's own words


def slides(book, talk: bool) -> list[str]:
    """Each cell of a lesson says what it is in the talk; a cell of the solutions says nothing."""
    shows = [dict(cell.metadata.get("slideshow", {})) for cell in book.cells]
    for show in shows:
        show.pop("says", None)  # what is on it in place of the text
    right = [{"slide_type": kind} for kind in SLIDES] if talk else [{}]
    wrong = [(i, show or None) for i, show in enumerate(shows) if show not in right]
    return [f"cell {i} is the slide {show}" for i, show in wrong]


def printed(output) -> str:
    """Give all text of an output, as it is read: not its pictures, and no escaped line ends."""
    data = output.get("data", {})
    texts = [text for kind, text in data.items() if kind.startswith("text/")]
    return "\n".join([output.get("text", ""), *output.get("traceback", []), *texts])


def paths(book) -> list[str]:
    texts = [cell.source for cell in book.cells]
    texts += [printed(output) for cell in code_cells(book) for output in cell.outputs]
    return [f"a machine's path: {hit[0]}" for text in texts if (hit := MACHINE_PATH.search(text))]


def is_ignored(cell) -> bool:
    tags = set(cell.metadata.get("tags", []))
    return bool(tags & NOT_COMPARED) or any(word in cell.source for word in NOT_COMPARED_WORDS)


def ignored(book) -> list[str]:
    """A cell that is not compared says why, in its metadata or beside the word."""
    return [
        f"cell {cell.execution_count} is not compared, and gives no reason"
        for cell in code_cells(book)
        if is_ignored(cell)
        and not cell.metadata.get("reason")
        and not re.search(r"NBVAL_\w+: *\w+", cell.source)
    ]


def pictures(book) -> list[str]:
    """A picture in Markdown would be remote, or missing in Colab: pictures are outputs."""
    pattern = re.compile(r"!\[|<img", re.IGNORECASE)
    texts = (cell.source for cell in book.cells if cell.cell_type == "markdown")
    return ["a picture in Markdown" for text in texts if pattern.search(text)]


def links(book, path: Path) -> list[str]:
    found = []
    for cell in book.cells:
        if cell.cell_type != "markdown":
            continue
        for target in re.findall(r"\]\(([^)\s]+)\)", cell.source):
            local = not re.match(r"\w+:|#", target)
            if local and not (path.parent / unquote(target.split("#")[0])).exists():
                found.append(f"a link to {target}, which is not there")
    return found


def tasks(book) -> list:
    """The cells that a learner fills: those whose stored run says that nothing was attempted."""
    return [
        cell
        for cell in code_cells(book)
        if any("not attempted yet" in printed(output) for output in cell.outputs)
    ]


def builds(book) -> list[str]:
    """The pieces of the learner's model whose build cells stand in a lesson, in order."""
    return [name for cell in code_cells(book) if (name := checked(cell.source)) in PIECES]


def pieces_are_taken(book) -> list[str]:
    """Behind a build cell the lesson takes the learner's piece."""
    code = "\n".join(cell.source for cell in code_cells(book))
    return [
        f"no `{name} = checks.mine(...)` behind the build cell"
        for name in builds(book)
        if not re.search(rf'(?m)^.*\b{name}\b.* = checks\.mine\(.*"{name}"', code)
    ]


def answers_run_when_pasted(book) -> list[str]:
    """A folded answer takes the place of its whole cell, so nothing else may be lost with it."""
    found = []
    for i, cell in enumerate(book.cells[:-1]):
        if cell.cell_type != "code" or checked(cell.source) not in PIECES:
            continue
        fold = book.cells[i + 1].source
        for node in ast.parse(cell.source).body:
            line = ast.unparse(node)
            defines = isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Expr)
            if "<details>" in fold and not defines and line not in fold:
                found.append(f"cell {i}: an answer pasted over it lacks `{line}`")
    return found


def answers_are_folded(book) -> list[str]:
    """A prediction is followed by the cell that answers it, then by its explanation, folded."""
    found = []
    for i, cell in enumerate(book.cells):
        if cell.cell_type != "markdown" or "**Predict" not in cell.source:
            continue
        kinds = [c.cell_type for c in book.cells[i + 1 : i + 3]]
        fold = book.cells[i + 2].source if kinds == ["code", "markdown"] else ""
        if not fold.startswith(AFTER):
            found.append(f"cell {i + 2} is not folded, and tells what cell {i} asks")
    return found
