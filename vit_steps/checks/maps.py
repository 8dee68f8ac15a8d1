"""Exercises of lesson 08."""

from collections.abc import Callable

import torch
from torch import Tensor

from ..maps import rollout
from .engine import Check, Mistake, Trial, call


def drawn(seed: int, *shape: int) -> Tensor:
    """Weights: numbers above 0 whose rows sum to 1, the same each time."""
    scores = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return (2 * scores).softmax(dim=-1)


def points(seen: Tensor, mask: Tensor, pick: Callable = Tensor.argmax) -> Tensor:
    """Whether the picked patch of each image, by its number, lies on the mask."""
    best = torch.stack([pick(one) for one in seen.flatten(1)])
    return mask.flatten(1).gather(1, best[:, None])[:, 0].float()


def squares(batch: int, rows: int, cols: int) -> Tensor:
    """A mask of 2×2 patches, at another corner in each image."""
    mask = torch.zeros(batch, rows, cols, dtype=torch.bool)
    for image in range(batch):
        down, right = image % 2 * (rows - 2), image // 2 % 2 * (cols - 2)
        mask[image, down : down + 2, right : right + 2] = True
    return mask


def from_cls(batch: int, rows: int, cols: int) -> Tensor:
    """What cls takes from each patch; its sums differ, since it also takes from itself."""
    maps = drawn(batch, batch, rows * cols).unflatten(1, (rows, cols))
    return maps * torch.linspace(0.2, 1, batch)[:, None, None]


def shares(seen: Tensor, mask: Tensor) -> Tensor:
    return (seen * mask).sum((1, 2)) / seen.sum((1, 2))


pointing = Check(
    reference=lambda seen, mask: points(seen, mask).mean().item(),
    trials=[
        call("one image of 3×3 patches", from_cls(1, 3, 3), squares(1, 3, 3)),
        call("10 images of 3×3 patches", from_cls(10, 3, 3), squares(10, 3, 3)),
        call("30 images of 3×5 patches", from_cls(30, 3, 5), squares(30, 3, 5)),
    ],
    mistakes=[
        Mistake(
            "this is the share of attention on the mask; look only at the patch that each image "
            "attends to most",
            lambda seen, mask: shares(seen, mask).mean().item(),
        ),
        Mistake(
            "this says it for each image; give one number, the share of images that point at the "
            "mask (.float().mean())",
            lambda seen, mask: points(seen, mask),
        ),
        Mistake(
            "this counts the images; divide by how many there are",
            lambda seen, mask: points(seen, mask).sum().item(),
        ),
        Mistake(
            "the most attended patch is looked for over the whole batch; each image has its own: "
            "seen.flatten(1).argmax(dim=1)",
            lambda seen, mask: mask.flatten()[seen.argmax()].float().item(),
        ),
        Mistake(
            "this is the share of images that point beside the mask; the mask is True on the digit",
            lambda seen, mask: 1 - points(seen, mask).mean().item(),
        ),
        Mistake(
            "the least attended patch is taken: argmax, not argmin",
            lambda seen, mask: points(seen, mask, Tensor.argmin).mean().item(),
        ),
        Mistake(
            "this is the share of the area; it does not depend on the attention",
            lambda seen, mask: mask.float().mean().item(),
        ),
        Mistake(
            "this asks whether more than half of the attention lies on the mask; look only at the "
            "patch that each image attends to most",
            lambda seen, mask: (shares(seen, mask) > 0.5).float().mean().item(),
        ),
    ],
)


def follow(
    own: float = 0.5,
    backwards: bool = True,
    pick: Callable = lambda weights: weights.mean(dim=1),
    turned: bool = False,
) -> Callable:
    """Carry the row of cls down through the blocks, with one thing or another wrong."""

    def cls_row(attention):
        tokens = attention[0].shape[-1]
        row = torch.eye(tokens)[0].expand(len(attention[0]), 1, tokens)  # (B, 1, N)
        for weights in reversed(attention) if backwards else attention:
            mixed = pick(weights).mT if turned else pick(weights)
            row = own * row + (1 - own) * row @ mixed
        return row[:, 0]

    return cls_row


def heads_multiplied(attention):
    """As if the heads of a block stood one after the other."""
    return follow()([weights[:, [head]] for weights in attention for head in range(2)])


def twice_the_sum(attention):
    """A + I, not halved."""
    return follow()(attention) * 2 ** len(attention)


cls_rollout = Check(
    reference=lambda attention: rollout(attention)[:, 0],
    trials=[
        call("one block of one head, three tokens", [drawn(0, 1, 1, 3, 3)]),
        call("two blocks of two heads, four tokens", [drawn(i, 1, 2, 4, 4) for i in (1, 2)]),
        call("three blocks, two images, 5 tokens", [drawn(i, 2, 2, 5, 5) for i in (3, 4, 5)]),
    ],
    mistakes=[
        Mistake(
            "the residual is missing: in each block half of a token is itself, "
            "0.5 * row + 0.5 * row @ weights",
            follow(own=0),
        ),
        Mistake(
            "the blocks are taken in the wrong order: start from cls after the last block and go "
            "down to the first, for weights in reversed(attention)",
            follow(backwards=False),
        ),
        Mistake(
            "the residual and the order are wrong: each block is 0.5 * A + 0.5 * I, and the last "
            "block comes first",
            follow(own=0, backwards=False),
        ),
        Mistake(
            "the shares sum to 2 in each block: halve both, 0.5 * row + 0.5 * row @ weights",
            twice_the_sum,
        ),
        Mistake(
            "only one head is followed: take the mean over the heads, weights.mean(dim=1)",
            follow(pick=lambda weights: weights[:, 0]),
        ),
        Mistake(
            "the largest of the heads is taken, so the shares sum to more than 1; take the mean",
            follow(pick=lambda weights: weights.amax(dim=1)),
        ),
        Mistake(
            "the weights are transposed: this is what cls gives, not what it takes; a query's "
            "weights are a row, so row @ weights",
            follow(turned=True),
        ),
        Mistake(
            "this is all of rollout; give the row of cls alone, (B, N)",
            rollout,
        ),
        Mistake(
            "these are the last block's weights alone; go down through all blocks",
            lambda attention: attention[-1].mean(dim=1)[:, 0],
        ),
    ],
)


def product(steps: list[Tensor]) -> Tensor:
    """The last step leftmost."""
    flow = steps[0]
    for step in steps[1:]:
        flow = step @ flow
    return flow


def halved(weights: Tensor) -> Tensor:
    return 0.5 * weights.mean(dim=1) + 0.5 * torch.eye(weights.shape[-1])


def by_paths(attention: list[Tensor]) -> Tensor:
    """Rollout in another right form."""
    return product([halved(weights) for weights in attention])


def without_identity(attention: list[Tensor]) -> Tensor:
    return product([weights.mean(dim=1) for weights in attention])


def first_leftmost(attention: list[Tensor]) -> Tensor:
    return product([halved(weights) for weights in attention[::-1]])


def not_halved(attention: list[Tensor]) -> Tensor:
    return 2 ** len(attention) * by_paths(attention)


def transposed(attention: list[Tensor]) -> Tensor:
    return product([halved(weights).mT for weights in attention[::-1]])


def largest_head(attention: list[Tensor]) -> Tensor:
    """Rows sum to 1 all the same: they are divided by their sum."""
    peaks = [weights.amax(dim=1, keepdim=True) for weights in attention]
    return by_paths([weights / weights.sum(-1, keepdim=True) for weights in peaks])


def averaged(attention: list[Tensor]) -> Tensor:
    """The mean of the blocks, where they should be multiplied."""
    return torch.stack([halved(weights) for weights in attention]).mean(dim=0)


CANDIDATES = {
    "rollout": rollout,
    "rollout by paths": by_paths,
    "rollout without the identity": without_identity,
    "rollout with the first block leftmost": first_leftmost,
    "rollout whose rows sum to 2 for each block": not_halved,
    "rollout with queries and keys swapped": transposed,
    "rollout of the largest head": largest_head,
    "the mean of the blocks": averaged,
}


def try_on(name: str) -> Trial:
    """Show the answer a rollout, right or wrong; a verdict that is no bool is kept as it is."""

    def run(answer: Callable):
        verdict = answer(CANDIDATES[name])
        if isinstance(verdict, Tensor) and verdict.dtype == torch.bool and verdict.numel() == 1:
            return bool(verdict)
        return verdict

    return Trial(f"your test on {name}", run)


def believes(*names: str) -> Callable:
    """A test that trusts these, and no others."""
    trusted = [CANDIDATES[name] for name in ("rollout", "rollout by paths", *names)]
    return lambda candidate: any(candidate is one for one in trusted)


IDENTITY, ORDER, SUM, TURNED, LARGEST, MEAN = list(CANDIDATES)[2:]

trust_rollout = Check(
    reference=believes(),
    trials=[try_on(name) for name in CANDIDATES],
    # Those with one fault first: a test that misses several is told of one that it does miss.
    mistakes=[
        Mistake(
            "it trusts a rollout without the identity: compare with a result that you know, not "
            "only with the sums",
            believes(IDENTITY),
        ),
        Mistake(
            "it trusts the blocks in the wrong order: give it two blocks that differ",
            believes(ORDER),
        ),
        Mistake(
            "it trusts a rollout whose rows do not sum to 1: compare the numbers, not only their "
            "order or their ratios",
            believes(SUM),
        ),
        Mistake(
            "it trusts rollout with queries and keys swapped: give it weights that are not their "
            "own transpose",
            believes(TURNED),
        ),
        Mistake(
            "it trusts the largest head in place of their mean: give it at least two heads that "
            "differ",
            believes(LARGEST),
        ),
        Mistake(
            "it trusts the mean of the blocks, where they are to be multiplied: give it two blocks "
            "that differ",
            believes(MEAN),
        ),
        Mistake(
            "it trusts the mean of the blocks and the wrong order: with one block, both are the "
            "same as rollout; give it two blocks that differ",
            believes(ORDER, MEAN),
        ),
        Mistake(
            "it trusts whatever has rows that sum to 1: row sums alone do not tell; compare with a "
            "result that you know",
            believes(IDENTITY, ORDER, LARGEST, MEAN),
        ),
        Mistake(
            "it refuses only the one whose rows sum to 2; on the weights that it tries all the "
            "others agree: let blocks and heads differ, random weights will do",
            believes(IDENTITY, ORDER, TURNED, LARGEST, MEAN),
        ),
        Mistake(
            "it trusts everything that it is shown; look for weights on which a wrong rollout "
            "differs from a right one",
            lambda candidate: True,
        ),
        Mistake(
            "it trusts nothing, not even vit_steps.maps.rollout; compare with "
            "torch.allclose(…, atol=1e-5), not with ==",
            lambda candidate: False,
        ),
        Mistake(
            "it is the wrong way round: True for a rollout to be trusted",
            lambda candidate: not believes()(candidate),
        ),
    ],
)
