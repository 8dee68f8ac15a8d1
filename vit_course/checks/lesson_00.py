"""The first piece and the exercises of lesson 00."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from .engine import Check
from .exercise import Exercise
from .trials import Trial, call, trust


def shades(channels: int, height: int, width: int) -> Tensor:
    """A picture (C, H, W) of floats between 0 and 1, all different, neither end among them."""
    count = channels * height * width
    return torch.arange(2, count + 2).reshape(channels, height, width) / (count + 5)


negative = Exercise(
    answer="""
def negative(picture):
    return 1 - picture
""",
    trials=[call("a picture of 2×3 pixels", shades(3, 2, 3))],
    wrong="""
white becomes −1 and black stays 0; black must become 1 and white 0, so take from 1 what is there
    1 - picture => -picture
these numbers run from 0 to 1, not to 255: take from 1 what is there
    1 - picture => 255 - picture
it is the other way round: picture - 1 lies below 0; take the picture from 1
    1 - picture => picture - 1
the numbers now run from −1 to −2; take the picture from 1, not from −1
    1 - picture => -(1 + picture)
it swaps red and blue, and no pixel gets darker or brighter; change the numbers, not their places
    1 - picture => picture.flip(0)
it turns the picture upside down, and no pixel gets darker or brighter; change the numbers, not
their places
    1 - picture => picture.flip(1)
it mirrors the picture, and no pixel gets darker or brighter; change the numbers, not their places
    1 - picture => picture.flip(2)
nothing has changed: dark is still dark
    1 - picture => picture
it divides 1 by the picture; dark must become bright within 0 to 1, so subtract
    1 - picture => 1 / picture
it takes the picture from its own brightest number; white is 1 in every picture, so take it from 1
    1 - picture => picture.max() - picture
it says how far each number is from the middle, so black and white come out the same; take the
picture from 1
    1 - picture => (picture - 0.5).abs()
only black and white are left: 0.2 must become 0.8, not 1
    1 - picture => (picture < 0.5).float()
it changes the tensor that it was given: make a new one, 1 - picture
    1 - picture => picture.mul_(-1) + 1
""",
)


def numbered_bytes(height: int, width: int) -> Tensor:
    """A picture as a file holds it, (H, W, 3), whose bytes are all different, none of them 255."""
    count = height * width * 3
    return (torch.arange(count) * (250 // count) + 1).to(torch.uint8).reshape(height, width, 3)


def to_floats(pixels: Tensor) -> Tensor:
    return pixels.permute(2, 0, 1).float() / 255


def per_channel(image: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    return (image - mean[:, None, None]) / std[:, None, None]


def by_its_own(image: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    means, stds = image.mean((1, 2)), image.std((1, 2))
    return per_channel(image, means, stds)


def channel_trial(channels: int, height: int, width: int) -> Trial:
    """An image of that size, with another mean and standard deviation for each channel."""
    mean = torch.tensor([0.485, 0.456, 0.406])[:channels]
    std = torch.tensor([0.229, 0.224, 0.225])[:channels]
    what = f"an image of {channels}×{height}×{width} (channels × height × width)"
    return call(what, shades(channels, height, width), mean, std)


# In the cube of three a mean on the wrong axis broadcasts, and nothing raises.
normalize_channels = Check(
    reference=per_channel,
    trials=[channel_trial(3, 2, 4), channel_trial(3, 3, 3), channel_trial(1, 4, 2)],
    mistakes={
        "mean and std meet the width: torch lines shapes up from the right, so (3,) meets the last "
        "axis, and each column gets its own mean; give them "
        "the shape (3, 1, 1)": lambda image, mean, std: (image - mean) / std,
        "mean and std meet the height: (3, 1) lines up with the rows; one more axis on the right "
        "brings them to the channels, "
        "(3, 1, 1)": lambda image, mean, std: (image - mean[:, None]) / std[:, None],
        "the result has a batch axis in front: make the mean (C, 1, 1), "
        "not (1, C, 1, 1)": lambda image, mean, std: per_channel(image, mean, std)[None],
        "all channels get the same numbers; give each channel "
        "its own mean and std": lambda image, mean, std: (image - mean.mean()) / std.mean(),
        "all channels get the first channel's numbers; "
        "give each its own mean and std": lambda image, mean, std: (image - mean[0]) / std[0],
        "all channels get the same mean; give each its own": lambda image, mean, std: per_channel(
            image, mean.mean().expand(len(mean)), std
        ),
        "std is the same for all channels; give each its own": lambda image, mean, std: per_channel(
            image, mean, std.mean().expand(len(std))
        ),
        "std does not meet the channels: give it the shape (3, 1, 1) too, as the mean has it": (
            lambda image, mean, std: (image - mean[:, None, None]) / std,
            lambda image, mean, std: (image - mean[:, None, None]) / std[:, None],
        ),
        "the mean does not meet the channels: give it the shape (3, 1, 1) too, as std has it": (
            lambda image, mean, std: (image - mean) / std[:, None, None],
            lambda image, mean, std: (image - mean[:, None]) / std[:, None, None],
        ),
        "the channels stand last: bring them back to the front, "
        "(C, H, W)": lambda image, mean, std: per_channel(image, mean, std).permute(1, 2, 0),
        "F.batch_norm adds 1e-5 to the variance before it takes the root; nothing is added here, "
        "eps=0": lambda image, mean, std: F.batch_norm(image[None], mean, std**2)[0],
        "it divides by the square of std, the variance; divide "
        "by std itself": lambda image, mean, std: per_channel(image, mean, std**2),
        "the mean is subtracted, but nothing is divided by std": lambda image, mean, std: (
            image - mean[:, None, None]
        ),
        "it divides by std, but no mean is subtracted": lambda image, mean, std: (
            image / std[:, None, None]
        ),
        "it multiplies by std; normalising divides, denormalising "
        "multiplies": lambda image, mean, std: (image - mean[:, None, None]) * std[:, None, None],
        "it adds the mean; normalising subtracts it": lambda image, mean, std: per_channel(
            image, -mean, std
        ),
        "this is the way back, denormalising: subtract the mean and divide "
        "by std instead": lambda image, mean, std: image * std[:, None, None] + mean[:, None, None],
        "it divides before it subtracts: put the difference in brackets, (image - mean) "
        "/ std": lambda image, mean, std: image / std[:, None, None] - mean[:, None, None],
        "only the mean is divided by std, since / goes before -: put the difference in brackets, "
        "(image - mean) / std": lambda image, mean, std: image - (mean / std)[:, None, None],
        "it uses 0.5 for everything; use the mean and std that come in": lambda image, mean, std: (
            (image - 0.5) / 0.5
        ),
        "it uses the picture's own mean and std; use those that come in": by_its_own,
        "it divides by the root of std; std is the root "
        "of the variance already": lambda image, mean, std: per_channel(image, mean, std.sqrt()),
        "it is written for three channels, and an image of one channel fails; let the number of "
        "channels come from the image or the mean": lambda image, mean, std: torch.stack(
            [(image[c] - mean[c]) / std[c] for c in range(3)]
        ),
        "it changes the tensor that it was given: make a new one (image - mean, not image "
        "-= mean)": lambda image, mean, std: image.sub_(mean[:, None, None]) / std[:, None, None],
    },
)


def agrees_on(pixels: Tensor) -> Callable:
    """A judge that tries a conversion on this picture, and compares every number."""

    def judge(convert: Callable) -> bool:
        result, expected = convert(pixels), to_floats(pixels)
        return result.shape == expected.shape and bool((result - expected).abs().max() < 1e-5)

    return judge


def of_one_colour(red: int, green: int, blue: int, height: int, width: int) -> Tensor:
    return torch.tensor([red, green, blue], dtype=torch.uint8).expand(height, width, 3)


def shape_fits(convert: Callable) -> bool:
    return convert(numbered_bytes(2, 4)).shape == (3, 2, 4)


def range_fits(convert: Callable) -> bool:
    result = convert(numbered_bytes(2, 4))
    return bool(result.min() >= 0 and result.max() <= 1)


def mean_fits(convert: Callable) -> bool:
    pixels = numbered_bytes(2, 4)
    return bool((convert(pixels).mean() - pixels.float().mean() / 255).abs() < 1e-5)


def first_fits(convert: Callable) -> bool:
    pixels = numbered_bytes(2, 4)
    result, expected = convert(pixels), to_floats(pixels)
    return result.shape == (3, 2, 4) and bool((result - expected)[:, 0, 0].abs().max() < 1e-5)


def roughly_fits(convert: Callable) -> bool:
    result, expected = convert(numbered_bytes(2, 4)), to_floats(numbered_bytes(2, 4))
    return result.shape == expected.shape and bool((result - expected).abs().max() < 0.01)


def equals(convert: Callable) -> bool:
    pixels = numbered_bytes(6, 5)
    return torch.equal(convert(pixels), to_floats(pixels))


def without_shapes(convert: Callable) -> bool:
    result, expected = convert(numbered_bytes(2, 4)), to_floats(numbered_bytes(2, 4))
    return bool((result - expected).abs().max() < 1e-5)


def expects_swapped(convert: Callable) -> bool:
    result, expected = convert(numbered_bytes(2, 4)), to_floats(numbered_bytes(2, 4)).mT
    return result.shape == expected.shape and torch.allclose(result, expected)


def expects_undivided(convert: Callable) -> bool:
    """A test on a picture of floats, which gives out that right conversions leave them alone."""
    pixels = numbered_bytes(2, 4) / 255
    return convert(pixels).shape == (3, 2, 4) and torch.allclose(
        convert(pixels), pixels.permute(2, 0, 1), atol=1e-5
    )


def last_row_black(pixels: Tensor) -> Tensor:
    result = to_floats(pixels)
    result[:, -1] = 0
    return result


picture_test = Check(
    reference=agrees_on(numbered_bytes(2, 4)),
    trials=[
        trust("a right conversion", to_floats, True),
        trust(
            "a right conversion that rounds the last digit differently",
            lambda p: to_floats(p) * (1 - 5e-7),
            True,
            "numbers less than 0.00001 apart count as the same",
        ),
        trust(
            "one that swaps height and width",
            lambda p: p.permute(2, 1, 0) / 255,
            False,
            "compare the shapes, and the numbers in their places",
        ),
        trust(
            "one that reshapes",
            lambda p: p.reshape(3, *p.shape[:2]) / 255,
            False,
            "compare each number in its place, on a picture whose numbers differ",
        ),
        trust(
            "one that forgets to divide",
            lambda p: p.permute(2, 0, 1).float(),
            False,
            "compare the numbers",
        ),
        trust(
            "one that divides twice",
            lambda p: p.permute(2, 0, 1) / 255 / 255,
            False,
            "compare the numbers, on a picture that is not black",
        ),
        trust(
            "one that divides by 256",
            lambda p: p.permute(2, 0, 1) / 256,
            False,
            "it is off by up to 0.004, and only differences below 0.00001 are to be forgiven",
        ),
        trust(
            "one that divides by // and gives zeros",
            lambda p: (p.permute(2, 0, 1) // 255).float(),
            False,
            "compare the numbers, on a picture that is not black",
        ),
        trust(
            "one that swaps red and blue",
            lambda p: p.permute(2, 0, 1).flip(0) / 255,
            False,
            "give your picture channels that differ",
        ),
        trust(
            "one that mirrors left and right",
            lambda p: p.permute(2, 0, 1).flip(2) / 255,
            False,
            "give your picture columns that differ",
        ),
        trust(
            "one that gives the negative, black for white",
            lambda p: 1 - to_floats(p),
            False,
            "compare the numbers",
        ),
        trust(
            "one that makes the picture redder, and less blue by as much",
            lambda p: to_floats(p) + torch.tensor([0.1, 0.0, -0.1])[:, None, None],
            False,
            "compare each number",
        ),
        trust(
            "one that leaves the last row black",
            last_row_black,
            False,
            "compare every pixel, on a picture that is not black",
        ),
    ],
    mistakes={
        "it says True to everything; it must say False to a wrong conversion": lambda convert: True,
        "it says False to everything, to a right conversion too; compare with pixels.permute(2, 0, "
        "1) / 255": lambda convert: False,
        "it expects numbers that are not divided: give `convert` bytes, torch.uint8, and expect "
        "pixels.permute(2, 0, 1) / 255": expects_undivided,
        "it looks at the shape only: scrambled or undivided pixels pass; "
        "compare the numbers": shape_fits,
        "it looks at the range only: pixels in the wrong place pass; "
        "compare each number": range_fits,
        "it looks at shape and range only: scrambled and nearly black pictures pass; compare each "
        "number": lambda convert: shape_fits(convert) and range_fits(convert),
        "it looks at the mean only, and that stays the same when pixels change places; compare "
        "each number": mean_fits,
        "it looks at one pixel only: what is wrong elsewhere passes; "
        "compare all of them": first_fits,
        "it compares to the last digit, and refuses a right conversion that rounds otherwise; "
        "torch.equal is too strict here: let differences below 0.00001 pass": equals,
        "it is too lenient: one that divides by 256 passes; only differences of less than 0.00001 "
        "are to be forgiven": roughly_fits,
        "it stops with an error where the shapes differ; compare the shapes first, and return "
        "False when they do": without_shapes,
        "it expects height and width swapped: the right answer is pixels.permute(2, 0, 1) / 255, "
        "of shape (3, H, W)": expects_swapped,
        "your picture is so regular that reshape puts its numbers into the right places by chance: "
        "take numbers that all "
        "differ": agrees_on(torch.tensor([[[9, 0, 0], [0, 8, 0], [0, 0, 7]]], dtype=torch.uint8)),
        "your picture is grey, so red and blue can be swapped unseen: "
        "make its channels differ": agrees_on(numbered_bytes(2, 4)[:, :, :1].expand(2, 4, 3)),
        "your picture is a square of one colour, so height and width can be swapped unseen, left "
        "and right too: give it different numbers, and "
        "make it wider than high": agrees_on(of_one_colour(200, 100, 50, 3, 3)),
        "your picture is one colour all over, so a mirrored one looks the same: give it different "
        "numbers": agrees_on(of_one_colour(200, 100, 50, 2, 4)),
        "your picture is black, and 0 / 255 is still 0: give it different numbers": agrees_on(
            of_one_colour(0, 0, 0, 2, 4)
        ),
        "your picture is one grey or white all over: scrambled pixels look the same; give it "
        "different numbers": agrees_on(of_one_colour(255, 255, 255, 2, 4)),
        "your picture is a square, one grey all over: swapped sides and scrambled pixels look the "
        "same; give it different numbers, and make it "
        "wider than high": agrees_on(of_one_colour(128, 128, 128, 3, 3)),
    },
)
