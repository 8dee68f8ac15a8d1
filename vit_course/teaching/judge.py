"""Judges one submitted notebook: what `python -m vit_course grade` starts for each of them.

Two processes for each task. The one runs what the learner wrote, within limits of time and memory,
and gives back nothing but results (`answer.py`). The other, which never runs a line of it, compares
them with the course's answer. So printing "right", replacing the checks or ending the process is of
no use. The answer is tried on what its check tries it on, and on the same in an order drawn now, so
neither is a table of the known cases. A submission that searches the interpreter for the course's
answer finds it: this is no sandbox. Run it under a user, or in a container, with nothing to lose.
"""

import io
import json
import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from copy import copy
from typing import Any

import torch
from torch import Tensor

from vit_course import checks
from vit_course.checks.compare import compare
from vit_course.checks.engine import Check, outcome
from vit_course.checks.trials import Trial, call

from .answer import attempt, flat, limit, refuse, restored

MOST = 200_000_000  # bytes of results that are read
# Cases for tasks that take no tensor, so that a table of the visible ones does not pass.
HIDDEN: dict[str, list[tuple]] = {
    "rows_of": [(60, 5, "k", 3), (96, 6, "v", 5), (42, 7, "q", 4)],
    "gap_closed": [
        ([60.0, 71.0, 66.0], [80.0, 69.0, 91.0], [95.0, 97.0, 96.0]),
        ([88.0, 80.0], [84.0, 81.0], [90.0, 96.0]),
    ],
    "torchvision_name": [("encoder.layers.encoder_layer_7.mlp.3.bias",), ("heads.head.weight",)],
}


def hidden_trials(name: str, trials: Sequence[Trial], generator: torch.Generator) -> list[Trial]:
    """The trials of a check on other numbers, where they have any, and the task's hidden cases.

    Other numbers are the same ones, the last axis of each tensor in another order. So what must
    hold of them still does: rows that sum to 1, a range, numbers that all differ.
    """
    changed = []

    def other(x: Any) -> Any:
        if isinstance(x, (tuple, list)):
            return type(x)(map(other, x))
        if not isinstance(x, Tensor) or not x.is_floating_point() or x.ndim == 0:
            return x
        changed.append(x)
        return x[..., torch.randperm(x.shape[-1], generator=generator)].clone()

    hidden = []
    for trial in trials:
        changed.clear()
        again = trial.again(other) if trial.again else None
        if again and changed:
            hidden.append(Trial(f"{trial.what}, in another order", again.run))
    return [*hidden, *(call(f"{given}", *given) for given in HIDDEN.get(name, []))]


def judge(name: str, cells: list, seconds: float = 60, megabytes: int = 2000) -> str:
    """The message for the answer to one task: "right", or what is wrong."""
    check = getattr(checks, name)
    generator = torch.Generator()
    generator.seed()
    hidden = hidden_trials(name, check.trials, generator)
    trials = [*check.trials, *hidden]
    # In another order each time: who counts the calls learns nothing from them.
    order = torch.randperm(len(trials), generator=generator).tolist()
    shuffled = [trials[number] for number in order]
    try:
        given = results_of(name, cells, check, shuffled, seconds, megabytes)
    except ValueError as error:
        return str(error)
    results = dict(zip(order, given, strict=True))
    try:
        return verdict(check, hidden, [results[number] for number in range(len(trials))])
    except Exception as error:  # results of a form that no answer gives
        return f"what it gives cannot be compared ({type(error).__name__}: {error})"


def verdict(check: Check, hidden: Sequence[Trial], results: Sequence[Any]) -> str:
    """What is said of an answer that gives these results: in the check's trials, then in these."""

    def replayed(trial: Trial, result: Any) -> Trial:
        return Trial(trial.what, lambda x: result if x is submitted else trial.run(x))

    same, submitted = copy(check), Submitted()
    same.trials = [replayed(*both) for both in zip(check.trials, results, strict=False)]
    if (said := same.judge(submitted)) != "right":
        return said
    for trial, result in zip(hidden, results[len(check.trials) :], strict=True):
        wanted = outcome(trial, check.reference, check.slips)
        if problem := compare(result, wanted, closely=True):
            return f"{trial.what}: {problem}"
    return "right"


class Submitted:
    """Stands for the answer where results of it are compared; it cannot be called."""

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def results_of(
    name: str, cells: list, check: Check, trials: list[Trial], seconds: float, megabytes: int
) -> list[Any]:
    """What the learner's answer gives in each trial, from a process of its own.

    Raises:
        ValueError: there are none; it says why.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        give_results(writing, name, cells, check, trials, megabytes)
    os.close(writing)
    try:
        data = receive(reading, time.monotonic() + seconds)
    except TimeoutError:
        raise ValueError(f"it was stopped after {seconds:g} seconds: does it end?") from None
    finally:
        os.close(reading)
        try:
            os.killpg(child, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    try:
        kind, content = torch.load(io.BytesIO(data), weights_only=True)
        results = [restored(result) for result in content] if kind == "results" else None
    except Exception:
        raise ValueError("its process ended before it gave a result") from None
    if results is None:
        raise ValueError(str(content))
    if len(results) != len(trials):
        raise ValueError("it gave results for other trials than it was tried on")
    return results


def give_results(
    writing: int, name: str, cells: list, check: Check, trials: list[Trial], megabytes: int
) -> None:
    """The other process's life: run the answer, write the results, end."""
    try:
        os.setsid()
        quiet = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(quiet, number)
        limit(megabytes)
        sys.addaudithook(refuse)
        try:
            answer = attempt(name, cells)
            said = ["results", [flat(outcome(trial, answer, check.slips)) for trial in trials]]
        except MemoryError:
            said = ["none", "it needs more memory than it may have"]
        except ValueError as error:
            said = ["none", str(error)]
        file = io.BytesIO()
        torch.save(said, file)
        data = memoryview(file.getvalue())
        while data:
            data = data[os.write(writing, data) :]
    finally:
        os._exit(0)


def receive(reading: int, until: float) -> bytes:
    """All that comes from a pipe; raises TimeoutError if it has not ended by then."""
    data = bytearray()
    while len(data) < MOST:
        if not select.select([reading], [], [], max(0, until - time.monotonic()))[0]:
            raise TimeoutError
        part = os.read(reading, 1 << 20)
        if not part:
            break
        data += part
    return bytes(data)


def main() -> None:
    """Read cells and tasks as JSON, and write what is said of each task."""
    given = json.load(sys.stdin)
    torch.set_num_threads(1)  # a process with threads must not be forked
    os.environ["MY_VIT"] = "no_my_vit.py"
    said = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in given["tasks"]:
            said[name] = judge(name, given["cells"], given["seconds"], given["megabytes"])
    json.dump(said, sys.stdout)


if __name__ == "__main__":
    main()
