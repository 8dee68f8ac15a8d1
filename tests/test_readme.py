"""The README is true and short: its table, its minutes, the checks' messages, its commands."""

import re
from pathlib import Path

import nbformat
import pytest
from torch.nn import functional as F

from vit_course import checks
from vit_course.lessons import LESSONS, ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
LINES = README.splitlines()


def stated(path: Path) -> tuple[str, int, int]:
    """A lesson's name, and its minutes for reading and for building, as its title states them."""
    text = nbformat.read(path, as_version=4).cells[0].source
    reading, building = re.search(r"(\d+) minutes, and (\d+) for building", text).groups()
    return text.splitlines()[0].removeprefix("# "), int(reading), int(building)


def problems(readme: str) -> list[str]:
    """What the README says of the lessons that their titles do not bear out."""
    titles = [stated(path) for path in LESSONS]
    rows = re.findall(r"(?m)^\| \[(.+?)\]\((.+?)\) \| .+ \| (\d+) \+ (\d+) \|$", readme)
    wanted = [
        (name, f"notebooks/{path.name}", str(reading), str(building))
        for path, (name, reading, building) in zip(LESSONS, titles, strict=True)
    ]
    found = [f"{a}, in the lesson {b}" for a, b in zip(rows, wanted, strict=False) if a != b]
    found += ["lessons are missing"] * (len(rows) < len(wanted))
    whole, core = (sum(a + b for _, a, b in titles[:end]) for end in (len(titles), 8))
    for words in (
        f"take {whole} minutes, {whole / 60:.0f} hours",
        f"stop after lesson 07**, after {core / 60:.0f} hours",
    ):
        found += [f"not {words!r}"] * (words not in readme)
    return found


def test_the_table_and_the_minutes_are_the_lessons_own():
    assert problems(README) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (r"01 · Patches", "01 · Pieces"),
        (r"(Patches\]\(.*?) \d+ \+", r"\1 5 +"),
        (r"(?m)^\| \[13 .*\n", ""),
        (r"take \d+", "take 5"),
        (r"after \d+ hours", "after 5 hours"),
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
