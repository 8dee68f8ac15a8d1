"""Whether a device is written into the code: tensors made in forward, and autocast for cuda."""

import linecache
import threading
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from .functions import MADE, MEET, tensors_in
from .locations import current_location, users_frame


class Devices(TorchFunctionMode):
    """Enter it, run the model, and read `meetings` and `cuda_casts`: texts and where.

    A tensor that forward makes and that is told no device lies on the default one, and so do plain
    attributes, which .to(device) leaves; so does all that is computed from such alone. `.to` with a
    device or a tensor brings it along. Single numbers go with any device.
    """

    def __init__(self, module_paths: dict[int, str], strays: Iterable[Tensor]):
        super().__init__()
        self.module_paths = module_paths
        self.on_default = {id(x): x for x in strays}
        self.meetings: list[tuple[str, str]] = []
        self.cuda_casts: list[tuple[str, str]] = []
        self.autocast_init = torch.autocast.__init__

    def __enter__(self):
        listen, init, thread = self.hear_autocast, self.autocast_init, threading.get_ident()

        def listening(self, device_type, dtype=None, enabled=True, cache_enabled=None):
            init(self, device_type, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
            if device_type == "cuda" and threading.get_ident() == thread:
                listen()

        torch.autocast.__init__ = listening
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        torch.autocast.__init__ = self.autocast_init
        super().__exit__(*error)
        self.on_default.clear()

    def hear_autocast(self) -> None:
        """Write down an autocast for cuda, unless its line asks for it, as by x.is_cuda."""
        frame = users_frame()
        if frame is not None:
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
            if "cuda" in line and "is_" not in line:
                self.cuda_casts.append((line, current_location(self.module_paths)))

    def __torch_function__(self, func: Callable, types: Any, args: Any = (), kwargs: Any = None):
        """Run a function of torch, then look at what met, and what was made."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        result = func(*args, **kwargs)
        values, tensors = [*args, *kwargs.values()], tensors_in(args, kwargs)
        fixed = [x for x in tensors if id(x) in self.on_default]
        plain = all(isinstance(v, Tensor | torch.dtype | bool) for v in values)
        stays = plain and len(tensors) == 1
        brought = name in ("cuda", "type_as") or (name == "to" and not stays)
        new = name in MADE and not tensors and kwargs.get("device") is None
        if new or (fixed and len(fixed) == len(tensors) and not brought):
            for x in tensors_in([result], {}):
                self.on_default[id(x)] = x
        else:
            self.on_default.pop(id(result), None)
        others = [x for x in tensors if id(x) not in self.on_default]
        shapes = [tuple(x.shape) for x in fixed if x.ndim]
        if name in MEET and others and shapes:
            where = current_location(self.module_paths)
            self.meetings.append((f"a tensor {shapes[0]} meets the tokens in {name}", where))
        return result
