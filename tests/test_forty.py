"""A class of forty, graded in one go: each gets what it deserves, and nothing is harmed."""

import shutil

import pytest
from helpers import needs


@pytest.mark.nightly
def test_each_of_forty_students_gets_what_it_deserves(tmp_path):
    needs("nbgrader", program="" if shutil.which("bwrap") else "bubblewrap")
    from tests import forty

    assert forty.graded(tmp_path, forty.lay(tmp_path)) == []
