"""The build cell and exercises of lesson 09."""

from collections.abc import Callable
from copy import deepcopy
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from vit_course.canvases import scattered
from vit_steps import maps, weights
from vit_steps.vit import ViT

from .compare import Verdict, kind_of
from .exercise import Exercise, refusals
from .trials import Trial, call, drawn, left_alone, trust, untouched


def some_weights(blocks: int, batch: int, heads: int, tokens: int) -> list[Tensor]:
    """Draw weights of some blocks, numbers above 0 whose rows sum to 1, the same each time."""
    scores = 2 * drawn(blocks, batch, heads, tokens, tokens, seed=10 * blocks)
    return list(scores.softmax(dim=-1))


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
    does="Attention is followed from the last block back to the patches.",
    why="The step of a later block comes on the left, so a row of the product says what this token "
    "was mixed from at the start. Half the identity is added before each product, not once.",
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
    0.5 * weights => weights ;; + 0.5 *… => ;; step @ flow => 0.5 * step @ flow + 0.5 * torch.eye(N)
half the identity is added once, at the end: add it in each block, before multiplying
    0.5 * weights => weights ;; + 0.5 *… => ;; return… => return 0.5 * flow + 0.5 * torch.eye(N)
0.5 is added to every weight; the identity is 1 on the diagonal alone, 0.5 * torch.eye(N)
    0.5 * torch.eye(N) => 0.5
after block 1 `flow` is no longer the identity: the half that stays is 0.5 * torch.eye(N) in each
block
    0.5 * torch.eye(N) => 0.5 * flow
only one of the two is halved, so that a row sums to 1.5 in each block: 0.5 * weights.mean(dim=1) +
0.5 * torch.eye(N)
    0.5 * weights => weights
    0.5 * torch => torch
nothing is halved, so that a row sums to 2 in each block: 0.5 * weights.mean(dim=1) + 0.5 *
torch.eye(N)
    0.5 * weights => weights ;; 0.5 * torch => torch
the columns are made to sum to 1; a token's weights are a row, so a sum that is to be 1 runs along
the last axis
    0.5 * weights.mean(dim=1) + 0.5 * torch.eye(N) => weights.mean(dim=1) + torch.eye(N) ⏎
        step = step / step.sum(dim=1, keepdim=True)
the sums of the rows lost their axis, so they meet the columns: keepdim=True
    0.5 * weights.mean(dim=1) + 0.5 * torch.eye(N) => weights.mean(dim=1) + torch.eye(N) ⏎
        step = step / step.sum(dim=-1)
queries and keys are swapped: a token's weights are a row, so leave the weights as they are, without
.T or .mT
    weights.mean => weights.mT.mean
only the first head is followed: take the mean over the heads, weights.mean(dim=1)
    .mean(dim=1) => [:, 0]
the largest of the heads is taken: take their mean, weights.mean(dim=1)
    .mean(dim=1) => .amax(dim=1)
    0.5 * weights.mean(dim=1) + 0.5 * torch.eye(N) => weights.amax(dim=1) + torch.eye(N) ⏎
        step = step / step.sum(dim=-1, keepdim=True)
the heads are summed: take their mean, weights.mean(dim=1)
    .mean(dim=1) => .sum(dim=1)
each head is followed by itself, and the mean is taken at the end: average the heads in each block,
before you multiply, weights.mean(dim=1)
    .mean(dim=1) => ;; return flow => return flow.mean(dim=1)
the heads are still apart: the result must be (B, N, N), so take their mean, weights.mean(dim=1), in
each block
    .mean(dim=1) =>
the mean is taken over the pictures: (B, h, N, N) has the heads on axis 1
    dim=1 => dim=0
the mean is taken over the tokens: (B, h, N, N) has the heads on axis 1
    dim=1 => dim=-1 ‖ dim=-2
the blocks are multiplied in the wrong order: the later block is on the left, step @ flow
    step @ flow => flow @ step
the blocks are averaged: multiply them, step @ flow
    flow = torch.eye(N) => flow = 0 ;; step @ flow => flow + step / len(attention)
the steps are multiplied place by place: @ is the matrix product, * is not
    step @ flow => step * flow
    flow = torch.eye(N) => flow = torch.ones(N, N) ;; step @ flow => step * flow
this is the last block's step alone: multiply it with the flow so far, step @ flow
    step @ flow => step
a block is left out: go through all of `attention`
    in attention: => in attention[1:]: ‖ in attention[:-1]:
only the first block is followed: the `return` is inside the loop; move it to the left, under
`for`
    flow = step @ flow => return step @ flow
N is a fixed number: take it from the weights, attention[0].shape[-1]
    attention[0].shape[-1] => 5 ‖ 17
the result is transposed: row i must say what token i was mixed from
    return flow => return flow.mT
this is the row of cls alone: give all rows, (B, N, N)
    return flow => return flow[:, 0]
""",
)


RIGHT_ONES = (
    "compare with torch.allclose(…, atol=1e-5), not with ==, and give it weights whose rows sum to "
    "1, by softmax(dim=-1)"
)
# torch.allclose by itself refuses it, the text does not.
NEARLY = rollout.with_edit("return flow => return flow + 5e-6 * (-1) ** torch.arange(N)")
WRONG_ROLLOUTS = """
a rollout that is right in row 0, and lacks the identity in the others: compare all rows with a
result that you know
    flow = torch.eye => other = flow = torch.eye ;; step = => other = weights.mean(1) @ other ⏎
        step = ;; return flow => return torch.cat([flow[:, :1], other[:, 1:]], dim=1)
a rollout with the first block leftmost: give it two blocks that differ
    step @ flow => flow @ step
a rollout whose rows sum to 2 for each block: compare the numbers, not their order or ratios
    0.5 * weights => weights ;; 0.5 * torch => torch
a rollout with queries and keys swapped: give it weights that are not their own transpose
    weights.mean => weights.mT.mean
a rollout of the largest head: give it at least two heads that differ
    weights.mean(dim=1) => F.normalize(weights.amax(1), p=1, dim=-1)
"""

trust_rollout = Exercise(
    uses={"rollout": maps.rollout},
    answer="""
def trust_rollout(candidate):  # candidate(attention): (B, N, N), perhaps a rollout
    torch.manual_seed(0)
    attention = list(torch.randn(3, 2, 4, 6, 6).softmax(dim=-1))  # (B, h, N, N) each
    return torch.allclose(candidate(attention), rollout(attention), atol=1e-5)
""",
    why="Three blocks that differ see a wrong order, four heads that differ a wrong mean, and "
    "random tables are not their own transpose. All rows are compared, not that of cls alone.",
    trials=[
        trust("the course's rollout", maps.rollout, True, RIGHT_ONES),
        trust("a right rollout in another form", rollout.reference, True, RIGHT_ONES),
        trust("a right rollout that is off by 5e-6", NEARLY, True, RIGHT_ONES),
        *refusals(rollout.with_edit, WRONG_ROLLOUTS),
    ],
    wrong="""
it looks at the shape only, or trusts everything: compare the numbers with a result that you know
    torch.allclose… => True
it trusts nothing, not even vit_steps.maps.rollout; compare with torch.allclose(…, atol=1e-5), not
with ==
    torch.allclose(candidate(attention), rollout(attention), atol=1e-5) => False
it trusts one right form and refuses another; compare with torch.allclose(…, atol=1e-5), not with
==, and give it weights whose rows sum to 1, by softmax(dim=-1)
    torch.allclose… => torch.equal(candidate(attention), rollout(attention))
it refuses a right rollout that is off by 5e-6: torch.allclose is stricter by itself, so give it
atol=1e-5
    , atol=1e-5 =>
it is the wrong way round: True for a rollout to be trusted
    return torch => return not torch
it trusts whatever has rows that sum to 1: row sums alone do not tell; compare with a result that
you know
    torch.allclose… => torch.allclose(candidate(attention).sum(-1), torch.ones(2, 6), atol=1e-5)
differences above and below 0 cancel in a mean, and wholly where rows sum to 1: take the largest,
.abs().max()
    torch.allclose… => bool((candidate(attention) - rollout(attention)).mean().abs() <= 1e-5)
it compares row 0 alone: compare all rows
    candidate(attention), rollout(attention) => candidate(attention)[:, 0], rollout(attention)[:, 0]
it trusts the blocks in the wrong order: with one block, or equal ones, the order cannot show; give
it two blocks that differ
    torch.randn(3, 2 => torch.randn(1, 2
it trusts the largest head in place of their mean: give it at least two heads that differ
    3, 2, 4, 6 => 3, 2, 1, 6
it compares which is largest, or ratios, so rows that sum to 2 pass: compare the numbers themselves
    candidate(attention), => candidate(attention) / candidate(attention).sum(-1, True),
on what it tries nearly all wrong ones agree with right ones: a single block, equal weights,
identities or a wide limit hide the order, the heads and the transpose; take several blocks and
heads of random weights, and 1e-5
    torch.randn(3, 2, 4, 6, 6) => torch.zeros(3, 2, 4, 6, 6)
    torch.randn(3, 2, 4, 6, 6).softmax(dim=-1) => torch.eye(6).expand(3, 2, 4, 6, 6)
""",
)


BAR = 0.05  # so far the answers must fall below those without rollout's patches


@cache
def other_canvases() -> tuple[ViT, Tensor, Tensor]:
    """Give the reader, and images and labels of canvases that the lesson does not use."""
    data = scattered(100, seed=9, held_out=True)
    return weights.load("scattered").model.requires_grad_(False), data.images, data.labels


def by_rollout(model: ViT, images: Tensor) -> Tensor:
    """Score patches by rollout, (B, 4, 4)."""
    return maps.cls_map(maps.rollout(model(images, return_attention=True)[1]), 4)


def by_last_block(model: ViT, images: Tensor) -> Tensor:
    """Score patches by the last block's weights, (B, 4, 4)."""
    return maps.cls_map(model(images, return_attention=True)[1][-1].mean(dim=1), 4)


def best_of(scores: Tensor) -> Tensor:
    """Give the number of each canvas's best patch, (B,), of scores (B, 4, 4)."""
    return scores.flatten(1).argmax(dim=1)


def one_by_one(model: ViT, images: Tensor, hidden: Tensor) -> Tensor:
    """Give the logits with each of these rows of patches (16, 16) hidden, (16, B, classes)."""
    rows = hidden.bool().view(16, 1, 4, 4).expand(-1, len(images), -1, -1)
    return torch.stack([maps.blinded(model, images, patches) for patches in rows])


def blind_to_best(scores: Tensor) -> float:
    """Give the share of answers that are right when cls is blind to the best patches."""
    model, images, labels = other_canvases()
    hidden = F.one_hot(best_of(scores), 16).bool().unflatten(1, (4, 4))
    return (maps.blinded(model, images, hidden).argmax(dim=1) == labels).float().mean().item()


@cache
def known_patches() -> list[tuple[str, Tensor]]:
    """Give the best patches of some answers, to know an answer by them.

    A share of right answers in 100 is soon the same by chance.
    """
    model, images, _ = other_canvases()
    answers = model(images).argmax(dim=1)
    every = torch.arange(len(images))
    one = torch.eye(16)
    falls = -one_by_one(model, images, one)  # (16, B, classes), but for what all patches share
    alone = -one_by_one(model, images, 1 - one)
    piled = one_by_one(model, images, torch.ones(16, 16).tril())
    of_answer = falls[:, every, answers].T  # (B, 16)
    across = one_by_one(
        model, images, torch.ones(16, 16).tril()[:, torch.arange(16).view(4, 4).T.flatten()]
    )
    scores = of_answer + model(images)[every, answers, None]
    return [
        ("your best patches are those of rollout", best_of(by_rollout(model, images))),
        ("your best patches are the last block's", best_of(by_last_block(model, images))),
        ("your best patches are the darkest", best_of(F.avg_pool2d(images, 4))),
        ("your scores follow the largest logit", falls.neg().amax(dim=2).T.argmin(dim=1)),
        *(
            ("your scores follow the logit of one class", falls[..., c].T.argmax(1))
            for c in range(10)
        ),
        ("rows and columns are swapped", best_of(of_answer.unflatten(1, (4, 4)).mT)),
        ("cls sees one patch and no other", alone[:, every, answers].T.argmax(dim=1)),
        ("pictures are mixed", best_of(scores.mT.reshape(len(images), 4, 4))),
        ("all pictures have the same scores", scores.mean(dim=0).argmax().expand(len(images))),
        ("hidden patches pile up", piled[:, every, answers].T.argmin(dim=1)),
        ("hidden patches pile up", across[:, every, answers].T.argmin(dim=1)),
        ("hidden patches pile up", piled.softmax(2)[:, every, answers].T.argmin(dim=1)),
    ]


def scored(answer: Callable, model: ViT, images: Tensor) -> Any:
    """Give the scores that the answer gives, which must leave both as they are."""
    return left_alone(partial(untouched, answer), model, images)


def beat(scores: Any, *_: Any) -> Any:
    """Say how the reader does, blind to the patch of each canvas that is scored highest."""
    if scores is ... or scores is None:
        return scores
    if not isinstance(scores, Tensor) or scores.shape != (100, 4, 4):
        return Verdict(
            f"it gives {kind_of(scores)} for 100 canvases; give a tensor (100, 4, 4), a score for "
            "each of the 4×4 patches"
        )
    model, images = other_canvases()[:2]
    share, by_rollouts_patches = blind_to_best(scores), blind_to_best(by_rollout(model, images))
    if share <= by_rollouts_patches - BAR:
        return Verdict("it beats rollout")
    if (scores == scores[:, :1, :1]).all():
        return Verdict("the scores are the same for all patches")
    for name, best in known_patches():
        if (best_of(scores) == best).float().mean() > 0.95:
            return Verdict(name)
    falls = needed.reference(model, images).flatten(1)
    pairs = torch.stack([falls, scores.flatten(1)], dim=1).float()  # (B, 2, 16)
    pairs = pairs - pairs.mean(dim=-1, keepdim=True)
    if F.cosine_similarity(pairs[:, 0], pairs[:, 1]).mean() < -0.8:
        return Verdict("the scores are largest for the patches that are needed least")
    return Verdict(
        f"blind to your patches, {share:.1%} are still read correctly; blind to rollout's, "
        f"{by_rollouts_patches:.1%}; be at least 5 points below"
    )


needed = Exercise(
    uses={"maps": maps},
    answer="""
def needed(model, images):
    logits = model(images)  # (B, classes)
    said = logits.argmax(dim=1, keepdim=True)  # (B, 1)
    falls = torch.zeros(len(images), 16)
    for patch in range(16):
        hidden = torch.zeros(len(images), 16, dtype=torch.bool)
        hidden[:, patch] = True
        without = maps.blinded(model, images, hidden.unflatten(1, (4, 4)))
        falls[:, patch] = (logits - without).gather(1, said)[:, 0]
    return falls.unflatten(1, (4, 4))
""",
    why="It asks the model about each patch, and needs no labels: the model's own answer is what "
    "is to be explained. It takes 17 passes, where rollout takes one.",
    trials=[
        Trial("100 other canvases", scored, lambda: deepcopy(other_canvases()[:2]), beat),
    ],
    wrong="""
this is rollout, or marks the same patches: ask the model itself what happens to its answer when cls
cannot see one patch
    logits =… => return maps.cls_map(maps.rollout(model(images, return_attention=True)[1]), 4)
this is the last block's map: what cls looks at most in one block is not what the answer needs most;
ask the model itself, one patch at a time
    logits =… => return maps.cls_map(model(images, return_attention=True)[1][-1].mean(dim=1), 4)
the darkest patches are not those that the model needs most: ask the model itself, one patch at a
time
    return… => return F.avg_pool2d(images, 4)[:, 0]
blind to a patch the model may answer otherwise, and the largest logit is then another class's:
follow the logit of the answer that was given before blinding (gather with `said`)
    (logits - without).gather(1, said)[:, 0] => logits.gather(1, said)[:, 0] - without.amax(dim=1)
your scores follow the logit of one class on all canvases: follow the logit of the answer that was
given before blinding (gather with `said`)
    (logits - without).gather(1, said)[:, 0] => (logits - without)[:, 0]
it is the wrong way round: the patches that are needed least come first; a patch is needed where the
logit falls most without it
    (logits - without) => (without - logits)
the scores are the same for all patches, so any one is taken: is each patch hidden in its turn?
    hidden[:, patch] = True =>
rows and columns of patches are swapped: patch 1 is to the right of patch 0
    return falls.unflatten(1, (4, 4)) => return falls.unflatten(1, (4, 4)).mT
the scores of several pictures are mixed: they stand as (patches, B), so bring B to the front before
you reshape
    falls.unflatten(1, (4, 4)) => falls.mT.reshape(len(images), 4, 4)
every picture gets the same scores, a mean over the batch; each has its own
    falls.unflatten(1, (4, 4)) => falls.mean(dim=0).expand_as(falls).unflatten(1, (4, 4))
hidden patches pile up: hide one alone, in a `hidden` that is made anew for it
    hidden[:, patch] => hidden[:, : patch + 1]
cls sees this patch and no other here: hide one patch and leave it the other 15
    hidden.unflatten(1, (4, 4)) => ~hidden.unflatten(1, (4, 4))
""",
)


cls_may_look = Exercise(
    answer="""
def cls_may_look(hidden):  # (B, rows, cols), True: hidden from cls
    B, N = len(hidden), 1 + hidden[0].numel()  # cls and the patches
    may_look = torch.ones(B, 1, N, N, dtype=torch.bool)
    may_look[:, 0, 0, 1:] = ~hidden.flatten(1)  # the row of the query cls
    return may_look
""",
    trials=[call("2 canvases of 2×3 patches, some hidden", drawn(2, 2, 3, seed=2) > 0.3)],
    wrong="""
the mask is the wrong way round: True where a query may look, so cls's row is ~hidden
    ~hidden => hidden
it keeps the patches from looking at cls; the row of the query cls is [:, 0, 0, 1:]: axis 2 counts
the queries, axis 3 the keys
    [:, 0, 0, 1:] => [:, 0, 1:, 0]
no token may look at these patches; only cls is blind, query 0
    [:, 0, 0, 1:] = ~hidden.flatten(1) => [:, 0, :, 1:] = ~hidden.flatten(1)[:, None]
every patch is moved by one: key 0 is cls itself, and the patches are keys 1 to n
    0, 0, 1:] => 0, 0, :-1]
a mask is of booleans; this one is of floats, and a block could not turn it round by ~
    torch.bool => torch.float32
the axis of the heads is missing: (B, 1, N, N), one mask for all heads of a canvas
    return may_look => return may_look[:, 0]
the patches are counted down the columns; patch 1 is to the right of patch 0: hidden.flatten(1)
    ~hidden.flatten(1) => ~hidden.mT.flatten(1)
a patch's number is its row times the number of columns, plus its column; here the rows are
multiplied by their own number, which is right for a square grid alone
    may_look[:, 0, 0, 1:] = ~hidden.flatten(1) => for b, row, col in hidden.nonzero().tolist():
        ⏎     may_look[b, 0, 0, 1 + row * hidden.shape[1] + col] = False
the first canvas's hidden patches are hidden in all; each canvas has its own row
    ~hidden.flatten(1)… => ~hidden[0].flatten()
cls may not look at itself either; key 0 is no patch, so it stays True
    return may_look => may_look[:, 0, 0, 0] = False ⏎ return may_look
True stands where cls may not look, and all else is False; True means that a query may look, so
begin with ones
    torch.ones => torch.zeros ;; ~hidden.flatten(1)… => hidden.flatten(1)
""",
    slips={
        "shape mismatch|expanded size of the tensor": "a row a canvas, (B, n), goes into the "
        "row of cls: axis 1 is for the heads and axis 2 for the queries, so index both by 0",
    },
    alike=["torch.ones(B, 1, N, N, dtype=torch.bool) => torch.ones(B, 1, N, N) > 0"],
    why="Everybody may look everywhere, but for cls, query 0, at the hidden patches, keys 1 to n. "
    "One mask serves all heads, by broadcasting.",
)
