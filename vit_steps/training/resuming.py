"""Lesson 07: to stop a training, and to go on."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from operator import index
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from filelock import FileLock, Timeout
from torch import Tensor

from .checkpoints import bare, read_checkpoint, weights_of, write_checkpoint
from .learner import Learner
from .loop import History


@contextmanager
def own_folder(folder: Path) -> Iterator[None]:
    """Make the folder if it is not there, keep other runs out of it, and sweep it.

    The lock is the system's, on a file `.lock` in it; a run that is killed leaves it open.
    ValueError where it cannot be made or written to, or another run is at work in it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
        lock = FileLock(folder / ".lock", timeout=0)
        lock.acquire()
    except Timeout:
        use = "is in use by another training; wait for its end, or give another folder"
        raise ValueError(f"{folder} {use}") from None
    except (OSError, NotImplementedError) as error:  # the latter where nothing can be locked
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"{folder} cannot be written to: {reason}") from error
    try:
        for left in folder.glob("*.safetensors.*.half"):  # by a run that was killed
            left.unlink(missing_ok=True)
        yield
    finally:
        lock.release()


def save_epoch(
    folder: Path, learner: Learner, run: dict[str, Any], about: dict[str, Any], history: History
) -> None:
    """Write `best.safetensors`, if this epoch is the best so far, then `last.safetensors`.

    In this order, so that a crash between the two loses nothing: resumed from the epoch before,
    the training comes to the same best epoch again. `run` is what may not change until then. Where
    the weights are averaged, both files hold the average, and the last one, among what the
    optimizer remembers, the weights themselves too.
    """
    info = about | dict(run=run, history=asdict(history), scaler=learner.scaler.state_dict())
    info["averaged"] = learner.averaged
    tensors = weights_of(learner.measured)
    if history.best == len(history):
        write_checkpoint(folder / "best.safetensors", tensors, info)
    remembered: dict[str, dict] = {}
    for name, p in learner.model.named_parameters():
        remembered[bare(name)] = state = dict(learner.optimizer.state.get(p, {}))
        if learner.average is not None:
            state["weight"] = p
        for key, value in list(state.items()):
            if isinstance(value, Tensor):
                tensors[f"optimizer.{key}.{bare(name)}"] = state.pop(key)
    info["optimizer"] = {name: state for name, state in remembered.items() if state}
    write_checkpoint(folder / "last.safetensors", tensors, info)


def resume(folder: Path, learner: Learner, run: dict[str, Any]) -> History:
    """Bring all to where `last.safetensors` was written, and give the history up to there.

    Without that file nothing changes. ValueError where it cannot be read, or is of another run.
    """
    path = folder / "last.safetensors"
    if not path.exists():
        return History()
    tensors, info = read_checkpoint(path)
    if "run" not in info:
        raise ValueError(f"{path} holds weights, but no run to go on with; give another folder")
    was, now = info["run"], json.loads(json.dumps(run, default=index))
    other = [
        f"{key} was {was.get(key)!r}, is {now.get(key)!r}"
        for key in {**now, **was}
        if was.get(key) != now.get(key)
    ]
    if other:
        raise ValueError(
            f"{path} is of another run ({'; '.join(other)}); give another folder, or what it was "
            "trained with (other data: start a new run from load_model, or by --from)"
        )
    model, optimizer, history = learner.model, learner.optimizer, History(**info["history"])
    state = {name: tensors[bare(name)] for name in model.state_dict()}
    learner.measured.load_state_dict(state)
    learner.averaged = info["averaged"]
    remembered = {name: dict(kept) for name, kept in info["optimizer"].items()}
    for full, tensor in tensors.items():
        if full.startswith("optimizer."):
            _, key, name = full.split(".", 2)
            remembered.setdefault(name, {})[key] = tensor
    names, numbered = {p: name for name, p in model.named_parameters()}, {}
    for number, p in enumerate(p for group in optimizer.param_groups for p in group["params"]):
        kept = remembered.get(bare(names[p]), {})  # none of what never got a gradient
        state[names[p]] = kept.pop("weight", state[names[p]])
        if kept:
            numbered[number] = kept
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": numbered, "param_groups": groups})
    model.load_state_dict(state)
    if info["scaler"]:
        learner.scaler.load_state_dict(info["scaler"])
    return history
