"""What a model gave: its logits in whatever they came, its errors, and what it printed."""

import io
import sys
import threading
from dataclasses import dataclass, field
from typing import Any

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


class Ears(io.StringIO):
    """Listens to what is printed, and where."""

    def __init__(self, known: dict[int, str]):
        super().__init__()
        self.known, self.where = known, ""
        self.thread, self.others = threading.get_ident(), sys.stdout

    def write(self, text: str) -> int:
        """Keep the text, and the first line of the user's that wrote one; other threads print."""
        if threading.get_ident() != self.thread:
            return self.others.write(text)
        self.where = self.where or here(self.known)
        return super().write(text)


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
