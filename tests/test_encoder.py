"""vit_steps.encoder: a block against nn.TransformerEncoderLayer; the whole one in test_vit.py."""

import pytest
import torch
from helpers import close, shake
from test_attention import some_mask
from torch import nn

from vit_steps import MLP, Encoder, EncoderBlock


@torch.no_grad()
def load_block(theirs, ours):
    """Our block's weights into an nn.TransformerEncoderLayer."""
    renamed = {"self_attn.in_proj_": "attn.qkv.", "self_attn.out_proj": "attn.proj"}
    renamed |= {"linear1": "mlp.fc1", "linear2": "mlp.fc2"}
    weights = ours.state_dict()
    for name, values in theirs.state_dict().items():
        for part, mine in renamed.items():
            name = name.replace(part, mine)
        values.copy_(weights[name])


def torch_layer(dim, heads, hidden, eps=1e-6):
    given = dict(dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    return nn.TransformerEncoderLayer(dim, heads, hidden, layer_norm_eps=eps, **given)


def stack(depth=3, **options):
    """An encoder of blocks of width 12 with 3 heads."""
    return Encoder(EncoderBlock(12, 3, **options) for _ in range(depth))


# MLP ---------------------------------------------------------------------------------------------


def test_the_mlp_is_two_linears_with_the_erf_gelu_between():
    mlp, x = MLP(8, 20), torch.randn(2, 5, 8)
    hidden = x @ mlp.fc1.weight.T + mlp.fc1.bias
    hidden = hidden * 0.5 * (1 + torch.erf(hidden / 2**0.5))
    close(mlp(x), hidden @ mlp.fc2.weight.T + mlp.fc2.bias)


def test_the_mlps_dropout_is_for_training_alone():
    mlp, x = MLP(32, 64, dropout=0.5), torch.randn(2, 40, 32)
    assert (mlp.train()(x) == 0).float().mean().item() == pytest.approx(0.5, abs=0.05)
    assert (mlp.eval()(x) == 0).sum() == 0
    assert torch.equal(mlp(x), mlp(x))


# EncoderBlock ------------------------------------------------------------------------------------


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("dim", "heads", "ratio"), [(12, 3, 4.0), (16, 16, 2), (20, 1, 1.5)])
def test_the_block_equals_torchs_pre_norm_layer(dim, heads, ratio, masked):
    ours = shake(EncoderBlock(dim, heads, ratio))
    theirs = torch_layer(dim, heads, int(dim * ratio))
    load_block(theirs, ours)
    x, mask = torch.randn(2, 7, dim), some_mask(7, 7) if masked else None
    wanted = theirs(x, src_mask=~mask if masked else None)  # torch's True forbids
    close(ours(x, mask), wanted)


def test_the_block_gives_tokens_alone_unless_the_weights_are_asked_for():
    block, x = shake(EncoderBlock(12, 3)), torch.randn(2, 7, 12)
    assert isinstance(block(x), torch.Tensor)
    tokens, weights = block(x, return_attention=True)
    assert tokens.shape == x.shape
    assert torch.equal(weights, block.attn(block.norm1(x), return_attention=True)[1])


REFUSED = [
    (lambda: MLP(0, 20), ValueError, "embed_dim"),
    (lambda: MLP(8, 20.0), TypeError, "hidden_dim"),
    (lambda: MLP(8, 20, dropout=1.5), ValueError, "dropout"),
    (lambda: EncoderBlock(12, 3, 1.3), ValueError, "mlp_ratio 1.3.*15.6.*embed_dim 12"),
    (lambda: EncoderBlock(12, 3, norm_eps=-1e-6), ValueError, "norm_eps"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), REFUSED)
def test_bad_options_are_refused_by_name(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()


@pytest.mark.parametrize("make", [lambda: MLP(12, 48), lambda: EncoderBlock(12, 3), stack])
def test_tokens_of_another_width_are_refused(make):
    with pytest.raises(ValueError, match=r"tokens is \(2, 7, 1\); give the axes \(B, N, 12\)"):
        make()(torch.zeros(2, 7, 1))


# Encoder -----------------------------------------------------------------------------------------


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


def test_the_mask_reaches_every_block():
    mask, x = some_mask(7, 7), torch.randn(2, 7, 12)
    encoder = stack()
    for weights in encoder(x, mask, return_attention=True)[1]:
        assert torch.equal(weights > 0, mask.expand(2, 3, 7, 7))
    # and without weights: where each token sees itself alone, none notices another
    alone, changed = torch.eye(7, dtype=torch.bool), x.clone()
    changed[:, 3] += 1
    moved = (encoder(x, alone) != encoder(changed, alone)).any(-1)
    assert moved.tolist() == [[False, False, False, True, False, False, False]] * 2


# Slices ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [slice(1), slice(None, None, 2)])
def test_a_slice_is_an_encoder_of_the_same_blocks(part):
    encoder = stack(4)
    some = encoder[part]
    assert type(some) is Encoder
    assert list(some) == list(encoder)[part]


def test_a_hidden_width_that_floats_do_not_hold_exactly_is_still_whole():
    assert MLP(56, 116).fc1.out_features == 116
    assert EncoderBlock(56, 4, mlp_ratio=116 / 56).mlp.fc1.out_features == 116
