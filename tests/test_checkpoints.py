"""What outlives a training: files that are whole, stopping and going on, which run it was."""

import errno
import json
import os
import pickle
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import Bomb, sh
from safetensors import safe_open
from safetensors.torch import save_file
from tiny_training import after, fit, history_in, pictures, same, tiny
from torch import nn

from vit_course.systems import einops_vit
from vit_steps import ViT, training
from vit_steps.files import write_whole
from vit_steps.images import Preprocess
from vit_steps.pretrained import load
from vit_steps.training import checkpoints, resuming
from vit_steps.training.data import as_stored

ROOT = Path(__file__).parent.parent
PATHS = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}


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


@pytest.mark.parametrize(
    "preprocess", [as_stored(4), Preprocess((4, 4), 5, mean=(0.4,), std=(0.2,))]
)
def test_a_file_says_classes_preparation_and_what_was_measured(tmp_path, preprocess):
    path, measured = tmp_path / "model", {"train": "20 images", "result": {"accuracy": 0.9}}
    training.save_model(tiny(), path, ["개", "K\udce4se", "c"], preprocess, measured)
    loaded = training.load_weights(path)
    assert same(loaded.model, tiny())
    assert (loaded.classes, loaded.preprocess) == (("개", "K\udce4se", "c"), preprocess)
    assert loaded.measured == measured
    assert training.load_model(path, num_classes=7).head.out_features == 7
    with pytest.raises(ValueError, match=r"classes is \['a', 'b'\]; the model has 3"):
        training.save_model(tiny(), path, ("a", "b"))


def test_in_16_bits_a_file_is_half_as_large_and_comes_back_in_32(tmp_path):
    model, path, half = tiny(embed_dim=64), tmp_path / "whole", tmp_path / "half"
    training.save_model(model, path)
    rounded = {name: t.half().float() for name, t in model.state_dict().items()}
    training.save_model(model.half(), half)
    assert half.stat().st_size < 0.6 * path.stat().st_size
    for name, tensor in training.load_model(half).state_dict().items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, rounded[name])


def test_what_is_no_whole_checkpoint_is_neither_loaded_nor_resumed_from(tmp_path):
    pickle.loads(pickle.dumps(Bomb(tmp_path / "works")))
    assert (tmp_path / "works").exists()
    last = tmp_path / "run" / "last.safetensors"
    last.parent.mkdir()
    training.save_model(tiny(), last)
    whole, tensors = last.read_bytes(), tiny().state_dict()
    with pytest.raises(ValueError, match=r"last\.safetensors holds weights, but no run"):
        fit(tiny(), last.parent)
    for size in (len(whole) - 1, 50, 5, 0):  # within the tensors, the header, its length
        last.write_bytes(whole[:size])
        assert_refused(last)
    torch.save(tensors, last)
    assert_refused(last)
    last.write_bytes(pickle.dumps(Bomb(tmp_path / "exploded")))
    assert_refused(last)
    assert not (tmp_path / "exploded").exists()
    other, odd = (asdict(tiny(depth=depth).config) for depth in (2, 1))
    for info in ({}, dict(config=other), dict(config=odd | {"colour": "red"})):
        checkpoints.write_checkpoint(last, tensors, info)
        assert_refused(last)
    for name, message in (("run", "run cannot be read"), ("missing", "missing is not there")):
        with pytest.raises(ValueError, match=message):
            training.load_model(tmp_path / name)


def test_who_opens_another_kind_of_file_is_told_what_reads_it(tmp_path):
    stores = {"a.pt": torch.save, "a.safetensors": save_file}
    stores["hf.safetensors"] = partial(save_file, metadata={"format": "pt"})
    for name, store in stores.items():
        store(tiny().state_dict(), tmp_path / name)
        for read in (training.load_model, training.load_weights):
            with pytest.raises(ValueError, match=rf"{name} .*; vit_steps\.pretrained\.load reads"):
                read(tmp_path / name)


def assert_refused(last):
    """A file that is no checkpoint: it stays as it is."""
    before = last.read_bytes()
    with pytest.raises(ValueError, match=r"last\.safetensors (cannot be read|does not hold)"):
        training.load_model(last)
    with pytest.raises(ValueError, match=r"last\.safetensors (cannot be|holds weights)"):
        fit(tiny(), last.parent)
    assert last.read_bytes() == before


def test_a_model_without_a_config_cannot_be_saved(tmp_path):
    with pytest.raises(TypeError, match="needs a ViTConfig"):
        training.save_model(nn.Linear(2, 2), tmp_path / "model")
    with pytest.raises(TypeError, match="needs a ViTConfig"):
        fit(nn.Sequential(nn.Flatten(), nn.Linear(16, 3)), tmp_path)
    assert list(tmp_path.iterdir()) == []


class Mine(nn.Module):
    """A learner's own, with the same names."""

    def __init__(self, config):
        super().__init__()
        vit = ViT(config)
        self.config, self.norm, self.head = config, vit.norm, vit.head
        self.patch_embed, self.tokens, self.blocks = vit.patch_embed, vit.tokens, vit.blocks

    def forward(self, images):
        x = self.blocks(self.tokens(self.patch_embed(images)))
        return self.head(self.norm(x))[:, 0]  # of all tokens, then the first


class ByHand(ViT):
    def forward(self, images):  # the head is not called, but multiplied by
        x = self.read(self.blocks(self.tokens(self.patch_embed(images))))
        return x @ self.head.weight.T + self.head.bias


class Mean(ViT):
    def read(self, x):
        return self.norm(x).mean(1)


@pytest.mark.parametrize("own", [Mine, ByHand])
def test_a_class_of_ones_own_that_computes_the_same_is_saved(tmp_path, own):
    torch.manual_seed(0)
    model = own(tiny().config)
    training.save_model(model, tmp_path / "model")
    assert same(training.load_model(tmp_path / "model"), model)


def with_relu(model):
    model.blocks[0].mlp.act = nn.ReLU()
    return model


def replace_head(model):
    model.head = nn.Linear(8, 3)
    return model


def with_zero_head(model):
    for p in model.head.parameters():
        nn.init.zeros_(p)
    return model


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: einops_vit(tiny(pool="mean").config), "EinopsViT is not the ViT of its config"),
        (lambda: replace_head(tiny(num_classes=7)), r"head.bias is .*7,.* is .*with_classes"),
        (lambda: with_relu(tiny().bfloat16()), "answers otherwise"),
        (lambda: with_relu(with_zero_head(tiny())), "answers otherwise"),
        (lambda: Mean(tiny().config), "this Mean is not the ViT of its config"),
    ],
)
def test_a_model_that_would_come_back_as_another_is_refused(tmp_path, make, message):
    for save in (training.save_model, fit):
        with pytest.raises(ValueError, match=message):
            save(make(), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
    zero = with_zero_head(tiny()).bfloat16()  # that alone is no fault
    training.save_model(zero, tmp_path / "model")
    assert same(training.load_model(tmp_path / "model"), zero)


def test_a_folder_that_cannot_be_written_to_is_refused_before_the_training(tmp_path, monkeypatch):
    def never(history):
        raise AssertionError("it trained")

    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="file cannot be written to"):
        fit(tiny(), tmp_path / "file", report=never)
    monkeypatch.setattr(resuming.FileLock, "acquire", full)  # no permission comes as this does
    with pytest.raises(ValueError, match=r"new cannot be written to: .*No space left"):
        fit(tiny(), tmp_path / "new", report=never)


# To stop, and to go on ---------------------------------------------------------------------------

ALL = dict(epochs=6, lr=1e-2, augment=training.augment_photos, weight_decay=0.1)


def press(*args):
    raise KeyboardInterrupt


def full(*args):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_resumed_at_every_epoch_it_ends_like_an_unbroken_run(tmp_path):
    unbroken = tiny(dropout=0.1)
    history = fit(unbroken, **ALL)
    for epoch in range(1, 6):
        fit(tiny(dropout=0.1), tmp_path, report=after(epoch), **ALL)
        assert len(history_in(tmp_path)) == epoch
        seen = []
        torch.rand(epoch)  # the generator's state does not matter
    resumed = tiny(seed=9, dropout=0.1)  # nor do its first weights
    assert fit(resumed, tmp_path, report=lambda h: seen.append(len(h)), **ALL) == history
    assert same(resumed, unbroken)
    again, before = tiny(seed=9, dropout=0.1), (tmp_path / "last.safetensors").read_bytes()
    assert fit(again, tmp_path, report=lambda h: seen.append(len(h)), **ALL) == history
    assert seen == [6]  # what is finished is not trained again
    assert same(again, unbroken)
    assert (tmp_path / "last.safetensors").read_bytes() == before
    assert same(training.load_model(tmp_path / "last.safetensors"), unbroken)
    names = {p.name for p in tmp_path.iterdir()} - {".lock"}
    assert names == {"last.safetensors", "best.safetensors"}


def momentum(model):  # all but the head stays as it is
    return dict(optimizer=torch.optim.SGD(model.head.parameters(), 0.1, momentum=0.9), clip=0.1)


def frozen(model):
    model.blocks.requires_grad_(False)
    return {}


def mixed(model):
    return dict(amp=True, class_weights=[2.0, 0.5, 0.5])


@pytest.mark.parametrize("options", [mixed, momentum, frozen])
def test_all_that_a_training_may_have_goes_on_bit_for_bit(tmp_path, options):
    def trained(seed, folder=None, last=4):
        model = tiny(seed, dropout=0.1)
        schedule = dict(epochs=4, schedule=lambda i, n: (i + 1) / n, report=after(last))
        return fit(model, folder, **schedule, **options(model)), model

    history, unbroken = trained(0)
    for epoch in (1, 3):
        assert len(trained(0, tmp_path, epoch)[0]) == epoch
    history_again, resumed = trained(9, tmp_path)
    assert history_again == history
    assert same(resumed, unbroken)
    assert same(training.load_model(tmp_path / "last.safetensors"), unbroken)


def test_the_best_epochs_weights_are_kept_and_given_back(tmp_path):
    best = dict(epochs=6, lr=0.7, best=True)  # which is too high
    model, resumed = tiny(dropout=0.1), tiny(dropout=0.1)
    history = fit(model, **best)
    assert history.best < 6
    assert training.evaluate(model, pictures(9, 1))[1] == max(history.val_accuracy)
    fit(tiny(dropout=0.1), tmp_path, report=after(history.best + 1), **best)
    assert fit(resumed, tmp_path, **best) == history
    assert same(resumed, model)
    assert same(training.load_model(tmp_path / "best.safetensors"), model)
    assert len(history_in(tmp_path, "best")) == history.best


def test_more_epochs_go_on_by_the_longer_schedule_and_fewer_are_refused(tmp_path):
    fit(tiny(), tmp_path)
    history = fit(tiny(), tmp_path, epochs=5)
    rates = [training.warmup_cosine(step, 15, 0.1) for step in (11, 14)]
    assert history.learning_rate[3:] == [2e-3 * rate for rate in rates]
    with pytest.raises(ValueError, match=r"epochs is 4, but .* holds 5 finished ones"):
        fit(tiny(), tmp_path, epochs=4)


def test_ctrl_c_reaches_the_caller_and_the_run_can_go_on(tmp_path):
    unbroken, model = tiny(dropout=0.1), tiny(dropout=0.1)
    whole = fit(unbroken, **ALL)
    with pytest.raises(KeyboardInterrupt):
        fit(tiny(dropout=0.1), tmp_path, report=press, **ALL)
    assert history_in(tmp_path).train_loss == whole.train_loss[:1]

    def press_late(step, steps):  # in the middle of the fourth epoch
        return press() if step == 10 else training.warmup_cosine(step, steps, 0.1)

    with pytest.raises(KeyboardInterrupt):
        fit(model, tmp_path, schedule=press_late, **ALL)
    assert len(history_in(tmp_path)) == 3
    assert not model.training
    assert fit(model, tmp_path, **ALL) == whole
    assert same(model, unbroken)


def test_what_is_half_written_is_hidden_from_jupyterlabs_listing(tmp_path, monkeypatch):
    """Its server answers 404 for a folder while a listed file goes."""
    seen, replace = [], os.replace

    def watched(source, target):
        seen.extend(path.name for path in tmp_path.iterdir())
        replace(source, target)

    monkeypatch.setattr(os, "replace", watched)
    write_whole(tmp_path / "my_vit.py", b"1")
    assert [name[:11] for name in seen] == [".my_vit.py."]


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize(("fail", "error"), [(press, KeyboardInterrupt), (full, ValueError)])
def test_what_ends_a_write_leaves_the_epoch_before(tmp_path, monkeypatch, call, fail, error):
    def arm(history):
        if len(history) == 2:
            monkeypatch.setattr(os, call, fail)

    with pytest.raises(error):
        fit(tiny(), tmp_path, report=arm)
    monkeypatch.undo()
    assert len(history_in(tmp_path)) == 2
    assert not list(tmp_path.glob("*.half"))
    unbroken, resumed = tiny(), tiny()
    fit(unbroken)
    fit(resumed, tmp_path)
    assert same(unbroken, resumed)


def test_without_val_the_last_epoch_is_the_best(tmp_path):
    options = dict(epochs=3, batch_size=8, progress=False, device="cpu", folder=tmp_path)
    model = tiny()
    history = training.fit(model, pictures(), **options)
    assert len(history) == 3 == history.best
    assert history.val_loss == history.val_accuracy == []
    for name in ("last", "best"):
        assert same(training.load_model(tmp_path / f"{name}.safetensors"), model)
        assert {*load(tmp_path / f"{name}.safetensors").used} == {*model.state_dict()}
    assert training.fit(tiny(9), pictures(), **options) == history
    with pytest.raises(ValueError, match=r"images was \[20, 0\], is \[20, 9\]"):
        fit(tiny(), tmp_path)


@pytest.mark.parametrize("with_val", [False, True])
def test_weights_that_are_no_longer_numbers_are_not_saved(tmp_path, with_val):
    val = pictures(9, 1) if with_val else None
    options = dict(epochs=1, batch_size=20, warmup=0.0, lr=1e38, progress=False, device="cpu")
    with pytest.raises(ValueError, match="is no longer a number"):
        training.fit(tiny(), pictures(), val, folder=tmp_path, **options)
    assert list(tmp_path.glob("*.safetensors")) == []


XYZ = ("x", "y", "z")
FROZEN = tiny()
FROZEN.tokens.requires_grad_(False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(lr=1e-3), "lr was 0.002, is 0.001"),
        (dict(class_weights=[2, 1, 1]), r"class_weights was None, is \[2\.0, 1\.0, 1\.0\]"),
        (dict(model=FROZEN), "frozen was None, is 2"),
        (dict(model=tiny(embed_dim=16)), "embed_dim was 8, is 16"),
        (dict(train=pictures(19)), r"images was \[20, 9\], is \[19, 9\]"),
        (dict(train=pictures(classes=XYZ), val=pictures(9, classes=XYZ)), "classes was .*'z'"),
    ],
)
def test_another_runs_checkpoint_is_refused(tmp_path, changes, message):
    fit(tiny(), tmp_path)
    path, model = tmp_path / "last.safetensors", tiny()
    before = path.read_bytes()
    with pytest.raises(ValueError, match=rf"of another run \({message}.*another folder"):
        fit(**dict(model=model, folder=tmp_path) | changes)
    assert path.read_bytes() == before
    assert same(model, tiny())
    tensors, info = checkpoints.read_checkpoint(path)
    info["run"]["colour"] = "red"  # of a version that knows more
    checkpoints.write_checkpoint(path, tensors, info)
    with pytest.raises(ValueError, match=r"another run \(colour was 'red', is None\)"):
        fit(model, tmp_path)


def test_numpys_whole_numbers_are_numbers(tmp_path):
    three, seed = np.int64(3), np.int64(0)
    history = fit(tiny(), tmp_path, epochs=three, seed=seed)
    assert fit(tiny(), tmp_path, epochs=3, seed=0) == history


# Compiled ----------------------------------------------------------------------------------------


def whole_compiled(model):
    return torch.compile(model, backend="eager")


def blocks_compiled(model):
    model.blocks[0] = torch.compile(model.blocks[0], backend="eager")
    return model


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # torch.compile's own
@pytest.mark.parametrize("compiled", [whole_compiled, blocks_compiled])
def test_a_compiled_model_is_saved_by_its_own_names_and_goes_on_in_either_form(tmp_path, compiled):
    unbroken, options = tiny(), dict(epochs=4, best=True)
    fit(unbroken, **options)
    for number, forms in enumerate([(compiled, nn.Module.eval), (nn.Module.eval, compiled)]):
        folder = tmp_path / str(number)
        fit(forms[0](tiny()), folder, report=after(2), **options)
        second = forms[1](tiny(seed=9))
        fit(second, folder, **options)
        training.save_model(second, tmp_path / "saved")
        assert same(training.load_model(tmp_path / "saved"), unbroken)


# One run in a folder -----------------------------------------------------------------------------


def test_a_second_run_in_the_same_folder_is_refused_and_the_first_goes_on(tmp_path):
    refused = []

    def second(history):
        with pytest.raises(ValueError, match="is in use by another training; wait"):
            fit(tiny(), tmp_path)
        refused.append(len(history))

    model, alone = tiny(), tiny()
    fit(model, tmp_path, report=second)
    assert refused == [1, 2, 3]
    fit(alone)
    assert same(model, alone)
    fit(tiny(), tmp_path)  # afterwards the folder is free


# Killed at any moment ----------------------------------------------------------------------------

# One process that has torch loaded makes a child for each training, and kills it at each of its
# calls that touch the disk in turn, before and after it.
KILLED = ALL | dict(epochs=16)  # enough to be killed in every file call
KILLER = """
import builtins, os, signal, sys, threading
from pathlib import Path
import torch
from tqdm import tqdm
import tiny_training as t
from test_checkpoints import KILLED

torch.set_num_threads(1)
tqdm.set_lock(threading.RLock())  # its own is shared by all children, and dies with its holder
t.fit(t.tiny())  # what torch loads late, it loads here
folder, epoch = Path(sys.argv[1]), 0

def train_to_call(number, after):
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
    t.fit(t.tiny(dropout=0.1), folder, **KILLED)

for kills in range(1000):
    pid = os.fork()
    if pid == 0:
        try:
            train_to_call(1 + kills // 2 % 13, kills % 2 == 1)
            os._exit(0)
        finally: os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert status in (0, signal.SIGKILL), status
    for path in folder.glob("*.safetensors"):
        t.training.load_model(path)
    done = len(t.history_in(folder)) if (folder / "last.safetensors").exists() else 0
    assert done >= epoch, "a finished epoch was lost"
    epoch = done
    if status == 0: break
print(kills)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_again_and_again_it_ends_like_an_unbroken_run(tmp_path):
    folder, unbroken = tmp_path / "killed", tmp_path / "unbroken"
    fit(tiny(dropout=0.1), unbroken, **KILLED)
    assert int(sh(sys.executable, "-c", KILLER, folder, env=PATHS)) >= 20
    for file in ("last.safetensors", "best.safetensors"):
        tensors, info = checkpoints.read_checkpoint(folder / file)
        wanted, told = checkpoints.read_checkpoint(unbroken / file)
        assert info == told
        assert tensors.keys() == wanted.keys()
        assert all(torch.equal(tensors[key], wanted[key]) for key in wanted)
    fit(tiny(dropout=0.1), folder, **KILLED)
    assert list(folder.glob("*.half")) == []  # what the killed ones left is swept


# CUDA --------------------------------------------------------------------------------------------


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_on_cuda_the_model_comes_home(tmp_path):
    model = tiny()
    whole = fit(model, device=None, epochs=4)
    assert next(model.parameters()).device.type == "cpu"
    fit(tiny(), tmp_path, device="cuda", epochs=4, report=after(2))
    resumed = fit(tiny(), tmp_path, device="cuda", epochs=4)
    assert resumed.train_loss == pytest.approx(whole.train_loss, abs=1e-3)
