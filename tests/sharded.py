"""What torchrun runs for test_scale.py: three steps of a model cut in pieces.

    python -m torch.distributed.run --nproc-per-node 2 sharded.py FILE

Each process takes its half of a batch. FILE gets the losses of the whole batches and the whole
weights. In one process, without torchrun, the model stays whole. In 64 bits, so that rounding stays
far below what a mistake would make; by SGD, since AdamW would turn the rounding of a gradient that
is 0, such as that of a key's bias, into a step.
"""

import os
import sys

import torch
import torch.distributed as dist
from tiny_training import pictures, tiny
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F

from vit_steps.scale import checkpoint_blocks

torch.set_default_dtype(torch.float64)
number, processes = 0, 1
model = tiny(depth=3).double()
numbers = sum(p.numel() for p in model.parameters())
names = [name for name, _ in model.named_parameters()]
if dist.is_torchelastic_launched():
    dist.init_process_group("gloo")
    number, processes = dist.get_rank(), dist.get_world_size()
    model = checkpoint_blocks(model)
    for part in (*model.blocks, model):
        fully_shard(part)
    held = sum(p.to_local().numel() for p in model.parameters())
    assert held <= 0.6 * numbers, (held, numbers)
assert [name for name, _ in model.named_parameters()] == names

data = pictures(24)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
losses = []
for images, labels in zip(data[:][0].split(8), data.labels.split(8), strict=True):
    share = slice(number, None, processes)
    loss = F.cross_entropy(model(images[share].double()), labels[share])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss = loss.detach()
    if processes > 1:
        dist.all_reduce(loss)
    losses.append(loss / processes)

state = model.state_dict()
if processes > 1:
    state = {name: piece.full_tensor() for name, piece in state.items()}  # all must take part
if number == 0:
    torch.save({"losses": torch.stack(losses), "state": state}, sys.argv[1])
if processes > 1:
    dist.barrier()
    # PyTorch's caches keep the group, which dist.destroy_process_group does not end: its threads go
    # on. One that lets go of the last sum while Python ends is ended by it, and SIGABRT follows. So
    # Python does not end, the process does.
    os._exit(0)
