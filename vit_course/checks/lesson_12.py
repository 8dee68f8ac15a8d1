"""Exercises of lesson 12: broken models, to repair by what the doctor finds in them.

A repaired class is right if it gives, with the same weights, the numbers of the sound one: a doctor
without findings alone would let any sound model through.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from textwrap import fill
from typing import Any

from torch import Tensor

from vit_doctor import examine
from vit_steps.attention import MultiHeadAttention
from vit_steps.encoder import EncoderBlock
from vit_steps.heads import merge_heads, split_qkv
from vit_steps.vit import ViT, ViTConfig

from .choosing import WIDTH
from .engine import LEFT, outcome
from .exercise import Exercise, edited, made, refusals
from .trials import Trial, drawn, module, trust, waves

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
            part = answer(SMALL.embed_dim, SMALL.num_heads)
            if isinstance(part, EncoderBlock):
                model.blocks[block] = part
            else:
                model.blocks[block].attn = part
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


FirstPatient = Patient(
    answer="""
class FirstPatient(EncoderBlock):
    def forward(self, x, mask=None, return_attention=False):
        y = self.norm1(x)
        mixed, weights = self.attn(y, mask, return_attention=True)
        x = x + mixed
        z = self.norm2(x)
        z = self.mlp(z)
        x = x + z
        return (x, weights) if return_attention else x
""",
    why="The MLP reads what `norm2` made. As the class came, the next line wrote over `z` before "
    "anybody had read it.",
    sick="self.mlp(z) => self.mlp(x)",
    uses={"EncoderBlock": EncoderBlock},
    trials=beside("block", (12, 3), waves(2, 5, 12)),
    wrong="""
the norm comes after the MLP; it belongs before it: the MLP reads norm2(x)
    z = self.norm2(x) => z = self.mlp(x) ;; z = self.mlp(z) => z = self.norm2(z)
the MLP reads norm2(x) now, but the stream itself is normed too, x = norm2(x); give what the norm
makes another name
    z = self.norm2(x) => x = self.norm2(x) ;; self.mlp(z) => self.mlp(x)
attention's change is added to what norm1 gave; add it to the stream, x
    x = x + mixed => x = y + mixed
    x = x + mixed => x = y + mixed ;; self.mlp(z) => self.mlp(x)
attention's change takes the stream's place; add it to x
    x = x + mixed => x = mixed
the weights are averaged over the heads; give those of each head, (B, h, N, N)
    return (x, weights) if => return (x, weights.mean(1)) if
the MLP's change takes the stream's place; add it to x
    x = x + z => x = z
norm2 gets attention's change alone; it is to norm the stream, x
    self.norm2(x) => self.norm2(mixed)
the MLP reads norm1's numbers; it has a norm of its own, norm2
    self.norm2(x) => self.norm1(x)
    self.mlp(z) => self.mlp(y)
the MLP reads what passed two norms, norm1 and norm2; norm2 alone is right
    self.norm2(x) => self.norm2(self.norm1(x))
norm2's numbers are used now, but the MLP still reads x; hand them to the MLP
    self.mlp(z) => z + self.mlp(x)
    self.mlp(z) => self.mlp(x) ;; x = x + z => x = self.norm2(x) + z
the MLP reads the x that came in; attention's change belongs in it
    self.norm2(x) => self.norm2(x - mixed)
the norm comes after the sum; it belongs before the MLP, and the sum stays as it is
    self.mlp(z) => self.mlp(x) ;; x = x + z => x = self.norm2(x + z)
    x = x + z => x = self.norm2(x + z)
norm2 is gone, and the finding with it; keep the norm, and let the MLP read what it gives
    class FirstPatient(EncoderBlock):
        def __init__(self, *sizes):
            super().__init__(*sizes)
            self.norm2 = nn.Identity()
norm2 is right now, but attention reads x; it reads norm1(x), as it did
    self.attn(y, => self.attn(x,
attention's change is lost; add it to x, as it was
    x = x + z => x = x - mixed + z ;; self.norm2(x) => self.norm2(x - mixed)
it always gives two things; give the weights only where return_attention is True
    return (x, weights) if return_attention else x => return x, weights
with return_attention=True it is to give two things, the tokens and the weights
    return (x, weights) if return_attention else x => return x
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
