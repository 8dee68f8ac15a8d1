"""What students hand in is run apart: honest work keeps its points, hostile work gains nothing.

`pip install -e ".[teach]"` brings nbgrader; bubblewrap comes from the system.
"""

import os
import re
import shutil
import socket
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from copy import deepcopy
from io import StringIO
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

import nbformat
import pytest
import torch
from helpers import contents, needs, sh
from tqdm import tqdm

if sys.platform != "linux":
    pytest.skip("grading needs bubblewrap, which is for Linux", allow_module_level=True)

from tests import handed_in as work
from tests.handed_in import ATTACKS, DEEDS, HONEST, SAYS, hand_in
from vit_course import checks, lessons
from vit_course.checks.compare import compare
from vit_course.checks.engine import LEFT, outcome
from vit_course.checks.exercise import edited
from vit_course.teaching import answer, assignments, gradebook, grading, pool, sandbox, submissions
from vit_course.teaching import judge as judging
from vit_course.teaching.assignments import ENDING, grade_id, is_task
from vit_course.teaching.judge import hidden_trials, judge, judge_among
from vit_course.teaching.pool import judge_all
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


def several() -> ProcessPoolExecutor:
    """As many processes as there are processors, each limited as where a class is graded."""
    context = get_context("spawn")
    return ProcessPoolExecutor(os.cpu_count(), mp_context=context, initializer=pool.begin)


def own_cell(name: str, cells: list[str]) -> int:
    """The number of a task's cell: the last one that has its name."""
    return max((n for n, cell in enumerate(cells) if name in cell), default=len(cells) - 1)


def judged(name: str, *cells: str, **limits) -> str:
    return judge(name, [SETUP, *cells], own_cell(name, [SETUP, *cells]), **limits)


# Hostile work ------------------------------------------------------------------------------------

ENDLESS = "without end|too large"  # attacks that are stopped
STARRED = [what for what in ATTACKS if what.startswith("*")]
OTHERS = [what for what in ATTACKS if not what.startswith("*")]


class Prey:
    """What an attack may want: another's file, an entry of the environment, servers."""

    def __init__(self, folder: Path):
        self.secret, abstract = folder / "03_heads.ipynb", f"vit-{os.getpid()}-prey"
        self.secret.write_text("another's work")
        self.servers = [socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX)]
        self.servers[1].bind(f"\0{abstract}")
        for server in self.servers:
            server.listen()
            server.settimeout(0)
        port = self.servers[0].getsockname()[1]
        self.targets = dict(secret=self.secret, folder=folder, port=port, abstract=abstract)
        self.targets["project"], self.targets["host"] = lessons.ROOT, os.uname().nodename
        self.targets["user"], self.targets["lines"] = os.getuid(), "#\n" * 100_000

    def unharmed(self) -> bool:
        """Whether nobody called, and nothing was changed."""
        for server in self.servers:
            with pytest.raises(BlockingIOError):
                server.accept()
        return self.secret.read_text() == "another's work"


def attacked(what: str, targets: dict) -> tuple[str, float]:
    """What is said of an attack, and the seconds that it took."""
    task = "trust_split" if what.startswith("trust_split:") else "split_heads"
    start = time.monotonic()
    seconds = 6 if re.search(ENDLESS, what) else 50
    message = judged(task, work.aimed(ATTACKS[what], **targets), seconds=seconds, megabytes=1000)
    return message, time.monotonic() - start


def attacked_without_sandbox(what: str, targets: dict) -> str:
    """What is said of an attack that has the course as it is, and no sandbox."""

    def whole_course(folder: Path, hidden: set[str]) -> set[str]:
        for package in sandbox.OURS:
            (folder / package).symlink_to(lessons.ROOT / package)
        return set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "lay", whole_course)
        cell = work.aimed(ATTACKS[what], **targets)
        return judged("split_heads", cell, seconds=100, unsafe=True)


@pytest.fixture
def prey(tmp_path, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("A_SECRET", "loot")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    prey = Prey(tmp_path_factory.mktemp("prey"))
    yield prey
    for server in prey.servers:
        server.close()


@pytest.mark.parametrize(
    "attacks",
    [
        pytest.param(STARRED, marks=pytest.mark.slow),
        pytest.param(OTHERS, marks=pytest.mark.nightly),
    ],
    ids=["starred", "others"],
)
def test_an_attack_gains_nothing_and_harms_nothing(attacks, prey, tmp_path):
    with several() as processes:
        answers = [*processes.map(attacked, attacks, repeat(prey.targets))]
    assert prey.unharmed()
    assert work.left_behind(str(tmp_path)) == []
    for what, (message, seconds) in zip(attacks, answers, strict=True):
        assert message != "right", what
        assert not re.search("loot|another's", message), what
        assert seconds < 60, what
        if "it was stopped after" in message:  # else it was not tried
            assert re.search(ENDLESS, what), what


@pytest.mark.nightly
def test_without_a_sandbox_an_attack_gains_its_points(prey):
    """So the attack is one, and the test above can fail."""
    with several() as processes:
        messages = processes.map(attacked_without_sandbox, STARRED, repeat(prey.targets))
        assert dict(zip(STARRED, messages, strict=True)) == dict.fromkeys(STARRED, "right")


@pytest.mark.slow
@pytest.mark.parametrize("how", SAYS)
def test_of_what_a_cell_says_the_kind_of_error_and_its_own_line_are_told(how):
    message = judged("split_heads", SAYS[how])
    assert message != "right"
    own_line = 'raise ValueError("<script>loot</script>")'
    assert "loot" not in message.replace(own_line, "").lower()


# Honest work -------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", HONEST)
def test_an_answer_is_found_as_in_the_notebook_it_was_written_in(style, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_VIT", str(tmp_path / "my_vit.py"))
    for name in ("__main__", "google", "google.colab"):  # which `attempt` replaces
        monkeypatch.setitem(sys.modules, name, None)
    cells = [SETUP, *HONEST[style]]
    found = answer.attempt("split_heads", cells, own_cell("split_heads", cells))
    assert TASKS["split_heads"].judge(found) == "right"


@pytest.mark.slow
@pytest.mark.parametrize(
    "style", ["files in the own folder", "a picture and a print", "as IPython runs it"]
)
def test_an_answer_is_right_in_the_sandbox_too(style):
    assert judged("split_heads", *HONEST[style]) == "right"


@pytest.mark.slow
def test_of_an_answer_under_another_name_the_name_that_is_missing_is_told():
    message = judge("split_heads", [SETUP, "def mine(x, num_heads):\n    return x"], 1)
    assert message == "no cell defines split_heads: keep the name that the task gives"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("above", "below", "broken"),
    [
        ("MLP", "EncoderBlock", "def ("),
        ("scaled_dot_product_attention", "MultiHeadAttention", ""),  # a known mistake
    ],
)
def test_an_answer_is_right_though_the_one_that_it_is_built_on_is_not(above, below, broken):
    first, second = TASKS[above], TASKS[below]
    broken = broken or edited(first.answer, first.edits[0][1])
    head = "\n".join([SETUP, work.IMPORTS, *work.pieces(above, second.answer)])
    cells, tasks = [head, broken, second.answer], {1: above, 2: below}
    assert judge_among(below, cells, 2, tasks) == "right"
    assert judge_among(above, cells, 1, tasks) != "right"
    cells[2] = edited(second.answer, second.edits[0][1])
    assert judge_among(below, cells, 2, tasks) != "right"


# A class -----------------------------------------------------------------------------------------

LESSON, UNSEEN_TASK = "03_heads", UNSEEN["03_heads"]
HELPED = HONEST["a helper below"]
FROM_JUDGE = "from vit_course.teaching.unseen import TASKS\n{0} = TASKS['{0}'].reference"
SOLVED = {name: e.answer for name, e in checks.EXERCISES.items() if name in DEEDS}


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The students' versions."""
    needs("nbgrader")
    folder = tmp_path_factory.mktemp("assignments")
    assignments.release(folder, [LESSON, LESSON + ENDING])
    return folder


def helped(book) -> None:
    """With a helper in a cell at the end, and data in another."""
    book.cells.append(nbformat.v4.new_code_cell(HELPED[1]))
    book.cells.append(nbformat.v4.new_code_cell(f"data = {'1.5, ' * 500_000}"))


def odd_forms(book) -> None:
    """What no editor writes: an empty task, half a character, a name that is a list."""
    work.spoilt(book)
    task = next(cell for cell in book.cells if grade_id(cell) == "trust_split")
    task.source = ""
    book.cells.append(nbformat.v4.new_code_cell("x = 'HALF'"))
    book.cells.append(nbformat.v4.new_code_cell("1", metadata={"nbgrader": {"grade_id": [1]}}))


CHECKED = {name: f"{source}\n\nchecks.{name}({name})" for name, source in SOLVED.items()}
HALF = {name: SOLVED[name] for name in ("split_heads", "rows_of")}
KIM = "Kim Min-ji 서연"
STUDENTS = {  # who: (answers, what else is changed, the tasks whose points they get)
    "right": (SOLVED, work.without_metadata, {*SOLVED}),
    ".half": (HALF, odd_forms, {*HALF}),
    "helped": (SOLVED | {"split_heads": HELPED[0]}, helped, {*SOLVED}),
    "grades.csv": ({}, None, set()),  # who handed in nothing but stubs
    KIM: (SOLVED | {"rows_of": "while True: pass"}, None, {*SOLVED} - {"rows_of"}),
    "hostile": (DEEDS, None, set()),
    "merged": (CHECKED, work.merged, {*SOLVED}),
}
PLAIN = {".half": "_half", KIM: "Kim_Min-ji_서연"}  # names as nbgrader takes them
UNSEEN_ANSWERS = {
    "right": UNSEEN_TASK.answer,
    "helped": edited(UNSEEN_TASK.answer, UNSEEN_TASK.edits[0][1]),
    "hostile": FROM_JUDGE.format(UNSEEN_TASK.name),
}
BY_HAND = ("torn", LESSON, "split_heads", "1.5")
OTHER_FILES = {
    "hostile/torch.py": "raise SystemExit",
    f"torn/{LESSON}.ipynb": '{"cells": [',
    "late.ipynb": "{}",
    "nobody/03_Heads.ipynb": "{}",
    "right/a\x1b[2K\nb.txt": "",
}


@pytest.fixture(scope="module")
def graded(released, tmp_path_factory):
    """A class, graded by the course's command: the folder of the grades, and what is told."""
    folder = tmp_path_factory.mktemp("class") / "handed in"
    to, book = folder.with_name("graded"), f"{LESSON}.ipynb"
    for who, (answers, change, _) in STUDENTS.items():
        name = {"helped": f"{LESSON} (1).ipynb", "merged": "My heads.ipynb"}.get(who, book)
        hand_in(folder / who / name, released / book, answers, change)
    hand_in(folder / "helped" / book, released / book, {})
    unseen = f"{LESSON}{ENDING}.ipynb"
    for who, source in UNSEEN_ANSWERS.items():
        change = work.without_metadata if who == "right" else None
        answers = {UNSEEN_TASK.name: source}
        hand_in(folder / who / unseen, released / "unseen" / unseen, answers, change)
    half = folder / ".half" / book
    half.write_text(half.read_text("utf-8").replace("HALF", "\\ud800"), encoding="utf-8")
    (folder / "hostile" / "01_patches.ipynb").symlink_to(folder / "right" / book)
    (folder / "torn").mkdir()
    (folder / "nobody" / "03_heads").mkdir(parents=True)
    for name, text in OTHER_FILES.items():
        (folder / name).write_text(text)
    to.mkdir()
    (to / "by_hand.csv").write_text("student_id,assignment,task,score\n" + ",".join(BY_HAND))
    before, other = contents(folder), tmp_path_factory.mktemp("other")
    line = [sys.executable, "-m", "vit_course", "grade", folder, "--to", to, "--seconds", "20"]
    environment = os.environ | {"TMPDIR": str(other)}
    told = sh(*line, env=environment)
    assert contents(folder) == before
    assert (contents(other), work.left_behind(str(other))) == ({}, [])
    return to, told


def scores(path: Path) -> dict[tuple[str, str, str], float]:
    """The points in a table of tasks."""
    return {
        (row["student_id"], row["assignment"], row["task"]): float(row["score"])
        for row in gradebook.table(path)
    }


def class_table(path: Path) -> dict[tuple[str, str], float]:
    """The points in the table of a class, by student and assignment."""
    return {
        (row["student_id"], column.split(" (")[0]): float(score)
        for row in gradebook.table(path)
        for column, score in row.items()
        if "(" in column
    }


@pytest.mark.slow
def test_each_submission_gets_what_it_deserves(graded):
    to, output = graded
    cells = filter(submissions.is_test, assignments.source_of(LESSON)["cells"])
    points = {grading.task_name(c): c["metadata"]["nbgrader"]["points"] for c in cells}
    # By student, assignment and task.
    wanted = {("right", LESSON + ENDING, UNSEEN_TASK.name): 10, BY_HAND[:3]: 1.5}
    for who, (*_, tasks) in STUDENTS.items():
        wanted |= {(PLAIN.get(who, who), LESSON, task): points[task] for task in tasks}
    given = scores(to / "tasks.csv")
    assert {key: score for key, score in given.items() if score} == wanted
    assert {who for who, *_ in given} == {"torn", *(PLAIN.get(who, who) for who in STUDENTS)}
    for (who, name), total in class_table(to / "grades.csv").items():
        own = [score for key, score in wanted.items() if key[0] == who and name in (key[1], "all")]
        assert total == sum(own)
    half, most = points["split_heads"] + points["rows_of"], sum(points.values())
    for line in (
        "torn, 03_heads: no notebook that can be read",
        f"_half, 03_heads: {half:g} of {most:g}",
        "helped/03_heads.ipynb is not graded: 03_heads (1).ipynb is",
        "helped, 03_heads: something is left out: a cell may have 10,000 characters",
        "merged/My heads.ipynb is graded as 03_heads, whose tasks it holds",
        "hostile/01_patches.ipynb is not graded: it is a link, or no file",
        "hostile/torch.py is not graded: it is no notebook",
        "late.ipynb is not graded: it does not lie in a student's own folder",
        "nobody handed in nothing to grade",
        "nobody/03_Heads.ipynb is not graded: no assignment has this name; is it 03_heads?",
    ):
        assert line in output
        assert line in (to / "notes.txt").read_text("utf-8")
    assert "\x1b" not in output
    assert not Path("/tmp/vit-loot").exists()


@pytest.mark.slow
def test_pages_of_feedback_name_student_and_tasks_and_run_nothing(graded):
    files = graded[0].glob(f"feedback/*/{LESSON}.html")
    pages = {path.parent.name: path.read_text("utf-8") for path in files}
    assert set(pages) == {"torn", *(PLAIN.get(who, who) for who in STUDENTS)}
    assert submissions.UNREAD in pages["torn"]
    assert not re.search("not attempted|cell stops|stays", pages["torn"])  # and nothing besides
    assert "does it end?" in pages[PLAIN[KIM]]
    assert submissions.LEFT_OUT in pages["helped"]
    assert LEFT in pages["grades.csv"]
    unseen = graded[0] / "feedback" / "helped" / f"{LESSON}{ENDING}.html"
    assert UNSEEN_TASK.edits[0][0] in unseen.read_text("utf-8")
    points = scores(graded[0] / "tasks.csv")
    entry = r'<a href="#test-(\w+)">\w+</a> \(Score: ([\d.]+) /'
    for who, page in pages.items():
        marks = {(who, LESSON, task): float(score) for task, score in re.findall(entry, page)}
        assert marks.items() <= points.items()
        assert f"<h4>{who}: {LESSON}" in page
        assert not re.search(r"<script|<link|src=.http|<iframe|loot\(\)</script>", page)
        assert all(f">{name}</a>" in page for name in SOLVED)
        assert page.count("Setup: run this cell first") <= 1


@pytest.mark.parametrize(
    "change",
    [
        *(None, work.without_metadata, work.bare, work.spoilt, work.dearer),
        *(work.not_in_order, work.old_form, work.merged, work.merged_bare),
    ],
)
def test_whatever_became_of_a_notebook_its_answers_stand_above_their_points(change, tmp_path):
    released = nbformat.from_dict(assignments.source_of(LESSON))
    points = {cell.source: cell.metadata for cell in filter(submissions.is_test, released.cells)}
    path = tmp_path / "03_heads.ipynb"
    assignments.write_book(path, released)
    for origin in (path, lessons.ROOT / "notebooks" / path.name):  # and the lesson itself, filled
        hand_in(path, origin, CHECKED, change)
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())  # a mark, as some editors write it
        book, problem = submissions.in_order(deepcopy(released), path)
        assert problem == ""
        book = nbformat.from_dict(book)
        nbformat.validate(book)
        tasks = [number for number, cell in enumerate(book.cells) if is_task(cell)]
        assert len(tasks) == len(SOLVED)
        for number in tasks:
            cell, test = book.cells[number : number + 2]
            assert cell.source.startswith(SOLVED[grade_id(cell)])
            assert grading.task_name(test) == grade_id(cell)
            assert points[test.source] == test.metadata


def test_of_a_notebook_without_a_task_or_any_cell_the_rest_is_graded(tmp_path):
    released = nbformat.from_dict(assignments.source_of(LESSON))
    path = tmp_path / "03_heads.ipynb"
    few = [cell for cell in released.cells if grade_id(cell) != "rows_of"]
    assignments.write_book(path, released | {"cells": few})
    assert submissions.in_order(released, path)[1] == "no cell for rows_of"
    path.write_bytes(b"")
    book, problem = submissions.in_order(released, path)
    assert problem.startswith("no notebook that can be read (")
    assert len([*filter(submissions.is_test, book["cells"])]) == len(SOLVED)


def test_a_stub_that_was_left_counts_for_nothing_and_a_task_without_a_cell_has_no_words(tmp_path):
    released = nbformat.from_dict(assignments.source_of(LESSON))
    path, book = tmp_path / "03_heads.ipynb", deepcopy(released)
    stubs = {grade_id(c): c for c in book.cells if is_task(c)}
    answer = nbformat.v4.new_code_cell(SOLVED["split_heads"])
    book.cells.insert(0, answer)  # above its stub, which would take its name from it
    book.cells.remove(stubs["rows_of"])
    assignments.write_book(path, book)
    cells = submissions.in_order(released, path)[0]["cells"]
    sources = [cell["source"] for cell in cells]
    assert answer.source in sources
    assert stubs["split_heads"].source not in sources
    assert [c["source"] for c in cells if grade_id(c) == "rows_of"] == [""]
    given = {"Mina/03_heads": {"cells": cells, "metadata": {}}}
    names = {name for _, _, (name, *_) in grading.answers_in(given, ())}
    assert names == {*SOLVED} - {"rows_of"}


def test_a_whole_lesson_is_graded_as_the_part_that_the_class_got(tmp_path):
    some = f"{LESSON}_sections_exercises"
    both = assignments.source_of(LESSON)
    both["cells"] += assignments.source_of("04_attention")["cells"]
    for name, book in ((f"Ada/{LESSON}", both), (f"Bo/{some}", assignments.source_of(some))):
        assignments.write_book(tmp_path / "in" / f"{name}.ipynb", book)
    (tmp_path / "in" / "Cy_1_assignsubmission_file_a.pdf").touch()
    got = tmp_path / "got"
    (got / "unseen").mkdir(parents=True)
    names = [f"{some}.ipynb", f"unseen/{LESSON}{ENDING}.ipynb", "05_encoder.ipynb"]
    for stop, wanted in ((0, LESSON), (3, some)):
        for name in names[:stop]:
            (got / name).touch()
        work, senders, notes = submissions.found_in(tmp_path / "in", got)
        assert {*work} == {("Ada", wanted), ("Bo", some)}
        assert senders == {"Ada", "Bo", "Cy"}
        told = f"Ada/{LESSON}.ipynb is graded as {some}, which the class got"
        assert (told in notes) == (wanted == some)
        held = f"Ada/{LESSON}.ipynb also holds tasks of 04_attention, which are not graded"
        assert held in notes
    (got / f"{LESSON}.ipynb").touch()  # both: a file is what it is called
    assert {*submissions.found_in(tmp_path / "in", got)[0]} == {("Ada", LESSON), ("Bo", some)}


def test_of_a_notebook_that_is_too_long_the_rest_is_graded(tmp_path):
    released = nbformat.from_dict(assignments.source_of(LESSON))
    path = tmp_path / "03_heads.ipynb"
    for cells in (["x" * 2_400_000], ["x = 1"] * 3_000, ["#" * 9_999] * 50, [""] * 3_000):
        book = deepcopy(released)
        book.cells += [{"cell_type": "code", "source": source} for source in cells]
        assignments.write_book(path, book)
        read, problem = submissions.in_order(released, path)
        assert problem.startswith("something is left out: a cell may have 10,000 characters")
        assert len([*filter(submissions.is_test, read["cells"])]) == len(SOLVED)
        codes = [cell["source"] for cell in read["cells"] if cell["cell_type"] == "code"]
        assert any(source.startswith(submissions.LEFT_OUT) for source in codes)
        assert sum(map(len, codes)) < 110_000
        assert len(codes) < 1100


def test_of_a_merged_cell_each_part_is_one_though_others_are_broken():
    tasks = dict.fromkeys(["split_heads", "merge_heads", "rows_of"])
    cells = [
        "import math",
        "@cache\n@other\ndef split_heads(x):\n    return (",
        "class merge_heads: pass\n\nchecks.merge_heads(merge_heads)  # right",
        "mine = 5\nchecks.rows_of(mine)",
    ]
    parts = submissions.parted("merge_heads", "\n\n".join(cells), tasks)
    names = [None, None, "merge_heads", None]
    assert parts == [*zip(names, cells, strict=True)]
    for alone in (f"{cells[1]}\n\n{cells[1]}", "def helper(): ...\nsplit_heads = helper"):
        assert submissions.parted("x", alone, tasks) == [("x", alone)]


def test_a_notebook_of_another_name_is_known_by_its_tasks(tmp_path):
    (tmp_path / "Mina").mkdir()
    some = f"{LESSON}_sections_exercises"
    sources = {"Final VERSION": LESSON, "mine": LESSON + ENDING, "part": some, "00": ""}
    for name, source in sources.items():
        book = assignments.source_of(source) if source else {"cells": []}
        assignments.write_book(tmp_path / "Mina" / f"{name}.ipynb", book)
    work, _, notes = submissions.found_in(tmp_path)
    known = {name: path.stem for (_, name), path in work.items()}
    assert known == {LESSON: "Final VERSION", LESSON + ENDING: "mine", some: "part"}
    assert "Mina/00.ipynb is not graded: no assignment has this name" in notes
    for later in ("Final VERSION (2)", LESSON):
        assignments.write_book(tmp_path / "Mina" / f"{later}.ipynb", assignments.source_of(LESSON))
        assert submissions.found_in(tmp_path)[0]["Mina", LESSON].stem == later


@pytest.mark.parametrize(
    ("file", "who"),
    [
        ("Mina Kim_4711_assignsubmission_file_03_heads.ipynb", "Mina Kim"),
        ("Mina Kim_4711_assignsubmission_file_/03_heads.ipynb", "Mina Kim"),
        ("kimmina_LATE_12_345_03_heads.ipynb", "kimmina"),
        ("kimmina_12_345_03_heads (1).ipynb", "kimmina"),
        ("ViT_kimmina_attempt_2027-03-01-10-00-00_03_heads.ipynb", "kimmina"),
        ("kimmina_12_345_Final VERSION.ipynb", "kimmina"),
        ("03_heads.ipynb", None),
        ("deep/er/03_heads.ipynb", None),
    ],
)
def test_what_a_learning_platform_gives_back_says_whose_it_is(file, who, tmp_path):
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    assignments.write_book(tmp_path / file, assignments.source_of(LESSON))
    work, _, notes = submissions.found_in(tmp_path)
    assert list(work) == ([(who, LESSON)] if who else [])
    told = f"{file} is not graded: it does not lie in a student's own folder, STUDENT/FILE"
    assert (told in notes) is (who is None)


def test_folders_of_one_plain_name_are_told_apart():
    names, notes = grading.plain_names({"Kim Li", "Kim_Li", "Kim+Li", ".a", "_a"})
    plain = {"Kim_Li": "Kim_Li", "Kim Li": "Kim_Li_", "Kim+Li": "Kim_Li__", "_a": "_a", ".a": "_a_"}
    assert names == plain
    assert "Kim Li is called Kim_Li_ here, since another folder is Kim_Li" in notes
    assert len(notes) == 3


def test_several_files_and_cells_for_one_task_have_an_order(tmp_path):
    (tmp_path / "Mina").mkdir()
    for first, *others in (
        ("03_heads.ipynb", "Copy of 03_heads.ipynb", "03_heads-Copy1.ipynb"),
        ("03_heads (10).ipynb", "03_heads (2).ipynb"),
    ):
        for name in (first, *others):
            (tmp_path / "Mina" / name).write_text("{}")
        assert [path.name for path in submissions.found_in(tmp_path)[0].values()] == [first]
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


# What takes nothing, or makes its own data, is tried on that of the check alone; the guide says so.
ON_THE_CHECKS_ALONE = {
    *("templates", "without_place", "shared_position", "beat_the_bar", "needed"),
    *("missing_names", "rename", "frozen_features", "likeness"),
}


def sizes(x) -> str:
    """What a table of the visible cases would look a case up by."""
    if isinstance(x, (list, tuple, dict)):
        return f"{[*map(sizes, x.values() if isinstance(x, dict) else x)]}"
    if isinstance(x, torch.Tensor):
        return f"{x.dtype} {x.shape}"
    return str(x if isinstance(x, (int, float, str)) else type(x))


def looks_up_all(name: str) -> bool:
    """Whether a table of a task's visible cases is right in the hidden ones too."""
    task, table = TASKS[name], {}

    def noting(*inputs, **options):
        return table.setdefault(sizes([inputs, options]), task.reference(*inputs, **options))

    def looked_up(*inputs, **options):
        return deepcopy(table[sizes([inputs, options])])

    for trial in task.trials:
        outcome(trial, noting, {})
    trials = [*task.trials, *hidden_trials(name, task, torch.Generator())]
    pairs = ((outcome(t, looked_up, {}), outcome(t, task.reference, {})) for t in trials)
    return not any(compare(*pair) for pair in pairs)


@pytest.mark.nightly
def test_a_table_of_the_visible_cases_meets_a_hidden_one():
    names = {name for name, *_ in rights() if not isinstance(TASKS[name].reference, type)}
    assert {*filter(looks_up_all, names)} == ON_THE_CHECKS_ALONE


def test_no_split_is_told_by_how_often_a_students_test_meets_it():
    """Of ten kinds three are right, each as often as the others: a guess names them 1 in 120."""
    task = TASKS["trust_split"]
    trials = [*task.trials, *hidden_trials("trust_split", task, torch.Generator())]
    splits = [trial.inputs[0].function for trial in trials]
    assert {splits.count(split) for split in splits} == {4}
    right = [s for s in set(splits) if task.reference(s)]
    assert (len(right), len(set(splits))) == (3, 10)


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


def test_the_course_is_hidden_in_every_python_that_a_submission_could_read(tmp_path, monkeypatch):
    names = "python3.9/site-packages", "python3/dist-packages"
    places = [tmp_path / "lib" / name for name in names]
    for place in places:
        (place / "vit_steps").mkdir(parents=True)
        (place / "vit_steps" / "heads.py").write_text("def split_heads")
    (places[0] / "other.py").write_text("")
    monkeypatch.setattr(sys, "exec_prefix", str(tmp_path))  # which is open, as all of Python is
    sandbox.ready([place / "vit_steps" / "heads.py" for place in places])
    with pytest.raises(RuntimeError, match=r"other\.py"):
        sandbox.ready([places[0] / "other.py"])


@pytest.mark.slow
def test_python_may_be_called_by_a_relative_path(tmp_path):
    program = os.path.relpath(sys.executable, tmp_path)
    line = "from vit_course.teaching import sandbox; sandbox.ready()"
    environment = os.environ | {"PYTHONPATH": str(lessons.ROOT)}
    sh(program, "-c", line, cwd=tmp_path, env=environment)


@pytest.mark.slow
def test_what_hangs_or_ends_the_judge_costs_no_other_its_marks():
    """No sandbox: so a student's code can end the judge, as a system without memory may."""
    bar = tqdm(file=StringIO(), mininterval=0)
    cells = {"endless": "while True: pass", "killer": "import os\nos.kill(os.getppid(), 9)"}
    cells["right"] = TASKS["split_heads"].answer
    answers = {}
    for who, cell in cells.items():
        arguments = "split_heads", [SETUP, cell], 1, {}, 60, 1000, who == "killer"
        answers[who] = f"{who}: split_heads", arguments
    messages = dict(judge_all(answers, 30, bar))
    lost = "it could not be judged in 30 seconds"
    assert messages == {"endless": lost, "killer": lost, "right": "right"}
    assert all(f"{who}: split_heads" in bar.fp.getvalue() for who in cells)


@pytest.mark.slow
def test_without_a_sandbox_grading_stops_and_unsafe_is_said_on_each_page(
    released, tmp_path, monkeypatch
):
    name = f"{LESSON}{ENDING}"
    book = released / "unseen" / f"{name}.ipynb"
    answers = {UNSEEN_TASK.name: UNSEEN_TASK.answer}
    hand_in(tmp_path / "in" / "Mina" / book.name, book, answers)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"bubblewrap is missing[\s\S]*apt install[\s\S]*docker"):
        grading.grade(tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    monkeypatch.undo()
    monkeypatch.setattr(sandbox, "ready", pytest.fail)
    write_pages, before = grading.write_pages, {}

    def seen_before_the_pages(*arguments, **options):
        before["tasks.csv"] = sum(scores(tmp_path / "out" / "tasks.csv").values())
        before.update(class_table(tmp_path / "out" / "grades.csv"))
        return write_pages(*arguments, **options)

    monkeypatch.setattr(grading, "write_pages", seen_before_the_pages)
    notes = grading.grade(tmp_path / "in", tmp_path / "out", unsafe=True)
    assert before == {"tasks.csv": 10, ("Mina", name): 10, ("Mina", "all"): 10}
    assert f"Mina, {name}: 10 of 10" in notes
    page = tmp_path / "out" / "feedback" / "Mina" / f"{name}.html"
    assert grading.UNSAFE in page.read_text("utf-8")


# Right answers -----------------------------------------------------------------------------------


def head_of(source: str) -> str:
    """What stands in a cell above its definitions."""
    return re.split(r"(?m)^(?=def |class |@)", source)[0]


def solved(cell) -> str:
    """A cell of an assignment, with the course's answer in a task's."""
    task = TASKS[grade_id(cell)].answer if is_task(cell) else ""
    return head_of(cell["source"]) + task if task else cell["source"]


def rights() -> list[tuple[str, list[str], int]]:
    """All right answers of the tests, each in the assignment that asks for it."""
    answers = []
    for stem in assignments.ALL:
        codes = [c for c in assignments.source_of(stem)["cells"] if c["cell_type"] == "code"]
        codes = [cell for cell in codes if not submissions.is_test(cell)]
        sources = [solved(cell) for cell in codes]
        for own, name in ((n, grade_id(cell)) for n, cell in enumerate(codes) if is_task(cell)):
            head = head_of(sources[own])
            for source in [sources[own], *work.right_answers(name, head)]:
                answers.append((name, [*sources[:own], source, *sources[own + 1 :]], own))
    return answers


@pytest.mark.parametrize(
    "step", [pytest.param(40, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.nightly)]
)
def test_what_the_check_calls_right_is_right_in_grading(step):
    answers = rights()
    assert len(answers) > 150
    with several() as processes:
        names = {processes.submit(judge, *right): right[0] for right in answers[::step]}
        messages = [(names[future], future.result()) for future in as_completed(names)]
    assert [pair for pair in messages if pair[1] != "right"] == []
