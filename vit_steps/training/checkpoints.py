"""Lesson 07: weights in files that are whole, or not there; no pickle."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from operator import index
from pathlib import Path
from typing import Any
from zlib import crc32

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from ..files import write_whole
from ..images import Preprocess
from ..inputs import as_pair
from ..vit import ViT, ViTConfig
from .identity import crc
from .loop import evaluating


@dataclass(frozen=True, eq=False)
class Weights:
    """A trained ViT, and what its file says of it.

    Args:
        model: on the CPU, in evaluation mode.
        classes: the name of each class; empty where the file does not say them.
        preprocess: how it wants its pictures; None where the file does not say it.
        measured: what it learned from, what was held out and how well it did on that: "train",
            "val" and "test" by `identity.fingerprint`, and what `measuring.measure` found. JSON.
    """

    model: ViT
    classes: tuple[str, ...] = ()
    preprocess: Preprocess | None = None
    measured: dict[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> ViTConfig:
        """The model's."""
        return self.model.config


def save_model(
    model: nn.Module,
    path: str | Path,
    classes: Sequence[str] = (),
    preprocess: Preprocess | None = None,
    measured: dict[str, Any] | None = None,
    half: bool = False,
) -> None:
    """Write a ViT as safetensors, with its `ViTConfig` as JSON in the metadata.

    A training's file in half the room, without how it went (`w` is `load_weights` of it):

        save_model(w.model, path, w.classes, w.preprocess, w.measured, half=True)

    Args:
        model: a `ViT`, or a class of your own with the same names of weights and the same answers.
        path: of the file.
        classes, preprocess, measured: see `Weights`.
        half: round the weights to float16, so that the file takes half the room.

    TypeError where its `config` is no `ViTConfig`; ValueError for a model that is not the ViT of
    its config, for other classes, for weights beyond float16's range with `half`, and a file that
    cannot be written; the one before is as it was.
    """
    check_plain(model)
    about = describe(config_of(model), classes, preprocess, measured or {})
    tensors = weights_of(model)
    for name, tensor in tensors.items() if half else ():
        tensors[name] = tensor.half()
        if not tensors[name].isfinite().all():
            raise ValueError(f"{name} has {tensor.abs().max():g}, beyond float16; leave out half")
    write_checkpoint(Path(path).expanduser(), tensors, about)


def load_model(path: str | Path, num_classes: int | None = None) -> ViT:
    """The ViT that `save_model` or `fit` wrote, on the CPU and in evaluation mode.

    Numbers stored in 16 bits come as the same ones in 32. With `num_classes`, it has a new,
    untrained head of so many. ValueError for no such file, one that is not whole or was damaged, or
    not of a ViT of this package.
    """
    model = load_weights(path).model
    return model if num_classes is None else model.with_classes(num_classes)


def load_weights(path: str | Path) -> Weights:
    """As `load_model`, with all that the file says of the model."""
    tensors, info = read_checkpoint(Path(path).expanduser())
    weights = {
        name: t.float() if t.dtype.itemsize == 2 else t
        for name, t in tensors.items()
        if not name.startswith("optimizer.")
    }
    try:
        model = build(ViTConfig(**info["config"]), weights)
        how = info.get("preprocess")  # files of before know neither this nor the classes
        how = None if how is None else Preprocess(**how)
        classes = tuple(info.get("classes", ()))
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} does not hold a ViT of vit_steps: {error}") from error
    return Weights(model.eval(), classes, how, info.get("measured", {}))


def build(config: ViTConfig, weights: dict[str, Tensor]) -> ViT:
    """The ViT of a config, with these tensors as its own; RuntimeError where they do not fit."""
    with torch.device("meta"):  # shapes alone; the numbers are there already
        model = ViT(config)
    model.load_state_dict(weights, assign=True)
    return model


def config_of(model: nn.Module) -> dict[str, Any]:
    """The model's `ViTConfig`, as a dict; TypeError where it has none."""
    config = getattr(model, "config", None)
    if not isinstance(config, ViTConfig):
        said = f"{type(model).__name__}.config is {config!r}"
        raise TypeError(f"{said}; to be saved, a model needs a ViTConfig there")
    return asdict(config)


def describe(
    config: dict, classes: Sequence[str], preprocess: Preprocess | None, measured: dict
) -> dict[str, Any]:
    """What a file says of its weights; ValueError where the names are not one for each class."""
    if classes and len(classes) != config["num_classes"]:
        raise ValueError(f"classes is {list(classes)}; the model has {config['num_classes']}")
    how = None if preprocess is None else asdict(preprocess)
    return dict(config=config, classes=list(classes), preprocess=how, measured=measured)


def check_plain(model: nn.Module, config: ViTConfig | None = None) -> None:
    """ValueError for a model that would come back as another.

    The ViT of its config (or of the one given) gets its weights, and an image of noise goes
    through both: what the head reads and what it gives must be the same.
    """
    original: Any = getattr(model, "_orig_mod", model)  # what torch.compile holds
    c, weights = config or ViTConfig(**config_of(model)), weights_of(model)
    said = f"this {type(original).__name__} is not the ViT of its config: "
    with torch.device("meta"):
        wanted = {name: tuple(tensor.shape) for name, tensor in ViT(c).state_dict().items()}
    got = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    for name in sorted(wanted.keys() | got.keys()):
        if got.get(name) != wanted.get(name):
            was, right = got.get(name, "missing"), wanted.get(name, "nothing")
            hint = " (new classes come by with_classes)" * name.startswith("head.")
            raise ValueError(f"{said}{name} is {was} where {right} is expected{hint}")
    twin = build(c, weights)
    first = next(original.parameters())
    height, width = as_pair(c.image_size)
    noise = torch.rand(1, c.in_channels, height, width, generator=torch.Generator().manual_seed(0))
    with evaluating(original), evaluating(twin):
        ours, its = (read_and_given(one, noise.to(first)) for one in (original, twin))
    for mine, plain in zip(ours, its, strict=False):  # without a head that is called: logits alone
        mine, plain = mine.nan_to_num(), plain.nan_to_num()
        off = (mine - plain).abs().max() / plain.abs().max().clamp(min=1e-12)
        if not off <= (1e-4 if first.dtype.itemsize > 2 else 1e-2):  # compiled blocks round
            raise ValueError(
                f"{said}a ViT with its config and weights answers otherwise (off by {off:.1%}): a "
                "part was exchanged, or its class computes something else; keep its state_dict"
            )


def read_and_given(model: Any, images: Tensor) -> list[Tensor]:
    """The logits of some images, and for each of them what the head reads, where that is told."""
    read: list[Tensor] = []
    hook = model.head.register_forward_pre_hook(lambda _, given: read.append(given[0]))
    try:
        logits = model(images)
    finally:
        hook.remove()
    return [logits, *(x for x in read if x.ndim == 2)]


def bare(name: str) -> str:
    """A weight's name in the model itself, where `torch.compile` wrapped the model or a block."""
    return name.replace("_orig_mod.", "")


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """The model's weights by their names, the same whether it is compiled or not."""
    return {bare(name): tensor for name, tensor in model.state_dict().items()}


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
