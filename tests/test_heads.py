"""vit_steps.heads: heads against slices, one fused Linear against three."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import zeros

from vit_steps import merge_heads, split_heads, split_qkv

QUICK = settings(deadline=None, max_examples=40, derandomize=True, database=None)
small = st.integers(1, 5)


@QUICK
@given(b=small, n=small, h=small, d=small)
def test_head_i_is_the_ith_slice_of_the_width(b, n, h, d):
    x = torch.randn(b, n, h * d)
    heads = split_heads(x, h)
    assert heads.shape == (b, h, n, d)
    for i in range(h):
        assert torch.equal(heads[:, i], x[:, :, i * d : (i + 1) * d])


@QUICK
@given(b=small, n=small, h=small, d=small)
def test_split_and_merge_undo_each_other(b, n, h, d):
    x, heads = torch.randn(b, n, h * d), torch.randn(b, h, n, d)
    assert torch.equal(merge_heads(split_heads(x, h)), x)
    assert torch.equal(split_heads(merge_heads(heads), h), heads)


# split_qkv ---------------------------------------------------------------------------------------


@QUICK
@given(b=small, n=small, h=small, d=small)
def test_queries_keys_and_values_are_the_three_thirds_each_split_into_heads(b, n, h, d):
    qkv = torch.randn(b, n, 3 * h * d)
    parts = split_qkv(qkv, h)
    assert isinstance(parts, tuple)
    for part, third in zip(parts, qkv.chunk(3, dim=-1), strict=True):
        assert part.shape == (b, h, n, d)
        assert torch.equal(part, split_heads(third, h))


FITS = "does not divide into"
ODD = r"qkv is \(2, 5, 35\): its width .* q, k and v of 3 heads"
REFUSED = [
    (lambda: split_heads(zeros(2, 3, 768), 7), ValueError, rf"768 {FITS} 7 heads.*: .*6, 8"),
    (lambda: split_heads(zeros(2, 2, 3, 4), 2), ValueError, "give the axes"),
    (lambda: split_heads(zeros(2, 3, 12), 2.0), TypeError, "num_heads"),
    (lambda: split_heads([[1.0]], 1), TypeError, "not a tensor"),
    (lambda: merge_heads(zeros(2, 3, 8)), ValueError, r"give the axes \(B, h, N, d\)"),
    (lambda: split_qkv(zeros(2, 5, 35), 3), ValueError, ODD),
    (lambda: split_qkv(zeros(2, 5, 36), 5), ValueError, "5 heads each; give 3·D .*multiple of 5"),
    (lambda: split_qkv(zeros(2, 5, 36), 0), ValueError, "num_heads is 0"),
    (lambda: split_qkv(zeros(5, 36), 3), ValueError, "give the axes"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), REFUSED)
def test_what_cannot_be_split_or_merged_is_refused(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()
