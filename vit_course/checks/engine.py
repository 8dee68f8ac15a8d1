"""How an exercise answers back: run the attempt, compare it, name the mistake.

A `Check` holds the reference answer, the trials that any answer must pass, and the known wrong
answers, each with what to tell who gave it. A wrong attempt is recognised by its results: it does
what a known wrong answer does, in every trial or in at least two of those that it fails.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import torch
from torch import Tensor, nn

from .compare import Raised, Verdict, compare, explained, kind_of
from .keeping import judges, keep
from .sources import dotted_lines

LEFT = "not attempted yet"
# What an error of torch or Python says, as a pattern, and what to change.
SLIPS = {
    r"before Module.__init__\(\) call": "`super().__init__()` is missing: it is the first line of "
    "__init__"
}


@dataclass(frozen=True)
class Trial:
    """One thing to try an answer on.

    Args:
        what: what is tried, as the learner is told: "two images of 4×6 pixels, patch size 2".
        run: takes the answer (a function or a class), uses it, and gives the result to compare.
        again: gives the same trial on other inputs, each put through the change that it is called
            with; None where a trial has no inputs that could be others.
    """

    what: str
    run: Callable[[Callable], Any]
    again: Callable[[Callable[[Any], Any]], "Trial"] | None = None


class InputChangedError(Exception):
    """The attempt wrote into a tensor that it was given."""


def untouched(use: Callable, *inputs: Any, **options: Any) -> Any:
    """What `use` gives for copies of these inputs: tensors, lists of them, and others.

    Raises:
        InputChangedError: it wrote into one of them.
    """
    given = [copied(x) for x in inputs]
    result = use(*given, **options)
    if not all(map(unchanged, given, inputs)):
        raise InputChangedError
    return result


def copied(x: Any) -> Any:
    if isinstance(x, list):
        return [copied(part) for part in x]
    return x.clone() if isinstance(x, Tensor) else x


def unchanged(after: Any, before: Any) -> bool:
    """Whether tensors are as they were, to the last bit: a 0 made 1e-30 is a change."""
    if isinstance(before, list):
        return len(after) == len(before) and all(map(unchanged, after, before))
    if isinstance(before, Tensor):
        return isinstance(after, Tensor) and torch.equal(after, before)
    return True


def call(what: str, *inputs: Any, **options: Any) -> Trial:
    """A trial that calls the answer with these inputs, and makes sure that it leaves them alone."""
    return Trial(
        what,
        lambda answer: untouched(answer, *inputs, **options),
        lambda change: call(what, *map(change, inputs), **options),
    )


def then(answer: Callable, change: Callable) -> Callable:
    """An answer that puts what another gives through `change`."""
    return lambda *inputs, **options: change(answer(*inputs, **options))


def trust(what: str, candidate: Any, right: bool, why: str = "") -> Trial:
    """A trial of a learner's own test: does it trust what is right, and refuse what is not?

    Args:
        what: the candidate in words, "a split by view(B, h, N, d)".
        candidate: what the learner's test is called with.
        right: whether the test should say True.
        why: what is wrong with the candidate, or what the test should see, for the message.
    """
    said = "refuses it, though it is right" if right else "trusts it, though it is wrong"
    otherwise = f"your test {said}{'; ' if why else ''}{why}"
    return Trial(what, lambda answer: decided(answer(candidate), right, otherwise))


def decided(verdict: Any, wanted: bool, otherwise: str) -> Any:
    """What to compare of a learner's own test: whether it said what it should, in words."""
    if isinstance(verdict, Tensor) and verdict.numel() == 1:
        verdict = verdict.item()
    if isinstance(verdict, bool) or type(verdict).__name__ == "bool":  # NumPy's too
        return Verdict("as it should" if bool(verdict) == wanted else otherwise)
    if verdict is ... or verdict is None:
        return verdict
    return Verdict(f"your test gives {kind_of(verdict)}; it must give one True or False")


def learns(what: str, *inputs: Any) -> Trial:
    """A trial of whether gradients pass: what stands inside a model must hand them on."""

    def run(answer: Callable) -> Any:
        given = [x.clone().requires_grad_() if isinstance(x, Tensor) else x for x in inputs]
        result = answer(*given)
        parts = [result] if isinstance(result, Tensor) else result
        if all(isinstance(part, Tensor) and part.requires_grad for part in parts):
            return Verdict("gradients pass")
        return Verdict("no gradient passes: keep to tensors, without detach, tolist or numpy")

    return Trial(what, run, lambda change: learns(what, *map(change, inputs)))


def parameters(what: str, *sizes: Any) -> Trial:
    """A trial of which parameters a module made with these sizes has, and of which shapes."""

    def run(answer: Callable) -> Any:
        made = answer(*sizes)
        if not isinstance(made, nn.Module):
            return made
        return {name: p.shape for name, p in made.named_parameters()}

    return Trial(what, run)


def module(
    what: str, sizes: Sequence[Any], *inputs: Any, use: Callable = untouched, **options: Any
) -> Trial:
    """A trial of a module: made with these sizes, given known weights by their names, and used.

    Compared are the names and shapes of its parameters, what it gives, and which parameters would
    learn from it.

    Args:
        sizes: what the class is called with, in order.
        inputs, options: what the module is called with; it must leave the inputs alone.
        use: takes the module and those, and gives a tensor or a tuple whose first is a tensor.
    """

    def run(answer: Callable) -> Any:
        made = answer(*sizes)
        if not isinstance(made, nn.Module):
            return made
        fill(made.eval())
        try:
            result = use(made, *inputs, **options)
        except Exception as error:  # wrong names, if there are any, are told first
            result = error
        tensor = result[0] if isinstance(result, tuple) else result
        idle = Verdict("")
        if isinstance(tensor, Tensor) and tensor.is_floating_point():
            idle = Verdict(unlearned(made, tensor))
        shapes = {name: p.shape for name, p in made.named_parameters()}
        return Parts(shapes, result, idle)

    def again(change: Callable[[Any], Any]) -> Trial:
        return module(what, sizes, *map(change, inputs), use=use, **options)

    return Trial(what, run, again)


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
        mistakes: what to tell, and the known wrong answer that is told so, or several in a tuple.
        slips: a pattern of what an error says ("TypeError: …"), and what to tell in its place.
        keeps: the piece of the learner's own model, `my_vit.py`, that a right answer is.

    Calling it with an attempt prints "right", "not attempted yet", or what is wrong. It never
    raises on account of the attempt.
    """

    def __init__(
        self,
        reference: Callable,
        trials: Sequence[Trial],
        mistakes: Mapping[str, Callable | tuple[Callable, ...]],
        slips: Mapping[str, str] | None = None,
        keeps: str | None = None,
    ):
        self.reference, self.trials, self.keeps = reference, trials, keeps
        self.mistakes = [
            (message, answer)
            for message, wrong in mistakes.items()
            for answer in (wrong if isinstance(wrong, tuple) else (wrong,))
        ]
        self.slips = SLIPS | dict(slips or {})
        self.known: dict[tuple[Callable, int], Any] = {}
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
        results = []
        for number, trial in enumerate(self.trials):
            results.append(outcome(trial, attempt, self.slips))
            problem = compare(results[number], self.outcome_of(self.reference, number))
            if problem is None:
                continue
            if left := not_attempted(results[number], attempt):
                return left
            results += [outcome(t, attempt, self.slips) for t in self.trials[number + 1 :]]
            return self.recognise(results, number) or f"{trial.what}: {problem}"
        return "right"

    def recognise(self, results: list[Any], first: int) -> str | None:
        """What the known mistakes say that give these results in all trials; else in two, `first`
        and another, that the attempt fails.

        One trial alone may agree by chance, and so may errors. Mistakes with the same results
        cannot be told apart, so all of them are named.
        """
        telling = not isinstance(results[first], (bool, Verdict))  # a yes or no has many causes
        whole, part = [], []
        for message, wrong in self.mistakes:
            if not self.agrees(wrong, results, first):
                continue
            agreed = [i for i in range(len(results)) if self.agrees(wrong, results, i)]
            failed = [i for i in agreed if self.gives_wrong(results, i)]
            if len(agreed) == len(results):
                whole.append(message)
            elif telling and len(failed) >= 2:
                part.append(message)
        named = list(dict.fromkeys(whole or part[:1]))
        return "\nor: ".join(named) or None

    def agrees(self, known: Callable, results: list[Any], number: int) -> bool:
        return compare(results[number], self.outcome_of(known, number)) is None

    def gives_wrong(self, results: list[Any], number: int) -> bool:
        """Whether what an attempt gives in that trial is wrong, and not merely an error."""
        result, expected = results[number], self.outcome_of(self.reference, number)
        pairs = [(result, expected)]
        if isinstance(result, Parts) and isinstance(expected, Parts):
            pairs = zip(result, expected, strict=True)
        wrong = [part for part, wanted in pairs if compare(part, wanted)]
        return bool(wrong) and not isinstance(wrong[0], Raised)

    def outcome_of(self, known: Callable, number: int) -> Any:
        """What the reference or a known wrong answer gives in that trial, worked out once."""
        if (known, number) not in self.known:
            self.known[known, number] = outcome(self.trials[number], known, self.slips)
        return self.known[known, number]


def outcome(trial: Trial, answer: Callable, slips: Mapping[str, str]) -> Any:
    """What the answer gives in a trial, seeded; what it raises is an outcome too."""
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what to tell a learner stands in the message
        torch.default_generator.manual_seed(0)  # the CPU's alone; a GPU's would stay seeded
        try:
            result = trial.run(answer)
        except Exception as error:
            return explained(error, answer, slips)
    if not isinstance(result, Parts):
        return result
    return Parts(*(explained(p, answer, slips) if isinstance(p, Exception) else p for p in result))


def not_attempted(result: Any, attempt: Callable) -> str:
    """What to say where the stub, or a line of it, was left as it is; "" where it was not."""
    if lines := dotted_lines(attempt):
        alone = len(lines) == 1 and "=" not in lines[0]
        still = "one line still holds" if len(lines) == 1 else f"{len(lines)} lines still hold"
        return LEFT if alone else f"{LEFT}: {still} `...`"
    code = getattr(getattr(attempt, "__code__", None), "co_code", None)  # a class has none
    without_body = result is None and code in (empty.__code__.co_code, documented.__code__.co_code)
    parts = result if isinstance(result, (tuple, list)) else [result]
    dots = any(part is ... for part in parts)
    not_written = any(isinstance(p, Raised) and p.kind == "NotImplementedError" for p in parts)
    return LEFT if dots or not_written or without_body else ""


def empty(): ...


def documented():
    """What a stub compiles to when it has a docstring and nothing else."""
