"""Ablations: lesson 05's parts taken out or never had, and lesson 08's variant of one's own."""

import inspect
import json
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm

from vit_steps import Encoder, ViT, ViTConfig
from vit_steps.files import write_whole
from vit_steps.training import fit
from vit_steps.training.data import digits


def run(blocks: Iterable[Any], x: Tensor, without: str = "nothing") -> Tensor:
    """Send tokens (B, N, D) through blocks that lack one kind of part; return tokens (B, N, D).

    Without "attention" or "MLPs" such a branch adds 0; without "norms" a branch gets the tokens as
    they are; without "sums" what a branch computes replaces the tokens.
    """
    for block in blocks:
        parts = ("attention", block.norm1, block.attn), ("MLPs", block.norm2, block.mlp)
        for name, norm, branch in parts:
            change = branch(x if without == "norms" else norm(x))
            if without == name:
                change = 0 * change
            x = change if without == "sums" else x + change
    return x


def likeness(x: Tensor) -> float:
    """Give the mean cosine of all pairs of tokens of one picture, for tokens (B, N, D)."""
    unit, N = F.normalize(x, dim=-1), x.shape[1]
    return (((unit @ unit.mT).sum(dim=(1, 2)) - N) / (N * (N - 1))).mean().item()


def small(block: type[nn.Module], without: str = "nothing", seed: int = 0, depth: int = 4) -> ViT:
    """Build an untrained ViT for 8×8 digits of blocks that lack one kind of part.

    It answers from the mean of all tokens: without attention cls would never see a patch.

    Args:
        block: a class like `vit_steps.EncoderBlock`.
        without: as in `run`.
        seed: of all numbers at the start.
        depth: how many blocks.
    """

    class Lacking(block):
        lacks = without

        def forward(self, x: Tensor, mask: Tensor | None = None, return_attention: bool = False):
            return run([self], x, self.lacks)

    torch.manual_seed(seed)
    config = ViTConfig(8, 4, 1, num_classes=10, embed_dim=32, depth=1, num_heads=4, pool="mean")
    model = ViT(config)
    model.blocks = Encoder(Lacking(32, num_heads=4) for _ in range(depth))
    for layer in model.blocks.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=0.1)  # as 0.02 suits a ViT-B/16's 768
            nn.init.zeros_(layer.bias)
    return model


def trained(block: type[nn.Module], without: str = "nothing") -> list[ViT]:
    """Train three small ViTs, seeds 0 to 2, on 1,438 digits, five epochs each; see `small`."""
    models = [small(block, without, seed) for seed in range(3)]
    for seed, model in enumerate(models):
        fit(model, digits()[0], epochs=5, lr=4e-3, seed=seed, device="cpu", progress=False)
    print("trained", "whole" if without == "nothing" else f"without {without}", flush=True)  # noqa: T201
    return models


def taken_out(model: ViT, part: str) -> ViT:
    """Copy a model of `small`, and take one kind of part out of the copy."""
    model = deepcopy(model)
    block: Any
    for block in model.blocks:
        block.lacks = part
    return model


@torch.no_grad()
def percent_right(models: list[ViT]) -> list[float]:
    """Measure which share of the 359 held-out digits each model gets right, in per cent."""
    test = digits()[1]
    guesses = [model(test.images).argmax(dim=-1) for model in models]
    return [(guess == test.labels).float().mean().item() * 100 for guess in guesses]


def compare(
    whole: Callable[[int], ViT],
    variant: Callable[[ViT], nn.Module],
    score: Callable[[nn.Module, int], float],
    plan: str,
    file: Path,
    seeds: Sequence[int] = range(8),
) -> tuple[list[float], list[float]]:
    """Train a model and a variant of it with the same seeds, and store each result at once.

    Stopped by Ctrl-C or the stop button, the same call goes on after the last finished training.

    Args:
        whole: makes the untrained model of a seed.
        variant: changes such a model, and returns it.
        score: trains a model with a seed, and measures it.
        plan: what is expected, and what would refute it, in words; it is stored beside the results.
        file: a JSON file for them, made if it is not there.
        seeds: of both sides.

    Returns:
        What `score` gave for each seed: of the whole model, and of the variant.

    Raises:
        ValueError: without a plan, or where the file holds results of another plan, model,
            variant, training or seeds.
    """
    if not plan.strip():
        raise ValueError("the plan is empty; write what you expect, and what would prove you wrong")
    makers = {"model": whole, "variant": variant, "training": score}
    this = {name: inspect.getsource(maker) for name, maker in makers.items()}
    this |= {"plan": plan, "seeds": list(seeds)}
    runs: dict = this | {"whole": [], "yours": []}
    if file.exists():
        runs = json.loads(file.read_text("utf-8"))
    if others := [name for name in this if runs[name] != this[name]]:
        raise ValueError(
            f"{file.name} holds results of another {others[0]}, and none may change after the "
            "first result: give the new one another file name, and keep this one"
        )
    done = len(runs["whole"]) + len(runs["yours"])
    with tqdm(total=2 * len(seeds), initial=done, unit="training") as bar:
        for number, seed in enumerate(seeds):
            for side, change in (("whole", lambda model: model), ("yours", variant)):
                if len(runs[side]) == number:
                    runs[side].append(score(change(whole(seed)), seed))
                    write_whole(file, json.dumps(runs, ensure_ascii=False, indent=1).encode())
                    bar.update()
    return runs["whole"], runs["yours"]
