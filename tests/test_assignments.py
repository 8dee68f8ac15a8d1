"""The lessons as assignments: one source, and each submission graded as it deserves.

What nbgrader does is tested where it is installed, by `pip install -e ".[teach]"`. With TEACH=all
in the environment, as in CI, it must be.
"""

import csv
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import hygiene
import nbformat
import pytest
import torch
from answers import lesson_03 as answers_of_03
from hypothesis import given
from hypothesis import strategies as st

from vit_course import checks, lessons
from vit_course.checks.engine import LEFT, Check
from vit_course.teaching import assignments
from vit_course.teaching.assignments import (
    ASSIGNMENTS,
    BEGIN,
    END,
    LEFT_OPEN,
    cleared,
    grade_id,
    is_task,
)

if sys.platform == "win32":
    pytest.skip("grading needs Linux or macOS", allow_module_level=True)

from vit_course.teaching import grading, judge

each_assignment = pytest.mark.parametrize("name", ASSIGNMENTS)
LESSON = "03_heads"


@cache
def read(path: Path):
    return nbformat.read(path, as_version=4)


def lesson(name: str):
    return read(lessons.ROOT / "notebooks" / f"{name}.ipynb")


def solutions(name: str) -> dict[str, str]:
    """The cells of the solutions by the check's name."""
    book = read(assignments.SOLUTIONS / f"{name}.ipynb")
    return {hygiene.checked(c): c.source for c in book.cells if c.cell_type == "code"}


def stubs(name: str) -> dict[str, str]:
    """The build cells and exercises of a lesson by the check's name."""
    return {hygiene.checked(cell): cell.source for cell in hygiene.tasks(lesson(name))}


def unmarked(source: str) -> str:
    """The solution in a marked cell."""
    lines = source.splitlines()
    return "\n".join(x for x in lines if x not in (BEGIN, END) and not x.startswith(LEFT_OPEN))


# One source --------------------------------------------------------------------------------------


def test_every_lesson_with_pieces_is_an_assignment():
    assert [int(name[:2]) for name in ASSIGNMENTS] == [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13]


@each_assignment
def test_the_source_strips_to_the_lessons_cells_and_holds_the_solutions(name):
    cells = [cell for cell in assignments.source_of(name)["cells"] if is_task(cell)]
    assert {grade_id(cell): cleared(cell["source"]) for cell in cells} == stubs(name)
    for cell in cells:
        assert unmarked(cell["source"]) == solutions(name)[grade_id(cell)]


lines = st.lists(st.sampled_from(["def f(x):", "    y = ...", "    y = x", "", "g(2)"]))
texts = lines.map(lambda some: "\n".join([*some, "f(2)"]))


@given(texts, texts)
def test_marks_hold_any_stub_and_any_solution(stub, solution):
    both = assignments.marked(stub, solution)
    assert cleared(both).splitlines() == stub.splitlines()
    assert unmarked(both).splitlines() == solution.splitlines()


@each_assignment
def test_points_are_the_minutes_that_the_lesson_states(name):
    cells = assignments.source_of(name)["cells"]
    graded = [
        cell["metadata"]["nbgrader"] for cell in cells if str(grade_id(cell)) in graded_ids(name)
    ]
    stated = hygiene.building_minutes(lesson(name)) - 10  # its questions have ten
    if name == "12_spot_the_mistake":  # its minutes are the museum's too, which asks for no code
        stated = 5 + 10 + 15
    assert sum(cell["points"] for cell in graded) == stated
    assert len(graded) == len(stubs(name))
    assert all(cell["grade"] and cell["locked"] for cell in graded)


def graded_ids(name: str) -> set[str]:
    return {f"{assignments.TEST}{task}" for task in stubs(name)}


@each_assignment
def test_an_assignment_holds_no_answer(name):
    """Neither one folded in the lesson's text, nor the solutions' words for it."""
    book = assignments.source_of(name)
    text = "\n".join(c["source"] for c in book["cells"] if c["cell_type"] == "markdown")
    assert "<details>" not in text
    assert "*Figure:" not in text
    for cell in read(assignments.SOLUTIONS / f"{name}.ipynb").cells[2:]:
        parts = cell.source.split("\n\n") if cell.cell_type == "markdown" else []
        assert not any(part in text for part in parts if not part.startswith("#"))
    found = assignments.tasks_of(book)
    assert all(re.search(r"\(\d+ minutes?\)", found[task][1]) for task in stubs(name))


# Hidden trials -----------------------------------------------------------------------------------

SLOW = {"beat_the_bar"}  # trains; its trials take no tensor
CHECKS = {n: c for n, c in vars(checks).items() if isinstance(c, Check) and n not in SLOW}


def hidden_alone(name: str) -> Check:
    """A check whose trials are the hidden ones alone."""
    check, generator = CHECKS[name], torch.Generator().manual_seed(5)
    trials = judge.with_hidden(name, check.trials, generator)[len(check.trials) :]
    same = Check(check.reference, trials, {}, check.slips)
    same.mistakes = check.mistakes
    return same


@pytest.mark.parametrize("name", answers_of_03.RIGHT)
def test_hidden_trials_find_right_answers_right_and_wrong_ones_wrong(name):
    check = hidden_alone(name)
    if not check.trials:
        assert name == "trust_split"
        return
    for answer in [*answers_of_03.RIGHT[name], CHECKS[name].reference]:
        assert check.judge(answer) == "right"
    said = [check.judge(answer) for answer, _ in answers_of_03.WRONG[name]]
    assert said.count("right") <= 0.25 * len(said)  # some err only where the first trials look


@pytest.mark.parametrize("name", CHECKS)
def test_the_courses_answers_are_right_in_the_hidden_trials_too(name):
    check = hidden_alone(name)
    assert check.judge(check.reference) == "right"


def table(name: str):
    """An answer that knows what the visible trials want, and nothing else."""
    seen = {}
    reference = CHECKS[name].reference

    def note(*given):
        seen[key(given)] = reference(*given)
        return seen[key(given)]

    def answer(*given):
        return seen[key(given)]

    assert CHECKS[name].judge(note) == "right"
    return answer


def key(given) -> str:
    return str([x.tolist() if isinstance(x, torch.Tensor) else x for x in given])


@pytest.mark.parametrize("name", ["split_heads", "merge_heads", "rows_of", "patch_of", "patchify"])
def test_a_table_of_the_visible_cases_passes_the_check_and_not_the_judge(name):
    answer = table(name)
    visible = Check(CHECKS[name].reference, CHECKS[name].trials[:2], {})
    assert visible.judge(answer) == "right"
    assert hidden_alone(name).judge(answer) != "right"


def test_hidden_trials_are_others_each_time():
    given = []
    for seed in (1, 2, 1):
        generator = torch.Generator().manual_seed(seed)
        trials = judge.with_hidden("split_heads", CHECKS["split_heads"].trials, generator)
        given.append(trials[3].run(lambda x, *_: x))
    assert torch.equal(given[0], given[2])
    assert not torch.equal(given[0], given[1])


# The judge ---------------------------------------------------------------------------------------

SETUP = hygiene.code_cells(lesson(LESSON))[0].source
RIGHT = {name: source for name, source in solutions(LESSON).items() if name in stubs(LESSON)}


def judged(cells: dict[str, str], seconds: float = 60, megabytes: int = 2000) -> dict[str, str]:
    """What the judge says of a notebook's tasks."""
    given = {"cells": [(None, SETUP), *cells.items()], "tasks": [n for n in cells if n in CHECKS]}
    given |= {"seconds": seconds, "megabytes": megabytes}
    return json.loads(python("-m", "teaching.judge", given=given))


def python(*words: str, given) -> str:
    """What Python prints that is given JSON to read."""
    done = subprocess.run(
        [sys.executable, *words],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        cwd=lessons.ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_right_answers_are_right():
    assert set(judged(RIGHT).values()) == {"right"}


@pytest.mark.skipif(os.environ.get("TEACH") != "all", reason="takes minutes: TEACH=all runs it")
@each_assignment
def test_the_solutions_of_each_assignment_are_right(name):
    cells = [c for c in assignments.source_of(name)["cells"] if c["cell_type"] == "code"]
    given = {
        "cells": [(grade_id(c), unmarked(c["source"])) for c in cells],
        "tasks": [grade_id(c) for c in cells if is_task(c)],
        "seconds": 120,
        "megabytes": 2000,
    }
    said = json.loads(python("-m", "teaching.judge", given=given))
    assert said == dict.fromkeys(stubs(name), "right")


HEADS = str(lessons.ROOT / "vit_steps" / "heads.py")
# Each cheats in its own way; the last lines of a cell are left as they were.
REPLACED = """
checks.split_heads = lambda answer: print("right")
for module in list(__import__("sys").modules.values()):
    if getattr(module, "__name__", "").startswith("vit_course.checks"):
        module.compare = lambda *_: None
        if hasattr(module, "Check"):
            module.Check.judge = lambda *_: "right"
            module.Check.outcome_of = lambda *_: None
print("right")
"""
COUNTS = """
said = iter({said})
def trust_split(split):
    return next(said)
"""
CHEATS = {
    "split_heads": REPLACED + "split_heads = lambda x, num_heads: x",
    "merge_heads": "merge_heads = checks.merge_heads.reference",
    "split_qkv": "split_qkv = __import__('vit_steps.heads').heads.split_qkv",
    "rows_of": "class Same(tuple):\n"
    "    def __eq__(self, other): return True\n"
    "    def __len__(self): return 2\n"
    "def rows_of(*_): return Same((0, 1))",
    "reorder_rows": f"text = open({str(assignments.SOLUTIONS / '03_heads.ipynb')!r}).read()\n"
    "reorder_rows = eval(text)",
    "trust_split": REPLACED.replace("compare", "decided")
    + "import vit_course.checks.engine as engine\n"
    "engine.Verdict = lambda *_: 'as it should'\n"
    "def trust_split(split): return True\n"
    "import os\nos.write(1, b'right')\n",
}


def test_cheats_get_nothing():
    said = judged(CHEATS)
    assert "right" not in said.values()
    assert "the course's own answer" in said["merge_heads"]
    assert "the course's own answer" in said["split_qkv"]
    assert "RefusedError" in said["reorder_rows"]


# Ways to the course's own answer, each where `split_heads` should be written.
WAYS = [
    "import vit_steps; split_heads = vit_steps.split_heads",
    "import vit_steps.heads as h, importlib; split_heads = importlib.reload(h).split_heads",
    "import sys; del sys.modules['vit_steps.heads']\n"
    "import vit_steps.heads; split_heads = vit_steps.heads.split_heads",
    "split_heads = checks.trust_split.trials[0].run(lambda split: split)",
    "from vit_course.checks import heads; split_heads = heads.package.split_heads",
    "import vit_steps, inspect\nexec(inspect.getsource(vit_steps.heads))",
    "import vit_steps\nexec(vit_steps.heads.__loader__.get_data(vit_steps.heads.__file__))",
    f"import runpy\nsplit_heads = runpy.run_path({HEADS!r})['split_heads']",
    "import subprocess\nsubprocess.run(['true'])\ndef split_heads(*_): pass",
]


JUDGE_EACH = """
import json, sys, torch
from vit_course.teaching import judge
torch.set_num_threads(1)
judge.second_copy()
setup, *ways = json.load(sys.stdin)
cells = [[(None, setup), ("split_heads", way)] for way in ways]
print(json.dumps([judge.judge("split_heads", each) for each in cells]))
"""


def test_every_way_to_the_courses_answer_is_closed():
    ways = [SETUP, *WAYS, RIGHT["split_heads"]]
    said = json.loads(python("-c", JUDGE_EACH, given=ways))
    assert said.pop() == "right"
    refused = re.compile("RefusedError|course's own answer|stops with|there is no answer")
    assert all(map(refused.search, said)), said


def test_who_counts_the_calls_passes_the_check_and_not_the_judge():
    """A yes or no for each call, in the order that the visible check asks in."""
    right = next(iter(answers_of_03.RIGHT["trust_split"]))
    said = []
    CHECKS["trust_split"].judge(lambda split: said.append(right(split)) or said[-1])
    names = {}
    exec(COUNTS.format(said=said), names)
    assert CHECKS["trust_split"].judge(names["trust_split"]) == "right"
    cell = COUNTS.format(said=said) + "checks.trust_split(trust_split)"
    wrong = [judged({"trust_split": cell})["trust_split"] for _ in range(2)]
    assert set(wrong) != {"right"}  # by chance it is right in one time of hundreds


TROUBLE = {
    "split_heads": "def split_heads(x, num_heads):\n    while True: pass",
    "merge_heads": "def merge_heads(x):\n    import os\n    os._exit(0)",
    "rows_of": "raise RuntimeError('no')\ndef rows_of(*_): return 0, 1",
    "reorder_rows": "def reorder_rows(rows:\n    pass",
}
GREEDY = "def split_qkv(qkv, num_heads):\n    return torch.ones(10**9).expand(3, -1) + 1"


def test_trouble_in_one_task_leaves_the_next_alone():
    said = judged(TROUBLE | {"trust_split": RIGHT["trust_split"]}, seconds=10)
    assert "does it end?" in said["split_heads"]
    assert "ended before it gave a result" in said["merge_heads"]
    assert "stops with RuntimeError: no" in said["rows_of"]
    assert "is not Python" in said["reorder_rows"]
    assert said["trust_split"] == "right"


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux alone")
def test_memory_is_limited():
    said = judged({"split_qkv": GREEDY, "trust_split": RIGHT["trust_split"]}, megabytes=1000)
    assert re.search("memory|allocate", said["split_qkv"])
    assert said["trust_split"] == "right"


# nbgrader ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The students' versions. Without nbgrader the test is skipped, or fails if it must be."""
    if importlib.util.find_spec("nbgrader") is None:
        if os.environ.get("TEACH") == "all":
            pytest.fail("nbgrader is missing")
        pytest.skip("pip install -e '.[teach]' brings nbgrader")
    folder = tmp_path_factory.mktemp("assignments")
    assignments.release(folder)
    return folder


@each_assignment
def test_what_nbgrader_releases_is_what_the_lesson_asks_for(released, name):
    book = read(released / f"{name}.ipynb")
    nbformat.validate(book)
    got = {grade_id(cell): cell.source for cell in book.cells if is_task(cell)}
    assert got == stubs(name)
    whole = "\n".join(cell.source for cell in book.cells)
    assert "SOLUTION" not in whole
    assert not any(line in whole for task in stubs(name) for line in own_lines(name, task))


def own_lines(name: str, task: str) -> list[str]:
    """The longest lines of a solution that no stub of its lesson has, whatever comment it adds."""
    given = {line.split("  #")[0] for stub in stubs(name).values() for line in stub.splitlines()}
    lines = {line.split("  #")[0] for line in solutions(name)[task].splitlines()} - given
    return sorted(lines, key=len)[-2:]


def hand_in(folder: Path, student: str, released: Path, answers: dict[str, str], change=None):
    """A submission with these answers in the released notebook."""
    book = nbformat.read(released / f"{LESSON}.ipynb", as_version=4)
    for cell in book.cells:
        if is_task(cell) and grade_id(cell) in answers:
            cell.source = answers[grade_id(cell)]
    if change:
        change(book)
    path = folder / student / f"{LESSON}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(book, path)


def without_metadata(book):
    """As an editor may leave it that keeps no metadata of cells; the grade cells changed too."""
    for cell in book.cells:
        if cell.metadata.get("nbgrader", {}).get("grade"):
            cell.source = "print('right')"
        cell.metadata = {}


def spoilt(book):
    """With metadata that nbgrader would refuse."""
    for cell in book.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader["schema_version"] = 99


HALF = {n: RIGHT[n] for n in ("split_heads", "rows_of", "trust_split")}  # 30 points of 55
SUBMISSIONS = {
    # who: (answers, what else is changed, points)
    "right": (RIGHT, without_metadata, 55),
    "half": (HALF, spoilt, 30),
    "empty": ({}, None, 0),
    "crashing": (TROUBLE | {"split_heads": "1 / 0", "trust_split": RIGHT["trust_split"]}, None, 15),
    "endless": (RIGHT | {"split_heads": "while True:\n    pass"}, None, 45),
    "a cheat": (CHEATS, None, 0),
}


def test_each_submission_gets_what_it_deserves(released, tmp_path):
    folder = tmp_path / "handed in"
    for student, (answers, change, _) in SUBMISSIONS.items():
        hand_in(folder, student, released, answers, change)
    (folder / "torn").mkdir()
    (folder / "late").mkdir()  # handed in another lesson
    shutil.copy(released / "01_patches.ipynb", folder / "late")
    (folder / "torn" / f"{LESSON}.ipynb").write_text('{"cells": [', encoding="utf-8")
    done = commanded("grade", folder, "--to", tmp_path / "graded", "--seconds", 15)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "graded" / "grades.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["assignment"] == LESSON]
    scores = {row["student_id"]: float(row["score"]) for row in rows}
    wanted = {student: points for student, (_, _, points) in SUBMISSIONS.items()}
    wanted |= {"torn": 0, "late": 0}
    assert scores == {re.sub(r"\W", "_", student): points for student, points in wanted.items()}
    assert "torn, 03_heads: no notebook that can be read" in done.stdout
    assert "half, 03_heads: 30.0 of 55.0" in done.stdout
    assert "late, 01_patches: 0.0 of 43.0" in done.stdout
    assert "late, 03_heads" not in done.stdout
    pages = {p.parent.name: p.read_text("utf-8") for p in tmp_path.glob("graded/*/*.html")}
    assert set(pages) == set(scores)
    assert "does it end?" in pages["endless"]
    assert LEFT in pages["empty"]


def commanded(*words):
    """A command of the course, run."""
    line = [sys.executable, "-m", "vit_course", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True)


def test_a_folder_without_submissions_is_said_so(tmp_path):
    done = commanded("grade", tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith("holds no STUDENT/01_patches.ipynb, or the like\n")


@pytest.mark.skipif(bool(importlib.util.find_spec("nbgrader")), reason="nbgrader is installed")
def test_without_nbgrader_it_says_what_to_install(tmp_path):
    done = commanded("release", "--to", tmp_path / "assignments")
    assert done.returncode == 2
    assert done.stderr == "nbgrader is missing: `pip install -e '.[teach]'` brings it\n"
    assert not (tmp_path / "assignments").exists()


def test_two_students_of_one_name_are_said_so(tmp_path):
    for student in ("Kim Min", "Kim_Min"):
        (tmp_path / student).mkdir()
        (tmp_path / student / f"{LESSON}.ipynb").write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match=r"Kim Min.*Kim_Min"):
        grading.grade(tmp_path, tmp_path / "graded")
