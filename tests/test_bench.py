"""The benchmarks measure what they say, on models of one size."""

import json
import os
import re
import sys
import time

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from tests import (
    bench,
    bench_forward,
    bench_lesson,
    bench_peers,
    bench_processes,
    bench_runs,
    bench_scale,
)
from vit_course.plots import speed
from vit_steps import EncoderBlock, ViT
from vit_steps.scale import merging, multiply_adds

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


@pytest.mark.skipif(os.name == "nt", reason="torchrun's stores need Linux or macOS")
def test_the_processes_take_their_turns():
    seconds = bench_processes.measure(turns=3, batch=33)  # which does not divide evenly
    assert set(seconds) == {bench_processes.ONE, bench_processes.TWO}
    assert all(len(taken) == 3 and min(taken) > 0 for taken in seconds.values())


# The lesson's measurements -----------------------------------------------------------------------


def test_the_time_goes_to_the_part_that_takes_it_and_the_watch_is_taken_off(monkeypatch):
    slept = F.scaled_dot_product_attention

    def slow(*words):
        time.sleep(0.02)
        return slept(*words)

    monkeypatch.setattr(F, "scaled_dot_product_attention", slow)
    found = bench_forward.by_part({"digits": SMALL}, turns=3)["sizes"]["digits"]
    assert found["time"]["attention"] > 0.7
    assert found["time"]["qkv"] < 0.2  # it is within attn, and counts by itself
    assert sum(found["time"].values()) == pytest.approx(1, abs=0.1)
    assert set(found["time"]) == {*found["work"], bench_forward.REST}
    assert sum(found["work"].values()) == pytest.approx(1)
    assert found["of_its_products"][1] > 1


def test_the_watch_on_a_models_parts_is_taken_off():
    model = ViT(SMALL)
    seconds, stack = bench_forward.timed_parts(model)
    with stack:
        model(torch.randn(2, 1, 8, 8))
    once = dict(seconds)
    assert all(once[part] > 0 for part in bench_forward.PARTS)
    model(torch.randn(2, 1, 8, 8))
    assert seconds == once


def test_the_rest_of_a_block_is_the_block_without_its_mixing(monkeypatch):
    block, x = EncoderBlock(12, 3), torch.randn(2, 5, 12)
    monkeypatch.setattr(F, "scaled_dot_product_attention", lambda q, *_: q)
    torch.testing.assert_close(bench_forward.TheRest(block)(x), block(x))


def test_memory_against_tokens_is_that_of_the_formulas():
    found = bench_forward.by_tokens(turns=1, counts=(16, 64), batch=1)
    assert found["kept"]["rest"] == [1.0, 4.0]
    (few, many), (fused, far) = found["kept"]["explicit"], found["kept"]["fused"]
    assert far / fused == pytest.approx(4)
    assert 4 < many / few < 16  # q, k and v grow as N, the weights as N²
    assert set(found["time"]) == {"explicit", "fused", "rest"}


def test_each_change_is_held_against_what_was_before_it(monkeypatch):
    seconds = {"plain": [2.0], "with gradients": [4.0], "explicit": [8.0], "patcher": [1.0]}
    monkeypatch.setattr(
        bench_forward, "take_turns", lambda runs, *_: {n: seconds.get(n, [3.0]) for n in runs}
    )
    found = bench_forward.small_changes(SMALL, "digits", turns=1, batch=2, compiled=False)
    rows = {name: ratio[1] for name, ratio in found["rows"].items()}
    assert rows.pop("no_grad instead of gradients") == 0.5
    assert rows.pop("fused attention instead of explicit") == 0.25
    assert rows.pop("channels-last, the patcher alone") == 3
    assert set(rows.values()) == {1.5}
    assert {"bf16 autocast", "two threads", "inference_mode instead of no_grad"} <= set(rows)
    assert found["left_out"]["torch.compile"] == "not asked for"


def test_small_changes_run():
    found = bench_forward.small_changes(SMALL, "digits", turns=1, batch=2, compiled=False)
    assert all(low > 0 for low, _, _ in found["rows"].values())
    assert torch.get_num_threads() == 1  # two for that row alone


def test_a_change_is_at_work_while_its_run_runs():
    seen = []

    def look(x):
        seen.append(((x @ x).dtype, torch.is_grad_enabled(), torch.get_num_threads()))

    x = torch.randn(2, 2)
    bench_forward.calls(look, x)()
    bench_forward.calls(look, x, torch.enable_grad)()
    bench_forward.calls(look, x, bench_forward.in_bf16)()
    bench_forward.in_threads(bench_forward.calls(look, x), 2)()
    full, half = torch.float32, torch.bfloat16
    assert seen == [(full, False, 1), (full, True, 1), (half, False, 1), (full, False, 2)]


def test_images_a_second_are_relative_to_one_image_in_one_thread(monkeypatch):
    seconds = {"1 1": [2.0], "2 1": [1.0], "1 4": [4.0], "2 4": [2.0]}
    monkeypatch.setattr(bench_forward, "take_turns", lambda runs, *_: seconds)
    found = bench_forward.by_batch(SMALL, "digits", 1, (1, 4))["images_a_second"]
    assert found == {"one thread": [1.0, 2.0], "two threads": [2.0, 4.0]}


def test_the_work_of_merging_is_counted_with_what_finds_the_pairs():
    model, images = ViT(SMALL).eval(), torch.randn(2, 1, 8, 8)
    counted = [bench_lesson.operations(merging(model, r), images) for r in (0, 1)]
    whole = bench_lesson.operations(model, images)
    assert counted[0] == whole == 2 * 2 * sum(multiply_adds(SMALL).values())
    assert counted[1] < whole


def test_merging_is_measured_on_the_stored_model():
    found = bench_lesson.by_merging(turns=1, most=2, canvases=100, batch=8)
    works = list(found["work"].values())
    assert works[0] == 1
    assert works[1] > works[2]
    assert next(iter(found["accuracy"].values())) > 0.9
    assert list(found["rows"]) == list(found["accuracy"]) == list(found["work"])


def test_less_memory_is_less_memory():
    found = bench_lesson.less_memory(SMALL, "digits", turns=1, batch=32)
    assert found["kept"]["the batch in 4 pieces"] == pytest.approx(0.25, abs=0.01)
    assert found["kept"]["checkpointing"] < 0.5
    assert all(0 < ratio < 1 for ratio in found["peak"].values())


@pytest.mark.filterwarnings("ignore:This DataLoader will create")  # on a machine of one core
def test_workers_are_held_against_none():
    found = bench_lesson.by_workers(turns=1, pictures=10)
    assert re.fullmatch(r"an epoch on 10 photos, of which reading takes \d+%", found["what"])
    assert list(found["rows"]) == ["one worker", "two workers"]


def test_the_lessons_file_holds_few_digits_and_is_written_whole(monkeypatch, tmp_path):
    made = {"made": {"turns": 3}, "ratios": {"x": [1 / 3, 2.0, 123456.0]}, "none": None}
    monkeypatch.setattr(bench_lesson, "everything", lambda turns: made | {"turns": turns})
    monkeypatch.setattr(bench_lesson, "keep_memory", lambda module: None)
    monkeypatch.setattr(sys, "argv", ["x", "--turns", "3", "--out", str(tmp_path / "a.json")])
    bench_lesson.main()
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == {
        "made": {"turns": 3},
        "ratios": {"x": [0.3333, 2.0, 123500.0]},
        "none": None,
        "turns": 3,
    }


def test_what_another_benchmark_stored_stays(monkeypatch, tmp_path):
    file = tmp_path / "a.json"
    file.write_text('{"made": {"turns": 1}, "scale": {"steps": 2}}', encoding="utf-8")
    monkeypatch.setattr(bench_lesson, "everything", lambda turns: {"made": {"turns": turns}})
    monkeypatch.setattr(bench_lesson, "keep_memory", lambda module: None)
    monkeypatch.setattr(sys, "argv", ["x", "--turns", "3", "--out", str(file)])
    bench_lesson.main()
    monkeypatch.setattr(bench_scale, "everything", lambda: {"steps": 5})
    bench_scale.main(file)
    assert json.loads(file.read_text("utf-8")) == {"made": {"turns": 3}, "scale": {"steps": 5}}


def test_a_reader_and_a_whole_vit_train_in_every_form():
    for form in bench_scale.FORMS:
        for heads in (0, 4):
            assert 0 <= bench_scale.trained(form, 0, 0.001, heads, steps=2) <= 100


def test_a_stored_training_with_the_scale_comes_out_again():
    stored = speed.stored("scale")
    for rate in ("0.0003", "0.001"):
        again = bench_scale.trained("divided by √d", 0, float(rate))
        assert abs(again - stored["reader"]["divided by √d"][rate][0]) < 1


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
