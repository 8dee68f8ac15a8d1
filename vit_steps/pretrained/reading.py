"""The tensors of a checkpoint's file or files, and nothing else: no code in them is ever run."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from .finding import INDEX, PICKLES, read_json
from .layouts import listed, newer_name


def read(path: Path) -> dict[str, Tensor]:
    """The tensors by name, of one file or, given its index, of all its shards.

    ValueError for an unknown kind of file, a broken one, one that holds more than tensors, and
    shards that do not hold what their index says.
    """
    sharded = path.name.endswith(INDEX)
    one_of_many = re.search(r"-\d{5}-of-(\d{5})\.", path.name)
    if not sharded and one_of_many and int(one_of_many[1]) > 1:
        raise ValueError(
            f"{path} is one shard of {int(one_of_many[1])}; give their folder, or the index beside "
            f"them (model.safetensors{INDEX})"
        )
    tensors = read_shards(path) if sharded else read_file(path)
    return {newer_name(name): tensor for name, tensor in tensors.items()}


def read_shards(index: Path) -> dict[str, Tensor]:
    """The tensors of all shards that an index names, each where the index says."""
    places = read_json(index).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise ValueError(f"{index} is refused: it has no weight_map that names each tensor's file")
    kind = Path(index.name.removesuffix(INDEX)).suffix
    shards: dict[str, set[str]] = {}
    for name, shard in places.items():
        # A plain name, so that no index leads out of its folder.
        if not isinstance(shard, str) or not re.fullmatch(rf"[\w.-]+{re.escape(kind)}", shard):
            raise ValueError(
                f"{index} is refused: it places {name} in {shard!r}; a shard is a {kind} file "
                "beside its index, named without a folder"
            )
        shards.setdefault(shard, set()).add(name)
    if lost := [shard for shard in shards if not (index.parent / shard).is_file()]:
        raise ValueError(f"{index.name} names shards that are not beside it: {listed(lost)}")
    tensors = {}
    for shard, promised in sorted(shards.items()):
        held = read_file(index.parent / shard)
        if odd := sorted(promised ^ held.keys()):
            raise ValueError(f"{shard} does not hold what {index.name} says: {listed(odd)}")
        tensors |= held
    return tensors


def read_file(path: Path) -> dict[str, Tensor]:
    """The tensors of one file by name."""
    kind = path.suffix.lower()
    try:
        if kind == ".safetensors":
            tensors: Any = load_file(path)
        elif kind == ".npz":
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                tensors = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
        elif kind in PICKLES:
            tensors = torch.load(path, map_location="cpu", weights_only=True)
        else:
            raise ValueError("its ending is not .safetensors, .npz, .pth, .pt or .bin")
    except Exception as error:  # each reader raises nearly anything on a broken file
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if kind in PICKLES:
            reason = (
                "it is broken, or holds more than weights. A pickle can run any program while it "
                "is opened, so nothing of it was; ask for a .safetensors"
            )
        raise ValueError(f"{path} is refused: {reason}") from error
    for wrapper in ("model", "state_dict"):  # as training scripts store them
        if isinstance(tensors, dict) and isinstance(tensors.get(wrapper), dict):
            tensors = tensors[wrapper]
    if not isinstance(tensors, dict) or not all(isinstance(name, str) for name in tensors):
        raise ValueError(f"{path} is refused: it does not hold tensors by name")
    good = {n for n, t in tensors.items() if isinstance(t, Tensor) and t.is_floating_point()}
    if odd := [name for name in tensors if name not in good]:
        raise ValueError(f"{path} is refused: not tensors of floats: {listed(odd)}")
    return tensors
