"""Lesson 00: any picture, opened safely, becomes a tensor, and a tensor a picture again."""

import os
import re
import warnings
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor
from torch.nn import functional as F

from .inputs import as_pair, check_axes, check_choice, check_images, check_sizes

# Formats that are read without running another program (EPS would start Ghostscript).
FORMATS = ("AVIF", "BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
LARGE = 2_000_000  # pixels; a JPEG of more is decoded at a fraction, in a fraction of the time
LUMA = (0.299, 0.587, 0.114)  # how bright red, green and blue are (ITU-R BT.601)
MEAN = STD = 0.5  # maps 0…1 to -1…1, as the published ViT-B/16 was trained


def sample_photo() -> Path:
    """Give matplotlib's photo of Grace Hopper: 600 × 512 pixels, in the public domain."""
    from matplotlib import cbook

    return Path(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False))


def load_image(path: str | Path, size: int | tuple[int, int] | None = 224) -> Tensor:
    """Open a picture file as (3, H, W), RGB from 0 to 1, cropped to its centre and resized.

    The file is in one of `FORMATS`, or HEIC where pillow-heif is installed, of at most
    `PIL.Image.MAX_IMAGE_PIXELS`; EXIF data turns it, transparency is laid on white, an animation
    gives its first frame. `size` is a square's, or (height, width); None keeps the picture's own.
    """
    if size is None:
        return to_tensor(decode(path))
    height, width = as_pair(size, "size")
    picture = decode(path, max(height, width))
    return to_tensor(ImageOps.fit(picture, (width, height), Image.Resampling.BICUBIC))


def to_tensor(picture: Image.Image) -> Tensor:
    """Pillow's picture in 8-bit RGB as (3, H, W), floats from 0 to 1."""
    return torch.from_numpy(np.array(picture)).permute(2, 0, 1).float().div_(255)


def as_path(path: str | Path) -> Path:
    """Give the path of a file or folder here; ValueError for an address, of which no Path holds."""
    if re.match(r"\w\w+:/", str(path)):
        raise ValueError(f"{path} is an address; save what it leads to, and give that file")
    return Path(path).expanduser()


def decode(path: str | Path, side: int | None = None) -> Image.Image:
    """Read a file in 8-bit RGB; of a large JPEG a smaller picture, good for sides up to `side`."""
    path = as_path(path)
    if not os.path.isfile(path):  # Path.is_file would raise where a name is too long
        raise ValueError(f"{path} is not there, or is a folder; give a file")
    try:
        with warnings.catch_warnings(action="ignore"):  # of harmless oddities inside the file
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=formats(path)) as file:
                if side is not None and file.width * file.height > LARGE:
                    # At 1/2, 1/4 or 1/8, but half as large again as wanted; other formats cannot.
                    file.draft(None, (round(1.5 * side), round(1.5 * side)))
                # Pillow opens 16-bit PGM as 32 bits wide.
                return to_rgb(ImageOps.exif_transpose(file), of_16_bits=file.format == "PPM")
    except Image.UnidentifiedImageError:
        problem = f"is not a picture in a known format ({', '.join(FORMATS)})"
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        problem = f"has more than {Image.MAX_IMAGE_PIXELS} pixels; make it smaller first"
    except Exception as error:  # decoders raise nearly anything on a broken file
        problem = f"cannot be read as a picture: {error}"
    raise ValueError(f"{path} {problem}")


def formats(path: Path) -> tuple[str, ...]:
    """Give the formats to try on a file: `FORMATS`, or HEIF alone, as iPhones store photos."""
    with path.open("rb") as file:
        start = file.read(64)
    if start[4:8] != b"ftyp" or b"hei" not in start:
        return FORMATS
    try:
        from pillow_heif import register_heif_opener  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ValueError("it is HEIC; `pip install pillow-heif`, or save it as JPEG") from None
    register_heif_opener()
    return ("HEIF",)


def to_rgb(picture: Image.Image, of_16_bits: bool = False) -> Image.Image:
    """Turn any mode into 8-bit RGB, transparency laid on white; ValueError for 32 bits."""
    if picture.mode.startswith("I;16") or (picture.mode == "I" and of_16_bits):
        values = np.asarray(picture)
        if 0 < (high := values.max()) < 4096:
            problem = f"its 16-bit pixels go up to {high} alone, and nothing says which is white"
            raise ValueError(f"{problem}; scale them to 65535, or save it with 8 bits")
        grey = (values // 257).astype(np.uint8)
        grey[values == picture.info.get("transparency", -1)] = 255
        picture = Image.fromarray(grey)
    elif picture.mode in ("I", "F"):
        raise ValueError("its pixels hold up to 32 bits, and nothing says which is white")
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        white = Image.new("RGB", picture.size, "white")
        white.paste(picture, mask=picture.getchannel("A"))
        return white
    return picture.convert("RGB")


def normalize(images: Tensor, mean: Any = MEAN, std: Any = STD) -> Tensor:
    """Shift and scale each channel: (images - mean) / std.

    Images are (C, H, W) or (B, C, H, W), floats; mean and std one number, or one for each channel.
    """
    return (images - per_channel(images, mean)) / per_channel(images, std)


def denormalize(images: Tensor, mean: Any = MEAN, std: Any = STD) -> Tensor:
    """Undo `normalize`, ready to be shown: images · std + mean."""
    return images * per_channel(images, std) + per_channel(images, mean)


def per_channel(images: Tensor, values) -> Tensor:
    """Turn the values into (C, 1, 1), to meet the images' channels, or one into (1, 1, 1)."""
    batch = images[None] if isinstance(images, Tensor) and images.ndim == 3 else images
    check_images(batch)
    channels = batch.shape[1]
    check_images(batch, channels)  # any number of them, but in floats
    values = torch.as_tensor(values, dtype=images.dtype, device=images.device)
    if values.ndim and values.shape != (channels,):
        hint = f"give one number, or one for each of {channels} channels"
        raise ValueError(f"{values.tolist()}: {hint}")
    return values.reshape(-1, 1, 1)


@dataclass(frozen=True)
class Preprocess:
    """How a model wants its pictures, as it was trained. Calling it makes the batch from one.

    The picture's shorter side is resized to `shorter_side`, or to more, to cover `size`, of which
    then the middle is cut out; without `shorter_side` the whole picture is stretched to `size`.
    """

    size: tuple[int, int] = (224, 224)  # (height, width), in pixels
    shorter_side: int | None = None
    interpolation: str = "bilinear"  # or "bicubic"; both are antialiased
    mean: tuple[float, ...] = (MEAN,) * 3  # for pixels from 0 to 1; a single one for grey pictures
    std: tuple[float, ...] = (STD,) * 3
    ink: bool = False  # whether 1 is dark, as sets of handwriting hold it: a negative is made

    def __post_init__(self):
        object.__setattr__(self, "size", as_pair(self.size, "size"))
        check_choice("interpolation", self.interpolation, "bilinear", "bicubic")
        check_choice("ink", self.ink, True, False)
        check_sizes(shorter_side=1 if self.shorter_side is None else self.shorter_side)
        mean, std = self.mean, self.std
        numbers = all(isinstance(v, (int, float)) and isfinite(v) for v in (*mean, *std))
        if not numbers or len(mean) != len(std) or not mean or min(std) <= 0:
            hint = "give a number for each channel, and each std above 0"
            raise ValueError(f"mean is {mean}, std is {std}; {hint}")
        object.__setattr__(self, "mean", tuple(mean))  # JSON has no tuples
        object.__setattr__(self, "std", tuple(std))

    def pixels(self, picture: str | Path | Image.Image | Tensor) -> Tensor:
        """Turn a picture, its path, or a tensor (C, H, W) from 0 to 1 into such one of `size`."""
        height, width = self.size
        if isinstance(picture, (str, Path)):
            picture = decode(picture, max(height, width, self.shorter_side or 0))
        if isinstance(picture, Image.Image):
            picture = to_tensor(to_rgb(ImageOps.exif_transpose(picture)))
        check_axes("picture", picture, "C H W")
        images, channels = picture[None], len(self.mean)
        if channels == 1 and len(picture) == 3:
            images = (images * per_channel(images, LUMA)).sum(dim=1, keepdim=True)
        check_images(images, channels)
        low, high = images.aminmax()
        if not (low >= 0 and high <= 1 + 1e-5):  # NaN too
            hint = "give them from 0 to 1 (bytes / 255), not normalised"
            raise ValueError(f"pixels run from {low:g} to {high:g}; {hint}")
        rows, columns = height, width
        if self.shorter_side is not None:
            old = images.shape[2:]
            pairs = (self.shorter_side, min(old)), (height, old[0]), (width, old[1])
            to, of = max(pairs, key=lambda pair: pair[0] / pair[1])  # the last two to cover `size`
            rows, columns = old[0] * to // of, old[1] * to // of
        images = F.interpolate(images, (rows, columns), mode=self.interpolation, antialias=True)
        top, left = (rows - height) // 2, (columns - width) // 2
        image = images[0, :, top : top + height, left : left + width]
        image = image.clamp(0, 1)  # bicubic overshoots
        return 1 - image if self.ink else image

    def __call__(self, picture: str | Path | Image.Image | Tensor) -> Tensor:
        """Turn a picture, as `pixels` takes it, into a normalised batch (1, C, H, W)."""
        return normalize(self.pixels(picture), self.mean, self.std)[None]
