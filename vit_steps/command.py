"""Lesson 07: the command line of `python -m vit_steps.training`."""

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from .data import load
from .training import History, augment_digits, augment_photos, fit, pick_device
from .vit import ViT, ViTConfig

# What suits each data set on a laptop's CPU. In these small models the patches start far louder
# than positions of spread 0.02, and drown them: twelve epochs on digits, without augmentation,
# gave 83%; from positions of spread 0.2 they gave 99%.
RECIPES: dict[str, dict[str, Any]] = {
    "digits": dict(patch_size=2, embed_dim=48, depth=3, epochs=30, augment="digits"),
    "scattered": dict(patch_size=4, embed_dim=64, depth=4, epochs=6, augment="none"),
    "folder": dict(patch_size=8, embed_dim=96, depth=4, epochs=40, augment="photos"),
    "openml": dict(patch_size=4, embed_dim=64, depth=4, epochs=10, augment="photos"),
    "openml:MNIST": dict(patch_size=4, embed_dim=64, depth=4, epochs=10, augment="digits"),
}
AUGMENT = {"none": None, "digits": augment_digits, "photos": augment_photos}


def arguments() -> argparse.ArgumentParser:
    """The options of `python -m vit_steps.training`."""
    parser = argparse.ArgumentParser(
        prog="python -m vit_steps.training",
        usage="%(prog)s [--data DATA] [options]",
        description="Train a Vision Transformer from scratch, and keep its weights.",
        epilog="""\
examples:
  %(prog)s
      handwritten digits, in half a minute
  %(prog)s --data folder:my_photos --epochs 20
      your own pictures, one sub-folder a class
  %(prog)s --data openml:Fashion-MNIST --out runs/fashion
      10,000 pictures of clothes held out, 60,000 to train on, from openml.org

Stop it by Ctrl-C when you like: the same command goes on from the last finished epoch.
In Python, vit_steps.training.load_model("runs/digits/best.safetensors") is the model.
""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    def add(to, name: str, help: str, default=None, kind: type = int, metavar: str = "N") -> None:
        if default is not None:
            help += f" (default: {default})"
        to.add_argument(name, type=kind, default=default, metavar=metavar, help=help)

    sources = "digits, scattered, folder:PATH, openml:MNIST, openml:Fashion-MNIST, openml:CIFAR-10"
    add(parser, "--data", sources, "digits", str, "DATA")
    add(parser, "--out", "folder for the weights (default: runs/, then the name of the data)",
        None, Path, "FOLDER")  # fmt: skip
    parser.add_argument("--restart", action="store_true", help="forget what --out holds")
    parser.add_argument("--device", choices=("cpu", "cuda", "mps"), help="default: cuda or mps if "
                        "there is one, else cpu")  # fmt: skip

    run = parser.add_argument_group("training (what has no default here suits the data)")
    add(run, "--epochs", "how often each training image is seen")
    add(run, "--batch-size", "images in a step", 64)
    add(run, "--lr", "highest learning rate", 2e-3, float, "X")
    add(run, "--weight-decay", "how strongly weights are pulled to 0", 0.05, float, "X")
    add(run, "--warmup", "share of the steps in which the learning rate rises", 0.1, float, "X")
    add(run, "--label-smoothing", "share of the target spread over all", 0.1, float, "X")
    add(run, "--seed", "of the first weights, the order and the augmentation", 0)
    run.add_argument("--augment", choices=AUGMENT, help="what is done to training images; digits: "
                     "turn, scale and shift a little; photos: mirror, zoom in")  # fmt: skip

    model = parser.add_argument_group("model (what has no default here suits the data)")
    add(model, "--image-size", "side to which a folder's pictures are brought, in pixels (64)")
    add(model, "--patch-size", "side of a patch in pixels; divides the image's")
    add(model, "--embed-dim", "width of a token")
    add(model, "--depth", "number of encoder blocks")
    add(model, "--num-heads", "heads of attention; divides the width", 4)
    add(model, "--dropout", "share of the numbers dropped in training", 0.0, float, "X")
    add(model, "--position-std", "spread of the positions at the start", 0.2, float, "X")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Train as the command line says; give 0, or 130 if it was stopped by Ctrl-C."""
    options = arguments().parse_args(argv)
    try:
        return train_as(options)
    except (ValueError, OSError) as error:  # an option, a file or the network: say it in one line
        sys.exit(f"vit_steps.training: {error}")
    except KeyboardInterrupt:
        sys.exit("vit_steps.training: stopped before the training began")


def train_as(options: argparse.Namespace) -> int:
    """Load the data, build the model, train it, and say where the weights are."""
    kind, _, name = options.data.partition(":")
    recipe = RECIPES.get(options.data) or RECIPES.get(kind, {})
    for key, value in recipe.items():
        if getattr(options, key) is None:
            setattr(options, key, value)
    if options.image_size is not None and kind != "folder":
        raise ValueError(f"--image-size is for folders; the pictures of {options.data} have theirs")
    folder = options.out or Path("runs") / (Path(name).resolve().name if name else kind)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train, test = load(options.data, size=options.image_size or 64)
    for warning in caught:
        print(f"note: {warning.message}")
    _, channels, height, width = train.images.shape
    print(
        f"{options.data}: {len(train):,} images to train on, {len(test):,} held out; "
        f"{len(train.classes)} classes; {height}×{width} pixels"
    )
    config = ViTConfig(
        image_size=(height, width),
        patch_size=options.patch_size,
        in_channels=channels,
        num_classes=len(train.classes),
        embed_dim=options.embed_dim,
        depth=options.depth,
        num_heads=options.num_heads,
        dropout=options.dropout,
    )
    torch.manual_seed(options.seed)
    model = ViT(config)
    with torch.no_grad():
        model.tokens.pos_embed.mul_(options.position_std / 0.02)
    device = pick_device(options.device)
    print(f"ViT with {sum(p.numel() for p in model.parameters()):,} parameters, on {device}")

    def report(history: History) -> None:
        line = (
            f"epoch {len(history):3} of {options.epochs}: "
            f"training loss {history.train_loss[-1]:.3f}, "
            f"held-out loss {history.test_loss[-1]:.3f}, "
            f"held-out accuracy {history.test_accuracy[-1]:.1%}"
        )
        with tqdm.external_write_mode():  # above the bar
            print(line, flush=True)

    last = folder / "last.safetensors"
    if options.restart:
        for path in (last, folder / "best.safetensors"):
            path.unlink(missing_ok=True)
    elif last.exists():
        print(f"going on from {last}")
    history = fit(
        model,
        train,
        test,
        epochs=options.epochs,
        batch_size=options.batch_size,
        lr=options.lr,
        weight_decay=options.weight_decay,
        warmup=options.warmup,
        label_smoothing=options.label_smoothing,
        augment=AUGMENT[options.augment],
        seed=options.seed,
        device=device,
        folder=folder,
        progress=sys.stderr.isatty(),
        report=report,
    )
    stopped = len(history) < options.epochs
    if not history:
        print("Stopped before the end of the first epoch: nothing is saved.")
        return 130
    if stopped:
        print(f"Stopped after epoch {len(history)}; the same command goes on from there.")
    best = history.best
    print(
        f"{history.test_accuracy[-1]:.1%} of the held-out images right after epoch {len(history)}\n"
        f"weights: {last}\n"
        f"         {folder / 'best.safetensors'} (epoch {best}, "
        f"{history.test_accuracy[best - 1]:.1%}; chosen on the held-out images)"
    )
    return 130 if stopped else 0
