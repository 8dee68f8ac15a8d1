"""Build cells and exercises of lesson 04."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .compare import Verdict
from .exercise import Exercise
from .trials import Outside, Trial, asked, call, drawn, learns, module, untouched


def sights(*shape: int) -> Tensor:
    """Make a mask, the same each time: half is hidden, and each query sees itself or key 0."""
    mask = drawn(*shape, seed=1) < 0
    if shape[-2] == shape[-1]:
        return mask | torch.eye(shape[-1], dtype=torch.bool)
    mask[..., 0] = True
    return mask


LARGE = 15 * drawn(3, 2, 2, 5, 4, seed=592)  # in each row one score lies far above the rest

scaled_dot_product_attention = Exercise(
    answer="""
def scaled_dot_product_attention(q, k, v, mask=None):  # q, k, v: (B, h, N, d)
    d = q.shape[-1]
    scores = q @ k.mT / d**0.5  # (B, h, N, N)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)  # (B, h, N, N)
    mixed = weights @ v  # (B, h, N, d)
    return mixed, weights
""",
    trials=[
        call("2 images, 3 heads, 7 tokens of width 10", *drawn(3, 2, 3, 7, 10)),
        learns("6 tokens and a mask (6, 6)", *drawn(3, 2, 3, 6, 5, seed=3), sights(6, 6)),
        call("scores above 100 and a mask (B, 1, 1, N)", *LARGE, sights(2, 1, 1, 5)),
    ],
    wrong="""
the scale comes after the softmax, so the rows of the weights do not sum to 1; divide the scores,
then take the softmax
    d**0.5 => 1 ;; weights = => weights = 1 / d**0.5 *
the scale is missing: divide the scores by √d before the softmax
    d**0.5 => 1
the scale is √D, from the width of a whole token; what was multiplied is one head wide: √d,
d = q.shape[-1]
    d**0.5 => (q.shape[1] * d) ** 0.5
the scores are divided by d, not by √d: is the root missing, or does the scale stand twice, at q and
at k?
    d**0.5 => d
the scores are multiplied by √d; they are too large already: divide
    / d**0.5 => * d**0.5
the scale counts the tokens, √N; it is the width of a head that makes scores large: √d,
d = q.shape[-1]
    q.shape[-1] => q.shape[-2]
the scale counts the heads, √h; it is the width of a head that makes scores large: √d,
d = q.shape[-1]
    q.shape[-1] => q.shape[1]
the scale counts the images, √B; it is the width of a head that makes scores large: √d,
d = q.shape[-1]
    q.shape[-1] => q.shape[0]
the scores are divided by half of d: `d * 0.5` and `d ** 1/2` halve d; the root is `d ** 0.5`
    d**0.5 => (d * 0.5) ‖ (d // 2)
the scores are divided by 2 · d: `/ d ** 1/2` and `/ d * 0.5` divide by d, then by 2; the root is
`d ** 0.5`
    d**0.5 => (2 * d)
the root is made a whole number; leave it as it is, d ** 0.5
    d**0.5 => int(d**0.5)
torch.sqrt takes a tensor; the root of a plain number is d ** 0.5
    d**0.5 => torch.sqrt(d)
the scale is 8 whatever comes: that is √64 of ViT-B/16; read the width off q
    d**0.5 => 8
softmax runs over the queries, so the columns sum to 1; each query shares out its own weight, over
the keys: dim=-1
    dim=-1 => dim=-2
softmax runs over the heads; dim=-1 are the keys
    dim=-1 => dim=1
softmax runs over the images; dim=-1 are the keys
    dim=-1 => dim=0
softmax runs over queries and keys together, so the whole table sums to 1; each query shares out its
own 1, over the keys: dim=-1
    scores.softmax(dim=-1) => scores.flatten(2).softmax(dim=-1).view_as(scores)
a sigmoid weighs each key alone, so the rows do not sum to 1; softmax lets the keys share out 1
    scores.softmax(dim=-1) => scores.sigmoid()
a sigmoid is not e to the score; softmax divides that by its row's sum
    scores.softmax(dim=-1) => F.normalize(scores.sigmoid(), p=1, dim=-1)
e to the scores is not yet a share: divide it by the sum of its row, as softmax does
    scores.softmax(dim=-1) => scores.exp()
e to a score above 88 is inf, and inf / inf is NaN: first subtract from each row its largest score,
as softmax does
    scores.softmax(dim=-1) => scores.exp() / scores.exp().sum(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, float("-inf")) => pass ;; scores.softmax(dim=-1) =>
        F.normalize(scores.exp() * (1.0 if mask is None else mask), p=1, dim=-1)
e to a score above 88 is inf, so first subtract from each row its largest score, as softmax does;
and True means that a query may look, so what is False counts nothing
    scores = scores.masked_fill(~mask, float("-inf")) => pass ;; scores.softmax(dim=-1) =>
        (e := scores.exp() * (1.0 if mask is None else ~mask)) / e.sum(dim=-1, keepdim=True)
the largest score of all is taken away, so a row far below it becomes 0 / 0: take from each row its
own, scores.amax(dim=-1, keepdim=True)
    scores.softmax(dim=-1) => (e := (scores - scores.max()).exp()) / e.sum(dim=-1, keepdim=True)
the softmax is missing: the scores themselves mix the values
    scores.softmax(dim=-1) => scores
    float("-inf") => 0.0 ;; scores.softmax(dim=-1) => scores
each query sees only itself and the keys before it, as under the causal mask of a model that writes
text; here it sees all keys but those that the mask hides
    if mask => scores = scores + torch.full_like(scores, -math.inf).triu(1) ⏎ if mask
    if mask => mask = torch.ones_like(scores).tril().bool() if mask is None else mask ⏎ if mask
the scores stand the wrong way: a row is a query and a column a key, so q comes first: q @ k.mT
    q @ k.mT => k @ q.mT
a matrix product does not fit; for the scores swap the last two axes of k, k.mT, and let the weights
(B, h, N, N) mix v as it is
    k.mT => k
reshape and view do not turn the keys, they cut the same numbers into other rows: swap the last two
axes, k.mT
    k.mT => k.reshape(*k.shape[:2], d, -1)
swap the last two axes of k and no others, k.mT (k.T turns all four)
    k.mT => k.T
the scores compare queries with values; a query meets the keys: q @ k.mT
    q @ k.mT => q @ v.mT
q * k multiplies number by number; each query meets every key in a matrix product, q @ k.mT
    q @ k.mT => q * k ‖ q * k ;; weights @ v => weights * v ‖
        q * k ;; weights @ v => weights * v ;; scores = scores… => pass
the mask comes after the softmax, so the rest of a row no longer sums to 1; fill the scores with
float('-inf') before it
    scores = scores.masked_fill => scores.masked_fill ;;
        mixed = => weights = weights if mask is None else weights * mask ⏎ mixed =
the mask has no effect: it is never used, or the result of masked_fill is not kept; without `_` it
gives a new tensor, so write scores = scores.masked_fill(…)
    scores = scores.masked_fill => scores.masked_fill
the mask is turned: its rows are queries and its columns keys, as in the scores
    ~mask => ~mask.mT
it cannot be called without a mask; give it a default: mask=None
    mask=None => mask
it uses the mask where there is none; first ask `if mask is not None`
    if mask is not None: => if True:
`if mask` asks a whole tensor for one yes or no; ask `if mask is not None`
    if mask is not None: => if mask:
there is no `mask_fill`; it is called `masked_fill`
    scores.masked_fill => scores.mask_fill
indexing, `scores[~mask]`, needs a mask of the whole shape (B, h, N, N); `masked_fill` broadcasts
one of (N, N)
    scores = scores… => scores[~mask] = float("-inf") ‖ scores[:, :, ~mask] = float("-inf")
the mask is the wrong way round: True means that a query may look, so fill the scores where it is
False, ~mask
    ~mask => mask
a hidden score becomes 0, and a key with score 0 still gets weight; fill with float('-inf'), since e
to that is 0
    float("-inf") => 0.0
a hidden score becomes a number that other scores may come close to, so its key may still get
weight; fill with float('-inf'), since e to that is 0
    float("-inf") => -1.0 ‖ -100.0
    scores.masked_fill(~mask, float("-inf")) => scores - 100.0 * ~mask
the fill is +inf, which gives NaN; a hidden key needs a score of float('-inf')
    float("-inf") => float("inf")
the mask is added to the scores, so True adds 1 and False nothing; fill with float('-inf') where it
is False
    scores.masked_fill(~mask, float("-inf")) => scores + mask
it mixes the queries; a token hands out its value: weights @ v
    weights @ v => weights @ q
it mixes the keys; a token hands out its value: weights @ v
    weights @ v => weights @ k
the weights are turned before they mix: row i of the weights belongs to query i, so weights @ v
    weights @ => weights.mT @
what you return as weights are the scores; the softmax makes weights of them
    return mixed, weights => return mixed, scores
the weights come first; return the mixed values, then the weights
    return mixed, weights => return weights, mixed
it returns the mixed values alone; return (mixed, weights)
    return mixed, weights => return mixed
the heads are merged; leave them apart, (B, h, N, d): the class merges them
    return mixed => return merge_heads(mixed)
no gradient passes: keep to tensors, without detach, tolist or numpy
    d = q. => q, k, v = q.detach(), k.detach(), v.detach() ⏎ d = q.
""",
    alike=['float("-inf") => -1e9'],
    does="Every query blends the values by how well it matches their keys, and a mask can hide "
    "keys from it.",
    why="`k.mT` swaps the last two axes, so that each query meets each key; `k.T` would turn all "
    "four. The mask comes before the softmax, so that the keys that are left share out the 1.",
)


def seeded(answer: Callable) -> Any:
    """Say whether a module starts with the course's weights for a seed."""
    torch.manual_seed(0)
    layer = answer(12, 3)
    torch.manual_seed(0)
    right = nn.ModuleDict({"qkv": nn.Linear(12, 36), "proj": nn.Linear(12, 12)}).state_dict()
    if not isinstance(layer, nn.Module):
        return layer
    begins = layer.state_dict()
    same = all(name in begins and torch.equal(begins[name], right[name]) for name in right)
    return Verdict(f"it starts with {'the' if same else 'other weights than the'} course's")


def after_a_mask(layer: nn.Module, x: Tensor, mask: Tensor) -> Any:
    """Give what a layer makes of tokens without a mask when it had one in the call before."""
    layer(x, mask)
    return untouched(layer, x)


TOKENS, FEWER = drawn(2, 5, 12), drawn(1, 7, 10, seed=3)
SIGHTS = sights(7, 7)

MultiHeadAttention = Exercise(
    answer="""
class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, mask=None, return_attention=False):  # x: (B, N, D)
        q, k, v = split_qkv(self.qkv(x), self.num_heads)  # each (B, h, N, d)
        mixed, weights = scaled_dot_product_attention(q, k, v, mask)
        y = self.proj(merge_heads(mixed))  # (B, N, D)
        if return_attention:
            return y, weights
        return y
""",
    trials=[
        module("2 images of 5 tokens of width 12, 3 heads", (12, 3), TOKENS),
        module("1 image of 7 tokens of width 10, 2 heads, with a mask", (10, 2), FEWER, SIGHTS),
        module(
            "with return_attention=True and a mask", (10, 2), FEWER, SIGHTS, return_attention=True
        ),
        module("without a mask, after a call with one", (10, 2), FEWER, SIGHTS, use=after_a_mask),
        Trial("made after torch.manual_seed(0)", seeded),
    ],
    wrong="""
the mask is turned round, or another is made of it: hand it on as it came
    ! mask has a row of False
`qkv` must go from D to 3 · D: it makes queries, keys and values, each D wide
    3 * embed_dim => embed_dim
the weights are averaged over the heads; give those of each head, (B, h, N, N)
    return y, weights => return y, weights.mean(dim=1)
`proj` must go from D to D: the merged heads are D wide together
    self.proj = nn.Linear(embed_dim => self.proj = nn.Linear(3 * embed_dim
`qkv` has no bias; leave nn.Linear its own
    3 * embed_dim) => 3 * embed_dim, bias=False)
`qkv` is made and never used: x goes through `self.qkv` first, and what it gives is split
    split_qkv(self.qkv(x) => split_qkv(x
`proj` is made and never used: apply it to the merged heads, last
    self.proj( => (
the heads are merged by reshape or view, which mixes up the tokens; use merge_heads
    merge_heads(mixed) => mixed.reshape(x.shape)
a Linear gets another width than it takes; are the heads merged before `proj`?
    merge_heads(mixed) => mixed
it does not know its number of heads; in __init__, keep self.num_heads
    self.num_heads = num_heads =>
it cannot be called without a mask; give it a default: mask=None
    mask=None => mask
it keeps the mask of an earlier call, which still hides where none is given: use `mask` as it comes
    self.num_heads = num_heads => self.num_heads = num_heads ⏎ self.mask = None ;;
        q, k, v = => self.mask = self.mask if mask is None else mask ⏎ q, k, v = ;;
        v, mask) => v, self.mask)
`proj` works inside one head, so the heads cannot mix: merge them first, then from D to D
    nn.Linear(embed_dim, embed_dim) => nn.Linear(embed_dim // num_heads, embed_dim // num_heads) ;;
        self.proj(merge_heads(mixed)) => merge_heads(self.proj(mixed))
the mask does not arrive where the weights are not asked for: hand it on in both cases
    v, mask) => v, mask if return_attention else None)
the mask does not arrive: hand it on to scaled_dot_product_attention
    v, mask) => v)
without return_attention=True give the tokens alone; a comma makes two things, (tokens, None)
    if return_attention: => if not return_attention: ⏎     return y, None ⏎ if return_attention:
without return_attention=True the tokens do not attend: mix the values always, and choose only what
to return
    y = self => mixed = mixed if return_attention else v ⏎ y = self
    y = self => mixed = mixed if return_attention else torch.zeros_like(v) ⏎ y = self ‖
        mixed = mixed if return_attention else 0 * v + v.mean(dim=2, keepdim=True) ⏎ y = self
    merge_heads(mixed) => merge_heads(mixed) if return_attention else x
    if return_attention: => if not return_attention: ⏎     return x ⏎ if return_attention:
with return_attention=True the weights are wanted too: return (y, weights) then
    return y, weights => return y
it gives the weights though nobody asked; only with return_attention=True
    if return_attention: => if True:
it gives the weights when nobody asked, and not when asked: turn the `if` round
    if return_attention: => if not return_attention:
with return_attention=True it gives the weights alone; return (y, weights)
    return y, weights => return weights
with return_attention=True the tokens come first: (y, weights)
    return y, weights => return weights, y
the weights are averaged over the heads; give those of each head, (B, h, N, N)
    return y, weights => return y, weights.mean(dim=1)
the width is not cut into heads: split_qkv(self.qkv(x), self.num_heads) does both cuts
    split_qkv… => self.qkv(x).chunk(3, dim=-1) ;; merge_heads(mixed) => mixed
the width is read in the order (h qkv d); split_qkv reads it as (qkv h d)
    split_qkv… => rearrange(self.qkv(x), "b n (h qkv d) -> qkv b h n d", qkv=3, h=self.num_heads)
the width is read in the order (h d qkv); split_qkv reads it as (qkv h d)
    split_qkv… => rearrange(self.qkv(x), "b n (h d qkv) -> qkv b h n d", qkv=3, h=self.num_heads)
split_qkv gives q, k, v; take them, and hand them on, in this order
    q, k, v = => k, q, v = ‖ v, k, q = ‖ q, v, k = ‖ v, q, k = ‖ k, v, q =
split_qkv takes the number of heads, not the width of one: self.num_heads
    self.num_heads) => x.shape[-1] // self.num_heads)
it cuts into a fixed number of heads, whatever it was made with; take self.num_heads
    self.num_heads) => 12) ‖ 3) ‖ 2)
the mask is turned round, as PyTorch's own layer wants it; hand it on as it is
    (q, k, v, mask) => (q, k, v, None if mask is None else ~mask)
x is added to the result; that comes in lesson 05, in the block around this layer
    y = self.proj => y = x + self.proj
`qkv` is never used: queries, keys and values are what it makes of x
    self.qkv(x) => torch.cat([x, x, x], dim=-1)
the scale is missing: divide the scores by √d before the softmax
    attention(q => attention(q * q.shape[-1] ** 0.5
the scale is √D, from the width of a whole token; what was multiplied is one head wide: √d,
d = q.shape[-1]
    attention(q => attention(q / self.num_heads**0.5
with the same seed it starts with other weights than the course's; make `qkv` first, then `proj`,
and leave them as nn.Linear fills them
    self.proj = nn.Linear(embed_dim, embed_dim) => pass ;; self.num_heads = num_heads =>
        self.num_heads = num_heads ⏎ self.proj = nn.Linear(embed_dim, embed_dim)
""",
    does="Tokens now ask each other in several heads, and mix what comes back.",
    why="One Linear, lesson 03's split, the equation, lesson 03's merge. `proj` comes last: by it "
    "alone can a head write into the other heads' places.",
)


effective_keys = Exercise(
    answer="""
def effective_keys(weights):  # (B, h, N, N)
    parts = torch.special.entr(weights)  # -w ln w, and 0 where w is 0
    return parts.sum(dim=-1).exp()  # (B, h, N)
""",
    trials=[
        call(
            "2 images, 4 heads, 6 tokens, some of them hidden by a mask",
            (2 * drawn(2, 4, 6, 6)).masked_fill(~sights(6, 6), -torch.inf).softmax(dim=-1),
        ),
    ],
    wrong="""
a weight of 0 gives NaN, since log 0 is -inf and 0 · -inf is no number; let such a key count 0
(torch.special.entr, torch.where, or nansum)
    torch.special.entr(weights) => -weights * weights.log()
what is NaN is replaced after the sum, so one hidden key spoils its row: replace it in each product,
before the sum
    torch.special.entr(weights) => -weights * weights.log() ;; .exp() => .nan_to_num(nan=0.0).exp()
a weight of 0 is raised to a small one, and then counts as a key: let it count 0
    entr(weights) => entr(weights.clamp(min=0.001))
this is the entropy; raise e to it
    .exp() =>
the sign is lost: it is minus the sum of w · ln w
    torch.special.entr => -torch.special.entr
it sums over the queries; each query has its own number, so sum over the keys, dim=-1
    dim=-1 => dim=-2
it takes the mean over the keys; take their sum
    parts.sum => parts.mean
it counts the keys with any weight at all; a key with a small weight counts little
    parts.sum(dim=-1).exp() => (weights > 0).sum(dim=-1).float()
1 / Σ w² is another measure; the one asked for is exp(−Σ w ln w)
    parts.sum(dim=-1).exp() => 1 / (weights**2).sum(dim=-1)
it looks at the largest weight alone; the one asked for is exp(−Σ w ln w)
    parts.sum(dim=-1).exp() => 1 / weights.amax(dim=-1)
the heads are averaged; give a number for each head, (B, h, N)
    .exp() => .exp().mean(dim=1)
    entr(weights) => entr(weights.mean(dim=1))
this is the query cls alone; give a number for each query, (B, h, N)
    .exp() => .exp()[..., 0]
the summed axis is still there, (B, h, N, 1); leave out keepdim=True
    dim=-1 => dim=-1, keepdim=True
bits and e do not go together: e with the natural logarithm, or 2 with log2
    entr(weights) => entr(weights) / math.log(2)
    .exp() => .exp2()
each logarithm must be multiplied by its weight before the sum: w · ln w
    torch.special.entr(weights) => -weights.clamp_min(1e-30).log()
it gives one number for all; give one for each image, head and query, (B, h, N)
    .exp() => .exp().mean()
""",
    why="`entr` is −w·ln w, with 0 at 0, so a hidden key counts nothing. In the trained reader cls "
    "looks at 11 of 17 tokens in the first block, and at 4 in the last.",
)


RIGHT, LATE, SCALE = "right", "scaled after softmax", "wrong scale"
AXIS, MASK = "wrong axis", "wrong mask"
ROUNDED = "scores.softmax(dim=-1) => (scores - scores.logsumexp(-1, True)).exp()"
WHOLE, BEHIND = "(q.shape[1] * d)", "weights = => weights ="  # D, and where a late scale stands
AFTERWARDS = "scores = scores.masked_fill => scores.masked_fill ;; "
AFTERWARDS += "mixed = => weights = weights if mask is None else weights * mask ⏎ mixed ="


def suspect(what: str, edit: str, kind: str) -> Trial:
    """Make a trial of the equation with this edit, which the answer is to call by its kind."""

    def say(name: Any, _: Any) -> Any:
        if name is None or name is ...:
            return name
        if name not in (RIGHT, LATE, SCALE, AXIS, MASK):
            return Verdict(f"it says {name!r}; say one of the five strings, such as {RIGHT!r}")
        return Verdict("as it should" if name == kind else f"it says {name!r}, and it is {kind!r}")

    return Trial(what, asked, [Outside(scaled_dot_product_attention.with_edit(edit))], say)


find_fault = Exercise(
    answer="""
def find_fault(attend):
    q, k, v = torch.randn(3, 2, 4, 5, 8)  # several heads, wider than 1
    ones = torch.ones(2, 4, 5)
    weights = attend(q, k, v)[1]
    right = scaled_dot_product_attention(q, k, v)[1]
    if torch.allclose(weights, right, atol=1e-5):
        mask = torch.rand(5, 5) < 0.5
        mask[:, 0], mask[:, 1] = True, False  # each query sees some keys and not others
        masked = attend(q, k, v, mask)[1]
        expected = scaled_dot_product_attention(q, k, v, mask)[1]
        return "right" if torch.allclose(masked, expected, atol=1e-5) else "wrong mask"
    if torch.allclose(weights.sum(dim=-1), ones, atol=1e-4):  # of the rows
        return "wrong scale"
    if torch.allclose(weights.sum(dim=-2), ones, atol=1e-4):  # of the columns
        return "wrong axis"
    return "scaled after softmax"
""",
    trials=[
        suspect("a right function, which rounds in its own way", ROUNDED, RIGHT),
        suspect("softmax(qk) / √D", f"d**0.5 => 1 ;; {BEHIND} {WHOLE} ** -0.5 *", LATE),
        suspect("softmax(qk) / √d", f"d**0.5 => 1 ;; {BEHIND} d**-0.5 *", LATE),
        suspect("softmax(qk / √D)", f"d**0.5 => {WHOLE} ** 0.5", SCALE),
        suspect("softmax(qk), no scale", "d**0.5 => 1", SCALE),
        suspect("softmax(qk / d)", "d**0.5 => d", SCALE),
        suspect("softmax over the queries", "dim=-1 => dim=-2", AXIS),
        suspect(
            "a mask that is ignored", "scores = scores.masked_fill => scores.masked_fill", MASK
        ),
        suspect("a mask the wrong way round", "~mask => mask", MASK),
        suspect("a mask on the weights, after the softmax", AFTERWARDS, MASK),
    ],
    wrong="""
it calls a wrong scale right: row sums are 1 at any scale; compare the weights with softmax(qk / √d)
    return "wrong scale" => return "right"
it looks at row sums alone: compare the weights with softmax(qk / √d) on random q and k, without a
mask and with one
    right = scaled… => whole = torch.allclose(weights.sum(dim=-1), ones, atol=1e-4) ⏎
        return "right" if whole else "scaled after softmax"
zeros and ones give the same weights at any scale and along both axes: try random q and k
    torch.randn( => torch.zeros(
it does not see a wrong mask: try each function with a mask too, one that hides some keys
    torch.allclose(masked, expected, atol=1e-5) => True
the mask is read the wrong way round: True means that a query may look
    expected =… => expected = scaled_dot_product_attention(q, k, v, ~mask)[1]
it misses a mask on the weights: see also whether the row still sums to 1, or compare with right
masked weights
    torch.allclose(masked, expected, atol=1e-5) => (masked * ~mask).abs().max() < 1e-5
with a mask it looks at row sums only: look whether the hidden weights are 0, or compare with right
masked weights
    torch.allclose(masked, expected, atol=1e-5) =>
        torch.allclose(masked.sum(dim=-1), ones, atol=1e-4)
with a mask it asks only whether the weights change; they do under a wrong mask too: compare with
right masked weights
    torch.allclose(masked, expected, atol=1e-5) => not torch.allclose(masked, weights, atol=1e-5)
differences above and below 0 cancel in a sum, since rows of both sum to 1: take .abs() first
    torch.allclose(weights, right, atol=1e-5) => (weights - right).sum().abs() < 1e-3 ;;
        torch.allclose(masked, expected, atol=1e-5) => (masked - expected).sum().abs() < 1e-3
your mask hides nothing: take one in which each query sees some keys and not others
    torch.rand(5… => torch.ones(5, 5, dtype=torch.bool) ;; mask[:, 1… => mask[:, 1] = True, True
of all faults only a scale after the softmax shows in what it tries: a single token, or q and k that
are alike, have equal weights at any scale, and a mask that hides nothing tests none; take several
tokens, random q and k, and a mask that hides some keys
    2, 4, 5, 8) => 2, 4, 1, 8) ;; torch.ones(2, 4, 5) => torch.ones(2, 4, 1) ;;
        torch.rand(5… => torch.ones(1, 1, dtype=torch.bool) ;; mask[:, 0… => pass
it does not see √D: with one head, D = d; try q, k, v with several heads
    2, 4, 5, 8) => 2, 1, 5, 8)
heads of width 1 hide a wrong scale, since √d, d and no scale are all 1 there: take wider heads
    2, 4, 5, 8) => 2, 4, 5, 1)
one head of width 1 hides every scale, before the softmax and after it: take several heads, wider
than 1
    2, 4, 5, 8) => 2, 1, 5, 1)
it knows one wrong scale and lets the others pass: whatever is not √d is wrong, so compare with the
right weights
    "wrong scale" => "wrong scale" if torch.allclose(weights, (q @ k.mT / ROOT).softmax(-1),
        atol=1e-5) else "right" ;; ROOT => 32**0.5 ‖ 1 ‖ 8
it calls a scale after the softmax a wrong scale: look at the row sums first
    return "scaled after softmax" => return "wrong scale"
it knows a scale after the softmax by √d alone; some divide by √D: leave this kind for what is none
of the others
    weights.sum(dim=-2), ones, atol=1e-4) => weights.sum(-1), ones / 8**0.5, atol=1e-4) is False
it knows a scale after the softmax by √D alone; some divide by √d: leave this kind for what is none
of the others
    weights.sum(dim=-2), ones, atol=1e-4) => weights.sum(-1), ones / 32**0.5, atol=1e-4) is False
the two faults are mixed up: rows that do not sum to 1 tell of a scale after softmax
    return "wrong scale" => return "scaled " + "after softmax" ;;
        return "scaled after softmax" => return "wrong scale"
it calls a softmax over the queries a scale after the softmax: neither has rows that sum to 1, but
here the columns do
    return "wrong axis" => return "scaled after softmax"
rows and columns are exchanged: a row of the weights sums over the keys, the last axis, dim=-1
    weights.sum(dim=-1), ones, atol=1e-4):  # of the rows =>
        weights.sum(dim=-2), ones, atol=1e-4):  # not the rows ;;
        weights.sum(dim=-2), ones, atol=1e-4):  # of the columns =>
        weights.sum(dim=-1), ones, atol=1e-4):  # of the rows
rows that do not sum to 1 have two causes: it is the wrong axis only where the columns sum to 1
    return "scaled after softmax" => return "wrong axis"
it calls "wrong mask" what is wrong without a mask already: compare without one first
    right = scaled… => see = torch.ones(5, 5).tril().bool() ⏎
        right = scaled_dot_product_attention(q, k, v, see)[1] ⏎
        if not torch.allclose(attend(q, k, v, see)[1], right, atol=1e-5): return "wrong mask" ⏎
        right = scaled_dot_product_attention(q, k, v)[1]
it calls a softmax over the queries a wrong scale: its columns sum to 1, not its rows
    return "wrong axis" => return "wrong scale"
it misses a scale after the softmax: its rows sum to 1/√D or 1/√d, not to 1
    return "scaled after softmax" => return "right"
it finds every function right, whatever it does
    q, k, v =… => return "right"
it accuses a right function: floats are rounded, so a sum may be 0.9999999; compare with
torch.allclose(a, b, atol=1e-5), not ==
    torch.allclose(weights, right, atol=1e-5) => torch.equal(weights, right) ‖
        torch.equal(weights, (q @ k.mT / 8**0.5).softmax(dim=-1))
    right = => if not (attend(q, k, v)[1].sum(dim=-1) == 1).all(): return "wrong scale" ⏎ right = ‖
        if not (attend(q, k, v)[1].sum(dim=-1) == 1).all(): return "scaled after softmax" ⏎ right =
""",
    why="Random numbers, several heads and a width above 1 matter: one head hides √D, and width 1 "
    "hides other scales. The kinds of fault are told apart by sums along rows and columns.",
)
