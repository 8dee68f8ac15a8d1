"""What is written down of a run: labels of tensors, attention, parameters that meet tokens."""

from dataclasses import dataclass

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
        undropped: of weights, what they were before dropout.
        scale: of weights, the factor of their scores.
    """

    kind: str
    factor: float = 1.0
    name: str = ""
    width: int = 0
    sure: bool = True
    plain: bool = True
    where: str = ""
    undropped: Tensor | None = None
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
        other_axis: whether they sum to that factor over another axis instead, to rounding.
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
    other_axis: bool = False
    largest: float | None = None
    spread: float | None = None
    plain: bool = False
    module: str = ""


@dataclass(frozen=True)
class Meeting:
    """A parameter that is "added" to tokens, or "joined" with them.

    Its size and theirs are the root of the mean square; its rows, where it has several, may be all
    alike.
    """

    name: str
    kind: str
    size: float
    tokens_size: float
    where: str
    rows_alike: bool = False
