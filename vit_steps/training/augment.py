"""Lesson 07: small changes of a picture that should not change what it shows."""

from math import pi

import torch
from torch import Tensor
from torch.nn import functional as F

from ..inputs import check_images


def augment_digits(images: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Turn each image by up to 10°, scale it by up to 5%, shift it by up to 3% of its sides.

    Images are (B, C, H, W), with -1 for the background, which comes in from outside too. They are
    resampled (bilinear). Random numbers come from the generator; None means torch's own.
    """
    check_images(images)
    random = torch.rand(4, len(images), generator=generator) * 2 - 1
    angle, scale, right, down = random  # each (B,), from -1 to 1
    angle, scale, right, down = angle * 10 * pi / 180, 1 + scale * 0.05, right * 0.06, down * 0.06
    cos_, sin_ = scale * angle.cos(), scale * angle.sin()
    rows = [cos_, -sin_, right, sin_, cos_, down]  # a side is 2 long
    return _resample(images + 1, rows) - 1  # background is 0 while it is resampled


def augment_photos(images: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Mirror half of the images (B, C, H, W), and zoom into each by up to 30%, anywhere.

    Else as `augment_digits`; nothing comes in from outside.
    """
    check_images(images)
    mirror, zoom, right, down = torch.rand(4, len(images), generator=generator)  # each (B,)
    side = 1 - 0.3 * zoom  # of the part that is kept
    right, down = (1 - side) * (2 * right - 1), (1 - side) * (2 * down - 1)
    zeros = torch.zeros(len(images))
    return _resample(images, [side * (mirror - 0.5).sign(), zeros, right, zeros, side, down])


def _resample(images: Tensor, rows: list[Tensor]) -> Tensor:
    """Look for each pixel where a 2×3 matrix says (row by row, each (B,)); outside is 0."""
    theta = torch.stack(rows, dim=1).view(-1, 2, 3).to(images)
    grid = F.affine_grid(theta, list(images.shape), align_corners=False)  # (B, H, W, 2)
    return F.grid_sample(images, grid, align_corners=False)
