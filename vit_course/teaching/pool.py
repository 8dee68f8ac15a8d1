"""Judge all answers of a class, as many at a time as there are processors.

The processes that judge run none of a student's code, but they read what it gives. So each may take
so long and so much memory, and one that fails costs no other student anything.
"""

import os
import signal
import tempfile
import time
from collections.abc import Generator, Mapping
from multiprocessing import TimeoutError, get_context
from multiprocessing.pool import AsyncResult, Pool

from tqdm import tqdm

MEMORY = 4_000_000_000  # bytes that judging may take, beside what PyTorch takes
SECONDS = 300  # that judging may take, beside the student's code; the slowest check takes 50
FAILED = "it could not be judged"  # how a message begins that tells nothing of the answer


def begin(folder: str | None = None) -> None:
    """Limit a process that judges, and lay what it lays in this folder."""
    import torch

    from .answer import limit_addresses
    from .judge import ITSELF

    tempfile.tempdir = folder
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that began them
    torch.set_num_threads(1)  # as many of these processes as processors
    limit_addresses(ITSELF + MEMORY)


def judge_all(
    answers: Mapping[str, tuple[str, tuple]], seconds: float, bar: tqdm
) -> Generator[tuple[str, str], None, None]:
    """Give the message for each answer as it comes, by the answer's key.

    Args:
        answers: by key whose it is, and what `judge_among` takes.
        seconds: that judging one may take, the student's code included.
        bar: shows how far this is, and whose answers run.
    """
    from .judge import judge_among

    context, waiting = get_context("spawn"), list(answers)
    running: dict[str, tuple[Pool, AsyncResult, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        count = min(os.cpu_count() or 1, len(answers))
        idle = [context.Pool(1, begin, [folder]) for _ in range(count)]
        try:
            while waiting or running:
                while waiting and idle:
                    key, pool = waiting.pop(0), idle.pop()
                    result = pool.apply_async(judge_among, answers[key][1])
                    running[key] = pool, result, time.monotonic() + seconds
                    bar.set_postfix_str(", ".join(answers[key][0] for key in running))
                for key, (pool, result, end) in list(running.items()):
                    late = time.monotonic() > end
                    if not result.ready() and not late:
                        continue
                    del running[key]
                    if late:  # or the system has ended its process, for lack of memory
                        pool.terminate()
                        pool = context.Pool(1, begin, [folder])
                    idle.append(pool)
                    yield key, message_of(result, seconds)
                    bar.update()
                time.sleep(0.05)
        finally:
            for pool in [*idle, *(pool for pool, *_ in running.values())]:
                pool.terminate()


def message_of(result: AsyncResult, seconds: float) -> str:
    """Give the message that a process has for an answer, or say that it has none."""
    try:
        return result.get(timeout=0)
    except TimeoutError:
        return f"{FAILED} in {seconds:g} seconds"
    except Exception as error:  # said for this answer alone, for the others' sake
        return f"{FAILED} ({type(error).__name__})"
