"""The variants, what is dropped, and systems A, B and C, by number and known fault.

What `fuse_qkv`, `DropPath`, `random_masking` and `unmask` do with plain arguments is tried by the
exercises of the same names, in test_exercises.py.
"""

from dataclasses import replace

import pytest
import torch
from einops import rearrange
from helpers import close, mask_of, shake
from published import SystemB, SystemC
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from vit_course import systems
from vit_course.checks import as_published
from vit_course.systems import EINOPS, PROJECT, FaceConfig, einops_vit, face_vit, project_vit
from vit_steps import MultiHeadAttention, ViT, merge_heads
from vit_steps.dropping import DropPath, drop_path_rates, kept_count, random_masking, unmask
from vit_steps.scale import kept_bytes
from vit_steps.training.data import digits
from vit_steps.training.loop import decay_groups, train_step
from vit_steps.variants import Float32Attention, SeparateAttention, fuse_qkv

SMALL = dict(image_size=8, patch_size=2, in_channels=1, embed_dim=24, depth=2)
SMALL_A = replace(EINOPS, **SMALL, num_classes=10, num_heads=8)
SMALL_B = replace(PROJECT, **SMALL, num_classes=10)
SMALL_C = FaceConfig(**SMALL, num_features=10, num_heads=3)
MASKED = replace(SMALL_C, mask_ratio=0.25)
BATCH = replace(SMALL_C, norm="batch", mask_ratio=0.0)
BATCH_FACE = FaceConfig(norm="batch", mask_ratio=0.0)
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


# Sizes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "parameters", "heads", "size", "multiply_adds"),
    [
        (einops_vit, 86_567_656, 8, 224, 17.5638),
        (lambda: einops_vit(fused=False), 86_567_656, 8, 224, 17.5638),
        (project_vit, 107_831_272, 3, 224, 21.9257),
        (face_vit, 115_330_256, 12, 112, 3.8314),
        (lambda: face_vit().eval(), 115_330_256, 12, 112, 4.2646),
        (lambda: face_vit(BATCH_FACE), 115_294_306, 12, 112, 4.2646),
    ],
)
def test_each_has_its_parameters_heads_and_multiply_adds(
    make, parameters, heads, size, multiply_adds
):
    with torch.device("meta"):  # shapes alone
        model, images = make(), torch.empty(2, 3, size, size)  # two: its head in training
    assert sum(p.numel() for p in model.parameters()) == parameters
    assert {block.attn.num_heads for block in model.blocks} == {heads}
    # By the equation: torch has no count of fused attention on the CPU.
    options = dict(return_attention=True) if isinstance(model, ViT) else {}
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(images, **options)
    assert round(counter.get_total_flops() / 4 / 1e9, 4) == multiply_adds


# Separate and fused q, k, v ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SeparateAttention, systems.ProjectAttention])
@pytest.mark.parametrize("bias", [True, False])
def test_separate_and_fused_attention_give_the_same_numbers(kind, bias):
    separate = shake(kind(24, 3, bias))
    fused, x, mask = MultiHeadAttention(24, 3, bias), torch.randn(2, 7, 24), mask_of((2, 1, 1, 7))
    q = separate.qkv
    fused.qkv.load_state_dict(fuse_qkv(q.queries, q.keys, q.values, 3))
    fused.proj.load_state_dict(separate.proj.state_dict())
    close(separate(x, mask), fused(x, mask))
    close(separate(x, mask, True), fused(x, mask, True))


def test_the_third_row_order():
    linears, x = [shake(nn.Linear(24, 24)) for _ in range(3)], torch.randn(2, 7, 24)
    fused = nn.Linear(24, 72)
    fused.load_state_dict(fuse_qkv(*linears, 3, "h qkv d"))
    expected = torch.stack([rearrange(m(x), "b n (h d) -> b h n d", h=3) for m in linears])
    close(rearrange(fused(x), "b n (h qkv d) -> qkv b h n d", h=3, qkv=3), expected)


# DropPath ----------------------------------------------------------------------------------------


def test_drop_path_in_a_block_leaves_the_residual():
    block = face_vit(SMALL_C).blocks[1].train()
    block.drop_path.rate = 1 - 1e-9  # as good as always
    x = torch.randn(3, 16, 24)
    assert torch.equal(block(x), x)


def test_the_schedule_is_a_straight_line():
    assert drop_path_rates(0.3, 4) == pytest.approx([0, 0.1, 0.2, 0.3])
    assert drop_path_rates(0.3, 1) == [0.0]
    assert [b.drop_path.rate for b in face_vit(replace(SMALL_C, drop_path=0.5)).blocks] == [0, 0.5]


# Masking -----------------------------------------------------------------------------------------


def test_the_count_is_exact_for_every_length_and_ratio():
    for length in range(1, 101):
        for hundredths in range(100):
            wanted = (2 * length * (100 - hundredths) + 100) // 200  # whole numbers alone
            if wanted:
                assert kept_count(length, hundredths / 100) == wanted, (length, hundredths)
            else:
                with pytest.raises(ValueError, match=f"none of {length} tokens"):
                    kept_count(length, hundredths / 100)


def test_a_generator_chooses_and_gaps_get_the_mask_token_plus_their_position():
    x, token, positions = torch.randn(5, 49, 8), torch.randn(1, 1, 8), torch.randn(1, 49, 8)
    remaining, order, mask = random_masking(x, 0.5, torch.Generator().manual_seed(3))
    assert torch.equal(mask, random_masking(x, 0.5, torch.Generator().manual_seed(3))[2])
    back = unmask(remaining, order, token, positions.requires_grad_())
    assert back.requires_grad
    assert torch.equal(back[~mask], x[~mask])
    assert torch.equal(back[mask], (token + positions).expand(5, -1, -1)[mask])
    assert unmask(remaining.bfloat16(), order, token, positions).dtype == torch.bfloat16


@torch.no_grad()
def test_c_masks_in_training_and_its_head_reads_the_mask_token_without_a_position():
    model, images, counts, seen = face_vit(MASKED), torch.randn(4, 1, 8, 8), [], []
    model.blocks[0].register_forward_hook(lambda m, inputs, output: counts.append(output.shape[1]))
    model.head.register_forward_pre_hook(lambda m, inputs: seen.append(inputs[0]))
    for block in model.blocks:  # each token stays what it was
        block.attn.forward = block.mlp.forward = torch.zeros_like
    model(images)
    model.eval()(images)
    masked, whole = (x.unflatten(1, (16, 24)) for x in seen)
    gaps = (masked == model.mask_token).all(-1)
    assert gaps.sum(1).tolist() == [4] * 4
    assert len(gaps.unique(dim=0)) > 1  # elsewhere in each picture
    close(masked[~gaps], whole[~gaps])
    assert counts == [12, 16]  # the blocks run on the others alone


# What cannot be ----------------------------------------------------------------------------------


def fused(last, heads=2, order="qkv h d"):
    return fuse_qkv(*(nn.Linear(*sizes) for sizes in ((8, 8), (8, 8), last)), heads, order)


def unmasked(**change):
    shapes = dict(kept=(2, 4, 8), order=(2, 9), token=(1, 1, 8), positions=(1, 9, 8)) | change
    kept, order, token, positions = (torch.zeros(s) for s in shapes.values())
    return unmask(kept, order.long(), token, positions)


REFUSED = [
    (lambda: fused((8, 8, False)), "alike"),
    (lambda: fused((8, 4, True)), "alike"),
    (lambda: fused((8, 8, True), heads=3), "3 heads"),
    (lambda: fused((8, 8, True), order="d h qkv"), "order is 'd h qkv'"),
    (lambda: DropPath(1.0), "rate"),
    (lambda: unmasked(order=(1, 9)), "give"),  # an order for one sample would broadcast
    (lambda: unmasked(kept=(2, 10, 8)), "give"),
    (lambda: unmasked(token=(1, 1, 1)), "give"),
    (lambda: unmasked(positions=(1, 1, 8)), "give"),  # one position for all
    (lambda: replace(SMALL_C, norm="batch"), "masking leaves gaps.*mask_ratio=0.0"),
    (lambda: replace(BATCH, checkpointing=True), "twice.*checkpointing=False"),
    (lambda: replace(SMALL_C, norm="group"), "norm is 'group'"),
    (lambda: replace(SMALL_C, mask_ratio=0.99), "none of 16 tokens"),
    (lambda: replace(SMALL_C, drop_path=1.0), "drop_path"),
    (lambda: replace(SMALL_C, image_size=9), "not a multiple"),
    (lambda: face_vit(replace(SMALL_C, num_heads=5)), "5 heads"),
    (lambda: replace(SMALL_C, depth=0), "depth"),
    (lambda: replace(SMALL_C, checkpointing=1), "checkpointing is 1"),
    (lambda: einops_vit(replace(SMALL_A, pool="cls")), "pool is 'cls'"),
    (lambda: project_vit(replace(SMALL_B, pool="cls")), "pool is 'cls'"),
]


@pytest.mark.parametrize(("wrong", "message"), REFUSED)
def test_what_cannot_be_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


# Norms, checkpointing, float types ---------------------------------------------------------------


def test_an_image_alters_another_under_batch_norm_alone():
    for config, altered in ((replace(SMALL_C, mask_ratio=0.0), False), (BATCH, True)):
        model = face_vit(config)
        model.head = nn.Identity()  # it has batch norms of its own
        images = torch.randn(3, 1, 8, 8)
        other = torch.cat([images[:2], images[2:] + 1])
        assert torch.allclose(model(images)[:2], model(other)[:2], atol=1e-5) is not altered
        close(model.eval()(images)[:2], model(other)[:2])


def test_checkpointing_gives_the_same_gradients_and_keeps_fewer_bytes_in_training_alone():
    images, gradients, sizes = torch.randn(4, 1, 8, 8), [], []
    config = replace(SMALL_C, depth=4, mask_ratio=0.25, drop_path=0.5)
    for checkpointing in (False, True):
        torch.manual_seed(1)
        model = face_vit(replace(config, checkpointing=checkpointing))
        model(images).square().sum().backward()  # masking and DropPath draw here
        gradients.append([p.grad for p in model.parameters()])
        sizes += [kept_bytes(model, images), kept_bytes(model.eval(), images)]
    assert all(map(torch.equal, *gradients))
    assert sizes[2] < 0.3 * sizes[0]
    assert sizes[3] == sizes[1]


def test_float32_attention_equals_the_cores_and_stays_in_32_bits_under_autocast():
    core, x, mask = shake(MultiHeadAttention(24, 3)), torch.randn(2, 7, 24), mask_of((7, 7))
    ours = Float32Attention(24, 3)
    ours.load_state_dict(core.state_dict())
    expected = core(x, mask, return_attention=True)
    close(ours(x, mask), core(x, mask))
    close(ours(x, mask, return_attention=True), expected)
    with torch.autocast("cpu", torch.bfloat16):
        assert core(x, mask, return_attention=True)[1].dtype == torch.bfloat16
        out, weights = ours(x, mask, return_attention=True)
    assert (out.dtype, weights.dtype) == (torch.bfloat16, torch.float32)
    close(out.float(), expected[0], atol=0.05)


def test_float32_attentions_dropout_is_for_training_alone():
    attn, plain = Float32Attention(24, 3, dropout=0.5), Float32Attention(24, 3)
    x = torch.ones(2, 7, 24)
    plain.load_state_dict(attn.state_dict())
    assert (attn(x) == 0).float().mean().item() == pytest.approx(0.5, abs=0.15)
    assert torch.equal(attn.eval()(x), plain(x))


def test_16_bits(model):
    images = torch.randn(3, 1, 8, 8)
    wanted = model.eval()(images)
    logits = model.bfloat16()(images.bfloat16())
    assert logits.dtype == torch.bfloat16
    close(logits.float(), wanted, atol=0.2)


# Each system, and as it was printed: in other code, its mistakes mended, with our weights ---------


def under_other_names(state, *names):
    for ours, theirs in (("fc1", "0"), ("fc2", "2"), ("patch_embed.proj", "patches"), *names):
        state = {name.replace(ours, theirs): weight for name, weight in state.items()}
    return state


def printed_a(state):
    model = as_published.vit(32, 8, 10, 48, depth=2).double()
    weight, bias, cls, positions, *others = state.values()
    weights = cls, positions[0], weight, bias, *others
    model.load_state_dict(dict(zip(model.state_dict(), weights, strict=True)))
    for block in model[1]:
        attention = block[0].branch[1]
        attention.embed_dim = 1  # the weights are divided by its root, the scores by none
        for rows in attention.qkv.parameters():  # (h d qkv)
            rows.data[::3] /= 6**0.5
    return model


def printed_b(state):
    model = SystemB().double()
    state = under_other_names(state, ("qkv.", ""), ("tokens.", ""))
    state["patches.weight"] = rearrange(state["patches.weight"], "d c h w -> d (h w c)")
    model.load_state_dict(state)
    return model


def printed_c(state):
    model = SystemC().double()
    model.load_state_dict(under_other_names(state))
    return model


PRINTED = dict(image_size=32, patch_size=8, embed_dim=48, depth=2)


@pytest.mark.parametrize(
    ("model", "printed"),
    [
        (lambda: einops_vit(replace(EINOPS, **PRINTED, num_classes=10)), printed_a),
        (lambda: project_vit(replace(PROJECT, **PRINTED, num_classes=10, mlp_ratio=2)), printed_b),
        (lambda: face_vit(FaceConfig(**PRINTED, num_features=10, num_heads=4)), printed_c),
    ],
)
@torch.no_grad()
def test_each_system_computes_what_its_source_says_in_its_order(model, printed):
    model, images = shake(model()).double(), 3 * torch.randn(4, 3, 32, 32, dtype=torch.float64)
    for block in model.blocks:
        block.mlp.fc1.weight.mul_(10)  # past the 6 of ReLU6
    model.train()(images)  # moves the running means
    options = dict(return_attention=True) if printed is printed_b else {}
    answer = model.eval()(images, **options)
    close(answer, printed(model.state_dict()).eval()(images), atol=1e-10)
    assert answer[0].std() > 0.1


def test_as_two_forms_give_the_same_numbers():
    separate, images = shake(SYSTEMS["A separate"]()).eval(), torch.randn(2, 1, 8, 8)
    fused = SYSTEMS["A fused"]().eval()
    fused.load_state_dict(separate.state_dict(), strict=False)
    for ours, theirs in zip(fused.blocks, separate.blocks, strict=True):
        three = theirs.attn.qkv.children()
        ours.attn.qkv.load_state_dict(fuse_qkv(*three, 8, "h d qkv"))
    close(fused(images), separate(images))


def test_b_drops_attentions_weights_and_between_the_mlps_linears_alone():
    model = project_vit(SMALL_B)
    rates = {n: m.p for n, m in model.named_modules() if isinstance(m, nn.Dropout) and m.p}
    places = [f"blocks.{i}.{place}" for i in range(2) for place in ("attn.dropout", "mlp.act.1")]
    assert rates == dict.fromkeys(places, 0.2)
    attention, x = model.blocks[0].attn.train(), torch.randn(50, 17, 24)
    out, weights = attention(x, return_attention=True)
    assert 0.15 < (weights == 0).float().mean() < 0.25  # returned after it
    values = rearrange(attention.qkv.values(x), "b n (h d) -> b h n d", h=3)
    close(out, attention.proj(merge_heads(weights @ values)))


def test_images_that_are_no_squares():
    config, images = replace(SMALL_C, image_size=[8, 16]), torch.randn(3, 1, 8, 16)
    assert hash(config) == hash(replace(SMALL_C, image_size=(8, 16)))
    assert face_vit(config)(images).shape == (3, 10)
    for name in ("A fused", "A separate", "B"):
        assert SYSTEMS[name]().eval().at_size((8, 16))(images).shape == (3, 10)


def test_the_options_of_the_config_reach_their_attention():
    a, b = (replace(config, qkv_bias=False, dropout=0.3) for config in (SMALL_A, SMALL_B))
    for model in (einops_vit(a), einops_vit(a, fused=False), project_vit(b)):
        assert model.blocks[0].attn.dropout.p == 0.3
        names = [name for name, _ in model.named_parameters()]
        assert not any(".qkv." in name and name.endswith("bias") for name in names)


def test_all_linears_and_cs_positions_start_small(model):
    for name, m in model.named_modules():
        if isinstance(m, nn.Linear):
            assert m.weight.std().item() == pytest.approx(0.02, rel=0.25), name
            assert m.bias is None or not m.bias.any(), name
    for name in {"pos_embed", "mask_token"} & dict(model.named_parameters()).keys():  # C's own
        assert model.get_parameter(name).std().item() == pytest.approx(0.02, rel=0.5), name


# Training and export -----------------------------------------------------------------------------


@pytest.mark.slow
def test_each_learns_real_digits_and_what_learns_gets_a_gradient(model):
    images, labels = digits()[0][:64]
    optimizer = torch.optim.AdamW(decay_groups(model, 0.05), lr=6e-3)
    losses = [train_step(model, optimizer, images, labels).item() for _ in range(40)]
    assert losses[-1] < 0.6 * losses[0]
    # That each gradient is a number, the doctor says of the same models in test_doctor.py.
    assert all((p.grad is not None) is p.requires_grad for p in model.parameters())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["A separate", "B", "C"])
def test_export(name):
    model, images = SYSTEMS[name]().eval(), torch.randn(3, 1, 8, 8)
    shapes = ({0: torch.export.Dim("batch", min=1, max=64)},)
    program = torch.export.export(model, (torch.randn(2, 1, 8, 8),), dynamic_shapes=shapes)
    close(program.module()(images), model(images))
