"""vit_steps.heads: heads against slices, the fused Linear against three."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from vit_steps import QKV, merge_heads, split_heads

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


# QKV ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
def test_one_fused_linear_equals_three(bias):
    qkv, x = QKV(12, 3, bias=bias), torch.randn(2, 5, 12)
    results = qkv(x)
    for i, result in enumerate(results):
        one = nn.Linear(12, 12, bias=bias)
        with torch.no_grad():
            one.weight.copy_(qkv.weight[12 * i : 12 * (i + 1)])
            if bias:
                one.bias.copy_(qkv.bias[12 * i : 12 * (i + 1)])
        assert result.shape == (2, 3, 5, 4)
        torch.testing.assert_close(result, split_heads(one(x), 3), atol=1e-6, rtol=0)


def test_the_rows_stand_in_the_order_qkv_then_head_then_width():
    qkv = QKV(6, 3, bias=True)
    with torch.no_grad():
        qkv.weight.zero_()
        qkv.bias.copy_(torch.arange(18.0))
    q, k, v = qkv(torch.zeros(1, 1, 6))
    assert q.flatten(1).tolist() == [[0, 1, 2, 3, 4, 5]]
    assert k.flatten(1).tolist() == [[6, 7, 8, 9, 10, 11]]
    assert v.flatten(1).tolist() == [[12, 13, 14, 15, 16, 17]]
    assert q[0, 1, 0].tolist() == [2, 3]  # head 1 of 3


def test_the_head_first_order_has_the_same_shapes_and_other_numbers():
    qkv, x = QKV(12, 3), torch.randn(2, 5, 12)
    wrong = nn.functional.linear(x, qkv.weight, qkv.bias).unflatten(2, (3, 4, 3))  # (h d qkv)
    wrong = wrong.permute(4, 0, 2, 1, 3)
    for right, other in zip(qkv(x), wrong, strict=True):
        assert right.shape == other.shape
        assert (right - other).abs().max() > 0.1


@pytest.mark.parametrize("heads", [8, 12])
def test_parameters_of_b16_whatever_the_number_of_heads(heads):
    with torch.device("meta"):
        qkv, without = QKV(768, heads), QKV(768, heads, bias=False)
    assert qkv.weight.shape == (2304, 768)
    assert sum(p.numel() for p in qkv.parameters()) == 1_771_776
    assert without.bias is None
    assert set(without.state_dict()) == {"weight"}
    assert set(qkv.state_dict()) == {"weight", "bias"}


@pytest.mark.parametrize(
    ("dim", "heads", "message"),
    [
        (8, 3, "does not divide into 3 heads"),
        (0, 1, "embed_dim is 0"),
        (-8, 2, "embed_dim is -8"),
        (8, 0, "num_heads is 0"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(dim, heads, message):
    with pytest.raises(ValueError, match=message):
        QKV(dim, heads)


@pytest.mark.parametrize(("dim", "heads"), [(8.0, 2), (8, 2.0), ("8", 2), (8, None)])
def test_sizes_must_be_whole_numbers(dim, heads):
    with pytest.raises(TypeError, match=r"embed_dim|num_heads"):
        QKV(dim, heads)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2, 5, 11), "width 11 where 12"),
        ((5, 12), "give the axes"),
        ((1, 2, 5, 12), "give the axes"),
    ],
)
def test_tokens_of_another_shape_are_refused(shape, message):
    with pytest.raises(ValueError, match=message):
        QKV(12, 3)(torch.zeros(shape))


def test_tokens_must_be_a_tensor():
    with pytest.raises(TypeError, match=r"not a tensor"):
        QKV(12, 3)([[1.0]])
