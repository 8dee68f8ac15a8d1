"""How an exercise answers back: run the attempt, compare it, name the mistake.

A `Check` holds the reference answer, the trials that any answer must pass, and the known wrong
answers, each with what to tell who gave it. A wrong attempt is recognised by its results: it does
what a known wrong answer does.
"""

import linecache
import math
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

TOLERANCE = 1e-5


@dataclass(frozen=True)
class Trial:
    """One thing to try an answer on.

    Args:
        what: what is tried, as the learner is told: "two images of 4×6 pixels, patch size 2".
        run: takes the answer (a function or a class), uses it, and gives the result to compare.
    """

    what: str
    run: Callable[[Callable], Any]


@dataclass(frozen=True)
class Mistake:
    """A known wrong answer, and what to tell who gave it."""

    message: str
    wrong: Callable


@dataclass(frozen=True)
class Raised:
    """The result of an attempt that raised."""

    kind: str
    message: str
    line: str


class InputChangedError(Exception):
    """The attempt wrote into a tensor that it was given."""


def call(what: str, *inputs: Any, **options: Any) -> Trial:
    """A trial that calls the answer with these inputs, and makes sure that it leaves them alone."""

    def run(answer: Callable) -> Any:
        given = [x.clone() if isinstance(x, Tensor) else x for x in inputs]
        result = answer(*given, **options)
        for before, after in zip(inputs, given, strict=True):
            if isinstance(before, Tensor) and not torch.equal(before, after):
                raise InputChangedError
        return result

    return Trial(what, run)


def refuse(what: str, *inputs: Any, **options: Any) -> Trial:
    """A trial in which the right answer raises a ValueError."""

    def run(answer: Callable) -> Any:
        try:
            result = answer(*inputs, **options)
        except ValueError:
            return "a ValueError"
        return result if result is ... else "no ValueError"

    return Trial(what, run)


class Check:
    """Tell whether an attempt is right, and print one message about it.

    Args:
        reference: a right answer.
        trials: what to try an attempt on, the simplest first.
        mistakes: known wrong answers, each with its message.

    Calling it with an attempt prints "right", "not attempted yet", or what is wrong, and returns
    True or False. It never raises on account of the attempt.
    """

    def __init__(self, reference: Callable, trials: Sequence[Trial], mistakes: Sequence[Mistake]):
        self.reference, self.trials, self.mistakes = reference, trials, mistakes

    def __call__(self, attempt: Callable) -> bool:
        message = self.judge(attempt)
        print(message)
        return message == "right"

    def judge(self, attempt: Callable) -> str:
        """The message for an attempt."""
        if attempt is ...:
            return "not attempted yet"
        if not callable(attempt):
            kind = type(attempt).__name__
            return f"this is a {kind}: give the function or class itself, by its name, not called"
        for number, trial in enumerate(self.trials):
            result = outcome(trial, attempt)
            problem = compare(result, outcome(trial, self.reference))
            if problem is None:
                continue
            if not_attempted(result, attempt):
                return "not attempted yet"
            return self.recognise(attempt, number, result) or f"{trial.what}: {problem}"
        return "right"

    def recognise(self, attempt: Callable, number: int, result: Any) -> str | None:
        """The message of the known mistake that does the same: in all trials, or else in this."""
        alike = [m for m in self.mistakes if same(result, outcome(self.trials[number], m.wrong))]
        for mistake in alike:
            if all(same(outcome(t, attempt), outcome(t, mistake.wrong)) for t in self.trials):
                return mistake.message
        # One True or False alone is like half of all mistakes, and says nothing about which.
        return alike[0].message if alike and not isinstance(result, bool) else None


def outcome(trial: Trial, answer: Callable) -> Any:
    """What the answer gives in a trial, seeded; what it raises is an outcome too."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            return trial.run(answer)
        except Exception as error:
            return Raised(type(error).__name__, first_line(error), guilty_line(error, answer))


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0][:200]


def guilty_line(error: Exception, answer: Callable) -> str:
    """The last line of the learner's own code that the error passed through, or ''."""
    methods = vars(answer).values() if isinstance(answer, type) else (answer,)
    files = {m.__code__.co_filename for m in methods if hasattr(m, "__code__")}
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename in files]
    return linecache.getline(own[-1].filename, own[-1].lineno or 0).strip() if own else ""


def not_attempted(result: Any, attempt: Callable) -> bool:
    """Whether the stub was left as it is: it gives `...`, or has no body, or says so itself."""
    if isinstance(result, Raised):
        return result.kind == "NotImplementedError"
    if isinstance(result, (tuple, list)):
        return any(not_attempted(part, attempt) for part in result)
    if result is None and hasattr(attempt, "__code__"):
        return attempt.__code__.co_code in (empty.__code__.co_code, documented.__code__.co_code)
    return result is ...


def empty(): ...


def documented():
    """What a stub compiles to when it has a docstring and nothing else."""


def same(a: Any, b: Any) -> bool:
    return compare(a, b) is None


def compare(result: Any, expected: Any) -> str | None:
    """None if the two are the same to 1e-5; else what differs, in the learner's terms."""
    if isinstance(result, Raised):
        alike = isinstance(expected, Raised) and result.kind == expected.kind
        return None if alike else describe(result)
    if isinstance(expected, Raised):
        return f"it gives {kind_of(result)} where {expected.kind} is expected"
    if result is None and expected is not None:
        return "it returns nothing; is the `return` missing?"
    if isinstance(expected, Tensor):
        return compare_tensors(result, expected)
    if isinstance(expected, (tuple, list)):
        if not isinstance(result, (tuple, list)) or len(result) != len(expected):
            return f"it gives {kind_of(result)} where {kind_of(expected)} is expected"
        parts = zip(result, expected, strict=True)
        problems = ((i, compare(a, b)) for i, (a, b) in enumerate(parts, 1))
        return next((f"result {i} of {len(expected)}: {p}" for i, p in problems if p), None)
    if isinstance(result, Tensor) and result.numel() == 1:
        result = result.item()
    if isinstance(expected, (int, float)) and not isinstance(expected, bool):
        if isinstance(result, bool) or not isinstance(result, (int, float)):
            return f"it gives {kind_of(result)} where a number is expected"
        close = math.isclose(result, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        return None if close else f"it gives {result:.6g}, expected {expected:.6g}"
    if not isinstance(result, type(expected)):
        return f"it gives {kind_of(result)} where {kind_of(expected)} is expected"
    return None if result == expected else f"it gives {result!r}, expected {expected!r}"


def compare_tensors(result: Any, expected: Tensor) -> str | None:
    """As `compare`, where a tensor is expected."""
    if not isinstance(result, Tensor):
        return f"it gives {kind_of(result)} where a tensor is expected"
    if result.shape != expected.shape:
        return f"its shape is {tuple(result.shape)}, expected {tuple(expected.shape)}"
    if (result.dtype == torch.bool) != (expected.dtype == torch.bool):
        return f"it holds {result.dtype}, expected {expected.dtype}"
    a, b = result.detach().double(), expected.detach().double()
    wrong = ~torch.isclose(a, b, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
    if not wrong.any():
        return None
    first = tuple(wrong.nonzero()[0].tolist())
    where = f" at {list(first)}" if first else ""
    share = f"{wrong.sum()} of {wrong.numel()} numbers are wrong"
    return f"{share}; the first{where} is {a[first]:.4g}, expected {b[first]:.4g}"


def describe(raised: Raised) -> str:
    """What to tell a learner whose code raised."""
    if raised.kind == "InputChangedError":
        return "your code changes the tensor that it was given; make a new one (x + y, not x += y)"
    where = f" in the line `{raised.line}`" if raised.line else ""
    return f"your code raises {raised.kind}{where}: {raised.message}"


def kind_of(value: Any) -> str:
    """What a value is, in words: "a tensor of shape (2, 3)", "2 results", "a text"."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"{len(value)} results"
    words = {type(None): "nothing", bool: "True or False", int: "a number", str: "a text"}
    return words.get(type(value), f"a {type(value).__name__}")


def difference(a: Tensor, b: Tensor) -> str:
    """How far two tensors are apart, as the lessons print it: "< 1e-5", or the largest difference.

    Raises:
        ValueError: their shapes differ, which broadcasting would hide.
    """
    if a.shape != b.shape:
        raise ValueError(f"shapes differ: {tuple(a.shape)} and {tuple(b.shape)}")
    largest = (a - b).abs().max().item()
    return "< 1e-5" if largest < TOLERANCE else f"up to {largest:.2g}"
