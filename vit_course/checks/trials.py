"""What an answer is tried on: a call, a module with known weights, a learner's own test."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from zlib import crc32

import torch
from torch import Tensor, nn

from .compare import Parts, Verdict, compare, kind_of


@dataclass(frozen=True)
class Trial:
    """One thing to try an answer on.

    Where work is graded, `use` alone runs beside the learner's code, in a sandbox, and all else
    outside of it: so what would give a right answer away stands in `say`.

    Args:
        what: what is tried, as the learner is told: "two images of 4×6 pixels, patch size 2".
        use: takes the answer (a function or a class) and the inputs, and gives a result.
        inputs: what `use` is given beside the answer, or what makes it.
        say: takes the result and the inputs, and gives what is compared; by default, and where
            `use` gives a `Verdict`, it is the result.
    """

    what: str
    use: Callable[..., Any]
    inputs: Sequence[Any] | Callable[[], Sequence[Any]] = ()
    say: Callable[..., Any] | None = None

    def given(self) -> Sequence[Any]:
        """The inputs."""
        return self.inputs() if callable(self.inputs) else self.inputs

    def run(self, answer: Callable) -> Any:
        """What is compared."""
        given = self.given()
        result = self.use(answer, *given)
        if self.say is None or isinstance(result, Verdict):
            return result
        return self.say(result, *given)


@dataclass(frozen=True)
class Outside:
    """A function among a trial's inputs that stays outside of the sandbox: the learner's code may
    call it, with tensors and numbers, and not look into it."""

    function: Callable

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        return self.function(*inputs, **options)


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
    return Trial(what, partial(untouched, **options), inputs)


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
    return Trial(what, asked, [Outside(candidate)], lambda said, _: decided(said, right, otherwise))


def asked(answer: Callable, *inputs: Any) -> Any:
    """What the answer gives for these inputs, which it may change."""
    return answer(*inputs)


def decided(verdict: Any, wanted: bool, otherwise: str) -> Any:
    """What to compare of a learner's own test: whether it said what it should, in words."""
    if isinstance(verdict, Tensor) and verdict.numel() == 1:
        verdict = verdict.item()
    if isinstance(verdict, bool) or type(verdict).__name__ == "bool":  # NumPy's too
        return Verdict("as it should" if bool(verdict) == wanted else otherwise)
    if verdict is ... or verdict is None:
        return verdict
    return Verdict(f"your test gives {kind_of(verdict)}; it must give one True or False")


def numbered(*shape: int) -> Tensor:
    """A tensor that holds 0, 1, 2, …, so that each number tells where it came from."""
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)


def learns(what: str, *inputs: Any) -> Trial:
    """A trial of whether gradients pass: what stands inside a model must hand them on."""
    return Trial(what, passing, inputs)


def passing(answer: Callable, *inputs: Any) -> Verdict:
    given = [
        x.clone().requires_grad_(x.is_floating_point()) if isinstance(x, Tensor) else x
        for x in inputs
    ]
    result = answer(*given)
    parts = [result] if isinstance(result, Tensor) else result
    if all(isinstance(part, Tensor) and part.requires_grad for part in parts):
        return Verdict("gradients pass")
    return Verdict("no gradient passes: keep to tensors, without detach, tolist or numpy")


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

    Compared are the names and shapes of its parameters, what it gives, which parameters would
    learn from it, and whether it gives the same again, in evaluation and in training.

    Args:
        sizes: what the class is called with, in order.
        inputs, options: what the module is called with; it must leave the inputs alone.
        use: takes the module and those, and gives a tensor or a tuple whose first is a tensor.
    """

    def run(answer: Callable, *inputs: Any) -> Any:
        made = answer(*sizes)
        if not isinstance(made, nn.Module):
            return made
        fill(made.eval())
        shapes = {name: p.shape for name, p in made.named_parameters()}
        try:
            result = use(made, *inputs, **options)
            idle = Verdict(unlearned(made, result[0] if isinstance(result, tuple) else result))
            other = Verdict(changing(lambda: use(made, *inputs, **options), made, result))
        except Exception as error:  # wrong names, if there are any, are told first
            result, idle, other = error, Verdict(""), Verdict("")
        # A dropout makes all numbers wrong, so it is told before them.
        return Parts(shapes, other, result, idle)

    return Trial(what, run, inputs)


def changing(call: Callable, made: nn.Module, result: Any) -> str:
    """What another call gives that the first one did not, in words; "" where it gives the same."""
    if problem := compare(call(), result):
        return f"called a second time with the same input, it gives something else: {problem}"
    made.train()
    if problem := compare(call(), result):
        return (
            "in evaluation it is right, in training it gives something else; is there a dropout, "
            f"which nobody asked for? ({problem})"
        )
    return ""


def fill(made: nn.Module) -> None:
    """Give each parameter numbers that depend on its name and shape alone."""
    with torch.no_grad():
        for name, p in made.named_parameters():
            generator = torch.Generator().manual_seed(crc32(name.encode()))
            p.copy_(torch.randn(p.shape, generator=generator) * 0.4)


def unlearned(made: nn.Module, result: Any) -> str:
    """Which parameters would get no gradient from this result, in words; "" where all get one."""
    if not isinstance(result, Tensor) or not result.is_floating_point():
        return ""
    with torch.enable_grad():
        pull = torch.randn(result.shape, generator=torch.Generator().manual_seed(1))
        if result.requires_grad:
            (result * pull).sum().backward()
    idle = [name for name, p in made.named_parameters() if p.grad is None]
    if not idle:
        return ""
    return f"no gradient reaches `{'`, `'.join(idle[:3])}`: is the result cut off from it?"
