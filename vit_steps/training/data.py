"""Lesson 07: labelled pictures to learn from, some of each set held out."""

import warnings
from dataclasses import replace
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..files import write_whole
from ..images import Preprocess, load_image, sample_photo
from ..inputs import check_choice, check_fraction, check_sizes
from .dataset import ImageDataset, split
from .folders import Parts, folder
from .strokes import PEN, enlarged, handwriting, paint

SOURCES = '"digits", "scattered", "drawn", "folder:PATH" or "openml:NAME"'
DIGITS = tuple("0123456789")
INK = 16  # the byte of the darkest ink in scikit-learn's digits
DIGIT = 8  # side of scikit-learn's digits, in pixels
FRAGMENT = 3  # side of the pieces of other digits that scattered ones lie among
CROP = 96  # pixels of a crop's side, three of which become one
HELD_OUT = 10_000  # the last ones of each set of OpenML's are the usual test set
CLOTHES = "T-shirt/top trouser pullover dress coat sandal shirt sneaker bag ankle-boot"
THINGS = "airplane automobile bird cat deer dog frog horse ship truck"
OPENML = {  # OpenML's number, (C, H, W) of a row of its table, and the names of labels 0 to 9
    "Fashion-MNIST": (40996, (1, 28, 28), tuple(CLOTHES.split())),
    "MNIST": (554, (1, 28, 28), DIGITS),
    "CIFAR-10": (40927, (3, 32, 32), tuple(THINGS.split())),  # all reds, all greens, all blues
}


def as_stored(side: int, channels: int = 1) -> Preprocess:
    """How a picture is made one of a set of ink (grey) or of photos, of this side, -1 to 1."""
    half = (0.5,) * channels
    return Preprocess((side, side), side, "bicubic", half, half, ink=channels == 1)


def digits(fraction: float = 0.2, seed: int = 0) -> tuple[ImageDataset, ImageDataset]:
    """The 1,797 handwritten digits that scikit-learn ships, in a train and a held-out part.

    Images (n, 1, 8, 8), from -1 (paper) to 1 (ink); the share `fraction` of each digit is held out,
    as the seed draws it. Source: UCI, "Optical Recognition of Handwritten Digits" (Alpaydin and
    Kaynak 1998).
    """
    from sklearn.datasets import load_digits

    bunch: Any = load_digits()
    pixels = torch.from_numpy(bunch.images).byte()[:, None]
    labels = torch.from_numpy(bunch.target).long()
    whole = ImageDataset(pixels, labels, DIGITS, white=INK, preprocess=as_stored(DIGIT))
    return split(whole, fraction, seed)


def scattered(
    count: int, seed: int = 0, side: int = 16, fragments: int = 6, held_out: bool = False
) -> ImageDataset:
    """Digits placed at random on a larger canvas, among pieces of others: where to look is known.

    Every fifth place on the canvas, a knight's move apart, is kept for the held-out digits: so
    neither the digit nor its place was there to train on. The digits are split as `digits()` does,
    whatever the seed.

    Args:
        count: how many canvases; the same seed draws the same.
        side: of the canvas, in pixels; ValueError if it is too small.
        fragments: how many pieces of 3×3 pixels lie around each digit, never on it. They are
            drawn without regard to its class, so they tell nothing about it.
        held_out: draw the held-out digits, at the held-out places.

    Returns:
        Images (count, 1, side, side), from -1 to 1, with `places`.
    """
    check_sizes(count=count, side=side)
    check_sizes(0, fragments=fragments)
    check_choice("held_out", held_out, True, False)
    least = DIGIT + 2 * FRAGMENT - 1 if fragments else DIGIT + 1
    if side < least:
        raise ValueError(f"side is {side}; with {fragments} fragments give at least {least}")
    source = digits()[held_out]
    generator = torch.Generator().manual_seed(seed)

    def draw(high: int, *shape: int) -> Tensor:
        return torch.randint(high, shape, generator=generator)

    steps = torch.arange(side - DIGIT + 1)
    fits = torch.cartesian_prod(steps, steps)  # every (row, column) where a digit fits
    kept = (fits[:, 0] + 2 * fits[:, 1]) % 5 == 0
    fits = fits[kept] if held_out else fits[~kept]
    chosen, places = draw(len(source), count), fits[draw(len(fits), count)]

    canvas = torch.zeros(count, side, side, dtype=torch.uint8)
    canvas[window(places, DIGIT)] = source.pixels[chosen, 0]
    for _ in range(fragments):
        corner = draw(side - FRAGMENT + 1, count, 2)
        # Those that would touch the digit are drawn again.
        while (hit := (corner > places - FRAGMENT) & (corner < places + DIGIT)).all(dim=1).any():
            again = hit.all(dim=1)
            corner[again] = draw(side - FRAGMENT + 1, int(again.sum()), 2)
        cut = window(draw(DIGIT - FRAGMENT + 1, count, 2), FRAGMENT)
        piece = source.pixels[draw(len(source), count), 0][cut]
        there = window(corner, FRAGMENT)
        canvas[there] = canvas[there].maximum(piece)  # where fragments meet, the darker ink
    labels, how = source.labels[chosen], as_stored(side)
    return ImageDataset(canvas[:, None], labels, DIGITS, places, INK, how)


def window(corners: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """The index of a square in each of n pictures (n, H, W), from its top-left corner (n, 2)."""
    steps = torch.arange(size)
    rows = corners[:, 0, None, None] + steps[:, None]  # (n, size, 1)
    columns = corners[:, 1, None, None] + steps  # (n, 1, size)
    return torch.arange(len(corners))[:, None, None], rows, columns


def drawn(count: int, seed: int = 0, side: int = 16) -> ImageDataset:
    """Digits as people draw them with a pen on an empty canvas: of many sizes, in many hands.

    Two of three are drawn stroke by stroke (`strokes.handwriting`). The others are those that
    `digits()` gives to train on, made larger or smaller (`strokes.enlarged`).

    Args:
        count: how many canvases; the same seed draws the same.
        side: of the canvas, in pixels, at least 16.

    Returns:
        Images (count, 1, side, side), from -1 to 1.
    """
    check_sizes(count=count)
    check_sizes(16, side=side)
    generator = torch.Generator().manual_seed(seed)
    source = digits()[0]
    chosen = torch.randint(len(source), (count // 3,), generator=generator)
    large = enlarged(source.pixels[chosen, 0] / INK, side, generator)
    ink, labels = handwriting(count - len(chosen), side, generator)
    order = torch.randperm(count, generator=generator)
    pixels = (torch.cat([ink, large]) * INK).round().byte()[order, None]
    labels = torch.cat([labels, source.labels[chosen]])[order]
    return ImageDataset(pixels, labels, DIGITS, white=INK, preprocess=as_stored(side))


def hands() -> ImageDataset:
    """360 digits that twelve other hands than those of `drawn` wrote with its pen: a test for it.

    The hands are imagined, and tidier than real ones; `hands/README.md` tells how they were made.

    Returns:
        Images (360, 1, 16, 16), from -1 to 1; the hands in alphabetical order.
    """
    files = sorted(Path(__file__).with_name("hands").glob("*.txt"))
    lines = [line for file in files for line in file.read_text("utf-8").splitlines()]
    labels, ink = [], []
    for digit, _, strokes in (line.partition(": ") for line in lines if line[0] != "#"):
        labels.append(int(digit))
        paths = [[[*map(float, p.split(","))] for p in one.split()] for one in strokes.split("/")]
        pieces = [torch.tensor([[a, b] for a, b in pairwise([s[0], *s])]) for s in paths]
        start, end = torch.cat(pieces).unbind(1)  # (P, 2)
        ink.append(paint(start[None], end[None], torch.full((1, len(start)), PEN), 16))
    pixels = (torch.stack(ink) * INK).round().byte()
    return ImageDataset(pixels, torch.tensor(labels), DIGITS, white=INK, preprocess=as_stored(16))


def photo_crops(count: int, seed: int = 0) -> dict[str, Tensor]:
    """Small parts of three photos, without labels: scikit-learn's two, and Grace Hopper.

    Returns:
        For each photo `count` crops of 96×96 pixels at random places, which may overlap, made
        smaller: (count, 3, 32, 32), from -1 to 1. The same seed draws the same.
    """
    from sklearn.datasets import load_sample_images

    check_sizes(count=count)
    names, stored = ("temple", "flower"), load_sample_images().images
    photos = {n: torch.tensor(p).movedim(2, 0) / 255 for n, p in zip(names, stored, strict=True)}
    photos["Grace Hopper"] = load_image(sample_photo())
    generator, found = torch.Generator().manual_seed(seed), {}
    for name, photo in photos.items():
        cut = []
        for _ in range(count):
            top, left = (
                int(torch.randint(side - CROP, (), generator=generator)) for side in photo.shape[1:]
            )
            cut.append(photo[:, top : top + CROP, left : left + CROP])
        found[name] = 2 * F.avg_pool2d(torch.stack(cut), CROP // 32) - 1
    return found


def openml(name: str, data_home: str | Path | None = None) -> tuple[ImageDataset, ImageDataset]:
    """A larger public set, one of `OPENML`, in a train part and the usual held-out 10,000.

    Images (n, C, H, W), from -1 to 1. The first call downloads it and reads its text, which takes
    minutes; both results are kept in data_home, by default scikit-learn's ~/scikit_learn_data.

    Raises:
        ValueError: an unknown name, or the folder cannot be written to.
        ConnectionError: it is not kept yet, and openml.org cannot be reached.
    """
    from sklearn.datasets import fetch_openml, get_data_home

    if name not in OPENML:
        raise ValueError(f"no data set {name!r}; there are {', '.join(OPENML)}")
    number, shape, classes = OPENML[name]
    home = Path(get_data_home(data_home))
    kept = home / "vit_steps" / f"{name}.npz"
    if not kept.exists():
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "A network error")  # it tries four times
                how: Any = dict(data_home=home, as_frame=False, parser="liac-arff")
                bunch: Any = fetch_openml(data_id=number, **how)
        except (URLError, TimeoutError, ConnectionError) as error:
            raise ConnectionError(
                f"{name} is not in {home} and openml.org cannot be reached ({error}); call this "
                "once with a network, or take vit_steps.training.data.digits(), which needs none"
            ) from error
        kept.parent.mkdir(parents=True, exist_ok=True)
        archive = BytesIO()
        np.savez(archive, images=bunch.data.astype(np.uint8), labels=bunch.target.astype(np.int64))
        write_whole(kept, archive.getvalue())
    with np.load(kept) as arrays:
        pixels = torch.from_numpy(arrays["images"]).view(-1, *shape)
        labels, how = torch.from_numpy(arrays["labels"]), as_stored(shape[1], shape[0])
        whole = ImageDataset(pixels, labels, classes, preprocess=how)
    return whole.part(slice(-HELD_OUT)), whole.part(slice(-HELD_OUT, None))


def load_data(
    source: str,
    fraction: float = 0.2,
    seed: int = 0,
    size: int | tuple[int, int] = 64,
    count: int = 100_000,
    val_fraction: float = 0.1,
    preprocess: Preprocess | None = None,
) -> Parts:
    """A data set by what stands after --data on the command line: (train, val, test).

    Args:
        source: one of `SOURCES`; ValueError for another. "drawn" is "scattered" with as many drawn
            digits more to train on.
        fraction, seed: of the split, for digits and a folder; the seed draws scattered ones too.
        size, preprocess: of a folder's pictures, see `folder`.
        count: of scattered digits to train on (of fewer, a model learns the canvases by heart); a
            fiftieth as many are held out.
        val_fraction: the share of train, class by class, that becomes val; with 0 val is None. A
            folder that has its own val keeps it.
    """
    check_fraction(val_fraction=val_fraction)
    kind, _, rest = source.partition(":")
    if kind == "folder" and rest:
        return folder(rest, size, fraction, seed, val_fraction, preprocess=preprocess)
    if source == "digits":
        train, test = digits(fraction, seed)
    elif source in ("scattered", "drawn"):
        train, test = scattered(count, seed), scattered(max(count // 50, 1), seed, held_out=True)
        if source == "drawn":
            pen = drawn(count, seed)
            both = torch.cat([train.pixels, pen.pixels]), torch.cat([train.labels, pen.labels])
            train = replace(pen, pixels=both[0], labels=both[1])
    elif kind == "openml" and rest:
        train, test = openml(rest)
    else:
        raise ValueError(f"{source!r}: give {SOURCES}")
    val = None
    if val_fraction:
        train, val = split(train, val_fraction, seed)
    return Parts(train, val, test)
