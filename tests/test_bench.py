"""The bench measures what it says, on models of one size."""

import pytest
import torch
from torch import nn

from tests import bench, bench_peers

SMALL = bench.DIGITS


def test_memory_kept_is_the_activations_without_the_parameters():
    first, second = nn.Linear(64, 7), nn.Linear(7, 3)
    model = nn.Sequential(nn.Flatten(), first, second)
    floats = 5 * 64 + 5 * 7  # what each Linear was given; Flatten's view is no storage of its own
    assert bench.kept(model, SMALL, batch=5) == 4 * floats


def test_peers_of_another_size_are_refused(monkeypatch):
    models, absent = bench_peers.build(SMALL)
    assert {"vit_steps", "torch's encoder"} <= set(models)
    assert set(models) | set(absent) == set(bench_peers.PEERS)
    monkeypatch.setitem(bench_peers.PEERS, "timm", lambda c: nn.Linear(8, 10))
    with pytest.raises(AssertionError, match="timm has 90 parameters where ours has 86506"):
        bench_peers.build(SMALL)


def test_torchs_encoder_computes_the_same_as_ours():
    ours, theirs = bench_peers.ViT(SMALL).eval(), bench_peers.TorchViT(SMALL).eval()
    names = {"self_attn.in_proj_": "attn.qkv.", "self_attn.out_proj": "attn.proj"}
    names |= {"linear1": "mlp.fc1", "linear2": "mlp.fc2", "encoder.layers": "blocks"}
    names |= {"encoder.norm": "norm"}
    weights = ours.state_dict()
    for their_name, parameter in theirs.state_dict().items():
        our_name = their_name
        for old, new in names.items():
            our_name = our_name.replace(old, new)
        parameter.copy_(weights[our_name])
    images = torch.randn(2, 1, 8, 8)
    torch.testing.assert_close(theirs(images), ours(images), atol=1e-5, rtol=0)


def test_ratios_are_taken_turn_by_turn_and_the_floor_is_no_model():
    needed = {"vit_steps": [2.0, 4.0, 9.0], "timm": [1.0, 2.0, 3.0], bench.FLOOR: [0.5, 1.0, 1.5]}
    found = bench.ratios(needed)
    assert found["vit_steps"]["of_the_best"] == [2.0, 2.0, 2.5]
    assert found["timm"]["of_the_best"] == [1.0, 1.0, 1.0]
    assert found["timm"]["ours_of_it"] == [2.0, 2.0, 2.5]
    assert found[bench.FLOOR]["of_the_best"] == [0.5, 0.5, 0.5]


def test_every_turn_runs_each_one_once():
    calls = []
    runs = {name: lambda name=name: calls.append(name) for name in "abc"}
    seconds = bench.take_turns(runs, 4, "a case")
    assert {name: len(values) for name, values in seconds.items()} == {"a": 4, "b": 4, "c": 4}
    assert all(sorted(calls[i : i + 3]) == ["a", "b", "c"] for i in range(0, 15, 3))


def test_a_result_is_written_and_drawn(tmp_path):
    needed = {"vit_steps": [2.0, 4.0, 9.0], "timm": [1.0, 2.0, 3.0]}
    result = {"case": "a case", "turns": 3, "absent": ["transformers"]}
    result["ratios"] = bench.ratios(needed)
    text = bench.as_text(result)
    assert "2.000 (2.00–2.50)" in text
    assert "not installed: transformers" in text
    bench.draw([result, result], tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 5000
