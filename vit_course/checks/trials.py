"""What an answer is tried on: a call, a module with known weights, a learner's own test."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any
from zlib import crc32

import torch
from torch import Tensor, nn

from .compare import Gradients, Parts, Unsteady, Verdict, YesOrNo, compare, kind_of


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
        """Give the inputs, made anew where a function makes them, else copied.

        What an attempt does to them, a later one must not meet.
        """
        if callable(self.inputs):
            return self.inputs()
        return [
            x if callable(x) and not isinstance(x, nn.Module) else deepcopy(x) for x in self.inputs
        ]

    def run(self, answer: Callable) -> Any:
        """Try an answer, and give what is compared."""
        inputs = self.given()
        result = self.use(answer, *inputs)
        if self.say is None or isinstance(result, Verdict):
            return result
        return self.say(result, *inputs)


@contextmanager
def fixed_settings() -> Iterator[None]:
    """Judge alike whatever a notebook's first cell has set, and leave that as it was.

    Gradients are on, the numbers float32, on the CPU, on one thread and drawn from seed 0.
    """
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    torch.set_default_dtype(torch.float32)
    torch.set_num_threads(1)  # small models: two threads beside other work take many times as long
    try:
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            torch.device("cpu"),
            torch.autocast("cpu", enabled=False),
            torch.random.fork_rng(devices=[]),
        ):
            torch.default_generator.manual_seed(0)  # the CPU's alone; a GPU's would stay seeded
            yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_num_threads(threads)


@dataclass(frozen=True)
class Outside:
    """A function among a trial's inputs that stays outside of the sandbox.

    The learner's code may call it, with tensors and numbers, and not look into it.
    """

    function: Callable

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Call the function."""
        return self.function(*inputs, **options)


class InputChangedError(Exception):
    """The attempt wrote into a tensor that it was given."""


def untouched(use: Callable, *inputs: Any, **options: Any) -> Any:
    """Call `use` with copies of these inputs, tensors, lists of them, and others.

    Raises:
        InputChangedError: it wrote into one of them.
    """
    copies, named = [copied(x) for x in inputs], {n: copied(x) for n, x in options.items()}
    result = use(*copies, **named)
    if not all(map(unchanged, [*copies, *named.values()], [*inputs, *options.values()])):
        raise InputChangedError
    return result


def copied(x: Any) -> Any:
    """Copy a tensor, or a list of them; give others as they are."""
    if isinstance(x, list):
        return [copied(part) for part in x]
    return x.clone() if isinstance(x, Tensor) else x


def unchanged(after: Any, before: Any) -> bool:
    """Tell whether tensors are as they were, to the last bit: a 0 made 1e-30 is a change."""
    if isinstance(before, list):
        return len(after) == len(before) and all(map(unchanged, after, before))
    if isinstance(before, Tensor):
        return isinstance(after, Tensor) and torch.equal(after, before)
    return True


def call(what: str, *inputs: Any, **options: Any) -> Trial:
    """Make a trial that calls the answer with these inputs, which it must leave alone."""
    return Trial(what, partial(untouched, **options), inputs)


def trust(what: str, candidate: Any, right: bool, why: str = "") -> Trial:
    """Make a trial of a learner's own test, which is to trust what is right and refuse the rest.

    Args:
        what: the candidate in words, "a split by view(B, h, N, d)".
        candidate: what the learner's test is called with, a function or a module.
        right: whether the test should say True.
        why: what is wrong with the candidate, or what the test should see, for the message.
    """
    problem = "refuses it, though it is right" if right else "trusts it, though it is wrong"
    otherwise = f"your test {problem}{'; ' if why else ''}{why}"
    given = candidate if isinstance(candidate, nn.Module) else Outside(candidate)
    return Trial(what, asked, [given], lambda verdict, _: decided(verdict, right, otherwise))


def asked(answer: Callable, *inputs: Any) -> Any:
    """Call the answer with these inputs, which it may change."""
    return answer(*inputs)


def left_alone(answer: Callable, *inputs: Any) -> Any:
    """Call the answer with inputs of which it must leave the models as they are."""
    models = [x for x in inputs if isinstance(x, nn.Module)]
    before = [state_of(model) for model in models]
    result = answer(*inputs)
    for model, state in zip(models, before, strict=True):
        for what, now in state_of(model).items():
            if now != state[what] and result is not ...:
                changed = f"the model that came in has changed, {what}"
                return Verdict(f"{changed}: work on a copy, deepcopy(model)")
    return result


def state_of(model: nn.Module) -> dict[str, list]:
    """Give what may change of a model, by how it is called."""
    numbers = model.state_dict()
    return {
        "its parts": list(numbers),
        "the dtype of its numbers": [x.dtype for x in numbers.values()],
        "its numbers": [x.double().numpy().tobytes() for x in numbers.values()],
        "its mode": [part.training for part in model.modules()],
    }


def decided(verdict: Any, expected: bool, otherwise: str) -> Any:
    """Say whether a learner's own test gave the verdict that it should, to compare that."""
    if isinstance(verdict, Tensor) and verdict.numel() == 1:
        verdict = verdict.item()
    if isinstance(verdict, bool) or type(verdict).__name__ == "bool":  # NumPy's too
        return YesOrNo("as it should" if bool(verdict) == expected else otherwise)
    if verdict is ... or verdict is None:
        return verdict
    return Verdict(f"your test gives {kind_of(verdict)}; it must give one True or False")


def numbered(*shape: int) -> Tensor:
    """Make a tensor of 0, 1, 2, …, so that each number tells where it came from."""
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    """Draw numbers of variance 1, the same each time."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def waves(*shape: int) -> Tensor:
    """Make numbers between -1 and 1, no two alike."""
    count = torch.Size(shape).numel()
    return torch.linspace(0, 9 + count / 7, count).sin().reshape(shape)


def learns(what: str, *inputs: Any, use: Callable = untouched) -> Trial:
    """Make a trial like `call`, and of whether gradients pass as they should.

    What stands inside a model must hand them on.
    """
    return Trial(what, partial(learning, use), inputs)


def learning(use: Callable, answer: Callable, *inputs: Any) -> Parts:
    """Give what the answer gives, whether it depends on the tensors that it got, and how."""
    copies = leaves(inputs)
    result = use(answer, *copies)
    again = changing(lambda: use(answer, *inputs), result)
    results = result if isinstance(result, (tuple, list)) else [result]
    tensors = [x for x in results if isinstance(x, Tensor)]
    pull_back(tensors)
    back, verdict = gradients_of(copies), "gradients pass"
    # A view that is made under no_grad may say that it requires one.
    if not all(x.requires_grad for x in tensors) or not any(x.any() for x in back):
        verdict = "no gradient passes: keep to tensors, without detach, tolist or numpy"
    return Parts(result, Verdict(verdict), back, again)


def leaves(inputs: Iterable[Any]) -> list[Any]:
    """Copy inputs; tensors of floats so that they ask for a gradient."""
    return [
        x.clone().requires_grad_(x.is_floating_point()) if isinstance(x, Tensor) else x
        for x in inputs
    ]


def pull_back(results: Iterable[Any]) -> None:
    """Send a gradient back from results, the same whether they come in one tensor or in several."""
    numbers = [x.flatten() for x in results if isinstance(x, Tensor) and x.is_floating_point()]
    if any(x.requires_grad for x in numbers):
        whole = torch.cat(numbers)
        (whole * waves(len(whole))).sum().backward()


def gradients_of(tensors: Iterable[Any]) -> Gradients:
    """Give the gradients that have come to those of these that ask for one, or zeros."""
    asking = [x for x in tensors if isinstance(x, Tensor) and x.is_leaf and x.requires_grad]
    return Gradients(*(torch.zeros_like(x) if x.grad is None else x.grad for x in asking))


def parameters(what: str, *sizes: Any) -> Trial:
    """Make a trial of which parameters a module of these sizes has, and of which shapes."""

    def run(answer: Callable) -> Any:
        layer = answer(*sizes)
        return shapes_of(layer) if isinstance(layer, nn.Module) else layer

    return Trial(what, run)


def shapes_of(layer: nn.Module) -> dict[str, torch.Size]:
    """Give the shapes of a module's parameters by name."""
    return {name: p.shape for name, p in layer.named_parameters()}


def module(
    what: str,
    sizes: Sequence[Any],
    *inputs: Any,
    use: Callable = untouched,
    quick: bool = False,
    **options: Any,
) -> Trial:
    """Make a trial of a module, which is given known weights by their names, and used.

    Compared are the names and shapes of its parameters, what it gives, which parameters would
    learn from it, whether it gives the same again, in evaluation and in training, and the gradients
    that it sends back to its inputs and its parameters.

    Args:
        sizes: what the class is called with, in order.
        inputs, options: what the module is called with; it must leave the inputs alone.
        use: takes the module and those, and gives a tensor or a tuple whose first is a tensor.
        quick: compare names, shapes and results alone, since many pairs of mistakes are tried.
    """

    def run(answer: Callable, *inputs: Any) -> Any:
        layer = answer(*sizes)
        if not isinstance(layer, nn.Module):
            return layer
        fill(layer.eval())
        idle = other = Verdict("")
        copies, back = inputs if quick else leaves(inputs), Gradients()
        try:
            with torch.set_grad_enabled(not quick):
                result = use(layer, *copies, **options)
            if not quick:
                pull_back(result[:1] if isinstance(result, tuple) else [result])
                idle = Verdict(unlearned(layer))
                by_name = [p for _, p in sorted(layer.named_parameters())]
                back = gradients_of([*copies, *by_name])
                other = changing(lambda: use(layer, *inputs, **options), result, layer)
        except Exception as error:  # wrong names, if there are any, are told first
            result, idle, other, back = error, Verdict(""), Verdict(""), Gradients()
        # A dropout makes all numbers wrong, so it is told before them.
        return Parts(shapes_of(layer), other, result, idle, back)

    return Trial(what, run, inputs)


ANEW = Unsteady(
    "each time it is called with the same input, it gives something else: is something drawn at "
    "random in it (F.dropout is always on), or kept from one call to the next?"
)


def changing(call: Callable, result: Any, layer: nn.Module | None = None) -> Verdict:
    """Say what another call gives that the first one did not; "" where it gives the same."""
    state = torch.get_rng_state()
    again = compare(call(), result)
    if again or not torch.equal(torch.get_rng_state(), state):  # a draw may change nothing
        return ANEW
    if layer is not None:
        layer.train()
        if compare(call(), result):
            return Unsteady(
                "in training it gives something else than in evaluation; is there a dropout, or a "
                "batch norm, which nobody asked for?"
            )
    return Verdict("")


def fill(layer: nn.Module) -> None:
    """Give each parameter numbers that depend on its name and shape alone."""
    with torch.no_grad():
        for name, p in layer.named_parameters():
            p.copy_(0.4 * drawn(*p.shape, seed=crc32(name.encode())))


def unlearned(layer: nn.Module) -> str:
    """Say which parameters got no gradient when one was pulled back; "" where all got one."""
    idle = [name for name, p in layer.named_parameters() if p.grad is None]
    if not idle:
        return ""
    return f"no gradient reaches `{'`, `'.join(idle[:3])}`: is the result cut off from it?"
