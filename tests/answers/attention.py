"""Answers to lesson 04's exercises, as learners would write them."""

import torch
from torch.nn import functional as F


def by_einsum(q, k):
    scores = torch.einsum("bhmd,bhnd->bhmn", q, k)
    powers = torch.exp(scores / torch.tensor(q.size(3)).sqrt())
    return powers / powers.sum(3, keepdim=True)


def by_torch(q, k):
    every_key = torch.eye(k.shape[2]).expand(*k.shape[:3], k.shape[2])
    return F.scaled_dot_product_attention(q, k, every_key)


def unscaled(q, k):
    return F.softmax(q @ k.mT, dim=-1)


def scaled_after(q, k):
    return F.softmax(q @ k.mT, dim=-1) / q.size(-1) ** 0.5


def scaled_after_by_model(q, k):
    return F.softmax(q @ k.mT, dim=-1) / (q.size(1) * q.size(-1)) ** 0.5


def scaled_by_model(q, k):
    embed_dim = q.transpose(1, 2).flatten(2).shape[-1]
    return F.softmax(q @ k.mT * embed_dim**-0.5, dim=-1)


def root_forgotten(q, k):
    return F.softmax(q @ k.mT / q.size(-1), dim=-1)


def over_queries(q, k):
    return F.softmax(q @ k.mT / q.size(-1) ** 0.5, dim=2)


def bare_scores(q, k):
    return q @ k.mT / q.size(-1) ** 0.5


def scale_in_place(q, k):
    q /= q.size(-1) ** 0.5
    return F.softmax(q @ k.mT, dim=-1)


def mask_by_loops(rows, cols, radius):
    n = rows * cols
    mask = torch.zeros(n + 1, n + 1, dtype=torch.bool)
    mask[0, :] = True
    mask[:, 0] = True
    for i in range(n):
        for j in range(n):
            if abs(i // cols - j // cols) <= radius and abs(i % cols - j % cols) <= radius:
                mask[i + 1, j + 1] = True
    return mask


def mask_by_chebyshev(rows, cols, radius):
    places = torch.cartesian_prod(torch.arange(rows), torch.arange(cols)).float()
    return F.pad(torch.cdist(places, places, p=float("inf")) <= radius, (1, 0, 1, 0), value=True)


def mask_of_ints(rows, cols, radius):
    return mask_by_loops(rows, cols, radius).long()


def mask_hidden(rows, cols, radius):
    return mask_by_loops(rows, cols, radius).logical_not()


def mask_without_cls(rows, cols, radius):
    return mask_by_loops(rows, cols, radius)[1:, 1:]


def mask_cls_unseen(rows, cols, radius):
    mask = mask_by_loops(rows, cols, radius)
    mask[1:, 0] = False
    return mask


def mask_cls_blind(rows, cols, radius):
    mask = mask_by_loops(rows, cols, radius)
    mask[0, 1:] = False
    return mask


def mask_manhattan(rows, cols, radius):
    places = torch.cartesian_prod(torch.arange(rows), torch.arange(cols)).float()
    return F.pad(torch.cdist(places, places, p=1) <= radius, (1, 0, 1, 0), value=True)


def mask_band(rows, cols, radius):
    n = rows * cols
    band = torch.ones(n, n).triu(-radius).tril(radius).bool()
    return F.pad(band, (1, 0, 1, 0), value=True)


def mask_strict(rows, cols, radius):
    return mask_by_loops(rows, cols, radius - 1)


def mask_either(rows, cols, radius):
    patch = torch.arange(rows * cols)
    row, col = patch // cols, patch % cols
    near = ((row - row[:, None]).abs() <= radius) | ((col - col[:, None]).abs() <= radius)
    return F.pad(near, (1, 0, 1, 0), value=True)


def mask_divided_by_rows(rows, cols, radius):
    patch = torch.arange(rows * cols)
    row, col = patch // rows, patch % rows
    near = ((row - row[:, None]).abs() <= radius) & ((col - col[:, None]).abs() <= radius)
    return F.pad(near, (1, 0, 1, 0), value=True)


def try_on(attend, heads=3):
    torch.manual_seed(1)
    q, k, v = torch.randn(3, 1, heads, 50, 16)
    return q, k, v, *attend(q, k, v)


def against_torch(attend):
    q, k, v, mixed, weights = try_on(attend)
    if (weights.sum(-1) - 1).abs().max() > 1e-3:
        return "scaled after softmax"
    error = (mixed - F.scaled_dot_product_attention(q, k, v)).abs().max()
    return "wrong scale" if error > 1e-4 else "right"


def by_ratio(attend):
    """Reads the scale off: the logarithms of two weights differ by the difference of scores."""
    q = torch.ones(1, 2, 1, 9)
    k = torch.stack([torch.ones(1, 2, 9), torch.zeros(1, 2, 9)], dim=2)
    _, weights = attend(q, k, torch.rand(1, 2, 2, 9))
    if not torch.isclose(weights[0, 0, 0].sum(), torch.tensor(1.0)):
        return "scaled after softmax"
    apart = (weights[0, 0, 0, 0].log() - weights[0, 0, 0, 1].log()).item()
    return "right" if abs(apart - 3) < 0.01 else "wrong scale"


def sums_only(attend):
    *_, weights = try_on(attend)
    fine = torch.allclose(weights.sum(-1), torch.ones(1))
    return "right" if fine else "scaled after softmax"


def tried_on_zeros(attend):
    zeros = torch.zeros(1, 3, 6, 16)
    mixed, weights = attend(zeros, zeros, zeros)
    if not torch.allclose(weights.sum(-1), torch.ones(1)):
        return "scaled after softmax"
    right = F.scaled_dot_product_attention(zeros, zeros, zeros)
    return "right" if torch.allclose(mixed, right) else "wrong scale"


def one_head(attend):
    q, k, _, _, weights = try_on(attend, heads=1)
    if not torch.allclose(weights.sum(-1), torch.ones(1)):
        return "scaled after softmax"
    return "right" if torch.allclose(weights, by_einsum(q, k), atol=1e-5) else "wrong scale"


def exact(attend):
    *_, weights = try_on(attend)
    if not (weights.sum(-1) == 1).all():
        return "scaled after softmax"
    return against_torch(attend)


def exact_weights(attend):
    q, k, _, _, weights = try_on(attend)
    if not torch.allclose(weights.sum(-1), torch.ones(1)):
        return "scaled after softmax"
    right = torch.equal(weights, (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1))
    return "right" if right else "wrong scale"


def no_sums(attend):
    q, k, _, _, weights = try_on(attend)
    return "right" if torch.allclose(weights, by_einsum(q, k), atol=1e-5) else "wrong scale"


def names_swapped(attend):
    swapped = {"scaled after softmax": "wrong scale", "wrong scale": "scaled after softmax"}
    found = against_torch(attend)
    return swapped.get(found, found)


def looks_for_model_root(attend):
    q, k, _, _, weights = try_on(attend)
    if not torch.allclose(weights.sum(-1), torch.ones(1)):
        return "scaled after softmax"
    found = torch.allclose(weights, scaled_by_model(q, k), atol=1e-5)
    return "wrong scale" if found else "right"


RIGHT = {
    "scaled_weights": [by_einsum, by_torch],
    "local_mask": [mask_by_loops, mask_by_chebyshev],
    "find_fault": [against_torch, by_ratio],
}
WRONG = {
    "scaled_weights": [
        (unscaled, "the scale is missing"),
        (scaled_after, "after the softmax, so rows"),
        (scaled_after_by_model, "after the softmax, and it is √D"),
        (scaled_by_model, "the scale is √D"),
        (root_forgotten, "take the root"),
        (over_queries, "softmax runs over the queries"),
        (bare_scores, "these are the scores"),
        (scale_in_place, "changes the tensor"),
    ],
    "local_mask": [
        (mask_of_ints, "the mask holds numbers"),
        (mask_hidden, "the wrong way round"),
        (mask_without_cls, "the cls token is missing"),
        (mask_cls_unseen, "column 0 must be True"),
        (mask_cls_blind, "row 0 must be True"),
        (mask_manhattan, "a diamond"),
        (mask_band, "along the list of patches"),
        (mask_strict, "<= radius, not < radius"),
        (mask_either, "a cross over the whole grid"),
        (mask_divided_by_rows, "rows and columns are mixed up"),
    ],
    "find_fault": [
        (sums_only, "it calls a wrong scale right"),
        (tried_on_zeros, "it calls a wrong scale right"),
        (one_head, "with one head, D = d"),
        (exact, "it accuses a right function"),
        (exact_weights, "it accuses a right function"),
        (no_sums, "look at the row sums first"),
        (names_swapped, "the two faults are mixed up"),
        (looks_for_model_root, "it knows √D only"),
    ],
}
