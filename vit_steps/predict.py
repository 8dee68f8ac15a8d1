"""What a trained ViT says of a picture, in Python and as `python -m vit_steps.predict`."""

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from textwrap import fill, shorten
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from tqdm import tqdm

from .images import LUMA, Preprocess, normalize
from .inputs import check_sizes
from .maps import cls_map, rollout
from .pretrained import load
from .training import Weights
from .training.devices import pick_device
from .training.folders import picture_files
from .training.loop import evaluating
from .training.measuring import save, with_such_a_share, write_table, written

Picture = str | Path | Image.Image | Tensor
BELIEVED = 0.8  # how often such a share must have been right, for the answer not to be unsure
SHOWN = 8  # pictures at most in a figure


@dataclass(frozen=True)
class Prediction:
    """What a model says of one picture: the classes by name, each with its share, largest first.

    The shares sum to 1. `right_before` says what the largest is worth, for pictures like those that
    the model learned from; of a picture of something else it may look as sure.
    """

    picture: str  # its path, or its number where it came without one
    shares: tuple[tuple[str, float], ...]
    before: tuple[int, int] | None = None  # held-out pictures with so large a share; those right

    @property
    def name(self) -> str:
        """The class with the largest share."""
        return self.shares[0][0]

    @property
    def right_before(self) -> float | None:
        """How often so large a share was right on held-out pictures, from 0 to 1 (Guo et al. 2017).

        None where the weights' file does not say it, or counted too few of them.
        """
        return self.before and self.before[1] / self.before[0]

    @property
    def doubt(self) -> str:
        """Why the answer should not be believed, in words; empty where nothing speaks against."""
        if self.before is None or (right := self.right_before or 0) >= BELIEVED:
            return ""
        pictures = f"{self.before[0]:,} held-out pictures with such a share"
        return f"unsure: of {pictures}, {right:.0%} were right"

    def __str__(self) -> str:
        said = f"{self.picture}: {', '.join(f'{n} {share:.1%}' for n, share in self.shares[:3])}"
        return f"{said} · {self.doubt}" if self.doubt else said


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
        weights: "photos" or "scattered", the course's own; a file of this package's training, a
            published checkpoint (a file, a folder or huggingface.co's id), or what
            `pretrained.load` or `training.load_weights` made of one.
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
    measured = loaded.measured if how == loaded.preprocess else {}  # of pictures prepared so
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
                    before = with_such_a_share(ranked[0][1], measured)
                    found.append(Prediction(label, tuple(ranked), before))
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


def draw(path: Path, loaded: Weights, found: Sequence[Prediction]) -> None:
    """Draw, of pictures in files: what the model got, where it looked, and the classes' shares.

    Where it looked is its attention, followed from what the head reads down to the patches
    (`maps.rollout`): in each picture from blue, the least, to yellow, the most.
    """
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    model, how = loaded.model, loaded.preprocess or Preprocess()
    numbers = {name: str(i) for i, name in enumerate(loaded.classes)}
    figure = Figure(figsize=(10, 2.9 * len(found)), layout="constrained")
    rows = figure.subplots(len(found), 3, squeeze=False)
    for row, one in zip(rows, found, strict=True):
        pixels = how.pixels(one.picture)  # (C, H, W)
        images = normalize(pixels, how.mean, how.std)[None].to(next(model.parameters()).device)
        with evaluating(model):
            flow = rollout(model(images, return_attention=True)[1]).cpu()  # (1, N, N)
        grid, size = model.patch_embed.grid, model.config.patch_size
        looks = cls_map(flow, grid)[0]
        if model.config.pool == "mean":
            looks = flow[0, 1:, 1:].mean(dim=0).unflatten(0, grid)
        looks = (looks - looks.min()) / (looks.max() - looks.min()).clamp(min=1e-12)
        colours = torch.tensor(colormaps["cividis"](looks.numpy()))[..., :3]  # (rows, cols, 3)
        colours = colours.repeat_interleave(size, 0).repeat_interleave(size, 1)
        picture = pixels.permute(1, 2, 0).expand(-1, -1, 3)
        grey = (picture @ torch.tensor(LUMA))[..., None]
        row[0].imshow(picture.numpy())
        row[1].imshow((0.65 * colours + 0.35 * grey).numpy())
        for axes in row[:2]:
            axes.set(xticks=(), yticks=())
        row[0].set_title(shorten(written(Path(one.picture).name, "a picture"), 40))
        names, shares = zip(*one.shares[:10], strict=True)
        names = [written(name, numbers.get(name, "")) for name in names]
        bars = row[2].barh(range(len(names)), shares, color="#0072B2")
        row[2].bar_label(bars, [f"{share:.0%}" for share in shares], padding=3)
        row[2].set(xlim=(0, 1.15), xticks=(), yticks=range(len(names)), yticklabels=names)
        row[2].invert_yaxis()
        row[2].spines[:].set_visible(False)
        row[2].set_title(fill(one.doubt, 40), fontsize="medium")
    looked = "where it looked: blue least, yellow most"
    for axes, said in zip(rows[-1], ("what the model got", looked, "shares"), strict=True):
        axes.set_xlabel(said)
    save(figure, path)


def main(argv: list[str] | None = None) -> int:
    """Print what the weights say of each picture; write or draw it if asked; give 0, or 130."""
    parser = argparse.ArgumentParser(
        prog="python -m vit_steps.predict", description="Name pictures by a trained ViT."
    )
    parser.add_argument("weights", help="photos or scattered, the course's own; a file of `python "
                        "-m vit_steps.training`; or published weights: a file, a folder, or "
                        "huggingface.co's id")  # fmt: skip
    parser.add_argument("pictures", nargs="+", help="files, or folders with all that is in them")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the shares of all classes")
    parser.add_argument("--show", type=Path, metavar="FILE.png", help="draw where it looked (at "
                        f"most {SHOWN} pictures)")  # fmt: skip
    parser.add_argument("--device", choices=("cpu", "cuda", "mps"))
    options = parser.parse_args(argv)
    if isinstance(sys.stdout, TextIOWrapper):  # a name that the terminal cannot print
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        if options.show is not None:
            if options.show.suffix.lower() != ".png":
                raise ValueError(f"--show is {options.show}; give a name that ends in .png")
            if (count := len([*listed(options.pictures)])) > SHOWN:
                raise ValueError(f"--show draws at most {SHOWN} pictures, not {count}; name fewer")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loaded = load(options.weights)
            found = predict(loaded, options.pictures, device=options.device)
        if options.csv is not None:
            rows = [[one.picture, name, share] for one in found for name, share in one.shares]
            write_table(options.csv.expanduser(), ["picture", "class", "share"], rows)
        if options.show is not None and found:
            draw(options.show.expanduser(), loaded, found)
    except (ValueError, OSError, ImportError) as error:
        sys.exit(f"vit_steps.predict: {error}")
    except KeyboardInterrupt:
        return 130
    for warning in caught:
        print(f"note: {warning.message}")
    for one in found:
        print(one)
    if result := loaded.measured.get("result"):
        print(f"(accuracy on {result['part']}: {result['accuracy']:.1%})")
    names = shorten(", ".join(loaded.classes), 90, placeholder=" …") or "numbers alone"
    said = f"it knows {loaded.config.num_classes} classes: {names}"
    print(f"({said}; a picture of something else gets one of these names too)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
