"""vit_steps.pretrained: every layout gives its publisher's numbers, and nothing else gets in."""

import dataclasses
import json
import os
import pickle
import re
import sys
import threading
from argparse import Namespace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import torch
from helpers import Bomb, close, sh
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from vit_steps import ViT, ViTConfig, sample_photo
from vit_steps.pretrained import Preprocess, load, save_hugging_face
from vit_steps.pretrained.settings import read_config
from vit_steps.training import save_model

IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
D, L, P, SIDE, HIDDEN, CLASSES = 128, 2, 8, 24, 256, 5  # 2 heads of 64


def shaken(model):
    """Every parameter away from its start, so that a lost bias, norm or position shows."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.02 * torch.randn(parameter.shape, generator=generator)
    return model.eval()


def little(in_channels=3, **changes):
    return ViT(ViTConfig(SIDE, P, in_channels, 3, 24, 1, 4, **changes))


def stored(tensors, path):
    if path.suffix == ".npz":
        np.savez(path, **{name: tensor.numpy() for name, tensor in tensors.items()})
    elif path.suffix == ".safetensors":
        save_file(tensors, path)
    else:
        torch.save(tensors, path)
    return path


def refused(message, *arguments, **options):
    """Load what must be refused with this message, a pattern; give all that is said."""
    with pytest.raises(ValueError, match=message) as caught:
        load(*arguments, **options)
    return str(caught.value)


# Hugging Face: against transformers itself -------------------------------------------------------


def small(folder, kind="ViTForImageClassification", **changes):
    """A small model of transformers, random, as its own save_pretrained writes it."""
    import transformers
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.manual_seed(0)
    sizes = dict(hidden_size=D, num_attention_heads=2, intermediate_size=HIDDEN, image_size=SIDE)
    sizes |= dict(patch_size=P, num_hidden_layers=L, num_labels=CLASSES) | changes
    model = shaken(getattr(transformers, kind)(transformers.ViTConfig(**sizes)))
    model.save_pretrained(folder)
    return model


def test_hugging_faces_bare_dino_gives_the_same_tokens(tmp_path):
    theirs, images = small(tmp_path, "ViTModel"), torch.randn(2, 3, SIDE, SIDE)
    refused(r"has no head; give num_classes", tmp_path)
    loaded, bare = load(tmp_path, num_classes=3), load(tmp_path, num_classes=0)
    expected = theirs(images).last_hidden_state
    close(loaded.model.features(images), expected)
    close(bare.model(images), expected[:, 0])
    assert loaded.unused == ("pooler.dense.bias", "pooler.dense.weight")
    assert loaded.model(images).shape == (2, 3)
    assert (loaded.config.num_classes, bare.config.num_classes) == (3, 0)
    assert "2 left over (pooler.dense.bias, pooler.dense.weight)" in str(loaded)


CHANGES = [
    {}, dict(qkv_bias=False), dict(intermediate_size=500), dict(num_attention_heads=8),
    dict(image_size=[16, 32]), dict(num_channels=1), dict(layer_norm_eps=1e-3),
]  # fmt: skip


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_hugging_faces_classifier_gives_the_same_logits(changes, tmp_path):
    theirs, loaded = small(tmp_path, **changes), load(tmp_path)
    size, channels = loaded.model.patch_embed.image_size, loaded.config.in_channels
    images = torch.randn(2, channels, *size)
    expected = theirs(images).logits
    close(loaded.model(images), expected)
    assert expected.std() > 0.1
    assert (loaded.layout, loaded.unused) == ("Hugging Face", ())
    assert set(loaded.used) == set(load_file(tmp_path / "model.safetensors"))
    assert loaded.classes[:2] == ("LABEL_0", "LABEL_1")
    assert loaded.config.norm_eps == changes.get("layer_norm_eps", 1e-12)
    half = (0.5,) * channels
    assert loaded.preprocess == Preprocess(size, mean=half, std=half)
    assert not loaded.model.training
    assert all(p.requires_grad for p in loaded.model.parameters())


def test_names_of_the_classes_come_from_config_json(tmp_path):
    names = tuple(f"kind {number}" for number in range(CLASSES))
    small(tmp_path, id2label=dict(enumerate(names)))
    assert load(tmp_path).classes == load(tmp_path / "model.safetensors").classes == names
    other = (tmp_path / "model.safetensors").rename(tmp_path / "my_vit.safetensors")
    # The config.json beside it may be another model's.
    alone = load(other, num_heads=2)
    assert (alone.classes, alone.config.norm_eps) == ((), 1e-12)
    other.rename(tmp_path / "model.safetensors")
    loaded = load(tmp_path, num_classes=3)
    assert loaded.classes == ()
    assert set(loaded.unused) == {"classifier.weight", "classifier.bias"}


def test_what_we_write_transformers_reads(tmp_path):
    from transformers import ViTForImageClassification

    config = ViTConfig(SIDE, P, num_classes=3, embed_dim=24, depth=2, num_heads=4, norm_eps=1e-5)
    model, images = shaken(ViT(config)), torch.randn(2, 3, SIDE, SIDE)
    # First with a preprocessor_config.json, which must not be left there for another model.
    save_hugging_face(model, tmp_path / "new", preprocess=Preprocess((SIDE, SIDE), 30))
    save_hugging_face(model, tmp_path / "new", ("ant", "bee", "cat"))
    theirs = ViTForImageClassification.from_pretrained(tmp_path / "new").eval()
    loaded = load(tmp_path / "new")
    close(theirs(images).logits, model(images))
    close(loaded.model(images), model(images), 1e-6)
    assert loaded.config == config
    assert loaded.classes == ("ant", "bee", "cat") == tuple(theirs.config.id2label.values())
    assert theirs.config.label2id == {"ant": 0, "bee": 1, "cat": 2}
    assert sorted(os.listdir(tmp_path / "new")) == ["config.json", "model.safetensors"]


PREPARED = {
    "stretched": Preprocess((40, 56), None, "bicubic", *IMAGENET),
    "cut": Preprocess((48, 48), 60),
    "cut as an oblong": Preprocess((48, 40), 48, "bicubic"),
    "enlarged": Preprocess((48, 48), 40),
}


@pytest.mark.parametrize("preprocess", PREPARED.values(), ids=PREPARED)
def test_hugging_faces_pipeline_names_a_photo_as_we_do(preprocess, tmp_path):
    from transformers import pipeline

    torch.manual_seed(1)
    model = shaken(ViT(ViTConfig(preprocess.size, 8, 3, 4, 64, 2, 4)))
    model.head.weight.data *= 10  # shares that differ
    names = ("ant", "bee", "cat", "dog")
    save_hugging_face(model, tmp_path, names, preprocess)
    answers = pipeline("image-classification", str(tmp_path))(str(sample_photo()), top_k=4)
    by_name = {answer["label"]: answer["score"] for answer in answers}
    theirs = torch.tensor([by_name[name] for name in names])
    shares = model(preprocess(sample_photo()))[0].softmax(dim=-1)
    other = model(Preprocess(preprocess.size, 90)(sample_photo()))[0].softmax(dim=-1)
    assert theirs.argmax() == shares.argmax()
    close(theirs, shares, 0.005)  # theirs is rounded to bytes in between
    assert (other - shares).abs().max() > 0.02, "any preprocessing would do"
    if preprocess.shorter_side == 40:
        preprocess = dataclasses.replace(preprocess, shorter_side=48)  # theirs would not cover it
    assert load(tmp_path).preprocess == preprocess


def test_a_model_that_is_compiled_or_has_no_head_is_written_whole(tmp_path):
    model, images = shaken(little()), torch.randn(2, 3, SIDE, SIDE)
    save_hugging_face(torch.compile(model, backend="eager"), tmp_path)
    assert torch.equal(load(tmp_path).model(images), model(images))
    bare = model.with_classes(0)
    save_hugging_face(bare, tmp_path)
    assert torch.equal(load(tmp_path, num_classes=0).model(images), bare(images))


ALONE = "leave preprocess out, and prepare"
EXCHANGED = little()
EXCHANGED.blocks[0].mlp = torch.nn.Identity()


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (little(pool="mean"), {}, "cls token"),
        (EXCHANGED, {}, "this ViT is not the ViT of its config"),
        (little(), dict(classes=("ant", "bee")), "2 names for 3 classes"),
        (little(), dict(preprocess=Preprocess((SIDE, SIDE), mean=(0.5,), std=(0.5,))), ALONE),
        (little(), dict(preprocess=Preprocess((SIDE, SIDE), ink=True)), ALONE),
        # Of a square photo theirs would be half black.
        (little(), dict(preprocess=Preprocess((SIDE, 48), SIDE)), ALONE),
    ],
    ids=["mean", "exchanged", "names", "grey", "ink", "padded"],
)
def test_what_hugging_face_cannot_hold_or_prepare_is_not_written(model, options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        save_hugging_face(model, tmp_path, **options)
    assert os.listdir(tmp_path) == []
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(ValueError, match=r"taken.model\.safetensors cannot be written"):
        save_hugging_face(little(), tmp_path / "taken")


def test_preprocessor_config_json_is_followed(tmp_path):
    small(tmp_path)
    file, (mean, std) = tmp_path / "preprocessor_config.json", IMAGENET
    file.write_text(json.dumps(dict(size=224, resample=3, image_mean=mean, image_std=std)))
    assert load(tmp_path).preprocess == Preprocess((SIDE, SIDE), None, "bicubic", *IMAGENET)
    better = Preprocess((SIDE, SIDE), 27, "bicubic", *IMAGENET)
    assert load(tmp_path, preprocess=better).preprocess is better
    expected = Preprocess((SIDE, SIDE), 28, "bilinear", (0.0,) * 3, (1.0,) * 3)
    for size, crop in (
        ({"shortest_edge": 28}, False),
        ({"height": 28, "width": 28}, True),
        (28, True),
    ):
        file.write_text(json.dumps(dict(size=size, do_center_crop=crop, do_normalize=False)))
        assert load(tmp_path).preprocess == expected
    file.write_text(json.dumps(dict(resample=1)))
    refused(r"cannot be followed: .*Pillow's number 1", tmp_path)


# Files of this package ---------------------------------------------------------------------------


def test_a_file_of_our_training_is_loaded_with_all_that_it_says(tmp_path):
    model = shaken(little(1, pool="mean"))
    preprocess = Preprocess((SIDE, SIDE), 30, "bicubic", (0.1,), (0.2,), ink=True)
    names, measured = ("ant", "bee", "cat"), {"result": {"part": "test", "accuracy": 0.5}}
    path, images = tmp_path / "my.safetensors", torch.randn(2, 1, SIDE, SIDE)
    save_model(model, path, names, preprocess, measured)

    loaded = load(path)
    assert torch.equal(loaded.model(images), model(images))
    assert (loaded.config, loaded.classes) == (model.config, names)
    assert (loaded.preprocess, loaded.measured) == (preprocess, measured)
    assert (loaded.layout, loaded.unused) == ("vit_steps", ())
    assert set(loaded.used) == set(model.state_dict())

    other = load(path, num_classes=7)
    assert torch.equal(other.model.with_classes(0)(images), model.with_classes(0)(images))
    assert (other.config.num_classes, other.classes, other.preprocess) == (7, (), preprocess)
    assert set(other.unused) == {"head.weight", "head.bias"}
    path.write_bytes(path.read_bytes()[:-4])
    refused(r"^\S*my.safetensors is refused", path)


# The other layouts: one model under the names, and with the axes, of each -------------------------

# timm's name of each piece, torchvision's, and Google's, where a third stands for qkv.
PIECES = [line.split() for line in """
cls_token class_token cls
pos_embed encoder.pos_embedding Transformer.posembed_input.pos_embedding
patch_embed.proj conv_proj embedding
blocks. encoder.layers.encoder_layer_ Transformer.encoderblock_
norm1 ln_1 LayerNorm_0
norm2 ln_2 LayerNorm_2
attn.qkv. self_attention.in_proj_ MultiHeadDotProductAttention_1.qkv.
attn.proj self_attention.out_proj MultiHeadDotProductAttention_1.out
mlp.fc1 mlp.0 MlpBlock_3.Dense_0
mlp.fc2 mlp.3 MlpBlock_3.Dense_1
norm. encoder.ln. Transformer.encoder_norm.
head. heads.head. head.
""".strip().splitlines()]  # fmt: skip
CUT = dict(size=(SIDE, SIDE), shorter_side=27, mean=IMAGENET[0], std=IMAGENET[1])
FILES = {  # of each layout its name, its number of heads, and how it wants its pictures
    "timm": ("vit.safetensors", 2, Preprocess(**CUT, interpolation="bicubic")),
    "torchvision": ("vit.pth", 2, Preprocess(**CUT)),
    "Google": ("vit.npz", 4, Preprocess((SIDE, SIDE))),
}
each_layout = pytest.mark.parametrize("layout", FILES)


def ours(heads):
    config = ViTConfig(SIDE, P, 3, CLASSES, D, L, heads, mlp_ratio=HIDDEN / D)
    torch.manual_seed(heads)
    return shaken(ViT(config))


def tensors_of(layout):
    """The weights of `ours` as a file of this layout holds them."""
    column, (_, heads, _) = [*FILES].index(layout), FILES[layout]
    tensors = {}
    for name, tensor in ours(heads).state_dict().items():
        name = name.removeprefix("tokens.")
        for row in PIECES:
            name = name.replace(row[0], row[column])
        tensors[name] = tensor.clone()
    return as_flax_keeps(tensors, heads) if layout == "Google" else tensors


def as_flax_keeps(tensors, h):
    """Kernels map x by x @ kernel, and heads have an axis of their own."""
    arrays = {}
    for name, t in tensors.items():
        name = name.replace(
            "weight", "scale" if "orm_" in name or "_norm" in name else "kernel"
        ).replace(".", "/")
        t = t.T if t.ndim == 2 else t
        if "/qkv/" in name:
            for third, part in zip(("query", "key", "value"), t.chunk(3, dim=-1), strict=True):
                arrays[name.replace("qkv", third)] = part.reshape(*part.shape[:-1], h, -1)
            continue
        t = t.reshape(h, -1, D) if name.endswith("out/kernel") else t
        arrays[name] = t.permute(2, 3, 1, 0) if t.ndim == 4 else t
    return arrays


@each_layout
def test_the_layout_is_recognised_and_gives_the_publishers_numbers(layout, tmp_path):
    tensors, (name, heads, preprocess) = tensors_of(layout), FILES[layout]
    num_heads = None if layout == "Google" else 2  # Google's tensors say it themselves
    loaded, model = load(stored(tensors, tmp_path / name), num_heads=num_heads), ours(heads)
    images = torch.randn(2, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(1))
    assert torch.equal(loaded.model(images), model(images))
    assert (loaded.layout, set(loaded.used)) == (layout, set(tensors))
    assert (loaded.config, loaded.preprocess) == (model.config, preprocess)


def test_other_names_and_floats_of_the_same_model_load_too(tmp_path):
    weights, images = tensors_of("timm"), torch.randn(1, 3, SIDE, SIDE)
    older = {  # as older files of torchvision name them
        name.replace("mlp.0", "mlp.linear_1").replace("mlp.3", "mlp.linear_2"): tensor
        for name, tensor in tensors_of("torchvision").items()
    }
    doubles = {name: tensor.double() for name, tensor in weights.items()}
    for content in (doubles, older):
        model = load(stored(content, tmp_path / "vit.pth"), num_heads=2).model
        assert torch.equal(model(images), ours(2)(images))
    rounded = {name: tensor.bfloat16() for name, tensor in weights.items()}
    model = load(stored(rounded, tmp_path / "vit.safetensors"), num_heads=2).model
    assert torch.equal(model.head.weight, rounded["head.weight"].float())
    theirs, path = small(tmp_path), tmp_path / "model.safetensors"
    deit = {name.replace("vit.", "deit."): tensor for name, tensor in load_file(path).items()}
    loaded = load(stored(deit, path))
    close(loaded.model(images), theirs(images).logits)
    assert loaded.layout == "Hugging Face"


def test_the_pre_logits_layer_of_older_google_files_goes_with_the_head(tmp_path):
    more = {"pre_logits/kernel": torch.ones(D, D), "pre_logits/bias": torch.ones(D)}
    path = stored(tensors_of("Google") | more, tmp_path / "vit.npz")
    refused(r"not ours: pre_logits/bias, pre_logits/kernel\. We have", path)
    loaded = load(path, num_classes=7)
    assert loaded.config.num_classes == 7
    assert {"pre_logits/kernel", "head/kernel"} <= set(loaded.unused)


# What no tensor says -----------------------------------------------------------------------------


def test_heads_are_never_guessed(tmp_path):
    """128 would make two heads of 64, and 24 none: either way somebody has to say it."""
    path = stored(tensors_of("timm"), tmp_path / "vit.safetensors")
    refused("heads share the width 128; give num_heads", path)
    assert load(path, num_heads=4).config.num_heads == 4
    refused("does not divide into 3 heads", path, num_heads=3)
    save_hugging_face(little(), tmp_path)
    for source in (stored(tensors_of("Google"), tmp_path / "vit.npz"), tmp_path):
        assert load(source).config.num_heads == 4
        refused("num_heads is 2, but the checkpoint says 4", source, num_heads=2)
    (tmp_path / "config.json").unlink()
    refused("nothing says how many heads share the width 24; give", tmp_path)


HEADS = [  # width, blocks, the MLP's width; what the config says; heads, or None where it asks
    (768, 12, 3072, {}, 12),
    (1024, 24, 4096, {}, 16),
    (1280, 32, 5120, {}, 16),
    (768, 6, 3072, {}, None),
    (1536, 40, 6144, {}, None),  # 24 in DINOv2's g, 16 in others
    (192, 12, 768, {}, None),  # 3 in DeiT-Ti and timm, 12 in MAE-Lite
    (384, 12, 1536, {}, None),
    (896, 12, 3584, dict(architecture="vit_tiny_patch16_224"), None),  # another width
    (384, 12, 1536, dict(num_attention_heads=12), 12),
    (192, 12, 768, dict(architecture="vit_tiny_patch16_224"), 3),
    (384, 12, 1536, dict(architecture="deit_small_patch16_224"), 6),
    (768, 2, 64, dict(architecture="vit_base_patch16_224", model_args=dict(num_heads=6)), 6),
]


@pytest.mark.parametrize(("embed_dim", "depth", "hidden", "config", "heads"), HEADS)
def test_the_number_of_heads_is_published_stored_or_asked_for(
    embed_dim, depth, hidden, config, heads
):
    shapes = {"patch_embed.proj.weight": (embed_dim, 3, 14, 14), "tokens.pos_embed": (1, 257, 1)}
    shapes |= {f"blocks.{block}.mlp.fc1.weight": (hidden, embed_dim) for block in range(depth)}
    weights = {name: torch.empty(shape, device="meta") for name, shape in shapes.items()}
    if heads:
        assert read_config(weights, "timm", config, None).num_heads == heads
    else:
        with pytest.raises(ValueError, match=f"the width {embed_dim}; give num_heads"):
            read_config(weights, "timm", config, None)
    if heads and config:
        with pytest.raises(ValueError, match=f"num_heads is 1, but the checkpoint says {heads}"):
            read_config(weights, "timm", config, 1)
    else:  # who says it knows better than the table of published ones
        assert read_config(weights, "timm", config, 8).num_heads == 8


def test_timms_config_tells_its_pooling_and_its_preprocessing(tmp_path):
    tensors, images = tensors_of("timm"), torch.randn(2, 3, SIDE, SIDE)
    stored(tensors, tmp_path / "model.safetensors")
    pictures = dict(crop_pct=0.9, interpolation="bicubic", mean=[0.5] * 3, std=[0.5] * 3)
    config = dict(model_args=dict(num_heads=2), pretrained_cfg=pictures)
    for word, pool in (("token", "cls"), ("avg", "mean")):
        (tmp_path / "config.json").write_text(json.dumps(config | dict(global_pool=word)))
        loaded = load(tmp_path)
        assert loaded.config.pool == pool
        assert loaded.preprocess == Preprocess((SIDE, SIDE), 26, "bicubic")
        tokens = loaded.model.features(images)
        pooled = tokens[:, 0] if pool == "cls" else tokens[:, 1:].mean(dim=1)
        expected = pooled @ tensors["head.weight"].T + tensors["head.bias"]
        close(loaded.model(images), expected)
    (tmp_path / "config.json").write_text(json.dumps(config | dict(global_pool="map")))
    refused("its head reads the tokens by 'map'", tmp_path)


def test_a_config_that_does_not_fit_is_refused(tmp_path):
    small(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    for changes, message in (
        (dict(hidden_act="gelu_new"), "asks for gelu_new"),
        (dict(num_attention_heads="two"), "num_heads is 'two'"),
        (dict(image_size=32), "9 patches of 8 pixels do not make 32×32"),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config | changes))
        refused(message, tmp_path)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 300) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
CONFIG = ("num_attention_heads", "layer_norm_eps", "hidden_act", "image_size", "id2label",
          "pretrained_cfg", "architecture", "global_pool", "model_args", "mean")  # fmt: skip
PICTURES = ("size", "resample", "do_center_crop", "do_normalize", "image_mean", "image_std")


@pytest.mark.slow
@settings(max_examples=80)
@given(
    config=st.dictionaries(st.sampled_from(CONFIG), values),
    pictures=st.dictionaries(st.sampled_from(PICTURES), values),
)
def test_any_settings_give_a_model_or_a_message(config, pictures, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp() / "any"
    if not folder.exists():
        folder.mkdir()
        stored(tensors_of("timm"), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "preprocessor_config.json").write_text(json.dumps(pictures))
    try:
        loaded = load(folder, num_heads=2)
    except ValueError:
        refused(re.escape(str(folder / "model.safetensors")) + ": .{15}", folder, num_heads=2)
    else:
        assert loaded.model(loaded.preprocess(torch.rand(3, 30, 40))).isfinite().all()


# Files that are not what they should be ----------------------------------------------------------


@each_layout
def test_missing_extra_and_misshapen_tensors_are_named(layout, tmp_path):
    tensors, path, heads = tensors_of(layout), tmp_path / FILES[layout][0], FILES[layout][1]

    def refusal(changed):
        return refused(f"^{re.escape(str(path))}: ", stored(changed, path), num_heads=heads)

    assert "not ours: layer_scale. We" in refusal(tensors | {"layer_scale": torch.ones(3)})
    for name in tensors:
        if re.search(r"blocks\.1\.|encoder_layer_1\.|encoderblock_1/", name):
            continue  # one block is enough
        message = refusal({n: t for n, t in tensors.items() if n != name})
        assert f"missing: {name}. We" in message
        assert f"{name} ()" in refusal(tensors | {name: tensors[name].sum()})
        refusal(tensors | {name: torch.cat([tensors[name]] * 2)})


@pytest.mark.parametrize("ending", [".pth", ".pt", ".bin", ".ckpt", ".npz"])
def test_a_hostile_pickle_is_refused_and_does_nothing(ending, tmp_path):
    path, trace = tmp_path / f"vit{ending}", tmp_path / "trace"
    content, reason = {"head.weight": Bomb(trace)}, "holds more than weights.*nothing of it was"
    torch.save(content, path)
    if ending == ".npz":
        np.savez(path, cls=np.array([Bomb(trace)], dtype=object), allow_pickle=True)
        reason = "allow_pickle|refused"
    else:
        refused(r"more than weights \(\w+\.mkdir\).*state_dict\(\)", path)
    for data in (path.read_bytes(), pickle.dumps(content)):
        path.write_bytes(data)
        refused(reason, path)
        assert not trace.exists()
    pickle.loads(data)
    assert trace.exists(), "the pickle was not hostile at all"


@pytest.mark.parametrize("ending", [".safetensors", ".npz", ".pth"])
def test_a_broken_file_is_refused_by_its_name(ending, tmp_path):
    layout = "Google" if ending == ".npz" else "timm"
    path = stored(tensors_of(layout), tmp_path / f"vit{ending}")
    data = path.read_bytes()
    for share in (0.0, 0.01, 0.5, 0.99):
        path.write_bytes(data[: int(len(data) * share)])
        refused(rf"vit\{ending} is refused", path)


def test_other_mistakes_get_a_message(tmp_path):
    small(tmp_path / "model")
    for name in ("notes.txt", "model.safetensors.index.json", "empty/model.h5"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("no weights")
    start = {"tokens.cls_token": torch.zeros(1), "patch_embed.proj.weight": torch.zeros(1)}
    cases = {
        tmp_path / "nowhere.safetensors": "is not there",
        "no id at all": "is not there",
        tmp_path / "empty": "holds no model.safetensors or .*shards.*not read",
        tmp_path / "model.safetensors.index.json": "one of several",
        tmp_path / "notes.txt": "its ending is not",
        stored([1, 2], tmp_path / "a.pth"): "a.pth is refused: .*tensors by name",
        stored({"resnet.w": torch.zeros(3)}, tmp_path / "b.pth"): "in no layout.*resnet.w",
        stored({"steps": torch.zeros(3).long()}, tmp_path / "c.pth"): "steps .* tensor of floats",
        stored(start, tmp_path / "d.safetensors"): "does not hold a ViT of vit_steps",
        stored(tensors_of("timm"), tmp_path / "model-00001-of-00002.safetensors"): "one of several",
    }
    for source, message in cases.items():
        refused(message, source)
    (tmp_path / "model/config.json").write_text("[1]")
    refused(r"config\.json", tmp_path / "model")
    refused(r"revision is 'v2'.* not on the hub", tmp_path / "model", revision="v2")
    for name in ("num_classes", "num_heads"):
        for value, error in ((-1, ValueError), (2.5, TypeError)):
            with pytest.raises(error, match=name):
                load(tmp_path, **{name: value})


# The hub -----------------------------------------------------------------------------------------

SHAS = {"main": "a" * 40, "v2": "b" * 40}


class SmallHub(BaseHTTPRequestHandler):
    """A hub with `server.models`, files by name; after a visit to /mute it is silent."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        if server.mute:
            server.closing.wait()
        server.mute = self.path == "/mute"
        asked = re.match(r"(?:/api/models)?/someone/(\w+)/?(\w*)/?(\w*)/?([\w.]*)", self.path)
        repo, what, revision, file = asked.groups() if asked else ("", "", "none", "")
        files, sha = server.models.get(repo, {}), SHAS.get(revision or "main", revision)
        sizes = [dict(type="file", path=n, size=len(files[n]), oid="0" * 40) for n in files]
        info = dict(id=f"someone/{repo}", sha=sha, siblings=[dict(rfilename=n) for n in files])
        body = files[file] if file else json.dumps(sizes if what == "tree" else info).encode()
        known = sha in SHAS.values()
        self.send_response(200 if known else 404)
        headers = {"Content-Length": str(len(body)), "ETag": f"{sha}-{file}", "X-Repo-Commit": sha}
        for name, value in (headers if known else {"X-Error-Code": "RevisionNotFound"}).items():
            self.send_header(name, value)
        self.end_headers()
        if known and self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815


@pytest.fixture
def small_hub(tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), SmallHub)
    server.mute, server.closing = False, threading.Event()
    files = {"config.json": b'{"model_args": {"num_heads": 2}}', "tf_model.h5": b"not needed"}
    for name in ("pytorch_model.bin", "model.safetensors"):
        files[name] = stored(tensors_of("timm"), tmp_path / name).read_bytes()
    old = {name: data for name, data in files.items() if name != "model.safetensors"}
    server.models = {"vit": files, "old": old}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.closing.set()
    server.shutdown()
    server.server_close()


VISITS = """
import sys, time, urllib.request
from contextlib import suppress
from vit_steps.pretrained import load, loading

def visit(repo="vit", **options):
    try:
        print(load(f"someone/{repo}", **options))
    except ValueError as error:
        print(error)

visit()
visit(revision="v2")
visit(revision="v3")
visit("old")
with suppress(OSError):
    urllib.request.urlopen(sys.argv[1] + "/mute")
loading.WAIT, start = 0.5, time.monotonic()
visit()
visit(revision="b" * 40)
visit(revision="v4")
print(time.monotonic() - start < 10)
"""


@pytest.mark.slow
def test_huggingface_hub_itself_brings_revisions_and_its_cache(small_hub, tmp_path):
    """The real library, against a small hub of our own that falls silent in between."""
    home = tmp_path / "home"
    hub = dict(HF_ENDPOINT=small_hub, HF_HOME=str(home), HF_HUB_DISABLE_PROGRESS_BARS="1")
    hub |= dict(HF_HUB_DISABLE_XET="1", HF_HUB_DISABLE_TELEMETRY="1", HF_HUB_OFFLINE="0")
    visits = sh(sys.executable, "-c", VISITS, small_hub, env=os.environ | hub, timeout=90)
    good = "timm layout: 32 tensors used, 0 left over"
    unknown, silent = (f"someone/vit (revision {v}) is not in the cache" for v in ("v3", "v4"))
    expected = [good, good, unknown, good, good, good, silent, "True"]
    printed = visits.splitlines()
    assert [line[: len(start)] for line, start in zip(printed, expected, strict=True)] == expected
    assert "404" in printed[2]  # huggingface_hub's own words
    vit, old = (home / "hub" / f"models--someone--{name}" / "snapshots" for name in ("vit", "old"))
    assert sorted(os.listdir(vit)) == sorted(SHAS.values())
    assert sorted(os.listdir(vit / SHAS["main"])) == ["config.json", "model.safetensors"]
    assert sorted(os.listdir(old / SHAS["main"])) == ["config.json", "pytorch_model.bin"]


# Files as people write them ----------------------------------------------------------------------

WRAPPED = {
    "the file itself": (lambda w: w, ""),
    "Lightning": (lambda w: {"epoch": 3, "state_dict": under("model.", w)}, "'state_dict'.*model"),
    "DataParallel": (lambda w: {"model_state_dict": under("module.", w)}, "module. is taken off"),
    "compiled": (lambda w: {"net": under("_orig_mod.", w)}, "_orig_mod., torch.compile's"),
    "timm": (lambda w: {"state_dict": shifted(w), "state_dict_ema": w}, "of 'state_dict_ema'.*not"),
    "DINO": (
        lambda w: dict(student=shifted(w), teacher=under("backbone.", w), args=Namespace(lr=1.0)),
        "of 'teacher'.*not of student; backbone. is taken off",
    ),
    "MoCo": (
        lambda w: {
            "state_dict": under("module.base_encoder.", w)
            | under("module.momentum_encoder.", shifted(w))
            | {"module.queue_ptr": torch.zeros(1).long()}
        },
        "module.base_encoder. is taken off",
    ),
    "visual": (lambda w: under("visual.", w) | {"text.w": torch.ones(3)}, "visual. is taken off"),
    # Not in any list: a name of one's own outside, and one inside.
    "own": (lambda w: {"steps": 7, "my_vit": under("vision.trunk.", w)}, "'my_vit'.*vision.trunk."),
}


def under(prefix, tensors):
    return {prefix + name: tensor for name, tensor in tensors.items()}


def shifted(tensors):
    return {name: tensor + 1 for name, tensor in tensors.items()}


@pytest.mark.parametrize("wrap", WRAPPED)
def test_what_weights_are_wrapped_in_is_taken_off_and_said(wrap, tmp_path):
    images, (wrapped, note) = torch.randn(2, 3, SIDE, SIDE), WRAPPED[wrap]
    ending = (".pth", ".pth.tar", ".ckpt")[[*WRAPPED].index(wrap) % 3]
    loaded = load(stored(wrapped(tensors_of("timm")), tmp_path / f"vit{ending}"), num_heads=2)
    assert torch.equal(loaded.model(images), ours(2)(images))
    assert re.search(note, str(loaded))
    assert "assumed, Preprocess" in str(loaded)
    assert loaded.preprocess == FILES["timm"][2]
    assert len(loaded.used) == 32


HEADS_OF = ["heads.", "classifier.", "fc.", "head.1.", "classifier.2.", "head.fc."]


@pytest.mark.parametrize("head", HEADS_OF)
@pytest.mark.parametrize("prefix", ["", "backbone.", "module.vit."])
def test_a_head_of_another_name_is_taken_in_the_model_or_around_it(head, prefix, tmp_path):
    images, plain = torch.randn(2, 3, SIDE, SIDE), tensors_of("timm")
    outside = prefix.partition(".")[0] + "." if prefix == "module.vit." else ""
    tensors = {
        outside + n.replace("head.", head) if n.startswith("head.") else prefix + n: t
        for n, t in plain.items()
    }
    path = stored(tensors, tmp_path / "vit.pt")
    assert torch.equal(load(path, num_heads=2).model(images), ours(2)(images))
    bare = load(path, num_heads=2, num_classes=0)
    assert set(bare.unused) == {outside + head + "weight", outside + head + "bias"}
    more = {outside + head.split(".")[0] + ".0.weight": torch.ones(D)}
    refused("its head has several layers .*num_classes", stored(tensors | more, path), num_heads=2)


def test_our_own_vit_comes_back_from_a_plain_file(tmp_path):
    model, images = shaken(little()), torch.randn(2, 3, SIDE, SIDE)
    for name in ("own.safetensors", "own.pt", "own.pth.tar"):
        path = stored(model.state_dict(), tmp_path / name)
        loaded = load(path, num_heads=4)
        assert torch.equal(loaded.model(images), model(images))
        assert (loaded.layout, loaded.preprocess) == ("vit_steps", None)
        assert "assumed to read the cls token" in str(loaded)
        refused("nothing says how many heads", path)
    compiled = torch.compile(model, backend="eager").state_dict()  # of names of its own
    path = stored({"model": compiled}, tmp_path / "own.pt")
    assert torch.equal(load(path, num_classes=0, num_heads=4).model.norm.bias, model.norm.bias)
    save_model(model, tmp_path / "whole.safetensors")
    whole = tmp_path / "whole.safetensors"
    refused("num_heads is 2, but .* says 4", whole, num_heads=2)
    refused("image_size is 32, but .* says 24", whole, image_size=32)
    assert load(whole, num_heads=4, image_size=(24, 24)).config == model.config


@pytest.mark.parametrize("kind", ["ViTForImageClassification", "ViTModel"])
def test_names_that_transformers_has_in_memory_are_known(kind, tmp_path):
    theirs, bare = small(tmp_path, kind), kind == "ViTModel"
    path = stored(theirs.state_dict(), tmp_path / "vit.pt")
    loaded = load(path, num_heads=2, num_classes=0 if bare else None)
    images = torch.randn(2, 3, SIDE, SIDE)
    expected = theirs(images).last_hidden_state[:, 0] if bare else theirs(images).logits
    close(loaded.model(images), expected)
    assert loaded.config.norm_eps == 1e-12


def test_a_file_that_is_no_square_takes_its_size(tmp_path):
    model = shaken(ViT(ViTConfig((16, 32), P, 3, 3, 24, 1, 4)))
    tensors = {name.removeprefix("tokens."): t for name, t in model.state_dict().items()}
    path, images = stored(tensors, tmp_path / "vit.pth"), torch.randn(2, 3, 16, 32)
    refused(r"8 patches of 8 .*give image_size=\(height, width\)", path, num_heads=4)
    loaded = load(path, num_heads=4, image_size=(16, 32))
    assert torch.equal(loaded.model(images), model(images))
    assert loaded.preprocess.size == (16, 32)


FAMILY = {  # names that only they have
    "DINOv2 .*LayerScale": "blocks.0.ls1.gamma",
    "DINOv2 or DINOv3 with registers": "register_tokens",
    "DINOv2 or DeiT III": "encoder.layer.0.layer_scale1.lambda1",
    "SigLIP": "vision_model.embeddings.patch_embedding.weight",
    "BEiT": "blocks.0.attn.relative_position_bias_table",
    "CLIP": "visual.class_embedding",
    "Swin": "layers.0.blocks.0.attn.relative_position_bias_table",
    "ResNet": "layer1.0.conv1.weight",
    "distilled DeiT": "dist_token",
    "MAE": "decoder_blocks.0.norm1.weight",
    "SAM": "image_encoder.blocks.0.attn.rel_pos_h",
    "rotary": "blocks.0.mlp.w12.weight",
}


@pytest.mark.parametrize("family", FAMILY)
def test_a_model_of_another_family_is_named_before_anything_is_asked(family, tmp_path):
    tensors = tensors_of("timm") | {FAMILY[family]: torch.ones(3)}
    headless = {name: t for name, t in tensors.items() if not name.startswith("head.")}
    for content in (headless, under("module.", tensors), {"steps": torch.ones(1).long()} | tensors):
        refused(f"it is .*{family}.*library", stored(content, tmp_path / "vit.pth"))


def test_another_cnn_several_vits_and_a_config_of_another_kind_are_named(tmp_path):
    path, tensors = tmp_path / "vit.pth", tensors_of("timm")
    vgg = {f"features.{i}.weight": torch.ones(4, 4, 3, 3) for i in (0, 2, 5)}
    refused("is a convolutional network, no ViT: 3", stored(vgg, path))
    two = under("left.", tensors) | under("right.", tensors)
    refused(r"several ViTs \(left., right.\); save one", stored(two, path))
    refused(r"several models \(a, b\); save one", stored({"a": tensors, "b": tensors}, path))
    integer = tensors | {"norm.bias": torch.ones(D).long()}
    refused("norm.bias in it is not a tensor of floats", stored(integer, path), num_heads=2)
    less = {name: t for name, t in tensors.items() if name != "cls_token"}
    stored(less, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text('{"model_type": "hiera"}')
    refused("its config.json says 'hiera'; .*missing: cls_token", tmp_path)
    refused(r"https://a\.org/vit\.pth is an address; save", "https://a.org/vit.pth")
