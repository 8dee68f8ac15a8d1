"""The sizes of a published model: from the shapes of its tensors, the rest from its config.json."""

import re
from typing import Any

from torch import Tensor

from ..inputs import as_pair
from ..vit import ViTConfig

# Heads of the published ViTs, by width, blocks and the MLP's width: by the width alone nothing is
# known, since timm's first S of 2020 was 768 wide too, with 8 heads.
PUBLISHED_HEADS = {
    (768, 12, 3072): 12,  # B (Dosovitskiy et al. 2021, table 1; DeiT, DINO, MAE)
    (768, 8, 2304): 8,  # timm's first S
    (1024, 24, 4096): 16,  # L
    (1152, 27, 4304): 16,  # so400m (Zhai et al. 2023)
    (1280, 32, 5120): 16,  # H
    (1408, 40, 6144): 16,  # g (Zhai et al. 2022, table 2)
    (1664, 48, 8192): 16,  # G
}
# Sizes that were published with two head counts: somebody has to say which.
PUBLISHED_TWICE = {
    (192, 12, 768): "3 in DeiT-Ti and timm, 12 in MAE-Lite",
    (384, 12, 1536): "6 in DeiT-S, DINO and timm, 12 in MoCo v3",
}
TIMM_HEADS = {"tiny": (192, 3), "small": (384, 6)}  # width and heads of those two by timm's words
POOLS = {"": "cls", "token": "cls", "avg": "mean"}  # timm's words


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
        ValueError: shapes that no ViT of ours has, another activation than GELU by erf, another
            pooling than ours, or a number of heads that nothing says.
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
    said = said_heads(layout, tensors, settings, options, embed_dim)
    if said and num_heads and said != num_heads:
        raise ValueError(f"num_heads is {num_heads}, but the checkpoint says {said}")
    return ViTConfig(
        image_size=read_image_size(positions[1] - 1, patch_size, settings, options),
        patch_size=patch_size,
        in_channels=channels,
        num_classes=shapes.get("head.weight", (1,))[0],
        embed_dim=embed_dim,
        depth=depth,
        num_heads=said or num_heads or published_heads(embed_dim, depth, hidden),
        mlp_ratio=hidden / embed_dim,
        qkv_bias="blocks.0.attn.qkv.bias" in weights,
        pool=read_pool(settings, options),
        norm_eps=settings.get("layer_norm_eps", 1e-12 if layout == "Hugging Face" else 1e-6),
    )


def said_heads(
    layout: str, tensors: dict[str, Tensor], settings: dict, options: dict, embed_dim: int
) -> Any:
    """The number of heads that the checkpoint itself says, in whatever way; None if it does not."""
    if layout == "Google":
        return next((t.shape[1] for n, t in tensors.items() if n.endswith("query/kernel")), None)
    said = settings.get("num_attention_heads") or options.get("num_heads")
    if said:
        return said
    size = re.match(r"(?:vit|deit)_([a-z0-9]+)_patch", str(settings.get("architecture")))
    width, heads = TIMM_HEADS.get(size[1] if size else "", (None, None))
    return heads if width == embed_dim else None


def published_heads(embed_dim: int, depth: int, hidden: int) -> int:
    """The heads of the published ViT of this D, L and MLP's width; ValueError for none, and two."""
    size = (embed_dim, depth, hidden)
    if size in PUBLISHED_HEADS:
        return PUBLISHED_HEADS[size]
    twice = f" ({PUBLISHED_TWICE[size]})" if size in PUBLISHED_TWICE else ""
    raise ValueError(
        f"nothing says how many heads share the width {embed_dim}{twice}; give num_heads: with "
        "another number every tensor fits, and every answer is wrong"
    )


def read_pool(settings: dict, options: dict) -> str:
    """What the head reads, as timm's config.json says; the others' heads read the cls token."""
    said = options.get("global_pool", settings.get("global_pool", "token"))
    if not isinstance(said, str) or said not in POOLS:
        raise ValueError(f"its head reads the tokens by {said!r}; ours reads cls or their mean")
    return POOLS[said]


def read_image_size(
    patches: int, patch_size: int, settings: dict, options: dict
) -> int | tuple[int, int]:
    """In pixels: config.json's, or else a square; ValueError where the patches do not make it."""
    said = settings.get("image_size", options.get("img_size"))
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
