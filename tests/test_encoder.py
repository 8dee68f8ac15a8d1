"""vit_steps.encoder: against nn.TransformerEncoderLayer and nn.TransformerEncoder."""

import copy
from inspect import signature

import numpy as np
import pytest
import torch
from helpers import close, mask_of, shake
from torch import nn

from vit_steps import MLP, Encoder, EncoderBlock


def load_block(theirs, ours):
    """Our block's weights into an nn.TransformerEncoderLayer."""
    pairs = {
        "self_attn.in_proj_weight": "attn.qkv.weight",
        "self_attn.in_proj_bias": "attn.qkv.bias",
        "self_attn.out_proj.weight": "attn.proj.weight",
        "self_attn.out_proj.bias": "attn.proj.bias",
        "linear1.weight": "mlp.fc1.weight",
        "linear1.bias": "mlp.fc1.bias",
        "linear2.weight": "mlp.fc2.weight",
        "linear2.bias": "mlp.fc2.bias",
        "norm1.weight": "norm1.weight",
        "norm1.bias": "norm1.bias",
        "norm2.weight": "norm2.weight",
        "norm2.bias": "norm2.bias",
    }
    weights = ours.state_dict()
    theirs.load_state_dict({name: weights[mine] for name, mine in pairs.items()})


def torch_layer(dim, heads, hidden, eps=1e-6):
    return nn.TransformerEncoderLayer(
        dim,
        heads,
        hidden,
        dropout=0.0,
        activation="gelu",
        layer_norm_eps=eps,
        batch_first=True,
        norm_first=True,
    )


def some_mask(n):
    return (torch.rand(n, n) < 0.5) | torch.eye(n, dtype=torch.bool)


def stack(depth=3, **options):
    """An encoder of blocks of width 12 with 3 heads."""
    return Encoder(EncoderBlock(12, 3, **options) for _ in range(depth))


def gradients(out, module, x):
    """Of one and the same loss of `out`, at the input and at every parameter."""
    loss = (out * torch.linspace(-1, 1, out.numel()).view_as(out)).sum()
    return torch.autograd.grad(loss, [x, *module.parameters()])


# MLP ---------------------------------------------------------------------------------------------


def test_the_mlp_is_two_linears_with_the_erf_gelu_between():
    mlp, x = MLP(8, 20), torch.randn(2, 5, 8)
    hidden = x @ mlp.fc1.weight.T + mlp.fc1.bias
    hidden = hidden * 0.5 * (1 + torch.erf(hidden / 2**0.5))
    close(mlp(x), hidden @ mlp.fc2.weight.T + mlp.fc2.bias)


def test_the_mlp_works_on_each_token_alone():
    mlp, x = MLP(8, 20), torch.randn(2, 5, 8)
    other = x.clone()
    other[:, 3] += 1
    assert (mlp(x) != mlp(other)).any(-1).tolist() == [[False, False, False, True, False]] * 2


def test_the_mlps_parameters_in_b16():
    with torch.device("meta"):
        mlp = MLP(768, 3072)
    assert sum(p.numel() for p in mlp.fc1.parameters()) == 2_362_368
    assert sum(p.numel() for p in mlp.fc2.parameters()) == 2_360_064
    assert set(mlp.state_dict()) == {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}


def test_the_mlps_dropout_is_for_training_alone():
    mlp, x = MLP(32, 64, dropout=0.5), torch.randn(2, 40, 32)
    assert (mlp.train()(x) == 0).float().mean().item() == pytest.approx(0.5, abs=0.05)
    assert (mlp.eval()(x) == 0).sum() == 0
    assert torch.equal(mlp(x), mlp(x))


@pytest.mark.parametrize(
    ("options", "error", "name"),
    [
        ({"embed_dim": 0}, ValueError, "embed_dim"),
        ({"hidden_dim": -1}, ValueError, "hidden_dim"),
        ({"hidden_dim": 20.0}, TypeError, "hidden_dim"),
        ({"dropout": 1.5}, ValueError, "dropout"),
        ({"dropout": None}, TypeError, "dropout"),
    ],
)
def test_the_mlp_refuses_bad_options_by_name(options, error, name):
    with pytest.raises(error, match=name):
        MLP(**({"embed_dim": 8, "hidden_dim": 20} | options))


# EncoderBlock ------------------------------------------------------------------------------------


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("dim", "heads", "ratio"), [(12, 3, 4.0), (16, 16, 2), (20, 1, 1.5)])
def test_the_block_equals_torchs_pre_norm_layer(dim, heads, ratio, masked):
    ours = shake(EncoderBlock(dim, heads, ratio))
    theirs = torch_layer(dim, heads, int(dim * ratio))
    load_block(theirs, ours)
    x, mask = torch.randn(2, 7, dim), some_mask(7) if masked else None
    wanted = theirs(x, src_mask=~mask if masked else None)  # torch's True forbids
    close(ours(x, mask), wanted)


def test_the_blocks_gradients_equal_those_of_torchs_layer():
    ours, theirs = shake(EncoderBlock(12, 3)), torch_layer(12, 3, 48)
    load_block(theirs, ours)
    x = torch.randn(2, 7, 12, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    ours(x).pow(2).mean().backward()
    theirs(y).pow(2).mean().backward()
    close(x.grad, y.grad)
    close(ours.attn.qkv.weight.grad, theirs.self_attn.in_proj_weight.grad)
    close(ours.mlp.fc1.weight.grad, theirs.linear1.weight.grad)


def test_the_block_equals_the_two_equations_of_the_paper():
    block, x = shake(EncoderBlock(12, 3)), torch.randn(2, 7, 12)
    y = x + block.attn(block.norm1(x))
    close(block(x), y + block.mlp(block.norm2(y)))


def test_the_block_gives_tokens_alone_unless_the_weights_are_asked_for():
    block, x = shake(EncoderBlock(12, 3)), torch.randn(2, 7, 12)
    assert isinstance(block(x), torch.Tensor)
    result = block(x, return_attention=True)
    assert isinstance(result, tuple)
    assert [part.shape for part in result] == [(2, 7, 12), (2, 3, 7, 7)]
    wanted = block.attn(block.norm1(x), return_attention=True)[1]
    assert torch.equal(result[1], wanted)
    close(result[1].sum(-1), torch.ones(2, 3, 7))


def test_the_norms_take_their_eps():
    block, x = EncoderBlock(12, 3, norm_eps=0.5), torch.randn(2, 7, 12)
    theirs = torch_layer(12, 3, 48, eps=0.5)
    load_block(theirs, block)
    close(block(x), theirs(x))
    assert (block(x) - EncoderBlock(12, 3)(x)).abs().max() > 1e-3


@pytest.mark.parametrize(("bias", "count"), [(True, 7_087_872), (False, 7_085_568)])
def test_the_blocks_parameters_in_b16(bias, count):
    with torch.device("meta"):
        block = EncoderBlock(768, 12, qkv_bias=bias)
    assert sum(p.numel() for p in block.parameters()) == count
    assert sum(p.numel() for p in block.norm1.parameters()) == 1_536


def test_the_block_leaves_its_input_alone_also_where_backward_would_notice():
    block = EncoderBlock(12, 3)
    x = torch.randn(2, 7, 12, requires_grad=True)
    before, hot = x.detach().clone(), x.sigmoid()  # sigmoid's backward needs its own output
    block(hot).sum().backward()
    assert torch.equal(x, before)
    plain = torch.randn(2, 7, 12)
    before = plain.clone()
    block(plain)
    assert torch.equal(plain, before)


def test_the_block_is_permutation_equivariant():
    block, x, order = shake(EncoderBlock(12, 3)), torch.randn(2, 9, 12), torch.randperm(9)
    out, weights = block(x, return_attention=True)
    shuffled, shuffled_weights = block(x[:, order], return_attention=True)
    close(shuffled, out[:, order])
    close(shuffled_weights, weights[:, :, order][:, :, :, order])


def test_the_blocks_dropout_is_for_training_alone():
    block, x = EncoderBlock(12, 3, dropout=0.3), torch.randn(2, 7, 12)
    assert not torch.equal(block.train()(x), block(x))
    assert torch.equal(block.eval()(x), block(x))
    same = EncoderBlock(12, 3)
    same.load_state_dict(block.state_dict())
    assert torch.equal(block(x), same(x))


def test_whole_numbers_of_numpy_are_sizes_too():
    block = EncoderBlock(np.int64(12), np.int32(3), mlp_ratio=np.float64(2))
    assert block(torch.randn(2, 7, 12)).shape == (2, 7, 12)
    assert MLP(np.int64(12), np.int64(24))(torch.randn(2, 7, 12)).shape == (2, 7, 12)


BAD_OPTIONS = [
    ({"embed_dim": 0}, ValueError, "embed_dim"),
    ({"embed_dim": -12}, ValueError, "embed_dim"),
    ({"embed_dim": 12.0}, TypeError, "embed_dim"),
    ({"embed_dim": "12"}, TypeError, "embed_dim"),
    ({"num_heads": 5}, ValueError, "does not divide into 5 heads"),
    ({"num_heads": 0}, ValueError, "num_heads"),
    ({"num_heads": None}, TypeError, "num_heads"),
    ({"mlp_ratio": 1.3}, ValueError, "mlp_ratio 1.3.*15.6.*embed_dim 12"),
    ({"mlp_ratio": 0}, ValueError, "mlp_ratio"),
    ({"mlp_ratio": -4.0}, ValueError, "mlp_ratio"),
    ({"mlp_ratio": float("nan")}, ValueError, "mlp_ratio"),
    ({"mlp_ratio": float("inf")}, ValueError, "mlp_ratio"),
    ({"mlp_ratio": "4"}, TypeError, "mlp_ratio"),
    ({"mlp_ratio": True}, TypeError, "mlp_ratio"),
    ({"dropout": 1.0}, ValueError, "dropout"),
    ({"dropout": "0.1"}, TypeError, "dropout"),
    ({"norm_eps": -1e-6}, ValueError, "norm_eps"),
    ({"norm_eps": "1e-6"}, TypeError, "norm_eps"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD_OPTIONS)
def test_the_block_refuses_bad_options_by_name(options, error, message):
    with pytest.raises(error, match=message):
        EncoderBlock(**({"embed_dim": 12, "num_heads": 3} | options))


@pytest.mark.parametrize("width", [1, 11])
def test_the_mlp_refuses_tokens_of_another_width(width):
    with pytest.raises(ValueError, match=f"width {width} where 12"):
        MLP(12, 48)(torch.zeros(2, 7, width))


@pytest.mark.parametrize("shape", [(2, 7, 11), (7, 12), (1, 2, 7, 12), (2, 7, 1)])
@pytest.mark.parametrize("make", [lambda: EncoderBlock(12, 3), stack], ids=["block", "encoder"])
def test_tokens_of_another_shape_are_refused(make, shape):
    with pytest.raises(ValueError, match=r"tokens is"):
        make()(torch.zeros(shape))


@pytest.mark.parametrize("make", [lambda: EncoderBlock(12, 3), stack], ids=["block", "encoder"])
def test_tokens_must_be_a_tensor(make):
    with pytest.raises(TypeError, match=r"not a tensor"):
        make()([[1.0]])


# Two ways, one result ----------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [None, (7, 7), (2, 1, 1, 7), (2, 3, 7, 7)])
@pytest.mark.parametrize("make", [lambda: EncoderBlock(12, 3), stack], ids=["block", "encoder"])
def test_with_and_without_weights_values_and_gradients_are_equal(make, shape):
    module, mask = shake(make()), mask_of(shape)
    x = torch.randn(2, 7, 12, requires_grad=True)
    fused, (explicit, _) = module(x, mask), module(x, mask, return_attention=True)
    close(fused, explicit)
    pairs = zip(gradients(fused, module, x), gradients(explicit, module, x), strict=True)
    for one, other in pairs:
        close(one, other, atol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("masked", [False, True])
def test_with_and_without_weights_dropout_has_the_same_mean_and_spread(masked):
    block, x = shake(EncoderBlock(8, 2, dropout=0.2)), torch.randn(1, 5, 8)
    mask, many = some_mask(5) if masked else None, x.expand(20_000, -1, -1)  # a draw for each
    fused, explicit = block(many, mask), block(many, mask, return_attention=True)[0]
    close(fused.mean(0), explicit.mean(0), atol=0.02)
    torch.testing.assert_close(fused.std(0), explicit.std(0), rtol=0.03, atol=0)
    assert fused.std(0).min() > 0.05


def test_in_evaluation_dropout_drops_nothing_with_weights_nor_without():
    encoder, x = shake(stack(dropout=0.5)).eval(), torch.randn(2, 7, 12)
    without = stack()
    without.load_state_dict(encoder.state_dict())
    close(encoder(x), without(x))
    close(encoder(x, return_attention=True)[0], without(x))


@pytest.mark.parametrize("module", [EncoderBlock, Encoder])
def test_weights_are_given_only_when_asked_for(module):
    assert signature(module.forward).parameters["return_attention"].default is False


# Encoder -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("masked", [False, True])
def test_the_encoder_equals_torchs(masked):
    ours = shake(stack(mlp_ratio=2))
    theirs = nn.TransformerEncoder(torch_layer(12, 3, 24), 3, enable_nested_tensor=False)
    for layer, block in zip(theirs.layers, ours, strict=True):
        load_block(layer, block)
    x, mask = torch.randn(2, 7, 12), some_mask(7) if masked else None
    close(ours(x, mask), theirs(x, mask=~mask if masked else None))


def test_the_encoder_is_made_from_the_blocks_themselves():
    blocks = [EncoderBlock(12, 3) for _ in range(3)]
    for encoder in (Encoder(blocks), Encoder(block for block in blocks)):
        assert len(encoder) == 3
        for one, other in zip(encoder, blocks, strict=True):
            assert one is other


def test_the_encoder_runs_its_blocks_one_after_the_other():
    encoder, x = shake(stack()), torch.randn(2, 7, 12)
    out, attention = encoder(x, return_attention=True)
    fused, start = encoder(x), x
    assert isinstance(attention, list)
    for block, weights in zip(encoder, attention, strict=True):
        x, wanted = block(x, return_attention=True)
        assert torch.equal(weights, wanted)
    assert torch.equal(out, x)
    for block in encoder:
        start = block(start)
    assert torch.equal(fused, start)


def test_every_block_matters():
    encoder, x = shake(stack()), torch.randn(2, 7, 12)
    before = encoder(x)
    for i in range(3):
        other = copy.deepcopy(encoder)
        shake(other[i])
        assert (other(x) - before).abs().max() > 0.01


def test_the_mask_reaches_every_block():
    mask, x = some_mask(7), torch.randn(2, 7, 12)
    encoder = stack()
    for weights in encoder(x, mask, return_attention=True)[1]:
        assert torch.equal(weights > 0, mask.expand(2, 3, 7, 7))
    # and without weights: where each token sees itself alone, none notices another
    alone, changed = torch.eye(7, dtype=torch.bool), x.clone()
    changed[:, 3] += 1
    moved = (encoder(x, alone) != encoder(changed, alone)).any(-1)
    assert moved.tolist() == [[False, False, False, True, False, False, False]] * 2


def test_every_parameter_gets_a_gradient():
    encoder = stack()
    encoder(torch.randn(2, 7, 12)).pow(2).sum().backward()
    for name, p in encoder.named_parameters():
        assert p.grad is not None, name
        assert p.grad.abs().max() > 0, name


def test_the_encoder_leaves_its_input_alone():
    x = torch.randn(2, 7, 12)
    before = x.clone()
    stack()(x)
    assert torch.equal(x, before)


def test_the_encoder_is_permutation_equivariant():
    encoder, x, order = shake(stack()), torch.randn(2, 9, 12), torch.randperm(9)
    close(encoder(x[:, order]), encoder(x)[:, order])


def test_the_names_follow_timm():
    names = set(stack(2).state_dict())
    parts = ["norm1", "attn.qkv", "attn.proj", "norm2", "mlp.fc1", "mlp.fc2"]
    assert names == {f"{i}.{p}.{w}" for i in range(2) for p in parts for w in ("weight", "bias")}


def test_an_encoder_without_blocks_changes_nothing():
    x = torch.randn(2, 7, 12)
    assert torch.equal(Encoder([])(x), x)
    out, attention = Encoder([])(x, return_attention=True)
    assert torch.equal(out, x)
    assert attention == []


# Slices ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [slice(1), slice(2, None), slice(-2, None), slice(None, None, 2)])
def test_a_slice_is_an_encoder_of_the_same_blocks_that_runs(part):
    encoder, x = shake(stack(4)), torch.randn(2, 7, 12)
    some = encoder[part]
    assert type(some) is Encoder
    wanted, weights = x, []
    for block, number in zip(some, range(4)[part], strict=True):
        assert block is encoder[number]
        wanted, one = block(wanted, return_attention=True)
        weights.append(one)
    close(some(x), wanted)
    out, attention = some(x, return_attention=True)
    assert torch.equal(out, wanted)
    for one, other in zip(attention, weights, strict=True):
        assert torch.equal(one, other)


def test_two_slices_after_each_other_are_the_whole():
    encoder, x, mask = shake(stack(4)), torch.randn(2, 7, 12), some_mask(7)
    assert torch.equal(encoder[1:](encoder[:1](x, mask), mask), encoder(x, mask))


def test_a_block_can_be_deleted():
    encoder, x = shake(stack(3)), torch.randn(2, 7, 12)
    wanted = encoder[2](encoder[0](x))
    del encoder[1]
    assert type(encoder) is Encoder
    assert torch.equal(encoder(x), wanted)
    assert {name.split(".")[0] for name in encoder.state_dict()} == {"0", "1"}
    del encoder[1:]
    assert len(encoder) == len(encoder(x, return_attention=True)[1]) == 1


def test_blocks_can_be_added():
    encoder, x = shake(stack(2)), torch.randn(2, 7, 12)
    last = shake(EncoderBlock(12, 3))
    wanted = last(encoder(x))
    encoder.append(last)
    assert torch.equal(encoder(x), wanted)
    encoder.insert(0, encoder[2])
    assert torch.equal(encoder(x), encoder[1:](last(x)))


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
def test_an_encoder_and_its_slices_can_be_copied(make):
    encoder, x = shake(stack()), torch.randn(2, 7, 12)
    for one in (encoder, encoder[:2]):
        same = make(one)
        assert type(same) is Encoder
        assert torch.equal(same(x), one(x))
        assert (same[0] is one[0]) == (make is copy.copy)


def test_frozen_blocks_get_no_gradient_and_pass_it_on():
    encoder, x = shake(stack()), torch.randn(2, 7, 12)
    encoder[:2].requires_grad_(False)
    encoder(x.requires_grad_()).pow(2).sum().backward()
    assert x.grad.abs().max() > 0
    for number, block in enumerate(encoder):
        assert all((p.grad is None) == (number < 2) for p in block.parameters())


def test_a_hidden_width_that_floats_do_not_hold_exactly_is_still_whole():
    assert MLP(56, 116).fc1.out_features == 116
    assert EncoderBlock(56, 4, mlp_ratio=116 / 56).mlp.fc1.out_features == 116
