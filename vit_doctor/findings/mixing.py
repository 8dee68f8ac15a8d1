"""How attention moves tokens about: heads that are taken apart or put together wrongly."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from ..patient import Patient, SkipError, SoundError, need, only_if
from ..report import Finding
from ..watching.calls import Runnable, rms, runnable
from .pixels import patch_side, tokens_entering

RANDOM = "the same tokens give something else each time"
UNKNOWN = "no attention was seen in a module of tokens that has no masks or positions"


def attention_modules(p: Patient) -> dict[type, tuple[str, nn.Module]]:
    """Give one attention module of each class, in which nothing depends on where a token stands.

    Torch's own are left out, and so is whatever holds a convolution, a norm over tokens, or a table
    of its own, such as positions.
    """
    modules = dict(p.model.named_modules())
    by_type: dict[type, tuple[str, nn.Module]] = {}
    for attention in p.watch.attentions:
        path = attention.module
        module = modules.get(path)
        if module is None or type(module).__module__.startswith("torch.") or not attention.plain:
            continue
        if all(treats_tokens_alike(p, n, m) for n, m in module.named_modules(prefix=path)):
            by_type.setdefault(type(module), (path, module))
    return by_type


def treats_tokens_alike(p: Patient, path: str, module: nn.Module) -> bool:
    """Tell whether all tables of a module are the weights of linear maps."""
    if isinstance(module, _ConvNd | _BatchNorm):
        return False
    tables = {name for name, x in module.named_parameters(path, recurse=False) if x.ndim > 1}
    buffers = any(x.ndim > 1 for x in module.buffers(recurse=False))
    return tables <= p.maps.input_sizes.keys() and not buffers


def on_noise(p: Patient) -> Sequence[tuple[str, str, Runnable]]:
    """Give each attention that runs alone: its path, how many there are of its class, and itself.

    The last is tokens of noise (1, N, D), 3 and more, and the attention as a function of such. The
    check ends where there is none.
    """
    need("random in eval" not in p.found_names, RANDOM)
    attentions = []
    for path, module in attention_modules(p).values():
        alone = runnable(module, p.calls.first.get(path))
        if alone is not None and alone[0].shape[1] >= 3:
            tokens, run = alone
            noise = torch.randn(tokens.shape, generator=torch.Generator().manual_seed(4))
            count = sum(type(other) is type(module) for other in p.model.modules())
            attentions.append((path, f"{count} {type(module).__name__}", (noise.to(tokens), run)))
    return need(attentions, UNKNOWN)


def heads_mixed(p: Patient) -> Finding:
    """Give an attention module its tokens in another order; its output must be ordered alike.

    Sound ones differ by 1e-6 of the output's size, from rounding; 1e-3 is a finding. Masks, biases
    on the scores, rotated queries and convolutions depend on the order, and are left alone.
    """
    for path, count, (tokens, run) in on_noise(p):
        order = torch.arange(tokens.shape[1]).roll(1).flip(0)
        with torch.no_grad():
            output, reordered = run(tokens), run(tokens[:, order])
        off = rms(reordered - output[:, order]) / max(rms(output), 1e-30)
        if off > 1e-3:
            return Finding(
                f"tokens in another order: the output of this attention differs by {off:.2g} of "
                f"its size from its output in that order, in {count}",
                "numbers of one token end up in another: heads are split by view(B, N, h, d), then "
                "transpose(1, 2), and merged the same way back: transpose first, then reshape",
                p.location(path),
            )
    raise SoundError


def tokens_apart(p: Patient) -> Finding:
    """Change all tokens but the last that enter an attention; the last one's output must change.

    Not at all, to the last bit, is a finding: each token then looks at its own heads alone.
    """
    for path, count, (tokens, run) in on_noise(p):
        changed = torch.cat([-tokens[:, :-1], tokens[:, -1:]], dim=1)
        with torch.no_grad():
            moved = rms(run(changed)[:, -1] - run(tokens)[:, -1])
        if moved == 0:
            return Finding(
                f"all other tokens change, and a token's output does not move at all, in {count}",
                "attention is over heads, or over numbers, and not over tokens: queries, keys and "
                "values are (B, h, N, d), with the tokens next to last",
                p.location(path),
            )
    raise SoundError


def tokens_read(p: Patient) -> Finding:
    """Tell by gradients which tokens of the last block have an influence; exactly.

    Sound are all, all patches, or none of the patches (cls, registers). One patch, or all but some,
    is a finding. Which tokens are no patches is told by what enters the first attention.
    """
    side = patch_side(p)
    last = next((path for path in reversed(p.calls.first) if path in p.tokens_read), None)
    reason = "no blocks over patches of a known side were seen"
    need("unseen pixels" not in p.found_names, reason)
    counts = p.tokens_read[need(last, reason)]
    patches = p.size[0] * p.size[1] // need(side, reason) ** 2
    image = p.images[:1].clone().requires_grad_()
    tokens = tokens_entering(p, image * 1)
    reason = "the tokens that come in and those that are read are not the same"
    same = tokens is not None and tokens.requires_grad and tokens.shape[:2] == (1, len(counts))
    tokens = need(tokens if same else None, reason)
    first_sees, last_sees = (sees(tokens[0, i, 0], image) for i in (0, -1))
    extra = len(counts) - patches
    if first_sees and not last_sees:
        counts = counts[:patches]
    elif last_sees and first_sees == (extra == 0):
        counts = counts[extra:]
    else:
        raise SkipError("it is not known which tokens are patches")
    only_if(int(counts.sum()) not in (0, patches))
    return Finding(
        f"the logits depend on {int(counts.sum())} of {patches} patches that the last block gives",
        "a head reads cls, x[:, 0], or the mean of all patches: here an index or a slice is off",
        p.location(""),
    )


def sees(number: Tensor, image: Tensor) -> bool:
    """Tell by its gradient whether a number depends on an image."""
    (grad,) = torch.autograd.grad(number, image, retain_graph=True, allow_unused=True)
    return grad is not None and bool(grad.any())
