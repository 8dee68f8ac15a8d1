"""What no tensor says: a model's sizes, its classes, and how it wants its pictures."""

import re
from typing import Any

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
    weights: dict, layout: str, settings: dict, num_heads: int | None, image_size: Any = None
) -> ViTConfig:
    """Read the model's sizes from its tensors, under our names, and config.json for the others."""
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
    heads = settings.get("num_attention_heads")
    if re.match(r"(vit|deit)_(tiny|small)_patch", str(settings.get("architecture"))):
        heads = heads or {192: 3, 384: 6}.get(embed_dim)  # timm leaves it to the name
    if heads and num_heads not in (None, heads):
        raise ValueError(f"num_heads is {num_heads}, but the checkpoint says {heads}")
    heads = heads or num_heads or PUBLISHED_HEADS.get((embed_dim, depth, hidden))
    if heads is None:
        raise ValueError(
            f"nothing says how many heads share the width {embed_dim}; give num_heads (DeiT-Ti has "
            "3, DeiT-S and DINO's S 6, MoCo v3's S 12); a wrong number fits, too"
        )
    patches = positions[1] - 1
    image_size = image_size or settings.get("image_size") or round(patches**0.5) * patch_size
    height, width = as_pair(image_size)
    if (height // patch_size) * (width // patch_size) != patches:
        problem = f"{patches} patches of {patch_size} pixels do not make {height}×{width}"
        raise ValueError(f"{problem}; give image_size=(height, width), that of its training")
    return ViTConfig(
        image_size, patch_size, channels, shapes.get("head.weight", (0,))[0],
        embed_dim, depth, heads, mlp_ratio=hidden / embed_dim,
        qkv_bias="blocks.0.attn.qkv.bias" in weights, pool=POOLS[pool],
        norm_eps=settings.get("layer_norm_eps", 1e-12 if layout == "Hugging Face" else 1e-6),
    )  # fmt: skip


def read_preprocess(layout: str, config: ViTConfig, settings: dict, pictures: dict) -> Preprocess:
    """Read how the checkpoint wants its pictures; ValueError for what cannot be followed.

    By preprocessor_config.json or timm's config.json, else as its layout usually does: stretched
    to the size and brought to -1…1 (Google's and Hugging Face's), or with the shorter side resized
    (256 for 224), the middle cut out, and ImageNet's mean and std taken off.
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
    mode = "bilinear" if layout == "torchvision" else "bicubic"
    return Preprocess(size, max(size) * 256 // 224, mode, IMAGENET["mean"], IMAGENET["std"])


def to_hugging_face(preprocess: Preprocess) -> dict[str, Any]:
    """Give what preprocessor_config.json says; ValueError for what their library cannot do."""
    (height, width), side = preprocess.size, preprocess.shorter_side
    padded = height != width and side is not None and side < max(height, width)
    if len(preprocess.mean) != 3 or preprocess.ink or padded:
        raise ValueError(
            f"{preprocess}: Hugging Face's pipeline gives three channels, dark as 0, and pads what "
            "shorter_side does not cover; leave preprocess out, and prepare the pictures yourself"
        )
    size = {"height": height, "width": width}
    return dict(
        image_processor_type="CLIPImageProcessor", do_convert_rgb=True, do_resize=True,
        size=size if side is None else {"shortest_edge": max(side, height, width)},
        resample=next(n for n, name in RESAMPLING.items() if name == preprocess.interpolation),
        do_center_crop=side is not None, crop_size=size, do_rescale=True, rescale_factor=1 / 255,
        do_normalize=True, image_mean=preprocess.mean, image_std=preprocess.std,
    )  # fmt: skip
