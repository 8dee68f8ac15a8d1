"""How an exercise answers back: run the attempt, compare it, name the mistake.

A `Check` holds the reference answer, the trials that any answer must pass, and the known wrong
answers, each with what to tell who gave it. A wrong attempt is recognised by its results: it does
what a known wrong answer does, in every trial or in at least two of those that it fails.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import and_
from typing import Any
from zlib import crc32

import torch
from torch import Tensor, nn

from .compare import Raised, Verdict, compare, kind_of, raised
from .keeping import judges, keep
from .sources import dotted_lines

LEFT = "not attempted yet"


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


class InputChangedError(Exception):
    """The attempt wrote into a tensor that it was given."""


def untouched(use: Callable, *inputs: Any, **options: Any) -> Any:
    """What `use` gives for copies of these inputs.

    Raises:
        InputChangedError: it wrote into one of them.
    """
    given = [x.clone() if isinstance(x, Tensor) else x for x in inputs]
    result = use(*given, **options)
    for before, after in zip(inputs, given, strict=True):
        if isinstance(before, Tensor) and not same(after, before):
            raise InputChangedError
    return result


def call(what: str, *inputs: Any, **options: Any) -> Trial:
    """A trial that calls the answer with these inputs, and makes sure that it leaves them alone."""
    return Trial(what, lambda answer: untouched(answer, *inputs, **options))


def refuse(what: str, *inputs: Any, **options: Any) -> Trial:
    """A trial in which the right answer raises a ValueError."""

    def run(answer: Callable) -> Any:
        try:
            result = answer(*inputs, **options)
        except ValueError:
            return Verdict("it raises a ValueError")
        except (AssertionError, KeyError, IndexError) as error:
            return Verdict(f"it raises {type(error).__name__} where a ValueError is asked for")
        return result if result is ... else Verdict("it raises no ValueError, and must")

    return Trial(what, run)


def trust(what: str, candidate: Any, right: bool, why: str = "") -> Trial:
    """A trial of a learner's own test: does it trust what is right, and refuse what is not?

    Args:
        what: the candidate in words, "a split by view(B, h, N, d)".
        candidate: what the learner's test is called with.
        right: whether the test should say True.
        why: what is wrong with the candidate, or what the test should see, for the message.
    """

    def run(answer: Callable) -> Any:
        verdict = answer(candidate)
        if isinstance(verdict, Tensor) and verdict.numel() == 1:
            verdict = verdict.item()
        if isinstance(verdict, bool) or type(verdict).__name__ == "bool":  # NumPy's too
            if bool(verdict) == right:
                return Verdict("as it should")
            said = "refuses it, though it is right" if right else "trusts it, though it is wrong"
            return Verdict(f"your test {said}{'; ' if why else ''}{why}")
        if verdict is ... or verdict is None:
            return verdict
        return Verdict(f"your test gives {kind_of(verdict)}; it must give one True or False")

    return Trial(what, run)


def module(
    what: str, sizes: Sequence[Any], use: Callable[[nn.Module], Any], **options: Any
) -> Trial:
    """A trial of a module: made with these sizes, given known weights by their names, and used.

    Compared are the names and shapes of its parameters, what `use` gives, and which parameters
    would learn from it.

    Args:
        sizes: what the class is called with, in order.
        use: takes the module, calls it, and gives a tensor or a tuple whose first is a tensor.
        options: what the class is called with by name.
    """

    def run(answer: Callable) -> Any:
        made = answer(*sizes, **options)
        if not isinstance(made, nn.Module):
            return made
        fill(made.eval())
        try:
            result = use(made)
        except Exception as error:  # wrong names, if there are any, are told first
            result = raised(error, answer)
        tensor = result[0] if isinstance(result, tuple) else result
        idle = Verdict("")
        if isinstance(tensor, Tensor) and tensor.is_floating_point():
            idle = Verdict(unlearned(made, tensor))
        shapes = {name: tuple(p.shape) for name, p in made.named_parameters()}
        return Parts(shapes, result, idle)

    return Trial(what, run)


class Parts(tuple):
    """Several results of one trial, compared one by one, and not counted in the message."""

    def __new__(cls, *parts: Any):
        return super().__new__(cls, parts)


def fill(made: nn.Module) -> None:
    """Give each parameter numbers that depend on its name and shape alone."""
    with torch.no_grad():
        for name, p in made.named_parameters():
            generator = torch.Generator().manual_seed(crc32(name.encode()))
            p.copy_(torch.randn(p.shape, generator=generator) * 0.4)


def unlearned(made: nn.Module, result: Tensor) -> str:
    """Which parameters would get no gradient from this result, in words; "" where all get one."""
    with torch.enable_grad():
        pull = torch.randn(result.shape, generator=torch.Generator().manual_seed(1))
        if result.requires_grad:
            (result * pull).sum().backward()
    idle = [name for name, p in made.named_parameters() if p.grad is None]
    if not idle:
        return ""
    return f"no gradient reaches `{'`, `'.join(idle[:3])}`: is the result cut off from it?"


class Check:
    """Tell whether an attempt is right, and print one message about it.

    Args:
        reference: a right answer.
        trials: what to try an attempt on, the simplest first.
        mistakes: known wrong answers, each with its message.
        keeps: the piece of the learner's own model, `my_vit.py`, that a right answer is.

    Calling it with an attempt prints "right", "not attempted yet", or what is wrong. It never
    raises on account of the attempt.
    """

    def __init__(
        self,
        reference: Callable,
        trials: Sequence[Trial],
        mistakes: Sequence[Mistake],
        keeps: str | None = None,
    ):
        self.reference, self.trials, self.mistakes = reference, trials, mistakes
        self.keeps = keeps
        self.known: dict[Callable, list[Any]] = {}
        if keeps:
            judges[keeps] = self.judge

    def __call__(self, attempt: Callable) -> None:
        message = self.judge(attempt)
        if message == "right" and self.keeps:
            message = f"right: {keep(self.keeps, attempt)}"
        print(message)

    def judge(self, attempt: Callable) -> str:
        """The message for an attempt."""
        if attempt is ...:
            return LEFT
        if not callable(attempt):
            kind = type(attempt).__name__
            return f"this is a {kind}: give the function or class itself, by its name, not called"
        for number, trial in enumerate(self.trials):
            result = outcome(trial, attempt)
            problem = compare(result, self.outcomes(self.reference)[number])
            if problem is None:
                continue
            if left := not_attempted(result, attempt):
                return left
            return self.recognise(attempt, number) or f"{trial.what}: {problem}"
        return "right"

    def recognise(self, attempt: Callable, first: int) -> str | None:
        """What the known mistakes say that do the same in all trials; else in two that it fails.

        One trial alone may agree by chance. Mistakes with the same results cannot be told apart,
        so all of them are named.
        """
        results = [outcome(trial, attempt) for trial in self.trials]
        rights = self.outcomes(self.reference)
        failed = [not same(a, b) for a, b in zip(results, rights, strict=True)]
        telling = not isinstance(results[first], (bool, Verdict))  # a yes or no has many causes
        whole, part = [], []
        for mistake in self.mistakes:
            theirs = self.outcomes(mistake.wrong)
            agrees = [same(a, b) for a, b in zip(results, theirs, strict=True)]
            if all(agrees):
                whole.append(mistake.message)
            elif telling and agrees[first] and sum(map(and_, agrees, failed)) >= 2:
                part.append(mistake.message)
        named = list(dict.fromkeys(whole or part[:1]))
        return "\nor: ".join(named) or None

    def outcomes(self, known: Callable) -> list[Any]:
        """What the reference or a known wrong answer gives in each trial, worked out once."""
        if known not in self.known:
            self.known[known] = [outcome(trial, known) for trial in self.trials]
        return self.known[known]


def outcome(trial: Trial, answer: Callable) -> Any:
    """What the answer gives in a trial, seeded; what it raises is an outcome too."""
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what to tell a learner stands in the message
        torch.manual_seed(0)
        try:
            return trial.run(answer)
        except Exception as error:
            return raised(error, answer)


def not_attempted(result: Any, attempt: Callable) -> str:
    """What to say where the stub, or a line of it, was left as it is; "" where it was not."""
    if lines := dotted_lines(attempt):
        alone = len(lines) == 1 and "=" not in lines[0]
        still = "one line still holds" if len(lines) == 1 else f"{len(lines)} lines still hold"
        return LEFT if alone else f"{LEFT}: {still} `...`"
    code = getattr(attempt, "__code__", empty.__code__).co_code
    without_body = result is None and code in (empty.__code__.co_code, documented.__code__.co_code)
    parts = result if isinstance(result, (tuple, list)) else [result]
    dots = any(part is ... for part in parts)
    not_written = any(isinstance(p, Raised) and p.kind == "NotImplementedError" for p in parts)
    return LEFT if dots or not_written or without_body else ""


def empty(): ...


def documented():
    """What a stub compiles to when it has a docstring and nothing else."""


def same(a: Any, b: Any) -> bool:
    return compare(a, b) is None
