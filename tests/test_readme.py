"""The README is true and short: its table, its minutes, the checks' messages, its links."""

import re

import nbformat
import pytest
from torch.nn import functional as F

from vit_course import checks
from vit_course.lessons import LESSONS, ROOT
from vit_course.minutes import filled, shortest, stated

README = (ROOT / "README.md").read_text(encoding="utf-8")
BOOKS = {path.stem: nbformat.read(path, as_version=4) for path in LESSONS}
TITLES = {stem: book.cells[0].source for stem, book in BOOKS.items()}


def test_the_table_and_the_minutes_are_the_lessons_own():
    rows = re.findall(r"(?m)^\| \[(.+?)\]\(notebooks/(\w+)\.ipynb\) \|", README)
    assert rows == [(t.splitlines()[0].removeprefix("# "), stem) for stem, t in TITLES.items()]
    minutes = {stem: stated(title) for stem, title in TITLES.items()}
    assert filled(README, minutes, shortest(BOOKS)) == README


def test_it_is_short():
    assert len(README.split()) <= 900


def unscaled_and_hidden_from_all_that_may_look(q, k, v, mask=None):
    scores = q @ k.mT
    if mask is not None:
        scores = scores.masked_fill(mask, float("-inf"))
    weights = F.softmax(scores, dim=-1)
    return weights @ v, weights


def without_zero_grad(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss.detach()


def test_the_checks_say_what_it_quotes(capsys):
    checks.scaled_dot_product_attention(unscaled_and_hidden_from_all_that_may_look)
    checks.train_step(without_zero_grad)
    assert re.findall(r"(?m)^> (.+)$", README) == capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("start", ["python3 ", "py "])
def test_ci_finds_its_test_command(start):
    commands = [line for line in README.splitlines() if line.endswith("pytest")]
    assert sum(line.startswith(start) for line in commands) == 1
    assert commands[0].startswith("python3 ")  # .ci/run takes the first


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_link_and_named_file_is_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\((\S+?)\)", text) if "://" not in link]
    files = re.findall(r"\b(?:tests|benchmarks|notebooks|images|vit_\w+)/[\w./*]*\w", text)
    assert len(links) + len(files) > 4
    for name in {*links, *files}:
        assert list(ROOT.glob(name.replace("_NN", "_*"))), name
