"""Answers to lesson 09's build cell and exercises, as learners would write them."""

from functools import cache

import torch
from torch.nn import functional as F

from vit_course.checks.lesson_09 import other_canvases
from vit_steps import maps


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


def points_by_gather(seen, mask):
    best = seen.flatten(1).argmax(dim=1, keepdim=True)
    return mask.flatten(1).gather(1, best).double().mean()


def best_row_and_column(seen, mask):
    """The row with the largest number of all columns, and the column likewise, taken apart."""
    row = seen.sum(dim=2).argmax(dim=1)
    col = seen.sum(dim=1).argmax(dim=1)
    return mask[torch.arange(len(seen)), row, col].float().mean()


# rollout


def by_matrices(attention):
    eye = torch.eye(attention[0].shape[-1]).to(attention[0])
    flow = eye
    for weights in attention:
        a = (weights.mean(1) + eye) / 2
        flow = a @ flow
    return flow


# needed: as in the lesson, where `model` is the stored ViT


def hidden_at(images, patch):
    hidden = torch.zeros(len(images), 16, dtype=torch.bool)
    hidden[:, patch] = True
    return hidden.view(-1, 4, 4)


def falls_when_blind(images, labels):
    model, _ = other_canvases()
    right = F.one_hot(labels, 10).bool()
    usual = model(images)[right]
    falls = [usual - maps.blinded(model, images, hidden_at(images, p))[right] for p in range(16)]
    return torch.stack(falls, 1).view(-1, 4, 4)


@cache
def known_falls():
    """What the right answer gives for the check's canvases; several wrong ones begin with it."""
    _, canvases = other_canvases()
    return falls_when_blind(canvases.images, canvases.labels)


def loss_when_blind(images, labels):
    model, _ = other_canvases()
    scores = torch.zeros(len(images), 4, 4)
    for row in range(4):
        for col in range(4):
            logits = maps.blinded(model, images, hidden_at(images, 4 * row + col))
            scores[:, row, col] = F.cross_entropy(logits, labels, reduction="none")
    return scores


def margin_when_blind(images, labels):
    model, _ = other_canvases()
    scores = []
    for patch in range(16):
        logits = maps.blinded(model, images, hidden_at(images, patch))
        right = logits.gather(1, labels[:, None])[:, 0]
        others = logits.scatter(1, labels[:, None], float("-inf"))
        scores.append(others.amax(1) - right)
    return torch.stack(scores, dim=1).unflatten(1, (4, 4))


def its_rollout(images, labels):
    model, _ = other_canvases()
    _, attention = model(images, return_attention=True)
    return maps.cls_map(maps.rollout(attention), 4)


def its_last_block(images, labels):
    model, _ = other_canvases()
    _, attention = model(images, return_attention=True)
    return attention[-1].mean(1)[:, 0, 1:].view(-1, 4, 4)


def brightness(images, labels):
    return F.avg_pool2d((images + 1) / 2, 4)[:, 0]


def sign_forgotten(images, labels):
    return -known_falls()


def gradient_size(images, labels):
    model, _ = other_canvases()
    return maps.gradient_map(model, images, labels, fill=-1.0).abs()


def gradient_signed(images, labels):
    model, _ = other_canvases()
    return maps.gradient_map(model, images, labels, fill=-1.0)


def columns_first(images, labels):
    return known_falls().mT


def nothing_measured(images, labels):
    return torch.zeros(len(images), 4, 4)


def only_that_patch_seen(images, labels):
    model, _ = other_canvases()
    falls = torch.zeros(len(images), 16)
    for patch in range(16):
        logits = maps.blinded(model, images, ~hidden_at(images, patch))
        falls[:, patch] = -logits.gather(1, labels[:, None])[:, 0]
    return falls.view(-1, 4, 4)


def still_flat(images, labels):
    return known_falls().flatten(1)


# trust_rollout


def random_weights(blocks, heads, tokens):
    torch.manual_seed(3)
    return list(torch.randn(blocks, 2, heads, tokens, tokens).softmax(-1))


def same_as(rollout, attention):
    return torch.allclose(rollout(attention), by_matrices(attention), atol=1e-5)


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
    return torch.equal(rollout(attention).double(), by_matrices([w.double() for w in attention]))


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


def rows_of_shares(rollout):
    """Carries one row of shares down, from the last block to the first."""
    attention = random_weights(4, 3, 5)
    row = torch.zeros(2, 1, 5)
    row[:, 0, 3] = 1
    for weights in reversed(attention):
        row = 0.5 * row + 0.5 * row @ weights.mean(dim=1)
    return bool((rollout(attention)[:, 3] - row[:, 0]).abs().max() < 1e-5)


def row_0_alone(rollout):
    attention = random_weights(3, 4, 6)
    return torch.allclose(rollout(attention)[:, 0], by_matrices(attention)[:, 0], atol=1e-5)


def weights_without_softmax(rollout):
    torch.manual_seed(3)
    return same_as(rollout, list(torch.randn(3, 2, 4, 6, 6)))


def against_the_course_without_softmax(rollout):
    torch.manual_seed(3)
    attention = list(torch.rand(3, 2, 4, 6, 6))
    return torch.allclose(rollout(attention), maps.rollout(attention), atol=1e-5)


def of_identity(rollout):
    eye = torch.eye(5).expand(2, 3, 5, 5)
    return torch.allclose(rollout([eye, eye]), torch.eye(5))


def same_largest(rollout):
    attention = random_weights(3, 4, 6)
    return torch.equal(rollout(attention).argmax(-1), by_matrices(attention).argmax(-1))


RIGHT = {
    "pointing": [points_by_loop, points_by_peak, points_by_gather],
    "needed": [falls_when_blind, loss_when_blind, margin_when_blind],
    "trust_rollout": [on_random, by_hand, rows_of_shares],
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
        (best_row_and_column, "a row and a column"),
    ],
    "needed": [
        (its_rollout, "this is rollout"),
        (its_last_block, "the last block's map"),
        (brightness, "the darkest patches"),
        (sign_forgotten, "the wrong way round"),
        (gradient_size, "the gradient's size"),
        (gradient_signed, "gradient × input"),
        (columns_first, "rows and columns of patches are swapped"),
        (nothing_measured, "the same for all patches"),
        (only_that_patch_seen, "hide one patch and leave it the other 15"),
        (still_flat, "it gives (300, 16) for 300 canvases"),
    ],
    "trust_rollout": [
        (trusts_all, "trusts everything"),
        (without_tolerance, "trusts nothing"),
        (wrong_way_round, "wrong way round"),
        (sums_only, "row sums alone"),
        (one_block, "with one block"),
        (equal_blocks, "in the wrong order"),
        (one_head, "at least two heads"),
        (row_0_alone, "all rows"),
        (weights_without_softmax, "rows sum to 1"),
        (against_the_course_without_softmax, "rows sum to 1"),
        (of_identity, "rows sum to 2"),
        (same_largest, "your test"),
    ],
}
