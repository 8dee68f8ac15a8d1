"""Lesson 00: the negative, a test for pictures, a picture made of numbers, a mean a channel."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .compare import Verdict, kind_of
from .exercise import Exercise, edited, made, refusals
from .trials import Trial, asked, call, trust


def shades(channels: int, height: int, width: int) -> Tensor:
    """Make a picture (C, H, W) of floats between 0 and 1, all different, without 0 and 1."""
    count = channels * height * width
    return torch.arange(2, count + 2).reshape(channels, height, width) / (count + 5)


negative = Exercise(
    answer="""
def negative(picture):
    return 1 - picture
""",
    why="1 − 0 is 1, 1 − 1 is 0, and what was 0.2 away from black is 0.2 away from white. PyTorch "
    "takes each number of the tensor from 1, so one line serves for any number of channels.",
    trials=[
        call("a picture of 2×3 pixels", shades(3, 2, 3)),
        call("a picture with one channel", shades(1, 3, 2)),
    ],
    wrong="""
white becomes −1 and black stays 0; what turns 0 into 1, 1 into 0, and 0.2 into 0.8?
    1 - picture => -picture
these numbers run from 0 to 1, so white is 1, not 255
    1 - picture => 255 - picture
it is the other way round: picture - 1 lies below 0; take the picture from 1
    1 - picture => picture - 1
the numbers now run from −1 to −2; black must become 1, and white 0
    1 - picture => -(1 + picture)
it swaps red and blue, and no pixel gets darker or brighter; change the numbers, not their places
    1 - picture => picture.flip(0)
it turns the picture upside down, and no pixel gets darker or brighter; change the numbers, not
their places
    1 - picture => picture.flip(1)
it mirrors the picture, and no pixel gets darker or brighter; change the numbers, not their places
    1 - picture => picture.flip(2)
it turns the picture round, and no pixel gets darker or brighter; change the numbers, not their
places
    1 - picture => picture.flip(1, 2) ‖ picture.mT ‖ picture.mT.flip(1) ‖ picture.mT.flip(2)
the channels stand last; leave each number in its place, (C, H, W)
    1 - picture => (1 - picture).permute(1, 2, 0)
nothing has changed: dark is still dark
    1 - picture => picture
the channels stand in reverse order; leave each in its place
    1 - picture => (1 - picture).flip(0)
it goes through bytes, which cut off what lies between them; the numbers stay floats
    1 - picture => 1 - (255 * picture).byte() / 255
it divides 1 by the picture; dark must become bright within 0 to 1, so subtract
    1 - picture => 1 / picture
it takes the picture from its own brightest number; white is 1 in every picture, so take it from 1
    1 - picture => picture.max() - picture
it mirrors between the picture's own darkest and brightest number; black is 0 and white is 1 in
every picture: take it from 1
    1 - picture => picture.max() + picture.min() - picture
these numbers run from 0 to 1 already, so there is nothing to divide by 255
    1 - picture => 1 - picture / 255
the signs are turned on the scale from −1 to 1; stay on that from 0 to 1: black must become 1, and
white 0
    1 - picture => 1 - 2 * picture
it says how far each number is from the middle, so black and white come out the same; black must
become 1, and white 0
    1 - picture => (picture - 0.5).abs()
only black and white are left: 0.2 must become 0.8, not 1
    1 - picture => (picture < 0.5).float()
only the first channel is filled, and the others stay black; a picture has any number of them
    1 - picture => (1 - picture) * torch.eye(len(picture))[0][:, None, None]
it changes the tensor that it was given: make a new one, 1 - picture
    1 - picture => picture.mul_(-1) + 1
it is written for three channels, and a picture with one channel fails; take the whole tensor from 1
    1 - picture => torch.stack([1 - picture[0], 1 - picture[1], 1 - picture[2]])
""",
)


TO_FLOATS = """
def convert(pixels):  # from bytes (H, W, 3) to floats (3, H, W)
    result = pixels.permute(2, 0, 1).float() / 255
    return result
"""
# As libraries do: they divide whole numbers by the largest one that their dtype holds.
BY_DTYPE = "/ 255 => / (255 if pixels.is_floating_point() else torch.iinfo(pixels.dtype).max)"


def converter(edit: str) -> Callable:
    """Make a conversion of pictures, the right one with an edit."""
    return made("convert", edited(TO_FLOATS, edit), {})


WRONG_CONVERSIONS = """
one that swaps height and width: compare the shapes, and the numbers in their places
    2, 0, 1 => 2, 1, 0
one that reshapes: compare each number in its place, on a picture whose numbers differ
    permute(2, 0, 1) => reshape(3, *pixels.shape[:2])
one that forgets to divide: compare the numbers
    / 255 =>
one that divides by 256: it is off by up to 0.004, and only differences below 0.00001 are to be
forgiven
    255 => 256
one that swaps red and blue: give your picture channels that differ
    return result => return result.flip(0)
one that mirrors left and right: give your picture columns that differ
    return result => return result.flip(2)
one that makes the picture redder, and less blue by as much: compare each number
    return result => return result + torch.tensor([0.1, 0.0, -0.1])[:, None, None]
one that leaves the last row black: compare every pixel, on a picture that is not black
    return result => result[:, -1] = 0 ⏎ return result
"""

picture_test = Exercise(
    answer="""
def picture_test(convert):
    pixels = torch.arange(24, dtype=torch.uint8).reshape(2, 4, 3)  # all different
    expected = pixels.permute(2, 0, 1) / 255
    result = convert(pixels)
    if result.shape != expected.shape:
        return False
    return bool((result - expected).abs().max() < 1e-5)
""",
    why="The 24 bytes all differ, so a number in a wrong place shows; the picture is wider than "
    "high, so swapped sides show too. Shapes come first, because tensors of other shapes cannot be "
    "subtracted, or are broadcast in silence.",
    trials=[
        trust(
            "a right conversion: it divides by the largest number of the dtype, 255 for bytes",
            converter(BY_DTYPE),
            True,
        ),
        trust(
            "a right conversion that rounds the last digit differently",
            converter("return result => return result * (1 - 5e-7)"),
            True,
            "numbers less than 0.00001 apart count as the same",
        ),
        *refusals(converter, WRONG_CONVERSIONS),
    ],
    wrong="""
it says True to everything; it must say False to a wrong conversion
    result = convert… => return True
it says False to everything, to a right conversion too; compare with pixels.permute(2, 0, 1) / 255
    result = convert… => return False
it is the wrong way round: True means that the conversion is right
    < 1e-5) => > 1e-5) ‖ > 1e-5) ;; return False => return True
it expects numbers that are not divided: give `convert` bytes, torch.uint8, and expect
pixels.permute(2, 0, 1) / 255
    torch.arange… => torch.rand(2, 4, 3) ;; / 255 =>
your picture is not of bytes, and a right conversion may rely on them: say dtype=torch.uint8
    torch.arange(24, dtype=torch.uint8) => torch.arange(24)
it looks at the shape only: scrambled or undivided pixels pass; compare the numbers
    return bool… => return True
it looks at the range only: pixels in the wrong place pass; compare each number
    if result… => return bool(result.min() >= 0 and result.max() <= 1) ⏎ if True:
it looks at shape and range only: scrambled pixels pass; compare each number
    bool(… => bool(result.min() >= 0 and result.max() <= 1) ;; 2, 4, 3) => 2, 4, 3) * 11
it looks at the mean only, and that stays the same when pixels change places; compare each number
    if result… => return bool((result.mean() - expected.mean()).abs() < 1e-5) ⏎ if True:
it looks at each channel's mean only, and that stays the same when its pixels change places; compare
each number
    if result… => return bool((result - expected.mean((1, 2), True)).mean((1, 2)).abs().max() < 1e-5
        ) ⏎ if True:
    (result - expected).abs().max() => (result - expected).mean((1, 2)).abs().max()
it looks at one pixel only: what is wrong elsewhere passes; compare all of them
    (result - expected) => (result - expected)[:, 0, 0] ;; arange(24 => arange(9, 33
it compares to the last digit, and refuses a right conversion that rounds otherwise; torch.equal is
too strict here: let differences below 0.00001 pass
    return bool… => return torch.equal(result, expected) ;;
        arange(24, dtype=torch.uint8).reshape(2, 4 => arange(180, dtype=torch.uint8).reshape(6, 10
you expect what reshape makes; a right conversion moves the axes, pixels.permute(2, 0, 1) / 255
    pixels.permute(2, 0, 1) => pixels.reshape(3, *pixels.shape[:2])
you compare numbers from 0 to 255, where a right conversion may be more than 0.00001 off; compare
them from 0 to 1
    (result - expected) => (255 * result - 255 * expected)
it looks at differences with their sign, so a number that is too small passes: take .abs() first
    (result - expected).abs().max() => (result - expected).max()
it is too lenient: one that divides by 256 passes; only differences of less than 0.00001 are to be
forgiven
    1e-5 => 0.01 ;; 2, 4, 3) => 2, 4, 3) * 10
it stops with an error where the shapes differ; compare the shapes first, and return False when
they do
    if result… => if False:
it expects height and width swapped: the right answer is pixels.permute(2, 0, 1) / 255, of shape
(3, H, W)
    pixels.permute(2, 0, 1) => pixels.permute(2, 1, 0)
your picture is so regular that reshape puts its numbers into the right places by chance: take
numbers that all differ
    torch.arange… => torch.tensor([[[9, 0, 0], [0, 8, 0], [0, 0, 7]]], dtype=torch.uint8)
your picture is grey, so red and blue can be swapped unseen: make its channels differ
    torch.arange… => torch.arange(8, dtype=torch.uint8).reshape(2, 4, 1).repeat(1, 1, 3) * 9
your picture is a square of one colour, so height and width can be swapped unseen, left and right
too: give it different numbers, and make it wider than high
    torch.arange… => torch.tensor([200, 100, 50], dtype=torch.uint8).repeat(3, 3, 1)
your picture is one colour all over, so a mirrored one looks the same: give it different numbers
    torch.arange… => torch.tensor([200, 100, 50], dtype=torch.uint8).repeat(2, 4, 1)
your picture is black, and 0 / 255 is still 0: give it different numbers
    torch.arange(24, dtype=torch.uint8).reshape(2, 4, 3) => torch.zeros(2, 4, 3, dtype=torch.uint8)
your picture is one grey or white all over: scrambled pixels look the same; give it different
numbers
    torch.arange… => torch.full((2, 4, 3), 255, dtype=torch.uint8)
your picture is a square, one grey all over: swapped sides and scrambled pixels look the same; give
it different numbers, and make it wider than high
    torch.arange… => torch.full((3, 3, 3), 128, dtype=torch.uint8)
""",
)

BAR = 0.8  # the share that the reader must give to the 4


def is_read(picture: Any) -> Any:
    """Say what our reader makes of the picture."""
    if picture is None or picture is ...:
        return picture
    if not isinstance(picture, Tensor):
        return Verdict(f"it gives {kind_of(picture)}; give a tensor of floats, (1, 16, 16)")
    if not picture.is_floating_point():
        return Verdict(f"it holds {picture.dtype}; give floats, 0 for black and 1 for the strokes")
    if picture.shape != (1, 16, 16):
        return Verdict(f"its shape is {tuple(picture.shape)}; give (1, 16, 16), (C, H, W)")
    low, high = picture.min().item(), picture.max().item()
    if not (low >= 0 and high <= 1):
        return Verdict(f"it runs from {low:g} to {high:g}; give 0 for black and 1 for the strokes")
    if low == high:
        return Verdict(f"it is {low:g} all over: there is nothing to read")
    shares, *others = share_out(torch.stack([picture, *(turn(picture) for turn in TURNS.values())]))
    digit = int(shares.argmax())
    if digit == 4 and shares[4] >= BAR:
        return Verdict("it is read as a 4")
    for hint, other in zip(TURNS, others, strict=True):
        if int(other.argmax()) == 4 and other[4] >= BAR:
            return Verdict(f"the reader says {digit} ({shares[digit]:.1%}); {hint}")
    said = f"the reader says {digit} ({shares[digit]:.1%})"
    if digit != 4:
        said += f", and gives the 4 a share of {shares[4]:.1%}"
    return Verdict(f"{said}; the bar is {BAR:.0%}. Look at it by plots.picture(four())")


# What makes a 4 of a picture that is none, and what was then wrong with it.
TURNS: dict[str, Callable[[Tensor], Tensor]] = {
    "with rows and columns exchanged it is a 4: the row comes first, then the column": (
        lambda picture: picture.mT
    ),
    "turned over it is a 4: row 0 is the top, and numbers grow downwards": (
        lambda picture: picture.flip(1)
    ),
    "its negative is a 4: 0 is black, and the strokes are 1": lambda picture: 1 - picture,
}


def share_out(pictures: Tensor) -> Tensor:
    """Give our reader's shares (B, 10) for pictures (B, 1, 16, 16), from 0 to 1."""
    from vit_steps import normalize, weights  # only now: it reads the file of the weights

    with torch.no_grad():
        return weights.load("scattered").model(normalize(pictures)).softmax(dim=1)


four = Exercise(
    answer="""
def four():
    picture = torch.zeros(1, 16, 16)  # all black
    picture[0, 2:9, 4] = 1  # down, on the left
    picture[0, 8, 4:12] = 1  # across
    picture[0, 4:14, 9] = 1  # down, on the right
    return picture
""",
    why="Three strokes, each a slice of rows or of columns. The model never sees strokes: it gets "
    "256 numbers, and these are enough.",
    trials=[Trial("your picture", asked, say=is_read)],
    wrong="""
rows and columns are swapped, so your 4 lies on its side: the row comes first, then the column
    return picture => return picture.mT
it stands upside down: row 0 is the top, and numbers grow downwards
    return picture => return picture.flip(1)
black and white have changed places: 0 is black, and the strokes are 1
    return picture => return 1 - picture
the strokes are bytes, 255; these numbers run from 0 to 1, so ink is 1
    return picture => return 255 * picture
a batch axis is too much: this is one picture, (1, 16, 16)
    return picture => return picture[None]
the channel is missing: one channel is an axis too, so begin with torch.zeros(1, 16, 16)
    return picture => return picture[0]
nothing is drawn: all of it is black
    return picture => return torch.zeros(1, 16, 16)
""",
)


def channel_trial(channels: int, height: int, width: int) -> Trial:
    """Make a trial of an image of that size, with a mean and std for each channel."""
    mean = torch.tensor([0.485, 0.456, 0.406])[:channels]
    std = torch.tensor([0.229, 0.224, 0.225])[:channels]
    what = f"an image of {channels}×{height}×{width} (channels × height × width)"
    return call(what, shades(channels, height, width), mean, std)


normalize_channels = Exercise(
    answer="""
def normalize_channels(image, mean, std):
    mean, std = mean[:, None, None], std[:, None, None]  # (C, 1, 1)
    return (image - mean) / std
""",
    why="PyTorch lines shapes up from the right, so (C, 1, 1) meets (C, H, W) channel by channel. "
    "With (C,) alone the mean meets the width: an error for most pictures, and a silent mistake "
    "for one that is C pixels wide.",
    # In the cube of three a mean on the wrong axis broadcasts, and nothing raises.
    trials=[channel_trial(3, 3, 3), channel_trial(1, 4, 2)],
    wrong="""
mean and std meet the width: torch lines shapes up from the right, so (3,) meets the last axis, and
each column gets its own mean; give them the shape (3, 1, 1)
    mean[:, None, None], std[:, None, None] => mean, std
mean and std meet the height: (3, 1) lines up with the rows; one more axis on the right brings them
to the channels, (3, 1, 1)
    mean[:, None, None], std[:, None, None] => mean[:, None], std[:, None]
the result has a batch axis in front: make the mean (C, 1, 1), not (1, C, 1, 1)
    mean[:, None, None], std[:, None, None] => mean[None, :, None, None], std[None, :, None, None]
all channels get the same numbers; give each channel its own mean and std
    mean[:, None, None], std[:, None, None] => mean.mean(), std.mean()
all channels get the first channel's numbers; give each its own mean and std
    mean[:, None, None], std[:, None, None] => mean[0], std[0]
all channels get the same mean; give each its own
    mean[:, None, None] => mean.mean()
std is the same for all channels; give each its own
    std[:, None, None] => std.mean()
std does not meet the channels: give it the shape (3, 1, 1) too, as the mean has it
    std[:, None, None] => std ‖ std[:, None]
the mean does not meet the channels: give it the shape (3, 1, 1) too, as std has it
    mean[:, None, None] => mean ‖ mean[:, None]
the channels stand last: bring them back to the front, (C, H, W)
    (image - mean) / std => ((image - mean) / std).permute(1, 2, 0)
F.batch_norm adds 1e-5 to the variance before it takes the root; nothing is added here, eps=0
    (image - mean) / std => F.batch_norm(image[None], mean.flatten(), std.flatten() ** 2)[0]
the channels are put one below the other; torch.stack makes an axis of them, where torch.cat makes
none
    (image - mean) / std => torch.cat([*((image - mean) / std)])
it takes the picture's own mean; take the one that is given
    image - mean => image - image.mean(dim=(1, 2), keepdim=True)
it divides by the square of std, the variance; divide by std itself
    / std => / std**2
the mean is subtracted, but nothing is divided by std
    (image - mean) / std => image - mean
it divides by std, but no mean is subtracted
    (image - mean) / std => image / std
it multiplies by std; normalising divides, denormalising multiplies
    / std => * std
it adds the mean; normalising subtracts it
    image - mean => image + mean
this is the way back, denormalising: subtract the mean and divide by std instead
    (image - mean) / std => image * std + mean
it divides before it subtracts: put the difference in brackets, (image - mean) / std
    (image - mean) / std => image / std - mean
only the mean is divided by std, since / goes before -: put the difference in brackets,
(image - mean) / std
    (image - mean) / std => image - mean / std
it uses 0.5 for everything; use the mean and std that come in
    (image - mean) / std => (image - 0.5) / 0.5
it uses the picture's own mean and std; use those that come in
    (image - mean) / std => (image - image.mean((1, 2), True)) / image.std((1, 2), keepdim=True)
it divides by the root of std; std is the root of the variance already
    std[:, None, None]  # => std.sqrt()[:, None, None]  #
it is written for three channels, and an image of one channel fails; let the number of channels
come from the image or the mean
    image, mean, std): => image, mean, std): ⏎     image = image[[0, 1, 2]]
it changes the tensor that it was given: make a new one (image - mean, not image -= mean)
    image - mean => image.sub_(mean)
""",
)
