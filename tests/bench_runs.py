"""What the benchmarks run, and how they measure it: in turns, so that a busy machine slows all.

Each turn runs every one once, in another order, and gives ratios; their median and quartiles count.

Linux' own allocator hands large tensors back to the system and asks for them anew, which costs by
chance a few hundredths, not always to the same one. So a benchmark starts itself again with an
allocator that keeps them, as the better ones do (jemalloc, tcmalloc).
"""

import os
import random
import sys
import time
from collections.abc import Callable
from statistics import quantiles

import torch
from torch import Tensor, nn
from torch.optim import AdamW
from tqdm import tqdm

from vit_steps import ViTConfig, grid_size
from vit_steps.scale import kept_bytes
from vit_steps.training import decay_groups, train_step

KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": "4000000000", "MALLOC_MMAP_THRESHOLD_": "1000000000"}
QUIET = {"KINETO_LOG_LEVEL": "99", "TORCH_CPP_LOG_LEVEL": "ERROR"}  # the profiler, of what it does
DIGITS = ViTConfig(8, 2, 1, 10, embed_dim=48, depth=3, num_heads=4)  # lesson 07's

Run = Callable[[], object]


def keep_memory(module: str) -> None:
    """Start this program again, by its module's name, with an allocator that keeps its memory."""
    if sys.platform == "linux" and not KEEP_MEMORY.items() <= os.environ.items():
        os.environ.update(KEEP_MEMORY | QUIET)  # read when a process starts
        os.execv(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]])


# What is run -------------------------------------------------------------------------------------


def products(c: ViTConfig, batch: int) -> Run:
    """The matrix products of one forward pass, on random numbers of the right shapes."""
    rows, cols = grid_size(c.image_size, c.patch_size)
    D, h, P, n = c.embed_dim, c.num_heads, c.patch_size, rows * cols
    N, d, hidden = n + 1, D // h, int(D * c.mlp_ratio)
    shapes = [(D, 3 * D), (D, D), (D, hidden), (hidden, D)]
    linears = [(torch.randn(batch * N, i), torch.randn(i, o)) for i, o in shapes]
    q, k = torch.randn(batch * h, N, d), torch.randn(batch * h, d, N)
    weights, v = torch.randn(batch * h, N, N), torch.randn(batch * h, N, d)
    patches, embed = (
        torch.randn(batch * n, c.in_channels * P**2),
        torch.randn(c.in_channels * P**2, D),
    )

    def run() -> None:
        torch.mm(patches, embed)
        for _ in range(c.depth):
            for a, b in linears:
                torch.mm(a, b)
            torch.bmm(q, k)
            torch.bmm(weights, v)

    return run


def some_images(c: ViTConfig, batch: int) -> Tensor:
    rows, cols = grid_size(c.image_size, c.patch_size)
    return torch.randn(batch, c.in_channels, rows * c.patch_size, cols * c.patch_size)


def forward(model: nn.Module, c: ViTConfig, batch: int) -> Run:
    images = some_images(c, batch)
    model.eval()

    @torch.no_grad()
    def run() -> None:
        model(images)

    return run


def backward(model: nn.Module, c: ViTConfig, batch: int) -> Run:
    images = some_images(c, batch)
    model.train()

    def run() -> None:
        model.zero_grad()
        model(images).sum().backward()

    return run


def whole_step(model: nn.Module, c: ViTConfig, batch: int) -> Run:
    images = some_images(c, batch)
    labels = torch.randint(c.num_classes, (batch,))
    optimizer = AdamW(decay_groups(model.train(), weight_decay=0.05), lr=1e-3, fused=True)

    def run() -> None:
        train_step(model, optimizer, images, labels)

    return run


def kept(model: nn.Module, c: ViTConfig, batch: int) -> int:
    """Bytes that autograd keeps for backward, each storage counted once, parameters not."""
    return kept_bytes(model.train(), some_images(c, batch))


# How it is measured ------------------------------------------------------------------------------


def take_turns(runs: dict[str, Run], turns: int, what: str) -> dict[str, list[float]]:
    """Seconds of each one's runs, turn by turn, after one turn to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in tqdm(range(turns + 1), desc=what, leave=False):
        for name in random.sample(list(runs), len(runs)):
            start = time.perf_counter()
            runs[name]()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def spread(values: list[float], others: list[float]) -> list[float]:
    """First quartile, median and third quartile of the ratios, turn by turn."""
    ratios = [value / other for value, other in zip(values, others, strict=True)]
    return quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3


def peak(run: Run) -> int:
    """Bytes of tensors that are there at once in a run, gradients too, whatever the allocator does.

    What stays from the first run on, parameters and the optimizer's state, is not counted.
    """
    from torch._C._profiler import _EventType
    from torch.profiler import ProfilerActivity, profile

    run()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        run()
        run()
    changes, nodes = [], list(watched.profiler.kineto_results.experimental_event_tree())
    while nodes:
        node = nodes.pop()
        nodes += node.children
        if node.tag == _EventType.Allocation:
            what = node.extra_fields
            changes.append((node.start_time_ns, what.ptr, what.alloc_size))
    live: dict[int, int] = {}
    top = 0
    for _, place, change in sorted(changes, key=lambda change: change[0]):
        if change > 0:
            live[place] = change
        else:  # what the first run frees, the gradients before it, was not counted either
            live.pop(place, None)
        top = max(top, sum(live.values()))
    return top
