"""What arguments of ViTs are called in published code, and values that fit to each other."""

from collections.abc import Collection, Mapping
from typing import Any

# Each means the width of the tokens, or that of the MLP where another name has the tokens' width.
HIDDEN = ("hidden_dim", "hidden_size", "dim_hidden", "hidden", "hidden_features", "hidden_dims")
WIDTHS = (
    "embed_dim dim emb_dim d_model width emb_size embed_size embedding_dim embedding_size n_embd "
    "embed_dims dim_model n_embed model_dim latent_dim latent_size hidden_d d_embed num_hiddens"
)
# The first name is the role. The values are those of ViT-B/16 (Dosovitskiy et al. 2021).
TABLE: dict[str, Any] = {
    "image_size img_size input_size im_size img_dim image_dim image_res img_res resolution imgsz "
    "input_resolution image_resolution im_dim": 224,
    "in_channels in_chans channels num_channels n_channels in_chs in_ch in_c input_channels "
    "img_channels image_channels n_chans num_chans in_chan in_channel channel": 3,
    "patch_size patch patch_dim patch_sz patchsize patch_len": 16,
    "num_classes n_classes num_labels classes class_num num_class n_class nb_classes n_labels "
    "num_cls output_dim out_dim n_out num_outputs out_features out_d out_classes": 1000,
    f"{WIDTHS} {' '.join(HIDDEN)}": 768,
    "depth num_layers n_layers layers num_blocks num_hidden_layers num_transformer_layers n_layer "
    "n_blocks num_encoders num_encoder_layers nb_layers num_layer num_encoder_blocks num_blks": 12,
    "num_heads heads n_heads nhead num_attention_heads nb_head n_head num_head nb_heads nheads "
    "attention_heads head_num num_attn_heads": 12,
    "mlp_ratio expansion forward_expansion expansion_factor mlp_expansion ff_mult mlp_mult": 4.0,
    "mlp_dim mlp_hidden_dim intermediate_size dim_feedforward ff_dim mlp_size ffn_dim mlp_hidden "
    "d_ff feedforward_dim feed_forward_dim mlp_hidden_size ff_hidden_dim dff mlp_num_hiddens": 3072,
    "head_dim dim_head d_head head_size": 64,
    "num_patches n_patches num_patch patch_num n_patch nb_patches": 196,
    "seq_len num_tokens n_tokens seq_length sequence_length": 197,
    "qkv_bias bias attn_bias attention_bias": True,
    "dropout drop drop_rate dropout_rate emb_dropout drop_p dropout_p p_drop p_dropout attn_drop "
    "attn_dropout mlp_dropout embedding_dropout attention_dropout attn_drop_rate proj_drop "
    "proj_dropout drop_path drop_path_rate dropout_prob hidden_dropout_prob emb_drop drop_prob "
    "attention_probs_dropout_prob dropout_ratio forward_drop_p ff_dropout blk_dropout": 0.0,
    "pool pooling pool_type": "cls",
    "norm_eps layer_norm_eps eps ln_eps": 1e-6,
    "device": "cpu",
}
USUAL = {tuple(names.split()): value for names, value in TABLE.items()}


def synonyms(name: str, others: Collection[str] = ()) -> tuple[str, ...]:
    """Give the names that mean the same as this one where it stands beside others."""
    of_mlp = name in HIDDEN and not {*others}.isdisjoint(WIDTHS.split())
    known = "mlp_dim" if of_mlp else name
    return next((group for group in USUAL if known in group), (name,))


def fitting(known: Mapping[str, Any]) -> dict[str, Any]:
    """Give a value for each role, the known ones as they are, the others so that they fit."""
    values: dict[str, Any] = {group[0]: value for group, value in USUAL.items()} | {**known}
    sides = sides_of(values["image_size"]) or (224, 224)
    largest = max(1, min(16, min(sides) // 4))  # so that there are 4 and more patches on each side
    patch = next(p for p in range(largest, 0, -1) if not sides[0] % p and not sides[1] % p)
    heads, width = values["num_heads"], values["embed_dim"]
    if "embed_dim" not in known and whole(heads) and width % heads:
        width = 64 * heads
    elif "num_heads" not in known and whole(width):
        heads = next(h for h in (12, 8, 6, 4, 3, 2, 1) if width % h == 0)
    fit = dict(patch_size=patch, embed_dim=width, num_heads=heads)
    if whole(width) and whole(heads):
        fit |= dict(mlp_dim=4 * width, head_dim=max(1, width // heads))
    rows, columns = sides_of(known.get("patch_size", patch)) or (16, 16)
    fit["num_patches"] = (sides[0] // rows) * (sides[1] // columns)
    return values | fit | {"seq_len": fit["num_patches"] + 1} | {**known}


def whole(value: Any) -> bool:
    """Tell whether a value is a whole number above 0, and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def sides_of(size: Any) -> tuple[int, int] | None:
    """Give (height, width) of a size or a pair; None of anything else."""
    sides = (size, size) if isinstance(size, int) else size
    good = isinstance(sides, (tuple, list)) and len(sides) == 2 and all(map(whole, sides))
    return (sides[0], sides[1]) if good else None
