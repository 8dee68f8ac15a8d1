"""Compare our speed and memory with peers: `python -m tests.bench`. Prints ratios, not times.

The peers are bench_peers.py's, those of them that can be imported (`pip install timm vit-pytorch
transformers`). They run as bench_runs.py says: turn by turn, and the median of the turns' ratios
counts. The floor is the matrix products alone, without biases, norms, softmax or GELU. The peak is
what a run needs at once beyond parameters and optimizer, in tensors; memory kept is what autograd
holds between forward and backward, the parameters apart. Two controls, which are no peers, tell
what two of our choices cost or save: our ViT with the equation in place of fused attention, and
with that and a Linear on flat patches in place of a convolution; vit-pytorch has both. "processes"
compares two processes of one thread with one, "cuda" images per second on a CUDA card, in 16 bits;
without a card it says so.

Below a line stand the bars that it is held to. One is met where the median meets it, and not told
apart where it misses it by less than chance explains: the bar lies in the median's 95% interval.
"""

import argparse
import json
import platform
import random
from copy import deepcopy
from pathlib import Path
from statistics import median

import torch
from einops import rearrange
from torch import Tensor, nn

from tests import bench_cuda, bench_processes
from tests.bench_peers import build
from tests.bench_runs import (
    DIGITS,
    Run,
    backward,
    chance,
    forward,
    keep_memory,
    kept,
    peak,
    products,
    spread,
    take_turns,
    versions,
    whole_step,
)
from vit_steps import MultiHeadAttention, PatchEmbedding, ViT, ViTConfig, patchify

FLOOR = "bare matrix products"
OURS = "vit_steps"
EXPLICIT = "vit_steps, explicit"  # attention by the equation
LINEAR = "vit_steps, + Linear"  # and the patches by a Linear

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
OTHERS = ("processes", "cuda")

# At most so many times what each of these needs, on these lines.
LIBRARIES = ("timm", "transformers", "vit-pytorch")
FORWARD = [name for name, (_, kind, *_) in CASES.items() if kind is forward]
TRAINING = [name for name, (_, kind, *_) in CASES.items() if kind in (backward, whole_step)]
BARS = (
    (FORWARD, LIBRARIES, 1.00),
    (TRAINING, LIBRARIES, 1.02),
    (FORWARD, ("torch's encoder",), 1.05),  # its native path, which training does not take
    (("forward-1", "forward-8"), (FLOOR,), 1.08),
)
FASTER = 1.7  # two processes, at least so many times one


# How it is measured ------------------------------------------------------------------------------


def measure(case: str, rounds: int) -> dict:
    """What each peer needs in one case, as ratios, and the verdict.

    Returns:
        "case", "turns", "absent" (peers that cannot be imported), "ratios", "peak" (ours to each
        peer's, where the case takes time) and "verdict".
    """
    what, kind, config, batch, turns = CASES[case]
    models, absent = build(config)
    result = {"case": what, "turns": 1, "absent": absent}
    if kind is kept:
        needed = {name: [float(kept(model, config, batch))] for name, model in models.items()}
        return result | {"ratios": ratios(needed), "peak": {}, "verdict": []}
    ours = models[OURS]
    assert isinstance(ours, ViT)
    models |= {EXPLICIT: explicit(ours), LINEAR: explicit(ours, linear=True)}
    runs: dict[str, Run] = {name: kind(model, config, batch) for name, model in models.items()}
    peaks = {name: peak(run) for name, run in runs.items()}
    if kind is forward:
        runs[FLOOR] = products(config, batch)
    found = ratios(take_turns(runs, turns * rounds, what))
    result |= {"turns": turns * rounds, "ratios": found}
    result["peak"] = {name: peaks[OURS] / bytes_ for name, bytes_ in peaks.items()}
    return result | {"verdict": verdict(case, found)}


def explicit(model: ViT, linear: bool = False) -> ViT:
    """A copy, its attention the equation and, if `linear`, its patches through a Linear."""
    model = deepcopy(model)
    for block in model.blocks:
        block.attn.__class__ = Equation
    if linear:
        model.patch_embed = LinearPatches(model.patch_embed)
    return model


class Equation(MultiHeadAttention):
    """Attention by the equation, whose weights are not kept."""

    def forward(self, x: Tensor, mask: Tensor | None = None, return_attention: bool = False):
        return super().forward(x, mask, return_attention=True)[0]


class LinearPatches(nn.Module):
    """What `PatchEmbedding` does by a convolution, with its numbers, in lesson 01's two steps."""

    def __init__(self, embedding: PatchEmbedding):
        super().__init__()
        weight = embedding.proj.weight.detach()  # (D, C, P, P)
        self.patch_size = weight.shape[-1]
        self.proj = nn.Linear(weight[0].numel(), len(weight))
        flat = rearrange(weight, "D C p1 p2 -> D (p1 p2 C)")
        self.proj.load_state_dict({"weight": flat, "bias": embedding.proj.bias})

    def forward(self, images: Tensor) -> Tensor:
        return self.proj(patchify(images, self.patch_size))


def ratios(needed: dict[str, list[float]]) -> dict[str, dict[str, list[float]]]:
    """For each peer its ratio to the best model, and ours to it, as `spread` gives them.

    And "chance", the interval of the median of the latter.
    """
    models = [name for name in needed if name not in (FLOOR, EXPLICIT, LINEAR)]
    best = min(models, key=lambda name: median(needed[name]))
    return {
        name: {
            "of_the_best": spread(values, needed[best]),
            "ours_of_it": spread(needed[OURS], values),
            "chance": chance(needed[OURS], values),
        }
        for name, values in needed.items()
    }


def verdict(case: str, found: dict[str, dict[str, list[float]]]) -> list[str]:
    """For each bar of a case: by the median ratio, whether ours meets it."""
    lines = []
    for cases, peers, most in BARS:
        for peer in peers if case in cases else ():
            bar = f"at most {most:.2f} of {peer}"
            if peer not in found:
                lines.append(f"{bar}: not measured")
                continue
            _, ours, _ = found[peer]["ours_of_it"]
            low, high = found[peer]["chance"]
            word = f"missed by {ours - most:.3f}" if ours > most else "met"
            if low <= most < ours:
                word = f"not told apart, {low:.3f} to {high:.3f} at 95%"
            lines.append(f"{bar}: {word} ({ours:.3f})")
    return lines


def measure_processes(rounds: int, batch: int = bench_processes.BATCH) -> dict:
    """How many times as fast two processes are as one, and the verdict."""
    turns = 20 * rounds
    what = f"lesson 07's training step, batch {batch}: two processes of one thread to one"
    seconds = bench_processes.measure(turns, batch)
    faster = spread(seconds[bench_processes.ONE], seconds[bench_processes.TWO])
    short = FASTER - faster[1]
    word = "met" if short <= 0 else f"missed by {short:.3f}"
    line = f"at least {FASTER} times as many images a second: {word} ({faster[1]:.3f})"
    return {"case": what, "turns": turns, "times_as_fast": faster, "verdict": [line]}


# How it is told ----------------------------------------------------------------------------------


def as_text(result: dict) -> str:
    lines = [
        f"{result['case']}: {result['turns']} turns" if result["turns"] > 1 else result["case"]
    ]
    if "times_as_fast" in result:
        low, middle, high = result["times_as_fast"]
        lines.append(f"  {middle:.3f} ({low:.2f}–{high:.2f}) times as many images a second")
    else:
        columns = f"{'to the best model':>22}{'ours to it':>22}"
        lines.append(
            f"  {'':22}{columns}" + (f"{'peak, ours to it':>20}" if result["peak"] else "")
        )
        for name, row in result["ratios"].items():
            columns = ""
            for low, middle, high in (row["of_the_best"], row["ours_of_it"]):
                text = f"{middle:.3f}"
                if result["turns"] > 1:
                    text += f" ({low:.2f}–{high:.2f})"
                columns += f"{text:>22}"
            if name in result["peak"]:
                columns += f"{result['peak'][name]:>20.3f}"
            lines.append(f"  {name:22}{columns}")
        if result["absent"]:
            lines.append(f"  not installed: {', '.join(result['absent'])}")
    return "\n".join(lines + [f"  bar: {line}" for line in result["verdict"]])


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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [*CASES, *OTHERS]
    parser.add_argument("--rounds", type=int, default=10, help="turns of each peer (default 10)")
    parser.add_argument("--cases", nargs="+", choices=names, default=names, metavar="CASE")
    parser.add_argument("--batch", type=int, default=128, help="on CUDA (default 128)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the ratios there")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the ratios there")
    parser.add_argument("--plain-malloc", action="store_true", help="leave the allocator as it is")
    options = parser.parse_args()
    if not options.plain_malloc:
        keep_memory("tests.bench")
    torch.manual_seed(0)
    random.seed(0)
    results, card = [], None
    for case in options.cases:
        if case == "cuda":
            if not torch.cuda.is_available():
                print("cuda: left out, there is no CUDA card here", flush=True)
                continue
            card = bench_cuda.measure(torch.device("cuda"), options.rounds, options.batch)
            print(bench_cuda.as_text(card), flush=True)
            continue
        several = case == "processes"
        result = measure_processes(options.rounds) if several else measure(case, options.rounds)
        results.append(result)
        print(as_text(result), flush=True)
    if options.json:
        told = {"machine": platform.machine(), "threads": torch.get_num_threads()}
        told |= {"versions": versions(), "results": results, "cuda": card}
        options.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    if options.picture and any("ratios" in result for result in results):
        draw([result for result in results if "ratios" in result], options.picture)


if __name__ == "__main__":
    main()
