"""A plain small ViT, and the same with one fault each: what the doctor must find, by name.

`SICK` holds for each name of a finding the models that have it. Each model differs from `Plain` in
a few lines.
"""

import math
from collections.abc import Callable
from typing import Any

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

    def with_cls(self, x: Tensor) -> Tensor:
        return torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1)

    def embed(self, images: Tensor) -> Tensor:
        self.check(images)
        return self.with_cls(self.patches(images).flatten(2).mT) + self.pos_embed

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


def otherwise(kind: type[Plain] = Plain, **changes: Any) -> type[Plain]:
    """A model with other functions."""
    return type("Otherwise", (kind,), changes)


def sick(name: str, kind: type[Plain] = Plain, **changes: Callable) -> type[Plain]:
    """Enter a model with other functions as one that has the fault of this name."""
    return has(name)(otherwise(kind, **changes))


def adding(**parts: Callable) -> Callable:
    """A `more` that gives the model these parts, each from its function."""

    def more(self):
        for name, make in parts.items():
            setattr(self, name, make())

    return more


def changed(kind: type[nn.Module], parts: dict[str, Callable], **changes) -> type[nn.Module]:
    """A kind of part with other functions, and with parts from their functions."""

    def make(self):
        kind.__init__(self)
        adding(**parts)(self)

    return type("Changed", (kind,), {**changes, "__init__": make})


def of_attention(forward=Attention.forward, mix=Attention.mix, **parts: Callable) -> type[Plain]:
    """A model whose attention is otherwise."""
    attention = changed(Attention, parts, forward=forward, mix=mix)
    return otherwise(attention=attention)


def of_blocks(forward: Callable = Block.forward, **parts: Callable) -> type[Plain]:
    """A model whose blocks are otherwise."""
    block = changed(Block, parts, forward=forward)
    return otherwise(more=adding(blocks=lambda: nn.ModuleList(block() for _ in range(2))))


def with_mix(name: str, mix: Callable) -> None:
    """Enter a model whose heads mix their values otherwise."""
    has(name)(of_attention(mix=lambda self, q, k, v: mix(q, k, v)))


# From the outside --------------------------------------------------------------------------------

NoBrackets = sick(
    "forward fails", forward=lambda self, images: Plain.forward(self, images)(8, 1000)
)
sick("forward fails", forward=lambda self, images: self.encode(self.embed(images)))
sick("not finite", forward=lambda self, images: Plain.forward(self, images).log())


@has("images mixed")
class BatchMean(Plain):
    def encode(self, x):
        return super().encode(x - x.mean(0))


def over_batch(self, images):
    x = Plain.embed(self, images)
    turned = x.transpose(0, 1)  # attention without batch_first: over images, not tokens
    return x + F.scaled_dot_product_attention(turned, turned, turned).transpose(0, 1)


sick("images mixed", embed=over_batch)


@has("input changed")
class InPlace(Plain):
    def forward(self, images):
        images -= 0.5
        return super().forward(images)


def renormed(self, images):
    with torch.no_grad():
        self.head.weight.mul_(0.9)
    return Plain.forward(self, images)


def anew(self, images):
    self.cls_token.data = self.cls_token.data + 0.1
    return Plain.forward(self, images)


sick("parameters changed", forward=renormed)
sick("parameters changed", forward=anew)
sick("random in eval", encode=lambda self, x: Plain.encode(self, F.dropout(x, 0.1)))


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


sick(
    "unseen pixels",
    forward=lambda self, images: Plain.forward(self, F.pad(images[..., :-2, :], (0, 0, 0, 2))),
)


@has("unseen pixels")
class LastPatches(Plain):
    def encode(self, x):
        return super().encode(x[:, :-4])


# The convolution leaves out what is no whole patch, in silence.
Cropped = sick("images cropped", check=lambda self, images: None)


@has("another dtype")
class Floats(Plain):
    def embed(self, images):
        return super().embed(images).float()


def positions(count):
    return lambda: nn.Parameter(torch.randn(1, count, WIDTH) * 0.02)


sick("no positions", embed=lambda self, x: self.with_cls(self.patches(x).flatten(2).mT))
OnePosition = sick("no positions", more=adding(pos_embed=positions(1)))


# Parameters --------------------------------------------------------------------------------------


def in_vain(self, x):
    self.extra(x)
    return Plain.encode(self, x)


def keeps_nothing(self, x):
    for block in self.blocks:
        block(x)
    return x


def one_idle(self, x):
    self.blocks[0](x)
    return self.blocks[1](x)


sick("no gradient", more=adding(extra=lambda: nn.Linear(WIDTH, WIDTH)), encode=in_vain)
sick("no gradient", embed=lambda self, images: Plain.embed(self, images).detach())
sick(
    "cls unused",
    forward=lambda self, x: self.head(self.norm(self.encode(self.embed(x)[:, 1:])).mean(1)),
)
sick("idle block", encode=keeps_nothing)
sick("idle block", encode=one_idle)
sick(
    "hidden",
    more=adding(extra=lambda: [Block()]),
    encode=lambda self, x: self.extra[0](Plain.encode(self, x)),
)
sick(
    "hidden",
    more=adding(extra=lambda: {"shift": torch.zeros(WIDTH, requires_grad=True)}),
    encode=lambda self, x: Plain.encode(self, x) + self.extra["shift"],
)


def plain_tensor(self):
    del self.pos_embed
    self.pos_embed = torch.randn(1, 17, WIDTH) * 0.02


def under_other_names(self, *args, **options):
    state = Plain.state_dict(self, *args, **options)
    return {f"vit.{name}": x for name, x in state.items()}


sick("not saved", more=plain_tensor)
sick(
    "not saved",
    more=lambda self: self.register_buffer("mixing", torch.randn(WIDTH, WIDTH), persistent=False),
    encode=lambda self, x: Plain.encode(self, x + x @ self.mixing),
)
sick("not saved", state_dict=under_other_names)
LoudHead = sick("initial loss", more=lambda self: nn.init.normal_(self.head.weight))
sick("weights large", more=lambda self: nn.init.normal_(self.blocks[0].mlp[2].weight))
sick("weights small", more=lambda self: nn.init.normal_(self.blocks[1].mlp[0].weight, std=1e-5))


@has("positions large")
class LoudPositions(Plain):
    def more(self):
        nn.init.normal_(self.pos_embed)


sick("positions small", more=lambda self: nn.init.normal_(self.pos_embed, std=1e-4))
sick("token large", more=lambda self: nn.init.normal_(self.cls_token, std=10))


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

# How attention moves tokens about ----------------------------------------------------------------


def merged_by_view(self, x):
    q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
    return self.proj(self.mix(q, k, v).reshape(x.shape))


def split_by_view(self, x):
    q, k, v = (t.reshape(len(x), HEADS, x.shape[1], -1) for t in self.qkv(x).chunk(3, -1))
    return self.proj(self.mix(q, k, v).transpose(1, 2).flatten(2))


def never_turned(self, x):
    q, k, v = (t.reshape(len(x), HEADS, x.shape[1], -1) for t in self.qkv(x).chunk(3, -1))
    return self.proj(F.scaled_dot_product_attention(q, k, v).reshape(x.shape))


def over_heads(self, x):
    q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).unbind(2)
    return self.proj(self.mix(q, k, v).flatten(2))


for mixed in (merged_by_view, split_by_view, never_turned):
    has("heads mixed")(of_attention(mixed))
has("tokens apart")(of_attention(over_heads))


def in_tiles(images):
    """Images (B, C, rows, P, cols, P)."""
    return images.unflatten(3, (-1, PATCH)).unflatten(2, (-1, PATCH))


class ByHand(Plain):
    """Patches cut by hand, and turned into tokens by a linear map; takes images of any sides."""

    def more(self):
        self.patches = nn.Linear(3 * PATCH * PATCH, WIDTH)
        self.pos_embed = positions(40)()

    def cut(self, images):
        return in_tiles(images).permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)

    def embed(self, images):
        if images.shape[2] % PATCH or images.shape[3] % PATCH:
            raise ValueError(f"images are {tuple(images.shape)}")
        x = self.with_cls(self.patches(self.cut(images)))
        return x + self.pos_embed[:, : x.shape[1]]


def reshaped(self, images):
    return images.reshape(len(images), -1, 3 * PATCH * PATCH)


def channels_first(self, images):
    return in_tiles(images).permute(0, 1, 2, 4, 3, 5).reshape(len(images), -1, 3 * PATCH * PATCH)


def sides_swapped(self, images):
    """Right for squares: only a wide image shows it."""
    height, width = images.shape[2] // PATCH, images.shape[3] // PATCH
    x = images.reshape(len(images), 3, width, PATCH, height, PATCH)
    return x.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)


def dilated(self, images):
    x = images.unflatten(3, (-1, PATCH)).unflatten(2, (PATCH, -1))
    return x.permute(0, 3, 4, 1, 2, 5).flatten(3).flatten(1, 2)


for scrambled in (reshaped, channels_first, dilated):
    sick("patches scrambled", ByHand, cut=scrambled)
SidesSwapped = sick("patches scrambled", ByHand, cut=sides_swapped)


# Norms, residuals and blocks ---------------------------------------------------------------------


def attention_step(block, x):
    return x + block.attn(block.norm1(x))


def mlp_step(block, x):
    return x + block.mlp(block.norm2(x))


def steps(first=attention_step, second=mlp_step):
    """A block's forward pass that does one step, and then another."""
    return lambda self, x: second(self, first(self, x))


first_raw = steps(first=lambda block, x: x + block.attn(x))
second_raw = steps(second=lambda block, x: x + block.mlp(x))
normed_twice = steps(first=lambda block, x: x + block.attn(block.norm1(block.norm1(x))))
attention_alone = steps(first=lambda block, x: block.attn(block.norm1(x)))
mlp_alone = steps(second=lambda block, x: block.mlp(block.norm2(x)))


def thrown_away(self, x):
    x = x + self.attn(self.norm1(x))
    y = self.norm2(x)
    y = F.gelu(x)
    return x + self.mlp(y)


def normed_mlp():
    parts = (nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH))
    return nn.Sequential(*parts)


def none_at_all(self, x):
    return self.mlp(self.norm2(self.attn(self.norm1(x))))


def summed_branches(self, x):
    mixed = self.attn(self.norm1(x))
    return mixed + self.mlp(self.norm2(x))


has("norm missing")(of_blocks(first_raw, norm1=nn.Identity))
has("norm missing")(of_blocks(second_raw, norm2=nn.Identity))
has("norm unused")(of_blocks(thrown_away))
has("norm unused")(of_blocks(thrown_away, norm2=lambda: nn.LayerNorm(WIDTH, 1e-5, False)))
has("norm twice")(of_blocks(normed_twice))
has("norm twice")(of_blocks(mlp=normed_mlp))
for residual in (attention_alone, mlp_alone, none_at_all, summed_branches):
    has("residual missing")(of_blocks(residual))


def norm_before_blocks(self, images):
    return self.head(self.encode(self.norm(self.embed(images)))[:, 0])


def each_block(change):
    """A `more` that changes each block of the model."""

    def more(self):
        for block in self.blocks:
            change(block, self.blocks[0])

    return more


sick("final norm missing", more=adding(norm=nn.Identity))
sick("final norm missing", forward=norm_before_blocks)
sick("shared block", more=adding(blocks=lambda: nn.ModuleList([Block()] * 3)))
sick("shared block", more=each_block(lambda block, first: setattr(block, "attn", first.attn)))
sick(
    "activation missing", more=each_block(lambda block, _: setattr(block.mlp, "1", nn.Dropout(0.1)))
)

# In training, and elsewhere ----------------------------------------------------------------------


def masked(self, x):
    """Batch norm over tokens, of which training leaves out some."""
    return Plain.encode(self, self.over(x[:, :12] if self.training else x))


def dropped(self, images):
    x = self.norm(self.encode(self.embed(images)))
    q, k, v = self.last.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
    weights = F.dropout((q @ k.mT / 12**0.5).softmax(-1), 0.2, self.training)
    x = x + self.last.proj((weights @ v).transpose(1, 2).flatten(2))
    return self.head(x[:, 0]), weights


def for_cuda_alone(self, x):
    with torch.autocast("cuda", enabled=False):
        return Plain.encode(self, x)


def summed_in_place(self, images):
    x = self.norm(self.encode(self.embed(images)))[:, 0]
    y = x.relu()
    y += x
    return self.head(y)


sick("training fails", more=adding(over=lambda: nn.BatchNorm1d(17)), encode=masked)
sick("returned attention", more=adding(last=Attention), forward=dropped)
sick("device fixed", encode=lambda self, x: Plain.encode(self, x + torch.zeros(17, WIDTH)))
sick(
    "device fixed",
    more=adding(table=lambda: torch.arange(17.0 * WIDTH).view(17, WIDTH).sin()),
    encode=lambda self, x: Plain.encode(self, x + self.table),
)
sick("device fixed", encode=for_cuda_alone)
InPlaceSum = sick("backward fails", forward=summed_in_place)

# Numbers of a row, a token, a start --------------------------------------------------------------

with_mix("no gradient", lambda q, k, v: F.scaled_dot_product_attention(q, q, v))
with_mix("no gradient", lambda q, k, v: F.scaled_dot_product_attention(q, k, k))
with_mix("softmax axis", lambda q, k, v: (q @ k.mT * 1e-2 * 12**-0.5).softmax(-2) @ v)


def softened_in_vain(q, k, v):
    scores = q @ k.mT * 12**-0.5
    scores.softmax(-1)
    return scores @ v


with_mix("softmax unused", softened_in_vain)
with_mix("softmax unused", lambda q, k, v: (q @ k.mT * 12**-0.5).log_softmax(-1) @ v)


def reading(part):
    """A forward pass whose head reads this part of the tokens."""
    return lambda self, images: self.head(part(self.norm(self.encode(self.embed(images)))))


def biases_of_one(self):
    for module in self.modules():
        if isinstance(module, nn.Linear):
            nn.init.ones_(module.bias)


sick("tokens read", forward=reading(lambda x: x[:, 1]))
sick("tokens read", forward=reading(lambda x: x[:, 2:].mean(1)))
sick("bias large", more=biases_of_one)
sick("eps large", more=adding(norm=lambda: nn.LayerNorm(WIDTH, eps=0.1)))


# Otherwise written: sums in place, softmax and norms by hand, weights without a module ------------


def added_in_place(self, images):
    self.check(images)
    x = self.with_cls(self.patches(images).flatten(2).mT)
    x += self.pos_embed
    return x


sick("positions large", LoudPositions, embed=added_in_place)


def less_the_largest(scores, dim=-1):
    powers = (scores - scores.amax(dim, keepdim=True)).exp()
    return powers / powers.sum(dim, keepdim=True)


def by_logarithm(scores):
    return (scores - scores.logsumexp(-1, keepdim=True)).exp()


with_mix("scale after softmax", lambda q, k, v: less_the_largest(q @ k.mT) / WIDTH**0.5 @ v)
with_mix("scale missing", lambda q, k, v: less_the_largest(q @ k.mT) @ v)
with_mix("scale missing", lambda q, k, v: by_logarithm(q @ k.mT) @ v)
with_mix("softmax axis", lambda q, k, v: less_the_largest(q @ k.mT * 12**-0.5, -2) @ v)


def drawn(*shape):
    return nn.Parameter(torch.randn(shape) * shape[-2] ** -0.5)


class Einsum(nn.Module):
    """Attention that multiplies with bare parameters, head by head."""

    scale = 12**-0.5

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (drawn(HEADS, WIDTH, 12) for _ in range(3))
        self.out = drawn(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (torch.einsum("bnd,hde->bhne", x, w) for w in (self.q, self.k, self.v))
        weights = (torch.einsum("bhqe,bhke->bhqk", q, k) * self.scale).softmax(-1)
        return self.merge(torch.einsum("bhqk,bhke->bhqe", weights, v)) @ self.out

    def merge(self, mixed):
        return mixed.transpose(1, 2).flatten(2)


class OwnNorm(nn.Module):
    """A layer norm by hand, under a name that does not say it."""

    eps = 1e-6

    def __init__(self):
        super().__init__()
        self.gain, self.shift = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x):
        x = x - x.mean(-1, keepdim=True)
        return x / (x.std(-1, keepdim=True) + self.eps) * self.gain + self.shift


class OwnMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.narrow = drawn(WIDTH, 2 * WIDTH), drawn(2 * WIDTH, WIDTH)
        self.bias = nn.Parameter(torch.zeros(2 * WIDTH))

    def forward(self, x):
        return F.gelu(x @ self.wide + self.bias) @ self.narrow


class OwnBlock(Block):
    def __init__(self, attention=Einsum):
        nn.Module.__init__(self)
        self.norm1, self.attn, self.norm2 = OwnNorm(), attention(), OwnNorm()
        self.mlp = OwnMLP()


class Own(Plain):
    """No module of torch in the blocks."""

    attention = Einsum
    block = OwnBlock

    def more(self):
        self.blocks = nn.ModuleList(self.block(self.attention) for _ in range(2))
        self.norm = OwnNorm()


def of_own_blocks(forward: Callable) -> type[Plain]:
    return otherwise(Own, block=type("Changed", (OwnBlock,), {"forward": forward}))


def of_einsum(**changes: Any) -> type[Plain]:
    return otherwise(Own, attention=type("Changed", (Einsum,), changes))


def own_then(change):
    """A `more` of the own model that changes it at the end."""

    def more(self):
        Own.more(self)
        change(self)

    return more


has("scale missing")(of_einsum(scale=1.0))
has("heads mixed")(of_einsum(merge=lambda self, mixed: mixed.reshape(len(mixed), -1, WIDTH)))
has("norm missing")(of_own_blocks(second_raw))
has("norm unused")(of_own_blocks(thrown_away))
has("norm twice")(of_own_blocks(normed_twice))
for residual in (attention_alone, mlp_alone):
    has("residual missing")(of_own_blocks(residual))
sick("final norm missing", Own, more=own_then(lambda model: setattr(model, "norm", nn.Identity())))
sick("weights large", Own, more=own_then(lambda model: nn.init.normal_(model.blocks[0].attn.out)))
sick("eps large", Own, more=own_then(lambda model: setattr(model.norm, "eps", 0.2)))


# Masks, branches, and models of another build ----------------------------------------------------


def near(scores):
    """Which tokens stand at most four apart, and cls."""
    at = torch.arange(scores.shape[-1], device=scores.device)
    return ((at - at[:, None]).abs() < 5) | (at == 0) | (at == 0)[:, None]


def with_mask(name, mask):
    """Enter a model whose scores meet a mask, as a function of both, in vain."""

    def mix(q, k, v):
        scores = q @ k.mT * 12**-0.5
        mask(scores, near(scores))
        return scores.softmax(-1) @ v

    with_mix(name, mix)


with_mask("mask unused", lambda scores, mask: scores.masked_fill(~mask, -1e9))
with_mask("mask unused", lambda scores, mask: torch.where(mask, scores, -1e9))


class Two(Plain):
    """Blocks that stand in no list."""

    def more(self):
        self.one, self.two = self.blocks
        del self.blocks

    def encode(self, x):
        return self.two(self.one(x))


def second_in_vain(self, x):
    self.two(x)
    return self.one(x)


class OneBlock(Plain):
    def more(self):
        self.blocks = nn.ModuleList([Block()])


class Cut(nn.Module):
    """Patches by hand, in a module of their own, for a model of one size."""

    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(3 * PATCH * PATCH, WIDTH)

    def forward(self, images):
        height, width = images.shape[2] // PATCH, images.shape[3] // PATCH
        x = self.tiles(images, height, width).permute(0, 2, 4, 1, 3, 5)
        return self.proj(x.reshape(len(images), height * width, -1))

    def tiles(self, images, height, width):
        return images.reshape(len(images), 3, height, PATCH, width, PATCH)


class OfOneSize(ByHand):
    cutter: type[nn.Module] = Cut

    def more(self):
        self.patches = self.cutter()

    def embed(self, images):
        self.check(images)
        return self.with_cls(self.patches(images)) + self.pos_embed


sick("activation last", more=each_block(lambda block, _: block.mlp.append(nn.GELU())))
sick("idle block", Two, encode=second_in_vain)
sick("tokens read", Two, forward=reading(lambda x: x[:, 1]))
sick("tokens read", OneBlock, forward=reading(lambda x: x[:, -1]))
sick(
    "patches scrambled",
    OfOneSize,
    cutter=changed(Cut, {}, tiles=lambda self, images, h, w: Cut.tiles(self, images, w, h)),
)
sick("no positions", more=lambda self: nn.init.ones_(self.pos_embed))


class IdleAndLoud(LoudPositions):
    """Without a block at work no order counts, however large the positions are."""

    def encode(self, x):
        return keeps_nothing(self, x)

    def forward(self, images):
        return self.head(self.norm(self.encode(self.embed(images))).mean(1))
