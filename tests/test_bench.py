"""The benchmarks measure what they say, on models of one size."""

import json
import sys
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from tests import (
    bench,
    bench_parts,
    bench_peers,
    bench_runs,
    bench_scale,
    bench_why_c,
)
from vit_course.plots import scores
from vit_steps import ViT, variants
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

    assert bench_runs.peak(three_in_a_row) == 80_000


def test_the_peak_holds_the_gradients_that_the_run_before_left():
    weight = nn.Parameter(torch.randn(1000))  # 4,000 bytes, and so are its gradient and exp

    def step():
        loss = weight.exp().sum() + torch.ones(5000).sum()  # 20,000 for a moment
        weight.grad = None
        loss.backward()

    for _ in range(2):
        assert 28_000 <= bench_runs.peak(step) < 28_100  # and some scalars


def test_the_floor_has_all_of_the_models_products_but_the_head():
    with FlopCounterMode(display=False) as counter:
        bench.products(SMALL, batch=3)()
    work = multiply_adds(SMALL)
    assert counter.get_total_flops() == 2 * 3 * (sum(work.values()) - work["head"])


def test_peers_of_another_size_are_refused(monkeypatch):
    assert {"vit_steps", "torch's encoder"} <= set(bench_peers.build(SMALL))
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


def test_the_control_computes_what_ours_does():
    model, images = ViT(SMALL), torch.randn(2, 1, 8, 8)
    control = bench.explicit(model)
    torch.testing.assert_close(control(images), model(images), atol=1e-5, rtol=0)
    assert bench.kept(control, SMALL, 8) != bench.kept(model, SMALL, 8)


def test_every_turn_runs_each_one_once():
    calls = []
    runs = {name: lambda name=name: calls.append(name) for name in "abc"}
    seconds = bench.take_turns(runs, 4, "a case")
    assert {name: len(values) for name, values in seconds.items()} == {"a": 4, "b": 4, "c": 4}
    assert all(sorted(calls[i : i + 3]) == ["a", "b", "c"] for i in range(0, 15, 3))


def test_a_case_gives_ratios_turn_by_turn_and_says_which_bars_are_met(monkeypatch):
    monkeypatch.setitem(bench.CASES, "forward-8", (*bench.CASES["forward-8"][:2], SMALL, 2, 2))
    assert {bench.OURS, bench.FLOOR, bench.EXPLICIT} <= set(bench.measure("forward-8", 2))
    assert bench.measure("memory", 1)[bench.OURS] == [1.0] * 3
    needed = {"vit_steps": [2.0, 4.0, 9.0], "timm": [2.0, 4.0, 3.0], bench.FLOOR: [1.0, 2.0, 3.0]}
    monkeypatch.setattr(bench, "take_turns", lambda *_: needed)
    found = bench.measure("forward-8", 2)
    assert found == {"vit_steps": [1.0] * 3, "timm": [1.0, 1.0, 2.0], bench.FLOOR: [2.0, 2.0, 2.5]}
    assert bench.as_text("forward-8", found).splitlines()[3:] == [
        "  bare matrix products  2.000 (2.00–2.50)",
        "  bar: at most 1.00 of timm: met",
        "  bar: at most 1.00 of transformers: not measured",
        "  bar: at most 1.00 of vit-pytorch: not measured",
        "  bar: at most 1.05 of torch's encoder: not measured",
        "  bar: at most 1.08 of bare matrix products: missed",
    ]


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


@pytest.mark.parametrize("held", ["qkv", "mlp"])
def test_what_never_learns_is_as_it_started_and_all_else_moves(held):
    name = {"qkv": "q, k, v never learn", "mlp": "MLPs never learn"}[held]
    model, start = bench_parts.MAKERS[name](0), bench_parts.whole(0).state_dict()
    few, _, _ = bench_parts.parts()
    bench_parts.train(model, few, 1, lr=bench_parts.RATE, batch_size=bench_parts.BATCH, seed=0)
    still = {key for key, value in model.state_dict().items() if value.equal(start[key])}
    assert still == {key for key in start if held in key.split(".")}


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
    theirs, ours = PACKAGED[name](size), bench_why_c.Between(**bench_why_c.SYSTEMS[name])
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
        model = bench_why_c.Between(**setting, side=side)
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
