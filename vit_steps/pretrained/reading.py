"""A checkpoint's files, found here or on the hub, and read: no code in them is ever run."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from .layouts import listed, newer_name

PICKLES = (".bin", ".pth", ".pt")
ENDINGS = (".safetensors", ".npz", *PICKLES)
HUB_FILES = ("model.safetensors", "pytorch_model.bin")  # the better one first
SETTINGS = ("config.json", "preprocessor_config.json")
WAIT = 10  # seconds, for an answer of the hub


def find(source: str | Path, revision: str | None = None) -> Path:
    """The file of weights, brought from the hub where need be; ValueError where there is none."""
    path = Path(source).expanduser()
    if revision is not None and path.exists():
        raise ValueError(f"revision is {revision!r}, but {source} is here, not on the hub")
    if path.is_file():
        return path
    if not path.is_dir():
        is_name = re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", str(source))
        if isinstance(source, Path) or not is_name or path.suffix in (*ENDINGS, ".json"):
            raise ValueError(
                f"{source} is not there; give a file, a folder, or the id of a model on "
                'huggingface.co, such as "google/vit-base-patch16-224"'
            )
        path = download(str(source), revision)
    for name in (*HUB_FILES, "best.safetensors"):  # the last of a training's folder
        if (path / name).is_file():
            return path / name
    raise ValueError(
        f"{source} holds no {' or '.join(HUB_FILES)}; weights in several files (shards), or in "
        "another format (TensorFlow, Flax, ONNX, GGUF), are not read"
    )


def download(repo: str, revision: str | None = None) -> Path:
    """Bring what we need of a model on the hub into huggingface_hub's cache, and say where.

    Where the hub does not give it, what is in the cache is taken; ValueError if it is not there.
    """
    import huggingface_hub

    best, problem = HUB_FILES[0], None
    try:
        # Asked first, since it takes a limit: snapshot_download waits without one.
        found = huggingface_hub.model_info(repo, revision=revision, timeout=WAIT).siblings
        names = [file.rfilename for file in found or ()]
        best = next((name for name in HUB_FILES if name in names), best)
    except Exception as error:  # whatever the layers below raise
        problem = error
    known: Any = dict(allow_patterns=[*SETTINGS, best], local_files_only=problem is not None)
    try:
        return Path(huggingface_hub.snapshot_download(repo, revision=revision, **known))
    except Exception as error:
        reason = " ".join(str(problem or error).split()) or repr(problem or error)
        raise ValueError(
            f"{repo} (revision {revision or 'main'}) is not in the cache, and huggingface.co does "
            f"not give it; check the id and the network, or give a file ({reason})"
        ) from error


def read_settings(path: Path) -> list[dict]:
    """What each of `SETTINGS` beside a file of weights says; ValueError for no JSON object.

    What stands beside a file of a name of its own may be another model's: then nothing.
    """
    said = []
    for name in SETTINGS:
        content, file = {}, path.with_name(name)
        if path.name in HUB_FILES and file.is_file():
            try:
                content = json.loads(file.read_text(encoding="utf-8"))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{name} beside it is not JSON: {error}") from error
        if not isinstance(content, dict):
            raise ValueError(f"{name} beside it holds a {type(content).__name__}, not settings")
        said.append(content)
    return said


def read(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name; ValueError where it is broken, or holds more than them."""
    kind = path.suffix.lower()
    if re.search(r"\.index\.json$|-of-(?!00001\.)\d{5}\.", path.name):
        raise ValueError(f"{path} is one of several (shards), which are not read; get one file")
    if kind not in ENDINGS:
        raise ValueError(f"{path} is refused: its ending is not {', '.join(ENDINGS)}")
    try:
        if kind == ".safetensors":
            tensors: Any = load_file(path)
        elif kind == ".npz":
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                tensors = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
        else:
            tensors = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # each reader raises nearly anything on a broken file
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if kind in PICKLES:
            reason = (
                "it holds more than weights, or is broken. A pickle can run any program while it "
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
    return {newer_name(name): tensor for name, tensor in tensors.items()}
