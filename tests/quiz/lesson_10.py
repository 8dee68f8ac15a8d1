"""Lesson 10: published weights."""

import io
from contextlib import redirect_stdout
from copy import deepcopy
from dataclasses import replace
from math import isclose

import torch
from torch import nn

import vit_steps
from vit_steps import ViT, ViTConfig, weights
from vit_steps.images import normalize
from vit_steps.training import load_model
from vit_steps.training.data import scattered

from . import only


def q1_in_the_shapes():
    def shapes(**other) -> list[torch.Size]:
        sizes = dict(image_size=16, patch_size=4, embed_dim=64, depth=2, num_heads=4)
        with torch.device("meta"):
            model = ViT(ViTConfig(**(sizes | other)))
        return [p.shape for p in model.parameters()]

    return only(
        a=shapes() != shapes(mlp_ratio=2.0),
        b=shapes() != shapes(num_heads=8),
        c=shapes() != shapes(pool="mean"),
    )


def q2_rounding_or_a_mistake():
    torch.manual_seed(0)
    numbers, head = torch.randn(200, 64), torch.randn(64, 10)

    def differences(dtype: torch.dtype) -> tuple[float, float, int]:
        """Of two orders of one sum, of two eps, and how many answers the eps changes."""
        x, w = numbers.to(dtype), head.to(dtype)
        norms = [nn.functional.layer_norm(x, (64,), eps=eps) @ w for eps in (1e-6, 1e-5)]
        changed = (norms[0].argmax(dim=1) != norms[1].argmax(dim=1)).sum().item()
        rounding = (x @ w - x.flip(1) @ w.flip(0)).abs().max().item()
        return rounding, (norms[0] - norms[1]).abs().max().item(), changed

    once, again = differences(torch.float32), differences(torch.float32)
    (rounding, mistake, changed), exact = once, differences(torch.float64)
    return only(
        a=once != again,
        b=changed > 0,
        c=exact[0] < rounding / 1e6 and isclose(exact[1], mistake, rel_tol=0.2),
    )


@torch.no_grad()
def q3_another_normalisation():
    model = load_model(f"{vit_steps.__path__[0]}/weights/scattered.safetensors").eval()
    x = scattered(40, seed=1, held_out=True).images  # mean 0.5, std 0.5
    y = (x * 0.5 + 0.5 - 0.449) / 0.226
    changed = deepcopy(model)
    proj = changed.patch_embed.proj
    proj.bias += proj.weight.sum(dim=(1, 2, 3)) * (0.449 - 0.5) / 0.5
    proj.weight *= 0.226 / 0.5
    nothing, embedding = (
        torch.allclose(m(y), model(x), rtol=0, atol=1e-3) for m in (model, changed)
    )
    return only(a=nothing, b=embedding, c=not nothing and not embedding)


def q4_another_head():
    mine, file = nn.Linear(8, 3), nn.Linear(8, 1000).state_dict()
    before = mine.weight.clone()
    try:
        mine.load_state_dict(file, strict=False)
        refused = False
    except RuntimeError:
        refused = True
    return only(
        a=not refused and torch.equal(mine.weight, before),
        b=torch.equal(mine.weight, file["weight"][:3]),
        c=refused,
    )


class Hostile:
    def __reduce__(self):
        return print, ("code runs",)


def q5_when_code_runs():
    file, said, runs = io.BytesIO(), io.StringIO(), []
    torch.save({"weight": Hostile()}, file)
    file.seek(0)
    model = nn.Linear(1, 1)
    with redirect_stdout(said):
        tensors = torch.load(file, weights_only=False)
        runs.append(said.getvalue().count("code runs"))
        model.load_state_dict(tensors | {"weight": torch.ones(1, 1)}, strict=False)
        runs.append(said.getvalue().count("code runs"))
        model(torch.ones(1, 1))
        runs.append(said.getvalue().count("code runs"))
    return only(a=runs == [1, 1, 1], b=runs == [0, 1, 1], c=runs == [0, 0, 1])


@torch.no_grad()
def q6_what_the_proof_sees():
    right = weights.load("photos").model
    pictures = torch.rand(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    heads = ViT(replace(right.config, num_heads=8))
    heads.load_state_dict(right.state_dict())
    gelu, same = deepcopy(right), deepcopy(right)
    for block in gelu.blocks:
        block.mlp.act = nn.GELU("tanh")

    def agrees(model: nn.Module, batch: torch.Tensor) -> bool:
        return torch.allclose(model(batch), right(batch), rtol=0, atol=1e-5)

    batch, swapped = normalize(pictures), normalize(pictures.flip(1))
    assert not torch.allclose(right(batch), right(swapped), rtol=0, atol=1e-5)
    return only(a=agrees(heads, batch), b=agrees(same, swapped), c=agrees(gelu, batch))
