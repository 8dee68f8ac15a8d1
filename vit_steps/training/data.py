"""Lesson 07: labelled pictures to learn from, some of each set held out, and a recipe for each."""

from pathlib import Path
from typing import Any

import torch

from ..images import Preprocess
from ..inputs import check_choice, check_fraction
from ..vit import ViT, ViTConfig
from .augment import augment_digits, augment_photos
from .dataset import ImageDataset, as_stored, split
from .folders import Parts, folder

SOURCES = "digits or folder:PATH"
DIGITS = tuple("0123456789")
INK = 16  # the byte of the darkest ink in scikit-learn's digits
AUGMENT = {"none": None, "digits": augment_digits, "photos": augment_photos}
MODEL = ("patch_size", "embed_dim", "depth", "num_heads", "dropout")  # what goes to `ViTConfig`
# On a laptop's CPU; the rest is what `fit` does by itself. What a model that goes on from weights
# knows already is not to be shaken off.
RECIPES: dict[str, dict[str, Any]] = {
    "digits": dict(patch_size=2, embed_dim=48, depth=3, num_heads=4, epochs=30, augment="digits"),
    "folder": dict(patch_size=8, embed_dim=96, depth=4, num_heads=4, epochs=40, augment="photos"),
    "from": dict(lr=2e-4, epochs=10, augment="photos"),
}


def digits(fraction: float = 0.2, seed: int = 0) -> tuple[ImageDataset, ImageDataset]:
    """Load the 1,797 handwritten digits that scikit-learn ships, split as the seed draws it.

    Images (n, 1, 8, 8), from -1 (paper) to 1 (ink); the share `fraction` of each digit is held out.
    Source: UCI, "Optical Recognition of Handwritten Digits" (Alpaydin and Kaynak 1998).
    """
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    pixels = torch.from_numpy(images).byte().view(-1, 1, 8, 8)
    labels = torch.from_numpy(labels).long()
    data = ImageDataset(pixels, labels, DIGITS, white=INK, preprocess=as_stored(8))
    return split(data, fraction, seed)


def load_data(
    source: str,
    fraction: float = 0.2,
    seed: int = 0,
    size: int | tuple[int, int] = 64,
    val_fraction: float = 0.1,
    preprocess: Preprocess | None = None,
    table: str | Path | None = None,
) -> Parts:
    """Load (train, val, test) by what stands after --data on the command line, one of `SOURCES`.

    The share `fraction` is to test on, and `val_fraction` of what is left, class by class, becomes
    val (0: none). For the other options see `folder`.
    """
    check_fraction(val_fraction=val_fraction)
    if source.startswith("folder:") and source != "folder:":
        path = source.removeprefix("folder:")
        return folder(path, size, fraction, seed, val_fraction, preprocess, table)
    if table is not None:
        raise ValueError(f"labels in {table} are for a folder, not for {source}")
    if source != "digits":
        raise ValueError(f"{source!r}: give {SOURCES}")
    train, test = digits(fraction, seed)
    train, val = split(train, val_fraction, seed) if val_fraction else (train, None)
    return Parts(train, val, test)


def settings(source: str, changes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divide a recipe, changed, into the sizes of a new model and the options of `fit`."""
    kind = source.partition(":")[0]
    if kind not in RECIPES:
        raise ValueError(f"{source!r}: give {SOURCES}")
    options = {"seed": 0, **RECIPES[kind], **changes}
    sizes = {name: options.pop(name) for name in MODEL if name in options}
    check_choice("augment", options["augment"], *AUGMENT)
    return sizes, options | {"augment": AUGMENT[options["augment"]]}


def recipe(source: str, train: ImageDataset, **changes: Any) -> tuple[ViT, dict[str, Any]]:
    """Make an untrained ViT that suits a data set, and the options with which `fit` trains it well.

    The source is as in `load_data`; the changes are sizes of the model or options of `fit`, an
    augmentation by its name in `AUGMENT`; "seed" is that of the first weights too. After
    `train, val, test = load_data("digits")` and `model, options = recipe("digits", train)`,
    `fit(model, train, val, **options)` comes to the weights of `python -m vit_steps.training`.
    """
    sizes, options = settings(source, changes)
    channels, height, width = train.shape
    sizes |= dict(image_size=(height, width), in_channels=channels, num_classes=len(train.classes))
    torch.manual_seed(options["seed"])
    return ViT(ViTConfig(**sizes)), options
