"""Lesson 12: its exhibits are those of the museum's text, and what the text says is true."""

import re

import nbformat
import pytest
import torch
from einops import rearrange
from torch import nn
from torch.nn import functional as F

import vit_doctor
from vit_course import checks, lessons
from vit_course.checks import choosing
from vit_course.checks.exercise import COMMON
from vit_course.checks.keeping import PIECES
from vit_steps import EncoderBlock, ViTConfig, split_qkv, variants

LESSON = nbformat.read(lessons.ROOT / "notebooks" / "12_spot_the_mistake.ipynb", as_version=4)
ASKS = re.compile(r"\nchecks\.exhibit\((\d+)\)$")
Q_AND_K = torch.randn(2, 1, 8, 197, 96, generator=torch.Generator().manual_seed(0))


def test_an_exhibit_is_a_title_the_lines_what_gives_it_away_and_the_repair():
    found = [(ASKS.search(cell.source), place) for place, cell in enumerate(LESSON.cells)]
    asking = {int(match[1]): place for match, place in found if match}
    museum = choosing.read(choosing.FOLDER / "museum.txt")
    assert list(asking) == list(museum)
    for number, place in asking.items():
        before, lines, reveal, after = cells = LESSON.cells[place - 1 : place + 3]
        assert [c.cell_type for c in cells] == ["markdown", "code", "code", "markdown"]
        assert re.search(rf"(?m)^### {number} · ", before.source)
        assert max(len(c.source.splitlines()) for c in (lines, reveal)) <= 8
        assert lines.outputs[-1].data["text/plain"].startswith(f"{number}. ")
        assert reveal.outputs
        assert after.source


def test_a_room_gives_a_minute_to_each_exhibit():
    rooms: list[list[int]] = []
    for cell in LESSON.cells[1:]:
        if match := re.match(r"## Room \d · .* \((\d+) minutes\)\n", cell.source):
            rooms.append([int(match[1]), 0])
        if ASKS.search(cell.source):
            rooms[-1][1] += 1
    assert len(rooms) == 5
    assert all(minutes == exhibits for minutes, exhibits in rooms)


def test_a_learners_own_vit_has_the_one_finding_that_the_lesson_tells_of():
    """Its pieces as the exercises' answers write them, which ask no image for its size."""
    own: dict = {}
    for name in list(PIECES)[: list(PIECES).index("ViT") + 1]:
        exercise = getattr(checks, name)
        exec(exercise.answer, around := COMMON | exercise.uses | own)
        own[name] = around[name]
    config = ViTConfig(32, 8, num_classes=10, embed_dim=48, depth=4, num_heads=4)
    report = vit_doctor.examine(own["ViT"](config), image_size=32)
    assert report.names == ["images cropped"]


# What the reasons say, beyond what the lesson's own cells print: each exhibit by its number.


def test_4_only_an_axis_of_length_1_is_stretched():
    positions = torch.zeros(1, 49, 768)
    assert (torch.zeros(1, 1, 768) + positions).shape == (1, 49, 768)
    with pytest.raises(RuntimeError):
        (torch.zeros(1, 36, 768) + positions).sum()


def test_6_to_9_where_the_scale_and_the_softmax_belong():
    q, k = Q_AND_K
    weights = (q @ k.mT).softmax(dim=-1)
    torch.testing.assert_close(weights / 768**0.5 @ q, weights @ q / 768**0.5)
    assert round(768**0.5) == 28
    assert (weights / 96**0.5).sum(dim=-1).mean().item() == pytest.approx(0.102, abs=1e-3)
    over_heads = (q @ k.mT).softmax(dim=1)
    assert over_heads.sum(dim=-1).mean().item() == pytest.approx(197 / 8, rel=1e-4)


def test_10_a_filled_row_gives_nan_and_one_that_sees_itself_does_not():
    hidden = torch.full((2,), float("-inf"))
    assert hidden.softmax(dim=0).isnan().all()
    hidden[0] = 0.0
    assert hidden.softmax(dim=0).tolist() == [1.0, 0.0]


def test_11_pytorchs_own_layer_returns_what_dropout_left():
    torch.manual_seed(0)
    layer, x = nn.MultiheadAttention(8, 1, dropout=0.5, batch_first=True), torch.randn(1, 9, 8)
    assert (layer(x, x, x)[1] == 0).any()


def test_12_autocast_works_on_a_cpu():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16


def test_16_a_list_of_blocks_runs_and_holds_blocks_that_differ():
    blocks, x = [EncoderBlock(48, 4) for _ in range(4)], torch.randn(1, 5, 48)
    for block in blocks:
        x = block(x)
    assert len({id(block) for block in blocks}) == 4
    with pytest.raises(TypeError):
        nn.Sequential(blocks)  # pyright: ignore[reportCallIssue, reportArgumentType]


def test_17_key_biases_read_in_another_order_would_be_spread_over_all_three():
    zeros = torch.ones(3, 4, 12)
    zeros[1] = 0
    read = rearrange(zeros.flatten(), "(h d qkv) -> qkv (h d)", qkv=3, h=4)
    assert all(0 < row.sum() < 48 for row in read)


def test_18_adding_in_place_fails_backward_after_a_relu_alone():
    x = torch.randn(4, requires_grad=True)
    for branch, fails in ((2 * x, False), ((2 * x).relu(), True)):
        branch += x
        if fails:
            with pytest.raises(RuntimeError, match="inplace"):
                branch.sum().backward()
        else:
            branch.sum().backward()
    torch.manual_seed(0)
    assert set(F.dropout(torch.ones(100), 0.1).tolist()) == {0.0, torch.tensor(1 / 0.9).item()}


def test_21_a_tenth_as_a_computer_has_it():
    assert 1 - 0.9 < 0.1
    assert int(10 * (1 - 0.9)) == 0


def test_22_batch_norm_takes_axis_1():
    x = torch.randn(8, 49, 768)
    assert nn.BatchNorm1d(49)(x).shape == x.shape
    with pytest.raises(RuntimeError):
        nn.BatchNorm1d(768)(x)


def test_23_order_brings_each_token_home():
    x = torch.randn(1, 49, 8)
    kept, order, mask = variants.random_masking(x, 0.75)
    gaps = torch.zeros(1, 37, 8)
    home = torch.cat([kept, gaps], dim=1).take_along_dim(order[..., None], dim=1)
    assert torch.equal(home[~mask], x[~mask])


def test_24_the_second_row_of_the_file_is_a_querys_and_is_read_as_a_keys():
    rows = torch.arange(2304.0).reshape(1, 1, -1)
    q, _, _ = split_qkv(rows, num_heads=8)
    _, k, _ = rearrange(rows, "b n (h d qkv) -> qkv b h n d", qkv=3, h=8)
    assert 1 in q
    assert 1 in k


def test_25_and_26_patches_by_area_and_one_token_more():
    assert 232 * 232 // 16**2 == 53_824 // 256 == 210
    assert round((50 / 49) ** 2, 2) == 1.04
