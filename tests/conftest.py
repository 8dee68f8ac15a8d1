"""How hypothesis draws, and what several files of tests of the live pages share."""

import browser
import pytest
from hypothesis import settings

from vit_course.explorer import __main__ as command

# The same examples in each run, kept nowhere; and a busy machine may take its time.
settings.register_profile("ours", deadline=None, max_examples=60, derandomize=True, database=None)
settings.load_profile("ours")


@pytest.fixture(scope="module")
def chrome():
    with browser.launched() as chrome:
        yield chrome


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The page that the command writes without a word."""
    path = tmp_path_factory.mktemp("stored") / "explorer.html"
    command.main(["--out", str(path), "--no-browser"])
    return path
