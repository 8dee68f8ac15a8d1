"""Lesson 13: where a ViT's work and memory are, and what makes it faster and larger."""

from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Optimizer
from torch.utils.checkpoint import checkpoint

from .attention import MultiHeadAttention
from .encoder import EncoderBlock
from .heads import merge_heads, split_qkv
from .inputs import check_axes, check_images, check_sizes, check_tokens, mlp_width
from .patches import grid_size
from .vit import ViT, ViTConfig


def multiply_adds(config: ViTConfig) -> dict[str, int]:
    """Count the multiply-adds of one image's forward pass; norms, softmax and GELU have none.

    "scores" are queries · keys, "mixture" is weights · values; each part is over all blocks.
    """
    if not isinstance(config, ViTConfig):
        raise TypeError(f'config is {config!r}; give one, such as ViTConfig.preset("B/16")')
    D, L, n = config.embed_dim, config.depth, prod(grid_size(config.image_size, config.patch_size))
    N = n + 1  # with cls
    return {
        "patches": n * config.patch_size**2 * config.in_channels * D,
        "qkv": L * N * D * 3 * D,
        "scores": L * N * N * D,  # h heads of width d, h · d = D
        "mixture": L * N * N * D,
        "proj": L * N * D * D,
        "MLP": L * N * D * mlp_width(D, config.mlp_ratio) * 2,
        "head": D * config.num_classes,
    }


def kept_bytes(model: nn.Module, images: Tensor) -> int:
    """Count the bytes that autograd keeps for backward, each storage once, parameters not at all.

    `images` is (B, C, H, W), or whatever the model takes.
    """
    sizes = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor  # kept by the graph, so that no other storage gets its address

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(images)
    for parameter in model.parameters():
        sizes.pop(parameter.untyped_storage().data_ptr(), None)
    return sum(sizes.values())


def accumulated_step(
    model: nn.Module, optimizer: Optimizer, images: Tensor, labels: Tensor, parts: int
) -> Tensor:
    """Take one step on a batch that goes through the model in parts, their gradients summed.

    Images (B, C, H, W) and labels (B,) are cut into 1 to B parts. Gives the batch's mean loss
    before the step, a scalar without a gradient.
    """
    check_images(images)
    check_axes("labels", labels, "B", B=len(images))
    check_sizes(parts=parts)
    if parts > len(images):
        raise ValueError(f"parts is {parts}; give at most {len(images)}, an image to each part")
    optimizer.zero_grad()
    losses = []
    for part, classes in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(model(part), classes) * len(part) / len(images)  # by its share
        loss.backward()  # adds to the gradients, and frees what was kept
        losses.append(loss.detach())
    optimizer.step()
    return torch.stack(losses).sum()


class Recomputed(EncoderBlock):
    """An `EncoderBlock` that in training keeps only its input, and computes the rest again."""

    def __init__(self, block: EncoderBlock):
        nn.Module.__init__(self)
        vars(self).update(vars(block))  # all that it holds: layers, mode, hooks

    def forward(self, x: Tensor, mask: Tensor | None = None, return_attention: bool = False):
        """Turn tokens (B, N, D) into tokens (B, N, D), as `EncoderBlock` does."""
        if not self.training:
            return super().forward(x, mask, return_attention)
        return checkpoint(super().forward, x, mask, return_attention, use_reentrant=False)


def checkpoint_blocks(model: ViT) -> ViT:
    """Keep only each block's input for backward, in training (Chen et al. 2016); in place.

    Numbers, names and parameters stay. TypeError for a block that is no plain `EncoderBlock`.
    """
    blocks: Any = getattr(model, "blocks", ())
    plain = [type(b) in (EncoderBlock, Recomputed) and "forward" not in vars(b) for b in blocks]
    if not plain or not all(plain):
        raise TypeError(f"model is a {type(model).__name__}; give a ViT of plain EncoderBlocks")
    for i, block in enumerate(blocks):
        blocks[i] = Recomputed(block)
    return model


def merge_tokens(x: Tensor, keys: Tensor, sizes: Tensor, r: int) -> tuple[Tensor, Tensor]:
    """Merge the r most alike pairs of tokens (Bolya et al. 2023, section 3).

    Each even token of x (B, N, D), 0, 2, 4, …, has one partner, the odd one, of 1, 3, 5, …, whose
    key (B, N, d) is most alike by the cosine. The r best matches, 0 to
    (N - 1) // 2, but never token 0, cls, are merged into their partners, weighted by size (B, N):
    how many tokens each one stands for. Gives what is left of the even ones, then the odd ones,
    each in order, (B, N - r, D); and their sizes (B, N - r).
    """
    check_tokens(x)
    B, N, _ = x.shape
    check_axes("keys", keys, "B N d", B=B, N=N)
    check_axes("sizes", sizes, "B N", B=B, N=N)
    check_sizes(0, r=r)
    if N < 2 or r > (N - 1) // 2:
        raise ValueError(f"r is {r}; of {N} tokens, at least 2, 0 to {(N - 1) // 2} can be merged")
    unit = F.normalize(keys.detach(), dim=-1)
    best, partner = (unit[:, ::2] @ unit[:, 1::2].mT).max(dim=-1)  # each even one's
    order = 1 + best[:, 1:].argsort(dim=1, descending=True, stable=True)  # A without cls
    merged, left = order[:, :r], F.pad(order[:, r:].sort(dim=1).values, (1, 0))  # cls stays, 0

    sums = torch.cat([x * sizes[..., None], sizes[..., None]], dim=-1)  # (B, N, D + 1)
    a, b = sums[:, ::2], sums[:, 1::2]

    def whole(numbers: Tensor) -> Tensor:  # of tokens (B, n), for each of their D + 1 places
        return numbers[..., None].expand(-1, -1, sums.shape[-1])

    b = b.scatter_add(1, whole(partner.gather(1, merged)), a.gather(1, whole(merged)))
    sums = torch.cat([a.gather(1, whole(left)), b], dim=1)  # (B, N - r, D + 1)
    return sums[..., :-1] / sums[..., -1:], sums[..., -1]


class MergingViT(nn.Module):
    """A ViT that merges tokens in its blocks; `merging` makes one."""

    def __init__(self, model: ViT, r: int):
        super().__init__()
        self.model, self.r, self.training = model, r, model.training

    def forward(self, images: Tensor) -> Tensor:
        """Turn images (B, C, H, W) into logits (B, classes)."""
        model = self.model
        x = model.tokens(model.patch_embed(images))  # (B, N, D)
        sizes = x.new_ones(x.shape[:2])
        for block in model.blocks:
            x, sizes = merging_block(block, x, sizes, self.r)
        x = model.norm(x)
        if model.config.pool == "cls":
            return model.head(x[:, 0])
        shares = sizes[:, 1:, None] / sizes[:, 1:, None].sum(dim=1, keepdim=True)
        return model.head((x[:, 1:] * shares).sum(dim=1))


def merging_block(block: Any, x: Tensor, sizes: Tensor, r: int) -> tuple[Tensor, Tensor]:
    """Run tokens (B, N, D) through a block that merges up to r of them after attention."""
    attn = block.attn
    q, k, v = split_qkv(attn.qkv(block.norm1(x)), attn.num_heads)  # each (B, h, N, d)
    # A token that stands for three is looked at as three would be: exp(score + log 3).
    more = sizes.log()[:, None, None].to(q.dtype)  # (B, 1, 1, N)
    rate = attn.dropout.p if attn.training else 0.0
    mixed = F.scaled_dot_product_attention(q, k, v, more, rate)
    x = x + attn.dropout(attn.proj(merge_heads(mixed)))
    if r := min(r, (x.shape[1] - 1) // 2):
        x, sizes = merge_tokens(x, k.mean(dim=1), sizes, r)
    return x + block.mlp(block.norm2(x)), sizes


def merging(model: ViT, r: int) -> MergingViT:
    """Make a ViT with the model's own weights, shared, that merges tokens (Bolya et al. 2023).

    Each block merges up to r, as many as can be, between attention and MLP. A token's size counts
    in the scores (their eq. 1) and in the mean that a head may read. TypeError where the model, a
    block or its attention computes in a way of its own.
    """
    check_sizes(0, r=r)
    blocks = list(getattr(model, "blocks", []))
    modules = [model, *blocks, *(getattr(block, "attn", block) for block in blocks)]
    methods = {type(m).forward for m in modules} | {getattr(type(model), "read", None)}
    plain = {c.forward for c in (ViT, EncoderBlock, Recomputed, MultiHeadAttention)}
    if methods - plain - {ViT.read}:
        raise TypeError(f"{type(model).__name__} has methods of its own; give a vit_steps.ViT")
    return MergingViT(model, r)
