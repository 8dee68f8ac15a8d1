"""What is written down of a run: labels of tensors, attention, parameters that meet tokens."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Label:
    """What is known of a tensor.

    Its kind is "linear", "activated" (by ReLU, GELU …), "scores", "weights", "parameter" or "grid"
    (an image that a convolution has cut into patches); of a softmax by hand also "powers" (exp of
    scores), "total" (a sum of powers) and "logs" (logarithms of weights).
    """

    kind: str
    factor: float = 1.0  # all numbers that it was multiplied with since it came to be
    name: str = ""  # of the parameter
    # Of scores, what their product summed over; of a linear map that widens, how wide it is.
    width: int = 0
    # Whether both sides of the product of scores came from linear maps, and each factor is fixed.
    sure: bool = True
    # Whether nothing depends on where a token stands: both sides came from linear maps, normed or
    # not, and no mask or bias met the scores.
    plain: bool = True
    where: str = ""  # the line of the softmax
    undropped: Tensor | None = None  # of weights, what they were before dropout
    scale: float = 1.0  # of weights, the factor of their scores
    how: str = "softmax"  # how scores became weights: also "sigmoid", or "twice" by a softmax
    patches: Tensor | None = None  # of a "grid", the patches (n, D) of its first image


@dataclass(frozen=True)
class Attention:
    """Attention, as one product with the values shows it; None is not known, or not measured."""

    keys: int  # how many tokens are looked at
    where: str  # module path and line
    ratio: float | None = None  # the scale of the scores times √width: 1 where it is right
    width: int = 0  # of a head
    sums: tuple[float, float] = (1.0, 1.0)  # lowest and highest of what multiplies the values
    factor: float = 1.0  # what the weights were multiplied with after the softmax
    other_axis: str = ""  # over which they sum to that instead, to rounding: "another", "several"
    how: str = "softmax"  # as of a `Label`; "none" where raw scores mix the values
    largest: float | None = None  # mean of the largest weight of a row
    spread: float | None = None  # standard deviation of the weights, times the number of keys
    plain: bool = False  # as of a `Label`
    module: str = ""  # path of the innermost module in which it happened, torch's own too


@dataclass(frozen=True)
class Meeting:
    """A parameter that is "added" to tokens, or "joined" with them; sizes are root mean squares."""

    name: str
    kind: str
    size: float
    tokens_size: float
    where: str
    rows_alike: bool = False  # of several
