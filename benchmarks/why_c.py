"""Measure why system C wins, as lesson 11 draws it, in some twenty minutes.

`python -m benchmarks.why_c` writes "why C" into vit_course/plots/measured.json: shares of right
answers in %, one a seed; all settings get the same seeds and steps. What is stored already is not
measured again: stopped, it goes on; for a new start take "why C" out.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from einops.layers.torch import Reduce
from torch import Tensor, nn

from benchmarks.storing import makers, store, stored
from vit_course import systems
from vit_course.canvases import scattered
from vit_course.plots.scores import FILE
from vit_steps import PatchEmbedding, TokenEmbedding, ViT, ViTConfig
from vit_steps.dropping import random_masking, unmask
from vit_steps.encoder import Encoder
from vit_steps.training import train
from vit_steps.training.data import digits
from vit_steps.vit import init_weights

SEEDS, WIDTH, PATCHES = 5, 24, 16
RATE, OTHER_RATES = 0.006, (0.003, 0.012, 0.02)
EPOCHS, LONGER = 6, 24  # passes over the digits: 138 steps, and four times as many
SYSTEMS = {  # what can be changed; `masked` is a share of the tokens, in training
    "A": dict(blocks="A", cls=True, head="mean, norm", masked=0.0, positions=0.2),
    "B": dict(blocks="B", cls=True, head="mean, norm", masked=0.0, positions=0.2),
    "C": dict(blocks="C", cls=False, head="norm, all, batch norms", masked=0.1, positions=0.02),
}
GIVEN = {  # one of C's differences, given to A and to B
    "no cls": dict(cls=False),
    "masking": dict(masked=0.1),
    "C's blocks": dict(blocks="C"),
    "ReLU6": dict(blocks="A, ReLU6"),  # and what else C's blocks have
    "no qkv bias": dict(blocks="A, no qkv bias"),
    "C's positions": dict(positions=0.02),
    "norm before the mean": dict(head="norm, mean"),
    "batch norms": dict(head="mean, norm, batch norms"),
    "all tokens": dict(head="norm, all"),
    "C's head": dict(head="norm, all, batch norms"),
    "norm before the sum": dict(head="norm, sum"),  # not C's: no places, a larger size
    "all tokens, mixed": dict(head="norm, mixed, all"),  # not C's: as many weights, no places
    "all tokens, divided": dict(head="norm, divided, all"),  # as small as in a mean
    "positions of 1": dict(positions=1.0),  # as A and B were published
}
PARTS = {  # of C's batch norms, given to A: what is it that helps?
    "two Linears": dict(head="mean, norm, two Linears"),
    "one batch norm": dict(head="mean, norm, batch norm"),
    "mean taken off": dict(head="mean, norm, centred"),
    "spread made 1": dict(head="mean, norm, scaled"),
}
TAKEN = {  # taken out of C; "one Linear" comes in place of its two with batch norms
    "one Linear": dict(head="norm, all"),
    "plain Linears": dict(head="norm, all, plain"),
    "nothing hidden": dict(masked=0.0),
    "mean": dict(head="norm, mean, batch norms"),
    "mean, one Linear": dict(head="norm, mean"),
    "mean, nothing hidden": dict(head="norm, mean, batch norms", masked=0.0),
    "mean, nothing hidden, one Linear": dict(head="norm, mean", masked=0.0),
    "mean first": dict(head="mean, norm, batch norms"),
    "mean first, one Linear": dict(head="mean, norm"),
    "mean first, plain Linears": dict(head="mean, norm, plain"),
    "mean first, nothing hidden": dict(head="mean, norm, batch norms", masked=0.0),
    "mean first, nothing hidden, one Linear": dict(head="mean, norm", masked=0.0),
    "nothing hidden, one Linear": dict(head="norm, all", masked=0.0),
    "mean first, one Linear, positions of 0.2": dict(head="mean, norm", positions=0.2),
    "mean first, one Linear, positions of 1": dict(head="mean, norm", positions=1.0),
}
DROPPED = (0.1, 0.5)  # DropPath's rates, for C in the longer training
NO_BLOCKS = {  # the control: a head, and nothing before it but patches and positions
    "C without blocks": SYSTEMS["C"] | dict(depth=0),
    "A without blocks": SYSTEMS["A"] | dict(depth=0),
}
PIXELS = {  # the control without a ViT: what comes after it, on the bare pixels
    "one Linear": dict(head="all"),
    "C's head on pixels": dict(head="all, batch norms"),
}
SCATTERED = ("A", "B", "C", "A, all tokens", "A, batch norms", "C without blocks")
SCATTERED += ("A, positions of 1",)


class First(nn.Module):
    """Take the cls token: (B, N, D) becomes (B, D)."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:, 0]


class Mixed(nn.Module):
    """Put the tokens (B, N, D) of each picture in an order of its own, drawn anew each time."""

    def forward(self, x: Tensor) -> Tensor:
        return x.take_along_dim(torch.rand(x.shape[:2]).argsort(dim=1)[..., None], dim=1)


class Divided(nn.Module):
    """Divide by the number of tokens, as a mean does: (B, N, D)."""

    def forward(self, x: Tensor) -> Tensor:
        return x / x.shape[1]


class Batch(nn.BatchNorm1d):
    """Half of a batch norm: take the batch's mean off each number, or make its spread 1."""

    def __init__(self, centred: bool):
        super().__init__(WIDTH, eps=2e-5, affine=False)
        self.centred = centred

    def forward(self, input: Tensor) -> Tensor:
        super().forward(input)  # keeps the averages for after the training
        mean, spread = self.running_mean, self.running_var
        if self.training:
            mean, spread = input.mean(dim=0), input.var(dim=0, correction=0)
        return input - mean if self.centred else input / (spread + self.eps).sqrt()


def make_head(kind: str, width: int) -> nn.Sequential:
    """Make what comes after the blocks, in the order of the words; "all" are so many numbers."""
    layers = {
        "norm": lambda: nn.LayerNorm(WIDTH),
        "mean": lambda: Reduce("b n d -> b d", "mean"),
        "sum": lambda: Reduce("b n d -> b d", "sum"),
        "cls": First,
        "mixed": Mixed,
        "all": lambda: nn.Flatten(1),
        "divided": Divided,
        "batch norms": nn.Identity,
        "plain": nn.Identity,
        "batch norm": lambda: nn.BatchNorm1d(WIDTH, eps=2e-5),
        "centred": lambda: Batch(centred=True),
        "scaled": lambda: Batch(centred=False),
        "two Linears": lambda: nn.Linear(WIDTH, WIDTH, bias=False),
    }
    parts = [layers[name]() for name in kind.split(", ")]
    width = width if "all" in kind else WIDTH
    if "plain" in kind:  # C's two Linears, without its batch norms
        return nn.Sequential(*parts, nn.Linear(width, WIDTH), nn.Linear(WIDTH, 10))
    if "batch norms" not in kind:
        return nn.Sequential(*parts, nn.Linear(width, 10))
    return nn.Sequential(
        *parts,
        nn.Linear(width, WIDTH, bias=False),
        nn.BatchNorm1d(WIDTH, eps=2e-5),
        nn.Linear(WIDTH, 10, bias=False),
        nn.BatchNorm1d(10, eps=2e-5),
    )


class Between(nn.Module):
    """A small ViT that is A, B or C, or something between them."""

    def __init__(self, blocks, cls, head, masked, positions, depth=2, side=8, drop_path=0.0):
        super().__init__()
        size: dict[str, Any] = dict(
            image_size=side, patch_size=side // 4, in_channels=1, embed_dim=WIDTH, depth=2
        )
        self.patch_embed = PatchEmbedding(side, side // 4, 1, WIDTH)
        self.tokens = TokenEmbedding(PATCHES, WIDTH)
        nn.init.trunc_normal_(self.tokens.pos_embed, std=positions)
        self.cls, self.masked = cls, masked
        self.mask_token = nn.Parameter(torch.empty(1, 1, WIDTH), masked > 0)
        nn.init.trunc_normal_(self.mask_token, std=0.02)
        make_blocks = {
            "A": lambda: systems.einops_vit(replace(systems.EINOPS, **size)),
            "B": lambda: systems.project_vit(replace(systems.PROJECT, **size)),
            "yours": lambda: ViT(ViTConfig(num_classes=10, num_heads=3, **size)),
            "A, 3 heads": lambda: systems.einops_vit(replace(systems.EINOPS, **size, num_heads=3)),
            "A, no qkv bias": lambda: systems.einops_vit(
                replace(systems.EINOPS, **size, qkv_bias=False)
            ),
            "C": lambda: systems.face_vit(
                systems.FaceConfig(**size, num_heads=3, drop_path=drop_path)
            ),
        }
        made = make_blocks[blocks.removesuffix(", ReLU6")]()
        self.blocks = Encoder(list(made.blocks)[:depth])
        if blocks.endswith("ReLU6"):
            for block in self.blocks:
                block.set_submodule("mlp.act", nn.ReLU6())
        self.head = make_head(head, (PATCHES + cls) * WIDTH)
        self.head.apply(init_weights)
        self.patch_embed.apply(init_weights)

    def forward(self, images: Tensor) -> Tensor:
        x = self.tokens(self.patch_embed(images))  # (B, N, D)
        x = x if self.cls else x[:, 1:]
        order = None
        if self.training and self.masked:
            x, order, _ = random_masking(x, self.masked)
        for block in self.blocks:
            x = block(x)
        parts = list(self.head)
        if isinstance(parts[0], nn.LayerNorm):
            x = parts.pop(0)(x)
        if order is not None:
            x = unmask(x, order, self.mask_token)
        for part in parts:
            x = part(x)
        return x


def make(setting: dict, side: int = 8) -> nn.Module:
    """Make a small ViT of a setting, or, where it has no blocks, a head on the bare pixels."""
    if "blocks" in setting:
        return Between(**setting, side=side)
    return make_head(setting["head"], side * side).apply(init_weights)


def train_setting(
    setting: dict,
    seed: int,
    data: str = "digits",
    epochs: int = EPOCHS,
    rate: float = RATE,
    retaken: str = "",
) -> float:
    """Train, and count the right answers to held-out pictures of 4×4 patches, in %.

    With `retaken` the averages of its batch norms are taken anew after the training, on "whole"
    pictures or on such as in training, a part "hidden"; no weight changes.
    """
    if data == "digits":
        train_on, test = digits()
    else:
        train_on, test = scattered(3000, seed=0), scattered(1000, seed=1, held_out=True)
    torch.manual_seed(seed)
    model = make(setting, side=train_on.images.shape[-1])
    train(model, train_on, epochs, lr=rate, seed=seed)
    if retaken:
        for norm in model.modules():
            if isinstance(norm, nn.BatchNorm1d):
                norm.reset_running_stats()
                norm.momentum = None  # a plain mean
        model.masked = 0.0 if retaken == "whole" else model.masked
        with torch.no_grad():
            model.train()(train_on.images)
        model.eval()
    with torch.no_grad():
        answers = model(test.images).argmax(dim=-1)
    return round(100 * (answers == test.labels).double().mean().item(), 1)


def plan() -> dict:
    """Give all settings by name, with what `train_setting` takes."""
    A, C = SYSTEMS["A"], SYSTEMS["C"]
    settings = SYSTEMS | NO_BLOCKS | PIXELS
    settings["A, 3 heads"] = A | dict(blocks="A, 3 heads")
    settings["yours"] = A | dict(blocks="yours", head="norm, cls")
    settings["yours, one batch norm"] = settings["yours"] | dict(head="norm, cls, batch norm")
    settings |= {f"A, {name}": A | change for name, change in PARTS.items()}
    settings |= {
        f"{s}, {name}": SYSTEMS[s] | change for name, change in GIVEN.items() for s in "AB"
    }
    settings |= {f"C, {name}": C | change for name, change in TAKEN.items()}
    runs = {name: dict(setting=setting) for name, setting in settings.items()}
    runs["C, mean, averages retaken"] = dict(setting=settings["C, mean"], retaken="whole")
    runs["C, mean, averages retaken, hidden"] = dict(setting=settings["C, mean"], retaken="hidden")
    for name in ("yours", "A, all tokens", "C, mean first, one Linear"):  # with what helps A most
        runs[f"{name}, tuned"] = dict(setting=settings[name] | dict(positions=1.0), rate=0.012)
    for rate in DROPPED:
        dropped = C | dict(drop_path=rate)
        runs[f"C, DropPath {rate}, {LONGER} epochs"] = dict(setting=dropped, epochs=LONGER)
    for name in SCATTERED:
        runs[f"{name}, scattered"] = dict(setting=settings[name], data="scattered", epochs=25)
    longer = ("yours", "A", "A, positions of 1", "C", "C without blocks", *PIXELS)
    longer += ("C, mean first", "C, mean first, one Linear", "A, all tokens", "A, batch norms")
    for name in longer:
        runs[f"{name}, {LONGER} epochs"] = dict(setting=settings[name], epochs=LONGER)
    for rate in OTHER_RATES:
        for name in ("A", "A, positions of 1", "C"):
            runs[f"{name}, rate {rate}"] = dict(setting=settings[name], rate=rate)
    return runs


def main(file: Path = FILE) -> None:
    """Measure what the file lacks, and store each setting when it is there."""
    torch.set_num_threads(1)
    before = stored(file).get("why C", {})
    runs = before.get("runs", {})
    for name, options in plan().items():
        if name not in runs:
            runs[name] = [train_setting(seed=seed, **options) for seed in range(SEEDS)]
            print(name, runs[name], flush=True)
            store(file, **{"why C": {"made": makers(before), "runs": runs}})


if __name__ == "__main__":
    main()
