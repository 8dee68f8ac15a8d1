"""Compare our speed with peers: `python -m benchmarks.speed`, some ten minutes.

The models of peers.py run in turns, each once a turn, in a random order, so that a busy machine
slows all of them; so a turn gives a pair, and a ratio of its seconds. Printed are the ratios'
median and its 95% interval, ours over each peer's: below 1 we are faster. Of the cases
"forward-small" and "backward" against transformers, whose attention is fused, the interval's lower
end should be at most 1.03.
"""

import os
import random
import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable
from statistics import median

import torch
from scipy.stats import quantile_test
from torch import nn
from torch.optim import AdamW
from tqdm import tqdm

from benchmarks.peers import MODELS, random_images
from vit_steps import ViTConfig
from vit_steps.training import decay_groups, train_step

# Linux' own allocator hands large tensors back to the system and asks for them anew, which costs by
# chance a few hundredths. These settings make it keep them, as jemalloc and tcmalloc do.
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": "4000000000", "MALLOC_MMAP_THRESHOLD_": "1000000000"}
LIMIT = 1.03

Run = Callable[[], object]


def forward(model: nn.Module, config: ViTConfig, batch: int) -> Run:
    """Make a run of the forward pass, without gradients."""
    images = random_images(config, batch)
    model.eval()
    return torch.no_grad()(lambda: model(images))


def backward(model: nn.Module, config: ViTConfig, batch: int) -> Run:
    """Make a run of the forward and the backward pass."""
    images = random_images(config, batch)
    model.train()

    def run() -> None:
        model.zero_grad()
        model(images).sum().backward()

    return run


def training_step(model: nn.Module, config: ViTConfig, batch: int) -> Run:
    """Make a run of lesson 07's training step, its optimizer's too."""
    images, labels = random_images(config, batch), torch.randint(config.num_classes, (batch,))
    optimizer = AdamW(decay_groups(model.train(), weight_decay=0.05), lr=1e-3, fused=True)
    return lambda: train_step(model, optimizer, images, labels)


BASE, LARGE = ViTConfig.preset("B/16"), ViTConfig.preset("B/16", image_size=384)
TINY, SMALL = ViTConfig.preset("Ti/16"), ViTConfig.preset("S/16")
DIGITS = ViTConfig(8, 2, 1, 10, embed_dim=48, depth=3, num_heads=4)  # lesson 07's
CASES = {  # name: title, what is run, sizes, batch
    "forward-1": ("B/16 forward, batch 1", forward, BASE, 1),
    "forward-8": ("B/16 forward, batch 8", forward, BASE, 8),
    "forward-384": ("B/16 forward at 384, batch 1", forward, LARGE, 1),
    "forward-small": ("S/16 forward, batch 8", forward, SMALL, 8),
    "backward": ("Ti/16 forward and backward, batch 8", backward, TINY, 8),
    "backward-small": ("S/16 forward and backward, batch 8", backward, SMALL, 8),
    "digits": ("lesson 07's training step, batch 64", training_step, DIGITS, 64),
}


def measure(case: str, turns: int) -> dict[str, list[float]]:
    """Measure for each peer the ratios of our seconds to its own, a turn each, after a first."""
    title, kind, config, batch = CASES[case]
    runs = {name: kind(make(config), config, batch) for name, make in MODELS.items()}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in tqdm(range(turns + 1), desc=title, leave=False):
        for name in random.sample(list(runs), len(runs)):
            start = time.perf_counter()
            runs[name]()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    ours = seconds.pop("vit_steps")
    return {
        name: [us / them for us, them in zip(ours, theirs, strict=True)]
        for name, theirs in seconds.items()
    }


def as_text(case: str, ratios: dict[str, list[float]]) -> str:
    """Write a line for each peer; where there is a limit, whether ours keeps to it."""
    lines = [f"{CASES[case][0]}: ours to"]
    for name, values in ratios.items():
        low, high = quantile_test(values, p=0.5).confidence_interval(0.95)
        line = f"  {name:16} {median(values):.3f} ({low:.3f} to {high:.3f})"
        if name == "transformers" and case in ("forward-small", "backward"):
            line += f", at most {LIMIT} from below: {'yes' if low <= LIMIT else 'NO'}"
        lines.append(line)
    return "\n".join(lines)


def main() -> None:
    """Measure the cases that the command asks for, and print each when it is there."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=30, help="of each peer, at least 6; else 30")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=[*CASES], metavar="CASE")
    options = parser.parse_args()
    if sys.platform == "linux" and not KEEP_MEMORY.items() <= os.environ.items():
        os.environ.update(KEEP_MEMORY)  # which is read when a process starts
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.speed", *sys.argv[1:]])
    torch.manual_seed(0)
    random.seed(0)
    for case in options.cases:
        print(as_text(case, measure(case, options.turns)), flush=True)


if __name__ == "__main__":
    main()
