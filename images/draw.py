"""Draw the overview of the README: `python images/draw.py`. A test draws it again and compares.

A folder given as an argument takes the picture instead. record.py makes the other picture.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from vit_course import plots


def draw(path: Path) -> None:
    """Draw the whole road of a picture, and the lesson that builds each piece."""
    plots.course_map()
    ax = plt.gca()
    for lesson, _, left, width, _ in plots.STAGES:
        text = f"lesson {lesson:02}"
        ax.text(left + width / 2, -1.2, text, ha="center", va="top", color=plots.QUERY, size=9)
    ax.set_ylim(-1.6, 2.65)
    ax.figure.set_size_inches(9.6, 2.95)
    plt.savefig(path, dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    draw(folder / "overview.png")
