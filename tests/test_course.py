"""The course's own commands, and its two README commands."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import hygiene
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from vit_course import fork, lessons, run

FORK = "https://github.com/a-teacher/vit-2027"


def copy_course(folder: Path) -> Path:
    """The files that git would clone, in a new folder."""
    git = ["git", "-C", str(lessons.ROOT), "ls-files", "-z", "--cached", "--others"]
    names = subprocess.run([*git, "--exclude-standard"], check=True, capture_output=True, text=True)
    for name in names.stdout.split("\0"):
        if (lessons.ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(lessons.ROOT / name, folder / name)
    return folder


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A copy of the course, on which this process's `course` works."""
    copy_course(tmp_path)
    books = [tmp_path / path.relative_to(lessons.ROOT) for path in lessons.NOTEBOOKS]
    monkeypatch.setattr(fork, "NOTEBOOKS", books)
    monkeypatch.setattr(fork, "ROOT", tmp_path)
    return tmp_path


def texts(folder: Path) -> dict[Path, str]:
    """All that a command could have changed or left behind."""
    paths = [*folder.iterdir(), *folder.rglob("notebooks/**/*")]
    return {path: path.read_text(encoding="utf-8") for path in paths if path.is_file()} | {
        path: "a folder" for path in paths if path.is_dir()
    }


def test_one_command_points_everything_at_a_fork_and_back(copy):
    before, old = texts(copy), lessons.address()
    old_name, new_name = (name.removeprefix("https://github.com/") for name in (old, FORK))
    fork.change_address(old)  # takes a tag away, should this be a fork with one
    untagged = texts(copy)
    command = [sys.executable, copy / "course.py", "address"]
    subprocess.run([*command, FORK], check=True)
    for path, text in texts(copy).items():
        assert old_name not in text or path.suffix not in (".ipynb", ".toml")
        assert text == untagged[path].replace(old_name, new_name)
    for path in lessons.NOTEBOOKS:
        assert f"git+{FORK}\\" in path.read_text(encoding="utf-8")
    fork.change_address(f"{FORK}.git/")  # the same
    assert texts(copy) == {p: t.replace(old_name, new_name) for p, t in untagged.items()}
    fork.change_address(old)
    assert texts(copy) == untagged
    assert set(before) == set(untagged)  # no other file was left


def test_a_tag_pins_what_is_opened_and_what_is_installed_until_it_is_taken_away(copy):
    fork.change_address(FORK)
    newest = texts(copy)
    for tag in ("v1", "v1", "class-2027.2"):
        fork.change_address(FORK, tag)
        for path in lessons.NOTEBOOKS:
            text = path.read_text(encoding="utf-8")
            assert f"git+{FORK}@{tag}\\" in text
            assert "/blob/main/" not in text
            assert (f"/blob/{tag}/notebooks/{path.name}" in text) == (
                path.parent.name != "solutions"
            )
    fork.change_address(FORK)
    assert texts(copy) == newest


@pytest.mark.parametrize("number", [0, 5, -1])
def test_an_error_in_the_middle_leaves_all_as_it_was(copy, monkeypatch, number):
    before, replace, replaced = texts(copy), os.replace, []

    def fails(source, target):
        if len(replaced) == number % (len(lessons.NOTEBOOKS) + 2):
            raise PermissionError(f"{target} is open elsewhere")
        replaced.append(target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(PermissionError):
        fork.change_address(FORK, "v1")
    assert len(replaced) == number % (len(lessons.NOTEBOOKS) + 2)
    assert texts(copy) == before


def test_a_notebook_with_another_address_is_named_and_nothing_changes(copy):
    path = lessons.NOTEBOOKS[7]
    other = path.read_text(encoding="utf-8").replace(lessons.address(), "https://github.com/x/y")
    path.write_text(other, encoding="utf-8", newline="\n")
    before = texts(copy)
    command = [sys.executable, copy / "course.py", "address", FORK]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2
    words = result.stderr.splitlines()[-1]
    assert f"error: {path.name} installs neither from " in words
    assert words.endswith("; nothing was changed")
    assert texts(copy) == before


def test_an_address_or_a_tag_that_colab_cannot_open_is_refused(copy):
    before = texts(copy)
    for bad in ("a-teacher/vit", "https://example.org/a/b", "https://github.com/a"):
        with pytest.raises(ValueError, match="is not https://github"):
            fork.change_address(bad)
    for bad in ("", "-v1", "v1/x", "v 1", "v1..v2", "v1@{0}", 'v1"'):
        with pytest.raises(ValueError, match="is no plain name of a tag"):
            fork.change_address(FORK, bad)
    assert texts(copy) == before


def test_running_a_notebook_leaves_it_clean(tmp_path):
    path = tmp_path / "book.ipynb"
    cell = new_code_cell("print(6 * 7)", metadata={"slideshow": {"slide_type": "-"}})
    nbformat.write(new_notebook(cells=[cell]), path)
    run.run([path])
    assert nbformat.read(path, as_version=4).cells[0].outputs[0].text == "42\n"
    assert hygiene.problems(path) == []


def test_what_is_live_is_not_stored_but_its_still_picture_is(tmp_path):
    path, show = tmp_path / "book.ipynb", "from IPython.display import HTML\nHTML('{}')"
    frame = '<iframe srcdoc="&lt;p&gt;" title="live"></iframe>'
    sources = [show.format(frame), show.format(f'<div><img alt="still">{frame}</div>'), "6 * 7"]
    nbformat.write(new_notebook(cells=[new_code_cell(source) for source in sources]), path)
    run.run([path])
    live, both, plain = [c.outputs[-1].data for c in nbformat.read(path, as_version=4).cells]
    assert set(live) == {"text/plain"}
    assert both["text/html"] == '<div><img alt="still"></div>'
    assert plain == {"text/plain": "42"}


def test_what_it_writes_has_gits_line_ends_on_windows_too():
    """Only there would it show; so the source is looked at: one function writes, and says how."""
    tree = ast.parse((lessons.ROOT / "course.py").read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = [node.func.attr for node in calls if isinstance(node.func, ast.Attribute)]
    assert "write" not in names  # nbformat.write and file.write would translate
    writes = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "write_text"]
    assert len(writes) == 1
    assert {k.arg: k.value.value for k in writes[0].keywords}["newline"] == "\n"


def test_ci_runs_the_readmes_test_command():
    readme = (lessons.ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    script = (lessons.ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "grep -m 1 'pytest$' README.md" in script
    first = next(line for line in readme if line.endswith("pytest"))
    assert first.startswith("python3 -m venv .venv && ")
