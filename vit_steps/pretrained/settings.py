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
# Hugging Face's words for the options with which timm made a model.
TIMM = {"num_heads": "num_attention_heads", "act_layer": "hidden_act", "img_size": "image_size"}
POOLS = {"token": "cls", "avg": "mean"}  # timm's words, and ours
IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
RESAMPLING = {2: "bilinear", 3: "bicubic"}  # Pillow's numbers, which Hugging Face's files use


def read_config(
    weights: dict[str, Tensor], layout: str, settings: dict[str, Any], num_heads: int | None
) -> ViTConfig:
    """Read the model's sizes from its tensors' shapes, and from config.json what no shape tells.

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
    options = settings.get("model_args") or {}
    settings = settings | {TIMM.get(name, name): value for name, value in options.items()}
    if (activation := settings.get("hidden_act", "gelu")) != "gelu":
        raise ValueError(f"its config.json asks for {activation}; ours is GELU by erf")
    if (pool := settings.get("global_pool", "token")) not in POOLS:
        raise ValueError(f"its head reads the tokens by {pool!r}; ours reads cls or their mean")
    stored_heads = settings.get("num_attention_heads")
    if re.match(r"(vit|deit)_(tiny|small)_patch", str(settings.get("architecture"))):
        stored_heads = stored_heads or {192: 3, 384: 6}.get(embed_dim)  # timm leaves it to the name
    if stored_heads and num_heads and stored_heads != num_heads:
        raise ValueError(f"num_heads is {num_heads}, but the checkpoint says {stored_heads}")
    num_heads = stored_heads or num_heads or PUBLISHED_HEADS.get((embed_dim, depth, hidden))
    if num_heads is None:
        raise ValueError(
            f"nothing says how many heads share the width {embed_dim}; give num_heads (DeiT-Ti has "
            "3, DeiT-S and DINO's S 6, MoCo v3's S 12): with another number every tensor fits, and "
            "every answer is wrong"
        )
    patches = positions[1] - 1
    image_size = settings.get("image_size") or round(patches**0.5) * patch_size
    height, width = as_pair(image_size)
    if (height // patch_size) * (width // patch_size) != patches:
        raise ValueError(
            f"there are positions for {patches} patches of side {patch_size}, which do not make "
            f"{height}×{width} pixels, the image's size by its config.json or else a square"
        )
    return ViTConfig(
        image_size, patch_size, channels, shapes.get("head.weight", (0,))[0],
        embed_dim, depth, num_heads, mlp_ratio=hidden / embed_dim,
        qkv_bias="blocks.0.attn.qkv.bias" in weights, pool=POOLS[pool],
        norm_eps=settings.get("layer_norm_eps", 1e-12 if layout == "Hugging Face" else 1e-6),
    )  # fmt: skip


def read_preprocess(
    layout: str, config: ViTConfig, settings: dict[str, Any], pictures: dict[str, Any]
) -> Preprocess:
    """Read how the checkpoint wants its pictures; where no file says it, as its layout usually is.

    The files are preprocessor_config.json and, for timm, config.json. Without them Google's and
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
            side, cut = pictures.get("size"), pictures.get("do_center_crop", False)
            if isinstance(side, dict):
                cut = cut or "shortest_edge" in side
                side = side.get("shortest_edge", side.get("height"))
            resample = pictures.get("resample", 2)
            interpolation = RESAMPLING.get(resample, f"Pillow's number {resample}")
            mean, std = pictures.get("image_mean", half), pictures.get("image_std", half)
            if not pictures.get("do_normalize", True):
                mean, std = (0.0,) * 3, (1.0,) * 3
            return Preprocess(size, side if cut and side else None, interpolation, mean, std)
        if timm := settings.get("pretrained_cfg"):
            side = int(max(size) / timm.get("crop_pct", 1.0))
            return Preprocess(size, side, timm["interpolation"], timm["mean"], timm["std"])
    except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"its preprocessing cannot be followed: {error}") from error
    if layout in ("Hugging Face", "Google"):
        return Preprocess(size)
    interpolation = "bilinear" if layout == "torchvision" else "bicubic"
    side = max(size) * 256 // 224
    return Preprocess(size, side, interpolation, IMAGENET["mean"], IMAGENET["std"])


def to_hugging_face(preprocess: Preprocess) -> dict[str, Any]:
    """Give what preprocessor_config.json says; ValueError for what their library cannot do."""
    (height, width), side = preprocess.size, preprocess.shorter_side
    padded = height != width and side is not None and side < max(height, width)
    if len(preprocess.mean) != 3 or preprocess.ink or padded:
        raise ValueError(
            f"{preprocess}: Hugging Face's pipeline gives three channels, dark as 0, and pads what "
            "shorter_side does not cover; leave preprocess out, and prepare the pictures yourself"
        )
    size = dict(height=height, width=width)
    settings = dict[str, Any](image_processor_type="ViTImageProcessor", size=size)
    if side is not None:
        settings = dict[str, Any](
            image_processor_type="CLIPImageProcessor", do_center_crop=True, do_convert_rgb=True,
            size={"shortest_edge": max(side, height, width)}, crop_size=size,
        )  # fmt: skip
    resample = next(n for n, name in RESAMPLING.items() if name == preprocess.interpolation)
    settings |= dict(do_resize=True, resample=resample, do_rescale=True, rescale_factor=1 / 255)
    return settings | dict(do_normalize=True, image_mean=preprocess.mean, image_std=preprocess.std)
