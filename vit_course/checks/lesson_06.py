"""Lesson 06: the whole model, its size and its work, where two models part."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from vit_steps import vit as package
from vit_steps.vit import ViTConfig

from .compare import Verdict
from .exercise import Exercise
from .trials import Trial, asked, drawn, fill, left_alone, module

# No two of their sizes are alike, so that no wrong answer agrees by chance.
SMALL = ViTConfig(
    image_size=15, patch_size=5, num_classes=7, embed_dim=24, depth=2, num_heads=4, mlp_ratio=1.5
)
SIZES = {"image_size": 8, "patch_size": 4, "in_channels": 1, "embed_dim": 12, "num_heads": 6}
OTHER = replace(SMALL, **SIZES, num_classes=11, mlp_ratio=3.0)


def pictures(config: ViTConfig, count: int, seed: int = 3) -> Tensor:
    """Draw random images of a config's size."""
    size: Any = config.image_size
    return drawn(count, config.in_channels, size, size, seed=seed)


ORDER = ("patch_embed", "tokens", "blocks", "norm", "head")


def well_made(answer: Callable) -> Any:
    """Say whether the parts are made in the package's order, and start as the package's do."""
    model = answer(SMALL)
    order = [name for name, _ in model.named_children() if name in ORDER]
    if order != list(ORDER):
        return Verdict(
            f"its parts are made in the order {', '.join(order)}; make them in the order "
            f"{', '.join(ORDER)}, so that a seed gives the same weights as the package's ViT"
        )
    for name, part in model.named_modules():
        if not isinstance(part, nn.Linear):
            continue
        small = 0.01 < part.weight.std() < 0.03
        if not small or (part.bias is not None and part.bias.any()):
            return Verdict(
                f"`{name}` does not start as init_weights says (std 0.02, bias 0); "
                "`self.apply(init_weights)` belongs at the end of __init__, after all parts"
            )
    eps = getattr(model.norm, "eps", None)
    if eps != 1e-6:
        return Verdict(f"`norm` has eps {eps}; ViTs are trained with 1e-6: LayerNorm(…, eps=1e-6)")
    return Verdict("well made")


ONE = replace(OTHER, depth=1)

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
    trials=[
        module(
            "one grey image of 8×8 pixels, patch 4, D = 12, 1 block",
            [ONE],
            pictures(ONE, 1),
            quick=True,
        ),
        module(
            "5 images of 15×15 pixels, patch 5, D = 24, with return_attention=True",
            [SMALL],
            pictures(SMALL, 5),
            return_attention=True,
        ),
        Trial("a new ViT", well_made),
    ],
    wrong="""
`squeeze()` takes away each axis of length 1, and that of the batch too where there is one image:
`x[:, 0]` takes cls, and no other axis
    self.head(self.norm(x[:, 0])) => self.head(self.norm(x[:, :1])).squeeze()
the final norm is never used: the head reads `self.norm` of the cls token
    head(self.norm( => head((
the final norm is used in one of two cases only, with return_attention=True or without it
    head(self.norm(x[:, 0])) => head(x[:, 0] if return_attention else self.norm(x[:, 0]))
    head(self.norm(x[:, 0])) => head(self.norm(x[:, 0]) if return_attention else x[:, 0])
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
    x[:, 0] => self.tokens.cls_token ‖ self.tokens.cls_token[:, 0]
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
`tokens` gets the images; it reads what `patch_embed` made of them
    self.tokens(x) => self.tokens(images)
a block gets the images; it reads tokens, `x`, which the pieces before it made
    block(x, => block(images,
every block gets the same tokens: hand on what the block before gave, `x, weights = block(x, …)`
    attention = [] => attention = [] ⏎ start = x ;; block(x, => block(start,
`x` never changes: you keep each block's weights and throw its tokens away
    x, weights = block => _, weights = block
only the first block runs; is the `return` inside the loop?
    in self.blocks: => in self.blocks[:1]:
the blocks run only with return_attention=True; run them in both cases
    in self.blocks: => in self.blocks if return_attention else ():
the blocks run from the last to the first; go through `self.blocks` as it stands
    in self.blocks: => in reversed(self.blocks):
`self.blocks` is a list, and a list cannot be called; go through it, `for block in self.blocks:`
    ! (NotImplemented|Type|Value)Error: .*(ModuleList|_forward_unimplemented)
    block(x, return => self.blocks(x, return
a block gives x alone unless you ask: `block(x, return_attention=True)` gives x and its weights; ask
always, whatever your own return_attention says
    ! (NotImplemented|Type|Value)Error: .*values to unpack [(]expected 2
    block(x, return_attention=True) => block(x)
a block's second place is its mask; write `block(x, return_attention=True)`, by name
    ! (NotImplemented|Type|Value)Error: .*mask
    block(x, return_attention=True) => block(x, True)
each block's input is added twice: a block adds it already, so `x = block(x)`
    x, weights = block => y, weights = block ;; (weights) => (weights) ⏎ x = x + y
`self.norm` runs after every block; it belongs after the last block, once
    (weights) => (weights) ⏎ x = self.norm(x)
    (weights) => (weights) ⏎ x = self.norm(x) ;; head(self.norm( => head((
`self.norm` runs before every block; a block has norms of its own, and this one belongs after the
last block, once
    block(x, => block(self.norm(x), ‖ block(self.norm(x), ;; head(self.norm( => head((
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
    (logits, attention) if => (logits, torch.stack(attention)) if ‖
        (logits, torch.stack(attention, dim=1)) if
the attention is the last block's weights; give a list with those of every block
    (logits, attention) if => (logits, weights) if
    attention.append(weights) => attention = [weights]
the weights are averaged over the heads; give those of each head, (B, h, N, N)
    (weights) => (weights.mean(dim=1))
the two results are the wrong way round: the logits first, then the attention
    (logits, attention) if => (attention, logits) if
every turn of the loop calls the first block; call `block`, the one whose turn it is
    = block(x, => = self.blocks[0](x,
`+=` and `extend` take the weights apart, image by image; put them into the list whole, by
attention.append(weights)
    attention.append(weights) => attention += weights
    attention.append(weights) => attention.extend(weights)
your list holds None: ask each block for its weights, by return_attention=True, and put these in
    x, weights = block(x, return_attention=True) => x, weights = block(x), None
the norm comes first, then the head, which answers from the normed token: self.head(self.norm(…))
    ! RuntimeError: Given normalized_shape
    self.head(self.norm(x[:, 0])) => self.norm(self.head(x[:, 0]))
the list of attention stays empty: put each block's weights into it, attention.append(weights)
    attention.append(weights) =>
your list holds each block's tokens, not its weights
    (weights) => (x)
the list of attention grows with every call, since the model keeps it; make a new one in forward,
`attention = []`
    return_attention=False): => return_attention=False, attention=[]): ;; attention = [] => pass
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
    does="A picture goes in, and logits come out: the whole model, and you wrote it.",
    why="""The order of `forward` is the order of the map. A block gives tokens and weights: the
tokens go on, the weights into the list. The norm works on each token alone, so norming cls alone
is enough.""",
)


# N + 1 is no small multiple of the depth, nor the hidden width of D: what is forgotten once must
# not be taken for what is forgotten in each block, nor one bias for another.
TINY = ViTConfig(
    image_size=12, patch_size=4, num_classes=5, embed_dim=12, depth=3, num_heads=3, mlp_ratio=2.5
)
TWO = replace(TINY, in_channels=2)
ODD = replace(TWO, embed_dim=56, num_heads=7, mlp_ratio=61 / 56)


def counted(what: str, config: ViTConfig, place: int) -> Trial:
    """Make a trial of one of the two counts, to the last unit, which `compare` would forgive."""
    name = ("parameters", "multiply-adds")[place]

    def say(result: Any, _: Any) -> Any:
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
                f"the {name} are {number!r}, no whole number: the hidden width is "
                "round(mlp_ratio * D), and the rows of patches are image_size // patch_size"
            )
        return f"{number:,}"

    return Trial(f"the {name} of {what}", asked, [config], say)


size_and_work = Exercise(
    answer="""
def size_and_work(config):
    D, P, L = config.embed_dim, config.patch_size, config.depth
    hidden = round(config.mlp_ratio * D)
    n = (config.image_size // P) ** 2
    N = n + 1  # with cls
    squares = 3 * D * D + D * D + 2 * D * hidden  # qkv, projection, fc1 and fc2
    biases = 3 * D + D + hidden + D
    norms = 2 * 2 * D
    patch, head = P * P * config.in_channels * D, D * config.num_classes

    size = patch + D  # a bias for each template
    size += D + N * D  # cls and positions
    size += L * (squares + biases + norms)
    size += 2 * D + head + config.num_classes  # final norm, and the head's biases
    work = n * patch + L * (N * squares + 2 * N * N * D) + head
    return size, work
""",
    trials=[
        counted("a ViT of 3 blocks, D = 56, mlp_ratio 61/56, for 12×12×2 pixels, patch 4", ODD, 0),
        counted("a ViT of 3 blocks, D = 12, mlp_ratio 2.5, for 12×12×2 pixels, patch 4", TWO, 1),
    ],
    wrong="""
the two counts are the wrong way round: the parameters first
    return size, work => return work, size
cls and positions are both missing: they are bare parameters, no layer's weight; this is how a sum
over layers goes wrong
    D + N * D => 0
your parameters are D too few. Is the patch embedding's bias there, cls itself, and a position for
every patch and one for cls?
    D + N * D => N * D
2·D parameters are missing: the final norm, after the last block, or cls and its position
    2 * D + head => head
4·D parameters a block are missing: the two LayerNorms inside the blocks, 2·D each, or the biases of
qkv and of the projection
    biases + norms) => biases)
2·D parameters a block are missing: a block has two LayerNorms, of 2·D each
    norms = 2 * 2 * D => norms = 2 * D
a LayerNorm has 2·D parameters, a scale and a shift for each place; you count D
    norms = 2 * 2 * D => norms = 2 * D ;; 2 * D + head => D + head
the biases inside the blocks are missing: each of the four Linears has one
    squares + biases + norms => squares + norms
qkv's bias is missing: 3·D parameters a block
    biases = 3 * D + D => biases = D
fc1's bias is missing: as many numbers as the hidden width, in each block
    biases = 3 * D + D + hidden + D => biases = 3 * D + D + D
the head's bias is missing: one number a class
    + head + config.num_classes => + head
the parameters of one block are counted; there are `depth`
    L * (squares + biases + norms) => squares + biases + norms
mlp_ratio is ignored: the MLP's hidden width is round(mlp_ratio * D), and not always 4·D
    round(config.mlp_ratio * D) => 4 * D
12·D² + 13·D are a block's parameters where mlp_ratio is 4; the hidden width is round(mlp_ratio * D)
    L * (squares + biases + norms) => L * (12 * D * D + 13 * D)
int() cuts 60.99999 to 60; the hidden width is round(mlp_ratio * D)
    round(config => int(config
in_channels is ignored: a patch has P·P·in_channels numbers, and not always three channels
    P * P * config.in_channels => P * P * 3
attention is missing from the work: q·kᵀ and weights·v have no parameters, yet each costs N·N·D a
block
    squares + 2 * N * N * D => squares
attention has two products: q·kᵀ, and then weights·v
    squares + 2 * N * N * D => squares + N * N * D
the blocks' Linears run on every token: multiply by N. And attention is missing: two products of
N·N·D a block
    N * squares + 2 * N * N * D => squares
the blocks' Linears run on every token: multiply by N
    (N * squares => (squares
the blocks work on N tokens, cls included; you count the patches only
    N * squares + 2 * N * N => n * squares + 2 * n * n
    N * squares => n * squares
    2 * N * N * D => 2 * n * n * D
the patch embedding runs on the patches alone, N − 1 of them; cls is no patch
    n * patch => N * patch
the patch embedding runs on every patch: multiply by n
    n * patch => patch
the work of one block is counted; there are `depth`
    L * (N * squares + 2 * N * N * D) => N * squares + 2 * N * N * D
the heads share the width: h heads of width d = D / h cost N·N·D together, not h times that
    2 * N * N * D => 2 * N * N * D * config.num_heads
attention is counted for one head of width d = D / h; all heads together cost N·N·D a product
    2 * N * N * D => 2 * N * N * D // config.num_heads
the output projection is missing from the work: D·D for each token, in each block
    (N * squares => (N * (squares - D * D)
the head reads one token, not all N
    N * D) + head => N * D) + N * head
the head is missing from the work: D times the classes, once
    N * D) + head => N * D)
these are FLOPs, a multiplication and an addition each; count a multiply-add once
    return size, work => return size, 2 * work
""",
    why="""Go down the parts once. The work has three kinds of tokens: the patch embedding runs on n
patches, the blocks on N tokens, the head on one. Attention is the only term with N · N, and the
only one for which no parameter is needed.""",
)


@cache
def two(
    config: ViTConfig, change: Callable[[nn.Module], None] | None, place: float | None = None
) -> Any:
    """Make two ViTs of equal weights, the second of another config, or changed; and images.

    Args:
        place: one number of the positions of both.
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        first, second = (package.ViT(replace(c, image_size=8)) for c in (TINY, config))
        fill(first)
        fill(second)
        if place is not None:
            first.tokens.pos_embed[0, 3, 7] = second.tokens.pos_embed[0, 3, 7] = place
        if change:
            change(second)
        return first.eval(), second.eval(), torch.randn(2, 3, 8, 8)


def pair(
    what: str,
    change: Callable | None = None,
    config: ViTConfig = TINY,
    why: str = "",
    place: float | None = None,
) -> Trial:
    """Make a trial of two models.

    Args:
        change, config: what the second has otherwise.
        why: what to say besides the wrong name.
        place: one number of the positions of both.
    """

    def say(result: Any, *inputs: Any) -> Any:
        if result is not None and not isinstance(result, str):
            return result
        with torch.no_grad():
            right = where_they_part.reference(*inputs)
        same = result == right
        return Verdict("as it should" if same else f"it gives {result!r}, expected {right!r}{why}")

    models = partial(two, config, change, place)
    return Trial(what, torch.no_grad()(left_alone), lambda: deepcopy(models()), say)


COUNTS = "; every difference over 1e-5 counts, even of one number"


def shaken(name: str, model: nn.Module) -> None:
    """Change all numbers of one parameter."""
    p = model.get_parameter(name)
    p.add_(torch.randn_like(p))


def larger(model: Any) -> None:
    """Change one number of the positions."""
    model.tokens.pos_embed[0, 3, 7] += 5e-5


def shifted(model: Any) -> None:
    """Make `norm` give other numbers in the patch tokens alone."""
    model.norm.register_forward_hook(
        lambda module, inputs, y: torch.cat((y[:, :1], y[:, 1:] + 0.5), 1) if y.dim() == 3 else y
    )


def drifting(model: Any) -> None:
    """Let the last two blocks add a little to all numbers of a token, which no norm notices."""
    for block in model.blocks[1:]:
        block.mlp.fc2.bias.add_(7e-6)


where_they_part = Exercise(
    answer="""
def where_they_part(a, b, images):
    def differ(x, y):
        return x.shape != y.shape or (x - y).abs().max() > 1e-5

    x, y = a.patch_embed(images), b.patch_embed(images)
    if differ(x, y):
        return "patch_embed"
    x, y = a.tokens(x), b.tokens(y)
    if differ(x, y):
        return "tokens"
    for i in range(len(a.blocks)):
        x, y = a.blocks[i](x), b.blocks[i](y)
        if differ(x, y):
            return f"blocks.{i}"
    if differ(a.norm(x), b.norm(y)):
        return "norm"
    if differ(a(images), b(images)):
        return "head"
    return None
""",
    trials=[
        pair("two ViTs whose patch projection differs", partial(shaken, "patch_embed.proj.weight")),
        pair("two ViTs of equal weights with 3 and 4 heads", config=replace(TINY, num_heads=4)),
        pair("two ViTs whose norm1 in block 2 differs", partial(shaken, "blocks.2.norm1.weight")),
        pair("two ViTs whose final norm differs", partial(shaken, "norm.weight")),
        pair("two ViTs whose norm gives other patch tokens, and the same cls", shifted),
        pair("two ViTs that part by 0.000007 in each of two blocks", drifting),
        pair("two ViTs of equal weights, one with mean pooling", config=replace(TINY, pool="mean")),
        pair("two ViTs of 5 and 6 classes", config=replace(TINY, num_classes=6)),
        pair("two ViTs, one number larger by 0.00005", larger, why=COUNTS),
        pair("two ViTs, a number of 40 larger by 0.00005", larger, why=COUNTS, place=40.0),
        pair(
            "two ViTs, the cls token different by a rounding",
            lambda m: m.tokens.cls_token.mul_(1 + 2e-7),
            why="; differences up to 1e-5 do not count",
        ),
    ],
    wrong="""
torch.allclose also allows a share of the number itself, rtol, so a large one may be off by more:
say rtol=0
    (x - y).abs().max() > 1e-5 => not torch.allclose(x, y, atol=1e-5)
you compare the weights: 3 and 4 heads, or cls and mean pooling, have equal weights and still give
other numbers; compare what each stage gives
    x, y = a.patch… => return next((".".join(name.split(".")[: 1 + name.startswith("blocks")]) for
        name, p in a.state_dict().items() if differ(p, b.state_dict()[name])), None)
    x, y = a.patch… => return next((".".join(name.split(".")[: 1 + name.startswith("blocks")]) for
        (name, p), q in zip(a.named_parameters(), b.parameters()) if
        p.shape != q.shape or not torch.allclose(p, q, atol=1e-5)), None)
you compare the logits alone; go stage by stage, and name the first that differs
    x, y = a.patch… => return "head" if differ(a(images), b(images)) else None
this is the last stage where they differ; once apart, they stay apart: return at the first
    x, y = a.p => end = None ⏎ x, y = a.p ;; return "patch_embed" => end = "patch_embed" ;;
        return "tokens" => end = "tokens" ;; return f"blocks.{i}" => end = f"blocks.{i}" ;;
        return "norm" => end = "norm" ;; return "head" => end = "head" ;; return None => return end
you give a list of all stages that differ; return the name of the first, or None
    x, y = a.p => all = [] ⏎ x, y = a.p ;; return "patch_embed" => all += ["patch_embed"] ;;
        return "tokens" => all += ["tokens"] ;; return f"blocks.{i}" => all += [f"blocks.{i}"] ;;
        return "norm" => all += ["norm"] ;; return "head" => all += ["head"] ;;
        return None => return all
this is the stage before; name the stage after which they differ
    return "tokens" => return "patch_embed" ;; return f"blocks.{i}" => return f"blocks.{i - 1}" if i
      else "tokens" ;; return "norm" => return f"blocks.{i}" ;; return "head" => return "norm"
the blocks are numbered from 0, as in model.blocks[0]
    f"blocks.{i}" => f"blocks.{i + 1}"
it must say which block: blocks.0, blocks.1, …
    f"blocks.{i}" => "blocks"
a block is named blocks.0, as in the state dict, with a dot
    f"blocks.{i}" => f"blocks[{i}]"
a block is named by a text, blocks.0, and not by its number alone
    f"blocks.{i}" => i
the patches are never compared, and are a stage of their own
    return "patch_embed" => pass
the tokens are never compared, and are a stage of their own
    return "tokens" => pass
the first block is never compared: the blocks are numbered from 0
    range(len(a.blocks)) => range(1, len(a.blocks))
the last block is never compared: there are len(a.blocks) of them, from 0
    range(len(a.blocks)) => range(len(a.blocks) - 1)
the normed tokens are never compared, and are a stage of their own
    differ(a.norm(x), b.norm(y)) => False
only cls is normed and compared; norm all tokens of the last block, and compare them all
    differ(a.norm(x), b.norm(y)) => differ(a.norm(x[:, 0]), b.norm(y[:, 0]))
b's block gets a's tokens; give each block what the same model's block before it gave: two streams
    b.blocks[i](y) => b.blocks[i](x)
the logits are never compared: two ViTs whose heads differ, or that pool differently, part only
there
    differ(a(images), b(images)) => False
it gives 'head' where the logits agree, too: compare a(images) with b(images), and give None then
    if differ(a(images), b(images)): => if True:
you apply the head yourself, to cls or to all tokens; two ViTs that pool differently part only in
a(images) and b(images)
    differ(a(images), b(images)) => differ(a.head(a.norm(x)), b.head(b.norm(y)))
you ask for exactly equal numbers, so rounding alone parts two models; forgive differences of up to
1e-5
    > 1e-5 => > 0
torch.allclose alone forgives next to nothing where numbers are near 0: give it atol=1e-5, rtol=0
    (x - y).abs().max() > 1e-5 => not torch.allclose(x, y)
a difference may be negative: compare (x - y).abs()
    (x - y).abs() => (x - y)
one number that is alike is not enough: where any two differ, the results do
    abs().max() => abs().min()
the mean hides one number that differs; look at the largest difference
    abs().max() => abs().mean()
you forgive too much: differences over 1e-5 count
    1e-5 => 1e-4
results of other shapes differ, and cannot be subtracted: compare the shapes first
    x.shape != y.shape or (x => (x
where they never differ, return None itself, not the text 'None'
    return None => return "None"
""",
    why="""Two streams go side by side, each through its own model, and the first stage that differs
is named. The logits come from the models themselves, because what the head reads is their choice.
So the 8 heads part from the right model at `blocks.0`, and the tanh GELU there, too.""",
)
