"""Lesson 07: labelled pictures to learn from, each set in two parts: to train on and held out."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from .images import FORMATS, load_image, normalize
from .inputs import as_pair, check_flag, check_fraction, check_images, check_sizes, check_tensor

DIGIT = 8  # side of scikit-learn's digits, in pixels
FRAGMENT = 3  # side of the pieces of other digits that scattered ones lie among
HELD_OUT = 10_000  # the last ones of each set of OpenML's are the usual test set
CLOTHES = "T-shirt/top trouser pullover dress coat sandal shirt sneaker bag ankle-boot"
THINGS = "airplane automobile bird cat deer dog frog horse ship truck"
OPENML = {  # OpenML's number, (C, H, W) of a row of its table, and the names of labels 0 to 9
    "Fashion-MNIST": (40996, (1, 28, 28), tuple(CLOTHES.split())),
    "MNIST": (554, (1, 28, 28), tuple("0123456789")),
    "CIFAR-10": (40927, (3, 32, 32), tuple(THINGS.split())),  # all reds, all greens, all blues
}


@dataclass(frozen=True, eq=False)
class Images:
    """Pictures with their labels. It checks itself.

    Args:
        images: (n, C, H, W), floats, normalised.
        labels: (n,), int64, each the number of a class.
        classes: the name of each class.
        places: (n, 2), int64, or None: row and column of each digit's top-left corner, in pixels,
            where that is known.

    Raises:
        TypeError: a value of the wrong kind.
        ValueError: no images, or shapes, labels and classes that do not fit together.
    """

    images: Tensor
    labels: Tensor
    classes: tuple[str, ...]
    places: Tensor | None = None

    def __post_init__(self):
        check_images(self.images)
        check_images(self.images, channels=self.images.shape[1])  # any number, but in floats
        if not isinstance(self.classes, tuple) or not all(isinstance(c, str) for c in self.classes):
            raise TypeError(f"classes is {self.classes!r}; give a tuple of names")
        wanted = {"labels": (len(self),), "places": (len(self), 2)}
        for name, shape in wanted.items():
            value = getattr(self, name)
            if name == "places" and value is None:
                continue
            check_tensor(**{name: value})
            if value.dtype != torch.int64:
                raise TypeError(f"{name} holds {value.dtype}; use {name}.long()")
            if value.shape != shape:
                raise ValueError(f"{name} is {tuple(value.shape)}; {len(self)} images need {shape}")
        low, high = self.labels.min().item(), self.labels.max().item()
        if low < 0 or high >= len(self.classes):
            raise ValueError(
                f"labels run from {low} to {high}; {len(self.classes)} classes have the numbers "
                f"0 to {len(self.classes) - 1}"
            )

    def __len__(self) -> int:
        return len(self.images)


def split(data: Images, fraction: float, seed: int) -> tuple[Images, Images]:
    """Hold out the same share of each class, at least one picture, and leave at least one.

    Args:
        data: what to split.
        fraction: the share to hold out, above 0 and below 1.
        seed: the same seed draws the same pictures.

    Returns:
        The train part and the held-out part, each in the order of the data.

    Raises:
        TypeError: the fraction is not a number.
        ValueError: a fraction outside (0, 1), or a class of fewer than 2 pictures, named.
    """
    check_fraction(fraction=fraction)
    if fraction == 0:
        raise ValueError("fraction is 0: nothing would be held out; give a share such as 0.2")
    generator = torch.Generator().manual_seed(seed)
    held = torch.zeros(len(data), dtype=torch.bool)
    for label, name in enumerate(data.classes):
        members = (data.labels == label).nonzero()[:, 0]
        n = len(members)
        if n < 2:
            raise ValueError(
                f"class {name!r} has {n} picture{'s' * (n != 1)}; give it at least 2, one to train "
                "on and one to hold out"
            )
        count = min(max(round(n * fraction), 1), n - 1)
        held[members[torch.randperm(n, generator=generator)[:count]]] = True
    train, test = (Images(data.images[m], data.labels[m], data.classes) for m in (~held, held))
    return train, test


def digits(fraction: float = 0.2, seed: int = 0) -> tuple[Images, Images]:
    """The 1,797 handwritten digits that scikit-learn ships, of 8×8 pixels, split by class.

    Args:
        fraction: the share of each digit to hold out.
        seed: the same seed draws the same split.

    Returns:
        The train part and the held-out part; images (n, 1, 8, 8), from -1 (paper) to 1 (ink).
        Source: UCI, "Optical Recognition of Handwritten Digits" (Alpaydin and Kaynak 1998).
    """
    from sklearn.datasets import load_digits

    bunch: Any = load_digits()
    images = normalize(torch.from_numpy(bunch.images).float()[:, None] / 16)  # ink counts to 16
    labels = torch.from_numpy(bunch.target).long()
    return split(Images(images, labels, tuple("0123456789")), fraction, seed)


def scattered(
    count: int, seed: int = 0, side: int = 16, fragments: int = 6, held_out: bool = False
) -> Images:
    """Digits placed at random on a larger canvas, among pieces of others: where to look is known.

    Every fifth place on the canvas, a knight's move apart, is kept for the held-out digits: so
    neither the digit nor its place was there to train on. The digits are split as `digits()` does,
    whatever the seed.

    Args:
        count: how many canvases.
        seed: the same seed draws the same canvases.
        side: of the canvas, in pixels.
        fragments: how many pieces of 3×3 pixels lie around each digit, never on it. They are
            drawn without regard to its class, so they tell nothing about it.
        held_out: draw the held-out digits, at the held-out places.

    Returns:
        Images (count, 1, side, side), from -1 to 1, with `places`.

    Raises:
        TypeError: count or side is not a whole number, held_out no flag.
        ValueError: a canvas too small for a digit and its fragments, or no whole number of them.
    """
    check_sizes(count=count, side=side)
    if not isinstance(fragments, int) or fragments < 0:
        raise ValueError(f"fragments is {fragments!r}; give a whole number, 0 for none")
    check_flag(held_out=held_out)
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

    canvas = torch.full((count, side, side), -1.0)
    canvas[window(places, DIGIT)] = source.images[chosen, 0]
    for _ in range(fragments):
        corner = draw(side - FRAGMENT + 1, count, 2)
        # Those that would touch the digit are drawn again.
        while (hit := (corner > places - FRAGMENT) & (corner < places + DIGIT)).all(dim=1).any():
            again = hit.all(dim=1)
            corner[again] = draw(side - FRAGMENT + 1, int(again.sum()), 2)
        cut = window(draw(DIGIT - FRAGMENT + 1, count, 2), FRAGMENT)
        piece = source.images[draw(len(source), count), 0][cut]
        there = window(corner, FRAGMENT)
        canvas[there] = canvas[there].maximum(piece)  # where fragments meet, the darker ink
    return Images(canvas[:, None], source.labels[chosen], source.classes, places)


def window(corners: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """The index of a square in each of n pictures (n, H, W), from its top-left corner (n, 2)."""
    steps = torch.arange(size)
    rows = corners[:, 0, None, None] + steps[:, None]  # (n, size, 1)
    columns = corners[:, 1, None, None] + steps  # (n, 1, size)
    return torch.arange(len(corners))[:, None, None], rows, columns


def folder(
    path: str | Path, size: int | tuple[int, int] = 224, fraction: float = 0.2, seed: int = 0
) -> tuple[Images, Images]:
    """Your own pictures: one sub-folder a class, or the same inside path/train and path/test.

    Hidden files, and files whose ending is not a picture's, are passed over; a picture that
    cannot be read, or a folder inside a class, is named in a warning and skipped. All pictures are
    held in memory: at 224×224 each takes 0.6 MB, so 1,000 of them 0.6 GB, and twice that while
    they are split.

    Args:
        path: the folder.
        size: to crop and resize to, in pixels (`vit_steps.images.load_image` does it).
        fraction: the share of each class to hold out, where there are no folders train and test.
        seed: the same seed draws the same split.

    Returns:
        The train part and the held-out part; images (n, 3, H, W), from -1 to 1; the classes are
        the sub-folders' names, sorted.

    Raises:
        ValueError: no such folder, fewer than two classes, a class without (or, to be split, with
            fewer than 2) readable pictures, or other classes in test than in train.
    """
    path = Path(path)
    if not path.is_dir():
        raise ValueError(f"{path} is not a folder; give one that holds a sub-folder for each class")
    subs = subfolders(path)
    if {"train", "test"} <= set(subs):
        names = {part: subfolders(path / part) for part in ("train", "test")}
        if names["train"] != names["test"]:
            odd = ", ".join(sorted(set(names["train"]) ^ set(names["test"])))
            raise ValueError(f"{path}: train and test hold other classes; only one has {odd}")
        return read(path / "train", size), read(path / "test", size)
    return split(read(path, size), fraction, seed)


def subfolders(path: Path) -> list[str]:
    """The names of the folders in a folder, sorted; not hidden ones, nor such as __MACOSX."""
    return sorted(
        p.name for p in path.iterdir() if p.is_dir() and not p.name.startswith((".", "__"))
    )


def read(path: Path, size: int | tuple[int, int]) -> Images:
    """Read every picture of a folder that holds a sub-folder for each class."""
    classes = tuple(subfolders(path))
    if len(classes) < 2:
        found = f"only the sub-folder {classes[0]!r}" if classes else "no sub-folders"
        raise ValueError(
            f"{path} holds {found}; give it a sub-folder for each of 2 classes or more"
        )
    endings = {end for end, kind in Image.registered_extensions().items() if kind in FORMATS}
    endings |= {".heic", ".heif"}  # of phones: pictures too, so say that they cannot be read
    files = [
        (file, label)
        for label, name in enumerate(classes)
        for file in sorted((path / name).iterdir())
        if file.suffix.lower() in endings and not file.name.startswith(".") and file.is_file()
    ]
    for name in classes:
        for inner in subfolders(path / name):
            warnings.warn(
                f"{path / name / inner} is a folder inside a class; skipped", stacklevel=3
            )
    height, width = as_pair(size, "size")
    images, labels = torch.empty(len(files), 3, height, width), []
    for file, label in files:
        try:
            images[len(labels)] = normalize(load_image(file, size))
        except ValueError as error:
            warnings.warn(f"{error}; skipped", stacklevel=3)
        else:
            labels.append(label)
    for label, name in enumerate(classes):
        if label not in labels:
            raise ValueError(
                f"{path / name} holds no picture that can be read; each sub-folder is taken for a "
                "class (unless there are two, train and test): put pictures in it, or take it away"
            )
    return Images(images[: len(labels)], torch.tensor(labels), classes)


def openml(name: str, data_home: str | Path | None = None) -> tuple[Images, Images]:
    """A larger public set by name, from openml.org: "Fashion-MNIST", "MNIST" or "CIFAR-10".

    The first call downloads it and reads its text, which takes minutes; both results are kept.

    Args:
        name: one of `OPENML`.
        data_home: the folder to keep it in; None is scikit-learn's own, ~/scikit_learn_data.

    Returns:
        The train part and the held-out part, which is the usual one, the last 10,000; images
        (n, C, H, W), from -1 to 1.

    Raises:
        ValueError: an unknown name.
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
                bunch: Any = fetch_openml(
                    data_id=number, data_home=home, as_frame=False, parser="liac-arff"
                )
        except (URLError, TimeoutError, ConnectionError) as error:
            raise ConnectionError(
                f"{name} is not in {home} and openml.org cannot be reached ({error}); call this "
                "once with a network, or take vit_steps.data.digits(), which needs none"
            ) from error
        kept.parent.mkdir(parents=True, exist_ok=True)
        half = kept.with_suffix(".half.npz")  # renamed when whole
        np.savez(half, images=bunch.data.astype(np.uint8), labels=bunch.target.astype(np.int64))
        half.replace(kept)
    with np.load(kept) as arrays:
        images = torch.from_numpy(arrays["images"]).view(-1, *shape)
        labels = torch.from_numpy(arrays["labels"])
    parts = slice(None, -HELD_OUT), slice(-HELD_OUT, None)
    train, test = (
        Images(normalize(images[part].float().div_(255)), labels[part], classes) for part in parts
    )
    return train, test


def load(
    source: str,
    fraction: float = 0.2,
    seed: int = 0,
    size: int | tuple[int, int] = 224,
    count: int = 100_000,
) -> tuple[Images, Images]:
    """A data set by what stands after --data on the command line.

    Args:
        source: "digits", "scattered", "folder:PATH" or "openml:NAME".
        fraction, seed: of the split, for digits and a folder; the seed draws scattered ones too.
        size: of a folder's pictures, in pixels.
        count: of scattered digits to train on (of fewer, a model learns the canvases by heart); a
            fiftieth as many are held out.

    Returns:
        The train part and the held-out part.

    Raises:
        ValueError: an unknown source, or what the source itself raises.
    """
    kind, _, rest = source.partition(":")
    if source == "digits":
        return digits(fraction, seed)
    if source == "scattered":
        return scattered(count, seed), scattered(max(count // 50, 1), seed, held_out=True)
    if kind == "folder" and rest:
        return folder(rest, size, fraction, seed)
    if kind == "openml" and rest:
        return openml(rest)
    raise ValueError(f'{source!r}: give "digits", "scattered", "folder:PATH" or "openml:NAME"')
