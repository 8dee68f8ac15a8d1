"""Build cells and exercises of lesson 11."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from vit_steps.dropping import kept_count

from .compare import Verdict
from .draws import MANY, in_training, masking, tokens_learn, unchanged, with_gradients
from .engine import SLIPS
from .exercise import Exercise
from .trials import InputChangedError, Trial, call, drawn, numbered, untouched

# Three ways to the head --------------------------------------------------------------------------

NORM = nn.LayerNorm(4)
NORM.load_state_dict({"weight": drawn(4, seed=1), "bias": drawn(4, seed=2)})

pooled = Exercise(
    answer="""
def pooled(x, norm, way):  # tokens (B, N, D); way: "mean, norm", "norm, mean" or "all"
    if way == "mean, norm":
        return norm(x.mean(dim=1))  # (B, D)
    if way == "norm, mean":
        return norm(x).mean(dim=1)  # (B, D)
    return norm(x).flatten(1)  # (B, N·D)
""",
    trials=[
        call(f'2 pictures of 3 tokens, "{way}"', drawn(2, 3, 4, seed=3), NORM, way)
        for way in ("mean, norm", "norm, mean", "all")
    ],
    slips={
        "normalized_shape": "the norm takes rows of D numbers: a mean goes over the tokens, dim=1, "
        "and for all tokens the norm comes before they are put side by side",
    },
    why="With the norm before the mean each token has one vote; with the norm after it, a long "
    "token wins. Side by side the head has weights for each place.",
    wrong="""
the two orders are mixed up: in "mean, norm" the mean comes first
    norm(x.mean(dim=1)) => norm(x).mean(1) ;; norm(x).mean(dim=1) => norm(x.mean(1))
use the norm that is given: it has a scale and a shift of its own
    norm(x).flatten(1) => F.layer_norm(x, x.shape[-1:]).flatten(1)
    norm(x).flatten(1) => F.layer_norm(x, x.shape[-1:]).flatten(1) ;; norm(x.mean(dim=1)) =>
        F.layer_norm(x.mean(dim=1), x.shape[-1:]) ;; norm(x).mean(dim=1) =>
        F.layer_norm(x, x.shape[-1:]).mean(dim=1)
the norm is missing where the tokens stand side by side: each token is normed first
    norm(x).flatten(1) => x.flatten(1)
the norm is missing after the mean
    norm(x.mean(dim=1)) => x.mean(dim=1)
the norm is missing before the mean
    norm(x).mean(dim=1) => x.mean(dim=1)
the norm comes twice, before the mean and after it; each way has one
    norm(x.mean(dim=1)) => norm(norm(x).mean(dim=1))
    norm(x).mean(dim=1) => norm(norm(x).mean(dim=1))
the mean is taken over the numbers of a token; the tokens are axis 1
    norm(x).mean(dim=1) => norm(x).mean(dim=2)
    norm(x).mean(dim=1) => norm(x).mean(dim=-1)
the mean is taken over the pictures; the tokens are axis 1
    norm(x.mean(dim=1)) => norm(x.mean(dim=0))
    norm(x).mean(dim=1) => norm(x).mean(dim=0)
this is a sum over the tokens; take their mean
    norm(x).mean(dim=1) => norm(x).sum(dim=1)
an axis of length 1 is left of the mean; give (B, D)
    norm(x.mean(dim=1)) => norm(x.mean(dim=1, keepdim=True))
    norm(x).mean(dim=1) => norm(x).mean(dim=1, keepdim=True)
    norm(x.mean(dim=1)) => norm(x.mean(dim=1, keepdim=True)) ;;
        norm(x).mean(dim=1) => norm(x).mean(dim=1, keepdim=True)
side by side is token after token, all D numbers of the first one, then those of the second
    norm(x).flatten(1) => norm(x).mT.flatten(1)
the pictures are put side by side, too; each has a row of its own, (B, N·D)
    norm(x).flatten(1) => norm(x).flatten()
the tokens still stand below each other; give (B, N·D), all of a picture in one row
    norm(x).flatten(1) => norm(x)
this is the first token alone; the ways take all tokens
    norm(x.mean(dim=1)) => norm(x[:, 0])
    norm(x).mean(dim=1) => norm(x)[:, 0]
""",
)


# Three Linears in one ----------------------------------------------------------------------------


def fusing(inputs: int, heads: int, width: int, bias: bool, order: str) -> Trial:
    """Make a trial of fusing three Linears, from `inputs` numbers to heads of this width each."""
    weights, biases = numbered(3, heads * width, inputs), 1000 + numbered(3, heads * width)
    both = zip(weights, biases, strict=True)
    states = [{"weight": w, "bias": b} if bias else {"weight": w} for w, b in both]

    def run(answer: Callable) -> Any:
        linears = [nn.Linear(inputs, heads * width, bias) for _ in states]
        for linear, state in zip(linears, states, strict=True):
            linear.load_state_dict(state)
        result = answer(*linears, heads, order)
        for linear, state in zip(linears, states, strict=True):
            if not all(torch.equal(linear.state_dict()[name], state[name]) for name in state):
                raise InputChangedError
        return result

    biased = "with" if bias else "without"
    return Trial(f'Linears {biased} biases, {heads} heads of {width} rows, order "{order}"', run)


fuse_qkv = Exercise(
    answer="""
def fuse_qkv(queries, keys, values, num_heads, order):
    fused = {}
    for name in queries.state_dict():  # "weight", and "bias" where there is one
        parts = [linear.state_dict()[name] for linear in (queries, keys, values)]
        rows = torch.cat(parts)  # (3·h·d, …), in the order (qkv h d)
        turn = f"(qkv h d) ... -> ({order}) ..."
        fused[name] = rearrange(rows, turn, qkv=3, h=num_heads)
    return fused
""",
    trials=[
        fusing(5, 2, 2, True, "qkv h d"),
        fusing(7, 5, 3, True, "h d qkv"),
        fusing(10, 3, 4, False, "h d qkv"),
    ],
    slips={
        "NoneType|KeyError: 'bias'": "a Linear without biases has None for its bias: join the "
        "biases only where there are some",
        "Received .-dim tensor": "a weight has two axes, a bias one: `...` in the pattern stands "
        "for the columns, where there are some",
        "Identifiers only on one side": "the pattern must hold the order that is asked for: "
        'f"(qkv h d) ... -> ({order}) ..."',
        "Could not infer sizes": "rearrange needs two of the three sizes: qkv=3, h=num_heads",
        "shape '.*' is invalid for input|Shape mismatch": "the sizes do not fit: put the "
        "three below each other, torch.cat(parts), 3·h·d rows; each Linear has h · d rows, its "
        "out_features, and its in_features are another number",
    },
    wrong="""
the rows always stand in the order "qkv h d"; for "h d qkv" row 0 of the queries, of the keys and of
the values come first, then row 1 of each; a reshape alone moves nothing, the axes must change
places
    ({order}) => (qkv h d)
the rows always stand in the order "h d qkv"; for "qkv h d" all rows of the queries come first, then
all of the keys, then all of the values
    ({order}) => (h d qkv)
the rows of a head are counted from the input's width; they are out_features // num_heads, whatever
comes in
    rows = torch.cat(parts) => d = queries.in_features // num_heads ⏎
        rows = torch.cat([part[: num_heads * d] for part in parts])
torch.cat leaves the rows as (qkv h d), whatever is asked for, so that is the left side of the
pattern
    f"(qkv h d) => f"(h d qkv) ‖ f"(h qkv d)
the two orders are swapped: in "qkv h d" all rows of the queries come first
    fused = {} => fused = {} ⏎ order = "h d qkv" if order == "qkv h d" else "qkv h d"
this is "h qkv d", the rows of a head's queries, then those of its keys; in "h d qkv" query, key and
value take turns row by row
    ({order}) => ({order.replace('d qkv', 'qkv d')})
heads and their width are swapped: a Linear's rows are (h d), all d rows of head 0 first
    f"(qkv h d) => f"(qkv d h) ‖ f"(qkv {'h d' if order[0] == 'q' else 'd h'})
this is "d h qkv", the first number of every head in front; in "h d qkv" all of head 0 comes first
    ({order}) => ({order.replace('h d qkv', 'd h qkv')})
the number of heads and their width are mixed up: there are num_heads heads, and each has
out_features // num_heads rows
    f"(qkv h d) => f"(qkv d h) ;; h=num_heads => d=num_heads
this is the way back, from "h d qkv" to "qkv h d": here the rows stand as (qkv h d), and must become
(h d qkv)
    f"(qkv h d) ... -> ({order}) ..." => f"({order}) ... -> (qkv h d) ..."
the bias is missing: join the three biases too, under "bias"
    in queries.state_dict() => in ["weight"]
the rows of a bias need the same order as those of the weight
    turn = f => if name == "bias": order = "qkv h d" ⏎ turn = f
    turn = f => if name == "bias": order = "h d qkv" ⏎ turn = f
a bias that is not there must not be in the dictionary: leave "bias" out where the Linears have none
    return fused => return {"bias": None} | fused
    return fused => return {"bias": torch.zeros(len(fused["weight"]))} | fused
the weight is transposed: a Linear's weight is (rows, inputs), (3·h·d, D)
    h=num_heads) => h=num_heads).T
the three are stacked along the last axis, which in a weight are the columns: stack the rows of the
three, dim=1, and then flatten
    rearrange(rows, turn, qkv=3, h=num_heads) => rows if order[0] == "q" else
        torch.stack(parts, dim=-1).flatten(0, 1)
a Linear without biases has None for its bias: join the biases only where there are some
    in queries.state_dict(): => in ("weight", "bias"): ;;
        linear.state_dict()[name] => getattr(linear, name).detach()
the three weights stand side by side; they belong below each other, along dim=0
    return fused =>
        fused["weight"] = torch.cat([queries.weight, keys.weight, values.weight], dim=1)
        ⏎ return fused
queries come first, then keys, then values
    (queries, keys, values) => (keys, queries, values)
    (queries, keys, values) => (values, keys, queries)
    (queries, keys, values) => (queries, values, keys)
    (queries, keys, values) => (keys, values, queries)
    (queries, keys, values) => (values, queries, keys)
these are three times the queries
    (queries, keys, values) => (queries, queries, queries)
the three are still apart: join roles, heads and rows to one axis, (3·h·d, D)
    rearrange(rows, turn, qkv=3, h=num_heads) => torch.stack(parts)
    ({order}) => {order}
give a dictionary, {"weight": …, "bias": …}, as load_state_dict takes it, and without "bias" where
the Linears have none
    return fused => return fused["weight"], fused.get("bias")
    return fused => return tuple(fused.values())
    return fused => return list(fused.values())
this is the weight alone; give a dictionary, {"weight": …, "bias": …}, as load_state_dict takes it
    return fused => return fused["weight"]
the names are those of the fused Linear itself, "weight" and "bias"
    fused[name] => fused[f"qkv.{name}"]
""",
    does="Three Linears become one, in the order that `split_qkv` expects.",
)


# Stochastic depth --------------------------------------------------------------------------------

DropPath = Exercise(
    answer="""
class DropPath(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, branch):  # (B, …)
        if not self.training:
            return branch
        keep = 1 - self.rate
        shape = (branch.shape[0],) + (1,) * (branch.ndim - 1)  # (B, 1, …)
        stays = torch.rand(shape) < keep
        return branch * stays / keep
""",
    trials=[
        in_training("in training, rate 0.3, 50 samples (B, N, D), 60 times", (50, 3, 4), 0.3),
        unchanged("in evaluation mode, rate 0.3", 0.3, training=False),
        in_training("in training, rate 0.2, 60 samples (B, D), 60 times", (60, 7), 0.2),
        unchanged("in training, rate 0", 0.0, training=True),
        Trial("a branch whose gradient is asked for", with_gradients),
    ],
    slips={
        "has no attribute '(_modules|_parameters|training)'": SLIPS[
            r"before Module.__init__\(\) call"
        ],
        "must match the size of tensor": "the numbers that are drawn do not meet the branch: one "
        "a sample, they need the shape (B, 1, …), with as many axes as the branch has",
        "values to unpack": "a branch may have any number of axes, (B, D) too: take the batch as "
        "branch.shape[0], and branch.ndim - 1 ones for the other axes",
    },
    wrong="""
single numbers are left out, as dropout does; leave whole samples out: draw one number a sample, of
shape (B, 1, …)
    torch.rand(shape) => torch.rand_like(branch)
parts of a sample are left out, such as single tokens; leave whole samples out: draw one number a
sample, of shape (B, 1, …)
    torch.rand(shape) => torch.rand(*branch.shape[:-1], 1)
the whole batch is left out, or none of it: draw a number for each sample, of shape (B, 1, …)
    torch.rand(shape) => torch.rand(1)
nothing is left out: a sample that does not stay is all zeros
    stays = torch.rand(shape) < keep => stays = 1
nothing is left out, and each sample is multiplied by a number of its own: what `keep` plus such a
number is must be floored, or ask whether it is below `keep`
    torch.rand(shape) < keep => keep + torch.rand(shape)
the samples that stay are not scaled: divide them by 1 - rate, so that the mean over many draws
stays what it was
    stays / keep => stays
the samples that stay are multiplied by 1 - rate; divide by it, so that the mean over many draws
stays what it was
    stays / keep => stays * keep
the samples that stay are divided by rate; divide by 1 - rate, the share that stays
    stays / keep => stays / self.rate
the samples that stay are scaled twice; divide by 1 - rate once
    stays / keep => stays / keep**2
too many are left out: `rate` is the chance of being left out, and a sample stays with the chance
1 - rate
    < keep => < self.rate
`rate` is taken for the chance of staying, in the draw and in the scale; it is the chance of being
left out
    keep = 1 - self.rate => keep = self.rate
it leaves out in evaluation mode too: give back the branch as it is where self.training is False
    if not self.training => if self.rate == 0
it is the wrong way round: leave out in training, and give back the branch in evaluation mode
    if not self.training => if self.training
in evaluation mode the branch is scaled; scale in training alone, by 1 / (1 - rate), and give the
branch back as it is in evaluation mode
    if not self.training: => if not self.training: ⏎     branch = branch * (1 - self.rate)
    if not self.training: => if not self.training: ⏎     branch = branch / (1 - self.rate)
the same samples are left out in every call: draw anew each time, in forward, and leave the seed to
whoever calls
    torch.rand(shape) => torch.rand(shape, generator=torch.Generator().manual_seed(0))
the number of samples left out is the same in every call; draw for each sample by itself, so that
the number varies
    torch.rand(shape) < keep =>
        torch.randperm(len(branch)).view(shape) >= round(self.rate * len(branch))
this works for (B, N, D) alone: make as many axes of one as the branch has beside the batch,
branch.ndim - 1
    (1,) * (branch.ndim - 1) => (1, 1)
fewer samples come out than went in: one that is left out is all zeros, so that the batch keeps its
size
    return branch * stays => return branch[stays.flatten()]
at rate 0 something is divided by 0; the branch comes out as it went in
    < keep => < keep / self.rate * self.rate
it writes into the branch, which another part of the model may still need: make a new tensor,
branch * …
    return branch * => branch *= stays ⏎ return branch *
no gradient passes: keep to tensors, without detach, .data or no_grad
    return branch * => return branch.detach() *
""",
    does="In training whole branches are left out at random, and the rest is scaled up for it.",
)


# Masking -----------------------------------------------------------------------------------------

SAME_AXES = "the same number of dimensions"


random_masking = Exercise(
    answer="""
def random_masking(tokens, ratio):
    B, N, D = tokens.shape
    K = kept_count(N, ratio)
    noise = torch.rand(B, N, device=tokens.device)
    shuffled = noise.argsort(dim=1)  # (B, N)
    order = shuffled.argsort(dim=1)  # (B, N)
    kept = tokens.take_along_dim(shuffled[:, :K, None], dim=1)  # (B, K, D)
    mask = order >= K  # (B, N)
    return kept, order, mask
""",
    uses={"kept_count": kept_count},
    trials=[
        masking("3 samples of 6 numbered tokens, ratio 0.5: 3 stay", (3, 6, 4), 0.5),
        masking("2 samples of 49 tokens, ratio 0.1: 44 stay", (2, 49, 5), 0.1),
        masking("4 samples of 10 tokens, ratio 0.9: 1 stays", (4, 10, 3), 0.9),
        MANY,
        Trial("tokens whose gradient is asked for", tokens_learn),
    ],
    slips={
        "is invalid for input of size|must be the same size|expects each tensor to be equal": (
            "what is kept does not fill (B, K, D): either the samples do not all keep the same "
            "number of tokens (sort the noise and keep the first kept_count(N, ratio), instead of "
            "comparing it with the ratio), or another shape is asked for"
        ),
        SAME_AXES: "an index needs as many axes as what it picks from, three: shuffled[:, :K, "
        "None]; gather also wants it expanded to (B, K, D)",
    },
    wrong="""
the order says which token stands at each place; it must say where each token went: either the
second argsort is missing, or the tokens are taken by `order` where `shuffled` is meant
    order = shuffled.argsort(dim=1) => order = shuffled
    return kept, order => return kept, shuffled
    dim(shuffled => dim(order
all samples of a batch keep the same tokens; each draws its own: draw noise of shape (B, N), a row
for each sample, and sort it along dim=1
    torch.rand(B, N, device=tokens.device) => torch.rand(N).expand(B, N)
all samples keep the tokens that the first one's row says; each has its own: tokens.take_along_dim(
shuffled[:, :K, None], dim=1)
    tokens.take_along_dim(shuffled[:, :K, None], dim=1) => tokens[:, shuffled[0, :K]]
the number of tokens kept is not K = kept_count(N, ratio), the share 1 - ratio of N, rounded
    kept_count(N, ratio) => int(N * (1 - ratio))
    kept_count(N, ratio) => N - int(N * ratio)
    kept_count(N, ratio) => round(N * ratio)
    kept_count(N, ratio) => kept_count(D, ratio)
these are the tokens left out; the first K of the shuffled row are kept
    :K, None => K:, None
the order does not lead to the tokens kept: where it says k for a token, and k < K, that token must
be kept[:, k]; take the first K of `shuffled`, and the order from the same `shuffled`
    :K, None => N - K :, None
    dim(shuffled => dim(shuffled.flip(1)
    shuffled.argsort(dim=1) => shuffled.flip(1)
the first K tokens are kept as they came; take those that `shuffled` puts first, shuffled[:, :K]
    tokens.take_along_dim(shuffled[:, :K, None], dim=1) => tokens[:, :K]
the tokens kept stand in the order in which they came, and `order` says that they are shuffled: take
them by `shuffled[:, :K]`
    tokens.take_along_dim(shuffled[:, :K, None], dim=1) => tokens[order < K].reshape(B, K, D)
the mask is upside down: it is True where a token is left out, order >= K
    order >= K => order < K
the mask leaves out one too few: places count from 0, so the tokens kept have the places 0 … K - 1,
and order >= K marks the others
    order >= K => order > K
the mask is that of the shuffled row, K times False, then True; it must speak of the tokens as they
came: order >= K
    order >= K => (torch.arange(N) >= K).expand(B, N)
the mask is not True exactly where a token is left out: where a token went stands in `order`, and
what went to place K or later is left out: order >= K
    order >= K => shuffled >= K
the mask holds numbers; it must hold True and False: order >= K
    order >= K => (order >= K).float()
    order >= K => (order >= K).long()
all N tokens are still there; those left out must be gone, so that the blocks have less to do:
(B, K, D)
    tokens.take_along_dim(shuffled[:, :K, None], dim=1) => tokens * (order < K)[..., None]
the same tokens are kept in every sample and in every call: draw noise, for each sample its own, and
sort it to find which stay
    noise.argsort(dim=1) => torch.arange(N).expand(B, N)
the same tokens are kept in every call: draw anew each time, and leave the seed to whoever calls
    torch.rand(B, N, device=tokens.device) =>
        torch.rand(B, N, generator=torch.Generator().manual_seed(0))
some tokens are kept more often than others; each has the same chance, the first one too
    torch.rand(B, N, device=tokens.device) => torch.rand(B, N) ⏎ noise[:, 0] = 0
only a few choices of K tokens ever come; any K of the N may be kept: sort noise of shape (B, N)
    noise.argsort(dim=1) => (torch.arange(N) + torch.randint(N, (B, 1))) % N
one number is kept of each token, (B, K, 1): gather needs an index as wide as what it gathers;
expand the index to (B, K, D), or use take_along_dim
    take_along_dim(shuffled[:, :K, None], dim=1) => gather(1, shuffled[:, :K, None])
a row of the order does not hold each of 0 … N - 1 once: each row is sorted by itself, dim=1, and
not along the batch
    shuffled.argsort(dim=1) => shuffled.argsort(dim=0)
    noise.argsort(dim=1) => noise.argsort(dim=0) ;; shuffled.argsort(dim=1) =>
        shuffled.argsort(dim=0)
the shape of the order is not (B, N): it must say of all N tokens where each went, or `unmask`
cannot find the gaps
    return kept, order => return kept, order[:, :K]
    return kept, order => return kept, shuffled[:, :K]
all samples are joined in one row: a mask as an index does that; take the tokens by their places,
tokens.take_along_dim(…, dim=1), to keep (B, K, D)
    tokens.take_along_dim(shuffled[:, :K, None], dim=1) => tokens[order < K]
the results are in another order: (kept, order, mask)
    return kept, order, mask => return kept, mask, order
whole numbers are kept: these are places, not tokens; take the tokens that stand there
    tokens.take_along_dim(shuffled[:, :K, None], dim=1) => shuffled[:, :K]
    tokens.take_along_dim(shuffled[:, :K, None], dim=1) => shuffled[:, :K, None]
a token is kept more than once: places that are drawn one by one repeat; sort noise and take the
first K
    shuffled[:, :K, None] => torch.randint(N, (B, K, 1))
tokens[:, places] takes all samples' places for each sample: take_along_dim or gather give each row
its own
    tokens.take_along_dim(shuffled[:, :K, None], dim=1) => tokens[:, shuffled[:, :K]]
what is kept are not the sample's own tokens
    tokens.take => tokens.roll(1, 0).take
the order holds floats; it must hold whole numbers, the place to which each token went: the noise
itself says none, argsort it twice
    return kept, order => return kept, noise
give three tensors: the tokens kept, the order and the mask
    return kept, order, mask => return kept, mask
    return kept, order, mask => return kept
it writes into the tokens that it was given: take the ones kept into a new tensor, and leave the
others as they are
    mask = order >= K => mask = order >= K ⏎ tokens[mask] = 0
no gradient passes: keep to tensors, without detach, .data or no_grad
    tokens.take => tokens.detach().take
""",
    does="A share of the tokens is left out, and where they stood is remembered.",
)


# Back to their places ----------------------------------------------------------------------------


def masked(batch: int, length: int, count: int, width: int) -> tuple[Tensor, ...]:
    """Draw what `unmask` is given: tokens kept, their order and the mask token."""
    order = drawn(batch, length, seed=length).argsort(dim=1)
    return drawn(batch, count, width, seed=1), order, drawn(1, 1, width, seed=2)


def all_learn(answer: Callable) -> Any:
    """Say whether gradients reach the tokens kept and the mask token."""
    kept, order, mask_token = masked(2, 7, 3, 4)
    floats = {"kept": kept.requires_grad_(), "mask_token": mask_token.requires_grad_()}
    result = answer(kept, order, mask_token)
    if not isinstance(result, Tensor):
        return result
    if result.requires_grad:
        (result * drawn(*result.shape, seed=4)).sum().backward()
    cut = [name for name, tensor in floats.items() if tensor.grad is None]
    problem = f"no gradient reaches {', '.join(cut)}: leave out detach and .data"
    return Verdict(problem if cut else "")


unmask = Exercise(
    answer="""
def unmask(kept, order, mask_token):
    B, K, D = kept.shape
    N = order.shape[1]
    gaps = mask_token.expand(B, N - K, D)
    row = torch.cat([kept, gaps], dim=1)  # (B, N, D), still shuffled
    return row.take_along_dim(order[:, :, None], dim=1)
""",
    trials=[
        call("one sample of 4 tokens, 2 of them kept", *masked(1, 4, 2, 3)),
        call("3 samples of 9 tokens, 4 of them kept", *masked(3, 9, 4, 5)),
        Trial("tokens and mask token whose gradient is asked for", all_learn),
    ],
    slips={
        "index.* out of (bounds|range)": "the number of gaps is wrong: N - K, so that there are N "
        "tokens again; order has places up to N - 1",
        "Expected size .* but got size": "torch.cat joins tensors that are alike in all axes but "
        "one: the mask token must be expanded to (B, N - K, D) first",
        SAME_AXES: "an index needs as many axes as what it picks from, three: order[..., None]; "
        "gather also wants it expanded to (B, N, D)",
        "expanded size of the tensor|number of sizes provided": "expand stretches axes of 1 alone, "
        "to what you name: the mask token (1, 1, D) to (B, N - K, D), an index (B, N, 1) to (B, N, "
        "D)",
    },
    does="What was left out gets its place back, as mask tokens.",
    why="The row holds the kept tokens first and then the gaps, as `order` counts them. A token "
    "that went to place p is fetched from place p.",
    wrong="""
the tokens kept are filled in as they come, but they come shuffled: fetch each from its place,
order[..., None]
    row = torch.cat([kept, gaps], dim=1) => row = mask_token.expand(B, N, D).clone() ⏎
        row[order < K] = kept.reshape(-1, D) ;;
        row.take_along_dim(order[:, :, None], dim=1) => row
the tokens are still shuffled: row.take_along_dim(order[..., None], dim=1) puts each where it stood
    row.take_along_dim(order[:, :, None], dim=1) => row
the tokens go the wrong way: the token of place p is fetched from where it went, order[..., None]
    order[:, :, None] => order.argsort(dim=1)[:, :, None]
the mask token is missing in the gaps: a gap is the mask token
    mask_token.expand => torch.zeros_like(mask_token).expand
the mask token is added to every token; it stands in the gaps alone
    return row => return mask_token + row
    return row => return mask_token + row ;; mask_token.exp => torch.zeros_like(mask_token).exp
gather needs an index as wide as what it gathers: this takes the first number of each token alone;
use take_along_dim, or expand the index to (B, N, D)
    row.take_along_dim(order[:, :, None], dim=1) => row.gather(1, order[:, :, None])
the number of gaps is wrong: N - K, so that there are N tokens again
    N - K, D => K, D
    N - K, D => 1, D
the gaps stand in front of the tokens kept; `order` counts the kept ones first: torch.cat([kept,
gaps], dim=1)
    [kept, gaps] => [gaps, kept]
    [kept, gaps] => [gaps, kept] ;; N - K, D => N, D
row[:, order] takes the places of all samples for each sample: take_along_dim or gather give each
its own
    row.take_along_dim(order[:, :, None], dim=1) => row[:, order]
    row.take_along_dim(order[:, :, None], dim=1) => row[order]
all samples are put back in the order of the first: each row of `order` is a sample's own
    N = order.shape[1] => N = order.shape[1] ⏎ order = order[:1].expand_as(order)
this works for one sample only: torch.cat does not broadcast, so expand the mask token to
(B, N - K, D)
    expand(B, N - K, D) => repeat(1, N - K, 1)
it writes into what it was given: the mask token is a parameter; make a new tensor
    return row => mask_token += 1 ⏎ return row
these are the gaps alone; the tokens kept stand between them
    [kept, gaps] => [0 * kept, gaps]
torch.cat joined along the batch, its default; the axis of the tokens is dim=1
    [kept, gaps], dim=1 => [kept, gaps]
torch.cat joined along the width; the axis of the tokens is dim=1
    [kept, gaps], dim=1 => [kept, gaps], dim=2
the mask token gets no gradient, so it would never learn: leave out detach and .data
    mask_token.expand => mask_token.detach().expand
""",
)


# Which dropping was it? --------------------------------------------------------------------------

KINDS = ("sample", "token", "number")


def stays_of(kind: str, shape: tuple[int, int, int], rate: float, seed: int) -> Tensor:
    """Draw for each sample, token or number whether it stays; True where it does, (B, N, D)."""
    count = KINDS.index(kind) + 1
    stays = torch.rand(shape[:count], generator=torch.Generator().manual_seed(seed)) >= rate
    return stays.reshape(*stays.shape, *[1] * (3 - count)).expand(shape).clone()


def lucky(stays: Tensor, kind: str, luck: str) -> None:
    """Put in by hand what a draw may bring.

    It is "first", whose first sample or token is kept whole; "pair", whose first two tokens of each
    sample, or numbers of each token, look alike; in both the last sample or token is all gone; or
    "whole", whose zeros are as many as those of whole samples.
    """
    if luck == "first":
        stays[(0,) * KINDS.index(kind)] = True
        stays[(-1,) * KINDS.index(kind)] = False
    elif luck == "pair":
        pair = stays.select(KINDS.index(kind), 1)
        pair.copy_(stays.select(KINDS.index(kind), 0))
        stays[(-1,) * KINDS.index(kind)] = False
    elif luck == "whole":
        missing = -int((~stays).sum()) % stays[0].numel()
        stays.view(-1)[stays.flatten().nonzero()[:missing]] = False


def kind_of_drop(kind: str, shape: tuple[int, int, int], rate: float, luck: str = "") -> Trial:
    """Make a trial of what the answer says of ones that were dropped in this way."""
    stays = stays_of(kind, shape, rate, seed=sum(shape))
    lucky(stays, kind, luck)
    outputs = stays / (1 - rate)

    def say(name: Any, _: Any) -> Any:
        if name is None or name is ...:
            return name
        if not isinstance(name, str) or name not in KINDS:
            return Verdict(f'it gives {name!r}; give one of "sample", "token", "number"')
        return Verdict("" if name == kind else f'it says "{name}", and a {kind} was drawn')

    share = 1 - stays.float().mean().item()
    return Trial(
        f"{shape} outputs, {share:.0%} of them 0, drawn for each {kind}", untouched, [outputs], say
    )


drop_kind = Exercise(
    answer="""
def drop_kind(outputs):  # (B, N, D)
    gone = outputs == 0
    if (gone == gone[:, :1, :1]).all():  # each sample is all gone or all there
        return "sample"
    if (gone == gone[:, :, :1]).all():  # so is each token
        return "token"
    return "number"
""",
    slips={
        "is invalid for input|must match the size": "B, N and D differ from case to case: take "
        "them from outputs.shape",
    },
    trials=[
        kind_of_drop("sample", (16, 8, 11), 0.1),
        kind_of_drop("token", (20, 8, 9), 0.4, "first"),
        kind_of_drop("token", (18, 8, 10), 0.4, "pair"),
        kind_of_drop("number", (17, 9, 8), 0.4, "pair"),
        kind_of_drop("number", (30, 9, 8), 0.85),
        kind_of_drop("number", (8, 3, 4), 0.5, "whole"),
    ],
    why="Ask from large to small, because a dropping by samples leaves whole tokens out as well. "
    "And ask of all samples and tokens: one alone may be empty or whole by chance.",
    wrong="""
a dropping by samples drops whole tokens too, so ask for samples first, and ask of each whether it
is alike inside, (zero == zero[:, :1, :1]).all(); samples compared with each other tell nothing
    (gone == gone[:, :1, :1]).all() =>
        (gone == gone[:, :1, :1]).all() and not (gone == gone[:, :, 0, None]).all()
    (gone == gone[:, :1, :1]).all() => (gone == gone[:1]).all()
it looks at the first sample alone, which may be kept whole by chance: look at all
    gone = outputs == 0 => gone = outputs[:1] == 0
it looks at one sample, and in it at one token, which may be whole or gone by chance: look at all
    (gone == gone[:, :1, :1]).all() => (gone[0] == gone[0, 0, 0]).all() ;;
        (gone == gone[:, :, :1]).all() => (gone[0, 0] == gone[0, 0, 0]).all()
it looks at the first token alone, which may be kept whole by chance: look at all
    gone[:, :, :1]).all() => gone[:, :, :1])[0, 0].all()
a sample or a token may be empty by chance, where tokens or numbers were drawn: ask whether all are
alike, (zero == zero[:, :1, :1]).all() for the samples
    (gone == gone[:, :1, :1]).all() => gone.flatten(1).all(dim=1).any() ;;
        (gone == gone[:, :, :1]).all() => gone.all(dim=2).any()
    (gone == gone[:, :1, :1]).all() => gone.flatten(1).all(dim=1).any()
    (gone == gone[:, :, :1]).all() => gone.all(dim=2).any()
a token's numbers lie along the last axis, D; this asks whether the tokens of a sample are alike in
each column
    gone[:, :, :1] => gone[:, :1]
it counts on a rate of 0.5, where what stays is 2; the rate may be another: ask for zeros
    outputs == 0 => outputs != 2
it looks at two tokens alone, which may agree by chance: look at all
    gone[:, :1, :1]).all() => gone[:, :1, :1])[:, :2].all()
it looks at two numbers of a token alone, which may agree by chance: look at all
    gone[:, :, :1]).all() => gone[:, :, :1])[..., :2].all()
how many zeros there are does not tell: numbers drawn one by one may add up to whole samples
    (gone == gone[:, :1, :1]).all() => gone.sum() % gone[0].numel() == 0 ;;
        (gone == gone[:, :, :1]).all() => gone.sum() % gone.shape[2] == 0
the share of zeros does not tell: it is whatever the rate is
    (gone == gone[:, :1, :1]).all() => gone.float().mean() < 0.3 ;;
        (gone == gone[:, :, :1]).all() => gone.float().mean() < 0.6
it says always the same
    (gone == gone[:, :1, :1]).all() => True
    (gone == gone[:, :1, :1]).all() => False ;; (gone == gone[:, :, :1]).all() => True
    (gone == gone[:, :1, :1]).all() => False ;; (gone == gone[:, :, :1]).all() => False
samples and numbers are swapped
    gone = outputs == 0 => gone = outputs == 0 ⏎ one, all_three = "number", "sample" ;;
        return "sample" => return one ;; return "number" => return all_three
the words are right, but written otherwise: "sample", "token" or "number"
    "sample" => "Sample" ;; "token" => "Token" ;; "number" => "Number"
    "number" => "numbers"
    "sample" => "samples" ;; "token" => "tokens" ;; "number" => "numbers"
give a word, "sample", "token" or "number", not its number
    "sample" => 0 ;; "token" => 1 ;; "number" => 2
""",
)
