"""Measure the trainings whose results lessons tell without running them, in over an hour.

`python -m benchmarks.quoted` writes "quoted" into vit_course/plots/measured.json: shares of right
answers in %, one a seed; all variants of a comparison get the same seeds. With names of
comparisons, only these are made anew. tests/test_quoted.py compares lessons with what is stored.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.parts import CONFIG, Nothing, start_by_xavier
from benchmarks.storing import store, stored
from images.handwriting import drawn
from vit_course.ablation import small
from vit_course.canvases import drawn as shipped
from vit_course.canvases import scattered
from vit_course.checks import museum
from vit_course.plots.scores import FILE
from vit_steps import EncoderBlock, ViT, ViTConfig
from vit_steps.training import evaluate, fit, load_data, recipe, train, train_step
from vit_steps.training.data import digits
from vit_steps.training.dataset import ImageDataset
from vit_steps.training.loop import decay_groups, warmup_cosine

CANVAS = dict(image_size=16, patch_size=4, in_channels=1, num_classes=10, embed_dim=64)


def new_vit(seed: int, depth: int = 2) -> ViT:
    """Make a model for canvases of 16 pixels a side."""
    torch.manual_seed(seed)
    return ViT(ViTConfig(**CANVAS, depth=depth, num_heads=4))


def share(model: nn.Module, data: ImageDataset) -> float:
    """Give the share of right answers in %."""
    return round(100 * evaluate(model, data)[1], 1)


def on_digits(seed: int, positions: float = 1, **changes: object) -> float:
    """Train as the command does; the start of the positions is multiplied by a number."""
    data, val, test = load_data("digits")
    model, options = recipe("digits", data, seed=seed, **changes)
    model.tokens.pos_embed.data *= positions
    fit(model, data, val, device="cpu", progress=False, **options)
    return share(model, test)


def never_had(seed: int, mlps: bool) -> float:
    """Train the stored reader's sizes on its kind of pictures, with MLPs or without."""
    model = new_vit(seed, depth=4)
    for block in model.blocks:
        block.mlp = block.mlp if mlps else Nothing()
    train(model, scattered(30_000), 5, seed=seed)
    return share(model, scattered(2000, seed=1, held_out=True))


def on_its_own(seed: int, without: str = "nothing", depth: int = 12, epochs: int = 5) -> float:
    """Train a small ViT of lesson 05's experiment, of more blocks or for longer."""
    model = small(EncoderBlock, without, seed, depth)
    fit(model, digits()[0], epochs=epochs, lr=4e-3, seed=seed, device="cpu", progress=False)
    return share(model, digits()[1])


def lesson_07(seed: int, forgotten: bool = False) -> float:
    """Train what lesson 07 trains, or only what follows block 0, and measure on its val."""
    model = new_vit(seed)
    for part in (model.patch_embed, model.tokens, model.blocks[0]):
        part.requires_grad_(not forgotten)
    train(model, drawn(20_000), 8, seed=seed)
    return share(model, shipped()[1].part(slice(1000)))


def why_adamw(
    seed: int, sgd: bool = False, warmup: float = 0.1, steady: bool = False,
    xavier: bool = False, lr: float = 2e-3,
) -> float:  # fmt: skip
    """Train as lesson 07 at half its length, with something changed, and test on 2,000 more."""
    model = new_vit(seed)
    if xavier:
        start_by_xavier(model)
    if sgd:
        optimizer: torch.optim.Optimizer = torch.optim.SGD(model.parameters(), lr, momentum=0.9)
    else:
        optimizer = torch.optim.AdamW(decay_groups(model, 0.05))
    data, generator, step = drawn(20_000), torch.Generator().manual_seed(seed), 0
    steps = 4 * ceil(len(data) / 64)
    while step < steps:
        for batch in torch.randperm(len(data), generator=generator).split(64):
            rate = 1 if steady else warmup_cosine(step, steps, warmup)
            for group in optimizer.param_groups:
                group["lr"] = lr * rate
            train_step(model, optimizer, *data[batch])
            step += 1
    return share(model, drawn(2000, seed=2))


class Even(nn.Module):
    """Attention without attention: each token gets the mean of all values, (B, N, D)."""

    def __init__(self, attention: nn.Module):
        super().__init__()
        self.qkv, self.proj = attention.qkv, attention.proj

    def forward(self, x: Tensor) -> Tensor:
        values = self.qkv(x).chunk(3, dim=-1)[2]
        return self.proj(values.mean(dim=1, keepdim=True).expand_as(values))


def of_2021(seed: int, mended: bool, even: bool = False) -> float:
    """Train lesson 12's hook: the attention of exhibit 1, published, mended, or even weights."""
    data, test = digits()
    torch.manual_seed(seed)
    model = museum.patient(1, mended, CONFIG)
    for block in model.blocks if even else ():
        block.attn = Even(block.attn)
    train(model, data, epochs=8, lr=4e-3, seed=seed)
    return share(model, test)


def beside_the_model(seed: int, number: int, told: bool, mended: bool = False) -> float:
    """Give what the author of an exhibit of lesson 12's room 5 is told, or what is true."""
    data = digits()[0]
    torch.manual_seed(seed)
    order = torch.randperm(len(data))
    few, new = data[order[:300]], data[order[300:]]
    exhibit, dropout = museum.patient(number, mended), 0.0
    learn = held = few
    if number == 20:
        learn, held = exhibit.prepare(*few)
        held, new = ((images[labels < 3], labels[labels < 3]) for images, labels in (held, new))
    elif number == 21:
        held, dropout = new, 0.1
    else:
        learn = held = exhibit.pairs({f"{i + 1}.png": x for i, x in enumerate(few[0])}, few[1])
    torch.manual_seed(seed)
    model = ViT(replace(CONFIG, dropout=dropout))
    train(model, ImageDataset(*learn, data.classes), epochs=30, lr=4e-3, seed=seed)
    if number == 21 and told:
        return round(100 * exhibit.accuracy(model.train(), *new), 1)
    return share(model, ImageDataset(*(held if told else new), data.classes))


KINDS = {"AdamW": {}, "no warm-up": dict(warmup=0), "steady": dict(steady=True)}
KINDS |= {f"SGD {lr}": dict(sgd=True, lr=lr) for lr in (0.01, 0.03, 0.1, 0.3)}
XAVIER = {kind: options | dict(xavier=True) for kind, options in KINDS.items()}
STARTS = {"0.02": dict(positions=0.1, epochs=12), "0.2": dict(epochs=12)}
OF_2021 = {"published": dict(mended=False), "mended": dict(mended=True)}
OF_2021["even"] = dict(mended=True, even=True)
BESIDE = {
    f"{number} {name}": dict(number=number, told=name == "told")
    for number in (20, 21, 23)
    for name in ("told", "true")
}
BLOCKS = {part: dict(without=part) for part in ("nothing", "norms", "sums")}
BLOCKS["sums, longer"] = dict(without="sums", epochs=20)
BLOCKS["sums, four, longer"] = dict(without="sums", depth=4, epochs=20)
Variants = dict[str, dict[str, Any]]  # their names, and what is given to the function
COMPARED: dict[str, tuple[int, Callable[..., float], Variants]] = {  # how many seeds, and of what
    "02 start of positions": (3, on_digits, STARTS),
    "03 heads": (5, on_digits, {"1": dict(num_heads=1), "4": dict(num_heads=4)}),
    "05 MLPs never had": (3, never_had, {"without": dict(mlps=False), "whole": dict(mlps=True)}),
    "05 twelve blocks": (3, on_its_own, BLOCKS),
    "07 half forgotten": (3, lesson_07, {"whole": {}, "forgotten": dict(forgotten=True)}),
    "07 why AdamW, 0.02": (3, why_adamw, KINDS),
    "07 why AdamW, Xavier": (3, why_adamw, XAVIER),
    "12 the attention of 2021": (8, of_2021, OF_2021),
    "12 beside the model": (3, beside_the_model, BESIDE),
}


def main(names: Sequence[str] = ()) -> None:
    """Measure these comparisons, or all, and store each when it is there."""
    torch.set_num_threads(1)
    for name in names or COMPARED:
        seeds, measure, variants = COMPARED[name]
        shares: dict[str, list[float]] = {}
        for variant, options in variants.items():
            shares[variant] = [measure(seed, **options) for seed in range(seeds)]
            print(name, variant, shares[variant], flush=True)
        store(FILE, quoted=stored(FILE).get("quoted", {}) | {name: shares})


if __name__ == "__main__":
    main(sys.argv[1:])
