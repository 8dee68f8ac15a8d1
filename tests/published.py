"""Systems B and C in their sources' own words, with their mistakes mended.

For test_variants.py, which gives them our weights. A is `vit_course.checks.as_published`; what the
mistakes were stands in test_published_mistakes.py.
"""

import math

import torch
from einops import rearrange
from sick import CLASSES, HEADS, WIDTH, Block, Plain
from torch import Tensor, nn
from torch.nn import functional as F


class ProjectAttention(nn.Module):
    """Queries, keys and values apart; the keys lie transposed; dropout on the weights."""

    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.2)
        parts = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.queries, self.keys, self.values, self.proj = parts

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        q = rearrange(self.queries(x), "b n (h d) -> b h n d", h=3)
        k = rearrange(self.keys(x), "b n (h d) -> b h d n", h=3)
        v = rearrange(self.values(x), "b n (h d) -> b h n d", h=3)
        weights = (q @ k / math.sqrt(q.shape[-1])).softmax(-1)
        mixed = self.dropout(weights) @ v
        return self.proj(rearrange(mixed, "b h n d -> b n (h d)")), weights


class ProjectBlock(Block):
    def __init__(self):
        super().__init__(ProjectAttention)
        self.mlp[1] = nn.Sequential(nn.ReLU(), nn.Dropout(0.2))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        change, weights = self.attn(F.gelu(self.norm1(x)))
        x = x + change
        return x + self.mlp(F.gelu(self.norm2(x))), weights


class SystemB(Plain):
    """A course project's: the head reads the norm of the mean of all tokens."""

    def more(self):
        self.patches = nn.Linear(3 * 8 * 8, WIDTH)
        self.blocks = nn.ModuleList(ProjectBlock() for _ in range(2))

    def forward(self, images: Tensor) -> tuple[Tensor, list[Tensor]]:
        patches = rearrange(images, "b c (h s) (w z) -> b (h w) (s z c)", s=8, z=8)
        x = self.with_cls(self.patches(patches)) + self.pos_embed
        maps = []
        for block in self.blocks:
            x, weights = block(x)
            maps.append(weights)
        return self.head(self.norm(x.mean(1))), maps


class FaceAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH)
        self.scale = (WIDTH // HEADS) ** -0.5

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        mixed = (q @ k.mT * self.scale).softmax(-1) @ v
        return self.proj(mixed.transpose(1, 2).flatten(2))


class FaceBlock(Block):
    def __init__(self):
        super().__init__(FaceAttention)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU6(), nn.Linear(4 * WIDTH, WIDTH)
        )


class SystemC(Plain):
    """For faces, in evaluation, where nothing is masked: no cls, the head reads all tokens."""

    def more(self):
        del self.cls_token
        self.pos_embed = nn.Parameter(torch.zeros(1, 16, WIDTH))
        self.mask_token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.blocks = nn.ModuleList(FaceBlock() for _ in range(2))
        self.head = nn.Sequential()
        for inputs, outputs in ((16 * WIDTH, WIDTH), (WIDTH, CLASSES)):
            self.head.append(nn.Linear(inputs, outputs, bias=False))
            self.head.append(nn.BatchNorm1d(outputs, eps=2e-5))

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images).flatten(2).mT + self.pos_embed
        return self.head(self.norm(self.encode(x)).flatten(1))
