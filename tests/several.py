"""What torchrun runs for test_processes.py: a small training, which a process may not survive.

    python -m torch.distributed.run --nproc-per-node 2 several.py FOLDER LIFETIME

In 64 bits, so that rounding stays far below what a mistake would make. The last batch has one
image, and so not one for each process. After LIFETIME epochs the last process is killed, as a
machine may do; 0 lets it live, and so does a restart.
"""

import json
import os
import signal
import sys
from pathlib import Path

import torch
from tiny_training import pictures, tiny

from vit_steps import files, training
from vit_steps.training import processes
from vit_steps.training.measuring import measure

folder, lifetime = Path(sys.argv[1]), int(sys.argv[2])
torch.set_default_dtype(torch.float64)
writes, give_name = [], files.give_name


def count(half, path):
    writes.append(path)
    give_name(half, path)


def told(history):
    print(f"epoch {len(history)}", flush=True)
    if len(history) == lifetime and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
        last = processes.my_share()[1] - 1
        os.kill(int((folder / f"process_{last}").read_text()), signal.SIGKILL)


files.give_name = count
with processes.joined(torch.device("cpu")):
    number, _ = processes.my_share()
    (folder / f"process_{number}").write_text(str(os.getpid()))
    processes.wait()
    model = tiny(seed=number)  # the first one's weights count
    options = dict(epochs=4, batch_size=8, progress=False, device="cpu", average=0.5)
    training.fit(model, pictures(17), pictures(9, 1), folder=folder / "run", report=told, **options)
    found = measure(model, pictures(29, 2), batch_size=7)  # the last batch has one image
    assert training.evaluate(model, pictures(29, 2), 7) == (found.loss, found.accuracy)
    few = measure(model, pictures(2, 3))  # for a third process none
    counts = torch.stack([found.counts, few.counts]).tolist()
    (folder / f"measured_{number}").write_text(json.dumps([found.loss, counts]))
    (folder / f"writes_{number}").write_text(str(len(writes)))
threads = [file.read_text() for file in Path("/proc/self/task").glob("*/comm")]  # on Linux
(folder / f"threads_{number}").write_text("".join(threads))
