"""Build cells and exercises of lesson 13."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from math import ceil
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vit_steps import scale as package
from vit_steps.inputs import is_whole
from vit_steps.training import load_model
from vit_steps.training.data import scattered
from vit_steps.training.dataset import ImageDataset
from vit_steps.vit import ViT
from vit_steps.weights import SCATTERED

from .compare import Parts, Verdict, kind_of
from .draws import FINE
from .engine import SLIPS, Check
from .lesson_07 import CUT_OFF, WatchedSGD, batch, wrongly_moved
from .trials import Trial, call, learns, then, untouched

# One process's share -----------------------------------------------------------------------------


def dealt(pictures: Tensor, number: int, processes: int) -> Tensor:
    return pictures[number::processes]


def counted(mine: int, whole: int, processes: int) -> float:
    return processes * mine / whole


def sharing(take: Callable = dealt, weigh: Callable = counted) -> Callable:
    """An answer of the learner's kind; the options make the mistakes.

    Args:
        take: the share, of (batch, number, processes).
        weigh: its weight, of how many it has, how many the batch has, and processes.
    """

    def answer(pictures: Tensor, number: int, processes: int) -> tuple[Any, Any]:
        mine = take(pictures, number, processes)
        return mine, weigh(len(mine), len(pictures), processes)

    return answer


def side_by_side(pictures: Tensor, number: int, processes: int) -> Tensor:
    return pictures.tensor_split(processes)[number]


def in_pieces(pictures: Tensor, number: int, processes: int) -> Tensor:
    """Pieces of one length, as many as processes, the last ones shorter or empty."""
    length = ceil(len(pictures) / processes)
    return pictures[number * length : (number + 1) * length]


def in_whole_rounds(pictures: Tensor, number: int, processes: int) -> Tensor:
    return pictures[: len(pictures) // processes * processes][number::processes]


def filled_up(pictures: Tensor, number: int, processes: int) -> Tensor:
    """The batch begins again until all shares are alike, as DistributedSampler has it."""
    rounds = ceil(len(pictures) / processes)
    return pictures.repeat(processes)[number : rounds * processes : processes]


def dealing(count: int, number: int, processes: int) -> Trial:
    """Pictures whose numbers are not their places."""
    pictures = (torch.arange(count) * 7 + 3) % 31
    many = f"{count} pictures" if count > 1 else "one picture"
    return call(f"{many}, process {number} of {processes}", pictures, number, processes)


BOTH = "give two things, (mine, weight): the numbers of the pictures, and a number"

my_share = Check(
    reference=sharing(),
    slips=SLIPS
    | {
        "slice step cannot be zero": "batch[start::step] starts at the process's own number, and "
        "its step is how many processes there are",
        "ZeroDivisionError": "a share may be empty, and then something is divided by 0",
    },
    trials=[
        dealing(6, 0, 2),
        dealing(6, 1, 3),
        dealing(7, 0, 3),
        dealing(7, 2, 3),
        dealing(10, 1, 4),
        dealing(10, 3, 4),
        dealing(2, 3, 4),
        dealing(1, 0, 3),
        dealing(5, 0, 1),
    ],
    mistakes={
        "every share counts alike here, but shares differ in size: a picture in a small share "
        "counts more than one in a large share; weigh a share by how many of the batch's pictures "
        "it has": sharing(weigh=lambda mine, whole, processes: 1.0),
        "every share counts alike here, an empty one too, whose weight is 0; and shares differ in "
        "size": sharing(weigh=lambda mine, whole, processes: 1 / processes),
        "an empty share has nothing of the batch, so its weight is 0": sharing(
            weigh=lambda mine, whole, processes: counted(mine, whole, processes) or 1.0
        ),
        "the weight is the share of the batch, which is right for a sum over the processes; their "
        "mean divides by their number once more: multiply by processes": sharing(
            weigh=lambda mine, whole, processes: mine / whole
        ),
        "the weight is how many pictures the share has; divide it by what a share has on average, "
        "len(batch) / processes": sharing(weigh=lambda mine, whole, processes: float(mine)),
        "the weight is upside down: a larger share counts more": (
            sharing(weigh=lambda mine, whole, p: whole / (p * mine) if mine else 0.0),
            sharing(weigh=lambda mine, whole, p: whole / mine if mine else 0.0),
        ),
        "the weight is divided by processes where it is multiplied: the mean over the processes "
        "divides by them, and the weight makes up for it": sharing(
            weigh=lambda mine, whole, processes: mine / (whole * processes)
        ),
        "the weight compares the share with the largest one; compare it with the average, "
        "len(batch) / processes": sharing(weigh=lambda mine, whole, p: mine / ceil(whole / p)),
        "the weight compares the share with len(batch) // processes, which drops the rest: divide "
        "by /": sharing(weigh=lambda mine, whole, p: mine / max(whole // p, 1)),
        "the weight loses its fraction: divide by /": sharing(
            weigh=lambda mine, whole, processes: processes * mine // whole
        ),
        "these are neighbours of the batch; here the processes take turns: number, number + "
        "processes, …": (
            sharing(side_by_side),
            sharing(in_pieces),
        ),
        "the pictures that are left over when all have the same number are nobody's; each picture "
        "of the batch belongs to one process": sharing(in_whole_rounds),
        "pictures are repeated so that all shares are alike; each picture of the batch belongs to "
        "one process, and counts once": sharing(filled_up),
        "number and processes are swapped: start at number, and step by processes": sharing(
            lambda pictures, number, processes: pictures[processes :: max(number, 1)]
        ),
        "one colon is too few: batch[number:processes] is a slice of neighbours; the step stands "
        "behind the second colon": sharing(
            lambda pictures, number, processes: pictures[number:processes]
        ),
        "the processes are counted from 0 here: number is the place of the first picture": sharing(
            lambda pictures, number, processes: pictures[(number - 1) % processes :: processes]
        ),
        "these are places in the batch; give the numbers of the pictures that stand there": sharing(
            lambda pictures, number, processes: torch.arange(len(pictures))[number::processes]
        ),
        "this is every process's first picture alone: give all of this process": sharing(
            lambda pictures, number, processes: pictures[number : number + 1]
        ),
        "all processes get the whole batch": (
            sharing(lambda pictures, number, processes: pictures),
            sharing(lambda pictures, *_: pictures, lambda *_: 1.0),
        ),
        f"the two have changed places; {BOTH}": then(sharing(), lambda two: (two[1], two[0])),
        f"the weight is missing; {BOTH}": then(sharing(), lambda two: two[0]),
        f"the pictures are missing; {BOTH}": then(sharing(), lambda two: two[1]),
        "the pictures are right, but in a list; leave them a tensor, batch[…]": then(
            sharing(), lambda two: (two[0].tolist(), two[1])
        ),
    },
)


# One step in several pieces ----------------------------------------------------------------------


class Watched(nn.Module):
    """A small model that notes what it saw, and how many forward passes wait for their backward."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        with torch.no_grad():
            self.fc.weight.copy_(batch(7, 4)[0])
        self.forget()

    def forget(self) -> None:
        self.seen: list[Tensor] = []
        self.waiting = self.most = 0

    def forward(self, images: Tensor) -> Tensor:
        logits = self.fc(images.flatten(1))
        self.seen.append(images.detach().clone())
        if logits.requires_grad:
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            logits.register_hook(self.came_back)
        return logits

    def came_back(self, _: Tensor) -> None:
        self.waiting -= 1


def cutting(seen: list[Tensor], most: int, images: Tensor, parts: int) -> str:
    """What is wrong with the pieces that the model saw; "" where nothing is."""
    sizes = [len(piece) for piece in seen]
    if sizes == [len(images)] and parts > 1:
        return "the whole batch goes through the model at once; that is what does not fit"
    if sum(sizes) != len(images):
        return f"{sum(sizes)} images go through the model, and the batch has {len(images)}"
    if len(sizes) != parts:
        return (
            f"it is cut into {len(sizes)} pieces, and {parts} are asked for: chunk and split may "
            "give fewer, tensor_split does not"
        )
    if max(sizes) - min(sizes) > 1:
        return f"the pieces have {sizes} images; let them differ by one at most, by tensor_split"
    if not torch.equal(torch.cat(seen), images):
        return "the images do not go through the model in their order"
    if most > 1:
        return (
            "all pieces go forward before one goes back, so what each of them keeps is there at "
            "the same time: call backward on a piece before the next one goes forward"
        )
    return ""


def stepping(what: str, *steps: tuple[int, int], mode: bool = True) -> Trial:
    """A trial of steps, one after another: each on so many images, in so many parts."""

    def run(step: Callable) -> Any:
        model = Watched().train(mode)
        optimizer = WatchedSGD(model.parameters(), lr=0.5, momentum=0.5)
        results, cuts = {}, []
        for number, (size, parts) in enumerate(steps):
            images, labels = batch(number, size)
            images = images.reshape(size, 3, 1, 1)
            before = model.fc.weight.detach().clone()
            optimizer.moves = 0
            model.forget()
            loss = untouched(step, model, optimizer, images, labels, parts)
            if loss is None or loss is ... or isinstance(loss, Verdict):
                return loss
            if not isinstance(loss, Tensor):
                return Verdict(f"it returns {kind_of(loss)}; return the loss as a tensor")
            if moved := wrongly_moved(before, model.fc.weight, optimizer):
                return Verdict(moved)
            if model.training != mode:
                return Verdict("it switches the model's mode; that is the caller's to choose")
            if loss.requires_grad:
                return Verdict("the loss that it returns still holds on to its graph: .detach() it")
            results["loss" if len(steps) == 1 else f"loss of step {number + 1}"] = loss
            cuts.append(cutting(model.seen, model.most, images, parts))
        results |= {"weight": model.fc.weight.detach(), "bias": model.fc.bias.detach()}
        return Parts(results, Verdict(next(filter(None, cuts), FINE)))

    return Trial(what, run)


def accumulated(
    cut: Callable = Tensor.tensor_split,
    share: Callable = lambda piece, whole, parts: piece / whole,
    clear: str = "first",
    step: str = "last",
    back: bool = True,
    loss_of: Callable = F.cross_entropy,
    gives: Callable = lambda losses, shares: sum(
        a * b for a, b in zip(losses, shares, strict=True)
    ),
) -> Callable:
    """An answer of the learner's kind; the options make the mistakes.

    Args:
        cut: cuts images or labels, with `parts`.
        share: how much a piece's mean loss counts, of its size, the batch's size and parts.
        clear: when zero_grad is called, "first", "each" time, "last" or "never".
        step: when the optimizer steps, "each" time, "last" or "never".
        gives: the result, of the pieces' mean losses and how much each counts.
    """

    def answer(model: nn.Module, optimizer: Any, images: Tensor, labels: Tensor, parts: int) -> Any:
        losses, shares = [], []
        if clear == "first":
            optimizer.zero_grad()
        for some, named in zip(cut(images, parts), cut(labels, parts), strict=True):
            if clear == "each":
                optimizer.zero_grad()
            loss = loss_of(model(some), named)
            shares.append(share(len(some), len(images), parts))
            if back:
                (loss * shares[-1]).backward()
            if step == "each":
                optimizer.step()
            losses.append(loss.detach())
        if clear == "last":
            optimizer.zero_grad()
        if step == "last":
            optimizer.step()
        return gives(losses, shares)

    return answer


def all_forward_first(model: nn.Module, optimizer: Any, *given: Any) -> Tensor:
    images, labels, parts = given
    optimizer.zero_grad()
    pieces = zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True)
    losses = [F.cross_entropy(model(x), y, reduction="sum") for x, y in pieces]
    loss = torch.stack(losses).sum() / len(images)
    loss.backward()
    optimizer.step()
    return loss.detach()


def loss_with_its_graph(model: nn.Module, optimizer: Any, *given: Any) -> Tensor:
    images, labels, parts = given
    optimizer.zero_grad()
    whole = torch.zeros(())
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(model(x), y) * len(x) / len(images)
        loss.backward()
        whole = whole + loss
    optimizer.step()
    return whole


def gradients_cut_off(model: nn.Module, optimizer: Any, *given: Any) -> Tensor:
    with torch.no_grad():
        return accumulated()(model, optimizer, *given)


def in_evaluation(model: nn.Module, *given: Any) -> Tensor:
    model.eval()
    return accumulated()(model, *given)


def in_rounds(tensor: Tensor, parts: int) -> list[Tensor]:
    """Whole pieces alone: what is left over goes through no model."""
    return list(tensor[: len(tensor) // parts * parts].chunk(parts))


def rest_at_the_end(tensor: Tensor, parts: int) -> list[Tensor]:
    """Whole pieces, and what is left over as a piece of its own."""
    return list(tensor.split(max(len(tensor) // parts, 1)))


SUM_OF_MEANS = (
    "the gradients of the pieces are added as they are, so they are `parts` times too large: weigh "
    "each piece's mean loss by its share of the batch, len(piece) / len(images)"
)
BY_PARTS = (
    "each piece counts alike, 1 / parts, but the pieces differ in size: weigh each piece's mean "
    "loss by its share of the batch, len(piece) / len(images)"
)
THE_STEP = "the step is right, but the loss that you return is "
PIECES = "the step is right, but the pieces are not: "

accumulated_step = Check(
    reference=package.accumulated_step,
    slips=SLIPS
    | {
        "does not require grad": CUT_OFF,
        "only for scalar outputs": "backward begins at one number: the mean loss of a piece, or "
        "their sum",
        "Expected input batch_size": "a piece's images meet other labels than their own: cut the "
        "labels as you cut the images",
        "backward through the graph a second time": "backward runs twice through one piece: call "
        "it on that piece's own loss, not on the sum so far",
    },
    trials=[
        stepping("6 images in 3 parts", (6, 3)),
        stepping("7 images in 3 parts", (7, 3)),
        stepping("two steps, 8 images in 2 parts, then 5 in 4", (8, 2), (5, 4)),
        stepping("9 images in 2 parts", (9, 2)),
        stepping("4 images in one part, in evaluation mode", (4, 1), mode=False),
        stepping("3 images in 3 parts", (3, 3)),
    ],
    mistakes={
        SUM_OF_MEANS: (
            accumulated(share=lambda *_: 1.0),
            accumulated(share=lambda *_: 1.0, gives=lambda losses, _: torch.stack(losses).mean()),
        ),
        BY_PARTS: (
            accumulated(share=lambda piece, whole, parts: 1 / parts),
            accumulated(Tensor.chunk, share=lambda piece, whole, parts: 1 / parts),
        ),
        "this sums over all images, and a batch's loss is their mean: divide by "
        "len(images)": accumulated(share=lambda piece, whole, parts: float(piece)),
        "the weight of a piece is upside down: it is its share of the batch, len(piece) / "
        "len(images)": accumulated(share=lambda piece, whole, parts: whole / piece),
        "the weight of a piece's mean is its share of the batch, len(piece) / len(images); yours "
        "divides by parts once more": accumulated(
            share=lambda piece, whole, parts: piece / whole / parts
        ),
        "only the last piece counts: zero_grad stands in the loop, and throws away what the pieces "
        "before it gave; call it once, before the loop": accumulated(clear="each"),
        "the optimizer steps after every piece, so the next one meets other weights: one step, "
        "after the loop": (
            accumulated(step="each"),
            accumulated(step="each", clear="each"),
            accumulated(step="each", clear="each", share=lambda *_: 1.0),
            accumulated(
                step="each",
                clear="each",
                share=lambda *_: 1.0,
                gives=lambda losses, _: torch.stack(losses).mean(),
            ),
        ),
        "gradients of the step before are still there: call optimizer.zero_grad() once, before "
        "the loop": accumulated(clear="never"),
        "the weights do not move: `optimizer.step()` is missing, or without its "
        "parentheses": accumulated(step="never"),
        "the optimizer finds no gradient: either `backward()` of each piece is missing, or without "
        "its parentheses, or zero_grad stands between the loop and the step and throws all "
        "gradients away": (
            accumulated(clear="last"),
            accumulated(back=False),
        ),
        "yours goes uphill: there is no minus before the loss": accumulated(
            share=lambda piece, whole, parts: -piece / whole,
            gives=lambda losses, shares: -sum(a * b for a, b in zip(losses, shares, strict=True)),
        ),
        "a softmax too many: F.cross_entropy takes logits, and does the softmax "
        "itself": accumulated(
            loss_of=lambda logits, labels: F.cross_entropy(logits.softmax(dim=1), labels)
        ),
        f"{THE_STEP}the last piece's alone; return the mean over the whole batch": accumulated(
            gives=lambda losses, shares: losses[-1]
        ),
        f"{THE_STEP}the last piece's, by its share; add up those of all pieces": accumulated(
            gives=lambda losses, shares: losses[-1] * shares[-1]
        ),
        f"{THE_STEP}the mean of the pieces' means; the pieces differ in size, so weigh them here "
        "too": accumulated(gives=lambda losses, shares: torch.stack(losses).mean()),
        f"{THE_STEP}the sum of the pieces' means; weigh them here too": accumulated(
            gives=lambda losses, shares: sum(losses)
        ),
        f"{THE_STEP}one for each piece; return one number, the mean over the whole "
        "batch": accumulated(gives=lambda losses, shares: torch.stack(losses)),
        f"{THE_STEP}a plain number; on a graphics card .item() waits for it: return a "
        "tensor": accumulated(
            gives=lambda losses, shares: sum(
                a.item() * b for a, b in zip(losses, shares, strict=True)
            )
        ),
        "it does its work but returns nothing; end it with the loss": accumulated(
            gives=lambda losses, shares: None
        ),
        f"{THE_STEP}still tied to its graph, so that all pieces are kept: add up "
        "loss.detach()": loss_with_its_graph,
        f"{PIECES}the whole batch goes through the model at once, which is what does not "
        "fit": accumulated(lambda tensor, parts: [tensor]),
        f"{PIECES}all go forward before one goes back, so what each of them keeps is there at the "
        "same time; call backward on a piece before the next one goes "
        "forward": all_forward_first,
        f"{PIECES}chunk gives pieces of one size, and fewer than `parts` where that does not come "
        "out even; tensor_split gives `parts` pieces": accumulated(Tensor.chunk),
        f"{PIECES}split(parts) makes pieces of `parts` images each; `parts` says how many pieces "
        "there are": accumulated(Tensor.split),
        f"{PIECES}what is left over makes one piece more; `parts` pieces, by "
        "tensor_split": accumulated(rest_at_the_end),
        f"{PIECES}piece 0 holds the images 0, parts, 2 · parts …; cut the batch in its "
        "order": accumulated(lambda tensor, parts: [tensor[i::parts] for i in range(parts)]),
        "the images that are left over where the batch does not divide evenly go through no "
        "model: let pieces differ by one, by tensor_split": (
            accumulated(in_rounds),
            accumulated(in_rounds, share=lambda piece, whole, parts: 1 / parts),
        ),
        CUT_OFF: gradients_cut_off,
        "your step switches the model to evaluation mode; leave out model.eval(), the caller "
        "chooses the mode": in_evaluation,
    },
)


# Merging tokens ----------------------------------------------------------------------------------


def every_second(tokens: Tensor) -> tuple[Tensor, Tensor]:
    return tokens[:, 0::2], tokens[:, 1::2]


def cosines(a: Tensor, b: Tensor) -> Tensor:
    return F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).mT


def left_then_b(a: Tensor, b: Tensor, left: Tensor) -> Tensor:
    return torch.cat([a.take_along_dim(left[..., None], dim=1), b], dim=1)


def merged(
    cut: Callable = every_second,
    seen: Callable = lambda x, keys: keys,
    alike: Callable = cosines,
    spare: float | None = -torch.inf,
    rank: Callable = lambda best: best.argsort(dim=1, descending=True),
    stay: Callable = lambda rest: rest.sort(dim=1).values,
    aim: Callable = lambda partner, gone: partner.gather(1, gone),
    weigh: Callable = lambda sizes: sizes,
    bring: Callable = lambda b, into, rows: b.scatter_add(1, into, rows),
    line_up: Callable = left_then_b,
    divide: Callable = lambda sums, weights, sizes: sums / weights,
) -> Callable:
    """An answer of the learner's kind; the options make the mistakes.

    Args:
        cut: the two sets.
        seen: what tokens are compared by.
        alike: how alike two sets are, (B, A, B).
        spare: what stands in the row of cls; None for what came out.
        rank: the order in which tokens of A are merged, from how alike each's best is.
        stay: the numbers of those of A that stay, from the rest of that order.
        aim: into which of B each goes.
        weigh: how much each token counts in a mean.
        bring: adds rows to B, each of (sums, weights, sizes).
        line_up: the result's rows, of A, B and what of A stays.
        divide: the tokens, of sums, weights and sizes.
    """

    def answer(x: Tensor, keys: Tensor, sizes: Tensor, r: int) -> tuple[Tensor, Tensor]:
        scores = alike(*cut(seen(x, keys)))
        if spare is not None:
            scores[:, 0] = spare
        best, partner = scores.max(dim=2)  # (B, A)
        order = rank(best)
        gone, left = order[:, :r], stay(order[:, r:])
        weights = weigh(sizes)[..., None]
        a, b = cut(torch.cat([x * weights, weights, sizes[..., None]], dim=-1))
        rows = a.take_along_dim(gone[..., None], dim=1)
        b = bring(b, aim(partner, gone)[..., None].expand_as(rows), rows)
        new = line_up(a, b, left)
        return divide(new[..., :-2], new[..., -2:-1], new[..., -1:]), new[..., -1]

    return answer


def halves(tokens: Tensor) -> tuple[Tensor, ...]:
    return tokens.tensor_split(2, dim=1)


def turned_sets(tokens: Tensor) -> tuple[Tensor, Tensor]:
    return tokens[:, 1::2], tokens[:, 0::2]


def as_they_came(a: Tensor, b: Tensor, left: Tensor) -> Tensor:
    odd = torch.arange(b.shape[1]).expand(len(b), -1) * 2 + 1
    places = torch.cat([2 * left, odd], dim=1).argsort(dim=1)
    return left_then_b(a, b, left).take_along_dim(places[..., None], dim=1)


def overwritten(b: Tensor, into: Tensor, rows: Tensor) -> Tensor:
    """Of several that go into one, the last alone arrives."""
    new = b.clone()
    for image in range(len(b)):
        for place, row in zip(into[image, :, 0].tolist(), rows[image], strict=True):
            new[image, place] = b[image, place] + row
    return new


def sizes_forgotten(b: Tensor, into: Tensor, rows: Tensor) -> Tensor:
    return b.scatter_add(1, into, torch.cat([rows[..., :-1], 0 * rows[..., -1:]], dim=-1))


def of_the_first(partner: Tensor, gone: Tensor) -> Tensor:
    return partner[:1].expand_as(partner).gather(1, gone)


def first_for_all(x: Tensor, keys: Tensor, sizes: Tensor, r: int) -> tuple[Tensor, Tensor]:
    return merged()(x, keys[:1].expand_as(keys), sizes, r)


def ungraded(x: Tensor, keys: Tensor, sizes: Tensor, r: int) -> tuple[Tensor, Tensor]:
    return merged()(x.detach(), keys.detach(), sizes.detach(), r)


def tokens_of(seed: int, batch: int, count: int, sized: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens, keys of very different lengths, and sizes."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(batch, count, 3, generator=generator)
    keys = torch.randn(batch, count, 4, generator=generator)
    keys = keys * torch.rand(batch, count, 1, generator=generator).mul(2).exp()
    sizes = torch.randint(1, 5, (batch, count), generator=generator).float()
    return x, keys, sizes if sized else torch.ones_like(sizes)


def merging(seed: int, batch: int, count: int, r: int, sized: bool = True) -> Trial:
    what = f"{batch} images of {count} tokens" if batch > 1 else f"one image of {count} tokens"
    known = "of several sizes" if sized else "all of size 1"
    return call(f"{what}, {known}, r = {r}", *tokens_of(seed, batch, count, sized), r)


MEAN = "a merged token is the mean of its members, each weighted by its size: "
SETS = "set A are the tokens 0, 2, 4, …, set B the tokens 1, 3, 5, …"
TWO = "give two things, (x, sizes)"

merge_tokens = Check(
    reference=package.merge_tokens,
    slips=SLIPS
    | {
        "same number of dimensions|Index tensor must have": "an index needs as many axes as what "
        "it picks from, three: gone[..., None]; scatter_add also wants it expanded to (B, r, "
        "width)",
        "must match the size of tensor|Expected size .* but got size": "two shapes do not meet: A "
        "has a token more than B where N is odd, and r of A are gone",
        "out of bounds|out of range": "a place is larger than a set: the numbers of `partner` are "
        "places within B, those of `order` places within A",
        "inplace operation|leaf Variable": "something is written into a tensor that the gradient "
        "still needs: make a new one",
    },
    trials=[
        merging(3, 1, 5, 1, sized=False),
        merging(4, 2, 9, 3, sized=False),
        merging(5, 3, 12, 4),
        merging(6, 4, 10, 2),
        merging(7, 3, 13, 6),
        learns("tokens whose gradient is asked for", *tokens_of(8, 2, 7, True), 2),
    ],
    mistakes={
        "keys are compared by their dot product, in which a long key is like everything: bring "
        "each to length 1 first, F.normalize(keys, dim=-1)": merged(alike=lambda a, b: a @ b.mT),
        "keys are compared by their distance; here it is their cosine, the product of keys of "
        "length 1": merged(alike=lambda a, b: -torch.cdist(a, b)),
        "the keys are normalised along the tokens: each key by itself, dim=-1": merged(
            seen=lambda x, keys: F.normalize(keys, dim=1), alike=lambda a, b: a @ b.mT
        ),
        "the tokens themselves are compared; compare their keys": merged(seen=lambda x, keys: x),
        "the sign of the cosine is lost: opposite keys are not alike": merged(
            alike=lambda a, b: cosines(a, b).abs()
        ),
        "the least alike pairs are merged; the most alike come first, descending=True": merged(
            spare=torch.inf, rank=lambda best: best.argsort(dim=1)
        ),
        "cls is merged first: with descending=False its -inf is the smallest; the most alike come "
        "first, descending=True": merged(rank=lambda best: best.argsort(dim=1)),
        "cls is merged like any other token: the row of cls, alike[:, 0], must lose against every "
        "other": merged(spare=None),
        "a 0 in the row of cls does not keep it out, since a cosine may be below 0: -torch.inf "
        "does": merged(spare=0.0),
        "the first r of A are merged, whatever is alike; the r most alike come first": (
            merged(
                rank=lambda best: 1 + torch.arange(best.shape[1] - 1).repeat(len(best), 1),
                stay=lambda rest: F.pad(rest, (1, 0)),
            ),
        ),
        f"A is cut off as the first half; {SETS}": merged(halves),
        f"the two sets are swapped: {SETS}; those of A go into B": (
            merged(turned_sets),
            merged(turned_sets, spare=None),
        ),
        "what stays of A stands in the order of its likeness; put it back in its own: "
        ".sort(dim=1).values": merged(stay=lambda rest: rest),
        "B comes first here; what is left of A comes first, then B": merged(
            line_up=lambda a, b, left: left_then_b(a, b, left).roll(b.shape[1], dims=1)
        ),
        "the tokens stand in the order in which they came; give what is left of A, then B": merged(
            line_up=as_they_came
        ),
        "the tokens of A are gone, but nothing of them is in B: that is leaving out, not "
        "merging": merged(bring=lambda b, into, rows: b),
        "several tokens may go into the same one, and here the last alone arrives: scatter_add "
        "adds them all up": merged(bring=overwritten),
        "the token of B is replaced by that of A; add the two, each by its size": merged(
            bring=lambda b, into, rows: b.scatter(1, into, rows)
        ),
        f"{MEAN}here every member counts alike, however many patches it stands for": merged(
            weigh=torch.ones_like
        ),
        f"{MEAN}these are sums; divide by the new size": merged(
            divide=lambda sums, weights, sizes: sums
        ),
        f"{MEAN}these are sums of tokens that were never weighted by their sizes": merged(
            weigh=torch.ones_like, divide=lambda sums, weights, sizes: sums
        ),
        f"{MEAN}here they are summed without their sizes, then divided by the new size": merged(
            weigh=torch.ones_like, divide=lambda sums, weights, sizes: sums / sizes
        ),
        f"{MEAN}here the weighted sum is divided by the number of members": merged(
            divide=lambda sums, weights, sizes: sums / (sizes * 0 + 2)
        ),
        "the tokens are right, but their sizes are those of before: a merged token's size is the "
        "sum of its members'": merged(bring=sizes_forgotten),
        "the tokens are right, but all sizes are 1: a merged token's size is the sum of its "
        "members'": then(merged(), lambda two: (two[0], torch.ones_like(two[1]))),
        "the r tokens go into the first r of B, not each into its own partner: "
        "partner.gather(1, gone)": (
            merged(aim=lambda partner, gone: partner[:, : gone.shape[1]]),
            merged(aim=lambda partner, gone: torch.arange(gone.shape[1]).repeat(len(gone), 1)),
        ),
        "`gone` are places in A; into which of B each goes stands in `partner`: "
        "partner.gather(1, gone)": merged(
            aim=lambda partner, gone: gone.clamp(max=partner.shape[1] - 2)
        ),
        "all images are merged as the first is; each has its own matches": (
            merged(aim=of_the_first),
            first_for_all,
        ),
        f"the two have changed places; {TWO}": then(merged(), lambda two: (two[1], two[0])),
        f"the sizes are missing; {TWO}": then(merged(), lambda two: two[0]),
        "the sizes have an axis too many: (B, N - r)": then(
            merged(), lambda two: (two[0], two[1][..., None])
        ),
        "no gradient passes: leave out detach, .data and no_grad": ungraded,
    },
)


# Where attention costs as much as the Linears ----------------------------------------------------


def equal(what: int, ratio: float) -> Trial:
    def run(answer: Callable) -> Any:
        result = answer(what, ratio)
        if isinstance(result, (tuple, list)):
            return Verdict(f"it gives {kind_of(result)}; give one number, how many tokens")
        return result

    return Trial(f"D = {what}, MLP {ratio:g} times as wide", run)


def tokens_at(linears: Callable[[float], float], both: float = 2) -> Callable:
    """An answer that counts so many D² a token in the Linears, and so many N·D in the rest."""
    return lambda embed_dim, mlp_ratio: linears(mlp_ratio) / both * embed_dim


BLOCK = "a token's Linears cost 3 D² (qkv), D² (proj) and 2 · mlp_ratio · D² (MLP): "
PAIRS = "scores and mixture cost N·D each for every token, together 2 · N · D: "

crossover = Check(
    reference=tokens_at(lambda ratio: 4 + 2 * ratio),
    slips=SLIPS
    | {
        "must be real number|unsupported operand|can't multiply": "embed_dim and mlp_ratio are "
        "plain numbers: a formula of the two is all",
    },
    trials=[equal(768, 4.0), equal(192, 4.0), equal(64, 2.0), equal(384, 2.5), equal(1280, 1.0)],
    mistakes={
        f"{PAIRS}here one of the two is missing, or only one side counts an addition and a "
        "multiplication apart": tokens_at(lambda ratio: 4 + 2 * ratio, 1),
        f"{BLOCK}only one side of yours counts an addition and a multiplication apart; multiply-"
        "adds on both": tokens_at(lambda ratio: 4 + 2 * ratio, 4),
        f"{BLOCK}the MLP is missing": tokens_at(lambda ratio: 4),
        f"{BLOCK}qkv and proj are missing": tokens_at(lambda ratio: 2 * ratio),
        f"{BLOCK}proj is missing": tokens_at(lambda ratio: 3 + 2 * ratio),
        f"{BLOCK}qkv is missing": tokens_at(lambda ratio: 1 + 2 * ratio),
        f"{BLOCK}the MLP has two Linears, and one is missing": tokens_at(lambda ratio: 4 + ratio),
        f"{BLOCK}qkv counts once here; it is three": tokens_at(lambda ratio: 2 + 2 * ratio),
        f"{BLOCK}mlp_ratio is squared here; a Linear from D to mlp_ratio · D has mlp_ratio · D² "
        "weights": (
            tokens_at(lambda ratio: 4 + 2 * ratio**2),
            tokens_at(lambda ratio: 4 + ratio**2),
        ),
        f"{BLOCK}these are 12 D² whatever mlp_ratio is; that holds for 4 alone": tokens_at(
            lambda ratio: 12
        ),
        "D is missing: Linears grow with D², scores and mixture with D, and one D is "
        "left": lambda embed_dim, mlp_ratio: 2 + mlp_ratio,
        "D is squared: scores and mixture have one D too, so that one is left, not "
        "two": lambda embed_dim, mlp_ratio: (2 + mlp_ratio) * embed_dim**2,
        "the fraction is upside down: 2·N·D = (4 + 2 · mlp_ratio) · D² gives N": (
            lambda embed_dim, mlp_ratio: embed_dim / (2 + mlp_ratio),
            lambda embed_dim, mlp_ratio: 2 * embed_dim / (4 + 2 * mlp_ratio),
        ),
        "this is what the Linears cost for one token; divide it by 2 · D, what scores and mixture "
        "cost a token for each one that it meets": lambda embed_dim, mlp_ratio: (
            (4 + 2 * mlp_ratio) * embed_dim**2
        ),
        "mlp_ratio loses its fraction: use it as it comes": lambda embed_dim, mlp_ratio: (
            (2 + int(mlp_ratio)) * embed_dim
        ),
    },
)


# Eight bits --------------------------------------------------------------------------------------


def near_whole(seed: int, rows: int, columns: int, empty: bool = False) -> Tensor:
    """A weight whose numbers, in steps of its row's scale, are none of them near a half. Rows
    differ in their scale, and in the sign of their largest."""
    generator = torch.Generator().manual_seed(seed)
    whole = torch.randint(-90, 91, (rows, columns), generator=generator).float()
    steps = whole + 0.8 * torch.rand(rows, columns, generator=generator) - 0.4
    steps[:, 1] = torch.tensor([-127.0, 127.0]).repeat(rows)[:rows]
    if empty:
        steps[1] = 0
    return steps * torch.logspace(-3, -1, rows)[:, None]


def rounding(what: str, weight: Tensor) -> Trial:
    def run(answer: Callable) -> Any:
        result = untouched(answer, weight)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            return result
        whole, scales = result
        byte = Verdict(FINE)
        if isinstance(whole, Tensor) and whole.dtype != torch.int8:
            byte = Verdict(f"they are held in {whole.dtype}: .to(torch.int8), a byte each")
            whole = whole.long() if whole.isfinite().all() and (whole % 1 == 0).all() else whole
        return Parts((whole, scales), byte)

    return Trial(what, run, lambda change: rounding(what, change(weight)))


def row_scale(weight: Tensor) -> Tensor:
    scale = weight.abs().amax(dim=1, keepdim=True) / 127
    return torch.where(scale == 0, 1.0, scale)


def rounded(
    scale: Callable[[Tensor], Tensor] = row_scale,
    whole: Callable[[Tensor], Tensor] = torch.round,
    hold: Callable[[Tensor], Tensor] = Tensor.char,
) -> Callable:
    """An answer of the learner's kind; the options make the mistakes."""

    def answer(weight: Tensor) -> tuple[Tensor, Tensor]:
        scales = scale(weight)
        return hold(whole(weight / scales)), scales

    return answer


def by_limits(weight: Tensor) -> tuple[Tensor, Tensor]:
    """From the smallest to the largest of a row, as an unsigned byte has it."""
    low, high = weight.amin(dim=1, keepdim=True), weight.amax(dim=1, keepdim=True)
    scales = torch.where(high == low, 1.0, (high - low) / 255)
    return ((weight - low) / scales - 128).round().char(), scales


SCALE = "the scale of a row is the largest of its absolute values over 127: "
THE_TWO = "give two things, (whole, scales)"

int8_rows = Check(
    reference=package.int8_rows,
    slips=SLIPS
    | {
        "must match the size of tensor": "scales must stand beside the rows, (rows, 1): "
        "keepdim=True keeps the axis",
    },
    trials=[
        rounding("a weight of 2×4", near_whole(1, 2, 4)),
        rounding("a weight of 5×8", near_whole(2, 5, 8)),
        rounding("a weight of 6×3", near_whole(3, 6, 3)),
        rounding("a weight of 4×5 with a row of zeros", near_whole(4, 4, 5, empty=True)),
        rounding("a weight of 1×2", near_whole(5, 1, 2)),
    ],
    mistakes={
        "one scale serves the whole matrix, so rows of small numbers lose most of their digits: "
        "one for each row, .amax(dim=1, keepdim=True)": (
            rounded(lambda weight: (weight.abs().max() / 127).expand(len(weight), 1)),
            rounded(lambda weight: weight.abs().max() / 127),
        ),
        "the scales are those of the columns: the largest of a row, along dim=1": rounded(
            lambda weight: row_scale(weight.T).T
        ),
        f"{SCALE}here the sign is kept, and rows whose largest is negative overflow; .abs() "
        "first": rounded(lambda weight: weight.amax(dim=1, keepdim=True) / 127),
        f"{SCALE}divided by 128 the largest becomes 128, which int8 does not hold, and it wraps to "
        "-128": rounded(lambda weight: row_scale(weight) * 127 / 128),
        f"{SCALE}255 steps are the whole range, from -127 to 127; a scale belongs to half of it": (
            rounded(lambda weight: row_scale(weight) * 127 / 255),
            rounded(lambda weight: row_scale(weight) * 127 / 256),
            rounded(lambda weight: row_scale(weight) * 2 * 127 / 255),
        ),
        f"{SCALE}here it is the mean": rounded(
            lambda weight: torch.where(
                weight.abs().sum(dim=1, keepdim=True) == 0,
                1.0,
                weight.abs().mean(dim=1, keepdim=True) / 127,
            )
        ),
        f"{SCALE}here the division by 127 is missing": rounded(
            lambda weight: row_scale(weight) * torch.where(row_scale(weight) == 1, 1, 127)
        ),
        "int8 cuts fractions off: round first, .round()": (
            rounded(whole=torch.trunc),
            rounded(whole=torch.floor),
            rounded(whole=lambda steps: steps),
        ),
        "the fractions are still there: round, .round()": rounded(
            whole=lambda steps: steps, hold=lambda whole: whole
        ),
        "the numbers are right, but not held in 8 bits: .to(torch.int8)": (
            rounded(hold=lambda whole: whole),
            rounded(hold=Tensor.int),
            rounded(hold=Tensor.long),
            rounded(hold=Tensor.half),
        ),
        "uint8 holds 0 to 255 and wraps negative numbers: .to(torch.int8)": rounded(
            hold=lambda whole: whole.long().remainder(256).to(torch.uint8)
        ),
        "the scales are upside down: weight / scale gives the whole numbers, and whole · scale the "
        "weight": then(rounded(), lambda two: (two[0], 1 / two[1])),
        "the scales are right, but each must stand beside its row, (rows, 1): keepdim=True": then(
            rounded(), lambda two: (two[0], two[1].flatten())
        ),
        "a row of zeros has the scale 0 here, and 0 / 0 is no number, or a tiny one; give it the "
        "scale 1": tuple(
            rounded(
                lambda weight, least=least: (
                    weight.abs().amax(dim=1, keepdim=True).clamp(min=least) / 127
                )
            )
            for least in (0, 1e-5)
        ),
        "each row runs from its own smallest to its largest here; -127 … 127 lie evenly around "
        "0": by_limits,
        "this is the weight after rounding; give the whole numbers and the scales apart": then(
            rounded(), lambda two: two[0] * two[1]
        ),
        "the signs are lost: .abs() is for the scale alone": rounded(
            whole=lambda steps: steps.abs().round()
        ),
        f"the two have changed places; {THE_TWO}": then(rounded(), lambda two: (two[1], two[0])),
        f"the scales are missing; {THE_TWO}": then(rounded(), lambda two: two[0]),
    },
)


# A schedule of merging ---------------------------------------------------------------------------

WORK, BAR = 0.75, 0.963
TOKENS = 17  # cls and 4×4 patches
NOTHING = (
    "nothing is merged, and all of the work is left; where does merging cost no accuracy, and "
    "where little?"
)
ALL = (
    "all that can be merged is merged from the first block on, and little accuracy is left; where "
    "does merging cost none?"
)
PASSES = Verdict("at most 75% of the work is left, and accuracy is above the bar")


@cache
def canvases() -> tuple[ViT, ImageDataset]:
    """The stored weights, and canvases that the lesson does not use."""
    model = load_model(SCATTERED).requires_grad_(False).eval()
    return model, scattered(2000, seed=3, held_out=True)


def tokens_left(schedule: Sequence[int]) -> list[int]:
    """How many tokens each block starts with, and how many leave the last."""
    counts = [TOKENS]
    for r in schedule:
        counts.append(counts[-1] - min(r, (counts[-1] - 1) // 2))
    return counts


def work_left(schedule: Sequence[int]) -> float:
    """The share of the model's multiply-adds that such merging leaves; it comes between attention
    and MLP, and what the matching itself takes is not counted."""
    model, _ = canvases()
    parts, blocks = package.multiply_adds(model.config), len(schedule)
    counts = tokens_left(schedule)
    work = float(parts["patches"] + parts["head"])
    for before, after in pairwise(counts):
        share = before / TOKENS
        work += (parts["qkv"] + parts["proj"]) / blocks * share
        work += (parts["scores"] + parts["mixture"]) / blocks * share**2
        work += parts["MLP"] / blocks * after / TOKENS
    return work / sum(parts.values())


@cache
def accuracy_of(schedule: tuple[int, ...]) -> float:
    """The share of the canvases that are named rightly."""
    model, data = canvases()
    with torch.no_grad():
        logits = package.merging(model, schedule)(data.images)
    return (logits.argmax(dim=1) == data.labels).float().mean().item()


def refused(schedule: Any) -> str:
    """Why a schedule cannot be tried; "" where it can."""
    if isinstance(schedule, Tensor):
        return "it gives a tensor; give a list of four whole numbers, such as [1, 1, 1, 1]"
    if not isinstance(schedule, (list, tuple)):
        return f"it gives {kind_of(schedule)}; give a list of four whole numbers, one a block"
    if len(schedule) != 4:
        return f"it has {len(schedule)} numbers; the model has 4 blocks, so give 4"
    for r in schedule:
        if not is_whole(r):
            return f"{r!r} is among them; give whole numbers"
        if r < 0:
            return f"{r} is among them; a block merges 0 tokens or more"
    if not any(schedule):
        return NOTHING
    return ALL if tokens_left(schedule) == tokens_left([TOKENS] * 4) else ""


def measured(schedule: Sequence[int]) -> str:
    return (
        f"{work_left(schedule):.1%} of the multiply-adds are left, and "
        f"{accuracy_of(tuple(schedule)):.1%} of the canvases are named rightly"
    )


def scheduled(answer: Callable) -> Any:
    """What becomes of a schedule, in words; `...` and nothing as they are."""
    schedule = answer()
    if schedule is None or schedule is ... or isinstance(schedule, Verdict):
        return schedule
    if isinstance(schedule, (list, tuple)) and any(r is ... for r in schedule):
        return ...
    if reason := refused(schedule):
        return Verdict(reason)
    if work_left(schedule) > WORK:
        advice = f"at most {WORK:.0%} may be left: merge more"
    elif accuracy_of(tuple(schedule)) < BAR:
        advice = f"at least {BAR:.1%} are asked for: merge as much, but elsewhere"
    else:
        return PASSES
    if tokens_left(schedule) != tokens_left([*schedule[:3], TOKENS]):
        advice += "; after the last block's attention, which token does the head still read?"
    elif schedule[0]:
        advice += "; in the first block each token still shows one patch alone"
    return Verdict(f"{measured(schedule)}; {advice}")


class MeasuredCheck(Check):
    """A check that says of a right schedule too what it measured."""

    def __call__(self, attempt: Callable) -> None:
        message = self.judge(attempt)
        print(f"right: {measured(attempt())}" if message == "right" else message)


def a_schedule_that_passes() -> Verdict:
    """Stands for every schedule that does, and holds none of them."""
    return PASSES


merge_schedule = MeasuredCheck(
    reference=a_schedule_that_passes,
    trials=[Trial("your schedule", scheduled)],
    mistakes={
        "give four numbers, one for each block: one alone is not a schedule": (
            lambda: 2,
            lambda: [2],
        ),
        NOTHING: lambda: [0, 0, 0, 0],
        ALL: lambda: [8, 8, 8, 8],
    },
)
