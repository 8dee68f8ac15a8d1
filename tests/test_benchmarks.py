"""The benchmarks run, in the small: on models of one size, without a training."""

import json

import pytest
import torch

from benchmarks import parts, peers, photo_weights, published_weights, speed, sqrt_d, storing, why_c
from vit_course.plots import scores

DIGITS = torch.randn(3, 1, 8, 8)
PEERS = ("transformers", "torch's encoder")


@pytest.mark.parametrize("kind", [speed.forward, speed.backward, speed.training_step])
def test_a_case_gives_the_ratio_to_each_peer(kind, monkeypatch):
    monkeypatch.setitem(speed.CASES, "backward", ("a title", kind, speed.DIGITS, 2))
    ratios = speed.measure("backward", turns=6)
    assert {name: len(values) for name, values in ratios.items()} == dict.fromkeys(PEERS, 6)
    limit = "transformers     1.200 (1.000 to 1.200), at most 1.03 from below: yes"
    seven = {"transformers": [1.0] * 3 + [1.2] * 4}
    assert speed.as_text("backward", seven) == f"a title: ours to\n  {limit}"


def test_peers_have_as_many_parameters_and_give_logits():
    counts = set()
    for make in peers.MODELS.values():
        model = make(speed.DIGITS)
        assert model(DIGITS).shape == (3, 10)
        counts.add(sum(p.numel() for p in model.parameters()))
    assert len(counts) == 1


def test_each_variant_is_a_model_of_digits_and_is_stored():
    models = {name: make(0) for name, make in parts.MAKERS.items()}
    models |= {name: why_c.make(of["setting"]) for name, of in why_c.plan().items()}
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


@pytest.mark.nightly
def test_one_seed_of_each_lesson_comes_out_as_stored():
    """On another processor the last bits differ, and a training of 400 steps makes points of it."""
    few, runs = scores.stored("learning")["few"], scores.stored("why C")["runs"]
    for name in ("no positions", "head by place"):
        assert abs(parts.plan()["few"][name](0) - few[name][0]) < 5
    for name in ("A, all tokens", "C without blocks"):
        assert abs(why_c.train_setting(seed=0, **why_c.plan()[name]) - runs[name][0]) < 3
    divided = scores.stored("scale")["reader"]["divided by √d"]
    assert abs(sqrt_d.train_form("divided by √d", 0, 0.001) - divided["0.001"][0]) < 1
