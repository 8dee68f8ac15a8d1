"""What no tensor says: a model's sizes, its classes, and how it wants its pictures."""

import re
from typing import Any

from torch import Tensor

from ..images import Preprocess
from ..inputs import as_pair
from ..vit import ViTConfig

# Heads of the published ViTs, by width, blocks and the MLP's width (Dosovitskiy et al. 2021,
# table 1: B, L, H). Narrower ones were published with two numbers of heads.
PUBLISHED_HEADS = {(768, 12, 3072): 12, (1024, 24, 4096): 16, (1280, 32, 5120): 16}
POOLS = {"token": "cls", "avg": "mean"}  # timm's words
IMAGENET: dict[str, Any] = dict(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
RESAMPLING = {2: "bilinear", 3: "bicubic"}  # Pillow's numbers, which Hugging Face's files use


def read_config(
    weights: dict[str, Tensor], layout: str, settings: dict, num_heads: int | None
) -> ViTConfig:
    """The model's sizes, from the shapes of its tensors; what no shape tells, from config.json.

    The weights are under our names. ValueError where no ViT of ours has such shapes, activation or
    pooling, and where nothing says the number of heads.
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
    depth = 1 + max(int(name.split(".")[1]) for name in shapes if name.startswith("blocks."))
    options = settings.get("model_args")  # those with which timm made the model
    options = options if isinstance(options, dict) else {}
    act = settings.get("hidden_act", options.get("act_layer", "gelu"))
    if act != "gelu":
        raise ValueError(f"its config.json asks for {act}; ours is GELU by erf")
    pool = options.get("global_pool", settings.get("global_pool", "token"))
    if not isinstance(pool, str) or pool not in POOLS:
        raise ValueError(f"its head reads the tokens by {pool!r}; ours reads cls or their mean")
    said = settings.get("num_attention_heads") or options.get("num_heads")
    if re.match(r"(vit|deit)_(tiny|small)_patch", str(settings.get("architecture"))):
        said = said or {192: 3, 384: 6}.get(embed_dim)  # timm's, which leaves it to the name
    if said and num_heads and said != num_heads:
        raise ValueError(f"num_heads is {num_heads}, but the checkpoint says {said}")
    num_heads = said or num_heads or PUBLISHED_HEADS.get((embed_dim, depth, hidden))
    if num_heads is None:
        raise ValueError(
            f"nothing says how many heads share the width {embed_dim}; give num_heads (DeiT-Ti has "
            "3, DeiT-S and DINO's S 6, MoCo v3's S 12): with another number every tensor fits, and "
            "every answer is wrong"
        )
    return ViTConfig(
        image_size=read_image_size(positions[1] - 1, patch_size, settings, options),
        patch_size=patch_size,
        in_channels=channels,
        num_classes=shapes.get("head.weight", (0,))[0],
        embed_dim=embed_dim,
        depth=depth,
        num_heads=num_heads,
        mlp_ratio=hidden / embed_dim,
        qkv_bias="blocks.0.attn.qkv.bias" in weights,
        pool=POOLS[pool],
        norm_eps=settings.get("layer_norm_eps", 1e-12 if layout == "Hugging Face" else 1e-6),
    )


def read_image_size(
    patches: int, patch_size: int, settings: dict, options: dict
) -> int | tuple[int, int]:
    """In pixels: config.json's, or else a square; ValueError where the patches do not make it."""
    said = settings.get("image_size", options.get("img_size"))
    if said is None:
        said = round(patches**0.5) * patch_size
    height, width = as_pair(said)
    if (height // patch_size) * (width // patch_size) != patches:
        raise ValueError(
            f"there are positions for {patches} patches of side {patch_size}, which do not make "
            f"{height}×{width} pixels, the image's size by its config.json or else a square"
        )
    return said


def read_classes(settings: dict, count: int) -> tuple[str, ...]:
    """The classes' names as config.json says them (id2label), if there is one for each."""
    names = settings.get("id2label")
    order = [str(number) for number in range(count)]
    if not isinstance(names, dict) or set(names) != set(order):
        return ()
    return tuple(str(names[number]) for number in order)


def read_preprocess(layout: str, config: ViTConfig, settings: dict, pictures: dict) -> Preprocess:
    """How the checkpoint wants its pictures: as the files beside it say, else as its layout does.

    Those files are preprocessor_config.json and, for timm, config.json. Without them Google's and
    Hugging Face's are resized straight to the size and brought to -1…1; the others have their
    shorter side resized (256 for 224, by bicubic interpolation, torchvision's by bilinear), the
    middle cut out, and ImageNet's mean and std taken off.

    ValueError where the files say what cannot be followed.
    """
    size, half = as_pair(config.image_size), (0.5,) * config.in_channels
    if config.in_channels != 3:
        return Preprocess(size, mean=half, std=half)
    try:
        if pictures:
            return from_hugging_face(size, pictures)
        if said := settings.get("pretrained_cfg"):
            side = int(max(size) / said.get("crop_pct", 1.0))
            return Preprocess(size, side, said["interpolation"], said["mean"], said["std"])
    except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"its preprocessing cannot be followed: {error}") from error
    if layout in ("Hugging Face", "Google"):
        return Preprocess(size)
    interpolation = "bilinear" if layout == "torchvision" else "bicubic"
    return Preprocess(size, max(size) * 256 // 224, interpolation, **IMAGENET)


def from_hugging_face(size: tuple[int, int], pictures: dict) -> Preprocess:
    """As preprocessor_config.json says; the size is the model's, which takes no other."""
    wanted, cut = pictures.get("size"), pictures.get("do_center_crop", False)
    if isinstance(wanted, dict):
        cut = cut or "shortest_edge" in wanted
        wanted = wanted.get("shortest_edge", wanted.get("height"))
    resample = pictures.get("resample", 2)
    mean, std = pictures.get("image_mean", (0.5,) * 3), pictures.get("image_std", (0.5,) * 3)
    if not pictures.get("do_normalize", True):
        mean, std = (0.0,) * 3, (1.0,) * 3
    interpolation = RESAMPLING.get(resample, f"Pillow's number {resample}")
    return Preprocess(size, wanted if cut and wanted else None, interpolation, mean, std)


def to_hugging_face(how: Preprocess) -> dict[str, Any]:
    """What preprocessor_config.json says; ValueError for what their library cannot do."""
    height, width = how.size
    padded = height != width and how.shorter_side is not None and how.shorter_side < max(how.size)
    if len(how.mean) != 3 or how.ink or padded:
        raise ValueError(
            f"{how}: Hugging Face's pipeline gives three channels, dark as 0, and pads what "
            "shorter_side does not cover; leave preprocess out, and prepare the pictures yourself"
        )
    number = next(n for n, name in RESAMPLING.items() if name == how.interpolation)
    size: dict[str, int] = dict(height=height, width=width)
    said: dict[str, Any] = dict(image_processor_type="ViTImageProcessor", size=size)
    if how.shorter_side is not None:
        edge = max(how.shorter_side, height, width)
        said = dict(image_processor_type="CLIPImageProcessor", size={"shortest_edge": edge})
        said |= dict(do_center_crop=True, crop_size=size, do_convert_rgb=True)
    said |= dict(do_resize=True, resample=number, do_rescale=True, rescale_factor=1 / 255)
    return said | dict(do_normalize=True, image_mean=how.mean, image_std=how.std)
