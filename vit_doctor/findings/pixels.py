"""Which pixels count, and whether it counts where they stand."""

import torch
from torch import Tensor, nn

from ..patient import SAME, Patient, SoundError, need, only_if
from ..report import Finding, Note
from ..watching.calls import first_output

UNKNOWN_SIDE = "no attention over patches of a known side was seen"


def patch_side(p: Patient) -> int | None:
    """Give the side of the square patches, by the number of tokens in the first attention.

    Up to five of them may be no patches (cls, distillation, registers). None where that leaves no
    side, or more than one.
    """
    height, width = p.size
    keys = p.watch.attentions[0].keys if p.watch.attentions else 0
    sides = {
        side
        for side in range(2, min(p.size) // 2 + 1)
        for extra in range(6)
        if not height % side and not width % side and side**2 * (keys - extra) == height * width
    }
    return sides.pop() if len(sides) == 1 else None


def unseen_pixels(p: Patient) -> Finding:
    """Measure the share of pixels at which the gradient of the logits is zero, exactly.

    A transformer reads every patch whole: 0.2% and more is a finding. Where no attention was seen,
    strides and pooling may well leave out some: half.
    """
    unseen = need(p.pixel_gradients, "no gradient reaches the images")[0].abs().amax(0) == 0
    share, limit = float(unseen.float().mean()), 0.002 if p.watch.attentions else 0.5
    only_if(share > limit)
    rows, columns = int(unseen.all(1).sum()), int(unseen.all(0).sum())
    height, width = p.size
    border = f", {rows} whole rows and {columns} whole columns" if share < 1 else ""
    return Finding(
        f"{share:.1%} of the pixels of a {height}×{width} image have no influence{border}",
        "what the image shows there is lost: it is cropped, or not all tokens are handed on",
    )


def images_cropped(p: Patient) -> Note:
    """Give images up to 7 pixels larger, less than a patch: whether their last pixels count.

    Most published ViTs crop, and on images of the right size nothing is wrong: it is a note.
    That is 3 rows and columns at most. Logits that move by less than SAME count as unmoved.
    """
    applies = p.logits is not None and p.watch.attentions
    need(applies, "no attention was seen: strides may leave out a border")
    side = need(patch_side(p), "the side of a patch is not known, or is 1 pixel")
    more, last = min(7, side - 1), min(3, side - 1)
    image = nn.functional.pad(p.images[:1], (0, more, 0, more), mode="replicate")
    before = p.ask(image).logits
    if before is None:
        raise SoundError
    changed = image.clone()
    changed[..., -last:, :] += 3
    changed[..., -last:] -= 3
    after = p.ask(changed).logits
    if after is None or p.difference(after, before) > SAME:
        raise SoundError
    height, width = image.shape[2:]
    return Note(
        f"an image of {height}×{width} would be taken too, without its last rows and columns, as a "
        "strided convolution leaves out what is no whole patch",
        "who wants other sizes refused raises a ValueError where the model is given its image",
    )


class EnoughError(Exception):
    """A run is ended early."""


def tokens_entering(p: Patient, images: Tensor) -> Tensor | None:
    """Give the tokens (B, N, D) of these images that enter the first attention; None if unknown."""
    path = p.watch.attentions[0].module if p.watch.attentions else ""
    if not path:
        return None
    inputs = []

    def stop(_: nn.Module, args: tuple, kwargs: dict) -> None:
        inputs.append(first_output(args) if args else next(iter(kwargs.values()), None))
        raise EnoughError

    handle = p.model.get_submodule(path).register_forward_pre_hook(stop, with_kwargs=True)
    try:
        p.call(images, 0)
    finally:
        handle.remove()
    tokens = inputs[0] if inputs else None
    return tokens if isinstance(tokens, Tensor) and tokens.ndim == 3 else None


def patches_scrambled(p: Patient) -> Finding:
    """Find by gradients the pixels of a token: as many as a patch has must lie in one patch.

    Four tokens of an image of the size given, and of one that is a patch wider, if the model takes
    it; no threshold. Tokens that see more than a patch, as behind overlapping convolutions, are
    left alone, but for those that hold the numbers of a convolution which cuts the image into
    patches, in another order: there not one of the tokens is a patch.
    """
    if p.watch.scrambled:
        return Finding(
            "tokens hold the numbers of the patches in another order, and none of them is a patch",
            "view and reshape keep the order of the numbers, and do not turn (B, D, n) into (B, n, "
            "D): x.flatten(2).transpose(1, 2)",
            p.watch.scrambled[0],
        )
    side = need(patch_side(p), UNKNOWN_SIDE)
    applies = False
    height, width = p.size
    for wide in (width, width + side):
        generator = torch.Generator().manual_seed(5)
        leaf = torch.randn(1, p.images.shape[1], height, wide, generator=generator).to(p.images)
        images = leaf.requires_grad_() * 1
        tokens = tokens_entering(p, images)
        if tokens is None and wide != width:  # all that it lacks may be positions for so many
            tokens = tokens_of_maker(p, images, height * width // side**2)
        if tokens is None or not tokens.requires_grad or tokens.shape[1] < 3:
            continue
        length = tokens.shape[1]
        for i in sorted({1, length // 3, length // 2, length - 1}):
            mix = torch.randn(tokens.shape[2], generator=generator).to(tokens)
            (grad,) = torch.autograd.grad(
                (tokens[0, i] * mix).sum(), leaf, retain_graph=True, allow_unused=True
            )
            if grad is None:
                continue
            counts = grad[0] != 0  # (C, H, W)
            count, in_patch = int(counts.sum()), len(counts) * side**2
            if not 0.9 * in_patch <= count <= in_patch:
                continue
            applies = True
            pixels = counts.any(0).nonzero()
            rows, columns = (pixels.amax(0) - pixels.amin(0) + 1).tolist()
            if (rows, columns) != (side, side):
                return Finding(
                    f"in an image of {height}×{wide}, token {i} sees {count} numbers, as many as a "
                    f"patch of {side}×{side} has, but spread over {rows} rows, {columns} columns",
                    "a token should be one patch: reshape to (B, C, H/p, p, W/p, p), then permute, "
                    "and do not swap height and width",
                    p.location(token_maker(p)[0]),
                )
    need(applies, "no token was seen that is a single patch")
    raise SoundError


def token_maker(p: Patient) -> tuple[str, bool]:
    """Give the path of a module that gave tokens (B, n, D), and whether it was given the images."""
    makers = [path for path, call in p.calls.first.items() if call.shape and len(call.shape) == 3]
    inputs = {path: p.calls.first[path].args[:1] for path in makers}
    shapes = {path: x[0].shape for path, x in inputs.items() if x and isinstance(x[0], Tensor)}
    of_images = [path for path, shape in shapes.items() if shape == p.images.shape]
    return (*of_images, *makers, "")[0], bool(of_images)


def tokens_of_maker(p: Patient, images: Tensor, patches: int) -> Tensor | None:
    """Give the tokens that the module which makes so many of the images makes of others."""
    path, of_images = token_maker(p)
    call = p.calls.first.get(path)
    if not of_images or not call or not call.shape or not 0 <= call.shape[1] - patches <= 5:
        return None
    try:
        tokens = first_output(p.model.get_submodule(path)(images, **call.kwargs))
    except Exception:
        return None
    return tokens if isinstance(tokens, Tensor) and tokens.ndim == 3 else None


def no_positions(p: Patient) -> Finding:
    """Shuffle the patches of an image; logits that do not move have not seen it.

    In float64 rounding leaves 1e-13 of their spread, and 1e-9 counts as unmoved; a model that
    cannot do float64 is judged in float32, where rounding leaves 1e-6, by 1e-5. Positions of std
    0.02 move them by 1e-2, behind mean pooling and small layer scales by 5e-5.
    """
    side = need(patch_side(p), UNKNOWN_SIDE)
    before, images, limit = need(p.reference, UNKNOWN_SIDE), p.sample, 1e-5
    if p.reference64 is not None:
        before, images, limit = p.reference64, p.sample.double(), 1e-9
    moved = shuffled(images, side)
    if "images mixed" in p.found_names:  # alone, an image may count for nothing
        images = p.images.to(images)
        moved, before = torch.cat([moved[:1], images[1:]]), p.ask(images).logits
    after = p.ask(moved).logits
    if before is None or after is None or p.difference(after[:1], before[:1]) > limit:
        raise SoundError
    idle = "idle block" in p.found_names
    need(not idle, "blocks change nothing, and without them no order could count")
    added = next((meeting for meeting in p.watch.meetings if meeting.kind == "added"), None)
    why = "the model cannot tell where a patch stands; add positions to the tokens, a row for each"
    if added and added.rows_alike:
        why = f"all rows of {added.name} are alike; draw them: nn.init.trunc_normal_(x, std=0.02)"
    elif added:
        why = f"{added.name} is added, and what comes after makes no use of it"
    return Finding(
        f"the patches of {side}×{side} pixels in another order: logits move by "
        f"{p.difference(after[:1], before[:1]):.1g} of their spread",
        why,
        added.where if added else "",
    )


def shuffled(images: Tensor, side: int) -> Tensor:
    """Give images with their patches in another order, all moved."""
    height, width = images.shape[-2:]
    cut = images.unflatten(-1, (width // side, side)).unflatten(-3, (height // side, side))
    patches = cut.permute(0, 2, 4, 1, 3, 5).flatten(1, 2)  # (B, n, C, side, side)
    order = torch.randperm(patches.shape[1], generator=torch.Generator().manual_seed(3))
    grid = patches[:, order].unflatten(1, (height // side, width // side))
    return grid.permute(0, 3, 1, 4, 2, 5).flatten(4, 5).flatten(2, 3)
