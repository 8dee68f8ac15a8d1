"""Which pixels count, and whether it counts where they stand."""

import torch
from torch import Tensor

from ..patient import SAME, Patient
from ..report import Finding, Skipped


def patch_side(p: Patient) -> int | None:
    """The side of the square patches, by the number of tokens in the first attention.

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


def unseen_pixels(p: Patient) -> Finding | Skipped | None:
    """The share of pixels at which the gradient of the logits is zero, exactly.

    A transformer reads every patch whole: 0.2% and more is a finding. Where no attention was seen,
    strides and pooling may well leave out some: half.
    """
    if p.pixels is None:
        return Skipped("no gradient reaches the images")
    unseen = p.pixels[0].abs().amax(0) == 0
    share, limit = float(unseen.float().mean()), 0.002 if p.watch.attentions else 0.5
    if not share > limit:
        return None
    rows, columns = int(unseen.all(1).sum()), int(unseen.all(0).sum())
    height, width = p.size
    border = f", {rows} whole rows and {columns} whole columns" if share < 1 else ""
    return Finding(
        "unseen pixels",
        f"{share:.1%} of the pixels of a {height}×{width} image have no influence{border}",
        "what the image shows there is lost: it is cropped, or parts of the model are not used",
    )


def images_cropped(p: Patient) -> Finding | Skipped | None:
    """Images up to 7 pixels larger, less than a patch: if they are accepted, their last rows and
    columns, 3 at most, must count.

    Logits that move by less than SAME count as unmoved. A model that also takes a whole patch more
    fits its positions to the image, and is left alone.
    """
    if p.logits is None or not p.watch.attentions:
        return Skipped("no attention was seen: strides may leave out a border")
    side = patch_side(p)
    if side is None or side == 1:
        return Skipped("the side of a patch is not known, or is 1 pixel")
    more, last = min(7, side - 1), min(3, side - 1)
    height, width = p.size[0] + more, p.size[1] + more
    image = torch.nn.functional.pad(p.images[:1], (0, more, 0, more), mode="replicate")
    first = p.ask(image)
    if first.logits is None:
        return None
    other = image.clone()
    other[..., -last:, :] += 3
    other[..., -last:] -= 3
    second = p.ask(other)
    moved = p.differs(second.logits, first.logits) if second.logits is not None else 1.0
    if moved > SAME:
        return None
    larger = torch.nn.functional.pad(p.images[:1], (0, side, 0, side))
    if p.ask(larger).logits is not None:
        return Skipped("the model takes images of other sizes, and cuts off what is left over")
    return Finding(
        "images cropped",
        f"an image of {height}×{width} is accepted, and its last {last} rows and columns have no "
        "influence",
        "a wrong size is cropped in silence; raise a ValueError where the model is given its image",
    )


def no_positions(p: Patient) -> Finding | Skipped | None:
    """Shuffles the patches of an image; logits that do not move have not seen it.

    In float64 rounding leaves 1e-13 of their spread, and 1e-9 counts as unmoved; a model that
    cannot do float64 is judged in float32, where rounding leaves 1e-6, by 1e-5. Positions of std
    0.02 move them by 1e-2, behind mean pooling and small layer scales by 5e-5.
    """
    side = patch_side(p)
    if p.given is None or not p.watch.attentions or side is None:
        return Skipped("no attention over patches of a known side was seen")
    there, limit = (p.given, 1e-5) if p.double is None else (p.double, 1e-9)
    images = p.some if p.double is None else p.some.double()
    moved = shuffled(images, side)
    if "images mixed" in p.found:  # alone, an image may count for nothing
        images = p.images.to(images)
        moved, there = torch.cat([moved[:1], images[1:]]), p.ask(images).logits
    moved = p.ask(moved).logits
    if there is None or moved is None or p.differs(moved[:1], there[:1]) > limit:
        return None
    if "idle block" in p.found:
        return Skipped("blocks change nothing, and without them no order could count")
    added = next((m for m in p.watch.meetings if m.how == "added"), None)
    why = "the model cannot tell where a patch stands; add positions to the tokens, a row for each"
    if added and added.alike:
        why = f"all rows of {added.name} are alike; draw them: nn.init.trunc_normal_(x, std=0.02)"
    elif added:
        why = f"{added.name} is added, and what comes after makes no use of it"
    return Finding(
        "no positions",
        f"the patches of {side}×{side} pixels in another order: logits move by "
        f"{p.differs(moved[:1], there[:1]):.1g} of their spread",
        why,
        added.where if added else "",
    )


def shuffled(images: Tensor, side: int) -> Tensor:
    """Images with their patches in another order, all moved."""
    height, width = images.shape[-2:]
    cut = images.unflatten(-1, (width // side, side)).unflatten(-3, (height // side, side))
    patches = cut.permute(0, 2, 4, 1, 3, 5).flatten(1, 2)  # (B, n, C, side, side)
    order = torch.randperm(patches.shape[1], generator=torch.Generator().manual_seed(3))
    grid = patches[:, order].unflatten(1, (height // side, width // side))
    return grid.permute(0, 3, 1, 4, 2, 5).flatten(4, 5).flatten(2, 3)


PIXELS = (unseen_pixels, images_cropped)
LAST = (no_positions,)  # in float64, where the model can do it
