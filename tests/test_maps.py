"""vit_steps.maps: against loops, against cases worked out by hand, and on the stored ViT."""

import math

import numpy as np
import pytest
import torch
from helpers import close
from hypothesis import given, settings
from hypothesis import strategies as st

from vit_steps import ViT, ViTConfig, maps
from vit_steps.variants import EinopsViT, FaceConfig, face_vit

QUICK = settings(deadline=None, max_examples=30, derandomize=True, database=None)
SIZES = dict(patch_size=4, num_classes=5, embed_dim=24, depth=3, num_heads=2, in_channels=2)


def some_attention(depth=3, b=2, h=2, n=7):
    """Weights of several blocks: positive, rows sum to 1, far from even."""
    return [(2 * torch.randn(b, h, n, n)).softmax(dim=-1) for _ in range(depth)]


def small_vit(image_size=(8, 12), kind=ViT, **changes):
    """A ViT whose images are 2×3 patches, with weights large enough for its answers to differ."""
    model = kind(ViTConfig(image_size=image_size, **{**SIZES, **changes})).eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.add_(0.2 * torch.randn_like(weights))
    return model


# Rollout -----------------------------------------------------------------------------------------


def test_rollout_is_what_reaches_each_token_half_of_it_past_each_block():
    attention = some_attention()
    for image, found in enumerate(maps.rollout(attention)):
        flow = torch.eye(7)
        for weights in attention:
            flow = (sum(weights[image]) / 2 + torch.eye(7)) / 2 @ flow
        close(found, flow)


def test_rollout_brings_rows_that_do_not_sum_to_one_back_to_one():
    attention = [0.5 * weights for weights in some_attention()]
    close(maps.rollout(attention).sum(-1), torch.ones(2, 7))


def test_rollout_takes_a_tuple_doubles_and_blocks_with_other_head_counts():
    attention = (*some_attention(2, h=2), *some_attention(1, h=3))
    doubled = [weights.double() for weights in attention]
    assert maps.rollout(doubled).dtype == torch.float64
    close(maps.rollout(doubled).float(), maps.rollout(attention))


# Maps of cls -------------------------------------------------------------------------------------


def test_cls_map_is_row_0_without_cls_as_the_patches_lie():
    weights = torch.arange(49.0).reshape(1, 1, 7, 7)
    assert maps.cls_map(weights, (2, 3))[0, 0].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert maps.cls_map(weights, (3, 2))[0, 0].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert maps.cls_map(torch.rand(10, 10), 3).shape == (3, 3)
    assert maps.cls_map(torch.rand(4, 5, 2, 10, 10), 3).shape == (4, 5, 2, 3, 3)


# Distance ----------------------------------------------------------------------------------------


def distance_by_loop(weights, rows, cols, size):
    """Of one head (N, N): the mean over patches of the mean distance, weighted."""
    means = []
    for i in range(rows * cols):
        total = given_away = 0.0
        for j in range(rows * cols):
            apart = size * math.hypot(i // cols - j // cols, i % cols - j % cols)
            total += weights[1 + i, 1 + j].item() * apart
            given_away += weights[1 + i, 1 + j].item()
        means.append(total / given_away)
    return sum(means) / len(means)


@pytest.mark.parametrize(("rows", "cols"), [(2, 3), (3, 2), (1, 5), (4, 4), (1, 1)])
def test_attention_distance_equals_a_loop(rows, cols):
    attention = some_attention(2, b=3, h=2, n=1 + rows * cols)
    distances = maps.attention_distance(attention, (rows, cols), 8)
    for layer, weights in enumerate(attention):
        for head in range(2):
            loops = [distance_by_loop(weights[b, head], rows, cols, 8) for b in range(3)]
            assert distances[layer, head].item() == pytest.approx(sum(loops) / 3, abs=1e-4)


@QUICK
@given(rows=st.integers(1, 20), cols=st.integers(1, 20), size=st.integers(1, 40))
def test_distances_of_patches_are_the_nearest_floats_to_the_true_ones(rows, cols, size):
    places = [(r * size, c * size) for r in range(rows) for c in range(cols)]
    expected = torch.tensor([[math.dist(a, b) for b in places] for a in places])
    assert torch.equal(maps.patch_distances((rows, cols), size), expected)


# Tokens in few directions ------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(20, 6), (6, 20), (9, 9)])
def test_pca_equals_numpys_eigenvectors_up_to_sign(shape):
    x = torch.randn(shape) * torch.linspace(1, 5, shape[1])
    values, vectors = np.linalg.eigh(np.cov(x.double().numpy(), rowvar=False))
    first = torch.from_numpy(vectors[:, values.argsort()[::-1][:4]].copy()).float()
    coordinates = maps.token_pca(x[None], 4)[0]
    close(coordinates.abs(), ((x - x.mean(dim=0)) @ first).abs(), atol=1e-4)


def test_pca_finds_the_one_direction_along_which_points_lie():
    x = torch.linspace(-1, 1, 9)[:, None] * torch.tensor([[3.0, -4.0]]) + 7
    wanted = torch.stack([torch.linspace(5, -5, 9), torch.zeros(9)], dim=1)
    close(maps.token_pca(x[None], 2)[0], wanted)  # along (-0.6, 0.8): the largest number positive


def test_token_pca_is_that_of_all_tokens_of_the_batch():
    tokens = torch.randn(3, 6, 8)
    coordinates = maps.token_pca(tokens, 3)
    assert coordinates.shape == (3, 6, 3)
    close(coordinates.flatten(0, 1), maps.token_pca(tokens.flatten(0, 1)[None], 3)[0])
    assert torch.all(coordinates.std((0, 1)).diff() <= 0)


# Where a thing stands ----------------------------------------------------------------------------


def test_touched_equals_a_loop_over_pixels():
    places = torch.tensor([[0, 0], [4, 8], [3, 5], [7, 1], [1, 11], [0, 12]])
    found = maps.touched(places, 5, (3, 4), 4)
    for (top, left), patches in zip(places.tolist(), found, strict=True):
        canvas = torch.zeros(3 * 4, 4 * 4)
        canvas[top : top + 5, left : left + 5] = 1
        by_loop = canvas.unfold(0, 4, 4).unfold(1, 4, 4).sum((-1, -2)) > 0
        assert torch.equal(patches, by_loop)


# Covering ----------------------------------------------------------------------------------------


def test_cover_paints_whole_patches_and_nothing_else():
    images = torch.randn(2, 2, 8, 12)
    before = images.clone()
    hidden = torch.zeros(2, 2, 3, dtype=torch.bool)
    hidden[0, 1, 2] = hidden[1, 0, 0] = True
    covered = maps.cover(images, hidden, 4, fill=-1.0)
    assert covered[0, :, 4:, 8:].eq(-1).all()
    assert covered[1, :, :4, :4].eq(-1).all()
    assert (covered != images).sum() == 2 * 2 * 16
    assert torch.equal(images, before)


def test_deletion_equals_a_loop():
    model, images = small_vit(), torch.randn(8, 2, 8, 12)
    labels = model(images).argmax(dim=1).roll(0)
    labels[0] = (labels[0] + 1) % 5
    order = torch.stack([torch.randperm(6) for _ in range(8)])
    curve = maps.deletion(model, images, labels, order, steps=3, fill=0.5)
    wanted = []
    for covered in (0, 2, 4, 6):
        right = 0
        for i in range(8):
            image = images[i].clone()
            for patch in order[i, :covered].tolist():
                top, left = patch // 3 * 4, patch % 3 * 4
                image[:, top : top + 4, left : left + 4] = 0.5
            right += (model(image[None]).argmax() == labels[i]).item()
        wanted.append(right / 8)
    assert curve.tolist() == pytest.approx(wanted)
    assert curve[0] == 7 / 8


@pytest.mark.parametrize("steps", [1, 4, 5])
def test_deletion_takes_any_number_of_steps_up_to_one_a_patch(steps):
    given = small_vit(), torch.randn(5, 2, 8, 12), torch.zeros(5).long()
    whole, curve = (maps.deletion(*given, torch.arange(6).expand(5, 6), n) for n in (6, steps))
    assert curve.tolist() == [whole[step * 6 // steps].item() for step in range(steps + 1)]
    assert not curve.requires_grad


def test_the_area_is_the_mean_height():
    assert maps.area_under(torch.ones(5)) == 1
    assert maps.area_under(torch.linspace(1, 0, 9)) == pytest.approx(0.5)
    assert maps.area_under(torch.tensor([1.0, 0.0, 0.0])) == 0.25
    assert maps.area_under(torch.tensor([1.0, 0.5, 0.0])) == 0.5


# Gradients ---------------------------------------------------------------------------------------


def test_gradient_map_equals_small_steps():
    model, images, labels = small_vit().double(), torch.randn(3, 2, 8, 12).double(), [0, 3, 4]
    found = maps.gradient_map(model, images, torch.tensor(labels), fill=0.3)
    assert found.shape == (3, 2, 3)
    for i, label in enumerate(labels):
        for patch in range(6):
            top, left = patch // 3 * 4, patch % 3 * 4
            step = torch.zeros_like(images[i])
            window = (slice(None), slice(top, top + 4), slice(left, left + 4))
            step[window] = 1e-6 * (images[i][window] - 0.3)
            with torch.no_grad():
                up, down = (model((images[i] + sign * step)[None])[0, label] for sign in (1, -1))
            assert found[i].flatten()[patch].item() == pytest.approx(
                ((up - down) / 2e-6).item(), abs=1e-6
            )


def test_gradient_map_works_on_frozen_models_without_gradients_and_leaves_no_trace():
    model, images = small_vit(), torch.randn(3, 2, 8, 12)
    labels = torch.tensor([0, 3, 4])
    wanted = maps.gradient_map(model, images, labels)
    assert all(weights.grad is None for weights in model.parameters())
    model.requires_grad_(False)
    with torch.no_grad():
        found = maps.gradient_map(model, images, labels)
    assert torch.equal(found, wanted)
    assert images.grad is None
    assert not images.requires_grad
    assert not found.requires_grad


def test_what_equals_the_fill_says_nothing():
    images = torch.randn(2, 2, 8, 12)
    images[:, :, :4, :4] = -1.0
    found = maps.gradient_map(small_vit(), images, torch.tensor([0, 1]), fill=-1.0)
    assert found[:, 0, 0].eq(0).all()
    assert found[:, 1:].ne(0).all()


# Without gradients -------------------------------------------------------------------------------

USES = {
    "rollout": lambda g: maps.rollout(g["attention"]),
    "cls_map": lambda g: maps.cls_map(g["attention"][0], (2, 3)),
    "patch_distances": lambda g: maps.patch_distances((2, 3), 4),
    "attention_distance": lambda g: maps.attention_distance(g["attention"], (2, 3), 4),
    "token_pca": lambda g: maps.token_pca(g["tokens"], 2),
    "touched": lambda g: maps.touched(g["places"], 3, (2, 3), 4),
    "blinded": lambda g: maps.blinded(g["model"], g["images"], g["images"][:, 0, ::4, ::4] > 0),
    "cover": lambda g: maps.cover(g["images"], g["images"][:, 0, ::4, ::4] > 0, 4),
    "gradient_map": lambda g: maps.gradient_map(g["model"], g["images"], g["labels"]),
    "deletion": lambda g: maps.deletion(g["model"], g["images"], g["labels"], g["order"], 3),
    "area_under": lambda g: maps.area_under(g["tokens"][0, 0]),
}


def all_inputs():
    torch.manual_seed(0)
    return dict(
        model=small_vit(),
        attention=some_attention(),
        images=torch.randn(2, 2, 8, 12),
        labels=torch.tensor([0, 3]),
        tokens=torch.randn(2, 7, 8),
        places=torch.tensor([[0, 1], [2, 3]]),
        order=torch.arange(6).expand(2, 6).clone(),
    )


def test_every_public_name_is_tried_without_gradients():
    assert set(USES) == set(maps.__all__)


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_the_same_comes_out_without_gradients(name, mode):
    """Whether the call, or the making of what it is given, or both stand under that mode."""
    wanted = USES[name](all_inputs())
    outside = all_inputs()
    with mode():
        inside = all_inputs()
        results = [USES[name](outside), USES[name](inside)]
    results.append(USES[name](inside))
    for found in results:
        torch.testing.assert_close(found, wanted, atol=0, rtol=0)


# Errors ------------------------------------------------------------------------------------------

WEIGHTS = torch.full((1, 2, 5, 5), 0.2)
ORDER = torch.arange(6).expand(2, 6)
IMAGES, LABELS = torch.zeros(2, 2, 8, 12), torch.zeros(2).long()


def delete(**changes):
    given = dict(images=IMAGES, labels=LABELS, order=ORDER, steps=3)
    return maps.deletion(small_vit(), **{**given, **changes})


BAD = [
    (lambda: maps.rollout(WEIGHTS), TypeError, "attention is a Tensor; give the list"),
    (lambda: maps.rollout([]), ValueError, "empty list"),
    (lambda: maps.rollout([WEIGHTS[0]]), ValueError, r"give the axes \(B, h, N, N\)"),
    (lambda: maps.rollout([WEIGHTS.long()]), TypeError, "not floats"),
    (lambda: maps.rollout([WEIGHTS[:, :, :3]]), ValueError, "queries, then keys"),
    (lambda: maps.rollout([WEIGHTS, WEIGHTS[..., :4, :4]]), ValueError, "one model and one batch"),
    (lambda: maps.cls_map(WEIGHTS, 3), ValueError, "5 tokens where the grid has 9 patches"),
    (lambda: maps.attention_distance([WEIGHTS], (2, 3), 4), ValueError, "6 patches"),
    (lambda: maps.token_pca(torch.zeros(2, 2, 3), 4), ValueError, "4 tokens 3 wide have no 4 comp"),
    (lambda: maps.token_pca(torch.zeros(1, 4, 3).long(), 1), TypeError, "not floats"),
    (lambda: maps.token_pca(torch.zeros(4, 3), 2), ValueError, "axes"),
    (lambda: maps.touched(torch.zeros(2, 3), 8, 4, 4), ValueError, r"give \(B, 2\)"),
    (lambda: maps.cover(IMAGES, torch.zeros(2, 2, 3), 4), TypeError, "booleans"),
    (lambda: maps.cover(IMAGES, torch.ones(2, 3, 2).bool(), 4), ValueError, r"give \(2, 2, 3\)"),
    (lambda: maps.cover(IMAGES, torch.ones(2, 2, 3).bool(), 3), ValueError, "height is not a mult"),
    (lambda: delete(order=ORDER[:, :5]), ValueError, r"give \(2, 6\)"),
    (lambda: delete(order=torch.zeros(2, 6).long()), ValueError, "all the patches' numbers"),
    (lambda: delete(steps=7), ValueError, "there are 6 patches"),
    (lambda: delete(labels=LABELS[:1]), ValueError, "2 images need"),
    (lambda: delete(labels=LABELS + 5), ValueError, "the numbers 0 to 4"),
    (lambda: delete(images=IMAGES[0]), ValueError, "batch axis"),
    (lambda: maps.gradient_map(small_vit(), IMAGES, LABELS - 1), ValueError, "the numbers 0 to 4"),
    (lambda: maps.gradient_map(small_vit(), IMAGES[:, :1], LABELS), ValueError, "1 channels"),
]


@pytest.mark.parametrize(("wrong", "kind", "message"), BAD)
def test_a_wrong_input_is_told_what_is_wrong(wrong, kind, message):
    with pytest.raises(kind, match=message):
        wrong()


# Blinding ----------------------------------------------------------------------------------------


def cls_by_hand(block, x, hidden):
    """The cls token after a block in which it attends only to what is left, image by image."""
    rows = []
    for tokens, dark in zip(block.norm1(x), hidden.flatten(1), strict=True):
        seen = torch.cat([tokens[:1], tokens[1:][~dark]])  # as if the hidden ones were not there
        rows.append(block.attn(seen[None])[0, 0])
    cls = x[:, 0] + torch.stack(rows)
    return cls + block.mlp(block.norm2(cls)[:, None])[:, 0]


def test_blind_cls_attends_as_if_the_hidden_patches_were_not_there():
    model, images = small_vit(depth=1), torch.randn(3, 2, 8, 12)
    hidden = torch.rand(3, 2, 3) < 0.5
    with torch.no_grad():
        x = model.tokens(model.patch_embed(images))
        expected = model.head(model.norm(cls_by_hand(model.blocks[0], x, hidden)))
        close(maps.blinded(model, images, hidden), expected)


@pytest.mark.parametrize(("kind", "pool"), [(ViT, "cls"), (ViT, "mean"), (EinopsViT, "mean")])
def test_blind_to_nothing_is_the_model_and_in_no_block_too(kind, pool):
    model, images = small_vit(kind=kind, pool=pool), torch.randn(2, 2, 8, 12)
    nothing, everything = torch.zeros(2, 2, 3).bool(), torch.ones(2, 2, 3).bool()
    with torch.no_grad():
        close(maps.blinded(model, images, nothing), model(images))
        assert torch.equal(maps.blinded(model, images, everything, blocks=[]), model(images))


class OwnForward(ViT):
    def forward(self, images, return_attention=False):
        return self.head(self.features(images)[:, 1])


@pytest.mark.parametrize(
    "make", [lambda: small_vit(kind=OwnForward), lambda: face_vit(FaceConfig(8, 4, 2, depth=1))]
)
def test_blinding_takes_no_model_that_computes_in_its_own_way(make):
    with pytest.raises(TypeError, match=r"model is a .*; give a vit_steps\.ViT"):
        maps.blinded(make(), torch.randn(2, 2, 8, 8), torch.zeros(2, 2, 2).bool())


def test_blind_to_everything_sees_no_picture_unless_it_looked_before():
    model, images = small_vit(), torch.randn(2, 2, 8, 12)
    everything = torch.ones(2, 2, 3).bool()
    with torch.no_grad():
        one, other = maps.blinded(model, images, everything)
        close(one, other)
        one, other = maps.blinded(model, images, everything, blocks=[1, 2])
        assert (one - other).abs().max() > 1e-3


def test_only_cls_is_blind():
    """What it cannot see in the second block it still hears from the others, who saw it."""
    model, images = small_vit(), torch.randn(1, 2, 8, 12)
    hidden = torch.zeros(1, 2, 3).bool()
    hidden[0, 1, 2] = True
    other = images.clone()
    other[..., 4:, 8:] += 1  # the hidden patch alone
    with torch.no_grad():
        a, b = (maps.blinded(model, x, hidden) for x in (images, other))
    assert (a - b).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("hidden", "blocks", "error", "message"),
    [
        (torch.ones(2, 2, 3), None, TypeError, "give booleans"),
        (torch.ones(2, 3, 3).bool(), None, ValueError, "each of the 6 patches of 2 images"),
        (torch.ones(2, 3, 2).bool(), None, ValueError, r"give \(2, 2, 3\)"),  # 6, but lying
        (torch.ones(2, 6).bool(), None, ValueError, "rows"),
        (torch.ones(2, 2, 3).bool(), [3], ValueError, "no block 3; the model has blocks 0 to 2"),
    ],
)
def test_blinding_refuses(hidden, blocks, error, message):
    with pytest.raises(error, match=message):
        maps.blinded(small_vit(), torch.randn(2, 2, 8, 12), hidden, blocks)
