"""Lesson 08: could it be luck, positions out, a variant; who is on both sides, a pixel aside."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import combinations
from math import comb
from statistics import mean, median
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vit_steps.vit import ViT, ViTConfig

from .compare import Parts, Verdict, kind_of
from .exercise import Exercise
from .trials import Trial, call, fill, untouched

SMALL = ViTConfig(
    image_size=(4, 6), patch_size=2, in_channels=1, num_classes=3, embed_dim=10, depth=1,
    num_heads=2,
)  # fmt: skip


def taken_out(answer: Callable) -> Any:
    """Give the positions of a small model after the answer, and after a step of training.

    Also say whether all else is as it was, and learns.
    """
    model: Any = ViT(SMALL)
    fill(model)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    result = answer(model)
    if not isinstance(result, ViT):
        return result
    copy, model = "" if result is model else COPY, result
    positions, others = model.tokens.pos_embed.detach().clone(), ""
    for name, p in model.named_parameters():
        if name != "tokens.pos_embed" and not p.equal(before[name]):
            others = f"it changes `{name}` too; take out the positions and nothing else"
        elif name != "tokens.pos_embed" and not p.requires_grad:
            others = f"`{name}` no longer learns either; freeze the positions alone"
    mode = "" if model.training else EVALUATION
    if learning := [p for p in model.parameters() if p.requires_grad]:
        images = torch.linspace(-2, 2, 120).sin().reshape(5, 1, 4, 6)
        F.cross_entropy(model(images), torch.tensor([0, 1, 2, 1, 0])).backward()
        torch.optim.SGD(learning, lr=0.5).step()
    after = model.tokens.pos_embed.detach()
    return Parts(positions, Verdict(others), after, Verdict(mode), Verdict(copy))


EVALUATION = "it puts the model into evaluation mode; leave the mode as it is"
COPY = "it returns a copy; change the model that you are given, and return that"


no_positions = Exercise(
    uses={"deepcopy": deepcopy},
    answer="""
def no_positions(model):
    positions = model.tokens.pos_embed
    nn.init.zeros_(positions)
    positions.requires_grad = False
    return model
""",
    trials=[Trial("a small model, then a step of training", taken_out)],
    wrong=f"""
{COPY}
    positions = => model = deepcopy(model) ⏎ positions =
{EVALUATION}
    return model => return model.eval()
the other weights learn no longer either: freeze the positions alone
    positions.requires_grad = False => model.requires_grad_(False)
the positions are zero at the start, but training moves them, so the part grows back; set
requires_grad = False on the Parameter itself, model.tokens.pos_embed: on the module it does nothing
    positions.requires_grad = False =>
the positions no longer learn, but they still hold the numbers that they started with; set them to
zero as well
    nn.init.zeros_(positions) =>
the model's own positions are untouched: `positions = torch.zeros_like(positions)` only gives the
name to a new tensor, and a changed copy leaves the model as it was; write into the model's
Parameter, with nn.init.zeros_
    nn.init.zeros_(positions) => positions = torch.zeros_like(positions)
the cls token's position, the first row, is left: set all of pos_embed to zero
    nn.init.zeros_(positions) => nn.init.zeros_(positions[:, 1:])
only the cls token's position is zero; set all of pos_embed to zero
    nn.init.zeros_(positions) => nn.init.zeros_(positions[:, 0])
a small number is not zero: nothing of the positions may be left
    nn.init.zeros_(positions) => positions.data *= 0.01
the new positions have sizes of their own; keep the shape of the model's, (1, N, D), whatever N and
D are: nn.init.zeros_ does
    positions.requires… => model.tokens.pos_embed = nn.Parameter(torch.zeros(1, 17, 48), False)
PyTorch refuses to write into a Parameter while it records gradients; nn.init.zeros_ does it for
you, or write below `with torch.no_grad():`
    nn.init.zeros_(positions) => positions.zero_()
the new positions have lost their first axis: (1, N, D), the batch's
    positions.requires… => model.tokens.pos_embed = nn.Parameter(torch.zeros(7, 10), False)
it returns nothing; give the model back: return model
    return model =>
it returns the positions; give the model back: return model
    return model => return positions
""",
    why="A Parameter whose `requires_grad` is False gets no gradient, so no optimizer moves it. "
    "`.data` or `torch.no_grad()` do as well for the zeros.",
)


def gap(first: Sequence[float], second: Sequence[float]) -> float:
    """Give how far two means are apart."""
    return abs(sum(first) / len(first) - sum(second) / len(second))


def again(what: str, first: list[float], second: list[float]) -> Trial:
    """Make a trial that calls the answer several times: it must not depend on chance."""
    ways = comb(len(first) + len(second), len(first))

    def run(answer: Callable) -> Any:
        results = [untouched(answer, list(first), list(second)) for _ in range(4)]
        numbers = all(isinstance(result, (int, float)) for result in results)
        if numbers and min(results) != max(results):
            return Verdict(
                f"it gives {min(results):.3g} one time and {max(results):.3g} another: you shuffle "
                "at random; go through every way once (itertools.combinations)"
            )
        hits = ways * results[0] if numbers and 0 < results[0] < 1 else 0
        if abs(hits - round(hits)) > 1e-3:
            return Verdict(
                f"there are {ways} ways, and {results[0]:.6g} of them is no whole number: go "
                "through every way once (itertools.combinations), draw none at random, and add no 1"
            )
        return results[0]

    return Trial(what, run)


by_luck = Exercise(
    answer="""
def by_luck(first, second):
    bag, seen = [*first, *second], gap(first, second)
    ways = hits = 0
    for chosen in combinations(range(len(bag)), len(first)):
        group = [bag[i] for i in chosen]
        rest = [bag[i] for i in range(len(bag)) if i not in chosen]
        ways += 1
        hits += gap(group, rest) >= seen - 1e-9
    return hits / ways
""",
    trials=[
        again("[1, 1] and [2, 3]", [1.0, 1.0], [2.0, 3.0]),
        again("[1, 9] and [2, 4, 3, 11, 30]", [1.0, 9.0], [2.0, 4.0, 3.0, 11.0, 30.0]),
        again("[1, 2] and [2.0000001, 7], which float32 makes 2", [1.0, 2.0], [2.0000001, 7.0]),
        again("eight shares near 84%", [82.2, 87.0, 83.6, 85.0], [85.6, 71.8, 82.2, 83.6]),
    ],
    uses={"combinations": combinations, "gap": gap, "mean": mean, "median": median},
    wrong="""
your gaps have a sign: a way in which the other group is ahead counts as well, so take abs() of the
difference of the means
    gap(first, second) => mean(first) - mean(second) ;; gap(group, rest) => mean(group) - mean(rest)
    gap(first, second) => mean(second) - mean(first) ;; gap(group, rest) => mean(rest) - mean(group)
gaps that are exactly as large count too, that of the way that was seen among them: ask for >= (less
1e-9), not >
    >= seen - 1e-9 => > seen + 1e-9
a gap that is smaller by a rounding alone counts too: ask for >= seen - 1e-9
    >= seen - 1e-9 => >= seen ‖ >= seen ;; gap(first, second) => abs(mean(first) - mean(second)) ;;
        gap(group, rest) => abs(mean(group) - mean(rest))
this is the share of the smaller gaps; those at least as large are asked for
    hits / ways => 1 - hits / ways
this is the share of the gaps that are at most as large; turn the comparison round
    >= seen - 1e-9 => <= seen + 1e-9
this is 1 whatever comes: either the `return` stands inside the loop, so that one way alone is
counted, or each way counts as a hit
    >= seen - 1e-9 => >= seen - 1e-9 ⏎ break ‖ >= 0
the way that was seen counts too, as a way and as a hit
    hits / ways => (hits - 1) / ways
    hits / ways => (hits - 1) / (ways - 1)
each way counts once, as it comes: its mirror image is a way of its own, so halve nothing
    hits / ways => hits / ways / 2
you take the places for the numbers; those at the places are bag[i]
    [bag[i] for i in chosen] => [*chosen] ;; [bag[i] for i in range => [i for i in range
    [bag[i] for i in chosen] => [*chosen]
    [bag[i] for i in range => [i for i in range
this is in how many ways the gap is so large; divide by the number of all ways
    hits / ways => hits
this is the share in percent; give it as a number from 0 to 1
    hits / ways => 100 * hits / ways
you compare sums; groups of unlike size need their means
    gap(first… => abs(sum(first) - sum(second)) ;; gap(group, rest) => abs(sum(group) - sum(rest))
you compare medians; the gap is between the means
    gap(first, second) => abs(median(first) - median(second)) ;;
        gap(group, rest) => abs(median(group) - median(rest))
you compare the best of each group; the gap is between the means
    gap(first… => abs(max(first) - max(second)) ;; gap(group, rest) => abs(max(group) - max(rest))
this is the gap itself; asked for is the share of all ways in which the gap is at least as large
    hits / ways => seen
the numbers are float32, whose rounding is far above 1e-9; keep Python's floats, or say
dtype=torch.float64
    bag, seen = [*first, *second], gap(first, second) => bag =
        torch.tensor([*first, *second]).tolist() ⏎ seen = gap(bag[: len(first)], bag[len(first) :])
    def by_luck(first, second):
        bag, k, gaps = torch.tensor([*first, *second]).float(), len(first), []
        for chosen in combinations(range(len(bag)), k):
            here = torch.zeros(len(bag), dtype=torch.bool)
            here[list(chosen)] = True
            gaps.append((bag[here].mean() - bag[~here].mean()).abs())
        return sum(bool(one >= gaps[0] - 1e-9) for one in gaps) / len(gaps)
the second group must be the numbers that were not chosen, by their places: where two numbers are
equal, `x not in chosen` throws both away; choose places, combinations(range(len(bag)), …)
    combinations(range(len(bag)), => combinations(bag, ;; [bag[i] for i in chosen] => chosen ;;
        [bag[i] for i in range(len(bag)) if i not in chosen] => [x for x in bag if x not in chosen]
equal numbers count as different ones, and you count a way once for both, as a set or a dict does;
choose places, combinations(range(len(bag)), …)
    combinations… => {tuple(GROUP): chosen for chosen in combinations(range(len(bag)), len(first))
        }.values(): ;; GROUP => bag[i] for i in chosen ‖ sorted(bag[i] for i in chosen)
equal numbers count as different ones: a set keeps one of them, so use a list for the bag
    bag, seen = [*first, *second], => bag, seen = sorted({*first, *second}),
you divide the bag into halves; the groups are as large as those given
    , len(first)): => , len(bag) // 2):
choose as many as `first` holds, not 2 as section 2 did: len(first)
    , len(first)): => , 2):
you divide into groups of 3, whatever the lists hold; take len(first)
    , len(first)): => , 3):
the numbers 6 and 3 are written into yours; take the lengths of the lists
    combinations(range(len(bag)), len(first)) => combinations(range(6), 3) ;;
        for i in range(len(bag)) if => for i in range(6) if
you hold the chosen numbers against the whole bag; hold them against the rest of it
    gap(group, rest) => gap(group, bag)
the way that was really seen counts too, above and below the line
    hits / ways => (hits - 1) / (ways - 1)
""",
    why="The margin of 1e-9 is for sums that differ by rounding alone: in floats, 82.8 + 88.9 + "
    "86.0 and 86.0 + 88.9 + 82.8 need not be equal.",
)


def some_pictures(count: int, *shape: int) -> Tensor:
    """Draw pictures of a few grey levels, no two alike."""
    generator = torch.Generator().manual_seed(5)
    return torch.randint(0, 5, (count, *shape), generator=generator).float() / 2 - 1


def a_split_with_leaks() -> tuple[Tensor, Tensor]:
    """Make 9 pictures to learn from, 8 to test on; of these 1, 5 and 6 are among the 9, 6 twice.

    Number 2 shares a channel with one of the 9; number 3 differs from one in a pixel, by less than
    torch.allclose sees; number 4 is one of them, mirrored.
    """
    pool = some_pictures(15, 2, 3, 5)
    train, test = pool[:9].clone(), pool[7:15].clone()
    train[2] = train[5]
    test[0] = pool[0].roll(1, dims=0)
    test[1], test[5], test[6] = train[8], train[3], train[5]
    test[3], test[4] = train[0], train[1].flip(2)
    test[3, :, 2, 4] += 1e-6
    test[2, 0] = train[4, 0]
    return train, test


def differences_that_cancel() -> tuple[Tensor, Tensor]:
    """Make 2 pictures to learn from, the first brighter, and 2 to test on.

    Of these number 1 is the second of the others, number 0 holds its pixels in another order.
    """
    picture = some_pictures(1, 1, 4, 3)
    return torch.cat([picture + 1, picture]), torch.cat([picture.flip(2), picture])


TRAIN, TEST = a_split_with_leaks()


leaked = Exercise(
    answer="""
def leaked(train_images, test_images):
    found = []
    for number, picture in enumerate(test_images):
        if any(torch.equal(picture, other) for other in train_images):
            found.append(number)
    return found
""",
    trials=[
        call("9 training and 8 test pictures, three of them copies", TRAIN, TEST),
        call("2 training and 3 test pictures, no copy among them", TRAIN[6:8], TEST[[2, 3, 4]]),
        call(
            "2 training and 2 test pictures, whose differences cancel", *differences_that_cancel()
        ),
    ],
    wrong="""
these are the numbers of the training pictures; the test pictures' are asked for
    enumerate(test_images) => enumerate(train_images) ;; in train_images) => in test_images)
where no picture has leaked, give an empty list
    return found => return found or None
this is how many there are; return the list of their numbers
    return found => return len(found)
this is one True or False for each test picture; return the numbers of those that are True
    return found => return [number in found for number in range(len(test_images))]
this is one True or False for the whole split; return the list of the test pictures' numbers
    return found => return bool(found)
torch.isin asks whether each number is somewhere in the training set; the whole picture must be one
of its pictures
    torch.equal(picture, other) => torch.isin(picture, train_images).all()
one channel is compared; a copy has every pixel equal in all of them
    torch.equal(picture, other) => torch.equal(picture[0], other[0])
one equal pixel is not enough: a copy has every pixel equal, so ask for all, not any
    torch.equal(picture, other) => (picture == other).any()
you compare each test picture with the training picture of the same number only; compare it with
all of them
    if any… => if number < len(train_images) and torch.equal(picture, train_images[number]):
different pictures can have the same sum or mean, and differences above and below 0 can cancel:
compare pixel by pixel
    torch.equal(picture, other) => picture.sum() == other.sum()
    if any… => if min((picture - other).sum() for other in train_images) == 0:
a test picture that is in the training set twice is named twice; name it once
    if any… => for other in train_images: ;; found.a… => found += [number] * picture.equal(other)
the numbers are right, but not in ascending order: go through the test pictures, and for each
through the training pictures
    return found => return found[::-1]
pictures that are only nearly equal count in yours; ask for equality of every pixel
    torch.equal(picture, other) => torch.allclose(picture, other)
these are the clean test pictures; name those that are in the training set
    if any( => if not any(
yours stops after the first copy; go on through all test pictures
    return found => return found[:1]
you count from 1; the first test picture is number 0
    enumerate(test_images) => enumerate(test_images, 1)
the numbers are right, but each is a tensor: .tolist() makes whole numbers of all, int() of one
    found.append(number) => found.append(torch.tensor(number))
the numbers are right; give them as a list: .tolist() makes one of a tensor, sorted() of a set
    return found => return torch.tensor(found, dtype=torch.int64) ‖ return set(found)
each number is in a list of its own, since nonzero() gives a column; take it by [:, 0] or
flatten() before .tolist()
    found.append(number) => found.append([number])
""",
    why="Two loops are fine for some hundred pictures. For many, compare bytes: "
    "`{p.numpy().tobytes() for p in train_images}` is a set that answers at once.",
)

PAPER: dict[str, Any] = dict(value=-1.0)
OTHERWISE: dict[str, dict[str, Any]] = {
    "what leaves on one side comes in on the other": dict(mode="circular"),
    "zeros come in from outside, and 0 is grey": dict(value=0.0),
    "the edge is repeated where paper should come in": dict(mode="replicate"),
}


def fits(images: Tensor, result: Tensor, far: int, edge: dict[str, Any] = PAPER) -> Tensor:
    """Tell which moves of up to `far` pixels each way make the result of the images, (B, moves).

    They go from up and left to down and right; `edge` is what F.pad brings in.
    """
    wide, (height, width) = F.pad(images, (far,) * 4, **edge), images.shape[-2:]
    places = [(top, left) for top in range(2 * far, -1, -1) for left in range(2 * far, -1, -1)]
    windows = [wide[..., top : top + height, left : left + width] for top, left in places]
    return torch.stack([(result == window).flatten(1).all(dim=1) for window in windows], dim=1)


def checked(answer: Callable, images: Tensor, seed: int) -> Any:
    """Give what the answer gives for these images, or a verdict where that are no such images."""
    result = untouched(answer, images, torch.Generator().manual_seed(seed))
    if not isinstance(result, Tensor) or result is ...:
        return result if result is None or result is ... else Verdict(f"it gives {kind_of(result)}")
    if result.shape != images.shape:
        return Verdict(f"its shape is {tuple(result.shape)}, expected {tuple(images.shape)}")
    return result


def each_moved(answer: Callable) -> Any:
    """Say whether each of some pictures, ink up to their edges, is moved by whole pixels."""
    images = torch.rand(40, 2, 7, 5, generator=torch.Generator().manual_seed(1))
    result = checked(answer, images, 11)
    if not isinstance(result, Tensor):
        return result
    if torch.equal(result, images):
        return Verdict("no picture is moved")
    if fits(images, result, 1).any(dim=1).all():
        return Verdict("as it should")
    for problem, edge in OTHERWISE.items():
        if fits(images, result, 1, edge).any(dim=1).all():
            return Verdict(problem)
    if fits(images, result, 4).any(dim=1).all():
        return Verdict("a picture is moved by more than one pixel")
    return Verdict("a picture holds numbers that moving it by whole pixels does not give")


def all_moves(answer: Callable) -> Any:
    """Say whether the nine moves come about equally often, each picture's own."""
    images = torch.rand(1, 6, 6, generator=torch.Generator().manual_seed(2)).repeat(450, 1, 1, 1)
    result = checked(answer, images, 12)
    if not isinstance(result, Tensor):
        return result
    counts = fits(images, result, 1).sum(dim=0).tolist()
    missing = [(i // 3 - 1, i % 3 - 1) for i, count in enumerate(counts) if not count]
    if len(missing) == 8:
        return Verdict("all pictures of a batch get the same move")
    if missing:
        return Verdict(f"of the nine moves (down, right) these never come: {missing}")
    if min(counts) < 25 or max(counts) > 80:
        return Verdict("some of the nine moves come much more often than others")
    return Verdict("as it should")


def by_generator(answer: Callable) -> Any:
    """Say whether the moves come from the generator that it is given, and from nothing else."""
    images = torch.rand(60, 1, 5, 5, generator=torch.Generator().manual_seed(3))
    results = []
    for seed, world in ((1, 5), (1, 6), (2, 7)):
        torch.manual_seed(world)
        result = checked(answer, images, seed)
        if not isinstance(result, Tensor):
            return result
        results.append(result)
    if not torch.equal(results[0], results[1]):
        return Verdict("the same generator gives other moves each time")
    if torch.equal(results[0], results[2]):
        return Verdict("another generator gives the same moves")
    return Verdict("as it should")


moved = Exercise(
    answer="""
def moved(images, generator):
    H, W = images.shape[2:]
    wide = F.pad(images, (1, 1, 1, 1), value=-1.0)
    places = torch.randint(0, 3, (len(images), 2), generator=generator).tolist()
    windows = []
    for picture, (top, left) in zip(wide, places):
        windows.append(picture[:, top : top + H, left : left + W])
    return torch.stack(windows)
""",
    trials=[
        Trial("40 pictures of 2×7×5 pixels", each_moved),
        Trial("450 copies of one picture", all_moves),
        Trial("60 pictures, with three generators", by_generator),
    ],
    wrong="""
what leaves a picture on one side comes in on the other: torch.roll does that; pad with paper,
F.pad(…, value=-1.0), and cut
    , value=-1.0 => , mode="circular"
zeros come in from outside, and 0 is grey: paper is -1, F.pad(…, value=-1.0)
    , value=-1.0 =>
the edge is repeated where paper should come in: F.pad(…, value=-1.0)
    , value=-1.0 => , mode="replicate"
all pictures of a batch get the same move; draw two numbers for each picture
    (len(images), 2… => (1, 2), generator=generator).tolist() * len(images)
of the steps -1, 0 and 1 one never comes: torch.randint leaves its upper end out, so the three are
torch.randint(-1, 2, …), or (0, 3, …) for places in a padded picture
    randint(0, 3, => randint(0, 2, ‖ randint(1, 3,
both directions always move together, or never stay alone: draw down and right
independently, each -1, 0 or 1
    generator=generator).tolist() => generator=generator)[:, :1].expand(-1, 2).tolist()
pictures move right and left only; draw a second number for up and down
    top : top + H => 1 : 1 + H
pictures move up and down only; draw a second number for right and left
    left : left + W => 1 : 1 + W
every picture moves in both directions; 0, standing still, is one of the three steps
    torch.randint… => (2 * torch.randint(0, 2, (len(images), 2), generator=generator)).tolist()
a picture is moved by more than one pixel: each step is -1, 0 or 1
    (1, 1, 1, 1) => (2, 2, 2, 2) ;; randint(0, 3, => randint(0, 5,
the moves do not come from the generator that you are given: pass it on, torch.randint(…,
generator=generator)
    , generator=generator) => )
you make a generator of your own, so every batch gets the same moves; use the one that you are given
    generator=generator => generator=torch.Generator().manual_seed(0)
height and width are taken for each other: images are (B, C, H, W), the height before the width
    H, W = images => W, H = images
yours is right for square pictures only: rows and columns are two numbers, H and W
    H, W = images.shape[2:] => H = W = images.shape[3] ‖ H = W = images.shape[2]
no picture is moved: build the new pictures and return them
    return torch.stack(windows) => return images
the pictures have grown: after padding, cut a window of the old size, at a place of its own for
each picture
    return torch.stack(windows) => return wide
""",
    why="A window that starts one row further down shows the picture one row further up. "
    "All nine places are equally likely, so it does not matter here.",
)


def as_trained(make: Callable[[], nn.Module]) -> Any:
    """Give what a model says of five pictures after three steps of training, or a verdict."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = make()
        if not isinstance(model, nn.Module):
            return model
        images = torch.linspace(-2, 2, 320).sin().reshape(5, 1, 8, 8)
        for _ in range(3):
            logits = model(images)
            if logits.shape != (5, 10):
                return logits
            learning = [p for p in model.parameters() if p.requires_grad]
            if not learning:
                return Verdict("nothing in it learns any more; leave something to train")
            F.cross_entropy(logits, torch.tensor([0, 1, 2, 1, 0])).backward()
            torch.optim.SGD(learning, lr=0.5).step()
            model.zero_grad()
        return model.eval()(images).detach()


def changed(answer: Callable) -> Any:
    """Say whether a variant can be trained, and comes to another end than the whole model."""
    config = ViTConfig(8, 2, 1, 10, embed_dim=48, depth=2, num_heads=4)  # the lesson's
    result = as_trained(lambda: answer(ViT(config)))
    if not isinstance(result, Tensor) or result.shape != (5, 10):
        return result
    with torch.random.fork_rng(devices=[]):
        one, other = (answer(ViT(config)).state_dict() for _ in range(2))
    if all(torch.equal(one[name], other[name]) for name in one):
        return Verdict("two seeds begin alike")
    same = torch.equal(result, as_trained(lambda: ViT(config)))
    return Verdict("it trains just as the whole model does" if same else "as it should")


variant = Exercise(
    answer="""
def variant(model):
    model.patch_embed.requires_grad_(False)
    return model
""",
    trials=[Trial("section 1's model, trained for three steps", changed)],
    wrong="""
nothing has changed: it trains just as the whole model does, to the last bit; a new name, such as
blocks = model.blocks[:1], leaves the model as it was (model.blocks = …), and so does == in place of
=; a module is frozen by requires_grad_(False), not by requires_grad = False
    False => True
all eight seeds would begin with the same weights, since a seed is set inside, and eight runs would
be one: change the model that you are given
    model.patch_embed.requires_grad_(False) => torch.manual_seed(0) ⏎ model = ViT(model.config)
it returns nothing; give back the model that is to be trained
    return model => pass
give back the model, not a part of it
    return model => return model.patch_embed
nothing in it learns any more; leave something to train
    model.patch_embed.req => model.req
""",
    slips={
        r"but [34] were given|keyword argument 'return_attention'": "attention is called as "
        "attn(x, mask, return_attention=True), and gives two things; what stands in its place "
        "must, too",
        "as child module": "a list or a function is no module: keep a part of the model, such as "
        "model.blocks[:1], or write a class, an nn.Module with a forward",
        "FrozenInstanceError": "the parts were made from the config, and a change of it would come "
        "too late: change the parts themselves",
    },
    does="Your variant can be trained.",
    why="There is no right variant. This one asks whether the templates of the patches must learn, "
    "or whether random ones do.",
)
