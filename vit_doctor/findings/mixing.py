"""How attention moves tokens about: heads that are taken apart or put together wrongly."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from ..patient import Patient
from ..report import Finding, Skipped
from ..watching.calls import first, part, size
from ..watching.places import of_module
from .pixels import patch_side


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


class Enough(Exception):  # noqa: N818
    """Ends a run early."""


def entering(p: Patient, images: Tensor) -> Tensor | None:
    """The tokens (B, N, D) that enter the first attention, for these images; None if not known."""
    path = p.watch.attentions[0].module if p.watch.attentions else ""
    module = p.model.get_submodule(path)
    came: list[Tensor] = []

    def stop(_: nn.Module, args: tuple, kwargs: dict) -> None:
        given = first(args) if args else next(iter(kwargs.values()), None)
        came.extend([given] if isinstance(given, Tensor) else [])
        raise Enough

    handle = module.register_forward_pre_hook(stop, with_kwargs=True)
    try:
        p.call(images, 0)
    finally:
        handle.remove()
    return came[0] if path and came and came[0].ndim == 3 else None


def patches_scrambled(p: Patient) -> Finding | Skipped | None:
    """By gradients, the pixels of a token: as many as a patch has must lie in one patch.

    Four tokens of an image of the size given, and of one that is a patch wider, if the model takes
    it; no threshold. Tokens that see more than a patch, as behind overlapping convolutions, are
    left alone.
    """
    side = patch_side(p)
    if side is None:
        return Skipped("no attention over patches of a known side was seen")
    applies = False
    height, width = p.size
    for wide in (width, width + side):
        draw = torch.Generator().manual_seed(5)
        leaf = torch.randn(1, p.images.shape[1], height, wide, generator=draw).to(p.images)
        images = leaf.requires_grad_() * 1
        tokens = entering(p, images)
        if tokens is None and wide != width:  # all that it lacks may be positions for so many
            tokens = cut(p, images)
        if tokens is None or not tokens.requires_grad or tokens.shape[1] < 3:
            continue
        length = tokens.shape[1]
        for i in sorted({1, length // 3, length // 2, length - 1}):
            mix = torch.randn(tokens.shape[2], generator=draw).to(tokens)
            (grad,) = torch.autograd.grad(
                (tokens[0, i] * mix).sum(), leaf, retain_graph=True, allow_unused=True
            )
            if grad is None:
                continue
            seen = grad[0] != 0  # (C, H, W)
            count, whole = int(seen.sum()), len(seen) * side**2
            if not 0.9 * whole <= count <= whole:
                continue
            applies = True
            places = seen.any(0).nonzero()
            rows, columns = (places.amax(0) - places.amin(0) + 1).tolist()
            if (rows, columns) != (side, side):
                return Finding(
                    "patches scrambled",
                    f"in an image of {height}×{wide}, token {i} sees {count} numbers, as many as a "
                    f"patch of {side}×{side} has, but spread over {rows} rows, {columns} columns",
                    "a token should be one patch: reshape to (B, C, H/p, p, W/p, p), then permute, "
                    "and do not swap height and width",
                    of_module(p.model.get_submodule(makers(p)[0]), makers(p)[0]),
                )
    return None if applies else Skipped("no token was seen that is a single patch")


def makers(p: Patient) -> list[str]:
    """The paths of the modules that gave tokens (B, n, D), those first that were given images."""
    paths = [path for path, call in p.calls.of.items() if call.shape and len(call.shape) == 3]
    return sorted(paths, key=lambda path: not given_images(p, path))


def given_images(p: Patient, path: str) -> bool:
    """Whether a module was given the images as they came."""
    args = p.calls.of[path].args
    return bool(args) and isinstance(args[0], Tensor) and args[0].shape == p.images.shape


def cut(p: Patient, images: Tensor) -> Tensor | None:
    """The tokens that the module gives for other images that was given images, if it takes them."""
    path, side = next(iter(makers(p)), ""), patch_side(p) or 1
    count = p.size[0] * p.size[1] // side**2
    shape = p.calls.of[path].shape if path else None
    if not shape or shape[1] < count or not given_images(p, path):
        return None
    try:
        tokens = first(p.model.get_submodule(path)(images, **p.calls.of[path].kwargs))
    except Exception:
        return None
    return tokens if isinstance(tokens, Tensor) and tokens.ndim == 3 else None


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


MIXING = (heads_mixed, tokens_apart, patches_scrambled, tokens_read)
