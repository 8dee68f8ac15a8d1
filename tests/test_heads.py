"""vit_steps.heads: heads against slices of the width; the exercises of lesson 03 try the rest."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from vit_steps import merge_heads, split_heads, split_qkv

small = st.integers(1, 5)


@given(b=small, n=small, h=small, d=small)
def test_head_i_is_the_ith_slice_of_the_width_or_of_each_third_of_it(b, n, h, d):
    qkv = torch.randn(b, n, 3 * h * d)
    for heads, third in zip(split_qkv(qkv, h), qkv.chunk(3, dim=-1), strict=True):
        assert heads.shape == (b, h, n, d)
        assert torch.equal(heads, split_heads(third, h))
        assert torch.equal(merge_heads(heads), third)
        for i in range(h):
            assert torch.equal(heads[:, i], third[:, :, i * d : (i + 1) * d])
