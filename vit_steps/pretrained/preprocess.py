"""How a checkpoint wants its pictures, and where that is written."""

from pathlib import Path
from typing import Any

from ..images import Preprocess
from ..inputs import as_pair
from ..vit import ViTConfig

IMAGENET: dict[str, Any] = dict(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
RESAMPLING = {2: "bilinear", 3: "bicubic"}  # Pillow's numbers, which Hugging Face's files use
# On the hub the files beside these do not all say how they were trained: as torchvision's are.
DEIT_AND_DINO = (
    "facebook/deit-tiny-patch16-224",
    "facebook/deit-small-patch16-224",
    "facebook/deit-base-patch16-224",
    "facebook/deit-base-patch16-384",
    "facebook/dino-vits8",
    "facebook/dino-vits16",
    "facebook/dino-vitb8",
    "facebook/dino-vitb16",
)


def read_preprocess(
    source: str, layout: str, config: ViTConfig, settings: dict, pictures: dict
) -> Preprocess:
    """How the checkpoint wants its pictures: as the files beside it say, else as its layout does.

    A stored preprocessor_config.json is trusted, but for the hub's `DEIT_AND_DINO`. Without one:
    Google's and Hugging Face's are resized straight to the size and brought to -1…1; the others
    have their shorter side resized (256 for 224, by bicubic interpolation, torchvision's by
    bilinear), the middle cut out, and ImageNet's mean and std taken off. timm's hub models say
    their own in config.json (pretrained_cfg).

    ValueError where the files beside it say what cannot be followed.
    """
    size = as_pair(config.image_size)
    if config.in_channels != 3:
        return Preprocess(size, mean=(0.5,) * config.in_channels, std=(0.5,) * config.in_channels)
    cropped: Any = dict(size=size, shorter_side=max(size) * 256 // 224)
    if source in DEIT_AND_DINO and not Path(source).exists():
        return Preprocess(**cropped, interpolation="bicubic", **IMAGENET)
    try:
        if pictures:
            return from_hugging_face(size, pictures)
        if "pretrained_cfg" in settings:
            return from_timm(size, settings["pretrained_cfg"])
        if "architecture" in settings and "mean" in settings:  # timm's older form
            return from_timm(size, settings)
    except ValueError as error:
        raise ValueError(f"{source}: its preprocessing: {error}") from error
    except (TypeError, KeyError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"{source}: its preprocessing cannot be read: {error!r}") from error
    if layout in ("Hugging Face", "Google"):
        return Preprocess(size)
    interpolation = "bilinear" if layout == "torchvision" else "bicubic"
    return Preprocess(**cropped, interpolation=interpolation, **IMAGENET)


def from_hugging_face(size: tuple[int, int], pictures: dict) -> Preprocess:
    """As preprocessor_config.json says; the size is the model's, which takes no other."""
    wanted, cut = pictures.get("size"), pictures.get("do_center_crop", False)
    if isinstance(wanted, dict):
        cut = cut or "shortest_edge" in wanted
        wanted = wanted.get("shortest_edge", wanted.get("height"))
    resample = pictures.get("resample", 2)
    mean, std = pictures.get("image_mean", (0.5,) * 3), pictures.get("image_std", (0.5,) * 3)
    if not pictures.get("do_normalize", True):
        mean, std = (0.0,) * 3, (1.0,) * 3
    return Preprocess(
        size,
        max(wanted, *size) if cut and wanted else None,
        RESAMPLING.get(resample, f"Pillow's number {resample}"),
        tuple(mean),
        tuple(std),
    )


def from_timm(size: tuple[int, int], pictures: dict) -> Preprocess:
    """As the pretrained_cfg in timm's config.json says."""
    side = int(max(size) / pictures.get("crop_pct", 1.0))
    return Preprocess(
        size, side, pictures["interpolation"], tuple(pictures["mean"]), tuple(pictures["std"])
    )
