"""vit_steps.maps: against loops, and against cases worked out by hand."""

import pytest
import torch
from helpers import close, shake

from vit_course.systems import EinopsViT
from vit_steps import ViT, ViTConfig, maps

SIZES = dict(patch_size=4, num_classes=5, embed_dim=24, depth=3, num_heads=2, in_channels=2)


def small_vit(image_size=(8, 12), kind=ViT, **changes):
    """A ViT whose images are 2×3 patches, with weights large enough for its answers to differ."""
    model = shake(kind(ViTConfig(image_size=image_size, **{**SIZES, **changes})))
    return model.eval().requires_grad_(False)


# Rollout -----------------------------------------------------------------------------------------


def test_rollout_is_what_reaches_each_token_half_of_it_past_each_block():
    attention = [(2 * torch.randn(2, 2, 7, 7)).softmax(dim=-1) for _ in range(3)]  # far from even
    for image, actual in enumerate(maps.rollout(attention)):
        flow = torch.eye(7)
        for weights in attention:
            flow = (sum(weights[image]) / 2 + torch.eye(7)) / 2 @ flow
        close(actual, flow)
    # Rows that do not sum to 1 are brought back to 1.
    close(maps.rollout([0.5 * weights for weights in attention]).sum(-1), torch.ones(2, 7))


# Maps of cls -------------------------------------------------------------------------------------


def test_cls_map_is_row_0_without_cls_as_the_patches_lie():
    weights = torch.arange(49.0).reshape(1, 1, 7, 7)
    assert maps.cls_map(weights, (2, 3))[0, 0].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert maps.cls_map(weights, (3, 2))[0, 0].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert maps.cls_map(torch.rand(10, 10), 3).shape == (3, 3)
    assert maps.cls_map(torch.rand(4, 5, 2, 10, 10), 3).shape == (4, 5, 2, 3, 3)


# Where a thing stands ----------------------------------------------------------------------------


def test_touched_equals_a_loop_over_pixels():
    places = torch.tensor([[0, 0], [4, 8], [3, 5], [7, 1], [1, 11], [0, 12]])
    found = maps.touched(places, 5, (3, 4), 4)
    for (top, left), patches in zip(places.tolist(), found, strict=True):
        canvas = torch.zeros(3 * 4, 4 * 4)
        canvas[top : top + 5, left : left + 5] = 1
        by_loop = canvas.unfold(0, 4, 4).unfold(1, 4, 4).sum((-1, -2)) > 0
        assert torch.equal(patches, by_loop)


# Blinding ----------------------------------------------------------------------------------------


def cls_by_hand(block, x, hidden):
    """The cls token after a block in which it attends only to what is left, image by image."""
    rows = []
    for tokens, dark in zip(block.norm1(x), hidden.flatten(1), strict=True):
        seen = torch.cat([tokens[:1], tokens[1:][~dark]])  # as if the hidden ones were not there
        rows.append(block.attn(seen[None])[0, 0])
    cls = x[:, 0] + torch.stack(rows)
    return cls + block.mlp(block.norm2(cls)[:, None])[:, 0]


def test_blind_cls_attends_as_if_the_hidden_patches_were_not_there():
    model, images = small_vit(depth=1), torch.randn(3, 2, 8, 12)
    hidden = torch.rand(3, 2, 3) < 0.5
    x = model.tokens(model.patch_embed(images))
    expected = model.head(model.norm(cls_by_hand(model.blocks[0], x, hidden)))
    close(maps.blinded(model, images, hidden), expected)


@pytest.mark.parametrize("kind", [ViT, EinopsViT])
def test_blind_to_nothing_is_the_model(kind):
    model, images = small_vit(kind=kind, pool="mean"), torch.randn(2, 2, 8, 12)
    close(maps.blinded(model, images, torch.zeros(2, 2, 3).bool()), model(images))


def test_only_cls_is_blind():
    """What it cannot see in the second block it still hears from the others, who saw it."""
    model, images = small_vit(), torch.randn(1, 2, 8, 12)
    hidden = torch.zeros(1, 2, 3).bool()
    hidden[0, 1, 2] = True
    other = images.clone()
    other[..., 4:, 8:] += 1  # the hidden patch alone
    a, b = (maps.blinded(model, x, hidden) for x in (images, other))
    assert (a - b).abs().max() > 1e-3
