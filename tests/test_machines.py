"""The lessons print the same on other processors, and with two threads.

Each lesson runs strictly as a processor would that has fewer instructions than this one, a few
minutes for all. One: `pytest -m nightly tests/test_machines.py -k "SSE and 07"`.
"""

import os
import subprocess
import sys

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output, writes

from vit_course.lessons import LESSONS, ROOT

# The switches of torch's own kernels, MKL's matrix products and oneDNN's convolutions.
SWITCHES = ("ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")
SETTINGS = {
    "AVX2": dict(zip(SWITCHES, ("avx2", "AVX2", "AVX2"), strict=True)),
    "SSE": dict(zip(SWITCHES, ("default", "SSE4_2", "SSE41"), strict=True)),
    "two threads": {"OMP_NUM_THREADS": "2"},
}


def run(command, name):
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | SETTINGS[name]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def run_strictly(notebook, name):
    settings = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", notebook.parent]
    command = [sys.executable, "-m", "pytest", *settings, "-q", "--tb=short", notebook]
    return run(command, name)


@pytest.mark.nightly
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
@pytest.mark.parametrize("name", SETTINGS)
def test_a_lesson_prints_the_same(name, path):
    result = run_strictly(path, name)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "capability"), [("AVX2", "AVX2"), ("SSE", "DEFAULT")])
def test_the_switches_act(name, capability):
    code = "import torch; print(torch.backends.cpu.get_cpu_capability())"
    actual = run([sys.executable, "-c", code], name).stdout.strip()
    if actual in ("NO AVX", "ZVECTOR", "VSX") or sys.platform == "darwin":
        pytest.skip("no such processor")
    assert actual == capability


@pytest.mark.slow
def test_a_cell_that_prints_otherwise_is_found(tmp_path):
    code = "import os\nprint(os.environ.get('OMP_NUM_THREADS'))"
    cell = new_code_cell(code, execution_count=1)
    cell.outputs = [new_output("stream", text="1\n")]
    path = tmp_path / "book.ipynb"
    path.write_text(writes(new_notebook(cells=[cell])))
    assert run_strictly(path, "AVX2").returncode == 0
    assert run_strictly(path, "two threads").returncode == 1
