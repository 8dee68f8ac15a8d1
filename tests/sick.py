"""A plain small ViT, and the same with one fault each: what the doctor must find, by name.

`SICK` holds for each name of a finding the models that have it, each an edit of the text above it.
"""

import linecache
import math
from functools import partial
from pathlib import Path

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
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = attention()
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
        """Add or change what another model has otherwise."""

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
        x = self.embed(images)
        x = self.encode(x)
        return self.head(self.norm(x)[:, 0])


# Models of another build, sound too --------------------------------------------------------------


def in_tiles(images):
    """Cut images into (B, C, rows, P, cols, P)."""
    return images.unflatten(3, (-1, PATCH)).unflatten(2, (-1, PATCH))


class ByHand(Plain):
    """Patches cut by hand, and turned into tokens by a linear map; takes images of any sides."""

    def more(self):
        self.patches = nn.Linear(3 * PATCH * PATCH, WIDTH)
        self.pos_embed = nn.Parameter(torch.randn(1, 40, WIDTH) * 0.02)

    def cut(self, images):
        return in_tiles(images).permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)

    def embed(self, images):
        if images.shape[2] % PATCH or images.shape[3] % PATCH:
            raise ValueError(f"images are {tuple(images.shape)}")
        x = self.with_cls(self.patches(self.cut(images)))
        return x + self.pos_embed[:, : x.shape[1]]


class Cut(nn.Module):
    """Patches by hand, in a module of their own, for a model of one size."""

    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(3 * PATCH * PATCH, WIDTH)

    def forward(self, images):
        rows, cols = images.shape[2] // PATCH, images.shape[3] // PATCH
        x = images.reshape(len(images), 3, rows, PATCH, cols, PATCH).permute(0, 2, 4, 1, 3, 5)
        return self.proj(x.reshape(len(images), rows * cols, -1))


class OfOneSize(ByHand):
    def more(self):
        self.patches = Cut()

    def embed(self, images):
        self.check(images)
        return self.with_cls(self.patches(images)) + self.pos_embed


class Two(Plain):
    """Blocks that stand in no list."""

    def more(self):
        self.one, self.two = self.blocks
        del self.blocks

    def encode(self, x):
        return self.two(self.one(x))


class OneBlock(Plain):
    def more(self):
        self.blocks = nn.ModuleList([Block()])


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
        mixed = torch.einsum("bhqk,bhke->bhqe", weights, v)
        return mixed.transpose(1, 2).flatten(2) @ self.out


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


class Own(Plain):
    """No module of torch in the blocks."""

    def more(self):
        for block in self.blocks:
            block.norm1, block.norm2 = OwnNorm(), OwnNorm()
            block.attn, block.mlp = Einsum(), OwnMLP()
        self.norm = OwnNorm()


def less_the_largest(scores, dim=-1):
    powers = (scores - scores.amax(dim, keepdim=True)).exp()
    return powers / powers.sum(dim, keepdim=True)


def by_logarithm(scores):
    return (scores - scores.logsumexp(-1, keepdim=True)).exp()


def near(scores):
    """Tell which tokens stand at most four apart, or are cls."""
    at = torch.arange(scores.shape[-1], device=scores.device)
    return ((at - at[:, None]).abs() < 5) | (at == 0) | (at == 0)[:, None]


SICK: dict[str, list[partial]] = {}

# What is edited: a line of `Plain`, or what stands in it.
QKV = "self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)"
MIX = "(q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v"
MERGE = "self.mix(q, k, v).transpose(1, 2).flatten(2)"
NORMS = "self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)"
LOOK = "x = x + self.attn(self.norm1(x))"
THINK = "return x + self.mlp(self.norm2(x))"
END = "self.more()"  # of __init__
EMBED = "self.with_cls(self.patches(images).flatten(2).mT) + self.pos_embed"
BEGIN = "x = self.embed(images)"
ENCODE = "self.encode(x)\n"
ANSWER = "self.head(self.norm(x)[:, 0])"
CUT = "in_tiles(images).permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)"


def lines(*statements: str) -> str:
    """Join statements of a method."""
    return "\n        ".join(statements)


def end(*statements: str) -> tuple[str, str]:
    """Give the edit that has these follow in __init__, where all of the model is there."""
    return END, lines(END, *statements)


def encode(tokens: str) -> tuple[str, str]:
    """Give the edit that encodes this in the place of `x`."""
    return "self.encode(x)", f"self.encode({tokens})"


def source(*edits: tuple[str, str]) -> str:
    """Give the text of this file up to `SICK`, each edit's first text replaced by its second."""
    text = SOURCE
    for old, new in edits:
        if text.count(old) != 1:
            raise ValueError(f"{old!r} stands there {text.count(old)} times, not once")
        text = text.replace(old, new)
    return text


def edited(*edits: tuple[str, str], kind: str = "Plain") -> type[Plain]:
    """Give a model of the edited text, whose lines can be read as those of a file."""
    text, file = source(*edits), f"/edited/{hash(edits)}/sick.py"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    names = {"__name__": "edited", "__file__": file}
    exec(compile(text, file, "exec"), names)
    return names[kind]


def make(*edits: tuple[str, str], kind: str = "Plain") -> Plain:
    return edited(*edits, kind=kind)()


def sick(name: str, *edits: tuple[str, str], kind: str = "Plain") -> None:
    """Enter a model that has the fault of this name."""
    SICK.setdefault(name, []).append(partial(make, *edits, kind=kind))


def sick_in_mix(name: str, *mixes: str) -> None:
    """Enter a model for each way to mix the values of a head that has this fault."""
    for mix in mixes:
        sick(name, (MIX, mix))


SOURCE = Path(__file__).read_text("utf-8").partition("\nSICK: ")[0]

# From the outside --------------------------------------------------------------------------------

sick("forward fails", (ANSWER, f"{ANSWER}(8, 1000)"))
sick("forward fails", (ANSWER, "x"))
sick("not finite", (ANSWER, f"{ANSWER}.log()"))
sick("images mixed", encode("x - x.mean(0)"))
# Attention without batch_first: over images, not tokens.
turned = "F.scaled_dot_product_attention(turned, turned, turned).transpose(0, 1)"
sick("images mixed", (BEGIN, lines(BEGIN, "turned = x.transpose(0, 1)", f"x = x + {turned}")))
sick("input changed", (BEGIN, lines("images -= 0.5", BEGIN)))
decay = lines("with torch.no_grad():", "    self.head.weight.mul_(0.9)", BEGIN)
sick("parameters changed", (BEGIN, decay))
replaced = lines("self.cls_token.data = self.cls_token.data + 0.1", BEGIN)
sick("parameters changed", (BEGIN, replaced))
sick("random in eval", (ENCODE, "nn.Dropout(0.1)(self.encode(x))\n"))
sick("random in eval", encode("F.dropout(x, 0.1)"))
sick("prints", (BEGIN, lines(BEGIN, 'print("tokens", x.shape)')))
sick("probabilities", (ANSWER, f"{ANSWER}.softmax(-1)"))
sick("batch of one", (ANSWER, f"{ANSWER}.squeeze()"))
sick("unseen pixels", (BEGIN, "x = self.embed(F.pad(images[..., :-2, :], (0, 0, 0, 2)))"))
sick("unseen pixels", encode("x[:, :-4]"))
sick("another dtype", (BEGIN, f"{BEGIN}.float()"))
# The convolution leaves out what is no whole patch, in silence.
cropped = "if images.shape[1:] != (3, IMAGE, IMAGE):", "if False:"
sick("images cropped", cropped)
sick("no positions", (f"{EMBED}\n", EMBED.replace(" + self.pos_embed", "\n")))
one_position = "torch.randn(1, tokens + 1, WIDTH)", "torch.randn(1, 1, WIDTH)"
sick("no positions", one_position)
sick("no positions", end("nn.init.ones_(self.pos_embed)"))

# Parameters --------------------------------------------------------------------------------------

in_vain = BEGIN, lines(BEGIN, "self.extra(x)")
sick("no gradient", end("self.extra = nn.Linear(WIDTH, WIDTH)"), in_vain)
sick("no gradient", (BEGIN, f"{BEGIN}.detach()"))
mean = ANSWER, "self.head(self.norm(x).mean(1))"
sick("cls unused", encode("x[:, 1:]"), mean)
idle = "x = block(x)", "block(x)"
sick("idle block", idle)
one_idle = lines("self.blocks[0](x)", "x = self.blocks[1](x)")
sick("idle block", (f"x = {ENCODE}", f"{one_idle}\n"))
two_idle = "return self.two(self.one(x))", lines("self.two(x)", "return self.one(x)")
sick("idle block", two_idle, kind="Two")
sick("hidden", end("self.extra = [Block()]"), (ENCODE, "self.extra[0](self.encode(x))\n"))
shift = "self.extra = {'shift': torch.zeros(WIDTH, requires_grad=True)}"
sick("hidden", end(shift), (ENCODE, "self.encode(x) + self.extra['shift']\n"))
plain_tensor = "self.pos_embed = torch.randn(1, 17, WIDTH) * 0.02"
sick("not saved", end("del self.pos_embed", plain_tensor))
mixing = "self.register_buffer('mixing', torch.randn(WIDTH, WIDTH), persistent=False)"
sick("not saved", end(mixing), encode("x + x @ self.mixing"))
OTHER_NAMES = """    def state_dict(self, *args, **options):
        state = super().state_dict(*args, **options)
        return {f"vit.{name}": x for name, x in state.items()}

    def check("""
sick("not saved", ("    def check(", OTHER_NAMES))
sick("initial loss", end("nn.init.normal_(self.head.weight)"))
sick("weights large", end("nn.init.normal_(self.blocks[0].mlp[2].weight)"))
sick("weights large", end("nn.init.normal_(self.blocks[0].attn.out)"), kind="Own")
sick("weights small", end("nn.init.normal_(self.blocks[1].mlp[0].weight, std=1e-5)"))
loud = end("nn.init.normal_(self.pos_embed)")
in_place = "x = " + EMBED.replace(" + self.pos_embed", "")
in_place = f"return {EMBED}\n", lines(in_place, "x += self.pos_embed", "return x\n")
sick("positions large", loud)
sick("positions large", loud, in_place)
TOKENS = "self.with_cls(self.patches(images).flatten(2).mT)"
for positions in (
    "self.pos_embed.broadcast_to(len(images), 17, WIDTH)",
    "torch.broadcast_to(self.pos_embed, (len(images), 17, WIDTH))",
    "torch.stack([self.pos_embed[0]] * len(images))",
    "torch.cat([self.pos_embed] * len(images))",
    "F.dropout(self.pos_embed, 0.1, self.training)",
    "self.pos_embed.tile(len(images), 1, 1)",
):
    sick("positions large", loud, (EMBED, f"{TOKENS} + {positions}"))
sick(
    "positions large",
    end("self.pos_embed = nn.Parameter(torch.randn(1, 16, WIDTH))"),
    (EMBED, f"{TOKENS} + F.pad(self.pos_embed, (0, 0, 1, 0))"),
)
EMBEDDED = f"return {EMBED}\n"
for placed in (
    ["return torch.stack([x[:, i] + self.pos_embed[:, i] for i in range(17)], 1)"],
    ["for i in range(17):", "    x[:, i] += self.pos_embed[0, i]", "return x"],
    ["return torch.stack([each + self.pos_embed[0] for each in x])"],
    ["return torch.cat([each + self.pos_embed for each in x])"],
):
    sick("positions large", loud, (EMBEDDED, lines(f"x = {TOKENS}.clone()", *placed, "")))
sick("positions small", end("nn.init.normal_(self.pos_embed, std=1e-4)"))
loud_cls = end("nn.init.normal_(self.cls_token, std=10)")
sick("token large", loud_cls)
JOINED = "return torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1)"
for joined in (
    ["return torch.cat([self.cls_token.broadcast_to(len(x), 1, WIDTH), x], dim=1)"],
    ["return torch.concat([torch.stack([self.cls_token[0]] * len(x)), x], 1)"],
    ["return torch.stack([torch.vstack((self.cls_token[0], each)) for each in x])"],
    ["return torch.stack([torch.vstack((self.cls_token[0, 0], each)) for each in x])"],
    ["x = F.pad(x, (0, 0, 1, 0))", "x[:, 0] = self.cls_token[0, 0]", "return x"],
    ["return F.pad(x, (0, 0, 1, 0)) + F.pad(self.cls_token, (0, 0, 0, 16))"],
    ["y = x.new_empty(len(x), 17, WIDTH)", "y[:, 1:] = x", "y[:, :1] = self.cls_token", "return y"],
):
    sick("token large", loud_cls, (JOINED, lines(*joined)))
ones = lines("for module in self.modules():", "    if isinstance(module, nn.Linear):")
sick("bias large", end(ones, "        nn.init.ones_(module.bias)"))
sick("eps large", end("self.norm = nn.LayerNorm(WIDTH, eps=0.1)"))
sick("eps large", end("self.norm.eps = 0.2"), kind="Own")

# Inside attention --------------------------------------------------------------------------------

einsum = 'torch.einsum("bhqd,bhkd->bhqk", q, k).softmax(-1) * 12**-0.5'
sick_in_mix(
    "scale after softmax",
    "(q @ k.mT).softmax(-1) / WIDTH**0.5 @ v",
    f'torch.einsum("bhqk,bhkd->bhqd", {einsum}, v)',
    "F.dropout((q @ k.mT).softmax(-1) / 7, 0.1) @ v",
    "less_the_largest(q @ k.mT) / WIDTH**0.5 @ v",
)
sick_in_mix(
    "softmax axis",
    "(q @ k.mT * 12**-0.5).softmax(-2) @ v",
    "(q @ k.mT * 12**-0.5).softmax(1) @ v",
    "(q @ k.mT * 1e-2 * 12**-0.5).softmax(-2) @ v",
    "less_the_largest(q @ k.mT * 12**-0.5, -2) @ v",
)
SCALED = "q @ k.mT * 12**-0.5"
sick_in_mix(
    "softmax axis",  # over several at once
    f"({SCALED}).flatten(1).softmax(-1).view(len(q), HEADS, 17, 17) @ v",
    f"({SCALED}).flatten(2).softmax(-1).view(len(q), HEADS, 17, 17) @ v",
    f"({SCALED}).transpose(1, 2).flatten(2).softmax(-1).unflatten(-1, (4, 17)).transpose(1, 2) @ v",
)
sick_in_mix(
    "softmax missing",
    f"({SCALED}) @ v",
    "(q * 12**-0.5) @ k.mT @ v",
    f'torch.einsum("bhqk,bhkd->bhqd", {SCALED}, v)',
    f"({SCALED}).softmax(-1).softmax(-1) @ v",
    f"F.dropout(({SCALED}).softmax(-1), 0.1, self.training).softmax(-1) @ v",
    f"({SCALED}).sigmoid() @ v",
    f"torch.sigmoid({SCALED}) @ v",
)


def image_by_image(mix: str) -> str:
    """Give the mixing of values that looks at each head of each image alone, in two axes."""
    return f"torch.stack([torch.stack([{mix} for q, k, v in zip(*each)]) for each in zip(q, k, v)])"


for name, mix in {
    "softmax axis": "(q @ k.mT * 12**-0.5).softmax(0) @ v",
    "scale missing": "(q @ k.mT).softmax(-1) @ v",
    "scale width": "torch.mm(q, k.mT / WIDTH**0.5).softmax(-1) @ v",
    "scale after softmax": "(q @ k.mT).softmax(-1) / 12**0.5 @ v",
}.items():
    sick_in_mix(name, image_by_image(mix))
sick_in_mix(
    "scale missing",
    "(q @ k.mT).softmax(-1) @ v",
    "F.scaled_dot_product_attention(q, k, v, scale=1.0)",
    "less_the_largest(q @ k.mT) @ v",
    "by_logarithm(q @ k.mT) @ v",
)
sick("scale missing", ("scale = 12**-0.5", "scale = 1.0"), kind="Own")
sick_in_mix(
    "scale width",
    "(q @ k.mT / WIDTH**0.5).softmax(-1) @ v",
    "F.scaled_dot_product_attention(q * 12**-0.5, k, v)",
    "(q / 12 @ k.mT).softmax(-1) @ v",
)
for product in ("q @ k.mT", "q[..., :1] @ k[..., :1].mT"):
    sick("attention uniform", (MIX, f"({product} * 0).softmax(-1) @ v"))
sick_in_mix("attention saturated", "(100 * q @ k.mT).softmax(-1) @ v")
for used in ("q, q, v", "q, k, k"):
    sick("no gradient", (MIX, f"F.scaled_dot_product_attention({used})"))
scores = "scores = q @ k.mT * 12**-0.5"
softened = lines(scores, "scores.softmax(-1)", "return scores @ v")
sick("softmax unused", (f"return {MIX}", softened))
sick_in_mix("softmax unused", "(q @ k.mT * 12**-0.5).log_softmax(-1) @ v")
for mask in ("scores.masked_fill(~near(scores), -1e9)", "torch.where(near(scores), scores, -1e9)"):
    sick("mask unused", (f"return {MIX}", lines(scores, mask, "return scores.softmax(-1) @ v")))

# How attention moves tokens about ----------------------------------------------------------------

merged_by_view = MERGE, "self.mix(q, k, v).reshape(x.shape)"
by_view = "(t.reshape(len(x), HEADS, x.shape[1], -1) for t in self.qkv(x).chunk(3, -1))"
sick("heads mixed", merged_by_view)
sick("heads mixed", (QKV, by_view))
never_turned = MIX, "F.scaled_dot_product_attention(q, k, v)"
sick("heads mixed", (QKV, by_view), merged_by_view, never_turned)
own_view = "mixed.transpose(1, 2).flatten(2) @", "mixed.reshape(len(mixed), -1, WIDTH) @"
sick("heads mixed", own_view, kind="Own")
unbound = QKV.replace("permute(2, 0, 3, 1, 4)", "unbind(2)")
sick("tokens apart", (QKV, unbound), (MERGE, "self.mix(q, k, v).flatten(2)"))

flat = "reshape(len(images), -1, 3 * PATCH * PATCH)"
swapped = "images.shape[3] // PATCH, PATCH, images.shape[2] // PATCH, PATCH"
turn = "permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)"
strides = "images.unflatten(3, (-1, PATCH)).unflatten(2, (PATCH, -1))"
SCRAMBLED = {
    "reshaped": f"images.{flat}",
    "channels first": f"in_tiles(images).permute(0, 1, 2, 4, 3, 5).{flat}",
    "dilated": f"{strides}.permute(0, 3, 4, 1, 2, 5).flatten(3).flatten(1, 2)",
    # Right for squares: only a wide image shows it.
    "sides swapped": f"images.reshape(len(images), 3, {swapped}).{turn}",
}
for scrambled in SCRAMBLED.values():
    sick("patches scrambled", (CUT, scrambled), kind="ByHand")
for laid_out in (
    "self.patches(images).reshape(len(images), -1, WIDTH)",
    "self.patches(images).view(len(images), 16, WIDTH)",
    "self.patches(images).flatten(2).view(len(images), -1, WIDTH)",
    "self.patches(images).permute(0, 3, 1, 2).reshape(len(images), -1, WIDTH)",
    "torch.reshape(self.patches(images), (len(images), 16, WIDTH))",
    "F.unfold(self.patches(images), 1).reshape(len(images), -1, WIDTH)",
):
    embedded = f"self.with_cls({laid_out}) + self.pos_embed"
    sick("patches scrambled", (EMBED, embedded))
unfolded = "F.unfold(images, PATCH, stride=PATCH).reshape(len(images), 16, -1)"
sick("patches scrambled", (CUT, unfolded), kind="ByHand")
cols_first = "3, rows, PATCH, cols, PATCH", "3, cols, PATCH, rows, PATCH"
sick("patches scrambled", cols_first, kind="OfOneSize")

# Norms, residuals and blocks ---------------------------------------------------------------------

first_raw = LOOK, "x = x + self.attn(x)"
second_raw = THINK, "return x + self.mlp(x)"
thrown_away = THINK, lines("y = self.norm2(x)", "y = F.gelu(x)", "return x + self.mlp(y)")
normed_twice = LOOK, "x = x + self.attn(self.norm1(self.norm1(x)))"
look_alone = LOOK, "x = self.attn(self.norm1(x))"
think_alone = THINK, "return self.mlp(self.norm2(x))"
added = lines("mixed = self.attn(self.norm1(x))", "return mixed + self.mlp(self.norm2(x))")
summed_branches = f"{lines(LOOK, THINK)}", added
for residual in ([look_alone], [think_alone], [look_alone, think_alone], [summed_branches]):
    sick("residual missing", *residual)
for own in (look_alone, think_alone):
    sick("residual missing", own, kind="Own")


def in_lists(look: str = "x + look(norm1(x))", think: str = "x + think(norm2(x))") -> list:
    """Give the edits that make each block a list of its parts, and have the model add these."""
    parts = "part.norm1, part.attn, part.norm2, part.mlp"
    lists = f"nn.ModuleList(nn.ModuleList([{parts}]) for part in self.blocks)"
    body = f"for norm1, look, norm2, think in self.blocks:\n            x = {look}\n"
    loop = "for block in self.blocks:\n            x = block(x)\n"
    return [(END, lines(f"self.blocks = {lists}", END)), (loop, f"{body}            x = {think}\n")]


sick("residual missing", *in_lists(look="look(norm1(x))"))
no_norm = ANSWER, "self.head(x[:, 0])"
sick("final norm missing", *in_lists(), encode("self.norm(x)"), no_norm)
sick("idle block", *in_lists(think="x + 0 * think(norm2(x))"))
sick("norm missing", first_raw, (NORMS, NORMS.replace("nn.LayerNorm(WIDTH),", "nn.Identity(),")))
sick("norm missing", second_raw, (NORMS, f"{NORMS[:-19]} nn.Identity()"))
sick("norm missing", second_raw, kind="Own")
sick("norm unused", thrown_away)
sick("norm unused", thrown_away, (NORMS, f"{NORMS[:-1]}, 1e-5, False)"))
sick("norm unused", thrown_away, kind="Own")
sick("norm twice", normed_twice)
widened = "nn.Linear(WIDTH, 2 * WIDTH),"
sick("norm twice", (widened, f"nn.LayerNorm(WIDTH), {widened}"))
sick("norm twice", normed_twice, kind="Own")
sick("final norm missing", end("self.norm = nn.Identity()"))
sick("final norm missing", encode("self.norm(x)"), (ANSWER, "self.head(x[:, 0])"))
sick("final norm missing", end("self.norm = nn.Identity()"), kind="Own")
sick("shared block", end("self.blocks = nn.ModuleList([Block()] * 3)"))
sick("shared block", end("self.blocks[1].attn = self.blocks[0].attn"))
in_a_loop = "for block in self.blocks:\n            x = block(x)"
for loop in ("for block in [*self.blocks] * 3:\n            x = block(x)",
             "x = self.blocks[0](self.blocks[0](x))"):  # fmt: skip
    sick("shared block", end("self.blocks = nn.ModuleList([self.blocks[0]])"), (in_a_loop, loop))
sick("activation missing", ("nn.GELU()", "nn.Dropout(0.1)"))
last = "nn.Linear(2 * WIDTH, WIDTH)\n", "nn.Linear(2 * WIDTH, WIDTH), nn.GELU()\n"
sick("activation last", last)
sick("tokens read", (ANSWER, ANSWER.replace("0]", "1]")))
sick("tokens read", (ANSWER, ANSWER.replace("[:, 0]", "[:, 2:].mean(1)")))
sick("tokens read", (ANSWER, ANSWER.replace("0]", "1]")), kind="Two")
sick("tokens read", (ANSWER, ANSWER.replace("0]", "-1]")), kind="OneBlock")

# In training, and elsewhere ----------------------------------------------------------------------

# Batch norm over tokens, of which training leaves out some.
masked = encode("self.over(x[:, :12] if self.training else x)")
sick("training fails", end("self.over = nn.BatchNorm1d(17)"), masked)
RETURNED = """x = self.norm(x)
        q, k, v = self.last.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        weights = F.dropout((q @ k.mT / 12**0.5).softmax(-1), 0.2, self.training)
        x = x + self.last.proj((weights @ v).transpose(1, 2).flatten(2))
        return self.head(x[:, 0]), weights"""
sick("returned attention", end("self.last = Attention()"), (f"return {ANSWER}", RETURNED))
sick("device fixed", encode("x + torch.zeros(17, WIDTH)"))
sines = "self.table = torch.arange(17.0 * WIDTH).view(17, WIDTH).sin()"
sick("device fixed", end(sines), encode("x + self.table"))
for_cuda = lines('with torch.autocast("cuda", enabled=False):', f"    x = {ENCODE}")
sick("device fixed", (f"x = {ENCODE}", for_cuda))
summed = lines("x = self.norm(x)[:, 0]", "y = x.relu()", "y += x", "return self.head(y)")
sick("backward fails", (f"return {ANSWER}", summed))

# For the tests: two that others build upon, and one in which no order counts for want of blocks,
# however large the positions are.
Cropped, OnePosition = edited(cropped), edited(one_position)
IdleAndLoud = edited(loud, idle, mean)
