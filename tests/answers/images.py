"""Answers to lesson 00's exercises, as learners would write them."""

import torch


def by_einsum(pixels):
    return torch.einsum("hwc->chw", pixels.to(torch.float32)) / 255.0


def by_stack(pixels):
    return torch.stack([pixels[..., c] for c in range(3)]) / 255


def viewed(pixels):
    height, width, channels = pixels.shape
    return pixels.view(channels, height, width).float() / 255


def on_its_side(pixels):
    return pixels.permute(2, 1, 0) / 255


def only_scaled(pixels):
    return pixels.float().div(255)


def only_moved(pixels):
    return torch.movedim(pixels, 2, 0)


def scaled_twice(pixels):
    pixels = pixels / 255
    return pixels.movedim(-1, 0) / 255


def by_256(pixels):
    return pixels.movedim(-1, 0) / 256


def whole_numbers(pixels):
    return pixels.movedim(-1, 0) // 255


def by_view(image, mean, std):
    return image.sub(mean.view(-1, 1, 1)).div(std.view(-1, 1, 1))


def by_transpose(image, mean, std):
    return ((image.movedim(0, -1) - mean) / std).movedim(-1, 0)


def by_channel_loop(image, mean, std):
    return torch.stack([(x - m) / s for x, m, s in zip(image, mean, std, strict=True)])


def along_the_width(image, mean, std):
    return torch.div(torch.sub(image, mean), std)


def along_the_height(image, mean, std):
    return (image - mean.reshape(-1, 1)) / std.reshape(-1, 1)


def one_for_all(image, mean, std):
    return (image - sum(mean) / len(mean)) / (sum(std) / len(std))


def only_shifted(image, mean, std):
    return image - mean.view(-1, 1, 1)


def multiplied(image, mean, std):
    return (image - mean.view(-1, 1, 1)) * std.view(-1, 1, 1)


def without_brackets(image, mean, std):
    mean, std = mean.view(-1, 1, 1), std.view(-1, 1, 1)
    return image / std - mean


def always_half(image, mean, std):
    return 2 * image - 1


def shifts_in_place(image, mean, std):
    image -= mean.view(-1, 1, 1)
    return image / std.view(-1, 1, 1)


def on_random_pixels(convert):
    pixels = torch.randint(0, 256, (4, 6, 3), dtype=torch.uint8)
    return torch.equal(convert(pixels), pixels.permute(2, 0, 1) / 255)


def pixel_by_pixel(convert):
    pixels = torch.arange(2 * 3 * 3, dtype=torch.uint8).reshape(2, 3, 3)
    result = convert(pixels)
    if tuple(result.shape) != (3, 2, 3):
        return False
    places = [(i, j, c) for i in range(2) for j in range(3) for c in range(3)]
    return all(abs(result[c, i, j] - pixels[i, j, c] / 255) < 1e-6 for i, j, c in places)


def always_content(convert):
    return convert is not None


def never_content(convert):
    pixels = torch.randint(0, 256, (4, 6, 3), dtype=torch.uint8)
    return torch.equal(convert(pixels), pixels)


def by_shape(convert):
    return list(convert(torch.zeros(5, 7, 3, dtype=torch.uint8)).shape) == [3, 5, 7]


def by_range(convert):
    result = convert(torch.randint(0, 256, (4, 6, 3), dtype=torch.uint8))
    return (result <= 1).all()


def by_shape_and_range(convert):
    result = convert(torch.randint(0, 256, (4, 6, 3), dtype=torch.uint8))
    return result.shape == (3, 4, 6) and result.max() <= 1


def on_a_grey_picture(convert):
    grey = torch.randint(0, 256, (4, 6, 1), dtype=torch.uint8).repeat(1, 1, 3)
    return torch.equal(convert(grey), grey.permute(2, 0, 1) / 255)


def on_one_colour(convert):
    orange = torch.tensor([230, 159, 0], dtype=torch.uint8).repeat(8, 8, 1)
    return torch.equal(convert(orange), orange.permute(2, 0, 1) / 255)


def on_black(convert):
    black = torch.zeros(4, 6, 3, dtype=torch.uint8)
    return torch.equal(convert(black), torch.zeros(3, 4, 6))


def on_white(convert):
    white = torch.full((4, 6, 3), 255, dtype=torch.uint8)
    return torch.equal(convert(white), torch.ones(3, 4, 6))


RIGHT = {
    "channels_first": [by_einsum, by_stack],
    "normalize_channels": [by_view, by_transpose, by_channel_loop],
    "picture_test": [on_random_pixels, pixel_by_pixel],
}
WRONG = {
    "channels_first": [
        (viewed, "the pixels are scrambled"),
        (on_its_side, "height and width are swapped"),
        (only_scaled, "the channels are still last"),
        (only_moved, "from 0 to 255"),
        (scaled_twice, "divides by 255 twice"),
        (by_256, "divides by 256"),
        (whole_numbers, "whole numbers only"),
    ],
    "normalize_channels": [
        (along_the_width, "meet the width"),
        (along_the_height, "meet the height"),
        (one_for_all, "all channels get the same numbers"),
        (only_shifted, "nothing is divided"),
        (multiplied, "it multiplies by std"),
        (without_brackets, "divides before it subtracts"),
        (always_half, "0.5 for everything"),
        (shifts_in_place, "changes the tensor"),
    ],
    "picture_test": [
        (always_content, "True to everything"),
        (never_content, "False to a right conversion"),
        (by_shape, "the shape only"),
        (by_range, "the range only"),
        (by_shape_and_range, "shape and range only"),
        (on_a_grey_picture, "your picture is grey"),
        (on_one_colour, "a square of one colour"),
        (on_black, "your picture is black"),
        (on_white, "white all over"),
    ],
}
