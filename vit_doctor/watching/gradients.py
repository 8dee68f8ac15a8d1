"""Which weights got a gradient, after a run backwards."""

from itertools import groupby

from torch import Tensor, nn


def without_gradient(model: nn.Module) -> list[str]:
    """List the parameters to which no gradient came, or one that is zero throughout.

    Of vectors (biases, norms) only the former: to the bias of the keys comes nothing but rounding
    in any sound attention. Tokens that stand in for masked ones wait for masked training.
    """
    return [
        name
        for name, x in model.named_parameters()
        if x.requires_grad
        and "mask" not in name
        and (x.grad is None or (x.ndim > 1 and x.numel() > 1 and not x.grad.any()))
    ]


def silent_rows(model: nn.Module) -> dict[str, tuple[int, int]]:
    """Find, in weights of linear maps, the rows in which the gradient is zero throughout, exactly.

    At least 8, side by side, and at least a quarter of all, where others have one: those of the
    keys in a fused map, say. Units of a ReLU that are dead lie scattered.
    """
    rows = {}
    for path, module in model.named_modules():
        name = "weight" if isinstance(module, nn.Linear) else "in_proj_weight"
        weight = getattr(module, name, None)
        linear = isinstance(module, (nn.Linear, nn.MultiheadAttention))
        if not linear or not isinstance(weight, Tensor) or weight.grad is None:
            continue
        silent = (weight.grad == 0).all(1).tolist()
        runs = [list(run) for zero, run in groupby(range(len(silent)), silent.__getitem__) if zero]
        longest = max(runs, key=len, default=[])
        if max(8, len(silent) / 4) <= len(longest) < len(silent):
            rows[f"{path}.{name}".lstrip(".")] = (longest[0], longest[-1] + 1)
    return rows
