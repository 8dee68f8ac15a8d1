"""Answers to lesson 06's exercises, as learners would write them."""

import torch
from einops import reduce
from torch import nn

import vit_steps
from vit_steps import Encoder, EncoderBlock, PatchEmbedding
from vit_steps.vit import init_weights

# Size and work -------------------------------------------------------------------------------


def tokens_of(config):
    rows, cols = vit_steps.grid_size(config.image_size, config.patch_size)
    return rows * cols + 1


def parameters(config):
    D, L = config.embed_dim, config.depth
    hidden = round(config.mlp_ratio * D)
    patch = (config.patch_size**2 * config.in_channels + 1) * D
    tokens = D + tokens_of(config) * D
    attn = 3 * D * (D + 1) + D * (D + 1)
    mlp = hidden * (D + 1) + D * (hidden + 1)
    return patch + tokens + L * (attn + mlp + 4 * D) + 2 * D + (D + 1) * config.num_classes


def work(config):
    n, d = tokens_of(config), config.embed_dim
    total = (n - 1) * config.patch_size**2 * config.in_channels * d
    for _ in range(config.depth):
        total += n * d * 3 * d  # q, k, v
        total += 2 * n * n * d
        total += n * d * d
        total += 2 * n * d * round(d * config.mlp_ratio)
    return total + d * config.num_classes


def both(config):
    return parameters(config), work(config)


def as_a_list_of_tensors(config):
    return [torch.tensor(parameters(config)), torch.tensor(work(config))]


def built_after_all(config):
    with torch.device("meta"):
        model = vit_steps.ViT(config)
    rows, cols = model.patch_embed.grid
    n, d = rows * cols, config.embed_dim
    matrices = sum(
        p.numel()
        for name, p in model.blocks.named_parameters()
        if p.ndim == 2 and "norm" not in name
    )
    products = n * model.patch_embed.proj.weight.numel() + (n + 1) * matrices
    products += config.depth * 2 * (n + 1) ** 2 * d + model.head.weight.numel()
    return sum(p.numel() for p in model.parameters()), products


def layer_by_layer(config):
    def linear(inputs, outputs):
        return inputs * outputs + outputs

    height, width = (
        config.image_size
        if isinstance(config.image_size, tuple)
        else (config.image_size, config.image_size)
    )
    p, d = config.patch_size, config.embed_dim
    n = (height // p) * (width // p)
    hidden = round(d * config.mlp_ratio)
    size = linear(p * p * config.in_channels, d) + d + (n + 1) * d
    cost = n * p * p * config.in_channels * d
    for _ in range(config.depth):
        size += 2 * d + linear(d, 3 * d) + linear(d, d)
        size += 2 * d + linear(d, hidden) + linear(hidden, d)
        cost += (n + 1) * (d * 3 * d + d * d + d * hidden + hidden * d)
        for _head in range(config.num_heads):
            cost += 2 * (n + 1) * (n + 1) * (d // config.num_heads)
    size += 2 * d + linear(d, config.num_classes)
    return (size, cost + d * config.num_classes)


def layers_only(config):
    return parameters(config) - (1 + tokens_of(config)) * config.embed_dim, work(config)


def positions_of_patches_only(config):
    return parameters(config) - config.embed_dim, work(config)


def no_final_norm(config):
    return parameters(config) - 2 * config.embed_dim, work(config)


def no_block_norms(config):
    return parameters(config) - 4 * config.embed_dim * config.depth, work(config)


def norms_without_shift(config):
    return parameters(config) - (2 * config.depth + 1) * config.embed_dim, work(config)


def no_block_biases(config):
    D, L = config.embed_dim, config.depth
    biases = 3 * D + 2 * D + round(config.mlp_ratio * D)
    return parameters(config) - L * biases, work(config)


def no_qkv_bias(config):
    return parameters(config) - 3 * config.embed_dim * config.depth, work(config)


def no_fc1_bias(config):
    hidden = round(config.mlp_ratio * config.embed_dim)
    return parameters(config) - hidden * config.depth, work(config)


def no_attention_biases(config):
    return parameters(config) - 4 * config.embed_dim * config.depth, work(config)


def no_cls_at_all(config):
    return parameters(config) - 2 * config.embed_dim, work(config)


def head_without_bias(config):
    return parameters(config) - config.num_classes, work(config)


def patches_without_bias(config):
    return parameters(config) - config.embed_dim, work(config)


def one_block(config):
    D = config.embed_dim
    hidden = round(config.mlp_ratio * D)
    block = 4 * D * (D + 1) + 4 * D + 2 * hidden * D + hidden + D
    return parameters(config) - (config.depth - 1) * block, work(config)


def always_four_wide(config):
    wider = 4 * config.embed_dim - round(config.mlp_ratio * config.embed_dim)
    size = parameters(config) + config.depth * wider * (2 * config.embed_dim + 1)
    return size, work(config) + config.depth * wider * 2 * config.embed_dim * tokens_of(config)


def cut_to_a_whole_number(config):
    wider = int(config.mlp_ratio * config.embed_dim) - round(config.mlp_ratio * config.embed_dim)
    size = parameters(config) + config.depth * wider * (2 * config.embed_dim + 1)
    return size, work(config) + config.depth * wider * 2 * config.embed_dim * tokens_of(config)


def a_width_that_is_a_float(config):
    D, hidden = config.embed_dim, config.mlp_ratio * config.embed_dim
    extra = hidden - round(hidden)
    return parameters(config) + config.depth * extra * (2 * D + 1), work(config) + extra


def square_images_only(config):
    n = (config.image_size // config.patch_size) ** 2 + 1
    return parameters(config) + (n - tokens_of(config)) * config.embed_dim, work(config)


def always_three_channels(config):
    extra = (3 - config.in_channels) * config.patch_size**2 * config.embed_dim
    return parameters(config) + extra, work(config) + extra * (tokens_of(config) - 1)


def parameters_alone(config):
    return parameters(config)


def turned_round(config):
    return work(config), parameters(config)


def work_without_attention(config):
    n, d = tokens_of(config), config.embed_dim
    return parameters(config), work(config) - config.depth * 2 * n * n * d


def work_with_half_attention(config):
    n, d = tokens_of(config), config.embed_dim
    return parameters(config), work(config) - config.depth * n * n * d


def work_like_torchinfo(config):
    n, d = tokens_of(config), config.embed_dim
    patches = (n - 1) * config.patch_size**2 * config.in_channels * d
    weights = 4 * d * d + 2 * d * round(d * config.mlp_ratio)
    return parameters(config), patches + config.depth * weights + d * config.num_classes


def work_linears_once(config):
    n, d = tokens_of(config), config.embed_dim
    size, once = work_like_torchinfo(config)
    return size, once + config.depth * 2 * n * n * d


def work_on_patches_only(config):
    n, d = tokens_of(config) - 1, config.embed_dim
    block = n * (4 * d * d + 2 * d * round(d * config.mlp_ratio)) + 2 * n * n * d
    patches = n * config.patch_size**2 * config.in_channels * d
    return parameters(config), patches + config.depth * block + d * config.num_classes


def work_of_patches_on_all_tokens(config):
    once = config.patch_size**2 * config.in_channels * config.embed_dim
    return parameters(config), work(config) + once


def work_times_heads(config):
    n, d = tokens_of(config), config.embed_dim
    once = config.depth * 2 * n * n * d
    return parameters(config), work(config) + once * (config.num_heads - 1)


def work_head_everywhere(config):
    extra = (tokens_of(config) - 1) * config.embed_dim * config.num_classes
    return parameters(config), work(config) + extra


def work_without_the_projection(config):
    n, d = tokens_of(config), config.embed_dim
    return parameters(config), work(config) - config.depth * n * d * d


def work_without_head(config):
    return parameters(config), work(config) - config.embed_dim * config.num_classes


def flops(config):
    return parameters(config), 2 * work(config)


# A ViT without cls ---------------------------------------------------------------------------


class Mean(nn.Module):
    def __init__(self, config):
        super().__init__()
        n = (config.image_size // config.patch_size) ** 2
        self.patch_embed = PatchEmbedding(
            config.image_size, config.patch_size, config.in_channels, config.embed_dim
        )
        self.pos_embed = nn.Parameter(torch.empty(1, n, config.embed_dim))
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        self.blocks = nn.ModuleList()
        for _ in range(config.depth):
            self.blocks.append(EncoderBlock(config.embed_dim, config.num_heads, config.mlp_ratio))
        self.norm = nn.LayerNorm(config.embed_dim, eps=1e-6)
        self.head = nn.Linear(config.embed_dim, config.num_classes)
        self.apply(init_weights)

    def forward(self, images):
        x = self.patch_embed(images) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(dim=1))


class MeanOfLogits(Mean):
    def forward(self, images):
        x = self.pos_embed + self.patch_embed(images)
        x = Encoder(self.blocks)(x)
        return reduce(self.head(self.norm(x)), "b n c -> b c", "mean")


class MeanFromTheWhole(vit_steps.ViT):
    def __init__(self, config):
        super().__init__(config)
        positions = self.tokens.pos_embed[:, 1:].detach().clone()
        del self.tokens
        self.pos_embed = nn.Parameter(positions)

    def forward(self, images):
        x = self.blocks(self.patch_embed(images) + self.pos_embed)
        x = self.norm(x)
        return self.head(x.sum(1) / x.shape[1])


class MeanKeepsCls(vit_steps.ViT):
    def forward(self, images):
        return self.head(self.features(images)[:, 1:].mean(dim=1))


class MeanWithOneMorePosition(Mean):
    def __init__(self, config):
        super().__init__(config)
        n = (config.image_size // config.patch_size) ** 2
        self.pos_embed = nn.Parameter(torch.zeros(1, n + 1, config.embed_dim))

    def forward(self, images):
        x = self.patch_embed(images) + self.pos_embed[:, 1:]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(dim=1))


class MeanWithOneMorePositionUsed(MeanWithOneMorePosition):
    def forward(self, images):
        return Mean.forward(self, images)


class MeanWithFlatPositions(Mean):
    def __init__(self, config):
        super().__init__(config)
        n = (config.image_size // config.patch_size) ** 2
        self.pos_embed = nn.Parameter(torch.zeros(n, config.embed_dim))


class MeanWithPlainPositions(Mean):
    def __init__(self, config):
        super().__init__(config)
        positions = self.pos_embed.detach()
        del self.pos_embed
        self.pos_embed = positions


class MeanWithoutPositions(Mean):
    def forward(self, images):
        x = self.patch_embed(images)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(dim=1))


class MeanPositionsAtTheEnd(Mean):
    def forward(self, images):
        x = self.patch_embed(images)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x + self.pos_embed).mean(dim=1))


class MeanThenNorm(Mean):
    def forward(self, images):
        x = self.patch_embed(images) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x.mean(dim=1)))


class MeanReads(Mean):
    def forward(self, images):
        x = self.patch_embed(images) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.read(x)


class MeanWithoutNorm(MeanReads):
    def read(self, x):
        return self.head(x.mean(dim=1))


class MeanWithoutTheFirst(MeanReads):
    def read(self, x):
        return self.head(self.norm(x)[:, 1:].mean(dim=1))


class MeanIsTheFirst(MeanReads):
    def read(self, x):
        return self.head(self.norm(x)[:, 0])


class MeanIsASum(MeanReads):
    def read(self, x):
        return self.head(self.norm(x).sum(dim=1))


class MeanIsAMaximum(MeanReads):
    def read(self, x):
        return self.head(self.norm(x).amax(dim=1))


class MeanOverImages(MeanReads):
    def read(self, x):
        return self.head(self.norm(x).mean(dim=0))


class MeanOverNothing(MeanReads):
    def read(self, x):
        return self.head(self.norm(x))


class MeanOverWidth(MeanReads):
    def read(self, x):
        return self.head(self.norm(x).mean(dim=-1))


class MeanInSoftmax(MeanReads):
    def read(self, x):
        return self.head(self.norm(x).mean(dim=1)).softmax(-1)


class MeanCallsTheList(Mean):
    def forward(self, images):
        x = self.blocks(self.patch_embed(images) + self.pos_embed)
        return self.head(self.norm(x).mean(dim=1))


class MeanOneBlock(Mean):
    def forward(self, images):
        x = self.patch_embed(images) + self.pos_embed
        for block in self.blocks:
            y = block(x)
        return self.head(self.norm(y).mean(dim=1))


# Where two models part -----------------------------------------------------------------------


def walk(a, b, images):
    def near(x, y):
        return x.shape == y.shape and bool((x - y).abs().max() <= 1e-5)

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
    return None if near(a(images), b(images)) else "head"


def walk_with_one_stream(a, b, images):
    x = images
    for name in ("patch_embed", "tokens", *(f"blocks.{i}" for i in range(len(a.blocks))), "norm"):
        x, y = a.get_submodule(name)(x), b.get_submodule(name)(x)
        if x.shape != y.shape or not torch.allclose(x, y, rtol=0, atol=1e-5):
            return name
    x, y = a(images), b(images)
    return None if x.shape == y.shape and torch.allclose(x, y, rtol=0, atol=1e-5) else "head"


def stages_of(model, images):
    found = {}
    found["patch_embed"] = x = model.patch_embed(images)
    found["tokens"] = x = model.tokens(x)
    for i, block in enumerate(model.blocks):
        found[f"blocks.{i}"] = x = block(x)
    found["norm"] = model.norm(x)
    found["head"] = model(images)
    return found


def by_dictionaries(a, b, images):
    first, second = stages_of(a, images), stages_of(b, images)
    for name in first:
        x, y = first[name], second[name]
        if x.shape != y.shape:
            return name
        if torch.any(torch.abs(x - y) > 1e-5):
            return name
    return None


def by_hooks(a, b, images):
    seen = {}

    def watch(model, key):
        def hook_for(name):
            return lambda module, given, result: seen.setdefault((key, name), result)

        names = ["patch_embed", "tokens", *(f"blocks.{i}" for i in range(len(model.blocks)))]
        handles = [
            model.get_submodule(n).register_forward_hook(hook_for(n)) for n in [*names, "norm"]
        ]
        seen[key, "head"] = model(images)
        for handle in handles:
            handle.remove()
        return [*names, "norm", "head"]

    watch(b, "b")
    for name in watch(a, "a"):
        x, y = seen["a", name], seen["b", name]
        if x.shape != y.shape or (x - y).abs().amax() > 1e-5:
            return name
    return None


def by_weights(a, b, images):
    for (name, p), q in zip(a.named_parameters(), b.parameters(), strict=True):
        if p.shape != q.shape or not torch.allclose(p, q, atol=1e-5):
            parts = name.split(".")
            return parts[0] if parts[0] != "blocks" else f"blocks.{parts[1]}"
    return None


def by_logits(a, b, images):
    x, y = a(images), b(images)
    return None if x.shape == y.shape and torch.allclose(x, y, atol=1e-5) else "head"


def counted_from_one(a, b, images):
    name = walk(a, b, images)
    if name and name.startswith("blocks"):
        return f"blocks.{int(name[-1]) + 1}"
    return name


def some_block(a, b, images):
    name = walk(a, b, images)
    return "blocks" if name and name.startswith("blocks") else name


def with_brackets(a, b, images):
    name = walk(a, b, images)
    return f"blocks[{name[-1]}]" if name and name.startswith("blocks") else name


def number_of_the_block(a, b, images):
    name = walk(a, b, images)
    return int(name[-1]) if name and name.startswith("blocks") else name


def the_last(a, b, images):
    first, second = stages_of(a, images), stages_of(b, images)
    last = None
    for name in first:
        x, y = first[name], second[name]
        if x.shape != y.shape or (x - y).abs().max() > 1e-5:
            last = name
    return last


def all_of_them(a, b, images):
    first, second = stages_of(a, images), stages_of(b, images)
    names = []
    for name in first:
        x, y = first[name], second[name]
        if x.shape != y.shape or (x - y).abs().max() > 1e-5:
            names.append(name)
    return names


def the_stage_before(a, b, images):
    names = [
        "patch_embed",
        "tokens",
        *(f"blocks.{i}" for i in range(len(a.blocks))),
        "norm",
        "head",
    ]
    name = walk(a, b, images)
    return name and names[max(names.index(name) - 1, 0)]


def by_features(a, b, images):
    name = walk(a, b, images)
    return None if name == "head" else name


def head_on_all_tokens(a, b, images):
    name = walk(a, b, images)
    if name != "head":
        return name
    x, y = a.head(a.features(images)), b.head(b.features(images))
    return None if x.shape == y.shape and torch.allclose(x, y, atol=1e-5) else "head"


def head_on_normed_cls(a, b, images):
    def differ(x, y):
        return x.shape != y.shape or (x - y).abs().max() > 1e-5

    x = y = images
    for name in ("patch_embed", "tokens", *(f"blocks.{i}" for i in range(len(a.blocks))), "norm"):
        x, y = a.get_submodule(name)(x), b.get_submodule(name)(y)
        if differ(x, y):
            return name
    return "head" if differ(a.head(x[:, 0]), b.head(y[:, 0])) else None


def exactly_equal(a, b, images):
    first, second = stages_of(a, images), stages_of(b, images)
    for name in first:
        if not torch.equal(first[name], second[name]):
            return name
    return None


def without_abs(a, b, images):
    first, second = stages_of(a, images), stages_of(b, images)
    for name in first:
        x, y = first[name], second[name]
        if x.shape != y.shape or (x - y).max() > 1e-5:
            return name
    return None


def by_the_mean(a, b, images):
    first, second = stages_of(a, images), stages_of(b, images)
    for name in first:
        x, y = first[name], second[name]
        if x.shape != y.shape or (x - y).abs().mean() > 1e-5:
            return name
    return None


def by_allclose(a, b, images):
    first, second = stages_of(a, images), stages_of(b, images)
    for name in first:
        x, y = first[name], second[name]
        if x.shape != y.shape or not torch.allclose(x, y):
            return name
    return None


def too_patient(a, b, images):
    first, second = stages_of(a, images), stages_of(b, images)
    for name in first:
        x, y = first[name], second[name]
        if x.shape != y.shape or not torch.allclose(x, y, atol=1e-2):
            return name
    return None


def shapes_not_asked(a, b, images):
    first, second = stages_of(a, images), stages_of(b, images)
    for name in first:
        if (first[name] - second[name]).abs().max() > 1e-5:
            return name
    return None


def none_as_text(a, b, images):
    return str(walk(a, b, images))


RIGHT = {
    "size_and_work": [both, as_a_list_of_tensors, built_after_all, layer_by_layer],
    "ViTWithoutCls": [Mean, MeanOfLogits, MeanFromTheWhole],
    "where_they_part": [walk, walk_with_one_stream, by_dictionaries, by_hooks],
}
WRONG = {
    "size_and_work": [
        (layers_only, "cls and positions are both missing"),
        (positions_of_patches_only, "D too few"),
        (no_final_norm, "the final norm"),
        (no_block_norms, "LayerNorms inside the blocks"),
        (no_attention_biases, "biases of qkv and of the projection"),
        (no_cls_at_all, "cls and its position"),
        (no_fc1_bias, "the parameters of a tiny ViT"),
        (norms_without_shift, "2·D"),
        (no_block_biases, "biases inside the blocks"),
        (no_qkv_bias, "qkv's bias is missing"),
        (head_without_bias, "head's bias"),
        (patches_without_bias, "D too few"),
        (one_block, "there are `depth`"),
        (always_four_wide, "mlp_ratio is ignored"),
        (cut_to_a_whole_number, "round"),
        (a_width_that_is_a_float, "round"),
        (square_images_only, "(height, width)"),
        (always_three_channels, "in_channels"),
        (parameters_alone, "two whole numbers"),
        (turned_round, "parameters first"),
        (work_without_attention, "attention is missing"),
        (work_with_half_attention, "two products"),
        (work_like_torchinfo, "multiply by N"),
        (work_linears_once, "multiply by N"),
        (work_on_patches_only, "cls included"),
        (work_of_patches_on_all_tokens, "patches alone"),
        (work_times_heads, "share the width"),
        (work_head_everywhere, "one token"),
        (work_without_the_projection, "projection"),
        (work_without_head, "head"),
        (flops, "count a multiply-add once"),
    ],
    "ViTWithoutCls": [
        (MeanKeepsCls, "cls"),
        (MeanWithOneMorePosition, "one a patch"),
        (MeanWithOneMorePositionUsed, "one a patch"),
        (MeanWithFlatPositions, "(1, n, D)"),
        (MeanWithPlainPositions, "nn.Parameter"),
        (MeanWithoutPositions, "positions are not added"),
        (MeanPositionsAtTheEnd, "before the blocks"),
        (MeanThenNorm, "norm each token"),
        (MeanWithoutNorm, "norm"),
        (MeanWithoutTheFirst, "no cls token to leave out"),
        (MeanIsTheFirst, "first patch"),
        (MeanIsASum, "sum"),
        (MeanIsAMaximum, "largest"),
        (MeanOverImages, "axis 1"),
        (MeanOverNothing, "one row of logits"),
        (MeanOverWidth, "mat1 and mat2"),
        (MeanInSoftmax, "softmax"),
        (MeanCallsTheList, "for"),
        (MeanOneBlock, "the same tokens"),
    ],
    "where_they_part": [
        (by_weights, "you compare the weights"),
        (by_logits, "stage by stage"),
        (counted_from_one, "numbered from 0"),
        (some_block, "which block"),
        (with_brackets, "blocks.0"),
        (number_of_the_block, "blocks.0"),
        (the_last, "the first"),
        (all_of_them, "the first"),
        (the_stage_before, "after which"),
        (by_features, "logits"),
        (head_on_all_tokens, "you apply the head yourself"),
        (head_on_normed_cls, "you apply the head yourself"),
        (exactly_equal, "1e-5"),
        (without_abs, "abs"),
        (by_the_mean, "mean"),
        (by_allclose, "1e-5"),
        (too_patient, "1e-5"),
        (shapes_not_asked, "shapes"),
        (none_as_text, "None"),
    ],
}
