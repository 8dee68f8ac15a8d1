"""The tests' own settings hold for a part of them too: one file, one lesson, `--pdb`."""

import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from vit_course import lessons


@pytest.mark.slow
def test_a_lesson_by_name_is_compared_and_the_debugger_opens(tmp_path):
    for name in ("pyproject.toml", "conftest.py"):
        shutil.copy(lessons.ROOT / name, tmp_path)
    for name, stored in {"same": "1\n", "other": "2\n"}.items():
        cell = new_code_cell("import os; print(os.environ['OMP_NUM_THREADS'])", execution_count=1)
        cell.outputs = [new_output("stream", name="stdout", text=stored)]
        nbformat.write(new_notebook(cells=[cell]), tmp_path / f"{name}.ipynb")
    bad = "def test_bad():\n    a = 41\n    assert a == 42\n"
    (tmp_path / "test_bad.py").write_text(bad, encoding="utf-8")
    options = ["-o", "filterwarnings=default", "--pdb"]  # old packages warn of new ones
    files = ["same.ipynb", "other.ipynb", "test_bad.py"]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if not k.startswith(("OMP", "PYTEST"))},
        input="c\np a + 1000\nq\n",
        capture_output=True,
        text=True,
    )
    assert "(Pdb) 1041" in result.stdout, result.stdout
    assert "2 failed, 1 passed" in result.stdout


def test_workers_share_the_whole_and_are_spared_one_file(pytestconfig):
    house = pytestconfig.pluginmanager.get_plugin(str(lessons.ROOT / "conftest.py"))

    def workers(*names):
        return house.pytest_xdist_auto_num_workers(SimpleNamespace(args=names))

    assert workers("tests", "notebooks") == workers(__file__, __file__) == 2
    assert workers(__file__) == workers(f"{__file__}::test_workers") == 0
