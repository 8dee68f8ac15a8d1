"""Answers to lesson 08's exercises, as learners would write them."""

from itertools import combinations, permutations
from random import sample
from statistics import mean, median

import numpy as np
import torch
from torch.nn import functional as F

# leaked(train_images, test_images): which test pictures stand in the training set


def leaked_by_loops(train_images, test_images):
    found = []
    for number, picture in enumerate(test_images):
        for other in train_images:
            if torch.equal(picture, other):
                found.append(number)
                break
    return found


def leaked_by_distance(train_images, test_images):
    apart = torch.cdist(test_images.flatten(1), train_images.flatten(1), p=1)
    return [i for i, row in enumerate(apart) if row.min() == 0]


def leaked_by_broadcast(train_images, test_images):
    same = (test_images[:, None] == train_images[None]).flatten(2).all(dim=2)
    return torch.nonzero(same.any(dim=1)).flatten().tolist()


def leaked_by_bytes(train_images, test_images):
    known = {picture.numpy().tobytes() for picture in train_images}
    return [i for i, p in enumerate(test_images) if p.numpy().tobytes() in known]


def train_numbers(train_images, test_images):
    return leaked_by_loops(test_images, train_images)


def counted_leaks(train_images, test_images):
    return len(leaked_by_loops(train_images, test_images))


def yes_or_no_each(train_images, test_images):
    hits = leaked_by_loops(train_images, test_images)
    return [i in hits for i in range(len(test_images))]


def any_leak(train_images, test_images):
    return len(leaked_by_loops(train_images, test_images)) > 0


def one_pixel_is_enough(train_images, test_images):
    same = (test_images[:, None] == train_images[None]).flatten(2).any(dim=2)
    return same.any(dim=1).nonzero()[:, 0].tolist()


def same_place_only(train_images, test_images):
    n = min(len(train_images), len(test_images))
    return [i for i in range(n) if torch.equal(train_images[i], test_images[i])]


def by_their_sums(train_images, test_images):
    sums = train_images.flatten(1).sum(dim=1).tolist()
    return [i for i, s in enumerate(test_images.flatten(1).sum(dim=1).tolist()) if s in sums]


def every_pair(train_images, test_images):
    found = []
    for i, picture in enumerate(test_images):
        for other in train_images:
            if torch.equal(picture, other):
                found.append(i)
    return found


def in_train_order(train_images, test_images):
    found = []
    for other in train_images:
        for i, picture in enumerate(test_images):
            if torch.equal(picture, other) and i not in found:
                found.append(i)
    return found


def nearly_equal(train_images, test_images):
    apart = torch.cdist(test_images.flatten(1), train_images.flatten(1))
    return (apart.min(dim=1).values < 0.5).nonzero()[:, 0].tolist()


def within_a_thousandth(train_images, test_images):
    return [
        i
        for i, test in enumerate(test_images)
        if any(torch.allclose(test, train, atol=1e-3) for train in train_images)
    ]


def by_allclose(train_images, test_images):
    return [
        i
        for i, test in enumerate(test_images)
        if any(torch.allclose(test, train) for train in train_images)
    ]


def descending(train_images, test_images):
    return leaked_by_loops(train_images, test_images)[::-1]


def as_a_set(train_images, test_images):
    return set(leaked_by_loops(train_images, test_images))


def the_clean_ones(train_images, test_images):
    hits = leaked_by_loops(train_images, test_images)
    return [i for i in range(len(test_images)) if i not in hits]


def first_only(train_images, test_images):
    return leaked_by_loops(train_images, test_images)[:1]


def from_one(train_images, test_images):
    return [i + 1 for i in leaked_by_loops(train_images, test_images)]


# by_luck(first, second): the share of divisions whose gap is at least as large


def luck_by_combinations(first, second):
    bag = list(first) + list(second)
    seen = abs(mean(first) - mean(second))
    ways = hits = 0
    for chosen in combinations(range(len(bag)), len(first)):
        left = [bag[i] for i in chosen]
        right = [bag[i] for i in range(len(bag)) if i not in chosen]
        ways += 1
        hits += abs(mean(left) - mean(right)) >= seen - 1e-9
    return hits / ways


def luck_by_permutations(first, second):
    n = len(first)
    bag = np.array([*first, *second])
    orders = np.array(list(permutations(range(len(bag)))))
    mixed = bag[orders]
    gaps = np.abs(mixed[:, :n].mean(axis=1) - mixed[:, n:].mean(axis=1))
    return float((gaps > abs(np.mean(first) - np.mean(second)) - 1e-9).mean())


def luck_by_masks(first, second):
    bag = torch.tensor([*first, *second], dtype=torch.float64)
    n, total = len(first), len(first) + len(second)
    seen, gaps = abs(bag[:n].mean() - bag[n:].mean()), []
    for code in range(2**total):
        mask = torch.tensor([bool(code >> i & 1) for i in range(total)])
        if mask.sum() == n:
            gaps.append(abs(bag[mask].mean() - bag[~mask].mean()))
    return sum(gap >= seen - 1e-9 for gap in gaps) / len(gaps)


def divided(first, second, gap=None, hit=None):
    bag, n = list(first) + list(second), len(first)
    gap = gap or (lambda a, b: abs(mean(a) - mean(b)))
    hit = hit or (lambda now, seen: now >= seen - 1e-9)
    seen = gap(first, second)
    gaps = []
    for chosen in combinations(range(len(bag)), n):
        left = [bag[i] for i in chosen]
        right = [bag[i] for i in range(len(bag)) if i not in chosen]
        gaps.append(gap(left, right))
    return [hit(now, seen) for now in gaps]


def share_of(hits):
    return sum(hits) / len(hits)


def with_a_sign(first, second):
    return share_of(divided(first, second, gap=lambda a, b: mean(a) - mean(b)))


def with_the_other_sign(first, second):
    return share_of(divided(first, second, gap=lambda a, b: mean(b) - mean(a)))


def strictly_larger(first, second):
    return share_of(divided(first, second, hit=lambda now, seen: now > seen + 1e-9))


def smaller_share(first, second):
    return 1 - share_of(divided(first, second))


def smaller_or_equal(first, second):
    return share_of(divided(first, second, hit=lambda now, seen: now <= seen + 1e-9))


def how_many(first, second):
    return sum(divided(first, second))


def in_percent(first, second):
    return 100 * share_of(divided(first, second))


def of_sums(first, second):
    return share_of(divided(first, second, gap=lambda a, b: abs(sum(a) - sum(b))))


def of_medians(first, second):
    return share_of(divided(first, second, gap=lambda a, b: abs(median(a) - median(b))))


def of_the_best(first, second):
    return share_of(divided(first, second, gap=lambda a, b: abs(max(a) - max(b))))


def just_the_gap(first, second):
    return abs(mean(first) - mean(second))


def thrown_about(first, second):
    bag, n, hits = list(first) + list(second), len(first), 0
    for _ in range(500):
        mixed = sample(bag, len(bag))
        hits += abs(mean(mixed[:n]) - mean(mixed[n:])) >= abs(mean(first) - mean(second)) - 1e-9
    return hits / 500


def removed_by_value(first, second):
    bag, seen = [*first, *second], abs(mean(first) - mean(second))
    gaps = []
    for left in combinations(bag, len(first)):
        right = [x for x in bag if x not in left]
        gaps.append(abs(mean(left) - mean(right)))
    return sum(gap >= seen - 1e-9 for gap in gaps) / len(gaps)


def without_a_margin(first, second):
    return share_of(divided(first, second, hit=lambda now, seen: now >= seen))


def in_a_set(first, second):
    bag, seen = [*first, *second], abs(mean(first) - mean(second))
    gaps = []
    for left in set(combinations(bag, len(first))):
        right = list(bag)
        for x in left:
            right.remove(x)
        gaps.append(abs(mean(left) - mean(right)))
    return sum(gap >= seen - 1e-9 for gap in gaps) / len(gaps)


def halves(first, second):
    bag, seen = [*first, *second], abs(mean(first) - mean(second))
    gaps = []
    for chosen in combinations(range(len(bag)), len(bag) // 2):
        left = [bag[i] for i in chosen]
        right = [bag[i] for i in range(len(bag)) if i not in chosen]
        gaps.append(abs(mean(left) - mean(right)))
    return sum(gap >= seen - 1e-9 for gap in gaps) / len(gaps)


def threes(first, second):
    bag, seen = [*first, *second], abs(mean(first) - mean(second))
    gaps = []
    for chosen in combinations(range(6), 3):
        left = [bag[i] for i in chosen]
        right = [bag[i] for i in range(6) if i not in chosen]
        gaps.append(abs(mean(left) - mean(right)))
    return sum(gap >= seen - 1e-9 for gap in gaps) / len(gaps)


def first_against_all(first, second):
    bag, whole = [*first, *second], mean([*first, *second])
    seen = abs(mean(first) - mean(second))
    gaps = [abs(mean(chosen) - whole) for chosen in combinations(bag, len(first))]
    return sum(gap >= seen - 1e-9 for gap in gaps) / len(gaps)


def without_the_real_one(first, second):
    hits = divided(first, second)
    return (sum(hits) - 1) / (len(hits) - 1)


# moved(images, generator): each picture by -1, 0 or 1 pixel in both directions


def moved_by_padding(images, generator):
    _, _, height, width = images.shape
    wide = F.pad(images, (1, 1, 1, 1), value=-1.0)
    starts = torch.randint(0, 3, (len(images), 2), generator=generator).tolist()
    cut = [w[:, r : r + height, c : c + width] for w, (r, c) in zip(wide, starts, strict=True)]
    return torch.stack(cut)


def moved_on_a_canvas(images, generator):
    new = torch.full_like(images, -1)
    h, w = images.shape[2:]
    for i in range(len(images)):
        down = int(torch.randint(-1, 2, (1,), generator=generator))
        right = int(torch.randint(-1, 2, (1,), generator=generator))
        rows = slice(max(down, 0), h + min(down, 0)), slice(max(right, 0), w + min(right, 0))
        old = slice(max(-down, 0), h + min(-down, 0)), slice(max(-right, 0), w + min(-right, 0))
        new[i, :, rows[0], rows[1]] = images[i, :, old[0], old[1]]
    return new


def moved_by_index(images, generator):
    b, c, h, w = images.shape
    wide = F.pad(images, (1, 1, 1, 1), value=-1.0)
    down, right = torch.randint(0, 3, (2, b), generator=generator)
    rows = (torch.arange(h) + down[:, None])[:, None, :, None]
    cols = (torch.arange(w) + right[:, None])[:, None, None, :]
    return wide[
        torch.arange(b)[:, None, None, None], torch.arange(c)[None, :, None, None], rows, cols
    ]


def rolled_back_to_paper(images, generator):
    out = []
    for image in images:
        down, right = (torch.randint(3, (2,), generator=generator) - 1).tolist()
        image = image.roll((down, right), (1, 2))
        if down:
            image[:, 0 if down > 0 else -1, :] = -1
        if right:
            image[:, :, 0 if right > 0 else -1] = -1
        out.append(image)
    return torch.stack(out)


def rolled(images, generator):
    shifts = torch.randint(-1, 2, (len(images), 2), generator=generator).tolist()
    return torch.stack([i.roll(s, dims=(1, 2)) for i, s in zip(images, shifts, strict=True)])


def zeros_come_in(images, generator):
    h, w = images.shape[2:]
    wide = F.pad(images, (1, 1, 1, 1))
    starts = torch.randint(0, 3, (len(images), 2), generator=generator).tolist()
    return torch.stack([x[:, r : r + h, c : c + w] for x, (r, c) in zip(wide, starts, strict=True)])


def edge_comes_in(images, generator):
    h, w = images.shape[2:]
    wide = F.pad(images, (1, 1, 1, 1), mode="replicate")
    starts = torch.randint(0, 3, (len(images), 2), generator=generator).tolist()
    return torch.stack([x[:, r : r + h, c : c + w] for x, (r, c) in zip(wide, starts, strict=True)])


def one_move_for_all(images, generator):
    h, w = images.shape[2:]
    wide = F.pad(images, (1, 1, 1, 1), value=-1.0)
    r, c = torch.randint(0, 3, (2,), generator=generator).tolist()
    return wide[:, :, r : r + h, c : c + w]


def end_left_out(images, generator):  # randint(-1, 1) never gives 1
    h, w = images.shape[2:]
    wide = F.pad(images, (1, 1, 1, 1), value=-1.0)
    starts = (1 + torch.randint(-1, 1, (len(images), 2), generator=generator)).tolist()
    return torch.stack([x[:, r : r + h, c : c + w] for x, (r, c) in zip(wide, starts, strict=True)])


def never_still(images, generator):
    h, w = images.shape[2:]
    wide = F.pad(images, (1, 1, 1, 1), value=-1.0)
    starts = (2 * torch.randint(0, 2, (len(images), 2), generator=generator)).tolist()
    return torch.stack([x[:, r : r + h, c : c + w] for x, (r, c) in zip(wide, starts, strict=True)])


def along_the_diagonal(images, generator):
    h, w = images.shape[2:]
    wide = F.pad(images, (1, 1, 1, 1), value=-1.0)
    starts = torch.randint(0, 3, (len(images),), generator=generator).tolist()
    return torch.stack([x[:, s : s + h, s : s + w] for x, s in zip(wide, starts, strict=True)])


def sideways_only(images, generator):
    w = images.shape[3]
    wide = F.pad(images, (1, 1, 0, 0), value=-1.0)
    starts = torch.randint(0, 3, (len(images),), generator=generator).tolist()
    return torch.stack([x[:, :, s : s + w] for x, s in zip(wide, starts, strict=True)])


def too_far(images, generator):
    h, w = images.shape[2:]
    wide = F.pad(images, (2, 2, 2, 2), value=-1.0)
    starts = torch.randint(0, 5, (len(images), 2), generator=generator).tolist()
    return torch.stack([x[:, r : r + h, c : c + w] for x, (r, c) in zip(wide, starts, strict=True)])


def grown(images, generator):
    return F.pad(images, (1, 1, 1, 1), value=-1.0)


def without_the_generator(images, generator):
    return moved_by_padding(images, None)


def a_generator_of_its_own(images, generator):
    return moved_by_padding(images, torch.Generator().manual_seed(0))


def not_moved(images, generator):
    return images


def written_into(images, generator):
    images[:] = moved_by_padding(images, generator)
    return images


def half_a_pixel(images, generator):
    theta = torch.eye(2, 3).repeat(len(images), 1, 1)
    theta[:, :, 2] = (torch.rand(len(images), 2, generator=generator) * 2 - 1) * 0.25
    grid = F.affine_grid(theta, list(images.shape), align_corners=False)
    return F.grid_sample(images + 1, grid, align_corners=False) - 1


def with_the_labels(images, generator):
    return moved_by_padding(images, generator), torch.arange(len(images))


def only_the_first(images, generator):
    return moved_by_padding(images, generator)[0]


def square_only(images, generator):
    side = images.shape[-1]
    wide = F.pad(images, (1, 1, 1, 1), value=-1.0)
    starts = torch.randint(0, 3, (len(images), 2), generator=generator).tolist()
    return torch.stack(
        [x[:, r : r + side, c : c + side] for x, (r, c) in zip(wide, starts, strict=True)]
    )


def rounded_draws(images, generator):  # half of them stand still
    h, w = images.shape[2:]
    wide = F.pad(images, (1, 1, 1, 1), value=-1.0)
    steps = (torch.rand(len(images), 2, generator=generator) * 2 - 1).round().long()
    return torch.stack(
        [x[:, 1 - d : 1 - d + h, 1 - r : 1 - r + w] for x, (d, r) in zip(wide, steps, strict=True)]
    )


RIGHT = {
    "leaked": [leaked_by_loops, leaked_by_distance, leaked_by_broadcast, leaked_by_bytes],
    "by_luck": [luck_by_combinations, luck_by_permutations, luck_by_masks],
    "moved": [moved_by_padding, moved_on_a_canvas, moved_by_index, rolled_back_to_paper],
}

WRONG = {
    "leaked": [
        (train_numbers, "numbers of the training pictures"),
        (counted_leaks, "how many there are"),
        (yes_or_no_each, "one True or False for each test picture"),
        (any_leak, "one True or False for the whole split"),
        (one_pixel_is_enough, "ask for all, not any"),
        (same_place_only, "of the same number only"),
        (by_their_sums, "can have the same sum"),
        (every_pair, "name it once"),
        (in_train_order, "not in ascending order"),
        (nearly_equal, "only nearly equal"),
        (within_a_thousandth, "only nearly equal"),
        (by_allclose, "only nearly equal"),
        (descending, "not in ascending order"),
        (as_a_set, "as a list"),
        (the_clean_ones, "these are the clean test pictures"),
        (first_only, "stops after the first copy"),
        (from_one, "you count from 1"),
    ],
    "by_luck": [
        (with_a_sign, "in which the second group is ahead counts as well"),
        (with_the_other_sign, "in which the first group is ahead counts as well"),
        (strictly_larger, "ask for >="),
        (smaller_share, "those at least as large are asked for"),
        (smaller_or_equal, "turn the comparison round"),
        (how_many, "divide by the number of all divisions"),
        (in_percent, "from 0 to 1"),
        (of_sums, "you compare sums"),
        (of_medians, "you compare medians"),
        (of_the_best, "you compare the best of each group"),
        (just_the_gap, "this is the gap itself"),
        (thrown_about, "you shuffle at random"),
        (removed_by_value, "by their places"),
        (without_a_margin, "expected 0.8"),
        (in_a_set, "count a division once for both"),
        (halves, "you divide the bag into halves"),
        (threes, "the numbers 6 and 3 are written into yours"),
        (first_against_all, "against the whole bag"),
        (without_the_real_one, "above and below the line"),
    ],
    "moved": [
        (rolled, "torch.roll does that"),
        (zeros_come_in, "paper is -1"),
        (edge_comes_in, "the edge is repeated"),
        (one_move_for_all, "draw two numbers for each picture"),
        (end_left_out, "leaves its upper end out"),
        (never_still, "moves in both directions"),
        (along_the_diagonal, "both directions always move together"),
        (sideways_only, "right and left only"),
        (too_far, "by more than one pixel"),
        (grown, "the pictures have grown"),
        (without_the_generator, "do not come from the generator"),
        (a_generator_of_its_own, "a generator of your own"),
        (not_moved, "no picture is moved"),
        (written_into, "changes the tensor that it was given"),
        (half_a_pixel, "moving it by whole pixels does not give"),
        (with_the_labels, "it gives 2 results"),
        (only_the_first, "its shape is"),
        (square_only, "square pictures only"),
        (rounded_draws, "much more often"),
    ],
}
