"""Whether a device is written into the code: tensors made in forward, and autocast for cuda."""

import linecache
import sys
import threading
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from .places import here, theirs
from .words import MADE, MEET, tensors_in


class Devices(TorchFunctionMode):
    """Enter it, run the model, and read `met` and `casts`: what is said, and where.

    A tensor that forward makes and that is told no device lies on the default one, and so do plain
    attributes, which .to(device) leaves; so does all that is computed from such alone. `.to` with a
    device or a tensor brings it along. Single numbers go with any device.
    """

    def __init__(self, known: dict[int, str], strays: Iterable[Tensor]):
        super().__init__()
        self.known = known
        self.made = {id(x): x for x in strays}
        self.met: list[tuple[str, str]] = []
        self.casts: list[tuple[str, str]] = []
        self.kept = torch.autocast.__init__

    def __enter__(self):
        listen, kept, thread = self.cast, self.kept, threading.get_ident()

        def listening(self, device_type, dtype=None, enabled=True, cache_enabled=None):
            kept(self, device_type, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
            if threading.get_ident() == thread:
                listen(device_type)

        torch.autocast.__init__ = listening
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        torch.autocast.__init__ = self.kept
        super().__exit__(*error)
        self.made.clear()

    def cast(self, device_type: str) -> None:
        """Write down an autocast for cuda, unless its line asks for it, as by x.is_cuda."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not theirs(frame):
            frame = frame.f_back
        if device_type == "cuda" and frame is not None:
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
            if "cuda" in line and "is_" not in line:
                self.casts.append((line, here(self.known)))

    def __torch_function__(self, func: Callable, types: Any, args: Any = (), kwargs: Any = None):
        """Run a function of torch, then look at what met, and what was made."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        result = func(*args, **kwargs)
        values, tensors = [*args, *kwargs.values()], tensors_in(args, kwargs)
        fixed = [x for x in tensors if id(x) in self.made]
        kept = len(tensors) == 1 and all(isinstance(v, (Tensor, torch.dtype, bool)) for v in values)
        brought = name in ("cuda", "type_as") or (name == "to" and not kept)
        if (name in MADE and not tensors and kwargs.get("device") is None) or (
            fixed and len(fixed) == len(tensors) and not brought
        ):
            for x in result if isinstance(result, (tuple, list)) else (result,):
                if isinstance(x, Tensor):
                    self.made[id(x)] = x
        else:
            self.made.pop(id(result), None)
        others = [x for x in tensors if id(x) not in self.made]
        if name in MEET and others and any(x.ndim for x in fixed):
            shape = tuple(next(x for x in fixed if x.ndim).shape)
            self.met.append((f"a tensor {shape} meets the tokens in {name}", here(self.known)))
        return result
