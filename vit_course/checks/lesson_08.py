"""What the learner writes in lesson 08."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cache, partial
from itertools import combinations
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vit_steps.vit import ViT, ViTConfig

from .compare import Verdict, kind_of
from .engine import Check
from .moves import PAPER, all_moves, by_generator, each_moved, move
from .trials import Trial, call, then

# no_positions: a part is taken out, and stays out -----------------------------------------------

SMALL = ViTConfig(
    image_size=(4, 6), patch_size=2, in_channels=1, num_classes=3, embed_dim=10, depth=1,
    num_heads=2,
)  # fmt: skip
POSITIONS = "tokens.pos_embed"


def taken_out(model: ViT) -> ViT:
    positions = model.tokens.pos_embed
    nn.init.zeros_(positions)
    positions.requires_grad = False
    return model


@cache
def small_model() -> ViT:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = ViT(SMALL)
        for p in model.parameters():  # biases, too, are to be told from zero
            nn.init.normal_(p, std=0.3)
    return model


def used(answer: Callable) -> Any:
    """What the answer gives for a small model, or a verdict where that is not this model."""
    given = deepcopy(small_model())
    result = answer(given)
    if result is None:
        return Verdict("it returns nothing; give the model back: return model")
    if isinstance(result, Tensor):
        return Verdict("it returns the positions; give the model back: return model")
    if isinstance(result, ViT) and result is not given:
        return Verdict("it returns a copy; change the model that you are given, and return that")
    fits = result is ... or result is given
    return result if fits else Verdict(f"it gives {kind_of(result)}")


def positions_of(answer: Callable) -> Any:
    model = used(answer)
    return model.tokens.pos_embed.detach().clone() if isinstance(model, ViT) else model


def the_rest_of(answer: Callable) -> Any:
    """Whether all else is as it was, and learns."""
    model = used(answer)
    if not isinstance(model, ViT):
        return model
    before = small_model().state_dict()
    for name, p in model.named_parameters():
        if name == POSITIONS:
            continue
        if p.shape != before[name].shape or not torch.equal(p, before[name]):
            return Verdict(f"it changes `{name}` too; take out the positions and nothing else")
        if not p.requires_grad:
            return Verdict(f"`{name}` no longer learns either; freeze the positions alone")
    return Verdict("as it should")


def after_training(answer: Callable) -> Any:
    """The positions after a step of training; the images make every parameter's gradient large."""
    model = used(answer)
    if not isinstance(model, ViT):
        return model
    learning = [p for p in model.parameters() if p.requires_grad]
    images = torch.linspace(-2, 2, 120).sin().reshape(5, 1, 4, 6)
    if learning:
        optimizer = torch.optim.SGD(learning, lr=0.5)
        F.cross_entropy(model(images), torch.tensor([0, 1, 2, 1, 0])).backward()
        optimizer.step()
    return model.tokens.pos_embed.detach().clone()


def zeroed(model: ViT, where: Any = slice(None), freeze: bool = True, factor: float = 0.0) -> ViT:
    """A wrong answer: not all of the positions, not to zero, or not frozen."""
    with torch.no_grad():
        model.tokens.pos_embed[:, where] *= factor
    model.tokens.pos_embed.requires_grad = not freeze
    return model


def replaced(model: ViT, *shape: int) -> ViT:
    """A wrong answer: new positions of a shape of their own."""
    model.tokens.pos_embed = nn.Parameter(torch.zeros(shape), requires_grad=False)
    return model


no_positions = Check(
    reference=taken_out,
    trials=[
        Trial("the positions, before training", positions_of),
        Trial("the rest of the model", the_rest_of),
        Trial("the positions, after one step of training", after_training),
    ],
    mistakes={
        "the positions are zero at the start, but training moves them, so the part grows back; set "
        "requires_grad = False on the Parameter itself, model.tokens.pos_embed: on the module it "
        "does nothing": lambda model: zeroed(model, freeze=False),
        "the positions no longer learn, but they still hold the numbers that they started with; "
        "set them to zero as well": lambda model: zeroed(model, factor=1.0),
        "the model's own positions are untouched: `positions = torch.zeros_like(positions)` only "
        "gives the name to a new tensor, and a changed copy leaves the model as it was; write into "
        "the model's Parameter, with nn.init.zeros_": lambda model: model,
        "the cls token's position, the first row, is left: "
        "set all of pos_embed to zero": lambda model: zeroed(model, slice(1, None)),
        "only the cls token's position is zero; set all of pos_embed to zero": lambda model: zeroed(
            model, slice(0, 1)
        ),
        "a small number is not zero: nothing of the positions may be left": lambda model: zeroed(
            model, factor=0.01
        ),
        "the new positions have sizes of their own; keep the shape of the model's, (1, N, D), "
        "whatever N and D are: nn.init.zeros_ does": lambda model: replaced(model, 1, 17, 48),
        "PyTorch refuses to write into a Parameter while it records gradients; nn.init.zeros_ does "
        "it for you, "
        "or write below `with torch.no_grad():`": lambda model: model.tokens.pos_embed.zero_(),
        "the new positions have lost their first axis: (1, N, D), the batch's": lambda model: (
            replaced(model, 7, 10)
        ),
    },
)

# leaked: which test pictures were learnt from ---------------------------------------------------


def found_in(train_images: Tensor, test_images: Tensor) -> list[int]:
    return pairs(train_images, test_images).any(dim=1).nonzero()[:, 0].tolist()


def pairs(train_images: Tensor, test_images: Tensor) -> Tensor:
    """(test, train): whether the two are the same picture."""
    return (test_images[:, None] == train_images[None]).flatten(2).all(dim=2)


def by_train(train_images: Tensor, test_images: Tensor) -> list[int]:
    """A wrong answer: in the order of the training pictures."""
    order = pairs(train_images, test_images).T.nonzero()[:, 1].tolist()
    return list(dict.fromkeys(order))


def close_enough(train_images: Tensor, test_images: Tensor) -> list[int]:
    """A wrong answer: pictures that are nearly equal count too."""
    apart = torch.cdist(test_images.flatten(1), train_images.flatten(1))
    return (apart.min(dim=1).values < 0.3).nonzero()[:, 0].tolist()


def some_pictures(count: int, *shape: int) -> Tensor:
    """Pictures of a few grey levels, no two alike."""
    generator = torch.Generator().manual_seed(5)
    return torch.randint(0, 5, (count, *shape), generator=generator).float() / 2 - 1


def a_split_with_leaks() -> tuple[Tensor, Tensor]:
    """9 pictures to learn from, 8 to test on; of these 1, 5 and 6 stand among the 9, 6 even twice.

    Number 3 differs in one pixel from one of the 9, by less than torch.allclose sees; number 4 is
    one of them, mirrored.
    """
    pool = some_pictures(15, 2, 3, 5)
    train, test = pool[:9].clone(), pool[7:15].clone()
    train[2] = train[5]
    test[0] = pool[0].roll(1, dims=0)
    test[1], test[5], test[6] = train[8], train[3], train[5]
    test[3], test[4] = train[0], train[1].flip(2)
    test[3, 1, 2, 4] += 1e-6
    return train, test


TRAIN, TEST = a_split_with_leaks()

leaked = Check(
    reference=found_in,
    trials=[
        call(
            "3 training and 4 test pictures, the third test picture a copy",
            TRAIN[6:],
            TEST[[2, 7, 1, 4]],
        ),
        call("9 training and 8 test pictures, three of them copies", TRAIN, TEST),
        call("the same pictures, both sets in the opposite order", TRAIN.flip(0), TEST.flip(0)),
        call(
            "6 training and 5 test pictures, one of them a copy", TRAIN[:6], TEST[[0, 2, 4, 6, 7]]
        ),
        call("2 training and 3 test pictures, no copy among them", TRAIN[6:8], TEST[[2, 3, 4]]),
    ],
    mistakes={
        "these are the numbers of the training pictures; "
        "the test pictures' are asked for": lambda train, test: found_in(test, train),
        "this is how many there are; return the list of their numbers": then(found_in, len),
        "this is one True or False for each test picture; return the numbers of those that are "
        "True, as a list": lambda train, test: pairs(train, test).any(dim=1).tolist(),
        "this is one True or False for the whole split; return the list of the test pictures' "
        "numbers": lambda train, test: bool(pairs(train, test).any()),
        "one equal pixel is not enough: a copy has every pixel equal, "
        "so ask for all, not any": lambda train, test: (
            (test[:, None] == train[None]).flatten(2).any(dim=2).any(dim=1).nonzero()[:, 0].tolist()
        ),
        "you compare each test picture with the training picture of the same number only; compare "
        "it with all of them": lambda train, test: [
            i for i in range(min(len(train), len(test))) if torch.equal(train[i], test[i])
        ],
        "different pictures can have the same sum or mean: "
        "compare pixel by pixel": lambda train, test: [
            i for i, one in enumerate(test) if (one.sum() == train.flatten(1).sum(dim=1)).any()
        ],
        "a test picture that stands in the training set twice is named twice; "
        "name it once": lambda train, test: pairs(train, test).nonzero()[:, 0].tolist(),
        "the numbers are right, but not in ascending order: go through the test pictures, and for "
        "each through the training pictures": (by_train, then(found_in, lambda found: found[::-1])),
        "pictures that are only nearly equal count in yours; "
        "ask for equality of every pixel": close_enough,
        "these are the clean test pictures; name those that do stand in the training "
        "set": lambda train, test: (~pairs(train, test).any(dim=1)).nonzero()[:, 0].tolist(),
        "yours stops after the first copy; go on through all test pictures": then(
            found_in, lambda found: found[:1]
        ),
        "you count from 1; the first test picture is number 0": then(
            found_in, lambda found: [i + 1 for i in found]
        ),
        "the numbers are right; give them as a list: .tolist() makes one of a tensor, sorted() of "
        "a set": (
            then(found_in, lambda found: torch.tensor(found, dtype=torch.int64)),
            then(found_in, set),
        ),
        "each number stands in a list of its own, since nonzero() gives a column; take it by [:, "
        "0] or flatten() before .tolist()": then(found_in, lambda found: [[i] for i in found]),
    },
)

# by_luck: how often a shuffled bag gives as large a gap ------------------------------------------


def mean_gap(left: Sequence[float], right: Sequence[float]) -> float:
    return abs(sum(left) / len(left) - sum(right) / len(right))


def divisions(bag: Sequence[float], size: int) -> list[tuple[list[float], list[float]]]:
    """Every way to divide the bag into a first group of this size, and the rest."""
    places = range(len(bag))
    return [
        ([bag[i] for i in chosen], [bag[i] for i in places if i not in chosen])
        for chosen in combinations(places, size)
    ]


def share(hits: Sequence[bool]) -> float:
    return sum(hits) / len(hits)


def luck_by(
    gap: Callable = mean_gap,
    counts: Callable = lambda gap, seen: gap >= seen - 1e-9,
    ways: Callable = divisions,
    give: Callable = share,
) -> Callable:
    """The share of the divisions whose gap counts; the options make the known mistakes.

    Args:
        counts: whether a gap counts beside that of the two groups given.
        ways: the divisions of the whole bag, the first group of this size.
        give: makes the result of whether each counts.
    """

    def luck(first: Sequence[float], second: Sequence[float]) -> Any:
        seen = gap(first, second)
        parts = ways([*first, *second], len(first))
        return give([counts(gap(*both), seen) for both in parts])

    return luck


luck = luck_by()


def by_value(bag: Sequence[float], size: int) -> list:
    """Takes what was chosen out of the bag by its value."""
    return [(left, [x for x in bag if x not in left]) for left in combinations(bag, size)]


def again(what: str, first: list[float], second: list[float]) -> Trial:
    """A trial that calls the answer several times: it must not depend on chance."""

    def run(answer: Callable) -> Any:
        results = [answer(list(first), list(second)) for _ in range(4)]
        numbers = all(isinstance(result, (int, float)) for result in results)
        if numbers and min(results) != max(results):
            return Verdict(
                f"it gives {min(results):.3g} one time and {max(results):.3g} another: you shuffle "
                "at random; go through every division once (itertools.combinations)"
            )
        return results[0]

    return Trial(what, run)


by_luck = Check(
    reference=luck,
    trials=[
        again("[8, 7] and [3, 5.5]", [8.0, 7.0], [3.0, 5.5]),
        again("[86, 89, 84] and [87, 80, 78]", [86.0, 89.0, 84.0], [87.0, 80.0, 78.0]),
        again("[50, 47, 54] and [86, 85, 89]", [50.0, 47.0, 54.0], [86.0, 85.0, 89.0]),
        again("[1, 9] and [2, 4, 3, 11, 30]", [1.0, 9.0], [2.0, 4.0, 3.0, 11.0, 30.0]),
        again("[5, 5, 7, 8] and [1, 4, 6.5]", [5.0, 5.0, 7.0, 8.0], [1.0, 4.0, 6.5]),
        again("[0.3, 0.1] and [0.2, 0.6, 0.4]", [0.3, 0.1], [0.2, 0.6, 0.4]),
    ],
    mistakes={
        "your gaps have a sign: a division in which the second group is ahead counts as well, so "
        "take abs() of the difference of "
        "the means": luck_by(lambda left, right: sum(left) / len(left) - sum(right) / len(right)),
        "your gaps have a sign: a division in which the first group is ahead counts as well, so "
        "take abs() of the difference of "
        "the means": luck_by(lambda left, right: sum(right) / len(right) - sum(left) / len(left)),
        "gaps that are exactly as large count too, the given division's own among them: ask for >= "
        "(less 1e-9), not >": luck_by(counts=lambda gap, seen: gap > seen + 1e-9),
        "this is the share of the smaller gaps; those at least as large are asked for": then(
            luck, lambda found: 1 - found
        ),
        "this is the share of the gaps that are at most as large; "
        "turn the comparison round": luck_by(counts=lambda gap, seen: gap <= seen + 1e-9),
        "this is how many divisions there are; divide by the number of all divisions": luck_by(
            give=sum
        ),
        "this is the share in percent; give it as a number from 0 to 1": then(
            luck, lambda found: 100 * found
        ),
        "you compare sums; groups of unlike size need their means": luck_by(
            lambda a, b: abs(sum(a) - sum(b))
        ),
        "you compare medians; the gap is between the means": luck_by(
            lambda a, b: abs(median(a) - median(b))
        ),
        "you compare the best of each group; the gap is between the means": luck_by(
            lambda a, b: abs(max(a) - max(b))
        ),
        "this is the gap itself; asked for is the share of all divisions whose gap is at least as "
        "large": mean_gap,
        "the second group must be the numbers that were not chosen, by their places: where two "
        "numbers are equal, `x not in chosen` throws both away; choose places, "
        "combinations(range(len(bag)), …)": luck_by(ways=by_value),
        "you divide the bag into halves; the groups are as large as those given": luck_by(
            ways=lambda bag, size: divisions(bag, len(bag) // 2)
        ),
        "you divide into groups of 3, whatever the lists hold; take len(first)": luck_by(
            ways=lambda bag, size: divisions(bag, 3)
        ),
        "the numbers 6 and 3 are written into yours; take the lengths of the lists": luck_by(
            ways=lambda bag, size: divisions([bag[i] for i in range(6)], 3)
        ),
        "you hold the chosen numbers against the whole bag; hold them against the rest "
        "of it": luck_by(ways=lambda bag, size: [(left, bag) for left in combinations(bag, size)]),
        "the division that was really seen counts too, above and below the line": luck_by(
            give=lambda hits: (sum(hits) - 1) / (len(hits) - 1)
        ),
    },
)

# moved: each picture a pixel aside ---------------------------------------------------------------


def drawn(draw: Callable[[Tensor], Tensor]) -> Callable:
    """A wrong answer: the steps, (B, 2), are changed."""
    return partial(move, draw=draw)


ONE_MISSING = (
    "of the steps -1, 0 and 1 one never comes: torch.randint leaves its upper end out, so the "
    "three are torch.randint(-1, 2, …)"
)

moved = Check(
    reference=move,
    trials=[
        Trial("40 pictures of 2×7×5 pixels", each_moved),
        Trial("450 copies of one picture", all_moves),
        Trial("60 pictures, with three generators", by_generator),
    ],
    mistakes={
        "what leaves a picture on one side comes in on the other: torch.roll does that; pad with "
        "paper, F.pad(…, value=-1.0), and cut": partial(move, fill="circular"),
        "zeros come in from outside, and 0 is grey: paper is -1, F.pad(…, value=-1.0)": partial(
            move, fill=0.0
        ),
        "the edge is repeated where paper should come in: F.pad(…, value=-1.0)": partial(
            move, fill="replicate"
        ),
        "all pictures of a batch get the same move; draw two numbers for each picture": drawn(
            lambda s: s[:1].expand(len(s), 2)
        ),
        ONE_MISSING: (drawn(lambda s: s.clamp(max=0)), drawn(lambda s: s.clamp(min=0))),
        "both directions always move together, or never stand still alone: draw down and right "
        "independently, each -1, 0 or 1": drawn(lambda s: s[:, :1].expand(-1, 2)),
        "pictures move right and left only; draw a second number for up and down": drawn(
            lambda s: s * torch.tensor([0, 1])
        ),
        "pictures move up and down only; draw a second number for right and left": drawn(
            lambda s: s * torch.tensor([1, 0])
        ),
        "every picture moves in both directions; 0, standing still, is one of the three steps": (
            drawn(lambda s: s + (s == 0) * (1 - 2 * (s.flip(1) > 0).long()))
        ),
        "a picture is moved by more than one pixel: each step is -1, 0 or 1": partial(move, far=2),
        "the moves do not come from the generator that you are given: pass it on, torch.randint(…, "
        "generator=generator)": lambda images, generator: move(images, None),
        "you make a generator of your own, so every batch gets the same moves; use the one that "
        "you are given": lambda images, generator: move(images, torch.Generator().manual_seed(0)),
        "yours is right for square pictures only: rows and columns are two numbers, "
        "H and W": lambda images, generator: move(images, generator)[:, :, : images.shape[3]],
        "no picture is moved: build the new pictures and return them": lambda images, generator: (
            images
        ),
        "the pictures have grown: after padding, cut a window of the old size, at a place of its "
        "own for each picture": lambda images, generator: F.pad(images, (1, 1, 1, 1), value=PAPER),
    },
)
