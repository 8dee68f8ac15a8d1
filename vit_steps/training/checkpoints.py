"""Lesson 07: weights in files that are whole, or not there; no pickle."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from operator import index
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from ..files import write_whole
from ..images import Preprocess
from ..inputs import as_pair
from ..vit import ViT, ViTConfig
from .loop import evaluating


@dataclass(frozen=True, eq=False)
class Weights:
    """A trained ViT, and what its file says of it.

    Args:
        model: on the CPU, in evaluation mode.
        classes: the name of each class; empty where the file does not say them.
        preprocess: how it wants its pictures; None where the file does not say it.
        measured: what it learned from, and how well it did, as `measuring.summary` makes it.
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
) -> None:
    """Write a ViT as safetensors, with its `ViTConfig` as JSON in the metadata.

    The model is a `ViT`, or a class of your own with the same names of weights and the same
    answers; `model.half()` takes half the room, and comes back in 32 bits. For the rest see
    `Weights`.

    TypeError where its `config` is no `ViTConfig`; ValueError for a model that is not the ViT of
    its config, for other classes, and a file that cannot be written; the one before is as it was.
    """
    check_plain(model)
    metadata = describe(model, classes, preprocess, measured or {})
    write_checkpoint(Path(path).expanduser(), weights_of(model), metadata)


def load_model(path: str | Path, num_classes: int | None = None) -> ViT:
    """Load the ViT that `save_model` or `fit` wrote, on the CPU and in evaluation mode.

    With `num_classes`, it has a new, untrained head of so many. ValueError for no such file, one
    that is broken, or not of a ViT of this package.
    """
    model = load_weights(path).model
    return model if num_classes is None else model.with_classes(num_classes)


def load_weights(path: str | Path) -> Weights:
    """Load as `load_model` does, with all that the file says of the model."""
    tensors, metadata = read_checkpoint(Path(path).expanduser())
    weights = {
        name: tensor.float() if tensor.dtype.itemsize == 2 else tensor
        for name, tensor in tensors.items()
        if not name.startswith("optimizer.")  # in a training's last file
    }
    if "config" not in metadata:
        advice = "vit_steps.pretrained.load reads weights that stand alone"
        raise ValueError(f"{path} does not hold a ViT of vit_steps with its config; {advice}")
    try:
        model = build(ViTConfig(**metadata["config"]), weights).eval()
        preprocess = metadata.get("preprocess")
        preprocess = None if preprocess is None else Preprocess(**preprocess)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} does not hold a ViT of vit_steps: {error}") from error
    classes = tuple(metadata.get("classes", ()))
    return Weights(model, classes, preprocess, metadata.get("measured", {}))


def build(config: ViTConfig, weights: dict[str, Tensor]) -> ViT:
    """Make the ViT of a config with these tensors; RuntimeError where they do not fit."""
    with torch.device("meta"):  # shapes alone; the numbers are there already
        model = ViT(config)
    model.load_state_dict(weights, assign=True)
    return model


def describe(
    model: Any, classes: Sequence[str], preprocess: Preprocess | None, measured: dict
) -> dict[str, Any]:
    """Make a file's metadata; ValueError where the names are not one for each class."""
    config, prepared = asdict(model.config), None if preprocess is None else asdict(preprocess)
    if classes and len(classes) != config["num_classes"]:
        raise ValueError(f"classes is {list(classes)}; the model has {config['num_classes']}")
    return dict(config=config, classes=list(classes), preprocess=prepared, measured=measured)


def check_plain(model: nn.Module, config: ViTConfig | None = None) -> None:
    """Refuse a model that would come back as another, by a ValueError.

    The ViT of its config (or of the one given) gets its weights, and an image of noise goes
    through both: the tokens that the head reads and the logits must be the same. TypeError where
    the model has no `ViTConfig`.
    """
    original: Any = getattr(model, "_orig_mod", model)  # what torch.compile holds
    config = config or getattr(original, "config", None)
    if not isinstance(config, ViTConfig):
        problem = f"{type(original).__name__}.config is {config!r}"
        raise TypeError(f"{problem}; to be saved, a model needs a ViTConfig there")
    refusal = f"this {type(original).__name__} is not the ViT of its config: "
    weights = weights_of(model)
    shapes = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    with torch.device("meta"):
        expected = {name: tuple(tensor.shape) for name, tensor in ViT(config).state_dict().items()}
    for name in sorted(shapes.keys() | expected.keys()):
        shape, right = shapes.get(name, "missing"), expected.get(name, "nothing")
        if shape != right:
            hint = " (new classes come by with_classes)" if name.startswith("head.") else ""
            raise ValueError(f"{refusal}{name} is {shape} where {right} is expected{hint}")
    twin, first = build(config, weights), next(original.parameters())
    generator = torch.Generator().manual_seed(0)
    size = 1, config.in_channels, *as_pair(config.image_size)
    noise = torch.rand(size, generator=generator).to(first)
    with evaluating(original), evaluating(twin):
        pairs = zip(_head_and_logits(original, noise), _head_and_logits(twin, noise), strict=False)
    for actual, plain in pairs:  # where the head is not called, the logits alone
        actual, plain = actual.nan_to_num(), plain.nan_to_num()
        off = (actual - plain).abs().max() / plain.abs().max()
        if off > (1e-4 if first.dtype.itemsize > 2 else 1e-2):  # compiled blocks round
            raise ValueError(
                f"{refusal}a ViT with its config and weights answers otherwise (off by {off:.1%}): "
                "a part was exchanged, or its class computes something else; keep its state_dict"
            )


def _head_and_logits(model: Any, images: Tensor) -> list[Tensor]:
    """Give the logits of some images, and what the head reads wherever it is called."""
    reads: list[Tensor] = []
    hook = model.head.register_forward_pre_hook(lambda _, inputs: reads.append(inputs[0]))
    try:
        return [model(images), *(x for x in reads if x.ndim == 2)]
    finally:
        hook.remove()


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Give the model's weights by their names, the same where it or a block is compiled."""
    return {name.replace("_orig_mod.", ""): tensor for name, tensor in model.state_dict().items()}


def write_checkpoint(path: Path, tensors: dict[str, Tensor], metadata: dict[str, Any]) -> None:
    """Write tensors, and JSON as metadata, whole or not at all."""
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    # By index NumPy's whole numbers are numbers too.
    texts = {name: json.dumps(value, default=index) for name, value in metadata.items()}
    write_whole(path, save(on_cpu, texts))


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the tensors, and the metadata's JSON, of a file that `write_checkpoint` wrote.

    ValueError where there is no such file, or it is broken; a pickle is not opened.
    """
    try:
        data = path.read_bytes()
        tensors = load(data)  # checks the header, before its metadata are taken from it
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        texts = header.get("__metadata__", {})
        return tensors, {name: json.loads(text) for name, text in texts.items()}
    except FileNotFoundError:
        raise ValueError(f"{path} is not there; check the path") from None
    except (SafetensorError, OSError, ValueError) as error:
        problem = f"{path} cannot be read as a file of this package ({error})"
        others = "what others, torch.save or safetensors alone wrote"
        raise ValueError(f"{problem}; vit_steps.pretrained.load reads {others}") from error
