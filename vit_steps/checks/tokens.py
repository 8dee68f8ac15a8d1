"""Exercises of lesson 02."""

from collections.abc import Callable
from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from ..patches import patchify, unpatchify
from ..tokens import resize_positions
from ..vit import ViT, ViTConfig
from .engine import Check, Mistake, Trial, call


def numbered(*shape: int) -> Tensor:
    """A tensor that holds 0, 1, 2, …, so that each number tells where it came from."""
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)


def in_front(patches: Tensor, cls: Tensor) -> Tensor:
    return torch.cat([cls.expand(len(patches), 1, -1), patches], dim=1)


def gradient_of_cls(answer: Callable):
    cls = torch.ones(4, requires_grad=True)
    tokens = answer(numbered(2, 3, 4), cls)
    if isinstance(tokens, Tensor) and tokens.requires_grad:
        tokens.sum().backward()
    return "no gradient" if cls.grad is None else "a gradient"


prepend_cls = Check(
    reference=in_front,
    trials=[
        call("one image of 3 patches, width 4", numbered(1, 3, 4), -torch.ones(4)),
        call("five images of 2 patches, width 6", numbered(5, 2, 6), -1 - numbered(6)),
        Trial("whether cls can learn", gradient_of_cls),
    ],
    mistakes=[
        Mistake(
            "the cls token stands last; put it first, so that token 0 is cls whatever the number "
            "of patches",
            lambda x, cls: torch.cat([x, cls.expand(len(x), 1, -1)], dim=1),
        ),
        Mistake(
            "patch 0 is gone: cls is an extra token, so there is one token more than patches",
            lambda x, cls: in_front(x[:, 1:], cls),
        ),
        Mistake(
            "cls was added to every patch, by broadcasting; it must stand in front of them as a "
            "token of its own (torch.cat)",
            lambda x, cls: x + cls,
        ),
        Mistake(
            "the token in front is not the cls that was given: use the second argument, make no "
            "new one",
            lambda x, cls: in_front(x, torch.zeros_like(cls)) + 0 * cls.sum(),
        ),
        Mistake(
            "this works for one image only: torch.cat does not broadcast, so cls must be expanded "
            "to the batch first",
            lambda x, cls: torch.cat([cls[None, None], x], dim=1),
        ),
        Mistake(
            "the numbers are right, but no gradient reaches cls, so it would never learn; use it "
            "as it is, without .detach(), .data or torch.tensor(...)",
            lambda x, cls: in_front(x, cls.detach()),
        ),
    ],
)


Grid = tuple[int, int]


def window(pos_embed: Tensor, grid: Grid, top: int, left: int, new_grid: Grid) -> Tensor:
    (rows, cols), (new_rows, new_cols) = grid, new_grid
    picture = pos_embed[:, 1:].unflatten(1, (rows, cols))
    cut = picture[:, top : top + new_rows, left : left + new_cols]
    return torch.cat([pos_embed[:, :1], cut.flatten(1, 2)], dim=1)


def straight_on(pos_embed: Tensor, grid: Grid, top: int, left: int, new_grid: Grid) -> Tensor:
    """The wanted number of positions, read on from the first without minding the rows' ends."""
    first = 1 + top * grid[1] + left
    patches = pos_embed[:, first : first + new_grid[0] * new_grid[1]]
    return torch.cat([pos_embed[:, :1], patches], dim=1)


def one_early(pos_embed: Tensor, grid: Grid, top: int, left: int, new_grid: Grid) -> Tensor:
    """Counts cls as the first patch."""
    shifted = torch.cat([pos_embed[:, :1], pos_embed[:, :-1]], dim=1)
    return window(shifted, grid, top, left, new_grid)


crop_positions = Check(
    reference=window,
    trials=[
        call("a 3×4 grid, rows 1–2 and columns 1–3", numbered(1, 13, 2), (3, 4), 1, 1, (2, 3)),
        call("a 5×3 grid, rows 0–3 and columns 1–2", numbered(1, 16, 4), (5, 3), 0, 1, (4, 2)),
    ],
    mistakes=[
        Mistake(
            "the cls position is missing: keep pos_embed[:, :1] and put it in front again",
            lambda *given: window(*given)[:, 1:],
        ),
        Mistake(
            "every position comes one early: token 0 is cls, so the patch in row r, column c is "
            "token 1 + r·cols + c",
            one_early,
        ),
        Mistake(
            "these positions were read straight on, past the ends of the rows: a crop is a window "
            "of the grid, so give the patches back their rows and columns first",
            straight_on,
        ),
        Mistake(
            "rows and columns of the old grid are swapped: grid is (rows, cols)",
            lambda x, grid, *rest: window(x, grid[::-1], *rest),
        ),
        Mistake(
            "the window is right, but its positions run column by column; flatten (row col), as "
            "patchify does",
            lambda *given: torch.cat(
                [
                    given[0][:, :1],
                    rearrange(window(*given)[:, 1:], "b (r c) d -> b (c r) d", r=given[4][0]),
                ],
                dim=1,
            ),
        ),
        Mistake(
            "this squeezes the whole grid into the new one; a crop leaves things where they are, "
            "so take its positions as they are",
            lambda x, grid, top, left, new_grid: resize_positions(x, grid, new_grid),
        ),
    ],
)


PATCH_SIZE = 4
SIZE = (16, 24)  # 4×6 patches, so that a square cannot hide swapped sides

Read = Callable[[Tensor], Tensor]


def mean_of_pixels() -> Read:
    return lambda images: images.mean(dim=(2, 3))


def sum_of_patches() -> Read:
    """Minds where a pixel stands in its patch, and not where the patch stands."""
    weight = torch.arange(3.0 * PATCH_SIZE**2).double()
    return lambda images: (patchify(images, PATCH_SIZE) @ weight).sum(dim=1, keepdim=True)


def small_vit(set_positions: Callable[[Tensor], Tensor]) -> Read:
    config = ViTConfig(SIZE, PATCH_SIZE, num_classes=2, embed_dim=16, depth=2, num_heads=2)
    model = ViT(config).double().eval()
    model.tokens.pos_embed.data = set_positions(torch.randn(1, 25, 16).double())

    @torch.no_grad()
    def read(images: Tensor) -> Tensor:
        tokens: Any = model.features(images)
        return tokens[:, 0]

    return read


def alike_in_front(positions: Tensor) -> Tensor:
    """Positions that differ, but for those of the first two patches."""
    positions[:, 2] = positions[:, 1]
    return positions


def read_by(what: str, make: Callable[..., Read], *args: Callable[[Tensor], Tensor]) -> Trial:
    def run(answer: Callable):
        pixels = torch.randint(0, 256, (1, 3, *SIZE)).double() / 256
        verdict = call(what, make(*args), pixels, PATCH_SIZE).run(answer)
        return verdict.item() if isinstance(verdict, Tensor) else verdict

    return Trial(what, run)


def shuffled(images: Tensor, patch_size: int) -> Tensor:
    patches = patchify(images, patch_size)
    order = torch.randperm(patches.shape[1])
    height, width = images.shape[2:]
    return unpatchify(patches[:, order], patch_size, (height, width))


def blind(read: Read, images: Tensor, patch_size: int) -> bool:
    return torch.allclose(read(images), read(shuffled(images, patch_size)), atol=1e-5)


def exactly_blind(read: Read, images: Tensor, patch_size: int) -> bool:
    return torch.equal(read(images), read(shuffled(images, patch_size)))


def blind_to_pixels(read: Read, images: Tensor, patch_size: int) -> bool:
    return blind(read, images, 1)


def blind_to_a_swap(read: Read, images: Tensor, patch_size: int) -> bool:
    swapped = images.clone()
    swapped[..., :patch_size, :patch_size] = images[..., :patch_size, patch_size : 2 * patch_size]
    swapped[..., :patch_size, patch_size : 2 * patch_size] = images[..., :patch_size, :patch_size]
    return torch.allclose(read(images), read(swapped), atol=1e-5)


is_order_blind = Check(
    reference=blind,
    trials=[
        read_by("a model that gives the mean of all pixels", mean_of_pixels),
        read_by("a model that adds up what it finds in each patch", sum_of_patches),
        read_by("a ViT whose positions are all zero", small_vit, torch.zeros_like),
        read_by("a ViT with positions", small_vit, torch.clone),
        read_by("a ViT with positions, two of them equal", small_vit, alike_in_front),
    ],
    mistakes=[
        Mistake(
            "upside down: True means that the model does not notice the shuffle",
            lambda *given: not blind(*given),
        ),
        Mistake(
            "it says False whatever the model: compare what `read` gives for the two images, not "
            "the images",
            lambda *given: False,
        ),
        Mistake(
            "it says True whatever the model: does the shuffled image reach `read`, and are the "
            "numbers compared, not only the shapes?",
            lambda *given: True,
        ),
        Mistake(
            "the pixels inside the patches move too; move whole patches (patchify, permute, "
            "unpatchify)",
            blind_to_pixels,
        ),
        Mistake(
            "it asks for equal numbers to the last bit; another order of adding rounds "
            "differently, so allow 1e-5 (torch.allclose)",
            exactly_blind,
        ),
        Mistake(
            "it moves only the first two patches, and misses a model that tells others apart; "
            "shuffle all of them",
            blind_to_a_swap,
        ),
    ],
)
