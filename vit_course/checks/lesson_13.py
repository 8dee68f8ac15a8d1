"""Build cells and exercises of lesson 13."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from math import ceil
from typing import Any

import torch
from torch import Tensor, nn

from vit_steps import scale as package
from vit_steps.inputs import is_whole
from vit_steps.training import load_model
from vit_steps.training.data import scattered
from vit_steps.training.dataset import ImageDataset
from vit_steps.vit import ViT
from vit_steps.weights import SCATTERED

from .compare import Parts, Verdict, kind_of
from .engine import Check
from .exercise import Exercise
from .trials import Trial, call, then, untouched

# One process's share -----------------------------------------------------------------------------


def dealing(count: int, number: int, processes: int) -> Trial:
    """Pictures whose numbers are not their places."""
    pictures = (torch.arange(count) * 7 + 3) % 31
    return call(f"{count} pictures, process {number} of {processes}", pictures, number, processes)


my_share = Exercise(
    answer="""
def my_share(batch, number, processes):
    mine = batch[number::processes]
    weight = processes * len(mine) / len(batch)
    return mine, weight
""",
    trials=[
        dealing(11, 1, 4),
        dealing(10, 3, 4),
        dealing(2, 3, 4),
    ],
    slips={"ZeroDivisionError": "a share may be empty, and then something is divided by 0"},
    wrong="""
every share counts alike here, but shares differ in size: a picture in a small share counts more
than one in a large share; weigh a share by how many of the batch's pictures it has
    weight = processes * len(mine) / len(batch) => weight = 1.0
every share counts alike here, an empty one too, whose weight is 0; and shares differ in size
    weight = processes * len(mine) / len(batch) => weight = 1 / processes
an empty share has nothing of the batch, so its weight is 0
    / len(batch) => / len(batch) or 1.0
the weight is the share of the batch, which is right for a sum over the processes; their mean
divides by their number once more: multiply by processes
    processes * len(mine) => len(mine)
the weight is how many pictures the share has; divide it by what a share has on average,
len(batch) / processes
    processes * len(mine) / len(batch) => len(mine)
the weight is upside down: a larger share counts more
    processes * len(mine) / len(batch) => len(batch) / (processes * len(mine)) if len(mine) else 0.0
    processes * len(mine) / len(batch) => len(batch) / len(mine) if len(mine) else 0.0
    processes * len(mine) / len(batch) => len(batch) / len(mine)
the weight is divided by processes where it should be multiplied: the mean over the processes
divides by them, and the weight makes up for it
    processes * len(mine) / len(batch) => len(mine) / len(batch) / processes
the weight loses its fraction: divide by /
    / len(batch) => // len(batch)
the weight compares the share with the largest one; compare it with the average,
len(batch) / processes
    processes * len(mine) / len(batch) => len(mine) / math.ceil(len(batch) / processes)
the weight compares the share with len(batch) // processes, which drops the rest: divide by /
    processes * len(mine) / len(batch) => len(mine) / max(len(batch) // processes, 1)
these are neighbours of the batch; here the processes take turns: number, number + processes, …
    batch[number::processes] => batch.tensor_split(processes)[number]
    batch[number::processes] => batch.chunk(processes)[number]
    mine = batch => size = math.ceil(len(batch) / processes) ⏎ mine = batch ;;
        [number::processes] => [number * size : (number + 1) * size]
the pictures that are left over when all have the same number are nobody's; each picture of the
batch belongs to one process
    mine = batch => mine = batch[: len(batch) // processes * processes]
pictures are repeated so that all shares are alike; each picture of the batch belongs to one
process, and counts once
    mine = batch => size = math.ceil(len(batch) / processes) * processes ⏎ mine =
        batch.repeat(processes)[:size]
number and processes are swapped: start at number, and step by processes
    number::processes => processes::number
    number::processes => processes :: max(number, 1)
one colon is too few: batch[number:processes] is a slice of neighbours; the step stands behind the
second colon
    number::processes => number:processes
the processes are counted from 0 here: number is the place of the first picture
    number:: => (number - 1) % processes ::
these are places in the batch; give the numbers of the pictures that stand there
    mine = batch => mine = torch.arange(len(batch))
    batch[number::processes] => torch.arange(number, len(batch), processes)
this is every process's first picture alone: give all of this process
    number::processes => number : number + 1
all processes get the whole batch
    [number::processes] =>
    [number::processes] => ;; weight = processes * len(mine) / len(batch) => weight = 1.0
the two have changed places; give (mine, weight): the numbers of the pictures, and a number
    return mine, weight => return weight, mine
the weight is missing; give two things, (mine, weight): the numbers of the pictures, and a number
    return mine, weight => return mine
the pictures are missing; give two things, (mine, weight): the numbers of the pictures, and a number
    return mine, weight => return weight
the pictures are in a list; leave them a tensor, batch[…]
    return mine, weight => return mine.tolist(), weight
""",
)


# One step in several pieces ----------------------------------------------------------------------


class Watched(nn.Module):
    """A small model that notes what it saw, and how many forward passes wait for their backward."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
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


def cutting(model: Watched, images: Tensor, parts: int) -> str:
    """What is wrong with the pieces that the model saw; "" where nothing is."""
    sizes = [len(piece) for piece in model.seen]
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
    if not torch.equal(torch.cat(model.seen), images):
        return "the images do not go through the model in their order"
    if model.most > 1:
        return (
            "all pieces go forward before one goes back, so what each of them keeps is there at "
            "the same time: call backward on a piece before the next one goes forward"
        )
    return ""


def stepping(what: str, *steps: tuple[int, int], mode: bool = True) -> Trial:
    """A trial of steps, one after another: each on so many images, in so many parts."""

    def run(step: Callable) -> Any:
        model = Watched().train(mode)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
        moves, wrong, results = [], [], {}
        optimizer.register_step_post_hook(lambda *_: moves.append(1))
        model.fc.weight.grad = torch.ones(4, 3)  # of an earlier batch
        batches = [(5 * torch.randn(size, 3, 1, 1), torch.randint(4, (size,))) for size, _ in steps]
        for number, (images, labels) in enumerate(batches):
            model.forget()
            moves.clear()
            parts = steps[number][1]
            loss = untouched(step, model, optimizer, images, labels, parts)
            if loss is None or loss is ...:
                return loss
            results["loss" if len(steps) == 1 else f"loss of step {number + 1}"] = loss
            if not moves:
                wrong.append("the optimizer was never asked to step")
            if isinstance(loss, Tensor) and loss.requires_grad:
                wrong.append("the loss that it returns still holds on to its graph: .detach() it")
            if model.training != mode:
                wrong.append("it switches the model's mode; that is the caller's to choose")
            wrong.append(cutting(model, images, parts))
        results |= {"weight": model.fc.weight.detach(), "bias": model.fc.bias.detach()}
        return Parts(results, Verdict(next(filter(None, wrong), "")))

    return Trial(what, run)


accumulated_step = Exercise(
    answer="""
def accumulated_step(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = torch.zeros((), device=images.device)
    pieces = zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True)
    for some, theirs in pieces:
        share = len(some) / len(images)
        loss = F.cross_entropy(model(some), theirs) * share
        loss.backward()
        whole += loss.detach()
    optimizer.step()
    return whole
""",
    trials=[
        stepping("7 images in 3 parts, in evaluation mode", (7, 3), mode=False),
        stepping("two steps, 8 images in 2 parts, then 5 in 4", (8, 2), (5, 4)),
    ],
    slips={
        "does not require grad": "backward finds no way back from the loss: the model must run "
        "outside torch.no_grad(), and the loss may be detached only after backward",
        "only for scalar outputs": "backward begins at one number: the mean loss of a piece, or "
        "their sum",
        "Expected input batch_size": "a piece's images meet other labels than their own: cut the "
        "labels as you cut the images",
        "backward through the graph a second time": "backward runs twice through one piece: call "
        "it on that piece's own loss, not on the sum so far",
    },
    wrong="""
the gradients of the pieces are added as they are, so they are `parts` times too large: weigh each
piece's mean loss by its share of the batch, len(piece) / len(images)
    loss.backward() => (loss / share).backward()
    theirs) * share => theirs)
    theirs) * share => theirs) ;; return whole => return whole / parts
each piece counts alike, 1 / parts, but the pieces differ in size: weigh each piece's mean loss by
its share of the batch, len(piece) / len(images)
    len(some) / len(images) => 1 / parts
this sums over all images, and a batch's loss is their mean: divide by len(images)
    len(some) / len(images) => len(some)
the weight of a piece is upside down: it is its share of the batch, len(piece) / len(images)
    len(some) / len(images) => len(images) / len(some)
the weight of a piece's mean is its share of the batch, len(piece) / len(images); yours divides by
parts once more
    len(some) / len(images) => len(some) / len(images) / parts
only the last piece counts: zero_grad stands in the loop, and throws away what the pieces before it
gave; call it once, before the loop
    loss.backward() => optimizer.zero_grad() ⏎ loss.backward()
the optimizer steps in the loop, so the next piece meets other weights: one step, after the loop
    loss.backward() => loss.backward() ⏎ optimizer.step()
    optimizer.step() => ;; loss.backward() => loss.backward() ⏎ optimizer.step()
    optimizer.step() => ;; loss.backward() => optimizer.step() ⏎ loss.backward()
    loss.backward() => loss.backward() ⏎ optimizer.step() ⏎ optimizer.zero_grad()
gradients of the step before are still there: call optimizer.zero_grad() once, before the loop
    optimizer.zero_grad() =>
    optimizer.zero_grad() => ;; optimizer.step() => optimizer.step() ⏎ optimizer.zero_grad()
the gradients are clipped before the step; this step takes them as they are
    optimizer.step() => nn.utils.clip_grad_norm_(model.parameters(), 1.0) ⏎ optimizer.step()
backward runs on the sum so far, so the first pieces count again and again: call it on each piece's
own loss
    loss.backward() => ;; return whole => return whole.detach() ;;
        whole += loss.detach() => whole = whole + loss ⏎ whole.backward(retain_graph=True)
the weights do not move: `optimizer.step()` is missing, or without its parentheses
    optimizer.step() =>
the optimizer finds no gradient: either `backward()` of each piece is missing, or without its
parentheses, or zero_grad stands between the loop and the step and throws all gradients away
    loss.backward() =>
    optimizer.step() => optimizer.zero_grad() ⏎ optimizer.step()
yours goes uphill: there is no minus before the loss
    loss.backward() => (-loss).backward()
a softmax too many: F.cross_entropy takes logits, and does the softmax itself
    model(some) => model(some).softmax(dim=1)
the loss that you return is the last piece's alone; return the mean over the whole batch
    return whole => return loss.detach() / share
the loss that you return is the last piece's, by its share; add up those of all pieces
    whole += => whole =
the loss that you return is the mean of the pieces' means; the pieces differ in size, so weigh them
    += loss.detach() => += loss.detach() / share / parts
the loss that you return is the sum of the pieces' means; weigh each by its share of the batch
    += loss.detach() => += loss.detach() / share
you return a loss for each piece; return one number, the mean over the whole batch
    zeros((), => zeros(0, ;; whole += loss => whole = torch.cat([whole, loss[None] / share])
    zeros((), => zeros(0, ;; whole += loss => whole = torch.cat([whole, loss[None]])
the loss that you return is a plain number; on a graphics card .item() waits for it: return a tensor
    return whole => return whole.item()
the loss that you return is still tied to its graph, so that all pieces are kept: add up
loss.detach()
    whole += loss.detach() => whole = whole + loss
the whole batch goes through the model at once, which is what does not fit
    images.tensor_split(parts), labels.tensor_split(parts) => [images], [labels]
all pieces go forward before one goes back, so what each of them keeps is there at the same time;
call backward on a piece before the next one goes forward
    loss.backward() => ;; whole += loss.detach() => whole = whole + loss ;;
        optimizer.step() => whole.backward() ⏎ optimizer.step() ;; return whole =>
        return whole.detach()
chunk gives pieces of one size, and fewer than `parts` where that does not come out even;
tensor_split gives `parts` pieces
    images.tensor_split(parts), labels.tensor_split(parts) => images.chunk(parts),
        labels.chunk(parts)
split(parts) makes pieces of `parts` images each; `parts` says how many pieces there are
    images.tensor_split(parts), labels.tensor_split(parts) => images.split(parts),
        labels.split(parts)
what is left over makes one piece more; there are `parts` pieces, by tensor_split
    images.tensor_split(parts), labels.tensor_split(parts) =>
        images.split(len(images) // parts), labels.split(len(images) // parts)
piece 0 holds the images 0, parts, 2 · parts …; cut the batch in its order
    images.tensor_split(parts), labels.tensor_split(parts) =>
        [images[i::parts] for i in range(parts)], [labels[i::parts] for i in range(parts)]
the images that are left over where the batch does not divide evenly go through no model: let pieces
differ by one, by tensor_split
    pieces = zip => even = len(images) // parts * parts ⏎ pieces = zip ;;
        images.tensor_split(parts), labels.tensor_split(parts) =>
        images[:even].chunk(parts), labels[:even].chunk(parts)
your step switches the model's mode; leave out model.eval() and model.train(), the caller chooses
    whole = => model.eval() ⏎ whole =
    whole = => model.train() ⏎ whole =
""",
)


# Merging tokens ----------------------------------------------------------------------------------


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


def tokens_learn(answer: Callable) -> Any:
    """The gradient that reaches the tokens from those that come out."""
    x, keys, sizes = tokens_of(8, 2, 7, True)
    result = answer(x.requires_grad_(), keys, sizes, 2)
    new = result[0] if isinstance(result, (tuple, list)) else result
    if not isinstance(new, Tensor):
        return new
    if not new.requires_grad:
        return Verdict("no gradient passes from the new tokens to x")
    pull = torch.arange(new.numel()).reshape(new.shape).sin()
    return torch.autograd.grad((new * pull).sum(), x)[0]


merge_tokens = Exercise(
    answer="""
def merge_tokens(x, keys, sizes, r):  # (B, N, D), (B, N, d), (B, N)
    keys = F.normalize(keys, dim=-1)
    alike = keys[:, 0::2] @ keys[:, 1::2].mT  # (B, A, B)
    alike[:, 0] = -torch.inf  # cls is like nobody
    best, partner = alike.max(dim=2)
    order = best.argsort(dim=1, descending=True)
    gone = order[:, :r]
    left = order[:, r:].sort(dim=1).values

    rows = torch.cat([x * sizes[..., None], sizes[..., None]], dim=-1)  # (B, N, D + 1)
    a, b = rows[:, 0::2], rows[:, 1::2]
    moved = a.take_along_dim(gone[..., None], dim=1)  # (B, r, D + 1)
    target = partner.gather(1, gone)[..., None].expand_as(moved)
    b = b.scatter_add(1, target, moved)
    a = a.take_along_dim(left[..., None], dim=1)
    rows = torch.cat([a, b], dim=1)  # (B, N - r, D + 1)
    return rows[..., :-1] / rows[..., -1:], rows[..., -1]
""",
    trials=[
        merging(3, 1, 5, 2, sized=False),
        merging(5, 3, 12, 4),
        Trial("tokens whose gradient is asked for", tokens_learn),
    ],
    slips={
        "same number of dimensions|Index tensor must have": "an index needs as many axes as what "
        "it picks from, three: gone[..., None]; scatter_add also wants it expanded to (B, r, "
        "width)",
        "must match the size of tensor": "two shapes do not meet: sizes (B, N) need a third axis "
        "beside x, sizes[..., None]; A has a token more than B where N is odd, and r of A are gone",
        "Expected size .* but got size": "torch.cat joins tensors that are alike in all axes but "
        "one: the axis of the tokens is dim=1, that of the numbers dim=-1",
        "index.* out of (bounds|range)": "a place is larger than a set: the numbers of "
        "`partner` are places within B, those of `order` places within A",
        "inplace operation|leaf Variable": "something is written into a tensor that the gradient "
        "still needs: make a new one",
    },
    wrong="""
keys are compared by their dot product, in which a long key is like everything: bring each to length
1 first, F.normalize(keys, dim=-1)
    F.normalize(keys, dim=-1) => keys
keys are compared by their distance; here it is their cosine, the product of keys of length 1
    F.normalize(keys, dim=-1) => keys ;; alike = keys[:, 0::2] @ keys[:, 1::2].mT =>
        alike = -torch.cdist(keys[:, 0::2], keys[:, 1::2])
the keys are normalised along the tokens: each key by itself, dim=-1
    F.normalize(keys, dim=-1) => F.normalize(keys, dim=1)
the tokens themselves are compared; compare their keys
    F.normalize(keys => F.normalize(x
the sign of the cosine is lost: opposite keys are not alike
    keys[:, 0::2] @ keys[:, 1::2].mT => (keys[:, 0::2] @ keys[:, 1::2].mT).abs()
each token of B looks for its partner in A; A looks, so the largest is taken over B, dim=2
    alike.max(dim=2) => alike.max(dim=1)
the least alike pairs are merged; the most alike come first, descending=True
    -torch.inf => torch.inf ;; descending=True => descending=False
cls is merged first: with descending=False its -inf is the smallest; the most alike come first,
descending=True
    descending=True => descending=False
cls is merged like any other token: the row of cls, alike[:, 0], must lose against every other
    alike[:, 0] = -torch.inf =>
a 0 in the row of cls does not keep it out, since a cosine may be below 0: -torch.inf does
    -torch.inf => 0.0
the first r of A are merged, whatever is alike; the r most alike come first
    best.argsort(dim=1, descending=True) => torch.arange(best.shape[1]).roll(-1).expand_as(best)
A is cut off as the first half; set A are the tokens 0, 2, 4, …, set B the tokens 1, 3, 5, …
    rows[:, 0::2], rows[:, 1::2] => rows.tensor_split(2, dim=1) ;;
        alike = keys[:, 0::2] @ keys[:, 1::2].mT =>
        a, b = keys.tensor_split(2, dim=1) ⏎ alike = a @ b.mT
the two sets are swapped: set A are the tokens 0, 2, 4, …, set B the tokens 1, 3, 5, …; those of A
go into B
    rows[:, 0::2], rows[:, 1::2] => rows[:, 1::2], rows[:, 0::2] ;;
        keys[:, 0::2] @ keys[:, 1::2].mT => keys[:, 1::2] @ keys[:, 0::2].mT
    rows[:, 0::2], rows[:, 1::2] => rows[:, 1::2], rows[:, 0::2] ;;
        keys[:, 0::2] @ keys[:, 1::2].mT => keys[:, 1::2] @ keys[:, 0::2].mT ;;
        alike[:, 0] = -torch.inf =>
    rows[:, 0::2], rows[:, 1::2] => rows[:, 1::2], rows[:, 0::2] ;;
        keys[:, 0::2] @ keys[:, 1::2].mT => keys[:, 1::2] @ keys[:, 0::2].mT ;;
        alike[:, 0] => alike[:, :, 0]
what stays of A stands in the order of its likeness; put it back in its own: .sort(dim=1).values
    .sort(dim=1).values =>
B comes first here; what is left of A comes first, then B
    [a, b] => [b, a]
the tokens stand in the order in which they came; give what is left of A, then B
    rows = torch.cat([a, b], dim=1) => odd = torch.arange(1, x.shape[1], 2).expand(len(x), -1)
        ⏎ places = torch.cat([2 * left, odd], dim=1).argsort(dim=1)
        ⏎ rows = torch.cat([a, b], dim=1).take_along_dim(places[..., None], dim=1)
the tokens of A are gone, but nothing of them is in B: that is leaving out, not merging
    b = b.scatter_add(1, target, moved) =>
several tokens may go into the same one, and here the last alone arrives: scatter_add adds them all
up
    scatter_add(1, target, moved) => scatter(1, target, moved + b.gather(1, target))
the token of B is replaced by that of A; add the two, each by its size
    scatter_add => scatter
a merged token is the mean of its members, each weighted by its size: here every member counts
alike, however many patches it stands for
    x * sizes[..., None], => x, torch.ones_like(x[..., :1]), ;;
        :-1] / rows[..., -1:] => :-2] / rows[..., -2:-1]
a merged token is the mean of its members, each weighted by its size: these are sums; divide by the
new size
    / rows[..., -1:] =>
a merged token is the mean of its members, each weighted by its size: here they are added up without
being multiplied by their sizes
    x * sizes[..., None], => x,
a merged token is the mean of its members, each weighted by its size: here the weighted sum is
divided by the number of members
    / rows[..., -1:] => / 2
    sizes[..., None]] => torch.ones_like(x[..., :1]), sizes[..., None]] ;;
        :-1] / rows[..., -1:] => :-2] / rows[..., -2:-1]
the sizes that came in are forgotten: here every token counts as one patch, in the means and in the
new sizes
    x * sizes[..., None], sizes[..., None] => x, torch.ones_like(x[..., :1])
the sizes that you give are those of before: a merged token's size is the sum of its members'
    rows[..., -1] => torch.cat([sizes[:, 0::2].gather(1, left), sizes[:, 1::2]], dim=1)
all sizes that you give are 1: a merged token's size is the sum of its members'
    rows[..., -1] => torch.ones_like(rows[..., -1])
the r tokens go into the first r of B, not each into its own partner: partner.gather(1, gone)
    partner.gather(1, gone) => partner[:, :r]
    partner.gather(1, gone) => torch.arange(r).expand(len(x), r)
`gone` are places in A; into which of B each goes stands in `partner`: partner.gather(1, gone)
    partner.gather(1, gone) => gone
all images are merged as the first is; each has its own matches
    partner.gather => partner[:1].expand_as(partner).gather
    F.normalize(keys => F.normalize(keys[:1].expand_as(keys)
the two have changed places; give two things, (x, sizes)
    rows[..., :-1] / rows[..., -1:], rows[..., -1] => rows[..., -1], rows[..., :-1] / rows[..., -1:]
the sizes are missing; give two things, (x, sizes)
    , rows[..., -1] =>
the sizes have an axis too many: (B, N - r)
    rows[..., -1] => rows[..., -1:]
no gradient passes from the new tokens to x: leave out detach, .data and no_grad
    [x * => [x.detach() *
""",
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
    slips={
        "must be real number|unsupported operand|can't multiply": "embed_dim and mlp_ratio are "
        "plain numbers: a formula of the two is all",
    },
    trials=[equal(768, 4.0), equal(192, 4.0), equal(64, 2.0), equal(385, 2.5), equal(1280, 1.0)],
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
        "N loses its fraction: give it as it comes out, 1732.5 for D = 385 and mlp_ratio = 2.5": (
            then(tokens_at(lambda ratio: 4 + 2 * ratio), int),
            then(tokens_at(lambda ratio: 4 + 2 * ratio), ceil),
            then(tokens_at(lambda ratio: 4 + 2 * ratio), lambda number: number // 1),
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
        byte = Verdict("")
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
    slips={
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

WORK, BAR = 0.75, 0.96
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
