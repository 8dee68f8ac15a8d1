"""Answers to lesson 01's exercises, as learners would write them."""

import torch
from torch.nn import functional as F


def slices(images, p):
    _, _, height, width = images.shape
    tokens = [
        images[:, :, top : top + p, left : left + p].permute(0, 2, 3, 1).flatten(1)
        for top in range(0, height, p)
        for left in range(0, width, p)
    ]
    return torch.stack(tokens, dim=1)


def unfold(images, p):
    tokens = F.unfold(images, p, stride=p).mT
    return tokens.unflatten(2, (images.shape[1], p * p)).mT.flatten(2)


def viewed(images, p):
    return images.reshape(images.shape[0], -1, p * p * images.shape[1])


def columns_first(images, p):
    return slices(images.mT, p).unflatten(2, (p, p, -1)).transpose(2, 3).flatten(2)


def transposed_inside(images, p):
    return slices(images, p).unflatten(2, (p, p, -1)).transpose(2, 3).flatten(2)


def channels_first(images, p):
    return F.unfold(images, p, stride=p).mT


def in_place(images, p):
    images /= 255
    return slices(images, p)


def grid_by_divmod(size, p):
    for side in size:
        if side % p != 0:
            raise ValueError("does not divide")
    return tuple(side // p for side in size)


def grid_floored(size, p):
    return size[0] // p, size[1] // p


def grid_swapped(size, p):
    return grid_by_divmod(size, p)[::-1]


def grid_counted(size, p):
    rows, cols = grid_by_divmod(size, p)
    return rows * cols


def weight_by_axes(weight, channels, p):
    return weight.view(len(weight), p, p, channels).permute(0, 3, 1, 2)


def weight_naive(weight, channels, p):
    return weight.view(len(weight), channels, p, p)


def weight_transposed(weight, channels, p):
    return weight_by_axes(weight, channels, p).transpose(2, 3)


def weight_channels_last(weight, channels, p):
    return weight.view(len(weight), p, p, channels)


RIGHT = {
    "grid": [grid_by_divmod],
    "patchify": [slices, unfold],
    "conv_weight": [weight_by_axes],
}
WRONG = {
    "grid": [
        (grid_floored, "must raise a ValueError"),
        (grid_swapped, "columns and rows are swapped"),
        (grid_counted, "the number of patches in all"),
    ],
    "patchify": [
        (viewed, "the pixels are scrambled"),
        (columns_first, "rows and columns of patches are swapped"),
        (transposed_inside, "it is transposed"),
        (channels_first, "the channels come first"),
        (in_place, "changes the tensor"),
    ],
    "conv_weight": [
        (weight_naive, "reshape alone"),
        (weight_transposed, "every patch is seen transposed"),
        (weight_channels_last, "the channels are last"),
    ],
}
