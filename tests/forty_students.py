"""The forty students of forty.py: what each hands in, and what it deserves."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import torch

from tests import handed_in as work
from tests.handed_in import ATTACKS, DEEDS, HONEST
from vit_course.checks.engine import Check
from vit_course.checks.exercise import edited
from vit_course.teaching.assignments import ENDING, grade_id
from vit_course.teaching.unseen import TASKS

NAMES = """Ada, Ali, Amina, Aoi, Ben, Bo, Carla, Chidi, Chloe, Dana, Deniz, Elif, Emil, Farah, Finn,
Gita, Hana, Hugo, Ines, Ivan, Jin, Jonas, Kofi, Lea, Leo, Lin, Luca, Maya, Milan, Nia, Noor, Omar,
Otto, Priya, Rosa, Sami, Tariq, Uma, 서연, Kim Min-ji"""
MAGIC = "%time x = 1\nrearrange?\nfiles = !ls\n"
FILES = """open("notes.txt", "w").write("mine")
print(open("notes.txt").read())
plt.plot([1, 2])
plt.show()
"""
FROM_PACKAGE = """import vit_steps
def {0}(*inputs, **options):
    return vit_steps.{0}(*inputs, **options)"""
FROM_CHECK = DEEDS["split_heads"].replace("split_heads", "{0}")
FROM_UNSEEN = "from vit_course.teaching.unseen import TASKS\n{0} = TASKS['{0}'].reference"


@dataclass
class Student:
    """What one hands in: right answers, but for what these say.

    Args:
        lesson: the assignment.
        does: in words.
        style: which of the right answers: 0 is the course's, the others are other people's.
        instead: answers that stand in the place of right ones, which deserve no points (unless the
            student is honest).
        each: makes such an answer of each task's name.
        done: how many tasks are answered; the others are left as they came.
        above: what stands above each answer.
        change: is made of the notebook; `after` of its path, and of a neighbour's.
        fails: tasks that deserve no points, beside those of `instead` and `each`.
        copy: the answers stand in the course's lesson.
    """

    lesson: str
    does: str
    style: int = 0
    instead: dict[str, str] = field(default_factory=dict)
    each: Callable[[str], str] | None = None
    done: int = 9
    above: str = ""
    change: Callable | None = None
    after: Callable | None = None
    fails: tuple[str, ...] = ()
    copy: bool = False

    def answers(self, tasks: list[str]) -> dict[str, str]:
        """The cells of these tasks."""
        cells = {}
        for task in tasks[: self.done]:
            choice = [f"{work.IMPORTS}\n{TASKS[task].answer}", *work.right_answers(task)]
            answer = self.each(task) if self.each else choice[self.style % len(choice)]
            check = "" if self.lesson.endswith(ENDING) else f"\n\nchecks.{task}({task})"
            cells[task] = self.above + self.instead.get(task, answer + check)
        return cells

    def deserves(self, points: dict[str, int], kind: str) -> dict[str, float]:
        """The points of each task."""
        lost = {*self.fails, *(points if self.each else ()), *list(points)[self.done :]}
        lost |= set() if kind == "honest" else {*self.instead}
        return {task: 0 if task in lost else points[task] for task in points}


def styled(style: str) -> dict:
    """One of the honest styles of `split_heads`: its cell, and those above and below it."""
    cells = HONEST[style]
    own = max(number for number, cell in enumerate(cells) if "split_heads" in cell)

    def change(book) -> None:
        number = next(n for n, cell in enumerate(book.cells) if grade_id(cell) == "split_heads")
        new = [nbformat.v4.new_code_cell(cell) for cell in cells]
        book.cells[number : number + 1] = [*new[:own], book.cells[number], *new[own + 1 :]]

    return {"does": style, "instead": {"split_heads": cells[own]}, "change": change}


def looked_up(task: str) -> str:
    """A table of the first trials of the check, and of what is right there."""
    check, table = TASKS[task], {}
    first = Check(check.reference, check.trials[:2], {})

    def note(*inputs):
        result = check.reference(*inputs)
        text = f"torch.tensor({result.tolist()})" if torch.is_tensor(result) else repr(result)
        table[str([x.tolist() if torch.is_tensor(x) else x for x in inputs])] = text
        return result

    first.judge(note)
    entries = "".join(f"    {key!r}: {text},\n" for key, text in table.items())
    source = (
        f"import torch\nKNOWN = {{\n{entries}}}\n\ndef {task}(*inputs):\n    return KNOWN[str(["
    )
    source += "x.tolist() if torch.is_tensor(x) else x for x in inputs])]\n"
    assert first.judge(check.made(source)) == "right"
    return source


def attack(what: str, task: str) -> dict[str, str]:
    """An attack, and a right answer below it."""
    return {task: f"{ATTACKS[what]}\n{TASKS[task].answer}"}


def beside(*cells: str) -> Callable:
    """Cells of one's own, at the end of the notebook."""
    return lambda book: book.cells.extend(map(nbformat.v4.new_code_cell, cells))


def without(task: str) -> Callable:
    """The notebook without a task's cell, the others the other way round."""

    def change(book) -> None:
        book.cells = [cell for cell in book.cells if grade_id(cell) != task]
        work.not_in_order(book)

    return change


def second_download(path: Path, neighbour: Path) -> None:
    """The first one is worth nothing."""
    path.rename(path.with_stem(f"{path.stem} (1)"))
    path.write_text("{}", encoding="utf-8")


def others_too(path: Path, neighbour: Path) -> None:
    """Files to be taken for a library, and for one's own work."""
    path.with_name("torch.py").write_text("raise SystemExit", encoding="utf-8")
    path.with_name("01_patches.ipynb").symlink_to(neighbour)


def mistaken(task: str) -> str:
    """The first known mistake."""
    return edited(TASKS[task].answer, TASKS[task].edits[0][1])


def with_mark(path: Path, neighbour: Path) -> None:
    """A byte-order mark, as some editors write it."""
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())


def torn(path: Path, neighbour: Path) -> None:
    """Its first lines only."""
    path.write_bytes(path.read_bytes()[:3000])


def emptied(path: Path, neighbour: Path) -> None:
    """Nothing in it."""
    path.write_bytes(b"")


def renamed(path: Path, neighbour: Path) -> None:
    """Under a name of no assignment."""
    path.rename(path.with_stem("my encoder, final"))


SUBMITTED = "another's submission, changed"
FORGED = "trust_split: the verdict that is wanted, forged"
ENDS = beside("import os\nos.system('touch /tmp/vit-loot')\nos._exit(0)")
CLASS = {
    "honest": [
        Student("01_patches", "the course's own answers"),
        Student("01_patches", "no metadata, other grade cells", 2, change=work.without_metadata),
        Student("02_tokens", "%, ? and ! in each cell", 1, above=MAGIC),
        Student("02_tokens", "metadata of another nbgrader", 2, change=work.spoilt),
        Student("03_heads", style=0, **styled("a helper below")),
        Student("03_heads", style=1, **styled("a cell magic")),
        Student("03_heads", style=2, **styled("a method that is hung on")),
        Student("03_heads", style=3, **styled("what is not installed here")),
        Student("04_attention", "the lesson itself, filled", copy=True),
        Student("05_encoder", "the tasks out of order", 1, change=work.not_in_order),
        Student("05_encoder", "an old form, a byte-order mark", 2, change=work.old_form,
                after=with_mark),
        Student("06_vit", "files, prints, plots in each cell", 1, above=FILES),
        Student("07_training", "another cell never ends", 1, change=beside("while True: pass")),
        Student("07_training", "a second download", 2, after=second_download),
        Student("00_start_here_unseen", "another's right answer", 1),
        Student("06_vit_unseen", "no metadata", 1, change=work.without_metadata),
    ],
    "lazy": [
        Student("03_heads", "the stub untouched", done=0),
        Student("02_tokens", "half done", 1, done=2),
        Student("03_heads", "tables of the visible cases", 1,
                {task: looked_up(task) for task in ("split_heads", "rows_of")}),
        Student("05_encoder", "another task's answer", 0,
                {"EncoderBlock": f"{TASKS['MLP'].answer}\nEncoderBlock = MLP"}),
        Student("04_attention", "calls the package's functions", each=FROM_PACKAGE.format),
        Student("06_vit", "an empty file", each=str, after=emptied),
        Student("07_training", "a known mistake in each task", each=mistaken),
        Student("03_heads_unseen", "the lesson's own answer", 0,
                {"split_grouped": f"{TASKS['split_heads'].answer}\nsplit_grouped = split_heads"}),
    ],
    "broken": [
        Student("01_patches", "half a file", each=str, after=torn),
        Student("05_encoder", "a syntax error, others built on it", 0, {"MLP": "class MLP(:"}),
        Student("03_heads", "no metadata, no check lines", 2, change=work.bare),
        Student("04_attention", "a cell deleted, others moved", 1, change=without("find_fault"),
                fails=("find_fault",)),
        Student("05_encoder", "a wrong file name", each=str, after=renamed),
        Student("07_training", "no end, others built on it", 0, {"train_step": "while True: pass"}),
    ],
    "hostile": [
        Student("01_patches", "the checks' own answers", each=FROM_CHECK.format),
        Student("06_vit_unseen", "the judge's own answer", each=FROM_UNSEEN.format),
        Student("03_heads", "a neighbour's file changed, linked", 1,
                attack(SUBMITTED, "split_heads"), after=others_too),
        Student("03_heads", "the gradebook rewritten", 2,
                {"split_heads": ATTACKS["the gradebook, rewritten"]}),
        Student("07_training", "a process left behind", 0,
                attack("another process, left behind", "train_step"), change=ENDS),
        Student("02_tokens", "a memory bomb", 3, attack("memory without end", "is_order_blind")),
        Student("03_heads", "HTML in an error, and the end", 3,
                {task: DEEDS[task] for task in ("split_qkv", "rows_of")}),
        Student("03_heads", "forged results", 1, {"split_heads": ATTACKS["results, forged"],
                "trust_split": ATTACKS[FORGED]}),
        Student("04_attention", "dearer grade cells", 2, done=1, change=work.dearer),
        Student("05_encoder", "the checks replaced", 0,
                {"layer_norm": f"{ATTACKS['checks, replaced']}\nlayer_norm = split_heads"}),
    ],
}  # fmt: skip
