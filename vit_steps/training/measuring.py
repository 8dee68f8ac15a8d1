"""Lesson 07: what a training came to, class by class, in numbers, tables and a picture."""

import csv
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..files import write_whole
from ..inputs import check_labels
from .checking import logits_of
from .checkpoints import read_checkpoint, write_checkpoint
from .dataset import Source, batches, checked, classes_of
from .fitting import History
from .loop import evaluating

DRAWN = 30  # classes; the confusion matrix of more cannot be read
EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)  # where each bin of shares begins
FEW = 20  # images: how many of so few were right says nothing of others


@dataclass(frozen=True, eq=False)
class Measured:
    """How a model did on n images that it did not learn from."""

    loss: float  # mean cross-entropy in nats
    labels: Tensor  # (n,), the number of each image's class
    shares: Tensor  # (n, classes), what softmax made of the logits
    classes: tuple[str, ...]  # their names

    @property
    def accuracy(self) -> float:
        """The share of images that were classified correctly."""
        return self.counts.diag().sum().item() / len(self.labels)

    @property
    def counts(self) -> Tensor:
        """The confusion matrix (classes, classes): images of class i that were taken for j."""
        n = len(self.classes)
        pairs = self.labels * n + self.shares.argmax(dim=1)
        return pairs.bincount(minlength=n * n).view(n, n)

    def __str__(self) -> str:
        from sklearn.metrics import classification_report

        options: Any = dict(labels=range(len(self.classes)), target_names=self.classes)
        options |= dict(y_true=self.labels, y_pred=self.shares.argmax(dim=1), zero_division=0)
        report = classification_report(**options)
        sizes = self.counts.sum(dim=1)
        baseline = f"{sizes.max() / len(self.labels):.1%}"
        always = f'always answering "{self.classes[sizes.argmax()]}" would be {baseline}'
        return f"accuracy {self.accuracy:.1%}; {always}\n{report}"


def measure(model: nn.Module, data: Source, batch_size: int | None = None) -> Measured:
    """Measure as `evaluate` does, image by image; classes are named by the data, or numbered."""
    device, all_logits, all_labels = next(model.parameters()).device, [], []
    with evaluating(model):
        for images, labels in checked(batches(data, batch_size, usual=256)):
            all_logits.append(logits_of(model, images.to(device), labels).float().cpu())
            all_labels.append(labels.cpu())
    logits, labels = torch.cat(all_logits), torch.cat(all_labels)
    check_labels(labels, *logits.shape)
    names = classes_of(data) or tuple(map(str, range(logits.shape[1])))
    return Measured(F.cross_entropy(logits, labels).item(), labels, logits.softmax(dim=1), names)


def summary(part: str, measured: Measured) -> dict[str, Any]:
    """Make what a weights' file keeps of a part of the data, "test" or "val", as JSON.

    Networks are often too sure (Guo et al. 2017): of the answers with a share of 90% fewer than 9
    in 10 are right. So "by_share" counts, from one of `EDGES` to the next, the images whose largest
    share lies there, and how many of them were right.
    """
    largest, predicted = measured.shares.max(dim=1)
    bins = torch.bucketize(largest, torch.tensor(EDGES[1:]), right=True)
    counts = [x.bincount(minlength=len(EDGES)) for x in (bins, bins[predicted == measured.labels])]
    rows = zip(EDGES, *torch.stack(counts).tolist(), strict=True)
    by_share = [dict(least=least, images=images, right=right) for least, images, right in rows]
    rows = zip(measured.counts.sum(dim=1).tolist(), measured.counts.diag().tolist(), strict=True)
    classes = [dict(images=images, right=right) for images, right in rows]
    result = dict(part=part, accuracy=measured.accuracy, loss=measured.loss, classes=classes)
    return {part: f"{len(measured.labels):,} images", "result": result | dict(by_share=by_share)}


def right_with_share(share: float, summary: dict[str, Any]) -> tuple[int, int] | None:
    """Look up how many held-out images got such a largest share, and how many were right.

    None where the file's summary says nothing of it, or of fewer than `FEW` images.
    """
    by_share = summary.get("result", {}).get("by_share", ())
    pairs = [(row["images"], row["right"]) for row in by_share if row["least"] <= share]
    return pairs[-1] if pairs and pairs[-1][0] >= FEW else None


def conclude(folder: Path, part: str, measured: Measured) -> None:
    """Write what was measured into `best.safetensors` of `fit`, as a table, and as a picture."""
    tensors, metadata = read_checkpoint(folder / "best.safetensors")
    metadata["measured"] |= summary(part, measured)
    write_checkpoint(folder / "best.safetensors", tensors, metadata)
    sizes, right = measured.counts.sum(dim=1).tolist(), measured.counts.diag().tolist()
    rows = zip(measured.classes, sizes, right, strict=True)
    write_table(folder / "classes.csv", ["class", "images", "right"], rows)
    if len(sizes) <= DRAWN:
        _draw_confusion(folder / "confusion.png", measured)


def _draw_confusion(path: Path, measured: Measured) -> None:
    """Draw `Measured.counts`; names as they are, and letters that the font lacks as boxes."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from sklearn.metrics import ConfusionMatrixDisplay

    names = [name.encode(errors="replace").decode() for name in measured.classes]
    display = ConfusionMatrixDisplay(measured.counts.numpy(), display_labels=names)
    picture, side = BytesIO(), 2 + 0.45 * len(names)
    with rc_context({"text.parse_math": False}), warnings.catch_warnings(action="ignore"):
        figure = Figure(figsize=(side, side), dpi=120)
        axes = figure.subplots()
        display.plot(ax=axes, cmap="cividis", colorbar=False, xticks_rotation="vertical")
        axes.set(xlabel="taken for", ylabel="is")
        figure.savefig(picture, format="png", bbox_inches="tight")
    write_whole(path, picture.getvalue())


def write_history(folder: Path, history: History) -> None:
    """Write `history.csv`, a row an epoch."""
    columns = {name: numbers for name, numbers in asdict(history).items() if numbers}
    rows = zip(range(1, len(history) + 1), *columns.values(), strict=True)
    write_table(folder / "history.csv", ["epoch", *columns], rows)


def write_table(path: Path, head: Sequence[str], rows: Iterable[Any]) -> None:
    """Write a CSV file."""
    text = StringIO(newline="")
    csv.writer(text).writerows([head, *rows])
    write_whole(path, text.getvalue().encode("utf-8", "surrogateescape"))
