"""Answers to lesson 02's build cell and exercises, as learners would write them."""

import random

import torch
from einops import rearrange
from torch import nn
from torch.nn import functional as F

from vit_steps import patchify, unpatchify

# The build cell: the learner writes `forward`, and `__init__` is given ----------------------------


# Exercise 1: positions for a crop -----------------------------------------------------------------


def crop_by_index(pos_embed, grid, top, left, new_grid):
    keep = [0]
    for row in range(top, top + new_grid[0]):
        for col in range(left, left + new_grid[1]):
            keep.append(1 + row * grid[1] + col)
    return pos_embed[:, keep]


def crop_by_mask(pos_embed, grid, top, left, new_grid):
    mask = torch.zeros(grid, dtype=torch.bool)
    mask[top : top + new_grid[0], left : left + new_grid[1]] = True
    return pos_embed[:, torch.cat([torch.ones(1, dtype=torch.bool), mask.flatten()])]


def crop_by_view(pos_embed, grid, top, left, new_grid):
    picture = pos_embed[0, 1:].reshape(grid[0], grid[1], -1)
    picture = picture[top:, left:][: new_grid[0], : new_grid[1]]
    return torch.cat([pos_embed[0, :1], picture.flatten(0, 1)])[None]


def crop_by_einops(pos_embed, grid, top, left, new_grid):
    (rows, cols), (high, wide) = grid, new_grid
    picture = rearrange(pos_embed[:, 1:], "b (r c) d -> b r c d", r=rows, c=cols)
    picture = picture[:, top : top + high, left : left + wide]
    return torch.cat([pos_embed[:, :1], rearrange(picture, "b r c d -> b (r c) d")], dim=1)


def crop_without_cls(pos_embed, grid, top, left, new_grid):
    return crop_by_index(pos_embed, grid, top, left, new_grid)[:, 1:]


def crop_forgot_cls(pos_embed, grid, top, left, new_grid):
    rows = range(top, top + new_grid[0])
    cols = range(left, left + new_grid[1])
    return pos_embed[:, [0] + [row * grid[1] + col for row in rows for col in cols]]


def crop_read_on(pos_embed, grid, top, left, new_grid):
    start = top * grid[1] + left
    cls, patches = pos_embed[:, :1], pos_embed[:, 1:]
    return torch.cat([cls, patches[:, start : start + new_grid[0] * new_grid[1]]], 1)


def crop_swapped(pos_embed, grid, top, left, new_grid):
    return crop_by_view(pos_embed, (grid[1], grid[0]), top, left, new_grid)


def crop_row_by_row(pos_embed, grid, top, left, new_grid):
    kept = [pos_embed[:, 0]]
    for r in range(new_grid[0]):
        for c in range(new_grid[1]):
            kept.append(pos_embed[:, 1 + (top + r) * grid[0] + left + c])
    return torch.stack(kept, dim=1)


def crop_top_for_left(pos_embed, grid, top, left, new_grid):
    return crop_by_view(pos_embed, grid, left, top, new_grid)


def crop_from_one(pos_embed, grid, top, left, new_grid):
    return crop_by_view(pos_embed, grid, top - 1, left - 1, new_grid)


def crop_columns_first(pos_embed, grid, top, left, new_grid):
    picture = pos_embed[0, 1:].reshape(grid[0], grid[1], -1)
    picture = picture[top:, left:][: new_grid[0], : new_grid[1]].transpose(0, 1)
    return torch.cat([pos_embed[0, :1], picture.flatten(0, 1)])[None]


def crop_resized(pos_embed, grid, top, left, new_grid):
    picture = pos_embed[:, 1:].mT.unflatten(2, grid)
    picture = F.interpolate(picture, size=new_grid, mode="bicubic", antialias=True)
    return torch.cat([pos_embed[:, :1], picture.flatten(2).mT], 1)


def crop_end_for_size(pos_embed, grid, top, left, new_grid):
    picture = pos_embed[:, 1:].unflatten(1, grid)[:, top : new_grid[0], left : new_grid[1]]
    return torch.cat([pos_embed[:, :1], picture.flatten(1, 2)], 1)


def crop_upper_left(pos_embed, grid, top, left, new_grid):
    picture = pos_embed[:, 1:].unflatten(1, grid)[:, : new_grid[0], : new_grid[1]]
    return torch.cat([pos_embed[:, :1], picture.flatten(1, 2)], 1)


def crop_one_too_far(pos_embed, grid, top, left, new_grid):
    picture = pos_embed[:, 1:].unflatten(1, grid)
    picture = picture[:, top : top + new_grid[0] + 1, left : left + new_grid[1] + 1]
    return torch.cat([pos_embed[:, :1], picture.flatten(1, 2)], 1)


def crop_left_as_grid(pos_embed, grid, top, left, new_grid):
    picture = pos_embed[:, 1:].unflatten(1, grid)
    return picture[:, top : top + new_grid[0], left : left + new_grid[1]]


def crop_cls_of_the_first(pos_embed, grid, top, left, new_grid):
    """Takes the first patch of the window for cls."""
    window = crop_by_index(pos_embed, grid, top, left, new_grid)[:, 1:]
    return torch.cat([window[:, :1], window], 1)


def crop_cls_last(pos_embed, grid, top, left, new_grid):
    window = crop_by_index(pos_embed, grid, top, left, new_grid)
    return torch.cat([window[:, 1:], window[:, :1]], 1)


# Exercise 2: faster hands -------------------------------------------------------------------------


def clocks(count, width, base=10_000):
    speeds = base ** -(torch.arange(width // 2) / (width // 2))
    angles = torch.arange(count)[:, None] * speeds
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def grid_positions(rows, cols, width, base=10_000):
    by_row, by_col = clocks(rows, width // 2, base), clocks(cols, width // 2, base)
    positions = []
    for row in range(rows):
        for col in range(cols):
            positions.append(torch.cat([by_row[row], by_col[col]]))
    return torch.stack(positions)


def quiet(table):
    return table * 0.2 / table.std()


def base_five(rows, cols, width):
    return quiet(grid_positions(rows, cols, width, base=5))


def times_a_fifth(rows, cols, width):
    """The sines' own deviation is 0.7, so this one is 0.14: quiet enough."""
    return 0.2 * grid_positions(rows, cols, width, base=8)


def base_ten_by_broadcasting(rows, cols, width):
    by_row = clocks(rows, width // 2, 10.0)[:, None].expand(-1, cols, -1)
    by_col = clocks(cols, width // 2, 10.0)[None].expand(rows, -1, -1)
    return 0.28 * torch.cat([by_row, by_col], dim=-1).reshape(rows * cols, width)


def bumps(rows, cols, width):
    """Each number is a hill somewhere on the grid: near places stand on the same hills."""
    torch.manual_seed(0)
    peaks = torch.rand(width, 2) * torch.tensor([rows + 6.0, cols + 6.0]) - 3
    row, col = torch.meshgrid(torch.arange(rows), torch.arange(cols), indexing="ij")
    places = torch.stack([row.flatten(), col.flatten()], dim=1).float()
    return quiet(torch.exp(-(torch.cdist(places, peaks) ** 2) / 12))


def waves_in_all_directions(rows, cols, width):
    torch.manual_seed(1)
    directions = 0.4 * torch.randn(2, width // 2)
    places = torch.cartesian_prod(torch.arange(rows), torch.arange(cols)).float()
    angles = places @ directions
    return quiet(torch.cat([angles.sin(), angles.cos()], dim=1))


def as_it_was(rows, cols, width):
    return grid_positions(rows, cols, width)


def quiet_but_slow(rows, cols, width):
    return 0.2 * grid_positions(rows, cols, width)


def still_slow(rows, cols, width):
    return quiet(grid_positions(rows, cols, width, base=100))


def slower(rows, cols, width):
    return quiet(grid_positions(rows, cols, width, base=1_000_000))


def too_fast(rows, cols, width):
    return quiet(grid_positions(rows, cols, width, base=1.2))


def a_little_too_fast(rows, cols, width):
    return quiet(grid_positions(rows, cols, width, base=3))


def centred(rows, cols, width):
    positions = grid_positions(rows, cols, width)
    return quiet(positions - positions.mean(dim=0))


def loud(rows, cols, width):
    return grid_positions(rows, cols, width, base=5)


def half_as_loud(rows, cols, width):
    return grid_positions(rows, cols, width, base=6) / 2


def whispered(rows, cols, width):
    return 0.001 * grid_positions(rows, cols, width, base=5)


def at_random(rows, cols, width):
    return 0.2 * torch.randn(rows * cols, width)


def learned_at_start(rows, cols, width):
    return nn.init.trunc_normal_(torch.empty(rows * cols, width), std=0.2)


def in_one_line(rows, cols, width):
    return quiet(clocks(rows * cols, width, base=5))


def in_one_slow_line(rows, cols, width):
    return quiet(clocks(rows * cols, width, base=10_000))


def sides_swapped(rows, cols, width):
    return quiet(grid_positions(cols, rows, width, base=5))


def columns_only(rows, cols, width):
    return quiet(clocks(cols, width, base=5).repeat(rows, 1))


def rows_only(rows, cols, width):
    return quiet(clocks(rows, width, base=5).repeat_interleave(cols, dim=0))


def all_the_same(rows, cols, width):
    return 0.2 * torch.ones(rows * cols, width)


def with_cls(rows, cols, width):
    return torch.cat([torch.zeros(1, width), base_five(rows, cols, width)])


def as_a_batch(rows, cols, width):
    return base_five(rows, cols, width)[None]


def as_a_grid(rows, cols, width):
    return base_five(rows, cols, width).reshape(rows, cols, width)


def for_the_lesson(rows, cols, width):
    return quiet(grid_positions(14, 14, 768, base=5))


# Exercise 3: does it know where its patches stand? ------------------------------------------------


def turned_round(images, patch_size):
    backwards = patchify(images, patch_size).flip(1)
    return unpatchify(backwards, patch_size, tuple(images.shape[2:]))


def blind_backwards(read, image, patch_size):
    difference = read(image) - read(turned_round(image, patch_size))
    return bool(difference.abs().max() < 1e-5)


def blind_rolled(read, image, patch_size):
    rolled = image.roll(patch_size, dims=3).roll(patch_size, dims=2)
    return torch.allclose(read(image), read(rolled), atol=1e-5)


def blind_by_tensor(read, image, patch_size):
    patches = patchify(image, patch_size)
    order = torch.randperm(patches.shape[1])
    height, width = image.shape[2], image.shape[3]
    mosaic = unpatchify(patches[:, order], patch_size, (height, width))
    return ((read(mosaic) - read(image)).abs() < 1e-5).all()


def blind_by_einops(read, image, patch_size):
    cut = rearrange(image, "b c (r p) (s q) -> b (r s) c p q", p=patch_size, q=patch_size)
    order = list(range(cut.shape[1]))
    random.Random(0).shuffle(order)
    rows = image.shape[2] // patch_size
    mosaic = rearrange(cut[:, order], "b (r s) c p q -> b c (r p) (s q)", r=rows)
    return bool(torch.isclose(read(image), read(mosaic), rtol=0, atol=1e-5).all())


def blind_inverted(read, image, patch_size):
    return not blind_backwards(read, image, patch_size)


def blind_exactly(read, image, patch_size):
    return torch.equal(read(image), read(turned_round(image, patch_size)))


def blind_mirrored(read, image, patch_size):
    return torch.allclose(read(image), read(image.flip(3)), atol=1e-5)


def blind_by_pixels(read, image, patch_size):
    _, _, H, W = image.shape
    shuffled = image.flatten(2)[:, :, torch.randperm(H * W)].reshape(image.shape)
    return torch.allclose(read(image), read(shuffled), atol=1e-5)


def blind_by_numbers(read, image, patch_size):
    shuffled = image.flatten()[torch.randperm(image.numel())].reshape(image.shape)
    return torch.allclose(read(image), read(shuffled), rtol=0, atol=1e-5)


def blind_by_images(read, image, patch_size):
    return torch.allclose(image, turned_round(image, patch_size))


def blind_by_shape(read, image, patch_size):
    return read(image).shape == read(turned_round(image, patch_size)).shape


def blind_two(read, image, patch_size):
    patches = patchify(image, patch_size)
    order = [1, 0, *range(2, patches.shape[1])]
    swapped = unpatchify(patches[:, order], patch_size, tuple(image.shape[2:]))
    return torch.allclose(read(image), read(swapped), atol=1e-5)


def blind_not_shuffled(read, image, patch_size):
    patches = patchify(image, patch_size)
    torch.randperm(patches.shape[1])
    again = unpatchify(patches, patch_size, tuple(image.shape[2:]))
    return torch.allclose(read(image), read(again), atol=1e-5)


def blind_roughly(read, image, patch_size):
    return torch.allclose(read(image), read(turned_round(image, patch_size)), atol=0.1)


def blind_by_default(read, image, patch_size):
    return torch.allclose(read(image), read(turned_round(image, patch_size)))


def blind_on_average(read, image, patch_size):
    difference = (read(image) - read(turned_round(image, patch_size))).mean()
    return bool(difference < 1e-5)


def blind_number_by_number(read, image, patch_size):
    return torch.isclose(read(image), read(turned_round(image, patch_size)), atol=1e-5)


def blind_swapped_sides(read, image, patch_size):
    patches = patchify(image, patch_size)
    order = torch.randperm(patches.shape[1])
    shuffled = unpatchify(patches[:, order], patch_size, (image.shape[3], image.shape[2]))
    return torch.allclose(read(image), read(shuffled), atol=1e-5)


def blind_square(read, image, patch_size):
    patches = patchify(image, patch_size)
    order = torch.randperm(patches.shape[1])
    shuffled = unpatchify(patches[:, order], patch_size, image.shape[-1])
    return torch.allclose(read(image), read(shuffled), atol=1e-5)


RIGHT = {
    "crop_positions": [crop_by_index, crop_by_mask, crop_by_view, crop_by_einops],
    "own_positions": [
        base_five,
        times_a_fifth,
        base_ten_by_broadcasting,
        bumps,
        waves_in_all_directions,
    ],
    "is_order_blind": [blind_backwards, blind_rolled, blind_by_tensor, blind_by_einops],
}
WRONG = {
    "crop_positions": [
        (crop_without_cls, "the cls position is missing"),
        (crop_forgot_cls, "one early"),
        (crop_read_on, "read straight on"),
        (crop_swapped, "grid is (rows, cols)"),
        (crop_row_by_row, "grid[1] patches, not grid[0]"),
        (crop_top_for_left, "`top` and `left` are swapped"),
        (crop_from_one, "count from 0"),
        (crop_columns_first, "column by column"),
        (crop_resized, "squeezes the whole grid"),
        (crop_end_for_size, "end too early"),
        (crop_upper_left, "upper left corner"),
        (crop_one_too_far, "too large"),
        (crop_left_as_grid, "still a grid"),
        (crop_cls_of_the_first, "cls keeps its own"),
        (crop_cls_last, "stands last"),
    ],
    "own_positions": [
        (as_it_was, "let the slow ones turn faster"),
        (quiet_but_slow, "let the slow ones turn faster"),
        (still_slow, "let the slow ones turn faster"),
        (slower, "let the slow ones turn faster"),
        (a_little_too_fast, "on average: let the hands turn more slowly"),
        (centred, "subtract no mean"),
        (too_fast, "make neighbours strangers"),
        (loud, "too loud"),
        (half_as_loud, "too loud"),
        (whispered, "too quiet"),
        (at_random, "random numbers"),
        (learned_at_start, "random numbers"),
        (in_one_line, "knows nothing of rows"),
        (in_one_slow_line, "knows nothing of rows"),
        (sides_swapped, "rows and columns are swapped"),
        (columns_only, "have the same position"),
        (rows_only, "have the same position"),
        (all_the_same, "have the same position"),
        (with_cls, "cls has no place"),
        (as_a_batch, "an axis too many"),
        (as_a_grid, "still a grid"),
        (for_the_lesson, "fixed in your code"),
    ],
    "is_order_blind": [
        (blind_inverted, "upside down"),
        (blind_exactly, "to the last bit"),
        (blind_roughly, "allows too much"),
        (blind_by_default, "allows too little"),
        (blind_mirrored, "inside the patches move too"),
        (blind_by_pixels, "inside the patches move too"),
        (blind_by_numbers, "not single pixels or numbers"),
        (blind_by_images, "False whatever the model"),
        (blind_by_shape, "True whatever the model"),
        (blind_not_shuffled, "True whatever the model"),
        (blind_on_average, "True whatever the model"),
        (blind_number_by_number, "one for all of them"),
        (blind_two, "too few patches"),
        (blind_swapped_sides, "height and width are swapped"),
        (blind_square, "patches is (1, 24, 48); 6×6 patches"),
    ],
}
