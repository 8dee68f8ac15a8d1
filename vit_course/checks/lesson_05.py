"""Build cells and exercises of lesson 05."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from vit_steps import encoder
from vit_steps.encoder import Encoder

from .compare import Verdict, compare, kind_of
from .exercise import Exercise
from .trials import Trial, call, module, parameters, untouched, waves

MLP = Exercise(
    answer="""
class MLP(nn.Module):
    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden_dim, embed_dim)

    def forward(self, x):  # (B, N, D)
        x = self.act(self.fc1(x))  # (B, N, hidden)
        return self.fc2(x)  # (B, N, D)
""",
    trials=[
        module("2 images of 5 tokens, MLP(6, 14)", (6, 14), waves(2, 5, 6)),
        module("1 image of 3 tokens, MLP(10, 7)", (10, 7), 2 * waves(1, 3, 10)),
    ],
    wrong="""
there is no activation between the two Linears, so they are one Linear: put `act` between them, and
use what it gives
    self.act( => (
the activation is ReLU; a ViT uses GELU, nn.GELU()
    nn.GELU() => nn.ReLU()
this is GELU's approximation by tanh; take the exact form, nn.GELU() as it is
    nn.GELU() => nn.GELU(approximate="tanh")
this is the quick form of GELU, x · sigmoid(1.702 x); take the exact one, nn.GELU()
    nn.GELU() => lambda h: h * torch.sigmoid(1.702 * h)
GELU is x times the normal curve's share below x, ½ (1 + erf(x / √2)); yours has no √2 there
    nn.GELU() => lambda h: h * (1 + torch.erf(h)) / 2 ‖ lambda h: h * (1 + torch.erf(h / 2)) / 2
the activation is sigmoid, SiLU or tanh; a ViT uses GELU, nn.GELU()
    nn.GELU() => nn.Sigmoid() ‖ nn.SiLU() ‖ nn.Tanh()
`act` stands after fc2; it belongs between the two Linears alone
    self.fc2(x) => self.act(self.fc2(x))
    self.fc2(x) => self.act(self.fc2(x)) ;; self.act(self.fc1(x)) => self.fc1(x)
`act` stands before fc1; it belongs between the two Linears alone
    self.fc1(x) => self.fc1(self.act(x))
    self.act(self.fc1(x)) => self.fc1(self.act(x))
it adds x to its result; the block will do that, the MLP gives the change alone
    forward… => forward(self, x): ⏎     start = x ;; return self.fc2 => return start + self.fc2
the hidden width is 4 times embed_dim, whatever hidden_dim says; use hidden_dim
    super().__init__() => super().__init__() ⏎ hidden_dim = 4 * embed_dim
the hidden width is embed_dim; hidden_dim is not used
    super().__init__() => super().__init__() ⏎ hidden_dim = embed_dim
the widths are turned round: nn.Linear takes the width that comes in, then the one that goes out;
fc1 widens, fc2 narrows
    self, embed_dim, hidden_dim => self, hidden_dim, embed_dim
fc1 has other widths than it needs: it goes from embed_dim to hidden_dim
    (embed_dim, hidden_dim) => (embed_dim, embed_dim) ‖ (hidden_dim, hidden_dim) ‖
        (hidden_dim, embed_dim)
fc2 has other widths than it needs: it goes back, from hidden_dim to embed_dim
    (hidden_dim, embed_dim) => (hidden_dim, hidden_dim) ‖ (embed_dim, embed_dim) ‖
        (embed_dim, hidden_dim)
the sizes are fixed numbers; use embed_dim and hidden_dim
    self.fc1 = => embed_dim, hidden_dim = AS ⏎ self.fc1 = ;; AS => 6, 14 ‖ 10, 7 ‖ 768, 3072
fc1 has no bias; leave it on
    (embed_dim, hidden_dim) => (embed_dim, hidden_dim, bias=False)
fc2 has no bias; leave it on
    (hidden_dim, embed_dim) => (hidden_dim, embed_dim, bias=False)
in an nn.Sequential the parts are called 0 and 2; call them self.fc1 and self.fc2, so that published
weights find them
    self.fc1 = => fc1 = ;; self.act = => act = ;; x = self… => return self.net(x) ;;
        self.fc2 =… => self.net = nn.Sequential(fc1, act, nn.Linear(hidden_dim, embed_dim))
""",
    does="Each token is now worked on alone: wider, through GELU, and back.",
)


def quiet(block: nn.Module, x: Tensor, **options: Any) -> Any:
    """Give what a block makes of tokens when its attention adds nothing to them."""
    with torch.no_grad():
        for name, p in block.named_parameters():
            if name.startswith("attn.proj"):
                p.zero_()
    return untouched(block, x, **options)


def in_order(answer: Callable) -> Any:
    """Say whether attention is made before the MLP, as a seed draws their weights."""
    block = answer(12, 3)
    if not isinstance(block, nn.Module):
        return block
    names = [name for name, _ in block.named_children() if name in ("attn", "mlp")]
    return Verdict(f"its parts are made in the order {', '.join(names)}")


SIGHT = torch.ones(5, 5, dtype=torch.bool).tril()  # each token sees itself and those before it
BOTH: dict[str, Any] = dict(mask=SIGHT, return_attention=True, quick=True)

EncoderBlock = Exercise(
    answer="""
class EncoderBlock(nn.Module):
    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__()
        self.norm1 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.attn = MultiHeadAttention(embed_dim, num_heads)
        self.norm2 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.mlp = MLP(embed_dim, round(mlp_ratio * embed_dim))

    def forward(self, x, mask=None, return_attention=False):  # x (B, N, D)
        mixed, weights = self.attn(self.norm1(x), mask, return_attention=True)
        x = x + mixed
        x = x + self.mlp(self.norm2(x))
        return (x, weights) if return_attention else x
""",
    trials=[
        parameters("the parameters of EncoderBlock(14, 7, mlp_ratio=61 / 14)", 14, 7, 61 / 14),
        module("2 images of 5 tokens, EncoderBlock(12, 3)", (12, 3), waves(2, 5, 12), quick=True),
        module(
            "a mask and return_attention=True, EncoderBlock(14, 2, mlp_ratio=29 / 14)",
            (14, 2, 29 / 14),
            3 * waves(2, 5, 14),
            **BOTH,
        ),
        module(
            "tokens with no number above 0.002, an attention that adds nothing, and the same mask",
            (12, 3),
            0.002 * waves(2, 5, 12),
            use=quiet,
            **BOTH,
        ),
        module("a mask, EncoderBlock(12, 3)", (12, 3), 3 * waves(2, 5, 12), mask=SIGHT),
        Trial("a new block", in_order),
    ],
    wrong="""
a norm stands after the sum, as in a post-norm block; a ViT normalises only what a branch reads:
x + attention(norm1(x)), then x + MLP(norm2(x))
    self.norm1(x) => x ;; x + mixed => self.norm1(x + mixed) ‖ self.norm1(x + mixed) ;;
        x + self.mlp(self.norm2(x)) => self.norm2(x + self.mlp(x))
    x + self.mlp(self.norm2(x)) => self.norm2(x + self.mlp(x))
a norm stands at the end of its branch; put it at the start, where the branch reads x
    self.norm1(x) => x ;; x + mixed => x + self.norm1(mixed) ‖ x + self.norm1(mixed) ;;
        self.mlp(self.norm2(x)) => self.norm2(self.mlp(x))
    self.mlp(self.norm2(x)) => self.norm2(self.mlp(x))
a branch has a norm at its end as well; one stands at its start, and none at its end
    x + mixed => x + self.norm1(mixed) ‖ x + self.norm2(mixed)
    self.mlp(self.norm2(x)) => self.norm2(self.mlp(self.norm2(x)))
attention's change is added to the normalised x; add it to x itself: norm1 belongs inside
attention's branch
    x + mixed => self.norm1(x) + mixed
the MLP's change is added to the normalised x; add it to x itself: norm2 belongs inside the MLP's
branch
    x + self.mlp => self.norm2(x) + self.mlp
both changes are added to what the norms made of x; add them to x itself: a norm belongs inside its
branch
    x + mixed => self.norm1(x) + mixed ;; x + self.mlp => self.norm2(x) + self.mlp
nothing is added: what a branch gives replaces x; add it, x = x + …
    x = x + mixed => x = mixed ;; x + self.mlp => self.mlp
attention's result replaces x; add it, x = x + …
    x = x + mixed => x = mixed
the MLP's result replaces x; add it, x = x + …
    x + self.mlp => self.mlp
there is one sum round the whole block; add twice, what attention gives and then what the MLP gives
    self.norm2(x) => self.norm2(mixed) ;; x = x + mixed => x = x
the MLP reads what attention gave; it reads x with that added
    self.norm2(x) => self.norm2(mixed)
the MLP reads x as it was before attention's change was added; add that first
    self.norm2(x) => self.norm2(x - mixed)
attention's change is lost: the last sum adds to the x from before attention
    x = x + mixed => start, x = x, x + mixed ;; x + self.mlp => start + self.mlp
attention reads x itself; give it norm1(x), and use what the norm gives
    self.norm1(x) => x
the MLP reads x itself; give it norm2(x), and use what the norm gives
    self.norm2(x) => x
a branch reads the other's norm: attention reads norm1(x), the MLP reads norm2(x)
    self.norm2(x) => self.norm1(x)
    self.norm1(x) => self.norm(x) ;; self.norm2(x) => self.norm1(x) ;; self.norm(x) => self.norm2(x)
the MLP comes first; attention does
    x = x + self… => x = x ;; mixed, weights = => x = x + self.mlp(self.norm2(x)) ⏎ mixed, weights =
the MLP's change is lost: return x with it added
    x = x + self.mlp => y = x + self.mlp
it cannot be called without a mask; give it a default: mask=None
    mask=None => mask
the mask does not reach the attention; hand it on, attn(…, mask, …)
    , mask, => , None,
the mask reaches the attention only in one of the two cases, with return_attention=True and without
it; hand it on in both
    , mask, => , None if return_attention else mask, ‖ , mask if return_attention else None,
with return_attention=True a branch reads x itself; give it its norm, norm1(x) or norm2(x), in both
cases
    self.norm1(x) => x if return_attention else self.norm1(x) ‖ x if return_attention else
        self.norm1(x) ;; self.norm2(x) => x if return_attention else self.norm2(x)
    self.norm2(x) => x if return_attention else self.norm2(x)
a branch reads its norm only with return_attention=True; give it norm1(x) or norm2(x) in both cases
    self.norm1(x) => self.norm1(x) if return_attention else x ‖ self.norm1(x) if return_attention
        else x ;; self.norm2(x) => self.norm2(x) if return_attention else x
    self.norm2(x) => self.norm2(x) if return_attention else x
attention's change is added only with return_attention=True; add it in both cases
    x = x + mixed => x = x + mixed if return_attention else x
with return_attention=True attention's change is not added; add it in both cases
    x = x + mixed => x = x if return_attention else x + mixed
with return_attention=True the MLP's change is not added; add it in both cases
    x = x + self.mlp => x = x if return_attention else x + self.mlp
it always gives the weights; give them only where return_attention is True
    (x, weights) if return_attention else x => x, weights
it never gives the weights; with return_attention=True give (tokens, weights)
    (x, weights) if return_attention else x => x
the weights come first; give the tokens, then the weights
    (x, weights) if => (weights, x) if
the weights are those of a second call, on what comes out of the block; give those of the call that
made the change
    return (x, weights) if => weights = self.attn(self.norm1(x), mask, return_attention=True)[1] ⏎
        return (x, weights) if
the weights are averaged over the heads; give all of them, (B, h, N, N)
    (x, weights) if => (x, weights.mean(1)) if
norm1 has torch's own eps, 1e-5; a ViT's is 1e-6: nn.LayerNorm(…, eps=1e-6)
    self.norm1 = nn.LayerNorm(embed_dim, eps=1e-6) => self.norm1 = nn.LayerNorm(embed_dim)
norm2 has torch's own eps, 1e-5; a ViT's is 1e-6: nn.LayerNorm(…, eps=1e-6)
    self.norm2 = nn.LayerNorm(embed_dim, eps=1e-6) => self.norm2 = nn.LayerNorm(embed_dim)
both norms have torch's own eps, 1e-5; a ViT's is 1e-6: nn.LayerNorm(…, eps=1e-6)
    norm1 = nn.LayerNorm(embed_dim, eps=1e-6) => norm1 = nn.LayerNorm(embed_dim) ;;
        norm2 = nn.LayerNorm(embed_dim, eps=1e-6) => norm2 = nn.LayerNorm(embed_dim)
the two norms are one; make two, norm1 and norm2, each with its own weight and bias
    self.norm2 =… => self.norm2 = self.norm1 ‖ pass ;; self.norm2(x) => self.norm(x) ;;
        self.norm1 = => self.norm = ;; self.norm1(x) => self.norm(x)
the hidden width is cut off to a whole number, and 14 * (61 / 14) is a little below 61; round it:
round(mlp_ratio * embed_dim)
    round( => int(
the hidden width is rounded up, and 14 * (29 / 14) is a little above 29; round it to the nearest
whole number: round(mlp_ratio * embed_dim)
    round( => math.ceil(
the hidden width is always 4 times embed_dim; it is mlp_ratio times embed_dim, whatever mlp_ratio is
    round(mlp_ratio * embed_dim) => 4 * embed_dim
the ratio itself is rounded; round the width: round(mlp_ratio * embed_dim)
    round(mlp_ratio * embed_dim) => round(mlp_ratio) * embed_dim
the MLP's hidden width is embed_dim; make it mlp_ratio times as wide
    round(mlp_ratio * embed_dim) => embed_dim
the MLP's hidden width is mlp_ratio; it is mlp_ratio times embed_dim
    round(mlp_ratio * embed_dim) => round(mlp_ratio)
a width is a float, such as 48.0; a Linear takes a whole number: round it
    round(mlp_ratio * embed_dim) => mlp_ratio * embed_dim
    ! TypeError: .*(a float; give a whole number|empty[(])
the attention has one head whatever num_heads says; hand num_heads on
    (embed_dim, num_heads) => (embed_dim, 1)
attention is given the width of a head; it wants their number, num_heads
    (embed_dim, num_heads) => (embed_dim, embed_dim // num_heads)
the sizes are fixed numbers; hand on embed_dim and num_heads
    (embed_dim, num_heads) => (768, 12) ;; , mask, return_attention=True => ;; x = x + mixed => ;;
        x = x + self.mlp(self.norm2(x)) => ;; return (x, weights) if return_attention else x =>
attention gives tokens and weights only when asked, attn(…, return_attention=True); else it gives
tokens alone, and `mixed, weights = …` or [0] takes its images apart
    , return_attention=True => 
    return_attention=True => return_attention
make attn before mlp, so that a seed gives the same weights as the package's block
    self.attn =… => pass ;; self.mlp =… => self.mlp = MLP(embed_dim, round(mlp_ratio * embed_dim))
        ⏎ self.attn = MultiHeadAttention(embed_dim, num_heads)
`+=` writes into the tensor that was given; make a new one, x = x + …
    x = x + mixed => x += mixed ‖ x += mixed ;; x = x + self => x += self
`+=` writes over numbers that the gradient still needs, and backward fails; make a new tensor,
x = x + …
    x = x + self => x += self
    ! inplace operation
attention, asked with return_attention=True, gives two things, the mixed tokens and the weights;
take them apart, mixed, weights = …, and add the tokens alone
    mixed, weights = => mixed =
""",
    slips={
        "mask holds bool": "the second argument of `attn` is the mask, and return_attention landed "
        "there: name it, attn(…, mask, return_attention=True)",
    },
    does="One encoder block: attention, then the MLP, each added to the stream. ViT-B is "
    "twelve of them.",
)


# Two tokens of width 4, the second faint, so that where eps stands can be told.
TOKENS = torch.tensor([[1.0, 2, 3, 6], [0.1, -0.1, 0.2, 0.2]])
GAIN, SHIFT = torch.tensor([1.0, 2, 0.5, -1]), torch.tensor([0.0, 0.5, -1, 3])
# A token of fives, and a large one. No order of summing rounds their means; the squares of the
# large one do not fit into 24 bits.
FLAT = torch.tensor([[5.0, 5, 5, 5], [10000, 10001, 10002, 10005]])


class ReadyMade(TorchDispatchMode):
    """Notices where a norm of torch's own is called, from compiled code too."""

    called = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Call the operator, and remember whether it was a norm."""
        names = ("layer_norm", "rms_norm", "group_norm", "batch_norm")
        self.called |= any(name in func.name() for name in names)
        return func(*args, **(kwargs or {}))


def norm_of(what: str, *inputs: Tensor, **options: Any) -> Trial:
    """Make a trial as `call` does, which also tells a norm of torch's, and an axis not kept."""
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


layer_norm = Exercise(
    answer="""
def layer_norm(x, weight, bias, eps=1e-6):  # x (..., D), weight and bias (D,)
    mean = x.mean(dim=-1, keepdim=True)  # (..., 1)
    variance = (x - mean).square().mean(dim=-1, keepdim=True)  # (..., 1)
    return (x - mean) / (variance + eps).sqrt() * weight + bias
""",
    why="Everything happens over the last axis, and `keepdim=True` keeps it with length 1, so that "
    "the mean and the variance broadcast back. The mean of the squares divides by D.",
    trials=[
        norm_of("two tokens of width 4, eps=0.01", TOKENS, torch.ones(4), torch.zeros(4), eps=0.01),
        norm_of("one token alone, of shape (4,)", TOKENS[0], GAIN, SHIFT),
        norm_of("four axes, (2, 2, 3, 5)", waves(2, 2, 3, 5), waves(5), 2 * waves(5) + 1),
        norm_of("a token of fives and one of numbers near 10,000", FLAT, GAIN, SHIFT),
    ],
    slips={
        "Dimension out of range": "the axes are counted from the front, and tokens may come in any "
        "number of axes: the last one is dim=-1",
    },
    wrong="""
the variance divides by D - 1; LayerNorm divides by D (correction=0, or the mean of the squares)
    (x - mean).square().mean(dim=-1, keepdim=True) => x.var(dim=-1, keepdim=True)
it normalises over the tokens, so they leak into each other; take the mean and the variance over
the last axis, dim=-1
    x.mean(dim=-1 => x.mean(dim=-2 ;; square().mean(dim=-1 => square().mean(dim=-2
it normalises over axis 1, which is the last one only where there are two; the last one of any
number of axes is dim=-1
    x.mean(dim=-1 => x.mean(dim=1 ;; square().mean(dim=-1 => square().mean(dim=1
it normalises over all axes at once; each token has its own mean and variance, over the last axis,
dim=-1
    x.mean… => x.mean() ;; square… => square().mean()
it normalises over all axes but the first; each token has its own mean and variance, over the last
axis, dim=-1
    x.mean(dim=-1 => x.mean(dim=tuple(range(1, x.ndim)) or 0 ;;
        square().mean(dim=-1 => square().mean(dim=tuple(range(1, x.ndim)) or 0
it divides by the variance; divide by its square root
    (variance + eps).sqrt() => (variance + eps)
eps is added after the root; add it to the variance, under the root
    (variance + eps).sqrt() => (variance.sqrt() + eps)
eps is not used: a token whose numbers are all equal becomes nan
    (variance + eps).sqrt() => variance.sqrt()
eps is added to the result; add it to the variance, under the root: mind the brackets
    (x - mean) / (variance + eps).sqrt() * => ((x - mean) / variance.sqrt() + eps) *
eps counts only where the variance is smaller; add it to the variance always, under the root
    (variance + eps).sqrt() => variance.clamp(min=eps).sqrt()
the mean of the squares less the square of the mean is the difference of two large numbers, which
has few true digits; take the mean of (x - mean)²
    (x - mean).square… => x.square().mean(dim=-1, keepdim=True) - mean.square()
the default of eps is another: 1e-5 is torch's, a ViT's is 1e-6
    eps=1e-6 => eps=1e-5
eps is always 1e-6; use the one that is given
    variance + eps => variance + 1e-6
the mean is not subtracted from what stands above the line, x - mean
    return (x - mean) => return x
the mean is not subtracted, neither above the line nor in the variance
    return (x - mean) => return x ;; (x - mean).square() => x.square()
the variance is that of the centred numbers: square x - mean, not x
    (x - mean).square() => x.square()
the weight and the bias are not used: multiply by the one, then add the other
    * weight + bias =>
the bias is not used: add it at the end
    * weight + bias => * weight
the weight is not used: multiply by it before you add the bias
    * weight + bias => + bias
the bias is added before the weight multiplies; multiply first
    (x - mean) /… => ((x - mean) / (variance + eps).sqrt() + bias) * weight
weight and bias are taken for each other: multiply by the weight, add the bias
    * weight + bias => * bias + weight
the mean and the variance lost the last axis, so the shapes do not fit: keep it, keepdim=True
    x.mean… => x.mean(dim=-1) ;; square… => square().mean(dim=-1)
it calls torch's own norm; write it out: mean, variance, root
    (x - mean) / (variance + eps).sqrt() => F.layer_norm(x, x.shape[-1:], eps=eps)
it works for some numbers of axes alone; x may have one to four, with D the last: use dim=-1
    x.mean(dim=-1, keepdim=True) => x.mean(dim=-1)[:, :, None]
    mean = x => B, N, D = x.shape ⏎ mean = x ‖ N, D = x.shape[-2:] ⏎ mean = x
    x.mean(dim=-1 => x.mean(dim=min(x.ndim - 1, 2) ;;
        square().mean(dim=-1 => square().mean(dim=min(x.ndim - 1, 2)
""",
)


def passing_on(go_on: Callable) -> type[Encoder]:
    """Make a class of broken encoders, whose blocks all give their weights.

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


OnlyAttention = passing_on(lambda blocks_left, x, out: x)
SkipsSecond = passing_on(lambda blocks_left, x, out: x if blocks_left == 3 else out)  # of five


class HeardInPart(Encoder):
    """Throws away what its first block's attention adds, and keeps what its MLP does."""

    def forward(self, x, mask=None, return_attention=False):
        """From tokens (B, N, D) to tokens, and the later blocks' weights if they are asked for."""
        first: Any = self[0]
        return Encoder(list(self)[1:])(x + first.mlp(first.norm2(x)), mask, return_attention)


class StopsEarly(Encoder):
    """Never runs its last block."""

    def forward(self, x, mask=None, return_attention=False):
        """From tokens (B, N, D) to tokens, and the weights if they are asked for."""
        return Encoder(list(self)[:-1])(x, mask, return_attention)


def listened_to(
    what: str, kind: type[Encoder], depth: int, trained: bool = False, quiet: bool = False
) -> Trial:
    """Ask which blocks of such an encoder are not heard, and see that its weights are left.

    Args:
        quiet: whether its first block adds nothing as yet, as some models begin.
    """

    def inputs() -> tuple[Encoder, Tensor]:
        broken = kind(encoder.EncoderBlock(embed_dim=8, num_heads=2) for _ in range(depth))
        for parameter in broken.parameters():  # the norms' included, so that each one counts
            nn.init.normal_(parameter, std=0.3)
        for name, parameter in broken[0].named_parameters():
            if quiet and name.startswith(("attn.proj", "mlp.fc2")):
                nn.init.zeros_(parameter)
        x = torch.randn(2, 3, 8)
        if trained:  # one step in which all blocks were heard
            Encoder(broken)(x).sum().backward()
        return broken, x

    return Trial(what, heard, inputs)


def heard(answer: Callable, broken: nn.Module, x: Tensor) -> Any:
    """Give the blocks that the answer names, unless it changed the encoder."""
    before = deepcopy(broken.state_dict())
    result = untouched(answer, broken, x)
    unchanged = compare(broken.state_dict(), before) is None
    if isinstance(result, (set, range)):
        return Verdict(f"it gives {kind_of(result)}; give a list, [0, 2]")
    return result if unchanged or result is ... else Verdict("the weights are not as they were")


unheard_blocks = Exercise(
    answer="""
def unheard_blocks(encoder, x):
    encoder.zero_grad()  # every gradient is None now
    tokens = encoder(x)
    if tokens.requires_grad:
        tokens.sum().backward()
    unheard = []
    for number, block in enumerate(encoder):
        if all(weight.grad is None for weight in block.parameters()):
            unheard.append(number)
    return unheard
""",
    why="By the gradient: a weight that the tokens do not depend on gets none, so its `grad` stays "
    "`None`. Old gradients look like new ones, so they are cleared first; and where no block is "
    "heard, `backward()` would raise, so `requires_grad` is asked before. The other way is to "
    "change one block of a copy at a time, and to see whether the tokens move.",
    slips={
        "does not require grad": "backward fails: the tokens depend on no weight at all",
        "AttributeError: '(NoneType|bool)'": "a `grad` is None where a number is asked for",
    },
    trials=[
        listened_to("3 blocks, of which only the attention weights are kept", OnlyAttention, 3),
        listened_to("6 blocks, the last one never run", StopsEarly, 6),
        listened_to(
            "5 blocks, the second one skipped, with gradients left from an earlier training",
            SkipsSecond,
            5,
            trained=True,
        ),
        listened_to("3 sound blocks, the first of which adds nothing yet", Encoder, 3, quiet=True),
        listened_to("3 blocks, of the first of which the MLP alone is heard", HeardInPart, 3),
    ],
    wrong="""
a block whose last weights are 0 adds nothing, and is heard: other weights in it would change the
tokens; add to the weights, or draw them anew, in place of setting them to 0
    from copy import deepcopy
    def unheard_blocks(encoder, x):
        unheard = []
        for number in range(len(encoder)):
            other = deepcopy(encoder)
            for weight in other[number].parameters():
                weight.data.zero_()
            if torch.equal(other(x), encoder(x)):
                unheard.append(number)
        return unheard
the weights are not as they were: a test must leave the model as it found it; put them back from a
clone, or try it on a copy (copy.deepcopy)
    return unheard => [weight.data.add_(1) for weight in encoder.parameters()] ⏎ return unheard
a gradient that was there before, left from an earlier training or set to 0, counts as a new one:
before your own backward make all of them None (encoder.zero_grad())
    encoder.zero_grad() => pass
a block that runs counts as heard, though its tokens are thrown away: only a change of encoder(x),
its tokens, counts, and not that of the attention weights
    tokens = encoder(x) => tokens, attention = encoder(x, return_attention=True) ⏎
        tokens = tokens.sum() + sum(weights.sum() for weights in attention)
it gives [] where no block is heard: the tokens depend on no weight then, their requires_grad is
False; give the numbers of all
    if tokens.requires_grad: => if not tokens.requires_grad: return [] ⏎ if tokens.requires_grad:
it finds every block heard, in broken encoders too; a block is heard if other weights in it change
encoder(x): a loop of your own over the blocks does not show it, nor does an encoder whose weights
are as they were
    return unheard => return []
the blocks are run in a loop of your own, and the encoder need not run them so: ask encoder(x)
    def unheard_blocks(encoder, x):
        def run(without):
            tokens = x
            for number, block in enumerate(encoder):
                tokens = tokens if number == without else block(tokens)
            return tokens
        return [n for n in range(len(encoder)) if torch.allclose(run(n), run(None), atol=1e-5)]
it finds every block unheard, in a healthy encoder too; a block is heard if other weights in it
change encoder(x)
    return unheard => return list(range(len(encoder)))
where one block is unheard and the others are heard, it does not find that one; change that block
alone: the others keep their weights and their places
    from copy import deepcopy
    def unheard_blocks(encoder, x):
        unheard, other = [], deepcopy(encoder)
        for number in range(len(encoder)):
            for weight in other[number].parameters():
                weight.data += 0.1
            if torch.equal(other(x), encoder(x)):
                unheard.append(number)
        return unheard
where one block is unheard and the others are heard, it does not find that one; change that block
alone: the others keep their weights and their places
    if all… => if torch.equal(type(encoder)(b for b in encoder if b is not block)(x), tokens):
one weight without a gradient does not make a block unheard, since others in it may be heard: ask
all of them
    if all(weight => if any(weight
    if all… => if next(block.parameters()).grad is None:
these are the blocks that are heard; give the others
    weight.grad is None => weight.grad is not None
    all(weight.grad is None => any(weight.grad is not None
this is how many blocks are unheard; give their numbers, in a list
    return unheard => return len(unheard)
this is one True or False a block; give the numbers of the unheard ones
    return unheard => return [number in unheard for number in range(len(encoder))]
    return unheard => return [number not in unheard for number in range(len(encoder))]
the blocks are counted from 1; count from 0, as Python does
    append(number) => append(number + 1)
the numbers are right, but not in order: smallest first
    return unheard => return unheard[::-1]
the numbers are texts; give whole numbers, [0, 2]
    append(number) => append(str(number))
only the first block is looked at: is the `return` inside the loop?
    in enumerate(encoder) => in list(enumerate(encoder))[:1]
this is the first unheard block alone; give all of them
    return unheard => return unheard[:1]
backward fails where the tokens depend on no weight at all: tokens.requires_grad is False then,
there is no gradient to send back, and no block is heard
    if tokens.requires_grad: => if True:
a weight that the tokens do not depend on has no gradient: its `grad` is None, not 0; ask
`grad is None`
    weight.grad is None => weight.grad.abs().sum() == 0
these are numbers of weights; a block has many: give a block's number where all of its weights are
unheard
    in enumerate(encoder) => in enumerate(encoder.parameters()) ;; if all… => if block.grad is None:
these are names of weights; give the numbers of the blocks, each once
    in enumerate(encoder) => in encoder.named_parameters() ;; if all… => if block.grad is None:
the x that was given is not as it was; leave it, and work on x.clone()
    tokens = encoder(x) => tokens = encoder(x.add_(1))
""",
)
