"""Sound models that do otherwise than most: the doctor must find nothing in them.

`SOUND` holds them by name, each a function and the size of its images, all small.
"""

from dataclasses import replace
from typing import Any

import torch
from sick import (
    CLASSES,
    HEADS,
    WIDTH,
    Attention,
    Block,
    ByHand,
    OfOneSize,
    OneBlock,
    Own,
    Plain,
    Two,
    adding,
    by_logarithm,
    less_the_largest,
    near,
    of_attention,
    of_blocks,
    otherwise,
    steps,
)
from torch import nn
from torch.nn import functional as F

from vit_steps import variants

SIZES: dict[str, Any] = dict(image_size=32, patch_size=8, embed_dim=WIDTH, depth=2, num_heads=HEADS)
FACE = variants.FaceConfig(**SIZES, num_features=CLASSES)


# Attention that depends on the order of its tokens -----------------------------------------------


def causal(self, q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def causal_by_hand(self, q, k, v):
    scores = (q @ k.mT) * q.shape[-1] ** -0.5
    ahead = torch.ones(scores.shape[-2:], device=q.device).triu(1).bool()
    return scores.masked_fill(ahead, -1e9).softmax(-1) @ v


def causal_by_writing(self, q, k, v):
    scores = (q @ k.mT) * q.shape[-1] ** -0.5
    ahead = torch.ones(scores.shape[-2:], device=q.device).triu(1).bool()
    scores[..., ahead] = -1e9
    return scores.softmax(-1) @ v


def softmax_by_hand(self, q, k, v):
    return less_the_largest(q @ k.mT * q.shape[-1] ** -0.5) @ v


def softmax_by_logarithm(self, q, k, v):
    return by_logarithm(q @ k.mT * q.shape[-1] ** -0.5) @ v


def masked(self, q, k, v):
    scores = q @ k.mT * q.shape[-1] ** -0.5
    return torch.where(near(scores), scores, -1e9).softmax(-1) @ v


def with_bias(self, q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5 + self.table).softmax(-1) @ v


def rotary(self, q, k, v):
    angle = torch.arange(q.shape[-2], device=q.device, dtype=q.dtype)[:, None]
    angle = angle * 10 ** -torch.arange(0, 1, 2 / q.shape[-1], device=q.device, dtype=q.dtype)

    def turn(x):
        a, b = x.chunk(2, -1)
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    return F.scaled_dot_product_attention(turn(q), turn(k), v)


def query_key_norm(self, q, k, v):
    return F.scaled_dot_product_attention(self.q_norm(q), self.k_norm(k), v)


def with_convolution(self, x):
    return Attention.forward(self, x) + self.near(x.mT).mT


def near_convolution():
    return nn.Conv1d(WIDTH, WIDTH, 3, padding=1, groups=WIDTH)


def in_float32(self, q, k, v):
    with torch.autocast(q.device.type, enabled=False):
        return F.scaled_dot_product_attention(q, k, v)


def asks_for_cuda(self, q, k, v):
    with torch.autocast("cuda", enabled=q.is_cuda):
        return F.scaled_dot_product_attention(q, k, v)


def averaged(model: type[Plain]) -> type[Plain]:
    """The head reads the mean of all tokens: where each looks back alone, cls would see nothing."""

    def forward(self, images):
        return self.head(self.norm(self.encode(self.embed(images))).mean(1))

    return otherwise(model, forward=forward)


# Norms and residuals -----------------------------------------------------------------------------


norm_last = steps(
    lambda block, x: block.norm1(x + block.attn(x)),
    lambda block, x: block.norm2(x + block.mlp(x)),
)
branch_normed = steps(
    lambda block, x: x + block.norm1(block.attn(x)),
    lambda block, x: x + block.norm2(block.mlp(x)),
)
sandwich = steps(
    lambda block, x: x + block.norm3(block.attn(block.norm1(x))),
    lambda block, x: x + block.norm4(block.mlp(block.norm2(x))),
)
gated = steps(
    lambda block, x: x + block.gate * block.attn(x),
    lambda block, x: x + block.gate * block.mlp(x),
)
scaled = steps(
    lambda block, x: x + 1e-5 * block.scale * block.attn(block.norm1(x)),
    lambda block, x: x + 1e-5 * block.scale * block.mlp(block.norm2(x)),
)


def side_by_side(self, x):
    return x + self.attn(self.norm1(x)) + self.mlp(self.norm2(x))


def gate():
    return nn.Parameter(torch.zeros(1))


def ones():
    return nn.Parameter(torch.ones(WIDTH))


def norm():
    return nn.LayerNorm(WIDTH)


class Lists(Plain):
    """Attentions, MLPs and norms in lists of their own, each residual in the model."""

    def more(self):
        del self.blocks
        self.attentions = nn.ModuleList(Attention() for _ in range(2))
        self.mlps = nn.ModuleList(Block().mlp for _ in range(2))
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


class Wrapped(Plain):
    """Blocks of a norm and a branch each, in a wrapper that adds."""

    def more(self):
        halves = [(Residual(norm(), Attention()), Residual(norm(), Block().mlp)) for _ in range(2)]
        self.blocks = nn.Sequential(*(nn.Sequential(*pair) for pair in halves))

    def encode(self, x):
        return self.blocks(x)


def norm_before(self, images):
    """A norm before the first block, as CLIP has, and one on each side of the pooling."""
    x = self.norm(self.encode(self.before(self.embed(images))))
    return self.head(self.last(x.mean(1)))


class Torch(Plain):
    """Torch's own blocks, behind the sum, and a last norm, as in torch's Transformer."""

    first, batch_first = False, True

    def more(self):
        layer = nn.TransformerEncoderLayer(
            *(WIDTH, HEADS, 2 * WIDTH),
            batch_first=self.batch_first,
            norm_first=self.first,
        )
        self.blocks = nn.TransformerEncoder(layer, 2, norm(), enable_nested_tensor=False)

    def forward(self, images):
        x = self.blocks(self.embed(images).transpose(0, 1 - self.batch_first))
        return self.head(self.norm(x.transpose(0, 1 - self.batch_first)[:, 0]))


def over_tokens(self):
    """Batch norm in place of layer norm, a mean and a variance a token."""
    self.norm = nn.BatchNorm1d(17)
    for block in self.blocks:
        block.norm1, block.norm2 = nn.BatchNorm1d(17), nn.BatchNorm1d(17)


class Pooled(Plain):
    """A query of its own looks at all tokens, and is read."""

    def more(self):
        del self.cls_token
        self.query = nn.Parameter(torch.randn(1, 1, WIDTH) * 0.02)
        self.pool = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.pos_embed = nn.Parameter(torch.randn(1, 16, WIDTH) * 0.02)

    def embed(self, images):
        self.check(images)
        return self.patches(images).flatten(2).mT + self.pos_embed

    def forward(self, images):
        x = self.norm(self.encode(self.embed(images)))
        return self.head(self.pool(self.query.expand(len(x), -1, -1), x, x)[0][:, 0])


def looped(self, x):
    """One block on purpose, several times."""
    for _ in range(3):
        x = self.blocks[1](self.blocks[0](x))
    return x


class ByIndex(nn.Module):
    """ReLU by hand."""

    def forward(self, x):
        x = x.clone()
        x[x < 0] = 0
        return x


def own_activation(self):
    for block in self.blocks:
        block.mlp[1] = ByIndex()


def two_heads(self, images):
    """The second half of the head is for training alone."""
    first, second = Plain.forward(self, images).chunk(2, -1)
    return (first, second) if self.training else first


def returns(self, images):
    """Gives the weights from before dropout."""
    x = self.norm(self.encode(self.embed(images)))
    q, k, v = self.extra.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
    weights = (q @ k.mT / 12**0.5).softmax(-1)
    mixed = F.dropout(weights, 0.2, self.training) @ v
    x = x + self.extra.proj(mixed.transpose(1, 2).flatten(2))
    return {"logits": self.head(x[:, 0]), "attention": [weights]}


def remembers(self, x):
    """Makes a table when it first runs, and keeps it where it was needed last."""
    if self.table is None or self.table.device != x.device or self.table.dtype != x.dtype:
        self.table = torch.arange(17 * WIDTH).view(17, WIDTH).sin().to(x)
    return Plain.encode(self, x + self.table)


def by_numbers(self, x):
    """Looks at values, as the meta device has none."""
    if float(x.abs().max()) == 0:
        raise ValueError("the image is empty")
    return Plain.encode(self, x)


EINOPS = replace(variants.EINOPS, **SIZES, num_classes=CLASSES)
PROJECT = replace(variants.PROJECT, **SIZES, num_classes=CLASSES)
SOUND = {
    "causal": averaged(of_attention(mix=causal)),
    "causal by hand": averaged(of_attention(mix=causal_by_hand)),
    "causal by writing": averaged(of_attention(mix=causal_by_writing)),
    "softmax by hand": of_attention(mix=softmax_by_hand),
    "softmax by logarithm": of_attention(mix=softmax_by_logarithm),
    "masked": of_attention(mix=masked),
    "own": Own,
    "two": Two,
    "one block": OneBlock,
    "of one size": OfOneSize,
    "bias": of_attention(
        mix=with_bias, table=lambda: nn.Parameter(torch.randn(HEADS, 17, 17) * 0.02)
    ),
    "rotary": of_attention(mix=rotary),
    "query key norm": of_attention(
        mix=query_key_norm, q_norm=lambda: nn.LayerNorm(12), k_norm=lambda: nn.LayerNorm(12)
    ),
    "convolution": of_attention(with_convolution, near=near_convolution),
    "float32 island": of_attention(mix=in_float32),
    "asks for cuda": of_attention(mix=asks_for_cuda),
    "norm last": of_blocks(norm_last),
    "branch normed": of_blocks(branch_normed),
    "sandwich": of_blocks(sandwich, norm3=norm, norm4=norm),
    "side by side": of_blocks(side_by_side),
    "gated": of_blocks(gated, gate=gate, norm1=nn.Identity, norm2=nn.Identity),
    "scaled": of_blocks(scaled, scale=ones),
    "lists": Lists,
    "wrapped": Wrapped,
    "norm before": otherwise(more=adding(before=norm, last=norm), forward=norm_before),
    "torch, norm last": Torch,
    "torch, norm first": otherwise(Torch, first=True),
    "torch, tokens first": otherwise(Torch, batch_first=False),
    "over tokens": otherwise(more=over_tokens),
    "pooled": Pooled,
    "looped": otherwise(encode=looped),
    "own activation": otherwise(more=own_activation),
    "two heads": otherwise(
        more=adding(head=lambda: nn.Linear(WIDTH, 2 * CLASSES)), forward=two_heads
    ),
    "returns": otherwise(more=adding(extra=Attention), forward=returns),
    "remembers": otherwise(table=None, encode=remembers),
    "by numbers": otherwise(encode=by_numbers),
    "by hand": ByHand,
    "einops": lambda: variants.einops_vit(EINOPS),
    "einops, separate": lambda: variants.einops_vit(EINOPS, fused=False),
    "project": lambda: variants.project_vit(PROJECT),
    "face": lambda: variants.face_vit(FACE),
    "face, batch norm": lambda: variants.face_vit(replace(FACE, norm="batch", mask_ratio=0.0)),
    "face, checkpointing": lambda: variants.face_vit(replace(FACE, checkpointing=True)),
}
