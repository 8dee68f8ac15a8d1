"""The build cell and exercises of lesson 09."""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor, nn

from vit_steps import maps
from vit_steps.maps import blinded, cls_map, gradient_map
from vit_steps.training import load_model
from vit_steps.training.data import scattered
from vit_steps.training.dataset import ImageDataset
from vit_steps.vit import ViT
from vit_steps.weights import SCATTERED

from .compare import Verdict
from .engine import Check
from .exercise import Exercise, edited
from .trials import Trial, call, trust, untouched


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


# The largest number does not stand in the row with the largest sum.
ONE_PEAK = torch.tensor([[[0.0, 0.01, 0.3], [0.2, 0.04, 0.25]]])


def row_and_column(seen: Tensor, mask: Tensor) -> float:
    row, col = seen.sum(dim=2).argmax(dim=1), seen.sum(dim=1).argmax(dim=1)
    return mask[torch.arange(len(seen)), row, col].float().mean().item()


pointing = Check(
    reference=lambda seen, mask: points(seen, mask).mean().item(),
    trials=[
        call("one image of 2×3 patches", ONE_PEAK, ONE_PEAK > 0.28),
        call("one image of 3×3 patches", from_cls(1, 3, 3), squares(1, 3, 3)),
        call("10 images of 3×3 patches", from_cls(10, 3, 3), squares(10, 3, 3)),
        call("30 images of 3×5 patches", from_cls(30, 3, 5), squares(30, 3, 5)),
    ],
    mistakes={
        "this is the share of attention on the mask; look only at the patch that each image "
        "attends to most": lambda seen, mask: shares(seen, mask).mean().item(),
        "this says it for each image; give one number, the share of images that point at the mask "
        "(.float().mean())": lambda seen, mask: points(seen, mask),
        "this counts the images; divide by how many there are": lambda seen, mask: (
            points(seen, mask).sum().item()
        ),
        "the most attended patch is looked for over the whole batch; each image has its own: "
        "seen.flatten(1).argmax(dim=1)": lambda seen, mask: (
            mask.flatten()[seen.argmax()].float().item()
        ),
        "this is the share of images that point beside the mask; "
        "the mask is True on the digit": lambda seen, mask: 1 - points(seen, mask).mean().item(),
        "the least attended patch is taken: argmax, not argmin": lambda seen, mask: (
            points(seen, mask, Tensor.argmin).mean().item()
        ),
        "this is the share of the area; it does not depend on the attention": lambda seen, mask: (
            mask.float().mean().item()
        ),
        "a row and a column are chosen apart; the largest number has both at once: look for it in "
        "the flattened map": row_and_column,
        "this asks whether more than half of the attention lies on the mask; look only at the "
        "patch that each image "
        "attends to most": lambda seen, mask: (shares(seen, mask) > 0.5).float().mean().item(),
    },
)


def some_weights(blocks: int, batch: int, heads: int, tokens: int) -> list[Tensor]:
    return [drawn(10 * blocks + i, batch, heads, tokens, tokens) for i in range(blocks)]


rollout = Exercise(
    answer="""
def rollout(attention):  # a list of (B, h, N, N), first block first
    N = attention[0].shape[-1]
    flow = torch.eye(N)  # before the first block every token is itself
    for weights in attention:
        step = 0.5 * weights.mean(dim=1) + 0.5 * torch.eye(N)  # (B, N, N)
        flow = step @ flow  # later blocks on the left
    return flow
""",
    trials=[
        call("two blocks of one head, four tokens", some_weights(2, 1, 1, 4)),
        call("three blocks of two heads, 3 pictures, 5 tokens", some_weights(3, 3, 2, 5)),
    ],
    wrong="""
the identity is missing: half of a token stays itself, 0.5 * weights.mean(dim=1) + 0.5 *
torch.eye(N)
    0.5 * weights => weights ;; + 0.5 * torch.eye(N) =>
    + 0.5 * torch.eye(N) =>
half the identity is added to the product; make the step first, half the mean and half the identity,
before multiplying: step @ flow
    0.5 * weights => weights ;; + 0.5 * torch.eye(N) => ;;
        step @ flow => 0.5 * step @ flow + 0.5 * torch.eye(N)
half the identity is added once, at the end: add it in each block, before multiplying
    0.5 * weights => weights ;; + 0.5 * torch.eye(N) => ;;
        return flow => return 0.5 * flow + 0.5 * torch.eye(N)
0.5 is added to every weight; the identity is 1 on the diagonal alone, 0.5 * torch.eye(N)
    0.5 * torch.eye(N) => 0.5
only one of the two is halved, so that a row sums to 1.5 in each block: 0.5 * weights.mean(dim=1) +
0.5 * torch.eye(N)
    0.5 * weights => weights
    0.5 * torch => torch
nothing is halved, so that a row sums to 2 in each block: 0.5 * weights.mean(dim=1) + 0.5 *
torch.eye(N)
    0.5 * weights => weights ;; 0.5 * torch => torch
queries and keys are swapped: a token's weights are a row, so leave the weights as they are, without
.T or .mT
    weights.mean => weights.mT.mean
only the first head is followed: take the mean over the heads, weights.mean(dim=1)
    .mean(dim=1) => [:, 0]
the largest of the heads is taken: take their mean, weights.mean(dim=1)
    .mean(dim=1) => .amax(dim=1)
the heads are summed: take their mean, weights.mean(dim=1)
    .mean(dim=1) => .sum(dim=1)
the heads are still apart: the result must be (B, N, N), so take their mean, weights.mean(dim=1), in
each block
    .mean(dim=1) =>
the mean is taken over the pictures: (B, h, N, N) has the heads on axis 1
    dim=1 => dim=0
the mean is taken over the tokens: (B, h, N, N) has the heads on axis 1
    dim=1 => dim=-1
    dim=1 => dim=-2
the blocks are multiplied in the wrong order: the later block stands on the left, step @ flow
    step @ flow => flow @ step
the blocks are averaged: multiply them, step @ flow
    flow = torch.eye(N) => flow = 0 ;; step @ flow => flow + step / len(attention)
the steps are multiplied place by place: @ is the matrix product, * is not
    step @ flow => step * flow
    flow = torch.eye(N) => flow = torch.ones(N, N) ;; step @ flow => step * flow
this is the last block's step alone: multiply it with the flow so far, step @ flow
    step @ flow => step
only the first block is followed: the `return` stands inside the loop; move it to the left, under
`for`
    flow = step @ flow => return step @ flow
N is a fixed number: take it from the weights, attention[0].shape[-1]
    attention[0].shape[-1] => 5
    attention[0].shape[-1] => 17
the result is transposed: row i must say what token i was mixed from
    return flow => return flow.mT
this is the row of cls alone: give all rows, (B, N, N)
    return flow => return flow[:, 0]
""",
)


BAR = 0.05  # so far the answers must fall below those without rollout's patches
BEATS = Verdict("it beats rollout")


@cache
def other_canvases() -> tuple[ViT, ImageDataset]:
    """The stored weights, and canvases that the lesson does not use."""
    return load_model(SCATTERED).requires_grad_(False), scattered(300, seed=3, held_out=True)


def top(scores: Tensor) -> Tensor:
    """(B, rows · cols), True at each picture's largest."""
    best = scores.flatten(1).argmax(dim=1, keepdim=True)
    return torch.zeros_like(scores.flatten(1), dtype=torch.bool).scatter(1, best, True)


def left_right(scores: Tensor, model: ViT, data: ImageDataset) -> float:
    """The share of answers that are right when cls is blind to the best patches."""
    hidden = top(scores).unflatten(1, scores.shape[1:])
    logits = blinded(model, data.images, hidden)
    return (logits.argmax(dim=1) == data.labels).float().mean().item()


@cache
def by_rollout() -> Tensor:
    """Rollout's map of cls on those canvases."""
    model, data = other_canvases()
    return cls_map(maps.rollout(model(data.images, return_attention=True)[1]), 4)


@cache
def left_by_rollout() -> float:
    return left_right(by_rollout(), *other_canvases())


@cache
def by_blinding(alone: bool = False) -> Tensor:
    """By how much the right class's logit falls when cls is blind to a patch of those canvases.

    With `alone` the other way round: blind to all but the patch.
    """
    model, data = other_canvases()
    falls = torch.zeros(len(data), 16)
    for patch in range(16):
        hidden = torch.full((len(data), 16), alone)
        hidden[:, patch] = not alone
        logits = blinded(model, data.images, hidden.unflatten(1, (4, 4)))
        falls[:, patch] = -logits.gather(1, data.labels[:, None])[:, 0]
    return falls.unflatten(1, (4, 4))


def by_ink(images: Tensor, labels: Tensor) -> Tensor:
    return nn.functional.avg_pool2d(images, 4)[:, 0]


def beat(answer: Callable) -> object:
    """Blind cls to the patch of each of 300 canvases that the answer scores highest."""
    model, data = other_canvases()
    scores = untouched(answer, data.images, data.labels)
    if not isinstance(scores, Tensor) or not scores.is_floating_point():
        return scores
    if scores.shape != (300, 4, 4):
        return Verdict(
            f"it gives {tuple(scores.shape)} for 300 canvases; give (300, 4, 4), a score for each "
            "of the 4×4 patches"
        )
    mine, theirs = left_right(scores, model, data), left_by_rollout()
    if mine <= theirs - BAR:
        return BEATS
    return Verdict(
        f"blind to your patches, {mine:.1%} are still read rightly; blind to rollout's, "
        f"{theirs:.1%}; be at least 5 points below"
    )


needed = Check(
    reference=lambda images, labels: BEATS,  # stands for every answer that does
    trials=[Trial("300 other canvases", beat)],
    mistakes={
        "this is rollout, or orders the patches as it does: ask the model itself what happens to "
        "the answer when cls cannot see one patch": lambda images, labels: by_rollout(),
        "the darkest patches are not those that the model needs most: ask the model itself, one "
        "patch at a time": by_ink,
        "it is the wrong way round: the patches that are needed least come first; a patch is "
        "needed where the right class's logit falls most "
        "without it": lambda images, labels: -by_blinding(),
        "the scores are the same for all patches, so any one is taken": lambda images, labels: (
            torch.zeros(len(images), 4, 4)
        ),
        "this is the last block's map: what cls looks at most in one block is not what the answer "
        "needs most; ask the model itself, one patch at "
        "a time": lambda images, labels: last_map(images),
        "this follows the gradient's size: it tells of a very small change of the pixels, not of "
        "losing a patch; blind cls to each patch in turn": lambda images, labels: gradient_map(
            other_canvases()[0], images, labels, -1.0
        ).abs(),
        "this is gradient × input: it tells of a very small change of the pixels, not of losing a "
        "patch; blind cls to each patch "
        "in turn": lambda images, labels: gradient_map(other_canvases()[0], images, labels, -1.0),
        "rows and columns of patches are swapped: patch 1 stands to "
        "the right of patch 0": lambda images, labels: by_blinding().mT,
        "cls sees this patch and no other here: hide one patch and "
        "leave it the other 15": lambda images, labels: by_blinding(alone=True),
    },
)


def last_map(images: Tensor) -> Tensor:
    weights = other_canvases()[0](images, return_attention=True)[1][-1]
    return cls_map(weights.mean(dim=1), 4)


def faulty(edit: str) -> Callable:
    """The lesson's rollout with this change."""
    return rollout.made(edited(rollout.answer, edit))


without_identity = faulty("0.5 * weights => weights ;; + 0.5 * torch.eye(N) =>")


def right_for_cls(attention: list[Tensor]) -> Tensor:
    """The row of cls is right, and the others lack the identity."""
    return torch.cat(
        [rollout.reference(attention)[:, :1], without_identity(attention)[:, 1:]], dim=1
    )


RIGHT_ONES = (
    "compare with torch.allclose(…, atol=1e-5), not with ==, and give it weights whose rows sum to "
    "1, by softmax(dim=-1)"
)
OTHER_BLOCKS = "give it two blocks that differ"

# What `trust_rollout` is tried on: two right ones, and others with one fault each.
CANDIDATES: dict[str, tuple[Callable, bool, str]] = {
    "the course's rollout": (maps.rollout, True, RIGHT_ONES),
    "a right rollout in another form": (rollout.reference, True, RIGHT_ONES),
    "a rollout without the identity": (
        without_identity,
        False,
        "compare with a result that you know",
    ),
    "a rollout that is right in row 0, and lacks the identity in the others": (
        right_for_cls,
        False,
        "compare all rows",
    ),
    "a rollout with the first block leftmost": (
        faulty("step @ flow => flow @ step"),
        False,
        OTHER_BLOCKS,
    ),
    "a rollout whose rows sum to 2 for each block": (
        faulty("0.5 * weights => weights ;; 0.5 * torch => torch"),
        False,
        "compare the numbers, not their order or ratios",
    ),
    "a rollout with queries and keys swapped": (
        faulty("weights.mean => weights.mT.mean"),
        False,
        "give it weights that are not their own transpose",
    ),
    "a rollout of the largest head": (
        faulty("weights.mean(dim=1) => F.normalize(weights.amax(dim=1), p=1, dim=-1)"),
        False,
        "give it at least two heads that differ",
    ),
    "the mean of the blocks": (
        faulty("flow = torch.eye(N) => flow = 0 ;; step @ flow => flow + step / len(attention)"),
        False,
        OTHER_BLOCKS,
    ),
}


def believes(*names: str) -> Callable:
    """A test that trusts the right ones and these."""
    trusted = [one for one, right, _ in CANDIDATES.values() if right]
    trusted += [CANDIDATES[name][0] for name in names]
    return lambda candidate: any(candidate is one for one in trusted)


IDENTITY, CLS, ORDER, SUM, TURNED, LARGEST, MEAN = list(CANDIDATES)[2:]

trust_rollout = Check(
    reference=believes(),
    trials=[trust(name, *how) for name, how in CANDIDATES.items()],
    mistakes={
        "it trusts a rollout without the identity: compare with a result that you know, not only "
        "with the sums": believes(IDENTITY),
        "it trusts a rollout that is right in row 0 alone: compare all rows": believes(CLS),
        "it trusts the blocks in the wrong order: give it two blocks that differ": believes(ORDER),
        "it trusts a rollout whose rows do not sum to 1: compare the numbers, not only their order "
        "or their ratios": believes(SUM),
        "it trusts a rollout with queries and keys swapped: give it weights that are not their own "
        "transpose": believes(TURNED),
        "it trusts the largest head in place of their mean: "
        "give it at least two heads that differ": believes(LARGEST),
        "it trusts the mean of the blocks, where they are to be multiplied: give it two blocks "
        "that differ": believes(MEAN),
        "it trusts the mean of the blocks and the wrong order: with one block both are the same as "
        "rollout, so give it two blocks that differ": believes(ORDER, MEAN),
        "it trusts whatever has rows that sum to 1: row sums alone do not tell; compare with a "
        "result that you know": believes(IDENTITY, CLS, ORDER, LARGEST, MEAN),
        "it refuses only the one whose rows sum to 2; on the weights that it tries all the others "
        "agree: let blocks and heads differ, random weights "
        "will do": believes(IDENTITY, CLS, ORDER, TURNED, LARGEST, MEAN),
        "it looks at the shape only, or trusts everything: look for weights on which a wrong "
        "rollout differs from a right one, and compare the numbers": lambda candidate: True,
        "it trusts nothing, not even vit_steps.maps.rollout; compare with torch.allclose(…, "
        "atol=1e-5), not with ==": lambda candidate: False,
        f"it trusts one right form and refuses another; {RIGHT_ONES}": (
            lambda candidate: candidate is maps.rollout,
            lambda candidate: candidate is rollout.reference,
        ),
        "it is the wrong way round: True for a rollout to be trusted": lambda candidate: (
            not believes()(candidate)
        ),
    },
)
