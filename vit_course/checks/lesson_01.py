"""Build cells and exercises of lesson 01."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from vit_steps.images import load_image, normalize, sample_photo
from vit_steps.patches import patchify as cut

from .compare import Verdict, kind_of
from .engine import Check
from .exercise import Exercise
from .trials import Trial, call, module, numbered, then, untouched


def in_grid(images: Tensor, *sizes: int) -> Tensor:
    """The images, after a reshape to (B, *sizes), which fails where the sizes do not fit."""
    return images.reshape(len(images), *sizes).reshape(images.shape)


patchify = Exercise(
    answer="""
def patchify(images, patch_size):
    pattern = "b c (row p1) (col p2) -> b (row col) (p1 p2 c)"
    return rearrange(images, pattern, p1=patch_size, p2=patch_size)
""",
    uses={"in_grid": in_grid},
    trials=[
        call("the numbered 4×4 image, patch size 2", numbered(1, 1, 4, 4), 2),
        call("six 3-channel images of 8×20 pixels, patch size 4", numbered(6, 3, 8, 20), 4),
    ],
    wrong="""
the pixels are scrambled: view and reshape read the memory straight on, across the patch borders;
split H and W first, then permute
    rearrange(images, pattern, p1=patch_size, p2=patch_size) =>
        images.reshape(len(images), -1, patch_size * patch_size * images.shape[1])
rows and columns of patches are swapped: token 1 is the patch below token 0; in (row col) the
column changes fastest
    b (row col) => b (col row)
inside a patch, rows and columns are swapped: it is transposed; in (p1 p2 c) the pixels of a row
stand together
    (p1 p2 c) => (p2 p1 c)
height and width are swapped throughout: the patches run down the columns, and each is transposed
    images, pattern => images.mT, pattern
inside a patch, the channels come first; each pixel's channels must stand together: (p1 p2 c)
    (p1 p2 c) => (c p1 p2)
inside a patch, the channels stand between its rows and its columns; each pixel's channels must
stand together: (p1 p2 c)
    (p1 p2 c) => (p1 c p2)
a token takes P·P pixels of one row of the image, since p1 stands before col: bring the axes into
the order (B, row, col, p1, p2, C), then merge
    rearrange(images, pattern, p1=patch_size, p2=patch_size) =>
        images.movedim(1, 3).reshape(len(images), -1, patch_size * patch_size * images.shape[1])
each channel is cut by itself, and its patches follow each other; move C to the end, (B, row, col,
p1, p2, C), before you merge
    b (row col) (p1 p2 c) => b (c row col p1 p2) ;;
        p2=patch_size) => p2=patch_size).reshape(
        len(images), -1, patch_size * patch_size * images.shape[1])
each token takes every second pixel, from all over the image: the patch axes and the grid axes are
mixed up; (row p1), not (p1 row)
    (row p1) (col p2) => (p1 row) (p2 col)
the patches still stand in a grid, (B, row, col, P·P·C): merge row and col into one axis
    b (row col) => b row col
the patches are not flat yet: merge what is inside a patch into one axis, (p1 p2 c)
    (p1 p2 c) => p1 p2 c
    (p1 p2 c) => c p1 p2
the patches are one axis with the batch: keep b alone, and merge (row col)
    b (row col) => (b row col)
what it gives is (B, P·P·C, n): the patches come second, what is in them last
    b (row col) (p1 p2 c) => b (p1 p2 c) (row col)
what F.unfold gives is (B, C·P·P, n): swap the last two axes, and inside a patch bring each pixel's
channels together
    b (row col) (p1 p2 c) => b (c p1 p2) (row col)
each channel makes tokens of its own; a patch holds all channels: (p1 p2 c)
    b (row col) (p1 p2 c) => b (c row col) (p1 p2)
it is written for three channels; let C come from images.shape
    images, pattern => in_grid(images, 3, images.shape[2] // patch_size, patch_size,
        images.shape[3] // patch_size, patch_size), pattern
only the first image of the batch is cut; keep the axis b, or go through all images
    images, pattern => images[:1], pattern
it gives one mean for each patch and channel: keep all numbers of a patch
    (p1 p2 c) => p1 p2 c ;; p2=patch_size) => p2=patch_size).mean(dim=(2, 3))
it gives a list of patches; torch.stack(patches, dim=1) joins them to (B, n, P·P·C)
    p2=patch_size) => p2=patch_size).unbind(dim=1)
it changes the tensor that it was given, `images`: make a new one (x + y, not x += y)
    images, pattern => images.add_(1), pattern
it is right for square images only: rows and columns of patches are two numbers, H / P and W / P;
count each on its own
    images, pattern => in_grid(images, images.shape[1], images.shape[2] // patch_size, patch_size,
        images.shape[2] // patch_size, patch_size), pattern
    images, pattern => in_grid(images, images.shape[1], images.shape[3] // patch_size, patch_size,
        images.shape[3] // patch_size, patch_size), pattern
    p1=patch_size => row=images.shape[2] // patch_size, col=images.shape[2] // patch_size,
        p1=patch_size
    images, pattern => images[..., : images.shape[2]], pattern
height and width are taken for each other: images is (B, C, H, W), the height before the width
    images, pattern => images.reshape(*images.shape[:2], images.shape[3], images.shape[2]), pattern
the patches overlap: after each patch, move on by patch_size pixels, not by one; F.unfold takes
stride=patch_size
    rearrange(images, pattern, p1=patch_size, p2=patch_size) => F.unfold(images, patch_size).mT
    rearrange(images, pattern, p1=patch_size, p2=patch_size) =>
        rearrange(F.unfold(images, patch_size), "b (c p) n -> b n (p c)", c=images.shape[1])
the patch size is a fixed number (16?): take patch_size
    p1=patch_size, p2=patch_size => p1=16, p2=16
    p1=patch_size, p2=patch_size => p1=2, p2=2
    images, pattern => in_grid(images, images.shape[1], images.shape[2] // 16, 16,
        images.shape[3] // 16, 16), pattern
""",
    slips={
        r"\b(14|196|224)\b": "a photo's 14 rows and columns of patches, 196 in all, are built in; "
        "work them out from H, W and P"
    },
)


PatchEmbedding = Exercise(
    answer="""
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, embed_dim):
        super().__init__()
        self.proj = nn.Conv2d(in_channels, embed_dim, patch_size, stride=patch_size)

    def forward(self, images):  # (B, C, H, W)
        x = self.proj(images)  # (B, D, rows, columns)
        return rearrange(x, "b d row col -> b (row col) d")  # (B, n, D)
""",
    trials=[
        module(
            "2 images of 8×8 pixels, patch size 2, 3 channels, 5 features",
            (8, 2, 3, 5),
            numbered(2, 3, 8, 8).sin(),
        ),
        module(
            "an image of 6×15 pixels, patch size 3, 4 channels, 7 features",
            ((6, 15), 3, 4, 7),
            numbered(1, 4, 6, 15).sin(),
        ),
    ],
    wrong="""
what it gives is (B, D, n): the features come last, so swap the last two axes
    b (row col) d => b d (row col)
the shape is right, but reshape only puts the brackets elsewhere: the features of different patches
are mixed; merge the grid with flatten(2), then swap the axes with transpose(1, 2)
    rearrange(x, "b d row col -> b (row col) d") => x.reshape(len(x), -1, x.shape[1])
the tokens are still a grid: merge its rows and columns into one axis, (B, n, D)
    b (row col) d => b d row col
    b (row col) d => b row col d
the grid is read column by column: token 1 is the patch below token 0; read it row by row, as
flatten(2) does
    b (row col) d => b (col row) d
all features stand in one row for the whole image: keep one row for each patch, (B, n, D)
    b (row col) d => b (d row col)
    b (row col) d => b (row col d)
it gives one mean for the whole image: keep one row for each patch, (B, n, D)
    rearrange(x, "b d row col -> b (row col) d") => x.mean(dim=(2, 3))
the tokens are cut off from `proj`, which could never learn: no detach and no torch.no_grad() here
    self.proj(images) => self.proj(images).detach()
an activation follows the convolution: leave the ReLU or GELU out, nothing comes after `proj`
    self.proj(images) => self.proj(images).relu()
    self.proj(images) => F.gelu(self.proj(images))
the bias of `proj` is left out: call self.proj(images)
    self.proj(images) => F.conv2d(images, self.proj.weight, stride=self.proj.stride)
the convolution moves on by one pixel, so its windows overlap: give it stride=patch_size
    , stride=patch_size =>
the convolution moves on by image_size // patch_size, the number of patches; it must move on by
patch_size
    stride=patch_size => stride=image_size // patch_size
image_size may also be a pair, (height, width); nothing here needs it, so leave it out
    self.proj = nn => self.grid = image_size // patch_size ⏎ self.proj = nn
proj has no bias: published weights have one, so leave bias as it is
    stride=patch_size => stride=patch_size, bias=False
proj is a Linear; the numbers are right, but published weights have a convolution there: make it an
nn.Conv2d on the images
    nn.Conv2d(in_channels, embed_dim, patch_size, stride=patch_size) =>
        nn.Linear(patch_size * patch_size * in_channels, embed_dim) ⏎ self.side = patch_size ;;
        x = self.proj(images) => return self.proj(patchify(images, self.side))
the patch size is a fixed number (16?): take patch_size
    patch_size, stride=patch_size => 16, stride=16
    patch_size, stride=patch_size => 16, stride=patch_size
    stride=patch_size => stride=16
the convolution has padding, so its windows begin outside the image: leave padding at 0
    stride=patch_size => stride=patch_size, padding=1
in_channels and embed_dim are swapped: nn.Conv2d takes first what comes in, then what goes out
    Conv2d(in_channels, embed_dim => Conv2d(embed_dim, in_channels
it is written for three channels: take in_channels
    Conv2d(in_channels => Conv2d(3
the sizes of ViT-B/16 are built in: take patch_size, in_channels and embed_dim as they come in
    Conv2d(in_channels, embed_dim, patch_size, stride=patch_size) => Conv2d(3, 768, 16, stride=16)
the convolution is made anew in each call, so it can never learn: make it once, in `__init__`, as
self.proj
    self.proj = nn => self.make = lambda: nn ;; self.proj(images) => self.make()(images)
""",
)


def place(y: int, x: int, width: int, p: int) -> tuple[int, int]:
    return (y // p) * (width // p) + x // p, (y % p) * p + x % p


def placed(change: Callable) -> Callable:
    """A wrong answer: the right numbers of the patch and the pixel, put through `change`."""
    return then(place, lambda numbers: change(*numbers))


def patch_number(number: Callable) -> Callable:
    """A wrong answer that numbers the patches otherwise."""
    return lambda y, x, width, p: (number(y, x, width, p), place(y, x, width, p)[1])


def pixel_number(number: Callable) -> Callable:
    """A wrong answer that numbers the pixels of a patch otherwise."""
    return lambda y, x, width, p: (place(y, x, width, p)[0], number(y, x, width, p))


TRANSPOSED = (
    "inside the patch, rows and columns are swapped: in reading order it is (y % P) rows of P "
    "pixels, and then x % P"
)
COLUMN_BY_COLUMN = (
    "the patches are counted column by column: in reading order it is (y // P) rows of patches, "
    "and then x // P"
)

patch_of = Check(
    reference=place,
    trials=[
        call("y = 17, x = 5, an image 48 pixels wide, patch size 16", 17, 5, 48, 16),
        call("y = 26, x = 17, an image 35 pixels wide, patch size 7", 26, 17, 35, 7),
        call("y = 100, x = 40, an image 96 pixels wide, patch size 32", 100, 40, 96, 32),
        call("y = 2, x = 223, an image 224 pixels wide, patch size 16", 2, 223, 224, 16),
    ],
    mistakes={
        "y and x are swapped: y is the row, from above, and x the column, "
        "from the left": lambda y, x, width, p: place(x, y, width, p),
        "the number of the patch takes the image's width in pixels; it counts in patches, not in "
        "pixels: a row holds "
        "image_width // P of them": patch_number(lambda y, x, width, p: (y // p) * width + x // p),
        "the number of the patch takes P for the length of a row: how many "
        "patches stand in a row?": patch_number(lambda y, x, width, p: (y // p) * p + x // p),
        COLUMN_BY_COLUMN: patch_number(lambda y, x, w, p: (x // p) * (w // p) + y // p),
        "with / the result is a broken number: use // to count whole patches": (
            patch_number(lambda y, x, width, p: y / p * (width / p) + x / p),
            patch_number(lambda y, x, width, p: (y / p) * (width // p) + x / p),
        ),
        "both numbers are one too large: count from 0": placed(
            lambda patch, pixel: (patch + 1, pixel + 1)
        ),
        "the number of the patch is one too large: count from 0": placed(
            lambda patch, pixel: (patch + 1, pixel)
        ),
        "the number of the pixel is one too large: count from 0": placed(
            lambda patch, pixel: (patch, pixel + 1)
        ),
        "the second number counts in the whole image; count inside the patch: how far is the pixel "
        "from the patch's corner? % says it": pixel_number(lambda y, x, width, p: y * width + x),
        TRANSPOSED: pixel_number(lambda y, x, width, p: (x % p) * p + y % p),
        "the number of the pixel takes a row as long as the image's; a row inside a patch has P "
        "pixels": pixel_number(lambda y, x, width, p: (y % p) * width + x % p),
        "this is the number of the patch alone; give the pixel's number in it beside it, (patch, "
        "pixel)": placed(lambda patch, pixel: patch),
        "these are row and column of the patch; make one number of them, counted in reading order, "
        "and give the pixel's number beside it": lambda y, x, width, p: (y // p, x // p),
        "the two are in the other order: first the patch, then the pixel in it": placed(
            lambda patch, pixel: (pixel, patch)
        ),
        "a row of 14 patches of 16 pixels is built in: "
        "take image_width and patch_size": lambda y, x, width, p: place(y, x, 224, 16),
        "the numbers are right, but they are floats: a number of a patch is an int; use //": placed(
            lambda patch, pixel: (float(patch), float(pixel))
        ),
    },
)


def to_conv(weight: Tensor, c: int, p: int) -> Tensor:
    return rearrange(weight, "d (p1 p2 c) -> d c p1 p2", p1=p, p2=p, c=c)


conv_weight = Check(
    reference=to_conv,
    trials=[
        call("5 templates for 3 channels, patch size 2", numbered(5, 12), 3, 2),
        call("7 templates for 2 channels, patch size 3", numbered(7, 18), 2, 3),
    ],
    mistakes={
        "the shape is right, but reshape alone reads (p1 p2 c) as if it were (c p1 p2): the "
        "colours are scrambled; first give each axis its own place, "
        "then permute": lambda w, c, p: w.reshape(-1, c, p, p),
        "rows and columns inside the patch are swapped: every patch is seen transposed": then(
            to_conv, lambda weight: weight.mT
        ),
        "the channels are last: a convolution's weight is (D, C, P, P)": lambda w, c, p: w.reshape(
            -1, p, p, c
        ),
        "what it gives is (C, D, P, P): the templates come first, then the channels": then(
            to_conv, lambda weight: weight.transpose(0, 1)
        ),
        "the row is split as (P, C, P), but it was merged as (P, P, C): pixel rows, in them the "
        "pixels, in "
        "them the channels": lambda w, c, p: rearrange(w, "d (p1 c p2) -> d c p1 p2", p1=p, p2=p),
        "the templates are turned upside down: PyTorch's convolution does not flip them, so leave "
        "their order": then(to_conv, lambda weight: weight.flip(2, 3)),
        "this is still the Linear's weight, (D, P·P·C): "
        "give each axis its own place": lambda w, c, p: w,
        "it is written for three channels: take `channels`": lambda w, c, p: w.reshape(
            -1, p, p, 3
        ).permute(0, 3, 1, 2),
        "the numbers are divided by P·P; no number changes here, they only move": lambda w, c, p: (
            to_conv(w, c, p) / p**2
        ),
        "it changes the tensor that it was given, `weight`: "
        "make a new one (x + y, not x += y)": lambda weight, c, p: to_conv(weight.mul_(2), c, p),
    },
)


BAR = 180
TINY = torch.tensor([[1.0, 0, 0, 0], [3, 1, 0, 0], [1, 3, 1, 0]])


@cache
def photo_patches() -> Tensor:
    """The photo's patches, (196, 768), normalised."""
    return cut(normalize(load_image(sample_photo()))[None], 16)[0]


def finds(what: str, patches: Callable[[], Tensor], bar: int) -> Trial:
    """A trial of a recipe for templates: how many of them find their own patch."""

    def run(answer: Callable) -> Any:
        cases = patches()
        n = len(cases)
        try:
            result = untouched(answer, cases)
        except (RuntimeError, IndexError, ValueError):
            if n > 9:
                raise
            return Verdict("it fails on them: are 196 patches, or their 768 numbers, built in?")
        if result is None or result is ... or isinstance(result, Verdict):
            return result
        if not isinstance(result, Tensor) or result.shape != cases.shape:
            wanted = f"it must be a tensor of shape {tuple(cases.shape)}, one template a row"
            return Verdict(f"it gives {kind_of(result)}; {wanted}")
        answers = cases @ result.detach().to(cases.dtype).T  # row j: what patch j answers to each
        own = answers.diagonal().clone()
        others = answers.fill_diagonal_(float("-inf")).amax(dim=0)
        found = (own > others).sum().item()
        if found >= bar:
            return Verdict("enough of them")
        said = f"{found} of {n} templates find their own patch; the bar is {bar}"
        if n > 9:
            return Verdict(said)
        missed = [str(i) for i in range(n) if not own[i] > others[i]]
        return Verdict(f"{said}; those that do not: {', '.join(missed)}")

    return Trial(what, run)


def perceptron(patches: Tensor, dim: int = 0) -> Tensor:
    """Turn each template towards its own patch and away from the one that answers loudest."""
    made = patches
    for _ in range(50):
        loudest = (patches @ made.T).argmax(dim=dim)
        made = made + patches - patches[loudest]
    return made


templates = Check(
    reference=perceptron,
    trials=[
        finds("the photo's 196 patches", photo_patches, BAR),
        finds("three patches of four numbers", lambda: TINY, 3),
    ],
    mistakes={
        "these find what the patches themselves find, and no more: to many of them a patch with "
        "large numbers is louder; turn each template away from the patch that is "
        "louder": lambda patches: patches,
        "taking the mean patch away does not help: the loud patches are still the loud ones; turn "
        "each template away from the patch that answers "
        "it loudest": lambda patches: patches - patches.mean(dim=0),
        "taking from each patch its own mean does not help enough: the patches with strong edges "
        "are loud now; turn each template away from the patch "
        "that answers it loudest": lambda patches: patches - patches.mean(dim=1, keepdim=True),
        "none finds its own patch: so do templates that are random, and those that are the "
        "opposite of their patch; start from the patches as they are": lambda patches: -patches,
        "all templates are the same, so the same patch answers all of them loudest; make each from "
        "its own patch": lambda patches: torch.ones_like(patches),
        "argmax runs along the other axis: `(patches @ templates.T)[j, i]` is what patch j answers "
        "to template i, so the loudest patch of each template "
        "is argmax(dim=0)": lambda patches: perceptron(patches, dim=1),
        "the templates are the columns of what it gives: "
        "give one template a row, by .T": lambda patches: perceptron(patches).T,
        "these are answers, (n, n), or as many numbers; give the templates, one a row and as long "
        "as a patch": lambda patches: patches @ patches.T,
        "this is one number; give the templates, one a row and "
        "as long as a patch": lambda patches: patches.sum(),
        "it is written for 196 patches: let the number come from len(patches)": lambda patches: (
            torch.eye(196) @ perceptron(patches)
        ),
        "it changes the tensor that it was given, `patches`: "
        "begin with patches.clone()": lambda patches: patches.add_(1),
    },
)
