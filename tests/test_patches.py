"""vit_steps.patches: against a loop of slices, and a Linear."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import zeros
from torch.nn import functional as F

from vit_steps import PatchEmbedding, grid_size, patchify, unpatchify

QUICK = settings(deadline=None, max_examples=60, derandomize=True, database=None)
small = st.integers(1, 4)


def by_slicing(images, p):
    """Patch by patch, row by row, as one would cut paper."""
    patches = []
    for top in range(0, images.shape[2], p):
        for left in range(0, images.shape[3], p):
            patch = images[:, :, top : top + p, left : left + p]
            patches.append(patch.permute(0, 2, 3, 1).reshape(len(images), -1))
    return torch.stack(patches, dim=1)


# grid_size ---------------------------------------------------------------------------------------


def test_numpys_whole_numbers_are_sizes():
    assert grid_size(48, np.int64(16)) == (3, 3)
    grid = grid_size((np.uint8(48), np.uint8(32)), 16)
    assert grid == (3, 2)
    assert [type(side) for side in grid] == [int, int]


@QUICK
@given(height=st.integers(1, 60), width=st.integers(1, 60), p=st.integers(1, 20))
def test_grid_size_raises_exactly_where_the_patch_does_not_divide(height, width, p):
    if height % p == 0 and width % p == 0:
        rows, cols = grid_size((height, width), p)
        assert (rows * p, cols * p) == (height, width)
    else:
        side = "height" if height % p else "width"
        with pytest.raises(ValueError, match=f"{height}×{width}: its {side} is not .*load_image"):
            grid_size((height, width), p)


# patchify and unpatchify -------------------------------------------------------------------------


@QUICK
@given(b=small, c=small, p=small, rows=small, cols=small)
def test_patchify_equals_slicing_and_can_be_undone(b, c, p, rows, cols):
    images = torch.randn(b, c, rows * p, cols * p)
    patches = patchify(images, p)
    assert patches.shape == (b, rows * cols, p * p * c)
    assert torch.equal(patches, by_slicing(images, p))
    assert torch.equal(unpatchify(patches, p, (rows * p, cols * p)), images)


@pytest.mark.parametrize("kind", [torch.uint8, torch.bool, torch.bfloat16])
def test_patchify_takes_numbers_of_any_type(kind):
    images = torch.arange(16).reshape(1, 1, 4, 4).to(kind)
    patches = patchify(images, 2)
    assert patches.dtype == kind
    assert torch.equal(unpatchify(patches, 2, 4), images)


# PatchEmbedding ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(32, 32), (16, 48), (48, 16)])
def test_the_convolution_is_a_linear_on_patches_once_its_weight_is_permuted(size):
    embed, images = PatchEmbedding(size, 8, 3, 40), torch.randn(2, 3, *size)
    permuted = embed.proj.weight.permute(0, 2, 3, 1).flatten(1)  # (D, P, P, C) to (D, P·P·C)
    tokens = F.linear(patchify(images, 8), permuted, embed.proj.bias)
    torch.testing.assert_close(embed(images), tokens, atol=1e-5, rtol=0)


def test_shape_grid_and_parameters_of_b16():
    with torch.device("meta"):
        embed = PatchEmbedding()
        assert embed(torch.zeros(2, 3, 224, 224)).shape == (2, 196, 768)
    assert embed.grid == (14, 14)
    assert sum(p.numel() for p in embed.parameters()) == 590_592


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16])
def test_images_of_another_float_type_than_the_weights_are_refused_with_what_to_do(kind):
    images = torch.zeros(1, 3, 4, 4, dtype=kind)
    with pytest.raises(
        TypeError, match=rf"holds {kind}, the model torch.float32; use images.to\(torch.float32\)"
    ):
        PatchEmbedding(4, 2, 3, 8)(images)
    assert PatchEmbedding(4, 2, 3, 8).to(kind)(images).dtype == kind


# What is refused ---------------------------------------------------------------------------------


def embed(*shape):
    return PatchEmbedding((8, 12), 4, 3, 16)(zeros(shape))


SMALL = PatchEmbedding(4, 2, 3, 8)
LOST = r"patches is \(.*(patches of side 2|axes).*\(B, "
LAST = r"8 channels where .* takes 3; are the channels last\?.*permute\(0, 3, 1"
TURNED = (
    r"images are 12×8 \(height × width\) where the model takes 8×12; resize.*load_image.*at_size"
)
REFUSED = [
    (lambda: grid_size(0, 16), ValueError, "image_size is 0; .*at least 1"),
    (lambda: grid_size((224, 0), 16), ValueError, r"image_size\[1\] is 0; .*at least 1"),
    (lambda: grid_size("224", 16), TypeError, "image_size is '224'; .*a pair"),
    (lambda: grid_size((224, 224, 3), 16), TypeError, "image_size"),
    (lambda: grid_size((224, 2.0), 16), TypeError, r"image_size\[1\]"),
    (lambda: grid_size(True, 1), TypeError, "image_size"),
    (lambda: grid_size(224, (16, 16)), TypeError, "patch_size"),
    (lambda: patchify(zeros(3, 4, 4), 2), ValueError, r"\(3, 4, 4\): the batch .* images\[None\]"),
    (lambda: patchify(zeros(4, 4), 2), ValueError, r"\(4, 4\); give the axes \(B, C, H, W\)"),
    (lambda: patchify(zeros(1, 0, 4, 4), 2), ValueError, "it is empty"),
    (lambda: patchify(zeros(1, 3, 4, 5), 2), ValueError, "4×5: its width .* the patch size 2"),
    (lambda: patchify("photo.jpg", 2), TypeError, "not a tensor"),
    (lambda: unpatchify(zeros(1, 4, 13), 2, 4), ValueError, LOST),  # of no whole number of channels
    (lambda: unpatchify(zeros(4, 12), 2, 4), ValueError, LOST),  # no batch
    (lambda: unpatchify(zeros(1, 4, 12), 2, (4, 6)), ValueError, LOST),  # the grid is 2×3
    (lambda: embed(2, 1, 8, 12), ValueError, r"\(2, 1, 8, 12\): 1 channels where .* takes 3$"),
    (lambda: embed(2, 8, 12, 3), ValueError, LAST),
    (lambda: embed(2, 3, 12, 8), ValueError, TURNED),
    (lambda: SMALL("photo.jpg"), TypeError, "not a tensor.*load_image"),
    (
        lambda: SMALL(zeros(1, 3, 4, 4).byte()),
        TypeError,
        r"not floats; use images\.float\(\) / 255",
    ),
    (lambda: PatchEmbedding(4, 2, 0, 8), ValueError, "in_channels"),
    (lambda: PatchEmbedding(4, 2, 3, 4.0), TypeError, "embed_dim"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), REFUSED)
def test_what_cannot_be_cut_is_refused_with_what_to_do(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()
