"""Lesson 06: the whole model, its size and its work, a ViT without cls, where two models part."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from vit_steps import vit as package
from vit_steps.inputs import mlp_width
from vit_steps.patches import grid_size
from vit_steps.vit import ViTConfig

from .compare import Parts, Verdict
from .engine import Check
from .exercise import Exercise
from .trials import Trial, fill, module, then, untouched
from .trials import parameters as shapes

# No two of their sizes are alike, so that no wrong answer agrees by chance.
SMALL = ViTConfig(
    image_size=15, patch_size=5, num_classes=7, embed_dim=24, depth=2, num_heads=4, mlp_ratio=1.5
)
OTHER = ViTConfig(
    image_size=8,
    patch_size=4,
    in_channels=1,
    num_classes=11,
    embed_dim=12,
    depth=2,
    num_heads=6,
    mlp_ratio=3.0,
)


def pictures(config: ViTConfig, count: int, seed: int = 3) -> Tensor:
    """Random images of a config's size."""
    size: Any = config.image_size
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, config.in_channels, size, size, generator=generator)


# What an error of torch or Python says, and what it means here.
CALLED_LIST = (
    "`self.blocks` is a list, and a list cannot be called; go through it, "
    "`for block in self.blocks:`"
)
NOT_ASKED = (
    "a block gives x alone unless you ask: `block(x, return_attention=True)` gives x and its "
    "weights"
)
BY_PLACE = "a block's second place is its mask; write `block(x, return_attention=True)`, by name"
KINDS = "(NotImplemented|Type|Value)Error: .*"
SLIPS = {
    f"{KINDS}(ModuleList|_forward_unimplemented)": CALLED_LIST,
    rf"{KINDS}values to unpack \(expected 2": NOT_ASKED,
    f"{KINDS}mask": BY_PLACE,
}


ORDER = ("patch_embed", "tokens", "blocks", "norm", "head")


def well_made(answer: Callable) -> Any:
    """Whether the parts are made in the package's order, and start as the package's do."""
    made = answer(SMALL)
    order = [name for name, _ in made.named_children() if name in ORDER]
    if order != list(ORDER):
        return Verdict(
            f"its parts are made in the order {', '.join(order)}; make them in the order "
            f"{', '.join(ORDER)}, so that a seed gives the same weights as the package's ViT"
        )
    for name, part in made.named_modules():
        if not isinstance(part, nn.Linear):
            continue
        small = 0.01 < part.weight.std() < 0.03
        if not small or (part.bias is not None and part.bias.any()):
            return Verdict(
                f"`{name}` does not start as init_weights says (std 0.02, bias 0); "
                "`self.apply(init_weights)` belongs at the end of __init__, after all parts"
            )
    eps = getattr(made.norm, "eps", None)
    if eps != 1e-6:
        return Verdict(f"`norm` has eps {eps}; ViTs are trained with 1e-6: LayerNorm(…, eps=1e-6)")
    return Verdict("well made")


def logits(what: str, config: ViTConfig) -> Trial:
    """A trial of a ViT of this size: the names and shapes of its parameters, and its logits.

    It is quicker than `module`: some hundred pairs of mistakes are held against the first trial.
    """

    def run(answer: Callable) -> Any:
        made = answer(config)
        if not isinstance(made, nn.Module):
            return made
        fill(made.eval())
        try:
            with torch.no_grad():
                result = untouched(made, pictures(config, 3))
        except Exception as error:  # wrong names, if there are any, are told first
            result = error
        return Parts({name: p.shape for name, p in made.named_parameters()}, result)

    return Trial(what, run)


ViT = Exercise(
    answer="""
class ViT(nn.Module):
    def __init__(self, config: ViTConfig):
        super().__init__()
        self.config = config
        D, side = config.embed_dim, config.image_size // config.patch_size
        self.patch_embed = PatchEmbedding(
            config.image_size, config.patch_size, config.in_channels, D
        )
        self.tokens = TokenEmbedding(side * side, D)
        self.blocks = nn.ModuleList()
        for _ in range(config.depth):
            self.blocks.append(EncoderBlock(D, config.num_heads, config.mlp_ratio))
        self.norm = nn.LayerNorm(D, eps=1e-6)
        self.head = nn.Linear(D, config.num_classes)
        self.apply(init_weights)

    def forward(self, images, return_attention=False):
        x = self.patch_embed(images)  # (B, n, D)
        x = self.tokens(x)  # (B, N, D)
        attention = []
        for block in self.blocks:
            x, weights = block(x, return_attention=True)
            attention.append(weights)
        logits = self.head(self.norm(x[:, 0]))  # (B, classes)
        return (logits, attention) if return_attention else logits
""",
    uses={"ViTConfig": ViTConfig, "init_weights": package.init_weights},
    slips=SLIPS,
    trials=[
        logits("3 grey images of 8×8 pixels, patch 4, D = 12, 1 block", replace(OTHER, depth=1)),
        module(
            "5 images of 15×15 pixels, patch 5, D = 24, with return_attention=True",
            [SMALL],
            pictures(SMALL, 5),
            return_attention=True,
        ),
        Trial("a new ViT", well_made),
    ],
    wrong=f"""
the final norm is never used: the head reads `self.norm` of the cls token
    head(self.norm( => head((
the head answers for every token; give it the cls token alone, `x[:, 0]`
    x[:, 0] => x
you keep an axis of length 1: `x[:, :1]` is (B, 1, D), `x[:, 0]` is (B, D)
    x[:, 0] => x[:, :1]
you read the mean of all tokens; this ViT's head reads the cls token, `x[:, 0]`
    x[:, 0] => x.mean(dim=1)
    self.norm(x[:, 0]) => self.norm(x).mean(dim=1)
you read the mean of the patches; this ViT's head reads the cls token, `x[:, 0]`
    x[:, 0] => x[:, 1:].mean(dim=1)
    self.norm(x[:, 0]) => self.norm(x)[:, 1:].mean(dim=1)
`self.tokens.cls_token` is cls as it was before any block, the same for every image; what the blocks
made of it is `x[:, 0]`
    x[:, 0] => self.tokens.cls_token
    x[:, 0] => self.tokens.cls_token[:, 0]
`x[0]` is the first image; the cls token of every image is `x[:, 0]`
    x[:, 0] => x[0]
you read the last token; cls is the first, `x[:, 0]`
    x[:, 0] => x[:, -1]
you read token 1, the first patch; cls is token 0, `x[:, 0]`
    x[:, 0] => x[:, 1]
there is a softmax at the end; the head gives logits, the loss brings its own softmax
    # (B, classes) => # (B, classes) ⏎ logits = logits.softmax(dim=-1)
argmax gives the number of one class; give the logits, a number for each class
    # (B, classes) => # (B, classes) ⏎ logits = logits.argmax(dim=-1)
`tokens` is never called: it puts cls in front and adds the positions, before the blocks
    x = self.tokens(x) =>
`tokens` is to be called: it puts cls in front too, so token 0 is a patch in yours
    self.tokens(x) => x + self.tokens.pos_embed[:, 1:]
a block gets the images; it reads tokens, `x`, which the pieces before it made
    block(x, => block(images,
every block gets the same tokens: hand on what the block before gave, `x, weights = block(x, …)`
    attention = [] => attention = [] ⏎ start = x ;; block(x, => block(start,
`x` never changes: you keep each block's weights and throw its tokens away
    x, weights = block => _, weights = block
only the first block runs; is the `return` inside the loop?
    in self.blocks: => in self.blocks[:1]:
the blocks run from the last to the first; go through `self.blocks` as it stands
    in self.blocks: => in reversed(self.blocks):
{CALLED_LIST}
    block(x, return => self.blocks(x, return
{NOT_ASKED}
    block(x, return_attention=True) => block(x)
{BY_PLACE}
    block(x, return_attention=True) => block(x, True)
each block's input is added twice: a block adds it already, so `x = block(x)`
    x, weights = block => y, weights = block ;; (weights) => (weights) ⏎ x = x + y
`self.norm` runs after every block; it belongs after the last block, once
    (weights) => (weights) ⏎ x = self.norm(x)
    (weights) => (weights) ⏎ x = self.norm(x) ;; head(self.norm( => head((
`self.norm` runs before every block; a block has norms of its own, and this one belongs after the
last block, once
    block(x, => block(self.norm(x),
    block(x, => block(self.norm(x), ;; head(self.norm( => head((
`self.norm` runs before the blocks; it belongs after the last block
    attention = [] => attention = [] ⏎ x = self.norm(x)
    attention = [] => attention = [] ⏎ x = self.norm(x) ;; head(self.norm( => head((
you give the logits and the weights, always; give the logits alone unless they are asked for
    if return_attention else logits =>
the weights are never given: with return_attention=True give (logits, attention)
    (logits, attention) if return_attention else logits => logits
`return a, b if c else d` gives a pair in both cases: put brackets round the pair, `(logits,
attention) if …`
    (logits, attention) if => logits, attention if
the attention is one tensor; give a list, one tensor of weights for each block
    (logits, attention) if => (logits, torch.stack(attention)) if
the attention is the last block's weights; give a list with those of every block
    (logits, attention) if => (logits, weights) if
    attention.append(weights) => attention = [weights]
the weights are averaged over the heads; give those of each head, (B, h, N, N)
    (weights) => (weights.mean(dim=1))
the two results are the wrong way round: the logits first, then the attention
    (logits, attention) if => (attention, logits) if
your list holds each block's tokens, not its weights
    (weights) => (x)
the list of attention grows with every call, since the model keeps it; make a new one in forward,
`attention = []`
    self.config = config => self.kept = list() ;; attention = [] => attention = self.kept
the head is turned round: a Linear names its inputs first, D, then its outputs
    (D, config.num_classes) => (config.num_classes, D)
768 and 1000 are B/16's sizes; read yours from config
    LayerNorm(D => LayerNorm(768 ;; (D, config.num_classes) => (768, 1000)
the head gives 1000 logits; it gives one a class, `config.num_classes`
    (D, config.num_classes) => (D, 1000)
the head has no bias; leave nn.Linear's own in
    num_classes) => num_classes, bias=False)
the norm is made for the classes; it norms tokens, of D numbers
    LayerNorm(D => LayerNorm(config.num_classes
the norm is made for all tokens at once; it norms each alone, over its D numbers
    LayerNorm(D => LayerNorm((side * side + 1, D) ;; self.norm(x[:, 0]) => self.norm(x)[:, 0]
the blocks are in a plain list, which torch does not look into: use nn.ModuleList
    nn.ModuleList() => []
it is one block, many times: make a new EncoderBlock for each of the `depth` places
    append(EncoderBlock => append(self.blocks[0] if self.blocks else EncoderBlock
`norm` has PyTorch's eps; ViTs are trained with another: LayerNorm(D, eps=1e-6)
    , eps=1e-6 =>
`head` does not start as init_weights says: `self.apply(init_weights)` belongs at the end of
__init__, after all parts
    self.apply(init_weights) => ;; self.head = => self.apply(init_weights) ⏎ self.head =
the weights do not start as init_weights says: `self.apply(init_weights)` is missing at the end of
__init__
    self.apply(init_weights) =>
""",
)


# Size and work -----------------------------------------------------------------------------------

# N + 1 is no small multiple of the depth, nor the hidden width of D: what is forgotten once must
# not be taken for what is forgotten in each block, nor one bias for another.
TINY = ViTConfig(
    image_size=12, patch_size=4, num_classes=5, embed_dim=12, depth=3, num_heads=3, mlp_ratio=2.5
)
GREY = replace(TINY, in_channels=1)
WIDE = replace(TINY, image_size=(12, 20), depth=4)
ODD = replace(TINY, embed_dim=56, num_heads=7, mlp_ratio=61 / 56)


def counted(what: str, config: ViTConfig, place: int) -> Trial:
    """One of the two counts, to the last unit; the engine's tolerance would forgive some."""
    name = ("parameters", "multiply-adds")[place]

    def run(answer: Callable) -> Any:
        result = answer(config)
        if result is None or result is ...:
            return result
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            return Verdict("give two whole numbers, (parameters, multiply_adds)")
        number = result[place]
        if isinstance(number, Tensor) and number.numel() == 1:
            number = number.item()
        if number is ...:
            return number
        if isinstance(number, bool) or not isinstance(number, int):
            return Verdict(
                f"the {name} are {number!r}, no whole number; is the hidden width "
                "round(mlp_ratio * D)?"
            )
        return f"{number:,}"

    return Trial(f"the {name} of {what}", run)


SIZES = [
    ("a tiny ViT (12×12 pixels, patch 4, D = 12, 3 blocks)", TINY),
    ("the same for grey images", GREY),
    ("the same for images of 12×20 pixels, with 4 blocks", WIDE),
    ("the same with D = 56 and mlp_ratio 61/56", ODD),
    ("B/16", ViTConfig.preset("B/16")),
]


def square_tokens(config: ViTConfig) -> int:
    """The number of tokens, as one counts them who takes image_size for one number."""
    size: Any = config.image_size
    return (size // config.patch_size) ** 2 + 1


def all_tokens(config: ViTConfig) -> int:
    rows, cols = grid_size(config.image_size, config.patch_size)
    return rows * cols + 1


def parameters(config: ViTConfig, hidden: int | None = None, **changed: int) -> int:
    """All parameters of a ViT, part by part; `changed` replaces parts."""
    c, d, p = config, config.embed_dim, config.patch_size
    hidden = hidden or mlp_width(d, c.mlp_ratio)
    block = dict(norms=4 * d, weights=4 * d * d + 2 * d * hidden, biases=5 * d + hidden)
    whole = dict(
        patch=p * p * c.in_channels * d + d,
        cls=d,
        positions=all_tokens(c) * d,
        blocks=c.depth * sum((block | {k: v for k, v in changed.items() if k in block}).values()),
        norm=2 * d,
        head=d * c.num_classes + c.num_classes,
    )
    return sum((whole | {k: v for k, v in changed.items() if k in whole}).values())


def work(
    config: ViTConfig,
    products: int = 2,
    squares: int = 4,
    cls: int = 1,
    every_token: bool = True,
    heads: int = 1,
    tokens: int | None = None,
    patches: int | None = None,
    head_tokens: int = 1,
    hidden: int | None = None,
) -> int:
    """The multiply-adds of one forward pass; the options make the known mistakes."""
    c, d = config, config.embed_dim
    n = tokens or all_tokens(c) - 1 + cls
    linears = squares * d * d + 2 * d * (hidden or mlp_width(d, c.mlp_ratio))
    block = linears * (n if every_token else 1) + products * n * n * d * heads
    first = (patches or n - cls) * c.patch_size**2 * c.in_channels * d
    return first + c.depth * block + head_tokens * d * c.num_classes


def mistaken(size: Callable | None = None, cost: Callable | None = None) -> Callable:
    """A wrong answer: the size, or the work, or both, counted otherwise."""
    return lambda config: ((size or parameters)(config), (cost or work)(config))


def sized(**changed: int) -> Callable:
    """A wrong answer: the size with these parts."""
    return mistaken(lambda c: parameters(c, **changed))


def worked(**options: Any) -> Callable:
    """A wrong answer: the work with these options."""
    return mistaken(cost=lambda c: work(c, **options))


def wider(width: Callable) -> Callable:
    """A wrong answer: both counts with another width of the MLP."""
    return mistaken(lambda c: parameters(c, hidden=width(c)), lambda c: work(c, hidden=width(c)))


size_and_work = Check(
    reference=mistaken(),
    trials=[counted(what, config, place) for place in (0, 1) for what, config in SIZES],
    mistakes={
        "the two counts are the wrong way round: the parameters first": lambda c: (
            work(c),
            parameters(c),
        ),
        "cls and positions are both missing: they are bare parameters, no layer's weight; this is "
        "how a sum over layers goes wrong": sized(cls=0, positions=0),
        "your parameters are D too few. Is the patch embedding's bias there, cls itself, and a "
        "position for every patch and one for cls?": sized(cls=0),
        "2·D parameters are missing: the final norm, after the last block, or cls and its "
        "position": sized(norm=0),
        "4·D parameters a block are missing: the two LayerNorms inside the blocks, 2·D each, or "
        "the biases of qkv and of the projection": sized(norms=0),
        "a LayerNorm has 2·D parameters, a scale and a shift for each place; you count D": mistaken(
            lambda c: parameters(c, norms=2 * c.embed_dim, norm=c.embed_dim)
        ),
        "the biases inside the blocks are missing: each of the four Linears has one": sized(
            biases=0
        ),
        "qkv's bias is missing: 3·D parameters a block": mistaken(
            lambda c: parameters(c, biases=2 * c.embed_dim + mlp_width(c.embed_dim, c.mlp_ratio))
        ),
        "the head's bias is missing: one number a class": mistaken(
            lambda c: parameters(c, head=c.embed_dim * c.num_classes)
        ),
        "the parameters of one block are counted; there are `depth`": mistaken(
            lambda c: parameters(replace(c, depth=1))
        ),
        "mlp_ratio is ignored: the MLP's hidden width is round(mlp_ratio * D), "
        "and not always 4·D": wider(lambda c: 4 * c.embed_dim),
        "int() cuts 60.99999 to 60; the hidden width is round(mlp_ratio * D)": wider(
            lambda c: int(c.mlp_ratio * c.embed_dim)
        ),
        "in_channels is ignored: a patch has P·P·in_channels numbers, "
        "and not always three channels": lambda c: mistaken()(replace(c, in_channels=3)),
        "the number of patches is wrong where image_size is (height, width): vit_steps.grid_size "
        "reads both forms and gives (rows, columns)": mistaken(
            lambda c: parameters(c, positions=square_tokens(c) * c.embed_dim),
            lambda c: work(c, tokens=square_tokens(c)),
        ),
        "attention is missing from the work: q·kᵀ and weights·v have no parameters, yet each costs "
        "N·N·D a block": worked(products=0),
        "attention has two products: q·kᵀ, and then weights·v": worked(products=1),
        "the blocks' Linears run on every token: multiply by N. And attention is missing: two "
        "products of N·N·D a block": worked(every_token=False, products=0),
        "the blocks' Linears run on every token: multiply by N": worked(every_token=False),
        "the blocks work on N tokens, cls included; you count the patches only": worked(cls=0),
        "the patch embedding runs on the patches alone, N − 1 of them; cls is no patch": mistaken(
            cost=lambda c: work(c, patches=all_tokens(c))
        ),
        "the heads share the width: h heads of width d = D / h cost N·N·D together, not h times "
        "that": mistaken(cost=lambda c: work(c, heads=c.num_heads)),
        "the output projection is missing from the work: D·D for each token, in each block": worked(
            squares=3
        ),
        "the head reads one token, not all N": mistaken(
            cost=lambda c: work(c, head_tokens=all_tokens(c))
        ),
        "the head is missing from the work: D times the classes, once": worked(head_tokens=0),
        "these are FLOPs, a multiplication and an addition each; "
        "count a multiply-add once": mistaken(cost=lambda c: 2 * work(c)),
    },
)


# A ViT without cls -------------------------------------------------------------------------------


def patches_of(config: ViTConfig) -> int:
    return all_tokens(config) - 1


def bare_patches(model: Any, images: Tensor) -> Tensor:
    return model.patch_embed(images)


def with_positions(model: Any, images: Tensor) -> Tensor:
    x = model.patch_embed(images)
    return x + model.pos_embed.view(1, -1, x.shape[-1])[:, -x.shape[1] :]


def positions(c: ViTConfig) -> Tensor:
    return torch.zeros(1, patches_of(c), c.embed_dim)


def mean_vit(
    pool: Callable = lambda x: x.mean(dim=1),
    embed: Callable = with_positions,
    run: Callable = lambda model, x: model.blocks(x),
    read: Callable | None = None,
    made: Callable = lambda c: nn.Parameter(positions(c)),
) -> type[nn.Module]:
    """A ViT without a cls token, whose head reads the mean of the tokens; the options make the
    known mistakes.

    Args:
        pool: makes what the head reads of the normalised tokens.
        read: makes the logits of the model and the blocks' tokens, in place of that.
        made: makes `pos_embed` of the config.
    """

    class MeanViT(nn.Module):
        def __init__(self, config: ViTConfig):
            super().__init__()
            whole = package.ViT(config)
            self.patch_embed, self.pos_embed = whole.patch_embed, made(config)
            self.blocks, self.norm, self.head = whole.blocks, whole.norm, whole.head

        def forward(self, images: Tensor) -> Tensor:
            x = run(self, embed(self, images))
            return read(self, x) if read else self.head(pool(self.norm(x)))

    return MeanViT


ViTWithoutCls = Check(
    reference=mean_vit(),
    slips=SLIPS,
    trials=[
        shapes("its parameters, for images of 15×15 pixels, patch 5, D = 24, 2 blocks", SMALL),
        shapes("its parameters, for grey images of 8×8 pixels, patch 4, D = 12, 2 blocks", OTHER),
        module("5 images of 15×15 pixels, patch 5, D = 24", [SMALL], pictures(SMALL, 5)),
        module("3 grey images of 8×8 pixels, patch 4, D = 12", [OTHER], pictures(OTHER, 3)),
    ],
    mistakes={
        "the cls token is still there, inside `tokens`: "
        "this ViT has `pos_embed` in its place": lambda c: package.ViT(replace(c, pool="mean")),
        "without cls there are n positions, one a patch; yours has one more": mean_vit(
            made=lambda c: nn.Parameter(torch.zeros(1, all_tokens(c), c.embed_dim))
        ),
        "`pos_embed` needs the batch axis: its shape is (1, n, D)": mean_vit(
            made=lambda c: nn.Parameter(positions(c)[0])
        ),
        "the positions are not learned: make `pos_embed` an nn.Parameter": mean_vit(made=positions),
        "the positions are not added to the patches": mean_vit(embed=bare_patches),
        "the positions are added after the blocks; add them before the blocks": mean_vit(
            embed=bare_patches, run=lambda m, x: m.blocks(x) + m.pos_embed
        ),
        "you take the mean first and norm that; norm each token, then take the mean": mean_vit(
            read=lambda m, x: m.head(m.norm(x.mean(dim=1)))
        ),
        "the norm is missing: norm each token, then take the mean": mean_vit(
            read=lambda m, x: m.head(x.mean(dim=1))
        ),
        "`[:, 1:]` leaves the first patch out: there is no cls token "
        "to leave out any more": mean_vit(lambda x: x[:, 1:].mean(dim=1)),
        "token 0 is the first patch now; read the mean of all tokens": mean_vit(lambda x: x[:, 0]),
        "you read the sum of the tokens; read their mean": mean_vit(lambda x: x.sum(dim=1)),
        "you read the largest number of each column; read the mean": mean_vit(
            lambda x: x.amax(dim=1)
        ),
        "you average over the images; the tokens are axis 1": mean_vit(lambda x: x.mean(dim=0)),
        "the head answers for every token; take the mean over the tokens, axis 1, to get one row "
        "of logits an image": mean_vit(lambda x: x),
        "there is a softmax at the end; give the logits": mean_vit(
            read=lambda m, x: m.head(m.norm(x).mean(dim=1)).softmax(dim=-1)
        ),
        "every block gets the same tokens: hand on what the block before gave, "
        "`x = block(x)`": mean_vit(run=lambda m, x: [block(x) for block in m.blocks][-1]),
        CALLED_LIST: mean_vit(run=lambda m, x: nn.ModuleList(m.blocks)(x)),
    },
)


# Where two models part ---------------------------------------------------------------------------


@cache
def two(config: ViTConfig, change: Callable[[nn.Module], None] | None) -> Any:
    """Two ViTs of equal weights, the second of another config, or changed; and images."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        first, second = (package.ViT(replace(c, image_size=8)) for c in (TINY, config))
        fill(first)
        fill(second)
        if change:
            change(second)
        return first.eval(), second.eval(), torch.randn(2, 3, 8, 8)


def pair(
    what: str, config: ViTConfig = TINY, change: Callable | None = None, why: str = ""
) -> Trial:
    """A trial of two models.

    Args:
        config, change: what the second has otherwise.
        why: what to say besides the wrong name.
    """

    def run(answer: Callable) -> Any:
        with torch.no_grad():
            result = answer(*two(config, change))
        if result is None:
            return Verdict(f"it gives None{why}")
        return Verdict(f"it gives {result!r}{why}") if isinstance(result, str) else result

    return Trial(what, run)


ONE = (0, 3, 7)
COUNTS = "; every difference over 1e-5 counts, even of one number"


def shaken(name: str) -> Callable:
    def change(model: nn.Module) -> None:
        p = model.get_parameter(name)
        p.add_(torch.randn_like(p))

    return change


def larger(by: float, place: Any = ...) -> Callable:
    """A change of the positions, or of the one at that place."""

    def change(model: Any) -> None:
        model.tokens.pos_embed[place] += by

    return change


def stages(model: Any, images: Tensor) -> dict[str, Tensor]:
    """What each stage of a ViT gives, in the order in which the images pass."""
    x = model.patch_embed(images)
    found = {"patch_embed": x}
    found["tokens"] = x = model.tokens(x)
    for i, block in enumerate(model.blocks):
        found[f"blocks.{i}"] = x = block(x)
    found["norm"] = model.norm(x)
    found["head"] = model(images)
    return found


def apart(x: Tensor, y: Tensor) -> bool:
    return x.shape != y.shape or bool((x - y).abs().max() > 1e-5)


def parted(a: Any, b: Any, images: Tensor, differ: Callable = apart) -> list[str]:
    """The stages after which two ViTs differ."""
    first, second = stages(a, images), stages(b, images)
    return [name for name in first if differ(first[name], second[name])]


def first_parted(a: Any, b: Any, images: Tensor) -> str | None:
    return next(iter(parted(a, b, images)), None)


def where(size: Callable = lambda gap: gap.abs().max(), border: float = 1e-5) -> Callable:
    """A wrong answer: the first stage that is apart by another measure, or another border."""

    def differ(x: Tensor, y: Tensor) -> bool:
        return x.shape != y.shape or bool(size(x - y) > border)

    return lambda a, b, images: next(iter(parted(a, b, images, differ)), None)


def of_equal_shapes(a: Any, b: Any, images: Tensor) -> str | None:
    """A wrong answer: shapes are not compared."""
    found = parted(a, b, images, lambda x, y: bool((x - y).abs().max() > 1e-5))
    return next(iter(found), None)


def other_weights(a: nn.Module, b: nn.Module, images: Tensor) -> str | None:
    """The first stage whose weights differ: a wrong answer."""
    theirs = b.state_dict()
    for name, weight in a.state_dict().items():
        if apart(weight, theirs[name]):
            return ".".join(name.split(".")[: 2 if name.startswith("blocks") else 1])
    return None


def renamed(change: Callable[[str], Any]) -> Callable:
    """A wrong answer: the right name, put through `change`."""
    return then(first_parted, lambda name: name and change(name))


def block_as(form: Callable[[int], Any]) -> Callable:
    """A wrong answer: a block is named so, by its number."""
    return renamed(lambda name: form(int(name[7:])) if name.startswith("blocks.") else name)


def before(name: str) -> str:
    names = ["patch_embed", "tokens", "blocks.0", "blocks.1", "blocks.2", "norm", "head"]
    return names[max(names.index(name) - 1, 0)]


def every_token(a: Any, b: Any, images: Tensor) -> str | None:
    name = first_parted(a, b, images)
    if name != "head":
        return name
    return "head" if apart(a.head(a.features(images)), b.head(b.features(images))) else None


where_they_part = Check(
    reference=first_parted,
    trials=[
        pair("two equal ViTs"),
        pair("two ViTs whose fc1 in block 1 differs", change=shaken("blocks.1.mlp.fc1.weight")),
        pair("two ViTs whose norm1 in block 2 differs", change=shaken("blocks.2.norm1.weight")),
        pair("two ViTs whose patch projection differs", change=shaken("patch_embed.proj.weight")),
        pair("two ViTs of equal weights with 3 and 4 heads", replace(TINY, num_heads=4)),
        pair("two ViTs of equal weights, one with mean pooling", replace(TINY, pool="mean")),
        pair("two ViTs of 5 and 6 classes", replace(TINY, num_classes=6)),
        pair("two ViTs whose head differs", change=shaken("head.weight")),
        pair(
            "two ViTs, the second's cls token larger by 1",
            change=lambda m: m.tokens.cls_token.add_(1.0),
        ),
        pair("two ViTs, the positions larger by 0.0005", change=larger(5e-4), why=COUNTS),
        pair("two ViTs, one number larger by 0.0004", change=larger(4e-4, ONE), why=COUNTS),
        pair("two ViTs, one number larger by 0.00005", change=larger(5e-5, ONE), why=COUNTS),
        pair(
            "two ViTs, the cls token different by a rounding",
            change=lambda m: m.tokens.cls_token.mul_(1 + 2e-7),
            why="; differences up to 1e-5 do not count",
        ),
    ],
    mistakes={
        "you compare the weights: 3 and 4 heads, or cls and mean pooling, have equal weights and "
        "still give other numbers; compare what each stage gives": other_weights,
        "you compare the logits alone; go stage by stage, and name the "
        "first that differs": lambda a, b, images: "head" if apart(a(images), b(images)) else None,
        "this is the last stage where they differ; once apart, they stay apart: "
        "return at the first": lambda a, b, images: next(reversed(parted(a, b, images)), None),
        "you give a list of all stages that differ; return the name of the first, or None": parted,
        "this is the stage before; name the stage after which they differ": renamed(before),
        "the blocks are numbered from 0, as in model.blocks[0]": block_as(
            lambda number: f"blocks.{number + 1}"
        ),
        "it must say which block: blocks.0, blocks.1, …": block_as(lambda number: "blocks"),
        "a block is named blocks.0, as in the state dict, with a dot": block_as(
            lambda number: f"blocks[{number}]"
        ),
        "a block is named by a text, blocks.0, and not by its number alone": block_as(
            lambda number: number
        ),
        "the logits are never compared: two ViTs whose heads differ, or that pool differently, "
        "part only there": renamed(lambda name: None if name == "head" else name),
        "you apply the head yourself, to cls or to all tokens; two ViTs that pool differently part "
        "only in a(images) and b(images)": every_token,
        "you ask for exactly equal numbers, so rounding alone parts two models; forgive "
        "differences of up to 1e-5": where(border=0.0),
        "a difference may be negative: compare (x - y).abs()": where(lambda gap: gap.max()),
        "the mean hides one number that differs; look at the largest difference": where(
            lambda gap: gap.abs().mean()
        ),
        "you forgive too much: differences over 1e-5 count": (
            *(where(border=border) for border in (1e-4, 1e-3, 1e-2)),
        ),
        "results of other shapes differ, and cannot be subtracted: "
        "compare the shapes first": of_equal_shapes,
        "where they never differ, return None itself, not the text 'None'": then(first_parted, str),
    },
)
