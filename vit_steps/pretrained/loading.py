"""Loading a published checkpoint, and writing one."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import save

from ..files import write_whole
from ..images import Preprocess
from ..inputs import check_sizes
from ..training import Weights, load_weights
from ..training.checkpoints import build, check_plain, weights_of
from ..vit import ViT
from . import layouts
from .reading import SETTINGS, find, read, read_settings
from .settings import read_classes, read_config, read_preprocess, to_hugging_face

# The course's own, by name; the README there tells of them.
OWN = {n: Path(__file__).parents[1] / f"weights/{n}.safetensors" for n in ("photos", "scattered")}


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
            "google/vit-base-patch16-224", which is kept in huggingface_hub's cache. Where no
            weights of that name are there, "photos" and "scattered" are the course's own.
        num_classes: for a new, untrained head of so many classes, or none with 0; None keeps the
            checkpoint's own.
        num_heads: h, where neither the tensors (Google's do) nor a config.json say it. No shape
            tells it: known are B, L and H as they were published.
        revision: of a model on the hub: a branch, a tag or a commit hash; None takes its main one.
        preprocess: how it wants its pictures, where you know better than the files beside it. The
            hub's files of some DeiT and DINO do not say how these were trained; a file alone says
            nothing, and what its layout usually wants is taken (`settings.read_preprocess`), so
            compare with its publisher's page.

    Returns:
        `Loaded`. LayerNorm's eps is config.json's, else Hugging Face's 1e-12 or the others' 1e-6.

    Raises:
        TypeError: num_classes or num_heads is no whole number.
        ValueError: no such file or model, no network, a file that is broken or holds more than
            weights, a model that is not ours, or heads that nothing tells. The message says which.
    """
    if num_classes is not None:
        check_sizes(0, num_classes=num_classes)
    if num_heads is not None:
        check_sizes(num_heads=num_heads)
    try:
        path = find(source, revision)
    except ValueError:
        if source not in OWN or revision is not None:
            raise
        path = find(OWN[str(source)])  # a Path: what is missing is named by its place
    tensors = read(path)
    if "tokens.cls_token" in tensors:
        return load_ours(path, num_classes, preprocess)
    try:
        settings, pictures = read_settings(path)
        layout, names = layouts.recognise(tensors)
        head = {*names["head.weight"], *names["head.bias"]}
        unused = [name for name in tensors if "pooler." in name]
        if num_classes is not None:
            unused += [name for name in tensors if name in head or "pre_logits" in name]
            del names["head.weight"], names["head.bias"]
        elif not head & {*tensors}:
            raise ValueError("it has no head; give num_classes for a new, untrained one, or 0")
        used = {name: tensor for name, tensor in tensors.items() if name not in unused}
        layouts.check_names(used, names)
        turn = layouts.from_flax if layout == "Google" else layouts.unchanged
        weights = layouts.rename(used, names, turn)
        if layout == "Google":  # its heads have an axis of their own
            shapes = (tensor.shape for name, tensor in used.items() if "/query/kernel" in name)
            settings["num_attention_heads"] = next(shapes, (0, None))[1]
        config = read_config(weights, layout, settings, num_heads)
        model = build(config, weights)
        how = preprocess or read_preprocess(layout, config, settings, pictures)
    except (TypeError, ValueError, LookupError, RuntimeError) as error:
        raise ValueError(f"{path}: {' '.join(str(error).split())}") from error
    classes = read_classes(settings, config.num_classes)
    if num_classes is not None:
        model, classes = model.with_classes(num_classes), ()
    return Loaded(model.eval(), classes, how, {}, layout, tuple(used), tuple(unused))


def load_ours(path: Path, num_classes: int | None, preprocess: Preprocess | None) -> Loaded:
    """What `load` gives for a file of this package."""
    found = load_weights(path)
    model, classes, measured = found.model, found.classes, found.measured
    used, unused = tuple(model.state_dict()), ()
    if num_classes is not None:
        model, classes = model.with_classes(num_classes), ()
        measured = {name: said for name, said in measured.items() if name != "result"}
        unused = tuple(name for name in used if name.startswith("head."))
        used = tuple(name for name in used if name not in unused)
    how = preprocess or found.preprocess
    return Loaded(model, classes, how, measured, "vit_steps", used, unused)


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
    with suppress(OSError):  # `write_whole` says what is wrong
        Path(folder).mkdir(parents=True, exist_ok=True)
    write_whole(Path(folder, "model.safetensors"), save(tensors, metadata={"format": "pt"}))
    for name, said in zip(SETTINGS, (settings, pictures), strict=True):
        if said is None:
            Path(folder, name).unlink(missing_ok=True)  # it was another model's
        else:
            write_whole(Path(folder, name), json.dumps(said, indent=2).encode())
