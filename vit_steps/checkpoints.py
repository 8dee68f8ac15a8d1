"""Lesson 07: weights in files that are whole, or not there; no pickle."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.optim import Optimizer

from .vit import ViT, ViTConfig


def save_model(model: nn.Module, path: str | Path) -> None:
    """Write a ViT's weights as safetensors, with its `ViTConfig` as JSON in the metadata.

    Raises:
        TypeError: the model's `config` is no `ViTConfig`.
        ValueError: the file cannot be written; one that was there is as it was.
    """
    write_file(Path(path), model.state_dict(), {"config": config_of(model)})


def load_model(path: str | Path) -> ViT:
    """Build the ViT that `save_model` or `fit` wrote: on the CPU, in evaluation mode.

    Raises:
        ValueError: no such file, one that is not whole, or not of a ViT of this package.
    """
    tensors, info = read_file(Path(path))
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
    """The model's `ViTConfig`, as a dict.

    Raises:
        TypeError: it has none.
    """
    config = getattr(model, "config", None)
    if not isinstance(config, ViTConfig):
        raise TypeError(
            f"{type(model).__name__}.config is {config!r}; to be saved, and built again from the "
            "file, a model needs a ViTConfig there"
        )
    return asdict(config)


def write_file(path: Path, tensors: dict[str, Tensor], info: dict[str, Any]) -> None:
    """Write tensors, and JSON as metadata: a crash at any moment leaves the old file or the new.

    The bytes go to another file in the same folder and are brought to the disk; only then does it
    get the name, and the folder is brought to the disk too.

    Raises:
        ValueError: it cannot be written (disk full, no permission); the old file is as it was.
    """
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    data = save(on_cpu, {name: json.dumps(value) for name, value in info.items()})
    half = path.with_name(f"{path.name}.{os.getpid()}.half")
    try:
        try:
            with open(half, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(half, path)
        except BaseException:  # Ctrl-C too
            half.unlink(missing_ok=True)
            raise
        if hasattr(os, "O_DIRECTORY"):  # Windows has no way to sync a folder
            folder = os.open(path.parent, os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror or error}") from error


def read_file(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors, and the metadata's JSON, of a file that `write_file` wrote.

    Raises:
        ValueError: no such file, or not such a one; a pickle is not opened.
    """
    try:
        with safe_open(path, framework="pt") as file:
            info = {name: json.loads(text) for name, text in (file.metadata() or {}).items()}
            names = list(file.keys())
            # Copies, since the file's own memory would keep it from being replaced (on Windows).
            return {name: file.get_tensor(name).clone() for name in names}, info
    except FileNotFoundError:
        raise ValueError(f"{path} is not there; check the path") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise ValueError(
            f"{path} cannot be read; it is not a safetensors file of this package, or a part of "
            f"one ({error})"
        ) from error


# To stop, and to go on ---------------------------------------------------------------------------

ADAMW = ("step", "exp_avg", "exp_avg_sq")  # what it remembers of each parameter


def make_folder(folder: str | Path) -> Path:
    """Make the folder if it is not there, see that files can be made in it, and sweep it.

    Raises:
        ValueError: it cannot be made, or written to.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
        for left in folder.glob("*.safetensors.*.half"):  # by a run that was killed
            left.unlink()
    except OSError as error:
        raise ValueError(f"{folder} cannot be written to: {error.strerror or error}") from error
    return folder


def save_epoch(
    folder: Path, model: nn.Module, optimizer: Optimizer, info: dict[str, Any], best: bool
) -> None:
    """Write `best.safetensors`, if this epoch is the best, then `last.safetensors`.

    In this order, so that a crash between the two loses nothing: resumed from the epoch before,
    the training comes to the same best epoch again.

    Args:
        folder: where to.
        model: its weights go into both files.
        optimizer: AdamW; what it remembers of each parameter goes into the last.
        info: "run", what may not change when it is resumed, and "history".
        best: whether this epoch is the best so far.
    """
    info = {"config": config_of(model), **info}
    tensors = model.state_dict()
    if best:
        write_file(folder / "best.safetensors", tensors, info)
    for name, p in model.named_parameters():
        for key, tensor in optimizer.state.get(p, {}).items():
            tensors[f"optimizer.{key}.{name}"] = tensor
    write_file(folder / "last.safetensors", tensors, info)


def resume(
    folder: Path, model: nn.Module, optimizer: Optimizer, run: dict[str, Any]
) -> dict[str, list[float]]:
    """Bring model and optimizer to where `last.safetensors` was written; give its history.

    Without that file nothing changes, and the history is empty.

    Raises:
        ValueError: the file cannot be read, or is of another model or another run.
    """
    path = folder / "last.safetensors"
    if not path.exists():
        return {}
    tensors, info = read_file(path)
    advice = "give another folder, or the model, data and options that it was trained with"
    was, now = info.get("run", {}), json.loads(json.dumps(run))
    if was != now:
        other = [f"{k} was {was.get(k)!r}, is {now[k]!r}" for k in now if was.get(k) != now[k]]
        raise ValueError(f"{path} is of another run ({'; '.join(other)}); {advice}")
    try:
        state = {
            p: {key: tensors.pop(f"optimizer.{key}.{name}").to(p.device) for key in ADAMW}
            for name, p in model.named_parameters()
            if p.requires_grad
        }
        model.load_state_dict(tensors)
    except (KeyError, RuntimeError) as error:
        raise ValueError(f"{path} is of another model ({error}); {advice}") from error
    for p, remembered in state.items():
        optimizer.state[p] = remembered
    return info["history"]
