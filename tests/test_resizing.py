"""vit_steps.vit.resize_positions: learned positions fitted to another grid of patches."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from vit_steps import resize_positions

QUICK = settings(deadline=None, max_examples=40, derandomize=True, database=None)
side = st.integers(1, 6)


@QUICK
@given(rows=side, cols=side)
def test_the_same_grid_gives_the_same_positions(rows, cols):
    positions = torch.randn(1, 1 + rows * cols, 3)
    assert torch.equal(resize_positions(positions, (rows, cols), (rows, cols)), positions)


@QUICK
@given(rows=side, cols=side, new_rows=side, new_cols=side)
def test_resizing_is_bicubic_on_the_grid_and_leaves_cls_untouched(rows, cols, new_rows, new_cols):
    positions = torch.randn(1, 1 + rows * cols, 3)
    before = positions.clone()
    resized = resize_positions(positions, (rows, cols), (new_rows, new_cols))
    assert resized.shape == (1, 1 + new_rows * new_cols, 3)
    assert torch.equal(resized[:, 0], positions[:, 0])  # bit for bit
    assert torch.equal(positions, before)
    for channel in range(3):  # one channel at a time, as a picture of rows × cols pixels
        picture = positions[0, 1:, channel].reshape(1, 1, rows, cols)
        size = (new_rows, new_cols)
        wanted = F.interpolate(picture, size=size, mode="bicubic", antialias=True)
        torch.testing.assert_close(resized[0, 1:, channel], wanted.flatten(), atol=1e-6, rtol=0)


def test_a_grid_of_one_column_grows_in_height():
    # torch 2.13's interpolate gives wrong numbers here for channels that lie last in memory
    positions = torch.randn(1, 1 + 2, 8)
    resized = resize_positions(positions, (2, 1), (4, 1))
    picture = positions[:, 1:].transpose(1, 2).unsqueeze(-1).contiguous()
    wanted = F.interpolate(picture, size=(4, 1), mode="bicubic", antialias=True)
    torch.testing.assert_close(resized[0, 1:], wanted[0, :, :, 0].T, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("grid", "new"), [((4, 6), (8, 6)), ((4, 6), (4, 12)), ((6, 3), (9, 5))])
def test_a_ramp_along_rows_stays_along_rows_and_one_along_columns_along_columns(grid, new):
    rows, cols = grid
    down = torch.arange(float(rows))[:, None].expand(rows, cols)
    across = torch.arange(float(cols))[None, :].expand(rows, cols)
    patches = torch.stack([down, across], dim=-1).reshape(1, rows * cols, 2)
    positions = torch.cat([torch.zeros(1, 1, 2), patches], dim=1)
    resized = resize_positions(positions, grid, new)[0, 1:].reshape(*new, 2)
    down, across = resized[..., 0], resized[..., 1]
    assert (down.diff(dim=0) > 0).all()
    torch.testing.assert_close(down, down[:, :1].expand(new), atol=1e-5, rtol=0)
    assert (across.diff(dim=1) > 0).all()
    torch.testing.assert_close(across, across[:1].expand(new), atol=1e-5, rtol=0)


def test_positions_that_are_all_alike_stay_so():
    resized = resize_positions(torch.full((1, 13, 2), 0.3), (3, 4), (7, 5))
    torch.testing.assert_close(resized, torch.full((1, 36, 2), 0.3))


def test_one_number_means_a_square_grid():
    positions = torch.randn(1, 10, 4)
    assert torch.equal(
        resize_positions(positions, 3, 5), resize_positions(positions, (3, 3), (5, 5))
    )


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16, torch.float16])
def test_the_type_of_the_positions_is_kept(kind):
    positions = torch.randn(1, 10, 4).to(kind)
    resized = resize_positions(positions, 3, (4, 5))
    assert resized.dtype == kind
    wanted = resize_positions(positions.float(), 3, (4, 5))
    torch.testing.assert_close(resized.float(), wanted, atol=0.02, rtol=0)


def test_gradients_pass_through_the_resizing():
    positions = torch.randn(1, 10, 4, requires_grad=True)
    resize_positions(positions, 3, 4).sum().backward()
    assert torch.equal(positions.grad[:, 0], torch.ones(1, 4))
    assert positions.grad[:, 1:].abs().min() > 0


@pytest.mark.parametrize(
    ("shape", "grid", "message"),
    [
        ((1, 9, 4), 3, "9 tokens where 10 are expected"),  # the cls token is missing
        ((1, 13, 4), (3, 3), "13 tokens where 10"),
        ((10, 4), 3, "give the axes"),
        ((4,), 3, "give the axes"),
        ((), 3, "give the axes"),
    ],
)
def test_positions_of_another_grid_are_refused(shape, grid, message):
    with pytest.raises(ValueError, match=message):
        resize_positions(torch.zeros(shape), grid, 4)


@pytest.mark.parametrize("positions", [None, [[1.0]], "positions"])
def test_positions_must_be_a_tensor(positions):
    with pytest.raises(TypeError, match=r"not a tensor"):
        resize_positions(positions, 3, 4)


def test_positions_must_be_floats():
    with pytest.raises(TypeError, match=r"float"):
        resize_positions(torch.zeros(1, 10, 4, dtype=torch.int64), 3, 4)


@pytest.mark.parametrize(
    ("grid", "new", "error", "named"),
    [
        (0, 4, ValueError, "grid is 0"),
        (3, 0, ValueError, "new_grid is 0"),
        (3, (4, -1), ValueError, r"new_grid\[1\] is -1"),
        (3.0, 4, TypeError, "grid"),
        (3, [4, 4, 4], TypeError, "new_grid"),
        (3, "4", TypeError, "new_grid"),
    ],
)
def test_a_bad_grid_is_refused_by_name(grid, new, error, named):
    with pytest.raises(error, match=named):
        resize_positions(torch.zeros(1, 10, 4), grid, new)


def test_numpys_whole_numbers_are_grids():
    positions = torch.randn(1, 10, 4)
    wanted = resize_positions(positions, 3, (4, 5))
    resized = resize_positions(positions, np.int64(3), (np.int64(4), np.int64(5)))
    assert torch.equal(resized, wanted)
