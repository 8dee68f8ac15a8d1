"""Build cells and exercises of lesson 11."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from einops import rearrange
from torch import Tensor, nn

from vit_steps import variants as package

from .compare import Verdict, kind_of
from .draws import (
    FINE,
    THREE,
    by_chance,
    in_evaluation,
    in_training,
    masking,
    tokens_learn,
    with_gradients,
)
from .engine import SLIPS, Check
from .lesson_01 import numbered
from .trials import InputChangedError, Trial, call, then, untouched

# Three Linears in one ----------------------------------------------------------------------------


def fusing(what: str, inputs: int, heads: int, width: int, bias: bool, order: str) -> Trial:
    """A trial of fusing three Linears, from `inputs` numbers to heads of this width each, whose
    numbers all differ."""

    def run(answer: Callable) -> Any:
        linears = [nn.Linear(inputs, heads * width, bias) for _ in range(3)]
        weights = numbered(3, heads * width, inputs)
        biases = 1000 + numbered(3, heads * width)
        for linear, weight, row in zip(linears, weights, biases, strict=True):
            linear.load_state_dict({"weight": weight} | ({"bias": row} if bias else {}))
        result = answer(*linears, heads, order)
        for linear, weight, row in zip(linears, weights, biases, strict=True):
            same = torch.equal(linear.weight, weight)
            if not same or (bias and not torch.equal(linear.bias, row)):
                raise InputChangedError
        if isinstance(result, nn.Module):
            return Verdict(f"it gives a {type(result).__name__}; give a dictionary of its tensors")
        return result

    return Trial(what, run)


def fused(
    pattern: str = "qkv (h d) ... -> ({order}) ...",
    orders: tuple[str, str] = ("qkv h d", "h d qkv"),
    roles: tuple[int, int, int] = (0, 1, 2),
    heads: str = "h",
) -> Callable:
    """An answer by this einops pattern; the options make the known mistakes.

    Args:
        orders: what it makes of "qkv h d", and of "h d qkv".
        roles: which of the three it takes, in which order.
        heads: the axis of which it thinks that there are num_heads.
    """

    def answer(queries: Any, keys: Any, values: Any, num_heads: int, order: str) -> dict:
        states = [(queries, keys, values)[role].state_dict() for role in roles]
        rows = pattern.replace("{order}", orders[order != "qkv h d"])
        return {
            name: rearrange([s[name] for s in states], rows, **{heads: num_heads})
            for name in states[0]
        }

    return answer


def biased(change: Callable[[dict], Any]) -> Callable:
    """A right weight with whatever this makes of the bias."""
    return then(fused(), change)


def with_bias(state: dict, bias: Any) -> dict:
    return state | {"bias": state.get("bias", bias)}


def bias_in_order(queries: Any, keys: Any, values: Any, num_heads: int, order: str) -> dict:
    linears = queries, keys, values
    weight = {"weight": fused()(*linears, num_heads, order)["weight"]}
    return fused()(*linears, num_heads, "qkv h d") | weight


def side_by_side(queries: Any, keys: Any, values: Any, num_heads: int, order: str) -> dict:
    """Joined along the inputs."""
    state = fused()(queries, keys, values, num_heads, order)
    return state | {"weight": torch.cat([m.weight for m in (queries, keys, values)], dim=1)}


def way_back(*inputs: Any) -> dict:
    state = fused(orders=("qkv h d", "qkv h d"))(*inputs)
    if inputs[-1] == "qkv h d":
        return state
    return {n: torch.cat([rows[role::3] for role in range(3)]) for n, rows in state.items()}


SOME_BIAS = "the weight is right; a bias "
ALONE = (
    'give a dictionary, {"weight": …, "bias": …}, as load_state_dict takes it, and without "bias" '
    "where the Linears have none"
)

fuse_qkv = Check(
    reference=package.fuse_qkv,
    keeps="fuse_qkv",
    slips=SLIPS
    | {
        "NoneType": "a Linear without biases has None for its bias: join the biases only where "
        "there are some",
        "Received 1-dim tensor": "a weight has two axes, a bias one: `...` in the pattern stands "
        "for the columns, where there are some",
        "Identifiers only on one side": "the pattern must hold the order that is asked for: "
        'f"(qkv h d) ... -> ({order}) ..."',
        "shape '.*' is invalid for input": "a reshape asks for other sizes than there are: each of "
        "the three Linears has h · d rows, its out_features, and its in_features are another "
        "number",
    },
    trials=[
        fusing('Linears with biases, 2 heads of 2 rows, order "qkv h d"', 5, 2, 2, True, "qkv h d"),
        fusing('Linears with biases, 2 heads of 4 rows, order "h d qkv"', 5, 2, 4, True, "h d qkv"),
        fusing('Linears with biases, 5 heads of 3 rows, order "h d qkv"', 7, 5, 3, True, "h d qkv"),
        fusing(
            'Linears without biases, 3 heads of 4 rows, order "qkv h d"', 10, 3, 4, False, "qkv h d"
        ),
        fusing(
            'Linears without biases, 3 heads of 4 rows, order "h d qkv"', 10, 3, 4, False, "h d qkv"
        ),
    ],
    mistakes={
        'the rows always stand in the order "qkv h d"; for "h d qkv" row 0 of the queries, of the '
        "keys and of the values come first, then row 1 of each; a reshape alone moves nothing, the "
        "axes must change places": fused(orders=("qkv h d", "qkv h d")),
        'the rows always stand in the order "h d qkv"; for "qkv h d" all rows of the queries come '
        "first, then all of the keys, then all of the values": fused(orders=("h d qkv", "h d qkv")),
        'the two orders are swapped: in "qkv h d" all rows of the queries come first': fused(
            orders=("h d qkv", "qkv h d")
        ),
        'this is "h qkv d", the rows of a head\'s queries, then those of its keys; in "h d qkv" '
        "query, key and value take turns row by row": fused(orders=("qkv h d", "h qkv d")),
        "heads and their width are swapped: a Linear's rows are (h d), all d rows of head 0 "
        "first": fused("qkv (d h) ... -> ({order}) ..."),
        "the number of heads and their width are mixed up: there are num_heads heads, and each "
        "has out_features // num_heads rows": fused("qkv (d h) ... -> ({order}) ...", heads="d"),
        'this is the way back, from "h d qkv" to "qkv h d": here the rows stand as (qkv h d), and '
        "are to stand as (h d qkv)": way_back,
        'the bias is missing: join the three biases too, under "bias"': biased(
            lambda state: {"weight": state["weight"]}
        ),
        f"{SOME_BIAS}needs the same order of its rows": bias_in_order,
        f'{SOME_BIAS}that is not there must not be in the dictionary: leave "bias" out where the '
        "Linears have none": (
            biased(lambda state: with_bias(state, None)),
            biased(lambda state: with_bias(state, torch.zeros(len(state["weight"])))),
        ),
        "the weight is turned: a Linear's weight is (rows, inputs), (3·h·d, D)": biased(
            lambda state: state | {"weight": state["weight"].T}
        ),
        "the three weights stand side by side; they belong below each other, along "
        "dim=0": side_by_side,
        "queries come first, then keys, then values": tuple(
            fused(roles=roles) for roles in ((1, 0, 2), (2, 1, 0), (0, 2, 1), (1, 2, 0), (2, 0, 1))
        ),
        "these are three times the queries": fused(roles=(0, 0, 0)),
        "the three are still apart: join roles, heads and rows to one axis, (3·h·d, D)": (
            fused("qkv (h d) ... -> qkv (h d) ..."),
            fused("qkv (h d) ... -> {order} ..."),
        ),
        f"the tensors are right; {ALONE}": (
            biased(lambda state: (state["weight"], state.get("bias"))),
            biased(lambda state: tuple(state.values())),
            biased(lambda state: list(state.values())),
        ),
        f"this is the weight alone; {ALONE}": biased(lambda state: state["weight"]),
        'the names are those of the fused Linear itself, "weight" and "bias"': biased(
            lambda state: {f"qkv.{name}": rows for name, rows in state.items()}
        ),
    },
)


# Stochastic depth --------------------------------------------------------------------------------


def dropping(
    size: Callable[[Tensor], Any] = lambda x: (len(x), *[1] * (x.ndim - 1)),
    scale: Callable[[float], float] = lambda rate: 1 / (1 - rate),
    stay: Callable[[float], float] = lambda rate: 1 - rate,
    training: bool = True,
    otherwise: Callable[[Tensor, float], Tensor] = lambda x, rate: x,
) -> type[nn.Module]:
    """A module of the learner's kind; the options make the mistakes.

    Args:
        size: the shape of the numbers that are drawn.
        scale, stay: what the kept are multiplied by, and their share.
        training: the mode in which it leaves out; in the other it does `otherwise`.
    """

    class Dropping(nn.Module):
        def __init__(self, rate: float):
            super().__init__()
            self.rate = rate

        def forward(self, x: Tensor) -> Tensor:
            if self.training != training or self.rate == 0:
                return otherwise(x, self.rate)
            return x * torch.bernoulli(torch.full(size(x), stay(self.rate))) * scale(self.rate)

    return Dropping


class WritesInto(dropping()):
    def forward(self, x: Tensor) -> Tensor:
        return x.mul_(super().forward(torch.ones_like(x))) if self.training else x


class KeepsTheRest(nn.Module):
    """Gives the samples that stay, and no others."""

    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        return x[torch.rand(len(x)) >= self.rate] / (1 - self.rate) if self.training else x


class DrawsOnce(nn.Module):
    def __init__(self, rate: float):
        super().__init__()
        self.numbers = (torch.rand(4000) >= rate) / (1 - rate)

    def forward(self, x: Tensor) -> Tensor:
        numbers = self.numbers[: len(x)].view(-1, *[1] * (x.ndim - 1))
        return x * numbers if self.training else x


DropPath = Check(
    reference=package.DropPath,
    keeps="DropPath",
    slips=SLIPS
    | {
        "has no attribute '(_modules|_parameters|training)'": SLIPS[
            "before Module.__init__\\(\\) call"
        ],
        "must match the size of tensor": "the numbers that are drawn do not meet the branch: one "
        "a sample, they need the shape (B, 1, …), with as many axes as the branch has",
        "values to unpack": "a branch may have any number of axes, (B, D) too: take the batch as "
        "branch.shape[0], and branch.ndim - 1 ones for the other axes",
        "division by zero": "at rate 0 something is divided by 0",
    },
    trials=[
        in_training("in training, rate 0.3, 50 samples (B, N, D), 60 times", (50, 3, 4)),
        Trial("in evaluation mode, rate 0.3", in_evaluation),
        in_training("in training, rate 0.3, 60 samples (B, D), 60 times", (60, 7)),
        in_training("in training, rate 0.2, 50 samples (B, C, H, W)", (50, 3, 2, 4), 0.2),
        in_training("in training, rate 0", (6, 3, 4), 0.0),
        Trial("a branch whose gradient is asked for", with_gradients),
    ],
    mistakes={
        "single numbers are left out, as dropout does; leave whole samples out: draw one number a "
        "sample, of shape (B, 1, …)": dropping(size=lambda x: x.shape),
        "single tokens are left out; leave whole samples out: draw one number a sample, of shape "
        "(B, 1, …)": dropping(size=lambda x: (*x.shape[:-1], 1)),
        "the whole batch is left out, or none of it: draw a number for each sample, of shape (B, "
        "1, …)": dropping(size=lambda x: (1,) * x.ndim),
        "the samples that stay are not scaled: divide them by 1 - rate, so that the mean over many "
        "draws stays what it was": dropping(scale=lambda rate: 1.0),
        "the samples that stay are multiplied by 1 - rate; divide by it, so that the mean over "
        "many draws stays what it was": dropping(scale=lambda rate: 1 - rate),
        "the samples that stay are divided by rate; divide by 1 - rate, the share that "
        "stays": dropping(scale=lambda rate: 1 / rate),
        "too many are left out: `rate` is the chance of being left out, and a sample stays with "
        "the chance 1 - rate": dropping(stay=lambda rate: rate),
        "`rate` is taken for the chance of staying, in the draw and in the scale; it is the chance "
        "of being left out": dropping(stay=lambda rate: rate, scale=lambda rate: 1 / rate),
        "it leaves out in evaluation mode too: give back the branch as it is where self.training "
        "is False": dropping(otherwise=lambda x, rate: x if rate == 0 else dropping()(rate)(x)),
        "it is the wrong way round: leave out in training, and give back the branch in "
        "evaluation mode": dropping(training=False),
        "in evaluation mode the branch is multiplied by 1 - rate; scale in training, by 1 / (1 - "
        "rate), and leave the branch alone in evaluation mode": (
            dropping(scale=lambda rate: 1.0, otherwise=lambda x, rate: x * (1 - rate)),
            dropping(otherwise=lambda x, rate: x * (1 - rate)),
        ),
        "the same samples are left out in every call: draw anew each time, in forward, and leave "
        "the seed to whoever calls": DrawsOnce,
        "this works for (B, N, D) alone: make as many axes of one as the branch has beside the "
        "batch, branch.ndim - 1": dropping(size=lambda x: (len(x), 1, 1)),
        "these are the samples that stay, and no others: a sample left out is a row of zeros, so "
        "that the batch keeps its size": KeepsTheRest,
        "it writes into the branch, which another part of the model may still need: make a new "
        "tensor, branch * …": WritesInto,
    },
)


# Masking -----------------------------------------------------------------------------------------


def rows_at(tokens: Tensor, places: Tensor) -> Tensor:
    return tokens.take_along_dim(places[..., None], dim=1)


def masked(
    shuffle: Callable[[Tensor], Tensor] = lambda noise: noise.argsort(dim=1),
    reverse: Callable[[Tensor], Tensor] = lambda shuffled: shuffled.argsort(dim=1),
    number: Callable[[Tensor, float], int] = lambda x, ratio: package.kept_count(x.shape[1], ratio),
    keep: Callable = lambda x, shuffled, order, count: rows_at(x, shuffled[:, :count]),
    hide: Callable = lambda shuffled, order, count: order >= count,
) -> Callable:
    """An answer of the learner's kind; each option makes one part of it another."""

    def answer(tokens: Tensor, ratio: float) -> tuple[Tensor, Tensor, Tensor]:
        shuffled = shuffle(torch.rand(tokens.shape[:2]))
        order, count = reverse(shuffled), number(tokens, ratio)
        return keep(tokens, shuffled, order, count), order, hide(shuffled, order, count)

    return answer


def zeros_written(tokens: Tensor, ratio: float) -> tuple[Tensor, Tensor, Tensor]:
    result = masked()(tokens, ratio)
    tokens[result[2]] = 0
    return result


def seeded(tokens: Tensor, ratio: float) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    return masked()(tokens, ratio)


def cut_shuffle(kept: Tensor, order: Tensor) -> Tensor:
    """Which tokens were kept, as `shuffled` has it."""
    return order.argsort(dim=1)[:, : kept.shape[1]]


def half_as_they_came(tokens: Tensor, ratio: float) -> tuple[Tensor, Tensor, Tensor]:
    """The tokens of the mask, in the order in which they came."""
    _, order, mask = masked()(tokens, ratio)
    return tokens[~mask].reshape(len(tokens), -1, tokens.shape[2]), order, mask


def repeated(tokens: Tensor, ratio: float) -> tuple[Tensor, Tensor, Tensor]:
    kept, order, mask = masked()(tokens, ratio)
    return rows_at(tokens, torch.randint(tokens.shape[1], kept.shape[:2])), order, mask


SAME_AXES = "the same number of dimensions"
COUNT = "keep kept_count(N, ratio) tokens, rounded: "

random_masking = Check(
    reference=package.random_masking,
    keeps="random_masking",
    slips=SLIPS
    | {
        "is invalid for input of size|must be the same size|expects each tensor to be equal": "the "
        "samples do not all keep the same number of tokens: sort the noise and keep the first "
        "kept_count(N, ratio), instead of comparing it with the ratio",
        SAME_AXES: "an index needs as many axes as what it picks from, three: shuffled[:, :K, "
        "None]; gather also wants it expanded to (B, K, D)",
    },
    trials=[
        masking("4 samples of 8 numbered tokens, ratio 0.25: 6 stay", (4, 8, 3), 0.25),
        masking("3 samples of 6 tokens, ratio 0.5: 3 stay", (3, 6, 4), 0.5),
        masking("2 samples of 49 tokens, ratio 0.1: 44 stay", (2, 49, 5), 0.1),
        masking("4 samples of 10 tokens, ratio 0.9: 1 stays", (4, 10, 3), 0.9),
        masking("2 samples of 7 tokens, ratio 0: all stay", (2, 7, 3), 0.0),
        Trial("1500 samples of 16 tokens, ratio 0.5, twice", by_chance),
        Trial("tokens whose gradient is asked for", tokens_learn),
    ],
    mistakes={
        "the order must say where each token went; this says which token stands at each place: "
        "either the second argsort is missing, or the tokens are taken by `order` where "
        "`shuffled` is meant": (
            masked(reverse=lambda shuffled: shuffled),
            masked(reverse=lambda s: s, hide=lambda s, order, count: s.argsort(dim=1) >= count),
            masked(keep=lambda x, shuffled, order, count: rows_at(x, order[:, :count])),
        ),
        "all samples of a batch keep the same tokens: draw noise of shape (B, N), a row for each "
        "sample, and sort it along dim=1": masked(
            shuffle=lambda noise: noise[:1].argsort(dim=1).expand_as(noise)
        ),
        f"{COUNT}int cuts 0.99999 off to 0, since floats do not hold every fraction": masked(
            number=lambda x, ratio: int(x.shape[1] * (1 - ratio))
        ),
        f"{COUNT}N - int(N * ratio) rounds the wrong way": masked(
            number=lambda x, ratio: x.shape[1] - int(x.shape[1] * ratio)
        ),
        f"{COUNT}`ratio` is the share to leave out, not the share to keep": masked(
            number=lambda x, ratio: round(x.shape[1] * ratio)
        ),
        f"{COUNT}N is the number of tokens, tokens.shape[1]": masked(
            number=lambda x, ratio: package.kept_count(x.shape[2], ratio)
        ),
        "these are the tokens left out; the first K of the shuffled row are kept": masked(
            keep=lambda x, shuffled, order, count: rows_at(x, shuffled[:, count:])
        ),
        "the order counts from the front of the shuffled row, and the tokens kept are from its "
        "end, or shuffled the other way round: take the first K of `shuffled`, and the order from "
        "`shuffled` too": (
            masked(keep=lambda x, s, order, count: rows_at(x, s[:, x.shape[1] - count :])),
            masked(keep=lambda x, s, order, count: rows_at(x, s.flip(1)[:, :count])),
        ),
        "the mask is upside down: it is True where a token is left out, order >= K": masked(
            hide=lambda shuffled, order, count: order < count
        ),
        "the mask is off by one: places count from 0, so the tokens kept have the places 0 … K - "
        "1, and order >= K marks the others": masked(hide=lambda s, order, count: order > count),
        "the mask is that of the shuffled row, K times False, then True; it must speak of the "
        "tokens as they came: order >= K": masked(
            hide=lambda s, order, count: (torch.arange(s.shape[1]) >= count).expand_as(s)
        ),
        "the mask compares `shuffled` with K; where a token went stands in `order`: order >= "
        "K": masked(hide=lambda shuffled, order, count: shuffled >= count),
        "the mask is right, but in numbers; it must be True and False: order >= K": (
            masked(hide=lambda shuffled, order, count: (order >= count).float()),
            masked(hide=lambda shuffled, order, count: (order >= count).long()),
        ),
        "the tokens left out are set to 0; they must be gone, so that the blocks have less to "
        "do: (B, K, D)": masked(keep=lambda x, s, order, count: x * (order < count)[..., None]),
        "nothing is drawn: the first K tokens are kept each time; sort noise to find which "
        "stay": masked(shuffle=lambda noise: torch.arange(noise.shape[1]).expand_as(noise)),
        "the same tokens are kept in every call: leave the seed to whoever calls": seeded,
        "gather needs an index as wide as what it gathers: this takes the first number of each "
        "token alone; expand the index to (B, K, D), or use take_along_dim": masked(
            keep=lambda x, shuffled, order, count: x.gather(1, shuffled[:, :count, None])
        ),
        "the noise is sorted along the batch: each row has its own order, dim=1": masked(
            shuffle=lambda noise: noise.argsort(dim=0).clamp(max=noise.shape[1] - 1),
            reverse=lambda shuffled: shuffled.argsort(dim=0),
        ),
        "the order is cut: it must say of all N tokens where each went, (B, N), or `unmask` "
        "cannot find the gaps": (
            then(masked(), lambda all3: (all3[0], all3[1][:, : all3[0].shape[1]], all3[2])),
            then(masked(), lambda all3: (all3[0], cut_shuffle(*all3[:2]), all3[2])),
        ),
        "all samples are joined in one row: a mask as an index does that; take the tokens by their "
        "places, tokens.take_along_dim(…, dim=1), to keep (B, K, D)": masked(
            keep=lambda x, shuffled, order, count: x[order < count]
        ),
        "the right tokens are kept, but in the order in which they came, and `order` says that "
        "they are shuffled: take them by `shuffled[:, :K]`": half_as_they_came,
        "the results are in another order: (kept, order, mask)": then(
            masked(), lambda all3: (all3[0], all3[2], all3[1])
        ),
        f"the order is missing; {THREE}": then(masked(), lambda all3: (all3[0], all3[2])),
        f"this is the first alone; {THREE}": then(masked(), lambda all3: all3[0]),
        "the first K tokens are kept as they came; take those that `shuffled` puts first, "
        "shuffled[:, :K]": masked(keep=lambda x, shuffled, order, count: x[:, :count]),
        "these are places, not tokens: take the tokens that stand there": (
            masked(keep=lambda x, shuffled, order, count: shuffled[:, :count]),
            masked(keep=lambda x, shuffled, order, count: shuffled[:, :count, None]),
        ),
        "a token may be kept twice: places drawn by themselves repeat; sort noise and take the "
        "first K": repeated,
        "tokens[:, places] takes all samples' places for each sample: take_along_dim or gather "
        "give each row its own": masked(keep=lambda x, s, order, count: x[:, s[:, :count]]),
        "the order is the noise itself; argsort it twice": masked(
            shuffle=lambda noise: noise,
            reverse=lambda noise: noise,
            keep=lambda x, noise, order, count: rows_at(x, noise.argsort(dim=1)[:, :count]),
            hide=lambda noise, order, count: noise.argsort(dim=1).argsort(dim=1) >= count,
        ),
        "it writes zeros into the tokens that it was given: take the ones kept into a new tensor, "
        "and leave the others as they are": zeros_written,
    },
)


# Back to their places ----------------------------------------------------------------------------


def spread(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def rest(batch: int, length: int, count: int, width: int) -> tuple[Tensor, ...]:
    """What `unmask` is given: tokens kept, their order, the mask token and the positions."""
    order = spread(length, batch, length).argsort(dim=1)
    kept, gap = spread(1, batch, count, width), spread(2, 1, 1, width)
    return kept, order, gap, spread(3, 1, length, width)


ROLES = {"kept": 0, "mask_token": 2, "positions": 3}


def all_learn(answer: Callable) -> Any:
    """Whether gradients reach the tokens kept, the mask token and the positions."""
    given = [x.requires_grad_() if x.is_floating_point() else x for x in rest(2, 7, 3, 4)]
    result = answer(*given)
    if not isinstance(result, Tensor):
        return result
    if result.requires_grad:
        (result * spread(4, *result.shape)).sum().backward()
    cut = [name for name, number in ROLES.items() if given[number].grad is None]
    if cut:
        return Verdict(f"no gradient reaches {', '.join(cut)}: leave out detach and .data")
    return FINE


def unmasked(
    gap: Callable[[Tensor], Tensor] = lambda token: token,
    back: Callable[[Tensor, Tensor], Tensor] = rows_at,
    place: Callable = lambda x, hidden, positions: torch.where(hidden, x + positions, x),
    hidden: Callable[[Tensor, int], Tensor] = lambda order, count: order >= count,
) -> Callable:
    """An answer of the learner's kind; each option makes one part of it another."""

    def answer(kept: Tensor, order: Tensor, mask_token: Tensor, positions: Tensor) -> Tensor:
        batch, count, _ = kept.shape
        gaps = gap(mask_token).expand(batch, order.shape[1] - count, -1)
        x = back(torch.cat([kept, gaps], dim=1), order)
        return place(x, hidden(order, count)[..., None], positions)

    return answer


def scattered(x: Tensor, order: Tensor) -> Tensor:
    return torch.zeros_like(x).scatter(1, order[..., None].expand_as(x), x)


def positions_first(take: Callable[[Tensor, int], Tensor]) -> Callable:
    """A wrong answer that adds positions to the gaps while the row is still shuffled."""

    def answer(kept: Tensor, order: Tensor, mask_token: Tensor, positions: Tensor) -> Tensor:
        gaps = mask_token + take(positions, kept.shape[1])
        return rows_at(torch.cat([kept, gaps.expand(len(kept), -1, -1)], dim=1), order)

    return answer


def in_front(kept: Tensor, order: Tensor, mask_token: Tensor, positions: Tensor) -> Tensor:
    batch, count, _ = kept.shape
    gaps = mask_token.expand(batch, order.shape[1] - count, -1)
    x = rows_at(torch.cat([gaps, kept], dim=1), order)
    return torch.where((order >= count)[..., None], x + positions, x)


def n_in_front(kept: Tensor, order: Tensor, mask_token: Tensor, positions: Tensor) -> Tensor:
    x = torch.cat([mask_token.expand(*order.shape, -1), kept], dim=1)
    return rows_at(x, order) + (order >= kept.shape[1])[..., None] * positions


def of_first_sample(kept: Tensor, order: Tensor, *others: Tensor) -> Tensor:
    return unmasked()(kept, order[:1].expand_as(order), *others)


def for_one_sample(kept: Tensor, order: Tensor, mask_token: Tensor, positions: Tensor) -> Tensor:
    gaps = mask_token.repeat(1, order.shape[1] - kept.shape[1], 1)
    x = rows_at(torch.cat([kept, gaps], dim=1), order)
    return torch.where((order >= kept.shape[1])[..., None], x + positions, x)


def some_gaps(number: Callable[[Tensor], int]) -> Callable:
    """A wrong answer that appends another number of gaps."""

    def answer(kept: Tensor, order: Tensor, mask_token: Tensor, positions: Tensor) -> Tensor:
        x = torch.cat([kept, mask_token.expand(len(kept), number(kept), -1)], dim=1)
        return rows_at(x, order) + (order >= kept.shape[1])[..., None] * positions

    return answer


def token_written(kept: Tensor, order: Tensor, mask_token: Tensor, positions: Tensor) -> Tensor:
    positions += mask_token
    return unmasked(place=lambda x, gap, p: torch.where(gap, p, x))(
        kept, order, mask_token, positions
    )


def token_for_all(gap: Callable[[Tensor], Tensor]) -> Callable:
    """A wrong answer that adds the mask token at the end, to every token."""

    def answer(kept: Tensor, order: Tensor, mask_token: Tensor, positions: Tensor) -> Tensor:
        return unmasked(gap)(kept, order, mask_token, positions) + mask_token

    return answer


BACK = "x.take_along_dim(order[..., None], dim=1) puts each token where it stood"
PUT_BACK = f"the tokens are not back where they stood, or go the wrong way: {BACK}"
MIXED = (
    "the positions are added while the row is still shuffled, so a gap gets another's: put the "
    "row back first, then add positions where order >= K"
)
GAPS = "the number of gaps is wrong: N - K, so that there are N tokens again"

unmask = Check(
    reference=package.unmask,
    keeps="unmask",
    slips=SLIPS
    | {
        "out of bounds|out of range": f"{GAPS}; order has places up to N - 1",
        "Expected size .* but got size": "torch.cat joins tensors that are alike in all axes but "
        "one: the mask token must be expanded to (B, N - K, D) first",
        "must match the size of tensor": "two shapes do not meet: what comes of order is (B, N), "
        "and needs a third axis beside (B, N, D), order[..., None]",
        SAME_AXES: "an index needs as many axes as what it picks from, three: order[..., None]; "
        "gather also wants it expanded to (B, N, D)",
        "expanded size of the tensor|number of sizes provided": "expand fits axes of 1 alone, "
        "to what you name: the mask token (1, 1, D) to (B, N - K, D), an index (B, N, 1) to (B, N, "
        "D)",
    },
    trials=[
        call("one sample of 4 tokens, 2 of them kept", *rest(1, 4, 2, 3)),
        call("3 samples of 9 tokens, 4 of them kept", *rest(3, 9, 4, 5)),
        call("2 samples of 8 tokens, 7 of them kept", *rest(2, 8, 7, 4)),
        call("4 samples of 6 tokens, 1 of them kept", *rest(4, 6, 1, 3)),
        call("2 samples of 5 tokens, all of them kept", *rest(2, 5, 5, 3)),
        Trial("tokens, mask token and positions whose gradient is asked for", all_learn),
    ],
    mistakes={
        "the gaps have no position, so all their rows are alike: add positions where order >= "
        "K": unmasked(place=lambda x, hidden, positions: x),
        "the positions are added to every token; those kept had theirs before: add them only where "
        "order >= K": unmasked(place=lambda x, hidden, positions: x + positions),
        "the tokens kept get the positions, and the gaps do not; it is the other way "
        "round": unmasked(place=lambda x, gap, positions: torch.where(gap, x, x + positions)),
        MIXED: (
            positions_first(lambda positions, count: positions[:, count:]),
            positions_first(lambda positions, count: positions[:, : positions.shape[1] - count]),
        ),
        PUT_BACK: (
            unmasked(back=lambda x, order: rows_at(x, order.argsort(dim=1))),
            unmasked(back=lambda x, order: x),
            unmasked(back=scattered),
            lambda kept, order, *others: unmasked()(kept, order.argsort(dim=1), *others),
        ),
        f"the tokens are not put back: kept ones stand in front, and gaps behind; {BACK}": (
            unmasked(back=lambda x, order: x, place=lambda x, hidden, positions: x),
            unmasked(
                back=lambda x, order: x,
                hidden=lambda order, count: torch.arange(order.shape[1]).expand_as(order) >= count,
            ),
        ),
        "the gaps hold their position alone: the mask token is missing": unmasked(
            gap=torch.zeros_like
        ),
        "the gaps hold zeros: a gap is the mask token plus its position": unmasked(
            gap=torch.zeros_like, place=lambda x, hidden, positions: x
        ),
        "the mask token is added to every token: it stands in the gaps alone": (
            token_for_all(torch.zeros_like),
            token_for_all(lambda token: token),
        ),
        "gather needs an index as wide as what it gathers: this takes the first number of each "
        "token alone; use take_along_dim, or expand the index to (B, N, D)": unmasked(
            back=lambda x, order: x.gather(1, order[..., None])
        ),
        GAPS: (
            some_gaps(lambda kept: kept.shape[1]),
            some_gaps(lambda kept: 1),
        ),
        "the gaps stand in front of the tokens kept; `order` counts the kept ones first: "
        "torch.cat([kept, gaps], dim=1)": (in_front, n_in_front),
        "order > K misses a gap: places count from 0, so K is the first gap, order >= K": unmasked(
            hidden=lambda order, count: order > count
        ),
        "which tokens are gaps stands in `order`: order >= K; in the row that is put back, the "
        "last ones need not be gaps": unmasked(
            hidden=lambda order, count: torch.arange(order.shape[1]).expand_as(order) >= count
        ),
        "x[:, order] takes the places of all samples for each sample: take_along_dim or gather "
        "give each its own": (
            unmasked(back=lambda x, order: x[:, order]),
            unmasked(back=lambda x, order: x[order]),
        ),
        "all samples are put back in the order of the first: each row of `order` is a sample's "
        "own": of_first_sample,
        "this works for one sample only: torch.cat does not broadcast, so expand the mask token to "
        "(B, N - K, D)": for_one_sample,
        "it writes into what it was given: positions and mask token are parameters; make a new "
        "tensor, x + positions": token_written,
        "these are the gaps alone; the tokens kept stand between them": unmasked(
            place=lambda x, gap, positions: torch.where(gap, x + positions, 0)
        ),
        "the numbers are right, but the positions get no gradient from the gaps: leave out detach "
        "and .data": unmasked(place=lambda x, gap, p: torch.where(gap, x + p.detach(), x)),
        "the numbers are right, but the mask token gets no gradient, so it would never learn: "
        "leave out detach and .data": unmasked(gap=Tensor.detach),
    },
)


# The rates of all blocks -------------------------------------------------------------------------


def schedule(rate: float, depth: int) -> Trial:
    """Asks for a list of numbers: a tensor's would be compared as if they were."""

    def run(answer: Callable) -> Any:
        result = answer(rate, depth)
        if isinstance(result, Tensor) or type(result).__name__ == "ndarray":
            return Verdict(
                f"it gives {kind_of(result)}; give a list of numbers: end with .tolist()"
            )
        if isinstance(result, Iterator):
            return Verdict("it gives what can be gone through once; give a list: put it in [ … ]")
        if isinstance(result, tuple):
            return Verdict("it gives a tuple; give a list, [ … ] or list(…)")
        if isinstance(result, list) and any(isinstance(x, Tensor) for x in result):
            return Verdict("the list holds tensors; give numbers: .tolist(), or .item() of each")
        return result

    many = "one block" if depth == 1 else f"{depth} blocks"
    return Trial(f"{many}, rate {rate}", run)


def rates(share: Callable[[int, int], float], blocks: Callable[[int], int] = int) -> Callable:
    """An answer whose block i of so many has this share of the rate."""
    return lambda rate, depth: [rate * share(i, depth) for i in range(blocks(depth))]


def straight(i: int, depth: int) -> float:
    return i / max(depth - 1, 1)


drop_path_rates = Check(
    reference=package.drop_path_rates,
    slips=SLIPS
    | {
        "ZeroDivisionError": "with one block there are no steps, depth - 1 is 0: give [0.0]",
        "step must be nonzero|Maximum allowed size": "at rate 0 the step is 0, and a range has "
        "none: all rates are 0 then",
    },
    trials=[
        schedule(0.3, 4),
        schedule(0.1, 12),
        schedule(0.5, 2),
        schedule(0.2, 1),
        schedule(0.0, 3),
    ],
    mistakes={
        "the last block does not reach the rate: from the first block to the last there are depth "
        "- 1 steps": rates(lambda i, depth: i / depth),
        "the first block starts above 0: it is never left out": rates(
            lambda i, depth: (i + 1) / depth
        ),
        "there is one number too many: depth numbers, and depth - 1 steps between them": rates(
            lambda i, depth: i / depth, lambda depth: depth + 1
        ),
        "with one block there are no steps: give [0.0]": rates(
            lambda i, depth: i / (depth - 1) if depth > 1 else 1
        ),
        "it runs backwards: the first block is never left out, the last one most": rates(
            lambda i, depth: straight(depth - 1 - i, depth) if depth > 1 else 0
        ),
        "all blocks have the same rate: let it grow from 0, in equal steps": rates(
            lambda i, depth: 1
        ),
        "these are the shares that stay: give the shares that are left out": then(
            rates(straight), lambda all_rates: [1 - x for x in all_rates]
        ),
        "the steps are not equal: rate · i / (depth - 1) is a straight line": rates(
            lambda i, depth: straight(i, depth) ** 2
        ),
        "// drops the fraction: divide by /": rates(lambda i, depth: i // max(depth - 1, 1)),
        "each step is as large as the rate: the last block has it, so a step is rate / (depth - "
        "1)": rates(lambda i, depth: i),
        "they run up to 1, whatever the rate: multiply by `rate`": lambda rate, depth: rates(
            straight
        )(1.0, depth),
        "the numbers are rounded: give them as they are": then(
            rates(straight), lambda all_rates: [round(x, 2) for x in all_rates]
        ),
        "this is one number; give a list with one for each block": (
            then(rates(straight), lambda all_rates: all_rates[-1]),
            then(rates(straight), lambda all_rates: all_rates[0]),
        ),
    },
)


# Rotary positions --------------------------------------------------------------------------------


def omega_of(half: int) -> Tensor:
    return 10000 ** (-torch.arange(half) / half)


def rotated(
    omega: Callable[[int], Tensor] = omega_of,
    turn: Callable[[Tensor], Tensor] = lambda angles: angles,
    where: Callable[[Tensor, Tensor], Tensor] = lambda x, places: places,
    signs: tuple[int, int] = (-1, 1),
    cut: Callable[[Tensor], Any] = lambda x: x.chunk(2, dim=-1),
    join: Callable[[Tensor, Tensor], Any] = lambda a, b: torch.cat([a, b], dim=-1),
) -> Callable:
    """An answer of the learner's kind; each option makes one part of it another."""

    def answer(x: Tensor, places: Tensor) -> Any:
        if x.shape[-1] % 2:
            raise ValueError(f"the width is {x.shape[-1]}; give an even one")
        angles = turn(where(x, places)[:, None] * omega(x.shape[-1] // 2))
        cos, sin = angles.cos(), angles.sin()
        a, b = cut(x)
        return join(a * cos + signs[0] * b * sin, a * sin + signs[1] * b * cos)

    return answer


def every_second(x: Tensor) -> tuple[Tensor, Tensor]:
    return x[..., 0::2], x[..., 1::2]


def by_turns(a: Tensor, b: Tensor) -> Tensor:
    return torch.stack([a, b], dim=-1).flatten(-2)


def one_after_the_other(x: Tensor, places: Tensor) -> Tensor:
    """The second half is made from the new first half."""
    angles = places[:, None] * omega_of(x.shape[-1] // 2)
    a, b = x.chunk(2, dim=-1)
    a = a * angles.cos() - b * angles.sin()
    return torch.cat([a, a * angles.sin() + b * angles.cos()], dim=-1)


def added(x: Tensor, places: Tensor) -> Tensor:
    angles = places[:, None] * omega_of(x.shape[-1] // 2)
    return x + torch.cat([angles.sin(), angles.cos()], dim=-1)


def unrefused(x: Tensor, places: Tensor) -> Tensor:
    even = x.shape[-1] // 2 * 2
    return torch.cat([rotated()(x[..., :even], places), x[..., even:]], dim=-1)


def rows_as_heads(x: Tensor, places: Tensor) -> Tensor:
    return rotated()(x.transpose(1, 2), places[: x.shape[1]]).transpose(1, 2)


def odd_width(answer: Callable) -> Any:
    """Whether an odd width is refused by a ValueError, and not by an error that happens to come."""
    for width in (5, 1):
        x, places = spread(width, 1, 2, 3, width), torch.tensor([0, 1, 2])
        try:
            result = answer(x, places)
        except ValueError:
            continue
        except (RuntimeError, AssertionError, IndexError, TypeError) as error:
            kind = type(error).__name__
            return Verdict(f"an odd d ends in {kind}: ask for it first, and raise a ValueError")
        if result is None or result is ...:
            return result
        return Verdict("an odd d is not refused: raise a ValueError")
    return FINE


def rotating(what: str, shape: tuple[int, ...], places: Tensor) -> Trial:
    return call(what, spread(shape[-1], *shape).clamp(-2, 2), places)


SPEED = "ω is another: ω_k = 10000^(-k / (d/2)), k = 0 … d/2 - 1"

rotary = Check(
    reference=rotated(),
    slips=SLIPS
    | {
        "must match the size of tensor": "the angles do not meet the pairs: angles (N, d/2), one "
        "for each token and pair, belong to the last two axes of (B, h, N, d/2)",
        "negative integer powers": "10000 ** -k / half is (10000 ** -k) / half: put the whole "
        "exponent in parentheses",
    },
    trials=[
        rotating("3 tokens of one head, d = 2, places 0, 1, 2", (1, 1, 3, 2), torch.arange(3)),
        rotating(
            "2 images, 3 heads, 4 tokens, d = 6, places 3, 0, 7, 2",
            (2, 3, 4, 6),
            torch.tensor([3, 0, 7, 2]),
        ),
        rotating(
            "3 images, 2 heads, 5 tokens, d = 8, places 0.5, 2.75, 4, 0, 9.25",
            (3, 2, 5, 8),
            torch.tensor([0.5, 2.75, 4.0, 0.0, 9.25]),
        ),
        rotating(
            "4 heads of one image, 2 tokens, d = 4, places 40, 11",
            (1, 4, 2, 4),
            torch.tensor([40, 11]),
        ),
        Trial("an odd width, d = 5 and d = 1", odd_width),
    ],
    mistakes={
        "the pairs are neighbours, 2k and 2k + 1; here a pair is k and k + d/2, one from each "
        "half": rotated(cut=every_second, join=by_turns),
        "a and b are taken as neighbours, 2k and 2k + 1, and put back as halves; here a pair is k "
        "and k + d/2: x.chunk(2, dim=-1)": rotated(cut=every_second),
        "the halves are right, but put back by turns: all a's first, then all b's, by torch.cat, "
        "so that each number stays in its place": rotated(join=by_turns),
        "this turns clockwise: anticlockwise is (a·cos - b·sin, a·sin + b·cos)": rotated(
            turn=torch.neg
        ),
        f"{SPEED}; k / d in place of k / (d/2), or a base of 100, turns all pairs but the first "
        "too far": rotated(omega=lambda half: 10000 ** (-torch.arange(half) / (2 * half))),
        f"{SPEED}; without its minus it grows with k": rotated(
            omega=lambda half: 10000 ** (torch.arange(half) / half)
        ),
        f"{SPEED}; k / (d/2 - 1) reaches 1/10000 in the last pair, which is not asked": rotated(
            omega=lambda half: 10000 ** (-torch.arange(half) / max(half - 1, 1))
        ),
        f"{SPEED}; the base is 10000": tuple(
            rotated(omega=lambda half, base=base: base ** (-torch.arange(half) / half))
            for base in (10, 1000, 100000)
        ),
        f"{SPEED}; count k from 0, so that the first pair turns by the place itself": rotated(
            omega=lambda half: 10000 ** (-torch.arange(1, half + 1) / half)
        ),
        f"{SPEED}; 2k belongs over d, or k over d/2: here it is 2k over d/2": rotated(
            omega=lambda half: 10000 ** (-2 * torch.arange(half) / half)
        ),
        f"{SPEED}; all pairs turn alike here": rotated(omega=torch.ones),
        "the places are not used: the tokens are numbered 0, 1, 2 instead; a token's place may be "
        "any number, and `places` holds it": rotated(
            where=lambda x, places: torch.arange(x.shape[2])
        ),
        "the places are counted from 1 here: use them as they come": rotated(
            where=lambda x, places: places + 1
        ),
        "the places lose their fractions: use them as they come, without .long() or int()": rotated(
            where=lambda x, places: places.long()
        ),
        "the two halves have changed places: first a·cos - b·sin, then a·sin + b·cos": rotated(
            join=lambda a, b: torch.cat([b, a], dim=-1)
        ),
        "sine and cosine are swapped: (a·cos - b·sin, a·sin + b·cos)": rotated(
            turn=lambda angles: torch.pi / 2 - angles
        ),
        "a sign is wrong: (a·cos - b·sin, a·sin + b·cos), one minus and one plus": (
            rotated(signs=(-1, -1)),
            rotated(signs=(1, 1)),
        ),
        "the second half is made from the new first half: keep the old a until both are "
        "made": one_after_the_other,
        "the angles follow the heads: the tokens are axis 2 of (B, h, N, d), and each has its "
        "place": rows_as_heads,
        "an odd d is not refused: raise a ValueError": unrefused,
        "the angles are taken in degrees: cos and sin take them as they are, in radians": rotated(
            turn=torch.deg2rad
        ),
        "sines and cosines are added to x, as in lesson 02; here each pair is turned": added,
        "nothing is turned: x comes back as it was": rotated(turn=torch.zeros_like),
        "this is the first half alone: join both, torch.cat([…, …], dim=-1)": rotated(
            join=lambda a, b: a
        ),
        "the two halves are apart: join them, torch.cat([…, …], dim=-1)": rotated(
            join=lambda a, b: (a, b)
        ),
    },
)


# Which dropping? ---------------------------------------------------------------------------------

KINDS = ("sample", "token", "number")


def stays_of(kind: str, shape: tuple[int, int, int], rate: float, seed: int) -> Tensor:
    """True where something stays, (B, N, D), drawn for each sample, token or number."""
    count = KINDS.index(kind) + 1
    drawn = torch.rand(shape[:count], generator=torch.Generator().manual_seed(seed)) >= rate
    return drawn.reshape(*drawn.shape, *[1] * (3 - count)).expand(shape).clone()


def lucky(stays: Tensor, kind: str, luck: str) -> None:
    """Put in by hand what a draw may bring: "first", whose first sample or token is kept whole, or
    "pair", whose first two tokens of each sample, or numbers of each token, look alike."""
    if luck == "first":
        stays[(0,) * KINDS.index(kind)] = True
    elif luck == "pair":
        pair = stays.select(KINDS.index(kind), 1)
        pair.copy_(stays.select(KINDS.index(kind), 0))


def kind_of_drop(kind: str, shape: tuple[int, int, int], rate: float, luck: str = "") -> Trial:
    """A trial of what the answer says of ones that were dropped in this way."""
    stays = stays_of(kind, shape, rate, seed=sum(shape))
    lucky(stays, kind, luck)
    outputs = stays / (1 - rate)

    def run(answer: Callable) -> Any:
        said = untouched(answer, outputs)
        if said is None or said is ...:
            return said
        if not isinstance(said, str) or said not in KINDS:
            return Verdict(f'it gives {said!r}; give one of "sample", "token", "number"')
        return Verdict(FINE if said == kind else f'it says "{said}", and a {kind} was drawn')

    share = 1 - stays.float().mean().item()
    return Trial(f"{shape} outputs, {share:.0%} of them 0, drawn for each {kind}", run)


def alike(outputs: Tensor, axes: int) -> bool:
    """Whether all outputs are alike, zero or not, that share the first `axes` axes."""
    zero = (outputs == 0).flatten(axes)
    return torch.equal(zero, zero[..., :1].expand_as(zero))


def named(per_sample: Callable[[Tensor], Any], per_token: Callable[[Tensor], Any]) -> Callable:
    """An answer that asks these two, in this order."""

    def answer(outputs: Tensor) -> str:
        if per_sample(outputs):
            return "sample"
        return "token" if per_token(outputs) else "number"

    return answer


def samples_alike(outputs: Tensor) -> bool:
    return alike(outputs, 1)


def tokens_alike(outputs: Tensor) -> bool:
    return alike(outputs, 2)


def some_empty(outputs: Tensor, axes: int) -> bool:
    return bool((outputs == 0).flatten(axes).all(dim=-1).any())


def token_first(outputs: Tensor) -> str:
    return "token" if tokens_alike(outputs) else named(samples_alike, tokens_alike)(outputs)


right_kind = named(samples_alike, tokens_alike)
ALL_ALIKE = "ask whether all are alike, (zero == zero[:, :1, :1]).all() for the samples"

drop_kind = Check(
    reference=right_kind,
    slips=SLIPS
    | {
        "is invalid for input|must match the size": "B, N and D differ from case to case: take "
        "them from outputs.shape",
    },
    trials=[
        kind_of_drop("sample", (16, 12, 10), 0.5),
        kind_of_drop("token", (16, 12, 10), 0.5),
        kind_of_drop("number", (16, 12, 10), 0.5),
        kind_of_drop("sample", (9, 8, 11), 0.2),
        kind_of_drop("token", (20, 8, 9), 0.4, "first"),
        kind_of_drop("token", (18, 8, 10), 0.4, "pair"),
        kind_of_drop("number", (18, 8, 9), 0.4, "first"),
        kind_of_drop("number", (17, 9, 8), 0.4, "pair"),
        kind_of_drop("sample", (30, 10, 8), 0.7),
        kind_of_drop("token", (25, 8, 10), 0.12),
        kind_of_drop("number", (20, 9, 8), 0.12),
        kind_of_drop("token", (40, 8, 12), 0.85),
        kind_of_drop("number", (30, 9, 8), 0.85),
    ],
    mistakes={
        "a dropping by samples drops whole tokens too, so ask for samples first, and ask of each "
        "whether it is alike inside, (zero == zero[:, :1, :1]).all(); samples compared with each "
        "other tell nothing": token_first,
        "it looks at the first sample alone, which may be kept whole by chance: look at all": named(
            lambda x: samples_alike(x[:1]), lambda x: tokens_alike(x[:1])
        ),
        "it looks at the first token alone, which may be kept whole by chance: look at all": named(
            samples_alike, lambda x: tokens_alike(x[:1, :1])
        ),
        "a sample or a token may be empty by chance, where tokens or numbers were drawn: "
        f"{ALL_ALIKE}": (
            named(lambda x: some_empty(x, 1), lambda x: some_empty(x, 2)),
            named(samples_alike, lambda x: some_empty(x, 2)),
            named(lambda x: some_empty(x, 1), tokens_alike),
        ),
        "a token's numbers lie along the last axis, D; this asks whether the tokens of a sample "
        "are alike in each column": named(samples_alike, lambda x: tokens_alike(x.mT)),
        "it counts on a rate of 0.5, where what stays is 2; the rate may be another: ask for "
        "zeros": named(
            lambda x: right_kind(x) == "sample" and bool((x == 2).any()),
            lambda x: right_kind(x) == "token" and bool((x == 2).any()),
        ),
        "it looks at two tokens alone, which may agree by chance: look at all": named(
            lambda x: tokens_alike(x) and samples_alike(x[:, :2]), tokens_alike
        ),
        "it looks at two numbers of a token alone, which may agree by chance: look at all": named(
            samples_alike, lambda x: tokens_alike(x[..., :2])
        ),
        "the share of zeros does not tell: it is whatever the rate is": named(
            lambda x: (x == 0).float().mean() < 0.3, lambda x: (x == 0).float().mean() < 0.6
        ),
        "it says always the same": (
            lambda outputs: "sample",
            lambda outputs: "token",
            lambda outputs: "number",
        ),
        "samples and numbers are swapped": lambda outputs: KINDS[
            2 - KINDS.index(right_kind(outputs))
        ],
        'the words are right, but written otherwise: "sample", "token" or "number"': (
            then(right_kind, str.capitalize),
            then(right_kind, lambda kind: f"{kind}s"),
            then(right_kind, str.upper),
            then(right_kind, lambda kind: f"per {kind}"),
        ),
        'give a word, "sample", "token" or "number", not its number': then(right_kind, KINDS.index),
    },
)
