"""vit_steps.patches: against a loop of slices, and a Linear."""

import numpy as np
import pytest
import torch
from helpers import close
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from vit_steps import PatchEmbedding, grid_size, patchify, unpatchify

small = st.integers(1, 4)


def by_slicing(images, p):
    """Patch by patch, row by row, as one would cut paper."""
    patches = []
    for top in range(0, images.shape[2], p):
        for left in range(0, images.shape[3], p):
            patch = images[:, :, top : top + p, left : left + p]
            patches.append(patch.permute(0, 2, 3, 1).reshape(len(images), -1))
    return torch.stack(patches, dim=1)


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
    close(embed(images), tokens)
