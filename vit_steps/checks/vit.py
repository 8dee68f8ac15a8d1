"""Exercises of lesson 06."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ..inputs import mlp_width
from ..patches import grid_size
from ..vit import ViT, ViTConfig, pool_tokens
from .engine import Check, Mistake, Trial

TINY = ViTConfig(
    image_size=8, patch_size=4, num_classes=5, embed_dim=12, depth=2, num_heads=3, mlp_ratio=3.0
)
GREY = replace(TINY, in_channels=1, qkv_bias=False)
WIDE = replace(TINY, image_size=(8, 20), depth=3)


def exact(what: str, config: ViTConfig) -> Trial:
    """A count must be right to the last unit; the engine's tolerance would forgive some."""

    def run(answer):
        count = answer(config)
        if isinstance(count, Tensor) and count.numel() == 1:
            count = count.item()
        if isinstance(count, bool) or not isinstance(count, (int, float)):
            return count
        return f"{count:,.0f}"

    return Trial(what, run)


SIZES = [
    exact("a tiny ViT (8×8 pixels, patch 4, D = 12, 2 blocks)", TINY),
    exact("the same for grey images, without qkv bias", GREY),
    exact("the same for images of 8×20 pixels, with 3 blocks", WIDE),
    exact("B/16", ViTConfig.preset("B/16")),
]


def square_tokens(config: ViTConfig) -> int:
    """The number of tokens, as one counts them who takes image_size for one number."""
    size: Any = config.image_size
    return (size // config.patch_size) ** 2 + 1


def parameters(config: ViTConfig, **changed: int) -> int:
    """All parameters of a ViT, part by part; `changed` replaces parts."""
    c, d, p = config, config.embed_dim, config.patch_size
    rows, cols = grid_size(c.image_size, p)
    hidden = mlp_width(d, c.mlp_ratio)
    block = dict(
        norms=4 * d,
        weights=4 * d * d + 2 * d * hidden,
        qkv_bias=3 * d * c.qkv_bias,
        biases=d + hidden + d,
    )
    whole = dict(
        patch=p * p * c.in_channels * d + d,
        cls=d,
        positions=(rows * cols + 1) * d,
        blocks=c.depth * sum((block | {k: v for k, v in changed.items() if k in block}).values()),
        norm=2 * d,
        head=d * c.num_classes + c.num_classes,
    )
    return sum((whole | {k: v for k, v in changed.items() if k in whole}).values())


count_parameters = Check(
    reference=parameters,
    trials=SIZES,
    mistakes=[
        Mistake(
            "cls and positions are both missing: they are bare parameters, no layer's weight; "
            "this is how a sum over layers goes wrong",
            lambda c: parameters(c, cls=0, positions=0),
        ),
        Mistake(
            "you are one token short (D too few): cls itself counts D, and there is a position "
            "for every patch and one for cls",
            lambda c: parameters(c, cls=0),
        ),
        Mistake(
            "the final norm is missing: 2·D, after the last block",
            lambda c: parameters(c, norm=0),
        ),
        Mistake(
            "the LayerNorms inside the blocks are missing: two a block, each with 2·D parameters",
            lambda c: parameters(c, norms=0),
        ),
        Mistake(
            "the biases inside the blocks are missing: each of the four Linears may have one",
            lambda c: parameters(c, qkv_bias=0, biases=0),
        ),
        Mistake(
            "the head's bias is missing: one number a class",
            lambda c: parameters(c, head=c.embed_dim * c.num_classes),
        ),
        Mistake(
            "one block is counted; there are `depth`",
            lambda c: parameters(replace(c, depth=1)),
        ),
        Mistake(
            "qkv_bias=False is ignored: then q, k and v add no bias, 3·D fewer a block",
            lambda c: parameters(c, qkv_bias=3 * c.embed_dim),
        ),
        Mistake(
            "mlp_ratio is ignored: the MLP's hidden width is mlp_ratio · D, and not always 4·D",
            lambda c: parameters(replace(c, mlp_ratio=4.0)),
        ),
        Mistake(
            "the number of patches is wrong where image_size is (height, width): "
            "vit_steps.grid_size reads both forms and gives (rows, columns)",
            lambda c: parameters(c, positions=square_tokens(c) * c.embed_dim),
        ),
    ],
)


def work(
    config: ViTConfig,
    products: int = 2,
    cls: int = 1,
    every_token: bool = True,
    heads: int = 1,
    tokens: int | None = None,
    head_tokens: int = 1,
) -> int:
    """The multiply-adds of one forward pass; the options make the known mistakes."""
    c, d = config, config.embed_dim
    rows, cols = grid_size(c.image_size, c.patch_size)
    n = tokens or rows * cols + cls
    patches = (n - cls) * c.patch_size**2 * c.in_channels * d
    linears = 4 * d * d + 2 * d * mlp_width(d, c.mlp_ratio)
    block = linears * (n if every_token else 1) + products * n * n * d * heads
    return patches + c.depth * block + head_tokens * d * c.num_classes


multiply_adds = Check(
    reference=work,
    trials=SIZES,
    mistakes=[
        Mistake(
            "attention is missing: q·kᵀ and weights·v have no parameters, yet each costs N·N·D "
            "a block",
            lambda c: work(c, products=0),
        ),
        Mistake(
            "attention has two products: q·kᵀ, and then weights·v",
            lambda c: work(c, products=1),
        ),
        Mistake(
            "the blocks' Linears run on every token: multiply by N; this is torchinfo's mistake",
            lambda c: work(c, every_token=False, products=0),
        ),
        Mistake(
            "the blocks' Linears run on every token: multiply by N",
            lambda c: work(c, every_token=False),
        ),
        Mistake(
            "the blocks work on N tokens, cls included; you count the patches only",
            lambda c: work(c, cls=0),
        ),
        Mistake(
            "the heads share the width: h heads of width d = D / h cost N·N·D together, not h "
            "times that",
            lambda c: work(c, heads=c.num_heads),
        ),
        Mistake(
            "the head reads one pooled token, not all N",
            lambda c: work(c, head_tokens=square_or_not(c)),
        ),
        Mistake(
            "these are FLOPs, a multiplication and an addition each; count a multiply-add once",
            lambda c: 2 * work(c),
        ),
        Mistake(
            "the number of patches is wrong where image_size is (height, width): "
            "vit_steps.grid_size reads both forms and gives (rows, columns)",
            lambda c: work(c, tokens=square_tokens(c)),
        ),
    ],
)


def square_or_not(config: ViTConfig) -> int:
    rows, cols = grid_size(config.image_size, config.patch_size)
    return rows * cols + 1


def pair(what: str, config: ViTConfig = TINY, change: str = "") -> Trial:
    """Two ViTs of equal weights, the second of another config or with one parameter changed."""

    def run(answer):
        first = ViT(replace(TINY, depth=3)).eval()
        second = ViT(replace(config, depth=3)).eval()
        second.load_state_dict(first.state_dict())
        if change:
            parameter = second.get_parameter(change)
            parameter.data = parameter.data + torch.randn_like(parameter)
        with torch.no_grad():
            return answer(first, second, torch.randn(2, 3, 8, 8))

    return Trial(what, run)


def stages(model: ViT, images: Tensor) -> dict[str, Tensor]:
    """What each stage of a ViT gives, in the order in which the images pass."""
    x = model.patch_embed(images)
    given = {"patch_embed": x}
    given["tokens"] = x = model.tokens(x)
    for i, block in enumerate(model.blocks):
        given[f"blocks.{i}"] = x = block(x)
    given["norm"] = x = model.norm(x)
    given["head"] = model.head(pool_tokens(x, model.config.pool))
    return given


def parted(a: ViT, b: ViT, images: Tensor) -> list[str]:
    """The stages after which two ViTs differ."""
    first, second = stages(a, images), stages(b, images)
    return [name for name in first if not torch.allclose(first[name], second[name], atol=1e-6)]


def first_parted(a: ViT, b: ViT, images: Tensor) -> str | None:
    return next(iter(parted(a, b, images)), None)


def other_weights(a: nn.Module, b: nn.Module, images: Tensor) -> str | None:
    """The first stage whose weights differ: a wrong answer."""
    theirs = b.state_dict()
    for name, weight in a.state_dict().items():
        if not torch.equal(weight, theirs[name]):
            return ".".join(name.split(".")[: 2 if name.startswith("blocks") else 1])
    return None


def renamed(change):
    """A wrong answer: the right one, put through `change`."""

    def wrong(a, b, images):
        name = first_parted(a, b, images)
        return name and change(name)

    return wrong


def next_block(name: str) -> str:
    stage, _, number = name.partition(".")
    return f"{stage}.{int(number) + 1}" if number else stage


where_they_part = Check(
    reference=first_parted,
    trials=[
        pair("two equal ViTs"),
        pair("two ViTs whose fc1 in block 1 differs", change="blocks.1.mlp.fc1.weight"),
        pair("two ViTs whose cls token differs", change="tokens.cls_token"),
        pair("two ViTs whose patch projection differs", change="patch_embed.proj.weight"),
        pair("two ViTs of equal weights with 3 and 4 heads", replace(TINY, num_heads=4)),
        pair("two ViTs of equal weights, one with mean pooling", replace(TINY, pool="mean")),
    ],
    mistakes=[
        Mistake(
            "you compare the weights: 3 and 4 heads, or cls and mean pooling, have equal weights "
            "and still give other numbers; compare what each stage gives",
            other_weights,
        ),
        Mistake(
            "this is the last stage where they differ; once apart, they stay apart: stop at the "
            "first",
            lambda a, b, images: next(reversed(parted(a, b, images)), None),
        ),
        Mistake(
            "the blocks are numbered from 0, as in model.blocks[0]",
            renamed(next_block),
        ),
        Mistake(
            "it must say which block: blocks.0, blocks.1, …",
            renamed(lambda name: name.partition(".")[0]),
        ),
        Mistake(
            "the head is never compared, or is given all tokens: two ViTs that pool differently "
            "part only there; give it what pool_tokens gives, or compare the logits",
            renamed(lambda name: None if name == "head" else name),
        ),
    ],
)
