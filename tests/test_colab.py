"""The lessons in Colab, in a stand-in for it: every setup cell, and one lesson from there on.

The stand-in is Colab's environment as published (`colab.txt`) without our package, a package
`google.colab`, a clean home, and an empty folder with nothing but the notebook in it. No network:
git finds the repository's address in a local clone, and pip what Colab lacks in a folder.

It takes minutes and about 1 GB, and Python 3.11 or 3.12 on Linux (Colab's numpy has no build for
later ones). The environment is made once, in `build/colab`.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import hygiene
import nbformat
import pytest
import torch
from filelock import FileLock
from helpers import sh
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell
from test_course import FORK, copy_course

from vit_course import address, lessons
from vit_course.lessons import LESSONS

LESSON = LESSONS[10]  # published weights: it takes most of what the package has
PINS = Path(__file__).with_name("colab.txt")
BASE = lessons.ROOT / "build" / "colab"
LACKS = ["torchinfo==1.8.0", "setuptools>=77"]  # setuptools: pip builds our package with it
TAG = "v1"


def setup_of(path: Path) -> str:
    return hygiene.code_cells(nbformat.read(path, as_version=4))[0].source


# What needs no stand-in --------------------------------------------------------------------------


def test_what_the_link_opens_is_what_the_setup_cell_installs():
    """A tag in the one and not in the other would run new cells on an old package."""
    texts = "".join(path.read_text(encoding="utf-8") for path in LESSONS)
    (link,) = set(re.findall(r"/blob/([^/]+)/", texts))
    setups = "".join(map(setup_of, LESSONS))
    (pin,) = set(re.findall(r"git\+[^@\"]+@?([^\"]*)\"", setups))
    assert link == (pin or "main")


def as_on_colab(packages: Path) -> None:
    """Put a package google.colab beside the others."""
    (packages / "google" / "colab").mkdir(parents=True)
    (packages / "google" / "colab" / "__init__.py").touch()


@pytest.mark.skipif(os.name == "nt", reason="Colab is Linux")
@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("https://github.com/OWNER/vit", "No address: run `python -m vit_course address URL`, and"),
        (FORK, f"vit_steps[course] @ git+{FORK} did not come: is there a network?"),
    ],
)
def test_without_an_address_or_a_network_the_setup_cell_says_what_to_do(url, message, tmp_path):
    as_on_colab(tmp_path)
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "GIT_ALLOW_PROTOCOL": "file"}
    command = [sys.executable, "-c", setup_of(LESSON).replace(address.current(), url)]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert result.returncode != 0
    assert result.stderr.splitlines()[-1].startswith(f"RuntimeError: {message}")


# The stand-in ------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def base():
    """Make Colab's environment, without our package, once."""
    if sys.platform != "linux" or sys.version_info >= (3, 13):
        pytest.skip("Colab's packages are for Linux and Python 3.12")
    source = BASE / "made_from.txt"
    pins = PINS.read_text(encoding="utf-8") + sys.version
    BASE.parent.mkdir(exist_ok=True)
    with FileLock(BASE.with_suffix(".lock")):
        if not source.exists() or source.read_text(encoding="utf-8") != pins:
            make_base()
            source.write_text(pins, encoding="utf-8")
    return BASE


def make_base() -> None:
    shutil.rmtree(BASE, ignore_errors=True)
    sh(sys.executable, "-m", "venv", BASE)
    python, pins = BASE / "bin" / "python", PINS
    if os.environ.get("UV_TORCH_BACKEND"):  # as for .ci/run: uv brings that build of torch
        sh("uv", "pip", "install", "-q", "--no-deps", "--python", python, "-r", pins)
    else:  # Colab's own would bring several GB of CUDA: the version that the course has here
        pins = BASE / "pins.txt"
        ours = torch.__version__.split("+")[0]
        text = re.sub(r"(?m)^torch==.*", f"torch=={ours}", PINS.read_text(encoding="utf-8"))
        # A newer torch wants a newer setuptools, which pip would add to each session.
        pins.write_text(re.sub(r"(?m)^setuptools==", "setuptools>=", text), encoding="utf-8")
        sh(python, "-m", "pip", "install", "-q", "--no-deps", "-r", pins)
    sh(python, "-m", "pip", "download", "-q", "--no-deps", "-d", BASE / "wheels", *LACKS)


@pytest.fixture(scope="session")
def clone(base, tmp_path_factory):
    """Make a teacher's fork, pointed at itself by the course's own command, and tagged."""
    folder = copy_course(tmp_path_factory.mktemp("clone"))
    sh(sys.executable, "-m", "vit_course", "address", FORK, "--tag", TAG, cwd=folder)
    git = ["git", "-C", folder, "-c", "user.name=t", "-c", "user.email=t@example.org"]
    sh("git", "init", "-q", folder)
    sh(*git, "add", "-A")
    sh(*git, "commit", "-qm", "all")
    sh(*git, "tag", TAG)
    sh(*git, "gc", "-q")  # once here, rather than in each session's clone of it
    return folder


@pytest.fixture
def colab(base, clone, tmp_path, monkeypatch):
    """Make one session of Colab: a fresh environment over the base, home and folder."""
    python = tmp_path / "env" / "bin" / "python"
    sh(base / "bin" / "python", "-m", "venv", "--without-pip", tmp_path / "env")
    site = next((tmp_path / "env").glob("lib/python*/site-packages"))
    (site / "base.pth").write_text(str(next(base.glob("lib/python*/site-packages"))))
    as_on_colab(site)
    kernel = tmp_path / "share" / "kernels" / "colab"
    kernel.mkdir(parents=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(
        json.dumps({"argv": argv, "display_name": "Colab", "language": "python"})
    )
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share"))
    home, folder = tmp_path / "home", tmp_path / "content"
    home.mkdir()
    folder.mkdir()
    (home / ".gitconfig").write_text(f'[url "{clone.as_uri()}"]\n\tinsteadOf = {FORK}\n')
    programs = [python.parent, Path(shutil.which("git")).parent, "/usr/bin", "/bin"]
    nowhere = "http://127.0.0.1:9"
    environment = {
        "PATH": os.pathsep.join(map(str, programs)),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "GIT_ALLOW_PROTOCOL": "file",
        "GIT_CONFIG_NOSYSTEM": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(base / "wheels"),
        "http_proxy": nowhere,
        "https_proxy": nowhere,
    }
    return SimpleNamespace(
        python=python, site=site, folder=folder, environment=environment, clone=clone
    )


WHERE = "import numpy\nprint(vit_steps.__file__, torch.__file__, numpy.__file__, sep='\\n')"


@pytest.mark.nightly  # it makes an environment of its own
def test_every_setup_cell_draws_its_map_and_a_lesson_runs_from_there_on(colab, base):
    """As by "Run all", but past errors."""
    look = "import importlib.util as u; print(u.find_spec('vit_steps'))"
    assert sh(colab.python, "-c", look, cwd=colab.folder, env=colab.environment) == "None\n"
    book = nbformat.read(colab.clone / "notebooks" / LESSON.name, as_version=4)
    setups = [setup_of(colab.clone / "notebooks" / path.name) for path in LESSONS]
    assert all(f'"vit_steps[course] @ git+{FORK}@{TAG}"' in setup for setup in setups)
    book.cells = [*map(new_code_cell, setups), *book.cells, new_code_cell(WHERE)]
    nbformat.write(book, colab.folder / "lesson.ipynb")
    NotebookClient(
        book,
        kernel_name="colab",
        allow_errors=True,
        timeout=300,
        resources={"metadata": {"path": str(colab.folder)}},
    ).execute(env=colab.environment)
    for number, cell in enumerate(hygiene.code_cells(book)):
        errors = [f"{o.ename}: {o.evalue}" for o in cell.outputs if o.output_type == "error"]
        assert not errors or "raises-exception" in cell.metadata.get("tags", []), (number, errors)
    assert all(hygiene.is_picture(cell.outputs[-1]) for cell in book.cells[: len(setups)])
    ours, *theirs = "".join(map(hygiene.printed, book.cells[-1].outputs)).splitlines()
    assert Path(ours).is_relative_to(colab.site)
    assert all(Path(file).is_relative_to(base) for file in theirs)
    installed = {path.name.split("-")[0] for path in colab.site.glob("*.dist-info")}
    assert installed == {"vit_steps", "torchinfo"}  # torch, numpy and all else stay as they are
    version = sh(colab.python, "-c", "import numpy; print(numpy.__version__)").strip()
    assert f"numpy=={version}" in PINS.read_text(encoding="utf-8").splitlines()
