"""Build cells and exercises of lesson 01."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from vit_course.canvases import scattered
from vit_steps.images import load_image, normalize, sample_photo
from vit_steps.patches import patchify as cut
from vit_steps.vit import ViT

from .compare import Verdict, kind_of
from .exercise import Exercise
from .trials import Trial, call, module, numbered, untouched


def best_linears(reader: ViT, shuffle: Callable, whole: bool = False) -> tuple[float, float]:
    """Find the Linears that make the reader's tokens of shuffled pictures, one for each patch.

    By least squares on 2,000 training digits; what comes after the patch embedding stays.

    Args:
        reader: of canvases (B, 1, 16, 16) in patches of 4×4.
        shuffle: scrambles canvases, all in the same way.
        whole: whether each Linear sees the whole scrambled canvas, and not its patch alone.

    Returns:
        The share of the tokens' variance that these Linears miss, and, on 2,000 other digits, the
        share of right answers with their tokens.
    """

    def seen(images: Tensor) -> Tensor:  # (n, B, numbers + 1): by place, with a 1 for the bias
        x = shuffle(images)
        x = x.flatten(1).expand(16, -1, -1) if whole else cut(x, 4).transpose(0, 1)
        return F.pad(x, (0, 1), value=1.0)

    train, test = scattered(2000, seed=0), scattered(2000, seed=1, held_out=True)
    right = reader.patch_embed(train.images).transpose(0, 1)  # (n, B, D)
    found = torch.linalg.lstsq(seen(train.images).double(), right.double()).solution.float()
    missed = (right - seen(train.images) @ found).var(dim=1).sum() / right.var(dim=1).sum()
    tokens = reader.tokens((seen(test.images) @ found).transpose(0, 1))
    answers = reader.head(reader.norm(reader.blocks(tokens))[:, 0]).argmax(dim=-1)
    return missed.item(), (answers == test.labels).float().mean().item()


def in_grid(images: Tensor, *sizes: int) -> Tensor:
    """Give the images, after a reshape to (B, *sizes), which fails where they do not fit."""
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
images are (B, C, H, W): the channels come second, "b c (row p1) (col p2)"
    "b c (row p1) (col p2) => "b (row p1) (col p2) c
you split the axes and did not sort them: row and col share the first bracket, p1, p2, c the last
    (row col) (p1 p2 c) => (row p1) (col p2 c)
the pixels are scrambled: view and reshape read the memory straight on, across the patch borders;
split H and W first, then permute
    rearrange… => images.reshape(len(images), -1, patch_size * patch_size * images.shape[1])
rows and columns of patches are swapped: token 1 is the patch below token 0; in (row col) the
column, which counts the width, changes fastest
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
    rearrange… => images.movedim(1, 3).reshape(len(images), -1, patch_size**2 * images.shape[1])
each channel is cut by itself, and its patches follow each other; move C to the end, (B, row, col,
p1, p2, C), before you merge
    b (row col) (p1 p2 c) => b (c row col p1 p2) ;; p2=patch_size) => p2=patch_size).reshape(
        len(images), -1, patch_size * patch_size * images.shape[1])
each token takes every second pixel, from all over the image: the patch axes and the grid axes are
mixed up; (row p1), not (p1 row)
    (row p1) (col p2) => (p1 row) (p2 col)
the patches still stand in a grid, (B, row, col, P·P·C): merge row and col into one axis
    b (row col) => b row col
the patches are not flat yet: merge what is inside a patch into one axis, (p1 p2 c)
    (p1 p2 c) => p1 p2 c ‖ c p1 p2
the patches are one axis with the batch: keep b alone, and merge (row col)
    b (row col) => (b row col)
it sorts by the place in a patch: which patch goes in front, (row col), and where in it goes last
    b (row col) (p1 p2 c) => b (p1 p2) (row col c)
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
the last row and the last column of patches are missing: a range ends before its stop
    images, pattern => images[..., :-patch_size, :-patch_size], pattern
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
    p1=patch_size => row=images.shape[2] // patch_size, col=images.shape[2] // patch_size,
        p1=patch_size
    images, pattern => images[..., : images.shape[2]], pattern
it is written for square images of three channels; rows and columns of patches are two numbers, and
C is a third: let all come from images.shape
    images, pattern => in_grid(images, 3, images.shape[2] // patch_size, patch_size,
        images.shape[2] // patch_size, patch_size), pattern
height and width are taken for each other: images is (B, C, H, W), the height before the width
    images, pattern => images.reshape(*images.shape[:2], images.shape[3], images.shape[2]), pattern
the patches overlap: after each patch, move on by patch_size pixels, not by one; F.unfold takes
stride=patch_size
    rearrange(images, pattern, p1=patch_size, p2=patch_size) => F.unfold(images, patch_size).mT ‖
        rearrange(F.unfold(images, patch_size), "b (c p) n -> b n (p c)", c=images.shape[1])
the patch size is a fixed number (16?): take patch_size
    p1=patch_size, p2=patch_size => p1=16, p2=16 ‖ p1=2, p2=2
""",
    slips={
        r"one side of expression.*'c'": "`c` is on one side of the arrow alone: a patch holds all "
        "channels of its pixels, so where do they go in it?",
        r"in chunks of 16|shape '\[\d+, \d+, 0, 16": "the patch size is a fixed number, 16: take "
        "patch_size",
        "Axis p2 is not used": "only the height is split, which cuts bands, as above; a patch "
        "splits the width too",
        r"\b(14|196|224)\b": "a photo's 14 rows and columns of patches, 196 in all, are built in; "
        "work them out from H, W and P",
    },
    does="A picture goes in, and its patches come out in reading order, each one flat.",
    why="The pattern names each axis once: what is split stands in a bracket on the left, what is "
    "merged in a bracket on the right. In a bracket the last name changes fastest, so `(row col)` "
    "counts the patches in reading order and `(p1 p2 c)` keeps the channels of a pixel together.",
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
reshape only puts the brackets elsewhere, so the shape is right, but the features of different
patches are mixed; merge the grid with flatten(2), then swap the axes with transpose(1, 2)
    rearrange(x, "b d row col -> b (row col) d") => x.reshape(len(x), -1, x.shape[1])
the tokens are still a grid: merge its rows and columns into one axis, (B, n, D)
    b (row col) d => b d row col ‖ b row col d
its columns are merged with the features; merge rows with columns, (B, n, D)
    b (row col) d => b row (col d)
the grid is read column by column: token 1 is the patch below token 0; read it row by row, as
flatten(2) does
    b (row col) d => b (col row) d
all features stand in one row for the whole image: keep one row for each patch, (B, n, D)
    b (row col) d => b (d row col) ‖ b (row col d)
it gives one mean for the whole image: keep one row for each patch, (B, n, D)
    rearrange(x, "b d row col -> b (row col) d") => x.mean(dim=(2, 3))
the tokens are cut off from `proj`, which could never learn: no detach and no torch.no_grad() here
    self.proj(images) => self.proj(images).detach()
an activation follows the convolution: leave the ReLU or GELU out, nothing comes after `proj`
    self.proj(images) => self.proj(images).relu() ‖ F.gelu(self.proj(images))
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
    does="Every patch becomes a token, and training can choose what its numbers mean.",
    why="The convolution has one template a feature and moves on by the side of a patch, so it "
    "meets each patch once. Its grid (B, D, rows, columns) becomes a row of tokens when rows and "
    "columns are merged and the features go last.",
)


conv_weight = Exercise(
    answer="""
def conv_weight(weight, channels, patch_size):
    pattern = "d (p1 p2 c) -> d c p1 p2"
    return rearrange(weight, pattern, p1=patch_size, p2=patch_size, c=channels)
""",
    trials=[
        call("6 templates for 2 channels, patch size 3", numbered(6, 18), 2, 3),
        call("2 templates for 3 channels, patch size 4", numbered(2, 48), 3, 4),
    ],
    wrong="""
(p1 p2 c) is read as if it were (c p1 p2), as a reshape alone reads it: the colours are
scrambled; first give each axis its own place, then permute
    d (p1 p2 c) => d (c p1 p2)
rows and columns inside the patch are swapped: every patch is seen transposed
    d c p1 p2 => d c p2 p1
the channels are last: a convolution's weight is (D, C, P, P)
    d c p1 p2 => d p1 p2 c
what it gives is (C, D, P, P): the templates come first, then the channels
    d c p1 p2 => c d p1 p2
the row is split as (P, C, P), but it was merged as (P, P, C): pixel rows, in them the pixels, in
them the channels
    d (p1 p2 c) => d (p1 c p2)
the templates are turned upside down: PyTorch's convolution does not flip them, so leave their order
    c=channels) => c=channels).flip(2, 3)
this is still the Linear's weight, (D, P·P·C): give each axis its own place
    return… => return weight
reshape alone reads (p1 p2 c) as if it were (c p1 p2), so the colours are scrambled, and three
channels are built in: give each axis its own place, take `channels`, then permute
    return… => return weight.reshape(len(weight), 3, patch_size, patch_size)
it is written for three channels: take `channels`
    return… => return weight.reshape(-1, patch_size, patch_size, 3).permute(0, 3, 1, 2)
    c=channels => c=3
p1 and p2 are patch_size, and c is `channels`: is one of them a fixed number, or another size?
    p1=patch_size, p2=patch_size => p1=16, p2=16
the numbers are divided by P·P, or by P; no number changes here, they only move
    c=channels) => c=channels) / patch_size**2
    c=channels) => c=channels) / patch_size
it changes the tensor that it was given, `weight`: make a new one (x + y, not x += y)
    weight, pattern => weight.mul_(2), pattern
""",
    why="A row of the Linear is a template in the order of a patch, so it is split as a patch is "
    "merged, `(p1 p2 c)`. Then the channels move to the front. No number changes.",
)


BAR = 180
TINY = torch.tensor([[1.0, 0, 0, 0], [3, 1, 0, 0], [1, 3, 1, 0]])


@cache
def photo_patches() -> Tensor:
    """Cut the photo into patches, (196, 768), normalised."""
    return cut(normalize(load_image(sample_photo()))[None], 16)[0]


def fitting(answer: Callable, cases: Tensor) -> Any:
    """Give the templates that a recipe makes of these patches."""
    try:
        return untouched(answer, cases)
    except (RuntimeError, IndexError, ValueError):
        if len(cases) > 9:
            raise
        return Verdict("it fails on them: are 196 patches, or their 768 numbers, built in?")


def finds(what: str, patches: Callable[[], Tensor], bar: int) -> Trial:
    """Make a trial of a recipe for templates: how many of them find their own patch."""

    def say(result: Any, cases: Tensor) -> Any:
        n = len(cases)
        if result is None or result is ...:
            return result
        if not isinstance(result, Tensor) or result.shape != cases.shape:
            right = f"it must be a tensor of shape {tuple(cases.shape)}, one template a row"
            return Verdict(f"it gives {kind_of(result)}; {right}")
        answers = cases @ result.detach().to(cases.dtype).T  # row j: what patch j answers to each
        to_others = answers.clone().fill_diagonal_(float("-inf")).amax(dim=0)
        missed = (~(answers.diagonal() > to_others)).nonzero().flatten().tolist()
        if n - len(missed) >= bar:
            return Verdict("enough of them")
        which = "" if n > 9 else f"; those that do not: {', '.join(map(str, missed))}"
        found = f"{n - len(missed)} of {n} templates find their own patch"
        return Verdict(f"{found}; the bar is {bar}{which}")

    return Trial(what, fitting, lambda: [patches()], say)


templates = Exercise(
    answer="""
def templates(patches):
    made = patches
    for _ in range(50):
        first = (patches @ made.T).argmax(dim=0)
        made = made + patches - patches[first]
    return made
""",
    trials=[
        finds("the photo's 196 patches", photo_patches, BAR),
        finds("three patches of four numbers", lambda: TINY, 3),
    ],
    wrong="""
these find what the patches themselves find, and no more: a patch with large numbers gives many of
them the largest answer; turn each template towards its own patch, and away from the one that comes
before it
    range(50) => range(0)
taking the mean patch away does not help: the patches with large numbers still come first; turn each
template away from the patch that gives it the largest answer
    return made => return patches - patches.mean(dim=0)
taking from each patch its own mean does not help enough: now the patches with strong edges come
first; turn each template away from the patch that gives it the largest answer
    return made => return patches - patches.mean(dim=1, keepdim=True)
one step is not enough: turn the templates in many small steps, and let each step see what the last
one made
    range(50) => range(1)
a patch that comes first for its own template is taken away from itself here: add each template's
own patch to it, subtract the one that comes first, and do so many times
    range(50) => range(1) ;; made + patches => patches
the signs are turned: add each template's own patch, and subtract the one that comes first for it
    made + patches - patches[first] => made - patches + patches[first]
none finds its own patch: so do templates that are random, and those that are the opposite of their
patch; start from the patches as they are
    return made => return -patches
all templates are the same, so the same patch comes first for all of them; make each from its own
patch
    return made => return torch.ones_like(patches)
argmax runs along the other axis: `(patches @ templates.T)[j, i]` is what patch j answers to
template i, so the patch that comes first for each template is argmax(dim=0)
    argmax(dim=0) => argmax(dim=1)
the templates are the columns of what it gives: give one template a row, by .T
    return made => return made.T
these are answers, (n, n), or as many numbers; give the templates, one a row and as long as a patch
    return made => return patches @ made.T
this is one number; give the templates, one a row and as long as a patch
    return made => return (patches @ made.T).sum()
it is written for 196 patches: let the number come from len(patches)
    return made => return torch.eye(196) @ made
it changes the tensor that it was given, `patches`: begin with patches.clone()
    made = made + patches => made += patches
""",
    why="Where another patch comes before its own, a template turns: its own patch is added, the "
    "other one subtracted. Where its own comes first, the two cancel and nothing changes. This is "
    "the idea of Rosenblatt's *perceptron* of 1958.",
)
