"""Lesson 13: one training in several processes, which torchrun starts.

Each process has the whole model and sees its share of every batch. After each backward pass the
gradients of all are averaged, so that all take the same step (Li et al. 2020, "PyTorch
Distributed", section 3). In one process alone, nothing here does anything.
"""

import gc
import importlib
import os
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from ..inputs import check_sizes
from .devices import autocast

LOST = "another process of this training has ended, so this one ends too"


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
    """Run the training's command in so many processes, as torchrun does; ValueError below 2."""
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main

    check_sizes(2, processes=count)
    own = ["--standalone", "--nproc-per-node", str(count), "-m", "vit_steps.training"]
    try:
        main([*own, *argv, "--processes", "1"])
    except (SignalException, KeyboardInterrupt):
        return 130
    except ChildFailedError:
        return 1  # it has said why
    return 0


@contextmanager
def joined(device: torch.device) -> Iterator[torch.device]:
    """Join the processes that torchrun started, and leave them at the end.

    Started in another way, it does nothing.

    Args:
        device: where to train.

    Yields:
        The device of this process: of CUDA's each has its own.

    Raises:
        ValueError: there are more processes than CUDA has devices, or the device is another.
        ProcessLostError: another process has ended.
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
    before = signal.signal(signal.SIGTERM, ended)  # what torchrun sends when one has failed
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
        lost = isinstance(error, (ProcessLostError, dist.DistError)) or "peer" in str(error)
        if lost:
            before = signal.SIG_IGN  # there is time to say so
            raise ProcessLostError(LOST) from error
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
        gc.collect()  # what DDP made refers to the group that ends here
        dist.destroy_process_group()


def ended(*_: Any) -> None:
    """What a process does that torchrun ends, because another has failed."""
    raise ProcessLostError(LOST)


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
        values = values.clone()
        dist.all_reduce(values)
    return values


def totals(*numbers: float) -> list[float]:
    """The sum over all processes of each of some numbers."""
    if my_share()[1] == 1:
        return list(numbers)
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    return total(torch.tensor(numbers, dtype=torch.float64, device=device)).tolist()


def wrap(model: nn.Module) -> nn.Module:
    """The model, its gradients averaged over all processes; the first one's weights in each."""
    return DistributedDataParallel(model) if my_share()[1] > 1 else model


def shared_step(
    model: nn.Module,
    optimizer: Optimizer,
    images: Tensor,
    labels: Tensor,
    label_smoothing: float,
    scaler: torch.amp.GradScaler,
    amp: bool,
    clip: float | None = None,
) -> Tensor:
    """As `train_step`, for this process's share of a batch; all take the step of the whole batch.

    Shares differ in size where a batch does not divide evenly. The gradients' average is that of
    the whole batch only if each counts by its share. One process alone has all of it, weight 1.

    Args:
        model: from `wrap`.
        images, labels: (B, C, H, W) and (B,); B may be 0.
        scaler, amp: see `vit_steps.training.devices`.
        clip: the longest that the gradient of all weights together may be.

    Returns:
        The mean loss of the share, without a gradient.
    """
    mine = torch.tensor(float(len(labels)), device=labels.device)
    weight = mine * my_share()[1] / total(mine)
    if not len(labels):  # all must take part: one black image, which counts nothing
        images, labels = images.new_zeros(1, *images.shape[1:]), labels.new_zeros(1)
    with autocast(images.device, amp):
        logits = model(images)
    if amp:
        logits = logits.float()
    loss = F.cross_entropy(logits, labels, label_smoothing=label_smoothing)
    optimizer.zero_grad()
    scaler.scale(loss * weight).backward()
    if clip is not None:
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), clip)
    scaler.step(optimizer)
    scaler.update()
    return loss.detach()
