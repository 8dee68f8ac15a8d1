"""The learner's copy of the lessons, laid without losing anything of the learner's."""

import ast
import json
import re
from hashlib import sha256
from pathlib import Path

from .lessons import LESSONS, NOTEBOOKS, ROOT, without_answers

COPY = ROOT / "my_course"


def lay(folder: Path, solutions: bool | None = None) -> list[str]:
    """Bring lessons, without outputs, their solutions and the glossary into the learner's folder.

    Without solutions it gets the lessons alone, without the answers folded into them. By default
    it gets what it has already; a new one gets both.

    A file that the learner changed is left alone; one that is as it was laid is refreshed, or
    taken away if the course has it no more. `laid.json` knows the hash of all that was ever laid.
    It is written before the files, so a copy that was stopped in the middle goes on as it should.

    Returns:
        The lines to print.

    Raises:
        ValueError: the folder is a file, or lies in one.
    """
    from vit_steps.files import write_whole  # brings torch, which the other commands do not need

    if file := next((path for path in (folder, *folder.parents) if path.is_file()), None):
        raise ValueError(f"{file} is a file, and the copy needs a folder: name another one")
    record = folder / ".jupyter" / "laid.json"
    record.parent.mkdir(parents=True, exist_ok=True)
    laid = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    had_solutions = not laid or any("/" in name for name in laid)
    solutions = had_solutions if solutions is None else solutions
    paths = NOTEBOOKS if solutions else LESSONS
    course = {copy_name(path): without_outputs(path, solutions) for path in paths}
    course["GLOSSARY.md"] = (ROOT / "notebooks" / "GLOSSARY.md").read_bytes()  # lessons link to it
    for name, content in course.items():
        laid[name] = sorted({*laid.get(name, []), hash_of(content)})
    write_whole(record, json.dumps(laid, indent=1).encode())
    left_alone, news = [], []
    for name in sorted(laid):
        path, content = folder / name, course.get(name)
        current = path.read_bytes() if path.exists() else None
        if current is not None and hash_of(current) not in laid[name]:
            left_alone.append(name)
        elif content is None:
            path.unlink(missing_ok=True)
            current = None
            if path.parent != folder and path.parent.is_dir() and not any(path.parent.iterdir()):
                path.parent.rmdir()
        elif current is None or hash_of(current) != hash_of(content):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)
            is_lesson = name.endswith(".ipynb") and "/" not in name
            if current is not None and is_lesson and solutions == had_solutions:
                headings = changed_sections(current, content)
                news += [f"New in {name}: {', '.join(headings)}"] if headings else []
            current = content
        if current is not None and (plain := without_numbers(current)) != current:
            write_whole(path, plain)
    if not solutions:  # so a later start knows
        write_whole(record, json.dumps({name: laid[name] for name in course}, indent=1).encode())
    contents = "the lessons, and solutions in a folder" if solutions else "the lessons"
    told = [f"{folder.name} holds {len(paths)} notebooks: {contents}.", *news]
    if left_alone:
        told.append("As you changed them, these were left alone: " + ", ".join(left_alone))
        told.append("To see the course's version again, rename yours and start once more.")
    return told


def standing(folder: Path) -> list[str]:
    """Tell in three lines where the learner is: what is written, where to go on, what is old."""
    from .checks.keeping import PIECES, defined

    file = folder / "my_vit.py"
    try:
        nodes = ast.parse(file.read_text(encoding="utf-8")).body if file.exists() else []
    except (SyntaxError, UnicodeDecodeError):
        nodes = []  # the lessons say what is wrong with it
    names = {defined(node) for node in nodes}
    missing = [name for name in PIECES if name not in names]
    count = len(PIECES) - len(missing)
    written = f"{file.name} holds {count} of your ViT's {len(PIECES)} pieces"
    if not file.exists():
        written = f"There is no {file.name} in this folder yet: it begins in lesson 01"
    elif missing:
        written += f"; the next is {missing[0]}"
    ran = [path for path in folder.glob("[0-9]*.ipynb") if b'"output_type"' in path.read_bytes()]
    last = max(ran, key=lambda path: path.stat().st_mtime).name if ran else ""
    middle = "to go on in the middle, click a cell, then Run > Run All Above Selected Cell"
    return [
        f"{written}.",
        f"You were last in {last}; {middle}." if last else "Begin with 00_start_here.ipynb.",
        "Each start is a new kernel: an output below a cell without a number is an old one.",
    ]


def copy_name(path: Path) -> str:
    """Name a notebook in the learner's copy; a solution's tab tells it from its lesson."""
    if path.parent.name == "solutions":
        return f"solutions/{path.stem}_solutions.ipynb"
    return path.name


def without_outputs(path: Path, answers: bool = True) -> bytes:
    """Give a notebook as a learner gets it: not run, its links to the copy's names of solutions.

    `answers` keeps those that it folds.
    """
    book = json.loads(path.read_text(encoding="utf-8"))
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
        elif not answers:
            text = without_answers("".join(cell["source"]))
            cell["source"] = text.splitlines(keepends=True)
    book["cells"] = [cell for cell in book["cells"] if cell["source"]]
    links = rb"solutions/(\d\d_\w+)\.ipynb"  # as they are named, and as they are linked to
    return re.sub(links, rb"solutions/\1_solutions.ipynb", as_file(book))


def changed_sections(old: bytes, new: bytes) -> list[str]:
    """Give the headings under which cells of the new notebook stand that the old one has not."""
    before = {source for _, source in sections(old)}
    return list(dict.fromkeys(name for name, source in sections(new) if source not in before))


def sections(content: bytes) -> list[tuple[str, str]]:
    """Give each cell's source, with the heading under which it stands."""
    pairs, heading = [], "the title"
    for cell in json.loads(content)["cells"]:
        source = "".join(cell["source"])
        headings = re.findall(r"(?m)^##+ (.+)$", source) if cell["cell_type"] == "markdown" else []
        heading = headings[0] if headings else heading
        pairs.append((heading, source))
    return pairs


def without_numbers(content: bytes) -> bytes:
    """Take out of a notebook the numbers of cells that no kernel has run; its outputs stay."""
    try:
        book = json.loads(content)
        nodes = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
        nodes += [output for cell in nodes for output in cell["outputs"]]
    except (ValueError, LookupError, TypeError):
        return content  # no longer a notebook
    numbered = [node for node in nodes if node.get("execution_count") is not None]
    for node in numbered:
        node["execution_count"] = None
    return as_file(book) if numbered else content


def as_file(book: dict) -> bytes:
    """Write a notebook as Jupyter does."""
    return (json.dumps(book, indent=1, ensure_ascii=False) + "\n").encode()


def hash_of(content: bytes) -> str:
    """Hash what tells whether a learner changed a notebook: its cells, not what a run leaves.

    JupyterLab also writes to a notebook that is only opened.
    """
    try:
        cells = [(c["cell_type"], "".join(c["source"])) for c in json.loads(content)["cells"]]
        content = json.dumps(cells).encode()
    except (ValueError, LookupError, TypeError):
        pass  # no longer a notebook, so the learner's
    return sha256(content).hexdigest()
