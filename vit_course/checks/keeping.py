"""The learner's own model, `my_vit.py`: kept piece by piece, and taken up again.

When the check of a build cell says "right", the learner's source goes into one plain file beside
the notebooks. The file is the learner's: with all pieces of the model in it, the model imports
nothing of `vit_steps`, and whatever else stands in it is left alone. It stands in the folder in
which the notebook runs; the environment variable `MY_VIT` may name another file.
"""

# ruff: noqa: T201

import ast
import linecache
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from vit_steps.files import write_whole

from . import face
from .sources import first_line, globals_of, source_in_cells, source_of, used_names

# The pieces in the order in which they stand in the file, and where the package has its own.
PIECES = {
    "patchify": "vit_steps.patches",
    "PatchEmbedding": "vit_steps.patches",
    "TokenEmbedding": "vit_steps.tokens",
    "split_heads": "vit_steps.heads",
    "merge_heads": "vit_steps.heads",
    "split_qkv": "vit_steps.heads",
    "scaled_dot_product_attention": "vit_steps.attention",
    "MultiHeadAttention": "vit_steps.attention",
    "MLP": "vit_steps.encoder",
    "EncoderBlock": "vit_steps.encoder",
    "ViT": "vit_steps.vit",
    "train_step": "vit_steps.training.loop",
    "evaluate": "vit_steps.training.loop",
    "train": "vit_steps.training.loop",
    "rollout": "vit_steps.maps",
    "rename": "vit_steps.pretrained.layouts",
    "random_masking": "vit_steps.dropping",
    "unmask": "vit_steps.dropping",
}
HEADER = '"""My ViT, written piece by piece in the course "ViT, step by step"."""\n'
STAND_IN = "  # the course's, until yours is right"

# The judge of each piece: gives "right", or what is wrong. Each `Check` that keeps enters its own.
judges: dict[str, Callable[[Callable], str]] = {}
# Of the exercises that are no pieces: what gives the course's answer, and the learner's that was
# right in this session.
answers: dict[str, Callable[[], Callable]] = {}
solved: dict[str, Callable] = {}


def my_file(name: str = "") -> Path:
    """Say where the learner's file is, there or not yet, or another of this name beside it."""
    path = Path(os.environ.get("MY_VIT") or "my_vit.py")
    return path.with_name(name) if name else path


def keep(name: str, piece: Callable) -> str:
    """Put a piece into the learner's file, in the place of an earlier one of that name.

    Returns:
        What became of it, in words. It does not raise: a right answer is right, kept or not.
    """
    if is_courses(piece):
        return "but this is the course's own, so it is not kept as yours"
    path, source = my_file(), source_of(piece)
    if source is None:
        kind = "class" if name[0].isupper() else "def"
        return (
            f"to keep it in {path.name}, write it in a cell as `{kind} {name}`, without a line of "
            "%% above it, and without a decorator that hides it: its text cannot be found otherwise"
        )
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else HEADER
        text = with_piece(text, name, piece, source)
        alone = judge(name, getattr(run(text, path), name))
        if alone != "right":  # a method that was hung on the class elsewhere, for example
            return f"but not kept: what stands in its cell alone is not right ({alone})"
        write_whole(path, text.encode())
    except SyntaxError as error:
        reason = f"line {error.lineno} of {path.name} is not Python ({error.msg})"
        return f"but not kept: {reason}; mend it or delete the file, then run this cell again"
    except (OSError, ValueError) as error:
        return f"but not kept: {error}"
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        return f"but not kept: {path.name} does not run ({reason}); mend it or delete it"
    lost = "; download it, Colab forgets files with the session"
    return f"`{name}` is kept in {path.name}{lost if 'google.colab' in sys.modules else ''}"


def is_courses(value: Any) -> bool:
    """Tell whether what a name means is the course's own, and not the learner's."""
    return (getattr(value, "__module__", None) or "").startswith("vit_steps")


def with_piece(text: str, name: str, piece: Callable, source: str) -> str:
    """Give the text of the file with this piece, and what it needs, in it.

    Raises:
        SyntaxError: the text is not Python.
        ValueError: the piece uses something of the notebook that cannot be written down.
    """
    imports: list[str] = []
    definitions: dict[str, str] = {}
    collect(piece, source, imports, definitions)
    definitions[piece.__name__] = source
    if piece.__name__ != name:
        definitions[name] = f"{name} = {piece.__name__}"
    for defined, its_source in definitions.items():
        text = with_definition(text, defined, its_source, before=name)
    return with_imports(text, imports)


def stand_in(name: str) -> str:
    """Write the line that imports the course's piece."""
    return f"from {PIECES[name]} import {name}{STAND_IN}"


def collect(piece: Callable, source: str, imports: list[str], definitions: dict[str, str]) -> None:
    """Gather what a source uses beside itself: imports, and the learner's own helpers.

    Raises:
        ValueError: it uses something that stands in the notebook alone, such as a tensor.
    """
    around = globals_of(piece)
    for name in used_names(source):
        if name in PIECES and name != piece.__name__:
            imports.append(stand_in(name))
        elif name in around and name not in definitions and around[name] is not piece:
            write_down(name, around[name], piece.__module__, imports, definitions)


def write_down(
    name: str, value: Any, home: str, imports: list[str], definitions: dict[str, str]
) -> None:
    """Gather what a source uses: as an import, as the learner's own definition, or as a number.

    Raises:
        ValueError: it stands in the notebook alone, such as a tensor.
    """
    # The notebook's own definition of what the course's form, imported later, hides.
    cell_source = source_in_cells(value) if is_courses(value) else None
    line = import_line(name, value, home)
    if cell_source is None and line is not None:
        imports.append(line)
        return
    helper = cell_source or source_of(value)
    if helper is not None:
        definitions[name] = ""  # holds its place while its own helpers are gathered
        collect(value, helper, imports, definitions)
        del definitions[name]
        definitions[name] = helper
    elif isinstance(value, (int, float, str, tuple, type(None))):
        definitions[name] = f"{name} = {value!r}"
    else:
        raise ValueError(
            f"it uses `{name}`, which stands in your notebook alone; give it as an argument, or "
            "make it inside"
        )


def import_line(name: str, value: Any, home: str) -> str | None:
    """Write the line that imports a value under this name; None where it is the learner's own."""
    if isinstance(value, ModuleType):
        above, _, last = value.__name__.rpartition(".")
        line = f"from {above} import {last}" if above else f"import {last}"
        return line if name == last else f"{line} as {name}"
    module = getattr(value, "__module__", None)
    own_name = getattr(value, "__name__", None)
    if module in (None, home, "__main__") or own_name is None:
        return None
    parts = module.split(".")  # rearrange is einops.einops', and einops' too: the shorter
    for length in range(1, len(parts) + 1):
        package = ".".join(parts[:length])
        if getattr(sys.modules.get(package), own_name, None) is value:
            return f"from {package} import {own_name}" + ("" if name == own_name else f" as {name}")
    return None


def defined(node: ast.stmt) -> str | None:
    """Give the name that a statement at the top of a file defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


def with_definition(text: str, name: str, source: str, before: str) -> str:
    """Give the text with this definition: in the old one's place, or before the later pieces."""
    lines, nodes = text.rstrip("\n").splitlines(), ast.parse(text).body
    order = list(PIECES)
    later = order[order.index(before) + (name == before) :]
    old = next((node for node in nodes if defined(node) == name), None)
    following = next((node for node in nodes if defined(node) in later), None)
    if old:
        lines[first_line(old) - 1 : old.end_lineno] = source.splitlines()
    elif following:
        at = first_line(following) - 1
        lines[at:at] = [*source.splitlines(), "", ""]
    else:
        lines += ["", "", *source.splitlines()]
    return "\n".join(lines) + "\n"


def with_imports(text: str, imports: Iterable[str]) -> str:
    """Give the text with these imports below its docstring, and no needless stand-in."""
    nodes = ast.parse(text).body
    names = {defined(node) for node in nodes}
    lines = text.splitlines()
    stand_ins = {stand_in(name) for name in PIECES if name in names}
    missing = {line for line in imports if line not in stand_ins and line not in lines}
    new = sorted(missing, key=lambda line: (STAND_IN in line, line.startswith("from"), line))
    at, imported = 0, False
    for number, node in enumerate(nodes):
        documents = number == 0 and isinstance(node, ast.Expr)
        if not documents and not isinstance(node, (ast.Import, ast.ImportFrom)):
            break
        at, imported = node.end_lineno or 0, not documents
    lines[at:at] = new if imported or not new else ["", *new]
    return "\n".join(line for line in lines if line not in stand_ins) + "\n"


def mine(*names: str) -> Any:
    """Give pieces of the learner's own model, each the package's where the learner has none yet.

    It prints which is whose. A piece of the file that is no longer right is said so, and not used.
    The answer to an exercise that is no piece is the learner's within the session in which it was
    right.

    Args:
        names: of pieces, such as "split_heads", "ViT", or of other exercises.

    Returns:
        The piece, or a tuple of them in the order of the names.

    Raises:
        ValueError: there is no piece and no exercise of that name.
    """
    if unknown := [name for name in names if name not in PIECES and name not in answers]:
        raise ValueError(f"no piece {unknown[0]!r}; there are {', '.join(PIECES)}")
    learners = load() if any(name in PIECES for name in names) else {}
    text = whose(
        [name for name in names if name in learners],
        [name for name in names if name not in learners and name not in solved],
        [name for name in names if name in solved],
    )
    print(text)
    pieces = [learners.get(name) or solved.get(name) or courses(name) for name in names]
    return pieces[0] if len(names) == 1 else tuple(pieces)


def courses(name: str) -> Callable:
    """Give the course's own piece, or its answer to an exercise."""
    return getattr(import_module(PIECES[name]), name) if name in PIECES else answers[name]()


def pieces() -> None:
    """Show which pieces of the model, lessons 01 to 06, the learner has written: on the map."""
    learners = load()
    mine = [name for name in face.MODEL if name in learners]
    text = whose(mine, [name for name in face.MODEL if name not in learners])
    face.show(text, face.progress(mine))


def written() -> set[str]:
    """Name the pieces that stand in the learner's file, right or not, without running it."""
    try:
        nodes = ast.parse(my_file().read_text(encoding="utf-8")).body
    except (OSError, SyntaxError, ValueError):
        return set()
    return {name for node in nodes if (name := defined(node)) in PIECES}


def whose(in_file: list[str], course: list[str], in_session: Sequence[str] = ()) -> str:
    """Say which pieces are the learner's, and which the course's."""
    missing = "" if my_file().exists() else f"no {my_file().name} in this folder, so "
    lines = {
        f"yours, from {my_file().name}": in_file,
        "yours": in_session,
        f"{missing}the course's": [name for name in course if name in PIECES],
        "not solved in this session, so the course's": [n for n in course if n not in PIECES],
    }
    return "\n".join(f"{words}: {', '.join(names)}" for words, names in lines.items() if names)


def run(text: str, path: Path) -> ModuleType:
    """Run the learner's file, from its text as it stands now, and give its module."""
    module = ModuleType("my_vit")
    module.__file__ = str(path)
    sys.modules["my_vit"] = module  # where dataclasses look
    # Where error messages, and the search for a stub's dots, find the lines.
    linecache.cache[str(path)] = (len(text), None, text.splitlines(keepends=True), str(path))
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module


def judge(name: str, piece: Callable) -> str:
    """Give the message of the piece's check: "right", or what is wrong."""
    return judges[name](piece) if name in judges else "right"


def load() -> dict[str, Callable]:
    """Give the pieces in the learner's file that are right; print so where one is not."""
    path = my_file()
    if not path.exists():
        return {}
    try:
        module = run(path.read_text(encoding="utf-8"), path)
    except (Exception, SystemExit) as error:
        where = f" at line {error.lineno}" if isinstance(error, SyntaxError) else ""
        reason = getattr(error, "msg", None) or error
        print(
            f"{path.name} does not run: {type(error).__name__}{where}: {reason}\n"
            "Mend it, or delete it and run your build cells again; until then the course's own "
            "pieces stand in."
        )
        return {}
    right: dict[str, Callable] = {}
    spoilt: list[str] = []
    for name in PIECES:
        piece = getattr(module, name, None)
        if piece is None or is_courses(piece):
            continue
        verdict = judge(name, piece)
        if verdict == "right":
            right[name] = piece
            continue
        used = [bad for bad in spoilt if bad in used_names(source_of(piece) or "")]
        spoilt.append(name)
        if used:
            print(f"{name} in {path.name} uses {used[0]}, so the course's stands in for it too.")
        else:
            print(f"{name} in {path.name} is no longer right, so the course's stands in: {verdict}")
    return right
