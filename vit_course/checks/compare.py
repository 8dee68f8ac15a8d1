"""What an attempt gave beside what is expected, in the learner's terms."""

import linecache
import math
import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .relations import relation

TOLERANCE = 1e-5
CUT_OFF = (
    "the result is right, and the gradient that goes back from it is not, so a model could not "
    "learn through it: is a part cut off, by detach, data, item, numpy or no_grad?"
)


@dataclass(frozen=True)
class Raised:
    """The result of an attempt that raised, or whose result could not be used.

    Args:
        kind: the name of the exception.
        message: its text, on one line.
        line: the last line of the learner's own code that it passed through, or "".
        own: whether the learner's code raised it, or was called in a way that it does not allow.
        private: whether its text is not to be shown.
    """

    kind: str
    message: str
    line: str
    own: bool
    private: bool = False


class Parts(tuple):
    """Several results of one trial, compared one by one, and not counted in the message."""

    def __new__(cls, *parts: Any):
        """Take any number of results, as arguments."""
        return super().__new__(cls, parts)


class Gradients(Parts):
    """The gradients that an attempt sends back, by a fixed pull at its result."""


class Verdict(str):
    """A result that is a sentence about the attempt: told as it stands where it is not expected."""


class Unsteady(Verdict):
    """A sentence on numbers that change from call to call, or from evaluation to training."""


class YesOrNo(Verdict):
    """A sentence on a learner's own test, which can be wrong in one way alone."""


def explained(error: BaseException, answer: Callable, slips: Mapping[str, str]) -> Raised | Verdict:
    """Give what to change where one of these patterns fits the error's text; else the error."""
    kind, text = type(error).__name__, " ".join(str(error).split())
    for pattern, advice in slips.items():
        if re.search(pattern, f"{kind}: {text}"):
            return Verdict(advice)
    line, in_answer = guilty_line(error, answer)
    called_wrongly = isinstance(error, TypeError) and "argument" in text
    own = in_answer or called_wrongly or kind == "InputChangedError"
    return Raised(kind, text[:300], line, own)


def guilty_line(error: BaseException, answer: Callable) -> tuple[str, bool]:
    """Give the last line of the answer that the error passed through, and whether there is one."""
    methods = vars(answer).values() if isinstance(answer, type) else (answer,)
    files = {m.__code__.co_filename for m in methods if hasattr(m, "__code__")}
    frames = traceback.walk_tb(error.__traceback__)
    lines = [(f.f_code.co_filename, line) for f, line in frames if f.f_code.co_filename in files]
    if not lines:
        return "", False
    linecache.checkcache(lines[-1][0])  # the file may be another by now
    return linecache.getline(*lines[-1]).strip(), True


def compare(result: Any, expected: Any, closely: bool = False) -> str | None:
    """Give None if the two are the same to 1e-5; else what differs, in the learner's terms.

    Args:
        closely: tell also how a wrong tensor is related to the right one, which takes a search.
    """
    if isinstance(result, Raised):
        return None if same_error(result, expected) else describe(result)
    if isinstance(expected, Raised):
        return f"it gives {kind_of(result)} where {expected.kind} is expected"
    if result is None and expected is not None:
        return "it returns nothing; is the `return` missing?"
    if isinstance(result, Verdict):
        if isinstance(expected, Verdict) and result == expected:
            return None
        return str(result) or "nothing is wrong"  # a fine "" beside what a mistake gives
    if isinstance(expected, Verdict):
        return f"it gives {kind_of(result)}"
    if isinstance(expected, Gradients):
        return compare_gradients(result, expected)
    if isinstance(expected, Tensor):
        return compare_tensors(result, expected, closely)
    if isinstance(expected, (tuple, list)):
        return compare_parts(result, expected, closely)
    if isinstance(expected, dict):
        return compare_named(result, expected, closely)
    if isinstance(result, np.generic) or (isinstance(result, Tensor) and result.numel() == 1):
        result = result.item()
    if isinstance(expected, (int, float)) and not isinstance(expected, bool):
        return compare_numbers(result, expected)
    if not isinstance(result, type(expected)):
        return f"it gives {kind_of(result)} where {kind_of(expected)} is expected"
    return None if result == expected else f"it gives {result!r}, expected {expected!r}"


def same_error(a: Raised, b: Any) -> bool:
    """Tell whether both are errors of one kind that say the same.

    Numbers may differ, and so may the letters in a pattern of einops'.
    """
    varying = r"\[[-\d, ]*\]|\d+|\".*?\"|'\w+':"  # a shape may have other axes, too
    return (
        isinstance(b, Raised)
        and a.kind == b.kind
        and re.sub(varying, "", a.message) == re.sub(varying, "", b.message)
    )


def told_apart(a: float, b: float, digits: int) -> str:
    """Write both, "1.5, expected 2", with as many digits as it takes to see that they differ."""
    while digits < 17 and f"{a:.{digits}g}" == f"{b:.{digits}g}":
        digits += 1
    return f"{a:.{digits}g}, expected {b:.{digits}g}"


def compare_numbers(result: Any, expected: int | float) -> str | None:
    """Compare where a number is expected; a count must be a whole number, not 3.0."""
    if isinstance(result, bool) or not isinstance(result, (int, float)):
        return f"it gives {kind_of(result)} where a number is expected"
    if isinstance(expected, int) and isinstance(result, float):
        return f"it gives {result:.6g}, a float, where the whole number {expected} is expected"
    close = math.isclose(result, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return None if close else f"it gives {told_apart(result, expected, 6)}"


def compare_parts(result: Any, expected: tuple | list, closely: bool) -> str | None:
    """Compare where several results are expected; two shapes are compared whole.

    What a trial itself took apart is `Parts`: those are not counted in the message, since the
    learner gave them as one.
    """
    if isinstance(expected, torch.Size) and isinstance(result, torch.Size):
        return None if result == expected else other_shape(result, expected)
    if not isinstance(result, (tuple, list)) or len(result) != len(expected):
        verb = "is" if len(expected) == 1 else "are"
        return f"it gives {kind_of(result)} where {kind_of(expected)} {verb} expected"
    for number, (a, b) in enumerate(zip(result, expected, strict=True), 1):
        counted = not isinstance(expected, Parts)
        if counted and a is None and b is not None:
            return f"result {number} of {len(expected)} is None, where {kind_of(b)} is expected"
        if type(expected) is list and isinstance(b, int) and isinstance(a, Tensor):
            return "it holds tensors, where whole numbers are expected"
        if problem := compare(a, b, closely):
            return f"result {number} of {len(expected)}: {problem}" if counted else problem
    return None


def compare_gradients(result: Any, expected: Gradients) -> str | None:
    """Compare what is sent back, to 1e-4 of the largest: it adds up many more numbers."""
    pairs = list(zip(result, expected, strict=False)) if isinstance(result, Gradients) else []
    same = len(pairs) == len(expected) and all(
        a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=1e-4 * largest(b), equal_nan=True)
        for a, b in pairs
    )
    return None if same else CUT_OFF


def largest(x: Tensor) -> float:
    """Give the largest size of a number in a tensor, and at least 1."""
    return max(1.0, float(x.nan_to_num(posinf=0, neginf=0).abs().max()))


def other_shape(shape: torch.Size, expected: torch.Size) -> str:
    """Say which shape came, and which was expected."""
    return f"its shape is {tuple(shape)}, expected {tuple(expected)}"


def compare_named(result: Any, expected: dict, closely: bool) -> str | None:
    """Compare where a dictionary is expected."""
    if not isinstance(result, dict):
        return f"it gives {kind_of(result)} where a dictionary is expected"
    missing = [name for name in expected if name not in result]
    extra = [name for name in result if name not in expected]
    if missing or extra:
        lacks = f"it lacks {listed(missing)}" if missing else ""
        verb = "is" if len(extra) == 1 else "are"
        has = f"it has {listed(extra)}, which {verb} not asked for" if extra else ""
        return "; ".join(filter(None, (lacks, has)))
    for name, value in expected.items():
        if problem := compare(result[name], value, closely):
            return f"`{name}`: {problem}"
    return None


def listed(names: list) -> str:
    """List the first three names, and say how many more there are."""
    first = ", ".join(f"`{name}`" for name in names[:3])
    return f"{first} and {len(names) - 3} more" if len(names) > 3 else first


def compare_tensors(result: Any, expected: Tensor, closely: bool) -> str | None:
    """Compare where a tensor is expected."""
    if not isinstance(result, Tensor):
        return f"it gives {kind_of(result)} where a tensor is expected"
    related = relation(result.detach(), expected.detach()) if closely else None
    if result.shape != expected.shape:
        shapes = other_shape(result.shape, expected.shape)
        return f"{shapes}; {related}" if related else shapes
    if result.dtype.is_floating_point != expected.dtype.is_floating_point or (
        torch.bool in (result.dtype, expected.dtype) and result.dtype != expected.dtype
    ):
        return f"it holds {result.dtype}, expected {expected.dtype}"
    a, b = result.detach().double(), expected.detach().double()
    wrong = ~torch.isclose(a, b, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
    if result.dtype != expected.dtype and result.dtype.is_floating_point:
        small = torch.finfo(result.dtype).bits < 32 and (a - b).abs().max() <= 0.01 * b.abs().max()
        if small or not wrong.any():
            return (
                f"the numbers are right, but they are {result.dtype}, expected {expected.dtype}: "
                "leave the dtype as it came in"
            )
    if not wrong.any():
        return None
    if wrong.numel() == 1:
        return f"it gives {told_apart(a.item(), b.item(), 4)}"
    first = tuple(wrong.nonzero()[0].tolist())
    both = told_apart(a[first].item(), b[first].item(), 4)
    if related:
        return f"{related}; the first wrong number, at {list(first)}, is {both}"
    share = "all" if wrong.all() else f"{wrong.sum()} of"
    return f"{share} {wrong.numel()} numbers are wrong; the first, at {list(first)}, is {both}"


def describe(raised: Raised) -> str:
    """Say what to tell a learner whose code raised."""
    if raised.kind == "InputChangedError":
        return "your code changes the tensor that it was given; make a new one (x + y, not x += y)"
    text = f": {raised.message}" if raised.message and not raised.private else ""
    if not raised.own:
        return f"what it gives cannot be used here ({raised.kind}{text})"
    where = f" in the line `{raised.line}`" if raised.line else ""
    if raised.kind == "EinopsError" and not raised.private:
        return f"`rearrange` fails{where}; {of_einops(raised.message)}"
    return f"your code raises {raised.kind}{where}{text}"


def of_einops(text: str) -> str:
    """Say in a sentence what einops says at length."""
    sizes = re.sub(r"'(\w+)': ", r"\1=", "".join(re.findall(r"info: {(.*?)}", text)))
    if axis := re.search(r"mismatch, \D*(\d+)", text):
        return (
            f"an axis of {axis[1]} does not fit {sizes}: is that a fixed number, or the size of "
            "another axis?"
        )
    return text.partition("info: ")[2].partition("}. ")[2]


def kind_of(value: Any) -> str:
    """Say what a value is: "a tensor of shape (2, 3)", "2 results", "a text"."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"{len(value)} result{'' if len(value) == 1 else 's'}"
    if isinstance(value, str):
        return "a text"
    words = {type(None): "nothing", bool: "True or False", dict: "a dictionary"}
    words |= dict.fromkeys([int, float], "a number")
    return words.get(type(value)) or with_article(type(value).__name__)


def with_article(noun: str) -> str:
    """Put "a" or "an" before a noun, by its first sound: "an ndarray", "a uint8"."""
    vowel = re.match("[aeio]|u(?!int|ser|ni|uid)|ndarray", noun, re.IGNORECASE)
    return f"{'an' if vowel else 'a'} {noun}"


def difference(a: Tensor, b: Tensor) -> str:
    """Say how far two tensors are apart, as the lessons print it: "< 1e-5" or the difference.

    Raises:
        ValueError: their shapes differ, which broadcasting would hide.
    """
    if a.shape != b.shape:
        raise ValueError(f"shapes differ: {tuple(a.shape)} and {tuple(b.shape)}")
    largest = (a - b).abs().max().item()
    return "< 1e-5" if largest < TOLERANCE else f"up to {largest:.2g}"
