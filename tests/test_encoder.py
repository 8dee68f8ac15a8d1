"""vit_steps.encoder: against nn.TransformerEncoderLayer and nn.TransformerEncoder."""

import copy

import pytest
import torch
from helpers import close, shake
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
    close(ours(x, mask)[0], wanted)


def test_the_blocks_gradients_equal_those_of_torchs_layer():
    ours, theirs = shake(EncoderBlock(12, 3)), torch_layer(12, 3, 48)
    load_block(theirs, ours)
    x = torch.randn(2, 7, 12, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    ours(x)[0].pow(2).mean().backward()
    theirs(y).pow(2).mean().backward()
    close(x.grad, y.grad)
    close(ours.attn.qkv.weight.grad, theirs.self_attn.in_proj_weight.grad)
    close(ours.mlp.fc1.weight.grad, theirs.linear1.weight.grad)


def test_the_block_equals_the_two_equations_of_the_paper():
    block, x = shake(EncoderBlock(12, 3)), torch.randn(2, 7, 12)
    y = x + block.attn(block.norm1(x))[0]
    close(block(x)[0], y + block.mlp(block.norm2(y)))


def test_the_block_gives_the_weights_of_its_attention():
    block, x = shake(EncoderBlock(12, 3)), torch.randn(2, 7, 12)
    weights = block(x)[1]
    assert weights.shape == (2, 3, 7, 7)
    assert torch.equal(weights, block.attn(block.norm1(x))[1])
    close(weights.sum(-1), torch.ones(2, 3, 7))


def test_the_norms_take_their_eps():
    block, x = EncoderBlock(12, 3, norm_eps=0.5), torch.randn(2, 7, 12)
    theirs = torch_layer(12, 3, 48, eps=0.5)
    load_block(theirs, block)
    close(block(x)[0], theirs(x))
    assert (block(x)[0] - EncoderBlock(12, 3)(x)[0]).abs().max() > 1e-3


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
    block(hot)[0].sum().backward()
    assert torch.equal(x, before)
    plain = torch.randn(2, 7, 12)
    before = plain.clone()
    block(plain)
    assert torch.equal(plain, before)


def test_the_block_is_permutation_equivariant():
    block, x, order = shake(EncoderBlock(12, 3)), torch.randn(2, 9, 12), torch.randperm(9)
    out, weights = block(x)
    shuffled, shuffled_weights = block(x[:, order])
    close(shuffled, out[:, order])
    close(shuffled_weights, weights[:, :, order][:, :, :, order])


def test_the_blocks_dropout_is_for_training_alone():
    block, x = EncoderBlock(12, 3, dropout=0.3), torch.randn(2, 7, 12)
    assert not torch.equal(block.train()(x)[0], block(x)[0])
    assert torch.equal(block.eval()(x)[0], block(x)[0])
    same = EncoderBlock(12, 3)
    same.load_state_dict(block.state_dict())
    assert torch.equal(block(x)[0], same(x)[0])


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
    ({"qkv_bias": "no"}, TypeError, "qkv_bias"),
    ({"qkv_bias": 1}, TypeError, "qkv_bias"),
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
@pytest.mark.parametrize("make", [lambda: EncoderBlock(12, 3), lambda: Encoder(2, 12, 3)])
def test_tokens_of_another_shape_are_refused(make, shape):
    with pytest.raises(ValueError, match=r"tokens is"):
        make()(torch.zeros(shape))


@pytest.mark.parametrize("make", [lambda: EncoderBlock(12, 3), lambda: Encoder(2, 12, 3)])
def test_tokens_must_be_a_tensor(make):
    with pytest.raises(TypeError, match=r"not a tensor"):
        make()([[1.0]])


# Encoder -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("masked", [False, True])
def test_the_encoder_equals_torchs(masked):
    ours = shake(Encoder(3, 12, 3, mlp_ratio=2))
    theirs = nn.TransformerEncoder(torch_layer(12, 3, 24), 3, enable_nested_tensor=False)
    for layer, block in zip(theirs.layers, ours, strict=True):
        load_block(layer, block)
    x, mask = torch.randn(2, 7, 12), some_mask(7) if masked else None
    close(ours(x, mask)[0], theirs(x, mask=~mask if masked else None))


def test_the_encoder_runs_its_blocks_one_after_the_other():
    encoder, x = shake(Encoder(3, 12, 3)), torch.randn(2, 7, 12)
    out, attention = encoder(x)
    assert len(attention) == 3
    for block, weights in zip(encoder, attention, strict=True):
        x, wanted = block(x)
        assert torch.equal(weights, wanted)
    assert torch.equal(out, x)


def test_the_encoder_lets_the_weights_go_when_told_to():
    encoder, x = shake(Encoder(3, 12, 3)), torch.randn(2, 7, 12)
    out, attention = encoder(x, return_attention=False)
    assert torch.equal(out, encoder(x)[0])
    assert attention == []


def test_every_block_matters():
    encoder, x = shake(Encoder(3, 12, 3)), torch.randn(2, 7, 12)
    before = encoder(x)[0]
    for i in range(3):
        other = copy.deepcopy(encoder)
        shake(other[i])
        assert (other(x)[0] - before).abs().max() > 0.01


def test_the_mask_reaches_every_block():
    mask = some_mask(7)
    attention = Encoder(3, 12, 3)(torch.randn(2, 7, 12), mask)[1]
    for weights in attention:
        assert torch.equal(weights > 0, mask.expand(2, 3, 7, 7))


def test_the_blocks_do_not_start_alike_and_share_nothing():
    encoder = Encoder(2, 12, 3)
    assert not torch.equal(encoder[0].mlp.fc1.weight, encoder[1].mlp.fc1.weight)
    pointers = {p.data_ptr() for p in encoder.parameters()}
    assert len(pointers) == len(list(encoder.parameters()))


def test_every_parameter_gets_a_gradient():
    encoder = Encoder(3, 12, 3)
    encoder(torch.randn(2, 7, 12))[0].pow(2).sum().backward()
    for name, p in encoder.named_parameters():
        assert p.grad is not None, name
        assert p.grad.abs().max() > 0, name


def test_the_encoder_leaves_its_input_alone():
    x = torch.randn(2, 7, 12)
    before = x.clone()
    Encoder(2, 12, 3)(x)
    assert torch.equal(x, before)


def test_the_encoder_is_permutation_equivariant():
    encoder, x, order = shake(Encoder(3, 12, 3)), torch.randn(2, 9, 12), torch.randperm(9)
    close(encoder(x[:, order])[0], encoder(x)[0][:, order])


def test_the_encoder_passes_all_options_to_its_blocks():
    encoder = Encoder(2, 12, 3, mlp_ratio=2, qkv_bias=False, dropout=0.3, norm_eps=0.01)
    for block in encoder:
        assert block.attn.qkv.num_heads == 3
        assert block.attn.qkv.bias is None
        assert block.mlp.fc1.out_features == 24
        assert block.norm1.eps == block.norm2.eps == 0.01
        assert block.attn.dropout.p == block.mlp.dropout.p == 0.3


def test_the_names_follow_timm():
    names = set(Encoder(2, 12, 3).state_dict())
    parts = ["norm1", "attn.qkv", "attn.proj", "norm2", "mlp.fc1", "mlp.fc2"]
    assert names == {f"{i}.{p}.{w}" for i in range(2) for p in parts for w in ("weight", "bias")}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        *BAD_OPTIONS,
        ({"depth": 0}, ValueError, "depth"),
        ({"depth": -1}, ValueError, "depth"),
        ({"depth": 2.0}, TypeError, "depth"),
        ({"depth": None}, TypeError, "depth"),
    ],
)
def test_the_encoder_refuses_bad_options_by_name(options, error, message):
    with pytest.raises(error, match=message):
        Encoder(**({"depth": 2, "embed_dim": 12, "num_heads": 3} | options))


def test_a_hidden_width_that_floats_do_not_hold_exactly_is_still_whole():
    assert MLP(56, 116).fc1.out_features == 116
    assert EncoderBlock(56, 4, mlp_ratio=116 / 56).mlp.fc1.out_features == 116
