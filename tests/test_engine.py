"""The engine behind the checks, on checks made for it, and `difference`."""

import re
import sys
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import vit_steps
from vit_course import checks
from vit_course.checks.compare import Unsteady, Verdict, compare, kind_of
from vit_course.checks.engine import Check
from vit_course.checks.exercise import Exercise, made
from vit_course.checks.trials import ANEW, Trial, call, module, trust
from vit_course.teaching import wire
from vit_steps import training


def thirds(n):
    return 3 * n


tripled = Check(
    thirds,
    [call("2", 2), call("5", 5), call("7", 7)],
    {
        "this is one more": lambda n: 3 * n + 1,
        "this is the square plus two": lambda n: n * n + 2,
        "this always says 9": lambda n: 9,
        "this is nine, whatever comes": lambda n: 9,
    },
)


DOUBLING = """
class Doubling(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = nn.Linear(width, 2 * width)

    def forward(self, x):
        return self.proj(x)
"""
ROW = module("a row", (3,), torch.arange(6.0).view(2, 3))
doubling = Exercise(DOUBLING, [ROW], "", slips={"mat1 and mat2": "turn it"})


def test_a_mistake_is_named_by_all_trials_or_by_two_that_fail_never_by_one():
    assert tripled.judge(lambda n: 3 * n + 1) == "this is one more"
    assert tripled.judge(lambda n: 3 * n + 1 if n < 6 else 0) == "this is one more"
    assert tripled.judge(lambda n: 7 if n == 2 else 0) == "2: it gives 7, expected 6"  # by chance
    assert "a float, where the whole number 6 is expected" in tripled.judge(lambda n: 3.0 * n)
    # Those with the same results are all named.
    assert tripled.judge(lambda n: 9) == "this always says 9\nor: this is nine, whatever comes"


def joined(dim):
    """Joins an image (1, n) to the zeros of three, along one axis; right is dim=1 at n = 3."""
    return lambda n: torch.cat([torch.zeros(n, 3), torch.ones(1, 3)], dim=dim)


SIZES = [call(f"{n} rows", n) for n in (2, 4, 6)]
along = Check(
    joined(0),
    SIZES,
    {
        "dim=1 joins the columns": joined(1),
        "the shapes do not fit": lambda n: torch.zeros(n) + torch.zeros(n + 1),
        "wrong, and then an error": lambda n: torch.zeros(1) if n == 2 else torch.ones(n) @ 1,
    },
)


def test_errors_agree_where_they_say_the_same_but_for_numbers():
    assert along.judge(lambda n: torch.cat([torch.ones(n + 1, 1), torch.ones(2, 1)], dim=1)) == (
        "dim=1 joins the columns"
    )
    assert along.judge(lambda n: torch.zeros(n + 5) + torch.zeros(2)) == "the shapes do not fit"
    message = along.judge(lambda n: torch.zeros(n, 3).reshape(7))
    assert message.startswith("2 rows: your code raises RuntimeError")


def test_an_error_is_no_second_trial_that_agrees():
    def alike_by_chance(n):
        return torch.zeros(1) if n == 2 else torch.ones(n) @ 1 if n == 4 else torch.zeros(n)

    message = along.judge(alike_by_chance)
    assert message == "2 rows: its shape is (1,), expected (3, 3)"


def test_numbers_that_differ_are_told_apart():
    several = Check(lambda: torch.tensor([1.0, 12.34567]), [call("it")], {})
    message = several.judge(lambda: torch.tensor([1.0, 12.346]))
    assert message == "it: 1 of 2 numbers are wrong; the first, at [1], is 12.346, expected 12.3457"
    one = Check(lambda: torch.tensor([12.34567]), [call("it")], {})
    assert one.judge(lambda: torch.tensor([12.346])) == "it: it gives 12.346, expected 12.3457"
    assert one.judge(lambda: torch.tensor([7.0])) == "it: it gives 7, expected 12.35"


def test_what_is_given_for_a_list_is_told_in_good_grammar():
    one, two = (Check(lambda n=n: [5] * n, [call("it")], {}) for n in (1, 2))
    assert one.judge(lambda: {5}) == "it: it gives a set where 1 result is expected"
    assert two.judge(lambda: [5]) == "it: it gives 1 result where 2 results are expected"


def test_a_fault_of_the_result_is_not_called_a_fault_of_the_code():
    check = Check(lambda: torch.ones(1), [Trial("it", lambda answer: answer().item())], {})
    message = check.judge(made("three", "def three(): return torch.ones(3)", {}))
    assert message.startswith("it: what it gives cannot be used here (RuntimeError: ")
    assert "your code" not in message


def test_an_attempt_that_ends_the_program_is_told_so():
    def leaving(*_):
        raise SystemExit

    assert tripled.judge(leaving) == (
        "2: your code raises SystemExit in the line `raise SystemExit`"
    )
    with_a_reason = tripled.judge(lambda n: sys.exit("no more"))
    assert with_a_reason.startswith("2: your code raises SystemExit in the line `")
    assert with_a_reason.endswith("`: no more")
    leaves = type("Leaves", (doubling.reference,), {"forward": leaving})
    assert "your code raises SystemExit" in doubling.judge(leaves)
    assert "your code raises SystemExit" in doubling.judge(leaving)
    with pytest.raises(KeyboardInterrupt):  # the learner's own hand
        tripled.judge(lambda n: (_ for _ in ()).throw(KeyboardInterrupt))


def test_a_kind_has_its_article():
    values = [np.zeros(2), frozenset(), OSError(), UserWarning(), np.uint8(3)]
    kinds = [kind_of(value) for value in values]
    assert kinds == ["an ndarray", "a frozenset", "an OSError", "a UserWarning", "a uint8"]
    for value, kind in zip(values, kinds, strict=True):
        assert tripled.judge(value) == (
            f"this is {kind}: give the function or class itself, by its name, not called"
        )


def test_a_learners_own_test_is_told_which_candidate_it_got_wrong():
    check = Check(
        lambda f: f(2) == 6, [trust("f", thirds, True), trust("g", abs, False, "no 3")], {}
    )
    assert check.judge(lambda f: True) == "g: your test trusts it, though it is wrong; no 3"
    assert check.judge(lambda f: False) == "f: your test refuses it, though it is right"
    assert check.judge(lambda f: torch.tensor(f(2) == 6)) == "right"
    assert "must give one True or False" in check.judge(lambda f: torch.ones(2))


def test_an_error_that_is_known_tells_what_to_change():
    slips = {"ZeroDivisionError": "nothing can be divided by 0", "RuntimeError: .*shape": "turn it"}
    check = Check(thirds, [call("2", 2)], {"by 0": lambda n: 1 / 0}, slips)
    assert check.judge(lambda n: 3 // 0) == "by 0"
    assert check.judge(lambda n: torch.ones(2).reshape(3)) == "2: turn it"
    assert "your code raises RuntimeError" in tripled.judge(lambda n: torch.ones(2).reshape(3))
    message = tripled.judge(lambda n: nn.Linear(1, 1).load_state_dict({}))
    assert "Missing key(s) in state_dict" in message  # the whole of it


@pytest.mark.parametrize("inputs", [torch.zeros(2), [torch.zeros(2), torch.ones(1)]], ids=type)
def test_the_smallest_change_of_an_input_is_noticed(inputs):
    def reading(inputs):
        return sum(inputs).sum()

    def changing(inputs):
        inputs[0] += 1e-30
        return reading(inputs)

    check = Check(reading, [call("it", inputs)], {})
    assert check.judge(reading) == "right"
    assert "changes the tensor that it was given" in check.judge(changing)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ("self.proj(x) => self.proj(x).detach()", "no gradient reaches `proj.weight`, `proj.bias`"),
        ("2 * width => width", "a row: `proj.weight`: its shape is (3, 3), expected (6, 3)"),
        ("self.proj(x) => self.proj(x.T)", "turn it"),
        ("return => x = ... ⏎ return", "not attempted yet: one line still holds `...`"),
        ("return => x = ... ⏎ y = ... ⏎ return", "not attempted yet: 2 lines still hold `...`"),
        ("def Doubling(width): return 3", "a number"),
    ],
)
def test_a_module_is_compared_by_shapes_results_and_gradients(edit, message):
    assert message in doubling.judge(doubling.with_edit(edit))
    assert doubling.judge(doubling.reference) == "right"


def test_a_wrong_piece_of_the_notebook_is_blamed_and_not_what_uses_it():
    source = "def split_qkv(qkv, n): return [split_heads(x, n) for x in qkv.chunk(3, dim=-1)]"
    spoilt = {"split_heads": lambda x, n: x.flatten(2)}
    message = checks.split_qkv.judge(made("split_qkv", source, spoilt))
    assert message.startswith("it uses the `split_heads` of this notebook, which is not right")
    right = checks.split_heads.made("def split_heads(x, n): return torch.stack(x.chunk(n, -1), 1)")
    assert checks.split_qkv.judge(made("split_qkv", source, {"split_heads": right})) == "right"


def test_a_dropout_hides_no_other_mistake():
    attempt = """
class MLP(nn.Module):
    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.fc1, self.act = nn.Linear(embed_dim, hidden_dim), nn.GELU()
        self.fc2, self.drop = nn.Linear(hidden_dim, embed_dim), nn.Dropout(0.1)

    def forward(self, x):
        return x + self.drop(self.fc2(self.act(self.fc1(x))))
"""
    assert re.fullmatch(
        "in training it gives something else than in evaluation; .*dropout.*\n"
        "And besides: it adds x to its result; .*",
        checks.MLP.judge(checks.MLP.made(attempt)),
    )


def test_the_sandbox_hands_out_what_is_said_of_a_dropout_as_that():
    assert isinstance(wire.unpacked(wire.packed(ANEW)[8:]), Unsteady)


OTHER_NAMES = """
class EncoderBlock(nn.Module):
    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__()
        self.ln1 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.ln2 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.attention = MultiHeadAttention(embed_dim, num_heads)
        self.mlp = MLP(embed_dim, round(mlp_ratio * embed_dim))

    def forward(self, x, mask=None, return_attention=False):
        mixed, weights = self.attention(self.ln1(x), mask, return_attention=True)
        x = x + mixed
        x = x + self.mlp(self.ln2(x))
        return (x, weights) if return_attention else x
"""
CALLED = (
    "call it `attn`, not `attention`; `norm1`, not `ln1`; `norm2`, not `ln2`: weights find their "
    "place by this name"
)


@pytest.mark.parametrize(
    ("old", "new", "rest"),
    [
        ("", "", "\nwhat it gives is right"),  # though the parts are made in another order
        ("x + self.mlp", "self.mlp", "\nthe MLP's result replaces x; add it, x = x + …"),
        ("x + mixed", "x - 0.3 * mixed", ""),  # what is not known is not guessed
    ],
)
def test_what_has_other_names_is_judged_under_these(old, new, rest, monkeypatch):
    monkeypatch.setattr("vit_course.checks.exercise.PATIENCE", -1.0)
    check = checks.EncoderBlock
    assert check.judge(check.made(OTHER_NAMES.replace(old, new))) == CALLED + rest


@pytest.mark.slow
def test_two_mistakes_beside_a_name_are_told_too_and_so_is_a_bias_that_is_missing():
    check = checks.MultiHeadAttention
    named = check.answer.replace("self.qkv", "self.to_qkv").replace("v, mask)", "v)")
    message = check.judge(check.made(named.replace("y = self.proj", "y = x + self.proj")))
    assert message.startswith(
        "call it `qkv`, not `to_qkv`: weights find their place by this name\n"
    )
    assert "\n1. the mask does not arrive" in message
    assert "\n2. x is added to the result" in message
    narrow = check.answer.replace("self.qkv", "self.q").replace("3 * embed_dim)", "embed_dim)")
    assert "call it" not in check.judge(check.made(narrow))  # a matter of shapes, not of names


@pytest.mark.parametrize(
    ("pattern", "sizes", "expected"),
    [
        ("b h n d -> b n (d h)", {"h": 12}, "an axis of 2 does not fit h=12: is that a fixed"),
        ("b h n (d c) -> b h n d c", {"d": 2}, "an axis of 3 does not fit d=2: is that a fixed"),
        ("b h n (d c) -> b h n d c", {}, "Could not infer sizes for {'"),
        ("b n d -> b d n", {}, "Wrong shape: expected 3 dims. Received 4-dim tensor."),
    ],
)
def test_what_einops_says_at_length_is_said_in_a_sentence(pattern, sizes, expected):
    check = Check(thirds, [call("it", torch.zeros(1, 2, 4, 3))], {})
    source = f"def f(x): return rearrange(x, {pattern!r}, **{sizes})"
    message = check.judge(made("f", source, {}))
    assert message.startswith(f"it: `rearrange` fails in the line `{source}`; {expected}")
    assert "Additional info" not in message


def test_no_word_of_the_engine_is_said_to_a_learner():
    check = Check(lambda: 1 / 0, [call("it")], {})
    assert check.judge(lambda: Verdict("a sentence")) == (
        "it: it gives a text where ZeroDivisionError is expected"
    )


def test_difference_says_how_far_apart_and_refuses_to_broadcast():
    a = torch.zeros(2, 3)
    assert checks.difference(a, a + 1e-6) == "< 1e-5"
    assert checks.difference(a, a + 0.25) == "up to 0.25"
    assert checks.difference(a, a * float("nan")) == "up to nan"
    with pytest.raises(ValueError, match="shapes differ"):
        checks.difference(a, a[:1])


def settings() -> tuple:
    """What a notebook may have set."""
    grad = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    return *grad, torch.get_default_dtype(), torch.empty(0).device, torch.is_autocast_enabled("cpu")


@contextmanager
def default_of_float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


SETTINGS = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "meta": partial(torch.device, "meta"),
    "autocast": partial(torch.autocast, "cpu", dtype=torch.bfloat16),
    "float64": default_of_float64,
}


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_judging_does_not_depend_on_what_a_notebook_has_set(setting):
    """Nor is what it has set another afterwards, or what a check remembers of before."""
    assert checks.train_step.judge(training.train_step) == "right"
    with setting():
        before = settings()
        assert checks.EncoderBlock.judge(vit_steps.EncoderBlock) == "right"
        assert checks.train_step.judge(training.train_step) == "right"
        assert checks.split_heads.judge(vit_steps.merge_heads) != "right"
        assert settings() == before


def test_numbers_of_another_dtype_are_told_as_right_but_for_that():
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        message = compare(torch.ones(2, 3).to(dtype), torch.ones(2, 3))
        assert message == (
            f"the numbers are right, but they are {dtype}, expected torch.float32: "
            "leave the dtype as it came in"
        )
    assert "2 numbers are wrong" in compare(torch.zeros(2).double(), torch.ones(2))


def test_an_object_in_place_of_its_class_is_told_so():
    assert checks.MLP.judge(vit_steps.MLP(8, 32)) == (
        "this is an object, MLP(…): give the class itself, MLP, not called"
    )

    def attend(q, k, v, mask=None):
        return vit_steps.scaled_dot_product_attention(q, k, v)[0], None

    assert "result 2 of 2 is None" in checks.scaled_dot_product_attention.judge(attend)
