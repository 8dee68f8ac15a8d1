"""How attention moves tokens about: heads that are taken apart or put together wrongly."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from ..patient import Patient
from ..report import Finding, Skipped
from ..watching.calls import part, size
from ..watching.places import of_module
from .pixels import entering, patch_side


def attentions(p: Patient) -> list[tuple[str, nn.Module]]:
    """One attention module of each class, in which nothing depends on where a token stands.

    Torch's own are left out, and so is whatever holds a convolution, a norm over tokens, or a table
    of its own, such as positions.
    """
    known = dict(p.model.named_modules())
    found: dict[type, tuple[str, nn.Module]] = {}
    for seen in p.watch.attentions:
        module = known.get(seen.module)
        if module is None or type(module).__module__.startswith("torch.") or not seen.plain:
            continue
        if all(even(p, path, inner) for path, inner in module.named_modules(prefix=seen.module)):
            found.setdefault(type(module), (seen.module, module))
    return list(found.values())


def even(p: Patient, path: str, module: nn.Module) -> bool:
    """Whether a module treats all tokens alike: its tables are the weights of linear maps alone."""
    if isinstance(module, _ConvNd | _BatchNorm):
        return False
    tables = [name for name, x in module.named_parameters(path, recurse=False) if x.ndim > 1]
    return set(tables) <= p.maps.came.keys() and all(
        x.ndim < 2 for x in module.buffers(recurse=False)
    )


def tried(p: Patient) -> Iterator[tuple[str, nn.Module, Tensor, Callable[[Tensor], Tensor]]]:
    """Each attention that runs alone: its path, itself, tokens of noise (1, N, D), 3 and more, and
    the attention as a function of such."""
    for path, module in attentions(p):
        given = part(module, p.calls.of.get(path))
        if given is not None and given[0].shape[1] >= 3:
            x, run = given
            noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(4))
            yield path, module, noise.to(x), run


UNKNOWN = Skipped("no attention was seen in a module of tokens that has no masks or positions")


def heads_mixed(p: Patient) -> Finding | Skipped | None:
    """Gives an attention module its tokens in another order; its output must be ordered alike.

    Sound ones differ by 1e-6 of the output's size, from rounding; 1e-3 is a finding. Masks, biases
    on the scores, rotated queries and convolutions depend on the order, and are left alone.
    """
    if "random in eval" in p.found:
        return Skipped("the same tokens give something else each time")
    applies = False
    for path, module, x, run in tried(p):
        order = torch.arange(x.shape[1]).roll(1).flip(0)
        with torch.no_grad():
            out, other = run(x), run(x[:, order])
        applies, off = True, size(other - out[:, order]) / max(size(out), 1e-30)
        if off > 1e-3:
            return Finding(
                "heads mixed",
                f"tokens in another order: the output of this attention differs by {off:.2g} of "
                f"its size from its output in that order, in {alike(p, module)}",
                "numbers of one token end up in another: heads are split by view(B, N, h, d), then "
                "transpose(1, 2), and merged the same way back: transpose first, then reshape",
                of_module(module, path),
            )
    return None if applies else UNKNOWN


def tokens_apart(p: Patient) -> Finding | Skipped | None:
    """Changes all tokens but the last that enter an attention; the last one's output must change.

    Not at all, to the last bit, is a finding: each token then looks at its own heads alone.
    """
    if "random in eval" in p.found:
        return Skipped("the same tokens give something else each time")
    applies = False
    for path, module, x, run in tried(p):
        other = torch.cat([-x[:, :-1], x[:, -1:]], dim=1)
        with torch.no_grad():
            moved = size(run(other)[:, -1] - run(x)[:, -1])
        applies = True
        if moved == 0:
            return Finding(
                "tokens apart",
                "all other tokens change, and a token's output does not move at all, in "
                f"{alike(p, module)}",
                "attention is over heads, or over numbers, and not over tokens: queries, keys and "
                "values are (B, h, N, d), with the tokens next to last",
                of_module(module, path),
            )
    return None if applies else UNKNOWN


def alike(p: Patient, module: nn.Module) -> str:
    """How many modules of a class there are, in words."""
    count = sum(type(other) is type(module) for other in p.model.modules())
    return f"{count} {type(module).__name__}"


def tokens_read(p: Patient) -> Finding | Skipped | None:
    """Which tokens of the last block have an influence, by gradients; exactly.

    Sound are all, all patches, or none of the patches (cls, registers). One patch, or all but some,
    is a finding. Which tokens are no patches is told by what enters the first attention.
    """
    side = patch_side(p)
    last = next((path for path in reversed(p.calls.of) if path in p.reads), None)
    if side is None or last is None or "unseen pixels" in p.found:
        return Skipped("no blocks over patches of a known side were seen")
    read = p.reads[last]
    leaf = p.images[:1].clone().requires_grad_()
    tokens = entering(p, leaf * 1)
    if tokens is None or not tokens.requires_grad or tokens.shape[:2] != (1, len(read)):
        return Skipped("the tokens that come in and those that are read are not the same")
    ends = [
        torch.autograd.grad(tokens[0, i, 0], leaf, retain_graph=True, allow_unused=True)[0]
        for i in (0, -1)
    ]
    first_sees, last_sees = (grad is not None and bool(grad.any()) for grad in ends)
    count = p.size[0] * p.size[1] // side**2
    extra = len(read) - count
    if not last_sees and first_sees:
        patches = read[:count]
    elif last_sees and first_sees == (extra == 0):
        patches = read[extra:]
    else:
        return Skipped("it is not known which tokens are patches")
    some = int(patches.sum())
    if some in (0, count):
        return None
    return Finding(
        "tokens read",
        f"the logits depend on {some} of {count} patches that the last block gives",
        "a head reads cls, x[:, 0], or the mean of all patches: here an index or a slice is off",
        of_module(p.model, ""),
    )


MIXING = (heads_mixed, tokens_apart, tokens_read)
