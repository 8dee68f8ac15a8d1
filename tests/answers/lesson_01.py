"""Answers to lesson 01's build cells and exercises, as learners would write them."""

import torch
from einops import rearrange
from torch import nn
from torch.nn import functional as F

# patchify: (B, C, H, W) to (B, n, P·P·C), all in reading order.


def slices(images, p):
    _, _, height, width = images.shape
    tokens = [
        images[:, :, top : top + p, left : left + p].permute(0, 2, 3, 1).flatten(1)
        for top in range(0, height, p)
        for left in range(0, width, p)
    ]
    return torch.stack(tokens, dim=1)


# PatchEmbedding: a Conv2d `proj`, then (B, n, D).


# patch_of: (number of the patch, number of the pixel in it).


def by_divmod(y, x, image_width, patch_size):
    row, p1 = divmod(y, patch_size)
    col, p2 = divmod(x, patch_size)
    return row * (image_width // patch_size) + col, p1 * patch_size + p2


def by_cutting(y, x, image_width, patch_size):
    height = (y // patch_size + 1) * patch_size
    numbers = torch.arange(height * image_width).float().view(1, 1, height, image_width)
    found = (slices(numbers, patch_size)[0] == y * image_width + x).nonzero()[0]
    return found[0].item(), found[1].item()


def by_counting(y, x, image_width, patch_size):
    patch = 0
    for top in range(0, y + 1, patch_size):
        for left in range(0, image_width, patch_size):
            if top <= y < top + patch_size and left <= x < left + patch_size:
                pixel = 0
                for i in range(top, top + patch_size):
                    for j in range(left, left + patch_size):
                        if (i, j) == (y, x):
                            return patch, pixel
                        pixel += 1
            patch += 1
    return None


def as_list(y, x, image_width, patch_size):
    return list(by_divmod(y, x, image_width, patch_size))


def axes_swapped(y, x, image_width, patch_size):
    return by_divmod(x, y, image_width, patch_size)


def width_in_pixels(y, x, image_width, patch_size):
    _, pixel = by_divmod(y, x, image_width, patch_size)
    return (y // patch_size) * image_width + x // patch_size, pixel


def from_one(y, x, image_width, patch_size):
    patch, pixel = by_divmod(y, x, image_width, patch_size)
    return patch + 1, pixel + 1


def patch_from_one(y, x, image_width, patch_size):
    patch, pixel = by_divmod(y, x, image_width, patch_size)
    return patch + 1, pixel


def pixel_of_image(y, x, image_width, patch_size):
    patch, _ = by_divmod(y, x, image_width, patch_size)
    return patch, y * image_width + x


def rows_by_patch_size(y, x, image_width, patch_size):
    _, pixel = by_divmod(y, x, image_width, patch_size)
    return (y // patch_size) * patch_size + x // patch_size, pixel


def pixel_transposed(y, x, image_width, patch_size):
    patch, _ = by_divmod(y, x, image_width, patch_size)
    return patch, (x % patch_size) * patch_size + y % patch_size


def pixel_rows_as_wide_as_image(y, x, image_width, patch_size):
    patch, _ = by_divmod(y, x, image_width, patch_size)
    return patch, (y % patch_size) * image_width + x % patch_size


def patch_columns_first(y, x, image_width, patch_size):
    _, pixel = by_divmod(y, x, image_width, patch_size)
    return (x // patch_size) * (image_width // patch_size) + y // patch_size, pixel


def with_true_division(y, x, image_width, patch_size):
    _, pixel = by_divmod(y, x, image_width, patch_size)
    return y / patch_size * (image_width / patch_size) + x / patch_size, pixel


def patch_only(y, x, image_width, patch_size):
    return by_divmod(y, x, image_width, patch_size)[0]


def row_and_column(y, x, image_width, patch_size):
    return y // patch_size, x // patch_size


def pixel_first(y, x, image_width, patch_size):
    return by_divmod(y, x, image_width, patch_size)[::-1]


def always_14(y, x, image_width, patch_size):
    return (y // 16) * 14 + x // 16, (y % 16) * 16 + x % 16


def as_floats(y, x, image_width, patch_size):
    patch, pixel = by_divmod(y, x, image_width, patch_size)
    return float(patch), float(pixel)


# conv_weight: (D, P·P·C) to (D, C, P, P).


def weight_by_axes(weight, channels, p):
    return weight.view(len(weight), p, p, channels).permute(0, 3, 1, 2)


def weight_by_einops(weight, channels, patch_size):
    return rearrange(weight, "d (h w c) -> d c h w", c=channels, h=patch_size)


def weight_by_stack(weight, channels, p):
    return torch.stack([weight[:, c::channels].reshape(-1, p, p) for c in range(channels)], dim=1)


def weight_naive(weight, channels, p):
    return weight.view(len(weight), channels, p, p)


def weight_transposed(weight, channels, p):
    return weight_by_axes(weight, channels, p).transpose(2, 3)


def weight_channels_last(weight, channels, p):
    return weight.view(len(weight), p, p, channels)


def weight_input_first(weight, channels, p):
    return weight_by_axes(weight, channels, p).transpose(0, 1)


def weight_flipped(weight, channels, p):
    return weight_by_axes(weight, channels, p).flip(2, 3)


def weight_untouched(weight, channels, p):
    return weight


def weight_three(weight, channels, p):
    return weight.reshape(-1, p, p, 3).permute(0, 3, 1, 2)


def weight_split_wrongly(weight, channels, p):
    return weight.reshape(len(weight), p, channels, p).transpose(1, 2)


def weight_sixteen(weight, channels, patch_size):
    return rearrange(weight, "d (h w c) -> d c h w", h=16, w=16)


def weight_divided(weight, channels, p):
    return weight_by_axes(weight, channels, p) / (p * p)


def weight_of_transposed(weight, channels, p):
    return weight.T.reshape(p, p, channels, -1).permute(2, 3, 0, 1)


def weight_doubled_in_place(weight, channels, p):
    weight += 0.1
    return weight_by_axes(weight, channels, p)


def weight_as_module(weight, channels, p):
    conv = nn.Conv2d(channels, len(weight), p, stride=p)
    conv.weight.data = weight_by_axes(weight, channels, p)
    return conv


# templates: row i is answered loudest by patch i.


def perceptron(patches, rounds=60):
    templates = patches
    for _ in range(rounds):
        loudest = (patches @ templates.T).argmax(dim=0)
        templates = templates + patches - patches[loudest]
    return templates


def by_least_squares(patches):
    solved = torch.linalg.lstsq(patches, torch.eye(len(patches)), driver="gelsd")
    return solved.solution.T


def by_training(patches):
    torch.manual_seed(0)
    weight = torch.zeros_like(patches, requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=0.02)
    for _ in range(60):
        loss = F.cross_entropy(weight @ patches.T, torch.arange(len(patches)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return weight.detach()


def one_by_one(patches):
    templates = patches.clone()
    for i in range(len(patches)):
        for _ in range(100):
            loudest = (patches @ templates[i]).argmax()
            if loudest == i:
                break
            templates[i] += patches[i] - patches[loudest]
    return templates


def itself(patches):
    return patches.clone()


def minus_the_mean_patch(patches):
    return patches - patches.mean(dim=0)


def minus_its_own_mean(patches):
    return patches - patches.mean(dim=1, keepdim=True)


def of_length_one(patches):
    return F.normalize(patches, dim=-1)


def at_random(patches):
    return torch.randn_like(patches)


def few_rounds(patches):
    return perceptron(patches, rounds=3)


def least_squares_untransposed(patches):
    return torch.linalg.lstsq(patches, torch.eye(len(patches))).solution


def away_from_itself(patches):
    templates = patches
    for _ in range(60):
        loudest = (patches @ templates.T).argmax(dim=0)
        templates = templates - patches + patches[loudest]
    return templates


def wrong_argmax(patches):
    templates = patches
    for _ in range(60):
        loudest = (patches @ templates.T).argmax(dim=1)
        templates = templates + patches - patches[loudest]
    return templates


def templates_in_place(patches):
    for _ in range(60):
        loudest = (patches @ patches.T).argmax(dim=0)
        patches += patches - patches[loudest]
    return patches


def for_196_only(patches):
    return torch.linalg.lstsq(patches, torch.eye(196)).solution.T


def negated(patches):
    return -patches


def all_ones(patches):
    return torch.ones_like(patches)


def answers_instead(patches):
    templates = perceptron(patches)
    return patches @ templates.T


def number_found(patches):
    templates = perceptron(patches)
    return ((patches @ templates.T).argmax(0) == torch.arange(len(patches))).sum()


RIGHT = {
    "patch_of": [by_divmod, by_cutting, by_counting, as_list],
    "conv_weight": [weight_by_axes, weight_by_einops, weight_by_stack],
    "templates": [perceptron, by_least_squares, by_training, one_by_one],
}
WRONG = {
    "patch_of": [
        (axes_swapped, "y is the row"),
        (width_in_pixels, "in patches, not in pixels"),
        (from_one, "from 0"),
        (patch_from_one, "from 0"),
        (pixel_of_image, "in the whole image"),
        (rows_by_patch_size, "how many patches stand in a row"),
        (pixel_transposed, "inside the patch, rows and columns are swapped"),
        (pixel_rows_as_wide_as_image, "a row inside a patch"),
        (patch_columns_first, "column by column"),
        (with_true_division, "use //"),
        (patch_only, "the patch alone"),
        (row_and_column, "row and column of the patch"),
        (pixel_first, "in the other order"),
        (always_14, "14"),
        (as_floats, "they are floats"),
    ],
    "conv_weight": [
        (weight_naive, "reshape alone"),
        (weight_transposed, "every patch is seen transposed"),
        (weight_channels_last, "the channels are last"),
        (weight_input_first, "(C, D, P, P)"),
        (weight_flipped, "upside down"),
        (weight_untouched, "still the Linear's"),
        (weight_three, "written for three channels"),
        (weight_split_wrongly, "(P, C, P)"),
        (weight_sixteen, "your code raises"),
        (weight_divided, "no number changes"),
        (weight_of_transposed, "(C, D, P, P)"),
        (weight_doubled_in_place, "changes the tensor that it was given"),
        (weight_as_module, "where a tensor is expected"),
    ],
    "templates": [
        (itself, "the patches themselves"),
        (minus_the_mean_patch, "mean patch"),
        (minus_its_own_mean, "its own mean"),
        (of_length_one, "the patches themselves"),
        (at_random, "random"),
        (few_rounds, "the bar is 180"),
        (least_squares_untransposed, "are the columns"),
        (away_from_itself, "turn each template away from the patch"),
        (wrong_argmax, "other axis"),
        (templates_in_place, "begin with patches.clone()"),
        (for_196_only, "written for 196"),
        (negated, "opposite of their patch"),
        (all_ones, "all templates are the same"),
        (answers_instead, "these are answers"),
        (number_found, "this is one number"),
    ],
}
