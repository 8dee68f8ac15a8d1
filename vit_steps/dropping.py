"""Lesson 11: what is left out in training: whole branches of a sample, and tokens."""

from fractions import Fraction
from math import floor

import torch
from torch import Tensor, nn

from . import inputs


class DropPath(nn.Module):
    """Leave a branch out for a sample with the chance `rate`, in training (Huang et al. 2016)."""

    def __init__(self, rate: float):
        super().__init__()
        inputs.check_fraction(rate=rate)
        self.rate = rate

    def forward(self, branch: Tensor) -> Tensor:
        """Turn what a branch would add (B, …) into what it adds."""
        if not self.training or self.rate == 0:
            return branch
        keep = 1 - self.rate
        one_each = branch.new_empty(branch.shape[0], *[1] * (branch.ndim - 1))  # (B, 1, …)
        return branch * one_each.bernoulli_(keep) / keep


def drop_path_rates(rate: float, depth: int) -> list[float]:
    """Give each block's `DropPath` rate: from 0 in the first, in equal steps, to `rate`."""
    return [rate * i / max(depth - 1, 1) for i in range(depth)]


def kept_count(length: int, ratio: float) -> int:
    """Count how many of `length` tokens stay, at least one, if that share is masked; ½ counts up.

    `int(10 * (1 - 0.9))` is 0, since floats do not hold 0.9: it is read here as it is written.
    """
    inputs.check_sizes(length=length)
    inputs.check_fraction(ratio=ratio)
    count = floor((1 - Fraction(str(ratio))) * length + Fraction(1, 2))
    if count == 0:
        raise ValueError(f"ratio {ratio} leaves none of {length} tokens; give a smaller one")
    return count


def random_masking(
    tokens: Tensor, ratio: float, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Keep a random part of each sample's tokens (He et al. 2022, section 3).

    Of tokens (B, N, D), their positions already added, the share `ratio` is left out. Gives the
    others (B, K, D), shuffled; the order (B, N), where each token went, for `unmask`; and the mask
    (B, N), True where one is left out. The generator is on the tokens' device.
    """
    inputs.check_tokens(tokens)
    batch, length, _ = tokens.shape
    count = kept_count(length, ratio)
    noise = torch.rand(batch, length, device=tokens.device, generator=generator)
    shuffled = noise.argsort(dim=1)  # (B, N): which token comes first, second, …
    order = shuffled.argsort(dim=1)  # the reverse: where each token went
    kept = tokens.take_along_dim(shuffled[:, :count, None], dim=1)  # (B, K, D)
    return kept, order, order >= count


def unmask(
    kept: Tensor, order: Tensor, mask_token: Tensor, positions: Tensor | None = None
) -> Tensor:
    """Put tokens back where they stood, and into each gap the mask token: (B, N, D).

    `kept` (B, K, D) and `order` (B, N) are from `random_masking`, `mask_token` is (1, 1, D). With
    `positions` (1, N, D) each gap also gets its own; without, what follows must tell places apart
    itself, as C's head does.
    """
    inputs.check_tokens(kept)
    (batch, count, width), length = kept.shape, order.shape[-1]
    inputs.check_axes("order", order, "B N", B=batch)
    inputs.check_axes("mask_token", mask_token, "one token D", one=1, token=1, D=width)
    positions = kept.new_zeros(1, length, width) if positions is None else positions
    inputs.check_axes("positions", positions, "one N D", one=1, N=length, D=width)
    if count > length:
        raise ValueError(f"kept has {count} tokens, order {length}; give at least as many places")
    gaps = mask_token.to(kept.dtype).expand(batch, length - count, -1)
    x = torch.cat([kept, gaps], dim=1).take_along_dim(order[..., None], dim=1)  # (B, N, D)
    return torch.where((order >= count)[..., None], x + positions.to(x.dtype), x)
