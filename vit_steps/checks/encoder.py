"""Build cells and exercises of lesson 05."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from .. import encoder
from ..attention import MultiHeadAttention
from ..encoder import Encoder
from .compare import Verdict
from .engine import Check, InputChangedError, Mistake, Trial, call, module, untouched

PackageMLP, PackageBlock = encoder.MLP, encoder.EncoderBlock  # the names below are the checks

# The parts of a module ---------------------------------------------------------------------------


def parts(what: str, kind: type[nn.Module], *sizes: Any, **options: Any) -> Trial:
    """A trial of what a module is made of: its parts' names and widths, told in words."""

    def run(answer: Callable) -> Any:
        made = answer(*sizes, **options)
        if not isinstance(made, nn.Module):
            return made
        return Verdict(other_parts(made, kind(*sizes, **options)))

    return explained(Trial(what, run))


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


def in_words(error: Exception) -> Verdict | None:
    """What to change, where an error's own text does not say it; None for any other error."""
    text = str(error)
    if "before Module.__init__() call" in text:
        return Verdict("`super().__init__()` is missing: it is the first line of __init__")
    if "inplace operation" in text:
        return Verdict("backward fails, since `+=` writes over numbers that the gradient needs")
    if "'Tensor' and 'tuple'" in text:
        return Verdict("it adds the tuple (tokens, weights) that attention gives to a tensor")
    if isinstance(error, TypeError) and (
        "a float; give a whole number" in text or "empty(" in text
    ):
        return Verdict("a width is a float, such as 48.0, where a Linear takes a whole number")
    return None


def told(use: Callable, *inputs: Any) -> Any:
    """What `use` gives for these inputs; where it raises, what to change, in words."""
    try:
        return use(*inputs)
    except Exception as error:
        if said := in_words(error):
            return said
        raise


def explained(trial: Trial) -> Trial:
    """The same trial, its errors in words."""
    return Trial(trial.what, lambda answer: told(trial.run, answer))


def waves(*shape: int) -> Tensor:
    """Numbers between -1 and 1, no two alike."""
    count = torch.Size(shape).numel()
    return torch.linspace(0, 9 + count / 7, count).sin().reshape(shape)


def run_mlp(what: str, sizes: Sequence[int], x: Tensor) -> Trial:
    return explained(module(what, sizes, lambda made: told(untouched, made, x)))


# MLP ---------------------------------------------------------------------------------------------


def mlp(steps: Callable, hidden: Callable[[int, int], int] | None = None) -> Callable:
    """An MLP class whose forward is `steps(mlp, x)`, its hidden width `hidden(D, hidden_dim)`."""

    class Other(PackageMLP):
        def __init__(self, embed_dim, hidden_dim):
            super().__init__(embed_dim, hidden(embed_dim, hidden_dim) if hidden else hidden_dim)

        def forward(self, x):
            return steps(self, x)

    return Other


def mlp_bent_by(bend: Callable) -> Callable:
    return mlp(lambda m, x: m.fc2(bend(m.fc1(x))))


def linears(first: Callable, second: Callable, bias: bool = True, begin: bool = True) -> Callable:
    """An MLP class whose Linears go from and to what `first` and `second` make of its sizes."""

    class Other(nn.Module):
        def __init__(self, embed_dim, hidden_dim):
            if begin:
                super().__init__()
            self.fc1 = nn.Linear(*first(embed_dim, hidden_dim), bias=bias)
            self.fc2 = nn.Linear(*second(embed_dim, hidden_dim), bias=bias)

        def forward(self, x):
            return self.fc2(F.gelu(self.fc1(x)))

    return Other


def widen(d: int, h: int) -> tuple[int, int]:
    return d, h


def narrow(d: int, h: int) -> tuple[int, int]:
    return h, d


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
        run_mlp("2 images of 5 tokens, MLP(6, 14)", (6, 14), waves(2, 5, 6)),
        run_mlp("1 image of 3 tokens, MLP(10, 7)", (10, 7), 2 * waves(1, 3, 10)),
    ],
    mistakes=[
        Mistake(
            "there is no bend between the two Linears, so they are one Linear: put `act` between "
            "them, and use what it gives",
            mlp(lambda m, x: m.fc2(m.fc1(x))),
        ),
        Mistake("the bend is ReLU; a ViT uses GELU, nn.GELU()", mlp_bent_by(F.relu)),
        Mistake(
            "this is GELU's approximation by tanh; take the exact form, nn.GELU() as it is",
            mlp_bent_by(lambda x: F.gelu(x, approximate="tanh")),
        ),
        Mistake("the bend is a sigmoid; a ViT uses GELU, nn.GELU()", mlp_bent_by(torch.sigmoid)),
        Mistake("the bend is SiLU; a ViT uses GELU, nn.GELU()", mlp_bent_by(F.silu)),
        Mistake(
            "`act` stands after fc2 as well; it belongs between the two Linears alone",
            mlp(lambda m, x: m.act(m.fc2(m.act(m.fc1(x))))),
        ),
        Mistake(
            "`act` stands after fc2; it belongs between the two Linears",
            mlp(lambda m, x: m.act(m.fc2(m.fc1(x)))),
        ),
        Mistake(
            "`act` stands before fc1; it belongs between the two Linears",
            mlp(lambda m, x: m.fc2(m.fc1(m.act(x)))),
        ),
        Mistake(
            "it adds x to its result; the block will do that, the MLP gives the change alone",
            mlp(lambda m, x: x + m.fc2(m.act(m.fc1(x)))),
        ),
        Mistake(
            "the hidden width is always 4 times embed_dim; use hidden_dim, which may be another",
            mlp(lambda m, x: m.fc2(m.act(m.fc1(x))), lambda width, hidden: 4 * width),
        ),
        Mistake(
            "the hidden width is embed_dim; hidden_dim is not used",
            linears(lambda d, h: (d, d), lambda d, h: (d, d)),
        ),
        Mistake(
            "the widths are turned round: nn.Linear takes the width that comes in, then the one "
            "that goes out; fc1 widens, fc2 narrows",
            linears(narrow, widen),
        ),
        Mistake(
            "fc2 ends as wide as it begins; it goes back, from hidden_dim to embed_dim",
            linears(widen, lambda d, h: (h, h)),
        ),
        Mistake(
            "fc2 takes embed_dim, but reads what fc1 gives; it goes from hidden_dim to embed_dim",
            linears(widen, lambda d, h: (d, d)),
        ),
        Mistake(
            "both Linears are the same, from embed_dim to hidden_dim; fc2 goes back",
            linears(widen, widen),
        ),
        Mistake("the Linears have no bias; leave it on", linears(widen, narrow, bias=False)),
        Mistake(
            "in an nn.Sequential the parts are called 0 and 2; call them self.fc1 and self.fc2, so "
            "that published weights find them",
            InSequence,
        ),
        Mistake(
            "`super().__init__()` is missing: it is the first line of __init__",
            linears(widen, narrow, begin=False),
        ),
        Mistake("forward gives nothing: the `return` is missing", mlp(lambda m, x: None)),
    ],
    keeps="MLP",
)


# EncoderBlock ------------------------------------------------------------------------------------


def block(steps: Callable, give: Callable | None = None) -> Callable:
    """A block class whose forward is `steps(block, x, attend)`, where `attend(tokens)` mixes them.

    Args:
        give: makes the result of the tokens, the weights, and whether the weights are asked for.
    """

    class Other(PackageBlock):
        def forward(self, x, mask=None, return_attention=False):
            kept = []

            def attend(tokens):
                mixed, weights = self.attn(tokens, mask, return_attention=True)
                kept.append(weights)
                return mixed

            x = steps(self, x, attend)
            if give:
                return give(x, kept[0], return_attention)
            return (x, kept[0]) if return_attention else x

    return Other


def right_steps(b, x, attend):
    x = x + attend(b.norm1(x))
    return x + b.mlp(b.norm2(x))


def post_norm(b, x, attend):
    x = b.norm1(x + attend(x))
    return b.norm2(x + b.mlp(x))


def norm_ends_branch(b, x, attend):
    x = x + b.norm1(attend(x))
    return x + b.norm2(b.mlp(x))


def normed_stream(b, x, attend):
    x = b.norm1(x)
    x = x + attend(x)
    x = b.norm2(x)
    return x + b.mlp(x)


def one_residual(b, x, attend):
    return x + b.mlp(b.norm2(attend(b.norm1(x))))


def mlp_reads_attention(b, x, attend):
    mixed = attend(b.norm1(x))
    return x + mixed + b.mlp(b.norm2(mixed))


def side_by_side(b, x, attend):
    return x + attend(b.norm1(x)) + b.mlp(b.norm2(x))


def attention_lost(b, x, attend):
    return x + b.mlp(b.norm2(x + attend(b.norm1(x))))


def without_first_norm(b, x, attend):
    x = x + attend(x)
    return x + b.mlp(b.norm2(x))


def without_second_norm(b, x, attend):
    x = x + attend(b.norm1(x))
    return x + b.mlp(x)


def without_norms(b, x, attend):
    x = x + attend(x)
    return x + b.mlp(x)


def one_norm_twice(b, x, attend):
    x = x + attend(b.norm1(x))
    return x + b.mlp(b.norm1(x))


def norms_swapped(b, x, attend):
    x = x + attend(b.norm2(x))
    return x + b.mlp(b.norm1(x))


def mlp_first(b, x, attend):
    x = x + b.mlp(b.norm2(x))
    return x + attend(b.norm1(x))


def second_norm_at_the_end(b, x, attend):
    x = x + attend(b.norm1(x))
    return b.norm2(x + b.mlp(x))


def without_first_residual(b, x, attend):
    x = attend(b.norm1(x))
    return x + b.mlp(b.norm2(x))


def added_in_place(b, x, attend):
    x += attend(b.norm1(x))
    x += b.mlp(b.norm2(x))
    return x


def second_in_place(b, x, attend):
    x = x + attend(b.norm1(x))
    x += b.mlp(b.norm2(x))
    return x


def tuple_added(b, x, attend):
    given = attend(b.norm1(x)), x
    return x + given


class NotAsked(PackageBlock):
    def forward(self, x, mask=None, return_attention=False):
        mixed, weights = self.attn(self.norm1(x), mask)
        x = x + mixed
        x = x + self.mlp(self.norm2(x))
        return (x, weights) if return_attention else x


class SharedNorm(PackageBlock):
    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__(embed_dim, num_heads, mlp_ratio)
        del self.norm1, self.norm2
        self.norm = nn.LayerNorm(embed_dim, eps=1e-6)

    def forward(self, x, mask=None, return_attention=False):
        mixed, weights = self.attn(self.norm(x), mask, return_attention=True)
        x = x + mixed
        x = x + self.mlp(self.norm(x))
        return (x, weights) if return_attention else x


class Maskless(PackageBlock):
    def forward(self, x, mask=None, return_attention=False):
        return super().forward(x, None, return_attention)


def sized(hidden: Callable[[int, float], int], eps: float = 1e-6, heads: int | None = None) -> Any:
    """A block class with another hidden width, norm or number of heads."""

    class Other(PackageBlock):
        def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
            super().__init__(embed_dim, heads or num_heads, norm_eps=eps)
            self.mlp = PackageMLP(embed_dim, hidden(embed_dim, mlp_ratio))

    return Other


class FixedSizes(PackageBlock):
    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__(embed_dim, num_heads, mlp_ratio)
        self.attn = MultiHeadAttention(768, 12)


def rounded(width: int, ratio: float) -> int:
    return round(width * ratio)


def run_block(what: str, x: Tensor, *sizes: Any, **options: Any) -> Trial:
    def use(made: nn.Module) -> Any:
        return told(lambda: untouched(made, x, **options))

    return explained(module(what, sizes, use))


def quiet(made: nn.Module) -> Any:
    """What a block gives for faint tokens when its attention adds nothing to them."""
    with torch.no_grad():
        for name, p in made.named_parameters():
            if name.startswith("attn.proj"):
                p.zero_()
    return told(untouched, made, 0.002 * waves(2, 3, 12))


def own_eps(which: str) -> Callable:
    """A block class of which one norm has torch's eps."""

    class Other(PackageBlock):
        def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
            super().__init__(embed_dim, num_heads, mlp_ratio)
            setattr(self, which, nn.LayerNorm(embed_dim))

    return Other


SIGHT = torch.ones(5, 5, dtype=torch.bool).tril()  # each token sees itself and those before it

EncoderBlock = Check(
    reference=PackageBlock,
    trials=[
        parts("the parts of EncoderBlock(12, 3)", PackageBlock, 12, 3),
        run_block("2 images of 5 tokens, EncoderBlock(12, 3)", waves(2, 5, 12), 12, 3),
        run_block("1 image of 4 tokens, EncoderBlock(10, 2)", 2 * waves(1, 4, 10), 10, 2),
        parts(
            "the parts of EncoderBlock(14, 7, mlp_ratio=61 / 14)",
            PackageBlock,
            14,
            7,
            mlp_ratio=61 / 14,
        ),
        run_block("faint tokens, no number above 0.002", 0.002 * waves(2, 3, 12), 12, 3),
        explained(module("faint tokens, and an attention that adds nothing", (12, 3), quiet)),
        run_block("return_attention=True", waves(2, 5, 12), 12, 3, return_attention=True),
        run_block("a mask", waves(2, 5, 12), 12, 3, mask=SIGHT),
    ],
    mistakes=[
        Mistake(
            "this is post-norm: the norm stands on the road, after the sum; a ViT normalises only "
            "what a branch reads, x + attention(norm1(x))",
            block(post_norm),
        ),
        Mistake(
            "the norms stand at the end of the branches; put each at the start, where the branch "
            "reads x",
            block(norm_ends_branch),
        ),
        Mistake(
            "the change is added to the normalised x; add it to x itself, and normalise only what "
            "the branch reads",
            block(normed_stream),
        ),
        Mistake(
            "nothing is added: each branch replaces x; write x = x + …",
            block(lambda b, x, attend: b.mlp(b.norm2(attend(b.norm1(x))))),
        ),
        Mistake(
            "attention replaces x; add what it gives, x = x + …",
            block(without_first_residual),
        ),
        Mistake(
            "the MLP replaces x; add what it gives, x = x + …",
            block(lambda b, x, attend: b.mlp(b.norm2(x + attend(b.norm1(x))))),
        ),
        Mistake(
            "there is one sum round the whole block; add twice, what attention gives and then what "
            "the MLP gives",
            block(one_residual),
        ),
        Mistake(
            "the MLP reads what attention gave; it reads the stream, after attention was added",
            block(mlp_reads_attention),
        ),
        Mistake(
            "the MLP reads x as it was before attention was added; add attention's change first",
            block(side_by_side),
        ),
        Mistake(
            "attention's change is lost: the last sum adds to the x from before attention",
            block(attention_lost),
        ),
        Mistake(
            "attention reads x itself; give it norm1(x), and use what the norm gives",
            block(without_first_norm),
        ),
        Mistake(
            "the MLP reads x itself; give it norm2(x), and use what the norm gives",
            block(without_second_norm),
        ),
        Mistake(
            "no norm is used: attention reads norm1(x), the MLP norm2(x)", block(without_norms)
        ),
        Mistake("norm1 is used twice; the MLP reads norm2(x)", block(one_norm_twice)),
        Mistake(
            "the norms are swapped: attention reads norm1(x), the MLP norm2(x)",
            block(norms_swapped),
        ),
        Mistake("the MLP comes first; attention does", block(mlp_first)),
        Mistake(
            "norm2 stands after the last sum; it belongs before the MLP, inside its branch",
            block(second_norm_at_the_end),
        ),
        Mistake("the mask does not reach the attention; hand it on, attn(…, mask, …)", Maskless),
        Mistake(
            "it always gives the weights; give them only where return_attention is True",
            block(right_steps, lambda x, weights, asked: (x, weights)),
        ),
        Mistake(
            "it never gives the weights; with return_attention=True give (tokens, weights)",
            block(right_steps, lambda x, weights, asked: x),
        ),
        Mistake(
            "the weights come first; give the tokens, then the weights",
            block(right_steps, lambda x, weights, asked: (weights, x) if asked else x),
        ),
        Mistake(
            "the weights are averaged over the heads; give all of them, (B, h, N, N)",
            block(right_steps, lambda x, weights, asked: (x, weights.mean(1)) if asked else x),
        ),
        Mistake(
            "the norms have torch's own eps, 1e-5; a ViT's is 1e-6: nn.LayerNorm(…, eps=1e-6)",
            sized(rounded, eps=1e-5),
        ),
        Mistake("norm1 has torch's own eps, 1e-5; a ViT's is 1e-6", own_eps("norm1")),
        Mistake("norm2 has torch's own eps, 1e-5; a ViT's is 1e-6", own_eps("norm2")),
        Mistake(
            "the hidden width is cut off to a whole number, and 14 * (61 / 14) is a little below "
            "61; round it: round(mlp_ratio * embed_dim)",
            sized(lambda width, ratio: int(width * ratio)),
        ),
        Mistake(
            "the hidden width is always 4 times embed_dim; use mlp_ratio, which may be another",
            sized(lambda width, ratio: 4 * width),
        ),
        Mistake(
            "the MLP's hidden width is embed_dim; make it mlp_ratio times as wide",
            sized(lambda width, ratio: width),
        ),
        Mistake(
            "the MLP's hidden width is mlp_ratio; it is mlp_ratio times embed_dim",
            sized(lambda width, ratio: round(ratio)),
        ),
        Mistake(
            "the attention has one head whatever num_heads says; hand num_heads on",
            sized(rounded, heads=1),
        ),
        Mistake(
            "the attention has the sizes of B/16, 768 and 12; hand on embed_dim and num_heads",
            FixedSizes,
        ),
        Mistake(
            "mlp_ratio * embed_dim is a float, 48.0; a Linear takes a whole number: round it",
            sized(lambda width, ratio: width * ratio),  # type: ignore[arg-type]
        ),
        Mistake(
            "attention gives tokens and weights only when asked, attn(…, return_attention=True); "
            "else it gives tokens alone, and `mixed, weights = …` or [0] takes its images apart",
            NotAsked,
        ),
        Mistake(
            "the two norms are one; make two, norm1 and norm2, each with its own weight and bias",
            SharedNorm,
        ),
        Mistake(
            "`+=` writes into the tensor that was given; make a new one, x = x + …",
            block(added_in_place),
        ),
        Mistake(
            "`+=` writes over numbers that the gradient still needs, and backward fails; make a "
            "new tensor, x = x + …",
            block(second_in_place),
        ),
        Mistake(
            "attention, asked with return_attention=True, gives two things, the mixed tokens and "
            "the weights; take them apart, mixed, weights = …, and add the tokens alone",
            block(tuple_added),
        ),
        Mistake(
            "forward gives nothing: the `return` is missing",
            block(right_steps, lambda x, weights, asked: None),
        ),
    ],
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


def not_centred(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-6) -> Tensor:
    return x / (x.var(-1, correction=0, keepdim=True) + eps).sqrt() * weight + bias


def root_mean_square(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-6) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * weight + bias


normed = by_hand()


def axis_dropped(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-6) -> Tensor:
    return (x - x.mean(-1)) / (x.var(-1, correction=0) + eps).sqrt() * weight + bias


def ready_made(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-6) -> Tensor:
    return F.layer_norm(x, weight.shape, weight, bias, eps)


def centred_in_place(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-6) -> Tensor:
    x -= x.mean(-1, keepdim=True)
    return normed(x, weight, bias, eps)


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
    mistakes=[
        Mistake(
            "the variance divides by D - 1; LayerNorm divides by D (correction=0, or the mean of "
            "the squares)",
            by_hand(correction=1),
        ),
        Mistake(
            "it normalises over the tokens, so they leak into each other; take the mean and the "
            "variance over the last axis, dim=-1",
            by_hand(dim=-2),
        ),
        Mistake(
            "it normalises over axis 1, which is the last one only where there are two; the last "
            "one of any number of axes is dim=-1",
            by_hand(dim=1),
        ),
        Mistake(
            "it normalises over all axes at once; each token has its own mean and variance, over "
            "the last axis, dim=-1",
            by_hand(dim=None),
        ),
        Mistake(
            "it divides by the variance; divide by its square root",
            by_hand(divide=lambda centred, variance, eps: centred / (variance + eps)),
        ),
        Mistake(
            "eps is added after the root; add it to the variance, under the root",
            by_hand(divide=lambda centred, variance, eps: centred / (variance.sqrt() + eps)),
        ),
        Mistake(
            "the variance divides by D - 1, and eps is added after the root; divide by D, and add "
            "eps to the variance, under the root",
            by_hand(
                correction=1,
                divide=lambda centred, variance, eps: centred / (variance.sqrt() + eps),
            ),
        ),
        Mistake(
            "eps is not used: a token whose numbers are all equal becomes nan",
            by_hand(divide=lambda centred, variance, eps: centred / variance.sqrt()),
        ),
        Mistake(
            "eps is added to the result; add it to the variance, under the root: mind the brackets",
            by_hand(divide=lambda centred, variance, eps: centred / variance.sqrt() + eps),
        ),
        Mistake(
            "eps is always 1e-6; use the one that is given",
            by_hand(divide=lambda centred, variance, eps: centred / (variance + 1e-6).sqrt()),
        ),
        Mistake(
            "the mean is not subtracted from what stands above the line, x - mean", not_centred
        ),
        Mistake(
            "the mean is not subtracted, neither above the line nor in the variance",
            root_mean_square,
        ),
        Mistake(
            "the weight and the bias are not used: multiply by the one, then add the other",
            lambda x, weight, bias, eps=1e-6: normed(x, torch.ones(()), torch.zeros(()), eps),
        ),
        Mistake(
            "the bias is not used: add it at the end",
            lambda x, weight, bias, eps=1e-6: normed(x, weight, torch.zeros(()), eps),
        ),
        Mistake(
            "the weight is not used: multiply by it before you add the bias",
            lambda x, weight, bias, eps=1e-6: normed(x, torch.ones(()), bias, eps),
        ),
        Mistake(
            "the bias is added before the weight multiplies; multiply first",
            lambda x, weight, bias, eps=1e-6: normed(x, weight, bias * weight, eps),
        ),
        Mistake(
            "weight and bias are taken for each other: multiply by the weight, add the bias",
            lambda x, weight, bias, eps=1e-6: normed(x, bias, weight, eps),
        ),
        Mistake(
            "the mean and the variance lost the last axis, so the shapes do not fit: keep it, "
            "keepdim=True",
            axis_dropped,
        ),
        Mistake("it calls torch's own norm; write it out: mean, variance, root", ready_made),
        Mistake(
            "`-=` writes into the tensor that was given; make a new one, x = x - …",
            centred_in_place,
        ),
        Mistake(
            "it works for three axes alone; x may have any number, with D the last: use dim=-1 and "
            "x.shape[-1]",
            three_axes,
        ),
    ],
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
        x = torch.randn(2, count, 8)
        given = x.clone()
        result = answer(encoder, given)
        if not torch.equal(x, given):
            raise InputChangedError
        if isinstance(result, Tensor) and result.ndim == 4:
            return Verdict("it gives one tensor of all changes")
        return list(result) if isinstance(result, tuple) else result

    return explained(Trial(f"an encoder of {depth} blocks, {count} tokens", run))


def changes(encoder: Any, x: Tensor) -> list[Tensor]:
    """What each block's attention and MLP add to the stream."""
    found = []
    for block in encoder:
        found.append(block.attn(block.norm1(x)))
        x = x + found[-1]
        found.append(block.mlp(block.norm2(x)))
        x = x + found[-1]
    return found


def changes_without_norm(encoder, x):
    found = []
    for block in encoder:
        found.append(block.attn(x))
        x = x + found[-1]
        found.append(block.mlp(x))
        x = x + found[-1]
    return found


def changes_with_one_norm(encoder, x):
    found = []
    for block in encoder:
        found.append(block.attn(block.norm1(x)))
        x = x + found[-1]
        found.append(block.mlp(block.norm1(x)))
        x = x + found[-1]
    return found


def changes_side_by_side(encoder, x):
    found = []
    for block in encoder:
        found += [block.attn(block.norm1(x)), block.mlp(block.norm2(x))]
        x = x + found[-2] + found[-1]
    return found


def changes_where_mlp_reads_attention(encoder, x):
    found = []
    for block in encoder:
        found.append(block.attn(block.norm1(x)))
        found.append(block.mlp(block.norm2(found[-1])))
        x = x + found[-2] + found[-1]
    return found


def changes_of_the_start(encoder, x):
    return [change for block in encoder for change in changes([block], x)]


def changes_replacing(encoder, x):
    found = []
    for block in encoder:
        found.append(block.attn(block.norm1(x)))
        found.append(block.mlp(block.norm2(found[-1])))
        x = found[-1]
    return found


def streams(encoder, x):
    found = []
    for change in changes(encoder, x):
        x = x + change
        found.append(x)
    return found


def changes_by_block(encoder, x):
    found = changes(encoder, x)
    return [a + b for a, b in zip(found[::2], found[1::2], strict=True)]


def changes_by_kind(encoder, x):
    found = changes(encoder, x)
    return found[::2] + found[1::2]


def changes_with_tuples(encoder, x):
    given = encoder[0].attn(x, return_attention=True)
    return [x + given]


def changes_in_place(encoder, x):
    found = changes(encoder, x)
    x += found[0]
    return found


def changes_in_pairs(encoder, x):
    found = changes(encoder, x)
    return list(zip(found[::2], found[1::2], strict=True))


contributions = Check(
    reference=changes,
    trials=[taken_apart(depth=2, count=3), taken_apart(depth=3, count=5)],
    mistakes=[
        Mistake(
            "the branches read the stream itself; attention reads norm1(x), the MLP norm2(x)",
            changes_without_norm,
        ),
        Mistake("the MLP reads norm1(x); it has a norm of its own, norm2", changes_with_one_norm),
        Mistake(
            "the MLP reads the stream as it was before attention wrote to it; add attention's "
            "change to x first",
            changes_side_by_side,
        ),
        Mistake(
            "the MLP reads attention's change alone; it reads the stream, x with that change added",
            changes_where_mlp_reads_attention,
        ),
        Mistake(
            "every block reads the x that came in at the start; what one block gives is what the "
            "next one reads",
            changes_of_the_start,
        ),
        Mistake(
            "each change replaces the stream; add it instead (x + change)",
            changes_replacing,
        ),
        Mistake(
            "these are the streams after each change; give the changes alone",
            streams,
        ),
        Mistake(
            "this is one change a block; give two, attention's and the MLP's, each by itself",
            changes_by_block,
        ),
        Mistake(
            "the changes are right, but not in the order in which they are added: attention and "
            "MLP of the first block, then those of the next",
            changes_by_kind,
        ),
        Mistake(
            "the changes are right, but in each block the MLP's stands before attention's",
            lambda encoder, x: [
                change for pair in changes_in_pairs(encoder, x) for change in pair[::-1]
            ],
        ),
        Mistake(
            "this is one pair a block; give all changes in one list, attention and MLP in turn",
            changes_in_pairs,
        ),
        Mistake(
            "this is the sum of all changes; give each by itself, in a list",
            lambda encoder, x: sum(changes(encoder, x)),
        ),
        Mistake(
            "the list begins with x itself; give the changes alone",
            lambda encoder, x: [x, *changes(encoder, x)],
        ),
        Mistake(
            "this is one tensor; give a list, of one tensor (B, N, D) for each change",
            lambda encoder, x: torch.stack(changes(encoder, x)),
        ),
        Mistake(
            "`+=` writes into the x that was given; make a new one, x = x + change",
            changes_in_place,
        ),
        Mistake(
            "block.attn, asked with return_attention=True, gives two things, the tokens and the "
            "weights; do not ask, or take them apart",
            changes_with_tuples,
        ),
        Mistake(
            "these are the changes of the first block alone; loop over all blocks",
            lambda encoder, x: changes(encoder[:1], x),
        ),
        Mistake(
            "these are the changes of the first two blocks alone; loop over all blocks",
            lambda encoder, x: changes(encoder[:2], x),
        ),
    ],
)


# unheard_blocks ----------------------------------------------------------------------------------


class OnlyAttention(Encoder):
    """Keeps the weights of each block and throws its tokens away."""

    def forward(self, x, mask=None, return_attention=False):
        attention = [block(x, mask, return_attention=True)[1] for block in self]
        return (x, attention) if return_attention else x


class OnlyLast(Encoder):
    """Gives every block the same x, and keeps what the last one makes of it."""

    def forward(self, x, mask=None, return_attention=False):
        results = [block(x, mask, return_attention=True) for block in self]
        tokens, attention = results[-1][0], [weights for _, weights in results]
        return (tokens, attention) if return_attention else tokens


class StopsEarly(Encoder):
    """Never runs its last block."""

    def forward(self, x, mask=None, return_attention=False):
        return Encoder(list(self)[:-1])(x, mask, return_attention)


class SkipsSecond(Encoder):
    """Runs its second block beside the road."""

    def forward(self, x, mask=None, return_attention=False):
        attention = []
        for number, block in enumerate(self):
            out, weights = block(x, mask, return_attention=True)
            x = x if number == 1 else out
            attention.append(weights)
        return (x, attention) if return_attention else x


def listened_to(what: str, kind: type[Encoder], depth: int, trained: bool = False) -> Trial:
    """Ask which blocks of such an encoder are not heard, and see that its weights are left."""

    def run(answer: Callable) -> Any:
        encoder = shaken(stack(kind, depth))
        x = torch.randn(2, 3, 8)
        if trained:  # one step in which all blocks were heard
            healthy = Encoder(encoder)
            healthy(x).sum().backward()
        before = {name: weight.clone() for name, weight in encoder.state_dict().items()}
        given = x.clone()
        try:
            result = answer(encoder, given)
        except RuntimeError as error:
            if "does not require grad" not in str(error):
                raise
            return Verdict("backward fails: the tokens depend on no weight at all")
        except AttributeError as error:
            if "'NoneType'" not in str(error):
                raise
            return Verdict("a `grad` is None where a number is asked for")
        if not torch.equal(x, given):
            raise InputChangedError
        after = encoder.state_dict()
        left = all(torch.allclose(after[name], before[name], atol=1e-5) for name in before)
        if isinstance(result, (set, range)):
            return Verdict(f"it gives a {type(result).__name__}; give a list, [0, 2]")
        return result if left or result is ... else Verdict("the weights are not as they were")

    return Trial(what, run)


def without_gradient(encoder: Encoder, x: Tensor) -> list[int]:
    """The numbers of the blocks none of whose parameters has a gradient from the tokens."""
    encoder.zero_grad()
    tokens = encoder(x)
    if tokens.requires_grad:
        tokens.sum().backward()
    return [i for i, block in enumerate(encoder) if not has_gradient(block)]


def has_gradient(block: nn.Module) -> bool:
    return any(p.grad is not None for p in block.parameters())


def unheard_with_stale_gradients(encoder, x):
    tokens = encoder(x)
    if tokens.requires_grad:
        tokens.sum().backward()
    return [i for i, block in enumerate(encoder) if not has_gradient(block)]


def unheard_in_all_results(encoder, x):
    encoder.zero_grad()
    tokens, attention = encoder(x, return_attention=True)
    (tokens.sum() + sum(weights.sum() for weights in attention)).backward()
    return [i for i, block in enumerate(encoder) if not has_gradient(block)]


def unheard_by_overwriting(encoder, x):
    unheard = without_gradient(encoder, x)
    shaken(encoder)
    return unheard


def unheard_by_backward_alone(encoder, x):
    encoder.zero_grad()
    encoder(x).sum().backward()
    return [i for i, block in enumerate(encoder) if not has_gradient(block)]


def unheard_by_zero(encoder, x):
    unheard = without_gradient(encoder, x)
    return None.abs() if unheard else unheard  # type: ignore[attr-defined]


def unheard_with_x_changed(encoder, x):
    x += 1
    return without_gradient(encoder, x)


def unheard_parameters(encoder, x):
    without_gradient(encoder, x)
    return [i for i, p in enumerate(encoder.parameters()) if p.grad is None]


def unheard_names(encoder, x):
    without_gradient(encoder, x)
    return [name for name, p in encoder.named_parameters() if p.grad is None]


def unheard_by_leaving_out(encoder, x):
    usual, found = encoder(x), []
    for number in range(len(encoder)):
        rest = type(encoder)(block for i, block in enumerate(encoder) if i != number)
        if torch.equal(rest(x), usual):
            found.append(number)
    return found


def heard(encoder, x):
    unheard = without_gradient(encoder, x)
    return [i for i in range(len(encoder)) if i not in unheard]


def flags(encoder, numbers):
    return [i in numbers for i in range(len(encoder))]


unheard_blocks = Check(
    reference=without_gradient,
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
    mistakes=[
        Mistake(
            "the weights are not as they were: a test must leave the model as it found it; put "
            "them back from a clone, or try it on a copy (copy.deepcopy)",
            unheard_by_overwriting,
        ),
        Mistake(
            "gradients left from an earlier step look like new ones: clear them first "
            "(encoder.zero_grad())",
            unheard_with_stale_gradients,
        ),
        Mistake(
            "the attention weights are counted as well: a block that only gives those is unheard; "
            "look at the tokens alone",
            unheard_in_all_results,
        ),
        Mistake(
            "it finds every block heard, in a broken encoder too: run the encoder itself, "
            "encoder(x); a loop of your own over its blocks is always healthy",
            lambda encoder, x: [],
        ),
        Mistake(
            "leaving a block out moves the others to other places, and another forward may depend "
            "on those; keep all blocks where they are, and change the weights of one",
            unheard_by_leaving_out,
        ),
        Mistake("these are the blocks that are heard; give the others", heard),
        Mistake(
            "this is how many blocks are unheard; give their numbers, in a list",
            lambda encoder, x: len(without_gradient(encoder, x)),
        ),
        Mistake(
            "this is one True or False a block; give the numbers of the unheard ones",
            lambda encoder, x: flags(encoder, without_gradient(encoder, x)),
        ),
        Mistake(
            "this is one True or False a block; give the numbers of the unheard ones",
            lambda encoder, x: flags(encoder, heard(encoder, x)),
        ),
        Mistake(
            "the blocks are counted from 1; count from 0, as Python does",
            lambda encoder, x: [1 + number for number in without_gradient(encoder, x)],
        ),
        Mistake(
            "the numbers are right, but not in order: smallest first",
            lambda encoder, x: without_gradient(encoder, x)[::-1],
        ),
        Mistake(
            "the numbers are texts; give whole numbers, [0, 2]",
            lambda encoder, x: [str(number) for number in without_gradient(encoder, x)],
        ),
        Mistake(
            "this is the first unheard block alone; give all of them",
            lambda encoder, x: without_gradient(encoder, x)[:1],
        ),
        Mistake(
            "backward fails where the tokens depend on no weight at all: tokens.requires_grad is "
            "False then, there is no gradient to send back, and no block is heard",
            unheard_by_backward_alone,
        ),
        Mistake(
            "a weight that the tokens do not depend on has no gradient: its `grad` is None, not 0; "
            "ask `grad is None`",
            unheard_by_zero,
        ),
        Mistake(
            "these are numbers of weights; a block has many: give a block's number where all of "
            "its weights are unheard",
            unheard_parameters,
        ),
        Mistake(
            "these are names of weights; give the numbers of the blocks, each once", unheard_names
        ),
        Mistake(
            "the x that was given is not as it was; leave it, and work on x.clone()",
            unheard_with_x_changed,
        ),
    ],
)
