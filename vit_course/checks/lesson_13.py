"""Lesson 13: one step in pieces, merged tokens, where attention costs as much, what to merge."""

from collections.abc import Callable, Generator
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vit_course.canvases import scattered
from vit_course.savings import photo_crops
from vit_steps import weights
from vit_steps.heads import merge_heads, split_qkv
from vit_steps.vit import ViT

from .compare import Parts, Verdict, kind_of
from .exercise import Exercise
from .trials import Outside, Trial, asked, call, untouched

# One step in several pieces ----------------------------------------------------------------------


class Watched(nn.Module):
    """A small model that notes what it saw, and how many forward passes wait for their backward."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.forget()

    def forget(self) -> None:
        """Begin anew, as if it had seen nothing."""
        self.seen: list[Tensor] = []
        self.waiting = self.most = 0

    def forward(self, images: Tensor) -> Tensor:
        """From images (B, 3, 1, 1) to logits (B, 4)."""
        logits = self.fc(images.flatten(1))
        self.seen.append(images.detach().clone())
        if logits.requires_grad:
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            logits.register_hook(self.came_back)
        return logits

    def came_back(self, _: Tensor) -> None:
        """Count the backward pass of one forward pass."""
        self.waiting -= 1


def cutting(model: Watched, images: Tensor, parts: int) -> str:
    """Say what is wrong with the pieces that the model saw; "" where nothing is."""
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
    """Make a trial of steps, one after another: each on so many images, in so many parts."""

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
    why="""`backward` adds to the gradients that are there, so the pieces' gradients add up by
themselves. Each piece's mean loss counts by its share of the batch, and so each image counts
alike.""",
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
the pieces' gradients are added as they are, so together they are far too large: weigh each piece's
mean loss by its share of the batch, len(piece) / len(images)
    loss.backward() => (loss / share).backward()
    theirs) * share => theirs)
    theirs) * share => theirs) ;; return whole => return whole / parts
each piece counts alike, 1 / parts, but the pieces differ in size: weigh each piece's mean loss by
its share of the batch, len(piece) / len(images)
    len(some) / len(images) => 1 / parts
a piece's loss is divided by its size, but cross_entropy is a mean already: weigh it by its share of
the batch, len(piece) / len(images)
    len(some) / len(images) => 1 / len(some)
a piece's loss is divided by the whole batch, but cross_entropy is the piece's mean already:
multiply by len(piece), too
    len(some) / len(images) => 1 / len(images)
this sums over all images, and a batch's loss is their mean: divide by len(images)
    len(some) / len(images) => len(some)
the weight of a piece is upside down: it is its share of the batch, len(piece) / len(images)
    len(some) / len(images) => len(images) / len(some)
the weight of a piece's mean is its share of the batch, len(piece) / len(images); yours divides by
parts once more
    len(some) / len(images) => len(some) / len(images) / parts
only the last piece counts: zero_grad is in the loop, and throws away what the pieces before it
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
parentheses, or zero_grad comes between the loop and the step and throws all gradients away
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
    """Make a trial of merging r tokens of each image."""
    images = f"{batch} images" if batch > 1 else "one image"
    sizes = "of several sizes" if sized else "all of size 1"
    what = f"{images} of {count} tokens, {sizes}, r = {r}"
    return call(what, *tokens_of(seed, batch, count, sized), r)


def tokens_learn(answer: Callable) -> Any:
    """Give the gradient that reaches the tokens from those that come out."""
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
    alike = keys[:, 0::2] @ keys[:, 1::2].mT  # (B, even, odd)
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
    why="""A token times its size is a sum over patches, and sums can be added in any order. So the
size travels along as one more number, and one division at the end gives all means.""",
    trials=[
        merging(3, 1, 5, 2, sized=False),
        merging(5, 3, 13, 3),
        Trial("tokens whose gradient is asked for", tokens_learn),
    ],
    slips={
        "same number of dimensions|Index tensor must have": "an index needs as many axes as what "
        "it picks from, three: gone[..., None]; scatter_add also wants it expanded to (B, r, "
        "width)",
        "must match the size of tensor": "two shapes do not meet: lengths of keys, and sizes, are "
        "(B, N) and need a third axis, by keepdim=True or [..., None]; there is an even token "
        "more where N is odd, and r of them are gone",
        "Expected size .* but got size": "torch.cat joins tensors that are alike in all axes but "
        "one: the axis of the tokens is dim=1, that of the numbers dim=-1; and each image has its "
        "own `gone` and `left`: order[:, :r], not order[:r]",
        "tuple indices must be": ".sort(dim=1) gives two things, values and indices: take its "
        ".values",
        "index.* out of (bounds|range)": "a place is larger than a set: the numbers of "
        "`partner` are places among the odd tokens, those of `order` among the even ones",
        "inplace operation|leaf Variable": "something is written into a tensor that the gradient "
        "still needs: make a new one",
    },
    wrong="""
keys are compared by their dot product, in which a long key is like everything: bring each to length
1 by its own length, F.normalize(keys, dim=-1); one length for all keys changes no order
    F.normalize(keys, dim=-1) => keys
    F.normalize(keys, dim=-1) => keys / keys.norm()
keys are compared by their distance; here it is their cosine, the product of keys of length 1
    F.normalize(keys, dim=-1) => keys ;; alike = keys[:, 0::2] @ keys[:, 1::2].mT =>
        alike = -torch.cdist(keys[:, 0::2], keys[:, 1::2])
the keys are normalised along the tokens: each key by itself, dim=-1
    F.normalize(keys, dim=-1) => F.normalize(keys, dim=1)
the tokens themselves are compared; compare their keys
    F.normalize(keys => F.normalize(x
the sign of the cosine is lost: opposite keys are not alike
    keys[:, 0::2] @ keys[:, 1::2].mT => (keys[:, 0::2] @ keys[:, 1::2].mT).abs()
each odd token looks for its partner among the even ones; the even ones look, so the largest is
taken over the odd ones, dim=2
    alike.max(dim=2) => alike.max(dim=1)
the least alike pairs are merged; the most alike come first, descending=True
    -torch.inf => torch.inf ;; descending=True => descending=False
cls is merged first, because its -inf is the smallest: the most alike must come first, by
descending=True, and the first of `order` go, order[:, :r]
    descending=True => descending=False
    order[:, :r] => order[:, -r:] ;; order[:, r:] => order[:, :-r]
    order[:, :r] => order[:, -r:]
cls is merged like any other token: the row of cls, alike[:, 0], must lose against every other
    alike[:, 0] = -torch.inf =>
a 0 in the row of cls does not keep it out, since a cosine may be below 0: -torch.inf does
    -torch.inf => 0.0
cls is last in `order`, since it is like nobody: the best pairs are its first r, order[:, :r]
    order[:, :r] => order[:, 1 : r + 1]
    order[:, :r] => order[:, 1 : r + 1] ;; order[:, r:] =>
        torch.cat([order[:, :1], order[:, r + 1 :]], dim=1)
what stays of the even ones begins where what goes ends, order[:, r:]; order[:, :-r] keeps what is
merged
    order[:, r:] => order[:, :-r]
every image gets the pairs of the first; each has its own
    alike.max(dim=2) => alike[:1].expand_as(alike).max(dim=2)
the sums are divided along the wrong axis: the sizes need a last axis of length 1, rows[..., -1:]
    rows[..., :-1] / rows[..., -1:], => rows[..., :-1] / rows[..., -1],
the first r even tokens are merged, whatever is alike; the r most alike come first
    best.argsort(dim=1, descending=True) => torch.arange(best.shape[1]).roll(-1).expand_as(best)
the first half is taken for the even tokens; they are 0, 2, 4, …, and the odd ones 1, 3, 5, …
    rows[:, 0::2], rows[:, 1::2] => rows.tensor_split(2, dim=1) ;;
        alike = keys[:, 0::2] @ keys[:, 1::2].mT =>
        a, b = keys.tensor_split(2, dim=1) ⏎ alike = a @ b.mT
the two sets are swapped: the even tokens, 0, 2, 4, …, go into the odd ones, 1, 3, 5, …
    rows[:, 0::2], rows[:, 1::2] => rows[:, 1::2], rows[:, 0::2] ;;
        keys[:, 0::2] @ keys[:, 1::2].mT => keys[:, 1::2] @ keys[:, 0::2].mT
    rows[:, 0::2], rows[:, 1::2] => rows[:, 1::2], rows[:, 0::2] ;;
        keys[:, 0::2] @ keys[:, 1::2].mT => keys[:, 1::2] @ keys[:, 0::2].mT ;;
        alike[:, 0] = -torch.inf =>
    rows[:, 0::2], rows[:, 1::2] => rows[:, 1::2], rows[:, 0::2] ;;
        keys[:, 0::2] @ keys[:, 1::2].mT => keys[:, 1::2] @ keys[:, 0::2].mT ;;
        alike[:, 0] => alike[:, :, 0]
the keys are divided by their squared length, so long ones are like nobody: divide by the length,
F.normalize(keys, dim=-1)
    F.normalize(keys, dim=-1) => keys / keys.square().sum(dim=-1, keepdim=True)
the images are sorted among each other; sort along the tokens of each, .sort(dim=1)
    .sort(dim=1).values => .sort(dim=0).values
what stays of the even ones is in the order of likeness; put it back in its own: .sort(dim=1).values
    .sort(dim=1).values =>
    .sort(dim=1).values => .flip(1)
what stays are places among what was sorted, not among the even ones: of a sort, take .values
    .sort(dim=1).values => .sort(dim=1).indices
the odd tokens come first here; what is left of the even ones comes first, then the odd
    [a, b] => [b, a]
the tokens are in the order in which they came; give what is left of the even ones, then the odd
    rows = torch.cat([a, b], dim=1) => odd = torch.arange(1, x.shape[1], 2).expand(len(x), -1)
        ⏎ places = torch.cat([2 * left, odd], dim=1).argsort(dim=1)
        ⏎ rows = torch.cat([a, b], dim=1).take_along_dim(places[..., None], dim=1)
the even tokens are gone, but nothing of them is in their partners: that is leaving out, not merging
    b = b.scatter_add(1, target, moved) =>
several tokens may go into the same one, and here the last alone arrives: scatter_add adds them all
up
    scatter_add(1, target, moved) => scatter(1, target, moved + b.gather(1, target))
the odd token is replaced by the even one; add the two, each by its size
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
    sizes[..., None]], => sizes[..., None], sizes[..., None]], ;;
        target = => moved[..., -1] = 0 ⏎ target = ;;
        :-1] / rows[..., -1:] => :-2] / rows[..., -2:-1]
all sizes that you give are 1: a merged token's size is the sum of its members'
    rows[..., -1] => torch.ones_like(rows[..., -1])
the r tokens go into the first r odd ones, not each into its own partner: partner.gather(1, gone)
    partner.gather(1, gone) => partner[:, :r]
    partner.gather(1, gone) => torch.arange(r).expand(len(x), r)
`gone` are places among the even ones; into which odd one each goes is in `partner`:
partner.gather(1, gone)
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


def equal(width: int, ratio: float) -> Trial:
    """Make a trial of the number of tokens for one width and one ratio of the MLP."""

    def say(result: Any, *_: Any) -> Any:
        if isinstance(result, (tuple, list)):
            return Verdict(f"it gives {kind_of(result)}; give one number, how many tokens")
        return result

    return Trial(f"D = {width}, MLP {ratio:g} times as wide", asked, [width, ratio], say)


PAIRS = "scores and mixture cost N·D each for every token, together 2·N·D: "
BLOCK = """a token's Linears cost 3·D² (qkv), D² (proj) and 2·mlp_ratio·D² (MLP): """

crossover = Exercise(
    answer="""
def crossover(embed_dim, mlp_ratio):
    linears = (4 + 2 * mlp_ratio) * embed_dim**2
    return linears / (2 * embed_dim)
""",
    why="""Both sides have a factor N, and it goes out. What is left is N = (2 + mlp_ratio) · D,
which is 6 · D for the usual MLP.""",
    slips={
        "must be real number|unsupported operand|can't multiply": "embed_dim and mlp_ratio are "
        "plain numbers: a formula of the two is all",
    },
    trials=[equal(192, 4.0), equal(385, 2.5)],
    wrong=f"""
{PAIRS}here one of the two is missing, or the Linears are counted in operations (an addition and a
multiplication apart) and attention in multiply-adds
    (2 * embed_dim) => embed_dim
{BLOCK}scores and mixture are counted in operations (an addition and a multiplication apart),
and the Linears in multiply-adds; multiply-adds on both sides
    (2 * embed_dim) => (4 * embed_dim)
{BLOCK}the MLP is missing
    4 + 2 * mlp_ratio => 4
{BLOCK}qkv and proj are missing
    4 + 2 * mlp_ratio => 2 * mlp_ratio
{BLOCK}proj is missing
    4 + => 3 +
{BLOCK}qkv is missing
    4 + => 1 +
{BLOCK}the MLP has two Linears, and one is missing
    2 * mlp_ratio => mlp_ratio
{BLOCK}qkv counts once here; it is three
    4 + => 2 +
{BLOCK}mlp_ratio is squared here; a Linear from D to mlp_ratio·D has mlp_ratio·D² weights
    2 * mlp_ratio => 2 * mlp_ratio**2
    2 * mlp_ratio => mlp_ratio**2
{BLOCK}these are 12·D² whatever mlp_ratio is; that holds for 4 alone
    4 + 2 * mlp_ratio => 12
D is missing: Linears grow with D², scores and mixture with D, so one D is left
    (2 * embed_dim) => (2 * embed_dim**2)
D is squared: scores and mixture have one D too, so one D is left, not two
    (2 * embed_dim) => 2
the fraction is upside down: 2·N·D = (4 + 2·mlp_ratio)·D² gives N
    linears / (2 * embed_dim) => 2 * embed_dim**3 / linears
    linears / (2 * embed_dim) => 2 * embed_dim / (4 + 2 * mlp_ratio)
this is what the Linears cost for one token; divide it by 2·D, what scores and mixture cost a token
for each one that it meets
    linears / (2 * embed_dim) => linears
N loses its fraction: give it as it comes out, 1732.5 for D = 385 and mlp_ratio = 2.5
    linears / (2 * embed_dim) => int(linears / (2 * embed_dim))
    linears / (2 * embed_dim) => linears // (2 * embed_dim)
    linears / (2 * embed_dim) => linears // (2 * embed_dim) + 1
    linears / (2 * embed_dim) => float(math.ceil(linears / (2 * embed_dim)))
mlp_ratio loses its fraction: use it as it comes
    4 + 2 * mlp_ratio => 4 + 2 * int(mlp_ratio)
""",
)


# One rule of merging for two kinds of pictures ---------------------------------------------------

READ, SAME = 92.0, 85.0  # what is asked for, in %


@cache
def canvases(seed: int = 7) -> tuple[ViT, Tensor, Tensor, int]:
    """Give the reader, canvases that the lesson does not use, their digits, and r."""
    data = scattered(1000, seed=seed, held_out=True)
    return weights.load("scattered").model.requires_grad_(False).eval(), data.images, data.labels, 3


@cache
def crops() -> tuple[ViT, Tensor, Tensor, int]:
    """Give the model for photos, crops of three photos, what it says of them, and r."""
    images = torch.cat([*photo_crops(100, seed=7).values()])
    model = weights.load("photos").model.requires_grad_(False).eval()
    return model, images, model(images).argmax(dim=1), 8


def merged_by(table: Tensor, x: Tensor, sizes: Tensor, r: int) -> tuple[Tensor, Tensor]:
    """Merge as `merge_tokens` does, by this table (B, even, odd) in place of the cosines."""
    best, partner = table[:, 1:].max(dim=2)
    order = 1 + best.argsort(dim=1, descending=True)
    gone, left = order[:, :r], F.pad(order[:, r:].sort(dim=1).values, (1, 0))
    rows = torch.cat([x * sizes[..., None], sizes[..., None]], dim=-1)
    a, b = rows[:, 0::2], rows[:, 1::2]
    moved = a.take_along_dim(gone[..., None], dim=1)
    b = b.scatter_add(1, partner.gather(1, gone - 1)[..., None].expand_as(moved), moved)
    rows = torch.cat([a.take_along_dim(left[..., None], dim=1), b], dim=1)
    return rows[..., :-1] / rows[..., -1:], rows[..., -1]


def blocks_of(model: ViT, images: Tensor, r: int) -> Generator[tuple[Tensor, Tensor], Tensor, Any]:
    """Run the model and merge in each block: yield keys and looks, and be sent a table for them.

    Returns:
        The answers, or what came in the place of a table.

    Raises:
        ValueError: a table has another shape, or holds nan.
    """
    x = model.tokens(model.patch_embed(images))
    sizes = torch.ones(x.shape[:2])
    for block in model.blocks:
        attn: Any = block.attn
        q, k, v = split_qkv(attn.qkv(block.norm1(x)), attn.num_heads)  # type: ignore[operator]
        scores = q @ k.mT / k.shape[-1] ** 0.5 + sizes.log()[:, None, None]
        shares = scores.softmax(dim=-1)
        x = x + attn.proj(merge_heads(shares @ v))
        keys = k.mean(dim=1)
        table = yield keys, shares[:, :, 0].mean(dim=1)
        shape = keys[:, 0::2].shape[:2] + keys[:, 1::2].shape[1:2]
        if table is None or table is ... or not isinstance(table, Tensor):
            return table
        if table.shape != shape:
            raise ValueError(
                f"of {keys.shape[1]} tokens it gives {tuple(table.shape)}; give {tuple(shape)}, a "
                "row for each even token, a column for each odd one"
            )
        if table.isnan().any():
            raise ValueError("some of what it gives is nan")
        x, sizes = merged_by(table, x, sizes, min(r, (x.shape[1] - 1) // 2))
        x = x + block.mlp(block.norm2(x))  # type: ignore[operator]
    return model.head(model.norm(x[:, 0])).argmax(dim=1)


class Merging:
    """A model that merges by somebody's tables.

    Called with each table, it gives what the next is for, and at the end None; `result` is then
    the share of answers that are as expected, in %.
    """

    def __init__(self, model: ViT, images: Tensor, expected: Tensor, r: int):
        self.blocks, self.expected, self.result = blocks_of(model, images, r), expected, None

    def __call__(self, table: Any = None) -> Any:
        """Merge by this table, the first time by none."""
        try:
            return self.blocks.send(table)
        except StopIteration as end:
            self.result = end.value
            if isinstance(end.value, Tensor) and end.value.shape == self.expected.shape:
                self.result = 100 * (end.value == self.expected).float().mean().item()
        except ValueError as error:
            self.result = Verdict(str(error))
        return None


def merge_all(likeness: Callable, model: Callable) -> Any:
    """Let a model merge by what `likeness` gives, until it asks no more."""
    keys_and_looks = model()
    while keys_and_looks is not None:
        keys_and_looks = model(untouched(likeness, *keys_and_looks))


def kept_answers(likeness: Callable, data: Callable) -> Any:
    """Give in % of the images how often the merging model says what is expected."""
    merge_all(likeness, model := Merging(*data()))
    return model.result


def cosines(keys: Tensor, _: Tensor) -> Tensor:
    """Give the table of `merge_tokens`, which does not ask where cls looks."""
    keys = F.normalize(keys, dim=-1)
    return keys[:, 0::2] @ keys[:, 1::2].mT


@cache
def without_looks(data: Callable) -> float:
    """Give what the cosine alone keeps, in %."""
    return kept_answers(cosines, data)


def keeping(what: str, data: Callable, bar: float, measured: str) -> Trial:
    """Make a trial of whether merging by the learner's table keeps enough answers."""

    def say(_: Any, model: Outside) -> Any:
        share = model.function.result  # type: ignore[attr-defined]
        if not isinstance(share, float):
            return share
        if share >= bar:
            return Verdict("enough")
        problem = f"{share:.1f}% {measured}, asked for are {bar}%"
        if data is canvases and share < (alone := without_looks(data)):
            problem += (
                f". That is below the cosine alone, {alone:.1f}%: should pairs that cls looks at "
                "be merged more, or less?"
            )
        elif data is canvases:
            problem += (
                ". Does it subtract enough, and wherever cls looks at either of the two? (All "
                "looks sum to 1, unless you scale them.)"
            )
        elif share < (alone := without_looks(data)):
            problem += f". The cosine alone keeps {alone:.1f}%: is too much subtracted from it?"
        return Verdict(problem)

    return Trial(what, merge_all, lambda: [Outside(Merging(*data()))], say)


class Measured(Exercise):
    """An exercise that says of a right answer, too, what it measured."""

    def taken(self, attempt: Callable) -> str:
        """Keep a right answer, and say what it measured."""
        others = partial(canvases, 8)  # by which nobody chose
        shares = [kept_answers(attempt, data) for data in (canvases, crops, others)]
        measured = "{:.1f}% of the canvases, {:.1f}% of the photos; of 1,000 other canvases {:.1f}%"
        return f"{super().taken(attempt)}: {measured.format(*shares)}"


likeness = Measured(
    answer="""
def likeness(keys, looks):  # (B, N, d), (B, N)
    keys = F.normalize(keys, dim=-1)
    alike = keys[:, 0::2] @ keys[:, 1::2].mT  # (B, even, odd)
    looks = looks / looks[:, 1:].mean(dim=1, keepdim=True)  # 1 is usual
    together = looks[:, 0::2, None] + looks[:, None, 1::2]  # (B, even, odd)
    return alike - 0.2 * together
""",
    why="""A pair must be alike, and cls must look at neither of the two. On photos the cosines
differ by so much that a small number changes few pairs.""",
    slips={
        "must match the size of tensor": "two shapes do not meet: the even looks are a "
        "column, looks[:, 0::2, None], the odd ones a row, looks[:, None, 1::2]",
    },
    trials=[
        keeping("1,000 canvases, 3 tokens a block", canvases, READ, "are right"),
        keeping("300 crops of photos, 8 tokens a block", crops, SAME, "keep their answer"),
    ],
    wrong="""
this is the cosine alone, as in `merge_tokens`, and it does not ask where cls looks
    alike - 0.2 * together => alike
what cls looks at is merged first here: subtract it from the likeness
    alike - 0.2 => alike + 0.2
every picture gets the same looks, a mean over the batch; each has its own
    (dim=1, keepdim=True)  # => (dim=1, keepdim=True) ⏎
        looks = looks.mean(dim=0, keepdim=True).expand_as(looks)  #
this asks only where cls looks, and not what is alike
    alike - 0.2 * together => -together
this is no table: a row for each even token, a column for each odd one, (B, even, odd)
    alike - 0.2 * together => keys @ keys.mT
""",
)
