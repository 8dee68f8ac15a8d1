"""The benchmarks measure what they say, on models of one size."""

import json
import os
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from tests import (
    bench,
    bench_cuda,
    bench_parts,
    bench_peers,
    bench_processes,
    bench_runs,
    bench_scale,
    bench_why_c,
)
from vit_course.plots import scores
from vit_steps import ViT, ViTConfig, variants
from vit_steps.scale import multiply_adds

SMALL = bench.DIGITS

pytestmark = pytest.mark.slow


# What is run, and how it is measured -------------------------------------------------------------


def test_memory_kept_is_the_activations_without_the_parameters():
    first, second = nn.Linear(64, 7), nn.Linear(7, 3)
    model = nn.Sequential(nn.Flatten(), first, second)
    floats = 5 * 64 + 5 * 7  # what each Linear was given; Flatten's view is no storage of its own
    assert bench.kept(model, SMALL, batch=5) == 4 * floats


def test_the_peak_is_what_is_there_at_once_and_not_what_was_there_before():
    a = torch.randn(100, 100)  # 40,000 bytes each

    def three_in_a_row():
        b = a @ a
        c = b @ b
        del b
        return c @ c

    assert bench.peak(three_in_a_row) == 80_000


def test_the_peak_holds_the_gradients_that_the_run_before_left():
    weight = nn.Parameter(torch.randn(1000))  # 4,000 bytes, and so are its gradient and exp

    def step():
        loss = weight.exp().sum() + torch.ones(5000).sum()  # 20,000 for a moment
        weight.grad = None
        loss.backward()

    for _ in range(2):
        assert 28_000 <= bench.peak(step) < 28_100  # and some scalars


def test_the_floor_has_all_of_the_models_products_but_the_head():
    with FlopCounterMode(display=False) as counter:
        bench.products(SMALL, batch=3)()
    work = multiply_adds(SMALL)
    assert counter.get_total_flops() == 2 * 3 * (sum(work.values()) - work["head"])


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


def test_the_medians_interval_holds_the_true_one_19_times_of_20():
    draw = torch.Generator().manual_seed(0)
    held = 0
    for _ in range(1000):
        values = (1.3 + 0.1 * torch.randn(30, generator=draw)).tolist()
        low, high = bench.chance(values, [1.0] * 30)
        held += low <= 1.3 <= high
    assert 940 <= held <= 985
    assert bench.chance([2.0, 4.0, 9.0], [1.0, 1.0, 3.0]) == [2.0, 4.0]


def test_the_controls_compute_what_ours_does():
    model, images = ViT(SMALL), torch.randn(2, 1, 8, 8)
    equation, linear = bench.explicit(model), bench.explicit(model, linear=True)
    for control in (equation, linear):
        torch.testing.assert_close(control(images), model(images), atol=1e-5, rtol=0)
    kept = [bench.kept(one, SMALL, 8) for one in (model, equation)]
    assert kept[0] != kept[1]  # by the equation other things are kept for backward
    assert not any(isinstance(part, nn.Conv2d) for part in linear.modules())
    assert any(isinstance(part, nn.Conv2d) for part in equation.modules())


def test_controls_are_no_peers():
    needed = {"vit_steps": [2.0], "timm": [1.0], bench.EXPLICIT: [0.5], bench.LINEAR: [0.25]}
    found = bench.ratios(needed)
    assert found["vit_steps"]["of_the_best"] == [2.0] * 3
    assert found[bench.EXPLICIT]["ours_of_it"] == [4.0] * 3
    assert found[bench.LINEAR]["ours_of_it"] == [8.0] * 3


def test_every_turn_runs_each_one_once():
    calls = []
    runs = {name: lambda name=name: calls.append(name) for name in "abc"}
    seconds = bench.take_turns(runs, 4, "a case")
    assert {name: len(values) for name, values in seconds.items()} == {"a": 4, "b": 4, "c": 4}
    assert all(sorted(calls[i : i + 3]) == ["a", "b", "c"] for i in range(0, 15, 3))


# What is told ------------------------------------------------------------------------------------


def ours_to(**peers):
    names = {"torch": "torch's encoder", "vit_pytorch": "vit-pytorch", "floor": bench.FLOOR}
    return {
        names.get(name, name): {
            "of_the_best": [1.0] * 3,
            "ours_of_it": [0.1, ratio, 9.9],
            "chance": [ratio - 0.003, ratio + 0.002],
        }
        for name, ratio in peers.items()
    }


def test_the_verdict_goes_by_the_median_and_says_by_how_much_a_bar_is_missed():
    found = ours_to(timm=1.0, transformers=1.004, torch=1.052, floor=1.1)
    assert bench.verdict("forward-8", found) == [
        "at most 1.00 of timm: met (1.000)",
        "at most 1.00 of transformers: missed by 0.004 (1.004)",
        "at most 1.00 of vit-pytorch: not measured",
        "at most 1.05 of torch's encoder: not told apart, 1.049 to 1.054 at 95% (1.052)",
        "at most 1.08 of bare matrix products: missed by 0.020 (1.100)",
    ]
    assert bench.verdict("backward", ours_to(timm=1.02, torch=9.0, vit_pytorch=1.03)) == [
        "at most 1.02 of timm: met (1.020)",
        "at most 1.02 of transformers: not measured",
        "at most 1.02 of vit-pytorch: missed by 0.010 (1.030)",
    ]
    assert bench.verdict("memory", found) == []


def test_every_line_that_takes_time_has_a_bar_and_every_bar_a_line_and_a_peer():
    barred = {case for cases, _, _ in bench.BARS for case in cases}
    assert barred == {name for name, case in bench.CASES.items() if case[1] is not bench.kept}
    held = {peer for _, peers, _ in bench.BARS for peer in peers}
    assert held == set(bench_peers.PEERS) - {bench.OURS} | {bench.FLOOR}


def test_a_case_gives_ratios_peaks_and_the_verdict(monkeypatch):
    monkeypatch.setitem(bench.CASES, "digits", (*bench.CASES["digits"][:3], 8, 2))
    result = bench.measure("digits", rounds=2)
    assert result["turns"] == 4
    assert result["peak"]["vit_steps"] == 1
    assert 0.9 < result["peak"]["torch's encoder"] < 1.1  # both keep the same for backward
    assert set(result["ratios"]) == set(result["peak"])
    assert len(result["verdict"]) == 3
    text = bench.as_text(result)
    assert "peak, ours to it" in text
    assert text.count("\n  bar: at most 1.02 of ") == 3


def test_a_result_is_written_and_drawn(tmp_path):
    needed = {"vit_steps": [2.0, 4.0, 9.0], "timm": [1.0, 2.0, 3.0]}
    result = {"case": "a case", "turns": 3, "absent": ["transformers"], "verdict": ["a bar: met"]}
    result |= {"ratios": bench.ratios(needed), "peak": {"vit_steps": 1.0, "timm": 0.5}}
    text = bench.as_text(result)
    assert "2.000 (2.00–2.50)               0.500" in text
    assert "not installed: transformers\n  bar: a bar: met" in text
    bench.draw([result, result], tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_without_a_cuda_card_the_command_says_so_and_goes_on(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    file = tmp_path / "told.json"
    words = ["--cases", "cuda", "--plain-malloc", "--json", str(file)]
    monkeypatch.setattr(sys, "argv", ["bench", *words])
    bench.main()
    assert capsys.readouterr().out == "cuda: left out, there is no CUDA card here\n"
    told = json.loads(file.read_text("utf-8"))
    assert (told["cuda"], told["results"]) == (None, [])


# Two processes -----------------------------------------------------------------------------------


def test_two_processes_are_held_against_one_turn_by_turn(monkeypatch):
    seconds = {"one process": [2.0, 4.0, 9.0], "two processes": [1.0, 2.5, 3.0]}
    monkeypatch.setattr(bench_processes, "measure", lambda turns, batch: seconds)
    result = bench.measure_processes(rounds=3)
    assert result["times_as_fast"] == [1.8, 2.0, 2.5]
    assert result["verdict"] == ["at least 1.7 times as many images a second: met (2.000)"]
    assert "2.000 (1.80–2.50) times as many" in bench.as_text(result)
    seconds["two processes"] = [2.0, 2.5, 9.0]
    (line,) = bench.measure_processes(rounds=3)["verdict"]
    assert line.endswith("missed by 0.700 (1.000)")


@pytest.mark.skipif(os.name == "nt", reason="torchrun's stores need Linux or macOS")
def test_the_processes_take_their_turns():
    seconds = bench_processes.measure(turns=3, batch=33)  # which does not divide evenly
    assert {name: len(taken) for name, taken in seconds.items()} == {
        "one process": 3,
        "two processes": 3,
    }
    assert all(second > 0 for taken in seconds.values() for second in taken)


def test_processes_that_fail_are_told_with_what_they_wrote(monkeypatch):
    failed = SimpleNamespace(returncode=1, stderr="no such port")
    monkeypatch.setattr(bench_processes.subprocess, "run", lambda *a, **k: failed)
    with pytest.raises(RuntimeError, match="ended with an error:\nno such port"):
        bench_processes.measure(turns=1)


# CUDA --------------------------------------------------------------------------------------------


def test_a_cards_peak_is_found_by_the_longest_name_that_fits():
    assert bench_cuda.stated_peak("NVIDIA H100 80GB HBM3") == 989e12
    assert bench_cuda.stated_peak("NVIDIA H100 PCIe") == 756e12
    assert bench_cuda.stated_peak("NVIDIA L40S") == 362e12
    assert bench_cuda.stated_peak("NVIDIA L4") == 121e12
    assert bench_cuda.stated_peak("GeForce") is None


def test_the_cuda_part_runs_where_there_is_only_a_cpu_to_try_it_on():
    small = {"small": ViTConfig(32, 8, 3, 10, embed_dim=48, depth=1, num_heads=4)}
    found = bench_cuda.measure(torch.device("cpu"), 2, 2, small, compiled=(False,))
    ours = [row for row in found["rows"] if row["model"] == "vit_steps"]
    assert [row["kind"] for row in ours] == ["forward", "training"]
    assert found["card"] == "CPU"
    assert found["product"] > 0
    assert all(row["of_stated"] is None and row["of_product"] > 0 for row in ours)
    assert set(found["absent"]) | {row["model"] for row in found["rows"]} >= {"vit_steps", "timm"}


def test_shares_of_the_peak_count_two_operations_and_three_passes(monkeypatch):
    config = ViTConfig(32, 8, 3, 10, embed_dim=48, depth=1, num_heads=4)
    work = sum(multiply_adds(config).values())
    monkeypatch.setattr(bench_cuda, "product_speed", lambda *_: 10.0 * work)
    monkeypatch.setattr(bench_cuda, "stated_peak", lambda _: 20.0 * work)
    monkeypatch.setattr(bench_cuda, "take_turns", lambda runs, *_: dict.fromkeys(runs, [8.0] * 3))
    found = bench_cuda.measure(torch.device("cpu"), 3, 4, {"small": config}, compiled=(False,))
    forward, training = (row for row in found["rows"] if row["model"] == "vit_steps")
    assert (forward["images_a_second"], training["images_a_second"]) == (0.5, 0.5)
    assert (forward["of_product"], forward["of_stated"]) == (0.1, 0.05)
    assert (training["of_product"], training["of_stated"]) == pytest.approx((0.3, 0.15))
    text = bench_cuda.as_text(found)
    assert "10%" in text
    assert "5%" in text


# What lesson 04 draws -----------------------------------------------------------------------------


def test_the_measurement_is_written_where_the_lesson_finds_it(monkeypatch, tmp_path):
    monkeypatch.setattr(bench_scale, "everything", lambda: {"steps": 5})
    file = tmp_path / "a.json"
    file.write_text('{"quoted": 1, "scale": {"steps": 2}}', encoding="utf-8")
    bench_scale.main(file)
    assert json.loads(file.read_text("utf-8")) == {"quoted": 1, "scale": {"steps": 5}}


# What each part is worth --------------------------------------------------------------------------


LEARNED = json.loads(bench_parts.FILE.read_text("utf-8"))["learning"]


def test_all_variants_have_the_same_number_of_seeds_and_none_is_missing():
    for table, those in bench_parts.plan().items():
        assert LEARNED[table].keys() == those.keys()
        assert {len(shares) for shares in LEARNED[table].values()} == {len(bench_parts.SEEDS)}


@pytest.mark.parametrize("name", ["the whole model", "no positions", "head by place", "MLP"])
def test_one_seed_of_lesson_08_comes_out_as_stored(name):
    """On another processor the last bits differ, and a training of 400 steps makes points of it."""
    apart = bench_parts.plan()["few"][name](0) - LEARNED["few"][name][0]
    assert abs(apart) < 5


def test_what_is_stored_is_not_measured_again_and_what_is_missing_is(monkeypatch, tmp_path):
    file = tmp_path / "a.json"
    kept = {"learning": {"few": {"a": [1.0] * 8, "b": [1.0] * 3}}, "scale": 1}
    file.write_text(json.dumps(kept), encoding="utf-8")
    variants = {"a": float, "b": lambda seed: seed + 0.5}
    monkeypatch.setattr(bench_parts, "plan", lambda: {"few": variants})
    bench_parts.main(file)
    found = json.loads(file.read_text("utf-8"))
    assert found["scale"] == 1
    assert found["learning"]["few"] == {"a": [1.0] * 8, "b": [seed + 0.5 for seed in range(8)]}


def test_each_variant_of_lesson_08_is_a_model_of_digits():
    images = torch.randn(3, 1, 8, 8)
    logits = {name: make(0)(images) for name, make in bench_parts.MAKERS.items()}
    assert {tuple(found.shape) for found in logits.values()} == {(3, 10)}


def test_a_reader_and_a_whole_vit_train_in_every_form():
    for form in bench_scale.FORMS:
        for heads in (0, 4):
            assert 0 <= bench_scale.trained(form, 0, 0.001, heads, steps=2) <= 100


def test_a_stored_training_with_the_scale_comes_out_again():
    stored = scores.stored("scale")
    for rate in ("0.0003", "0.001"):
        again = bench_scale.trained("divided by √d", 0, float(rate))
        assert abs(again - stored["reader"]["divided by √d"][rate][0]) < 1


def test_what_is_between_the_systems_goes_on_where_it_was_stopped(monkeypatch, tmp_path):
    file = tmp_path / "a.json"
    file.write_text('{"made": {"turns": 1}, "why C": {"runs": {"A": [1]}}}', encoding="utf-8")
    monkeypatch.setattr(bench_why_c, "everything", lambda: {"A": {}, "B": {"rate": 2}})
    monkeypatch.setattr(bench_why_c, "trained", lambda seed, rate: seed * rate)
    bench_why_c.main(file)
    stored = json.loads(file.read_text("utf-8"))
    assert stored["made"] == {"turns": 1}
    assert stored["why C"]["runs"] == {"A": [1], "B": [0, 2, 4, 6, 8]}


PACKAGED = {  # the systems that the bench mixes, as the package makes them
    "A": lambda size: variants.einops_vit(replace(variants.EINOPS, **size, num_classes=10)),
    "B": lambda size: variants.project_vit(replace(variants.PROJECT, **size, num_classes=10)),
    "C": lambda size: variants.face_vit(variants.FaceConfig(**size, num_features=10, num_heads=3)),
}


@pytest.mark.parametrize("name", PACKAGED)
def test_the_systems_that_are_mixed_are_the_packages(name):
    size = dict(image_size=8, patch_size=2, in_channels=1, embed_dim=24, depth=2)
    theirs, ours = PACKAGED[name](size), bench_why_c.Mixed(**bench_why_c.SYSTEMS[name])
    for part in ("patch_embed", "blocks"):
        getattr(ours, part).load_state_dict(getattr(theirs, part).state_dict())
    if name == "C":
        ours.tokens.pos_embed.data[:, 1:] = theirs.pos_embed.data
        ours.mask_token.data = theirs.mask_token.data
        after = [theirs.norm, *theirs.head]
    else:
        ours.tokens.load_state_dict(theirs.tokens.state_dict())
        after = [theirs.norm, theirs.head]
    learning = [part for part in ours.head if list(part.state_dict())]
    for mine, part in zip(learning, after, strict=True):
        mine.load_state_dict(part.state_dict())
    images = torch.randn(6, 1, 8, 8)
    torch.manual_seed(0)
    wanted = theirs.train()(images)  # the same patches masked, the same weights dropped
    torch.manual_seed(0)
    assert (ours.train()(images) - wanted).abs().max() < 1e-5
    assert (ours.eval()(images) - theirs.eval()(images)).abs().max() < 1e-5
    learns = [sum(p.numel() for p in m.parameters() if p.requires_grad) for m in (ours, theirs)]
    assert learns[0] - learns[1] == (48 if name == "C" else 0)  # its cls, which it does not use


def test_every_setting_trains():
    for name, how in bench_why_c.everything().items():
        setting = how["setting"]
        side = 16 if how.get("data") == "scattered" else 8
        model = bench_why_c.Mixed(**setting, side=side)
        loss = model.train()(torch.randn(4, 1, side, side)).square().mean()
        loss.backward()
        assert loss.isfinite(), name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["A", "A, all tokens", "C without blocks"])
def test_a_stored_training_between_the_systems_comes_out_again(name):
    again = bench_why_c.trained(seed=0, **bench_why_c.everything()[name])
    assert abs(again - scores.stored("why C")["runs"][name][0]) < 3


def test_lesson_11s_settings_are_all_stored():
    runs = scores.stored("why C")["runs"]
    assert set(runs) == set(bench_why_c.everything())
    assert {len(shares) for shares in runs.values()} == {bench_why_c.SEEDS}


def test_a_benchmark_starts_itself_again_once(monkeypatch):
    begun = []
    monkeypatch.setattr(bench_runs.os, "execv", lambda *words: begun.append(words))
    monkeypatch.setattr(bench_runs.sys, "platform", "linux")
    monkeypatch.setattr(bench_runs.sys, "argv", ["bench", "--rounds", "2"])
    for name in bench_runs.KEEP_MEMORY | bench_runs.QUIET:
        monkeypatch.delenv(name, raising=False)
    bench_runs.keep_memory("tests.bench")
    bench_runs.keep_memory("tests.bench")
    line = [sys.executable, "-m", "tests.bench", "--rounds", "2"]
    assert begun == [(sys.executable, line)]
    for name in bench_runs.KEEP_MEMORY | bench_runs.QUIET:
        monkeypatch.delenv(name)
