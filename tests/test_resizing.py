"""vit_steps.vit.resize_positions: learned positions fitted to another grid of patches."""

import pytest
import torch
from helpers import close
from hypothesis import example, given
from hypothesis import strategies as st
from torch.nn import functional as F

from vit_steps import resize_positions

side = st.integers(1, 6)


@given(rows=side, cols=side, new_rows=side, new_cols=side)
@example(rows=2, cols=1, new_rows=4, new_cols=1)  # torch 2.13 gets some layouts of it wrong
def test_resizing_is_bicubic_on_the_grid_and_leaves_cls_untouched(rows, cols, new_rows, new_cols):
    positions = torch.randn(1, 1 + rows * cols, 8)
    before = positions.clone()
    resized = resize_positions(positions, (rows, cols), (new_rows, new_cols))
    assert resized.shape == (1, 1 + new_rows * new_cols, 8)
    assert torch.equal(resized[:, 0], positions[:, 0])  # bit for bit
    assert torch.equal(positions, before)
    for channel in range(8):  # one channel at a time, as a picture of rows × cols pixels
        picture = positions[0, 1:, channel].reshape(1, 1, rows, cols)
        size = (new_rows, new_cols)
        expected = F.interpolate(picture, size=size, mode="bicubic", antialias=True)
        close(resized[0, 1:, channel], expected.flatten(), 1e-6)


def test_the_type_of_the_positions_is_kept():
    positions = torch.randn(1, 10, 4).bfloat16()
    resized = resize_positions(positions, 3, (4, 5))
    assert resized.dtype == torch.bfloat16
    close(resized.float(), resize_positions(positions.float(), 3, (4, 5)), 0.02)


NINE = torch.zeros(1, 10, 4)
REFUSED = [
    (torch.zeros(1, 9, 4), 3, 4, ValueError, r"\(B, 10, D\)"),  # without cls
    (NINE.long(), 3, 4, TypeError, "float"),
    (NINE, 3, (4, -1), ValueError, r"new_grid\[1\] is -1"),
]


@pytest.mark.parametrize(("positions", "grid", "new", "error", "message"), REFUSED)
def test_what_cannot_be_resized_is_refused(positions, grid, new, error, message):
    with pytest.raises(error, match=message):
        resize_positions(positions, grid, new)
