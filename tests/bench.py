"""Compare our speed and memory with peers: `python -m tests.bench`. Prints ratios, never times.

The peers are bench_peers.py's, those of them that can be imported (`pip install timm vit-pytorch
transformers`). They run turn by turn, each turn in another order, so that a busy machine slows them
alike; each turn gives ratios, and their median and quartiles count. The floor is the matrix
products alone, without biases, norms, softmax or GELU. Memory is what autograd keeps between
forward and backward, the parameters themselves apart.

Linux' own allocator hands large tensors back to the system and asks for them anew, which costs by
chance a few hundredths, not always to the same peer. The bench starts itself with an allocator
that keeps them, as the better ones do (jemalloc, tcmalloc); `--plain-malloc` leaves it as it is.
"""

import argparse
import json
import os
import platform
import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from statistics import median, quantiles

import torch
from torch import Tensor, nn
from torch.optim import AdamW
from tqdm import tqdm

from tests.bench_peers import build
from vit_steps import ViTConfig, grid_size
from vit_steps.training import decay_groups, train_step

KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": "4000000000", "MALLOC_MMAP_THRESHOLD_": "1000000000"}
FLOOR = "bare matrix products"
OURS = "vit_steps"


# What is run -------------------------------------------------------------------------------------


def products(c: ViTConfig, batch: int) -> Callable[[], None]:
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


def forward(model: nn.Module, c: ViTConfig, batch: int) -> Callable[[], None]:
    images = some_images(c, batch)
    model.eval()

    @torch.no_grad()
    def run() -> None:
        model(images)

    return run


def backward(model: nn.Module, c: ViTConfig, batch: int) -> Callable[[], None]:
    images = some_images(c, batch)
    model.train()

    def run() -> None:
        model.zero_grad()
        model(images).sum().backward()

    return run


def whole_step(model: nn.Module, c: ViTConfig, batch: int) -> Callable[[], None]:
    images = some_images(c, batch)
    labels = torch.randint(c.num_classes, (batch,))
    optimizer = AdamW(decay_groups(model.train(), weight_decay=0.05), lr=1e-3, fused=True)

    def run() -> None:
        train_step(model, optimizer, images, labels)

    return run


def kept(model: nn.Module, c: ViTConfig, batch: int) -> int:
    """Bytes that autograd keeps for backward, each storage counted once, parameters not."""
    images = some_images(c, batch)
    parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
    sizes = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor  # kept by the graph, so that no other storage gets its address

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        logits = model.train()(images)
    del logits
    return sum(sizes.values())


BASE, LARGE = ViTConfig.preset("B/16"), ViTConfig.preset("B/16", image_size=384)
TINY = ViTConfig.preset("Ti/16")
DIGITS = ViTConfig(8, 2, 1, 10, embed_dim=48, depth=3, num_heads=4)
CASES = {  # name: what it is, how it is run, model, batch, turns a round
    "forward-1": ("B/16 forward, batch 1", forward, BASE, 1, 3),
    "forward-8": ("B/16 forward, batch 8", forward, BASE, 8, 1),
    "forward-384": ("B/16 forward at 384, batch 1", forward, LARGE, 1, 1),
    "backward": ("Ti/16 forward and backward, batch 8", backward, TINY, 8, 1),
    "digits": ("lesson 07's training step, batch 64", whole_step, DIGITS, 64, 30),
    "memory": ("Ti/16 memory kept for backward, batch 8", kept, TINY, 8, 0),
    "memory-384": ("B/16 at 384 memory kept for backward, batch 1", kept, LARGE, 1, 0),
}


# How it is measured ------------------------------------------------------------------------------


def take_turns(runs: dict[str, Callable[[], None]], turns: int, what: str) -> dict[str, list]:
    """Seconds of each one's runs, turn by turn, after one turn to warm up."""
    seconds = {name: [] for name in runs}
    for turn in tqdm(range(turns + 1), desc=what, leave=False):
        for name in random.sample(list(runs), len(runs)):
            start = time.perf_counter()
            runs[name]()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def measure(case: str, rounds: int) -> tuple[dict[str, list], list[str]]:
    """What each peer needs, seconds of each turn or bytes once, and the names of absent peers."""
    what, kind, config, batch, turns = CASES[case]
    models, absent = build(config)
    if kind is kept:
        return {name: [kept(model, config, batch)] for name, model in models.items()}, absent
    runs = {name: kind(model, config, batch) for name, model in models.items()}
    if kind is forward:
        runs[FLOOR] = products(config, batch)
    return take_turns(runs, turns * rounds, what), absent


def spread(values: list[float], others: list[float]) -> list[float]:
    """First quartile, median and third quartile of the ratios, turn by turn."""
    ratios = [value / other for value, other in zip(values, others, strict=True)]
    return quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3


def ratios(needed: dict[str, list]) -> dict[str, dict[str, list[float]]]:
    """For each peer its ratio to the best model, and ours to it, as `spread` gives them."""
    models = [name for name in needed if name != FLOOR]
    best = min(models, key=lambda name: median(needed[name]))
    return {
        name: {
            "of_the_best": spread(values, needed[best]),
            "ours_of_it": spread(needed[OURS], values),
        }
        for name, values in needed.items()
    }


# How it is told ----------------------------------------------------------------------------------


def as_text(result: dict) -> str:
    lines = [
        f"{result['case']}: {result['turns']} turns" if result["turns"] > 1 else result["case"]
    ]
    lines.append(f"  {'':22}{'to the best model':>22}{'ours to it':>22}")
    for name, row in result["ratios"].items():
        columns = ""
        for low, middle, high in (row["of_the_best"], row["ours_of_it"]):
            text = f"{middle:.3f}"
            if result["turns"] > 1:
                text += f" ({low:.2f}–{high:.2f})"
            columns += f"{text:>22}"
        lines.append(f"  {name:22}{columns}")
    if result["absent"]:
        lines.append(f"  not installed: {', '.join(result['absent'])}")
    return "\n".join(lines)


def draw(results: list[dict], path: Path) -> None:
    """A panel for each case: each peer's ratio to the best, a line from quartile to quartile."""
    from matplotlib.figure import Figure

    rows = [len(result["ratios"]) for result in results]
    figure = Figure(figsize=(8, 0.3 * sum(rows) + 0.7 * len(rows) + 0.5), layout="constrained")
    panels = figure.subplots(len(rows), sharex=True, squeeze=False, height_ratios=rows)[:, 0]
    for panel, result in zip(panels, results, strict=True):
        for i, (name, row) in enumerate(result["ratios"].items()):
            low, middle, high = row["of_the_best"]
            color, marker = ("#D55E00", "D") if name == OURS else ("#0072B2", "o")
            inside = "white" if name == FLOOR else color
            panel.plot([low, high], [i, i], color=color, linewidth=3, alpha=0.5)
            panel.plot(middle, i, marker, color=color, markerfacecolor=inside, markersize=7)
            right = (1.02, i)  # beside the panel, where nothing else is drawn
            panel.annotate(f"{middle:.2f}", right, xycoords=("axes fraction", "data"), va="center")
        panel.set_yticks(range(len(result["ratios"])), list(result["ratios"]))
        panel.set_ylim(len(result["ratios"]) - 0.5, -0.5)
        panel.axvline(1, color="0.6", linewidth=1, zorder=0)
        panel.set_title(result["case"], fontsize=11, loc="left")
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("ratio to the best model: median, and the middle half of the turns")
    figure.savefig(path, dpi=150)


def versions() -> dict[str, str]:
    """Of torch and of the peers that are installed."""
    found = {}
    for name in ("torch", "timm", "transformers", "vit-pytorch"):
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10, help="turns of each peer (default 10)")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), metavar="CASE")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the ratios there")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the ratios there")
    parser.add_argument("--plain-malloc", action="store_true", help="leave the allocator as it is")
    options = parser.parse_args()
    restart = sys.platform == "linux" and not options.plain_malloc
    if restart and not KEEP_MEMORY.items() <= os.environ.items():
        os.environ.update(KEEP_MEMORY)  # read when a process starts, so start again
        os.execv(sys.executable, [sys.executable, "-m", "tests.bench", *sys.argv[1:]])
    torch.manual_seed(0)
    random.seed(0)
    results = []
    for case in options.cases:
        needed, absent = measure(case, options.rounds)
        turns = len(needed[OURS])
        result = {"case": CASES[case][0], "turns": turns, "absent": absent}
        results.append(result | {"ratios": ratios(needed)})
        print(as_text(results[-1]), flush=True)
    if options.json:
        told = {"machine": platform.machine(), "threads": torch.get_num_threads()}
        told |= {"versions": versions(), "results": results}
        options.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    if options.picture:
        draw(results, options.picture)


if __name__ == "__main__":
    main()
