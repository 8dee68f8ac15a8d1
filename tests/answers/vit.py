"""Answers to lesson 06's exercises, as learners would write them."""

import torch

import vit_steps


def tokens_of(config):
    rows, cols = vit_steps.grid_size(config.image_size, config.patch_size)
    return rows * cols + 1


def in_one_formula(config):
    D, L = config.embed_dim, config.depth
    hidden = config.mlp_ratio * D
    patch = (config.patch_size**2 * config.in_channels + 1) * D
    tokens = D + tokens_of(config) * D
    attn = 3 * D * (D + config.qkv_bias) + D * (D + 1)
    mlp = hidden * (D + 1) + D * (hidden + 1)
    return patch + tokens + L * (attn + mlp + 4 * D) + 2 * D + (D + 1) * config.num_classes


def built_after_all(config):
    with torch.device("meta"):
        return sum(p.numel() for p in vit_steps.ViT(config).parameters())


def layers_only(config):
    return in_one_formula(config) - (1 + tokens_of(config)) * config.embed_dim


def positions_of_patches_only(config):
    return in_one_formula(config) - config.embed_dim


def no_final_norm(config):
    return in_one_formula(config) - 2 * config.embed_dim


def no_block_norms(config):
    return in_one_formula(config) - 4 * config.embed_dim * config.depth


def no_block_biases(config):
    D, L = config.embed_dim, config.depth
    biases = 3 * D * config.qkv_bias + 2 * D + config.mlp_ratio * D
    return in_one_formula(config) - L * biases


def head_without_bias(config):
    return in_one_formula(config) - config.num_classes


def one_block(config):
    D = config.embed_dim
    block = 3 * D * (D + config.qkv_bias) + D * (D + 1) + 4 * D
    block += 2 * config.mlp_ratio * D * D + config.mlp_ratio * D + D
    return in_one_formula(config) - (config.depth - 1) * block


def always_qkv_bias(config):
    missing = 0 if config.qkv_bias else 3 * config.embed_dim * config.depth
    return in_one_formula(config) + missing


def always_four_wide(config):
    wider = 4 * config.embed_dim - round(config.mlp_ratio * config.embed_dim)
    return in_one_formula(config) + config.depth * wider * (2 * config.embed_dim + 1)


def square_images_only(config):
    n = (config.image_size // config.patch_size) ** 2 + 1
    return in_one_formula(config) + (n - tokens_of(config)) * config.embed_dim


def work_piece_by_piece(config):
    n, d = tokens_of(config), config.embed_dim
    total = (n - 1) * config.patch_size**2 * config.in_channels * d
    for _ in range(config.depth):
        total += n * d * 3 * d  # q, k, v
        total += 2 * n * n * d
        total += n * d * d
        total += 2 * n * d * int(d * config.mlp_ratio)
    return total + d * config.num_classes


def work_without_attention(config):
    n, d = tokens_of(config), config.embed_dim
    return work_piece_by_piece(config) - config.depth * 2 * n * n * d


def work_with_half_attention(config):
    n, d = tokens_of(config), config.embed_dim
    return work_piece_by_piece(config) - config.depth * n * n * d


def work_like_torchinfo(config):
    n, d = tokens_of(config), config.embed_dim
    patches = (n - 1) * config.patch_size**2 * config.in_channels * d
    weights = 4 * d * d + 2 * d * d * config.mlp_ratio
    return patches + config.depth * weights + d * config.num_classes


def work_linears_once(config):
    n, d = tokens_of(config), config.embed_dim
    return work_like_torchinfo(config) + config.depth * 2 * n * n * d


def work_on_patches_only(config):
    n, d = tokens_of(config) - 1, config.embed_dim
    block = n * (4 * d * d + 2 * d * d * config.mlp_ratio) + 2 * n * n * d
    patches = n * config.patch_size**2 * config.in_channels * d
    return patches + config.depth * block + d * config.num_classes


def work_times_heads(config):
    n, d = tokens_of(config), config.embed_dim
    once = config.depth * 2 * n * n * d
    return work_piece_by_piece(config) + once * (config.num_heads - 1)


def work_head_everywhere(config):
    extra = (tokens_of(config) - 1) * config.embed_dim * config.num_classes
    return work_piece_by_piece(config) + extra


def flops(config):
    return 2 * work_piece_by_piece(config)


def walk(a, b, images):
    def near(x, y):
        return (x - y).abs().max() < 1e-5

    x, y = a.patch_embed(images), b.patch_embed(images)
    if not near(x, y):
        return "patch_embed"
    x, y = a.tokens(x), b.tokens(y)
    if not near(x, y):
        return "tokens"
    for i in range(len(a.blocks)):
        x, y = a.blocks[i](x), b.blocks[i](y)
        if not near(x, y):
            return "blocks." + str(i)
    x, y = a.norm(x), b.norm(y)
    if not near(x, y):
        return "norm"
    pooled_x = vit_steps.pool_tokens(x, a.config.pool)
    pooled_y = vit_steps.pool_tokens(y, b.config.pool)
    return None if near(a.head(pooled_x), b.head(pooled_y)) else "head"


def walk_with_one_stream(a, b, images):
    x = images
    for name in ("patch_embed", "tokens", *(f"blocks.{i}" for i in range(len(a.blocks))), "norm"):
        x, y = a.get_submodule(name)(x), b.get_submodule(name)(x)
        if not torch.equal(x, y):
            return name
    return None if torch.equal(a(images), b(images)) else "head"


def by_weights(a, b, images):
    for (name, p), q in zip(a.named_parameters(), b.parameters(), strict=True):
        if not torch.allclose(p, q):
            parts = name.split(".")
            return parts[0] if parts[0] != "blocks" else f"blocks.{parts[1]}"
    return None


def by_logits(a, b, images):
    return None if torch.allclose(a(images), b(images)) else "head"


def counted_from_one(a, b, images):
    name = walk(a, b, images)
    if name and name.startswith("blocks"):
        return f"blocks.{int(name[-1]) + 1}"
    return name


def some_block(a, b, images):
    name = walk(a, b, images)
    return "blocks" if name and name.startswith("blocks") else name


def by_features(a, b, images):
    name = walk(a, b, images)
    return name if not torch.allclose(a.features(images), b.features(images)) else None


def head_on_all_tokens(a, b, images):
    name = walk(a, b, images)
    if name != "head":
        return name
    x = a.features(images)
    return None if torch.allclose(a.head(x), b.head(x)) else "head"


RIGHT = {
    "count_parameters": [in_one_formula, built_after_all],
    "multiply_adds": [work_piece_by_piece],
    "where_they_part": [walk, walk_with_one_stream],
}
WRONG = {
    "count_parameters": [
        (layers_only, "cls and positions are both missing"),
        (positions_of_patches_only, "one token short"),
        (no_final_norm, "final norm is missing"),
        (no_block_norms, "LayerNorms inside the blocks"),
        (no_block_biases, "biases inside the blocks"),
        (head_without_bias, "head's bias"),
        (one_block, "there are `depth`"),
        (always_qkv_bias, "qkv_bias=False is ignored"),
        (always_four_wide, "mlp_ratio is ignored"),
        (square_images_only, "(height, width)"),
    ],
    "multiply_adds": [
        (work_without_attention, "attention is missing"),
        (work_with_half_attention, "two products"),
        (work_like_torchinfo, "torchinfo's mistake"),
        (work_linears_once, "multiply by N"),
        (work_on_patches_only, "cls included"),
        (work_times_heads, "share the width"),
        (work_head_everywhere, "one pooled token"),
        (flops, "count a multiply-add once"),
    ],
    "where_they_part": [
        (by_weights, "you compare the weights"),
        (by_logits, "stop at the first"),
        (counted_from_one, "numbered from 0"),
        (some_block, "which block"),
        (by_features, "the head is never compared"),
        (head_on_all_tokens, "is given all tokens"),
    ],
}
