"""The benchmarks run, in the small: on models of one size, without a training."""

import json
import random

import pytest
import torch

from benchmarks import parts, photo_weights, published_weights, speed, sqrt_d, storing, why_c
from vit_course.plots import scores

DIGITS = torch.randn(3, 1, 8, 8)


@pytest.mark.parametrize("kind", [speed.forward, speed.backward, speed.training_step, speed.memory])
def test_a_case_gives_the_ratio_to_each_peer(kind, monkeypatch):
    monkeypatch.setitem(speed.CASES, "backward", ("a title", kind, speed.DIGITS, 2))
    ratios = speed.measure("backward", turns=2)
    assert {"torch's encoder", "transformers"} <= set(ratios)
    assert all(0 < low <= middle <= high for low, middle, high in ratios.values())
    assert speed.as_text("backward", ratios).count("at most 1.03 from below") == 1


def test_the_interval_holds_the_median_in_95_of_100_samples():
    assert speed.median_interval([5.0, 1.0, 3.0, 2.0, 4.0, 6.0]) == (1.0, 3.5, 6.0)
    rng = random.Random(0)
    samples = [[rng.random() for _ in range(30)] for _ in range(1000)]
    ends = [speed.median_interval(sample) for sample in samples]
    assert 945 <= sum(low <= 0.5 <= high for low, _, high in ends) <= 980


def test_each_variant_is_a_model_of_digits_and_is_stored():
    models = {name: make(0) for name, make in parts.MAKERS.items()}
    models |= {name: why_c.Between(**of["setting"]) for name, of in why_c.plan().items()}
    models |= {"reader": sqrt_d.Reader(sqrt_d.WithoutScale)}
    models |= {"whole": sqrt_d.whole_vit(sqrt_d.WithoutScale, 4)}
    models |= {name: make(10) for name, make in photo_weights.MODELS.items()}
    for name, model in models.items():
        images = torch.randn(3, 3, 32, 32) if name in photo_weights.MODELS else DIGITS
        if "scattered" not in name:
            assert model(images).shape == (3, 10), name
    learning, runs = scores.stored("learning"), scores.stored("why C")["runs"]
    for table, variants in parts.plan().items():
        assert {name: len(learning[table][name]) for name in variants} == dict.fromkeys(variants, 8)
    assert {name: len(shares) for name, shares in runs.items()} == dict.fromkeys(why_c.plan(), 5)


def test_what_is_stored_is_left_alone_and_not_measured_again(tmp_path, monkeypatch):
    file = tmp_path / "a.json"
    file.write_text('{"quoted": 1, "why C": {"runs": {"A": [1]}}}', encoding="utf-8")
    monkeypatch.setattr(why_c, "plan", lambda: {"A": {}, "B": {"rate": 2}})
    monkeypatch.setattr(why_c, "train_setting", lambda seed, rate: seed * rate)
    why_c.main(file)
    storing.store(file, scale=published_weights.EACH)
    stored = json.loads(file.read_text("utf-8"))
    assert stored["why C"]["runs"] == {"A": [1], "B": [0, 2, 4, 6, 8]}
    assert (stored["quoted"], stored["scale"]) == (1, [5, 20])


@pytest.mark.slow
def test_one_seed_of_each_lesson_comes_out_as_stored():
    """On another processor the last bits differ, and a training of 400 steps makes points of it."""
    few, runs = scores.stored("learning")["few"], scores.stored("why C")["runs"]
    for name in ("no positions", "head by place"):
        assert abs(parts.plan()["few"][name](0) - few[name][0]) < 5
    for name in ("A, all tokens", "C without blocks"):
        assert abs(why_c.train_setting(seed=0, **why_c.plan()[name]) - runs[name][0]) < 3
    divided = scores.stored("scale")["reader"]["divided by √d"]
    assert abs(sqrt_d.train_form("divided by √d", 0, 0.001) - divided["0.001"][0]) < 1
