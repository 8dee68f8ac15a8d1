"""vit_steps.training: the pieces, the whole training, stopping it at any moment, the command."""

import errno
import json
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from torch import nn
from torch.nn import functional as F

from vit_steps import ViT, ViTConfig, checkpoints, command, data, training
from vit_steps.data import Images

QUICK = settings(deadline=None, max_examples=50, derandomize=True, database=None)
ROOT = Path(__file__).parent.parent
SIZES = dict(image_size=4, patch_size=2, in_channels=1, num_classes=3, embed_dim=8, depth=1)


def tiny(seed=0, **changes):
    torch.manual_seed(seed)
    return ViT(ViTConfig(**(SIZES | dict(num_heads=2) | changes)))


def pictures(n=20, seed=0, classes=("a", "b", "c")):
    """Some noise, and each class brighter than the one before."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % len(classes)
    images = torch.randn(n, 1, 4, 4, generator=generator) * 0.1
    return Images(images + labels[:, None, None, None] - 1, labels, classes)


def fit(model, folder=None, **options):
    options = dict(epochs=3, batch_size=8, progress=False, device="cpu") | options
    return training.fit(model, pictures(), pictures(9, 1), folder=folder, **options)


def same(a, b):
    """Bit for bit, names and all."""
    a, b = a.state_dict(), b.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


# The pieces --------------------------------------------------------------------------------------


@QUICK
@given(steps=st.integers(1, 300), warmup=st.floats(0, 1, exclude_max=True))
def test_the_rate_rises_to_its_peak_once_and_falls(steps, warmup):
    rates = [training.warmup_cosine(step, steps, warmup) for step in range(steps)]
    peak = int(warmup * steps)
    assert all(0 < rate <= 1 for rate in rates)
    assert rates[peak] == 1 == max(rates)
    assert rates[: peak + 1] == sorted(rates[: peak + 1])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)


def test_rates_worked_out_by_hand():
    rates = [training.warmup_cosine(step, 10, 0.2) for step in range(10)]
    assert rates[:3] == pytest.approx([1 / 3, 2 / 3, 1])
    assert rates[6] == pytest.approx(0.5)  # half of the way down
    assert rates[9] == pytest.approx((1 + math.cos(7 / 8 * math.pi)) / 2)
    assert training.warmup_cosine(0, 10, 0) == 1


def test_what_decays_and_what_does_not():
    model = tiny()
    decayed, others = training.decay_groups(model, 0.05)
    assert (decayed["weight_decay"], others["weight_decay"]) == (0.05, 0.0)
    name_of = {p: name for name, p in model.named_parameters()}
    block = ("attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2")
    matrices = {"patch_embed.proj", *(f"blocks.0.{name}" for name in block), "head"}
    assert {name_of[p] for p in decayed["params"]} == {f"{name}.weight" for name in matrices}
    rest = {name_of[p] for p in others["params"]}
    assert {"tokens.cls_token", "tokens.pos_embed", "norm.weight", "head.bias"} <= rest
    assert len(decayed["params"]) + len(others["params"]) == len(name_of)


def test_frozen_parameters_are_not_trained():
    model = tiny()
    for p in model.blocks.parameters():
        p.requires_grad_(False)
    before = {name: p.clone() for name, p in model.named_parameters()}
    fit(model)
    for name, p in model.named_parameters():
        assert torch.equal(p, before[name]) == name.startswith("blocks."), name


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_step_is_the_gradient_of_the_smoothed_cross_entropy(smoothing):
    model, twin, batch = tiny(), tiny(), pictures(8)
    step = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):  # twice, so that gradients must be cleared
        loss = training.train_step(model, step, batch.images, batch.labels, smoothing)
        target = F.one_hot(batch.labels, 3) * (1 - smoothing) + smoothing / 3
        wanted = -(target * twin(batch.images).log_softmax(dim=1)).sum(dim=1).mean()
        gradients = torch.autograd.grad(wanted, list(twin.parameters()))
        with torch.no_grad():
            for p, gradient in zip(twin.parameters(), gradients, strict=True):
                p -= 0.1 * gradient
        assert loss.item() == pytest.approx(wanted.item(), abs=1e-6)
        assert not loss.requires_grad
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=0)


@pytest.mark.parametrize("batch_size", [1, 4, 9, 100])
def test_evaluation_is_over_all_images_and_without_dropout(batch_size):
    model, held_out = tiny(dropout=0.5).train(), pictures(9, 1)
    loss, accuracy = training.evaluate(model, held_out, batch_size)
    assert model.training
    logits = model.eval()(held_out.images)
    assert loss == pytest.approx(F.cross_entropy(logits, held_out.labels).item(), abs=1e-6)
    assert accuracy == (logits.argmax(1) == held_out.labels).sum().item() / 9
    training.evaluate(model, held_out)
    assert not model.training


def test_a_new_model_knows_nothing():
    loss, _ = training.evaluate(tiny(), pictures(300))
    assert loss == pytest.approx(math.log(3), abs=0.02)


# Augmentation ------------------------------------------------------------------------------------

AUGMENTATIONS = [training.augment_digits, training.augment_photos]


@pytest.mark.parametrize("augment", AUGMENTATIONS)
def test_augmentation_draws_from_its_generator_alone(augment):
    images = torch.rand(6, 3, 8, 12)
    once, again, other = (
        augment(images, torch.Generator().manual_seed(number)) for number in (1, 1, 2)
    )
    assert once.shape == images.shape
    assert once.dtype == images.dtype
    assert torch.equal(once, again)
    assert not torch.equal(once, other)
    torch.manual_seed(1)
    assert torch.equal(augment(images), once)


@pytest.mark.parametrize("augment", AUGMENTATIONS)
def test_each_image_is_changed_in_its_own_way_and_keeps_its_range(augment):
    image = torch.rand(1, 1, 8, 8).expand(20, -1, -1, -1) * 2 - 1
    out = augment(image)
    assert len(out.flatten(1).unique(dim=0)) == 20
    assert out.min() >= -1 - 1e-6
    assert out.max() <= 1 + 1e-6


def test_the_paper_around_a_digit_stays_paper():
    paper = torch.full((20, 1, 8, 8), -1.0)
    assert torch.equal(training.augment_digits(paper), paper)
    dot = paper.clone()
    dot[:, :, 3:5, 3:5] = 1
    out = training.augment_digits(dot)
    assert (out[:, :, 0] == -1).all()
    ink = (out + 1).sum(dim=(1, 2, 3)) / 8
    assert ink.min() > 0.85
    assert ink.max() < 1.15


def test_digits_move_by_no_more_than_said():
    side = 101
    place = torch.linspace(-1, 1, side).expand(200, 1, side, side)  # a pixel's column, as its value
    row = training.augment_digits(place)[:, 0, side // 2]
    moved = row[:, side // 2]
    assert 0.05 < moved.abs().max() <= 0.061  # 3% of a side that is 2 long
    width = row[:, side // 2 + 30] - moved  # 0.6, times the scale and the angle's cosine
    assert 0.6 * 0.95 * math.cos(math.radians(10)) - 1e-3 < width.min() < 0.58
    assert 0.62 < width.max() < 0.6 * 1.05 + 1e-3


def test_photos_are_mirrored_half_of_the_time_and_nothing_comes_from_outside():
    side = 101
    place = torch.linspace(0.5, 1, side).expand(400, 1, side, side)
    out = training.augment_photos(place)[:, 0, side // 2]
    mirrored = (out[:, 0] > out[:, -1]).float().mean()
    assert 0.4 < mirrored < 0.6
    width = (out[:, 10] - out[:, -11]).abs() / 0.4
    assert 0.69 < width.min() < 0.75
    assert 0.95 < width.max() < 1.01
    assert out[:, 2:-2].min() > 0.49  # a pixel from outside would be 0


def test_each_image_comes_once_an_epoch_with_its_own_label():
    train = Images(
        torch.arange(20.0).view(20, 1, 1, 1), torch.arange(20), tuple("abcdefghijklmnopqrst")
    )
    generator, orders = torch.Generator().manual_seed(0), []
    for _ in range(2):
        drawn = list(training.batches(train, 8, generator))
        assert [len(labels) for _, labels in drawn] == [8, 8, 4]
        for images, labels in drawn:
            assert torch.equal(images.flatten(), labels.float())
        orders.append(torch.cat([labels for _, labels in drawn]).tolist())
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(20))
    assert orders[0] != orders[1]


# The whole training ------------------------------------------------------------------------------


def test_a_fit_is_adamw_with_torchs_own_scheduler():
    model, twin, train = tiny(), tiny(), pictures()
    history = fit(model, lr=0.01, weight_decay=0.1, label_smoothing=0.1, seed=5)
    steps = 9
    optimizer = torch.optim.AdamW(training.decay_groups(twin, 0.1), lr=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: training.warmup_cosine(step, steps, 0.1) if step < steps else 0
    )
    rates, losses = [], []
    for epoch in range(3):
        order = torch.randperm(20, generator=torch.manual_seed(5 * 1_000_003 + epoch))
        total = 0.0
        for batch in order.split(8):
            images, labels = train.images[batch], train.labels[batch]
            loss = F.cross_entropy(twin(images), labels, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch) / 20
            rates.append(schedule.get_last_lr()[0])
            schedule.step()
        losses.append(total)
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=0)
    assert history.train_loss == pytest.approx(losses, abs=1e-5)
    assert history.learning_rate == pytest.approx(rates[2::3])
    loss, accuracy = training.evaluate(model, pictures(9, 1))
    assert (history.test_loss[-1], history.test_accuracy[-1]) == (loss, accuracy)


def test_it_learns_and_leaves_the_model_ready():
    model = tiny().train()
    history = fit(model, epochs=30, lr=1e-2)
    assert len(history) == 30 == len(history.train_loss) == len(history.learning_rate)
    assert history.test_accuracy[-1] == 1
    assert history.test_accuracy[history.best - 1] == 1
    assert not model.training
    assert next(model.parameters()).device.type == "cpu"


def test_the_best_epoch_has_the_highest_accuracy_then_the_lowest_loss():
    history = training.History([1, 1, 1, 1], [3, 2, 1, 2], [0.5, 0.9, 0.6, 0.9], [1, 1, 1, 1])
    assert history.best == 2


def test_the_seed_decides_order_augmentation_and_dropout():
    def weights(seed, **options):
        model = tiny(dropout=0.2)
        torch.rand(seed)  # what was drawn before does not matter
        fit(model, seed=seed, **options)
        return model

    for options in ({}, {"augment": training.augment_photos}):
        assert same(weights(3, **options), weights(3, **options))
        assert not same(weights(3, **options), weights(4, **options))


def test_any_model_can_be_trained_without_a_folder():
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    assert fit(model, epochs=20, lr=0.05).test_accuracy[-1] == 1


def test_progress_goes_to_stderr_and_only_if_wanted(capsys):
    fit(tiny())
    assert capsys.readouterr() == ("", "")
    fit(tiny(), progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "epoch 3/3" in err
    assert "9/9" in err


def test_the_report_comes_after_each_epoch():
    seen = []
    fit(tiny(), report=lambda history: seen.append(len(history)))
    assert seen == [1, 2, 3]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (dict(epochs=0), ValueError, "epochs is 0"),
        (dict(epochs=1.5), TypeError, "epochs is 1.5"),
        (dict(batch_size=0), ValueError, "batch_size is 0"),
        (dict(lr=-1), ValueError, "lr is -1"),
        (dict(lr=math.nan), ValueError, "lr is nan"),
        (dict(lr="fast"), TypeError, "lr is 'fast'"),
        (dict(weight_decay=-0.1), ValueError, "weight_decay is -0.1"),
        (dict(warmup=1), ValueError, "warmup is 1"),
        (dict(label_smoothing=-0.1), ValueError, "label_smoothing is -0.1"),
        (dict(seed=-1), ValueError, "seed is -1"),
        (dict(seed=0.5), TypeError, "seed is 0.5"),
        (dict(device="nowhere"), ValueError, "device 'nowhere' cannot be used"),
        (dict(lr=1e20), ValueError, "the loss of epoch 1 is nan"),
    ],
)
def test_options_that_cannot_work_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        fit(tiny(), **options)


def test_data_of_other_classes_are_refused():
    train, test = pictures(), pictures(9, 1, classes=("a", "b"))
    with pytest.raises(ValueError, match="train has the classes"):
        training.fit(tiny(), train, test)
    with pytest.raises(ValueError, match="gives 5 logits for 3 classes"):
        training.fit(tiny(num_classes=5), train, train)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_on_cuda_the_model_comes_home(tmp_path):
    model = tiny()
    whole = fit(model, device=None, epochs=4)
    assert next(model.parameters()).device.type == "cpu"
    stop_at(2, tmp_path, device="cuda", epochs=4)
    assert fit(tiny(), tmp_path, device="cuda", epochs=4).train_loss == pytest.approx(
        whole.train_loss, abs=1e-3
    )


# Files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes", [{}, dict(image_size=(4, 6), pool="mean", qkv_bias=False, dropout=0.1)]
)
def test_a_model_comes_back_from_its_file(tmp_path, changes):
    model, path = tiny(**changes), tmp_path / "model.safetensors"
    training.save_model(model, path)
    state = torch.get_rng_state()
    back = training.load_model(path)
    assert torch.equal(torch.get_rng_state(), state)
    assert back.config == model.config
    assert same(back, model)
    assert not back.training
    assert all(p.requires_grad for p in back.parameters())
    assert {p.name for p in tmp_path.iterdir()} == {path.name}
    images = torch.randn(2, 1, *((4, 6) if changes else (4, 4)))
    assert torch.equal(back(images), model.eval()(images))
    with safe_open(path, framework="pt") as file:  # what anyone can read
        assert json.loads(file.metadata()["config"])["embed_dim"] == 8
        assert set(file.keys()) == set(model.state_dict())


def test_half_precision_stays_half(tmp_path):
    model = tiny().to(torch.bfloat16)
    training.save_model(model, tmp_path / "m")
    assert same(training.load_model(tmp_path / "m"), model)


def not_checkpoints(folder):
    """Files that must be refused, by name."""
    training.save_model(tiny(), folder / "whole")
    whole = (folder / "whole").read_bytes()
    for name, size in (("cut", len(whole) - 1), ("header", 50), ("length", 5), ("empty", 0)):
        (folder / name).write_bytes(whole[:size])
    torch.save(tiny().state_dict(), folder / "torch")
    (folder / "pickle").write_bytes(pickle.dumps(Bomb(folder / "exploded")))
    checkpoints.write_file(folder / "plain", tiny().state_dict(), {})
    other = dict(config=checkpoints.config_of(tiny(depth=2)))
    checkpoints.write_file(folder / "other", tiny().state_dict(), other)
    odd = dict(config=checkpoints.config_of(tiny()) | {"colour": "red"})
    checkpoints.write_file(folder / "odd", tiny().state_dict(), odd)
    (folder / "folder").mkdir()
    return [
        "cut",
        "header",
        "length",
        "empty",
        "torch",
        "pickle",
        "plain",
        "other",
        "odd",
        "folder",
    ]


class Bomb:
    """Unpickled, it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def test_what_is_not_a_whole_checkpoint_is_refused(tmp_path):
    pickle.loads(pickle.dumps(Bomb(tmp_path / "works")))
    assert (tmp_path / "works").exists()
    for name in not_checkpoints(tmp_path):
        with pytest.raises(ValueError, match=f"{name} (cannot be read|does not hold)"):
            training.load_model(tmp_path / name)
    assert not (tmp_path / "exploded").exists()
    with pytest.raises(ValueError, match="missing is not there"):
        training.load_model(tmp_path / "missing")


def test_a_model_without_a_config_cannot_be_saved(tmp_path):
    with pytest.raises(TypeError, match="needs a ViTConfig"):
        training.save_model(nn.Linear(2, 2), tmp_path / "model")
    with pytest.raises(TypeError, match="needs a ViTConfig"):
        fit(nn.Sequential(nn.Flatten(), nn.Linear(16, 3)), tmp_path)
    assert list(tmp_path.iterdir()) == []


def full(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, call):
    path = tmp_path / "model"
    training.save_model(tiny(), path)
    before = path.read_bytes()
    monkeypatch.setattr(os, call, full)
    with pytest.raises(ValueError, match="model cannot be written: No space left"):
        training.save_model(tiny(1), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_the_system_cuts_short_leaves_the_old_file(tmp_path):
    resource = pytest.importorskip("resource")  # not on Windows
    path = tmp_path / "model"
    training.save_model(tiny(), path)
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
    try:
        with pytest.raises(ValueError, match="cannot be written"):
            training.save_model(tiny(1), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_ends_a_training_at_its_last_whole_checkpoint(tmp_path, monkeypatch):
    def fill(history):
        if len(history) == 2:
            monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(ValueError, match="cannot be written: No space left"):
        fit(tiny(), tmp_path, report=fill)
    monkeypatch.undo()
    assert len(history_in(tmp_path)) == 2
    unbroken, resumed = tiny(), tiny()
    fit(unbroken)
    fit(resumed, tmp_path)
    assert same(unbroken, resumed)


def test_a_folder_that_cannot_be_written_to_is_refused_before_the_training(tmp_path, monkeypatch):
    def never(history):
        raise AssertionError("it trained")

    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="file cannot be written to"):
        fit(tiny(), tmp_path / "file", report=never)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    if os.access(closed, os.W_OK):  # root may write anywhere

        def denied(dir):
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(checkpoints, "TemporaryFile", denied)
    with pytest.raises(ValueError, match="closed cannot be written to: Permission denied"):
        fit(tiny(), closed, report=never)


# To stop, and to go on ---------------------------------------------------------------------------

ALL = dict(
    epochs=6, lr=1e-2, label_smoothing=0.1, augment=training.augment_photos, weight_decay=0.1
)


class StopError(Exception):
    """Stands for anything that ends a training."""


def stop_at(epoch, folder, error=StopError, **options):
    def stop(history):
        if len(history) == epoch:
            raise error

    return fit(tiny(dropout=0.1), folder, report=stop, **(ALL | options))


def history_in(folder, name="last"):
    with safe_open(folder / f"{name}.safetensors", framework="pt") as file:
        return training.History(**json.loads(file.metadata()["history"]))


def test_resumed_at_every_epoch_it_ends_like_an_unbroken_run(tmp_path):
    unbroken = tiny(dropout=0.1)
    history = fit(unbroken, **ALL)
    for epoch in range(1, 6):
        with pytest.raises(StopError):
            stop_at(epoch, tmp_path)
        assert len(history_in(tmp_path)) == epoch
        seen = []
        torch.rand(epoch)  # the generator's state does not matter
    resumed = tiny(seed=9, dropout=0.1)  # nor do its first weights
    assert fit(resumed, tmp_path, report=lambda h: seen.append(len(h)), **ALL) == history
    assert seen == [6]
    assert same(resumed, unbroken)
    assert same(training.load_model(tmp_path / "last.safetensors"), unbroken)
    best = training.load_model(tmp_path / "best.safetensors")
    assert training.evaluate(best, pictures(9, 1))[1] == max(history.test_accuracy)
    assert len(history_in(tmp_path, "best")) == history.best
    assert {p.name for p in tmp_path.iterdir()} == {"last.safetensors", "best.safetensors"}


def test_a_finished_run_is_not_trained_again(tmp_path):
    first = tiny()
    history = fit(first, tmp_path)
    before = (tmp_path / "last.safetensors").read_bytes()
    again = tiny(seed=9)
    assert fit(again, tmp_path) == history
    assert same(first, again)
    assert (tmp_path / "last.safetensors").read_bytes() == before


def test_ctrl_c_gives_the_history_so_far_and_the_run_can_go_on(tmp_path):
    unbroken, model = tiny(dropout=0.1), tiny(dropout=0.1)
    whole = fit(unbroken, **ALL)
    history = stop_at(2, tmp_path, KeyboardInterrupt)
    assert len(history) == 2
    assert history.train_loss == whole.train_loss[:2]

    calls = []

    def press(images, generator):  # in the middle of an epoch
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return training.augment_photos(images, generator)

    press.__name__ = "augment_photos"
    history = fit(model, tmp_path, **(ALL | dict(augment=press)))
    assert len(history) == 3 == len(history_in(tmp_path))
    assert not model.training
    assert fit(model, tmp_path, **ALL) == whole
    assert same(model, unbroken)


def test_frozen_parameters_are_resumed_too(tmp_path):
    def head_only():
        model = tiny()
        for p in model.blocks.parameters():
            p.requires_grad_(False)
        return model

    def stop(history):
        raise KeyboardInterrupt

    unbroken, resumed = head_only(), head_only()
    fit(unbroken)
    fit(resumed, tmp_path, report=stop)
    fit(resumed, tmp_path)
    assert same(unbroken, resumed)
    with pytest.raises(ValueError, match="of another model"):
        fit(tiny(), tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(epochs=7), "epochs was 3, is 7"),
        (dict(batch_size=4), "batch_size was 8, is 4"),
        (dict(lr=1e-3), "lr was 0.002, is 0.001"),
        (dict(weight_decay=0.0), "weight_decay was 0.05, is 0.0"),
        (dict(warmup=0.2), "warmup was 0.1, is 0.2"),
        (dict(label_smoothing=0.1), "label_smoothing was 0.0, is 0.1"),
        (dict(augment=training.augment_photos), "augment was None, is 'augment_photos'"),
        (dict(seed=1), "seed was 0, is 1"),
    ],
)
def test_another_runs_checkpoint_is_refused(tmp_path, changes, message):
    fit(tiny(), tmp_path)
    before, model = (tmp_path / "last.safetensors").read_bytes(), tiny()
    with pytest.raises(ValueError, match=rf"of another run \({message}\); give another folder"):
        fit(model, tmp_path, **changes)
    assert (tmp_path / "last.safetensors").read_bytes() == before
    assert same(model, tiny())


def test_another_models_and_other_datas_checkpoint_is_refused(tmp_path):
    fit(tiny(), tmp_path)
    before = (tmp_path / "last.safetensors").read_bytes()
    with pytest.raises(ValueError, match=r"another run \(embed_dim was 8, is 16\)"):
        fit(tiny(embed_dim=16), tmp_path)
    with pytest.raises(ValueError, match=r"another run \(image_size was 4, is \[4, 4\]\)"):
        fit(tiny(image_size=(4, 4)), tmp_path)
    other = pictures(seed=2)
    with pytest.raises(ValueError, match=r"another run \(train was '20 images, .*'\);"):
        training.fit(
            tiny(), other, pictures(9, 1), epochs=3, batch_size=8, folder=tmp_path, device="cpu"
        )
    assert (tmp_path / "last.safetensors").read_bytes() == before


def test_a_model_of_the_same_config_and_other_names_is_refused(tmp_path):
    class Renamed(ViT):
        def __init__(self, config):
            super().__init__(config)
            self.final = self.norm
            del self.norm

    fit(tiny(), tmp_path)
    with pytest.raises(ValueError, match="of another model"):
        fit(Renamed(tiny().config), tmp_path)


def test_resuming_from_what_is_no_checkpoint_is_refused(tmp_path):
    names = [name for name in not_checkpoints(tmp_path) if name != "folder"]
    for name in [*names, "whole"]:
        last = tmp_path / "run" / "last.safetensors"
        last.parent.mkdir(exist_ok=True)
        before = (tmp_path / name).read_bytes()
        last.write_bytes(before)
        with pytest.raises(ValueError, match=r"last\.safetensors (cannot be read|is of another)"):
            fit(tiny(), last.parent)
        assert last.read_bytes() == before
    assert not (tmp_path / "exploded").exists()


# Killed at any moment ----------------------------------------------------------------------------

# One process that has torch loaded makes a child for each training, and kills it: first at each of
# its calls that touch the disk in turn, before and after it, then at random moments.
KILLER = """
import builtins, os, random, signal, sys, time
from pathlib import Path
import torch
import test_training as t

torch.set_num_threads(1)
t.fit(t.tiny())  # what torch loads late, it loads here

def child(work):
    pid = os.fork()
    if pid == 0:
        try: work()
        finally: os._exit(1)
    return pid

def train(folder):
    t.fit(t.tiny(dropout=0.1), folder, **t.ALL)
    os._exit(0)

def train_to_call(folder, number, after):
    count = 0
    def wrap(call):
        def wrapped(*args, **more):
            nonlocal count
            count += 1
            if count == number and not after: os.kill(os.getpid(), signal.SIGKILL)
            result = call(*args, **more)
            if count == number: os.kill(os.getpid(), signal.SIGKILL)
            return result
        return wrapped
    builtins.open = wrap(open)
    for name in ("fsync", "replace", "open", "close"):
        setattr(os, name, wrap(getattr(os, name)))
    train(folder)

def killed_at_calls(folder):
    for i in range(1000):
        yield child(lambda: train_to_call(folder, 1 + i // 2 % 13, i % 2 == 1))

def killed_at_random(folder):
    random.seed(0)
    start = time.perf_counter()
    os.waitpid(child(lambda: train(folder / "once")), 0)
    longest = (time.perf_counter() - start) / 2
    for i in range(1000):
        pid = child(lambda: train(folder))
        time.sleep(random.uniform(0, longest))
        os.kill(pid, signal.SIGKILL)
        longest *= 1.05
        yield pid

for name, killed in (("calls", killed_at_calls), ("random", killed_at_random)):
    folder, kills, epoch = Path(sys.argv[1], name), 0, 0
    for pid in killed(folder):
        _, status = os.waitpid(pid, 0)
        assert status in (0, signal.SIGKILL), status
        for path in folder.glob("*.safetensors"):
            t.training.load_model(path)
        last = folder / "last.safetensors"
        done = len(t.history_in(folder)) if last.exists() else 0
        assert done >= epoch, "a finished epoch was lost"
        epoch = done
        if status == 0: break
        kills += 1
    print(name, kills)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_again_and_again_it_ends_like_an_unbroken_run(tmp_path):
    unbroken = tiny(dropout=0.1)
    history = fit(unbroken, tmp_path / "unbroken", **ALL)
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    result = subprocess.run(
        [sys.executable, "-c", KILLER, tmp_path],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert result.returncode == 0, result.stderr
    kills = dict(line.split() for line in result.stdout.splitlines())
    assert int(kills["calls"]) >= 20
    assert int(kills["random"]) >= 3
    for name in kills:
        folder = tmp_path / name
        assert same(training.load_model(folder / "last.safetensors"), unbroken)
        assert history_in(folder) == history
        for file in ("last.safetensors", "best.safetensors"):  # what AdamW remembers too
            tensors, info = checkpoints.read_file(folder / file)
            wanted, told = checkpoints.read_file(tmp_path / "unbroken" / file)
            assert info == told
            assert tensors.keys() == wanted.keys()
            assert all(torch.equal(tensors[key], wanted[key]) for key in wanted)
        fit(tiny(dropout=0.1), folder, **ALL)
        assert list(folder.glob("*.half")) == []  # what the killed ones left is swept


# The bars ----------------------------------------------------------------------------------------


def digits_model(seed):
    torch.manual_seed(seed)
    model = ViT(ViTConfig(8, 2, 1, 10, 48, 3, 4))
    with torch.no_grad():
        model.tokens.pos_embed.mul_(10)
    return model


def test_digits_to_97_percent_and_more():
    """The command's own recipe; one seed here, three in the project's notes."""
    assert command.RECIPES["digits"]["epochs"] == 30
    history = training.fit(
        digits_model(0),
        *data.digits(),
        augment=training.augment_digits,
        label_smoothing=0.1,
        progress=False,
        device="cpu",
    )
    assert history.test_accuracy[-1] >= 0.97
