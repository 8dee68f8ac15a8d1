"""Loading a published checkpoint, and writing one."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

from safetensors.torch import save

from ..files import write_whole
from ..images import Preprocess
from ..inputs import check_sizes
from ..training import Weights, load_weights
from ..training.checkpoints import build, check_plain, weights_of
from ..vit import ViT
from . import layouts
from .reading import OWN, SETTINGS, find, read, read_settings
from .settings import read_config, read_preprocess, to_hugging_face

__all__ = ["OWN", "Loaded", "load", "save_hugging_face"]
# How the names of a head begin in every layout, and of what older files of Google's have before it.
HEADS = ("head", "classifier", "pre_logits")


@dataclass(frozen=True, eq=False)
class Loaded(Weights):
    """Weights in our class, and what became of each tensor of their file.

    Args:
        layout: whose names the tensors had, a key of `layouts.LAYOUTS`, or "vit_steps".
        used: the names of the tensors that the model holds now.
        unused: those left over: Hugging Face's `pooler`, and a head that was replaced.
    """

    layout: str = "vit_steps"
    used: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Say it in one line, with the names of those left over."""
        names = f" ({shorten(', '.join(self.unused), 200)})" if self.unused else ""
        used, unused = len(self.used), len(self.unused)
        return f"{self.layout} layout: {used} tensors used, {unused} left over{names}"


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
            which only tensors are read), a folder with config.json and model.safetensors, or the
            id of a model on huggingface.co, such as "google/vit-base-patch16-224", which is kept
            in huggingface_hub's cache. "photos" and "scattered" are the course's own.
        num_classes: for a new, untrained head of so many classes, or none with 0; None keeps the
            checkpoint's own.
        num_heads: h, where neither the tensors (Google's do) nor a config.json say it. No shape
            tells it: known are B, L and H as they were published.
        revision: of a model on the hub: a branch, a tag or a commit hash; None takes its main one.
        preprocess: how it wants its pictures, where you know better than the files beside it. A
            file alone says nothing, and some DeiT's and DINO's say it wrongly: compare with the
            publisher's page what `settings.read_preprocess` took.

    Returns:
        `Loaded`. LayerNorm's eps is config.json's, else Hugging Face's 1e-12 or the others' 1e-6.

    Raises:
        TypeError: num_classes or num_heads is no whole number.
        ValueError: no such file or model, no network, a file that is broken or holds more than
            weights, a model that is not ours, or heads that nothing tells. The message says which.
    """
    check_sizes(0, num_classes=0 if num_classes is None else num_classes)
    check_sizes(num_heads=1 if num_heads is None else num_heads)
    path = find(source, revision)
    tensors, new_head = read(path), num_classes is not None
    unused = [n for n in tensors if "pooler." in n or (new_head and n.startswith(HEADS))]
    if "tokens.cls_token" in tensors:
        layout, weights = "vit_steps", load_weights(path)
        tensors = weights.model.state_dict()
    else:
        tensors = {name: tensor for name, tensor in tensors.items() if name not in unused}
        try:
            layout, weights = _convert(path, tensors, new_head, num_heads, preprocess)
        except (TypeError, ValueError, LookupError, RuntimeError, AttributeError) as error:
            raise ValueError(f"{path}: {' '.join(str(error).split())}") from error
    model, classes, measured = weights.model.eval(), weights.classes, weights.measured
    if num_classes is not None:
        model, classes = model.with_classes(num_classes), ()
        measured = {name: value for name, value in measured.items() if name != "result"}
    used = tuple(name for name in tensors if name not in unused)
    preprocess = preprocess or weights.preprocess
    return Loaded(model, classes, preprocess, measured, layout, used, tuple(unused))


def _convert(
    path: Path, tensors: dict, new_head: bool, num_heads: int | None, preprocess: Preprocess | None
) -> tuple[str, Weights]:
    """Give the layout of published tensors, and our ViT with them; without a head for a new one."""
    settings, pictures = (read_settings(path, name) for name in SETTINGS)
    layout, names = layouts.recognise(tensors)
    if new_head:
        del names["head.weight"], names["head.bias"]
    elif not {*names["head.weight"], *names["head.bias"]} & tensors.keys():
        raise ValueError("it has no head; give num_classes for a new, untrained one, or 0")
    layouts.check_names(tensors, names)
    turn = layouts.from_flax if layout == "Google" else layouts.unchanged
    weights = layouts.rename(tensors, names, turn)
    if layout == "Google":  # its heads have an axis of their own
        shapes = (tensor.shape for name, tensor in tensors.items() if "/query/kernel" in name)
        settings["num_attention_heads"] = next(shapes, (0, None))[1]
    config = read_config(weights, layout, settings, num_heads)
    preprocess = preprocess or read_preprocess(layout, config, settings, pictures)
    classes, numbers = settings.get("id2label"), [str(i) for i in range(config.num_classes)]
    if not isinstance(classes, dict) or classes.keys() != {*numbers}:
        return layout, Weights(build(config, weights), (), preprocess)
    names = tuple(str(classes[number]) for number in numbers)
    return layout, Weights(build(config, weights), names, preprocess)


def save_hugging_face(
    model: ViT,
    folder: str | Path,
    classes: tuple[str, ...] = (),
    preprocess: Preprocess | None = None,
) -> None:
    """Write a model as Hugging Face's library does: `pipeline("image-classification", folder)`.

    Args:
        folder: for config.json, model.safetensors and preprocessor_config.json; made if need be.
        classes: a name for each class; by default LABEL_0, LABEL_1, …, as theirs are.
        preprocess: how the model wants its pictures; a pipeline does not start without it.

    Raises:
        ValueError: a model that their class cannot hold (mean pooling, an exchanged part), another
            number of names, preparation that theirs cannot do (grey, ink), or a folder that cannot
            be written.
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
    for ours, theirs in layouts.their_names(layouts.HUGGING_FACE, c.depth).items():
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
