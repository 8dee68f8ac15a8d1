"""vit_steps.tokens: cls first, and a position for each token."""

import numpy as np
import pytest
import torch

from vit_steps import TokenEmbedding

# TokenEmbedding ----------------------------------------------------------------------------------


def test_shapes_and_parameters_of_b16():
    embed = TokenEmbedding(np.int64(196), 768)
    assert embed.cls_token.shape == (1, 1, 768)
    assert embed.pos_embed.shape == (1, 197, 768)
    assert sum(p.numel() for p in embed.parameters()) == 768 + 151_296
    assert embed(torch.zeros(2, 196, 768)).shape == (2, 197, 768)


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


def test_the_number_of_images_is_not_fixed_by_tracing():
    embed, two = TokenEmbedding(5, 8), torch.randn(2, 5, 8)
    any_batch = torch.export.Dim("batch", min=1, max=64)
    traced = torch.export.export(embed, (two,), dynamic_shapes=({0: any_batch},)).module()
    patches = torch.randn(7, 5, 8)
    assert torch.equal(traced(patches), embed(patches))


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


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2, 6, 8), r"\(2, 6, 8\): 6 tokens where 5 are expected"),  # cls is there already
        ((2, 1, 8), r"1 tokens where 5"),  # this would broadcast in silence
        ((2, 5, 1), r"width 1 where 8"),  # so would this
        ((5, 8), r"\(5, 8\); give the axes \(B, N, D\)"),
    ],
)
def test_tokens_of_another_number_or_width_are_refused(shape, message):
    with pytest.raises(ValueError, match=message):
        TokenEmbedding(5, 8)(torch.zeros(shape))


@pytest.mark.parametrize("name", ["num_patches", "embed_dim"])
@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (4.0, TypeError)])
def test_a_bad_size_is_refused_by_name(name, value, error):
    with pytest.raises(error, match=name):
        TokenEmbedding(**({"num_patches": 5, "embed_dim": 8} | {name: value}))


def test_a_bad_dropout_is_refused_by_name():
    with pytest.raises(ValueError, match="dropout"):
        TokenEmbedding(5, 8, dropout=1.0)
