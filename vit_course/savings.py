"""Lesson 13: what savings are measured by, and what they are measured on."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Optimizer

from vit_steps.images import load_image, sample_photo
from vit_steps.inputs import check_sizes
from vit_steps.vit import ViT

CROP = 96  # pixels of a crop's side, three of which become one
Ways = Mapping[str, tuple[bool, Callable[[], Tensor]]]  # in inference_mode or not; gives logits


def ways_for_free(model: ViT, pictures: Tensor) -> Ways:
    """Give section 1's ways to the logits of pictures (B, C, H, W), each with one saving more."""

    def one_by_one(attend: Callable[[Tensor], Tensor]) -> Tensor:
        return torch.cat([attend(picture[None]) for picture in pictures])

    def written_out(images: Tensor) -> Tensor:  # asking for the weights switches the fused one off
        return model(images, return_attention=True)[0]

    def in_16_bits() -> Tensor:
        with torch.autocast(pictures.device.type, dtype=torch.bfloat16):
            return model(pictures).float()

    return {
        "one by one, with gradients": (False, partial(one_by_one, written_out)),
        "+ inference_mode": (True, partial(one_by_one, written_out)),
        "+ fused attention": (True, partial(one_by_one, model)),
        "+ one batch": (True, partial(model, pictures)),
        "+ bfloat16": (True, in_16_bits),
    }


def work(model: ViT, counts: list[int]) -> int:
    """Count the multiply-adds of the blocks for one image, by section 3b's formula.

    Args:
        model: whose blocks they are.
        counts: how many tokens are removed in each block, between attention and MLP.
    """
    N, D, total = model.tokens.pos_embed.shape[1], model.config.embed_dim, 0
    for r in counts:
        total += 4 * N * D**2 + 2 * N**2 * D  # attention
        N -= min(r, (N - 1) // 2)  # more than this cannot be merged
        total += 8 * N * D**2  # MLP
    return total


def measured(ways: Ways, rounds: int = 3) -> tuple[dict[str, float], dict[str, Tensor]]:
    """Time ways to one answer, in turns, so that a busy moment meets all of them.

    Args:
        ways: of each whether it runs in `inference_mode`, and what gives its answer.
        rounds: how often each runs.

    Returns:
        Of each way its shortest time, in seconds, and its answer, on the CPU.
    """
    times, answers = dict.fromkeys(ways, torch.inf), {}
    for _ in range(rounds):
        for name, (no_graph, answer) in ways.items():
            start = perf_counter()
            with torch.inference_mode(no_graph):
                answers[name] = answer().detach().cpu()
            times[name] = min(times[name], perf_counter() - start)
    return times, answers


def photo_crops(count: int, seed: int = 0) -> dict[str, Tensor]:
    """Cut small parts of three photos, without labels: scikit-learn's two, and Grace Hopper.

    Returns:
        For each photo `count` crops of 96×96 pixels at random places, which may overlap, made
        smaller: (count, 3, 32, 32), from -1 to 1. The same seed draws the same.
    """
    from sklearn.datasets import load_sample_images

    check_sizes(count=count)
    names, stored = ("temple", "flower"), load_sample_images().images
    photos = {n: torch.tensor(p).movedim(2, 0) / 255 for n, p in zip(names, stored, strict=True)}
    photos["Grace Hopper"] = load_image(sample_photo())
    generator, by_photo = torch.Generator().manual_seed(seed), {}
    for name, photo in photos.items():
        cut = []
        for _ in range(count):
            top, left = (
                int(torch.randint(side - CROP, (), generator=generator)) for side in photo.shape[1:]
            )
            cut.append(photo[:, top : top + CROP, left : left + CROP])
        by_photo[name] = 2 * F.avg_pool2d(torch.stack(cut), CROP // 32) - 1
    return by_photo


def gradients(model: nn.Module, step: Callable, *given: Any) -> Tensor:
    """Take a training step with a copy of a model, and give all its gradients in a row.

    Args:
        model: whose weights stay as they are.
        step: lesson 07's `train_step`, or another with the same first arguments.
        given: what it gets beside the model and an optimizer: images, labels, and more.
    """
    model = deepcopy(model).train().requires_grad_(True)
    step(model, torch.optim.SGD(model.parameters(), lr=0.1), *given)
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def mean_of_means(
    model: nn.Module, optimizer: Optimizer, images: Tensor, labels: Tensor, parts: int
) -> None:
    """Do as `accumulated_step` does, wrongly: each piece counts alike. The optimizer takes no step.

    Takes images (B, C, H, W) and labels (B,), in as many parts.
    """
    optimizer.zero_grad()
    for some, theirs in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        (F.cross_entropy(model(some), theirs) / parts).backward()


def leave_out(x: Tensor, sizes: Tensor, rank: Tensor, r: int) -> tuple[Tensor, Tensor]:
    """Leave out the r tokens of smallest rank (B, N), but never cls; sizes (B, N) go along."""
    rank = rank.index_fill(1, torch.tensor(0), torch.inf)
    stay = rank.argsort(dim=1)[:, r:].sort(dim=1).values
    return x.take_along_dim(stay[..., None], dim=1), sizes.take_along_dim(stay, dim=1)


def at_random(x: Tensor, keys: Tensor, sizes: Tensor, looks: Tensor, r: int) -> Any:
    """Leave out r tokens at random, but never cls; arguments as of all section 6's ways."""
    return leave_out(x, sizes, torch.rand(looks.shape), r)


def least_looked_at(x: Tensor, keys: Tensor, sizes: Tensor, looks: Tensor, r: int) -> Any:
    """Leave out the r tokens at which cls looks least: `looks` (B, N), the mean of the heads."""
    return leave_out(x, sizes, looks, r)
