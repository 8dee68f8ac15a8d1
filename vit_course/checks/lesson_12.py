"""Exercises of lesson 12: broken models, to repair until the doctor finds nothing.

That alone would let any sound model through. So each repaired class is also given the weights of
the sound one, and must give its numbers.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from vit_doctor import Report, examine
from vit_steps.attention import MultiHeadAttention
from vit_steps.encoder import Encoder, EncoderBlock
from vit_steps.heads import merge_heads, split_qkv
from vit_steps.vit import ViT, ViTConfig

from .compare import Verdict
from .engine import LEFT, Check, outcome
from .trials import Trial, module

SMALL = ViTConfig(image_size=32, patch_size=8, num_classes=10, embed_dim=48, depth=2, num_heads=4)
TINY = ViTConfig(
    image_size=(16, 24), patch_size=8, in_channels=1, num_classes=5, embed_dim=12, depth=3,
    num_heads=3,
)  # fmt: skip


SLIPS = {
    "inplace operation": "backward fails, since `+=` writes over numbers that the gradient needs; "
    "make a new tensor, x = x + y"
}


class Diagnosis(Verdict):
    """What the doctor finds, in words. Two are the same where both find something, or neither.

    So a known mistake is recognised by its numbers, whatever else the doctor says of it.
    """

    sick: bool

    def __new__(cls, report: Report):
        count = f"{len(report)} finding{'s' * (len(report) != 1)}"
        found = [replace(each, where=in_cell(each.where)) for each in report]
        made = super().__new__(cls, "\n".join([count, *map(str, found)]))
        made.sick = len(report) > 0
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Diagnosis) and self.sick == other.sick

    def __hash__(self) -> int:
        return hash(self.sick)


def in_cell(where: str) -> str:
    """The place of a finding as a learner can find it: the lines of other files are not theirs."""
    path, _, line = where.rstrip(")").rpartition(" (")
    cell = re.fullmatch(r"line (\d+) of a cell", line)
    if not cell:
        return path or line
    return f"{path}, line {cell[1]} of your cell".removeprefix(", ")


def examined(build: Callable[[Callable], Any]) -> Trial:
    """Let the doctor examine the model that is built with an answer."""

    def run(answer: Callable) -> Any:
        model = build(answer)
        if not isinstance(model, ViT):
            return model
        logits = model(torch.zeros(1, 3, 32, 32))  # an error is told with its line
        if isinstance(logits, Tensor) and logits.requires_grad:
            logits.sum().backward()
        return Diagnosis(examine(model, image_size=32))

    return Trial("the doctor", run)


def with_blocks(block: Callable) -> Any:
    """A small ViT with two such blocks; what is no block is given back."""
    made = [block(SMALL.embed_dim, SMALL.num_heads) for _ in range(SMALL.depth)]
    if not isinstance(made[0], nn.Module):
        return made[0]
    model = ViT(SMALL)
    model.blocks = Encoder(made)
    return model


def with_attention(attention: Callable) -> Any:
    """A small ViT with such attention in its blocks; what is no module is given back."""
    made = [attention(SMALL.embed_dim, SMALL.num_heads) for _ in range(SMALL.depth)]
    if not isinstance(made[0], nn.Module):
        return made[0]
    model = ViT(SMALL)
    for block, attn in zip(model.blocks, made, strict=True):
        block.attn = attn
    return model


class PatientCheck(Check):
    """The check of a repair. A class that does what it did is told what the doctor finds in it.

    Args:
        sick: the class as it came.
    """

    def __init__(self, sick: Callable, *args: Any, **options: Any):
        super().__init__(*args, slips=SLIPS, **options)
        self.sick = sick

    def judge(self, attempt: Callable) -> str:
        """The message for an attempt."""
        message = super().judge(attempt)
        if not message.startswith("the doctor: "):
            return message
        results = [outcome(trial, attempt, self.slips) for trial in self.trials]
        if all(self.agrees(self.sick, results, number) for number in range(len(results))):
            return f"{LEFT}, or without effect; {message}"
        return message


def waves(*shape: int) -> Tensor:
    """Numbers between -1 and 1, no two alike."""
    count = torch.Size(shape).numel()
    return torch.linspace(0, 9 + count / 7, count).sin().reshape(shape)


def compared(sound: str, sizes: tuple, inputs: Tensor) -> list[Trial]:
    """Trials of a repaired class beside the sound one: what they give, with weights and without."""
    beside = f"the doctor is content; beside a sound {sound} with the same weights"
    return [
        module(beside, sizes, inputs),
        module(f"{beside}, with return_attention=True", sizes, inputs, return_attention=True),
    ]


ALWAYS_TWO = "it gives two things always; give the weights only where return_attention is True"
ASKED = "with return_attention=True it is to give two things, the tokens and the weights"


# first_patient -----------------------------------------------------------------------------------


def reflecting(branch: Callable) -> Callable:
    """What a block does, where `branch` makes the stream from the block, the stream behind
    attention, the one before, and attention's change."""

    def steps(b: Any, x: Tensor, mask: Any) -> tuple[Tensor, Tensor]:
        y, weights = b.attn(b.norm1(x), mask, return_attention=True)
        return branch(b, x + y, x, y), weights

    return steps


def block(
    steps: Callable, gives: Callable = lambda x, w, both: (x, w) if both else x
) -> type[EncoderBlock]:
    """A block that does these steps with (block, x, mask) and gives what `gives` makes of the
    tokens, the weights, and whether both are asked for."""

    class Other(EncoderBlock):
        def forward(self, x, mask=None, return_attention=False):
            return gives(*steps(self, x, mask), return_attention)

    return Other


def reflect(branch: Callable) -> type[EncoderBlock]:
    return block(reflecting(branch))


right_block = reflecting(lambda b, x, *_: x + b.mlp(b.norm2(x)))


def without_norm1(b: Any, x: Tensor, mask: Any) -> tuple[Tensor, Tensor]:
    y, weights = b.attn(x, mask, return_attention=True)
    x = x + y
    return x + b.mlp(b.norm2(x)), weights


def without_norm2(norm: nn.Module | None) -> type[EncoderBlock]:
    """A block whose norm2 is gone, or something else."""

    class Other(EncoderBlock):
        def __init__(self, *sizes):
            super().__init__(*sizes)
            self.norm2 = norm

        def forward(self, x, mask=None, return_attention=False):
            x, weights = reflecting(lambda b, x, *_: x + b.mlp(x))(self, x, mask)
            return (x, weights) if return_attention else x

    return Other


first_patient = PatientCheck(
    sick=reflect(lambda b, x, *_: x + b.mlp(x)),
    reference=block(right_block),
    trials=[examined(with_blocks), *compared("block", (12, 3), waves(2, 5, 12))],
    mistakes={
        "the norm comes after the MLP; it comes before: the MLP reads norm2(x)": reflect(
            lambda b, x, *_: x + b.norm2(b.mlp(x))
        ),
        "the MLP reads norm2(x) now, but the stream itself is normed too, x = norm2(x); give what "
        "the norm makes another name": reflect(lambda b, x, *_: b.norm2(x) + b.mlp(b.norm2(x))),
        "the MLP's change takes the stream's place; add it to x": reflect(
            lambda b, x, *_: b.mlp(b.norm2(x))
        ),
        "norm2 is given y, attention's change alone; it is to norm the stream, x": reflect(
            lambda b, x, start, y: x + b.mlp(b.norm2(y))
        ),
        "the MLP reads norm1's numbers; it has a norm of its own, norm2": (
            reflect(lambda b, x, *_: x + b.mlp(b.norm1(x))),
            reflect(lambda b, x, start, y: x + b.mlp(b.norm1(start))),
        ),
        "the MLP reads what passed two norms, norm1 and norm2; norm2 alone": reflect(
            lambda b, x, *_: x + b.mlp(b.norm2(b.norm1(x)))
        ),
        "norm2's numbers are used now, but the MLP still reads x; hand them to the MLP": (
            reflect(lambda b, x, *_: x + b.mlp(x) + b.norm2(x)),
            reflect(lambda b, x, *_: b.norm2(x) + b.mlp(x)),
        ),
        "the MLP reads the x that came in; attention's change is to be in it": reflect(
            lambda b, x, start, y: x + b.mlp(b.norm2(start))
        ),
        "the norm comes after the sum; it belongs before the MLP, and the sum stays as it is": (
            reflect(lambda b, x, *_: b.norm2(x + b.mlp(x))),
            reflect(lambda b, x, *_: b.norm2(x + b.mlp(b.norm2(x)))),
        ),
        "norm2 is gone, and with it the finding; keep it, and let the MLP read what it gives": (
            without_norm2(None),
            without_norm2(nn.Identity()),
        ),
        "norm2 is right now, but attention reads x; it reads norm1(x), as it did": block(
            without_norm1
        ),
        "attention's change is lost; add it to x, as it was": reflect(
            lambda b, x, start, y: start + b.mlp(b.norm2(start))
        ),
        ALWAYS_TWO: block(right_block, lambda x, w, both: (x, w)),
        ASKED: block(right_block, lambda x, w, both: x),
    },
)


# second_patient ----------------------------------------------------------------------------------


def scores_of(q: Tensor, k: Tensor) -> Tensor:
    """(B, h, queries, keys)."""
    return q @ k.mT / k.shape[-1] ** 0.5


def attention(
    mix: Callable,
    merge: Callable = merge_heads,
    gives: Callable = lambda x, w, both: (x, w) if both else x,
    project: Callable = lambda m, x: m.proj(x),
) -> type[MultiHeadAttention]:
    """Attention that makes of q, k and v what is mixed, and the weights."""

    class Other(MultiHeadAttention):
        def forward(self, x, mask=None, return_attention=False):
            mixed, weights = mix(*split_qkv(self.qkv(x), self.num_heads))
            return gives(project(self, merge(mixed)), weights, return_attention)

    return Other


def weighed(weigh: Callable, scores: Callable = scores_of) -> Callable:
    """Make the weights (B, h, queries, keys) of the scores, and mix the values by them."""

    def mix(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        weights = weigh(scores(q, k))
        return weights @ v, weights

    return mix


def turned(mix: Callable) -> Callable:
    """The same, with weights that stand as (keys, queries)."""

    def other(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        mixed, weights = mix(q, k, v)
        return mixed, weights.mT

    return other


right_mix = weighed(lambda s: s.softmax(-1))
right_but_turned = turned(right_mix)


def first_line_only(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    weights = scores_of(q, k).softmax(-1)
    return weights.mT @ v, weights


def last_line_only(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    return right_mix(k, q, v)


def scaled_late(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    weights = (q @ k.mT).softmax(-1) / k.shape[-1] ** 0.5
    return weights @ v, weights


def shared_afterwards(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    weights = scores_of(q, k).softmax(-2)
    weights = weights / weights.sum(-1, keepdim=True)
    return weights @ v, weights


def either_way(weigh: Callable, scores: Callable = scores_of) -> tuple[Callable, Callable]:
    """Attention with such weights, given as they are and turned."""
    mix = weighed(weigh, scores)
    return attention(mix), attention(turned(mix))


second_patient = PatientCheck(
    sick=attention(turned(weighed(lambda s: s.softmax(-2)))),
    reference=attention(right_mix),
    trials=[examined(with_attention), *compared("attention", (12, 3), waves(2, 5, 12))],
    mistakes={
        "the weights of a query sum to 1 now, and the mixed values are right; the weights that it "
        "gives stand as (keys, queries): give (B, h, queries, keys)": attention(right_but_turned),
        "the softmax is over the keys now, but the line that mixes takes keys for queries; name "
        "the axes of the weights alike in both, (queries, keys)": (
            attention(first_line_only),
            attention(turned(first_line_only)),
        ),
        "rows sum to 1, and the doctor is content, but queries and keys have changed places: the "
        "softmax is still over the queries, and the mix over them too; share out each query's "
        "whole among its keys": (
            attention(last_line_only),
            attention(turned(last_line_only)),
        ),
        "the softmax is over the heads now; it is over the keys": either_way(
            lambda s: s.softmax(1)
        ),
        "the softmax is over the queries still, and the division afterwards hides it; one softmax, "
        "over the keys": (attention(shared_afterwards), attention(turned(shared_afterwards))),
        "this is two softmaxes, one after the other; one, over the keys": (
            *either_way(lambda s: s.softmax(-2).softmax(-1)),
            *either_way(lambda s: s.softmax(-1).softmax(-2)),
        ),
        "the softmax is over all pairs of a head; over the keys alone, for each query": either_way(
            lambda s: s.flatten(-2).softmax(-1).view_as(s)
        ),
        "the softmax is over the keys now, but the scale is lost; divide the scores by √d": (
            either_way(lambda s: s.softmax(-1), lambda q, k: q @ k.mT)
        ),
        "the softmax is over the keys now, but the scale comes after it; before, on the scores": (
            attention(scaled_late),
            attention(turned(scaled_late)),
        ),
        "the heads are merged by a view, which mixes tokens and heads up; use merge_heads": (
            attention(right_mix, lambda m: m.reshape(len(m), m.shape[2], -1)),
            attention(turned(right_mix), lambda m: m.reshape(len(m), m.shape[2], -1)),
        ),
        "the softmax is right, but proj is not used; what attention gives passes it": attention(
            right_mix, project=lambda m, x: x
        ),
        ALWAYS_TWO: (
            attention(right_mix, gives=lambda x, w, both: (x, w)),
            attention(right_but_turned, gives=lambda x, w, both: (x, w)),
        ),
        ASKED: attention(right_mix, gives=lambda x, w, both: x),
    },
)


# third_patient -----------------------------------------------------------------------------------


def cls_alone(p: Tensor) -> Tensor:
    return p[:, :1]


def behind_cls(p: Tensor) -> Tensor:
    return p[:, 1:]


def second_for_all(p: Tensor) -> Tensor:
    return p[:, 1:2]


def in_turn(x: Tensor, out: Tensor) -> Tensor:
    return out


def stays(x: Tensor, out: Tensor) -> Tensor:
    return x


def heard(run: Callable) -> Callable:
    """Run all blocks: `run` makes what the next one reads of the x before and what came out."""

    def encode(m: Any, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        attention = []
        for each in m.blocks:
            out, weights = each(x, return_attention=True)
            x = run(x, out)
            attention.append(weights)
        return x, attention

    return encode


all_heard = heard(in_turn)


def last_one(m: Any, x: Tensor) -> tuple[Tensor, list[Tensor]]:
    outs = [each(x, return_attention=True) for each in m.blocks]
    return outs[-1][0], [weights for _, weights in outs]


def late_weights(m: Any, x: Tensor) -> tuple[Tensor, list[Tensor]]:
    attention = []
    for each in m.blocks:
        x = each(x)
        attention.append(each(x, return_attention=True)[1])
    return x, attention


def normed_each_time(m: Any, x: Tensor) -> tuple[Tensor, list[Tensor]]:
    attention = []
    for each in m.blocks:
        x, weights = each(x, return_attention=True)
        x = m.norm(x)
        attention.append(weights)
    return x, attention


def whole_model(
    patches: Callable = behind_cls,
    cls: Callable = cls_alone,
    encode: Callable = all_heard,
    again: bool = False,
    read: Callable = lambda m, x: m.norm(x)[:, 0],
    gives: Callable = lambda x, w, both: (x, w) if both else x,
) -> type[ViT]:
    """The third patient's class.

    Args:
        patches, cls: which positions the patches and the cls token get.
        encode: runs the blocks, and gives the tokens and all weights.
        again: whether all positions are added once more, when cls has joined.
        read: makes of the tokens what the head reads.
        gives: makes the result of the logits, the weights, and whether both are asked for.
    """

    class Other(ViT):
        def forward(self, images, return_attention=False):
            tokens, positions = self.patch_embed(images), self.tokens.pos_embed
            first = self.tokens.cls_token + cls(positions)
            tokens = tokens + patches(positions)
            x = torch.cat([first.expand(len(tokens), -1, -1), tokens], dim=1)
            x = x + positions if again else x
            x, attention = encode(self, x)
            return gives(self.head(read(self, x)), attention, return_attention)

    return Other


def nothing(p: Tensor) -> Tensor:
    return torch.zeros_like(p[:, :1])


third_patient = PatientCheck(
    sick=whole_model(second_for_all, encode=heard(stays)),
    reference=whole_model(),
    trials=[
        examined(lambda answer: answer(SMALL)),
        *compared("ViT", (TINY,), waves(2, 1, 16, 24)),
    ],
    mistakes={
        "the positions are right now, and it does not show: the other fault hides the repair, as "
        "nothing that the blocks make reaches the head": whole_model(encode=heard(stays)),
        "the head reads the last block alone, and each block reads the first x; what one block "
        "gives is what the next one reads": (
            whole_model(encode=last_one),
            whole_model(second_for_all, encode=last_one),
        ),
        "what a block gives is added to x, though the block has done so itself; hand it on as it "
        "is": (
            whole_model(encode=heard(torch.add)),
            whole_model(second_for_all, encode=heard(torch.add)),
        ),
        "the last norm is inside the loop, after every block; once, behind the last": (
            whole_model(encode=normed_each_time, read=lambda m, x: x[:, 0]),
            whole_model(encode=normed_each_time),
        ),
        "the logits are right; the weights come from a second run of each block, on what it gave: "
        "ask once, for both": whole_model(encode=late_weights),
        "the logits are right; with return_attention=True give the list of the weights as well": (
            whole_model(gives=lambda x, w, both: x),
            whole_model(gives=lambda x, w, both: (x, []) if both else x),
        ),
        "the logits are right; the list holds the weights of one block, not of each": whole_model(
            gives=lambda x, w, both: (x, w[-1:]) if both else x
        ),
        ALWAYS_TWO: whole_model(gives=lambda x, w, both: (x, w)),
        "each patch has a position of its own now, but one too early: the first row is the cls "
        "token's, and the patches' begin at the second": whole_model(lambda p: p[:, :-1]),
        "the patches get their positions twice: before cls joins them, and after; once": (
            whole_model(again=True),
            whole_model(cls=nothing, again=True),
        ),
        "the patches get the right positions, and the second row on top of them; take that away": (
            whole_model(second_for_all, again=True),
            whole_model(second_for_all, cls=nothing, again=True),
        ),
        "the cls token has lost its position, the first row": whole_model(cls=nothing),
        "the cls token gets its position twice: before it joins the patches, and after": (
            whole_model(nothing, again=True)
        ),
        "the cls token gets a row of the patches; its own is the first": whole_model(
            cls=lambda p: p[:, 1:2]
        ),
        "the head reads the mean; this model's head reads the cls token, the first one": (
            whole_model(read=lambda m, x: m.norm(x).mean(1)),
            whole_model(read=lambda m, x: m.norm(x[:, 1:]).mean(1)),
            whole_model(second_for_all, read=lambda m, x: m.norm(x).mean(1)),
            whole_model(second_for_all, read=lambda m, x: m.norm(x[:, 1:]).mean(1)),
        ),
        "the last norm is not used: the head reads norm(x)": (
            whole_model(read=lambda m, x: x[:, 0]),
        ),
        "one block is left out; loop over all of them": (
            whole_model(encode=lambda m, x: Encoder(m.blocks[1:])(x, return_attention=True)),
            whole_model(encode=lambda m, x: Encoder(m.blocks[:-1])(x, return_attention=True)),
        ),
    },
)
