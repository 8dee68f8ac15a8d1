"""vit_steps.attention: against torch's own, function and module, both ways."""

import pytest
import torch
from helpers import close, mask_of, shake
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

from vit_steps import MultiHeadAttention, scaled_dot_product_attention

small = st.integers(1, 4)


def qkv(b=2, h=3, n=5, d=4, **options):
    return [torch.randn(b, h, n, d, **options) for _ in range(3)]


def some_mask(*shape):
    """Random places to look, each query at itself at least."""
    mask = torch.rand(shape) < 0.5
    return mask | torch.eye(shape[-2], shape[-1], dtype=torch.bool)


# The equation ------------------------------------------------------------------------------------


@given(b=small, h=small, n=st.integers(1, 9), d=st.integers(1, 9), masked=st.booleans())
def test_attention_equals_torchs_own_and_its_weights_are_those_that_mix(b, h, n, d, masked):
    q, k, v = qkv(b, h, n, d)
    mask = some_mask(b, h, n, n) if masked else None
    mixed, weights = scaled_dot_product_attention(q, k, v, mask)
    close(mixed, F.scaled_dot_product_attention(q, k, v, attn_mask=mask))
    each = torch.eye(n).expand(b, h, n, n)  # values that show the weights themselves
    close(weights, F.scaled_dot_product_attention(q, k, each, attn_mask=mask))


def test_large_scores_do_not_overflow_and_there_may_be_fewer_queries_than_keys():
    q, k, v = qkv()
    mixed, weights = scaled_dot_product_attention(q[:, :, :2] * 1e4, k * 1e4, v)
    assert weights.shape == (2, 3, 2, 5)
    close(weights.sum(-1), torch.ones(2, 3, 2))
    close(mixed, F.scaled_dot_product_attention(q * 1e4, k * 1e4, v)[:, :, :2])


# Dropout -----------------------------------------------------------------------------------------


def test_dropout_falls_on_a_share_of_the_weights_but_not_on_those_that_are_returned():
    q, k = torch.zeros(1, 1, 100, 2), torch.zeros(1, 1, 100, 2)
    v = torch.eye(100)[None, None]  # so that the mixed values are the weights that were used
    used, weights = scaled_dot_product_attention(q, k, v, dropout=0.25)
    close(weights, torch.full((1, 1, 100, 100), 0.01))
    assert (used == 0).float().mean().item() == pytest.approx(0.25, abs=0.02)
    close(used[used > 0], torch.tensor(0.01 / 0.75).expand(int((used > 0).sum())))


# What is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("q", "k", "v"),
    [
        ((2, 3, 5, 4), (2, 1, 5, 4), (2, 1, 5, 4)),  # these two would broadcast in silence
        ((2, 3, 5, 4), (2, 3, 5, 4), (1, 3, 5, 4)),
        ((2, 3, 5, 4), (2, 3, 5, 6), (2, 3, 5, 4)),
        ((2, 3, 5, 4), (2, 3, 6, 4), (2, 3, 5, 4)),
        ((2, 3, 5, 4), (2, 3, 5, 4), (2, 3, 6, 4)),
        ((4,), (4,), (4,)),
        ((1, 1, 2, 0), (1, 1, 2, 0), (1, 1, 2, 0)),  # 0 / 0 would be NaN
    ],
)
def test_shapes_that_do_not_belong_together_are_refused(q, k, v):
    with pytest.raises(ValueError, match=r"q is.*k is.*v is"):
        scaled_dot_product_attention(torch.zeros(q), torch.zeros(k), torch.zeros(v))


def test_a_query_that_may_look_nowhere_is_refused_on_the_cpu():
    mask = blind_row().expand(2, 3, 7, 7)
    with pytest.raises(ValueError, match="may look nowhere; let it see itself"):
        scaled_dot_product_attention(*qkv(n=7), mask)
    with pytest.raises(ValueError, match="may look nowhere; let it see itself"):
        MultiHeadAttention(12, 3)(torch.zeros(2, 7, 12), mask)


def blind_row():
    mask = torch.ones(7, 7, dtype=torch.bool)
    mask[3] = False
    return mask


WAYS = r"mask\[None, None\] of one table .*\(B, 1, 1, N\) for tokens .*\(1, h, N, N\) for a table"


@pytest.mark.parametrize(
    ("shape", "b", "h"),
    [
        *[((4, 4), 2, 3), ((5, 4), 2, 3), ((3, 3, 5, 5), 2, 3), ((2, 2, 5, 5), 2, 3)],
        *[((7, 1, 5, 5), 1, 1), ((1, 3, 5, 5), 1, 1), ((1, 1, 1, 5, 5), 1, 1)],  # would stretch it
        # tables of heads, or of samples? of queries and keys, or of samples and keys?
        *[((3, 5, 5), 2, 3), ((3, 5, 5), 3, 3), ((3, 1, 5), 3, 3), ((1, 5, 5), 2, 3)],
        *[((5, 5), 5, 3), ((2, 5), 2, 3), ((5, 1), 5, 3), ((5,), 2, 3), ((), 2, 3)],
    ],
)
def test_a_mask_that_does_not_fit_or_could_mean_two_things_is_refused(shape, b, h):
    with pytest.raises(ValueError, match=WAYS):
        scaled_dot_product_attention(*qkv(b, h), torch.ones(shape, dtype=torch.bool))


def test_a_table_is_one_for_all_where_it_cannot_be_anything_else():
    mask = some_mask(5, 5)
    for shape in ((1, 3, 5, 4), (5, 4)):  # one sample, and neither samples nor heads
        q, k, v = (torch.randn(shape) for _ in range(3))
        wanted = F.scaled_dot_product_attention(q, k, v, mask)
        close(scaled_dot_product_attention(q, k, v, mask)[0], wanted)


# MultiHeadAttention ------------------------------------------------------------------------------


def the_same_in_torch(ours, heads, batch_first=True):
    """nn.MultiheadAttention with our weights: its rows, too, stand in the order (qkv h d)."""
    state, dim = ours.state_dict(), ours.proj.in_features
    theirs = nn.MultiheadAttention(dim, heads, batch_first=batch_first)
    weights = {"in_proj_weight": state["qkv.weight"], "out_proj.weight": state["proj.weight"]}
    weights["in_proj_bias"] = state.get("qkv.bias", torch.zeros(3 * dim))
    theirs.load_state_dict(weights | {"out_proj.bias": state["proj.bias"]})
    return theirs


@pytest.mark.parametrize(("dim", "heads", "bias"), [(12, 1, True), (12, 12, True), (64, 8, False)])
def test_the_module_equals_torchs_multihead_attention(dim, heads, bias):
    ours, x = shake(MultiHeadAttention(dim, heads, qkv_bias=bias)), torch.randn(2, 7, dim)
    theirs, mask = the_same_in_torch(ours, heads), some_mask(7, 7)
    # torch's True forbids, ours allows
    expected = theirs(x, x, x, attn_mask=~mask, average_attn_weights=False)
    assert ours(x, mask).shape == (2, 7, dim)
    close(ours(x, mask), expected[0])
    close(ours(x, mask, return_attention=True), expected)


# Two ways, one result ----------------------------------------------------------------------------

# None, and masks of weights (B, h, N, N) = (2, 3, 7, 7)
MASKS = [None, (1, 7), (7, 7), (1, 1, 7, 7), (2, 1, 1, 7), (2, 1, 7, 7), (1, 3, 7, 7), (2, 3, 7, 7)]
both_ways = pytest.mark.parametrize("return_attention", [False, True], ids=["fused", "explicit"])


def gradients(out, module, x):
    """Of one and the same loss of `out`, at the input and at every parameter that it reaches."""
    loss = (out * torch.linspace(-1, 1, out.numel()).view_as(out)).sum()
    inputs = [x, *module.parameters()]
    return torch.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True)


@pytest.mark.parametrize("shape", MASKS, ids=str)
def test_fused_and_explicit_attention_have_equal_values_and_gradients(shape):
    module = shake(MultiHeadAttention(12, 3))
    x, mask = torch.randn(2, 7, 12, requires_grad=True), mask_of(shape)
    fused = module(x, mask)
    explicit, _ = module(x, mask, return_attention=True)
    close(fused, explicit)
    close(gradients(fused, module, x), gradients(explicit, module, x))


# Dropout in the module ---------------------------------------------------------------------------


def tokens_of(module, x, return_attention, mask=None):
    out = module(x, mask, return_attention)
    return out[0] if return_attention else out


@torch.no_grad()
def test_dropout_of_the_weights_has_the_same_mean_and_spread_in_both_ways():
    module, x = shake(MultiHeadAttention(8, 2, dropout=0.3)), torch.randn(1, 5, 8)
    module.dropout.forward = lambda x: x  # none on the output
    mask = some_mask(5, 5)
    expected = module.eval()(x, mask)[0]
    many = x.expand(20_000, -1, -1)  # each image has its own draw
    fused, explicit = (tokens_of(module.train(), many, way, mask) for way in (False, True))
    close(fused.mean(0), expected, atol=0.015)
    close(explicit.mean(0), expected, atol=0.015)
    torch.testing.assert_close(fused.std(0), explicit.std(0), rtol=0.03, atol=0)
    assert fused.std(0).max() > 0.05  # so that equal means are not those of no dropout at all


@both_ways
def test_dropout_falls_on_the_output_too_and_in_training_alone(return_attention):
    module, x = MultiHeadAttention(32, 4, dropout=0.5), torch.randn(2, 40, 32)
    zeros = tokens_of(module.train(), x, return_attention) == 0
    assert zeros.float().mean().item() == pytest.approx(0.5, abs=0.05)
    without = MultiHeadAttention(32, 4)
    without.load_state_dict(module.state_dict())
    close(tokens_of(module.eval(), x, return_attention), without(x))


@both_ways
def test_a_masks_type_and_shape_are_looked_at_where_there_are_no_values_too(return_attention):
    with torch.device("meta"):
        module, x = MultiHeadAttention(12, 3), torch.zeros(2, 7, 12)
    for mask in (torch.ones(7, 7, device="meta"), [[True]]):
        with pytest.raises(TypeError, match=r"mask holds .*booleans"):
            module(x, mask, return_attention)
    with pytest.raises(ValueError, match=WAYS):
        module(x, torch.ones(3, 7, 7, dtype=torch.bool, device="meta"), return_attention)


@both_ways
def test_a_masks_content_is_not_looked_at_where_one_would_have_to_wait(return_attention):
    with torch.device("meta"):
        module, x = MultiHeadAttention(12, 3), torch.zeros(2, 7, 12)
    module(x, blind_row().to("meta"), return_attention)  # no values there at all
    module, x = MultiHeadAttention(12, 3), torch.zeros(2, 7, 12)
    traced = torch.compile(module, fullgraph=True, backend="eager")  # refuses to wait for a value
    traced(x, blind_row(), return_attention)
    mask = some_mask(7, 7)
    close(traced(x, mask, return_attention), module(x, mask, return_attention))
    with FakeTensorMode(allow_non_fake_inputs=True):
        module(x, mask, return_attention)
        MultiHeadAttention(12, 3)(torch.zeros(2, 7, 12), torch.ones(7, 7).bool(), return_attention)


@both_ways
def test_a_batch_of_any_size_is_exported_with_a_table_of_queries_and_keys(return_attention):
    module, mask = MultiHeadAttention(12, 3), some_mask(7, 7)
    given = torch.zeros(2, 7, 12), mask, return_attention
    shapes = {0: torch.export.Dim("batch", min=1, max=64)}, None, None
    traced = torch.export.export(module, given, dynamic_shapes=shapes).module()
    x = torch.randn(7, 7, 12)
    close(
        tokens_of(traced, x, return_attention, mask),
        tokens_of(module, x, return_attention, mask[None, None]),
    )


@both_ways
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_attention_with_a_mask_can_be_mapped_over_a_further_axis(return_attention):
    module, x = MultiHeadAttention(12, 3), torch.randn(4, 2, 7, 12)
    masks = some_mask(4, 2, 1, 1, 7)

    def run(x, mask):
        return tokens_of(module, x, return_attention, mask)

    wanted = torch.stack([run(*given) for given in zip(x, masks, strict=True)])
    close(torch.vmap(run)(x, masks), wanted)
