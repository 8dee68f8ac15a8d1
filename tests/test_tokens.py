"""vit_steps.tokens: cls first, and a position for each token."""

import pytest
import torch

from vit_steps import TokenEmbedding


def test_positions_are_added_to_all_tokens_cls_too():
    embed, patches = TokenEmbedding(5, 8), torch.randn(2, 5, 8)
    tokens, positions = embed(patches), embed.pos_embed[0]
    for image in range(2):
        torch.testing.assert_close(tokens[image, 0], embed.cls_token[0, 0] + positions[0])
        for n in range(5):
            torch.testing.assert_close(tokens[image, 1 + n], patches[image, n] + positions[1 + n])


def test_all_images_share_one_cls_token_and_their_gradients_add_up():
    embed, weights = TokenEmbedding(5, 8), torch.randn(4, 6, 8)
    (embed(torch.randn(4, 5, 8)) * weights).sum().backward()
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
    training = embed(patches)
    zeros = training == 0
    assert zeros.float().mean().item() == pytest.approx(0.5, abs=0.02)
    evaluated = embed.eval()(patches)
    assert (evaluated == 0).sum() == 0
    assert torch.equal(evaluated, embed(patches))
    torch.testing.assert_close(training[~zeros], 2 * evaluated[~zeros])  # kept ones are scaled


def embed(*shape):
    return TokenEmbedding(5, 8)(torch.zeros(shape))


REFUSED = [
    (lambda: embed(2, 1, 8), ValueError, r"tokens is \(2, 1, 8\); give the axes \(B, 5, 8\)"),
    (lambda: embed(2, 5, 1), ValueError, r"\(B, 5, 8\)"),  # it would broadcast in silence, too
    (lambda: embed(5, 8), ValueError, r"\(5, 8\); give the axes \(B, 5, 8\)"),
    (lambda: TokenEmbedding(0, 8), ValueError, "num_patches"),
    (lambda: TokenEmbedding(5, 4.0), TypeError, "embed_dim"),
    (lambda: TokenEmbedding(5, 8, dropout=1.0), ValueError, "dropout"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), REFUSED)
def test_what_does_not_fit_is_refused(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()
