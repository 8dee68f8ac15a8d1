"""What a look inside blocks shows: what multiplies the values, how it came to be, activations."""

import math

from ..patient import Patient, need, only_if
from ..report import Finding
from ..watching.records import Attention

UNSEEN = "no softmax over a product of queries and keys was seen"
UNKNOWN_FACTORS = "no scores were seen of which each factor is known"


def scale_after_softmax(p: Patient) -> Finding:
    """Look for a number that multiplies the weights after the softmax, 2% and more off 1.

    Only where the rows sum to just that number, so that nothing else made up for it.
    """
    attentions = need(p.watch.attentions, UNSEEN)
    scaled = [a for a in attentions if abs(a.factor - 1) > 0.02]
    wrong = only_if(
        [a for a in scaled if all(abs(x - a.factor) <= abs(a.factor) / 100 for x in a.sums)]
    )
    return Finding(
        f"rows of what multiplies the values sum to {wrong[0].sums[1]:.4g}, in {len(wrong)} of "
        f"{len(attentions)} attentions: they are scaled by that after the softmax",
        "here the scale shrinks what attention adds, and leaves the softmax too sharp: scale the "
        f"scores by 1/√{wrong[0].width} before the softmax, and nothing after it",
        wrong[0].where,
    )


def softmax_axis(p: Patient) -> Finding:
    """Look for weights that do not sum to 1 over the keys, and do over other axes, exactly.

    A softmax leaves 1e-6; 1e-4 over the keys is a finding, so that flat weights are judged too.
    """
    attentions = need(p.watch.attentions, UNSEEN)
    wrong = only_if([a for a in attentions if a.other_axis])
    low, high = wrong[0].sums
    axes = "another axis" if wrong[0].other_axis == "another" else "several axes together"
    return Finding(
        f"the weights of a query sum to {low:.4g} to {high:.4g} over its keys, and to 1 over "
        f"{axes}, in {len(wrong)} of {len(attentions)} attentions",
        "each query should share out one whole among its keys: softmax over the axis of the keys, "
        "the last of the scores",
        wrong[0].where,
    )


def softmax_unused(p: Patient) -> Finding:
    """Look for scores that mix values although a softmax was taken, or their logarithms that do.

    Without any softmax it is linear attention, and sound.
    """
    lines = p.watch.unsoftened
    need(lines or p.watch.attentions, UNSEEN)
    only_if(lines)
    return Finding(
        f"scores, and not their softmax, multiply the values, in {len(lines)} attentions",
        "the softmax is computed and thrown away, or its logarithm was taken: weights @ values",
        lines[0],
    )


def softmax_missing(p: Patient) -> Finding:
    """Look for scores, scaled by 1/√width, that mix values with a sigmoid, two softmax or none.

    Behind a bias, or scaled otherwise, they are other kinds of attention, and sound.
    """
    attentions = need(p.watch.attentions, UNSEEN)
    wrong = only_if([a for a in attentions if a.how != "softmax"])
    instead = {
        "none": "nothing",
        "sigmoid": "a sigmoid of each score alone",
        "twice": "two softmax",
    }
    return Finding(
        f"{instead[wrong[0].how]} in place of one softmax makes of scores what multiplies the "
        f"values, in {len(wrong)} of {len(attentions)} attentions",
        "each query should share out one whole among its keys: weights = scores.softmax(-1), once",
        wrong[0].where,
    )


def mask_unused(p: Patient) -> Finding:
    """Look for scores that were masked, or given a bias, in a new tensor that nothing takes up."""
    lines = [where for _, where in p.watch.unused_masks.values()]
    need(lines or p.watch.attentions, UNSEEN)
    only_if(lines)
    return Finding(
        f"what a mask or a bias makes of the scores is thrown away, {len(lines)} times",
        "masked_fill without _, torch.where and + give a new tensor: scores = "
        "scores.masked_fill(~mask, -inf)",
        lines[0],
    )


def activation_missing(p: Patient) -> Finding:
    """Look for a linear map that widens tokens, and one that narrows them, with nothing in between.

    Dropout counts as nothing. Narrow first, then wide, is a map of low rank, and sound.
    """
    need(p.watch.used_tensors, "the model was not seen running")
    lines = only_if(p.watch.linear_pairs)
    return Finding(
        f"a linear map's output goes straight into another one, {len(lines)} times",
        "two linear maps in a row are one: put GELU in between",
        lines[0],
    )


def activation_last(p: Patient) -> Finding:
    """Look for an activation of a linear map's output, dropout or not, added to tokens as it is."""
    need(p.watch.used_tensors, "the model was not seen running")
    lines = only_if(p.watch.activated_sums)
    return Finding(
        f"an activation's output is added to the tokens, {len(lines)} times",
        "ReLU gives nothing below 0, GELU nothing below -0.17, so that a branch can hardly take "
        "anything away: end it with a linear map",
        lines[0],
    )


def scale_missing(p: Patient) -> Finding:
    """Look for scores of queries and keys that nothing scales, in heads of 4 numbers and more.

    Only where queries and keys come from linear maps.
    """
    measured = [a for a in p.watch.attentions if a.ratio is not None and a.width >= 4]
    need(measured, UNKNOWN_FACTORS)
    wrong = only_if([a for a in measured if unscaled(a)])
    return Finding(
        f"the scores of heads {wrong[0].width} wide are not scaled, in {len(wrong)} of "
        f"{len(measured)} attentions; √{wrong[0].width} is {math.sqrt(wrong[0].width):.3g}",
        "scores grow with the width of a head, and the softmax saturates: scale them by "
        f"1/√{wrong[0].width} before it",
        wrong[0].where,
    )


def scale_width(p: Patient) -> Finding:
    """Look for a scale that is not 1/√(width of a head): 20% off is a finding, as no rounding is.

    Only where queries and keys come from linear maps and each factor is fixed: learned
    temperatures, and norms on queries or keys, follow other rules.
    """
    measured = [a for a in p.watch.attentions if a.ratio is not None and a.width >= 2]
    need(measured, UNKNOWN_FACTORS)
    wrong = only_if([a for a in measured if not 0.8 < (a.ratio or 0) < 1.25 and not unscaled(a)])
    width, scale = wrong[0].width, (wrong[0].ratio or 0) / math.sqrt(wrong[0].width)
    return Finding(
        f"scores are multiplied with {scale:.4g}; a head is {width} wide, so it should be "
        f"1/√{width} = {width**-0.5:.4g} ({len(wrong)} of {len(measured)} attentions)",
        "the scale keeps the scores' spread near 1: too small makes attention flat, too large "
        f"saturates it; scale them by 1/√{width}",
        wrong[0].where,
    )


def unscaled(a: Attention) -> bool:
    """Tell whether the scores were not scaled at all."""
    return abs((a.ratio or 0) - math.sqrt(a.width)) < 1e-3 and a.width >= 4


def attention_uniform(p: Patient) -> Finding:
    """Look for weights that differ by less than 1e-6 of their mean, in all attentions of 4 keys up.

    Scores that start small give flat weights, and are sound: at a width of 12 they differ by 1e-3.
    """
    measured = [a for a in p.watch.attentions if a.spread is not None and a.keys >= 4]
    need(measured, UNSEEN)
    only_if(all((a.spread or 0) <= 1e-6 for a in measured))
    return Finding(
        f"all weights of all {len(measured)} attentions are 1/{measured[0].keys}",
        "each token looks at all tokens alike: let queries and keys depend on the tokens, and "
        "their product be scaled by 1/√d, not by 0",
        measured[0].where,
    )


def attention_saturated(p: Patient) -> Finding:
    """Measure the largest weight of a row, on average over an attention, before any training.

    With 8 keys and more, sound starts give less than 0.5; 0.9 is a finding.
    """
    need(p.fresh, "only for a model that is not trained yet")
    measured = [a for a in p.watch.attentions if a.largest is not None and a.keys >= 8]
    need(measured, UNSEEN)
    wrong = only_if([a for a in measured if (a.largest or 0) > 0.9])
    return Finding(
        f"at the start the largest weight of a row is {wrong[0].largest:.2f} on average, in "
        f"{len(wrong)} of {len(measured)} attentions",
        "a saturated softmax passes no gradient to queries and keys: scale the scores by 1/√d, "
        "and start the weights of both small",
        wrong[0].where,
    )
