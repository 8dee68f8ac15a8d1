"""Lesson 00: pictures as numbers, and the whole model once."""

import tempfile
from pathlib import Path

import torch
from PIL import Image
from torch.nn import functional as F

from vit_course import checks
from vit_steps import EncoderBlock, load_image, normalize

from . import only


def opened(pixels: torch.Tensor, size: int | None) -> torch.Tensor:
    """What `load_image` makes of bytes (H, W, 3) in a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "photo.png"
        Image.fromarray(pixels.numpy()).save(path)
        return load_image(path, size=size)


def shape_of_a_photo() -> str:
    shape = opened(torch.zeros(300, 400, 3, dtype=torch.uint8), None).shape
    return only(a=shape == (400, 300, 3), b=shape == (3, 400, 300), c=shape == (3, 300, 400))


def grey_pixel() -> str:
    grey = normalize(torch.full((3, 1, 1), 102 / 255))[0, 0, 0].item()
    return only(a=abs(grey + 0.2) < 1e-6, b=abs(grey - 0.4) < 1e-6, c=abs(grey - 0.2) < 1e-6)


def way_back() -> str:
    x = torch.arange(24).reshape(2, 4, 3)
    moved = x.permute(2, 0, 1)
    assert moved.permute(2, 0, 1).permute(2, 0, 1).equal(x)
    return only(
        a=moved.permute(2, 0, 1).equal(x),
        b=moved.permute(1, 2, 0).equal(x),
        c=moved.permute(0, 2, 1).equal(x),
    )


def normalised_twice() -> str:
    twice = normalize(normalize(torch.linspace(0, 1, 12).reshape(3, 2, 2)))
    ends = (round(twice.min().item(), 4), round(twice.max().item(), 4))
    return only(a=ends == (-1, 1), b=ends == (-3, 1), c=ends == (-2, 2))


def what_grey_shows() -> str:
    grey = torch.full((4, 4, 3), 100, dtype=torch.uint8)
    right = grey.permute(2, 0, 1) / 255
    slips = {
        "a": grey.flip(-1).permute(2, 0, 1) / 255,
        "b": grey.reshape(3, 4, 4) / 255,
        "c": grey.permute(2, 0, 1).float(),
    }
    return only(**{letter: not torch.equal(x, right) for letter, x in slips.items()})


def raised_logits() -> str:
    torch.manual_seed(0)
    logits = torch.randn(1000)
    before, after = logits.softmax(dim=0), (logits + 5).softmax(dim=0)
    assert (5 * logits).softmax(dim=0).max() > before.max()
    return only(
        a=torch.allclose(before, after, rtol=0, atol=1e-6),
        b=bool(after.max() > before.max() + 1e-6),
        c=bool((after > before + 1e-6).all()),
    )


def weights_of_a_block() -> str:
    with torch.no_grad():
        _, weights = EncoderBlock(768, 12)(torch.randn(1, 197, 768), return_attention=True)
    count = weights.numel()
    return only(a=count == 197 * 768, b=count == 197 * 197, c=count == 12 * 197 * 197)


def what_is_seen() -> str:
    pixels = torch.zeros(600, 512, 3, dtype=torch.uint8)
    pixels[..., 2] = 255  # the square in the middle is blue, and
    pixels[188:412, 144:368] = torch.tensor([0, 255, 0], dtype=torch.uint8)  # its middle green
    for strip in (pixels[:44], pixels[-44:]):
        strip[:] = torch.tensor([255, 0, 0], dtype=torch.uint8)
    red, _, blue = (channel.mean() > 0.05 for channel in opened(pixels, 224))
    return only(a=bool(red), b=bool(blue and not red), c=bool(not blue))


def forgotten_std() -> str:
    grey = torch.full((3, 2, 2), 0.5)
    said = checks.difference(grey - 0.5, normalize(grey))
    return only(a=said == "< 1e-5", b=said == "up to 0.5", c=said == "up to 1")


def cosines_of_bright_numbers() -> str:
    torch.manual_seed(0)
    found = [F.cosine_similarity(*torch.rand(2, 768), dim=0) for _ in range(100)]
    found.append(F.cosine_similarity(torch.tensor([1.0, 0]), torch.tensor([0, 1.0]), dim=0))
    least = min(found)
    return only(a=bool(least < 0), b=bool(least == 0), c=bool(least > 0.5))


PROOFS = {
    1: shape_of_a_photo,
    2: grey_pixel,
    3: way_back,
    4: normalised_twice,
    5: what_grey_shows,
    6: raised_logits,
    7: weights_of_a_block,
    8: what_is_seen,
    9: forgotten_std,
    10: cosines_of_bright_numbers,
}
