"""Lesson 07: what a run is known by, so that one is never taken for another."""

import sys
import zlib
from functools import partial
from hashlib import sha256
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .dataset import FileDataset, Pictures


def fingerprint(data: Pictures) -> str:
    """The number of images and a sum over all their bytes, so that other data are noticed.

    Of pictures that are read as they are needed, over names, sizes and labels of the files.
    """
    total = crc(data.labels, zlib.crc32(repr(data.classes).encode("utf-8", "surrogatepass")))
    if isinstance(data, FileDataset):
        for file in data.files:
            about = f"{file.parent.name}/{file.name} {file.stat().st_size}"
            total = zlib.crc32(about.encode("utf-8", "surrogatepass"), total)
    else:
        total = crc(data.pixels, zlib.crc32(str(data.white).encode(), total))
    return f"{len(data)} images, sum {total:08x}"


def fingerprint_names(model: nn.Module) -> str:
    """The number of tensors that are trained, and a sum over their names: others may be frozen."""
    names = [name for name, p in model.named_parameters() if p.requires_grad]
    text = " ".join(names).replace("_orig_mod.", "")  # what torch.compile puts in
    return f"{len(names)} tensors, sum {zlib.crc32(text.encode()):08x}"


def crc(tensor: Tensor, start: int = 0) -> int:
    """A sum over a tensor's bytes, its type and its shape."""
    total = zlib.crc32(f"{tensor.dtype} {tuple(tensor.shape)}".encode(), start)
    flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return zlib.crc32(flat.numpy().data, total)


def name_augmentation(augment: Any) -> str | None:
    """What an augmentation is known by: its name, and a sum over all that it consists of.

    Its code, what it has bound or holds, and the same of the functions in that; so two lambdas
    are told apart, and a function that was edited. Those of vit_steps go by their name alone. Of
    the globals that a function looks up, other functions, numbers and texts are part of it; lists
    and other things that change while it runs are not.
    """
    if augment is None or is_ours(augment):
        return augment and name_of(augment)
    inner = augment.func if isinstance(augment, partial) else augment
    return f"{name_of(inner)} {sha256(describe(augment, ()).encode()).hexdigest()[:12]}"


def name_of(value: Any) -> str:
    """The name of a function, class or module, or that of an object's class."""
    for attribute in ("__qualname__", "__name__"):
        if isinstance(name := getattr(value, attribute, None), str):
            return name
    return type(value).__qualname__


def is_ours(value: Any) -> bool:
    """Whether that is a function or class of this package, not one that only has its name."""
    module = getattr(value, "__module__", None) or ""
    if not isinstance(value, (FunctionType, type)) or module.split(".")[0] != "vit_steps":
        return False
    return getattr(sys.modules.get(module), value.__name__, None) is value


def describe(value: Any, above: tuple[int, ...]) -> str:
    """A value as text that is the same in every process, as `repr` with its addresses is not.

    Args:
        value: anything.
        above: the ids of what holds it, so that a circle comes to an end.
    """
    if id(value) in above:
        return "circle"
    above = (*above, id(value))

    def each(values: Any) -> str:
        return ", ".join(describe(v, above) for v in values)

    kind = type(value).__name__
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return ascii(value)
    if isinstance(value, Tensor):
        return f"tensor {crc(value)}"
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"array {value.dtype} {value.shape} {zlib.crc32(value.tobytes())}"
    if isinstance(value, (tuple, list)):
        return f"{kind}({each(value)})"
    if isinstance(value, (set, frozenset)):
        return f"set({', '.join(sorted(describe(v, above) for v in value))})"
    if isinstance(value, dict):
        return f"dict({', '.join(sorted(describe(pair, above) for pair in value.items()))})"
    if isinstance(value, CodeType):
        return f"code({value.co_code.hex()}, {each((value.co_names, value.co_consts))})"
    if isinstance(value, partial):
        return f"partial({each((value.func, value.args, value.keywords))})"
    if isinstance(value, MethodType):
        return f"method({each((value.__func__, value.__self__))})"
    if isinstance(value, (BuiltinFunctionType, ModuleType, type)) or is_ours(value):
        return f"{getattr(value, '__module__', '')}.{name_of(value)}"
    if isinstance(value, FunctionType):
        held = [contents(cell) for cell in value.__closure__ or ()]
        parts = (value.__code__, value.__defaults__, value.__kwdefaults__, held, looked_up(value))
        return f"function({each(parts)})"
    try:
        made_of = value.__reduce_ex__(4)
    except Exception:  # what cannot be pickled is known by its class alone
        made_of = ()
    return f"object({each((type(value), own_code(type(value)), made_of))})"


def looked_up(function: FunctionType) -> dict[str, Any]:
    """Of the globals that a function names, those that stand still: functions, numbers, texts."""
    names, codes = set(), [function.__code__]
    for code in codes:  # those of inner functions are added while they are found
        names.update(code.co_names)
        codes += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    still = (FunctionType, partial, type, bool, int, float, str, bytes, tuple)
    found = function.__globals__
    return {name: found[name] for name in names if isinstance(found.get(name), still)}


def contents(cell: CellType) -> Any:
    """What a closure's cell holds, if it is filled yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return "nothing yet"


def own_code(kind: type) -> dict[str, Any]:
    """The functions of a class, and of its bases in the same module, by their names."""
    bases = [base for base in reversed(kind.__mro__) if base.__module__ == kind.__module__]
    members = {name: value for base in bases for name, value in vars(base).items()}
    return {name: value for name, value in members.items() if isinstance(value, FunctionType)}
