"""Build cells and exercises of lesson 03."""

from collections.abc import Callable
from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from vit_steps import heads as package

from .compare import Verdict
from .engine import Check
from .exercise import Exercise
from .trials import Trial, call, learns, numbered, trust, untouched

# Build cells -------------------------------------------------------------------------------------

split_heads = Exercise(
    answer="""
def split_heads(x, num_heads):  # x: (B, N, D)
    return rearrange(x, "b n (h d) -> b h n d", h=num_heads)
""",
    trials=[
        call("4 numbered tokens of width 6, 2 heads", numbered(1, 4, 6), 2),
        call("2 images of 9 tokens of width 12, 3 heads", numbered(2, 9, 12), 3),
        learns("4 tokens whose gradient is asked for", numbered(1, 4, 6), 2),
    ],
    wrong="""
the shape is right and the numbers are not: view and reshape read the memory straight on and mix
the tokens; cut the width first, (B, N, h, d), then bring the heads forward
    rearrange(x, "b n (h d) -> b h n d", h=num_heads) =>
        x.reshape(len(x), num_heads, x.shape[1], -1)
    rearrange(x, "b n (h d) -> b h n d", h=num_heads) =>
        x.mT.reshape(len(x), num_heads, x.shape[1], -1)
the width is cut; now bring the heads forward, before the tokens: (B, h, N, d)
    b h n d => b n h d
    b h n d => b n d h
each head gets every h-th column; it should get d columns that stand side by side: in the pattern
(h d), h stands first
    (h d) => (d h)
the number of heads and their width are mixed up: there are num_heads heads, each D // num_heads
wide
    h=num_heads => d=num_heads
the heads stand in front of the batch: the image comes first, (B, h, N, d); with torch.stack, say
dim=1
    b h n d => h b n d
the heads are joined with the batch; they need an axis of their own: (B, h, N, d)
    b h n d => (b h) n d
the number of heads is a fixed number: use num_heads
    h=num_heads => h=2
    h=num_heads => h=3
it cuts the row of tokens; cut the last axis, the width: every head sees every token
    b n (h d) => b (h n) d
tokens come before the columns: (B, h, N, d)
    b h n d => b h d n
the heads are right, but in a list: join them to one tensor by torch.stack, dim=1
    b h n d", h=num_heads) => h b n d", h=num_heads).unbind()
every head gets the first columns: head i starts at column i · d
    h=num_heads) => h=num_heads)[:, :1].repeat(1, num_heads, 1, 1)
only head 0 is left: give all of them
    h=num_heads) => h=num_heads)[:, 0]
no gradient passes: keep to tensors, without detach, tolist or numpy
    h=num_heads) => h=num_heads).detach()
""",
)

merge_heads = Exercise(
    answer="""
def merge_heads(x):  # x: (B, h, N, d)
    return rearrange(x, "b h n d -> b n (h d)")
""",
    trials=[
        call("2 images, 3 heads of 9 tokens, each 4 wide", numbered(2, 3, 9, 4)),
        learns("heads whose gradient is asked for", numbered(1, 2, 4, 3)),
    ],
    wrong="""
the shape is right and the numbers are not: reshape reads the memory straight on and mixes the
tokens; bring the heads back beside the width first, (B, N, h, d)
    rearrange(x, "b h n d -> b n (h d)") => x.reshape(len(x), x.shape[2], -1)
the heads are back behind the tokens, but still apart: join the last two axes, (B, N, h, d) to
(B, N, D)
    b n (h d) => b n h d
the heads' columns stand by turns; head 0's columns come first, all of them, then head 1's: (h d),
not (d h)
    (h d) => (d h)
the heads stand below each other, as more tokens; they belong side by side, in the width
    b n (h d) => b (h n) d
the heads are added; set them side by side
    rearrange(x, "b h n d -> b n (h d)") => x.sum(dim=1)
the heads are averaged; set them side by side
    rearrange(x, "b h n d -> b n (h d)") => x.mean(dim=1)
it joins the tokens with the width; join the heads with the width, (B, N, D)
    b n (h d) => b h (n d)
all tokens are joined to one row; only the last two axes of (B, N, h, d) are joined
    b n (h d) => b (n h d)
it swaps the last two axes, tokens and columns; swap the heads with the tokens, transpose(1, 2)
    rearrange(x, "b h n d -> b n (h d)") => x.transpose(2, 3).reshape(len(x), x.shape[2], -1)
only one head is left: set all of them side by side
    rearrange(x, "b h n d -> b n (h d)") => x[:, 0]
the sizes are fixed numbers; take them from the tensor that comes
    rearrange(x, "b h n d -> b n (h d)") => x.transpose(1, 2).reshape(-1, 9, 12)
it joins the images of the batch; join the heads, axis 1: unbind(dim=1) takes them apart
    rearrange(x, "b h n d -> b n (h d)") => torch.cat(list(x), dim=-1)
no gradient passes: keep to tensors, without detach, tolist or numpy
    b n (h d)") => b n (h d)").detach()
""",
)


def apart(what: str, qkv: Tensor, num_heads: int) -> Trial:
    """A trial of a split into three, however they come: as a tuple, a list or one tensor."""

    def run(answer: Callable) -> Any:
        result = untouched(answer, qkv, num_heads)
        if isinstance(result, Tensor) and result.ndim == 5 and len(result) == 3:
            return tuple(result)
        return result

    return Trial(what, run, lambda change: apart(what, change(qkv), num_heads))


split_qkv = Exercise(
    answer="""
def split_qkv(qkv, num_heads):  # qkv: (B, N, 3·D), its width in the order (qkv h d)
    parts = rearrange(qkv, "b n (qkv h d) -> qkv b h n d", qkv=3, h=num_heads)
    q, k, v = parts
    return q, k, v
""",
    trials=[
        apart("5 numbered tokens of width 24, 2 heads", numbered(1, 5, 24), 2),
        apart("2 images of 7 tokens of width 60, 4 heads", numbered(2, 7, 60), 4),
        learns("5 tokens whose gradient is asked for", numbered(1, 5, 24), 2),
    ],
    wrong="""
this reads the width as (h d qkv), by turns a number of a query, a key, a value; in (qkv h d) all
queries come first
    b n (qkv h d) => b n (h d qkv)
this reads the width as (h qkv d), q, k and v of head 0, then of head 1; in (qkv h d) the queries
of all heads come first
    b n (qkv h d) => b n (h qkv d)
each head gets every h-th column; it should get d columns that stand side by side: in the pattern
(h d), h stands first
    b n (qkv h d) => b n (qkv d h)
these are queries, keys and values, but not yet cut into heads: each is (B, h, N, d)
    rearrange(qkv, "b n (qkv h d) -> qkv b h n d", qkv=3, h=num_heads) => qkv.chunk(3, dim=-1)
queries first, then keys, then values, as the width has them: (qkv h d)
    return q, k, v => return k, q, v
    return q, k, v => return v, k, q
    return q, k, v => return q, v, k
    return q, k, v => return k, v, q
    return q, k, v => return v, q, k
the shape is right and the numbers are not: view and reshape read the memory straight on and mix
the tokens; cut the width first, (B, N, h, d), then bring the heads forward
    rearrange(qkv, "b n (qkv h d) -> qkv b h n d", qkv=3, h=num_heads) =>
        qkv.reshape(3, len(qkv), num_heads, qkv.shape[1], -1)
    rearrange(qkv, "b n (qkv h d) -> qkv b h n d", qkv=3, h=num_heads) =>
        (p.reshape(len(p), num_heads, p.shape[1], -1) for p in qkv.chunk(3, dim=-1))
the width is cut; now bring the heads forward, before the tokens: (B, h, N, d)
    qkv b h n d => qkv b n h d
the number of heads and their width are mixed up: there are num_heads heads, each D // num_heads
wide
    h=num_heads => d=num_heads
these are three times the queries
    return q, k, v => return q, q, q
the values are the keys again: they start at column 2 · D
    return q, k, v => return q, k, k
it cuts the row of tokens; cut the last axis, the width: every head sees every token
    rearrange(qkv, "b n (qkv h d) -> qkv b h n d", qkv=3, h=num_heads) =>
        (split_heads(p, num_heads) for p in qkv.chunk(3, dim=1))
give three tensors, q, k and v: this is the first alone
    return q, k, v => return q
the sizes are fixed numbers; take them from the tensor that comes and from num_heads
    h=num_heads => h=2
    h=num_heads => h=4
no gradient passes: keep to tensors, without detach, tolist or numpy
    return q, k, v => return q.detach(), k.detach(), v.detach()
""",
)


# Which rows? -------------------------------------------------------------------------------------


def rows_by_role(embed_dim: int, num_heads: int, role: str, head: int) -> tuple[int, int]:
    d = embed_dim // num_heads
    start = "qkv".index(role) * embed_dim + head * d
    return start, start + d


def rows_from(start: Callable[[int, int, int, int, int], int]):
    """A wrong answer whose start is computed so, from the width, h, d, the role's number, head."""

    def wrong(embed_dim: int, num_heads: int, role: str, head: int) -> tuple[int, int]:
        d = embed_dim // num_heads
        first = start(embed_dim, num_heads, d, "qkv".index(role), head)
        return first, first + d

    return wrong


def rows_as(form: Callable[[int, int], Any]):
    """A wrong answer that finds the right rows and says them in another form."""
    return lambda *inputs: form(*rows_by_role(*inputs))


def rows_in_floats(embed_dim: int, num_heads: int, role: str, head: int) -> tuple[float, float]:
    start = "qkv".index(role) * embed_dim + head * (embed_dim / num_heads)
    return start, start + embed_dim / num_heads


def rows_of_head_count(embed_dim: int, num_heads: int, role: str, head: int) -> tuple[int, int]:
    start = "qkv".index(role) * embed_dim + head * num_heads
    return start, start + num_heads


def rows_of_the_role(embed_dim: int, num_heads: int, role: str, head: int) -> tuple[int, int]:
    start = "qkv".index(role) * embed_dim
    return start, start + embed_dim


def rows_trial(what: str, *sizes: Any) -> Trial:
    """Asks for a tuple: a list of the same numbers would compare as equal to it."""

    def run(answer: Callable) -> Any:
        result = answer(*sizes)
        listed = isinstance(result, list) and len(result) == 2
        return Verdict("give a tuple (start, stop), not a list") if listed else result

    return Trial(what, run)


rows_of = Check(
    reference=rows_by_role,
    trials=[
        rows_trial('head 1 of the keys ("k"), width 12, 3 heads', 12, 3, "k", 1),
        rows_trial('head 3 of the queries ("q"), width 20, 4 heads', 20, 4, "q", 3),
        rows_trial('head 11 of the values ("v"), width 768, 12 heads', 768, 12, "v", 11),
        rows_trial('head 5 of the keys ("k"), width 768, 8 heads', 768, 8, "k", 5),
    ],
    mistakes={
        "the role is left out: keys start after all embed_dim rows of the queries, values after "
        "those of the keys": rows_from(lambda width, h, d, role, head: head * d),
        "this is the order (h qkv d), with q, k and v of one head side by side; in (qkv h d) all "
        "heads of "
        "the queries come first": rows_from(lambda width, h, d, role, head: (3 * head + role) * d),
        "the last row is missing or given as the stop: a slice stops before its stop, so stop = "
        "start + d": rows_as(lambda start, stop: (start, stop - 1)),
        "heads are counted from 0: this is the head before": rows_from(
            lambda width, h, d, role, head: role * width + (head - 1) * d
        ),
        "the number of heads and their width are mixed up: "
        "a head has embed_dim // num_heads rows": rows_of_head_count,
        "a role is not one head wide: it has embed_dim rows, those of all its heads": rows_from(
            lambda width, h, d, role, head: (role + head) * d
        ),
        "the queries come first, at row 0: count the roles from 0": rows_from(
            lambda width, h, d, role, head: (role + 1) * width + head * d
        ),
        "the values come last: the roles stand in the order q, k, v": rows_from(
            lambda width, h, d, role, head: (0, 2, 1)[role] * width + head * d
        ),
        "rows are counted from 0: this is a row too far down": rows_from(
            lambda width, h, d, role, head: role * width + head * d + 1
        ),
        "these are the rows of all heads of the role; take the rows of one head": rows_of_the_role,
        "give a tuple (start, stop), not a slice": rows_as(slice),
        "give a tuple (start, stop), not a list": rows_as(lambda start, stop: [start, stop]),
        "give whole numbers: a slice takes no floats; divide by //, not /": rows_in_floats,
        "the second number says how many rows there are; give the stop, start + d": rows_as(
            lambda start, stop: (start, stop - start)
        ),
        "give a tuple (start, stop), not each row": rows_as(
            lambda start, stop: list(range(start, stop))
        ),
    },
)


# Repair the checkpoint ---------------------------------------------------------------------------


def order(pattern: str):
    """An answer that rearranges the rows by this einops pattern."""
    return lambda rows: rearrange(rows, pattern, qkv=3)


def in_turn(*roles: int):
    """A wrong answer that sorts the three roles out, but sets them in this order."""
    return lambda rows: torch.cat([rows[role::3] for role in roles])


BIAS = "the weight is right, but a bias has one axis only: it needs the same order of its rows"

reorder_rows = Check(
    reference=order("(c qkv) ... -> (qkv c) ..."),
    trials=[
        call("a weight (15, 5): width 5", numbered(15, 5)),
        call("a bias (15,): width 5", numbered(15)),
        call("a weight (24, 8): width 8", numbered(24, 8)),
        call("a bias (24,): width 8", numbered(24)),
    ],
    mistakes={
        "the rows stand where they stood: row 1 still makes a key; take rows 0, 3, 6, … for the "
        "queries (a reshape alone moves nothing)": lambda rows: rows.clone(),
        "this is the way back, from (qkv h d) to (h d qkv): give each axis its place as it comes "
        "in, (c qkv), then say how it goes out, (qkv c)": order("(qkv c) ... -> (c qkv) ..."),
        "the three roles are sorted out, but in the wrong order: queries first, then keys, then "
        "values": tuple(
            in_turn(*roles) for roles in ((1, 0, 2), (2, 1, 0), (0, 2, 1), (1, 2, 0), (2, 0, 1))
        ),
        BIAS: (
            lambda rows: order("(c qkv) i -> (qkv c) i")(rows) if rows.ndim == 2 else rows.clone(),
            order("(c qkv) i -> (qkv c) i"),
        ),
        "the rows are sorted, but in three parts: join them to one tensor of the shape that came, "
        "by torch.cat "
        "or flatten(0, 1)": lambda rows: torch.stack([rows[role::3] for role in range(3)]),
        "the rows are sorted, but in three parts: join them "
        "to one tensor by torch.cat": lambda rows: tuple(rows[role::3] for role in range(3)),
        "these are the queries alone: the keys and the values follow them": lambda rows: rows[::3],
        "it changes the tensor that was given: write into a new one, rows.clone(), or join the "
        "parts by torch.cat": lambda rows: rows.copy_(in_turn(0, 1, 2)(rows)),
        "it moves the columns: a row makes one number of the output, "
        "so move the rows, axis 0": lambda rows: (
            rows.clone()
            if rows.ndim == 1
            else torch.cat([rows[:, role::3] for role in range(3)], dim=1)
        ),
    },
)


# The test that catches them ----------------------------------------------------------------------


def split_as(pattern: str) -> Callable[[Tensor, int], Tensor]:
    """A split by this einops pattern."""
    return lambda x, h: rearrange(x, pattern, h=h)


def by_view(x: Tensor, num_heads: int) -> Tensor:
    return x.reshape(len(x), num_heads, x.shape[1], x.shape[2] // num_heads)


def turned_then_cut(x: Tensor, num_heads: int) -> Tensor:
    return x.mT.reshape(len(x), num_heads, x.shape[1], x.shape[2] // num_heads)


def repeated(x: Tensor, num_heads: int) -> Tensor:
    return package.split_heads(x, num_heads)[:, :1].expand(-1, num_heads, -1, -1)


def always_two(x: Tensor, num_heads: int) -> Tensor:
    """Two heads, and one where the width is odd: wrong at every width for three heads or more."""
    return package.split_heads(x, 1 if x.shape[-1] % 2 else 2)


def is_split(tokens: int, heads: int):
    """A test that compares with the right split, on this many tokens and heads."""
    x = numbered(2, tokens, 4 * heads)
    return lambda split: torch.equal(split(x, heads), package.split_heads(x, heads))


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


def first_head(split: Callable) -> bool:
    x = numbered(2, 5, 12)
    return torch.equal(split(x, 3)[:, 0], x[..., :4])


trust_split = Check(
    reference=lambda split: is_split(5, 3)(split) and is_split(5, 4)(split),
    trials=[
        trust("the right split, by einops", package.split_heads, True),
        trust(
            "the right split, by view(B, N, h, d) and transpose(1, 2)",
            lambda x, h: x.unflatten(-1, (h, -1)).transpose(1, 2),
            True,
        ),
        trust(
            "a split by view(B, h, N, d)",
            by_view,
            False,
            "row 1 of its head 0 is not from token 1, but the second part of token 0",
        ),
        trust(
            "a split by transpose(1, 2), then reshape(B, h, N, d)",
            turned_then_cut,
            False,
            "row 0 of its head 0 holds one column of several tokens",
        ),
        trust(
            "a split whose heads take every h-th column",
            split_as("b n (d h) -> b h n d"),
            False,
            "its head 0 has columns 0, h, 2h, … instead of the first d",
        ),
        trust(
            "a split that gives (B, N, h, d)",
            split_as("b n (h d) -> b n h d"),
            False,
            "its heads are not brought forward",
        ),
        trust(
            "a split that gives (h, B, N, d)",
            split_as("b n (h d) -> h b n d"),
            False,
            "its heads stand in front of the batch",
        ),
        trust(
            "a split that gives the first d columns to every head",
            repeated,
            False,
            "its head 1 has head 0's numbers; compare every head",
        ),
        trust(
            "a split that makes two heads, whatever is asked for",
            always_two,
            False,
            "ask it for three heads or more",
        ),
        trust(
            "a split with its heads in reverse",
            lambda x, h: package.split_heads(x, h).flip(1),
            False,
            "its head 0 has the last columns",
        ),
    ],
    mistakes={
        "it trusts everything, view(B, h, N, d) too": lambda split: True,
        "it trusts nothing, not even the right split": lambda split: False,
        "it is the wrong way round: True means that the split is right": lambda split: (
            not is_split(5, 3)(split)
        ),
        "it looks at the shape only, or at numbers that are all alike; view(B, h, N, d) has the "
        "right shape and other numbers: give it a tensor of different "
        "ones and compare": lambda split: split(numbered(2, 4, 6), 3).shape == (2, 3, 4, 2),
        "it asks only whether all numbers are still there; they are, in the wrong places, after "
        "view(B, h, N, d): look at where each stands": all_there,
        "it trusts view(B, h, N, d) and not the right split: a plain reshape back undoes its own "
        "damage; compare each head with its columns of "
        "x": lambda split: torch.equal(split(numbered(2, 4, 6), 3).flatten(), numbered(48)),
        "it sees that tokens are not mixed, but not which columns each head has: it trusts a split "
        "whose heads take every h-th column; compare with slices of x": one_token,
        "it tries a single token, and there view(B, h, N, d) is right by luck; "
        "take several": is_split(1, 3),
        "it tries a single head, and there is nothing to cut; take three or more": is_split(5, 1),
        "it trusts a split that always makes two heads, whatever is asked for: ask for three heads "
        "or more": is_split(5, 2),
        "it tries heads of a single column, and there (h d) and (d h) are the same; take wider "
        "heads": lambda split: torch.equal(
            split(numbered(2, 5, 3), 3), numbered(2, 5, 3).mT[..., None]
        ),
        "it looks at the first head only, and so trusts a split that gives the first columns to "
        "every head; compare all heads": first_head,
    },
)
