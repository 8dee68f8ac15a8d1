"""vit_steps.tokens: cls first, and a position for each token."""

import pytest
import torch

from vit_steps import TokenEmbedding


def test_cls_comes_first_and_all_images_share_it_and_the_positions():
    embed, patches, weights = TokenEmbedding(5, 8), torch.randn(4, 5, 8), torch.randn(4, 6, 8)
    tokens, positions = embed(patches), embed.pos_embed[0]
    torch.testing.assert_close(tokens[:, 0], (embed.cls_token[0] + positions[0]).expand(4, -1))
    torch.testing.assert_close(tokens[:, 1:], patches + positions[1:])
    (tokens * weights).sum().backward()
    torch.testing.assert_close(embed.cls_token.grad, weights[:, :1].sum(0, keepdim=True))
    torch.testing.assert_close(embed.pos_embed.grad, weights.sum(0, keepdim=True))


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
