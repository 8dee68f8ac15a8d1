"""Lesson 12: tests that a learner writes, and broken models, to repair by what the doctor finds.

A repaired class is right if it gives, with the same weights, the numbers of the sound one: a doctor
without findings alone would let any sound model through.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from textwrap import fill
from typing import Any

import torch
from torch import Tensor

from vit_doctor import examine
from vit_steps.attention import MultiHeadAttention
from vit_steps.heads import merge_heads, split_qkv
from vit_steps.vit import ViT, ViTConfig

from .choosing import WIDTH
from .engine import LEFT, outcome
from .exercise import Exercise, edited, made, refusals
from .trials import Trial, decided, drawn, module, trust, waves

SMALL = ViTConfig(image_size=32, patch_size=8, num_classes=10, embed_dim=48, depth=2, num_heads=4)
TINY = ViTConfig(
    image_size=(16, 24), patch_size=8, in_channels=1, num_classes=5, embed_dim=12, depth=3,
    num_heads=3,
)  # fmt: skip
AS_IT_CAME = f"{LEFT}, or without effect"
SLIPS = {
    "inplace operation": "backward fails, because `+=` writes over numbers that the gradient "
    "needs; make a new tensor, x = x + y"
}


class Patient(Exercise):
    """The repair of a class.

    Who changed nothing, or made a mistake that is not known, is told what the doctor finds.

    Args:
        sick: the edit that makes of the answer the class as it came.
    """

    def __init__(self, sick: str, **options: Any):
        super().__init__(slips=SLIPS, **options)
        self.sick = self.made(edited(self.answer, sick))

    def judge(self, attempt: Callable) -> str:
        """Give the message for an attempt."""
        message = super().judge(attempt)
        if message.startswith((AS_IT_CAME, *(trial.what for trial in self.trials))):
            return f"{message}\n{outcome(Trial('the doctor', report), attempt, {})}"
        return message

    def told(self, results: Sequence[Any]) -> str:
        """Give the message for an attempt that gives these results in all trials."""
        if all(self.agrees(self.sick, results, number) for number in range(len(results))):
            return AS_IT_CAME
        return super().told(results)


def report(answer: Callable) -> str:
    """Say what the doctor finds in a small ViT with the learner's class in it."""
    if isinstance(answer, type) and issubclass(answer, ViT):
        model = answer(SMALL)
    else:
        model = ViT(SMALL)
        for block in range(SMALL.depth):
            model.blocks[block].attn = answer(SMALL.embed_dim, SMALL.num_heads)
    findings = [replace(f, where=in_cell(f.where)) for f in examine(model, image_size=32)]
    count = "1 finding" if len(findings) == 1 else f"{len(findings)} findings"
    lines = [f"the doctor: {count}", *"\n".join(map(str, findings)).splitlines()]
    return "\n".join(fill(line, WIDTH, subsequent_indent="    ") for line in lines)


def in_cell(where: str) -> str:
    """Say where a finding is, as a learner can find it: lines of other files are not theirs."""
    path, _, line = where.rstrip(")").rpartition(" (")
    cell = re.fullmatch(r"(forward at )?line (\d+) of a cell", line)
    if not cell:
        return path or line
    begins = "in the forward that begins at " if cell[1] else ""
    return f"{path}, {begins}line {cell[2]} of your cell".removeprefix(", ")


def beside(kind: str, sizes: tuple, inputs: Tensor) -> list[Trial]:
    """Make trials of a repaired class beside the sound one, with weights and without."""
    what = f"beside a sound {kind} with the same weights"
    return [
        module(what, sizes, inputs),
        module(f"{what}, with return_attention=True", sizes, inputs, return_attention=True),
    ]


ATTENTION = """
class Attention(MultiHeadAttention):
    def forward(self, x):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)  # each (B, h, N, d)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        weights = scores.softmax(dim=-1)
        return self.proj(merge_heads(weights @ v))
"""


def attention(edit: str) -> MultiHeadAttention:
    """Make an attention with one edit, and weights as of a trained one."""
    uses = {"MultiHeadAttention": MultiHeadAttention}
    module = made("Attention", edited(ATTENTION, edit), uses)(12, 6)
    for number, p in enumerate(module.parameters()):
        p.data = drawn(*p.shape, seed=number)
    return module


def sound(what: str, edit: str) -> Trial:
    """Make a trial of an attention that a test must trust; if not, what it made of it is told."""

    def judged(answer: Callable, module: Any) -> tuple[Any, Tensor, Tensor]:
        verdict, tokens = answer(module), waves(1, 3, 12)
        with torch.no_grad():
            return verdict, module.qkv(tokens), module.proj(tokens) - tokens

    def say(result: tuple[Any, Tensor, Tensor], *_: Any) -> Any:
        verdict, values, changes = result
        low, high = values.min().item(), values.max().item()
        otherwise = f"your test refuses it, though its rows sum to 1; after it qkv gives {low:.2f} "
        otherwise += f"to {high:.2f}, where 1 is right, and proj changes a token by up to "
        otherwise += f"{changes.abs().max():.2f}, where 0 is right"
        return decided(verdict, True, otherwise)

    return Trial(what, judged, [attention(edit)], say)


WRONG_SUMS = """
exhibit 1, whose rows sum to 0.29 here: divided after the softmax, they are no whole
    scores.softmax(dim=-1) => scores.softmax(dim=-1) / x.shape[-1] ** 0.5
a softmax over the heads, whose rows sum to tokens / heads: that is no whole either
    scores.softmax(dim=-1) => scores.softmax(dim=1)
an attention in which two queries have weights that sum to 1.5 and 0.5, and the others to 1: ask
each query, not their mean
    scores.softmax(dim=-1) => scores.softmax(dim=-1) *
        torch.tensor([1.5, 0.5] + [1.0] * (x.shape[1] - 2))[:, None]
an attention whose rows sum to 0.999: differences above 1e-5 count
    scores.softmax(dim=-1) => 0.999 * scores.softmax(dim=-1)
"""

one_whole = Exercise(
    answer="""
def one_whole(attention):  # with the Linears qkv, D → 3·D, and proj, D → D
    tokens = torch.randn(2, 7, attention.proj.in_features)  # (B, N, D), any will do
    with torch.no_grad():
        attention.qkv.weight.zero_()
        attention.qkv.bias.fill_(1)  # now every query, key and value is 1
        nn.init.eye_(attention.proj.weight)
        attention.proj.bias.zero_()  # the output is what the heads give
        sums = attention(tokens)  # (B, N, D)
    return bool((sums - 1).abs().max() < 1e-5)
""",
    why="If every value is 1, what a query gets is the sum of its weights, whatever they are. So "
    "the test needs no picture and no weights that are known.",
    trials=[
        sound(
            "a sound attention, with rounding of 1e-6", "weights @ v => (1 + 1e-6) * weights @ v"
        ),
        sound(
            "a sound attention whose rows of qkv stand in another order",
            'split_qkv(self.qkv(x), self.num_heads) => rearrange(self.qkv(x), "b n (h d qkv) '
            '-> qkv b h n d", qkv=3, h=6)',
        ),
        *refusals(attention, WRONG_SUMS),
    ],
    wrong="""
it trusts every attention: return True only where all that comes out is 1
    bool((sums - 1).abs().max() < 1e-5) => True
it trusts none: with every value 1 and a `proj` that changes nothing, a sound one gives ones
    bool((sums - 1).abs().max() < 1e-5) => False
it is the wrong way round: True where the weights do sum to 1
    max() < 1e-5 => max() > 1e-5
the values still depend on the tokens: the weight of qkv must be 0, so that its bias alone counts
    attention.qkv.weight.zero_() => pass
the values are not 1: with a weight of 0, the bias of qkv is all that they are
    attention.qkv.bias.fill_(1) => pass
    attention.qkv.bias.fill_(1) => attention.qkv.bias.zero_()
    attention.qkv.weight.zero_() => attention.qkv.weight.fill_(1) ;;
        attention.qkv.bias.fill_(1) => attention.qkv.bias.zero_()
the weight of qkv is 1, so each value is a sum of a token's numbers; it must be 0, and the bias 1
    attention.qkv.weight.zero_() => attention.qkv.weight.fill_(1)
the weight of qkv is the identity or the like, so the values are the tokens' own numbers; make it 0
    attention.qkv.weight.zero_() => nn.init.eye_(attention.qkv.weight)
only the last third of qkv's rows is set, as if the values stood there; in a model whose rows have
another order they do not, so set all of them
    attention.qkv.weight.zero_() => attention.qkv.weight[24:] = 0 ;;
        attention.qkv.bias.fill_(1) => attention.qkv.bias[24:] = 1
proj still mixes the sums: its weight must be the identity
    nn.init.eye_(attention.proj.weight) => pass
    nn.init.eye_(attention.proj.weight) => attention.proj.weight.fill_(1)
    nn.init.eye_(attention.proj.weight) => attention.proj.weight.zero_()
proj still adds its bias: set it to 0
    attention.proj.bias.zero_() => pass
    attention.proj.bias.zero_() => attention.proj.bias.fill_(1)
it sees rows that sum to more than 1, and not those that sum to less: take abs() before the largest
    (sums - 1).abs().max() => (sums - 1).max()
it sees rows that sum to less than 1, and not those that sum to more: take abs() before the largest
    (sums - 1).abs().max() => (1 - sums).max()
it is too lenient: a row that sums to 0.999 passes; let differences up to 1e-5 pass, and no more
    < 1e-5 => < 0.1
it is too strict: rounding makes differences up to 1e-5
    (sums - 1).abs().max() < 1e-5 => (sums == 1).all()
    (sums - 1).abs().max() < 1e-5 => (sums - 1).abs().max() == 0
it asks for the mean of all sums alone: two queries whose weights sum to 1.5 and 0.5 pass; ask each
    (sums - 1).abs().max() => (sums - 1).mean().abs()
""",
)


SecondPatient = Patient(
    answer="""
class SecondPatient(MultiHeadAttention):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)  # each (B, h, N, d)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k)
        scores = scores / k.shape[-1] ** 0.5
        weights = scores.softmax(dim=-1)
        mixed = torch.einsum("bhqk,bhkd->bhqd", weights, v)  # (B, h, N, d)
        x = self.proj(merge_heads(mixed))  # (B, N, D)
        return (x, weights) if return_attention else x
""",
    why="The softmax shares out over the last axis, so the keys must stand there. Two lines name "
    "the axes of the weights, and both change: one that makes them, and one that mixes by them.",
    sick='"bhqd,bhkd->bhqk", q, k => "bhkd,bhqd->bhkq", k, q ;; "bhqk,bhkd->bhqd" => '
    '"bhkq,bhkd->bhqd"',
    uses={
        "MultiHeadAttention": MultiHeadAttention,
        "merge_heads": merge_heads,
        "split_qkv": split_qkv,
    },
    trials=beside("attention", (12, 3), waves(2, 5, 12)),
    wrong="""
the weights of a query sum to 1 now, and the mixed values are right; the weights that it gives stand
as (keys, queries): give (B, h, queries, keys)
    return (x, weights) => return (x, weights.mT)
the tokens are right; the weights that it gives are of scores without the scale
    return (x, weights) => return (x, torch.einsum("bhqd,bhkd->bhqk", q, k).softmax(dim=-1))
the softmax is over the keys now, but the line that mixes takes keys for queries; name the axes of
the weights alike in both, (queries, keys)
    "bhqk,bhkd->bhqd" => "bhkq,bhkd->bhqd"
    "bhqk,bhkd->bhqd" => "bhkq,bhkd->bhqd" ;; return (x, weights) => return (x, weights.mT)
rows sum to 1, and the doctor is content, but queries and keys have changed places: the softmax is
still over the queries, and so is the mix; share out each query's whole among its keys
    "bhqd,bhkd->bhqk", q, k => "bhkd,bhqd->bhkq", k, q
    "bhqd,bhkd->bhqk", q, k => "bhkd,bhqd->bhkq", k, q ;; return (x, weights) =>
        return (x, weights.mT)
the softmax is over the heads now; it belongs over the keys
    scores.softmax(dim=-1) => scores.softmax(dim=1)
    scores.softmax(dim=-1) => scores.softmax(dim=1) ;; return (x, weights) => return (x, weights.mT)
the softmax is still over the queries, and the division afterwards hides it; one softmax, over the
keys
    scores.softmax(dim=-1) => scores.softmax(dim=-2) / scores.softmax(dim=-2).sum(-1, True)
    scores.softmax(dim=-1) => scores.softmax(dim=-2) / scores.softmax(dim=-2).sum(-1, True) ;;
        return (x, weights) => return (x, weights.mT)
these are two softmaxes, one after the other; take one, over the keys
    scores.softmax(dim=-1) => scores.softmax(dim=-1).softmax(dim=-2)
    scores.softmax(dim=-1) => scores.softmax(dim=-2).softmax(dim=-1)
    scores.softmax(dim=-1) => scores.softmax(dim=-1).softmax(dim=-2) ;;
        return (x, weights) => return (x, weights.mT)
    scores.softmax(dim=-1) => scores.softmax(dim=-2).softmax(dim=-1) ;;
        return (x, weights) => return (x, weights.mT)
the softmax is over all pairs of a head; take it over the keys alone, for each query
    scores.softmax(dim=-1) => scores.flatten(-2).softmax(-1).view_as(scores)
    scores.softmax(dim=-1) => scores.flatten(-2).softmax(-1).view_as(scores) ;;
        return (x, weights) => return (x, weights.mT)
the softmax is over the keys now, but the scale is lost; divide the scores by √d
    scores = scores / k.shape[-1] ** 0.5 => scores = scores
the softmax is over the keys now, but the scale comes after it; it belongs before, on the scores
    scores / k.shape[-1] ** 0.5 => scores ;;
        scores.softmax(dim=-1) => scores.softmax(dim=-1) / k.shape[-1] ** 0.5
the scores are divided by the root of the model's width; a head's width, d, is what counts
    k.shape[-1] => x.shape[-1]
the heads are merged by a view or reshape, which mixes tokens and heads up; use merge_heads
    merge_heads(mixed) => mixed.reshape(x.shape)
the weights are averaged over the heads; give those of each head, (B, h, N, N)
    return (x, weights) if => return (x, weights.mean(1)) if
the softmax is right, but proj is not used; what attention gives passes through it
    self.proj(merge_heads(mixed)) => merge_heads(mixed)
it always gives two things; give the weights only where return_attention is True
    return (x, weights) if return_attention else x => return x, weights
with return_attention=True it is to give two things, the tokens and the weights
    return (x, weights) if return_attention else x => return x
""",
)


ThirdPatient = Patient(
    answer="""
class ThirdPatient(ViT):
    def forward(self, images, return_attention=False):
        patches = self.patch_embed(images)  # (B, n, D)
        positions = self.tokens.pos_embed  # (1, N, D)
        cls = self.tokens.cls_token + positions[:, :1]  # (1, 1, D)
        patches = patches + positions[:, 1:]  # (B, n, D)
        cls = cls.expand(len(patches), -1, -1)  # (B, 1, D)
        x = torch.cat([cls, patches], dim=1)  # (B, N, D)
        attention = []
        for block in self.blocks:
            x, weights = block(x, return_attention=True)
            attention.append(weights)
        logits = self.head(self.norm(x)[:, 0])  # (B, classes)
        return (logits, attention) if return_attention else logits
""",
    why="What a block gives is what the next one reads. And `positions[:, 1]` was one row, which "
    "broadcasting gave to every patch; `positions[:, 1:]` is a row for each. As long as no block's "
    "tokens were used, nothing of the picture reached the head, so the second repair did not show.",
    sick="x, weights = block => tokens, weights = block ;; positions[:, 1:] => positions[:, 1]",
    uses={"ViT": ViT},
    trials=beside("ViT", (TINY,), waves(2, 1, 16, 24)),
    wrong="""
the positions are right now, and it does not show: the other fault hides the repair, because nothing
that the blocks make reaches the head
    x, weights = block => tokens, weights = block
the blocks are heard now; what is left is in the positions: every patch gets the same row
    positions[:, 1:] => positions[:, 1]
    positions[:, 1:] => positions[:, 1:2]
the head reads the last block alone, and each block reads the first x; what one block gives is what
the next one reads
    x, weights = block => tokens, weights = block ;; self.norm(x) => self.norm(tokens)
what the blocks give is lost: the head reads the tokens from before them
    attention = [] => start, attention = x, [] ;; self.norm(x) => self.norm(start)
what a block gives is added to x, though the block has done so itself; hand it on as it is
    x, weights = block(x, return_attention=True) =>
        tokens, weights = block(x, return_attention=True) ⏎ x = x + tokens
the last norm is inside the loop, after every block; it belongs once, after the last
    attention.append(weights) => attention.append(weights) ⏎ x = self.norm(x) ;;
        self.norm(x)[:, 0] => x[:, 0]
    attention.append(weights) => attention.append(weights) ⏎ x = self.norm(x)
the logits are right; the weights come from a second run of each block, on what it gave: ask once,
for both
    x, weights = block(x, return_attention=True) =>
        x = block(x) ⏎ weights = block(x, return_attention=True)[1]
the logits are right; with return_attention=True give the list of the weights as well
    return (logits, attention) if return_attention else logits => return logits
    return (logits, attention) if => return (logits, []) if
the logits are right; the list holds the weights of one block, not of each
    return (logits, attention) if => return (logits, attention[-1:]) if
the logits are right; give a list with one entry per block, attention.append(weights)
    attention.append(weights) => attention = weights
it always gives two things; give the weights only where return_attention is True
    return (logits, attention) if return_attention else logits => return logits, attention
each patch has a position of its own now, but one too early: the first row is the cls token's, and
the patches' begin at the second
    positions[:, 1:] => positions[:, :-1]
the patches get their positions twice: before cls joins them, and after; once is right
    x = torch.cat([cls, patches], dim=1) => x = torch.cat([cls, patches], dim=1) + positions ;;
        cls_token + positions[:, :1] => cls_token
    x = torch.cat([cls, patches], dim=1) => x = torch.cat([cls, patches], dim=1) + positions
the patches get the right positions, and the second row on top of them; take that away
    positions[:, 1:] => positions[:, 1:2] ;; x = torch.cat([cls, patches], dim=1) =>
        x = torch.cat([cls, patches], dim=1) + positions
    positions[:, 1:] => positions[:, 1:2] ;; x = torch.cat([cls, patches], dim=1) =>
        x = torch.cat([cls, patches], dim=1) + positions ;; cls_token + positions[:, :1] =>
        cls_token
the cls token has lost its position, the first row
    cls_token + positions[:, :1] => cls_token
the cls token gets its position twice: before it joins the patches, and after
    cls_token + positions[:, :1] => cls_token + 2 * positions[:, :1]
the cls token gets a row of the patches; its own is the first
    positions[:, :1] => positions[:, 1:2]
the head reads a mean; this model's head reads the cls token, the first one
    self.norm(x)[:, 0] => self.norm(x).mean(dim=1)
    self.norm(x)[:, 0] => self.norm(x)[:, 1:].mean(dim=1)
the last norm is not used: the head reads norm(x)
    self.norm(x)[:, 0] => x[:, 0]
one block is left out; loop over all of them
    in self.blocks => in self.blocks[1:]
    in self.blocks => in self.blocks[:-1]
""",
)

ATTEND = """
def attend(x, mask):  # tokens (B, N, 12), mask (B, 1, 1, N)
    q, k, v = split_qkv(x @ ROWS, 3)  # each (B, h, N, d)
    scores = q @ k.mT / 2
    scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return merge_heads(weights @ v)
"""


def attending(edit: str) -> Callable:
    """Make an attention with one edit."""
    uses = {"ROWS": drawn(12, 36) / 4, "split_qkv": split_qkv, "merge_heads": merge_heads}
    return made("attend", edited(ATTEND, edit), uses)


WRONG_MASKS = """
an attention whose mask does nothing (exhibit 16): change what hidden tokens hold
    scores = scores.masked => scores.masked
an attention that takes the first picture's mask for all: give it pictures with other masks
    ~mask => ~mask[:1]
an attention in which a hidden token counts a little: differences above 1e-5 are an influence
    float("-inf") => -5.0
an attention in which no token sees another: those that may be seen must count
    ~mask => ~torch.eye(x.shape[1], dtype=torch.bool)
"""

mask_works = Exercise(
    answer="""
def mask_works(attend):  # attend(x, mask): from tokens (B, N, 12) to tokens (B, N, 12)
    torch.manual_seed(0)
    x = torch.randn(2, 5, 12)
    seen = torch.tensor([[True] * 3 + [False] * 2, [False] + [True] * 4])
    mask, before = seen[:, None, None], attend(x, seen[:, None, None])
    hidden, shown = torch.where(seen[:, :, None], x, x + 1), x.clone()
    shown[:, 2] += 1  # a token that may be seen
    quiet = (attend(hidden, mask) - before)[seen].abs().max() < 1e-5
    heard = (attend(shown, mask) - before)[:, 1].abs().max() > 1e-5
    return bool(quiet and heard)
""",
    why="What a hidden token holds may change nothing for tokens that may be seen, and what one of "
    "these holds must change something for another. The two pictures have masks of their own.",
    trials=[
        trust("a right attention", attending("/ 2 => / 2"), True, "compare the seen tokens alone"),
        trust(
            "a right attention with rounding of 1e-6",
            attending("weights @ v) => weights @ v) + 1e-7 * x.sum(dim=1, keepdim=True)"),
            True,
            "differences up to 1e-5 are rounding",
        ),
        *refusals(attending, WRONG_MASKS),
    ],
    wrong="""
it trusts every attention: change what a hidden token holds, and compare before and after
    bool(quiet and heard) => True
it trusts none: let differences up to 1e-5 pass, and compare the tokens that may be seen alone; the
hidden ones may change, because each brings a query of its own
    bool(quiet and heard) => False
    - before)[seen].abs() => - before).abs()
it is the wrong way round: True for a mask that works
    bool(quiet and heard) => not (quiet and heard)
it asks only that hidden tokens do not count; those that may be seen must count, or an attention in
which no token sees another passes (and a token that you change moves by itself: look at another)
    bool(quiet and heard) => bool(quiet)
it asks only that the seen ones count: hide some, change what these hold, and the others must stay
    bool(quiet and heard) => bool(heard)
    seen = torch.tensor… => seen = torch.ones(2, 5, dtype=torch.bool)
an attention that takes the first picture's mask for all passes: give two pictures, and let each
hide a token that the other shows
    [False] + [True] * 4]) => [True] * 3 + [False] * 2])
it is too lenient: a hidden token that counts a little passes; let differences up to 1e-5 pass, and
no more
    < 1e-5 => < 0.1
it is too strict: differences up to 1e-5 are rounding
    [seen].abs().max() < 1e-5 => [seen].abs().max() == 0
it asks whether the mask changes something; ask whether hidden tokens count: change what they hold
    bool(quiet and heard) =>
        bool(heard and (before - attend(x, torch.ones_like(mask))).abs().max() > 1e-5)
""",
)
