"""Judge the answer to one task: what it gives, tried in a sandbox, beside what the course's gives.

The student's code runs in a process of its own (`answer.py` in `sandbox.py`), which has the inputs
of this task, and neither the course's answer nor this judge. So printing "right", replacing the
checks or ending the process is of no use. An answer is tried on what its check tries it on, and on
the same in an order drawn now, so neither is a table of the known cases.
"""

import builtins
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from vit_course import checks
from vit_course.checks import lesson_03, lesson_05, lesson_06, lesson_07, lesson_11, lesson_13
from vit_course.checks.compare import Parts, Raised, Verdict, compare
from vit_course.checks.engine import LEFT, Check, outcome
from vit_course.checks.keeping import PIECES
from vit_course.checks.trials import Outside, Trial, call, drawn, trust, waves

from . import answer
from .sandbox import Apart, apart
from .unseen import TASKS, TEXTS
from .wire import TooLargeError, packed, unpacked
from .without import Pickler, by_value, lay

ASKS = 10_000  # questions that a student's code may ask of an `Outside`
OPEN = rf"{LEFT}(: (one line still holds|\d+ lines still hold) `\.\.\.`)?"
MINE = 'from vit_course import checks\n{0} = checks.mine("{0}")'
UNNAMED = "no cell defines"  # how a message begins, where an answer has another name
NO_RESULT = "its process ended before it gave a result"
TOO_LARGE = "what it gives is too large to be judged"
LONGEST, LONGEST_MESSAGE = 300, 3000  # characters of a line that is told, and of a message
ITSELF = answer.addresses()  # bytes that a process takes with PyTorch, before any student's work
# Errors that a message names: any other name could be a message of its own.
KINDS = {"EinopsError", "InputChangedError", "LinAlgError", "AxisError", "OutOfMemoryError"}
KINDS |= {
    name
    for name, x in vars(builtins).items()
    if isinstance(x, type) and issubclass(x, BaseException)
}
COPIES = 3  # of each candidate that a student's test is to judge, beside the first
SKIPPED = lesson_05.passing_on(lambda left, x, out: x if left == 2 else out)
# Cases for tasks of which a table, by the sizes of what comes in, would pass all others.
HIDDEN: dict[str, list[Trial]] = {
    "effective_keys": [call("3 tokens", drawn(1, 2, 3, 3).softmax(dim=-1))],
    "layer_norm": [lesson_05.norm_of("", waves(3, 4), *waves(2, 4))],
    "unheard_blocks": [lesson_05.listened_to("six blocks, of which one is skipped", SKIPPED, 6)],
    "evaluate": [lesson_07.measurement("other pictures", mode, 1) for mode in (False, True)],
    "trust_split": (COPIES + 1) * [trust("", split, True) for split in lesson_03.RIGHT_SPLITS],
    "size_and_work": [
        lesson_06.counted("another ViT", replace(lesson_06.TINY, depth=4, embed_dim=24), place)
        for place in (0, 1)
    ],
    "crossover": [lesson_13.equal(256, 3.0), lesson_13.equal(60, 1.5)],
    "cls_may_look": [call("", drawn(3, 2, 4, seed=3) > 0.3)],
    "fuse_qkv": [lesson_11.fusing(6, 2, 3, True, order) for order in ("qkv h d", "h d qkv")],
    "drop_kind": [
        lesson_11.kind_of_drop(kind, (16, 10, 12), 0.5) for kind in ("sample", "token", "number")
    ],
    "rows_of": [call("", *x) for x in ((60, 5, "k", 3), (96, 6, "v", 5), (42, 7, "q", 4))],
}


def hidden_trials(name: str, check: Check, generator: torch.Generator) -> list[Trial]:
    """Make the trials of a check on other numbers, where they have any, and the hidden cases.

    Other numbers are the same ones, the last axis of each tensor in another order, of tensors of
    one width in the same. So what must hold of them still does: rows that sum to 1, a range,
    numbers that all differ, scores of which one lies far above the rest. What a student's own test
    is to judge comes several times: of few candidates a guess may name the right one.
    """
    orders: dict[int, Tensor] = {}  # by width

    def other(x: Any) -> Any:
        if isinstance(x, (tuple, list)):
            return [other(part) for part in x]
        if not isinstance(x, Tensor) or not x.is_floating_point() or x.ndim == 0:
            return x
        if (width := x.shape[-1]) not in orders:
            orders[width] = torch.randperm(width, generator=generator)
        return x[..., orders[width]].clone()

    hidden = []
    for number, trial in enumerate(check.trials):
        orders.clear()
        if check.outcome_of(check.reference, number) == Verdict("as it should"):
            hidden += [trial] * COPIES
        if callable(trial.inputs):
            continue
        inputs = [other(x) for x in trial.inputs]
        if any(new is not old for new, old in zip(inputs, trial.inputs, strict=True)):
            what = f"{trial.what}, in another order"
            hidden.append(replace(trial, what=what, inputs=inputs))
    return [*hidden, *HIDDEN.get(name, [])]


def judge(
    name: str,
    cells: Sequence[str],
    own: int,
    seconds: float = 60,
    megabytes: int = 2000,
    unsafe: bool = False,
) -> str:
    """Give the message for the answer to one task: "right", or what is wrong.

    Args:
        name: the task.
        cells: the sources of all code cells of the notebook; `own` is the number of the task's.
        seconds, megabytes: what the answer may take.
        unsafe: run it without a sandbox.
    """
    check = TASKS[name]
    generator = torch.Generator()
    generator.seed()
    trials = [*check.trials, *hidden_trials(name, check, generator)]
    # In another order each time: who counts the calls learns nothing from them.
    order = torch.randperm(len(trials), generator=generator).tolist()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        given = [trials[number].given() for number in order]
    # A candidate that comes again is another one to the pickler, with a number of its own.
    inputs = [[Outside(x.function) if isinstance(x, Outside) else x for x in xs] for xs in given]
    sent = [
        replace(trials[number], what="", inputs=own_inputs, say=None)
        for number, own_inputs in zip(order, inputs, strict=True)
    ]
    try:
        unfinished, *outputs = results_of(name, cells, own, sent, (seconds, megabytes, unsafe))
    except ValueError as error:
        return str(error)
    if len(outputs) != len(trials):
        return "it gave results for other trials than it was tried on"
    lines = {line.strip() for cell in cells for line in cell.splitlines()}
    results: list[Any] = [None] * len(trials)
    try:
        for number, output, own_inputs in zip(order, outputs, inputs, strict=True):
            results[number] = compared(trials[number], own_words(output, lines), own_inputs)
        message = verdict(check, trials, results)
    except Exception as error:  # results of a form that no answer gives
        return f"what it gives cannot be compared ({type(error).__name__})"
    if message == "right":
        return message
    allowed = vocabulary(name) | words_of([cells[own]]) | KINDS
    return unfinished or plain(message, allowed)


def judge_among(
    name: str, cells: Sequence[str], own: int, tasks: dict[int, str], *limits: Any
) -> str:
    """Judge an answer, and if it is wrong, with the course's pieces for those that it is built on.

    `tasks` has the task of each cell that has one, by the cell's number.
    """
    message = judge(name, cells, own, *limits)
    before = list(TASKS)[: list(TASKS).index(name)]
    pieces = {*PIECES}.intersection(before, words_of([cells[own]]))
    others = [number for number, task in tasks.items() if task in pieces]
    if message != "right" and others:
        sources = [MINE.format(tasks[n]) if n in others else c for n, c in enumerate(cells)]
        return "right" if judge(name, sources, own, *limits) == "right" else message
    return message


def compared(trial: Trial, result: Any, inputs: Sequence[Any]) -> Any:
    """Give what is compared of a result."""
    if trial.say is None or isinstance(result, Raised):
        return result
    if isinstance(result, Verdict):  # one that is not said inside is no right one
        return Verdict(f"{result} ")
    return trial.say(result, *inputs)


def verdict(check: Check, trials: Sequence[Trial], results: Sequence[Any]) -> str:
    """Give the message for these results, in the check's trials and in the hidden ones behind."""
    count = len(check.trials)
    if (message := check.told(results[:count])) != "right":
        return message
    for trial, result in zip(trials[count:], results[count:], strict=True):
        if problem := compare(result, outcome(trial, check.reference, check.slips), closely=True):
            return f"{trial.what}: {problem}"
    return "right"


def results_of(
    name: str, cells: Sequence[str], own: int, trials: list[Trial], limits: tuple[float, int, bool]
) -> list[Any]:
    """Say whether something was left open, or "", and give the answer's result in each trial.

    Raises:
        ValueError: there is nothing; it says why.
    """
    seconds, megabytes, unsafe = limits
    outside: list[Outside] = []

    def stand_in(x: Any) -> Any:
        if not isinstance(x, Outside):
            return None
        outside.append(x)
        return answer.Ask, (len(outside) - 1,)

    most = ITSELF + megabytes * 1_000_000
    life = partial(answer.live, name, list(cells), own, trials, TASKS[name].slips, most)
    hidden = set(list(TASKS)[list(TASKS).index(name) :])  # this task, and those that come later
    with TemporaryDirectory() as folder:
        file = BytesIO()
        with by_value(lay(Path(folder), hidden)):
            Pickler(file, name, stand_in).dump(life)
        try:
            with apart(Path(folder), file.getvalue(), seconds, unsafe=unsafe) as process:
                report = conversation(process, outside)
        except TimeoutError:
            raise ValueError(f"it was stopped after {seconds:g} seconds: does it end?") from None
        except TooLargeError:
            raise ValueError(TOO_LARGE) from None
        except (EOFError, ValueError, MemoryError):
            raise ValueError(NO_RESULT) from None
    match report:
        case ["results", str(unfinished), *results]:
            return [unfinished if re.fullmatch(OPEN, unfinished) else "", *results]
        case ["no function", None]:
            raise ValueError(LEFT)
        case ["no function", str(kind)]:
            kind = kind if hasattr(builtins, kind) or kind == "Tensor" else "thing"
            raise ValueError(f"this is a {kind}: give the function or class itself, not called")
        case ["memory"]:
            raise ValueError("it needs more memory than it may have")
        case ["broken", str(kind), int(number)]:
            lines = dict(enumerate(cells[own].splitlines(), 1))
            if number in lines:
                line = lines[number].strip()[:LONGEST]
                raise ValueError(f"the cell stops with {kind_shown(kind)} in the line `{line}`")
            if kind == "NameError":
                raise ValueError(f"{UNNAMED} {name}: keep the name that the task gives")
            raise ValueError(f"the cell stops with {kind_shown(kind)}")
    raise ValueError(NO_RESULT)


def conversation(process: Apart, outside: Sequence[Outside]) -> list:
    """Answer what a process asks of what stays outside of it, and give its report at last."""
    for _ in range(ASKS):
        message = unpacked(process.read())
        if not isinstance(message, list) or message[:1] != ["ask"]:
            return message
        _, number, inputs, options = message
        try:
            with torch.no_grad():
                result = outside[number](*inputs, **options)
        except Exception as error:
            # Not its text: it would tell which of the candidates this is.
            result = Raised(type(error).__name__, "", "", True)
        process.write(packed(result))
    raise TimeoutError


# Words from inside -------------------------------------------------------------------------------


@cache
def vocabulary(name: str) -> set[str]:
    """Give all words, and all marks, that the checks may say of an answer to this task."""
    check = TASKS[name]
    right = [check.outcome_of(check.reference, number) for number in range(len(check.trials))]
    files = [*Path(checks.__file__).parent.glob("*.py"), TEXTS, TEXTS.with_suffix(".py")]
    sources = [path.read_text("utf-8") for path in files]
    texts = [*sources, *map(str, check.slips.values()), *map(str, right)]
    return words_of(texts) | {mark for text in texts for mark in re.findall(r"\W", text)}


def words_of(texts: Iterable[str]) -> set[str]:
    """Give all words of these texts."""
    return {word for text in texts for word in re.findall(r"\w+", text)}


def own_words(x: Any, lines: set[str]) -> Any:
    """Leave of an error in a result its kind, and the line of the student's that it names."""
    if isinstance(x, Raised):
        line = x.line[:LONGEST] if x.line in lines else ""
        return replace(x, kind=kind_shown(x.kind), message=x.message[:LONGEST], line=line)
    return type(x)(*(own_words(part, lines) for part in x)) if isinstance(x, Parts) else x


def plain(text: str, words: set[str]) -> str:
    """Leave out of a text what the student's code brings: all but these words, and numbers."""
    parts = re.findall(r"\w+|\W", text[:LONGEST_MESSAGE])
    number = re.compile(r"[0-9]+(e[0-9]*)?")
    return "".join(p if p in words or number.fullmatch(p) else "…" for p in parts)


def kind_shown(kind: str) -> str:
    """Give the name of an error, where it is a known one."""
    return kind if kind in KINDS else "an error"
