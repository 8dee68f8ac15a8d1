"""Whether each branch of a block adds to its input, and each block is one of its own."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..patient import Patient, SoundError, need
from ..report import Finding
from ..watching.calls import silenced
from .norms import NO_BLOCKS, blocks, maps_in

EACH_ANEW = "ModuleList(Block() for _ in range(depth))"


def residual_missing(p: Patient) -> Finding:
    """Silence the linear maps of attention, then the others: a block must still pass its input.

    By the gradient of the output at the input, which without a residual is zero, exactly. A block
    that passes nothing with all of them silent may be a branch, with its residual around it: then
    the logits still depend on the image.
    """
    need(not p.backward_error, "no gradient comes back")
    applies = False
    for path, _, (tokens, run) in blocks(p):
        inside = [a.module for a in p.watch.attentions if f"{a.module}.".startswith(f"{path}.")]
        if not inside:
            continue
        child = inside[0][len(path) + 1 :].partition(".")[0]
        names = maps_in(p, path)
        of_attention = [n for n in names if child and n.startswith(f"{path}.{child}.")]
        branches = {"attention": of_attention, "MLP": [n for n in names if n not in of_attention]}
        applies = applies or bool(names)
        missing = []
        if all(branches.values()):
            missing = [b for b in branches if not depends(p, run, tokens, branches[b])]
        if len(missing) != 1 and not depends(p, run, tokens, names):
            # The residual may stand gone the block: then the logits tell.
            others = len(inside) < len(p.watch.attentions)
            gone = others and not depends(p, lambda x: p.call(x, 0).logits, p.sample, names)
            missing = [b for b in branches if child or b == "attention"] if gone else []
        if missing:
            branch = " and the ".join(missing)
            return Finding(
                f"with the {branch} silent, the block's output does not depend on its input",
                f"the {branch} should add to the stream: x = x + branch(x); without that, "
                "gradients fade with depth",
                p.location(path),
            )
    need(applies, "no block was seen that holds an attention and an MLP")
    raise SoundError


def depends(p: Patient, run: Callable, x: Tensor, silent: list[str]) -> bool:
    """Tell by a gradient whether what comes out depends on x, while linear maps are silent."""
    leaf = x.clone().requires_grad_()
    with torch.enable_grad(), silenced(p.model, silent):
        output = run(leaf * 1)
        if output is None or not output.requires_grad:
            return output is None
        mix = torch.randn(output.shape, generator=torch.Generator().manual_seed(6)).to(output)
        (grad,) = torch.autograd.grad((output * mix).sum(), leaf, allow_unused=True)
    return grad is not None and bool(grad.any())


def shared_block(p: Patient) -> Finding:
    """Count the places of a list that hold the same linear map; two are a finding.

    So are two runs of the only attention that there is. Sharing weights on purpose exists (ALBERT);
    `[Block()] * 12`, and one block in a loop, share them in silence.
    """
    paths = {attention.module for attention in p.watch.attentions}
    runs = p.runs[next(iter(paths))] if len(paths) == 1 else 0
    if runs > 1:
        (path,) = paths
        return Finding(
            f"the only attention of the model runs {runs} times: all its blocks are one",
            f"unless sharing is meant, make each block anew: {EACH_ANEW}, and run each once",
            p.location(path),
        )
    lists = [
        (path, holder)
        for path, holder in p.model.named_modules()
        if isinstance(holder, (nn.ModuleList, nn.Sequential)) and len(holder) > 1
    ]
    for path, holder in need(lists, NO_BLOCKS):
        elements = [each for each in holder if each is not None]  # some lists have gaps
        linears = [{id(m) for m in each.modules() if isinstance(m, nn.Linear)} for each in elements]
        for linear in set().union(*linears):
            count = sum(linear in each for each in linears)
            if count > 1:
                return Finding(
                    f"{count} of {len(linears)} places of {path or 'the model'} hold one and the "
                    f"same linear map: {count} times fewer weights than the places suggest",
                    f"unless sharing is meant, make each block anew: {EACH_ANEW}, not [block] * "
                    "depth",
                    path,
                )
    raise SoundError
