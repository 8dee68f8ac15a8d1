"""The drawings say what they are given, and refuse what they cannot draw truly."""

import json
from statistics import mean
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex
from PIL import Image

from vit_course import plots
from vit_course.plots import colours, predictions, published
from vit_steps import ViT, ViTConfig, weights
from vit_steps.images import LUMA, Preprocess
from vit_steps.maps import rollout
from vit_steps.scale import merge_tokens


@pytest.fixture(autouse=True)
def no_figure_left_over():
    yield
    plt.close("all")


def axes() -> list:
    return plt.gcf().axes


def texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def written() -> list[list[str]]:
    return [texts(ax) for ax in axes()]


def titles() -> list[str]:
    return [ax.get_title() for ax in axes()]


def rows(ax) -> list[str]:
    return [tick.get_text() for tick in ax.get_yticklabels()]


def scales() -> list[tuple[float, float]]:
    """Give the smallest and the largest value of each axes' colours."""
    return [ax.images[0].get_clim() for ax in axes() if ax.images]


def rounds(ax) -> list:
    """Give the lines that are drawn as dots."""
    return [line for line in ax.lines if line.get_marker() == "o"]


def colourful(lesson) -> int:
    """Count the pixels of the map that are neither grey nor nearly so."""
    plots.course_map(lesson)
    figure = plt.gcf()
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)
    return int((pixels.max(-1) - pixels.min(-1) > 30).sum())


@pytest.mark.slow
def test_each_lesson_lights_its_piece_and_together_they_make_the_whole_map():
    whole, *pieces = (colourful(lesson) for lesson in range(7))
    assert whole == colourful(None) == colourful(7) == colourful(13)
    assert all(0 < count < whole for count in pieces)
    # Lesson 5 lights QKV heads and attention again, and the MLP, which is grey by design.
    _, _, heads, attention, block, _ = pieces
    assert sum(pieces) - block < whole
    assert abs(block - heads - attention) < 200


def test_the_map_shows_the_shapes_of_b16_and_refuses_what_is_no_lessons_number():
    plots.course_map(0)
    assert {"3×224×224", "12×197×197", "1000"} <= set(texts(plt.gca()))
    for lesson in (-1, "03"):
        with pytest.raises(ValueError, match=f"lesson is {lesson!r}"):
            plots.course_map(lesson)


def test_a_matrix_has_its_numbers_written_in_and_legible():
    plots.matrix(torch.tensor([[0.0, 1.0], [0.25, 0.75]]), form="{:.2f}")
    assert texts(plt.gca()) == ["0.00", "1.00", "0.25", "0.75"]
    inks = [to_hex(text.get_color()) for text in plt.gca().texts]
    assert inks == ["#ffffff", "#000000", "#ffffff", "#000000"]
    plots.matrix(torch.rand(13, 5))  # of a large one a colour bar instead
    assert written() == [[], []]
    plots.matrix(torch.tensor([[float("nan"), 2.0], [3.0, 5.0]]), form="")  # with a gap
    assert scales() == [(2.0, 5.0)]


def test_matrices_and_tables_that_are_added_share_a_scale():
    plots.matrices({"a": torch.tensor([[0.0, 1.0]]), "b": torch.tensor([[-3.0]])}, form="{:.0f}")
    assert (written(), scales()) == ([["0", "1"], ["-3"]], [(-3.0, 1.0)] * 2)
    plots.token_sum(torch.tensor([[1.0], [2.0]]), torch.tensor([[0.5], [-4.0]]))
    assert written() == [["1.0", "2.0"], ["0.5", "-4.0"], ["1.5", "-2.0"]]
    assert len(set(scales())) == 1


def test_dots_show_every_run_and_the_mean_and_do_not_lie_on_each_other():
    plots.dots({"whole": [50.0, 50.1, 90.0, 50.2, 10.0], "none": [10.0]})
    whole, none = rounds(plt.gca())
    assert (texts(plt.gca()), rows(plt.gca())) == (["mean 50.1", "10.0"], ["whole", "none"])
    assert list(none.get_xdata()) == [10.0]
    heights = dict(zip(whole.get_xdata(), whole.get_ydata(), strict=True))
    assert heights[10.0] == heights[90.0] == heights[50.0] == 0
    assert len({heights[50.0], heights[50.1], heights[50.2]}) == 3


def test_canvases_mark_a_wrong_answer_in_words_and_in_colour():
    answers = {"before": torch.tensor([4, 4]), "after": torch.tensor([3, 5])}
    plots.canvases(torch.zeros(2, 1, 4, 4), torch.tensor([3, 5]), answers, columns=3)
    assert titles() == ["a 3", "a 5", ""]
    assert written() == [["before: 4 ✗", "after: 3 ✓"], ["before: 4 ✗", "after: 5 ✓"], []]
    assert len({text.get_color() for text in axes()[0].texts}) == 2
    assert not axes()[2].axison


def test_runs_of_several_seeds_share_a_scale_and_stand_under_their_name():
    plots.seed_runs({name: [[2.0, 1.0], [2.0, top]] for top, name in enumerate("abcd")}, 2.3, "x")
    assert titles() == ["a", "b", "c", "d", "", ""]
    assert len({ax.get_ylim() for ax in axes()[:4]}) == 1
    assert [list(line.get_ydata()) for line in axes()[3].lines[1:]] == [[2.0, 1.0], [2.0, 3]]


def test_parameter_bars_write_counts_and_shares():
    plots.parameter_bars({"patch embedding": 100, "encoder": 899, "cls token": 1})
    assert texts(plt.gca()) == ["100  (10.0%)", "899  (89.9%)", "1  (0.1%)"]


def test_a_drawing_its_map_and_its_answer():
    attends = torch.tensor([0.1, 0, 0.2, 0.6])
    figure = plots.drawing_and_answer(torch.zeros(1, 4, 4), torch.eye(3)[1], attends)
    left, bars, right = figure.axes
    assert (bars.get_title("left"), texts(bars)) == ("1, with 100%", ["", "100%", ""])
    assert len({bar.get_facecolor() for bar in bars.patches}) == 2
    assert len(left.lines) == 2  # the borders of 2×2 patches
    assert np.allclose(right.images[0].get_array(), [[0.1, 0], [0.2, 0.6]])


def test_what_becomes_of_an_image_ends_in_its_answer():
    tokens = torch.rand(5, 8)
    plots.opened(torch.zeros(1, 4, 4), tokens, [2 * tokens], torch.eye(3)[2], patch_size=2)
    assert titles()[:4] == ["the drawing", "4 patches", "5 tokens", "after block 0"]
    assert axes()[-1].get_title("left") == "2: 100%"


def test_a_reading_writes_every_belief():
    plots.reading(torch.rand(1, 4, 4), torch.tensor([[0.5, 0.5], [0.04, 0.96]]))
    assert written()[1] == [".50", ".50", ".04", ".96"]
    assert rows(axes()[1]) == ["at the start", "after 1 block"]


def test_pictures_stand_below_their_names_and_a_grey_one_keeps_its_brightness():
    plots.pictures({"wide": torch.rand(3, 4, 8), "square": torch.full((1, 4, 4), 0.5)})
    assert titles() == ["wide", "square"]
    assert [ax.images[0].get_array().shape[:2] for ax in axes()] == [(4, 8), (4, 4)]
    assert (axes()[1].images[0].get_cmap().name, scales()[1]) == ("gray", (0, 1))


def test_bytes_go_where_permute_and_reshape_put_them():
    pixels = torch.arange(12, dtype=torch.uint8).view(2, 2, 3)
    plots.bytes_in_order(pixels)
    numbers = [text for text in texts(plt.gca()) if text.isdigit()]
    permuted, reshaped = pixels.permute(2, 0, 1), pixels.reshape(3, 2, 2)
    ways = [*permuted.flatten().tolist(), *reshaped.flatten().tolist()]
    assert numbers == [str(number) for number in [*range(12), *ways]]
    starts = [line.get_xdata()[0] - 0.5 for line in plt.gca().lines]
    assert starts == [0, 3, 0, 1]  # the top row's reds; what comes first


def test_slopes_go_backward_as_torch_says():
    plots.backward_pass()
    a, b = torch.tensor([3.0, 0.5], requires_grad=True)
    a.retain_grad(), b.retain_grad()
    ((b * a * 2 - 5) ** 2).backward()
    said = " ".join(texts(plt.gca())).replace("−", "-").replace("\n", " ")
    assert f"gradient of a: -2 × x = {a.grad:g}" in said
    assert f"gradient of b: -4 × h = {b.grad:g}" in said


def test_in_a_valley_along_an_axis_adamw_comes_further_than_sgd_and_not_in_a_turned_one():
    plots.valley()
    ends = [torch.tensor(ax.lines[0].get_xydata()[-1]).norm().item() for ax in axes()]
    sgd, momentum, adamw, turned = ends
    assert max(momentum, adamw) < 0.2 < 0.9 < sgd < turned


def test_forward_is_drawn_with_as_many_tokens_as_there_are():
    plots.forward_path(patches=4, embed_dim=8, classes=3)
    said = texts(plt.gca())
    assert [text for text in said if text.startswith("(B")] == [
        "(B, 1, 16, 16)", "(B, 4, 8)", *["(B, 5, 8)"] * 2, *["(B, 8)"] * 2, "(B, 3)"
    ]  # fmt: skip


def test_curves_are_told_apart_without_colour_and_named_at_their_ends():
    plots.curves({"a": {1: 1.0, 2: 2.0, 4: 3.0}, "b": {1: 3.0, 2: 2.0, 4: 1.0}}, log="x")
    ax = plt.gca()
    assert [text.xy for text in ax.texts] == [(4, 1.0), (4, 3.0)]  # from the lowest up
    assert texts(ax) == ["b", "a"]
    assert len({line.get_linestyle() for line in ax.lines}) == 2
    assert len({line.get_marker() for line in ax.lines}) == 2
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2", "4"]
    plots.curves({"long": [1.0] * 21})
    assert plt.gca().lines[0].get_marker() in ("", "None")
    with pytest.raises(ValueError, match="7 curves where 6 are told apart"):
        plots.curves({f"{n}": [n] for n in range(7)})


def test_names_of_curves_that_end_in_one_place_do_not_lie_on_each_other():
    plots.curves({"first": [3.0, 1.0], "second": [2.0, 1.0], "third": [0.0, 1.01]})
    figure = plt.gcf()
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in plt.gca().texts]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_what_could_be_luck_is_a_ring_and_the_share_stands_behind_it():
    runs = {"whole": [80.0, 82.0], "near": [79.0], "far": [10.0], "above": [99.0]}
    plots.compared(runs, {"near": 0.5, "far": 0.001, "above": 0.002}, limit=0.01)
    assert texts(plt.gca())[1:3] == ["79.0   share 0.5000", "10.0   share 0.0010"]
    dots = rounds(plt.gca())
    assert [line.get_markerfacecolor() == "white" for line in dots] == [False, True, False, False]
    assert len({line.get_color() for line in dots}) == 3  # the first, what is below, what is above


def test_a_training_is_drawn_anew_with_all_that_came(tmp_path):
    drawing, shares = torch.zeros(1, 4, 4), torch.eye(3)
    draw = plots.live_training(drawing, epochs=2)
    draw([], 2.3, 0.1, shares[0])
    draw([2.0] * 20, 2.1, 0.25, shares[1])
    left, right, _, *bars = draw([2.0] * 20 + [1.0] * 20, 1.2, 0.5, shares[2]).axes
    (curve, val), (points,) = left.lines, right.lines
    assert val.get_ydata().tolist() == [2.3, 2.1, 1.2]
    assert curve.get_ydata().tolist() == [2.0] * 20 + [1.0] * 20
    assert curve.get_xdata()[[0, -1]].tolist() == [0.025, 1.975]
    assert (points.get_ydata().tolist(), texts(right)) == ([10.0, 25.0, 50.0], ["50"])
    assert [ax.get_title("left") for ax in bars] == ["0: 100%", "1: 100%", "2: 100%"]
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3))
    figure = plots.keepsake(tmp_path / "mine.png", model, drawing, [2.0, 1.0], "Ada")
    assert figure.get_supxlabel() == "51 weights, 2 steps · Ada"
    assert (tmp_path / "mine.png").read_bytes().startswith(b"\x89PNG")


def test_gaps_as_large_as_the_one_seen_are_counted():
    plots.all_gaps([86, 89], [84, 78])
    assert texts(plt.gca()) == ["seen: 6.5; 2 of 6 are as large"]
    plots.all_gaps([1, 1], [1, 1])
    assert texts(plt.gca()) == ["seen: 0.0; 6 of 6 are as large"]


def test_a_way_downhill_lies_in_the_valley():
    plots.downhill({0.25: [0.0, 1.5, 2.25], 0.5: [0.0, 3.0]})
    assert titles() == ["learning rate 0.25", "learning rate 0.5"]
    steps = axes()[0].lines[1].get_data()
    assert [list(numbers) for numbers in steps] == [[0.0, 1.5, 2.25], [9.0, 2.25, 0.5625]]


def test_bends_show_a_function_and_its_slope():
    plots.bends({"square": torch.square}, -1, 1)
    values, slopes = axes()
    x, y = values.lines[0].get_data()
    assert np.allclose(y, np.asarray(x) ** 2)
    assert np.allclose(slopes.lines[0].get_ydata(), 2 * np.asarray(x))


def test_rows_of_maps_share_a_scale():
    maps = {name: torch.rand(2, 2, 2) for name in ("one", "two")}
    plots.maps_below(torch.rand(2, 4, 4), maps, torch.zeros(2, 2))
    shared = torch.cat([*maps.values()])
    assert scales() == [(0, 1)] * 2 + [(shared.min().item(), shared.max().item())] * 4
    assert len(axes()[0].patches) == 1


@pytest.mark.parametrize(("own", "tops"), [(False, [0.5, 0.5]), (True, [0.5, 0.25])])
def test_maps_beside_a_picture_share_a_scale_from_zero_unless_each_has_its_own(own, tops):
    maps = {"one": torch.tensor([[0.1, 0.5]]), "two": torch.eye(2) / 4}
    plots.maps_beside(torch.rand(3, 4, 4), maps, own_scale=own)
    assert titles() == ["picture", "one", "two", *([] if own else [""])]
    assert [high for _, high in scales()[1:3]] == pytest.approx(tops)
    assert axes()[1].get_xlabel() == ("0.1000 to 0.5000" if own else "")


def test_each_pair_of_positions_stands_at_its_distance_and_likeness():
    plots.likeness_by_distance({"a": torch.tensor([[1.0, 0], [2, 0], [0, 3], [-1, 0]])})
    pairs = [np.round(np.asarray(dots.get_offsets()), 2) for dots in axes()[0].collections]
    elsewhere, in_line = (dots.tolist() for dots in pairs)  # of a 2×2 grid
    assert elsewhere == [[1.41, -1], [1.41, 0]]
    assert in_line == [[1, 1], [1, 0], [1, -1], [1, 0]]


def test_a_clock_starts_upright_and_turns_clockwise():
    plots.clock_faces(torch.tensor([torch.pi / 2]), places=3)
    tips = [[round(float(v[1])) for v in ax.lines[0].get_data()] for ax in axes()]
    assert tips == [[0, 1], [1, 0], [0, -1]]


def test_in_memory_patches_alternate_and_after_the_loop_they_do_not():
    plots.memory_row()
    tints = [box.get_facecolor() for box in plt.gca().patches]
    assert tints[0] == tints[1] == tints[4] != tints[2]
    assert all(len(set(tints[16 + 4 * patch : 20 + 4 * patch])) == 1 for patch in range(4))


def test_products_with_a_template_add_up_to_what_is_written():
    templates = {"all": torch.ones(12), "less": torch.tensor([1.0, -3.0] * 6)}
    plots.template_products(torch.full((12,), 0.5), templates, patch_size=2)
    assert {"the products: sum 6", "the products: sum −6"} <= set(titles())


def test_templates_are_grey_at_zero_on_one_scale():
    plots.template_grid({"a": torch.zeros(1, 1, 2, 2), "b": torch.full((4, 1, 2, 2), 4.0)}, 3)
    assert [ax.get_title("left") for ax in axes()] == ["a", "b"]
    small, large = (ax.images[0].get_array().tolist() for ax in axes())
    gap = [1.0] * 9
    assert small == [[0.5, 0.5, *gap[:7]], [0.5, 0.5, *gap[:7]], gap]
    assert len(large) == 6  # four templates, three in a row


def test_marked_patches_are_framed_where_they_stand():
    plots.mark_patches(torch.rand(3, 8, 12), {"a": 0, "b": 5}, patch_size=4)
    assert texts(plt.gca()) == ["a", "b"]
    corners = [patch.get_xy() for patch in plt.gca().patches]
    assert corners == [(-0.5, -0.5)] * 2 + [(7.5, 3.5)] * 2  # patch 5: row 1, column 2


def test_a_patch_is_shown_as_it_stands_in_the_first_picture():
    images = torch.rand(3, 1, 8, 12) * 2 - 1
    plots.same_patch(images, 5, 4, torch.arange(len(images)))
    alone, *others = axes()
    assert np.allclose(alone.images[0].get_array(), images[0, 0, 4:8, 8:12])
    assert [ax.patches[0].get_xy() for ax in others] == [(7.5, 3.5)] * 3


def test_a_merged_photo_shows_each_patch_as_its_token():
    """Two grey halves: whatever is merged, merged tokens of equal patches show the photo."""
    photo = torch.cat([torch.full((3, 64, 32), 0.2), torch.full((3, 64, 32), 0.8)], dim=2)
    plots.merged_photo(photo, merge_tokens, times=(4, 3))
    assert titles() == ["17 tokens", "13 tokens", "10 tokens"]
    shown = axes()[2].images[0].get_array()
    assert shown.shape == (64, 64, 3)
    assert np.abs(shown - 0.5).max() <= 0.3 + 1e-6  # means of what is there


def test_a_merging_draws_the_pairs_and_what_comes_out():
    numbers = torch.tensor([0.0, 10, 20, 40, 30, 50, 60])
    keys = torch.tensor([[1.0, 1], [1, 0], [0.9, 0.1], [0, 1], [0.8, 0.3], [-1, 0], [-1, 0.5]])
    plots.merging(numbers.tolist(), keys, 2)
    (ax,) = axes()
    said = [text for text in texts(ax) if text]  # an arrow has none
    cosines, shown = said[:3], said[3:]
    assert cosines == ["0.99", "0.94", "0.89"]
    merged, sizes = merge_tokens(numbers.view(1, 7, 1), keys[None], torch.ones(1, 7), 2)
    for number, size in zip(merged.flatten().tolist(), sizes[0].tolist(), strict=True):
        at = shown.index(f"size {size:g}")
        assert shown[at - 1] == f"{number:g}"
        shown = shown[at + 1 :]


def test_memory_rises_by_what_is_kept_and_falls_to_what_is_held():
    plots.step_memory(1.0, 8.0, 1.0, blocks=4, parts=2)
    tops = []
    for ax in axes():
        path = ax.collections[1].get_paths()[0].vertices
        assert path[:, 1].min() == 1.0
        tops.append((path[:, 0].max(), path[:, 1].max() - 1))
    # Checkpointed, the last block is computed anew on the inputs of the three before it.
    assert tops == [(3.0, 8.0), (3.0, 4.0), (pytest.approx(4.0), 0.75 + 2)]
    assert [ax.texts[-1].get_text() for ax in axes()[1:]] == ["+ 4.0 GB", "+ 2.8 GB"]


KEYS = {"high bend": (1.0, 0.0), "low stroke": (0.0, 1.0), "low bend": (1.0, 1.0)}
QUERY, VALUES = torch.tensor([1.0, 2.0]), torch.tensor([[3.0, 8.0], [1.0, 2.0], [9.0, 5.0]])


def test_a_lookup_writes_each_weight_and_puts_the_blend_where_it_is():
    weights = (torch.tensor([*KEYS.values()]) @ QUERY).softmax(dim=0)
    plots.soft_lookup(VALUES, dict(zip(KEYS, weights.tolist(), strict=True)))
    right = plt.gca()
    assert [text for text in texts(right) if "%" in text or text == "blend"] == [
        "high bend: 9%", "low stroke: 24%", "low bend: 67%", "blend"
    ]  # fmt: skip
    star = right.collections[-1].get_offsets()[0]
    assert np.allclose(star, weights @ VALUES)


def test_a_turning_query_jumps_between_values_or_slides():
    plots.turning_query(QUERY, KEYS, VALUES[:, 0])
    plane, curve = axes()
    assert set(KEYS) < {text.replace("\n", " ") for text in texts(plane)}
    steps, slope, here = (line.get_ydata() for line in curve.lines)
    assert set(steps[~np.isnan(steps)]) == {3, 9, 1}
    assert np.abs(np.diff(slope)).max() < 0.1
    assert round(float(here[0]), 1) == 6.5


def test_one_token_asks_and_all_answer():
    plots.three_roles({"eye": 0.0, "wall": 0.0, "coat": 0.0}, VALUES[:, 0])
    shown = texts(plt.gca())
    assert [shown.count(role) for role in "qkv"] == [1, 4, 4]
    assert shown.count("33%") == 3
    assert "blend: curves back, 4.3 of 10" in shown


def test_what_one_head_and_two_can_reach():
    values = {"low": (1.0, 2.0), "high": (3.0, 8.0)}
    plots.possible_blends(values, {"one": torch.tensor([2.0, 5.0])}, two_heads=True)
    ax = plt.gca()
    (box,), (line, point) = ax.patches, ax.lines
    assert (*box.get_xy(), box.get_width(), box.get_height()) == (1, 2, 2, 6)
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([1, 3], [2, 8])
    assert (point.get_label(), list(point.get_ydata())) == ("one", [5.0])
    plots.possible_blends(values, {})
    assert not plt.gca().patches


def test_each_number_of_qkv_is_made_of_all_numbers_of_the_token():
    plots.qkv_product(4, 2)
    assert len(plt.gca().patches) == 12 * 4 + 12 + 4
    assert [t for t in texts(plt.gca()) if "head" in t] == [
        f"{role}, head {head}" for role in "qkv" for head in (0, 1)
    ]


def test_heads_at_work_have_a_row_each_and_frame_the_patch_that_asks():
    weights = torch.rand(3, 3, 16).softmax(dim=-1)
    plots.heads_at_work(torch.rand(3, 1, 16, 16), weights, asks=6, heads=[2, 0])
    maps = axes()[3:9]
    assert [maps[0].get_ylabel(), maps[3].get_ylabel()] == ["head 2", "head 0"]
    shown = weights[:, [2, 0]].transpose(0, 1).flatten(0, 1)
    for ax, expected in zip(maps, shown, strict=True):
        assert np.allclose(ax.images[0].get_array(), expected.view(4, 4))
        assert ax.patches[0].get_xy() == (7.5, 3.5)


def test_rows_of_a_fused_weight_stand_in_the_order_that_is_named():
    plots.qkv_rows(4, 2, "(qkv h d)", "(h qkv d)")
    shown = [text.replace("\n", " ") for text in texts(plt.gca()) if "head" in text]
    assert shown[:6] == ["q head 0", "q head 0", "q head 1", "q head 1", "k head 0", "k head 0"]
    assert shown[12:18] == ["q head 0"] * 2 + ["k head 0"] * 2 + ["v head 0"] * 2


def test_heads_are_columns_side_by_side_in_every_step():
    plots.heads_cut(torch.tensor([[0, 1, 2, 3], [10, 11, 12, 13]]), 2)
    shown = texts(plt.gca())
    cells = ["00", "01", "10", "11", "02", "03", "12", "13"] * 3
    assert [text for text in shown if text.isdigit()] == cells
    assert [t for t in shown if "(" in t] == ["(B, N, D)", "(B, N, h, d)", "(B, h, N, d)"]


def test_attention_as_shapes_lights_one_row_of_scores_weights_and_result():
    plots.attention_shapes(torch.rand(3, 2), torch.rand(3, 2), torch.rand(3, 3), "abc", "b", "c")
    ax = plt.gca()
    lit = [p for p in ax.patches if to_hex(p.get_edgecolor()) == plots.QUERY.lower()]
    assert [(p.get_y(), p.get_height()) for p in lit] == [(1, 1)] * 4
    shapes = [text for text in texts(ax) if text in ("3×2", "2×3", "3×3")]
    assert shapes == ["3×2", "2×3", "3×3", "3×3", "3×3", "3×3"]


def test_a_hidden_key_has_no_weight_and_the_others_share_all():
    mask = torch.tensor([[True, True, False], [True, False, True], [True, True, True]])
    plots.hidden_keys(torch.zeros(3, 3), mask, "abc")
    shown = texts(plt.gca())
    assert (shown.count("−∞"), shown.count("0%")) == (2, 2)
    assert (shown.count("50%"), shown.count("33%")) == (4, 3)
    assert len([p for p in plt.gca().patches if p.get_hatch()]) == 4


def test_weights_are_bars_with_the_first_and_the_sum_in_the_title():
    plots.weight_bars({"a": torch.tensor([0.75, 0.25]), "b": torch.tensor([0.5, 0.25])})
    above, below = axes()
    assert [bar.get_height() for bar in above.patches] == [0.75, 0.25]
    titles = "a\nlargest 75%, sum 1", "b\nlargest 50%, sum 0.75"
    assert (above.get_title(), below.get_title()) == titles


def test_norms_stand_on_the_road_or_in_the_branches():
    plots.norm_places()
    for ax, level in zip(axes(), (0, -1.55), strict=True):
        norms = [text.get_position()[1] for text in ax.texts if text.get_text() == "norm"]
        assert norms == [level] * 2
    with pytest.raises(ValueError, match='give "branch" or "road"'):
        plots.residual_road("both")


def test_runs_without_the_scale_show_every_seed_and_join_the_means():
    plots.scale_runs("divided by √d", "smaller steps")
    ax = plt.gca()
    stored = plots.stored("scale")["reader"]["smaller steps"]
    assert list(ax.lines[1].get_xdata()) == [float(rate) for rate in stored]
    assert list(ax.lines[1].get_ydata()) == pytest.approx([mean(v) for v in stored.values()])
    dots = [line for line in ax.lines if line.get_linestyle() == "None"]
    assert [len(line.get_ydata()) for line in dots] == [5] * 6
    rates = np.repeat([float(rate) for rate in stored], 2)  # beside which the dots stand
    assert np.allclose(sorted(line.get_xdata()[0] for line in dots), rates, rtol=0.05)
    low, high = ax.get_ylim()
    assert all(low < share < high for line in dots for share in line.get_ydata())


def test_three_of_their_names_lead_to_one_of_ours():
    names = {
        "blocks.0.attn.qkv.weight": ("l.q.weight", "l.k.weight", "l.v.weight"),
        "blocks.0.norm1.weight": ("l.n.weight",),
        "blocks.1.norm1.weight": ("m.n.weight",),
        "blocks.0.norm1.bias": ("l.n.bias",),
    }
    plots.name_lines(names, "blocks.0.", "weight")
    shown = {"attn.qkv.weight", "norm1.weight", "q.weight", "k.weight", "n.weight"}
    assert shown | {"in the file: l.…"} <= set(texts(plt.gca()))
    ends = [line.get_ydata()[1] for line in plt.gca().lines]
    assert ends[0] == ends[1] == ends[2] != ends[3]


SLIPS = [name for names in published.SLIPS.values() for name in names]


@pytest.fixture
def measured(tmp_path, monkeypatch):
    slips = {name: dict(right=40, changed=1200, off=0.0123) for name in SLIPS}
    slips["as published"] = dict(right=150, changed=0, off=0.0)
    five = {"pixels": [0.5, 0.7], "from scratch": [0.4]}
    labels = {"5": five, "20": {"pixels": [0.9], "from scratch": [0.8]}}
    both = {"slips": dict(photos=200, rows=slips), "onward": dict(tested=50, rows=labels)}
    (tmp_path / "published.json").write_text(json.dumps(both), encoding="utf-8")
    monkeypatch.setattr(published, "FILE", tmp_path / "published.json")


def test_slips_of_the_kinds_asked_for_have_a_bar_each_and_say_what_they_cost(measured):
    plots.slip_costs("in the pictures")
    ax = plt.gca()
    assert rows(ax) == ["as published", *published.SLIPS["in the pictures"]]
    assert [bar.get_width() for bar in ax.patches] == [0.75] + [0.2] * 4
    assert texts(ax)[:2] == ["75.0%", "20.0%"]
    assert {"answers changed", "1,200", "logits off by", "0.01"} <= set(texts(ax))
    assert ax.get_xlabel() == "of 200 photos of CIFAR-10, named correctly"


def test_few_labels_have_a_panel_for_each_number_and_a_dot_for_each_seed(measured):
    plots.few_labels()
    assert written() == [["mean 60", "40"], ["90", "80"]]
    assert len({ax.get_xlim() for ax in axes()}) == 1


def test_an_alarm_is_told_by_a_sign_and_the_sound_ones_stand_below():
    plots.alarms({"a": [0, 1], "b": [1, 1], "c": [0, 1]}, ["x", "y"], sound=["b"])
    ax = plt.gca()
    assert rows(ax) == ["a", "c", "b"]
    signs = [(*text.get_position(), text.get_text()) for text in ax.texts]
    assert signs[:4] == [(1.5, 0.5, "✓"), (1.5, 1.5, "✓"), (0.5, 2.5, "!"), (1.5, 2.5, "!")]


def test_a_proof_covers_what_stands_above_its_bracket():
    plots.proofs()
    ax = plt.gca()
    names = texts(ax)
    boxes = {name: place for place, name in enumerate(published.WAY)}
    for line, (name, *_) in zip(ax.lines, published.PROOFS, strict=True):
        left, right = line.get_xdata()[0], line.get_xdata()[-1]
        assert name in names
        assert left < boxes["model"] < right
        assert (left < boxes["preparation"]) == (
            name in ("from the picture", "right answers counted")
        )


def test_the_paths_to_cls_are_coloured_and_as_thick_as_their_weights():
    first = torch.tensor([[0.5, 0.5], [0.25, 0.75]])
    plots.paths(first, torch.tensor([[1.0, 0.0], [0.5, 0.5]]), ["cls", "a patch"])
    ax = plt.gca()
    lines = [line for line in ax.lines if len(line.get_xdata()) == 2]
    assert [line.get_linestyle() for line in lines].count(":") == 1  # a weight of 0
    coloured = [line for line in lines if line.get_color() == colours.QUERY]
    widths = {(*line.get_xdata(), *line.get_ydata()): line.get_linewidth() for line in coloured}
    assert set(widths) == {(0, 1, 1, 0), (0, 1, 1, 1), (1, 2, 0, 0), (1, 2, 1, 0)}
    assert widths[0, 1, 1, 0] < widths[0, 1, 1, 1] < widths[1, 2, 0, 0]
    assert {"0.5", "0.75", "1", "0"} <= set(texts(ax))


def test_what_is_stored_of_published_weights_is_whole():
    slips, onward = (plots.stored(name, published.FILE) for name in ("slips", "onward"))
    assert slips["photos"] == 10_000
    assert set(slips["rows"]) == {"as published", *SLIPS}
    accuracy = weights.load("photos").measured["result"]["accuracy"]
    assert abs(slips["rows"]["as published"]["right"] / 10_000 - accuracy) < 0.001
    assert list(onward["rows"]) == ["5", "20"]
    assert {len(seeds) for ways in onward["rows"].values() for seeds in ways.values()} == {3}


# For `python -m vit_steps.predict --show` ---------------------------------------------------------


@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_predictions_show_what_the_model_got_where_it_looked_and_its_shares(pool, tmp_path):
    torch.manual_seed(0)
    model = ViT(ViTConfig(8, 2, 3, 3, embed_dim=12, depth=2, num_heads=2, pool=pool)).eval()
    for p in model.parameters():
        torch.nn.init.normal_(p)
    preprocess = Preprocess((8, 8), 8)
    weights = SimpleNamespace(model=model, preprocess=preprocess, classes=("$_$", "고양이", "c"))
    path = tmp_path / "a_$.png"
    Image.new("RGB", (9, 9), "grey").save(path)  # patches differ by place alone
    shares = (("고양이", 0.5), ("$_$", 0.3), ("c", 0.2))
    prediction = SimpleNamespace(picture=str(path), shares=shares, doubt="unsure")
    predictions.draw_predictions(tmp_path / "out.png", weights, [prediction] * 2)
    with Image.open(tmp_path / "out.png") as png:
        assert (png.format, png.size) == ("PNG", (1200, 696))

    figure = predictions.predictions_figure(weights, [prediction])
    left, middle, right = figure.axes
    assert left.get_title() == r"a_\$.png"
    assert np.allclose(left.images[0].get_array(), preprocess.pixels(path).permute(1, 2, 0))
    assert right.get_title() == "unsure"
    assert [bar.get_width() for bar in right.patches] == [0.5, 0.3, 0.2]
    labels = [label.get_text() for label in right.get_yticklabels()]
    assert labels == ["1", r"\$_\$", "c"]  # as the font can write them
    flow = rollout(model(preprocess(path), return_attention=True)[1])[0]
    looks = flow[0, 1:] if pool == "cls" else flow[1:, 1:].mean(dim=0)
    colours = middle.images[0].get_array()
    assert colours.shape == (8, 8, 3)
    light = colours[::2, ::2].reshape(16, 3) @ LUMA  # a pixel a patch
    assert (np.diff(light[looks.detach().numpy().argsort()]) >= -0.01).all()
    assert light.max() - light.min() > 0.4


def test_a_field_has_a_dot_for_each_number_and_names_the_blocks():
    tensors = {"head.bias": torch.tensor([1.0]), "blocks.0.norm.weight": torch.tensor([-1.0, 0.0])}
    plots.number_field(tensors | {"blocks.1.fc": torch.tensor([[0.1, 0.2]])}, columns=3)
    assert plt.gca().images[0].get_array().tolist() == [[2, -2, 0], [1, 1, 0]]
    assert texts(plt.gca()) == ["blocks.0", "blocks.1"]


def test_pixels_are_written_as_numbers_from_0_to_9():
    plots.pixel_numbers(torch.tensor([[[-1.0, 1.0], [0.0, 0.5]]]))
    assert texts(plt.gca()) == ["0", "9", "4", "7"]


def test_a_picture_is_cut_into_a_row_and_a_table():
    plots.cut_in_a_row(torch.arange(16.0).view(1, 4, 4) / 15, patch_size=2, shown=4)
    picture, table, *row = axes()
    assert len(picture.lines) == 2
    numbers = (15 * np.asarray(table.images[0].get_array())).round().astype(int)
    assert numbers[0].tolist() == [0, 1, 4, 5]
    assert [ax.get_title() for ax in row] == ["0", "1", "2", "3"]


def test_columns_that_mirror_each_other_lie_on_the_second_diagonal():
    table = torch.zeros(4, 4, 2)  # (row, column, D): columns 0 and 3 agree, so do 1 and 2
    table[:, [0, 3], 0] = table[:, [1, 2], 1] = 1
    plots.lines_alike(table.flatten(0, 1))
    columns, rows, _ = (
        np.asarray(ax.images[0].get_array()) if ax.images else None for ax in axes()
    )
    assert np.allclose(columns, np.eye(4) + np.eye(4)[::-1])
    assert np.allclose(rows, 1)


def test_split_and_merged_each_number_keeps_its_patchs_colour():
    plots.split_and_merge()
    numbers = [text for text in plt.gca().texts if text.get_text().isdigit()]
    tints = {}
    boxes = [box for box in plt.gca().patches if box.get_fill()]  # not the frame of the 6
    for text, box in zip(numbers, boxes, strict=True):
        tints.setdefault(int(text.get_text()), set()).add(box.get_facecolor())
    assert all(len(colours) == 1 for colours in tints.values())
    assert tints[0] == tints[5] != tints[2]


def test_answers_are_shown_by_their_sign():
    plots.answer_map(torch.rand(3, 4, 4), torch.tensor([[1.0, -3.0], [0.0, 2.0]]), "bright", 1)
    photo, answers, _ = axes()
    assert answers.images[0].get_clim() == (-3, 3)
    assert {box.get_xy() for box in photo.patches} == {(1.5, 1.5)}  # the patch that says 2
    assert {box.get_xy() for box in answers.patches} == {(0.5, 0.5)}


def test_a_template_slides_by_one_or_by_its_width():
    plots.sliding()
    assert "3×3 answers" in titles()[0]
    assert "2×2 answers" in titles()[1]


def test_at_each_place_stands_its_likeness_to_all_places():
    plots.position_maps({"a": torch.tensor([[1.0, 0], [2, 0], [0, 3], [-1, 0]])})
    sheet = np.asarray(axes()[0].images[0].get_array().filled(9)).round(2)
    assert sheet[:2, :2].tolist() == [[1, 1], [0, -1]]  # of the first place
    assert sheet[3:, 3:].tolist() == [[-1, -1], [0, 1]]  # of the last
    assert (sheet[2] == 9).all()


def test_after_relu_a_line_parts_the_edges_from_the_rest():
    plots.edge_points()
    last = axes()[2]
    rest, edges, line = last.lines
    assert edges.get_xydata().tolist() == [[1, 0], [0, 1]]
    assert rest.get_xydata().tolist() == [[0, 0], [0, 0]]
    above = line.get_xydata().sum(axis=1)  # of a falling line x + y = c
    assert np.allclose(above, above[0])
    assert 0 < above[0] < 1


def test_a_token_ten_times_as_large_is_normed_to_the_same_bars():
    token = torch.tensor([1.0, 3.0, 2.0, 6.0])
    plots.norm_bars({"one": token, "ten times": 10 * token})
    below = [text.get_text() for ax in axes()[2:] for text in ax.texts]
    assert below[:4] == below[4:] == ["−1.1", "0.0", "−0.5", "1.6"]
