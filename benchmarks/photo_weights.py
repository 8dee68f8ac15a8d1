"""Measure what the weights "photos" are worth: `python -m benchmarks.photo_weights PART`.

  test    accuracy, class by class, and how often shares are right: minutes
  others  how sure the model is of pictures of no class, which needs no photos: minutes
  runs    a ViT and a convolutional net, or either on a part of the photos, in as many steps: hours

--data folder:PATH says where the photos of CIFAR-10 are, in train and test, a folder a class. What
is measured goes to results.json in --out. A run saves each epoch, and the same command goes on
where it was ended. An epoch has as many steps as one of all photos takes; of a part of them, it
shows each several times. `fit` trains, with the recipe of the weights, but here epoch by epoch, so
that a model of any kind can be gone on with. The photos to test on are looked at once, at the end.
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from functools import partial
from pathlib import Path
from typing import Any

import torch
from sklearn.datasets import load_digits, load_sample_image
from sklearn.metrics import classification_report, confusion_matrix
from torch import Tensor, nn
from torch.optim import AdamW
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.storing import store, stored
from vit_steps import ViT, ViTConfig, load_image, sample_photo
from vit_steps.pretrained import Loaded, load
from vit_steps.training import augment_photos, decay_groups, evaluate, fit, load_data, warmup_cosine
from vit_steps.training.dataset import ImageDataset, split
from vit_steps.training.loop import evaluating

SIZE = 32  # pixels of a side
RECIPE: Any = dict(epochs=1, batch_size=128, augment=augment_photos, amp=True, progress=False)
BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # where shares begin that are counted together

# What the weights do ------------------------------------------------------------------------------


def shares_of(model: nn.Module, batches: Any) -> Tensor:
    """Give the share of each class (n, classes) for batches of prepared pictures."""
    device = next(model.parameters()).device
    with evaluating(model):
        return torch.cat([model(images.to(device)).softmax(dim=1).cpu() for images in batches])


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
    digits = 1 - torch.from_numpy(load_digits().images).float() / 16  # (n, 8, 8), dark on white
    noise = torch.rand(1000, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(0))
    pictures = {f"tiles of {name}": tiles(photo) for name, photo in photos.items()}
    return pictures | {"digits": [*digits[:, None].expand(-1, 3, -1, -1)], "noise": [*noise]}


def on_others(loaded: Loaded) -> dict[str, Any]:
    """Measure how sure the model is of what it does not know, and what it takes that for."""
    results = {}
    for name, pictures in strangers().items():
        batch = torch.cat([loaded.preprocess(picture) for picture in pictures])
        largest, answers = shares_of(loaded.model, batch.split(256)).max(dim=1)
        counts = zip(loaded.classes, answers.bincount(minlength=10).tolist(), strict=True)
        results[name] = {
            "pictures": len(pictures),
            "mean_share": largest.mean().item(),
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


def one_epoch(step: int, steps: int, epoch: int, epochs: int) -> float:
    """Give the whole training's warm-up and cosine in a step of one of its epochs."""
    return warmup_cosine(epoch * steps + step, epochs * steps, warmup=0.1)


def run(kind: str, share: float, seed: int, data: Any, options: Namespace) -> None:
    """Train a model on a share of the photos, or go on, and measure it at the end."""
    train, val, test = data
    part = train if share == 1 else split(train, share, seed)[1]  # of each class as much
    torch.manual_seed(seed)
    model = MODELS[kind](len(train.classes)).to(options.device)
    optimizer = AdamW(decay_groups(model, 0.05), lr=options.lr, fused=True)
    name = f"{kind}, {share:.0%}, {options.epochs} epochs, lr {options.lr:g}, seed {seed}"
    path, accuracies = options.out / f"{name}.pt", []
    if path.exists():
        state = torch.load(path, map_location=options.device, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        accuracies = state["accuracies"]
    for epoch in range(len(accuracies), options.epochs):
        number = 1_000 * seed + epoch  # the same for all models: order, mirrors and zooms
        generator = torch.Generator().manual_seed(number)
        count = -(-len(train) // len(part))  # each photo as often as the others, or once more
        orders = [torch.randperm(len(part), generator=generator) for _ in range(count)]
        rows = torch.cat(orders)
        schedule = partial(one_epoch, epoch=epoch, epochs=options.epochs)
        how = RECIPE | dict(optimizer=optimizer, schedule=schedule, seed=number)
        fit(model, part.part(rows[: len(train)]), device=options.device, **how)
        accuracies.append(evaluate(model, val)[1])
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state | {"accuracies": accuracies}, path)
        print(f"{name}: epoch {epoch + 1}, val {accuracies[-1]:.1%}", flush=True)
    with FlopCounterMode(display=False) as counter, evaluating(model):
        model(torch.zeros(1, 3, SIZE, SIZE, device=options.device))
    result = {
        "photos": len(part),
        "val_accuracies": accuracies,
        "weights": sum(p.numel() for p in model.parameters()),
        "multiply_adds": counter.get_total_flops() // 2,
        "test": on_test(model, test),
    }
    file = options.out / "results.json"
    store(file, runs=stored(file).get("runs", {}) | {name: result})
    print(f"{name}: test {result['test']['report']['accuracy']:.1%}", flush=True)


def main() -> None:
    """Measure the part that the command asks for."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("test", "others", "runs"))
    parser.add_argument("--data", metavar="folder:PATH", help="of the photos, in train and test")
    parser.add_argument("--weights", default="photos", help="what to measure (default: photos)")
    parser.add_argument("--out", type=Path, default=Path("runs/photo_weights"), metavar="FOLDER")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=10, help="of a run (default: 10)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], metavar="SEED")
    parser.add_argument("--models", choices=MODELS, nargs="+", default=[*MODELS])
    parser.add_argument("--of", type=float, nargs="+", default=[1.0], help="shares of the photos")
    parser.add_argument("--lr", type=float, default=1e-3, help="highest one (default: 0.001)")
    options = parser.parse_args()
    if not options.data and options.part != "others":
        parser.error("--data is missing; give folder:PATH")
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.part == "runs":
        data = load_data(options.data, size=SIZE)
        for seed in options.seeds:
            for kind in options.models:
                for share in options.of:
                    run(kind, share, seed, data, options)
        return
    loaded = load(options.weights)
    if options.part == "others":
        result = on_others(loaded)
    else:
        result = on_test(loaded.model, load_data(options.data, preprocess=loaded.preprocess).test)
    store(options.out / "results.json", **{options.part: result})


if __name__ == "__main__":
    main()
