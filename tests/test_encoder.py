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
    options = dict(dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    return nn.TransformerEncoderLayer(dim, heads, hidden, layer_norm_eps=eps, **options)


def test_the_mlps_dropout_is_for_training_alone():
    mlp, x = MLP(32, 64, dropout=0.5), torch.randn(2, 40, 32)
    assert (mlp.train()(x) == 0).float().mean().item() == pytest.approx(0.5, abs=0.05)
    assert (mlp.eval()(x) == 0).sum() == 0


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("dim", "heads", "ratio"), [(12, 3, 4.0), (16, 16, 2), (20, 1, 1.5), (28, 4, 61 / 28)]
)
def test_the_block_equals_torchs_pre_norm_layer(dim, heads, ratio, masked):
    ours = shake(EncoderBlock(dim, heads, ratio))
    theirs = torch_layer(dim, heads, round(dim * ratio))  # 61 / 28 · 28 is a little off 61
    load_block(theirs, ours)
    x, mask = torch.randn(2, 7, dim), some_mask(7, 7) if masked else None
    expected = theirs(x, src_mask=~mask if masked else None)  # torch's True forbids
    close(ours(x, mask), expected)


def test_the_encoder_runs_its_blocks_one_after_the_other_and_a_slice_is_one_of_them():
    encoder = shake(Encoder(EncoderBlock(12, 3) for _ in range(4)))
    x, mask = torch.randn(2, 7, 12), some_mask(7, 7)
    short = encoder[::2]
    assert type(short) is Encoder
    assert list(short) == list(encoder)[::2]
    for blocks in (encoder, short):
        tokens, expected = x, x
        out, attention = blocks(x, mask, return_attention=True)
        for block, weights in zip(blocks, attention, strict=True):
            assert torch.equal(weights > 0, mask.expand(2, 3, 7, 7))
            tokens, expected = block(tokens, mask), block(expected, mask, True)[0]
        assert torch.equal(blocks(x, mask), tokens)
        assert torch.equal(out, expected)
