"""vit_steps.patches: against a loop of slices, and a Linear."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
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


@pytest.mark.parametrize(
    ("size", "patch", "grid"),
    [(224, 16, (14, 14)), ((224, 160), 16, (14, 10)), ((2, 6), 2, (1, 3)), (1, 1, (1, 1))],
)
def test_grid_is_rows_then_columns(size, patch, grid):
    assert grid_size(size, patch) == grid


@pytest.mark.parametrize("kind", [np.int64, np.uint8, torch.tensor])
def test_whole_numbers_of_other_libraries_are_sizes(kind):
    assert grid_size((kind(48), kind(32)), kind(16)) == (3, 2)
    grid = grid_size(kind(48), 16)
    assert grid == (3, 3)
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


@pytest.mark.parametrize(
    ("size", "patch", "named"),
    [
        (0, 16, "image_size is 0"),
        ((224, 0), 16, r"image_size\[1\] is 0"),
        ((-1, 224), 16, r"image_size\[0\] is -1"),
        (224, -16, "patch_size is -16"),
    ],
)
def test_a_size_below_one_is_refused_by_name(size, patch, named):
    with pytest.raises(ValueError, match=f"{named}; .*at least 1"):
        grid_size(size, patch)


@pytest.mark.parametrize(
    ("size", "patch", "named"),
    [
        ("224", 16, "image_size"),
        ((224, 224, 3), 16, "image_size"),
        ((224, 2.0), 16, r"image_size\[1\]"),
        (True, 1, "image_size"),
        (224, (16, 16), "patch_size"),
        (224, None, "patch_size"),
    ],
)
def test_a_size_of_another_kind_is_refused_by_name(size, patch, named):
    with pytest.raises(TypeError, match=named):
        grid_size(size, patch)


# patchify and unpatchify -------------------------------------------------------------------------


def test_the_4_by_4_image_of_the_lesson():
    patches = patchify(torch.arange(16.0).reshape(1, 1, 4, 4), 2)
    assert patches[0].tolist() == [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]


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


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((3, 4, 4), r"\(3, 4, 4\): the batch axis is missing; use images\[None\]"),
        ((4, 4), r"\(4, 4\); give the axes \(B, C, H, W\)"),
        ((0, 3, 4, 4), r"\(0, 3, 4, 4\): it is empty"),
        ((1, 0, 4, 4), r"it is empty"),
        ((1, 3, 5, 4), r"image is 5×4: its height is not a multiple of the patch size 2"),
        ((1, 3, 4, 5), r"image is 4×5: its width is not a multiple of the patch size 2"),
    ],
)
def test_patchify_says_what_is_wrong_with_a_shape(shape, message):
    with pytest.raises(ValueError, match=message):
        patchify(torch.zeros(shape), 2)


def test_what_is_no_tensor_is_refused():
    for cut in (lambda it: patchify(it, 2), lambda it: unpatchify(it, 2, 4)):
        with pytest.raises(TypeError, match="not a tensor"):
            cut("photo.jpg")
    with pytest.raises(TypeError, match=r"not a tensor.*load_image"):
        PatchEmbedding(4, 2, 3, 8)("photo.jpg")


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((1, 5, 12), 4),  # 5 patches in a grid of 4
        ((1, 4, 13), 4),  # 13 numbers are no whole number of channels
        ((4, 12), 4),  # no batch
        ((1, 4, 12), (4, 6)),  # the grid is 2×3
    ],
)
def test_unpatchify_refuses_patches_of_another_image(shape, size):
    with pytest.raises(ValueError, match=r"patches is \(.*(patches of side 2|axes).*\(B, "):
        unpatchify(torch.zeros(shape), 2, size)


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


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((3, 8, 12), r"batch axis is missing; use images\[None\]"),
        ((8, 12), "give the axes"),
        ((2, 1, 8, 12), r"\(2, 1, 8, 12\): 1 channels where the model takes 3$"),
        ((2, 8, 12, 3), r"8 channels where .* takes 3; are the channels last\?.*permute\(0, 3, 1"),
        ((2, 3, 12, 8), r"images are 12×8 \(height × width\) where the model takes 8×12; resize"),
        ((2, 3, 8, 16), r"images are 8×16 .* takes 8×12.*load_image.*at_size"),
        ((0, 3, 8, 12), "empty"),
    ],
)
def test_wrong_images_are_refused_with_what_to_do(shape, message):
    with pytest.raises(ValueError, match=message):
        PatchEmbedding((8, 12), 4, 3, 16)(torch.zeros(shape))


def test_images_must_be_floats():
    with pytest.raises(TypeError, match=r"not floats; use images\.float\(\) / 255"):
        PatchEmbedding(4, 2, 3, 8)(torch.zeros(1, 3, 4, 4, dtype=torch.uint8))


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16])
def test_images_of_another_float_type_than_the_weights_are_refused_with_what_to_do(kind):
    images = torch.zeros(1, 3, 4, 4, dtype=kind)
    with pytest.raises(
        TypeError, match=rf"holds {kind}, the model torch.float32; use images.to\(torch.float32\)"
    ):
        PatchEmbedding(4, 2, 3, 8)(images)
    assert PatchEmbedding(4, 2, 3, 8).to(kind)(images).dtype == kind


@pytest.mark.parametrize("name", ["image_size", "patch_size", "in_channels", "embed_dim"])
@pytest.mark.parametrize(
    ("value", "error"),
    [(0, ValueError), (4.0, TypeError)],
)
def test_a_bad_size_is_refused_by_name(name, value, error):
    sizes = {"image_size": 4, "patch_size": 2, "in_channels": 3, "embed_dim": 8}
    with pytest.raises(error, match=name):
        PatchEmbedding(**(sizes | {name: value}))
