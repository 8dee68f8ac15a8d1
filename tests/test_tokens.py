"""vit_steps.tokens: start and dropout; lesson 02's exercise and test_vit.py try the rest."""

import pytest
import torch

from vit_steps import TokenEmbedding


def test_the_positions_start_ten_times_as_large_as_cls():
    embed = TokenEmbedding(196, 768)
    assert embed.cls_token.std().item() == pytest.approx(0.02, rel=0.1)
    assert embed.pos_embed.std().item() == pytest.approx(0.2, rel=0.01)
    for values in (embed.pos_embed, embed.cls_token):
        assert abs(values.mean().item()) < 0.003
    assert embed.pos_embed[0, 1].ne(embed.pos_embed[0, 2]).all()  # each place has its own


def test_dropout_is_for_training_alone():
    embed, patches = TokenEmbedding(50, 64, dropout=0.5), torch.randn(8, 50, 64)
    training, evaluated = embed(patches), embed.eval()(patches)
    zeros = training == 0
    assert zeros.float().mean().item() == pytest.approx(0.5, abs=0.02)
    torch.testing.assert_close(training[~zeros], 2 * evaluated[~zeros])  # kept ones are scaled
    assert (evaluated == 0).sum() == 0
