"""Each notebook runs with a file for the learner's pieces that is new, and leaves none behind."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

FILES = TemporaryDirectory()


@pytest.hookimpl(tryfirst=True)  # before the notebook's kernel starts
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Name the file, where the test is a cell of a notebook."""
    os.environ.pop("MY_VIT", None)
    if item.path.suffix == ".ipynb":
        folder = Path(FILES.name, item.path.parent.name, item.path.stem)
        folder.mkdir(parents=True, exist_ok=True)
        os.environ["MY_VIT"] = str(folder / "my_vit.py")
