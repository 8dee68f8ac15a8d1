"""The trainings whose results lessons tell without running them: `python -m tests.bench_quoted`.

It takes over an hour, writes "quoted" into vit_course/plots/measured.json and leaves the rest of
that file alone. Kept are shares of right answers in %, one a seed; all variants of a comparison get
the same seeds. With names of comparisons, only these are made anew.
"""

import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil
from pathlib import Path

import torch
from torch import Tensor, nn

from vit_course.canvases import drawn, hands, scattered
from vit_course.checks import museum
from vit_course.plots.scores import FILE
from vit_steps import ViT, ViTConfig
from vit_steps.training import (
    decay_groups,
    evaluate,
    fit,
    load_data,
    recipe,
    train,
    train_step,
    warmup_cosine,
)
from vit_steps.training.data import digits
from vit_steps.training.dataset import ImageDataset

CANVAS = dict(image_size=16, patch_size=4, in_channels=1, num_classes=10, embed_dim=64)


class OnlyClsReads(ViT):
    """Each patch reads from itself alone, and cls from all."""

    def forward(self, images: Tensor) -> Tensor:
        x = self.tokens(self.patch_embed(images))
        mask = torch.eye(x.shape[1], dtype=torch.bool)
        mask[0] = True
        return self.head(self.norm(self.blocks(x, mask))[:, 0])


class NoMLP(nn.Module):
    """In place of an MLP: it adds nothing to the stream."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x)


def share(model: nn.Module, data: ImageDataset) -> float:
    return round(100 * evaluate(model, data)[1], 1)


def on_digits(seed: int, positions: float = 1, **changes: object) -> float:
    """The command's training of the digits. The positions' start is multiplied by a number."""
    seen, val, unseen = load_data("digits")
    model, options = recipe("digits", seen, seed=seed, **changes)
    model.tokens.pos_embed.data *= positions
    fit(model, seen, val, device="cpu", progress=False, **options)
    return share(model, unseen)


def who_reads(seed: int, kind: type[ViT], count: int = 20_000, epochs: int = 8) -> float:
    """A short training on scattered digits, tested on others."""
    torch.manual_seed(seed)
    model = kind(ViTConfig(**CANVAS, depth=2, num_heads=4))
    train(model, scattered(count), epochs, seed=seed)
    return share(model, scattered(2000, seed=1, held_out=True))


def never_had(seed: int, mlps: bool, count: int = 30_000, epochs: int = 5) -> float:
    """The stored reader's sizes and kind of pictures, with MLPs or without."""
    torch.manual_seed(seed)
    model = ViT(ViTConfig(**CANVAS, depth=4, num_heads=4))
    for block in model.blocks:
        block.mlp = block.mlp if mlps else NoMLP()
    train(model, scattered(count), epochs, seed=seed)
    return share(model, scattered(2000, seed=1, held_out=True))


def lesson_07(seed: int, count: int = 20_000, epochs: int = 8) -> float:
    """What lesson 07 trains, tested on drawings by hand."""
    torch.manual_seed(seed)
    model = ViT(ViTConfig(**CANVAS, depth=2, num_heads=4))
    train(model, drawn(count), epochs, seed=seed)
    return share(model, hands())


def rates(kind: str, step: int, steps: int) -> float:
    """The share of the full learning rate: lesson 07's, without its warm-up, or always all."""
    return 1 if kind == "steady" else warmup_cosine(step, steps, 0 if kind == "no warm-up" else 0.1)


def why_adamw(seed: int, kind: str, xavier: bool, lr: float = 2e-3) -> float:
    """Lesson 07's training at half its length, with something changed; read are 2,000 more."""
    torch.manual_seed(seed)
    model = ViT(ViTConfig(**CANVAS, depth=2, num_heads=4))
    for module in model.blocks.modules() if xavier else ():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
    if kind == "SGD":
        optimizer = torch.optim.SGD(model.parameters(), lr, momentum=0.9)
    else:
        optimizer = torch.optim.AdamW(decay_groups(model, 0.05))
    data, generator, step = drawn(20_000), torch.Generator().manual_seed(seed), 0
    steps = 4 * ceil(len(data) / 64)
    while step < steps:
        for batch in torch.randperm(len(data), generator=generator).split(64):
            for group in optimizer.param_groups:
                group["lr"] = lr * rates(kind, step, steps)
            train_step(model, optimizer, *data[batch])
            step += 1
    return share(model, drawn(2000, seed=2))


def of_2021(seed: int, mended: bool) -> float:
    """Lesson 12's hook: the attention of exhibit 1, as published or mended."""
    data, test = digits()
    config = ViTConfig(8, 2, 1, num_classes=10, embed_dim=48, depth=2, num_heads=4)
    torch.manual_seed(seed)
    train(model := museum.patient(1, mended, config), data, epochs=8, lr=4e-3, seed=seed)
    return share(model, test)


KINDS = {kind: dict(kind=kind) for kind in ("AdamW", "no warm-up", "steady")}
KINDS |= {f"SGD {lr}": dict(kind="SGD", lr=lr) for lr in (0.01, 0.03, 0.1, 0.3)}
WHY = {
    f"07 why AdamW, {start}": (
        3,
        {name: partial(why_adamw, xavier=start == "Xavier", **how) for name, how in KINDS.items()},
    )
    for start in ("0.02", "Xavier")
}
COMPARED: dict[str, tuple[int, dict[str, Callable[[int], float]]]] = {
    "02 start of positions": (
        3,
        {
            "0.02": partial(on_digits, positions=0.1, epochs=12),
            "0.2": partial(on_digits, epochs=12),
        },
    ),
    "03 heads": (5, {str(heads): partial(on_digits, num_heads=heads) for heads in (1, 4)}),
    "03 who reads": (
        3,
        {"only cls": partial(who_reads, kind=OnlyClsReads), "all": partial(who_reads, kind=ViT)},
    ),
    "05 MLPs never had": (
        3,
        {"without": partial(never_had, mlps=False), "whole": partial(never_had, mlps=True)},
    ),
    "07 seeds": (3, {"hands": lesson_07}),
    **WHY,
    "12 the attention of 2021": (
        4,
        {"published": partial(of_2021, mended=False), "mended": partial(of_2021, mended=True)},
    ),
}


def main(names: Sequence[str] = (), file: Path = FILE) -> None:
    torch.set_num_threads(1)
    for name in names or COMPARED:
        seeds, variants = COMPARED[name]
        found: dict[str, list[float]] = {}
        for variant, trained in variants.items():
            found[variant] = [trained(seed) for seed in range(seeds)]
            print(name, variant, found[variant], flush=True)
        stored = json.loads(file.read_text("utf-8"))
        stored.setdefault("quoted", {})[name] = found
        file.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
