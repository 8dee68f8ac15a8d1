"""The learner's copy of the lessons, laid without losing anything of the learner's."""

import ast
import json
import re
from hashlib import sha256
from pathlib import Path

from .lessons import LESSONS, NOTEBOOKS, ROOT, without_answers
from .moved import advice

COPY = ROOT / "my_course"


def lay(folder: Path, solutions: bool | None = None) -> list[str]:
    """Bring the lessons, without outputs, and their solutions into the learner's folder; or the
    lessons alone, without the answers folded into them. By default what the folder has already;
    a new one gets both.

    A file that the learner changed is left alone; one that is as it was laid is refreshed, or
    taken away if the course has it no more. `laid.json` knows the hash of all that was ever laid.
    It is written before the files, so a copy that was stopped in the middle goes on as it should.

    Returns:
        What to tell the learner.
    """
    from vit_steps.files import write_whole  # brings torch, which the other commands do not need

    if file := next((path for path in (folder, *folder.parents) if path.is_file()), None):
        raise ValueError(f"{file} is a file, and the copy needs a folder: name another one")
    record = folder / ".jupyter" / "laid.json"
    record.parent.mkdir(parents=True, exist_ok=True)
    laid = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    had = not laid or any("/" in name for name in laid)
    solutions = had if solutions is None else solutions
    books = NOTEBOOKS if solutions else LESSONS
    wanted = {copy_name(path): without_outputs(path, solutions) for path in books}
    for name, content in wanted.items():
        laid[name] = sorted({*laid.get(name, []), hash_of(content)})
    write_whole(record, json.dumps(laid, indent=1).encode())
    kept, news = [], []
    for name in sorted(laid):
        path, content = folder / name, wanted.get(name)
        here = path.read_bytes() if path.exists() else None
        if here is not None and hash_of(here) not in laid[name]:
            kept.append(name)
        elif content is None:
            path.unlink(missing_ok=True)
            if path.parent != folder and path.parent.is_dir() and not any(path.parent.iterdir()):
                path.parent.rmdir()
        elif here is None or hash_of(here) != hash_of(content):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)
            old = here if "/" not in name and solutions == had else None
            if old is not None and (new := changed_sections(old, content)):
                news.append(f"New in {name}: {', '.join(new)}")
            here = content
        if here is not None and (plain := without_numbers(here)) != here:
            write_whole(path, plain)
    if not solutions:  # so a later start knows
        write_whole(record, json.dumps({name: laid[name] for name in wanted}, indent=1).encode())
    held = "the lessons, and solutions in a folder" if solutions else "the lessons"
    told = [f"{folder.name} holds {len(wanted)} notebooks: {held}.", *news]
    if kept:
        told.append("As you changed them, these were left alone: " + ", ".join(kept))
        told.append("To see the course's version again, rename yours and start once more.")
    own = [path.name for path in sorted(folder.glob("*.py"))]
    return told + advice({name: text_of(folder / name) for name in [*kept, *own]})


def standing(folder: Path) -> list[str]:
    """Where the learner is, in three lines: what is written, where to go on, what is old."""
    from .checks.keeping import PIECES, defined

    mine = folder / "my_vit.py"
    try:
        nodes = ast.parse(mine.read_text(encoding="utf-8")).body if mine.exists() else []
    except (SyntaxError, UnicodeDecodeError):
        nodes = []  # the lessons say what is wrong with it
    own = {defined(node) for node in nodes} & set(PIECES)
    left = [name for name in PIECES if name not in own]
    written = f"{mine.name} holds {len(own)} of your ViT's {len(PIECES)} pieces"
    if not mine.exists():
        written = f"There is no {mine.name} in this folder yet: it begins in lesson 01"
    elif left:
        written += f"; the next is {left[0]}"
    ran = [path for path in folder.glob("[0-9]*.ipynb") if b'"output_type"' in path.read_bytes()]
    last = max(ran, key=lambda path: path.stat().st_mtime).name if ran else ""
    middle = "to go on in the middle, click a cell, then Run > Run All Above Selected Cell"
    return [
        f"{written}.",
        f"You were last in {last}; {middle}." if last else "Begin with 00_start_here.ipynb.",
        "Each start is a new kernel: an output below a cell without a number is an old one.",
    ]


def text_of(path: Path) -> str:
    """What stands in a file of Python, or in a notebook's code."""
    text = path.read_bytes().decode("utf-8", errors="replace")
    if path.suffix != ".ipynb":
        return text
    try:
        cells = json.loads(text)["cells"]
        return "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    except (ValueError, LookupError, TypeError):
        return ""  # no longer a notebook


def copy_name(path: Path) -> str:
    """Where a notebook stands in the learner's copy; a solution's tab tells it from its lesson."""
    if path.parent.name == "solutions":
        return f"solutions/{path.stem}_solutions.ipynb"
    return path.name


def without_outputs(path: Path, answers: bool = True) -> bytes:
    """A notebook as a learner gets it: nothing run yet, links to solutions by their names there, or
    without the answers."""
    book = json.loads(path.read_text(encoding="utf-8"))
    for cell in [] if answers else book["cells"]:
        if cell["cell_type"] == "markdown":
            text = without_answers("".join(cell["source"]))
            cell["source"] = text.splitlines(keepends=True)
    book["cells"] = [cell for cell in book["cells"] if cell["source"]]
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    links = rb"solutions/(\d\d_\w+)\.ipynb"  # as they are named, and as they are linked to
    return re.sub(links, rb"solutions/\1_solutions.ipynb", as_file(book))


def changed_sections(old: bytes, new: bytes) -> list[str]:
    """The headings under which cells of the new notebook stand that the old one has not."""
    before = {source for _, source in sections(old)}
    return list(dict.fromkeys(name for name, source in sections(new) if source not in before))


def sections(content: bytes) -> list[tuple[str, str]]:
    """Each cell's source, with the heading under which it stands."""
    found, heading = [], "the title"
    for cell in json.loads(content)["cells"]:
        source = "".join(cell["source"])
        headings = re.findall(r"(?m)^##+ (.+)$", source) if cell["cell_type"] == "markdown" else []
        heading = headings[0] if headings else heading
        found.append((heading, source))
    return found


def without_numbers(content: bytes) -> bytes:
    """A notebook whose cells say that this kernel has not run them; its outputs stay."""
    try:
        book = json.loads(content)
        parts = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
        parts += [output for cell in parts for output in cell["outputs"]]
    except (ValueError, LookupError, TypeError):
        return content  # no longer a notebook
    numbered = [part for part in parts if part.get("execution_count") is not None]
    for part in numbered:
        part["execution_count"] = None
    return as_file(book) if numbered else content


def as_file(book: dict) -> bytes:
    """A notebook as Jupyter writes it."""
    return (json.dumps(book, indent=1, ensure_ascii=False) + "\n").encode()


def hash_of(content: bytes) -> str:
    """What tells whether a learner changed a notebook: its cells, not what running leaves behind.

    JupyterLab also writes to a notebook that is only opened.
    """
    try:
        cells = [(c["cell_type"], "".join(c["source"])) for c in json.loads(content)["cells"]]
        content = json.dumps(cells).encode()
    except (ValueError, LookupError, TypeError):
        pass  # no longer a notebook, so the learner's
    return sha256(content).hexdigest()
