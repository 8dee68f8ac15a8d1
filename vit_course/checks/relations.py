"""How a wrong tensor is related to the right one, where it is: turned, flipped, scaled."""

from itertools import permutations

import torch
from torch import Tensor

MOST_AXES = 5  # whose orders are all tried


def close(a: Tensor, b: Tensor) -> bool:
    """Tell whether two tensors are the same up to rounding."""
    return a.shape == b.shape and torch.allclose(a, b, rtol=1e-4, atol=1e-6)


def relation(result: Tensor, right: Tensor) -> str | None:
    """Say what is done to the right tensor in this one; None where nothing is known.

    Args:
        result: numbers of any shape, without a gradient.
        right: what is expected.
    """
    result, right = result.double(), right.double()
    if right.numel() < 3 or close(right, right.flatten()[0].expand(right.shape)):
        return None
    if turned := other_order(result, right):
        return turned
    if result.shape != right.shape:
        if close(result.flatten(), right.flatten()):
            return "the numbers are right, and in the right order: only the shape is another"
        return None
    return (
        moved_along_an_axis(result, right)
        or factor_or_offset(result, right)
        or partly_right(result, right)
        or same_numbers(result, right)
    )


def other_order(result: Tensor, right: Tensor) -> str | None:
    """Say so where its axes are the right ones in another order."""
    if not 2 <= right.ndim <= MOST_AXES or result.ndim != right.ndim:
        return None
    for order in permutations(range(right.ndim)):
        if order != tuple(range(right.ndim)) and close(result, right.permute(order)):
            moved = [axis for axis, old in enumerate(order) if axis != old]
            if len(moved) == 2:
                return f"axes {moved[0]} and {moved[1]} are swapped"
            return f"the axes stand in another order, as by permute{order}"
    return None


def moved_along_an_axis(result: Tensor, right: Tensor) -> str | None:
    """Say so where along one axis the right parts stand in another order."""
    for axis, size in enumerate(right.shape):
        if size < 2:
            continue
        if close(result, right.flip(axis)):
            return f"axis {axis} runs backwards"
        slices, right_slices = (x.movedim(axis, 0).reshape(size, -1) for x in (result, right))
        matches = [[i for i in range(size) if close(one, right_slices[i])] for one in slices]
        order = [numbers[0] for numbers in matches if numbers]
        if sorted(order) == list(range(size)):
            first = ", ".join(map(str, order[:8])) + (", …" if size > 8 else "")
            return f"along axis {axis} the right parts stand in another order: {first}"
    return None


def factor_or_offset(result: Tensor, right: Tensor) -> str | None:
    """Say so where each number is the right one times, or plus, one and the same number."""
    if not result.any():
        return "all numbers are 0"
    largest = right.abs().flatten().argmax()
    factor = result.flatten()[largest] / right.flatten()[largest]
    if factor != 0 and close(result, right * factor):
        return f"each number is {factor.item():.4g} times the right one"
    offset = (result - right).flatten()[0]
    if close(result, right + offset):
        return f"each number is the right one {'+' if offset > 0 else '-'} {abs(offset.item()):.4g}"
    return None


def partly_right(result: Tensor, right: Tensor) -> str | None:
    """Say so where the first of several along an axis alone is right, or one alone wrong."""
    wrong = ~torch.isclose(result, right, rtol=1e-4, atol=1e-6)
    for axis, size in enumerate(right.shape):
        others = [other for other in range(right.ndim) if other != axis]
        shares = wrong.double().mean(dim=others) if others else wrong.double()
        bad = shares.nonzero().flatten().tolist()
        if size > 1 and bad == list(range(1, size)) and shares[1:].min() > 0.5:
            return f"only the first of {size} along axis {axis} is right"
        if size > 2 and len(bad) == 1:
            return f"of {size} along axis {axis} only number {bad[0]}, counted from 0, is wrong"
    return None


def same_numbers(result: Tensor, right: Tensor) -> str | None:
    """Say so where all the right numbers are there."""
    if close(result.flatten().sort().values, right.flatten().sort().values):
        return "all the right numbers are there, but in other places"
    return None
