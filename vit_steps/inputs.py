"""What every module asks of its input.

Each function returns quietly or raises: a TypeError for a value of the wrong kind, a ValueError for
one out of its range. The message says what came, what was expected, what to do. All but
`check_labels` look at types and shapes alone: for a tensor's values a GPU would have to be waited.
"""

from math import inf
from numbers import Integral
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn

HINTS = {
    "images": "; vit_steps.images.load_image makes one from a picture file",
    "Proxy": "; instead of torch.fx use torch.export.export(model, (images,)).module()",
}


def is_whole(number: Any) -> TypeGuard[int]:
    """Tell whether that is a whole number, Python's or NumPy's; True and False are none."""
    return isinstance(number, Integral) and not isinstance(number, bool)


def kind_of(value: Any) -> str:
    """Name a value's type with its article: "a list", "an int", "an ndarray"."""
    name = type(value).__name__
    return f"an {name}" if name[0].lower() in "aeio" or name == "ndarray" else f"a {name}"


def check_sizes(least: int = 1, /, **sizes: int) -> None:
    """Refuse a size that is no whole number of at least `least`."""
    for name, size in sizes.items():
        if not is_whole(size):
            raise TypeError(f"{name} is {size!r}, {kind_of(size)}; give a whole number")
        if size < least:
            raise ValueError(f"{name} is {size}; give a whole number of at least {least}")


def check_fraction(below: float = 1, /, **fractions: float) -> None:
    """Refuse what is no number from 0 up to, not including, `below`."""
    for name, value in fractions.items():
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise TypeError(f"{name} is {value!r}; give a number")
        if not 0 <= value < below:
            raise ValueError(f"{name} is {value}; give a number of at least 0 and below {below}")


def check_choice(name: str, value: Any, *choices: Any) -> None:
    """Refuse a value that is none of the choices."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise ValueError(f"{name} is {value!r}; give {' or '.join(map(repr, choices))}")


def as_pair(size: int | tuple[int, int], name: str = "image_size") -> tuple[int, int]:
    """Read a size as (height, width), a list of JSON too: 224 means (224, 224)."""
    if is_whole(size):
        check_sizes(**{name: size})
        return int(size), int(size)
    if not isinstance(size, (tuple, list)) or len(size) != 2:
        raise TypeError(f"{name} is {size!r}; give one whole number, or a pair (height, width)")
    check_sizes(**{f"{name}[0]": size[0], f"{name}[1]": size[1]})
    return int(size[0]), int(size[1])


def as_size(size: int | tuple[int, int]) -> int | tuple[int, int]:
    """Read a size as configs keep it: one number for a square, else (height, width)."""
    height, width = as_pair(size)
    return height if height == width else (height, width)


def mlp_width(embed_dim: int, mlp_ratio: float) -> int:
    """Give the MLP's hidden width, embed_dim · mlp_ratio, which must come out whole."""
    check_sizes(embed_dim=embed_dim)
    check_fraction(inf, mlp_ratio=mlp_ratio)
    width = embed_dim * mlp_ratio
    # Floats do not hold every ratio exactly: 116 / 56 · 56 is a little off 116.
    if round(width) < 1 or abs(width - round(width)) > 1e-6:
        problem = f"mlp_ratio {mlp_ratio} makes the MLP {width} wide with embed_dim {embed_dim}"
        raise ValueError(f"{problem}; choose one that gives a whole number")
    return round(width)


def check_heads(embed_dim: int, num_heads: int) -> None:
    """Refuse an embedding that does not divide into heads of equal width."""
    check_sizes(embed_dim=embed_dim, num_heads=num_heads)
    if embed_dim % num_heads:
        counts = [h for h in range(1, embed_dim + 1) if embed_dim % h == 0]
        nearest = sorted(sorted(counts, key=lambda h: abs(h - num_heads))[:3])
        problem = f"embed_dim {embed_dim} does not divide into {num_heads} heads of equal width"
        raise ValueError(f"{problem}; nearest counts that do: {', '.join(map(str, nearest))}")


def check_axes(name: str, value: Any, axes: str, **sizes: int | None) -> None:
    """Refuse what is no tensor with these axes, such as "B N D", of these sizes; "" is any."""
    if not isinstance(value, Tensor):
        hint = HINTS.get("Proxy" if isinstance(value, torch.fx.Proxy) else name, "")
        raise TypeError(f"{name} is {kind_of(value)}, not a tensor{hint}")
    names = axes.split()
    fits = not names or len(names) == value.ndim
    for axis, size in sizes.items():
        fits = fits and (size is None or value.shape[names.index(axis)] == size)
    if not fits:
        expected = ", ".join(str(sizes.get(axis) or axis) for axis in names)
        raise ValueError(f"{name} is {tuple(value.shape)}; give the axes ({expected})")


def check_images(
    images: Tensor, channels: int | None = None, size: tuple[int, int] | None = None
) -> None:
    """Refuse what is no batch (B, C, H, W), or, where given, not in floats, channels and size."""
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
        hint = "use images.float() / 255 for bytes, then vit_steps.images.normalize"
        raise TypeError(f"images holds {images.dtype}, not floats; {hint}")
    if shape[1] != channels:
        hint = "; are the channels last? then use images.permute(0, 3, 1, 2)"
        problem = f"images is {shape}: {shape[1]} channels where the model takes {channels}"
        raise ValueError(problem + (hint if shape[3] == channels else ""))
    if size is not None and shape[2:] != size:
        sizes = f"{shape[2]}×{shape[3]} (height × width) where the model takes {size[0]}×{size[1]}"
        hint = "resize them (vit_steps.images.load_image), or the model (ViT.at_size)"
        raise ValueError(f"images are {sizes}; {hint}")


def check_dtype(images: Tensor, module: nn.Module) -> None:
    """Refuse images of other floats than the module's weights, unless autocast sees to it."""
    types = [weight.dtype for weight in module.parameters()]  # none in nn.DataParallel's copies
    if types and images.dtype not in types and not torch.is_autocast_enabled(images.device.type):
        hint = f"use images.to({types[0]})"
        raise TypeError(f"images holds {images.dtype}, the model {types[0]}; {hint}")


def check_tokens(tokens: Tensor, embed_dim: int | None = None, count: int | None = None) -> None:
    """Refuse tokens that are no batch (B, N, D), where asked for of this width and number."""
    check_axes("tokens", tokens, "B N D", N=count, D=embed_dim)


def check_int64(name: str, value: Any, *shape: int) -> None:
    """Refuse what is no int64 tensor of this shape."""
    check_axes(name, value, "")
    if value.dtype != torch.int64:
        raise TypeError(f"{name} holds {value.dtype}; use {name}.long()")
    if value.shape != shape:
        raise ValueError(f"{name} is {tuple(value.shape)}; {shape[0]} images need {shape}")


def check_labels(labels: Tensor, count: int, classes: int) -> None:
    """Refuse labels that are not the numbers of classes, one for each of `count` images."""
    check_int64("labels", labels, count)
    low, high = labels.min().item(), labels.max().item()
    if low < 0 or high >= classes:
        hint = f"{classes} classes have the numbers 0 to {classes - 1}"
        raise ValueError(f"labels run from {low} to {high}; {hint}")
