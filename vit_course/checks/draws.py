"""What lesson 11's `DropPath` and `random_masking` are tried on, and judged by: what holds for
whatever they draw."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from vit_steps import variants as package

from .compare import Verdict, kind_of
from .trials import Trial, numbered, untouched

FINE = Verdict("as it should")

# DropPath ----------------------------------------------------------------------------------------

RATE = 0.3
CALLS = 60
NO_TENSOR = "forward gives {}; it must give a tensor, in both modes"


def branches(*shape: int) -> Tensor:
    """What a branch may give: random numbers, none of them near 0."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)))
    return x + x.sign() / 2


def dropped(made: nn.Module, branch: Tensor) -> Any:
    """What the module gives in several calls, (calls, B, …), or why it is no such thing."""
    results = []
    for _ in range(CALLS):
        result = untouched(made, branch)
        if not isinstance(result, Tensor):
            return ... if result is ... else Verdict(NO_TENSOR.format(kind_of(result)))
        if result.shape != branch.shape:
            return Verdict(
                f"for a branch of shape {tuple(branch.shape)} it gives {tuple(result.shape)}; what "
                "comes out has the shape of what went in"
            )
        results.append(result.detach())
    return torch.stack(results)


def left_out(zero: Tensor) -> str:
    """What was left out, from (calls, B, N), True at zeros; "" where it was whole samples."""
    if not zero.any():
        return "nothing is left out"
    if (zero == zero[:, :1, :1]).all():
        return "all samples of a batch are left out together, or none: draw a number for each"
    if (zero != zero[..., :1]).any():
        return "parts of a sample are left out"
    if (zero == zero[:1]).all():
        return "the same samples are left out in every call"
    return ""


def share_and_scale(zero: Tensor, ratios: Tensor, rate: float) -> str:
    """What is wrong with how many are left out, and with the others' scale; "" where nothing is."""
    share, wrong = zero.float().mean().item(), []
    if abs(share - (1 - rate)) < 0.05:
        wrong.append("samples stay with the chance `rate`; that is the chance of being left out")
    elif abs(share - rate) > 0.05:
        wrong.append("the share of samples left out is not `rate`")
    scales = {
        "the samples that stay are not scaled: divide them by 1 - rate": 1.0,
        "the samples that stay are multiplied by 1 - rate; divide by it": 1 - rate,
        "the samples that stay are divided by rate; divide by 1 - rate": 1 / rate,
        "the samples that stay are scaled twice; divide by 1 - rate once": 1 / (1 - rate) ** 2,
    }
    kept = ratios[~zero]
    if not torch.allclose(kept, torch.full_like(kept, 1 / (1 - rate)), rtol=1e-4):
        said = "the samples that stay are not scaled by 1 / (1 - rate)"
        for words, scale in scales.items():
            if torch.allclose(kept, torch.full_like(kept, scale), rtol=1e-4):
                said = words
        wrong.append(said)
    return "; and ".join(wrong)


def in_training(what: str, shape: tuple[int, ...], rate: float = RATE) -> Trial:
    """A trial of what is left out in training of a branch of this shape, over several calls."""

    def run(answer: Callable) -> Any:
        made, branch = answer(rate), branches(*shape)
        if not isinstance(made, nn.Module):
            return made
        results = dropped(made.train(), branch)
        if not isinstance(results, Tensor):
            return results
        if not results.isfinite().all():
            return Verdict("some numbers are not finite: is something divided by 0?")
        if rate == 0:
            same = all(torch.equal(result, branch) for result in results)
            return FINE if same else Verdict("at rate 0 the branch must come out as it went in")
        ratios = (results / branch).reshape(CALLS, shape[0], -1)
        problem = left_out(ratios == 0)
        if problem.startswith("parts") and len(shape) > 2:
            tokens = ratios.reshape(CALLS, shape[0], shape[1], -1) == 0
            single = (tokens != tokens[..., :1]).any()
            parts = "single numbers" if single else "single tokens"
            problem = f"{parts} are left out, not whole samples: draw one number a sample"
        return Verdict(problem or share_and_scale(ratios == 0, ratios, rate) or FINE)

    return Trial(what, run)


def in_evaluation(answer: Callable) -> Any:
    """Whether the branch comes out as it went in."""
    made, branch = answer(RATE), branches(40, 3, 4)
    if not isinstance(made, nn.Module):
        return made
    results = dropped(made.eval(), branch)
    if not isinstance(results, Tensor):
        return results
    if all(torch.equal(result, branch) for result in results):
        return FINE
    if (results == 0).any():
        return Verdict("in evaluation mode it leaves samples out: give back the branch")
    return Verdict("in evaluation mode it changes the branch: give it back as it came")


def with_gradients(answer: Callable) -> Any:
    """Whether the branch learns as it was used: kept samples scaled, the others not at all."""
    made, branch = answer(RATE), branches(40, 3, 4).requires_grad_()
    if not isinstance(made, nn.Module):
        return made
    result = made.train()(branch)
    if not isinstance(result, Tensor):
        return ... if result is ... else Verdict(NO_TENSOR.format(kind_of(result)))
    if not result.requires_grad:
        return Verdict("no gradient passes: keep to tensors, without detach, .data or no_grad")
    (grad,) = torch.autograd.grad(result.sum(), branch)
    same = torch.allclose(grad * branch, result, rtol=1e-4)
    return FINE if same else Verdict("the branch gets another gradient than it was used with")


# random_masking ----------------------------------------------------------------------------------

THREE = "it must give three results: the tokens kept, the order and the mask"


def forms(tokens: Tensor, ratio: float, result: Any) -> str:
    """What is wrong with the kinds and shapes of the three results; "" where nothing is."""
    batch, length, width = tokens.shape
    count = package.kept_count(length, ratio)
    if not isinstance(result, (tuple, list)) or len(result) != 3:
        return f"{THREE}; it gives {kind_of(result)}"
    if not all(isinstance(part, Tensor) for part in result):
        return "the tokens kept, the order and the mask must each be one tensor"
    kept, order, mask = result
    if not kept.is_floating_point():
        return "the first result holds whole numbers, places of tokens; give the tokens themselves"
    if order.dtype == torch.bool and mask.dtype != torch.bool:
        return "the order and the mask have changed places: (kept, order, mask)"
    if kept.shape == tokens.shape and count < length:
        return "all tokens are still there: give the ones kept alone, (B, K, D)"
    wanted = {
        "the tokens kept have": (kept, (batch, count, width)),
        "the order has": (order, (batch, length)),
        "the mask has": (mask, (batch, length)),
    }
    for words, (part, shape) in wanted.items():
        if part.shape != shape:
            return f"{words} the shape {tuple(part.shape)}, expected {shape}"
    if mask.dtype != torch.bool:
        return f"the mask holds {mask.dtype}; it must hold True and False, torch.bool"
    if order.is_floating_point() or order.dtype == torch.bool:
        return f"the order holds {order.dtype}; it must hold whole numbers, places in a row"
    return ""


def contents(tokens: Tensor, kept: Tensor, order: Tensor, mask: Tensor) -> str:
    """What is wrong with what the three hold, of tokens that all differ; "" where nothing is."""
    count, places = kept.shape[1], torch.arange(tokens.shape[1])
    same = (kept[:, :, None] == tokens[:, None]).all(dim=-1)  # (B, K, N): which token is it?
    if not same.any(dim=2).all():
        return "what is kept are not rows of the sample's own tokens"
    if (same.sum(dim=1) > 1).any():
        return "a token is kept more than once"
    if (order.sort(dim=1).values != places).any():
        return "a row of the order must hold each of 0 … N - 1 once; yours does not"
    stood, stays = same.int().argmax(dim=2), same.any(dim=1)  # (B, K), (B, N)
    went = order.gather(1, stood)  # (B, K): 0, 1, 2, … where all is right
    if (went != places[:count]).any():
        if (order[:, :count] == stood).all():
            return "the order says which token stands at a place, not where each token went"
        if (stood == places[:count]).all():
            return "the first K tokens are kept as they came"
        if (went == went[:1]).all():
            return "the order counts the tokens kept from another end of the shuffled row"
        if (stays == (order < count)).all() and (stood.diff(dim=1) > 0).all():
            return "the tokens kept stand as they came, and the order says that they are shuffled"
        return "the order does not lead to the tokens kept"
    if (mask == stays).all() and count < len(places):
        return "the mask is True where a token stays; it must be True where one is left out"
    if (mask == (places >= count)).all() and (mask != ~stays).any():
        return "the mask is that of the shuffled row: K times False, then True"
    if (mask != ~stays).any():
        return "the mask is not True just where a token is left out"
    return ""


def masking(what: str, shape: tuple[int, int, int], ratio: float) -> Trial:
    """A trial of masking numbered tokens, by what holds for whatever is drawn."""

    def run(answer: Callable) -> Any:
        tokens = numbered(*shape)
        result = untouched(answer, tokens, ratio)
        if result is None or result is ... or isinstance(result, Verdict):
            return result
        return Verdict(forms(tokens, ratio, result) or contents(tokens, *result) or FINE)

    return Trial(what, run)


def by_chance(answer: Callable) -> Any:
    """Whether each sample is masked in its own way, in each call anew, and fairly."""
    tokens = numbered(1500, 16, 2)
    masks = []
    for _ in range(2):
        result = answer(tokens, 0.5)
        if result is None or result is ...:
            return result
        if problem := forms(tokens, 0.5, result):
            return Verdict(problem)
        masks.append(result[2])
    if torch.equal(*masks) and (masks[0] == masks[0][:1]).all():
        return Verdict("the same tokens are kept in every sample and in every call: draw some")
    if (masks[0] == masks[0][:1]).all():
        return Verdict("all samples of a batch keep the same tokens; each draws its own")
    if torch.equal(*masks):
        return Verdict("the same tokens are kept in every call; draw anew, without a seed")
    often = masks[0].sum(dim=0)
    if (often < 600).any() or (often > 900).any():
        return Verdict("some tokens are kept much more often than others")
    return FINE


def tokens_learn(answer: Callable) -> Any:
    """Whether gradients pass from the tokens kept to those tokens."""
    tokens = numbered(2, 5, 3).requires_grad_()
    result = answer(tokens, 0.4)
    if result is None or result is ...:
        return result
    if problem := forms(tokens, 0.4, result):
        return Verdict(problem)
    if result[0].requires_grad:
        return FINE
    return Verdict("no gradient passes: keep to tensors, without detach, .data or no_grad")
