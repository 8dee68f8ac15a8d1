"""What a look inside shows of attention: what multiplies the values, and how it came to be."""

import math

from ..patient import Patient
from ..report import Finding, Skipped
from ..watching.watch import Attention

UNSEEN = Skipped("no softmax over a product of queries and keys was seen")


def seen(p: Patient) -> list[Attention]:
    """What was seen of attention, in order."""
    return p.watch.attentions


def scale_after_softmax(p: Patient) -> Finding | Skipped | None:
    """A number that the weights are multiplied with after the softmax, within 2% of 1 being none.

    Only where the rows sum to just that number, so that nothing else made up for it.
    """
    if not seen(p):
        return UNSEEN
    wrong = [a for a in seen(p) if abs(a.factor - 1) > 0.02 and near(a.sums, a.factor)]
    if not wrong:
        return None
    return Finding(
        "scale after softmax",
        f"rows of what multiplies the values sum to {wrong[0].sums[1]:.4g}, in {len(wrong)} of "
        f"{len(seen(p))} attentions: they are scaled by that after the softmax",
        "here the scale shrinks what attention adds, and leaves the softmax too sharp: scale the "
        f"scores by 1/√{wrong[0].width} before the softmax, and nothing after it",
        wrong[0].where,
    )


def softmax_axis(p: Patient) -> Finding | Skipped | None:
    """Weights that do not sum to 1 over the keys, and do over another axis, exactly.

    A softmax leaves 1e-6; 1e-4 over the keys is a finding, so that flat weights are judged too.
    """
    if not seen(p):
        return UNSEEN
    wrong = [a for a in seen(p) if a.other]
    if not wrong:
        return None
    low, high = wrong[0].sums
    return Finding(
        "softmax axis",
        f"the weights of a query sum to {low:.4g} to {high:.4g} over its keys, and to 1 over "
        f"another axis, in {len(wrong)} of {len(seen(p))} attentions",
        "each query should share out one whole among its keys: softmax over the axis of the keys, "
        "the last of the scores",
        wrong[0].where,
    )


def softmax_unused(p: Patient) -> Finding | Skipped | None:
    """Scores that mix values although a softmax was taken of them, or their logarithms that do.

    Without any softmax it is linear attention, and sound.
    """
    if not p.watch.thrown:
        return None if seen(p) else UNSEEN
    return Finding(
        "softmax unused",
        f"scores, and not their softmax, multiply the values, in {len(p.watch.thrown)} attentions",
        "the softmax is computed and thrown away, or its logarithm was taken: weights @ values",
        p.watch.thrown[0],
    )


def mask_unused(p: Patient) -> Finding | Skipped | None:
    """Scores that were masked, or given a bias, in a new tensor that nothing takes up."""
    if not p.watch.unused:
        return None if seen(p) else UNSEEN
    _, where = next(iter(p.watch.unused.values()))
    return Finding(
        "mask unused",
        f"what a mask or a bias makes of the scores is thrown away, {len(p.watch.unused)} times",
        "masked_fill without _, torch.where and + give a new tensor: scores = "
        "scores.masked_fill(~mask, -inf)",
        where,
    )


def activation_missing(p: Patient) -> Finding | Skipped | None:
    """A linear map that widens tokens, and one that narrows them, with nothing in between.

    Dropout counts as nothing. Narrow first, then wide, is a map of low rank, and sound.
    """
    if not p.watch.bare:
        return None if p.watch.used else Skipped("the model was not seen running")
    return Finding(
        "activation missing",
        f"a linear map's output goes straight into another one, {len(p.watch.bare)} times",
        "two linear maps in a row are one: put GELU in between",
        p.watch.bare[0],
    )


def activation_last(p: Patient) -> Finding | Skipped | None:
    """An activation of a linear map's output, dropout or not, that is added to tokens as it is."""
    if not p.watch.positive:
        return None if p.watch.used else Skipped("the model was not seen running")
    return Finding(
        "activation last",
        f"an activation's output is added to the tokens, {len(p.watch.positive)} times",
        "ReLU gives nothing below 0, GELU nothing below -0.17, so that a branch can hardly take "
        "anything away: end it with a linear map",
        p.watch.positive[0],
    )


def scale_missing(p: Patient) -> Finding | Skipped | None:
    """Scores of queries and keys, as linear maps gave them, that nothing scales; heads 4 wide."""
    known = [a for a in seen(p) if a.ratio is not None and a.width >= 4]
    if not known:
        return Skipped("no scores were seen of which each factor is known")
    wrong = [a for a in known if bare(a)]
    if not wrong:
        return None
    return Finding(
        "scale missing",
        f"the scores of heads {wrong[0].width} wide are not scaled, in {len(wrong)} of "
        f"{len(known)} attentions; √{wrong[0].width} is {math.sqrt(wrong[0].width):.3g}",
        "scores grow with the width of a head, and the softmax saturates: scale them by "
        f"1/√{wrong[0].width} before it",
        wrong[0].where,
    )


def scale_width(p: Patient) -> Finding | Skipped | None:
    """Scores whose scale is not 1/√(width of a head): 20% off is a finding, as no rounding is.

    Only where queries and keys come from linear maps and each factor is fixed: learned
    temperatures, and norms on queries or keys, follow other rules.
    """
    known = [a for a in seen(p) if a.ratio is not None and a.width >= 2]
    if not known:
        return Skipped("no scores were seen of which each factor is known")
    wrong = [a for a in known if not 0.8 < (a.ratio or 0) < 1.25 and not bare(a)]
    if not wrong:
        return None
    worst = wrong[0]
    scale = (worst.ratio or 0) / math.sqrt(worst.width)
    return Finding(
        "scale width",
        f"scores are multiplied with {scale:.4g}; a head is {worst.width} wide, so it should be "
        f"1/√{worst.width} = {worst.width**-0.5:.4g} ({len(wrong)} of {len(known)} attentions)",
        "the scale keeps the scores' spread near 1: too small makes attention flat, too large "
        f"saturates it; scale them by 1/√{worst.width}",
        worst.where,
    )


def bare(a: Attention) -> bool:
    """Whether the scores were not scaled at all."""
    return abs((a.ratio or 0) - math.sqrt(a.width)) < 1e-3 and a.width >= 4


def attention_uniform(p: Patient) -> Finding | Skipped | None:
    """Weights that differ by less than 1e-6 of their mean, in every attention with 4 keys or more.

    Scores that start small give flat weights, and are sound: at a width of 12 they differ by 1e-3.
    """
    measured = [a for a in seen(p) if a.spread is not None and a.keys >= 4]
    if not measured:
        return UNSEEN
    if any((a.spread or 0) > 1e-6 for a in measured):
        return None
    return Finding(
        "attention uniform",
        f"all weights of all {len(measured)} attentions are 1/{measured[0].keys}",
        "each token looks at all tokens alike: let queries and keys depend on the tokens, and "
        "their product be scaled by 1/√d, not by 0",
        measured[0].where,
    )


def attention_saturated(p: Patient) -> Finding | Skipped | None:
    """The largest weight of a row, on average over an attention, of a model not yet trained.

    With 8 keys and more, sound starts give less than 0.5; 0.9 is a finding.
    """
    if not p.fresh:
        return Skipped("only for a model that is not trained yet")
    measured = [a for a in seen(p) if a.largest is not None and a.keys >= 8]
    if not measured:
        return UNSEEN
    wrong = [a for a in measured if (a.largest or 0) > 0.9]
    if not wrong:
        return None
    return Finding(
        "attention saturated",
        f"at the start the largest weight of a row is {wrong[0].largest:.2f} on average, in "
        f"{len(wrong)} of {len(measured)} attentions",
        "a saturated softmax passes no gradient to queries and keys: scale the scores by 1/√d, "
        "and start the weights of both small",
        wrong[0].where,
    )


def near(sums: tuple[float, float], to: float, within: float = 0.01) -> bool:
    """Whether all sums are this number, but for a share."""
    return all(abs(each - to) <= within * abs(to) for each in sums)


INSIDE = (
    *(scale_after_softmax, softmax_axis, softmax_unused, mask_unused, activation_missing),
    activation_last,
    *(scale_missing, scale_width),
    *(attention_uniform, attention_saturated),
)
