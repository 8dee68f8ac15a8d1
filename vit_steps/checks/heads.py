"""Exercises of lesson 03."""

from collections.abc import Callable

import torch
from einops import rearrange
from torch import Tensor

from ..heads import split_heads
from .engine import Check, Mistake, Trial, call
from .patches import numbered


def rows(start: int, count: int) -> tuple[int, int]:
    return start, start + count


def rows_by_role(embed_dim: int, num_heads: int, role: str, head: int) -> tuple[int, int]:
    d = embed_dim // num_heads
    return rows("qkv".index(role) * embed_dim + head * d, d)


def shifted(first: int, last: int):
    """A wrong answer whose start and stop are off by so many head widths or rows."""

    def wrong(embed_dim: int, num_heads: int, role: str, head: int) -> tuple[int, int]:
        start, stop = rows_by_role(embed_dim, num_heads, role, head)
        return start + first * (stop - start), stop + first * (stop - start) + last

    return wrong


rows_of = Check(
    reference=rows_by_role,
    trials=[
        call("head 1 of the keys, width 4, 2 heads", 4, 2, "k", 1),
        call("head 0 of the queries, width 12, 3 heads", 12, 3, "q", 0),
        call("head 11 of the values, width 768, 12 heads", 768, 12, "v", 11),
        call("head 5 of the keys, width 768, 8 heads", 768, 8, "k", 5),
    ],
    mistakes=[
        Mistake(
            "the role is left out: keys start after all embed_dim rows of the queries, values "
            "after those of the keys",
            lambda width, h, role, head: rows(head * (width // h), width // h),
        ),
        Mistake(
            "this is the order (h qkv d), with q, k and v of one head side by side; in (qkv h d) "
            "all heads of the queries come first",
            lambda width, h, role, head: rows(
                (3 * head + "qkv".index(role)) * (width // h), width // h
            ),
        ),
        Mistake(
            "the last row is missing or given as the stop: a slice stops before its stop, so "
            "stop = start + d",
            shifted(0, -1),
        ),
        Mistake("heads are counted from 0: this is the head before", shifted(-1, 0)),
        Mistake(
            "the number of heads and their width are mixed up: a head has "
            "embed_dim // num_heads rows",
            lambda width, h, role, head: rows("qkv".index(role) * width + head * h, h),
        ),
    ],
)


def order(pattern: str):
    """A wrong answer that rearranges the rows by this einops pattern."""
    return lambda rows: rearrange(rows, pattern, qkv=3)


reorder_rows = Check(
    reference=order("(c qkv) ... -> (qkv c) ..."),
    trials=[
        call("a weight (12, 4): width 4", numbered(12, 4)),
        call("a bias (12,): width 4", numbered(12)),
        call("a weight (18, 6): width 6", numbered(18, 6)),
    ],
    mistakes=[
        Mistake(
            "the rows stand where they stood: row 1 still makes a key; take rows 0, 3, 6, … for "
            "the queries (a reshape alone moves nothing)",
            lambda rows: rows.clone(),
        ),
        Mistake(
            "this is the way back, from (qkv h d) to (h d qkv): give each axis its place as it "
            "comes in, (c qkv), then say how it goes out, (qkv c)",
            order("(qkv c) ... -> (c qkv) ..."),
        ),
        Mistake(
            "the three roles are sorted out, but in the wrong order: queries first, then keys, "
            "then values",
            lambda rows: (
                order("(c qkv) ... -> (qkv c) ...")(rows)
                .unflatten(0, (3, -1))
                .flip(0)
                .flatten(0, 1)
            ),
        ),
        Mistake(
            "the weight is right, but a bias has one axis only: it needs the same order, or q, k "
            "and v get each other's bias",
            lambda rows: order("(c qkv) i -> (qkv c) i")(rows) if rows.ndim == 2 else rows.clone(),
        ),
    ],
)


# What `trust_split` is tried on: splits of (B, N, D), two right and the others wrong.
def by_view(x: Tensor, num_heads: int) -> Tensor:
    return x.reshape(len(x), num_heads, x.shape[1], x.shape[2] // num_heads)


def comb(x: Tensor, num_heads: int) -> Tensor:
    return rearrange(x, "b n (d h) -> b h n d", h=num_heads)


def unmoved(x: Tensor, num_heads: int) -> Tensor:
    return rearrange(x, "b n (h d) -> b n h d", h=num_heads)


def repeated(x: Tensor, num_heads: int) -> Tensor:
    return split_heads(x, num_heads)[:, :1].expand(-1, num_heads, -1, -1)


def always_two(x: Tensor, num_heads: int) -> Tensor:
    return split_heads(x, num_heads if x.shape[-1] % 2 else 2)


def judge(what: str, split: Callable[[Tensor, int], Tensor]) -> Trial:
    """Hand a split to the learner's test, and take its verdict."""

    def run(answer: Callable) -> object:
        verdict = answer(split)
        if isinstance(verdict, Tensor) and verdict.numel() != 1:
            raise TypeError(
                "give one True or False for all numbers together: torch.equal, or .all()"
            )
        return bool(verdict) if isinstance(verdict, Tensor) else verdict

    return Trial(what, run)


def expected(tokens: int, heads: int):
    """A test that compares with the right split, on this many tokens and heads."""
    x = numbered(2, tokens, 4 * heads)
    return lambda split: torch.equal(split(x, heads), split_heads(x, heads))


def one_token(split: Callable) -> bool:
    """A test that only asks whether a change of a token stays in that token's rows."""
    x, other = numbered(2, 4, 6), numbered(2, 4, 6)
    other[:, 1] += 100
    stays = torch.zeros(2, 3, 4, dtype=torch.bool)
    stays[:, :, 1] = True
    return torch.equal((split(x, 3) != split(other, 3)).any(dim=-1), stays)


def all_there(split: Callable) -> bool:
    x = numbered(2, 4, 6)
    return torch.equal(split(x, 3).flatten().sort().values, x.flatten())


trust_split = Check(
    reference=lambda split: expected(5, 3)(split) and expected(5, 2)(split),
    trials=[
        judge("the right split, by einops", split_heads),
        judge(
            "the right split, by view(B, N, h, d) and transpose",
            lambda x, h: x.unflatten(-1, (h, -1)).transpose(1, 2),
        ),
        judge("a split by view(B, h, N, d)", by_view),
        judge("a split whose heads take every h-th column", comb),
        judge("a split that gives (B, N, h, d)", unmoved),
        judge("a split that gives the first head's columns to all heads", repeated),
        judge("a split that always makes two heads", always_two),
        judge("a split with its heads in reverse", lambda x, h: split_heads(x, h).flip(1)),
    ],
    mistakes=[
        Mistake("it trusts everything, view(B, h, N, d) too", lambda split: True),
        Mistake(
            "it is the wrong way round: True means that the split is right",
            lambda split: not (expected(5, 3)(split) and expected(5, 2)(split)),
        ),
        Mistake(
            "it looks at the shape only; view(B, h, N, d) has the right shape and other numbers",
            lambda split: split(numbered(2, 4, 6), 3).shape == (2, 3, 4, 2),
        ),
        Mistake(
            "it asks only whether all numbers are still there; they are, in the wrong places, "
            "after view(B, h, N, d): look at where each stands",
            all_there,
        ),
        Mistake(
            "it sees that tokens are not mixed, but not which columns each head has: it trusts a "
            "split whose heads take every h-th column; compare with slices of x",
            one_token,
        ),
        Mistake(
            "it tries a single token, and there view(B, h, N, d) is right by luck; take several",
            expected(1, 3),
        ),
        Mistake(
            "it tries two heads only, and so trusts a split that always makes two; take three",
            expected(5, 2),
        ),
    ],
)
