"""Measure what lesson 10 draws: `python -m benchmarks.published_weights PART`, on one thread.

  slips    what a wrong setting or another preparation costs our photo model, on CIFAR-10's 10,000
           photos to test on: --data is the folder with a folder a class; half an hour
  onward   what its weights are worth for few pictures of other things, drawn by our code; an hour

Each writes its part of vit_course/plots/published.json.
"""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from einops import rearrange
from torch import Tensor, nn

from benchmarks.storing import store
from vit_course.explorer.scenes import OTHERS, variations
from vit_course.plots.published import FILE
from vit_steps import ViT, load_image, normalize
from vit_steps.images import Preprocess
from vit_steps.pretrained.settings import IMAGENET
from vit_steps.training import evaluate, fit, train_step
from vit_steps.training.dataset import ImageDataset
from vit_steps.training.loop import evaluating
from vit_steps.weights import load

# Slips --------------------------------------------------------------------------------------------


class QuickGELU(nn.Module):
    """Approximate GELU as OpenAI's CLIP does."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


def changed(model: ViT, **settings: Any) -> ViT:
    """Make our model with other settings, and the same weights."""
    other = ViT(replace(model.config, **settings))
    other.load_state_dict(model.state_dict())
    return other.eval()


def with_gelu(model: ViT, gelu: nn.Module) -> ViT:
    other = changed(model)
    for block in other.blocks:
        block.mlp.act = gelu
    return other


def misread(model: ViT) -> ViT:
    """Read the rows of qkv as (h d qkv), where they stand as (qkv h d)."""
    other, h = changed(model), model.config.num_heads
    for block in other.blocks:
        for weight in (block.attn.qkv.weight, block.attn.qkv.bias):
            weight.data = rearrange(weight.data, "(h d qkv) ... -> (qkv h d) ...", h=h, qkv=3)
    return other


Prepare = Callable[[Tensor], Tensor]  # of pictures (B, 3, 32, 32), from 0 to 1


def slips(model: ViT, preprocess: Preprocess) -> dict[str, tuple[ViT, Prepare]]:
    """Give by name what each slip makes of the model and of the preparation."""
    cropping = replace(preprocess, shorter_side=36)
    models = {
        "as published": model,
        "eps 1e-12": changed(model, norm_eps=1e-12),
        "GELU by tanh": with_gelu(model, nn.GELU("tanh")),
        "quick GELU": with_gelu(model, QuickGELU()),
        "8 heads": changed(model, num_heads=8),
        "2 heads": changed(model, num_heads=2),
        "rows as (h d qkv)": misread(model),
    }
    preparations: dict[str, Prepare] = {
        "ImageNet's mean, std": lambda pixels: normalize(pixels, **IMAGENET),
        "blue, green, red": lambda pixels: normalize(pixels.flip(1)),
        "left at 0…1": lambda pixels: pixels,
        "36 pixels, cut to 32": lambda pixels: torch.cat([cropping(x) for x in pixels]),
    }
    return {name: (other, normalize) for name, other in models.items()} | {
        name: (model, prepare) for name, prepare in preparations.items()
    }


def measure_slips(data: str) -> dict[str, Any]:
    """Count for each slip the photos named correctly and the answers that change.

    Beside them stands by how much a logit changes at most.
    """
    loaded = load("photos")
    folders = sorted(path for path in Path(data).expanduser().iterdir() if path.is_dir())
    if tuple(folder.name for folder in folders) != loaded.classes:
        raise ValueError(f"{data} has other folders than the classes, {', '.join(loaded.classes)}")
    files = [(file, label) for label, f in enumerate(folders) for file in sorted(f.iterdir())]
    pixels = torch.cat([load_image(file, None)[None] for file, _ in files])
    labels = torch.tensor([label for _, label in files])
    rows: dict[str, dict[str, Any]] = {}
    for name, (model, prepare) in slips(loaded.model, loaded.preprocess).items():
        with evaluating(model):
            logits = torch.cat([model(prepare(part)) for part in pixels.split(250)])
        if name == "as published":
            published = logits
        rows[name] = {
            "right": int((logits.argmax(dim=1) == labels).sum()),
            "changed": int((logits.argmax(dim=1) != published.argmax(dim=1)).sum()),
            "off": round((logits - published).abs().max().item(), 5),
        }
        print(name, rows[name], flush=True)
    return {"photos": len(labels), "rows": rows}


# Onward -------------------------------------------------------------------------------------------

SEEDS = range(3)
EACH = (5, 20)  # pictures of each thing
EPOCHS, BATCH = 20, 16
RATES = (2e-4, 5e-4, 1e-3, 2e-3)
TESTED = 600
WAYS = {  # how few pictures are used: whose weights it begins with, epochs
    "from scratch": ("", EPOCHS),
    "from scratch, 5 times as long": ("", 5 * EPOCHS),
    "fine-tuned": ("photos", EPOCHS),
}


def drawings(count: int, seed: int) -> ImageDataset:
    """Draw variations of six things, prepared for the photo model."""
    preprocess: Any = load("photos").preprocess
    data = variations([*OTHERS], count, seed)
    pixels = [(preprocess.pixels(x) * 255).round().byte() for x in data.pixels.float() / 255]
    return replace(data, pixels=torch.stack(pixels), preprocess=preprocess)


def probe(x: Tensor, labels: Tensor, new: Tensor, answers: Tensor, seed: int) -> float:
    """Train a Linear on x (n, D), as in the lesson, and give its accuracy on new ones."""
    mean, std = x.mean(dim=0), x.std(dim=0).clamp(min=0.05)
    torch.manual_seed(seed)
    head = nn.Linear(x.shape[1], len(OTHERS)).double()
    optimizer = torch.optim.AdamW(head.parameters(), lr=0.01)
    for _ in range(200):
        train_step(head, optimizer, ((x - mean) / std).double(), labels)
    found = head(((new - mean) / std).double()).argmax(dim=1)
    return (found == answers).double().mean().item()


def features(model: ViT, data: ImageDataset) -> Tensor:
    """Give what the model's head reads (n, D)."""
    with evaluating(model):
        return torch.cat([model.pre_logits(images) for images in data.images.split(128)])


def whole_model(way: str, train: ImageDataset, test: ImageDataset, seed: int, lr: float) -> float:
    """Train the whole model in one of the `WAYS`, and give its accuracy on test."""
    start, epochs = WAYS[way]
    photos = load("photos").model
    torch.manual_seed(seed)
    if start == "photos":
        model = photos.with_classes(len(OTHERS))
    else:
        model = ViT(replace(photos.config, num_classes=len(OTHERS)))
    fit(model, train, epochs=epochs, lr=lr, batch_size=BATCH, seed=seed, progress=False)
    return evaluate(model, test)[1]


def measure_onward() -> dict[str, Any]:
    """Measure each way to use few drawings on others that are held out, for each seed.

    The learning rates are chosen on yet others, for each way by itself.
    """
    test, val, train = drawings(TESTED, 1), drawings(TESTED, 2), drawings(EACH[0] * len(OTHERS), 99)
    rates = {}
    for way in WAYS:
        accuracies = {lr: whole_model(way, train, val, 99, lr) for lr in RATES}
        rates[way] = max(accuracies, key=lambda lr: accuracies[lr])
        print(way, accuracies, flush=True)
    photos = load("photos").model
    rows: dict[str, dict[str, list[float]]] = {str(each): {} for each in EACH}
    for seed in SEEDS:
        torch.manual_seed(seed)
        untrained = ViT(photos.config)
        readers: dict[str, Callable[[ImageDataset], Tensor]] = {
            "random, frozen": lambda data: features(untrained, data),  # noqa: B023
            "pixels": lambda data: data.images.flatten(1),
            "photos, frozen": lambda data: features(photos, data),
        }
        for each in EACH:
            train = drawings(each * len(OTHERS), seed=100 + seed)
            found = {
                name: probe(read(train), train.labels, read(test), test.labels, seed)
                for name, read in readers.items()
            } | {way: whole_model(way, train, test, seed, rates[way]) for way in WAYS}
            for name, accuracy in found.items():
                rows[str(each)].setdefault(name, []).append(round(accuracy, 4))
            print(each, rows[str(each)], flush=True)
    return {"tested": TESTED, "epochs": EPOCHS, "batch": BATCH, "rates": rates, "rows": rows}


def main() -> None:
    """Measure the part that the command asks for, and store it."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("slips", "onward"))
    parser.add_argument("--data", metavar="FOLDER", help="of the photos to test on")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.part == "onward":
        store(FILE, onward=measure_onward())
    elif options.data:
        store(FILE, slips=measure_slips(options.data))
    else:
        parser.error("--data is missing; give the folder of the photos to test on")


if __name__ == "__main__":
    main()
