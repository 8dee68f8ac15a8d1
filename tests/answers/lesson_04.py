"""Answers to lesson 04's build cells and exercises, as learners would write them."""

import math

import torch
from einops import einsum, rearrange
from torch.nn import functional as F

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


def mask_of_a_window(height, width, radius):
    return mask_by_loops(height, width, radius // 2)


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


def one_number_wide(attend, heads=3):
    torch.manual_seed(1)
    q, k, v = torch.randn(3, 2, heads, 20, 1)
    mixed, weights = attend(q, k, v)
    if torch.allclose(mixed, F.scaled_dot_product_attention(q, k, v), atol=1e-4):
        return "right" if against_torch(attend) != "wrong mask" else "wrong mask"
    if torch.allclose(weights.sum(-1), torch.ones(1)):
        return "wrong scale"
    return "wrong axis" if torch.allclose(weights.sum(-2), torch.ones(1)) else AFTER


def one_number_in_all(attend):
    return one_number_wide(attend, heads=1)


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
        (mask_strict, "<= radius"),
        (mask_of_a_window, "half as far"),
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
        (width_of_one, "on heads wider than 1"),
        (one_number_wide, "on heads wider than 1"),
        (one_number_in_all, "with one head of width 1"),
        (exact, "it accuses a right function"),
        (exact_sums, "it accuses a right function"),
        (columns_overlooked, "the columns do"),
        (scale_for_axis, "its columns sum to 1"),
        (sums_never_looked_at, "look at the row sums first"),
        (names_swapped, "the two faults are mixed up"),
        (looks_for_model_root, "compare with √d"),
        (other_words, "say one of the five strings"),
        (yes_or_no, "one of the five strings"),
    ],
}
