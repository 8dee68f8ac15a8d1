"""The course's notebooks: which there are, and where they stand."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
LESSONS = sorted(ROOT.glob("notebooks/[0-9]*.ipynb"))
SOLUTIONS = sorted(ROOT.glob("notebooks/solutions/[0-9]*.ipynb"))
NOTEBOOKS = LESSONS + SOLUTIONS


def without_answers(text: str) -> str:
    """Take the folded answers out of a text, and the sentences that say where the solutions are."""
    fold = r"\n*<details>\s*<summary>One way to write it</summary>.*?</details>"
    text = re.sub(fold, "", text, flags=re.DOTALL)
    text = re.sub(r"Solutions are in \[[^]]*\]\([^)]*\); t", "T", text)
    return re.sub(r" ?Solutions: \[[^]]*\]\([^)]*\)\.", "", text).strip("\n")


def chosen(names: list[str]) -> list[Path]:
    """Choose lessons by name.

    Args:
        names: whole names, or how they begin, such as "03"; none choose all lessons.

    Raises:
        ValueError: there is no such lesson.
    """
    for name in names:
        if not any(path.stem.startswith(name) for path in LESSONS):
            stems = ", ".join(path.stem for path in LESSONS)
            raise ValueError(f"there is no lesson {name!r}; there are {stems}")
    return [path for path in LESSONS if path.stem.startswith(tuple(names) or "")]


def section_of(text: str) -> str | None:
    """Give the section that a text begins, such as "3" or "exercises", if it begins one."""
    heading = re.match(r"## (?:(\d+) · )?(.*)", text)
    return (heading[1] or heading[2].lower()) if heading else None


def write(path: Path, text: str) -> None:
    """Write a text with the line ends of git, also on Windows."""
    path.write_text(text, encoding="utf-8", newline="\n")
