"""What several files of tests of the live pages share."""

import browser
import pytest

from vit_course.explorer import __main__ as command


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
