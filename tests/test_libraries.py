"""What people put on a ViT works on ours: adapters, export, attribution, quantisation.

`pip install -e ".[libraries]"` brings what torch itself does not.
"""

import importlib
import io

import pytest
import torch
from helpers import close, needs, shake
from PIL import Image
from torch import nn
from torch.nn import functional as F

import vit_steps
from vit_steps import ViT, ViTConfig, pretrained, weights
from vit_steps.training import train_step

pytestmark = pytest.mark.slow
theirs = pytest.mark.filterwarnings("default")  # a library's own warnings are not our errors


@pytest.fixture
def model():
    return shake(ViT(ViTConfig(32, 8, 3, 10, embed_dim=48, depth=2, num_heads=4))).eval()


@pytest.fixture
def images():
    return torch.randn(5, 3, 32, 32)


def library(name):
    """The library, where it is installed."""
    needs(name.partition(".")[0])
    return importlib.import_module(name)


def test_symbolic_trace_is_refused_with_a_way_out(model):
    with pytest.raises(TypeError, match=r"torch\.export\.export\(model"):
        torch.fx.symbolic_trace(model)


@theirs
@pytest.mark.parametrize("targets", [["qkv", "proj", "fc1", "head"], ["qkv"], ["head"]])
def test_lora_learns_by_its_adapters_alone_and_merges(targets, model, images):
    peft = library("peft")
    before = model(images).detach()
    # "proj" is the attention's Linear and the convolution of the patch embedding.
    wrapped = peft.get_peft_model(model, peft.LoraConfig(r=4, target_modules=targets))
    close(wrapped(images), before)  # an adapter starts at zero
    optimizer = torch.optim.AdamW((p for p in wrapped.parameters() if p.requires_grad), lr=0.01)
    labels = torch.arange(5)
    losses = [train_step(wrapped, optimizer, images, labels) for _ in range(4)]
    assert losses[-1] < losses[0]
    learnt = {name for name, p in wrapped.named_parameters() if p.grad is not None}
    assert all("lora_" in name for name in learnt)
    for target in targets:
        assert any(f".{target}.lora_B" in name for name in learnt)
    assert any("patch_embed.proj.lora_B" in name for name in learnt) is ("proj" in targets)
    after = wrapped(images)
    assert not torch.allclose(after, before)
    merged = wrapped.merge_and_unload()
    assert isinstance(merged, ViT)
    linears = [name for name, m in merged.named_modules() if isinstance(m, nn.Linear)]
    assert {name.split(".")[-1] for name in linears} == {"qkv", "proj", "fc1", "fc2", "head"}
    close(merged(images), after)


@theirs
def test_torchao_quantises_every_linear(model, images):
    ao = library("torchao.quantization")
    before = model(images)
    ao.quantize_(model, ao.Int8DynamicActivationInt8WeightConfig())
    layers = [m for m in model.modules() if isinstance(m, nn.Linear)]
    assert len(layers) == 4 * 2 + 1
    assert all(type(layer.weight.data).__module__.startswith("torchao.") for layer in layers)
    after = model(images)
    assert F.cosine_similarity(before, after).min() > 0.99
    assert not torch.equal(before, after)


@theirs
@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_onnx_gives_the_same_logits_at_any_batch(pool, images):
    runtime = library("onnxruntime")
    library("onnxscript")
    config = ViTConfig(32, 8, 3, 10, embed_dim=48, depth=2, num_heads=4, pool=pool)
    model = shake(ViT(config)).eval()
    shapes = {"images": {0: torch.export.Dim("batch")}}
    program = torch.onnx.export(model, (images,), dynamo=True, dynamic_shapes=shapes)
    file = io.BytesIO()
    program.save(file)
    session = runtime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    for count in (1, 5, 8):
        others = torch.randn(count, 3, 32, 32)
        (logits,) = session.run(None, {"images": others.numpy()})
        close(torch.from_numpy(logits), model(others))


@theirs
def test_integrated_gradients_add_up_to_the_difference_of_the_logits(model, images):
    attr = library("captum.attr")
    dark, target = torch.zeros_like(images), torch.arange(5)
    shares = attr.IntegratedGradients(model).attribute(images, dark, target=target, n_steps=200)
    difference = (model(images) - model(dark)).diagonal()  # image i is asked for class i
    close(shares.sum(dim=(1, 2, 3)), difference, atol=1e-3)
    assert difference.abs().max() > 0.1


@theirs
def test_transformers_takes_our_folder_with_a_new_head_as_lesson_10_says(tmp_path):
    transformers = library("transformers")
    photos = weights.load("photos")
    pretrained.save_hugging_face(photos.model, tmp_path, photos.classes, photos.preprocess)
    options = dict(num_labels=6, ignore_mismatched_sizes=True)
    vit = transformers.ViTForImageClassification.from_pretrained(tmp_path, **options).eval()
    prepare = transformers.AutoImageProcessor.from_pretrained(tmp_path)
    x = prepare(Image.open(vit_steps.sample_photo()), return_tensors="pt")["pixel_values"]
    assert vit(x).logits.shape == (1, 6)
    close(vit.vit(x).last_hidden_state, photos.model.features(x), 1e-4)
    close(x, photos.preprocess(vit_steps.sample_photo()), 0.1)  # another way of shrinking
