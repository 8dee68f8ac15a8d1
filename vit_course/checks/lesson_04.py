"""Build cells and exercises of lesson 04."""

from collections.abc import Callable
from typing import Any

import torch
from einops import rearrange
from torch import Tensor, nn

from vit_steps import attention as package
from vit_steps.heads import merge_heads, split_qkv

from .compare import Verdict
from .engine import Check
from .trials import Trial, call, learns, module, then

equation = package.scaled_dot_product_attention  # the name below is the check's


def drawn(*shape: int, seed: int = 0) -> Tensor:
    """Numbers of variance 1, the same each time."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def sights(*shape: int) -> Tensor:
    """A mask, the same each time: about half is hidden, and each query sees itself or key 0."""
    mask = drawn(*shape, seed=1) < 0
    if shape[-2] == shape[-1]:
        return mask | torch.eye(shape[-1], dtype=torch.bool)
    mask[..., 0] = True
    return mask


# What an error of torch or Python says, and what to change.
SLIPS = {
    "Boolean value of Tensor": "`if mask` asks a whole tensor for one yes or no; ask `if mask is "
    "not None`",
    r"sqrt\(\)": "torch.sqrt takes a tensor; of a plain number the root is d ** 0.5",
    "bad operand type for unary ~": "it uses the mask where there is none; first ask `if mask is "
    "not None`",
    "Expected size for first two dimensions of batch2": "a matrix product does not fit; for the "
    "scores swap the last two axes of k, k.mT (k.T turns all four), and let the weights "
    "(B, h, N, N) mix v as it is",
    "mat1 and mat2 shapes cannot be multiplied": "a Linear gets another width than it takes; are "
    "the heads merged before `proj`?",
    "required positional argument: 'mask'": "it cannot be called without a mask; give it a "
    "default: mask=None",
    "no attribute 'num_heads'": "it does not know its number of heads; in __init__, keep "
    "self.num_heads",
    "IndexError: The shape of the mask": "indexing does not broadcast a mask as + does; "
    "`masked_fill` does",
    "mask_fill": "there is no `mask_fill`; it is called `masked_fill`",
    'missing the required "forward"': "it has no method `forward`; is the name spelt so, and is it "
    "in the class?",
}


# scaled_dot_product_attention --------------------------------------------------------------------


def head_root(q: Tensor) -> float:
    return q.shape[-1] ** 0.5


def model_root(q: Tensor) -> float:
    """√D, D = h·d."""
    return (q.shape[-3] * q.shape[-1]) ** 0.5


def head_width(q: Tensor) -> float:
    return q.shape[-1]


def one(q: Tensor) -> float:
    return 1.0


def by_root(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.mT / head_root(q)


def hide(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.masked_fill(~mask, float("-inf"))


def filled(value: float) -> Callable:
    return lambda scores, mask: scores.masked_fill(~mask, value)


def attention(
    scale: Callable = head_root,
    masked: Callable = hide,
    share: Callable = lambda scores: scores.softmax(dim=-1),
    after: Callable = one,
    scores: Callable = lambda q, k: q @ k.mT,
    mix: Callable = lambda weights, q, k, v: weights @ v,
) -> Callable:
    """An attention function; the options make the known mistakes.

    Args:
        scale, after: what the scores, and what the weights are divided by, made of the queries.
        share: makes weights of the scores.
    """

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Any:
        raw = scores(q, k) / scale(q)
        raw = raw if mask is None else masked(raw, mask)
        weights = share(raw) / after(q)
        return mix(weights, q, k, v), weights

    return attend


def masked_late(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Any:
    """The mask multiplies the weights, after the softmax."""
    weights = by_root(q, k).softmax(dim=-1)
    weights = weights if mask is None else weights * mask
    return weights @ v, weights


def unmasked(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Any:
    return equation(q, k, v)


def with_scores(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Any:
    """Gives the scores in place of the weights."""
    scores = by_root(q, k)
    return equation(q, k, v, mask)[0], scores if mask is None else hide(scores, mask)


NO_SCALE = "the scale is missing: divide the scores by √d before the softmax"
AFTER = (
    "the scale comes after the softmax, so the rows of the weights do not sum to 1; divide the "
    "scores, then take the softmax"
)
MODEL_ROOT = (
    "the scale is √D, from the width of a whole token; what was multiplied is one head wide: √d, "
    "d = q.shape[-1]"
)
NO_ROOT = (
    "the scores are divided by d, not by √d: is the root missing, or does the scale stand twice, "
    "at q and at k?"
)
QUERY_AXIS = (
    "softmax runs over the queries, so the columns sum to 1; each query shares out its own weight, "
    "over the keys: dim=-1"
)
UPSIDE_DOWN = (
    "the mask is the wrong way round: True means that a query may look, so fill the scores where "
    "it is False, ~mask"
)
NOT_MASKED = (
    "the mask has no effect; masked_fill without `_` gives a new tensor, so its result must be "
    "kept: scores = scores.masked_fill(…)"
)
NO_SOFTMAX = "what you return as weights are the scores; the softmax makes weights of them"

scaled_dot_product_attention = Check(
    reference=equation,
    keeps="scaled_dot_product_attention",
    slips=SLIPS,
    trials=[
        call("2 images, 3 heads, 4 tokens of width 5", *drawn(3, 2, 3, 4, 5)),
        call("5 images, 2 heads, 3 tokens of width 6", *drawn(3, 5, 2, 3, 6)),
        call("3 images, 1 head, 7 tokens of width 10", *drawn(3, 3, 1, 7, 10, seed=2)),
        call("6 tokens and a mask (6, 6)", *drawn(3, 2, 3, 6, 5, seed=3), sights(6, 6)),
        call(
            "5 tokens and a mask (B, 1, 1, N)", *drawn(3, 2, 4, 5, 10, seed=4), sights(2, 1, 1, 5)
        ),
        learns("4 tokens whose gradient is asked for", *drawn(3, 1, 2, 4, 3)),
    ],
    mistakes={
        NO_SCALE: attention(one),
        AFTER: attention(one, after=head_root),
        "the scale comes after the softmax, and it is √D; divide the scores by √d, then take the "
        "softmax": attention(one, after=model_root),
        MODEL_ROOT: attention(model_root),
        NO_ROOT: attention(head_width),
        "the scores are multiplied by √d; they are too large already: divide": attention(
            lambda q: 1 / head_root(q)
        ),
        "the scale counts the tokens, √N; it is the width of a head that makes scores large: √d, d "
        "= q.shape[-1]": attention(lambda q: q.shape[-2] ** 0.5),
        "the scale counts the heads, √h; it is the width of a head that makes scores large: √d, d "
        "= q.shape[-1]": attention(lambda q: q.shape[-3] ** 0.5),
        "the scale counts the images, √B; it is the width of a head that makes scores large: √d, d "
        "= q.shape[-1]": attention(lambda q: q.shape[0] ** 0.5),
        "`d * 0.5` and `d ** 1/2` halve d; the root is `d ** 0.5`, and the scores are divided by "
        "it": (
            attention(lambda q: q.shape[-1] * 0.5),
            attention(lambda q: q.shape[-1] // 2),
            attention(lambda q: q.shape[-1] / 0.5),
        ),
        "the root is made a whole number; leave it as it is, d ** 0.5": (
            attention(lambda q: int(head_root(q))),
            attention(lambda q: round(head_root(q))),
        ),
        "the scale is 8 whatever comes: that is √64 of ViT-B/16; read the width off q": attention(
            lambda q: 8.0
        ),
        QUERY_AXIS: attention(share=lambda scores: scores.softmax(dim=-2)),
        "softmax runs over the heads; dim=-1 are the keys": attention(
            share=lambda scores: scores.softmax(dim=-3)
        ),
        "the scores stand the wrong way: a row is a query and a column a key, so q comes first: q "
        "@ k.mT": attention(scores=lambda q, k: k @ q.mT),
        "the weights come first; return the mixed values, then the weights": then(
            equation, lambda both: both[::-1]
        ),
        "it returns the mixed values alone; return (mixed, weights)": then(
            equation, lambda both: both[0]
        ),
        NO_SOFTMAX: with_scores,
        "the softmax is missing: the scores themselves mix the values": attention(
            share=lambda scores: scores, masked=filled(0.0)
        ),
        "swap the last two axes of k and no others, k.mT (k.T turns all four)": (
            attention(scores=lambda q, k: q @ k.permute(3, 2, 1, 0)),
            attention(scores=lambda q, k: q @ k.transpose(1, 2)),
            attention(scores=lambda q, k: q @ k.transpose(1, 3)),
        ),
        "q * k multiplies number by number; each query meets every key in a matrix product, q @ "
        "k.mT": attention(
            masked=lambda scores, mask: scores,
            scores=lambda q, k: q * k,
            mix=lambda weights, q, k, v: weights * v,
        ),
        NOT_MASKED: unmasked,
        UPSIDE_DOWN: attention(masked=lambda scores, mask: hide(scores, ~mask)),
        "a hidden score becomes 0, and a key with score 0 still gets weight; fill with "
        "float('-inf'), since e to that is 0": attention(masked=filled(0.0)),
        "a hidden score becomes a small number, and its key still gets weight; fill with "
        "float('-inf'), since e to that is 0": attention(masked=filled(-1.0)),
        "the mask is added to the scores, so True adds 1 and False nothing; fill with "
        "float('-inf') where it is False": attention(masked=torch.add),
        "the mask comes after the softmax, so the rest of a row no longer sums to 1; fill the "
        "scores with float('-inf') before it": masked_late,
        "the fill is +inf, which gives NaN; a hidden key needs a score of float('-inf')": attention(
            masked=filled(float("inf"))
        ),
        "the mask is turned: its rows are queries and its columns keys, as in the scores": (
            attention(masked=lambda scores, mask: hide(scores, mask.mT))
        ),
        "the weights are turned before they mix: row i of the weights belongs to query i, so "
        "weights @ v": attention(mix=lambda weights, q, k, v: weights.mT @ v),
        "it mixes the queries; a token hands out its value: weights @ v": attention(
            mix=lambda weights, q, k, v: weights @ q
        ),
        "it mixes the keys; a token hands out its value: weights @ v": attention(
            mix=lambda weights, q, k, v: weights @ k
        ),
        "the heads are merged; leave them apart, (B, h, N, d): the class merges them": then(
            equation, lambda both: (merge_heads(both[0]), both[1])
        ),
        "no gradient passes: keep to tensors, without detach, tolist or numpy": then(
            equation, lambda both: (both[0].detach(), both[1].detach())
        ),
    },
)


# MultiHeadAttention ------------------------------------------------------------------------------


def parts(answer: Callable) -> Any:
    """What the parameters of a module of width 12 are called and how they are shaped, in words."""
    made = answer(12, 3)
    if not isinstance(made, nn.Module):
        return made
    shapes = {name: tuple(p.shape) for name, p in made.named_parameters()}
    wanted = {"qkv": (36, 12), "proj": (12, 12)}
    names = list(dict.fromkeys(name.split(".")[0] for name in shapes))
    if missing := [name for name in wanted if name not in names]:
        has = ", ".join(f"`{name}`" for name in names) or "nothing"
        return Verdict(
            f"`{missing[0]}` is missing; what learns in it is {has}. It needs two Linears, called "
            "`qkv` and `proj`"
        )
    if extra := [name for name in names if name not in wanted]:
        return Verdict(f"it has `{extra[0]}`, which is not asked for: `qkv` and `proj` are enough")
    for name, shape in wanted.items():
        if f"{name}.bias" not in shapes:
            return Verdict(f"`{name}` has no bias; leave nn.Linear its own")
        if shapes[f"{name}.weight"] != shape:
            end, begin = shapes[f"{name}.weight"]
            goal = "from D to 3·D" if name == "qkv" else "from D to D"
            said = f"`{name}` goes from {begin} to {end} where D = 12; it must go {goal}"
            return Verdict(f"{said}, {shape[1]} to {shape[0]}")
    return Verdict("two Linears")


def seeded(answer: Callable) -> Any:
    """The weights with which a module starts, for a seed."""
    torch.manual_seed(0)
    made = answer(12, 3)
    return {name: p.detach() for name, p in made.named_parameters()}


def as_asked(y: Tensor, weights: Tensor, wanted: bool) -> Any:
    return (y, weights) if wanted else y


def layer(
    cut: Callable = lambda m, x: split_qkv(m.qkv(x), m.num_heads),
    mix: Callable = equation,
    merge: Callable = merge_heads,
    project: Callable = lambda m, merged, x: m.proj(merged),
    finish: Callable = as_asked,
) -> type[nn.Module]:
    """A class like the lesson's; the options make the known mistakes.

    Args:
        cut: makes queries, keys and values of the module and the tokens.
        project: makes the new tokens of the module, the merged heads and the tokens.
        finish: makes the result of those, the weights, and whether the weights are asked for.
    """

    class Layer(package.MultiHeadAttention):
        def __init__(self, embed_dim: int, num_heads: int):
            super().__init__(embed_dim, num_heads)

        def forward(self, x, mask=None, return_attention=False):
            mixed, weights = mix(*cut(self, x), mask)
            return finish(project(self, merge(mixed), x), weights, return_attention)

    return Layer


def given_back(finish: Callable) -> type[nn.Module]:
    return layer(finish=finish)


def cut_as(pattern: str) -> type[nn.Module]:
    """A class that reads the width in another order."""
    return layer(lambda m, x: rearrange(m.qkv(x), pattern, qkv=3, h=m.num_heads))


def in_order(*roles: int) -> type[nn.Module]:
    """A class that takes queries, keys and values in another order than they are given."""
    return layer(lambda m, x: [split_qkv(m.qkv(x), m.num_heads)[role] for role in roles])


class ProjFirst(layer()):
    def __init__(self, embed_dim: int, num_heads: int):
        nn.Module.__init__(self)
        self.num_heads = num_heads
        self.proj = nn.Linear(embed_dim, embed_dim)
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)


TOKENS, FEWER = drawn(2, 5, 12), drawn(1, 7, 10, seed=3)

MultiHeadAttention = Check(
    reference=layer(),
    keeps="MultiHeadAttention",
    slips=SLIPS,
    trials=[
        Trial("what it is made of", parts),
        module("2 images of 5 tokens of width 12, 3 heads", (12, 3), TOKENS),
        module("1 image of 7 tokens of width 10, 2 heads", (10, 2), FEWER),
        module("with a mask (5, 5)", (12, 3), TOKENS, sights(5, 5)),
        module("with a mask (7, 7)", (10, 2), FEWER, sights(7, 7)),
        module("with return_attention=True", (12, 3), TOKENS, return_attention=True),
        module(
            "with return_attention=True and a mask",
            (10, 2),
            FEWER,
            mask=sights(7, 7),
            return_attention=True,
        ),
        Trial("made after torch.manual_seed(0)", seeded),
    ],
    mistakes={
        "`proj` is made and never used: what the heads have read, "
        "merged, goes through it last": layer(project=lambda m, merged, x: merged),
        "the heads are merged by reshape or view, which mixes up the tokens; "
        "use merge_heads": layer(merge=lambda x: x.reshape(len(x), x.shape[2], -1)),
        "the mask does not arrive: hand it on to scaled_dot_product_attention": layer(mix=unmasked),
        "with return_attention=True the weights are wanted too: "
        "return (y, weights) then": given_back(lambda y, weights, wanted: y),
        "it gives the weights though nobody asked; only with return_attention=True": given_back(
            lambda y, weights, wanted: (y, weights)
        ),
        "it gives the weights when nobody asked, and not when asked: turn "
        "the `if` round": given_back(lambda y, weights, wanted: as_asked(y, weights, not wanted)),
        "with return_attention=True it gives the weights alone; return (y, weights)": given_back(
            lambda y, weights, wanted: weights if wanted else y
        ),
        "with return_attention=True the tokens come first: (y, weights)": given_back(
            lambda y, weights, wanted: (weights, y) if wanted else y
        ),
        "the weights are averaged over the heads; give those of each head, "
        "(B, h, N, N)": given_back(lambda y, weights, asked: as_asked(y, weights.mean(1), asked)),
        "the width is not cut into heads: split_qkv(self.qkv(x), self.num_heads) "
        "does both cuts": layer(lambda m, x: m.qkv(x).chunk(3, dim=-1), merge=lambda mixed: mixed),
        "the width is read in the order (h qkv d); split_qkv reads it as (qkv h d)": cut_as(
            "b n (h qkv d) -> qkv b h n d"
        ),
        "the width is read in the order (h d qkv); split_qkv reads it as (qkv h d)": cut_as(
            "b n (h d qkv) -> qkv b h n d"
        ),
        "split_qkv gives q, k, v; take them, and hand them on, in this order": tuple(
            in_order(*roles) for roles in ((1, 0, 2), (2, 1, 0), (0, 2, 1), (1, 2, 0), (2, 0, 1))
        ),
        "it cuts into 12 heads whatever it was made with; take self.num_heads": layer(
            lambda m, x: split_qkv(m.qkv(x), 12)
        ),
        "x is added to the result; that comes in lesson 05, in the block around this layer": layer(
            project=lambda m, merged, x: x + m.proj(merged)
        ),
        "`qkv` is never used: queries, keys and values are what it makes of x": layer(
            lambda m, x: split_qkv(torch.cat([x, x, x], dim=-1), m.num_heads)
        ),
        NO_SCALE: layer(mix=attention(one)),
        MODEL_ROOT: layer(mix=attention(model_root)),
        "with the same seed it starts with other weights than the course's; make `qkv` first, then "
        "`proj`, and leave them as nn.Linear fills them": ProjFirst,
    },
)


# effective_keys ----------------------------------------------------------------------------------


def entropy(weights: Tensor, dim: int = -1) -> Tensor:
    return torch.special.entr(weights).sum(dim=dim)


LN_2 = torch.tensor(2.0).log()
SHARES = drawn(2, 3, 5, 5).softmax(dim=-1)
HIDDEN = hide(2 * drawn(2, 4, 6, 6), sights(6, 6)).softmax(dim=-1)

effective_keys = Check(
    reference=lambda weights: entropy(weights).exp(),
    trials=[
        call("1 head, 4 queries, each looking at 4 keys alike", torch.full((1, 1, 4, 4), 0.25)),
        call("2 images, 3 heads, 5 tokens", SHARES),
        call("2 images, 4 heads, 6 tokens, some of them hidden by a mask", HIDDEN),
    ],
    mistakes={
        "a weight of 0 gives NaN, since log 0 is -inf and 0 · -inf is no number; let such a key "
        "count 0 (torch.special.entr, torch.where, or "
        "nansum)": lambda w: (-(w * w.log()).sum(dim=-1)).exp(),
        "this is the entropy; raise e to it": entropy,
        "the sign is lost: it is minus the sum of w · ln w": lambda w: (-entropy(w)).exp(),
        "it sums over the queries; each query has its own number, "
        "so sum over the keys, dim=-1": lambda w: entropy(w, -2).exp(),
        "it takes the mean over the keys; take their sum": lambda w: (
            entropy(w) / w.shape[-1]
        ).exp(),
        "it counts the keys with any weight at all; a key with "
        "a small weight counts little": lambda w: (w > 0).sum(dim=-1).float(),
        "1 / Σ w² is another measure; the one asked for is exp(−Σ w ln w)": lambda w: (
            1 / (w**2).sum(dim=-1)
        ),
        "it looks at the largest weight alone; the one asked for is exp(−Σ w ln w)": lambda w: (
            1 / w.amax(dim=-1)
        ),
        "the heads are averaged; give a number for each head, (B, h, N)": (
            lambda w: entropy(w).exp().mean(dim=1),
            lambda w: entropy(w.mean(dim=1)).exp(),
        ),
        "the summed axis is still there, (B, h, N, 1); leave out keepdim=True": lambda w: entropy(
            w
        ).exp()[..., None],
        "bits and e do not go together: e with the natural logarithm, or 2 with log2": (
            lambda w: (entropy(w) / LN_2).exp(),
            lambda w: 2 ** entropy(w),
        ),
        "each logarithm must be multiplied by its weight before the sum: w · ln w": lambda w: (
            -w.clamp_min(1e-30).log().sum(dim=-1)
        ).exp(),
        "it gives one number for all; give one for each image, "
        "head and query, (B, h, N)": lambda w: entropy(w).exp().mean(),
    },
)


# local_mask --------------------------------------------------------------------------------------


def sight(
    near: Callable, seen: bool = True, sees: bool = True, itself: bool = True
) -> Callable[..., Tensor]:
    """A mask of patches, with the cls token put in front.

    Args:
        near: whether patches see each other, made of how many rows and how many columns any two
            are apart, each (n, n) and with a sign, and of the radius.
        seen, sees, itself: whether cls is seen by the patches, sees them, and sees itself.
    """

    def mask(height: int, width: int, radius: int) -> Tensor:
        patch = torch.arange(height * width)
        row, col = patch // width, patch % width
        full = torch.ones(len(patch) + 1, len(patch) + 1, dtype=torch.bool)
        full[1:, 0], full[0, 1:], full[0, 0] = seen, sees, itself
        full[1:, 1:] = near(row[:, None] - row, col[:, None] - col, radius)
        return full

    return mask


def square(down: Tensor, across: Tensor, radius: int) -> Tensor:
    return (down.abs() <= radius) & (across.abs() <= radius)


def along_the_row(down: Tensor, across: Tensor, radius: int) -> Tensor:
    width = across.max() + 1
    return (down * width + across).abs() <= radius


def round_the_edge(down: Tensor, across: Tensor, radius: int) -> Tensor:
    height, width = down.max() + 1, across.max() + 1
    down = torch.minimum(down.abs(), height - down.abs())
    return square(down, torch.minimum(across.abs(), width - across.abs()), radius)


right_sight = sight(square)


def grid_trial(height: int, width: int, radius: int) -> Trial:
    """A grid whose mask must come as booleans: 1 and 0 would compare as equal to them."""

    def run(answer: Callable) -> Any:
        mask = answer(height, width, radius)
        if isinstance(mask, Tensor) and mask.dtype != torch.bool:
            return Verdict(
                "the mask holds numbers; give booleans, True where a query may look: .bool() makes "
                "them of 1 and 0, .isfinite() of 0 and -inf"
            )
        return mask

    return Trial(f"a grid of {height}×{width} patches, radius {radius}", run)


local_mask = Check(
    reference=right_sight,
    trials=[
        grid_trial(3, 3, 1),
        grid_trial(4, 6, 1),
        grid_trial(5, 4, 2),
        grid_trial(6, 7, 3),
        grid_trial(3, 4, 0),
        grid_trial(2, 5, 7),
    ],
    mistakes={
        "it is the wrong way round: True where a query may look, not where it may not": then(
            right_sight, torch.logical_not
        ),
        "the cls token is missing: the mask is (N, N) with N = 1 + height * width, cls first": then(
            right_sight, lambda mask: mask[1:, 1:]
        ),
        "the cls token stands last; it is token 0": then(
            right_sight, lambda mask: mask.roll((-1, -1), (0, 1))
        ),
        "the patches cannot look at the cls token: mask[:, 0] must be True": sight(
            square, seen=False
        ),
        "the cls token cannot look at the patches: mask[0] must be True": sight(square, sees=False),
        "the cls token and the patches do not see each other: "
        "mask[0] and mask[:, 0] must be True": sight(square, seen=False, sees=False),
        "nobody sees the cls token and it sees nobody, itself neither: mask[0] and mask[:, 0] must "
        "be True": sight(square, seen=False, sees=False, itself=False),
        "it adds the distance in rows to that in columns, which gives a diamond; each of them may "
        "be up to radius on its own, which "
        "gives a square": sight(lambda down, across, radius: down.abs() + across.abs() <= radius),
        "it takes the distance as the crow flies, which gives a disc; rows and columns may each be "
        "up to radius away, which gives "
        "a square": sight(lambda down, across, radius: down**2 + across**2 <= radius**2),
        "it measures along the list of patches: the end of a row and the start of the next are "
        "neighbours there, and the patch below is not; use rows and columns": sight(along_the_row),
        "a patch exactly radius away must be in sight: <= radius, not < radius": sight(
            lambda down, across, radius: square(down, across, radius - 1)
        ),
        "near in rows or in columns is a cross over the whole grid; both must be near: use &": (
            sight(lambda down, across, radius: (down.abs() <= radius) | (across.abs() <= radius))
        ),
        "rows and columns are mixed up: patch i stands in row i // width, "
        "column i % width": lambda height, width, radius: right_sight(width, height, radius),
        "a patch does not see itself; it is no row and no column away, so it does": sight(
            lambda down, across, r: square(down, across, r) & ((down != 0) | (across != 0))
        ),
        "the distance has no sign: take abs() of the difference in rows and in columns": sight(
            lambda down, across, radius: (down <= radius) & (across <= radius)
        ),
        "it goes round the edge: the last column is no neighbour of the first": (
            sight(round_the_edge)
        ),
    },
)


# find_fault --------------------------------------------------------------------------------------


def divided_first(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Any:
    """A right function, rounded otherwise: queries and keys each take half of the scale."""
    root = q.shape[-1] ** 0.25
    scores = (q / root) @ (k / root).mT
    powers = (scores if mask is None else filled(-1e9)(scores, mask)).exp()
    weights = powers / powers.sum(dim=-1, keepdim=True)
    return weights @ v, weights


RIGHT, LATE, SCALE = "right", "scaled after softmax", "wrong scale"
AXIS, MASK = "wrong axis", "wrong mask"

ROUNDED = "another right function, which rounds otherwise"
BY_MODEL, BARE, BY_WIDTH = "softmax(qk / √D)", "softmax(qk), no scale", "softmax(qk / d)"
IGNORED, TURNED = "a mask that is ignored", "a mask the wrong way round"
ON_WEIGHTS, ZEROED = "a mask on the weights, after the softmax", "a mask that makes scores 0"

SUSPECTS = (
    ("a right function", equation, RIGHT),
    (ROUNDED, divided_first, RIGHT),
    ("softmax(qk) / √D", attention(one, after=model_root), LATE),
    ("softmax(qk) / √d", attention(one, after=head_root), LATE),
    (BY_MODEL, attention(model_root), SCALE),
    (BARE, attention(one), SCALE),
    (BY_WIDTH, attention(head_width), SCALE),
    ("softmax over the queries", attention(share=lambda scores: scores.softmax(dim=-2)), AXIS),
    (IGNORED, unmasked, MASK),
    (TURNED, attention(masked=lambda scores, mask: hide(scores, ~mask)), MASK),
    (ON_WEIGHTS, masked_late, MASK),
    (ZEROED, attention(masked=torch.mul), MASK),
)


def diagnose(attend: Callable) -> str:
    """A right find_fault."""
    q, k, v = drawn(3, 2, 4, 5, 8)
    mask = sights(5, 5)
    weights, masked = attend(q, k, v)[1], attend(q, k, v, mask)[1]
    if torch.allclose(weights, by_root(q, k).softmax(-1), atol=1e-5):
        expected = hide(by_root(q, k), mask).softmax(dim=-1)
        return RIGHT if torch.allclose(masked, expected, atol=1e-5) else MASK
    ones = torch.ones(2, 4, 5)
    if torch.allclose(weights.sum(dim=-1), ones, atol=1e-4):
        return SCALE
    return AXIS if torch.allclose(weights.sum(dim=-2), ones, atol=1e-4) else LATE


def suspect(what: str, attend: Callable) -> Trial:
    """One function to judge, with a word for an answer that is no known one."""

    def run(answer: Callable) -> Any:
        said = answer(attend)
        if isinstance(said, str) and said not in (RIGHT, LATE, SCALE, AXIS, MASK):
            return Verdict(f"it says {said!r}, which is none of the five strings")
        if isinstance(said, bool):
            return Verdict(f"it says {said}; say one of the five strings, such as {RIGHT!r}")
        return said

    return Trial(what, run)


def verdict(changed: dict[str, str]) -> Callable:
    """A wrong find_fault: what it says in place of the right string, by a suspect's name or kind.

    Raises:
        ValueError: no suspect has that name, and no kind is called so.
    """
    known = {what for what, _, _ in SUSPECTS} | {kind for _, _, kind in SUSPECTS}
    if unknown := set(changed) - known:
        raise ValueError(f"no suspect {unknown.pop()!r}")
    said = {
        id(attend): changed.get(what, changed.get(kind, kind)) for what, attend, kind in SUSPECTS
    }
    return lambda attend: said[id(attend)]


TOO_STRICT = (
    "it accuses a right function: floats are rounded, so a sum may be 0.9999999; compare with "
    "torch.allclose(a, b, atol=1e-5), not =="
)

find_fault = Check(
    reference=diagnose,
    trials=[suspect(what, attend) for what, attend, _ in SUSPECTS],
    mistakes={
        "it calls a wrong scale right: row sums are 1 at any scale; compare the weights with "
        "softmax(qk / √d), on random q and k (zeros or ones give "
        "the same at any scale)": verdict({SCALE: RIGHT}),
        "it looks at row sums alone: compare the weights with softmax(qk / √d) on random q and k, "
        "without a mask and with one": verdict({SCALE: RIGHT, MASK: RIGHT, AXIS: LATE}),
        "zeros and ones give the same weights at any scale, along both axes and under any order: "
        "try random q and k, "
        "without a mask and with one": verdict({SCALE: RIGHT, MASK: RIGHT, AXIS: RIGHT}),
        "it does not see a wrong mask: try each function with a mask too, "
        "one that hides some keys": verdict({MASK: RIGHT}),
        "the mask is read the wrong way round: True means that a query may look": verdict(
            {RIGHT: MASK, TURNED: RIGHT}
        ),
        "it misses a mask on the weights: see also whether the row still sums to 1, or compare "
        "with right masked weights": verdict({ON_WEIGHTS: RIGHT}),
        "with a mask it looks at row sums only: look whether the hidden weights are 0, or compare "
        "with right masked weights": verdict({IGNORED: RIGHT, TURNED: RIGHT, ZEROED: RIGHT}),
        "your mask hides nothing, or hides alike both ways round: take a random one, in which each "
        "query sees "
        "some keys and not others": verdict({IGNORED: RIGHT, ON_WEIGHTS: RIGHT, ZEROED: RIGHT}),
        "it does not see √D: with one head, D = d; try q, k, v with several heads": verdict(
            {BY_MODEL: RIGHT}
        ),
        "it misses no scale at all, and d for √d: try heads wider than 1, where they differ, and "
        "compare with √d instead of looking for √D": verdict({BARE: RIGHT, BY_WIDTH: RIGHT}),
        "it calls a scale after the softmax a wrong scale: look at the row sums first": verdict(
            {LATE: SCALE}
        ),
        "the two faults are mixed up: rows that do not sum to 1 tell "
        "of a scale after softmax": verdict({LATE: SCALE, SCALE: LATE}),
        "it calls a softmax over the queries a scale after the softmax: neither has rows that sum "
        "to 1, but here the columns do": verdict({AXIS: LATE}),
        "it calls a softmax over the queries a wrong scale: its columns sum to 1, "
        "not its rows": verdict({AXIS: SCALE}),
        "it misses a scale after the softmax: its rows sum to 1/√D or 1/√d, not to 1": verdict(
            {LATE: RIGHT}
        ),
        "it finds every function right, whatever it does": verdict(
            {LATE: RIGHT, SCALE: RIGHT, AXIS: RIGHT, MASK: RIGHT}
        ),
        TOO_STRICT: (
            verdict({ROUNDED: SCALE}),
            verdict({RIGHT: SCALE}),
            verdict({RIGHT: LATE, SCALE: LATE, AXIS: LATE, MASK: LATE}),
            verdict({RIGHT: LATE, SCALE: LATE, MASK: LATE}),
        ),
    },
)
