"""Build cells and exercises of lesson 03, and the training of its experiment."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .compare import Verdict
from .exercise import Exercise, refusals
from .trials import Trial, asked, call, learns, numbered, trust, untouched


def fetch(
    title: str,
    make_model: Callable,
    look_up: Callable,
    num_heads: int,
    places: int = 2,
    values: bool = False,
) -> None:
    """Train lookups by which cls should fetch half its numbers from each of two places, or of one.

    Tokens are top, bottom, side and cls; each holds 8 random numbers and a mark that says which it
    is. Prints of three seeds the error, and whom cls attends to.

    Args:
        title: is printed first.
        make_model: makes what turns tokens (B, 4, 12) into q, k and v side by side, (B, 4, 24).
        look_up: from q, k, v, each (B, 4, 8), and `num_heads`, to blends and attention weights.
        num_heads: of the lookup.
        places: 2 for the first half from top and the second from bottom; 1 for both from top.
        values: whether the mean squares of both halves of top's value and of bottom's are printed.
    """
    marks = torch.eye(4).expand(256, 4, 4)

    def attempt(model: nn.Module) -> tuple[Tensor, Tensor, Tensor]:
        numbers = torch.randn(256, 4, 8)
        goal = torch.cat([numbers[:, 0, :4], numbers[:, places - 1, 4:]], dim=-1)
        q, k, v = model(torch.cat([numbers, marks], dim=-1)).chunk(3, dim=-1)
        blend, attention = look_up(q, k, v, num_heads)
        return F.mse_loss(blend[:, 3], goal), attention[:, :, 3], v

    print(title)  # noqa: T201
    for seed in range(3):
        torch.manual_seed(seed)
        model = make_model()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        for _ in range(200):
            error, _, _ = attempt(model)
            optimizer.zero_grad()
            error.backward()
            optimizer.step()
        with torch.no_grad():
            error, of_cls, v = attempt(model)  # of_cls: (B, h, 4)
        mean, spread = of_cls.mean(dim=0).numpy().round(1), of_cls.std(dim=0).max()
        print(f"  error {error.item():.2f}, cls attends", *mean, f"± {spread:.1f}", end="")  # noqa: T201
        halves = v[:, :2].unflatten(-1, (2, 4)).square().mean(dim=(0, 3))
        print(*[", values", *halves.numpy().round(1)] if values else [])  # noqa: T201


split_heads = Exercise(
    answer="""
def split_heads(x, num_heads):  # x: (B, N, D)
    return rearrange(x, "b n (h d) -> b h n d", h=num_heads)
""",
    trials=[
        call("4 numbered tokens of width 6, 2 heads", numbered(1, 4, 6), 2),
        learns("2 images of 9 tokens of width 12, 3 heads", numbered(2, 9, 12), 3),
    ],
    wrong="""
the shape is right and the numbers are not: view and reshape read the memory straight on and mix
the tokens; cut the width first, (B, N, h, d), then bring the heads forward
    rearrange… => x.reshape(len(x), num_heads, x.shape[1], -1) ‖
        x.mT.reshape(len(x), num_heads, x.shape[1], -1)
the width is cut; now bring the heads forward, before the tokens: (B, h, N, d)
    b h n d => b n h d ‖ b n d h
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
    h=num_heads => h=2 ‖ h=3
it cuts the row of tokens; cut the last axis, the width: every head sees every token
    b n (h d) => b (h n) d
tokens come before the columns: (B, h, N, d)
    b h n d => b h d n
the heads are right, but in a list: join them to one tensor by torch.stack, dim=1
    b h n d", h=num_heads) => h b n d", h=num_heads).unbind()
the heads overlap: head i starts at column i · d, not at column i
    rearrange… => torch.stack([x[:, :, i : i + WIDTH] for i in range(num_heads)], dim=1) ;;
        WIDTH => x.shape[-1] // num_heads
only the first image comes back; the batch is an axis of the result, too
    # x: (B, N, D) => # ⏎     x = x[:1]
every head gets the first columns: head i starts at column i · d
    h=num_heads) => h=num_heads)[:, :1].repeat(1, num_heads, 1, 1)
a head stays empty: a loop over the heads runs over range(num_heads)
    h=num_heads) => h=num_heads) * WHERE[:, None, None] ;;
        WHERE => (torch.arange(num_heads) < num_heads - 1) ‖ (torch.arange(num_heads) > 0)
only head 0 is left: give all of them
    h=num_heads) => h=num_heads)[:, 0]
rearrange can't know how many heads there are: tell it, `h=num_heads`
    ! Could not infer sizes
no gradient passes: keep to tensors, without detach, tolist or numpy
    # x: (B, N, D) => # ⏎     x = x.detach()
""",
    does="Every head gets its own columns of every token, so all heads can look things up at once.",
    why="The pattern cuts the width where it stands, (h d), and brings h in front of the tokens. "
    "In torch alone: `x.view(B, N, num_heads, D // num_heads).transpose(1, 2)`.",
)

merge_heads = Exercise(
    answer="""
def merge_heads(x):  # x: (B, h, N, d)
    return rearrange(x, "b h n d -> b n (h d)")
""",
    trials=[
        call("2 heads of 4 tokens, each 3 wide", numbered(1, 2, 4, 3)),
        learns("2 images, 3 heads of 9 tokens, each 4 wide", numbered(2, 3, 9, 4)),
    ],
    wrong="""
the shape is right and the numbers are not: reshape reads the memory straight on and mixes the
tokens; bring the heads back beside the width first, (B, N, h, d)
    rearrange(x, "b h n d -> b n (h d)") => x.reshape(len(x), x.shape[2], -1)
the heads are back behind the tokens, but still apart: join the last two axes, (B, N, h, d) to
(B, N, D)
    b n (h d) => b n h d
the heads' columns are interleaved; head 0's columns come first, all of them, then head 1's: (h d),
not (d h)
    (h d) => (d h)
the heads stand below each other, as more tokens; they belong side by side, in the width
    b n (h d) => b (h n) d ‖ b (n h) d
only the first image comes back; the batch is an axis of the result, too
    # x: (B, h, N, d) => # ⏎     x = x[:1]
head 0 is left out: the heads are counted from 0
    # x: (B, h, N, d) => # ⏎     x = x[:, 1:]
the heads are joined along the batch; they belong side by side, in the width: dim=-1
    rearrange(x, "b h n d -> b n (h d)") => torch.cat(x.unbind(1))
only the first image comes back, without the batch's axis: join the heads of all images, dim=-1 of
x.unbind(dim=1)
    rearrange(x, "b h n d -> b n (h d)") => torch.cat(list(x[0]), dim=-1)
the last head is left out: a loop over the heads runs to x.shape[1]
    # x: (B, h, N, d) => # ⏎     x = x[:, :-1]
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
the tokens stand in front of the batch: the image comes first, (B, N, D)
    b n (h d) => n b (h d)
it joins the images of the batch; join the heads, axis 1: unbind(dim=1) takes them apart
    rearrange(x, "b h n d -> b n (h d)") => torch.cat(list(x), dim=-1)
view needs the numbers in the order in which they lie in memory, and after a transpose they are not:
take reshape or flatten there
    ! view size is not compatible
no gradient passes: keep to tensors, without detach, tolist or numpy
    # x: (B, h, N, d) => # ⏎     x = x.detach()
""",
    does="What the heads fetched stands side by side again, one row a token.",
    why="The pattern of `split_heads`, read from right to left. In torch alone: "
    "`x.transpose(1, 2).flatten(2)`; a reshape without the transpose mixes the tokens.",
)


def apart(answer: Callable, *inputs: Any) -> Any:
    """Call a split into three, which may give a tuple, a list or one tensor."""
    result = untouched(answer, *inputs)
    if isinstance(result, Tensor) and result.ndim == 5 and len(result) == 3:
        return tuple(result)
    return result


split_qkv = Exercise(
    answer="""
def split_qkv(qkv, num_heads):  # qkv: (B, N, 3·D), its width in the order (qkv h d)
    q, k, v = rearrange(qkv, "b n (qkv h d) -> qkv b h n d", qkv=3, h=num_heads)
    return q, k, v
""",
    trials=[
        Trial("5 numbered tokens of width 24, 2 heads", apart, [numbered(1, 5, 24), 2]),
        learns("2 images of 7 tokens of width 60, 4 heads", numbered(2, 7, 60), 4, use=apart),
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
this reads the width as (d h qkv), the other way round; in (qkv h d) all queries come first
    b n (qkv h d) => b n (d h qkv)
the axis of the three must come first, to be taken apart as q, k, v (and chunk cuts the images
unless it is told dim=-1)
    qkv b h n d => b qkv h n d
    ! not enough values to unpack
split takes the size of a part, chunk their number: qkv.chunk(3, dim=-1)
    ! too many values to unpack
rearrange must be told two of the three sizes: `qkv=3`, `h=num_heads`
    ! Could not infer sizes
the width here is 3·D, so a head is width // (3 * num_heads) wide
    ! is invalid for input of size
one of the three is not cut into heads yet: each is (B, h, N, d)
    return q, k, v => THIRDS = qkv.chunk(3, dim=-1) ⏎ return WHAT ;;
        WHAT => q, k, THIRDS[2] ‖ q, THIRDS[1], v ‖ THIRDS[0], k, v
only the first image comes back; the batch is an axis of the result, too
    return q, k, v => return q[:1], k[:1], v[:1]
these are queries, keys and values, but not yet cut into heads: each is (B, h, N, d)
    rearrange(qkv, "b n (qkv h d) -> qkv b h n d", qkv=3, h=num_heads) => qkv.chunk(3, dim=-1)
queries first, then keys, then values, as the width has them: (qkv h d)
    return… => return k, q, v ‖ return v, k, q ‖ return q, v, k ‖ return k, v, q ‖ return v, q, k
the shape is right and the numbers are not: view and reshape read the memory straight on and mix
the tokens; cut the width first, (B, N, h, d), then bring the heads forward
    rearrange… => qkv.reshape(3, len(qkv), num_heads, qkv.shape[1], -1) ‖
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
the keys are the queries again: they start at column D
    return q, k, v => return q, q, v
the values are the queries again: they start at column 2 · D
    return q, k, v => return q, k, q
the keys are turned, (B, h, d, N); that comes with the scores: give them as (B, h, N, d)
    h=num_heads) => h=num_heads) ⏎ k = k.mT
they are divided by √d already; that comes with the scores: give them as they are
    return q, k, v => return q / q.shape[-1] ** 0.5, k, v ‖ return q, k / q.shape[-1] ** 0.5, v
it cuts the row of tokens; cut the last axis, the width: every head sees every token
    rearrange… => (split_heads(p, num_heads) for p in qkv.chunk(3, dim=1))
give three tensors, q, k and v: this is the first alone
    return q, k, v => return q
the sizes are fixed numbers; take them from the tensor that comes and from num_heads
    h=num_heads => h=2 ‖ h=4
no gradient passes: keep to tensors, without detach, tolist or numpy
    # qkv: (B, N, 3·D), its => # ⏎     qkv = qkv.detach()  #
""",
    does="The output of one Linear becomes the queries, keys and values of every head.",
    why="Three axes lie in the width, and the role comes first, so the result can be taken apart. "
    "In two steps: `qkv.chunk(3, dim=-1)` gives the thirds, and `split_heads` cuts each.",
)


def rows_trial(what: str, *sizes: Any) -> Trial:
    """Make a trial that asks for a tuple: a list of the same numbers would compare as equal."""

    def say(result: Any, *_: Any) -> Any:
        if isinstance(result, list) and len(result) == 2:
            return Verdict("give a tuple (start, stop), not a list")
        return result

    return Trial(what, asked, sizes, say)


rows_of = Exercise(
    answer="""
def rows_of(embed_dim, num_heads, role, head):
    d = embed_dim // num_heads
    start = "qkv".index(role) * embed_dim + head * d
    return start, start + d
""",
    trials=[
        rows_trial('head 1 of the keys ("k"), width 12, 3 heads', 12, 3, "k", 1),
        rows_trial('head 3 of the queries ("q"), width 20, 4 heads', 20, 4, "q", 3),
        rows_trial('head 11 of the values ("v"), width 768, 12 heads', 768, 12, "v", 11),
    ],
    wrong="""
the role is left out: keys start after all embed_dim rows of the queries, values after those of the
keys
    "qkv".index(role) * embed_dim + head * d => head * d
this is the order (h qkv d), with q, k and v of one head side by side; in (qkv h d) all heads of the
queries come first
    "qkv".index(role) * embed_dim + head * d => (3 * head + "qkv".index(role)) * d
the last row is missing or given as the stop: a slice stops before its stop, so stop = start + d
    start + d => start + d - 1
embed_dim is the width of a token, and each role has that many rows: do not divide it by 3
    embed_dim // num_heads => embed_dim // (3 * num_heads) ;; * embed_dim + => * embed_dim // 3 +
heads are counted from 0: this is the head before
    head * d => (head - 1) * d
heads are counted from 0: this is the next head
    head * d => (head + 1) * d
the number of heads and their width are mixed up: a head has embed_dim // num_heads rows
    embed_dim // num_heads => num_heads
the number of heads and their width are mixed up: head i begins i · d rows after head 0
    head * d => head * num_heads
a role is not one head wide: it has embed_dim rows, those of all its heads
    "qkv".index(role) * embed_dim + head * d => ("qkv".index(role) + head) * d
the queries come first, at row 0: count the roles from 0
    "qkv".index(role) => ("qkv".index(role) + 1)
the keys come second: they start after the embed_dim rows of the queries, at row embed_dim
    "qkv".index(role) => ("qkv".index(role) > 0) * 2
the roles stand in another order: queries first, then keys, then values
    "qkv" => "qvk" ‖ "kqv" ‖ "kvq" ‖ "vqk" ‖ "vkq"
rows are counted from 0: this is a row too far down
    return start, start + d => return start + 1, start + 1 + d
these are the rows of all heads of the role; take the rows of one head
    + head * d =>  ;; start + d => start + embed_dim
give a tuple (start, stop), not a slice
    return start, start + d => return slice(start, start + d)
give a tuple (start, stop), not a list
    return start, start + d => return [start, start + d]
give whole numbers: a slice takes no floats; divide by //, not /
    embed_dim // num_heads => embed_dim / num_heads
the second number says how many rows there are; give the stop, start + d
    return start, start + d => return start, d
give a tuple (start, stop), not each row
    return start, start + d => return list(range(start, start + d))
""",
    why="Each role has `embed_dim` rows, and in it each head has the next `d`. Lesson 10 needs "
    "this counting for other people's weights.",
)


WRONG_SPLITS = """
a split by view(B, h, N, d): row 1 of its head 0 is not from token 1, but the second part of token 0
    rearrange… => x.reshape(len(x), num_heads, x.shape[1], -1)
a split by transpose(1, 2), then reshape(B, h, N, d): row 0 of its head 0 holds one column of
several tokens
    rearrange… => x.mT.reshape(len(x), num_heads, x.shape[1], -1)
a split whose heads take every h-th column: its head 0 has columns 0, h, 2h, … instead of the first
d
    (h d) => (d h)
a split that gives the first d columns to every head: its head 1 has head 0's numbers; compare every
head
    h=num_heads) => h=num_heads)[:, :1].expand(-1, num_heads, -1, -1)
a split that makes two heads, whatever is asked for: ask it for three heads or more, and look how
many come
    h=num_heads => h=1 if x.shape[-1] % 2 else 2
a split that mixes up the number of heads with their width: take sizes where the two differ
    h=num_heads => d=num_heads
a split with its heads in reverse: its head 0 has the last columns
    h=num_heads) => h=num_heads).flip(1)
"""

# The right split in other ways, for grading: a guess would name one right candidate too often.
RIGHT_SPLITS: tuple[Callable[[Tensor, int], Tensor], ...] = (
    lambda x, h: torch.stack(x.chunk(h, dim=-1), dim=1),
    lambda x, h: x.reshape(*x.shape[:2], h, -1).permute(0, 2, 1, 3),
)

trust_split = Exercise(
    answer="""
def trust_split(split):
    x = torch.randn(2, 5, 12)
    right = True
    for num_heads in (3, 4):
        d = 12 // num_heads
        slices = [x[:, :, i * d : (i + 1) * d] for i in range(num_heads)]
        heads = split(x, num_heads)
        right = right and torch.equal(heads, torch.stack(slices, dim=1))
    return right
""",
    trials=[
        trust(
            "the right split, by view(B, N, h, d) and transpose(1, 2)",
            lambda x, h: x.unflatten(-1, (h, -1)).transpose(1, 2),
            True,
        ),
        *refusals(split_heads.with_edit, WRONG_SPLITS),
    ],
    wrong="""
it trusts everything, view(B, h, N, d) too
    return right => return True
it trusts nothing, not even the right split: do you expect (B, h, N, d), heads before the tokens?
    return right => return False
    torch.stack(slices, dim=1) => torch.stack(slices, dim=2)
it is the wrong way round: True means that the split is right
    return right => return not right
it looks at the shape only, or at numbers that are all alike; view(B, h, N, d) has the right shape
and other numbers: give it a tensor of different ones and compare
    torch.equal(heads, torch.stack(slices, dim=1)) => heads.shape == (2, num_heads, 5, d)
it asks only whether all numbers are still there; they are, in the wrong places, after
view(B, h, N, d): look at where each stands
    torch.equal… => torch.equal(heads.flatten().sort().values, x.flatten().sort().values) ‖
        heads.shape == (2, num_heads, 5, d) and heads.sum().isclose(x.sum(), rtol=1e-4).item()
it trusts view(B, h, N, d) and not the right split: a plain reshape back undoes its own damage;
compare each head with its columns of x
    torch.equal(heads, torch.stack(slices, dim=1)) => torch.equal(heads.reshape(2, 5, 12), x)
it sees that tokens are not mixed, but not which columns each head has: it trusts a split whose
heads take every h-th column; compare with slices of x
    right = True => other = x.clone() ⏎ other[:, 4] = torch.randn(2, 12) ⏎
        moved = (split(x, 3) != split(other, 3)).any(dim=-1) ⏎
        return moved.shape == (2, 3, 5) and bool(moved[..., 4].all()) and int(moved.sum()) == 6
it tries a single token, and there view(B, h, N, d) is right by luck; take several
    torch.randn(2, 5, 12) => torch.randn(2, 1, 12)
it tries a single head, and there is nothing to cut; take three or more
    (3, 4) => (1,)
it trusts a split that makes two heads, whatever is asked for: ask for three or more, and look at
how many heads come
    (3, 4) => (2,)
it merges the heads again and compares with x, and so trusts heads of any number, since such a
round trip undoes its own damage; compare head i with slice i of x
    torch.equal… => torch.equal(heads.transpose(1, 2).reshape(2, 5, 12), x)
it tries two heads, each two wide, and so trusts a split that always makes two, and one that mixes
up number and width: ask for three or more, of another width
    (2, 5, 12) => (2, 5, 4) ;; (3, 4) => (2,) ;; d = 12 => d = 4
it tries heads of a single column, and there (h d) and (d h) are the same; take wider heads
    (2, 5, 12) => (2, 5, 3) ;; (3, 4) => (3,) ;; d = 12 => d = 3
you expect every h-th column in a head; a head has d columns that stand side by side
    x[:, :, i * d : (i + 1) * d] => x[:, :, i::num_heads]
your number of heads does not divide the width, and a right split cannot cut it: take one that does
    (3, 4) => (5,)
    ! don't multiply up
it tries as many heads as each is wide, and so trusts a split that mixes up the two
    (2, 5, 12) => (2, 5, 9) ;; (3, 4) => (3,) ;; d = 12 => d = 9
it looks whether each slice of x is somewhere among the heads, and so trusts heads in reverse;
compare head i with slice i
    torch.equal… => all(any(torch.equal(s, head) for head in heads.unbind(1)) for s in slices)
it looks at the first and the last column only, and so trusts heads of every h-th column, which has
these two right; compare all columns
    torch.equal(heads, torch.stack(slices, dim=1)) =>
        heads.shape == (2, num_heads, 5, d) and torch.equal(heads[:, 0, :, 0], x[:, :, 0])
        and torch.equal(heads[:, -1, :, -1], x[:, :, -1])
it looks at the first head only, and so trusts a split that gives the first columns to every head;
compare all heads
    torch.equal(heads, torch.stack(slices, dim=1)) => torch.equal(heads[:, 0], slices[0])
""",
    slips={
        "The size of tensor a": "a wrong split may give another shape, and then `==` and "
        "torch.allclose stop with an error; torch.equal gives False",
    },
    why="Head i is a slice of the width, so slices are the reference. Several tokens and at least "
    "three heads matter: one token, one head or two hide a mistake.",
)
