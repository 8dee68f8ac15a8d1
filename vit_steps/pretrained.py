"""Lesson 09: weights that others trained, renamed into our ViT; nothing of theirs is run."""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save
from torch import Tensor

from .inputs import as_pair, check_sizes
from .layouts import (
    HUGGING_FACE,
    TO_OURS,
    check_names,
    check_shapes,
    listed,
    newer_name,
    recognise,
    rename,
    their_names,
    unchanged,
)
from .preprocess import Preprocess, read_preprocess
from .vit import Head, ViT, ViTConfig, init_weights

PICKLES = (".bin", ".pth", ".pt")
ENDINGS = (".safetensors", ".npz", *PICKLES)
HUB_FILES = ("model.safetensors", "pytorch_model.bin")  # the better one first


@dataclass(frozen=True, eq=False)
class Loaded:
    """A published checkpoint in our class, and what became of each of its tensors.

    Args:
        model: in eval mode.
        config: the model's.
        preprocess: how it wants its pictures: `model(loaded.preprocess("cat.jpg"))`.
        classes: the classes' names, where a config.json says them; else empty.
        layout: whose names the tensors had, a key of `layouts.LAYOUTS`.
        used: the names of the tensors that the model holds now.
        unused: those left over: Hugging Face's `pooler`, and a head that was replaced.
    """

    model: ViT
    config: ViTConfig
    preprocess: Preprocess
    classes: tuple[str, ...]
    layout: str
    used: tuple[str, ...]
    unused: tuple[str, ...]

    def __str__(self) -> str:
        left = f"{len(self.unused)} left over"
        left += f" ({listed(self.unused)})" if self.unused else ""
        return f"{self.layout} layout: {len(self.used)} tensors used, {left}"


def load(
    source: str | Path, num_classes: int | None = None, num_heads: int | None = None
) -> Loaded:
    """Load published weights into our ViT, and check that each tensor has its place.

    Args:
        source: a file (.safetensors; Google's .npz; .pth, .pt or .bin, of which only tensors are
            read), a folder with config.json and model.safetensors, that model.safetensors itself,
            or the id of a model on huggingface.co, such as "google/vit-base-patch16-224". What a
            hub id needs is downloaded once and kept in huggingface_hub's cache.
        num_classes: for a new, untrained head of so many classes; None keeps the checkpoint's own.
        num_heads: h, where neither the tensors (Google's do) nor a config.json say it. By default
            heads are 64 wide, as in all published sizes but H/14, which has 16 of 80.

    Returns:
        `Loaded`: the model, its config, its preprocessing, class names, and what was used.
        LayerNorm's eps is config.json's, else 1e-12 for Hugging Face's layout and 1e-6 for others.
        Preprocessing is what the files beside it say, else what its layout usually wants; a file
        alone cannot say it, so compare with its publisher's page (a file in timm's names is taken
        for one trained on ImageNet's mean and std, as DeiT was; Google's own, in any names, were
        trained on mean = std = 0.5).

    Raises:
        ValueError: nothing there, no network, a file that is broken or holds more than weights, a
            layout or a model that is not ours, or tensors that are missing, left over or of a
            wrong shape; the message names them.
    """
    for name, number in (("num_classes", num_classes), ("num_heads", num_heads)):
        if number is not None:
            check_sizes(**{name: number})
    path, settings, pictures = find(source)
    tensors = read(path)
    layout, names = recognise(tensors, path)
    head = {*names["head.weight"], *names["head.bias"]}
    unused = [name for name in tensors if "pooler." in name]
    if num_classes is not None:
        unused += [name for name in tensors if name in head or "pre_logits" in name]
        del names["head.weight"], names["head.bias"]
    elif not head & set(tensors):
        raise ValueError(
            f"{path.name} has no head, only the body; give num_classes for a new, untrained head"
        )
    used = {name: tensor for name, tensor in tensors.items() if name not in unused}
    check_names(used, names, path)
    try:
        weights = rename(used, names, TO_OURS.get(layout, unchanged))
        config = read_config(weights, layout, used, settings, num_heads)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path.name}: {error}") from error
    if num_classes is not None:
        config = replace(config, num_classes=num_classes)
        fresh = Head(config.embed_dim, num_classes)
        init_weights(fresh)
        weights |= {f"head.{name}": tensor for name, tensor in fresh.state_dict().items()}
    with torch.device("meta"):  # shapes without numbers: the weights are about to come
        model = ViT(config)
    check_shapes(weights, model.state_dict(), names, path)
    model.load_state_dict(weights, assign=True)
    preprocess = read_preprocess(str(source), layout, config, settings, pictures)
    classes = read_classes(settings, config.num_classes) if num_classes is None else ()
    return Loaded(model.eval(), config, preprocess, classes, layout, tuple(used), tuple(unused))


# Where the files are ------------------------------------------------------------------------------


def find(source: str | Path) -> tuple[Path, dict, dict]:
    """The file of weights, what config.json says, and what preprocessor_config.json says."""
    path = Path(source)
    if path.is_file():
        # What stands beside a file of any other name may be another model's.
        return (path, *read_settings(path.parent)) if path.name in HUB_FILES else (path, {}, {})
    if not path.is_dir():
        is_name = re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", str(source))
        if isinstance(source, Path) or not is_name or path.suffix in ENDINGS:
            raise ValueError(
                f"{source} is not there; give a file, a folder, or the id of a model on "
                'huggingface.co, such as "google/vit-base-patch16-224"'
            )
        path = download(str(source))
    for name in HUB_FILES:
        if (path / name).is_file():
            return (path / name, *read_settings(path))
    raise ValueError(f"{source} holds neither {' nor '.join(HUB_FILES)}")


def read_settings(folder: Path) -> tuple[dict, dict]:
    """What config.json says, and what preprocessor_config.json says."""
    return read_json(folder / "config.json"), read_json(folder / "preprocessor_config.json")


def download(repo: str) -> Path:
    """Bring what we need of a model on the hub into huggingface_hub's cache, and say where.

    Raises:
        ValueError: the hub cannot be reached and the model is not in the cache, or the hub has no
            such public model.
    """
    import huggingface_hub
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    try:
        # One question, not retried: without a network it fails at once. It lists the files.
        found = huggingface_hub.model_info(repo, timeout=10).siblings or ()
        files = {file.rfilename for file in found}
        best = next((name for name in HUB_FILES if name in files), HUB_FILES[0])
        wanted = [best, "config.json", "preprocessor_config.json"]
        return Path(huggingface_hub.snapshot_download(repo, allow_patterns=wanted))
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise ValueError(
            f"{repo} is no folder here, and huggingface.co has no public model of that name"
        ) from error
    except Exception as error:  # whatever the layers below raise where there is no network
        try:
            return Path(huggingface_hub.snapshot_download(repo, local_files_only=True))
        except Exception:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ValueError(
                f"{repo} is not in the cache, and huggingface.co cannot be reached ({reason}); "
                "try again with a network, or give a file"
            ) from error


def read_json(path: Path) -> dict:
    """What a JSON file says; nothing where there is none.

    Raises:
        ValueError: it is no JSON object.
    """
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}, not settings by name")
    return content


# What is in them ----------------------------------------------------------------------------------


def read(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name, and nothing else: no code in a file is ever run.

    Raises:
        ValueError: an unknown kind of file, a broken one, or one that holds more than tensors.
    """
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
    return {newer_name(name): tensor for name, tensor in tensors.items()}


# What they say about the model --------------------------------------------------------------------


def read_config(
    weights: dict[str, Tensor],
    layout: str,
    tensors: dict[str, Tensor],
    settings: dict,
    num_heads: int | None = None,
) -> ViTConfig:
    """The model's sizes, from the shapes of its tensors; what no shape tells, from config.json.

    Args:
        weights: under our names.
        layout: a key of `layouts.LAYOUTS`.
        tensors: as they were in the file; Google's tell the number of heads.
        settings: config.json's content, or empty.
        num_heads: as in `load`.

    Raises:
        ValueError: shapes that no ViT of ours has, or another activation than GELU by erf.
    """
    shapes = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    patch, positions = shapes["patch_embed.proj.weight"], shapes["tokens.pos_embed"]
    hidden = shapes.get("blocks.0.mlp.fc1.weight", (0,))[0]
    if len(patch) != 4 or patch[2] != patch[3] or len(positions) != 3 or 0 in (*patch, hidden):
        raise ValueError(
            f"patches are projected by {patch}, positions are {positions}, the MLP is {hidden} "
            "wide; expected (D, C, P, P), (1, N, D) and at least one block"
        )
    embed_dim, channels, patch_size, _ = patch
    if settings.get("hidden_act", "gelu") != "gelu":
        raise ValueError(f"it was trained with {settings['hidden_act']}; ours is GELU by erf")
    said = settings.get("num_attention_heads")
    if layout == "Google":
        said = next((t.shape[1] for n, t in tensors.items() if n.endswith("query/kernel")), None)
    if said and num_heads and said != num_heads:
        raise ValueError(f"num_heads is {num_heads}, but the checkpoint says {said}")
    if not said and not num_heads and embed_dim % 64:
        raise ValueError(
            f"nothing says how many heads share the width {embed_dim}, which 64 does not divide; "
            "give num_heads"
        )
    return ViTConfig(
        image_size=image_size(positions[1] - 1, patch_size, settings),
        patch_size=patch_size,
        in_channels=channels,
        num_classes=shapes.get("head.weight", (1,))[0],
        embed_dim=embed_dim,
        depth=1 + max(int(n.split(".")[1]) for n in shapes if n.startswith("blocks.")),
        num_heads=said or num_heads or (16 if embed_dim == 1280 else embed_dim // 64),
        mlp_ratio=hidden / embed_dim,
        qkv_bias="blocks.0.attn.qkv.bias" in weights,
        norm_eps=settings.get("layer_norm_eps", 1e-12 if layout == "Hugging Face" else 1e-6),
    )


def image_size(patches: int, patch_size: int, settings: dict) -> int | tuple[int, int]:
    """In pixels, from the number of patches: config.json's, or else a square.

    Raises:
        ValueError: they make no square, or not config.json's image.
    """
    said = settings.get("image_size")
    if said is None:
        side = round(patches**0.5)
        if side < 1 or side * side != patches:
            raise ValueError(
                f"there are positions for {patches} patches, which make no square, and no "
                "config.json says the image's size"
            )
        return side * patch_size
    size = tuple(said) if isinstance(said, list) else said
    height, width = as_pair(size)
    if (height // patch_size) * (width // patch_size) != patches:
        raise ValueError(
            f"config.json says images of {height}×{width}, but there are positions for {patches} "
            f"patches of side {patch_size}"
        )
    return size


def read_classes(settings: dict, count: int) -> tuple[str, ...]:
    """The classes' names as config.json says them (id2label), if there is one for each."""
    names = settings.get("id2label")
    order = [str(number) for number in range(count)]
    if not isinstance(names, dict) or set(names) != set(order):
        return ()
    return tuple(str(names[number]) for number in order)


# And back -----------------------------------------------------------------------------------------


def save_hugging_face(model: ViT, folder: str | Path, classes: tuple[str, ...] = ()) -> None:
    """Write a model as Hugging Face's library does: config.json and model.safetensors.

    Args:
        folder: made if it is not there.
        classes: a name for each class; by default LABEL_0, LABEL_1, …, as theirs are.

    Raises:
        ValueError: a model that their class cannot hold (mean pooling), or another number of names.
    """
    c, weights = model.config, model.state_dict()
    if c.pool != "cls":
        raise ValueError("pool is 'mean'; Hugging Face's ViT reads the cls token")
    classes = classes or tuple(f"LABEL_{number}" for number in range(c.num_classes))
    if len(classes) != c.num_classes:
        raise ValueError(f"there are {len(classes)} names for {c.num_classes} classes")
    tensors = {}
    for ours, theirs in their_names(HUGGING_FACE, c.depth).items():
        if ours in weights:  # all but a qkv bias that the model may lack
            parts = weights[ours].detach().cpu().chunk(len(theirs))
            tensors |= {n: p.clone() for n, p in zip(theirs, parts, strict=True)}
    settings = dict(
        architectures=["ViTForImageClassification"],
        model_type="vit",
        image_size=c.image_size,
        patch_size=c.patch_size,
        num_channels=c.in_channels,
        hidden_size=c.embed_dim,
        num_hidden_layers=c.depth,
        num_attention_heads=c.num_heads,
        intermediate_size=round(c.embed_dim * c.mlp_ratio),
        hidden_act="gelu",
        qkv_bias=c.qkv_bias,
        layer_norm_eps=c.norm_eps,
        id2label={str(number): name for number, name in enumerate(classes)},
        label2id={name: number for number, name in enumerate(classes)},
    )
    Path(folder).mkdir(parents=True, exist_ok=True)
    contents = {
        "model.safetensors": save(tensors, metadata={"format": "pt"}),
        "config.json": json.dumps(settings, indent=2).encode(),
    }
    for name, content in contents.items():
        half = Path(folder, f"{name}.half")
        half.write_bytes(content)
        half.replace(Path(folder, name))  # a file appears whole, or not at all
