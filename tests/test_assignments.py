"""The lessons as assignments: one source, and each submission graded as it deserves.

`pip install -e ".[teach]"` brings nbgrader.
"""

import csv
import json
import re
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import hygiene
import nbformat
import pytest
import torch
from helpers import needs
from hypothesis import given
from hypothesis import strategies as st

from vit_course import checks, lessons
from vit_course.checks.engine import LEFT, Check
from vit_course.minutes import count
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

from vit_course.folding import checked
from vit_course.teaching import grading, judge

each_assignment = pytest.mark.parametrize("name", ASSIGNMENTS)
LESSON = "03_heads"


@cache
def read(path: Path):
    return nbformat.read(path, as_version=4)


def lesson(name: str):
    return read(lessons.ROOT / "notebooks" / f"{name}.ipynb")


def solved(name: str):
    return read(lessons.ROOT / "notebooks" / "solutions" / f"{name}.ipynb")


def solutions(name: str) -> dict[str, str]:
    """The cells of the solutions by the check's name."""
    return {checked(c.source): c.source for c in solved(name).cells if c.cell_type == "code"}


def stubs(name: str) -> dict[str, str]:
    """The build cells and exercises of a lesson by the check's name."""
    return {checked(cell.source): cell.source for cell in hygiene.tasks(lesson(name))}


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
    text = "\n".join(c.source for c in lesson(name).cells[1:] if c.cell_type == "markdown")
    # Where one looks or answers, and writes nothing: the first minutes below such a heading.
    looking = r"(?ms)^##+ (?:Quiz|Room \d|Draw|Which line)(?:(?!^#).)*?\((\d+) minutes?\)"
    others = re.findall(looking, text)
    own = count(lesson(name))
    stated = own.build + own.exercises - sum(map(int, others))
    cells = [c["metadata"].get("nbgrader", {}) for c in assignments.source_of(name)["cells"]]
    graded = [cell for cell in cells if cell.get("grade")]
    assert sum(cell["points"] for cell in graded) == stated
    assert len(graded) == len(stubs(name))
    assert all(cell["locked"] for cell in graded)


@each_assignment
def test_an_assignment_holds_no_answer(name):
    """Neither one folded in the lesson's text, nor the solutions' words for it."""
    book = assignments.source_of(name)
    text = "\n".join(c["source"] for c in book["cells"] if c["cell_type"] == "markdown")
    assert "<details>" not in text
    assert "*Figure:" not in text
    for cell in solved(name).cells[2:]:
        parts = cell.source.split("\n\n") if cell.cell_type == "markdown" else []
        assert not any(part in text for part in parts if not part.startswith("#"))


# Hidden trials -----------------------------------------------------------------------------------

SLOW = {"beat_the_bar"}  # trains; its trials take no tensor
CHECKS = {n: c for n, c in checks.EXERCISES.items() if n not in SLOW}


def hidden(name: str, answer, seed: int = 5) -> str:
    """What is said of an answer after the hidden trials alone."""
    check, generator = CHECKS[name], torch.Generator().manual_seed(seed)
    trials = judge.hidden_trials(name, check.trials, generator)
    return Check(check.reference, trials, {}, check.slips).judge(answer)


@pytest.mark.parametrize("name", CHECKS)
def test_the_courses_answers_are_right_in_the_hidden_trials_too(name):
    assert hidden(name, CHECKS[name].reference) == "right"


@pytest.mark.parametrize("name", ["split_heads", "merge_heads", "split_qkv", "rows_of"])
def test_wrong_answers_are_wrong_in_the_hidden_trials_too(name):
    said = [hidden(name, wrong) for _, wrong in CHECKS[name].mistakes]
    assert said.count("right") <= 0.25 * len(said)  # some err only where the first trials look


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


@pytest.mark.parametrize("name", ["split_heads", "merge_heads", "rows_of", "patchify"])
def test_a_table_of_the_visible_cases_passes_the_check_and_not_the_judge(name):
    answer = table(name)
    visible = Check(CHECKS[name].reference, CHECKS[name].trials[:2], {})
    assert visible.judge(answer) == "right"
    assert hidden(name, answer) != "right"


def test_hidden_trials_are_others_each_time():
    given = []
    for seed in (1, 2, 1):
        generator = torch.Generator().manual_seed(seed)
        trials = judge.hidden_trials("split_heads", CHECKS["split_heads"].trials, generator)
        given.append(trials[0].run(lambda x, *_: x))
    assert torch.equal(given[0], given[2])
    assert not torch.equal(given[0], given[1])


# The judge ---------------------------------------------------------------------------------------

SETUP = hygiene.code_cells(lesson(LESSON))[0].source
RIGHT = {name: source for name, source in solutions(LESSON).items() if name in stubs(LESSON)}


def judged(cells: dict[str, str], seconds: float = 60, megabytes: int = 2000) -> dict[str, str]:
    """What the judge says of a notebook's tasks, or of cells that stand among them."""
    tasks = [name for name in cells if name in CHECKS]
    return judgement([(None, SETUP), *cells.items()], tasks, seconds, megabytes)


def judgement(cells, tasks, seconds, megabytes=2000) -> dict[str, str]:
    given = {"cells": cells, "tasks": tasks, "seconds": seconds, "megabytes": megabytes}
    line = [sys.executable, "-m", "vit_course.teaching.judge"]
    options = dict(input=json.dumps(given), capture_output=True, text=True, cwd=lessons.ROOT)
    done = subprocess.run(line, **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@each_assignment
def test_the_solutions_of_each_assignment_are_right(name):
    cells = [c for c in assignments.source_of(name)["cells"] if c["cell_type"] == "code"]
    sources = [(grade_id(c), unmarked(c["source"])) for c in cells]
    tasks = [grade_id(c) for c in cells if is_task(c)]
    assert judgement(sources, tasks, seconds=120) == dict.fromkeys(stubs(name), "right")


HONEST = {
    # as a notebook runs it: magics, help, the shell; another's class with the work in it
    "split_heads": f"%time x = 1\nrearrange?\nfiles = !ls\n{RIGHT['split_heads']}",
    "merge_heads": f"%%time\n{RIGHT['merge_heads']}",
    "trust_split": RIGHT["trust_split"],
    "MLP": "class Wide(nn.Module):\n"
    "    def __init__(self, embed_dim, hidden_dim):\n"
    "        super().__init__()\n"
    "        self.fc1 = nn.Linear(embed_dim, hidden_dim)\n"
    "        self.fc2 = nn.Linear(hidden_dim, embed_dim)\n"
    "    def forward(self, x):\n"
    "        return self.fc2(F.gelu(self.fc1(x)))\n"
    "class MLP(Wide):\n    pass",
}


@pytest.mark.slow
def test_an_answer_is_right_as_in_the_notebook_it_was_written_in():
    assert judged(HONEST) == dict.fromkeys(HONEST, "right")


REPLACED = """
checks.{name} = lambda answer: print("right")
for module in list(__import__("sys").modules.values()):
    if getattr(module, "__name__", "").startswith("vit_course.checks"):
        module.compare = module.decided = lambda *_, **__: None
        if hasattr(module, "Check"):
            module.Check.judge = module.Check.told = lambda *_: "right"
print("right")
"""
CHEATS = {  # those that are of no use: what they replace or print stays in their process
    "split_heads": REPLACED.format(name="split_heads") + "split_heads = lambda x, num_heads: x",
    "merge_heads": "import vit_steps\nmerge_heads = vit_steps.merge_heads",
    "rows_of": "class Same(tuple):\n"
    "    def __eq__(self, other): return True\n"
    "    def __len__(self): return 2\n"
    "def rows_of(*_): return Same((0, 1))",
    "split_qkv": "split_qkv = open('/tmp/my_answer', 'w')",
    "trust_split": REPLACED.format(name="trust_split")
    + "def trust_split(split): return True\n"
    + "import os\nos.write(1, b'right')\n",
}


@pytest.mark.slow
def test_what_is_printed_or_replaced_is_of_no_use():
    said = judged(CHEATS)
    assert "right" not in said.values()
    assert "the course's own answer" in said["merge_heads"]
    assert "RefusedError: my_answer may not be written" in said["split_qkv"]


TROUBLE = {
    "split_heads": "def split_heads(x, num_heads):\n    while True: pass",
    "merge_heads": "def merge_heads(x):\n    import os\n    os._exit(0)",
    "rows_of": "raise RuntimeError('no')\ndef rows_of(*_): return 0, 1",
    "split_qkv": "def split_qkv(qkv, num_heads:\n    pass",
}
GREEDY = "def split_qkv(qkv, num_heads):\n    return torch.ones(10**9).expand(3, -1) + 1"


@pytest.mark.slow
def test_trouble_in_one_task_leaves_the_next_alone():
    said = judged(TROUBLE | {"trust_split": RIGHT["trust_split"]}, seconds=10)
    assert "does it end?" in said["split_heads"]
    assert "ended before it gave a result" in said["merge_heads"]
    assert "stops with RuntimeError: no" in said["rows_of"]
    assert "is not Python" in said["split_qkv"]
    assert said["trust_split"] == "right"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux alone")
def test_memory_is_limited():
    said = judged({"split_qkv": GREEDY, "trust_split": RIGHT["trust_split"]}, megabytes=1000)
    assert re.search("memory|allocate", said["split_qkv"])
    assert said["trust_split"] == "right"


# nbgrader ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The students' versions."""
    needs("nbgrader")
    folder = tmp_path_factory.mktemp("assignments")
    assignments.release(folder)
    return folder


@pytest.mark.slow
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


SUBMISSIONS = {
    # who: (answers, what else is changed, the tasks whose points they get)
    "right": (RIGHT, without_metadata, {*RIGHT}),
    "half": ({n: RIGHT[n] for n in ("split_heads", "rows_of")}, spoilt, {"split_heads", "rows_of"}),
    "empty": ({}, None, set()),
    "endless": (RIGHT | {"split_heads": "while True:\n    pass"}, None, {*RIGHT} - {"split_heads"}),
    "a cheat": (CHEATS, None, set()),
}


@pytest.mark.slow
def test_each_submission_gets_what_it_deserves(released, tmp_path):
    folder = tmp_path / "handed in"
    for student, (answers, change, _) in SUBMISSIONS.items():
        hand_in(folder, student, released, answers, change)
    for student in ("torn", "late"):
        (folder / student).mkdir()
    shutil.copy(released / "01_patches.ipynb", folder / "late")  # another lesson
    shutil.copy(released / "01_patches.ipynb", folder / "late" / "03_heads (1).ipynb")
    (folder / "torn" / f"{LESSON}.ipynb").write_text('{"cells": [', encoding="utf-8")
    done = commanded("grade", folder, "--to", tmp_path / "graded", "--seconds", 15)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "graded" / "grades.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["assignment"] == LESSON]
    points = {name: minutes for name, (*_, minutes) in assignments.tasks_of(lesson(LESSON)).items()}
    deserved = {who.replace(" ", "_"): got for who, (*_, got) in SUBMISSIONS.items()}
    wanted = {who: sum(points[name] for name in got) for who, got in deserved.items()}
    scores = {row["student_id"]: float(row["score"]) for row in rows}
    assert scores == wanted | {"torn": 0, "late": 0}
    assert "torn, 03_heads: no notebook that can be read" in done.stdout
    assert f"half, 03_heads: {wanted['half']:.1f} of {wanted['right']:.1f}" in done.stdout
    assert "late, 01_patches: 0.0 of " in done.stdout
    assert "late, 03_heads:" not in done.stdout
    assert "late: 03_heads (1).ipynb is not graded, for no assignment has this name" in done.stdout
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


@pytest.mark.skipif(bool(find_spec("nbgrader")), reason="nbgrader is installed")
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
