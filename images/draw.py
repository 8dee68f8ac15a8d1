"""Draw every picture in this folder: `python images/draw.py`. A test draws them again and compares.

A folder given as an argument takes the pictures instead. Only explorer.png is none of them: with
BROWSER_OUT=images, tests/test_explorer_page.py takes it of the live page.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from vit_course import plots


def overview() -> None:
    """The whole road, and the lesson that builds each piece."""
    plots.course_map()
    ax = plt.gca()
    for lesson, _, left, width, _ in plots.STAGES:
        text = f"lesson {lesson:02}"
        ax.text(left + width / 2, -1.2, text, ha="center", va="top", color=plots.QUERY, size=9)
    ax.set_ylim(-1.6, 2.65)
    ax.figure.set_size_inches(9.6, 2.95)


def draw(folder: Path) -> None:
    """Draw all pictures into the folder."""
    pictures = {"overview.png": overview}
    for lesson in range(7):
        pictures[f"map_{lesson:02}.png"] = lambda lesson=lesson: plots.course_map(lesson)
    for name, picture in pictures.items():
        picture()
        plt.savefig(folder / name, dpi=150, metadata={"Software": None})
        plt.close()


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
