"""Trials of lesson 11's `DropPath` and `random_masking`: what holds for whatever they draw."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from vit_steps.dropping import kept_count

from .compare import Parts, Verdict, kind_of
from .trials import Trial, drawn, numbered, untouched

# DropPath ----------------------------------------------------------------------------------------

CALLS = 60  # of a module, to see what it draws


def branches(*shape: int) -> Tensor:
    """Draw what a branch may give, numbers of which none is near 0."""
    x = drawn(*shape, seed=len(shape))
    return x + x.sign() / 2


def dropping(answer: Callable, branch: Tensor, rate: float, training: bool) -> Any:
    """Give what the module gives in several calls, (calls, B, …), or why it is no such module."""
    layer, results = answer(rate), []
    if not isinstance(layer, nn.Module):
        return layer
    for _ in range(CALLS):
        result = untouched(layer.train(training), branch)
        if result is ...:
            return result
        if not isinstance(result, Tensor):
            return Verdict(f"forward gives {kind_of(result)}; it must give a tensor, in both modes")
        if result.shape[1:] == branch.shape[1:] and len(result) < len(branch):
            return Verdict("fewer samples come out than went in")
        if result.shape != branch.shape:
            before, after = tuple(branch.shape), tuple(result.shape)
            return Verdict(f"for a branch of shape {before} it gives {after}; give the same shape")
        results.append(result)
    return torch.stack(results)


def left_out(zero: Tensor, rate: float) -> str:
    """Say what is wrong with which are left out, by (calls, B, N, …), True at zeros; or ""."""
    many = zero[..., 0, 0].sum(dim=1).float()  # how many samples, in each call
    if not zero.any():
        return "nothing is left out"
    if (zero == zero[:, :1, :1, :1]).all():
        return "all samples of a batch are left out together, or none"
    if (zero != zero[..., :1]).any():
        return "single numbers are left out"
    if (zero != zero[:, :, :1]).any():
        return "parts of a sample are left out"
    if (zero == zero[:1]).all():
        return "the same samples are left out in every call"
    # counts of independent draws have the variance B · rate · (1 - rate)
    steady = many.var() < zero.shape[1] * rate * (1 - rate) / 4
    return "the number of samples left out is the same in every call" if steady else ""


def in_training(what: str, shape: tuple[int, ...], rate: float) -> Trial:
    """Make a trial of what is left out in training of a branch of this shape, in many calls."""

    def say(results: Any, branch: Tensor, *_: Any) -> Any:
        if not isinstance(results, Tensor):
            return results
        factors = (results / branch).reshape(CALLS, *shape[:2], -1).detach()
        zero = factors == 0
        few = (zero == zero[:1]).all() or (zero == zero[:, :1, :1, :1]).all()  # different draws
        others = factors[~zero] if not zero.all() else factors
        return {
            "what is left out": Verdict(left_out(zero, rate)),
            "the share that is left out": rate if few else round(zero.float().mean().item(), 1),
            "what the others are multiplied by, at least": others.min(),
            "what the others are multiplied by, at most": others.max(),
        }

    return Trial(what, dropping, [branches(*shape), rate, True], say)


def unchanged(what: str, rate: float, training: bool) -> Trial:
    """Make a trial in which the branch must come out as it went in."""

    def say(results: Any, branch: Tensor, *_: Any) -> Any:
        if not isinstance(results, Tensor):
            return results
        factors = (results / branch).detach()
        least, most = factors.min(), factors.max()
        return {"the branch is multiplied by at least": least, "at most": most}

    return Trial(what, dropping, [branches(40, 3, 4), rate, training], say)


def with_gradients(answer: Callable) -> Any:
    """Say whether the branch learns as it was used: kept samples scaled, the others not at all."""
    branch = branches(40, 3, 4).requires_grad_()
    result = dropping(answer, branch, 0.3, training=True)
    if not isinstance(result, Tensor):
        return result
    if not result.requires_grad:
        return Verdict("no gradient passes: keep to tensors, without detach, .data or no_grad")
    (grad,) = torch.autograd.grad(result.sum(), branch)
    same = torch.allclose(grad * branch, result.sum(dim=0), rtol=1e-4)
    return Verdict("" if same else "the branch gets another gradient than it was used with")


# random_masking ----------------------------------------------------------------------------------


def contents(tokens: Tensor, kept: Tensor, order: Tensor, mask: Tensor) -> tuple[str, str, str]:
    """Say what is wrong with each of the three, made of tokens that all differ, or ""."""
    count, places = kept.shape[1], torch.arange(tokens.shape[1])
    same = (kept[:, :, None] == tokens[:, None]).all(dim=-1)  # (B, K, N): which token is it?
    stood, stays = same.int().argmax(dim=2), same.any(dim=1)  # (B, K), (B, N)
    of_kept = of_order = of_mask = ""
    if not same.any(dim=2).all():
        of_kept = "what is kept are not the sample's own tokens"
    elif (same.sum(dim=1) > 1).any():
        of_kept = "a token is kept more than once"
    if (order.sort(dim=1).values != places).any():
        of_order = "a row of the order does not hold each of 0 … N - 1 once"
    elif not of_kept and (order.gather(1, stood) != places[:count]).any():
        of_order = "the order does not lead to the tokens kept"
        if (order[:, :count] == stood).all():
            of_order = "the order says which token stands at a place, not where each token went"
        elif (stood == places[:count]).all():
            of_order = "the first K tokens are kept as they came, and the order is shuffled"
        elif (stood.diff(dim=1) > 0).all():
            of_order = "the tokens kept stand as they came, and the order is shuffled"
    if not of_kept and (mask != ~stays).any():
        of_mask = "the mask is not True exactly where a token is left out"
        if (mask == stays).all():
            of_mask = "the mask is True where a token stays"
        elif (mask == (places >= count)).all():
            of_mask = "the mask is that of the shuffled row, K times False, then True"
        elif (mask.sum(dim=1) == len(places) - count - 1).all():
            of_mask = "the mask has one True too few in each row"
    return of_kept, of_order, of_mask


def masking(what: str, shape: tuple[int, int, int], ratio: float) -> Trial:
    """Make a trial of masking numbered tokens: shapes, types, and what holds for any draw."""

    def say(three: Any, tokens: Tensor, _: float) -> Any:
        if not isinstance(three, (tuple, list)) or len(three) != 3:
            return three
        if not all(isinstance(part, Tensor) for part in three):
            return Verdict("the tokens kept, the order and the mask must each be one tensor")
        kept, order, mask = three
        right = tokens[:, : kept_count(shape[1], ratio)].shape
        fit = kept.shape == right and order.shape == mask.shape == shape[:2]
        wrong = contents(tokens, kept, order, mask.bool()) if fit else ("", "", "")
        facts = zip(three, wrong, strict=True)
        return tuple(Parts(torch.zeros_like(part), Verdict(fact)) for part, fact in facts)

    return Trial(what, untouched, [numbered(*shape), ratio], say)


def twice(answer: Callable, tokens: Tensor) -> list:
    """Give the masks of two calls."""
    return [answer(tokens, 0.5)[2] for _ in range(2)]


def by_chance(masks: list[Tensor], _: Tensor) -> Any:
    """Say whether each sample is masked in its own way, in each call anew, and fairly."""
    choices = len((masks[0] * 2 ** torch.arange(16)).sum(dim=1).unique())
    often = masks[0].sum(dim=0)  # near 300; four standard deviations are 49
    samples = ""
    if choices == 1:
        samples = "all samples of a batch keep the same tokens"
    elif choices < 400:
        samples = f"600 samples make {choices} different choices, of 12870 that there are"
    elif (often < 240).any() or (often > 360).any():
        samples = "some tokens are kept much more often than others"
    calls = "the same tokens are kept in every call" if torch.equal(*masks) else ""
    return Parts(Verdict(calls), Verdict(samples))


MANY = Trial("600 samples of 16 tokens, ratio 0.5, twice", twice, [numbered(600, 16, 1)], by_chance)


def tokens_learn(answer: Callable) -> Any:
    """Say whether gradients pass from the tokens kept to those tokens."""
    kept = answer(numbered(2, 5, 3).requires_grad_(), 0.4)[0]
    problem = "no gradient passes: keep to tensors, without detach, .data or no_grad"
    return Verdict("" if kept.requires_grad else problem)
