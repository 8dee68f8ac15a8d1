"""Lesson 07: the command line of `python -m vit_steps.training`; no module imports it."""

import argparse
import os
import sys
import warnings
from contextlib import nullcontext, redirect_stdout
from importlib.util import find_spec
from inspect import signature
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from ..images import Preprocess
from ..pretrained import load
from ..vit import ViTConfig
from .data import load_data
from .devices import pick_device
from .fitting import check_options, fit
from .loop import History
from .measuring import conclude, draw_history, measure, write_history
from .processes import ProcessLostError, first_alone, is_first, joined, launch, my_share
from .recipes import AUGMENT, MODEL, ONWARD, completed, preparation, recipe, settings
from .resuming import own_folder

# Parameters. In a smaller model several threads wait for each other: two of them gain a third at
# best, and beside other work took up to 24 times as long as one.
SMALL = 1_000_000
FILES = ("last.safetensors", "best.safetensors", "history.csv", "classes.csv", "curves.png",
         "confusion.png")  # fmt: skip


def arguments() -> argparse.ArgumentParser:
    """The options of `python -m vit_steps.training`."""
    parser = argparse.ArgumentParser(
        prog="python -m vit_steps.training",
        usage="%(prog)s [--data DATA] [options]",
        description="Train a Vision Transformer, and keep its weights.",
        epilog="""\
examples:
  %(prog)s
      handwritten digits, in half a minute
  %(prog)s --data folder:my_photos --epochs 20
      your own pictures, one sub-folder a class
  %(prog)s --data folder:my_photos --from google/vit-base-patch16-224
      the same from published weights, or from a file of your own, with a new head
  %(prog)s --data openml:Fashion-MNIST --out runs/fashion
      60,000 pictures of clothes to train on, 10,000 to test on, from openml.org
  %(prog)s --processes 2
      in two processes, or on two graphics cards, --batch-size in all

The best epoch is chosen on val: a folder's own, or a share of what there is to train
on. The pictures to test on are used once, at the end. Stop it by Ctrl-C when you like:
the same command goes on from the last finished epoch, with larger --epochs too. Beside
the weights lie history.csv and classes.csv, and, where matplotlib is installed,
curves.png and confusion.png.
python -m vit_steps.predict runs/my_photos/best.safetensors photo.jpg names a picture; in
Python, vit_steps.training.load_model("runs/my_photos/best.safetensors") is the model.
""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    usual = {name: given.default for name, given in signature(fit).parameters.items()}

    def add(to: Any, name: str, help: str, kind: Any = int, metavar: str = "N") -> None:
        default = usual.get(name[2:].replace("-", "_"))
        if default is not None and "default" not in help:
            help += f" (default: {default})"
        to.add_argument(name, type=kind, metavar=metavar, help=help)

    parser.set_defaults(val_fraction=0.1, processes=1)
    sources = "digits, scattered, drawn, folder:PATH, openml:MNIST, :Fashion-MNIST or :CIFAR-10"
    parser.add_argument("--data", default="digits", help=f"{sources} (default: digits)")
    published = "photos, a file of this command, or published: a file, folder, huggingface.co's id"
    add(parser, "--from", f"start from these: {published}", str, "WEIGHTS")
    place = "folder for the weights (default: runs/, then the name of the data)"
    add(parser, "--out", place, Path, "FOLDER")
    parser.add_argument("--restart", action="store_true", help="forget what --out holds")
    kinds = ("cpu", "cuda", "mps")
    parser.add_argument("--device", choices=kinds, help="default: cuda or mps if there is one")
    share = "share to choose the best epoch by; 0: take the last epoch (default: 0.1)"
    add(parser, "--val-fraction", share, float, "X")
    add(parser, "--processes", "processes that train together (default: 1)")

    run = parser.add_argument_group("training (what has no default here suits the data)")
    add(run, "--epochs", "how often each training image is seen (default: of the data)")
    add(run, "--batch-size", "images in a step (default: 64)")
    add(run, "--lr", "highest learning rate", float, "X")
    add(run, "--weight-decay", "how strongly weights are pulled to 0", float, "X")
    add(run, "--warmup", "share of the steps in which the learning rate rises", float, "X")
    add(run, "--label-smoothing", "share of the target spread over all", float, "X")
    add(run, "--clip", "longest gradient of all weights together", float, "X")
    add(run, "--average", "keep a running mean of the weights, such as 0.999", float, "X")
    add(run, "--seed", "of the first weights, the order and the augmentation")
    changes = "of training images; digits: turn, scale, shift a little; photos: mirror, zoom in"
    run.add_argument("--augment", choices=AUGMENT, help=changes)
    run.add_argument("--amp", action="store_true", help="mixed precision, 16 bits where they do")

    model = parser.add_argument_group("model (suits the data; --from brings its own)")
    add(model, "--image-size", "side to which a folder's pictures are brought, in pixels (64)")
    grey = "make a folder's pictures grey"
    model.add_argument("--grey", action="store_const", const=True, help=grey)
    add(model, "--patch-size", "side of a patch in pixels; divides the image's")
    add(model, "--embed-dim", "width of a token")
    add(model, "--depth", "number of encoder blocks")
    add(model, "--num-heads", "heads of attention; divides the width (default: 4)")
    add(model, "--dropout", "share of the numbers dropped in training", float, "X")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Train as the command line says; give 0, or 130 if it was stopped by Ctrl-C."""
    options = arguments().parse_args(argv)
    # A name that the terminal cannot print is printed as \\udc.., rather than ending the training.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    speaks = os.environ.get("RANK", "0") == "0"  # of several processes, one
    try:
        if options.processes != 1:
            return launch(options.processes, sys.argv[1:] if argv is None else argv)
        with (
            joined(pick_device(options.device)) as device,
            open(os.devnull, "w") as nowhere,
            redirect_stdout(sys.stdout if speaks else nowhere),
        ):
            return train_as(options, device)
    except (ValueError, OSError, ProcessLostError) as error:  # said in one line
        sys.exit(f"vit_steps.training: {error}" if speaks else 1)
    except KeyboardInterrupt:
        if speaks:
            print("vit_steps.training: stopped", file=sys.stderr)
        return 130


def train_as(options: argparse.Namespace, device: torch.device) -> int:
    """Load the data, build the model, train it, measure it once, and say where the weights are."""
    kind, _, name = options.data.partition(":")
    usual = Path("runs") / (Path(name).resolve().name if name else kind)
    place = (options.out or usual).expanduser()
    last, best = (place / name for name in FILES[:2])
    known = {*MODEL, *signature(fit).parameters} - {"device"}
    given = {k: value for k, value in vars(options).items() if k in known and value is not None}

    with first_alone():  # what costs nothing comes first, the pictures last
        said, loaded, how = prepared(options, given)
        with own_folder(place) if is_first() else nullcontext():
            for old in FILES if options.restart else ():
                (place / old).unlink(missing_ok=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            known = dict(val_fraction=options.val_fraction, preprocess=how)
            train, val, test = load_data(options.data, **known)
    for warning in caught:
        print(f"note: {warning.message}")
    told = f"{options.data}: {len(train):,} images to train on"
    for data, use in ((val, "for val"), (test, "to test on")):
        told += f", {len(data):,} {use}" if data is not None else ""
    _, height, width = train.shape
    print(f"{told}; {len(train.classes)} classes; {height}×{width} pixels")
    if loaded is None:
        model, said = recipe(options.data, train, **given)
    else:
        torch.manual_seed(said["seed"])
        model = loaded.model.with_classes(len(train.classes))
    size, processes = sum(p.numel() for p in model.parameters()), my_share()[1]
    if device.type == "cpu" and size < SMALL:
        torch.set_num_threads(1)
    many = f", in {processes} processes" if processes > 1 else ""
    print(f"ViT with {size:,} parameters, on {device}{many}")
    if last.exists():
        print(f"going on from {last}")

    done = []  # the history after each epoch

    def report(history: History) -> None:
        done.append(history)
        write_history(place, history)
        line = f"epoch {len(history):3} of {said['epochs']}: "
        line += f"training loss {history.train_loss[-1]:.3f}"
        for loss, accuracy in zip(history.val_loss[-1:], history.val_accuracy[-1:], strict=True):
            line += f", val loss {loss:.3f}, val accuracy {accuracy:.1%}"
        with tqdm.external_write_mode():  # above the bar
            print(line, flush=True)

    whole: Any = said | dict(device=device, folder=place, report=report)
    try:
        history = fit(model, train, val, **whole, best=True, progress=sys.stderr.isatty())
    except KeyboardInterrupt:
        epoch = f"after epoch {len(done[-1])}" if done else "before an epoch was finished"
        on = "goes on from there" if done or last.exists() else "starts anew"
        print(f"Stopped {epoch}; the same command {on}.")
        return 130
    if history.val_accuracy:
        val_accuracy = history.val_accuracy[history.best - 1]
        print(f"best epoch: {history.best}, by its val accuracy of {val_accuracy:.1%}")
    part, data = ("test", test) if test is not None else ("val", val)
    if data is not None:
        measured = measure(model.to(device), data, amp=options.amp)
        if is_first():
            conclude(place, part, data, measured)
        once = "measured once" if part == "test" else "by which it was chosen: too good"
        print(f"{part} of epoch {history.best}, {once}: {measured}")
    if is_first() and find_spec("matplotlib"):
        draw_history(place / "curves.png", history)
    print(f"weights: {best} (epoch {history.best})\n         {last} (epoch {len(history)})")
    return 0


def prepared(
    options: argparse.Namespace, given: dict[str, Any]
) -> tuple[dict[str, Any], Any, Preprocess]:
    """The options of `fit`, the weights to start from or None, and how pictures are prepared.

    ValueError for what does not fit together, before a picture is read.
    """
    start, data = getattr(options, "from"), options.data
    of_folders = [name for name in ("image_size", "grey") if getattr(options, name) is not None]
    own = [*of_folders, *(name for name in MODEL if name in given)]
    if of_folders and not data.startswith("folder:"):
        raise ValueError(f"--{own[0].replace('_', '-')} is for folders, not for {data}")
    if start is None:
        sizes, said = settings(data, given)
        size = 64 if options.image_size is None else options.image_size
        how, loaded = preparation(data, size, bool(options.grey)), None
        ViTConfig(image_size=how.size, num_classes=2, **sizes)
    elif own:
        raise ValueError(f"--from brings its own; leave out --{own[0].replace('_', '-')}")
    else:
        said, loaded = completed(ONWARD | given), load(start, num_classes=2)
        how = loaded.preprocess
        if how is None:
            raise ValueError(f"{start} does not say how it wants its pictures")
        if not data.startswith("folder:") and how != (stored := preparation(data)):
            raise ValueError(f"{start} wants {how}; {data} is {stored}")
    check_options(said)
    return said, loaded, how


if __name__ == "__main__":
    sys.exit(main())
