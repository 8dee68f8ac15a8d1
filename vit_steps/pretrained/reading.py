"""Opening a file of weights, of which no code is ever run."""

import json
import re
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from .layouts import check_family

PICKLES = (".bin", ".pth", ".pt", ".ckpt", ".pth.tar")
ENDINGS = (".safetensors", ".npz", *PICKLES)
HUB_FILES = ("model.safetensors", "pytorch_model.bin")  # the better one first
# What training scripts call the weights in a file; of two the first is used.
WRAPPERS = ("state_dict_ema", "model_ema", "ema", "teacher", "model_state_dict", "state_dict")
WRAPPERS += ("model", "net", "network", "params", "weights", "student")


def read(path: Path) -> tuple[dict[str, Tensor], list[str]]:
    """Read a file's tensors by name, and say where in it they stood, a line each.

    ValueError where it is broken, holds more than tensors, or those of another family.
    """
    name = path.name.lower()
    try:
        if re.search(r"\.index\.json$|-of-(?!00001\.)\d{5}\.", path.name):
            raise ValueError("it is one of several (shards), which are not read; get one file")
        if not name.endswith(ENDINGS):
            raise ValueError(f"its ending is not {', '.join(ENDINGS)}")
        if name.endswith(".safetensors"):
            return unwrap(load_file(path))
        if name.endswith(".npz"):
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return unwrap({name: torch.from_numpy(arrays[name]) for name in arrays.files})
        with torch.serialization.safe_globals([Namespace]):  # a script's options: names and values
            return unwrap(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:  # each reader raises nearly anything on a broken file
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if name.endswith(PICKLES) and not isinstance(error, ValueError):
            kind = re.search(r"GLOBAL ([\w.]+)", str(error))
            reason = (
                f"it holds more than weights ({kind[1] if kind else 'unknown'}), or is broken. A "
                "pickle can run any program while it is opened, so nothing of it was; ask for a "
                ".safetensors, or for what torch.save(model.state_dict(), file) writes"
            )
        raise ValueError(f"{path} is refused: {reason}") from error


def unwrap(content: Any) -> tuple[dict[str, Tensor], list[str]]:
    """Take the tensors by name out of what a file holds, and say from where, a line each."""
    notes = []
    while isinstance(content, dict):
        inner = {key: value for key, value in content.items() if isinstance(value, dict) and value}
        keys = [key for key in WRAPPERS if key in inner]
        if not keys and not any(isinstance(value, Tensor) for value in content.values()):
            keys = [k for k, v in inner.items() if all(isinstance(t, Tensor) for t in v.values())]
            if len(keys) > 1:
                raise ValueError(f"it holds several models ({', '.join(keys)}); save one alone")
        if not keys:
            break
        content = inner[keys[0]]
        more = f", not of {', '.join(keys[1:])}" if keys[1:] else ""
        notes.append(f"the weights are those of {keys[0]!r} in the file{more}")
    if not isinstance(content, dict):
        raise ValueError("it does not hold tensors by name")
    check_family(map(str, content))
    odd = [str(name) for name, tensor in content.items() if not isinstance(tensor, Tensor)]
    if odd or not any(tensor.is_floating_point() for tensor in content.values()):
        raise ValueError(f"{(odd or [*content])[0]} in it is not a tensor of floats")
    if any("_orig_mod." in str(name) for name in content):
        notes.append("_orig_mod., torch.compile's, is taken off the names")
    return {str(name).replace("_orig_mod.", ""): t for name, t in content.items()}, notes


def read_settings(path: Path, name: str) -> dict[str, Any]:
    """Read a JSON file of this name beside weights; ValueError where it holds no object."""
    file = path.with_name(name)
    if path.name not in HUB_FILES or not file.is_file():
        return {}  # beside a file of a name of its own it may be another model's
    try:
        return {**json.loads(file.read_text(encoding="utf-8"))}
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} beside it is no JSON object: {error}") from error
