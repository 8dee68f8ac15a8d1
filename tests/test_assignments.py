"""The lessons as assignments: one source, hidden trials, and what nbgrader releases.

`pip install -e ".[teach]"` brings nbgrader.
"""

import re
import sys
from functools import cache
from importlib.util import find_spec

import hygiene
import nbformat
import pytest
import torch
from helpers import needs

from vit_course import __main__ as command
from vit_course import lessons
from vit_course.checks.engine import Check
from vit_course.folding import checked
from vit_course.minutes import count
from vit_course.teaching import assignments
from vit_course.teaching.assignments import ALL, ASSIGNMENTS, ENDING, grade_id, is_task
from vit_course.teaching.unseen import SECTIONS, TASKS, UNSEEN

if sys.platform == "win32":
    pytest.skip("grading needs Linux or macOS", allow_module_level=True)

from vit_course.teaching import judge

each_assignment = pytest.mark.parametrize("name", ASSIGNMENTS)
each_of_all = pytest.mark.parametrize("name", ALL)


@cache
def read(name: str):
    return nbformat.read(lessons.ROOT / "notebooks" / f"{name}.ipynb", as_version=4)


def unseen(name: str, part: int) -> dict[str, str]:
    """That part of an unseen task's section, by the task's name."""
    lesson = name.removesuffix(ENDING)
    return {UNSEEN[lesson].name: SECTIONS[lesson][part]}


def solutions(name: str) -> dict[str, str]:
    """The cells of the solutions by the task's name."""
    if name.endswith(ENDING):
        return unseen(name, 2)
    cells = hygiene.code_cells(read(f"solutions/{name}"))
    return {checked(cell.source): cell.source for cell in cells}


def stubs(name: str) -> dict[str, str]:
    """The build cells and exercises of an assignment, empty, by the task's name."""
    if name.endswith(ENDING):
        return unseen(name, 1)
    return {checked(cell.source): cell.source for cell in hygiene.tasks(read(name))}


# One source --------------------------------------------------------------------------------------


def test_every_lesson_but_the_welcome_and_the_experiments_is_an_assignment():
    others = {path.stem for path in lessons.SOLUTIONS} - {*ASSIGNMENTS}
    assert others == {"00_start_here", "08_what_makes_it_learn"}


@each_of_all
def test_the_source_has_the_lessons_cells_and_the_lines_that_their_answers_need(name):
    cells = assignments.source_of(name)["cells"]
    tasks = {grade_id(cell): cell["source"] for cell in cells if is_task(cell)}
    assert tasks == stubs(name)
    code = "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "code")
    for task in tasks:
        above, _ = solutions(name)[task].split(TASKS[task].answer.strip())
        assert all(line in code for line in above.splitlines()), task


@each_assignment
def test_what_some_sections_ask_for_is_an_assignment_of_its_own_and_whole(name):
    tasks = [*stubs(name)]
    by_section = assignments.sections_by_task(name)
    assert [*by_section] == tasks
    for section in {*by_section.values()}:
        (part,) = assignments.of([name], [section, "no other"])
        assert part == f"{name}_sections_{section}"
        assert assignments.is_assignment(part)
        cells = assignments.source_of(part)["cells"]
        held = [grade_id(cell) for cell in cells if is_task(cell)]
        assert held == [task for task in tasks if by_section[task] == section]
        code = "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "code")
        for task in held:
            used = {*re.findall(r"\w+", TASKS[task].answer)} & {*tasks} - {*held}
            assert all(re.search(rf"\b{piece}\b.* = checks\.mine", code) for piece in used), task
    assert assignments.of([name], [*by_section.values()]) == [name]  # all of it


def test_an_assignment_that_would_ask_for_nothing_is_refused(capsys):
    for words, message in (
        (["04", "--sections", "1-2"], "04_attention has no task in these sections; there are"),
        (["00", "--sections", "exercises"], "00_start_here has no task in these sections\n"),
        (["08"], "08_what_makes_it_learn is no assignment"),
        (["04", "--sections", "last"], "'last' is not such as 1-4,6 or 3,exercises"),
    ):
        with pytest.raises(SystemExit, match="2"):
            command.main(["release", *words])
        assert message in capsys.readouterr().err
    names = [f"{name}_sections_9" for name in ASSIGNMENTS] + ["00_start_here_sections_exercises"]
    assert not any(map(assignments.is_assignment, names))


@each_assignment
def test_points_are_the_minutes_that_the_lesson_states(name):
    text = "\n".join(c.source for c in read(name).cells[1:] if c.cell_type == "markdown")
    # Where one looks or answers, and writes nothing: the first minutes below such a heading.
    looking = r"(?ms)^##+ (?:Quiz|Room \d|Draw|Which line)(?:(?!^#).)*?\((\d+) minutes?\)"
    minutes = count(read(name))
    stated = minutes.build + minutes.exercises - sum(map(int, re.findall(looking, text)))
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
    for cell in read(f"solutions/{name}").cells[2:]:
        parts = cell.source.split("\n\n") if cell.cell_type == "markdown" else []
        assert not any(part in text for part in parts if not part.startswith("#"))


def test_each_core_lesson_has_an_unseen_task_worth_its_minutes():
    """And no notebook of the course's holds it."""
    assert [int(lesson[:2]) for lesson in UNSEEN] == list(range(8))
    notebooks = "".join(path.read_text("utf-8") for path in lessons.NOTEBOOKS)
    for lesson, task in UNSEEN.items():
        cells = assignments.source_of(f"{lesson}{ENDING}")["cells"]
        minutes = cells[-1]["metadata"]["nbgrader"]["points"]
        assert f"({minutes} minutes)\n" in SECTIONS[lesson][0]
        assert f"{task.name}(" not in notebooks


# Hidden trials -----------------------------------------------------------------------------------

# beat_the_bar trains for long, and its trials take no tensor.
CHECKS = {name: check for name, check in TASKS.items() if name != "beat_the_bar"}
SLOW = dict.fromkeys(("shared_position", "train_step"), pytest.mark.slow)


def hidden(name: str, answer, seed: int = 5) -> str:
    """The message for an answer after the hidden trials alone."""
    check, generator = CHECKS[name], torch.Generator().manual_seed(seed)
    trials = judge.hidden_trials(name, check, generator)
    return Check(check.reference, trials, {}, check.slips).judge(answer)


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(n, marks=SLOW.get(n, ())) for n in CHECKS])
def test_the_courses_answers_are_right_in_the_hidden_trials_too(name):
    assert hidden(name, CHECKS[name].reference) == "right"


@pytest.mark.parametrize(
    "name", ["split_heads", "merge_heads", "split_qkv", "rows_of", "robust_step"]
)
def test_wrong_answers_are_wrong_in_the_hidden_trials_too(name):
    messages = [hidden(name, wrong) for _, wrong in CHECKS[name].mistakes]
    # Some err only where the first trials look.
    assert messages.count("right") <= 0.25 * len(messages)


def test_hidden_trials_are_others_each_time():
    inputs = []
    for seed in (1, 2, 1):
        generator = torch.Generator().manual_seed(seed)
        trials = judge.hidden_trials("split_heads", CHECKS["split_heads"], generator)
        inputs.append(trials[0].run(lambda x, *_: x))
    assert torch.equal(inputs[0], inputs[2])
    assert not torch.equal(inputs[0], inputs[1])


# nbgrader ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The students' versions."""
    needs("nbgrader")
    folder = tmp_path_factory.mktemp("assignments")
    assignments.release(folder)
    return folder


@pytest.mark.slow
def test_what_nbgrader_releases_is_what_the_lessons_ask_for(released):
    names = {path.name for path in released.iterdir()}
    assert names == {*(f"{name}.ipynb" for name in ASSIGNMENTS), "HANDING_IN.md", "unseen"}
    for name in ALL:
        folder = released / "unseen" if name.endswith(ENDING) else released
        book = nbformat.read(folder / f"{name}.ipynb", as_version=4)
        nbformat.validate(book)
        tasks = {grade_id(cell): cell.source for cell in book.cells if is_task(cell)}
        assert tasks == stubs(name)
        text = "\n".join(cell.source for cell in book.cells)
        assert "SOLUTION" not in text
        assert not any(line in text for task in tasks for line in own_lines(name, task))


def own_lines(name: str, task: str) -> list[str]:
    """The longest lines of a solution that no stub of its lesson has, whatever comment it adds."""
    others = {line.split("  #")[0] for stub in stubs(name).values() for line in stub.splitlines()}
    lines = {line.split("  #")[0] for line in solutions(name)[task].splitlines()} - others
    lines = {line for line in lines if "checks.mine(" not in line}
    return sorted(lines, key=len)[-2:]


def test_a_folder_without_submissions_is_said_so(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        command.main(["grade", str(tmp_path)])
    error = capsys.readouterr().err
    assert error.endswith("holds no STUDENT/01_patches.ipynb, or the like\n")


@pytest.mark.skipif(bool(find_spec("nbgrader")), reason="nbgrader is installed")
def test_without_nbgrader_it_says_what_to_install(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        command.main(["release", "--to", str(tmp_path / "assignments")])
    error = capsys.readouterr().err
    assert error == "nbgrader is missing: `pip install -e '.[teach]'` brings it\n"
    assert not (tmp_path / "assignments").exists()
