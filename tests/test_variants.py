"""vit_steps.variants: three ViTs of other people and their pieces, by number and known fault."""

import copy
from dataclasses import FrozenInstanceError, replace

import pytest
import torch
from einops import rearrange
from helpers import close, mask_of, shake
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

from vit_steps import MultiHeadAttention, ViT
from vit_steps.training.data import digits
from vit_steps.training.loop import decay_groups
from vit_steps.variants import (
    EINOPS,
    FACE,
    PROJECT,
    DropPath,
    FaceConfig,
    Float32Attention,
    SeparateAttention,
    drop_path_rates,
    einops_vit,
    face_vit,
    fuse_qkv,
    kept_count,
    project_vit,
    random_masking,
    token_norm,
    unmask,
)

SMALL = dict(image_size=8, patch_size=2, in_channels=1, embed_dim=24, depth=2)
SMALL_A = replace(EINOPS, **SMALL, num_classes=10, num_heads=8)
SMALL_B = replace(PROJECT, **SMALL, num_classes=10)
SMALL_C = FaceConfig(**SMALL, num_features=10, num_heads=3)
MASKED = replace(SMALL_C, mask_ratio=0.25)
BATCH = replace(SMALL_C, norm="batch", mask_ratio=0.0)
SYSTEMS = {
    "A fused": lambda: einops_vit(SMALL_A),
    "A separate": lambda: einops_vit(SMALL_A, fused=False),
    "B": lambda: project_vit(SMALL_B),
    "C": lambda: face_vit(SMALL_C),
    "C batch": lambda: face_vit(BATCH),
    "C checkpointing": lambda: face_vit(replace(SMALL_C, checkpointing=True)),
}


@pytest.fixture(params=SYSTEMS)
def model(request):
    return SYSTEMS[request.param]()


def count(module):
    return sum(p.numel() for p in module.parameters())


# Sizes -------------------------------------------------------------------------------------------


def on_paper(make, *arguments, **options):
    """A model without numbers: shapes alone."""
    with torch.device("meta"):
        return make(*arguments, **options)


def multiply_adds(model, size, **options):
    """Of one image, from a batch of two: a head in training wants no fewer."""
    images = torch.empty(2, 3, size, size, device="meta")
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(images, **options)
    return counter.get_total_flops() / 4


@pytest.mark.parametrize("fused", [True, False])
def test_a_has_its_parameters_and_multiply_adds(fused):
    model = on_paper(einops_vit, fused=fused)
    assert count(model) == 86_567_656
    # by the equation: torch has no count of fused attention on the CPU
    assert round(multiply_adds(model, 224, return_attention=True) / 1e9, 4) == 17.5638
    assert {block.attn.num_heads for block in model.blocks} == {8}
    assert {m.eps for m in model.modules() if isinstance(m, nn.LayerNorm)} == {1e-5}


def test_torchsummarys_total_of_a_misses_cls_and_positions():
    model = on_paper(einops_vit)
    leaves = [m for m in model.modules() if not list(m.children())]
    assert sum(count(leaf) for leaf in leaves) == 86_415_592
    assert count(model.tokens) == 86_567_656 - 86_415_592 == 152_064


def test_b_has_its_parameters_and_multiply_adds():
    model = on_paper(project_vit)
    assert count(model) == 107_831_272
    assert count(model.blocks) == 106_318_080
    assert round(multiply_adds(model, 224, return_attention=True) / 1e9, 4) == 21.9257
    assert {block.attn.num_heads for block in model.blocks} == {3}
    assert len(model.blocks) == 15
    assert {m.eps for m in model.modules() if isinstance(m, nn.LayerNorm)} == {1e-5}
    assert model.tokens.pos_embed.shape == (1, 197, 768)


def test_c_has_its_parameters_and_multiply_adds():
    model = on_paper(face_vit)
    assert count(model) == 115_330_256
    pieces = 590_592 + 37_632 + 768 + 12 * 7_085_568 + 1_536 + 29_672_912
    assert pieces == 115_330_256
    assert count(model.head) == 29_672_912
    assert [count(block) for block in model.blocks] == [7_085_568] * 12
    assert round(multiply_adds(model.eval(), 112) / 1e9, 4) == 4.2646
    assert round(multiply_adds(model.train(), 112) / 1e9, 4) == 3.8314


def test_c_with_batch_norm_has_its_parameters_and_multiply_adds():
    model = on_paper(face_vit, replace(FACE, norm="batch", mask_ratio=0.0))
    assert count(model) == 115_294_306 == 115_330_256 - 25 * (1_536 - 98)
    assert round(multiply_adds(model, 112) / 1e9, 4) == 4.2646


def test_cs_sizes_that_no_count_shows():
    model = on_paper(face_vit)
    assert {block.attn.num_heads for block in model.blocks} == {12}
    assert {type(block.mlp.act) for block in model.blocks} == {nn.ReLU6}
    assert {m.eps for m in model.head if isinstance(m, nn.BatchNorm1d)} == {2e-5}
    assert all(m.bias is None for m in model.head if isinstance(m, nn.Linear))
    assert all(block.attn.qkv.bias is None for block in model.blocks)
    assert kept_count(49, FACE.mask_ratio) == 44
    assert [b.drop_path.rate for b in model.blocks] == drop_path_rates(FACE.drop_path, 12)


# Separate and fused q, k, v ----------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [None, (7, 7), (2, 1, 1, 7)])
def test_separate_and_fused_attention_give_the_same_numbers(bias, shape):
    separate = shake(SeparateAttention(24, 3, bias))
    fused, x, mask = MultiHeadAttention(24, 3, bias), torch.randn(2, 7, 24), mask_of(shape)
    q = separate.qkv
    fused.qkv.load_state_dict(fuse_qkv(q.queries, q.keys, q.values, 3))
    fused.proj.load_state_dict(separate.proj.state_dict())
    close(separate(x, mask), fused(x, mask))
    for one, other in zip(separate(x, mask, True), fused(x, mask, True), strict=True):
        close(one, other)


@pytest.mark.parametrize("bias", [True, False])
def test_the_three_row_orders(bias):
    linears = [shake(nn.Linear(24, 24, bias)) for _ in range(3)]
    x = torch.randn(2, 7, 24)
    wanted = torch.stack([rearrange(m(x), "b n (h d) -> b h n d", h=3) for m in linears])
    for order in ("qkv h d", "h d qkv", "h qkv d"):
        fused = nn.Linear(24, 72, bias)
        fused.load_state_dict(fuse_qkv(*linears, 3, order))
        got = rearrange(fused(x), f"b n ({order}) -> qkv b h n d", h=3, qkv=3)
        close(got, wanted)
        for other in {"qkv h d", "h d qkv", "h qkv d"} - {order}:
            wrong = rearrange(fused(x), f"b n ({other}) -> qkv b h n d", h=3, qkv=3)
            assert (wrong - wanted).abs().max() > 0.5  # equal shapes, other numbers


def carried_over(order):
    """System A, first separate, then fused with the same weights, and what they say to images."""
    separate, fused = shake(einops_vit(SMALL_A, fused=False)).eval(), einops_vit(SMALL_A).eval()
    state = separate.state_dict()
    for i, block in enumerate(separate.blocks):
        q = block.attn.qkv
        for name, rows in fuse_qkv(q.queries, q.keys, q.values, 8, order).items():
            state[f"blocks.{i}.attn.qkv.{name}"] = rows
    fused.load_state_dict({n: w for n, w in state.items() if n in fused.state_dict()})
    images = torch.randn(3, 1, 8, 8)
    return separate(images), fused(images)


def test_a_gives_the_same_logits_separate_and_fused():
    close(*carried_over("h d qkv"))


@pytest.mark.parametrize("order", ["qkv h d", "h qkv d"])
def test_a_swapped_row_order_loads_in_silence_and_differs(order):
    one, other = carried_over(order)
    assert (one - other).abs().max() > 0.01


@pytest.mark.parametrize(
    ("linears", "heads", "order", "match"),
    [
        ([(8, 8, True), (8, 8, True), (8, 8, False)], 2, "qkv h d", "alike"),
        ([(8, 8, True), (8, 4, True), (8, 8, True)], 2, "qkv h d", "alike"),
        ([(8, 8, True)] * 3, 3, "qkv h d", "3 heads"),
        ([(8, 8, True)] * 3, 2, "d h qkv", "order is 'd h qkv'"),
    ],
)
def test_fuse_refuses_what_does_not_fuse(linears, heads, order, match):
    with pytest.raises(ValueError, match=match):
        fuse_qkv(*(nn.Linear(*sizes) for sizes in linears), heads, order)


# DropPath ----------------------------------------------------------------------------------------


def test_drop_path_leaves_out_whole_samples_and_scales_the_others():
    drop, x = DropPath(0.25), torch.randn(4000, 3, 5)
    share = drop(x) / x
    close(share.amax((1, 2)), share.amin((1, 2)))  # one number a sample
    numbers = share[:, 0, 0]
    left_out = numbers.abs() < 1e-6
    close(numbers[~left_out], torch.full_like(numbers[~left_out], 4 / 3))
    assert left_out.float().mean().item() == pytest.approx(0.25, abs=0.03)
    assert share.mean().item() == pytest.approx(1, abs=0.03)  # the expectation stays


def test_drop_path_does_nothing_in_eval_or_at_rate_0():
    x = torch.randn(5, 3)
    assert DropPath(0.5).eval()(x) is x
    assert DropPath(0.0)(x) is x


def test_drop_path_in_a_block_leaves_the_residual():
    block = face_vit(SMALL_C).blocks[1].train()
    block.drop_path.rate = 1 - 1e-9  # as good as always
    x = torch.randn(3, 16, 24)
    assert torch.equal(block(x), x)


def test_the_schedule_is_a_straight_line():
    assert drop_path_rates(0.3, 4) == pytest.approx([0, 0.1, 0.2, 0.3])
    assert drop_path_rates(0.1, 12) == pytest.approx(torch.linspace(0, 0.1, 12).tolist())
    assert drop_path_rates(0.3, 1) == [0.0]


@pytest.mark.parametrize(
    ("rate", "error"), [(1.0, ValueError), (-0.1, ValueError), ("a", TypeError)]
)
def test_drop_path_refuses_other_rates(rate, error):
    with pytest.raises(error, match="rate"):
        DropPath(rate)


# Masking -----------------------------------------------------------------------------------------

RATIOS = [i / 100 for i in range(100)]


def test_the_count_is_exact_for_every_length_and_ratio():
    for length in range(1, 101):
        for hundredths, ratio in enumerate(RATIOS):
            wanted = (2 * length * (100 - hundredths) + 100) // 200  # whole numbers alone
            if wanted:
                assert kept_count(length, ratio) == wanted, (length, ratio)
            else:
                with pytest.raises(ValueError, match=f"none of {length} tokens"):
                    kept_count(length, ratio)


def test_the_counts_of_the_reference():
    assert (kept_count(49, 0.1), kept_count(49, 0.75)) == (44, 12)
    cases = {(10, 0.8): 2, (10, 0.9): 1, (100, 0.8): 20, (100, 0.9): 10}
    for (length, ratio), wanted in cases.items():
        assert kept_count(length, ratio) == wanted
        assert int(length * (1 - ratio)) == wanted - 1  # the published form
    assert kept_count(7, 0) == kept_count(7, 0.0) == 7


@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.25, 0.5, 0.75, 0.9])
def test_masking_keeps_so_many_of_each_sample(ratio):
    for length in (10, 16, 49, 100):
        x = torch.randn(3, length, 4)
        kept, order, mask = random_masking(x, ratio)
        count = kept_count(length, ratio)
        assert kept.shape == (3, count, 4)
        assert (~mask).sum(1).tolist() == [count] * 3
        assert order.sort(dim=1).values.equal(torch.arange(length).expand(3, -1))


@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.5, 0.9])
def test_the_round_trip_is_exact_and_gaps_get_the_mask_token_plus_their_position(ratio):
    x, token, positions = torch.randn(5, 49, 8), torch.randn(1, 1, 8), torch.randn(1, 49, 8)
    kept, order, mask = random_masking(x, ratio)
    assert torch.equal(unmask(kept, order, token)[mask], token.expand(5, 49, -1)[mask])
    back = unmask(kept, order, token, positions)
    assert torch.equal(back[~mask], x[~mask])
    assert torch.equal(back[mask], (token + positions).expand(5, -1, -1)[mask])


def test_without_positions_all_mask_tokens_are_the_same():
    x, token = torch.randn(5, 49, 8), torch.randn(1, 1, 8)
    kept, order, mask = random_masking(x, 0.5)
    alike = unmask(kept, order, token)[mask]
    assert len(alike.unique(dim=0)) == 1
    right = unmask(kept, order, token, torch.randn(1, 49, 8))[mask]
    assert len(right.unique(dim=0)) > 40


def test_each_sample_and_each_call_draws_anew_and_a_generator_repeats():
    x = torch.randn(8, 49, 2)
    masks = [random_masking(x, 0.5)[2] for _ in range(2)]
    assert len(torch.cat(masks).unique(dim=0)) == 16
    again = [random_masking(x, 0.5, torch.Generator().manual_seed(3))[2] for _ in range(2)]
    assert torch.equal(*again)


def test_each_place_is_left_out_equally_often():
    mask = random_masking(torch.zeros(20_000, 10, 1), 0.3)[2]
    close(mask.float().mean(0), torch.full((10,), 0.3), atol=0.02)


def test_gradients_reach_tokens_mask_token_and_positions():
    x = torch.randn(2, 9, 4, requires_grad=True)
    token, positions = (torch.randn(1, n, 4, requires_grad=True) for n in (1, 9))
    kept, order, mask = random_masking(x, 0.5)
    unmask(kept, order, token, positions).sum().backward()
    assert torch.equal(x.grad[..., 0], (~mask).float())
    assert torch.equal(positions.grad[0, :, 0], mask.float().sum(0))
    assert token.grad[0, 0].tolist() == [mask.sum().item()] * 4


def test_tokens_of_16_bits_come_back_with_16_bits():
    token, positions = torch.randn(1, 1, 8), torch.randn(1, 9, 8)
    kept, order, _ = random_masking(torch.randn(2, 9, 8).bfloat16(), 0.5)
    assert unmask(kept, order, token, positions).dtype == torch.bfloat16


@pytest.mark.parametrize(
    "shapes",
    [
        [(2, 4, 8), (1, 9), (1, 1, 8), (1, 9, 8)],  # an order for one sample would broadcast
        [(2, 10, 8), (2, 9), (1, 1, 8), (1, 9, 8)],
        [(2, 4, 8), (2, 9), (1, 1, 1), (1, 9, 8)],
        [(2, 4, 8), (2, 9), (1, 1, 8), (1, 1, 8)],  # one position for all
        [(2, 4, 8), (2, 9), (1, 1, 8), (1, 10, 8)],
        [(2, 4, 8), (2, 9, 1), (1, 1, 8), (1, 9, 8)],
        [(4, 8), (2, 9), (1, 1, 8), (1, 9, 8)],
    ],
)
def test_unmask_refuses_shapes_that_do_not_belong_together(shapes):
    kept, order, token, positions = (torch.zeros(s) for s in shapes)
    with pytest.raises(ValueError, match="give"):
        unmask(kept, order.long(), token, positions)


@pytest.mark.parametrize(
    ("ratio", "error"), [(1.0, ValueError), (-0.1, ValueError), (None, TypeError)]
)
def test_masking_refuses_other_ratios(ratio, error):
    with pytest.raises(error, match="ratio"):
        random_masking(torch.zeros(1, 9, 4), ratio)


def test_c_masks_in_training_alone_and_runs_its_blocks_on_the_kept():
    model, images, seen = face_vit(MASKED), torch.randn(2, 1, 8, 8), []
    model.blocks[0].register_forward_hook(lambda m, inputs, output: seen.append(output.shape[1]))
    model(images)
    model.eval()(images)
    assert seen == [12, 16]
    assert torch.equal(model(images), model(images))
    model.train()
    assert not torch.equal(model(images), model(images))


@torch.no_grad()
def test_cs_head_reads_the_mask_token_in_its_place_without_a_position():
    model, images, seen = face_vit(MASKED), torch.randn(4, 1, 8, 8), []
    model.head.register_forward_pre_hook(lambda m, inputs: seen.append(inputs[0]))
    model(images)
    tokens = seen[0].unflatten(1, (16, 24))
    gaps = (tokens == model.mask_token).all(-1)
    assert gaps.sum(1).tolist() == [4] * 4
    assert len(gaps.unique(dim=0)) > 1  # elsewhere in each picture
    # Where nothing is masked, each token stands where it stands in eval.
    for block in model.blocks:
        block.drop_path.rate = 0.0
    model.mask_token.zero_()
    model.blocks[0].forward = model.blocks[1].forward = lambda x: x
    model(images)
    model.eval()(images)
    masked, whole = (x.unflatten(1, (16, 24)) for x in seen[1:])
    gaps = (masked == 0).all(-1)
    close(masked[~gaps], whole[~gaps])


# Norms -------------------------------------------------------------------------------------------


def test_layer_norm_is_of_a_token_and_batch_norm_of_a_place():
    x = torch.randn(6, 16, 24) * 3 + 2
    layer, batch = token_norm("layer", 24, 16)(x), token_norm("batch", 24, 16)(x)
    close(layer.mean(2), torch.zeros(6, 16))
    close(batch.mean((0, 2)), torch.zeros(16))
    assert batch.mean(2).abs().max() > 0.1
    assert count(token_norm("batch", 768, 49)) == 98


def test_an_image_alters_another_under_batch_norm_alone():
    for config, altered in ((replace(SMALL_C, mask_ratio=0.0), False), (BATCH, True)):
        model = face_vit(replace(config, drop_path=0.0))
        model.head = nn.Identity()  # it has batch norms of its own
        images = torch.randn(3, 1, 8, 8)
        other = torch.cat([images[:2], images[2:] + 1])
        assert torch.allclose(model(images)[:2], model(other)[:2], atol=1e-5) is not altered
        close(model.eval()(images)[:2], model(other)[:2])


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        (dict(norm="batch"), "16 means.*masking leaves 14.*mask_ratio=0.0"),
        (dict(norm="batch", mask_ratio=0.0, checkpointing=True), "twice.*checkpointing=False"),
        (dict(norm="group"), "norm is 'group'"),
        (dict(mask_ratio=0.99), "none of 16 tokens"),
        (dict(mask_ratio=1.0), "mask_ratio|ratio"),
        (dict(drop_path=1.0), "drop_path"),
        (dict(image_size=9), "not a multiple"),
        (dict(num_heads=5), "5 heads"),
        (dict(num_features=0), "num_features"),
        (dict(depth=0), "depth"),
        (dict(in_channels=0), "in_channels"),
        (dict(checkpointing=1), "checkpointing is 1"),
    ],
)
def test_the_face_config_refuses_what_cannot_be(changes, match):
    with pytest.raises(ValueError, match=match):
        replace(SMALL_C, **changes)


def test_the_face_config_is_frozen_and_refuses_a_misspelt_option():
    assert {SMALL_C: 1}[replace(SMALL_C, image_size=[8, 8])] == 1
    with pytest.raises(FrozenInstanceError):
        SMALL_C.norm = "batch"
    with pytest.raises(TypeError, match="drop_paths"):
        FaceConfig(drop_paths=0.1)


@pytest.mark.parametrize("config", [SMALL_C, BATCH])
def test_c_refuses_a_training_batch_of_1_and_says_what_to_do(config):
    with pytest.raises(ValueError, match=r"training batch of 1 .* model.eval\(\)"):
        face_vit(config)(torch.randn(1, 1, 8, 8))


def test_a_takes_no_other_pooling():
    with pytest.raises(ValueError, match="pool is 'cls'"):
        einops_vit(replace(SMALL_A, pool="cls"))


# Checkpointing -----------------------------------------------------------------------------------


def saved_bytes(model, images):
    """What autograd keeps for the gradient, each storage once, the parameters left out."""
    own = {p.untyped_storage()._cdata for p in model.parameters()}
    storages = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            storages[storage._cdata] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        out = model(images)
    return sum(storage.nbytes() for storage in storages.values()), out


def test_checkpointing_gives_the_same_gradients_and_keeps_fewer_bytes():
    images, gradients, kept = torch.randn(4, 1, 8, 8), [], []
    config = replace(SMALL_C, depth=4, mask_ratio=0.25, drop_path=0.5)
    for checkpointing in (False, True):
        torch.manual_seed(1)
        model = face_vit(replace(config, checkpointing=checkpointing))
        size, out = saved_bytes(model, images)  # masking and DropPath draw here
        out.square().sum().backward()
        kept.append(size)
        gradients.append([p.grad for p in model.parameters()])
    for one, other in zip(*gradients, strict=True):
        assert torch.equal(one, other)
    assert kept[1] < 0.3 * kept[0]


def test_the_bytes_of_the_reference():
    kept = []
    for checkpointing in (False, True):
        config = replace(FACE, checkpointing=checkpointing, mask_ratio=0.0)
        images = torch.empty(4, 3, 112, 112, device="meta")
        kept.append(saved_bytes(on_paper(face_vit, config), images)[0])
    assert [round(size / 1e6, 2) for size in kept] == [123.05, 9.10]


def test_checkpointing_is_for_training_alone():
    model = face_vit(replace(SMALL_C, checkpointing=True)).eval()
    plain = face_vit(SMALL_C).eval()
    plain.load_state_dict(model.state_dict())
    images = torch.randn(2, 1, 8, 8)
    (kept, out), (wanted, same) = saved_bytes(model, images), saved_bytes(plain, images)
    assert kept == wanted
    assert torch.equal(out, same)


# Float types -------------------------------------------------------------------------------------


class Softmaxes(TorchFunctionMode):
    """Notes the type of each softmax's result."""

    def __init__(self):
        super().__init__()
        self.kinds = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        """Run the function, and look."""
        out = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") == "softmax":
            self.kinds.append(out.dtype)
        return out


def test_softmax_stays_in_float32_under_autocast_on_the_cpu():
    images = torch.randn(2, 1, 8, 8)
    for training in (True, False):
        model = face_vit(SMALL_C).train(training)
        with torch.autocast("cpu", torch.bfloat16), Softmaxes() as seen:
            features = model(images)
        assert seen.kinds == [torch.float32] * 2
        if not training:
            close(features.float(), model(images), atol=0.05)


def test_the_cores_explicit_attention_would_take_16_bits_there():
    attn, x = MultiHeadAttention(24, 3), torch.randn(2, 7, 24)
    with torch.autocast("cpu", torch.bfloat16), Softmaxes() as seen:
        attn(x, return_attention=True)
    assert seen.kinds == [torch.bfloat16]


@pytest.mark.parametrize("shape", [None, (7, 7)])
def test_float32_attention_equals_the_cores(shape):
    core, x, mask = shake(MultiHeadAttention(24, 3)), torch.randn(2, 7, 24), mask_of(shape)
    ours = Float32Attention(24, 3)
    ours.load_state_dict(core.state_dict())
    close(ours(x, mask), core(x, mask))
    for one, other in zip(ours(x, mask, True), core(x, mask, True), strict=True):
        close(one, other)


def test_float32_attentions_dropout_is_for_training_alone():
    attn, plain = Float32Attention(24, 3, dropout=0.5), Float32Attention(24, 3)
    x = torch.ones(2, 7, 24)
    plain.load_state_dict(attn.state_dict())
    out = attn(x)
    assert (out == 0).float().mean().item() == pytest.approx(0.5, abs=0.15)
    assert torch.equal(attn.eval()(x), plain(x))


def test_float32_attention_keeps_float64_as_exact_as_it_is():
    core, x = MultiHeadAttention(24, 3).double(), torch.randn(2, 7, 24).double()
    ours = Float32Attention(24, 3).double()
    ours.load_state_dict(core.state_dict())
    close(ours(x), core(x), atol=1e-14)


@pytest.mark.parametrize(("kind", "atol"), [(torch.float64, 1e-5), (torch.bfloat16, 0.2)])
def test_other_float_types(model, kind, atol):
    images = torch.randn(3, 1, 8, 8)
    wanted = model.eval()(images)
    logits = model.to(kind)(images.to(kind))
    assert logits.dtype == kind
    close(logits.float(), wanted, atol=atol)


# The systems -------------------------------------------------------------------------------------


def test_a_norms_the_mean_of_all_tokens():
    model, images = shake(einops_vit(SMALL_A)).eval(), torch.randn(2, 1, 8, 8)
    x = model.blocks(model.tokens(model.patch_embed(images)))
    close(model(images), model.head(model.norm(x.mean(1))))
    swapped = model.head(model.norm(x).mean(1))
    without_cls = model.head(model.norm(x[:, 1:].mean(1)))
    for other in (swapped, without_cls):
        assert (model(images) - other).abs().max() > 0.001
    close(model.pre_logits(images), model.norm(x.mean(1)))


@pytest.mark.parametrize("name", ["A fused", "A separate", "B"])
def test_a_and_b_return_the_attention_of_every_layer(name):
    model, images = SYSTEMS[name]().eval(), torch.randn(2, 1, 8, 8)
    logits, attention = model(images, return_attention=True)
    close(logits, model(images))
    heads = model.config.num_heads
    assert [w.shape for w in attention] == [(2, heads, 17, 17)] * 2
    for weights in attention:
        close(weights.sum(-1), torch.ones(2, heads, 17))


# Each system once more, in plain tensors: what comes after what.


def normed(x, state, name, eps=1e-5):
    x = x - x.mean(-1, keepdim=True)
    x = x / (x.square().mean(-1, keepdim=True) + eps).sqrt()
    return x * state[f"{name}.weight"] + state[f"{name}.bias"]


def linear(x, state, name):
    x = x @ state[f"{name}.weight"].T
    return x + state[f"{name}.bias"] if f"{name}.bias" in state else x


def patch_tokens(images, state, patch=2):
    weight = state["patch_embed.proj.weight"].flatten(1)
    patches = rearrange(images, "b c (r p) (s q) -> b (r s) (c p q)", p=patch, q=patch)
    return patches @ weight.T + state["patch_embed.proj.bias"]


def with_cls(patches, state):
    cls = state["tokens.cls_token"].expand(len(patches), -1, -1)
    return torch.cat([cls, patches], dim=1) + state["tokens.pos_embed"]


def gelu(x):
    return x * (1 + torch.erf(x / 2**0.5)) / 2


def weights_of(q, k):
    return (torch.einsum("bhid,bhjd->bhij", q, k) / q.shape[-1] ** 0.5).softmax(-1)


def mixed(weights, v):
    return rearrange(torch.einsum("bhij,bhjd->bhid", weights, v), "b h n d -> b n (h d)")


def plain_a(images, state, heads=8, depth=2):
    x = with_cls(patch_tokens(images, state), state)
    for i in range(depth):
        qkv = linear(normed(x, state, f"blocks.{i}.norm1"), state, f"blocks.{i}.attn.qkv")
        q, k, v = rearrange(qkv, "b n (h d qkv) -> qkv b h n d", h=heads, qkv=3)
        x = x + linear(mixed(weights_of(q, k), v), state, f"blocks.{i}.attn.proj")
        y = gelu(linear(normed(x, state, f"blocks.{i}.norm2"), state, f"blocks.{i}.mlp.fc1"))
        x = x + linear(y, state, f"blocks.{i}.mlp.fc2")
    return linear(normed(x.mean(dim=1), state, "norm"), state, "head")


def plain_b(images, state, heads=3, depth=2):
    x = with_cls(patch_tokens(images, state), state)
    for i in range(depth):
        y = gelu(normed(x, state, f"blocks.{i}.norm1"))
        three = (
            linear(y, state, f"blocks.{i}.attn.qkv.{n}") for n in ("queries", "keys", "values")
        )
        q, k, v = (rearrange(part, "b n (h d) -> b h n d", h=heads) for part in three)
        x = x + linear(mixed(weights_of(q, k), v), state, f"blocks.{i}.attn.proj")
        y = gelu(normed(x, state, f"blocks.{i}.norm2"))
        y = linear(y, state, f"blocks.{i}.mlp.fc1").clamp(min=0)
        x = x + linear(y, state, f"blocks.{i}.mlp.fc2")
    return linear(normed(x.mean(dim=1), state, "norm"), state, "head")


def plain_c(images, state, heads=3, depth=2):
    x = patch_tokens(images, state) + state["pos_embed"]
    for i in range(depth):
        qkv = linear(normed(x, state, f"blocks.{i}.norm1"), state, f"blocks.{i}.attn.qkv")
        q, k, v = rearrange(qkv, "b n (qkv h d) -> qkv b h n d", h=heads, qkv=3)
        x = x + linear(mixed(weights_of(q, k), v), state, f"blocks.{i}.attn.proj")
        y = linear(normed(x, state, f"blocks.{i}.norm2"), state, f"blocks.{i}.mlp.fc1")
        x = x + linear(y.clamp(0, 6), state, f"blocks.{i}.mlp.fc2")
    x = normed(x, state, "norm").flatten(1)  # no cls, no mean: all tokens side by side
    for one, two in ((0, 1), (2, 3)):
        x = linear(x, state, f"head.{one}") - state[f"head.{two}.running_mean"]
        x = x / (state[f"head.{two}.running_var"] + 2e-5).sqrt()
        x = x * state[f"head.{two}.weight"] + state[f"head.{two}.bias"]
    return x


@pytest.mark.parametrize(("name", "plain"), [("A fused", plain_a), ("B", plain_b), ("C", plain_c)])
def test_each_system_computes_what_its_source_says_in_its_order(name, plain):
    model, images = shake(SYSTEMS[name]()), 3 * torch.randn(4, 1, 8, 8)
    with torch.no_grad():
        model.train()(images)  # moves the running means
        logits = model.eval()(images)
    close(plain(images, model.state_dict()), logits)
    assert logits.std() > 0.1


def test_b_drops_attentions_weights_and_between_the_mlps_linears_alone():
    model = project_vit(SMALL_B)
    rates = {n: m.p for n, m in model.named_modules() if isinstance(m, nn.Dropout) and m.p}
    places = [f"blocks.{i}.{place}" for i in range(2) for place in ("attn.dropout", "mlp.act.1")]
    assert rates == dict.fromkeys(places, 0.2)
    attention = model.blocks[0].attn.train()
    x = torch.randn(50, 17, 24)
    out, weights = attention(x, return_attention=True)
    assert 0.15 < (weights == 0).float().mean() < 0.25  # returned after it
    values = rearrange(attention.qkv.values(x), "b n (h d) -> b h n d", h=3)
    close(out, attention.proj(mixed(weights, values)))


def test_c_drops_no_path_unless_it_is_asked_to():
    assert FACE.drop_path == 0
    assert [b.drop_path.rate for b in face_vit(SMALL_C).blocks] == [0, 0]


def test_every_block_of_b_matters():
    model, images = shake(project_vit(SMALL_B)).eval(), torch.randn(2, 1, 8, 8)
    before = model(images)
    for block in model.blocks:
        other = copy.deepcopy(block.state_dict())
        shake(block)
        assert (model(images) - before).abs().max() > 1e-3  # 0.0 in the published loop
        block.load_state_dict(other)


@pytest.mark.parametrize("size", [(8, 16), (16, 8), (4, 20)])
def test_non_square_images(size):
    places = (size[0] // 2) * (size[1] // 2)
    for model in (
        einops_vit(replace(SMALL_A, image_size=size)),
        project_vit(replace(SMALL_B, image_size=size)),
        face_vit(replace(SMALL_C, image_size=size)),
    ):
        images = torch.randn(3, 1, *size)
        assert model(images).shape == (3, 10)
        assert model.patch_embed.grid == (size[0] // 2, size[1] // 2)
        with pytest.raises(ValueError, match="resize"):
            model(images.mT)
        tokens = model.patch_embed(images)
        assert tokens.shape[1] == places
        # The last patch of the first row sees the picture's top right corner.
        proj, corner = model.patch_embed.proj, images[:, 0, :2, -2:].flatten(1)
        close(tokens[:, size[1] // 2 - 1], F.linear(corner, proj.weight.flatten(1), proj.bias))


def test_a_and_b_can_be_brought_to_another_size():
    for name in ("A separate", "B"):
        model = SYSTEMS[name]().eval()
        assert model.at_size((8, 16))(torch.randn(2, 1, 8, 16)).shape == (2, 10)


@pytest.mark.parametrize("options", [dict(qkv_bias=False), dict(dropout=0.3), dict(mlp_ratio=2)])
def test_the_options_of_the_config_reach_separate_attention_too(options):
    for model in (project_vit(replace(SMALL_B, **options)), ViT(replace(SMALL_B, **options))):
        assert model.blocks[0].attn.dropout.p == options.get("dropout", 0.2)
        biased = any(".qkv." in n and n.endswith("bias") for n, _ in model.named_parameters())
        assert biased == options.get("qkv_bias", True)


def test_all_linears_start_small():
    for make in (lambda: einops_vit(SMALL_A, fused=False), lambda: project_vit(SMALL_B)):
        for name, p in make().named_parameters():
            if ".attn.qkv." in name and name.endswith("weight"):
                assert p.std().item() == pytest.approx(0.02, rel=0.2), name
            elif ".attn.qkv." in name:
                assert not p.any(), name


def test_c_starts_small():
    model = face_vit(replace(SMALL_C, embed_dim=192))
    linears = [m.weight for m in model.modules() if isinstance(m, nn.Linear)]
    for p in (model.pos_embed, model.mask_token, *linears):
        assert p.std().item() == pytest.approx(0.02, rel=0.2)


def test_each_runs_in_eval_with_a_batch_of_1_as_in_one_of_many(model):
    images = torch.randn(4, 1, 8, 8)
    model.train()(images)  # moves the running means
    model.eval()
    alone = torch.cat([model(image[None]) for image in images])
    close(model(images), alone)
    assert alone.std(0).max() > 0


# Training ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def batch():
    return digits()[0][:256]


def never_trained(name):
    """A key's bias adds the same to all scores of a row, which softmax takes away again."""
    return name.endswith("keys.bias")


@pytest.mark.slow
def test_each_learns_real_digits_and_every_parameter_gets_a_gradient(model, batch):
    images, labels = batch
    optimizer = torch.optim.AdamW(decay_groups(model, 0.05), lr=6e-3)
    losses, touched = [], set()
    for _ in range(40):
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        touched |= {n for n, p in model.named_parameters() if p.grad is not None and p.grad.any()}
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]
    for name, p in model.named_parameters():
        if not p.requires_grad:
            assert name == "mask_token"
            assert not model.config.mask_ratio
        elif never_trained(name):
            assert p.grad.abs().max() < 1e-6, name
        else:
            assert name in touched, name


def test_only_the_matrices_decay(model):
    groups = decay_groups(model, 0.05)
    names = {id(p): name for name, p in model.named_parameters()}
    decayed, others = ({names[id(p)] for p in group["params"]} for group in groups)
    matrices = {
        f"{name}.weight"
        for name, m in model.named_modules()
        if isinstance(m, (nn.Linear, nn.Conv2d))
    }
    assert decayed == matrices
    assert others == {n for n, p in model.named_parameters() if p.requires_grad} - matrices
    special = {"mask_token", "pos_embed", "tokens.cls_token", "tokens.pos_embed"}
    assert not decayed & special
    assert {n for n in others if n in special}


# Copies and compilers ----------------------------------------------------------------------------


def test_a_deep_copy_and_a_loaded_state_give_the_same_logits(model):
    images = torch.randn(3, 1, 8, 8)
    shake(model).train()(images)
    wanted = model.eval()(images)
    assert torch.equal(copy.deepcopy(model)(images), wanted)
    fresh = copy.deepcopy(model)
    for p in fresh.parameters():
        nn.init.normal_(p)
    fresh.load_state_dict(model.state_dict(), strict=True)
    assert torch.equal(fresh(images), wanted)


def test_separate_weights_do_not_load_into_a_fused_model():
    with pytest.raises(RuntimeError, match=r"attn\.qkv\.queries"):
        einops_vit(SMALL_A).load_state_dict(einops_vit(SMALL_A, fused=False).state_dict())


@pytest.mark.parametrize("name", ["A separate", "B", "C"])
def test_export(name):
    model, images = SYSTEMS[name]().eval(), torch.randn(3, 1, 8, 8)
    shapes = ({0: torch.export.Dim("batch", min=1, max=64)},)
    program = torch.export.export(model, (torch.randn(2, 1, 8, 8),), dynamic_shapes=shapes)
    close(program.module()(images), model(images))
