"""The learner's own model, `my_vit.py`: kept piece by piece, whole in the end, and theirs.

A kernel plays the learner. It runs the build cells of the solutions of lessons 01 to 06, as a
learner would, each lesson in a cleared notebook, and a few wrong turns after that.
"""

import ast
import re
import shutil
import sys
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import nbformat
import pytest
import torch
from helpers import sh
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

import vit_steps
from vit_course import checks, explorer, lessons
from vit_course.checks import keeping
from vit_course.checks.keeping import HEADER, PIECES
from vit_course.explorer import packing
from vit_steps import ViT, ViTConfig

MODEL = list(PIECES)[: list(PIECES).index("ViT") + 1]
LESSONS = ("01_patches", "02_tokens", "03_heads", "04_attention", "05_encoder", "06_vit")
WEIGHTS = Path(vit_steps.__file__).parent / "weights" / "scattered.safetensors"
CONFIG = ViTConfig(
    image_size=12, patch_size=4, in_channels=2, num_classes=7, embed_dim=24, depth=3, num_heads=4,
    mlp_ratio=2.5,
)  # fmt: skip


# A session in Colab: the file stands where the notebook runs, and is gone the next day.
IN_COLAB = """
import os, sys, types
del os.environ["MY_VIT"]
sys.modules["google.colab"] = types.ModuleType("google.colab")
"""
VANISHED = 'os.rename("my_vit.py", "gone.py")\nchecks.mine("patchify")'
PUT_BACK = 'os.rename("gone.py", "my_vit.py")\nchecks.mine("patchify")'


def code_of(path: Path) -> list[str]:
    book = nbformat.read(path, as_version=4)
    return [cell.source for cell in book.cells if cell.cell_type == "code"]


def kept_by(source: str) -> list[str]:
    """The pieces that a cell gives to their checks."""
    return [name for name in PIECES if f"checks.{name}({name})" in source]


def lesson(name: str) -> list[str]:
    """A fresh notebook: the cells of a lesson's solutions as far as its last build cell."""
    sources = code_of(lessons.ROOT / "notebooks" / "solutions" / f"{name}.ipynb")
    last = max((i for i, source in enumerate(sources) if kept_by(source)), default=-1)
    return ["%reset -f", *sources[: last + 1]]


def at(folder: Path) -> list[str]:
    """The cells that begin to write another my_vit.py."""
    folder.mkdir(exist_ok=True)
    return [f"import os\nos.environ['MY_VIT'] = {str(folder / 'my_vit.py')!r}"]


def build_cell(name: str, piece: str) -> str:
    return next(c for c in lesson(name) if piece in kept_by(c))


ADDED = '\n\nNOTE = "my own"\n\n\ndef double(x):  # a helper of mine\n    return 2 * x\n'
OTHER_PATCHIFY = """
def patchify(images, patch_size):
    # the second time, by hand
    B, C, H, W = images.shape
    P = patch_size
    x = images.reshape(B, C, H // P, P, W // P, P)
    return x.permute(0, 2, 4, 3, 5, 1).reshape(B, H // P * (W // P), P * P * C)


checks.patchify(patchify)
"""
WITH_A_VARIABLE = """
patterns = torch.zeros(1), "b c (row p1) (col p2) -> b (row col) (p1 p2 c)"
pattern = patterns[1]
zero = patterns[0]


def patchify(images, patch_size):
    return rearrange(images, pattern, p1=patch_size, p2=patch_size) + zero


checks.patchify(patchify)
"""
DECORATED = """
@torch.no_grad()
def evaluate(model, data):
    mode = model.training
    logits = model.eval()(data.images)
    model.train(mode)
    right = logits.argmax(dim=1) == data.labels
    return F.cross_entropy(logits, data.labels).item(), right.float().mean().item()


checks.evaluate(evaluate)
"""
RUN_ALL_BEFORE = """
from vit_steps.encoder import Encoder, EncoderBlock
from vit_steps.patches import PatchEmbedding, grid_size
from vit_steps.tokens import TokenEmbedding
from vit_steps.vit import ViTConfig
"""
BROKEN = "def patchify(:"
CLASS, _, METHOD = checks.MLP.answer.partition("    def forward")
HUNG = (CLASS, dedent(f"    def forward{METHOD}") + "\n\nMLP.forward = forward\nchecks.MLP(MLP)")


def plain(output):
    """The text of an output: what it printed, or what stands beside its card."""
    card = output.get("data", {}).get("text/plain")
    return f"{card}\n" if card else output.get("text", "")


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """Of each turn of a learner's session: the file that it left, and what its cells said."""
    root = tmp_path_factory.mktemp("session")
    write = "with open(os.environ['MY_VIT'], 'w') as file: file.write({})"
    whole = f"open({str(root / 'whole' / 'my_vit.py')!r}).read()"
    reset, setup, *_ = lesson("01_patches")
    skipped = [reset, setup, build_cell("01_patches", "PatchEmbedding")]
    skipped += [*lesson("05_encoder"), *lesson("06_vit")]
    # The lesson was run to its end, with its stub open; then the build cell is filled, and run.
    late = [*at(root / "unused"), *lesson("06_vit"), *at(root / "late")]
    late += [RUN_ALL_BEFORE, build_cell("06_vit", "ViT")]
    turns = {
        "whole": [cell for name in LESSONS for cell in lesson(name)],
        "again": [write.format(f"{whole} + {ADDED!r}"), OTHER_PATCHIFY],
        "variable": [WITH_A_VARIABLE],
        "decorated": [DECORATED],
        "skipped": skipped,
        "late": late,
        "broken": [write.format(repr(BROKEN)), OTHER_PATCHIFY],
        "hung": HUNG,
        "others": lesson("11_other_vits"),
        "colab": [IN_COLAB, OTHER_PATCHIFY, VANISHED, PUT_BACK],
    }
    cells = [
        new_code_cell(source, metadata={"turn": name})
        for name, sources in turns.items()
        for source in [*at(root / name), *sources]
    ]
    book, resources = new_notebook(cells=cells), {"metadata": {"path": str(root)}}
    NotebookClient(book, timeout=120, resources=resources).execute()
    said = dict.fromkeys(turns, "")
    for cell in book.cells:
        said[cell.metadata.turn] += "".join(map(plain, cell.outputs))
    files = {name: root / name / "my_vit.py" for name in turns}
    return {name: SimpleNamespace(file=files[name], said=said[name]) for name in turns}


@pytest.fixture
def mine(session):
    """The whole file, as a module."""
    path = session["whole"].file
    return keeping.run(path.read_text("utf-8"), path)


def defined_in(path: Path) -> list[str]:
    body = ast.parse(path.read_text("utf-8")).body
    return [node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]


def alone(folder: Path, source: str) -> str:
    """What a fresh Python in this folder prints, in which the course's package is not there."""
    without = "import sys; sys.modules['vit_steps'] = None\n"
    return sh(sys.executable, "-W", "error", "-c", without + source, cwd=folder)


# The whole file ----------------------------------------------------------------------------------


def test_every_piece_is_right_and_kept(session):
    whole = session["whole"]
    for name in MODEL:
        assert f"right: `{name}` is kept in my_vit.py\n" in whole.said
    assert [name for name in defined_in(whole.file) if name in MODEL] == MODEL


def test_the_files_import_nothing_of_the_course(session):
    for name in ("whole", "others"):
        text = session[name].file.read_text("utf-8")
        packages = set(re.findall(r"(?m)^(?:from|import) (\w+)", text))
        assert packages <= {"torch", "einops", "dataclasses", "math", "fractions"}
        assert "vit_steps" not in text
    others = set(defined_in(session["others"].file))
    assert {"random_masking", "unmask"} <= others


def test_it_is_plain_and_readable(session):
    path = session["whole"].file
    text, names = path.read_text("utf-8"), defined_in(path)
    assert text.startswith(HEADER)
    assert not re.search(r"\.\.\.|checks\.", text)
    assert len(names) == len(set(names))  # nothing stands twice
    assert "init_weights" in names
    assert names.index("ViTConfig") < names.index("ViT")
    tops = re.findall(r"(?m)^(from|import|def|class|@)", text)
    assert tops == sorted(tops, key=lambda word: word not in ("from", "import"))  # imports first


@pytest.mark.slow
def test_the_lines_of_the_lesson_read_a_digit(session, tmp_path):
    """In any folder, with the two files that the lesson names."""
    text = (lessons.ROOT / "notebooks" / "06_vit.ipynb").read_text("utf-8")
    cells = nbformat.reads(text, as_version=4).cells
    blocks = [b for c in cells for b in re.findall(r"```python\n(.*?)```", c.source, re.DOTALL)]
    (lines,) = [block for block in blocks if "from my_vit import" in block]
    shutil.copy(session["whole"].file, tmp_path)
    shutil.copy(WEIGHTS, tmp_path)
    assert alone(tmp_path, lines) == "0\n"


def test_the_same_seed_gives_the_packages_weights(mine):
    torch.manual_seed(3)
    learners = mine.ViT(CONFIG).state_dict()
    torch.manual_seed(3)
    packages = ViT(CONFIG).state_dict()
    assert list(learners) == list(packages)
    for name, weight in packages.items():
        assert torch.equal(learners[name], weight), name


def test_its_own_configuration_will_do_as_well(mine):
    fields = ("image_size", "patch_size", "in_channels", "num_classes", "embed_dim", "depth")
    fields += ("num_heads", "mlp_ratio")
    for field in fields:
        assert getattr(mine.ViTConfig(), field) == getattr(ViTConfig(), field)  # the same defaults
    model, same = mine.ViT(mine.ViTConfig(**{f: getattr(CONFIG, f) for f in fields})), ViT(CONFIG)
    same.load_state_dict(model.state_dict())
    assert packing.pack(model) == packing.pack(same)
    assert '"title":"Your ViT"' in explorer.page(model)


def test_the_course_takes_it_up_again(session, capsys, monkeypatch):
    monkeypatch.setenv("MY_VIT", str(session["whole"].file))
    checks.pieces()
    assert capsys.readouterr().out == f"yours, from my_vit.py: {', '.join(MODEL)}\n"
    own, block = checks.mine("ViT", "EncoderBlock")
    assert own is not ViT
    assert block.__module__ == own.__module__ == "my_vit"
    assert isinstance(own(CONFIG).blocks[0], block)


# What a learner does on the way ------------------------------------------------------------------


def test_a_second_run_replaces_the_piece_and_leaves_the_learners_additions(session):
    assert "right: `patchify` is kept in my_vit.py" in session["again"].said
    before, after = (session[name].file.read_text("utf-8") for name in ("whole", "again"))
    assert after.count("def patchify") == 1
    assert "# the second time, by hand" in after
    rest = before[before.index("class PatchEmbedding") :].rstrip("\n")
    assert after.endswith(rest + "\n" + ADDED)


@pytest.mark.parametrize(
    ("name", "reason", "left"),
    [
        ("variable", "it uses `zero`, which stands in your notebook alone", None),
        ("hung", "what stands in its cell alone is not right", None),  # a method in another cell
        ("broken", "line 1 of my_vit.py is not Python", BROKEN),  # and it is not written over
    ],
)
def test_what_cannot_be_kept_is_told_and_nothing_is_written(session, name, reason, left):
    file = session[name].file
    assert f"right: but not kept: {reason}" in session[name].said
    assert (file.read_text("utf-8") if file.exists() else None) == left


def test_a_decorated_function_is_kept_with_what_it_uses(session):
    assert "right: `evaluate` is kept in my_vit.py" in session["decorated"].said


def test_who_skipped_pieces_goes_on_with_the_courses(session, capsys, monkeypatch):
    path = session["skipped"].file
    own = ["PatchEmbedding", "MLP", "EncoderBlock", "ViT"]
    assert [name for name in defined_in(path) if name in MODEL] == own
    text = path.read_text("utf-8")
    lines = [line for line in text.splitlines() if "vit_steps" in line]
    expected = {"TokenEmbedding", "MultiHeadAttention"}
    assert {re.search(r"import (\w+)", line)[1] for line in lines} == expected
    assert all("the course's, until yours is right" in line for line in lines)
    monkeypatch.setenv("MY_VIT", str(path))
    model = checks.mine("ViT")(CONFIG)
    assert capsys.readouterr().out == "yours, from my_vit.py: ViT\n"
    assert model(torch.randn(2, 2, 12, 12)).shape == (2, 7)


def test_a_lesson_that_was_run_to_its_end_first_keeps_the_learners_configuration(session):
    """There `ViTConfig` in the notebook is the package's by then."""
    assert "right: `ViT` is kept in my_vit.py" in session["late"].said
    text = session["late"].file.read_text("utf-8")
    assert "class ViTConfig" in text
    assert not re.search(r"import.*ViTConfig", text)


# A file that something happened to ---------------------------------------------------------------


@pytest.fixture
def own_file(session, tmp_path, monkeypatch):
    path = tmp_path / "my_vit.py"
    shutil.copy(session["whole"].file, path)
    monkeypatch.setenv("MY_VIT", str(path))
    return path


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("raise SystemExit", "SystemExit"),
        ("x = 1 / 0", "ZeroDivisionError: division by zero"),
        ("def half_written(", "SyntaxError at line"),
    ],
)
def test_a_file_that_does_not_run_is_told(own_file, capsys, line, what):
    with own_file.open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")
    assert checks.mine("EncoderBlock") is vit_steps.EncoderBlock
    output = capsys.readouterr().out
    assert f"my_vit.py does not run: {what}" in output
    assert "delete it and run your build cells again" in output
    assert output.endswith("the course's: EncoderBlock\n")


def test_what_is_no_piece_is_taken_up_within_its_session_and_not_kept(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("MY_VIT", str(tmp_path / "my_vit.py"))
    monkeypatch.delitem(keeping.solved, "negative", raising=False)

    def negative(picture):
        return torch.ones_like(picture) - picture

    checks.negative(lambda picture: -picture)
    checks.mine("negative")
    checks.negative(negative)
    assert checks.mine("negative", "split_heads") == (negative, vit_steps.split_heads)
    monkeypatch.delitem(keeping.solved, "negative")
    missing = "no my_vit.py in this folder, so the course's: "
    unsolved = "not solved in this session, so the course's: negative"
    output = capsys.readouterr().out.splitlines()
    assert output[1:] == [unsolved, "right", "yours: negative", f"{missing}split_heads"]
    assert not (tmp_path / "my_vit.py").exists()


def spoilt(path, part, by):
    text = path.read_text("utf-8")
    assert text.count(part) == 1
    path.write_text(text.replace(part, by), encoding="utf-8")


@pytest.mark.slow
def test_what_uses_a_spoilt_piece_is_not_blamed_for_it(own_file, capsys):
    spoilt(own_file, "self.mlp(self.norm2(x))", "self.mlp(x)")
    assert checks.mine("ViT") is ViT
    output = capsys.readouterr().out
    assert "EncoderBlock in my_vit.py is no longer right" in output
    assert "ViT in my_vit.py uses EncoderBlock, so the course's stands in for it too." in output
    assert output.count("no longer right") == 1


def test_a_piece_that_was_spoilt_by_hand_is_told_and_not_used(own_file, capsys):
    spoilt(own_file, "self.norm(x[:, 0])", "x[:, 0]")
    piece, block = checks.mine("ViT", "EncoderBlock")
    output = capsys.readouterr().out
    assert (
        "ViT in my_vit.py is no longer right, so the course's stands in: the final norm" in output
    )
    assert "yours, from my_vit.py: EncoderBlock" in output
    assert piece is ViT
    assert block is not vit_steps.EncoderBlock


def test_in_colab_the_file_may_vanish_with_the_session_and_be_put_back(session):
    said = session["colab"].said
    assert said.startswith("right: `patchify` is kept in my_vit.py; download it, Colab forgets")
    gone, back = "the course's: patchify", "yours, from my_vit.py: patchify"
    assert said.index(gone) < said.index(back)
