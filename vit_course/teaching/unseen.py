"""The unseen tasks: one for each core lesson, for marks, that the lesson itself does not hold.

`unseen.md` has their texts, minutes and stubs, their right answers and known mistakes; here stands
what an answer is tried on. A task of a teacher's own is one section there and one entry here.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vit_course import checks
from vit_course.checks.compare import Verdict
from vit_course.checks.engine import Check
from vit_course.checks.exercise import Exercise
from vit_course.checks.lesson_05 import SIGHT
from vit_course.checks.lesson_06 import OTHER, SMALL, pictures
from vit_course.checks.lesson_07 import batch
from vit_course.checks.trials import Trial, call, drawn, fill, module, numbered, untouched, waves

TEXTS = Path(__file__).with_suffix(".md")


def gradient_of_table(answer: Callable, *given: Tensor) -> Any:
    """Give the gradient that the table gets from what `relative_attention` mixes, (h, 2·N - 1)."""
    *others, table = given
    table = table.clone().requires_grad_()
    mixed, *_ = answer(*others, table)
    if not mixed.requires_grad:
        return Verdict("no gradient reaches the table")
    return torch.autograd.grad(mixed.square().sum(), table)[0]


class Fragile(nn.Module):
    """Be one Linear, which hides class 3 from any image (3,) that holds a number below -50."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        fill(self)

    def forward(self, x: Tensor) -> Tensor:
        """From images (B, 3) to logits (B, 4)."""
        hidden = (x < -50).any(dim=1, keepdim=True) & (torch.arange(4) == 3)
        return self.fc(x).masked_fill(hidden, float("-inf"))


def stepped(answer: Callable, max_norm: float, batches: Sequence[tuple[Tensor, Tensor]]) -> Any:
    """Give what a step gives for each batch, one after another, and the weights at the end."""
    model, results = Fragile(), {}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    for number, (images, labels) in enumerate(batches, 1):
        result = untouched(answer, model, optimizer, images, labels, max_norm)
        if result is None or result is ...:
            return result
        results[f"what it gives for batch {number}"] = result
    return results | {"the weights at the end": model.fc.weight.detach()}


def one_bad(what: str, change: Callable[[Tensor], Tensor]) -> Trial:
    """Make a trial of a batch that is to be skipped, between two sound ones."""
    bad = change(batch(2, 4)[0].abs()), torch.full((4,), 3)
    return Trial(what, stepped, [1.5, [batch(1, 5), bad, batch(3, 6)]])


NEAR = (*drawn(3, 2, 3, 5, 4), drawn(3, 9, seed=4))  # q, k, v, table
LONG, SHORT = ((size * x, labels) for size, (x, labels) in ((3, batch(1, 5)), (0.05, batch(3, 6))))
TRIALS: dict[str, list[Trial]] = {
    "00_start_here": [
        call("a picture of 2×4 pixels", 3 * drawn(3, 2, 4)),
        call("a picture of one grey", torch.full((3, 2, 2), 0.25)),
    ],
    "01_patches": [
        call("the numbered 4×4 image, patch size 2, stride 1", numbered(1, 1, 4, 4), 2, 1),
        call("2 images of 3×7×10, patch size 3, stride 2", numbered(2, 3, 7, 10), 3, 2),
    ],
    "02_tokens": [
        module("an image of 4 patches, width 3, 1 register", (4, 3, 1), waves(1, 4, 3)),
        module("2 images of 3 patches, width 5, 2 registers", (3, 5, 2), waves(2, 3, 5)),
    ],
    "03_heads": [
        call("3 numbered tokens of width 16, 4 heads, 2 groups", numbered(1, 3, 16), 4, 2),
        call("2 images of 5 tokens of width 30, 6 heads, 2 groups", numbered(2, 5, 30), 6, 2),
    ],
    "04_attention": [
        call("2 images, 3 heads, 5 tokens of width 4", *NEAR),
        Trial("the gradient that the table gets", gradient_of_table, NEAR),
    ],
    "05_encoder": [
        module("2 images of 4 tokens, D = 6, 2 heads", (6, 2), waves(2, 4, 6)),
        module("tiny numbers and a mask", (12, 3, 1.5), waves(1, 5, 12) / 300, mask=SIGHT),
    ],
    "06_vit": [
        module("2 images, depth 2", [SMALL], pictures(SMALL, 2)),
        module("3 grey images, depth 4", [replace(OTHER, depth=4)], pictures(OTHER, 3)),
    ],
    "07_training": [
        Trial("three sound batches, max_norm 0.6", stepped, [0.6, [LONG, SHORT, batch(4, 2)]]),
        one_bad("a batch whose loss is inf", lambda x: -60 - x),
        one_bad("a batch whose gradient is inf", lambda x: 1e25 * x),
        one_bad("a batch whose loss is NaN", lambda x: x + torch.tensor([0, 0, torch.inf])),
    ],
}


def read_sections() -> dict[str, tuple[str, str, str, str]]:
    """Read of each lesson's task its text, its stub, its right answer, its table of mistakes."""
    _, *parts = re.split(r"(?m)^# (\w+)\n", TEXTS.read_text(encoding="utf-8"))
    sections = {}
    for lesson, part in zip(parts[::2], parts[1::2], strict=True):
        stub, answer, wrong = re.findall(r"(?s)```\w+\n(.*?)\n```", part)
        sections[lesson] = part.partition("```")[0].strip(), stub, answer, wrong
    return sections


def all_tasks() -> dict[str, Check]:
    """Give the checks of all tasks by name, each unseen one behind those of its lesson.

    What stands before a task may be used for it.
    """
    tasks: dict[str, Check] = {}
    for file in sorted(Path(checks.__file__).parent.glob("lesson_*.py")):
        lesson = vars(import_module(f"{checks.__name__}.{file.stem}"))
        tasks |= {name: c for name, c in checks.EXERCISES.items() if lesson.get(name) is c}
        tasks |= {t.name: t for stem, t in UNSEEN.items() if file.stem.endswith(stem[:2])}
    return tasks


SECTIONS = read_sections()
UNSEEN: dict[str, Exercise] = {
    lesson: Exercise(answer, TRIALS[lesson], wrong)
    for lesson, (_, _, answer, wrong) in SECTIONS.items()
}
TASKS = all_tasks()
