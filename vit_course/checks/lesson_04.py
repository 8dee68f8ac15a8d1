"""Build cells and exercises of lesson 04."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .compare import Verdict
from .engine import Check
from .exercise import Exercise, edited
from .trials import Trial, call, learns, module, then

# Build cells -------------------------------------------------------------------------------------


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
        call("6 tokens and a mask (6, 6)", *drawn(3, 2, 3, 6, 5, seed=3), sights(6, 6)),
        call("scores above 100 and a mask (B, 1, 1, N)", *LARGE, sights(2, 1, 1, 5)),
        learns("4 tokens whose gradient is asked for", *drawn(3, 1, 2, 4, 3), sights(4, 4)),
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
    d**0.5 => (d * 0.5)
    d**0.5 => (d // 2)
the scores are divided by 2 · d: `/ d ** 1/2` and `/ d * 0.5` divide by d, then by 2; the root is
`d ** 0.5`
    d**0.5 => (2 * d)
the root is made a whole number; leave it as it is, d ** 0.5
    d**0.5 => int(d**0.5)
    d**0.5 => round(d**0.5)
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
e to the scores is not yet a share: divide it by the sum of its row, as softmax does
    scores.softmax(dim=-1) => scores.exp()
e to a score above 88 is inf, and inf / inf is NaN: first subtract from each row its largest score,
as softmax does
    scores.softmax(dim=-1) => scores.exp() / scores.exp().sum(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, float("-inf")) => pass ;; scores.softmax(dim=-1) =>
        F.normalize(scores.exp() * (1.0 if mask is None else mask), p=1, dim=-1)
the softmax is missing: the scores themselves mix the values
    scores.softmax(dim=-1) => scores
    float("-inf") => 0.0 ;; scores.softmax(dim=-1) => scores
each query sees only itself and the keys before it, as under the causal mask of a model that writes
text; here it sees all keys but those that the mask hides
    if mask => scores = scores + torch.full_like(scores, -math.inf).triu(1) ⏎ if mask
the scores stand the wrong way: a row is a query and a column a key, so q comes first: q @ k.mT
    q @ k.mT => k @ q.mT
a matrix product does not fit; for the scores swap the last two axes of k, k.mT, and let the weights
(B, h, N, N) mix v as it is
    k.mT => k
    weights @ v => weights @ v.mT
swap the last two axes of k and no others, k.mT (k.T turns all four)
    k.mT => k.T
    k.mT => k.transpose(1, 2)
    k.mT => k.transpose(1, 3)
the scores compare queries with values; a query meets the keys: q @ k.mT
    q @ k.mT => q @ v.mT
q * k multiplies number by number; each query meets every key in a matrix product, q @ k.mT
    q @ k.mT => q * k
    q @ k.mT => q * k ;; weights @ v => weights * v
    q @ k.mT => q * k ;; weights @ v => weights * v ;;
        scores = scores.masked_fill(~mask, float("-inf")) => pass
the mask comes after the softmax, so the rest of a row no longer sums to 1; fill the scores with
float('-inf') before it
    scores = scores.masked_fill => scores.masked_fill ;;
        mixed = => weights = weights if mask is None else weights * mask ⏎ mixed =
the mask has no effect; masked_fill without `_` gives a new tensor, so its result must be kept:
scores = scores.masked_fill(…)
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
indexing does not broadcast a mask as + does; `masked_fill` does
    scores = scores.masked_fill(~mask, float("-inf")) => scores[~mask] = float("-inf")
    scores = scores.masked_fill(~mask, float("-inf")) => scores[:, :, ~mask] = float("-inf")
the mask is the wrong way round: True means that a query may look, so fill the scores where it is
False, ~mask
    ~mask => mask
a hidden score becomes 0, and a key with score 0 still gets weight; fill with float('-inf'), since e
to that is 0
    float("-inf") => 0.0
a hidden score becomes a number that other scores may come close to, so its key may still get
weight; fill with float('-inf'), since e to that is 0
    float("-inf") => -1.0
    float("-inf") => -100.0
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
)
equation = scaled_dot_product_attention.reference


def seeded(answer: Callable) -> Any:
    """Whether a module starts with the course's weights for a seed."""
    torch.manual_seed(0)
    made = answer(12, 3)
    torch.manual_seed(0)
    wanted = nn.ModuleDict({"qkv": nn.Linear(12, 36), "proj": nn.Linear(12, 12)}).state_dict()
    if not isinstance(made, nn.Module):
        return made
    begins = made.state_dict()
    same = all(name in begins and torch.equal(begins[name], wanted[name]) for name in wanted)
    return Verdict(f"it starts with {'the' if same else 'other weights than the'} course's")


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
        Trial("made after torch.manual_seed(0)", seeded),
    ],
    wrong="""
`qkv` must go from D to 3 · D: it makes queries, keys and values, each D wide
    3 * embed_dim => embed_dim
`proj` must go from D to D: the merged heads are D wide together
    self.proj = nn.Linear(embed_dim => self.proj = nn.Linear(3 * embed_dim
`qkv` has no bias; leave nn.Linear its own
    3 * embed_dim) => 3 * embed_dim, bias=False)
`proj` is made and never used: what the heads have read, merged, goes through it last
    self.proj( => (
the heads are merged by reshape or view, which mixes up the tokens; use merge_heads
    merge_heads(mixed) => mixed.reshape(x.shape)
a Linear gets another width than it takes; are the heads merged before `proj`?
    merge_heads(mixed) => mixed
it does not know its number of heads; in __init__, keep self.num_heads
    self.num_heads = num_heads =>
it cannot be called without a mask; give it a default: mask=None
    mask=None => mask
the mask does not arrive where the weights are not asked for: hand it on in both cases
    v, mask) => v, mask if return_attention else None)
the mask does not arrive: hand it on to scaled_dot_product_attention
    v, mask) => v)
without return_attention=True the tokens do not attend: mix the values always, and choose only what
to return
    y = self => mixed = mixed if return_attention else v ⏎ y = self
    y = self => mixed = mixed if return_attention else torch.zeros_like(v) ⏎ y = self
    y = self => mixed = mixed if return_attention else 0 * v + v.mean(dim=2, keepdim=True) ⏎
        y = self
    merge_heads(mixed) => merge_heads(mixed) if return_attention else x
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
    split_qkv(self.qkv(x), self.num_heads) => self.qkv(x).chunk(3, dim=-1) ;;
        merge_heads(mixed) => mixed
the width is read in the order (h qkv d); split_qkv reads it as (qkv h d)
    split_qkv( => rearrange( ;;
        self.num_heads) => "b n (h qkv d) -> qkv b h n d", qkv=3, h=self.num_heads)
the width is read in the order (h d qkv); split_qkv reads it as (qkv h d)
    split_qkv( => rearrange( ;;
        self.num_heads) => "b n (h d qkv) -> qkv b h n d", qkv=3, h=self.num_heads)
split_qkv gives q, k, v; take them, and hand them on, in this order
    q, k, v = => k, q, v =
    q, k, v = => v, k, q =
    q, k, v = => q, v, k =
    q, k, v = => v, q, k =
    q, k, v = => k, v, q =
it cuts into a fixed number of heads, whatever it was made with; take self.num_heads
    self.num_heads) => 12)
    self.num_heads) => 3)
    self.num_heads) => 2)
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
)


# effective_keys ----------------------------------------------------------------------------------


def entropy(weights: Tensor, dim: int = -1) -> Tensor:
    return torch.special.entr(weights).sum(dim=dim)


LN_2 = torch.tensor(2.0).log()
SHARES = drawn(2, 3, 5, 5).softmax(dim=-1)
HIDDEN = (2 * drawn(2, 4, 6, 6)).masked_fill(~sights(6, 6), -torch.inf).softmax(dim=-1)

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
        "a patch that is exactly radius rows or columns away is not in sight; it must be: <= "
        "radius": sight(lambda down, across, radius: square(down, across, radius - 1)),
        "it sees half as far: a patch may be up to radius rows and columns away on each "
        "side": sight(lambda down, across, radius: square(down, across, radius // 2)),
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


def faulty(edit: str) -> Callable:
    """The equation with this change."""
    right = scaled_dot_product_attention
    return right.made(edited(right.answer, edit))


RIGHT, LATE, SCALE = "right", "scaled after softmax", "wrong scale"
AXIS, MASK = "wrong axis", "wrong mask"

ROUNDED = "another right function, which rounds otherwise"
BY_ROOT, BY_MODEL = "softmax(qk) / √d", "softmax(qk / √D)"
BARE, BY_WIDTH = "softmax(qk), no scale", "softmax(qk / d)"
IGNORED, TURNED = "a mask that is ignored", "a mask the wrong way round"
ON_WEIGHTS, ZEROED = "a mask on the weights, after the softmax", "a mask that makes scores 0"

SUSPECTS = (
    ("a right function", equation, RIGHT),
    (
        ROUNDED,
        faulty("scores.softmax(dim=-1) => (scores - scores.logsumexp(-1, True)).exp()"),
        RIGHT,
    ),
    (
        "softmax(qk) / √D",
        faulty("d**0.5 => 1 ;; weights = => weights = (q.shape[1] * d) ** -0.5 *"),
        LATE,
    ),
    (BY_ROOT, faulty("d**0.5 => 1 ;; weights = => weights = d**-0.5 *"), LATE),
    (BY_MODEL, faulty("d**0.5 => (q.shape[1] * d) ** 0.5"), SCALE),
    (BARE, faulty("d**0.5 => 1"), SCALE),
    (BY_WIDTH, faulty("d**0.5 => d"), SCALE),
    ("softmax over the queries", faulty("dim=-1 => dim=-2"), AXIS),
    (IGNORED, faulty("scores = scores.masked_fill => scores.masked_fill"), MASK),
    (TURNED, faulty("~mask => mask"), MASK),
    (
        ON_WEIGHTS,
        faulty(
            "scores = scores.masked_fill => scores.masked_fill ;; "
            "mixed = => weights = weights if mask is None else weights * mask ⏎ mixed ="
        ),
        MASK,
    ),
    (ZEROED, faulty('float("-inf") => 0.0'), MASK),
)


def diagnose(attend: Callable) -> str:
    """A right find_fault."""
    q, k, v = drawn(3, 2, 4, 5, 8)
    mask = sights(5, 5)
    weights = attend(q, k, v)[1]
    if torch.allclose(weights, equation(q, k, v)[1], atol=1e-5):
        hidden = attend(q, k, v, mask)[1], equation(q, k, v, mask)[1]
        return RIGHT if torch.allclose(*hidden, atol=1e-5) else MASK
    ones = torch.ones(2, 4, 5)
    if torch.allclose(weights.sum(dim=-1), ones, atol=1e-4):
        return SCALE
    return AXIS if torch.allclose(weights.sum(dim=-2), ones, atol=1e-4) else LATE


def suspect(what: str, attend: Callable, kind: str) -> Trial:
    """One function to judge, with a word for an answer that is no known one."""

    def run(answer: Callable) -> Any:
        said = answer(attend)
        if said is None or said is ...:
            return said
        if said not in (RIGHT, LATE, SCALE, AXIS, MASK):
            return Verdict(f"it says {said!r}; say one of the five strings, such as {RIGHT!r}")
        return Verdict("as it should" if said == kind else f"it says {said!r}, and it is {kind!r}")

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
    trials=[suspect(*one) for one in SUSPECTS],
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
        "it calls right what divides by d or by nothing: compare with √d, on heads wider than 1, "
        "since at width 1 all three are 1": (
            verdict({BARE: RIGHT, BY_WIDTH: RIGHT}),
            verdict({BY_ROOT: RIGHT, BARE: RIGHT, BY_WIDTH: RIGHT}),
        ),
        "it calls every scale right, before and after the softmax: try several heads, wider than "
        "1, since with one head of width 1 √D, √d and d are all "
        "1": verdict({LATE: RIGHT, SCALE: RIGHT}),
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
