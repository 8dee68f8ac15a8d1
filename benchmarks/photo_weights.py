"""Measure what the weights "photos" are worth: `python -m benchmarks.photo_weights PART`.

  test    accuracy, class by class, and how often shares are right: minutes
  others  how sure the model is of pictures of no class, which needs no photos: minutes
  runs    five epochs of a convolutional net, and of a ViT on all photos or on a part: hours

--data folder:PATH says where the photos of CIFAR-10 are, in train and test, a folder a class. What
is measured goes to runs/photo_weights/results.json. A training is by the recipe of the weights, and
an epoch has as many steps as one of all photos takes: of a part of them it shows each several
times. A training that is stored is not made again. The photos to test on are looked at once, at
the end.
"""

import argparse
from pathlib import Path
from typing import Any

import torch
from sklearn.datasets import load_sample_image
from sklearn.metrics import classification_report, confusion_matrix
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.storing import store, stored
from vit_steps import ViT, ViTConfig, load_image, sample_photo
from vit_steps.pretrained import Loaded, load
from vit_steps.training import augment_photos, fit, load_data
from vit_steps.training.dataset import ImageDataset, split
from vit_steps.training.loop import evaluating

FILE = Path("runs/photo_weights/results.json")
SIZE = 32  # pixels of a side
RECIPE: Any = dict(epochs=5, batch_size=128, lr=1e-3, augment=augment_photos, amp=True)
BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # where shares begin that are counted together

# What the weights do ------------------------------------------------------------------------------


def shares_of(model: nn.Module, batches: Any) -> Tensor:
    """Give the share of each class (n, classes) for batches of prepared pictures."""
    with evaluating(model):
        return torch.cat([model(images).softmax(dim=1) for images in batches])


def on_test(model: nn.Module, test: ImageDataset) -> dict[str, Any]:
    """Measure accuracy, class by class, confusion, and how often which share is right."""
    rows = torch.arange(len(test)).split(500)
    largest, answers = shares_of(model, (test[part][0] for part in rows)).max(dim=1)
    right = answers == test.labels
    bins = torch.bucketize(largest, torch.tensor(BINS), right=True)
    names = list(test.classes)
    return {
        "report": classification_report(
            test.labels, answers, target_names=names, output_dict=True, zero_division=0
        ),
        "confusion": confusion_matrix(test.labels, answers).tolist(),
        "by_share": {
            str(least): [int((bins == i).sum()), int(right[bins == i].sum())]
            for i, least in enumerate((0.0, *BINS))
        },
    }


def tiles(picture: Tensor) -> list[Tensor]:
    """Cut a photo (3, H, W) in squares of a half, a quarter and an eighth of its shorter side."""
    cut = []
    for parts in (2, 4, 8):
        side = min(picture.shape[1:]) // parts
        for column in picture.unfold(1, side, side).unfold(2, side, side).permute(1, 2, 0, 3, 4):
            cut += [*column]
    return cut


def strangers() -> dict[str, list[Tensor]]:
    """Give pictures (3, H, W), from 0 to 1, of what no class is."""
    photos = {
        name: torch.from_numpy(load_sample_image(f"{name}.jpg").copy()).permute(2, 0, 1) / 255
        for name in ("china", "flower")
    } | {"grace_hopper": load_image(sample_photo(), None)}
    noise = torch.rand(1000, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(0))
    pictures = {f"tiles of {name}": tiles(photo) for name, photo in photos.items()}
    return pictures | {"noise": [*noise]}


def on_others(loaded: Loaded) -> dict[str, Any]:
    """Measure how sure the model is of what it does not know, and what it takes that for."""
    results = {}
    for name, pictures in strangers().items():
        batch = torch.cat([loaded.preprocess(picture) for picture in pictures])
        largest, answers = shares_of(loaded.model, batch.split(256)).max(dim=1)
        counts = zip(loaded.classes, answers.bincount(minlength=10).tolist(), strict=True)
        results[name] = {
            "pictures": len(pictures),
            "sure": int((largest >= 0.9).sum()),
            "taken_for": {label: count for label, count in counts if count},
        }
    return results


# Other models, and fewer photos -------------------------------------------------------------------


def vit(classes: int) -> nn.Module:
    """Make the model of the weights."""
    return ViT(ViTConfig(SIZE, 4, 3, classes, embed_dim=128, depth=6, num_heads=4))


def convolutional(classes: int) -> nn.Module:
    """Make a plain net of about as many weights: convolution, norm, ReLU, in three stages."""
    layers, before = [], 3
    for stage, (width, count) in enumerate(((64, 3), (128, 2), (256, 2))):
        layers += [nn.MaxPool2d(2)] if stage else []
        for _ in range(count):
            convolution = nn.Conv2d(before, width, 3, padding=1, bias=False)
            layers += [convolution, nn.BatchNorm2d(width), nn.ReLU()]
            before = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))


MODELS = {"vit": vit, "conv": convolutional}
RUNS = (("conv", 1), ("vit", 1), ("vit", 1 / 3), ("vit", 0.1))  # of what share of the photos


def run(kind: str, share: float, train: ImageDataset, test: ImageDataset) -> dict[str, Any]:
    """Train a model on a share of the photos, and measure it at the end."""
    part = train if share == 1 else split(train, share, seed=0)[1]  # of each class as much
    repeated = part.part(torch.arange(len(train)) % len(part))
    torch.manual_seed(0)
    model = MODELS[kind](len(train.classes))
    fit(model, repeated, **RECIPE, device="cpu")
    with FlopCounterMode(display=False) as counter, evaluating(model):
        model(torch.zeros(1, 3, SIZE, SIZE))
    return {
        "photos": len(part),
        "weights": sum(p.numel() for p in model.parameters()),
        "multiply_adds": counter.get_total_flops() // 2,
        "test": on_test(model, test),
    }


def main() -> None:
    """Measure the part that the command asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("test", "others", "runs"))
    parser.add_argument("--data", metavar="folder:PATH", help="of the photos, in train and test")
    options = parser.parse_args()
    if not options.data and options.part != "others":
        parser.error("--data is missing; give folder:PATH")
    torch.set_num_threads(1)
    FILE.parent.mkdir(parents=True, exist_ok=True)
    loaded = load("photos")
    if options.part == "others":
        store(FILE, others=on_others(loaded))
    elif options.part == "test":
        test = load_data(options.data, preprocess=loaded.preprocess).test
        store(FILE, test=on_test(loaded.model, test))
    else:
        train, _, test = load_data(options.data, size=SIZE)
        for kind, share in RUNS:
            name, runs = f"{kind}, {share:.0%}", stored(FILE).get("runs", {})
            if name not in runs:
                store(FILE, runs=runs | {name: run(kind, share, train, test)})


if __name__ == "__main__":
    main()
