"""Why system C wins, as lesson 11 draws it: `python -m tests.bench_why_c`, half an hour.

It writes "why C" into vit_course/plots/measured.json and leaves the rest of that file alone. Kept
are shares of right answers in %, one a seed; all settings get the same seeds and steps. What is
stored already is not measured again: stopped, it goes on; for a new start take "why C" out.
"""

import json
import platform
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from vit_course.canvases import scattered
from vit_course.plots.scores import FILE
from vit_steps import PatchEmbedding, TokenEmbedding, variants
from vit_steps.encoder import Encoder
from vit_steps.training import train
from vit_steps.training.data import digits
from vit_steps.vit import init_weights

SEEDS, WIDTH, PATCHES = 5, 24, 16
RATE, RATES = 0.006, (0.002, 0.006, 0.018)
EPOCHS, LONGER = 6, 24  # passes over the digits: 138 steps, and four times as many
SYSTEMS = {  # what the bench can change; `masked` is a share of the tokens, in training
    "A": dict(blocks="A", cls=True, head="mean, norm", masked=0.0, positions=0.2),
    "B": dict(blocks="B", cls=True, head="mean, norm", masked=0.0, positions=0.2),
    "C": dict(blocks="C", cls=False, head="norm, all, batch norms", masked=0.1, positions=0.02),
}
GIVEN = {  # one of C's differences, given to A and to B
    "no cls": dict(cls=False),
    "masking": dict(masked=0.1),
    "C's blocks": dict(blocks="C"),
    "C's positions": dict(positions=0.02),
    "norm before the mean": dict(head="norm, mean"),
    "batch norms": dict(head="mean, norm, batch norms"),
    "all tokens": dict(head="norm, all"),
    "C's head": dict(head="norm, all, batch norms"),
    "all tokens, mixed": dict(head="norm, mixed, all"),  # not C's: as many weights, no places
}
TAKEN = {  # taken out of C
    "with cls": dict(cls=True),
    "no masking": dict(masked=0.0),
    "A's blocks": dict(blocks="A"),
    "A's positions": dict(positions=0.2),
    "no batch norms": dict(head="norm, all"),
    "mean": dict(head="norm, mean, batch norms"),
    "mean, A's positions": dict(head="norm, mean, batch norms", positions=0.2),
    "A's head": dict(head="mean, norm"),
}
NO_BLOCKS = {  # the control: a head, and nothing before it but patches and positions
    "C without blocks": SYSTEMS["C"] | dict(depth=0),
    "A without blocks": SYSTEMS["A"] | dict(depth=0),
}


class Mean(nn.Module):
    """The mean of all tokens: (B, N, D) becomes (B, D)."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(dim=1)


class Mixed(nn.Module):
    """The tokens (B, N, D) of each picture in an order of its own, drawn anew each time."""

    def forward(self, x: Tensor) -> Tensor:
        return x.take_along_dim(torch.rand(x.shape[:2]).argsort(dim=1)[..., None], dim=1)


def head_of(kind: str, tokens: int, width: int = WIDTH) -> nn.Sequential:
    """What stands behind the blocks, in the order of the words."""
    parts, many = [], width
    for word in kind.split(", "):
        if word == "norm":
            parts.append(nn.LayerNorm(width))
        elif word == "mean":
            parts.append(Mean())
        elif word == "mixed":
            parts.append(Mixed())
        elif word == "all":
            parts.append(nn.Flatten(1))
            many = tokens * width
    if "batch norms" in kind:
        first, second = nn.Linear(many, width, bias=False), nn.Linear(width, 10, bias=False)
        norms = [nn.BatchNorm1d(width, eps=2e-5), nn.BatchNorm1d(10, eps=2e-5)]
        return nn.Sequential(*parts, first, norms[0], second, norms[1])
    return nn.Sequential(*parts, nn.Linear(many, 10))


class Between(nn.Module):
    """A small ViT that is A, B or C, or something between them."""

    def __init__(self, blocks, cls, head, masked, positions, depth=2, side=8):
        super().__init__()
        size = dict(image_size=side, patch_size=side // 4, in_channels=1, embed_dim=WIDTH)
        self.patch_embed = PatchEmbedding(side, side // 4, 1, WIDTH)
        self.tokens = TokenEmbedding(PATCHES, WIDTH)
        nn.init.trunc_normal_(self.tokens.pos_embed, std=positions)
        self.cls, self.masked = cls, masked
        self.mask_token = nn.Parameter(torch.empty(1, 1, WIDTH), masked > 0)
        nn.init.trunc_normal_(self.mask_token, std=0.02)
        count = PATCHES + cls
        make = {
            "A": lambda: variants.einops_vit(replace(variants.EINOPS, **size, depth=2)),
            "B": lambda: variants.project_vit(replace(variants.PROJECT, **size, depth=2)),
            "A, 3 heads": lambda: variants.einops_vit(
                replace(variants.EINOPS, **size, depth=2, num_heads=3)
            ),
            "C": lambda: variants.face_vit(variants.FaceConfig(**size, depth=2, num_heads=3)),
        }
        self.blocks = Encoder(list(make[blocks]().blocks)[:depth])
        self.head = head_of(head, count)
        self.head.apply(init_weights)
        self.patch_embed.apply(init_weights)

    def forward(self, images: Tensor) -> Tensor:
        x = self.tokens(self.patch_embed(images))  # (B, N, D)
        x = x if self.cls else x[:, 1:]
        order = None
        if self.training and self.masked:
            x, order, _ = variants.random_masking(x, self.masked)
        for block in self.blocks:
            x = block(x)
        parts = list(self.head)
        if isinstance(parts[0], nn.LayerNorm):
            x = parts.pop(0)(x)
        if order is not None:
            x = variants.unmask(x, order, self.mask_token)
        for part in parts:
            x = part(x)
        return x


def data_of(name: str):
    """Pictures to learn from, and held-out ones; both are cut into 4×4 patches."""
    if name == "digits":
        return digits()
    return scattered(3000, seed=0), scattered(1000, seed=1, held_out=True)


def trained(
    setting: dict, seed: int, data: str = "digits", rate: float = RATE, epochs: int = EPOCHS
) -> float:
    """Train, and count the right answers to held-out pictures, in %."""
    seen, unseen = data_of(data)
    torch.manual_seed(seed)
    model = Between(**setting, side=seen.images.shape[-1])
    train(model, seen, epochs, lr=rate, seed=seed)
    with torch.no_grad():
        answers = model(unseen.images).argmax(dim=-1)
    return round(100 * (answers == unseen.labels).double().mean().item(), 1)


def everything() -> dict:
    """All settings by name, with what `trained` takes."""
    runs = {name: dict(setting=setting) for name, setting in SYSTEMS.items()}
    for name, change in GIVEN.items():
        for system in "AB":
            runs[f"{system}, {name}"] = dict(setting=SYSTEMS[system] | change)
    runs["A, 3 heads"] = dict(setting=SYSTEMS["A"] | dict(blocks="A, 3 heads"))
    both = dict(head="norm, mean, batch norms")
    runs["A, norm before the mean, batch norms"] = dict(setting=SYSTEMS["A"] | both)
    for name, change in TAKEN.items():
        runs[f"C, {name}"] = dict(setting=SYSTEMS["C"] | change)
    for name, setting in NO_BLOCKS.items():
        runs[name] = dict(setting=setting)
    for name, setting in SYSTEMS.items():
        for rate in RATES:
            if rate != RATE:
                runs[f"{name}, rate {rate}"] = dict(setting=setting, rate=rate)
    moved = ["A", "C", "A, all tokens", "A, C's head", "C, mean", "C without blocks", "B"]
    for name in [*moved, "A, batch norms", "C, no batch norms"]:
        setting = runs[name]["setting"]
        runs[f"{name}, scattered"] = dict(setting=setting, data="scattered", epochs=25)
    for name in ("A", "B", "C", "C without blocks"):
        setting = runs[name]["setting"]
        runs[f"{name}, {LONGER} epochs"] = dict(setting=setting, epochs=LONGER)
    return runs


def main(file: Path = FILE) -> None:
    torch.set_num_threads(1)
    for name, how in everything().items():
        stored = json.loads(file.read_text("utf-8"))
        found = stored.setdefault("why C", {"made": {}, "runs": {}})
        found["made"] = {
            "processor": platform.machine(),
            "python": platform.python_version(),
            "torch": torch.__version__,
        }
        if name not in found["runs"]:
            found["runs"][name] = [trained(seed=seed, **how) for seed in range(SEEDS)]
            print(name, found["runs"][name], flush=True)
            file.write_text(
                json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
            )


if __name__ == "__main__":
    main()
