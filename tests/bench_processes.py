"""Two processes of one thread against one: the digits model's training step on a large batch.

    torchrun --nproc-per-node 2 -m tests.bench_processes TURNS BATCH FILE

Both take their turns in one run: both processes, each with its half of the batch, or the first one
alone with the whole batch, while the other waits and computes nothing. The first writes the seconds
of each turn to FILE.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch.optim import AdamW

from tests.bench_runs import DIGITS, some_images
from vit_steps import ViT
from vit_steps.training import decay_groups, train_step
from vit_steps.training.learner import Learner
from vit_steps.training.processes import joined, my_share, wait

ROOT = Path(__file__).parents[1]
BATCH = 1024
ONE, TWO = "one process", "two processes"


def measure(turns: int, batch: int = BATCH) -> dict[str, list[float]]:
    """Start the processes, and give the seconds of each turn."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "seconds.json"
        line = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        line += ["--nproc-per-node=2", "-m", "tests.bench_processes"]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        words = [*line, str(turns), str(batch), str(file)]
        subprocess.run(words, cwd=ROOT, env=environment, check=True)
        return json.loads(file.read_text("utf-8"))


def main(turns: int, batch: int, file: Path) -> None:
    cpu = torch.device("cpu")
    with joined(cpu):
        mine, processes = my_share()
        torch.manual_seed(0)
        random.seed(0)  # the order of turns, the same in both
        images, labels = some_images(DIGITS, batch), torch.randint(DIGITS.num_classes, (batch,))
        share = slice(mine, None, processes)
        alone, learner = ViT(DIGITS), Learner(ViT(DIGITS), None, 1e-3, 0.05)
        optimizer = AdamW(decay_groups(alone, weight_decay=0.05), lr=1e-3, fused=True)

        def one() -> None:
            if mine == 0:
                train_step(alone, optimizer, images, labels)

        def two() -> None:
            learner.step(images[share], labels[share])

        runs = {ONE: one, TWO: two}
        seconds = {name: [] for name in runs}
        for turn in range(turns + 1):
            for name in random.sample(list(runs), len(runs)):
                wait()  # both begin together
                start = time.perf_counter()
                runs[name]()
                if turn:  # the first warms up
                    seconds[name].append(time.perf_counter() - start)
        if mine == 0:
            file.write_text(json.dumps(seconds), encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
