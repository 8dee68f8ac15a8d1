"""Answers to lesson 11's build cells and exercises, as learners would write them."""

import math

import numpy as np
import torch

# drop_path_rates ---------------------------------------------------------------------------------


def rates_by_linspace(rate, depth):
    return torch.linspace(0, rate, depth).tolist()


def rates_by_numpy(rate, depth):
    return list(np.linspace(0, rate, depth))


def rates_in_a_loop(rate, depth):
    if depth == 1:
        return [0.0]
    rates = []
    for i in range(depth):
        rates.append(i / (depth - 1) * rate)
    return rates


def rates_by_steps(rate, depth):
    step = rate / (depth - 1) if depth > 1 else 0
    rates = [0.0]
    while len(rates) < depth:
        rates.append(rates[-1] + step)
    return rates


def never_the_full_rate(rate, depth):
    return [rate * i / depth for i in range(depth)]


def never_zero(rate, depth):
    return [rate * (i + 1) / depth for i in range(depth)]


def depth_one_forgotten(rate, depth):
    return [rate * i / (depth - 1) for i in range(depth)]


def depth_one_full(rate, depth):
    if depth == 1:
        return [rate]
    return [rate * i / (depth - 1) for i in range(depth)]


def rates_as_tensor(rate, depth):
    return torch.linspace(0, rate, depth)


def rates_as_tensors(rate, depth):
    return [x for x in torch.linspace(0, rate, depth)]  # noqa: C416


def rates_as_array(rate, depth):
    return np.linspace(0, rate, depth)


def rates_as_tuple(rate, depth):
    return tuple(rates_in_a_loop(rate, depth))


def rates_as_generator(rate, depth):
    return (rate * i / max(depth - 1, 1) for i in range(depth))


def one_too_many(rate, depth):
    return [rate * i / depth for i in range(depth + 1)]


def rates_backwards(rate, depth):
    return rates_in_a_loop(rate, depth)[::-1]


def same_for_all(rate, depth):
    return [rate] * depth


def shares_kept(rate, depth):
    return [1 - x for x in rates_in_a_loop(rate, depth)]


def rates_squared(rate, depth):
    return [rate * (i / max(depth - 1, 1)) ** 2 for i in range(depth)]


def whole_division(rate, depth):
    return [rate * (i // max(depth - 1, 1)) for i in range(depth)]


def rates_by_arange(rate, depth):
    return torch.arange(0, rate, rate / depth).tolist()


def steps_of_the_rate(rate, depth):
    return [rate * i for i in range(depth)]


def rates_without_rate(rate, depth):
    return [i / max(depth - 1, 1) for i in range(depth)]


def rates_rounded(rate, depth):
    return [round(x, 2) for x in rates_in_a_loop(rate, depth)]


def last_rate_alone(rate, depth):
    last = 0.0
    for i in range(depth):
        last = rate * i / max(depth - 1, 1)
    return last


# rotary ------------------------------------------------------------------------------------------


def rotary_by_halves(x, places):
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"d is {d}, an odd number; the numbers are turned in pairs")
    half = d // 2
    omega = 10000 ** (-torch.arange(half) / half)
    angles = places[:, None] * omega
    a, b = x[..., :half], x[..., half:]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


def rotary_by_rotate_half(x, places):
    """As in many language models."""
    if x.shape[-1] % 2 != 0:
        raise ValueError("d must be even")
    inv_freq = 1.0 / (10000 ** (torch.arange(0, x.shape[-1], 2).float() / x.shape[-1]))
    freqs = torch.outer(places.float(), inv_freq)
    emb = torch.cat((freqs, freqs), dim=-1)
    x1, x2 = x.chunk(2, dim=-1)
    return x * emb.cos() + torch.cat((-x2, x1), dim=-1) * emb.sin()


def rotary_by_complex(x, places):
    if x.shape[-1] % 2:
        raise ValueError("odd width")
    half = x.shape[-1] // 2
    points = torch.complex(x[..., :half], x[..., half:])
    omega = torch.exp(-math.log(10000) * torch.arange(half) / half)
    turns = torch.polar(torch.ones(len(places), half), places.float()[:, None] * omega)
    turned = points * turns
    return torch.cat([turned.real, turned.imag], dim=-1)


def rotary_by_matrices(x, places):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("d is odd")
    out = torch.zeros_like(x)
    for n, place in enumerate(places.tolist()):
        for k in range(d // 2):
            angle = place * 10000 ** (-k / (d // 2))
            cos, sin = math.cos(angle), math.sin(angle)
            turn = torch.tensor([[cos, -sin], [sin, cos]])
            out[:, :, n, [k, k + d // 2]] = x[:, :, n, [k, k + d // 2]] @ turn.T
    return out


def turned(
    x,
    places,
    sign=1.0,
    omega=None,
    parts=None,
    join=lambda a, b: torch.cat([a, b], dim=-1),
    shift=0,
):
    """The right way, with one part of it another."""
    d = x.shape[-1]
    if d % 2:
        raise ValueError("d is odd")
    half = d // 2
    if omega is None:
        omega = 10000 ** (-torch.arange(half) / half)
    a, b = parts(x) if parts else x.chunk(2, dim=-1)
    angles = sign * (places + shift)[:, None] * omega
    return join(a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos())


def neighbours_turned(x, places):
    """Pairs of neighbours, as in the paper (RoFormer)."""
    return turned(
        x,
        places,
        parts=lambda x: (x[..., 0::2], x[..., 1::2]),
        join=lambda a, b: torch.stack([a, b], dim=-1).flatten(-2),
    )


def neighbours_to_halves(x, places):
    return turned(x, places, parts=lambda x: (x[..., 0::2], x[..., 1::2]))


def clockwise(x, places):
    return turned(x, places, sign=-1)


def slow_by_half(x, places):
    half = x.shape[-1] // 2
    return turned(x, places, omega=10000 ** (-torch.arange(half) / x.shape[-1]))


def faster_and_faster(x, places):
    half = x.shape[-1] // 2
    return turned(x, places, omega=10000 ** (torch.arange(half) / half))


def both_ends(x, places):
    half = x.shape[-1] // 2
    return turned(x, places, omega=10000 ** (-torch.arange(half) / max(half - 1, 1)))


def base_of_a_hundred(x, places):
    half = x.shape[-1] // 2
    return turned(x, places, omega=100 ** (-torch.arange(half) / half))


def k_from_one(x, places):
    half = x.shape[-1] // 2
    return turned(x, places, omega=10000 ** (-torch.arange(1, half + 1) / half))


def twice_k(x, places):
    half = x.shape[-1] // 2
    return turned(x, places, omega=10000 ** (-2 * torch.arange(half) / half))


def one_speed(x, places):
    return turned(x, places, omega=torch.ones(x.shape[-1] // 2))


def place_numbers(x, places):
    return turned(x, torch.arange(x.shape[2]))


def places_from_one(x, places):
    return turned(x, places, shift=1)


def places_cut(x, places):
    return turned(x, places.long())


def halves_swapped(x, places):
    return turned(x, places, join=lambda a, b: torch.cat([b, a], dim=-1))


def joined_by_turns(x, places):
    return turned(x, places, join=lambda a, b: torch.stack([a, b], dim=-1).flatten(-2))


def sines_and_cosines_swapped(x, places):
    if x.shape[-1] % 2:
        raise ValueError("odd")
    half = x.shape[-1] // 2
    angles = places[:, None] * 10000 ** (-torch.arange(half) / half)
    a, b = x.chunk(2, dim=-1)
    sin, cos = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


def both_minus(x, places):
    if x.shape[-1] % 2:
        raise ValueError("odd")
    half = x.shape[-1] // 2
    angles = places[:, None] * 10000 ** (-torch.arange(half) / half)
    a, b = x.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin - b * cos], dim=-1)


def both_plus(x, places):
    if x.shape[-1] % 2:
        raise ValueError("odd")
    half = x.shape[-1] // 2
    angles = places[:, None] * 10000 ** (-torch.arange(half) / half)
    a, b = x.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos + b * sin, a * sin + b * cos], dim=-1)


def second_from_the_turned(x, places):
    """The new a is used where the old one is meant."""
    if x.shape[-1] % 2:
        raise ValueError("odd")
    half = x.shape[-1] // 2
    angles = places[:, None] * 10000 ** (-torch.arange(half) / half)
    a, b = x.chunk(2, dim=-1)
    a = a * angles.cos() - b * angles.sin()
    b = a * angles.sin() + b * angles.cos()
    return torch.cat([a, b], dim=-1)


def turned_in_place(x, places):
    result = turned(x, places)
    x[:] = result
    return x


def turned_half_by_half(x, places):
    """In place, so that b meets the new a."""
    half = x.shape[-1] // 2
    if x.shape[-1] % 2:
        raise ValueError("odd")
    angles = places[:, None] * 10000 ** (-torch.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    x[..., :half] = a * angles.cos() - b * angles.sin()
    x[..., half:] = a * angles.sin() + b * angles.cos()
    return x


def odd_not_refused(x, places):
    half = x.shape[-1] // 2
    angles = places[:, None] * 10000 ** (-torch.arange(half) / half)
    a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos, rest], dim=-1)


def odd_left_to_torch(x, places):
    half = x.shape[-1] // 2
    angles = places[:, None] * 10000 ** (-torch.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


def odd_asserted(x, places):
    assert x.shape[-1] % 2 == 0, "d must be even"
    return turned(x, places)


def angles_by_head(x, places):
    """Heads are taken for tokens."""
    return turned(x.transpose(1, 2), places[: x.shape[1]]).transpose(1, 2)


def angles_at_the_heads(x, places):
    """The angles get an axis too many, and meet the heads."""
    half = x.shape[-1] // 2
    if x.shape[-1] % 2:
        raise ValueError("odd")
    angles = (places[:, None] * 10000 ** (-torch.arange(half) / half))[:, None]
    a, b = x[..., :half], x[..., half:]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


def exponent_in_pieces(x, places):
    half = x.shape[-1] // 2
    return turned(x, places, omega=10000 ** -torch.arange(half) / half)


def speeds_for_all_numbers(x, places):
    d = x.shape[-1]
    return turned(x, places, omega=10000 ** (-torch.arange(d) / (d / 2)))


def cut_along_the_batch(x, places):
    return turned(x, places, parts=lambda x: x.chunk(2))


def angles_in_degrees(x, places):
    return turned(x, places * math.pi / 180)


def added_sines(x, places):
    """Positions are added, as lesson 02 does."""
    if x.shape[-1] % 2:
        raise ValueError("odd")
    half = x.shape[-1] // 2
    angles = places[:, None] * 10000 ** (-torch.arange(half) / half)
    return x + torch.cat([angles.sin(), angles.cos()], dim=-1)


def not_turned(x, places):
    if x.shape[-1] % 2:
        raise ValueError("odd")
    return x.clone()


def first_half_alone(x, places):
    return turned(x, places, join=lambda a, b: a)


def two_halves(x, places):
    return turned(x, places, join=lambda a, b: (a, b))


# drop_kind ---------------------------------------------------------------------------------------


def kind_by_alike(outputs):
    zero = outputs == 0
    if (zero == zero[:, :1, :1]).all():
        return "sample"
    if (zero == zero[:, :, :1]).all():
        return "token"
    return "number"


def kind_by_counts(outputs):
    _, N, D = outputs.shape
    zeros = (outputs == 0).sum(dim=-1)
    if not ((zeros == 0) | (zeros == D)).all():
        return "number"
    per_sample = zeros.sum(dim=1)
    return "sample" if ((per_sample == 0) | (per_sample == N * D)).all() else "token"


def kind_by_spread(outputs):
    if outputs.amax((1, 2)).sub(outputs.amin((1, 2))).abs().max() < 1e-6:
        return "sample"
    if outputs.std(dim=2).max() < 1e-6:
        return "token"
    return "number"


def kind_in_loops(outputs):
    tokens_mixed = samples_mixed = False
    for sample in outputs:
        if len(set(sample.flatten().tolist())) > 1:
            samples_mixed = True
        for token in sample:
            if len(set(token.tolist())) > 1:
                tokens_mixed = True
    if tokens_mixed:
        return "number"
    return "token" if samples_mixed else "sample"


def kind_by_unique(outputs):
    for axes, name in ((1, "sample"), (2, "token")):
        rows = outputs.flatten(0, axes - 1).flatten(1)
        if all(row.unique().numel() == 1 for row in rows):
            return name
    return "number"


def first_sample_alone(outputs):
    zero = outputs[0] == 0
    if zero.all() or not zero.any():
        return "sample"
    if (zero == zero[:, :1]).all():
        return "token"
    return "number"


def first_token_alone(outputs):
    zero = outputs == 0
    if (zero == zero[:, :1, :1]).all():
        return "sample"
    first = zero[0, 0]
    return "token" if first.all() or not first.any() else "number"


def any_empty_sample(outputs):
    zero = outputs == 0
    if zero.all(dim=2).all(dim=1).any():
        return "sample"
    if zero.all(dim=2).any():
        return "token"
    return "number"


def any_empty_token(outputs):
    zero = outputs == 0
    if (zero == zero[:, :1, :1]).all():
        return "sample"
    return "token" if zero.all(dim=2).any() else "number"


def token_asked_first(outputs):
    zero = outputs == 0
    if (zero == zero[:, :, :1]).all():
        return "token"
    if (zero == zero[:, :1, :1]).all():
        return "sample"
    return "number"


def axes_swapped(outputs):
    zero = outputs == 0
    if (zero == zero[:, :1, :1]).all():
        return "sample"
    if (zero == zero[:, :1]).all():
        return "token"
    return "number"


def batch_axis_asked(outputs):
    zero = outputs == 0
    if (zero == zero[:1]).all():
        return "sample"
    if (zero == zero[:, :, :1]).all():
        return "token"
    return "number"


def half_dropped(outputs):
    two = outputs == 2
    if ((outputs == 0) | two).all() and (two == two[:, :1, :1]).all():
        return "sample"
    if ((outputs == 0) | two).all() and (two == two[:, :, :1]).all():
        return "token"
    return "number"


def capital(outputs):
    return kind_by_alike(outputs).capitalize()


def in_plural(outputs):
    return kind_by_alike(outputs) + "s"


def numbered_kind(outputs):
    return ["sample", "token", "number"].index(kind_by_alike(outputs))


def always_number(outputs):
    return "number"


def always_sample(outputs):
    return "sample"


def two_tokens_alone(outputs):
    zero = outputs == 0
    if (zero == zero[:, :, :1]).all():
        return "sample" if (zero[:, 0] == zero[:, 1]).all() else "token"
    return "number"


def two_numbers_alone(outputs):
    zero = outputs == 0
    if (zero == zero[:, :1, :1]).all():
        return "sample"
    return "token" if (zero[..., 0] == zero[..., 1]).all() else "number"


def by_the_share(outputs):
    """The more pieces, the nearer the share is to a half: it is not."""
    share = (outputs == 0).float().mean().item()
    if share < 0.3:
        return "sample"
    return "token" if share < 0.6 else "number"


def kind_for_sizes(outputs):
    zero = (outputs == 0).reshape(16, 12, 10)
    return kind_by_alike(zero.logical_not().float())


def kinds_turned_round(outputs):
    return {"sample": "number", "token": "token", "number": "sample"}[kind_by_alike(outputs)]


def kind_printed(outputs):
    print(kind_by_alike(outputs))


def majority(outputs):
    """Asks what most do."""
    zero = outputs == 0
    alike = (zero == zero[:, :1, :1]).flatten(1).all(dim=1).float().mean()
    if alike > 0.3:
        return "sample"
    return "token" if (zero == zero[:, :, :1]).all(dim=2).float().mean() > 0.3 else "number"


RIGHT = {
    "drop_path_rates": [rates_by_linspace, rates_by_numpy, rates_in_a_loop, rates_by_steps],
    "rotary": [rotary_by_halves, rotary_by_rotate_half, rotary_by_complex, rotary_by_matrices],
    "drop_kind": [kind_by_alike, kind_by_counts, kind_by_spread, kind_in_loops, kind_by_unique],
}

WRONG = {
    "drop_path_rates": [
        (never_the_full_rate, "does not reach the rate"),
        (never_zero, "starts above 0"),
        (depth_one_forgotten, "give [0.0]"),
        (depth_one_full, "give [0.0]"),
        (rates_as_tensor, ".tolist()"),
        (rates_as_tensors, "the list holds tensors"),
        (rates_as_array, ".tolist()"),
        (rates_as_tuple, "a tuple"),
        (rates_as_generator, "put it in [ … ]"),
        (one_too_many, "one number too many"),
        (rates_backwards, "backwards"),
        (same_for_all, "the same rate"),
        (shares_kept, "the shares that stay"),
        (rates_squared, "not equal"),
        (whole_division, "divide by /"),
        (rates_by_arange, "does not reach the rate"),
        (steps_of_the_rate, "as large as the rate"),
        (rates_without_rate, "multiply by `rate`"),
        (rates_rounded, "rounded"),
        (last_rate_alone, "this is one number"),
    ],
    "rotary": [
        (neighbours_turned, "neighbours"),
        (neighbours_to_halves, "put back as halves"),
        (clockwise, "clockwise"),
        (slow_by_half, "k / d in place of"),
        (faster_and_faster, "without its minus"),
        (both_ends, "k / (d/2 - 1)"),
        (base_of_a_hundred, "a base of 100"),
        (k_from_one, "count k from 0"),
        (twice_k, "2k belongs over d"),
        (one_speed, "all pairs turn alike"),
        (place_numbers, "the places are not used"),
        (places_from_one, "counted from 1"),
        (places_cut, "lose their fractions"),
        (halves_swapped, "have changed places"),
        (joined_by_turns, "put back by turns"),
        (sines_and_cosines_swapped, "swapped"),
        (both_minus, "a sign is wrong"),
        (both_plus, "a sign is wrong"),
        (second_from_the_turned, "from the new first half"),
        (turned_in_place, "changes the tensor that it was given"),
        (turned_half_by_half, "changes the tensor that it was given"),
        (odd_not_refused, "raise a ValueError"),
        (odd_left_to_torch, "raise a ValueError"),
        (odd_asserted, "raise a ValueError"),
        (angles_by_head, "the angles follow the heads"),
        (angles_at_the_heads, "expected"),
        (exponent_in_pieces, "numbers are wrong"),
        (speeds_for_all_numbers, "expected"),
        (cut_along_the_batch, "to unpack"),
        (angles_in_degrees, "radians"),
        (added_sines, "as in lesson 02"),
        (not_turned, "nothing is turned"),
        (first_half_alone, "the first half alone"),
        (two_halves, "the two halves are apart"),
    ],
    "drop_kind": [
        (first_sample_alone, "the first sample alone"),
        (first_token_alone, "the first token alone"),
        (any_empty_sample, "empty by chance"),
        (any_empty_token, "empty by chance"),
        (token_asked_first, "ask for samples first"),
        (axes_swapped, "the last axis"),
        (batch_axis_asked, "samples compared with each other"),
        (half_dropped, "a rate of 0.5"),
        (capital, "written otherwise"),
        (in_plural, "written otherwise"),
        (numbered_kind, "not its number"),
        (always_number, "always the same"),
        (always_sample, "always the same"),
        (two_tokens_alone, "two tokens alone"),
        (two_numbers_alone, "two numbers of a token"),
        (by_the_share, "share of zeros"),
        (kind_for_sizes, "outputs.shape"),
        (kinds_turned_round, "swapped"),
        (kind_printed, "returns nothing"),
        (majority, "was drawn"),
    ],
}
