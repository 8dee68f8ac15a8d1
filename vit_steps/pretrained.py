"""Lesson 09: weights that others trained, renamed into our ViT; nothing of theirs is run."""

import json
import re
from dataclasses import dataclass, replace
from itertools import product
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save
from torch import Tensor
from torch.nn import functional as F

from .images import load_image, normalize
from .inputs import as_pair, check_images, check_sizes
from .vit import Head, ViT, ViTConfig, init_weights

# Our name of each piece, and theirs. # is the number of a block, * is weight and then bias, and {}
# is query, key and value, whose rows stand below one another in our qkv.
TIMM = {
    "tokens.cls_token": "cls_token",
    "tokens.pos_embed": "pos_embed",
    "patch_embed.proj.*": "patch_embed.proj.*",
    "blocks.#.norm1.*": "blocks.#.norm1.*",
    "blocks.#.attn.qkv.*": "blocks.#.attn.qkv.*",
    "blocks.#.attn.proj.*": "blocks.#.attn.proj.*",
    "blocks.#.norm2.*": "blocks.#.norm2.*",
    "blocks.#.mlp.fc1.*": "blocks.#.mlp.fc1.*",
    "blocks.#.mlp.fc2.*": "blocks.#.mlp.fc2.*",
    "norm.*": "norm.*",
    "head.*": "head.*",
}
HUGGING_FACE = {
    "tokens.cls_token": "vit.embeddings.cls_token",
    "tokens.pos_embed": "vit.embeddings.position_embeddings",
    "patch_embed.proj.*": "vit.embeddings.patch_embeddings.projection.*",
    "blocks.#.norm1.*": "vit.encoder.layer.#.layernorm_before.*",
    "blocks.#.attn.qkv.*": "vit.encoder.layer.#.attention.attention.{}.*",
    "blocks.#.attn.proj.*": "vit.encoder.layer.#.attention.output.dense.*",
    "blocks.#.norm2.*": "vit.encoder.layer.#.layernorm_after.*",
    "blocks.#.mlp.fc1.*": "vit.encoder.layer.#.intermediate.dense.*",
    "blocks.#.mlp.fc2.*": "vit.encoder.layer.#.output.dense.*",
    "norm.*": "vit.layernorm.*",
    "head.*": "classifier.*",
}
TORCHVISION = {
    "tokens.cls_token": "class_token",
    "tokens.pos_embed": "encoder.pos_embedding",
    "patch_embed.proj.*": "conv_proj.*",
    "blocks.#.norm1.*": "encoder.layers.encoder_layer_#.ln_1.*",
    "blocks.#.attn.qkv.*": "encoder.layers.encoder_layer_#.self_attention.in_proj_*",
    "blocks.#.attn.proj.*": "encoder.layers.encoder_layer_#.self_attention.out_proj.*",
    "blocks.#.norm2.*": "encoder.layers.encoder_layer_#.ln_2.*",
    "blocks.#.mlp.fc1.*": "encoder.layers.encoder_layer_#.mlp.0.*",
    "blocks.#.mlp.fc2.*": "encoder.layers.encoder_layer_#.mlp.3.*",
    "norm.*": "encoder.ln.*",
    "head.*": "heads.head.*",
}
# Google's arrays call a Linear's weight kernel and a norm's scale.
GOOGLE = {
    "tokens.cls_token": "cls",
    "tokens.pos_embed": "Transformer/posembed_input/pos_embedding",
    "patch_embed.proj.*": "embedding/*",
    "blocks.#.norm1.*": "Transformer/encoderblock_#/LayerNorm_0/*",
    "blocks.#.attn.qkv.*": "Transformer/encoderblock_#/MultiHeadDotProductAttention_1/{}/*",
    "blocks.#.attn.proj.*": "Transformer/encoderblock_#/MultiHeadDotProductAttention_1/out/*",
    "blocks.#.norm2.*": "Transformer/encoderblock_#/LayerNorm_2/*",
    "blocks.#.mlp.fc1.*": "Transformer/encoderblock_#/MlpBlock_3/Dense_0/*",
    "blocks.#.mlp.fc2.*": "Transformer/encoderblock_#/MlpBlock_3/Dense_1/*",
    "norm.*": "Transformer/encoder_norm/*",
    "head.*": "head/*",
}
LAYOUTS = {
    "timm": TIMM,
    "Hugging Face": HUGGING_FACE,
    "torchvision": TORCHVISION,
    "Google": GOOGLE,
}

PICKLES = (".bin", ".pth", ".pt")
ENDINGS = (".safetensors", ".npz", *PICKLES)
IMAGENET: dict[str, Any] = dict(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
RESAMPLING = {2: "bilinear", 3: "bicubic"}  # Pillow's numbers, which Hugging Face's files use
# The files stored beside these on the hub say mean = std = 0.5, against how they were trained.
TRAINED_ON_IMAGENET = ("facebook/deit-", "facebook/dino-")


@dataclass(frozen=True)
class Preprocess:
    """How a checkpoint wants its pictures. Calling it makes the batch from a picture.

    Args:
        size: (height, width) that goes into the model, in pixels.
        shorter_side: resize the picture's shorter side to this and cut `size` from the middle;
            None resizes the whole picture straight to `size`, whatever its proportions.
        interpolation: "bilinear" or "bicubic", both antialiased.
        mean, std: of each channel, for pixels from 0 to 1.

    Raises:
        ValueError: an unknown interpolation, or a shorter side from which `size` cannot be cut.
    """

    size: tuple[int, int] = (224, 224)
    shorter_side: int | None = None
    interpolation: str = "bilinear"
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)

    def __post_init__(self):
        as_pair(self.size, "size")
        if self.interpolation not in RESAMPLING.values():
            known = " or ".join(f'"{name}"' for name in RESAMPLING.values())
            raise ValueError(f"interpolation is {self.interpolation!r}; give {known}")
        if self.shorter_side is not None and self.shorter_side < max(self.size):
            raise ValueError(
                f"shorter_side is {self.shorter_side}: {self.size[0]}×{self.size[1]} pixels "
                "cannot be cut from it; make it larger, or None"
            )
        for name in ("mean", "std"):
            values = getattr(self, name)
            numbers = all(isinstance(v, (int, float)) and isfinite(v) for v in values)
            if not numbers or len(self.mean) != len(self.std) or not all(self.std):
                raise ValueError(f"{name} is {values}; give a number for each channel, no std of 0")

    def __call__(self, picture: str | Path | Tensor) -> Tensor:
        """Turn a picture's path, or a tensor (C, H, W) from 0 to 1, into a batch (1, C, H, W).

        Raises:
            ValueError: not a picture that `vit_steps.load_image` can open.
        """
        images = picture if isinstance(picture, Tensor) else load_image(picture, size=None)
        images = images[None]
        check_images(images, channels=len(self.mean))
        height, width = target = as_pair(self.size)
        old_height, old_width = images.shape[2:]
        if self.shorter_side is not None:
            scale = self.shorter_side / min(old_height, old_width)
            target = round(old_height * scale), round(old_width * scale)
        options: Any = dict(mode=self.interpolation, antialias=True)
        images = F.interpolate(images, size=target, **options).clamp(0, 1)  # bicubic overshoots
        top, left = (target[0] - height) // 2, (target[1] - width) // 2
        images = images[:, :, top : top + height, left : left + width]
        mean, std = map(torch.tensor, (self.mean, self.std))
        return normalize(images, mean, std)  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True, eq=False)
class Loaded:
    """A published checkpoint in our class, and what became of each of its tensors.

    Args:
        model: in eval mode.
        config: the model's.
        preprocess: how it wants its pictures: `model(loaded.preprocess("cat.jpg"))`.
        classes: the classes' names, where a config.json says them; else empty.
        layout: whose names the tensors had, a key of `LAYOUTS`.
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
            read), a folder with config.json and model.safetensors, or the id of a model on
            huggingface.co, such as "google/vit-base-patch16-224". What a hub id needs is
            downloaded once and kept in huggingface_hub's cache.
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


def listed(names) -> str:
    """Some names in one line: all of them, or the first four and how many more."""
    names = list(names)
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more


# Where the files are ------------------------------------------------------------------------------


def find(source: str | Path) -> tuple[Path, dict, dict]:
    """The file of weights, what config.json says, and what preprocessor_config.json says."""
    path = Path(source)
    if path.is_file():
        return path, {}, {}
    if not path.is_dir():
        is_name = re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", str(source))
        if isinstance(source, Path) or not is_name or path.suffix in ENDINGS:
            raise ValueError(
                f"{source} is not there; give a file, a folder, or the id of a model on "
                'huggingface.co, such as "google/vit-base-patch16-224"'
            )
        path = download(str(source))
    for name in ("model.safetensors", "pytorch_model.bin"):
        if (path / name).is_file():
            settings, pictures = path / "config.json", path / "preprocessor_config.json"
            return path / name, read_json(settings), read_json(pictures)
    raise ValueError(f"{source} holds neither model.safetensors nor pytorch_model.bin")


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
        best = "model.safetensors" if "model.safetensors" in files else "pytorch_model.bin"
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


def newer_name(name: str) -> str:
    """Torchvision's older files call mlp.0 and mlp.3 linear_1 and linear_2."""
    return name.replace(".mlp.linear_1.", ".mlp.0.").replace(".mlp.linear_2.", ".mlp.3.")


def recognise(tensors: dict[str, Tensor], path: Path) -> tuple[str, dict[str, tuple[str, ...]]]:
    """Whose names these are, and for each of our tensors the names of theirs that make it.

    Raises:
        ValueError: nobody's, or those of a distilled DeiT.
    """
    if odd := [n for n in tensors if n.endswith(("dist_token", "distillation_token"))]:
        raise ValueError(
            f"{path.name} is a distilled DeiT: it was trained with a second special token "
            f"({odd[0]}) that our ViT has no place for, and without it every token would mix other "
            "values; take the DeiT that is not distilled, such as facebook/deit-tiny-patch16-224"
        )
    if "tokens.cls_token" in tensors:
        raise ValueError(f"{path.name} is our own: vit_steps.checkpoints.load_model reads it")
    for layout, table in tables():
        start = table["patch_embed.proj.*"].removesuffix("*")
        if not any(name.startswith(start) for name in tensors):
            continue
        block = re.escape(table["blocks.#.norm1.*"].removesuffix("*")).replace(r"\#", r"(\d{1,4})")
        found = [re.match(block, name) for name in tensors]
        depth = max((1 + int(match[1]) for match in found if match), default=0)
        names = their_names(table, depth)
        if layout == "Google":
            names = {ours: tuple(map(flax_name, theirs)) for ours, theirs in names.items()}
        bias = [ours for ours in names if ours.endswith("qkv.bias")]
        if not any(name in tensors for ours in bias for name in names[ours]):
            names = {ours: theirs for ours, theirs in names.items() if ours not in bias}
        return layout, names
    raise ValueError(
        f"{path.name} is in no layout that is known ({', '.join(LAYOUTS)}): {listed(tensors)}"
    )


def tables():
    """Each layout's name and table; Hugging Face's also for DeiT and for bare models."""
    yield from LAYOUTS.items()
    for prefix in ("deit.", ""):
        table = {ours: re.sub(r"^vit\.", prefix, name) for ours, name in HUGGING_FACE.items()}
        yield "Hugging Face", table


def their_names(table: dict[str, str], depth: int) -> dict[str, tuple[str, ...]]:
    """For each of our tensors, the names of theirs that make it: one, or three for q, k and v.

    Args:
        table: such as `HUGGING_FACE`.
        depth: L, the number of blocks.
    """
    names = {}
    for ours, theirs in table.items():
        blocks = range(depth) if "#" in ours else (0,)
        kinds = ("weight", "bias") if "*" in ours else ("",)
        parts = ("query", "key", "value") if "{}" in theirs else ("",)
        for block, kind in product(blocks, kinds):
            our_name = ours.replace("#", str(block)).replace("*", kind)
            their_name = theirs.replace("#", str(block)).replace("*", kind)
            names[our_name] = tuple(their_name.replace("{}", part) for part in parts)
    return names


def flax_name(name: str) -> str:
    """Google's name for what torch calls weight: scale in a norm, kernel elsewhere."""
    norm = "LayerNorm" in name or "encoder_norm" in name
    return re.sub("weight$", "scale" if norm else "kernel", name)


def unchanged(name: str, tensor: Tensor) -> Tensor:
    """A tensor whose axes stand as ours do."""
    return tensor


def from_flax(name: str, tensor: Tensor) -> Tensor:
    """Turn Google's axes into ours: inputs come first there, and heads have an axis of their own.

    Args:
        name: ours, of the tensor that this one makes, or a third of.
        tensor: (P, P, C, D) for the patches; (D, h, d) and (h, d) for q, k and v; (h, d, D) for
            the output projection; (in, out) for other Linears.
    """
    if name == "patch_embed.proj.weight" and tensor.ndim == 4:
        return tensor.permute(3, 2, 0, 1)  # (D, C, P, P)
    if ".attn.qkv." in name and tensor.ndim > 1:
        tensor = tensor.flatten(-2)  # (D, h·d) or (h·d,)
    if name.endswith("attn.proj.weight") and tensor.ndim == 3:
        tensor = tensor.flatten(0, 1)  # (h·d, D)
    return tensor.T if name.endswith("weight") and tensor.ndim == 2 else tensor


TO_OURS = {"Google": from_flax}


def check_names(tensors: dict[str, Tensor], names: dict[str, tuple[str, ...]], path: Path) -> None:
    """Their names must be those that we know, all of them and no others.

    Raises:
        ValueError: some are missing, or not ours.
    """
    known = {theirs for group in names.values() for theirs in group}
    missing = sorted(known - tensors.keys())
    extra = [name for name in tensors if name not in known]
    if missing or extra:
        said = [f"missing: {listed(missing)}"] * bool(missing)
        said += [f"not ours: {listed(extra)}"] * bool(extra)
        raise ValueError(f"{path.name} does not fit our ViT; {'; '.join(said)}")


def rename(
    tensors: dict[str, Tensor], names: dict[str, tuple[str, ...]], to_ours=unchanged
) -> dict[str, Tensor]:
    """Their tensors under our names, in 32 bits; query, key and value one below the other.

    Args:
        tensors: theirs, by their names.
        names: as `their_names` gives them.
        to_ours: turns the axes of one of their tensors, given our name for it.

    Raises:
        ValueError: three that belong together have different shapes.
    """
    weights = {}
    for ours, theirs in names.items():
        parts = [to_ours(ours, tensors[name]) for name in theirs]
        if len({part.shape for part in parts}) > 1 or parts[0].ndim == 0:
            shapes = ", ".join(f"{name} {tuple(tensors[name].shape)}" for name in theirs)
            raise ValueError(f"shapes that do not belong together: {shapes}")
        stacked = torch.cat(parts) if len(parts) > 1 else parts[0]
        # A copy: the file may change or go while the model lives.
        weights[ours] = stacked.to(torch.float32, copy=True).contiguous()
    return weights


def check_shapes(weights: dict[str, Tensor], wanted: dict[str, Tensor], names, path: Path) -> None:
    """Each tensor must have the shape that the model gives it.

    Raises:
        ValueError: some have not; named as in the file.
    """
    wrong = [
        f"{' + '.join(names.get(name, (name,)))} makes {tuple(weights[name].shape)} where "
        f"{tuple(tensor.shape)} is expected"
        for name, tensor in wanted.items()
        if weights[name].shape != tensor.shape
    ]
    if wrong:
        raise ValueError(f"{path.name}: wrong shapes: {listed(wrong)}")


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
        layout: a key of `LAYOUTS`.
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


def read_preprocess(
    source: str, layout: str, config: ViTConfig, settings: dict, pictures: dict
) -> Preprocess:
    """How the checkpoint wants its pictures: as the files beside it say, else as its layout does.

    A stored preprocessor_config.json is trusted but for the DeiT and DINO models of the hub, whose
    files contradict their training. Without one: Google's and Hugging Face's are resized straight
    to the size and brought to -1…1; the others have their shorter side resized (256 for 224, by
    bicubic interpolation, torchvision's by bilinear), the middle cut out, and ImageNet's mean and
    std taken off. timm's hub models say their own in config.json (pretrained_cfg).
    """
    size = as_pair(config.image_size)
    if config.in_channels != 3:
        return Preprocess(size, mean=(0.5,) * config.in_channels, std=(0.5,) * config.in_channels)
    cropped: Any = dict(size=size, shorter_side=max(size) * 256 // 224)
    if source.startswith(TRAINED_ON_IMAGENET):
        return Preprocess(**cropped, interpolation="bicubic", **IMAGENET)
    try:
        if pictures:
            return from_hugging_face(size, pictures)
        if "pretrained_cfg" in settings:
            return from_timm(size, settings["pretrained_cfg"])
    except (TypeError, KeyError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"{source}: its preprocessing cannot be read: {error!r}") from error
    if layout in ("Hugging Face", "Google"):
        return Preprocess(size)
    interpolation = "bilinear" if layout == "torchvision" else "bicubic"
    return Preprocess(**cropped, interpolation=interpolation, **IMAGENET)


def from_hugging_face(size: tuple[int, int], pictures: dict) -> Preprocess:
    """As preprocessor_config.json says; the size is the model's, which takes no other."""
    wanted, cut = pictures.get("size"), pictures.get("do_center_crop", False)
    if isinstance(wanted, dict):
        cut = cut or "shortest_edge" in wanted
        wanted = wanted.get("shortest_edge", wanted.get("height"))
    mean, std = pictures.get("image_mean", (0.5,) * 3), pictures.get("image_std", (0.5,) * 3)
    if not pictures.get("do_normalize", True):
        mean, std = (0.0,) * 3, (1.0,) * 3
    return Preprocess(
        size,
        max(wanted, *size) if cut and wanted else None,
        RESAMPLING.get(pictures.get("resample", 2), "bicubic"),
        tuple(mean),
        tuple(std),
    )


def from_timm(size: tuple[int, int], pictures: dict) -> Preprocess:
    """As the pretrained_cfg in timm's config.json says."""
    side = int(max(size) / pictures.get("crop_pct", 1.0))
    return Preprocess(
        size, side, pictures["interpolation"], tuple(pictures["mean"]), tuple(pictures["std"])
    )


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
