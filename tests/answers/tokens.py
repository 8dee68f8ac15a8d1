"""Answers to lesson 02's exercises, as learners would write them."""

import torch
from torch import nn
from torch.nn import functional as F

from vit_steps import patchify, unpatchify


def repeated(patches, cls):
    return torch.cat([cls.repeat(patches.shape[0], 1, 1), patches], 1)


def one_by_one(patches, cls):
    return torch.stack([torch.vstack([cls, image]) for image in patches])


def cls_last(patches, cls):
    return torch.cat([patches, cls.repeat(patches.shape[0], 1, 1)], 1)


def cls_for_patch_0(patches, cls):
    tokens = patches.clone()
    tokens[:, 0] = cls
    return tokens


def cls_written_in(patches, cls):
    patches[:, 0] = cls
    return patches


def cls_added(patches, cls):
    return patches + cls.view(1, 1, -1)


def another_cls(patches, cls):
    own = nn.Parameter(torch.zeros(1, 1, patches.shape[2]))
    return torch.cat([own.expand(patches.shape[0], -1, -1), patches], 1)


def batch_of_one(patches, cls):
    return torch.cat([cls.view(1, 1, -1), patches], 1)


def cls_detached(patches, cls):
    return repeated(patches, cls.data)


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


def crop_by_view(pos_embed, grid, top, left, new_grid):
    picture = pos_embed[0, 1:].reshape(grid[0], grid[1], -1)
    picture = picture[top:, left:][: new_grid[0], : new_grid[1]]
    return torch.cat([pos_embed[0, :1], picture.flatten(0, 1)])[None]


def crop_columns_first(pos_embed, grid, top, left, new_grid):
    picture = pos_embed[0, 1:].reshape(grid[0], grid[1], -1)
    picture = picture[top:, left:][: new_grid[0], : new_grid[1]].transpose(0, 1)
    return torch.cat([pos_embed[0, :1], picture.flatten(0, 1)])[None]


def crop_resized(pos_embed, grid, top, left, new_grid):
    picture = pos_embed[:, 1:].mT.unflatten(2, grid)
    picture = F.interpolate(picture, size=new_grid, mode="bicubic", antialias=True)
    return torch.cat([pos_embed[:, :1], picture.flatten(2).mT], 1)


def turned_round(images, patch_size):
    backwards = patchify(images, patch_size).flip(1)
    return unpatchify(backwards, patch_size, tuple(images.shape[2:]))


def blind_backwards(read, image, patch_size):
    difference = read(image) - read(turned_round(image, patch_size))
    return bool(difference.abs().max() < 1e-5)


def blind_rolled(read, image, patch_size):
    rolled = image.roll(patch_size, dims=3).roll(patch_size, dims=2)
    return torch.allclose(read(image), read(rolled), atol=1e-5)


def blind_inverted(read, image, patch_size):
    return not blind_backwards(read, image, patch_size)


def blind_exactly(read, image, patch_size):
    return torch.equal(read(image), read(turned_round(image, patch_size)))


def blind_mirrored(read, image, patch_size):
    return torch.allclose(read(image), read(image.flip(3)), atol=1e-5)


def blind_by_images(read, image, patch_size):
    return torch.allclose(image, turned_round(image, patch_size))


def blind_by_shape(read, image, patch_size):
    return read(image).shape == read(turned_round(image, patch_size)).shape


def blind_two(read, image, patch_size):
    patches = patchify(image, patch_size)
    order = [1, 0, *range(2, patches.shape[1])]
    swapped = unpatchify(patches[:, order], patch_size, tuple(image.shape[2:]))
    return torch.allclose(read(image), read(swapped), atol=1e-5)


RIGHT = {
    "prepend_cls": [repeated, one_by_one],
    "crop_positions": [crop_by_index, crop_by_mask, crop_by_view],
    "is_order_blind": [blind_backwards, blind_rolled],
}
WRONG = {
    "prepend_cls": [
        (cls_last, "stands last"),
        (cls_for_patch_0, "patch 0 is gone"),
        (cls_written_in, "changes the tensor"),
        (cls_added, "added to every patch"),
        (another_cls, "not the cls that was given"),
        (batch_of_one, "one image only"),
        (cls_detached, "no gradient reaches cls"),
    ],
    "crop_positions": [
        (crop_without_cls, "the cls position is missing"),
        (crop_forgot_cls, "one early"),
        (crop_read_on, "read straight on"),
        (crop_swapped, "grid is (rows, cols)"),
        (crop_columns_first, "column by column"),
        (crop_resized, "squeezes the whole grid"),
    ],
    "is_order_blind": [
        (blind_inverted, "upside down"),
        (blind_exactly, "to the last bit"),
        (blind_mirrored, "inside the patches move too"),
        (blind_by_images, "False whatever the model"),
        (blind_by_shape, "True whatever the model"),
        (blind_two, "only the first two patches"),
    ],
}
