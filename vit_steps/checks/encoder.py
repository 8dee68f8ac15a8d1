"""Exercises of lesson 05."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..encoder import Encoder, EncoderBlock
from .engine import Check, InputChangedError, Mistake, Trial, call

# Two tokens of width 4, the second faint, so that where eps stands can be told.
TOKENS = torch.tensor([[1.0, 2, 3, 6], [0.1, -0.1, 0.2, 0.2]])
GAIN, SHIFT = torch.tensor([1.0, 2, 0.5, -1]), torch.tensor([0.0, 0.5, -1, 3])
FLAT = torch.full((1, 2, 3), 5.0)
WAVES = torch.linspace(0, 9, 2 * 3 * 4).sin().reshape(2, 3, 4)


def by_hand(dim: int | None = -1, correction: int = 0, divide: Callable | None = None):
    """A LayerNorm over `dim`, whose centred numbers `divide(centred, variance, eps)` scales."""
    divide = divide or (lambda centred, variance, eps: centred / (variance + eps).sqrt())

    def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-6) -> Tensor:
        axes = dim if dim is not None else tuple(range(x.ndim))
        variance = x.var(axes, correction=correction, keepdim=True)
        return divide(x - x.mean(axes, keepdim=True), variance, eps) * weight + bias

    return layer_norm


layer_norm = Check(
    reference=lambda x, weight, bias, eps=1e-6: F.layer_norm(x, weight.shape, weight, bias, eps),
    trials=[
        call("two tokens of width 4", TOKENS, torch.ones(4), torch.zeros(4)),
        call("the same tokens with eps 0.01", TOKENS, torch.ones(4), torch.zeros(4), eps=0.01),
        call("the same tokens with a weight and a bias", TOKENS, GAIN, SHIFT),
        call("two images of three tokens of width 4", WAVES, GAIN, SHIFT),
        call("two tokens that hold only fives", FLAT, torch.ones(3), torch.zeros(3)),
    ],
    mistakes=[
        Mistake(
            "the variance divides by D - 1; LayerNorm divides by D (correction=0, or the mean of "
            "the squares)",
            by_hand(correction=1),
        ),
        Mistake(
            "it normalises over the tokens, so they leak into each other; take the mean and the "
            "variance over the last axis",
            by_hand(dim=-2),
        ),
        Mistake(
            "it normalises over all axes at once; each token has its own mean and variance, over "
            "the last axis",
            by_hand(dim=None),
        ),
        Mistake(
            "it divides by the variance; divide by its square root",
            by_hand(divide=lambda centred, variance, eps: centred / (variance + eps)),
        ),
        Mistake(
            "eps is added after the root; it belongs to the variance, under the root",
            by_hand(divide=lambda centred, variance, eps: centred / (variance.sqrt() + eps)),
        ),
        Mistake(
            "eps is not used: a token whose numbers are all equal becomes nan",
            by_hand(divide=lambda centred, variance, eps: centred / variance.sqrt()),
        ),
        Mistake(
            "the weight and the bias are not used: multiply by the one, then add the other",
            lambda x, weight, bias, eps=1e-6: F.layer_norm(x, x.shape[-1:], eps=eps),
        ),
    ],
)


def stack(kind: type[Encoder], depth: int) -> Encoder:
    """A small encoder of that kind, with so many blocks."""
    return kind(EncoderBlock(embed_dim=8, num_heads=2) for _ in range(depth))


def shaken(encoder: Encoder) -> Encoder:
    """The encoder with every parameter drawn anew, the norms' included, so that each one counts."""
    for parameter in encoder.parameters():
        nn.init.normal_(parameter, std=0.3)
    return encoder


def taken_apart(depth: int, count: int) -> Trial:
    """Ask for the changes that an encoder of this depth writes to two batches of `count` tokens."""

    def run(answer):
        encoder = shaken(stack(Encoder, depth)).requires_grad_(False)
        x = torch.randn(2, count, 8)
        given = x.clone()
        result = answer(encoder, given)
        if not torch.equal(x, given):
            raise InputChangedError
        return list(result) if isinstance(result, tuple) else result

    return Trial(f"an encoder of {depth} blocks, {count} tokens", run)


def changes(encoder: Any, x: Tensor) -> list[Tensor]:
    """What each block's attention and MLP add to the stream."""
    found = []
    for block in encoder:
        found.append(block.attn(block.norm1(x)))
        x = x + found[-1]
        found.append(block.mlp(block.norm2(x)))
        x = x + found[-1]
    return found


def changes_without_norm(encoder, x):
    found = []
    for block in encoder:
        found.append(block.attn(x))
        x = x + found[-1]
        found.append(block.mlp(x))
        x = x + found[-1]
    return found


def changes_side_by_side(encoder, x):
    found = []
    for block in encoder:
        found += [block.attn(block.norm1(x)), block.mlp(block.norm2(x))]
        x = x + found[-2] + found[-1]
    return found


def changes_of_the_start(encoder, x):
    return [change for block in encoder for change in changes([block], x)]


def changes_replacing(encoder, x):
    found = []
    for block in encoder:
        found.append(block.attn(block.norm1(x)))
        found.append(block.mlp(block.norm2(found[-1])))
        x = found[-1]
    return found


def streams(encoder, x):
    found = []
    for change in changes(encoder, x):
        x = x + change
        found.append(x)
    return found


def changes_by_block(encoder, x):
    found = changes(encoder, x)
    return [a + b for a, b in zip(found[::2], found[1::2], strict=True)]


contributions = Check(
    reference=changes,
    trials=[taken_apart(depth=2, count=3), taken_apart(depth=3, count=5)],
    mistakes=[
        Mistake(
            "the branches read the stream itself; attention reads norm1(x), the MLP norm2(x)",
            changes_without_norm,
        ),
        Mistake(
            "the MLP reads the stream as it was before attention wrote to it; add attention's "
            "change to x first",
            changes_side_by_side,
        ),
        Mistake(
            "every block reads the x that came in at the start; what one block gives is what the "
            "next one reads",
            changes_of_the_start,
        ),
        Mistake(
            "each change replaces the stream; add it instead (x + change)",
            changes_replacing,
        ),
        Mistake(
            "these are the streams after each change; give the changes alone",
            streams,
        ),
        Mistake(
            "this is one change a block; give two, attention's and the MLP's, each by itself",
            changes_by_block,
        ),
    ],
)


class OnlyAttention(Encoder):
    """Keeps the weights of each block and throws its tokens away."""

    def forward(self, x, mask=None, return_attention=False):
        attention = [block(x, mask, return_attention=True)[1] for block in self]
        return (x, attention) if return_attention else x


class OnlyLast(Encoder):
    """Gives every block the same x, and keeps what the last one makes of it."""

    def forward(self, x, mask=None, return_attention=False):
        results = [block(x, mask, return_attention=True) for block in self]
        tokens, attention = results[-1][0], [weights for _, weights in results]
        return (tokens, attention) if return_attention else tokens


class SkipsSecond(Encoder):
    """Runs its second block beside the road."""

    def forward(self, x, mask=None, return_attention=False):
        attention = []
        for number, block in enumerate(self):
            out, weights = block(x, mask, return_attention=True)
            x = x if number == 1 else out
            attention.append(weights)
        return (x, attention) if return_attention else x


def listened_to(what: str, kind: type[Encoder], depth: int, trained: bool = False) -> Trial:
    """Ask which blocks of such an encoder are not heard, and see that its weights are left."""

    def run(answer):
        encoder = shaken(stack(kind, depth))
        x = torch.randn(2, 3, 8)
        if trained:  # one step in which all blocks were heard
            healthy = Encoder(encoder)
            healthy(x).sum().backward()
        before = {name: weight.clone() for name, weight in encoder.state_dict().items()}
        given = x.clone()
        result = answer(encoder, given)
        if not torch.equal(x, given):
            raise InputChangedError
        after = encoder.state_dict()
        left = all(torch.allclose(after[name], before[name], atol=1e-5) for name in before)
        return result if left or result is ... else "other weights"

    return Trial(what, run)


def without_gradient(encoder: Encoder, x: Tensor) -> list[int]:
    """The numbers of the blocks none of whose parameters has a gradient from the tokens."""
    encoder.zero_grad()
    tokens = encoder(x)
    if tokens.requires_grad:
        tokens.sum().backward()
    return [i for i, block in enumerate(encoder) if not has_gradient(block)]


def has_gradient(block: nn.Module) -> bool:
    return any(p.grad is not None for p in block.parameters())


def unheard_with_stale_gradients(encoder, x):
    tokens = encoder(x)
    if tokens.requires_grad:
        tokens.sum().backward()
    return [i for i, block in enumerate(encoder) if not has_gradient(block)]


def unheard_in_all_results(encoder, x):
    encoder.zero_grad()
    tokens, attention = encoder(x, return_attention=True)
    (tokens.sum() + sum(weights.sum() for weights in attention)).backward()
    return [i for i, block in enumerate(encoder) if not has_gradient(block)]


def unheard_by_overwriting(encoder, x):
    unheard = without_gradient(encoder, x)
    shaken(encoder)
    return unheard


def heard(encoder, x):
    unheard = without_gradient(encoder, x)
    return [i for i in range(len(encoder)) if i not in unheard]


unheard_blocks = Check(
    reference=without_gradient,
    trials=[
        listened_to("a healthy encoder of 3 blocks", Encoder, 3),
        listened_to("an encoder that keeps only the attention", OnlyAttention, 3),
        listened_to("an encoder that gives every block the first x", OnlyLast, 4),
        listened_to("an encoder that skips its second block", SkipsSecond, 3),
        listened_to(
            "an encoder that keeps only the attention, with gradients left from before",
            OnlyAttention,
            2,
            trained=True,
        ),
    ],
    mistakes=[
        Mistake(
            "the weights are not as they were: a test must leave the model as it found it; put "
            "them back, or try it on a copy (copy.deepcopy)",
            unheard_by_overwriting,
        ),
        Mistake(
            "gradients left from an earlier step look like new ones: clear them first "
            "(encoder.zero_grad())",
            unheard_with_stale_gradients,
        ),
        Mistake(
            "the attention weights are counted as well: a block that only gives those is unheard; "
            "look at the tokens alone",
            unheard_in_all_results,
        ),
        Mistake("these are the blocks that are heard; give the others", heard),
        Mistake(
            "this is how many blocks are unheard; give their numbers, in a list",
            lambda encoder, x: len(without_gradient(encoder, x)),
        ),
        Mistake(
            "this is one True or False a block; give the numbers of the unheard ones",
            lambda encoder, x: [i in without_gradient(encoder, x) for i in range(len(encoder))],
        ),
        Mistake(
            "the blocks are counted from 1; count from 0, as Python does",
            lambda encoder, x: [1 + number for number in without_gradient(encoder, x)],
        ),
    ],
)
