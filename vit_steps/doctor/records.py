"""What is written down of a run: labels of tensors, attention, parameters that meet tokens."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class Label:
    """What is known of a tensor.

    Args:
        kind: "linear", "scores", "weights" or "parameter".
        factor: all numbers that it was multiplied with since it came to be.
        name: of the parameter.
        width: of what the product that gave the scores summed over.
        sure: whether both sides of that product came from linear maps, and each factor is fixed.
        where: the line of the softmax.
        before: of weights, what they were before dropout.
        scale: of weights, the factor of their scores.
    """

    kind: str
    factor: float = 1.0
    name: str = ""
    width: int = 0
    sure: bool = True
    where: str = ""
    before: Tensor | None = None
    scale: float = 1.0


@dataclass(frozen=True)
class Attention:
    """Attention, as one product with the values shows it.

    Args:
        keys: how many tokens are looked at.
        where: module path and line.
        ratio: the scale of the scores times √width, 1 where it is right; None if not known.
        width: of a head.
        sums: lowest and highest sum of what multiplies the values, over the keys.
        factor: what the weights were multiplied with after the softmax.
        other: whether they sum to that factor over another axis instead.
        largest: mean of the largest weight of a row; None if not measured.
        spread: standard deviation of the weights, times the number of keys; None likewise.
    """

    keys: int
    where: str
    ratio: float | None = None
    width: int = 0
    sums: tuple[float, float] = (1.0, 1.0)
    factor: float = 1.0
    other: bool = False
    largest: float | None = None
    spread: float | None = None


@dataclass(frozen=True)
class Meeting:
    """A parameter that is added to tokens, or joins them: its size and theirs, as root of the
    mean square."""

    name: str
    how: str
    own: float
    content: float
    where: str


def close(sums: Tensor, to: float) -> bool:
    """Whether all sums are this number, within 1%."""
    return bool(((sums - to).abs() <= 0.01 * abs(to)).all())


def summed(equation: Any, a: Tensor, b: Tensor) -> tuple[int, int] | None:
    """The axes of two operands that an einsum sums over, if there is one such pair."""
    if not isinstance(equation, str) or "->" not in equation:
        return None
    inputs, result = equation.replace(" ", "").split("->")
    first, second = inputs.split(",")
    letters = [c for c in first if c.isalpha() and c in second and c not in result]
    if len(letters) != 1:
        return None

    def axis(term: str) -> int:
        head = term.partition("...")[0]
        at = term.index(letters[0])
        return at - len(term) if "..." not in term or at >= len(head) else at

    return axis(first), axis(second)
