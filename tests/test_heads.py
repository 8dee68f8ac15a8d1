"""vit_steps.heads: heads against slices, one fused Linear against three."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

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


def test_the_tempting_view_is_another_thing():
    x = torch.randn(1, 3, 4)
    assert not torch.equal(split_heads(x, 2), x.view(1, 2, 3, 2))


@pytest.mark.parametrize(
    ("shape", "h", "message"),
    [
        ((2, 3, 8), 3, r"embed_dim 8 does not divide into 3 heads.*: 1, 2, 4"),
        ((2, 3, 768), 7, r"768 does not divide into 7 heads.*: .*6, 8"),
        ((2, 3, 8), 16, "8 does not divide into 16 heads"),
        ((2, 3, 8), 0, "num_heads is 0"),
        ((2, 3, 8), -2, "num_heads is -2"),
        ((3, 8), 2, "give the axes"),
        ((2, 2, 3, 4), 2, "give the axes"),
        ((8,), 2, "give the axes"),
        ((), 1, "give the axes"),
    ],
)
def test_what_cannot_be_split_is_refused(shape, h, message):
    with pytest.raises(ValueError, match=message):
        split_heads(torch.zeros(shape), h)


@pytest.mark.parametrize("h", [2.0, "2", None, True])
def test_a_number_of_heads_must_be_whole(h):
    with pytest.raises(TypeError, match=r"num_heads"):
        split_heads(torch.zeros(2, 3, 8), h)


@pytest.mark.parametrize("shape", [(2, 3, 8), (3, 8), (), (1, 2, 3, 4, 5)])
def test_merge_wants_four_axes(shape):
    with pytest.raises(ValueError, match=r"give the axes \(B, h, N, d\)"):
        merge_heads(torch.zeros(shape))


@pytest.mark.parametrize("x", [None, [[1.0]], "x"])
def test_heads_are_made_of_tensors(x):
    with pytest.raises(TypeError, match=r"not a tensor"):
        split_heads(x, 1)
    with pytest.raises(TypeError, match=r"not a tensor"):
        merge_heads(x)


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


def test_the_head_first_order_has_the_same_shapes_and_other_numbers():
    qkv = torch.randn(2, 5, 36)
    wrong = qkv.unflatten(2, (3, 4, 3)).permute(4, 0, 2, 1, 3)  # (h d qkv)
    for right, other in zip(split_qkv(qkv, 3), wrong, strict=True):
        assert right.shape == other.shape
        assert (right - other).abs().max() > 0.1


@pytest.mark.parametrize("bias", [True, False])
def test_one_fused_linear_equals_three(bias):
    fused, x = nn.Linear(12, 36, bias=bias), torch.randn(2, 5, 12)
    for i, result in enumerate(split_qkv(fused(x), 3)):
        one = nn.Linear(12, 12, bias=bias)
        with torch.no_grad():
            one.weight.copy_(fused.weight[12 * i : 12 * (i + 1)])
            if bias:
                one.bias.copy_(fused.bias[12 * i : 12 * (i + 1)])
        torch.testing.assert_close(result, split_heads(one(x), 3), atol=1e-6, rtol=0)


def test_gradients_pass_through_the_split():
    qkv = torch.randn(2, 5, 36, requires_grad=True)
    q, k, v = split_qkv(qkv, 3)
    (q + 2 * k + 3 * v).sum().backward()
    wanted = torch.tensor([1.0, 2, 3]).repeat_interleave(12).expand(2, 5, 36)
    assert torch.equal(qkv.grad, wanted)


def test_the_input_is_left_alone():
    qkv = torch.randn(2, 5, 36)
    before = qkv.clone()
    split_qkv(qkv, 3)
    assert torch.equal(qkv, before)


@pytest.mark.parametrize(
    ("shape", "h", "message"),
    [
        ((2, 5, 35), 3, r"qkv is \(2, 5, 35\): its width .* q, k and v of 3 heads"),
        ((2, 5, 36), 5, "5 heads each; give 3·D numbers a token, D a multiple of 5"),
        ((2, 5, 12), 3, "does not divide"),  # tokens that no Linear has tripled
        ((2, 5, 36), 0, "num_heads is 0"),
        ((2, 5, 36), -3, "num_heads is -3"),
        ((5, 36), 3, "give the axes"),
        ((1, 2, 5, 36), 3, "give the axes"),
        ((), 3, "give the axes"),
    ],
)
def test_what_is_not_three_times_the_heads_is_refused(shape, h, message):
    with pytest.raises(ValueError, match=message):
        split_qkv(torch.zeros(shape), h)


@pytest.mark.parametrize("h", [2.0, "2", None, True])
def test_the_number_of_heads_must_be_whole_here_too(h):
    with pytest.raises(TypeError, match=r"num_heads"):
        split_qkv(torch.zeros(2, 5, 36), h)


@pytest.mark.parametrize("qkv", [None, [[1.0]], "x"])
def test_what_is_split_must_be_a_tensor(qkv):
    with pytest.raises(TypeError, match=r"not a tensor"):
        split_qkv(qkv, 1)


@pytest.mark.parametrize("split", [split_heads, split_qkv])
def test_numpys_whole_numbers_count_heads(split):
    x = torch.randn(2, 5, 36)
    for one, other in zip(split(x, np.int64(3)), split(x, 3), strict=True):
        assert torch.equal(one, other)
