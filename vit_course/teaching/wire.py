"""Results as plain data: what goes from the sandbox to the judge, and nothing that runs."""

import json
from enum import Enum
from io import BytesIO
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vit_course.checks.compare import Gradients, Parts, Raised, Unsteady, Verdict, kind_of

NAMES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8")
LONGEST = 5_000_000  # bytes of what is not numbers of tensors
MOST = 20_000  # parts of a result: lists, texts, numbers, tensors
SEQUENCES = {"size": torch.Size, "tuple": tuple, "list": list}
KINDS = {name: getattr(torch, name) for name in (*NAMES, "bool")}


class TooLargeError(ValueError):
    """A result is larger than any that could be right."""


def packed(x: Any) -> bytes:
    """Write a result as JSON, with the numbers of its tensors behind it."""
    numbers: list[bytes] = []
    text = json.dumps(flat(x, numbers)).encode()
    whole = b"".join([len(text).to_bytes(8, "big"), text, *numbers])
    return len(whole).to_bytes(8, "big") + whole


def flat(x: Any, numbers: list[bytes]) -> list:
    """Make a result of nothing but numbers, texts and lists; its tensors' go to `numbers`."""
    x = x.item() if isinstance(x, np.generic) else x.value if isinstance(x, Enum) else x
    if isinstance(x, Raised):
        return ["raised", x.kind, x.message, x.line, x.own]
    if isinstance(x, Tensor):
        kind = str(x.dtype).removeprefix("torch.")
        if kind not in KINDS or x.layout != torch.strided:
            return ["verdict", f"it gives {kind_of(x)}"]
        plain = torch.empty(x.shape, dtype=x.dtype).copy_(x.detach()).flatten()
        numbers.append(plain.view(torch.uint8).numpy().tobytes())
        return ["tensor", kind, list(x.shape)]
    for name, kind in ({"gradients": Gradients, "parts": Parts} | SEQUENCES).items():
        if isinstance(x, kind):
            return [name, [flat(part, numbers) for part in x]]
    if isinstance(x, dict):
        return ["dict", [[flat(k, numbers), flat(v, numbers)] for k, v in x.items()]]
    if isinstance(x, Verdict):
        return ["unsteady" if isinstance(x, Unsteady) else "verdict", str(x)]
    for kind in (bool, int, float, str):
        if isinstance(x, kind):
            return ["plain", kind(x)]
    if x is None or x is ...:
        return ["dots" if x is ... else "none"]
    return ["verdict", f"it gives {kind_of(x)}"]


def unpacked(whole: bytes) -> Any:
    """Read the result that was packed.

    Raises:
        TooLargeError: it is too large to be judged.
        ValueError: there is no such result.
    """
    end = 8 + int.from_bytes(whole[:8], "big")
    if end > LONGEST:  # Python makes a hundred bytes of each
        raise TooLargeError("more than lists and texts need")
    numbers, left = BytesIO(whole[end:]), iter(range(MOST))

    def restored(x: list) -> Any:
        if next(left, None) is None:
            raise TooLargeError(f"more than {MOST:,} parts")
        match x:
            case ["raised", str(kind), str(message), str(line), bool(own)]:
                return Raised(kind, message, line, own, private=True)
            case ["tensor", str(kind), list(shape)]:
                size = torch.Size(shape).numel() * KINDS[kind].itemsize
                part = bytearray(numbers.read(size))
                if len(part) != size or min(shape, default=1) < 0:
                    raise ValueError("a tensor has lost its numbers")
                if not size:
                    return torch.empty(shape, dtype=KINDS[kind])
                data = torch.frombuffer(part, dtype=torch.uint8)  # of a bool all but 0 is true
                return (data.bool() if kind == "bool" else data.view(KINDS[kind])).reshape(shape)
            case ["plain", bool() | int() | float() | str() as value]:
                return value
            case ["gradients", list(parts)]:
                return Gradients(*map(restored, parts))
            case ["parts", list(parts)]:
                return Parts(*map(restored, parts))
            case [("size" | "tuple" | "list") as kind, list(parts)]:
                return SEQUENCES[kind](map(restored, parts))
            case ["dict", list(pairs)]:
                return {restored(key): restored(value) for key, value in pairs}
            case ["verdict", str(text)]:
                return Verdict(text)
            case ["unsteady", str(text)]:
                return Unsteady(text)
            case ["dots"]:
                return ...
            case ["none"]:
                return None
        raise ValueError(f"{str(x)[:50]} is no result")

    try:
        return restored(json.loads(whole[8:end]))
    except (LookupError, TypeError, RuntimeError, OverflowError, RecursionError) as error:
        raise ValueError(f"no result: {type(error).__name__}") from None
