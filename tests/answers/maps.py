"""Answers to lesson 08's exercises, as learners would write them."""

import torch


def points_by_loop(seen, mask):
    hits = 0
    for one, where in zip(seen, mask, strict=True):
        row, col = divmod(int(one.argmax()), one.shape[1])
        hits += bool(where[row, col])
    return hits / len(seen)


def points_by_peak(seen, mask):
    peak = seen == seen.amax(dim=(1, 2), keepdim=True)
    return (peak & mask).any(dim=2).any(dim=1).float().mean()


def mean_share(seen, mask):
    return torch.stack([s[m].sum() / s.sum() for s, m in zip(seen, mask, strict=True)]).mean()


def each_image(seen, mask):
    best = seen.flatten(1).argmax(1)
    return torch.take_along_dim(mask.flatten(1), best[:, None], 1).squeeze(1).float()


def counted(seen, mask):
    return int(each_image(seen, mask).sum())


def one_peak(seen, mask):
    return float((mask & (seen == seen.max())).any())


def beside(seen, mask):
    return points_by_loop(seen, ~mask)


def lowest(seen, mask):
    return points_by_loop(-seen, mask)


def area(seen, mask):
    return mask.float().flatten(1).mean(1).mean()


def majority(seen, mask):
    on = (seen * mask).flatten(1).sum(1)
    return (on > (seen * ~mask).flatten(1).sum(1)).float().mean()


def row_by_row(attention):
    out = torch.zeros(attention[0].shape[0], attention[0].shape[-1])
    out[:, 0] = 1
    for weights in attention[::-1]:
        out = (out + torch.einsum("bi,bij->bj", out, weights.mean(1))) / 2
    return out


def by_matrices(attention):
    eye = torch.eye(attention[0].shape[-1])
    flow = eye
    for weights in attention:
        a = (weights.mean(1) + eye) / 2
        flow = a @ flow
    return flow[:, 0]


def no_residual(attention):
    flow = torch.eye(attention[0].shape[-1])
    for weights in attention:
        flow = weights.mean(1) @ flow
    return flow[:, 0]


def wrong_order(attention):
    return by_matrices(list(reversed(attention)))


def no_residual_wrong_order(attention):
    return no_residual(attention[::-1])


def not_halved(attention):
    eye = torch.eye(attention[0].shape[-1])
    flow = eye
    for weights in attention:
        flow = (weights.mean(1) + eye) @ flow
    return flow[:, 0]


def first_head(attention):
    return by_matrices([weights[:, :1] for weights in attention])


def strongest_head(attention):
    return by_matrices([weights.max(dim=1, keepdim=True).values for weights in attention])


def what_cls_gives(attention):
    row = torch.zeros(attention[0].shape[0], attention[0].shape[-1], 1)
    row[:, 0] = 1
    for weights in attention[::-1]:
        row = 0.5 * row + 0.5 * weights.mean(1) @ row
    return row[..., 0]


def whole(attention):
    eye = torch.eye(attention[0].shape[-1]).to(attention[0])
    flow = eye
    for weights in attention:
        flow = (weights.mean(1) + eye) / 2 @ flow
    return flow


def last_block(attention):
    return attention[-1].mean(1)[:, 0]


def random_weights(blocks, heads, tokens):
    torch.manual_seed(3)
    return list(torch.randn(blocks, 2, heads, tokens, tokens).softmax(-1))


def same_as(rollout, attention):
    return torch.allclose(rollout(attention), whole(attention), atol=1e-5)


def on_random(rollout):
    return same_as(rollout, random_weights(3, 4, 6))


def by_hand(rollout):
    """Two blocks of two heads and two tokens, worked out on paper."""
    first = torch.tensor([[[[1.0, 0.0], [0.8, 0.2]], [[0.6, 0.4], [0.4, 0.6]]]])
    second = torch.tensor([[[[0.4, 0.6], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]])
    wanted = torch.tensor([[[0.66, 0.34], [0.3, 0.7]]])
    return rollout([first, second]).sub(wanted).abs().max() < 1e-4


def trusts_all(rollout):
    rollout(random_weights(1, 1, 3))
    return True


def without_tolerance(rollout):
    attention = random_weights(3, 4, 6)
    return torch.equal(rollout(attention).double(), whole([w.double() for w in attention]))


def wrong_way_round(rollout):
    return not on_random(rollout)


def sums_only(rollout):
    rows = rollout(random_weights(3, 4, 6)).sum(-1)
    return torch.allclose(rows, torch.ones_like(rows))


def one_block(rollout):
    return same_as(rollout, random_weights(1, 4, 6))


def equal_blocks(rollout):
    return same_as(rollout, random_weights(1, 4, 6) * 3)


def one_head(rollout):
    return same_as(rollout, random_weights(3, 1, 6))


def of_identity(rollout):
    eye = torch.eye(5).expand(2, 3, 5, 5)
    return torch.allclose(rollout([eye, eye]), torch.eye(5))


RIGHT = {
    "pointing": [points_by_loop, points_by_peak],
    "cls_rollout": [row_by_row, by_matrices],
    "trust_rollout": [on_random, by_hand],
}
WRONG = {
    "pointing": [
        (mean_share, "the share of attention on the mask"),
        (each_image, "for each image; give one number"),
        (counted, "this counts the images"),
        (one_peak, "over the whole batch"),
        (beside, "beside the mask"),
        (lowest, "the least attended"),
        (area, "the share of the area"),
        (majority, "more than half"),
    ],
    "cls_rollout": [
        (no_residual, "the residual is missing"),
        (wrong_order, "in the wrong order"),
        (no_residual_wrong_order, "the residual and the order"),
        (not_halved, "sum to 2 in each block"),
        (first_head, "only one head"),
        (strongest_head, "the largest of the heads"),
        (what_cls_gives, "transposed"),
        (whole, "the row of cls alone"),
        (last_block, "the last block's weights alone"),
    ],
    "trust_rollout": [
        (trusts_all, "trusts everything"),
        (without_tolerance, "trusts nothing"),
        (wrong_way_round, "wrong way round"),
        (sums_only, "row sums alone"),
        (one_block, "with one block"),
        (equal_blocks, "in the wrong order"),
        (one_head, "at least two heads"),
        (of_identity, "rows sum to 2"),
    ],
}
