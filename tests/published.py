"""The mistakes of published ViT tutorials that a model can carry, as they were published.

Each stands in `PUBLISHED` under its number in the course's list of them, with the findings by which
the doctor names it, or with the reason why nothing in a model can tell. Models B and C can be made
as printed, with all their mistakes at once, or with some; A is `vit_course.checks.as_published`.
"""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

import sick
import torch
from einops import rearrange
from sick import CLASSES, HEADS, WIDTH, Attention, Block, Plain
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Published:
    number: int
    what: str
    make: Callable[[], nn.Module] | None = None  # None where it is no mistake of a model
    names: tuple[str, ...] = ()  # of the findings; () where making the model fails already
    reason: str = ""  # why nothing in a model can tell
    size: int | tuple[int, int] = sick.IMAGE


def with_attention(attention: type[nn.Module]) -> type[Plain]:
    """A model of other attention."""
    return type("Model", (Plain,), {"attention": attention})


def with_mix(mix: Callable) -> type[Plain]:
    """A model whose heads mix their values otherwise."""
    own = {"mix": lambda self, q, k, v: mix(q, k, v)}
    return with_attention(type("Mixed", (Attention,), own))


def with_blocks(block: Callable[[], nn.Module]) -> type[Plain]:
    """A model of other blocks."""

    def more(self):
        self.blocks = nn.ModuleList(block() for _ in range(2))

    return type("Model", (Plain,), {"more": more})


def root_after(q, k, v):
    energy = torch.einsum("bhqd, bhkd -> bhqk", q, k)
    weights = F.softmax(energy, dim=-1) / WIDTH ** (1 / 2)
    return torch.einsum("bhal, bhlv -> bhav", weights, v)


def root_of_width(q, k, v):
    return F.softmax(torch.einsum("bhqd, bhkd -> bhqk", q, k) / WIDTH**0.5, dim=-1) @ v


def scale_after(q, k, v):
    dots = torch.einsum("bhid,bhjd->bhij", q, k)
    return torch.einsum("bhij,bhjd->bhid", dots.softmax(dim=-1) * q.shape[-1] ** -0.5, v)


def mask_fill(q, k, v):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool)
    return scores.mask_fill(~mask, torch.finfo(torch.float32).min).softmax(-1) @ v


class Residual(nn.Module):
    """Around a branch, as published: in place, and handing on what it is given by name."""

    def __init__(self, branch: nn.Module):
        super().__init__()
        self.branch = branch

    def forward(self, x: Tensor, **options) -> Tensor:
        residual = x
        x = self.branch(x, **options)
        x += residual
        return x


class Masked(nn.Sequential):
    def __init__(self):
        super().__init__(Residual(nn.Sequential(nn.LayerNorm(WIDTH), Attention())))

    def forward(self, input: Tensor) -> Tensor:
        return self[0](input, mask=None)


class Relu(nn.Sequential):
    def __init__(self):
        steps = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.ReLU()
        super().__init__(Residual(nn.Sequential(nn.LayerNorm(WIDTH), Attention())))
        self.append(Residual(nn.Sequential(*steps)))


class Caller(Plain):
    def more(self):
        self.prepare = Residual(nn.Identity())

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(self.prepare(images))


class Reused(Plain):
    def embed(self, images: Tensor) -> Tensor:
        self.patches = self.patches(images)
        return super().embed(images)


class MeanOfAll(Plain):
    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.norm(self.encode(self.embed(images)).mean(1)))


class Options(Plain):
    def __init__(self, **options):
        super().__init__()
        self.blocks = nn.ModuleList(Block(**options) for _ in range(2))


class OtherRows(Attention):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (HEADS, -1, 3)).permute(4, 0, 2, 1, 3)
        return self.proj(self.mix(q, k, v).transpose(1, 2).flatten(2))


class Count(sick.Cropped):
    def more(self):
        self.pos_embed = nn.Parameter(torch.randn(1, 36 * 36 // 8**2 + 1, WIDTH) * 0.02)


class Swapped(Plain):
    def more(self):
        self.patches = nn.Linear(3 * 8 * 8, WIDTH)
        self.pos_embed = nn.Parameter(torch.randn(1, 4 * 8 + 1, WIDTH) * 0.02)

    def embed(self, images: Tensor) -> Tensor:
        height, width = images.shape[-2:]
        rows, columns = width // 8, height // 8  # for height // 8, width // 8
        x = images.reshape(len(images), 3, rows, 8, columns, 8).permute(0, 2, 4, 3, 5, 1)
        x = self.patches(x.reshape(len(images), rows * columns, -1))
        return torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.pos_embed


# As printed, but for the mistakes whose numbers are in `mended` -----------------------------------


class ProjectAttention(nn.Module):
    """Queries, keys and values apart; the keys lie transposed; dropout on the weights."""

    def __init__(self, mended: Collection[int]):
        super().__init__()
        self.mended, self.dropout = mended, nn.Dropout(0.2)
        parts = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.queries, self.keys, self.values, self.proj = parts

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        q = rearrange(self.queries(x), "b n (h d) -> b h n d", h=3)
        k = rearrange(self.keys(x), "b n (h d) -> b h d n", h=3)
        v = rearrange(self.values(x), "b n (h d) -> b h n d", h=3)
        weights = (q @ k / math.sqrt(q.shape[-1])).softmax(-1)
        dropped = self.dropout(weights)
        mixed = self.proj(rearrange(dropped @ v, "b h n d -> b n (h d)"))
        return mixed, weights if 20 in self.mended else dropped


class ProjectBlock(Block):
    def __init__(self, mended: Collection[int]):
        super().__init__(lambda: ProjectAttention(mended))
        self.mended, self.mlp[1] = mended, nn.Sequential(nn.ReLU(), nn.Dropout(0.2))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x2 = self.norm1(x)
        change, weights = self.attn(F.gelu(x2 if 16 in self.mended else x))
        x = x + change
        x2 = self.norm2(x)
        return x + self.mlp(F.gelu(x2 if 16 in self.mended else x)), weights


class SystemB(Plain):
    """A course project's: the head reads the norm of the mean of all tokens."""

    def __init__(self, mended: Collection[int] = ()):
        self.mended = mended
        super().__init__()

    def more(self):
        count = (32 // 8) ** 2 if 18 in self.mended else 32 * 32 // 8**2
        start = 0.02 if 7 in self.mended else 1.0
        self.patches = nn.Linear(3 * 8 * 8, WIDTH)
        self.cls_token = nn.Parameter(torch.randn(1, 1, WIDTH) * start)
        self.pos_embed = nn.Parameter(torch.randn(1, count + 1, WIDTH) * start)
        self.blocks = nn.ModuleList(ProjectBlock(self.mended) for _ in range(2))

    def forward(self, images: Tensor) -> tuple[Tensor, list[Tensor]]:
        swapped, right = "b c (w s) (h z) -> b (w h) (s z c)", "b c (h s) (w z) -> b (h w) (s z c)"
        x = self.patches(rearrange(images, right if 19 in self.mended else swapped, s=8, z=8))
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.pos_embed
        if 21 not in self.mended:
            print(x.shape)
        maps = []
        for block in self.blocks:
            tokens, weights = block(x)
            x = tokens if 15 in self.mended else x
            maps.append(weights)
        logits = self.head(self.norm(x.mean(1)))
        return logits if 17 in self.mended else logits(8, 1000), maps


class FaceAttention(nn.Module):
    def __init__(self, mended: Collection[int], qk_scale: float | None = None):
        super().__init__()
        self.mended, self.proj = mended, nn.Linear(WIDTH, WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        given = qk_scale is not None if 28 in mended else bool(qk_scale)
        self.scale = qk_scale if given else (WIDTH // HEADS) ** -0.5

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        with torch.autocast(x.device.type if 27 in self.mended else "cuda", enabled=False):
            q, k, v = qkv if 0 in self.mended else qkv.float()
            mixed = (q @ k.mT * self.scale).softmax(-1) @ v
        return self.proj(mixed.transpose(1, 2).flatten(2))


class FaceBlock(Block):
    def __init__(self, mended: Collection[int], norm: Callable[[], nn.Module]):
        super().__init__(lambda: FaceAttention(mended))
        self.norm1, self.norm2, self.mlp[1] = norm(), norm(), nn.ReLU6()
        drop = nn.Dropout if 22 in mended else nn.Drop  # type: ignore[attr-defined]
        self.mlp.append(drop(0.0))


class SystemC(Plain):
    """For faces: no cls, masking in training; its .float(), which has no number, is 0 here."""

    def __init__(self, mended: Collection[int] = ()):
        self.mended, self.mask_ratio = mended, 0.75
        super().__init__()

    def more(self):
        del self.cls_token
        norm = (lambda: nn.LayerNorm(WIDTH)) if 25 in self.mended else lambda: nn.BatchNorm1d(16)
        self.pos_embed = nn.Parameter(torch.randn(1, 16, WIDTH) * 0.02)
        self.mask_token = nn.Parameter(torch.randn(1, 1, WIDTH) * 0.02)
        self.blocks = nn.ModuleList(FaceBlock(self.mended, norm) for _ in range(2))
        self.norm, self.head = norm(), nn.Sequential()
        for inputs, outputs in ((16 * WIDTH, WIDTH), (WIDTH, CLASSES)):
            self.head.append(nn.Linear(inputs, outputs, bias=False))
            self.head.append(nn.BatchNorm1d(outputs, eps=2e-5))

    def masked(self, x: Tensor, ratio: float = 0.1) -> tuple[Tensor, Tensor]:
        kept = (round if 24 in self.mended else int)(x.shape[1] * (1 - ratio))
        order = torch.rand(x.shape[:2], device=x.device).argsort(1)
        return x.take_along_dim(order[:, :kept, None], 1), order.argsort(1)

    def forward(self, images: Tensor) -> Tensor:
        self.check(images)
        x, order = self.patches(images).flatten(2).mT + self.pos_embed, None
        if self.training:
            x, order = self.masked(x, self.mask_ratio) if 23 in self.mended else self.masked(x)
        x = self.encode(x)
        x = self.norm(x if 0 in self.mended else x.float())
        if order is not None:
            gaps = self.mask_token.expand(len(x), 16 - x.shape[1], -1)
            x = torch.cat([x, gaps], dim=1).take_along_dim(order[..., None], 1)
        return self.head(x.flatten(1))


# The mistakes of each; C's .float(), which has no number, is 0.
B, C = {7, 15, 16, 17, 18, 19, 20, 21}, {22, 23, 24, 25, 26, 27, 28, 0}


def but(system: type[Plain], number: int) -> Callable[[], nn.Module]:
    """B or C with this mistake alone."""
    return lambda: system((B if system is SystemB else C) - {number})


RAISED = ("forward fails",)
AFTER = ("scale after softmax", "scale missing")
BEHIND_RELU = ("activation last", "backward fails")
OVERWRITTEN = ("no gradient", "norm missing", "norm unused")
PUBLISHED = (
    Published(1, "softmax, then divided by √D", with_mix(root_after), AFTER),
    Published(2, "√D for √d", with_mix(root_of_width), ("scale width",)),
    Published(3, "softmax, then × d^-0.5", with_mix(scale_after), AFTER),
    Published(4, "mask_fill", with_mix(mask_fill), RAISED),
    Published(5, "the mask can never arrive", with_blocks(Masked), RAISED),
    Published(6, "x += residual behind a ReLU", with_blocks(Relu), BEHIND_RELU),
    Published(6, "x += residual on the caller's images", Caller, ("input changed",)),
    Published(7, "positions and cls of std 1", but(SystemB, 7), ("positions large",)),
    Published(8, "names reused", Reused, RAISED),
    Published(9, "the mean with cls, then the norm", MeanOfAll, reason="a choice"),
    Published(10, "a larger image is cropped", sick.Cropped, ("images cropped",)),
    Published(11, "**options passed down", lambda: Options(num_classes=10)),
    Published(12, "a Linear loaded as a convolution", reason="no weights say it"),
    Published(13, "a missing *", lambda: nn.Sequential([Block(), Block()])),  # type: ignore[arg-type]
    Published(14, "another order of qkv", with_attention(OtherRows), reason="no weights say it"),
    Published(15, "only the attention is kept", but(SystemB, 15), ("idle block", "no gradient")),
    Published(16, "the norm is overwritten", but(SystemB, 16), OVERWRITTEN),
    Published(17, "logits called as a function", but(SystemB, 17), RAISED),
    Published(18, "patches counted by area", Count, RAISED, size=36),
    Published(19, "the grid's sides swapped", Swapped, ("patches scrambled",), size=(32, 64)),
    Published(20, "attention returned after dropout", but(SystemB, 20), ("returned attention",)),
    Published(21, "a print in forward", but(SystemB, 21), ("prints",)),
    Published(22, "nn.Drop", but(SystemC, 22)),
    Published(23, "the mask ratio is not passed on", but(SystemC, 23), reason="nothing says it"),
    Published(24, "int(n * (1 - ratio))", but(SystemC, 24), reason="nothing says it"),
    Published(25, "batch norm over masked tokens", but(SystemC, 25), ("training fails",)),
    Published(26, "batch norm and a batch of 1", but(SystemC, 26), reason="sound from 2 images on"),
    Published(27, "autocast for cuda", but(SystemC, 27), ("device fixed",)),
    Published(28, "qk_scale or d**-0.5", but(SystemC, 28), reason="the scale is right"),
    Published(29, "one position for all tokens", sick.OnePosition, ("no positions",)),
    Published(30, "masked tokens all alike", reason="the head reads cls"),
    Published(31, "FLOPs of two products alone", reason="a count beside the model"),
)
