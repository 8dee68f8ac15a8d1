"""Lesson 02: the cls token and the positions."""

import torch
from torch.nn import functional as F

from vit_steps import ViT, ViTConfig, weights
from vit_steps.training.data import scattered

from . import only, same


def tiny(**options) -> ViT:
    torch.manual_seed(0)
    config = ViTConfig(32, 8, num_classes=10, embed_dim=48, depth=2, num_heads=4, **options)
    return ViT(config).eval().requires_grad_(False)


def reader() -> ViT:
    return weights.load("scattered").model.requires_grad_(False)


def q1_what_place_is_worth():
    model, test = reader(), scattered(500, seed=1, held_out=True)
    positions = model.tokens.pos_embed.clone()

    def read(cls: torch.Tensor, patches: torch.Tensor) -> float:
        model.tokens.pos_embed[:, :1], model.tokens.pos_embed[:, 1:] = cls, patches
        return (model(test.images).argmax(dim=1) == test.labels).float().mean().item()

    cls, mean = positions[:, :1], positions[:, 1:].mean(dim=1, keepdim=True)
    whole, zeros = read(cls, positions[:, 1:]), read(0 * cls, 0 * mean)
    with_mean, with_one = read(cls, mean), read(cls, positions[:, 6:7])  # that of place 5
    assert whole > with_one  # both are blind to order, and more is read with another vector
    return only(
        a=zeros >= max(with_mean, with_one), b=with_one > with_mean, c=with_one <= with_mean
    )


def q2_pixels_up_to_255():
    model, image = tiny(), torch.rand(1, 3, 32, 32)
    places = model.tokens.pos_embed[:, 1:]

    def unlike(patches: torch.Tensor, i: int, j: int) -> float:
        """How unlike two tokens are: one patch at places i and j, or two patches at place 0."""
        there = (patches[:, :1] + places)[:, [i, j]] if i != j else patches[:, :2] + places[:, :1]
        return 1 - F.cosine_similarity(*there[0], dim=0).item()

    right, far = (model.patch_embed(x) for x in (2 * image - 1, 255 * image))
    assert far.std() > 100 * right.std()
    return only(
        a=unlike(far, 0, 8) < 1e-5 < 1e-3 < unlike(right, 0, 8),
        b=abs(unlike(far, 0, 8) - unlike(right, 0, 8)) < 1e-5,
        c=unlike(far, 0, 0) < 1e-5,
    )


def shuffled(model: ViT, order: torch.Tensor, positions: bool = False):
    """Features of an image, and of its patches in another order."""
    model.tokens.pos_embed *= positions
    patches = model.patch_embed(torch.randn(1, 3, 32, 32))
    return [model.norm(model.blocks(model.tokens(p))) for p in (patches, patches[:, order])]


def q3_two_patches_swapped():
    order = torch.arange(16)
    order[[3, 7]] = order[[7, 3]]
    before, after = shuffled(tiny(), order)
    moved = (after - before).abs().amax(dim=-1)[0] > 1e-5
    swapped = same(after, before[:, [0, *(1 + order).tolist()]])
    return only(a=not moved.any(), b=bool(moved.all()), c=swapped and moved.sum() == 2)


def q4_mean_of_the_patches():
    order = torch.randperm(16)
    with_them, without = (
        [x[:, 1:].mean(dim=1) for x in shuffled(tiny(pool="mean"), order, positions)]
        for positions in (True, False)
    )
    # Without positions, attention and the order of the list are still there.
    told = not same(*without)
    return only(a=not told and not same(*with_them), b=told, c=told)


def q5_cls_put_last():
    tokens, patches = tiny().tokens, torch.randn(1, 16, 48)
    places, cls = tokens.pos_embed, tokens.cls_token
    first = (torch.cat([patches, cls], dim=1) + places)[:, 0]
    return only(
        a=same(first, cls[:, 0] + places[:, -1]),
        b=same(first, patches[:, 0] + places[:, 0]),
        c=same(first, patches[:, 0] + places[:, 1]),
    )


def q6_what_positions_learn():
    positions = reader().tokens.pos_embed[0]
    like = F.cosine_similarity(positions[1:, None], positions[None], dim=-1)  # (16, 17)
    like[:, 1:].fill_diagonal_(-1)
    grid = torch.cartesian_prod(torch.arange(4.0), torch.arange(4.0))
    apart = F.pad(torch.cdist(grid, grid), (1, 0))  # cls first, 0 from all
    of_the_most_alike = apart.gather(1, like.argmax(dim=1, keepdim=True))[:, 0]
    return only(
        a=bool((of_the_most_alike == 0).all()),
        b=bool((of_the_most_alike == apart.amax(dim=1)).all()),
        c=bool((of_the_most_alike == 1).all()),
    )
