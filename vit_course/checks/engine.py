"""How an exercise answers back: run the attempt, compare it, name the mistake.

A `Check` holds the reference answer, the trials that any answer must pass, and the known wrong
answers, each with what to tell who gave it. A wrong attempt is recognised by its results: it does
what a known wrong answer does, in every trial or in at least two of those that it fails. An
`Exercise` (exercise.py) makes all of this of the right answer's source.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from . import face
from .compare import Parts, Raised, Unsteady, Verdict, compare, explained, with_article
from .keeping import is_courses, judges, keep, written
from .names import in_words, new_names, renamed, shapes_in
from .sources import dotted_lines, globals_of, source_of, used_names
from .trials import ANEW, Trial, fixed_settings

LEFT = "not attempted yet"
GRADIENTS_OFF = (
    "your code leaves gradients switched off for all that comes after it; inside of `with "
    "torch.no_grad():` they are off for as long as it takes"
)
# What an error of torch or Python says, as a pattern, and what to change.
SLIPS = {
    r"before Module.__init__\(\) call": "`super().__init__()` is missing: it is the first line of "
    "__init__",
    'missing the required "forward"': "it has no method `forward`; is the name spelt so, and is it "
    "in the class?",
    "more than one element of the written-to tensor": "`expand` shows the same numbers in several "
    "places and copies none, so nothing can be written there: .clone() it first, or use .repeat",
    r"must be Tensor, not (?!NoneType)[A-Z]": "a module stands where the numbers that it gives "
    "belong: make it in __init__, by its class and parentheses, then call it: self.act(x)",
}


class Check:
    """Tell whether an attempt is right, and print one message about it.

    Args:
        reference: a right answer.
        trials: what to try an attempt on, the simplest first.
        mistakes: what to tell, and the known wrong answer that is told so.
        slips: a pattern of what an error says ("TypeError: …"), and what to tell in its place.

    Calling it with an attempt says "right", "not attempted yet", or what is wrong: in a notebook on
    a card, else as text. It never raises on account of the attempt.
    """

    name = "your answer"
    does = why = ""  # what to tell whoever got it right

    def __init__(
        self,
        reference: Callable,
        trials: Sequence[Trial],
        mistakes: Mapping[str, Callable],
        slips: Mapping[str, str] | None = None,
    ):
        self.reference, self.mistakes = reference, [*mistakes.items()]
        self.begin(trials, slips)

    def begin(
        self, trials: Sequence[Trial], slips: Mapping[str, str] | None, keeps: str | None = None
    ) -> None:
        """Set what a check holds; `keeps` names the piece of `my_vit.py` that an answer is."""
        self.trials, self.keeps = trials, keeps
        self.slips = SLIPS | dict(slips or {})
        self.outcomes: dict[tuple[Callable, int], Any] = {}
        if keeps:
            judges[keeps] = self.judge

    def __call__(self, attempt: Callable) -> None:
        """Show the message for an attempt."""
        message = self.judge(attempt)
        if message == "right":
            message = self.taken(attempt)
            kept = message.removeprefix("right").removeprefix(": ")
            mine = written() if self.keeps in face.MODEL else ()
            card = face.right(self.name, self.does or self.why, kept, mine)
        elif message.startswith(LEFT):
            card = face.waiting(self.name, message)
        else:
            card = face.wrong(self.name, message)
        face.show(message, card)

    def taken(self, attempt: Callable) -> str:
        """Keep a right answer that is a piece of the learner's own model, and say so."""
        return f"right: {keep(self.keeps, attempt)}" if self.keeps else "right"

    def judge(self, attempt: Callable) -> str:
        """Give the message for an attempt."""
        if attempt is ...:
            return LEFT
        if not callable(attempt):
            kind = with_article(type(attempt).__name__)
            return f"this is {kind}: give the function or class itself, by its name, not called"
        if isinstance(attempt, nn.Module) and isinstance(self.reference, type):
            kind = type(attempt).__name__
            return f"this is an object, {kind}(…): give the class itself, {kind}, not called"
        results = []
        for number, trial in enumerate(self.trials):
            results.append(outcome(trial, attempt, self.slips))
            if compare(results[number], self.outcome_of(self.reference, number)) is None:
                continue
            if left := not_attempted(results[number], attempt):
                return left
            if spoilt := self.spoilt_piece(attempt):
                return spoilt
            results += [outcome(t, attempt, self.slips) for t in self.trials[number + 1 :]]
            return self.by_other_names(results, number, attempt) or self.told(results)
        return "right"

    def spoilt_piece(self, attempt: Callable) -> str | None:
        """Say which piece that a wrong attempt uses is wrong itself; None where none is."""
        around = globals_of(attempt)
        for name in used_names(source_of(attempt) or ""):
            piece = around.get(name)
            if not callable(piece) or is_courses(piece) or name not in judges or name == self.keeps:
                continue
            if judges[name](piece) != "right":
                return (
                    f"it uses the `{name}` of this notebook, which is not right itself; mend that "
                    f'first, or run `{name} = checks.mine("{name}")`, and then this again'
                )
        return None

    def by_other_names(self, results: Sequence[Any], first: int, attempt: Callable) -> str | None:
        """Say which parameters have other names, and what else is wrong; None where none has.

        What the module gives is judged under the names that it has.
        """
        right = [self.outcome_of(self.reference, number) for number in range(len(results))]
        names = [new_names(*map(shapes_in, pair)) for pair in zip(results, right, strict=True)]
        if not any(names) or self.wholly(results, first):
            return None
        again = [  # what is no such trial counts as passed
            outcome(trial, renamed(attempt, new), self.slips) if shapes_in(expected) else expected
            for trial, new, expected in zip(self.trials, names, right, strict=True)
        ]
        wrong = [n for n, result in enumerate(again) if compare(result, right[n]) is not None]
        rest = self.recognise(again, wrong[0]) if wrong else "what it gives is right"
        if rest:
            return f"{in_words(names)}\n{rest}"
        return in_words(names) if [*map(shapes_in, again)] == [*map(shapes_in, right)] else None

    def told(self, results: Sequence[Any]) -> str:
        """Give the message for an attempt that gives these results in all trials."""
        for number, result in enumerate(results):
            right = self.outcome_of(self.reference, number)
            if compare(result, right) is not None:
                unsteady = self.unsteady(results)
                if unsteady and not self.wholly(results, number):
                    rest = "right" if unsteady == ANEW else self.told([*map(steady, results)])
                    return unsteady if rest == "right" else f"{unsteady}\nAnd besides: {rest}"
                symptom = f"{self.trials[number].what}: {compare(result, right, closely=True)}"
                return self.recognise(results, number) or symptom
        return "right"

    def unsteady(self, results: Sequence[Any]) -> str | None:
        """Give what is said of numbers that change from call to call, and should not."""
        for number, result in enumerate(results):
            said = said_of_changes(result)
            if said and not said_of_changes(self.outcome_of(self.reference, number)):
                return said
        return None

    def recognise(self, results: Sequence[Any], first: int) -> str | None:
        """Give what the known mistakes say that explain these results; `first` is wrong."""
        return self.wholly(results, first) or self.partly(results, first)

    def wholly(
        self,
        results: Sequence[Any],
        first: int,
        mistakes: Sequence[tuple[str, Callable]] | None = None,
    ) -> str | None:
        """Give what the known mistakes (or these) say that give these results in all trials.

        Those with the same results cannot be told apart, so all of them are named.
        """
        messages = [
            message
            for message, wrong in (self.mistakes if mistakes is None else mistakes)
            if self.agrees(wrong, results, first)
            and all(self.agrees(wrong, results, i) for i in range(len(results)))
        ]
        return "\nor: ".join(dict.fromkeys(messages)) or None

    def partly(self, results: Sequence[Any], first: int) -> str | None:
        """Give what the first known mistake says that gives two of the wrong results.

        They are `first` and another: one alone may agree by chance, and so may an error, or a yes
        or no.
        """
        if isinstance(results[first], (bool, Verdict)):
            return None
        for message, wrong in self.mistakes:
            if not self.agrees(wrong, results, first):
                continue
            agreed = [i for i in range(len(results)) if self.agrees(wrong, results, i)]
            if sum(self.gives_wrong(results, i) for i in agreed) >= 2:
                return message
        return None

    def agrees(self, answer: Callable, results: Sequence[Any], number: int) -> bool:
        """Tell whether an attempt gives in that trial what a known wrong answer gives."""
        return compare(results[number], self.outcome_of(answer, number)) is None

    def gives_wrong(self, results: Sequence[Any], number: int) -> bool:
        """Tell whether what an attempt gives in that trial is wrong, and not merely an error."""
        result, expected = results[number], self.outcome_of(self.reference, number)
        pairs = [(result, expected)]
        if isinstance(result, Parts) and isinstance(expected, Parts):
            pairs = zip(result, expected, strict=True)
        wrong = [part for part, right in pairs if compare(part, right)]
        return bool(wrong) and not isinstance(wrong[0], Raised)

    def outcome_of(self, answer: Callable, number: int) -> Any:
        """Give what the reference or a known wrong answer gives in that trial, from memory."""
        if (answer, number) not in self.outcomes:
            self.outcomes[answer, number] = outcome(self.trials[number], answer, self.slips)
        return self.outcomes[answer, number]


def outcome(trial: Trial, answer: Callable, slips: Mapping[str, str]) -> Any:
    """Give what the answer gives in a trial, under fixed settings, or what it raises."""
    try:
        with fixed_settings(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what to tell a learner stands in the message
            result = trial.run(answer)
            if not torch.is_grad_enabled():
                return Verdict(GRADIENTS_OFF)
    except (Exception, SystemExit) as error:
        return explained(error, answer, slips)
    if not isinstance(result, Parts):
        return result
    return Parts(*(explained(p, answer, slips) if isinstance(p, Exception) else p for p in result))


def steady(result: Any) -> Any:
    """Leave out of a result what is said of numbers that change from call to call."""
    if not isinstance(result, Parts):
        return result
    return Parts(*(Verdict("") if isinstance(x, Unsteady) else x for x in result))


def said_of_changes(result: Any) -> str:
    """Give what a result says of numbers that change from call to call; "" if it says nothing."""
    parts = result if isinstance(result, Parts) else ()
    return next((part for part in parts if isinstance(part, Unsteady)), "")


def not_attempted(result: Any, attempt: Callable) -> str:
    """Say that the stub, or a line of it, was left as it is; "" where it was not."""
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


def empty():  # noqa: D103
    ...


def documented():
    """Compile to what a stub compiles to that has a docstring and nothing else."""
