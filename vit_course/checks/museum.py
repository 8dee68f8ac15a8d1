"""The museum of lesson 12: code that looks right, in which the learner points at a line.

`museum.txt` holds the exhibits. A number, a title, and of which class the lines are; a story; the
code. Of a line of code the first character says what it is: `|` a line that is as it should be, `!`
one that is at fault (several may be), `=` what stands in its place when it is mended. Below a line,
indented, stands what is said to whoever points at it, and below `sound` what is said to whoever
calls the whole sound. An exhibit without `!` is sound.

    1. A title · ViT
    A story.
    ! def forward(self, images):
    = def forward(self, image):
        Because of this.
    sound
        A question.

The lines run: `patient` puts them into a small ViT.
"""

# ruff: noqa: T201

import linecache
import re
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from textwrap import fill
from typing import Any

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional as F

import vit_steps
from vit_steps import inputs
from vit_steps.encoder import Encoder, EncoderBlock
from vit_steps.vit import ViT, ViTConfig

from .choosing import KEYS, STYLE, WIDTH, marked, told
from .face import Card

FILE = Path(__file__).with_name("museum.txt")
# The sizes of the trained reader of scattered digits, so that its weights fit.
CONFIG = ViTConfig(
    image_size=16, patch_size=4, in_channels=1, num_classes=10, embed_dim=64, depth=4, num_heads=4
)
ASK = "Which line is at fault? Or is it sound?"
FINE = "This line is fine: it does what it should."
LOOK = """<style>
.vit-quiz.vit-exhibit {max-width: 58em}
.vit-exhibit .vit-lines {border: 1px solid #80808080; margin: .5em 0 .7em; padding: .3em 0;
  overflow-x: auto}
.vit-exhibit .vit-lines summary {border: 0; border-radius: 0; margin: 0; padding: 0 .8em;
  font: .92em/1.6 monospace; white-space: pre}
.vit-exhibit pre {margin: 0 0 .6em 3.2em}
.vit-exhibit p {margin: .2em .9em .4em 3.2em}
</style>"""


@dataclass(frozen=True)
class Exhibit:
    """Lines of code, those of them that are at fault, and what is said to each choice.

    Args:
        place: of which class the lines are, or the function's name.
        lines: numbered from 1 for the learner.
        mended: of each line at fault, what stands in its place.
        reasons: what is said to a line's number, or to "sound".
    """

    number: int
    title: str
    place: str
    story: str
    lines: tuple[str, ...]
    mended: dict[int, str]
    reasons: dict[int | str, str]

    @property
    def sound(self) -> bool:
        """Whether no line is at fault."""
        return not self.mended

    def source(self, mended: bool = False) -> str:
        """Give the code as it hangs, or mended."""
        new = self.mended if mended else {}
        return "\n".join(new.get(n, line) for n, line in enumerate(self.lines, 1)) + "\n"

    def verdict(self, choice: int | str) -> tuple[bool, str, str]:
        """Tell whether a choice is right, why, and by which lines it is mended, if any."""
        reason = self.reasons.get(choice, FINE)
        if choice == "sound":
            return self.sound, reason, ""
        return choice in self.mended, reason, self.mended.get(int(choice), "")

    def judge(self, answer: Any) -> str:
        """Write the verdict on a line's number or "sound"; ValueError where it is neither."""
        last = len(self.lines)
        choice = answer.strip().lower() if isinstance(answer, str) else answer
        choice = int(choice) if isinstance(choice, str) and choice.isdecimal() else choice
        a_line = type(choice) is int and 1 <= choice <= last
        if choice != "sound" and not a_line:
            raise ValueError(f'the answer is {answer!r}; give a line, 1 to {last}, or "sound"')
        right, reason, mended = self.verdict(choice)
        answered = "it is sound" if choice == "sound" else f"it is line {choice}"
        missed = "it is not sound" if choice == "sound" else f"it is not line {choice}"
        text = fill(f"Yes, {answered}. {reason}" if right else f"No, {missed}. {reason}", WIDTH)
        return f"{text}\n\nMended:\n{mended}" if mended else text

    def __repr__(self) -> str:
        lines = (f"{n:4}  {line}".rstrip() for n, line in enumerate(self.lines, 1))
        story = fill(self.story, WIDTH)
        return "\n".join([f"{self.number}. {self.title} ({self.place})", story, "", *lines])

    def html(self) -> str:
        """Write the exhibit, each line a button that opens to a verdict."""
        rows = [f"<legend>{self.number}. {marked(self.title)} ({marked(self.place)})</legend>"]
        rows += [f"<div>{marked(self.story)}</div>", '<div class="vit-lines">']
        for number, line in enumerate(self.lines, 1):
            label = f"{number:3}  {escape(line)}"
            rows.append(self.button(number, label) if line.strip() else "<br>")
        rows += ["</div>", f"<div>{ASK}</div>", self.button("sound", "It is sound")]
        return "\n".join(["<fieldset>", *rows, "</fieldset>"])

    def button(self, choice: int | str, label: str) -> str:
        """Write the button of a choice, which opens to its verdict."""
        right, reason, mended = self.verdict(choice)
        verdict = told(right, reason)
        verdict += f"<p>Mended:</p><pre>{escape(mended)}</pre>" if mended else ""
        return f"<details><summary {KEYS}>{label}</summary>{verdict}</details>"


def hung(item: Exhibit) -> Card:
    """Make what a cell shows of an exhibit: with buttons in a browser, as text elsewhere."""
    number, line = item.number, len(item.lines)
    call = f"checks.exhibit({number}, {line}) for line {line}"
    text = f'{item!r}\n\n{ASK}\nTo answer: {call}, checks.exhibit({number}, "sound")'
    parts = [STYLE, LOOK, '<div class="vit-quiz vit-exhibit">', item.html(), "</div>"]
    return Card(text, "\n".join(parts))


@cache
def read(path: Path = FILE) -> dict[int, Exhibit]:
    """Read the exhibits of a file by number; ValueError where its form is wrong."""
    blocks = re.split(r"\n\s*\n", path.read_text(encoding="utf-8").strip())
    return {n: parsed(n, block) for n, block in enumerate(blocks, 1)}


def parsed(number: int, block: str) -> Exhibit:
    """Read one exhibit; ValueError where its form is wrong."""
    head, *lines_below = block.splitlines()
    title = re.fullmatch(rf"{number}\. (.+) · (\w+)", head)
    story: list[str] = []
    lines: list[str] = []
    mended: dict[int, list[str]] = {}
    reasons: dict[int | str, list[str]] = {}
    place: int | str = ""
    for line in lines_below:
        mark, text = line[:1], line[2:]
        if mark in ("|", "!"):
            lines.append(text)
            place = len(lines)
            if mark == "!":
                mended[place] = []
        elif mark == "=":
            mended[len(lines)].append(text)
        elif line == "sound":
            place = "sound"
        elif place:
            reasons.setdefault(place, []).append(line.strip())
        else:
            story.append(line.strip())
    problems = {
        f'it must begin with "{number}. A title · Place"': not title,
        "it has no story": not story,
        "it has no code": not lines,
        "nothing is said to who calls it sound": "sound" not in reasons,
        "a line at fault has no reason": not set(mended) <= set(reasons),
        "a line at fault is not mended": not all(mended.values()),
    }
    for problem, is_there in problems.items():
        if is_there:
            raise ValueError(f"exhibit {number}: {problem}")
    return Exhibit(
        number,
        title[1] if title else "",
        title[2] if title else "",
        " ".join(story),
        tuple(lines),
        {n: "\n".join(new) for n, new in mended.items()},
        {choice: " ".join(reason) for choice, reason in reasons.items()},
    )


def exhibit_of(number: Any) -> Exhibit:
    """Give the exhibit of that number; ValueError where there is none."""
    exhibits = read()
    if type(number) is not int or number not in exhibits:
        raise ValueError(f"the number is {number!r}; give one from 1 to {len(exhibits)}")
    return exhibits[number]


def exhibit(number: int, answer: Any = None) -> Card | None:
    """Show an exhibit of lesson 12's museum, or print what an answer is worth.

    Args:
        number: of the exhibit, from 1.
        answer: the line that is at fault, or "sound"; the exhibit is printed again, with the
            verdict and its reason.

    Raises:
        ValueError: there is no such exhibit or line.
    """
    item = exhibit_of(number)
    if answer is None:
        return hung(item)
    print(f"{item!r}\n\n{item.judge(answer)}")
    return None


# The exhibits in a small ViT ---------------------------------------------------------------------


class Block(EncoderBlock):
    """A block that hands its attention the tokens alone, as the exhibits take them."""

    def forward(self, x: Tensor, mask: Any = None, return_attention: bool = False) -> Tensor:
        """From tokens (B, N, D) to tokens, whatever else is given."""
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Row(Encoder):
    """Blocks that are handed the tokens alone."""

    def forward(self, x: Tensor, mask: Any = None, return_attention: bool = False) -> Tensor:
        """From tokens (B, N, D) to tokens, whatever else is given."""
        for block in self:
            x = block(x)
        return x


def patient(number: int, mended: bool = False, config: ViTConfig = CONFIG) -> nn.Module:
    """Make a ViT, new, with an exhibit's lines in it; by default of the reader's sizes.

    Of an exhibit that is a function beside the model, such as `train_step`, it is a sound ViT which
    holds that function.

    Args:
        number: of the exhibit, from 1.
        mended: whether the lines at fault are mended.
        config: its sizes; exhibit 2 has its own.
    """
    item = exhibit_of(number)
    names = defined(item, mended)
    model = names["SmallViT"]() if item.place == "SmallViT" else ViT(config)
    if item.place in names and not isinstance(names[item.place], type):
        setattr(model, item.place, names[item.place])  # a function beside a sound model
        return model
    for name, module in list(model.named_modules()):
        if type(module).__name__ == item.place != "SmallViT":
            kind = type(item.place, (type(module),), names)
        elif isinstance(module, EncoderBlock) and item.place == "MultiHeadAttention":
            kind = Block
        elif isinstance(module, Encoder) and item.place == "EncoderBlock":
            kind = Row
        else:
            continue
        if name:
            model.set_submodule(name, with_methods_of(kind, module))
        else:
            model = with_methods_of(kind, module)
    return model


def in_models(count: int) -> tuple[dict[str, nn.Module], dict[str, nn.Module]]:
    """Make the `patient`s of the first exhibits by number and title, and those at fault mended.

    All are drawn from the same seed.
    """

    def drawn(*given: Any) -> nn.Module:
        torch.manual_seed(0)
        return patient(*given)

    models, mended = {}, {}
    for number, item in list(read().items())[:count]:
        name = f"{number:2} {item.title}"
        models[name] = drawn(number)
        if not item.sound:
            mended[name] = drawn(number, True)
    return models, mended


def with_methods_of(kind: type[nn.Module], module: nn.Module) -> nn.Module:
    """Make a module of another class with the same parameters and parts, and no new weights."""
    new = kind.__new__(kind)
    vars(new).update(vars(module))
    return new


def defined(item: Exhibit, mended: bool) -> dict[str, Any]:
    """Run an exhibit's lines, and give what they define.

    Their file is called exhibit_1.py where something, such as the doctor, tells a line of it.
    """
    source, module = item.source(mended), f"exhibit_{item.number}{'_mended' if mended else ''}"
    file = f"{module}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = {"__name__": module, "F": F, "nn": nn, "torch": torch, "rearrange": rearrange}
    names |= {n: value for n, value in vars(vit_steps).items() if callable(value)}
    names |= {n: value for n, value in vars(inputs).items() if n.startswith("check_")}
    before = set(names) | {"__builtins__"}
    exec(compile(source, file, "exec"), names)
    return {name: value for name, value in names.items() if name not in before}
