"""Compare our speed and memory with peers: `python -m tests.bench`. Prints ratios, not times.

The peers are bench_peers.py's, those of them that can be imported (`pip install timm vit-pytorch
transformers`). They run as bench_runs.py says: turn by turn, and the median of the turns' ratios
counts. The floor is the matrix products alone, without biases, norms, softmax or GELU. Memory is
what autograd holds between forward and backward, the parameters apart. A control, which is no peer,
is ours with the equation in place of fused attention. Below each case stand the bars that it is
held to.
"""

import argparse
import random
from copy import deepcopy

import torch
from torch import Tensor

from tests.bench_peers import build
from tests.bench_runs import (
    DIGITS,
    backward,
    forward,
    keep_memory,
    kept,
    products,
    spread,
    take_turns,
    whole_step,
)
from vit_steps import MultiHeadAttention, ViT, ViTConfig

FLOOR = "bare matrix products"
OURS = "vit_steps"
EXPLICIT = "vit_steps, explicit"  # attention by the equation

BASE, LARGE = ViTConfig.preset("B/16"), ViTConfig.preset("B/16", image_size=384)
TINY, SMALL = ViTConfig.preset("Ti/16"), ViTConfig.preset("S/16")
CASES = {  # name: what it is, how it is run, model, batch, turns a round
    "forward-1": ("B/16 forward, batch 1", forward, BASE, 1, 8),
    "forward-8": ("B/16 forward, batch 8", forward, BASE, 8, 1),
    "forward-384": ("B/16 forward at 384, batch 1", forward, LARGE, 1, 2),
    "forward-small": ("S/16 forward, batch 8", forward, SMALL, 8, 1),
    "backward": ("Ti/16 forward and backward, batch 8", backward, TINY, 8, 1),
    "backward-small": ("S/16 forward and backward, batch 8", backward, SMALL, 8, 1),
    "digits": ("lesson 07's training step, batch 64", whole_step, DIGITS, 64, 30),
    "memory": ("Ti/16 memory kept for backward, batch 8", kept, TINY, 8, 0),
    "memory-384": ("B/16 at 384 memory kept for backward, batch 1", kept, LARGE, 1, 0),
}

# At most so many times what each of these needs, in these cases.
LIBRARIES = ("timm", "transformers", "vit-pytorch")
FORWARD = ("forward-1", "forward-8", "forward-384", "forward-small")
BARS = (
    (FORWARD, LIBRARIES, 1.00),
    (("backward", "backward-small", "digits"), LIBRARIES, 1.02),
    (FORWARD, ("torch's encoder",), 1.05),  # its native path, which training does not take
    (("forward-1", "forward-8"), (FLOOR,), 1.08),
)


def measure(case: str, rounds: int) -> dict[str, list[float]]:
    """What ours needs over what each other needs: quartiles of the ratios, turn by turn."""
    what, kind, config, batch, turns = CASES[case]
    models = build(config)
    if kind is kept:
        needed = {name: [float(kept(model, config, batch))] for name, model in models.items()}
    else:
        models[EXPLICIT] = explicit(models[OURS])
        runs = {name: kind(model, config, batch) for name, model in models.items()}
        if kind is forward:
            runs[FLOOR] = products(config, batch)
        needed = take_turns(runs, turns * rounds, what)
    return {name: spread(needed[OURS], values) for name, values in needed.items()}


def explicit(model: ViT) -> ViT:
    """A copy whose attention is the equation."""
    model = deepcopy(model)
    for block in model.blocks:
        block.attn.__class__ = Equation
    return model


class Equation(MultiHeadAttention):
    """Attention by the equation, whose weights are not kept."""

    def forward(self, x: Tensor, mask: Tensor | None = None, return_attention: bool = False):
        return super().forward(x, mask, return_attention=True)[0]


def as_text(case: str, found: dict[str, list[float]]) -> str:
    """A line for each other model, then one for each bar: by the median, whether ours meets it."""
    lines = [f"{CASES[case][0]}: ours to"]
    lines += [f"  {n:22}{mid:.3f} ({low:.2f}–{high:.2f})" for n, (low, mid, high) in found.items()]
    for cases, peers, most in BARS:
        for peer in peers if case in cases else ():
            ratio = found[peer][1] if peer in found else None
            word = "not measured" if ratio is None else "met" if ratio <= most else "missed"
            lines.append(f"  bar: at most {most:.2f} of {peer}: {word}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10, help="turns of each peer (default 10)")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=[*CASES], metavar="CASE")
    options = parser.parse_args()
    keep_memory("tests.bench")
    torch.manual_seed(0)
    random.seed(0)
    for case in options.cases:
        print(as_text(case, measure(case, options.rounds)), flush=True)


if __name__ == "__main__":
    main()
