"""Lessons 07 and 08: a way downhill, runs and a live curve, and how far apart luck puts runs."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from torch import Tensor, nn

from vit_steps.files import write_whole

from .colours import CLS, FAINT, INK, PAPER, PATCH, QUERY, VALUE, WEIGHTS
from .figures import COLOURS, STYLES, as_png, charts, dots, new_axes, rounded, sketch


def downhill(paths: Mapping[float, Sequence[float]]) -> None:
    """Draw the valley (w - 3)², and in a panel for each path the points that a weight visits.

    Args:
        paths: by its learning rate, where the weight was, step by step.
    """
    axes = charts(1, len(paths), 9, 2.9, sharey=True)[0]
    valley = torch.linspace(-6.5, 12.5, 200)
    for ax, (rate, path), colour in zip(axes, paths.items(), COLOURS, strict=False):
        ax.plot(valley, (valley - 3) ** 2, color=FAINT, zorder=1)
        heights = [(w - 3) ** 2 for w in path]
        ax.plot(path, heights, "-o", color=colour, markersize=5, linewidth=1)
        ax.annotate("start", (path[0], heights[0]), (-6, 6), textcoords="offset points", ha="right")
        ax.set(title=f"learning rate {rate}", xlabel="w", ylim=(-4, 88))
    axes[0].set_ylabel("loss")


def backward_pass() -> None:
    """Draw a chain of two weights, loss = (b·a·x - goal)²: numbers forward, and slopes backward."""
    x, a, b, goal = 2.0, 3.0, 0.5, 5.0
    h, y = a * x, b * a * x
    slope_y = 2 * (y - goal)
    slope_h = slope_y * b
    ax = sketch(9, 2.6, xlim=(-0.5, 12.7), ylim=(-2.0, 1.8))
    stages = (("x", x, None), ("h = a · x", h, slope_h), ("y = b · h", y, slope_y))
    stages += ((f"loss = (y − {goal:g})²", (y - goal) ** 2, 1.0),)
    for i, (name, value, slope) in enumerate(stages):
        middle = 3.7 * i + 0.5
        rounded(ax, middle - 0.85, -0.4, 1.7, 0.8, 0.1, facecolor=PAPER, edgecolor=INK)
        ax.text(middle, 0, name, ha="center", va="center", size=9)
        ax.text(middle, 0.6, f"{value:g}", ha="center", color=PATCH, weight="bold", size=11)
        if slope is not None:
            words = f"{slope:g}".replace("-", "−")
            ax.text(middle, -0.85, words, ha="center", color=QUERY, weight="bold", size=11)
    look = dict(arrowstyle="-|>", lw=1.3)
    last = f"× 2 (y − {goal:g}) = {slope_y:g}".replace("-", "−")
    for i, factor in enumerate(("", f"× b = {b:g}", last)):
        left, right = 3.7 * i + 1.4, 3.7 * (i + 1) - 0.4
        ax.annotate("", (right, 0.15), (left, 0.15), arrowprops=look | dict(color=PATCH))
        if factor:
            ax.annotate("", (left, -0.2), (right, -0.2), arrowprops=look | dict(color=QUERY))
            ax.text(left + 0.95, -0.55, factor, ha="center", color=QUERY, size=9)
    weights = (("a", a, slope_h, "x", x), ("b", b, slope_y, "h", h))
    for i, (name, weight, slope, times, value) in enumerate(weights):
        middle = 3.7 * i + 2.35
        ax.text(middle, 0.35, f"{name} = {weight:g}", ha="center", color=PATCH, size=10)
        words = f"gradient of {name}:\n{slope:g} × {times} = {slope * value:g}".replace("-", "−")
        ax.text(middle, -1.3, words, ha="center", color=QUERY, size=10)
    ax.text(-0.4, 1.3, "forward: the numbers", color=PATCH, size=9)
    ax.text(-0.4, -1.9, "backward: how fast the loss grows with each", color=QUERY, size=9)


def seed_runs(runs: Mapping[str, Sequence[Sequence[float]]], level: float, word: str) -> None:
    """Draw a panel for each variant, with the loss of each of its runs, on one scale.

    Args:
        runs: a name, and of each seed the losses step by step.
        level: a loss at which a dotted line is drawn, and what it means.
    """
    columns = min(len(runs), 3 if len(runs) <= 6 else 4)
    rows = -(-len(runs) // columns)
    axes = charts(rows, columns, 9, 2.1 * rows, sharex=True, sharey=True)
    for ax in axes.flat[len(runs) :]:
        ax.axis("off")
    for ax, (name, losses) in zip(axes.flat, runs.items(), strict=False):
        ax.axhline(level, color=FAINT, linestyle=":", linewidth=1)
        for run, colour, (dash, _) in zip(losses, COLOURS, STYLES, strict=False):
            ax.plot(run, linestyle=dash, color=colour, linewidth=1.5)
        ax.set_title(name)
    axes[0, 0].set_ylim(0, 1.05 * max(max(run) for losses in runs.values() for run in losses))
    axes[0, 0].annotate(word, (0, level), (2, 3), textcoords="offset points", color=INK, size=8)
    axes[-1, 0].set(xlabel="step", ylabel="loss")


def valley() -> None:
    """Draw 40 steps of optimizers through a narrow valley of two weights, seen from above.

    The loss grows 50 times as fast across the valley as along it; its lowest place is a cross. In
    the last panel the valley lies at 45 degrees, and AdamW's advantage is gone, since no weight
    alone goes along it.
    """

    def loss_at(x: Tensor, y: Tensor, turned: bool) -> Tensor:
        along, across = ((x + y) / 2**0.5, (y - x) / 2**0.5) if turned else (x, y)
        return 0.5 * (along**2 + 50 * across**2)

    def way(make: Callable[..., torch.optim.Optimizer], lr: float, turned: bool) -> list:
        start = torch.tensor([-4.0, 1.0])
        turn = torch.tensor([[1.0, -1.0], [1.0, 1.0]]) / 2**0.5
        w = (turn @ start if turned else start).requires_grad_()
        optimizer, path = make([w], lr=lr), [w.tolist()]
        for _ in range(40):
            optimizer.zero_grad()
            loss_at(w[0], w[1], turned).backward()
            optimizer.step()
            path.append(w.tolist())
        return path

    axes = charts(1, 4, 9.6, 2.7, sharey=True)[0]
    x, y = torch.meshgrid(torch.linspace(-4.6, 1.6, 120), torch.linspace(-4, 2, 120), indexing="xy")
    sgd, adamw = torch.optim.SGD, torch.optim.AdamW
    kinds = (
        ("SGD", sgd, 0.035, False),
        ("with momentum", partial(sgd, momentum=0.75), 0.035, False),
        ("AdamW", adamw, 0.3, False),
        ("AdamW, valley turned", adamw, 0.3, True),
    )
    for ax, (name, make, lr, turned), colour in zip(axes, kinds, COLOURS, strict=False):
        levels = [0.5, 2, 8, 30, 80, 200]
        ax.contour(x, y, loss_at(x, y, turned), levels=levels, colors=FAINT, linewidths=0.8)
        path = way(make, lr, turned)
        ax.plot(*zip(*path, strict=True), "-o", color=colour, markersize=3, linewidth=1)
        ax.plot(0, 0, "+", color=INK, markersize=9)
        ax.annotate("start", path[0], (0, 7), textcoords="offset points", ha="center", size=8)
        ax.set(xlabel="one weight", aspect="equal", xticks=[], yticks=[])
        ax.set_title(f"{name}, rate {lr}", size=9)
    axes[0].set_ylabel("the other weight")


def live_training(drawing: Tensor, epochs: int) -> Callable[..., Any]:
    """Begin a training's figure; what this gives draws it anew, in the same place, at each call.

    Args:
        drawing: (1, H, W), from -1 to 1, whose answer is followed.
        epochs: how many there will be.

    Returns:
        A function of the losses of all steps so far, the latest loss on val and accuracy, from 0
        to 1, and the shares of the drawing (classes,), to be called once after each epoch; before
        the first too, with no losses. It gives the figure.
    """
    import matplotlib.pyplot as plt
    from IPython import get_ipython
    from IPython.display import display

    figure = plt.figure(figsize=(9, 4.4), layout="constrained")
    plt.close(figure)  # else a notebook would show it a second time, at the end of the cell
    parts: Any = figure.subfigures(2, 1, height_ratios=(1.25, 1))
    above, below = parts
    left, right = above.subplots(1, 2)
    left.set(title="loss", xlabel="epoch", xlim=(0, epochs + 0.1), ylim=(0, 2.5))
    right.set(title="validation accuracy, in %", xlabel="epoch", xlim=(0, epochs + 0.3))
    right.set_ylim(0, 100)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    picture, *bars = below.subplots(1, epochs + 2, width_ratios=[2.2, *[1] * (epochs + 1)])
    picture.imshow(drawing[0].cpu().numpy(), cmap="gray", vmin=-1, vmax=1)
    picture.set(xticks=[], yticks=[], xlabel="the drawing")
    for ax in bars:
        ax.axis("off")
    accuracies: list[float] = []
    val_losses: list[float] = []
    handle = display(figure, display_id=True) if get_ipython() is not None else None

    def draw(losses: Sequence[float], loss: float, accuracy: float, shares: Tensor) -> Any:
        accuracies.append(100 * accuracy)
        val_losses.append(loss)
        done = len(accuracies) - 1  # epochs
        if done:
            epoch = len(losses) // done  # in steps
            step = max(epoch // 20, 1)  # so many losses make a point
            means = _means(losses, step)
            for artist in [*left.lines, *right.lines, *right.texts]:
                artist.remove()
            x = [(i + 0.5) * step / epoch for i in range(len(means))]
            left.plot(x, means, color=PATCH, linewidth=1.5, label="training")
            left.plot(val_losses, "o", color=QUERY, markersize=5, label="val")
            left.legend(frameon=False, loc="lower left")
            right.plot(accuracies, "-o", color=PATCH, markersize=5)
            note = dict(xytext=(0, 8), textcoords="offset points", ha="center", color=INK)
            right.annotate(f"{accuracies[-1]:.0f}", (done, accuracies[-1]), **note)
        ax = bars[done]
        ax.axis("on")
        answer_bars(ax, shares, numbers=False)
        ax.set_xlabel(f"epoch {done}" if done else "before", size=8)
        ax.tick_params(labelsize=6.5 if done else 8, labelleft=not done)
        if handle is not None:
            handle.update(figure)
        return figure

    return draw


def drawing_and_answer(image: Tensor, shares: Tensor, attends: Tensor | None = None) -> Any:
    """Draw a small drawing, a model's answer as bars, and what cls attends to, as a figure.

    Args:
        image: (1, H, W), from -1, paper, to 1, ink.
        shares: (classes,), which sum to 1.
        attends: (n,), cls's attention weight for each patch of a square grid; None for no map.
    """
    from matplotlib.figure import Figure

    widths = (1.25, 1.1) if attends is None else (1.25, 1.1, 0.7)
    figure = Figure(figsize=(2.5 * sum(widths), 2.9), layout="constrained")
    left, middle, *maps = figure.subplots(1, len(widths), width_ratios=widths)
    left.imshow(image[0].cpu().numpy(), cmap="gray", vmin=-1, vmax=1)
    answer_bars(middle, shares)
    if attends is not None:
        side = round(len(attends) ** 0.5)
        patch = image.shape[-1] / side
        for number in range(1, side):
            for line in (left.axhline, left.axvline):
                line(number * patch - 0.5, color="#8c8c8c", linewidth=0.6)
        maps[0].imshow(attends.cpu().view(side, side).numpy(), cmap=WEIGHTS, vmin=0)
        maps[0].set_xlabel("where cls attends", size=8)
    for ax in (left, *maps):
        ax.set(xticks=[], yticks=[])
    return figure


def answer_bars(ax: Any, shares: Tensor, numbers: bool = True) -> None:
    """Draw a bar for each class (classes,), the longest in colour; above them what it is."""
    values, best = shares.tolist(), int(shares.argmax())
    bars = ax.barh(range(len(values)), values, color=FAINT)
    bars[best].set_facecolor(CLS)
    for i, value in enumerate(values if numbers else ()):
        ax.text(value + 0.03, i, f"{value:.0%}" if value >= 0.005 else "", va="center", size=8)
    ax.set(xlim=(0, 1.2 if numbers else 1), xticks=[], yticks=range(len(values)), frame_on=False)
    ax.tick_params(length=0, labelsize=9)
    ax.invert_yaxis()
    words = f"{best}, with {values[best]:.0%}" if numbers else f"{best}: {values[best]:.0%}"
    ax.set_title(words, size=11 if numbers else 8, loc="left")


def keepsake(
    path: str | Path, model: nn.Module, drawing: Tensor, losses: Sequence[float], name: str = ""
) -> Any:
    """Draw a learner's model as one picture to keep, and write it as a PNG; it gives the figure.

    Args:
        path: where to write it.
        model: in evaluation mode; its answer is drawn, and its weights are counted.
        drawing: (1, H, W), from -1 to 1.
        losses: one a step.
        name: of the learner, if it shall stand there.
    """
    from matplotlib.figure import Figure

    from ..canvases import shares

    count = sum(weights.numel() for weights in model.parameters())
    words = f"{count:,} weights, {len(losses):,} steps"
    if name:
        words += f" · {name}"
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.1, 0.9, 1.2))
    left.imshow(drawing[0].cpu().numpy(), cmap="gray", vmin=-1, vmax=1)
    left.set(xticks=[], yticks=[])
    answer_bars(middle, shares(model, drawing))
    step = max(len(losses) // 160, 1)
    means = _means(losses, step)
    right.plot([i * step for i in range(len(means))], means, color=PATCH)
    right.set(xlabel="step", ylim=(0, None))
    right.set_title("loss", size=11, loc="left")
    right.spines[["top", "right"]].set_visible(False)
    figure.suptitle("My Vision Transformer, built and trained by hand", size=14)
    figure.supxlabel(words, size=10)
    write_whole(Path(path), as_png(figure, dpi=150))
    return figure


def _means(losses: Sequence[float], count: int) -> list[float]:
    """Average the losses, so many to a point; what is left over at the end gives none."""
    return torch.tensor(losses[: len(losses) // count * count]).view(-1, count).mean(dim=1).tolist()


def all_gaps(first: Sequence[float], second: Sequence[float]) -> None:
    """Draw the gaps of all ways to deal two lists of numbers, and mark the one that was seen."""
    bag, seen = [*first, *second], abs(mean(first) - mean(second))
    ways = combinations(range(len(bag)), len(first))
    total, rest = sum(bag), len(second)
    sums = [sum(bag[i] for i in chosen) for chosen in ways]
    gaps = [abs(part / len(first) - (total - part) / rest) for part in sums]
    ax = new_axes(7, 2.8)
    large = [gap for gap in gaps if gap >= seen - 1e-9]
    smaller = [gap for gap in gaps if gap < seen - 1e-9]
    ax.hist([smaller, large], bins=40, stacked=True, color=[PATCH, QUERY])
    words = f"seen: {seen:.1f}; {len(large):,} of {len(gaps):,} are as large"
    ax.text(0.98, 0.6, words, color=QUERY, ha="right", transform=ax.transAxes)
    ax.set(xlabel="gap in points", ylabel="ways")


def compared(runs: Mapping[str, Sequence[float]], luck: Mapping[str, float], limit: float) -> None:
    """Draw the runs of variants, and whether luck alone could put them so far from the first.

    Rings where it could; full dots where it could not, in one colour for less and one for more.

    Args:
        runs: a name, and the results of its runs; the first is what the others are held against.
        luck: for each of the others, the share of the ways with as large a gap.
        limit: from here on it could be luck.
    """
    first = next(iter(runs))
    level = mean(runs[first])
    colours = {name: VALUE if mean(values) > level else QUERY for name, values in runs.items()}
    notes = {name: f"share {share:.4f}" for name, share in luck.items()}
    rings = [name for name, share in luck.items() if share >= limit]
    dots(runs, colours=colours | {first: INK}, hollow=rings, notes=notes)
