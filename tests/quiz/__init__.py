"""Proofs of the quiz's right answers: `l05_q3_...` works out the letter of lesson 05's question 3.

It computes what each answer says, and gives the letter of the one that holds. Proven are numbers,
and what the trained weights or PyTorch could belie; of the others the letter stands in `KEY`.
"""

import torch

# The right letters of each lesson's questions.
KEY = [
    "abccab", "bcbacb", "bacabc", "baabcc", "bbacca", "abcacb", "acabcb",  # 00 to 06
    "abbcaa", "babcca", "cbbaba", "acbcab", "cbbaba", "ccbabc", "bcabca",
]  # fmt: skip


def only(**holds: bool) -> str:
    """The letter of the one answer that holds: `only(a=1 + 1 == 3, b=1 + 1 == 2)` is "b"."""
    true = [letter for letter, it_does in holds.items() if it_does]
    if len(true) != 1:
        raise AssertionError(f"of the answers {', '.join(holds)} these hold: {true}")
    return true[0]


def near(value: float, within: float = 1e-5, **numbers: float) -> str:
    """The letter of the one number that a value is near."""
    return only(**{letter: abs(value - number) < within for letter, number in numbers.items()})


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=1e-5)
