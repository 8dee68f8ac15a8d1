"""vit_steps.vit: pooling, the configuration, and the whole model against torch's own encoder."""

import copy
import dataclasses
import json

import numpy as np
import pytest
import torch
from helpers import close, shake
from test_attention import gradients
from test_encoder import load_block, torch_layer
from torch import nn
from torch.nn import functional as F

from vit_steps import ViT, ViTConfig, pool_tokens, resize_positions

TINY = dict(image_size=16, patch_size=4, embed_dim=12, depth=2, num_heads=3, num_classes=5)


def tiny(**changes):
    return ViTConfig(**(TINY | changes))


# Sizes -------------------------------------------------------------------------------------------

PRESETS = {  # parameters; patch size, blocks, width, heads, of which no count of them would tell
    "Ti/16": (5_717_416, (16, 12, 192, 3)),
    "S/16": (22_050_664, (16, 12, 384, 6)),
    "B/16": (86_567_656, (16, 12, 768, 12)),
    "B/32": (88_224_232, (32, 12, 768, 12)),
    "L/16": (304_326_632, (16, 24, 1024, 16)),
    "L/32": (306_535_400, (32, 24, 1024, 16)),
    "H/14": (632_045_800, (14, 32, 1280, 16)),
}


@pytest.mark.parametrize("name", PRESETS)
def test_parameters_and_sizes_of_each_preset(name):
    config = ViTConfig.preset(name)
    sizes = config.patch_size, config.depth, config.embed_dim, config.num_heads
    with torch.device("meta"):  # shapes alone
        count = sum(p.numel() for p in ViT(config).parameters())
    assert (count, sizes) == PRESETS[name]


# Forward -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["forward", "features"])
def test_with_and_without_weights_values_and_gradients_are_equal(method):
    model = shake(ViT(tiny()))
    images, run = torch.randn(2, 3, 16, 16, requires_grad=True), getattr(model, method)
    fused, (explicit, attention) = run(images), run(images, return_attention=True)
    close(fused, explicit)
    assert len(attention) == 2
    for weights in attention:
        close(weights.sum(-1), torch.ones(2, 3, 17))
    one, other = (gradients(out, model, images) for out in (fused, explicit))
    close(one, other, atol=1e-4)


def independent_vit(model, images, mean_pool=False):
    """The same ViT on torch's own pieces: unfold, Linear, nn.TransformerEncoder, Linear."""
    w, c = model.state_dict(), model.config
    patches = F.unfold(images, c.patch_size, stride=c.patch_size).transpose(1, 2)  # (c p1 p2)
    x = patches @ w["patch_embed.proj.weight"].flatten(1).T + w["patch_embed.proj.bias"]
    cls = w["tokens.cls_token"].repeat(len(images), 1, 1)
    x = torch.cat((cls, x), dim=1) + w["tokens.pos_embed"]
    layer = torch_layer(c.embed_dim, c.num_heads, round(c.embed_dim * c.mlp_ratio), c.norm_eps)
    encoder = nn.TransformerEncoder(layer, c.depth, enable_nested_tensor=False).eval()
    for theirs, ours in zip(encoder.layers, model.blocks, strict=True):
        load_block(theirs, ours)
    x = F.layer_norm(encoder(x), (c.embed_dim,), w["norm.weight"], w["norm.bias"], c.norm_eps)
    x = x[:, 1:].mean(1) if mean_pool else x[:, 0]
    return x @ w["head.weight"].T + w["head.bias"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"image_size": (8, 20)},
        {"image_size": (20, 8), "pool": "mean"},
        {"embed_dim": 64, "depth": 4, "num_heads": 8, "mlp_ratio": 2, "image_size": 32},
    ],
)
def test_the_model_equals_an_independent_one_on_torchs_encoder(changes):
    config = tiny(**changes)
    model = shake(ViT(config)).eval()
    images = torch.randn(3, 3, *model.patch_embed.image_size)
    with torch.no_grad():
        wanted = independent_vit(model, images, mean_pool=config.pool == "mean")
        close(model(images), wanted)
    assert wanted.std() > 0.01  # not all alike


@pytest.mark.parametrize(
    ("kind", "atol"), [(torch.float64, 1e-5), (torch.bfloat16, 0.1), (torch.float16, 0.02)]
)
def test_other_float_types(kind, atol):
    model, images = ViT(tiny()).eval(), torch.randn(2, 3, 16, 16)
    expected = model(images)
    logits = model.to(kind)(images.to(kind))
    explicit, attention = model(images.to(kind), return_attention=True)
    assert {out.dtype for out in (logits, explicit, *attention)} == {kind}
    close(logits.float(), expected, atol=atol)
    close(explicit, logits, atol={torch.float64: 1e-12}.get(kind, 0.02))


# Start -------------------------------------------------------------------------------------------


def test_linears_start_from_a_truncated_normal_of_std_002_and_zero_biases():
    model = ViT(tiny(embed_dim=192, depth=1, num_classes=100))
    linears = [m for m in model.modules() if type(m) is nn.Linear]
    assert len(linears) == 5  # plain ones: libraries put theirs in their place
    for linear in linears:
        assert linear.weight.std().item() == pytest.approx(0.02, rel=0.03)
        assert linear.weight.mean().item() == pytest.approx(0, abs=0.001)
        assert torch.equal(linear.bias, torch.zeros_like(linear.bias))
    assert model.tokens.pos_embed.std().item() == pytest.approx(0.2, rel=0.05)


def test_the_options_reach_every_piece():
    model = ViT(tiny(mlp_ratio=2, qkv_bias=False, dropout=0.2, norm_eps=0.01, pool="mean"))
    assert model.config.pool == "mean"
    assert {m.eps for m in model.modules() if isinstance(m, nn.LayerNorm)} == {0.01}
    for block in model.blocks:
        assert block.attn.qkv.bias is None
        assert block.attn.num_heads == 3
        assert block.mlp.fc1.out_features == 24
        assert block.attn.dropout.p == block.mlp.dropout.p == 0.2
    assert model.tokens.dropout.p == 0.2


# pool_tokens -------------------------------------------------------------------------------------


def test_cls_alone_is_what_is_read_unless_said_otherwise():
    tokens = torch.randn(2, 7, 12)
    assert torch.equal(pool_tokens(tokens), tokens[:, 0])


class LastRead(ViT):
    """A ViT of somebody's own whose head reads the last patch, without a norm."""

    def read(self, x):
        return x[:, -1]


def test_a_subclass_says_in_one_place_what_its_head_reads():
    model, images = shake(LastRead(tiny())).eval(), torch.randn(2, 3, 16, 16)
    x = model.blocks(model.tokens(model.patch_embed(images)))
    assert torch.equal(model.pre_logits(images), x[:, -1])
    assert torch.equal(model(images), model.head(x[:, -1]))
    close(model(images, return_attention=True)[0], model(images))
    assert torch.equal(model.features(images), model.norm(x))


def test_without_classes_the_model_gives_what_a_head_would_read():
    model, images = shake(ViT(tiny(num_classes=0))).eval(), torch.randn(2, 3, 16, 16)
    assert torch.equal(model(images), model.pre_logits(images))
    assert [out.shape for out in model(images, return_attention=True)[1]] == [(2, 3, 17, 17)] * 2
    names = [name for name in ViT(tiny()).state_dict() if not name.startswith("head.")]
    assert list(model.state_dict()) == names


# at_size -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(8, 20), 32, (20, 8), 4])
def test_at_another_size_only_the_positions_differ_and_nothing_is_shared(size):
    model, images = shake(ViT(tiny(image_size=(8, 20)))), torch.randn(2, 3, 8, 20)
    before, expected = model(images), copy.deepcopy(model.state_dict())
    other = model.at_size(size)
    assert other.config == tiny(image_size=size)
    assert other(torch.randn(2, 3, *other.patch_embed.image_size)).shape == (2, 5)
    grid = other.patch_embed.grid
    expected["tokens.pos_embed"] = resize_positions(expected["tokens.pos_embed"], (2, 5), grid)
    for name, weights in other.state_dict().items():
        assert torch.equal(expected[name], weights), name
    shake(other)
    assert torch.equal(model(images), before)
    assert model.config == tiny(image_size=(8, 20))


@pytest.mark.parametrize("frozen", [True, False])
def test_at_size_keeps_float_types_modes_and_frozen_weights(frozen):
    model = ViT(tiny()).to(torch.bfloat16).requires_grad_(not frozen)
    model.head.double()
    model.norm.float().requires_grad_(frozen)
    model.blocks[0].eval()
    other = model.at_size(32)
    for one, same in zip(model.parameters(), other.parameters(), strict=True):
        assert (one.dtype, one.requires_grad) == (same.dtype, same.requires_grad)
    for one, same in zip(model.modules(), other.modules(), strict=True):
        assert one.training == same.training


class WithMemory(ViT):
    """A ViT of somebody's own: another class, with a buffer and an attribute."""

    def __init__(self, config):
        super().__init__(config)
        self.register_buffer("seen", torch.tensor(3))
        self.note = ["mine"]


def test_another_head_is_new_and_all_else_is_as_it_was():
    model, images = shake(WithMemory(tiny(pool="mean"))).eval(), torch.randn(2, 3, 16, 16)
    model.to(torch.bfloat16).requires_grad_(False)
    before, wanted = model(images.bfloat16()), model.pre_logits(images.bfloat16())
    other, without = model.with_classes(500), model.with_classes(0)
    assert torch.equal(without(images.bfloat16()), wanted)
    for one, classes in ((other, 500), (without, 0)):
        assert type(one) is WithMemory
        assert one.config == tiny(pool="mean", num_classes=classes)
        assert torch.equal(one.pre_logits(images.bfloat16()), wanted)
        shake(one)
    assert torch.equal(model(images.bfloat16()), before)
    learning = [name for name, p in other.named_parameters() if p.requires_grad]
    assert learning == ["head.weight", "head.bias"]
    head = other.with_classes(500).head
    assert head.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert not head.bias.any()
    assert head.weight.dtype == torch.bfloat16
    assert not any(part.training for part in other.modules())
    shapes = {name: p.shape for name, p in model.state_dict().items()}
    assert {name: p.shape for name, p in without.with_classes(5).state_dict().items()} == shapes


# ViTConfig ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(32, 48), (224, 224)])
def test_a_config_comes_back_from_json_and_equal_sizes_are_equal(size):
    config = ViTConfig(image_size=size)
    again = ViTConfig(**json.loads(json.dumps(dataclasses.asdict(config))))
    assert again == config == ViTConfig(image_size=list(size))
    assert hash(again) == hash(config)
    assert ViTConfig(image_size=(224, 224)) == ViTConfig(image_size=224)
    assert ViT(tiny()).at_size([16, 16]).config == tiny()


def test_the_fields_and_their_defaults():
    wanted = dict(image_size=224, patch_size=16, in_channels=3, num_classes=1000, embed_dim=768)
    wanted |= dict(depth=12, num_heads=12, mlp_ratio=4.0, qkv_bias=True, dropout=0.0, pool="cls")
    wanted |= dict(norm_eps=1e-6)
    assert [*dataclasses.asdict(ViTConfig()).items()] == [*wanted.items()]  # in this order
    assert ViTConfig() == ViTConfig.preset("B/16")


def test_numpys_whole_numbers_come_out_as_pythons():
    plain = tiny(image_size=(8, 20))
    sizes = {name: np.int32(getattr(plain, name)) for name in SIZES}
    config = tiny(image_size=(np.int64(8), np.uint8(20)), **sizes)
    assert hash(config) == hash(plain)
    assert json.dumps(dataclasses.asdict(config)) == json.dumps(dataclasses.asdict(plain))
    assert type(tiny(image_size=np.int64(16)).image_size) is int


def test_a_preset_takes_changes_also_such_as_only_fit_together():
    config = ViTConfig.preset("H/14", patch_size=16, image_size=160, embed_dim=100, num_heads=5)
    assert (config.patch_size, config.image_size, config.embed_dim) == (16, 160, 100)
    assert (config.depth, ViTConfig.preset("H/14").embed_dim) == (32, 1280)


SIZES = ["patch_size", "in_channels", "num_classes", "embed_dim", "depth", "num_heads"]
BAD = [
    *[(name, 0, ValueError) for name in [*SIZES, "image_size"] if name != "num_classes"],
    *[("num_classes", -1, ValueError), ("image_size", (16, 18), ValueError)],
    *[("depth", value, TypeError) for value in (1.0, True, None)],
    *[("image_size", size, TypeError) for size in [16.0, (16,), (16, "16"), np.array([4])]],
    *[("mlp_ratio", ratio, ValueError) for ratio in [-4.0, float("nan"), 1.3, 0.01]],
    *[(name, bad, TypeError) for name in ("mlp_ratio", "dropout") for bad in ("1", True)],
    *[("dropout", 1, ValueError), ("norm_eps", -1e-6, ValueError), ("num_heads", 5, ValueError)],
    *[("qkv_bias", bias, ValueError) for bias in [None, 1]],
    *[("pool", pool, ValueError) for pool in ["max", ["cls"]]],
]


@pytest.mark.parametrize(("name", "value", "error"), BAD)
def test_a_bad_value_is_refused_by_the_name_of_its_option(name, value, error):
    with pytest.raises(error, match={"num_heads": "heads", "image_size": "image"}.get(name, name)):
        tiny(**{name: value})
