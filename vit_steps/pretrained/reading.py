"""A checkpoint's files, found here or on the hub, and read: no code in them is ever run."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

PICKLES = (".bin", ".pth", ".pt")
ENDINGS = (".safetensors", ".npz", *PICKLES)
HUB_FILES = ("model.safetensors", "pytorch_model.bin")  # the better one first
SETTINGS = ("config.json", "preprocessor_config.json")
WAIT = 10  # seconds, for an answer of the hub
# The course's own, by name; the README there tells of them.
OWN = {n: Path(__file__).parents[1] / f"weights/{n}.safetensors" for n in ("photos", "scattered")}


def find(source: str | Path, revision: str | None = None) -> Path:
    """Find the file of weights, on the hub where need be; ValueError where there is none."""
    path = Path(source).expanduser()
    if revision is not None and path.exists():
        raise ValueError(f"revision is {revision!r}, but {source} is here, not on the hub")
    is_id = isinstance(source, str) and re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", source)
    if is_id and not path.exists() and path.suffix not in (*ENDINGS, ".json"):
        path = _download(str(source), revision)
    for file in (path, *(path / name for name in (*HUB_FILES, "best.safetensors"))):
        if file.is_file():  # the last is of a training's folder
            return file
    if source in OWN and revision is None:
        return find(OWN[str(source)])  # a Path: what is missing is named by its place
    problem = f"holds no {' or '.join(HUB_FILES)}" if path.exists() else "is not there"
    raise ValueError(
        f"{source} {problem}; give a file, a folder, or the id of a model on huggingface.co, such "
        'as "google/vit-base-patch16-224". Weights in several files (shards), or in another format '
        "(TensorFlow, Flax, ONNX, GGUF), are not read"
    )


def _download(repo: str, revision: str | None) -> Path:
    """Bring what we need of a model on the hub into huggingface_hub's cache; give the folder.

    Where the hub does not give it, what is in the cache is taken; ValueError if it is not there.
    """
    import huggingface_hub

    patterns, problem = [*SETTINGS, HUB_FILES[0]], None
    try:
        # Asked first, since it takes a limit: snapshot_download waits without one.
        info = huggingface_hub.model_info(repo, revision=revision, timeout=WAIT)
        if HUB_FILES[0] not in [file.rfilename for file in info.siblings or ()]:
            patterns = [*SETTINGS, HUB_FILES[1]]
    except Exception as error:  # whatever the layers below raise
        problem = error
    try:
        folder = huggingface_hub.snapshot_download(
            repo, revision=revision, allow_patterns=patterns, local_files_only=problem is not None
        )
    except Exception as error:
        problem = problem or error
        reason = " ".join(f"{type(problem).__name__}: {problem}".split())
        raise ValueError(
            f"{repo} (revision {revision or 'main'}) is not in the cache, and huggingface.co does "
            f"not give it; check the id and the network, or give a file ({reason})"
        ) from error
    return Path(folder)


def read_settings(path: Path, name: str) -> dict[str, Any]:
    """Read one of `SETTINGS` beside a file of weights; ValueError where it is no JSON object.

    What stands beside a file of a name of its own may be another model's: then nothing is read.
    """
    file = path.with_name(name)
    if path.name not in HUB_FILES or not file.is_file():
        return {}
    try:
        return {**json.loads(file.read_text(encoding="utf-8"))}
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} beside it is no JSON object: {error}") from error


def read(path: Path) -> dict[str, Tensor]:
    """Read a file's tensors by name; ValueError where it is broken, or holds more than them."""
    ending = path.suffix.lower()
    try:
        if re.search(r"\.index\.json$|-of-(?!00001\.)\d{5}\.", path.name):
            raise ValueError("it is one of several (shards), which are not read; get one file")
        if ending == ".safetensors":
            return unwrap(load_file(path))
        if ending == ".npz":
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return unwrap({name: torch.from_numpy(arrays[name]) for name in arrays.files})
        if ending in PICKLES:
            return unwrap(torch.load(path, map_location="cpu", weights_only=True))
        raise ValueError(f"its ending is not {', '.join(ENDINGS)}")
    except Exception as error:  # each reader raises nearly anything on a broken file
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if ending in PICKLES and not isinstance(error, ValueError):
            reason = (
                "it holds more than weights, or is broken. A pickle can run any program while it "
                "is opened, so nothing of it was; ask for a .safetensors"
            )
        raise ValueError(f"{path} is refused: {reason}") from error


def unwrap(content: Any) -> dict[str, Tensor]:
    """Take the tensors by name out of what a file holds; ValueError where it holds other things."""
    for wrapper in ("model", "state_dict"):  # as training scripts store them
        if isinstance(content, dict) and isinstance(content.get(wrapper), dict):
            content = content[wrapper]
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise ValueError("it does not hold tensors by name")
    for name, tensor in content.items():
        if not isinstance(tensor, Tensor) or not tensor.is_floating_point():
            raise ValueError(f"not a tensor of floats: {name}")
    return content
