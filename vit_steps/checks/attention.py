"""Build cells and exercises of lesson 04."""

from collections.abc import Callable
from typing import Any

import torch
from einops import rearrange
from torch import Tensor, nn

from .. import attention as package
from ..heads import merge_heads, split_qkv
from .compare import Verdict
from .engine import Check, InputChangedError, Mistake, Trial, call, module, untouched
from .heads import learns

equation = package.scaled_dot_product_attention  # the name below is the check's
Weigh = Callable[[Tensor, Tensor, Tensor | None], Tensor]


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


def in_words(error: Exception) -> Verdict | None:
    """What to change, where an error's own text does not say it; None for any other error."""
    text = str(error)
    if "Boolean value of Tensor" in text:
        return Verdict("`if mask` asks a whole tensor for one yes or no; ask `if mask is not None`")
    if "sqrt()" in text:
        return Verdict("torch.sqrt takes a tensor; of a plain number the root is d ** 0.5")
    if "bad operand type for unary ~" in text:
        return Verdict("it uses the mask where there is none; first ask `if mask is not None`")
    if "Expected size for first two dimensions of batch2" in text:
        return Verdict(
            "a matrix product does not fit; for the scores swap the last two axes of k, k.mT (k.T "
            "turns all four), and let the weights (B, h, N, N) mix v as it is"
        )
    if "mat1 and mat2 shapes cannot be multiplied" in text:
        return Verdict(
            "a Linear gets another width than it takes; are the heads merged before `proj`?"
        )
    if "required positional argument: 'mask'" in text:
        return Verdict("it cannot be called without a mask; give it a default: mask=None")
    if "no attribute 'num_heads'" in text:
        return Verdict("it does not know its number of heads; in __init__, keep self.num_heads")
    if "mask_fill" in text:
        return Verdict("there is no `mask_fill`; it is called `masked_fill`")
    if "before Module.__init__() call" in text:
        return Verdict("`super().__init__()` is missing: it is the first line of __init__")
    if 'missing the required "forward"' in text:
        return Verdict("it has no method `forward`; is the name spelt so, and is it in the class?")
    return None


def explained(run: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same run of an answer, or use of a module, its errors in words."""

    def explaining(thing: Any) -> Any:
        try:
            return run(thing)
        except InputChangedError:
            raise
        except Exception as error:
            if said := in_words(error):
                return said
            raise

    return explaining


def told(trial: Trial) -> Trial:
    """The same trial, its errors in words."""
    return Trial(trial.what, explained(trial.run))


# scaled_dot_product_attention --------------------------------------------------------------------


def by_root(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.mT / q.shape[-1] ** 0.5


def by(divisor: Callable[[Tensor], float]) -> Callable[[Tensor, Tensor], Tensor]:
    """Scores that are divided by something else."""
    return lambda q, k: q @ k.mT / divisor(q)


def hide(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.masked_fill(~mask, float("-inf"))


def weigh(
    scores: Callable[[Tensor, Tensor], Tensor] = by_root,
    masked: Callable[[Tensor, Tensor], Tensor] = hide,
    dim: int = -1,
    after: Callable[[Tensor], float] | None = None,
) -> Weigh:
    """Weights of (q, k, mask), scaled before the softmax by `scores`, or by `after` behind it."""

    def weights(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        raw = scores(q, k)
        raw = raw if mask is None else masked(raw, mask)
        shares = raw.softmax(dim=dim)
        return shares / after(q) if after else shares

    return weights


def attend(weights: Weigh) -> Callable:
    """An attention function that mixes the values by these weights."""

    def mix(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        shares = weights(q, k, mask)
        return shares @ v, shares

    return mix


def masked_weights(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """The mask multiplies the weights, after the softmax."""
    weights = by_root(q, k).softmax(dim=-1)
    return weights if mask is None else weights * mask


def product(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.mT


def head_root(q: Tensor) -> float:
    return q.shape[-1] ** 0.5


def model_root(q: Tensor) -> float:
    """√D, D = h·d."""
    return (q.shape[-3] * q.shape[-1]) ** 0.5


def cut_off(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Right numbers, with no way back for the gradient."""
    mixed, weights = equation(q, k, v, mask)
    return mixed.detach(), weights.detach()


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

EQUATION_TRIALS = [
    call("1 head, 3 tokens of width 4", *drawn(3, 1, 1, 3, 4)),
    call("2 images, 3 heads, 5 tokens of width 4", *drawn(3, 2, 3, 5, 4)),
    call("1 image, 2 heads, 7 tokens of width 9", *drawn(3, 1, 2, 7, 9, seed=2)),
    call("6 tokens and a mask (6, 6)", *drawn(3, 2, 3, 6, 4, seed=3), sights(6, 6)),
    call("5 tokens and a mask (B, 1, 1, N)", *drawn(3, 2, 4, 5, 9, seed=4), sights(2, 1, 1, 5)),
    learns("4 tokens whose gradient is asked for", *drawn(3, 1, 2, 4, 3)),
]

scaled_dot_product_attention = Check(
    reference=equation,
    keeps="scaled_dot_product_attention",
    trials=[told(trial) for trial in EQUATION_TRIALS],
    mistakes=[
        Mistake(NO_SCALE, attend(weigh(product))),
        Mistake(AFTER, attend(weigh(product, after=head_root))),
        Mistake(
            "the scale comes after the softmax, and it is √D; divide the scores by √d, then take "
            "the softmax",
            attend(weigh(product, after=model_root)),
        ),
        Mistake(MODEL_ROOT, attend(weigh(by(model_root)))),
        Mistake(NO_ROOT, attend(weigh(by(lambda q: q.shape[-1])))),
        Mistake(
            "the scores are multiplied by √d; they are too large already: divide",
            attend(weigh(lambda q, k: q @ k.mT * head_root(q))),
        ),
        Mistake(
            "the scale counts the tokens, √N; it is the width of a head that makes scores large: "
            "√d, d = q.shape[-1]",
            attend(weigh(by(lambda q: q.shape[-2] ** 0.5))),
        ),
        Mistake(
            "the scale counts the heads, √h; it is the width of a head that makes scores large: "
            "√d, d = q.shape[-1]",
            attend(weigh(by(lambda q: q.shape[-3] ** 0.5))),
        ),
        Mistake(
            "the scale is 8 whatever comes: that is √64 of ViT-B/16; read the width off q",
            attend(weigh(by(lambda q: 8.0))),
        ),
        Mistake(QUERY_AXIS, attend(weigh(dim=-2))),
        Mistake("softmax runs over the heads; dim=-1 are the keys", attend(weigh(dim=-3))),
        Mistake(
            "the scores stand the wrong way: a row is a query and a column a key, so q comes "
            "first: q @ k.mT",
            attend(weigh(lambda q, k: k @ q.mT / head_root(q))),
        ),
        Mistake(
            "the weights come first; return the mixed values, then the weights",
            lambda *given: equation(*given)[::-1],
        ),
        Mistake(
            "it returns the mixed values alone; return (mixed, weights)",
            lambda *given: equation(*given)[0],
        ),
        Mistake(
            NO_SOFTMAX,
            lambda q, k, v, mask=None: (
                equation(q, k, v, mask)[0],
                by_root(q, k) if mask is None else hide(by_root(q, k), mask),
            ),
        ),
        Mistake(
            "the softmax is missing: the scores themselves mix the values",
            lambda q, k, v, mask=None: (
                by_root(q, k).masked_fill(~mask if mask is not None else torch.tensor(False), 0.0)
                @ v,
                by_root(q, k).masked_fill(~mask if mask is not None else torch.tensor(False), 0.0),
            ),
        ),
        Mistake(
            "q * k multiplies number by number; each query meets every key in a matrix product, "
            "q @ k.mT",
            lambda q, k, v, mask=None: (
                (q * k / head_root(q)).softmax(dim=-1) * v,
                (q * k / head_root(q)).softmax(dim=-1),
            ),
        ),
        Mistake(NOT_MASKED, lambda q, k, v, mask=None: equation(q, k, v)),
        Mistake(UPSIDE_DOWN, attend(weigh(masked=lambda s, mask: hide(s, ~mask)))),
        Mistake(
            "a hidden score becomes 0, and a key with score 0 still gets weight; fill with "
            "float('-inf'), since e to that is 0",
            attend(weigh(masked=lambda s, mask: s.masked_fill(~mask, 0.0))),
        ),
        Mistake(
            "a hidden score becomes a small number, and its key still gets weight; fill with "
            "float('-inf'), since e to that is 0",
            attend(weigh(masked=lambda s, mask: s.masked_fill(~mask, -1.0))),
        ),
        Mistake(
            "the mask is added to the scores, so True adds 1 and False nothing; fill with "
            "float('-inf') where it is False",
            attend(weigh(masked=lambda s, mask: s + mask)),
        ),
        Mistake(
            "the mask comes after the softmax, so the rest of a row no longer sums to 1; fill the "
            "scores with float('-inf') before it",
            attend(masked_weights),
        ),
        Mistake(
            "the fill is +inf, which gives NaN; a hidden key needs a score of float('-inf')",
            attend(weigh(masked=lambda s, mask: s.masked_fill(~mask, float("inf")))),
        ),
        Mistake(
            "the mask is turned: its rows are queries and its columns keys, as in the scores",
            attend(weigh(masked=lambda s, mask: hide(s, mask.mT))),
        ),
        Mistake(
            "the weights are turned before they mix: row i of the weights belongs to query i, so "
            "weights @ v",
            lambda *given: (equation(*given)[1].mT @ given[2], equation(*given)[1]),
        ),
        Mistake(
            "it mixes the queries; a token hands out its value: weights @ v",
            lambda *given: (equation(*given)[1] @ given[0], equation(*given)[1]),
        ),
        Mistake(
            "it mixes the keys; a token hands out its value: weights @ v",
            lambda *given: (equation(*given)[1] @ given[1], equation(*given)[1]),
        ),
        Mistake(
            "the heads are merged; leave them apart, (B, h, N, d): the class merges them",
            lambda *given: (merge_heads(equation(*given)[0]), equation(*given)[1]),
        ),
        Mistake(
            "no gradient passes: keep to tensors, without detach, tolist or numpy",
            cut_off,
        ),
    ],
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
            width, goal = shapes[f"{name}.weight"][0], "3·D" if name == "qkv" else "D"
            return Verdict(f"`{name}` goes from 12 to {width} where D = 12; it must go to {goal}")
    return Verdict("two Linears")


def seeded(answer: Callable) -> Any:
    """The weights with which a module starts, for a seed."""
    torch.manual_seed(0)
    made = answer(12, 3)
    return {name: p.detach() for name, p in made.named_parameters()}


def heads_attend(m: Any, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    mixed, weights = equation(*split_qkv(m.qkv(x), m.num_heads), mask)
    return merge_heads(mixed), weights


def as_asked(m: Any, y: Tensor, weights: Tensor, wanted: bool) -> Any:
    return (y, weights) if wanted else y


def layer(attention: Callable = heads_attend, finish: Callable = as_asked) -> type[nn.Module]:
    """A class like the lesson's, with one step changed.

    Args:
        attention: takes the module, the tokens and the mask; gives the merged heads and weights.
        finish: takes the module, the projected tokens, the weights, and whether they were asked
            for; gives the result.
    """

    class Other(package.MultiHeadAttention):
        def __init__(self, embed_dim: int, num_heads: int):
            super().__init__(embed_dim, num_heads)

        def forward(self, x, mask=None, return_attention=False):
            merged, weights = attention(self, x, mask)
            return finish(self, self.proj(merged), weights, return_attention)

    return Other


def not_merged(m: Any, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    mixed, weights = equation(*split_qkv(m.qkv(x), m.num_heads), mask)
    return mixed.reshape(x.shape), weights


def one_wide_head(m: Any, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    q, k, v = m.qkv(x).chunk(3, dim=-1)
    return equation(q, k, v, mask)


def cut_as(pattern: str) -> Callable:
    """A wrong order in which the width is read."""

    def attention(m: Any, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        q, k, v = rearrange(m.qkv(x), pattern, qkv=3, h=m.num_heads)
        mixed, weights = equation(q, k, v, mask)
        return merge_heads(mixed), weights

    return attention


def twelve_heads(m: Any, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    mixed, weights = equation(*split_qkv(m.qkv(x), 12), mask)
    return merge_heads(mixed), weights


def qkv_skipped(m: Any, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    mixed, weights = equation(*split_qkv(torch.cat([x, x, x], dim=-1), m.num_heads), mask)
    return merge_heads(mixed), weights


def weighed(weights: Weigh) -> Callable:
    """Heads that mix by other weights."""

    def attention(m: Any, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        q, k, v = split_qkv(m.qkv(x), m.num_heads)
        shares = weights(q, k, mask)
        return merge_heads(shares @ v), shares

    return attention


class ProjUnused(package.MultiHeadAttention):
    def __init__(self, embed_dim: int, num_heads: int):
        super().__init__(embed_dim, num_heads)

    def forward(self, x, mask=None, return_attention=False):
        merged, weights = heads_attend(self, x, mask)
        return (merged, weights) if return_attention else merged


class WithResidual(package.MultiHeadAttention):
    def __init__(self, embed_dim: int, num_heads: int):
        super().__init__(embed_dim, num_heads)

    def forward(self, x, mask=None, return_attention=False):
        y, weights = super().forward(x, mask, True)
        return (x + y, weights) if return_attention else x + y


class ProjFirst(package.MultiHeadAttention):
    def __init__(self, embed_dim: int, num_heads: int):
        nn.Module.__init__(self)
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, nn.Dropout(0.0)
        self.proj = nn.Linear(embed_dim, embed_dim)
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)


class Bare(package.MultiHeadAttention):
    """The package's, by the equation alone, with the lesson's two arguments."""

    def __init__(self, embed_dim: int, num_heads: int):
        super().__init__(embed_dim, num_heads)

    def forward(self, x, mask=None, return_attention=False):
        y, weights = super().forward(x, mask, True)
        return (y, weights) if return_attention else y


def given(*inputs: Any, **options: Any) -> Callable[[nn.Module], Any]:
    """Use a module on these inputs, which it must leave alone."""
    return explained(lambda made: untouched(made, *inputs, **options))


TOKENS, FEWER = drawn(2, 5, 12), drawn(1, 7, 10, seed=3)
LAYER_TRIALS = [
    Trial("what it is made of", parts),
    module("2 images of 5 tokens of width 12, 3 heads", (12, 3), given(TOKENS)),
    module("1 image of 7 tokens of width 10, 2 heads", (10, 2), given(FEWER)),
    module("with a mask (5, 5)", (12, 3), given(TOKENS, sights(5, 5))),
    module("with a mask (7, 7)", (10, 2), given(FEWER, sights(7, 7))),
    module("with return_attention=True", (12, 3), given(TOKENS, return_attention=True)),
    module(
        "with return_attention=True and a mask",
        (10, 2),
        given(FEWER, mask=sights(7, 7), return_attention=True),
    ),
    Trial("made after torch.manual_seed(0)", seeded),
]

MultiHeadAttention = Check(
    reference=Bare,
    keeps="MultiHeadAttention",
    trials=[told(trial) for trial in LAYER_TRIALS],
    mistakes=[
        Mistake(
            "`proj` is made and never used: what the heads have read, merged, goes through it last",
            ProjUnused,
        ),
        Mistake(
            "the heads are merged by reshape or view, which mixes up the tokens; use merge_heads",
            layer(not_merged),
        ),
        Mistake(
            "the mask does not arrive: hand it on to scaled_dot_product_attention",
            layer(lambda m, x, mask: heads_attend(m, x, None)),
        ),
        Mistake(
            "with return_attention=True the weights are wanted too: return (y, weights) then",
            layer(finish=lambda m, y, weights, wanted: y),
        ),
        Mistake(
            "it gives the weights though nobody asked; only with return_attention=True",
            layer(finish=lambda m, y, weights, wanted: (y, weights)),
        ),
        Mistake(
            "it gives the weights when nobody asked, and not when asked: turn the `if` round",
            layer(finish=lambda m, y, weights, wanted: as_asked(m, y, weights, not wanted)),
        ),
        Mistake(
            "with return_attention=True it gives the weights alone; return (y, weights)",
            layer(finish=lambda m, y, weights, wanted: weights if wanted else y),
        ),
        Mistake(
            "with return_attention=True the tokens come first: (y, weights)",
            layer(finish=lambda m, y, weights, wanted: (weights, y) if wanted else y),
        ),
        Mistake(
            "the weights are averaged over the heads; give those of each head, (B, h, N, N)",
            layer(finish=lambda m, y, weights, wanted: as_asked(m, y, weights.mean(1), wanted)),
        ),
        Mistake(
            "the width is not cut into heads: split_qkv(self.qkv(x), self.num_heads) does both "
            "cuts",
            layer(one_wide_head),
        ),
        Mistake(
            "the width is read in the order (h qkv d); split_qkv reads it as (qkv h d)",
            layer(cut_as("b n (h qkv d) -> qkv b h n d")),
        ),
        Mistake(
            "the width is read in the order (h d qkv); split_qkv reads it as (qkv h d)",
            layer(cut_as("b n (h d qkv) -> qkv b h n d")),
        ),
        Mistake(
            "it cuts into 12 heads whatever it was made with; take self.num_heads",
            layer(twelve_heads),
        ),
        Mistake(
            "x is added to the result; that comes in lesson 05, in the block around this layer",
            WithResidual,
        ),
        Mistake(
            "`qkv` is never used: queries, keys and values are what it makes of x",
            layer(qkv_skipped),
        ),
        Mistake(NO_SCALE, layer(weighed(weigh(product)))),
        Mistake(MODEL_ROOT, layer(weighed(weigh(by(model_root))))),
        Mistake(
            "with the same seed it starts with other weights than the course's; make `qkv` first, "
            "then `proj`, and leave them as nn.Linear fills them",
            ProjFirst,
        ),
    ],
)


# effective_keys ----------------------------------------------------------------------------------


def entropy(weights: Tensor, dim: int = -1) -> Tensor:
    return torch.special.entr(weights).sum(dim=dim)


def weights_trial(what: str, weights: Tensor) -> Trial:
    """Weights that must stay as they are, to the last bit: 0 made 1e-30 is a change."""

    def run(answer: Callable) -> Any:
        given = weights.clone()
        result = answer(given)
        if not torch.equal(given, weights):
            raise InputChangedError
        return result

    return Trial(what, run)


LN_2 = torch.tensor(2.0).log()
SHARES = drawn(2, 3, 5, 5).softmax(dim=-1)
HIDDEN = hide(2 * drawn(2, 4, 6, 6), sights(6, 6)).softmax(dim=-1)

effective_keys = Check(
    reference=lambda weights: entropy(weights).exp(),
    trials=[
        weights_trial(
            "1 head, 4 queries, each looking at 4 keys alike", torch.full((1, 1, 4, 4), 0.25)
        ),
        weights_trial("2 images, 3 heads, 5 tokens", SHARES),
        weights_trial("2 images, 4 heads, 6 tokens, some of them hidden by a mask", HIDDEN),
    ],
    mistakes=[
        Mistake(
            "a weight of 0 gives NaN, since log 0 is -inf and 0 · -inf is no number; let such a "
            "key count 0 (torch.special.entr, torch.where, or nansum)",
            lambda w: (-(w * w.log()).sum(dim=-1)).exp(),
        ),
        Mistake("this is the entropy; raise e to it", entropy),
        Mistake("the sign is lost: it is minus the sum of w · ln w", lambda w: (-entropy(w)).exp()),
        Mistake(
            "it sums over the queries; each query has its own number, so sum over the keys, dim=-1",
            lambda w: entropy(w, -2).exp(),
        ),
        Mistake(
            "it takes the mean over the keys; take their sum",
            lambda w: (entropy(w) / w.shape[-1]).exp(),
        ),
        Mistake(
            "it counts the keys with any weight at all; a key with a small weight counts little",
            lambda w: (w > 0).sum(dim=-1).float(),
        ),
        Mistake(
            "1 / Σ w² is another measure; the one asked for is exp(−Σ w ln w)",
            lambda w: 1 / (w**2).sum(dim=-1),
        ),
        Mistake(
            "it looks at the largest weight alone; the one asked for is exp(−Σ w ln w)",
            lambda w: 1 / w.amax(dim=-1),
        ),
        Mistake(
            "the heads are averaged; give a number for each head, (B, h, N)",
            lambda w: entropy(w).exp().mean(dim=1),
        ),
        Mistake(
            "the heads are averaged; give a number for each head, (B, h, N)",
            lambda w: entropy(w.mean(dim=1)).exp(),
        ),
        Mistake(
            "the summed axis is still there, (B, h, N, 1); leave out keepdim=True",
            lambda w: entropy(w).exp()[..., None],
        ),
        Mistake(
            "bits and e do not go together: e with the natural logarithm, or 2 with log2",
            lambda w: (entropy(w) / LN_2).exp(),
        ),
        Mistake(
            "bits and e do not go together: e with the natural logarithm, or 2 with log2",
            lambda w: 2 ** entropy(w),
        ),
        Mistake(
            "each logarithm must be multiplied by its weight before the sum: w · ln w",
            lambda w: (-w.clamp_min(1e-30).log().sum(dim=-1)).exp(),
        ),
        Mistake(
            "it gives one number for all; give one for each image, head and query, (B, h, N)",
            lambda w: entropy(w).exp().mean(),
        ),
    ],
)


# local_mask --------------------------------------------------------------------------------------


def patch_distances(height: int, width: int) -> tuple[Tensor, Tensor]:
    """How many rows, and how many columns, any two patches are apart, each (n, n)."""
    patch = torch.arange(height * width)
    row, col = patch // width, patch % width
    return (row[:, None] - row).abs(), (col[:, None] - col).abs()


def with_cls(near: Tensor, seen: bool = True, sees: bool = True, itself: bool = True) -> Tensor:
    """A mask of patches with the cls token put in front."""
    mask = torch.ones(len(near) + 1, len(near) + 1, dtype=torch.bool)
    mask[1:, 0], mask[0, 1:], mask[0, 0] = seen, sees, itself
    mask[1:, 1:] = near
    return mask


def square(height: int, width: int, radius: int) -> Tensor:
    """The patches at most `radius` rows and at most `radius` columns away."""
    down, across = patch_distances(height, width)
    return (down <= radius) & (across <= radius)


def diamond(height: int, width: int, radius: int) -> Tensor:
    down, across = patch_distances(height, width)
    return down + across <= radius


def disc(height: int, width: int, radius: int) -> Tensor:
    down, across = patch_distances(height, width)
    return down**2 + across**2 <= radius**2


def along_the_row(height: int, width: int, radius: int) -> Tensor:
    patch = torch.arange(height * width)
    return (patch[:, None] - patch).abs() <= radius


def open_square(height: int, width: int, radius: int) -> Tensor:
    down, across = patch_distances(height, width)
    return (down < radius) & (across < radius)


def cross(height: int, width: int, radius: int) -> Tensor:
    down, across = patch_distances(height, width)
    return (down <= radius) | (across <= radius)


def others(height: int, width: int, radius: int) -> Tensor:
    near = square(height, width, radius)
    return near & ~torch.eye(len(near), dtype=torch.bool)


def one_sided(height: int, width: int, radius: int) -> Tensor:
    patch = torch.arange(height * width)
    row, col = patch // width, patch % width
    return (row[:, None] - row <= radius) & (col[:, None] - col <= radius)


def round_the_edge(height: int, width: int, radius: int) -> Tensor:
    down, across = patch_distances(height, width)
    down, across = torch.minimum(down, height - down), torch.minimum(across, width - across)
    return (down <= radius) & (across <= radius)


def added(height: int, width: int, radius: int) -> Tensor:
    """Zeros and -inf, to be added to the scores."""
    mask = with_cls(square(height, width, radius))
    return torch.zeros(mask.shape).masked_fill(~mask, float("-inf"))


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
    reference=lambda *sizes: with_cls(square(*sizes)),
    trials=[
        grid_trial(3, 3, 1),
        grid_trial(4, 6, 1),
        grid_trial(5, 4, 2),
        grid_trial(6, 7, 3),
        grid_trial(3, 4, 0),
        grid_trial(2, 5, 7),
    ],
    mistakes=[
        Mistake(
            "it is the wrong way round: True where a query may look, not where it may not",
            lambda *sizes: ~with_cls(square(*sizes)),
        ),
        Mistake(
            "the cls token is missing: the mask is (N, N) with N = 1 + height * width, cls first",
            square,
        ),
        Mistake(
            "the cls token stands last; it is token 0",
            lambda *sizes: with_cls(square(*sizes)).roll((-1, -1), (0, 1)),
        ),
        Mistake(
            "the patches cannot look at the cls token: mask[:, 0] must be True",
            lambda *sizes: with_cls(square(*sizes), seen=False),
        ),
        Mistake(
            "the cls token cannot look at the patches: mask[0] must be True",
            lambda *sizes: with_cls(square(*sizes), sees=False),
        ),
        Mistake(
            "the cls token and the patches do not see each other: mask[0] and mask[:, 0] must be "
            "True",
            lambda *sizes: with_cls(square(*sizes), seen=False, sees=False),
        ),
        Mistake(
            "nobody sees the cls token and it sees nobody, itself neither: mask[0] and mask[:, 0] "
            "must be True",
            lambda *sizes: with_cls(square(*sizes), seen=False, sees=False, itself=False),
        ),
        Mistake(
            "it adds the distance in rows to that in columns, which gives a diamond; each of them "
            "may be up to radius on its own, which gives a square",
            lambda *sizes: with_cls(diamond(*sizes)),
        ),
        Mistake(
            "it takes the distance as the crow flies, which gives a disc; rows and columns may "
            "each be up to radius away, which gives a square",
            lambda *sizes: with_cls(disc(*sizes)),
        ),
        Mistake(
            "it measures along the list of patches: the end of a row and the start of the next are "
            "neighbours there, and the patch below is not; use rows and columns",
            lambda *sizes: with_cls(along_the_row(*sizes)),
        ),
        Mistake(
            "a patch exactly radius away must be in sight: <= radius, not < radius",
            lambda *sizes: with_cls(open_square(*sizes)),
        ),
        Mistake(
            "near in rows or in columns is a cross over the whole grid; both must be near: use &",
            lambda *sizes: with_cls(cross(*sizes)),
        ),
        Mistake(
            "rows and columns are mixed up: patch i stands in row i // width, column i % width",
            lambda height, width, radius: with_cls(square(width, height, radius)),
        ),
        Mistake(
            "a patch does not see itself; it is no row and no column away, so it does",
            lambda *sizes: with_cls(others(*sizes)),
        ),
        Mistake(
            "the distance has no sign: take abs() of the difference in rows and in columns",
            lambda *sizes: with_cls(one_sided(*sizes)),
        ),
        Mistake(
            "it goes round the edge: the last column is no neighbour of the first",
            lambda *sizes: with_cls(round_the_edge(*sizes)),
        ),
    ],
)


# find_fault --------------------------------------------------------------------------------------


def divided_first(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """Right weights, rounded otherwise: queries and keys each take half of the scale."""
    root = q.shape[-1] ** 0.25
    scores = (q / root) @ (k / root).mT
    scores = scores if mask is None else scores.masked_fill(~mask, -1e9)
    powers = scores.exp()
    return powers / powers.sum(dim=-1, keepdim=True)


RIGHT, LATE, SCALE = "right", "scaled after softmax", "wrong scale"
AXIS, MASK = "wrong axis", "wrong mask"

SUSPECTS = (
    ("a right function", equation, RIGHT),
    ("another right function, which rounds otherwise", attend(divided_first), RIGHT),
    ("softmax(qk) / √D", attend(weigh(product, after=model_root)), LATE),
    ("softmax(qk) / √d", attend(weigh(product, after=head_root)), LATE),
    ("softmax(qk / √D)", attend(weigh(by(model_root))), SCALE),
    ("softmax(qk), no scale", attend(weigh(product)), SCALE),
    ("softmax(qk / d)", attend(weigh(by(lambda q: q.shape[-1]))), SCALE),
    ("softmax over the queries", attend(weigh(dim=-2)), AXIS),
    ("a mask that is ignored", lambda q, k, v, mask=None: equation(q, k, v), MASK),
    ("a mask the wrong way round", attend(weigh(masked=lambda s, m: hide(s, ~m))), MASK),
    ("a mask on the weights, after the softmax", attend(masked_weights), MASK),
    ("a mask that makes scores 0", attend(weigh(masked=lambda s, m: s * m)), MASK),
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
NO_MASK_TRIED = (
    "it does not see a wrong mask: try each function with a mask too, one that hides some keys"
)
ROUNDED = "another right function, which rounds otherwise"
BY_MODEL, BARE, BY_WIDTH = "softmax(qk / √D)", "softmax(qk), no scale", "softmax(qk / d)"

find_fault = Check(
    reference=diagnose,
    trials=[suspect(what, attend) for what, attend, _ in SUSPECTS],
    mistakes=[
        Mistake(
            "it calls a wrong scale right: row sums are 1 at any scale; compare the weights with "
            "softmax(qk / √d), on random q and k (zeros or ones give the same at any scale)",
            verdict({SCALE: RIGHT}),
        ),
        Mistake(
            "it looks at row sums alone: compare the weights with softmax(qk / √d) on random q and "
            "k, without a mask and with one",
            verdict({SCALE: RIGHT, MASK: RIGHT, AXIS: LATE}),
        ),
        Mistake(
            "zeros and ones give the same weights at any scale, along both axes and under any "
            "order: try random q and k, without a mask and with one",
            verdict({SCALE: RIGHT, MASK: RIGHT, AXIS: RIGHT}),
        ),
        Mistake(NO_MASK_TRIED, verdict({MASK: RIGHT})),
        Mistake(
            "the mask is read the wrong way round: True means that a query may look",
            verdict({RIGHT: MASK, "a mask the wrong way round": RIGHT}),
        ),
        Mistake(
            "it misses a mask on the weights: see also whether the row still sums to 1, or compare "
            "with right masked weights",
            verdict({"a mask on the weights, after the softmax": RIGHT}),
        ),
        Mistake(
            "with a mask it looks at row sums only: look whether the hidden weights are 0, or "
            "compare with right masked weights",
            verdict(
                {
                    "a mask that is ignored": RIGHT,
                    "a mask the wrong way round": RIGHT,
                    "a mask that makes scores 0": RIGHT,
                }
            ),
        ),
        Mistake(
            "your mask hides nothing, or hides alike both ways round: take a random one, in which "
            "each query sees some keys and not others",
            verdict(
                {
                    "a mask that is ignored": RIGHT,
                    "a mask on the weights, after the softmax": RIGHT,
                    "a mask that makes scores 0": RIGHT,
                }
            ),
        ),
        Mistake(
            "it does not see √D: with one head, D = d; try q, k, v with several heads",
            verdict({BY_MODEL: RIGHT}),
        ),
        Mistake(
            "it misses no scale at all, and d for √d: try heads wider than 1, where they differ, "
            "and compare with √d instead of looking for √D",
            verdict({BARE: RIGHT, BY_WIDTH: RIGHT}),
        ),
        Mistake(
            "it calls a scale after the softmax a wrong scale: look at the row sums first",
            verdict({LATE: SCALE}),
        ),
        Mistake(
            "the two faults are mixed up: rows that do not sum to 1 tell of a scale after softmax",
            verdict({LATE: SCALE, SCALE: LATE}),
        ),
        Mistake(
            "it calls a softmax over the queries a scale after the softmax: neither has rows that "
            "sum to 1, but here the columns do",
            verdict({AXIS: LATE}),
        ),
        Mistake(
            "it calls a softmax over the queries a wrong scale: its columns sum to 1, not its rows",
            verdict({AXIS: SCALE}),
        ),
        Mistake(
            "it misses a scale after the softmax: its rows sum to 1/√D or 1/√d, not to 1",
            verdict({LATE: RIGHT}),
        ),
        Mistake(
            "it finds every function right, whatever it does",
            verdict({LATE: RIGHT, SCALE: RIGHT, AXIS: RIGHT, MASK: RIGHT}),
        ),
        Mistake(TOO_STRICT, verdict({ROUNDED: SCALE})),
        Mistake(TOO_STRICT, verdict({RIGHT: SCALE})),
        Mistake(TOO_STRICT, verdict({RIGHT: LATE, SCALE: LATE, AXIS: LATE, MASK: LATE})),
        Mistake(TOO_STRICT, verdict({RIGHT: LATE, SCALE: LATE, MASK: LATE})),
    ],
)
