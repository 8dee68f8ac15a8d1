"""Answers to lesson 04's build cells and exercises, as learners would write them."""

import math

import torch
from einops import einsum, rearrange
from torch import nn
from torch.nn import functional as F

from vit_steps.heads import merge_heads, split_heads, split_qkv

# scaled_dot_product_attention --------------------------------------------------------------------


def by_the_book(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    mixed = weights @ v
    return mixed, weights


def by_einsum(q, k, v, mask=None):
    scores = einsum(q, k, "b h i d, b h j d -> b h i j") * q.size(3) ** -0.5
    if mask is not None:
        scores.masked_fill_(mask.logical_not(), -torch.inf)
    powers = torch.exp(scores - scores.max(-1, keepdim=True).values)
    weights = powers / powers.sum(3, keepdim=True)
    return einsum(weights, v, "b h i j, b h j d -> b h i d"), weights


def by_torch(q, k, v, mask=None):
    every_key = torch.eye(k.shape[2]).expand(*k.shape[:3], k.shape[2])
    weights = F.scaled_dot_product_attention(q, k, every_key, mask)
    return F.scaled_dot_product_attention(q, k, v, mask), weights


def by_loops(q, k, v, mask=None):
    rows = []
    for i in range(q.shape[2]):
        scores = (q[:, :, i : i + 1] * k).sum(-1) / math.sqrt(k.shape[-1])
        if mask is not None:
            seen = mask.expand(*q.shape[:3], k.shape[2])[:, :, i]
            scores = torch.where(seen, scores, torch.tensor(-1e9))
        rows.append(F.softmax(scores, dim=-1))
    weights = torch.stack(rows, dim=2)
    return torch.matmul(weights, v), weights


def finish(scores, v, mask=None, dim=-1):
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=dim)
    return weights @ v, weights


def unscaled(q, k, v, mask=None):
    return finish(q @ k.transpose(-2, -1), v, mask)


def scaled_after(q, k, v, mask=None):
    weights = finish(q @ k.transpose(-2, -1), v, mask)[1] / q.shape[-1] ** 0.5
    return weights @ v, weights


def scaled_after_by_model(q, k, v, mask=None):
    embed_dim = q.shape[1] * q.shape[3]
    weights = finish(q @ k.transpose(-2, -1), v, mask)[1] / embed_dim**0.5
    return weights @ v, weights


def scaled_by_model(q, k, v, mask=None):
    return finish(q @ k.mT / merge_heads(q).shape[-1] ** 0.5, v, mask)


def root_forgotten(q, k, v, mask=None):
    return finish(q @ k.mT / q.shape[-1], v, mask)


def multiplied_by_root(q, k, v, mask=None):
    return finish(q @ k.mT * q.shape[-1] ** 0.5, v, mask)


def root_of_tokens(q, k, v, mask=None):
    return finish(q @ k.mT / q.shape[-2] ** 0.5, v, mask)


def root_of_heads(q, k, v, mask=None):
    return finish(q @ k.mT / q.shape[1] ** 0.5, v, mask)


def always_eight(q, k, v, mask=None):
    return finish(q @ k.mT / 8, v, mask)


def root_of_whole_numbers(q, k, v, mask=None):
    return finish(q @ k.mT / int(q.shape[-1] ** 0.5), v, mask)


def root_rounded(q, k, v, mask=None):
    return finish(q @ k.mT / round(math.sqrt(q.shape[-1])), v, mask)


def half_of_width(q, k, v, mask=None):
    return finish(q @ k.mT / (q.shape[-1] * 0.5), v, mask)


def root_without_brackets(q, k, v, mask=None):
    return finish(q @ k.mT / q.shape[-1] ** 1 / 2, v, mask)


def whole_half_of_width(q, k, v, mask=None):
    return finish(q @ k.mT / (q.shape[-1] // 2), v, mask)


def by_width_and_half(q, k, v, mask=None):
    return finish(q @ k.mT / q.shape[-1] * 0.5, v, mask)


def root_of_images(q, k, v, mask=None):
    return finish(q @ k.mT / q.shape[0] ** 0.5, v, mask)


def mask_as_index(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores[~mask] = float("-inf")
    return finish(scores, v)


def scaled_twice(q, k, v, mask=None):
    root = q.shape[-1] ** 0.5
    return finish((q / root) @ (k / root).mT, v, mask)


def over_queries(q, k, v, mask=None):
    return finish(q @ k.mT / q.shape[-1] ** 0.5, v, mask, dim=-2)


def over_heads(q, k, v, mask=None):
    return finish(q @ k.mT / q.shape[-1] ** 0.5, v, mask, dim=1)


def keys_ask(q, k, v, mask=None):
    return finish(k @ q.mT / q.shape[-1] ** 0.5, v, mask)


def all_axes_turned(q, k, v, mask=None):
    return finish(q @ k.T / q.shape[-1] ** 0.5, v, mask)


def tokens_and_heads_swapped(q, k, v, mask=None):
    return finish(q @ k.transpose(1, 2) / q.shape[-1] ** 0.5, v, mask)


def keys_not_turned(q, k, v, mask=None):
    return finish(q @ k / q.shape[-1] ** 0.5, v, mask)


def pairwise_products(q, k, v, mask=None):
    scores = q * k / q.shape[-1] ** 0.5
    weights = scores.softmax(dim=-1)
    return weights * v, weights


def weights_first(q, k, v, mask=None):
    return by_the_book(q, k, v, mask)[::-1]


def mixed_alone(q, k, v, mask=None):
    return by_the_book(q, k, v, mask)[0]


def scores_for_weights(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(dim=-1) @ v, scores


def without_softmax(q, k, v, mask=None):
    weights = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ v, weights


def mask_forgotten(q, k, v, mask=None):
    return by_the_book(q, k, v)


def mask_lost(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores.masked_fill(~mask, float("-inf"))
    return finish(scores, v)


def mask_upside_down(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask, float("-inf"))
    return finish(scores, v)


def masked_with_zero(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, 0)
    return finish(scores, v)


def mask_times_scores(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores * mask
    return finish(scores, v)


def masked_with_minus_one(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = torch.where(mask, scores, -1.0)
    return finish(scores, v)


def mask_added(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores + mask
    return finish(scores, v)


def masked_after_softmax(q, k, v, mask=None):
    _, weights = by_the_book(q, k, v)
    if mask is not None:
        weights = weights * mask
    return weights @ v, weights


def masked_with_infinity(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("inf"))
    return finish(scores, v)


def mask_turned(q, k, v, mask=None):
    return by_the_book(q, k, v, None if mask is None else mask.mT)


def mask_fill_called(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.mask_fill(~mask, float("-inf"))
    return finish(scores, v)


def mask_expected(q, k, v, mask):
    return finish(q @ k.mT / q.shape[-1] ** 0.5, v, mask)


def mask_always_there(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return finish(scores.masked_fill(~mask, float("-inf")), v)


def if_mask(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask:
        scores = scores.masked_fill(~mask, float("-inf"))
    return finish(scores, v)


def columns_mix(q, k, v, mask=None):
    _, weights = by_the_book(q, k, v, mask)
    return weights.mT @ v, weights


def queries_mixed(q, k, v, mask=None):
    _, weights = by_the_book(q, k, v, mask)
    return weights @ q, weights


def keys_mixed(q, k, v, mask=None):
    _, weights = by_the_book(q, k, v, mask)
    return weights @ k, weights


def merged_too(q, k, v, mask=None):
    mixed, weights = by_the_book(q, k, v, mask)
    return merge_heads(mixed), weights


def scaled_in_place(q, k, v, mask=None):
    q /= q.shape[-1] ** 0.5
    return finish(q @ k.mT, v, mask)


def root_of_a_number(q, k, v, mask=None):
    return finish(q @ k.mT / torch.sqrt(q.shape[-1]), v, mask)


def cut_off(q, k, v, mask=None):
    mixed, weights = by_the_book(q, k, v, mask)
    return torch.tensor(mixed.tolist()), torch.tensor(weights.tolist())


# MultiHeadAttention ------------------------------------------------------------------------------


class Plain(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        mixed, weights = by_the_book(q, k, v, mask)
        y = self.proj(merge_heads(mixed))
        if return_attention:
            return y, weights
        return y


class ByTorchAlone(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.head_dim = heads, dim // heads
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, mask=None, return_attention=False):
        B, N, D = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        scores = (q * self.head_dim**-0.5) @ k.transpose(-2, -1)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        weights = scores.softmax(-1)
        y = self.proj((weights @ v).transpose(1, 2).reshape(B, N, D))
        return (y, weights) if return_attention else y


class Fused(Plain):
    def forward(self, x, mask=None, return_attention=False):
        if return_attention:
            return super().forward(x, mask, True)
        wide_q, wide_k, wide_v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (split_heads(wide, self.num_heads) for wide in (wide_q, wide_k, wide_v))
        return self.proj(merge_heads(F.scaled_dot_product_attention(q, k, v, mask)))


class HeadByHead(Plain):
    def forward(self, x, mask=None, return_attention=False):
        wide = self.qkv(x)
        D = x.shape[-1]
        d = D // self.num_heads
        read, shares = [], []
        for head in range(self.num_heads):
            q, k, v = (wide[:, :, part * D + head * d :][:, :, :d] for part in range(3))
            mixed, weights = by_the_book(q, k, v, mask)
            read.append(mixed)
            shares.append(weights)
        y = self.proj(torch.cat(read, dim=-1))
        return (y, torch.stack(shares, dim=1)) if return_attention else y


class ProjForgotten(Plain):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        mixed, weights = by_the_book(q, k, v, mask)
        y = merge_heads(mixed)
        return (y, weights) if return_attention else y


class ProjNeverMade(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)

    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        mixed, weights = by_the_book(q, k, v, mask)
        y = merge_heads(mixed)
        return (y, weights) if return_attention else y


class MergedByReshape(Plain):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        mixed, weights = by_the_book(q, k, v, mask)
        y = self.proj(mixed.reshape(x.shape))
        return (y, weights) if return_attention else y


class NotMerged(Plain):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        mixed, weights = by_the_book(q, k, v, mask)
        y = self.proj(mixed)
        return (y, weights) if return_attention else y


class MaskForgotten(Plain):
    def forward(self, x, mask=None, return_attention=False):
        return super().forward(x, None, return_attention)


class NeverTheWeights(Plain):
    def forward(self, x, mask=None, return_attention=False):
        return super().forward(x, mask)


class AlwaysTheWeights(Plain):
    def forward(self, x, mask=None, return_attention=False):
        return super().forward(x, mask, True)


class WeightsOnTheWrongWord(Plain):
    def forward(self, x, mask=None, return_attention=False):
        y, weights = super().forward(x, mask, True)
        return y if return_attention else (y, weights)


class WeightsAlone(Plain):
    def forward(self, x, mask=None, return_attention=False):
        y, weights = super().forward(x, mask, True)
        return weights if return_attention else y


class WeightsFirst(Plain):
    def forward(self, x, mask=None, return_attention=False):
        y, weights = super().forward(x, mask, True)
        return (weights, y) if return_attention else y


class WeightsOverHeads(Plain):
    def forward(self, x, mask=None, return_attention=False):
        y, weights = super().forward(x, mask, True)
        return (y, weights.mean(dim=1)) if return_attention else y


class TwelveHeads(Plain):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), 12)
        mixed, weights = by_the_book(q, k, v, mask)
        y = self.proj(merge_heads(mixed))
        return (y, weights) if return_attention else y


class OneWideHead(Plain):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        mixed, weights = by_the_book(q, k, v, mask)
        y = self.proj(mixed)
        return (y, weights) if return_attention else y


class HeadsOutermost(Plain):
    def forward(self, x, mask=None, return_attention=False):
        pattern = "b n (h qkv d) -> qkv b h n d"
        q, k, v = rearrange(self.qkv(x), pattern, qkv=3, h=self.num_heads)
        mixed, weights = by_the_book(q, k, v, mask)
        y = self.proj(merge_heads(mixed))
        return (y, weights) if return_attention else y


class RolesInnermost(Plain):
    def forward(self, x, mask=None, return_attention=False):
        pattern = "b n (h d qkv) -> qkv b h n d"
        q, k, v = rearrange(self.qkv(x), pattern, qkv=3, h=self.num_heads)
        mixed, weights = by_the_book(q, k, v, mask)
        y = self.proj(merge_heads(mixed))
        return (y, weights) if return_attention else y


class WithResidual(Plain):
    def forward(self, x, mask=None, return_attention=False):
        y, weights = super().forward(x, mask, True)
        return (x + y, weights) if return_attention else x + y


class NoBias(Plain):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=False)


class NarrowQkv(Plain):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        self.qkv = nn.Linear(embed_dim, embed_dim)


class WideProj(Plain):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        self.proj = nn.Linear(3 * embed_dim, embed_dim)


class KeysFirst(Plain):
    def forward(self, x, mask=None, return_attention=False):
        k, q, v = split_qkv(self.qkv(x), self.num_heads)
        mixed, weights = by_the_book(q, k, v, mask)
        y = self.proj(merge_heads(mixed))
        return (y, weights) if return_attention else y


class ValuesFirst(Plain):
    def forward(self, x, mask=None, return_attention=False):
        v, k, q = split_qkv(self.qkv(x), self.num_heads)
        mixed, weights = by_the_book(q, k, v, mask)
        y = self.proj(merge_heads(mixed))
        return (y, weights) if return_attention else y


class ProjFirst(Plain):
    def __init__(self, embed_dim, num_heads):
        nn.Module.__init__(self)
        self.num_heads = num_heads
        self.proj = nn.Linear(embed_dim, embed_dim)
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)


class OtherNames(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.to_qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.to_out = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.to_qkv(x), self.num_heads)
        mixed, weights = by_the_book(q, k, v, mask)
        y = self.to_out(merge_heads(mixed))
        return (y, weights) if return_attention else y


class ThreeLinears(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q = nn.Linear(embed_dim, embed_dim)
        self.k = nn.Linear(embed_dim, embed_dim)
        self.v = nn.Linear(embed_dim, embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, mask=None, return_attention=False):
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.q, self.k, self.v))
        mixed, weights = by_the_book(q, k, v, mask)
        y = self.proj(merge_heads(mixed))
        return (y, weights) if return_attention else y


class HeadsForgotten(Plain):
    def __init__(self, embed_dim, num_heads):
        nn.Module.__init__(self)
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)


class SuperForgotten(Plain):
    def __init__(self, embed_dim, num_heads):
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)


class QkvSkipped(Plain):
    def forward(self, x, mask=None, return_attention=False):
        tokens = torch.cat([x, x, x], dim=-1)
        q, k, v = split_qkv(tokens, self.num_heads)
        mixed, weights = by_the_book(q, k, v, mask)
        y = self.proj(merge_heads(mixed))
        return (y, weights) if return_attention else y


class ScaleForgotten(Plain):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        mixed, weights = unscaled(q, k, v, mask)
        y = self.proj(merge_heads(mixed))
        return (y, weights) if return_attention else y


class NoForward(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forwards(self, x, mask=None, return_attention=False):
        return x


# effective_keys ----------------------------------------------------------------------------------


def keys_by_xlogy(weights):
    return torch.exp(-torch.special.xlogy(weights, weights).sum(dim=-1))


def keys_by_logs(weights):
    logs = torch.where(weights > 0, weights, 1.0).log()
    return (-(weights * logs).sum(-1)).exp()


def keys_by_doubling(weights):
    """By a measure of bits, which gives the same number."""
    return 2 ** -(weights * weights.clamp_min(1e-30).log2()).sum(-1)


def keys_by_distribution(weights):
    return torch.distributions.Categorical(probs=weights).perplexity()


def keys_by_nansum(weights):
    return torch.exp(-(weights * weights.log()).nansum(dim=3))


def nan_keys(weights):
    return torch.exp(-(weights * torch.log(weights)).sum(dim=-1))


def entropy_alone(weights):
    return torch.special.entr(weights).sum(dim=-1)


def sign_lost(weights):
    return torch.special.xlogy(weights, weights).sum(dim=-1).exp()


def along_queries(weights):
    return torch.special.entr(weights).sum(dim=-2).exp()


def mean_for_sum(weights):
    return torch.special.entr(weights).mean(dim=-1).exp()


def keys_counted(weights):
    return (weights > 0).sum(dim=-1).float()


def by_squares(weights):
    return 1 / (weights**2).sum(dim=-1)


def by_largest(weights):
    return 1 / weights.max(dim=-1).values


def keys_over_heads(weights):
    return torch.special.entr(weights).sum(dim=-1).exp().mean(dim=1)


def keys_of_mean_head(weights):
    return torch.special.entr(weights.mean(dim=1)).sum(dim=-1).exp()


def axis_kept(weights):
    return torch.special.entr(weights).sum(dim=-1, keepdim=True).exp()


def bits_for_nats(weights):
    return torch.exp(-(weights * weights.clamp_min(1e-30).log2()).sum(-1))


def nats_for_bits(weights):
    return 2 ** torch.special.entr(weights).sum(dim=-1)


def weights_by_logs_summed_apart(weights):
    return torch.exp(-weights.clamp_min(1e-30).log().sum(dim=-1))


def zeros_replaced(weights):
    weights[weights == 0] = 1e-30
    return torch.exp(-(weights * weights.log()).sum(dim=-1))


def a_little_added(weights):
    weights = weights + 0.01
    return torch.exp(-(weights * weights.log()).sum(dim=-1))


def one_number(weights):
    return torch.special.entr(weights).sum(dim=-1).exp().mean()


# local_mask --------------------------------------------------------------------------------------


def mask_by_loops(height, width, radius):
    n = height * width
    mask = torch.zeros(n + 1, n + 1, dtype=torch.bool)
    mask[0, :] = True
    mask[:, 0] = True
    for i in range(n):
        for j in range(n):
            if abs(i // width - j // width) <= radius and abs(i % width - j % width) <= radius:
                mask[i + 1, j + 1] = True
    return mask


def mask_by_chebyshev(height, width, radius):
    places = torch.cartesian_prod(torch.arange(height), torch.arange(width)).float()
    return F.pad(torch.cdist(places, places, p=float("inf")) <= radius, (1, 0, 1, 0), value=True)


def mask_by_einops(height, width, radius):
    rows = torch.ones(height, height).triu(-radius).tril(radius)
    cols = torch.ones(width, width).triu(-radius).tril(radius)
    near = einsum(rows, cols, "a c, b d -> a b c d")
    mask = torch.ones(1 + height * width, 1 + height * width, dtype=torch.bool)
    mask[1:, 1:] = rearrange(near, "a b c d -> (a b) (c d)").bool()
    return mask


def mask_of_ints(height, width, radius):
    return mask_by_loops(height, width, radius).long()


def mask_of_floats(height, width, radius):
    mask = mask_by_loops(height, width, radius)
    return torch.zeros(mask.shape).masked_fill(~mask, float("-inf"))


def mask_hidden(height, width, radius):
    return mask_by_loops(height, width, radius).logical_not()


def mask_without_cls(height, width, radius):
    return mask_by_loops(height, width, radius)[1:, 1:]


def mask_cls_last(height, width, radius):
    return mask_by_loops(height, width, radius).roll((-1, -1), (0, 1))


def mask_cls_unseen(height, width, radius):
    mask = mask_by_loops(height, width, radius)
    mask[1:, 0] = False
    return mask


def mask_cls_blind(height, width, radius):
    mask = mask_by_loops(height, width, radius)
    mask[0, 1:] = False
    return mask


def mask_cls_alone(height, width, radius):
    mask = mask_by_loops(height, width, radius)
    mask[0, 1:] = False
    mask[1:, 0] = False
    return mask


def mask_cls_absent(height, width, radius):
    mask = mask_by_loops(height, width, radius)
    mask[0] = False
    mask[:, 0] = False
    return mask


def mask_manhattan(height, width, radius):
    places = torch.cartesian_prod(torch.arange(height), torch.arange(width)).float()
    return F.pad(torch.cdist(places, places, p=1) <= radius, (1, 0, 1, 0), value=True)


def mask_round(height, width, radius):
    places = torch.cartesian_prod(torch.arange(height), torch.arange(width)).float()
    return F.pad(torch.cdist(places, places) <= radius, (1, 0, 1, 0), value=True)


def mask_band(height, width, radius):
    n = height * width
    band = torch.ones(n, n).triu(-radius).tril(radius).bool()
    return F.pad(band, (1, 0, 1, 0), value=True)


def mask_strict(height, width, radius):
    return mask_by_loops(height, width, radius - 1)


def mask_either(height, width, radius):
    patch = torch.arange(height * width)
    row, col = patch // width, patch % width
    near = ((row - row[:, None]).abs() <= radius) | ((col - col[:, None]).abs() <= radius)
    return F.pad(near, (1, 0, 1, 0), value=True)


def mask_divided_by_height(height, width, radius):
    patch = torch.arange(height * width)
    row, col = patch // height, patch % height
    near = ((row - row[:, None]).abs() <= radius) & ((col - col[:, None]).abs() <= radius)
    return F.pad(near, (1, 0, 1, 0), value=True)


def mask_not_itself(height, width, radius):
    mask = mask_by_loops(height, width, radius)
    mask[1:, 1:].fill_diagonal_(False)
    return mask


def mask_backwards_only(height, width, radius):
    patch = torch.arange(height * width)
    row, col = patch // width, patch % width
    near = (row[:, None] - row <= radius) & (col[:, None] - col <= radius)
    return F.pad(near, (1, 0, 1, 0), value=True)


def mask_round_the_edge(height, width, radius):
    patch = torch.arange(height * width)
    down = (patch[:, None] // width - patch // width).abs()
    across = (patch[:, None] % width - patch % width).abs()
    across = torch.minimum(across, width - across)
    down = torch.minimum(down, height - down)
    return F.pad((down <= radius) & (across <= radius), (1, 0, 1, 0), value=True)


# find_fault --------------------------------------------------------------------------------------


def try_on(attend, heads=3, mask=None):
    torch.manual_seed(1)
    q, k, v = torch.randn(3, 2, heads, 20, 16)
    return q, k, v, *attend(q, k, v, mask)


def half_seen():
    torch.manual_seed(2)
    mask = torch.rand(20, 20) < 0.5
    return mask | torch.eye(20, dtype=torch.bool)


def against_torch(attend):
    q, k, v, mixed, weights = try_on(attend)
    if torch.allclose(mixed, F.scaled_dot_product_attention(q, k, v), atol=1e-4):
        mask = half_seen()
        mixed = attend(q, k, v, mask)[0]
        right = F.scaled_dot_product_attention(q, k, v, mask)
        return "right" if torch.allclose(mixed, right, atol=1e-4) else "wrong mask"
    if (weights.sum(-1) - 1).abs().max() < 1e-3:
        return "wrong scale"
    if (weights.sum(-2) - 1).abs().max() < 1e-3:
        return "wrong axis"
    return "scaled after softmax"


def by_known_forms(attend):
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 4, 6, 8)
    mask = torch.ones(6, 6, dtype=torch.bool).tril()
    weights = attend(q, k, v)[1]
    masked = attend(q, k, v, mask=mask)[1]
    scores = q @ k.mT / 8**0.5
    if torch.allclose(weights, scores.softmax(2), atol=1e-5):
        return "wrong axis"
    if not torch.allclose(weights.sum(3), torch.ones(()), atol=1e-5):
        return "scaled after softmax"
    if not torch.allclose(weights, scores.softmax(3), atol=1e-5):
        return "wrong scale"
    expected = scores.masked_fill(~mask, -torch.inf).softmax(3)
    return "right" if torch.allclose(masked, expected, atol=1e-5) else "wrong mask"


def by_hand(attend):
    """Works the weights out one by one."""
    torch.manual_seed(3)
    q, k, v = torch.randn(3, 1, 2, 4, 5)
    mask = torch.tensor([[1, 0, 0, 1], [1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1]]).bool()
    bare, masked = attend(q, k, v)[1][0, 1], attend(q, k, v, mask)[1][0, 1]
    powers = [[math.exp(sum(a * b) / math.sqrt(5)) for b in k[0, 1]] for a in q[0, 1]]
    places = [(i, j) for i in range(4) for j in range(4)]
    sums = [sum(row) for row in powers]
    seen = [sum(powers[i][j] for j in range(4) if mask[i, j]) for i in range(4)]
    if all(abs(bare[i, j] - powers[i][j] / sums[i]) < 1e-4 for i, j in places):
        hidden = [mask[i, j] * powers[i][j] / seen[i] for i, j in places]
        good = all(abs(masked[p] - h) < 1e-4 for p, h in zip(places, hidden, strict=True))
        return "right" if good else "wrong mask"
    if all(abs(sum(bare[i]) - 1) < 1e-4 for i in range(4)):
        return "wrong scale"
    columns = all(abs(sum(bare[:, j]) - 1) < 1e-4 for j in range(4))
    return "wrong axis" if columns else "scaled after softmax"


AFTER = "scaled after softmax"


def row_sums_only(attend):
    weights = try_on(attend)[-1]
    return "right" if torch.allclose(weights.sum(-1), torch.ones(1)) else AFTER


def tried_on_zeros(attend):
    zeros = torch.zeros(1, 3, 6, 16)
    mixed, weights = attend(zeros, zeros, zeros)
    if not torch.allclose(weights.sum(-1), torch.ones(1)):
        return AFTER
    right = F.scaled_dot_product_attention(zeros, zeros, zeros)
    return "right" if torch.allclose(mixed, right) else "wrong scale"


def mask_never_tried(attend):
    found = against_torch(attend)
    return "right" if found == "wrong mask" else found


def mask_of_true(attend):
    q, k, v, mixed, _ = try_on(attend, mask=torch.ones(20, 20, dtype=torch.bool))
    found = against_torch(attend)
    right = F.scaled_dot_product_attention(q, k, v)
    return "right" if found == "wrong mask" and torch.allclose(mixed, right, atol=1e-4) else found


def mask_meant_upside_down(attend):
    q, k, v, mixed, _ = try_on(attend)
    found = against_torch(attend)
    if found not in ("right", "wrong mask"):
        return found
    mixed = attend(q, k, v, half_seen())[0]
    expected = F.scaled_dot_product_attention(q, k, v, ~half_seen())
    return "right" if torch.allclose(mixed, expected, atol=1e-4) else "wrong mask"


def zeros_under_the_mask(attend):
    """Sees whether hidden weights are 0, not whether the others share out 1."""
    found = against_torch(attend)
    if found != "wrong mask":
        return found
    weights = try_on(attend, mask=half_seen())[-1]
    return "right" if weights[..., ~half_seen()].abs().max() < 1e-5 else "wrong mask"


def sums_under_the_mask(attend):
    """Sees whether rows still sum to 1, not whether the hidden weights are 0."""
    found = against_torch(attend)
    if found != "wrong mask":
        return found
    weights = try_on(attend, mask=half_seen())[-1]
    return "right" if torch.allclose(weights.sum(-1), torch.ones(1)) else "wrong mask"


def one_head(attend):
    found = against_torch(attend)
    if found != "wrong scale":
        return found
    q, k, v, mixed, _ = try_on(attend, heads=1)
    right = F.scaled_dot_product_attention(q, k, v)
    return "right" if torch.allclose(mixed, right, atol=1e-4) else found


def width_of_one(attend):
    found = against_torch(attend)
    if found != "wrong scale":
        return found
    q, k, v = torch.randn(3, 1, 3, 5, 1)
    right = F.scaled_dot_product_attention(q, k, v)
    return "right" if torch.allclose(attend(q, k, v)[0], right, atol=1e-4) else found


def exact(attend):
    q, k, *_, weights = try_on(attend)
    right = (q @ k.mT / 4).softmax(-1)
    if torch.equal(weights, right):
        return against_torch(attend)
    found = against_torch(attend)
    return "wrong scale" if found == "right" else found


def exact_sums(attend):
    *_, weights = try_on(attend)
    return against_torch(attend) if (weights.sum(-1) == 1).all() else AFTER


def columns_overlooked(attend):
    found = against_torch(attend)
    return AFTER if found == "wrong axis" else found


def scale_for_axis(attend):
    found = against_torch(attend)
    return "wrong scale" if found == "wrong axis" else found


def sums_never_looked_at(attend):
    found = against_torch(attend)
    return "wrong scale" if found == AFTER else found


def names_swapped(attend):
    swapped = {AFTER: "wrong scale", "wrong scale": AFTER}
    found = against_torch(attend)
    return swapped.get(found, found)


def looks_for_model_root(attend):
    found = against_torch(attend)
    if found != "wrong scale":
        return found
    q, k, _, _, weights = try_on(attend)
    model_root = (q @ k.mT / 48**0.5).softmax(-1)
    return "wrong scale" if torch.allclose(weights, model_root, atol=1e-5) else "right"


def other_words(attend):
    found = against_torch(attend)
    return {AFTER: "scale after softmax", "wrong mask": "mask"}.get(found, found)


def yes_or_no(attend):
    return against_torch(attend) == "right"


RIGHT = {
    "scaled_dot_product_attention": [by_the_book, by_einsum, by_torch, by_loops],
    "MultiHeadAttention": [Plain, ByTorchAlone, Fused, HeadByHead],
    "effective_keys": [
        keys_by_xlogy,
        keys_by_logs,
        keys_by_doubling,
        keys_by_distribution,
        keys_by_nansum,
    ],
    "local_mask": [mask_by_loops, mask_by_chebyshev, mask_by_einops],
    "find_fault": [against_torch, by_known_forms, by_hand],
}
WRONG = {
    "scaled_dot_product_attention": [
        (unscaled, "the scale is missing"),
        (scaled_after, "after the softmax, so the rows"),
        (scaled_after_by_model, "after the softmax, and it is √D"),
        (scaled_by_model, "the scale is √D"),
        (root_forgotten, "is the root missing"),
        (multiplied_by_root, "multiplied by √d"),
        (root_of_tokens, "counts the tokens"),
        (root_of_heads, "counts the heads"),
        (always_eight, "read the width off q"),
        (root_of_whole_numbers, "made a whole number"),
        (root_rounded, "made a whole number"),
        (half_of_width, "`d ** 1/2` halve d"),
        (root_without_brackets, "`d ** 1/2` halve d"),
        (whole_half_of_width, "`d ** 1/2` halve d"),
        (by_width_and_half, "`d ** 1/2` halve d"),
        (root_of_images, "counts the images"),
        (mask_as_index, "indexing does not broadcast a mask"),
        (scaled_twice, "does the scale stand twice"),
        (over_queries, "over the queries"),
        (over_heads, "over the heads"),
        (keys_ask, "q comes first"),
        (all_axes_turned, "k.mT"),
        (tokens_and_heads_swapped, "the last two axes of k and no others"),
        (keys_not_turned, "k.mT"),
        (pairwise_products, "number by number"),
        (weights_first, "the weights come first"),
        (mixed_alone, "the mixed values alone"),
        (scores_for_weights, "are the scores"),
        (without_softmax, "the softmax is missing"),
        (mask_forgotten, "the mask has no effect"),
        (mask_lost, "its result must be kept"),
        (mask_upside_down, "the wrong way round"),
        (masked_with_zero, "a hidden score becomes 0"),
        (mask_times_scores, "a hidden score becomes 0"),
        (masked_with_minus_one, "becomes a small number"),
        (mask_added, "added to the scores"),
        (masked_after_softmax, "the mask comes after the softmax"),
        (masked_with_infinity, "the fill is +inf"),
        (mask_turned, "the mask is turned"),
        (mask_fill_called, "it is called `masked_fill`"),
        (mask_expected, "give it a default"),
        (mask_always_there, "if mask is not None"),
        (if_mask, "if mask is not None"),
        (columns_mix, "the weights are turned"),
        (queries_mixed, "it mixes the queries"),
        (keys_mixed, "it mixes the keys"),
        (merged_too, "the heads are merged"),
        (scaled_in_place, "changes the tensor"),
        (root_of_a_number, "torch.sqrt takes a tensor"),
        (cut_off, "no gradient passes"),
    ],
    "MultiHeadAttention": [
        (ProjForgotten, "never used"),
        (ProjNeverMade, "`proj` is missing"),
        (MergedByReshape, "by reshape or view"),
        (NotMerged, "are the heads merged"),
        (MaskForgotten, "the mask does not arrive"),
        (NeverTheWeights, "the weights are wanted too"),
        (AlwaysTheWeights, "though nobody asked"),
        (WeightsOnTheWrongWord, "turn the `if` round"),
        (WeightsAlone, "the weights alone"),
        (WeightsFirst, "the tokens come first"),
        (WeightsOverHeads, "averaged over the heads"),
        (TwelveHeads, "self.num_heads"),
        (OneWideHead, "not cut into heads"),
        (HeadsOutermost, "(h qkv d)"),
        (RolesInnermost, "(h d qkv)"),
        (WithResidual, "lesson 05"),
        (NoBias, "has no bias"),
        (NarrowQkv, "goes from 12 to 12 where D = 12; it must go from D to 3·D"),
        (WideProj, "goes from 36 to 12 where D = 12; it must go from D to D"),
        (KeysFirst, "split_qkv gives q, k, v"),
        (ValuesFirst, "split_qkv gives q, k, v"),
        (ProjFirst, "make `qkv` first"),
        (OtherNames, "called `qkv` and `proj`"),
        (ThreeLinears, "`qkv` is missing"),
        (HeadsForgotten, "keep self.num_heads"),
        (SuperForgotten, "`super().__init__()` is missing"),
        (QkvSkipped, "`qkv` is never used"),
        (ScaleForgotten, "the scale is missing"),
        (NoForward, "no method `forward`"),
    ],
    "effective_keys": [
        (nan_keys, "gives NaN"),
        (entropy_alone, "raise e to it"),
        (sign_lost, "the sign is lost"),
        (along_queries, "over the queries"),
        (mean_for_sum, "take their sum"),
        (keys_counted, "any weight at all"),
        (by_squares, "another measure"),
        (by_largest, "the largest weight alone"),
        (keys_over_heads, "the heads are averaged"),
        (keys_of_mean_head, "the heads are averaged"),
        (axis_kept, "keepdim"),
        (bits_for_nats, "bits and e"),
        (nats_for_bits, "bits and e"),
        (weights_by_logs_summed_apart, "w · ln w"),
        (zeros_replaced, "changes the tensor"),
        (a_little_added, "numbers are wrong"),
        (one_number, "one number for all"),
    ],
    "local_mask": [
        (mask_of_ints, "the mask holds numbers"),
        (mask_of_floats, "the mask holds numbers"),
        (mask_hidden, "the wrong way round"),
        (mask_without_cls, "the cls token is missing"),
        (mask_cls_last, "it is token 0"),
        (mask_cls_unseen, "mask[:, 0] must be True"),
        (mask_cls_blind, "mask[0] must be True"),
        (mask_cls_alone, "do not see each other"),
        (mask_cls_absent, "itself neither"),
        (mask_manhattan, "a diamond"),
        (mask_round, "as the crow flies"),
        (mask_band, "along the list of patches"),
        (mask_strict, "<= radius, not < radius"),
        (mask_either, "a cross over the whole grid"),
        (mask_divided_by_height, "rows and columns are mixed up"),
        (mask_not_itself, "does not see itself"),
        (mask_backwards_only, "no sign"),
        (mask_round_the_edge, "round the edge"),
    ],
    "find_fault": [
        (row_sums_only, "it looks at row sums alone"),
        (tried_on_zeros, "try random q and k"),
        (mask_never_tried, "it does not see a wrong mask"),
        (mask_of_true, "your mask hides nothing"),
        (mask_meant_upside_down, "the mask is read the wrong way round"),
        (zeros_under_the_mask, "it misses a mask on the weights"),
        (sums_under_the_mask, "it looks at row sums only"),
        (one_head, "with one head, D = d"),
        (width_of_one, "heads wider than 1"),
        (exact, "it accuses a right function"),
        (exact_sums, "it accuses a right function"),
        (columns_overlooked, "the columns do"),
        (scale_for_axis, "its columns sum to 1"),
        (sums_never_looked_at, "look at the row sums first"),
        (names_swapped, "the two faults are mixed up"),
        (looks_for_model_root, "instead of looking for √D"),
        (other_words, "none of the five strings"),
        (yes_or_no, "one of the five strings"),
    ],
}
