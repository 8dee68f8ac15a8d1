"""Lesson 07: the command line of `python -m vit_steps.training`; no module imports it."""

import argparse
import os
import sys
import warnings
from contextlib import redirect_stdout
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from ..vit import ViT, ViTConfig
from .augment import augment_digits, augment_photos
from .checkpoints import load_model, own_folder
from .data import load_data
from .dataset import Pictures
from .devices import pick_device
from .fitting import fit
from .folders import Parts
from .loop import History, evaluate
from .processes import ProcessLostError, first_alone, is_first, joined, my_share

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
# Parameters. A smaller model does so little at a time that several threads wait for each other: two
# of them gain a third at best, and beside other work took up to 24 times as long as one.
SMALL = 1_000_000
# The options that go on as they are, to `fit` and to `ViTConfig`.
FIT = ["epochs", "batch_size", "lr", "weight_decay", "warmup", "label_smoothing", "seed", "amp"]
MODEL = ["patch_size", "embed_dim", "depth", "num_heads", "dropout"]
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
      60,000 pictures of clothes to train on, 10,000 to test on, from openml.org

  torchrun --nproc-per-node 2 -m vit_steps.training
      the same in two processes, or on two graphics cards, --batch-size in all

The best epoch is chosen on val: a folder's own, or a share of what there is to train
on. The pictures to test on are used once, at the end. On the CPU a model of less than
a million parameters trains in one thread: more would wait for each other.
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

    add(parser, "--val-fraction", "share to choose the best epoch by; 0: take the last epoch",
        0.1, float, "X")  # fmt: skip
    add(parser, "--workers", "processes that read pictures, where memory cannot hold them", 2)

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
    run.add_argument("--amp", action="store_true", help="mixed precision, 16 bits where they do")

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
    # A name that the terminal cannot print is printed as \\udc.., rather than ending the training.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with joined(pick_device(options.device)) as device:
            if is_first():
                return train_as(options, device)
            with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
                return train_as(options, device)
    except (ValueError, OSError) as error:  # an option, a file or the network: say it in one line
        sys.exit(f"vit_steps.training: {error}")
    except ProcessLostError as error:
        sys.exit(f"vit_steps.training: {error}; the same command goes on from the last epoch saved")
    except KeyboardInterrupt:
        print("vit_steps.training: stopped", file=sys.stderr)
        return 130


def train_as(options: argparse.Namespace, device: torch.device) -> int:
    """Load the data, build the model, train it, measure it once, and say where the weights are."""
    kind, _, name = options.data.partition(":")
    for key, value in (RECIPES.get(options.data) or RECIPES.get(kind, {})).items():
        if getattr(options, key) is None:
            setattr(options, key, value)
    if options.image_size is not None and kind != "folder":
        raise ValueError(f"--image-size is for folders; the pictures of {options.data} have theirs")
    place = options.out or Path("runs") / (Path(name).resolve().name if name else kind)
    last, best = place / "last.safetensors", place / "best.safetensors"

    with first_alone():
        train, val, test = load_parts(options)
    model = make_model(options, train)
    size, processes = sum(p.numel() for p in model.parameters()), my_share()[1]
    if device.type == "cpu" and size < SMALL:
        torch.set_num_threads(1)
    many = f", in {processes} processes" if processes > 1 else ""
    print(f"ViT with {size:,} parameters, on {device}{many}")
    if options.restart and place.exists() and is_first():
        with own_folder(place):
            last.unlink(missing_ok=True)
            best.unlink(missing_ok=True)
    elif last.exists():
        print(f"going on from {last}")

    done = []  # the history after each epoch

    def report(history: History) -> None:
        done.append(history)
        line = f"epoch {len(history):3} of {options.epochs}: "
        line += f"training loss {history.train_loss[-1]:.3f}"
        if history.val_loss:
            line += f", val loss {history.val_loss[-1]:.3f}"
            line += f", val accuracy {history.val_accuracy[-1]:.1%}"
        with tqdm.external_write_mode():  # above the bar
            print(line, flush=True)

    said = {name: getattr(options, name) for name in FIT}
    said |= dict(augment=AUGMENT[options.augment], device=device, folder=place, report=report)
    try:
        history = fit(model, train, val, **said, progress=sys.stderr.isatty())
    except KeyboardInterrupt:
        if done or last.exists():
            epoch = f"after epoch {len(done[-1])}" if done else "before another epoch was finished"
            print(f"Stopped {epoch}; the same command goes on from there.")
        else:
            print("Stopped before the end of the first epoch: nothing is saved.")
        return 130
    _, accuracy = evaluate(load_model(best).to(device), test, amp=options.amp)
    if history.val_accuracy:
        val_accuracy = history.val_accuracy[history.best - 1]
        print(f"best epoch: {history.best}, by its val accuracy of {val_accuracy:.1%}")
    print(
        f"test accuracy of epoch {history.best}, measured once: {accuracy:.1%}\n"
        f"weights: {best} (epoch {history.best})\n"
        f"         {last} (epoch {len(history)})"
    )
    return 0


def load_parts(options: argparse.Namespace) -> Parts:
    """Load the data that are asked for, and say what they are."""
    size = options.image_size or 64
    shares = dict(val_fraction=options.val_fraction, workers=options.workers)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parts = load_data(options.data, size=size, **shares)
    for warning in caught:
        print(f"note: {warning.message}")
    _, height, width = parts.train.shape
    val = "" if parts.val is None else f", {len(parts.val):,} for val"
    print(
        f"{options.data}: {len(parts.train):,} images to train on{val}, {len(parts.test):,} to "
        f"test on; {len(parts.train.classes)} classes; {height}×{width} pixels"
    )
    return parts


def make_model(options: argparse.Namespace, train: Pictures) -> ViT:
    """An untrained ViT for these pictures."""
    channels, height, width = train.shape
    sizes = {name: getattr(options, name) for name in MODEL}
    sizes |= dict(image_size=(height, width), in_channels=channels, num_classes=len(train.classes))
    torch.manual_seed(options.seed)
    model = ViT(ViTConfig(**sizes))
    with torch.no_grad():
        model.tokens.pos_embed.mul_(options.position_std / 0.02)
    return model


if __name__ == "__main__":
    sys.exit(main())
