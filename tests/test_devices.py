"""Where a training runs, and in how many bits."""

import json

import pytest
import torch
from safetensors import safe_open
from tiny_training import after, fit, pictures, same, tiny
from torch.nn import functional as F

from vit_steps import training
from vit_steps.training import devices
from vit_steps.training.data import folder
from vit_steps.training.devices import autocast, bring, half_dtype
from vit_steps.training.learner import Learner

CPU = torch.device("cpu")
CUDA = torch.device("cuda")


@pytest.mark.parametrize("lacks", [False, True])
def test_sixteen_bits_are_bfloat_but_where_a_card_lacks_it(monkeypatch, lacks):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **options: not lacks)
    assert half_dtype(CPU) == torch.bfloat16
    assert half_dtype(CUDA) == (torch.float16 if lacks else torch.bfloat16)
    with pytest.raises(ValueError, match="amp is for CUDA and the CPU, not for mps"):
        half_dtype(torch.device("mps"))


def test_autocast_does_nothing_unless_it_is_asked():
    a = torch.randn(4, 4)
    with autocast(CPU, amp=False):
        assert (a @ a).dtype == torch.float32
    with autocast(CPU, amp=True):
        assert (a @ a).dtype == torch.bfloat16
    with torch.autocast("cpu", torch.bfloat16), autocast(CPU, amp=False):
        assert (a @ a).dtype == torch.bfloat16  # somebody else asked for it


@pytest.mark.parametrize("amp", [False, True])
def test_a_step_of_one_process_is_train_step_and_a_mixed_one_differs_by_rounding(amp):
    model, twin, batch = tiny(), tiny(), pictures(8)
    steps = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, twin)]
    plain = training.train_step(twin, steps[1], batch.images, batch.labels, 0.1)
    learner = Learner(model, steps[0], 0.1, 0.0, label_smoothing=0.1, amp=amp)
    assert not learner.scaler.is_enabled()
    loss = learner.step(batch.images, batch.labels)
    assert not loss.requires_grad
    torch.testing.assert_close(loss, plain, atol=5e-3, rtol=0)
    assert (loss == plain) == (not amp)
    assert same(model, twin) == (not amp)
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=2e-3, rtol=0)


def test_a_training_in_mixed_precision_learns_and_is_measured_in_it():
    model, whole = tiny(), tiny()
    history = fit(model, epochs=30, lr=1e-2, amp=True)
    assert history.val_accuracy[-1] == 1
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    fit(whole, epochs=30, lr=1e-2)
    assert not same(model, whole)
    held_out = pictures(9, 1)
    loss, _ = training.evaluate(model, held_out, amp=True)
    assert loss == history.val_loss[-1]
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        logits = model(held_out.images)
    assert loss == pytest.approx(F.cross_entropy(logits.float(), held_out.labels).item(), abs=1e-6)


def test_float16_scales_its_loss_and_resumes_with_the_scale(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "half_dtype", lambda device: torch.float16)
    unbroken, resumed = tiny(), tiny()
    whole = fit(unbroken, amp=True)

    fit(tiny(), tmp_path, amp=True, report=after(2))
    with safe_open(tmp_path / "last.safetensors", framework="pt") as file:
        scaler = json.loads(file.metadata()["scaler"])
    assert scaler["scale"] == 65536
    assert scaler["_growth_tracker"] == 6  # three steps an epoch
    assert fit(resumed, tmp_path, amp=True) == whole
    assert same(resumed, unbroken)


def test_pictures_go_to_cuda_once_if_they_take_less_than_half_of_what_is_free(
    tmp_path, monkeypatch
):
    data = pictures()  # 20 of 16 floats
    moved = []
    monkeypatch.setattr(torch.Tensor, "to", lambda self, device: moved.append(device) or self)
    for free, times in ((2 * 20 * 16 * 4, 0), (2 * 20 * 16 * 4 + 2, 2)):  # pixels and labels
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device, free=free: (free, 10**9))
        assert bring(data, CUDA).pixels is data.pixels
        assert moved == [CUDA] * times
    assert bring(data, CPU) is data
    assert bring(None, CUDA) is None
    assert len(moved) == 2


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("amp", [False, True])
def test_on_cuda_held_and_read_pictures_give_the_same(tmp_path, monkeypatch, amp):
    from test_folders import plain

    def trained(limit, free):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, free))
        train, val, _ = folder(tmp_path / "photos", 4, limit=limit)
        model = tiny(in_channels=3, num_classes=2)
        options = dict(epochs=2, augment=training.augment_photos, device="cuda", amp=amp)
        history = training.fit(model, train, val, **options, progress=False)
        return history.train_loss

    plain(tmp_path / "photos", cat=9, dog=9)
    near, batchwise, read = trained(1e9, 1e9), trained(1e9, 0), trained(0, 1e9)
    assert batchwise == pytest.approx(near, abs=1e-4)
    assert read == pytest.approx(near, abs=1e-4)
