"""Whether each branch of a block adds to its input, and each block is one of its own."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..patient import Patient
from ..report import Finding, Skipped
from ..watching.calls import Part, silenced
from ..watching.places import of_module
from .norms import NO_BLOCKS, blocks, maps_in


def residual_missing(p: Patient) -> Finding | Skipped | None:
    """Silences the linear maps of attention, then the others: a block must still pass its input.

    By the gradient of the output at the input, which without a residual is zero, exactly. A block
    that passes nothing with all of them silent may be a branch, with its residual around it: then
    the logits still depend on the image.
    """
    if p.backward:
        return Skipped("no gradient comes back")
    applies = False
    for path, module, given in blocks(p):
        within = [a.module for a in p.watch.attentions if f"{a.module}.".startswith(f"{path}.")]
        if not within:
            continue
        child = within[0][len(path) + 1 :].partition(".")[0]
        families = {"attention": [], "MLP": []}
        for name in maps_in(p, path):
            own = child and name.startswith(f"{path}.{child}.")
            families["attention" if own else "MLP"].append(name)
        both = [name for family in families.values() for name in family]
        applies = applies or bool(both)
        missing = []
        if all(families.values()):
            missing = [kind for kind, names in families.items() if not passes(p, given, names)]
        if len(missing) != 1 and not passes(p, given, both):
            elsewhere = len(within) < len(p.watch.attentions)
            missing = list(families) if elsewhere and not heard(p, both) else []
        if missing:
            return Finding(
                "residual missing",
                f"with the {' and the '.join(missing)} silent, the block's output does not "
                "depend on its input",
                f"the {' and the '.join(missing)} should add to the stream: x = x + branch(x); "
                "without that, gradients fade with depth",
                of_module(module, path),
            )
    return None if applies else Skipped("no block was seen that holds an attention and an MLP")


def passes(p: Patient, given: Part, hushed: list[str]) -> bool:
    """Whether a block's output depends on its input while some of its parts are silent."""
    x, run = given
    return reached(p, hushed, x, run)


def heard(p: Patient, hushed: list[str]) -> bool:
    """Whether the logits depend on the image while some parts of the model are silent."""
    return reached(p, hushed, p.some, lambda images: p.call(images, 0).logits)


def reached(p: Patient, hushed: list[str], x: Tensor, run: Callable) -> bool:
    """Whether what comes out depends on what goes in, by its gradient, while parts are silent."""
    leaf = x.clone().requires_grad_()
    with torch.enable_grad(), silenced(p.model, hushed):
        out = run(leaf * 1)
        if out is None or not out.requires_grad:
            return out is None
        mix = torch.randn(out.shape, generator=torch.Generator().manual_seed(6)).to(out)
        (grad,) = torch.autograd.grad((out * mix).sum(), leaf, allow_unused=True)
    return grad is not None and bool(grad.any())


def shared_block(p: Patient) -> Finding | Skipped | None:
    """Places of a list that hold the same linear map; two are a finding.

    Sharing weights on purpose exists (ALBERT); `[Block()] * 12` shares them in silence.
    """
    lists = [
        (path, holder)
        for path, holder in p.model.named_modules()
        if isinstance(holder, (nn.ModuleList, nn.Sequential)) and len(holder) > 1
    ]
    for path, holder in lists:
        elements = [each for each in holder if each is not None]  # some lists have gaps
        sets = [{id(m) for m in each.modules() if isinstance(m, nn.Linear)} for each in elements]
        for linear in set().union(*sets):
            places = sum(linear in each for each in sets)
            if places > 1:
                return Finding(
                    "shared block",
                    f"{places} of {len(sets)} places of {path or 'the model'} hold one and the "
                    f"same linear map: {places} times fewer weights than the places suggest",
                    "unless sharing is meant, make each block anew: ModuleList(Block() for _ in "
                    "range(depth)), not [block] * depth",
                    path,
                )
    return None if lists else NO_BLOCKS


RESIDUALS = (residual_missing, shared_block)
