"""Lesson 07: what a training leaves behind after each epoch, and how it goes on from there."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from torch import Tensor, nn
from torch.optim import Optimizer

from .checkpoints import read_checkpoint, weights_of, write_checkpoint


@dataclass
class Checkpoint:
    """All that a training needs to go on, in a folder."""

    folder: Path  # of `last.safetensors` and `best.safetensors`
    optimizer: Optimizer
    scaler: torch.amp.GradScaler  # both remember something from step to step
    run: dict[str, Any]  # what would make it another run if it differed; JSON
    metadata: dict[str, Any]  # what the files say of the weights, as `describe` makes it

    def save(self, model: nn.Module, history: dict, best: bool) -> None:
        """Write `best.safetensors`, if this epoch is the best so far, then `last.safetensors`.

        In this order, so that a crash between the two loses nothing: resumed from the epoch before,
        the training comes to the same best epoch again. The last one also holds what the optimizer
        remembers.
        """
        tensors, metadata = weights_of(model), self.metadata | dict(history=history)
        if best:
            write_checkpoint(self.folder / "best.safetensors", tensors, metadata)
        state, numbers = {}, {}
        for i, values in self.optimizer.state_dict()["state"].items():
            for key, value in values.items():
                (state if isinstance(value, Tensor) else numbers)[f"optimizer.{i}.{key}"] = value
        metadata |= dict(run=self.run, optimizer=numbers, scaler=self.scaler.state_dict())
        write_checkpoint(self.folder / "last.safetensors", tensors | state, metadata)

    def load(self, model: nn.Module) -> dict[str, Any]:
        """Bring all to where `last.safetensors` was written; give the history up to there.

        Without that file nothing changes. ValueError where it cannot be read, or is of another run.
        """
        path = self.folder / "last.safetensors"
        if not path.exists():
            return {}
        tensors, metadata = read_checkpoint(path)
        if "run" not in metadata:
            raise ValueError(f"{path} holds weights, but no run to go on with; give another folder")
        before, now = metadata["run"], json.loads(json.dumps(self.run, default=index))
        names = [name for name in now | before if before.get(name) != now.get(name)]
        if names:
            changes = "; ".join(f"{n} was {before.get(n)!r}, is {now.get(n)!r}" for n in names)
            raise ValueError(
                f"{path} is of another run ({changes}); give another folder, or what it was "
                "trained with (other data: start a new run from load_model, or by --from)"
            )
        weights, state = {}, {}
        for name, value in (tensors | metadata["optimizer"]).items():
            match name.split(".", 2):
                case "optimizer", number, key:
                    state.setdefault(int(number), {})[key] = value
                case _:
                    weights[name] = value
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})
        self.scaler.load_state_dict(metadata["scaler"])
        set_weights(model, weights)
        return metadata["history"]


def set_weights(model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Give a model, compiled or not, the weights that `weights_of` named."""
    names = zip(model.state_dict(), weights_of(model), strict=True)
    model.load_state_dict({full: weights[name] for full, name in names})


@contextmanager
def own_folder(folder: Path) -> Iterator[None]:
    """Make the folder if it is not there, keep other runs out of it, and sweep it.

    The lock is the system's, on a file `.lock` in it; a run that is killed leaves it open.
    ValueError where it cannot be made or written to, or another run is at work in it.
    """
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        locked = lock.acquire()
    except Timeout:
        advice = "wait for its end, or give another folder"
        raise ValueError(f"{folder} is in use by another training; {advice}") from None
    except (OSError, NotImplementedError) as error:  # the latter where nothing can be locked
        raise ValueError(f"{folder} cannot be written to: {error}") from error
    with locked:
        for half in folder.glob("*.safetensors.*.half"):  # of a run that was killed
            half.unlink(missing_ok=True)
        yield
