"""Lessons brought up to date with their exercises, executed in place, and cleaned."""

import os
import re
import subprocess
import sys
from base64 import b64decode, b64encode
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .lessons import write

# What differs from run to run or machine to machine, and is never shown.
LANGUAGE = "codemirror_mode file_extension mimetype nbconvert_exporter pygments_lexer version"
NOISE = ["cell.metadata.execution", "metadata.widgets"]
NOISE += [f"metadata.language_info.{key}" for key in LANGUAGE.split()]


def run(paths: list[Path]) -> None:
    """Bring lessons up to date, each run in a fresh kernel, and clean them.

    Its folds get the exercises' answers, its title the minutes that it takes; its solutions are
    made anew; and what the README, lesson 00 and the guide say of minutes is brought up to date.
    """
    import nbformat

    from .folding import fold_answers, solutions
    from .minutes import TITLE, count, fill_in

    written = []
    for path in paths:
        print(path)
        book = nbformat.read(path, as_version=4)
        fold_answers(book)
        book.cells[0].source = TITLE.sub(str(count(book)), book.cells[0].source)
        execute(book, path)
        answers = path.parent / "solutions" / path.name
        answers.parent.mkdir(exist_ok=True)
        execute(solutions(book, path.stem), answers)
        written += [path, answers]
    clean(written)
    fill_in()


def execute(book: Any, path: Path) -> None:
    """Run a notebook where it stands, and write it with small pictures and nothing live."""
    import nbformat
    from nbclient import NotebookClient

    folder = {"metadata": {"path": str(path.parent)}}
    with TemporaryDirectory() as other:  # no my_vit.py before it, and none left behind
        os.environ["MY_VIT"] = str(Path(other) / "my_vit.py")
        # What a cell prints is stored as one text, however it was buffered; and no times.
        NotebookClient(
            book, timeout=600, resources=folder, coalesce_streams=True, record_timing=False
        ).execute()
    for cell in book.cells:
        if "outputs" in cell:  # what libraries log there, they log with times and processes
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if picture := data.get("image/png"):
                data["image/png"] = smaller(picture)
            if "text/html" in data:  # without what is live, which comes back when the cell is run
                html = re.sub(r"<iframe\b.*?</iframe>", "", data.pop("text/html"), flags=re.DOTALL)
                data |= {"text/html": html} if html else {}
    write(path, nbformat.writes(book) + "\n")


def smaller(picture: str) -> str:
    """Bring a PNG in base64 to 256 colours: it has a third of the bytes, and looks the same."""
    from PIL import Image

    image = Image.open(BytesIO(b64decode(picture))).convert("RGB")
    file = BytesIO()
    palette = image.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    palette.save(file, "PNG", optimize=True)
    return b64encode(file.getvalue()).decode()


def clean(paths: list[Path]) -> None:
    """Take the noise out of notebooks; outputs and counts stay."""
    strip = [sys.executable, "-m", "nbstripout", "--keep-output", "--keep-count", "--keep-id"]
    subprocess.run([*strip, "--extra-keys", " ".join(NOISE), *paths], check=True)
