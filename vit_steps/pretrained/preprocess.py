"""How a checkpoint wants its pictures, and where that is written."""

from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ..images import load_image, normalize
from ..inputs import as_pair, check_images
from ..vit import ViTConfig

IMAGENET: dict[str, Any] = dict(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
RESAMPLING = {2: "bilinear", 3: "bicubic"}  # Pillow's numbers, which Hugging Face's files use
# DeiT and DINO on the hub: their width, patch, image and classes (None: no head). The files stored
# beside them do not all say how they were trained: ImageNet's mean and std, the middle cut out.
DEIT_AND_DINO = {
    "deit-tiny-patch16-224": (192, 16, 224, 1000),
    "deit-small-patch16-224": (384, 16, 224, 1000),
    "deit-base-patch16-224": (768, 16, 224, 1000),
    "deit-base-patch16-384": (768, 16, 384, 1000),
    "dino-vits8": (384, 8, 224, None),
    "dino-vits16": (384, 16, 224, None),
    "dino-vitb8": (768, 8, 224, None),
    "dino-vitb16": (768, 16, 224, None),
}


@dataclass(frozen=True)
class Preprocess:
    """How a checkpoint wants its pictures. Calling it makes the batch from a picture.

    Args:
        size: (height, width) that goes into the model, in pixels.
        shorter_side: resize the picture's shorter side to this and cut `size` from the middle;
            None resizes the whole picture straight to `size`, whatever its proportions.
        interpolation: "bilinear" or "bicubic", both antialiased.
        mean, std: of each channel, for pixels from 0 to 1.

    Raises:
        ValueError: an unknown interpolation, or a shorter side from which `size` cannot be cut.
    """

    size: tuple[int, int] = (224, 224)
    shorter_side: int | None = None
    interpolation: str = "bilinear"
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)

    def __post_init__(self):
        as_pair(self.size, "size")
        if self.interpolation not in RESAMPLING.values():
            known = " or ".join(f'"{name}"' for name in RESAMPLING.values())
            raise ValueError(f"interpolation is {self.interpolation!r}; give {known}")
        if self.shorter_side is not None and self.shorter_side < max(self.size):
            raise ValueError(
                f"shorter_side is {self.shorter_side}: {self.size[0]}×{self.size[1]} pixels "
                "cannot be cut from it; make it larger, or None"
            )
        values = (*self.mean, *self.std)
        numbers = all(isinstance(v, (int, float)) and isfinite(v) for v in values)
        if not numbers or len(self.mean) != len(self.std) or not all(self.std):
            raise ValueError(
                f"mean is {self.mean}, std is {self.std}; give a number for each channel, and no "
                "std of 0"
            )

    def __call__(self, picture: str | Path | Tensor) -> Tensor:
        """Turn a picture's path, or a tensor (C, H, W) from 0 to 1, into a batch (1, C, H, W).

        Raises:
            ValueError: not a picture that `vit_steps.load_image` can open.
        """
        images = picture if isinstance(picture, Tensor) else load_image(picture, size=None)
        images = images[None]
        check_images(images, channels=len(self.mean))
        height, width = target = as_pair(self.size)
        old_height, old_width = images.shape[2:]
        if self.shorter_side is not None:
            scale = self.shorter_side / min(old_height, old_width)
            target = round(old_height * scale), round(old_width * scale)
        options: Any = dict(mode=self.interpolation, antialias=True)
        images = F.interpolate(images, size=target, **options).clamp(0, 1)  # bicubic overshoots
        top, left = (target[0] - height) // 2, (target[1] - width) // 2
        images = images[:, :, top : top + height, left : left + width]
        mean, std = map(torch.tensor, (self.mean, self.std))
        return normalize(images, mean, std)  # pyright: ignore[reportArgumentType]


def read_preprocess(
    source: str,
    layout: str,
    config: ViTConfig,
    settings: dict,
    pictures: dict,
    corrected: bool = False,
) -> Preprocess:
    """How the checkpoint wants its pictures: as the files beside it say, else as its layout does.

    A stored preprocessor_config.json is trusted, but for the DeiT and DINO models that
    `is_deit_or_dino` knows (`corrected`). Without one: Google's and Hugging Face's are resized
    straight to the size and brought to -1…1; the others have their shorter side resized (256 for
    224, by bicubic interpolation, torchvision's by bilinear), the middle cut out, and ImageNet's
    mean and std taken off. timm's hub models say their own in config.json (pretrained_cfg).

    Raises:
        ValueError: the files beside it say what cannot be followed.
    """
    size = as_pair(config.image_size)
    if config.in_channels != 3:
        return Preprocess(size, mean=(0.5,) * config.in_channels, std=(0.5,) * config.in_channels)
    cropped: Any = dict(size=size, shorter_side=max(size) * 256 // 224)
    if corrected:
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


def is_deit_or_dino(source: str, folder: Path, config: ViTConfig, classes: int | None) -> bool:
    """Whether that is one of the hub's DeiT or DINO models, as they were published.

    Nothing in their files says it: the same config.json, shapes and preprocessor_config.json belong
    to Google's models, and to DeiTs that were trained further on pictures prepared as that file
    says. So the name tells: the hub's id, or a folder's, be it a clone (deit-tiny-patch16-224) or
    huggingface_hub's own (models--facebook--deit-tiny-patch16-224/snapshots/…). A folder's name is
    believed only if width, patch, image and number of classes are those of the published model.

    Args:
        source: what `load` was given.
        folder: where the weights are.
        config: the model's.
        classes: of the head in the file; None if it has none.
    """
    owner, _, name = source.rpartition("/")
    if owner == "facebook" and name in DEIT_AND_DINO and not Path(source).exists():
        return True
    name = folder.absolute().name
    if folder.absolute().parent.name == "snapshots":  # huggingface_hub's own
        name = folder.absolute().parents[1].name.removeprefix("models--facebook--")
    found = (config.embed_dim, config.patch_size, config.image_size, classes)
    return found == DEIT_AND_DINO.get(name)


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
