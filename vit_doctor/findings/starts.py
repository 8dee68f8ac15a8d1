"""Numbers that a model starts with, and that are one of the usual ones elsewhere."""

import torch
from torch import nn

from ..patient import Patient
from ..report import Finding, Skipped
from ..watching.calls import first, size
from ..watching.places import of_module


def bias_large(p: Patient) -> Finding | Skipped | None:
    """Biases of linear maps, 0.9 and more in size in most, at the start; usual are 0 to 0.3.

    A single one may be meant, as of a head that starts at the classes' shares.
    """
    known = [m for m in p.model.modules() if isinstance(m, nn.Linear) and m.bias is not None]
    if not p.fresh or len(known) < 4:
        return Skipped("only for a model of four biases and more that is not trained yet")
    large = [m for m in known if size(m.bias) > 0.9]
    if len(large) <= len(known) / 2:
        return None
    path = p.known[id(large[0])]
    return Finding(
        "bias large",
        f"{len(large)} of {len(known)} linear maps start with biases of {size(large[0].bias):.2g}",
        "they are the same for all tokens and drown what differs: nn.init.zeros_(bias)",
        of_module(large[0], path),
    )


def eps_large(p: Patient) -> Finding | Skipped | None:
    """Tokens of size 0.1 and of size 100: a norm gives both alike, to 30%.

    An eps of 1e-3 under the root leaves 5% between them, the usual 1e-5 nothing; 0.01 leaves 30%.
    """
    applies = False
    for path in sorted(p.norms):
        norm, call = p.model.get_submodule(path), p.calls.of[path]
        if isinstance(norm, nn.modules.batchnorm._BatchNorm):
            continue
        draw = torch.Generator().manual_seed(8)
        x = torch.randn(call.args[0][:1].shape, generator=draw).to(call.args[0])
        with torch.no_grad():
            small, zero, large = (
                first(norm(x * scale, *call.args[1:], **call.kwargs)) for scale in (0.1, 0, 100)
            )
        applies, share = True, size(small - zero) / max(size(large - zero), 1e-30)
        if share < 0.7:
            return Finding(
                "eps large",
                f"{path} gives tokens of size 0.1 {share:.2f} times as large as tokens of size 100",
                "eps is there against division by 0; so large, it leaves small tokens small: the "
                "usual are 1e-6 and 1e-5, and another number may stand in its place",
                of_module(norm, path),
            )
    return None if applies else Skipped("no norm of tokens was seen")


STARTS = (bias_large, eps_large)
