"""A plain small ViT, and the same with one fault each: what the doctor must find, by name.

`SICK` holds for each name of a finding the models that have it. Each model differs from `Plain` in
a few lines.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

IMAGE, PATCH, WIDTH, HEADS, CLASSES = 32, 8, 48, 4, 10


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        return self.proj(self.mix(q, k, v).transpose(1, 2).flatten(2))

    def mix(self, q, k, v):
        return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v


class Block(nn.Module):
    def __init__(self, attention=Attention):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(WIDTH), attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Plain(nn.Module):
    attention: type[nn.Module] = Attention

    def __init__(self):
        super().__init__()
        tokens = (IMAGE // PATCH) ** 2
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.cls_token = nn.Parameter(torch.randn(1, 1, WIDTH) * 0.02)
        self.pos_embed = nn.Parameter(torch.randn(1, tokens + 1, WIDTH) * 0.02)
        self.blocks = nn.ModuleList(Block(self.attention) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)
        self.more()

    def more(self):
        """Whatever a faulty model adds or draws otherwise."""

    def check(self, images: Tensor) -> None:
        if images.shape[1:] != (3, IMAGE, IMAGE):
            raise ValueError(f"images are {tuple(images.shape)}")

    def embed(self, images: Tensor) -> Tensor:
        self.check(images)
        x = self.patches(images).flatten(2).mT
        return torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.pos_embed

    def encode(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x

    def forward(self, images: Tensor):
        return self.head(self.norm(self.encode(self.embed(images)))[:, 0])


SICK: dict[str, list[Callable[[], nn.Module]]] = {}


def has(name: str):
    """Enter a model as one that has the fault of this name."""

    def enter(model):
        SICK.setdefault(name, []).append(model)
        return model

    return enter


def with_mix(name: str, mix: Callable) -> None:
    """Enter a model whose heads mix their values otherwise."""
    attention = type("Mixed", (Attention,), {"mix": lambda self, q, k, v: mix(q, k, v)})
    has(name)(type("Sick", (Plain,), {"attention": attention}))


# From the outside --------------------------------------------------------------------------------


@has("forward fails")
class NoBrackets(Plain):
    def forward(self, images):
        return super().forward(images)(8, 1000)


@has("forward fails")
class Tokens(Plain):
    def forward(self, images):
        return self.encode(self.embed(images))


@has("not finite")
class Log(Plain):
    def forward(self, images):
        return super().forward(images).log()


@has("images mixed")
class BatchMean(Plain):
    def encode(self, x):
        return super().encode(x - x.mean(0))


@has("images mixed")
class OverBatch(Plain):
    def embed(self, images):
        x = super().embed(images)
        turned = x.transpose(0, 1)  # attention without batch_first: over images, not tokens
        return x + F.scaled_dot_product_attention(turned, turned, turned).transpose(0, 1)


@has("input changed")
class InPlace(Plain):
    def forward(self, images):
        images -= 0.5
        return super().forward(images)


@has("parameters changed")
class Renormed(Plain):
    def forward(self, images):
        with torch.no_grad():
            self.head.weight.mul_(0.9)
        return super().forward(images)


@has("parameters changed")
class Anew(Plain):
    def forward(self, images):
        self.cls_token.data = self.cls_token.data + 0.1
        return super().forward(images)


@has("random in eval")
class Dropping(Plain):
    def encode(self, x):
        return super().encode(F.dropout(x, 0.1))


@has("random in eval")
class NewDropout(Plain):
    def encode(self, x):
        return nn.Dropout(0.1)(super().encode(x))


@has("prints")
class Prints(Plain):
    def encode(self, x):
        print("tokens", x.shape)
        return super().encode(x)


@has("probabilities")
class Twice(Plain):
    def forward(self, images):
        return super().forward(images).softmax(-1)


@has("batch of one")
class Squeezed(Plain):
    def forward(self, images):
        return super().forward(images).squeeze()


@has("unseen pixels")
class Cut(Plain):
    def forward(self, images):
        return super().forward(F.pad(images[..., :-2, :], (0, 0, 0, 2)))


@has("unseen pixels")
class LastPatches(Plain):
    def encode(self, x):
        return super().encode(x[:, :-4])


@has("images cropped")
class Cropped(Plain):
    def check(self, images):
        """The convolution leaves out what is no whole patch, in silence."""


@has("another dtype")
class Floats(Plain):
    def embed(self, images):
        return super().embed(images).float()


@has("no positions")
class NoPositions(Plain):
    def embed(self, images):
        x = self.patches(images).flatten(2).mT
        return torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1)


@has("no positions")
class OnePosition(Plain):
    def more(self):
        self.pos_embed = nn.Parameter(torch.randn(1, 1, WIDTH) * 0.02)


# Parameters --------------------------------------------------------------------------------------


@has("no gradient")
class Unused(Plain):
    def more(self):
        self.extra = nn.Linear(WIDTH, WIDTH)

    def encode(self, x):
        self.extra(x)
        return super().encode(x)


@has("no gradient")
class Detached(Plain):
    def embed(self, images):
        return super().embed(images).detach()


@has("cls unused")
class CutOff(Plain):
    def forward(self, images):
        return self.head(self.norm(self.encode(self.embed(images)[:, 1:])).mean(1))


@has("idle block")
class KeepsNothing(Plain):
    def encode(self, x):
        for block in self.blocks:
            block(x)
        return x


@has("idle block")
class OneIdle(Plain):
    def encode(self, x):
        self.blocks[0](x)
        return self.blocks[1](x)


@has("hidden")
class PlainList(Plain):
    def more(self):
        self.extra = [Block()]

    def encode(self, x):
        return self.extra[0](super().encode(x))


@has("hidden")
class InDict(Plain):
    def more(self):
        self.extra = {"shift": torch.zeros(WIDTH, requires_grad=True)}

    def encode(self, x):
        return super().encode(x) + self.extra["shift"]


@has("not saved")
class PlainTensor(Plain):
    def more(self):
        del self.pos_embed
        self.pos_embed = torch.randn(1, 17, WIDTH) * 0.02


@has("not saved")
class NotPersistent(Plain):
    def more(self):
        self.register_buffer("mixing", torch.randn(WIDTH, WIDTH), persistent=False)

    def encode(self, x):
        return super().encode(x + x @ self.mixing)


@has("not saved")
class Strange(Plain):
    def state_dict(self, *args, **options):
        return {f"vit.{n}": x for n, x in super().state_dict(*args, **options).items()}


@has("initial loss")
class LoudHead(Plain):
    def more(self):
        nn.init.normal_(self.head.weight)


@has("weights large")
class LoudWeights(Plain):
    def more(self):
        nn.init.normal_(self.blocks[0].mlp[2].weight)


@has("weights small")
class QuietWeights(Plain):
    def more(self):
        nn.init.normal_(self.blocks[1].mlp[0].weight, std=1e-5)


@has("positions large")
class LoudPositions(Plain):
    def more(self):
        nn.init.normal_(self.pos_embed)


@has("positions small")
class QuietPositions(Plain):
    def more(self):
        nn.init.normal_(self.pos_embed, std=1e-4)


@has("token large")
class LoudToken(Plain):
    def more(self):
        nn.init.normal_(self.cls_token, std=10)


# Inside attention --------------------------------------------------------------------------------

with_mix("scale after softmax", lambda q, k, v: (q @ k.mT).softmax(-1) / WIDTH**0.5 @ v)
with_mix(
    "scale after softmax",
    lambda q, k, v: torch.einsum(
        "bhqk,bhkd->bhqd", torch.einsum("bhqd,bhkd->bhqk", q, k).softmax(-1) * 12**-0.5, v
    ),
)
with_mix("scale after softmax", lambda q, k, v: F.dropout((q @ k.mT).softmax(-1) / 7, 0.1) @ v)
with_mix("softmax axis", lambda q, k, v: (q @ k.mT * 12**-0.5).softmax(-2) @ v)
with_mix("softmax axis", lambda q, k, v: (q @ k.mT * 12**-0.5).softmax(1) @ v)
with_mix("scale missing", lambda q, k, v: (q @ k.mT).softmax(-1) @ v)
with_mix("scale missing", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=1.0))
with_mix("scale width", lambda q, k, v: (q @ k.mT / WIDTH**0.5).softmax(-1) @ v)
with_mix("scale width", lambda q, k, v: F.scaled_dot_product_attention(q * 12**-0.5, k, v))
with_mix("scale width", lambda q, k, v: (q / 12 @ k.mT).softmax(-1) @ v)
with_mix("attention uniform", lambda q, k, v: (q @ k.mT * 0).softmax(-1) @ v)
with_mix("attention uniform", lambda q, k, v: (q[..., :1] @ k[..., :1].mT * 0).softmax(-1) @ v)
with_mix("attention saturated", lambda q, k, v: (100 * q @ k.mT).softmax(-1) @ v)
