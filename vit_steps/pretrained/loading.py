"""Loading a published checkpoint, and writing one."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import nn

from ..files import write_whole
from ..images import Preprocess
from ..inputs import as_pair, check_sizes
from ..training import load_weights
from ..training.checkpoints import check_plain
from ..vit import ViT, ViTConfig, init_weights
from . import layouts
from .finding import find, read_settings
from .preprocess import RESAMPLING, read_preprocess
from .reading import read
from .sizes import read_classes, read_config


@dataclass(frozen=True, eq=False)
class Loaded:
    """A published checkpoint in our class, and what became of each of its tensors.

    Args:
        model: in eval mode.
        config: the model's.
        preprocess: how it wants its pictures: `model(loaded.preprocess("cat.jpg"))`. None where
            a file of this package does not say it.
        classes: the classes' names, where the files say them; else empty.
        layout: whose names the tensors had, a key of `layouts.LAYOUTS`, or "vit_steps".
        used: the names of the tensors that the model holds now.
        unused: those left over: Hugging Face's `pooler`, and a head that was replaced.
        measured: what a file of this package says of its training, see `training.Weights`.
    """

    model: ViT
    config: ViTConfig
    preprocess: Preprocess | None
    classes: tuple[str, ...]
    layout: str
    used: tuple[str, ...]
    unused: tuple[str, ...]
    measured: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        left = f"{len(self.unused)} left over"
        left += f" ({layouts.listed(self.unused)})" if self.unused else ""
        return f"{self.layout} layout: {len(self.used)} tensors used, {left}"


def load(
    source: str | Path,
    num_classes: int | None = None,
    num_heads: int | None = None,
    revision: str | None = None,
    preprocess: Preprocess | None = None,
) -> Loaded:
    """Load weights into our ViT, published ones or our own, and check that each has its place.

    Args:
        source: a file (.safetensors, of this package's too; Google's .npz; .pth, .pt or .bin, of
            which only tensors are read), a folder with config.json and model.safetensors, that
            model.safetensors itself, or the id of a model on huggingface.co, such as
            "google/vit-base-patch16-224". What a hub id needs is downloaded once and kept in
            huggingface_hub's cache.
        num_classes: for a new, untrained head of so many classes; None keeps the checkpoint's own.
        num_heads: h, where neither the tensors (Google's do) nor a config.json say it. No shape
            tells it: known are B, L, H, g and G as they were published (`sizes.PUBLISHED_HEADS`).
        revision: of a model on the hub: a branch, a tag or a commit hash; None takes its main one.
        preprocess: how it wants its pictures, where you know better than the files beside it.

    Returns:
        `Loaded`: the model, its config, its preprocessing, class names, and what was used.
        LayerNorm's eps is config.json's, else 1e-12 for Hugging Face's layout and 1e-6 for others.
        Preprocessing is what the files beside it say, else what its layout usually wants; a file
        alone cannot say it, so compare with its publisher's page (a file in timm's names is taken
        for one trained on ImageNet's mean and std, as DeiT was; Google's own, in any names, were
        trained on mean = std = 0.5). The hub's DeiT and DINO, whose stored preprocessing is not
        always that of their training, are known by the hub's id; for a copy in a folder give it.

    Raises:
        TypeError: num_classes or num_heads is no whole number.
        ValueError: nothing there, no network, a file that is broken or holds more than weights, a
            layout or a model that is not ours, a number of heads that nothing says, or tensors
            that are missing, left over or of a wrong shape; the message names them.
    """
    for name, number in (("num_classes", num_classes), ("num_heads", num_heads)):
        if number is not None:
            check_sizes(**{name: number})
    path = find(source, revision)
    settings, pictures = read_settings(path)
    tensors = read(path)
    if "tokens.cls_token" in tensors:
        return load_ours(path, num_classes, preprocess)
    layout, names = layouts.recognise(tensors, path)
    head = {*names["head.weight"], *names["head.bias"]}
    unused = [name for name in tensors if "pooler." in name]
    if num_classes is not None:
        unused += [name for name in tensors if name in head or "pre_logits" in name]
        del names["head.weight"], names["head.bias"]
    elif not head & {*tensors}:
        raise ValueError(f"{path.name} has no head; give num_classes for a new, untrained one")
    used = {name: tensor for name, tensor in tensors.items() if name not in unused}
    layouts.check_names(used, names, path)
    try:
        weights = layouts.rename(used, names, layouts.TO_OURS.get(layout, layouts.unchanged))
        config = read_config(weights, layout, used, settings, num_heads)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path.name}: {error}") from error
    if num_classes is not None:
        config = replace(config, num_classes=num_classes)
        fresh = nn.Linear(config.embed_dim, num_classes)
        init_weights(fresh)
        weights |= {f"head.{name}": tensor for name, tensor in fresh.state_dict().items()}
    with torch.device("meta"):  # shapes without numbers: the weights are about to come
        model = ViT(config)
    layouts.check_shapes(weights, model.state_dict(), names, path)
    model.load_state_dict(weights, assign=True)
    wanted = preprocess or read_preprocess(str(source), layout, config, settings, pictures)
    labels = read_classes(settings, config.num_classes) if num_classes is None else ()
    return Loaded(model.eval(), config, wanted, labels, layout, tuple(used), tuple(unused))


def load_ours(path: Path, num_classes: int | None, preprocess: Preprocess | None) -> Loaded:
    """What `load` gives for a file of this package."""
    found = load_weights(path)
    model, classes, how = found.model, found.classes, preprocess or found.preprocess
    if num_classes is not None:
        model, classes = model.with_classes(num_classes), ()
    used = tuple(found.model.state_dict())
    unused = tuple(n for n in used if n.startswith("head.")) if num_classes is not None else ()
    used = tuple(name for name in used if name not in unused)
    return Loaded(model, model.config, how, classes, "vit_steps", used, unused, found.measured)


def save_hugging_face(
    model: ViT,
    folder: str | Path,
    classes: tuple[str, ...] = (),
    preprocess: Preprocess | None = None,
) -> None:
    """Write a model as Hugging Face's library does: `pipeline("image-classification", folder)`.

    The files are config.json, model.safetensors and, where `preprocess` is given (without it a
    pipeline does not start), preprocessor_config.json.

    Args:
        folder: made if it is not there.
        classes: a name for each class; by default LABEL_0, LABEL_1, …, as theirs are.
        preprocess: how the model wants its pictures, of three channels.

    Raises:
        ValueError: a model that their class cannot hold (mean pooling, an exchanged part), another
            number of names, preparation that theirs cannot do (grey, ink), or a folder that cannot
            be made or written.
    """
    check_plain(model)
    pictures = None if preprocess is None else to_hugging_face(preprocess)
    c, weights = model.config, model.state_dict()
    if c.pool != "cls":
        raise ValueError("pool is 'mean'; Hugging Face's ViT reads the cls token")
    classes = classes or tuple(f"LABEL_{number}" for number in range(c.num_classes))
    if len(classes) != c.num_classes:
        raise ValueError(f"there are {len(classes)} names for {c.num_classes} classes")
    tensors = {}
    for ours, theirs in layouts.their_names(layouts.HUGGING_FACE, c.depth).items():
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
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{folder} cannot be made: {error.strerror or error}") from error
    write_whole(Path(folder, "model.safetensors"), save(tensors, metadata={"format": "pt"}))
    write_whole(Path(folder, "config.json"), json.dumps(settings, indent=2).encode())
    if pictures is not None:
        said = json.dumps(pictures, indent=2).encode()
        write_whole(Path(folder, "preprocessor_config.json"), said)


def to_hugging_face(how: Preprocess) -> dict[str, Any]:
    """What preprocessor_config.json says; ValueError for what their library cannot do."""
    if len(how.mean) != 3 or how.ink:
        raise ValueError(f"{how}: Hugging Face's pipeline gives three channels, dark as 0; leave "
                         "preprocess out, and prepare the pictures yourself")  # fmt: skip
    height, width = as_pair(how.size)
    size: dict[str, int] = dict(height=height, width=width)
    pictures: dict[str, Any] = dict(image_processor_type="ViTImageProcessor", size=size)
    if how.shorter_side is not None:
        cut = dict(size={"shortest_edge": how.shorter_side}, do_center_crop=True, crop_size=size)
        pictures = dict(image_processor_type="CLIPImageProcessor", do_convert_rgb=True, **cut)
    number = next(n for n, name in RESAMPLING.items() if name == how.interpolation)
    scale = dict(do_resize=True, do_rescale=True, rescale_factor=1 / 255, resample=number)
    return pictures | scale | dict(do_normalize=True, image_mean=how.mean, image_std=how.std)
