"""Lesson 13: one training in several processes, which `launch` or torchrun starts.

Each process has the whole model and sees its share of every batch. After each backward pass the
gradients of all are averaged, so that all take the same step (Li et al. 2020, "PyTorch
Distributed", section 3). In one process alone, nothing here does anything.
"""

import gc
import importlib
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socket import socket
from subprocess import Popen, TimeoutExpired

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from ..inputs import check_sizes


class ProcessLostError(RuntimeError):
    """Another process of the training has ended."""


def my_share() -> tuple[int, int]:
    """The number of this process, from 0, and how many there are."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def is_first() -> bool:
    """Whether this is the one process that writes files and tells what happens."""
    return my_share()[0] == 0


def launch(count: int, argv: list[str]) -> int:
    """Run the training's command in so many processes of this machine, as torchrun does.

    Ctrl-C, or the end of one of them, ends all. Gives 0, 130 after Ctrl-C, or 1 where one failed.
    """
    check_sizes(processes=count)
    with socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    # Without that level gloo shows its frames, when another process has ended.
    own = dict(OMP_NUM_THREADS=max((os.cpu_count() or 1) // count, 1), TORCH_CPP_LOG_LEVEL="ERROR")
    own |= os.environ | dict(MASTER_ADDR="localhost", MASTER_PORT=port, WORLD_SIZE=count)
    own |= dict(LOCAL_WORLD_SIZE=count, TORCHELASTIC_RUN_ID="own", TORCHELASTIC_RESTART_COUNT=0)
    words = [sys.executable, "-m", "vit_steps.training", *argv, "--processes", "1"]
    # This one alone heeds Ctrl-C: it comes to the others as SIGTERM, when they are ready for it.
    heeded, started, codes = signal.signal(signal.SIGINT, signal.SIG_IGN), [], []
    for number in range(count):
        known = own | dict(RANK=number, LOCAL_RANK=number)
        environment = {name: str(value) for name, value in known.items()}
        started.append(Popen(words, env=environment))
    signal.signal(signal.SIGINT, heeded)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while None in (codes := [one.poll() for one in started]) and not any(codes):
            time.sleep(0.1)
        code, patience = int(any(codes)), 5  # seconds, in which the others notice, and say why
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code, patience = 130, 0
    for end, seconds in ((Popen.terminate, patience), (Popen.kill, 30)):
        for one in started:
            with suppress(TimeoutExpired):
                one.wait(seconds)
        for one in started:
            end(one)
    for killed in {code for code in codes if code and code < 0}:
        print(f"vit_steps.training: a process was ended by signal {-killed}", file=sys.stderr)
    return code


@contextmanager
def joined(device: torch.device) -> Iterator[torch.device]:
    """Join the processes that were started so, and leave them at the end; else do nothing.

    It gives the device of this process: of CUDA's each has its own. ValueError for more processes
    than CUDA has devices, or another device; ProcessLostError when another process has ended.
    """
    if not dist.is_torchelastic_launched():
        yield device
        return
    mine, all_here = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    if device.type == "cuda":
        if all_here > torch.cuda.device_count():
            raise ValueError(
                f"{all_here} processes, but {torch.cuda.device_count()} CUDA devices; start as "
                "many processes as there are devices, or give --device cpu"
            )
        device = torch.device("cuda", mine)
        torch.cuda.set_device(device)
    elif device.type != "cpu":
        raise ValueError(f"several processes train on cuda or cpu, not on {device.type}")
    # Of axes of length 1, which the cls token has: nothing to lose there.
    warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides")
    # What comes when another has failed, or at Ctrl-C.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    # DDP imports this module, whose functions take the group that is there as a default. Imported
    # now they find none, so that the group goes at the end: its threads, still busy when Python
    # ends, now and then end it by SIGABRT.
    importlib.import_module("torch.distributed.nn.functional")
    # torchrun keeps its store when it restarts the processes: without a name of its own a new life
    # reads there where those of the last one could be reached.
    store, rank, size = next(rendezvous("env://"))
    life = PrefixStore(f"life {os.environ['TORCHELASTIC_RESTART_COUNT']}", store)
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=life, rank=rank, world_size=size)
    try:
        yield device
    except RuntimeError as error:
        # What gloo and nccl raise has no class of its own.
        if isinstance(error, dist.DistError) or "peer" in str(error):
            before = signal.SIG_IGN  # there is time to say so
            said = "another process of this training has ended, so this one ends too; the same "
            raise ProcessLostError(f"{said}command goes on from the last epoch saved") from error
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
        gc.collect()  # what DDP made refers to the group that ends here
        dist.destroy_process_group()


def wait() -> None:
    """Go on when all processes have come here."""
    if my_share()[1] > 1:
        dist.barrier()


@contextmanager
def first_alone() -> Iterator[None]:
    """Let the first process do this before the others: what it downloads is there for them."""
    if not is_first():
        wait()
    yield
    if is_first():
        wait()


def total(values: Tensor) -> Tensor:
    """The sum of what all processes have; in one process, what it has."""
    if my_share()[1] > 1:
        values = values.to("cuda" if dist.get_backend() == "nccl" else "cpu", copy=True)
        dist.all_reduce(values)
    return values


def totals(*numbers: float) -> list[float]:
    """The sum over all processes of each of some numbers."""
    return total(torch.tensor(numbers, dtype=torch.float64)).tolist()


def wrap(model: nn.Module) -> nn.Module:
    """The model, its gradients averaged over all processes; the first one's weights in each."""
    return DistributedDataParallel(model) if my_share()[1] > 1 else model
