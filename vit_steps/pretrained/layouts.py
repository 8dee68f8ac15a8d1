"""Whose names a checkpoint's tensors have, and what we call them."""

import re
from itertools import product

import torch
from torch import Tensor

# Our name of each piece, and theirs. # is the number of a block, * is weight and then bias, and {}
# is query, key and value, whose rows stand below one another in our qkv.
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
TIMM = {name: name.removeprefix("tokens.") for name in HUGGING_FACE}  # else named as ours
LAYOUTS = [
    ("timm", TIMM),
    ("Hugging Face", HUGGING_FACE),
    # A DeiT, and models without a head, say so by another first word, or by none.
    *(
        ("Hugging Face", {ours: re.sub(r"^vit\.", start, n) for ours, n in HUGGING_FACE.items()})
        for start in ("deit.", "")
    ),
    ("torchvision", TORCHVISION),
    ("Google", GOOGLE),
]


def listed(names) -> str:
    """Some names in one line: all of them, or the first four and how many more."""
    names = list(names)
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more


def newer_name(name: str) -> str:
    """Torchvision's older files call mlp.0 and mlp.3 linear_1 and linear_2."""
    return name.replace(".mlp.linear_1.", ".mlp.0.").replace(".mlp.linear_2.", ".mlp.3.")


def recognise(tensors: dict[str, Tensor]) -> tuple[str, dict[str, tuple[str, ...]]]:
    """Whose names these are, and for each of our tensors the names of theirs that make it.

    ValueError where they are nobody's.
    """
    for layout, table in LAYOUTS:
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
    known = ", ".join(dict(LAYOUTS))
    raise ValueError(f"it is in no layout that is known ({known}): {listed(tensors)}")


def their_names(table: dict[str, str], depth: int) -> dict[str, tuple[str, ...]]:
    """For each of our tensors, the names of theirs that make it: one, or three for q, k and v.

    The table is such as `HUGGING_FACE`, the depth is L, the number of blocks.
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


def check_names(tensors: dict[str, Tensor], names: dict[str, tuple[str, ...]]) -> None:
    """Their names must be those that we know, all of them and no others."""
    known = {theirs for group in names.values() for theirs in group}
    said = {
        "missing": sorted(known - tensors.keys()),
        "not ours": [name for name in tensors if name not in known],
    }
    if wrong := [f"{what}: {listed(some)}" for what, some in said.items() if some]:
        raise ValueError(
            f"it does not fit our ViT; {'; '.join(wrong)}. We have no place for the pieces of "
            "others: a distilled DeiT's second token, registers and LayerScale (DINOv2), relative "
            "positions (BEiT, Swin), more norms (CLIP, a mean's fc_norm), a decoder (MAE)"
        )


def rename(
    tensors: dict[str, Tensor], names: dict[str, tuple[str, ...]], to_ours=unchanged
) -> dict[str, Tensor]:
    """Their tensors under our names, in 32 bits; query, key and value one below the other.

    The names are as `their_names` gives them, and `to_ours` turns the axes of one of their tensors,
    given our name for it. ValueError where three that belong together have different shapes.
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
