"""Lesson 07: what suits each data set, for `fit` and for the command alike."""

from dataclasses import replace
from typing import Any

import torch

from ..images import Preprocess
from ..inputs import check_sizes
from ..vit import ViT, ViTConfig
from .augment import augment_digits, augment_photos
from .data import OPENML, SOURCES, as_stored
from .dataset import ImageDataset

AUGMENT = {"none": None, "digits": augment_digits, "photos": augment_photos}
MODEL = ("patch_size", "embed_dim", "depth", "num_heads", "dropout")  # what goes to `ViTConfig`
# On a laptop's CPU, for a model that starts anew. The rest is what `fit` does by itself.
RECIPES: dict[str, dict[str, Any]] = {
    "digits": dict(patch_size=2, embed_dim=48, depth=3, epochs=30, augment="digits"),
    "scattered": dict(patch_size=4, embed_dim=64, depth=4, epochs=6, augment="none"),
    "drawn": dict(patch_size=4, embed_dim=64, depth=4, epochs=8, augment="none"),
    "folder": dict(patch_size=8, embed_dim=96, depth=4, epochs=40, augment="photos"),
    "openml": dict(patch_size=4, embed_dim=64, depth=4, epochs=10, augment="photos"),
    "openml:MNIST": dict(patch_size=4, embed_dim=64, depth=4, epochs=10, augment="digits"),
}
# For one that is trained on from weights: what it knows already is not to be shaken off.
ONWARD = dict(epochs=10, lr=2e-4, augment="photos")


def settings(source: str, changes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The sizes of a new model for a data set, and the options of `fit`; see `recipe`."""
    found = RECIPES.get(source) or RECIPES.get(source.partition(":")[0])
    if found is None:
        raise ValueError(f"{source!r}: give {SOURCES}")
    chosen = dict(num_heads=4) | found | changes
    sizes = {name: chosen.pop(name) for name in MODEL if name in chosen}
    return sizes, completed(chosen)


def completed(options: dict[str, Any]) -> dict[str, Any]:
    """These options of `fit` with a seed, and with the augmentation of that name."""
    if (name := options["augment"]) not in AUGMENT:
        raise ValueError(f"augment is {name!r}; give {', '.join(AUGMENT)}")
    return dict(seed=0) | options | dict(augment=AUGMENT[name])


def recipe(source: str, train: ImageDataset, **changes: Any) -> tuple[ViT, dict[str, Any]]:
    """An untrained ViT that suits a data set, and the options with which `fit` trains it well.

    The command `python -m vit_steps.training` does the same, so this comes to the same weights:

        train, val, test = load_data("digits")
        model, options = recipe("digits", train)
        fit(model, train, val, **options)

    Args:
        source: as in `load_data`.
        train: tells the channels, the size and the number of classes.
        changes: in place of what the recipe says: sizes of the model, or options of `fit` (which
            refuses one that it has not); an augmentation by its name in `AUGMENT`; "seed" is that
            of the first weights too.

    Raises:
        ValueError: no such source or augmentation, or sizes that do not fit together.
    """
    sizes, options = settings(source, changes)
    channels, height, width = train.shape
    sizes |= dict(image_size=(height, width), in_channels=channels, num_classes=len(train.classes))
    torch.manual_seed(options["seed"])
    return ViT(ViTConfig(**sizes)), options


def preparation(source: str, size: int = 64, grey: bool = False) -> Preprocess:
    """How the pictures of a source are prepared; a folder's in this size, grey or in colours."""
    kind, _, name = source.partition(":")
    if kind == "folder":
        check_sizes(image_size=size)
        return replace(as_stored(size, 1 if grey else 3), ink=False)
    channels, side, _ = OPENML[name][1] if name in OPENML else (1, {"digits": 8}.get(kind, 16), 0)
    return as_stored(side, channels)
