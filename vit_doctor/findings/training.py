"""What is otherwise in training mode."""

from typing import Any

from torch import Tensor

from ..patient import Answer, Patient, need, only_if
from ..report import Finding
from ..watching.answers import floats_in
from ..watching.restore import unchanged


def weights_in(output: Any) -> list[Tensor]:
    """Find attention weights (B, h, N, N) in an output: four axes, the last two alike."""
    return [x for x in floats_in(output) if x.ndim == 4 and x.shape[-1] == x.shape[-2] > 1]


def run(p: Patient, images: Tensor, train: bool) -> tuple[Answer, list[Tensor]]:
    """Give the model's answer in a mode, and the attention weights in it."""
    weights: list[Tensor] = []
    with unchanged(p.model):
        p.model.train(train)
        p.model.register_forward_hook(lambda _, __, output: weights.extend(weights_in(output)))
        answer = p.ask(images)
    return answer, weights


def training_fails(p: Patient) -> Finding:
    """Run one image in training mode, and two where that fails; an error is a finding.

    A batch of one that fails alone is not: a batch norm of one row has no spread.
    """
    need(p.reference, "the model gave no logits in eval mode")
    single, p.returned_weights = run(p, p.images[:1], train=True)
    only_if(single.error)
    answer, p.returned_weights = run(p, p.images, train=True)
    need(answer.error, f"one image cannot train it, two can (drop_last=True): {single.error}")
    return Finding(
        f"two images in training mode: {answer.error}",
        "in eval mode it runs, so that nothing is seen before training starts; batch norm over "
        "tokens, for one, cannot do with fewer of them, as masking leaves: nn.LayerNorm can",
        answer.where,
    )


def returned_attention(p: Patient) -> Finding:
    """Compare the row sums of weights (B, h, N, N) in the output, in training and in eval.

    After dropout of 0.1 they sum to 0.87 to 1.12 in place of 1; 1% off is a finding.
    """
    need(p.returned_weights, "nothing to check: the model gives logits alone, as most do")
    _, in_eval = run(p, p.images[:1], train=False)
    ones = [x for x in in_eval if float((x.sum(-1) - 1).abs().max()) < 1e-3]
    same = len(ones) == len(p.returned_weights)
    need(same, "rows of what it returns do not sum to 1 in eval mode")
    sums = p.returned_weights[0].sum(-1)
    low, high = float(sums.min()), float(sums.max())
    only_if(low <= 0.99 or high >= 1.01)
    zeros = float((p.returned_weights[0] == 0).float().mean())
    return Finding(
        f"in training, rows of the attention that the model returns sum to {low:.2f} to {high:.2f}"
        f", and {zeros:.1%} of its weights are 0; in eval the rows sum to 1",
        "dropout was applied to what is looked at: return the weights from before it",
    )
