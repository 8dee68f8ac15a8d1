"""Reading a published checkpoint, of which no code is ever run, and writing one."""

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save
from torch import Tensor

from ..files import write_whole
from ..images import Preprocess
from ..inputs import check_sizes
from ..training.checkpoints import Weights, build, check_plain, load_weights, weights_of
from ..vit import ViT
from .layouts import HUGGING_FACE, recognise, rename, their_names
from .settings import read_config, read_preprocess, to_hugging_face

ENDINGS = (".safetensors", ".npz", ".bin", ".pth", ".pt")  # the last three are pickles
HUB_FILES = ("model.safetensors", "pytorch_model.bin")  # the better one first
SETTINGS = ("config.json", "preprocessor_config.json")
HEADS = ("head", "classifier", "pre_logits")  # how names of a head begin, in every layout
WAIT = 10  # seconds, for an answer of the hub
OWN = {n: Path(__file__).parents[1] / f"weights/{n}.safetensors" for n in ("photos", "scattered")}


@dataclass(frozen=True, eq=False)
class Loaded(Weights):
    """Weights in our class, and what became of each tensor of their file.

    The layout is a column of layouts.csv, or "vit_steps"; `used` names the tensors that the model
    holds now, `unused` those left over: Hugging Face's `pooler`, and a head that was replaced.
    """

    layout: str = "vit_steps"
    used: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = f" ({shorten(', '.join(self.unused), 200)})" if self.unused else ""
        unused = f"{len(self.unused)} left over{names}"
        return f"{self.layout} layout: {len(self.used)} tensors used, {unused}"


def load(
    source: str | Path,
    num_classes: int | None = None,
    num_heads: int | None = None,
    revision: str | None = None,
    preprocess: Preprocess | None = None,
) -> Loaded:
    """Load weights into our ViT, published ones or our own, and check that each has its place.

    What is not there, is broken, holds more than weights or is no ViT of ours gives a ValueError.

    Args:
        source: a file (.safetensors, .npz, .pth, .pt or .bin), a folder with config.json and
            model.safetensors, or a model's id on huggingface.co, which its library caches, such as
            "google/vit-base-patch16-224". "photos" and "scattered" are the course's own.
        num_classes: for a new, untrained head of so many classes, or none with 0.
        num_heads: h, where neither Google's axes, config.json nor a published B, L or H tells it.
        revision: of a model on the hub: a branch, a tag or a commit hash.
        preprocess: how it wants its pictures. A file alone says nothing, and some DeiT's and DINO's
            on the hub not all: compare what is taken (`settings.read_preprocess`) with their pages.
    """
    check_sizes(0, num_classes=0 if num_classes is None else num_classes)
    check_sizes(num_heads=1 if num_heads is None else num_heads)
    path = find(source, revision)
    tensors, new_head = read(path), num_classes is not None
    unused = tuple(n for n in tensors if "pooler." in n or (new_head and n.startswith(HEADS)))
    used = {name: tensor for name, tensor in tensors.items() if name not in unused}
    if "tokens.cls_token" in tensors:
        layout, weights = "vit_steps", load_weights(path)
    else:
        layout, weights = _convert(path, used, new_head, num_heads, preprocess)
    model, classes, measured = weights.model.eval(), weights.classes, weights.measured
    if num_classes is not None:
        model, classes = model.with_classes(num_classes), ()
        measured = {name: value for name, value in measured.items() if name != "result"}
    preprocess = preprocess or weights.preprocess
    return Loaded(model, classes, preprocess, measured, layout, tuple(used), unused)


def find(source: str | Path, revision: str | None = None) -> Path:
    """Find the file of weights, on the hub where need be; ValueError where there is none."""
    path = Path(source).expanduser()
    if revision is not None and path.exists():
        raise ValueError(f"revision is {revision!r}, but {source} is here, not on the hub")
    is_id = isinstance(source, str) and re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", source)
    if is_id and not path.exists() and path.suffix not in (*ENDINGS, ".json"):
        path = Path(_download(str(source), revision))
    for file in (path, *(path / name for name in (*HUB_FILES, "best.safetensors"))):
        if file.is_file():  # the last is of a training's folder
            return file
    if source in OWN and revision is None:
        return find(OWN[str(source)])  # a Path: what is missing is named by its place
    problem = f"holds no {' or '.join(HUB_FILES)}" if path.exists() else "is not there"
    raise ValueError(
        f"{source} {problem}; give a file, a folder, or a model's id on huggingface.co, such as "
        '"google/vit-base-patch16-224". Weights in shards, of TensorFlow or ONNX are not read'
    )


def _download(repo: str, revision: str | None) -> str:
    """Bring a model into huggingface_hub's cache, unless the hub is silent; give where it is."""
    from huggingface_hub import model_info, snapshot_download

    weights, problem = HUB_FILES[0], None
    try:  # asked first, since it takes a limit: snapshot_download waits without one
        files = model_info(repo, revision=revision, timeout=WAIT).siblings or ()
        weights = next((n for n in HUB_FILES if n in [file.rfilename for file in files]), weights)
    except Exception as error:  # whatever the layers below raise
        problem = error
    files, offline = [*SETTINGS, weights], problem is not None
    try:
        return snapshot_download(
            repo, revision=revision, allow_patterns=files, local_files_only=offline
        )
    except Exception as error:
        reason = " ".join(str(problem or error).split())
        raise ValueError(
            f"{repo} (revision {revision or 'main'}) is not in the cache, and huggingface.co does "
            f"not give it; check the id and the network, or give a file ({reason})"
        ) from error


def read(path: Path) -> dict[str, Tensor]:
    """Read a file's tensors by name; ValueError where it is broken, or holds more than them."""
    ending = path.suffix.lower()
    try:
        if re.search(r"\.index\.json$|-of-(?!00001\.)\d{5}\.", path.name):
            raise ValueError("it is one of several (shards), which are not read; get one file")
        if ending not in ENDINGS:
            raise ValueError(f"its ending is not {', '.join(ENDINGS)}")
        if ending == ".safetensors":
            return unwrap(load_file(path))
        if ending == ".npz":
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return unwrap({name: torch.from_numpy(arrays[name]) for name in arrays.files})
        return unwrap(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:  # each reader raises nearly anything on a broken file
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if ending in ENDINGS[2:] and not isinstance(error, ValueError):
            reason = (
                "it holds more than weights, or is broken. A pickle can run any program while it "
                "is opened, so nothing of it was; ask for a .safetensors"
            )
        raise ValueError(f"{path} is refused: {reason}") from error


def unwrap(content: Any) -> dict[str, Tensor]:
    """Take the tensors by name out of what a file holds; ValueError where it holds other things."""
    if not isinstance(content, dict):
        raise ValueError("it does not hold tensors by name")
    for wrapper in ("model", "state_dict"):  # as training scripts store them
        content = content[wrapper] if isinstance(content.get(wrapper), dict) else content
    for name, tensor in content.items():
        if not isinstance(tensor, Tensor) or not tensor.is_floating_point():
            raise ValueError(f"{name} in it is not a tensor of floats")
    return {str(name): tensor for name, tensor in content.items()}


def read_settings(path: Path, name: str) -> dict[str, Any]:
    """Read one of `SETTINGS` beside a file of weights; ValueError where it is no JSON object."""
    file = path.with_name(name)
    if path.name not in HUB_FILES or not file.is_file():
        return {}  # beside a file of a name of its own it may be another model's
    try:
        return {**json.loads(file.read_text(encoding="utf-8"))}
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} beside it is no JSON object: {error}") from error


def _convert(path, tensors, new_head, num_heads, preprocess) -> tuple[str, Weights]:
    """Give the layout of published tensors, and our ViT with them; without a head for a new one."""
    try:
        settings, pictures = (read_settings(path, name) for name in SETTINGS)
        layout, names = recognise(tensors, not new_head)
        weights = rename(tensors, names, flax=layout == "Google")
        if layout == "Google":  # its heads have an axis of their own
            settings["num_attention_heads"] = tensors[names["blocks.0.attn.qkv.weight"][0]].shape[1]
        config = read_config(weights, layout, settings, num_heads)
        preprocess = preprocess or read_preprocess(layout, config, settings, pictures)
        names, numbers = settings.get("id2label") or {}, [str(i) for i in range(config.num_classes)]
        classes = tuple(str(names[i]) for i in numbers) if {*names} == {*numbers} else ()
        return layout, Weights(build(config, weights), classes, preprocess)
    except (TypeError, ValueError, LookupError, RuntimeError, AttributeError) as error:
        raise ValueError(f"{path}: {' '.join(str(error).split())}") from error


def save_hugging_face(
    model: ViT,
    folder: str | Path,
    classes: tuple[str, ...] = (),
    preprocess: Preprocess | None = None,
) -> None:
    """Write a model as Hugging Face's library does: `pipeline("image-classification", folder)`.

    ValueError for what theirs cannot hold or do: mean pooling, an exchanged part, grey, ink.

    Args:
        folder: for config.json, model.safetensors and preprocessor_config.json; made if need be.
        classes: a name for each class; by default LABEL_0, LABEL_1, …, as theirs are.
        preprocess: how the model wants its pictures; a pipeline does not start without it.
    """
    check_plain(model)
    pictures = None if preprocess is None else to_hugging_face(preprocess)
    c, weights = model.config, weights_of(model)
    if c.pool != "cls":
        raise ValueError("pool is 'mean'; Hugging Face's ViT reads the cls token")
    classes = classes or tuple(f"LABEL_{number}" for number in range(c.num_classes))
    if len(classes) != c.num_classes:
        raise ValueError(f"there are {len(classes)} names for {c.num_classes} classes")
    tensors = {}
    for ours, theirs in their_names(HUGGING_FACE, c.depth).items():
        if ours in weights:  # all but a qkv bias that the model may lack
            thirds = weights[ours].detach().cpu().chunk(len(theirs))
            tensors |= {name: t.clone() for name, t in zip(theirs, thirds, strict=True)}
    settings = dict(
        architectures=["ViTForImageClassification"], model_type="vit", hidden_act="gelu",
        image_size=c.image_size, patch_size=c.patch_size, num_channels=c.in_channels,
        hidden_size=c.embed_dim, intermediate_size=round(c.embed_dim * c.mlp_ratio),
        num_hidden_layers=c.depth, num_attention_heads=c.num_heads, qkv_bias=c.qkv_bias,
        layer_norm_eps=c.norm_eps, id2label=dict(enumerate(classes)),
        label2id={name: number for number, name in enumerate(classes)},
    )  # fmt: skip
    with suppress(OSError):  # `write_whole` says what is wrong
        Path(folder).mkdir(parents=True, exist_ok=True)
    write_whole(Path(folder, "model.safetensors"), save(tensors, metadata={"format": "pt"}))
    for name, content in zip(SETTINGS, (settings, pictures), strict=True):
        if content is None:
            Path(folder, name).unlink(missing_ok=True)  # it was another model's
        else:
            write_whole(Path(folder, name), json.dumps(content, indent=2).encode())
