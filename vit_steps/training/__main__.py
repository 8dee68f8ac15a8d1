"""Lesson 07: the command line of `python -m vit_steps.training`; no module imports it."""

import argparse
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from inspect import signature
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous
from tqdm import tqdm

from ..pretrained import load
from ..vit import ViT, ViTConfig
from .commands import command
from .data import AUGMENT, MODEL, SOURCES, as_stored, load_data, recipe, settings
from .fitting import History, fit, pick_device
from .folders import Parts
from .measuring import conclude, measure, write_history

# Parameters. In a smaller model several threads wait for each other: two of them gain a third at
# best, and beside other work took up to 24 times as long as one.
SMALL = 1_000_000
EXAMPLES = """\
examples:
  %(prog)s
      handwritten digits, in half a minute
  %(prog)s --data folder:my_photos --epochs 20
      your own pictures, one sub-folder a class
  %(prog)s --data folder:my_photos --from google/vit-base-patch16-224
      the same from published weights, or from a file of your own, with a new head
  torchrun --nproc-per-node 2 -m vit_steps.training
      in two processes, or on two graphics cards, --batch-size in all
  python -m vit_steps.predict runs/my_photos/best.safetensors photo.jpg
      names a picture; vit_steps.training.load_model gives the model in Python

The best epoch is chosen on val: a folder's own, or a share of what there is to train
on. The pictures to test on are used once, at the end. Stop it by Ctrl-C when you like:
the same command goes on from the last finished epoch, with larger --epochs too. Beside
the weights lie history.csv, classes.csv and confusion.png.
"""


def arguments() -> argparse.ArgumentParser:
    """Make the options of `python -m vit_steps.training`."""
    parser = argparse.ArgumentParser(
        prog="python -m vit_steps.training",
        usage="%(prog)s [--data DATA] [options]",
        description="Train a Vision Transformer, and keep its weights.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--data", default="digits", help=f"{SOURCES} (default: digits)")
    table = "file,label of each picture in a flat folder"
    add("--labels", type=Path, metavar="FILE.csv", help=table)
    start = "weights to start from: photos, a file of this command, or published ones: a file, "
    add("--from", dest="start", metavar="WEIGHTS", help=f"{start}folder, or huggingface.co's id")
    out = "folder for the weights (default: runs/, then the data's name)"
    add("--out", type=Path, metavar="FOLDER", help=out)
    add("--restart", action="store_true", help="forget what --out holds, once an epoch is done")
    add("--device", choices=("cpu", "cuda", "mps"), help="default: cuda or mps if there is one")
    share = "share to choose the best epoch by; 0: take the last epoch (default: 0.1)"
    add("--val-fraction", type=float, default=0.1, metavar="X", help=share)
    add = parser.add_argument_group("training (what is not given suits the data)").add_argument
    names = "epochs batch_size lr weight_decay warmup label_smoothing clip seed"
    add_described(add, fit, *names.split())
    changes = "of training images; digits: turn, scale, shift a little; photos: mirror, zoom in"
    add("--augment", choices=AUGMENT, help=changes)
    add("--freeze", type=int, metavar="N", help="keep the embeddings and the first N blocks")
    add("--balance", action="store_true", help="let rare classes count as much in the loss")
    add("--amp", action="store_true", help="compute in 16 bits where that is safe")
    add = parser.add_argument_group("model (suits the data; --from brings its own)").add_argument
    size = "in pixels, of a folder's pictures (64), or of what --from was trained on"
    add("--image-size", type=image_size, metavar="N or HxW", help=size)
    add("--grey", action="store_true", help="make a folder's pictures grey")
    add_described(add, ViTConfig, *MODEL)
    return parser


def image_size(text: str) -> tuple[int, int]:
    """Read a size, 64 or 48x64, height first."""
    height, _, width = text.lower().partition("x")
    return int(height), int(width or height)


def add_described(add: Callable, source: Any, *names: str) -> None:
    """Add options of a function or a class, with the first words of its docstring on each."""
    for name in names:
        text = re.search(rf"^ +{name}: (?:[A-Zh][,;] )?([^,.;(]+)", source.__doc__, re.M)
        is_float = "float" in str(signature(source).parameters[name].annotation)
        kind, letter = (float, "X") if is_float else (int, "N")
        add(f"--{name.replace('_', '-')}", type=kind, metavar=letter, help=text and text[1])


@contextmanager
def joined(device: torch.device) -> Iterator[torch.device]:
    """Join the processes that torchrun started, each on its own card; silence all but the first."""
    if not dist.is_torchelastic_launched():
        yield device
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    # Of axes of length 1, which the cls token has: nothing is lost there.
    warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides")
    # torchrun keeps its store when it restarts the processes; without a name of its own a new life
    # would look for those of the last one.
    store, rank, size = next(rendezvous("env://"))
    store = PrefixStore(f"life {os.environ['TORCHELASTIC_RESTART_COUNT']}", store)
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size)
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere if rank else sys.stdout):
        yield device
    dist.destroy_process_group()


def main(argv: list[str] | None = None) -> int:
    """Train as the command line says; give 0, or 130 if the training was stopped by Ctrl-C."""
    options = arguments().parse_args(argv)
    with command("vit_steps.training"), joined(pick_device(options.device)) as device:
        model, training, parts = prepare(options)
        size = sum(p.numel() for p in model.parameters())
        if device.type == "cpu" and size < SMALL:
            torch.set_num_threads(1)
        learning = sum(p.numel() for p in model.parameters() if p.requires_grad)
        frozen = f", {learning:,} of which learn" if learning < size else ""
        print(f"ViT with {size:,} parameters{frozen}, on {device}")
        name = Path(options.data.removeprefix("folder:")).resolve().name
        folder = (options.out or Path("runs", name)).expanduser()
        return train(model, parts, folder, training | dict(device=device))


def prepare(options: argparse.Namespace) -> tuple[ViT, dict[str, Any], Parts]:
    """Make the model, or load it, and the data; give them with the options of `fit`.

    ValueError for what does not fit together, before a picture is read.
    """
    fitted = {*MODEL, *signature(fit).parameters} - {"device"}
    changes = {k: value for k, value in vars(options).items() if k in fitted and value is not None}
    source, start, preprocess, loaded = options.data, options.start, as_stored(8), None
    names = [name for name in ("image_size", "grey") if getattr(options, name)]
    if source.startswith("folder:"):
        preprocess = as_stored(options.image_size or 64, 1 if options.grey else 3, ink=False)
    elif names:
        raise ValueError(f"--{names[0].replace('_', '-')} is for folders, not for {source}")
    sizes, training = settings(source if start is None else "from", changes)
    if start is None:
        ViTConfig(image_size=preprocess.size, num_classes=2, **sizes)
    elif names := [name for name in (*names, *sizes) if name not in ("image_size", "num_heads")]:
        raise ValueError(f"--from brings its own; leave out --{names[0].replace('_', '-')}")
    else:
        heads, size = options.num_heads, options.image_size
        loaded = load(start, num_classes=2, num_heads=heads, image_size=size)
        for note in loaded.notes:
            print(f"note: {note}")
        if loaded.preprocess is None:
            raise ValueError(f"{start} does not say how it wants its pictures")
        if source == "digits" and loaded.preprocess != preprocess:
            raise ValueError(f"{start} wants {loaded.preprocess}; {source} is {preprocess}")
        preprocess = loaded.preprocess
    share, table = options.val_fraction, options.labels
    parts = load_data(source, val_fraction=share, preprocess=preprocess, table=table)
    uses = zip(parts, ("to train on", "for val", "to test on"), strict=True)
    counts = ", ".join(f"{len(part):,} images {use}" for part, use in uses if part)
    classes, (_, height, width) = len(parts.train.classes), parts.train.shape
    print(f"{source}: {counts}; {classes} classes; {height}×{width} pixels")
    if loaded is None:
        model, _ = recipe(source, parts.train, **changes)
    else:
        torch.manual_seed(training["seed"])
        model = loaded.model.with_classes(classes)
    if options.freeze is not None:
        freeze(model, options.freeze)
    if options.balance:
        counts = parts.train.labels.bincount(minlength=classes)
        training["class_weights"] = (len(parts.train) / (classes * counts)).tolist()
    return model, training, parts


def freeze(model: ViT, blocks: int) -> None:
    """Keep the weights of the embeddings and of the first blocks; ValueError for more than all."""
    if not 0 <= blocks <= len(model.blocks):
        raise ValueError(f"--freeze is {blocks}; the model has {len(model.blocks)} blocks")
    for part in (model.patch_embed, model.tokens, *model.blocks[:blocks]):
        part.requires_grad_(False)


def train(model: ViT, parts: Parts, folder: Path, training: dict[str, Any]) -> int:
    """Train a model by these options of `fit`, measure it once, and say where the weights are."""
    last, best = folder / "last.safetensors", folder / "best.safetensors"
    if last.exists() and not training["restart"]:
        print(f"going on from {last}")
    is_first = not dist.is_initialized() or dist.get_rank() == 0

    def report(history: History) -> None:
        line = f"epoch {len(history):3} of {training['epochs']}: "
        line += f"training loss {history.train_loss[-1]:.3f}"
        if history.val_loss:
            line += f", val loss {history.val_loss[-1]:.3f}"
            line += f", val accuracy {history.val_accuracy[-1]:.1%}"
        tqdm.write(line)  # above the bar
        if is_first:
            write_history(folder, history)

    training |= dict(folder=folder, report=report, best=True, progress=sys.stderr.isatty())
    try:
        history = fit(model, parts.train, parts.val, **training)
    except KeyboardInterrupt:
        then = "goes on from the last finished epoch" if last.exists() else "starts anew"
        print(f"Stopped; the same command {then}.")
        return 130
    if parts.val:
        accuracy = history.val_accuracy[history.best - 1]
        print(f"best epoch: {history.best}, by its val accuracy of {accuracy:.1%}")
    data, part, reading = parts.test, "test", "measured once"
    if data is None:
        data, part, reading = parts.val, "val", "by which it was chosen: too good"
    if data and is_first:
        measured = measure(model.to(training["device"]), data)
        conclude(folder, part, measured)
        print(f"{part} of epoch {history.best}, {reading}: {measured}")
    print(f"weights: {best} (epoch {history.best})\n         {last} (epoch {len(history)})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
