"""vit_steps.heads: heads against slices, one fused Linear against three."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

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


@pytest.mark.parametrize(
    ("shape", "h", "message"),
    [
        ((2, 3, 8), 3, r"embed_dim 8 does not divide into 3 heads.*: 1, 2, 4"),
        ((2, 3, 768), 7, r"768 does not divide into 7 heads.*: .*6, 8"),
        ((2, 3, 8), 0, "num_heads is 0"),
        ((2, 2, 3, 4), 2, "give the axes"),
    ],
)
def test_what_cannot_be_split_is_refused(shape, h, message):
    with pytest.raises(ValueError, match=message):
        split_heads(torch.zeros(shape), h)


@pytest.mark.parametrize("split", [split_heads, split_qkv])
def test_what_is_split_is_a_tensor_and_the_heads_a_whole_number(split):
    with pytest.raises(TypeError, match="num_heads"):
        split(torch.zeros(2, 3, 12), 2.0)
    with pytest.raises(TypeError, match="not a tensor"):
        split([[1.0]], 1)
    assert split(torch.zeros(2, 3, 12), np.int64(2))[0].shape[-1] in (2, 6)


def test_merge_wants_four_axes():
    with pytest.raises(ValueError, match=r"give the axes \(B, h, N, d\)"):
        merge_heads(torch.zeros(2, 3, 8))


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


def test_the_width_stands_in_the_order_qkv_then_head_then_width():
    q, k, v = split_qkv(torch.arange(18.0)[None, None], 3)
    assert q.flatten(1).tolist() == [[0, 1, 2, 3, 4, 5]]
    assert k.flatten(1).tolist() == [[6, 7, 8, 9, 10, 11]]
    assert v.flatten(1).tolist() == [[12, 13, 14, 15, 16, 17]]
    assert q[0, 1, 0].tolist() == [2, 3]  # head 1 of 3


@pytest.mark.parametrize(
    ("shape", "h", "message"),
    [
        ((2, 5, 35), 3, r"qkv is \(2, 5, 35\): its width .* q, k and v of 3 heads"),
        ((2, 5, 36), 5, "5 heads each; give 3·D numbers a token, D a multiple of 5"),
        ((2, 5, 12), 3, "does not divide"),  # tokens that no Linear has tripled
        ((2, 5, 36), 0, "num_heads is 0"),
        ((5, 36), 3, "give the axes"),
    ],
)
def test_what_is_not_three_times_the_heads_is_refused(shape, h, message):
    with pytest.raises(ValueError, match=message):
        split_qkv(torch.zeros(shape), h)
