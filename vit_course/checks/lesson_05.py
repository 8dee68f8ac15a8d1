"""Build cells and exercises of lesson 05."""

from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from vit_steps import encoder
from vit_steps.attention import MultiHeadAttention
from vit_steps.encoder import Encoder

from .compare import Verdict
from .engine import Check
from .trials import Trial, call, module, then, untouched

PackageMLP, PackageBlock = encoder.MLP, encoder.EncoderBlock  # the names below are the checks

# The parts of a module ---------------------------------------------------------------------------


def parts(what: str, kind: type[nn.Module], *sizes: Any, **options: Any) -> Trial:
    """A trial of what a module is made of: its parts' names and widths, told in words."""

    def run(answer: Callable) -> Any:
        made = answer(*sizes, **options)
        if not isinstance(made, nn.Module):
            return made
        return Verdict(other_parts(made, kind(*sizes, **options)))

    return Trial(what, run)


def other_parts(made: nn.Module, wanted: nn.Module) -> str:
    """What is wrong with a module's parameters, in words; "" where nothing is."""
    shapes = {name: tuple(p.shape) for name, p in made.named_parameters()}
    needed = {name: tuple(p.shape) for name, p in wanted.named_parameters()}
    if shapes == needed:
        return ""
    names, known = ({name.split(".")[0] for name in group} for group in (shapes, needed))
    if names != known:
        order = dict.fromkeys(name.split(".")[0] for name in needed)
        return f"its parts that learn are called {listed(sorted(names))}; call them {listed(order)}"
    for name, shape in needed.items():
        part, _, last = name.rpartition(".")
        if name not in shapes:
            return f"`{part}` has no {last}"
        if shapes[name] != shape and len(shape) == 2 == len(shapes[name]):
            goes, must = (f"from {s[1]} to {s[0]}" for s in (shapes[name], shape))
            return f"`{part}` goes {goes}; it must go {must}"
        if shapes[name] != shape:
            return f"`{name}` has the shape {shapes[name]}, expected {shape}"
    extra = next(name for name in shapes if name not in needed)
    return f"it has `{extra}`, which is not asked for"


def listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


# What an error of torch or Python says, and what to change.
SLIPS = {
    "inplace operation": "backward fails, since `+=` writes over numbers that the gradient needs",
    "'Tensor' and 'tuple'": "it adds the tuple (tokens, weights) that attention gives to a tensor",
    r"TypeError: .*(a float; give a whole number|empty\()": "a width is a float, such as 48.0, "
    "where a Linear takes a whole number",
}


def waves(*shape: int) -> Tensor:
    """Numbers between -1 and 1, no two alike."""
    count = torch.Size(shape).numel()
    return torch.linspace(0, 9 + count / 7, count).sin().reshape(shape)


# MLP ---------------------------------------------------------------------------------------------


def right_mlp(m: Any, x: Tensor) -> Tensor:
    return m.fc2(m.act(m.fc1(x)))


def mlp(
    steps: Callable = right_mlp,
    first: Callable = lambda d, h: (d, h),
    second: Callable = lambda d, h: (h, d),
    bias: bool = True,
) -> Callable:
    """An MLP class whose forward is `steps(mlp, x)`; `first` and `second` make of its sizes what
    the Linears go from and to."""

    class Other(nn.Module):
        def __init__(self, embed_dim, hidden_dim):
            super().__init__()
            self.fc1 = nn.Linear(*first(embed_dim, hidden_dim), bias=bias)
            self.act = nn.GELU()
            self.fc2 = nn.Linear(*second(embed_dim, hidden_dim), bias=bias)

        def forward(self, x):
            return steps(self, x)

    return Other


def bent_by(bend: Callable) -> Callable:
    return mlp(lambda m, x: m.fc2(bend(m.fc1(x))))


class InSequence(nn.Module):
    """An MLP whose parts have no names of their own."""

    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        first, second = nn.Linear(embed_dim, hidden_dim), nn.Linear(hidden_dim, embed_dim)
        self.net = nn.Sequential(first, nn.GELU(), second)

    def forward(self, x):
        return self.net(x)


MLP = Check(
    reference=PackageMLP,
    trials=[
        parts("the parts of MLP(6, 14)", PackageMLP, 6, 14),
        module("2 images of 5 tokens, MLP(6, 14)", (6, 14), waves(2, 5, 6)),
        module("1 image of 3 tokens, MLP(10, 7)", (10, 7), 2 * waves(1, 3, 10)),
    ],
    mistakes={
        "there is no bend between the two Linears, so they are one Linear: put `act` between them, "
        "and use what it gives": bent_by(lambda x: x),
        "the bend is ReLU; a ViT uses GELU, nn.GELU()": bent_by(F.relu),
        "this is GELU's approximation by tanh; take the exact form, nn.GELU() as it is": bent_by(
            lambda x: F.gelu(x, approximate="tanh")
        ),
        "the bend is sigmoid or SiLU; take nn.GELU()": (bent_by(torch.sigmoid), bent_by(F.silu)),
        "`act` stands after fc2 as well; it belongs between the two Linears alone": mlp(
            lambda m, x: m.act(right_mlp(m, x))
        ),
        "`act` stands after fc2; it belongs between the two Linears": mlp(
            lambda m, x: m.act(m.fc2(m.fc1(x)))
        ),
        "`act` stands before fc1; it belongs between the two Linears": mlp(
            lambda m, x: m.fc2(m.fc1(m.act(x)))
        ),
        "it adds x to its result; the block will do that, the MLP gives the change alone": mlp(
            lambda m, x: x + right_mlp(m, x)
        ),
        "the hidden width is always 4 times embed_dim; use hidden_dim, which may be another": mlp(
            first=lambda d, h: (d, 4 * d), second=lambda d, h: (4 * d, d)
        ),
        "the hidden width is embed_dim; hidden_dim is not used": mlp(
            first=lambda d, h: (d, d), second=lambda d, h: (d, d)
        ),
        "the widths are turned round: nn.Linear takes the width that comes in, then the one that "
        "goes out; "
        "fc1 widens, fc2 narrows": mlp(first=lambda d, h: (h, d), second=lambda d, h: (d, h)),
        "fc2 has other widths than it needs: it goes back, from hidden_dim to embed_dim": (
            mlp(second=lambda d, h: (h, h)),
            mlp(second=lambda d, h: (d, d)),
            mlp(second=lambda d, h: (d, h)),
        ),
        "the Linears have no bias; leave it on": mlp(bias=False),
        "in an nn.Sequential the parts are called 0 and 2; call them self.fc1 and self.fc2, so "
        "that published weights find them": InSequence,
    },
    slips=SLIPS,
    keeps="MLP",
)


# EncoderBlock ------------------------------------------------------------------------------------


def attention_adds(b: Any, x: Tensor) -> Tensor:
    return x + b.attend(b.norm1(x))


def mlp_adds(b: Any, x: Tensor, start: Tensor) -> Tensor:
    return x + b.mlp(b.norm2(x))


def as_asked(x: Tensor, weights: Tensor, asked: bool) -> Any:
    return (x, weights) if asked else x


def block(
    first: Callable = attention_adds, second: Callable = mlp_adds, give: Callable = as_asked
) -> type[nn.Module]:
    """A block class of two steps, in which `attend(tokens)` mixes tokens.

    Args:
        first: makes of the block and x what the second step reads.
        second: takes the block, that, and the x from before the first step.
        give: makes the result of the tokens, the weights, and whether the weights are asked for.
    """

    class Other(PackageBlock):
        def attend(self, tokens):
            mixed, self.weights = self.attn(tokens, self.mask, return_attention=True)
            return mixed

        def forward(self, x, mask=None, return_attention=False):
            self.mask = mask
            x = second(self, first(self, x), x)
            return give(x, self.weights, return_attention)

    return Other


def given_back(give: Callable) -> type[nn.Module]:
    return block(give=give)


def mixed_unasked(b: Any, x: Tensor) -> Tensor:
    mixed, b.weights = b.attn(b.norm1(x), b.mask)
    return x + mixed


class SharedNorm(block(lambda b, x: x + b.attend(b.norm(x)), lambda b, x, _: x + b.mlp(b.norm(x)))):
    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__(embed_dim, num_heads, mlp_ratio)
        del self.norm1, self.norm2
        self.norm = nn.LayerNorm(embed_dim, eps=1e-6)


class SameNorm(PackageBlock):
    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__(embed_dim, num_heads, mlp_ratio)
        self.norm2 = self.norm1


class Maskless(PackageBlock):
    def forward(self, x, mask=None, return_attention=False):
        return super().forward(x, None, return_attention)


def made_of(**parts: Callable) -> type[nn.Module]:
    """A block class with other parts, each made of embed_dim, num_heads and mlp_ratio."""

    class Other(PackageBlock):
        def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
            super().__init__(embed_dim, num_heads, mlp_ratio)
            for name, make in parts.items():
                setattr(self, name, make(embed_dim, num_heads, mlp_ratio))

    return Other


def hidden(width: Callable) -> type[nn.Module]:
    """A block class whose MLP's hidden width is made of embed_dim and mlp_ratio."""
    return made_of(mlp=lambda d, heads, ratio: PackageMLP(d, width(d, ratio)))


def torch_norm(d: int, heads: int, ratio: float) -> nn.LayerNorm:
    return nn.LayerNorm(d)


def quiet(made: nn.Module, x: Tensor) -> Any:
    """What a block gives for faint tokens when its attention adds nothing to them."""
    with torch.no_grad():
        for name, p in made.named_parameters():
            if name.startswith("attn.proj"):
                p.zero_()
    return untouched(made, x)


FAINT = 0.002 * waves(2, 3, 12)
SIGHT = torch.ones(5, 5, dtype=torch.bool).tril()  # each token sees itself and those before it

EncoderBlock = Check(
    reference=PackageBlock,
    trials=[
        parts("the parts of EncoderBlock(12, 3)", PackageBlock, 12, 3),
        module("2 images of 5 tokens, EncoderBlock(12, 3)", (12, 3), waves(2, 5, 12)),
        module("1 image of 4 tokens, EncoderBlock(10, 2)", (10, 2), 2 * waves(1, 4, 10)),
        parts(
            "the parts of EncoderBlock(14, 7, mlp_ratio=61 / 14)",
            PackageBlock,
            14,
            7,
            mlp_ratio=61 / 14,
        ),
        module("faint tokens, no number above 0.002", (12, 3), FAINT),
        module("faint tokens, and an attention that adds nothing", (12, 3), FAINT, use=quiet),
        module("return_attention=True", (12, 3), waves(2, 5, 12), return_attention=True),
        module("a mask", (12, 3), waves(2, 5, 12), mask=SIGHT),
    ],
    mistakes={
        "this is post-norm: the norm stands on the road, after the sum; a ViT normalises only what "
        "a branch reads, x + attention(norm1(x))": block(
            lambda b, x: b.norm1(x + b.attend(x)), lambda b, x, _: b.norm2(x + b.mlp(x))
        ),
        "the norms stand at the end of the branches; put each at the start, where the branch reads "
        "x": block(lambda b, x: x + b.norm1(b.attend(x)), lambda b, x, _: x + b.norm2(b.mlp(x))),
        "the change is added to the normalised x; add it to x itself, and normalise only what the "
        "branch reads": block(
            lambda b, x: b.norm1(x) + b.attend(b.norm1(x)),
            lambda b, x, _: b.norm2(x) + b.mlp(b.norm2(x)),
        ),
        "nothing is added: each branch replaces x; write x = x + …": block(
            lambda b, x: b.attend(b.norm1(x)), lambda b, x, _: b.mlp(b.norm2(x))
        ),
        "attention replaces x; add what it gives, x = x + …": block(
            lambda b, x: b.attend(b.norm1(x))
        ),
        "the MLP replaces x; add what it gives, x = x + …": block(
            second=lambda b, x, _: b.mlp(b.norm2(x))
        ),
        "there is one sum round the whole block; add twice, what attention gives and then what the "
        "MLP gives": block(
            lambda b, x: b.attend(b.norm1(x)), lambda b, x, start: start + b.mlp(b.norm2(x))
        ),
        "the MLP reads what attention gave; it reads the stream, after attention was added": block(
            lambda b, x: b.attend(b.norm1(x)), lambda b, x, start: start + x + b.mlp(b.norm2(x))
        ),
        "the MLP reads x as it was before attention was added; add attention's change first": block(
            second=lambda b, x, start: x + b.mlp(b.norm2(start))
        ),
        "attention's change is lost: the last sum adds to the x from before attention": block(
            second=lambda b, x, start: start + b.mlp(b.norm2(x))
        ),
        "attention reads x itself; give it norm1(x), and use what the norm gives": block(
            lambda b, x: x + b.attend(x)
        ),
        "the MLP reads x itself; give it norm2(x), and use what the norm gives": block(
            second=lambda b, x, _: x + b.mlp(x)
        ),
        "no norm is used: attention reads norm1(x), the MLP norm2(x)": block(
            lambda b, x: x + b.attend(x), lambda b, x, _: x + b.mlp(x)
        ),
        "norm1 is used twice; the MLP reads norm2(x)": block(
            second=lambda b, x, _: x + b.mlp(b.norm1(x))
        ),
        "the norms are swapped: attention reads norm1(x), the MLP norm2(x)": block(
            lambda b, x: x + b.attend(b.norm2(x)), lambda b, x, _: x + b.mlp(b.norm1(x))
        ),
        "the MLP comes first; attention does": block(
            lambda b, x: mlp_adds(b, x, x), lambda b, x, _: attention_adds(b, x)
        ),
        "norm2 stands on the stream, which is only added to; it belongs inside the MLP's branch: "
        "x = x + mlp(norm2(x))": block(
            lambda b, x: b.norm2(attention_adds(b, x)), lambda b, x, _: x + b.mlp(x)
        ),
        "the MLP's change is lost: return x with it added": block(second=lambda b, x, _: x),
        "norm2 stands after the last sum; it belongs before the MLP, inside its branch": block(
            second=lambda b, x, _: b.norm2(x + b.mlp(x))
        ),
        "the mask does not reach the attention; hand it on, attn(…, mask, …)": Maskless,
        "it always gives the weights; give them only where return_attention is True": given_back(
            lambda x, weights, asked: (x, weights)
        ),
        "it never gives the weights; with return_attention=True give (tokens, weights)": given_back(
            lambda x, w, asked: x
        ),
        "the weights come first; give the tokens, then the weights": given_back(
            lambda x, weights, asked: (weights, x) if asked else x
        ),
        "the weights are averaged over the heads; give all of them, (B, h, N, N)": given_back(
            lambda x, weights, asked: as_asked(x, weights.mean(1), asked)
        ),
        "the norms have torch's own eps, 1e-5; a ViT's is 1e-6: nn.LayerNorm(…, eps=1e-6)": made_of(
            norm1=torch_norm, norm2=torch_norm
        ),
        "norm1 has torch's own eps, 1e-5; a ViT's is 1e-6": made_of(norm1=torch_norm),
        "norm2 has torch's own eps, 1e-5; a ViT's is 1e-6": made_of(norm2=torch_norm),
        "the hidden width is cut off to a whole number, and 14 * (61 / 14) is a little below 61; "
        "round it: round(mlp_ratio * embed_dim)": hidden(lambda d, ratio: int(d * ratio)),
        "the hidden width is always 4 times embed_dim; use mlp_ratio, which may be another": hidden(
            lambda d, ratio: 4 * d
        ),
        "the MLP's hidden width is embed_dim; make it mlp_ratio times as wide": hidden(
            lambda d, ratio: d
        ),
        "the MLP's hidden width is mlp_ratio; it is mlp_ratio times embed_dim": hidden(
            lambda d, ratio: round(ratio)
        ),
        "the attention has one head whatever num_heads says; hand num_heads on": made_of(
            attn=lambda d, heads, ratio: MultiHeadAttention(d, 1)
        ),
        "the attention has the sizes of B/16, 768 and 12; hand on embed_dim and num_heads": made_of(
            attn=lambda d, heads, ratio: MultiHeadAttention(768, 12)
        ),
        "mlp_ratio * embed_dim is a float, 48.0; a Linear takes a whole number: round it": hidden(
            lambda d, ratio: d * ratio
        ),
        "attention gives tokens and weights only when asked, attn(…, return_attention=True); else "
        "it gives tokens alone, and `mixed, weights = …` or "
        "[0] takes its images apart": block(mixed_unasked),
        "the two norms are one; make two, norm1 and norm2, each with its own weight and bias": (
            SharedNorm,
            SameNorm,
        ),
        "`+=` writes into the tensor that was given; make a new one, x = x + …": block(
            lambda b, x: x.add_(b.attend(b.norm1(x))), lambda b, x, _: x.add_(b.mlp(b.norm2(x)))
        ),
        "`+=` writes over numbers that the gradient still needs, and backward fails; make a new "
        "tensor, x = x + …": block(second=lambda b, x, _: x.add_(b.mlp(b.norm2(x)))),
        "attention, asked with return_attention=True, gives two things, the mixed tokens and the "
        "weights; take them apart, mixed, weights = …, and "
        "add the tokens alone": block(lambda b, x: x + b.attn(b.norm1(x), return_attention=True)),
    },
    slips=SLIPS,
    keeps="EncoderBlock",
)


# layer_norm --------------------------------------------------------------------------------------

# Two tokens of width 4, the second faint, so that where eps stands can be told.
TOKENS = torch.tensor([[1.0, 2, 3, 6], [0.1, -0.1, 0.2, 0.2]])
GAIN, SHIFT = torch.tensor([1.0, 2, 0.5, -1]), torch.tensor([0.0, 0.5, -1, 3])
# Fives of width 4, whose mean and whose mean square no order of summing rounds.
FLAT = torch.full((1, 2, 4), 5.0)


class ReadyMade(TorchFunctionMode):
    """Notices where torch's own LayerNorm is called."""

    called = False

    def __torch_function__(self, func, types, args=(), kwargs=None):
        names = ("layer_norm", "native_layer_norm", "rms_norm", "group_norm", "batch_norm")
        self.called |= getattr(func, "__name__", "") in names
        return func(*args, **(kwargs or {}))


def norm_of(what: str, *inputs: Tensor, **options: Any) -> Trial:
    """As `call`, but a norm of torch's is told, and so is an axis that was not kept."""
    plain = call(what, *inputs, **options)

    def run(answer: Callable) -> Any:
        try:
            with ReadyMade() as watch:
                result = plain.run(answer)
        except RuntimeError as error:
            if "must match the size" not in str(error):
                raise
            return Verdict(f"the shapes do not fit: {error}; is keepdim=True missing?")
        return Verdict("it calls a norm of torch's") if watch.called else result

    return Trial(what, run)


def by_hand(dim: Any = -1, correction: int = 0, divide: Callable | None = None) -> Callable:
    """A LayerNorm over `dim`, whose centred numbers `divide(centred, variance, eps)` scales."""
    divide = divide or (lambda centred, variance, eps: centred / (variance + eps).sqrt())

    def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-6) -> Tensor:
        axes = dim if dim is not None else tuple(range(x.ndim))
        variance = x.var(axes, correction=correction, keepdim=True)
        return divide(x - x.mean(axes, keepdim=True), variance, eps) * weight + bias

    return layer_norm


normed = by_hand()


def scaled(number: Callable) -> Callable:
    """A LayerNorm whose normalised numbers are `number(x, eps)`."""
    return lambda x, weight, bias, eps=1e-6: number(x, eps) * weight + bias


def read_as(inputs: Callable) -> Callable:
    """A LayerNorm that takes for x, the weight and the bias what `inputs` makes of them."""
    return lambda x, weight, bias, eps=1e-6: normed(*inputs(x, weight, bias), eps)


def three_axes(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-6) -> Tensor:
    _, _, _ = x.shape
    return normed(x, weight, bias, eps)


layer_norm = Check(
    reference=normed,
    trials=[
        norm_of("two tokens of width 4", TOKENS, torch.ones(4), torch.zeros(4)),
        norm_of("the same tokens with eps=0.01", TOKENS, torch.ones(4), torch.zeros(4), eps=0.01),
        norm_of("the same tokens with a weight and a bias", TOKENS, GAIN, SHIFT),
        norm_of("2 images of 3 tokens of width 5", waves(2, 3, 5), waves(5), 2 * waves(5) + 1),
        norm_of("one token alone, of shape (4,)", TOKENS[0], GAIN, SHIFT),
        norm_of("four axes, (2, 2, 3, 5)", waves(2, 2, 3, 5), waves(5), 2 * waves(5) + 1),
        norm_of("two tokens that hold only fives", FLAT, GAIN, SHIFT),
    ],
    mistakes={
        "the variance divides by D - 1; LayerNorm divides by D (correction=0, or the mean of the "
        "squares)": by_hand(correction=1),
        "it normalises over the tokens, so they leak into each other; take the mean and the "
        "variance over the last axis, dim=-1": by_hand(dim=-2),
        "it normalises over axis 1, which is the last one only where there are two; the last one "
        "of any number of axes is dim=-1": by_hand(dim=1),
        "it normalises over all axes at once; each token has its own mean and variance, over the "
        "last axis, dim=-1": by_hand(dim=None),
        "it divides by the variance; divide by its square root": by_hand(
            divide=lambda x, variance, eps: x / (variance + eps)
        ),
        "eps is added after the root; add it to the variance, under the root": by_hand(
            divide=lambda x, variance, eps: x / (variance.sqrt() + eps)
        ),
        "the variance divides by D - 1, and eps is added after the root; divide by D, and add eps "
        "to the variance, under the "
        "root": by_hand(correction=1, divide=lambda x, variance, eps: x / (variance.sqrt() + eps)),
        "eps is not used: a token whose numbers are all equal becomes nan": by_hand(
            divide=lambda x, variance, eps: x / variance.sqrt()
        ),
        "eps is added to the result; add it to the variance, under the root: "
        "mind the brackets": by_hand(divide=lambda x, variance, eps: x / variance.sqrt() + eps),
        "eps is always 1e-6; use the one that is given": by_hand(
            divide=lambda x, variance, eps: x / (variance + 1e-6).sqrt()
        ),
        "the mean is not subtracted from what stands above the line, x - mean": scaled(
            lambda x, eps: x / (x.var(-1, correction=0, keepdim=True) + eps).sqrt()
        ),
        "the mean is not subtracted, neither above the line nor in the variance": scaled(
            lambda x, eps: x / (x.square().mean(-1, keepdim=True) + eps).sqrt()
        ),
        "the variance is that of the centred numbers: square x - mean, not x": scaled(
            lambda x, eps: (
                (x - x.mean(-1, keepdim=True)) / (x.square().mean(-1, keepdim=True) + eps).sqrt()
            )
        ),
        "the weight and the bias are not used: multiply by the one, then add the other": read_as(
            lambda x, weight, bias: (x, torch.ones(()), torch.zeros(()))
        ),
        "the bias is not used: add it at the end": read_as(
            lambda x, weight, bias: (x, weight, torch.zeros(()))
        ),
        "the weight is not used: multiply by it before you add the bias": read_as(
            lambda x, weight, bias: (x, torch.ones(()), bias)
        ),
        "the bias is added before the weight multiplies; multiply first": read_as(
            lambda x, weight, bias: (x, weight, bias * weight)
        ),
        "weight and bias are taken for each other: multiply by the weight, add the bias": read_as(
            lambda x, weight, bias: (x, bias, weight)
        ),
        "the mean and the variance lost the last axis, so the shapes do not fit: keep it, "
        "keepdim=True": scaled(
            lambda x, eps: (x - x.mean(-1)) / (x.var(-1, correction=0) + eps).sqrt()
        ),
        "it calls torch's own norm; write it out: mean, variance, root": scaled(
            lambda x, eps: F.layer_norm(x, x.shape[-1:], eps=eps)
        ),
        "`-=` writes into the tensor that was given; make a new one, x = x - …": read_as(
            lambda x, weight, bias: (x.sub_(x.mean(-1, keepdim=True)), weight, bias)
        ),
        "it works for three axes alone; x may have any number, with D the last: use dim=-1 and "
        "x.shape[-1]": three_axes,
    },
)


# contributions -----------------------------------------------------------------------------------


def stack(kind: type[Encoder], depth: int) -> Encoder:
    """A small encoder of that kind, with so many blocks."""
    return kind(PackageBlock(embed_dim=8, num_heads=2) for _ in range(depth))


def shaken(encoder: Encoder) -> Encoder:
    """The encoder with every parameter drawn anew, the norms' included, so that each one counts."""
    for parameter in encoder.parameters():
        nn.init.normal_(parameter, std=0.3)
    return encoder


def taken_apart(depth: int, count: int) -> Trial:
    """Ask for the changes that an encoder of this depth writes to two batches of `count` tokens."""

    def run(answer: Callable) -> Any:
        encoder = shaken(stack(Encoder, depth)).requires_grad_(False)
        result = untouched(answer, encoder, torch.randn(2, count, 8))
        if isinstance(result, Tensor) and result.ndim == 4:
            return Verdict("it gives one tensor of all changes")
        return list(result) if isinstance(result, tuple) else result

    return Trial(f"an encoder of {depth} blocks, {count} tokens", run)


def changes_by(
    attend: Callable = lambda b, x: b.attn(b.norm1(x)),
    reflect: Callable = lambda b, x, start, change: b.mlp(b.norm2(x)),
    replacing: bool = False,
) -> Callable:
    """What each block's attention and MLP add to the stream; the options make the known mistakes.

    Args:
        attend: makes attention's change of the block and the stream.
        reflect: makes the MLP's of the block, the stream, the stream from before, and that change.
        replacing: whether a change takes the stream's place.
    """

    def changes(encoder: Any, x: Tensor) -> list[Tensor]:
        found = []
        for block in encoder:
            start, change = x, attend(block, x)
            x = x + change
            found += [change, reflect(block, x, start, change)]
            x = found[-1] if replacing else x + found[-1]
        return found

    return changes


changes = changes_by()


def streams(encoder: Any, x: Tensor) -> list[Tensor]:
    return list(accumulate(changes(encoder, x), initial=x))[1:]


def paired(found: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Of each block, attention's change and the MLP's."""
    return list(zip(found[::2], found[1::2], strict=True))


def changes_in_place(encoder: Any, x: Tensor) -> list[Tensor]:
    found = changes(encoder, x)
    x += found[0]
    return found


contributions = Check(
    reference=changes,
    slips=SLIPS,
    trials=[taken_apart(depth=2, count=3), taken_apart(depth=3, count=5)],
    mistakes={
        "the branches read the stream itself; attention reads norm1(x), the MLP norm2(x)": (
            changes_by(lambda b, x: b.attn(x), lambda b, x, *_: b.mlp(x))
        ),
        "the MLP reads norm1(x); it has a norm of its own, norm2": changes_by(
            reflect=lambda b, x, *_: b.mlp(b.norm1(x))
        ),
        "the MLP reads the stream as it was before attention wrote to it; add attention's change "
        "to x first": changes_by(reflect=lambda b, x, start, change: b.mlp(b.norm2(start))),
        "the MLP reads attention's change alone; it reads the stream, x with "
        "that change added": changes_by(reflect=lambda b, x, start, change: b.mlp(b.norm2(change))),
        "every block reads the x that came in at the start; what one block gives is what the next "
        "one reads": lambda encoder, x: [c for block in encoder for c in changes([block], x)],
        "each change replaces the stream; add it instead (x + change)": changes_by(
            reflect=lambda b, x, start, change: b.mlp(b.norm2(change)), replacing=True
        ),
        "these are the streams after each change; give the changes alone": streams,
        "this is one change a block; give two, attention's and the MLP's, each by itself": then(
            changes, lambda found: [a + b for a, b in paired(found)]
        ),
        "the changes are right, but not in the order in which they are added: attention and MLP of "
        "the first block, then those of the next": then(changes, lambda f: f[::2] + f[1::2]),
        "the changes are right, but in each block the MLP's stands before attention's": then(
            changes, lambda found: [change for a, b in paired(found) for change in (b, a)]
        ),
        "this is one pair a block; give all changes in one list, attention and MLP in turn": then(
            changes, paired
        ),
        "this is the sum of all changes; give each by itself, in a list": then(changes, sum),
        "the list begins with x itself; give the changes alone": lambda encoder, x: [
            x,
            *changes(encoder, x),
        ],
        "this is one tensor; give a list, of one tensor (B, N, D) for each change": then(
            changes, torch.stack
        ),
        "`+=` writes into the x that was given; make a new one, x = x + change": changes_in_place,
        "block.attn, asked with return_attention=True, gives two things, the tokens and the "
        "weights; do not ask, "
        "or take them apart": lambda encoder, x: [x + encoder[0].attn(x, return_attention=True)],
        "these are the changes of the first blocks alone; loop over all of them": (
            lambda encoder, x: changes(encoder[:1], x),
            lambda encoder, x: changes(encoder[:2], x),
        ),
    },
)


# unheard_blocks ----------------------------------------------------------------------------------


def passing_on(go_on: Callable) -> type[Encoder]:
    """A broken encoder, whose blocks all give their weights.

    Args:
        go_on: makes what the next block reads of how many blocks are left, of what this one read,
            and of what it gave.
    """

    class Broken(Encoder):
        def forward(self, x, mask=None, return_attention=False):
            attention = []
            for number, block in enumerate(self, 1):
                out, weights = block(x, mask, return_attention=True)
                x = go_on(len(self) - number, x, out)
                attention.append(weights)
            return (x, attention) if return_attention else x

    return Broken


OnlyAttention = passing_on(lambda left, x, out: x)
OnlyLast = passing_on(lambda left, x, out: x if left else out)
SkipsSecond = passing_on(lambda left, x, out: x if left == 3 else out)  # of five


class StopsEarly(Encoder):
    """Never runs its last block."""

    def forward(self, x, mask=None, return_attention=False):
        return Encoder(list(self)[:-1])(x, mask, return_attention)


def listened_to(what: str, kind: type[Encoder], depth: int, trained: bool = False) -> Trial:
    """Ask which blocks of such an encoder are not heard, and see that its weights are left."""

    def run(answer: Callable) -> Any:
        encoder = shaken(stack(kind, depth))
        x = torch.randn(2, 3, 8)
        if trained:  # one step in which all blocks were heard
            healthy = Encoder(encoder)
            healthy(x).sum().backward()
        before = {name: weight.clone() for name, weight in encoder.state_dict().items()}
        result = untouched(answer, encoder, x)
        after = encoder.state_dict()
        left = all(torch.allclose(after[name], before[name], atol=1e-5) for name in before)
        if isinstance(result, (set, range)):
            return Verdict(f"it gives a {type(result).__name__}; give a list, [0, 2]")
        return result if left or result is ... else Verdict("the weights are not as they were")

    return Trial(what, run)


def unheard_by(clear: bool = True, ask: bool = True, weights: bool = False) -> Callable:
    """The numbers of the blocks whose parameters all lack a gradient from the tokens; the options
    make the known mistakes.

    Args:
        clear: whether old gradients are cleared.
        ask: whether the tokens are asked if there is any way back at all.
        weights: whether the attention weights count as well.
    """

    def unheard(encoder: Encoder, x: Tensor) -> list[int]:
        if clear:
            encoder.zero_grad()
        tokens, attention = encoder(x, return_attention=True)
        goal = tokens.sum() + (sum(w.sum() for w in attention) if weights else 0)
        if goal.requires_grad or not ask:
            goal.backward()
        blocks = [list(block.parameters()) for block in encoder]
        return [i for i, block in enumerate(blocks) if all(p.grad is None for p in block)]

    return unheard


unheard = unheard_by()


def unheard_by_overwriting(encoder, x):
    found = unheard(encoder, x)
    shaken(encoder)
    return found


def unheard_by_zero(encoder, x):
    found = unheard(encoder, x)
    return None.abs() if found else found  # type: ignore[attr-defined]


def unheard_parameters(encoder, x):
    unheard(encoder, x)
    return [i for i, p in enumerate(encoder.parameters()) if p.grad is None]


def unheard_names(encoder, x):
    unheard(encoder, x)
    return [name for name, p in encoder.named_parameters() if p.grad is None]


def unheard_by_leaving_out(encoder, x):
    usual, found = encoder(x), []
    for number in range(len(encoder)):
        rest = type(encoder)(block for i, block in enumerate(encoder) if i != number)
        if torch.equal(rest(x), usual):
            found.append(number)
    return found


def flags(encoder, x):
    found = unheard(encoder, x)
    return [i in found for i in range(len(encoder))]


unheard_blocks = Check(
    reference=unheard,
    slips={
        "does not require grad": "backward fails: the tokens depend on no weight at all",
        "AttributeError: 'NoneType'": "a `grad` is None where a number is asked for",
    },
    trials=[
        listened_to("a healthy encoder of 3 blocks", Encoder, 3),
        listened_to("3 blocks, of which only the attention weights are kept", OnlyAttention, 3),
        listened_to("4 blocks that all read the first x, the last one kept", OnlyLast, 4),
        listened_to("5 blocks, the second one skipped", SkipsSecond, 5),
        listened_to("6 blocks, the last one never run", StopsEarly, 6),
        listened_to(
            "2 blocks whose tokens are thrown away, with gradients left from an earlier training",
            OnlyAttention,
            2,
            trained=True,
        ),
    ],
    mistakes={
        "the weights are not as they were: a test must leave the model as it found it; put them "
        "back from a clone, or try it on a copy (copy.deepcopy)": unheard_by_overwriting,
        "gradients left from an earlier step look like new ones: clear them first "
        "(encoder.zero_grad())": unheard_by(clear=False),
        "the attention weights are counted as well: a block that only gives those is unheard; look "
        "at the tokens alone": unheard_by(weights=True),
        "where the tokens depend on no weight, requires_grad is False, no block is heard: give the "
        "numbers of all, not []": lambda encoder, x: (
            unheard(encoder, x) if encoder(x).requires_grad else []
        ),
        "it finds every block heard, in a broken encoder too: run the encoder itself, encoder(x); "
        "a loop of your own over its blocks is always healthy": lambda encoder, x: [],
        "leaving a block out moves the others to other places, and another forward may depend on "
        "those; keep all blocks where they are, and change "
        "the weights of one": unheard_by_leaving_out,
        "these are the blocks that are heard; give the others": then(
            flags, lambda bad: [i for i, one in enumerate(bad) if not one]
        ),
        "this is how many blocks are unheard; give their numbers, in a list": then(unheard, len),
        "this is one True or False a block; give the numbers of the unheard ones": (
            flags,
            then(flags, lambda bad: [not one for one in bad]),
        ),
        "the blocks are counted from 1; count from 0, as Python does": then(
            unheard, lambda found: [i + 1 for i in found]
        ),
        "the numbers are right, but not in order: smallest first": then(
            unheard, lambda found: found[::-1]
        ),
        "the numbers are texts; give whole numbers, [0, 2]": then(
            unheard, lambda found: list(map(str, found))
        ),
        "this is the first unheard block alone; give all of them": then(
            unheard, lambda found: found[:1]
        ),
        "backward fails where the tokens depend on no weight at all: tokens.requires_grad is False "
        "then, there is no gradient to send back, and no block is heard": unheard_by(ask=False),
        "a weight that the tokens do not depend on has no gradient: its `grad` is None, not 0; ask "
        "`grad is None`": unheard_by_zero,
        "these are numbers of weights; a block has many: give a block's number where all of its "
        "weights are unheard": unheard_parameters,
        "these are names of weights; give the numbers of the blocks, each once": unheard_names,
        "the x that was given is not as it was; leave it, "
        "and work on x.clone()": lambda encoder, x: unheard(encoder, x.add_(1)),
    },
)
