"""The doctor names the mistakes of published tutorials, or it is known why it cannot.

Each stands in `PUBLISHED` under its number in the course's list of them, with the findings by which
the doctor names it, or with the reason why nothing in a model can tell. A model that has it is an
edit of the plain one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest
import sick
import torch
from sick import ANSWER, BEGIN, CUT, ENCODE, LOOK, MIX, QKV, SICK, Block, encode, end, lines
from torch import nn

from vit_course.checks import as_published
from vit_doctor import examine


@dataclass(frozen=True)
class Published:
    number: int
    what: str
    make: Callable[[], nn.Module] | None = None  # None where it is no mistake of a model
    names: tuple[str, ...] = ()  # of the findings; () where making the model fails already
    reason: str = ""  # why nothing in a model can tell
    size: int | tuple[int, int] = sick.IMAGE


def edit(*edits: tuple[str, str], kind: str = "Plain") -> Callable[[], nn.Module]:
    """The plain model with lines of the published one."""
    return partial(sick.make, *edits, kind=kind)


def edit_mix(*statements: str) -> Callable[[], nn.Module]:
    """The plain model whose heads mix their values by these statements."""
    return edit((f"return {MIX}", lines(*statements)))


ROOT_AFTER = edit_mix(
    'energy = torch.einsum("bhqd, bhkd -> bhqk", q, k)',
    "weights = F.softmax(energy, dim=-1) / WIDTH ** (1 / 2)",
    'return torch.einsum("bhal, bhlv -> bhav", weights, v)',
)
ROOT_OF_WIDTH = edit_mix(
    'scores = torch.einsum("bhqd, bhkd -> bhqk", q, k) / WIDTH**0.5',
    "return F.softmax(scores, dim=-1) @ v",
)
SCALE_AFTER = edit_mix(
    'dots = torch.einsum("bhid,bhjd->bhij", q, k)',
    "weights = dots.softmax(dim=-1) * q.shape[-1] ** -0.5",
    'return torch.einsum("bhij,bhjd->bhid", weights, v)',
)
MASK_FILL = edit_mix(
    "scores = q @ k.mT / math.sqrt(q.shape[-1])",
    "mask = torch.ones(scores.shape[-2:], dtype=torch.bool)",
    "return scores.mask_fill(~mask, torch.finfo(torch.float32).min).softmax(-1) @ v",
)
NO_MASK = edit((LOOK, "x = x + nn.Sequential(self.norm1, self.attn)(x, mask=None)"))
ADDED = lines("residual = x", "x = self.mlp(self.norm2(x))", "x += residual", "return x")
BEHIND_RELU = edit((sick.THINK, ADDED), (sick.last[0], sick.last[1].replace("GELU", "ReLU")))
ADDED_TO_IMAGES = edit((BEGIN, lines("images += images", BEGIN)))
REUSED = edit((BEGIN, lines("self.patches = self.patches(images)", BEGIN)))
MEAN_OF_ALL = edit((ANSWER, "self.head(self.norm(x.mean(1)))"))
OPTIONS = edit(("Block(self.attention)", "Block(num_classes=10)"))
OTHER_ROWS = edit((QKV, "self.qkv(x).unflatten(-1, (HEADS, -1, 3)).permute(4, 0, 2, 1, 3)"))
BY_AREA = edit(sick.cropped, ("(IMAGE // PATCH) ** 2", "36 * 36 // PATCH**2"))
SWAPPED = edit((CUT, sick.SCRAMBLED["sides swapped"]), kind="ByHand")

LOUD = edit(end("nn.init.normal_(self.pos_embed)", "nn.init.normal_(self.cls_token)"))
MAPS_ALONE = edit(sick.idle, sick.mean)
DROPPED = edit(end("self.last = Attention()"), (f"return {ANSWER}", sick.RETURNED))
DROP = edit(("nn.GELU()", "nn.GELU(), nn.Drop(0.0)"))
OTHER_RATIO = edit(encode("x[:, : round(17 * (1 - 0.1))] if self.training else x"))
CUT_OFF = edit(encode("x[:, : int(17 * (1 - 0.75))] if self.training else x"))
NORM_OF_LOGITS = edit(
    (f"return {ANSWER}", f"return self.over({ANSWER})"), end("self.over = nn.BatchNorm1d(CLASSES)")
)
FOR_CUDA = edit((f"x = {ENCODE}", sick.for_cuda))
OR_ROOT = edit((MIX, "(q @ k.mT * (None or q.shape[-1] ** -0.5)).softmax(-1) @ v"))

RAISED = ("forward fails",)
AFTER = ("scale after softmax", "scale missing")
OVERWRITTEN = ("no gradient", "norm missing", "norm unused")
PUBLISHED = (
    Published(1, "softmax, then divided by √D", ROOT_AFTER, AFTER),
    Published(2, "√D for √d", ROOT_OF_WIDTH, ("scale width",)),
    Published(3, "softmax, then × d^-0.5", SCALE_AFTER, AFTER),
    Published(4, "mask_fill", MASK_FILL, RAISED),
    Published(5, "the mask can never arrive", NO_MASK, RAISED),
    Published(6, "x += residual behind a ReLU", BEHIND_RELU, ("activation last", "backward fails")),
    Published(6, "x += residual on the caller's images", ADDED_TO_IMAGES, ("input changed",)),
    Published(7, "positions and cls of std 1", LOUD, ("positions large",)),
    Published(8, "names reused", REUSED, RAISED),
    Published(9, "the mean with cls, then the norm", MEAN_OF_ALL, reason="a choice"),
    Published(10, "a larger image is cropped", sick.Cropped, ("images cropped",)),
    Published(11, "**options passed down", OPTIONS),
    Published(12, "a Linear loaded as a convolution", reason="no weights say it"),
    Published(13, "a missing *", lambda: nn.Sequential([Block(), Block()])),  # type: ignore[arg-type]
    Published(14, "another order of qkv", OTHER_ROWS, reason="no weights say it"),
    Published(15, "only the attention is kept", MAPS_ALONE, ("idle block", "no gradient")),
    Published(16, "the norm is overwritten", edit(sick.thrown_away), OVERWRITTEN),
    Published(17, "logits called as a function", SICK["forward fails"][0], RAISED),
    Published(18, "patches counted by area", BY_AREA, RAISED, size=36),
    Published(19, "the grid's sides swapped", SWAPPED, ("patches scrambled",), size=(32, 64)),
    Published(20, "attention returned after dropout", DROPPED, ("returned attention",)),
    Published(21, "a print in forward", SICK["prints"][0], ("prints",)),
    Published(22, "nn.Drop", DROP),
    Published(23, "the mask ratio is not passed on", OTHER_RATIO, reason="nothing says it"),
    Published(24, "int(n * (1 - ratio))", CUT_OFF, reason="nothing says it"),
    Published(25, "batch norm over masked tokens", SICK["training fails"][0], ("training fails",)),
    Published(26, "batch norm and a batch of 1", NORM_OF_LOGITS, reason="sound from 2 images on"),
    Published(27, "autocast for cuda", FOR_CUDA, ("device fixed",)),
    Published(28, "qk_scale or d**-0.5", OR_ROOT, reason="the scale is right"),
    Published(29, "one position for all tokens", sick.OnePosition, ("no positions",)),
    Published(30, "masked tokens all alike", reason="the head reads cls"),
    Published(31, "FLOPs of two products alone", reason="a count beside the model"),
)

FOUND = [each for each in PUBLISHED if each.names]
SILENT = [each for each in PUBLISHED if each.reason and each.make]
UNMADE = [each for each in PUBLISHED if each.make and not each.names and not each.reason]


def named(each: Published) -> list[str]:
    torch.manual_seed(0)
    report = examine(each.make(), each.size)
    return [*report.names, *(note.name for note in report.notes)]


def title(each: Published) -> str:
    return f"{each.number} {each.what}"


def test_all_31_are_there_and_at_least_18_are_named():
    assert sorted({each.number for each in PUBLISHED}) == list(range(1, 32))
    assert len({each.number for each in FOUND + UNMADE}) >= 20
    assert len({each.number for each in FOUND}) >= 18
    for each in PUBLISHED:
        assert bool(each.reason) != bool(each.names or each in UNMADE), title(each)


@pytest.mark.slow
@pytest.mark.parametrize("each", FOUND, ids=title)
def test_it_is_named(each):
    assert set(named(each)) == set(each.names)


@pytest.mark.parametrize("each", UNMADE, ids=title)
def test_it_cannot_even_be_made(each):
    with pytest.raises((AttributeError, TypeError)):
        each.make()


@pytest.mark.parametrize("each", SILENT, ids=title)
def test_what_is_no_fault_of_the_model_is_no_finding(each):
    assert named(each) == []


def test_a_head_that_a_batch_of_one_cannot_train_is_told_of():
    skipped = {skip.name: skip.reason for skip in examine(NORM_OF_LOGITS(), 32).skipped}
    assert "one image cannot train it, two can" in skipped["training fails"]


def test_a_as_printed_shows_all_but_the_mask_that_nobody_gives():
    model = as_published.vit(32, 8, num_classes=10, embed_dim=48, depth=2, num_heads=4)
    report = examine(model, 32)
    assert report.names == ["positions large", "scale after softmax", "scale missing"]
    assert [note.name for note in report.notes] == ["images cropped"]
    with pytest.raises(AttributeError, match="mask_fill"):
        as_published.Attention(48, 4)(torch.zeros(1, 17, 48), torch.ones(17, 17) > 0)
