"""The README is true and short: its table, its minutes, the checks' messages, its commands."""

import re
from pathlib import Path

import nbformat
import pytest
from torch.nn import functional as F

from vit_course import checks
from vit_course.lessons import LESSONS, ROOT
from vit_course.minutes import filled, stated

README = (ROOT / "README.md").read_text(encoding="utf-8")
LINES = README.splitlines()


def title(path: Path) -> str:
    return nbformat.read(path, as_version=4).cells[0].source


MINUTES = {path.stem: stated(title(path)) for path in LESSONS}


def problems(readme: str) -> list[str]:
    """What the README says of the lessons that their titles do not bear out."""
    rows = re.findall(r"(?m)^\| \[(.+?)\]\(notebooks/(\w+)\.ipynb\) \|", readme)
    wanted = [(title(p).splitlines()[0].removeprefix("# "), p.stem) for p in LESSONS]
    found = [f"the table has {rows}, the course {wanted}"] * (rows != wanted)
    found += ["minutes are not the lessons' own"] * (filled(readme, MINUTES) != readme)
    return found + [f"no hours {words}" for words in HOURS if not re.search(words, readme)]


HOURS = (r"lessons 00 to 07 take \d+ hours", r"whole course takes \d+ hours")


def test_the_table_and_the_minutes_are_the_lessons_own():
    assert problems(README) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (r"01 · Patches", "01 · Pieces"),
        (r"(Patches\]\(.*?) \d+ \+", r"\1 5 +"),
        (r"(?m)^\| \[13 .*\n", ""),
        (r"07 take \d+", "07 take 5"),
        (r"takes \d+ hours", "is long"),
    ],
)
def test_an_untrue_table_is_found(right, wrong):
    assert problems(re.sub(right, wrong, README)) != []


def test_it_is_short():
    assert len(README.split()) <= 900


def by_reshape(images, patch_size):
    B, C, H, W = images.shape
    return images.reshape(B, H * W // patch_size**2, patch_size**2 * C)


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
    checks.patchify(by_reshape)
    checks.scaled_dot_product_attention(unscaled_and_hidden_from_all_that_may_look)
    checks.train_step(without_zero_grad)
    assert re.findall(r"(?m)^> (.+)$", README) == capsys.readouterr().out.splitlines()


def test_its_two_commands_end_in_start_and_in_the_tests_on_windows_too():
    begin = (
        "python3 -m venv .venv && .venv/bin/pip install ",
        "py -m venv .venv && .venv\\Scripts",
    )
    commands = [line for line in LINES if line.startswith(begin)]
    assert [line.split(" && ")[-1] for line in commands] == [
        ".venv/bin/python -m vit_course start",
        ".venv/bin/pytest",
        r".venv\Scripts\python -m vit_course start",
        r".venv\Scripts\pytest",
    ]


def test_ci_runs_its_test_command():
    assert "grep -m 1 'pytest$' README.md" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert next(line for line in LINES if line.endswith("pytest")).startswith("python3 -m venv")


def test_the_workflow_runs_its_windows_command_and_names_no_package_host():
    (line,) = [line for line in LINES if line.startswith("py ") and line.endswith("pytest")]
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    assert f"- run: {line}\n        shell: cmd\n" in workflow
    assert "://" not in workflow


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_link_and_named_file_is_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\((\S+?)\)", text) if "://" not in link]
    named = re.findall(r"\b(?:tests|notebooks|images|vit_\w+)/[\w./*]*\w", text)
    assert len(links) + len(named) > 4
    for name in {*links, *named}:
        assert list(ROOT.glob(name.replace("_NN", "_*"))), name
