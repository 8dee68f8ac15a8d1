"""The measurements that lesson 13 draws: `python -m tests.bench_lesson`, some minutes.

It writes vit_course/plots/measured.json, which speed.py beside it draws; what tests/bench_scale.py
and tests/bench_parts.py wrote there stays. Only ratios and shares are kept, no times: medians, most
with the quartiles around them, over turns as bench_runs.py takes them. All runs in one thread, but
where another number is named. Nothing else should run meanwhile.
"""

import argparse
import json
import os
import platform
import random
import tempfile
from pathlib import Path
from statistics import median

import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.optim import AdamW
from torch.utils.data import DataLoader, Dataset
from torch.utils.flop_counter import FlopCounterMode

import vit_steps
from tests import bench_processes
from tests.bench_forward import by_batch, by_part, by_tokens, calls, small_changes
from tests.bench_runs import Run, keep_memory, peak, some_images, spread, take_turns, whole_step
from vit_course.plots import speed
from vit_steps import ViT, ViTConfig
from vit_steps.images import load_image, normalize
from vit_steps.scale import accumulated_step, checkpoint_blocks, kept_bytes, merging
from vit_steps.training import decay_groups, evaluate, load_model, train_step
from vit_steps.training.data import scattered

PACKAGE = Path(vit_steps.__file__).parent
DIGITS = 4  # of each number that is kept

# Fewer tokens, less memory, more processes --------------------------------------------------------


def by_merging(turns: int, most: int = 4, canvases: int = 2000, batch: int = 256) -> dict:
    """Time, accuracy and work of the scattered digits' model with r tokens merged in each block."""
    model = load_model(PACKAGE / "weights" / "scattered.safetensors").eval()
    data, images = scattered(canvases, seed=1, held_out=True), some_images(model.config, batch)
    models = {f"merge {r} in each block": merging(model, r).eval() for r in range(most + 1)}
    runs = {name: calls(m, images) for name, m in models.items()}
    taken = take_turns(runs | {"model": calls(model, images)}, turns, "merging")
    return {
        "what": f"scattered digits, batch {batch}",
        "rows": {name: spread(taken[name], taken["model"]) for name in models},
        "canvases": canvases,
        "accuracy": {name: evaluate(m, data)[1] for name, m in models.items()},
        "work": {
            name: operations(m, images) / operations(model, images) for name, m in models.items()
        },
    }


def operations(model: nn.Module, images: Tensor) -> int:
    """Operations of all matrix products of a forward pass, those that find the pairs too."""
    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        model(images)
    return counter.get_total_flops()


def less_memory(c: ViTConfig, what: str, turns: int, batch: int = 16, parts: int = 4) -> dict:
    """A training step's time, bytes kept for backward and peak, over those of the plain step."""
    plain, checkpointed, pieces = ViT(c).train(), checkpoint_blocks(ViT(c)).train(), ViT(c).train()
    images, labels = some_images(c, batch), torch.randint(c.num_classes, (batch,))
    optimizer = AdamW(decay_groups(pieces, weight_decay=0.05), lr=1e-3, fused=True)
    checkpointing, accumulated = "checkpointing", f"the batch in {parts} pieces"
    runs: dict[str, Run] = {
        "plain": whole_step(plain, c, batch),
        checkpointing: whole_step(checkpointed, c, batch),
        accumulated: lambda: accumulated_step(pieces, optimizer, images, labels, parts),
    }
    kept = {
        "plain": kept_bytes(plain, images),
        checkpointing: kept_bytes(checkpointed, images),
        accumulated: kept_bytes(pieces, images.tensor_split(parts)[0]),
    }
    peaks = {name: peak(run) for name, run in runs.items()}
    taken = take_turns(runs, turns, what)
    changed = (checkpointing, accumulated)
    return {
        "what": f"{what}, batch {batch}",
        "rows": {name: spread(taken[name], taken["plain"]) for name in changed},
        "kept": {name: kept[name] / kept["plain"] for name in changed},
        "peak": {name: peaks[name] / peaks["plain"] for name in changed},
    }


def in_processes(turns: int, batch: int = bench_processes.BATCH) -> dict:
    """A training step of the digits model in two processes of one thread, over that in one."""
    seconds = bench_processes.measure(turns, batch)
    ratio = spread(seconds[bench_processes.TWO], seconds[bench_processes.ONE])
    return {"what": f"digits training step, batch {batch}", "rows": {"two processes": ratio}}


class Photos(Dataset):
    """Files of pictures, each opened when it is asked for."""

    def __init__(self, folder: Path):
        self.files = sorted(folder.glob("*.jpg"))

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        return normalize(load_image(self.files[i], 224)), i % 2


def by_workers(turns: int, pictures: int = 512, batch: int = 32) -> dict:
    """An epoch on a folder of photos, read ahead by one and by two processes or when needed.

    The model is small, so that reading is a good part of the epoch; "what" says which.
    """
    c = ViTConfig(224, 32, num_classes=2, embed_dim=128, depth=6, num_heads=4)
    model = ViT(c).train()
    optimizer = AdamW(decay_groups(model, weight_decay=0.05), lr=1e-3, fused=True)
    with tempfile.TemporaryDirectory() as place:
        for number in range(pictures):
            pixels = torch.randint(256, (12, 16, 3), dtype=torch.uint8).numpy()
            Image.fromarray(pixels).resize((512, 384)).save(Path(place) / f"{number:03}.jpg")
        data = Photos(Path(place))

        def epoch(workers: int) -> Run:
            def run() -> None:
                for images, labels in DataLoader(data, batch, num_workers=workers):
                    train_step(model, optimizer, images, labels)

            return run

        def reading() -> None:
            for _ in DataLoader(data, batch):
                pass

        names = {0: "no worker", 1: "one worker", 2: "two workers"}
        runs = {name: epoch(n) for n, name in names.items()}
        taken = take_turns(runs | {"reading": reading}, turns, "workers")
    share = median(spread(taken["reading"], taken["no worker"]))
    return {
        "what": f"an epoch on {len(data)} photos, of which reading takes {share:.0%}",
        "rows": {name: spread(taken[name], taken["no worker"]) for n, name in names.items() if n},
    }


# All of it ---------------------------------------------------------------------------------------


def rounded(value: object) -> object:
    """The same with each float to a few digits: more would be chance."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    return [rounded(inner) for inner in value] if isinstance(value, list) else value


def everything(turns: int) -> dict:
    torch.set_num_threads(1)
    sizes = {size: ViTConfig.preset(size) for size in ("Ti/16", "S/16", "B/16")}
    return {
        "made": {
            "turns": turns,
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "processor": platform.machine(),
            "python": platform.python_version(),
            "torch": torch.__version__,
        },
        "parts": by_part({size: sizes[size] for size in ("Ti/16", "B/16")}, turns),
        "tokens": by_tokens(turns),
        "batches": by_batch(sizes["Ti/16"], "Ti/16 forward", turns),
        "ratios": {
            "forward": small_changes(sizes["S/16"], "S/16 forward", turns),
            "merging": by_merging(turns),
            "training": less_memory(sizes["Ti/16"], "Ti/16 training step", turns),
            "processes": in_processes(20 * turns),
            "reading": by_workers(turns),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=10, help="of each run (default 10)")
    parser.add_argument("--out", type=Path, default=speed.FILE, metavar="FILE")
    options = parser.parse_args()
    keep_memory("tests.bench_lesson")
    torch.manual_seed(0)
    random.seed(0)
    kept = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
    measured = {name: kept[name] for name in ("scale", "learning") if name in kept}
    measured |= rounded(everything(options.turns))
    text = json.dumps(measured, indent=1, ensure_ascii=False)
    options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
