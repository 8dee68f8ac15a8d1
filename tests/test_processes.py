"""A training in several processes: what one process comes to, whatever becomes of the others."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny_training import Plain, pictures, tiny

from vit_steps import training
from vit_steps.training import checkpoints, processes
from vit_steps.training.loader import Batches

pytestmark = pytest.mark.skipif(os.name == "nt", reason="torchrun's stores need Linux or macOS")
SEVERAL = Path(__file__).with_name("several.py")


def torchrun(size, *words, restarts=0):
    """Start so many processes, as a user would; one without torchrun."""
    line = [sys.executable]
    if size > 1:
        line += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={size}"]
        line += [f"--max-restarts={restarts}"]
    return subprocess.run(
        [*line, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
    )


def trained(size, folder, lifetime=0, restarts=0):
    folder.mkdir(exist_ok=True)
    return torchrun(size, SEVERAL, folder, lifetime, restarts=restarts)


def weights(folder, name="last", run="run"):
    """All numbers of a checkpoint, and its history."""
    tensors, info = checkpoints.read_checkpoint(folder / run / f"{name}.safetensors")
    return torch.cat([tensors[key].flatten().double() for key in sorted(tensors)]), info["history"]


def assert_same(one, other):
    for name in ("last", "best"):
        (a, history), (b, theirs) = weights(one, name), weights(other, name)
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)
        assert history.keys() == theirs.keys()
        for key in history:  # what is measured on val is measured in 32 bits
            near = 1e-6 if key == "val_loss" else 1e-9
            assert history[key] == pytest.approx(theirs[key], abs=near)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The same training in one process."""
    folder = tmp_path_factory.mktemp("alone")
    done = trained(1, folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:4] == [f"epoch {n}" for n in (1, 2, 3, 4)]
    return folder


@pytest.mark.slow
def test_several_processes_come_to_the_weights_of_one(alone, tmp_path):
    size = 3
    done = trained(size, tmp_path)
    assert done.returncode == 0, done.stderr
    assert_same(alone, tmp_path)
    told = {(tmp_path / f"measured_{n}").read_text() for n in range(size)}
    assert len(told) == 1
    (loss, counts), (wanted, same_counts) = map(
        json.loads, (told.pop(), (alone / "measured_0").read_text())
    )
    assert (loss, counts) == (pytest.approx(wanted, abs=1e-6), same_counts)
    # One tells and writes, as if it were alone.
    assert done.stdout.count("epoch ") == 4
    assert (tmp_path / "writes_0").read_text() == (alone / "writes_0").read_text()
    assert {(tmp_path / f"writes_{n}").read_text() for n in range(1, size)} == {"0"}
    # Nothing of the group is left: its threads, when Python ends, may end it by SIGABRT.
    for n in range(size):
        assert "gloo" not in (tmp_path / f"threads_{n}").read_text()


@pytest.mark.slow
def test_a_killed_process_ends_all_and_the_training_goes_on_in_another_number(alone, tmp_path):
    done = trained(2, tmp_path, lifetime=2)
    assert done.returncode != 0
    assert "SIGKILL" in done.stderr
    assert len(weights(tmp_path)[1]["train_loss"]) == 2
    done = trained(1, tmp_path)
    assert done.stdout == "epoch 3\nepoch 4\n"
    assert_same(alone, tmp_path)


@pytest.mark.slow
def test_torchrun_restarts_and_goes_on_from_the_checkpoint(alone, tmp_path):
    done = trained(2, tmp_path, lifetime=2, restarts=1)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(f"epoch {n}\n" for n in (1, 2, 3, 4))
    assert_same(alone, tmp_path)


SMALL = dict(device="cpu", embed_dim=8, depth=1, num_heads=2, patch_size=4, processes=2)


def command(*words):
    small = [word for k, v in SMALL.items() for word in (f"--{k.replace('_', '-')}", v)]
    line = [sys.executable, "-m", "vit_steps.training", *map(str, (*small, *words))]
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return subprocess.Popen(line, **pipes, start_new_session=True)


@pytest.mark.slow
def test_the_command_trains_in_several_processes_and_ends_in_one_line(tmp_path):
    process = command("--out", tmp_path, "--epochs", 3000)
    while not (line := process.stdout.readline()).startswith("epoch   2"):
        assert process.poll() is None
        if line.startswith("ViT"):
            assert line.endswith("on cpu, in 2 processes\n")
    os.killpg(process.pid, signal.SIGINT)  # Ctrl-C
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")
    assert out.count("Stopped after epoch ") == out.count("go") == 1
    epochs = len(weights(tmp_path, run=".")[1]["train_loss"])
    process = command("--out", tmp_path, "--epochs", epochs + 1)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert out.count("measured once") == out.count("\nepoch ") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--num-heads", 3], "embed_dim 8 does not divide into 3 heads"),
        (["--batch-size", 1], "batch_size is 1, too few for 2 processes"),
    ],
)
def test_several_processes_say_in_one_line_what_is_wrong(tmp_path, words, message):
    process = command("--out", tmp_path, *words)
    err = process.communicate(timeout=60)[1]
    assert process.returncode == 1
    assert err.startswith("vit_steps.training: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("data", [pictures(17), Plain(pictures(17))])
@pytest.mark.parametrize("size", [1, 2, 3, 20])
def test_each_image_is_drawn_once_and_each_batch_is_the_same(data, size):
    parts = [
        list(Batches(data, 8, share=(n, size))(torch.Generator().manual_seed(3)))
        for n in range(size)
    ]
    whole = list(Batches(data, 8)(torch.Generator().manual_seed(3)))
    assert {len(part) for part in parts} == {3}
    for step, (images, labels) in enumerate(whole):
        shares = [part[step] for part in parts]
        sizes = [len(share[1]) for share in shares]
        assert max(sizes) - min(sizes) <= 1
        assert sum(sizes) == len(labels)
        there = torch.cat([share[0] for share in shares]).flatten(1).sort(dim=0).values
        torch.testing.assert_close(there, images.flatten(1).sort(dim=0).values)


def test_shares_are_augmented_each_in_its_own_way():
    def noise(images, generator):
        return images * 0 + torch.rand(1, generator=generator)

    first = [
        next(Batches(pictures(4), 4, share=(n, 2))(torch.Generator().manual_seed(3), noise))[0]
        for n in (0, 1)
    ]
    assert not torch.equal(first[0], first[1])


def test_where_several_processes_cannot_train_it_says_so(monkeypatch):
    for name, value in (("RANK", 0), ("LOCAL_RANK", 0), ("LOCAL_WORLD_SIZE", 3)):
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for device, message in (
        ("cuda", "3 processes, but 2 CUDA"),
        ("mps", "cuda or cpu, not on mps"),
    ):
        with pytest.raises(ValueError, match=message), processes.joined(torch.device(device)):
            pass


def test_in_one_process_nothing_changes():
    model, x = tiny(), torch.ones(2)
    assert processes.my_share() == (0, 1)
    assert processes.wrap(model) is model
    assert processes.total(x) is x
    assert processes.totals(1.5, 2) == [1.5, 2]
    with processes.joined(torch.device("cpu")) as device, processes.first_alone():
        assert device == torch.device("cpu")
    assert training.evaluate(model, pictures(9))[0] > 0
