"""What torchrun runs for test_processes.py: a small training, which a process may not survive.

    python -m torch.distributed.run --nproc-per-node 2 several.py FOLDER LIFETIME

In 64 bits, so that rounding stays far below what a mistake would make. The last batch has one
image, and so not one for each process. After LIFETIME epochs the last process is killed, as a
machine may do; 0 lets it live, and so does a restart.
"""

import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from tiny_training import pictures, tiny

from vit_steps import training
from vit_steps.training.__main__ import joined

folder, lifetime = Path(sys.argv[1]), int(sys.argv[2])
torch.set_default_dtype(torch.float64)


def report(history):
    print(f"epoch {len(history)}", flush=True)
    first_life = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
    if len(history) == lifetime and first_life:
        dist.barrier()  # until the first process, which writes the checkpoint, has reported, too
        if rank == size - 1:
            os.kill(os.getpid(), signal.SIGKILL)


with joined(torch.device("cpu")):
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    model = tiny(seed=rank)  # the first one's weights count
    options = dict(epochs=4, batch_size=8, progress=False, device="cpu")
    options |= dict(augment=training.augment_photos, clip=0.5, folder=folder / "run")
    training.fit(model, pictures(17), pictures(9, 1), report=report, **options)
    torch.save(model.state_dict(), folder / f"weights_{rank}.pt")
