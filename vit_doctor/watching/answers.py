"""What a model gave: its logits in whatever they came, its errors, and what it printed."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from typing import Any, cast

from torch import Tensor

from .places import here


def rows_of(output: Any, batch: int) -> list[Tensor]:
    """The tensors (batch, classes) of floats in an output; what is called logits goes first.

    An output may be a tensor, a tuple or list, a dict, or an object with attributes.
    """
    if isinstance(output, Tensor):
        fits = output.ndim == 2 and len(output) == batch and output.is_floating_point()
        return [output] if fits else []
    if isinstance(output, (tuple, list)):
        parts = list(output)
    else:
        named = output if isinstance(output, dict) else getattr(output, "__dict__", {})
        parts = [named[n] for n in sorted(named, key=lambda n: n != "logits")]
    return [row for part in parts for row in rows_of(part, batch)]


class Ears:
    """Stands for sys.stdout while a model runs: keeps what this thread prints, and where.

    What other threads print goes on. There is one, `EARS`, which is never let go of: Python 3.11
    does not hold the stream that it is printing to, and another thread may be at it.
    """

    def __init__(self):
        self.others: Any = sys.stdout
        self.thread, self.known, self.text, self.where = 0, {}, "", ""

    @contextmanager
    def listen(self, known: dict[int, str]) -> Iterator[None]:
        """Keep what is printed inside as `text`, and as `where` the user's line that began it."""
        before = self.thread, self.known
        if sys.stdout is not self:
            self.others = sys.stdout
        self.thread, self.known, self.text, self.where = threading.get_ident(), known, "", ""
        try:
            with redirect_stdout(cast(Any, self)):
                yield
        finally:
            self.thread, self.known = before

    def write(self, text: str) -> int:
        """Keep the text of this thread, and hand on that of others."""
        if threading.get_ident() != self.thread:
            return self.others.write(text)
        self.where = self.where or here(self.known)
        self.text += text
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.others, name)


EARS = Ears()


@dataclass
class Answer:
    """What a model gave for a batch: the logits, or the error that it raised.

    Args:
        logits: (B, classes), or None.
        heads: all outputs of that shape, the logits first.
        error: what was raised, as text, "" if nothing was.
        where: the line that raised it.
        printed: what the model printed, and where it did.
    """

    logits: Tensor | None = None
    heads: list[Tensor] = field(default_factory=list)
    error: str = ""
    where: str = ""
    printed: tuple[str, str] = ("", "")
