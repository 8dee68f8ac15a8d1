"""What a trained ViT says of a picture, in Python and as `python -m vit_steps.predict`."""

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from tqdm import tqdm

from .images import Preprocess
from .inputs import check_sizes
from .pretrained import load
from .training import Weights
from .training.devices import pick_device
from .training.folders import picture_files
from .training.loop import evaluating
from .training.measuring import write_table

Picture = str | Path | Image.Image | Tensor


@dataclass(frozen=True)
class Prediction:
    """What a model says of one picture: the classes by name, each with its share, largest first.

    The shares sum to 1 and are no promise: of a picture of something else they may look as sure.
    """

    picture: str  # its path, or its number where it came without one
    shares: tuple[tuple[str, float], ...]

    @property
    def name(self) -> str:
        """The class with the largest share."""
        return self.shares[0][0]

    def __str__(self) -> str:
        return f"{self.picture}: {', '.join(f'{n} {share:.1%}' for n, share in self.shares[:3])}"


def predict(
    weights: str | Path | Weights,
    pictures: Picture | Sequence[Picture],
    preprocess: Preprocess | None = None,
    classes: Sequence[str] = (),
    batch_size: int = 32,
    device: str | torch.device | None = None,
) -> list[Prediction]:
    """Name pictures by a trained ViT, each prepared as the model learned from them, in order.

    In a folder, a file that cannot be read is named in a warning and skipped.

    Args:
        weights: a file of this package's training, a published checkpoint (a file, a folder or
            huggingface.co's id), or what `pretrained.load` or `training.load_weights` made of one.
        pictures: one or a list of: a file, a folder (with all that is in it), Pillow's picture, or
            a tensor (C, H, W) from 0 to 1; or a tensor (B, C, H, W) of several.
        preprocess: how the model wants its pictures, where the weights do not say it.
        classes: the classes' names, where the weights do not say them; else they are numbers.
        batch_size: how many pictures go through at once.
        device: where to compute; None takes CUDA or MPS where there is one, else the CPU.
    """
    check_sizes(batch_size=batch_size)
    loaded = load(weights) if isinstance(weights, str | Path) else weights
    how, count = preprocess or loaded.preprocess, loaded.model.config.num_classes
    if how is None:
        raise ValueError("the weights do not say how they want their pictures; give preprocess")
    names = list(classes or loaded.classes or map(str, range(count)))
    if len(names) != count or not count:  # a model without a head names nothing
        raise ValueError(f"there are {len(names)} names for {count} classes")
    device = pick_device(device)
    model, read, found = loaded.model.to(device), [], []
    wanted = tqdm([*listed(pictures)], "pictures", disable=None)
    with evaluating(model):
        for i, (label, picture, skips) in enumerate(wanted):
            try:
                read.append((label, how(picture)))
            except ValueError as error:
                if not skips:
                    raise
                warnings.warn(f"{error}; skipped", stacklevel=2)
            if read and (len(read) == batch_size or i + 1 == len(wanted)):
                logits = model(torch.cat([image for _, image in read]).to(device))
                for (label, _), row in zip(read, logits.float().softmax(dim=-1), strict=True):
                    shares = zip(names, row.tolist(), strict=True)
                    ranked = sorted(shares, key=lambda pair: pair[1], reverse=True)
                    found.append(Prediction(label, tuple(ranked)))
                read = []
    return found


def listed(pictures: Any) -> Iterator[tuple[str, Any, bool]]:
    """Each picture: what to call it, itself, and whether it may be skipped, as in a folder."""
    one = isinstance(pictures, str | Path | Image.Image) or getattr(pictures, "ndim", 0) == 3
    several: Any = [pictures] if one else pictures
    for number, picture in enumerate(several):
        if not isinstance(picture, str | Path):
            yield str(number), picture, False
        elif (path := Path(picture).expanduser()).is_dir():
            if not (files := picture_files(path)):
                raise ValueError(f"{path} holds no pictures; give a folder that does, or a file")
            yield from ((str(file), file, True) for file in files)
        else:
            yield str(path), path, False


def main(argv: list[str] | None = None) -> int:
    """Print what the weights say of each picture, and perhaps write it as CSV; give 0, or 130."""
    parser = argparse.ArgumentParser(
        prog="python -m vit_steps.predict", description="Name pictures by a trained ViT."
    )
    parser.add_argument("weights", help="a file of `python -m vit_steps.training`, or published "
                        "weights: a file, a folder, or huggingface.co's id")  # fmt: skip
    parser.add_argument("pictures", nargs="+", help="files, or folders with all that is in them")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the shares of all classes")
    parser.add_argument("--device", choices=("cpu", "cuda", "mps"))
    options = parser.parse_args(argv)
    if isinstance(sys.stdout, TextIOWrapper):  # a name that the terminal cannot print
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loaded = load(options.weights)
            found = predict(loaded, options.pictures, device=options.device)
        if options.csv is not None:
            rows = [[one.picture, name, share] for one in found for name, share in one.shares]
            write_table(options.csv.expanduser(), ["picture", "class", "share"], rows)
    except (ValueError, OSError) as error:
        sys.exit(f"vit_steps.predict: {error}")
    except KeyboardInterrupt:
        return 130
    for warning in caught:
        print(f"note: {warning.message}")
    for one in found:
        print(one)
    if result := loaded.measured.get("result"):
        print(f"(accuracy on {result['part']}: {result['accuracy']:.1%})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
