"""The lessons as assignments: one source, and each submission graded as it deserves.

`pip install -e ".[teach]"` brings nbgrader.
"""

import re
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

from vit_course import lessons
from vit_course.checks.engine import Check
from vit_course.minutes import count
from vit_course.teaching import assignments
from vit_course.teaching.assignments import (
    ALL,
    ASSIGNMENTS,
    BEGIN,
    END,
    ENDING,
    LEFT_OPEN,
    cleared,
    grade_id,
    is_task,
)
from vit_course.teaching.unseen import SECTIONS, TASKS, UNSEEN

if sys.platform == "win32":
    pytest.skip("grading needs Linux or macOS", allow_module_level=True)

from vit_course.folding import checked
from vit_course.teaching import grading, judge

each_assignment = pytest.mark.parametrize("name", ASSIGNMENTS)
each_of_all = pytest.mark.parametrize("name", ALL)
LESSON = "03_heads"


@cache
def read(path: Path):
    return nbformat.read(path, as_version=4)


def lesson(name: str):
    return read(lessons.ROOT / "notebooks" / f"{name}.ipynb")


def solved(name: str):
    return read(lessons.ROOT / "notebooks" / "solutions" / f"{name}.ipynb")


def unseen(name: str, part: int) -> dict[str, str]:
    """That part of an unseen task's section, by the task's name."""
    lesson = name.removesuffix(ENDING)
    return {UNSEEN[lesson].name: SECTIONS[lesson][part]}


def solutions(name: str) -> dict[str, str]:
    """The cells of the solutions by the task's name."""
    if name.endswith(ENDING):
        return unseen(name, 2)
    return {checked(c.source): c.source for c in solved(name).cells if c.cell_type == "code"}


def stubs(name: str) -> dict[str, str]:
    """The build cells and exercises of an assignment, empty, by the task's name."""
    if name.endswith(ENDING):
        return unseen(name, 1)
    return {checked(cell.source): cell.source for cell in hygiene.tasks(lesson(name))}


def unmarked(source: str) -> str:
    """The solution in a marked cell."""
    lines = source.splitlines()
    return "\n".join(x for x in lines if x not in (BEGIN, END) and not x.startswith(LEFT_OPEN))


# One source --------------------------------------------------------------------------------------


def test_every_lesson_but_the_welcome_and_the_experiments_is_an_assignment():
    others = {path.stem for path in lessons.SOLUTIONS} - {*ASSIGNMENTS}
    assert others == {"00_start_here", "08_what_makes_it_learn"}


@each_of_all
def test_the_source_strips_to_the_lessons_cells_and_holds_the_solutions(name):
    cells = [cell for cell in assignments.source_of(name)["cells"] if is_task(cell)]
    assert {grade_id(cell): cleared(cell["source"]) for cell in cells} == stubs(name)
    for cell in cells:
        whole = solutions(name)[grade_id(cell)]
        own, whole = unmarked(cell["source"]).splitlines(), whole.splitlines()
        above = [line for line in whole if line not in own]  # imports, and earlier pieces
        assert [line for line in whole if line and line in own] == list(filter(None, own))
        assert all(re.match(r"import |from |[\w, ]+ = checks\.mine\(", line) for line in above)


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


def test_each_core_lesson_has_an_unseen_task_worth_its_minutes():
    """And no notebook of the course's holds it."""
    assert [int(lesson[:2]) for lesson in UNSEEN] == list(range(8))
    for lesson, task in UNSEEN.items():
        cells = assignments.source_of(f"{lesson}{ENDING}")["cells"]
        text = next(c["source"] for c in cells if c["id"].startswith("text"))
        minutes = cells[-1]["metadata"]["nbgrader"]["points"]
        assert f"({minutes} minutes)\n" in text
        assert 8 <= minutes <= 15
        assert f"{task.name}(" not in "".join(p.read_text("utf-8") for p in lessons.NOTEBOOKS)


# Hidden trials -----------------------------------------------------------------------------------

SLOW = {"beat_the_bar"}  # trains; its trials take no tensor
CHECKS = {n: c for n, c in TASKS.items() if n not in SLOW}


def hidden(name: str, answer, seed: int = 5) -> str:
    """What is said of an answer after the hidden trials alone."""
    check, generator = CHECKS[name], torch.Generator().manual_seed(seed)
    trials = judge.hidden_trials(name, check, generator)
    return Check(check.reference, trials, {}, check.slips).judge(answer)


@pytest.mark.parametrize("name", CHECKS)
def test_the_courses_answers_are_right_in_the_hidden_trials_too(name):
    assert hidden(name, CHECKS[name].reference) == "right"


@pytest.mark.parametrize(
    "name", ["split_heads", "merge_heads", "split_qkv", "rows_of", "robust_step"]
)
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


@pytest.mark.parametrize(
    "name", ["split_heads", "merge_heads", "rows_of", "patchify", "split_grouped"]
)
def test_a_table_of_the_visible_cases_passes_the_check_and_not_the_judge(name):
    answer = table(name)
    visible = Check(CHECKS[name].reference, CHECKS[name].trials[:2], {})
    assert visible.judge(answer) == "right"
    assert hidden(name, answer) != "right"


def test_hidden_trials_are_others_each_time():
    given = []
    for seed in (1, 2, 1):
        generator = torch.Generator().manual_seed(seed)
        trials = judge.hidden_trials("split_heads", CHECKS["split_heads"], generator)
        given.append(trials[0].run(lambda x, *_: x))
    assert torch.equal(given[0], given[2])
    assert not torch.equal(given[0], given[1])


# nbgrader ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The students' versions."""
    needs("nbgrader")
    folder = tmp_path_factory.mktemp("assignments")
    assignments.release(folder)
    return folder


@pytest.mark.slow
def test_how_to_hand_in_lies_beside_the_assignments(released):
    names = {path.name for path in released.iterdir()}
    assert names == {*(f"{name}.ipynb" for name in ASSIGNMENTS), "HANDING_IN.md", "unseen"}


@pytest.mark.slow
@each_of_all
def test_what_nbgrader_releases_is_what_the_lesson_asks_for(released, name):
    folder = released / "unseen" if name.endswith(ENDING) else released
    book = read(folder / f"{name}.ipynb")
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
    lines = {line for line in lines if "checks.mine(" not in line}
    return sorted(lines, key=len)[-2:]


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
