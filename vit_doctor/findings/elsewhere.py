"""What is otherwise elsewhere: in training mode, and on another device."""

from typing import Any

from torch import Tensor

from ..patient import Answer, Patient
from ..report import Finding, Skipped
from ..watching.restore import unchanged


def squares(output: Any) -> list[Tensor]:
    """The attention weights (B, h, N, N) in an output: tensors of four axes, the last two alike."""
    if isinstance(output, Tensor):
        fits = output.ndim == 4 and output.shape[-1] == output.shape[-2] > 1
        return [output] if fits and output.is_floating_point() else []
    if isinstance(output, dict):
        output = list(output.values())
    elif not isinstance(output, (list, tuple)):
        output = list(getattr(output, "__dict__", {}).values())
    return [found for part in output for found in squares(part)]


def run(p: Patient, images: Tensor, train: bool) -> tuple[Answer, list[Tensor]]:
    """What the model gives in a mode, and the attention weights in it."""
    found: list[Tensor] = []
    with unchanged(p.model):
        p.model.train(train)
        p.model.register_forward_hook(lambda _, __, output: found.extend(squares(output)))
        answer = p.ask(images)
    return answer, found


def training_fails(p: Patient) -> Finding | Skipped | None:
    """Runs one image in training mode, and two where that fails; an error is a finding.

    A batch of one that fails alone is not: a batch norm of one row has no spread.
    """
    if p.given is None:
        return Skipped("the model gave no logits in eval mode")
    first, p.squares = run(p, p.images[:1], train=True)
    if not first.error:
        return None
    answer, p.squares = run(p, p.images, train=True)
    if not answer.error:
        return Skipped(f"one image cannot train it, two can (drop_last=True): {first.error}")
    return Finding(
        "training fails",
        f"two images in training mode: {answer.error}",
        "in eval mode it runs, so that nothing is seen before training starts; batch norm over "
        "tokens, for one, cannot do with fewer of them, as masking leaves: nn.LayerNorm can",
        answer.where,
    )


def returned_attention(p: Patient) -> Finding | Skipped | None:
    """Weights (B, h, N, N) in the output: in training their rows must sum to what they do in eval.

    After dropout of 0.1 they sum to 0.87 to 1.12 in place of 1; 1% off is a finding.
    """
    if not p.squares:
        return Skipped("the model returned no attention weights")
    _, calm = run(p, p.images[:1], train=False)
    ones = [x for x in calm if float((x.sum(-1) - 1).abs().max()) < 1e-3]
    if not ones or len(ones) != len(p.squares):
        return Skipped("rows of what it returns do not sum to 1 in eval mode")
    sums = p.squares[0].sum(-1)
    low, high = float(sums.min()), float(sums.max())
    if low > 0.99 and high < 1.01:
        return None
    zeros = float((p.squares[0] == 0).float().mean())
    return Finding(
        "returned attention",
        f"in training, rows of the attention that the model returns sum to {low:.2f} to {high:.2f}"
        f", and {zeros:.1%} of its weights are 0; in eval the rows sum to 1",
        "dropout was applied to what is looked at: return the weights from before it",
    )


def device_fixed(p: Patient) -> Finding | Skipped | None:
    """Tensors that were told no device, or plain attributes, that meet others in forward.

    So is autocast for "cuda" by name, where nothing on its line asks whether there is one.
    """
    if p.logits is None:
        return Skipped("the model gave no logits")
    why = "with the model on a GPU, or without one, it fails or does nothing: take x.device"
    for line, where in p.devices.casts:
        measured = f"autocast is for cuda alone: {line}"
        return Finding("device fixed", measured, f"{why}.type", where)
    for met, where in p.devices.met:
        measured = f"{met}; it was made without a device, or is no buffer, and stays on the CPU"
        return Finding("device fixed", measured, why, where)
    return None


ELSEWHERE = (training_fails, returned_attention, device_fixed)
