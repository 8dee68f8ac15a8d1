"""A training in several processes: what one process comes to, whatever becomes of the others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from vit_steps.training import checkpoints

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="torchrun's stores need Linux or macOS"),
]


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
    return torchrun(
        size, Path(__file__).with_name("several.py"), folder, lifetime, restarts=restarts
    )


def assert_same(one, other):
    for name in ("last", "best"):
        (a, about), (b, other_about) = (
            checkpoints.read_checkpoint(folder / "run" / f"{name}.safetensors")
            for folder in (one, other)
        )
        assert a.keys() == b.keys()
        for key in a:
            torch.testing.assert_close(a[key], b[key], rtol=0, atol=1e-9)
        for key, numbers in about["history"].items():
            assert numbers == pytest.approx(other_about["history"][key], abs=1e-9)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The same training in one process."""
    folder = tmp_path_factory.mktemp("alone")
    result = trained(1, folder)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "".join(f"epoch {n}\n" for n in (1, 2, 3, 4))
    return folder


def test_several_processes_come_to_the_weights_of_one(alone, tmp_path):
    result = trained(3, tmp_path)
    assert result.returncode == 0, result.stderr
    assert_same(alone, tmp_path)
    states = [torch.load(tmp_path / f"weights_{n}.pt") for n in range(3)]
    for state in states[1:]:  # each process has them
        assert all(torch.equal(state[name], states[0][name]) for name in state)


def test_a_killed_process_ends_all_and_the_training_goes_on_in_another_number(alone, tmp_path):
    result = trained(2, tmp_path, lifetime=2)
    assert result.returncode != 0
    assert "SIGKILL" in result.stderr
    result = trained(1, tmp_path)
    assert result.stdout == "epoch 3\nepoch 4\n", result.stderr
    assert_same(alone, tmp_path)


def test_torchrun_restarts_and_goes_on_from_the_checkpoint(alone, tmp_path):
    result = trained(2, tmp_path, lifetime=2, restarts=1)
    assert result.returncode == 0, result.stderr
    assert_same(alone, tmp_path)


def test_the_command_trains_under_torchrun_and_one_process_speaks(tmp_path):
    sizes = ["--embed-dim", 8, "--depth", 1, "--num-heads", 2, "--patch-size", 4, "--epochs", 2]
    words = ["-m", "vit_steps.training", *sizes, "--device", "cpu", "--out", tmp_path]
    result = torchrun(2, *words)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("measured once") == result.stdout.count("epoch   2 of 2") == 1
    result = torchrun(2, *words, "--num-heads", 3)
    assert result.returncode != 0
    assert "vit_steps.training: embed_dim 8 does not divide into 3 heads" in result.stderr
