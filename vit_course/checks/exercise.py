"""An exercise made of its right answer: each known mistake is an edit of the answer's source.

Edits compose, so two mistakes at once are known without being written down.
"""

import ast
import linecache
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, reduce
from importlib import import_module
from itertools import combinations, permutations
from time import process_time
from typing import Any

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional as F

from .compare import Verdict, YesOrNo, compare
from .engine import Check
from .keeping import PIECES, answers, solved
from .trials import Trial, trust

# What the names in an answer mean beside those that an exercise gives, and the course's pieces.
COMMON = {"F": F, "Tensor": Tensor, "math": math, "nn": nn, "rearrange": rearrange, "torch": torch}
PATIENCE = 2.5  # seconds of work for pairs of mistakes; a busy machine takes longer for it
SHOWN = 3  # pairs at most in a message
ANOTHER_ORDER = "the results stand in another order than is asked for"
NOT_ALL = "(this alone does not explain all of it)"
TURNED = "it is the wrong way round: True"  # what a test is told first that says the opposite


class Exercise(Check):
    """A `Check` made of the right answer's source and of edits of it.

    Args:
        answer: the source of the right answer, as the lesson folds it and the solutions show it.
            Its last definition is the answer; what it defines before are helpers.
        trials: what to try an attempt on, the simplest first.
        wrong: a table. At the margin: what to tell. Below it, indented, one a line: the edits that
            are told so, `old => new`. Each old text stands exactly once in the answer, and `…` at
            its end goes on to the end of the line. ` ;; ` parts several changes of one edit, ` ‖ `
            several new texts, each of an edit of its own, ` ⏎ ` lines of a new text (they are
            indented as the line that they change). An edit may go on in deeper lines. A `def` or
            `class`, with all lines up to the next message, is another answer whole. `! pattern` is
            no edit: an error with such a text ("TypeError: …") is told so. Results in another
            order need no row.
        alike: edits of the answer that leave it right. A known mistake is looked for with each of
            them, too.
        uses: what names in the answer and in the edits mean beside `COMMON` and the pieces.
        slips: more patterns of errors, and what to tell.
        does: what the piece now does, in a sentence, to whoever got it right.
        why: a few words on the answer, for the solutions, and to whoever got it right.

    An answer that is a piece of the learner's own model is kept in `my_vit.py`; `checks.mine` takes
    up any other one within its session.
    """

    def __init__(
        self,
        answer: str,
        trials: Sequence[Trial],
        wrong: str,
        alike: Sequence[str] = (),
        uses: Mapping[str, Any] | None = None,
        slips: Mapping[str, str] | None = None,
        does: str = "",
        why: str = "",
    ):
        self.answer, self.does, self.why = answer.strip() + "\n", does, why
        self.name = re.findall(r"(?m)^(?:def|class) (\w+)", self.answer)[-1]
        rows = table(wrong)
        self.edits = [(message, edit) for message, edit in rows if edit[:2] != "! "]
        orders = in_other_orders(self.answer)
        self.edits += [(ANOTHER_ORDER, edit) for given, edit in orders if given not in wrong]
        known = {edit[2:]: message for message, edit in rows if edit[:2] == "! "}
        self.alike, self.uses = alike, uses or {}
        self.doubles: dict[str, Callable] = {}
        piece = self.name if self.name in PIECES else None
        self.begin(trials, known | dict(slips or {}), piece)
        if not self.keeps:
            answers[self.name] = lambda: self.reference

    def taken(self, attempt: Callable) -> str:
        """Keep a right answer in `my_vit.py`, or for this session, and say so."""
        if not self.keeps:
            solved[self.name] = attempt
        return super().taken(attempt)

    @cached_property
    def reference(self) -> Callable:
        """The right answer itself."""
        return self.made(self.answer)

    @cached_property
    def mistakes(self) -> list[tuple[str, Callable]]:
        """What to tell, and the wrong answer that is told so."""
        return [(message, self.with_edit(edit)) for message, edit in self.edits]

    @cached_property
    def in_other_words(self) -> list[tuple[str, Callable]]:
        """The same mistakes, made in answers that are right in another way."""
        sources = [edited(self.answer, edit) for edit in self.alike]
        answers = []
        for source in sources:
            for message, edit in self.edits:
                with suppress(ValueError, SyntaxError):  # where the two touch the same place
                    answers.append((message, self.made(edited(source, edit))))
        return answers

    def with_edit(self, edit: str) -> Callable:
        """Make the answer with one edit."""
        return self.made(edited(self.answer, edit))

    def made(self, source: str) -> Callable:
        """Make the answer that a source defines."""
        return made(self.name, source, self.uses)

    def recognise(self, results: Sequence[Any], first: int) -> str | None:
        """Give what one mistake says that gives these results; else what two at once say."""
        return (
            self.wholly(results, first)
            or self.wholly(results, first, self.in_other_words)
            or self.two_at_once(results, first)
            or self.partly(results, first)
        )

    def two_at_once(self, results: Sequence[Any], first: int) -> str | None:
        """Give what the pairs of mistakes say that give these results in all trials."""
        by = self.tells(results)
        messages: dict[tuple[str, str], None] = {}  # each once, in their order
        trials = [*range(len(results))]
        end = process_time() + PATIENCE
        for one, two, source in self.likely_pairs(results, first):
            if process_time() > end:
                break
            pair = self.edits[one][0], self.edits[two][0]
            # A test is tried first on what is right, which it refuses if it is turned round.
            turned = first == 0 and any(text.startswith(TURNED) for text in pair)
            if (by == "yes or no" and not turned) or pair in messages or pair[::-1] in messages:
                continue
            with suppress(SyntaxError):
                wrong = self.with_both(source)
                against = next((n for n in trials if not self.agrees(wrong, results, n)), None)
                if against is None:
                    messages[pair] = None
                trials.sort(key=lambda n: n != against)  # the next pair may fail there, too
        if not messages:
            return None
        if by == "sentences" and len(messages) > 1:
            shared = set.intersection(*map(set, messages))  # of many pairs this one is sure
            return f"{shared.pop()}\n{NOT_ALL}" if shared else None
        messages = {(plainly(one), plainly(two)): None for one, two in messages}
        pairs = [f"1. {one}\n2. {two}" for one, two in list(messages)[:SHOWN]]
        more = f"\n(and {len(messages) - SHOWN} other pairs)" if len(messages) > SHOWN else ""
        several = ", though more than one pair does this" if len(messages) > 1 else ""
        return f"two things at once{several}:\n" + "\nor these two:\n".join(pairs) + more

    def tells(self, results: Sequence[Any]) -> str:
        """Say by what two mistakes may be known: "numbers", "sentences" or a "yes or no".

        Numbers have few causes, and so have two sentences; a yes or no has many, and so an error.
        """
        wrong = [r for number, r in enumerate(results) if self.gives_wrong(results, number)]
        if not all(isinstance(r, (bool, Verdict)) for r in wrong):
            return "numbers"
        if len({r for r in wrong if not isinstance(r, (bool, YesOrNo))}) > 1:
            return "sentences"
        return "yes or no"

    def likely_pairs(self, results: Sequence[Any], first: int) -> list[tuple[int, int, str]]:
        """Put those pairs first of which a mistake alone does some of what was done.

        It is seen in the trial `first`, in which all mistakes have been tried alone.
        """
        scores = [self.score(wrong, results, first) for _, wrong in self.mistakes]
        return sorted(self.pairs, key=lambda pair: -scores[pair[0]] - scores[pair[1]])

    def score(self, answer: Callable, results: Sequence[Any], number: int) -> int:
        """Count which wrong parts of a result a mistake gives, less those that it alone spoils."""
        known, right = (self.outcome_of(x, number) for x in (answer, self.reference))
        parts = [x if isinstance(x, tuple) else (x,) for x in (results[number], known, right)]
        score = 0
        for result, wrong, good in zip(*parts, strict=False):
            if compare(wrong, good) is not None:
                score += 1 if compare(result, wrong) is None else -(compare(result, good) is None)
        return score

    @cached_property
    def pairs(self) -> list[tuple[int, int, str]]:
        """Of each two mistakes with other messages their numbers, and the answer that has both.

        One may change what the other has put in, so either may come first.
        """
        pairs = []
        edits = [(n, *row) for n, row in enumerate(self.edits) if not is_whole(row[1])]
        for (n, one, edit), (m, two, second) in combinations(edits, 2):
            for order in ((edit, second), (second, edit)) if one != two else ():
                with suppress(ValueError):  # where the two touch the same place
                    pairs.append((n, m, reduce(edited, order, self.answer)))
                    break
        return pairs

    def with_both(self, source: str) -> Callable:
        """Make the answer of a pair, once: all that a learner waits for is made when it is met."""
        if source not in self.doubles:
            self.doubles[source] = self.made(source)
        return self.doubles[source]


def plainly(message: str) -> str:
    """Leave out that numbers or shape are right: beside another mistake they are not."""
    return re.sub("^the (numbers are|shape is) right[,;] (but )?", "", message)


def in_other_orders(answer: str) -> list[tuple[str, str]]:
    """Give what an answer returns, two or three results, in other orders, and edits to that."""
    orders = []
    for node in ast.walk(ast.parse(answer)):
        value = getattr(node, "value", None) if isinstance(node, ast.Return) else None
        value = value.body if isinstance(value, ast.IfExp) else value  # (a, b) if c else a
        if isinstance(value, ast.Tuple) and len(value.elts) < 4:
            old, *parts = (str(ast.get_source_segment(answer, x)) for x in (node, *value.elts))
            given = [", ".join(order) for order in permutations(parts)]
            orders += [(new, f"{old} => {old.replace(given[0], new)}") for new in given[1:]]
    return orders


def made(name: str, source: str, uses: Mapping[str, Any]) -> Callable:
    """Make what a source defines by this name; `uses` is what other names in it mean."""
    pieces = {
        piece: getattr(import_module(home), piece)
        for piece, home in PIECES.items()
        if piece != name and piece in source
    }
    names: dict[str, Any] = {"__name__": "answers"} | COMMON | pieces | dict(uses)
    file = f"an answer to {name}: {hash(source)}"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), names)
    return names[name]


def refusals(make: Callable[[str], Callable], candidates: str) -> list[Trial]:
    """Make trials of a learner's own test, which is to refuse each of these candidates.

    Args:
        make: makes a candidate of an edit, as `Exercise.with_edit` does.
        candidates: a table, as that of an exercise's mistakes: `what: why` stands over an edit.
    """
    rows = (([*message.split(": ", 1), ""], edit) for message, edit in table(candidates))
    return [trust(what, make(edit), False, why) for (what, why, *_), edit in rows]


def table(text: str) -> list[tuple[str, str]]:
    """Read the rows of a table: a message at the margin, and each answer that is told it below.

    A line that stands deeper than the one above goes on with it. A definition takes all lines up
    to the next message. Edits parted by ` ‖ ` are rows of their own.
    """
    rows: list[tuple[str, str]] = []
    message: list[str] = []
    depth = 0  # of the answers below the message; 0 while the message goes on
    for line in filter(str.strip, text.splitlines()):
        indent = len(line) - len(line.lstrip())
        if not indent:
            message = [line.strip()] if depth else [*message, line.strip()]
            depth = 0
        elif depth and is_whole(rows[-1][1]):
            rows[-1] = rows[-1][0], f"{rows[-1][1]}\n{line[depth:]}"
        elif depth and indent > depth:
            rows[-1] = rows[-1][0], f"{rows[-1][1]} {line.strip()}"
        else:
            depth = indent
            rows.append((" ".join(message), line.strip()))
    return [(told, edit) for told, edits in rows for edit in alternatives(edits)]


def alternatives(edits: str) -> list[str]:
    """Give each edit of a line that holds several new texts for one old text."""
    if is_whole(edits):
        return [edits]
    first, *others = edits.split(" ‖ ")
    old = first.rpartition("=>")[0]
    return [first, *(f"{old}=> {new}" for new in others)]


def is_whole(edit: str) -> bool:
    """Tell whether it is another answer whole, and no edit."""
    return edit.startswith(("def ", "class ", "@", "import ", "from "))


def edited(source: str, edit: str) -> str:
    """Give the source with one edit made, or the other answer that stands in its place.

    Raises:
        ValueError: an old text does not stand exactly once.
    """
    if is_whole(edit):
        return edit + "\n"
    for part in edit.split(" ;; "):
        old, _, new = (text.strip() for text in part.partition("=>"))
        begin = old.removesuffix("…")
        if source.count(begin) != 1 or not begin:
            raise ValueError(f"{begin!r} stands {source.count(begin)} times")
        start = source.index(begin)
        if begin != old:
            old = source[start:].partition("\n")[0]
        line = source[source.rfind("\n", 0, start) + 1 : start]
        margin = line[: len(line) - len(line.lstrip())]
        source = source.replace(old, new.replace(" ⏎ ", f"\n{margin}"))
    return source
