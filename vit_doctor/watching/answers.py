"""What a model gave: its logits in whatever they came, its errors, and what it printed."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from typing import Any, cast

from torch import Tensor

from .locations import current_location


def floats_in(output: Any) -> list[Tensor]:
    """Find the tensors of floats in an output; what is called logits goes first.

    An output may be a tensor, a tuple or list, a dict, or an object with attributes.
    """
    if isinstance(output, Tensor):
        return [output] if output.is_floating_point() else []
    if isinstance(output, (tuple, list)):
        parts = list(output)
    else:
        fields = output if isinstance(output, dict) else getattr(output, "__dict__", {})
        parts = [fields[name] for name in sorted(fields, key=lambda name: name != "logits")]
    return [x for part in parts for x in floats_in(part)]


class Listener:
    """Stands for sys.stdout while a model runs: keeps what this thread prints, and where.

    What other threads print goes on. There is one, `STDOUT`, which is never let go of: Python 3.11
    does not hold the stream that it is printing to, and another thread may be at it.
    """

    def __init__(self):
        self.stream: Any = sys.stdout
        self.thread, self.module_paths, self.text, self.where = 0, {}, "", ""

    @contextmanager
    def listen(self, module_paths: dict[int, str]) -> Iterator[None]:
        """Keep what is printed inside as `text`, and as `where` the user's line that began it."""
        before = self.thread, self.module_paths
        if sys.stdout is not self:
            self.stream = sys.stdout
        self.thread, self.module_paths = threading.get_ident(), module_paths
        self.text, self.where = "", ""
        try:
            with redirect_stdout(cast(Any, self)):
                yield
        finally:
            self.thread, self.module_paths = before

    def write(self, text: str) -> int:
        """Keep the text of this thread, and hand on that of others."""
        if threading.get_ident() != self.thread:
            return self.stream.write(text)
        self.where = self.where or current_location(self.module_paths)
        self.text += text
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


STDOUT = Listener()


@dataclass
class Answer:
    """What a model gave for a batch: the logits, or the error that it raised."""

    logits: Tensor | None = None  # (B, classes)
    heads: list[Tensor] = field(default_factory=list)  # all of that shape, the logits first
    error: str = ""  # what was raised
    where: str = ""  # the line that raised it
    printed: tuple[str, str] = ("", "")  # what the model printed, and where
