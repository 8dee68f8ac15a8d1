"""The script that runs lessons as other processors would: its switches act, it finds cells."""

import os
import subprocess
import sys

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output, writes

from tests import machines

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("name", "capability"), [("AVX2", "AVX2"), ("SSE", "DEFAULT")])
def test_the_switches_act(name, capability):
    ask = "import torch; print(torch.backends.cpu.get_cpu_capability())"
    environment = os.environ | machines.SETTINGS[name]
    said = subprocess.run(
        [sys.executable, "-c", ask], env=environment, capture_output=True, text=True
    )
    if said.stdout.strip() in ("NO AVX", "ZVECTOR", "VSX") or sys.platform == "darwin":
        pytest.skip("no such processor")
    assert said.stdout.strip() == capability


def test_a_cell_that_prints_otherwise_is_found(tmp_path):
    code = "import os\nprint(os.environ.get('OMP_NUM_THREADS'))"
    cell = new_code_cell(code, execution_count=1)
    cell.outputs = [new_output("stream", text="1\n")]
    path = tmp_path / "book.ipynb"
    path.write_text(writes(new_notebook(cells=[cell])))
    assert machines.differing([path], machines.SETTINGS["AVX2"]) == []
    assert machines.differing([path], machines.SETTINGS["two threads"]) == ["book.ipynb::Cell 0"]
