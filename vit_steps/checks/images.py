"""Exercises of lesson 00."""

from collections.abc import Callable

import torch
from torch import Tensor

from .engine import Check, Mistake, Trial, call


def numbered_bytes(height: int, width: int) -> Tensor:
    """A picture as a file holds it, (H, W, 3), whose bytes are 0, 5, 10, …: all different."""
    return torch.arange(0, 5 * height * width * 3, 5, dtype=torch.uint8).reshape(height, width, 3)


def to_floats(pixels: Tensor) -> Tensor:
    return pixels.permute(2, 0, 1).float() / 255


channels_first = Check(
    reference=to_floats,
    trials=[
        call("a picture of 2×4 pixels (height × width)", numbered_bytes(2, 4)),
        call("a picture of 5×3 pixels (height × width)", numbered_bytes(5, 3)),
    ],
    mistakes=[
        Mistake(
            "the pixels are scrambled: reshape and view read the bytes straight on and only deal "
            "them out anew; permute moves the axes",
            lambda pixels: pixels.reshape(3, *pixels.shape[:2]) / 255,
        ),
        Mistake(
            "height and width are swapped: the picture lies on its side; the order is (3, H, W)",
            lambda pixels: to_floats(pixels).transpose(1, 2),
        ),
        Mistake(
            "the channels are still last: move their axis to the front",
            lambda pixels: pixels / 255,
        ),
        Mistake(
            "the axes are right, the numbers still run from 0 to 255: divide by 255",
            lambda pixels: to_floats(pixels) * 255,
        ),
        Mistake(
            "it divides by 255 twice: white comes out as 0.004, so every picture is black",
            lambda pixels: to_floats(pixels) / 255,
        ),
        Mistake(
            "it divides by 256: a byte goes up to 255, and white must become 1",
            lambda pixels: to_floats(pixels) * 255 / 256,
        ),
        Mistake(
            "// keeps whole numbers only: all but the brightest pixels become 0; use /",
            lambda pixels: pixels.permute(2, 0, 1) // 255,
        ),
    ],
)


def per_channel(image: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    return (image - mean[:, None, None]) / std[:, None, None]


def channel_trial(channels: int, height: int, width: int) -> Trial:
    """An image of that size, with another mean and standard deviation for each channel."""
    count = channels * height * width
    image = torch.arange(count).reshape(channels, height, width) / count
    mean = torch.tensor([0.485, 0.456, 0.406])[:channels]
    std = torch.tensor([0.229, 0.224, 0.225])[:channels]
    what = f"an image of {channels}×{height}×{width} (channels × height × width)"
    return call(what, image, mean, std)


# The square of three comes first: there a mean on the wrong axis broadcasts, and nothing raises.
normalize_channels = Check(
    reference=per_channel,
    trials=[channel_trial(3, 3, 3), channel_trial(3, 2, 4), channel_trial(1, 4, 2)],
    mistakes=[
        Mistake(
            "mean and std meet the width: torch lines shapes up from the right, so (3,) meets the "
            "last axis, and each column gets its own mean; give them the shape (3, 1, 1)",
            lambda image, mean, std: (image - mean) / std,
        ),
        Mistake(
            "mean and std meet the height: (3, 1) lines up with the rows; one more axis on the "
            "right brings them to the channels, (3, 1, 1)",
            lambda image, mean, std: (image - mean[:, None]) / std[:, None],
        ),
        Mistake(
            "all channels get the same numbers; give each channel its own mean and std",
            lambda image, mean, std: (image - mean.mean()) / std.mean(),
        ),
        Mistake(
            "the mean is subtracted, but nothing is divided by std",
            lambda image, mean, std: image - mean[:, None, None],
        ),
        Mistake(
            "it multiplies by std; normalising divides, denormalising multiplies",
            lambda image, mean, std: (image - mean[:, None, None]) * std[:, None, None],
        ),
        Mistake(
            "it divides before it subtracts: put the difference in brackets, (image - mean) / std",
            lambda image, mean, std: image / std[:, None, None] - mean[:, None, None],
        ),
        Mistake(
            "it uses 0.5 for everything; use the mean and std that come in",
            lambda image, mean, std: (image - 0.5) / 0.5,
        ),
    ],
)


def judged(what: str, convert: Callable) -> Trial:
    """Give the answer a conversion to judge; a tensor or NumPy's bool counts as its truth."""

    def run(answer: Callable) -> object:
        verdict = answer(convert)
        return verdict if verdict is ... or verdict is None else bool(verdict)

    return Trial(what, run)


def agrees_on(pixels: Tensor) -> Callable:
    """A judge that tries a conversion on this picture, and compares every number."""

    def judge(convert: Callable) -> bool:
        result, expected = convert(pixels), to_floats(pixels)
        return result.shape == expected.shape and torch.allclose(result.float(), expected)

    return judge


def shape_fits(convert: Callable) -> bool:
    return convert(numbered_bytes(2, 4)).shape == (3, 2, 4)


def range_fits(convert: Callable) -> bool:
    result = convert(numbered_bytes(2, 4))
    return bool(result.min() >= 0 and result.max() <= 1)


picture_test = Check(
    reference=agrees_on(numbered_bytes(2, 4)),
    trials=[
        judged("a right conversion", to_floats),
        judged("one that swaps height and width", lambda p: p.permute(2, 1, 0) / 255),
        judged("one that reshapes", lambda p: p.reshape(3, *p.shape[:2]) / 255),
        judged("one that forgets to divide", lambda p: p.permute(2, 0, 1).float()),
        judged("one that divides twice", lambda p: p.permute(2, 0, 1) / 255 / 255),
        judged("one that swaps red and blue", lambda p: p.permute(2, 0, 1).flip(0) / 255),
        judged("one that gives the negative, black for white", lambda p: 1 - to_floats(p)),
    ],
    mistakes=[
        Mistake(
            "it says True to everything; it must say False to a wrong conversion",
            lambda convert: True,
        ),
        Mistake(
            "it says False to a right conversion too; compare with pixels.permute(2, 0, 1) / 255",
            lambda convert: False,
        ),
        Mistake(
            "it looks at the shape only: scrambled or undivided pixels pass; compare the numbers",
            shape_fits,
        ),
        Mistake(
            "it looks at the range only: pixels in the wrong place pass; compare each number",
            range_fits,
        ),
        Mistake(
            "it looks at shape and range only: scrambled and nearly black pictures pass; compare "
            "each number",
            lambda convert: shape_fits(convert) and range_fits(convert),
        ),
        Mistake(
            "your picture is grey, so red and blue can be swapped unseen: make its channels differ",
            agrees_on(numbered_bytes(2, 4)[:, :, :1].expand(2, 4, 3)),
        ),
        Mistake(
            "your picture is a square of one colour, so height and width can be swapped unseen: "
            "make it wider than high",
            agrees_on(torch.tensor([200, 100, 50], dtype=torch.uint8).expand(3, 3, 3)),
        ),
        Mistake(
            "your picture is black, and 0 / 255 is still 0: give it different numbers",
            agrees_on(torch.zeros(2, 4, 3, dtype=torch.uint8)),
        ),
        Mistake(
            "your picture is one grey or white all over: scrambled pixels look the same; give it "
            "different numbers",
            agrees_on(torch.full((2, 4, 3), 255, dtype=torch.uint8)),
        ),
    ],
)
