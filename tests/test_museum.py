"""Lesson 12: its exhibits run, answer to each choice, and what is said of them is true."""

import re
from dataclasses import replace
from itertools import pairwise
from math import e, log

import nbformat
import pytest
import torch
from einops import rearrange
from helpers import close
from test_attention import the_same_in_torch
from torch import nn
from torch.nn import functional as F

import vit_doctor
from vit_course import checks, lessons, systems
from vit_course.checks import as_published, museum
from vit_course.checks.exercise import COMMON
from vit_course.checks.keeping import PIECES
from vit_course.checks.lesson_12 import in_cell, report
from vit_steps import ViT, ViTConfig, weights
from vit_steps.training import train, train_step
from vit_steps.training.data import digits

LESSON = nbformat.read(lessons.ROOT / "notebooks" / "12_spot_the_mistake.ipynb", as_version=4)
EXHIBITS = museum.read()
FAULTY = [number for number, item in EXHIBITS.items() if not item.sound]
SOUND = [number for number, item in EXHIBITS.items() if item.sound]
IMAGES = torch.randn(2, 1, 16, 16, generator=torch.Generator().manual_seed(0))


def right() -> ViT:
    """A sound ViT: the trained reader."""
    return weights.load("scattered").model.eval()


def hung(number: int, mended: bool = False) -> nn.Module:
    """An exhibit with the sound one's weights, in evaluation."""
    model = museum.patient(number, mended).eval()
    model.load_state_dict(right().state_dict())
    return model


def examined(model: nn.Module) -> vit_doctor.Report:
    return vit_doctor.examine(model, image_size=16, in_channels=1)


def off(model: nn.Module, images: torch.Tensor = IMAGES) -> float:
    """By how much a model's logits differ from the sound one's."""
    with torch.no_grad():
        return (model(images) - right()(images)).abs().max().item()


# Their form --------------------------------------------------------------------------------------


def test_twenty_four_hang_and_five_of_them_are_sound():
    assert (len(EXHIBITS), len(SOUND)) == (24, 5)
    assert all(b - a > 1 for a, b in pairwise(SOUND))  # no two in a row
    for item in EXHIBITS.values():
        assert max(map(len, repr(item).splitlines())) <= 90
        assert 4 <= len(item.lines) <= 14
        assert all(reason[-1] in ".?" for reason in item.reasons.values())
        assert len(item.reasons.keys() - item.mended.keys() - {"sound"}) >= 2  # taken for the fault


def test_the_lesson_shows_each_once():
    asks = re.compile(r"checks\.exhibit\((\d+)\)")
    cells = [(int(m[1]), cell) for cell in LESSON.cells if (m := asks.fullmatch(cell.source))]
    assert sorted(number for number, _ in cells) == list(EXHIBITS)
    for number, cell in cells:
        assert cell.outputs[-1].data["text/plain"] == repr(checks.exhibit(number))


GOOD = "1. One · ViT\nA story.\n| x = 1\n! y = 2\n= y = 3\n    Because.\nsound\n    Why?\n"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("1. ", "2. ", "it must begin with"),
        ("A story.\n", "", "no story"),
        ("    Because.\n", "", "no reason"),
        ("= y = 3\n", "", "not mended"),
        ("sound\n    Why?\n", "", "calls it sound"),
    ],
)
def test_a_file_of_wrong_form_is_refused(old, new, expected, tmp_path):
    (path := tmp_path / "some.txt").write_text(GOOD.replace(old, new))
    with pytest.raises(ValueError, match=expected):
        museum.read(path)


# What a learner sees -----------------------------------------------------------------------------


def test_as_text_it_shows_its_lines_and_how_to_answer():
    text = repr(checks.exhibit(9))
    assert "   6      mixed = mixed.reshape(x.shape)" in text
    assert text.endswith('checks.exhibit(9, 7) for line 7, checks.exhibit(9, "sound")')
    assert not any(reason in text for reason in EXHIBITS[9].reasons.values())


def test_in_a_browser_each_line_is_a_button():
    html = museum.hung(EXHIBITS[9])._repr_html_()
    lines = len(EXHIBITS[9].lines)
    counts = {"<summary": lines + 1, "<b>✓ Right.</b>": 1, "<b>✗ No.</b>": lines, "Mended": 1}
    assert {text: html.count(text) for text in counts} == counts
    opened = html.split("mixed.reshape")[1].split("</details>")[0]
    assert "<b>✓ Right.</b>" in opened
    assert "<pre>    mixed = merge_heads(mixed)" in opened
    sound = museum.hung(EXHIBITS[3])._repr_html_()
    assert "<b>✓ Right.</b>" in sound.split("It is sound")[1]
    assert "Mended" not in sound


@pytest.mark.parametrize(
    ("number", "answer", "expected"),
    [
        (9, 6, "Yes, it is line 6. `reshape` reads the numbers straight on"),
        (9, " 6 ", "Yes, it is line 6."),
        (9, 2, "No, it is not line 2. This line is fine: it does what it should."),
        (9, "Sound", "No, it is not sound. Whose numbers"),
        (3, "sound", "Yes, it is sound."),
    ],
)
def test_an_answer_is_judged_and_the_exhibit_is_still_there(number, answer, expected, capsys):
    assert checks.exhibit(number, answer) is None
    output = capsys.readouterr().out
    assert output.startswith(repr(EXHIBITS[number]))
    assert expected in output
    assert ("Mended:\n    mixed = merge_heads(mixed)" in output) == ("6" in str(answer))


@pytest.mark.parametrize("answer", [0, 8, -1, True, 1.0, "", "b", "none", ["1"], ...])
def test_what_is_no_line_is_refused(answer):
    with pytest.raises(ValueError, match=r'the answer is .*; give a line, 1 to 7, or "sound"'):
        checks.exhibit(9, answer)


@pytest.mark.parametrize("number", [0, 25, True, "1", 1.0, None])
def test_an_exhibit_that_is_not_there_is_refused(number):
    for ask in (checks.exhibit, checks.patient):
        with pytest.raises(ValueError, match=r"the number is .*; give one from 1 to 24"):
            ask(number)


# Faulty and sound --------------------------------------------------------------------------------


def test_what_is_mended_gives_what_a_sound_vit_gives():
    for number in FAULTY:
        if number != 10:  # its head reads the mean
            assert off(hung(number, mended=True)) < 1e-5, number


def test_what_is_sound_gives_it_as_it_hangs():
    for number in SOUND:
        if number != 17:
            assert off(hung(number)) < 1e-5, number
    model = hung(17)  # its rows stand in another order
    for block in model.blocks:
        for p in block.attn.qkv.parameters():
            p.data = rearrange(p.data, "(qkv h d) ... -> (h d qkv) ...", qkv=3, h=4)
    assert off(model) < 1e-5


def test_faults_of_the_forward_pass_give_other_numbers():
    differ = {n for n in FAULTY if n != 2 and off(hung(n)) > 1e-2}  # 2 holds no blocks
    assert differ == {1, 6, 8, 9, 10, 14, 15, 18, 19}


def test_nothing_silences_an_exhibit_in_training():
    """Each can be trained a step, but for its own fault."""
    labels = torch.arange(2)
    for number in EXHIBITS:
        model = museum.patient(number)
        F.cross_entropy(model.train()(IMAGES), labels).backward()
        idle = {n.split(".")[0] for n, p in model.named_parameters() if p.grad is None}
        assert idle == ({"blocks"} if number == 10 else set()), number


@pytest.mark.slow
def test_the_doctor_reports_something_in_eleven_of_fifteen_and_flags_no_sound_one():
    reports = {number: examined(museum.patient(number)) for number in EXHIBITS}
    silent = [n for n in FAULTY if n < 20 and not (reports[n].names or reports[n].notes)]
    assert silent == [11, 13, 16, 18]
    assert [n for n in FAULTY if reports[n].notes and not reports[n].names] == [4, 5]
    assert [n for n in SOUND if reports[n].names] == []
    assert reports[1].findings[0].where == "blocks.0.attn (exhibit_1.py:4)"


def test_the_published_vit_has_as_many_numbers_as_the_original():
    with torch.device("meta"):
        assert sum(p.numel() for p in as_published.vit().parameters()) == 86_567_656


def test_a_learners_own_vit_has_no_finding_and_the_note_that_the_lesson_tells_of():
    """Its pieces as the exercises' answers write them, which ask no image for its size."""
    pieces: dict = {}
    for name in list(PIECES)[: list(PIECES).index("ViT") + 1]:
        exercise = getattr(checks, name)
        exec(exercise.answer, around := COMMON | exercise.uses | pieces)
        pieces[name] = around[name]
    model = pieces["ViT"](museum.CONFIG).eval()
    report = examined(model)
    assert (report.names, [note.name for note in report.notes]) == ([], ["images cropped"])
    assert model(torch.zeros(1, 1, 18, 18)).shape == (1, 10)  # the alarm of `shapes`
    model.load_state_dict(right().state_dict())
    assert off(model) < 1e-5


# What is said of each ----------------------------------------------------------------------------


def test_1_14_15_and_19_what_rows_of_197_keys_sum_to_and_their_largest_weight():
    """8 heads of 96, queries and keys of spread 1."""
    q, k = torch.randn(2, 8, 197, 96, generator=torch.Generator().manual_seed(0)).unbind()
    scores = q @ k.mT
    mended = (scores / 96**0.5).softmax(dim=-1)
    for rows, total, largest in (
        (scores.softmax(dim=-1) / 768**0.5, 0.036, 0.81),
        (mended, 1, 0.052),
        ((scores / 768**0.5).softmax(dim=-1), 1, 0.013),
        (scores.softmax(dim=-1) / 96**0.5, 0.102, 0.81),
    ):
        sums = rows.sum(dim=-1)
        assert sums.mean().item() == pytest.approx(total, abs=5e-4)
        assert (rows.amax(dim=-1) / sums).mean().item() == pytest.approx(largest, rel=0.03)
    assert round((scores / 96**0.5).softmax(dim=0).sum(dim=-1).mean().item()) == 25


@pytest.mark.slow
@pytest.mark.parametrize(("mended", "least", "most"), [(False, 3.4, 4.6), (True, 2.0, 3.0)])
def test_1_training_makes_up_for_it_by_larger_values(mended, least, most):
    config = ViTConfig(8, 2, 1, num_classes=10, embed_dim=48, depth=2, num_heads=4)
    for seed in (0, 1):
        torch.manual_seed(seed)
        model = museum.patient(1, mended, config)
        parts = [x for b in model.blocks for x in (b.attn.qkv.weight[96:], b.attn.proj.weight)]
        before = [part.norm().item() for part in parts]
        train(model, digits()[0], epochs=8, lr=4e-3, seed=seed)
        grown = [part.norm().item() / size for part, size in zip(parts, before, strict=True)]
        assert least < min(grown) < max(grown) < most, grown


def test_2_the_blocks_are_not_counted():
    counts = [sum(p.numel() for p in museum.patient(2, m).parameters()) for m in (False, True)]
    assert counts == [3_018, 202_954]


def test_3_and_18_how_many_stay_in_place():
    places = torch.arange(4 * 8).reshape(4, 8)
    assert (rearrange(places, "h w -> (w h)") != places.flatten()).sum() == 30
    rows = torch.arange(3.0 * 768)
    stay = rearrange(rows, "(h d qkv) -> qkv h d", qkv=3, h=12).flatten() == rows
    assert stay.float().mean().item() == pytest.approx(0.001, abs=5e-4)
    assert 230 * 230 - 224 * 224 == 2_724  # of exhibit 4


def test_5_one_patch_is_copied_to_all_places():
    small = torch.randn(1, 1, 4, 4)
    assert hung(5)(small).shape == (1, 10)
    for number in (4, 5):
        assert hung(number)(torch.randn(1, 1, 18, 18)).shape == (1, 10)
    with pytest.raises(ValueError, match="image"):
        hung(5, mended=True)(small)
    alone = replace(EXHIBITS[5], mended={4: EXHIBITS[5].mended[4]})
    forward = museum.defined(alone, mended=True)["forward"]
    with pytest.raises(ValueError, match="tokens"):  # the second check would do alone
        forward(right(), small)


def test_7_adding_in_place_leaves_what_is_given_as_it_is():
    block, x = museum.patient(7).blocks[0], torch.randn(2, 17, 64)
    for mode in (True, False):
        copy = x.clone()
        block.train(mode)(x)
        assert torch.equal(x, copy)


def test_8_it_looks_over_the_pictures_as_torchs_layer_does():
    block = museum.patient(8).blocks[0]
    reference, x = the_same_in_torch(block.attn, 4, batch_first=False), torch.randn(3, 17, 64)
    close(block.attn(x), reference(x, x, x)[0])


@pytest.mark.parametrize("number", [9, 10])
def test_9_and_10_the_loss_of_eight_pictures_goes_down(number):
    model, images, labels = museum.patient(number), torch.randn(8, 1, 16, 16), torch.arange(8)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    losses = [train_step(model.train(), optimizer, images, labels).item() for _ in range(20)]
    assert losses[-1] < losses[0] - 0.2


def test_10_most_weights_get_no_gradient():
    with torch.device("meta"):
        full = systems.project_vit()
    lost, total = (sum(p.numel() for p in m.parameters()) for m in (full.blocks, full))
    assert round(100 * lost / total, 1) == 98.6


def test_11_is_a_step_of_its_own_and_its_loss_stays_above_1_46():
    surest = F.cross_entropy(torch.eye(10)[:1], torch.tensor([0])).item()
    assert surest == pytest.approx(-log(e / (e + 9)), abs=1e-5) == pytest.approx(1.46, abs=5e-3)
    assert museum.patient(11).train_step is not train_step


def test_12_only_the_keys_part_is_0_and_10_more_change_no_logit():
    model = museum.patient(12)
    F.cross_entropy(model(IMAGES), torch.arange(2)).backward()
    for block in model.blocks:
        q, k, v = (part.norm().item() for part in block.attn.qkv.bias.grad.chunk(3))
        assert k < 1e-5 * q < v
        assert block.attn.qkv.weight.grad.chunk(3)[1].norm() > 1e-3 * v
    model = hung(12)
    for block in model.blocks:
        block.attn.qkv.bias.data[64:128] += 10
    assert off(model) < 1e-5


def test_13_44_of_49_stay_instead_of_47():
    assert [round(49 * (1 - ratio)) for ratio in (0.1, 0.05)] == [44, 47]
    counts = []
    for mended in (False, True):
        model = museum.patient(13, mended).train()
        model.blocks.register_forward_pre_hook(lambda _, inputs: counts.append(inputs[0].shape[1]))
        model(IMAGES)
        model.eval()(IMAGES)
    assert counts == [1 + round(16 * 0.9), 17, 1 + round(16 * 0.95), 17]


def test_16_the_mask_does_nothing():
    x, mask = torch.randn(1, 17, 64), torch.ones(1, 1, 1, 17, dtype=torch.bool)
    mask[..., 9:] = False
    as_it_hangs, mended, sound = (m.blocks[0].attn for m in (hung(16), hung(16, True), right()))
    assert torch.equal(as_it_hangs(x, mask), as_it_hangs(x))
    close(mended(x, mask), sound(x, mask))


def test_a_line_is_told_as_far_as_the_doctor_knows_it():
    assert in_cell("blocks.0 (line 9 of a cell)") == "blocks.0, line 9 of your cell"
    output = in_cell("blocks.0 (forward at line 5 of a cell)")
    assert output == "blocks.0, in the forward that begins at line 5 of your cell"
    assert in_cell("blocks.0 (forward at encoder.py:12)") == "blocks.0"


def test_a_patient_is_told_how_many_findings_there_are():
    assert report(ViT) == "the doctor: 0 findings"
    assert report(checks.SecondPatient.sick).startswith("the doctor: 1 finding\n")
    assert report(checks.ThirdPatient.sick).startswith("the doctor: 3 findings\n")


def test_17_and_18_are_the_same_lines():
    assert EXHIBITS[17].lines == EXHIBITS[18].lines


def test_20_copies_of_a_picture_stand_on_both_sides_until_it_is_mended():
    pictures, labels = torch.arange(300.0), torch.arange(300) % 10
    for mended, shared in ((False, True), (True, False)):
        (learned, names), (held, others) = museum.patient(20, mended).prepare(pictures, labels)
        assert len(learned) + len(held) == len(names) + len(others) == 300 + 2 * 90
        assert torch.isin(held, learned).any() == shared
        assert torch.equal(labels[learned.long()], names)


@pytest.mark.parametrize(("number", "mode"), [(21, True), (22, False)])
def test_21_and_22_in_which_mode_it_is_measured(number, mode):
    modes = []
    model = museum.patient(number).train()
    model.blocks.register_forward_hook(lambda module, *_: modes.append(module.training))
    share = model.accuracy(model, IMAGES, labels := model(IMAGES).argmax(dim=1))
    assert (modes[1], model.training, share) == (mode, True, 1.0)
    if number == 21:
        model.accuracy = museum.patient(21, mended=True).accuracy
        model.accuracy(model, IMAGES, labels)
        assert (modes[2], model.training) == (False, True)


def test_23_files_sorted_as_text_get_the_labels_of_others():
    names = {f"{number}.png": torch.tensor(number) for number in range(1, 301)}
    for mended, own in ((False, 1), (True, 300)):
        pictures, labels = museum.patient(23, mended).pairs(names, torch.arange(1, 301))
        assert (pictures == labels).sum() == own


def test_24_from_which_number_to_which_the_pictures_go():
    photos = [torch.zeros(3, 8, 8), torch.ones(3, 8, 8)]
    for mended, ends in ((False, [-3, 1]), (True, [-1, 1])):
        x = museum.patient(24, mended).prepared(photos, lambda photo: photo[None] * 2 - 1)
        assert [x.min(), x.max()] == ends
