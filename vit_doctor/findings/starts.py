"""Numbers that a model starts with, and that are one of the usual ones elsewhere."""

from torch import Tensor, nn

from ..patient import Patient
from ..report import Finding, Skipped
from ..watching.calls import is_norm, size
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
    """A norm's eps above 0.01; usual are 1e-3 to 1e-12."""
    norms = [(path, m) for path, m in p.model.named_modules() if is_norm(m)]
    if not norms:
        return Skipped("there are no norms")
    for path, norm in norms:
        eps = getattr(norm, "eps", None)
        if isinstance(eps, (float, Tensor)) and float(eps) > 0.01:
            return Finding(
                "eps large",
                f"{path} has eps {float(eps):g}",
                "eps is there against division by 0; so large, it leaves small tokens small: "
                "another number may stand in its place",
                of_module(norm, path),
            )
    return None


STARTS = (bias_large, eps_large)
