"""Parts taken out of blocks, and a comparison that can be stopped and goes on."""

import pytest
import torch
from helpers import close

from vit_course.ablation import compare, percent_right, run, small, taken_out
from vit_steps import EncoderBlock


def test_without_nothing_a_block_is_a_block_and_without_a_part_it_is_not():
    model = small(EncoderBlock)
    plain = [EncoderBlock.forward for _ in model.blocks]
    x = torch.randn(2, 5, 32)
    expected = x
    for forward, block in zip(plain, model.blocks, strict=True):
        expected = forward(block, expected)
    close(run(model.blocks, x), expected)
    close(model.blocks(x), expected)
    seen = [run(model.blocks, x, part) for part in ("attention", "MLPs", "norms", "sums")]
    assert all((y - expected).abs().max() > 0.01 for y in seen)
    close(taken_out(model, "norms").blocks(x), seen[2])
    close(small(EncoderBlock, without="norms").blocks(x), seen[2])  # the same seed
    close(model.blocks(x), expected)  # the model itself is whole
    assert percent_right([model, model])[0] < 30


@pytest.fixture
def runs(tmp_path):
    """A comparison whose score counts its calls, and can be stopped."""

    class Runs:
        stop, file = 99, tmp_path / "runs.json"

        def __init__(self):
            self.calls = []

        def score(self, model, seed):
            self.calls.append(seed)
            if len(self.calls) == self.stop:
                raise KeyboardInterrupt
            return 10.0 * seed + model

        def compare(
            self, plan="I expect more.", whole=lambda seed: 0, variant=lambda model: model + 1
        ):
            return compare(whole, variant, self.score, plan, self.file, seeds=range(3))

    return Runs()


def test_a_comparison_goes_on_where_it_was_stopped(runs):
    runs.stop = 4
    with pytest.raises(KeyboardInterrupt):
        runs.compare()
    assert runs.compare() == ([0.0, 10.0, 20.0], [1.0, 11.0, 21.0])
    assert runs.calls == [0, 0, 1, 1, 1, 2, 2]  # the one that was stopped is trained again
    assert runs.compare() == ([0.0, 10.0, 20.0], [1.0, 11.0, 21.0])
    assert len(runs.calls) == 7


def test_a_plan_comes_first_and_stays_and_so_does_what_it_compares(runs):
    with pytest.raises(ValueError, match="the plan is empty; write what you expect"):
        runs.compare(plan=" ")
    runs.compare()
    with pytest.raises(ValueError, match=r"runs\.json holds results of another plan"):
        runs.compare(plan="I expect less.")
    with pytest.raises(ValueError, match=r"runs\.json holds results of another variant"):
        runs.compare(variant=lambda model: model + 2)
    with pytest.raises(ValueError, match=r"runs\.json holds results of another model"):
        runs.compare(whole=lambda seed: 1)
    runs.score = lambda model, seed: 0.0
    with pytest.raises(ValueError, match=r"runs\.json holds results of another training"):
        runs.compare()
