"""The course's commands: what they read, whom they call, links and setup cells, running."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import hygiene
import nbformat
import pytest
from helpers import sh
from nbformat.v4 import new_code_cell, new_notebook

import vit_course
from vit_course import __main__ as command
from vit_course import address, lessons, minutes, run

FORK = "https://github.com/a-teacher/vit-2027"
COMMANDS = ["start", "run", "clean", "address", "release", "grade", "slides", "book"]


def copy_course(folder: Path) -> Path:
    """The files that git would clone, in a new folder."""
    git = ["git", "-C", str(lessons.ROOT), "ls-files", "-z", "--cached", "--others"]
    for name in sh(*git, "--exclude-standard").split("\0"):
        if (lessons.ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(lessons.ROOT / name, folder / name)
    return folder


# Commands ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_helps_and_refuses_what_it_does_not_know(name, capsys):
    with pytest.raises(SystemExit, match="0"):
        command.main([name, "--help"])
    assert f"python -m vit_course {name}" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        command.main([name, *["x"] * (name in ("address", "grade")), "--unknown"])
    assert capsys.readouterr().err.startswith(f"{name} has no option --unknown: ")


@pytest.fixture
def opened(monkeypatch):
    """The options with which `start` opens JupyterLab."""
    calls = []
    monkeypatch.setattr(command.lab, "open_lab", lambda folder, options: calls.append(options) or 0)
    return calls


@pytest.mark.parametrize(
    ("options", "unknown"),
    [
        ("--no-lab --without-solution", "--without-solution"),
        ("--no-lab --no-browser", "--no-browser"),
        ("--no-lab lessons", "lessons"),
        ("--without-solution", "--without-solution"),
        ("--no-browser --port=8889 --fold=x", "--fold=x"),
    ],
)
def test_start_refuses_what_nothing_takes_and_lays_nothing(
    options, unknown, opened, tmp_path, capsys
):
    copy = tmp_path / "copy"
    with pytest.raises(SystemExit, match="2"):
        command.main(["start", "--folder", str(copy), *options.split()])
    error = capsys.readouterr().err
    assert re.fullmatch(rf"start( --no-lab)? has no option {unknown}: .*\n", error)
    assert (copy.exists(), opened) == (False, [])


def test_start_hands_jupyterlabs_own_options_on(opened, tmp_path):
    options = ["--no-browser", "--port", "8889", "-y", "--ServerApp.token=x"]
    with pytest.raises(SystemExit, match="0"):
        command.main(["start", "--folder", str(tmp_path), *options])
    assert opened == [options]


def test_the_help_names_all_commands(capsys):
    with pytest.raises(SystemExit):
        command.main(["--help"])
    assert re.findall(r"(?m)^    (\w+) ", capsys.readouterr().out) == COMMANDS


def test_without_notebooks_as_in_an_installed_package_a_command_says_so(tmp_path):
    shutil.copytree(Path(vit_course.__file__).parent, tmp_path / "vit_course")
    done = subprocess.run(
        [sys.executable, "-m", "vit_course", "start"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr == "an installed package has no notebooks: run this in a clone of it\n"


def test_reading_the_command_line_needs_nothing_but_python():
    """The hook that cleans at each commit has nbstripout and no torch."""
    code = "import vit_course.__main__, sys; print(*{m.split('.')[0] for m in sys.modules})"
    modules = {*sh(sys.executable, "-c", code).split()}
    assert not {"torch", "nbformat", "nbconvert", "PIL", "vit_steps"} & modules


# Addresses ---------------------------------------------------------------------------------------


def files_with_the_address() -> list[str]:
    """Name all files of the repository in which its address stands, not only those known to it."""
    name = address.current().removeprefix("https://github.com/")
    git = ["git", "-C", str(lessons.ROOT), "grep", "-l", "--untracked", "--fixed-strings", name]
    return sh(*git).splitlines()


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """The files that hold the address, in a copy on which this process's `address` works."""
    books = [tmp_path / path.relative_to(lessons.ROOT) for path in lessons.NOTEBOOKS]
    for path in files_with_the_address():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(lessons.ROOT / path, tmp_path / path)
    monkeypatch.setattr(address, "NOTEBOOKS", books)
    monkeypatch.setattr(address, "ROOT", tmp_path)
    return tmp_path


def texts(folder: Path) -> dict[Path, str]:
    return {p: p.read_text(encoding="utf-8") for p in folder.rglob("*.*") if p.is_file()}


def test_one_command_points_everything_at_a_fork_and_back(copy, capsys):
    old = address.current()
    old_name, new_name = (name.removeprefix("https://github.com/") for name in (old, FORK))
    address.change(old)  # takes a tag away, should this be a fork with one
    untagged = texts(copy)
    command.main(["address", FORK])
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "Commit and push what changed"
    assert said[1].endswith(f"as the source in {FORK}/settings/pages")
    old_site, new_site = address.site(old), address.site(FORK)
    assert new_site == "https://a-teacher.github.io/vit-2027/"
    forked = {
        p: t.replace(old_name, new_name).replace(old_site, new_site) for p, t in untagged.items()
    }
    assert texts(copy) == forked
    readme = (copy / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((\S+)\)", readme)[0] == new_site
    for path in address.NOTEBOOKS:
        assert f"git+{FORK}\\" in path.read_text(encoding="utf-8")
    address.change(f"{FORK}.git/")  # the same
    assert texts(copy) == forked
    address.change(old)
    assert texts(copy) == untagged


def test_a_tag_pins_what_is_opened_and_what_is_installed_until_it_is_taken_away(copy):
    address.change(FORK)
    newest = texts(copy)
    for tag in ("v1", "v1", "class-2027.2"):
        address.change(FORK, tag)
        for path in address.NOTEBOOKS:
            text = path.read_text(encoding="utf-8")
            assert f"git+{FORK}@{tag}\\" in text
            assert "/blob/main/" not in text
            assert (f"/blob/{tag}/notebooks/{path.name}" in text) == (
                path.parent.name != "solutions"
            )
    address.change(FORK)
    assert texts(copy) == newest


def test_a_notebook_with_another_address_is_named_and_nothing_changes(copy, capsys):
    path = address.NOTEBOOKS[7]
    other = path.read_text(encoding="utf-8").replace(address.current(), "https://github.com/x/y")
    path.write_text(other, encoding="utf-8", newline="\n")
    before = texts(copy)
    with pytest.raises(SystemExit, match="2"):
        command.main(["address", FORK])
    assert capsys.readouterr().err.startswith(f"{path.name} installs neither from ")
    assert texts(copy) == before


def test_an_address_or_a_tag_that_colab_cannot_open_is_refused(copy):
    before = texts(copy)
    for bad in ("a-teacher/vit", "https://example.org/a/b", "https://github.com/a"):
        with pytest.raises(ValueError, match="is not https://github"):
            address.change(bad)
    for bad in ("", "-v1", "v1/x", "v 1", "v1..v2", "v1@{0}", 'v1"'):
        with pytest.raises(ValueError, match="is no plain name of a tag"):
            address.change(FORK, bad)
    assert texts(copy) == before


# Running -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_running_leaves_notebooks_clean_and_stores_nothing_live(tmp_path, monkeypatch):
    monkeypatch.setattr(minutes, "fill_in", lambda: None)  # in the course's own pages
    clean, live = tmp_path / "clean.ipynb", tmp_path / "live.ipynb"
    cell = new_code_cell("print(6 * 7)", metadata={"slideshow": {"slide_type": "-"}})
    nbformat.write(new_notebook(cells=[cell]), clean)
    show = "from IPython.display import HTML\nHTML('{}')"
    frame = '<iframe srcdoc="&lt;p&gt;" title="live"></iframe>'
    sources = [show.format(frame), show.format(f'<div><img alt="still">{frame}</div>')]
    nbformat.write(new_notebook(cells=[new_code_cell(source) for source in sources]), live)
    run.run([clean, live])
    assert nbformat.read(clean, as_version=4).cells[0].outputs[0].text == "42\n"
    assert hygiene.problems(clean) == []
    alone, both = [c.outputs[-1].data for c in nbformat.read(live, as_version=4).cells]
    assert set(alone) == {"text/plain"}
    assert both["text/html"] == '<div><img alt="still"></div>'


def test_what_it_writes_has_gits_line_ends_on_windows_too():
    """Only there would it show; so the source is looked at: one function writes, and says how."""
    folder = Path(vit_course.__file__).parent
    calls = [
        node
        for path in [*folder.glob("*.py"), folder / "teaching" / "slides.py"]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    assert not [c for c in calls if c.func.attr == "write"]  # nbformat's and a file's translate
    (write,) = [c for c in calls if c.func.attr == "write_text"]
    assert {k.arg: k.value.value for k in write.keywords}["newline"] == "\n"
