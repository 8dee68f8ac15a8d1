"""Naming pictures by a trained ViT, in Python and as `python -m vit_steps.predict`."""

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from tqdm import tqdm

from .images import Preprocess, as_path
from .inputs import check_sizes
from .pretrained import load
from .training import Weights
from .training.commands import command
from .training.fitting import pick_device
from .training.listing import picture_files
from .training.loop import evaluating
from .training.measuring import right_with_share, write_table

Picture = str | Path | Image.Image | Tensor
BELIEVED = 0.8  # how often such a share must have been right, for the answer not to be unsure
SHOWN = 8  # pictures at most in a figure


@dataclass(frozen=True)
class Prediction:
    """What a model answers for one picture; of something else the share may be as large."""

    picture: str  # its path or number
    shares: tuple[tuple[str, float], ...]  # of each class, largest first; their sum is 1
    before: tuple[int, int] | None = None  # held-out pictures with so large a share; right ones

    @property
    def name(self) -> str:
        """The class with the largest share."""
        return self.shares[0][0]

    @property
    def right_before(self) -> float | None:
        """How often so large a share was right on held-out pictures (Guo et al. 2017); or None."""
        return self.before and self.before[1] / self.before[0]

    @property
    def doubt(self) -> str:
        """Why the answer should not be believed, in words; empty where nothing speaks against."""
        if self.before is None or (right := self.right_before or 0) >= BELIEVED:
            return ""
        pictures = f"{self.before[0]:,} held-out pictures with such a share"
        return f"unsure: of {pictures}, {right:.0%} were right"

    def __str__(self) -> str:
        shares = ", ".join(f"{name} {share:.1%}" for name, share in self.shares[:3])
        return f"{self.picture}: {shares}" + (f" · {self.doubt}" if self.doubt else "")


def predict(
    weights: str | Path | Weights,
    pictures: Picture | Sequence[Picture],
    preprocess: Preprocess | None = None,
    classes: Sequence[str] = (),
    batch_size: int = 32,
    device: str | torch.device | None = None,
) -> list[Prediction]:
    """Name pictures by a trained ViT, each prepared as the model learned from them, in order.

    The weights are what `pretrained.load` takes or gives. The pictures are one or a list of: a
    file, a folder (whose unreadable files are named in a warning and skipped), Pillow's picture, or
    a tensor (C, H, W) from 0 to 1; or (B, C, H, W). `batch_size` of them go through at once. Where
    the weights do not say how they want pictures, or the classes' names, give them here; without
    names they are numbers. A device of None is CUDA or MPS where there is one, else the CPU.
    """
    check_sizes(batch_size=batch_size)
    loaded = load(weights) if isinstance(weights, str | Path) else weights
    prepare, count = preprocess or loaded.preprocess, loaded.model.config.num_classes
    if prepare is None:
        raise ValueError("the weights do not say how they want their pictures; give preprocess")
    names = [*(classes or loaded.classes or map(str, range(count)))]
    if len(names) != count or not count:  # a model without a head names nothing
        raise ValueError(f"there are {len(names)} names for {count} classes")
    measured = loaded.measured if prepare == loaded.preprocess else {}  # of pictures prepared so
    device = pick_device(device)
    model, predictions = loaded.model.to(device), []

    def prepared() -> Iterator[tuple[str, Tensor]]:
        for label, picture, may_skip in tqdm([*listed(pictures)], "pictures", disable=None):
            try:
                yield label, prepare(picture)
            except ValueError as error:
                if not may_skip:
                    raise
                warnings.warn(f"{error}; skipped", stacklevel=3)

    ready = prepared()
    while batch := [*islice(ready, batch_size)]:
        labels, images = zip(*batch, strict=True)
        with evaluating(model):
            rows = model(torch.cat(images).to(device)).float().softmax(dim=-1).tolist()
        for label, row in zip(labels, rows, strict=True):
            pairs = zip(names, row, strict=True)
            shares = tuple(sorted(pairs, key=lambda pair: pair[1], reverse=True))
            predictions.append(Prediction(label, shares, right_with_share(shares[0][1], measured)))
    return predictions


def listed(pictures: Any) -> Iterator[tuple[str, Any, bool]]:
    """Give each picture: what to call it, itself, and whether it may be skipped, as in a folder."""
    if isinstance(pictures, str | Path | Image.Image) or getattr(pictures, "ndim", 0) == 3:
        pictures = [pictures]
    for number, picture in enumerate(pictures):
        if not isinstance(picture, str | Path):
            yield str(number), picture, False
        elif (path := as_path(picture)).is_dir():
            if not (files := picture_files(path)):
                raise ValueError(f"{path} holds no pictures; give a folder that does, or a file")
            yield from ((str(file), file, True) for file in files)
        else:
            yield str(path), path, False


def main(argv: list[str] | None = None) -> int:
    """Print what the weights say of each picture; write or draw it if asked; give 0."""
    parser = argparse.ArgumentParser("python -m vit_steps.predict", description=__doc__)
    add = parser.add_argument
    weights = "photos or scattered, the course's own; a file of `python -m vit_steps.training`; "
    add("weights", help=f"{weights}or published ones: a file, a folder, or huggingface.co's id")
    add("pictures", nargs="+", help="files, or folders with all that is in them")
    add("--csv", type=Path, metavar="FILE", help="write the shares of all classes")
    add("--show", type=Path, metavar="FILE.png", help=f"draw where it looked (at most {SHOWN})")
    add("--num-heads", type=int, metavar="N", help="of weights that do not say it")
    add("--device", choices=("cpu", "cuda", "mps"))
    options = parser.parse_args(argv)
    with command("vit_steps.predict"):
        if options.show and options.show.suffix.lower() != ".png":
            raise ValueError(f"--show is {options.show}; give a name that ends in .png")
        if options.show and (number := len([*listed(options.pictures)])) > SHOWN:
            raise ValueError(f"--show draws at most {SHOWN} pictures, not {number}; name fewer")
        loaded = load(options.weights, num_heads=options.num_heads)
        for note in loaded.notes:
            print(f"note: {note}")
        predictions = predict(loaded, options.pictures, device=options.device)
        if not predictions:
            raise ValueError("none of the pictures can be read")
        if options.csv:
            rows = [(p.picture, *pair) for p in predictions for pair in p.shares]
            write_table(options.csv.expanduser(), ["picture", "class", "share"], rows)
        if options.show:
            from vit_course.plots.predictions import draw_predictions

            draw_predictions(options.show.expanduser(), loaded, predictions)
    print(*predictions, sep="\n")
    if result := loaded.measured.get("result"):
        print(f"(accuracy on {result['part']}: {result['accuracy']:.1%})")
    names = shorten(", ".join(loaded.classes), 90, placeholder=" …") or "numbers alone"
    classes = f"it knows {loaded.config.num_classes} classes: {names}"
    print(f"({classes}; a picture of something else gets one of these names too)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
