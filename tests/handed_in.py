"""What students hand in: right answers in many styles, notebooks as editors leave them, attacks.

For test_grading.py. honest.txt and hostile.txt hold the cells.
"""

import re
import time
from contextlib import suppress
from pathlib import Path

import nbformat

from tests.answers import ROWS
from vit_course.checks.exercise import edited
from vit_course.checks.keeping import PIECES
from vit_course.checks.sources import used_names
from vit_course.folding import checked
from vit_course.teaching.assignments import grade_id
from vit_course.teaching.unseen import TASKS


def entries(file: str) -> dict[str, str]:
    """The entries of a text beside this file, by what stands behind their `===`."""
    text = Path(__file__).with_name(file).read_text("utf-8")
    return dict(part.split("\n", 1) for part in re.split(r"(?m)^=== ", text)[1:])


# Right answers -----------------------------------------------------------------------------------

HONEST = {  # as a notebook runs it: cells, of which the last one with `split_heads` is the task's
    style: cells.split("---\n") for style, cells in entries("honest.txt").items()
}
IMPORTS = "import math\nfrom copy import copy, deepcopy\nfrom torch import Tensor"


def pieces(name: str, answer: str) -> list[str]:
    """Lines that bring what an answer uses of the tasks before."""
    before = list(TASKS)[: list(TASKS).index(name)]
    used = [piece for piece in used_names(answer) if piece in PIECES and piece in before]
    return [f'{piece} = checks.mine("{piece}")' for piece in used]


def right_answers(name: str, head: str = "") -> list[str]:
    """Other people's right answers to a task as cells: what they need, the head, the answer."""
    edits = [edit for task, message, edit in ROWS if (task, message) == (name, "right")]
    # Not the course's, in disguise.
    answers = [edited(TASKS[name].answer, e) for e in edits if f"import {name}" not in e]
    return ["\n".join([IMPORTS, *pieces(name, a), head, a]) for a in answers]


# Notebooks ---------------------------------------------------------------------------------------


def hand_in(path: Path, released: Path, answers: dict[str, str], change=None) -> None:
    """A submission with these answers in the released notebook, or in the lesson's; `change` comes
    last."""
    book = nbformat.read(released, as_version=4)
    for cell in book.cells:
        name = grade_id(cell) or checked(cell.source)
        cell.source = answers.get(name, cell.source)
    if change:
        change(book)
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(book, path)


def grade_cells(book) -> list:
    """nbgrader's cells that give points, each made to print "right"."""
    cells = [cell for cell in book.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    for cell in cells:
        cell.source = "print('right')"
    return cells


def without_metadata(book) -> None:
    """As an editor may leave it that keeps no metadata of cells; the grade cells changed too."""
    grade_cells(book)
    for cell in book.cells:
        cell.metadata = {}


def spoilt(book) -> None:
    """With metadata that nbgrader would refuse, and a text that would run in a browser."""
    for cell in book.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader["schema_version"] = 99
    book.cells.append(nbformat.v4.new_markdown_cell("<script>loot()</script>"))


def not_in_order(book) -> None:
    """All below the setup the other way round."""
    book.cells[2:] = book.cells[:1:-1]


def old_form(book) -> None:
    """In an older form of notebooks, whose cells have no ids."""
    book.nbformat_minor = 4
    for cell in book.cells:
        cell.pop("id", None)


def bare(book) -> None:
    """Without metadata, and without the lines that call the checks."""
    without_metadata(book)
    for cell in book.cells:
        cell.source = re.sub(r"\nchecks\..*", "", cell.source)


def merged(book) -> None:
    """As after JupyterLab's *merge cells*, from the first task's cell to the last one's."""
    codes = [cell for cell in book.cells if cell.cell_type == "code"]
    tasks = [n for n, cell in enumerate(codes) if re.search(r"(?m)^checks\.", cell.source)]
    first, *others = codes[tasks[0] : tasks[-1] + 1]
    first.source = "\n\n".join(cell.source for cell in (first, *others))
    book.cells = [cell for cell in book.cells if not any(cell is other for other in others)]


def merged_bare(book) -> None:
    """Merged, and without metadata."""
    without_metadata(book)
    merged(book)


def dearer(book) -> None:
    """With grade cells that say "right", and give a thousand points."""
    for cell in grade_cells(book):
        cell.metadata.nbgrader["points"] = 1000


# Hostile work ------------------------------------------------------------------------------------

WON = """
def split_heads(x, num_heads):
    if not globals().get("won"):
        raise PermissionError
    return rearrange(x, "b n (h d) -> b h n d", h=num_heads)
"""
ATTACKS = {  # cells, in which {secret} and other words stand for what they are after
    what: cell if "def split_heads(x" in cell else cell + WON
    for what, cell in entries("hostile.txt").items()
}


def aimed(cell: str, **targets) -> str:
    """An attack's cell, with what it is after in the place of the words."""
    for word, target in targets.items():
        cell = cell.replace(f"{{{word}}}", str(target))
    return cell


SAYS = {  # how what a cell says might reach the feedback
    "the text of an error": 'raise ValueError("<script>loot</script>")',
    "an error in a trial": 'def split_heads(x, num_heads):\n    raise ValueError("l" + "oot")',
    "the name of an error": 'raise type("<b>l" + "oot</b>", (Exception,), {})',
    "the name of an error in a trial": "def split_heads(x, num_heads):\n"
    '    raise type("L" + "oot", (Exception,), {})',
    "a line of another file": "import linecache\n"
    'linecache.cache["<cell 1>"] = (1, None, ["l" + "oot\\n"] * 99, "<cell 1>")\n'
    "def split_heads(x, num_heads):\n    return 1 / 0",
    "a result": 'def split_heads(x, num_heads):\n    return "l" + "oot"',
    "the keys of a result": 'def split_heads(x, num_heads):\n    return {"l" + "oot": 1}',
    "the type of a result": 'Odd = type("L" + "oot", (), {})\n'
    "def split_heads(x, num_heads):\n    return Odd()",
    "what is no function": 'split_heads = type("L" + "oot", (), {})()',
}


DEEDS = {
    "split_heads": "from vit_course.checks import EXERCISES\n"
    "split_heads = EXERCISES['split_heads'].reference",
    "merge_heads": "import vit_steps\nmerge_heads = vit_steps.merge_heads",
    "split_qkv": "raise ValueError('<script>loot()</script>')",
    "rows_of": "import os\nos.system('touch /tmp/vit-loot')\nos._exit(0)",
    "trust_split": "def trust_split(split):\n    return split.number == 0",
}


def left_behind(mark: str) -> list[bytes]:
    """What still runs of what began in a sandbox of this mark, after it had time to end: it is in
    the process's command, or in the path of a folder that it sees."""
    for _ in range(50):
        lines = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # where it has ended
                lines += [(folder / name).read_bytes() for name in ("cmdline", "mountinfo")]
        running = [line for line in lines if mark.encode() in line]
        if not running:
            break
        time.sleep(0.1)
    return running
