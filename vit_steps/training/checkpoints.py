"""Lesson 07: weights in files that are whole, or not there; no pickle."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from operator import index
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from zlib import crc32

import torch
from filelock import FileLock, Timeout
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.optim import Optimizer

from ..files import write_whole
from ..vit import ViT, ViTConfig
from .identity import crc
from .loop import History


def save_model(model: nn.Module, path: str | Path) -> None:
    """Write a ViT's weights as safetensors, with its `ViTConfig` as JSON in the metadata.

    Raises:
        TypeError: the model's `config` is no `ViTConfig`.
        ValueError: the file cannot be written; one that was there is as it was.
    """
    write_checkpoint(Path(path), weights_of(model), {"config": config_of(model)})


def load_model(path: str | Path) -> ViT:
    """Build the ViT that `save_model` or `fit` wrote: on the CPU, in evaluation mode.

    Raises:
        ValueError: no such file, one that is not whole or was damaged, or not of a ViT of this
            package.
    """
    tensors, info = read_checkpoint(Path(path))
    weights = {name: t for name, t in tensors.items() if not name.startswith("optimizer.")}
    try:
        config = info["config"]
        if isinstance(config["image_size"], list):  # JSON has no tuples
            config["image_size"] = tuple(config["image_size"])
        with torch.device("meta"):  # shapes alone; the numbers come from the file
            model = ViT(ViTConfig(**config))
        model.load_state_dict(weights, assign=True)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} does not hold a ViT of vit_steps: {error}") from error
    return model.eval()


def config_of(model: nn.Module) -> dict[str, Any]:
    """The model's `ViTConfig`, as a dict; TypeError where it has none."""
    config = getattr(model, "config", None)
    if not isinstance(config, ViTConfig):
        said = f"{type(model).__name__}.config is {config!r}"
        raise TypeError(f"{said}; to be saved, a model needs a ViTConfig there")
    return asdict(config)


def bare(name: str) -> str:
    """A weight's name in the model itself, where `torch.compile` wrapped the model or a block."""
    return name.replace("_orig_mod.", "")


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """The model's weights by their names, the same whether it is compiled or not."""
    return {bare(name): tensor for name, tensor in model.state_dict().items()}


# A file ------------------------------------------------------------------------------------------


def write_checkpoint(path: Path, tensors: dict[str, Tensor], info: dict[str, Any]) -> None:
    """Write tensors, and JSON as metadata, with a checksum of each, as `write_whole` does."""
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    # By index NumPy's whole numbers are numbers too.
    texts = {name: json.dumps(value, default=index) for name, value in info.items()}
    write_whole(path, save(on_cpu, texts | {"checksums": json.dumps(checksums(on_cpu, texts))}))


def checksums(tensors: dict[str, Tensor], texts: dict[str, str]) -> dict[str, Any]:
    """A checksum of each tensor, and one of the metadata in any order."""
    sums = {name: crc(tensor) for name, tensor in tensors.items()}
    return {"metadata": crc32(repr(sorted(texts.items())).encode()), "tensors": sums}


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors, and the metadata's JSON, of a file that `write_checkpoint` wrote.

    ValueError where there is no such file, or a byte of it was changed; a pickle is not opened.
    """
    try:
        data = path.read_bytes()
        tensors = load(data)  # checks the header, before its metadata are taken from it
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        texts = header.get("__metadata__") or {}
        sums = json.loads(texts.pop("checksums"))
        info = {name: json.loads(text) for name, text in texts.items()}
    except FileNotFoundError:
        raise ValueError(f"{path} is not there; check the path") from None
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise ValueError(f"{path} cannot be read as a file of this package: {error}") from error
    if sums != checksums(tensors, texts):
        raise ValueError(f"{path} is damaged: not all is as it was written; take a whole copy")
    return tensors, info


# To stop, and to go on ---------------------------------------------------------------------------

ADAMW = ("step", "exp_avg", "exp_avg_sq")  # what it remembers of each parameter
ADVICE = "give another folder, or the model, data and options that it was trained with"


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
    folder: Path,
    model: nn.Module,
    optimizer: Optimizer,
    scaler: torch.amp.GradScaler,
    run: dict[str, Any],
    history: History,
) -> None:
    """Write `best.safetensors`, if this epoch is the best so far, then `last.safetensors`.

    In this order, so that a crash between the two loses nothing: resumed from the epoch before,
    the training comes to the same best epoch again. `run` is what may not change until then."""
    info = dict(config=config_of(model), run=run, history=asdict(history))
    info["scaler"] = scaler.state_dict()
    tensors = weights_of(model)
    if history.best == len(history):
        write_checkpoint(folder / "best.safetensors", tensors, info)
    for name, p in model.named_parameters():
        for key, tensor in optimizer.state.get(p, {}).items():
            tensors[f"optimizer.{key}.{bare(name)}"] = tensor
    write_checkpoint(folder / "last.safetensors", tensors, info)


def resume(
    folder: Path,
    model: nn.Module,
    optimizer: Optimizer,
    scaler: torch.amp.GradScaler,
    run: dict[str, Any],
) -> History:
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
        raise ValueError(f"{path} is of another run ({'; '.join(other)}); {ADVICE}")
    model.load_state_dict({name: tensors[bare(name)] for name in model.state_dict()})
    for name, p in model.named_parameters():
        remembered = {key: f"optimizer.{key}.{bare(name)}" for key in ADAMW}
        if remembered["step"] in tensors:  # what is frozen, or never got a gradient, has none
            optimizer.state[p] = {k: tensors[n].to(p.device) for k, n in remembered.items()}
    if info["scaler"]:
        scaler.load_state_dict(info["scaler"])
    return History(**info["history"])
