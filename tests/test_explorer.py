"""The explorer's page holds the model's numbers, refuses what does not fit, trusts no name."""

import base64
import json

import numpy as np
import pytest
import torch
from torch import nn

from vit_steps import ViT, ViTConfig
from vit_steps.explorer import packing

SMALL = ViTConfig(8, 4, 1, 3, embed_dim=12, depth=2, num_heads=3)


def test_the_numbers_come_back_as_they_were():
    model = ViT(SMALL)
    packed = packing.pack(model)
    assert set(packed["weights"]) == set(model.state_dict())
    for name, tensor in model.state_dict().items():
        entry = packed["weights"][name]
        assert entry["kind"] == "float32"
        values = np.frombuffer(base64.b64decode(entry["data"]), "<f4").reshape(entry["shape"])
        torch.testing.assert_close(torch.from_numpy(values.copy()), tensor, rtol=0, atol=0)
    assert packed["config"]["height"] == packed["config"]["width"] == 8
    assert packed["classes"] == ["0", "1", "2"]


def test_a_large_model_is_packed_in_16_bits_and_a_larger_one_refused():
    middle = ViT(ViTConfig(32, 8, 3, 10, embed_dim=128, depth=3, num_heads=4))
    entry = packing.pack(middle)["weights"]["blocks.0.mlp.fc1.weight"]
    assert entry["kind"] == "float16"
    values = np.frombuffer(base64.b64decode(entry["data"]), "<f2").astype("f4")
    wanted = middle.blocks[0].mlp.fc1.weight.detach().flatten()
    torch.testing.assert_close(torch.from_numpy(values), wanted, rtol=1e-3, atol=1e-6)
    large = ViT(ViTConfig(32, 8, 3, 10, embed_dim=256, depth=6, num_heads=4))
    with pytest.raises(ValueError, match="the weights take 13 MB of the page, and 8 are the most"):
        packing.pack(large)


def test_pictures_keep_their_bytes():
    images = torch.linspace(-1, 1, 2 * 64).view(2, 1, 8, 8)
    packed = packing.pack(ViT(SMALL), images, [0, 2], ["a", "b", "c"])
    values = np.frombuffer(base64.b64decode(packed["images"][0]), "u1")
    assert values[0] == 0
    assert len(values) == 64
    assert base64.b64decode(packed["images"][1])[-1] == 255
    assert packed["labels"] == [0, 2]


class Stranger(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = SMALL
        self.head = nn.Linear(12, 3)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (dict(model=nn.Linear(2, 2)), TypeError, "is a Linear without a ViTConfig"),
        (dict(model=Stranger()), ValueError, "blocks.0.attn.proj.bias is missing where 12 is"),
        (dict(images=torch.zeros(2, 3, 8, 8)), ValueError, r"this model takes \(k, 1, 8, 8\)"),
        (dict(images=torch.zeros(2, 1, 8, 8), labels=[1]), ValueError, "one for each picture"),
        (dict(labels=[1]), ValueError, "one for each picture"),
        (dict(images=torch.zeros(1, 1, 8, 8), labels=[3]), ValueError, "outside of 0 to 2"),
        (dict(classes=["a"]), ValueError, "1 class names; this model has 3 classes"),
    ],
)
def test_what_does_not_fit_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        packing.pack(**{"model": ViT(SMALL)} | given)


def test_a_model_with_nan_is_refused():
    model = ViT(SMALL)
    model.head.bias.data[0] = torch.nan
    with pytest.raises(ValueError, match=r"head.bias holds numbers that are not finite"):
        packing.pack(model)


def test_a_hostile_name_cannot_end_the_script():
    name = '</script><img src=x onerror="alert(1)">&<!--'
    text = packing.as_json(packing.pack(ViT(SMALL), classes=[name, "b", "c"]))
    assert not set("<>&") & set(text)
    assert json.loads(text)["classes"][0] == name
