"""How large the numbers are that a model starts with."""

import math
from operator import itemgetter

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from ..patient import Patient, SoundError, need, only_if
from ..report import Finding
from ..watching.calls import first_output, rms

SMALL = "nn.init.trunc_normal_(x, std=0.02)"  # the usual start
NOT_FRESH = "only for a model that is not trained yet"


def initial_loss(p: Patient) -> Finding:
    """Compare cross-entropy over all labels with ln(classes), for a model that is not trained.

    Sound heads add 0 to 1 (half the variance of the logits); 3 and more is a finding.
    """
    need(p.fresh, NOT_FRESH)
    logits = need(p.logits, NOT_FRESH).float()
    classes = logits.shape[1]
    need(classes > 1, NOT_FRESH)
    normed = any(isinstance(module, _BatchNorm) for module in p.model.modules())
    need(not normed, "batch norms make the first logits otherwise in training")
    loss = float((logits.logsumexp(1) - logits.mean(1)).mean())
    only_if(loss - math.log(classes) > 3)
    return Finding(
        f"the loss starts at {loss:.1f}; guessing gives ln {classes} = {math.log(classes):.1f}",
        "the model starts sure of wrong answers, and first has to unlearn them: start the head "
        f"small, {SMALL}",
    )


def gains(p: Patient) -> dict[str, float]:
    """Give each linear map's weights' standard deviation times √inputs; nn.Linear has 0.58.

    The last one, the head's, may start as it likes.
    """
    need(p.fresh, NOT_FRESH)
    widths = {name: p.maps.input_widths[name] for name in list(p.maps.input_sizes)[:-1]}
    return {
        name: p.stds[name] * width**0.5
        for name, width in widths.items()
        if width in p.model.get_parameter(name).shape
    }


def weights_large(p: Patient) -> Finding:
    """Look for a Linear that makes its input 6 times as large, at the start; usual: 0.3 to 1.5."""
    name, gain = max(gains(p).items(), key=itemgetter(1), default=("", 0.0))
    only_if(not gain <= 6)
    return Finding(
        f"{name} makes its input {gain:.1f} times as large; usual is about 1",
        f"numbers explode, softmax saturates, and learning does not start: {SMALL}",
        p.location(name.rpartition(".")[0]),
    )


def weights_small(p: Patient) -> Finding:
    """Look for a Linear, not the head, that starts by making its input 1/200 as large, yet not 0.

    Zero is a start that is meant; trunc_normal(0.02) at a width of 4 gives 0.04.
    """
    nonzero = [(name, gain) for name, gain in gains(p).items() if gain > 0]
    name, gain = min(nonzero, key=itemgetter(1), default=("", 1.0))
    only_if(not gain >= 0.005)
    return Finding(
        f"{name} makes its input {gain:.1g} times as large; usual is about 1",
        f"what passes through it is lost beside the rest, and so are its gradients: {SMALL}",
        p.location(name.rpartition(".")[0]),
    )


def positions_large(p: Patient) -> Finding:
    """Look for learned positions 1.4 times as large as the tokens, at the start, and above 0.4.

    Drawn with std 1 on patches of 0.58 (nn.Linear's) they are 1.7 times as large; std 1 behind a
    norm, 1.0, is in use and sound. Fixed sines are not looked at.
    """
    return out_of_size(p, "added", f"they drown the content: {SMALL}", above=1.4)


def positions_small(p: Patient) -> Finding:
    """Look for learned positions a thousandth of the tokens' size, at the start, yet not zero.

    Positions of std 0.02 on tokens of size 1, the usual, are twenty times as large.
    """
    why = f"the model hardly sees where a patch is: {SMALL}"
    return out_of_size(p, "added", why, below=1e-3)


def token_large(p: Patient) -> Finding:
    """Look for a token that joins the patches, 6 times their size at the start; 1.7 is in use."""
    return out_of_size(p, "joined", f"attention looks at it, and at little else: {SMALL}", above=6)


def out_of_size(
    p: Patient, kind: str, why: str, above: float = math.inf, below: float = 0
) -> Finding:
    """Look for a parameter whose size over that of the tokens it meets is above or below a limit.

    One that is not zero, and, to be too large, larger than 0.4.
    """
    need(p.fresh, NOT_FRESH)
    meetings = [meeting for meeting in p.watch.meetings if meeting.kind == kind]
    need(meetings, f"no parameter was seen to be {kind}")
    for meeting in meetings:
        if kind == "added" and meeting.rows_alike:  # that is another fault: no positions
            continue
        size, of_tokens = p.original_sizes.get(meeting.name, meeting.size), meeting.tokens_size
        ratio = size / of_tokens if of_tokens else math.inf
        if 0 < ratio < below or (ratio > above and size > 0.4):
            sizes = f"its size is {size:.2g}, the tokens {of_tokens:.2g}"
            return Finding(f"{meeting.name} is {kind}: {sizes}", why, meeting.where)
    raise SoundError


def bias_large(p: Patient) -> Finding:
    """Look for biases of linear maps, 0.9 and more in size in most, at the start; usual: 0 to 0.3.

    A single one may be meant, as of a head that starts at the classes' shares.
    """
    biased = [m for m in p.model.modules() if isinstance(m, nn.Linear) and m.bias is not None]
    applies = p.fresh and len(biased) >= 4
    need(applies, "only for a model of four biases and more that is not trained yet")
    large = [m for m in biased if rms(m.bias) > 0.9]
    only_if(len(large) > len(biased) / 2)
    return Finding(
        f"{len(large)} of {len(biased)} linear maps start with biases of {rms(large[0].bias):.2g}",
        "they are the same for all tokens and drown what differs: nn.init.zeros_(bias)",
        p.location(p.module_paths[id(large[0])]),
    )


def eps_large(p: Patient) -> Finding:
    """Give a norm tokens of size 0.1 and of size 100: both must come out alike, to 30%.

    An eps of 1e-3 under the root leaves 5% between them, the usual 1e-5 nothing; 0.01 leaves 30%.
    """
    norms = {path: p.model.get_submodule(path) for path in sorted(p.norms)}
    norms = {path: norm for path, norm in norms.items() if not isinstance(norm, _BatchNorm)}
    for path, norm in need(norms, "no norm of tokens was seen").items():
        call = p.calls.first[path]
        generator = torch.Generator().manual_seed(8)
        tokens = torch.randn(call.args[0][:1].shape, generator=generator).to(call.args[0])
        with torch.no_grad():
            small, zero, large = (
                first_output(norm(tokens * scale, *call.args[1:], **call.kwargs))
                for scale in (0.1, 0, 100)
            )
        share = rms(small - zero) / max(rms(large - zero), 1e-30)
        if share < 0.7:
            return Finding(
                f"{path} gives tokens of size 0.1 {share:.2f} times as large as tokens of size 100",
                "eps is there against division by 0; so large, it leaves small tokens small: the "
                "usual are 1e-6 and 1e-5, and another number may stand in its place",
                p.location(path),
            )
    raise SoundError
