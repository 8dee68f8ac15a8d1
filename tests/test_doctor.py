"""The doctor: what it finds in sick models, that it is silent on sound ones, and restores all."""

import html
import random
import sys
import threading
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest
import sick
import sound
import torch
from sick import ANSWER, BEGIN, EMBED, MIX, THINK, Plain, edited, encode, end, lines
from torch import nn

from benchmarks.peers import TorchViT
from vit_doctor import CHECKS, Finding, Note, Report, Skipped, examine
from vit_doctor.report import NOT_LOOKED_FOR
from vit_doctor.watching.locations import file_line, module_location
from vit_doctor.watching.restore import unchanged
from vit_steps import EncoderBlock, ViT, ViTConfig

NAMES = [check.__name__.replace("_", " ") for check in CHECKS]
LOUD_HEAD, PRINTS = (sick.SICK[name][0] for name in ("initial loss", "prints"))
CASES = [(name, make) for name, makes in sick.SICK.items() for make in makes]
SMALL = dict(image_size=32, patch_size=8, num_classes=10, embed_dim=48, depth=2, num_heads=4)
DIGITS = dict(image_size=8, patch_size=2, in_channels=1, embed_dim=12, depth=2, num_heads=3)


def look(make, *sizes, **options):
    torch.manual_seed(0)
    return examine(make(), *sizes or (32,), **options)


# What it finds -----------------------------------------------------------------------------------


def test_each_check_has_a_sick_model():
    assert set(sick.SICK) == set(NAMES)


# What a fault brings with it, rightly.
FOLLOWS = {
    "attention saturated": {"scale width"},
    "attention uniform": {"scale width", "no gradient"},
    "cls unused": {"no gradient"},
    "heads mixed": {"unseen pixels", "no gradient"},  # cls then reads a part of them
    "hidden": {"another dtype", "device fixed"},  # .double() and .to() leave it behind
    "idle block": {"no gradient", "unseen pixels", "no positions"},
    "no positions": {"no gradient"},
    "norm missing": {"no gradient"},  # of the norm that nobody asks
    "norm unused": {"no gradient", "norm missing"},
    "not saved": {"device fixed"},
    "softmax axis": {"scale width"},
    "scale after softmax": {"scale missing", "random in eval"},
    "tokens apart": {"no gradient", "no positions", "unseen pixels"},  # cls sees itself alone
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "make"), CASES, ids=[name for name, _ in CASES])
def test_a_fault_is_found_by_name_and_taken_for_no_other(name, make):
    report = look(make)
    assert name in (*report.names, *(note.name for note in report.notes)), report
    assert set(report.names) <= {name} | FOLLOWS.get(name, set())
    assert not any("could not be measured" in each.reason for each in report.skipped), report


TEN = {
    "images mixed": encode("x - x.mean(0)"),
    "input changed": (BEGIN, lines("images -= 0.5", BEGIN)),
    "random in eval": (THINK, f"return F.dropout({THINK.removeprefix('return ')}, 0.1)"),
    "prints": (BEGIN, lines(BEGIN, "print(x.shape)")),
    "probabilities": (ANSWER, f"{ANSWER}.softmax(-1)"),
    "batch of one": (ANSWER, f"{ANSWER}.squeeze()"),
    "another dtype": (f"return {EMBED}", f"return ({EMBED}).float()"),
    "unseen pixels": (EMBED, f"({EMBED})[:, :-4]"),
    "positions large": sick.loud,
    "scale missing": (MIX, "(q @ k.mT).softmax(-1) @ v"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("one", "two"), list(combinations(TEN, 2)))
def test_two_faults_in_one_model_are_both_found(one, two):
    assert {one, two} <= set(look(edited(TEN[one], TEN[two])).names)


def test_positions_that_cannot_count_are_not_asked_for():
    names = look(sick.IdleAndLoud).names
    assert {"idle block", "positions large"} <= set(names)
    assert "no positions" not in names


# What it advises ---------------------------------------------------------------------------------


MASKED = "(q @ k.mT * 12**-0.5).masked_fill(~near(q @ k.mT), -torch.inf).softmax(-1) @ v"
SUM = "self.head((x := self.norm(x)[:, 0]).relu() + x)"
BLOCKS, EACH = "ModuleList(Block() for _ in range(depth))", "for block in self.blocks:"
LINEAR = "nn.Linear(WIDTH, WIDTH)"

# What a finding says; then edits of the plain model, with the faulty line as the finding would have
# it, or the statements that repair the first sick model of the name, at the end of its __init__.
ADVICE = {
    "backward fails": ("write x = x + y", (ANSWER, SUM)),
    "images mixed": ("an axis is taken for another", encode("x - x.mean(1, keepdim=True)")),
    "input changed": ("x = x + y", (BEGIN, "x = self.embed(images - 0.5)")),
    "random in eval": ("training=self.training", encode("F.dropout(x, 0.1, self.training)")),
    "batch of one": ("squeeze(1)", (ANSWER, f"{ANSWER}.squeeze(1)")),
    "another dtype": ("take x.dtype", (BEGIN, f"{BEGIN}.to(images.dtype)")),
    "no gradient": ("hand it on", end(f"self.extra = {LINEAR}"), encode("self.extra(x)")),
    "scale missing": ("scale them by 1/√12", (MIX, "(q @ k.mT * 12**-0.5).softmax(-1) @ v")),
    "mask unused": ("scores = scores.masked_fill(~mask, -inf)", (MIX, MASKED)),
    "norm unused": ("hand it on", (THINK, "return x + self.mlp(F.gelu(self.norm2(x)))")),
    "device fixed": ("take x.device", encode("x + torch.zeros(17, 48, device=x.device).to(x)")),
    "hidden": ("nn.ModuleList", "self.extra = nn.ModuleList(self.extra)"),
    "not saved": ("nn.Parameter", "self.pos_embed = nn.Parameter(vars(self).pop('pos_embed'))"),
    "activation missing": ("put GELU in between", EACH, "    block.mlp[1] = nn.GELU('none')"),
    "activation last": ("end it with a linear map", EACH, f"    block.mlp.append({LINEAR})"),
    "shared block": (BLOCKS, f"self.blocks = nn.{BLOCKS.replace('depth', '3')}"),
    "bias large": ("nn.init.zeros_(bias)", sick.ones, "        nn.init.zeros_(module.bias)"),
    "eps large": ("1e-6", "self.norm.eps = 1e-6"),
    "training fails": ("nn.LayerNorm can", "self.over = nn.LayerNorm(WIDTH)"),
}
for name, parameter in {
    "initial loss": "head.weight",
    "weights large": "blocks[0].mlp[2].weight",
    "weights small": "blocks[1].mlp[0].weight",
    "positions large": "pos_embed",
    "positions small": "pos_embed",
    "token large": "cls_token",
}.items():
    start_small = f"nn.init.trunc_normal_(self.{parameter}, std=0.02)"
    ADVICE[name] = "trunc_normal_(x, std=0.02)", start_small


@pytest.mark.slow
@pytest.mark.parametrize("name", ADVICE)
def test_a_model_that_is_as_a_finding_advises_has_none(name):
    advice, *edits = ADVICE[name]
    make = sick.SICK[name][0]
    (why,) = (finding.why for finding in look(make) if finding.name == name)
    assert advice in why
    if isinstance(edits[0], str):
        edits = [end(*edits), *make.args]
    assert look(edited(*edits)).names == []


# What it leaves alone ----------------------------------------------------------------------------


def cnn():
    return nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, stride=2), nn.BatchNorm2d(32), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)),
    )


def zero_start():
    """Everything that people start at zero, or nearly: head, positions, cls, both projections."""
    model = Plain()
    zeros = model.head.weight, model.head.bias, model.pos_embed, model.blocks[0].attn.proj.weight
    for p in zeros:
        nn.init.zeros_(p)
    nn.init.constant_(model.cls_token, 1e-6)
    return model


def trained():
    model = Plain()
    nn.functional.cross_entropy(model(torch.randn(8, 3, 32, 32)), torch.arange(8)).backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
    model.zero_grad()
    nn.init.normal_(model.head.weight)  # loud, as training may make it
    return model


def half_frozen():
    model = Plain().requires_grad_(False)
    model.head.requires_grad_()
    return model


# A second head that only training reads, and a mask token.
MASK_TOKEN = "self.mask_token = nn.Parameter(torch.zeros(1, 1, WIDTH))"
IN_TRAINING = edited(
    end("self.second = nn.Linear(WIDTH, CLASSES)", MASK_TOKEN),
    (ANSWER, f"({ANSWER}, self.second(self.norm(x)[:, 1])) if self.training else {ANSWER}"),
)


class Keeps(Plain):
    """Attributes that learners hang on a model: the last tokens, a list, a table, a count."""

    def more(self):
        self.seen, self.count, self.all = [], 0, list(self.blocks)
        self.table = torch.arange(17 * 48.0).view(17, 48).sin()

    def encode(self, x):
        self.last, self.count = x, self.count + 1
        self.seen.append(x.detach())
        return super().encode(x + self.table.to(x))


# Two that are so by name, each with a model that has it.
NOT_LOOKED_FOR_MODELS = {
    "x = norm(x); x = x + branch(x)": [
        [(sick.LOOK, lines("x = self.norm1(x)", "x = x + self.attn(x)"))],
        [(THINK, lines("x = self.norm2(x)", "return x + self.mlp(x)"))],
    ],
    "an MLP without a sum, in blocks that are lists": [sick.in_lists(think="think(norm2(x))")],
}


class InObject(Plain):
    """Gives its logits as an attribute."""

    def forward(self, images):
        x = self.encode(self.embed(images))
        return SimpleNamespace(hidden=x[:, 0], logits=self.head(self.norm(x)[:, 0]))


class Explicit(ViT):
    """Gives the weights of attention too."""

    def forward(self, images):
        return super().forward(images, return_attention=True)


SOUND = {
    "plain": (Plain, 32),
    "sizes of numpy": (Plain, np.int64(32), np.int64(3)),
    "a pair of numpy's and Python's": (Plain, (np.int64(32), 32)),
    "core": (lambda: ViT(ViTConfig(**SMALL)), 32),
    "core mean": (lambda: ViT(ViTConfig(**SMALL, pool="mean", qkv_bias=False, dropout=0.5)), 32),
    "core explicit": (lambda: Explicit(ViTConfig(**SMALL, pool="mean", dropout=0.1)), 32),
    "core digits": (lambda: ViT(ViTConfig(**DIGITS)), 8, 1),
    "core wide": (lambda: ViT(ViTConfig(**{**DIGITS, "image_size": (4, 16)})), (4, 16), 1),
    "core one class": (lambda: ViT(ViTConfig(**{**SMALL, "num_classes": 1})), 32),
    "core Ti/16": (lambda: ViT(ViTConfig.preset("Ti/16")), 224),
    "torch's encoder": (lambda: TorchViT(ViTConfig(**SMALL)), 32),
    "cnn": (cnn, 32),
    "zero start": (zero_start, 32),
    "trained": (trained, 32),
    "frozen": (lambda: Plain().requires_grad_(False), 32),
    "half frozen": (half_frozen, 32),
    "second head": (IN_TRAINING, 32),
    "keeps": (Keeps, 32),
    "double": (lambda: Plain().double(), 32),
    "tuple": (edited((ANSWER, f"(x, {ANSWER})")), 32),
    "dict": (edited((ANSWER, f"{{'tokens': x, 'logits': {ANSWER}}}")), 32),
    "object": (InObject, 32),
    **{name: (make, 32) for name, make in sound.SOUND.items()},
    "by hand, wide": (sound.SOUND["by hand"], (32, 64)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SOUND)
def test_a_sound_model_comes_out_clean(name):
    report = look(*SOUND[name])
    assert report.names == [], report
    assert not any("could not be measured" in each.reason for each in report.skipped), report
    assert len(report.sound) + len(report.skipped) == len(CHECKS)


@pytest.mark.slow
def test_models_of_transformers_come_out_clean():
    transformers = pytest.importorskip("transformers")
    sizes = dict(image_size=32, patch_size=8, hidden_size=48, num_hidden_layers=2)
    sizes |= dict(num_attention_heads=4, intermediate_size=96)
    models = ["ViTForImageClassification", "DeiTForImageClassificationWithTeacher"]
    models += ["ViTModel", "Dinov2ForImageClassification"]
    for model, way in product(models, ("sdpa", "eager")):
        make = getattr(transformers, model)
        config = make.config_class(**sizes, attn_implementation=way)
        report = look(lambda c=config, m=make: m(c))
        assert report.names == [], f"{model}, {way}: {report}"


def test_a_model_is_fresh_until_it_is_trained():
    assert "initial loss" in look(LOUD_HEAD).names
    assert "initial loss" not in look(trained).names
    assert "initial loss" in look(trained, fresh=True).names
    assert "initial loss" not in look(LOUD_HEAD, fresh=False).names


# It changes nothing ------------------------------------------------------------------------------


def state(model):
    """All of a model that can be compared."""
    parameters = list(model.parameters())
    return {
        "weights": {n: x.tolist() for n, x in model.state_dict().items()},
        "grads": [None if x.grad is None else x.grad.tolist() for x in parameters],
        "same": [(id(x), id(x.grad), x.data_ptr(), str(x.dtype)) for x in parameters],
        "learns": [x.requires_grad for x in parameters],
        "modes": [m.training for m in model.modules()],
        "hooks": [(list(m._forward_hooks), list(m._forward_pre_hooks)) for m in model.modules()],
        "attributes": [sorted(vars(m)) for m in model.modules()],
        "random": [torch.get_rng_state().tolist(), random.random(), np.random.rand()],
    }


def seeded():
    torch.manual_seed(5)
    random.seed(5)
    np.random.seed(5)


class Moves(Keeps):
    """Changes all that it can, whenever it runs."""

    def more(self):
        super().more()
        self.register_buffer("runs", torch.zeros(3))
        self.drop = nn.Dropout(0.5)

    def forward(self, images):
        with torch.no_grad():
            self.head.weight.mul_(0.5)
            self.norm.bias.data = self.norm.bias.data + 1
        self.runs += 1
        self.new = torch.rand(1) + random.random() + np.random.rand()
        self.train()
        self.pos_embed.requires_grad_(False)
        self.norm.register_forward_hook(lambda *_: None)
        self.pos_embed.grad = torch.ones_like(self.pos_embed)
        return self.drop(super().forward(images))


FAILS = sick.SICK["forward fails"][0]


@pytest.mark.parametrize("make", [Plain, Moves, IN_TRAINING, FAILS, cnn, half_frozen])
def test_everything_is_as_before(make):
    seeded()
    model = make().train()
    list(model.children())[-1].eval()
    for i, p in enumerate(model.parameters()):
        p.grad = torch.randn_like(p) if i % 2 else None
    model.register_forward_hook(lambda *_: None)
    seeded()
    before = state(model)
    seeded()
    examine(model, 32)
    after = state(model)
    for key in before:
        assert after[key] == before[key], key
    if isinstance(model, Keeps):
        assert (model.count, model.seen) == (0, [])
        assert not hasattr(model, "last")


def test_a_model_that_ran_before_keeps_what_it_kept():
    model = Keeps()
    model(torch.randn(1, 3, 32, 32)).sum().backward()
    last, values = model.last, model.last.detach().clone()
    assert examine(model, 32).names == []
    assert model.last is last
    assert torch.equal(model.last, values)
    assert len(model.seen) == 1


def test_a_model_is_restored_where_an_examination_breaks_off():
    model = Plain()
    weight = model.head.weight.detach().clone()

    def break_off():
        with unchanged(model):
            nn.init.zeros_(model.double().head.weight)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert torch.equal(model.head.weight, weight)
    assert model.head.weight.dtype == torch.float32


def test_it_prints_nothing_and_counts_its_runs(capsys):
    model, runs = PRINTS(), []
    forward = model.forward
    model.forward = lambda images: runs.append(len(images)) or forward(images)
    examine(model, 32)
    assert capsys.readouterr().out == ""
    # Of these, one is in training, and three end at the first attention.
    assert sum(runs) <= 12, runs


def test_autocast_is_as_before_and_cells_have_no_numbers():
    kept = torch.autocast.__init__
    for make in sick.SICK["device fixed"]:
        examine(make(), 32)
    assert torch.autocast.__init__ is kept
    assert file_line("/tmp/ipykernel_41/1912399945.py", 2) == "line 2 of a cell"
    assert file_line("<ipython-input-3-ab>", 2) == "line 2 of a cell"
    assert file_line("/home/me/1912.py", 2) == "1912.py:2"
    assert module_location(nn.LayerNorm(3), "norm") == "norm (LayerNorm)"
    where = module_location(EncoderBlock(8, 2), "blocks.0")  # which of its lines, nobody knows
    assert where.startswith("blocks.0 (forward at encoder.py:")


def test_a_model_runs_on_one_thread_and_all_come_back():
    class Asks(Plain):
        def encode(self, x):
            assert torch.get_num_threads() == 1
            return super().encode(x)

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    assert look(Asks).names == []
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)


@pytest.mark.slow
def test_models_examined_at_once_print_and_change_nothing(capsys):
    stdout, autocast, reports = sys.stdout, torch.autocast.__init__, []

    def work(make):
        reports.append(examine(make(), 32).names)

    threads = [threading.Thread(target=work, args=(make,)) for make in (PRINTS, Keeps) * 3]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        print("meanwhile")
    assert sorted(reports) == [[]] * 3 + [["prints"]] * 3
    assert (sys.stdout, torch.autocast.__init__) == (stdout, autocast)
    assert set(capsys.readouterr().out.split("\n")) == {"meanwhile", ""}


@pytest.mark.slow
def test_compiled_models_are_looked_at_as_they_are_written():
    compiled = []

    def backend(graph, inputs):
        compiled.append(graph)
        return graph

    model = sick.SICK["scale missing"][0]()
    model.blocks[0] = torch.compile(model.blocks[0], backend=backend)
    whole = torch.compile(model, backend=backend)
    (finding,) = examine(whole, 32)
    assert finding.where.startswith("blocks.0.attn (sick.py:")
    assert not compiled
    whole(torch.randn(1, 3, 32, 32))
    assert compiled


def test_what_backward_raises_is_a_finding_and_the_rest_goes_on():
    report = look(sick.SICK["backward fails"][0])
    assert "inplace operation" in report.findings[0].measured
    assert {"prints", "random in eval", "heads mixed", "norm missing"} <= set(report.sound)
    assert "no gradient" in {each.name for each in report.skipped}


# The report --------------------------------------------------------------------------------------


def test_a_report_says_what_was_measured_why_it_matters_and_where():
    report = look(PRINTS)
    (finding,) = report
    assert isinstance(finding, Finding)
    assert (len(report), bool(report), report.names) == (1, True, ["prints"])
    text = sick.source(*PRINTS.args).partition("print(")[0]
    assert finding.where == f"sick.py:{text.count(chr(10)) + 1}"
    for text in (str(report), report._repr_html_()):
        for part in (finding.measured.split("'")[0], finding.why, finding.where, "1 finding;"):
            assert part in text
    assert "prints" not in report.sound


def test_a_report_says_at_what_size_it_looked_and_what_it_does_not_look_for():
    for size, channels, said in ((32, 3, "32×32 in 3 channels"), (8, 1, "8×8 in 1 channel;")):
        model = (lambda: ViT(ViTConfig(**DIGITS))) if size == 8 else Plain
        report = look(model, size, channels)
        assert str(report).startswith(f"0 findings; looked at with images of {said}")
        for limit in NOT_LOOKED_FOR:
            assert limit in str(report)
            assert html.escape(limit) in report._repr_html_()


@pytest.mark.parametrize("name", NOT_LOOKED_FOR_MODELS)
def test_what_is_not_looked_for_is_not_found(name):
    assert any(name in limit for limit in NOT_LOOKED_FOR)
    for edits in NOT_LOOKED_FOR_MODELS[name]:
        assert look(edited(*edits)).names == []


def test_a_note_is_told_and_no_finding():
    report = look(sick.Cropped)
    (note,) = report.notes
    assert isinstance(note, Note)
    assert (len(report), report.names) == (0, [])
    assert "0 findings and 1 note; " in str(report)
    for text in (str(report), report._repr_html_()):
        assert html.escape(str(note)) in text or str(note) in text
        assert "worth knowing, and no fault" in text


def test_a_model_that_fails_has_one_line_for_all_other_checks():
    report = look(FAILS)
    text = str(report)
    assert text.count("\n") == 6
    assert f"  the other {len(report.skipped)} checks: the model has to run first" in text
    assert report._repr_html_().count("<li>") == 1


def test_a_softmax_of_logits_is_no_norm():
    softmax = "self.softmax(self.head(self.norm(x)[:, 0]))"
    make = edited(end("self.softmax = nn.Softmax(-1)"), (ANSWER, softmax))
    for seed in range(10):
        torch.manual_seed(seed)
        assert examine(make(), 32).names == ["probabilities"]


def test_reports_escape_what_a_model_says():
    report = Report((Finding("<b>", "c & d", name="a"),), (Skipped("e < f", "g"),))
    assert "&lt;b&gt;" in report._repr_html_()
    assert "e &lt; f" in report._repr_html_()
    assert "does not apply" in str(report)
    assert (bool(Report()), "0 findings" in str(Report())) == (True, True)
    assert "<table>" not in Report(sound=("prints",))._repr_html_()


# Errors ------------------------------------------------------------------------------------------


def test_errors_say_what_to_give():
    with pytest.raises(TypeError, match="model is type"):
        examine(ViT)
    for size, channels in ((0, 3), ((1, 2, 3), 3), (8, 0), ((8, 0), 1)):
        with pytest.raises(ValueError, match="image_size is"):
            examine(Plain(), size, channels)


def test_wrong_sizes_are_a_finding():
    (finding,) = look(Plain, 64)
    assert finding.name == "forward fails"
    assert "images are (2, 3, 64, 64)" in finding.measured
    assert "sick.py" in finding.where
