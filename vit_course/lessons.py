"""Where the course stands: its lessons, their solutions, and its public address."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LESSONS = sorted(ROOT.glob("notebooks/[0-9]*.ipynb"))
SOLUTIONS = sorted(ROOT.glob("notebooks/solutions/[0-9]*.ipynb"))
NOTEBOOKS = LESSONS + SOLUTIONS


def address() -> str:
    """The repository's public address, which stands in pyproject.toml alone."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["project"]["urls"]["Repository"]


def write(path: Path, text: str) -> None:
    """Write a text with the line ends of git, also on Windows."""
    path.write_text(text, encoding="utf-8", newline="\n")
