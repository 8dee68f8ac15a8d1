"""The model survives what people do to a model: each test does it, and looks for the same numbers.

Other people's libraries (peft, ONNX, captum, quantisation) stand in test_libraries.py.
"""

import copy
import pickle

import pytest
import torch
from helpers import close, shake
from torch.nn import functional as F

from vit_steps import ViT, ViTConfig

TINY = dict(image_size=16, patch_size=4, embed_dim=12, depth=4, num_heads=3, num_classes=5)


@pytest.fixture
def model():
    return shake(ViT(ViTConfig(**TINY))).eval()


@pytest.fixture
def images():
    return torch.randn(3, 3, 16, 16)


# Copies ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_gives_the_same_logits_and_lives_alone(model, images, clone):
    other, before = clone(model), model(images)
    assert other.config == model.config
    assert torch.equal(other(images), before)
    with torch.no_grad():
        for p in other.parameters():
            p.zero_()
    assert torch.equal(model(images), before)


# Compilers ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("return_attention", [False, True])
def test_it_compiles_as_one_graph_with_the_same_gradients(model, images, return_attention):
    compiled = torch.compile(model.train(), fullgraph=True, backend="aot_eager")
    results = []
    for run in (compiled, model):
        model.zero_grad()
        out = run(images, return_attention=return_attention)
        logits = out[0] if return_attention else out
        logits.square().sum().backward()
        results.append([out, [p.grad.clone() for p in model.parameters()]])
    torch.testing.assert_close(*results, atol=1e-5, rtol=1e-4)
    x, mask = torch.randn(2, 17, 12), torch.ones(17, 17, dtype=torch.bool).tril()
    compiled = torch.compile(model.blocks, fullgraph=True, backend="aot_eager")
    close(compiled(x, mask), model.blocks(x, mask))


def test_it_is_exported_with_a_dynamic_batch(model, images):
    batch = torch.export.Dim("batch")
    program = torch.export.export(model, (images,), dynamic_shapes=({0: batch},))
    for size in (1, 2, 9):
        other = torch.randn(size, 3, 16, 16)
        close(program.module()(other), model(other))


# Devices, types and layouts ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("return_attention", [False, True])
def test_autocast_takes_images_of_32_and_of_16_bits(model, images, dtype, return_attention):
    wanted = model(images)
    with torch.autocast("cpu", dtype=dtype):
        for given in (images, images.to(dtype)):
            logits = model(given, return_attention=return_attention)
            logits = logits[0] if return_attention else logits
            assert logits.dtype == dtype
            assert (logits.float() - wanted).abs().max() < 0.05 * wanted.abs().max()


def test_a_copy_without_parameters_is_not_asked_for_their_type(model, images):
    """As nn.DataParallel makes them, one for each GPU: its weights are plain tensors."""
    embed = model.patch_embed
    copy_of_it = embed._replicate_for_data_parallel()
    copy_of_it.proj = embed.proj._replicate_for_data_parallel()
    for name, p in embed.proj.named_parameters():
        setattr(copy_of_it.proj, name, p.detach().clone())
    assert next(copy_of_it.parameters(), None) is None
    assert torch.equal(copy_of_it(images), embed(images))


def test_channels_last(model, images):
    wanted = model(images)
    close(model(images.to(memory_format=torch.channels_last)), wanted)
    close(model.to(memory_format=torch.channels_last)(images), wanted)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_gradients_of_each_image_by_itself(model, images):
    """As differential privacy wants them: vmap over grad."""
    labels = torch.tensor([0, 3, 4])
    weights = {name: p.detach() for name, p in model.named_parameters()}

    def loss(weights, image, label):
        logits = torch.func.functional_call(model, weights, image[None])
        return F.cross_entropy(logits, label[None])

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(weights, images, labels)
    F.cross_entropy(model(images), labels).backward()
    for name, p in model.named_parameters():
        torch.testing.assert_close(each[name].mean(0), p.grad, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_on_an_accelerator_the_numbers_are_the_same(model, images, device):
    if not getattr(torch, device).is_available():
        pytest.skip(f"there is no {device} here")
    wanted, attention = model(images, return_attention=True)
    x, mask = torch.randn(2, 17, 12), torch.ones(17, 17, dtype=torch.bool).tril()
    masked, other = model.blocks(x, mask), copy.deepcopy(model).to(device)
    close(other(images.to(device)).cpu(), wanted, atol=1e-3)
    close(other(images.to(device), return_attention=True)[1][0].cpu(), attention[0], atol=1e-3)
    close(other.blocks(x.to(device), mask.to(device)).cpu(), masked, atol=1e-3)
    assert other.at_size(32).tokens.pos_embed.device.type == device
