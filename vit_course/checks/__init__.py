"""Exercise feedback: `checks.patchify(my_patchify)` says whether it is right, or what is wrong.

The exercises are those that the files of the lessons beside this one declare.
"""

from importlib import import_module
from pathlib import Path

from .choosing import quiz
from .compare import difference
from .engine import Check
from .keeping import mine, my_file, pieces
from .museum import exhibit, patient
from .sources import source

EXERCISES: dict[str, Check] = {
    name: declared
    for file in sorted(Path(__file__).parent.glob("lesson_*.py"))
    for name, declared in vars(import_module(f"{__name__}.{file.stem}")).items()
    if isinstance(declared, Check)
}
globals().update(EXERCISES)

__all__ = [
    "EXERCISES",
    "difference",
    "exhibit",
    "mine",
    "my_file",
    "patient",
    "pieces",
    "quiz",
    "source",
]
