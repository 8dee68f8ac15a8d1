"""Lesson 07: what a training came to, class by class, in numbers and in pictures."""

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..files import write_whole
from .checkpoints import read_checkpoint, write_checkpoint
from .dataset import ImageDataset
from .identity import fingerprint
from .loader import Source, classes_of
from .loop import History, answers, evaluating
from .processes import total, totals

DRAWN = 30  # classes; the matrix of more cannot be read
EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)  # where each bin of shares begins
FEW = 20  # images: how many of so few were right says nothing of others


@dataclass(frozen=True, eq=False)
class Measured:
    """How a model did on data that it did not learn from.

    A share of 90% (softmax gives it) does not mean that 9 in 10 are right: networks are often too
    sure (Guo et al. 2017, "On Calibration of Modern Neural Networks"). So it is counted.

    Args:
        loss: mean cross-entropy in nats.
        counts: (classes, classes): in row i, column j the images of class i that were taken for j.
        classes: the classes' names.
        by_share: (bins, 2): the images whose largest share lies in each bin, from one of `EDGES` to
            the next, and how many of them were right.
    """

    loss: float
    counts: Tensor
    classes: tuple[str, ...]
    by_share: Tensor = field(default_factory=lambda: torch.zeros(len(EDGES), 2).long())

    @property
    def accuracy(self) -> float:
        """The share of images whose class was named correctly."""
        return self.counts.diag().sum().item() / self.counts.sum().item()

    @property
    def majority(self) -> tuple[str, float]:
        """The largest class, and its share: the accuracy of one who always names it."""
        sizes = self.counts.sum(dim=1)
        largest = int(sizes.argmax())
        return self.classes[largest], sizes[largest].item() / sizes.sum().item()

    def rows(self) -> list[tuple[str, int, int, str]]:
        """Of each class name, images, how many were right, and what the others looked like most."""
        found = []
        for i, (name, row) in enumerate(zip(self.classes, self.counts, strict=True)):
            wrong = row.clone()
            wrong[i] = 0
            other = self.classes[int(wrong.argmax())] if wrong.any() else ""
            found.append((name, int(row.sum()), int(row[i]), other))
        return found

    def __str__(self) -> str:
        name, share = self.majority
        lines = [f'accuracy {self.accuracy:.1%}; always naming "{name}" would be {share:.1%}']
        rows = self.rows()
        if len(rows) > DRAWN:
            rows = sorted(rows, key=lambda row: row[2] / max(row[1], 1))[:5]
            lines.append("the five classes with the lowest accuracy:")
        wide = max(len(row[0]) for row in rows)
        for name, images, right, other in rows:
            taken = f", most often taken for {other}" if other else ""
            share = f"{right / images:4.0%}" if images else "none"
            lines.append(f"  {name:{wide}}  {share}  {right} of {images}{taken}")
        return "\n".join(lines)


def measure(
    model: nn.Module, data: Source, batch_size: int | None = None, amp: bool = False
) -> Measured:
    """As `evaluate`, but class by class; their names are the data's, else numbers."""
    loss, counts, by_share = (torch.zeros(()) for _ in range(3))
    with evaluating(model):
        for logits, labels in answers(model, data, batch_size, amp):
            n = logits.shape[1]
            share, named = logits.softmax(dim=1).max(dim=1)
            loss = loss + F.cross_entropy(logits, labels, reduction="sum").cpu()
            counts = counts + (labels * n + named).bincount(minlength=n * n).view(n, n).cpu()
            bins = torch.bucketize(share, torch.tensor(EDGES[1:]).to(share), right=True)
            both = [x.bincount(minlength=len(EDGES)) for x in (bins, bins[named == labels])]
            by_share = by_share + torch.stack(both, dim=1).cpu()
    counts, by_share = total(counts), total(by_share)
    loss = totals(loss.item())[0] / counts.sum().item()
    names = classes_of(data) or tuple(map(str, range(len(counts))))
    return Measured(loss, counts.long(), names, by_share.long())


def told(part: str, data: ImageDataset, measured: Measured) -> dict[str, Any]:
    """What a file of weights says of it, and of these data, the "test" or "val" part."""
    classes = [dict(images=images, right=right) for _, images, right, _ in measured.rows()]
    bins = zip(EDGES, measured.by_share.tolist(), strict=True)
    by_share = [dict(least=least, images=images, right=right) for least, (images, right) in bins]
    result = dict(part=part, accuracy=measured.accuracy, loss=measured.loss)
    return {part: fingerprint(data), "result": result | dict(classes=classes, by_share=by_share)}


def with_such_a_share(share: float, said: dict[str, Any]) -> tuple[int, int] | None:
    """How many held-out images got such a largest share, and how many of these were right.

    As `Weights.measured` says; None where that says nothing, or of fewer than `FEW` images.
    """
    bins = [b for b in said.get("result", {}).get("by_share", ()) if b["least"] <= share]
    found = (bins[-1]["images"], bins[-1]["right"]) if bins else (0, 0)
    return found if found[0] >= FEW else None


def conclude(folder: Path, part: str, data: ImageDataset, measured: Measured) -> None:
    """Write what was measured into `best.safetensors` of `fit`, as a table, and as a picture."""
    path = folder / "best.safetensors"
    tensors, info = read_checkpoint(path)
    info["measured"] |= told(part, data, measured)
    write_checkpoint(path, tensors, info)
    rows = measured.rows()
    write_table(folder / "classes.csv", ["class", "images", "right", "taken for"], rows)
    if len(rows) <= DRAWN and find_spec("matplotlib"):
        draw_confusion(folder / "confusion.png", measured)


def write_history(folder: Path, history: History) -> None:
    """Write `history.csv`, a row an epoch."""
    columns = {name: numbers for name, numbers in asdict(history).items() if numbers}
    rows = zip(range(1, len(history) + 1), *columns.values(), strict=True)
    write_table(folder / "history.csv", ["epoch", *columns], rows)


def write_table(path: Path, head: Sequence[str], rows: Any) -> None:
    """Write a CSV file."""
    text = StringIO(newline="")
    csv.writer(text).writerows([head, *rows])
    write_whole(path, text.getvalue().encode("utf-8", "surrogateescape"))


def draw_history(path: Path, history: History) -> None:
    """Draw loss and accuracy over the epochs, and mark the best epoch."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    epochs, of_val = range(1, len(history) + 1), dict(color="#E69F00", marker=".", ls="--")
    left.plot(epochs, history.train_loss, color="#0072B2", marker=".", label="training, smoothed")
    if history.val_loss:
        left.plot(epochs, history.val_loss, label="val", **of_val)
        right.plot(epochs, history.val_accuracy, label="val", **of_val)
        right.axvline(history.best, color="#000000", lw=1, ls=":", label="best epoch")
        right.legend()
    left.legend()
    left.set(xlabel="epoch", ylabel="loss")
    right.set(xlabel="epoch", ylabel="accuracy", ylim=(0, 1))
    for axis in (left.xaxis, right.xaxis):
        axis.get_major_locator().set_params(integer=True)  # an epoch is whole
    save(figure, path)


def draw_confusion(path: Path, measured: Measured) -> None:
    """Draw which class (a row) was taken for which; one whose name the font lacks as its number."""
    from matplotlib.figure import Figure
    from sklearn.metrics import ConfusionMatrixDisplay

    names = [written(name, str(i)) for i, name in enumerate(measured.classes)]
    side = 2 + 0.45 * len(names)
    figure = Figure(figsize=(side, side), layout="constrained")
    shown = ConfusionMatrixDisplay(measured.counts.numpy(), display_labels=names)
    shown.plot(ax=figure.subplots(), cmap="cividis", colorbar=False, xticks_rotation="vertical")
    shown.ax_.set(xlabel="taken for", ylabel="is")
    save(figure, path)


def written(name: str, instead: str) -> str:
    """A name as matplotlib writes it without taking it for mathematics, where its font can."""
    from matplotlib.font_manager import findfont, get_font

    font = get_font(findfont("DejaVu Sans"))  # matplotlib's own
    return name.replace("$", r"\$") if all(map(font.get_char_index, map(ord, name))) else instead


def save(figure: Any, path: Path) -> None:
    """Write a figure as PNG."""
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    write_whole(path, picture.getvalue())
