"""The course's own commands, its two README commands, and its setup cell on Colab."""

import ast
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import hygiene
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

import course

LESSON = course.ROOT / "notebooks" / "01_patches.ipynb"
FORK = "https://github.com/a-teacher/vit-2027"


def copy_course(folder: Path) -> Path:
    """The files that git would clone, in a new folder."""
    git = ["git", "-C", str(course.ROOT), "ls-files", "-z", "--cached", "--others"]
    names = subprocess.run([*git, "--exclude-standard"], check=True, capture_output=True, text=True)
    for name in names.stdout.split("\0"):
        if (course.ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(course.ROOT / name, folder / name)
    return folder


def test_one_command_points_everything_at_a_fork(tmp_path):
    copy = copy_course(tmp_path)
    old = course.address().removeprefix("https://github.com/")
    command = [sys.executable, copy / "course.py", "address", FORK]
    subprocess.run(command, check=True)
    books = [p.relative_to(course.ROOT) for p in course.NOTEBOOKS]
    for name in (Path("pyproject.toml"), *books):
        before = (course.ROOT / name).read_text(encoding="utf-8")
        after = (copy / name).read_text(encoding="utf-8")
        assert old not in after
        assert after == before.replace(old, "a-teacher/vit-2027")
        assert "a-teacher/vit-2027" in after
    subprocess.run([*command[:-1], course.address()], check=True)
    for name in books:
        assert (copy / name).read_bytes() == (course.ROOT / name).read_bytes()


@pytest.mark.parametrize(
    "bad", ["a-teacher/vit", "https://example.org/a/b", "https://github.com/a"]
)
def test_an_address_that_colab_cannot_open_is_refused(bad):
    with pytest.raises(ValueError, match="is not https://github"):
        course.change_address(bad)


def test_running_a_notebook_leaves_it_clean(tmp_path):
    path = tmp_path / "book.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell("print(6 * 7)")]), path)
    course.run([path])
    assert nbformat.read(path, as_version=4).cells[0].outputs[0].text == "42\n"
    assert hygiene.problems(path) == []


def test_what_it_writes_has_gits_line_ends_on_windows_too():
    """Only there would it show; so the source is looked at: one function writes, and says how."""
    tree = ast.parse((course.ROOT / "course.py").read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = [node.func.attr for node in calls if isinstance(node.func, ast.Attribute)]
    assert "write" not in names  # nbformat.write and file.write would translate
    writes = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "write_text"]
    assert len(writes) == 1
    assert {k.arg: k.value.value for k in writes[0].keywords}["newline"] == "\n"


def test_ci_runs_the_readmes_test_command():
    readme = (course.ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    script = (course.ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "grep -m 1 'pytest$' README.md" in script
    first = next(line for line in readme if line.endswith("pytest"))
    assert first.startswith("python3 -m venv .venv && ")


# Colab: an environment that has torch and the rest, but not vit_steps; a package google.colab; only
# the notebook's own first cell; the repository's address led to a local clone by git.


@pytest.fixture
def colab(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    site = next((tmp_path / "env").glob("lib/python*/site-packages"))
    # A path file adds the folder, but not what the folder's own path files add: vit_steps.
    (site / "base.pth").write_text(sysconfig.get_paths()["purelib"])
    (site / "google" / "colab").mkdir(parents=True)
    (site / "google" / "colab" / "__init__.py").touch()
    home, folder = tmp_path / "home", tmp_path / "content"
    home.mkdir()
    folder.mkdir()
    return tmp_path / "env" / "bin" / "python", home, folder


def run_setup(colab, clone: Path, then: str) -> subprocess.CompletedProcess:
    python, home, folder = colab
    setup = hygiene.code_cells(nbformat.read(LESSON, as_version=4))[0].source
    (home / ".gitconfig").write_text(
        f'[url "{clone.as_uri()}"]\n\tinsteadOf = {course.address()}\n'
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "PYTHON"))}
    environment |= {"HOME": str(home), "MPLBACKEND": "Agg", "GIT_ALLOW_PROTOCOL": "file"}
    script = f"import importlib.util as u\nassert not u.find_spec('vit_steps')\n{setup}\n{then}"
    command = [python, "-c", script]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.skipif(os.name == "nt", reason="Colab is Linux")
def test_setup_cell_installs_the_package_on_colab_and_nothing_else(colab, tmp_path):
    clone = copy_course(tmp_path / "clone")
    git = ["git", "-C", str(clone), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", "init", "-q", clone], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "all"], check=True)
    result = run_setup(colab, clone, "print(vit_steps.__file__)")
    assert result.returncode == 0, result.stderr
    site = next((tmp_path / "env").glob("lib/python*/site-packages"))
    assert str(site / "vit_steps" / "__init__.py") in result.stdout
    installed = {p.name.split("-")[0] for p in site.glob("*.dist-info")}
    assert installed == {"vit_steps"}  # torch and numpy stay as they are


@pytest.mark.skipif(os.name == "nt", reason="Colab is Linux")
def test_setup_cell_says_so_where_there_is_no_network(colab, tmp_path):
    result = run_setup(colab, tmp_path / "no such clone", "")
    assert result.returncode != 0
    assert "RuntimeError: vit_steps is missing: is there a network?" in result.stderr
