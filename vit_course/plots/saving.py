"""Lesson 13: what fills the memory in a training step, and tokens that are merged."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from vit_steps.patches import patchify, unpatchify

from .close_ups import pictures
from .colours import CLS, FAINT, INK, KEY, PATCH
from .figures import charts, rounded, sketch


def step_memory(fixed: float, kept: float, inputs: float, blocks: int, parts: int = 4) -> None:
    """Draw how the memory of one training step rises and falls: at once, in parts, checkpointed.

    A forward pass takes one unit of time, a backward pass two.

    Args:
        fixed: what weights, gradients and the optimizer hold all the time, in GB.
        kept: the activations of the whole batch, in GB.
        inputs: those of them that checkpointing keeps: what goes into the blocks.
        blocks: of the model, of equal size.
        parts: in how many the batch goes through, in the second panel.
    """
    saw = [(0.0, 0.0)]
    for part in range(parts):
        start = 3 * part / parts
        saw += [(start + 1 / parts, kept / parts), (start + 3 / parts, 0.0)]
    again = [(0.0, 0.0), (1.0, inputs)]
    for left in range(blocks - 1, -1, -1):
        now, rest = again[-1][0], inputs * left / blocks
        again += [(now + 1 / blocks, rest + kept / blocks), (now + 3 / blocks, rest)]
    at_once = [(0.0, 0.0), (1.0, kept), (3.0, 0.0)]
    paths = {"at once": at_once, f"in {parts} pieces": saw, "checkpointed": again}
    axes = charts(1, len(paths), 9.2, 2.9, sharey=True)[0]
    for ax, (name, corners) in zip(axes, paths.items(), strict=True):
        times, heights = zip(*corners, strict=True)
        ax.fill_between((0, 4), fixed, color=FAINT, lw=0)
        ax.fill_between(times, fixed, [fixed + height for height in heights], color=PATCH, lw=0)
        top = max(heights)
        place = times[heights.index(top)], fixed + top
        ax.annotate(f"+ {top:.1f} GB", place, (6, 2), textcoords="offset points", size=9)
        ax.set(title=name, xlabel="time, in forward passes", xlim=(0, 4), xticks=range(5))
    first = axes[0]
    first.text(2, fixed / 2, "weights, gradients, AdamW", ha="center", va="center", size=8)
    first.set(ylabel="memory in GB", ylim=(0, 1.12 * (fixed + kept)))


def merged_photo(photo: Tensor, merge: Callable, times: Sequence[int] = (60, 60)) -> None:
    """Show a photo (3, S, S), and each patch of 16×16 as its token shows it after some mergings.

    Patches of pixels serve as tokens and as keys. A one-hot row tied to each token tells afterwards
    which patches are in it.

    Args:
        merge: lesson 13's `merge_tokens`.
        times: how many tokens go in each merging.
    """
    patches = patchify(photo[None], 16)  # (1, n, 768)
    count, width = patches.shape[1] + 1, patches.shape[2]
    x = torch.cat([torch.zeros(1, 1, width), patches], dim=1)  # cls, patches
    x, sizes = torch.cat([x, torch.eye(count)[None]], dim=2), torch.ones(1, count)
    stages = {f"{count} tokens": photo}
    for r in times:
        x, sizes = merge(x, x[..., :width] - 0.5, sizes, r)
        members = (x[0, :, width:] > 0).float()  # (tokens, count)
        back = members.T @ x[0, :, :width]  # to each patch its token's pixels
        stages[f"{len(members)} tokens"] = unpatchify(back[None, 1:], 16, photo.shape[1])[0]
    pictures(stages, height=2.8)


def merging(numbers: Sequence[float], keys: Tensor, r: int) -> None:
    """Draw how the r most alike pairs of tokens are merged (Bolya et al. 2023, figure 1).

    The even ones stand above; an arrow leads from each of them but cls to its odd partner, with the
    cosine, bold where they are merged; each has its key. On the right is what comes out, with its
    size.

    Args:
        numbers: each token's, cls first.
        keys: (N, d), of which no two cosines are equal.
    """
    unit = F.normalize(keys, dim=-1)
    best, partners = (unit[2::2] @ unit[1::2].T).max(dim=1)
    gone = best.argsort(descending=True)[:r].tolist()  # places among the even ones without cls
    groups = {b: [b] for b in range(1, len(numbers), 2)}
    ax, end = sketch(9.6, 2.5), len(numbers) + 0.6
    for place, (cosine, partner) in enumerate(zip(best.tolist(), partners.tolist(), strict=True)):
        a, b = 2 * place + 2, 2 * partner + 1
        goes = place in gone
        look = dict(color=INK, lw=2.2) if goes else dict(color=FAINT, lw=1.2)
        ax.annotate("", (b, 0.27), (a, 0.73), arrowprops=dict(arrowstyle="-|>", **look))
        paper = dict(facecolor="white", edgecolor="none", pad=1)
        ax.text((a + b) / 2, 0.5, f"{cosine:.2f}", ha="center", va="center", size=9, bbox=paper)
        if goes:
            groups[b].append(a)
    left = [[a] for a in range(0, len(numbers), 2) if a // 2 - 1 not in gone]
    for place, group in enumerate([*left, *groups.values()]):
        colour = CLS if group == [0] else KEY if len(group) > 1 else "white"
        for member in group:
            boxed(ax, member, 1 - member % 2, f"{numbers[member]:g}", colour)
            key = ", ".join(f"{number:g}" for number in keys[member].tolist())
            ax.text(member, 1.33 - 1.68 * (member % 2), f"({key})", ha="center", size=8)
        mean = sum(numbers[member] for member in group) / len(group)
        boxed(ax, end + place, 0.5, f"{mean:g}", colour)
        ax.text(end + place, 0.1, f"size {len(group)}", ha="center", size=9)
    for y, name in ((1, "even"), (0, "odd")):
        ax.text(-0.7, y, name, ha="right", va="center")
    ax.text(end - 0.9, 0.5, "→", ha="center", va="center", size=16)
    ax.set(xlim=(-1.6, end + len(left) + len(groups)), ylim=(-0.45, 1.5))


def boxed(ax: Any, x: float, y: float, text: str, colour: str) -> None:
    """Draw a token as a box of a colour, with its number."""
    rounded(ax, x - 0.36, y - 0.24, 0.72, 0.48, 0.1, facecolor=colour, edgecolor=INK)
    ax.text(x, y, text, ha="center", va="center")
