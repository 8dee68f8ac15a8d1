"""Answers to lesson 13's build cells and exercises, as learners would write them."""

import torch
from torch import nn

# crossover ---------------------------------------------------------------------------------------


def crossover_in_short(embed_dim, mlp_ratio):
    return (2 + mlp_ratio) * embed_dim


def crossover_by_parts(embed_dim, mlp_ratio):
    qkv, proj = 3 * embed_dim**2, embed_dim**2
    mlp = 2 * embed_dim * (mlp_ratio * embed_dim)
    return (qkv + proj + mlp) / (2 * embed_dim)


def crossover_by_search(embed_dim, mlp_ratio):
    few, many = 1.0, 1e9
    for _ in range(200):
        tokens = (few + many) / 2
        linears = tokens * (4 + 2 * mlp_ratio) * embed_dim**2
        if 2 * tokens**2 * embed_dim < linears:
            few = tokens
        else:
            many = tokens
    return few


def crossover_as_a_tensor(embed_dim, mlp_ratio):
    linears = [nn.Linear(1, 1)]  # a bias counts nothing
    assert linears
    return torch.tensor(2.0 + mlp_ratio) * embed_dim


def scores_alone(embed_dim, mlp_ratio):
    return (4 + 2 * mlp_ratio) * embed_dim


def operations_on_the_right(embed_dim, mlp_ratio):
    return (4 + 2 * mlp_ratio) * embed_dim**2 / (2 * 2 * embed_dim)


def without_the_mlp(embed_dim, mlp_ratio):
    return 2 * embed_dim


def the_mlp_alone(embed_dim, mlp_ratio):
    return mlp_ratio * embed_dim


def without_proj(embed_dim, mlp_ratio):
    return (3 + 2 * mlp_ratio) * embed_dim / 2


def without_qkv(embed_dim, mlp_ratio):
    return (1 + 2 * mlp_ratio) * embed_dim / 2


def half_an_mlp(embed_dim, mlp_ratio):
    return (4 + mlp_ratio) * embed_dim / 2


def qkv_once(embed_dim, mlp_ratio):
    return (1 + 1 + 2 * mlp_ratio) * embed_dim / 2


def ratio_squared(embed_dim, mlp_ratio):
    return (4 * embed_dim**2 + (mlp_ratio * embed_dim) ** 2) / (2 * embed_dim)


def six_times(embed_dim, mlp_ratio):
    return 6 * embed_dim


def without_d(embed_dim, mlp_ratio):
    return 2 + mlp_ratio


def with_d_squared(embed_dim, mlp_ratio):
    return (2 + mlp_ratio) * embed_dim * embed_dim


def crossover_upside_down(embed_dim, mlp_ratio):
    return 2 * embed_dim / (4 + 2 * mlp_ratio)


def linears_of_a_token(embed_dim, mlp_ratio):
    return (4 + 2 * mlp_ratio) * embed_dim**2


def ratio_cut(embed_dim, mlp_ratio):
    return (2 + int(mlp_ratio)) * embed_dim


def whole_tokens(embed_dim, mlp_ratio):
    return int((2 + mlp_ratio) * embed_dim)


def both_sides(embed_dim, mlp_ratio):
    return (4 + 2 * mlp_ratio) * embed_dim**2, 2 * embed_dim


def crossover_printed(embed_dim, mlp_ratio):
    str((2 + mlp_ratio) * embed_dim)


# int8_rows ---------------------------------------------------------------------------------------


def rows_by_amax(weight):
    scales = weight.abs().amax(dim=1, keepdim=True) / 127
    scales[scales == 0] = 1
    return (weight / scales).round().to(torch.int8), scales


def rows_one_by_one(weight):
    whole, scales = [], []
    for row in weight:
        scale = max(row.abs().max().item(), 0) / 127 or 1.0
        whole.append([round(number / scale) for number in row.tolist()])
        scales.append([scale])
    return torch.tensor(whole, dtype=torch.int8), torch.tensor(scales)


def rows_by_limits(weight):
    largest = torch.maximum(weight.max(dim=1).values, -weight.min(dim=1).values)[:, None]
    scales = torch.where(largest > 0, largest / 127, torch.ones_like(largest))
    return [torch.floor(weight / scales + 0.5).char(), scales]


def rows_by_norm(weight):
    scales = weight.norm(p=torch.inf, dim=1, keepdim=True) / 127
    scales = scales.masked_fill(scales == 0, 1)
    return weight.div(scales).round().clamp(-127, 127).type(torch.int8), scales


def one_scale(weight):
    scale = weight.abs().max() / 127
    return (weight / scale).round().to(torch.int8), scale


def one_scale_in_all_rows(weight):
    scales = (weight.abs().max() / 127).repeat(len(weight), 1)
    return (weight / scales).round().to(torch.int8), scales


def scales_of_columns(weight):
    scales = weight.abs().amax(dim=0, keepdim=True) / 127
    return (weight / scales).round().to(torch.int8), scales


def largest_with_its_sign(weight):
    scales = weight.amax(dim=1, keepdim=True) / 127
    return (weight / scales).round().to(torch.int8), scales


def over_128(weight):
    scales = weight.abs().amax(dim=1, keepdim=True) / 128
    scales[scales == 0] = 1
    return (weight / scales).round().to(torch.int8), scales


def over_255(weight):
    scales = weight.abs().amax(dim=1, keepdim=True) / 255
    scales[scales == 0] = 1
    return (weight / scales).round().to(torch.int8), scales


def twice_over_255(weight):
    scales = 2 * weight.abs().amax(dim=1, keepdim=True) / 255
    scales[scales == 0] = 1
    return (weight / scales).round().to(torch.int8), scales


def by_the_mean(weight):
    scales = weight.abs().mean(dim=1, keepdim=True) / 127
    scales[scales == 0] = 1
    return (weight / scales).round().to(torch.int8), scales


def not_divided(weight):
    scales = weight.abs().amax(dim=1, keepdim=True)
    scales[scales == 0] = 1
    return (weight / scales).round().to(torch.int8), scales


def cut_off(weight):
    scales = weight.abs().amax(dim=1, keepdim=True) / 127
    scales[scales == 0] = 1
    return (weight / scales).to(torch.int8), scales


def rounded_down(weight):
    scales = weight.abs().amax(dim=1, keepdim=True) / 127
    scales[scales == 0] = 1
    return (weight / scales).floor().to(torch.int8), scales


def still_fractions(weight):
    scales = weight.abs().amax(dim=1, keepdim=True) / 127
    scales[scales == 0] = 1
    return weight / scales, scales


def whole_in_floats(weight):
    scales = weight.abs().amax(dim=1, keepdim=True) / 127
    scales[scales == 0] = 1
    return (weight / scales).round(), scales


def whole_in_int(weight):
    whole, scales = rows_by_amax(weight)
    return whole.int(), scales


def whole_in_uint8(weight):
    scales = weight.abs().amax(dim=1, keepdim=True) / 127
    scales[scales == 0] = 1
    return (weight / scales).round().long().to(torch.uint8), scales


def scales_upside_down(weight):
    scales = 127 / weight.abs().amax(dim=1, keepdim=True)
    scales[scales.isinf()] = 1
    return (weight * scales).round().to(torch.int8), scales


def scales_in_a_row(weight):
    whole, scales = rows_by_amax(weight)
    return whole, scales[:, 0]


def scales_that_do_not_meet(weight):
    scales = weight.abs().amax(dim=1) / 127
    return (weight / scales).round().to(torch.int8), scales


def zeros_forgotten(weight):
    scales = weight.abs().amax(dim=1, keepdim=True) / 127
    return (weight / scales).round().to(torch.int8), scales


def zeros_clamped(weight):
    scales = weight.abs().amax(dim=1, keepdim=True).clamp(min=1e-8) / 127
    return (weight / scales).round().to(torch.int8), scales


def zeros_with_a_little(weight):
    scales = (weight.abs().amax(dim=1, keepdim=True) + 1e-12) / 127
    return (weight / scales).round().to(torch.int8), scales


def from_end_to_end(weight):
    low, high = weight.min(dim=1, keepdim=True).values, weight.max(dim=1, keepdim=True).values
    scales = (high - low) / 255
    scales[scales == 0] = 1
    return ((weight - low) / scales - 128).round().to(torch.int8), scales


def put_back(weight):
    whole, scales = rows_by_amax(weight)
    return whole * scales


def signs_lost(weight):
    weight = weight.abs()
    return rows_by_amax(weight)


def rows_swapped(weight):
    whole, scales = rows_by_amax(weight)
    return scales, whole


def whole_alone(weight):
    return rows_by_amax(weight)[0]


def written_into(weight):
    scales = weight.abs().amax(dim=1, keepdim=True) / 127
    scales[scales == 0] = 1
    weight /= scales
    return weight.round().to(torch.int8), scales


# merge_schedule ----------------------------------------------------------------------------------


def middle_and_end():
    return [0, 4, 3, 4]


def most_in_the_third():
    return [0, 3, 4, 4]


def all_that_is_left_at_the_end():
    return (0, 4, 2, 8)


def one_in_each():
    return [1, 1, 1, 1]


def two_in_each():
    return [2, 2, 2, 2]


def three_in_each():
    return [3, 3, 3, 3]


def at_the_start():
    return [5, 0, 0, 0]


def at_the_start_and_the_end():
    return [4, 0, 0, 6]


def at_the_end_alone():
    return [0, 0, 0, 8]


def in_one_go():
    return [8, 4, 2, 1]


def nothing_at_all():
    return [0, 0, 0, 0]


def one_number():
    return 2


def three_numbers():
    return [0, 4, 8]


def below_zero():
    return [0, 8, -1, 8]


def as_fractions():
    return [0.0, 3.5, 4.0, 4.0]


def as_a_tensor():
    return torch.tensor([0, 4, 3, 4])


def schedule_in_words():
    return "0, 4, 3, 4"


RIGHT = {
    "crossover": [
        crossover_in_short,
        crossover_by_parts,
        crossover_by_search,
        crossover_as_a_tensor,
    ],
    "int8_rows": [rows_by_amax, rows_one_by_one, rows_by_limits, rows_by_norm],
    "merge_schedule": [middle_and_end, most_in_the_third, all_that_is_left_at_the_end],
}

WRONG = {
    "crossover": [
        (scores_alone, "one of the two is missing"),
        (operations_on_the_right, "multiply-adds on both"),
        (without_the_mlp, "the MLP is missing"),
        (the_mlp_alone, "qkv and proj are missing"),
        (without_proj, "proj is missing"),
        (without_qkv, "qkv is missing"),
        (half_an_mlp, "two Linears"),
        (qkv_once, "qkv counts once"),
        (ratio_squared, "is squared"),
        (six_times, "holds for 4 alone"),
        (without_d, "D is missing"),
        (with_d_squared, "D is squared"),
        (crossover_upside_down, "upside down"),
        (linears_of_a_token, "cost for one token"),
        (ratio_cut, "mlp_ratio loses its fraction"),
        (whole_tokens, "N loses its fraction"),
        (both_sides, "give one number"),
        (crossover_printed, "returns nothing"),
    ],
    "int8_rows": [
        (one_scale, "one for each row"),
        (one_scale_in_all_rows, "one for each row"),
        (scales_of_columns, "those of the columns"),
        (largest_with_its_sign, "the sign is kept"),
        (over_128, "divided by 128"),
        (over_255, "255 steps"),
        (twice_over_255, "255 steps"),
        (by_the_mean, "it is the mean"),
        (not_divided, "the division by 127 is missing"),
        (cut_off, "round first"),
        (rounded_down, "round first"),
        (still_fractions, "the fractions are still there"),
        (whole_in_floats, "not held in 8 bits"),
        (whole_in_int, "not held in 8 bits"),
        (whole_in_uint8, "uint8 holds 0 to 255"),
        (scales_upside_down, "upside down"),
        (scales_in_a_row, "(rows, 1)"),
        (scales_that_do_not_meet, "(rows, 1)"),
        (zeros_forgotten, "the scale 1"),
        (zeros_clamped, "the scale 1"),
        (zeros_with_a_little, "the scale 1"),
        (from_end_to_end, "evenly around 0"),
        (put_back, "the weight after rounding"),
        (signs_lost, "the signs are lost"),
        (rows_swapped, "changed places"),
        (whole_alone, "the scales are missing"),
        (written_into, "changes the tensor that it was given"),
    ],
    "merge_schedule": [
        (one_in_each, "at most 75% may be left"),
        (two_in_each, "are asked for"),
        (three_in_each, "are asked for"),
        (at_the_start, "which token does the head still read"),
        (at_the_start_and_the_end, "one patch alone"),
        (at_the_end_alone, "at most 75% may be left"),
        (in_one_go, "all that can be merged"),
        (nothing_at_all, "nothing is merged"),
        (one_number, "one alone is not a schedule"),
        (three_numbers, "the model has 4 blocks"),
        (below_zero, "0 tokens or more"),
        (as_fractions, "give whole numbers"),
        (as_a_tensor, "it gives a tensor"),
        (schedule_in_words, "a list of four"),
    ],
}
