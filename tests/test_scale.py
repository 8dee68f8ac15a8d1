"""vit_steps.scale: counts, memory, merging and sharding, each against a reference."""

import copy
import os
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from helpers import close, shake
from test_processes import torchrun
from test_refused import OwnForward
from tiny_training import pictures, tiny
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import vit_steps
from vit_course import checks
from vit_course.systems import EinopsViT
from vit_steps import EncoderBlock, ViT, ViTConfig, scale
from vit_steps.inputs import as_pair
from vit_steps.variants import Float32Attention, SeparateAttention

SMALL = ViTConfig(8, 2, 1, 10, embed_dim=24, depth=3, num_heads=4)
ODD = ViTConfig((12, 20), 4, 2, 7, embed_dim=30, depth=2, num_heads=5, mlp_ratio=1.5)


def images_of(config, batch=2):
    return torch.randn(batch, config.in_channels, *as_pair(config.image_size))


def random_vit(config=SMALL):
    """A ViT whose attention is not near even, as it is with weights of 0.02."""
    return shake(ViT(config)).eval()


# Work and memory ---------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [SMALL, ODD, ViTConfig.preset("Ti/16", num_classes=10)])
def test_multiply_adds_are_those_that_torch_counts_part_by_part(config):
    with torch.device("meta"):
        model, images = ViT(config), images_of(config, 1)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(images, return_attention=True)  # torch has no count of fused attention on the CPU
    counted = {name: sum(ops.values()) // 2 for name, ops in counter.get_flop_counts().items()}

    def all_blocks(part):
        return sum(counted[f"ViT.blocks.{i}.{part}"] for i in range(config.depth))

    mixing = all_blocks("attn") - all_blocks("attn.qkv") - all_blocks("attn.proj")
    actual = scale.multiply_adds(config)
    assert actual == {
        "patches": counted["ViT.patch_embed"],
        "qkv": all_blocks("attn.qkv"),
        "scores": mixing / 2,
        "mixture": mixing / 2,
        "proj": all_blocks("attn.proj"),
        "MLP": all_blocks("mlp"),
        "head": counted["ViT.head"],
    }
    assert sum(actual.values()) == counted["Global"]


def test_a_storage_counts_once_and_whole_and_each_image_alike():
    class Twice(nn.Module):
        def forward(self, x):
            y = x.requires_grad_().exp()  # kept by exp, and by both products
            return (y * y).sum() + (y[:1] * y[1:2]).sum()

    assert scale.kept_bytes(Twice(), torch.randn(5, 4)) == 4 * 20
    one, four = (scale.kept_bytes(ViT(SMALL), images_of(SMALL, batch)) for batch in (1, 4))
    assert four == 4 * one


# Gradient accumulation ---------------------------------------------------------------------------


def exact(**changes):
    """A small model in 64 bits, its batch of 7, and an optimizer in which no mistake gets lost."""
    model = tiny(depth=2, **changes).double()
    images, labels = pictures(7)[:]
    return model, images.double(), labels


@pytest.mark.parametrize("name", ["accumulated_step", "merge_tokens"])
def test_the_packages_own_answer_is_right(name):
    assert checks.EXERCISES[name].judge(getattr(scale, name)) == "right"


def test_pieces_that_cannot_be_are_refused_before_a_step():
    model, images, labels = exact()
    before = copy.deepcopy(model.state_dict())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for count, parts, message in (7, 8, "parts is 8"), (7, 0, "parts is 0"), (6, 2, r"\(7\)"):
        with pytest.raises(ValueError, match=message):
            scale.accumulated_step(model, optimizer, images, labels[:count], parts)
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())


# Checkpointing -----------------------------------------------------------------------------------


def results(model, images):
    """Logits, attention, and the gradients that follow."""
    torch.manual_seed(1)  # of dropout
    model.zero_grad()
    logits, attention = model(images, return_attention=True)
    model(images).square().sum().backward()
    return logits, attention, [p.grad for p in model.parameters() if p.requires_grad]


@pytest.mark.parametrize("frozen", [False, True])
def test_checkpointing_changes_no_bit_of_the_gradients_or_of_the_attention(frozen):
    model, images, _ = exact(dropout=0.0 if frozen else 0.3)
    for module in (model.patch_embed, model.tokens):  # what stands before the blocks
        module.requires_grad_(not frozen)
    before, most = results(model, images), scale.kept_bytes(model, images)
    names, parameters = list(model.state_dict()), list(model.parameters())
    assert scale.checkpoint_blocks(model) is model
    assert list(model.state_dict()) == names
    assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))
    torch.testing.assert_close(results(model, images), before, atol=0, rtol=0)
    assert model.blocks[0].mlp.fc1.weight.grad.any()
    assert scale.kept_bytes(model, images) < 0.5 * most


def calls(module):
    seen = []
    module.register_forward_pre_hook(lambda *_: seen.append(1))
    return seen


def test_blocks_are_computed_twice_in_training_alone():
    model, images, _ = exact()
    hooked = calls(model.blocks[0])
    scale.checkpoint_blocks(scale.checkpoint_blocks(model))  # a second time does nothing more
    seen = calls(model.blocks[0].mlp)
    model(images).sum().backward()
    assert len(seen) == 2
    model.eval()(images).sum().backward()
    assert len(seen) == 3
    with torch.no_grad():
        model.train()(images)
    assert len(seen) == 4
    assert len(hooked) == 3  # what hung on the block hangs on it still


def test_a_copy_computes_twice_too_and_with_its_own_weights():
    block = scale.checkpoint_blocks(tiny(depth=2)).blocks[0]
    for other in (pickle.loads(pickle.dumps(block)), copy.deepcopy(block)):
        assert type(other) is scale.Recomputed
        assert other.mlp is not block.mlp


@pytest.mark.slow
def test_a_checkpointed_model_is_compiled():
    model, images, _ = exact()
    wanted = results(scale.checkpoint_blocks(model), images)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    close(results(compiled, images), wanted, atol=1e-9)


class OwnBlock(EncoderBlock):
    def forward(self, x, mask=None, return_attention=False):
        return x + self.norm1(self.attn(x, mask))


def with_block(model, block):
    model.blocks[1] = block
    return model


def test_checkpointing_refuses_blocks_that_it_does_not_know():
    with_own_method = tiny(depth=2)
    with_own_method.blocks[1].forward = lambda x, mask, return_attention: x
    for model in (with_block(tiny(depth=2), OwnBlock(8, 2)), with_own_method, nn.Linear(2, 2)):
        with pytest.raises(TypeError, match=r"model is a .*; give a ViT of plain EncoderBlocks"):
            scale.checkpoint_blocks(model)


# Fewer tokens ------------------------------------------------------------------------------------


def test_even_keys_merge_the_first_into_the_first_and_what_is_left_keeps_its_order():
    x, sizes = torch.arange(100.0).reshape(1, 100, 1), torch.ones(1, 100)
    tokens, counts = scale.merge_tokens(x, torch.ones(1, 100, 2), sizes, 1)  # 2 into 1
    assert tokens.flatten().tolist() == [0, *range(4, 100, 2), 1.5, *range(3, 100, 2)]
    assert counts.flatten().tolist() == [1] * 49 + [2] + [1] * 49


@pytest.mark.parametrize(("r", "wanted"), [(2, [15, 13, 11]), (100, [9, 5, 3])])
def test_each_mlp_sees_as_many_tokens_fewer_as_asked_for_or_possible(r, wanted):
    model, seen = random_vit(), []
    for block in model.blocks:
        block.mlp.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape[1]))
    scale.merging(model, r)(images_of(SMALL))
    assert seen == wanted


def test_a_token_of_size_three_is_looked_at_as_three_would_be():
    block = random_vit().blocks[0]
    x, counts = torch.randn(1, 4, 24), torch.tensor([1, 3, 2, 1])
    wanted = block(x.repeat_interleave(counts, dim=1))  # (1, 7, D)
    first = counts.cumsum(0) - counts  # where each one's copies begin
    out, sizes = scale.merging_block(block, x, counts[None].float(), 0)
    close(out, wanted[:, first])
    assert torch.equal(sizes, counts[None].float())


def test_a_block_merges_after_attention_by_the_mean_key_of_its_heads():
    block, x = random_vit().blocks[1], torch.randn(1, 9, 24)
    mixed = x + block.attn(block.norm1(x))
    _, k, _ = vit_steps.split_qkv(block.attn.qkv(block.norm1(x)), 4)  # (1, h, N, d)
    wanted, counts = scale.merge_tokens(mixed, k.mean(dim=1), torch.ones(1, 9), 3)
    out, sizes = scale.merging_block(block, x, torch.ones(1, 9), 3)
    close(out, wanted + block.mlp(block.norm2(wanted)))
    assert torch.equal(sizes, counts)


@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_equal_patches_merge_without_a_change(pool):
    model = random_vit(replace(SMALL, pool=pool))
    nn.init.zeros_(model.tokens.pos_embed)
    kinds = torch.randn(2, 3, 4)  # of each image, three kinds of patches
    chosen = torch.tensor([0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2, 0, 0, 1, 1])
    images = vit_steps.unpatchify(kinds[:, chosen], 2, 8)
    close(scale.merging(model, 2)(images), model(images))
    nn.init.normal_(model.tokens.pos_embed)  # what is not equal does change
    assert (scale.merging(model, 2)(images) - model(images)).abs().max() > 1e-3


def test_the_weights_are_the_models_own_and_so_is_its_mode():
    model = random_vit()
    merged = scale.merging(model, 2)
    assert {id(p) for p in merged.parameters()} == {id(p) for p in model.parameters()}
    assert not merged.training


@pytest.mark.parametrize("training", [False, True])
def test_dropout_reaches_a_merging_model_in_training_alone(training):
    model, images = random_vit(replace(SMALL, dropout=0.5)).train(training), images_of(SMALL)
    logits = []
    for each in (model, scale.merging(model, 0)):  # in the same places, by the same shares
        torch.manual_seed(1)
        logits.append(each(images))
    close(*logits)


@pytest.mark.slow
def test_a_merging_model_exports_for_any_batch():
    merged = scale.merging(random_vit(), 2)
    shapes = ({0: torch.export.Dim("batch", min=1, max=64)},)
    program = torch.export.export(merged, (images_of(SMALL),), dynamic_shapes=shapes)
    images = images_of(SMALL, 5)
    close(program.module()(images), merged(images), atol=1e-6)


def with_attention(attention):
    model = ViT(SMALL)
    model.blocks[1].attn = attention
    return model


def test_merging_refuses_a_model_that_computes_in_another_way():
    models = [nn.Linear(2, 2), EinopsViT(replace(SMALL, pool="mean")), OwnForward(SMALL)]
    models += [with_block(ViT(SMALL), OwnBlock(24, 4)), with_attention(Float32Attention(24, 4))]
    for model in models:
        with pytest.raises(TypeError, match=r"methods of its own; give a vit_steps\.ViT"):
            scale.merging(model, 1)


def test_what_changes_no_forward_merges():
    images, separate = images_of(SMALL), with_attention(SeparateAttention(24, 4))
    for model in (scale.checkpoint_blocks(random_vit()), shake(separate).eval()):
        close(scale.merging(model, 0)(images), model(images), atol=1e-6)


# What is refused ---------------------------------------------------------------------------------
X, KEYS, SIZES = torch.ones(3, 9, 5), torch.ones(3, 9, 4), torch.ones(3, 9)
MERGE = scale.merge_tokens
REFUSED = [
    (lambda: scale.multiply_adds("B/16"), TypeError, r"config is 'B/16'; give .*ViTConfig"),
    (lambda: scale.merging(ViT(SMALL), -1), ValueError, "r is -1"),
    (lambda: scale.merging(ViT(SMALL), [1, 1]), TypeError, r"r is \[1, 1\]"),
    (lambda: MERGE(X, KEYS, SIZES, 5), ValueError, "r is 5; of 9 tokens, .* 0 to 4 can"),
    (lambda: MERGE(X[:, :8], KEYS[:, :8], SIZES[:, :8], 4), ValueError, "of 8 .* 0 to 3 can"),
    (lambda: MERGE(X[:, :1], KEYS[:, :1], SIZES[:, :1], 0), ValueError, "at least 2"),
    (lambda: MERGE(X, KEYS[:, :8], SIZES, 2), ValueError, r"keys is .*\(3, 9, d\)"),
    (lambda: MERGE(X, KEYS, SIZES[..., None], 2), ValueError, r"sizes is .*\(3, 9\)"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), REFUSED)
def test_what_does_not_fit_is_refused(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()


# Several processes -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="torchrun's stores need Linux or macOS")
def test_a_model_cut_in_pieces_trains_as_the_whole_one(tmp_path):
    script = Path(__file__).with_name("sharded.py")
    runs = []
    for size in (1, 2):
        done = torchrun(size, script, tmp_path / f"of_{size}")
        assert done.returncode == 0, done.stderr
        runs.append(torch.load(tmp_path / f"of_{size}"))
    whole, pieces = runs
    close(pieces, whole, atol=1e-6)
    start = tiny(depth=3).double().state_dict()
    assert (whole["state"]["head.weight"] - start["head.weight"]).abs().max() > 1e-3
