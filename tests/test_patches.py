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


@QUICK
@given(height=st.integers(1, 60), width=st.integers(1, 60), p=st.integers(1, 20))
def test_grid_size_raises_exactly_where_the_patch_does_not_divide(height, width, p):
    if height % p == 0 and width % p == 0:
        grid = grid_size((np.uint8(height), np.uint8(width)), p)
        assert grid == (height // p, width // p)
        assert [type(side) for side in grid] == [int, int]
    else:
        side = "height" if height % p else "width"
        with pytest.raises(ValueError, match=f"{height}×{width}: its {side} is not .*load_image"):
            grid_size((height, width), p)


@QUICK
@given(b=small, c=small, p=small, rows=small, cols=small)
def test_patchify_equals_slicing_and_can_be_undone(b, c, p, rows, cols):
    for kind in (torch.float32, torch.uint8):
        images = (100 * torch.rand(b, c, rows * p, cols * p)).to(kind)
        patches = patchify(images, p)
        assert (patches.shape, patches.dtype) == ((b, rows * cols, p * p * c), kind)
        assert torch.equal(patches, by_slicing(images, p))
        assert torch.equal(unpatchify(patches, p, (rows * p, cols * p)), images)


@pytest.mark.parametrize("size", [(32, 32), (16, 48), (48, 16)])
def test_the_convolution_is_a_linear_on_patches_once_its_weight_is_permuted(size):
    embed, images = PatchEmbedding(size, 8, 3, 40), torch.randn(2, 3, *size)
    permuted = embed.proj.weight.permute(0, 2, 3, 1).flatten(1)  # (D, P, P, C) to (D, P·P·C)
    tokens = F.linear(patchify(images, 8), permuted, embed.proj.bias)
    torch.testing.assert_close(embed(images), tokens, atol=1e-5, rtol=0)


# What is refused ---------------------------------------------------------------------------------


def embed(*shape):
    return PatchEmbedding((8, 12), 4, 3, 16)(zeros(shape))


SMALL = PatchEmbedding(4, 2, 3, 8)
LAST = r"8 channels where .* takes 3; are the channels last\?.*permute\(0, 3, 1"
REFUSED = [
    (lambda: grid_size((224, 0), 16), ValueError, r"image_size\[1\] is 0; .*at least 1"),
    (lambda: grid_size("224", 16), TypeError, "image_size is '224'; .*a pair"),
    (lambda: grid_size(True, 1), TypeError, "image_size"),
    (lambda: grid_size(224, (16, 16)), TypeError, "patch_size"),
    (lambda: patchify(zeros(3, 4, 4), 2), ValueError, r"\(3, 4, 4\): the batch .* images\[None\]"),
    (lambda: patchify(zeros(1, 0, 4, 4), 2), ValueError, "empty"),
    (lambda: patchify(zeros(1, 3, 4, 5), 2), ValueError, "4×5: its width .* the patch size 2"),
    (lambda: unpatchify(zeros(1, 4, 13), 2, 4), ValueError, "of side 2"),  # no whole channels
    (lambda: unpatchify(zeros(4, 12), 2, 4), ValueError, "axes"),  # no batch
    (lambda: unpatchify(zeros(1, 4, 12), 2, (4, 6)), ValueError, "of side 2"),  # the grid is 2×3
    (lambda: embed(2, 8, 12, 3), ValueError, LAST),
    (lambda: embed(2, 3, 12, 8), ValueError, r"12×8 .*takes 8×12.*load_image.*at_size"),
    (lambda: SMALL("photo.jpg"), TypeError, "not a tensor.*load_image"),
    (lambda: SMALL(zeros(1, 3, 4, 4).byte()), TypeError, r"images\.float\(\) / 255"),
    (lambda: SMALL(zeros(1, 3, 4, 4).double()), TypeError, r"images\.to\(torch\.float32\)"),
    (lambda: PatchEmbedding(4, 2, 0, 8), ValueError, "in_channels"),
    (lambda: PatchEmbedding(4, 2, 3, 4.0), TypeError, "embed_dim"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), REFUSED)
def test_what_cannot_be_cut_is_refused_with_what_to_do(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()
