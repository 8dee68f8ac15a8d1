"""What students hand in is run apart: honest work keeps its points, hostile work gains nothing.

`pip install -e ".[teach]"` brings nbgrader; bubblewrap comes from the system.
"""

import csv
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from copy import deepcopy
from multiprocessing import get_context
from pathlib import Path

import nbformat
import pytest
import torch
from helpers import needs
from test_assignments import unmarked

if sys.platform != "linux":
    pytest.skip("grading needs bubblewrap, which is for Linux", allow_module_level=True)

from tests.handed_in import (
    ATTACKS,
    DEEDS,
    GIVEN,
    HONEST,
    SAYS,
    hand_in,
    left_behind,
    pieces,
    right_answers,
    spoilt,
    told,
    without_metadata,
)
from vit_course import checks, lessons
from vit_course.checks.compare import compare
from vit_course.checks.engine import LEFT, outcome
from vit_course.checks.exercise import edited
from vit_course.teaching import assignments, grading, sandbox, submissions
from vit_course.teaching.assignments import grade_id, is_task
from vit_course.teaching.judge import hidden_trials, judge, judge_among
from vit_course.teaching.unseen import TASKS, UNSEEN

SETUP = """import torch
from einops import rearrange
from torch import nn
from torch.nn import functional as F
from vit_course import checks, plots
"""


@pytest.fixture(scope="module", autouse=True)
def bubblewrap():
    """Without it nothing here can be tried; in `.ci/run` that fails."""
    needs(program="" if shutil.which("bwrap") else "bubblewrap")
    sandbox.ready()


def judged(name: str, cell: str, *others: str, **limits) -> str:
    return judge(name, [SETUP, *others, cell], 1 + len(others), **limits)


# Hostile work ------------------------------------------------------------------------------------


class Prey:
    """What an attack may want: another's file, an entry of the environment, servers."""

    def __init__(self, folder: Path):
        self.folder, self.secret = folder, folder / "03_heads.ipynb"
        self.secret.write_text("another's work")
        self.server, self.hidden = (
            socket.create_server(("127.0.0.1", 0)),
            socket.socket(socket.AF_UNIX),
        )
        self.abstract = f"vit-{os.getpid()}-prey"
        self.hidden.bind(f"\0{self.abstract}")
        for listening in (self.server, self.hidden):
            listening.listen()
            listening.settimeout(0)

    def told(self, cell: str) -> str:
        """The attack's cell, with what it is after."""
        port = self.server.getsockname()[1]
        words = dict(secret=self.secret, folder=self.folder, port=port, abstract=self.abstract)
        return told(cell, **words, project=lessons.ROOT)

    def unharmed(self) -> bool:
        """Whether nobody called, nothing was changed, and nothing runs on."""
        for listening in (self.server, self.hidden):
            with pytest.raises(BlockingIOError):
                listening.accept()
        return self.secret.read_text() == "another's work" and not left_behind(self.abstract)


@pytest.fixture
def prey(tmp_path, monkeypatch):
    monkeypatch.setenv("A_SECRET", "loot")
    prey = Prey(tmp_path)
    monkeypatch.setattr(sandbox, "START", f"{sandbox.START}  # {prey.abstract}")
    yield prey
    prey.server.close()
    prey.hidden.close()


@pytest.mark.slow
@pytest.mark.parametrize("what", ATTACKS)
def test_nothing_is_gained_and_nothing_harmed(what, prey):
    start = time.monotonic()
    task = "trust_split" if what.startswith("trust_split:") else "split_heads"
    said = judged(task, prey.told(ATTACKS[what]), seconds=6, megabytes=1000)
    assert said != "right"
    assert not re.search("loot|another's", said)
    assert prey.unharmed()
    assert time.monotonic() - start < 60


@pytest.mark.slow
@pytest.mark.parametrize("what", [what for what in ATTACKS if what.startswith("*")])
def test_without_a_sandbox_it_would_be(what, prey, monkeypatch):
    """So the attack is one, and the test above can fail."""
    monkeypatch.setenv("PYTHONPATH", str(lessons.ROOT))
    from vit_course.teaching import judge as module

    monkeypatch.setattr(module, "laid", lambda folder, name: laid(folder))
    assert judged("split_heads", prey.told(ATTACKS[what]), seconds=60, unsafe=True) == "right"


@pytest.mark.slow
@pytest.mark.parametrize("how", SAYS)
def test_of_what_a_cell_says_the_kind_of_error_and_its_own_line_are_told(how):
    said = judged("split_heads", SAYS[how])
    assert said != "right"
    assert not re.search(
        "loot", said.replace('raise ValueError("<script>loot</script>")', ""), re.I
    )


# Honest work -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("how", HONEST)
def test_an_answer_is_right_as_in_the_notebook_it_was_written_in(how):
    cells = [SETUP, *HONEST[how]]
    own = next(n for n in range(len(cells) - 1, -1, -1) if "split_heads" in cells[n])
    assert judge("split_heads", cells, own) == "right"


BUILT = {"EncoderBlock": "MLP", "MultiHeadAttention": "scaled_dot_product_attention"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "below"),
    [*zip(["raise ValueError", "def (", "{0} = None", "mistaken"], [*BUILT] * 2, strict=True)],
)
def test_an_answer_is_right_though_the_one_that_it_is_built_on_is_not(first, below):
    above, task = TASKS[BUILT[below]], TASKS[below]
    first = edited(above.answer, above.edits[0][1]) if first == "mistaken" else first
    cells = [f"{SETUP}{GIVEN}", first.format(above.name), task.answer]
    cells[0] += "\n" + "\n".join(pieces(above.name, task.answer))
    tasks = {1: above.name, 2: below}
    assert judge(below, cells, 2) != "right"
    assert judge_among(below, cells, 2, tasks) == "right"
    assert judge_among(above.name, cells, 1, tasks) != "right"
    cells[2] = edited(task.answer, task.edits[0][1])
    assert judge_among(below, cells, 2, tasks) != "right"


def laid(folder: Path) -> set[str]:
    """The course as it is, where a sandbox would have what it may have."""
    for name in ("vit_steps", "vit_course", "vit_doctor"):
        (folder / name).symlink_to(lessons.ROOT / name)
    return set()


# A class -----------------------------------------------------------------------------------------

LESSON = "03_heads"
HELPED = HONEST["a helper below"]


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The students' versions."""
    needs("nbgrader")
    assignments.release(folder := tmp_path_factory.mktemp("assignments"), [LESSON, "01_patches"])
    return folder


def helped(book) -> None:
    """With a helper in a cell at the end."""
    book.cells.append(nbformat.v4.new_code_cell(HELPED[1]))


def odd_forms(book) -> None:
    """What no editor writes: an empty task, half a character, a name that is a list."""
    task = next(cell for cell in book.cells if is_task(cell))
    task.source = ""
    book.cells.append(nbformat.v4.new_code_cell("x = 'HALF'"))
    book.cells.append(nbformat.v4.new_code_cell("1", metadata={"nbgrader": {"grade_id": [1]}}))


@pytest.fixture(scope="module")
def solved() -> dict[str, str]:
    return {n: e.answer for n, e in checks.EXERCISES.items() if n in DEEDS}


@pytest.mark.slow
def test_each_submission_gets_what_it_deserves(released, solved, tmp_path):
    some = {n: solved[n] for n in ("split_heads", "rows_of")}
    work = {  # who: (answers, what else is changed, the tasks whose points they get)
        "right": (solved, without_metadata, {*solved}),
        "half": (some, spoilt, {*some}),
        "helped": (solved | {"split_heads": HELPED[0]}, helped, {*solved}),
        "empty": ({}, None, set()),
        "endless": (solved | {"rows_of": "while True: pass"}, None, {*solved} - {"rows_of"}),
        "hostile": (DEEDS, None, set()),
    }
    folder, graded = tmp_path / "handed in", tmp_path / "graded"
    folder.mkdir()
    for who, (answers, change, _) in work.items():
        name = f"{LESSON} (1).ipynb" if who == "helped" else f"{LESSON}.ipynb"
        hand_in(folder / who / name, released / f"{LESSON}.ipynb", answers, change)
    hand_in(folder / "helped" / f"{LESSON}.ipynb", released / f"{LESSON}.ipynb", {})
    (folder / "hostile" / "01_patches.ipynb").symlink_to(folder / "right" / f"{LESSON}.ipynb")
    (folder / "hostile" / "torch.py").write_text("raise SystemExit")
    (folder / "torn").mkdir()
    (folder / "torn" / f"{LESSON}.ipynb").write_text('{"cells": [', encoding="utf-8")
    (folder / "late.ipynb").write_text("{}", encoding="utf-8")
    (folder / "nobody" / "03_heads").mkdir(parents=True)
    (folder / "nobody" / "03_Heads.ipynb").write_text("{}", encoding="utf-8")
    hand_in(folder / ".dot" / f"{LESSON}.ipynb", released / f"{LESSON}.ipynb", {}, odd_forms)
    odd = folder / ".dot" / f"{LESSON}.ipynb"
    odd.write_text(odd.read_text("utf-8").replace("HALF", "\\ud800"), encoding="utf-8")
    (folder / "grades.csv").mkdir()
    shutil.copy(folder / "torn" / f"{LESSON}.ipynb", folder / "grades.csv" / f"{LESSON}.ipynb")
    (folder / "right" / "a\x1b[2K\nb.txt").write_text("")
    line = [sys.executable, "-m", "vit_course", "grade", folder, "--to", graded, "--seconds", "8"]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    points = assignments.tasks_of(assignments.read_book(lessons.ROOT / f"notebooks/{LESSON}.ipynb"))
    wanted = {who: sum(points[name][2] for name in got) for who, (*_, got) in work.items()}
    with (graded / "grades.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["assignment"] == LESSON]
    none = dict.fromkeys(["torn", "_dot", "grades.csv"], 0)
    assert {row["student_id"]: float(row["score"]) for row in rows} == wanted | none
    with (graded / "tasks.csv").open(encoding="utf-8") as file:
        got = {(r["student_id"], r["task"]) for r in csv.DictReader(file) if r["score"] != "0"}
    assert got == {(who, task) for who, (*_, tasks) in work.items() for task in tasks}
    for said in (
        "torn, 03_heads: no notebook that can be read",
        f"half, 03_heads: {wanted['half']:.1f} of {wanted['right']:.1f}",
        "helped/03_heads.ipynb is not graded: 03_heads (1).ipynb is",
        "hostile/01_patches.ipynb is not graded: it is a link, or no file",
        "hostile/torch.py is not graded: it is no notebook",
        "late.ipynb is not graded: it does not lie in a student's own folder",
        "nobody handed in nothing to grade",
        "nobody/03_Heads.ipynb is not graded: no assignment has this name; is it 03_heads?",
    ):
        assert said in done.stdout
    assert "\x1b" not in done.stdout
    assert "torn, 03_heads: no notebook" in (graded / "notes.txt").read_text("utf-8")
    assert not Path("/tmp/vit-loot").exists()

    pages = {path.parent.name: path.read_text("utf-8") for path in graded.glob("feedback/*/*.html")}
    assert set(pages) == {*work, *none}
    assert submissions.UNREAD in pages["torn"]
    assert "does it end?" in pages["endless"]
    assert LEFT in pages["empty"]
    for who, page in pages.items():
        assert f"<h4>{who}: {LESSON}" in page
        assert not re.search(r"<script|<link|src=.http|<iframe|loot\(\)</script>", page)
        assert all(f">{name}</a>" in page for name in solved)
        assert page.count("Setup: run this cell first") <= 1
    assert not (graded / "unfinished.json").exists()


def test_several_files_and_cells_for_one_task_have_an_order(tmp_path):
    for name in ("03_heads.ipynb", "Copy of 03_heads.ipynb", "03_heads-Copy1.ipynb"):
        (tmp_path / "Mina").mkdir(exist_ok=True)
        (tmp_path / "Mina" / name).write_text("{}")
    assert list(submissions.found_in(tmp_path)[0].values()) == [
        tmp_path / "Mina" / "03_heads.ipynb"
    ]
    for name in ("03_heads (2).ipynb", "03_heads (10).ipynb"):
        (tmp_path / "Mina" / name).write_text("{}")
    assert [p.name for p in submissions.found_in(tmp_path)[0].values()] == ["03_heads (10).ipynb"]
    stub = "def split_heads(x, num_heads):\n    return ..."
    tasks = {"split_heads": [None, {"source": stub}]}
    for cells, best in (
        ([("split_heads", "mine"), (None, "checks.split_heads(f)")], 0),  # a draft below
        ([("split_heads", stub), (None, stub.replace("...", "x"))], 1),  # the stub left as it was
        ([(None, "checks.split_heads(lambda x, h: x)  # right!"), (None, "print(1)")], 0),
    ):
        claims = [(dict(submissions.claims(*cell, tasks)).get("split_heads", -1)) for cell in cells]
        assert claims.index(max(claims)) == best
    odd = '{"cells": [{"cell_type": "code", "metadata": null}, 5, '
    odd += '{"cell_type": "code", "source": "\ufeff1"}]}'
    for kind in ("utf-8", "utf-8-sig", "utf-16"):
        assert submissions.codes_of(odd.encode(kind)) == [(None, ""), (None, "1")]


# What makes its own models and data is tried on those of the check alone; the guide says so.
ON_THE_CHECKS_ALONE = {
    *("templates", "without_place", "shared_position", "evaluate", "beat_the_bar", "needed"),
    *("rename", "frozen_features", "likeness"),
}


def sizes(x) -> str:
    """What a table of the visible cases would look a case up by."""
    if isinstance(x, (list, tuple, dict)):
        return f"{[*map(sizes, x.values() if isinstance(x, dict) else x)]}"
    if isinstance(x, torch.Tensor):
        return f"{x.dtype} {x.shape}"
    return str(x if isinstance(x, (int, float, str)) else type(x))


@pytest.mark.slow
def test_a_table_of_the_visible_cases_meets_a_hidden_one():
    passed = set()
    names = {name for name, *_ in rights()}
    for name in (name for name in names if not isinstance(TASKS[name].reference, type)):
        task, table = TASKS[name], {}

        def noting(*given, task=task, table=table, **options):
            result = task.reference(*given, **options)
            return table.setdefault(sizes([given, options]), result)

        def told(*given, table=table, **options):
            return deepcopy(table[sizes([given, options])])

        for trial in task.trials:
            outcome(trial, noting, {})
        generator = torch.Generator()
        trials = [*task.trials, *hidden_trials(name, task, generator)]
        wanted = [outcome(trial, task.reference, {}) for trial in trials]
        given = [outcome(trial, told, {}) for trial in trials]
        if not any(map(compare, given, wanted)):
            passed.add(name)
    assert passed == ON_THE_CHECKS_ALONE


def test_hidden_numbers_keep_scores_apart_that_rounding_could_bring_together():
    name = "scaled_dot_product_attention"
    hidden = hidden_trials(name, TASKS[name], torch.Generator())
    others = {trial.what: trial.inputs for trial in hidden}
    for trial in TASKS[name].trials:
        (q, k), (new_q, new_k) = trial.inputs[:2], others[f"{trial.what}, in another order"][:2]
        assert not torch.equal(new_q, q)
        torch.testing.assert_close(new_q @ new_k.mT, q @ k.mT, rtol=1e-5, atol=1e-4)


def test_where_a_submission_could_read_the_course_grading_stops(tmp_path):
    seen = Path(sys.prefix) / "lib"
    with pytest.raises(RuntimeError, match=f"could read {seen}.*move it"):
        sandbox.ready([tmp_path, seen])


@pytest.mark.slow
def test_without_a_sandbox_grading_stops_and_unsafe_is_said_on_each_page(
    released, solved, tmp_path, monkeypatch
):
    book = f"{LESSON}.ipynb"
    hand_in(tmp_path / "in" / "Mina" / book, released / book, solved)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"bubblewrap is missing[\s\S]*apt install[\s\S]*docker"):
        grading.grade(tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    monkeypatch.undo()
    monkeypatch.setattr(sandbox, "ready", pytest.fail)
    said = grading.grade(tmp_path / "in", tmp_path / "out", unsafe=True)
    assert "Mina, 03_heads: 47.0 of 47.0" in said
    assert grading.UNSAFE in (tmp_path / "out" / "feedback" / "Mina" / f"{LESSON}.html").read_text(
        "utf-8"
    )


@pytest.mark.slow
def test_an_unseen_task_has_its_points_for_a_right_answer_and_none_for_another(tmp_path):
    needs("nbgrader")
    tasks = {f"{n}{assignments.ENDING}": UNSEEN[n] for n in ("03_heads", "06_vit")}
    assignments.release(tmp_path / "out", list(tasks))
    copied = "from vit_course.teaching.unseen import TASKS\n{0} = TASKS['{0}'].reference"
    for name, task in tasks.items():
        for who, answer, lost in (  # and whether the cell's metadata is lost
            ("Ida", copied.format(task.name), False),
            ("Mina", task.answer, True),
            ("Noor", edited(task.answer, task.edits[0][1]), False),
        ):
            book = tmp_path / "out" / "unseen" / f"{name}.ipynb"
            answers, change = {task.name: answer}, without_metadata if lost else None
            hand_in(tmp_path / "in" / who / book.name, book, answers, change)
    said = grading.grade(tmp_path / "in", tmp_path / "graded")
    assert sorted(said[:-1]) == [
        "Ida, 03_heads_unseen: 0.0 of 10.0",
        "Ida, 06_vit_unseen: 0.0 of 15.0",
        "Mina, 03_heads_unseen: 10.0 of 10.0",
        "Mina, 06_vit_unseen: 15.0 of 15.0",
        "Noor, 03_heads_unseen: 0.0 of 10.0",
        "Noor, 06_vit_unseen: 0.0 of 15.0",
    ]
    page = (tmp_path / "graded" / "feedback" / "Noor" / "03_heads_unseen.html").read_text("utf-8")
    assert UNSEEN["03_heads"].edits[0][0] in page


# Right answers -----------------------------------------------------------------------------------


def rights() -> list[tuple[str, list[str], int]]:
    """All right answers of the tests, each in the assignment that asks for it."""
    found = []
    for stem in assignments.ALL:
        codes = [c for c in assignments.source_of(stem)["cells"] if c["cell_type"] == "code"]
        codes = [cell for cell in codes if not submissions.is_test(cell)]
        sources = [unmarked(cell["source"]) for cell in codes]
        for own, cell in enumerate(codes):
            name = grade_id(cell)
            if is_task(cell):
                found.append((name, sources, own))
                head = re.split(r"(?m)^(?=def |class |@)", sources[own])[0]
                for other in right_answers(name, head):
                    found.append((name, [*sources[:own], other, *sources[own + 1 :]], own))
    return found


@pytest.mark.slow
def test_what_the_check_calls_right_is_right_in_grading():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        work = {pool.submit(judge, *one): one for one in rights()}
        wrong = [(work[d][0], d.result()) for d in as_completed(work) if d.result() != "right"]
    assert len(work) > 150
    assert not wrong
