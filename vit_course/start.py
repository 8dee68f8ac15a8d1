"""The learner's copy of the lessons, laid without losing anything of the learner's."""

import json
import re
from hashlib import sha256
from pathlib import Path

from .lessons import NOTEBOOKS, ROOT
from .moved import advice

COPY = ROOT / "my_course"


def lay(folder: Path) -> list[str]:
    """Bring the lessons, without outputs, and their solutions into the learner's folder.

    A file that the learner changed is left alone; one that is as it was laid is refreshed, or
    taken away if the course has it no more. `laid.json` knows the hash of all that was ever laid.
    It is written before the files, so a copy that was stopped in the middle goes on as it should.

    Returns:
        What to tell the learner.
    """
    from vit_steps.files import write_whole  # brings torch, which the other commands do not need

    record = folder / ".jupyter" / "laid.json"
    record.parent.mkdir(parents=True, exist_ok=True)
    laid = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    wanted = {copy_name(path): without_outputs(path) for path in NOTEBOOKS}
    for name, content in wanted.items():
        laid[name] = sorted({*laid.get(name, []), hash_of(content)})
    write_whole(record, json.dumps(laid, indent=1).encode())
    kept = []
    for name in sorted(laid):
        path, content = folder / name, wanted.get(name)
        here = path.read_bytes() if path.exists() else None
        if here is not None and hash_of(here) not in laid[name]:
            kept.append(name)
        elif content is None:
            path.unlink(missing_ok=True)
        elif here is None or hash_of(here) != hash_of(content):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)
    told = [f"{folder.name} holds {len(wanted)} notebooks: the lessons, and solutions in a folder."]
    if kept:
        told.append("As you changed them, these were left alone: " + ", ".join(kept))
        told.append("To see the course's version again, rename yours and start once more.")
    own = [path.name for path in sorted(folder.glob("*.py"))]
    return told + advice({name: text_of(folder / name) for name in [*kept, *own]})


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


def without_outputs(path: Path) -> bytes:
    """A notebook as a learner gets it: nothing run yet, links to solutions by their names there."""
    book = json.loads(path.read_text(encoding="utf-8"))
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    text = json.dumps(book, indent=1, ensure_ascii=False) + "\n"
    text = re.sub(r"\(solutions/(\d\d_\w+)\.ipynb\)", r"(solutions/\1_solutions.ipynb)", text)
    return text.encode()


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
