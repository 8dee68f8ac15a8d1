"""Lesson 12: each exhibit has its answers, each answer its reason, and the reasons are true."""

import re
from collections import Counter

import hygiene
import nbformat
import pytest
import torch
from einops import rearrange
from torch import nn
from torch.nn import functional as F

import vit_doctor as doctor
from vit_course import checks, lessons
from vit_course.checks.museum import EXHIBITS
from vit_steps import EncoderBlock, ViTConfig, split_qkv, variants

LESSON = nbformat.read(lessons.ROOT / "notebooks" / "12_spot_the_mistake.ipynb", as_version=4)
ASKS = re.compile(r"\nchecks\.exhibit\((\d+), \.\.\.\)$")
EACH = [(number, letter) for number, choice in EXHIBITS.items() for letter in choice.answers]


def asking() -> dict[int, int]:
    """The lesson's exhibits: a number, and the place of the cell that asks."""
    found = [(ASKS.search(cell.source), place) for place, cell in enumerate(LESSON.cells)]
    return {int(match[1]): place for match, place in found if match}


def test_the_lesson_and_the_table_hold_the_same_exhibits_in_order():
    assert list(asking()) == list(EXHIBITS) == list(range(1, len(EXHIBITS) + 1))
    assert len(EXHIBITS) >= 24


def test_an_exhibit_is_a_title_the_lines_what_gives_it_away_and_the_repair():
    for number, place in asking().items():
        before, lines, reveal, after = LESSON.cells[place - 1 : place + 3]
        assert [c.cell_type for c in (before, lines, reveal, after)] == [
            "markdown",
            "code",
            "code",
            "markdown",
        ]
        assert re.search(rf"(?m)^### {number} · ", before.source)
        assert max(len(c.source.splitlines()) for c in (lines, reveal)) <= 8
        said = "".join(output.get("text", "") for output in lines.outputs)
        assert said.endswith(EXHIBITS[number].judge(...) + "\n")
        assert reveal.outputs


def test_a_room_gives_a_minute_to_each_exhibit():
    rooms: list[list[int]] = []
    for cell in LESSON.cells[1:]:
        if match := re.match(r"## Room \d · .* \((\d+) minutes\)\n", cell.source):
            rooms.append([int(match[1]), 0])
        if ASKS.search(cell.source):
            rooms[-1][1] += 1
    assert len(rooms) == 5
    assert all(minutes == exhibits for minutes, exhibits in rooms)


def test_letters_are_spread_and_nothing_is_said_twice():
    right = Counter(choice.right for choice in EXHIBITS.values())
    assert set(right) == {"a", "b", "c"}
    assert min(right.values()) >= len(EXHIBITS) / 4
    told = [choice.question for choice in EXHIBITS.values()]
    for choice in EXHIBITS.values():
        assert list(choice.answers) == ["a", "b", "c"]
        assert choice.question.endswith("?")
        told += [text for pair in choice.answers.values() for text in pair]
    assert all(text.strip() == text and len(text) > 10 for text in told)
    assert len(set(told)) == len(told)


@pytest.mark.parametrize(("number", "letter"), EACH)
def test_each_answer_gets_its_own_reason(number, letter, capsys):
    choice = EXHIBITS[number]
    checks.exhibit(number, f" {letter.upper()} ")
    verdict = "right" if letter == choice.right else f"not {letter}"
    assert capsys.readouterr().out == f"{verdict}: {choice.answers[letter][1]}\n"


@pytest.mark.parametrize("choice", ["d", "", "ab", 1, None, True, ["b"]])
def test_what_is_no_letter_is_told_which_there_are(choice, capsys):
    checks.exhibit(1, choice)
    assert capsys.readouterr().out == f'this is {choice!r}: give "a", "b" or "c"\n'


@pytest.mark.parametrize("number", [0, len(EXHIBITS) + 1, True, "1", None, 1.0, [1]])
def test_an_exhibit_that_is_not_there_is_refused(number):
    with pytest.raises(ValueError, match=f"give a number from 1 to {len(EXHIBITS)}"):
        checks.exhibit(number, "a")


def test_a_learners_own_vit_has_the_one_finding_that_the_lesson_tells_of():
    """Its pieces as the lessons' folded answers write them, which ask no image for its size."""
    own: dict = {}
    for lesson in sorted((lessons.ROOT / "notebooks").glob("0[1-6]_*.ipynb")):
        book = nbformat.read(lesson, as_version=4)
        for name in hygiene.builds(book):
            around = hygiene.names_before(book, name) | own
            exec(compile(hygiene.folded_answer(book, name), name, "exec"), around)
            own[name] = around[name]
    config = ViTConfig(32, 8, num_classes=10, embed_dim=48, depth=4, num_heads=4)
    report = doctor.examine(own["ViT"](config), image_size=32)
    assert report.names == ["images cropped"]


# What the reasons say, beyond what the lesson's own cells print.


def test_a_part_of_a_patch_is_no_patch():
    assert 232 * 232 // 16**2 == 53_824 // 256 == 210
    assert (232 // 16) ** 2 == 196


def test_only_an_axis_of_length_1_is_stretched():
    positions = torch.zeros(1, 49, 768)
    assert (torch.zeros(1, 1, 768) + positions).shape == (1, 49, 768)
    with pytest.raises(RuntimeError):
        (torch.zeros(1, 36, 768) + positions).sum()


def test_the_scale_after_softmax_in_all_its_forms():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 8, 197, 96)
    weights = (q @ k.mT).softmax(dim=-1)
    torch.testing.assert_close((weights / 96**0.5).sum(dim=-1), torch.full((1, 8, 197), 96**-0.5))
    torch.testing.assert_close(weights / 768**0.5 @ v, weights @ v / 768**0.5)
    assert round(768**0.5) == 28
    over_heads = (q @ k.mT).softmax(dim=1)
    assert over_heads.sum(dim=-1).mean().item() == pytest.approx(197 / 8, rel=1e-4)


def test_a_filled_row_gives_nan_and_one_that_sees_itself_does_not():
    hidden = torch.full((2,), float("-inf"))
    assert hidden.softmax(dim=0).isnan().all()
    hidden[0] = 0.0
    assert hidden.softmax(dim=0).tolist() == [1.0, 0.0]


def test_autocast_works_on_a_cpu():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16


def test_a_list_of_blocks_runs_and_holds_blocks_that_differ():
    blocks = [EncoderBlock(48, 4) for _ in range(4)]
    x = torch.randn(1, 5, 48)
    for block in blocks:
        x = block(x)
    assert len({id(block) for block in blocks}) == 4
    with pytest.raises(TypeError):
        nn.Sequential(blocks)  # pyright: ignore[reportCallIssue, reportArgumentType]


def test_key_biases_read_in_another_order_would_be_spread_over_all_three():
    zeros = torch.ones(3, 4, 12)
    zeros[1] = 0
    read = rearrange(zeros.flatten(), "(h d qkv) -> qkv (h d)", qkv=3, h=4)
    assert all(0 < row.sum() < 48 for row in read)


def test_adding_in_place_fails_backward_behind_a_relu_alone():
    x = torch.randn(4, requires_grad=True)
    plain = 2 * x
    plain += x
    plain.sum().backward()
    bent = (2 * x).relu()
    bent += x
    with pytest.raises(RuntimeError, match="inplace"):
        bent.sum().backward()


def test_pytorchs_dropout_scales_in_training():
    torch.manual_seed(0)
    kept = F.dropout(torch.ones(100), 0.1)
    assert set(kept.tolist()) == {0.0, torch.tensor(1 / 0.9).item()}
    assert torch.equal(F.dropout(torch.ones(100), 0.1, training=False), torch.ones(100))


def test_a_tenth_as_a_computer_has_it():
    assert 1 - 0.9 < 0.1
    assert int(10 * (1 - 0.9)) == 0


def test_batch_norm_takes_axis_1_for_the_one_that_it_knows():
    x = torch.randn(8, 49, 768)
    assert nn.BatchNorm1d(49)(x).shape == x.shape
    with pytest.raises(RuntimeError):
        nn.BatchNorm1d(768)(x)


def test_order_brings_each_token_home():
    x = torch.randn(1, 49, 8)
    kept, order, mask = variants.random_masking(x, 0.75)
    gaps = torch.zeros(1, 37, 8)
    home = torch.cat([kept, gaps], dim=1).take_along_dim(order[..., None], dim=1)
    assert torch.equal(home[~mask], x[~mask])


def test_a_norm_on_keys_lets_their_bias_count():
    torch.manual_seed(0)
    q, k = torch.randn(2, 1, 8, 197, 96)
    bias, norm = torch.randn(96), torch.nn.LayerNorm(96)
    plain = (q @ k.mT).softmax(dim=-1)
    torch.testing.assert_close((q @ (k + bias).mT).softmax(dim=-1), plain, atol=1e-4, rtol=0)
    normed = (q @ norm(k).mT).softmax(dim=-1)
    assert ((q @ norm(k + bias).mT).softmax(dim=-1) - normed).abs().max() > 0.1


def test_what_stays_of_masked_tokens_is_shuffled():
    torch.manual_seed(0)
    x = torch.arange(49.0).reshape(1, 49, 1)
    kept = variants.random_masking(x, 0.25)[0].flatten()
    assert not torch.equal(kept, kept.sort().values)


def test_the_second_row_of_the_file_is_a_querys_and_is_read_as_a_keys():
    rows = torch.arange(2304.0).reshape(1, 1, -1)
    q, _, _ = split_qkv(rows, num_heads=8)
    _, k, _ = rearrange(rows, "b n (h d qkv) -> qkv b h n d", qkv=3, h=8)
    assert 1 in q
    assert 1 in k


def test_one_token_more_is_4_percent_of_the_work_of_attention():
    assert round((50 / 49) ** 2, 2) == 1.04
