"""vit_steps.heads: heads against slices of the width; the exercises of lesson 03 try the rest."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import zeros

from vit_steps import merge_heads, split_heads, split_qkv

small = st.integers(1, 5)


@settings(deadline=None, max_examples=40, derandomize=True, database=None)
@given(b=small, n=small, h=small, d=small)
def test_head_i_is_the_ith_slice_of_the_width_or_of_each_third_of_it(b, n, h, d):
    qkv = torch.randn(b, n, 3 * h * d)
    for heads, third in zip(split_qkv(qkv, h), qkv.chunk(3, dim=-1), strict=True):
        assert heads.shape == (b, h, n, d)
        assert torch.equal(heads, split_heads(third, h))
        assert torch.equal(merge_heads(heads), third)
        for i in range(h):
            assert torch.equal(heads[:, i], third[:, :, i * d : (i + 1) * d])


REFUSED = [
    (lambda: split_heads(zeros(2, 3, 768), 7), ValueError, "768 does not .* 7 heads.*: .*6, 8"),
    (lambda: split_heads(zeros(2, 3, 12), 2.0), TypeError, "num_heads"),
    (lambda: split_heads([[1.0]], 1), TypeError, "not a tensor"),
    (lambda: merge_heads(zeros(2, 3, 8)), ValueError, r"\(B, h, N, d\)"),
    (lambda: split_qkv(zeros(2, 5, 36), 5), ValueError, r"qkv is \(2, 5, 36\).*multiple of 5"),
    (lambda: split_qkv(zeros(2, 5, 36), 0), ValueError, "num_heads is 0"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), REFUSED)
def test_what_cannot_be_split_or_merged_is_refused(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()
