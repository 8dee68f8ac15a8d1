"""The face of a verdict: a card in a notebook, plain text everywhere else.

A card has no script and inherits its colours, so it is legible in light and dark themes; it is told
apart by a sign, not by its colour alone. What nbval compares, and a terminal shows, is the text.
"""

# ruff: noqa: T201

import re
from collections.abc import Collection, Mapping
from html import escape
from importlib.util import find_spec

GREEN, RED, GREY = "0,158,115", "213,94,0", "128,128,128"  # Okabe and Ito's
STAGES: Mapping[str, tuple[str, ...]] = {  # of the course's map, and the pieces that each takes
    "patches": ("patchify", "PatchEmbedding"),
    "cls + positions": ("TokenEmbedding",),
    "QKV heads": ("split_heads", "merge_heads", "split_qkv"),
    "attention": ("scaled_dot_product_attention", "MultiHeadAttention"),
    "encoder block": ("MLP", "EncoderBlock"),
    "head": ("ViT",),
}
MODEL = tuple(piece for pieces in STAGES.values() for piece in pieces)
# What a message says of an error: what the learner did, and the library's own words.
RAISED = re.compile(
    r"(?s)^(.*raises \w+(?: in the line `.*?`)?|.*cannot be used here \(\w+): (.*)$"
)


class Card:
    """What a cell shows: in a browser a card, a quiz or an exhibit, elsewhere its text."""

    def __init__(self, text: str, html: str):
        self.text, self.html = text, html

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html


def show(text: str, html: str) -> None:
    """Show a verdict: as a card where IPython runs, else as text."""
    if find_spec("IPython"):  # the checks run without it, too
        from IPython import get_ipython
        from IPython.display import display

        if get_ipython() is not None:
            display(Card(text, html))
            return
    print(text)


def right(name: str, does: str, kept: str, mine: Collection[str] = ()) -> str:
    """Make the card of a right answer: what it now does, what became of it, and the map.

    Args:
        name: of the exercise.
        does: a sentence.
        kept: what became of it, in words; may be empty.
        mine: the pieces in the learner's file, among them this one; empty: no map is drawn.
    """
    body = "".join(f"<div>{marked(text)}</div>" for text in (does, kept) if text)
    return _card(GREEN, "✓", f"`{name}` is right", body + (progress(mine, name) if mine else ""))


def wrong(name: str, message: str) -> str:
    """Make the card of a wrong answer from a check's message, a library's words folded."""
    head, *lines = message.split("\n")
    several = head.startswith("two things at once")
    one_of = any(line.startswith("or: ") for line in lines)
    if not several:
        lines = [head, *(line.removeprefix("or: ") for line in lines)]
    items = []
    for line in lines:
        told = RAISED.match(line)
        text, python = (told[1], told[2]) if told else (line, "")
        if "cannot be used here (" in text and told:
            text, python = f"{text})", python.removesuffix(")")
        items.append(f"<div style='margin:.3em 0'>{marked(text)}</div>" + _folded(python))
    title = f"`{name}` is not right yet"
    if several:
        title = f"`{name}`: {head.rstrip(':')}"
    elif one_of:
        title += ", for one of these reasons"
    return _card(RED, "✗", title, "".join(items))


def waiting(name: str, message: str) -> str:
    """Make the card of an answer that is not attempted yet."""
    _, _, rest = message.partition(": ")
    return _card(GREY, "…", f"`{name}` waits for you", f"<div>{marked(rest)}</div>" if rest else "")


def progress(mine: Collection[str], new: str = "") -> str:
    """Draw the course's map as a row of stages, each as full as its pieces are the learner's."""
    cells = []
    for stage, pieces in STAGES.items():
        share = sum(piece in mine for piece in pieces) / len(pieces)
        edge = f"box-shadow:0 0 0 2px rgb({GREEN});" if new in pieces else ""
        fill = f"rgba({GREEN},.5) {share:.0%},rgba({GREY},.2) {share:.0%}"
        sign = "✓ " if share == 1 else ""
        cells.append(
            f"<div title='{', '.join(pieces)}' style='flex:1 1 auto;text-align:center;"
            "padding:.35em .5em;font-size:.85em;border-radius:4px;white-space:nowrap;"
            f"background:linear-gradient(90deg,{fill});{edge}'>{sign}{escape(stage)}</div>"
        )
    arrow = "<span aria-hidden='true' style='opacity:.6'>→</span>"
    row = "display:flex;flex-wrap:wrap;align-items:center;gap:.4em;margin-top:.7em"
    count = sum(piece in mine for piece in MODEL)
    words = f"{count} of {len(MODEL)} pieces of your ViT are written"
    return (
        f"<div style='{row}'>{arrow.join(cells)}</div>"
        f"<div style='font-size:.9em;opacity:.85;margin-top:.4em'>{words}</div>"
    )


def marked(text: str) -> str:
    """Set `code` as code that no line breaks inside, and the rest as plain text."""
    text = re.sub(r"\([^()]{1,16}\)", lambda short: short[0].replace(" ", "\u00a0"), text)
    parts = escape(text[:1].upper() + text[1:] if text[1:2].islower() else text).split("`")
    look = "white-space:nowrap;padding:0 .3em;border-radius:3px;background:rgba(128,128,128,.18)"
    parts[1::2] = [f"<code style='{look}'>{part}</code>" for part in parts[1::2]]
    return "".join(parts)


def _folded(python: str) -> str:
    """Fold what a library said away, behind its name."""
    if not python:
        return ""
    text = f"<pre style='white-space:pre-wrap;margin:.4em 0 0'>{escape(python)}</pre>"
    return f"<details style='opacity:.85'><summary>What Python said</summary>{text}</details>"


def _card(colour: str, sign: str, head: str, body: str) -> str:
    """Make a card: a bar of colour, a sign, a headline, and what stands below it."""
    look = (
        f"border-left:5px solid rgb({colour});background:rgba({colour},.09);color:inherit;"
        "padding:.7em 1em;border-radius:0 6px 6px 0;max-width:46em;line-height:1.5"
    )
    mark = f"color:rgb({colour});font-size:1.25em;margin-right:.45em"
    title = f"<span aria-hidden='true' style='{mark}'>{sign}</span>{marked(head)}"
    return (
        f"<div role='status' style='{look}'><div style='font-weight:600'>{title}</div>{body}</div>"
    )
