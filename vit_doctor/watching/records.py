"""What is written down of a run: labels of tensors, attention, parameters that meet tokens."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Label:
    """What is known of a tensor.

    Args:
        kind: "linear", "activated" (by ReLU, GELU …), "scores", "weights" or "parameter"; of a
            softmax by hand also "powers" (exp of scores), "total" (a sum of powers) and "logs"
            (logarithms of weights).
        factor: all numbers that it was multiplied with since it came to be.
        name: of the parameter.
        width: of what the product that gave the scores summed over; of what a linear map that
            widens gave.
        sure: whether both sides of that product came from linear maps, and each factor is fixed.
        plain: whether both sides came from linear maps, normed or not, and no mask or bias met the
            scores: nothing that depends on where a token stands.
        where: the line of the softmax.
        before: of weights, what they were before dropout.
        scale: of weights, the factor of their scores.
    """

    kind: str
    factor: float = 1.0
    name: str = ""
    width: int = 0
    sure: bool = True
    plain: bool = True
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
        other: whether they sum to that factor over another axis instead, to rounding.
        largest: mean of the largest weight of a row; None if not measured.
        spread: standard deviation of the weights, times the number of keys; None likewise.
        plain: whether nothing was seen by which it could depend on where a token stands.
        module: path of the innermost module in which it happened, torch's own too.
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
    plain: bool = False
    module: str = ""


@dataclass(frozen=True)
class Meeting:
    """A parameter that is added to tokens, or joins them: its size and theirs, as root of the
    mean square, and whether all its rows are alike."""

    name: str
    how: str
    own: float
    content: float
    where: str
    alike: bool = False


def whole(sums: Tensor, others: Tensor, to: float, dtype: torch.dtype) -> bool:
    """Whether these sums are this number and the others are not, as a softmax leaves them.

    It is exact to rounding: 1e-5 against 1e-4 off; 1% against 5% in half precision.
    """
    fine = dtype in (torch.float32, torch.float64)
    near, far = (1e-5, 1e-4) if fine else (0.01, 0.05)
    off, apart = (float((x - to).abs().max()) for x in (sums, others))
    return off <= near * abs(to) and apart > far * abs(to)


def summed(equation: Any, a: Tensor, b: Tensor) -> tuple[int, int] | None:
    """The axes of two operands that an einsum sums over, if there is one such pair."""
    if not isinstance(equation, str):
        return None
    inputs, _, result = equation.replace(" ", "").partition("->")
    first, second = inputs.split(",")
    if "->" not in equation:  # then what stands once is kept
        result = "".join(c for c in first + second if inputs.count(c) == 1)
    letters = [c for c in first if c.isalpha() and c in second and c not in result]
    if len(letters) != 1:
        return None

    def axis(term: str) -> int:
        head = term.partition("...")[0]
        at = term.index(letters[0])
        return at - len(term) if "..." not in term or at >= len(head) else at

    return axis(first), axis(second)
