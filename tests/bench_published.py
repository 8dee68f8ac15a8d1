"""What lesson 10 draws: `python -m tests.bench_published PART`, which writes its part of a file.

  slips    what a wrong setting or another preparation costs our photo model, on CIFAR-10's 10,000
           photos to test on: --data is the folder with a folder a class; half an hour
  onward   what its weights are worth for few pictures of other things, drawn by our code; an hour

The file is vit_course/plots/published.json. All runs on one thread.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from einops import rearrange
from torch import Tensor, nn

from vit_course.explorer.scenes import OTHERS, variations
from vit_course.plots.published import FILE
from vit_steps import ViT
from vit_steps.files import write_whole
from vit_steps.images import Preprocess, normalize
from vit_steps.pretrained.settings import IMAGENET
from vit_steps.training import evaluate, fit, train_step
from vit_steps.training.dataset import ImageDataset
from vit_steps.training.folders import list_files, read_all
from vit_steps.training.loop import evaluating
from vit_steps.weights import load

# Slips --------------------------------------------------------------------------------------------


class QuickGELU(nn.Module):
    """The approximation of OpenAI's CLIP."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


def as_it_is(model: ViT, **changes: Any) -> ViT:
    """Our model with other settings, and the same weights."""
    other = ViT(replace(model.config, **changes))
    other.load_state_dict(model.state_dict())
    return other.eval()


def with_gelu(model: ViT, make: Callable[[], nn.Module]) -> ViT:
    other = as_it_is(model)
    for block in other.blocks:
        block.mlp.act = make()
    return other


def misread(model: ViT) -> ViT:
    """The rows of qkv read as (h d qkv), where they stand as (qkv h d)."""
    other, h = as_it_is(model), model.config.num_heads
    for block in other.blocks:
        for weight in (block.attn.qkv.weight, block.attn.qkv.bias):
            weight.data = rearrange(weight.data, "(h d qkv) ... -> (qkv h d) ...", h=h, qkv=3)
    return other


def models(model: ViT) -> dict[str, ViT]:
    """By the name of the slip, the model that it makes."""
    return {
        "eps 1e-12": as_it_is(model, norm_eps=1e-12),
        "GELU by tanh": with_gelu(model, lambda: nn.GELU("tanh")),
        "quick GELU": with_gelu(model, QuickGELU),
        "8 heads": as_it_is(model, num_heads=8),
        "2 heads": as_it_is(model, num_heads=2),
        "rows as (h d qkv)": misread(model),
    }


def preparations(how: Preprocess) -> dict[str, Callable[[Tensor], Tensor]]:
    """By the name of the slip, what it makes of pictures (B, 3, 32, 32), from 0 to 1."""
    other = replace(how, shorter_side=36)

    def cut(pixels: Tensor) -> Tensor:
        return torch.cat([other(picture) for picture in pixels])

    return {
        "ImageNet's mean, std": lambda pixels: normalize(pixels, **IMAGENET),
        "blue, green, red": lambda pixels: normalize(pixels.flip(1)),
        "left at 0…1": lambda pixels: pixels,
        "36 pixels, cut to 32": cut,
    }


def of_slips(data: str) -> dict[str, Any]:
    """For each slip, how many photos are named correctly, how many answers change, and by how much
    a logit at most."""
    weights = load("photos")
    how: Any = weights.preprocess
    files, labels, classes = list_files(Path(data).expanduser())
    photos = read_all(files, labels, classes, how, in_memory=True)
    assert classes == weights.classes
    shape = len(photos), len(classes)

    def logits_of(model: nn.Module, prepare: Callable[[Tensor], Tensor]) -> Tensor:
        found = torch.empty(shape)
        with evaluating(model):
            for i in range(0, len(photos), 250):
                found[i : i + 250] = model(prepare(photos.pixels[i : i + 250].float() / 255))
        return found

    right = logits_of(weights.model, normalize)

    def held(logits: Tensor) -> dict[str, Any]:
        return dict(
            right=int((logits.argmax(dim=1) == labels).sum()),
            changed=int((logits.argmax(dim=1) != right.argmax(dim=1)).sum()),
            off=round((logits - right).abs().max().item(), 5),
        )

    rows = {"as published": held(right)}
    for name, model in models(weights.model).items():
        rows[name] = held(logits_of(model, normalize))
        print(name, rows[name], flush=True)
    for name, prepare in preparations(how).items():
        rows[name] = held(logits_of(weights.model, prepare))
        print(name, rows[name], flush=True)
    return dict(photos=len(photos), rows=rows)


# Onward -------------------------------------------------------------------------------------------

SEEDS = range(3)
EACH = (5, 20)  # pictures of each thing
EPOCHS, BATCH = 20, 16
RATES = (2e-4, 5e-4, 1e-3, 2e-3)
TESTED = 600


def drawings(count: int, seed: int) -> ImageDataset:
    """Variations of six things, prepared for the photo model."""
    how: Any = load("photos").preprocess
    data = variations([*OTHERS], count, seed)
    pixels = [(how.pixels(x) * 255).round().byte() for x in data.pixels.float() / 255]
    return replace(data, pixels=torch.stack(pixels), preprocess=how)


def probe(known: Tensor, labels: Tensor, new: Tensor, answers: Tensor, seed: int) -> float:
    """The accuracy of a Linear that is trained on what is known, as in the lesson."""
    mean, std = known.mean(dim=0), known.std(dim=0).clamp(min=0.05)
    torch.manual_seed(seed)
    head = nn.Linear(known.shape[1], len(OTHERS)).double()
    optimizer = torch.optim.AdamW(head.parameters(), lr=0.01)
    for _ in range(200):
        train_step(head, optimizer, ((known - mean) / std).double(), labels)
    found = head(((new - mean) / std).double()).argmax(dim=1)
    return (found == answers).double().mean().item()


def body(model: ViT, data: ImageDataset) -> Tensor:
    with evaluating(model):
        return torch.cat([model.pre_logits(images) for images in data.images.split(128)])


def trained(start: str, train: ImageDataset, test: ImageDataset, seed: int, lr: float, epochs: int):
    """The accuracy of the whole model, from the photos' weights or from scratch."""
    photos = load("photos").model
    torch.manual_seed(seed)
    if start == "photos":
        model = photos.with_classes(len(OTHERS))
    else:
        model = ViT(replace(photos.config, num_classes=len(OTHERS)))
    fit(model, train, epochs=epochs, lr=lr, batch_size=BATCH, seed=seed, progress=False)
    return evaluate(model, test)[1]


def of_onward() -> dict[str, Any]:
    """Accuracy on drawings that are held out, for each way to use few of them, each seed.

    The learning rates are chosen on other drawings, for each way by itself.
    """
    test, chosen_on = drawings(TESTED, seed=1), drawings(TESTED, seed=2)
    ways = {
        "from scratch": ("", EPOCHS),
        "from scratch, 5 times as long": ("", 5 * EPOCHS),
        "fine-tuned": ("photos", EPOCHS),
    }
    small, rates = drawings(EACH[0] * len(OTHERS), seed=99), {}
    for name, (start, epochs) in ways.items():
        tried = {lr: trained(start, small, chosen_on, 99, lr, epochs) for lr in RATES}
        rates[name] = max(tried, key=lambda lr: tried[lr])
        print(name, tried, flush=True)
    rows: dict[str, dict[str, list[float]]] = {}

    def keep(each: int, name: str, accuracy: float) -> None:
        rows.setdefault(str(each), {}).setdefault(name, []).append(round(accuracy, 4))
        print(each, name, rows[str(each)][name], flush=True)

    photos = load("photos").model
    of_photos, pixels = body(photos, test), test.images.flatten(1)
    for seed in SEEDS:
        torch.manual_seed(seed)
        untrained = ViT(photos.config)
        of_random = body(untrained, test)
        for each in EACH:
            train = drawings(each * len(OTHERS), seed=100 + seed)
            for name, known, new in (
                ("random, frozen", body(untrained, train), of_random),
                ("pixels", train.images.flatten(1), pixels),
                ("photos, frozen", body(photos, train), of_photos),
            ):
                keep(each, name, probe(known, train.labels, new, test.labels, seed))
            for name, (start, epochs) in ways.items():
                keep(each, name, trained(start, train, test, seed, rates[name], epochs))
    return dict(tested=TESTED, epochs=EPOCHS, batch=BATCH, rates=rates, rows=rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("slips", "onward"))
    parser.add_argument("--data", metavar="FOLDER", help="of the photos to test on")
    parser.add_argument("--out", type=Path, default=FILE, metavar="FILE")
    options = parser.parse_args()
    if options.part == "slips" and not options.data:
        parser.error("--data is missing; give the folder of the photos to test on")
    torch.set_num_threads(1)
    found = of_slips(options.data) if options.part == "slips" else of_onward()
    whole = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
    whole[options.part] = found
    text = json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
    write_whole(options.out, text.encode())


if __name__ == "__main__":
    main()
