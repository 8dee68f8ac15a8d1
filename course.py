"""For contributors and teachers: run lessons, and point the course at its address.

python course.py run notebooks/01_patches.ipynb   execute a lesson in place, and clean it
python course.py run                              the same for all lessons and solutions
python course.py clean                            only clean them: outputs stay, noise goes
python course.py address https://github.com/ME/MY-FORK
                                                  bring another address to every file that has it
"""

import argparse
import os
import re
import subprocess
import sys
import tomllib
from base64 import b64decode, b64encode
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent
NOTEBOOKS = sorted(ROOT.glob("notebooks/**/[0-9]*.ipynb"))
# What differs from run to run or machine to machine, and is never shown.
LANGUAGE = (
    "codemirror_mode",
    "file_extension",
    "mimetype",
    "nbconvert_exporter",
    "pygments_lexer",
    "version",
)
NOISE = (
    "cell.metadata.execution",
    "metadata.widgets",
    *(f"metadata.language_info.{key}" for key in LANGUAGE),
)


def address() -> str:
    """The repository's public address, which stands in pyproject.toml alone."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["project"]["urls"]["Repository"]


def run(paths: list[Path]) -> None:
    """Execute notebooks in place, each in a fresh kernel, and clean them."""
    import nbformat
    from nbclient import NotebookClient

    for path in paths:
        print(path)
        book = nbformat.read(path, as_version=4)
        folder = {"metadata": {"path": str(path.parent)}}
        with TemporaryDirectory() as other:  # no my_vit.py before it, and none left behind
            os.environ["MY_VIT"] = str(Path(other) / "my_vit.py")
            # What a cell prints is stored as one text, however it was buffered.
            NotebookClient(book, timeout=120, resources=folder, coalesce_streams=True).execute()
        for cell in book.cells:
            for output in cell.get("outputs", []):
                if picture := output.get("data", {}).get("image/png"):
                    output["data"]["image/png"] = smaller(picture)
        write(path, nbformat.writes(book) + "\n")
    clean(paths)


def smaller(picture: str) -> str:
    """A PNG in base64, brought to 256 colours: a third of the bytes, and looks the same."""
    from PIL import Image

    image = Image.open(BytesIO(b64decode(picture))).convert("RGB")
    file = BytesIO()
    image.quantize(256, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
    return b64encode(file.getvalue()).decode()


def write(path: Path, text: str) -> None:
    """Write a text with the line ends of git, also on Windows."""
    path.write_text(text, encoding="utf-8", newline="\n")


def clean(paths: list[Path]) -> None:
    """Take the noise out of notebooks; outputs and counts stay."""
    strip = [sys.executable, "-m", "nbstripout", "--keep-output", "--keep-count", "--keep-id"]
    subprocess.run([*strip, "--extra-keys", " ".join(NOISE), *paths], check=True)


def change_address(new: str) -> None:
    """Replace the address in pyproject.toml, the README and every notebook.

    Raises:
        ValueError: not the address of a GitHub repository, which Colab could open.
    """
    pattern = r"https://github\.com/([\w.-]+/[\w.-]+?)(\.git)?/?"
    if not (match := re.fullmatch(pattern, new)):
        raise ValueError(f"{new!r} is not https://github.com/OWNER/REPOSITORY")
    old_name, new_name = address().removeprefix("https://github.com/"), match[1]
    for path in (ROOT / "pyproject.toml", ROOT / "README.md", *NOTEBOOKS):
        text = path.read_text(encoding="utf-8")
        write(path, re.sub(rf"{re.escape(old_name)}(?![\w-])", new_name, text))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, help in (
        ("run", "execute lessons in place, and clean them"),
        ("clean", "only clean"),
    ):
        command = commands.add_parser(name, help=help)
        command.add_argument(
            "paths", nargs="*", type=Path, default=NOTEBOOKS, help="by default all"
        )
    pointer = commands.add_parser("address", help="point badges and setup cells at a fork")
    pointer.add_argument("url", help="https://github.com/OWNER/REPOSITORY")
    options = parser.parse_args()
    if options.command == "run":
        run(options.paths)
    elif options.command == "clean":
        clean(options.paths)
    else:
        change_address(options.url)


if __name__ == "__main__":
    main()
