"""Reading a published checkpoint, of which no code is ever run, and writing one."""

import json
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import shorten
from typing import Any

from safetensors import safe_open
from safetensors.torch import save

from ..files import write_whole
from ..images import Preprocess, as_path
from ..inputs import as_pair, check_sizes
from ..training.checkpoints import Weights, build, check_plain, load_weights, weights_of
from ..vit import ViT
from .layouts import HUGGING_FACE, recognise, rename, their_names
from .reading import ENDINGS, HUB_FILES, read, read_settings
from .settings import read_config, read_preprocess, to_hugging_face

SETTINGS = ("config.json", "preprocessor_config.json")
WAIT = 10  # seconds, for an answer of the hub
OWN = {n: Path(__file__).parents[1] / f"weights/{n}.safetensors" for n in ("photos", "scattered")}


@dataclass(frozen=True, eq=False)
class Loaded(Weights):
    """Weights in our class, and what became of each tensor of their file.

    The layout is a column of layouts.csv, or "vit_steps"; `used` names the tensors that the model
    holds now, `unused` those left over: Hugging Face's `pooler`, a head that was replaced, what
    stands outside the ViT. `notes` say what was passed over to get there, and what is assumed.
    """

    layout: str = "vit_steps"
    used: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = f" ({shorten(', '.join(self.unused), 200)})" if self.unused else ""
        unused = "; ".join([f"{len(self.unused)} left over{names}", *self.notes])
        return f"{self.layout} layout: {len(self.used)} tensors used, {unused}"


def load(
    source: str | Path,
    num_classes: int | None = None,
    num_heads: int | None = None,
    revision: str | None = None,
    preprocess: Preprocess | None = None,
    image_size: int | tuple[int, int] | None = None,
) -> Loaded:
    """Load weights into our ViT, published ones or our own, and check that each has its place.

    What is not there, is broken, holds more than weights or is no ViT of ours gives a ValueError.

    Args:
        source: a file (.safetensors, .npz, or what torch.save wrote), a folder with config.json
            and model.safetensors, or a model's id on huggingface.co, which its library caches, such
            as "google/vit-base-patch16-224". "photos" and "scattered" are the course's own.
        num_classes: for a new, untrained head of so many classes, or none with 0.
        num_heads: h, where neither Google's axes, config.json nor a published B, L or H tells it.
        revision: of a model on the hub: a branch, a tag or a commit hash.
        preprocess: how it wants its pictures. A file alone says nothing, and some DeiT's and DINO's
            on the hub not all: compare what is taken (`settings.read_preprocess`) with their pages.
        image_size: of what it was trained on, (height, width), where that was no square.
    """
    check_sizes(0, num_classes=0 if num_classes is None else num_classes)
    check_sizes(num_heads=1 if num_heads is None else num_heads)
    path = find(source, revision)
    (tensors, notes), new_head = read(path), num_classes is not None
    if "config" in _metadata(path):  # by `save_model` or `fit`
        weights = load_weights(path)
        config, names = weights.config, weights.model.state_dict()
        used = tuple(name for name in names if not (new_head and name.startswith("head.")))
        if num_heads not in (None, config.num_heads):
            raise ValueError(f"num_heads is {num_heads}, but {path} says {config.num_heads}")
        if as_pair(image_size or config.image_size) != as_pair(config.image_size):
            raise ValueError(f"image_size is {image_size}, but {path} says {config.image_size}")
        loaded = Loaded(**vars(weights), used=used)
    else:
        loaded = _convert(path, tensors, notes, new_head, num_heads, image_size, preprocess)
    unused = tuple(name for name in tensors if name not in loaded.used)
    loaded = replace(loaded, unused=unused, preprocess=preprocess or loaded.preprocess)
    if num_classes is None:
        return loaded
    measured = {name: value for name, value in loaded.measured.items() if name != "result"}
    model = loaded.model.with_classes(num_classes)
    return replace(loaded, model=model, classes=(), measured=measured)


def _metadata(path: Path) -> dict[str, str]:
    """Read what a file says beside its tensors; nothing where it is no safetensors."""
    if path.suffix.lower() != ".safetensors":
        return {}
    with safe_open(path, framework="pt") as file:
        return file.metadata() or {}


def find(source: str | Path, revision: str | None = None) -> Path:
    """Find the file of weights, on the hub where need be; ValueError where there is none."""
    path = as_path(source)
    if revision is not None and path.exists():
        raise ValueError(f"revision is {revision!r}, but {source} is here, not on the hub")
    is_id = isinstance(source, str) and re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", source)
    if is_id and not path.exists() and not path.name.endswith((*ENDINGS, ".json")):
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


def _convert(path, tensors, notes, new_head, num_heads, image_size, preprocess) -> Loaded:
    """Put published tensors into our ViT, without a head for a new one."""
    settings: dict[str, Any] = {}
    try:
        settings, pictures = (read_settings(path, name) for name in SETTINGS)
        column, prefix, names = recognise(tensors, not new_head)
        if prefix:
            notes = [*notes, f"{prefix} is taken off the names"]
        used = {name for group in names.values() for name in group}
        for name in used:
            if not tensors[name].is_floating_point():
                raise ValueError(f"{name} in it is not a tensor of floats")
        layout, weights = column.split(" (")[0], rename(tensors, names, flax=column == "Google")
        if layout == "Google":  # its heads have an axis of their own
            settings["num_attention_heads"] = tensors[names["blocks.0.attn.qkv.weight"][0]].shape[1]
        config = read_config(weights, layout, settings, num_heads, image_size)
        if layout == "vit_steps":
            notes = [*notes, "it is assumed to read the cls token, with dropout 0"]
        elif preprocess is None:
            preprocess = read_preprocess(layout, config, settings, pictures)
            if not pictures and not settings.get("pretrained_cfg"):
                notes = [*notes, f"nothing says how it wants its pictures: assumed, {preprocess}"]
        labels, keys = settings.get("id2label") or {}, [str(i) for i in range(config.num_classes)]
        classes = tuple(str(labels[i]) for i in keys) if {*labels} == {*keys} else ()
        model, used = build(config, weights).eval(), tuple(name for name in tensors if name in used)
        return Loaded(model, classes, preprocess, {}, layout, used, notes=tuple(notes))
    except (TypeError, ValueError, LookupError, RuntimeError, AttributeError) as error:
        kind = settings.get("model_type", "vit")
        family = "" if kind in ("vit", "deit") else f"its config.json says {kind!r}; "
        raise ValueError(f"{path}: {family}{' '.join(str(error).split())}") from error


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
