"""Measure what each part of a small ViT is worth, as lesson 08 draws it, in some ten minutes.

`python -m benchmarks.parts` writes "learning" into vit_course/plots/measured.json; what is there
already is not measured again. Stored are shares of right answers in %, one a seed; all variants get
the same seeds, whose number was fixed before the first was trained.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor, nn

from benchmarks.storing import makers, store, stored
from vit_course.plots.scores import FILE
from vit_steps import ViT, ViTConfig
from vit_steps.training import evaluate, train
from vit_steps.training.data import digits
from vit_steps.training.dataset import ImageDataset, split

SEEDS = range(8)
EPOCHS, BATCH, RATE = 40, 20, 2e-3
CONFIG = ViTConfig(8, 2, 1, 10, embed_dim=48, depth=2, num_heads=4)
Make = Callable[[int], nn.Module]  # a model, as the seed starts it

# One thing changed at a time ----------------------------------------------------------------------


def whole(seed: int, kind: type[ViT] = ViT, **options: Any) -> ViT:
    """Make lesson 08's model."""
    torch.manual_seed(seed)
    return kind(ViTConfig(**(vars(CONFIG) | options)))


def positions(seed: int, times: float, learns: bool = True, kind: type[ViT] = ViT) -> ViT:
    """Make it with positions so many times as large, and perhaps fixed there."""
    model = whole(seed, kind)
    model.tokens.pos_embed.data *= times
    model.tokens.pos_embed.requires_grad = learns
    return model


class Nothing(nn.Module):
    """In place of a branch it gives zeros."""

    def forward(self, x: Tensor, *others: Any) -> Tensor:
        return torch.zeros_like(x)


def without(seed: int, *branches: str, **options: Any) -> ViT:
    """Make it with these branches of each block out."""
    model = whole(seed, **options)
    for block in model.blocks:
        for branch in branches:
            setattr(block, branch, Nothing())
    return model


def frozen(seed: int, part: str, make: Callable[[int], ViT] = whole) -> ViT:
    """Make it with the parts whose names end so fixed as they start."""
    model = make(seed)
    for name, module in model.named_modules():
        if name.endswith(part):
            module.requires_grad_(False)
    return model


def start_by_xavier(model: ViT) -> ViT:
    """Start the Linears of its blocks anew by Xavier's rule."""
    for module in model.blocks.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
    return model


def xavier(seed: int, branch: str = "", **options: Any) -> ViT:
    """Make it with that start, and perhaps without a branch."""
    model = without(seed, branch, **options) if branch else whole(seed, **options)
    return start_by_xavier(model)


class ByPlace(ViT):
    """The head has weights of its own for each place: it reads all patch tokens side by side."""

    def __init__(self, config: ViTConfig):
        super().__init__(config)
        self.head = nn.Linear(16 * config.embed_dim, config.num_classes)
        nn.init.trunc_normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def forward(self, images: Tensor, return_attention: bool = False):
        x = self.blocks(self.tokens(self.patch_embed(images)))  # (B, 17, D)
        return self.head(self.norm(x)[:, 1:].flatten(1))


class MixedPlaces(ByPlace):
    """As wide a head, but each picture's patch tokens come to it in a fresh random order."""

    def forward(self, images: Tensor, return_attention: bool = False):
        x = self.norm(self.blocks(self.tokens(self.patch_embed(images))))[:, 1:]  # (B, 16, D)
        order = torch.rand(x.shape[:2]).argsort(dim=1)  # `whole` seeds it
        return self.head(x.gather(1, order[:, :, None].expand_as(x)).flatten(1))


def large_head(seed: int) -> ViT:
    """Make it with the mean token, and a head with as many weights as `ByPlace` has there."""
    model = whole(seed, pool="mean")
    model.head = nn.Sequential(nn.Linear(48, 130), nn.GELU(), nn.Linear(130, 10))
    return model


# Other readers ------------------------------------------------------------------------------------


def linear(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))


def mlp(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    layers = [nn.Flatten(), nn.Linear(64, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(200, 10))


def cnn(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    layers: list[nn.Module] = [nn.Conv2d(1, 32, 3, padding=1), nn.ReLU()]
    layers += [nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(4 * 64, 10))


MAKERS: dict[str, Make] = {
    "the whole model": whole,
    "no positions": partial(positions, times=0.0, learns=False),
    "positions 0, free to learn": partial(positions, times=0.0),
    "random positions, never learn": partial(positions, times=1.0, learns=False),
    "no attention, cls": lambda seed: without(seed, "attn"),
    "no attention, mean": lambda seed: without(seed, "attn", pool="mean"),
    "no MLPs, mean": lambda seed: without(seed, "mlp", pool="mean"),
    "no attention, no MLPs, mean": lambda seed: without(seed, "attn", "mlp", pool="mean"),
    "mean for cls": partial(whole, pool="mean"),
    "one head": partial(whole, num_heads=1),
    "no MLPs": lambda seed: without(seed, "mlp"),
    "q, k, v never learn": partial(frozen, part="attn.qkv"),
    "templates never learn": partial(frozen, part="patch_embed"),
    "Xavier": xavier,
    "Xavier, q, k, v never learn": partial(frozen, part="attn.qkv", make=xavier),
    "Xavier, one head": partial(xavier, num_heads=1),
    "Xavier, no positions": lambda seed: start_by_xavier(positions(seed, times=0.0, learns=False)),
    "Xavier, mean": partial(xavier, pool="mean"),
    "Xavier, no attention, mean": partial(xavier, branch="attn", pool="mean"),
    "Xavier, no MLPs": partial(xavier, branch="mlp"),
    "head by place": partial(whole, kind=ByPlace),
    "head by place, no blocks": lambda seed: without(seed, "attn", "mlp", kind=ByPlace),
    "head by place, order mixed": partial(whole, kind=MixedPlaces),
    "mean, large head": large_head,
    "one Linear": linear,
    "MLP": mlp,
    "CNN": cnn,
}
SHUFFLED = ("the whole model", "MLP", "CNN")  # these on shuffled pixels
MORE = ("mean for cls", "no attention, mean")  # these from 1,239 digits
# These from other digits each time.
DRAWN = ("the whole model", "one head", "mean for cls", "no attention, mean")

# The measurement ----------------------------------------------------------------------------------


def shuffled(data: ImageDataset, seed: int) -> ImageDataset:
    """Put the pictures' pixels in another order, the same in all."""
    order = torch.randperm(64, generator=torch.Generator().manual_seed(seed))
    images = data.images.flatten(1)[:, order].view_as(data.images)
    return ImageDataset(images, data.labels, data.classes)


def score(make: Make, seed: int, parts: Callable[[int], tuple], epochs: int) -> float:
    """Train with this seed on the first part, and count right answers on the second, in %."""
    train_on, val = parts(seed)
    model = make(seed)
    train(model, train_on, epochs, lr=RATE, batch_size=BATCH, seed=seed)
    return round(100 * evaluate(model, val, batch_size=2000)[1], 1)


def nearest_neighbour(train_on: ImageDataset, val: ImageDataset) -> float:
    """Count the right answers where each picture is called what the nearest other one is, in %."""
    reader = KNeighborsClassifier(1, algorithm="kd_tree")  # exact: by products ties would differ
    reader.fit(train_on.images.flatten(1), train_on.labels)
    return round(100 * reader.score(val.images.flatten(1), val.labels), 1)


def parts(seed: int = 0) -> tuple[ImageDataset, ImageDataset, ImageDataset]:
    """Give 199 digits to learn from, which the seed draws, 1,239 to judge by, 359 for a test."""
    others, test = digits()
    val, few = split(others, 0.14, seed=seed)
    return few, val, test


def plan() -> dict[str, dict[str, Callable[[int], float]]]:
    """Give for each table and variant a function of the seed that measures it."""
    few, val, test = parts()

    def in_order(seed: int) -> tuple:
        return shuffled(few, seed), shuffled(val, seed)

    tables: dict[str, tuple] = {  # variants, the two parts that a seed gets, epochs
        "few": (MAKERS, lambda seed: (few, val), EPOCHS),
        "one order": (SHUFFLED, lambda seed: in_order(0), EPOCHS),
        "an order a seed": (SHUFFLED, in_order, EPOCHS),
        "other digits a seed": (DRAWN, lambda seed: parts(seed)[:2], EPOCHS),
        "more": (MORE, lambda seed: (val, test), 7),
    }
    return {
        table: {name: partial(score, MAKERS[name], parts=how, epochs=epochs) for name in names}
        for table, (names, how, epochs) in tables.items()
    }


def main() -> None:
    """Measure what the file lacks, and store each variant when it is there."""
    torch.set_num_threads(1)
    few, val, test = parts()
    before = stored(FILE).get("learning", {})
    learning: dict[str, Any] = before | {
        "made": makers(before),
        "neighbour": {"few": nearest_neighbour(few, val), "more": nearest_neighbour(val, test)},
    }
    for table, variants in plan().items():
        shares = learning.setdefault(table, {})
        for name, measure in variants.items():
            if len(shares.get(name, [])) != len(SEEDS):
                shares[name] = [measure(seed) for seed in SEEDS]
                print(table, name, shares[name], flush=True)
                store(FILE, learning=learning)


if __name__ == "__main__":
    main()
