"""Answers to lesson 00's first piece and exercises, as learners would write them."""

import torch
from torch.nn import functional as F

# negative: (3, H, W), floats 0 to 1; black and white change places.


# normalize_channels: (image[c] - mean[c]) / std[c].


def by_view(image, mean, std):
    return image.sub(mean.view(-1, 1, 1)).div(std.view(-1, 1, 1))


def by_transpose(image, mean, std):
    return ((image.movedim(0, -1) - mean) / std).movedim(-1, 0)


def by_channel_loop(image, mean, std):
    return torch.stack([(x - m) / s for x, m, s in zip(image, mean, std, strict=True)])


def by_filling(image, mean, std):
    new = torch.empty_like(image)
    for c in range(len(mean)):
        new[c] = (image[c] - mean[c]) / std[c]
    return new


def along_the_width(image, mean, std):
    return torch.div(torch.sub(image, mean), std)


def along_the_height(image, mean, std):
    return (image - mean.reshape(-1, 1)) / std.reshape(-1, 1)


def one_for_all(image, mean, std):
    return (image - sum(mean) / len(mean)) / (sum(std) / len(std))


def the_first_for_all(image, mean, std):
    return (image - mean[0]) / std[0]


def only_shifted(image, mean, std):
    return image - mean.view(-1, 1, 1)


def multiplied(image, mean, std):
    return (image - mean.view(-1, 1, 1)) * std.view(-1, 1, 1)


def added(image, mean, std):
    return (image + mean.view(-1, 1, 1)) / std.view(-1, 1, 1)


def undone(image, mean, std):
    return image * std.view(-1, 1, 1) + mean.view(-1, 1, 1)


def without_brackets(image, mean, std):
    mean, std = mean.view(-1, 1, 1), std.view(-1, 1, 1)
    return image / std - mean


def brackets_forgotten(image, mean, std):
    return image - mean[:, None, None] / std[:, None, None]


def always_half(image, mean, std):
    return 2 * image - 1


def its_own_mean(image, mean, std):
    means, stds = image.mean((1, 2), keepdim=True), image.std((1, 2), keepdim=True)
    return (image - means) / stds


def by_the_variance(image, mean, std):
    return (image - mean[:, None, None]) / std[:, None, None].sqrt()


def three_channels_by_hand(image, mean, std):
    red = (image[0] - mean[0]) / std[0]
    green = (image[1] - mean[1]) / std[1]
    blue = (image[2] - mean[2]) / std[2]
    return torch.stack([red, green, blue])


def shifts_in_place(image, mean, std):
    image -= mean.view(-1, 1, 1)
    return image / std.view(-1, 1, 1)


def a_batch_of_means(image, mean, std):
    return (image - mean.view(1, -1, 1, 1)) / std.view(1, -1, 1, 1)


def channels_left_last(image, mean, std):
    return (image.permute(1, 2, 0) - mean) / std


def std_not_turned(image, mean, std):
    return (image - mean[:, None, None]) / std


def mean_not_turned(image, mean, std):
    return (image - mean) / std[:, None, None]


def by_std_squared(image, mean, std):
    return (image - mean[:, None, None]) / std[:, None, None] ** 2


def one_mean_for_all(image, mean, std):
    return (image - mean.mean()) / std[:, None, None]


def one_std_for_all(image, mean, std):
    return (image - mean[:, None, None]) / std.mean()


def by_batch_norm(image, mean, std):
    return F.batch_norm(image[None], mean, std**2)[0]


# picture_test: is somebody's `convert` right?


def on_random_pixels(convert):
    pixels = torch.randint(0, 256, (4, 6, 3), dtype=torch.uint8)
    expected = pixels.permute(2, 0, 1) / 255
    result = convert(pixels)
    return result.shape == expected.shape and torch.allclose(result, expected, atol=1e-5)


def pixel_by_pixel(convert):
    pixels = torch.arange(2 * 3 * 3, dtype=torch.uint8).reshape(2, 3, 3)
    result = convert(pixels)
    if tuple(result.shape) != (3, 2, 3):
        return False
    places = [(i, j, c) for i in range(2) for j in range(3) for c in range(3)]
    return all(abs(result[c, i, j] - pixels[i, j, c] / 255) < 1e-5 for i, j, c in places)


def by_hand(convert):
    pixels = torch.tensor([[[255, 0, 153], [0, 51, 0], [0, 204, 102]]], dtype=torch.uint8)
    right = [[[1.0, 0, 0]], [[0, 0.2, 0.8]], [[0.6, 0, 0.4]]]
    result = convert(pixels).tolist()
    if len(result) != 3 or len(result[0]) != 1 or len(result[0][0]) != 3:
        return False
    for c in range(3):
        for j in range(3):
            if abs(result[c][0][j] - right[c][0][j]) > 1e-5:
                return False
    return True


def by_a_tensor_of_one(convert):
    pixels = torch.randint(0, 256, (3, 5, 3), dtype=torch.uint8)
    result, expected = convert(pixels), pixels.movedim(-1, 0) / 255
    if result.size() != expected.size():
        return False
    return ((result - expected).abs() < 1e-5).all()


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


def compared(convert, pixels):
    result, expected = convert(pixels), pixels.permute(2, 0, 1) / 255
    return result.shape == expected.shape and torch.allclose(result, expected, atol=1e-5)


def on_a_grey_picture(convert):
    return compared(convert, torch.randint(0, 256, (4, 6, 1), dtype=torch.uint8).repeat(1, 1, 3))


def on_one_colour(convert):
    return compared(convert, torch.tensor([230, 159, 0], dtype=torch.uint8).repeat(8, 8, 1))


def on_one_colour_wide(convert):
    return compared(convert, torch.tensor([230, 159, 0], dtype=torch.uint8).repeat(4, 8, 1))


def on_black(convert):
    return compared(convert, torch.zeros(4, 6, 3, dtype=torch.uint8))


def on_white(convert):
    return compared(convert, torch.full((4, 6, 3), 255, dtype=torch.uint8))


def on_a_grey_square(convert):
    return compared(convert, torch.full((4, 4, 3), 128, dtype=torch.uint8))


def to_the_last_bit(convert):
    pixels = torch.randint(0, 256, (4, 6, 3), dtype=torch.uint8)
    return torch.equal(convert(pixels), pixels.permute(2, 0, 1) / 255)


def without_shapes(convert):
    pixels = torch.randint(0, 256, (4, 6, 3), dtype=torch.uint8)
    return torch.allclose(convert(pixels), pixels.permute(2, 0, 1) / 255, atol=1e-5)


def by_the_mean(convert):
    pixels = torch.arange(24, dtype=torch.uint8).reshape(2, 4, 3)
    return abs(convert(pixels).mean() - pixels.float().mean() / 255) < 1e-5


def by_the_first_pixel(convert):
    pixels = torch.arange(9, 33, dtype=torch.uint8).reshape(2, 4, 3)
    result = convert(pixels)
    return result.shape == (3, 2, 4) and bool(
        (result[:, 0, 0] - pixels[0, 0] / 255).abs().max() < 1e-5
    )


def with_a_transposed_answer(convert):
    pixels = torch.arange(24, dtype=torch.uint8).reshape(2, 4, 3)
    result, expected = convert(pixels), pixels.permute(2, 1, 0) / 255
    return result.shape == expected.shape and torch.allclose(result, expected, atol=1e-5)


def too_lenient(convert):
    pixels = torch.randint(0, 256, (4, 6, 3), dtype=torch.uint8)
    result, expected = convert(pixels), pixels.permute(2, 0, 1) / 255
    return result.shape == expected.shape and torch.allclose(result, expected, atol=0.01)


def on_a_symmetric_picture(convert):
    pixels = torch.tensor([[[255, 0, 0], [0, 51, 0], [0, 0, 102]]], dtype=torch.uint8)
    return compared(convert, pixels)


def on_a_picture_of_floats(convert):
    pixels = torch.rand(2, 4, 3)
    result, expected = convert(pixels), pixels.permute(2, 0, 1)
    return result.shape == expected.shape and torch.allclose(result, expected, atol=1e-5)


def many_verdicts(convert):
    pixels = torch.randint(0, 256, (1, 2, 3), dtype=torch.uint8)
    return convert(pixels).shape == (3, 1, 2) and convert(pixels) == pixels.permute(2, 0, 1) / 255


RIGHT = {
    "normalize_channels": [by_view, by_transpose, by_channel_loop, by_filling],
    "picture_test": [on_random_pixels, pixel_by_pixel, by_hand, by_a_tensor_of_one],
}
WRONG = {
    "normalize_channels": [
        (along_the_width, "meet the width"),
        (along_the_height, "meet the height"),
        (one_for_all, "all channels get the same numbers"),
        (the_first_for_all, "the first channel's"),
        (only_shifted, "nothing is divided"),
        (multiplied, "it multiplies by std"),
        (added, "it adds the mean"),
        (undone, "way back"),
        (without_brackets, "divides before it subtracts"),
        (brackets_forgotten, "only the mean is divided"),
        (always_half, "0.5 for everything"),
        (its_own_mean, "the picture's own mean"),
        (by_the_variance, "root"),
        (three_channels_by_hand, "written for three channels"),
        (shifts_in_place, "changes the tensor that it was given"),
        (a_batch_of_means, "batch axis"),
        (channels_left_last, "the channels stand last"),
        (std_not_turned, "std does not meet the channels"),
        (mean_not_turned, "the mean does not meet the channels"),
        (by_std_squared, "the square of std"),
        (one_mean_for_all, "all channels get the same mean"),
        (one_std_for_all, "std is the same for all"),
        (by_batch_norm, "eps=0"),
    ],
    "picture_test": [
        (always_content, "True to everything"),
        (never_content, "False to everything"),
        (by_shape, "the shape only"),
        (by_range, "the range only"),
        (by_shape_and_range, "shape and range only"),
        (on_a_grey_picture, "your picture is grey"),
        (on_one_colour, "a square of one colour"),
        (on_one_colour_wide, "one colour all over"),
        (on_black, "your picture is black"),
        (on_white, "white all over"),
        (on_a_grey_square, "one grey all over"),
        (to_the_last_bit, "to the last digit"),
        (without_shapes, "compare the shapes first"),
        (by_the_mean, "the mean"),
        (by_the_first_pixel, "one pixel"),
        (with_a_transposed_answer, "height and width"),
        (too_lenient, "less than 0.00001"),
        (on_a_symmetric_picture, "so regular that reshape"),
        (on_a_picture_of_floats, "give `convert` bytes, torch.uint8"),
        (many_verdicts, "one True or False"),
    ],
}
