"""The lessons as a site to read, made by Sphinx; `conf.py` says how it looks."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from ...lessons import ROOT

TOOLS = ("sphinx", "myst_nb", "sphinx_book_theme", "sphinx-mathjax-offline")


def make(to: Path, source: Path = ROOT, solutions: bool = True) -> Path:
    """Make the site of a repository's README and notebooks, as they are stored.

    Args:
        to: the folder, which Sphinx keeps up to date if it is there.
        source: the repository.
        solutions: also the solutions, the folded answers and the guide for teachers.

    Returns:
        Its front page.

    Raises:
        RuntimeError: a tool is missing, or something is wrong in a page, such as a broken link.
    """
    if not all(map(find_spec, TOOLS)):
        raise RuntimeError(
            "Sphinx or a part of it is missing: `pip install -e '.[book]'` brings it"
        )
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"]
    command += [] if solutions else ["-t", "without_solutions"]
    # What Sphinx keeps for the next time is no part of the site.
    command += ["-d", str(to.with_name(f"{to.name}.doctrees"))]
    command += ["-c", str(Path(__file__).parent), str(source), str(to)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return to / "index.html"
