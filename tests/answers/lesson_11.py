"""Answers to lesson 11's build cells and exercises, as learners would write them."""

import math
import random

import numpy as np
import torch
from einops import rearrange, repeat
from torch import nn
from torch.nn import functional as F

from vit_steps.variants import kept_count

# fuse_qkv ----------------------------------------------------------------------------------------


def fused_by_pattern(queries, keys, values, num_heads, order):
    three = [queries, keys, values]
    weights = torch.stack([linear.weight for linear in three])
    state = {"weight": rearrange(weights, f"qkv (h d) i -> ({order}) i", h=num_heads)}
    if queries.bias is not None:
        biases = torch.stack([linear.bias for linear in three])
        state["bias"] = rearrange(biases, f"qkv (h d) -> ({order})", h=num_heads)
    return state


def fused_by_permute(queries, keys, values, num_heads, order="qkv h d"):
    state = {}
    for name in queries.state_dict():
        rows = torch.stack([m.state_dict()[name] for m in (queries, keys, values)])
        if order == "h d qkv":
            rows = rows.unflatten(1, (num_heads, -1)).movedim(0, 2)
            state[name] = rows.flatten(0, 2)
        else:
            state[name] = rows.flatten(0, 1)
    return state


def fused_row_by_row(queries, keys, values, num_heads, order):
    linears = [queries, keys, values]
    rows = queries.out_features
    if order == "qkv h d":
        places = [(role, row) for role in range(3) for row in range(rows)]
    else:
        places = [(role, row) for row in range(rows) for role in range(3)]
    weight = torch.stack([linears[role].weight[row] for role, row in places])
    if queries.bias is None:
        return {"weight": weight}
    return {"weight": weight, "bias": torch.stack([linears[r].bias[i] for r, i in places])}


def fused_by_a_linear(queries, keys, values, num_heads, order):
    biased = queries.bias is not None
    width = queries.out_features
    fused = nn.Linear(queries.in_features, 3 * width, bias=biased)
    with torch.no_grad():
        for i, linear in enumerate([queries, keys, values]):
            rows = slice(i * width, (i + 1) * width) if order == "qkv h d" else slice(i, None, 3)
            fused.weight[rows] = linear.weight
            if biased:
                fused.bias[rows] = linear.bias
    return fused.state_dict()


def changed(state, name, change):
    """A state of which one entry is another."""
    if name in state:
        state[name] = change(state[name])
    return state


def biases_written(queries, keys, values, num_heads, order):
    state = fused_by_pattern(queries, keys, values, num_heads, order)
    if queries.bias is not None:
        queries.bias.data.zero_()
    return state


def order_not_looked_at(queries, keys, values, num_heads, order):
    three = [queries, keys, values]
    state = {"weight": torch.cat([m.weight for m in three])}
    if queries.bias is not None:
        state["bias"] = torch.cat([m.bias for m in three])
    return state


def only_reshaped(queries, keys, values, num_heads, order):
    state = order_not_looked_at(queries, keys, values, num_heads, order)
    if order == "h d qkv":
        d = queries.out_features // num_heads
        for name, rows in state.items():
            state[name] = rows.reshape(num_heads, d, 3, -1).reshape(rows.shape)
    return state


def always_the_einops_order(queries, keys, values, num_heads, order):
    return fused_by_pattern(queries, keys, values, num_heads, "h d qkv")


def orders_swapped(queries, keys, values, num_heads, order):
    other = "qkv h d" if order == "h d qkv" else "h d qkv"
    return fused_by_pattern(queries, keys, values, num_heads, other)


def heads_and_width_swapped(queries, keys, values, num_heads, order):
    three = [queries, keys, values]
    state = {}
    for name in queries.state_dict():
        rows = torch.stack([m.state_dict()[name] for m in three])
        state[name] = rearrange(rows, f"qkv (d h) ... -> ({order}) ...", h=num_heads)
    return state


def heads_taken_for_their_width(queries, keys, values, num_heads, order):
    state = {}
    for name in queries.state_dict():
        rows = torch.stack([m.state_dict()[name] for m in (queries, keys, values)])
        state[name] = rearrange(rows, f"qkv (d h) ... -> ({order}) ...", d=num_heads)
    return state


def head_by_head(queries, keys, values, num_heads, order):
    pattern = "qkv h d" if order == "qkv h d" else "h qkv d"
    return fused_by_pattern(queries, keys, values, num_heads, pattern)


def bias_forgotten(queries, keys, values, num_heads, order):
    return {"weight": fused_by_pattern(queries, keys, values, num_heads, order)["weight"]}


def bias_left_in_order(queries, keys, values, num_heads, order):
    state = fused_by_pattern(queries, keys, values, num_heads, order)
    if queries.bias is not None:
        state["bias"] = torch.cat([queries.bias, keys.bias, values.bias])
    return state


def bias_is_none(queries, keys, values, num_heads, order):
    return {"bias": None} | fused_by_pattern(queries, keys, values, num_heads, order)


def bias_taken_for_granted(queries, keys, values, num_heads, order):
    weights = torch.stack([queries.weight, keys.weight, values.weight])
    biases = torch.stack([queries.bias, keys.bias, values.bias])
    return {
        "weight": rearrange(weights, f"qkv (h d) i -> ({order}) i", h=num_heads),
        "bias": rearrange(biases, f"qkv (h d) -> ({order})", h=num_heads),
    }


def bias_of_zeros(queries, keys, values, num_heads, order):
    state = fused_by_pattern(queries, keys, values, num_heads, order)
    state.setdefault("bias", torch.zeros(len(state["weight"])))
    return state


def weight_turned(queries, keys, values, num_heads, order):
    state = fused_by_pattern(queries, keys, values, num_heads, order)
    return changed(state, "weight", lambda weight: weight.T)


def side_by_side(queries, keys, values, num_heads, order):
    state = fused_by_pattern(queries, keys, values, num_heads, order)
    state["weight"] = torch.cat([queries.weight, keys.weight, values.weight], dim=1)
    return state


def keys_first(queries, keys, values, num_heads, order):
    return fused_by_pattern(keys, queries, values, num_heads, order)


def values_first(queries, keys, values, num_heads, order):
    return fused_by_pattern(values, keys, queries, num_heads, order)


def queries_three_times(queries, keys, values, num_heads, order):
    return fused_by_pattern(queries, queries, queries, num_heads, order)


def a_pair(queries, keys, values, num_heads, order):
    state = fused_by_pattern(queries, keys, values, num_heads, order)
    return state["weight"], state.get("bias")


def a_linear_itself(queries, keys, values, num_heads, order):
    fused = nn.Linear(queries.in_features, 3 * queries.out_features, queries.bias is not None)
    fused.load_state_dict(fused_by_pattern(queries, keys, values, num_heads, order))
    return fused


def the_weight_alone(queries, keys, values, num_heads, order):
    return fused_by_pattern(queries, keys, values, num_heads, order)["weight"]


def three_still_apart(queries, keys, values, num_heads, order):
    three = [m.state_dict() for m in (queries, keys, values)]
    return {name: torch.stack([state[name] for state in three]) for name in three[0]}


def axes_still_apart(queries, keys, values, num_heads, order):
    state = {}
    for name in queries.state_dict():
        rows = torch.stack([m.state_dict()[name] for m in (queries, keys, values)])
        state[name] = rearrange(rows, f"qkv (h d) ... -> {order} ...", h=num_heads)
    return state


def named_as_in_the_model(queries, keys, values, num_heads, order):
    state = fused_by_pattern(queries, keys, values, num_heads, order)
    return {f"qkv.{name}": rows for name, rows in state.items()}


def the_way_back(queries, keys, values, num_heads, order):
    """Sorts rows that stand as (h d qkv) into (qkv h d), where the other way is asked for."""
    state = order_not_looked_at(queries, keys, values, num_heads, order)
    if order == "h d qkv":
        for name, rows in state.items():
            state[name] = torch.cat([rows[0::3], rows[1::3], rows[2::3]])
    return state


def width_for_granted(queries, keys, values, num_heads, order):
    """Takes the number of inputs for the number of rows."""
    D = queries.in_features
    d = D // num_heads
    state = {}
    for name in queries.state_dict():
        rows = torch.stack([m.state_dict()[name] for m in (queries, keys, values)])
        rows = rows.reshape(3, num_heads, d, *rows.shape[2:])
        if order == "h d qkv":
            rows = rows.movedim(0, 2)
        state[name] = rows.flatten(0, 2)
    return state


# DropPath ----------------------------------------------------------------------------------------


class DropByBernoulli(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, branch):
        if not self.training or self.rate == 0:
            return branch
        keep = 1 - self.rate
        shape = (branch.shape[0],) + (1,) * (branch.ndim - 1)
        stays = torch.bernoulli(torch.full(shape, keep))
        return branch * stays / keep


class DropByDropout(nn.Module):
    """Dropout of one 1 a sample gives 0 or 1 / (1 - rate), and nothing in evaluation mode."""

    def __init__(self, rate):
        super().__init__()
        self.dropout = nn.Dropout(rate)

    def forward(self, branch):
        ones = torch.ones(len(branch), *[1] * (branch.dim() - 1))
        return self.dropout(ones) * branch


class DropByWhere(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, branch):
        if self.training:
            left_out = torch.rand(branch.shape[0]) < self.rate
            while left_out.ndim < branch.ndim:
                left_out = left_out[..., None]
            return torch.where(left_out, torch.zeros_like(branch), branch / (1 - self.rate))
        return branch


class DropInALoop(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, branch):
        if not self.training:
            return branch
        samples = []
        for sample in branch:
            if random.random() < self.rate:
                samples.append(sample * 0)
            else:
                samples.append(sample / (1 - self.rate))
        return torch.stack(samples)


class DropByFloor(nn.Module):
    """As timm's first form."""

    def __init__(self, rate=0.0):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        if self.rate == 0.0 or not self.training:
            return x
        keep_prob = 1 - self.rate
        noise = keep_prob + torch.rand((x.shape[0],) + (1,) * (x.ndim - 1), dtype=x.dtype)
        noise.floor_()
        return x.div(keep_prob) * noise


def stays_for(branch, rate):
    """1 or 0 a sample, (B, 1, …)."""
    return (torch.rand(len(branch), *[1] * (branch.ndim - 1)) >= rate).float()


class Dropping(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate


class DropNumbers(Dropping):
    def forward(self, branch):
        if not self.training:
            return branch
        return branch * (torch.rand_like(branch) >= self.rate) / (1 - self.rate)


class DropNumbersByDropout(Dropping):
    def forward(self, branch):
        return F.dropout(branch, self.rate, self.training)


class DropTokens(Dropping):
    def forward(self, branch):
        if not self.training:
            return branch
        stays = torch.rand(*branch.shape[:-1], 1) >= self.rate
        return branch * stays / (1 - self.rate)


class DropTheBatch(Dropping):
    def forward(self, branch):
        if not self.training:
            return branch
        if torch.rand(1) < self.rate:
            return torch.zeros_like(branch)
        return branch / (1 - self.rate)


class DropUnscaled(Dropping):
    def forward(self, branch):
        if not self.training:
            return branch
        return branch * stays_for(branch, self.rate)


class DropTimesKeep(Dropping):
    def forward(self, branch):
        if not self.training:
            return branch
        return branch * stays_for(branch, self.rate) * (1 - self.rate)


class DropOverRate(Dropping):
    def forward(self, branch):
        if not self.training or self.rate == 0:
            return branch
        return branch * stays_for(branch, self.rate) / self.rate


class KeepAtRate(Dropping):
    """Kept with the chance of being left out, scaled as it should be."""

    def forward(self, branch):
        if not self.training or self.rate == 0:
            return branch
        return branch * stays_for(branch, 1 - self.rate) / (1 - self.rate)


class KeepAtRateAndScale(Dropping):
    """Rate is taken for the chance of staying, all through."""

    def forward(self, branch):
        if not self.training or self.rate == 0:
            return branch
        return (
            branch
            * torch.bernoulli(torch.full((len(branch),) + (1,) * (branch.ndim - 1), self.rate))
            / self.rate
        )


class DropInEvalToo(Dropping):
    def forward(self, branch):
        if self.rate == 0:
            return branch
        return branch * stays_for(branch, self.rate) / (1 - self.rate)


class DropInEvalOnly(Dropping):
    def forward(self, branch):
        if self.training:
            return branch
        return branch * stays_for(branch, self.rate) / (1 - self.rate)


class ScaledInEval(Dropping):
    """The other way to keep the expectation: nothing in training, times keep in evaluation."""

    def forward(self, branch):
        if not self.training:
            return branch * (1 - self.rate)
        return branch * stays_for(branch, self.rate)


class ScaledTwice(Dropping):
    def forward(self, branch):
        if not self.training:
            return branch * (1 - self.rate)
        return branch * stays_for(branch, self.rate) / (1 - self.rate)


class DrawnOnce(Dropping):
    """The draw is made when the module is made."""

    def __init__(self, rate):
        super().__init__(rate)
        self.stays = (torch.rand(4000) >= rate).float() / (1 - rate)

    def forward(self, branch):
        if not self.training:
            return branch
        return branch * self.stays[: len(branch)].view(-1, *[1] * (branch.ndim - 1))


class SeededEachTime(Dropping):
    def forward(self, branch):
        torch.manual_seed(0)
        if not self.training:
            return branch
        return branch * stays_for(branch, self.rate) / (1 - self.rate)


class ThreeAxesOnly(Dropping):
    def forward(self, branch):
        if not self.training:
            return branch
        stays = (torch.rand(branch.shape[0], 1, 1) >= self.rate).float()
        return branch * stays / (1 - self.rate)


class UnpacksThreeAxes(Dropping):
    def forward(self, branch):
        if not self.training:
            return branch
        B, _, _ = branch.shape
        stays = (torch.rand(B, 1, 1) >= self.rate).float()
        return branch * stays / (1 - self.rate)


class OneAxisOnly(Dropping):
    def forward(self, branch):
        if not self.training:
            return branch
        stays = (torch.rand(len(branch)) >= self.rate).float()
        return branch * stays / (1 - self.rate)


class InPlace(Dropping):
    def forward(self, branch):
        if not self.training:
            return branch
        branch *= stays_for(branch, self.rate)
        branch /= 1 - self.rate
        return branch


class ZeroedInPlace(Dropping):
    def forward(self, branch):
        if not self.training:
            return branch
        branch[torch.rand(len(branch)) < self.rate] = 0
        return branch / (1 - self.rate)


class NormalNoise(Dropping):
    def forward(self, branch):
        if not self.training:
            return branch
        noise = torch.randn(len(branch), *[1] * (branch.ndim - 1))
        return branch * (noise > self.rate) / (1 - self.rate)


class HalfAlways(Dropping):
    def forward(self, branch):
        if not self.training or self.rate == 0:
            return branch
        stays = torch.rand(len(branch), *[1] * (branch.ndim - 1)).round()
        return branch * stays / (1 - self.rate)


class OnlyTheKept(Dropping):
    def forward(self, branch):
        if not self.training:
            return branch
        stays = torch.rand(len(branch)) >= self.rate
        return branch[stays] / (1 - self.rate)


class FirstOnesLeftOut(Dropping):
    """A fixed number of samples, always the first."""

    def forward(self, branch):
        if not self.training:
            return branch
        stays = torch.ones(len(branch), *[1] * (branch.ndim - 1))
        stays[: int(self.rate * len(branch))] = 0
        return branch * stays / (1 - self.rate)


class WithoutSuper(nn.Module):
    def __init__(self, rate):
        self.rate = rate

    def forward(self, branch):
        if not self.training:
            return branch
        return branch * stays_for(branch, self.rate) / (1 - self.rate)


class DividesByZero(Dropping):
    """Right but at rate 0, where 0 is divided by 0."""

    def forward(self, branch):
        if not self.training:
            return branch
        stays = stays_for(branch, self.rate)
        return branch * stays / (1 - self.rate) * (self.rate / self.rate)


class LeftOutOnesPassed(Dropping):
    """Those that should be left out pass as they are."""

    def forward(self, branch):
        if not self.training:
            return branch
        stays = stays_for(branch, self.rate).bool()
        return torch.where(stays, branch / (1 - self.rate), branch)


class DroppedAndDivided(Dropping):
    """F.dropout scales already."""

    def forward(self, branch):
        if not self.training:
            return branch
        ones = torch.ones(len(branch), *[1] * (branch.ndim - 1))
        return branch * F.dropout(ones, self.rate) / (1 - self.rate)


class NoRandomness(Dropping):
    def forward(self, branch):
        if not self.training:
            return branch
        keep = 1 - self.rate
        return branch * torch.full((len(branch),) + (1,) * (branch.ndim - 1), keep) / keep


class AllKept(Dropping):
    def forward(self, branch):
        return branch


class CutOff(Dropping):
    def forward(self, branch):
        if not self.training:
            return branch
        return branch.detach() * stays_for(branch, self.rate) / (1 - self.rate)


class NothingInEval(Dropping):
    def forward(self, branch):
        if self.training:
            return branch * stays_for(branch, self.rate) / (1 - self.rate)
        return None


# random_masking ----------------------------------------------------------------------------------


def masked_by_take(tokens, ratio):
    B, N = tokens.shape[:2]
    noise = torch.rand(B, N)
    count = kept_count(N, ratio)
    shuffled = noise.argsort(dim=1)
    order = shuffled.argsort(dim=1)
    kept = tokens.take_along_dim(shuffled[:, :count, None], dim=1)
    return kept, order, order >= count


def masked_by_gather(tokens, ratio):
    """As the published MAE does it."""
    B, N, D = tokens.shape
    noise = torch.rand(B, N)
    count = kept_count(N, ratio)
    ids_shuffle = torch.argsort(noise, dim=1)
    ids_restore = torch.argsort(ids_shuffle, dim=1)
    ids_keep = ids_shuffle[:, :count]
    x_masked = torch.gather(tokens, 1, ids_keep.unsqueeze(-1).repeat(1, 1, D))
    mask = torch.ones([B, N])
    mask[:, :count] = 0
    mask = torch.gather(mask, 1, ids_restore)
    return x_masked, ids_restore, mask.bool()


def masked_descending(tokens, ratio):
    B, N, _ = tokens.shape
    count = kept_count(N, ratio)
    noise = torch.rand(B, N)
    shuffled = noise.argsort(dim=1, descending=True)
    order = shuffled.argsort(dim=1)
    rows = torch.arange(B)[:, None]
    kept = tokens[rows, shuffled[:, :count]]
    mask = torch.ones(B, N, dtype=torch.bool)
    mask[rows, shuffled[:, :count]] = False
    return [kept, order, mask]


def masked_by_permutations(tokens, ratio):
    B, N, _ = tokens.shape
    count = kept_count(N, ratio)
    kept, order, mask = [], torch.zeros(B, N, dtype=torch.long), []
    for b in range(B):
        shuffled = torch.randperm(N)
        order[b, shuffled] = torch.arange(N)
        kept.append(tokens[b, shuffled[:count]])
        mask.append([place >= count for place in order[b].tolist()])
    return torch.stack(kept), order, torch.tensor(mask)


def masked_in_reading_order(tokens, ratio):
    """The tokens kept stand in the order that they had; `order` says so too."""
    B, N, _ = tokens.shape
    count = kept_count(N, ratio)
    shuffled = torch.rand(B, N).argsort(dim=1)
    shuffled = torch.cat([shuffled[:, :count].sort(dim=1).values, shuffled[:, count:]], dim=1)
    order = shuffled.argsort(dim=1)
    kept = torch.stack([one[places] for one, places in zip(tokens, shuffled[:, :count])])  # noqa: B905
    return kept, order, order >= count


def masked_in_plain_python(tokens, ratio):
    B, N, _ = tokens.shape
    count = kept_count(N, ratio)
    all_kept, all_orders = [], []
    for b in range(B):
        places = list(range(N))
        random.shuffle(places)
        all_kept.append(torch.stack([tokens[b, i] for i in places[:count]]))
        all_orders.append([places.index(i) for i in range(N)])
    order = torch.tensor(all_orders)
    return torch.stack(all_kept), order, order > count - 1


def shuffle_of(tokens, ratio):
    """The parts that most wrong answers have right: the shuffle, its reverse, the count."""
    B, N, _ = tokens.shape
    shuffled = torch.rand(B, N).argsort(dim=1)
    return shuffled, shuffled.argsort(dim=1), kept_count(N, ratio)


def rows_at(tokens, places):
    return tokens.take_along_dim(places[..., None], dim=1)


def one_argsort(tokens, ratio):
    shuffled, _, count = shuffle_of(tokens, ratio)
    return rows_at(tokens, shuffled[:, :count]), shuffled, shuffled >= count


def one_argsort_for_the_order(tokens, ratio):
    shuffled, order, count = shuffle_of(tokens, ratio)
    return rows_at(tokens, shuffled[:, :count]), shuffled, order >= count


def kept_by_the_order(tokens, ratio):
    _, order, count = shuffle_of(tokens, ratio)
    return rows_at(tokens, order[:, :count]), order, order >= count


def one_noise_for_all(tokens, ratio):
    B, N, _ = tokens.shape
    count = kept_count(N, ratio)
    shuffled = torch.rand(N).argsort().expand(B, N)
    order = shuffled.argsort(dim=1)
    return rows_at(tokens, shuffled[:, :count]), order, order >= count


def one_permutation_for_all(tokens, ratio):
    B, N, _ = tokens.shape
    count = kept_count(N, ratio)
    shuffled = torch.randperm(N)
    order = shuffled.argsort().repeat(B, 1)
    return tokens[:, shuffled[:count]], order, order >= count


def count_cut_off(tokens, ratio):
    N = tokens.shape[1]
    shuffled, order, _ = shuffle_of(tokens, ratio)
    count = int(N * (1 - ratio))
    return rows_at(tokens, shuffled[:, :count]), order, order >= count


def count_of_the_masked_cut_off(tokens, ratio):
    N = tokens.shape[1]
    shuffled, order, _ = shuffle_of(tokens, ratio)
    count = N - int(N * ratio)
    return rows_at(tokens, shuffled[:, :count]), order, order >= count


def ratio_is_kept(tokens, ratio):
    N = tokens.shape[1]
    shuffled, order, _ = shuffle_of(tokens, ratio)
    count = round(N * ratio)
    return rows_at(tokens, shuffled[:, :count]), order, order >= count


def the_left_out_are_given(tokens, ratio):
    shuffled, order, count = shuffle_of(tokens, ratio)
    return rows_at(tokens, shuffled[:, count:]), order, order >= count


def the_last_are_kept(tokens, ratio):
    N = tokens.shape[1]
    shuffled, order, count = shuffle_of(tokens, ratio)
    return rows_at(tokens, shuffled[:, N - count :]), order, order >= count


def mask_upside_down(tokens, ratio):
    shuffled, order, count = shuffle_of(tokens, ratio)
    return rows_at(tokens, shuffled[:, :count]), order, order < count


def mask_off_by_one(tokens, ratio):
    shuffled, order, count = shuffle_of(tokens, ratio)
    return rows_at(tokens, shuffled[:, :count]), order, order > count


def mask_still_shuffled(tokens, ratio):
    B, N, _ = tokens.shape
    shuffled, order, count = shuffle_of(tokens, ratio)
    mask = torch.ones(B, N, dtype=torch.bool)
    mask[:, :count] = False
    return rows_at(tokens, shuffled[:, :count]), order, mask


def mask_put_in_the_wrong_way(tokens, ratio):
    shuffled, order, count = shuffle_of(tokens, ratio)
    return rows_at(tokens, shuffled[:, :count]), order, shuffled >= count


def mask_in_numbers(tokens, ratio):
    shuffled, order, count = shuffle_of(tokens, ratio)
    return rows_at(tokens, shuffled[:, :count]), order, (order >= count).float()


def mask_by_the_noise(tokens, ratio):
    """The noise is compared with the ratio: the count is then a matter of luck."""
    B, N, _ = tokens.shape
    noise = torch.rand(B, N)
    count = kept_count(N, ratio)
    shuffled = noise.argsort(dim=1)
    return rows_at(tokens, shuffled[:, :count]), shuffled.argsort(dim=1), noise > 1 - ratio


def zeros_in_the_gaps(tokens, ratio):
    _, order, count = shuffle_of(tokens, ratio)
    mask = order >= count
    return tokens * ~mask[..., None], order, mask


def filled_in_place(tokens, ratio):
    shuffled, order, count = shuffle_of(tokens, ratio)
    kept = rows_at(tokens, shuffled[:, :count])
    tokens[order >= count] = 0
    return kept, order, order >= count


def not_random(tokens, ratio):
    B, N, _ = tokens.shape
    count = kept_count(N, ratio)
    order = torch.arange(N).expand(B, N)
    return tokens[:, :count], order, order >= count


def as_luck_will_have_it(tokens, ratio):
    """Each token stays or goes by itself, so that samples keep different numbers."""
    noise = torch.rand(tokens.shape[:2])
    mask = noise < ratio
    order = noise.argsort(dim=1, descending=True).argsort(dim=1)
    kept = torch.stack([one[~left_out] for one, left_out in zip(tokens, mask)])  # noqa: B905
    return kept, order, mask


def reshaped_by_luck(tokens, ratio):
    B, N, D = tokens.shape
    mask = torch.rand(B, N) < ratio
    kept = tokens[~mask].view(B, kept_count(N, ratio), D)
    return kept, mask.long().argsort(dim=1).argsort(dim=1), mask


def first_as_they_came(tokens, ratio):
    _, order, count = shuffle_of(tokens, ratio)
    return tokens[:, :count], order, order >= count


def places_for_tokens(tokens, ratio):
    shuffled, order, count = shuffle_of(tokens, ratio)
    return shuffled[:, :count], order, order >= count


def order_upside_down(tokens, ratio):
    shuffled, _, count = shuffle_of(tokens, ratio)
    order = shuffled.flip(1)
    return rows_at(tokens, shuffled[:, :count]), order, order >= count


def index_of_two_axes(tokens, ratio):
    shuffled, order, count = shuffle_of(tokens, ratio)
    return tokens.take_along_dim(shuffled[:, :count], dim=1), order, order >= count


def gathered_by_two_axes(tokens, ratio):
    shuffled, order, count = shuffle_of(tokens, ratio)
    return tokens.gather(1, shuffled[:, :count]), order, order >= count


def seeded(tokens, ratio):
    torch.manual_seed(0)
    return masked_by_take(tokens, ratio)


def first_column_alone(tokens, ratio):
    shuffled, order, count = shuffle_of(tokens, ratio)
    return tokens.gather(1, shuffled[:, :count, None]), order, order >= count


def sorted_over_the_batch(tokens, ratio):
    B, N, _ = tokens.shape
    count = kept_count(N, ratio)
    shuffled = torch.rand(B, N).argsort(dim=0)
    order = shuffled.argsort(dim=0)
    return rows_at(tokens, shuffled[:, :count]), order, order >= count


def order_of_the_kept(tokens, ratio):
    shuffled, order, count = shuffle_of(tokens, ratio)
    return rows_at(tokens, shuffled[:, :count]), order[:, :count], order >= count


def places_of_the_kept(tokens, ratio):
    shuffled, order, count = shuffle_of(tokens, ratio)
    return rows_at(tokens, shuffled[:, :count]), shuffled[:, :count], order >= count


def all_in_a_row(tokens, ratio):
    _, order, count = shuffle_of(tokens, ratio)
    return tokens[order < count], order, order >= count


def picked_by_the_mask(tokens, ratio):
    """The right tokens, in the order that they had; `order` speaks of another."""
    B, _, D = tokens.shape
    _, order, count = shuffle_of(tokens, ratio)
    return tokens[order < count].reshape(B, count, D), order, order >= count


def mask_before_order(tokens, ratio):
    kept, order, mask = masked_by_take(tokens, ratio)
    return kept, mask, order


def only_two_results(tokens, ratio):
    kept, _, mask = masked_by_take(tokens, ratio)
    return kept, mask


def the_kept_alone(tokens, ratio):
    return masked_by_take(tokens, ratio)[0]


def with_repeats(tokens, ratio):
    B, N, _ = tokens.shape
    count = kept_count(N, ratio)
    places = torch.randint(N, (B, count))
    order = torch.rand(B, N).argsort(dim=1)
    return rows_at(tokens, places), order, order >= count


def batch_indexed(tokens, ratio):
    shuffled, order, count = shuffle_of(tokens, ratio)
    return tokens[:, shuffled[:, :count]], order, order >= count


def shuffled_opposite_ways(tokens, ratio):
    """One argsort descends, the other starts anew from the noise."""
    B, N, _ = tokens.shape
    count = kept_count(N, ratio)
    noise = torch.rand(B, N)
    shuffled = noise.argsort(dim=1, descending=True)
    order = noise.argsort(dim=1).argsort(dim=1)
    return rows_at(tokens, shuffled[:, :count]), order, order >= count


def width_for_length(tokens, ratio):
    B, N, D = tokens.shape
    count = kept_count(D, ratio)
    shuffled = torch.rand(B, N).argsort(dim=1)
    order = shuffled.argsort(dim=1)
    return rows_at(tokens, shuffled[:, :count]), order, order >= count


def the_noise_itself(tokens, ratio):
    B, N, _ = tokens.shape
    noise = torch.rand(B, N)
    shuffled, count = noise.argsort(dim=1), kept_count(N, ratio)
    return rows_at(tokens, shuffled[:, :count]), noise, shuffled.argsort(dim=1) >= count


def lists_of_kept(tokens, ratio):
    kept, order, mask = masked_by_take(tokens, ratio)
    return list(kept), order, mask


def detached(tokens, ratio):
    return masked_by_take(tokens.detach(), ratio)


# unmask ------------------------------------------------------------------------------------------


def unmask_by_take(kept, order, mask_token, positions):
    B, K, _ = kept.shape
    N = order.shape[1]
    x = torch.cat([kept, mask_token.expand(B, N - K, -1)], dim=1)
    x = x.take_along_dim(order[..., None], dim=1)
    return torch.where((order >= K)[..., None], x + positions, x)


def unmask_by_gather(kept, order, mask_token, positions):
    B, K, D = kept.shape
    N = order.shape[1]
    x = torch.cat([kept, mask_token.repeat(B, N - K, 1)], dim=1)
    x = torch.gather(x, 1, order.unsqueeze(-1).repeat(1, 1, D))
    gap = (order >= K).float().unsqueeze(-1)
    return x + gap * positions


def unmask_by_assignment(kept, order, mask_token, positions):
    """Gaps everywhere first, then the tokens kept, each in its place."""
    K = kept.shape[1]
    x = (mask_token + positions).repeat(len(kept), 1, 1)
    places = order.argsort(dim=1)[:, :K]
    rows = torch.arange(len(kept))[:, None]
    x[rows, places] = kept
    return x


def unmask_in_loops(kept, order, mask_token, positions):
    B, K, _ = kept.shape
    samples = []
    for b in range(B):
        row = []
        for i, place in enumerate(order[b].tolist()):
            row.append(kept[b, place] if place < K else mask_token[0, 0] + positions[0, i])
        samples.append(torch.stack(row))
    return torch.stack(samples)


def unmask_by_clamping(kept, order, mask_token, positions):
    K = kept.shape[1]
    places = repeat(order.clamp(max=K - 1), "b n -> b n d", d=kept.shape[2])
    return torch.where((order < K)[..., None], kept.gather(1, places), mask_token + positions)


def filled(kept, order, gap):
    """The tokens kept, then a gap for each left out: (B, N, D), still shuffled."""
    B, K, _ = kept.shape
    return torch.cat([kept, gap.expand(B, order.shape[1] - K, -1)], dim=1)


def gaps_without_position(kept, order, mask_token, positions):
    return rows_at(filled(kept, order, mask_token), order)


def positions_for_all(kept, order, mask_token, positions):
    return rows_at(filled(kept, order, mask_token), order) + positions


def positions_for_the_kept(kept, order, mask_token, positions):
    x = rows_at(filled(kept, order, mask_token), order)
    return torch.where((order >= kept.shape[1])[..., None], x, x + positions)


def positions_before_the_way_back(kept, order, mask_token, positions):
    B, K, _ = kept.shape
    gaps = (mask_token + positions[:, K:]).expand(B, -1, -1)
    return rows_at(torch.cat([kept, gaps], dim=1), order)


def first_positions_for_gaps(kept, order, mask_token, positions):
    B, K, _ = kept.shape
    gaps = (mask_token + positions[:, : order.shape[1] - K]).expand(B, -1, -1)
    return rows_at(torch.cat([kept, gaps], dim=1), order)


def shuffled_once_more(kept, order, mask_token, positions):
    order = order.argsort(dim=1)
    x = rows_at(filled(kept, order, mask_token), order)
    return torch.where((order >= kept.shape[1])[..., None], x + positions, x)


def taken_the_wrong_way(kept, order, mask_token, positions):
    """The way back is taken by the shuffle; the gaps are found rightly."""
    x = rows_at(filled(kept, order, mask_token), order.argsort(dim=1))
    return torch.where((order >= kept.shape[1])[..., None], x + positions, x)


def scattered_by_the_order(kept, order, mask_token, positions):
    """Scatter goes the other way than gather."""
    x = filled(kept, order, mask_token)
    x = torch.zeros_like(x).scatter(1, order[..., None].expand_as(x), x)
    return torch.where((order >= kept.shape[1])[..., None], x + positions, x)


def never_put_back(kept, order, mask_token, positions):
    return filled(kept, order, mask_token)


def never_put_back_with_positions(kept, order, mask_token, positions):
    x = filled(kept, order, mask_token)
    gap = torch.arange(x.shape[1]) >= kept.shape[1]
    return torch.where(gap[:, None], x + positions, x)


def mask_token_forgotten(kept, order, mask_token, positions):
    x = rows_at(filled(kept, order, torch.zeros_like(mask_token)), order)
    return torch.where((order >= kept.shape[1])[..., None], positions, x)


def gaps_of_zeros(kept, order, mask_token, positions):
    return rows_at(filled(kept, order, torch.zeros_like(mask_token)), order)


def only_the_first_column(kept, order, mask_token, positions):
    x = filled(kept, order, mask_token).gather(1, order[..., None])
    return torch.where((order >= kept.shape[1])[..., None], x + positions, x)


def as_many_gaps_as_kept(kept, order, mask_token, positions):
    B, K, _ = kept.shape
    x = torch.cat([kept, mask_token.expand(B, K, -1)], dim=1)
    return rows_at(x, order) + (order >= K)[..., None] * positions


def n_gaps(kept, order, mask_token, positions):
    """As many gaps as tokens are appended; the ones too many are never looked up."""
    x = torch.cat([mask_token.expand(len(kept), order.shape[1], -1), kept], dim=1)
    return rows_at(x, order) + (order >= kept.shape[1])[..., None] * positions


def gaps_in_front(kept, order, mask_token, positions):
    B, K, _ = kept.shape
    x = torch.cat([mask_token.expand(B, order.shape[1] - K, -1), kept], dim=1)
    x = rows_at(x, order)
    return torch.where((order >= K)[..., None], x + positions, x)


def one_gap_alone(kept, order, mask_token, positions):
    x = torch.cat([kept, mask_token.expand(len(kept), -1, -1)], dim=1)
    return rows_at(x, order) + (order >= kept.shape[1])[..., None] * positions


def gap_off_by_one(kept, order, mask_token, positions):
    x = rows_at(filled(kept, order, mask_token), order)
    return torch.where((order > kept.shape[1])[..., None], x + positions, x)


def gaps_before_k(kept, order, mask_token, positions):
    """Asks the place in the row, where order should be asked."""
    x = rows_at(filled(kept, order, mask_token), order)
    gap = torch.arange(order.shape[1]) >= kept.shape[1]
    return torch.where(gap[:, None], x + positions, x)


def indexed_by_the_batch(kept, order, mask_token, positions):
    x = filled(kept, order, mask_token)[:, order]
    return torch.where((order >= kept.shape[1])[..., None], x + positions, x)


def first_order_for_all(kept, order, mask_token, positions):
    x = filled(kept, order, mask_token)[:, order[0]]
    return torch.where((order[0] >= kept.shape[1])[:, None], x + positions, x)


def mask_token_not_expanded(kept, order, mask_token, positions):
    N, K = order.shape[1], kept.shape[1]
    x = torch.cat([kept, mask_token.repeat(1, N - K, 1)], dim=1)
    x = rows_at(x, order)
    return torch.where((order >= K)[..., None], x + positions, x)


def positions_in_place(kept, order, mask_token, positions):
    positions += mask_token
    x = rows_at(filled(kept, order, mask_token), order)
    return torch.where((order >= kept.shape[1])[..., None], positions, x)


def gathered_by_the_order(kept, order, mask_token, positions):
    x = filled(kept, order, mask_token).gather(1, order)
    return torch.where((order >= kept.shape[1])[..., None], x + positions, x)


def gap_of_two_axes(kept, order, mask_token, positions):
    x = rows_at(filled(kept, order, mask_token), order)
    return torch.where(order >= kept.shape[1], x + positions, x)


def repeated_in_width(kept, order, mask_token, positions):
    B, K, D = kept.shape
    x = torch.cat([kept, mask_token.repeat(B, order.shape[1] - K, D)], dim=1)
    return rows_at(x, order)


def expanded_to_two_axes(kept, order, mask_token, positions):
    B, K, _ = kept.shape
    gaps = mask_token.expand(B, order.shape[1] - K)
    return rows_at(torch.cat([kept, gaps], dim=1), order)


def mask_token_for_all(kept, order, mask_token, positions):
    x = rows_at(filled(kept, order, mask_token), order)
    return x + mask_token + (order >= kept.shape[1])[..., None] * positions


def positions_cut_off(kept, order, mask_token, positions):
    return unmask_by_take(kept, order, mask_token, positions.detach())


def mask_token_cut_off(kept, order, mask_token, positions):
    return unmask_by_take(kept, order, mask_token.data, positions)


def only_the_gaps(kept, order, mask_token, positions):
    x = unmask_by_take(kept, order, mask_token, positions)
    return x * (order >= kept.shape[1])[..., None]


# drop_path_rates ---------------------------------------------------------------------------------


def rates_by_linspace(rate, depth):
    return torch.linspace(0, rate, depth).tolist()


def rates_by_numpy(rate, depth):
    return list(np.linspace(0, rate, depth))


def rates_in_a_loop(rate, depth):
    if depth == 1:
        return [0.0]
    rates = []
    for i in range(depth):
        rates.append(i / (depth - 1) * rate)
    return rates


def rates_by_steps(rate, depth):
    step = rate / (depth - 1) if depth > 1 else 0
    rates = [0.0]
    while len(rates) < depth:
        rates.append(rates[-1] + step)
    return rates


def never_the_full_rate(rate, depth):
    return [rate * i / depth for i in range(depth)]


def never_zero(rate, depth):
    return [rate * (i + 1) / depth for i in range(depth)]


def depth_one_forgotten(rate, depth):
    return [rate * i / (depth - 1) for i in range(depth)]


def depth_one_full(rate, depth):
    if depth == 1:
        return [rate]
    return [rate * i / (depth - 1) for i in range(depth)]


def rates_as_tensor(rate, depth):
    return torch.linspace(0, rate, depth)


def rates_as_tensors(rate, depth):
    return [x for x in torch.linspace(0, rate, depth)]  # noqa: C416


def rates_as_array(rate, depth):
    return np.linspace(0, rate, depth)


def rates_as_tuple(rate, depth):
    return tuple(rates_in_a_loop(rate, depth))


def rates_as_generator(rate, depth):
    return (rate * i / max(depth - 1, 1) for i in range(depth))


def one_too_many(rate, depth):
    return [rate * i / depth for i in range(depth + 1)]


def rates_backwards(rate, depth):
    return rates_in_a_loop(rate, depth)[::-1]


def same_for_all(rate, depth):
    return [rate] * depth


def shares_kept(rate, depth):
    return [1 - x for x in rates_in_a_loop(rate, depth)]


def rates_squared(rate, depth):
    return [rate * (i / max(depth - 1, 1)) ** 2 for i in range(depth)]


def whole_division(rate, depth):
    return [rate * (i // max(depth - 1, 1)) for i in range(depth)]


def rates_by_arange(rate, depth):
    return torch.arange(0, rate, rate / depth).tolist()


def steps_of_the_rate(rate, depth):
    return [rate * i for i in range(depth)]


def rates_without_rate(rate, depth):
    return [i / max(depth - 1, 1) for i in range(depth)]


def rates_rounded(rate, depth):
    return [round(x, 2) for x in rates_in_a_loop(rate, depth)]


def last_rate_alone(rate, depth):
    last = 0.0
    for i in range(depth):
        last = rate * i / max(depth - 1, 1)
    return last


# rotary ------------------------------------------------------------------------------------------


def rotary_by_halves(x, places):
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"d is {d}, an odd number; the numbers are turned in pairs")
    half = d // 2
    omega = 10000 ** (-torch.arange(half) / half)
    angles = places[:, None] * omega
    a, b = x[..., :half], x[..., half:]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


def rotary_by_rotate_half(x, places):
    """As in many language models."""
    if x.shape[-1] % 2 != 0:
        raise ValueError("d must be even")
    inv_freq = 1.0 / (10000 ** (torch.arange(0, x.shape[-1], 2).float() / x.shape[-1]))
    freqs = torch.outer(places.float(), inv_freq)
    emb = torch.cat((freqs, freqs), dim=-1)
    x1, x2 = x.chunk(2, dim=-1)
    return x * emb.cos() + torch.cat((-x2, x1), dim=-1) * emb.sin()


def rotary_by_complex(x, places):
    if x.shape[-1] % 2:
        raise ValueError("odd width")
    half = x.shape[-1] // 2
    points = torch.complex(x[..., :half], x[..., half:])
    omega = torch.exp(-math.log(10000) * torch.arange(half) / half)
    turns = torch.polar(torch.ones(len(places), half), places.float()[:, None] * omega)
    turned = points * turns
    return torch.cat([turned.real, turned.imag], dim=-1)


def rotary_by_matrices(x, places):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("d is odd")
    out = torch.zeros_like(x)
    for n, place in enumerate(places.tolist()):
        for k in range(d // 2):
            angle = place * 10000 ** (-k / (d // 2))
            cos, sin = math.cos(angle), math.sin(angle)
            turn = torch.tensor([[cos, -sin], [sin, cos]])
            out[:, :, n, [k, k + d // 2]] = x[:, :, n, [k, k + d // 2]] @ turn.T
    return out


def turned(
    x,
    places,
    sign=1.0,
    omega=None,
    parts=None,
    join=lambda a, b: torch.cat([a, b], dim=-1),
    shift=0,
):
    """The right way, with one part of it another."""
    d = x.shape[-1]
    if d % 2:
        raise ValueError("d is odd")
    half = d // 2
    if omega is None:
        omega = 10000 ** (-torch.arange(half) / half)
    a, b = parts(x) if parts else x.chunk(2, dim=-1)
    angles = sign * (places + shift)[:, None] * omega
    return join(a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos())


def neighbours_turned(x, places):
    """Pairs of neighbours, as in the paper (RoFormer)."""
    return turned(
        x,
        places,
        parts=lambda x: (x[..., 0::2], x[..., 1::2]),
        join=lambda a, b: torch.stack([a, b], dim=-1).flatten(-2),
    )


def neighbours_to_halves(x, places):
    return turned(x, places, parts=lambda x: (x[..., 0::2], x[..., 1::2]))


def clockwise(x, places):
    return turned(x, places, sign=-1)


def slow_by_half(x, places):
    half = x.shape[-1] // 2
    return turned(x, places, omega=10000 ** (-torch.arange(half) / x.shape[-1]))


def faster_and_faster(x, places):
    half = x.shape[-1] // 2
    return turned(x, places, omega=10000 ** (torch.arange(half) / half))


def both_ends(x, places):
    half = x.shape[-1] // 2
    return turned(x, places, omega=10000 ** (-torch.arange(half) / max(half - 1, 1)))


def base_of_a_hundred(x, places):
    half = x.shape[-1] // 2
    return turned(x, places, omega=100 ** (-torch.arange(half) / half))


def k_from_one(x, places):
    half = x.shape[-1] // 2
    return turned(x, places, omega=10000 ** (-torch.arange(1, half + 1) / half))


def twice_k(x, places):
    half = x.shape[-1] // 2
    return turned(x, places, omega=10000 ** (-2 * torch.arange(half) / half))


def one_speed(x, places):
    return turned(x, places, omega=torch.ones(x.shape[-1] // 2))


def place_numbers(x, places):
    return turned(x, torch.arange(x.shape[2]))


def places_from_one(x, places):
    return turned(x, places, shift=1)


def places_cut(x, places):
    return turned(x, places.long())


def halves_swapped(x, places):
    return turned(x, places, join=lambda a, b: torch.cat([b, a], dim=-1))


def joined_by_turns(x, places):
    return turned(x, places, join=lambda a, b: torch.stack([a, b], dim=-1).flatten(-2))


def sines_and_cosines_swapped(x, places):
    if x.shape[-1] % 2:
        raise ValueError("odd")
    half = x.shape[-1] // 2
    angles = places[:, None] * 10000 ** (-torch.arange(half) / half)
    a, b = x.chunk(2, dim=-1)
    sin, cos = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


def both_minus(x, places):
    if x.shape[-1] % 2:
        raise ValueError("odd")
    half = x.shape[-1] // 2
    angles = places[:, None] * 10000 ** (-torch.arange(half) / half)
    a, b = x.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin - b * cos], dim=-1)


def both_plus(x, places):
    if x.shape[-1] % 2:
        raise ValueError("odd")
    half = x.shape[-1] // 2
    angles = places[:, None] * 10000 ** (-torch.arange(half) / half)
    a, b = x.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos + b * sin, a * sin + b * cos], dim=-1)


def second_from_the_turned(x, places):
    """The new a is used where the old one is meant."""
    if x.shape[-1] % 2:
        raise ValueError("odd")
    half = x.shape[-1] // 2
    angles = places[:, None] * 10000 ** (-torch.arange(half) / half)
    a, b = x.chunk(2, dim=-1)
    a = a * angles.cos() - b * angles.sin()
    b = a * angles.sin() + b * angles.cos()
    return torch.cat([a, b], dim=-1)


def turned_in_place(x, places):
    result = turned(x, places)
    x[:] = result
    return x


def turned_half_by_half(x, places):
    """In place, so that b meets the new a."""
    half = x.shape[-1] // 2
    if x.shape[-1] % 2:
        raise ValueError("odd")
    angles = places[:, None] * 10000 ** (-torch.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    x[..., :half] = a * angles.cos() - b * angles.sin()
    x[..., half:] = a * angles.sin() + b * angles.cos()
    return x


def odd_not_refused(x, places):
    half = x.shape[-1] // 2
    angles = places[:, None] * 10000 ** (-torch.arange(half) / half)
    a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos, rest], dim=-1)


def odd_left_to_torch(x, places):
    half = x.shape[-1] // 2
    angles = places[:, None] * 10000 ** (-torch.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


def odd_asserted(x, places):
    assert x.shape[-1] % 2 == 0, "d must be even"
    return turned(x, places)


def angles_by_head(x, places):
    """Heads are taken for tokens."""
    return turned(x.transpose(1, 2), places[: x.shape[1]]).transpose(1, 2)


def angles_at_the_heads(x, places):
    """The angles get an axis too many, and meet the heads."""
    half = x.shape[-1] // 2
    if x.shape[-1] % 2:
        raise ValueError("odd")
    angles = (places[:, None] * 10000 ** (-torch.arange(half) / half))[:, None]
    a, b = x[..., :half], x[..., half:]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


def exponent_in_pieces(x, places):
    half = x.shape[-1] // 2
    return turned(x, places, omega=10000 ** -torch.arange(half) / half)


def speeds_for_all_numbers(x, places):
    d = x.shape[-1]
    return turned(x, places, omega=10000 ** (-torch.arange(d) / (d / 2)))


def cut_along_the_batch(x, places):
    return turned(x, places, parts=lambda x: x.chunk(2))


def angles_in_degrees(x, places):
    return turned(x, places * math.pi / 180)


def added_sines(x, places):
    """Positions are added, as lesson 02 does."""
    if x.shape[-1] % 2:
        raise ValueError("odd")
    half = x.shape[-1] // 2
    angles = places[:, None] * 10000 ** (-torch.arange(half) / half)
    return x + torch.cat([angles.sin(), angles.cos()], dim=-1)


def not_turned(x, places):
    if x.shape[-1] % 2:
        raise ValueError("odd")
    return x.clone()


def first_half_alone(x, places):
    return turned(x, places, join=lambda a, b: a)


def two_halves(x, places):
    return turned(x, places, join=lambda a, b: (a, b))


# drop_kind ---------------------------------------------------------------------------------------


def kind_by_alike(outputs):
    zero = outputs == 0
    if (zero == zero[:, :1, :1]).all():
        return "sample"
    if (zero == zero[:, :, :1]).all():
        return "token"
    return "number"


def kind_by_counts(outputs):
    _, N, D = outputs.shape
    zeros = (outputs == 0).sum(dim=-1)
    if not ((zeros == 0) | (zeros == D)).all():
        return "number"
    per_sample = zeros.sum(dim=1)
    return "sample" if ((per_sample == 0) | (per_sample == N * D)).all() else "token"


def kind_by_spread(outputs):
    if outputs.amax((1, 2)).sub(outputs.amin((1, 2))).abs().max() < 1e-6:
        return "sample"
    if outputs.std(dim=2).max() < 1e-6:
        return "token"
    return "number"


def kind_in_loops(outputs):
    tokens_mixed = samples_mixed = False
    for sample in outputs:
        if len(set(sample.flatten().tolist())) > 1:
            samples_mixed = True
        for token in sample:
            if len(set(token.tolist())) > 1:
                tokens_mixed = True
    if tokens_mixed:
        return "number"
    return "token" if samples_mixed else "sample"


def kind_by_unique(outputs):
    for axes, name in ((1, "sample"), (2, "token")):
        rows = outputs.flatten(0, axes - 1).flatten(1)
        if all(row.unique().numel() == 1 for row in rows):
            return name
    return "number"


def first_sample_alone(outputs):
    zero = outputs[0] == 0
    if zero.all() or not zero.any():
        return "sample"
    if (zero == zero[:, :1]).all():
        return "token"
    return "number"


def first_token_alone(outputs):
    zero = outputs == 0
    if (zero == zero[:, :1, :1]).all():
        return "sample"
    first = zero[0, 0]
    return "token" if first.all() or not first.any() else "number"


def any_empty_sample(outputs):
    zero = outputs == 0
    if zero.all(dim=2).all(dim=1).any():
        return "sample"
    if zero.all(dim=2).any():
        return "token"
    return "number"


def any_empty_token(outputs):
    zero = outputs == 0
    if (zero == zero[:, :1, :1]).all():
        return "sample"
    return "token" if zero.all(dim=2).any() else "number"


def token_asked_first(outputs):
    zero = outputs == 0
    if (zero == zero[:, :, :1]).all():
        return "token"
    if (zero == zero[:, :1, :1]).all():
        return "sample"
    return "number"


def axes_swapped(outputs):
    zero = outputs == 0
    if (zero == zero[:, :1, :1]).all():
        return "sample"
    if (zero == zero[:, :1]).all():
        return "token"
    return "number"


def batch_axis_asked(outputs):
    zero = outputs == 0
    if (zero == zero[:1]).all():
        return "sample"
    if (zero == zero[:, :, :1]).all():
        return "token"
    return "number"


def half_dropped(outputs):
    two = outputs == 2
    if ((outputs == 0) | two).all() and (two == two[:, :1, :1]).all():
        return "sample"
    if ((outputs == 0) | two).all() and (two == two[:, :, :1]).all():
        return "token"
    return "number"


def capital(outputs):
    return kind_by_alike(outputs).capitalize()


def in_plural(outputs):
    return kind_by_alike(outputs) + "s"


def numbered_kind(outputs):
    return ["sample", "token", "number"].index(kind_by_alike(outputs))


def always_number(outputs):
    return "number"


def always_sample(outputs):
    return "sample"


def two_tokens_alone(outputs):
    zero = outputs == 0
    if (zero == zero[:, :, :1]).all():
        return "sample" if (zero[:, 0] == zero[:, 1]).all() else "token"
    return "number"


def two_numbers_alone(outputs):
    zero = outputs == 0
    if (zero == zero[:, :1, :1]).all():
        return "sample"
    return "token" if (zero[..., 0] == zero[..., 1]).all() else "number"


def by_the_share(outputs):
    """The more pieces, the nearer the share is to a half: it is not."""
    share = (outputs == 0).float().mean().item()
    if share < 0.3:
        return "sample"
    return "token" if share < 0.6 else "number"


def kind_for_sizes(outputs):
    zero = (outputs == 0).reshape(16, 12, 10)
    return kind_by_alike(zero.logical_not().float())


def kinds_turned_round(outputs):
    return {"sample": "number", "token": "token", "number": "sample"}[kind_by_alike(outputs)]


def kind_printed(outputs):
    print(kind_by_alike(outputs))


def majority(outputs):
    """Asks what most do."""
    zero = outputs == 0
    alike = (zero == zero[:, :1, :1]).flatten(1).all(dim=1).float().mean()
    if alike > 0.3:
        return "sample"
    return "token" if (zero == zero[:, :, :1]).all(dim=2).float().mean() > 0.3 else "number"


RIGHT = {
    "fuse_qkv": [fused_by_pattern, fused_by_permute, fused_row_by_row, fused_by_a_linear],
    "DropPath": [DropByBernoulli, DropByDropout, DropByWhere, DropInALoop, DropByFloor],
    "random_masking": [
        masked_by_take,
        masked_by_gather,
        masked_descending,
        masked_by_permutations,
        masked_in_reading_order,
        masked_in_plain_python,
    ],
    "unmask": [
        unmask_by_take,
        unmask_by_gather,
        unmask_by_assignment,
        unmask_in_loops,
        unmask_by_clamping,
    ],
    "drop_path_rates": [rates_by_linspace, rates_by_numpy, rates_in_a_loop, rates_by_steps],
    "rotary": [rotary_by_halves, rotary_by_rotate_half, rotary_by_complex, rotary_by_matrices],
    "drop_kind": [kind_by_alike, kind_by_counts, kind_by_spread, kind_in_loops, kind_by_unique],
}

WRONG = {
    "fuse_qkv": [
        (order_not_looked_at, 'always stand in the order "qkv h d"'),
        (only_reshaped, "a reshape alone moves nothing"),
        (always_the_einops_order, 'always stand in the order "h d qkv"'),
        (orders_swapped, "the two orders are swapped"),
        (heads_and_width_swapped, "heads and their width are swapped"),
        (heads_taken_for_their_width, "mixed up"),
        (head_by_head, 'this is "h qkv d"'),
        (bias_forgotten, "the bias is missing"),
        (bias_left_in_order, "the same order of its rows"),
        (bias_is_none, "that is not there must not be"),
        (bias_taken_for_granted, "None for its bias"),
        (bias_of_zeros, "that is not there must not be"),
        (weight_turned, "the weight is turned"),
        (side_by_side, "side by side"),
        (keys_first, "queries come first"),
        (values_first, "queries come first"),
        (queries_three_times, "three times the queries"),
        (a_pair, "give a dictionary"),
        (a_linear_itself, "give a dictionary"),
        (the_weight_alone, "the weight alone"),
        (three_still_apart, "still apart"),
        (axes_still_apart, "still apart"),
        (named_as_in_the_model, "of the fused Linear itself"),
        (the_way_back, "the way back"),
        (biases_written, "changes the tensor that it was given"),
        (width_for_granted, "its in_features are another number"),
    ],
    "DropPath": [
        (DropNumbers, "single numbers"),
        (DropNumbersByDropout, "single numbers"),
        (DropTokens, "single tokens"),
        (DropTheBatch, "the whole batch"),
        (DropUnscaled, "not scaled"),
        (DropTimesKeep, "multiplied by 1 - rate"),
        (DropOverRate, "divided by rate"),
        (KeepAtRate, "the chance of being left out"),
        (KeepAtRateAndScale, "for the chance of staying"),
        (DropInEvalToo, "in evaluation mode too"),
        (DropInEvalOnly, "the wrong way round"),
        (ScaledInEval, "multiplied by 1 - rate"),
        (ScaledTwice, "multiplied by 1 - rate"),
        (DrawnOnce, "draw anew"),
        (SeededEachTime, "draw anew"),
        (ThreeAxesOnly, "branch.ndim - 1"),
        (UnpacksThreeAxes, "any number of axes"),
        (OneAxisOnly, "need the shape (B, 1, …)"),
        (InPlace, "writes into the branch"),
        (ZeroedInPlace, "writes into the branch"),
        (NormalNoise, "is not `rate`"),
        (HalfAlways, "is not `rate`"),
        (OnlyTheKept, "keeps its size"),
        (FirstOnesLeftOut, "draw anew"),
        (WithoutSuper, "super().__init__()"),
        (DividesByZero, "divided by 0"),
        (AllKept, "nothing is left out"),
        (LeftOutOnesPassed, "nothing is left out"),
        (NoRandomness, "nothing is left out"),
        (DroppedAndDivided, "scaled twice"),
        (CutOff, "no gradient passes"),
        (NothingInEval, "forward gives nothing"),
    ],
    "random_masking": [
        (one_argsort, "the second argsort is missing"),
        (one_argsort_for_the_order, "the second argsort is missing"),
        (kept_by_the_order, "taken by `order`"),
        (one_noise_for_all, "all samples of a batch keep the same"),
        (one_permutation_for_all, "all samples of a batch keep the same"),
        (count_cut_off, "int cuts"),
        (count_of_the_masked_cut_off, "rounds the wrong way"),
        (ratio_is_kept, "the share to leave out"),
        (the_left_out_are_given, "these are the tokens left out"),
        (the_last_are_kept, "from its end"),
        (mask_upside_down, "upside down"),
        (mask_off_by_one, "off by one"),
        (mask_still_shuffled, "the shuffled row"),
        (mask_put_in_the_wrong_way, "compares `shuffled` with K"),
        (mask_in_numbers, "True and False"),
        (mask_by_the_noise, "the mask"),
        (zeros_in_the_gaps, "set to 0"),
        (filled_in_place, "writes zeros"),
        (not_random, "nothing is drawn"),
        (seeded, "the same tokens are kept in every call"),
        (first_column_alone, "as wide as what it gathers"),
        (sorted_over_the_batch, "along the batch"),
        (order_of_the_kept, "the order is cut"),
        (places_of_the_kept, "the order is cut"),
        (all_in_a_row, "joined in one row"),
        (picked_by_the_mask, "in the order in which they came"),
        (mask_before_order, "(kept, order, mask)"),
        (only_two_results, "the order is missing"),
        (the_kept_alone, "the first alone"),
        (with_repeats, "kept twice"),
        (batch_indexed, "tokens[:, places]"),
        (shuffled_opposite_ways, "shuffled the other way round"),
        (width_for_length, "tokens.shape[1]"),
        (the_noise_itself, "the noise itself"),
        (lists_of_kept, "must each be one tensor"),
        (detached, "no gradient passes"),
        (as_luck_will_have_it, "the same number of tokens"),
        (reshaped_by_luck, "the same number of tokens"),
        (first_as_they_came, "as they came"),
        (places_for_tokens, "these are places"),
        (order_upside_down, "does not lead to the tokens kept"),
        (index_of_two_axes, "as many axes"),
        (gathered_by_two_axes, "as many axes"),
    ],
    "unmask": [
        (gaps_without_position, "the gaps have no position"),
        (positions_for_all, "added to every token"),
        (positions_for_the_kept, "the other way round"),
        (positions_before_the_way_back, "while the row is still shuffled"),
        (first_positions_for_gaps, "while the row is still shuffled"),
        (shuffled_once_more, "take_along_dim"),
        (taken_the_wrong_way, "take_along_dim"),
        (scattered_by_the_order, "take_along_dim"),
        (never_put_back, "not put back"),
        (never_put_back_with_positions, "not put back"),
        (mask_token_forgotten, "the mask token is missing"),
        (gaps_of_zeros, "the gaps hold zeros"),
        (only_the_first_column, "the first number of each token"),
        (as_many_gaps_as_kept, "the number of gaps is wrong"),
        (n_gaps, "in front of the tokens kept"),
        (gaps_in_front, "in front of the tokens kept"),
        (one_gap_alone, "the number of gaps is wrong"),
        (gap_off_by_one, "misses a gap"),
        (gaps_before_k, "need not be gaps"),
        (indexed_by_the_batch, "x[:, order]"),
        (first_order_for_all, "the order of the first"),
        (mask_token_not_expanded, "expand the mask token"),
        (positions_in_place, "writes into what it was given"),
        (mask_token_for_all, "added to every token"),
        (positions_cut_off, "the positions get no gradient"),
        (mask_token_cut_off, "the mask token gets no gradient"),
        (only_the_gaps, "the gaps alone"),
        (gathered_by_the_order, "as many axes"),
        (gap_of_two_axes, "a third axis"),
        (repeated_in_width, "expanded to (B, N - K, D)"),
        (expanded_to_two_axes, "expand fits axes of 1"),
    ],
    "drop_path_rates": [
        (never_the_full_rate, "does not reach the rate"),
        (never_zero, "starts above 0"),
        (depth_one_forgotten, "give [0.0]"),
        (depth_one_full, "give [0.0]"),
        (rates_as_tensor, ".tolist()"),
        (rates_as_tensors, "the list holds tensors"),
        (rates_as_array, ".tolist()"),
        (rates_as_tuple, "a tuple"),
        (rates_as_generator, "put it in [ … ]"),
        (one_too_many, "one number too many"),
        (rates_backwards, "backwards"),
        (same_for_all, "the same rate"),
        (shares_kept, "the shares that stay"),
        (rates_squared, "not equal"),
        (whole_division, "divide by /"),
        (rates_by_arange, "does not reach the rate"),
        (steps_of_the_rate, "as large as the rate"),
        (rates_without_rate, "multiply by `rate`"),
        (rates_rounded, "rounded"),
        (last_rate_alone, "this is one number"),
    ],
    "rotary": [
        (neighbours_turned, "neighbours"),
        (neighbours_to_halves, "put back as halves"),
        (clockwise, "clockwise"),
        (slow_by_half, "k / d in place of"),
        (faster_and_faster, "without its minus"),
        (both_ends, "k / (d/2 - 1)"),
        (base_of_a_hundred, "a base of 100"),
        (k_from_one, "count k from 0"),
        (twice_k, "2k belongs over d"),
        (one_speed, "all pairs turn alike"),
        (place_numbers, "the places are not used"),
        (places_from_one, "counted from 1"),
        (places_cut, "lose their fractions"),
        (halves_swapped, "have changed places"),
        (joined_by_turns, "put back by turns"),
        (sines_and_cosines_swapped, "swapped"),
        (both_minus, "a sign is wrong"),
        (both_plus, "a sign is wrong"),
        (second_from_the_turned, "from the new first half"),
        (turned_in_place, "changes the tensor that it was given"),
        (turned_half_by_half, "changes the tensor that it was given"),
        (odd_not_refused, "raise a ValueError"),
        (odd_left_to_torch, "raise a ValueError"),
        (odd_asserted, "raise a ValueError"),
        (angles_by_head, "the angles follow the heads"),
        (angles_at_the_heads, "expected"),
        (exponent_in_pieces, "numbers are wrong"),
        (speeds_for_all_numbers, "expected"),
        (cut_along_the_batch, "to unpack"),
        (angles_in_degrees, "radians"),
        (added_sines, "as in lesson 02"),
        (not_turned, "nothing is turned"),
        (first_half_alone, "the first half alone"),
        (two_halves, "the two halves are apart"),
    ],
    "drop_kind": [
        (first_sample_alone, "the first sample alone"),
        (first_token_alone, "the first token alone"),
        (any_empty_sample, "empty by chance"),
        (any_empty_token, "empty by chance"),
        (token_asked_first, "ask for samples first"),
        (axes_swapped, "the last axis"),
        (batch_axis_asked, "samples compared with each other"),
        (half_dropped, "a rate of 0.5"),
        (capital, "written otherwise"),
        (in_plural, "written otherwise"),
        (numbered_kind, "not its number"),
        (always_number, "always the same"),
        (always_sample, "always the same"),
        (two_tokens_alone, "two tokens alone"),
        (two_numbers_alone, "two numbers of a token"),
        (by_the_share, "share of zeros"),
        (kind_for_sizes, "outputs.shape"),
        (kinds_turned_round, "swapped"),
        (kind_printed, "returns nothing"),
        (majority, "was drawn"),
    ],
}
