"""Sound models that do otherwise than most: the doctor must find nothing in them.

`SOUND` holds them by name, each a function, for images of 32 pixels a side.
"""

from dataclasses import replace
from functools import partial

import sick
import torch
from sick import ANSWER, BEGIN, EMBED, LOOK, MERGE, MIX, NORMS, THINK, WIDTH, encode, end, lines
from torch import nn

from vit_course import systems

SIZES = dict(image_size=32, patch_size=8, embed_dim=WIDTH, depth=2, num_heads=sick.HEADS)
FACE = systems.FaceConfig(**SIZES, num_features=sick.CLASSES)
EINOPS = replace(systems.EINOPS, **SIZES, num_classes=sick.CLASSES)
PROJECT = replace(systems.PROJECT, **SIZES, num_classes=sick.CLASSES)

# Attention ---------------------------------------------------------------------------------------


def mixing(*statements: str) -> tuple[str, str]:
    """Give the edit that mixes a head's values so."""
    return f"return {MIX}", lines(*statements)


CAUSAL = mixing("return F.scaled_dot_product_attention(q, k, v, is_causal=True)")
ahead = "ahead = torch.ones(scores.shape[-2:], device=q.device).triu(1).bool()"
AHEAD = lines(sick.scores, ahead)
ROTARY = """angle = torch.arange(q.shape[-2], device=q.device, dtype=q.dtype)[:, None]
        angle = angle * 10 ** -torch.arange(0, 1, 2 / q.shape[-1], device=q.device, dtype=q.dtype)
        c, s = angle.cos(), angle.sin()
        halves = (x.chunk(2, -1) for x in (q, k))
        q, k = (torch.cat([a * c - b * s, a * s + b * c], -1) for a, b in halves)
        return F.scaled_dot_product_attention(q, k, v)"""
SDPA = "    return F.scaled_dot_product_attention(q, k, v)"


def of_attention(**parts: str) -> tuple[str, str]:
    """Give the edit that adds parts to each attention, by the expressions that make them."""
    old = "self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)"
    return old, lines(old, *(f"self.{name} = {part}" for name, part in parts.items()))


def of_blocks(**parts: str) -> tuple[str, str]:
    """Give the edit that adds parts to each block, by the expressions that make them."""
    return NORMS, lines(NORMS, *(f"self.{name} = {part}" for name, part in parts.items()))


def steps(look: str, think: str) -> list[tuple[str, str]]:
    """Give the edits that have a block add these to its tokens."""
    return [(LOOK, f"x = {look}"), (THINK, f"return {think}")]


# Models of another build -------------------------------------------------------------------------


def norm():
    return nn.LayerNorm(WIDTH)


class Lists(sick.Plain):
    """Attentions, MLPs and norms in lists of their own, each residual in the model."""

    def more(self):
        del self.blocks
        self.attentions = nn.ModuleList(sick.Attention() for _ in range(2))
        self.mlps = nn.ModuleList(sick.Block().mlp for _ in range(2))
        self.norms = nn.ModuleList(norm() for _ in range(4))

    def encode(self, x):
        for i in range(2):
            x = x + self.attentions[i](self.norms[2 * i](x))
            x = x + self.mlps[i](self.norms[2 * i + 1](x))
        return x


class Residual(nn.Module):
    def __init__(self, *parts):
        super().__init__()
        self.fn = nn.Sequential(*parts)

    def forward(self, x):
        return x + self.fn(x)


class Wrapped(sick.Plain):
    """Blocks of a norm and a branch each, in a wrapper that adds."""

    def more(self):
        pairs = ((sick.Attention(), sick.Block().mlp) for _ in range(2))
        halves = [[Residual(norm(), part) for part in pair] for pair in pairs]
        self.blocks = nn.Sequential(*(nn.Sequential(*half) for half in halves))

    def encode(self, x):
        return self.blocks(x)


class Torch(sick.Plain):
    """Torch's own blocks, behind the sum, and a last norm, as in torch's Transformer."""

    first, batch_first = False, True

    def more(self):
        options = dict(batch_first=self.batch_first, norm_first=self.first)
        layer = nn.TransformerEncoderLayer(WIDTH, sick.HEADS, 2 * WIDTH, **options)
        self.blocks = nn.TransformerEncoder(layer, 2, norm(), enable_nested_tensor=False)

    def encode(self, x):
        return self.blocks(x.transpose(0, 1 - self.batch_first)).transpose(0, 1 - self.batch_first)


class NormFirst(Torch):
    first = True


class TokensFirst(Torch):
    batch_first = False


class Pooled(sick.Plain):
    """A query of its own looks at all tokens, and is read."""

    def more(self):
        del self.cls_token
        self.query = nn.Parameter(torch.randn(1, 1, WIDTH) * 0.02)
        self.pool = nn.MultiheadAttention(WIDTH, sick.HEADS, batch_first=True)
        self.pos_embed = nn.Parameter(torch.randn(1, 16, WIDTH) * 0.02)

    def with_cls(self, x):
        return x

    def forward(self, images):
        x = self.norm(self.encode(self.embed(images)))
        return self.head(self.pool(self.query.expand(len(x), -1, -1), x, x)[0][:, 0])


SHARP = """class Sign(nn.Module):
    def forward(self, x):
        return x.sign() * 0.1


class Best(nn.Module):
    def forward(self, x):
        return x + (x == x.amax(-1, keepdim=True)).to(x)


class Block("""


def of_grid(steps: str) -> str:
    """Give the tokens that a convolution's output becomes by these steps."""
    return f"self.with_cls(self.patches(images).{steps}) + self.pos_embed"


BY_INDEX = """class ByIndex(nn.Module):
    def forward(self, x):
        x = x.clone()
        x[x < 0] = 0
        return x


class Block("""
# The second half of the head is for training alone.
TWO_HEADS = lines(
    "first, second = self.head(self.norm(x)[:, 0]).chunk(2, -1)",
    "return (first, second) if self.training else first",
)
# It gives the weights from before dropout.
BEFORE_DROPOUT = """x = self.norm(x)
        q, k, v = self.last.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        weights = (q @ k.mT / 12**0.5).softmax(-1)
        mixed = F.dropout(weights, 0.2, self.training) @ v
        x = x + self.last.proj(mixed.transpose(1, 2).flatten(2))
        return {"logits": self.head(x[:, 0]), "attention": [weights]}"""
# It makes a table when it first runs, and keeps it where it was needed last.
REMEMBERS = """t = self.table
        if t is None or t.device != x.device or t.dtype != x.dtype:
            self.table = torch.arange(17 * WIDTH).view(17, WIDTH).sin().to(x)"""
# It looks at values, as the meta device has none.
BY_NUMBERS = """if float(x.abs().max()) == 0:
            raise ValueError("the image is empty")"""

# Where each token looks back alone, cls would see nothing: the head reads the mean of all.
EDITS = {
    "causal": [CAUSAL, sick.mean],
    "causal by hand": [
        mixing(AHEAD, "return scores.masked_fill(ahead, -1e9).softmax(-1) @ v"), sick.mean],
    "causal by writing": [
        mixing(AHEAD, "scores[..., ahead] = -1e9", "return scores.softmax(-1) @ v"), sick.mean],
    "softmax by hand": [mixing("return less_the_largest(q @ k.mT * q.shape[-1] ** -0.5) @ v")],
    "softmax by logarithm": [mixing("return by_logarithm(q @ k.mT * q.shape[-1] ** -0.5) @ v")],
    "masked": [
        mixing(sick.scores, "return torch.where(near(scores), scores, -1e9).softmax(-1) @ v")],
    "bias": [
        mixing("return (q @ k.mT * q.shape[-1] ** -0.5 + self.table).softmax(-1) @ v"),
        of_attention(table="nn.Parameter(torch.randn(HEADS, 17, 17) * 0.02)"),
    ],
    "rotary": [mixing(ROTARY)],
    "query key norm": [
        mixing("return F.scaled_dot_product_attention(self.q_norm(q), self.k_norm(k), v)"),
        of_attention(q_norm="nn.LayerNorm(12)", k_norm="nn.LayerNorm(12)"),
    ],
    "convolution": [
        (f"self.proj({MERGE})", f"self.proj({MERGE}) + self.near(x.mT).mT"),
        of_attention(near="nn.Conv1d(WIDTH, WIDTH, 3, padding=1, groups=WIDTH)"),
    ],
    "float32 island": [mixing("with torch.autocast(q.device.type, enabled=False):", SDPA)],
    "asks for cuda": [mixing('with torch.autocast("cuda", enabled=q.is_cuda):', SDPA)],
    "softmax in a module": [
        mixing("scores = q @ k.mT * 12**-0.5", "return self.softmax(scores) @ v"),
        of_attention(softmax="nn.Softmax(-1)")],
    # Two axes at a time; as a module it looks like a norm, once it is saturated.
    "image by image": [
        mixing(f"return {sick.image_by_image('self.softmax(q @ k.mT * 12**-0.5) @ v')}"),
        of_attention(softmax="nn.Softmax(-1)")],
    "sharp": [
        ("class Block(", SHARP), of_blocks(sign="Sign()", best="Best()"),
        (THINK, "return x + self.mlp(self.sign(self.norm2(x)) + self.best(self.norm2(x)))")],
    "sigmoid with a bias": [mixing("return (q @ k.mT * 12**-0.5 - math.log(17)).sigmoid() @ v")],
    "sink": [mixing(
        "scores = F.pad(q @ k.mT * 12**-0.5, (1, 0))", "return scores.softmax(-1)[..., 1:] @ v")],
    "soft cap": [mixing("return ((q @ k.mT * 12**-0.5 / 5).tanh() * 5).softmax(-1) @ v")],
    "no softmax": [mixing("return q @ k.mT / 17 @ v")],
    "keys first": [mixing("return q * 12**-0.5 @ (k.mT @ v)")],
    "blocks in lists": sick.in_lists(),
    "blocks in lists, norm last": sick.in_lists("norm1(x + look(x))", "norm2(x + think(x))"),
    "channels last": [(EMBED, of_grid("permute(0, 2, 3, 1).reshape(len(images), -1, WIDTH)"))],
    "columns first": [(EMBED, of_grid("transpose(2, 3).flatten(2).transpose(1, 2)"))],
    "low rank": [
        (THINK, "return x + self.mlp(self.norm2(x)) + F.linear(x, self.w + self.a @ self.b) * 0.1"),
        of_blocks(w="drawn(WIDTH, WIDTH)", a="drawn(WIDTH, 4)", b="drawn(4, WIDTH)")],
    "heads talk": [mixing(
        "weights = (q @ k.mT * 12**-0.5).softmax(-1)",
        'return torch.einsum("bhqk,gh->bgqk", weights, torch.eye(4).to(q) * 3) @ v')],
    "heads gated": [mixing(
        "weights = (q @ k.mT * 12**-0.5).softmax(-1) * torch.ones(1, 4, 1, 1).to(q) * 0.5",
        "return weights / weights.sum(-1, keepdim=True) @ v")],
    "linear": [mixing("return q.softmax(-1) * 12**-0.5 @ (k.softmax(-2).mT @ v)")],
    "normed": [mixing(
        "q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)",
        "return F.scaled_dot_product_attention(q, k, v, scale=10.0)")],
    "values first": [mixing("return (v.mT @ (k @ (q * 12**-0.5).mT).softmax(-2)).mT")],
    "norm last": steps("self.norm1(x + self.attn(x))", "self.norm2(x + self.mlp(x))"),
    "branch normed": steps("x + self.norm1(self.attn(x))", "x + self.norm2(self.mlp(x))"),
    "sandwich": [
        *steps("x + self.norm3(self.attn(self.norm1(x)))",
               "x + self.norm4(self.mlp(self.norm2(x)))"),
        of_blocks(norm3="nn.LayerNorm(WIDTH)", norm4="nn.LayerNorm(WIDTH)"),
    ],
    "side by side": [
        (lines(LOOK, THINK), "return x + self.attn(self.norm1(x)) + self.mlp(self.norm2(x))")],
    "gated": [
        *steps("x + self.gate * self.attn(x)", "x + self.gate * self.mlp(x)"),
        (NORMS, "self.gate = nn.Parameter(torch.zeros(1))"),
    ],
    "scaled": [
        *steps("x + 1e-5 * self.scale * self.attn(self.norm1(x))",
               "x + 1e-5 * self.scale * self.mlp(self.norm2(x))"),
        of_blocks(scale="nn.Parameter(torch.ones(WIDTH))"),
    ],
    # As CLIP has it, and one norm on each side of the pooling.
    "norm before": [
        end("self.before, self.last = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)"),
        encode("self.before(x)"), (ANSWER, "self.head(self.last(self.norm(x).mean(1)))"),
    ],
    "over tokens": [
        (NORMS, "self.norm1, self.norm2 = nn.BatchNorm1d(17), nn.BatchNorm1d(17)"),
        end("self.norm = nn.BatchNorm1d(17)"),
    ],
    # One block on purpose, several times.
    "looped": [
        ("for block in self.blocks:\n            x = block(x)",
         "for block in [*self.blocks] * 3:\n            x = block(x)")],
    "own activation": [("class Block(", BY_INDEX), ("nn.GELU()", "ByIndex()")],
    "two heads": [
        end("self.head = nn.Linear(WIDTH, 2 * CLASSES)"), (f"return {ANSWER}", TWO_HEADS)],
    "returns": [end("self.last = Attention()"), (f"return {ANSWER}", BEFORE_DROPOUT)],
    "remembers": [
        end("self.table = None"), (BEGIN, lines(BEGIN, REMEMBERS)), encode("x + self.table")],
    "by numbers": [(BEGIN, lines(BEGIN, BY_NUMBERS))],
}  # fmt: skip
SOUND = {name: partial(sick.make, *edits) for name, edits in EDITS.items()} | {
    "own": sick.Own,
    "two": sick.Two,
    "one block": sick.OneBlock,
    "of one size": sick.OfOneSize,
    "lists": Lists,
    "wrapped": Wrapped,
    "torch, norm last": Torch,
    "torch, norm first": NormFirst,
    "torch, tokens first": TokensFirst,
    "pooled": Pooled,
    "by hand": sick.ByHand,
    "einops": lambda: systems.einops_vit(EINOPS),
    "einops, separate": lambda: systems.einops_vit(EINOPS, fused=False),
    "project": lambda: systems.project_vit(PROJECT),
    "face": lambda: systems.face_vit(FACE),
    "face, batch norm": lambda: systems.face_vit(replace(FACE, norm="batch", mask_ratio=0.0)),
    "face, checkpointing": lambda: systems.face_vit(replace(FACE, checkpointing=True)),
}
