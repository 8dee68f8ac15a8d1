"""What every module asks of its input, said where the learner stands.

Each function returns quietly or raises: a TypeError for a value of the wrong kind, a ValueError for
one that is out of its range or does not fit. The message says what came, what was expected, what to
do. All but `check_labels` look at types and shapes alone, not at a tensor's values, for which a GPU
would have to be waited.
"""

from math import isfinite, isqrt
from operator import index
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


def is_whole(number: Any) -> bool:
    """Whether that is one whole number, Python's or NumPy's; True and False do not count as one."""
    if isinstance(number, (bool, np.bool_)) or getattr(number, "ndim", 0):
        return False
    try:
        index(number)
    except TypeError:
        return False
    return True


def check_sizes(least: int = 1, /, **sizes: int) -> None:
    """Each named size must be a whole number of at least `least`."""
    for name, size in sizes.items():
        if not is_whole(size):
            raise TypeError(f"{name} is {size!r}, a {type(size).__name__}; give a whole number")
        if index(size) < least:
            raise ValueError(f"{name} is {size}; give a whole number of at least {least}")


def check_fraction(**fractions: float) -> None:
    """Each named fraction must be a number from 0 up to, not including, 1."""
    for name, value in fractions.items():
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise TypeError(f"{name} is {value!r}; give a number from 0 up to 1, such as 0.1")
        if not 0 <= value < 1:
            raise ValueError(f"{name} is {value}; give a number of at least 0 and below 1")


def check_choice(name: str, value: Any, *choices: Any) -> None:
    """The named value must be one of the choices."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise ValueError(f"{name} is {value!r}; give {' or '.join(map(repr, choices))}")


def as_pair(size: int | tuple[int, int], name: str = "image_size") -> tuple[int, int]:
    """Read a size as (height, width), a list of JSON too: 224 means (224, 224)."""
    if isinstance(size, (tuple, list)) and len(size) == 2:
        check_sizes(**{f"{name}[0]": size[0], f"{name}[1]": size[1]})
        return index(size[0]), index(size[1])
    if not is_whole(size):
        raise TypeError(f"{name} is {size!r}; give one whole number, or a pair (height, width)")
    check_sizes(**{name: size})
    return index(size), index(size)


def as_size(size: int | tuple[int, int]) -> int | tuple[int, int]:
    """Read a size as configs keep it: one number for a square, else (height, width)."""
    height, width = as_pair(size)
    return height if height == width else (height, width)


def mlp_width(embed_dim: int, mlp_ratio: float) -> int:
    """The MLP's hidden width, embed_dim · mlp_ratio, which must come out whole."""
    check_sizes(embed_dim=embed_dim)
    if not isinstance(mlp_ratio, (int, float)) or isinstance(mlp_ratio, bool):
        raise TypeError(f"mlp_ratio is {mlp_ratio!r}; give a number, such as 4.0")
    width = embed_dim * mlp_ratio
    # Floats do not hold every ratio exactly: 116 / 56 · 56 is a little off 116.
    if not isfinite(width) or round(width) < 1 or abs(width - round(width)) > 1e-6:
        raise ValueError(
            f"mlp_ratio {mlp_ratio} makes the MLP {width} wide with embed_dim {embed_dim}; "
            "choose one that gives a whole number of at least 1"
        )
    return round(width)


def check_heads(embed_dim: int, num_heads: int) -> None:
    """The embedding must divide into heads of equal width."""
    check_sizes(embed_dim=embed_dim, num_heads=num_heads)
    if embed_dim % num_heads:
        small = [h for h in range(1, isqrt(embed_dim) + 1) if embed_dim % h == 0]
        fits = [*small, *(embed_dim // h for h in small)]
        near = sorted(sorted(set(fits), key=lambda h: abs(h - num_heads))[:3])
        raise ValueError(
            f"embed_dim {embed_dim} does not divide into {num_heads} heads of equal width; "
            f"nearest head counts that do: {', '.join(map(str, near))}"
        )


def check_axes(name: str, value: Any, axes: str) -> None:
    """The named value must be a tensor with these axes, such as "B N D"; "" for any."""
    if isinstance(value, torch.fx.Proxy):
        raise TypeError(
            f"{name} is a Proxy of torch.fx.symbolic_trace, which has no shape to check; "
            "torch.export.export(model, (images,)).module() gives a torch.fx graph"
        )
    if not isinstance(value, Tensor):
        load = "; vit_steps.images.load_image makes one from a picture file"
        hint = load if name == "images" else ""
        raise TypeError(f"{name} is a {type(value).__name__}, not a tensor{hint}")
    if axes and value.ndim != len(axes.split()):
        wanted = ", ".join(axes.split())
        raise ValueError(f"{name} is {tuple(value.shape)}; give the axes ({wanted})")


def check_images(
    images: Tensor, channels: int | None = None, size: tuple[int, int] | None = None
) -> None:
    """Images must be a batch (B, C, H, W); where given, floats in these channels of this size."""
    check_axes("images", images, "")
    shape = tuple(images.shape)
    if len(shape) == 3:
        raise ValueError(f"images is {shape}: the batch axis is missing; use images[None]")
    check_axes("images", images, "B C H W")
    if 0 in shape:
        raise ValueError(f"images is {shape}: it is empty; give at least one image with pixels")
    if channels is None:
        return
    if not images.is_floating_point():
        raise TypeError(
            f"images holds {images.dtype}, not floats; use images.float() / 255 for bytes, "
            "then vit_steps.images.normalize"
        )
    if shape[1] != channels:
        last = "; are the channels last? then use images.permute(0, 3, 1, 2)"
        raise ValueError(
            f"images is {shape}: {shape[1]} channels where the model takes {channels}"
            + (last if shape[3] == channels else "")
        )
    if size is not None and shape[2:] != size:
        raise ValueError(
            f"images are {shape[2]}×{shape[3]} (height × width) where the model takes "
            f"{size[0]}×{size[1]}; resize them (vit_steps.images.load_image), "
            "or the model (ViT.at_size)"
        )


def check_dtype(images: Tensor, module: nn.Module) -> None:
    """Images must hold the same floats as the module's weights, unless autocast sees to it."""
    types = [weight.dtype for weight in module.parameters()]  # none in nn.DataParallel's copies
    if not types or images.dtype in types or torch.is_autocast_enabled(images.device.type):
        return
    raise TypeError(f"images holds {images.dtype}, the model {types[0]}; use images.to({types[0]})")


def check_tokens(tokens: Tensor, embed_dim: int | None = None, count: int | None = None) -> None:
    """Tokens must be a batch (B, N, D), where given of this width and number."""
    check_axes("tokens", tokens, "B N D")
    shape = tuple(tokens.shape)
    if embed_dim is not None and shape[2] != embed_dim:
        raise ValueError(f"tokens is {shape}: width {shape[2]} where {embed_dim} is expected")
    if count is not None and shape[1] != count:
        raise ValueError(f"tokens is {shape}: {shape[1]} tokens where {count} are expected")


def check_int64(name: str, value: Any, *shape: int) -> None:
    """The named value must be an int64 tensor of this shape."""
    check_axes(name, value, "")
    if value.dtype != torch.int64:
        raise TypeError(f"{name} holds {value.dtype}; use {name}.long()")
    if value.shape != shape:
        raise ValueError(f"{name} is {tuple(value.shape)}; {shape[0]} images need {shape}")


def check_labels(labels: Tensor, count: int, classes: int) -> None:
    """Labels must be the numbers of classes, one for each of `count` images."""
    check_int64("labels", labels, count)
    low, high = labels.min().item(), labels.max().item()
    if low < 0 or high >= classes:
        numbers = f"{classes} classes have the numbers 0 to {classes - 1}"
        raise ValueError(f"labels run from {low} to {high}; {numbers}")
