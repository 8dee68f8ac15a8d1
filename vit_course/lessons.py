"""The course's notebooks: which there are, and where they stand."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
LESSONS = sorted(ROOT.glob("notebooks/[0-9]*.ipynb"))
SOLUTIONS = sorted(ROOT.glob("notebooks/solutions/[0-9]*.ipynb"))
NOTEBOOKS = LESSONS + SOLUTIONS


def write(path: Path, text: str) -> None:
    """Write a text with the line ends of git, also on Windows."""
    path.write_text(text, encoding="utf-8", newline="\n")
