"""What an older copy of a lesson, or a `my_vit.py`, still calls by its old name or place."""

import re
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec

LINE = re.compile(r"(?m)^[ \t]*(from (vit_steps[\w.]*) import (\w[\w, ]*\w))")
MOVED = {  # the rooms that are packages of their own today, or parts of one
    "checks": "vit_course.checks",
    "plots": "vit_course.plots",
    "explorer": "vit_course.explorer",
    "doctor": "vit_doctor",
}
CALLS = {"checks.question(": "checks.quiz(N)"}  # N is the lesson
GONE = "see the course's own copy: not all of this is there any more"


def advice(texts: dict[str, str]) -> list[str]:
    """What to write in place of imports and calls that no longer hold.

    Args:
        texts: code, by the name of the file in which it stands.

    Returns:
        A line for each such import or call, with all files in which it stands.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for file, text in texts.items():
        for old, module, names in dict.fromkeys(LINE.findall(text)):
            if (new := line_today(module, names.split(", "))) != old:
                found.setdefault((old, new), []).append(file)
        for old, new in CALLS.items():
            if old in text:
                found.setdefault((f"{old}…)", new), []).append(file)
    return [
        f"In {', '.join(files)}, in place of `{old}`, {f'write `{new}`' if new else GONE}."
        for (old, new), files in found.items()
    ]


def line_today(module: str, names: list[str]) -> str:
    """The line that imports these names today; empty if one of them is nowhere."""
    parts: dict[str, list[str]] = {}
    for named in names:
        name, _, alias = named.partition(" as ")
        if (module, name) == ("vit_steps", "doctor"):
            parts[f"import vit_doctor as {alias or name}"] = []
        elif place := place_of(module, name):
            parts.setdefault(f"from {place} import ", []).append(named)
        else:
            return ""
    return "; ".join(start + ", ".join(group) for start, group in parts.items())


def place_of(module: str, name: str) -> str | None:
    """The module from which a name can be imported today; None if there is none."""
    places = [module, *(module.replace(f"vit_steps.{old}", MOVED[old]) for old in MOVED)]
    if module == "vit_steps" and name in MOVED:
        places.append(MOVED[name].rpartition(".")[0])
    for place in places:
        if is_there(place, name):
            return place
    from .checks.keeping import PIECES  # where the learner's pieces come from

    return PIECES.get(name)


def is_there(module: str, name: str) -> bool:
    """Whether a module has this name, or a module of it.

    A folder that git left behind empty is none, though Python would import it.
    """
    with suppress(ImportError):
        if hasattr(import_module(module), name):
            return True
        spec = find_spec(f"{module}.{name}")
        return spec is not None and spec.origin is not None
    return False
